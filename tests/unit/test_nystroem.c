/* Support vector machines on Nystroem features: as the exact ones where the pivots span everything. */
#include "learning.h"

#define KERNEL "norm(sst(tree, lambda=0.4)) + 0.5*norm(linear(words)) + 0.2*rbf(x)"

static double worst_difference(const esp_predictions *a, const esp_predictions *b)
{
    double worst = 0.0;
    assert_int_equal(esp_predictions_columns(a), esp_predictions_columns(b));
    for (size_t i = 0; i < esp_predictions_count(a); i++)
        for (size_t c = 0; c < esp_predictions_columns(a); c++)
            worst = fmax(worst, fabs(esp_predictions_column(a, i, c) - esp_predictions_column(b, i, c)));
    return worst;
}

static void test_all_examples_as_pivots_are_the_exact_machine(void **state)
{
    (void)state;
    for (size_t l = 0; l < LEARNED_CASES; l++) {
        esp_dataset *data = labelled(l + 1, 90, learned_cases[l].classes, false),
                    *test = labelled(50, 60, learned_cases[l].classes, true);
        char settings[120], few[160];
        snprintf(settings, sizeof settings, "%s tolerance=1e-9", learned_cases[l].settings);
        snprintf(few, sizeof few, "%s inducing=1000", settings);
        esp_model *exact = trained(learned_cases[l].learner, KERNEL, data, settings, NULL);
        esp_model *model = trained(learned_cases[l].learner, KERNEL, data, few, NULL);
        esp_predictions *a = predicted(exact, test, 1), *b = predicted(model, test, 1);
        const double worst = worst_difference(a, b);
        if (!(worst < 1e-6)) fail_msg("%s %s: scores differ by %g", learned_cases[l].learner, settings, worst);
        for (size_t i = 0; i < 60 && learned_cases[l].classes > 0; i++)
            for (size_t c = 0; c < learned_cases[l].classes; c++)
                assert_true(fabs(esp_predictions_probability(a, i, c) - esp_predictions_probability(b, i, c)) < 1e-5);
        esp_predictions_free(a);
        esp_predictions_free(b);
        esp_model_free(exact);
        esp_model_free(model);
        esp_dataset_free(data);
        esp_dataset_free(test);
    }
}

static void test_few_pivots_support_the_model(void **state)
{
    (void)state;
    for (size_t l = 0; l < PLAIN; l++) {
        esp_dataset *data = labelled(l + 1, 90, learned_cases[l].classes, false);
        char settings[120];
        snprintf(settings, sizeof settings, "%s inducing=12", learned_cases[l].settings);
        esp_model *model = trained(learned_cases[l].learner, KERNEL, data, settings, NULL);
        esp_model *again = trained(learned_cases[l].learner, KERNEL, data, settings, &(esp_run){.threads = 3});
        char *text;
        esp_error err = {0};
        assert_ok(esp_model_summary(model, &text, &err), "summary", &err);
        assert_non_null(strstr(text, "support examples\t12\n"));
        assert_non_null(strstr(text, "inducing=12"));
        esp_text_free(text);
        esp_predictions *a = predicted(model, data, 1), *b = predicted(again, data, 1);
        assert_true(worst_difference(a, b) == 0.0);
        esp_predictions_free(a);
        esp_predictions_free(b);
        esp_model_free(model);
        esp_model_free(again);
        esp_dataset_free(data);
    }
}

/* 1/2 |w|^2 + C sum of hinge losses: what a machine minimises over functions that
 * are sums of kernels over its pivots. */
static double objective(const double *score, const double *target, size_t n, double norm, double cost)
{
    double loss = 0.0;
    for (size_t i = 0; i < n; i++) loss += fmax(0.0, 1.0 - target[i] * score[i]);
    return 0.5 * norm + cost * loss;
}

