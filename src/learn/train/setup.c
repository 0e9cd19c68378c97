#include "learn/train/setup.h"

#include "base/alloc.h"
#include "base/group.h"
#include "base/status.h"
#include "learn/train/registry.h"

#include <stdio.h>

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
    s->run = espi_group_apart(run);
    s->problem =
        (espi_problem){.settings = s->settings, .kernel = kernel, .data = data, .targets = &s->targets, .run = &s->run};
    return status;
}

void espi_setup_end(espi_setup *s)
{
    espi_settings_free(s->settings);
    espi_targets_free(&s->targets);
}

static void add_pair(espi_text *text, const char *name, const char *value)
{
    espi_text_string(text, name);
    espi_text_string(text, "=");
    espi_text_string(text, value != NULL ? value : "");
    espi_text_string(text, "\n");
}

esp_status espi_setup_agree(const espi_setup *setup, const esp_setting *settings, size_t count, const esp_grid *grid,
                            size_t lines, size_t folds, uint64_t seed, const esp_run *run, esp_error *err)
{
    if (!espi_group_shares(run)) return ESP_OK;
    espi_text text = {0};
    char number[32];
    add_pair(&text, "learner", setup->settings->learner->name);
    add_pair(&text, "kernel", setup->problem.kernel->text);
    for (size_t i = 0; i < count; i++) add_pair(&text, settings[i].name, settings[i].value);
    for (size_t i = 0; i < lines; i++) add_pair(&text, grid[i].name, grid[i].values);
    snprintf(number, sizeof number, "%zu", folds);
    add_pair(&text, "folds", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    add_pair(&text, "seed", number);
    char *all = espi_text_take(&text);
    esp_status status = all == NULL ? espi_no_memory(err) : esp_group_agree(run, "setting", all, err);
    if (status == ESP_OK && setup->problem.data != NULL)
        status = espi_group_agree(run, "other data", espi_dataset_digest_all(setup->problem.data), err);
    espi_free(all);
    return status;
}
