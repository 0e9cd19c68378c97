/* The grammar-driven kernel pair by pair. For two nodes with children a_1 .. a_m and b_1 .. b_n, o_i (q_j) being
 * lambda1 where a_i (b_j) is optional and 0 where it is not, and E(i, j) = o_1 .. o_i q_1 .. q_j:
 *
 * FGTK-I    K_p(i, j) = o_i K_p(i-1, j) + sum_{l <= j} s_il K_{p-1}(i-1, l-1) q_{l+1} .. q_j,   K_0 = E
 * FGTK-II   P_p(i, j) = s_ij D_p(i-1, j-1),   D_1 = E,
 *           D_p(i, j) = P_{p-1}(i, j) + q_j D_p(i, j-1) + o_i D_p(i-1, j) - o_i q_j D_p(i-1, j-1)
 * FGTK-III  A(i, j) = s_ij (D(i-1, j-1) + E(i-1, j-1)) + o_i A(i-1, j),   D(i, j) = A(i, j) + q_j D(i, j-1)
 *
 * (Che et al. 2008, eqs. 12-14 and 20-24, with s = m + Delta in place of Delta). Delta / lambda is the sum over p >=
 * 1 of K_p(m, n); of P_p(i, j) o_{i+1} .. o_m q_{j+1} .. q_n over p, i and j; and D(m, n). In the third, between two
 * pairs that are kept, children of n1 are skipped before those of n2, so that every alignment counts once and nothing
 * is subtracted; the empty alignment E never enters D. GTK sums over all variations instead. */
#include "base/alloc.h"
#include "base/sort.h"
#include "kernel/grammar_tree/gtk.h"

#include <string.h>

/* ------------------------------------------------------------------- trees */

void espi_gtk_tree_free(espi_gtk_tree *t)
{
    espi_free(t->group);
    espi_free(t->first);
    espi_free(t->child);
    espi_free(t->sorted);
    espi_free(t->place);
    *t = (espi_gtk_tree){0};
}

static bool reserve_tree(espi_gtk_tree *t, size_t nodes)
{
    return espi_reserve(&t->group, &t->capacity[0], nodes, sizeof *t->group) &&
           espi_reserve(&t->first, &t->capacity[1], nodes + 1, sizeof *t->first) &&
           espi_reserve(&t->child, &t->capacity[2], nodes, sizeof *t->child) &&
           espi_reserve(&t->sorted, &t->capacity[3], nodes, sizeof *t->sorted) &&
           espi_reserve(&t->place, &t->capacity[4], nodes, sizeof *t->place);
}

static void sort_nodes(espi_gtk_tree *t, const espi_gtk *g)
{
    for (size_t i = 0; i < t->nodes; i++) t->sorted[i] = (uint64_t)g->group[t->group[i]].kind << 32 | i;
    espi_sort_keys(t->sorted, t->nodes);
    uint32_t place = 0;
    for (size_t i = 0; i < t->nodes; i++) {
        place = i > 0 && t->sorted[i] >> 32 == t->sorted[i - 1] >> 32 ? place + 1 : 0;
        t->place[(uint32_t)t->sorted[i]] = place;
    }
}

bool espi_gtk_tree_fill(espi_gtk_tree *t, const espi_gtk *g, const espi_forest *forest, const uint32_t *group_of,
                        espi_ref root)
{
    espi_walk walk = {0};
    uint32_t *open = NULL; /* nodes whose parent has not come yet */
    size_t opened = 0, capacity = 0, children = 0;
    bool failed = !reserve_tree(t, 0) || !espi_walk_start(&walk, forest, root);
    espi_ref vertex;
    t->nodes = 0;
    while (!failed && (vertex = espi_walk_next(&walk, &failed)) != ESPI_NO_NODE) {
        const uint32_t production = forest->vertex[vertex].production;
        const size_t i = t->nodes, inner = forest->production[production].inner;
        failed = !reserve_tree(t, i + 1) || !espi_reserve(&open, &capacity, opened + 1, sizeof *open);
        if (failed) break;
        t->group[i] = group_of[production];
        opened -= inner;
        t->first[i] = children;
        if (inner > 0) memcpy(t->child + children, open + opened, inner * sizeof *open);
        children += inner;
        open[opened++] = (uint32_t)i;
        t->nodes++;
    }
    espi_free(open);
    espi_walk_free(&walk);
    if (failed) return false;
    t->first[t->nodes] = children;
    sort_nodes(t, g);
    return true;
}

