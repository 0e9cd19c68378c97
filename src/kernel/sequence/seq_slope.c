/* The derivative of the sequence kernel in lambda, pair by pair: each line of the recursion of sequence.c with its
 * derivative, written d, beside it.
 *
 *     dJ_m(i, j)   = I(i, j) dJ'_m(i, j)                                           (dJ_1 = 0)
 *     dJ'_m(i, j)  = J'_m(i, j-1) + lambda dJ'_m(i, j-1) + dJ''_m(i, j-1)
 *     dJ''_m(i, j) = J''_m(i-1, j) + lambda dJ''_m(i-1, j) + dJ_{m-1}(i-1, j)
 *
 * One sequence against one, or against ESPI_LANES others side by side (seq_lanes.c tells why): the arrays of lane l
 * then start at their element l, one in every ESPI_LANES. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

typedef struct table {
    double lambda;
    bool all;            /* one level for all lengths */
    size_t levels, size; /* size: numbers in a row of all lanes */
    double *symbol;      /* of all lanes, in lanes */
    double *match;       /* I(i, .) */
    double *level;       /* each: J_m, dJ_m, J''_m, dJ''_m */
    double *other;       /* all: J and dJ of every other row */
    double sum[ESPI_LANES];
} table;

static bool table_open(table *t, const espi_seq_rule *rule, size_t a, size_t b, size_t width, espi_seq_scratch *s)
{
    const size_t shorter = a < b ? a : b;
    *t = (table){.lambda = rule->lambda, .all = rule->n >= shorter, .size = b * width};
    t->levels = t->all ? 1 : rule->n;
    if (t->levels > SIZE_MAX / 64 / t->size ||
        !espi_reserve(&s->value, &s->capacity, 4 * (t->levels + 1) * t->size, sizeof *s->value))
        return false;
    t->symbol = s->value;
    t->match = t->symbol + t->size;
    t->other = t->match + t->size;
    t->level = t->other + 2 * t->size;
    memset(t->level, 0, 4 * t->levels * t->size * sizeof *t->level);
    return true;
}

typedef struct numbers { /* values and derivatives */
    double *value, *slope;
} numbers;

typedef struct front { /* J' in front of the token at hand, and the sum of dJ in this row, per lane */
    double before[ESPI_LANES], d_before[ESPI_LANES], sum[ESPI_LANES];
} front;

/* One row of J_m (`ending`) and J''_m (`carried`) from the row before, elements from .. end-1; `shorter` is J_{m-1} of
 * the row before, `first` what J' starts from: 0 for one m, 1 for the sum over all. */
static void stretch_of_one(double lambda, size_t from, size_t end, double first, const double *restrict match,
                           numbers shorter, numbers carried, numbers ending, front *f)
{
    double before = f->before[0], d_before = f->d_before[0], sum = f->sum[0];
    for (size_t j = from; j < end; j++) {
        const double above = lambda * carried.value[j] + shorter.value[j];
        const double d_above = carried.value[j] + (lambda * carried.slope[j] + shorter.slope[j]);
        const double d_here = match[j] * d_before;
        ending.value[j] = match[j] * (first + before);
        ending.slope[j] = d_here;
        sum += d_here;
        d_before = before + (lambda * d_before + d_above);
        before = lambda * before + above;
        carried.value[j] = above;
        carried.slope[j] = d_above;
    }
    f->before[0] = before;
    f->d_before[0] = d_before;
    f->sum[0] = sum;
}

/* The same for lanes. Arrays one by one, so that compilers see that they are different ones. */
HOT static void slopes_of_lanes(double lambda, size_t from, size_t end, double first, const double *restrict match,
                                const double *restrict shorter, const double *restrict d_shorter,
                                double *restrict carried, double *restrict d_carried, double *restrict ending,
                                double *restrict d_ending, double *restrict before, double *restrict d_before,
                                double *restrict sum)
{
    for (size_t j = from; j < end; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double above = lambda * carried[j + l] + shorter[j + l];
            const double d_above = carried[j + l] + (lambda * d_carried[j + l] + d_shorter[j + l]);
            const double d_here = match[j + l] * d_before[l];
            ending[j + l] = match[j + l] * (first + before[l]);
            d_ending[j + l] = d_here;
            sum[l] += d_here;
            d_before[l] = before[l] + (lambda * d_before[l] + d_above);
            before[l] = lambda * before[l] + above;
            carried[j + l] = above;
            d_carried[j + l] = d_above;
        }
}

