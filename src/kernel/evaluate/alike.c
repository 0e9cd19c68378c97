#include "kernel/evaluate/alike.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "kernel/expression/columns.h"

#include <math.h>

enum {
    CHUNK = 512, /* rows compared at once */
    ROWS = 64    /* of a block that a thread takes at once */
};

static bool *used_columns(const esp_kernel *kernel, const esp_dataset *data)
{
    bool *column = espi_alloc(data->columns, sizeof *column);
    if (column != NULL) espi_used_columns(kernel, data, column);
    return column;
}

esp_status espi_block_fill(const esp_kernel *kernel, const esp_dataset *data, const espi_gram_block *block,
                           const esp_run *run, esp_error *err)
{
    espi_copier *copier = NULL;
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    bool *column = used_columns(kernel, data);
    esp_status status = column == NULL
                            ? espi_no_memory(err)
                            : espi_copier_dataset(&copier, data, column, block->row, NULL, block->count, &copy, err);
    if (status == ESP_OK) status = espi_gram_square(kernel, copy, run, block->gram, &bound, err);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    espi_copier_free(copier);
    espi_free(column);
    return status;
}

typedef struct part_of_block {
    const esp_kernel *kernel;
    const espi_bound *bound;
    size_t from, to;
    double *rows;
} part_of_block;

static size_t row_start(size_t row) { return row * (row + 1) / 2; }

static esp_status fill_rows(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const part_of_block *j = context;
    const size_t from = j->from + item * ROWS, to = j->to - from < ROWS ? j->to : from + ROWS;
    espi_workspace *workspace = NULL;
    (void)thread;
    esp_status status = espi_workspace_new(j->bound, NULL, &workspace, err);
    for (size_t i = from; status == ESP_OK && i < to; i++)
        status = espi_bound_row(workspace, j->kernel->ops - 1, i, 0, i + 1, j->rows + row_start(i) - row_start(j->from),
                                err);
    espi_workspace_free(workspace);
    return status;
}

esp_status espi_block_rows(const esp_kernel *kernel, const esp_dataset *data, const espi_gram_block *block, size_t from,
                           size_t to, const esp_run *run, double *rows, esp_error *err)
{
    espi_copier *copier = NULL;
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    bool *column = used_columns(kernel, data);
    esp_status status = column == NULL
                            ? espi_no_memory(err)
                            : espi_copier_dataset(&copier, data, column, block->row, NULL, block->count, &copy, err);
    if (status == ESP_OK) status = espi_bind(kernel, copy, copy, run, &bound, err);
    part_of_block j = {.kernel = kernel, .bound = bound, .from = from, .to = to, .rows = rows};
    if (status == ESP_OK) status = espi_parallel(run, "training", (to - from + ROWS - 1) / ROWS, fill_rows, &j, err);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    espi_copier_free(copier);
    espi_free(column);
    return status;
}

typedef struct comparing {
    const esp_kernel *kernel;
    const esp_dataset *data;
    const bool *column;
    const espi_alike *alike;
    const espi_bound *bound; /* of the pivots */
    const double *scale;     /* per pivot: 1 / sqrt(K(p, p)) */
    espi_copier **copier;    /* per thread */
} comparing;

static esp_status compare_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const comparing *j = context;
    const espi_alike *a = j->alike;
    const size_t from = item * CHUNK, left = a->count - from, count = left < CHUNK ? left : CHUNK;
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    double value[ESPI_PIVOTS_MOST];
    esp_status status =
        espi_copier_dataset(&j->copier[thread->number], j->data, j->column, a->row + from, NULL, count, &copy, err);
    if (status == ESP_OK) status = espi_bind_to_cols(j->bound, copy, &espi_alone, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, NULL, &workspace, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        status = espi_bound_row(workspace, j->kernel->ops - 1, i, 0, a->pivots, value, err);
        size_t best = 0;
        for (size_t p = 1; status == ESP_OK && p < a->pivots; p++)
            if (value[p] * j->scale[p] > value[best] * j->scale[best]) best = p;
        a->nearest[from + i] = (uint32_t)best;
    }
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    return status;
}

esp_status espi_alike_find(const esp_kernel *kernel, const esp_dataset *data, const espi_alike *alike,
                           const esp_run *run, esp_error *err)
{
    const size_t items = (alike->count + CHUNK - 1) / CHUNK, pivots = alike->pivots;
    const int workers = espi_worker_count(run, items);
    double scale[ESPI_PIVOTS_MOST];
    bool *column = used_columns(kernel, data);
    espi_copier **copier = espi_alloc_zero((size_t)workers, sizeof *copier);
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    esp_status status = column == NULL || copier == NULL
                            ? espi_no_memory(err)
                            : espi_copier_dataset(&copier[0], data, column, alike->pivot, NULL, pivots, &copy, err);
    if (status == ESP_OK) status = espi_gram_square(kernel, copy, run, alike->gram, &bound, err);
    for (size_t p = 0; status == ESP_OK && p < pivots; p++) {
        const double self = alike->gram[p * pivots + p];
        scale[p] = self > 0.0 ? 1.0 / sqrt(self) : 0.0;
    }
    comparing j = {.kernel = kernel,
                   .data = data,
                   .column = column,
                   .alike = alike,
                   .bound = bound,
                   .scale = scale,
                   .copier = copier};
    if (status == ESP_OK) status = espi_parallel(run, "training", items, compare_chunk, &j, err);
    for (int i = 0; copier != NULL && i < workers; i++) espi_copier_free(copier[i]);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    espi_free(copier);
    espi_free(column);
    return status;
}
