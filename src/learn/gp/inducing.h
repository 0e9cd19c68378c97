/* Inducing examples of a Gaussian process: the bound of low_rank.h for a kernel over a dataset. */
#ifndef ESPI_LEARN_GP_INDUCING_H
#define ESPI_LEARN_GP_INDUCING_H

#include "learn/gp/low_rank.h"
#include "learn/pivots.h"

/* F of a kernel over a dataset, for whoever changes the kernel's values between calls. Pivots do not move with them: a
 * search is done with those drawn at its first values. They may be bad ones where it ends, so draw again there and
 * search once more. */
typedef struct espi_inducing {
    const esp_dataset *data;
    size_t pivots;
    uint32_t *pivot;      /* rows of the data, increasing */
    esp_dataset *support; /* these rows, with the columns that the kernel uses */
    espi_low_rank bound;
} espi_inducing;

/* Draws `count` pivots, or fewer where the rest would be 0 but for rounding, at the kernel's present values, in
 * place of earlier ones. `inducing` is zeros at first; `data` must outlive it. O(n M^2), M + 1 rows of the kernel,
 * memory as espi_low_rank_new. On failure it is as it was. */
esp_status espi_inducing_choose(espi_inducing *inducing, const esp_kernel *kernel, const esp_dataset *data,
                                size_t count, uint64_t seed, const esp_run *run, esp_error *err);
/* The same with these pivots, increasing rows of the data, which are copied. */
esp_status espi_inducing_take(espi_inducing *inducing, const esp_kernel *kernel, const esp_dataset *data,
                              const uint32_t *pivot, size_t pivots, const esp_run *run, esp_error *err);
void espi_inducing_free(espi_inducing *inducing);

/* Solves at the kernel's present values: inducing->bound has what is found. Unless `gradient` is NULL, adds dF / d
 * place to gradient[place] (hyper.h). M rows of the kernel; as many gradients of rows. */
esp_status espi_inducing_evaluate(espi_inducing *inducing, const esp_kernel *kernel, const double *target, double noise,
                                  bool constant, const esp_run *run, double *gradient, esp_error *err);

#endif
