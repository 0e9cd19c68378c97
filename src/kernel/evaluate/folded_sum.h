/* Sums of kernels over the examples of one dataset, folded into one structure, whose coefficients change again and
 * again: what support vector machines on very many examples are learned with.
 *
 *     f_k(i) = sum_j c_k(j) K(x_i, x_j)
 *
 * Nothing is kept of an example until it has a coefficient. Scores do not depend on which examples are scored together,
 * nor on the number of threads. */
#ifndef ESPI_KERNEL_EVALUATE_FOLDED_SUM_H
#define ESPI_KERNEL_EVALUATE_FOLDED_SUM_H

#include "kernel/evaluate/alike.h"

typedef struct espi_folded_sum espi_folded_sum;
struct espi_shares;

/* Whether the sums of a kernel fold: it is a weighted sum of terms, each a leaf, or the norm of one, that does.
 * ESP_ERR_PARAM names the term that does not. */
esp_status espi_kernel_folds(const esp_kernel *kernel, esp_error *err);

/* Whether each of its leaves has sums of its own (expression/folding.h): the others are slower. */
bool espi_kernel_folds_well(const esp_kernel *kernel);

/* All coefficients are 0. `kernel`, which folds, and `data` must outlive the result. ESP_ERR_RANGE if the kernel of an
 * example with itself, by which it is normalised, is too large for a number. */
esp_status espi_folded_sum_new(const esp_kernel *kernel, const esp_dataset *data, size_t outputs, const esp_run *run,
                               espi_folded_sum **out, esp_error *err);
/* The same at rank 0 over examples that are divided among ranks (shares.h): rows are numbers of examples then. */
esp_status espi_folded_sum_new_shared(struct espi_shares *shares, size_t outputs, espi_folded_sum **out,
                                      esp_error *err);
void espi_folded_sum_free(espi_folded_sum *sum);
/* The data have more rows than before. */
esp_status espi_folded_sum_grow(espi_folded_sum *sum, const esp_run *run, esp_error *err);
/* score[i * outputs + k] of row[i], i < count. ESP_ERR_RANGE if one is too large for a number. */
esp_status espi_folded_sum_score(espi_folded_sum *sum, const uint32_t *row, size_t count, const esp_run *run,
                                 double *score, esp_error *err);
/* Adds coefficient[i * outputs + k] to that of row[i]; where all are 0, nothing is added. After a failure the sum can
 * only be freed. */
esp_status espi_folded_sum_add(espi_folded_sum *sum, const uint32_t *row, size_t count, const double *coefficient,
                               esp_error *err);
/* All coefficients are 0 again, and no example is kept. */
void espi_folded_sum_clear(espi_folded_sum *sum);
/* Kernel values among rows of the data (alike.h). */
esp_status espi_folded_sum_grams(espi_folded_sum *sum, espi_gram_block *block, size_t blocks, const esp_run *run,
                                 esp_error *err);
esp_status espi_folded_sum_alike(espi_folded_sum *sum, const espi_alike *alike, const esp_run *run, esp_error *err);
/* A number that tells apart what the kernel sees of the data; the same where they are divided. False if memory is out.
 */
bool espi_folded_sum_digest(const espi_folded_sum *sum, uint64_t *digest);
size_t espi_folded_sum_bytes(const espi_folded_sum *sum);

#endif
