/* S of the partial tree kernel (ptk_kernel.c): a sum over chains of cells (k, l), each cell further right in both.
 * Their length is asked nowhere, so one table does: with d(k, l) = Delta of child k and child l,
 *
 *     P(k, l) = d(k, l) (1 + Q(k-1, l-1))                        chains that end in the cell
 *     R(k, l) = P(k, l) + lambda R(k, l-1)
 *     Q(k, l) = R(k, l) + lambda Q(k-1, l)  = sum over i <= k, j <= l of lambda^(k-i + l-j) P(i, j)
 *     S       = sum of all P(k, l)
 *
 * in O(|c1| |c2|), and nothing cancels. Where few cells have equal labels, Q is summed over the cells before (k, l)
 * instead.
 *
 * Every line is a sum of products, so that derivatives stand beside the values, in lanes (lanes.h): that of x y is
 * x' y + x y', where y = lambda has the derivative 1 in its own lane and 0 in the others. */
#include "kernel/partial_tree/ptk_children.h"

#include "base/alloc.h"
#include "base/hot.h"

static const espi_ptk_rules *rules_of(const espi_soft_rules *rules)
{
    return (const espi_ptk_rules *)(const void *)rules;
}

static inline double power(const espi_ptk_rules *r, size_t exponent)
{
    return exponent < ESPI_PTK_POWERS ? r->power[exponent] : espi_power(r->values.lambda, (unsigned)exponent);
}

/* Whether cell j may come right before cell i in a chain, and the gaps between them. */
static inline bool before(const espi_soft_meeting *m, size_t j, size_t i, size_t *gaps)
{
    if (m->k[j] >= m->k[i] || m->l[j] >= m->l[i]) return false;
    *gaps = (m->k[i] - m->k[j] - 1) + (m->l[i] - m->l[j] - 1);
    return true;
}

/* ------------------------------------------------------------- one vertex */

/* S by chains of few cells; p has room for the cells. */
static double chain_one(const espi_ptk_rules *r, const espi_soft_meeting *m, double *p)
{
    double s = 0.0;
    size_t gaps;
    for (size_t i = 0; i < m->cells; i++) {
        double sum = 1.0;
        for (size_t j = 0; j < i; j++)
            if (before(m, j, i, &gaps)) sum += power(r, gaps) * p[j];
        p[i] = m->value[i] * sum;
        s += p[i];
    }
    return s;
}

/* S by the table, row by row: ended[l] = Q(k, l). Adds to what earlier rows gave. */
static double table_one(const espi_ptk_rules *r, const espi_soft_meeting *m, double *ended, double s)
{
    const double lambda = r->values.lambda;
    const size_t wide = m->q.children;
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        double row = 0.0, corner = 0.0;
        for (size_t l = 0; l < wide; l++) {
            const double above = ended[l];
            row *= lambda;
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const double p = m->value[c++] * (1.0 + corner);
                s += p;
                row += p;
            }
            ended[l] = row + lambda * above;
            corner = above;
        }
    }
    return s;
}

/* --------------------------------------- many vertices and lanes, side by side */

/* S by chains; p is as long as m->value, s as long as one number. */
static inline void chain_lanes(const espi_ptk_rules *r, const espi_soft_meeting *m, size_t lanes, double *restrict p,
                               double *restrict s)
{
    const size_t n = m->n, size = n * lanes;
    size_t gaps;
    for (size_t x = 0; x < size; x++) s[x] = 0.0;
    for (size_t i = 0; i < m->cells; i++) {
        const double *restrict value = m->value + i * size;
        double *restrict sum = p + i * size;
        for (size_t x = 0; x < size; x++) sum[x] = x < n ? 1.0 : 0.0;
        for (size_t j = 0; j < i; j++) {
            if (!before(m, j, i, &gaps)) continue;
            const double *restrict earlier = p + j * size;
            const double factor = power(r, gaps);
            for (size_t x = 0; x < size; x++) sum[x] += factor * earlier[x];
            if (lanes == 1 || gaps == 0) continue;
            const double slope = (double)gaps * power(r, gaps - 1);
            for (size_t x = 0; x < n; x++) sum[ESPI_PTK_LAMBDA * n + x] += slope * earlier[x];
        }
        for (size_t lane = 1; lane < lanes; lane++)
            for (size_t x = 0; x < n; x++)
                sum[lane * n + x] = sum[lane * n + x] * value[x] + sum[x] * value[lane * n + x];
        for (size_t x = 0; x < n; x++) sum[x] *= value[x];
        for (size_t x = 0; x < size; x++) s[x] += sum[x];
    }
}

