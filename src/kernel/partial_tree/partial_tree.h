/* The partial tree kernel, ptk (Moschitti, ECML 2006; that of SVM-light-TK and KeLP). Labels are compared as text, and
 * children may be skipped:
 *
 *     K(T1, T2)     = sum over all nodes, leaves included, of Delta(n1, n2)
 *     Delta(n1, n2) = 0                                  the labels differ
 *                   = mu lambda^2 terminal               either is a leaf
 *                   = mu (lambda^2 + S(n1, n2))          otherwise
 *     S(n1, n2)     = sum over J1, J2 of lambda^(g(J1) + g(J2)) prod_i Delta(c1[J1_i], c2[J2_i])
 *
 * J1 and J2 are increasing sequences of children, of one length >= 1; g(J) = last - first + 1 - length are the gaps.
 *
 * Delta of equal labels has two parts. The constant, mu lambda^2 (terminal), depends on the names of the two nodes
 * alone, a name being a label and whether it is a leaf's: it comes from counts of names per tree. The excess, mu S, is
 * 0 unless both are inner nodes and have a cell: a child of the one and a child of the other with equal labels.
 *
 * The excess is computed for one tree against all trees of the columns at once. Every different subtree of the columns
 * is a vertex. Vertices of one label are a group; those of one production, with the same names of children too, have
 * one shape. Words make most shapes differ, and most words are in few of them: a label of children that few shapes of
 * the group have is rare there, and shapes that differ in rare labels only are one block. Unless a rare label of a
 * subtree's children is among theirs, all vertices of a block have the same cells with it. So for each different
 * subtree v of a tree, bottom up: lists (group, label of a child) give the blocks it meets, and the shapes of its rare
 * labels; S is computed for all vertices of a block side by side, and once more for these shapes; the results are the
 * column of v over the vertices of its group, dropped when the last parent of v is done. Added up, the columns are
 * w(u), scattered over the occurrences of u for a Gram row, or multiplied with f(u) for a score. Nothing recurses; a
 * row costs O(cells that exist); memory is O(largest group * live columns).
 *
 *     ptk_kernel.c    the kernel class: parameters, binding to data, and which of the files below computes what
 *     trees.c         trees as lists of their different subtrees, with shapes and counts of names
 *     shape_index.c   the columns: vertices by block, blocks by label, occurrences; and the link of the rows to them
 *     match.c         one tree against the index: a row, a gradient, or scores
 *     meet.c          ... the blocks and shapes that a node meets
 *     cells.c         ... its cells with each of them, and their values
 *     children.c      ... S from these
 *     broad.c         ... the same for many vertices with one cell or two
 *     narrow.c        ... the same for single vertices, eight at a time
 *     self_values.c   K(T, T) of all trees
 *     wide_pair.c     K of any two trees in numbers that do not overflow
 *     pair.c          algorithm=pair: tree by tree as published; shares nothing with the files above
 *     map.c           keys to dense numbers */
#ifndef ESPI_KERNEL_PARTIAL_TREE_PARTIAL_TREE_H
#define ESPI_KERNEL_PARTIAL_TREE_PARTIAL_TREE_H

#include "kernel/expression/kernel.h"

/* ------------------------------------------------------------- parameters */

enum { ESPI_PTK_LAMBDA = 1, ESPI_PTK_MU, ESPI_PTK_TERMINAL, ESPI_PTK_LANES }; /* in the order of the parameters */
enum { ESPI_PTK_POWERS = 64 };

typedef struct espi_ptk_values { /* of the parameters, and what follows from them; lanes: kernel/tree/lanes.h */
    double lambda, mu, terminal;
    double inner[ESPI_PTK_LANES];  /* the constant of two inner nodes ... */
    double leaf[ESPI_PTK_LANES];   /* ... and where one is a leaf */
    double power[ESPI_PTK_POWERS]; /* of lambda */
} espi_ptk_values;

static inline double espi_ptk_power(const espi_ptk_values *values, size_t exponent)
{
    return exponent < ESPI_PTK_POWERS ? values->power[exponent] : espi_power(values->lambda, (unsigned)exponent);
}

