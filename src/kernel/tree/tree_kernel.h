/* What the tree kernels st, sst and sasst share: bound to data (tree_kernel.c), growing (tree_growing.c) and folded
 * (tree_folding.c). */
#ifndef ESPI_KERNEL_TREE_TREE_KERNEL_H
#define ESPI_KERNEL_TREE_TREE_KERNEL_H

#include "kernel/expression/folding.h"
#include "kernel/expression/growing.h"

/* lambda and alpha of a production, by its label. */
void espi_tree_decay(const espi_leaf *leaf, const espi_forest *forest, size_t production, double *lambda,
                     double *alpha);
void espi_tree_decay_of(const espi_leaf *leaf, const char *label, size_t size, double *lambda, double *alpha);
/* The same of all productions of a forest, at the places that `shared` says (NULL: their numbers), and where the values
 * stand among the parameters of the leaf (NULL: not wanted). There are far more productions than labels, and there may
 * be many values by label: each label is looked up once. False if memory is out. */
bool espi_tree_decays(const espi_leaf *leaf, const espi_forest *forest, const uint32_t *shared, double *lambda,
                      double *alpha, uint32_t *lambda_place, uint32_t *alpha_place);

typedef enum espi_tree_algorithm { ESPI_DAG, ESPI_FTK, ESPI_QTK } espi_tree_algorithm;

extern const espi_growing_class espi_tree_growing;
extern const espi_folding_class espi_tree_folding;

#endif
