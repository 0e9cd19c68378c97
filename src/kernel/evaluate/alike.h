/* Kernel values among some rows of a dataset, which are copied for it: Gram matrices, and which of a few rows, the
 * pivots, each of many is most like. */
#ifndef ESPI_KERNEL_EVALUATE_ALIKE_H
#define ESPI_KERNEL_EVALUATE_ALIKE_H

#include "kernel/expression/kernel.h"

enum { ESPI_PIVOTS_MOST = 512 };

typedef struct espi_gram_block { /* rows, and the kernel values among them: K(i, j) at gram[i * count + j] */
    const uint32_t *row;
    size_t count;
    double *gram;
} espi_gram_block;

esp_status espi_block_fill(const esp_kernel *kernel, const esp_dataset *data, const espi_gram_block *block,
                           const esp_run *run, esp_error *err);

/* Only rows from .. to-1 of its lower triangle, one behind the other: i + 1 values of row i. block->gram is not used.
 */
esp_status espi_block_rows(const esp_kernel *kernel, const esp_dataset *data, const espi_gram_block *block, size_t from,
                           size_t to, const esp_run *run, double *rows, esp_error *err);

typedef struct espi_alike {
    const uint32_t *pivot, *row;
    size_t pivots, count; /* at least one pivot, at most ESPI_PIVOTS_MOST */
    double *gram;         /* of the pivots; filled */
    uint32_t *nearest;    /* per row: number p of the pivot with the largest K(x, p) / sqrt(K(p, p)); filled */
} espi_alike;

esp_status espi_alike_find(const esp_kernel *kernel, const esp_dataset *data, const espi_alike *alike,
                           const esp_run *run, esp_error *err);

#endif
