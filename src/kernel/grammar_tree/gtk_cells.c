/* The column of one node over the groups that it meets (gtk_match.c): a product of cells where there is one alignment;
 * else FGTK-III (gtk_pair.c) over blocks of vertices side by side. Both multiply and add only, so that derivatives
 * stand beside the values: that of x y is x' y + x y'. */
#include "base/alloc.h"
#include "kernel/grammar_tree/gtk_match.h"
#include "base/hot.h"

#include <string.h>

enum { BLOCK = 256 }; /* vertices worked on at a time, where they need more room than their column */

/* ------------------------------------------------------------- hot loops */

HOT static void times_number(double *restrict col, size_t n, double x)
{
    for (size_t r = 0; r < n; r++) col[r] *= x;
}

/* The child of r is the pre-terminal `group`, or another. */
HOT static void times_word(double *restrict col, const uint32_t *restrict child, size_t n, uint32_t group, double hit,
                           double miss)
{
    for (size_t r = 0; r < n; r++) col[r] *= child[r] == group ? hit : miss;
}

/* A column with one piece, that of `group`. */
HOT static void times_piece(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank,
                            size_t n, uint32_t group, uint32_t piece, double base, const double *restrict below)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t at = child[r] == group ? piece + rank[r] : 0;
        col[r] *= base + below[at];
    }
}

/* A column with several. */
static void times_pieces(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank, size_t n,
                         const uint32_t *restrict place, const uint32_t *restrict at, double base,
                         const double *restrict below)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t piece = at[place[child[r]]];
        col[r] *= base + below[piece == 0 ? 0 : piece + rank[r]];
    }
}

/* slope = slope * x + col * x', where x' is the same lane as the slope. */
HOT static void times_slope(double *restrict slope, const double *restrict col, const double *restrict x,
                            const double *restrict x_slope, size_t n)
{
    for (size_t r = 0; r < n; r++) slope[r] = slope[r] * x[r] + col[r] * x_slope[r];
}

HOT static void times_values(double *restrict col, const double *restrict x, size_t n)
{
    for (size_t r = 0; r < n; r++) col[r] *= x[r];
}

/* a = o * a + s * (d + e), out = a + q * left. */
HOT static void step_kept(double *restrict a, const double *restrict s, const double *restrict d,
                          const double *restrict left, double *restrict out, size_t n, double o, double e, double q)
{
    for (size_t r = 0; r < n; r++) {
        a[r] = o * a[r] + s[r] * (d[r] + e);
        out[r] = a[r] + q * left[r];
    }
}

HOT static void step_skipped(double *restrict a, const double *restrict left, double *restrict out, size_t n, double o,
                             double q)
{
    for (size_t r = 0; r < n; r++) {
        a[r] = o * a[r];
        out[r] = a[r] + q * left[r];
    }
}

/* What a slope needs besides: a += s * (d + e), out += the same ... */
HOT static void slope_kept(double *restrict a, const double *restrict s, const double *restrict d, double *restrict out,
                           size_t n, double e)
{
    for (size_t r = 0; r < n; r++) {
        const double more = s[r] * (d[r] + e);
        a[r] += more;
        out[r] += more;
    }
}

/* ... and a += o * above, out += the same + q * left. */
HOT static void slope_skipped(double *restrict a, const double *restrict above, const double *restrict left,
                              double *restrict out, size_t n, double o, double q)
{
    for (size_t r = 0; r < n; r++) {
        a[r] += o * above[r];
        out[r] += o * above[r] + q * left[r];
    }
}

/* ------------------------------------------------------------------- cells */

/* The pre-terminal with the words of `word` and this label, as far as the DAG has one. */
static uint32_t with_label(const espi_gtk_matcher *m, uint32_t word, uint32_t label)
{
    const espi_gtk *g = m->gtk;
    if (g->group[word].label == label) return word;
    for (size_t i = m->link->start[word]; i < m->link->start[word + 1]; i++)
        if (g->group[m->link->meeting[i].group].label == label) return m->link->meeting[i].group;
    return ESPI_NO_NODE;
}

/* Where children of one place are partly pre-terminals and partly not, each is looked at. */
static void times_mixed(const espi_gtk_matcher *m, double *col, const uint32_t *child, const uint32_t *rank, size_t n,
                        double word, double hit, uint32_t match, double other, const espi_gtk_slot *below,
                        const double *value)
{
    for (size_t r = 0; r < n; r++) {
        const espi_gtk_group *group = &m->gtk->group[child[r]];
        double x = other;
        if (group->words != ESPI_NO_NODE) {
            x = child[r] == match ? hit : word;
        } else if (below != NULL) {
            const uint32_t piece = below->at[m->gtk->place[child[r]]];
            x += piece == 0 ? 0.0 : value[piece + rank[r]];
        }
        col[r] *= x;
    }
}

