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
#include "base/algebra.h"
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
static esp_status solve_left(const double *l, size_t m, bool transposed, double *x, size_t columns, const esp_run *run,
                             esp_error *err)
{
    const espi_dense_triangle t = {.left = true, .turn = transposed, .t = l, .t_stride = m};
    return espi_dense_solve(&t, m, columns, x, columns, run, err);
}

/* x = x L^-1, all of them m x m. */
static esp_status solve_right(const double *l, size_t m, double *x, const esp_run *run, esp_error *err)
{
    const espi_dense_triangle t = {.t = l, .t_stride = m};
    return espi_dense_solve(&t, m, m, x, m, run, err);
}

/* --------------------------------------------------------------- products */

/* A, and A A'. */
static esp_status halve(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots, n = s->examples;
    const espi_dense_factors square = {.turn_b = true,
                                       .rows = m,
                                       .columns = m,
                                       .inner = n,
                                       .scale = 1.0,
                                       .a = s->k_mn,
                                       .a_stride = n,
                                       .b = s->k_mn,
                                       .b_stride = n};
    const esp_status status = solve_left(s->k_mm, m, false, s->k_mn, n, run, err);
    return status == ESP_OK ? espi_dense_symmetric(&square, s->outer, m, run, err) : status;
}

/* w_mn = G A + c alpha'; G is in `inner`. */
static esp_status weigh(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots, n = s->examples;
    const espi_dense_factors f = {.add = true,
                                  .rows = m,
                                  .columns = n,
                                  .inner = m,
                                  .scale = 1.0,
                                  .a = s->inner,
                                  .a_stride = m,
                                  .b = s->k_mn,
                                  .b_stride = n};
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) s->w_mn[i * n + j] = s->coefficient[i] * s->alpha[j];
    return espi_dense_product(&f, s->w_mn, n, run, err);
}

/* ---------------------------------------------------------------- solving */

/* k_mm = L, with as little jitter as makes it possible. */
static esp_status factor_pivots(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    const double mean = trace(s->k_mm, m) / (double)m;
    mirror(s->k_mm, m);
    espi_factor factor;
    const esp_status status =
        espi_factor_make_jitter(s->k_mm, m, true, 0.0, first_jitter, run, s->coefficient, &s->jitter, &factor, err);
    if (status != ESP_OK) return status;
    s->part = s->jitter > 0.0 ? s->jitter / mean : 0.0;
    if (factor.failed == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the kernel of the %zu pivots is not positive definite: pivot %zu fails even with %g added to the "
                     "diagonal; take fewer of them",
                     m, factor.failed, s->jitter);
}

/* inner = the factor of B, share = B^-1 A A'. */
static esp_status factor_inner(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    mirror(s->outer, m);
    memcpy(s->inner, s->outer, m * m * sizeof *s->inner);
    memcpy(s->share, s->outer, m * m * sizeof *s->share);
    for (size_t i = 0; i < m; i++) s->inner[i * m + i] += s->noise;
    espi_factor factor;
    esp_status status = espi_factor_make(s->inner, m, true, run, &factor, err);
    if (status == ESP_OK && factor.failed > 0)
        return espi_fail(err, ESP_ERR_RANGE,
                         "a noise of %g is too small for the kernel, whose values are around %g; raise it", s->noise,
                         s->diagonal[0]);
    if (status != ESP_OK) return status;
    s->half_log = espi_factor_half_log(&factor);
    status = solve_left(s->inner, m, false, s->share, m, run, err);
    if (status == ESP_OK) status = solve_left(s->inner, m, true, s->share, m, run, err);
    symmetrise(s->share, m);
    return status;
}

/* b = B^-1 A y, and y becomes y - A'b. */
static esp_status reduce(const espi_low_rank *s, double *y, double *b, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots, n = s->examples;
    espi_dense_factors f = {
        .rows = m, .columns = 1, .inner = n, .scale = 1.0, .a = s->k_mn, .a_stride = n, .b = y, .b_stride = 1};
    esp_status status = espi_dense_product(&f, b, 1, run, err);
    if (status == ESP_OK) status = solve_left(s->inner, m, false, b, 1, run, err);
    if (status == ESP_OK) status = solve_left(s->inner, m, true, b, 1, run, err);
    f.turn_a = f.add = true;
    f.rows = n;
    f.inner = m;
    f.scale = -1.0;
    f.b = b;
    return status == ESP_OK ? espi_dense_product(&f, y, 1, run, err) : status;
}

/* The mean is 1'(Q + s2 I)^-1 y over 1'(Q + s2 I)^-1 1; the rest of y gives alpha and c. */
static esp_status find_alpha(espi_low_rank *s, const double *target, bool constant, const esp_run *run, esp_error *err)
{
    const size_t n = s->examples;
    double above = 0.0, below = 0.0;
    esp_status status = ESP_OK;
    if (constant) {
        for (size_t j = 0; j < n; j++) s->alpha[j] = 1.0;
        status = reduce(s, s->alpha, s->coefficient, run, err);
        for (size_t j = 0; j < n; j++) above += s->alpha[j] * target[j];
        for (size_t j = 0; j < n; j++) below += s->alpha[j];
    }
    s->mean = below > 0.0 ? above / below : 0.0;
    for (size_t j = 0; j < n; j++) s->alpha[j] = target[j] - s->mean;
    if (status == ESP_OK) status = reduce(s, s->alpha, s->coefficient, run, err);
    for (size_t j = 0; j < n; j++) s->alpha[j] /= s->noise;
    return status == ESP_OK ? solve_left(s->k_mm, s->pivots, true, s->coefficient, 1, run, err) : status;
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
    const double log_determinant = (n - m) * log(noise) + 2.0 * s->half_log;
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
    if (status == ESP_OK) status = halve(s, run, err);
    if (status == ESP_OK) status = factor_inner(s, run, err);
    if (status == ESP_OK) status = find_alpha(s, target, constant, run, err);
    if (status != ESP_OK) return status;
    find_value(s, target);
    if (isfinite(s->value) && isfinite(s->noise_gradient)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE, "the likelihood with a noise of %g is too large for a number", noise);
}

esp_status espi_low_rank_weights(espi_low_rank *s, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    s->w_diagonal = -0.5 / s->noise;
    for (size_t i = 0; i < m * m; i++) s->inner[i] = s->share[i] / s->noise;
    const espi_dense_factors f = {
        .rows = m, .columns = m, .inner = m, .scale = 1.0, .a = s->inner, .a_stride = m, .b = s->outer, .b_stride = m};
    esp_status status = solve_left(s->k_mm, m, true, s->inner, m, run, err);
    if (status == ESP_OK) status = espi_dense_product(&f, s->w_mm, m, run, err);
    if (status == ESP_OK) status = solve_right(s->k_mm, m, s->w_mm, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            s->w_mm[i * m + j] = -0.5 * (s->w_mm[i * m + j] + s->coefficient[i] * s->coefficient[j]);
    symmetrise(s->w_mm, m);
    const double moved = s->part * trace(s->w_mm, m) / (double)m;
    for (size_t i = 0; i < m; i++) s->w_mm[i * m + i] += moved;
    return weigh(s, run, err);
}

esp_status espi_low_rank_posterior(const espi_low_rank *s, double *p, const esp_run *run, esp_error *err)
{
    const size_t m = s->pivots;
    memcpy(p, s->share, m * m * sizeof *p);
    esp_status status = solve_left(s->k_mm, m, true, p, m, run, err);
    if (status == ESP_OK) status = solve_right(s->k_mm, m, p, run, err);
    symmetrise(p, m);
    return status;
}
