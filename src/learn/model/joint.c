/* The joint posterior of a Gaussian process at new examples X (Rasmussen & Williams 2006, equation 2.24). With C the
 * kernel values of X and the support examples, and the rest as in posterior.c:
 *
 *     cov f = K(X, X) - C (K + D)^-1 C^T = K(X, X) - V V^T,  V^T = L^-1 S C^T
 *
 * or K(X, X) - C P C^T with inducing examples. */
#include "base/alloc.h"
#include "base/dense.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/model/posterior.h"

#include <math.h>
#include <string.h>

void espi_joint_free(espi_joint *j)
{
    espi_free(j->prior);
    espi_free(j->cross);
    espi_free(j->work);
    espi_free(j->covariance);
    *j = (espi_joint){0};
}

static void keep_rows(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    double *cross = context;
    memcpy(cross + first * width, rows, (last - first) * width * sizeof *cross);
}

static esp_status fill(espi_joint *j, const esp_model *m, const esp_dataset *data, const esp_run *run, esp_error *err)
{
    espi_bound *own = NULL, *bound = NULL;
    esp_status status = espi_gram_square(m->kernel, data, run, j->prior, &own, err);
    if (status == ESP_OK) status = espi_bind_to_cols(m->posterior->bound, data, run, &bound, err);
    if (status == ESP_OK) status = espi_gram_blocks(bound, run, keep_rows, j->cross, err);
    espi_bound_free(bound);
    espi_bound_free(own);
    return status;
}

esp_status espi_joint_new(espi_joint *j, const esp_model *m, const esp_dataset *data, double more, const esp_run *run,
                          esp_error *err)
{
    const size_t rows = data->rows, n = m->support->rows;
    const double bytes = 2.0 * (double)rows * ((double)rows + (double)n) * sizeof(double) + more;
    char need[32], limit[32];
    *j = (espi_joint){.rows = rows};
    if (m->posterior->variances != NULL)
        return espi_fail(err, ESP_ERR_MEMORY,
                         "the joint distribution of examples needs the matrix of the model, %s; the limit is %s",
                         espi_size_text((double)n * (double)n * sizeof(double), need),
                         espi_size_text((double)run->memory, limit));
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY,
                         "the joint distribution of %zu examples takes %s; the limit is %s; take fewer at a time", rows,
                         espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    j->prior = espi_alloc(rows, rows * sizeof *j->prior);
    j->covariance = espi_alloc(rows, rows * sizeof *j->covariance);
    j->cross = espi_alloc(rows, n * sizeof *j->cross);
    j->work = espi_alloc(rows, n * sizeof *j->work);
    const bool ok = j->prior != NULL && j->covariance != NULL && j->cross != NULL && j->work != NULL;
    const esp_status status = ok ? fill(j, m, data, run, err) : espi_no_memory(err);
    if (status != ESP_OK) espi_joint_free(j);
    return status;
}

/* covariance = prior - A B^T, of which the lower triangle is computed. */
static esp_status subtract(espi_joint *j, const double *a, const double *b, size_t n, const esp_run *run,
                           esp_error *err)
{
    const espi_dense_factors f = {.turn_b = true,
                                  .add = true,
                                  .rows = j->rows,
                                  .columns = j->rows,
                                  .inner = n,
                                  .scale = -1.0,
                                  .a = a,
                                  .a_stride = n,
                                  .b = b,
                                  .b_stride = n};
    memcpy(j->covariance, j->prior, j->rows * j->rows * sizeof *j->covariance);
    return espi_dense_symmetric(&f, j->covariance, j->rows, run, err);
}

/* The lower triangle of the covariance: what the support examples do not explain. */
static esp_status explain_away(espi_joint *j, const esp_model *m, size_t output, const esp_run *run, esp_error *err)
{
    const struct espi_posterior *p = m->posterior;
    const size_t rows = j->rows, n = m->support->rows;
    const double *root = p->root != NULL ? p->root + output * n : NULL;
    if (m->gaussian->reduction != NULL) {
        const espi_dense_factors f = {.rows = rows,
                                      .columns = n,
                                      .inner = n,
                                      .scale = 1.0,
                                      .a = j->cross,
                                      .a_stride = n,
                                      .b = m->gaussian->reduction,
                                      .b_stride = n};
        const esp_status status = espi_dense_product(&f, j->work, n, run, err);
        return status == ESP_OK ? subtract(j, j->work, j->cross, n, run, err) : status;
    }
    memcpy(j->work, j->cross, rows * n * sizeof *j->work);
    for (size_t i = 0; root != NULL && i < rows; i++)
        for (size_t k = 0; k < n; k++) j->work[i * n + k] *= root[k];
    const espi_dense_triangle l = {.turn = true, .t = p->factor + output * n * n, .t_stride = n}; /* vectors are rows */
    const esp_status status = espi_dense_solve(&l, rows, n, j->work, n, run, err);
    return status == ESP_OK ? subtract(j, j->work, j->work, n, run, err) : status;
}

esp_status espi_joint_covariance(espi_joint *j, const esp_model *m, size_t output, const esp_run *run, esp_error *err)
{
    const size_t rows = j->rows;
    const double square = m->gaussian->scale * m->gaussian->scale;
    double *c = j->covariance;
    esp_status status = espi_progress(run, "computing covariances", -1.0, err);
    if (status == ESP_OK && rows > 0) status = explain_away(j, m, output, run, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < i; k++) c[k * rows + i] = c[i * rows + k] *= square;
        c[i * rows + i] = square * fmax(c[i * rows + i], 0.0);
    }
    if (espi_all_finite(c, rows * rows)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE, "a covariance is too large for a number");
}
