/* Variances of a Gaussian process at new examples x (Rasmussen & Williams 2006, equations 2.26 and 3.24). With k the
 * kernel values of x and the support examples:
 *
 *     var f = K(x, x) - k^T (K + D)^-1 k
 *
 * D is the noise of a regression, or W^-1 of Laplace's approximation; then (K + D)^-1 = S B^-1 S with S = W^1/2 and
 * B = I + S K S, which W = 0 does not harm. The factor of the matrix is made by the first prediction: it would make the
 * model file as large as it is; each output has its own. With inducing examples k has their kernel values only, and k^T
 * P k is subtracted; P comes from all examples, so that the model has it. Where a factor of a regression is larger than
 * the memory, k^T (K + D)^-1 k comes from conjugate gradients (variances.h). */
#include "base/algebra.h"
#include "base/alloc.h"
#include "base/group.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "base/dense.h"
#include "learn/model/posterior.h"
#include "learn/model/variances.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void espi_posterior_free(struct espi_posterior *p)
{
    if (p == NULL) return;
    espi_variances_free(p->variances);
    espi_bound_free(p->bound);
    espi_free(p->factor);
    espi_free(p->root);
    espi_free(p);
}

/* Of one output; `a` has the kernel values. */
static esp_status factor(const struct espi_posterior *p, const esp_model *m, size_t output, const esp_run *run,
                         esp_error *err)
{
    const espi_gaussian *g = m->gaussian;
    const size_t n = m->support->rows;
    double *a = p->factor + output * n * n, *root = p->root != NULL ? p->root + output * n : NULL;
    if (output > 0) memcpy(a, p->factor, n * n * sizeof *a);
    for (size_t i = 0; root != NULL && i < n; i++) root[i] = sqrt(g->curvature[i * m->outputs + output]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; root != NULL && j <= i; j++) a[i * n + j] *= root[i] * root[j];
        a[i * n + i] += root != NULL ? 1.0 : g->noise + g->jitter;
    }
    espi_factor made;
    const esp_status status = espi_factor_make(a, n, true, run, &made, err);
    if (status != ESP_OK || made.failed == 0) return status;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the matrix of the model is not positive definite, as support example %zu shows", made.failed);
}

static esp_status check_room(const esp_model *m, const esp_run *run, esp_error *err)
{
    const size_t n = m->support->rows;
    const double bytes = (double)m->outputs * (double)n * (double)n * sizeof(double);
    char need[32], limit[32], each[64] = "";
    if (run == NULL || run->memory == 0 || bytes <= (double)run->memory) return ESP_OK;
    if (m->outputs > 1) snprintf(each, sizeof each, ", a matrix for each of %zu classes", m->outputs);
    return espi_fail(err, ESP_ERR_MEMORY, "the variances of %zu support examples take %s%s; the limit is %s", n,
                     espi_size_text(bytes, need), each, espi_size_text((double)run->memory, limit));
}

static esp_status without_factor(const esp_model *m, const esp_run *run, struct espi_posterior **out, esp_error *err)
{
    struct espi_posterior *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    esp_status status = espi_bind(m->kernel, m->support, m->support, run, &p->bound, err);
    if (status == ESP_OK) status = espi_variances_new(m, p->bound, run, &p->variances, err);
    if (status == ESP_OK) *out = p;
    else espi_posterior_free(p);
    return status;
}

esp_status espi_posterior_new(const esp_model *m, const esp_run *run, struct espi_posterior **out, esp_error *err)
{
    const size_t n = m->support->rows;
    *out = NULL;
    const bool inducing = m->gaussian->reduction != NULL;
    const bool numbers = !inducing && m->gaussian->curvature == NULL && m->gaussian->noise > 0.0;
    esp_status status = inducing ? ESP_OK : check_room(m, run, err);
    if (status == ESP_ERR_MEMORY && numbers) return without_factor(m, run, out, err);
    if (status != ESP_OK) return status;
    struct espi_posterior *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    const bool curved = m->gaussian->curvature != NULL;
    if (!inducing) p->factor = espi_alloc(n * m->outputs, n * sizeof *p->factor);
    if (curved) p->root = espi_alloc(n * m->outputs, sizeof *p->root);
    const bool lacks = (!inducing && p->factor == NULL) || (curved && p->root == NULL);
    status = lacks      ? espi_no_memory(err)
             : inducing ? espi_bind(m->kernel, m->support, m->support, run, &p->bound, err)
                        : espi_gram_square(m->kernel, m->support, run, p->factor, &p->bound, err);
    for (size_t k = m->outputs; status == ESP_OK && !inducing && k-- > 0;) status = factor(p, m, k, run, err);
    if (status == ESP_OK) *out = p;
    else espi_posterior_free(p);
    return status;
}

/* ----------------------------------------------------------------- asking */

enum { BLOCK = 16 }; /* rows that share a pass over the factor */

typedef struct variance_worker {
    espi_workspace *workspace;
    double *row; /* BLOCK of them, twice: as they are, and turned or scaled */
} variance_worker;

/* k'P k of BLOCK rows; `turned` has number j of all rows side by side, so that each is summed in the same order. */
HOT static void reduce(const double *restrict p, size_t n, const double *restrict turned, double *restrict length)
{
    for (size_t b = 0; b < BLOCK; b++) length[b] = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double *own = turned + i * BLOCK;
        double sum[BLOCK] = {0.0};
        for (size_t j = 0; j < i; j++)
            for (size_t b = 0; b < BLOCK; b++) sum[b] += p[i * n + j] * turned[j * BLOCK + b];
        for (size_t b = 0; b < BLOCK; b++) length[b] += own[b] * (2.0 * sum[b] + p[i * n + i] * own[b]);
    }
}

