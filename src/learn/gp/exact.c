/* Regression with normal noise, exactly (Rasmussen & Williams 2006, algorithm 2.1 and equation 5.9). With G = K + s I,
 * s being the noise variance, and targets y:
 *
 *     a = G^-1 (y - m)                                   what predicts: f(x) = m + sum_i a_i K(x_i, x)
 *     log p(y) = -1/2 (y - m)^T a - 1/2 log|G| - n/2 log 2 pi
 *     d log p = sum_ij W_ij dG_ij,  W = 1/2 (a a^T - G^-1)
 *
 * A constant mean is the best one for the kernel at hand, m = 1^T G^-1 y / 1^T G^-1 1 (generalised least squares);
 * being a maximum, it adds nothing to the derivatives. There is one matrix: K stays above its diagonal, where the
 * gradient asks for it; the lower triangle is one after the other G, its factor, G^-1 and W. */
#include "base/algebra.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "learn/gp/gp.h"

#include <math.h>

static const double TWO_PI = 6.283185307179586477;

static esp_status best_mean(const espi_gp_problem *p, const espi_factor *factor, const esp_run *run, double *mean,
                            esp_error *err)
{
    const size_t n = p->count;
    double of_targets = 0.0, of_ones = 0.0, *x = p->vector;
    *mean = 0.0;
    if (!p->constant_mean) return ESP_OK;
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    const esp_status status = espi_factor_solve(factor, x, 1, run, err);
    for (size_t i = 0; i < n; i++) of_targets += x[i] * p->target[i];
    for (size_t i = 0; i < n; i++) of_ones += x[i];
    if (of_ones > 0.0) *mean = of_targets / of_ones;
    return status;
}

/* The likelihood, and what predicts. */
static esp_status find_value(const espi_gp_problem *p, const espi_factor *factor, const esp_run *run,
                             espi_gp_point *point, esp_error *err)
{
    const size_t n = p->count;
    double *a = point->coefficient, fit = 0.0;
    esp_status status = best_mean(p, factor, run, &point->mean, err);
    for (size_t i = 0; i < n; i++) a[i] = p->target[i] - point->mean;
    if (status == ESP_OK) status = espi_factor_solve(factor, a, 1, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < n; i++) fit += (p->target[i] - point->mean) * a[i];
    point->value = -0.5 * fit - espi_factor_half_log(factor) - 0.5 * (double)n * log(TWO_PI);
    if (isfinite(point->value) && espi_all_finite(a, n)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE, "the likelihood is too small for a number; raise noise");
}

typedef struct weighing {
    double *matrix; /* the inverse */
    const double *a;
    size_t n;
} weighing;

enum { ROWS = 64 }; /* of a task */

static esp_status weigh_rows(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)worker, (void)err;
    const weighing *w = context;
    const size_t n = w->n, last = (item + 1) * ROWS < n ? (item + 1) * ROWS : n;
    for (size_t i = item * ROWS; i < last; i++)
        for (size_t j = 0; j <= i; j++) w->matrix[i * n + j] = 0.5 * (w->a[i] * w->a[j] - w->matrix[i * n + j]);
    return ESP_OK;
}

/* The lower triangle of the factor becomes the weights of the gradient. */
static esp_status make_weights(espi_factor *factor, const double *a, const esp_run *run, esp_error *err)
{
    const size_t n = factor->n;
    weighing w = {.matrix = factor->a, .a = a, .n = n};
    const esp_status status = espi_factor_invert(factor, run, err);
    return status == ESP_OK ? espi_parallel(run, "weighing", (n + ROWS - 1) / ROWS, weigh_rows, &w, err) : status;
}

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    const size_t n = p->count;
    double *matrix = p->matrix[0];
    espi_bound *bound = NULL;
    espi_factor factor = {0};
    esp_status status = espi_gram_square(kernel, p->data, run, matrix, &bound, err);
    if (status == ESP_OK) status = espi_gp_factor(p, noise, run, &point->jitter, &factor, err);
    if (status == ESP_OK) status = find_value(p, &factor, run, point, err);
    const bool goes_on = status == ESP_OK && gradient != NULL && point->value >= point->enough;
    if (goes_on) status = make_weights(&factor, point->coefficient, run, err);
    espi_factor_free(&factor);
    if (goes_on && status == ESP_OK) {
        *noise_gradient = 0.0;
        for (size_t i = 0; i < n; i++) *noise_gradient += matrix[i * n + i];
        status = espi_bound_gradient(bound, matrix, matrix, run, gradient, err);
    }
    espi_bound_free(bound);
    return status;
}

const espi_gp_likelihood espi_gp_exact = {
    .name = "gaussian", .value = "log likelihood", .noisy = true, .matrices = 1, .evaluate = evaluate};
