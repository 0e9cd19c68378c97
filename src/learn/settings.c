/* The learners and their settings: one table each, for parsing, help and the model file. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/learner.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { NUMBER, COUNT, FLAG, CHOICE, WEIGHTS } kind;

typedef struct setting {
    esp_parameter_info info;
    kind kind;
    size_t offset; /* in espi_settings */
    double low, high;
    bool low_open;
    const char *const *choices; /* of CHOICE: two, stored as bool */
} setting;

static const char *const multiclass[] = {"ovr", "ovo", NULL};

#define FIELD(name) .offset = offsetof(espi_settings, name)
#define COMMON                                                                                                         \
    {.info = {"tolerance", "stop when no pair of examples violates the optimum by more", "0.001", "a number > 0, at most 1"}, \
     .kind = NUMBER, FIELD(tolerance), .low = 0.0, .low_open = true, .high = 1.0},                                     \
    {.info = {"max-iterations", "stop after so many steps in any case", "10000000", "a whole number >= 1"},            \
     .kind = COUNT, FIELD(max_iterations), .low = 1.0, .high = 9e15},                                                  \
    {.info = {"no-shrinking", "keep all examples in view all the time", "0", "a flag"}, .kind = FLAG,                  \
     FIELD(no_shrinking)},                                                                                             \
    {.info = {"keep-partial", "when interrupted, keep what is learned so far", "0", "a flag"}, .kind = FLAG,           \
     FIELD(keep_partial)},                                                                                             \
    {.info = {NULL, NULL, NULL, NULL}}
#define COST                                                                                                           \
    {.info = {"C", "cost of an error: larger fits the training data more closely", "1", "a number > 0"},               \
     .kind = NUMBER, FIELD(cost), .low = 0.0, .low_open = true, .high = 1e300}

static const setting svm_settings[] = {
    COST,
    {.info = {"positive-weight", "factor of C for positive examples", "1", "a number > 0"},
     .kind = NUMBER, FIELD(positive_weight), .low = 0.0, .low_open = true, .high = 1e100},
    {.info = {"class-weight", "factors of C by class; balanced: by how rare they are", "", "balanced, or label=weight,..."},
     .kind = WEIGHTS, FIELD(class_weight)},
    {.info = {"multiclass", "one against the rest, or each against each", "ovr", "ovr or ovo"},
     .kind = CHOICE, FIELD(one_vs_one), .choices = multiclass},
    {.info = {"probability", "also learn probabilities, from scores of a cross-validation", "0", "a flag"},
     .kind = FLAG, FIELD(probability)},
    COMMON,
};

static const setting svr_settings[] = {
    COST,
    {.info = {"epsilon", "errors up to this cost nothing", "0.1", "a number >= 0"},
     .kind = NUMBER, FIELD(epsilon), .low = 0.0, .high = 1e300},
    COMMON,
};

static const struct {
    const char *name, *help;
    const setting *settings;
} learners[] = {
    [ESPI_SVM] = {"svm", "support vector machine for classes", svm_settings},
    [ESPI_SVR] = {"svr", "support vector regression for numbers", svr_settings},
};
enum { LEARNERS = sizeof learners / sizeof *learners };

const char *esp_learner_name(size_t index, const char **help)
{
    if (index >= LEARNERS) return NULL;
    if (help != NULL) *help = learners[index].help;
    return learners[index].name;
}

const esp_parameter_info *esp_learner_setting(size_t index, size_t number)
{
    if (index >= LEARNERS) return NULL;
    const setting *s = learners[index].settings;
    for (size_t i = 0; i < number && s->info.name != NULL; i++) s++;
    return s->info.name != NULL ? &s->info : NULL;
}

const char *espi_learner_text(espi_learner_kind learner) { return learners[learner].name; }

static esp_status refuse(const setting *s, const char *value, esp_error *err)
{
    char quoted[96];
    return espi_fail(err, ESP_ERR_PARAM, "%s is %s; allowed is %s", s->info.name,
                     espi_quote(value, strlen(value), quoted), s->info.range);
}

/* Weights are checked against the classes when these are known. */
static esp_status set_weights(espi_settings *settings, const char *value, esp_error *err)
{
    char *copy = *value != '\0' ? espi_copy_text(value, strlen(value)) : NULL;
    if (*value != '\0' && copy == NULL) return espi_no_memory(err);
    espi_free(settings->class_weight);
    settings->balanced = copy != NULL && strcmp(copy, "balanced") == 0;
    settings->class_weight = copy;
    return ESP_OK;
}