/* number *= lambda */
static inline void decay(double *restrict number, size_t n, size_t lanes, double lambda)
{
    for (size_t x = 0; x < n && lanes > 1; x++)
        number[ESPI_PTK_LAMBDA * n + x] = number[ESPI_PTK_LAMBDA * n + x] * lambda + number[x];
    for (size_t x = 0; x < n; x++) number[x] *= lambda;
    for (size_t x = ESPI_PTK_MU * n; x < lanes * n; x++) number[x] *= lambda;
}

/* S by the table. `ended` has room for a row of it and two numbers more. Adds to what earlier rows gave. */
static inline void table_lanes(const espi_ptk_rules *r, const espi_soft_meeting *m, size_t lanes,
                               double *restrict ended, double *restrict s)
{
    const double lambda = r->values.lambda;
    const size_t n = m->n, size = n * lanes, wide = m->q.children;
    double *restrict row = ended + wide * size, *restrict corner = row + size;
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        for (size_t x = 0; x < size; x++) row[x] = corner[x] = 0.0;
        for (size_t l = 0; l < wide; l++) {
            double *restrict end = ended + l * size;
            decay(row, n, lanes, lambda);
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const double *restrict value = m->value + c++ * size;
                for (size_t lane = 0; lane < lanes; lane++)
                    for (size_t x = 0; x < n; x++) {
                        double p = value[lane * n + x] * (1.0 + corner[x]);
                        if (lane > 0) p += value[x] * corner[lane * n + x];
                        s[lane * n + x] += p;
                        row[lane * n + x] += p;
                    }
            }
            for (size_t x = 0; x < size; x++) {
                corner[x] = end[x];
                end[x] = row[x] + lambda * corner[x];
            }
            for (size_t x = 0; x < n && lanes > 1; x++) end[ESPI_PTK_LAMBDA * n + x] += corner[x];
        }
    }
}

HOT static void chain_many(const espi_ptk_rules *r, const espi_soft_meeting *m, double *restrict p, double *restrict s)
{
    chain_lanes(r, m, 1, p, s);
}

HOT static void chain_slopes(const espi_ptk_rules *r, const espi_soft_meeting *m, double *restrict p,
                             double *restrict s)
{
    chain_lanes(r, m, ESPI_PTK_LANES, p, s);
}

HOT static void table_many(const espi_ptk_rules *r, const espi_soft_meeting *m, double *restrict ended,
                           double *restrict s)
{
    table_lanes(r, m, 1, ended, s);
}

HOT static void table_slopes(const espi_ptk_rules *r, const espi_soft_meeting *m, double *restrict ended,
                             double *restrict s)
{
    table_lanes(r, m, ESPI_PTK_LANES, ended, s);
}

/* ------------------------------------------------------------------- mu S */

/* out = mu s; they may be the same where there is one lane. */
static inline void times_mu(const espi_ptk_rules *r, const espi_soft_meeting *m, const double *s, double *out)
{
    const double mu = r->values.mu;
    for (size_t x = 0; x < m->n; x++) out[x] = mu * s[x];
    if (m->lanes == 1) return;
    for (size_t lane = 1; lane < m->lanes; lane++)
        for (size_t x = 0; x < m->n; x++) out[lane * m->stride + x] = mu * s[lane * m->n + x];
    for (size_t x = 0; x < m->n; x++) out[ESPI_PTK_MU * m->stride + x] += s[x];
}

