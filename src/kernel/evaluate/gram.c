/* Gram matrices: blocks of rows in parallel, each made in a buffer that stays in the cache and copied from there to
 * its place; of a symmetric matrix the lower triangle is computed and also copied to its mirror image. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK = 32 }; /* rows: a few cache lines side by side in the mirror image */

typedef struct block_worker {
    espi_workspace *workspace;
    double *rows; /* `block` rows */
} block_worker;

typedef struct gram_blocks {
    const espi_bound *bound;
    block_worker *block_worker; /* made by each thread itself */
    size_t block;               /* rows that a thread takes at a time */
    espi_block_sink sink;
    void *context;
} gram_blocks;

static esp_status start_worker(const gram_blocks *j, block_worker *w, const esp_run *run, esp_error *err)
{
    if (w->workspace != NULL) return ESP_OK;
    w->rows = espi_alloc(j->block * j->bound->count[ESPI_COLS], sizeof *w->rows);
    return w->rows == NULL ? espi_no_memory(err) : espi_workspace_new(j->bound, run, &w->workspace, err);
}

/* Writes to memory past the cache, which has better things to hold than results that nobody reads soon. */
static inline void store_two(double *to, double a, double b)
{
#ifdef __SSE2__
    _mm_stream_pd(to, _mm_set_pd(b, a));
#else
    to[0] = a;
    to[1] = b;
#endif
}

/* to[i] = from[i * step], i < n: whole cache lines past the cache, what is left at the ends as usual. */
static inline void store(double *restrict to, const double *restrict from, size_t step, size_t n)
{
    enum { LINE = 8 };
    size_t i = 0;
    for (; i < n && ((uintptr_t)(to + i) / sizeof *to) % LINE != 0; i++) to[i] = from[i * step];
    for (; i + LINE <= n; i += LINE)
        for (size_t k = i; k < i + LINE; k += 2) store_two(to + k, from[k * step], from[(k + 1) * step]);
    for (; i < n; i++) to[i] = from[i * step];
}

static esp_status compute_block(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const gram_blocks *j = context;
    const espi_bound *b = j->bound;
    block_worker *w = &j->block_worker[thread->number];
    const size_t first = item * j->block;
    const size_t last = first + j->block < b->count[ESPI_ROWS] ? first + j->block : b->count[ESPI_ROWS];
    /* All rows of a block have one length, which the engine likes better than a triangle. */
    const size_t width = b->symmetric ? last : b->count[ESPI_COLS];
    esp_status status = start_worker(j, w, thread->run, err);
    for (size_t i = first; status == ESP_OK && i < last; i++)
        status = espi_bound_row(w->workspace, b->kernel->ops - 1, i, 0, width, w->rows + (i - first) * width, err);
    if (status == ESP_OK) j->sink(j->context, w->rows, width, first, last);
    return status;
}

esp_status espi_gram_blocks(const espi_bound *bound, const esp_run *run, espi_block_sink sink, void *context,
                            esp_error *err)
{
    const size_t rows = bound->count[ESPI_ROWS];
    gram_blocks j = {
        .bound = bound, .block = rows / BLOCK < BLOCK ? rows / BLOCK + 1 : BLOCK, .sink = sink, .context = context};
    const size_t blocks = (rows + j.block - 1) / j.block;
    const int workers = espi_worker_count(run, blocks);
    j.block_worker = espi_alloc_zero((size_t)workers, sizeof *j.block_worker);
    if (j.block_worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "computing the kernel", blocks, compute_block, &j, err);
    for (int i = 0; i < workers; i++) {
        espi_workspace_free(j.block_worker[i].workspace);
        espi_free(j.block_worker[i].rows);
    }
    espi_free(j.block_worker);
    return status;
}

typedef struct matrix {
    const espi_bound *bound;
    double *gram;
} matrix;

