#include "learn/train/setup.h"

#include "base/status.h"
#include "learn/train/registry.h"

esp_status espi_setup_check_kernel(const espi_settings *settings, const esp_kernel *kernel, esp_error *err)
{
    const espi_learner *l = settings->learner;
    return l->check_kernel != NULL ? l->check_kernel(settings, kernel, err) : ESP_OK;
}

esp_status espi_setup_check_targets(const espi_settings *settings, const espi_targets *targets, esp_error *err)
{
    const espi_learner *l = settings->learner;
    return l->check_targets != NULL ? l->check_targets(settings, targets, err) : ESP_OK;
}

esp_status espi_setup_start(espi_setup *s, const char *name, const esp_kernel *kernel, const esp_dataset *data,
                            const esp_setting *settings, size_t count, const esp_run *run, esp_error *err)
{
    *s = (espi_setup){0};
    const espi_learner *learner = espi_learner_find(name, err);
    if (learner == NULL) return ESP_ERR_PARAM;
    esp_status status = espi_settings_new(learner, settings, count, &s->settings, err);
    if (status == ESP_OK) status = espi_setup_check_kernel(s->settings, kernel, err);
    if (status == ESP_OK) status = learner->targets(s->settings, data, &s->targets, err);
    if (status == ESP_OK) status = espi_setup_check_targets(s->settings, &s->targets, err);
    s->problem =
        (espi_problem){.settings = s->settings, .kernel = kernel, .data = data, .targets = &s->targets, .run = run};
    return status;
}

void espi_setup_end(espi_setup *s)
{
    espi_settings_free(s->settings);
    espi_targets_free(&s->targets);
}
