/* The parts of the engine of soft.h: trees as lists of their different subtrees with shapes; the DAG of the columns
 * with its index of cells; the link by which trees find their way in the DAG; matching. */
#ifndef ESPI_SOFT_DAG_H
#define ESPI_SOFT_DAG_H

#include "kernel/partial_tree/soft.h"

/* ---------------------------------------------------------------- numbers */

typedef struct espi_soft_map { /* keys <-> dense numbers in order of first appearance; of zeros: empty */
    uint64_t *key;             /* per number */
    size_t count, capacity;
    uint32_t *slot; /* open addressing; ESPI_NO_NODE: free */
    size_t mask;
} espi_soft_map;

/* The number of the key, added if new; ESPI_NO_NODE if memory is out. */
uint32_t espi_soft_map_add(espi_soft_map *map, uint64_t key);
/* The number of the key or ESPI_NO_NODE. */
uint32_t espi_soft_map_find(const espi_soft_map *map, uint64_t key);
void espi_soft_map_free(espi_soft_map *map);

/* ------------------------------------------------------------------ trees */

typedef struct espi_soft_node { /* a different subtree of a tree */
    uint32_t shape, vertex;
    uint32_t first; /* child[first + k] is the node that position k of the shape reads, or ESPI_NO_NODE */
    uint32_t uses;  /* how often it is such a child */
    double count;   /* occurrences in the tree */
    bool alone;     /* the only node of its group, and it occurs once */
} espi_soft_node;

typedef struct espi_soft_atom {
    uint32_t atom; /* a number of the trees' map */
    double count;
} espi_soft_atom;

typedef struct espi_soft_trees {
    struct espi_soft_look { /* a shape */
        uint32_t group;     /* a number of the map */
        uint32_t children;
        size_t code; /* of its children: code[..] and key[..] of the arrays below */
    } * shape;
    size_t shapes, shape_capacity;
    uint32_t *code, *key;
    size_t codes, code_capacity, key_capacity;
    espi_soft_map group, atom;
    espi_soft_map start, step; /* shapes as a trie: the group, then code by code */
    uint32_t *ends;            /* shapes that end at a state of the trie */
    size_t end_count, end_capacity;

    size_t trees;
    struct espi_soft_start {
        size_t node, child, atom;
    } * tree;             /* trees + 1 */
    espi_soft_node *node; /* children before parents */
    uint32_t *child;
    espi_soft_atom *at;
    size_t node_capacity, child_capacity, at_capacity;
} espi_soft_trees;

typedef struct espi_soft_plan { /* of one tree */
    const espi_soft_trees *trees;
    const espi_soft_node *node;
    const uint32_t *child;
    const espi_soft_atom *atom;
    size_t nodes, atoms;
} espi_soft_plan;

static inline espi_soft_plan espi_soft_plan_of(const espi_soft_trees *trees, size_t i)
{
    const struct espi_soft_start *s = &trees->tree[i], *e = s + 1;
    return (espi_soft_plan){.trees = trees,
                            .node = trees->node + s->node,
                            .child = trees->child + s->child,
                            .atom = trees->at + s->atom,
                            .nodes = e->node - s->node,
                            .atoms = e->atom - s->atom};
}

static inline espi_soft_shape espi_soft_shape_of(const espi_soft_trees *trees, uint32_t shape)
{
    const struct espi_soft_look *s = &trees->shape[shape];
    return (espi_soft_shape){
        .group = (uint32_t)trees->group.key[s->group], .code = trees->code + s->code, .children = s->children};
}

/* Scratch of espi_soft_trees_make; one serves many calls for one forest. Zeroed is empty. */
typedef struct espi_soft_builder {
    uint32_t *index;   /* vertex -> its node in the tree at hand; else ESPI_NO_NODE */
    uint32_t *shape;   /* vertex -> its shape; else ESPI_NO_NODE */
    double *count;     /* atom -> occurrences in the tree at hand; else 0 */
    uint32_t *touched; /* such atoms */
    uint32_t *last;    /* group -> its newest node in the tree at hand ... */
    size_t *stamp;     /* ... if this is the tree's number + 1 */
    espi_soft_child *child;
    espi_walk walk;
    size_t index_count, index_capacity, shape_capacity, count_capacity, touched_capacity, last_capacity, stamp_capacity,
        child_capacity;
} espi_soft_builder;
void espi_soft_builder_free(espi_soft_builder *builder);

/* Fills zeroed trees from roots of a forest. False: memory is out; what is there is to be freed. */
bool espi_soft_trees_make(espi_soft_trees *trees, const espi_soft_rules *rules, const espi_forest *forest,
                          const uint32_t *symbol, const espi_ref *root, size_t roots, espi_soft_builder *builder);
void espi_soft_trees_free(espi_soft_trees *trees);

/* -------------------------------------------------------------------- DAG */

