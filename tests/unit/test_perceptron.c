/* Perceptrons against a slow one that is written here from the definition alone: kernel values from explicit features,
 * weights per class kept by name, sums over all updates, averages and votes over all steps. */
#include "perceptrons.h"

/* ---------------------------------------------------------------- kernels */

typedef enum kernel_kind { SST, ST, SST_POLY, NORM_POLY, KERNELS } kernel_kind;

static const char *const expressions[KERNELS] = {
    [SST] = "sst(tree, lambda=0.37)",
    [ST] = "st(tree, lambda=0.6)",
    [SST_POLY] = "sst(tree, lambda=0.37) + 0.25*poly(x, degree=3)",
    [NORM_POLY] = "norm(sst(tree, lambda=0.37)) + poly(x, degree=2)",
};

static double tree_value(const world *w, size_t i, size_t j, kernel_kind kind)
{
    const ref_weights weights = {.lambda = kind == ST ? 0.6 : 0.37, .alpha = kind == ST ? 0.0 : 1.0};
    ref_features a = ref_features_of(w->tree[i], &weights), b = ref_features_of(w->tree[j], &weights);
    const double value = ref_features_dot(&a, &b);
    ref_features_free(&a);
    ref_features_free(&b);
    return value;
}

static void kernel_values(const world *w, kernel_kind kind, double value[WORLD][WORLD])
{
    for (size_t i = 0; i < w->count; i++)
        for (size_t j = 0; j <= i; j++) value[i][j] = value[j][i] = tree_value(w, i, j, kind);
    double self[WORLD];
    for (size_t i = 0; i < w->count; i++) self[i] = value[i][i];
    for (size_t i = 0; i < w->count; i++)
        for (size_t j = 0; j < w->count; j++) {
            if (kind == NORM_POLY) value[i][j] = self[i] > 0 && self[j] > 0 ? value[i][j] / sqrt(self[i] * self[j]) : 0;
            if (kind == SST_POLY) value[i][j] += 0.25 * ref_poly(w->x[i], w->x[j], 1.0, 1.0, 3);
            if (kind == NORM_POLY) value[i][j] += ref_poly(w->x[i], w->x[j], 1.0, 1.0, 2);
        }
}

/* ------------------------------------------------------- the slow perceptron */

enum { CLASSES = 8, UPDATES = 4 * WORLD };

typedef struct slow {
    char name[CLASSES][12]; /* in the order they came */
    double weight[CLASSES];
    size_t classes, updates, steps, mistakes;
    size_t example[UPDATES], step[UPDATES];
    double c[UPDATES][CLASSES];
    double margin;
} slow;

/* Place of each class in the order of numbers, or of bytes. */
static void order_classes(const slow *s, size_t place[CLASSES])
{
    bool numbers = true;
    double value[CLASSES];
    for (size_t c = 0; c < s->classes; c++) {
        char *end;
        value[c] = strtod(s->name[c], &end);
        numbers = numbers && *end == '\0';
    }
    for (size_t c = 0; c < s->classes; c++) {
        place[c] = 0;
        for (size_t d = 0; d < s->classes; d++)
            place[c] += numbers ? value[d] < value[c] : strcmp(s->name[d], s->name[c]) < 0;
    }
}

/* *tie: how near to one another scores count as equal. */
static double slow_score(const slow *s, const double *kernel, size_t class, size_t steps, double *tie)
{
    double sum = 0.0, size = 0.0;
    for (size_t e = 0; e < s->updates; e++) {
        if (s->step[e] > steps) continue;
        sum += s->c[e][class] * kernel[s->example[e]];
        size += fabs(s->c[e][class] * kernel[s->example[e]]);
    }
    *tie = 1e-10 * size;
    return sum;
}

static size_t slow_class(slow *s, const char *label, bool *new)
{
    char *end;
    const double value = strtod(label, &end);
    for (size_t c = 0; c < s->classes; c++)
        if (*end == '\0' ? strtod(s->name[c], NULL) == value : strcmp(s->name[c], label) == 0) {
            *new = false;
            return c;
        }
    const size_t c = s->classes++;
    *new = true;
    strcpy(s->name[c], label);
    s->weight[c] = strcmp(label, "1") == 0 ? 2.5 : strcmp(label, "B") == 0 ? 0.3 : 1.0;
    for (size_t e = 0; e < s->updates; e++) s->c[e][c] = c == 1 ? -s->c[e][0] : 0.0;
    return c;
}

