/* Which active examples stand together in blocks: those that are alike. Coordinate descent is slow where two variables
 * can do the same, so these should be moved with each other in view. Some examples, drawn at random, are pivots; every
 * example goes to the pivot that it is most alike, and pivots are put in a row in which neighbours are alike. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "learn/svm/folded.h"

#include <math.h>

enum {
    PIVOTS_OF_BLOCK = 8,
    MOST_PIVOTS = 512,
    CHUNK = 512 /* examples compared at once */
};

typedef struct comparing {
    const espi_folded *f;
    const uint32_t *example;
    size_t count, pivots;
    const espi_bound *bound; /* of the pivots */
    const double *scale;     /* per pivot: 1 / sqrt(K(p, p)) */
    const uint32_t *place;   /* of each pivot in the row */
    uint64_t *key;           /* per example: the place of its pivot, and its own number */
    espi_copier **copier;    /* per thread */
} comparing;

static esp_status compare_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const comparing *j = context;
    const size_t from = item * CHUNK, left = j->count - from, count = left < CHUNK ? left : CHUNK;
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    double value[MOST_PIVOTS];
    esp_status status = espi_folded_copy(j->f, j->example + from, count, &j->copier[thread->number], &copy, err);
    if (status == ESP_OK) status = espi_bind_to_cols(j->bound, copy, &espi_alone, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, NULL, &workspace, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        status = espi_bound_row(workspace, j->f->kernel->ops - 1, i, 0, j->pivots, value, err);
        size_t best = 0;
        for (size_t p = 1; status == ESP_OK && p < j->pivots; p++)
            if (value[p] * j->scale[p] > value[best] * j->scale[best]) best = p;
        j->key[from + i] = (uint64_t)j->place[best] << 32 | j->example[from + i];
    }
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    return status;
}

/* From the first pivot on, always to the nearest that is left. */
static void put_in_row(const double *gram, size_t pivots, double *scale, uint32_t *place)
{
    size_t at = 0;
    for (size_t p = 0; p < pivots; p++) {
        const double self = gram[p * pivots + p];
        scale[p] = self > 0.0 ? 1.0 / sqrt(self) : 0.0;
        place[p] = UINT32_MAX;
    }
    for (uint32_t n = 0; n < pivots; n++) {
        double best = -INFINITY;
        size_t next = at;
        place[at] = n;
        for (size_t p = 0; p < pivots; p++)
            if (place[p] == UINT32_MAX && gram[at * pivots + p] * scale[p] > best) {
                best = gram[at * pivots + p] * scale[p];
                next = p;
            }
        at = next;
    }
}

esp_status espi_folded_order(espi_folded *f, uint32_t *example, size_t blocks, esp_error *err)
{
    const size_t count = f->actives, wanted = blocks * PIVOTS_OF_BLOCK;
    const size_t pivots = wanted < MOST_PIVOTS ? wanted : MOST_PIVOTS;
    if (blocks < 2) return ESP_OK;
    const size_t items = (count + CHUNK - 1) / CHUNK;
    const int workers = espi_worker_count(f->run, items);
    uint32_t pivot[MOST_PIVOTS], place[MOST_PIVOTS];
    double scale[MOST_PIVOTS], *gram = espi_alloc(pivots * pivots, sizeof *gram);
    uint64_t *key = espi_alloc(count, sizeof *key);
    espi_copier **copier = espi_alloc_zero((size_t)workers, sizeof *copier);
    esp_dataset *copy = NULL;
    espi_bound *bound = NULL;
    esp_status status = gram == NULL || key == NULL || copier == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t p = 0; p < pivots; p++) pivot[p] = example[espi_random_below(&f->state.random, count)];
    if (status == ESP_OK) status = espi_folded_copy(f, pivot, pivots, &copier[0], &copy, err);
    if (status == ESP_OK) status = espi_gram_square(f->kernel, copy, f->run, gram, &bound, err);
    if (status == ESP_OK) {
        put_in_row(gram, pivots, scale, place);
        comparing j = {.f = f,
                       .example = example,
                       .count = count,
                       .pivots = pivots,
                       .bound = bound,
                       .scale = scale,
                       .place = place,
                       .key = key,
                       .copier = copier};
        status = espi_parallel(f->run, "training", items, compare_chunk, &j, err);
    }
    if (status == ESP_OK) espi_sort_keys(key, count);
    for (size_t i = 0; status == ESP_OK && i < count; i++) example[i] = (uint32_t)key[i];
    for (int i = 0; copier != NULL && i < workers; i++) espi_copier_free(copier[i]);
    espi_bound_free(bound);
    esp_dataset_free(copy);
    espi_free(copier);
    espi_free(key);
    espi_free(gram);
    return status;
}
