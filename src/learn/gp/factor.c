/* The matrix of a Gaussian process: kernel values with the noise on the diagonal, factored by Cholesky's method.
 *
 * A kernel matrix is positive semi-definite, so that with noise it has a factor. Without noise, or with little, equal
 * examples and rounding can spoil that. Then jitter is added to the diagonal, from 1e-10 to 1e-4 of its mean; what
 * still has no factor is told with the reason. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double LEAST = 1e-10; /* jitter, of the mean of the diagonal */
static const double SAME = 1e-13;  /* squared distance of examples that are the same, of their self-values */

bool espi_gp_point_make(espi_gp_point *p, size_t count)
{
    *p = (espi_gp_point){.enough = -INFINITY};
    p->coefficient = espi_alloc_zero(count, sizeof *p->coefficient);
    return p->coefficient != NULL;
}

void espi_gp_point_copy(espi_gp_point *to, const espi_gp_point *from, size_t count)
{
    double *coefficient = to->coefficient;
    *to = *from;
    to->coefficient = coefficient;
    memcpy(coefficient, from->coefficient, count * sizeof *coefficient);
}

void espi_gp_point_free(espi_gp_point *p)
{
    espi_free(p->coefficient);
    *p = (espi_gp_point){0};
}

/* ----------------------------------------------------------------- factor */

/* Two examples that the kernel cannot tell apart, with different targets if
 * `target` is given; false: there are none. */
static bool find_same(const double *matrix, const double *diagonal, size_t n, const double *target, size_t pair[2])
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const double sum = diagonal[i] + diagonal[j], distance = sum - 2.0 * matrix[i * n + j];
            if (distance > SAME * sum || (target != NULL && target[i] == target[j])) continue;
            pair[0] = i;
            pair[1] = j;
            return true;
        }
    return false;
}

static esp_status diagnose(const espi_factor *factor, const double *diagonal, double jitter, esp_error *err)
{
    size_t pair[2];
    char same[120] = "";
    if (find_same(factor->a, diagonal, factor->n, NULL, pair))
        snprintf(same, sizeof same, "examples %zu and %zu are the same to the kernel; ", pair[0] + 1, pair[1] + 1);
    return espi_fail(
        err, ESP_ERR_RANGE,
        "the kernel matrix is not positive definite, even with %g added to its diagonal: the pivot of example "
        "%zu is %.3g; %sraise noise",
        jitter, factor->failed, factor->pivot, same);
}

esp_status espi_gp_factor(const espi_gp_problem *p, double noise, const esp_run *run, double *jitter,
                          espi_factor *factor, esp_error *err)
{
    const size_t n = p->count;
    double *matrix = p->matrix[0], *diagonal = p->vector;
    size_t pair[2];
    for (size_t i = 0; i < n; i++) diagonal[i] = matrix[i * n + i];
    *jitter = 0.0;
    if (noise == 0.0 && find_same(matrix, diagonal, n, p->target, pair))
        return espi_fail(err, ESP_ERR_RANGE,
                         "examples %zu and %zu are the same to the kernel but have different targets, and noise is 0; "
                         "start from a noise above 0",
                         pair[0] + 1, pair[1] + 1);
    const esp_status status =
        espi_factor_make_jitter(matrix, n, false, noise, LEAST, run, diagonal, jitter, factor, err);
    return status != ESP_OK || factor->failed == 0 ? status : diagnose(factor, diagonal, *jitter, err);
}