/* A whole row, in stretches. */
static void next_row(table *t, size_t width, numbers shorter, numbers carried, numbers ending)
{
    const double first = t->all ? 1.0 : 0.0;
    front f = {.sum = {0.0}};
    for (size_t from = 0, stretch = ESPI_SEQ_STRETCH * width; from < t->size; from += stretch) {
        const size_t end = t->size - from < stretch ? t->size : from + stretch;
        for (size_t l = 0; l < width; l++)
            if (f.before[l] < ESPI_SEQ_TINY && f.d_before[l] < ESPI_SEQ_TINY) f.before[l] = f.d_before[l] = 0.0;
        if (width == 1) stretch_of_one(t->lambda, from, end, first, t->match, shorter, carried, ending, &f);
        else
            slopes_of_lanes(t->lambda, from, end, first, t->match, shorter.value, shorter.slope, carried.value,
                            carried.slope, ending.value, ending.slope, f.before, f.d_before, f.sum);
    }
    for (size_t l = 0; l < width; l++) t->sum[l] += f.sum[l];
}

/* What became small beyond use; see ESPI_SEQ_TINY. */
static void drop_tiny(const table *t)
{
    for (size_t m = 0; m < t->levels; m++) {
        double *carried = t->level + (4 * m + 2) * t->size, *d_carried = carried + t->size;
        for (size_t k = 0; k < t->size; k++)
            if (carried[k] < ESPI_SEQ_TINY && d_carried[k] < ESPI_SEQ_TINY) carried[k] = d_carried[k] = 0.0;
    }
}

/* Row i of all levels; `match` is set. */
static esp_status table_row(table *t, size_t width, size_t i, espi_seq_scratch *s, esp_error *err)
{
    const size_t size = t->size, shortest = t->all ? 0 : 1;
    for (size_t m = t->levels; m-- > shortest;) { /* the longest first, as in sequence.c */
        double *level = t->level + 4 * m * size, *now = level, *last = level - (t->all ? 0 : 4 * size);
        if (t->all && i % 2 == 0) now = t->other;
        if (t->all && i % 2 == 1) last = t->other;
        const numbers shorter = {last, last + size}, ending = {now, now + size};
        const numbers carried = {level + 2 * size, level + 3 * size};
        next_row(t, width, shorter, carried, ending);
    }
    if (!t->all) memcpy(t->level, t->match, size * sizeof *t->level);
    if (i % ESPI_SEQ_STRETCH == ESPI_SEQ_STRETCH - 1) drop_tiny(t);
    s->work += t->levels * size;
    return espi_progress_at_times(s->run, "computing the gradient", &s->work, err);
}

esp_status espi_seq_slope(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_seq_scratch *s,
                          double *slope, esp_error *err)
{
    if (a->length < b->length) {
        const espi_seq *const longer = b;
        b = a;
        a = longer;
    }
    *slope = 0.0;
    if (b->length == 0) return ESP_OK;
    table t;
    if (!table_open(&t, rule, a->length, b->length, 1, s)) return espi_no_memory(err);
    const bool plain = espi_seq_plain(a) && espi_seq_plain(b);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < a->length; i++) {
        espi_seq_match_row(a, i, b, plain, t.match);
        status = table_row(&t, 1, i, s, err);
    }
    *slope = t.sum[0];
    return status;
}

esp_status espi_seq_slopes(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                           espi_seq_scratch *s, double *slope, esp_error *err)
{
    size_t longest = 1;
    for (size_t l = 0; l < count; l++)
        if (b[l].length > longest) longest = b[l].length;
    table t;
    if (!table_open(&t, rule, a->length, longest, ESPI_LANES, s)) return espi_no_memory(err);
    espi_seq_interleave(b, count, longest, t.symbol);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < a->length; i++) {
        const double x = a->factor[a->token[i]];
        for (size_t k = 0; k < t.size; k++) t.match[k] = t.symbol[k] == x ? 1.0 : 0.0;
        status = table_row(&t, ESPI_LANES, i, s, err);
    }
    memcpy(slope, t.sum, count * sizeof *slope);
    return status;
}
