/* A sum of trees folded into the annotated DAG (Aiolli et al. 2007): adding a tree with coefficient c inserts its
 * subtrees and adds c to f(u) for every occurrence of a subtree u; then
 *
 *     sum over the trees of c(T) K(T, x)  =  sum_u f(u) w(u)          (w as in dag.h) */
#ifndef ESPI_KERNEL_TREE_WEIGHTS_H
#define ESPI_KERNEL_TREE_WEIGHTS_H

#include "kernel/tree/dag.h"

typedef struct espi_tree_weights { /* of zeros but for dag.scores_only and the width: none yet */
    espi_dag dag;
    size_t width;     /* coefficients per tree */
    double **f;       /* per group: output k, rank r at f[group][k * capacity[group] + r]; NULL: none yet */
    size_t *capacity; /* per group: that of the group in the DAG, of pre-terminals 1 */
    size_t groups, room;
} espi_tree_weights;

/* Adds coefficient[0 .. width) of a tree, which may have been added before. False if memory is out: then the weights
 * can only be freed. */
bool espi_tree_weights_add(espi_tree_weights *weights, const espi_plan *plan, const double *coefficient);
void espi_tree_weights_free(espi_tree_weights *weights); /* what is left is none yet, of the same width */
size_t espi_tree_weights_bytes(const espi_tree_weights *weights);

#endif
