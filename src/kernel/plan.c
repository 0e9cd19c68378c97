#include "kernel/plan.h"

#include "base/alloc.h"

#include <string.h>

bool espi_plan_init(espi_plan *plan, const espi_forest *forest)
{
    *plan = (espi_plan){.forest = forest};
    plan->index = espi_alloc(forest->vertices, sizeof *plan->index);
    if (plan->index == NULL) return false;
    memset(plan->index, 0xFF, forest->vertices * sizeof *plan->index);
    return true;
}

void espi_plan_free(espi_plan *plan)
{
    espi_free(plan->node);
    espi_free(plan->index);
    espi_walk_free(&plan->walk);
    *plan = (espi_plan){0};
}

bool espi_plan_make(espi_plan *plan, espi_ref root)
{
    const espi_forest *f = plan->forest;
    for (size_t i = 0; i < plan->nodes; i++) plan->index[plan->node[i].vertex] = ESPI_NO_NODE;
    plan->nodes = 0;
    bool failed = !espi_walk_start(&plan->walk, f, root);
    espi_ref vertex;
    while (!failed && (vertex = espi_walk_next_new(&plan->walk, plan->index, &failed)) != ESPI_NO_NODE) {
        if (!espi_reserve(&plan->node, &plan->node_capacity, plan->nodes + 1, sizeof *plan->node)) return false;
        plan->index[vertex] = (uint32_t)plan->nodes;
        plan->node[plan->nodes++] = (espi_plan_node){.vertex = vertex};
    }
    if (failed || plan->nodes == 0) return !failed;
    plan->node[plan->nodes - 1].count = 1.0; /* the root comes last */
    for (size_t i = plan->nodes; i-- > 0;) {
        const espi_plan_node *node = &plan->node[i];
        const espi_ref *child = f->child + f->vertex[node->vertex].children;
        const espi_production *p = espi_production_of(f, node->vertex);
        for (size_t k = 0; p->inner > 0 && k < p->arity; k++) {
            if (espi_is_leaf(child[k])) continue;
            espi_plan_node *below = &plan->node[plan->index[child[k]]];
            below->uses++;
            below->count += node->count;
        }
    }
    return true;
}
