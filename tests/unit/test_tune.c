/* Grid search against cross-validation of every combination. */
#include "learning.h"

#define KERNEL "norm(sst(tree, lambda=0.4)) + 0.5*rbf(x, gamma=1)"

enum { FOLDS = 3, SEED = 5 };

static esp_status tune(const char *learner, const char *kernel, const esp_dataset *data, const char *settings,
                       const esp_grid *grid, size_t lines, const esp_run *run, esp_tuning **t, esp_error *err)
{
    options o;
    options_of(&o, settings);
    esp_kernel *k = kernel_of(kernel);
    *t = (esp_tuning *)(uintptr_t)1;
    const esp_status status =
        esp_tune(learner, k, data, o.setting, o.count, grid, lines, NULL, FOLDS, SEED, run, t, err);
    esp_kernel_free(k);
    assert_true((status == ESP_OK) == (*t != NULL));
    return status;
}

/* Accuracy, or minus the root of the mean squared error, from the targets' texts. */
static double score_of(const esp_predictions *p, const esp_dataset *data)
{
    const size_t n = esp_dataset_count(data);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const char *target = esp_dataset_target(data, i), *label = esp_predictions_label(p, i);
        if (label != NULL) sum += strcmp(label, target) == 0;
        else sum += pow(esp_predictions_score(p, i) - strtod(target, NULL), 2.0);
    }
    return esp_predictions_are_classes(p) ? sum / (double)n : -sqrt(sum / (double)n);
}

static void check_tuning(const char *learner, const esp_dataset *data, const char *settings, const esp_grid *grid,
                         size_t lines, size_t combinations, const esp_run *run)
{
    esp_tuning *t;
    esp_error err = {0};
    assert_ok(tune(learner, KERNEL, data, settings, grid, lines, run, &t, &err), settings, &err);
    assert_int_equal(esp_tuning_count(t), combinations);
    size_t best = 0;
    for (size_t c = 0; c < combinations; c++) {
        char all[200];
        snprintf(all, sizeof all, "%s", settings);
        for (size_t l = 0; l < lines; l++) {
            const char *value = esp_tuning_value(t, c, l), *name = grid[l].name;
            if (strcmp(name, "lambda") != 0 && strcmp(name, "gamma") != 0)
                sprintf(all + strlen(all), " %s=%s", name, value);
            char parameter[40];
            sprintf(parameter, "%s=%s", name, value);
            if (strcmp(name, "lambda") == 0 || strcmp(name, "gamma") == 0)
                if (strstr(esp_kernel_text(esp_tuning_kernel(t, c)), parameter) == NULL)
                    fail_msg("no %s in %s", parameter, esp_kernel_text(esp_tuning_kernel(t, c)));
        }
        esp_predictions *p = validated(learner, esp_kernel_text(esp_tuning_kernel(t, c)), data, all, FOLDS, SEED);
        const double score = score_of(p, data);
        if (!(fabs(esp_tuning_score(t, c) - score) <= (esp_predictions_are_classes(p) ? 1e-12 : 1e-4)))
            fail_msg("%s: %.17g instead of %.17g", all, esp_tuning_score(t, c), score);
        esp_predictions_free(p);
        if (esp_tuning_score(t, c) > esp_tuning_score(t, best)) best = c;
    }
    assert_int_equal(esp_tuning_best(t), best);
    esp_tuning_free(t);
}

static void test_every_combination(void **state)
{
    (void)state;
    esp_dataset *two = labelled(120, 70, 2, false), *three = labelled(121, 70, 3, false);
    esp_dataset *values = labelled(122, 60, 0, false);
    static const esp_grid both[] = {{"C", "0.1,1,10"}, {"lambda", "0.2,0.8"}};
    static const esp_grid turned[] = {{"lambda", "0.2,0.8"}, {"gamma", "0.5"}, {"C", "10,1"}};
    static const esp_grid ways[] = {{"multiclass", "ovr,ovo"}, {"C", "0.5,5"}, {"class-weight", "balanced,A=2"}};
    static const esp_grid errors[] = {{"epsilon", "0.01,1"}, {"C", "0.1,10,1"}};
    const esp_run threads = {.threads = 3}, little = {.memory = 3 * 70 * sizeof(float)};
    check_tuning("svm", two, "tolerance=1e-6 positive-weight=2", both, 2, 6, &threads);
    check_tuning("svm", three, "tolerance=1e-6 class-weight=balanced", turned, 3, 4, &little);
    check_tuning("svm", three, "tolerance=1e-6", ways, 3, 8, NULL);
    check_tuning("svr", values, "tolerance=1e-6", errors, 2, 6, &threads);
    check_tuning("svr", values, "tolerance=1e-6", both, 2, 6, NULL);
    esp_dataset_free(two);
    esp_dataset_free(three);
    esp_dataset_free(values);
}

