/* Folds, cross-validation, probabilities and grid search, against training by hand and the definitions. */
#include "learning.h"

#define KERNEL "norm(sst(tree, lambda=0.4)) + 0.5*norm(linear(words))"

/* --------------------------------------------------------------------- folds */

static void check_folds(const espi_targets *t, size_t folds, uint64_t seed)
{
    uint32_t fold[MOST], again[MOST];
    esp_error err = {0};
    assert_ok(espi_folds_make(t, folds, seed, fold, &err), "folds", &err);
    assert_ok(espi_folds_make(t, folds, seed, again, &err), "folds", &err);
    assert_memory_equal(fold, again, t->count * sizeof *fold);
    for (size_t c = 0; c <= t->classes; c++) { /* the last: examples of any class */
        size_t size[MOST] = {0}, least = MOST, most = 0;
        for (size_t i = 0; i < t->count; i++) {
            assert_true(fold[i] < folds);
            size[fold[i]] += c == t->classes || t->class_of[i] == c;
        }
        for (size_t f = 0; f < folds; f++) {
            least = size[f] < least ? size[f] : least;
            most = size[f] > most ? size[f] : most;
        }
        assert_true(most - least <= 1);
    }
}

static void test_folds(void **state)
{
    (void)state;
    ref_random random = {1};
    uint32_t class_of[MOST], one[MOST], other[MOST];
    esp_error err = {0};
    for (int round = 0; round < 300; round++) {
        espi_targets t = {.count = 2 + ref_random_below(&random, MOST - 2), .classes = ref_random_below(&random, 6)};
        const size_t skew = 1 + ref_random_below(&random, 4); /* some classes are rare, some empty */
        t.class_of = class_of;
        for (size_t i = 0; i < t.count; i++) {
            class_of[i] = (uint32_t)ref_random_below(&random, t.classes + 1);
            for (size_t k = 0; k < skew; k++) class_of[i] = (uint32_t)ref_random_below(&random, class_of[i] + 1);
            if (t.classes > 0 && class_of[i] == t.classes) class_of[i] = 0;
        }
        check_folds(&t, 2 + ref_random_below(&random, t.count - 1), (uint64_t)round);
    }
    espi_targets t = {.count = 100, .classes = 2, .class_of = class_of};
    for (size_t i = 0; i < 100; i++) class_of[i] = i % 3 == 0;
    assert_ok(espi_folds_make(&t, 5, 1, one, &err), "folds", &err);
    assert_ok(espi_folds_make(&t, 5, 2, other, &err), "folds", &err);
    assert_memory_not_equal(one, other, 100 * sizeof *one);
    static const size_t wrong[] = {0, 1, 101, SIZE_MAX};
    for (size_t i = 0; i < 4; i++)
        assert_refused(espi_folds_make(&t, wrong[i], 1, one, &err), &err, "2 to the number of examples, 100");
}

/* The public function: classes are spread evenly, numbers are not looked at. */
static void test_folds_of_data(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"y\": 1, \"x\": 1}\n{\"y\": 2, \"x\": 1}\n{\"y\": 2, \"x\": 1}\n{\"y\": 1, \"x\": 1}\n");
    esp_dataset *bare = dataset_of("{\"x\": 1}\n{\"x\": 2}\n");
    esp_error err = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t fold[4];
        assert_ok(esp_folds("svm", data, 2, seed, fold, &err), "folds", &err);
        assert_int_equal(fold[0] + fold[3], 1);
        assert_int_equal(fold[1] + fold[2], 1);
        assert_ok(esp_folds("svr", data, 2, seed, fold, &err), "folds", &err);
        assert_int_equal(fold[0] + fold[1] + fold[2] + fold[3], 2);
        assert_refused(esp_folds("svm", data, 5, seed, fold, &err), &err, "2 to the number of examples, 4");
        assert_refused(esp_folds("tree", data, 2, seed, fold, &err), &err, "unknown learner 'tree'");
        assert_int_equal(esp_folds("svm", bare, 2, seed, fold, &err), ESP_ERR_PARSE);
    }
    esp_dataset_free(data);
    esp_dataset_free(bare);
}

/* ---------------------------------------------------------- cross-validation */

static const struct {
    const char *learner, *settings;
    size_t classes;
} tasks[] = {
    {"svm", "tolerance=1e-6 C=2", 2},
    {"svm", "tolerance=1e-6 C=2 class-weight=balanced positive-weight=2", 3},
    {"svm", "tolerance=1e-6 C=2 multiclass=ovo", 4},
    {"svr", "tolerance=1e-6 C=2 epsilon=0.05", 0},
};
enum { TASKS = sizeof tasks / sizeof *tasks, N = 60, FOLDS = 4 };

