/* Two classes by Laplace's approximation (Rasmussen & Williams 2006, algorithms 3.1 and 5.1). Targets y are -1 and 1,
 * and p(y_i | f_i) = Phi(y_i f_i). The mode f of the posterior maximises
 *
 *     psi(f) = sum_i log p(y_i | f_i) - 1/2 f^T K^-1 f
 *
 * by Newton's steps. With g and -W the first and second derivatives of log p at f, and S = W^1/2:
 *
 *     B = I + S K S      b = W f + g      a = b - S B^-1 S K b      f = K a
 *     log q(y) = -1/2 a^T f + sum_i log p(y_i | f_i) - 1/2 log|B|
 *
 * Its derivative has three terms, and all are linear in dK. With R = S B^-1 S, with t the third derivatives of log p,
 * and s = 1/2 (diag K - diag K R K) t, which is how log q changes with the mode, and u = s - R K s:
 *
 *     d log q = sum_ij M_ij dK_ij,  M = 1/2 a a^T - 1/2 R + 1/2 (u g^T + g u^T)
 *
 * At the mode a = g, which is what predicts: the latent mean is sum_i g_i K(x_i, x). */
#include "base/alloc.h"
#include "base/dense.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <string.h>

enum { MOST_STEPS = 100, MOST_HALVINGS = 20, BLOCK = 1024 };
static const double SMALL = 1e-8;     /* a step that moves f by less is the last: errors square from step to step */
static const double ROUNDING = 1e-12; /* of psi */
static const double TAIL = -30.0;     /* below it, Phi is taken from its asymptotic series */
static const double LOG_ROOT_TWO_PI = 0.91893853320467274178, ROOT_HALF = 0.70710678118654752440;

/* -z Phi(z) / phi(z) for z far below 0. */
static double tail_series(double z)
{
    const double q = 1.0 / (z * z);
    return 1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q * (1.0 - 9.0 * q))));
}

double espi_log_probit(double z)
{
    if (z < TAIL) return -0.5 * z * z - LOG_ROOT_TWO_PI - log(-z) + log(tail_series(z));
    return z > 5.0 ? log1p(-0.5 * erfc(z * ROOT_HALF)) : log(0.5 * erfc(-z * ROOT_HALF));
}

double espi_probit_ratio(double z)
{
    if (z < TAIL) return -z / tail_series(z);
    return exp(-0.5 * z * z - LOG_ROOT_TWO_PI) / (0.5 * erfc(-z * ROOT_HALF));
}

typedef struct mode { /* the vectors of one evaluation */
    double *f, *a, *g, *w, *root, *x, *y, *z;
    double psi;
    espi_factor b; /* of B */
} mode;

static mode mode_of(const espi_gp_problem *p)
{
    const size_t n = p->count;
    double *v = p->vector;
    return (mode){.f = v,
                  .a = v + n,
                  .g = v + 2 * n,
                  .w = v + 3 * n,
                  .root = v + 4 * n,
                  .x = v + 5 * n,
                  .y = v + 6 * n,
                  .z = v + 7 * n};
}

static double log_likelihood(const double *target, const double *f, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += espi_log_probit(target[i] * f[i]);
    return sum;
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* g, W and the factor of B at f. */
static esp_status curve(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    const double *gram = p->matrix[0];
    double *b = p->matrix[1];
    for (size_t i = 0; i < n; i++) {
        const double z = p->target[i] * m->f[i], r = espi_probit_ratio(z);
        m->g[i] = p->target[i] * r;
        m->w[i] = fmax(r * (r + z), 0.0);
        m->root[i] = sqrt(m->w[i]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) b[i * n + j] = m->root[i] * gram[i * n + j] * m->root[j];
        b[i * n + i] += 1.0;
    }
    esp_status status = espi_progress(run, "finding the mode", -1.0, err);
    espi_factor_free(&m->b);
    if (status == ESP_OK) status = espi_factor_make(p->algebra, b, n, run, &m->b, err);
    if (status != ESP_OK || m->b.failed == 0) return status;
    return espi_fail(err, ESP_ERR_RANGE, "the kernel matrix is not positive semi-definite, as example %zu shows",
                     m->b.failed);
}

/* Goes from (a, f) towards the end of a whole step, (x, y), as far as psi rises. Returns how far f moves. */
static double advance(const espi_gp_problem *p, mode *m)
{
    const size_t n = p->count;
    const double least = m->psi - ROUNDING * (1.0 + fabs(m->psi));
    double step = 1.0, psi = 0.0, most = 0.0;
    for (size_t k = 0; k < MOST_HALVINGS; k++, step *= 0.5) {
        for (size_t i = 0; i < n; i++) m->z[i] = m->f[i] + step * (m->y[i] - m->f[i]);
        psi = log_likelihood(p->target, m->z, n);
        for (size_t i = 0; i < n; i++) psi -= 0.5 * (m->a[i] + step * (m->x[i] - m->a[i])) * m->z[i];
        if (psi >= least) break;
    }
    if (!(psi >= least)) return 0.0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(m->z[i] - m->f[i]));
    for (size_t i = 0; i < n; i++) m->a[i] += step * (m->x[i] - m->a[i]);
    memcpy(m->f, m->z, n * sizeof *m->f);
    m->psi = psi;
    return most;
}