/* Up and down, to where every variable is at its bound: a warm start changes nothing. */
static void test_warm_starts(void **state)
{
    (void)state;
    esp_dataset *two = labelled(120, 70, 2, false), *values = labelled(122, 60, 0, false);
    static const esp_grid cost[] = {{"C", "100,0.01,1,10"}};
    check_tuning("svm", two, "tolerance=1e-6", cost, 1, 4, NULL);
    check_tuning("svr", values, "tolerance=1e-6", cost, 1, 4, NULL);
    esp_dataset_free(two);
    esp_dataset_free(values);
}

/* Equal scores: the first is the best. */
static void test_first_of_equals(void **state)
{
    (void)state;
    esp_dataset *data = labelled(123, 30, 2, false);
    static const esp_grid grid[] = {{"C", "1,1,1.0"}};
    esp_tuning *t;
    esp_error err = {0};
    assert_ok(tune("svm", KERNEL, data, "", grid, 1, NULL, &t, &err), "tune", &err);
    assert_int_equal(esp_tuning_best(t), 0);
    assert_true(esp_tuning_score(t, 0) == esp_tuning_score(t, 2));
    assert_string_equal(esp_tuning_value(t, 2, 0), "1.0");
    esp_tuning_free(t);
    esp_tuning_free(NULL);
    esp_dataset_free(data);
}

static int count_calls(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    ++*(size_t *)user;
    return 0;
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)user, (void)fraction;
    return strcmp(stage, "searching") == 0;
}

static void test_errors(void **state)
{
    (void)state;
    esp_dataset *data = labelled(124, 30, 3, false);
    static const struct {
        esp_grid grid[2];
        size_t lines;
        const char *clause;
    } wrong[] = {
        {{{"C", "1"}}, 0, "grid is empty"},
        {{{"lamda", "1,2"}}, 1, "'lamda'"},
        {{{"epsilon", "1,2"}}, 1, "'epsilon'"},
        {{{"C", "1,,2"}}, 1, "C has an empty value"},
        {{{"C", ""}}, 1, "C has an empty value"},
        {{{"C", "1,"}}, 1, "C has an empty value"},
        {{{"C", "1,2"}, {"C", "3"}}, 2, "two lines for C"},
        {{{"C", "1,2,0"}}, 1, "C is '0'"},
        {{{"lambda", "0.4,x"}}, 1, "'x'"},
        {{{"C", "1"}, {"lambda", "0.4,-1"}}, 2, "-1"},
        {{{"multiclass", "ovr,all"}}, 1, "'all'"},
        {{{"class-weight", "balanced,Z=2"}}, 1, "'Z'"},
    };
    esp_tuning *t;
    esp_error err = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t calls = 0;
        const esp_run run = {.progress = count_calls, .user = &calls};
        assert_refused(tune("svm", KERNEL, data, "", wrong[i].grid, wrong[i].lines, &run, &t, &err), &err,
                       wrong[i].clause);
        if (calls > 0) fail_msg("told after work had begun: %s", err.message);
    }
    static const esp_grid cost[] = {{"C", "1,2"}};
    const esp_run stop = {.progress = stop_at_once};
    assert_int_equal(tune("svm", KERNEL, data, "keep-partial=1", cost, 1, &stop, &t, &err), ESP_ERR_CANCELLED);
    assert_refused(tune("svm", KERNEL, data, "C=0", cost, 1, NULL, &t, &err), &err, "C is '0'");
    assert_refused(tune("svr", KERNEL, data, "", cost, 1, NULL, &t, &err), &err, "example 1 is 'A'");
    assert_refused(tune("svm", "sst(nothing)", data, "", cost, 1, NULL, &t, &err), &err, "'nothing'");
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_warm_starts),
        cmocka_unit_test(test_first_of_equals),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("tune", tests, NULL, no_blocks_left);
}
