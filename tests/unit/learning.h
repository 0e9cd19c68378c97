/* What the tests of learners share: labelled examples whose classes overlap, and calls that must succeed. */
#ifndef LEARNING_H
#define LEARNING_H

#include "cases.h"
#include "learn/model/model.h"
#include "learn/predictions.h"
#include "learn/train/registry.h"

enum { MOST = 160 };

/* Lines of JSON; an example has a class of its own, which its label follows. */
typedef struct examples {
    char *line[MOST]; /* behind the target */
    char y[MOST][24];
    size_t count, classes;
} examples;

/* Two classes are the numbers -1 and 1, more are "A", "B", ...; 0 makes a regression. Every fourth or so looks like
 * another class. `extra` brings labels, words and features of its own. */
static inline examples examples_of(uint64_t seed, size_t count, size_t classes, bool extra)
{
    static const char *const words[] = {"a", "The", "the", "cat", "u"};
    ref_random random = {seed};
    examples e = {.count = count, .classes = classes};
    const size_t kinds = classes > 0 ? classes : 3;
    for (size_t i = 0; i < count; i++) {
        const size_t kind = i % kinds,
                     seen = ref_random_below(&random, 4) > 0 ? kind : ref_random_below(&random, kinds);
        char *tree = ref_random_small_tree(&random, 14, 1000, extra && i % 2 == 1), *at;
        const double p = (double)seen + ref_random_between(&random, -1, 1), q = ref_random_between(&random, -1, 1);
        at = e.line[i] = malloc(strlen(tree) + 300);
        assert_non_null(at);
        at += sprintf(at, "\"tree\": \"(S (K%zu (W x)) %s)\", \"words\": \"k%zu ", seen, tree, seen);
        for (size_t k = ref_random_below(&random, 5); k > 0; k--)
            at += sprintf(at, "%s ", words[ref_random_below(&random, extra ? 5 : 4)]);
        sprintf(at, "\", \"x\": {\"p\": %.17g, \"%s\": %.17g}", p, extra && i % 3 == 0 ? "own" : "q", q);
        if (classes == 0) sprintf(e.y[i], "%.6f", 2.0 * p - q + 0.3 * ref_random_between(&random, -1, 1));
        else if (classes == 2) strcpy(e.y[i], kind == 0 ? "-1" : "1");
        else sprintf(e.y[i], "\"%c\"", (int)('A' + kind));
        free(tree);
    }
    return e;
}

static inline void examples_free(examples *e)
{
    for (size_t i = 0; i < e->count; i++) free(e->line[i]);
}

/* The examples i with fold[i] == number (`in`) or != number; all of them without a fold. */
static inline esp_dataset *part_of(const examples *e, const uint32_t *fold, size_t number, bool in)
{
    size_t room = 1;
    for (size_t i = 0; i < e->count; i++) room += strlen(e->line[i]) + 40;
    char *lines = malloc(room), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < e->count; i++)
        if (fold == NULL || (fold[i] == number) == in) at += sprintf(at, "{\"y\": %s, %s}\n", e->y[i], e->line[i]);
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

static inline esp_dataset *labelled(uint64_t seed, size_t count, size_t classes, bool extra)
{
    examples e = examples_of(seed, count, classes, extra);
    esp_dataset *data = part_of(&e, NULL, 0, true);
    examples_free(&e);
    return data;
}

/* Settings as "C=10 multiclass=ovo"; values without blanks. */
typedef struct options {
    char text[200];
    esp_setting setting[8];
    size_t count;
} options;

static inline void options_of(options *o, const char *text)
{
    o->count = 0;
    snprintf(o->text, sizeof o->text, "%s", text);
    for (char *at = strtok(o->text, " "); at != NULL; at = strtok(NULL, " ")) {
        char *equal = strchr(at, '=');
        assert_non_null(equal);
        *equal = '\0';
        o->setting[o->count++] = (esp_setting){at, equal + 1};
    }
}

/* Settings and targets as a learner has them. */
static inline espi_settings *settings_of(const char *learner, const char *settings)
{
    options o;
    espi_settings *out = NULL;
    esp_error err = {0};
    options_of(&o, settings);
    assert_ok(espi_settings_new(espi_learner_find(learner, &err), o.setting, o.count, &out, &err), settings, &err);
    return out;
}

static inline espi_targets learned_targets(const espi_settings *settings, const esp_dataset *data)
{
    espi_targets targets = {0};
    esp_error err = {0};
    assert_ok(settings->learner->targets(settings, data, &targets, &err), "targets", &err);
    return targets;
}

