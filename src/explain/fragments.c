/* The fragments of trees that weigh most, in a model or in one example.
 *
 * A fragment t matches at a vertex u of the support forest or does not, whatever tree u stands in:
 *
 *     w(t) = phi(t) * sum over u at which t matches of f(u),     phi(t) = prod of lambda over productions, of alpha
 * over open nodes f(u) = sum over support examples i of c_i * (occurrences of u in i)
 *
 * and its contribution to an example is w(t) times the number of nodes at which it matches there. Fragments grow as in
 * pattern.h: an open node gets a production, those to its left are closed for good. A state holds the vertices at which
 * its fragment matches, each with the vertices that are its open nodes there. Whatever grows from it weighs at most
 *
 *     sum over u with f(u) > 0 of f(u) * (factors so far) * S(open nodes of u),       the same for f(u) < 0
 *
 * S being the largest factor that growing the open nodes of u itself can bring, at least one of them getting a
 * production: with E(v) = lambda * prod over inner children c of max(alpha, E(c)), over the open nodes from right to
 * left, S = max(E T, alpha S), T = T max(alpha, E). */
#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "explain/source.h"
#include "kernel/tree/tree_kernel.h"

#include <math.h>
#include <string.h>

typedef struct fragment {
    espi_state state;
    size_t size;
    double factor; /* of its productions, and of the open nodes that are closed for good */
    size_t open;
    double *alpha;    /* per open node */
    uint32_t *step;   /* skip, production; 2 * size */
    size_t count[2];  /* vertices at which it matches: of the source; of the example */
    espi_ref *ref[2]; /* count * (1 + open): root, open nodes */
} fragment;

typedef struct bucket {     /* extensions of one open node by one production */
    size_t count[2], at[2]; /* occurrences; then where they go in the order */
    double sum, size;       /* of f, and of its absolute values */
    double up, down;        /* of the bounds */
    double matches;         /* in the example */
} bucket;

typedef struct grower {
    const espi_tree_source *source;
    const espi_tree_example *example; /* NULL: the model */
    const espi_feature_query *query;
    bucket *bucket; /* per production */
    uint32_t *touched;
    size_t touches, touched_capacity;
    double *tail;     /* per occurrence: S and T of the open nodes behind the one at hand */
    uint32_t *number; /* per occurrence and side: the production of the open node at hand */
    size_t *order;    /* occurrences by production */
    size_t tail_capacity, number_capacity, order_capacity;
} grower;

static void free_fragment(espi_state *state)
{
    fragment *t = (fragment *)(void *)state;
    espi_free(t->alpha);
    espi_free(t->step);
    espi_free(t->ref[0]);
    espi_free(t->ref[1]);
    espi_free(t);
}

static fragment *new_fragment(size_t size, size_t open, size_t count, size_t in_example)
{
    fragment *t = espi_alloc_zero(1, sizeof *t);
    size_t refs;
    if (t == NULL || __builtin_mul_overflow(count, 1 + open, &refs)) {
        espi_free(t);
        return NULL;
    }
    t->size = size;
    t->open = open;
    t->alpha = espi_alloc(open, sizeof *t->alpha);
    t->step = espi_alloc(2 * size, sizeof *t->step);
    t->ref[0] = espi_alloc(refs, sizeof *t->ref[0]);
    t->ref[1] = espi_alloc(in_example * (1 + open), sizeof *t->ref[1]);
    t->state.bytes = sizeof *t + open * sizeof *t->alpha + 2 * size * sizeof *t->step +
                     (count + in_example) * (1 + open) * sizeof *t->ref[0];
    if (t->alpha != NULL && t->step != NULL && t->ref[0] != NULL && t->ref[1] != NULL) return t;
    free_fragment(&t->state);
    return NULL;
}

/* ---------------------------------------------------------------- occurrences */

static const espi_forest *forest_of(const grower *g, int side)
{
    return side == 0 ? g->source->forest : g->example->forest;
}

static uint32_t production_of(const grower *g, int side, espi_ref vertex)
{
    const uint32_t p = forest_of(g, side)->vertex[vertex].production;
    return side == 0 ? p : g->example->production[p];
}

static double f_of(const grower *g, espi_ref root)
{
    return g->query->sign * g->source->f[root * g->source->outputs + g->query->output];
}

/* S and T of a list of open nodes in front of which others may stand. */
static void prepend(double alpha, double grown, double st[2])
{
    const double closed = alpha * st[0], expanded = grown * st[1];
    st[0] = expanded > closed ? expanded : closed;
    st[1] *= alpha > grown ? alpha : grown;
}

