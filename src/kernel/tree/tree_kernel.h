/* What the tree kernels st, sst and sasst share: bound to data (tree_kernel.c) and growing (tree_growing.c). */
#ifndef ESPI_KERNEL_TREE_TREE_KERNEL_H
#define ESPI_KERNEL_TREE_TREE_KERNEL_H

#include "kernel/expression/growing.h"

/* lambda and alpha of a production, by its label. */
void espi_tree_decay(const espi_leaf *leaf, const espi_forest *forest, size_t production, double *lambda,
                     double *alpha);

typedef enum espi_tree_algorithm { ESPI_DAG, ESPI_FTK, ESPI_QTK } espi_tree_algorithm;

extern const espi_growing_class espi_tree_growing;

#endif
