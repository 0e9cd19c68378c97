/* Variances by conjugate gradients (variances.h). k'G^-1 k is a sum of squares on the way (krylov.c), and no solution
 * is kept. What is left of it with the residual r is r'G^-1 r <= r'P^-1 r / (least eigenvalue of P^-1 G). */
#include "learn/model/variances.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/krylov.h"

#include <string.h>

enum { BLOCK = 16, MOST = 1000, LEAST_RANK = 500, MOST_RANK = 1000, SHARE = 5 };
static const double finest = 1e-10; /* residual below which nothing gets better */

struct espi_variances {
    pthread_mutex_t lock;
    const espi_bound *bound;
    const esp_dataset *support;
    espi_preconditioner preconditioner;
    double noise;
};

void espi_variances_free(espi_variances *v)
{
    if (v == NULL) return;
    espi_preconditioner_free(&v->preconditioner);
    pthread_mutex_destroy(&v->lock);
    espi_free(v);
}

/* As many pivots as pay and as the memory has room for beside the vectors; 0: it has none for these. Drawing takes as
 * much as the factor. */
static size_t rank_for(size_t n, const esp_run *run)
{
    enum { VECTORS = 7 * BLOCK };
    const size_t share = n / SHARE, rank = share < LEAST_RANK ? LEAST_RANK : share > MOST_RANK ? MOST_RANK : share;
    const size_t numbers = run != NULL && run->memory > 0 ? run->memory / (sizeof(double) * n) : SIZE_MAX;
    if (numbers < VECTORS + 2) return 0;
    return (numbers - VECTORS) / 2 < rank ? (numbers - VECTORS) / 2 : rank;
}

esp_status espi_variances_new(const esp_model *m, const espi_bound *bound, const esp_run *run, espi_variances **out,
                              esp_error *err)
{
    const size_t rank = rank_for(m->support->rows, run);
    char limit[32];
    *out = NULL;
    if (rank == 0)
        return espi_fail(err, ESP_ERR_MEMORY, "the variances of %zu support examples take more than the limit of %s",
                         m->support->rows, espi_size_text((double)run->memory, limit));
    espi_variances *v = espi_alloc_zero(1, sizeof *v);
    if (v == NULL) return espi_no_memory(err);
    pthread_mutex_init(&v->lock, NULL);
    v->bound = bound;
    v->support = m->support;
    v->noise = m->gaussian->noise + m->gaussian->jitter;
    const esp_status status = espi_preconditioner_make(&v->preconditioner, bound, rank, 1, v->noise, run, err);
    if (status == ESP_OK) *out = v;
    else espi_variances_free(v);
    return status;
}

/* ------------------------------------------------------------------- rows */

typedef struct side_rows {
    const espi_bound *rows;
    size_t first;
    espi_workspace **workspace; /* per worker */
    double *row, *side;         /* the rows, and these side by side */
} side_rows;

static esp_status make_row(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const side_rows *j = context;
    const size_t n = j->rows->count[ESPI_COLS];
    espi_workspace **w = &j->workspace[thread->number];
    esp_status status = *w == NULL ? espi_workspace_new(j->rows, thread->run, w, err) : ESP_OK;
    if (status == ESP_OK)
        status = espi_bound_row(*w, j->rows->kernel->ops - 1, j->first + item, 0, n, j->row + item * n, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++) j->side[i * BLOCK + item] = j->row[item * n + i];
    return status;
}

static esp_status make_rows(side_rows *j, size_t count, const esp_run *run, esp_error *err)
{
    const int workers = espi_worker_count(run, count);
    memset(j->side, 0, j->rows->count[ESPI_COLS] * BLOCK * sizeof *j->side);
    j->workspace = espi_alloc_zero((size_t)workers, sizeof(espi_workspace *));
    if (j->workspace == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "computing the kernel", count, make_row, j, err);
    for (int i = 0; i < workers; i++) espi_workspace_free(j->workspace[i]);
    espi_free(j->workspace);
    return status;
}

/* ----------------------------------------------------------------- solving */

static esp_status ask_blocks(espi_krylov *k, side_rows *j, const esp_run *run, double *subtract, esp_error *err)
{
    const size_t rows = j->rows->count[ESPI_ROWS];
    esp_status status = ESP_OK;
    for (j->first = 0; status == ESP_OK && j->first < rows; j->first += BLOCK) {
        const size_t count = rows - j->first < BLOCK ? rows - j->first : BLOCK;
        status = espi_progress(run, "computing variances", (double)j->first / (double)rows, err);
        if (status == ESP_OK) status = make_rows(j, count, run, err);
        if (status == ESP_OK) status = espi_krylov_solve(k, j->side, run, err);
        if (status == ESP_OK && !k->converged)
            return espi_fail(err, ESP_ERR_RANGE,
                             "conjugate gradients for the variances of examples %zu to %zu did not converge: the "
                             "residual is %.2g after %zu iterations; a larger --memory makes variances exactly",
                             j->first + 1, j->first + count, k->residual, k->iterations);
        if (status == ESP_OK) memcpy(subtract + j->first, k->form, count * sizeof *subtract);
    }
    return status;
}

esp_status espi_variances_of(espi_variances *v, const espi_bound *rows, const esp_run *run, double *subtract,
                             esp_error *err)
{
    const size_t n = rows->count[ESPI_COLS];
    size_t column[BLOCK];
    double shift[BLOCK], form[BLOCK], length[BLOCK];
    side_rows j = {
        .rows = rows, .row = espi_alloc(n, BLOCK * sizeof *j.row), .side = espi_alloc(n, BLOCK * sizeof *j.side)};
    espi_krylov k = {.preconditioner = &v->preconditioner,
                     .noise = v->noise,
                     .columns = BLOCK,
                     .slots = BLOCK,
                     .column = column,
                     .shift = shift,
                     .tolerance = finest,
                     .bound = ESPI_VARIANCE_ERROR * v->noise,
                     .most = MOST,
                     .form = form,
                     .length = length};
    for (size_t c = 0; c < BLOCK; c++) {
        column[c] = c;
        shift[c] = 1.0;
    }
    esp_status status = j.row == NULL || j.side == NULL ? espi_no_memory(err) : ESP_OK;
    pthread_mutex_lock(&v->lock);
    if (status == ESP_OK) status = espi_products_new(v->bound, v->support, BLOCK, run, &k.products, err);
    if (status == ESP_OK) status = ask_blocks(&k, &j, run, subtract, err);
    pthread_mutex_unlock(&v->lock);
    espi_products_free(k.products);
    espi_free(j.row);
    espi_free(j.side);
    return status;
}
