/* K(T, T) of every tree: of a small one by a table of the pairs of its nodes, of a large one, and derivatives, by an
 * index of its own. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/partial_tree/partial_tree.h"

enum {
    SLOPES = ESPI_PTK_LANES - 1, /* derivatives */
    CHUNK = 32,                  /* trees that a thread takes at a time */
    SMALL = 1 << 16,             /* pairs of nodes with one label; their table stays in the cache */
    FEW = 1 << 12                /* children of all nodes */
};

typedef struct self_worker {
    espi_ptk_builder builder;
    double *excess;   /* of nodes a >= b of one group: excess[row[a] + rank[b]] */
    uint32_t *row;    /* per node */
    uint32_t *rank;   /* per node: in its group */
    uint32_t *before; /* per node: the one before it in its group; ESPI_NO_NODE: it is the first */
    uint64_t *mask;   /* per node: the bits of its children's labels */
    uint32_t *newest; /* per group: its newest node in the current tree; else ESPI_NO_NODE */
    size_t excess_capacity, row_capacity, rank_capacity, before_capacity, mask_capacity;
    double *count; /* per name: of the current tree; else 0 */
    espi_ptk_cells cells;
} self_worker;

typedef struct ptk_self_values {
    const espi_ptk_values *values;
    const espi_ptk_trees *trees;
    const uint32_t *namesake; /* per name: the number of the other name with its label; ESPI_NO_NODE: there is none */
    bool slopes;              /* are asked for, not values */
    double *value;
    self_worker *worker; /* per thread */
} ptk_self_values;

static bool start_worker(const ptk_self_values *j, self_worker *w)
{
    if (w->count != NULL) return true;
    w->newest = espi_alloc(j->trees->group.count, sizeof *w->newest);
    if (w->newest == NULL) return false;
    for (size_t g = 0; g < j->trees->group.count; g++) w->newest[g] = ESPI_NO_NODE;
    w->count = espi_alloc_zero(j->trees->name.count, sizeof *w->count);
    return w->count != NULL;
}

static void free_worker(self_worker *w)
{
    espi_ptk_builder_free(&w->builder);
    espi_ptk_cells_free(&w->cells);
    espi_free(w->excess);
    espi_free(w->row);
    espi_free(w->rank);
    espi_free(w->before);
    espi_free(w->mask);
    espi_free(w->newest);
    espi_free(w->count);
}

/* ------------------------------------------------------------- small trees */

static double *excess_of(const self_worker *w, uint32_t a, uint32_t b)
{
    return &w->excess[a > b ? w->row[a] + w->rank[b] : w->row[b] + w->rank[a]];
}

/* One of 64 bits for a label: nodes whose children have no bit in common have no cell, which most pairs have not. */
static uint64_t bit_of(uint32_t name) { return UINT64_C(1) << (espi_ptk_label(name) * UINT32_C(0x9E3779B1) >> 26); }

static uint64_t mask_of(const espi_ptk_trees *t, const espi_ptk_shape *shape)
{
    uint64_t mask = 0;
    for (size_t k = shape->name; k < shape->name + shape->children; k++) mask |= bit_of(t->child_name[k]);
    return mask;
}

/* Chains up the nodes of each group and gives every pair of them a place. *pairs: how many there are, or more than
 * SMALL of them. False: out of memory. */
