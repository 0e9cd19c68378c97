/* The shares of nodes: each place of a fragment divides its contribution equally among the nodes whose productions it
 * holds. There are exponentially many fragments, but with z for each production,
 *
 *     C(u, v; z) = z lambda prod_k (alpha + C(u_k, v_k; z))          equal productions, else 0
 *     F(z)       = sum over nodes v of the example, vertices u, of f(u) C(u, v; z)
 *
 * is a polynomial whose coefficient of z^s is the contribution of all fragments of s productions. With A(u, v), the
 * derivative of F by C(u, v) (walked from the root down: A(u_k, v_k) = f(u_k) + A(u, v) z lambda prod_j!=k (alpha +
 * C)), the part of the fragments that hold the production of node v is G_v(z) = sum_u A(u, v) C(u, v), and dividing
 * each coefficient by its s is an integral:
 *
 *     share(v) = integral from 0 to 1 of G_v(z) / z dz
 *
 * of a polynomial whose degree is below the number of productions that example and support trees have in common at
 * most; Gauss-Legendre quadrature with half as many points is exact. Beyond MOST points, fragments of more than
 * 2 MOST productions are not divided to the last digit; the shares are then brought to their sum. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "explain/source.h"

#include <math.h>

enum { MOST = 256, PULSE = 1 << 22 }; /* points; pairs between two questions whether to go on */

/* ----------------------------------------------------------------- quadrature */

/* Points and weights for integrals from 0 to 1: the zeros of the Legendre
 * polynomial of degree n, by Newton's method. */
static void gauss_legendre(size_t n, double *point, double *weight)
{
    const double pi = 3.14159265358979323846;
    for (size_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), slope = 1.0;
        for (int round = 0; round < 100; round++) {
            double p = 1.0, before = 0.0;
            for (size_t j = 0; j < n; j++) {
                const double next = ((2.0 * (double)j + 1.0) * x * p - (double)j * before) / ((double)j + 1.0);
                before = p;
                p = next;
            }
            slope = (double)n * (x * p - before) / (x * x - 1.0);
            const double change = p / slope;
            x -= change;
            if (fabs(change) < 1e-15) break;
        }
        point[i] = 0.5 * (1.0 - x);
        weight[i] = 1.0 / ((1.0 - x * x) * slope * slope);
    }
}

/* ---------------------------------------------------------------------- nodes */

void espi_preorder_free(espi_preorder *list)
{
    espi_free(list->node);
    *list = (espi_preorder){0};
}

static bool add_node(espi_preorder *list, espi_ref ref, uint32_t parent)
{
    if (list->nodes >= ESPI_NO_NODE || !espi_reserve(&list->node, &list->capacity, list->nodes + 1, sizeof *list->node))
        return false;
    list->node[list->nodes++] =
        (struct espi_preorder_node){.ref = ref, .parent = parent, .first = ESPI_NO_NODE, .next = ESPI_NO_NODE};
    return true;
}

bool espi_preorder_make(espi_preorder *list, const espi_forest *f, espi_ref root)
{
    struct open { /* a node whose children are being listed */
        uint32_t node, last;
        size_t next;
    } *stack = NULL;
    size_t depth = 0, capacity = 0;
    *list = (espi_preorder){0};
    if (root == ESPI_NO_NODE) return true;
    bool ok = add_node(list, root, ESPI_NO_NODE) && espi_reserve(&stack, &capacity, 1, sizeof *stack);
    if (ok && !espi_is_leaf(root)) stack[depth++] = (struct open){.last = ESPI_NO_NODE};
    while (ok && depth > 0) {
        struct open *top = &stack[depth - 1];
        const espi_ref ref = list->node[top->node].ref;
        if (top->next == espi_production_of(f, ref)->arity) {
            depth--;
            continue;
        }
        const espi_ref child = f->child[f->vertex[ref].children + top->next++];
        const uint32_t number = (uint32_t)list->nodes;
        ok = add_node(list, child, top->node);
        if (!ok) break;
        if (top->last == ESPI_NO_NODE) list->node[top->node].first = number;
        else list->node[top->last].next = number;
        top->last = number;
        ok = espi_is_leaf(child) || espi_reserve(&stack, &capacity, depth + 1, sizeof *stack);
        if (ok && !espi_is_leaf(child)) stack[depth++] = (struct open){.node = number, .last = ESPI_NO_NODE};
    }
    espi_free(stack);
    if (!ok) espi_preorder_free(list);
    return ok;
}

