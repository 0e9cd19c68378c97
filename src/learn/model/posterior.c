/* Variances of a Gaussian process at new examples x (Rasmussen & Williams 2006, equations 2.26 and 3.24). With k the
 * kernel values of x and the support examples:
 *
 *     var f = K(x, x) - k^T (K + D)^-1 k
 *
 * D is the noise of a regression, or W^-1 of Laplace's approximation; then (K + D)^-1 = S B^-1 S with S = W^1/2 and
 * B = I + S K S, which W = 0 does not harm. The factor of the matrix is made by the first prediction: it would make the
 * model file as large as it is. With inducing examples k has their kernel values only, and k^T P k is subtracted; P
 * comes from all examples, so that the model has it. Where a factor of a regression is larger than the memory, k^T (K +
 * D)^-1 k comes from conjugate gradients (variances.h). */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "base/dense.h"
#include "learn/model/model.h"
#include "learn/model/variances.h"

#include <math.h>

struct espi_posterior {
    espi_bound *bound;         /* of the support examples */
    double *factor;            /* NULL with inducing examples */
    double *root;              /* S; NULL for a regression */
    espi_variances *variances; /* in the place of the factor; NULL: there is one */
};

void espi_posterior_free(struct espi_posterior *p)
{
    if (p == NULL) return;
    espi_variances_free(p->variances);
    espi_bound_free(p->bound);
    espi_free(p->factor);
    espi_free(p->root);
    espi_free(p);
}

static esp_status factor(struct espi_posterior *p, const esp_model *m, const esp_run *run, esp_error *err)
{
    const espi_gaussian *g = m->gaussian;
    const size_t n = m->support->rows;
    double *a = p->factor;
    for (size_t i = 0; p->root != NULL && i < n; i++) p->root[i] = sqrt(g->curvature[i]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; p->root != NULL && j <= i; j++) a[i * n + j] *= p->root[i] * p->root[j];
        a[i * n + i] += p->root != NULL ? 1.0 : g->noise + g->jitter;
    }
    const esp_status status = espi_progress(run, "factoring", -1.0, err);
    if (status != ESP_OK) return status;
    const size_t bad = espi_dense_factor(a, n);
    if (bad == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the matrix of the model is not positive definite, as support example %zu shows", bad);
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
    const double bytes = (double)n * (double)n * sizeof(double);
    char need[32], limit[32];
    *out = NULL;
    const bool inducing = m->gaussian->reduction != NULL;
    const bool large = !inducing && run != NULL && run->memory > 0 && bytes > (double)run->memory;
    if (large && m->gaussian->curvature == NULL && m->gaussian->noise > 0.0) return without_factor(m, run, out, err);
    if (large)
        return espi_fail(err, ESP_ERR_MEMORY, "the variances of %zu support examples take %s; the limit is %s", n,
                         espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    struct espi_posterior *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    const bool curved = m->gaussian->curvature != NULL;
    if (!inducing) p->factor = espi_alloc(n, n * sizeof *p->factor);
    if (curved) p->root = espi_alloc(n, sizeof *p->root);
    const bool lacks = (!inducing && (p->factor == NULL || !espi_dense_ready())) || (curved && p->root == NULL);
    esp_status status = lacks      ? espi_no_memory(err)
                        : inducing ? espi_bind(m->kernel, m->support, m->support, run, &p->bound, err)
                                   : espi_gram_square(m->kernel, m->support, run, p->factor, &p->bound, err);
    if (status == ESP_OK && !inducing) status = factor(p, m, run, err);
    if (status == ESP_OK) *out = p;
    else espi_posterior_free(p);
    return status;
}

/* ----------------------------------------------------------------- asking */

enum { BLOCK = 16 }; /* rows that share a pass over the factor */

typedef struct variance_worker {
    espi_workspace *workspace;
    double *row; /* BLOCK of them, twice: as they are, and turned */
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

/* Variances of rows first .. first + count - 1, from K(x, x) at variance[2 i] and what is to be subtracted. */
static esp_status finish(const esp_model *m, size_t first, size_t count, const double *length, double *variance,
                         esp_error *err)
{
    const espi_gaussian *g = m->gaussian;
    const double square = g->scale * g->scale;
    for (size_t i = 0; i < count; i++) {
        double *v = variance + 2 * (first + i);
        v[0] = fmax(v[0] - length[i], 0.0) * square;
        v[1] = v[0] + g->noise * square;
        if (!isfinite(v[1]) || !isfinite(length[i]))
            return espi_fail(err, ESP_ERR_RANGE, "the variance of example %zu is too large for a number",
                             first + i + 1);
    }
    return ESP_OK;
}

typedef struct asking {
    const esp_model *model;
    const espi_bound *bound; /* rows: the new examples */
    variance_worker *variance_worker;
    double *variance;
} asking;

static esp_status ask_block(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const asking *a = context;
    const struct espi_posterior *p = a->model->posterior;
    variance_worker *w = &a->variance_worker[thread->number];
    const size_t n = a->bound->count[ESPI_COLS], rows = a->bound->count[ESPI_ROWS], first = item * BLOCK;
    const size_t count = rows - first < BLOCK ? rows - first : BLOCK;
    double length[BLOCK];
    esp_status status = ESP_OK;
    if (w->row == NULL) {
        w->row = espi_alloc_zero(2 * BLOCK, n * sizeof *w->row);
        status = w->row == NULL ? espi_no_memory(err) : espi_workspace_new(a->bound, thread->run, &w->workspace, err);
    }
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        double *row = w->row + i * n;
        status = espi_bound_row(w->workspace, a->bound->kernel->ops - 1, first + i, 0, n, row, err);
        for (size_t k = 0; p->root != NULL && k < n; k++) row[k] *= p->root[k];
    }
    if (status != ESP_OK) return status;
    const espi_gaussian *g = a->model->gaussian;
    double *turned = w->row + BLOCK * n;
    for (size_t i = 0; g->reduction != NULL && i < count; i++)
        for (size_t k = 0; k < n; k++) turned[k * BLOCK + i] = w->row[i * n + k];
    if (g->reduction != NULL) reduce(g->reduction, n, turned, length);
    else espi_dense_lengths(p->factor, n, w->row, count, length);
    return finish(a->model, first, count, length, a->variance, err);
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
    if (status == ESP_OK) status = espi_bind_to_cols(m->posterior->bound, data, run, &bound, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, run, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_ROWS, self, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) variance[2 * i] = self[i];
    a.bound = bound;
    if (status == ESP_OK && m->posterior->variances != NULL) {
        status = espi_variances_of(m->posterior->variances, bound, run, self, err);
        if (status == ESP_OK) status = finish(m, 0, data->rows, self, variance, err);
    } else if (status == ESP_OK) {
        status = espi_parallel(run, "computing variances", blocks, ask_block, &a, err);
    }
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