/* ---------------------------------------------------- two lists of children */

typedef struct lists { /* the children of two nodes that meet */
    const bool *optional_a, *optional_b;
    size_t m, n;
    const double *o, *q; /* o_1 .. o_m, q_1 .. q_n */
    const double *s;     /* s[i * n + j] */
    double lambda1;
    double *table; /* room for 2 (m + 1) (n + 1) numbers */
} lists;

static double fgtk1(const lists *l)
{
    const size_t width = l->n + 1, size = (l->m + 1) * width, most = l->m < l->n ? l->m : l->n;
    double *before = l->table, *now = before + size, sum = 0.0;
    before[0] = 1.0;
    for (size_t j = 1; j <= l->n; j++) before[j] = before[j - 1] * l->q[j - 1];
    for (size_t i = 1; i <= l->m; i++)
        for (size_t j = 0; j <= l->n; j++) before[i * width + j] = before[(i - 1) * width + j] * l->o[i - 1];
    for (size_t p = 1; p <= most; p++) {
        for (size_t j = 0; j <= l->n; j++) now[j] = 0.0;
        for (size_t i = 1; i <= l->m; i++) {
            now[i * width] = 0.0;
            for (size_t j = 1; j <= l->n; j++) {
                double value = l->o[i - 1] * now[(i - 1) * width + j], tail = 1.0;
                for (size_t k = j; k >= 1; k--) {
                    value += l->s[(i - 1) * l->n + k - 1] * before[(i - 1) * width + k - 1] * tail;
                    tail *= l->q[k - 1];
                }
                now[i * width + j] = value;
            }
        }
        sum += now[size - 1];
        double *t = before;
        before = now;
        now = t;
    }
    return sum;
}

/* P_p(i, j) at p[(i - 1) * n + j - 1], from D_p(i, j) at d[i * n + j], which is needed for i < m and j < n only.
 * Returns its part of the sum: those whose later children can all be skipped. */
static double step2(const lists *l, const double *d, double *p)
{
    double sum = 0.0, below = 1.0;
    for (size_t k = 0; k < l->m * l->n; k++) p[k] = l->s[k] * d[k];
    for (size_t i = l->m; i-- > 0 && below != 0.0; below *= l->o[i]) {
        double right = below;
        for (size_t j = l->n; j-- > 0 && right != 0.0; right *= l->q[j]) sum += p[i * l->n + j] * right;
    }
    return sum;
}

static double fgtk2(const lists *l)
{
    const size_t n = l->n, most = l->m < n ? l->m : n;
    double *d = l->table, *p = d + l->m * n;
    d[0] = 1.0;
    for (size_t j = 1; j < n; j++) d[j] = d[j - 1] * l->q[j - 1];
    for (size_t i = 1; i < l->m; i++)
        for (size_t j = 0; j < n; j++) d[i * n + j] = d[(i - 1) * n + j] * l->o[i - 1];
    double sum = step2(l, d, p);
    for (size_t number = 2; number <= most; number++) {
        for (size_t j = 0; j < n; j++) d[j] = 0.0;
        for (size_t i = 1; i < l->m; i++) {
            const double o = l->o[i - 1], *above = d + (i - 1) * n;
            double *here = d + i * n;
            here[0] = 0.0;
            for (size_t j = 1; j < n; j++) {
                const double q = l->q[j - 1];
                here[j] = p[(i - 1) * n + j - 1] + q * here[j - 1] + o * above[j] - o * q * above[j - 1];
            }
        }
        sum += step2(l, d, p);
    }
    return sum;
}

static double fgtk3(const lists *l)
{
    double *a = l->table, *d = a + l->n + 1, *e = d + l->n + 1, down = 1.0; /* down: o_1 .. o_{i-1} */
    e[0] = 1.0;
    for (size_t j = 0; j <= l->n; j++) a[j] = d[j] = 0.0;
    for (size_t j = 1; j <= l->n; j++) e[j] = e[j - 1] * l->q[j - 1];
    for (size_t i = 1; i <= l->m; i++) {
        const double o = l->o[i - 1], *s = l->s + (i - 1) * l->n;
        double corner = d[0];
        for (size_t j = 1; j <= l->n; j++) {
            a[j] = s[j - 1] * (corner + down * e[j - 1]) + o * a[j];
            corner = d[j];
            d[j] = a[j] + l->q[j - 1] * d[j - 1];
        }
        down *= o;
    }
    return d[l->n];
}