static esp_status find_mode(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    esp_status status = ESP_OK;
    for (size_t i = 0; i < n; i++) m->f[i] = m->a[i] = 0.0;
    m->psi = log_likelihood(p->target, m->f, n);
    for (size_t k = 0; k < MOST_STEPS; k++) {
        if ((status = curve(p, m, run, err)) != ESP_OK) return status;
        for (size_t i = 0; i < n; i++) m->x[i] = m->w[i] * m->f[i] + m->g[i];
        status = espi_dense_times(p->matrix[0], n, m->x, 1, m->y, run, err);
        for (size_t i = 0; i < n; i++) m->y[i] *= m->root[i];
        if (status == ESP_OK) status = espi_factor_solve(&m->b, m->y, 1, run, err);
        for (size_t i = 0; i < n; i++) m->x[i] -= m->root[i] * m->y[i];
        if (status == ESP_OK) status = espi_dense_times(p->matrix[0], n, m->x, 1, m->y, run, err);
        if (status != ESP_OK) return status;
        if (!espi_all_finite(m->y, n))
            return espi_fail(err, ESP_ERR_RANGE, "kernel values are too large for Laplace's approximation");
        double largest = 1.0;
        for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(m->y[i]));
        if (advance(p, m) <= SMALL * largest) break;
    }
    return curve(p, m, run, err);
}

/* 1/2 (diag K - diag K R K), some columns of K at a time: c has room for BLOCK of them. */
static esp_status find_spread(const espi_gp_problem *p, const mode *m, double *c, double *spread, const esp_run *run,
                              esp_error *err)
{
    const size_t n = p->count;
    const double *gram = p->matrix[0];
    esp_status status = ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        for (size_t i = 0; i < count; i++) /* row i: S times a column of K */
            for (size_t j = 0; j < n; j++) c[i * n + j] = m->root[j] * gram[(first + i) * n + j];
        status = espi_progress(run, "solving", (double)first / (double)n, err);
        if (status == ESP_OK) status = espi_factor_half_solve(&m->b, false, c, count, run, err);
        for (size_t i = 0; status == ESP_OK && i < count; i++)
            spread[first + i] = 0.5 * (gram[(first + i) * (n + 1)] - dot(c + i * n, c + i * n, n));
    }
    return status;
}

/* From the mode to the weights of the gradient, in the lower triangle of matrix[1]. */
static esp_status make_weights(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    const double *gram = p->matrix[0];
    double *r = p->matrix[1], *s = m->x, *u = m->y;
    double *c = espi_alloc(n < BLOCK ? n : BLOCK, n * sizeof *c);
    esp_status status = c == NULL ? espi_no_memory(err) : find_spread(p, m, c, s, run, err);
    espi_free(c);
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        const double z = p->target[i] * m->f[i], q = espi_probit_ratio(z);
        s[i] *= p->target[i] * q * (2.0 * q * q + 3.0 * z * q + z * z - 1.0);
    }
    if (status == ESP_OK) status = espi_factor_invert(&m->b, run, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++)
        for (size_t j = 0; j <= i; j++) r[i * n + j] *= m->root[i] * m->root[j];
    if (status == ESP_OK) status = espi_dense_times(gram, n, s, 1, m->z, run, err);
    if (status == ESP_OK) status = espi_dense_times(r, n, m->z, 1, u, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < n; i++) u[i] = s[i] - u[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            r[i * n + j] = 0.5 * (m->a[i] * m->a[j] - r[i * n + j] + u[i] * m->g[j] + m->g[i] * u[j]);
    return ESP_OK;
}

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    const size_t n = p->count;
    mode m = mode_of(p);
    espi_bound *bound = NULL;
    (void)noise;
    esp_status status = espi_gram_square(kernel, p->data, run, p->matrix[0], &bound, err);
    if (status == ESP_OK) status = find_mode(p, &m, run, err);
    if (status == ESP_OK) {
        point->value = m.psi - espi_factor_half_log(&m.b);
        if (!isfinite(point->value)) status = espi_fail(err, ESP_ERR_RANGE, "the evidence is too small for a number");
        point->mean = point->jitter = 0.0;
        memcpy(point->coefficient, m.g, n * sizeof *m.g);
        memcpy(point->curvature, m.w, n * sizeof *m.w);
    }
    const bool goes_on = status == ESP_OK && gradient != NULL && point->value >= point->enough;
    if (goes_on) status = make_weights(p, &m, run, err);
    if (goes_on && status == ESP_OK) {
        *noise_gradient = 0.0;
        status = espi_bound_gradient(bound, p->matrix[1], p->matrix[0], run, gradient, err);
    }
    espi_factor_free(&m.b);
    espi_bound_free(bound);
    return status;
}

const espi_gp_likelihood espi_gp_laplace = {
    .name = "bernoulli", .value = "log evidence", .noisy = false, .matrices = 2, .evaluate = evaluate};
