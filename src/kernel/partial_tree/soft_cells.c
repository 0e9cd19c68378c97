/* The cells of one node with the shapes of the DAG: found through the index, shape by shape, and their values for all
 * vertices of a shape side by side. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/partial_tree/soft_match.h"

HOT static void read_soft_column(double *restrict value, const double *restrict col, const uint32_t *restrict place,
                                 size_t n, double base)
{
    for (size_t r = 0; r < n; r++) value[r] = base + col[place[r]];
}

enum {
    MANY = 1 << 16, /* cells; no more are kept at the same time, but for the last child's */
    BROAD = 256,    /* children; of such a node fewer are kept, as a call may take the square of their number */
    LONG = 1 << 26  /* pairs of children; no more are looked at in one go */
};

/* The entry of a shape among those that have cells with the node at hand; NULL: memory is out. */
static espi_soft_met *meet(espi_soft_matcher *m, uint32_t shape)
{
    if (m->met_at[shape] != 0) return &m->met[m->met_at[shape] - 1];
    if (!espi_reserve(&m->met, &m->met_capacity, m->mets + 1, sizeof *m->met)) return NULL;
    m->met[m->mets] = (espi_soft_met){.shape = shape};
    m->met_at[shape] = (uint32_t)++m->mets;
    return &m->met[m->mets - 1];
}

/* Position k of the node and a child with code_q, as a cell; `kind` ESPI_APART: none. */
static espi_soft_source make_cell(const espi_soft_matcher *m, const espi_soft_node *node, size_t k, uint32_t code_q,
                                  espi_soft_kind *kind)
{
    const espi_soft_trees *t = m->plan->trees;
    const espi_soft_cell c = m->rules->cell(m->rules, t->code[t->shape[node->shape].code + k], code_q);
    const uint32_t below = c.kind == ESPI_DEEP ? m->plan->child[node->first + k] : ESPI_NO_NODE;
    const uint32_t number = below == ESPI_NO_NODE ? ESPI_NO_NODE : m->pool.node[below].column;
    *kind = c.kind;
    const espi_soft_slot *slot = number == ESPI_NO_NODE ? NULL : &m->slot[number];
    return (espi_soft_source){.base = c.base,
                              .column = slot == NULL ? NULL : slot->value,
                              .stride = slot == NULL ? 0 : m->dag->size[slot->group],
                              .k = (uint32_t)k};
}

/* Chains up the cells of position k of the node with all shapes, behind those of earlier positions. */
static bool add_cells(espi_soft_matcher *m, const espi_soft_node *node, size_t k, uint32_t list)
{
    const struct espi_soft_posting *at = m->dag->posting + m->dag->list_start[list];
    const struct espi_soft_posting *end = m->dag->posting + m->dag->list_start[list + 1];
    espi_soft_kind kind = ESPI_APART;
    espi_soft_source c = {0};
    for (bool known = false; at < end && at->shape < m->limit; at++) {
        if (!known || at->code != at[-1].code) c = make_cell(m, node, k, at->code, &kind);
        known = true;
        if (kind == ESPI_APART) continue;
        espi_soft_met *q = meet(m, at->shape);
        if (q == NULL) return false;
        if (q->cells++ == 0) q->first = (uint32_t)m->cells;
        else m->cell[q->last].next = (uint32_t)m->cells;
        q->last = (uint32_t)m->cells;
        espi_soft_source *to = &m->cell[m->cells++];
        to->column = c.column;
        to->base = c.base;
        to->stride = c.stride;
        to->k = c.k;
        to->l = at->position;
    }
    return true;
}

/* Notes the shapes that have cells of position k, where all cells together would be too many to keep. */
static bool add_shapes(espi_soft_matcher *m, uint32_t list)
{
    for (size_t i = m->dag->list_start[list]; i < m->dag->list_start[list + 1]; i++)
        if (m->dag->posting[i].shape < m->limit && meet(m, m->dag->posting[i].shape) == NULL) return false;
    return true;
}

/* The cells of one shape, likewise: those of the node's children from `from` on, until they are many or it took long.
 * Returns the child to go on with; 0: memory is out. */