typedef struct kept_scores {
    double *scores;
    size_t outputs;
} kept_scores;

static inline void keep_score(void *context, size_t example, const double *score, const double *variance)
{
    const kept_scores *k = context;
    (void)variance;
    memcpy(k->scores + example * k->outputs, score, k->outputs * sizeof *score);
}

/* Scores of all examples by fits that have not seen them. */
static inline void scores_of(const espi_problem *problem, const uint32_t *fold, size_t folds, double *scores)
{
    kept_scores kept = {scores, problem->settings->learner->outputs(problem->settings, problem->targets->classes)};
    const espi_trial trial = {.settings = problem->settings, .take = keep_score, .context = &kept};
    esp_error err = {0};
    assert_ok(problem->settings->learner->out_of_fold(problem, &(espi_folds){fold, folds, 0, folds}, &trial, 1, &err),
              "scores", &err);
}

static inline esp_status train(const char *learner, const char *kernel, const esp_dataset *data, const char *settings,
                               const esp_run *run, esp_model **model, esp_error *err)
{
    options o;
    options_of(&o, settings);
    esp_kernel *k = kernel_of(kernel);
    *model = (esp_model *)(uintptr_t)1;
    const esp_status status = esp_train(learner, k, data, o.setting, o.count, run, model, err);
    esp_kernel_free(k);
    assert_true((status == ESP_OK) == (*model != NULL));
    return status;
}

static inline esp_model *trained(const char *learner, const char *kernel, const esp_dataset *data, const char *settings,
                                 const esp_run *run)
{
    esp_model *model;
    esp_error err = {0};
    assert_ok(train(learner, kernel, data, settings, run, &model, &err), settings, &err);
    return model;
}

static inline esp_predictions *predicted(const esp_model *model, const esp_dataset *data, int threads)
{
    esp_predictions *p = NULL;
    esp_error err = {0};
    assert_ok(esp_predict(model, data, &(esp_run){.threads = threads}, &p, &err), "esp_predict", &err);
    assert_int_equal(esp_predictions_count(p), esp_dataset_count(data));
    return p;
}

static inline esp_status validate(const char *learner, const char *kernel, const esp_dataset *data,
                                  const char *settings, size_t folds, uint64_t seed, const esp_run *run,
                                  esp_predictions **p, esp_error *err)
{
    options o;
    options_of(&o, settings);
    esp_kernel *k = kernel_of(kernel);
    *p = (esp_predictions *)(uintptr_t)1;
    const esp_status status = esp_cross_validate(learner, k, data, o.setting, o.count, folds, seed, run, p, err);
    esp_kernel_free(k);
    assert_true((status == ESP_OK) == (*p != NULL));
    return status;
}

static inline esp_predictions *validated(const char *learner, const char *kernel, const esp_dataset *data,
                                         const char *settings, size_t folds, uint64_t seed)
{
    esp_predictions *p;
    esp_error err = {0};
    assert_ok(validate(learner, kernel, data, settings, folds, seed, NULL, &p, &err), settings, &err);
    return p;
}

/* Refused as a wrong argument, with this clause in the sentence. */
static inline void assert_refused(esp_status status, const esp_error *err, const char *clause)
{
    if (status != ESP_ERR_PARAM && status != ESP_ERR_PARSE)
        fail_msg("'%s': status %d: %s", clause, (int)status, err->message);
    if (strstr(err->message, clause) == NULL) fail_msg("'%s' instead of '%s'", err->message, clause);
}

/* Means, variances and probabilities. */
static inline void assert_near_predictions(const esp_predictions *p, const esp_predictions *q, double tolerance)
{
    assert_int_equal(esp_predictions_count(p), esp_predictions_count(q));
    for (size_t i = 0; i < esp_predictions_count(p); i++) {
        assert_close(esp_predictions_score(p, i), esp_predictions_score(q, i), tolerance, "mean");
        assert_close(esp_predictions_variance(p, i), esp_predictions_variance(q, i), tolerance, "variance");
        assert_close(esp_predictions_latent_variance(p, i), esp_predictions_latent_variance(q, i), tolerance, "latent");
        for (size_t c = 0; c < esp_predictions_classes(p); c++)
            assert_close(esp_predictions_probability(p, i, c), esp_predictions_probability(q, i, c), tolerance,
                         "probability");
    }
}

