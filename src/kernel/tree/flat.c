/* Delta(a, b) = lambda * prod_k (alpha + Delta(a_k, b_k)) over pairs of nodes with equal productions, summed
 * (Moschitti 2006, eq. 2 and section 3). */
#include "kernel/tree/flat.h"

#include "base/alloc.h"
#include "base/sort.h"

#include <string.h>

void espi_flat_free(espi_flat *t)
{
    espi_free(t->production);
    espi_free(t->first);
    espi_free(t->child);
    espi_free(t->sorted);
    espi_free(t->place);
    espi_free(t->run);
    *t = (espi_flat){0};
}

size_t espi_flat_bytes(const espi_flat *t)
{
    return t->capacity[0] * sizeof *t->production + t->capacity[1] * sizeof *t->first +
           t->capacity[2] * sizeof *t->child + t->capacity[3] * sizeof *t->sorted + t->capacity[4] * sizeof *t->place +
           t->capacity[5] * sizeof *t->run;
}

static bool reserve_nodes(espi_flat *t, size_t nodes)
{
    return espi_reserve(&t->production, &t->capacity[0], nodes, sizeof *t->production) &&
           espi_reserve(&t->first, &t->capacity[1], nodes + 1, sizeof *t->first) &&
           espi_reserve(&t->child, &t->capacity[2], nodes, sizeof *t->child) &&
           espi_reserve(&t->sorted, &t->capacity[3], nodes, sizeof *t->sorted) &&
           espi_reserve(&t->place, &t->capacity[4], nodes, sizeof *t->place) &&
           espi_reserve(&t->run, &t->capacity[5], nodes + 1, sizeof *t->run);
}

/* Orders the nodes by production, then by number, and marks the runs. */
static bool sort_nodes(espi_flat *t)
{
    uint64_t *key = espi_alloc(t->nodes, sizeof *key);
    if (key == NULL) return false;
    for (size_t i = 0; i < t->nodes; i++) key[i] = (uint64_t)t->production[i] << 32 | i;
    espi_sort_keys(key, t->nodes);
    t->runs = 0;
    for (size_t i = 0; i < t->nodes; i++) {
        if (i == 0 || key[i] >> 32 != key[i - 1] >> 32) t->run[t->runs++] = i;
        t->sorted[i] = (uint32_t)key[i];
        t->place[t->sorted[i]] = (uint32_t)(i - t->run[t->runs - 1]);
    }
    t->run[t->runs] = t->nodes;
    espi_free(key);
    return true;
}

bool espi_flat_fill(espi_flat *t, const espi_forest *forest, espi_ref root, const uint32_t *map)
{
    espi_walk walk = {0};
    uint32_t *open = NULL; /* nodes whose parent has not come yet */
    size_t opened = 0, open_capacity = 0, children = 0;
    bool failed = !espi_walk_start(&walk, forest, root);
    espi_ref vertex;
    t->nodes = 0;
    while (!failed && (vertex = espi_walk_next(&walk, &failed)) != ESPI_NO_NODE) {
        const size_t i = t->nodes;
        failed = !reserve_nodes(t, i + 1) || !espi_reserve(&open, &open_capacity, opened + 1, sizeof *open);
        if (failed) break;
        const uint32_t production = forest->vertex[vertex].production;
        const size_t inner = forest->production[production].inner;
        t->production[i] = map == NULL ? production : map[production];
        opened -= inner;
        t->first[i] = children;
        if (inner > 0) memcpy(t->child + children, open + opened, inner * sizeof *open);
        children += inner;
        open[opened++] = (uint32_t)i;
        t->nodes++;
    }
    espi_free(open);
    espi_walk_free(&walk);
    if (failed || !reserve_nodes(t, t->nodes)) return false;
    t->first[t->nodes] = children;
    return sort_nodes(t);
}

void espi_pair_scratch_free(espi_pair_scratch *s)
{
    espi_free(s->delta);
    espi_free(s->base);
    espi_free(s->from);
    espi_free(s->count);
    *s = (espi_pair_scratch){0};
}

