/* The excess of single vertices, where there is one lane and few are alike: S of few cells right away, by chains;
 * tables eight at a time. These have one width, the children of the current node; a row that a vertex does not have,
 * and a cell that is none, has Delta = 0, which adds nothing to any of the sums of children.c. */
#include "base/alloc.h"
#include "base/hot.h"
#include "kernel/partial_tree/match.h"

#include <string.h>

enum { EIGHT = ESPI_PTK_EIGHT };

typedef struct espi_ptk_one_cell one_cell;

void espi_ptk_narrow_free(espi_ptk_narrow *x)
{
    for (size_t i = 0; i < ESPI_PTK_HEIGHTS; i++) espi_free(x->batch[i].value);
    espi_free(x->ended);
    espi_free(x->cell);
    *x = (espi_ptk_narrow){0};
}

/* The table of children.c for eight vertices side by side, in the same order of operations. */
HOT static void sum_eight(double lambda, const double *restrict value, size_t rows, size_t width,
                          double *restrict ended, double *restrict sum)
{
    double s[EIGHT] = {0.0};
    for (size_t x = 0; x < width * EIGHT; x++) ended[x] = 0.0;
    for (size_t l = 0; l < rows; l++) {
        double row[EIGHT] = {0.0}, corner[EIGHT] = {0.0};
        for (size_t k = 0; k < width; k++, value += EIGHT) {
            double *restrict end = ended + k * EIGHT;
            for (size_t x = 0; x < EIGHT; x++) {
                const double p = value[x] * (1.0 + corner[x]);
                s[x] += p;
                row[x] = row[x] * lambda + p;
                corner[x] = end[x];
                end[x] = row[x] + lambda * corner[x];
            }
        }
    }
    for (size_t x = 0; x < EIGHT; x++) sum[x] = s[x];
}

static void put(const espi_ptk_matcher *m, const espi_ptk_target *to, double s)
{
    *to->out = m->values->mu * s;
    if (to->w != NULL) *to->w += to->count * *to->out;
}

static void flush(espi_ptk_matcher *m, struct espi_ptk_batch *b)
{
    double sum[EIGHT];
    const size_t width = m->table.q;
    sum_eight(m->values->lambda, b->value, b->rows, width, m->narrow.ended, sum);
    for (size_t i = 0; i < b->count; i++) put(m, &b->target[i], sum[i]);
    memset(b->value, 0, b->rows * width * EIGHT * sizeof *b->value);
    b->rows = b->count = 0;
}

bool espi_ptk_narrow_start(espi_ptk_matcher *m)
{
    espi_ptk_narrow *x = &m->narrow;
    const size_t width = m->table.q;
    x->most = width < ESPI_PTK_NARROW ? ESPI_PTK_NARROW / width : 0;
    if (x->most >= (size_t)1 << (ESPI_PTK_HEIGHTS - 1)) x->most = ((size_t)1 << (ESPI_PTK_HEIGHTS - 1)) - 1;
    x->constant[0] = *m->values->leaf;
    x->constant[1] = *m->values->inner;
    if (x->cell == NULL) x->cell = espi_alloc((size_t)ESPI_PTK_AHEAD * ESPI_PTK_NARROW, sizeof *x->cell);
    return x->cell != NULL && espi_reserve(&x->ended, &x->ended_capacity, width * EIGHT, sizeof *x->ended);
}

static inline double read(const espi_ptk_narrow *x, const one_cell *cell)
{
    return x->constant[cell->inner] + *cell->excess;
}

/* S by chains, as in children.c. */
static double chain(const espi_ptk_matcher *m, const one_cell *cell, size_t cells)
{
    double s = 0.0, p[ESPI_PTK_NARROW];
    for (size_t i = 0; i < cells; i++) {
        double sum = 1.0;
        const size_t k = cell[i].k, l = cell[i].l;
        for (size_t j = 0; j < i; j++)
            if (cell[j].k < k && cell[j].l < l)
                sum += espi_ptk_power(m->values, (k - cell[j].k - 1) + (l - cell[j].l - 1)) * p[j];
        p[i] = read(&m->narrow, &cell[i]) * sum;
        s += p[i];
    }
    return s;
}

