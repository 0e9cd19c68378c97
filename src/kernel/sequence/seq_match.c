/* A row of the sequence kernel from an inverted index: places (j, position) of every symbol in all columns.
 *
 * Tokens S_i and T_j with equal factors are a match; the recursion of sequence.c is zero everywhere else, so that for a
 * column with the matches x = (i, j), in the order of i,
 *
 *     J_1(x) = 1      J_m(x) = sum over matches y, i_y < i_x and j_y < j_x, of
 *                                  J_{m-1}(y) lambda^((i_x - i_y - 1) + (j_x - j_y - 1))
 *
 * and so its derivative in lambda, by the product rule. Two sentences have few words in common. Where there are so many
 * matches that the sums over y would take longer than all pairs of tokens, these are taken, for several columns at a
 * time if that can be. */
#include "base/alloc.h"
#include "base/parallel.h"
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
    espi_seq batch[ESPI_LANES]; /* columns that wait for the lanes, and where their values go */
    double *batch_out[ESPI_LANES];
    size_t batched;
    espi_seq_scratch scratch;
    bool slope; /* derivatives in lambda are asked for, not values */
};

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

/* The derivative of sum_all. Those of J_m stand behind all J_m, here and below. */
static double sum_all_slopes(const espi_seq_matcher *m, const match *x, size_t matches)
{
    double sum = 0.0, *d_ending = m->ending + matches;
    for (size_t k = 0; k < matches; k++) {
        double longer = 0.0, d_longer = 0.0;
        for (size_t y = 0; y < k; y++) {
            const double weight = step(m->index, x[y], x[k]), slope = step_slope(m->index, x[y], x[k]);
            longer += m->ending[y] * weight;
            d_longer += d_ending[y] * weight + m->ending[y] * slope;
        }
        m->ending[k] = 1.0 + longer;
        d_ending[k] = d_longer;
        sum += d_longer;
    }
    return sum;
}

/* The derivative of sum_levels. */
static double sum_level_slopes(const espi_seq_matcher *m, const match *x, size_t matches, size_t levels)
{
    double sum = 0.0;
    for (size_t k = 0; k < matches; k++) {
        double *to = m->ending + k * levels, *d_to = to + matches * levels;
        for (size_t l = 0; l < levels; l++) {
            to[l] = l == 0 ? 1.0 : 0.0;
            d_to[l] = 0.0;
        }
        for (size_t y = 0; y < k; y++) {
            const double weight = step(m->index, x[y], x[k]), slope = step_slope(m->index, x[y], x[k]);
            const double *from = m->ending + y * levels, *d_from = from + matches * levels;
            if (weight == 0.0 && slope == 0.0) continue;
            for (size_t l = 1; l < levels; l++) {
                to[l] += weight * from[l - 1];
                d_to[l] += weight * d_from[l - 1] + slope * from[l - 1];
            }
        }
        for (size_t l = 1; l < levels; l++) sum += d_to[l];
    }
    return sum;
}

static double sum_slopes(const espi_seq_matcher *m, const match *x, size_t matches, size_t levels)
{
    return levels == 1 ? sum_all_slopes(m, x, matches) : sum_level_slopes(m, x, matches, levels);
}

static esp_status sum_column(espi_seq_matcher *m, const match *x, size_t matches, double *out, esp_error *err)
{
    if (matches == 2) {
        *out += m->slope ? step_slope(m->index, x[0], x[1]) : step(m->index, x[0], x[1]);
        return ESP_OK;
    }
    const size_t levels = m->rule->n < matches ? m->rule->n : 1;
    if (levels > SIZE_MAX / 32 / matches ||
        !espi_reserve(&m->ending, &m->ending_capacity, levels * matches * (m->slope ? 2 : 1), sizeof *m->ending))
        return espi_no_memory(err);
    if (m->slope) *out += sum_slopes(m, x, matches, levels);
    else *out += levels == 1 ? sum_all(m, x, matches) : sum_levels(m, x, matches, levels);
    m->scratch.work += levels * matches * matches / 2;
    return ESP_OK;
}

