/* The cells of one node with the shapes of the index: found through its lists, shape by shape, and their values for all
 * vertices of a shape side by side. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/partial_tree/match.h"

HOT static void read_ptk_column(double *restrict value, const double *restrict col, const uint32_t *restrict place,
                                size_t n, double base)
{
    for (size_t r = 0; r < n; r++) value[r] = base + col[place[r]];
}

enum {
    MANY = 1 << 16, /* cells; no more are kept at the same time, but for the last child's */
    BROAD = 256,    /* children; of such a node fewer are kept, as S may take the square of their number */
    LONG = 1 << 26  /* pairs of children; no more are looked at in one go */
};

/* ------------------------------------------------------------------- find */

/* The entry of a shape among those that have cells with the current node; NULL: out of memory. */
static espi_ptk_met *met_shape(espi_ptk_matcher *m, uint32_t shape)
{
    if (m->met_at[shape] != 0) return &m->met[m->met_at[shape] - 1];
    if (!espi_reserve(&m->met, &m->met_capacity, m->mets + 1, sizeof *m->met)) return NULL;
    m->met[m->mets] = (espi_ptk_met){.shape = shape};
    m->met_at[shape] = (uint32_t)++m->mets;
    return &m->met[m->mets - 1];
}

/* Child k of the node as a cell with leaves and as one with inner nodes of its label. */
static void make_cells(const espi_ptk_matcher *m, const espi_ptk_node *node, size_t k, espi_ptk_cell with[2])
{
    const uint32_t below = m->tree->child[node->first + k];
    with[0] = with[1] = (espi_ptk_cell){.base = m->values->leaf, .k = (uint32_t)k};
    if (below == ESPI_NO_NODE) return;
    with[1].base = m->values->inner;
    if (m->pool.node[below].column == ESPI_NO_NODE) return;
    const espi_ptk_column *column = &m->column[m->pool.node[below].column];
    with[1].column = column->value;
    with[1].stride = m->index->size[column->group];
}

/* Chains up the cells of child k of the node with all shapes, behind those of earlier children. */
static bool add_cells(espi_ptk_matcher *m, const espi_ptk_node *node, size_t k, uint32_t list)
{
    const struct espi_ptk_posting *at = m->index->posting + m->index->list_start[list];
    const struct espi_ptk_posting *end = m->index->posting + m->index->list_start[list + 1];
    espi_ptk_cell with[2];
    make_cells(m, node, k, with);
    for (; at < end && at->shape < m->limit; at++) {
        espi_ptk_met *q = met_shape(m, at->shape);
        if (q == NULL) return false;
        if (q->cells++ == 0) q->first = (uint32_t)m->cells;
        else m->cell[q->last].next = (uint32_t)m->cells;
        q->last = (uint32_t)m->cells;
        const espi_ptk_cell *c = &with[at->name & 1];
        espi_ptk_cell *to = &m->cell[m->cells++];
        to->base = c->base;
        to->column = c->column;
        to->stride = c->stride;
        to->k = c->k;
        to->l = at->position;
    }
    return true;
}

/* Notes the shapes that have cells of a child, where all cells together would be too many to keep. */
static bool add_shapes(espi_ptk_matcher *m, uint32_t list)
{
    for (size_t i = m->index->list_start[list]; i < m->index->list_start[list + 1]; i++)
        if (m->index->posting[i].shape < m->limit && met_shape(m, m->index->posting[i].shape) == NULL) return false;
    return true;
}

/* The cells of one shape, likewise: those of the node's children from `from` on, until they are many or it took long.
 * Returns the child to go on with; 0: out of memory. */
static size_t find_cells(espi_ptk_matcher *m, const espi_ptk_node *node, espi_ptk_met *q, size_t from)
{
    const espi_ptk_trees *a = m->tree->trees, *b = m->index->trees;
    const espi_ptk_shape *x = &a->shape[node->shape], *y = &b->shape[q->shape];
    size_t k = from;
    for (m->cells = 0; k < x->children && m->cells < MANY && (k - from) * y->children < LONG; k++) {
        const uint32_t label = espi_ptk_label(a->child_name[x->name + k]);
        espi_ptk_cell with[2];
        make_cells(m, node, k, with);
        for (size_t l = 0; l < y->children; l++) {
            const uint32_t name = b->child_name[y->name + l];
            if (espi_ptk_label(name) != label) continue;
            if (!espi_reserve(&m->cell, &m->cell_capacity, m->cells + 1, sizeof *m->cell)) return 0;
            espi_ptk_cell *to = &m->cell[m->cells++];
            *to = with[name & 1];
            to->l = (uint32_t)l;
            to->next = (uint32_t)m->cells;
        }
    }
    q->first = 0;
    q->cells = m->cells;
    m->steps += (k - from) * y->children;
    return k;
}

bool espi_ptk_meet(espi_ptk_matcher *m, const espi_ptk_node *node)
{
    const espi_ptk_shape *p = &m->tree->trees->shape[node->shape];
    const uint32_t *list = m->link->list + p->name;
    size_t most = 0;
    m->mets = m->cells = 0;
    for (size_t k = 0; k < p->children; k++)
        if (list[k] != ESPI_NO_NODE) most += m->index->list_start[list[k] + 1] - m->index->list_start[list[k]];
    m->together = most <= (p->children < BROAD ? MANY : MANY / 4);
    bool ok = !m->together || espi_reserve(&m->cell, &m->cell_capacity, most, sizeof *m->cell);
    for (size_t k = 0; ok && k < p->children; k++) {
        if (list[k] == ESPI_NO_NODE) continue;
        if (m->together) ok = add_cells(m, node, k, list[k]);
        else if (k == 0 || list[k] != list[k - 1]) ok = add_shapes(m, list[k]);
    }
    for (size_t i = 0; i < m->mets; i++) m->met_at[m->met[i].shape] = 0;
    return ok;
}

