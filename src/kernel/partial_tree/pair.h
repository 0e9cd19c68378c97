/* algorithm=pair: the kernel tree by tree, as published. A reference and a baseline for the matching of all trees at
 * once, which shares no code with it. */
#ifndef ESPI_KERNEL_PARTIAL_TREE_PAIR_H
#define ESPI_KERNEL_PARTIAL_TREE_PAIR_H

#include "kernel/partial_tree/partial_tree.h"

typedef struct espi_ptk_flat { /* a tree as plain arrays of its nodes, leaves included, children before parents */
    size_t nodes;
    uint32_t *label; /* symbols, in numbers shared with the other tree */
    size_t *first;   /* node i has the children child[first[i] .. first[i+1]); a leaf has none */
    uint32_t *child; /* node numbers */
    uint32_t *child_label;
    uint32_t *sorted; /* the nodes, ordered by label */
    uint32_t *place;  /* of a node within the run of its label in `sorted` */
    size_t runs;      /* labels */
    struct espi_ptk_run {
        uint32_t label, from; /* sorted[from .. from of the next run) */
    } * run;                  /* in order of labels, and one more */
} espi_ptk_flat;

/* Lays out a tree in a zeroed flat; `symbol` takes the forest's symbols to shared numbers (NULL: they are). False:
 * out of memory; what is there is to be freed. */
bool espi_ptk_flat_fill(espi_ptk_flat *flat, const espi_forest *forest, espi_ref root, const uint32_t *symbol);
void espi_ptk_flat_free(espi_ptk_flat *flat);

typedef struct espi_ptk_scratch { /* zeroed is empty */
    double *delta;                /* of pairs of nodes with equal labels */
    size_t *base;                 /* per node of the first tree: its first such pair ... */
    uint32_t *from, *count;       /* ... and the nodes of the second tree that it meets: sorted[from .. from + count) */
    double *ended;
    size_t capacity[5];
    const esp_run *run; /* the calling thread's, to ask whether to go on; NULL in others */
    size_t steps;       /* since it was asked */
} espi_ptk_scratch;
void espi_ptk_scratch_free(espi_ptk_scratch *scratch);

/* K(a, b): every pair of nodes with equal labels once, in O(product of their numbers of children). */
esp_status espi_ptk_pair(const espi_ptk_flat *a, const espi_ptk_flat *b, const espi_ptk_values *values,
                         espi_ptk_scratch *scratch, double *value, esp_error *err);

#endif
