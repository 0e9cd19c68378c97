/* The gapped sequence kernel as a kernel of the expression language: seq(column, n, lambda, gap). What is computed, and
 * the three ways to it, stand in sequence.h; this file chooses among them.
 *
 * `block`: of a symmetric matrix, by patterns, if these are not too many; otherwise, and in other matrices, by
 * matches. `match`: always by matches. `pair`: the recursion, pair by pair.
 *
 * The gradient has one hyperparameter, lambda, so that forward mode does: each way carries the derivative of its
 * numbers along. The patterns' derivatives are found when the first gradient is asked for; most matrices need none. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

#include <pthread.h>

enum { LAMBDA = 1 }; /* its place among the parameters */
typedef enum algorithm { BLOCK, MATCH, PAIR } algorithm;
typedef enum gap { ANY, NONE } gap;

typedef struct slopes {   /* of the patterns of a block */
    pthread_mutex_t lock; /* the first that asks makes them */
    bool made;
    espi_seq_block block;
} slopes;

typedef struct seq_part {
    espi_part part;
    const struct seq_part *base; /* whose side of the columns is used: this part's own, or that of another */
    algorithm algorithm;
    espi_seq_rule rule;
    espi_seqs rows, cols; /* each in the symbols of its own dataset */
    bool symmetric;
    uint32_t *shared;     /* the factors of rows in the symbols of cols; NULL: rows is cols */
    espi_seq_index index; /* but not for PAIR */
    espi_seq_block block; /* may be empty */
    double effort;        /* that was allowed for it */
    slopes *slopes;       /* NULL: the block is empty */
    size_t memory;        /* limit; 0: none */
} seq_part;

typedef struct workspace {
    espi_seq_matcher *matcher;
    espi_seq_scratch scratch;
    espi_seq_walk *walk;
    double *slope; /* of a row, and room for its values */
    size_t capacity;
} workspace;

static const seq_part *view(const espi_part *part) { return (const seq_part *)(const void *)part; }

/* The rows in the symbols of the columns. */
static espi_seqs rows_of(const seq_part *p)
{
    espi_seqs s = p->symmetric ? p->base->cols : p->rows;
    if (!p->symmetric) s.factor = p->shared;
    return s;
}

static void release(espi_part *part)
{
    seq_part *p = (seq_part *)(void *)part;
    if (p == NULL) return;
    espi_free(p->shared);
    espi_seq_index_free(&p->index);
    espi_seq_block_free(&p->block);
    if (p->slopes != NULL) {
        espi_seq_block_free(&p->slopes->block);
        pthread_mutex_destroy(&p->slopes->lock);
    }
    espi_free(p->slopes);
    espi_free(p);
}

/* --------------------------------------------------------------------- bind */

/* Both sides in one numbering. */
static bool share_symbols(seq_part *p, const espi_column *rows, const espi_column *cols)
{
    if (p->symmetric) return true;
    uint32_t *map = espi_symbols_map(&rows->sequences.symbols, &cols->sequences.symbols);
    p->shared = espi_alloc(rows->sequences.factors, sizeof *p->shared);
    for (size_t i = 0; map != NULL && p->shared != NULL && i < rows->sequences.factors; i++)
        p->shared[i] = map[p->rows.factor[i]];
    const bool ok = map != NULL && p->shared != NULL;
    espi_free(map);
    return ok;
}

/* Only long sequences under a large finite n ever come near a limit. Derivatives take `times` = 2 times as much. */
static esp_status check_memory(const seq_part *p, double times, esp_error *err)
{
    if (p->memory == 0) return ESP_OK;
    const size_t a = espi_seqs_longest(&p->rows), b = espi_seqs_longest(&p->cols), longest = a > b ? a : b;
    const double bytes = times * espi_seq_bytes(&p->rule, longest, longest);
    char need[32], limit[32];
    if (bytes <= (double)p->memory) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY, "seq: a sequence of %zu tokens takes %s under this n; the limit is %s",
                     longest, espi_size_text(bytes, need), espi_size_text((double)p->memory, limit));
}

/* What half a matrix takes by matches. The unit is that of espi_seq_mining; the numbers are measured. */
static double match_effort(const seq_part *p)
{
    const double tokens = (double)p->cols.row[p->cols.count];
    const double sparse = 0.3 * p->index.matches, in_lanes = 0.004 * (double)p->rule.n * tokens * tokens;
    const double least = sparse < in_lanes ? sparse : in_lanes;
    return least > 65536.0 ? least : 65536.0; /* a millisecond is no effort */
}

static esp_status make_block(seq_part *p, const esp_run *run, esp_error *err)
{
    p->effort = match_effort(p);
    const esp_status status = espi_seq_block_make(&p->block, &p->rule, &p->cols, p->effort, run, err);
    if (status != ESP_OK || p->block.self == NULL) return status;
    p->slopes = espi_alloc_zero(1, sizeof *p->slopes);
    if (p->slopes == NULL) return espi_no_memory(err);
    pthread_mutex_init(&p->slopes->lock, NULL);
    return ESP_OK;
}

