/* How likely a learner takes the targets to be, at values that are given. */
#include "base/status.h"
#include "learn/train/setup.h"

esp_status esp_log_likelihood(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                              const esp_setting *settings, size_t count, const esp_run *run, double *value,
                              double *gradient, esp_error *err)
{
    espi_setup s;
    *value = 0.0;
    esp_status status = espi_setup_start(&s, learner, kernel, data, settings, count, run, err);
    if (status == ESP_OK && s.settings->learner->log_likelihood == NULL)
        status = espi_fail(err, ESP_ERR_PARAM, "%s has no likelihood; gp has one", learner);
    if (status == ESP_OK) status = s.settings->learner->log_likelihood(&s.problem, value, gradient, err);
    espi_setup_end(&s);
    return status;
}
