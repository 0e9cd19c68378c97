/* The sequence kernel pair by pair. With I(i, j) the number of pairs of equal factors of tokens S_i and T_j,
 *
 *     K(S, T)     = sum over m = 1 .. n and all i, j of J_m(i, j)
 *     J_1(i, j)   = I(i, j)
 *     J_m(i, j)   = I(i, j) J'_m(i, j)
 *     J'_m(i, j)  = lambda J'_m(i, j-1) + J''_m(i, j-1)
 *     J''_m(i, j) = lambda J''_m(i-1, j) + J_{m-1}(i-1, j)
 *
 * (Suzuki et al. 2004, eq. 6-8). J_m counts what ends at (i, j), J'' carries it over gaps in S, J' over gaps in T. For
 * n infinite the sum J over all m obeys one recursion: J = I (1 + J'), with J in the place of J_{m-1}. Rows i are
 * computed one after the other; of the row before only J_m and J''_m are needed. */
#include "kernel/sequence/sequence.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <string.h>

espi_seqs espi_seqs_of(const espi_column *column)
{
    static const size_t no_tokens[] = {0};
    const espi_sequences *s = &column->sequences;
    return (espi_seqs){.count = column->rows,
                       .row = s->row != NULL ? s->row : no_tokens,
                       .token = s->token != NULL ? s->token : no_tokens,
                       .factor = s->factor,
                       .symbols = s->symbols.count};
}

size_t espi_seqs_longest(const espi_seqs *s)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->row[i + 1] - s->row[i] > longest) longest = s->row[i + 1] - s->row[i];
    return longest;
}

/* Lengths m that need a recursion of their own; 1 where all share one. */
static size_t levels_of(const espi_seq_rule *rule, size_t shorter) { return rule->n < shorter ? rule->n : 1; }
static bool shares_level(const espi_seq_rule *rule, size_t shorter) { return rule->n >= shorter; }

double espi_seq_bytes(const espi_seq_rule *rule, size_t a, size_t b)
{
    const size_t shorter = a < b ? a : b;
    return (2.0 * (double)levels_of(rule, shorter) + 1.0) * (double)shorter * sizeof(double);
}

static double equal_factors(const espi_seq *a, size_t i, const espi_seq *b, size_t j)
{
    double equal = 0.0;
    for (size_t x = a->token[i]; x < a->token[i + 1]; x++)
        for (size_t y = b->token[j]; y < b->token[j + 1]; y++) equal += a->factor[x] == b->factor[y];
    return equal;
}

void espi_seq_match_row(const espi_seq *a, size_t i, const espi_seq *b, bool plain, double *restrict match)
{
    if (plain) {
        const uint32_t symbol = a->factor[a->token[i]], *other = b->factor + b->token[0];
        for (size_t j = 0; j < b->length; j++) match[j] = other[j] == symbol ? 1.0 : 0.0;
        return;
    }
    for (size_t j = 0; j < b->length; j++) match[j] = equal_factors(a, i, b, j);
}

static size_t stretch_end(size_t from, size_t length)
{
    return length - from < ESPI_SEQ_STRETCH ? length : from + ESPI_SEQ_STRETCH;
}

/* One row of J_m and J''_m (`carried`) from the row before; `shorter` is J_{m-1} of the row before. Returns the sum of
 * the new J_m. */
static double next_row(double lambda, size_t length, const double *restrict match, const double *restrict shorter,
                       double *restrict carried, double *restrict ending)
{
    double sum = 0.0, before = 0.0;
    for (size_t from = 0; from < length; from += ESPI_SEQ_STRETCH) {
        const size_t end = stretch_end(from, length);
        if (before < ESPI_SEQ_TINY) before = 0.0;
        for (size_t j = from; j < end; j++) {
            const double above = lambda * carried[j] + shorter[j];
            ending[j] = match[j] * before;
            sum += ending[j];
            before = lambda * before + above;
            carried[j] = above;
        }
    }
    return sum;
}

/* The same for the sum over all m. */
static double next_row_of_all(double lambda, size_t length, const double *restrict match, double *restrict carried,
                              double *restrict ending)
{
    double sum = 0.0, before = 0.0;
    for (size_t from = 0; from < length; from += ESPI_SEQ_STRETCH) {
        const size_t end = stretch_end(from, length);
        if (before < ESPI_SEQ_TINY) before = 0.0;
        for (size_t j = from; j < end; j++) {
            const double above = lambda * carried[j] + ending[j];
            ending[j] = match[j] * (1.0 + before);
            sum += ending[j];
            before = lambda * before + above;
            carried[j] = above;
        }
    }
    return sum;
}

void espi_seq_drop_tiny(double *value, size_t count)
{
    for (size_t i = 0; i < count; i++) value[i] = value[i] < ESPI_SEQ_TINY ? 0.0 : value[i];
}

void espi_seq_drop_tiny_pairs(double *value, double *slope, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (value[i] < ESPI_SEQ_TINY && slope[i] < ESPI_SEQ_TINY) value[i] = slope[i] = 0.0;
}