/* A variation: the children that a set of optional ones, given by the bits of `removed`, leaves. */
static size_t vary(const bool *optional, size_t children, unsigned removed, size_t *kept)
{
    size_t count = 0;
    unsigned bit = 1;
    for (size_t i = 0; i < children; i++) {
        const bool gone = optional[i] && (removed & bit) != 0;
        if (optional[i]) bit <<= 1;
        if (!gone) kept[count++] = i;
    }
    return count;
}

static unsigned variations(const bool *optional, size_t children)
{
    unsigned bits = 0;
    for (size_t i = 0; i < children; i++) bits += optional[i];
    return 1u << bits;
}

static double all_variations(const lists *l)
{
    size_t *x = (size_t *)(void *)l->table, *y = x + l->m;
    const unsigned of_a = variations(l->optional_a, l->m), of_b = variations(l->optional_b, l->n);
    double sum = 0.0;
    for (unsigned a = 0; a < of_a; a++) {
        const size_t kept = vary(l->optional_a, l->m, a, x);
        for (unsigned b = 0; kept > 0 && b < of_b; b++) {
            if (vary(l->optional_b, l->n, b, y) != kept) continue;
            double product = espi_power(l->lambda1, (unsigned)(l->m + l->n - 2 * kept));
            for (size_t k = 0; k < kept && product != 0.0; k++) product *= l->s[x[k] * l->n + y[k]];
            sum += product;
        }
    }
    return sum;
}

/* ------------------------------------------------------------------- pairs */

void espi_gtk_scratch_free(espi_gtk_scratch *s)
{
    espi_free(s->delta);
    espi_free(s->base);
    espi_free(s->from);
    espi_free(s->count);
    espi_free(s->value);
    espi_free(s->table);
    *s = (espi_gtk_scratch){0};
}

/* Finds for every node of `a` the nodes of `b` that it meets. */
static bool meet(const espi_gtk_tree *a, const espi_gtk_tree *b, espi_gtk_scratch *s)
{
    if (!espi_reserve(&s->base, &s->capacity[1], a->nodes, sizeof *s->base) ||
        !espi_reserve(&s->from, &s->capacity[2], a->nodes, sizeof *s->from) ||
        !espi_reserve(&s->count, &s->capacity[3], a->nodes, sizeof *s->count))
        return false;
    size_t from = 0, to = 0;
    for (size_t i = 0; i < a->nodes; i++) {
        const uint64_t kind = a->sorted[i] >> 32;
        const uint32_t node = (uint32_t)a->sorted[i];
        if (i == 0 || kind != a->sorted[i - 1] >> 32) {
            for (from = to; from < b->nodes && b->sorted[from] >> 32 < kind;) from++;
            for (to = from; to < b->nodes && b->sorted[to] >> 32 == kind;) to++;
        }
        s->from[node] = (uint32_t)from;
        s->count[node] = (uint32_t)(to - from);
    }
    return true;
}

typedef struct pairing {
    const espi_gtk *gtk;
    espi_gtk_algorithm algorithm;
    const espi_gtk_tree *a, *b;
    espi_gtk_scratch *scratch;
} pairing;

/* m of two children, given as in espi_gtk.child and, if they are inner, as nodes; *below is set if Delta can come on
 * top. */
static double common(const pairing *p, uint32_t f, uint32_t g, uint32_t x, uint32_t y, bool *below)
{
    *below = false;
    if (((f & g) & 1) == 0) return f == g ? 1.0 : 0.0;
    const bool word_x = p->gtk->group[p->a->group[x]].words != ESPI_NO_NODE,
               word_y = p->gtk->group[p->b->group[y]].words != ESPI_NO_NODE;
    *below = word_x == word_y;
    return espi_gtk_common(p->gtk, f >> 1, g >> 1, word_x + word_y, 0);
}

static double word_value(const espi_gtk *g, const espi_gtk_group *a, const espi_gtk_group *b)
{
    return a->words == b->words ? espi_gtk_words(g, a->label, b->label, 0) : 0.0;
}

