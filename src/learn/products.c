/* Products without the matrix (products.h). */
#include "learn/products.h"

#include "base/alloc.h"
#include "base/hot.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/folded_sum.h"

#include <string.h>

enum {
    ROWS = 16,    /* that a thread takes at once */
    FOLDED = 1024 /* examples between two reports */
};

struct espi_products {
    const espi_bound *bound;
    size_t width;
    espi_folded_sum *sum; /* NULL: rows */
    uint32_t *example;    /* 0, 1, 2, ... */
};

void espi_products_free(espi_products *p)
{
    if (p == NULL) return;
    espi_folded_sum_free(p->sum);
    espi_free(p->example);
    espi_free(p);
}

static esp_status start(espi_products *p, const esp_dataset *data, const esp_run *run, esp_error *err)
{
    const size_t n = p->bound->count[ESPI_COLS];
    const esp_status folds = espi_kernel_folds(p->bound->kernel, err);
    if (folds != ESP_OK) return folds == ESP_ERR_PARAM ? ESP_OK : folds;
    p->example = espi_alloc(n, sizeof *p->example);
    if (p->example == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++) p->example[i] = (uint32_t)i;
    return espi_folded_sum_new(p->bound->kernel, data, p->width, run, &p->sum, err);
}

esp_status espi_products_new(const espi_bound *bound, const esp_dataset *data, size_t width, const esp_run *run,
                             espi_products **out, esp_error *err)
{
    espi_products *p = espi_alloc_zero(1, sizeof *p);
    *out = NULL;
    if (p == NULL) return espi_no_memory(err);
    p->bound = bound;
    p->width = width;
    const esp_status status = start(p, data, run, err);
    if (status == ESP_OK) *out = p;
    else espi_products_free(p);
    return status;
}

/* ------------------------------------------------------------------- rows */

typedef struct row_worker {
    espi_workspace *workspace;
    double *row;
} row_worker;

typedef struct row_product {
    const espi_products *products;
    row_worker *row_worker;
    const double *x;
    double *out;
} row_product;

HOT static void row_times(const double *restrict row, const double *restrict x, size_t n, size_t width,
                          double *restrict out)
{
    for (size_t k = 0; k < width; k++) out[k] = 0.0;
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < width; k++) out[k] += row[j] * x[j * width + k];
}

static esp_status multiply_rows(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const row_product *j = context;
    const espi_products *p = j->products;
    const size_t n = p->bound->count[ESPI_COLS], last = (item + 1) * ROWS < n ? (item + 1) * ROWS : n;
    row_worker *w = &j->row_worker[thread->number];
    esp_status status = ESP_OK;
    if (w->row == NULL) w->row = espi_alloc(n, sizeof *w->row);
    if (w->row == NULL) return espi_no_memory(err);
    if (w->workspace == NULL) status = espi_workspace_new(p->bound, thread->run, &w->workspace, err);
    for (size_t i = item * ROWS; status == ESP_OK && i < last; i++) {
        status = espi_bound_row(w->workspace, p->bound->kernel->ops - 1, i, 0, n, w->row, err);
        if (status == ESP_OK) row_times(w->row, j->x, n, p->width, j->out + i * p->width);
    }
    return status;
}

static esp_status by_rows(espi_products *p, const double *x, const esp_run *run, double *out, esp_error *err)
{
    const size_t n = p->bound->count[ESPI_COLS], items = (n + ROWS - 1) / ROWS;
    const int workers = espi_worker_count(run, items);
    row_product j = {.products = p, .x = x, .out = out};
    j.row_worker = espi_alloc_zero((size_t)workers, sizeof *j.row_worker);
    if (j.row_worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "multiplying", items, multiply_rows, &j, err);
    for (int i = 0; i < workers; i++) {
        espi_workspace_free(j.row_worker[i].workspace);
        espi_free(j.row_worker[i].row);
    }
    espi_free(j.row_worker);
    if (status == ESP_OK && !espi_all_finite(out, n * p->width))
        return espi_fail(err, ESP_ERR_RANGE, "a product of the kernel matrix is too large for a number");
    return status;
}

/* ------------------------------------------------------------------- fold */

static esp_status by_folding(espi_products *p, const double *x, const esp_run *run, double *out, esp_error *err)
{
    const size_t n = p->bound->count[ESPI_COLS];
    esp_status status = ESP_OK;
    espi_folded_sum_clear(p->sum);
    for (size_t i = 0; status == ESP_OK && i < n; i += FOLDED) {
        status = espi_folded_sum_add(p->sum, p->example + i, n - i < FOLDED ? n - i : FOLDED, x + i * p->width, err);
        if (status == ESP_OK) status = espi_progress(run, "folding", (double)i / (double)n, err);
    }
    return status == ESP_OK ? espi_folded_sum_score(p->sum, p->example, n, run, out, err) : status;
}

esp_status espi_products_of(espi_products *p, const double *x, const esp_run *run, double *out, esp_error *err)
{
    return p->sum != NULL ? by_folding(p, x, run, out, err) : by_rows(p, x, run, out, err);
}
