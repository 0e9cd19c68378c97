/* Which column belongs to which node, while a tree is matched against a DAG (match.c, gtk_match.c,
 * partial_tree/match.c).
 *
 * A node takes a column from the pool, or shares that of another node if the two are equal: along a chain of
 * productions that repeats they soon are. A column goes back when the last of its users is done with it. Columns are
 * numbered from 0; what they hold is the matcher's own. */
#ifndef ESPI_KERNEL_TREE_POOL_H
#define ESPI_KERNEL_TREE_POOL_H

#include "kernel/tree/plan.h"

typedef struct espi_pool {
    struct espi_pool_column {
        uint64_t serial; /* its name among all columns of the tree: equal columns of a group have one */
        double pending;  /* occurrences of nodes that share it, not yet added up */
        size_t users;    /* nodes that have it and are still needed, and whoever keeps it */
    } * column;
    size_t columns, column_capacity;
    uint32_t *unused; /* columns, a stack */
    size_t unused_count, unused_capacity;
    struct espi_pool_node {
        uint64_t serial; /* of its column; 0: none */
        uint32_t column; /* ESPI_NO_NODE: none, or no longer needed */
        uint32_t uses;   /* by its parents that are still to come */
    } * node;
    size_t node_capacity;
    uint64_t serial;
} espi_pool;

void espi_pool_free(espi_pool *pool);

/* A tree of so many nodes begins. False: memory is out. */
bool espi_pool_begin(espi_pool *pool, size_t nodes);
/* It has ended, after a failure somewhere in between if not `ok`: all columns go back. */
void espi_pool_end(espi_pool *pool, bool ok);

/* Node by node, children first: it has no column yet. */
static inline void espi_pool_enter(espi_pool *pool, size_t node, uint32_t uses)
{
    pool->node[node] = (struct espi_pool_node){.column = ESPI_NO_NODE, .uses = uses};
}

/* Takes a column for a node; ESPI_NO_NODE: memory is out. A column is either one that was there before or has the next
 * number. */
uint32_t espi_pool_take(espi_pool *pool, size_t node);
/* Gives a node, which occurs so often, a column that is there. */
void espi_pool_share(espi_pool *pool, size_t node, uint32_t column, double count);
/* One more user, who is no node. */
static inline void espi_pool_keep(espi_pool *pool, uint32_t column) { pool->column[column].users++; }
/* A user is done with it. If it was the last, the column goes back, and what is pending is returned: it holds until the
 * next column is taken. */
double espi_pool_leave(espi_pool *pool, uint32_t column);

/* Whether two nodes of a plan, of one group, have the same children, as far as columns can tell. */
bool espi_pool_same_below(const espi_pool *pool, const espi_plan *plan, size_t a, size_t b);

#endif
