#include "kernel/tree/dag.h"

#include "base/alloc.h"

#include <string.h>

void espi_dag_free(espi_dag *dag)
{
    for (size_t g = 0; dag->group != NULL && g < dag->groups; g++) {
        espi_free(dag->group[g].child);
        espi_free(dag->group[g].at);
        espi_free(dag->group[g].dense);
    }
    espi_free(dag->group);
    espi_free(dag->rank);
    *dag = (espi_dag){0};
}

size_t espi_dag_bytes(const espi_dag *dag)
{
    size_t bytes = dag->groups * sizeof *dag->group + dag->vertices * sizeof *dag->rank;
    for (size_t g = 0; g < dag->groups; g++) {
        const espi_group *group = &dag->group[g];
        bytes += (2 * (size_t)group->inner + 1) * group->capacity * sizeof *group->child +
                 group->at_capacity * sizeof *group->at + (group->dense != NULL ? dag->trees : 0);
    }
    return bytes;
}

/* Room for a group and a vertex of the forest with these numbers. */
static bool grow_dag(espi_dag *dag, uint32_t group, uint32_t vertex)
{
    size_t groups = dag->groups, vertices = dag->vertices;
    if (!espi_reserve(&dag->group, &groups, (size_t)group + 1, sizeof *dag->group)) return false;
    if (groups > dag->groups) memset(dag->group + dag->groups, 0, (groups - dag->groups) * sizeof *dag->group);
    dag->groups = groups;
    if (!espi_reserve(&dag->rank, &vertices, (size_t)vertex + 1, sizeof *dag->rank)) return false;
    if (vertices > dag->vertices)
        memset(dag->rank + dag->vertices, 0xFF, (vertices - dag->vertices) * sizeof *dag->rank);
    dag->vertices = vertices;
    return true;
}

/* Room for one more vertex; the child matrix is laid out anew when its row length doubles. */
static bool grow_group(espi_group *group)
{
    if (group->vertices < group->capacity) return true;
    const uint32_t old = group->capacity, capacity = old == 0 ? 1 : old * 2;
    const size_t rows = 2 * (size_t)group->inner + 1;
    uint32_t *child = espi_alloc(rows * capacity, sizeof *child);
    if (child == NULL) return false;
    for (size_t k = 0; k < rows && old > 0; k++)
        memcpy(child + k * capacity, group->child + k * old, old * sizeof *child);
    espi_free(group->child);
    group->child = child;
    group->first = child + (rows - 1) * capacity;
    group->capacity = capacity;
    return true;
}

static bool add_vertex(espi_dag *dag, const espi_plan *plan, const espi_plan_node *node)
{
    espi_group *group = &dag->group[node->group];
    group->inner = node->end - node->first;
    if (!grow_group(group)) return false;
    const uint32_t rank = group->vertices++;
    for (size_t k = 0; k < group->inner; k++) {
        const uint32_t child = plan->child[node->first + k];
        const bool word = (child & ESPI_WORD) != 0;
        group->child[2 * k * group->capacity + rank] = word ? child & ~ESPI_WORD : plan->node[child].group;
        group->child[(2 * k + 1) * group->capacity + rank] = word ? 0 : dag->rank[plan->node[child].vertex];
    }
    group->first[rank] = (uint32_t)dag->trees;
    dag->rank[node->vertex] = rank;
    return true;
}

static bool add_occurrence(espi_dag *dag, espi_group *group, uint32_t item)
{
    if (dag->scores_only) return true;
    if (!espi_reserve(&group->at, &group->at_capacity, group->occurrences + 1, sizeof *group->at)) return false;
    group->at[group->occurrences++] = (espi_occurrence){.tree = (uint32_t)dag->trees, .item = item};
    return true;
}

bool espi_dag_insert(espi_dag *dag, const espi_plan *plan)
{
    for (size_t i = 0; i < plan->words; i++) {
        if (!grow_dag(dag, plan->word[i].group, plan->word[i].vertex)) return false;
        espi_group *group = &dag->group[plan->word[i].group];
        group->vertices = 1;
        dag->rank[plan->word[i].vertex] = 0;
        if (!add_occurrence(dag, group, (uint32_t)plan->word[i].count)) return false;
    }
    for (size_t i = 0; i < plan->nodes; i++) {
        const espi_plan_node *node = &plan->node[i];
        if (!grow_dag(dag, node->group, node->vertex)) return false;
        if (dag->rank[node->vertex] == ESPI_NO_NODE && !add_vertex(dag, plan, node)) return false;
        for (double n = 0.0; n < node->count && !dag->scores_only; n++)
            if (!add_occurrence(dag, &dag->group[node->group], dag->rank[node->vertex])) return false;
    }
    dag->trees++;
    return true;
}

bool espi_dag_settle(espi_dag *dag)
{
    enum { FREQUENT = 5 }; /* one tree in so many: where a plain pass over all trees beats scattered adds */
    for (size_t g = 0; g < dag->groups; g++) {
        espi_group *group = &dag->group[g];
        bool fits = group->inner == 0 && group->occurrences * FREQUENT > dag->trees;
        for (size_t k = 0; fits && k < group->occurrences; k++) fits = group->at[k].item <= UINT8_MAX;
        if (!fits) continue;
        group->dense = espi_alloc_zero(dag->trees, sizeof *group->dense);
        if (group->dense == NULL) return false;
        for (size_t k = 0; k < group->occurrences; k++) group->dense[group->at[k].tree] = (uint8_t)group->at[k].item;
    }
    return true;
}

void espi_dag_fold_free(double **f, size_t groups)
{
    for (size_t g = 0; f != NULL && g < groups; g++) espi_free(f[g]);
    espi_free(f);
}

static double *fold_group(const espi_group *group, const double *coefficient, size_t outputs)
{
    const size_t size = group->inner == 0 ? group->vertices : group->capacity;
    double *all = espi_alloc_zero(size, outputs * sizeof *all);
    for (size_t i = 0; all != NULL && i < group->occurrences; i++) {
        const espi_occurrence at = group->at[i];
        const double times = group->inner == 0 ? at.item : 1.0;
        double *f = all + (group->inner == 0 ? 0 : at.item);
        for (size_t k = 0; k < outputs; k++) f[k * size] += times * coefficient[at.tree * outputs + k];
    }
    return all;
}

double **espi_dag_fold(const espi_dag *dag, const double *coefficient, size_t outputs)
{
    double **f = espi_alloc_zero(dag->groups, sizeof *f);
    for (size_t g = 0; f != NULL && g < dag->groups; g++) {
        f[g] = fold_group(&dag->group[g], coefficient, outputs);
        if (f[g] != NULL) continue;
        espi_dag_fold_free(f, g);
        return NULL;
    }
    return f;
}