/* Adds a table to those of about its height. False: out of memory. */
static bool add_table(espi_ptk_matcher *m, const one_cell *cell, size_t cells, size_t rows, const espi_ptk_target *to)
{
    size_t height = 0;
    while (rows >> height != 0) height++;
    struct espi_ptk_batch *b = &m->narrow.batch[height];
    const size_t had = b->capacity;
    if (!espi_reserve(&b->value, &b->capacity, (m->table.q * EIGHT) << height, sizeof *b->value)) return false;
    if (b->capacity > had) memset(b->value + had, 0, (b->capacity - had) * sizeof *b->value);
    double *value = b->value + b->count;
    for (size_t c = 0; c < cells; c++) value[(cell[c].l * m->table.q + cell[c].k) * EIGHT] = read(&m->narrow, &cell[c]);
    if (rows > b->rows) b->rows = rows;
    b->target[b->count++] = *to;
    if (b->count == EIGHT) flush(m, b);
    return true;
}

/* A vertex whose cells have been found: reads their values. */
static bool finish(espi_ptk_matcher *m, size_t slot)
{
    struct espi_ptk_found *f = &m->narrow.found[slot];
    const one_cell *cell = m->narrow.cell + slot * ESPI_PTK_NARROW;
    const size_t cells = f->cells;
    f->cells = 0;
    if (cells == 1) put(m, &f->target, read(&m->narrow, cell));
    else if (espi_ptk_few(cells, f->rows, m->table.q)) put(m, &f->target, chain(m, cell, cells));
    else return add_table(m, cell, cells, f->rows, &f->target);
    return true;
}

/* The cells of child l of a vertex, at `place`, and the children of the node with its label. Returns where the next
 * cell goes. */
static inline one_cell *find_cells(const espi_ptk_matcher *m, size_t l, bool inner, uint32_t label, size_t place,
                                   one_cell *cell)
{
    const uint32_t *k = m->sorted + m->begin[label], *end = m->sorted + m->begin[label + 1];
    for (; k < end; k++, cell++) {
        const espi_ptk_side *side = &m->side[*k];
        cell->l = (uint16_t)l;
        cell->k = (uint16_t)*k;
        cell->inner = inner && side->inner;
        cell->excess = cell->inner && side->column != NULL ? side->column + place : &m->narrow.zero;
        __builtin_prefetch(cell->excess);
    }
    return cell;
}

bool espi_ptk_narrow_add(espi_ptk_matcher *m, const struct espi_ptk_block *b, size_t rank, const espi_ptk_target *to)
{
    const uint32_t *code = m->index->block_code + b->code, *place = m->index->child + b->child + rank;
    const size_t rows = b->children, slot = m->narrow.next++ % ESPI_PTK_AHEAD;
    struct espi_ptk_found *f = &m->narrow.found[slot];
    one_cell *first = m->narrow.cell + slot * ESPI_PTK_NARROW, *cell = first;
    if (f->cells > 0 && !finish(m, slot)) return false;
    for (size_t l = 0; l < rows; l++) {
        const uint32_t label = m->label[code[l] / 2];
        if (label != 0) cell = find_cells(m, l, code[l] % 2 != 0, label, place[l * b->vertices], cell);
    }
    *f = (struct espi_ptk_found){.target = *to, .cells = (size_t)(cell - first), .rows = rows};
    m->steps += rows * m->table.q + 4 * f->cells;
    return true;
}

bool espi_ptk_narrow_end(espi_ptk_matcher *m, bool ok)
{
    for (size_t i = 0; i < ESPI_PTK_AHEAD; i++) {
        const size_t slot = m->narrow.next++ % ESPI_PTK_AHEAD;
        if (ok && m->narrow.found[slot].cells > 0) ok = finish(m, slot);
        m->narrow.found[slot].cells = 0;
    }
    for (size_t i = 0; i < ESPI_PTK_HEIGHTS; i++)
        if (m->narrow.batch[i].count > 0) flush(m, &m->narrow.batch[i]);
    return ok;
}
