/* A folded sum, term by term (folded_sum.h). */
#include "kernel/evaluate/folded_sum.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/segments.h"
#include "kernel/evaluate/shares.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/folding.h"
#include "kernel/expression/terms.h"

#include <math.h>
#include <string.h>

enum {
    LEAST = 16, /* examples that a thread takes at once: the more, the more subtrees they share ... */
    MOST = 1024,
    PORTIONS = 64, /* ... but so many portions let all threads be busy to the end */
    NORMS = 64     /* examples whose norms are made at once */
};

typedef struct sum_worker { /* of one thread; kept from call to call */
    void **workspace;       /* per leaf */
    double *score;
    size_t score_capacity;
} sum_worker;

struct espi_folded_sum {
    const esp_kernel *kernel;
    const esp_dataset *data;
    size_t outputs;
    espi_folding_part **part; /* per leaf */
    espi_term *term;
    size_t terms;
    double **scale; /* per term: of each row, 1 / sqrt(K(x, x)); NULL: not normalised */
    size_t rows;    /* that have one */
    double *coefficient;
    sum_worker *worker;
    int workers;
    espi_segments *segments; /* all that is above is unused if some leaf has no sums of its own ... */
    espi_shares *shares;     /* ... or ranks have the examples */
};

/* ------------------------------------------------------------------- folds */

static bool leaf_folds(const espi_kernel_class *class)
{
    return class->selects == NULL && (class->folding != NULL || class->fold != NULL);
}

esp_status espi_kernel_folds(const esp_kernel *kernel, esp_error *err)
{
    size_t terms;
    espi_term *term = espi_kernel_terms(kernel, &terms);
    esp_status status = term == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < terms; i++) {
        if (term[i].leaf && leaf_folds(kernel->leaf[term[i].number].class)) continue;
        char *text = espi_kernel_print_op(kernel, term[i].op);
        status = text == NULL ? espi_no_memory(err)
                              : espi_fail(err, ESP_ERR_PARAM, "the sums of %s do not fold into one structure", text);
        espi_free(text);
    }
    espi_free(term);
    return status;
}

bool espi_kernel_folds_well(const esp_kernel *kernel)
{
    for (size_t i = 0; i < kernel->leaves; i++)
        if (kernel->leaf[i].class->folding == NULL) return false;
    return true;
}

/* ----------------------------------------------------------------- workers */

static void free_worker(const espi_folded_sum *s, sum_worker *w)
{
    for (size_t i = 0; w->workspace != NULL && i < s->kernel->leaves; i++)
        if (w->workspace[i] != NULL) s->kernel->leaf[i].class->folding->workspace_free(w->workspace[i]);
    espi_free(w->workspace);
    espi_free(w->score);
    *w = (sum_worker){0};
}

static bool start_worker(const espi_folded_sum *s, sum_worker *w)
{
    if (w->workspace == NULL) w->workspace = espi_alloc_zero(s->kernel->leaves, sizeof *w->workspace);
    for (size_t i = 0; w->workspace != NULL && i < s->kernel->leaves; i++) {
        if (w->workspace[i] != NULL) continue;
        w->workspace[i] = s->kernel->leaf[i].class->folding->workspace_new(s->part[i]);
        if (w->workspace[i] == NULL) return false;
    }
    return w->workspace != NULL && espi_reserve(&w->score, &w->score_capacity, MOST * s->outputs, sizeof *w->score);
}

static bool fit_workers(espi_folded_sum *s, int workers)
{
    if (workers <= s->workers) return true;
    sum_worker *more = espi_realloc(s->worker, (size_t)workers, sizeof *more);
    if (more == NULL) return false;
    memset(more + s->workers, 0, (size_t)(workers - s->workers) * sizeof *more);
    s->worker = more;
    s->workers = workers;
    return true;
}

/* ------------------------------------------------------------------- norms */

typedef struct norming {
    espi_folded_sum *sum;
    size_t term;
} norming;

static esp_status norm_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const norming *j = context;
    const espi_folded_sum *s = j->sum;
    const size_t leaf = s->term[j->term].number, from = s->rows + item * NORMS;
    sum_worker *w = &s->worker[thread->number];
    uint32_t row[NORMS];
    double value[NORMS];
    size_t count = 0;
    while (count < NORMS && from + count < s->data->rows) {
        row[count] = (uint32_t)(from + count);
        count++;
    }
    if (!start_worker(s, w)) return espi_no_memory(err);
    const esp_status status = s->kernel->leaf[leaf].class->folding->selves(s->part[leaf], w->workspace[leaf],
                                                                           thread->run, row, count, value, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(value[i]))
            return espi_fail(err, ESP_ERR_RANGE,
                             "the kernel of example %zu with itself is too large for a number; a smaller lambda "
                             "helps, or the solver rows",
                             from + i + 1);
        s->scale[j->term][from + i] = value[i] > 0.0 ? 1.0 / sqrt(value[i]) : 0.0;
    }
    return ESP_OK;
}