/* Makes room for two lists of children of these lengths; numbers of `size` bytes, and what skipping each costs. */
static bool reserve_lists(espi_gtk_scratch *s, size_t m, size_t n, size_t size)
{
    return espi_reserve(&s->value, &s->capacity[4], m * n * size + (m + n) * sizeof(double), 1) &&
           espi_reserve(&s->table, &s->capacity[5], 2 * (m + 1) * (n + 1) * size, 1);
}

static void set_skips(const espi_gtk *g, const espi_gtk_group *a, const espi_gtk_group *b, double *skip, lists *l)
{
    for (size_t k = 0; k < l->m; k++) skip[k] = g->optional[a->children + k] ? g->lambda1 : 0.0;
    for (size_t k = 0; k < l->n; k++) skip[l->m + k] = g->optional[b->children + k] ? g->lambda1 : 0.0;
    l->o = skip;
    l->q = skip + l->m;
}

/* Whether all children that must stay can have a partner. */
static bool can_fit(const espi_gtk_group *a, const espi_gtk_group *b)
{
    return a->arity - a->optional <= b->arity && b->arity - b->optional <= a->arity;
}

/* Delta of two nodes that are no pre-terminals, from the columns of the first one's children. */
static bool node_value(const pairing *p, size_t i, size_t j, double *out)
{
    const espi_gtk *g = p->gtk;
    espi_gtk_scratch *s = p->scratch;
    const espi_gtk_group *a = &g->group[p->a->group[i]], *b = &g->group[p->b->group[j]];
    lists l = {.optional_a = g->optional + a->children,
               .optional_b = g->optional + b->children,
               .m = a->arity,
               .n = b->arity,
               .lambda1 = g->lambda1};
    *out = 0.0;
    if (!can_fit(a, b)) return true;
    if (!reserve_lists(s, l.m, l.n, sizeof(double))) return false;
    set_skips(g, a, b, (double *)s->value + l.m * l.n, &l);
    const uint32_t *x = p->a->child + p->a->first[i];
    double *value = s->value;
    const double *delta = s->delta;
    bool any = false, below;
    for (size_t k = 0; k < l.m; k++) {
        const uint32_t f = g->child[a->children + k], *y = p->b->child + p->b->first[j];
        for (size_t c = 0; c < l.n; c++) {
            const uint32_t h = g->child[b->children + c];
            double v = common(p, f, h, *x, *y, &below);
            if (v != 0.0 && below) v += delta[s->base[*x] + p->b->place[*y]];
            any = any || v != 0.0;
            value[k * l.n + c] = v;
            y += h & 1;
        }
        x += f & 1;
    }
    static double (*const align[])(const lists *) = {
        [ESPI_FGTK3] = fgtk3, [ESPI_FGTK2] = fgtk2, [ESPI_FGTK1] = fgtk1, [ESPI_GTK] = all_variations};
    l.s = value;
    l.table = s->table;
    if (any) *out = g->lambda * align[p->algorithm](&l);
    return true;
}

/* The column of node i is made on top of those of its children and then takes their place: a walk with children before
 * parents needs no more than the columns of the open nodes. */
static size_t settle(const pairing *p, size_t i, size_t top, size_t size)
{
    espi_gtk_scratch *s = p->scratch;
    const size_t first = p->a->first[i];
    s->base[i] = first < p->a->first[i + 1] ? s->base[p->a->child[first]] : top;
    char *delta = s->delta;
    if (s->base[i] < top) memmove(delta + s->base[i] * size, delta + top * size, s->count[i] * size);
    return s->base[i] + s->count[i];
}

bool espi_gtk_pair(const espi_gtk *g, espi_gtk_algorithm algorithm, const espi_gtk_tree *a, const espi_gtk_tree *b,
                   espi_gtk_scratch *s, double *value)
{
    const pairing p = {.gtk = g, .algorithm = algorithm, .a = a, .b = b, .scratch = s};
    *value = 0.0;
    if (!meet(a, b, s)) return false;
    double sum = 0.0;
    size_t top = 0;
    for (size_t i = 0; i < a->nodes; i++) {
        const espi_gtk_group *group = &g->group[a->group[i]];
        if (!espi_reserve(&s->delta, &s->capacity[0], (top + s->count[i]) * sizeof(double), 1)) return false;
        for (size_t k = 0; k < s->count[i]; k++) {
            const uint32_t j = (uint32_t)b->sorted[s->from[i] + k];
            double delta = 0.0;
            if (group->words != ESPI_NO_NODE) delta = word_value(g, group, &g->group[b->group[j]]);
            else if (!node_value(&p, i, j, &delta)) return false;
            ((double *)s->delta)[top + k] = delta;
            sum += delta;
        }
        top = settle(&p, i, top, sizeof(double));
    }
    *value = sum;
    return true;
}

