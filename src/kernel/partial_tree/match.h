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
    uint32_t *block, *shape; /* where w is not 0: in whole blocks, and in shapes with rare labels */
    size_t blocks, shapes, block_capacity, shape_capacity;
    uint32_t column; /* the group's newest ... */
    size_t node;     /* ... and the node it was made for; column ESPI_NO_NODE: none */
} espi_ptk_sum;

typedef struct espi_ptk_met { /* a block that has cells with the current node */
    uint32_t block;
    uint32_t n; /* its vertices in trees before `to` */
} espi_ptk_met;

typedef struct espi_ptk_met_kin { /* a shape that has cells with it in rare labels */
    uint32_t shape;
    uint32_t n;
    bool apart; /* its block is not among those */
} espi_ptk_met_kin;

typedef struct espi_ptk_side { /* a child of the current node */
    const double *column;      /* its excess; NULL: it has none */
    size_t stride;             /* from lane to lane */
    bool inner;
} espi_ptk_side;

typedef struct espi_ptk_cell {
    uint32_t k, l; /* positions in the node and in the shape */
    bool inner;    /* both are inner nodes */
} espi_ptk_cell;

enum {
    ESPI_PTK_NARROW = 512, /* cells of a vertex that is computed on its own, at most */
    ESPI_PTK_EIGHT = 8,    /* such vertices, side by side */
    ESPI_PTK_AHEAD = 8,    /* vertices whose cells are found while their values come from memory */
    ESPI_PTK_HEIGHTS = 7   /* powers of 2; vertices of about one number of children are put together */
};

typedef struct espi_ptk_target { /* where the excess of a vertex goes */
    double *out;
    double *w; /* to which it is added, `count` times; NULL: nowhere */
    double count;
} espi_ptk_target;

typedef struct espi_ptk_narrow { /* vertices that wait for others; zeroed is empty */
    struct espi_ptk_batch {
        double *value; /* Delta of child l of a vertex and child k of the node: value[(l * width + k) * EIGHT + vertex];
                          0 where there is no cell or no vertex */
        size_t capacity;
        size_t rows; /* the most children that one of them has */
        size_t count;
        espi_ptk_target target[ESPI_PTK_EIGHT];
    } batch[ESPI_PTK_HEIGHTS];
    struct espi_ptk_found {
        espi_ptk_target target;
        size_t cells, rows; /* cells: 0 if it is none */
    } found[ESPI_PTK_AHEAD];
    size_t next; /* of these, modulo their number */
    struct espi_ptk_one_cell {
        uint16_t l, k;  /* child l of the vertex and child k of the node */
        uint32_t inner; /* 1: both are inner nodes; 0 */
        const double *excess;
    } * cell; /* of each: ESPI_PTK_NARROW */
    double constant[2], zero;
    size_t most; /* children of such a vertex of the current node; 0: none */
    double *ended;
    size_t ended_capacity;
} espi_ptk_narrow;
void espi_ptk_narrow_free(espi_ptk_narrow *narrow);

struct espi_ptk_matcher {
    const espi_ptk_values *values;
    const espi_ptk_index *index;
    const espi_ptk_link *link;
    const esp_run *run;
    const espi_ptk_tree *tree; /* the current one */
    size_t to, lanes;
    uint32_t limit; /* blocks before this one are in trees before `to` */
    espi_pool pool;
    espi_ptk_column *column;
    size_t columns, column_capacity;
    espi_ptk_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    uint32_t *sum_of;                    /* per group: number + 1 of its sum; 0: none */
    bool *summed, *kin_summed;           /* per block and shape: listed in its group's sum */
    uint32_t *met_at;                    /* per block: number + 1 among `met`; 0: none */
    espi_ptk_met *met;
    size_t mets, met_capacity;
    bool *kin_met; /* per shape: among `kin` */
    espi_ptk_met_kin *kin;
    size_t kins, kin_capacity;
    espi_ptk_side *side; /* the children of the current node */
    size_t side_capacity;
    uint32_t *label; /* per list: the number of its label among those of these children; else 0 */
    uint32_t *list;  /* per such number: the list */
    size_t labels, list_capacity;
    uint32_t *sorted; /* these children in order of such numbers ... */
    uint32_t *begin;  /* ... those of one: sorted[begin[number] .. begin[number + 1]) */
    size_t sorted_capacity, begin_capacity;
    espi_ptk_cell *cell;
    size_t cells, cell_capacity;
    double *kin_value; /* of vertices that do not lie side by side */
    double *saved;     /* of w, at the vertices of `kin` */
    size_t kin_value_capacity, saved_capacity;
    espi_ptk_narrow narrow;
    espi_ptk_cells table; /* the cells of one shape, with their values for vertices side by side */
    uint16_t *counts;     /* per tree: a sum of counts of names; 0 between uses */
    size_t steps;         /* since run was asked */
};

/* How many vertices of a block lie in trees before `to`; the first does. */
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

/* Finds the blocks and shapes that have cells with a node, as m->met, m->met_at and m->kin. If it finds any, the column
 * is to be filled. False: out of memory. */
bool espi_ptk_meet(espi_ptk_matcher *matcher, const espi_ptk_node *node);
/* Fills the column of the node over all their vertices, and adds it, `count` times, to w, unless that is NULL. */
esp_status espi_ptk_fill(espi_ptk_matcher *matcher, const espi_ptk_node *node, double *column, double *w, double count,
                         esp_error *err);

/* The excess of a single vertex of a block, of at most m->narrow.most children: at once or at the end. Between start
 * and end, which comes after a failure too, the node stays the same. False: out of memory. */
bool espi_ptk_narrow_start(espi_ptk_matcher *matcher);
bool espi_ptk_narrow_add(espi_ptk_matcher *matcher, const struct espi_ptk_block *block, size_t rank,
                         const espi_ptk_target *to);
bool espi_ptk_narrow_end(espi_ptk_matcher *matcher, bool ok);

typedef struct espi_ptk_many { /* vertices with one cell or two */
    struct espi_ptk_reading {
        double base;          /* of Delta ... */
        const double *column; /* ... and the excess: column[place[r]]; NULL: 0 */
        const uint32_t *place;
    } cell[2];
    size_t cells, n;
    double factor; /* lambda^gaps, if the second comes behind the first in a chain; else 0 */
    double mu;
    double *out; /* mu S of vertex r < n */
    double *w;   /* to which it is added, `count` times */
    double count;
} espi_ptk_many;
void espi_ptk_sum_many(const espi_ptk_many *many);

/* w[r] += count * col[r] */
void espi_ptk_add(double *w, const double *col, size_t n, double count);

#endif
