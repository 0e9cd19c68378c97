/* The learners and their settings: one table each, for parsing, help and the model file. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/learner.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { NUMBER, COUNT, FLAG, CHOICE, WEIGHTS, TEXT } kind;

typedef struct setting {
    esp_parameter_info info;
    kind kind;
    size_t offset; /* in espi_settings */
    double low, high;
    bool low_open;
    const char *const *choices; /* of CHOICE, ended by NULL; the field is an espi_choice, its index */
} setting;

static const char *const multiclass[] = {"ovr", "ovo", NULL};
static const char *const forms[] = {
    [ESPI_FORM_DAG] = "dag", [ESPI_FORM_FOREST] = "forest", [ESPI_FORM_PLAIN] = "plain", NULL};
static const char *const likelihoods[] = {[ESPI_GAUSSIAN] = "gaussian", [ESPI_BERNOULLI] = "bernoulli", NULL};
static const char *const means[] = {"zero", "constant", NULL};
static const char *const standards[] = {[ESPI_UNIT] = "unit", [ESPI_MEAN] = "mean", [ESPI_NONE] = "none", NULL};

#define FIELD(name) .offset = offsetof(espi_settings, name)
#define COMMON                                                                                                         \
    {.info = {"tolerance", "stop when no pair of examples violates the optimum by more", "0.001",                      \
              "a number > 0, at most 1"},                                                                              \
     .kind = NUMBER,                                                                                                   \
     FIELD(tolerance),                                                                                                 \
     .low = 0.0,                                                                                                       \
     .low_open = true,                                                                                                 \
     .high = 1.0},                                                                                                     \
        {.info = {"inducing",                                                                                          \
                  "learn on features from so many examples, which alone support the model; 0: all examples", "0",      \
                  "a whole number >= 0"},                                                                              \
         .kind = COUNT,                                                                                                \
         FIELD(inducing),                                                                                              \
         .low = 0.0,                                                                                                   \
         .high = 1e9},                                                                                                 \
        {.info = {"max-iterations", "stop after so many steps in any case", "10000000", "a whole number >= 1"},        \
         .kind = COUNT,                                                                                                \
         FIELD(max_iterations),                                                                                        \
         .low = 1.0,                                                                                                   \
         .high = 9e15},                                                                                                \
        {.info = {"no-shrinking", "keep all examples in view all the time", "0", "a flag"},                            \
         .kind = FLAG,                                                                                                 \
         FIELD(no_shrinking)},                                                                                         \
        {.info = {"keep-partial", "when interrupted, keep what is learned so far", "0", "a flag"},                     \
         .kind = FLAG,                                                                                                 \
         FIELD(keep_partial)},                                                                                         \
    {                                                                                                                  \
        .info = { NULL, NULL, NULL, NULL }                                                                             \
    }
#define COST                                                                                                           \
    {                                                                                                                  \
        .info = {"C", "cost of an error: larger fits the training data more closely", "1", "a number > 0"},            \
        .kind = NUMBER, FIELD(cost), .low = 0.0, .low_open = true, .high = 1e300                                       \
    }

static const setting svm_settings[] = {
    COST,
    {.info = {"positive-weight", "factor of C for positive examples", "1", "a number > 0"},
     .kind = NUMBER,
     FIELD(positive_weight),
     .low = 0.0,
     .low_open = true,
     .high = 1e100},
    {.info = {"class-weight", "factors of C by class; balanced: by how rare they are", "",
              "balanced, or label=weight,..."},
     .kind = WEIGHTS,
     FIELD(class_weight)},
    {.info = {"multiclass", "one against the rest, or each against each", "ovr", "ovr or ovo"},
     .kind = CHOICE,
     FIELD(one_vs_one),
     .choices = multiclass},
    {.info = {"probability", "also learn probabilities, from scores of a cross-validation", "0", "a flag"},
     .kind = FLAG,
     FIELD(probability)},
    COMMON,
};

static const setting svr_settings[] = {
    COST,
    {.info = {"epsilon", "errors up to this cost nothing", "0.1", "a number >= 0"},
     .kind = NUMBER,
     FIELD(epsilon),
     .low = 0.0,
     .high = 1e300},
    COMMON,
};

