/* Cross-validation: every example predicted by a fit that has not seen it. */
#include "base/alloc.h"
#include "base/status.h"
#include "learn/predictions.h"
#include "learn/train/registry.h"
#include "learn/train/setup.h"

#include <string.h>

typedef struct kept { /* the scores of all examples */
    double *scores, *variance;
    size_t outputs;
} kept;

static void keep(void *context, size_t example, const double *score, const double *variance)
{
    const kept *k = context;
    memcpy(k->scores + example * k->outputs, score, k->outputs * sizeof *score);
    if (variance != NULL) memcpy(k->variance + 2 * example * k->outputs, variance, 2 * k->outputs * sizeof *variance);
}

static esp_status validate(espi_setup *s, size_t folds, uint64_t seed, esp_predictions **out, esp_error *err)
{
    const espi_learner *learner = s->settings->learner;
    const size_t rows = s->problem.data->rows, outputs = learner->outputs(s->settings, s->targets.classes);
    const bool spread = (espi_capabilities(s->settings) & ESP_GIVES_VARIANCES) != 0;
    const bool pairs = espi_learns_pairs(s->settings);
    uint32_t *fold = espi_alloc(rows, sizeof *fold);
    double *scores = espi_alloc(rows, outputs * sizeof *scores);
    double *variance = spread ? espi_alloc(rows, 2 * outputs * sizeof *variance) : NULL;
    const espi_folds all = {.fold = fold, .count = folds};
    kept k = {scores, variance, outputs};
    const espi_trial trial = {.settings = s->settings, .take = keep, .context = &k};
    esp_status status = fold == NULL || scores == NULL || (spread && variance == NULL) ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = espi_folds_make(&s->targets, folds, seed, fold, err);
    if (learner->for_validation != NULL) learner->for_validation(s->settings);
    if (status == ESP_OK) status = learner->out_of_fold(&s->problem, &all, &trial, 1, err);
    if (status == ESP_OK)
        status = espi_predictions_make(rows, scores, s->targets.classes, s->targets.name, pairs, NULL, out, err);
    if (status == ESP_OK && spread) status = espi_predictions_spread(*out, variance, err);
    espi_free(fold);
    espi_free(scores);
    espi_free(variance);
    return status;
}

esp_status esp_cross_validate(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                              const esp_setting *settings, size_t count, size_t folds, uint64_t seed,
                              const esp_run *run, esp_predictions **out, esp_error *err)
{
    espi_setup s;
    *out = NULL;
    esp_status status = espi_setup_start(&s, learner, kernel, data, settings, count, run, err);
    if (status == ESP_OK) status = validate(&s, folds, seed, out, err);
    if (status != ESP_OK) {
        esp_predictions_free(*out);
        *out = NULL;
    }
    espi_setup_end(&s);
    return status;
}

esp_status esp_folds(const char *name, const esp_dataset *data, size_t folds, uint64_t seed, uint32_t *fold,
                     esp_error *err)
{
    espi_settings *settings = NULL;
    espi_targets targets = {0};
    const espi_learner *learner = espi_learner_find(name, err);
    if (learner == NULL) return ESP_ERR_PARAM;
    esp_status status = espi_settings_new(learner, NULL, 0, &settings, err);
    if (status == ESP_OK) status = learner->targets(settings, data, &targets, err);
    if (status == ESP_OK) status = espi_folds_make(&targets, folds, seed, fold, err);
    espi_targets_free(&targets);
    espi_settings_free(settings);
    return status;
}
