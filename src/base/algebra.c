#include "base/algebra.h"

#include "base/device.h"
#include "base/parallel.h"

#include <math.h>

/* By the device of the run. What has no factor there goes to the cores: they tell which pivot is to blame, or find one
 * after all. */
static esp_status make_there(double *a, size_t n, bool here, const esp_run *run, espi_factor *factor, bool *made,
                             esp_error *err)
{
    *factor = (espi_factor){.by = &espi_algebra_device, .a = a, .n = n};
    esp_status status = factor->by->make(factor, run, err);
    *made = status != ESP_ERR_MEMORY && (status != ESP_OK || factor->failed == 0);
    if (status == ESP_ERR_MEMORY && err != NULL) espi_message(run, err->message);
    if (status == ESP_OK && *made && here) {
        status = factor->by->fetch(factor, run, err);
        factor->by->release(factor);
        factor->by = &espi_algebra_cores;
    }
    return status;
}

esp_status espi_factor_make(double *a, size_t n, bool here, const esp_run *run, espi_factor *factor, esp_error *err)
{
    bool made = false;
    esp_status status = ESP_OK;
    if (espi_device_takes(run, n)) status = make_there(a, n, here, run, factor, &made, err);
    if (made) return status;
    *factor = (espi_factor){.by = &espi_algebra_cores, .a = a, .n = n};
    return factor->by->make(factor, run, err);
}

esp_status espi_factor_make_jitter(double *a, size_t n, bool here, double add, double least, const esp_run *run,
                                   double *diagonal, double *jitter, espi_factor *factor, esp_error *err)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) diagonal[i] = a[i * n + i];
    for (size_t i = 0; i < n; i++) mean += diagonal[i] / (double)n;
    for (double part = 0.0;; part = part > 0.0 ? 10.0 * part : least) {
        *jitter = part * mean;
        for (size_t i = 0; i < n; i++) a[i * n + i] = diagonal[i] + add + *jitter;
        const esp_status status = espi_factor_make(a, n, here, run, factor, err);
        if (status != ESP_OK || factor->failed == 0 || !(mean > 0.0) || part > 0.5e6 * least) return status;
        espi_factor_free(factor);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++) a[i * n + j] = a[j * n + i];
    }
}

void espi_factor_free(espi_factor *factor)
{
    if (factor->by != NULL && factor->by->release != NULL) factor->by->release(factor);
    *factor = (espi_factor){0};
}

double espi_factor_half_log(const espi_factor *factor)
{
    double sum = 0.0;
    for (size_t i = 0; i < factor->n; i++) sum += log(factor->a[i * factor->n + i]);
    return sum;
}

esp_status espi_factor_half_solve(const espi_factor *factor, bool turn, double *x, size_t count, const esp_run *run,
                                  esp_error *err)
{
    return factor->by->solve(factor, turn, x, count, run, err);
}

esp_status espi_factor_solve(const espi_factor *factor, double *x, size_t count, const esp_run *run, esp_error *err)
{
    const esp_status status = factor->by->solve(factor, false, x, count, run, err);
    return status == ESP_OK ? factor->by->solve(factor, true, x, count, run, err) : status;
}

esp_status espi_factor_invert(espi_factor *factor, const esp_run *run, esp_error *err)
{
    return factor->by->invert(factor, run, err);
}