/* ------------------------------------------------------------------ names */

/* A name is symbol * 2, and 1 more for an inner node. Symbols have one numbering for rows and columns. */
static inline uint32_t espi_ptk_label(uint32_t name) { return name / 2; }

/* The names that a node with this name has a constant with: number 0 of inner nodes, 1 of leaves. */
static inline uint32_t espi_ptk_namesake(uint32_t name, size_t number)
{
    return number == 0 ? name | 1 : name & ~UINT32_C(1);
}

/* The constant of two names with one label, all lanes. */
static inline const double *espi_ptk_constant(const espi_ptk_values *values, uint32_t a, uint32_t b)
{
    return (a & b & 1) != 0 ? values->inner : values->leaf;
}

/* ------------------------------------------------------------------- maps */

typedef struct espi_ptk_map { /* keys <-> dense numbers in order of first appearance; of zeros: empty */
    uint64_t *key;            /* per number */
    size_t count, capacity;
    uint32_t *slot; /* open addressing; ESPI_NO_NODE: free */
    size_t mask;
} espi_ptk_map;

/* The number of the key, added if new; ESPI_NO_NODE: out of memory. */
uint32_t espi_ptk_map_add(espi_ptk_map *map, uint64_t key);
/* The number of the key or ESPI_NO_NODE. */
uint32_t espi_ptk_map_find(const espi_ptk_map *map, uint64_t key);
void espi_ptk_map_free(espi_ptk_map *map);

/* ------------------------------------------------------------------ trees */

typedef struct espi_ptk_node { /* a different subtree of a tree */
    uint32_t shape, vertex;
    uint32_t first; /* child[first + k] is the node of its child k; ESPI_NO_NODE: a leaf */
    uint32_t uses;  /* how often it is such a child */
    double count;   /* occurrences in the tree */
    bool alone;     /* the only node of its group, and it occurs once */
} espi_ptk_node;

typedef struct espi_ptk_count { /* how often a name occurs in a tree */
    uint32_t name;              /* its number */
    double count;
} espi_ptk_count;

typedef struct espi_ptk_shape { /* a production of the forest; in order of first appearance */
    uint32_t group;
    uint32_t children;
    size_t name; /* of its children: child_name[name + k] */
} espi_ptk_shape;

typedef struct espi_ptk_trees { /* those of one side */
    const espi_forest *forest;
    const uint32_t *symbol; /* of the forest's symbols in the numbering of both sides; NULL: they have it */

    espi_ptk_map group; /* labels of inner nodes */
    espi_ptk_map name;  /* names of all nodes */
    espi_ptk_shape *shape;
    size_t shapes, shape_capacity;
    uint32_t *child_name;
    size_t child_names, child_name_capacity;

    size_t trees;
    struct espi_ptk_start {
        size_t node, child, count;
    } * tree;            /* trees + 1 */
    espi_ptk_node *node; /* children before parents */
    uint32_t *child;
    espi_ptk_count *count;
    size_t node_capacity, child_capacity, count_capacity;
} espi_ptk_trees;

typedef struct espi_ptk_tree { /* one of them */
    const espi_ptk_trees *trees;
    const espi_ptk_node *node;
    const uint32_t *child;
    const espi_ptk_count *count;
    size_t nodes, counts;
} espi_ptk_tree;

static inline espi_ptk_tree espi_ptk_tree_of(const espi_ptk_trees *trees, size_t i)
{
    const struct espi_ptk_start *s = &trees->tree[i], *e = s + 1;
    return (espi_ptk_tree){.trees = trees,
                           .node = trees->node != NULL ? trees->node + s->node : NULL,
                           .child = trees->child != NULL ? trees->child + s->child : NULL,
                           .count = trees->count != NULL ? trees->count + s->count : NULL,
                           .nodes = e->node - s->node,
                           .counts = e->count - s->count};
}

