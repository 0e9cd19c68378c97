#include "kernel/partial_tree/pair.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"

void espi_ptk_flat_free(espi_ptk_flat *t)
{
    espi_free(t->label);
    espi_free(t->first);
    espi_free(t->child);
    espi_free(t->child_label);
    espi_free(t->sorted);
    espi_free(t->place);
    espi_free(t->run);
    *t = (espi_ptk_flat){0};
}

void espi_ptk_scratch_free(espi_ptk_scratch *s)
{
    espi_free(s->delta);
    espi_free(s->base);
    espi_free(s->from);
    espi_free(s->count);
    espi_free(s->ended);
    *s = (espi_ptk_scratch){0};
}

/* ----------------------------------------------------------------- layout */

typedef struct layout {
    espi_ptk_flat *flat;
    const espi_forest *forest;
    const uint32_t *symbol;
    size_t children;
    uint32_t *open; /* inner nodes whose parent has not come yet */
    size_t opened, open_capacity, label_capacity, first_capacity, child_capacity, child_label_capacity;
} layout;

/* A node whose children follow in flat->child. */
static bool add_node(layout *l, uint32_t label, size_t children)
{
    espi_ptk_flat *t = l->flat;
    if (!espi_reserve(&t->label, &l->label_capacity, t->nodes + 1, sizeof *t->label) ||
        !espi_reserve(&t->first, &l->first_capacity, t->nodes + 2, sizeof *t->first) ||
        !espi_reserve(&t->child, &l->child_capacity, l->children + children, sizeof *t->child) ||
        !espi_reserve(&t->child_label, &l->child_label_capacity, l->children + children, sizeof *t->child_label))
        return false;
    t->label[t->nodes] = l->symbol == NULL ? label : l->symbol[label];
    t->first[t->nodes] = l->children;
    t->first[++t->nodes] = l->children + children;
    return true;
}

/* An inner node, behind its leaves; its inner children are there already. */
static bool add_vertex(layout *l, espi_ref vertex)
{
    espi_ptk_flat *t = l->flat;
    const espi_production *p = espi_production_of(l->forest, vertex);
    const espi_ref *child = l->forest->child + l->forest->vertex[vertex].children;
    uint32_t leaf = (uint32_t)t->nodes;
    for (size_t k = 0; k < p->arity; k++)
        if (espi_is_leaf(child[k]) && !add_node(l, espi_leaf_symbol(child[k]), 0)) return false;
    if (!add_node(l, p->label, p->arity) || !espi_reserve(&l->open, &l->open_capacity, l->opened + 1, sizeof *l->open))
        return false;
    l->opened -= p->inner;
    for (size_t k = 0, inner = 0; k < p->arity; k++, l->children++) {
        const uint32_t node = espi_is_leaf(child[k]) ? leaf++ : l->open[l->opened + inner++];
        t->child[l->children] = node;
        t->child_label[l->children] = t->label[node];
    }
    l->open[l->opened++] = (uint32_t)t->nodes - 1;
    return true;
}

/* Orders the nodes by label, then by number, and marks the runs. */
static bool sort_nodes(espi_ptk_flat *t)
{
    uint64_t *key = espi_alloc(t->nodes, sizeof *key);
    t->sorted = espi_alloc(t->nodes, sizeof *t->sorted);
    t->place = espi_alloc(t->nodes, sizeof *t->place);
    t->run = espi_alloc(t->nodes + 1, sizeof *t->run);
    const bool ok = key != NULL && t->sorted != NULL && t->place != NULL && t->run != NULL;
    for (size_t i = 0; ok && i < t->nodes; i++) key[i] = (uint64_t)t->label[i] << 32 | i;
    if (ok) espi_sort_keys(key, t->nodes);
    for (size_t i = 0; ok && i < t->nodes; i++) {
        const uint32_t label = (uint32_t)(key[i] >> 32), node = (uint32_t)key[i];
        if (i == 0 || label != key[i - 1] >> 32)
            t->run[t->runs++] = (struct espi_ptk_run){.label = label, .from = (uint32_t)i};
        t->sorted[i] = node;
        t->place[node] = (uint32_t)i - t->run[t->runs - 1].from;
    }
    if (ok) t->run[t->runs].from = (uint32_t)t->nodes;
    espi_free(key);
    return ok;
}

