/* Sums of kernels that grow example by example: what online learners score and predict with.
 *
 *     f_k(x) = sum over the examples e kept so far of c_k(e) K(x, e)
 *
 * The examples are rows of one dataset, whose last row is the current example. It is looked at, asked for its scores,
 * and then either kept with a coefficient per output, or taken out of the dataset again by its owner (espi_row_undo);
 * the sum needs not be told. So all rows but the last are the examples kept, in order.
 *
 * Terms of the kernel that are one leaf or its norm are folded: a vector of weights per vertex of the annotated DAG
 * (theorem of Aiolli et al. 2007), a weight vector for linear, inverted lists for poly. Any other term is
 * put together from rows of kernel values. */
#ifndef ESPI_KERNEL_EVALUATE_GROWING_H
#define ESPI_KERNEL_EVALUATE_GROWING_H

#include "kernel/expression/growing.h"

typedef struct espi_growing espi_growing;

/* `kernel` and `examples` must outlive the result. The examples have all columns the kernel needs (at least one row was
 * begun). ESP_ERR_PARAM if a kernel cannot grow. */
esp_status espi_growing_new(const esp_kernel *kernel, const esp_dataset *examples, espi_form form, size_t outputs,
                            const esp_run *run, espi_growing **out, esp_error *err);
void espi_growing_free(espi_growing *sum);
/* Makes row number espi_growing_count of the examples the current one. */
esp_status espi_growing_look(espi_growing *sum, esp_error *err);
/* score[k] of the current example, and the sum of the absolute values of all terms of all scores. A score that is too
 * large for a number is ESP_ERR_RANGE. */
esp_status espi_growing_score(espi_growing *sum, double *score, double *magnitude, esp_error *err);
/* The current example is kept. After a failure the sum can only be freed. */
esp_status espi_growing_keep(espi_growing *sum, const double *coefficient, esp_error *err);
size_t espi_growing_count(const espi_growing *sum); /* examples kept */
espi_growing_size espi_growing_measure(const espi_growing *sum);

#endif