/* S of the open nodes after the node `vertex` got its production, `st` being that of the open nodes behind. */
static double best_below(const espi_tree_source *s, espi_ref vertex, const double tail[2])
{
    const espi_vertex *v = &s->forest->vertex[vertex];
    const double alpha = s->alpha[v->production];
    double st[2] = {tail[0], tail[1]};
    for (size_t k = s->forest->production[v->production].arity; k-- > 0;) {
        const espi_ref child = s->forest->child[v->children + k];
        if (!espi_is_leaf(child)) prepend(alpha, s->grown[child], st);
    }
    return st[0];
}

static bool touch(grower *g, uint32_t p)
{
    if (!espi_reserve(&g->touched, &g->touched_capacity, g->touches + 1, sizeof *g->touched)) return false;
    g->touched[g->touches++] = p;
    return true;
}

/* Counts the occurrences of open node k by production: those of the example first, as only what it has counts there. */
static bool count_example(grower *g, const fragment *t, size_t k)
{
    for (size_t i = 0; i < t->count[1]; i++) {
        const espi_ref *at = t->ref[1] + i * (1 + t->open);
        const uint32_t p = g->number[t->count[0] + i] = production_of(g, 1, at[1 + k]);
        if (p == ESPI_NO_NODE) continue;
        bucket *b = &g->bucket[p];
        if (b->count[1]++ == 0 && !touch(g, p)) return false;
        b->matches += g->example->count[at[0]];
    }
    return true;
}

static bool count_source(grower *g, const fragment *t, size_t k)
{
    for (size_t i = 0; i < t->count[0]; i++) {
        const espi_ref *at = t->ref[0] + i * (1 + t->open);
        const uint32_t p = g->number[i] = production_of(g, 0, at[1 + k]);
        bucket *b = &g->bucket[p];
        if (g->example == NULL && b->count[0] == 0 && !touch(g, p)) return false;
        if (g->example != NULL && b->count[1] == 0) continue;
        b->count[0]++;
        const double f = f_of(g, at[0]);
        const double bound = f * best_below(g->source, at[1 + k], g->tail + 2 * i);
        b->sum += f;
        b->size += fabs(f);
        if (f > 0.0) b->up += bound;
        else b->down -= bound;
    }
    return true;
}

/* -------------------------------------------------------------------- growing */

/* The occurrences of an extension; `order` has them by production. */
static void project(const grower *g, const fragment *t, size_t k, int side, const size_t *order, fragment *out)
{
    const espi_forest *f = forest_of(g, side);
    espi_ref *to = out->ref[side];
    for (size_t i = 0; i < out->count[side]; i++) {
        const espi_ref *at = t->ref[side] + order[i] * (1 + t->open);
        const espi_vertex *v = &f->vertex[at[1 + k]];
        *to++ = at[0];
        for (size_t c = 0; c < f->production[v->production].arity; c++)
            if (!espi_is_leaf(f->child[v->children + c])) *to++ = f->child[v->children + c];
        for (size_t c = k + 1; c < t->open; c++) *to++ = at[1 + c];
    }
}

/* The extension as a state of its own. */
static fragment *extend(const grower *g, const fragment *t, size_t k, uint32_t p, const bucket *b, double factor)
{
    const size_t inner = g->source->forest->production[p].inner, open = inner + t->open - k - 1;
    fragment *out = new_fragment(t->size + 1, open, b->count[0], b->count[1]);
    if (out == NULL) return NULL;
    out->factor = factor;
    for (size_t c = 0; c < open; c++) out->alpha[c] = c < inner ? g->source->alpha[p] : t->alpha[k + 1 + c - inner];
    if (t->size > 0) memcpy(out->step, t->step, 2 * t->size * sizeof *out->step);
    out->step[2 * t->size] = (uint32_t)k;
    out->step[2 * t->size + 1] = p;
    for (int side = 0; side < 2; side++) {
        out->count[side] = b->count[side];
        if (b->count[side] > 0) project(g, t, k, side, g->order + b->at[side] - b->count[side], out);
    }
    return out;
}

static esp_status too_large(size_t size, double lambda, esp_error *err)
{
    return espi_fail(err, ESP_ERR_RANGE,
                     "the weight of a fragment of %zu productions is too large for a number; lambda is %g", size,
                     lambda);
}

