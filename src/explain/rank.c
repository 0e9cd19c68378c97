#include "explain/rank.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- ranking */

espi_shortlist espi_shortlist_of(size_t top, bool up, bool down, bool together)
{
    return (espi_shortlist){
        .side = {{.top = top}, {.top = top}}, .together = together, .wanted = {up, down}, .exact = true};
}

static void free_found(espi_found *found)
{
    espi_free(found->step);
    *found = (espi_found){0};
}

void espi_shortlist_free(espi_shortlist *shortlist)
{
    for (size_t s = 0; s < 2; s++) {
        espi_ranking *r = &shortlist->side[s];
        for (size_t i = 0; i < r->count; i++) free_found(&r->item[i]);
        for (size_t i = 0; i < r->ties; i++) free_found(&r->tie[i]);
        espi_free(r->item);
        espi_free(r->tie);
        *r = (espi_ranking){0};
    }
}

static const espi_ranking *side_of(const espi_shortlist *shortlist, bool up)
{
    return shortlist->wanted[up ? 0 : 1] ? &shortlist->side[up || shortlist->together ? 0 : 1] : NULL;
}

/* What a key must exceed. */
static double least(const espi_ranking *r)
{
    return r->count < r->top ? 0.0 : fabs(r->item[0].key) * (1.0 + ESPI_RANK_TIE);
}

/* Whether a full list takes the key as one that is equal to its least. */
static bool is_tie(const espi_ranking *r, double key)
{
    return r->count == r->top && fabs(key) <= least(r) && fabs(key) * (1.0 + ESPI_RANK_TIE) >= fabs(r->item[0].key);
}

bool espi_shortlist_wants(const espi_shortlist *shortlist, double key)
{
    const espi_ranking *r = side_of(shortlist, key > 0.0);
    if (key == 0.0 || r == NULL || r->top == 0) return false;
    return fabs(key) > least(r) || (r->ties < ESPI_RANK_TIES && is_tie(r, key));
}

double espi_shortlist_hope(const espi_shortlist *shortlist, double up, double down)
{
    const espi_ranking *plus = side_of(shortlist, true), *minus = side_of(shortlist, false);
    double hope = 0.0;
    if (plus != NULL && plus->top > 0 && up > least(plus)) hope = up;
    if (minus != NULL && minus->top > 0 && down > least(minus) && down > hope) hope = down;
    return hope;
}

/* Whether `a` goes first of a full list: the smaller key, of equal ones the larger feature. */
static bool below(const espi_found *a, const espi_found *b)
{
    const double x = fabs(a->key), y = fabs(b->key);
    return x != y ? x < y : a->size > b->size;
}

static void sink(espi_ranking *r, size_t at)
{
    for (;;) {
        size_t low = at;
        for (size_t c = 2 * at + 1; c <= 2 * at + 2 && c < r->count; c++)
            if (below(&r->item[c], &r->item[low])) low = c;
        if (low == at) return;
        const espi_found swap = r->item[at];
        r->item[at] = r->item[low];
        r->item[low] = swap;
        at = low;
    }
}

