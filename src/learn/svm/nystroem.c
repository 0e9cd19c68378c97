/* See nystroem.h. */
#include "learn/svm/nystroem.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/dense.h"
#include "learn/train/validate.h"

#include <string.h>

void espi_nystroem_free(espi_nystroem *n)
{
    espi_rows_free(n->rows);
    espi_pivots_free(&n->pivots);
    n->rows = NULL;
}

esp_status espi_nystroem_new(const espi_bound *bound, const espi_settings *settings, const bool *allowed,
                             const esp_run *run, espi_nystroem *out, esp_error *err)
{
    const espi_pivot_options options = {
        .count = settings->inducing, .seed = settings->seed, .allowed = allowed, .factor = true};
    esp_run rest = run != NULL ? *run : (esp_run){0};
    *out = (espi_nystroem){0};
    esp_status status = espi_pivots_draw(bound, &options, run, &out->pivots, err);
    const espi_pivots *p = &out->pivots;
    const size_t taken = p->count * p->examples * sizeof *p->factor;
    if (rest.memory > 0) rest.memory = rest.memory > taken ? rest.memory - taken : 1;
    if (status == ESP_OK) status = espi_rows_of_features(p->factor, p->count, p->examples, &rest, &out->rows, err);
    if (status != ESP_OK) espi_nystroem_free(out);
    return status;
}

/* w = sum_i c_i phi_i for all outputs, then L'z = w. The columns of the pivots in the factor are those of L'. */
esp_status espi_nystroem_project(const espi_nystroem *nystroem, espi_fit *fit, esp_error *err)
{
    const espi_pivots *p = &nystroem->pivots;
    const size_t m = p->count, n = p->examples, outputs = fit->outputs;
    double *w = espi_alloc(m, outputs * sizeof *w), *upper = espi_alloc(m, m * sizeof *upper);
    if (w == NULL || upper == NULL) {
        espi_free(w);
        espi_free(upper);
        return espi_no_memory(err);
    }
    if (m > 0) {
        for (size_t q = 0; q < m * m; q++) upper[q] = p->factor[q / m * n + p->example[q % m]];
        espi_dense_product(false, false, (int)m, (int)outputs, (int)n, 1.0, p->factor, (int)n, fit->coefficient,
                           (int)outputs, 0.0, w, (int)outputs);
        espi_dense_triangle(true, true, false, (int)m, (int)outputs, upper, (int)m, w, (int)outputs);
    }
    memset(fit->coefficient, 0, n * outputs * sizeof *fit->coefficient);
    for (size_t q = 0; q < m; q++)
        memcpy(fit->coefficient + p->example[q] * outputs, w + q * outputs, outputs * sizeof *w);
    espi_free(w);
    espi_free(upper);
    return ESP_OK;
}

/* One fold: its pivots, a fit on what is trained on, the scores of the rest. */
static esp_status score_fold(const espi_settings *settings, const espi_bound *bound, const espi_targets *targets,
                             const uint32_t *fold, size_t number, bool *allowed, const esp_run *run, double *scores,
                             esp_error *err)
{
    espi_nystroem nystroem;
    espi_split split = {0};
    espi_fit fit = {0};
    for (size_t i = 0; i < targets->count; i++) allowed[i] = fold[i] != number;
    esp_status status = espi_nystroem_new(bound, settings, allowed, run, &nystroem, err);
    if (status != ESP_OK) return status;
    status = espi_split_make(&split, fold, number, nystroem.rows, err);
    if (status == ESP_OK)
        status = espi_split_score(&split, settings, targets, nystroem.rows, &fit, NULL, 0.0, run, scores, err);
    espi_fit_free(&fit);
    espi_split_free(&split);
    espi_nystroem_free(&nystroem);
    return status;
}

esp_status espi_nystroem_out_of_fold(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                                     const espi_targets *targets, const uint32_t *fold, size_t folds,
                                     const esp_run *run, double *scores, esp_error *err)
{
    espi_settings plain = *settings; /* as in espi_out_of_fold */
    plain.keep_partial = plain.probability = false;
    espi_bound *bound = NULL;
    bool *allowed = espi_alloc(targets->count, sizeof *allowed);
    esp_status status = allowed == NULL ? espi_no_memory(err) : espi_bind(kernel, data, data, run, &bound, err);
    for (size_t f = 0; status == ESP_OK && f < folds; f++)
        status = score_fold(&plain, bound, targets, fold, f, allowed, run, scores, err);
    espi_bound_free(bound);
    espi_free(allowed);
    return status;
}
