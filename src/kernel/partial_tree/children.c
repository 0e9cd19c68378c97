/* S of two nodes (partial_tree.h): a sum over chains of cells (k, l), each cell further right in both.
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
#include "base/alloc.h"
#include "base/hot.h"
#include "kernel/partial_tree/partial_tree.h"

bool espi_ptk_cells_reserve(espi_ptk_cells *cells, size_t count, size_t values)
{
    return espi_reserve(&cells->k, &cells->k_capacity, count, sizeof *cells->k) &&
           espi_reserve(&cells->l, &cells->l_capacity, count, sizeof *cells->l) &&
           espi_reserve(&cells->value, &cells->value_capacity, values, sizeof *cells->value);
}

void espi_ptk_cells_free(espi_ptk_cells *cells)
{
    espi_free(cells->k);
    espi_free(cells->l);
    espi_free(cells->value);
    espi_free(cells->scratch);
    *cells = (espi_ptk_cells){0};
}

/* Whether cell j may come right before cell i in a chain, and the gaps between them. */
static inline bool before(const espi_ptk_cells *cells, size_t j, size_t i, size_t *gaps)
{
    if (cells->k[j] >= cells->k[i] || cells->l[j] >= cells->l[i]) return false;
    *gaps = (cells->k[i] - cells->k[j] - 1) + (cells->l[i] - cells->l[j] - 1);
    return true;
}

/* ------------------------------------------------------------- one vertex */

/* S by chains of few cells; p has room for the cells. */
static double chain_one(const espi_ptk_values *v, const espi_ptk_cells *cells, double *p)
{
    double s = 0.0;
    size_t gaps;
    for (size_t i = 0; i < cells->count; i++) {
        double sum = 1.0;
        for (size_t j = 0; j < i; j++)
            if (before(cells, j, i, &gaps)) sum += espi_ptk_power(v, gaps) * p[j];
        p[i] = cells->value[i] * sum;
        s += p[i];
    }
    return s;
}