/* class-weight comes last, because its labels may have blanks: see espi_settings_read. */
static const setting perceptron_settings[] = {
    {.info = {"form", "how scores are computed, with the same result: one shared DAG, tree by tree, pair by pair",
              "dag", "dag, forest or plain"},
     .kind = CHOICE,
     FIELD(form),
     .choices = forms},
    {.info = {"epochs", "how often all examples are gone through", "1", "a whole number >= 0"},
     .kind = COUNT,
     FIELD(epochs),
     .low = 0.0,
     .high = 9e15},
    {.info = {"average", "predict with the mean of the weights after each example", "0", "a flag"},
     .kind = FLAG,
     FIELD(average)},
    {.info = {"vote", "predict by a vote of the weights after each example", "0", "a flag"}, .kind = FLAG, FIELD(vote)},
    {.info = {"margin", "learn also from right scores that are not above this", "0", "a number >= 0"},
     .kind = NUMBER,
     FIELD(margin),
     .low = 0.0,
     .high = 1e300},
    {.info = {"shuffle", "go through the examples in random order, another one in each epoch", "0", "a flag"},
     .kind = FLAG,
     FIELD(shuffle)},
    {.info = {"class-weight", "how much examples change the weights, by class", "", "label=weight,..."},
     .kind = WEIGHTS,
     FIELD(class_weight)},
    {.info = {NULL, NULL, NULL, NULL}},
};

/* The texts are read when the hyperparameters are known (gp_space.c). */
static const setting gp_settings[] = {
    {.info = {"likelihood", "numbers with normal noise, or two classes with probabilities", "gaussian",
              "gaussian or bernoulli"},
     .kind = CHOICE,
     FIELD(likelihood),
     .choices = likelihoods},
    {.info = {"noise", "variance of the noise to start from, of standardised targets; 0: none", "0.1", "a number >= 0"},
     .kind = NUMBER,
     FIELD(noise),
     .low = 0.0,
     .high = 1e100},
    {.info = {"mean", "what is expected far from all examples: 0, or a number that is learned", "zero",
              "zero or constant"},
     .kind = CHOICE,
     FIELD(constant_mean),
     .choices = means},
    {.info = {"standardise", "targets to mean 0 and variance 1, to mean 0 only, or left alone", "unit",
              "unit, mean or none"},
     .kind = CHOICE,
     FIELD(standardise),
     .choices = standards},
    {.info = {"inducing", "so many examples stand for all, and alone support the model; 0: all examples", "0",
              "a whole number >= 0"},
     .kind = COUNT,
     FIELD(inducing),
     .low = 0.0,
     .high = 1e9},
    {.info = {"restarts", "also start from so many random hyperparameters", "0", "a whole number >= 0"},
     .kind = COUNT,
     FIELD(restarts),
     .low = 0.0,
     .high = 1e6},
    {.info = {"fix", "hyperparameters that stay as given", "", "names or patterns such as 'noise,lambda.*'"},
     .kind = TEXT,
     FIELD(fix)},
    {.info = {"tie", "hyperparameters that share one value, by pattern", "", "patterns such as 'lambda.*,alpha.*'"},
     .kind = TEXT,
     FIELD(tie)},
    {.info = {"group", "labels that share their lambda, and their alpha", "", "labels such as 'S,SQ;NP,NN'"},
     .kind = TEXT,
     FIELD(group)},
    {.info = {"prior", "log-normal priors of hyperparameters", "",
              "name=median,sd;..., sd being that of the logarithm"},
     .kind = TEXT,
     FIELD(prior)},
    {.info = {"max-iterations", "stop each run after so many steps in any case", "200", "a whole number >= 0"},
     .kind = COUNT,
     FIELD(max_iterations),
     .low = 0.0,
     .high = 1e9},
    {.info = {"tolerance", "stop when the gradient is smaller, or five steps raise the log likelihood by less",
              "0.0001", "a number > 0, at most 1"},
     .kind = NUMBER,
     FIELD(tolerance),
     .low = 0.0,
     .low_open = true,
     .high = 1.0},
    {.info = {NULL, NULL, NULL, NULL}},
};