/* col[r - from] *= a lane of s of the two children of a cell, for vertices r of a group, and a node of the tree. */
static void times_cell(const espi_gtk_matcher *m, const espi_plan_node *node, uint32_t number,
                       const espi_gtk_cell *cell, size_t lane, size_t from, size_t n, double *col)
{
    const espi_gtk *g = m->gtk;
    const espi_group *group = &m->dag->group[number];
    const uint32_t *child = group->child + 2 * (size_t)cell->p * group->capacity + from,
                   *rank = child + group->capacity;
    const uint32_t other = m->plan->child[node->first + cell->q];
    const uint32_t label = g->child[g->group[number].children + cell->k] >> 1;
    const uint8_t below = m->index->below[m->index->position[number] + cell->p];
    espi_gtk_factor f = cell->factor;
    if (lane > 0) f = espi_gtk_factor_of(g, label, g->child[g->group[node->group].children + cell->l] >> 1, lane);
    if ((other & ESPI_WORD) != 0) {
        const uint32_t match = with_label(m, other & ~ESPI_WORD, label);
        if (below == 1) times_word(col, child, n, match, f.hit, f.both);
        else if (below == 2) times_number(col, n, f.one);
        else times_mixed(m, col, child, rank, n, f.both, f.hit, match, f.one, NULL, NULL);
        return;
    }
    const uint32_t number_below = m->pool.node[other].column;
    const espi_gtk_slot *s = number_below == ESPI_NO_NODE || cell->factor.none == 0.0 ? NULL : &m->slot[number_below];
    const double *value = s == NULL ? NULL : s->value + lane * s->size;
    if (below == 1) times_number(col, n, f.one);
    else if (below == 3) times_mixed(m, col, child, rank, n, f.one, 0.0, ESPI_NO_NODE, f.none, s, value);
    else if (s == NULL) times_number(col, n, f.none);
    else if (m->link->start[s->group + 1] - m->link->start[s->group] == 1)
        times_piece(col, child, rank, n, m->link->meeting[m->link->start[s->group]].group, s->piece[0], f.none, value);
    else times_pieces(col, child, rank, n, g->place, s->at, f.none, value);
}

/* All lanes of s of a cell, n numbers each. */
static void read_cell(const espi_gtk_matcher *m, const espi_plan_node *node, uint32_t number, const espi_gtk_cell *cell,
                      size_t from, size_t n, double *s)
{
    for (size_t lane = 0; lane < m->lanes; lane++, s += n) {
        const bool word = cell->p == ESPI_NO_NODE; /* the number 1 */
        for (size_t r = 0; r < n; r++) s[r] = word && lane > 0 ? 0.0 : 1.0;
        if (!word) times_cell(m, node, number, cell, lane, from, n, s);
    }
}

/* ------------------------------------------------------------ one alignment */

/* The piece of a meeting for n vertices from number `from` on: a product. */
static bool multiply(espi_gtk_matcher *m, const espi_plan_node *node, const espi_gtk_meeting *meeting, size_t from,
                     size_t n, double *col, size_t stride)
{
    const espi_gtk_cell *cell = m->link->cell + meeting->cell, *end = cell + meeting->cells;
    if (m->lanes > 1 && !espi_reserve(&m->block, &m->block_capacity, m->lanes * n, sizeof *m->block)) return false;
    for (size_t lane = 0; lane < m->lanes; lane++) {
        const double scale = lane == 0 ? meeting->scale : espi_gtk_scale(m->gtk, meeting, node->group, lane);
        for (size_t r = 0; r < n; r++) col[lane * stride + r] = scale;
    }
    for (; cell < end; cell++) {
        if (cell->p == ESPI_NO_NODE) continue;
        if (m->lanes == 1) {
            times_cell(m, node, meeting->group, cell, 0, from, n, col);
            continue;
        }
        read_cell(m, node, meeting->group, cell, from, n, m->block);
        for (size_t lane = 1; lane < m->lanes; lane++)
            times_slope(col + lane * stride, col, m->block, m->block + lane * n, n);
        times_values(col, m->block, n);
    }
    return true;
}

/* --------------------------------------------------------- many alignments */

