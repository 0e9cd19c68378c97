/* Rows of a Gram matrix for solvers, in single precision: all of them if they fit the memory allowed, else those that
 * were used last. One-vs-rest problems, folds and values of C share them. */
#ifndef ESPI_LEARN_SVM_ROWS_H
#define ESPI_LEARN_SVM_ROWS_H

#include "kernel/evaluate/bound.h"

typedef struct espi_rows espi_rows;

/* Over all examples of a symmetric bound, which must outlive it. Takes run->memory bytes at most (0: no limit); where
 * not all rows fit, it leaves a quarter of them to the solver. Too little for two rows is ESP_ERR_MEMORY and says how
 * much is needed. */
esp_status espi_rows_new(const espi_bound *bound, const esp_run *run, espi_rows **out, esp_error *err);
/* The same of K(i, j) = sum_p feature[p * count + i] feature[p * count + j], p < features, which must outlive it. */
esp_status espi_rows_of_features(const double *feature, size_t features, size_t count, const esp_run *run,
                                 espi_rows **out, esp_error *err);
/* What is left to the solver; 0: as much as it likes. */
size_t espi_rows_spare(const espi_rows *rows);
/* Over some of the examples of `all`, in this order; shares what `all` has. `all` must outlive it. */
esp_status espi_rows_subset(espi_rows *all, const uint32_t *example, size_t count, espi_rows **out, esp_error *err);
void espi_rows_free(espi_rows *rows);

size_t espi_rows_count(const espi_rows *rows);
/* K(i, j) for all j < count. The row stays valid until the second next call. Not for several threads at once unless
 * espi_rows_complete. */
esp_status espi_rows_get(espi_rows *rows, size_t i, const float **row, esp_error *err);
/* K(i, i), in single precision. */
const float *espi_rows_diagonal(const espi_rows *rows);
/* Whether the whole matrix is there; then any number of threads may ask. */
bool espi_rows_complete(const espi_rows *rows);
/* Rows that had to be computed so far. */
size_t espi_rows_computed(const espi_rows *rows);

#endif