static const struct {
    const char *name, *help;
    const setting *settings;
} learners[] = {
    [ESPI_SVM] = {"svm", "support vector machine for classes", svm_settings},
    [ESPI_SVR] = {"svr", "support vector regression for numbers", svr_settings},
    [ESPI_PERCEPTRON] = {"perceptron", "perceptron for classes, one example after the other", perceptron_settings},
    [ESPI_GP] = {"gp", "Gaussian process for numbers or two classes, which learns the kernel too", gp_settings},
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
    if ((s->kind == NUMBER || s->kind == COUNT) && strtod(value, NULL) > s->high)
        return espi_fail(err, ESP_ERR_PARAM, "%s is %s; allowed is %s, but at most %g", s->info.name,
                         espi_quote(value, strlen(value), quoted), s->info.range, s->high);
    return espi_fail(err, ESP_ERR_PARAM, "%s is %s; allowed is %s", s->info.name,
                     espi_quote(value, strlen(value), quoted), s->info.range);
}

bool espi_weight_next(const char **text, const char **label, size_t *size, double *weight)
{
    const char *entry = *text;
    const size_t length = strcspn(entry, ",");
    size_t equal = length;
    while (equal > 0 && entry[equal - 1] != '=') equal--;
    if (equal == 0 || !espi_number_parse(entry + equal, length - equal, weight) || !(*weight > 0.0)) return false;
    *label = entry;
    *size = equal - 1;
    *text = entry + length + (entry[length] == ',');
    return true;
}

/* What an online learner can know of its weights: how they are written. */
static esp_status check_weights(const char *value, esp_error *err)
{
    const char *label;
    size_t size;
    double weight;
    char quoted[96];
    if (strcmp(value, "balanced") == 0)
        return espi_fail(err, ESP_ERR_PARAM,
                         "class-weight is balanced, but a perceptron does not count the classes before it learns; "
                         "allowed is label=weight,...");
    while (*value != '\0')
        if (!espi_weight_next(&value, &label, &size, &weight))
            return espi_fail(err, ESP_ERR_PARAM, "class-weight has %s; allowed is label=weight,... with weights > 0",
                             espi_quote(value, strcspn(value, ","), quoted));
    return ESP_OK;
}

static esp_status set_text(char **field, const char *value, esp_error *err)
{
    char *copy = *value != '\0' ? espi_copy_text(value, strlen(value)) : NULL;
    if (*value != '\0' && copy == NULL) return espi_no_memory(err);
    espi_free(*field);
    *field = copy;
    return ESP_OK;
}

/* Weights are checked against the classes when these are known. */
static esp_status set_weights(espi_settings *settings, const char *value, esp_error *err)
{
    if (settings->learner == ESPI_PERCEPTRON) {
        const esp_status status = check_weights(value, err);
        if (status != ESP_OK) return status;
    }
    const esp_status status = set_text(&settings->class_weight, value, err);
    if (status == ESP_OK) settings->balanced = strcmp(value, "balanced") == 0;
    return status;
}

static esp_status set_value(espi_settings *settings, const setting *s, const char *value, esp_error *err)
{
    char *field = (char *)settings + s->offset;
    double number;
    if (s->kind == WEIGHTS) return set_weights(settings, value, err);
    if (s->kind == TEXT) return set_text((char **)(void *)field, value, err);
    if (s->kind == FLAG) {
        const bool flag = strcmp(value, "1") == 0;
        if (!flag && strcmp(value, "0") != 0) return refuse(s, value, err);
        memcpy(field, &flag, sizeof flag);
        return ESP_OK;
    }
    if (s->kind == CHOICE) {
        espi_choice choice = 0;
        while (s->choices[choice] != NULL && strcmp(value, s->choices[choice]) != 0) choice++;
        if (s->choices[choice] == NULL) return refuse(s, value, err);
        memcpy(field, &choice, sizeof choice);
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
    for (const setting *s = learners[settings->learner].settings; s->info.name != NULL; s++) {
        if (strcmp(s->info.name, name) != 0) continue;
        if (s->offset == offsetof(espi_settings, noise) || s->offset == offsetof(espi_settings, standardise))
            settings->of_numbers = s->info.name;
        return set_value(settings, s, value, err);
    }
    if (strcmp(name, "seed") == 0) return set_seed(settings, value, err);
    if (unknown != NULL) *unknown = true;
    return unknown_setting(settings, name, err);
}

esp_status espi_settings_replace(espi_settings *settings, const esp_setting *given, size_t count, esp_error *err)
{
    esp_status status = ESP_OK;
    bool average = false, vote = false; /* those that are given, and on */
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        status = espi_settings_set(settings, given[i].name, given[i].value, NULL, err);
        if (strcmp(given[i].name, "average") == 0) average = settings->average;
        if (strcmp(given[i].name, "vote") == 0) vote = settings->vote;
    }
    if (average && !vote) settings->vote = false;
    if (vote && !average) settings->average = false;
    return status == ESP_OK ? espi_settings_check(settings, err) : status;
}

