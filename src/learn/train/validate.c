/* Cross-validation: every example predicted by a fit that has not seen it. */
#include "base/alloc.h"
#include "base/group.h"
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

/* ----------------------------------------------------------------- folds */

typedef struct fold_parts { /* a cross-validation in parts, of some folds each */
    const espi_setup *setup;
    const espi_trial *trial;
    const espi_folds *folds;
    size_t parts;
    int threads; /* of this rank */
} fold_parts;

static esp_status validate_part(void *context, size_t part, const espi_worker *worker, esp_error *err)
{
    const fold_parts *p = context;
    espi_folds folds = *p->folds;
    espi_problem problem = p->setup->problem;
    esp_run run = *worker->run;
    folds.first = part * folds.count / p->parts;
    folds.last = (part + 1) * folds.count / p->parts;
    run.threads = p->threads;
    problem.run = &run;
    return p->setup->settings->learner->out_of_fold(&problem, &folds, p->trial, 1, err);
}

/* The ranks of a group take some folds each; what they keep of the others' is 0, and is filled in afterwards. */
static esp_status validate_together(const espi_setup *s, const espi_folds *folds, const espi_trial *trial,
                                    const esp_run *group, esp_error *err)
{
    const size_t ranks = (size_t)espi_group_size(group);
    fold_parts p = {.setup = s, .trial = trial, .folds = folds, .parts = ranks < folds->count ? ranks : folds->count};
    esp_run run = *group;
    p.threads = espi_worker_count(group, SIZE_MAX);
    run.threads = 1; /* a rank does one part at a time, by all its threads */
    return espi_group_deal(&run, "training", p.parts, 1, validate_part, &p, err);
}

static esp_status validate(espi_setup *s, size_t folds, uint64_t seed, const esp_run *group, esp_predictions **out,
                           esp_error *err)
{
    const espi_learner *learner = s->settings->learner;
    const size_t rows = s->problem.data->rows, outputs = learner->outputs(s->settings, s->targets.classes);
    const bool spread = (espi_capabilities(s->settings) & ESP_GIVES_VARIANCES) != 0;
    const bool pairs = espi_learns_pairs(s->settings);
    uint32_t *fold = espi_alloc(rows, sizeof *fold);
    double *scores = espi_alloc_zero(rows, outputs * sizeof *scores);
    double *variance = spread ? espi_alloc_zero(rows, 2 * outputs * sizeof *variance) : NULL;
    const espi_folds all = {.fold = fold, .count = folds, .last = folds};
    kept k = {scores, variance, outputs};
    const espi_trial trial = {.settings = s->settings, .take = keep, .context = &k};
    esp_status status = fold == NULL || scores == NULL || (spread && variance == NULL) ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = espi_folds_make(&s->targets, folds, seed, fold, err);
    if (learner->for_validation != NULL) learner->for_validation(s->settings);
    if (status == ESP_OK)
        status = espi_group_shares(group) ? validate_together(s, &all, &trial, group, err)
                                          : learner->out_of_fold(&s->problem, &all, &trial, 1, err);
    if (status == ESP_OK) status = espi_group_merge(group, scores, rows * outputs * sizeof *scores, err);
    if (status == ESP_OK && spread)
        status = espi_group_merge(group, variance, 2 * rows * outputs * sizeof *variance, err);
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
    esp_error own;
    *out = NULL;
    if (err == NULL) err = &own;
    esp_status status = espi_setup_start(&s, learner, kernel, data, settings, count, run, err);
    if (status == ESP_OK) status = espi_setup_agree(&s, settings, count, NULL, 0, folds, seed, run, err);
    if (status == ESP_OK) status = validate(&s, folds, seed, run, out, err);
    if (status != ESP_OK) {
        esp_predictions_free(*out);
        *out = NULL;
    }
    espi_setup_end(&s);
    return espi_group_end(run, status, err);
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
