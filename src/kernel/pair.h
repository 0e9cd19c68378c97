/* The kernel of single pairs of trees: of a tree with itself, and of any two in wide numbers: slow, of any size and
 * depth, never overflowing, with columns as in dag.h over the different subtrees of the two. */
#ifndef ESPI_PAIR_H
#define ESPI_PAIR_H

#include "kernel/dag.h"
#include "kernel/wide.h"

/* K(T, T) in plain doubles for all trees, whose groups are fewer than `groups`; not finite where it overflows. */
esp_status espi_self_values(const espi_plans *plans, const espi_decay *decay, size_t groups, const esp_run *run,
                            double *value, esp_error *err);

/* The same for single trees; a zeroed scratch is empty. `groups`: more than those of the plan. */
typedef struct espi_self_scratch {
    double *delta;   /* small trees: a table of pairs */
    uint32_t *local; /* large ones: group -> its number within the tree; ESPI_NO_NODE: none yet */
    size_t groups;
} espi_self_scratch;
esp_status espi_self_value(const espi_plan *plan, const espi_decay *decay, size_t groups, espi_self_scratch *scratch,
                           const esp_run *run, double *value, esp_error *err);
void espi_self_scratch_free(espi_self_scratch *scratch);

/* False if memory is out. */
bool espi_pair_wide(const espi_plan *a, const espi_plan *b, const espi_decay *decay, espi_wide *value);

#endif
