/* Variances of a Gaussian process without a factor of its matrix, for regressions of more support examples than have a
 * matrix in memory: k'G^-1 k by conjugate gradients (krylov.h), some new examples side by side. */
#ifndef ESPI_LEARN_MODEL_VARIANCES_H
#define ESPI_LEARN_MODEL_VARIANCES_H

#include "learn/model/model.h"

typedef struct espi_variances espi_variances;

/* Accuracy of a variance, as a part of the noise: what conjugate gradients leave is bounded by the residual and the
 * preconditioner (preconditioner.h). */
#define ESPI_VARIANCE_ERROR 1e-3

/* Draws the preconditioner. `bound` is symmetric, of the support examples, and outlives the result, as the model does.
 */
esp_status espi_variances_new(const esp_model *model, const espi_bound *bound, const esp_run *run, espi_variances **out,
                              esp_error *err);
void espi_variances_free(espi_variances *variances);
/* subtract[i] = k'G^-1 k of row i of `rows`, whose columns are those of the bound. May be called by several threads,
 * which wait for each other. ESP_ERR_RANGE if conjugate gradients do not converge. */
esp_status espi_variances_of(espi_variances *variances, const espi_bound *rows, const esp_run *run, double *subtract,
                             esp_error *err);

#endif