static void test_the_model_is_the_best_over_its_pivots(void **state)
{
    (void)state;
    enum { N = 80 };
    esp_dataset *data = labelled(3, N, 2, false);
    esp_model *model = trained("svm", KERNEL, data, "C=2 tolerance=1e-8 inducing=10", NULL);
    const esp_dataset *pivots = model->support;
    const size_t m = pivots->rows;
    double *across = gram_of(KERNEL, data, pivots, 1), *inside = gram_of(KERNEL, pivots, NULL, 1);
    double target[N], score[N], base = INFINITY;
    ref_random random = {4};
    assert_int_equal(m, 10);
    for (size_t i = 0; i < N; i++) target[i] = strtod(esp_dataset_target(data, i), NULL);
    for (int round = 0; round < 400; round++) { /* first as it is, then a little aside */
        double c[10], bias = model->bias[0], norm = 0.0;
        const double aside = round == 0 ? 0.0 : pow(10.0, -1.0 - round % 4);
        for (size_t j = 0; j < m; j++) c[j] = model->coefficient[j] + aside * ref_random_between(&random, -1, 1);
        bias += aside * ref_random_between(&random, -1, 1);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < m; j++) norm += c[i] * c[j] * inside[i * m + j];
        for (size_t i = 0; i < N; i++) {
            score[i] = bias;
            for (size_t j = 0; j < m; j++) score[i] += c[j] * across[i * m + j];
        }
        const double value = objective(score, target, N, norm, 2.0);
        if (round == 0) base = value;
        if (!(value >= base - 1e-6)) fail_msg("round %d: %.12g is below %.12g", round, value, base);
    }
    free(across);
    free(inside);
    esp_model_free(model);
    esp_dataset_free(data);
}

static void test_little_memory(void **state)
{
    (void)state;
    esp_dataset *data = labelled(5, 150, 3, false), *test = labelled(6, 50, 3, true);
    const esp_run tight = {.memory = 150 * 20 * sizeof(double) + 150 * 6 * sizeof(float)};
    esp_model *model = trained("svm", KERNEL, data, "C=2 inducing=20 tolerance=1e-7", NULL);
    esp_model *small = trained("svm", KERNEL, data, "C=2 inducing=20 tolerance=1e-7", &tight);
    esp_predictions *a = predicted(model, test, 1), *b = predicted(small, test, 1);
    assert_true(worst_difference(a, b) < 1e-5);
    esp_predictions_free(a);
    esp_predictions_free(b);
    esp_model_free(model);
    esp_model_free(small);
    esp_error err = {0};
    assert_int_equal(train("svm", KERNEL, data, "inducing=20", &(esp_run){.memory = 20000}, &model, &err),
                     ESP_ERR_MEMORY);
    assert_string_equal(err.message, "20 pivots of 150 examples take 24.0 kB; the limit is 20.0 kB");
    esp_dataset_free(data);
    esp_dataset_free(test);
}

/* An example is scored by what the others teach, and by nothing of its own: neither its target nor its structure. */
static void test_folds_do_not_see_what_they_score(void **state)
{
    (void)state;
    examples e = examples_of(8, 60, 3, false);
    uint32_t fold[MOST];
    esp_error err = {0};
    esp_dataset *data = part_of(&e, NULL, 0, true);
    espi_settings *settings = settings_of("svm", "");
    espi_targets t = learned_targets(settings, data);
    assert_ok(espi_folds_make(&t, 4, 9, fold, &err), "folds", &err);
    esp_predictions *all = validated("svm", KERNEL, data, "C=2 inducing=15 tolerance=1e-8", 4, 9);
    for (size_t f = 0; f < 4; f++) {
        esp_dataset *rest = part_of(&e, fold, f, false), *part = part_of(&e, fold, f, true);
        esp_model *model = trained("svm", KERNEL, rest, "C=2 inducing=15 tolerance=1e-8", NULL);
        esp_predictions *p = predicted(model, part, 1);
        for (size_t i = 0, k = 0; i < e.count; i++) {
            if (fold[i] != f) continue;
            for (size_t c = 0; c < 3; c++)
                assert_true(fabs(esp_predictions_column(all, i, c) - esp_predictions_column(p, k, c)) < 1e-6);
            k++;
        }
        esp_predictions_free(p);
        esp_model_free(model);
        esp_dataset_free(rest);
        esp_dataset_free(part);
    }
    esp_predictions_free(all);
    espi_targets_free(&t);
    espi_settings_free(settings);
    esp_dataset_free(data);
    examples_free(&e);
}

