/* Gram matrices: rows in parallel; of a symmetric one the lower triangle is computed and mirrored, block by block
 * while it is still in the cache. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/bound.h"

enum { LARGEST_BLOCK = 64, TILE = 8 };

typedef struct job {
    const espi_bound *bound;
    espi_workspace **workspace; /* per worker; made by the worker itself */
    size_t block;               /* rows that a worker takes at a time */
    double *gram;
} job;

/* Copies rows first .. last-1 to their places above the diagonal. */
static void mirror(double *gram, size_t n, size_t first, size_t last)
{
    const size_t whole = first - first % TILE;
    for (size_t from = 0; from < whole; from += TILE)
        for (size_t i = first; i < last; i++)
            for (size_t k = 0; k < TILE; k++) gram[(from + k) * n + i] = gram[i * n + from + k];
    for (size_t i = first; i < last; i++)
        for (size_t j = whole; j < i; j++) gram[j * n + i] = gram[i * n + j];
}

static esp_status compute_block(void *context, size_t item, int worker, esp_error *err)
{
    const job *j = context;
    const espi_bound *b = j->bound;
    const size_t n = b->count[ESPI_COLS], first = item * j->block;
    const size_t last = first + j->block < b->count[ESPI_ROWS] ? first + j->block : b->count[ESPI_ROWS];
    esp_status status = ESP_OK;
    if (j->workspace[worker] == NULL) status = espi_workspace_new(b, &j->workspace[worker], err);
    for (size_t i = first; status == ESP_OK && i < last; i++)
        status = espi_bound_row(j->workspace[worker], b->kernel->ops - 1, i, 0, b->symmetric ? i + 1 : n,
                                j->gram + i * n, err);
    if (status == ESP_OK && b->symmetric) mirror(j->gram, n, first, last);
    return status;
}

esp_status esp_gram(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols, const esp_run *run,
                    double *gram, esp_error *err)
{
    espi_bound *bound = NULL;
    if (cols == NULL) cols = rows;
    const double bytes = (double)rows->rows * (double)cols->rows * sizeof *gram;
    char need[32], limit[32];
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "a Gram matrix of %zu x %zu takes %s; the limit is %s", rows->rows,
                         cols->rows, espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    esp_status status = espi_bind(kernel, rows, cols, &bound, err);
    if (status != ESP_OK) return status;
    size_t block = rows->rows / 64 + 1;
    if (block > LARGEST_BLOCK) block = LARGEST_BLOCK;
    const size_t blocks = (rows->rows + block - 1) / block;
    const int workers = espi_worker_count(run, blocks);
    job j = {.bound = bound, .block = block, .gram = gram};
    j.workspace = espi_alloc_zero((size_t)workers, sizeof *j.workspace);
    if (j.workspace == NULL) status = espi_no_memory(err);
    else status = espi_parallel(run, "computing the kernel", blocks, compute_block, &j, err);
    for (int i = 0; j.workspace != NULL && i < workers; i++) espi_workspace_free(j.workspace[i]);
    espi_free(j.workspace);
    espi_bound_free(bound);
    return status;
}

esp_status esp_gram_diagonal(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run, double *diagonal,
                             esp_error *err)
{
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    esp_status status = espi_progress(run, "computing the kernel", -1.0, err);
    if (status == ESP_OK) status = espi_bind(kernel, data, data, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_COLS, diagonal, err);
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    return status;
}
