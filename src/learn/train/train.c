/* Training and prediction: from a dataset to a model and back. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/gp/gp.h"
#include "learn/model/file.h"
#include "learn/svm/nystroem.h"
#include "learn/perceptron/perceptron.h"
#include "learn/predictions.h"
#include "learn/svm/selected.h"

#include <stdio.h>
#include <string.h>

enum { PLATT_FOLDS = 5 };

/* ----------------------------------------------------------------- training */

typedef struct training {
    espi_settings settings;
    espi_targets targets;
    esp_kernel *kernel; /* with the names of its columns */
    espi_bound *bound;
    espi_rows *rows;
    uint32_t *all; /* 0, 1, 2, ... */
    espi_fit fit;
    esp_kernel **variant; /* per output, where the kernel selects patterns */
    double *platt;
} training;

static esp_status learn_probabilities(training *t, const esp_kernel *kernel, const esp_dataset *data,
                                      const esp_run *run, esp_error *err)
{
    const size_t n = t->targets.count;
    double *scores = espi_alloc(n, t->fit.outputs * sizeof *scores);
    uint32_t *fold = espi_alloc(n, sizeof *fold);
    t->platt = espi_alloc(t->fit.outputs, 2 * sizeof *t->platt);
    esp_status status = scores == NULL || fold == NULL || t->platt == NULL ? espi_no_memory(err) : ESP_OK;
    const size_t folds = n < PLATT_FOLDS ? n : PLATT_FOLDS;
    if (status == ESP_OK) status = espi_folds_make(&t->targets, folds, t->settings.seed, fold, err);
    if (status == ESP_OK)
        status = t->variant != NULL
                     ? espi_selected_out_of_fold(&t->settings, kernel, data, &t->targets, fold, folds, run, scores, err)
                 : t->settings.inducing > 0
                     ? espi_nystroem_out_of_fold(&t->settings, kernel, data, &t->targets, fold, folds, run, scores, err)
                     : espi_out_of_fold(&t->settings, &t->targets, t->rows, fold, folds, run, scores, err);
    if (status == ESP_OK) status = espi_platt_fit(scores, &t->targets, &t->settings, t->platt, err);
    espi_free(scores);
    espi_free(fold);
    return status;
}

/* What a dataset tells beforehand, and a stream does not. */
static esp_status check_targets(training *t, const esp_dataset *data, esp_error *err)
{
    const esp_status status = espi_targets_make(&t->targets, data, &t->settings, err);
    return status == ESP_OK ? espi_weights_check(&t->settings, &t->targets, err) : status;
}

static esp_status fit_rows(training *t, const esp_kernel *kernel, const esp_dataset *data, const esp_run *run,
                           esp_error *err)
{
    const bool inducing = t->settings.inducing > 0;
    espi_nystroem nystroem = {0};
    esp_status status = espi_bind(kernel, data, data, run, &t->bound, err);
    if (status == ESP_OK)
        status = inducing ? espi_nystroem_new(t->bound, &t->settings, NULL, run, &nystroem, err)
                          : espi_rows_new(t->bound, run, &t->rows, err);
    if (status == ESP_OK)
        status = espi_fit_make(&t->fit, &t->settings, &t->targets, t->all, inducing ? nystroem.rows : t->rows, NULL,
                               0.0, run, err);
    if (status == ESP_OK && inducing) status = espi_nystroem_project(&nystroem, &t->fit, err);
    espi_nystroem_free(&nystroem); /* probabilities take as much again */
    return status;
}

static esp_status fit_selected(training *t, const esp_kernel *kernel, const esp_dataset *data, const esp_run *run,
                               esp_error *err)
{
    const espi_selected part = {
        .kernel = kernel, .data = data, .targets = &t->targets, .train = t->all, .trained = data->rows};
    espi_selected_run r = {.settings = &t->settings};
    t->variant = espi_alloc(espi_output_count(&t->settings, t->targets.classes), sizeof(esp_kernel *));
    if (t->variant == NULL) return espi_no_memory(err);
    const esp_status status = espi_selected_fit(&part, &r, 1, run, t->variant, err);
    t->fit = r.fit;
    return status;
}

