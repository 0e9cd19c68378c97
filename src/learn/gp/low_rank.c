/* The bound of low_rank.h in O(n M^2). With A = L^-1 K_mn, so that Q = A'A, and B = s2 I + A A':
 *
 *     log |Q + s2 I|  = (n - M) log s2 + log |B|
 *     (Q + s2 I)^-1   = (I - A' B^-1 A) / s2
 *     b = B^-1 A y,   alpha = (Q + s2 I)^-1 y = (y - A'b) / s2,   A alpha = b
 *     2 F             = -n log 2 pi - log |Q + s2 I| - y'alpha - (tr K - tr A A') / s2
 *
 * dF = 1/2 tr(T dQ) - tr dK / (2 s2) with T = alpha alpha' + A' B^-1 A / s2, and dQ follows from E = K_mm^-1 K_mn =
 * L^-T A: dQ = dK_nm E + E' dK_mn - E' dK_mm E. As A A' and B commute, with H = B^-1 A A' and c = L^-T b this comes to
 *
 *     W_mn = E T          = c alpha' + G A,                   G = L^-T H / s2
 *     W_mm = -1/2 E T E'  = -1/2 (c c' + G A A' L^-1)
 *     P    = K_mm^-1 - L^-T s2 B^-1 L^-1 = s2 G L^-1
 *     dF/ds2 = 1/2 (alpha'alpha - (n - tr H) / s2) + (tr K - tr A A') / (2 s2^2)
 *
 * Jitter is e tr K_mm / M, and so its derivative belongs to that of K_mm. */
#include "learn/gp/low_rank.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "base/dense.h"
#include "kernel/expression/columns.h"

#include <math.h>
#include <string.h>

static const double first_jitter = 1e-10; /* of the mean of the diagonal */

/* ----------------------------------------------------------------- memory */

esp_status espi_low_rank_room(size_t pivots, size_t examples, const esp_run *run, esp_error *err)
{
    const double m = (double)pivots, n = (double)examples, bytes = (2.0 * n * m + 5.0 * m * m) * sizeof(double);
    char need[32], limit[32];
    if (run == NULL || run->memory == 0 || bytes <= (double)run->memory) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY, "a Gaussian process of %zu pivots for %zu examples takes %s; the limit is %s",
                     pivots, examples, espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
}

esp_status espi_low_rank_new(size_t pivots, size_t examples, const esp_run *run, espi_low_rank *s, esp_error *err)
{
    *s = (espi_low_rank){.pivots = pivots, .examples = examples};
    const esp_status status = espi_low_rank_room(pivots, examples, run, err);
    if (status != ESP_OK) return status;
    double **const square[] = {&s->k_mm, &s->w_mm, &s->outer, &s->inner, &s->share};
    double **const wide[] = {&s->k_mn, &s->w_mn};
    bool ok = true;
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        ok = ok && (*square[i] = espi_alloc(pivots, pivots * sizeof(double))) != NULL;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        ok = ok && (*wide[i] = espi_alloc(pivots, examples * sizeof(double))) != NULL;
    ok = ok && (s->diagonal = espi_alloc(examples, sizeof(double))) != NULL;
    ok = ok && (s->alpha = espi_alloc(examples, sizeof(double))) != NULL;
    ok = ok && (s->coefficient = espi_alloc(pivots, sizeof(double))) != NULL;
    if (!ok) espi_low_rank_free(s);
    return ok ? ESP_OK : espi_no_memory(err);
}

void espi_low_rank_free(espi_low_rank *s)
{
    double *const all[] = {s->k_mm, s->w_mm, s->outer,    s->inner, s->share,
                           s->k_mn, s->w_mn, s->diagonal, s->alpha, s->coefficient};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) espi_free(all[i]);
    *s = (espi_low_rank){0};
}

/* --------------------------------------------------------- small matrices */

static double trace(const double *a, size_t m)
{
    double sum = 0.0;
    for (size_t i = 0; i < m; i++) sum += a[i * m + i];
    return sum;
}

/* Both triangles are to be equal, which rounding spoils. */
static void symmetrise(double *a, size_t m)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) a[i * m + j] = a[j * m + i] = 0.5 * (a[i * m + j] + a[j * m + i]);
}

