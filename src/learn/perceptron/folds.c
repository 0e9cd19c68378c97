/* Perceptrons in cross-validation: one per fold, which learns the examples of the others in their order. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/perceptron/perceptron.h"
#include "learn/predictions.h"

#include <math.h>

typedef struct validation {
    const espi_problem *problem;
    const espi_folds *folds;
    const espi_trial *trial;
} validation;

static esp_status new_perceptron(const validation *v, espi_perceptron **out, esp_error *err)
{
    espi_settings *own = espi_settings_copy(v->trial->settings);
    *out = NULL;
    return own != NULL ? espi_perceptron_new(own, v->problem->kernel, out, err) : espi_no_memory(err);
}

static esp_status learn_others(const validation *v, size_t fold, const esp_run *run, espi_perceptron *p, esp_error *err)
{
    uint32_t *order = espi_alloc(v->problem->data->rows, sizeof *order);
    if (order == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (; status == ESP_OK && p->state.epochs < p->settings->epochs; p->state.epochs++) {
        size_t count = 0;
        for (size_t i = 0; i < v->problem->data->rows; i++)
            if (v->folds->fold[i] != fold) order[count++] = (uint32_t)i;
        if (p->settings->shuffle) espi_epoch_shuffle(p->settings->common.seed, p->state.epochs, order, count);
        for (size_t i = 0; status == ESP_OK && i < count; i++) {
            status = espi_perceptron_learn(p, v->problem->data, order[i], err);
            if (status == ESP_OK && i % 256 == 255)
                status = espi_progress(run, "training", (double)fold / (double)v->folds->count, err);
        }
    }
    espi_perceptron_leave(p);
    espi_free(order);
    return status;
}

/* The score of the k-th of the classes that were learned, from their outputs. */
static double score_of(const double *output, size_t k, size_t known)
{
    return known > 2 ? output[k] : known < 2 ? 0.0 : k == 1 ? output[0] : -output[0];
}

/* Outputs for all classes from those for the classes that were learned; number[k]: which class the k-th is. */
static void spread(const double *output, const size_t *number, size_t known, size_t classes, double *score)
{
    if (classes == 2) {
        score[0] = known == 2 ? output[0] : number[0] == 1 ? 1.0 : -1.0;
        return;
    }
    double least = score_of(output, 0, known);
    for (size_t k = 1; k < known; k++) least = fmin(least, score_of(output, k, known));
    for (size_t c = 0; c < classes; c++) score[c] = least - (1.0 + fabs(least));
    for (size_t k = 0; k < known; k++) score[number[k]] = score_of(output, k, known);
}

/* Scores of the fold's examples by a perceptron of at least one class. */
static esp_status score_fold(const validation *v, size_t fold, const espi_perceptron *p, esp_error *err)
{
    const esp_dataset *data = v->problem->data;
    const size_t classes = v->problem->targets->classes, outputs = espi_class_outputs(classes, false);
    const size_t most = data->rows > data->columns ? data->rows : data->columns;
    esp_model *model = NULL;
    esp_dataset *held_out = NULL;
    esp_predictions *predicted = NULL;
    bool *row = espi_alloc(data->rows, sizeof *row), *column = espi_alloc(most, sizeof *column);
    size_t *number = espi_alloc(p->classes, sizeof *number);
    double *score = espi_alloc(outputs, sizeof *score);
    const bool ok = row != NULL && column != NULL && number != NULL && score != NULL;
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t c = 0; status == ESP_OK && c < p->classes; c++)
        number[c] = espi_class_of(v->problem->targets->name, classes, p->class[c].name);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) row[i] = v->folds->fold[i] == fold;
    if (status == ESP_OK) espi_used_columns(p->kernel, data, column);
    if (status == ESP_OK && p->classes > 1) {
        status = espi_dataset_select(data, column, row, &held_out, err);
        if (status == ESP_OK) status = espi_perceptron_model(p, &model, err);
        if (status == ESP_OK) status = esp_predict(model, held_out, &(esp_run){.threads = 1}, &predicted, err);
    }
    for (size_t i = 0, n = 0; status == ESP_OK && i < data->rows; i++) {
        if (!row[i]) continue;
        const double *output = predicted != NULL ? predicted->column + predicted->columns * n++ : NULL;
        spread(output, number, p->classes, classes, score);
        v->trial->take(v->trial->context, i, score, NULL);
    }
    esp_predictions_free(predicted);
    esp_model_free(model);
    esp_dataset_free(held_out);
    espi_free(row);
    espi_free(column);
    espi_free(number);
    espi_free(score);
    return status;
}

static esp_status try_fold(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const validation *v = context;
    const size_t fold = v->folds->first + item;
    espi_perceptron *p = NULL;
    esp_status status = new_perceptron(v, &p, err);
    if (status == ESP_OK) status = learn_others(v, fold, worker->run, p, err);
    if (status == ESP_OK && p->updates == 0)
        status = espi_fail(err, ESP_ERR_PARAM, "epochs is 0: there is nothing learned that could be validated");
    if (status == ESP_OK) status = score_fold(v, fold, p, err);
    espi_perceptron_free(p);
    return status;
}

esp_status espi_perceptron_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                                       size_t trials, esp_error *err)
{
    esp_status status = espi_check_columns(problem->kernel, problem->data, err);
    for (size_t i = 0; status == ESP_OK && i < trials; i++) {
        validation v = {problem, folds, &trial[i]};
        status = espi_parallel(problem->run, "training", folds->last - folds->first, try_fold, &v, err);
        if (status == ESP_OK && trials > 1)
            status = espi_progress(problem->run, "searching", (double)(i + 1) / (double)trials, err);
    }
    return status;
}
