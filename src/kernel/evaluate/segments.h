/* A folded sum of any kernel that can be scored (bound.h), for those that have no sums of their own
 * (expression/folding.h).
 *
 * The examples with coefficients are listed as they come, and the list is cut into segments, each a scorer. New
 * examples make a short segment at the end; segments of similar length are joined, so that there are few of them, and
 * each example was in few. Where coefficients have changed, a segment is folded anew before the next score. */
#ifndef ESPI_KERNEL_EVALUATE_SEGMENTS_H
#define ESPI_KERNEL_EVALUATE_SEGMENTS_H

#include "kernel/expression/kernel.h"

typedef struct espi_segments espi_segments;

/* As the functions of espi_folded_sum. */
esp_status espi_segments_new(const esp_kernel *kernel, const esp_dataset *data, size_t outputs, espi_segments **out,
                             esp_error *err);
void espi_segments_free(espi_segments *segments);
esp_status espi_segments_score(espi_segments *segments, const uint32_t *row, size_t count, const esp_run *run,
                               double *score, esp_error *err);
esp_status espi_segments_add(espi_segments *segments, size_t row, const double *coefficient, esp_error *err);
esp_status espi_segments_grow(espi_segments *segments, esp_error *err);
void espi_segments_clear(espi_segments *segments);
size_t espi_segments_bytes(const espi_segments *segments);

#endif
