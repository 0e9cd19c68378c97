#include "kernel/tree/plan.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <string.h>

typedef struct builder { /* one per thread */
    espi_plan_chunk *chunk;
    const espi_forest *forest;
    const uint32_t *shared;
    uint32_t *index; /* vertex -> its node or ESPI_WORD | its word in the plan at hand; ESPI_NO_NODE: not in it */
    uint32_t *last;  /* group -> its newest node in the plan at hand ... */
    size_t *stamp;   /* ... if this is the tree's number */
    size_t tree;     /* trees so far, this one included */
    struct espi_plan_start at;
    espi_walk walk;
} builder;

static void free_chunk(espi_plan_chunk *chunk)
{
    espi_free(chunk->node);
    espi_free(chunk->child);
    espi_free(chunk->word);
}

static void free_builder(builder *b)
{
    espi_walk_free(&b->walk);
    espi_free(b->index);
    espi_free(b->last);
    espi_free(b->stamp);
}

static bool add_word(builder *b, espi_ref vertex, uint32_t group)
{
    espi_plan_chunk *p = b->chunk;
    if (!espi_reserve(&p->word, &p->capacity[2], b->at.word + 1, sizeof *p->word)) return false;
    b->index[vertex] = ESPI_WORD | (uint32_t)(b->at.word - p->start[p->trees].word);
    p->word[b->at.word++] = (espi_plan_word){.group = group, .vertex = vertex};
    return true;
}

/* The node knows its children by their places; how often each occurs is told from the top, when all are there. */
static bool add_node(builder *b, espi_ref vertex, uint32_t group)
{
    espi_plan_chunk *p = b->chunk;
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
        p->child[b->at.child++] =
            (index & ESPI_WORD) == 0 ? index : ESPI_WORD | p->word[start.word + (index & ~ESPI_WORD)].group;
    }
    node->end = (uint32_t)(b->at.child - start.child);
    b->index[vertex] = (uint32_t)(b->at.node - start.node);
    if (b->stamp[group] == b->tree) node->alone = p->node[start.node + b->last[group]].alone = false;
    b->stamp[group] = b->tree;
    b->last[group] = b->index[vertex];
    b->at.node++;
    return true;
}

/* Counts from the root down; the root comes last. */
static void count(builder *b, espi_ref root)
{
    const espi_plan_chunk *p = b->chunk;
    const espi_forest *f = b->forest;
    const struct espi_plan_start start = p->start[p->trees];
    /* An array without entries may be NULL, to which nothing can be added. */
    espi_plan_node *node = b->at.node > 0 ? p->node + start.node : NULL;
    espi_plan_word *word = b->at.word > 0 ? p->word + start.word : NULL;
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
}

static void clear_index(builder *b)
{
    const espi_plan_chunk *p = b->chunk;
    const struct espi_plan_start start = p->start[p->trees];
    for (size_t i = start.node; i < b->at.node; i++) b->index[p->node[i].vertex] = ESPI_NO_NODE;
    for (size_t i = start.word; i < b->at.word; i++) b->index[p->word[i].vertex] = ESPI_NO_NODE;
}

/* Those subtrees of a tree that the plan at hand does not have. */
static bool add_subtrees(builder *b, espi_ref root)
{
    const espi_forest *f = b->forest;
    bool failed = !espi_walk_start(&b->walk, f, root);
    espi_ref vertex;
    while (!failed && (vertex = espi_walk_next_new(&b->walk, b->index, &failed)) != ESPI_NO_NODE) {
        const uint32_t production = f->vertex[vertex].production;
        const uint32_t group = b->shared == NULL ? production : b->shared[production];
        failed = f->production[production].inner == 0 ? !add_word(b, vertex, group) : !add_node(b, vertex, group);
    }
    return !failed;
}

static bool add_tree(builder *b, espi_ref root)
{
    b->tree++;
    b->chunk->start[b->chunk->trees] = b->at;
    if (!add_subtrees(b, root)) return false;
    count(b, root);
    clear_index(b);
    b->chunk->start[++b->chunk->trees] = b->at;
    return true;
}

typedef struct planning {
    espi_plans *plans;
    const espi_forest *forest;
    const uint32_t *shared;
    size_t groups;
    builder *builder; /* per thread */
} planning;

static bool start_builder(const planning *j, builder *b)
{
    if (b->index != NULL) return true;
    b->forest = j->forest;
    b->shared = j->shared;
    b->last = espi_alloc(j->groups, sizeof *b->last);
    b->stamp = espi_alloc_zero(j->groups, sizeof *b->stamp);
    b->index = espi_alloc(j->forest->vertices, sizeof *b->index);
    if (b->last == NULL || b->stamp == NULL || b->index == NULL) return false;
    if (j->forest->vertices > 0) memset(b->index, 0xFF, j->forest->vertices * sizeof *b->index);
    return true;
}