static void test_grids(void **state)
{
    (void)state;
    esp_dataset *data = labelled(9, 80, 2, false);
    esp_kernel *kernel = kernel_of(KERNEL);
    const esp_grid grid[] = {{"inducing", "0,5,1000"}, {"C", "0.5,2"}};
    esp_tuning *tuning;
    esp_error err = {0};
    assert_ok(esp_tune("svm", kernel, data, NULL, 0, grid, 2, NULL, 4, 3, NULL, &tuning, &err), "tune", &err);
    for (size_t c = 0; c < esp_tuning_count(tuning); c++) { /* each is the cross-validation with its settings */
        char settings[80];
        snprintf(settings, sizeof settings, "inducing=%s C=%s", esp_tuning_value(tuning, c, 0),
                 esp_tuning_value(tuning, c, 1));
        esp_predictions *p = validated("svm", KERNEL, data, settings, 4, 3);
        esp_metrics *metrics;
        assert_ok(esp_metrics_new(p, data, &metrics, &err), "metrics", &err);
        assert_true(fabs(esp_metrics_value(metrics, "accuracy") - esp_tuning_score(tuning, c)) < 1e-12);
        esp_metrics_free(metrics);
        esp_predictions_free(p);
    }
    assert_true(esp_tuning_score(tuning, 0) == esp_tuning_score(tuning, 4));
    esp_tuning_free(tuning);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

static void test_what_cannot_be_is_told(void **state)
{
    (void)state;
    esp_dataset *data = labelled(9, 40, 2, false);
    esp_model *model;
    esp_predictions *p;
    esp_error err = {0};
    assert_refused(train("svm", "fseq(words)", data, "inducing=5", NULL, &model, &err), &err,
                   "inducing needs a kernel that is the same for all classes");
    assert_refused(validate("svm", "fseq(words)", data, "inducing=5", 3, 1, NULL, &p, &err), &err,
                   "inducing needs a kernel that is the same for all classes");
    assert_refused(train("svm", KERNEL, data, "inducing=-1", NULL, &model, &err), &err, "a whole number >= 0");
    esp_dataset *zero = dataset_of("{\"y\": 1, \"x\": {}}\n{\"y\": -1, \"x\": {}}\n{\"y\": 1, \"x\": {}}\n");
    model = trained("svm", "linear(x)", zero, "inducing=5", NULL); /* nothing but a bias can be learned */
    p = predicted(model, zero, 1);
    assert_true(esp_predictions_score(p, 0) > 0.0);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_dataset_free(zero);
    esp_dataset_free(data);
}

static esp_status train_few(const void *argument, esp_error *err)
{
    const esp_setting settings[] = {{"inducing", "5"}, {"probability", "1"}};
    esp_kernel *kernel = NULL;
    esp_model *model = NULL;
    esp_status status = esp_kernel_parse("norm(sst(tree))", &kernel, err);
    if (status == ESP_OK)
        status = esp_train("svm", kernel, argument, settings, 2, &(esp_run){.threads = 1}, &model, err);
    esp_model_free(model);
    esp_kernel_free(kernel);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_dataset *data = labelled(9, 20, 3, false);
    out_of_memory_everywhere(train_few, data);
    esp_dataset_free(data);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_examples_as_pivots_are_the_exact_machine),
        TEST(test_few_pivots_support_the_model),
        TEST(test_the_model_is_the_best_over_its_pivots),
        TEST(test_little_memory),
        TEST(test_folds_do_not_see_what_they_score),
        TEST(test_grids),
        TEST(test_what_cannot_be_is_told),
        TEST(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