esp_status espi_settings_check(const espi_settings *settings, esp_error *err)
{
    if (settings->probability && settings->one_vs_one)
        return espi_fail(err, ESP_ERR_PARAM, "probability needs multiclass ovr");
    if (settings->likelihood == ESPI_BERNOULLI && settings->of_numbers != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "%s is for numbers, not for the classes of likelihood bernoulli",
                         settings->of_numbers);
    if (settings->likelihood == ESPI_BERNOULLI && settings->constant_mean)
        return espi_fail(err, ESP_ERR_PARAM, "mean constant is for numbers; likelihood bernoulli needs mean zero");
    if (settings->likelihood == ESPI_BERNOULLI && settings->inducing > 0)
        return espi_fail(err, ESP_ERR_PARAM, "inducing is for numbers; likelihood bernoulli learns from all examples");
    if (settings->learner == ESPI_GP && settings->inducing > 0 && settings->noise == 0.0)
        return espi_fail(err, ESP_ERR_PARAM, "noise is 0; inducing needs noise above 0");
    if (settings->average && settings->vote)
        return espi_fail(err, ESP_ERR_PARAM, "average and vote exclude each other: they are two ways to predict");
    return ESP_OK;
}

static esp_status unknown_learner(const char *learner, esp_error *err)
{
    char list[200] = "", quoted[96];
    for (size_t i = 0; i < LEARNERS; i++) {
        if (i > 0) espi_append(list, sizeof list, i + 1 < LEARNERS ? ", " : " and ");
        espi_append(list, sizeof list, learners[i].name);
    }
    return espi_fail(err, ESP_ERR_PARAM, "unknown learner %s; there are %s",
                     espi_quote(learner, strlen(learner), quoted), list);
}

