/* K of two trees in wide numbers, where doubles overflow: the different subtrees of `b` one by one, bottom up, each
 * with a column over those of `a` that have its label, and the table of children.c for every such pair. */
#include "base/alloc.h"
#include "base/sort.h"
#include "kernel/partial_tree/partial_tree.h"

typedef struct wide_match {
    const espi_ptk_values *values;
    const espi_ptk_tree *a, *b;
    uint64_t *sorted;   /* nodes of `a` as label << 32 | node, in order */
    uint32_t *place;    /* of a node of `a` within the run of its label */
    espi_wide **column; /* excess of a node of `b` over that run; NULL: none */
    uint32_t *uses;     /* of a node of `b`, still to come */
    espi_wide *ended;   /* a row of the table */
    size_t ended_capacity;
} wide_match;

static uint64_t label_of(const espi_ptk_tree *tree, size_t node)
{
    return tree->trees->group.key[tree->trees->shape[tree->node[node].shape].group];
}

static bool sort_by_label(wide_match *m)
{
    m->sorted = espi_alloc(m->a->nodes, sizeof *m->sorted);
    m->place = espi_alloc(m->a->nodes, sizeof *m->place);
    m->column = espi_alloc_zero(m->b->nodes, sizeof *m->column);
    m->uses = espi_alloc(m->b->nodes, sizeof *m->uses);
    if (m->sorted == NULL || m->place == NULL || m->column == NULL || m->uses == NULL) return false;
    for (size_t i = 0; i < m->a->nodes; i++) m->sorted[i] = label_of(m->a, i) << 32 | i;
    espi_sort_keys(m->sorted, m->a->nodes);
    uint32_t place = 0;
    for (size_t i = 0; i < m->a->nodes; i++) {
        place = i > 0 && m->sorted[i] >> 32 == m->sorted[i - 1] >> 32 ? place + 1 : 0;
        m->place[(uint32_t)m->sorted[i]] = place;
    }
    for (size_t i = 0; i < m->b->nodes; i++) m->uses[i] = m->b->node[i].uses;
    return true;
}

static void drop_column(wide_match *m, size_t node)
{
    espi_free(m->column[node]);
    m->column[node] = NULL;
}

static void free_match(wide_match *m)
{
    for (size_t i = 0; m->column != NULL && i < m->b->nodes; i++) drop_column(m, i);
    espi_free(m->column);
    espi_free(m->sorted);
    espi_free(m->place);
    espi_free(m->uses);
    espi_free(m->ended);
}

/* The constants: names that meet. */
static bool add_constants(const wide_match *m, espi_wide *sum)
{
    const espi_ptk_map *a = &m->a->trees->name, *b = &m->b->trees->name;
    double *count = espi_alloc_zero(b->count, sizeof *count);
    if (count == NULL) return false;
    for (size_t i = 0; i < m->b->counts; i++) count[m->b->count[i].name] = m->b->count[i].count;
    for (size_t i = 0; i < m->a->counts; i++) {
        const uint32_t name = (uint32_t)a->key[m->a->count[i].name];
        for (size_t n = 0; n < 2; n++) {
            const uint32_t other = espi_ptk_namesake(name, n), number = espi_ptk_map_find(b, other);
            const double pairs = number == ESPI_NO_NODE ? 0.0 : m->a->count[i].count * count[number];
            const double value = *espi_ptk_constant(m->values, name, other);
            *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_of(pairs), espi_wide_of(value)));
        }
    }
    espi_free(count);
    return true;
}

/* Delta of child k of node x and child l of node y, which have one label; `base` is its constant part. */
static espi_wide child_delta(const wide_match *m, const espi_ptk_node *x, size_t k, const espi_ptk_node *y, size_t l,
                             double base)
{
    const uint32_t i = m->a->child[x->first + k], j = m->b->child[y->first + l];
    if (i == ESPI_NO_NODE || j == ESPI_NO_NODE) return espi_wide_of(base);
    return espi_wide_add(espi_wide_of(base), m->column[j][m->place[i]]);
}

/* mu S of node x of `a` and node y of `b`; m->ended has room for the children of y. */
static espi_wide excess(const wide_match *m, const espi_ptk_node *x, const espi_ptk_node *y)
{
    const espi_ptk_shape *p = &m->a->trees->shape[x->shape], *q = &m->b->trees->shape[y->shape];
    const uint32_t *name = m->a->trees->child_name + p->name, *other = m->b->trees->child_name + q->name;
    const espi_wide zero = espi_wide_of(0.0), one = espi_wide_of(1.0), lambda = espi_wide_of(m->values->lambda);
    espi_wide sum = zero;
    bool begun = false;
    for (size_t l = 0; l < q->children; l++) m->ended[l] = zero;
    for (size_t k = 0; k < p->children; k++) {
        espi_wide row = zero, corner = zero;
        for (size_t l = 0; l < q->children; l++) {
            const bool cell = espi_ptk_label(name[k]) == espi_ptk_label(other[l]);
            begun = begun || cell;
            if (!begun) continue; /* up to the first cell all is 0 */
            const espi_wide above = m->ended[l];
            row = espi_wide_mul(row, lambda);
            if (cell) {
                const espi_wide delta = child_delta(m, x, k, y, l, *espi_ptk_constant(m->values, name[k], other[l]));
                const espi_wide chains = espi_wide_mul(delta, espi_wide_add(one, corner));
                sum = espi_wide_add(sum, chains);
                row = espi_wide_add(row, chains);
            }
            m->ended[l] = espi_wide_add(row, espi_wide_mul(lambda, above));
            corner = above;
        }
    }
    return espi_wide_mul(espi_wide_of(m->values->mu), sum);
}

/* Adds what a node of `b` contributes, keeps its column for its parents and drops its children's. */
static bool add_node(wide_match *m, size_t number, espi_wide *sum)
{
    const espi_ptk_node *node = &m->b->node[number];
    const size_t children = m->b->trees->shape[node->shape].children;
    size_t first;
    const size_t count = espi_key_run(m->sorted, m->a->nodes, label_of(m->b, number), &first);
    espi_wide *column = NULL;
    if (!espi_reserve(&m->ended, &m->ended_capacity, children, sizeof *m->ended)) return false;
    if (count > 0) {
        column = m->column[number] = espi_alloc(count, sizeof *column);
        if (column == NULL) return false;
    }
    for (size_t i = 0; i < count; i++) {
        const espi_ptk_node *left = &m->a->node[(uint32_t)m->sorted[first + i]];
        column[i] = excess(m, left, node);
        *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_of(node->count * left->count), column[i]));
    }
    for (size_t l = 0; l < children; l++) {
        const uint32_t child = m->b->child[node->first + l];
        if (child != ESPI_NO_NODE && --m->uses[child] == 0) drop_column(m, child);
    }
    return true;
}

bool espi_ptk_wide_pair(const espi_ptk_values *values, const espi_ptk_tree *a, const espi_ptk_tree *b, espi_wide *value)
{
    wide_match m = {.values = values, .a = a, .b = b};
    *value = espi_wide_of(0.0);
    bool ok = sort_by_label(&m) && add_constants(&m, value);
    for (size_t i = 0; ok && i < b->nodes; i++) ok = add_node(&m, i, value);
    free_match(&m);
    return ok;
}
