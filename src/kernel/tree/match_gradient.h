/* Gradients of the rows that match.c computes, in reverse: for all lambda and alpha at once. */
#ifndef ESPI_KERNEL_TREE_MATCH_GRADIENT_H
#define ESPI_KERNEL_TREE_MATCH_GRADIENT_H

#include "kernel/tree/dag.h"

/* What gradients of trees against a DAG need; one per thread. */
typedef struct espi_backward espi_backward;
/* All pointers must outlive the result; `decay` has places. `run` as for a matcher. NULL if memory is out. */
espi_backward *espi_backward_new(const espi_dag *dag, const espi_decay *decay, const esp_run *run);
void espi_backward_free(espi_backward *backward);

/* gradient[place] += sum_j weight[j - from] dK/d(what has this place), K of the tree and tree j of the DAG,
 * j = from .. to-1. Takes about two rows, and memory for two columns per node of the tree that is not like another. */
esp_status espi_backward_row(espi_backward *backward, const espi_plan *plan, size_t from, size_t to,
                             const double *weight, double *gradient, esp_error *err);

#endif