/* ------------------------------------------------------------ wide numbers */

static espi_wide times(double factor, espi_wide x) { return espi_wide_mul(espi_wide_of(factor), x); }

/* FGTK-III; of `l` only the lengths and the costs are used. */
static espi_wide fgtk3_wide(const lists *l, const espi_wide *s, espi_wide *a)
{
    espi_wide *d = a + l->n + 1, *e = d + l->n + 1, down = espi_wide_of(1.0);
    e[0] = down;
    for (size_t j = 0; j <= l->n; j++) a[j] = d[j] = espi_wide_of(0.0);
    for (size_t j = 1; j <= l->n; j++) e[j] = times(l->q[j - 1], e[j - 1]);
    for (size_t i = 1; i <= l->m; i++, s += l->n) {
        const double o = l->o[i - 1];
        espi_wide corner = d[0];
        for (size_t j = 1; j <= l->n; j++) {
            const espi_wide before = espi_wide_add(corner, espi_wide_mul(down, e[j - 1]));
            a[j] = espi_wide_add(espi_wide_mul(s[j - 1], before), times(o, a[j]));
            corner = d[j];
            d[j] = espi_wide_add(a[j], times(l->q[j - 1], d[j - 1]));
        }
        down = times(o, down);
    }
    return d[l->n];
}

static bool node_value_wide(const pairing *p, size_t i, size_t j, espi_wide *out)
{
    const espi_gtk *g = p->gtk;
    espi_gtk_scratch *s = p->scratch;
    const espi_gtk_group *a = &g->group[p->a->group[i]], *b = &g->group[p->b->group[j]];
    lists l = {.m = a->arity, .n = b->arity};
    *out = espi_wide_of(0.0);
    if (!can_fit(a, b)) return true;
    if (!reserve_lists(s, l.m, l.n, sizeof(espi_wide))) return false;
    set_skips(g, a, b, (double *)(void *)((espi_wide *)s->value + l.m * l.n), &l);
    const uint32_t *x = p->a->child + p->a->first[i];
    espi_wide *value = s->value;
    const espi_wide *delta = s->delta;
    bool below;
    for (size_t k = 0; k < l.m; k++) {
        const uint32_t f = g->child[a->children + k], *y = p->b->child + p->b->first[j];
        for (size_t c = 0; c < l.n; c++) {
            const uint32_t h = g->child[b->children + c];
            espi_wide v = espi_wide_of(common(p, f, h, *x, *y, &below));
            if (v.m != 0.0 && below) v = espi_wide_add(v, delta[s->base[*x] + p->b->place[*y]]);
            value[k * l.n + c] = v;
            y += h & 1;
        }
        x += f & 1;
    }
    *out = times(g->lambda, fgtk3_wide(&l, value, s->table));
    return true;
}

bool espi_gtk_pair_wide(const espi_gtk *g, const espi_gtk_tree *a, const espi_gtk_tree *b, espi_gtk_scratch *s,
                        espi_wide *value)
{
    const pairing p = {.gtk = g, .a = a, .b = b, .scratch = s};
    *value = espi_wide_of(0.0);
    if (!meet(a, b, s)) return false;
    size_t top = 0;
    for (size_t i = 0; i < a->nodes; i++) {
        const espi_gtk_group *group = &g->group[a->group[i]];
        if (!espi_reserve(&s->delta, &s->capacity[0], (top + s->count[i]) * sizeof *value, 1)) return false;
        for (size_t k = 0; k < s->count[i]; k++) {
            const uint32_t j = (uint32_t)b->sorted[s->from[i] + k];
            espi_wide delta = {0};
            if (group->words != ESPI_NO_NODE) delta = espi_wide_of(word_value(g, group, &g->group[b->group[j]]));
            else if (!node_value_wide(&p, i, j, &delta)) return false;
            ((espi_wide *)s->delta)[top + k] = delta;
            *value = espi_wide_add(*value, delta);
        }
        top = settle(&p, i, top, sizeof *value);
    }
    return true;
}
