/* The recursions of seq_slope.c for one sequence against ESPI_LANES others side by side (seq_lanes.c tells why): the
 * array of lane l starts at its element l, one in every ESPI_LANES.
 *
 * What this takes is mostly memory to read and write, so there is as little of it as can be: J_1 is never stored, as
 * the symbols tell it; J_n of the longest is asked for by nobody; one level for all lengths is computed in place. */
#include "base/hot.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

typedef struct front { /* J' in front of the current token and its derivative, and the sums of J and dJ in this row, per
                          lane */
    double before[ESPI_LANES], d_before[ESPI_LANES], sum[ESPI_LANES], d_sum[ESPI_LANES];
} front;

/* J'' of this token, and J' in front of the next one; `shorter` is J_{m-1} of the row before. */
static inline void pass_lane(double lambda, double shorter, double d_shorter, double *carried, double *d_carried,
                             double *before, double *d_before)
{
    const double above = lambda * *carried + shorter, d_above = *carried + (lambda * *d_carried + d_shorter);
    *d_before = (*before + d_above) + lambda * *d_before;
    *before = lambda * *before + above;
    *carried = above;
    *d_carried = d_above;
}

/* Each of these goes through elements from .. end-1 of a row: x is its symbol. Arrays come one by one, so that
 * compilers see that they are different ones. All lengths, in place. */
HOT static void slopes_of_all(double lambda, size_t from, size_t end, double x, const double *restrict symbol,
                              double *restrict ending, double *restrict d_ending, double *restrict carried,
                              double *restrict d_carried, double *restrict before, double *restrict d_before,
                              double *restrict sum, double *restrict d_sum)
{
    for (size_t j = from; j < end; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double here = symbol[j + l] == x ? 1.0 + before[l] : 0.0;
            const double d_here = symbol[j + l] == x ? d_before[l] : 0.0;
            pass_lane(lambda, ending[j + l], d_ending[j + l], &carried[j + l], &d_carried[j + l], &before[l],
                      &d_before[l]);
            ending[j + l] = here;
            d_ending[j + l] = d_here;
            sum[l] += here;
            d_sum[l] += d_here;
        }
}

/* Length 2, and the sum of length 1; `last` is the symbol of the row before. */
HOT static void slopes_of_pairs(double lambda, size_t from, size_t end, double x, double last,
                                const double *restrict symbol, double *restrict ending, double *restrict d_ending,
                                double *restrict carried, double *restrict d_carried, double *restrict before,
                                double *restrict d_before, double *restrict sum, double *restrict d_sum)
{
    for (size_t j = from; j < end; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double here = symbol[j + l] == x ? before[l] : 0.0, one = symbol[j + l] == x ? 1.0 : 0.0;
            const double d_here = symbol[j + l] == x ? d_before[l] : 0.0;
            pass_lane(lambda, symbol[j + l] == last ? 1.0 : 0.0, 0.0, &carried[j + l], &d_carried[j + l], &before[l],
                      &d_before[l]);
            ending[j + l] = here;
            d_ending[j + l] = d_here;
            sum[l] += here + one;
            d_sum[l] += d_here;
        }
}

/* Lengths from 3 on; `shorter` is J of the next shorter ones, before this row. */
HOT static void slopes_of_longer(double lambda, size_t from, size_t end, double x, const double *restrict symbol,
                                 const double *restrict shorter, const double *restrict d_shorter,
                                 double *restrict ending, double *restrict d_ending, double *restrict carried,
                                 double *restrict d_carried, double *restrict before, double *restrict d_before,
                                 double *restrict sum, double *restrict d_sum)
{
    for (size_t j = from; j < end; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double here = symbol[j + l] == x ? before[l] : 0.0;
            const double d_here = symbol[j + l] == x ? d_before[l] : 0.0;
            pass_lane(lambda, shorter[j + l], d_shorter[j + l], &carried[j + l], &d_carried[j + l], &before[l],
                      &d_before[l]);
            ending[j + l] = here;
            d_ending[j + l] = d_here;
            sum[l] += here;
            d_sum[l] += d_here;
        }
}

/* The longest of these: its J goes nowhere. */
HOT static void slopes_of_longest(double lambda, size_t from, size_t end, double x, const double *restrict symbol,
                                  const double *restrict shorter, const double *restrict d_shorter,
                                  double *restrict carried, double *restrict d_carried, double *restrict before,
                                  double *restrict d_before, double *restrict sum, double *restrict d_sum)
{
    for (size_t j = from; j < end; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            sum[l] += symbol[j + l] == x ? before[l] : 0.0;
            d_sum[l] += symbol[j + l] == x ? d_before[l] : 0.0;
            pass_lane(lambda, shorter[j + l], d_shorter[j + l], &carried[j + l], &d_carried[j + l], &before[l],
                      &d_before[l]);
        }
}

