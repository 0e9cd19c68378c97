/* The one-class machine: against LIBSVM on the same Gram matrix, against its optimality conditions, and in what it
 * promises about the part nu. */
#include "learning.h"

#include <libsvm/svm.h>

#define KERNEL "norm(sst(tree, lambda=0.4)) + 0.5*norm(linear(words)) + 0.2*rbf(x)"
enum { N = 90 };

static void quiet(const char *text) { (void)text; }

/* Decision values at the training examples, and the objective in the dual. */
typedef struct solution {
    double score[N], objective;
} solution;

static double objective_of(const double *gram, const double *alpha)
{
    double sum = 0.0;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) sum += 0.5 * alpha[i] * alpha[j] * gram[i * N + j];
    return sum;
}

static solution by_libsvm(const double *gram, double nu)
{
    solution s;
    double y[N], alpha[N] = {0.0};
    struct svm_node *row[N];
    for (size_t i = 0; i < N; i++) {
        y[i] = 1.0;
        row[i] = calloc(N + 2, sizeof **row);
        assert_non_null(row[i]);
        row[i][0] = (struct svm_node){.index = 0, .value = (double)(i + 1)};
        for (size_t j = 0; j < N; j++) row[i][j + 1] = (struct svm_node){(int)j + 1, gram[i * N + j]};
        row[i][N + 1].index = -1;
    }
    const struct svm_problem problem = {.l = N, .y = y, .x = row};
    const struct svm_parameter parameter = {
        .svm_type = ONE_CLASS, .kernel_type = PRECOMPUTED, .cache_size = 10, .eps = 1e-9, .nu = nu, .shrinking = 1};
    assert_null(svm_check_parameter(&problem, &parameter));
    svm_set_print_string_function(quiet);
    struct svm_model *model = svm_train(&problem, &parameter);
    for (int k = 0; k < model->l; k++) alpha[(int)model->SV[k][0].value - 1] = model->sv_coef[0][k];
    for (size_t i = 0; i < N; i++) svm_predict_values(model, row[i], &s.score[i]);
    s.objective = objective_of(gram, alpha);
    svm_free_and_destroy_model(&model);
    for (size_t i = 0; i < N; i++) free(row[i]);
    return s;
}

/* The same of a model of ours, whose support examples are rows of the data in their order. */
static solution by_model(const esp_model *model, const esp_dataset *data)
{
    solution s;
    esp_predictions *p = predicted(model, data, 1);
    double *inside = gram_of(KERNEL, model->support, NULL, 1);
    const size_t n = model->support->rows;
    s.objective = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            s.objective += 0.5 * model->coefficient[i] * model->coefficient[j] * inside[i * n + j];
    for (size_t i = 0; i < N; i++) s.score[i] = esp_predictions_score(p, i);
    free(inside);
    esp_predictions_free(p);
    return s;
}

static void test_as_libsvm(void **state)
{
    (void)state;
    static const double nu[] = {0.01, 0.1, 0.35, 0.5, 0.9, 1.0};
    for (size_t i = 0; i < sizeof nu / sizeof *nu; i++) {
        char settings[80];
        esp_dataset *data = labelled(i + 1, N, 3, false);
        snprintf(settings, sizeof settings, "nu=%g tolerance=1e-8", nu[i]);
        esp_model *model = trained("oneclass", KERNEL, data, settings, NULL);
        double *gram = gram_of(KERNEL, data, NULL, 1);
        const solution ours = by_model(model, data), theirs = by_libsvm(gram, nu[i]);
        assert_close(ours.objective, theirs.objective, 1e-6, "objective");
        /* Where all variables are at their bounds the offset may lie anywhere between two examples. */
        for (size_t k = 0; k < N && nu[i] < 1.0; k++)
            if (fabs(ours.score[k] - theirs.score[k]) > 1e-4)
                fail_msg("nu %g, example %zu: %.9g instead of %.9g", nu[i], k, ours.score[k], theirs.score[k]);
        free(gram);
        esp_model_free(model);
        esp_dataset_free(data);
    }
}

/* 0 < a < 1 on the border, a = 0 inside, a = 1 outside; all of them add up to nu n. */
static void test_optimality(void **state)
{
    (void)state;
    const double nu = 0.2;
    esp_dataset *data = labelled(7, N, 2, false);
    esp_model *model = trained("oneclass", KERNEL, data, "nu=0.2 tolerance=1e-7", NULL);
    esp_predictions *p = predicted(model, data, 1), *of_support = predicted(model, model->support, 1);
    double sum = 0.0;
    size_t outside = 0;
    for (size_t k = 0; k < model->support->rows; k++) {
        const double a = model->coefficient[k], f = esp_predictions_score(of_support, k);
        assert_true(a > 0.0 && a <= 1.0);
        assert_true(a < 1.0 ? fabs(f) < 1e-5 : f < 1e-5);
        sum += a;
    }
    assert_close(sum, nu * N, 1e-9, "sum");
    for (size_t i = 0; i < N; i++) outside += esp_predictions_score(p, i) < -1e-5;
    assert_true((double)outside <= nu * N && (double)model->support->rows >= nu * N);
    for (size_t i = 0; i < N; i++)
        assert_string_equal(esp_predictions_label(p, i), esp_predictions_score(p, i) > 0.0 ? "1" : "-1");
    esp_predictions_free(p);
    esp_predictions_free(of_support);
    esp_model_free(model);
    esp_dataset_free(data);
}