static void rise(espi_ranking *r, size_t at)
{
    while (at > 0 && below(&r->item[at], &r->item[(at - 1) / 2])) {
        const espi_found swap = r->item[at];
        r->item[at] = r->item[(at - 1) / 2];
        r->item[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

/* Takes the feature, or frees it. */
static bool add_tie(espi_ranking *r, espi_found found)
{
    const bool ok = espi_reserve(&r->tie, &r->tie_capacity, r->ties + 1, sizeof *r->tie);
    if (ok && r->ties < ESPI_RANK_TIES) r->tie[r->ties++] = found;
    else free_found(&found);
    return ok;
}

/* Puts the feature in the place of the least. */
static bool replace_least(espi_ranking *r, espi_found found)
{
    const espi_found old = r->item[0];
    r->item[0] = found;
    sink(r, 0);
    if (is_tie(r, old.key)) return add_tie(r, old);
    while (r->ties > 0) free_found(&r->tie[--r->ties]);
    espi_free(old.step);
    return true;
}

bool espi_shortlist_add(espi_shortlist *shortlist, const espi_found *found)
{
    espi_ranking *r = &shortlist->side[found->key > 0.0 || shortlist->together ? 0 : 1];
    espi_found copy = *found;
    copy.step = espi_alloc(found->steps, sizeof *copy.step);
    if (copy.step == NULL) return false;
    if (found->steps > 0) memcpy(copy.step, found->step, found->steps * sizeof *copy.step);
    if (r->count == r->top) return is_tie(r, copy.key) ? add_tie(r, copy) : replace_least(r, copy);
    if (!espi_reserve(&r->item, &r->capacity, r->count + 1, sizeof *r->item)) {
        espi_free(copy.step);
        return false;
    }
    r->item[r->count++] = copy;
    rise(r, r->count - 1);
    return true;
}

bool espi_ranking_join(espi_ranking *r)
{
    if (!espi_reserve(&r->item, &r->capacity, r->count + r->ties, sizeof *r->item)) return false;
    for (size_t i = 0; i < r->ties; i++) r->item[r->count++] = r->tie[i];
    r->ties = 0;
    return true;
}

/* -------------------------------------------------------------------- search */

enum { PULSE = 64 }; /* states grown between two questions whether to go on */

static bool before(const espi_state *a, const espi_state *b)
{
    return a->hope != b->hope ? a->hope > b->hope : a->serial < b->serial;
}

static void drop(espi_best_first *b, espi_state *state)
{
    if (state != NULL) b->free(state);
}

esp_status espi_best_first_push(espi_best_first *b, espi_state *state, esp_error *err)
{
    state->hope = espi_shortlist_hope(b->shortlist, state->up, state->down);
    if (state->hope == 0.0) {
        drop(b, state);
        return ESP_OK;
    }
    if (!espi_reserve(&b->heap, &b->capacity, b->states + 1, sizeof *b->heap)) {
        drop(b, state);
        return espi_no_memory(err);
    }
    state->serial = b->serial++;
    b->bytes += state->bytes;
    size_t at = b->states++;
    for (; at > 0 && before(state, b->heap[(at - 1) / 2]); at = (at - 1) / 2) b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = state;
    return ESP_OK;
}

static espi_state *pop(espi_best_first *b)
{
    espi_state *first = b->heap[0], *last = b->heap[--b->states];
    size_t at = 0;
    for (;;) {
        size_t next = 2 * at + 1;
        if (next >= b->states) break;
        if (next + 1 < b->states && before(b->heap[next + 1], b->heap[next])) next++;
        if (before(last, b->heap[next])) break;
        b->heap[at] = b->heap[next];
        at = next;
    }
    b->heap[at] = last;
    b->bytes -= first->bytes;
    return first;
}

/* What the states that are left could still lead to. */
static void give_up(espi_best_first *b)
{
    for (size_t i = 0; i < b->states; i++) {
        const double hope = espi_shortlist_hope(b->shortlist, b->heap[i]->up, b->heap[i]->down);
        if (hope == 0.0) continue;
        b->shortlist->exact = false;
        if (hope > b->shortlist->bound) b->shortlist->bound = hope;
    }
}

esp_status espi_best_first_search(espi_best_first *b, esp_error *err)
{
    esp_status status = ESP_OK;
    for (; status == ESP_OK && b->states > 0; b->grown++) {
        if (b->grown >= b->effort || (b->grown > 0 && b->bytes > b->memory)) {
            give_up(b);
            break;
        }
        if (b->grown % PULSE == 0) status = espi_progress(b->run, "searching", -1.0, err);
        espi_state *state = pop(b);
        /* The list may have become better since the state was pushed. */
        if (status == ESP_OK && espi_shortlist_hope(b->shortlist, state->up, state->down) > 0.0)
            status = b->grow(b->grower, b, state, err);
        drop(b, state);
    }
    while (b->states > 0) drop(b, b->heap[--b->states]);
    espi_free(b->heap);
    b->heap = NULL;
    b->capacity = b->bytes = 0;
    return status;
}