static esp_status set_value(espi_settings *settings, const setting *s, const char *value, esp_error *err)
{
    char *field = (char *)settings + s->offset;
    double number;
    if (s->kind == WEIGHTS) return set_weights(settings, value, err);
    if (s->kind == FLAG || s->kind == CHOICE) {
        static const char *const flags[] = {"0", "1", NULL};
        const char *const *choices = s->kind == FLAG ? flags : s->choices;
        const bool second = strcmp(value, choices[1]) == 0;
        if (!second && strcmp(value, choices[0]) != 0) return refuse(s, value, err);
        memcpy(field, &second, sizeof second);
        return ESP_OK;
    }
    if (!espi_number_parse(value, strlen(value), &number) || number > s->high || number < s->low ||
        (s->low_open && number == s->low) || (s->kind == COUNT && floor(number) != number))
        return refuse(s, value, err);
    const size_t whole = s->kind == COUNT ? (size_t)number : 0;
    if (s->kind == COUNT) memcpy(field, &whole, sizeof whole);
    else memcpy(field, &number, sizeof number);
    return ESP_OK;
}

static esp_status set_seed(espi_settings *settings, const char *value, esp_error *err)
{
    char *end, quoted[96];
    errno = 0;
    const unsigned long long seed = strtoull(value, &end, 10);
    if (*value >= '0' && *value <= '9' && *end == '\0' && errno == 0) {
        settings->seed = seed;
        return ESP_OK;
    }
    return espi_fail(err, ESP_ERR_PARAM, "seed is %s; allowed is a whole number from 0 to 2^64 - 1",
                     espi_quote(value, strlen(value), quoted));
}

static esp_status unknown_setting(const espi_settings *settings, const char *name, esp_error *err)
{
    const setting *all = learners[settings->learner].settings;
    const char *names[16];
    char list[300] = "", quoted[96];
    size_t count = 0;
    for (; all[count].info.name != NULL; count++) {
        names[count] = all[count].info.name;
        if (count > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, names[count]);
    }
    const char *near = esp_nearest(name, names, count);
    espi_quote(name, strlen(name), quoted);
    if (near != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "%s has no setting %s; did you mean '%s'?",
                         learners[settings->learner].name, quoted, near);
    return espi_fail(err, ESP_ERR_PARAM, "%s has no setting %s; it has %s", learners[settings->learner].name, quoted,
                     list);
}

esp_status espi_settings_set(espi_settings *settings, const char *name, const char *value, bool *unknown,
                             esp_error *err)
{
    if (unknown != NULL) *unknown = false;
    for (const setting *s = learners[settings->learner].settings; s->info.name != NULL; s++)
        if (strcmp(s->info.name, name) == 0) return set_value(settings, s, value, err);
    if (strcmp(name, "seed") == 0) return set_seed(settings, value, err);
    if (unknown != NULL) *unknown = true;
    return unknown_setting(settings, name, err);
}

esp_status espi_settings_parse(espi_settings *settings, const char *learner, const esp_setting *given, size_t count,
                               esp_error *err)
{
    *settings = (espi_settings){.positive_weight = 1.0, .seed = 1};
    size_t number = 0;
    while (number < LEARNERS && strcmp(learners[number].name, learner) != 0) number++;
    char quoted[96];
    if (number == LEARNERS)
        return espi_fail(err, ESP_ERR_PARAM, "unknown learner %s; there are svm and svr",
                         espi_quote(learner, strlen(learner), quoted));
    settings->learner = (espi_learner_kind)number;
    esp_status status = ESP_OK;
    for (const setting *s = learners[number].settings; status == ESP_OK && s->info.name != NULL; s++)
        status = set_value(settings, s, s->info.fallback, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_settings_set(settings, given[i].name, given[i].value, NULL, err);
    if (status == ESP_OK && settings->probability && settings->one_vs_one)
        status = espi_fail(err, ESP_ERR_PARAM, "probability needs multiclass ovr");
    if (status != ESP_OK) espi_settings_free(settings);
    return status;
}

void espi_settings_free(espi_settings *settings)
{
    espi_free(settings->class_weight);
    settings->class_weight = NULL;
}

char *espi_settings_text(const espi_settings *settings)
{
    espi_text text = {0};
    for (const setting *s = learners[settings->learner].settings; s->info.name != NULL; s++) {
        const char *field = (const char *)settings + s->offset;
        double number;
        size_t whole;
        bool flag;
        char digits[32];
        if (text.size > 0) espi_text_string(&text, " ");
        espi_text_string(&text, s->info.name);
        espi_text_string(&text, "=");
        memcpy(&number, field, s->kind == NUMBER ? sizeof number : 0);
        memcpy(&whole, field, s->kind == COUNT ? sizeof whole : 0);
        memcpy(&flag, field, s->kind == FLAG || s->kind == CHOICE ? sizeof flag : 0);
        switch (s->kind) {
        case NUMBER: espi_text_number(&text, number); break;
        case COUNT:
            snprintf(digits, sizeof digits, "%zu", whole);
            espi_text_string(&text, digits);
            break;
        case FLAG: espi_text_string(&text, flag ? "1" : "0"); break;
        case CHOICE: espi_text_string(&text, s->choices[flag]); break;
        case WEIGHTS: espi_text_string(&text, settings->class_weight != NULL ? settings->class_weight : ""); break;
        }
    }
    return espi_text_take(&text);
}
