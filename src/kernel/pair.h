/* The kernel of single pairs of trees: of a tree with itself, and of any two in wide numbers: slow, of any size and
 * depth, never overflowing, with columns as in dag.h over the different subtrees of the two. */
#ifndef ESPI_PAIR_H
#define ESPI_PAIR_H

#include "kernel/dag.h"
#include "kernel/wide.h"

typedef struct espi_tree_side {
    const espi_forest *forest;
    const uint32_t *map; /* its productions -> shared numbers (ESPI_NO_NODE: none); NULL: they are shared */
} espi_tree_side;

/* K(T, T) in plain doubles for all trees of one side; not finite where it overflows. Trees are taken as the list of
 * their different subtrees, a large one as a DAG of its own. False if memory is out. */
bool espi_self_values(const espi_tree_side *side, const espi_decay *decay, double *value);

/* `decay` is in shared numbers. False if memory is out. */
bool espi_pair_wide(const espi_tree_side *a, espi_ref root_a, const espi_tree_side *b, espi_ref root_b,
                    const espi_decay *decay, espi_wide *value);

#endif