bool espi_ptk_flat_fill(espi_ptk_flat *t, const espi_forest *forest, espi_ref root, const uint32_t *symbol)
{
    layout l = {.flat = t, .forest = forest, .symbol = symbol};
    espi_walk walk = {0};
    espi_ref vertex;
    bool failed = !espi_walk_start(&walk, forest, root);
    while (!failed && (vertex = espi_walk_next(&walk, &failed)) != ESPI_NO_NODE) failed = !add_vertex(&l, vertex);
    if (!failed && espi_is_leaf(root) && root != ESPI_NO_NODE) failed = !add_node(&l, espi_leaf_symbol(root), 0);
    failed = failed || !sort_nodes(t);
    espi_walk_free(&walk);
    espi_free(l.open);
    return !failed;
}

/* ----------------------------------------------------------------- values */

/* Finds for every node of `a` the nodes of `b` with its label, by merging the sorted lists, and a place for each such
 * pair in scratch->delta. */
static bool meet(const espi_ptk_flat *a, const espi_ptk_flat *b, espi_ptk_scratch *s)
{
    if (!espi_reserve(&s->base, &s->capacity[1], a->nodes, sizeof *s->base) ||
        !espi_reserve(&s->from, &s->capacity[2], a->nodes, sizeof *s->from) ||
        !espi_reserve(&s->count, &s->capacity[3], a->nodes, sizeof *s->count))
        return false;
    for (size_t i = 0; i < a->nodes; i++) s->count[i] = 0;
    size_t pairs = 0;
    for (size_t x = 0, y = 0; x < a->runs && y < b->runs;) {
        const uint32_t p = a->run[x].label, q = b->run[y].label;
        if (p == q) {
            const uint32_t from = b->run[y].from, count = b->run[y + 1].from - from;
            for (size_t i = a->run[x].from; i < a->run[x + 1].from; i++) {
                const uint32_t node = a->sorted[i];
                s->from[node] = from;
                s->count[node] = count;
                s->base[node] = pairs;
                pairs += count;
            }
        }
        x += p <= q;
        y += p >= q;
    }
    return espi_reserve(&s->delta, &s->capacity[0], pairs, sizeof *s->delta);
}

/* S(i, j) by the table of children.c; ended[l] is Q(k, l) of the current row. */
static esp_status chains(const espi_ptk_flat *a, size_t i, const espi_ptk_flat *b, size_t j, double lambda,
                         espi_ptk_scratch *s, double *out, esp_error *err)
{
    const uint32_t *child = a->child + a->first[i], *other = b->child + b->first[j];
    const uint32_t *label = a->child_label + a->first[i], *other_label = b->child_label + b->first[j];
    const size_t arity = a->first[i + 1] - a->first[i], wide = b->first[j + 1] - b->first[j];
    double *ended = s->ended, sum = 0.0;
    for (size_t l = 0; l < wide; l++) ended[l] = 0.0;
    esp_status status = ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < arity; k++) {
        double row = 0.0, corner = 0.0;
        for (size_t l = 0; l < wide; l++) {
            const double above = ended[l];
            row *= lambda;
            if (label[k] == other_label[l]) {
                const double chain = s->delta[s->base[child[k]] + b->place[other[l]]] * (1.0 + corner);
                sum += chain;
                row += chain;
            }
            ended[l] = row + lambda * above;
            corner = above;
        }
        s->steps += wide;
        status = espi_progress_at_times(s->run, "computing the kernel", &s->steps, err);
    }
    *out = sum;
    return status;
}

esp_status espi_ptk_pair(const espi_ptk_flat *a, const espi_ptk_flat *b, const espi_ptk_values *v, espi_ptk_scratch *s,
                         double *value, esp_error *err)
{
    const double square = v->lambda * v->lambda, leaf = v->mu * square * v->terminal;
    double sum = 0.0;
    *value = 0.0;
    if (!meet(a, b, s) || !espi_reserve(&s->ended, &s->capacity[4], b->nodes, sizeof *s->ended))
        return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < a->nodes; i++) {
        double row = 0.0; /* apart, so that millions of small terms are not lost in a large sum */
        for (size_t m = 0; status == ESP_OK && m < s->count[i]; m++) {
            const size_t j = b->sorted[s->from[i] + m];
            const bool both = a->first[i] < a->first[i + 1] && b->first[j] < b->first[j + 1];
            double sums = 0.0;
            if (both) status = chains(a, i, b, j, v->lambda, s, &sums, err);
            const double delta = both ? v->mu * (square + sums) : leaf;
            s->delta[s->base[i] + m] = delta;
            row += delta;
        }
        sum += row;
    }
    *value = sum;
    return status;
}
