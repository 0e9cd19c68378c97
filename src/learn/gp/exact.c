/* Regression with normal noise, exactly (Rasmussen & Williams 2006, algorithm 2.1 and equation 5.9). With G = K + s I,
 * s being the noise variance, and targets y:
 *
 *     a = G^-1 (y - m)                                   what predicts: f(x) = m + sum_i a_i K(x_i, x)
 *     log p(y) = -1/2 (y - m)^T a - 1/2 log|G| - n/2 log 2 pi
 *     d log p = sum_ij W_ij dG_ij,  W = 1/2 (a a^T - G^-1)
 *
 * A constant mean is the best one for the kernel at hand, m = 1^T G^-1 y / 1^T G^-1 1 (generalised least squares);
 * being a maximum, it adds nothing to the derivatives. One matrix keeps K, which the gradient asks for; the other is
 * one after the other G, its factor, G^-1 and W. */
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/dense.h"
#include "kernel/evaluate/bound.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <string.h>

static const double TWO_PI = 6.283185307179586477;

static double best_mean(const espi_gp_problem *p, const double *factor, double *x)
{
    const size_t n = p->count;
    double of_targets = 0.0, of_ones = 0.0;
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    espi_dense_solve(factor, n, x);
    for (size_t i = 0; i < n; i++) of_targets += x[i] * p->target[i];
    for (size_t i = 0; i < n; i++) of_ones += x[i];
    return of_ones > 0.0 ? of_targets / of_ones : 0.0;
}

/* The lower triangle of the factor becomes the weights of the gradient. */
static void make_weights(double *matrix, const double *a, size_t n)
{
    espi_dense_invert(matrix, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) matrix[i * n + j] = 0.5 * (a[i] * a[j] - matrix[i * n + j]);
}

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    const size_t n = p->count;
    double *matrix = p->matrix[1], *a = point->coefficient, fit = 0.0;
    espi_bound *bound = NULL;
    esp_status status = espi_gram_square(kernel, p->data, run, p->matrix[0], &bound, err);
    if (status == ESP_OK) memcpy(matrix, p->matrix[0], n * n * sizeof *matrix);
    if (status == ESP_OK) status = espi_gp_factor(matrix, n, p->target, noise, run, p->vector, &point->jitter, err);
    if (status == ESP_OK) {
        point->mean = p->constant_mean ? best_mean(p, matrix, p->vector) : 0.0;
        for (size_t i = 0; i < n; i++) a[i] = p->target[i] - point->mean;
        espi_dense_solve(matrix, n, a);
        for (size_t i = 0; i < n; i++) fit += (p->target[i] - point->mean) * a[i];
        point->value = -0.5 * fit - espi_dense_half_log(matrix, n) - 0.5 * (double)n * log(TWO_PI);
        if (!isfinite(point->value) || !espi_all_finite(a, n))
            status = espi_fail(err, ESP_ERR_RANGE, "the likelihood is too small for a number; raise noise");
    }
    if (status == ESP_OK && gradient != NULL) status = espi_progress(run, "inverting", -1.0, err);
    if (status == ESP_OK && gradient != NULL) {
        make_weights(matrix, a, n);
        *noise_gradient = 0.0;
        for (size_t i = 0; i < n; i++) *noise_gradient += matrix[i * n + i];
        status = espi_bound_gradient(bound, matrix, p->matrix[0], run, gradient, err);
    }
    espi_bound_free(bound);
    return status;
}

const espi_gp_likelihood espi_gp_exact = {
    .name = "gaussian", .value = "log likelihood", .noisy = true, .matrices = 2, .evaluate = evaluate};