static void mirror(double *a, size_t m)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) a[j * m + i] = a[i * m + j];
}

/* x = L^-1 x or L^-T x, x of m x columns. */
static void solve_left(const double *l, size_t m, bool transposed, double *x, size_t columns)
{
    espi_dense_triangle(true, false, transposed, (int)m, (int)columns, l, (int)m, x, (int)columns);
}

/* x = x L^-1, all of them m x m. */
static void solve_right(const double *l, size_t m, double *x)
{
    espi_dense_triangle(false, false, false, (int)m, (int)m, l, (int)m, x, (int)m);
}

/* --------------------------------------------------------------- products */

/* Columns by columns, so that whoever waits can stop it. */
static esp_status by_columns(espi_low_rank *s, const char *stage,
                             void (*work)(espi_low_rank *s, size_t first, int width), const esp_run *run,
                             esp_error *err)
{
    enum { COLUMNS = 1024 };
    esp_status status = ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < s->examples; first += COLUMNS) {
        const size_t left = s->examples - first;
        work(s, first, (int)(left < COLUMNS ? left : COLUMNS));
        status = espi_progress(run, stage, (double)first / (double)s->examples, err);
    }
    return status;
}

/* A, and its part of A A'. */
static void halve(espi_low_rank *s, size_t first, int width)
{
    const int m = (int)s->pivots, n = (int)s->examples;
    espi_dense_triangle(true, false, false, m, width, s->k_mm, m, s->k_mn + first, n);
    espi_dense_outer(m, width, s->k_mn + first, n, first > 0 ? 1.0 : 0.0, s->outer, m);
}

/* w_mn = G A + c alpha'; G is in `inner`. */
static void weigh(espi_low_rank *s, size_t first, int width)
{
    const int m = (int)s->pivots, n = (int)s->examples;
    for (size_t i = 0; i < s->pivots; i++)
        for (size_t j = first; j < first + (size_t)width; j++)
            s->w_mn[i * s->examples + j] = s->coefficient[i] * s->alpha[j];
    espi_dense_product(false, false, m, width, m, 1.0, s->inner, m, s->k_mn + first, n, 1.0, s->w_mn + first, n);
}

/* ---------------------------------------------------------------- solving */

/* k_mm = L, with as little jitter as makes it possible. */
static esp_status factor_pivots(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    const double mean = trace(s->k_mm, m) / (double)m;
    mirror(s->k_mm, m);
    size_t failed;
    const esp_status status =
        espi_dense_factor_jitter(s->k_mm, m, 0.0, first_jitter, run, s->coefficient, &s->jitter, &failed, err);
    if (status != ESP_OK) return status;
    s->part = s->jitter > 0.0 ? s->jitter / mean : 0.0;
    if (failed == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the kernel of the %zu pivots is not positive definite: pivot %zu fails even with %g added to the "
                     "diagonal; take fewer of them",
                     m, failed, s->jitter);
}

/* inner = the factor of B, share = B^-1 A A'. */
static esp_status factor_inner(espi_low_rank *s, esp_error *err)
{
    const size_t m = s->pivots;
    mirror(s->outer, m);
    memcpy(s->inner, s->outer, m * m * sizeof *s->inner);
    memcpy(s->share, s->outer, m * m * sizeof *s->share);
    for (size_t i = 0; i < m; i++) s->inner[i * m + i] += s->noise;
    if (espi_dense_factor(s->inner, m) != 0)
        return espi_fail(err, ESP_ERR_RANGE,
                         "a noise of %g is too small for the kernel, whose values are around %g; raise it", s->noise,
                         s->diagonal[0]);
    solve_left(s->inner, m, false, s->share, m);
    solve_left(s->inner, m, true, s->share, m);
    symmetrise(s->share, m);
    return ESP_OK;
}

