/* Cross-validation. The Gram matrix of a kernel is computed once; folds and classes work on its rows. Learners that
 * take one example after the other need none; kernels that select patterns have one per fold and class (selected.h),
 * and Gaussian processes one per fold, since each learns a kernel of its own (gp.h). */
#include "base/alloc.h"
#include "base/status.h"
#include "learn/gp/gp.h"
#include "learn/svm/nystroem.h"
#include "learn/perceptron/perceptron.h"
#include "learn/predictions.h"
#include "learn/svm/selected.h"
#include "learn/train/validate.h"

#include <string.h>

void espi_split_free(espi_split *s)
{
    espi_rows_free(s->rows);
    espi_free(s->train);
    espi_free(s->test);
    *s = (espi_split){0};
}

esp_status espi_split_make(espi_split *s, const uint32_t *fold, size_t number, espi_rows *all, esp_error *err)
{
    const size_t n = espi_rows_count(all);
    *s = (espi_split){0};
    s->train = espi_alloc(n, sizeof *s->train);
    s->test = espi_alloc(n, sizeof *s->test);
    if (s->train == NULL || s->test == NULL) return espi_no_memory(err);
    espi_fold_split(fold, n, number, s->train, &s->trained, s->test, &s->tested);
    return espi_rows_subset(all, s->train, s->trained, &s->rows, err);
}

esp_status espi_split_score(const espi_split *s, const espi_settings *settings, const espi_targets *targets,
                            espi_rows *all, espi_fit *fit, const espi_fit *warm, double warm_cost, const esp_run *run,
                            double *scores, esp_error *err)
{
    esp_status status = espi_fit_make(fit, settings, targets, s->train, s->rows, warm, warm_cost, run, err);
    if (status != ESP_OK) return status;
    double *part = espi_alloc(s->tested, fit->outputs * sizeof *part);
    status = part == NULL ? espi_no_memory(err) : espi_fit_score(fit, all, s->train, s->test, s->tested, part, err);
    for (size_t t = 0; status == ESP_OK && t < s->tested; t++)
        memcpy(scores + s->test[t] * fit->outputs, part + t * fit->outputs, fit->outputs * sizeof *part);
    espi_free(part);
    return status;
}

esp_status espi_out_of_fold(const espi_settings *settings, const espi_targets *targets, espi_rows *all,
                            const uint32_t *fold, size_t folds, const esp_run *run, double *scores, esp_error *err)
{
    espi_settings plain = *settings; /* no part of a fold is kept, and probabilities are not learned within */
    plain.keep_partial = plain.probability = false;
    esp_status status = ESP_OK;
    for (size_t f = 0; status == ESP_OK && f < folds; f++) {
        espi_split s;
        espi_fit fit = {0};
        status = espi_split_make(&s, fold, f, all, err);
        if (status == ESP_OK) status = espi_split_score(&s, &plain, targets, all, &fit, NULL, 0.0, run, scores, err);
        espi_fit_free(&fit);
        espi_split_free(&s);
    }
    return status;
}

esp_status espi_validation_start(espi_validation *v, const char *learner, const esp_kernel *kernel,
                                 const esp_dataset *data, const esp_setting *settings, size_t count, size_t folds,
                                 uint64_t seed, esp_error *err)
{
    *v = (espi_validation){.folds = folds};
    esp_status status = espi_settings_parse(&v->settings, learner, settings, count, err);
    if (status == ESP_OK) status = espi_selected_check(kernel, &v->settings, err);
    if (status == ESP_OK) status = espi_targets_make(&v->targets, data, &v->settings, err);
    if (status == ESP_OK) status = espi_weights_check(&v->settings, &v->targets, err);
    if (status != ESP_OK) return status;
    v->fold = espi_alloc(data->rows, sizeof *v->fold);
    return v->fold == NULL ? espi_no_memory(err) : espi_folds_make(&v->targets, folds, seed, v->fold, err);
}

void espi_validation_end(espi_validation *v)
{
    espi_settings_free(&v->settings);
    espi_targets_free(&v->targets);
    espi_free(v->fold);
}

esp_status esp_cross_validate(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                              const esp_setting *settings, size_t count, size_t folds, uint64_t seed,
                              const esp_run *run, esp_predictions **out, esp_error *err)
{
    espi_validation v;
    espi_bound *bound = NULL;
    espi_rows *rows = NULL;
    double *scores = NULL, *variance = NULL;
    *out = NULL;
    esp_status status = espi_validation_start(&v, learner, kernel, data, settings, count, folds, seed, err);
    const bool process = v.settings.learner == ESPI_GP, shares = espi_shares_rows(&v.settings),
               selects = shares && espi_kernel_selects(kernel), inducing = shares && v.settings.inducing > 0,
               whole = shares && !selects && !inducing;
    if (status == ESP_OK && whole) status = espi_bind(kernel, data, data, run, &bound, err);
    if (status == ESP_OK && whole) status = espi_rows_new(bound, run, &rows, err);
    if (status == ESP_OK) {
        scores = espi_alloc(data->rows, espi_output_count(&v.settings, v.targets.classes) * sizeof *scores);
        if (process) variance = espi_alloc(data->rows, 2 * sizeof *variance);
        status =
            scores == NULL || (process && variance == NULL) ? espi_no_memory(err)
            : process ? espi_gp_folds(&v.settings, kernel, data, &v.targets, v.fold, folds, run, scores, variance, err)
            : !shares ? espi_perceptron_folds(&v.settings, kernel, data, &v.targets, v.fold, folds, run, scores, err)
            : selects
                ? espi_selected_out_of_fold(&v.settings, kernel, data, &v.targets, v.fold, folds, run, scores, err)
            : inducing
                ? espi_nystroem_out_of_fold(&v.settings, kernel, data, &v.targets, v.fold, folds, run, scores, err)
                : espi_out_of_fold(&v.settings, &v.targets, rows, v.fold, folds, run, scores, err);
    }
    if (status == ESP_OK)
        status = espi_predictions_make(data->rows, scores, v.targets.classes, v.targets.name, v.settings.one_vs_one,
                                       NULL, out, err);
    if (status == ESP_OK && process) status = espi_predictions_spread(*out, variance, err);
    if (status != ESP_OK) {
        esp_predictions_free(*out);
        *out = NULL;
    }
    espi_free(scores);
    espi_free(variance);
    espi_rows_free(rows);
    espi_bound_free(bound);
    espi_validation_end(&v);
    return status;
}