static size_t find_cells(espi_soft_matcher *m, const espi_soft_node *node, espi_soft_met *q, size_t from)
{
    const espi_soft_trees *a = m->plan->trees, *b = m->dag->trees;
    const struct espi_soft_look *x = &a->shape[node->shape], *y = &b->shape[q->shape];
    size_t k = from;
    for (m->cells = 0; k < x->children && m->cells < MANY && (k - from) * y->children < LONG; k++) {
        for (size_t l = 0; l < y->children; l++) {
            espi_soft_kind kind = ESPI_APART;
            if (a->key[x->code + k] != b->key[y->code + l]) continue;
            espi_soft_source c = make_cell(m, node, k, b->code[y->code + l], &kind);
            if (kind == ESPI_APART) continue;
            if (!espi_reserve(&m->cell, &m->cell_capacity, m->cells + 1, sizeof *m->cell)) return 0;
            c.l = (uint32_t)l;
            c.next = (uint32_t)m->cells + 1;
            m->cell[m->cells++] = c;
        }
    }
    q->first = 0;
    q->cells = m->cells;
    m->work += (k - from) * y->children;
    return k;
}

bool espi_soft_meet(espi_soft_matcher *m, const espi_soft_node *node, bool *together)
{
    const struct espi_soft_look *p = &m->plan->trees->shape[node->shape];
    const uint32_t *list = m->link->list + p->code;
    size_t most = 0;
    m->mets = m->cells = 0;
    for (size_t k = 0; k < p->children; k++)
        if (list[k] != ESPI_NO_NODE) most += m->dag->list_start[list[k] + 1] - m->dag->list_start[list[k]];
    *together = most <= (p->children < BROAD ? MANY : MANY / 4);
    bool ok = !*together || espi_reserve(&m->cell, &m->cell_capacity, most, sizeof *m->cell);
    for (size_t k = 0; ok && k < p->children; k++) {
        if (list[k] == ESPI_NO_NODE) continue;
        if (*together) ok = add_cells(m, node, k, list[k]);
        else if (k == 0 || list[k] != list[k - 1]) ok = add_shapes(m, list[k]);
    }
    for (size_t i = 0; i < m->mets; i++) m->met_at[m->met[i].shape] = 0;
    return ok;
}

/* A lane of the values of a cell for n vertices of a shape from number `from` on. */
static inline void read_cell(const espi_soft_matcher *m, const struct espi_soft_group *s, const espi_soft_source *x,
                             size_t lane, size_t from, size_t n, double *value)
{
    const double base = x->base[lane];
    if (x->column == NULL) {
        for (size_t r = 0; r < n; r++) value[r] = base;
        return;
    }
    const uint32_t *place = m->dag->child + s->child + (size_t)x->l * s->vertices + from;
    const double *column = x->column + lane * x->stride;
    if (n == 1) *value = base + column[*place];
    else read_soft_column(value, column, place, n, base);
}

/* Hands the cells of children [from, to) of the node and their values for vertices [first, last) of a shape to the
 * kernel, and asks at times whether to go on. */
