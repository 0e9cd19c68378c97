#include "kernel/tree/weights.h"

#include "base/alloc.h"

#include <string.h>

void espi_tree_weights_free(espi_tree_weights *w)
{
    const bool scores_only = w->dag.scores_only;
    espi_dag_free(&w->dag);
    for (size_t g = 0; g < w->groups; g++) espi_free(w->f[g]);
    espi_free(w->f);
    espi_free(w->capacity);
    *w = (espi_tree_weights){.dag = {.scores_only = scores_only}, .width = w->width};
}

size_t espi_tree_weights_bytes(const espi_tree_weights *w)
{
    size_t bytes = espi_dag_bytes(&w->dag) + w->groups * (sizeof *w->f + sizeof *w->capacity);
    for (size_t g = 0; g < w->groups; g++) bytes += w->capacity[g] * w->width * sizeof **w->f;
    return bytes;
}

/* f for all groups of the DAG. */
static bool fit_groups(espi_tree_weights *w)
{
    if (!espi_reserve(&w->f, &w->room, w->dag.groups, sizeof *w->f)) return false;
    if (w->groups == w->room) return true;
    size_t *capacity = espi_realloc(w->capacity, w->room, sizeof *capacity);
    if (capacity == NULL) return false;
    w->capacity = capacity;
    memset(w->f + w->groups, 0, (w->room - w->groups) * sizeof *w->f);
    memset(capacity + w->groups, 0, (w->room - w->groups) * sizeof *capacity);
    w->groups = w->room;
    return true;
}

/* f of a group that may have grown: as long as the group has room, an output behind the other. */
static double *fit_group(espi_tree_weights *w, uint32_t g)
{
    const espi_group *group = &w->dag.group[g];
    const size_t had = w->capacity[g], size = group->inner == 0 ? 1 : group->capacity;
    if (had == size) return w->f[g];
    double *f = espi_alloc_zero(size, w->width * sizeof *f);
    if (f == NULL) return NULL;
    for (size_t k = 0; k < w->width && had > 0; k++) memcpy(f + k * size, w->f[g] + k * had, had * sizeof *f);
    espi_free(w->f[g]);
    w->capacity[g] = size;
    return w->f[g] = f;
}

static bool add(espi_tree_weights *w, uint32_t group, uint32_t vertex, double count, const double *coefficient)
{
    double *f = fit_group(w, group);
    if (f == NULL) return false;
    const size_t stride = w->capacity[group];
    for (size_t k = 0; k < w->width; k++) f[k * stride + w->dag.rank[vertex]] += count * coefficient[k];
    return true;
}

bool espi_tree_weights_add(espi_tree_weights *w, const espi_plan *plan, const double *coefficient)
{
    if (!espi_dag_insert(&w->dag, plan)) return false;
    bool ok = fit_groups(w);
    for (size_t i = 0; ok && i < plan->words; i++) {
        const espi_plan_word *word = &plan->word[i];
        ok = add(w, word->group, word->vertex, word->count, coefficient);
    }
    for (size_t i = 0; ok && i < plan->nodes; i++) {
        const espi_plan_node *node = &plan->node[i];
        ok = add(w, node->group, node->vertex, node->count, coefficient);
    }
    return ok;
}