typedef struct asking {
    const esp_model *model;
    const espi_bound *bound; /* rows: the new examples */
    const double *self;      /* K(x, x) of each */
    variance_worker *variance_worker;
    double *variance;
} asking;

/* Variances of rows first .. first + count - 1 in one output, from what is to be subtracted. */
static esp_status finish(const asking *a, size_t first, size_t count, size_t output, const double *length,
                         esp_error *err)
{
    const espi_gaussian *g = a->model->gaussian;
    const double square = g->scale * g->scale;
    for (size_t i = 0; i < count; i++) {
        double *v = a->variance + 2 * ((first + i) * a->model->outputs + output);
        v[0] = fmax(a->self[first + i] - length[i], 0.0) * square;
        v[1] = v[0] + g->noise * square;
        if (!isfinite(v[1]) || !isfinite(length[i]))
            return espi_fail(err, ESP_ERR_RANGE, "the variance of example %zu is too large for a number",
                             first + i + 1);
    }
    return ESP_OK;
}

/* What is to be subtracted from the variances of `count` rows in one output. */
static void measure_rows(const esp_model *m, size_t output, double *row, size_t n, size_t count, double *length)
{
    const struct espi_posterior *p = m->posterior;
    const double *reduction = m->gaussian->reduction;
    double *other = row + BLOCK * n;
    if (reduction != NULL) {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < n; k++) other[k * BLOCK + i] = row[i * n + k];
        reduce(reduction, n, other, length);
        return;
    }
    for (size_t i = 0; p->root != NULL && i < count; i++)
        for (size_t k = 0; k < n; k++) other[i * n + k] = row[i * n + k] * p->root[output * n + k];
    espi_dense_lengths(p->factor + output * n * n, n, p->root != NULL ? other : row, count, length);
}

static esp_status ask_block(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const asking *a = context;
    variance_worker *w = &a->variance_worker[thread->number];
    const size_t n = a->bound->count[ESPI_COLS], rows = a->bound->count[ESPI_ROWS], first = item * BLOCK;
    const size_t count = rows - first < BLOCK ? rows - first : BLOCK;
    double length[BLOCK];
    esp_status status = ESP_OK;
    if (w->row == NULL) {
        w->row = espi_alloc_zero(2 * BLOCK, n * sizeof *w->row);
        status = w->row == NULL ? espi_no_memory(err) : espi_workspace_new(a->bound, thread->run, &w->workspace, err);
    }
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_bound_row(w->workspace, a->bound->kernel->ops - 1, first + i, 0, n, w->row + i * n, err);
    for (size_t k = 0; status == ESP_OK && k < a->model->outputs; k++) {
        measure_rows(a->model, k, w->row, n, count, length);
        status = finish(a, first, count, k, length, err);
    }
    return status;
}

static esp_status ask_without_factor(const asking *a, size_t rows, const esp_run *run, esp_error *err)
{
    double *length = espi_alloc(rows, sizeof *length);
    esp_status status = length == NULL ? espi_no_memory(err)
                                       : espi_variances_of(a->model->posterior->variances, a->bound, run, length, err);
    if (status == ESP_OK) status = finish(a, 0, rows, 0, length, err);
    espi_free(length);
    return status;
}

static esp_status ask_blocks(asking *a, size_t rows, const esp_run *run, esp_error *err)
{
    const size_t blocks = (rows + BLOCK - 1) / BLOCK, bytes = 2 * rows * a->model->outputs * sizeof *a->variance;
    if (espi_group_shares(run)) memset(a->variance, 0, bytes);
    const esp_status status = espi_group_deal(run, "computing variances", blocks, 1, ask_block, a, err);
    return status == ESP_OK ? espi_group_merge(run, a->variance, bytes, err) : status;
}

esp_status espi_posterior_variance(const esp_model *m, const esp_dataset *data, const esp_run *run, double *variance,
                                   esp_error *err)
{
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    const size_t blocks = (data->rows + BLOCK - 1) / BLOCK;
    const int workers = espi_worker_count(run, blocks);
    double *self = espi_alloc(data->rows, sizeof *self);
    asking a = {.model = m, .variance = variance};
    a.variance_worker = espi_alloc_zero((size_t)workers, sizeof *a.variance_worker);
    esp_status status = self == NULL || a.variance_worker == NULL ? espi_no_memory(err) : ESP_OK;
    const esp_run apart = espi_group_apart(run);
    if (status == ESP_OK) status = espi_bind_to_cols(m->posterior->bound, data, &apart, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, &apart, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_ROWS, self, err);
    a.bound = bound;
    a.self = self;
    if (status == ESP_OK && m->posterior->variances != NULL) status = ask_without_factor(&a, data->rows, &apart, err);
    else if (status == ESP_OK) status = ask_blocks(&a, data->rows, run, err);
    for (int i = 0; a.variance_worker != NULL && i < workers; i++) {
        espi_workspace_free(a.variance_worker[i].workspace);
        espi_free(a.variance_worker[i].row);
    }
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    espi_free(a.variance_worker);
    espi_free(self);
    return status;
}