/* Cross-validation predicts every fold as a model does that was trained on the file of all the others; columns may be
 * `tolerance` apart, relative to what is larger than 1. */
static inline void compare_with_training(const examples *e, const char *learner, const char *kernel,
                                         const char *settings, size_t folds, uint64_t seed, double tolerance)
{
    esp_dataset *data = part_of(e, NULL, 0, true);
    uint32_t fold[MOST];
    esp_error err = {0};
    assert_ok(esp_folds(learner, data, folds, seed, fold, &err), "folds", &err);
    esp_predictions *cv = validated(learner, kernel, data, settings, folds, seed);
    assert_int_equal(esp_predictions_count(cv), e->count);
    for (size_t f = 0; f < folds; f++) {
        esp_dataset *in = part_of(e, fold, f, true), *out = part_of(e, fold, f, false);
        esp_model *m = trained(learner, kernel, out, settings, NULL);
        esp_predictions *p = predicted(m, in, 1);
        assert_int_equal(esp_predictions_columns(p), esp_predictions_columns(cv));
        for (size_t i = 0, k = 0; i < e->count; i++) {
            if (fold[i] != f) continue;
            if (e->classes > 0) assert_string_equal(esp_predictions_label(p, k), esp_predictions_label(cv, i));
            for (size_t c = 0; c < esp_predictions_columns(p); c++) {
                const double is = esp_predictions_column(cv, i, c), expected = esp_predictions_column(p, k, c);
                if (!(fabs(is - expected) <= tolerance * fmax(1.0, fabs(expected))))
                    fail_msg("%s: example %zu, column %zu: %.17g instead of %.17g", settings, i, c, is, expected);
            }
            k++;
        }
        esp_predictions_free(p);
        esp_model_free(m);
        esp_dataset_free(in);
        esp_dataset_free(out);
    }
    esp_predictions_free(cv);
    esp_dataset_free(data);
}

/* The number behind a key in the model's summary. */
static inline double told(const esp_model *model, const char *key)
{
    char *summary = NULL, line[80];
    esp_error err = {0};
    assert_ok(esp_model_summary(model, &summary, &err), "summary", &err);
    snprintf(line, sizeof line, "\n%s\t", key);
    const char *at = strstr(summary, line);
    if (at == NULL) fail_msg("there is no %s in\n%s", key, summary);
    const double value = strtod(at + strlen(line), NULL);
    esp_text_free(summary);
    return value;
}

/* A hyperparameter of the model, by its name. */
static inline double hyper(const esp_model *model, const char *name)
{
    char *lines = NULL;
    esp_error err = {0};
    assert_ok(esp_model_hyperparameters(model, &lines, &err), "hyperparameters", &err);
    double value = NAN, before = INFINITY;
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        const double here = strtod(tab + 1, NULL);
        assert_true(here <= before); /* the largest first */
        before = here;
        if (strncmp(line, name, (size_t)(tab - line)) == 0 && name[tab - line] == '\0') value = here;
    }
    if (isnan(value)) fail_msg("there is no %s", name);
    esp_text_free(lines);
    return value;
}

/* For out_of_memory_everywhere: a model is learned, and predicts what it has learned from. */
typedef struct learning_case {
    const char *learner, *kernel;
    esp_setting setting[4];
    size_t settings;
    const esp_dataset *data;
} learning_case;

static inline esp_status train_and_predict(const void *argument, esp_error *err)
{
    const learning_case *c = argument;
    const esp_run run = {.threads = 1};
    esp_kernel *kernel = NULL;
    esp_model *model = NULL;
    esp_predictions *p = NULL;
    esp_status status = esp_kernel_parse(c->kernel, &kernel, err);
    if (status == ESP_OK) status = esp_train(c->learner, kernel, c->data, c->setting, c->settings, &run, &model, err);
    if (status == ESP_OK) status = esp_predict(model, c->data, &run, &p, err);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_kernel_free(kernel);
    return status;
}

/* What is learned in many tests; the first PLAIN without probabilities. */
static const struct {
    const char *learner, *settings;
    size_t classes;
} learned_cases[] = {
    {"svm", "C=2", 2},
    {"svm", "C=2", 4},
    {"svm", "C=2 multiclass=ovo", 4},
    {"svr", "C=2 epsilon=0.05", 0},
    {"svm", "C=2 probability=1", 2},
    {"svm", "C=2 probability=1", 3},
};
enum { PLAIN = 4, LEARNED_CASES = sizeof learned_cases / sizeof *learned_cases };

#endif
