/* Gaussian processes in cross-validation: each fold learns its kernel anew. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/gp/gp.h"
#include "learn/predictions.h"

#include <stdio.h>

/* The targets of the examples that are not of this fold; names belong to `all`. */
static bool take_targets(espi_targets *part, const espi_targets *all, const uint32_t *fold, size_t number)
{
    *part = (espi_targets){.classes = all->classes, .name = all->name};
    if (all->classes > 0) part->class_of = espi_alloc(all->count, sizeof *part->class_of);
    else part->value = espi_alloc(all->count, sizeof *part->value);
    if (part->class_of == NULL && part->value == NULL) return false;
    for (size_t i = 0; i < all->count; i++) {
        if (fold[i] == number) continue;
        if (all->classes > 0) part->class_of[part->count++] = all->class_of[i];
        else part->value[part->count++] = all->value[i];
    }
    return true;
}

static esp_status one_fold(const espi_problem *all, const espi_folds *folds, size_t number, const espi_trial *trial,
                           esp_error *err)
{
    const size_t rows = all->data->rows;
    espi_targets targets = {0};
    espi_problem part = {.settings = trial->settings, .kernel = all->kernel, .targets = &targets, .run = all->run};
    esp_dataset *train = NULL, *test = NULL;
    esp_model *model = NULL;
    esp_predictions *predicted = NULL;
    bool *row = espi_alloc(rows, sizeof *row);
    esp_status status =
        row != NULL && take_targets(&targets, all->targets, folds->fold, number) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < rows; i++) row[i] = folds->fold[i] != number;
    if (status == ESP_OK) status = espi_copy_rows(all->kernel, all->data, row, &train, err);
    for (size_t i = 0; status == ESP_OK && i < rows; i++) row[i] = folds->fold[i] == number;
    if (status == ESP_OK) status = espi_copy_rows(all->kernel, all->data, row, &test, err);
    part.data = train;
    if (status == ESP_OK) status = espi_gp_learn(&part, false, &model, err);
    if (status == ESP_OK) status = esp_predict(model, test, all->run, &predicted, err);
    for (size_t i = 0, k = 0; status == ESP_OK && i < rows; i++) {
        if (!row[i]) continue;
        trial->take(trial->context, i, predicted->column + k * predicted->columns,
                    predicted->variance + 2 * k * predicted->columns);
        k++;
    }
    esp_predictions_free(predicted);
    esp_model_free(model);
    esp_dataset_free(train);
    esp_dataset_free(test);
    espi_free(targets.class_of);
    espi_free(targets.value);
    espi_free(row);
    return status;
}

esp_status espi_gp_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                               size_t trials, esp_error *err)
{
    esp_status status = espi_check_columns(problem->kernel, problem->data, err);
    for (size_t t = 0; status == ESP_OK && t < trials; t++) {
        for (size_t f = folds->first; status == ESP_OK && f < folds->last; f++) {
            char line[80];
            snprintf(line, sizeof line, "fold %zu of %zu", f + 1, folds->count);
            espi_message(problem->run, line);
            status = one_fold(problem, folds, f, &trial[t], err);
        }
        if (status == ESP_OK && trials > 1)
            status = espi_progress(problem->run, "searching", (double)(t + 1) / (double)trials, err);
    }
    return status;
}
