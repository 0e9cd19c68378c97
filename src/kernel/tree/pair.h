/* The kernel of single pairs of trees: of a tree with itself, and of any two in wide numbers: slow, of any size and
 * depth, never overflowing, with columns as in dag.h over the different subtrees of the two. */
#ifndef ESPI_KERNEL_TREE_PAIR_H
#define ESPI_KERNEL_TREE_PAIR_H

#include "kernel/tree/dag.h"
#include "base/wide.h"

/* K(T, T) in plain doubles for all trees, whose groups are fewer than `groups`; not finite where it overflows. */
esp_status espi_self_values(const espi_plans *plans, const espi_decay *decay, size_t groups, const esp_run *run,
                            double *value, esp_error *err);

/* gradient[place] += sum_i weight[i] dK(i, i)/d(what has this place), over all trees; `decay` has places, `places` in
 * all. The sums have a fixed order. */
esp_status espi_self_gradient(const espi_plans *plans, const espi_decay *decay, size_t groups, const double *weight,
                              size_t places, const esp_run *run, double *gradient, esp_error *err);

/* Values of single trees; a zeroed scratch is empty. `groups`: more than those of the plan. */
typedef struct espi_self_scratch {
    double *delta;  /* small trees: a table of pairs */
    double *bar;    /* of gradients: the same, of derivatives by delta ... */
    double *factor; /* ... and those of a pair, each with the product of those before it */
    size_t factors;
    uint32_t *local; /* large ones: group -> its number within the tree; ESPI_NO_NODE: none yet */
    size_t groups;
} espi_self_scratch;
esp_status espi_self_value(const espi_plan *plan, const espi_decay *decay, size_t groups, espi_self_scratch *scratch,
                           const esp_run *run, double *value, esp_error *err);
void espi_self_scratch_free(espi_self_scratch *scratch);

/* The run is asked at times whether to go on; it may be NULL. */
esp_status espi_pair_wide(const espi_plan *a, const espi_plan *b, const espi_decay *decay, const esp_run *run,
                          espi_wide *value, esp_error *err);

#endif
