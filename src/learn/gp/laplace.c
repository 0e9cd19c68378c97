/* Classes by Laplace's approximation (Rasmussen & Williams 2006, algorithms 3.1 and 5.1). Two classes have one latent
 * function f. Targets y are -1 and 1, and p(y_i | f_i) = Phi(y_i f_i). The mode f of the posterior maximises
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
 * At the mode a = g, which is what predicts: the latent mean is sum_i g_i K(x_i, x).
 *
 * Several classes have a latent function each, one class against the rest, which share K. All of the above is done for
 * one after the other; log q and M are summed up, so that there is one matrix and one pass for the derivatives. */
#include "base/dense.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "learn/gp/gp.h"
#include "learn/probit.h"

#include <math.h>
#include <string.h>

enum { MOST_STEPS = 100, MOST_HALVINGS = 20 };
static const double SMALL = 1e-8;     /* a step that moves f by less is the last: errors square from step to step */
static const double ROUNDING = 1e-12; /* of psi */

typedef struct mode { /* the vectors of one latent function */
    const double *target;
    double *f, *a, *g, *w, *root, *x, *y, *z;
    double psi;
    espi_factor b; /* of B */
} mode;

static mode mode_of(const espi_gp_problem *p, size_t output)
{
    const size_t n = p->count;
    double *v = p->vector;
    return (mode){.target = p->target + output * n,
                  .f = v,
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

/* g, W and the factor of B at f. */
static esp_status curve(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    const double *gram = p->matrix[0];
    double *b = p->matrix[1];
    for (size_t i = 0; i < n; i++) {
        const double z = m->target[i] * m->f[i], r = espi_probit_ratio(z);
        m->g[i] = m->target[i] * r;
        m->w[i] = fmax(r * (r + z), 0.0);
        m->root[i] = sqrt(m->w[i]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) b[i * n + j] = m->root[i] * gram[i * n + j] * m->root[j];
        b[i * n + i] += 1.0;
    }
    esp_status status = espi_progress(run, "finding the mode", -1.0, err);
    espi_factor_free(&m->b);
    if (status == ESP_OK) status = espi_factor_make(b, n, false, run, &m->b, err);
    if (status != ESP_OK || m->b.failed == 0) return status;
    return espi_fail(err, ESP_ERR_RANGE, "the kernel matrix is not positive semi-definite, as example %zu shows",
                     m->b.failed);
}

/* Goes from (a, f) towards the end of a whole step, (x, y), as far as psi rises. Returns how far f moves. */
static double advance(const espi_gp_problem *p, mode *m)
{
    const size_t n = p->count;
    const double least = m->psi - ROUNDING * (1.0 + fabs(m->psi));
    double part = 1.0, psi = 0.0, most = 0.0;
    for (size_t k = 0; k < MOST_HALVINGS; k++, part *= 0.5) {
        for (size_t i = 0; i < n; i++) m->z[i] = m->f[i] + part * (m->y[i] - m->f[i]);
        psi = log_likelihood(m->target, m->z, n);
        for (size_t i = 0; i < n; i++) psi -= 0.5 * (m->a[i] + part * (m->x[i] - m->a[i])) * m->z[i];
        if (psi >= least) break;
    }
    if (!(psi >= least)) return 0.0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(m->z[i] - m->f[i]));
    for (size_t i = 0; i < n; i++) m->a[i] += part * (m->x[i] - m->a[i]);
    memcpy(m->f, m->z, n * sizeof *m->f);
    m->psi = psi;
    return most;
}

/* The end (x, y) of a whole step of Newton's from f. */
static esp_status step(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    for (size_t i = 0; i < n; i++) m->x[i] = m->w[i] * m->f[i] + m->g[i];
    esp_status status = espi_dense_times(p->matrix[0], n, m->x, 1, m->y, run, err);
    for (size_t i = 0; i < n; i++) m->y[i] *= m->root[i];
    if (status == ESP_OK) status = espi_factor_solve(&m->b, m->y, 1, run, err);
    for (size_t i = 0; i < n; i++) m->x[i] -= m->root[i] * m->y[i];
    return status == ESP_OK ? espi_dense_times(p->matrix[0], n, m->x, 1, m->y, run, err) : status;
}

/* The step from the mode of other hyperparameters, `start`, which is no K a for any a at hand, so that it is taken as a
 * whole; if that does not lead above f = 0, that is where to begin. */
static esp_status start_from(const espi_gp_problem *p, mode *m, const double *start, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    bool other = false, rises = false;
    for (size_t i = 0; i < n; i++) m->f[i] = m->a[i] = 0.0;
    m->psi = log_likelihood(m->target, m->f, n);
    for (size_t i = 0; i < n; i++) other = other || start[i] != 0.0;
    if (!other) return ESP_OK;
    memcpy(m->f, start, n * sizeof *m->f);
    esp_status status = curve(p, m, run, err);
    if (status == ESP_OK) status = step(p, m, run, err);
    if (status != ESP_OK) return status;
    if (espi_all_finite(m->y, n)) {
        double psi = log_likelihood(m->target, m->y, n);
        for (size_t i = 0; i < n; i++) psi -= 0.5 * m->x[i] * m->y[i];
        rises = psi > m->psi;
        if (rises) m->psi = psi;
    }
    for (size_t i = 0; i < n; i++) m->a[i] = rises ? m->x[i] : 0.0;
    for (size_t i = 0; i < n; i++) m->f[i] = rises ? m->y[i] : 0.0;
    return ESP_OK;
}

/* `latent`: where the mode was at other hyperparameters, or zeros; it becomes the mode. */
static esp_status find_mode(const espi_gp_problem *p, mode *m, double *latent, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    esp_status status = start_from(p, m, latent, run, err);
    for (size_t k = 0; status == ESP_OK && k < MOST_STEPS; k++) {
        if ((status = curve(p, m, run, err)) != ESP_OK) return status;
        if ((status = step(p, m, run, err)) != ESP_OK) return status;
        if (!espi_all_finite(m->y, n))
            return espi_fail(err, ESP_ERR_RANGE, "kernel values are too large for Laplace's approximation");
        double largest = 1.0;
        for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(m->y[i]));
        if (advance(p, m) <= SMALL * largest) break;
    }
    if (status != ESP_OK) return status;
    memcpy(latent, m->f, n * sizeof *latent);
    return curve(p, m, run, err);
}

