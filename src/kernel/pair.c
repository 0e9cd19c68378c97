#include "kernel/pair.h"

#include "base/alloc.h"
#include "kernel/plan.h"

#include <stdlib.h>

typedef struct matching {
    const espi_tree_side *a, *b;
    const espi_decay *decay;
    espi_plan left, right;
    uint64_t *sorted;  /* nodes of the left plan as production << 32 | node, in order */
    uint32_t *place;   /* of a left node within the run of its production */
    espi_wide **column; /* of a right node over that run; NULL: none */
} matching;

static uint32_t shared(const espi_tree_side *side, espi_ref vertex)
{
    const uint32_t p = side->forest->vertex[vertex].production;
    return side->map == NULL ? p : side->map[p];
}

/* ----------------------------------------------------- a tree with itself */

enum { SMALL = 256 }; /* different subtrees above the pre-terminals; a table of their pairs stays in the cache */

typedef struct table { /* Delta of pairs of different subtrees of one tree; pre-terminals have no place */
    const espi_forest *forest;
    uint32_t place[SMALL]; /* the plan node at a place */
    uint32_t production[SMALL];
    size_t count;
    uint32_t *place_of; /* plan node -> place */
    size_t place_capacity;
    double delta[SMALL * SMALL];
} table;

/* Delta of places a >= b of equal production. */
static double table_delta(const table *t, const espi_plan *plan, const espi_decay *decay, const espi_tree_side *side,
                          size_t a, size_t b)
{
    const espi_forest *f = t->forest;
    const uint32_t p = t->production[a];
    const espi_ref u = plan->node[t->place[a]].vertex, v = plan->node[t->place[b]].vertex;
    const espi_ref *x = f->child + f->vertex[u].children, *y = f->child + f->vertex[v].children;
    const double alpha = decay->alpha[p];
    double delta = decay->lambda[p];
    for (size_t k = 0; k < espi_production_of(f, u)->arity; k++) {
        if (espi_is_leaf(x[k])) continue;
        const uint32_t q = f->vertex[x[k]].production;
        if (q != f->vertex[y[k]].production) {
            delta *= alpha;
        } else if (f->production[q].inner == 0) {
            delta *= alpha + decay->lambda[side->map == NULL ? q : side->map[q]];
        } else {
            const size_t i = t->place_of[plan->index[x[k]]], j = t->place_of[plan->index[y[k]]];
            delta *= alpha + t->delta[i > j ? i * SMALL + j : j * SMALL + i];
        }
    }
    return delta;
}

/* False if the tree is not small. */
static bool table_sum(table *t, const espi_plan *plan, const espi_decay *decay, const espi_tree_side *side, double *sum)
{
    *sum = 0.0;
    t->count = 0;
    for (size_t i = 0; i < plan->nodes; i++) {
        const espi_plan_node *node = &plan->node[i];
        const uint32_t own = t->forest->vertex[node->vertex].production, p = shared(side, node->vertex);
        if (t->forest->production[own].inner == 0) {
            *sum += node->count * node->count * decay->lambda[p];
            continue;
        }
        if (t->count == SMALL) return false;
        const size_t a = t->count++;
        t->place[a] = (uint32_t)i;
        t->place_of[i] = (uint32_t)a;
        t->production[a] = p;
        for (size_t b = 0; b <= a; b++) {
            if (t->production[b] != p) continue;
            const double delta = table_delta(t, plan, decay, side, a, b);
            t->delta[a * SMALL + b] = delta;
            *sum += (a == b ? 1.0 : 2.0) * node->count * plan->node[t->place[b]].count * delta;
        }
    }
    return true;
}

/* A DAG of this tree alone. Its groups are the forest's own productions, so decay is brought to their numbers. */
static bool large_self_value(const espi_tree_side *side, espi_ref root, const espi_decay *decay, double *value)
{
    const espi_forest *f = side->forest;
    espi_dag dag;
    if (!espi_dag_init(&dag, f)) return false;
    double *own = espi_alloc(2 * f->productions, sizeof *own);
    const espi_decay own_decay = {.lambda = own, .alpha = own + f->productions};
    for (size_t p = 0; own != NULL && p < f->productions; p++) {
        own[p] = decay->lambda[side->map == NULL ? p : side->map[p]];
        own[f->productions + p] = decay->alpha[side->map == NULL ? p : side->map[p]];
    }
    espi_matcher *matcher = NULL;
    bool ok = own != NULL && espi_dag_insert(&dag, root);
    if (ok) matcher = espi_matcher_new(&dag, &own_decay, f, NULL);
    *value = 0.0;
    ok = matcher != NULL && espi_match_row(matcher, root, 0, 1, value);
    espi_matcher_free(matcher);
    espi_free(own);
    espi_dag_free(&dag);
    return ok;
}

bool espi_self_values(const espi_tree_side *side, const espi_decay *decay, double *value)
{
    const espi_forest *f = side->forest;
    table *t = espi_alloc(1, sizeof *t);
    espi_plan plan = {0};
    bool ok = t != NULL && espi_plan_init(&plan, f);
    if (t != NULL) t->forest = f, t->place_of = NULL, t->place_capacity = 0;
    for (size_t i = 0; ok && i < f->roots; i++) {
        ok = espi_plan_make(&plan, f->root[i]) &&
             espi_reserve(&t->place_of, &t->place_capacity, plan.nodes, sizeof *t->place_of);
        if (ok && !table_sum(t, &plan, decay, side, &value[i])) ok = large_self_value(side, f->root[i], decay, &value[i]);
    }
    espi_plan_free(&plan);
    if (t != NULL) espi_free(t->place_of);
    espi_free(t);
    return ok;
}

