#include "kernel/dag.h"

#include "base/alloc.h"

#include <string.h>

bool espi_dag_init(espi_dag *dag, const espi_forest *forest)
{
    *dag = (espi_dag){.forest = forest, .groups = forest->productions};
    dag->group = espi_alloc_zero(forest->productions, sizeof *dag->group);
    dag->rank = espi_alloc(forest->vertices, sizeof *dag->rank);
    if (dag->group == NULL || dag->rank == NULL) {
        espi_dag_free(dag);
        return false;
    }
    memset(dag->rank, 0xFF, forest->vertices * sizeof *dag->rank);
    for (size_t g = 0; g < dag->groups; g++) dag->group[g].inner = forest->production[g].inner;
    return true;
}

void espi_dag_free(espi_dag *dag)
{
    for (size_t g = 0; dag->group != NULL && g < dag->groups; g++) {
        espi_free(dag->group[g].child);
        espi_free(dag->group[g].first);
        espi_free(dag->group[g].tree);
        espi_free(dag->group[g].item);
    }
    espi_free(dag->group);
    espi_free(dag->rank);
    *dag = (espi_dag){0};
}

size_t espi_dag_bytes(const espi_dag *dag)
{
    size_t bytes = dag->groups * sizeof *dag->group + dag->forest->vertices * sizeof *dag->rank;
    for (size_t g = 0; g < dag->groups; g++) {
        const espi_group *group = &dag->group[g];
        bytes += (group->tree_capacity + group->item_capacity) * sizeof(uint32_t) +
                 (size_t)group->capacity * (1 + 2 * (size_t)group->inner) * sizeof(uint32_t);
    }
    return bytes;
}

/* Room for one more vertex; the child matrix is laid out anew when its row length doubles. */
static bool grow_group(espi_group *group)
{
    if (group->vertices < group->capacity) return true;
    const uint32_t old = group->capacity, capacity = old == 0 ? 1 : old * 2;
    const size_t rows = 2 * (size_t)group->inner;
    uint32_t *first = espi_realloc(group->first, capacity, sizeof *first);
    if (first == NULL) return false;
    group->first = first;
    if (rows > 0) {
        uint32_t *child = espi_alloc(rows * capacity, sizeof *child);
        if (child == NULL) return false;
        for (size_t k = 0; k < rows && old > 0; k++)
            memcpy(child + k * capacity, group->child + k * old, old * sizeof *child);
        espi_free(group->child);
        group->child = child;
    }
    group->capacity = capacity;
    return true;
}

static bool add_vertex(espi_dag *dag, espi_ref vertex)
{
    const espi_forest *f = dag->forest;
    const espi_vertex *v = &f->vertex[vertex];
    const espi_production *p = &f->production[v->production];
    espi_group *group = &dag->group[v->production];
    if (!grow_group(group)) return false;
    const uint32_t rank = group->vertices++;
    for (size_t k = 0, c = 0; c < p->inner; k++) {
        const espi_ref child = f->child[v->children + k];
        if (espi_is_leaf(child)) continue;
        group->child[2 * c * group->capacity + rank] = f->vertex[child].production;
        group->child[(2 * c + 1) * group->capacity + rank] = dag->rank[child];
        c++;
    }
    group->first[rank] = (uint32_t)dag->trees;
    dag->rank[vertex] = rank;
    if (group->vertices > dag->widest) dag->widest = group->vertices;
    return true;
}

static bool add_occurrence(espi_dag *dag, espi_ref vertex)
{
    espi_group *group = &dag->group[dag->forest->vertex[vertex].production];
    const size_t n = group->occurrences;
    if (group->inner == 0 && n > 0 && group->tree[n - 1] == dag->trees) {
        group->item[n - 1]++;
        return true;
    }
    if (!espi_reserve(&group->tree, &group->tree_capacity, n + 1, sizeof *group->tree) ||
        !espi_reserve(&group->item, &group->item_capacity, n + 1, sizeof *group->item))
        return false;
    group->tree[n] = (uint32_t)dag->trees;
    group->item[n] = group->inner == 0 ? 1 : dag->rank[vertex];
    group->occurrences++;
    return true;
}

bool espi_dag_insert(espi_dag *dag, espi_ref root)
{
    espi_walk walk = {0};
    bool failed = !espi_walk_start(&walk, dag->forest, root);
    espi_ref vertex;
    while (!failed && (vertex = espi_walk_next(&walk, &failed)) != ESPI_NO_NODE)
        failed = (dag->rank[vertex] == ESPI_NO_NODE && !add_vertex(dag, vertex)) || !add_occurrence(dag, vertex);
    espi_walk_free(&walk);
    dag->trees++;
    return !failed;
}