static bool lay_out(const ptk_self_values *j, const espi_ptk_tree *tree, self_worker *w, size_t *pairs)
{
    *pairs = 0;
    if (!espi_reserve(&w->row, &w->row_capacity, tree->nodes, sizeof *w->row) ||
        !espi_reserve(&w->rank, &w->rank_capacity, tree->nodes, sizeof *w->rank) ||
        !espi_reserve(&w->before, &w->before_capacity, tree->nodes, sizeof *w->before) ||
        !espi_reserve(&w->mask, &w->mask_capacity, tree->nodes, sizeof *w->mask))
        return false;
    for (size_t a = 0; a < tree->nodes && *pairs <= SMALL; a++) {
        const espi_ptk_shape *shape = &j->trees->shape[tree->node[a].shape];
        uint32_t *newest = &w->newest[shape->group];
        w->mask[a] = mask_of(j->trees, shape);
        w->before[a] = *newest;
        w->rank[a] = *newest == ESPI_NO_NODE ? 0 : w->rank[*newest] + 1;
        w->row[a] = (uint32_t)*pairs;
        *newest = (uint32_t)a;
        *pairs += w->rank[a] + 1;
    }
    for (size_t a = 0; a < tree->nodes; a++) w->newest[j->trees->shape[tree->node[a].shape].group] = ESPI_NO_NODE;
    return *pairs > SMALL || espi_reserve(&w->excess, &w->excess_capacity, *pairs, sizeof *w->excess);
}

/* The cells of nodes a >= b of one small tree, and their values. False: out of memory. */
static bool find_cells(const ptk_self_values *j, const espi_ptk_tree *tree, size_t a, size_t b, self_worker *w)
{
    const espi_ptk_trees *t = j->trees;
    const espi_ptk_shape *p = &t->shape[tree->node[a].shape], *q = &t->shape[tree->node[b].shape];
    const uint32_t *below = tree->child + tree->node[a].first, *other = tree->child + tree->node[b].first;
    const uint64_t mask = w->mask[b];
    espi_ptk_cells *c = &w->cells;
    c->p = c->to = p->children;
    c->q = q->children;
    c->count = 0;
    c->n = c->lanes = 1;
    if (!espi_ptk_cells_reserve(c, c->p * c->q, c->p * c->q)) return false;
    for (size_t k = 0; k < p->children; k++) {
        const uint32_t x = t->child_name[p->name + k];
        if ((bit_of(x) & mask) == 0) continue;
        for (size_t l = 0; l < q->children; l++) {
            const uint32_t y = t->child_name[q->name + l];
            if (espi_ptk_label(x) != espi_ptk_label(y)) continue;
            double value = *espi_ptk_constant(j->values, x, y);
            if (below[k] != ESPI_NO_NODE && other[l] != ESPI_NO_NODE) value += *excess_of(w, below[k], other[l]);
            c->k[c->count] = (uint32_t)k;
            c->l[c->count] = (uint32_t)l;
            c->value[c->count++] = value;
        }
    }
    return true;
}

static double sum_constants(const ptk_self_values *j, const espi_ptk_tree *tree, double *count)
{
    const espi_ptk_map *names = &j->trees->name;
    double sum = 0.0;
    for (size_t i = 0; i < tree->counts; i++) count[tree->count[i].name] = tree->count[i].count;
    for (size_t i = 0; i < tree->counts; i++) {
        const uint32_t itself = tree->count[i].name, name = (uint32_t)names->key[itself];
        for (size_t n = 0; n < 2; n++) {
            const uint32_t other = espi_ptk_namesake(name, n), number = other == name ? itself : j->namesake[itself];
            if (number == ESPI_NO_NODE) continue;
            sum += *espi_ptk_constant(j->values, name, other) * tree->count[i].count * count[number];
        }
    }
    for (size_t i = 0; i < tree->counts; i++) count[tree->count[i].name] = 0.0;
    return sum;
}

static bool small_value(const ptk_self_values *j, const espi_ptk_tree *tree, self_worker *w, double *sum)
{
    *sum = sum_constants(j, tree, w->count);
    for (uint32_t a = 0; a < tree->nodes; a++) {
        double row = 0.0; /* apart, so that small terms are not lost in a large sum */
        for (uint32_t b = a; b != ESPI_NO_NODE; b = w->before[b]) {
            double *excess = excess_of(w, a, b);
            *excess = 0.0;
            if ((w->mask[a] & w->mask[b]) == 0) continue;
            if (!find_cells(j, tree, a, b, w)) return false;
            if (w->cells.count > 0 && !espi_ptk_children(j->values, &w->cells, excess)) return false;
            row += (a == b ? 1.0 : 2.0) * tree->node[b].count * *excess;
        }
        *sum += tree->node[a].count * row;
    }
    return true;
}

