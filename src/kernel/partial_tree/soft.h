/* Soft matching of trees: kernels in which two nodes can match though their productions differ, as ptk.
 *
 *     K(T1, T2)   = sum over the nodes of constant(n1, n2) + excess(n1, n2)
 *     excess(u, v) = children(all cells (k, l) of the children of u and v that can be aligned),  equal groups; else 0
 *     value of a cell (k, l) = base(k, l) + excess(child k of u, child l of v)
 *
 * `constant` depends on what the nodes are called, not on what is below them: it comes from counts per tree of such
 * names (atoms), without looking at a vertex. `excess` is 0 unless at least one cell exists; it is computed over the
 * shared forest. Every different subtree of the columns is a vertex; vertices of one group key and one sequence of
 * child codes have one shape, and against a subtree v all vertices of a shape have the same cells. So for each
 * different subtree v of a tree, bottom up: an index (group, key of a child) -> (shape, position) gives the cells shape
 * by shape; `children` runs over all vertices of a shape side by side; the results are the column of v over the
 * vertices of its group, dropped when the last parent of v is done. Added up they are w(u), scattered over the
 * occurrences of u for a Gram row, or multiplied with f(u) for a score.
 *
 * A kernel describes itself by espi_soft_rules (below) and takes the functions espi_soft_* as its class's: see
 * ptk_kernel.c. Nothing recurses; a row costs O(cells that exist); memory is O(largest group * live columns). */
#ifndef ESPI_SOFT_H
#define ESPI_SOFT_H

#include "kernel/expression/kernel.h"

/* ---------------------------------------------------------- what a kernel says */

typedef struct espi_soft_child {
    uint32_t code; /* all that cells need to know of the child */
    espi_ref node; /* whose column the cells of this child read; ESPI_NO_NODE: none, as for leaves */
} espi_soft_child;

typedef struct espi_soft_sketch { /* a vertex as the kernel sees it */
    uint32_t group;               /* only vertices of one group meet */
    espi_soft_child *child;       /* room for as many as the vertex has children, at least one */
    size_t children;              /* as many as are set, in their order; 0: the vertex has no excess with any other */
} espi_soft_sketch;

typedef struct espi_soft_shape { /* what vertices that look alike share */
    uint32_t group;
    const uint32_t *code; /* of the children */
    size_t children;
} espi_soft_shape;

typedef enum espi_soft_kind {
    ESPI_APART,    /* no cell */
    ESPI_CONSTANT, /* the value is `base` */
    ESPI_DEEP      /* the value is `base` + excess of the children; both have a node, and the same group */
} espi_soft_kind;

typedef struct espi_soft_cell {
    espi_soft_kind kind;
    const double *base; /* its lanes (lanes.h), always all; belongs to the rules */
} espi_soft_cell;

/* The cells of two shapes, in order of k, then l; and their values for n vertices. Very many cells come in several
 * calls, for children [from, to) of p each, in order; between these `scratch` and `out` stay as they were left. */
typedef struct espi_soft_meeting {
    espi_soft_shape p, q;
    size_t from, to;       /* 0 and p.children: all */
    const uint32_t *k, *l; /* positions of cell c in p and in q */
    size_t cells;          /* at least one if all come at once */
    const double *value;   /* of cell c and vertex r: value[c * n + r]; with lanes: value[(c * lanes + lane) * n + r] */
    size_t lanes, stride;  /* 1, or those of the rules; of `out`: from lane to lane */
    const espi_wide *wide; /* the same for children_wide, n = 1 */
    size_t n;
    void **scratch; /* kept from call to call: espi_reserve(scratch, capacity, ...); one per thread */
    size_t *capacity;
} espi_soft_meeting;

#define ESPI_NO_ATOM UINT64_MAX

/* A kernel's own rules start with this. Numbers of groups, codes and atoms must mean the same on both sides: symbols
 * come as espi_soft_symbol gives them. All functions must be symmetric in the two trees and may be called by several
 * threads. */
typedef struct espi_soft_rules espi_soft_rules;
struct espi_soft_rules {
    size_t lanes;
    /* Sketches an inner vertex; a vertex always looks the same. */
    void (*sketch)(const espi_soft_rules *rules, const espi_forest *forest, const uint32_t *symbol, espi_ref vertex,
                   espi_soft_sketch *out);
    /* Children whose codes have different keys are apart. */
    uint32_t (*key)(const espi_soft_rules *rules, uint32_t code);
    espi_soft_cell (*cell)(const espi_soft_rules *rules, uint32_t code_p, uint32_t code_q);
    /* out[lane * stride + r] = excess, r < n; of the last call for two shapes. False: memory is out. */
    bool (*children)(const espi_soft_rules *rules, const espi_soft_meeting *meeting, double *out);
    bool (*children_wide)(const espi_soft_rules *rules, const espi_soft_meeting *meeting, espi_wide *out);

    /* The constant part: the atom of a node, leaf or vertex (ESPI_NO_ATOM: none), and the atoms that it meets, one
     * after the other from number 0, with the value of one such pair, all lanes. False: there are no more. */
    uint64_t (*atom)(const espi_soft_rules *rules, const espi_forest *forest, const uint32_t *symbol, espi_ref node);
    bool (*partner)(const espi_soft_rules *rules, uint64_t atom, size_t number, uint64_t *partner,
                    const double **value);
};

/* The number of a symbol on both sides: symbol[number in its forest], or the number itself where `symbol` is NULL. */
static inline uint32_t espi_soft_symbol(const uint32_t *symbol, uint32_t number)
{
    return symbol == NULL ? number : symbol[number];
}

/* -------------------------------------------------- what a kernel gets for it */

/* The functions of a kernel class (kernel.h). A kernel's bind fills its rules and calls espi_soft_bind; its part starts
 * with espi_soft_part. */
typedef struct espi_soft_part {
    espi_part part;
    const espi_soft_rules *rules;      /* outlives the part */
    const struct espi_soft_part *base; /* whose side of the columns is used: this part's own, or that of another */
    const espi_forest *rows, *cols;    /* may be the same */
    uint32_t *symbol;                  /* of the rows' symbols on both sides; NULL: rows is cols */
    struct espi_soft_trees *row_trees, *col_trees; /* row_trees NULL: rows is cols */
    struct espi_soft_dag *dag;                     /* of the columns */
    struct espi_soft_link *link;                   /* from the rows to the DAG */
} espi_soft_part;

/* Binds a zeroed espi_soft_part whose class and rules are set; after a failure, and in the end, espi_soft_clear. */
esp_status espi_soft_bind(espi_soft_part *part, const espi_column *rows, const espi_column *cols,
                          const espi_soft_part *like, esp_error *err);
void espi_soft_clear(espi_soft_part *part);

void *espi_soft_workspace_new(const espi_part *part, const esp_run *run);
void espi_soft_workspace_free(void *workspace);
esp_status espi_soft_row(const espi_part *part, void *workspace, size_t row, size_t from, size_t to, double *out,
                         esp_error *err);
esp_status espi_soft_diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err);
esp_status espi_soft_pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j,
                          espi_wide *value, esp_error *err);
esp_status espi_soft_fold(const espi_part *part, const double *coefficient, size_t outputs, void **folded,
                          esp_error *err);
void espi_soft_folded_free(void *folded);
esp_status espi_soft_score(const espi_part *part, const void *folded, void *workspace, size_t row, double *score,
                           esp_error *err);
esp_status espi_soft_gradient(const espi_part *part, void *workspace, size_t row, size_t from, size_t to,
                              const double *weight, double *gradient, esp_error *err);
esp_status espi_soft_gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                       double *gradient, esp_error *err);

#endif