static esp_status empty_batch(espi_seq_matcher *m, const espi_seq *a, esp_error *err)
{
    double value[ESPI_LANES];
    if (m->batched == 0) return ESP_OK;
    const esp_status status =
        (m->slope ? espi_seq_slopes : espi_seq_values)(m->rule, a, m->batch, m->batched, &m->scratch, value, err);
    for (size_t l = 0; status == ESP_OK && l < m->batched; l++) *m->batch_out[l] = value[l];
    m->batched = 0;
    return status;
}

/* Computes a column by all pairs of tokens, now or with others, if it has that many matches. */
static esp_status take_dense(espi_seq_matcher *m, const espi_seq *a, size_t column, size_t *matches, double *out,
                             esp_error *err)
{
    const espi_seq b = espi_seq_of(m->cols, column);
    const bool lanes = b.length <= ESPI_LANE_LENGTH && espi_seq_plain(a) && espi_seq_plain(&b);
    const double squared = (double)*matches * (double)*matches, cells = 2.0 * (double)a->length * (double)b.length;
    if (squared * (lanes ? FASTER : 1) <= cells) return ESP_OK;
    *matches = 0;
    if (!lanes) return (m->slope ? espi_seq_slope : espi_seq_value)(m->rule, a, &b, &m->scratch, out, err);
    m->batch[m->batched] = b;
    m->batch_out[m->batched++] = out;
    return m->batched == ESPI_LANES ? empty_batch(m, a, err) : ESP_OK;
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
static esp_status sum_sparse(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, size_t total, double *out,
                             esp_error *err)
{
    esp_status status = ESP_OK;
    if (!espi_reserve(&m->match, &m->match_capacity, total, sizeof *m->match)) return espi_no_memory(err);
    gather(m, a, from, to);
    for (size_t k = 0; status == ESP_OK && k < to - from; k++)
        if (m->matches[k] > 1)
            status = sum_column(m, m->match + m->end[k] - m->matches[k], m->matches[k], &out[k], err);
    return status;
}

static esp_status chunk(espi_seq_matcher *m, const espi_seq *a, bool dense, size_t from, size_t to, double *out,
                        esp_error *err)
{
    esp_status status = ESP_OK;
    size_t total = 0;
    if (dense) memset(m->matches, 0xFF, sizeof m->matches); /* as many as one can think of */
    else count(m, a, from, to);
    for (size_t j = from; status == ESP_OK && j < to; j++) {
        size_t *matches = &m->matches[j - from];
        out[j - from] = m->slope ? 0.0 : (double)*matches; /* those of length 1 */
        if (m->rule->n == 1) *matches = 0;
        if (*matches > 4) status = take_dense(m, a, j, matches, &out[j - from], err);
        m->end[j - from] = total;
        if (*matches > 1) total += *matches;
    }
    if (status == ESP_OK) status = empty_batch(m, a, err);
    m->batched = 0; /* also after a failure */
    if (status == ESP_OK && total > 0) status = sum_sparse(m, a, from, to, total, out, err);
    if (status == ESP_OK)
        status = espi_progress_at_times(m->scratch.run, "computing the kernel", &m->scratch.work, err);
    return status;
}

static esp_status chunks(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, double *out, esp_error *err)
{
    esp_status status = ESP_OK;
    const bool dense = a->length > 0 && is_dense(m, a);
    if (a->length == 0) memset(out, 0, (to - from) * sizeof *out);
    for (size_t at = from; status == ESP_OK && a->length > 0 && at < to; at += CHUNK)
        status = chunk(m, a, dense, at, to - at < CHUNK ? to : at + CHUNK, out + (at - from), err);
    return status;
}

esp_status espi_seq_row(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, double *out, esp_error *err)
{
    m->slope = false;
    return chunks(m, a, from, to, out, err);
}

esp_status espi_seq_slope_row(espi_seq_matcher *m, const espi_seq *a, size_t from, size_t to, double *out,
                              esp_error *err)
{
    m->slope = true;
    return chunks(m, a, from, to, out, err);
}