static esp_status fit_all(training *t, const esp_kernel *kernel, const esp_dataset *data, const esp_run *run,
                          esp_error *err)
{
    esp_status status = espi_selected_check(kernel, &t->settings, err);
    if (status == ESP_OK) status = check_targets(t, data, err);
    if (status == ESP_OK) status = espi_kernel_bind_names(kernel, data, &t->kernel, err);
    if (status == ESP_OK) status = espi_model_check_kernel(esp_kernel_text(t->kernel), err);
    if (status != ESP_OK) return status;
    t->all = espi_alloc(data->rows, sizeof *t->all);
    if (t->all == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < data->rows; i++) t->all[i] = (uint32_t)i;
    status = espi_kernel_selects(kernel) ? fit_selected(t, t->kernel, data, run, err)
                                         : fit_rows(t, t->kernel, data, run, err);
    if (status == ESP_OK && t->settings.probability && !t->fit.cancelled)
        status = learn_probabilities(t, t->kernel, data, run, err);
    if (status == ESP_ERR_CANCELLED && t->settings.keep_partial && t->fit.bias != NULL) {
        /* The decision functions are there, the probabilities are not. */
        espi_free(t->platt);
        t->platt = NULL;
        t->fit.cancelled = true;
        t->fit.converged = false;
        status = ESP_OK;
    }
    return status;
}

static char *summary_text(const training *t)
{
    espi_text text = {0};
    char line[160];
    const char *end = t->fit.converged   ? "converged"
                      : t->fit.cancelled ? "interrupted"
                                         : "stopped at the limit of iterations";
    snprintf(line, sizeof line, "trained-on\t%zu\niterations\t%zu\nend\t%s\n", t->targets.count, t->fit.iterations,
             end);
    espi_text_string(&text, line);
    return espi_text_take(&text);
}

static esp_status fill_model(esp_model *m, training *t, const esp_dataset *data, esp_error *err)
{
    const size_t outputs = t->fit.outputs;
    bool *wanted = espi_alloc_zero(data->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < data->rows * outputs; i++)
        if (t->fit.coefficient[i] != 0.0) wanted[i / outputs] = true;
    const esp_status status = espi_copy_rows(t->kernel, data, wanted, &m->support, err);
    const char *name = espi_learner_text(t->settings.learner);
    m->learner = espi_copy_text(name, strlen(name));
    m->settings = espi_settings_text(&t->settings);
    m->summary = summary_text(t);
    m->classes = t->targets.classes;
    m->outputs = outputs;
    m->one_vs_one = t->settings.one_vs_one && m->classes > 2;
    if (m->classes > 0) m->class_name = espi_alloc_zero(m->classes, sizeof *m->class_name);
    bool ok =
        m->learner != NULL && m->settings != NULL && m->summary != NULL && (m->classes == 0 || m->class_name != NULL);
    for (size_t c = 0; ok && c < m->classes; c++) {
        m->class_name[c] = espi_copy_text(t->targets.name[c], strlen(t->targets.name[c]));
        ok = m->class_name[c] != NULL;
    }
    if (ok && status == ESP_OK) m->coefficient = espi_alloc(m->support->rows, outputs * sizeof *m->coefficient);
    ok = ok && (status != ESP_OK || m->coefficient != NULL);
    for (size_t i = 0, k = 0; ok && status == ESP_OK && i < data->rows; i++) {
        if (!wanted[i]) continue;
        memcpy(m->coefficient + k++ * outputs, t->fit.coefficient + i * outputs, outputs * sizeof *m->coefficient);
    }
    m->variant = t->variant;
    t->variant = NULL;
    m->kernel = t->kernel;
    t->kernel = NULL;
    m->bias = t->fit.bias;
    t->fit.bias = NULL;
    m->platt = t->platt;
    t->platt = NULL;
    espi_free(wanted);
    return status != ESP_OK ? status : ok ? ESP_OK : espi_no_memory(err);
}

static esp_status train_online(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                               const esp_setting *settings, size_t count, const esp_run *run, esp_model **out,
                               esp_error *err)
{
    esp_online *online = NULL;
    esp_status status = esp_online_new(learner, kernel, settings, count, &online, err);
    if (status == ESP_OK) status = esp_online_learn(online, data, run, err);
    if (status == ESP_OK) status = esp_online_model(online, out, err);
    esp_online_free(online);
    return status;
}