static esp_status make_index(seq_part *p, const espi_column *rows, const espi_column *cols, const esp_run *run,
                             esp_error *err)
{
    if (!share_symbols(p, rows, cols)) return espi_no_memory(err);
    esp_status status = check_memory(p, 1.0, err);
    if (status != ESP_OK || p->algorithm == PAIR || p->base != p) return status;
    if (!espi_seq_index_make(&p->index, &p->cols, &p->rule, espi_seqs_longest(&p->rows))) return espi_no_memory(err);
    if (p->algorithm == BLOCK && p->symmetric && p->rule.n != ESPI_ANY_LENGTH) status = make_block(p, run, err);
    return status;
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    *out = NULL;
    seq_part *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    const double n = espi_leaf_value(leaf, "n");
    p->part.class = leaf->class;
    p->base = base != NULL ? view(base) : p;
    p->algorithm = (algorithm)espi_leaf_value(leaf, "algorithm");
    p->rule.n = n < 0x1p53 ? (size_t)n : ESPI_ANY_LENGTH; /* no sequence is that long */
    p->rule.lambda = (gap)espi_leaf_value(leaf, "gap") == NONE ? 0.0 : espi_leaf_value(leaf, "lambda");
    p->symmetric = rows == cols;
    p->memory = run != NULL ? run->memory : 0;
    p->rows = espi_seqs_of(rows);
    p->cols = espi_seqs_of(cols);
    const esp_status status = make_index(p, rows, cols, run, err);
    if (status == ESP_OK) *out = &p->part;
    else release(&p->part);
    return status;
}

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    espi_seq_matcher_free(w->matcher);
    espi_free(w->scratch.value);
    espi_seq_walk_free(w->walk);
    espi_free(w->slope);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    const seq_part *p = view(part);
    workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL) return NULL;
    w->scratch.run = run;
    if (p->algorithm == PAIR) return w;
    w->matcher = espi_seq_matcher_new(&p->rule, &p->base->cols, &p->base->index, run);
    if (w->matcher != NULL) return w;
    workspace_free(w);
    return NULL;
}

/* ------------------------------------------------------------------- values */

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const seq_part *p = view(part);
    workspace *w = pointer;
    const espi_seqs rows = rows_of(p);
    const espi_seq a = espi_seq_of(&rows, i);
    esp_status status = ESP_OK;
    if (p->block.self != NULL) {
        espi_seq_block_row(&p->block, i, from, to, out);
        return ESP_OK;
    }
    if (p->algorithm != PAIR) return espi_seq_row(w->matcher, &a, from, to, out, err);
    for (size_t j = from; status == ESP_OK && j < to; j++) {
        const espi_seq b = espi_seq_of(&p->base->cols, j);
        status = espi_seq_value(&p->rule, &a, &b, &w->scratch, &out[j - from], err);
    }
    return status;
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const seq_part *p = view(part);
    const espi_seqs *seqs = side == ESPI_ROWS ? &p->rows : &p->cols;
    if (p->block.self == NULL) return espi_seq_self_values(&p->rule, seqs, run, out, err);
    for (size_t i = 0; i < seqs->count; i++) out[i] = p->block.self[i];
    return ESP_OK;
}

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    const seq_part *p = view(part);
    espi_seqs rows = side_i == side_j ? p->rows : rows_of(p);
    const espi_seq a = espi_seq_of(side_i == ESPI_ROWS ? &rows : &p->cols, i);
    const espi_seq b = espi_seq_of(side_j == ESPI_ROWS ? &rows : &p->cols, j);
    return espi_seq_wide(&p->rule, &a, &b, value) ? ESP_OK : espi_no_memory(err);
}

/* ------------------------------------------------------------------- scorer */

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    const seq_part *p = view(part);
    espi_seq_trie *trie = NULL;
    esp_status status = ESP_OK;
    if (p->algorithm == BLOCK && p->rule.n != ESPI_ANY_LENGTH)
        status = espi_seq_fold(&p->rule, &p->base->cols, coefficient, outputs, &trie, err);
    *out = trie;
    return status;
}

static void folded_free(void *folded) { espi_seq_trie_free(folded); }

static esp_status score(const espi_part *part, const void *folded, void *pointer, size_t i, double *out, esp_error *err)
{
    workspace *w = pointer;
    const espi_seqs rows = rows_of(view(part));
    const espi_seq a = espi_seq_of(&rows, i);
    return espi_seq_score(folded, &w->walk, &a, out, err);
}

/* ----------------------------------------------------------------- gradient */

/* Without gaps lambda has no part in the kernel. */
static bool is_constant(const seq_part *p) { return p->rule.n == 1 || p->rule.lambda == 0.0; }

static esp_status check_gradient(const seq_part *p, esp_error *err)
{
    if (p->algorithm == PAIR)
        return espi_fail(err, ESP_ERR_PARAM, "seq(algorithm=pair) has no gradient: leave `algorithm` out");
    return check_memory(p, 2.0, err);
}