/* One example; score[place] per class. Returns whether it is an update. */
static bool slow_learn(slow *s, const world *w, double kernel[WORLD][WORLD], size_t i, bool weights,
                       double score[CLASSES])
{
    size_t place[CLASSES], told = CLASSES;
    bool new, wrong = false;
    const size_t class = slow_class(s, w->label[i], &new);
    double raw[CLASSES], change[CLASSES];
    order_classes(s, place);
    s->steps++;
    double tie = 0.0;
    for (size_t c = 0; c < s->classes; c++) {
        double own;
        raw[c] = score[place[c]] = slow_score(s, kernel[i], c, s->steps, &own);
        tie += own;
    }
    for (size_t p = 0; p < s->classes; p++) /* the first in order of those that win */
        for (size_t c = 0; c < s->classes; c++)
            if (place[c] == p && !(new &&c == class) && (told == CLASSES || raw[c] > raw[told] + tie)) told = c;
    s->mistakes += told != class;
    for (size_t c = 0; c < s->classes; c++) {
        const double y = c == class ? 1.0 : -1.0;
        const bool errs = y * raw[c] <= s->margin + tie;
        if (!errs && fabs(y * raw[c] - s->margin) < 1e-8) fail_msg("example %zu is too close to call", i);
        change[c] = errs ? y * (weights ? s->weight[class] : 1.0) : 0.0;
        wrong = wrong || errs;
    }
    if (!wrong) return false;
    memcpy(s->c[s->updates], change, sizeof change);
    s->example[s->updates] = i;
    s->step[s->updates++] = s->steps;
    return true;
}

/* ----------------------------------------------------------------- the tests */

typedef struct scenario {
    kernel_kind kernel;
    const char *labels, *settings;
    double margin;
    size_t epochs;
    bool weights;
} scenario;

static const scenario scenarios[] = {
    {SST, "1 -1", "", 0.0, 1, false},
    {ST, "-1 1", "margin=0.5", 0.5, 2, false},
    {SST_POLY, "1 2", "class-weight=1=2.5", 0.0, 2, true},
    {NORM_POLY, "B A C", "margin=1.25 class-weight=B=0.3,1=7", 1.25, 2, true},
    {SST, "C B A D", "", 0.0, 2, false},
    {SST_POLY, "10 9 2 x", "margin=0.1", 0.1, 2, false},
    {ST, "10 9 2 -3 1 1.0 1e1", "class-weight=1=2.5", 0.0, 1, true},
    {NORM_POLY, "x 5", "", 0.0, 1, false},
    {SST, "5 x", "", 0.0, 1, false},
};

static void same_state(const espi_perceptron *p, const slow *s, const double *score, size_t i)
{
    size_t place[CLASSES];
    order_classes(s, place);
    assert_int_equal(p->classes, s->classes);
    assert_int_equal(p->outputs, s->classes > 2 ? s->classes : 1);
    assert_int_equal(p->state.steps, s->steps);
    assert_int_equal(p->mistakes, s->mistakes);
    assert_int_equal(p->updates, s->updates);
    for (size_t c = 0; c < s->classes; c++) {
        const size_t k = s->classes > 2 ? place[c] : 0;
        assert_string_equal(p->class[place[c]].name, s->name[c]);
        if (s->classes == 2 && place[c] == 0) continue;
        const double is = p->score[k], expected = score[place[c]];
        if (!(fabs(is - expected) <= 1e-9 * fmax(1.0, fabs(expected))))
            fail_msg("step %zu, class %s: %.17g instead of %.17g", i, s->name[c], is, expected);
        for (size_t e = 0; e < s->updates; e++) {
            assert_int_equal(p->step[e], s->step[e]);
            assert_true(p->coefficient[e * p->outputs + k] == s->c[e][c]);
        }
    }
}

/* Mean over all steps of the score, or of its sign. */
static double over_steps(const slow *s, const double *kernel, size_t class, bool vote)
{
    double sum = 0.0;
    for (size_t t = 1; t <= s->steps; t++) {
        double tie;
        const double score = slow_score(s, kernel, class, t, &tie);
        sum += !vote ? score : score > tie ? 1.0 : -1.0;
    }
    return sum / (double)s->steps;
}

