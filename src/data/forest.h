/* The shared forest: every different subtree of a column of trees is one vertex (hash-consing).
 *
 * A vertex is an inner node with all that is below it; its children are vertices with smaller numbers, or
 * leaves. Vertices with the same production (label, and the ordered labels of the children, each marked leaf
 * or inner) form a group and are numbered inside it in order of appearance. */
#ifndef ESPI_DATA_FOREST_H
#define ESPI_DATA_FOREST_H

#include "base/symbols.h"
#include "espalier.h"

/* A node of a tree: the number of a vertex, or ESPI_LEAF | symbol for a leaf. */
typedef uint32_t espi_ref;
#define ESPI_LEAF UINT32_C(0x80000000)
#define ESPI_NO_NODE UINT32_C(0xFFFFFFFF) /* the empty tree; also "memory is out" */

typedef struct espi_vertex {
    size_t children; /* where its references start in forest->child */
    uint32_t production;
    uint32_t rank; /* its number inside the group */
} espi_vertex;

typedef struct espi_production {
    size_t children; /* where its child labels start in forest->child_label */
    uint32_t label;  /* symbol */
    uint32_t arity;  /* children; at least 1 */
    uint32_t inner;  /* children that are no leaves; 0: a pre-terminal */
    uint32_t count;  /* vertices in the group */
} espi_production;

typedef struct espi_forest {
    espi_symbols symbols;
    espi_vertex *vertex;
    size_t vertices, vertex_capacity;
    espi_ref *child;
    size_t children, child_capacity;
    espi_production *production;
    size_t productions, production_capacity;
    uint32_t *child_label; /* symbol * 2 + (1 if inner) */
    size_t child_labels, child_label_capacity;
    uint64_t *vertex_slot, *production_slot; /* open addressing: hash << 32 | number; all ones: free */
    size_t vertex_mask, production_mask;
    espi_ref *root; /* one per example; ESPI_NO_NODE: an empty tree */
    size_t roots, root_capacity;
} espi_forest;

/* A zeroed forest is empty. The vertex of a node with this label and these children (at least one), added if
 * new. ESPI_NO_NODE if memory or numbers are out. */
espi_ref espi_forest_node(espi_forest *forest, uint32_t label, const espi_ref *child, size_t arity);

/* Appends a tree to the column. False if memory is out. */
bool espi_forest_add_root(espi_forest *forest, espi_ref root);

/* The production of `forest` with this label and these child labels, or ESPI_NO_NODE. */
uint32_t espi_forest_find_production(const espi_forest *forest, uint32_t label, const uint32_t *child_label,
                                     size_t arity);
/* For each production of `from`, the equal one of `to` or ESPI_NO_NODE; NULL if memory is out. */
uint32_t *espi_forest_map_productions(const espi_forest *from, const espi_forest *to);

/* How much a forest holds, and back to that: what came later is forgotten, roots left alone, and its numbers are given
 * anew. */
typedef struct espi_forest_mark {
    size_t symbols, vertices, productions;
} espi_forest_mark;
espi_forest_mark espi_forest_marked(const espi_forest *forest);
void espi_forest_truncate(espi_forest *forest, espi_forest_mark mark);

size_t espi_forest_bytes(const espi_forest *forest);
void espi_forest_free(espi_forest *forest);

static inline bool espi_is_leaf(espi_ref node) { return (node & ESPI_LEAF) != 0; }
static inline uint32_t espi_leaf_symbol(espi_ref leaf) { return leaf & ~ESPI_LEAF; }
static inline const espi_production *espi_production_of(const espi_forest *forest, espi_ref vertex)
{
    return &forest->production[forest->vertex[vertex].production];
}

/* Walks a tree without recursion, children before parents, left to right; leaves are not visited. */
typedef struct espi_walk {
    const espi_forest *forest;
    struct espi_walk_frame {
        espi_ref vertex;
        uint32_t next; /* the child to look at next */
    } * frame;
    size_t depth, capacity;
} espi_walk;

/* A zeroed walk is ready; it may be started again and again. False if memory is out. */
bool espi_walk_start(espi_walk *walk, const espi_forest *forest, espi_ref root);
/* The next vertex, ESPI_NO_NODE at the end; *failed is set when memory is out. */
espi_ref espi_walk_next(espi_walk *walk, bool *failed);
/* The same, but each vertex only once: seen[vertex] is ESPI_NO_NODE until the caller sets it on being handed it. */
espi_ref espi_walk_next_new(espi_walk *walk, const uint32_t *seen, bool *failed);
void espi_walk_free(espi_walk *walk);

#endif