esp_status espi_seq_value(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_seq_scratch *s,
                          double *value, esp_error *err)
{
    if (a->length < b->length) {
        const espi_seq *const longer = b;
        b = a;
        a = longer;
    }
    *value = 0.0;
    if (b->length == 0) return ESP_OK;
    const size_t length = b->length, levels = levels_of(rule, length);
    if (levels > SIZE_MAX / 32 / length ||
        !espi_reserve(&s->value, &s->capacity, (2 * levels + 1) * length, sizeof *s->value))
        return espi_no_memory(err);
    double *match = s->value, *ending = match + length, *carried = ending + levels * length;
    memset(ending, 0, 2 * levels * length * sizeof *ending);
    const bool plain = espi_seq_plain(a) && espi_seq_plain(b), all = shares_level(rule, length);
    double sum = 0.0;
    for (size_t i = 0; i < a->length; i++) {
        espi_seq_match_row(a, i, b, plain, match);
        if (all) sum += next_row_of_all(rule->lambda, length, match, carried, ending);
        for (size_t m = levels - 1; m > 0; m--) /* the longest first: each needs the shorter ones of the row before */
            sum += next_row(rule->lambda, length, match, ending + (m - 1) * length, carried + m * length,
                            ending + m * length);
        for (size_t j = 0; !all && j < length; j++) {
            ending[j] = match[j];
            sum += match[j];
        }
        if (i % ESPI_SEQ_STRETCH == ESPI_SEQ_STRETCH - 1) espi_seq_drop_tiny(carried, levels * length);
        s->work += levels * length;
        const esp_status status = espi_progress_at_times(s->run, "computing the kernel", &s->work, err);
        if (status != ESP_OK) return status;
    }
    *value = sum;
    return ESP_OK;
}

/* ------------------------------------------------------------- wide numbers */

/* next_row in wide numbers; `first` is what J' starts from: 0 for one m, 1 for the sum over all, where `shorter` is
 * `ending`. */
static espi_wide next_row_wide(espi_wide lambda, size_t length, const espi_wide *match, const espi_wide *shorter,
                               espi_wide first, espi_wide *carried, espi_wide *ending)
{
    espi_wide sum = {0}, before = {0};
    for (size_t j = 0; j < length; j++) {
        const espi_wide above = espi_wide_add(espi_wide_mul(lambda, carried[j]), shorter[j]);
        ending[j] = match[j].m == 0.0 ? match[j] : espi_wide_mul(match[j], espi_wide_add(first, before));
        sum = espi_wide_add(sum, ending[j]);
        before = espi_wide_add(espi_wide_mul(lambda, before), above);
        carried[j] = above;
    }
    return sum;
}

bool espi_seq_wide(const espi_seq_rule *rule, const espi_seq *a, const espi_seq *b, espi_wide *value)
{
    *value = (espi_wide){0};
    if (a->length == 0 || b->length == 0) return true;
    const size_t length = b->length;
    const bool all = shares_level(rule, a->length < length ? a->length : length);
    const size_t levels = all ? 1 : rule->n;
    espi_wide *match = NULL;
    if (levels <= SIZE_MAX / 64 / length) match = espi_alloc_zero((2 * levels + 1) * length, sizeof *match);
    if (match == NULL) return false;
    espi_wide *ending = match + length, *carried = ending + levels * length, sum = {0};
    const espi_wide lambda = espi_wide_of(rule->lambda), one = espi_wide_of(1.0), none = {0};
    for (size_t i = 0; i < a->length; i++) {
        for (size_t j = 0; j < length; j++) match[j] = espi_wide_of(equal_factors(a, i, b, j));
        if (all) sum = espi_wide_add(sum, next_row_wide(lambda, length, match, ending, one, carried, ending));
        for (size_t m = levels - 1; m > 0; m--)
            sum = espi_wide_add(sum, next_row_wide(lambda, length, match, ending + (m - 1) * length, none,
                                                   carried + m * length, ending + m * length));
        for (size_t j = 0; !all && j < length; j++) {
            ending[j] = match[j];
            sum = espi_wide_add(sum, match[j]);
        }
    }
    *value = sum;
    espi_free(match);
    return true;
}

/* -------------------------------------------------------------- self-values */

typedef struct seq_self_values {
    bool slopes; /* are asked for, not values */
    const espi_seq_rule *rule;
    const espi_seqs *seqs;
    espi_seq_scratch *scratch; /* per worker */
    double *value;
} seq_self_values;

static esp_status self_value(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const seq_self_values *j = context;
    espi_seq_scratch *scratch = &j->scratch[worker->number];
    const espi_seq s = espi_seq_of(j->seqs, item);
    scratch->run = worker->run;
    if (!j->slopes) return espi_seq_value(j->rule, &s, &s, scratch, &j->value[item], err);
    double value;
    return espi_seq_slope(j->rule, &s, &s, scratch, &value, &j->value[item], err);
}

static esp_status with_themselves(bool slopes, const espi_seq_rule *rule, const espi_seqs *seqs, const esp_run *run,
                                  double *value, esp_error *err)
{
    const int workers = espi_worker_count(run, seqs->count);
    seq_self_values j = {.slopes = slopes, .rule = rule, .seqs = seqs, .value = value};
    j.scratch = espi_alloc_zero((size_t)workers, sizeof *j.scratch);
    if (j.scratch == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "computing the kernel", seqs->count, self_value, &j, err);
    for (int i = 0; i < workers; i++) espi_free(j.scratch[i].value);
    espi_free(j.scratch);
    return status;
}

esp_status espi_seq_self_values(const espi_seq_rule *rule, const espi_seqs *seqs, const esp_run *run, double *value,
                                esp_error *err)
{
    return with_themselves(false, rule, seqs, run, value, err);
}

esp_status espi_seq_self_slopes(const espi_seq_rule *rule, const espi_seqs *seqs, const esp_run *run, double *slope,
                                esp_error *err)
{
    return with_themselves(true, rule, seqs, run, slope, err);
}