static bool list(const grower *g, const fragment *t, size_t k, uint32_t p, double weight, double value)
{
    uint32_t *step = espi_alloc(2 * (t->size + 1), sizeof *step);
    if (step == NULL) return false;
    if (t->size > 0) memcpy(step, t->step, 2 * t->size * sizeof *step);
    step[2 * t->size] = (uint32_t)k;
    step[2 * t->size + 1] = p;
    const espi_found found = {.key = weight * value,
                              .weight = weight,
                              .value = value,
                              .term = g->query->term,
                              .size = t->size + 1,
                              .kind = ESP_FEATURE_FRAGMENT,
                              .step = step,
                              .steps = 2 * (t->size + 1)};
    const bool ok = espi_shortlist_add(g->query->shortlist, &found);
    espi_free(step);
    return ok;
}

/* Lists the extension if it is wanted, and pushes it if it may lead further. `before` and `behind` are the factors of
 * the open nodes on both sides. */
static esp_status judge(grower *g, espi_best_first *best, const fragment *t, size_t k, uint32_t p, double before,
                        double behind, esp_error *err)
{
    const espi_tree_source *s = g->source;
    const bucket *b = &g->bucket[p];
    if (b->count[0] == 0) return ESP_OK;
    const double factor = before * s->lambda[p];
    const double value = g->example == NULL ? 1.0 : b->matches * g->example->scale;
    const double weight =
        factor * behind * espi_power(s->alpha[p], s->forest->production[p].inner) * espi_rank_sum(b->sum, b->size);
    if (!isfinite(weight * value)) return too_large(t->size + 1, s->lambda[p], err);
    if (espi_shortlist_wants(g->query->shortlist, weight * value) && !list(g, t, k, p, weight, value))
        return espi_no_memory(err);
    const double up = b->up * factor * value, down = b->down * factor * value;
    if (t->size + 1 >= g->query->max_size || espi_shortlist_hope(g->query->shortlist, up, down) == 0.0) return ESP_OK;
    fragment *next = extend(g, t, k, p, b, factor);
    if (next == NULL) return espi_no_memory(err);
    next->state.up = up;
    next->state.down = down;
    return espi_best_first_push(best, &next->state, err);
}

/* Sorts the occurrences by production, so that an extension finds its own side by side. */
static void sort_occurrences(grower *g, const fragment *t)
{
    size_t at = 0;
    espi_sort_numbers(g->touched, g->touches);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < g->touches; i++) {
            bucket *b = &g->bucket[g->touched[i]];
            b->at[side] = at;
            at += b->count[side];
        }
        const uint32_t *number = side == 0 || t->count[0] == 0 ? g->number : g->number + t->count[0];
        for (size_t i = 0; i < t->count[side]; i++) {
            bucket *b = number[i] != ESPI_NO_NODE ? &g->bucket[number[i]] : NULL;
            if (b != NULL && b->count[side] > 0) g->order[b->at[side]++] = i;
        }
    }
}

static esp_status grow(void *context, espi_best_first *best, espi_state *state, esp_error *err)
{
    grower *g = context;
    const fragment *t = (const fragment *)(const void *)state;
    const size_t all = t->count[0] + t->count[1];
    if (!espi_reserve(&g->tail, &g->tail_capacity, 2 * t->count[0], sizeof *g->tail) ||
        !espi_reserve(&g->number, &g->number_capacity, all, sizeof *g->number) ||
        !espi_reserve(&g->order, &g->order_capacity, all, sizeof *g->order))
        return espi_no_memory(err);
    for (size_t i = 0; i < t->count[0]; i++) g->tail[2 * i] = 0.0, g->tail[2 * i + 1] = 1.0;
    esp_status status = ESP_OK;
    double behind = 1.0;
    for (size_t k = t->open; status == ESP_OK && k-- > 0;) {
        double before = t->factor;
        for (size_t j = 0; j < k; j++) before *= t->alpha[j];
        g->touches = 0;
        bool ok = before == 0.0 || (count_example(g, t, k) && count_source(g, t, k));
        if (ok && before != 0.0) sort_occurrences(g, t);
        if (!ok) status = espi_no_memory(err);
        for (size_t i = 0; i < g->touches; i++) {
            if (status == ESP_OK) status = judge(g, best, t, k, g->touched[i], before, behind, err);
            g->bucket[g->touched[i]] = (bucket){0};
        }
        for (size_t i = 0; i < t->count[0]; i++)
            prepend(t->alpha[k], g->source->grown[t->ref[0][i * (1 + t->open) + 1 + k]], g->tail + 2 * i);
        behind *= t->alpha[k];
    }
    return status;
}

