/* A tree as plain arrays of its nodes, children before parents: what the pairwise algorithms work on. */
#ifndef ESPI_KERNEL_TREE_FLAT_H
#define ESPI_KERNEL_TREE_FLAT_H

#include "data/forest.h"
#include "kernel/tree/dag.h"

typedef struct espi_flat {
    size_t nodes;         /* inner nodes */
    uint32_t *production; /* in a numbering shared with the other tree; ESPI_NO_NODE: occurs only here */
    size_t *first;        /* node i has the inner children child[first[i] .. first[i+1]) */
    uint32_t *child;      /* node numbers */
    uint32_t *sorted;     /* the nodes, ordered by production */
    uint32_t *place;      /* of a node within the run of its production in `sorted` */
    size_t runs;          /* productions: run r is sorted[run[r] .. run[r+1]) */
    size_t *run;
    size_t capacity[6]; /* of the arrays above */
} espi_flat;

/* Lays out a tree; `map` takes the forest's productions to shared numbers (NULL: they are shared already). A zeroed
 * flat may be filled again and again. False if memory is out. */
bool espi_flat_fill(espi_flat *flat, const espi_forest *forest, espi_ref root, const uint32_t *map);
void espi_flat_free(espi_flat *flat);
size_t espi_flat_bytes(const espi_flat *flat); /* of its arrays */

/* Scratch for espi_ftk and espi_qtk; zeroed is empty. */
typedef struct espi_pair_scratch {
    double *delta;
    size_t *base;
    uint32_t *from, *count; /* of the run in the second tree that a node of the first meets */
    size_t capacity[4];
} espi_pair_scratch;
void espi_pair_scratch_free(espi_pair_scratch *scratch);

/* The kernel of two trees by the fast (FTK: equal productions only) and the quadratic algorithm (QTK: all pairs of
 * nodes) of Moschitti 2006. Written from the definition, without the DAG: references and baselines for it.
 * False if memory is out. */
bool espi_ftk(const espi_flat *a, const espi_flat *b, const espi_decay *decay, espi_pair_scratch *scratch,
              double *value);
bool espi_qtk(const espi_flat *a, const espi_flat *b, const espi_decay *decay, espi_pair_scratch *scratch,
              double *value);

#endif