typedef struct espi_soft_occurrence {
    uint32_t tree, item; /* the rank of the vertex in its shape; of an atom: how often it occurs in the tree */
} espi_soft_occurrence;

enum { ESPI_SOFT_SMALL = 15 }; /* the largest count that is laid out for whole rows */

typedef struct espi_soft_dag {
    const espi_soft_trees *trees;
    struct espi_soft_group {
        uint32_t vertices; /* in order of the trees that brought them */
        uint32_t place;    /* of the first of them in the group */
        uint32_t children; /* as in the trees, to have all in one place */
        size_t code;
        size_t vertex; /* of the first of them among all vertices */
        size_t child;  /* places of the children: child[.. + l * vertices + rank] */
        size_t at;     /* occurrences: at[at .. at of the next shape) */
    } * shape;         /* per shape of the trees, and one more */
    uint32_t *born;    /* per shape: the first tree that has a vertex of it; in order */
    uint32_t *size;    /* per group: vertices */
    uint32_t *first;   /* per vertex: the tree that brought it */
    uint32_t *child;
    espi_soft_occurrence *at; /* in order of trees */
    espi_soft_map list;       /* group << 32 | key of a child */
    size_t *list_start;
    struct espi_soft_posting {
        uint32_t shape, position, code;
    } * posting; /* of a list: in order of shapes, hence of the trees that brought them */
    size_t vertices;
    size_t *atom_start; /* per atom, and one more */
    espi_soft_occurrence *atom_at;
    uint8_t **dense; /* per atom: of a frequent one, how often it occurs in each tree; else NULL */
} espi_soft_dag;

/* Fills a zeroed DAG with all the trees, which must outlive it. False: memory is out. */
bool espi_soft_dag_make(espi_soft_dag *dag, const espi_soft_trees *trees);
void espi_soft_dag_free(espi_soft_dag *dag);

typedef struct espi_soft_link { /* how trees find their like in a DAG */
    uint32_t *group;            /* per shape of the trees: the group of the DAG, or ESPI_NO_NODE */
    uint32_t *list;             /* per code of the trees: the list of the DAG, or ESPI_NO_NODE */
    size_t *partner_start;      /* per atom of the trees, and one more */
    struct espi_soft_partner {
        uint32_t atom;       /* of the DAG */
        const double *value; /* all lanes */
    } * partner;
    size_t partners, partner_capacity;
} espi_soft_link;

bool espi_soft_link_make(espi_soft_link *link, const espi_soft_rules *rules, const espi_soft_trees *trees,
                         const espi_soft_dag *dag);
void espi_soft_link_free(espi_soft_link *link);

/* ----------------------------------------------------------------- values */

/* What matching needs; one per thread. All pointers must outlive it; `run` may be NULL. NULL if memory is out. */
typedef struct espi_soft_matcher espi_soft_matcher;
espi_soft_matcher *espi_soft_matcher_new(const espi_soft_rules *rules, const espi_soft_dag *dag,
                                         const espi_soft_link *link, const esp_run *run);
void espi_soft_matcher_free(espi_soft_matcher *matcher);

/* out[j - from] += K of the tree and tree j of the DAG; with lanes: out[lane * (to - from) + j - from]. */
esp_status espi_soft_match_row(espi_soft_matcher *matcher, const espi_soft_plan *plan, size_t from, size_t to,
                               size_t lanes, double *out, esp_error *err);
/* gradient[p] += sum over the trees j of weight[j - from] dK/d parameter p: lanes 1 and up of the row, weighted. */
esp_status espi_soft_match_gradient(espi_soft_matcher *matcher, const espi_soft_plan *plan, size_t from, size_t to,
                                    const double *weight, double *gradient, esp_error *err);

/* score[k] = sum over the vertices of f[k * vertices + u] w(u), and over the atoms of the constants. */
typedef struct espi_soft_weights {
    size_t outputs;
    double *vertex; /* outputs * vertices of the DAG */
    double *atom;   /* outputs * atoms of the DAG's trees */
} espi_soft_weights;
esp_status espi_soft_match_score(espi_soft_matcher *matcher, const espi_soft_plan *plan,
                                 const espi_soft_weights *weights, double *score, esp_error *err);

/* The kernel of two trees, whatever their sides, in wide numbers and pair by pair. */
bool espi_soft_pair_wide(const espi_soft_rules *rules, const espi_soft_plan *a, const espi_soft_plan *b,
                         espi_wide *value);
/* value[i] = K(i, i) of all trees of a side; with lanes: value[lane * trees + i]. */
esp_status espi_soft_self_values(const espi_soft_rules *rules, const espi_soft_trees *trees, const espi_forest *forest,
                                 const uint32_t *symbol, const esp_run *run, size_t lanes, double *value,
                                 esp_error *err);

#endif