esp_status esp_train(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                     const esp_setting *settings, size_t count, const esp_run *run, esp_model **out, esp_error *err)
{
    training t = {0};
    *out = NULL;
    esp_status status = espi_settings_parse(&t.settings, learner, settings, count, err);
    if (status != ESP_OK) return status;
    const bool online = t.settings.learner == ESPI_PERCEPTRON, process = t.settings.learner == ESPI_GP;
    status = online || process ? check_targets(&t, data, err) : fit_all(&t, kernel, data, run, err);
    esp_model *model = status == ESP_OK && !online && !process ? espi_model_new() : NULL;
    if (status == ESP_OK && online) status = train_online(learner, kernel, data, settings, count, run, &model, err);
    else if (status == ESP_OK && process)
        status = espi_gp_train(&t.settings, kernel, data, &t.targets, true, run, &model, err);
    else if (status == ESP_OK) status = model == NULL ? espi_no_memory(err) : fill_model(model, &t, data, err);
    espi_rows_free(t.rows);
    espi_bound_free(t.bound); /* before the kernel, which the model may have taken */
    if (status == ESP_OK) *out = model;
    else esp_model_free(model);
    espi_variants_free(t.variant, t.variant != NULL ? espi_output_count(&t.settings, t.targets.classes) : 0);
    esp_kernel_free(t.kernel);
    espi_fit_free(&t.fit);
    espi_free(t.platt);
    espi_free(t.all);
    espi_targets_free(&t.targets);
    espi_settings_free(&t.settings);
    return status;
}

/* Made by the first prediction and kept: a file must be loadable without this work. */
static esp_status prepare(const esp_model *model, const esp_run *run, esp_error *err)
{
    esp_model *m = (esp_model *)model;
    esp_status status = ESP_OK;
    if (pthread_mutex_lock(&m->lock) != 0)
        return espi_fail(err, ESP_ERR_PARAM,
                         "the model is being prepared by this very thread; predict when that is done");
    if (m->variant != NULL && m->decision == NULL) status = espi_decisions_new(m, run, &m->decision, err);
    else if (m->variant == NULL && m->folded == NULL)
        status = espi_folded_new(m->kernel, m->support, m->coefficient, m->outputs, run, &m->folded, err);
    if (status == ESP_OK && m->process != NULL && m->posterior == NULL)
        status = espi_posterior_new(m, run, &m->posterior, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static esp_status score(const esp_model *m, const esp_dataset *data, const esp_run *run, double *scores, esp_error *err)
{
    esp_status status = ESP_OK;
    if (m->vote) return espi_vote_score(m, data, run, scores, err);
    if (m->variant == NULL) return espi_folded_score(m->folded, data, run, scores, err);
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++)
        status = espi_decision_score(&m->decision[k], data, run, scores + k, m->outputs, err);
    return status;
}

esp_status esp_predict(const esp_model *model, const esp_dataset *data, const esp_run *run, esp_predictions **out,
                       esp_error *err)
{
    const size_t outputs = model->outputs;
    *out = NULL;
    esp_status status = espi_check_columns(model->kernel, data, err);
    if (status == ESP_OK && !model->vote) status = prepare(model, run, err);
    if (status != ESP_OK) return status;
    const bool process = model->process != NULL;
    double *scores = espi_alloc(data->rows, outputs * sizeof *scores);
    double *variance = process ? espi_alloc(data->rows, 2 * sizeof *variance) : NULL;
    status =
        scores == NULL || (process && variance == NULL) ? espi_no_memory(err) : score(model, data, run, scores, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows * outputs; i++) scores[i] += model->bias[i % outputs];
    if (status == ESP_OK)
        status = espi_predictions_make(data->rows, scores, model->classes, (const char *const *)model->class_name,
                                       model->one_vs_one, model->platt, out, err);
    if (status == ESP_OK && process) status = espi_posterior_variance(model, data, run, variance, err);
    if (status == ESP_OK && process) status = espi_predictions_spread(*out, variance, err);
    if (status != ESP_OK) {
        esp_predictions_free(*out);
        *out = NULL;
    }
    espi_free(scores);
    espi_free(variance);
    return status;
}
