/* Support vector machines on Nystroem features (setting `inducing`).
 *
 * With M pivots S (pivots.h) and K(S, S) = L L', example x has the features phi(x) = L^-1 K(S, x), and phi(x)'phi(z)
 * stands for K(x, z). What a solver learns on them, f(x) = sum_i c_i phi(x_i)'phi(x) + bias = w'phi(x) + bias, is a sum
 * of kernels over the pivots alone: w'L^-1 K(S, x). So the model has M support examples and predicts as any other. */
#ifndef ESPI_NYSTROEM_H
#define ESPI_NYSTROEM_H

#include "learn/learner.h"
#include "learn/pivots.h"

typedef struct espi_nystroem {
    espi_pivots pivots; /* with their factor, whose columns are the features */
    espi_rows *rows;    /* of all examples */
} espi_nystroem;

/* Over all examples of a symmetric bound; pivots are those of `allowed` (NULL: all). Features and rows take run->memory
 * at most. Released by espi_nystroem_free; after a failure there is nothing to free. */
esp_status espi_nystroem_new(const espi_bound *bound, const espi_settings *settings, const bool *allowed,
                             const esp_run *run, espi_nystroem *out, esp_error *err);
void espi_nystroem_free(espi_nystroem *nystroem);

/* Turns the coefficients of a fit on the rows of all examples into those of the pivots; all others become 0. */
esp_status espi_nystroem_project(const espi_nystroem *nystroem, espi_fit *fit, esp_error *err);

/* As espi_out_of_fold; the pivots of a fold are drawn from what is trained on. */
esp_status espi_nystroem_out_of_fold(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                                     const espi_targets *targets, const uint32_t *fold, size_t folds,
                                     const esp_run *run, double *scores, esp_error *err);

#endif