/* The patterns' derivatives, made if this is the first that asks for them. */
static esp_status slopes_of(const seq_part *p, const esp_run *run, const espi_seq_block **out, esp_error *err)
{
    slopes *s = p->slopes;
    esp_status status = ESP_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->made) status = espi_seq_block_make_slopes(&s->block, &p->rule, &p->cols, p->effort, run, err);
    s->made = status == ESP_OK;
    pthread_mutex_unlock(&s->lock);
    *out = &s->block;
    return status;
}

/* The derivatives of a row, and its values unless `value` is NULL. `self`: K(i, i) counts. */
static esp_status slope_row(const seq_part *p, workspace *w, size_t i, size_t from, size_t to, bool self, double *value,
                            double *slope, esp_error *err)
{
    double same;
    const espi_seqs rows = rows_of(p);
    const espi_seq a = espi_seq_of(&rows, i);
    const espi_seq_block *block;
    if (p->slopes == NULL) /* values come with it */
        return espi_seq_slope_row(w->matcher, &a, from, to, value != NULL ? value : slope + (to - from), slope, err);
    const esp_status status = slopes_of(p, w->scratch.run, &block, err);
    if (status != ESP_OK) return status;
    if (value != NULL) espi_seq_block_row(&p->block, i, from, to, value);
    espi_seq_block_slope_row(&p->block, block, i, from, to, slope);
    return self ? espi_seq_slope(&p->rule, &a, &a, &w->scratch, &same, &slope[i - from], err) : ESP_OK;
}

/* Sums up in order. A weight of 0 leaves out what may have overflown. */
static double weighted_sum(const double *weight, const double *slope, size_t count)
{
    double sum = 0.0;
    for (size_t j = 0; j < count; j++)
        if (weight[j] != 0.0) sum += weight[j] * slope[j];
    return sum;
}

static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *value, double *out, esp_error *err)
{
    const seq_part *p = view(part);
    workspace *w = pointer;
    const size_t n = to - from;
    const bool self = i >= from && i < to && weight[i - from] != 0.0; /* of a norm it is 0 */
    esp_status status = check_gradient(p, err);
    if (status != ESP_OK || n == 0) return status;
    if (is_constant(p)) return value == NULL ? ESP_OK : row(part, pointer, i, from, to, value, err);
    if (!espi_reserve(&w->slope, &w->capacity, 2 * n, sizeof *w->slope)) return espi_no_memory(err);
    status = slope_row(p, w, i, from, to, self, value, w->slope, err);
    if (status == ESP_OK) out[LAMBDA] += weighted_sum(weight, w->slope, n);
    return status;
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    const seq_part *p = view(part);
    const espi_seqs *seqs = side == ESPI_ROWS ? &p->rows : &p->cols;
    esp_status status = check_gradient(p, err);
    if (status != ESP_OK || is_constant(p)) return status;
    double *slope = espi_alloc(seqs->count, sizeof *slope);
    if (slope == NULL) return espi_no_memory(err);
    status = espi_seq_self_slopes(&p->rule, seqs, run, slope, err);
    if (status == ESP_OK) out[LAMBDA] += weighted_sum(weight, slope, seqs->count);
    espi_free(slope);
    return status;
}

/* -------------------------------------------------------------------- table */

static const char *const gaps[] = {"inf", "0", NULL};
static const char *const algorithms[] = {"block", "match", "pair", NULL};

const espi_kernel_class espi_kernel_seq = {
    .name = "seq",
    .help = "subsequences of up to n tokens in common, with gaps",
    .parameters =
        (const espi_parameter[]){
            {.info = {"n", "longest subsequence", "3", "a whole number >= 1, or inf", ESP_KIND_WHOLE},
             .low = 1.0,
             .high = HUGE_VAL,
             .infinite = true},
            {.info = {"lambda", "decay: each token left out in between weighs lambda", "0.5", "a number > 0 and <= 1",
                      ESP_KIND_NUMBER},
             .low = 0.0,
             .low_open = true,
             .high = 1.0,
             .draw_low = 0.01,
             .draw_high = 1.0},
            {.info = {"gap", "inf: any tokens may be left out; 0: none, as in n-grams", "inf", "inf or 0",
                      ESP_KIND_CHOICE},
             .choices = gaps},
            {.info = {"algorithm", "block: all sequences at once; match, pair: for comparison", "block",
                      "block, match or pair", ESP_KIND_CHOICE},
             .choices = algorithms},
            {.info = {0}}},
    .takes = {[ESP_COLUMN_SEQUENCE] = true},
    .bind = bind,
    .free = release,
    .workspace_new = workspace_new,
    .workspace_free = workspace_free,
    .row = row,
    .diagonal = diagonal,
    .pair = pair,
    .fold = fold,
    .folded_free = folded_free,
    .score = score,
    .gradient = gradient,
    .gradient_diagonal = gradient_diagonal,
    .features = ESPI_SUBSEQUENCES,
};