/* S by the table, row by row: ended[l] = Q(k, l). Adds to what earlier rows gave. */
static double table_one(const espi_ptk_values *v, const espi_ptk_cells *cells, double *ended, double s)
{
    const double lambda = v->lambda;
    const size_t width = cells->q;
    for (size_t k = cells->from, c = 0; k < cells->to; k++) {
        double row = 0.0, corner = 0.0;
        for (size_t l = 0; l < width; l++) {
            const double above = ended[l];
            row *= lambda;
            if (c < cells->count && cells->k[c] == k && cells->l[c] == l) {
                const double p = cells->value[c++] * (1.0 + corner);
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

/* S by chains; p is as long as cells->value, s as long as one number. `n` and `lanes` are those of the cells, told by
 * the caller, who knows that they are few. */
static inline void chain_lanes(const espi_ptk_values *v, const espi_ptk_cells *cells, size_t n, size_t lanes,
                               double *restrict p, double *restrict s)
{
    const size_t size = n * lanes;
    size_t gaps;
    for (size_t x = 0; x < size; x++) s[x] = 0.0;
    for (size_t i = 0; i < cells->count; i++) {
        const double *restrict value = cells->value + i * size;
        double *restrict sum = p + i * size;
        for (size_t x = 0; x < size; x++) sum[x] = x < n ? 1.0 : 0.0;
        for (size_t j = 0; j < i; j++) {
            if (!before(cells, j, i, &gaps)) continue;
            const double *restrict earlier = p + j * size;
            const double factor = espi_ptk_power(v, gaps);
            for (size_t x = 0; x < size; x++) sum[x] += factor * earlier[x];
            if (lanes == 1 || gaps == 0) continue;
            const double slope = (double)gaps * espi_ptk_power(v, gaps - 1);
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

/* S by the table, likewise. `ended` has room for a row of it and two numbers more. Adds to what earlier rows gave. */
static inline void table_lanes(const espi_ptk_values *v, const espi_ptk_cells *cells, size_t n, size_t lanes,
                               double *restrict ended, double *restrict s)
{
    const double lambda = v->lambda;
    const size_t size = n * lanes, width = cells->q;
    double *restrict row = ended + width * size, *restrict corner = row + size;
    for (size_t k = cells->from, c = 0; k < cells->to; k++) {
        for (size_t x = 0; x < size; x++) row[x] = corner[x] = 0.0;
        for (size_t l = 0; l < width; l++) {
            double *restrict end = ended + l * size;
            decay(row, n, lanes, lambda);
            if (c < cells->count && cells->k[c] == k && cells->l[c] == l) {
                const double *restrict value = cells->value + c++ * size;
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

HOT static void chain_many(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict p,
                           double *restrict s)
{
    chain_lanes(v, cells, cells->n, 1, p, s);
}

HOT static void chain_slopes(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict p,
                             double *restrict s)
{
    chain_lanes(v, cells, cells->n, ESPI_PTK_LANES, p, s);
}

HOT static void chain_slopes_of_one(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict p,
                                    double *restrict s)
{
    chain_lanes(v, cells, 1, ESPI_PTK_LANES, p, s);
}

HOT static void table_many(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict ended,
                           double *restrict s)
{
    table_lanes(v, cells, cells->n, 1, ended, s);
}

HOT static void table_slopes(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict ended,
                             double *restrict s)
{
    table_lanes(v, cells, cells->n, ESPI_PTK_LANES, ended, s);
}

HOT static void table_slopes_of_one(const espi_ptk_values *v, const espi_ptk_cells *cells, double *restrict ended,
                                    double *restrict s)
{
    table_lanes(v, cells, 1, ESPI_PTK_LANES, ended, s);
}

/* ------------------------------------------------------------------- mu S */

/* out = mu s; they may be the same where there is one lane. */
static inline void times_mu(const espi_ptk_values *v, const espi_ptk_cells *cells, const double *s, double *out)
{
    const double mu = v->mu;
    for (size_t x = 0; x < cells->n; x++) out[x] = mu * s[x];
    if (cells->lanes == 1) return;
    for (size_t lane = 1; lane < cells->lanes; lane++)
        for (size_t x = 0; x < cells->n; x++) out[lane * cells->stride + x] = mu * s[lane * cells->n + x];
    for (size_t x = 0; x < cells->n; x++) out[ESPI_PTK_MU * cells->stride + x] += s[x];
}

/* Where S is summed up: right in its place, or, with several lanes, where they lie side by side. Behind that is room
 * for `size` numbers more. All calls for two nodes give the same places. NULL: out of memory. */
static double *make_room(espi_ptk_cells *cells, size_t size, double **more, double *out)
{
    const size_t values = cells->n * cells->lanes;
    if (!espi_reserve(&cells->scratch, &cells->scratch_capacity, (size + 1) * values, sizeof *out)) return NULL;
    *more = cells->scratch + values;
    return cells->lanes == 1 ? out : cells->scratch;
}

/* By the table; of several calls, the first clears it. */
static double *by_table(const espi_ptk_values *v, espi_ptk_cells *cells, double *out)
{
    const size_t values = cells->n * cells->lanes;
    double *ended, *s = make_room(cells, cells->q + 2, &ended, out);
    if (s == NULL) return NULL;
    for (size_t x = 0; x < values && cells->from == 0; x++) s[x] = 0.0;
    for (size_t x = 0; x < cells->q * values && cells->from == 0; x++) ended[x] = 0.0;
    if (cells->lanes > 1) (cells->n > 1 ? table_slopes : table_slopes_of_one)(v, cells, ended, s);
    else if (cells->n > 1) table_many(v, cells, ended, s);
    else *s = table_one(v, cells, ended, *s);
    return s;
}

static double *by_chains(const espi_ptk_values *v, espi_ptk_cells *cells, double *out)
{
    double *p, *s = make_room(cells, cells->count, &p, out);
    if (s == NULL) return NULL;
    if (cells->lanes > 1) (cells->n > 1 ? chain_slopes : chain_slopes_of_one)(v, cells, p, s);
    else if (cells->n > 1) chain_many(v, cells, p, s);
    else *s = chain_one(v, cells, p);
    return s;
}

bool espi_ptk_children(const espi_ptk_values *v, espi_ptk_cells *cells, double *out)
{
    const bool all = cells->from == 0 && cells->to == cells->p;
    if (all && cells->count == 1) {
        times_mu(v, cells, cells->value, out);
        return true;
    }
    const bool few = all && espi_ptk_few(cells->count, cells->p, cells->q);
    const double *s = few ? by_chains(v, cells, out) : by_table(v, cells, out);
    if (s != NULL && cells->to == cells->p) times_mu(v, cells, s, out);
    return s != NULL;
}