/* --------------------------------------------------------------------- search */

/* The empty fragment: every vertex with a weight is open; of an example those whose productions it has. */
static fragment *empty_fragment(grower *g)
{
    const espi_tree_source *s = g->source;
    const espi_tree_example *x = g->example;
    const size_t in_example = x == NULL ? 0 : x->vertices.count;
    fragment *t = new_fragment(0, 1, s->forest->vertices, in_example);
    if (t == NULL) return NULL;
    t->factor = 1.0;
    t->alpha[0] = 0.0;
    for (size_t i = 0; i < in_example; i++) {
        const espi_ref v = x->vertices.at[i].vertex;
        t->ref[1][2 * i] = t->ref[1][2 * i + 1] = v;
        const uint32_t p = production_of(g, 1, v);
        if (p != ESPI_NO_NODE) g->bucket[p].count[1] = 1;
    }
    t->count[1] = in_example;
    for (size_t v = 0; v < s->forest->vertices; v++) {
        const uint32_t p = s->forest->vertex[v].production;
        if (f_of(g, (espi_ref)v) == 0.0 || (x != NULL && g->bucket[p].count[1] == 0)) continue;
        t->ref[0][2 * t->count[0]] = t->ref[0][2 * t->count[0] + 1] = (espi_ref)v;
        t->count[0]++;
    }
    for (size_t i = 0; i < in_example; i++) {
        const uint32_t p = production_of(g, 1, x->vertices.at[i].vertex);
        if (p != ESPI_NO_NODE) g->bucket[p] = (bucket){0};
    }
    t->state.up = t->state.down = HUGE_VAL;
    return t;
}

/* Where only complete subtrees count, each vertex is one feature. */
static esp_status list_subtrees(const grower *g, esp_error *err)
{
    const espi_feature_query *q = g->query;
    const espi_forest *f = g->source->forest;
    size_t *size = espi_alloc(f->vertices, sizeof *size);
    esp_status status = size == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t v = 0; status == ESP_OK && v < f->vertices; v++) {
        size[v] = 1;
        for (size_t k = 0; k < espi_production_of(f, (espi_ref)v)->arity; k++) {
            const espi_ref child = f->child[f->vertex[v].children + k];
            /* Subtrees that share subtrees may be larger than any number. */
            if (!espi_is_leaf(child) && __builtin_add_overflow(size[v], size[child], &size[v])) size[v] = SIZE_MAX;
        }
        const double own = f_of(g, (espi_ref)v), key = own == 0.0 ? 0.0 : own * g->source->grown[v];
        if (!isfinite(key)) status = too_large(size[v], g->source->lambda[f->vertex[v].production], err);
        if (status != ESP_OK || size[v] > q->max_size || !espi_shortlist_wants(q->shortlist, key)) continue;
        const espi_found found = {.key = key,
                                  .weight = key,
                                  .term = q->term,
                                  .size = size[v],
                                  .kind = ESP_FEATURE_FRAGMENT,
                                  .step = (uint32_t[]){(uint32_t)v},
                                  .steps = 1};
        if (!espi_shortlist_add(q->shortlist, &found)) status = espi_no_memory(err);
    }
    espi_free(size);
    return status;
}

esp_status espi_search_fragments(const espi_tree_source *source, const espi_tree_example *example,
                                 const espi_feature_query *query, esp_error *err)
{
    grower g = {.source = source, .example = example, .query = query};
    if (source->forest->vertices == 0) return ESP_OK;
    if (source->complete && example == NULL) return list_subtrees(&g, err);
    espi_best_first best = {.shortlist = query->shortlist,
                            .grow = grow,
                            .free = free_fragment,
                            .grower = &g,
                            .effort = query->effort,
                            .memory = query->memory,
                            .run = query->run};
    g.bucket = espi_alloc_zero(source->forest->productions, sizeof *g.bucket);
    fragment *empty = g.bucket != NULL ? empty_fragment(&g) : NULL;
    esp_status status = empty == NULL ? espi_no_memory(err) : espi_best_first_push(&best, &empty->state, err);
    if (status == ESP_OK) status = espi_best_first_search(&best, err);
    espi_free(g.bucket);
    espi_free(g.touched);
    espi_free(g.tail);
    espi_free(g.number);
    espi_free(g.order);
    return status;
}
