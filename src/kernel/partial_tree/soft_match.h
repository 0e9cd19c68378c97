/* What soft_match.c and soft_cells.c share while a tree is matched: columns, sums and the cells of the node at hand. */
#ifndef ESPI_SOFT_MATCH_H
#define ESPI_SOFT_MATCH_H

#include "kernel/tree/pool.h"
#include "kernel/partial_tree/soft_dag.h"

typedef struct espi_soft_slot { /* what a column of the pool holds, over the places of a group */
    double *value;              /* lane after lane */
    size_t capacity;
    uint32_t group;
} espi_soft_slot;

typedef struct espi_soft_sum { /* w of a group that several nodes of the tree belong to */
    uint32_t group;
    double *w; /* lane after lane */
    size_t capacity;
    uint32_t *shape; /* where w is not 0 */
    size_t shapes, shape_capacity;
    uint32_t slot; /* the group's newest column ... */
    size_t node;   /* ... and the node it was made for; slot ESPI_NO_NODE: none */
} espi_soft_sum;

typedef struct espi_soft_met { /* a shape that has cells with the node at hand */
    uint32_t shape;
    uint32_t n;           /* its vertices in trees before `to` */
    uint32_t first, last; /* its cells, a chain in order of k, then l */
    size_t cells;
} espi_soft_met;

typedef struct espi_soft_source {
    const double *column; /* NULL: the value is `base` */
    const double *base;
    uint32_t k, l;   /* positions in the node and in the shape */
    uint32_t next;   /* cell of the same shape */
    uint32_t stride; /* of the column: from lane to lane */
} espi_soft_source;

struct espi_soft_matcher {
    const espi_soft_rules *rules;
    const espi_soft_dag *dag;
    const espi_soft_link *link;
    const esp_run *run;
    const espi_soft_plan *plan; /* at hand */
    size_t to, lanes;
    size_t stride;  /* of the column that is being filled: from lane to lane */
    uint32_t limit; /* shapes before this one are in trees before `to` */
    espi_pool pool;
    espi_soft_slot *slot;
    size_t slots, slot_capacity;
    espi_soft_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    uint32_t *sum_of;                    /* per group: number + 1 of its sum; 0: none */
    bool *summed;                        /* per shape: listed in its group's sum */
    uint32_t *met_at;                    /* per shape: number + 1 among `met`; 0: none */
    espi_soft_met *met;
    size_t mets, met_capacity;
    espi_soft_source *cell;
    size_t cells, cell_capacity;
    uint32_t *k, *l; /* of the cells of one shape, as the kernel reads them */
    size_t k_capacity, l_capacity;
    double *value; /* of the cells for vertices side by side */
    size_t value_capacity;
    void *scratch; /* the kernel's */
    size_t scratch_capacity;
    double *rows; /* of a gradient: those of all lanes */
    size_t row_capacity;
    uint16_t *counts; /* per tree: a sum of counts of atoms; 0 between uses */
    size_t work;      /* since run was asked */
};

/* How many vertices of a shape lie in trees before `to`; the first does. */
static inline uint32_t espi_soft_reach(const espi_soft_matcher *m, const struct espi_soft_group *q)
{
    uint32_t low = 1, high = q->vertices;
    if (high == 1) return 1;
    const uint32_t *first = m->dag->first + q->vertex;
    if (first[high - 1] < m->to) return high;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (first[middle] < m->to) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Finds the shapes that have cells with a node, as m->met, and, unless these are too many to keep (*together false),
 * all cells. False: memory is out. */
bool espi_soft_meet(espi_soft_matcher *matcher, const espi_soft_node *node, bool *together);
/* Fills the column of the node over all vertices of these shapes. */
esp_status espi_soft_fill(espi_soft_matcher *matcher, const espi_soft_node *node, bool together, double *column,
                          esp_error *err);

#endif