/* ------------------------------------------------------------ wide numbers */

static int by_key(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static bool prepare(matching *m, espi_ref root_a, espi_ref root_b)
{
    if (!espi_plan_init(&m->left, m->a->forest) || !espi_plan_init(&m->right, m->b->forest) ||
        !espi_plan_make(&m->left, root_a) || !espi_plan_make(&m->right, root_b))
        return false;
    m->sorted = espi_alloc(m->left.nodes, sizeof *m->sorted);
    m->place = espi_alloc(m->left.nodes, sizeof *m->place);
    m->column = espi_alloc_zero(m->right.nodes, sizeof *m->column);
    if (m->sorted == NULL || m->place == NULL || m->column == NULL) return false;
    for (size_t i = 0; i < m->left.nodes; i++)
        m->sorted[i] = (uint64_t)shared(m->a, m->left.node[i].vertex) << 32 | i;
    qsort(m->sorted, m->left.nodes, sizeof *m->sorted, by_key);
    uint32_t place = 0;
    for (size_t i = 0; i < m->left.nodes; i++) {
        place = i > 0 && m->sorted[i] >> 32 == m->sorted[i - 1] >> 32 ? place + 1 : 0;
        m->place[(uint32_t)m->sorted[i]] = place;
    }
    return true;
}

/* The run of left nodes with this production. */
static size_t find_run(const matching *m, uint32_t production, size_t *first)
{
    size_t low = 0, high = m->left.nodes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->sorted[middle] >> 32 < production) low = middle + 1;
        else high = middle;
    }
    *first = low;
    while (high < m->left.nodes && m->sorted[high] >> 32 == production) high++;
    return high - low;
}

/* Delta of a left and a right node of production p, from the columns of the right node's children. */
static espi_wide delta(const matching *m, espi_ref left, espi_ref right, uint32_t p)
{
    const espi_forest *fa = m->a->forest, *fb = m->b->forest;
    const espi_ref *x = fa->child + fa->vertex[left].children, *y = fb->child + fb->vertex[right].children;
    const espi_wide alpha = espi_wide_of(m->decay->alpha[p]);
    espi_wide value = espi_wide_of(m->decay->lambda[p]);
    for (size_t k = 0; k < espi_production_of(fa, left)->arity; k++) {
        if (espi_is_leaf(x[k])) continue;
        const espi_wide *column = m->column[m->right.index[y[k]]];
        const bool same = column != NULL && shared(m->a, x[k]) == shared(m->b, y[k]);
        value = espi_wide_mul(value,
                              same ? espi_wide_add(alpha, column[m->place[m->left.index[x[k]]]]) : alpha);
    }
    return value;
}

static void drop_column(matching *m, size_t node)
{
    espi_free(m->column[node]);
    m->column[node] = NULL;
}

/* Adds what the right node contributes, keeps its column for its parents and drops its children's. */
static bool visit(matching *m, size_t node, espi_wide *sum)
{
    const espi_forest *f = m->b->forest;
    const espi_ref vertex = m->right.node[node].vertex;
    const uint32_t p = shared(m->b, vertex);
    size_t first = 0;
    const size_t count = p == ESPI_NO_NODE ? 0 : find_run(m, p, &first);
    if (count > 0) {
        m->column[node] = espi_alloc(count, sizeof **m->column);
        if (m->column[node] == NULL) return false;
    }
    const espi_wide times = espi_wide_of(m->right.node[node].count);
    for (size_t i = 0; i < count; i++) {
        const espi_plan_node *left = &m->left.node[(uint32_t)m->sorted[first + i]];
        m->column[node][i] = delta(m, left->vertex, vertex, p);
        *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_mul(times, espi_wide_of(left->count)), m->column[node][i]));
    }
    const espi_ref *child = f->child + f->vertex[vertex].children;
    for (size_t k = 0; k < espi_production_of(f, vertex)->arity; k++)
        if (!espi_is_leaf(child[k]) && --m->right.node[m->right.index[child[k]]].uses == 0)
            drop_column(m, m->right.index[child[k]]);
    return true;
}

bool espi_pair_wide(const espi_tree_side *a, espi_ref root_a, const espi_tree_side *b, espi_ref root_b,
                    const espi_decay *decay, espi_wide *value)
{
    matching m = {.a = a, .b = b, .decay = decay};
    *value = espi_wide_of(0.0);
    bool ok = prepare(&m, root_a, root_b);
    for (size_t i = 0; ok && i < m.right.nodes; i++) ok = visit(&m, i, value);
    for (size_t i = 0; m.column != NULL && i < m.right.nodes; i++) drop_column(&m, i);
    espi_free(m.column);
    espi_free(m.place);
    espi_free(m.sorted);
    espi_plan_free(&m.left);
    espi_plan_free(&m.right);
    return ok;
}