/* ------------------------------------------------------------- large trees */

/* By an index of this tree alone, so that its cost does not depend on the other trees. */
static esp_status large_value(const ptk_self_values *j, size_t i, espi_ptk_builder *builder, const esp_run *run,
                              double *value, esp_error *err)
{
    const espi_forest *forest = j->trees->forest;
    espi_ptk_trees trees = {0};
    espi_ptk_index index = {0};
    espi_ptk_link link = {0};
    espi_ptk_matcher *matcher = NULL;
    bool ok = espi_ptk_trees_make(&trees, forest, j->trees->symbol, &forest->root[i], 1, builder);
    if (ok) {
        for (size_t k = 0; k < trees.tree[1].node; k++) trees.node[k].vertex = (uint32_t)k; /* the forest is large */
        ok = espi_ptk_index_make(&index, &trees) && espi_ptk_link_make(&link, &trees, &index);
    }
    if (ok) matcher = espi_ptk_matcher_new(j->values, &index, &link, run);
    esp_status status = matcher == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) {
        const espi_ptk_tree tree = espi_ptk_tree_of(&trees, 0);
        const double one = 1.0;
        for (size_t p = 0; j->slopes && p < SLOPES; p++) value[p] = 0.0;
        if (j->slopes) status = espi_ptk_match_gradient(matcher, &tree, 0, 1, &one, NULL, value, err);
        else status = espi_ptk_match_row(matcher, &tree, 0, 1, value, err);
    }
    espi_ptk_matcher_free(matcher);
    espi_ptk_link_free(&link);
    espi_ptk_index_free(&index);
    espi_ptk_trees_free(&trees);
    return status;
}

static esp_status self_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const ptk_self_values *j = context;
    const size_t end = (item + 1) * CHUNK < j->trees->trees ? (item + 1) * CHUNK : j->trees->trees;
    esp_status status = ESP_OK;
    self_worker *w = &j->worker[thread->number];
    if (!start_worker(j, w)) return espi_no_memory(err);
    for (size_t i = item * CHUNK; status == ESP_OK && i < end; i++) {
        const espi_ptk_tree tree = espi_ptk_tree_of(j->trees, i);
        const size_t children = j->trees->tree[i + 1].child - j->trees->tree[i].child;
        double *value = j->value + i * (j->slopes ? SLOPES : 1);
        size_t pairs = 0;
        const bool small = children <= FEW && !j->slopes;
        if (small && !lay_out(j, &tree, w, &pairs)) return espi_no_memory(err);
        if (!small || pairs > SMALL) status = large_value(j, i, &w->builder, thread->run, value, err);
        else if (!small_value(j, &tree, w, value)) status = espi_no_memory(err);
    }
    return status;
}

static uint32_t *find_namesakes(const espi_ptk_map *names)
{
    uint32_t *namesake = espi_alloc(names->count, sizeof *namesake);
    for (size_t a = 0; namesake != NULL && a < names->count; a++)
        namesake[a] = espi_ptk_map_find(names, names->key[a] ^ 1);
    return namesake;
}

esp_status espi_ptk_self_values(const espi_ptk_values *values, const espi_ptk_trees *trees, const esp_run *run,
                                bool slopes, double *value, esp_error *err)
{
    const size_t items = (trees->trees + CHUNK - 1) / CHUNK;
    const int workers = espi_worker_count(run, items);
    ptk_self_values j = {.values = values, .trees = trees, .slopes = slopes, .value = value};
    uint32_t *namesake = find_namesakes(&trees->name);
    j.namesake = namesake;
    j.worker = espi_alloc_zero((size_t)workers, sizeof *j.worker);
    const bool ok = namesake != NULL && j.worker != NULL;
    const esp_status status =
        ok ? espi_parallel(run, "preparing the norms", items, self_chunk, &j, err) : espi_no_memory(err);
    for (int i = 0; j.worker != NULL && i < workers; i++) free_worker(&j.worker[i]);
    espi_free(j.worker);
    espi_free(namesake);
    return status;
}
