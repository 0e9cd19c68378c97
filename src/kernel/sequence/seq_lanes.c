/* The recursion of sequence.c for one sequence against ESPI_LANES others side by side. Along a sequence every number
 * needs the one before it, so that a processor mostly waits; numbers of different
 * sequences need nothing of each other. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

/* As next_row of sequence.c; a match is where symbol == x. The array of lane l starts at its element l, one in every
 * ESPI_LANES. Tokens first .. length-1, with `before` from the tokens in front of them. */
HOT static void next_row(double lambda, size_t first, size_t length, double x, const double *restrict symbol,
                         const double *restrict shorter, double *restrict carried, double *restrict ending,
                         double *restrict before, double *restrict sum)
{
    for (size_t j = first * ESPI_LANES; j < length * ESPI_LANES; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double above = lambda * carried[j + l] + shorter[j + l];
            const double here = symbol[j + l] == x ? before[l] : 0.0;
            ending[j + l] = here;
            sum[l] += here;
            before[l] = lambda * before[l] + above;
            carried[j + l] = above;
        }
}

/* As next_row_of_all. */
HOT static void next_row_of_all(double lambda, size_t first, size_t length, double x, const double *restrict symbol,
                                double *restrict carried, double *restrict ending, double *restrict before,
                                double *restrict sum)
{
    for (size_t j = first * ESPI_LANES; j < length * ESPI_LANES; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            const double above = lambda * carried[j + l] + ending[j + l];
            const double here = symbol[j + l] == x ? 1.0 + before[l] : 0.0;
            ending[j + l] = here;
            sum[l] += here;
            before[l] = lambda * before[l] + above;
            carried[j + l] = above;
        }
}

/* Single tokens. */
HOT static void first_row(size_t length, double x, const double *restrict symbol, double *restrict ending,
                          double *restrict sum)
{
    for (size_t j = 0; j < length * ESPI_LANES; j += ESPI_LANES)
        for (size_t l = 0; l < ESPI_LANES; l++) {
            ending[j + l] = symbol[j + l] == x ? 1.0 : 0.0;
            sum[l] += ending[j + l];
        }
}

void espi_seq_interleave(const espi_seq *b, size_t count, size_t length, double *symbol)
{
    for (size_t i = 0; i < length * ESPI_LANES; i++) symbol[i] = -1.0;
    for (size_t l = 0; l < count; l++)
        for (size_t j = 0; j < b[l].length; j++) symbol[j * ESPI_LANES + l] = b[l].factor[b[l].token[j]];
}

double *espi_seq_room(espi_seq_scratch *s, size_t count)
{
    enum { LINE = 64 }; /* bytes that a processor fetches at a time: numbers of all lanes shall not straddle two */
    const size_t more = LINE / sizeof *s->value;
    if (count > SIZE_MAX / LINE - more || !espi_reserve(&s->value, &s->capacity, count + more, sizeof *s->value))
        return NULL;
    const size_t beyond = (uintptr_t)s->value % LINE;
    return beyond == 0 ? s->value : s->value + (LINE - beyond) / sizeof *s->value;
}

typedef struct lanes {
    const espi_seq_rule *rule;
    size_t length, size; /* tokens of the longest; numbers in a row */
    double *symbol, *ending, *carried, sum[ESPI_LANES];
} lanes;

/* A row of level m, in stretches; `all`: of the one level for all lengths. */
static void level_row(lanes *w, size_t m, bool all, double x)
{
    double before[ESPI_LANES] = {0}, *ending = w->ending + m * w->size, *carried = w->carried + m * w->size;
    for (size_t from = 0; from < w->length; from += ESPI_SEQ_STRETCH) {
        const size_t end = w->length - from < ESPI_SEQ_STRETCH ? w->length : from + ESPI_SEQ_STRETCH;
        espi_seq_drop_tiny(before, ESPI_LANES);
        if (all) next_row_of_all(w->rule->lambda, from, end, x, w->symbol, carried, ending, before, w->sum);
        else next_row(w->rule->lambda, from, end, x, w->symbol, ending - w->size, carried, ending, before, w->sum);
    }
}

esp_status espi_seq_values(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, size_t count,
                           espi_seq_scratch *s, double *value, esp_error *err)
{
    lanes w = {.rule = rule};
    for (size_t l = 0; l < count; l++)
        if (b[l].length > w.length) w.length = b[l].length;
    for (size_t l = 0; w.length == 0 && l < count; l++) value[l] = 0.0;
    if (w.length == 0) return ESP_OK;
    const bool all = rule->n >= (a->length < w.length ? a->length : w.length);
    const size_t levels = all ? 1 : rule->n;
    w.size = w.length * ESPI_LANES;
    if (levels > SIZE_MAX / 64 / w.size) return espi_no_memory(err);
    w.symbol = espi_seq_room(s, (2 * levels + 1) * w.size);
    if (w.symbol == NULL) return espi_no_memory(err);
    w.ending = w.symbol + w.size;
    w.carried = w.ending + levels * w.size;
    espi_seq_interleave(b, count, w.length, w.symbol);
    memset(w.ending, 0, 2 * levels * w.size * sizeof *w.ending);
    for (size_t i = 0; i < a->length; i++) {
        const double x = a->factor[a->token[i]];
        if (all) level_row(&w, 0, true, x);
        for (size_t m = levels - 1; m > 0; m--) level_row(&w, m, false, x);
        if (!all) first_row(w.length, x, w.symbol, w.ending, w.sum);
        if (i % ESPI_SEQ_STRETCH == ESPI_SEQ_STRETCH - 1) espi_seq_drop_tiny(w.carried, levels * w.size);
    }
    memcpy(value, w.sum, count * sizeof *value);
    s->work += a->length * levels * w.size;
    return ESP_OK;
}
