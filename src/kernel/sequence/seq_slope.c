/* The sequence kernel and its derivative in lambda, pair by pair: each line of the recursion of sequence.c with its
 * derivative, written d, beside it.
 *
 *     dJ_m(i, j)   = I(i, j) dJ'_m(i, j)                                           (dJ_1 = 0)
 *     dJ'_m(i, j)  = J'_m(i, j-1) + lambda dJ'_m(i, j-1) + dJ''_m(i, j-1)
 *     dJ''_m(i, j) = J''_m(i-1, j) + lambda dJ''_m(i-1, j) + dJ_{m-1}(i-1, j) */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

typedef struct numbers { /* values and derivatives */
    double *value, *slope;
} numbers;

typedef struct table {
    double lambda;
    bool all; /* one level for all lengths */
    size_t levels;
    size_t length; /* of a row */
    double *match; /* I(i, .) */
    double *level; /* each: J_m, dJ_m, J''_m, dJ''_m */
    double *other; /* all: J and dJ of every other row */
    double value, slope;
} table;

static bool table_open(table *t, const espi_seq_rule *rule, size_t length, espi_seq_scratch *s)
{
    *t = (table){.lambda = rule->lambda, .all = rule->n >= length, .length = length};
    t->levels = t->all ? 1 : rule->n;
    if (t->levels > SIZE_MAX / 64 / length ||
        !espi_reserve(&s->value, &s->capacity, (4 * t->levels + 3) * length, sizeof *s->value))
        return false;
    t->match = s->value;
    t->other = t->match + length;
    t->level = t->other + 2 * length;
    memset(t->level, 0, 4 * t->levels * length * sizeof *t->level);
    return true;
}

/* One row of J_m (`ending`) and J''_m (`carried`) from the row before; `shorter` is J_{m-1} of the row before. J'
 * starts from 0 for one m, from 1 for the sum over all. */
static void next_row(table *t, numbers shorter, numbers carried, numbers ending)
{
    const double lambda = t->lambda, first = t->all ? 1.0 : 0.0;
    double before = 0.0, d_before = 0.0, sum = 0.0, d_sum = 0.0;
    for (size_t j = 0; j < t->length; j++) {
        if (j % ESPI_SEQ_STRETCH == 0 && before < ESPI_SEQ_TINY && d_before < ESPI_SEQ_TINY) before = d_before = 0.0;
        const double above = lambda * carried.value[j] + shorter.value[j];
        const double d_above = carried.value[j] + (lambda * carried.slope[j] + shorter.slope[j]);
        ending.value[j] = t->match[j] * (first + before);
        ending.slope[j] = t->match[j] * d_before;
        sum += ending.value[j];
        d_sum += ending.slope[j];
        d_before = before + (lambda * d_before + d_above);
        before = lambda * before + above;
        carried.value[j] = above;
        carried.slope[j] = d_above;
    }
    t->value += sum;
    t->slope += d_sum;
}

/* What became small beyond use; see ESPI_SEQ_TINY. */
static void drop_tiny(const table *t)
{
    for (size_t m = 0; m < t->levels; m++) {
        double *carried = t->level + (4 * m + 2) * t->length;
        espi_seq_drop_tiny_pairs(carried, carried + t->length, t->length);
    }
}

/* Row i of all levels; `match` is set. */
static esp_status table_row(table *t, size_t i, espi_seq_scratch *s, esp_error *err)
{
    const size_t length = t->length, shortest = t->all ? 0 : 1;
    for (size_t m = t->levels; m-- > shortest;) { /* the longest first, as in sequence.c */
        double *level = t->level + 4 * m * length, *now = level, *last = level - (t->all ? 0 : 4 * length);
        if (t->all && i % 2 == 0) now = t->other;
        if (t->all && i % 2 == 1) last = t->other;
        next_row(t, (numbers){last, last + length}, (numbers){level + 2 * length, level + 3 * length},
                 (numbers){now, now + length});
    }
    for (size_t j = 0; !t->all && j < length; j++) {
        t->level[j] = t->match[j];
        t->value += t->match[j];
    }
    if (i % ESPI_SEQ_STRETCH == ESPI_SEQ_STRETCH - 1) drop_tiny(t);
    s->work += t->levels * length;
    return espi_progress_at_times(s->run, "computing the gradient", &s->work, err);
}

esp_status espi_seq_slope(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_seq_scratch *s,
                          double *value, double *slope, esp_error *err)
{
    if (a->length < b->length) {
        const espi_seq *const longer = b;
        b = a;
        a = longer;
    }
    *value = *slope = 0.0;
    if (b->length == 0) return ESP_OK;
    table t;
    if (!table_open(&t, rule, b->length, s)) return espi_no_memory(err);
    const bool plain = espi_seq_plain(a) && espi_seq_plain(b);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < a->length; i++) {
        espi_seq_match_row(a, i, b, plain, t.match);
        status = table_row(&t, i, s, err);
    }
    *value = t.value;
    *slope = t.slope;
    return status;
}