/* Of the rows that have none. */
static esp_status make_norms(espi_folded_sum *s, const esp_run *run, esp_error *err)
{
    const size_t items = (s->data->rows - s->rows + NORMS - 1) / NORMS;
    esp_status status = fit_workers(s, espi_worker_count(run, items)) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < s->terms; i++) {
        norming j = {.sum = s, .term = i};
        if (!s->term[i].norm) continue;
        double *more = espi_realloc(s->scale[i], s->data->rows, sizeof *more);
        if (more != NULL) s->scale[i] = more;
        status =
            more == NULL ? espi_no_memory(err) : espi_parallel(run, "preparing the norms", items, norm_chunk, &j, err);
    }
    if (status == ESP_OK) s->rows = s->data->rows;
    return status;
}

/* --------------------------------------------------------------------- sum */

void espi_folded_sum_free(espi_folded_sum *s)
{
    if (s == NULL) return;
    if (s->shares != NULL) espi_shares_sum_free(s->shares);
    for (int i = 0; i < s->workers; i++) free_worker(s, &s->worker[i]);
    for (size_t i = 0; s->part != NULL && i < s->kernel->leaves; i++)
        if (s->part[i] != NULL) s->kernel->leaf[i].class->folding->close(s->part[i]);
    for (size_t i = 0; s->scale != NULL && i < s->terms; i++) espi_free(s->scale[i]);
    espi_segments_free(s->segments);
    espi_free(s->worker);
    espi_free(s->part);
    espi_free(s->scale);
    espi_free(s->term);
    espi_free(s->coefficient);
    espi_free(s);
}

static esp_status open_leaf(const espi_folded_sum *s, size_t number, esp_error *err)
{
    const espi_leaf *leaf = &s->kernel->leaf[number];
    const espi_column *column;
    const esp_status status = espi_leaf_column(leaf, s->data, &column, err);
    if (status != ESP_OK) return status;
    return leaf->class->folding->open(leaf, column, s->outputs, &s->part[number], err);
}

static esp_status open_leaves(espi_folded_sum *s, const esp_run *run, esp_error *err)
{
    s->part = espi_alloc_zero(s->kernel->leaves, sizeof *s->part);
    s->term = espi_kernel_terms(s->kernel, &s->terms);
    s->coefficient = espi_alloc(s->outputs, sizeof *s->coefficient);
    if (s->term != NULL) s->scale = espi_alloc_zero(s->terms, sizeof *s->scale);
    if (s->part == NULL || s->scale == NULL || s->coefficient == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < s->kernel->leaves; i++) status = open_leaf(s, i, err);
    return status == ESP_OK ? make_norms(s, run, err) : status;
}

esp_status espi_folded_sum_new(const esp_kernel *kernel, const esp_dataset *data, size_t outputs, const esp_run *run,
                               espi_folded_sum **out, esp_error *err)
{
    espi_folded_sum *s = espi_alloc_zero(1, sizeof *s);
    *out = NULL;
    if (s == NULL) return espi_no_memory(err);
    s->kernel = kernel;
    s->data = data;
    s->outputs = outputs;
    const esp_status status = espi_kernel_folds_well(kernel)
                                  ? open_leaves(s, run, err)
                                  : espi_segments_new(kernel, data, outputs, &s->segments, err);
    if (status == ESP_OK) *out = s;
    else espi_folded_sum_free(s);
    return status;
}

esp_status espi_folded_sum_new_shared(espi_shares *shares, size_t outputs, espi_folded_sum **out, esp_error *err)
{
    espi_folded_sum *s = espi_alloc_zero(1, sizeof *s);
    *out = NULL;
    if (s == NULL) return espi_no_memory(err);
    const esp_status status = espi_shares_sum_new(shares, outputs, err);
    s->outputs = outputs;
    if (status == ESP_OK) s->shares = shares;
    if (status == ESP_OK) *out = s;
    else espi_folded_sum_free(s);
    return status;
}

esp_status espi_folded_sum_grow(espi_folded_sum *s, const esp_run *run, esp_error *err)
{
    esp_status status = ESP_OK;
    if (s->segments != NULL) return espi_segments_grow(s->segments, err);
    for (int i = 0; i < s->workers; i++) free_worker(s, &s->worker[i]);
    for (size_t i = 0; status == ESP_OK && i < s->kernel->leaves; i++)
        status = s->kernel->leaf[i].class->folding->grow(s->part[i], &s->kernel->leaf[i], err);
    return status == ESP_OK ? make_norms(s, run, err) : status;
}

void espi_folded_sum_clear(espi_folded_sum *s)
{
    if (s->shares != NULL) espi_shares_clear(s->shares);
    else if (s->segments != NULL) espi_segments_clear(s->segments);
    else
        for (size_t i = 0; i < s->kernel->leaves; i++) s->kernel->leaf[i].class->folding->clear(s->part[i]);
}

