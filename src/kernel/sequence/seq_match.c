/* A row of the sequence kernel from an inverted index: places (j, position) of every symbol in all columns.
 *
 * Tokens S_i and T_j with equal factors are a match; the recursion of sequence.c is zero everywhere else, so that for a
 * column with the matches x = (i, j), in the order of i,
 *
 *     J_1(x) = 1      J_m(x) = sum over matches y, i_y < i_x and j_y < j_x, of
 *                                  J_{m-1}(y) lambda^((i_x - i_y - 1) + (j_x - j_y - 1))
 *
 * and so its derivative in lambda, by the product rule. Two sentences have few words in common. Where there are so many
 * matches that the sums over y would take longer than all pairs of tokens, these are taken, for several columns of
 * about the same length at a time if that can be. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

enum {
    CHUNK = 2048, /* columns at a time */
    FASTER = 8    /* a pair of tokens in lanes takes this part of a pair of matches */
};

typedef struct match {
    uint32_t i, j;
} match;

struct espi_seq_matcher {
    const espi_seq_rule *rule;
    const espi_seqs *cols;
    const espi_seq_index *index;
    size_t matches[CHUNK]; /* per column of the chunk at hand */
    size_t end[CHUNK];     /* where the next match of the column goes */
    match *match;
    double *ending; /* J_m of the matches of one column */
    size_t match_capacity, ending_capacity;
    uint64_t waiting[CHUNK]; /* columns of the chunk for the lanes: length << 32 | number in the chunk */
    size_t waits;
    espi_seq_scratch scratch;
};

typedef struct results { /* of the columns of a chunk, or of one */
    double *value;
    double *slope; /* the derivatives in lambda; NULL: these are not asked for */
} results;

/* -------------------------------------------------------------------- index */

/* lambda^k as far as it changes and is asked for. */
static bool make_powers(espi_seq_index *index, double lambda, size_t longest)
{
    size_t capacity = 0;
    double power = 1.0;
    do {
        if (!espi_reserve(&index->power, &capacity, index->powers + 1, sizeof *index->power)) return false;
        index->power[index->powers++] = power;
        if (power * lambda == power) return true;
        power = power * lambda < ESPI_SEQ_TINY ? 0.0 : power * lambda;
    } while (index->powers <= longest);
    return true;
}

bool espi_seq_index_make(espi_seq_index *index, const espi_seqs *s, const espi_seq_rule *rule, size_t longest)
{
    *index = (espi_seq_index){0};
    const size_t tokens = s->row[s->count], factors = tokens > 0 ? s->token[tokens] : 0;
    index->start = espi_alloc_zero(s->symbols + 2, sizeof *index->start);
    index->at = espi_alloc(factors, sizeof *index->at);
    if (index->start == NULL || index->at == NULL ||
        !make_powers(index, rule->lambda, longest + espi_seqs_longest(s))) {
        espi_seq_index_free(index);
        return false;
    }
    /* Counting sort: start[x + 2] counts, then start[x + 1] is where x's next place goes. */
    for (size_t i = 0; i < factors; i++) index->start[s->factor[i] + 2]++;
    for (size_t x = 2; x < s->symbols + 2; x++) {
        index->matches += (double)index->start[x] * (double)index->start[x];
        index->start[x] += index->start[x - 1];
    }
    for (size_t r = 0; r < s->count; r++)
        for (size_t t = s->row[r]; t < s->row[r + 1]; t++)
            for (size_t f = s->token[t]; f < s->token[t + 1]; f++)
                index->at[index->start[s->factor[f] + 1]++] =
                    (struct espi_seq_place){.seq = (uint32_t)r, .position = (uint32_t)(t - s->row[r])};
    return true;
}

void espi_seq_index_free(espi_seq_index *index)
{
    espi_free(index->start);
    espi_free(index->at);
    espi_free(index->power);
    *index = (espi_seq_index){0};
}

