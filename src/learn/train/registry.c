#include "learn/train/registry.h"

#include "base/status.h"

#include <string.h>

/* All learners, in the order in which help texts list them. A new one is named here and nowhere else. */
#define LEARNERS(X)                                                                                                    \
    X(svm)                                                                                                             \
    X(svr)                                                                                                             \
    X(perceptron)                                                                                                      \
    X(gp)                                                                                                              \
    X(oneclass)

#define DECLARE(name) extern const espi_learner espi_learner_##name;
LEARNERS(DECLARE)

#define LIST(name) &espi_learner_##name,
static const espi_learner *const learners[] = {LEARNERS(LIST)};
enum { COUNT = sizeof learners / sizeof *learners };

const espi_learner *espi_learner_find(const char *name, esp_error *err)
{
    char list[200] = "", quoted[96];
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(learners[i]->name, name) == 0) return learners[i];
        if (i > 0) espi_append(list, sizeof list, i + 1 < COUNT ? ", " : " and ");
        espi_append(list, sizeof list, learners[i]->name);
    }
    espi_fail(err, ESP_ERR_PARAM, "unknown learner %s; there are %s", espi_quote(name, strlen(name), quoted), list);
    return NULL;
}

const char *esp_learner_name(size_t index, const char **help)
{
    if (index >= COUNT) return NULL;
    if (help != NULL) *help = learners[index]->help;
    return learners[index]->name;
}

const esp_parameter_info *esp_learner_setting(size_t index, size_t number)
{
    if (index >= COUNT) return NULL;
    const espi_setting *s = learners[index]->settings;
    for (size_t i = 0; i < number && s->info.name != NULL; i++) s++;
    return s->info.name != NULL ? &s->info : NULL;
}

unsigned esp_learner_capabilities(const char *name, const esp_setting *given, size_t count)
{
    const espi_learner *learner = espi_learner_find(name, NULL);
    espi_settings *settings = NULL;
    if (learner == NULL) return 0;
    if (given == NULL || espi_settings_new(learner, NULL, 0, &settings, NULL) != ESP_OK) return learner->capabilities;
    for (size_t i = 0; i < count; i++) espi_settings_set(settings, given[i].name, given[i].value, NULL, NULL);
    const unsigned result = espi_capabilities(settings);
    espi_settings_free(settings);
    return result;
}
