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

/* ------------------------------------------------------------------- find */

/* The cells of children of a shape from number `from` on with those of the node, until they are many. Returns the child
 * to go on with; 0: out of memory. */
static size_t find_cells(espi_ptk_matcher *m, const uint32_t *code, size_t children, size_t from)
{
    size_t l = from;
    for (m->cells = 0; l < children && m->cells < MANY; l++) {
        const uint32_t label = m->label[code[l] / 2];
        if (label == 0) continue;
        const uint32_t *k = m->sorted + m->begin[label], *end = m->sorted + m->begin[label + 1];
        if (!espi_reserve(&m->cell, &m->cell_capacity, m->cells + (size_t)(end - k), sizeof *m->cell)) return 0;
        for (; k < end; k++)
            m->cell[m->cells++] =
                (espi_ptk_cell){.k = *k, .l = (uint32_t)l, .inner = m->side[*k].inner && code[l] % 2 != 0};
    }
    m->steps += l - from;
    return l;
}

/* ------------------------------------------------------------------- fill */

typedef struct filling { /* of a column, over the vertices of a block or some of them */
    const struct espi_ptk_block *block;
    const uint32_t *code;   /* of the children */
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

/* The excess of vertices [first, last) from the cells of their children [from, to); and asks at times whether to
 * go on. */
static esp_status evaluate(espi_ptk_matcher *m, const filling *f, size_t from, size_t to, size_t first, size_t last,
                           esp_error *err)
{
    const size_t n = last - first, lanes = m->lanes;
    espi_ptk_cells *t = &m->table;
    if (!espi_ptk_cells_reserve(t, m->cells, m->cells * n * lanes)) return espi_no_memory(err);
    double *value = t->value;
    for (size_t c = 0; c < m->cells; c++) {
        t->k[c] = m->cell[c].l;
        t->l[c] = m->cell[c].k;
        read_cell(m, f, &m->cell[c], 0, first, n, value); /* apart: mostly it is the only lane */
        value += n;
        for (size_t lane = 1; lane < lanes; lane++, value += n) read_cell(m, f, &m->cell[c], lane, first, n, value);
    }
    t->p = f->block->children;
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

/* The excess of n vertices with one cell or two. */
static void fill_many(espi_ptk_matcher *m, const filling *f, size_t n)
{
    espi_ptk_many x = {.cells = m->cells, .n = n, .mu = m->values->mu, .out = f->out, .w = f->w, .count = f->count};
    for (size_t c = 0; c < m->cells; c++) {
        const espi_ptk_cell *cell = &m->cell[c];
        x.cell[c].base = cell->inner ? *m->values->inner : *m->values->leaf;
        x.cell[c].column = cell->inner ? m->side[cell->k].column : NULL;
        x.cell[c].place = m->index->child + f->block->child + (size_t)cell->l * f->block->vertices;
    }
    const espi_ptk_cell *a = &m->cell[0], *b = &m->cell[m->cells - 1];
    if (a->k < b->k && a->l < b->l) x.factor = espi_ptk_power(m->values, (b->k - a->k - 1) + (b->l - a->l - 1));
    espi_ptk_sum_many(&x);
    m->steps += 4 * m->cells * n;
}

/* The excess of n vertices. */
static esp_status fill_vertices(espi_ptk_matcher *m, const filling *f, size_t n, esp_error *err)
{
    enum { SIDE_BY_SIDE = 1 << 12 }; /* values that stay in the cache */
    const size_t children = f->block->children;
    size_t to = find_cells(m, f->code, children, 0);
    if (to == 0) return espi_no_memory(err);
    esp_status status = ESP_OK;
    if (to == children && m->lanes == 1 && f->w != NULL &&
        (m->cells == 1 || (m->cells == 2 && espi_ptk_few(2, children, m->table.q)))) {
        fill_many(m, f, n);
        return espi_progress_at_times(m->run, "computing the kernel", &m->steps, err);
    }
    if (to == children) {
        const size_t values = m->cells * m->lanes, chunk = values < SIDE_BY_SIDE ? SIDE_BY_SIDE / values : 1;
        for (size_t first = 0; status == ESP_OK && first < n; first += chunk)
            status = evaluate(m, f, 0, children, first, n - first < chunk ? n : first + chunk, err);
        return status;
    }
    for (size_t r = 0; status == ESP_OK && r < n; r++) {
        for (size_t from = 0; status == ESP_OK && from < children; from = to) {
            to = find_cells(m, f->code, children, from);
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
    if (!espi_reserve(&m->kin_value, &m->kin_value_capacity, q->n * m->lanes, sizeof *m->kin_value))
        return espi_no_memory(err);
    const filling f = {.block = b,
                       .code = m->index->code + m->index->trees->shape[q->shape].name,
                       .member = m->index->member + kin->member,
                       .out = m->kin_value};
    m->table.stride = q->n;
    const esp_status status = fill_vertices(m, &f, q->n, err);
    m->table.stride = stride;
    for (size_t lane = 0; status == ESP_OK && lane < m->lanes; lane++)
        for (size_t r = 0; r < q->n; r++)
            column[lane * stride + b->place + f.member[r]] = m->kin_value[lane * q->n + r];
    return status;
}

/* What w was at the vertices with rare labels, before their blocks are added to it. */
static bool save_kin(espi_ptk_matcher *m, const double *w)
{
    size_t saved = 0;
    for (size_t i = 0; i < m->kins; i++) saved += m->kin[i].n * m->lanes;
    if (!espi_reserve(&m->saved, &m->saved_capacity, saved, sizeof *m->saved)) return false;
    double *to = m->saved;
    for (size_t i = 0; i < m->kins; i++) {
        const struct espi_ptk_kin *kin = &m->index->kin[m->kin[i].shape];
        const uint32_t *member = m->index->member + kin->member;
        const double *from = w + m->index->block[kin->block].place;
        for (size_t lane = 0; lane < m->lanes; lane++, from += m->table.stride)
            for (size_t r = 0; r < m->kin[i].n; r++) *to++ = from[member[r]];
    }
    return true;
}

/* What it is with them. */
static void add_kin(const espi_ptk_matcher *m, const double *column, double *w, double count)
{
    const double *saved = m->saved;
    for (size_t i = 0; i < m->kins; i++) {
        const struct espi_ptk_kin *kin = &m->index->kin[m->kin[i].shape];
        const uint32_t *member = m->index->member + kin->member;
        size_t place = m->index->block[kin->block].place;
        for (size_t lane = 0; lane < m->lanes; lane++, place += m->table.stride)
            for (size_t r = 0; r < m->kin[i].n; r++)
                w[place + member[r]] = *saved++ + count * column[place + member[r]];
    }
}

/* Blocks are met in an order that memory cannot foresee: what one needs is fetched while earlier ones are computed. */
enum { NEAR = 4, FAR = 4 };

static inline void fetch_block(const espi_ptk_matcher *m, size_t i)
{
    if (i < m->mets) __builtin_prefetch(&m->index->block[m->met[i].block]);
}

static inline void fetch_children(const espi_ptk_matcher *m, size_t i)
{
    if (i >= m->mets) return;
    const struct espi_ptk_block *b = &m->index->block[m->met[i].block];
    __builtin_prefetch(m->index->child + b->child);
    __builtin_prefetch(m->index->block_code + b->code);
}

/* A block of few vertices, one by one. */
static esp_status fill_narrow(espi_ptk_matcher *m, const filling *f, size_t n, esp_error *err)
{
    for (size_t r = 0; r < n; r++) {
        const espi_ptk_target to = {f->out + r, f->w == NULL ? NULL : f->w + r, f->count};
        if (!espi_ptk_narrow_add(m, f->block, r, &to)) return espi_no_memory(err);
    }
    return espi_progress_at_times(m->run, "computing the kernel", &m->steps, err);
}

static void clear(const espi_ptk_matcher *m, double *column, size_t from, size_t to)
{
    for (size_t lane = 0; lane < m->lanes && from < to; lane++)
        memset(column + lane * m->table.stride + from, 0, (to - from) * sizeof *column);
}

/* Zeros where nothing is met: in other blocks of the group, and in trees that are not asked for. */
static void clear_rest(const espi_ptk_matcher *m, uint32_t group, double *column)
{
    const espi_ptk_index *x = m->index;
    const uint32_t *at = x->group_block + x->group_start[group], *end = x->group_block + x->group_start[group + 1];
    size_t from = 0; /* all before is done */
    if (m->mets < (size_t)(end - at) / 8) at = end;
    for (; at < end; at++) {
        const uint32_t met = m->met_at[*at];
        if (met == 0) continue;
        const size_t place = x->block[*at].place;
        clear(m, column, from, place);
        from = place + m->met[met - 1].n;
    }
    clear(m, column, from, x->size[group]);
}

static esp_status fill_blocks(espi_ptk_matcher *m, double *column, double *w, double count, esp_error *err)
{
    enum { FEW = 4 }; /* vertices */
    esp_status status = espi_ptk_narrow_start(m) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < NEAR + FAR; i++) fetch_block(m, i);
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) {
        fetch_block(m, i + FAR + NEAR);
        fetch_children(m, i + NEAR);
        const espi_ptk_met *q = &m->met[i];
        const struct espi_ptk_block *b = &m->index->block[q->block];
        const filling f = {.block = b,
                           .code = m->index->block_code + b->code,
                           .out = column + b->place,
                           .w = w == NULL ? NULL : w + b->place,
                           .count = count};
        const bool narrow = q->n <= FEW && m->lanes == 1 && b->children <= m->narrow.most;
        status = (narrow ? fill_narrow : fill_vertices)(m, &f, q->n, err);
    }
    if (!espi_ptk_narrow_end(m, status == ESP_OK) && status == ESP_OK) status = espi_no_memory(err);
    return status;
}

esp_status espi_ptk_fill(espi_ptk_matcher *m, const espi_ptk_node *node, double *column, double *w, double count,
                         esp_error *err)
{
    m->table.q = m->tree->trees->shape[node->shape].children;
    m->table.lanes = m->lanes;
    m->table.stride = m->index->size[m->link->group[node->shape]];
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = (uint32_t)i;
    /* Blocks have the first rare list in the place of all: nobody must have it now. */
    const uint32_t hidden = m->label[m->index->frequent];
    m->label[m->index->frequent] = 0;
    for (size_t i = 0; i < m->mets; i++) m->met[i].n = espi_ptk_reach(m, &m->index->block[m->met[i].block]);
    clear_rest(m, m->link->group[node->shape], column);
    for (size_t i = 0; i < m->mets; i++) m->met_at[m->met[i].block] = 0;
    esp_status status = w == NULL || save_kin(m, w) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = fill_blocks(m, column, w, count, err);
    m->label[m->index->frequent] = hidden;
    for (size_t i = 0; status == ESP_OK && i < m->kins; i++) status = fill_kin(m, &m->kin[i], column, err);
    for (size_t i = 1; i <= m->labels; i++) m->label[m->list[i]] = 0;
    if (status == ESP_OK && w != NULL) add_kin(m, column, w, count);
    return status;
}
