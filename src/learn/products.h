/* Products of a Gram matrix and a few vectors, none of its entries being kept.
 *
 *     out_k(i) = sum_j K(i, j) x_k(j)
 *
 * Where sums of the kernel fold (folded_sum.h), a product is a fold and n scores; where they do not, its rows are made
 * one after the other. All vectors share the pass, and stand side by side: number i of vector k is at [i * width + k].
 */
#ifndef ESPI_LEARN_PRODUCTS_H
#define ESPI_LEARN_PRODUCTS_H

#include "kernel/evaluate/bound.h"

typedef struct espi_products espi_products;

/* Over the examples of `data`; `bound` is symmetric, of the same kernel and data, both of which it must outlive. */
esp_status espi_products_new(const espi_bound *bound, const esp_dataset *data, size_t width, const esp_run *run,
                             espi_products **out, esp_error *err);
void espi_products_free(espi_products *products);
/* The same bits for any number of threads. ESP_ERR_RANGE if a number does not fit a double. */
esp_status espi_products_of(espi_products *products, const double *x, const esp_run *run, double *out, esp_error *err);

#endif
