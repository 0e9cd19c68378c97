#include "learn/model/decision.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"

void espi_decision_free(espi_decision *d)
{
    espi_scorer_free(d->scorer);
    esp_dataset_free(d->example);
    espi_free(d->coefficient);
    *d = (espi_decision){0};
}

esp_status espi_decision_make(espi_decision *d, const esp_kernel *kernel, const esp_dataset *data,
                              const double *coefficient, size_t stride, const esp_run *run, esp_error *err)
{
    bool *wanted = espi_alloc(data->rows, sizeof *wanted);
    size_t count = 0;
    *d = (espi_decision){.coefficient = espi_alloc(data->rows, sizeof *d->coefficient)};
    esp_status status = wanted == NULL || d->coefficient == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) {
        wanted[i] = coefficient[i * stride] != 0.0;
        if (wanted[i]) d->coefficient[count++] = coefficient[i * stride];
    }
    if (status == ESP_OK) status = espi_copy_rows(kernel, data, wanted, &d->example, err);
    if (status == ESP_OK) status = espi_scorer_new(kernel, d->example, d->coefficient, 1, run, &d->scorer, err);
    espi_free(wanted);
    if (status != ESP_OK) espi_decision_free(d);
    return status;
}

esp_status espi_decision_score(const espi_decision *d, const esp_dataset *data, const esp_run *run, double *scores,
                               size_t stride, esp_error *err)
{
    double *part = espi_alloc(data->rows, sizeof *part);
    esp_status status = part == NULL ? espi_no_memory(err) : espi_scorer_score(d->scorer, data, run, part, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) scores[i * stride] = part[i];
    espi_free(part);
    return status;
}
