/* Predictions: the decision functions of a model at examples, and for a Gaussian process how sure it is. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/decision.h"
#include "learn/model/model.h"
#include "learn/predictions.h"

static esp_status make_decisions(esp_model *m, const esp_run *run, esp_error *err)
{
    espi_decision *decision = espi_alloc_zero(m->outputs, sizeof *decision);
    esp_status status = decision == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++)
        status = espi_decision_make(&decision[k], m->variant[k], m->support, m->coefficient + k, m->outputs, run, err);
    if (status == ESP_OK) {
        m->decision = decision;
        return ESP_OK;
    }
    for (size_t k = 0; decision != NULL && k < m->outputs; k++) espi_decision_free(&decision[k]);
    espi_free(decision);
    return status;
}

/* Made by the first prediction and kept: a file must be loadable without this work. */
static esp_status make_scorers(const esp_model *model, const esp_run *run, esp_error *err)
{
    esp_model *m = (esp_model *)model;
    esp_status status = ESP_OK;
    if (pthread_mutex_lock(&m->lock) != 0)
        return espi_fail(err, ESP_ERR_PARAM,
                         "the model is being prepared by this very thread; predict when that is done");
    if (m->variant != NULL && m->decision == NULL) status = make_decisions(m, run, err);
    else if (m->variant == NULL && m->scorer == NULL)
        status = espi_scorer_new(m->kernel, m->support, m->coefficient, m->outputs, run, &m->scorer, err);
    if (status == ESP_OK && m->gaussian != NULL && m->posterior == NULL)
        status = espi_posterior_new(m, run, &m->posterior, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static esp_status score(const esp_model *m, const esp_dataset *data, const esp_run *run, double *scores, esp_error *err)
{
    esp_status status = ESP_OK;
    if (m->vote) return espi_vote_score(m, data, run, scores, err);
    if (m->variant == NULL) return espi_scorer_score(m->scorer, data, run, scores, err);
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++)
        status = espi_decision_score(&m->decision[k], data, run, scores + k, m->outputs, err);
    return status;
}

esp_status espi_model_score(const esp_model *m, const esp_dataset *data, const esp_run *run, double *scores,
                            esp_error *err)
{
    esp_status status = espi_check_columns(m->kernel, data, err);
    const esp_run apart = espi_group_apart(run);
    if (status == ESP_OK && !m->vote) status = make_scorers(m, &apart, err);
    if (status == ESP_OK) status = score(m, data, run, scores, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows * m->outputs; i++) scores[i] += m->bias[i % m->outputs];
    return status;
}

/* Ranks of a group that would predict different things. */
static esp_status agree(const esp_model *model, const esp_dataset *data, const esp_run *run, esp_error *err)
{
    if (!espi_group_shares(run)) return ESP_OK;
    const esp_status status = espi_group_agree(run, "another model", espi_model_digest(model), err);
    return status == ESP_OK ? espi_group_agree(run, "other data", espi_dataset_digest_all(data), err) : status;
}

esp_status esp_predict(const esp_model *model, const esp_dataset *data, const esp_run *run, esp_predictions **out,
                       esp_error *err)
{
    const size_t outputs = model->outputs;
    const bool gaussian = model->gaussian != NULL;
    double *scores = espi_alloc(data->rows, outputs * sizeof *scores);
    double *variance = gaussian ? espi_alloc(data->rows, 2 * outputs * sizeof *variance) : NULL;
    *out = NULL;
    esp_error own;
    if (err == NULL) err = &own;
    esp_status status =
        scores == NULL || (gaussian && variance == NULL) ? espi_no_memory(err) : agree(model, data, run, err);
    if (status == ESP_OK) status = espi_model_score(model, data, run, scores, err);
    if (status == ESP_OK)
        status = espi_predictions_make(data->rows, scores, model->classes, (const char *const *)model->class_name,
                                       model->one_vs_one, model->platt, out, err);
    if (status == ESP_OK && gaussian) status = espi_posterior_variance(model, data, run, variance, err);
    if (status == ESP_OK && gaussian) status = espi_predictions_spread(*out, variance, err);
    if (status != ESP_OK) {
        esp_predictions_free(*out);
        *out = NULL;
    }
    espi_free(scores);
    espi_free(variance);
    return espi_group_end(run, status, err);
}