/* --------------------------------------------------------------------- columns */

typedef struct sharing {
    const espi_tree_source *source;
    const espi_tree_example *example;
    size_t output;
    espi_preorder tree;
    size_t *inside; /* per vertex of the example: where its column C(., v) starts in `value` */
    double *value;
    double **outside; /* per node: its column A(., v); from its parent's turn to its own */
    double *factor;   /* per inner child, then: the products of those to its left */
    size_t factor_capacity;
    const esp_run *run;
    double done;  /* the part of the points that are done */
    size_t pairs; /* looked at since `run` was asked whether to go on */
} sharing;

static size_t group_size(const espi_tree_source *s, uint32_t p)
{
    return p == ESPI_NO_NODE ? 0 : s->member_start[p + 1] - s->member_start[p];
}

static uint32_t production_of(const sharing *s, espi_ref vertex)
{
    return s->example->production[s->example->forest->vertex[vertex].production];
}

/* C of a child of the example and the child at the same place of a support vertex. */
static double below(const sharing *s, espi_ref child, espi_ref other)
{
    const espi_vertex *v = &s->source->forest->vertex[other];
    return v->production == production_of(s, child) ? s->value[s->inside[child] + v->rank] : 0.0;
}

static double column_size(const sharing *s, espi_ref ref)
{
    return espi_is_leaf(ref) ? 0.0 : (double)group_size(s->source, production_of(s, ref));
}

bool espi_fragment_shares_bytes(const espi_tree_source *source, const espi_tree_example *example, double *bytes)
{
    sharing s = {.source = source, .example = example};
    if (!espi_preorder_make(&s.tree, example->forest, example->root)) return false;
    double inside = 0.0, open = s.tree.nodes > 0 ? column_size(&s, s.tree.node[0].ref) : 0.0, most = open;
    for (size_t v = 0; v < example->forest->vertices; v++) inside += column_size(&s, (espi_ref)v);
    for (size_t i = 0; i < s.tree.nodes; i++) { /* as they are visited */
        for (uint32_t c = s.tree.node[i].first; c != ESPI_NO_NODE; c = s.tree.node[c].next)
            open += column_size(&s, s.tree.node[c].ref);
        most = fmax(most, open);
        open -= column_size(&s, s.tree.node[i].ref);
    }
    espi_preorder_free(&s.tree);
    *bytes = (inside + most) * sizeof *s.value;
    return true;
}

/* To be called with the pairs that are looked at next: some points take minutes. */
static esp_status go_on(sharing *s, size_t pairs, esp_error *err)
{
    s->pairs += pairs;
    if (s->pairs < PULSE) return ESP_OK;
    s->pairs = 0;
    return espi_progress(s->run, "sharing", s->done, err);
}

static bool start(sharing *s)
{
    const espi_forest *x = s->example->forest;
    size_t total = 0;
    s->inside = espi_alloc(x->vertices, sizeof *s->inside);
    for (size_t v = 0; s->inside != NULL && v < x->vertices; v++) {
        s->inside[v] = total;
        total += group_size(s->source, production_of(s, (espi_ref)v));
    }
    s->value = espi_alloc(total, sizeof *s->value);
    s->outside = espi_alloc_zero(s->tree.nodes, sizeof *s->outside);
    return s->inside != NULL && s->value != NULL && s->outside != NULL;
}