/* From the mode to the weights of the gradient, in the lower triangle of matrix[1]. As S K S = B - I,
 * S (K - K R K) S = I - B^-1: the inverse has the diagonal of the posterior too, and the quotient of t and W stays a
 * number where both vanish. */
static esp_status make_weights(const espi_gp_problem *p, mode *m, const esp_run *run, esp_error *err)
{
    const size_t n = p->count;
    const double *gram = p->matrix[0];
    double *r = p->matrix[1], *s = m->x, *u = m->y;
    esp_status status = espi_factor_invert(&m->b, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < n; i++) {
        const double z = m->target[i] * m->f[i], q = espi_probit_ratio(z);
        const double quotient = q + z > 0.0 ? (2.0 * q * q + 3.0 * z * q + z * z - 1.0) / (q + z) : 0.0;
        s[i] = 0.5 * (1.0 - r[i * n + i]) * m->target[i] * quotient;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) r[i * n + j] *= m->root[i] * m->root[j];
    status = espi_dense_times(gram, n, s, 1, m->z, run, err);
    if (status == ESP_OK) status = espi_dense_times(r, n, m->z, 1, u, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < n; i++) u[i] = s[i] - u[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            r[i * n + j] = 0.5 * (m->a[i] * m->a[j] - r[i * n + j] + u[i] * m->g[j] + m->g[i] * u[j]);
    return ESP_OK;
}

/* The weights of one class more: matrix[2] += matrix[1]. */
static void add_weights(const espi_gp_problem *p, bool first)
{
    const size_t n = p->count;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            p->matrix[2][i * n + j] = (first ? 0.0 : p->matrix[2][i * n + j]) + p->matrix[1][i * n + j];
}

/* One latent function: its part of the evidence, what predicts, and its part of the weights, unless an evidence below
 * `enough`, which others cannot raise any more, makes them useless. */
static esp_status approximate(const espi_gp_problem *p, size_t output, mode *m, double enough, const esp_run *run,
                              esp_error *err)
{
    espi_gp_modes *modes = p->modes;
    esp_status status = find_mode(p, m, modes->latent + output * p->count, run, err);
    if (status != ESP_OK) return status;
    modes->value += m->psi - espi_factor_half_log(&m->b);
    if (!isfinite(modes->value)) return espi_fail(err, ESP_ERR_RANGE, "the evidence is too small for a number");
    for (size_t i = 0; i < p->count; i++) {
        modes->coefficient[i * p->outputs + output] = m->g[i];
        modes->curvature[i * p->outputs + output] = m->w[i];
    }
    if (modes->value < enough) return ESP_OK;
    status = make_weights(p, m, run, err);
    if (status == ESP_OK && p->outputs > 1) add_weights(p, output == 0);
    return status;
}

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    const double enough = gradient != NULL ? point->enough : INFINITY;
    espi_bound *bound = NULL;
    (void)noise;
    p->modes->value = 0.0;
    esp_status status = espi_gram_square(kernel, p->data, run, p->matrix[0], &bound, err);
    for (size_t k = 0; status == ESP_OK && k < p->outputs; k++) {
        mode m = mode_of(p, k);
        status = approximate(p, k, &m, enough, run, err);
        espi_factor_free(&m.b);
    }
    if (status != ESP_OK) p->modes->value = NAN; /* they are those of no point */
    if (status == ESP_OK) {
        point->value = p->modes->value;
        point->mean = point->jitter = 0.0;
    }
    if (status == ESP_OK && p->modes->value >= enough) {
        *noise_gradient = 0.0;
        status = espi_bound_gradient(bound, p->matrix[p->outputs > 1 ? 2 : 1], p->matrix[0], run, gradient, err);
    }
    espi_bound_free(bound);
    return status;
}

const espi_gp_likelihood espi_gp_laplace = {
    .name = "bernoulli", .value = "log evidence", .noisy = false, .matrices = 2, .evaluate = evaluate};
const espi_gp_likelihood espi_gp_one_vs_rest = {
    .name = "bernoulli", .value = "log evidence", .noisy = false, .matrices = 3, .evaluate = evaluate};
