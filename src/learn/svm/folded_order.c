/* Which active examples stand together in blocks: those that are alike. Coordinate descent is slow where two variables
 * can do the same, so these should be moved with each other in view. Some examples, drawn at random, are pivots; every
 * example goes to the pivot that it is most alike, and pivots are put in a row in which neighbours are alike. */
#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "learn/svm/folded.h"

#include <math.h>

enum { PIVOTS_OF_BLOCK = 8 };

/* From the first pivot on, always to the nearest that is left. */
static void put_in_row(const double *gram, size_t pivots, uint32_t *place)
{
    double scale[ESPI_PIVOTS_MOST];
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
    const size_t pivots = wanted < ESPI_PIVOTS_MOST ? wanted : ESPI_PIVOTS_MOST;
    if (blocks < 2) return ESP_OK;
    uint32_t pivot[ESPI_PIVOTS_MOST], place[ESPI_PIVOTS_MOST];
    double *gram = espi_alloc(pivots * pivots, sizeof *gram);
    uint64_t *key = espi_alloc(count, sizeof *key);
    uint32_t *row = espi_alloc(count, sizeof *row), *nearest = espi_alloc(count, sizeof *nearest);
    const espi_alike alike = {
        .pivot = pivot, .row = row, .pivots = pivots, .count = count, .gram = gram, .nearest = nearest};
    esp_status status = gram == NULL || key == NULL || row == NULL || nearest == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t p = 0; p < pivots; p++) pivot[p] = f->row[example[espi_random_below(&f->state.random, count)]];
    for (size_t i = 0; status == ESP_OK && i < count; i++) row[i] = f->row[example[i]];
    if (status == ESP_OK) status = espi_folded_sum_alike(f->sum, &alike, f->run, err);
    if (status == ESP_OK) put_in_row(gram, pivots, place);
    for (size_t i = 0; status == ESP_OK && i < count; i++) key[i] = (uint64_t)place[nearest[i]] << 32 | example[i];
    if (status == ESP_OK) espi_sort_keys(key, count);
    for (size_t i = 0; status == ESP_OK && i < count; i++) example[i] = (uint32_t)key[i];
    espi_free(nearest);
    espi_free(row);
    espi_free(key);
    espi_free(gram);
    return status;
}