/* All C for one z; vertices have larger numbers than their children. */
static esp_status fill_inside(sharing *s, double z, esp_error *err)
{
    const espi_forest *x = s->example->forest, *f = s->source->forest;
    for (size_t v = 0; v < x->vertices; v++) {
        const uint32_t p = production_of(s, (espi_ref)v);
        const esp_status status = go_on(s, group_size(s->source, p), err);
        if (status != ESP_OK) return status;
        const espi_ref *child = x->child + x->vertex[v].children;
        for (size_t r = 0; r < group_size(s->source, p); r++) {
            const espi_ref *other = f->child + f->vertex[s->source->member[s->source->member_start[p] + r]].children;
            double value = z * s->source->lambda[p];
            for (size_t k = 0; k < f->production[p].arity; k++)
                if (!espi_is_leaf(child[k])) value *= s->source->alpha[p] + below(s, child[k], other[k]);
            s->value[s->inside[v] + r] = value;
        }
    }
    return ESP_OK;
}

/* A column A of a node that has none yet: f of the group. */
static bool open_column(sharing *s, uint32_t node)
{
    const espi_tree_source *t = s->source;
    const uint32_t p = production_of(s, s->tree.node[node].ref);
    double *column = s->outside[node] = espi_alloc(group_size(t, p), sizeof *column);
    for (size_t r = 0; column != NULL && r < group_size(t, p); r++)
        column[r] = t->f[t->member[t->member_start[p] + r] * t->outputs + s->output];
    return column != NULL;
}

/* Adds to A of the children what the node hands down for one support vertex. */
static void hand_down(sharing *s, uint32_t node, uint32_t p, espi_ref other, double a)
{
    const espi_forest *f = s->source->forest;
    const espi_ref *refs = f->child + f->vertex[other].children;
    size_t inner = 0, k = 0;
    double left = a;
    for (uint32_t c = s->tree.node[node].first; c != ESPI_NO_NODE; c = s->tree.node[c].next, k++) {
        if (espi_is_leaf(s->tree.node[c].ref)) continue;
        s->factor[2 * inner] = s->source->alpha[p] + below(s, s->tree.node[c].ref, refs[k]);
        s->factor[2 * inner + 1] = left;
        left *= s->factor[2 * inner++];
    }
    double right = 1.0; /* of those behind child i; in the order of positions it takes the place of the factor */
    for (size_t i = inner; i-- > 0;) {
        const double own = s->factor[2 * i];
        s->factor[2 * i] = right;
        right *= own;
    }
    k = inner = 0;
    for (uint32_t c = s->tree.node[node].first; c != ESPI_NO_NODE; c = s->tree.node[c].next, k++) {
        if (espi_is_leaf(s->tree.node[c].ref)) continue;
        const espi_vertex *v = &f->vertex[refs[k]];
        if (v->production == production_of(s, s->tree.node[c].ref))
            s->outside[c][v->rank] += s->factor[2 * inner] * s->factor[2 * inner + 1];
        inner++;
    }
}

/* One node: its G, and A of its children. Its own column is dropped. */
static esp_status visit(sharing *s, uint32_t node, double z, double *g, esp_error *err)
{
    const espi_tree_source *t = s->source;
    const espi_ref ref = s->tree.node[node].ref;
    const uint32_t p = production_of(s, ref);
    const espi_production *production = espi_production_of(s->example->forest, ref);
    const esp_status status = go_on(s, group_size(t, p), err);
    if (status != ESP_OK) return status;
    bool ok = espi_reserve(&s->factor, &s->factor_capacity, 2 * (size_t)production->inner, sizeof *s->factor);
    for (uint32_t c = s->tree.node[node].first; ok && c != ESPI_NO_NODE; c = s->tree.node[c].next)
        if (!espi_is_leaf(s->tree.node[c].ref)) ok = open_column(s, c);
    *g = 0.0;
    for (size_t r = 0; ok && r < group_size(t, p); r++) {
        const double a = s->outside[node][r];
        if (a == 0.0) continue;
        *g += a * s->value[s->inside[ref] + r];
        if (production->inner > 0) hand_down(s, node, p, t->member[t->member_start[p] + r], a * z * t->lambda[p]);
    }
    espi_free(s->outside[node]);
    s->outside[node] = NULL;
    return ok ? ESP_OK : espi_no_memory(err);
}

