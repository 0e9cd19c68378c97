/* The cells of one node with the blocks of the index: found through its lists, block by block, and their values for all
 * vertices of a block side by side. Shapes with rare labels of the node come last and take the place of what their
 * block has. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/partial_tree/match.h"

#include <string.h>

HOT static void read_ptk_column(double *restrict value, const double *restrict col, const uint32_t *restrict place,
                                size_t n, double base)
{
    for (size_t r = 0; r < n; r++) value[r] = base + col[place[r]];
}

HOT static void add_ptk_column(double *restrict w, const double *restrict col, size_t n, double count)
{
    for (size_t r = 0; r < n; r++) w[r] += count * col[r];
}

void espi_ptk_add(double *w, const double *col, size_t n, double count)
{
    if (n == 1) *w += count * *col;
    else add_ptk_column(w, col, n, count);
}

enum { MANY = 1 << 16 }; /* cells; no more are kept at the same time, but for the last child's */

/* ------------------------------------------------------------------- meet */

/* The children of the node, and their labels numbered from 1. */
static bool take_sides(espi_ptk_matcher *m, const espi_ptk_node *node)
{
    const espi_ptk_shape *p = &m->tree->trees->shape[node->shape];
    const uint32_t *list = m->link->list + p->name;
    m->labels = 0;
    if (!espi_reserve(&m->side, &m->side_capacity, p->children, sizeof *m->side) ||
        !espi_reserve(&m->list, &m->list_capacity, p->children + 1, sizeof *m->list) ||
        !espi_reserve(&m->begin, &m->begin_capacity, p->children + 2, sizeof *m->begin))
        return false;
    for (size_t k = 0; k < p->children; k++) {
        const uint32_t below = m->tree->child[node->first + k];
        espi_ptk_side *side = &m->side[k];
        *side = (espi_ptk_side){.inner = below != ESPI_NO_NODE};
        if (side->inner && m->pool.node[below].column != ESPI_NO_NODE) {
            const espi_ptk_column *column = &m->column[m->pool.node[below].column];
            side->column = column->value;
            side->stride = m->index->size[column->group];
        }
        if (list[k] == ESPI_NO_NODE) continue;
        if (m->label[list[k]] == 0) {
            m->list[++m->labels] = list[k];
            m->label[list[k]] = (uint32_t)m->labels;
        }
        side->label = m->label[list[k]];
    }
    return true;
}

/* The blocks with a frequent label. */
static bool meet_blocks(espi_ptk_matcher *m, uint32_t list)
{
    const uint32_t *at = m->index->posting + m->index->list_start[list];
    const uint32_t *end = m->index->posting + m->index->list_start[list + 1];
    if (!espi_reserve(&m->met, &m->met_capacity, m->mets + (size_t)(end - at), sizeof *m->met)) return false;
    for (; at < end && *at < m->limit; at++) {
        if (m->met_at[*at] != 0) continue;
        m->met[m->mets++] = (espi_ptk_met){.block = *at};
        m->met_at[*at] = (uint32_t)m->mets;
    }
    return true;
}