static esp_status evaluate(espi_soft_matcher *m, const espi_soft_node *node, const espi_soft_met *q, size_t from,
                           size_t to, size_t first, size_t last, double *col, esp_error *err)
{
    const struct espi_soft_group *s = &m->dag->shape[q->shape];
    const espi_soft_shape p = espi_soft_shape_of(m->plan->trees, node->shape);
    const size_t n = last - first, lanes = m->lanes;
    if (!espi_reserve(&m->value, &m->value_capacity, q->cells * n * lanes, sizeof *m->value) ||
        !espi_reserve(&m->k, &m->k_capacity, q->cells, sizeof *m->k) ||
        !espi_reserve(&m->l, &m->l_capacity, q->cells, sizeof *m->l))
        return espi_no_memory(err);
    double *value = m->value;
    for (size_t c = 0, i = q->first; c < q->cells; c++, i = m->cell[i].next) {
        m->k[c] = m->cell[i].k;
        m->l[c] = m->cell[i].l;
        read_cell(m, s, &m->cell[i], 0, first, n, value); /* apart: mostly it is the only lane */
        value += n;
        for (size_t lane = 1; lane < lanes; lane++, value += n) read_cell(m, s, &m->cell[i], lane, first, n, value);
    }
    const espi_soft_meeting meeting = {
        .p = p,
        .q = {.group = p.group, .code = m->dag->trees->code + s->code, .children = s->children},
        .from = from,
        .to = to,
        .k = m->k,
        .l = m->l,
        .cells = q->cells,
        .value = m->value,
        .lanes = lanes,
        .stride = m->stride,
        .n = n,
        .scratch = &m->scratch,
        .capacity = &m->scratch_capacity};
    m->work += (4 * q->cells + (to - from) * s->children) * n * lanes; /* a cell takes several steps */
    if (!m->rules->children(m->rules, &meeting, col + s->place + first)) return espi_no_memory(err);
    return espi_progress_at_times(m->run, "computing the kernel", &m->work, err);
}

/* The column of a node over the vertices of a shape whose cells are all there. */
static esp_status fill_column(espi_soft_matcher *m, const espi_soft_node *node, const espi_soft_met *q, double *col,
                              esp_error *err)
{
    enum { SIDE_BY_SIDE = 1 << 14 }; /* values that stay in the cache */
    const size_t children = m->plan->trees->shape[node->shape].children;
    if (q->cells == 0) return ESP_OK;
    const size_t values = q->cells * m->lanes, chunk = values < SIDE_BY_SIDE ? SIDE_BY_SIDE / values : 1;
    esp_status status = ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < q->n; first += chunk)
        status = evaluate(m, node, q, 0, children, first, q->n - first < chunk ? q->n : first + chunk, col, err);
    return status;
}

/* The same where they are still to be found, and perhaps too many for one call. */
static esp_status find_and_fill(espi_soft_matcher *m, const espi_soft_node *node, espi_soft_met *q, double *col,
                                esp_error *err)
{
    const size_t children = m->plan->trees->shape[node->shape].children;
    size_t to = find_cells(m, node, q, 0);
    if (to == children) return fill_column(m, node, q, col, err);
    esp_status status = to == 0 ? espi_no_memory(err) : ESP_OK;
    for (size_t r = 0; status == ESP_OK && r < q->n; r++) {
        for (size_t from = 0; status == ESP_OK && from < children; from = to) {
            to = find_cells(m, node, q, from);
            status = to == 0 ? espi_no_memory(err) : evaluate(m, node, q, from, to, r, r + 1, col, err);
        }
    }
    return status;
}

/* Shapes are met in an order that memory cannot foresee: what one needs is fetched while earlier ones are at work. */
enum { NEAR = 4, FAR = 4 };

static inline void fetch_shape(const espi_soft_matcher *m, size_t i)
{
    if (i < m->mets) __builtin_prefetch(&m->dag->shape[m->met[i].shape]);
}

static inline void fetch_rows(const espi_soft_matcher *m, size_t i)
{
    if (i >= m->mets) return;
    const struct espi_soft_group *q = &m->dag->shape[m->met[i].shape];
    __builtin_prefetch(m->dag->child + q->child);
    __builtin_prefetch(m->dag->at + q->at);
}

esp_status espi_soft_fill(espi_soft_matcher *m, const espi_soft_node *node, bool together, double *column,
                          esp_error *err)
{
    esp_status status = ESP_OK;
    m->stride = m->dag->size[m->link->group[node->shape]];
    for (size_t i = 0; i < NEAR + FAR && i < m->mets; i++) fetch_shape(m, i);
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) {
        espi_soft_met *q = &m->met[i];
        fetch_shape(m, i + FAR + NEAR);
        fetch_rows(m, i + NEAR);
        q->n = espi_soft_reach(m, &m->dag->shape[q->shape]);
        status = together ? fill_column(m, node, q, column, err) : find_and_fill(m, node, q, column, err);
    }
    return status;
}