/* Where S is summed up: right in its place, or, with several lanes, where they lie side by side. Behind that is room
 * for `size` numbers more. All calls for two shapes give the same places. NULL: memory is out. */
static double *make_room(const espi_soft_meeting *m, size_t size, double **more, double *out)
{
    const size_t values = m->n * m->lanes;
    if (!espi_reserve(m->scratch, m->capacity, (size + 1) * values, sizeof *out)) return NULL;
    *more = (double *)*m->scratch + values;
    return m->lanes == 1 ? out : *m->scratch;
}

/* By the table; of several calls, the first clears it. */
static double *by_table(const espi_ptk_rules *r, const espi_soft_meeting *m, double *out)
{
    const size_t wide = m->q.children, values = m->n * m->lanes;
    double *ended, *s = make_room(m, wide + 2, &ended, out);
    if (s == NULL) return NULL;
    for (size_t x = 0; x < values && m->from == 0; x++) s[x] = 0.0;
    for (size_t x = 0; x < wide * values && m->from == 0; x++) ended[x] = 0.0;
    if (m->lanes > 1) table_slopes(r, m, ended, s);
    else if (m->n > 1) table_many(r, m, ended, s);
    else *s = table_one(r, m, ended, *s);
    return s;
}

static double *by_chains(const espi_ptk_rules *r, const espi_soft_meeting *m, double *out)
{
    double *p, *s = make_room(m, m->cells, &p, out);
    if (s == NULL) return NULL;
    if (m->lanes > 1) chain_slopes(r, m, p, s);
    else if (m->n > 1) chain_many(r, m, p, s);
    else *s = chain_one(r, m, p);
    return s;
}

bool espi_ptk_children(const espi_soft_rules *rules, const espi_soft_meeting *m, double *out)
{
    const espi_ptk_rules *r = rules_of(rules);
    const size_t wide = m->q.children;
    const bool all = m->from == 0 && m->to == m->p.children;
    if (all && m->cells == 1) {
        times_mu(r, m, m->value, out);
        return true;
    }
    const bool few = all && m->cells / 2 <= wide && m->cells * m->cells / 2 <= m->p.children * wide;
    const double *s = (few ? by_chains : by_table)(r, m, out);
    if (s != NULL && m->to == m->p.children) times_mu(r, m, s, out);
    return s != NULL;
}

/* The table in wide numbers. */
bool espi_ptk_children_wide(const espi_soft_rules *rules, const espi_soft_meeting *m, espi_wide *out)
{
    const espi_wide lambda = espi_wide_of(rules_of(rules)->values.lambda), one = espi_wide_of(1.0);
    const size_t wide = m->q.children;
    if (!espi_reserve(m->scratch, m->capacity, wide, sizeof *out)) return false;
    espi_wide *ended = *m->scratch;
    for (size_t l = 0; l < wide && m->from == 0; l++) ended[l] = espi_wide_of(0.0);
    if (m->from == 0) *out = espi_wide_of(0.0);
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        espi_wide row = espi_wide_of(0.0), corner = espi_wide_of(0.0);
        for (size_t l = 0; l < wide; l++) {
            const espi_wide above = ended[l];
            row = espi_wide_mul(row, lambda);
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const espi_wide p = espi_wide_mul(m->wide[c++], espi_wide_add(one, corner));
                *out = espi_wide_add(*out, p);
                row = espi_wide_add(row, p);
            }
            ended[l] = espi_wide_add(row, espi_wide_mul(lambda, above));
            corner = above;
        }
    }
    if (m->to == m->p.children) *out = espi_wide_mul(espi_wide_of(rules_of(rules)->values.mu), *out);
    return true;
}