/* The first place of the symbol in sequences from `seq` on. */
static size_t first_place(const espi_seq_index *index, uint32_t symbol, size_t seq)
{
    size_t low = index->start[symbol], high = index->start[symbol + 1];
    if (seq == 0) return low;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (index->at[middle].seq < seq) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---------------------------------------------------------------------- row */

espi_seq_matcher *espi_seq_matcher_new(const espi_seq_rule *rule, const espi_seqs *cols, const espi_seq_index *index,
                                       const esp_run *run)
{
    espi_seq_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    m->rule = rule;
    m->cols = cols;
    m->index = index;
    m->scratch.run = run;
    return m;
}

void espi_seq_matcher_free(espi_seq_matcher *m)
{
    if (m == NULL) return;
    espi_free(m->match);
    espi_free(m->ending);
    espi_free(m->scratch.value);
    espi_free(m);
}

/* lambda^(gaps between y and x), 0 where y does not come before x. */
static inline double step(const espi_seq_index *index, match y, match x)
{
    if (y.i >= x.i || y.j >= x.j) return 0.0;
    const size_t gaps = (size_t)(x.i - y.i - 1) + (x.j - y.j - 1), last = index->powers - 1;
    return index->power[gaps < last ? gaps : last];
}

/* Its derivative in lambda. */
static inline double step_slope(const espi_seq_index *index, match y, match x)
{
    if (y.i >= x.i || y.j >= x.j) return 0.0;
    const size_t gaps = (size_t)(x.i - y.i - 1) + (x.j - y.j - 1), last = index->powers - 1;
    return gaps == 0 ? 0.0 : (double)gaps * index->power[gaps - 1 < last ? gaps - 1 : last];
}

/* Sum over x and m >= 2 of J_m(x); infinite n. */
static double sum_all(const espi_seq_matcher *m, const match *x, size_t matches)
{
    double sum = 0.0;
    for (size_t k = 0; k < matches; k++) {
        double longer = 0.0;
        for (size_t y = 0; y < k; y++) longer += m->ending[y] * step(m->index, x[y], x[k]);
        m->ending[k] = 1.0 + longer;
        sum += longer;
    }
    return sum;
}

/* The same for m = 2 .. levels. */
static double sum_levels(const espi_seq_matcher *m, const match *x, size_t matches, size_t levels)
{
    double sum = 0.0;
    for (size_t k = 0; k < matches; k++) {
        double *to = m->ending + k * levels;
        to[0] = 1.0;
        for (size_t l = 1; l < levels; l++) to[l] = 0.0;
        for (size_t y = 0; y < k; y++) {
            const double weight = step(m->index, x[y], x[k]), *from = m->ending + y * levels;
            if (weight == 0.0) continue;
            for (size_t l = 1; l < levels; l++) to[l] += weight * from[l - 1];
        }
        for (size_t l = 1; l < levels; l++) sum += to[l];
    }
    return sum;
}

/* sum_all, and its derivative. Those of J_m stand behind all J_m, here and below. */
static double sum_all_slopes(const espi_seq_matcher *m, const match *x, size_t matches, double *slope)
{
    double sum = 0.0, *d_ending = m->ending + matches;
    for (size_t k = 0; k < matches; k++) {
        double longer = 0.0, d_longer = 0.0;
        for (size_t y = 0; y < k; y++) {
            const double weight = step(m->index, x[y], x[k]), change = step_slope(m->index, x[y], x[k]);
            longer += m->ending[y] * weight;
            d_longer += d_ending[y] * weight + m->ending[y] * change;
        }
        m->ending[k] = 1.0 + longer;
        d_ending[k] = d_longer;
        sum += longer;
        *slope += d_longer;
    }
    return sum;
}

/* sum_levels, and its derivative. */
static double sum_level_slopes(const espi_seq_matcher *m, const match *x, size_t matches, size_t levels, double *slope)
{
    double sum = 0.0;
    for (size_t k = 0; k < matches; k++) {
        double *to = m->ending + k * levels, *d_to = to + matches * levels;
        for (size_t l = 0; l < levels; l++) {
            to[l] = l == 0 ? 1.0 : 0.0;
            d_to[l] = 0.0;
        }
        for (size_t y = 0; y < k; y++) {
            const double weight = step(m->index, x[y], x[k]), change = step_slope(m->index, x[y], x[k]);
            const double *from = m->ending + y * levels, *d_from = from + matches * levels;
            if (weight == 0.0 && change == 0.0) continue;
            for (size_t l = 1; l < levels; l++) {
                to[l] += weight * from[l - 1];
                d_to[l] += weight * d_from[l - 1] + change * from[l - 1];
            }
        }
        for (size_t l = 1; l < levels; l++) sum += to[l];
        for (size_t l = 1; l < levels; l++) *slope += d_to[l];
    }
    return sum;
}

/* Adds what a column has beyond single tokens. */
static esp_status sum_column(espi_seq_matcher *m, const match *x, size_t matches, results out, esp_error *err)
{
    if (matches == 2) {
        *out.value += step(m->index, x[0], x[1]);
        if (out.slope != NULL) *out.slope += step_slope(m->index, x[0], x[1]);
        return ESP_OK;
    }
    const size_t levels = m->rule->n < matches ? m->rule->n : 1;
    if (levels > SIZE_MAX / 32 / matches ||
        !espi_reserve(&m->ending, &m->ending_capacity, levels * matches * (out.slope != NULL ? 2 : 1),
                      sizeof *m->ending))
        return espi_no_memory(err);
    if (out.slope == NULL) *out.value += levels == 1 ? sum_all(m, x, matches) : sum_levels(m, x, matches, levels);
    else if (levels == 1) *out.value += sum_all_slopes(m, x, matches, out.slope);
    else *out.value += sum_level_slopes(m, x, matches, levels, out.slope);
    m->scratch.work += levels * matches * matches / 2;
    return ESP_OK;
}

static results result_at(results out, size_t column)
{
    return (results){.value = out.value + column, .slope = out.slope == NULL ? NULL : out.slope + column};
}

/* The columns that wait for the lanes; those of about the same length together, as the longest says how long it takes.
 */
static esp_status run_lanes(espi_seq_matcher *m, const espi_seq *a, size_t from, results out, esp_error *err)
{
    esp_status status = ESP_OK;
    espi_sort_keys(m->waiting, m->waits);
    for (size_t first = 0; status == ESP_OK && first < m->waits; first += ESPI_LANES) {
        const size_t count = m->waits - first < ESPI_LANES ? m->waits - first : ESPI_LANES;
        double value[ESPI_LANES], slope[ESPI_LANES];
        espi_seq b[ESPI_LANES];
        for (size_t l = 0; l < count; l++) b[l] = espi_seq_of(m->cols, from + (uint32_t)m->waiting[first + l]);
        if (out.slope == NULL) status = espi_seq_values(m->rule, a, b, count, &m->scratch, value, err);
        else status = espi_seq_slopes(m->rule, a, b, count, &m->scratch, value, slope, err);
        for (size_t l = 0; status == ESP_OK && l < count; l++) {
            const results to = result_at(out, (uint32_t)m->waiting[first + l]);
            *to.value = value[l];
            if (to.slope != NULL) *to.slope = slope[l];
        }
    }
    return status;
}

/* Computes a column by all pairs of tokens, now or with others, if it has that many matches. */
static esp_status take_dense(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t column, size_t *matches,
                             results out, esp_error *err)
{
    const espi_seq b = espi_seq_of(m->cols, from + column);
    const bool lanes = b.length <= ESPI_LANE_LENGTH && espi_seq_plain(a) && espi_seq_plain(&b);
    const double squared = (double)*matches * (double)*matches, cells = 2.0 * (double)a->length * (double)b.length;
    if (squared * (lanes ? FASTER : 1) <= cells) return ESP_OK;
    *matches = 0;
    if (lanes) m->waiting[m->waits++] = (uint64_t)b.length << 32 | column;
    else if (out.slope == NULL) return espi_seq_value(m->rule, a, &b, &m->scratch, out.value, err);
    else return espi_seq_slope(m->rule, a, &b, &m->scratch, out.value, out.slope, err);
    return ESP_OK;
}

/* Whether columns have so many matches on average that counting them costs more than it can save. */
static bool is_dense(const espi_seq_matcher *m, const espi_seq *a)
{
    const espi_seqs *cols = m->cols;
    double matches = 0.0;
    if (m->rule->n == 1 || !espi_seq_plain(a)) return false;
    for (size_t i = 0; i < a->length; i++) {
        const uint32_t symbol = a->factor[a->token[i]];
        if (symbol != ESPI_NO_SYMBOL) matches += (double)(m->index->start[symbol + 1] - m->index->start[symbol]);
    }
    return matches * matches * FASTER > 2.0 * (double)a->length * (double)cols->row[cols->count] * (double)cols->count;
}

/* Counts the matches per column. */
static void count(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to)
{
    const espi_seq_index *index = m->index;
    memset(m->matches, 0, (to - from) * sizeof *m->matches);
    for (size_t f = a->token[0]; f < a->token[a->length]; f++) {
        if (a->factor[f] == ESPI_NO_SYMBOL) continue;
        const size_t end = index->start[a->factor[f] + 1];
        for (size_t p = first_place(index, a->factor[f], from); p < end && index->at[p].seq < to; p++)
            m->matches[index->at[p].seq - from]++;
    }
}

/* Writes the matches of each column that has several, side by side. */
static void gather(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to)
{
    const espi_seq_index *index = m->index;
    for (size_t i = 0; i < a->length; i++)
        for (size_t f = a->token[i]; f < a->token[i + 1]; f++) {
            if (a->factor[f] == ESPI_NO_SYMBOL) continue;
            const size_t end = index->start[a->factor[f] + 1];
            for (size_t p = first_place(index, a->factor[f], from); p < end && index->at[p].seq < to; p++) {
                const size_t column = index->at[p].seq - from;
                if (m->matches[column] < 2) continue;
                m->match[m->end[column]++] = (match){.i = (uint32_t)i, .j = index->at[p].position};
            }
        }
}

/* The columns whose matches are to be gathered, `total` in all. */
static esp_status sum_sparse(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, size_t total, results out,
                             esp_error *err)
{
    esp_status status = ESP_OK;
    if (!espi_reserve(&m->match, &m->match_capacity, total, sizeof *m->match)) return espi_no_memory(err);
    gather(m, a, from, to);
    for (size_t k = 0; status == ESP_OK && k < to - from; k++)
        if (m->matches[k] > 1)
            status = sum_column(m, m->match + m->end[k] - m->matches[k], m->matches[k], result_at(out, k), err);
    return status;
}

static esp_status chunk(espi_seq_matcher *m, const espi_seq *a, bool dense, size_t from, size_t to, results out,
                        esp_error *err)
{
    esp_status status = ESP_OK;
    size_t total = 0;
    m->waits = 0;
    if (dense) memset(m->matches, 0xFF, sizeof m->matches); /* as many as one can think of */
    else count(m, a, from, to);
    for (size_t k = 0; status == ESP_OK && k < to - from; k++) {
        size_t *matches = &m->matches[k];
        out.value[k] = (double)*matches; /* those of length 1 */
        if (out.slope != NULL) out.slope[k] = 0.0;
        if (m->rule->n == 1) *matches = 0;
        if (*matches > 4) status = take_dense(m, a, from, k, matches, result_at(out, k), err);
        m->end[k] = total;
        if (*matches > 1) total += *matches;
    }
    if (status == ESP_OK) status = run_lanes(m, a, from, out, err);
    if (status == ESP_OK && total > 0) status = sum_sparse(m, a, from, to, total, out, err);
    if (status == ESP_OK)
        status = espi_progress_at_times(m->scratch.run, "computing the kernel", &m->scratch.work, err);
    return status;
}

static esp_status chunks(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, results out, esp_error *err)
{
    esp_status status = ESP_OK;
    const bool dense = a->length > 0 && is_dense(m, a);
    for (size_t k = 0; a->length == 0 && k < to - from; k++) {
        out.value[k] = 0.0;
        if (out.slope != NULL) out.slope[k] = 0.0;
    }
    for (size_t at = from; status == ESP_OK && a->length > 0 && at < to; at += CHUNK)
        status = chunk(m, a, dense, at, to - at < CHUNK ? to : at + CHUNK, result_at(out, at - from), err);
    return status;
}

esp_status espi_seq_row(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, double *value, esp_error *err)
{
    return chunks(m, a, from, to, (results){.value = value}, err);
}

esp_status espi_seq_slope_row(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, double *value,
                              double *slope, esp_error *err)
{
    return chunks(m, a, from, to, (results){.value = value, .slope = slope}, err);
}