/* ------------------------------------------------------------------- fill */

/* A lane of the values of a cell for n vertices of a shape from number `from` on. */
static inline void read_cell(const espi_ptk_matcher *m, const struct espi_ptk_block *b, const espi_ptk_cell *c,
                             size_t lane, size_t from, size_t n, double *value)
{
    const double base = c->base[lane];
    if (c->column == NULL) {
        for (size_t r = 0; r < n; r++) value[r] = base;
        return;
    }
    const uint32_t *place = m->index->child + b->child + (size_t)c->l * b->vertices + from;
    const double *column = c->column + lane * c->stride;
    if (n == 1) *value = base + column[*place];
    else read_ptk_column(value, column, place, n, base);
}

/* The excess of vertices [first, last) of a shape from the cells of children [from, to) of the node, in the column;
 * and asks at times whether to go on. */
static esp_status evaluate(espi_ptk_matcher *m, const espi_ptk_met *q, size_t from, size_t to, size_t first,
                           size_t last, double *col, esp_error *err)
{
    const struct espi_ptk_block *b = &m->index->block[q->shape];
    const size_t n = last - first, lanes = m->lanes;
    espi_ptk_cells *t = &m->table;
    if (!espi_ptk_cells_reserve(t, q->cells, q->cells * n * lanes)) return espi_no_memory(err);
    double *value = t->value;
    for (size_t c = 0, i = q->first; c < q->cells; c++, i = m->cell[i].next) {
        t->k[c] = m->cell[i].k;
        t->l[c] = m->cell[i].l;
        read_cell(m, b, &m->cell[i], 0, first, n, value); /* apart: mostly it is the only lane */
        value += n;
        for (size_t lane = 1; lane < lanes; lane++, value += n) read_cell(m, b, &m->cell[i], lane, first, n, value);
    }
    t->q = b->children;
    t->from = from;
    t->to = to;
    t->count = q->cells;
    t->n = n;
    m->steps += (4 * q->cells + (to - from) * b->children) * n * lanes; /* a cell takes several steps */
    if (!espi_ptk_children(m->values, t, col + b->place + first)) return espi_no_memory(err);
    return espi_progress_at_times(m->run, "computing the kernel", &m->steps, err);
}

/* The column of a node over the vertices of a shape whose cells are all there. */
static esp_status fill_shape(espi_ptk_matcher *m, const espi_ptk_met *q, double *col, esp_error *err)
{
    enum { SIDE_BY_SIDE = 1 << 14 }; /* values that stay in the cache */
    const size_t values = q->cells * m->lanes, chunk = values < SIDE_BY_SIDE ? SIDE_BY_SIDE / values : 1;
    esp_status status = ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < q->n; first += chunk)
        status = evaluate(m, q, 0, m->table.p, first, q->n - first < chunk ? q->n : first + chunk, col, err);
    return status;
}

/* The same where they are still to be found, and perhaps too many for one call. */
static esp_status find_and_fill(espi_ptk_matcher *m, const espi_ptk_node *node, espi_ptk_met *q, double *col,
                                esp_error *err)
{
    const size_t children = m->table.p;
    size_t to = find_cells(m, node, q, 0);
    if (to == children) return fill_shape(m, q, col, err);
    esp_status status = to == 0 ? espi_no_memory(err) : ESP_OK;
    for (size_t r = 0; status == ESP_OK && r < q->n; r++) {
        for (size_t from = 0; status == ESP_OK && from < children; from = to) {
            to = find_cells(m, node, q, from);
            status = to == 0 ? espi_no_memory(err) : evaluate(m, q, from, to, r, r + 1, col, err);
        }
    }
    return status;
}

/* Shapes are met in an order that memory cannot foresee: what one needs is fetched while earlier ones are computed. */
enum { NEAR = 4, FAR = 4 };

static inline void fetch_shape(const espi_ptk_matcher *m, size_t i)
{
    if (i < m->mets) __builtin_prefetch(&m->index->block[m->met[i].shape]);
}

static inline void fetch_rows(const espi_ptk_matcher *m, size_t i)
{
    if (i >= m->mets) return;
    const struct espi_ptk_block *b = &m->index->block[m->met[i].shape];
    __builtin_prefetch(m->index->child + b->child);
    __builtin_prefetch(m->index->at + b->at);
}

esp_status espi_ptk_fill(espi_ptk_matcher *m, const espi_ptk_node *node, double *column, esp_error *err)
{
    esp_status status = ESP_OK;
    m->table.p = m->tree->trees->shape[node->shape].children;
    m->table.lanes = m->lanes;
    m->table.stride = m->index->size[m->link->group[node->shape]];
    for (size_t i = 0; i < NEAR + FAR && i < m->mets; i++) fetch_shape(m, i);
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) {
        espi_ptk_met *q = &m->met[i];
        fetch_shape(m, i + FAR + NEAR);
        fetch_rows(m, i + NEAR);
        q->n = espi_ptk_reach(m, &m->index->block[q->shape]);
        status = m->together ? fill_shape(m, q, column, err) : find_and_fill(m, node, q, column, err);
    }
    return status;
}