/* Finds for every node of `a` the nodes of `b` with its production, by merging the sorted lists, and a place for
 * each such pair in scratch->delta. */
static bool meet(const espi_flat *a, const espi_flat *b, espi_pair_scratch *s)
{
    if (!espi_reserve(&s->base, &s->capacity[1], a->nodes, sizeof *s->base) ||
        !espi_reserve(&s->from, &s->capacity[2], a->nodes, sizeof *s->from) ||
        !espi_reserve(&s->count, &s->capacity[3], a->nodes, sizeof *s->count))
        return false;
    if (a->nodes > 0) memset(s->count, 0, a->nodes * sizeof *s->count);
    size_t pairs = 0;
    for (size_t x = 0, y = 0; x < a->runs && y < b->runs;) {
        const uint32_t p = a->production[a->sorted[a->run[x]]], q = b->production[b->sorted[b->run[y]]];
        if (p == ESPI_NO_NODE || q == ESPI_NO_NODE) break; /* the largest number, and equal to nothing */
        if (p == q) {
            const size_t from = b->run[y], count = b->run[y + 1] - from;
            for (size_t i = a->run[x]; i < a->run[x + 1]; i++) {
                const uint32_t node = a->sorted[i];
                s->from[node] = (uint32_t)from;
                s->count[node] = (uint32_t)count;
                s->base[node] = pairs;
                pairs += count;
            }
        }
        x += p <= q;
        y += p >= q;
    }
    return espi_reserve(&s->delta, &s->capacity[0], pairs, sizeof *s->delta);
}

bool espi_ftk(const espi_flat *a, const espi_flat *b, const espi_decay *decay, espi_pair_scratch *s, double *value)
{
    *value = 0.0;
    if (!meet(a, b, s)) return false;
    double sum = 0.0;
    for (size_t i = 0; i < a->nodes; i++) {
        if (s->count[i] == 0) continue;
        const uint32_t p = a->production[i];
        const double lambda = decay->lambda[p], alpha = decay->alpha[p];
        const uint32_t *child = a->child + a->first[i];
        const size_t inner = a->first[i + 1] - a->first[i];
        for (size_t k = 0; k < s->count[i]; k++) {
            const uint32_t *other = b->child + b->first[b->sorted[s->from[i] + k]];
            double delta = lambda;
            for (size_t c = 0; c < inner; c++) {
                const bool same = a->production[child[c]] == b->production[other[c]] && s->count[child[c]] > 0;
                delta *= same ? alpha + s->delta[s->base[child[c]] + b->place[other[c]]] : alpha;
            }
            s->delta[s->base[i] + k] = delta;
            sum += delta;
        }
    }
    *value = sum;
    return true;
}

bool espi_qtk(const espi_flat *a, const espi_flat *b, const espi_decay *decay, espi_pair_scratch *s, double *value)
{
    *value = 0.0;
    if (b->nodes > 0 && a->nodes > SIZE_MAX / b->nodes) return false;
    if (!espi_reserve(&s->delta, &s->capacity[0], a->nodes * b->nodes, sizeof *s->delta)) return false;
    double sum = 0.0;
    for (size_t i = 0; i < a->nodes; i++) {
        for (size_t j = 0; j < b->nodes; j++) {
            const uint32_t p = a->production[i];
            double delta = 0.0;
            if (p == b->production[j] && p != ESPI_NO_NODE) {
                delta = decay->lambda[p];
                for (size_t c = 0; c < a->first[i + 1] - a->first[i]; c++) {
                    const size_t x = a->child[a->first[i] + c], y = b->child[b->first[j] + c];
                    delta *= decay->alpha[p] + s->delta[x * b->nodes + y];
                }
            }
            s->delta[i * b->nodes + j] = delta;
            sum += delta;
        }
    }
    *value = sum;
    return true;
}