/* b = B^-1 A y, and y becomes y - A'b. */
static void reduce(const espi_low_rank *s, double *y, double *b)
{
    const int m = (int)s->pivots, n = (int)s->examples;
    espi_dense_product(false, false, m, 1, n, 1.0, s->k_mn, n, y, 1, 0.0, b, 1);
    solve_left(s->inner, s->pivots, false, b, 1);
    solve_left(s->inner, s->pivots, true, b, 1);
    espi_dense_product(true, false, n, 1, m, -1.0, s->k_mn, n, b, 1, 1.0, y, 1);
}

/* The mean is 1'(Q + s2 I)^-1 y over 1'(Q + s2 I)^-1 1; the rest of y gives alpha and c. */
static void find_alpha(espi_low_rank *s, const double *target, bool constant)
{
    const size_t n = s->examples;
    double above = 0.0, below = 0.0;
    if (constant) {
        for (size_t j = 0; j < n; j++) s->alpha[j] = 1.0;
        reduce(s, s->alpha, s->coefficient);
        for (size_t j = 0; j < n; j++) above += s->alpha[j] * target[j];
        for (size_t j = 0; j < n; j++) below += s->alpha[j];
    }
    s->mean = below > 0.0 ? above / below : 0.0;
    for (size_t j = 0; j < n; j++) s->alpha[j] = target[j] - s->mean;
    reduce(s, s->alpha, s->coefficient);
    for (size_t j = 0; j < n; j++) s->alpha[j] /= s->noise;
    solve_left(s->k_mm, s->pivots, true, s->coefficient, 1);
}

static void find_value(espi_low_rank *s, const double *target)
{
    const double n = (double)s->examples, m = (double)s->pivots, noise = s->noise, log_two_pi = 1.8378770664093453;
    double product = 0.0, square = 0.0, left = -trace(s->outer, s->pivots);
    for (size_t j = 0; j < s->examples; j++) {
        product += (target[j] - s->mean) * s->alpha[j];
        square += s->alpha[j] * s->alpha[j];
        left += s->diagonal[j];
    }
    const double log_determinant = (n - m) * log(noise) + 2.0 * espi_dense_half_log(s->inner, s->pivots);
    s->value = -0.5 * (n * log_two_pi + log_determinant + product + left / noise);
    s->noise_gradient = 0.5 * (square - (n - trace(s->share, s->pivots)) / noise) + 0.5 * left / noise / noise;
}

esp_status espi_low_rank_solve(espi_low_rank *s, const double *target, double noise, bool constant, const esp_run *run,
                               esp_error *err)
{
    s->noise = noise;
    if (!(noise > 0.0))
        return espi_fail(err, ESP_ERR_PARAM, "a Gaussian process with pivots needs noise; it is %g", noise);
    esp_status status = factor_pivots(s, run, err);
    if (status == ESP_OK) status = by_columns(s, "solving", halve, run, err);
    if (status == ESP_OK) status = factor_inner(s, err);
    if (status != ESP_OK) return status;
    find_alpha(s, target, constant);
    find_value(s, target);
    if (isfinite(s->value) && isfinite(s->noise_gradient)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE, "the likelihood with a noise of %g is too large for a number", noise);
}

esp_status espi_low_rank_weights(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    s->w_diagonal = -0.5 / s->noise;
    for (size_t i = 0; i < m * m; i++) s->inner[i] = s->share[i] / s->noise;
    solve_left(s->k_mm, m, true, s->inner, m);
    espi_dense_product(false, false, (int)m, (int)m, (int)m, 1.0, s->inner, (int)m, s->outer, (int)m, 0.0, s->w_mm,
                       (int)m);
    solve_right(s->k_mm, m, s->w_mm);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            s->w_mm[i * m + j] = -0.5 * (s->w_mm[i * m + j] + s->coefficient[i] * s->coefficient[j]);
    symmetrise(s->w_mm, m);
    const double moved = s->part * trace(s->w_mm, m) / (double)m;
    for (size_t i = 0; i < m; i++) s->w_mm[i * m + i] += moved;
    return by_columns(s, "weighing", weigh, run, err);
}

void espi_low_rank_posterior(const espi_low_rank *s, double *p)
{
    const size_t m = s->pivots;
    memcpy(p, s->share, m * m * sizeof *p);
    solve_left(s->k_mm, m, true, p, m);
    solve_right(s->k_mm, m, p);
    symmetrise(p, m);
}
