/* A kernel in sums over the examples of a dataset, folded into one structure whose coefficients change again and again
 * (evaluate/folded_sum.h):
 *
 *     f_k(x) = sum_e c_k(e) K(x, e)
 *
 * Unlike a sum that grows (growing.h), it knows its examples from the start, or is told of many new ones at once, asks
 * for the scores of many, and by several threads. */
#ifndef ESPI_KERNEL_EXPRESSION_FOLDING_H
#define ESPI_KERNEL_EXPRESSION_FOLDING_H

#include "kernel/expression/kernel.h"

/* A leaf with its sum; each kernel puts its own fields behind this. */
typedef struct espi_folding_part {
    const espi_kernel_class *class;
} espi_folding_part;

struct espi_folding_class {
    /* All coefficients are 0. `column` outlives the part. */
    esp_status (*open)(const espi_leaf *leaf, const espi_column *column, size_t outputs, espi_folding_part **out,
                       esp_error *err);
    void (*close)(espi_folding_part *part);

    /* What one thread needs for `selves` and `score`, which are asked with the run of a worker; NULL if memory is out.
     */
    void *(*workspace_new)(const espi_folding_part *part);
    void (*workspace_free)(void *workspace);
    /* value[i] = K(x, x) of row[i], i < count; not finite where it overflows. */
    esp_status (*selves)(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                         size_t count, double *value, esp_error *err);
    /* score[i * outputs + k] of row[i]. */
    esp_status (*score)(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                        size_t count, double *score, esp_error *err);

    /* Adds to the coefficients of a row, one per output. A part after a failure can only be closed. */
    esp_status (*add)(espi_folding_part *part, size_t row, const double *coefficient, esp_error *err);
    /* The column has more rows than before. Workspaces made earlier can only be freed. */
    esp_status (*grow)(espi_folding_part *part, const espi_leaf *leaf, esp_error *err);
    /* All coefficients are 0 again. */
    void (*clear)(espi_folding_part *part);
    size_t (*bytes)(const espi_folding_part *part);
};

#endif