esp_status espi_folded_sum_grams(espi_folded_sum *s, espi_gram_block *block, size_t blocks, const esp_run *run,
                                 esp_error *err)
{
    esp_status status = ESP_OK;
    if (s->shares != NULL) return espi_shares_grams(s->shares, block, blocks, err);
    for (size_t i = 0; status == ESP_OK && i < blocks; i++)
        status = espi_block_fill(s->kernel, s->data, &block[i], run, err);
    return status;
}

esp_status espi_folded_sum_alike(espi_folded_sum *s, const espi_alike *alike, const esp_run *run, esp_error *err)
{
    return s->shares != NULL ? espi_shares_alike(s->shares, alike, err)
                             : espi_alike_find(s->kernel, s->data, alike, run, err);
}

bool espi_folded_sum_digest(const espi_folded_sum *s, uint64_t *digest)
{
    if (s->shares != NULL) {
        *digest = espi_shares_digest(s->shares);
        return true;
    }
    bool *column = espi_alloc(s->data->columns, sizeof *column);
    if (column == NULL) return false;
    espi_used_columns(s->kernel, s->data, column);
    const bool ok = espi_dataset_digest_rows(s->data, column, 0, digest);
    espi_free(column);
    return ok;
}

size_t espi_folded_sum_bytes(const espi_folded_sum *s)
{
    if (s->shares != NULL) return espi_shares_bytes(s->shares);
    if (s->segments != NULL) return espi_segments_bytes(s->segments);
    size_t bytes = 0;
    for (size_t i = 0; i < s->kernel->leaves; i++) bytes += s->kernel->leaf[i].class->folding->bytes(s->part[i]);
    for (size_t i = 0; i < s->terms; i++) bytes += s->scale[i] != NULL ? s->rows * sizeof **s->scale : 0;
    return bytes;
}

static esp_status add_row(const espi_folded_sum *s, size_t row, const double *coefficient, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < s->terms; i++) {
        const espi_term *t = &s->term[i];
        const double factor = t->weight * (t->norm ? s->scale[i][row] : 1.0);
        for (size_t k = 0; k < s->outputs; k++) s->coefficient[k] = coefficient[k] * factor;
        status = s->kernel->leaf[t->number].class->folding->add(s->part[t->number], row, s->coefficient, err);
    }
    return status;
}

esp_status espi_folded_sum_add(espi_folded_sum *s, const uint32_t *row, size_t count, const double *coefficient,
                               esp_error *err)
{
    esp_status status = ESP_OK;
    if (s->shares != NULL) return espi_shares_add(s->shares, row, count, coefficient, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++, coefficient += s->outputs) {
        bool any = false;
        for (size_t k = 0; k < s->outputs; k++) any = any || coefficient[k] != 0.0;
        if (!any) continue;
        status = s->segments != NULL ? espi_segments_add(s->segments, row[i], coefficient, err)
                                     : add_row(s, row[i], coefficient, err);
    }
    return status;
}

/* ------------------------------------------------------------------ scores */

typedef struct scoring {
    const espi_folded_sum *sum;
    const uint32_t *row;
    size_t count, chunk;
    double *score;
} scoring;

static esp_status score_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const scoring *j = context;
    const espi_folded_sum *s = j->sum;
    const size_t from = item * j->chunk, left = j->count - from, count = left < j->chunk ? left : j->chunk;
    const uint32_t *row = j->row + from;
    double *out = j->score + from * s->outputs;
    sum_worker *w = &s->worker[thread->number];
    esp_status status = start_worker(s, w) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < count * s->outputs; i++) out[i] = 0.0;
    for (size_t t = 0; status == ESP_OK && t < s->terms; t++) {
        const size_t leaf = s->term[t].number;
        status = s->kernel->leaf[leaf].class->folding->score(s->part[leaf], w->workspace[leaf], thread->run, row, count,
                                                             w->score, err);
        for (size_t i = 0; status == ESP_OK && i < count * s->outputs; i++)
            out[i] += s->term[t].norm ? w->score[i] * s->scale[t][row[i / s->outputs]] : w->score[i];
    }
    return status;
}

esp_status espi_folded_sum_score(espi_folded_sum *s, const uint32_t *row, size_t count, const esp_run *run,
                                 double *score, esp_error *err)
{
    esp_status status = ESP_OK;
    if (s->shares != NULL) {
        status = espi_shares_score(s->shares, row, count, score, err);
    } else if (s->segments != NULL) {
        status = espi_segments_score(s->segments, row, count, run, score, err);
    } else {
        scoring j = {.sum = s, .row = row, .count = count, .score = score, .chunk = count / PORTIONS};
        if (j.chunk < LEAST) j.chunk = LEAST;
        if (j.chunk > MOST) j.chunk = MOST;
        const size_t items = (count + j.chunk - 1) / j.chunk;
        status = fit_workers(s, espi_worker_count(run, items))
                     ? espi_parallel(run, "scoring", items, score_chunk, &j, err)
                     : espi_no_memory(err);
    }
    if (status == ESP_OK && !espi_all_finite(score, count * s->outputs))
        return espi_fail(err, ESP_ERR_RANGE, "a score is too large for a number; a smaller lambda or C helps");
    return status;
}
