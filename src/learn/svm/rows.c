#include "learn/svm/rows.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/dense.h"

#include <string.h>

enum { SUBSET_SLOTS = 8, FEATURE_BLOCK = 64 }; /* rows that a thread takes at a time */

struct espi_rows {
    espi_rows *all; /* of a subset: where its values come from */
    uint32_t *example;
    size_t count;
    float *diagonal;
    float *matrix; /* count x count; NULL: rows are cached */
    /* the cache */
    espi_workspace *workspace;
    const double *feature; /* instead of the workspace: features[p * count + i] */
    size_t features;
    double *wide; /* a row before it is rounded */
    float *slot;
    size_t slots;
    uint32_t *slot_of; /* row -> slot; slots: none */
    uint32_t *row_in;  /* slot -> row; count: none */
    uint64_t *used;    /* slot -> when it was asked for last */
    uint64_t clock;
    size_t computed;
    size_t spare; /* memory for the solver */
};

void espi_rows_free(espi_rows *r)
{
    if (r == NULL) return;
    espi_workspace_free(r->workspace);
    espi_free(r->example);
    espi_free(r->diagonal);
    espi_free(r->matrix);
    espi_free(r->wide);
    espi_free(r->slot);
    espi_free(r->slot_of);
    espi_free(r->row_in);
    espi_free(r->used);
    espi_free(r);
}

size_t espi_rows_count(const espi_rows *r) { return r->count; }
const float *espi_rows_diagonal(const espi_rows *r) { return r->diagonal; }
bool espi_rows_complete(const espi_rows *r) { return r->matrix != NULL; }
size_t espi_rows_computed(const espi_rows *r) { return r->computed; }
size_t espi_rows_spare(const espi_rows *r) { return r->all != NULL ? r->all->spare : r->spare; }

/* A kernel value beyond a float would be infinite there; the largest float still orders it right. */
static float rounded(double value)
{
    const float most = 3.4028234e38f;
    return value > (double)most ? most : value < -(double)most ? -most : (float)value;
}

static void place(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    const espi_rows *r = context;
    const size_t n = r->count;
    for (size_t i = first; i < last; i++)
        for (size_t j = 0; j <= i; j++) r->matrix[i * n + j] = rounded(rows[(i - first) * width + j]);
    for (size_t j = 0; j < last; j++)
        for (size_t i = j < first ? first : j + 1; i < last; i++)
            r->matrix[j * n + i] = rounded(rows[(i - first) * width + j]);
}

static bool start_cache(espi_rows *r, size_t slots)
{
    r->slots = slots < r->count ? slots : r->count;
    if (r->slots < 2) r->slots = 2;
    r->slot = espi_alloc(r->slots * r->count, sizeof *r->slot);
    r->slot_of = espi_alloc(r->count, sizeof *r->slot_of);
    r->row_in = espi_alloc(r->slots, sizeof *r->row_in);
    r->used = espi_alloc_zero(r->slots, sizeof *r->used);
    if (r->slot == NULL || r->slot_of == NULL || r->row_in == NULL || r->used == NULL) return false;
    for (size_t i = 0; i < r->count; i++) r->slot_of[i] = (uint32_t)r->slots;
    for (size_t i = 0; i < r->slots; i++) r->row_in[i] = (uint32_t)r->count;
    return true;
}

static esp_status fill_diagonal(espi_rows *r, const espi_bound *bound, const esp_run *run, esp_error *err)
{
    r->wide = espi_alloc(r->count, sizeof *r->wide);
    r->diagonal = espi_alloc(r->count, sizeof *r->diagonal);
    if (r->wide == NULL || r->diagonal == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    if (bound != NULL) {
        status = espi_workspace_new(bound, run, &r->workspace, err);
        if (status == ESP_OK) status = espi_bound_diagonal(r->workspace, ESPI_COLS, r->wide, err);
    } else {
        for (size_t i = 0; i < r->count; i++) r->wide[i] = 0.0;
        for (size_t p = 0; p < r->features; p++)
            for (size_t i = 0; i < r->count; i++)
                r->wide[i] += r->feature[p * r->count + i] * r->feature[p * r->count + i];
    }
    for (size_t i = 0; status == ESP_OK && i < r->count; i++) r->diagonal[i] = rounded(r->wide[i]);
    return status;
}

/* Rows first .. last-1 of the features' products with each other, `width` values each. */
static esp_status multiply(const espi_rows *r, size_t first, size_t last, size_t width, double *rows, esp_error *err)
{
    const espi_dense_factors f = {.turn_a = true,
                                  .rows = last - first,
                                  .columns = width,
                                  .inner = r->features,
                                  .scale = 1.0,
                                  .a = r->feature + first,
                                  .a_stride = r->count,
                                  .b = r->feature,
                                  .b_stride = r->count};
    return espi_dense_product(&f, rows, width, &espi_alone, err);
}

static esp_status multiply_block(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)worker;
    const espi_rows *r = context;
    const size_t first = item * FEATURE_BLOCK;
    const size_t last = r->count - first < FEATURE_BLOCK ? r->count : first + FEATURE_BLOCK;
    double *rows = espi_alloc(last - first, last * sizeof *rows);
    if (rows == NULL) return espi_no_memory(err);
    const esp_status status = multiply(r, first, last, last, rows, err);
    if (status == ESP_OK) place(context, rows, last, first, last);
    espi_free(rows);
    return status;
}

