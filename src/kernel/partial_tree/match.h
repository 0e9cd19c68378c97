/* What match.c and cells.c share while a tree is matched: columns, sums, and the cells of the current node. */
#ifndef ESPI_KERNEL_PARTIAL_TREE_MATCH_H
#define ESPI_KERNEL_PARTIAL_TREE_MATCH_H

#include "kernel/tree/pool.h"
#include "kernel/partial_tree/partial_tree.h"

typedef struct espi_ptk_column { /* of the pool: excess of a node over the places of its group */
    double *value;               /* lane after lane */
    size_t capacity;
    uint32_t group;
} espi_ptk_column;

typedef struct espi_ptk_sum { /* w of a group that several nodes of the tree belong to */
    uint32_t group;
    double *w; /* lane after lane */
    size_t capacity;
    uint32_t *shape; /* where w is not 0 */
    size_t shapes, shape_capacity;
    uint32_t column; /* the group's newest ... */
    size_t node;     /* ... and the node it was made for; column ESPI_NO_NODE: none */
} espi_ptk_sum;

typedef struct espi_ptk_met { /* a shape that has cells with the current node */
    uint32_t shape;
    uint32_t n;           /* its vertices in trees before `to` */
    uint32_t first, last; /* its cells, a chain in order of k, then l */
    size_t cells;
} espi_ptk_met;

typedef struct espi_ptk_cell {
    const double *base;   /* the constant of the two children, all lanes */
    const double *column; /* of the node's child, for the excess; NULL: there is none */
    uint32_t k, l;        /* positions in the node and in the shape */
    uint32_t next;        /* cell of the same shape */
    uint32_t stride;      /* of the column: from lane to lane */
} espi_ptk_cell;

struct espi_ptk_matcher {
    const espi_ptk_values *values;
    const espi_ptk_index *index;
    const espi_ptk_link *link;
    const esp_run *run;
    const espi_ptk_tree *tree; /* the current one */
    size_t to, lanes;
    uint32_t limit; /* shapes before this one are in trees before `to` */
    espi_pool pool;
    espi_ptk_column *column;
    size_t columns, column_capacity;
    espi_ptk_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    uint32_t *sum_of;                    /* per group: number + 1 of its sum; 0: none */
    bool *summed;                        /* per shape: listed in its group's sum */
    uint32_t *met_at;                    /* per shape: number + 1 among `met`; 0: none */
    espi_ptk_met *met;
    size_t mets, met_capacity;
    bool together; /* the cells of all these shapes are there; else there are too many to keep */
    espi_ptk_cell *cell;
    size_t cells, cell_capacity;
    espi_ptk_cells table; /* the cells of one shape, with their values for vertices side by side */
    uint16_t *counts;     /* per tree: a sum of counts of names; 0 between uses */
    size_t steps;         /* since run was asked */
};

/* How many vertices of a shape lie in trees before `to`; the first does. */
static inline uint32_t espi_ptk_reach(const espi_ptk_matcher *m, const struct espi_ptk_block *b)
{
    uint32_t low = 1, high = b->vertices;
    if (high == 1) return 1;
    const uint32_t *first = m->index->first + b->vertex;
    if (first[high - 1] < m->to) return high;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (first[middle] < m->to) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Finds the shapes that have cells with a node, as m->met, and, unless these are too many to keep, all cells. False:
 * out of memory. */
bool espi_ptk_meet(espi_ptk_matcher *matcher, const espi_ptk_node *node);
/* Fills the column of the node over all vertices of these shapes. */
esp_status espi_ptk_fill(espi_ptk_matcher *matcher, const espi_ptk_node *node, double *column, esp_error *err);

#endif