/* Puts rows first .. last-1 to their places: of a symmetric matrix the lower triangle, and its mirror image. */
static void place(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    const matrix *m = context;
    const size_t n = m->bound->count[ESPI_COLS];
    for (size_t i = first; i < last; i++)
        store(m->gram + i * n, rows + (i - first) * width, 1, m->bound->symmetric ? i + 1 : n);
    for (size_t j = 0; j + 1 < last && m->bound->symmetric; j++) {
        const size_t i = j < first ? first : j + 1;
        store(m->gram + j * n + i, rows + (i - first) * width + j, width, last - i);
    }
#ifdef __SSE2__
    _mm_sfence(); /* other threads see all of it once this one is done */
#endif
}

static esp_status fill(const espi_bound *bound, const esp_run *run, double *gram, esp_error *err)
{
    matrix m = {.bound = bound, .gram = gram};
    return espi_gram_blocks(bound, run, place, &m, err);
}

static esp_status check_size(const esp_dataset *rows, const esp_dataset *cols, size_t item, const esp_run *run,
                             esp_error *err)
{
    const double bytes = (double)rows->rows * (double)cols->rows * (double)item;
    char need[32], limit[32];
    if (run == NULL || run->memory == 0 || bytes <= (double)run->memory) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY, "a Gram matrix of %zu x %zu takes %s; the limit is %s", rows->rows,
                     cols->rows, espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
}

esp_status esp_gram(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols, const esp_run *run,
                    double *gram, esp_error *err)
{
    espi_bound *bound = NULL;
    if (cols == NULL) cols = rows;
    esp_status status = check_size(rows, cols, sizeof *gram, run, err);
    if (status == ESP_OK) status = espi_bind(kernel, rows, cols, run, &bound, err);
    if (status == ESP_OK) status = fill(bound, run, gram, err);
    espi_bound_free(bound);
    return status;
}

typedef struct single {
    const espi_bound *bound;
    float *gram;
    atomic_bool beyond; /* a value is too large for a float */
} single;

static void place_single(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    single *m = context;
    const size_t n = m->bound->count[ESPI_COLS];
    for (size_t i = first; i < last; i++) {
        const double *row = rows + (i - first) * width;
        const size_t end = m->bound->symmetric ? i + 1 : n;
        for (size_t j = 0; j < end; j++) {
            if (fabs(row[j]) > (double)FLT_MAX) atomic_store(&m->beyond, true);
            m->gram[i * n + j] = (float)row[j];
        }
    }
    for (size_t j = 0; j + 1 < last && m->bound->symmetric; j++)
        for (size_t i = j < first ? first : j + 1; i < last; i++)
            m->gram[j * n + i] = (float)rows[(i - first) * width + j];
}

esp_status esp_gram_single(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols,
                           const esp_run *run, float *gram, esp_error *err)
{
    single m = {.gram = gram};
    espi_bound *bound = NULL;
    if (cols == NULL) cols = rows;
    esp_status status = check_size(rows, cols, sizeof *gram, run, err);
    if (status == ESP_OK) status = espi_bind(kernel, rows, cols, run, &bound, err);
    m.bound = bound;
    if (status == ESP_OK) status = espi_gram_blocks(bound, run, place_single, &m, err);
    if (status == ESP_OK && atomic_load(&m.beyond))
        status =
            espi_fail(err, ESP_ERR_RANGE,
                      "a value is too large for single precision; take a smaller lambda (or weight), or norm(...)");
    espi_bound_free(bound);
    return status;
}

esp_status espi_gram_square(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run, double *gram,
                            espi_bound **bound, esp_error *err)
{
    esp_status status = espi_bind(kernel, data, data, run, bound, err);
    if (status == ESP_OK) status = fill(*bound, run, gram, err);
    if (status == ESP_OK) return ESP_OK;
    espi_bound_free(*bound);
    *bound = NULL;
    return status;
}

esp_status esp_gram_diagonal(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run, double *diagonal,
                             esp_error *err)
{
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    esp_status status = espi_progress(run, "computing the kernel", -1.0, err);
    if (status == ESP_OK) status = espi_bind(kernel, data, data, run, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, run, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_COLS, diagonal, err);
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    return status;
}