static void test_training_by_hand(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++) {
        examples e = examples_of(80 + t, N, tasks[t].classes, false);
        compare_with_training(&e, tasks[t].learner, KERNEL, tasks[t].settings, FOLDS, 9, 1e-4);
        examples_free(&e);
    }
}

/* The scores of a fold do not change when its own targets are dealt out anew. */
static void test_own_targets_are_not_used(void **state)
{
    (void)state;
    for (size_t t = 0; t < TASKS; t++) {
        esp_dataset *data = labelled(90 + t, N, tasks[t].classes, false);
        const size_t outputs = t == 0 || t == 3 ? 1 : t == 1 ? 3 : 6;
        uint32_t fold[N];
        double before[N * 6], after[N * 6];
        esp_error err = {0};
        esp_kernel *kernel = kernel_of(KERNEL);
        espi_settings *settings = settings_of(tasks[t].learner, tasks[t].settings);
        espi_targets targets = learned_targets(settings, data);
        const espi_problem problem = {.settings = settings, .kernel = kernel, .data = data, .targets = &targets};
        assert_ok(espi_folds_make(&targets, FOLDS, 3, fold, &err), "folds", &err);
        scores_of(&problem, fold, FOLDS, before);
        for (size_t i = 0, last = N; i < N; i++) { /* the fold's targets move on by one */
            if (fold[i] != 2) continue;
            if (last < N && targets.value != NULL) targets.value[last] = targets.value[i] + 100.0;
            if (last < N && targets.class_of != NULL) targets.class_of[last] = targets.class_of[i];
            last = i;
        }
        scores_of(&problem, fold, FOLDS, after);
        size_t changed = 0;
        for (size_t i = 0; i < N; i++) {
            const bool same = memcmp(before + i * outputs, after + i * outputs, outputs * sizeof *before) == 0;
            if (fold[i] == 2) assert_true(same);
            else changed += !same;
        }
        assert_true(changed > 0); /* where they are trained on */
        espi_targets_free(&targets);
        espi_settings_free(settings);
        esp_kernel_free(kernel);
        esp_dataset_free(data);
    }
}

/* Classes that a training part has not, not even one of a pair; leaving one out; little memory and many threads. */
static void test_rare_classes(void **state)
{
    (void)state;
    static const char *const settings[] = {"C=1", "C=1 multiclass=ovo", "class-weight=balanced", "probability=1"};
    examples e = examples_of(99, 8, 2, false);
    for (size_t i = 0; i < 8; i++) strcpy(e.y[i], i == 0 ? "\"A\"" : i == 1 ? "\"C\"" : "\"B\"");
    esp_dataset *three = part_of(&e, NULL, 0, true);
    strcpy(e.y[1], "\"B\"");
    esp_dataset *two = part_of(&e, NULL, 0, true);
    for (size_t s = 0; s < 4; s++)
        for (size_t folds = 2; folds <= 8; folds++)
            for (int k = 0; k < 2; k++) {
                const esp_dataset *data = k == 0 ? two : three;
                esp_predictions *p = validated("svm", KERNEL, data, settings[s], folds, folds), *q;
                esp_error err = {0};
                const esp_run run = {.threads = 3, .memory = 2 * 8 * sizeof(float)};
                assert_ok(validate("svm", KERNEL, data, settings[s], folds, folds, &run, &q, &err), settings[s], &err);
                for (size_t i = 0; i < 8; i++) {
                    assert_true(isfinite(esp_predictions_score(p, i)));
                    assert_true(fabs(esp_predictions_score(p, i) - esp_predictions_score(q, i)) <= 1e-3);
                    assert_true(esp_predictions_probability(p, i, 0) == -1.0);
                }
                esp_predictions_free(p);
                esp_predictions_free(q);
            }
    esp_model *m = trained("svm", KERNEL, three, "probability=1", NULL);
    esp_model_free(m);
    esp_predictions *p;
    esp_error err = {0};
    assert_refused(validate("svm", KERNEL, two, "", 1, 1, NULL, &p, &err), &err, "1 folds");
    assert_refused(validate("svm", KERNEL, two, "", 9, 1, NULL, &p, &err), &err, "9 folds");
    assert_refused(validate("svm", KERNEL, two, "class-weight=Z=2", 2, 1, NULL, &p, &err), &err, "'Z'");
    assert_refused(validate("svr", KERNEL, two, "", 2, 1, NULL, &p, &err), &err, "example 1 is 'A'");
    assert_refused(validate("svm", "sst(nothing)", two, "", 2, 1, NULL, &p, &err), &err, "'nothing'");
    esp_dataset_free(two);
    esp_dataset_free(three);
    examples_free(&e);
}

/* ------------------------------------------------------------- probabilities */