/* Labels of other names, ones that contradict and none at all: the same model. */
static void test_targets_are_not_looked_at(void **state)
{
    (void)state;
    examples e = examples_of(3, 40, 2, false);
    esp_dataset *data = part_of(&e, NULL, 0, true);
    esp_model *model = trained("oneclass", KERNEL, data, "nu=0.3", NULL);
    for (size_t i = 0; i < e.count; i++) strcpy(e.y[i], i % 3 == 0 ? "\"odd\"" : "-1");
    esp_dataset *other = part_of(&e, NULL, 0, true);
    esp_model *again = trained("oneclass", KERNEL, other, "nu=0.3", NULL);
    assert_int_equal(model->support->rows, again->support->rows);
    assert_memory_equal(model->coefficient, again->coefficient, model->support->rows * sizeof *model->coefficient);
    assert_memory_equal(model->bias, again->bias, sizeof *model->bias);
    esp_dataset *none =
        dataset_of("{\"x\": {\"a\": 1}}\n{\"x\": {\"a\": 1.1}}\n{\"x\": {\"a\": 1.2}}\n{\"x\": {\"a\": 0.9}}\n"
                   "{\"x\": {\"a\": 0.8}}\n{\"x\": {\"a\": -9}}\n");
    esp_model *least = trained("oneclass", "rbf(x)", none, "nu=0.5", NULL);
    esp_predictions *p = predicted(least, none, 1);
    assert_string_equal(esp_predictions_label(p, 0), "1");
    assert_string_equal(esp_predictions_label(p, 5), "-1");
    esp_predictions_free(p);
    esp_model_free(least);
    esp_dataset_free(none);
    esp_model_free(model);
    esp_model_free(again);
    esp_dataset_free(data);
    esp_dataset_free(other);
    examples_free(&e);
}

/* Folds are predicted by models of the others; pivots that span everything, little memory and threads change nothing.
 */
static void test_ways_to_learn(void **state)
{
    (void)state;
    examples e = examples_of(11, 60, 2, false);
    compare_with_training(&e, "oneclass", KERNEL, "nu=0.25 tolerance=1e-7", 4, 5, 1e-4);
    esp_dataset *data = part_of(&e, NULL, 0, true);
    esp_model *exact = trained("oneclass", KERNEL, data, "nu=0.25 tolerance=1e-8", NULL);
    esp_model *pivots = trained("oneclass", KERNEL, data, "nu=0.25 tolerance=1e-8 inducing=1000", NULL);
    esp_model *small = trained("oneclass", KERNEL, data, "nu=0.25 tolerance=1e-8", &(esp_run){.memory = 3000});
    esp_model *many = trained("oneclass", KERNEL, data, "nu=0.25 tolerance=1e-8", &(esp_run){.threads = 4});
    esp_predictions *a = predicted(exact, data, 1), *b = predicted(pivots, data, 1), *c = predicted(small, data, 1),
                    *d = predicted(many, data, 3);
    for (size_t i = 0; i < e.count; i++) {
        assert_close(esp_predictions_score(b, i), esp_predictions_score(a, i), 1e-5, "pivots");
        assert_close(esp_predictions_score(c, i), esp_predictions_score(a, i), 1e-5, "little memory");
        assert_true(esp_predictions_score(d, i) == esp_predictions_score(a, i));
    }
    esp_predictions *all[] = {a, b, c, d};
    esp_model *models[] = {exact, pivots, small, many};
    for (size_t i = 0; i < 4; i++) esp_predictions_free(all[i]);
    for (size_t i = 0; i < 4; i++) esp_model_free(models[i]);
    esp_dataset_free(data);
    examples_free(&e);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    esp_dataset *data = labelled(9, 40, 2, false);
    esp_model *model;
    esp_error err = {0};
    assert_refused(train("oneclass", KERNEL, data, "nu=0", NULL, &model, &err), &err, "a number > 0, at most 1");
    assert_refused(train("oneclass", KERNEL, data, "nu=1.5", NULL, &model, &err), &err, "a number > 0, at most 1");
    assert_refused(train("oneclass", KERNEL, data, "C=1", NULL, &model, &err), &err, "oneclass has no setting 'C'");
    assert_refused(train("oneclass", "fseq(words)", data, "", NULL, &model, &err), &err,
                   "oneclass learns examples, which have no classes");
    esp_dataset_free(data);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_as_libsvm),     TEST(test_optimality),     TEST(test_targets_are_not_looked_at),
        TEST(test_ways_to_learn), TEST(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
