/* Examples that are divided among the ranks of a group, each of which has its share in memory, and sums of kernels over
 * all of them (folded_sum.h). Rank 0 leads: it counts the examples of all shares in the order of the ranks, says what
 * is done, and has the results. The others serve.
 *
 *     score     every rank scores examples of its own share, and rank 0 gets the numbers
 *     hold      examples are sent to all ranks, as trees, sequences and vectors; they are "held" from then on
 *     gram      kernel values among held examples, some rows by each rank
 *     add       coefficients of held examples change in the sum, which all ranks have
 *
 * A score depends on the example, on the others with coefficients and on the order in which these came, and not on who
 * computes it: the results are those of one process that has all examples, if the kernel's values are. */
#ifndef ESPI_KERNEL_EVALUATE_SHARES_H
#define ESPI_KERNEL_EVALUATE_SHARES_H

#include "kernel/evaluate/alike.h"
#include "kernel/evaluate/folded_sum.h"

typedef struct espi_shares espi_shares;

/* By all ranks of run->group, which must outlive the shares. `share`, which may be empty unless all are, is changed and
 * can only be freed afterwards; it has examples of other ranks then. ESP_ERR_PARAM if columns that the kernel uses
 * differ, ESP_ERR_PARSE if there are no examples or no targets. */
esp_status espi_shares_open(const esp_kernel *kernel, esp_dataset *share, const esp_run *run, espi_shares **out,
                            esp_error *err);
void espi_shares_free(espi_shares *shares);

const esp_kernel *espi_shares_kernel(const espi_shares *shares); /* with the names of its columns */
size_t espi_shares_count(const espi_shares *shares);             /* examples of all */
/* At rank 0: a dataset of nothing but the targets of all examples; NULL: there are none. */
const esp_dataset *espi_shares_targets(const espi_shares *shares);
/* A number that tells the examples apart, however they are divided. */
uint64_t espi_shares_digest(const espi_shares *shares);
/* The row of the share that has a held example. */
uint32_t espi_shares_row(const espi_shares *shares, uint32_t example);

/* All ranks but rank 0: does what rank 0 says, until that ends. */
esp_status espi_shares_serve(espi_shares *shares, esp_error *err);
/* Rank 0: lets the others go, unless `status`, which it returns, is a failure: that is told to them. Says in messages
 * what each of them did. */
esp_status espi_shares_end(espi_shares *shares, esp_status status, esp_error *err);

/* Rank 0: what is behind a folded sum of shares. There is one at a time. */
esp_status espi_shares_sum_new(espi_shares *shares, size_t outputs, esp_error *err);
void espi_shares_sum_free(espi_shares *shares);
esp_status espi_shares_score(espi_shares *shares, const uint32_t *example, size_t count, double *score, esp_error *err);
esp_status espi_shares_hold(espi_shares *shares, const uint32_t *example, size_t count, esp_error *err);
esp_status espi_shares_add(espi_shares *shares, const uint32_t *example, size_t count, const double *coefficient,
                           esp_error *err);
void espi_shares_clear(espi_shares *shares);
/* Rows are numbers of examples. */
esp_status espi_shares_grams(espi_shares *shares, espi_gram_block *block, size_t blocks, esp_error *err);
esp_status espi_shares_alike(espi_shares *shares, const espi_alike *alike, esp_error *err);
size_t espi_shares_bytes(const espi_shares *shares);

#endif