typedef struct lanes {
    double lambda;
    bool all;            /* one level for all lengths */
    size_t levels, size; /* levels: for lengths 2 .. n; size: numbers in a row */
    double *symbol;
    double *level;                               /* each: J_m, dJ_m, J''_m, dJ''_m */
    double value[ESPI_LANES], slope[ESPI_LANES]; /* all rows */
} lanes;

/* Elements from .. end-1 of a row of level m. */
static void level_stretch(const lanes *w, size_t m, size_t from, size_t end, double x, double last, front *f)
{
    const size_t size = w->size;
    double *level = w->level + 4 * m * size, *carried = level + 2 * size;
    const double *shorter = level - 4 * size; /* from the second on */
    if (w->all)
        slopes_of_all(w->lambda, from, end, x, w->symbol, level, level + size, carried, carried + size, f->before,
                      f->d_before, f->sum, f->d_sum);
    else if (m == 0)
        slopes_of_pairs(w->lambda, from, end, x, last, w->symbol, level, level + size, carried, carried + size,
                        f->before, f->d_before, f->sum, f->d_sum);
    else if (m + 1 < w->levels)
        slopes_of_longer(w->lambda, from, end, x, w->symbol, shorter, shorter + size, level, level + size, carried,
                         carried + size, f->before, f->d_before, f->sum, f->d_sum);
    else
        slopes_of_longest(w->lambda, from, end, x, w->symbol, shorter, shorter + size, carried, carried + size,
                          f->before, f->d_before, f->sum, f->d_sum);
}

/* A whole row of it. */
static void level_row(lanes *w, size_t m, double x, double last)
{
    front f = {.sum = {0.0}};
    for (size_t from = 0, stretch = ESPI_SEQ_STRETCH * ESPI_LANES; from < w->size; from += stretch) {
        const size_t end = w->size - from < stretch ? w->size : from + stretch;
        espi_seq_drop_tiny_pairs(f.before, f.d_before, ESPI_LANES);
        level_stretch(w, m, from, end, x, last, &f);
    }
    for (size_t l = 0; l < ESPI_LANES; l++) {
        w->value[l] += f.sum[l];
        w->slope[l] += f.d_sum[l];
    }
}

static bool lanes_open(lanes *w, const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                       espi_seq_scratch *s)
{
    size_t longest = 1;
    for (size_t l = 0; l < count; l++)
        if (b[l].length > longest) longest = b[l].length;
    *w = (lanes){.lambda = rule->lambda, .all = rule->n >= (a->length < longest ? a->length : longest)};
    w->levels = w->all ? 1 : rule->n - 1;
    w->size = longest * ESPI_LANES;
    if (w->levels > SIZE_MAX / 128 / w->size) return false;
    w->symbol = espi_seq_room(s, (4 * w->levels + 1) * w->size);
    if (w->symbol == NULL) return false;
    w->level = w->symbol + w->size;
    espi_seq_interleave(b, count, longest, w->symbol);
    memset(w->level, 0, 4 * w->levels * w->size * sizeof *w->level);
    return true;
}

esp_status espi_seq_slopes(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                           espi_seq_scratch *s, double *value, double *slope, esp_error *err)
{
    lanes w;
    if (!lanes_open(&w, rule, a, b, count, s)) return espi_no_memory(err);
    double last = -2.0; /* no symbol, nor what stands behind the ends */
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < a->length; i++) {
        const double x = a->factor[a->token[i]];
        for (size_t m = w.levels; m-- > 0;) level_row(&w, m, x, last); /* the longest first, as in sequence.c */
        for (size_t m = 0; i % ESPI_SEQ_STRETCH == ESPI_SEQ_STRETCH - 1 && m < w.levels; m++) {
            double *carried = w.level + (4 * m + 2) * w.size;
            espi_seq_drop_tiny_pairs(carried, carried + w.size, w.size);
        }
        last = x;
        s->work += w.levels * w.size;
        status = espi_progress_at_times(s->run, "computing the gradient", &s->work, err);
    }
    memcpy(value, w.value, count * sizeof *value);
    memcpy(slope, w.slope, count * sizeof *slope);
    return status;
}
