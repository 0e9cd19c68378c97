/* A tree as the list of its different vertices, children before parents, with how often each occurs: the order in
 * which matching visits it. */
#ifndef ESPI_PLAN_H
#define ESPI_PLAN_H

#include "data/forest.h"

typedef struct espi_plan_node {
    espi_ref vertex;
    uint32_t uses;  /* references from other nodes of the plan */
    double count;   /* occurrences in the tree */
} espi_plan_node;

typedef struct espi_plan {
    const espi_forest *forest;
    espi_plan_node *node;
    size_t nodes, node_capacity;
    uint32_t *index; /* vertex of the forest -> node; ESPI_NO_NODE outside a plan */
    espi_walk walk;
} espi_plan;

/* False if memory is out. A plan is made again and again for trees of one forest. */
bool espi_plan_init(espi_plan *plan, const espi_forest *forest);
bool espi_plan_make(espi_plan *plan, espi_ref root);
void espi_plan_free(espi_plan *plan);

#endif
