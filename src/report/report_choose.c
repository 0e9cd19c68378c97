/* Which examples are worth looking at. Candidates of a kind are sorted by how much they tell; classes take turns, so
 * that a class with many errors does not crowd out the others. */
#include "base/alloc.h"
#include "base/status.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    size_t turn;  /* how many of its class and kind come before it */
    size_t class; /* the actual one, without targets the predicted one; 0 for a regression */
    double worth; /* the larger, the sooner */
    size_t example;
} candidate;

static int by_worth(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->worth != b->worth) return a->worth < b->worth ? 1 : -1;
    return (a->example > b->example) - (a->example < b->example);
}

static int by_turn(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->turn != b->turn) return a->turn > b->turn ? 1 : -1;
    return a->class != b->class ? (a->class > b->class ? 1 : -1) : by_worth(x, y);
}

/* Puts the candidates in order: the best of each class, then the second best of each, and so on. */
static bool order(candidate *c, size_t count, size_t classes)
{
    size_t *turns = espi_alloc_zero(classes + 1, sizeof *turns);
    if (turns == NULL) return false;
    qsort(c, count, sizeof *c, by_worth);
    for (size_t i = 0; i < count; i++) c[i].turn = turns[c[i].class]++;
    qsort(c, count, sizeof *c, by_turn);
    espi_free(turns);
    return true;
}

/* Takes the first of one list and then of the other; where one is short, the other has its places. */
static void take(const candidate *first, size_t firsts, const candidate *second, size_t seconds, size_t most,
                 size_t *example, size_t *count)
{
    size_t from_first = most / 2 + most % 2;
    if (seconds < most - from_first) from_first = most - seconds;
    if (from_first > firsts) from_first = firsts;
    *count = 0;
    for (size_t i = 0; i < from_first; i++) example[(*count)++] = first[i].example;
    for (size_t i = 0; i < seconds && *count < most; i++) example[(*count)++] = second[i].example;
}

/* Fills the two lists from both ends of `c`; returns the length of the first. */
static size_t divide(const espi_report *r, candidate *c)
{
    const esp_predictions *p = r->predictions;
    size_t firsts = 0, end = p->count;
    for (size_t i = 0; i < p->count; i++) {
        candidate one = {.example = i};
        bool first = false;
        if (p->classes == 0) {
            one.worth = r->target != NULL ? fabs(p->column[i] - r->target[i]) : p->column[i];
        } else {
            const uint32_t class = r->actual != NULL ? r->actual[i] : p->winner[i];
            first = class != p->winner[i];
            one.class = class == ESPI_NO_CLASS ? p->classes : class;
            one.worth = first ? espi_report_margin(p, i) : -espi_report_margin(p, i);
        }
        c[first ? firsts++ : --end] = one;
    }
    return firsts;
}

esp_status espi_report_choose(const espi_report *r, size_t most, size_t *example, size_t *count, esp_error *err)
{
    const size_t all = r->predictions->count;
    candidate *c = espi_alloc(all, sizeof *c);
    if (c == NULL) return espi_no_memory(err);
    const size_t firsts = divide(r, c);
    bool ok = order(c, firsts, r->predictions->classes) && order(c + firsts, all - firsts, r->predictions->classes);
    if (ok && r->predictions->classes == 0) { /* both ends of the one list */
        const size_t largest = most / 2 + most % 2;
        *count = 0;
        for (size_t i = 0; i < largest; i++) example[(*count)++] = c[i].example;
        for (size_t i = 0; *count < most; i++) example[(*count)++] = c[all - 1 - i].example;
    } else if (ok) {
        take(c, firsts, c + firsts, all - firsts, most, example, count);
    }
    espi_free(c);
    return ok ? ESP_OK : espi_no_memory(err);
}