/* Platt's loss of class c with the targets (n + 1) / (n + 2) and 1 / (m + 2). */
static double loss_of(const esp_predictions *cv, const esp_dataset *data, const char *positive, size_t column, double a,
                      double b)
{
    const size_t count = esp_dataset_count(data);
    double n = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; i++) n += strcmp(esp_dataset_target(data, i), positive) == 0;
    for (size_t i = 0; i < count; i++) {
        const bool yes = strcmp(esp_dataset_target(data, i), positive) == 0;
        const double t = yes ? (n + 1.0) / (n + 2.0) : 1.0 / ((double)count - n + 2.0);
        const double p = 1.0 / (1.0 + exp(a * esp_predictions_column(cv, i, column) + b));
        sum -= t * log(p) + (1.0 - t) * log(1.0 - p);
    }
    return sum;
}

static void test_two_probabilities(void **state)
{
    (void)state;
    esp_dataset *data = labelled(110, 80, 2, false), *unseen = labelled(111, 80, 2, true);
    static const char *const settings[] = {"C=2 probability=1", "C=2 probability=1 seed=7",
                                           "C=5 positive-weight=3 probability=1"};
    for (size_t s = 0; s < 3; s++) {
        esp_model *m = trained("svm", KERNEL, data, settings[s], NULL);
        esp_predictions *p = predicted(m, unseen, 1),
                        *cv = validated("svm", KERNEL, data, settings[s], 5, s == 1 ? 7 : 1);
        for (size_t i = 0; i < 80; i++) {
            const double low = esp_predictions_probability(p, i, 0), high = esp_predictions_probability(p, i, 1);
            assert_true(low >= 0.0 && high >= 0.0 && fabs(low + high - 1.0) <= 1e-15);
            assert_string_equal(esp_predictions_label(p, i), esp_model_class(m, high > low));
            for (size_t k = 0; k < 80; k++)
                if (esp_predictions_score(p, i) > esp_predictions_score(p, k))
                    assert_true(high >= esp_predictions_probability(p, k, 1));
        }
        assert_true(esp_predictions_probability(p, 0, 2) == -1.0);
        assert_true(m->platt[0] < 0.0 && m->platt[1] == 0.0);
        const double loss = loss_of(cv, data, "1", 0, m->platt[0], 0.0);
        double least = loss;
        for (double a = -20.0; a <= 0.0; a += 1e-3) least = fmin(least, loss_of(cv, data, "1", 0, a, 0.0));
        for (double d = -2e-3; d <= 2e-3; d += 1e-5)
            least = fmin(least, loss_of(cv, data, "1", 0, m->platt[0] + d, 0.0));
        assert_true(loss <= least + 1e-6);
        esp_predictions_free(p);
        esp_predictions_free(cv);
        esp_model_free(m);
    }
    esp_dataset_free(data);
    esp_dataset_free(unseen);
}

/* One sigmoid per class, scaled to a sum of 1. The loss is convex: no better point near means none at all. */
static void test_many_probabilities(void **state)
{
    (void)state;
    esp_dataset *data = labelled(112, 90, 3, false), *unseen = labelled(113, 40, 2, true);
    esp_model *m = trained("svm", KERNEL, data, "C=2 probability=1", NULL);
    esp_predictions *p = predicted(m, unseen, 1), *cv = validated("svm", KERNEL, data, "C=2", 5, 1);
    for (size_t i = 0; i < 40; i++) {
        double sigmoid[3], sum = 0.0;
        for (size_t c = 0; c < 3; c++)
            sum += sigmoid[c] =
                1.0 / (1.0 + exp(m->platt[2 * c] * esp_predictions_column(p, i, c) + m->platt[2 * c + 1]));
        for (size_t c = 0; c < 3; c++)
            assert_close(esp_predictions_probability(p, i, c), sigmoid[c] / sum, 1e-12, "probability");
    }
    for (size_t c = 0; c < 3; c++) {
        const double a = m->platt[2 * c], b = m->platt[2 * c + 1];
        const double loss = loss_of(cv, data, esp_model_class(m, c), c, a, b);
        for (int da = -1; da <= 1; da++)
            for (int db = -1; db <= 1; db++)
                for (double step = 0.1; step > 1e-4; step /= 10.0)
                    assert_true(loss <=
                                loss_of(cv, data, esp_model_class(m, c), c, a + da * step, b + db * step) + 1e-6);
    }
    esp_predictions_free(p);
    esp_predictions_free(cv);
    esp_model_free(m);
    esp_dataset_free(data);
    esp_dataset_free(unseen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_folds_of_data),
        cmocka_unit_test(test_training_by_hand),
        cmocka_unit_test(test_own_targets_are_not_used),
        cmocka_unit_test(test_rare_classes),
        cmocka_unit_test(test_two_probabilities),
        cmocka_unit_test(test_many_probabilities),
    };
    return cmocka_run_group_tests_name("validate", tests, NULL, no_blocks_left);
}