/* Scratch of espi_ptk_trees_make; one serves many calls for one forest. Zeroed is empty. */
typedef struct espi_ptk_builder {
    uint32_t *index; /* vertex -> its node in the current tree; else ESPI_NO_NODE */
    uint32_t *shape; /* production -> its shape; else ESPI_NO_NODE */
    uint32_t *name;  /* name in the forest's symbols -> its number; else ESPI_NO_NODE */
    uint32_t *named; /* such names */
    size_t names, named_capacity;
    double *count;     /* name -> occurrences in the current tree; else 0 */
    uint32_t *touched; /* such names */
    uint32_t *last;    /* group -> its newest node in the current tree ... */
    size_t *stamp;     /* ... if this is the number of that tree */
    size_t trees;      /* of all calls so far */
    espi_walk walk;
    size_t count_capacity, touched_capacity, last_capacity, stamp_capacity;
} espi_ptk_builder;
void espi_ptk_builder_free(espi_ptk_builder *builder);

/* Fills zeroed trees from roots of a forest; forest and symbols outlive them. False: out of memory; what is there is to
 * be freed. */
bool espi_ptk_trees_make(espi_ptk_trees *trees, const espi_forest *forest, const uint32_t *symbol, const espi_ref *root,
                         size_t roots, espi_ptk_builder *builder);
void espi_ptk_trees_free(espi_ptk_trees *trees);

/* ------------------------------------------------------------------ index */

typedef struct espi_ptk_occurrence {
    uint32_t tree, item; /* of a vertex: its rank in its block; of a name: how often it occurs there */
} espi_ptk_occurrence;

enum { ESPI_PTK_SMALL = 15 }; /* the largest count that is laid out for whole rows */

typedef struct espi_ptk_index {
    const espi_ptk_trees *trees;
    struct espi_ptk_block { /* vertices that differ in rare labels of children at most, and below these */
        uint32_t shape;     /* of the first of them; the others' differ in rare labels */
        uint32_t vertices;  /* in order of the trees that brought them */
        uint32_t place;     /* of the first of them in the group */
        uint32_t children;  /* of each */
        size_t code;        /* of the children: block_code[code + l] */
        size_t vertex;      /* of the first of them among all vertices */
        size_t child;       /* places of the children: child[.. + l * vertices + rank] */
        size_t at;          /* occurrences: at[at .. at of the next block) */
    } * block;              /* in order of the trees that brought the first vertex; and one more */
    size_t blocks;
    size_t *group_start;   /* per group, and one more */
    uint32_t *group_block; /* its blocks, in order */
    uint32_t *size;        /* per group: vertices */
    uint32_t *first;       /* per vertex: the tree that brought it */
    uint32_t *child;
    espi_ptk_occurrence *at; /* in order of trees */
    struct espi_ptk_kin {    /* vertices of a shape with rare labels, where a node meets these alone */
        uint32_t block;      /* that they belong to; so of all shapes */
        size_t member;       /* their ranks there: member[member .. member of the next shape) */
        size_t at;           /* their occurrences, likewise */
    } * kin;                 /* per shape, and one more; empty if it has no rare label */
    uint32_t *member;
    espi_ptk_occurrence *kin_at;
    espi_ptk_map list; /* group << 32 | label of a child */
    size_t frequent;   /* lists before this one are of labels that many shapes of the group have; the others are rare */
    size_t *list_start;   /* per list, and one more */
    uint32_t *posting;    /* blocks that have the label, of a rare one shapes; in order, each once */
    uint32_t *code;       /* per name of a child of a shape: its list * 2, and 1 more for an inner node */
    uint32_t *block_code; /* the same of blocks; of a rare label `frequent` * 2 */
    size_t vertices;
    size_t *name_start; /* per name, and one more */
    espi_ptk_occurrence *name_at;
    uint8_t **dense; /* per name: of a frequent one, how often it occurs in each tree; else NULL */
} espi_ptk_index;

/* Fills a zeroed index with all the trees, which outlive it. False: out of memory. */
bool espi_ptk_index_make(espi_ptk_index *index, const espi_ptk_trees *trees);
void espi_ptk_index_free(espi_ptk_index *index);

typedef struct espi_ptk_link { /* how trees find their like in an index; ESPI_NO_NODE: it has none */
    uint32_t *group;           /* per shape of the trees: the group in the index */
    uint32_t *list;            /* per name of a child of a shape: the list in the index */
    uint32_t (*namesake)[2];   /* per name of the trees: the numbers of its namesakes in the index */
} espi_ptk_link;