/* How many vertices of a shape with rare labels lie in trees before `to`. */
static uint32_t kin_reach(const espi_ptk_matcher *m, const struct espi_ptk_kin *kin)
{
    const uint32_t *member = m->index->member + kin->member,
                   *first = m->index->first + m->index->block[kin->block].vertex;
    uint32_t low = 0, high = (uint32_t)(kin[1].member - kin->member);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (first[member[middle]] < m->to) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The shapes with a rare label. */
static bool meet_kin(espi_ptk_matcher *m, uint32_t list)
{
    const uint32_t *at = m->index->posting + m->index->list_start[list];
    const uint32_t *end = m->index->posting + m->index->list_start[list + 1];
    if (!espi_reserve(&m->kin, &m->kin_capacity, m->kins + (size_t)(end - at), sizeof *m->kin)) return false;
    for (; at < end; at++) {
        const struct espi_ptk_kin *kin = &m->index->kin[*at];
        if (kin->block >= m->limit || m->kin_met[*at]) continue;
        const uint32_t n = kin_reach(m, kin), met = m->met_at[kin->block];
        if (n == 0) continue;
        m->kin_met[*at] = true;
        m->kin[m->kins++] = (espi_ptk_met_kin){.shape = *at, .n = n, .apart = met == 0};
        if (met != 0) m->met[met - 1].mixed = true;
    }
    return true;
}

bool espi_ptk_meet(espi_ptk_matcher *m, const espi_ptk_node *node)
{
    m->mets = m->kins = 0;
    bool ok = take_sides(m, node);
    for (size_t i = 1; ok && i <= m->labels; i++)
        if (!m->index->rare[m->list[i]]) ok = meet_blocks(m, m->list[i]);
    for (size_t i = 1; ok && i <= m->labels; i++)
        if (m->index->rare[m->list[i]]) ok = meet_kin(m, m->list[i]);
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = 0;
    for (size_t i = 0; i < m->mets; i++) m->met_at[m->met[i].block] = 0;
    for (size_t i = 0; i < m->kins; i++) m->kin_met[m->kin[i].shape] = false;
    return ok;
}

/* ------------------------------------------------------------------- find */

/* Sorts the children of a shape by the numbers of their labels. */
static bool sort_positions(espi_ptk_matcher *m, uint32_t shape)
{
    const espi_ptk_shape *s = &m->index->trees->shape[shape];
    const uint32_t *code = m->index->code + s->name;
    uint32_t *end = m->begin + 1; /* where the next child with a label goes */
    if (!espi_reserve(&m->position, &m->position_capacity, s->children, sizeof *m->position)) return false;
    for (size_t i = 0; i <= m->labels + 1; i++) m->begin[i] = 0;
    for (size_t l = 0; l < s->children; l++) end[m->label[code[l] / 2]]++;
    uint32_t next = 0;
    end[0] = 0;
    for (size_t i = 1; i <= m->labels; i++) {
        const uint32_t count = end[i];
        end[i] = next;
        next += count;
    }
    for (size_t l = 0; l < s->children; l++) {
        const uint32_t label = m->label[code[l] / 2];
        if (label != 0) m->position[end[label]++] = (uint32_t)l * 2 + code[l] % 2;
    }
    return true;
}

/* The cells of the node's children from `from` on, until they are many, with a shape whose children are sorted. Returns
 * the child to go on with; 0: out of memory. */
static size_t find_cells(espi_ptk_matcher *m, size_t from)
{
    const size_t p = m->table.p;
    size_t k = from;
    for (m->cells = 0; k < p && m->cells < MANY; k++) {
        const espi_ptk_side *side = &m->side[k];
        if (side->label == 0) continue;
        const uint32_t *at = m->position + m->begin[side->label], *end = m->position + m->begin[side->label + 1];
        if (!espi_reserve(&m->cell, &m->cell_capacity, m->cells + (size_t)(end - at), sizeof *m->cell)) return 0;
        for (; at < end; at++)
            m->cell[m->cells++] = (espi_ptk_cell){.k = (uint32_t)k, .l = *at / 2, .inner = side->inner && *at % 2 != 0};
    }
    m->steps += k - from;
    return k;
}

/* ------------------------------------------------------------------- fill */

typedef struct filling { /* of a column, over the vertices of a block or some of them */
    const struct espi_ptk_block *block;
    const uint32_t *member; /* their ranks; NULL: all */
    double *out;            /* of the first of them */
    double *w;              /* NULL: is not added up */
    double count;
} filling;

/* A lane of the values of a cell for n vertices from number `from` on. */
static inline void read_cell(const espi_ptk_matcher *m, const filling *f, const espi_ptk_cell *c, size_t lane,
                             size_t from, size_t n, double *value)
{
    const espi_ptk_side *side = &m->side[c->k];
    const double base = c->inner ? m->values->inner[lane] : m->values->leaf[lane];
    if (!c->inner || side->column == NULL) {
        for (size_t r = 0; r < n; r++) value[r] = base;
        return;
    }
    const uint32_t *place = m->index->child + f->block->child + (size_t)c->l * f->block->vertices;
    const double *column = side->column + lane * side->stride;
    if (f->member != NULL)
        for (size_t r = 0; r < n; r++) value[r] = base + column[place[f->member[from + r]]];
    else if (n == 1) *value = base + column[place[from]];
    else read_ptk_column(value, column, place + from, n, base);
}

/* The excess of vertices [first, last) from the cells of children [from, to) of the node; and asks at times whether to
 * go on. */
static esp_status evaluate(espi_ptk_matcher *m, const filling *f, size_t from, size_t to, size_t first, size_t last,
                           esp_error *err)
{
    const size_t n = last - first, lanes = m->lanes;
    espi_ptk_cells *t = &m->table;
    if (!espi_ptk_cells_reserve(t, m->cells, m->cells * n * lanes)) return espi_no_memory(err);
    double *value = t->value;
    for (size_t c = 0; c < m->cells; c++) {
        t->k[c] = m->cell[c].k;
        t->l[c] = m->cell[c].l;
        read_cell(m, f, &m->cell[c], 0, first, n, value); /* apart: mostly it is the only lane */
        value += n;
        for (size_t lane = 1; lane < lanes; lane++, value += n) read_cell(m, f, &m->cell[c], lane, first, n, value);
    }
    t->q = f->block->children;
    t->from = from;
    t->to = to;
    t->count = m->cells;
    t->n = n;
    m->steps += (4 * m->cells + (to - from) * t->q) * n * lanes; /* a cell takes several steps */
    if (!espi_ptk_children(m->values, t, f->out + first)) return espi_no_memory(err);
    for (size_t lane = 0; lane < lanes && f->w != NULL && to == t->p; lane++)
        espi_ptk_add(f->w + lane * t->stride + first, f->out + lane * t->stride + first, n, f->count);
    return espi_progress_at_times(m->run, "computing the kernel", &m->steps, err);
}

/* The excess of n vertices with the cells of a shape, whose children are sorted. */
static esp_status fill_vertices(espi_ptk_matcher *m, const filling *f, size_t n, esp_error *err)
{
    enum { SIDE_BY_SIDE = 1 << 14 }; /* values that stay in the cache */
    const size_t children = m->table.p;
    size_t to = find_cells(m, 0);
    if (to == 0) return espi_no_memory(err);
    esp_status status = ESP_OK;
    if (to == children) {
        const size_t values = m->cells * m->lanes, chunk = values < SIDE_BY_SIDE ? SIDE_BY_SIDE / values : 1;
        for (size_t first = 0; status == ESP_OK && first < n; first += chunk)
            status = evaluate(m, f, 0, children, first, n - first < chunk ? n : first + chunk, err);
        return status;
    }
    for (size_t r = 0; status == ESP_OK && r < n; r++) {
        for (size_t from = 0; status == ESP_OK && from < children; from = to) {
            to = find_cells(m, from);
            status = to == 0 ? espi_no_memory(err) : evaluate(m, f, from, to, r, r + 1, err);
        }
    }
    return status;
}

/* The column of the node over a shape with rare labels. Its vertices do not lie side by side. */
static esp_status fill_kin(espi_ptk_matcher *m, const espi_ptk_met_kin *q, double *column, esp_error *err)
{
    const struct espi_ptk_kin *kin = &m->index->kin[q->shape];
    const struct espi_ptk_block *b = &m->index->block[kin->block];
    const size_t stride = m->table.stride;
    if (!sort_positions(m, q->shape) ||
        !espi_reserve(&m->kin_value, &m->kin_value_capacity, q->n * m->lanes, sizeof *m->kin_value))
        return espi_no_memory(err);
    const filling f = {.block = b, .member = m->index->member + kin->member, .out = m->kin_value};
    m->table.stride = q->n;
    const esp_status status = fill_vertices(m, &f, q->n, err);
    m->table.stride = stride;
    for (size_t lane = 0; status == ESP_OK && lane < m->lanes; lane++)
        for (size_t r = 0; r < q->n; r++)
            column[lane * stride + b->place + f.member[r]] = m->kin_value[lane * q->n + r];
    return status;
}

/* What the rare labels add to w, once the column is complete. */
static void add_mixed(const espi_ptk_matcher *m, const double *column, double *w, double count)
{
    const size_t stride = m->table.stride;
    for (size_t i = 0; i < m->mets; i++) {
        const size_t place = m->index->block[m->met[i].block].place;
        for (size_t lane = 0; lane < m->lanes && m->met[i].mixed; lane++)
            espi_ptk_add(w + lane * stride + place, column + lane * stride + place, m->met[i].n, count);
    }
    for (size_t i = 0; i < m->kins; i++) {
        const struct espi_ptk_kin *kin = &m->index->kin[m->kin[i].shape];
        const uint32_t *member = m->index->member + kin->member;
        const size_t place = m->index->block[kin->block].place;
        for (size_t lane = 0; lane < m->lanes && m->kin[i].apart; lane++)
            for (size_t r = 0; r < m->kin[i].n; r++)
                w[lane * stride + place + member[r]] += count * column[lane * stride + place + member[r]];
    }
}

esp_status espi_ptk_fill(espi_ptk_matcher *m, const espi_ptk_node *node, double *column, double *w, double count,
                         esp_error *err)
{
    const espi_ptk_index *x = m->index;
    esp_status status = ESP_OK;
    m->table.p = m->tree->trees->shape[node->shape].children;
    m->table.lanes = m->lanes;
    m->table.stride = x->size[m->link->group[node->shape]];
    for (size_t i = 1; i <= m->labels; i++)
        if (!x->rare[m->list[i]]) m->label[m->list[i]] = (uint32_t)i;
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) {
        espi_ptk_met *q = &m->met[i];
        const struct espi_ptk_block *b = &x->block[q->block];
        const filling f = {
            .block = b, .out = column + b->place, .w = q->mixed || w == NULL ? NULL : w + b->place, .count = count};
        q->n = espi_ptk_reach(m, b);
        status = sort_positions(m, b->shape) ? fill_vertices(m, &f, q->n, err) : espi_no_memory(err);
    }
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = (uint32_t)i;
    for (size_t i = 0; status == ESP_OK && i < m->kins; i++) status = fill_kin(m, &m->kin[i], column, err);
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = 0;
    if (status == ESP_OK && w != NULL) add_mixed(m, column, w, count);
    return status;
}
