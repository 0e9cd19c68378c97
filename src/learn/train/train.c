/* Training: from a dataset to a model. */
#include "base/status.h"
#include "learn/train/setup.h"

static esp_status train_online(const espi_problem *p, const esp_setting *settings, size_t count, esp_model **out,
                               esp_error *err)
{
    esp_online *online = NULL;
    esp_status status = esp_online_new(p->settings->learner->name, p->kernel, settings, count, &online, err);
    if (status == ESP_OK) status = esp_online_learn(online, p->data, p->run, err);
    if (status == ESP_OK) status = esp_online_model(online, out, err);
    esp_online_free(online);
    return status;
}

esp_status esp_train(const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                     const esp_setting *settings, size_t count, const esp_run *run, esp_model **out, esp_error *err)
{
    espi_setup s;
    *out = NULL;
    esp_status status = espi_setup_start(&s, learner, kernel, data, settings, count, run, err);
    if (status == ESP_OK && run != NULL && run->checkpoint != NULL &&
        (espi_capabilities(s.settings) & ESP_KEEPS_CHECKPOINTS) == 0)
        status = espi_fail(err, ESP_ERR_PARAM, "the learner %s keeps no checkpoints", learner);
    if (status == ESP_OK)
        status = s.settings->learner->train != NULL ? s.settings->learner->train(&s.problem, out, err)
                                                    : train_online(&s.problem, settings, count, out, err);
    espi_setup_end(&s);
    return status;
}