/* Adds the part of one point of the quadrature. */
static esp_status add_point(sharing *s, double z, double weight, double *share, esp_error *err)
{
    const bool ok = s->tree.nodes == 0 || espi_is_leaf(s->tree.node[0].ref) || open_column(s, 0);
    esp_status status = ok ? fill_inside(s, z, err) : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < s->tree.nodes; i++) {
        double g = 0.0;
        if (espi_is_leaf(s->tree.node[i].ref)) continue;
        status = visit(s, (uint32_t)i, z, &g, err);
        share[i] += weight / z * g;
    }
    return status;
}

/* Productions that a fragment of the example and of the support trees can have. */
static size_t degree_of(const sharing *s)
{
    size_t inner = 0;
    for (size_t i = 0; i < s->tree.nodes; i++)
        inner += !espi_is_leaf(s->tree.node[i].ref) && production_of(s, s->tree.node[i].ref) != ESPI_NO_NODE;
    return inner < s->source->largest ? inner : s->source->largest;
}

/* Multiplies the shares by what makes them add up to F(1). */
static esp_status correct(sharing *s, double *share, esp_error *err)
{
    const espi_tree_source *t = s->source;
    double sum = 0.0, whole = 0.0;
    const esp_status status = fill_inside(s, 1.0, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < s->tree.nodes; i++) {
        const espi_ref ref = s->tree.node[i].ref;
        sum += share[i];
        if (espi_is_leaf(ref)) continue;
        const uint32_t p = production_of(s, ref);
        for (size_t r = 0; r < group_size(t, p); r++)
            whole += t->f[t->member[t->member_start[p] + r] * t->outputs + s->output] * s->value[s->inside[ref] + r];
    }
    for (size_t i = 0; sum != 0.0 && isfinite(whole / sum) && i < s->tree.nodes; i++) share[i] *= whole / sum;
    return ESP_OK;
}

static esp_status integrate(sharing *s, double *share, esp_error *err)
{
    double point[MOST], weight[MOST];
    const size_t wanted = (degree_of(s) + 1) / 2, points = wanted < MOST ? wanted : MOST;
    gauss_legendre(points, point, weight);
    for (size_t i = 0; i < points; i++) {
        s->done = (double)i / (double)points;
        esp_status status = espi_progress(s->run, "sharing", s->done, err);
        if (status == ESP_OK) status = add_point(s, point[i], weight[i], share, err);
        if (status != ESP_OK) return status;
    }
    return points < wanted ? correct(s, share, err) : ESP_OK;
}

esp_status espi_fragment_shares(const espi_tree_source *source, const espi_tree_example *example, size_t output,
                                double sign, const esp_run *run, double *share, size_t stride, esp_error *err)
{
    sharing s = {.source = source, .example = example, .output = output, .run = run};
    double *own = NULL;
    if (example->scale == 0.0) return ESP_OK;
    const bool ok = espi_preorder_make(&s.tree, example->forest, example->root) && start(&s) &&
                    (own = espi_alloc_zero(s.tree.nodes, sizeof *own)) != NULL;
    const esp_status status = ok ? integrate(&s, own, err) : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < s.tree.nodes; i++) share[i * stride] += sign * example->scale * own[i];
    espi_free(own);
    for (size_t i = 0; s.outside != NULL && i < s.tree.nodes; i++) espi_free(s.outside[i]);
    espi_free(s.outside);
    espi_free(s.inside);
    espi_free(s.value);
    espi_free(s.factor);
    espi_preorder_free(&s.tree);
    return status;
}
