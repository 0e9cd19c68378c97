/* Training by several ranks, of which each has a share of the examples: rank 0 learns, the others serve it
 * (kernel/evaluate/shares.h). */
#include "base/group.h"
#include "base/status.h"
#include "kernel/evaluate/shares.h"
#include "learn/train/registry.h"
#include "learn/train/setup.h"

/* Of all ranks: what can be known to be wrong without looking at examples. */
static esp_status begin(espi_setup *s, const espi_learner *learner, const esp_kernel *kernel,
                        const esp_setting *settings, size_t count, const esp_run *run, esp_error *err)
{
    esp_status status = espi_settings_new(learner, settings, count, &s->settings, err);
    if (status == ESP_OK && learner->check_shares == NULL)
        status = espi_fail(err, ESP_ERR_PARAM,
                           "the learner %s needs all examples in one place: it does not learn over "
                           "several ranks",
                           learner->name);
    if (status == ESP_OK) status = espi_setup_check_kernel(s->settings, kernel, err);
    if (status == ESP_OK) status = learner->check_shares(s->settings, kernel, err);
    s->run = espi_group_apart(run);
    s->problem = (espi_problem){.settings = s->settings, .kernel = kernel, .targets = &s->targets, .run = &s->run};
    return status == ESP_OK ? espi_setup_agree(s, settings, count, NULL, 0, 0, s->settings->seed, run, err) : status;
}

static esp_status lead(espi_setup *s, espi_shares *shares, const esp_dataset *share, esp_model **out, esp_error *err)
{
    const espi_learner *learner = s->settings->learner;
    esp_status status = learner->targets(s->settings, espi_shares_targets(shares), &s->targets, err);
    if (status == ESP_OK) status = espi_setup_check_targets(s->settings, &s->targets, err);
    s->problem.kernel = espi_shares_kernel(shares);
    s->problem.data = share;
    s->problem.shares = shares;
    if (status == ESP_OK) status = learner->train(&s->problem, out, err);
    status = espi_shares_end(shares, status, err);
    if (status == ESP_OK) return ESP_OK;
    esp_model_free(*out);
    *out = NULL;
    return status;
}

esp_status esp_train_share(const char *learner, const esp_kernel *kernel, esp_dataset *share,
                           const esp_setting *settings, size_t count, const esp_run *run, esp_model **out,
                           esp_error *err)
{
    esp_error ignored;
    *out = NULL;
    if (err == NULL) err = &ignored;
    if (!espi_group_shares(run)) return esp_train(learner, kernel, share, settings, count, run, out, err);
    espi_setup s = {0};
    espi_shares *shares = NULL;
    const espi_learner *found = espi_learner_find(learner, err);
    esp_status status = found == NULL ? ESP_ERR_PARAM : begin(&s, found, kernel, settings, count, run, err);
    if (espi_group_end(run, status, err) == ESP_OK) status = espi_shares_open(kernel, share, run, &shares, err);
    if (status == ESP_OK)
        status = espi_group_rank(run) == 0 ? lead(&s, shares, share, out, err) : espi_shares_serve(shares, err);
    espi_shares_free(shares);
    espi_setup_end(&s);
    return status;
}