/* What the model predicts, in each of the three ways and for every number of threads. */
static void same_predictions(espi_perceptron *p, const slow *s, const world *w, double kernel[WORLD][WORLD])
{
    size_t place[CLASSES];
    order_classes(s, place);
    for (int way = 0; way < 3; way++) {
        esp_model *model = NULL;
        esp_error err = {0};
        espi_perceptron_settings *settings = (espi_perceptron_settings *)(void *)p->state.settings;
        settings->average = way == 1;
        settings->vote = way == 2;
        assert_ok(espi_perceptron_model(p, &model, &err), "model", &err);
        esp_predictions *one = predicted(model, w->data, 1), *many = predicted(model, w->data, 3);
        assert_memory_equal(one->column, many->column, one->count * one->columns * sizeof *one->column);
        for (size_t i = 0; i < w->count; i++)
            for (size_t c = 0; c < s->classes; c++) {
                if (s->classes == 2 && place[c] == 0) continue;
                const double is = esp_predictions_column(one, i, s->classes > 2 ? place[c] : 0);
                const double expected = way == 0 ? slow_score(s, kernel[i], c, s->steps, &(double){0.0})
                                                 : over_steps(s, kernel[i], c, way == 2);
                if (!(fabs(is - expected) <= 1e-9 * fmax(1.0, fabs(expected))))
                    fail_msg("way %d, example %zu: %.17g instead of %.17g", way, i, is, expected);
            }
        esp_predictions_free(one);
        esp_predictions_free(many);
        esp_model_free(model);
    }
}

static void play(const scenario *sc, const char *form, uint64_t seed)
{
    static double kernel[WORLD][WORLD];
    static slow s;
    world w;
    char settings[200];
    double score[CLASSES];
    size_t updates = 0;
    esp_error err = {0};
    world_make(&w, seed, WORLD, sc->labels);
    kernel_values(&w, sc->kernel, kernel);
    s = (slow){.margin = sc->margin};
    snprintf(settings, sizeof settings, "form=%s %s", form, sc->settings);
    espi_perceptron *p = perceptron_of(expressions[sc->kernel], settings);
    for (size_t i = 0; i < sc->epochs * w.count; i++) {
        updates += slow_learn(&s, &w, kernel, i % w.count, sc->weights, score);
        assert_ok(espi_perceptron_learn(p, w.data, i % w.count, &err), "learn", &err);
        same_state(p, &s, score, i);
    }
    assert_true(updates > 10 && updates < sc->epochs * w.count);
    same_predictions(p, &s, &w, kernel);
    espi_perceptron_free(p);
    world_free(&w);
}

static void as_the_definition(void **state)
{
    (void)state;
    static const char *const forms[] = {"dag", "forest", "plain"};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        for (uint64_t seed = 0; seed < REPEATS(3); seed++) {
            print_message("%s, %s, %s, seed %d\n", expressions[scenarios[i].kernel], scenarios[i].labels,
                          forms[(i + seed) % 3], (int)seed);
            play(&scenarios[i], forms[(i + seed) % 3], 100 + seed);
        }
}

/* Accuracy and F1 of the predictions before learning, worked out by hand. Every example is linear in one feature. */
static void running_quality(void **state)
{
    (void)state;
    static const char lines[] = "{\"y\": \"A\", \"x\": {\"a\": 1}}\n"  /* no class is known: a miss of A */
                                "{\"y\": \"A\", \"x\": {\"a\": 2}}\n"  /* A alone: a hit */
                                "{\"y\": \"B\", \"x\": {\"b\": 1}}\n"  /* A is told: a miss of B, a false alarm of A */
                                "{\"y\": \"B\", \"x\": {\"b\": 3}}\n"  /* S(B) = 3: a hit */
                                "{\"y\": \"B\", \"x\": {\"a\": 1}}\n"  /* S(B) = -1: a miss of B, a false alarm of A */
                                "{\"y\": \"A\", \"x\": {\"b\": 1}}\n"; /* S(B) = 1: a miss of A, a false alarm of B */
    esp_dataset *data = dataset_of(lines);
    esp_online *online = online_of("linear(x)", "");
    esp_online_stats stats;
    esp_error err = {0};
    assert_ok(esp_online_learn(online, data, NULL, &err), "learn", &err);
    esp_online_measure(online, &stats);
    assert_int_equal(stats.examples, 6);
    assert_int_equal(stats.mistakes, 4);
    assert_int_equal(stats.updates, 4);
    assert_int_equal(stats.classes, 2);
    assert_int_equal(stats.epoch, 1);
    assert_close(stats.accuracy, 2.0 / 6.0, 1e-15, "accuracy");
    assert_close(stats.f1, 2.0 / (2.0 + 2.0 + 1.0), 1e-15, "F1 of B"); /* 1 hit, 2 misses, 1 false alarm */
    assert_true(stats.bytes > 0);
    esp_online_free(online);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_definition),
        cmocka_unit_test(running_quality),
    };
    return cmocka_run_group_tests_name("perceptron", tests, NULL, no_blocks_left);
}