static esp_status fill_matrix(espi_rows *r, const espi_bound *bound, const esp_run *run, esp_error *err)
{
    r->matrix = espi_alloc(r->count, r->count * sizeof *r->matrix);
    r->computed = r->count;
    if (r->matrix == NULL) return espi_no_memory(err);
    if (bound != NULL) return espi_gram_blocks(bound, run, place, r, err);
    return espi_parallel(run, "multiplying features", (r->count + FEATURE_BLOCK - 1) / FEATURE_BLOCK, multiply_block, r,
                         err);
}

/* Ends with `r` full or freed; `bound` is NULL for features. */
static esp_status fill(espi_rows *r, const espi_bound *bound, const esp_run *run, espi_rows **out, esp_error *err)
{
    const size_t memory = run != NULL ? run->memory : 0;
    const double row = (double)r->count * sizeof(float);
    esp_status status = fill_diagonal(r, bound, run, err);
    if (status == ESP_OK && memory > 0 && 2.0 * row > (double)memory) {
        char need[32], have[32];
        status = espi_fail(err, ESP_ERR_MEMORY, "two rows of the Gram matrix take %s; the limit is %s",
                           espi_size_text(2.0 * row, need), espi_size_text((double)memory, have));
    }
    if (status == ESP_OK && (memory == 0 || row * (double)r->count <= (double)memory)) {
        status = fill_matrix(r, bound, run, err);
    } else if (status == ESP_OK) {
        r->spare = memory / 4;
        if (!start_cache(r, (size_t)((double)(memory - r->spare) / row))) status = espi_no_memory(err);
    }
    if (status == ESP_OK) *out = r;
    else espi_rows_free(r);
    return status;
}

esp_status espi_rows_new(const espi_bound *bound, const esp_run *run, espi_rows **out, esp_error *err)
{
    *out = NULL;
    espi_rows *r = espi_alloc_zero(1, sizeof *r);
    if (r == NULL) return espi_no_memory(err);
    r->count = bound->count[ESPI_COLS];
    return fill(r, bound, run, out, err);
}

esp_status espi_rows_of_features(const double *feature, size_t features, size_t count, const esp_run *run,
                                 espi_rows **out, esp_error *err)
{
    *out = NULL;
    espi_rows *r = espi_alloc_zero(1, sizeof *r);
    if (r == NULL) return espi_no_memory(err);
    r->count = count;
    r->feature = feature;
    r->features = features;
    return fill(r, NULL, run, out, err);
}

static void gather(const espi_rows *r, const float *from, float *to)
{
    for (size_t j = 0; j < r->count; j++) to[j] = from[r->example[j]];
}

esp_status espi_rows_subset(espi_rows *all, const uint32_t *example, size_t count, espi_rows **out, esp_error *err)
{
    *out = NULL;
    espi_rows *r = espi_alloc_zero(1, sizeof *r);
    if (r == NULL) return espi_no_memory(err);
    r->all = all;
    r->count = count;
    r->example = espi_alloc(count, sizeof *r->example);
    r->diagonal = espi_alloc(count, sizeof *r->diagonal);
    bool ok = r->example != NULL && r->diagonal != NULL;
    if (ok && all->matrix != NULL) {
        r->matrix = espi_alloc(count, count * sizeof *r->matrix);
        ok = r->matrix != NULL;
    } else if (ok) {
        ok = start_cache(r, SUBSET_SLOTS);
    }
    for (size_t i = 0; ok && i < count; i++) {
        r->example[i] = example[i];
        r->diagonal[i] = all->diagonal[example[i]];
    }
    for (size_t i = 0; ok && r->matrix != NULL && i < count; i++)
        gather(r, all->matrix + example[i] * all->count, r->matrix + i * count);
    if (ok) *out = r;
    else espi_rows_free(r);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status compute(espi_rows *r, size_t i, float *to, esp_error *err)
{
    if (r->all != NULL) {
        const float *from;
        const esp_status status = espi_rows_get(r->all, r->example[i], &from, err);
        if (status == ESP_OK) gather(r, from, to);
        return status;
    }
    esp_status status = ESP_OK;
    if (r->workspace == NULL) status = multiply(r, i, i + 1, r->count, r->wide, err);
    else status = espi_bound_row(r->workspace, r->workspace->bound->kernel->ops - 1, i, 0, r->count, r->wide, err);
    for (size_t j = 0; status == ESP_OK && j < r->count; j++) to[j] = rounded(r->wide[j]);
    r->computed++;
    return status;
}

esp_status espi_rows_get(espi_rows *r, size_t i, const float **row, esp_error *err)
{
    if (r->matrix != NULL) {
        *row = r->matrix + i * r->count;
        return ESP_OK;
    }
    uint32_t slot = r->slot_of[i];
    if (slot == r->slots) {
        slot = 0;
        for (uint32_t k = 1; k < r->slots; k++)
            if (r->used[k] < r->used[slot]) slot = k;
        if (r->row_in[slot] < r->count) r->slot_of[r->row_in[slot]] = (uint32_t)r->slots;
        r->row_in[slot] = (uint32_t)r->count;
        const esp_status status = compute(r, i, r->slot + slot * r->count, err);
        if (status != ESP_OK) return status;
        r->row_in[slot] = (uint32_t)i;
        r->slot_of[i] = slot;
    }
    r->used[slot] = ++r->clock;
    *row = r->slot + slot * r->count;
    return ESP_OK;
}
