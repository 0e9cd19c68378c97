/* The perceptron as a learner (learner.h) that takes one example after the other (online.h). */
#include "base/status.h"
#include "learn/perceptron/perceptron.h"

#include <string.h>

/* ---------------------------------------------------------------- settings */

static const char *const forms[] = {
    [ESPI_FORM_DAG] = "dag", [ESPI_FORM_FOREST] = "forest", [ESPI_FORM_PLAIN] = "plain", NULL};

/* All that can be known before the classes are: how weights are written. */
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

#define FIELD(name) .offset = offsetof(espi_perceptron_settings, name)
/* class-weight comes last, because its labels may have blanks: see espi_settings_read. */
/* clang-format off */
static const espi_setting settings[] = {
    {.info = {"form", "how scores are computed, with the same result: one shared DAG, tree by tree, pair by pair",
              "dag", "dag, forest or plain", ESP_KIND_CHOICE},
     FIELD(form), .choices = forms},
    {.info = {"epochs", "how often all examples are gone through", "1", "a whole number >= 0", ESP_KIND_WHOLE},
     FIELD(epochs), .low = 0.0, .high = 9e15},
    {.info = {"average", "predict with the mean of the weights after each example", "0", "a flag", ESP_KIND_FLAG},
     FIELD(average)},
    {.info = {"vote", "predict by a vote of the weights after each example", "0", "a flag", ESP_KIND_FLAG},
     FIELD(vote)},
    {.info = {"margin", "learn also from right scores that are not above this", "0", "a number >= 0",
              ESP_KIND_NUMBER},
     FIELD(margin), .low = 0.0, .high = 1e300},
    {.info = {"shuffle", "go through the examples in random order, another one in each epoch", "0", "a flag",
              ESP_KIND_FLAG},
     FIELD(shuffle)},
    {.info = {"class-weight", "how much examples change the weights, by class", "", "label=weight,...",
              ESP_KIND_WEIGHTS},
     FIELD(class_weight), .check = check_weights},
    {.info = {0}},
};
/* clang-format on */

static const espi_perceptron_settings *view(const espi_settings *s)
{
    return (const espi_perceptron_settings *)(const void *)s;
}

static esp_status check(const espi_settings *s, esp_error *err)
{
    if (view(s)->average && view(s)->vote)
        return espi_fail(err, ESP_ERR_PARAM, "average and vote exclude each other: they are two ways to predict");
    return ESP_OK;
}

static esp_status check_targets(const espi_settings *s, const espi_targets *targets, esp_error *err)
{
    return espi_weights_check(view(s)->class_weight, targets, err);
}

/* The one that was given, and is on, replaces the other. */
static void replaced(espi_settings *settings_, const esp_setting *given, size_t count)
{
    espi_perceptron_settings *s = (espi_perceptron_settings *)(void *)settings_;
    bool average = false, vote = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(given[i].name, "average") == 0) average = s->average;
        if (strcmp(given[i].name, "vote") == 0) vote = s->vote;
    }
    if (average && !vote) s->vote = false;
    if (vote && !average) s->average = false;
}

/* -------------------------------------------------------------- by example */

static espi_perceptron *own(espi_online_state *state) { return (espi_perceptron *)(void *)state; }
static const espi_perceptron *own_const(const espi_online_state *state)
{
    return (const espi_perceptron *)(const void *)state;
}

static esp_status start(espi_settings *s, const esp_kernel *kernel, espi_online_state **out, esp_error *err)
{
    espi_perceptron *p;
    const esp_status status = espi_perceptron_new(s, kernel, &p, err);
    *out = status == ESP_OK ? &p->state : NULL;
    return status;
}

static esp_status restore(const esp_model *model, espi_settings *s, const esp_run *run, espi_online_state **out,
                          esp_error *err)
{
    espi_perceptron *p;
    const esp_status status = espi_perceptron_from_model(model, s, run, &p, err);
    *out = status == ESP_OK ? &p->state : NULL;
    return status;
}

static void release(espi_online_state *state) { espi_perceptron_free(own(state)); }

static esp_status learn(espi_online_state *state, const esp_dataset *data, size_t row, esp_error *err)
{
    return espi_perceptron_learn(own(state), data, row, err);
}

static void leave(espi_online_state *state) { espi_perceptron_leave(own(state)); }

static esp_status model(const espi_online_state *state, esp_model **out, esp_error *err)
{
    return espi_perceptron_model(own_const(state), out, err);
}

static size_t bytes(const espi_online_state *state) { return espi_perceptron_bytes(own_const(state)); }

static void measure(const espi_online_state *state, esp_online_stats *out)
{
    const espi_perceptron *p = own_const(state);
    const espi_growing_size size = p->sum != NULL ? espi_growing_measure(p->sum) : (espi_growing_size){0};
    out->mistakes = p->mistakes;
    out->updates = p->updates;
    out->classes = p->classes;
    out->nodes = size.nodes;
    out->vertices = size.vertices;
    espi_perceptron_quality(p, &out->accuracy, &out->f1);
}

static const espi_online_class online = {.start = start,
                                         .restore = restore,
                                         .free = release,
                                         .learn = learn,
                                         .leave = leave,
                                         .model = model,
                                         .bytes = bytes,
                                         .measure = measure,
                                         .replaced = replaced};

/* ------------------------------------------------------------- all at once */

static size_t outputs(const espi_settings *s, size_t classes)
{
    (void)s;
    return espi_class_outputs(classes, false);
}

const espi_learner espi_learner_perceptron = {.name = "perceptron",
                                              .help = "perceptron for classes, one example after the other",
                                              .settings = settings,
                                              .settings_size = sizeof(espi_perceptron_settings),
                                              .capabilities = ESP_LEARNS_CLASSES | ESP_NEEDS_TARGET | ESP_LEARNS_ONLINE,
                                              .check = check,
                                              .check_targets = check_targets,
                                              .targets = espi_targets_classes,
                                              .outputs = outputs,
                                              .out_of_fold = espi_perceptron_out_of_fold,
                                              .online = &online};