static esp_status make_chunk(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const planning *j = context;
    builder *b = &j->builder[worker->number];
    bool ok = start_builder(j, b);
    b->chunk = &j->plans->chunk[item];
    b->at = (struct espi_plan_start){0};
    for (size_t i = item * ESPI_PLAN_CHUNK; ok && i < j->forest->roots && b->chunk->trees < ESPI_PLAN_CHUNK; i++)
        ok = add_tree(b, j->forest->root[i]);
    return ok ? ESP_OK : espi_no_memory(err);
}

esp_status espi_plans_make(espi_plans *plans, const espi_forest *forest, const uint32_t *shared, size_t groups,
                           const esp_run *run, esp_error *err)
{
    const size_t chunks = (forest->roots + ESPI_PLAN_CHUNK - 1) / ESPI_PLAN_CHUNK;
    const int workers = espi_worker_count(run, chunks);
    planning j = {.plans = plans, .forest = forest, .shared = shared, .groups = groups};
    *plans = (espi_plans){.trees = forest->roots, .chunks = chunks};
    plans->chunk = espi_alloc_zero(chunks, sizeof *plans->chunk);
    j.builder = espi_alloc_zero((size_t)workers, sizeof *j.builder);
    const bool ready = plans->chunk != NULL && j.builder != NULL;
    const esp_status status =
        ready ? espi_parallel(run, "preparing the trees", chunks, make_chunk, &j, err) : espi_no_memory(err);
    for (int i = 0; j.builder != NULL && i < workers; i++) free_builder(&j.builder[i]);
    espi_free(j.builder);
    if (status != ESP_OK) espi_plans_free(plans);
    return status;
}

void espi_plans_free(espi_plans *plans)
{
    for (size_t i = 0; plans->chunk != NULL && i < plans->chunks; i++) free_chunk(&plans->chunk[i]);
    espi_free(plans->chunk);
    *plans = (espi_plans){0};
}

struct espi_planner {
    builder builder;
    espi_plan_chunk chunk;
    size_t index_capacity, last_capacity, stamp_capacity; /* in use: all */
};

espi_planner *espi_planner_new(const espi_forest *forest)
{
    espi_planner *p = espi_alloc_zero(1, sizeof *p);
    if (p != NULL) p->builder.forest = forest;
    return p;
}

void espi_planner_free(espi_planner *p)
{
    if (p == NULL) return;
    free_builder(&p->builder);
    free_chunk(&p->chunk);
    espi_free(p);
}

/* Room in the tables of the builder for all that the forest has now. */
static bool fit_builder(espi_planner *p)
{
    builder *b = &p->builder;
    const espi_forest *f = b->forest;
    const size_t vertices = p->index_capacity, productions = p->stamp_capacity;
    if (!espi_reserve(&b->index, &p->index_capacity, f->vertices, sizeof *b->index) ||
        !espi_reserve(&b->last, &p->last_capacity, f->productions, sizeof *b->last) ||
        !espi_reserve(&b->stamp, &p->stamp_capacity, f->productions, sizeof *b->stamp))
        return false;
    if (p->index_capacity > vertices)
        memset(b->index + vertices, 0xFF, (p->index_capacity - vertices) * sizeof *b->index);
    if (p->stamp_capacity > productions)
        memset(b->stamp + productions, 0, (p->stamp_capacity - productions) * sizeof *b->stamp);
    return true;
}

static bool start_plan(espi_planner *p)
{
    p->builder.chunk = &p->chunk;
    p->builder.at = p->chunk.start[0] = (struct espi_plan_start){0};
    p->chunk.trees = 0;
    return fit_builder(p);
}

static espi_plan made_plan(const espi_planner *p)
{
    return (espi_plan){.node = p->chunk.node,
                       .nodes = p->builder.at.node,
                       .child = p->chunk.child,
                       .word = p->chunk.word,
                       .words = p->builder.at.word};
}

bool espi_planner_make(espi_planner *p, espi_ref root, espi_plan *out)
{
    if (!start_plan(p) || !add_tree(&p->builder, root)) return false;
    *out = made_plan(p);
    return true;
}

static uint32_t place_of(const builder *b, espi_ref root)
{
    if (root == ESPI_NO_NODE || espi_is_leaf(root)) return ESPI_NO_NODE;
    const uint32_t index = b->index[root];
    return (index & ESPI_WORD) == 0 ? index : ESPI_WORD | b->chunk->word[index & ~ESPI_WORD].group;
}

bool espi_planner_make_set(espi_planner *p, const uint32_t *row, size_t rows, espi_plan *out, uint32_t *place)
{
    builder *b = &p->builder;
    bool ok = start_plan(p);
    b->tree++;
    for (size_t i = 0; ok && i < rows; i++) {
        const espi_ref root = b->forest->root[row[i]];
        const bool there = root != ESPI_NO_NODE && !espi_is_leaf(root) && b->index[root] != ESPI_NO_NODE;
        ok = there || add_subtrees(b, root);
        if (ok) place[i] = place_of(b, root);
    }
    if (!ok) return false;
    for (size_t i = 0; i < b->at.child; i++)
        if ((p->chunk.child[i] & ESPI_WORD) == 0) p->chunk.node[p->chunk.child[i]].uses++;
    clear_index(b);
    *out = made_plan(p);
    return true;
}