typedef struct skip { /* what skipping children costs, and its derivative in lambda1 */
    double value, slope;
} skip;

static skip skip_of(const espi_gtk *g, const espi_gtk_group *group, size_t k)
{
    return g->optional[group->children + k] ? (skip){g->lambda1, 1.0} : (skip){0.0, 0.0};
}

static skip both(skip a, skip b) { return (skip){a.value * b.value, a.slope * b.value + a.value * b.slope}; }

/* A(i, j) in place of A(i-1, j) at `a`, and D(i, j) at `here`; s NULL: the two children are not kept together. */
static void step(size_t lanes, size_t n, const double *s, const double *corner, const double *left, double *a,
                 double *here, skip o, skip e, skip q)
{
    for (size_t lane = lanes; lane-- > 0;) { /* the values last: slopes need those from above */
        double *x = a + lane * n, *out = here + lane * n;
        if (s != NULL) step_kept(x, s + lane * n, corner, left + lane * n, out, n, o.value, e.value, q.value);
        else step_skipped(x, left + lane * n, out, n, o.value, q.value);
        const bool own = lane == ESPI_GTK_LAMBDA1;
        if (lane > 0 && s != NULL) slope_kept(x, s, corner + lane * n, out, n, own ? e.slope : 0.0);
        if (own) slope_skipped(x, a, left, out, n, o.slope, q.slope);
    }
}

/* The piece of a meeting by FGTK-III; A and D of a row of the table are `a` and `d`, a number with its lanes per
 * column. */
static bool align(espi_gtk_matcher *m, const espi_plan_node *node, const espi_gtk_meeting *meeting, size_t from,
                  size_t n, double *col, size_t stride)
{
    const espi_gtk *g = m->gtk;
    const espi_gtk_group *p = &g->group[meeting->group], *q = &g->group[node->group];
    const espi_gtk_cell *cell = m->link->cell + meeting->cell, *end = cell + meeting->cells;
    const size_t width = (size_t)q->arity + 1, size = m->lanes * n;
    if (!espi_reserve(&m->block, &m->block_capacity, (3 * width + 1) * size + 2 * width, sizeof *m->block))
        return false;
    double *a = m->block, *d = a + width * size, *next = d + width * size, *s = next + width * size;
    skip *e = (skip *)(void *)(s + size), down = {1.0, 0.0};
    memset(a, 0, 2 * width * size * sizeof *a);
    e[0] = down;
    for (size_t j = 1; j < width; j++) e[j] = both(e[j - 1], skip_of(g, q, j - 1));
    for (size_t i = 1; i <= p->arity; i++) {
        const skip o = skip_of(g, p, i - 1);
        memset(next, 0, size * sizeof *next);
        for (size_t j = 1; j < width; j++) {
            const bool kept = cell < end && cell->k == i - 1 && cell->l == j - 1;
            if (kept) read_cell(m, node, meeting->group, cell++, from, n, s);
            step(m->lanes, n, kept ? s : NULL, d + (j - 1) * size, next + (j - 1) * size, a + j * size, next + j * size,
                 o, both(down, e[j - 1]), skip_of(g, q, j - 1));
        }
        double *t = d;
        d = next;
        next = t;
        down = both(down, o);
    }
    const double *last = d + (width - 1) * size;
    for (size_t lane = 0; lane < m->lanes; lane++) {
        const double slope = lane == 0 ? 0.0 : espi_gtk_scale(g, meeting, node->group, lane);
        for (size_t r = 0; r < n; r++) col[lane * stride + r] = meeting->scale * last[lane * n + r] + slope * last[r];
    }
    return true;
}

bool espi_gtk_fill(espi_gtk_matcher *m, size_t number, espi_gtk_slot *s)
{
    const espi_plan_node *node = &m->plan->node[number];
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    for (size_t lane = 0; lane < m->lanes; lane++) s->value[lane * s->size] = 0.0;
    for (size_t i = 0; i < meetings; i++) {
        const espi_gtk_meeting *meeting = &m->link->meeting[first + i];
        const size_t n = m->reach[meeting->group].vertices;
        const size_t most = meeting->single && m->lanes == 1 ? n : BLOCK / m->lanes;
        m->work += n * m->lanes;
        for (size_t r = 0; r < n; r += most)
            if (!(meeting->single ? multiply : align)(m, node, meeting, r, n - r < most ? n - r : most,
                                                      s->value + s->piece[i] + r, s->size))
                return false;
    }
    return true;
}
