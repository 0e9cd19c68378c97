#include "kernel/plan.h"

#include "base/alloc.h"

#include <string.h>

typedef struct builder {
    espi_plans *plans;
    const espi_forest *forest;
    const uint32_t *shared;
    uint32_t *index; /* vertex -> its node or ESPI_WORD | its word in the plan at hand; ESPI_NO_NODE: not in it */
    uint32_t *last;  /* group -> its newest node in the plan at hand ... */
    size_t *stamp;   /* ... if this is the tree's number + 1 */
    struct espi_plan_start at;
    espi_walk walk;
} builder;

void espi_plans_free(espi_plans *plans)
{
    espi_free(plans->start);
    espi_free(plans->node);
    espi_free(plans->child);
    espi_free(plans->word);
    *plans = (espi_plans){0};
}

static bool add_word(builder *b, espi_ref vertex, uint32_t group)
{
    espi_plans *p = b->plans;
    if (!espi_reserve(&p->word, &p->capacity[2], b->at.word + 1, sizeof *p->word)) return false;
    b->index[vertex] = ESPI_WORD | (uint32_t)(b->at.word - p->start[p->trees].word);
    p->word[b->at.word++] = (espi_plan_word){.group = group, .vertex = vertex};
    return true;
}

/* The node knows its children by their places; how often each occurs is told from the top, when all are there. */
static bool add_node(builder *b, espi_ref vertex, uint32_t group)
{
    espi_plans *p = b->plans;
    const espi_forest *f = b->forest;
    const espi_production *production = espi_production_of(f, vertex);
    const struct espi_plan_start start = p->start[p->trees];
    if (!espi_reserve(&p->node, &p->capacity[0], b->at.node + 1, sizeof *p->node) ||
        !espi_reserve(&p->child, &p->capacity[1], b->at.child + production->inner, sizeof *p->child))
        return false;
    espi_plan_node *node = &p->node[b->at.node];
    *node = (espi_plan_node){
        .group = group, .vertex = vertex, .first = (uint32_t)(b->at.child - start.child), .alone = true};
    const espi_ref *child = f->child + f->vertex[vertex].children;
    for (size_t k = 0; k < production->arity; k++) {
        if (espi_is_leaf(child[k])) continue;
        const uint32_t index = b->index[child[k]];
        p->child[b->at.child++] = (index & ESPI_WORD) == 0 ? index : ESPI_WORD | p->word[start.word + (index & ~ESPI_WORD)].group;
    }
    node->end = (uint32_t)(b->at.child - start.child);
    b->index[vertex] = (uint32_t)(b->at.node - start.node);
    if (b->stamp[group] == p->trees + 1) node->alone = p->node[start.node + b->last[group]].alone = false;
    b->stamp[group] = p->trees + 1;
    b->last[group] = b->index[vertex];
    b->at.node++;
    return true;
}

/* Counts from the root down; the root comes last. Frees the index for the next tree. */
static void count(builder *b, espi_ref root)
{
    const espi_plans *p = b->plans;
    const espi_forest *f = b->forest;
    const struct espi_plan_start start = p->start[p->trees];
    espi_plan_node *node = p->node + start.node;
    espi_plan_word *word = p->word + start.word;
    if (!espi_is_leaf(root) && (b->index[root] & ESPI_WORD) != 0) word[0].count = 1.0;
    else if (!espi_is_leaf(root)) node[b->at.node - start.node - 1].count = 1.0;
    for (size_t i = b->at.node - start.node; i-- > 0;) {
        const espi_ref *child = f->child + f->vertex[node[i].vertex].children;
        if (node[i].count > 1.0) node[i].alone = false;
        for (size_t k = 0; k < espi_production_of(f, node[i].vertex)->arity; k++) {
            if (espi_is_leaf(child[k])) continue;
            const uint32_t index = b->index[child[k]];
            if ((index & ESPI_WORD) != 0) {
                word[index & ~ESPI_WORD].count += node[i].count;
            } else {
                node[index].count += node[i].count;
                node[index].uses++;
            }
        }
    }
    for (size_t i = start.node; i < b->at.node; i++) b->index[p->node[i].vertex] = ESPI_NO_NODE;
    for (size_t i = start.word; i < b->at.word; i++) b->index[p->word[i].vertex] = ESPI_NO_NODE;
}

static bool add_tree(builder *b, espi_ref root)
{
    const espi_forest *f = b->forest;
    bool failed = !espi_walk_start(&b->walk, f, root);
    espi_ref vertex;
    b->plans->start[b->plans->trees] = b->at;
    while (!failed && (vertex = espi_walk_next_new(&b->walk, b->index, &failed)) != ESPI_NO_NODE) {
        const uint32_t production = f->vertex[vertex].production;
        const uint32_t group = b->shared == NULL ? production : b->shared[production];
        failed = f->production[production].inner == 0 ? !add_word(b, vertex, group) : !add_node(b, vertex, group);
    }
    if (failed) return false;
    count(b, root);
    b->plans->start[++b->plans->trees] = b->at;
    return true;
}

bool espi_plans_make(espi_plans *plans, const espi_forest *forest, const uint32_t *shared, size_t groups)
{
    builder b = {.plans = plans, .forest = forest, .shared = shared};
    *plans = (espi_plans){0};
    b.index = espi_alloc(forest->vertices, sizeof *b.index);
    b.last = espi_alloc(groups, sizeof *b.last);
    b.stamp = espi_alloc_zero(groups, sizeof *b.stamp);
    plans->start = espi_alloc_zero(forest->roots + 1, sizeof *plans->start);
    bool ok = b.index != NULL && b.last != NULL && b.stamp != NULL && plans->start != NULL;
    if (ok && forest->vertices > 0) memset(b.index, 0xFF, forest->vertices * sizeof *b.index);
    for (size_t i = 0; ok && i < forest->roots; i++) ok = add_tree(&b, forest->root[i]);
    espi_walk_free(&b.walk);
    espi_free(b.index);
    espi_free(b.last);
    espi_free(b.stamp);
    if (!ok) espi_plans_free(plans);
    return ok;
}