bool espi_ptk_link_make(espi_ptk_link *link, const espi_ptk_trees *trees, const espi_ptk_index *index);
void espi_ptk_link_free(espi_ptk_link *link);

/* --------------------------------------------------------------- children */

/* The cells of two nodes p and q, in order of children k of p, then l of q, and their values for n such pairs, of which
 * one node is the same. Very many cells come in several calls, for children [from, to) of p each, in order; between
 * these `scratch` and the result stay as they were left. Zeroed is empty. */
typedef struct espi_ptk_cells {
    size_t p, q;     /* numbers of children */
    size_t from, to; /* 0 and p: all */
    uint32_t *k, *l;
    size_t count;    /* at least one if all come at once */
    double *value;   /* Delta of the children of cell c, vertex r: value[(c * lanes + lane) * n + r] */
    size_t n, lanes; /* lanes: 1 or ESPI_PTK_LANES */
    size_t stride;   /* of the result: from lane to lane */
    double *scratch;
    size_t k_capacity, l_capacity, value_capacity, scratch_capacity;
} espi_ptk_cells;

/* Room for so many cells and values. False: out of memory. */
bool espi_ptk_cells_reserve(espi_ptk_cells *cells, size_t count, size_t values);
void espi_ptk_cells_free(espi_ptk_cells *cells);

/* Whether S is summed over chains of that many cells of nodes with p and q children, all at once; else by the table. */
static inline bool espi_ptk_few(size_t count, size_t p, size_t q)
{
    return count / 2 <= q && count * count / 2 <= p * q;
}

/* out[lane * stride + r] = mu S, r < n; of the last call for p and q. False: out of memory. */
bool espi_ptk_children(const espi_ptk_values *values, espi_ptk_cells *cells, double *out);

/* --------------------------------------------------------------- matching */

/* What matching needs; one per thread. All pointers outlive it; `run` may be NULL. NULL: out of memory. */
typedef struct espi_ptk_matcher espi_ptk_matcher;
espi_ptk_matcher *espi_ptk_matcher_new(const espi_ptk_values *values, const espi_ptk_index *index,
                                       const espi_ptk_link *link, const esp_run *run);
void espi_ptk_matcher_free(espi_ptk_matcher *matcher);

/* out[j - from] = K of the tree and tree j of the index. */
esp_status espi_ptk_match_row(espi_ptk_matcher *matcher, const espi_ptk_tree *tree, size_t from, size_t to, double *out,
                              esp_error *err);
/* gradient[p] += sum over the trees j of weight[j - from] dK/d parameter p; and value[j - from] = K, unless it is NULL.
 */
esp_status espi_ptk_match_gradient(espi_ptk_matcher *matcher, const espi_ptk_tree *tree, size_t from, size_t to,
                                   const double *weight, double *value, double *gradient, esp_error *err);

/* score[k] = sum over the vertices of f[k * vertices + u] w(u), and over the names of the constants. */
typedef struct espi_ptk_folded {
    size_t outputs;
    double *vertex; /* outputs * vertices of the index */
    double *name;   /* outputs * names of the index */
} espi_ptk_folded;
esp_status espi_ptk_match_score(espi_ptk_matcher *matcher, const espi_ptk_tree *tree, const espi_ptk_folded *folded,
                                double *score, esp_error *err);

/* ------------------------------------------------------------ single values */

/* The kernel of two trees, whatever their sides, in wide numbers. False: out of memory. */
bool espi_ptk_wide_pair(const espi_ptk_values *values, const espi_ptk_tree *a, const espi_ptk_tree *b,
                        espi_wide *value);
/* value[i] = K(i, i) of all trees of a side; `slopes`: their derivatives instead, that of tree i in parameter p at
 * value[i * (ESPI_PTK_LANES - 1) + p]. */
esp_status espi_ptk_self_values(const espi_ptk_values *values, const espi_ptk_trees *trees, const esp_run *run,
                                bool slopes, double *value, esp_error *err);

#endif