esp_status espi_settings_parse(espi_settings *settings, const char *learner, const esp_setting *given, size_t count,
                               esp_error *err)
{
    *settings = (espi_settings){.positive_weight = 1.0, .seed = 1};
    size_t number = 0;
    while (number < LEARNERS && strcmp(learners[number].name, learner) != 0) number++;
    if (number == LEARNERS) return unknown_learner(learner, err);
    settings->learner = (espi_learner_kind)number;
    esp_status status = ESP_OK;
    for (const setting *s = learners[number].settings; status == ESP_OK && s->info.name != NULL; s++)
        status = set_value(settings, s, s->info.default_value, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_settings_set(settings, given[i].name, given[i].value, NULL, err);
    if (status == ESP_OK) status = espi_settings_check(settings, err);
    if (status != ESP_OK) espi_settings_free(settings);
    return status;
}

/* The texts that settings own; NULL past the last. */
static char **owned_text(espi_settings *settings, size_t index)
{
    char **const all[] = {&settings->class_weight, &settings->fix, &settings->tie, &settings->group, &settings->prior};
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

void espi_settings_free(espi_settings *settings)
{
    char **text;
    for (size_t i = 0; (text = owned_text(settings, i)) != NULL; i++) {
        espi_free(*text);
        *text = NULL;
    }
}

bool espi_settings_copy(espi_settings *copy, const espi_settings *settings)
{
    espi_settings from = *settings;
    char **text;
    bool ok = true;
    *copy = from;
    for (size_t i = 0; (text = owned_text(copy, i)) != NULL; i++) *text = NULL;
    for (size_t i = 0; ok && (text = owned_text(copy, i)) != NULL; i++) {
        const char *was = *owned_text(&from, i);
        if (was != NULL) ok = (*text = espi_copy_text(was, strlen(was))) != NULL;
    }
    if (!ok) espi_settings_free(copy);
    return ok;
}

static void add_value(espi_text *text, const espi_settings *settings, const setting *s)
{
    const char *field = (const char *)settings + s->offset;
    double number;
    size_t whole;
    bool flag;
    espi_choice choice;
    const char *string;
    char digits[32];
    switch (s->kind) {
    case NUMBER:
        memcpy(&number, field, sizeof number);
        espi_text_number(text, number);
        break;
    case COUNT:
        memcpy(&whole, field, sizeof whole);
        snprintf(digits, sizeof digits, "%zu", whole);
        espi_text_string(text, digits);
        break;
    case FLAG:
        memcpy(&flag, field, sizeof flag);
        espi_text_string(text, flag ? "1" : "0");
        break;
    case CHOICE:
        memcpy(&choice, field, sizeof choice);
        espi_text_string(text, s->choices[choice]);
        break;
    case WEIGHTS:
    case TEXT:
        memcpy(&string, field, sizeof string);
        espi_text_string(text, string != NULL ? string : "");
        break;
    }
}

char *espi_settings_text(const espi_settings *settings)
{
    espi_text text = {0};
    char seed[40];
    if (settings->learner == ESPI_PERCEPTRON) { /* whoever goes on with it shuffles on */
        snprintf(seed, sizeof seed, "seed=%" PRIu64, settings->seed);
        espi_text_string(&text, seed);
    }
    for (const setting *s = learners[settings->learner].settings; s->info.name != NULL; s++) {
        if (text.size > 0) espi_text_string(&text, " ");
        espi_text_string(&text, s->info.name);
        espi_text_string(&text, "=");
        add_value(&text, settings, s);
    }
    return espi_text_take(&text);
}

/* The value of the setting `name`, at which *text must stand: up to a blank or, of the last one, to the end. */
static esp_status take_value(const char **text, const char *name, bool last, char **value, esp_error *err)
{
    const size_t size = strlen(name);
    *value = NULL;
    if (strncmp(*text, name, size) != 0 || (*text)[size] != '=')
        return espi_fail(err, ESP_ERR_PARAM, "the model does not tell its setting %s where it should", name);
    const char *start = *text + size + 1;
    const size_t length = last ? strlen(start) : strcspn(start, " ");
    *text = start + length + (start[length] == ' ');
    *value = espi_copy_text(start, length);
    return *value != NULL ? ESP_OK : espi_no_memory(err);
}

esp_status espi_settings_read(espi_settings *settings, const char *learner, const char *text, esp_error *err)
{
    esp_status status = espi_settings_parse(settings, learner, NULL, 0, err);
    if (status != ESP_OK) return status;
    char *value;
    status = take_value(&text, "seed", false, &value, err);
    if (status == ESP_OK) status = set_seed(settings, value, err);
    espi_free(value);
    for (const setting *s = learners[settings->learner].settings; status == ESP_OK && s->info.name != NULL; s++) {
        status = take_value(&text, s->info.name, s[1].info.name == NULL, &value, err);
        if (status == ESP_OK) status = set_value(settings, s, value, err);
        espi_free(value);
    }
    if (status == ESP_OK) status = espi_settings_check(settings, err);
    if (status != ESP_OK) espi_settings_free(settings);
    return status;
}

/* Adds "name=value, not value" if they differ. */
static void add_difference(espi_text *out, const char *name, const espi_text *was, const espi_text *is)
{
    if (was->size == is->size && (was->size == 0 || memcmp(was->bytes, is->bytes, was->size) == 0)) return;
    if (out->size > 0) espi_text_string(out, "; ");
    espi_text_string(out, name);
    espi_text_string(out, "=");
    if (was->size > 0) espi_text_add(out, was->bytes, was->size);
    else espi_text_string(out, "none");
    espi_text_string(out, ", not ");
    if (is->size > 0) espi_text_add(out, is->bytes, is->size);
    else espi_text_string(out, "none");
}

static void add_seed(espi_text *text, const espi_settings *settings)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, settings->seed);
    espi_text_string(text, digits);
}

void espi_settings_differ(const espi_settings *checkpoint, const espi_settings *given, espi_text *out)
{
    const setting *s = learners[given->learner].settings;
    for (bool last = false; !last; s++) {
        espi_text was = {0}, is = {0};
        last = s->info.name == NULL; /* the seed is in no table */
        if (last) add_seed(&was, checkpoint), add_seed(&is, given);
        else add_value(&was, checkpoint, s), add_value(&is, given, s);
        out->failed = out->failed || was.failed || is.failed;
        add_difference(out, last ? "seed" : s->info.name, &was, &is);
        espi_text_free(&was);
        espi_text_free(&is);
    }
}
