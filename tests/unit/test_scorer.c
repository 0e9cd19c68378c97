/* Scorers against the sum they stand for, f(x) = sum_i c_i K(x_i, x). */
#include "cases.h"

enum { EXAMPLES = 20, INPUTS = 11, ADDITIONS = 60 };

static const char *const kernels[] = {
    "sst(tree, lambda=0.4)",
    "st(tree, lambda=0.8, bow=0.5)",
    "sst(tree, lambda=0.6, alpha=0.5, bow=1, algorithm=ftk)",
    "sasst(tree, lambda=0.5, lambda.NP=0.9, alpha.S=0.2)",
    "norm(sst(tree, lambda=0.4))",
    "norm(sst(tree, lambda=0.4)) + 0.3*st(tree) + linear(x)",
    "ptk(tree, lambda=0.6, mu=0.5, terminal=2)",
    "norm(ptk(tree))",
    "gtk(tree, grammar={NP -> S [X]; S -> [NP] VP; X -> [a] S; = S NP; = VP X}, words=0)",
    "norm(gtk(tree, grammar={NP -> S [X]; S -> [NP] VP; X -> [a] S; = S NP; = VP X}))",
    "0.6*norm(gtk(tree, lambda1=0.9, grammar={S -> [b] X})) + 0.4*norm(ptk(tree, mu=0.7)) + linear(x)",
    "sst(tree, lambda=0.4)*linear(words)",
    "norm(sst(tree))*norm(linear(words)) + 2*rbf(x, gamma=0.5)",
    "norm(norm(sst(tree)) + poly(x, degree=2, gamma=1, coef0=1))",
    "linear(words)",
    "norm(linear(x))",
    "poly(x, degree=3, gamma=0.5, coef0=1)",
    "poly(words, degree=2, gamma=1, coef0=1)",
    "rbf(x, gamma=0.2)",
    "(0.5*sst(tree) + linear(x))^2",
};

/* Random examples with all types of columns; `extra` brings labels, words and features of its own. */
static esp_dataset *random_examples(ref_random *random, size_t count, bool extra)
{
    static const char *const words[] = {"a", "The", "the", "cat", "u"};
    char *lines = malloc(count * 8000), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        char *tree = ref_random_small_tree(random, 40, 100000, extra && i % 2 == 1);
        at += sprintf(at, "{\"tree\": \"%s\", \"words\": \"", tree);
        for (size_t k = ref_random_below(random, 7); k > 0; k--)
            at += sprintf(at, "%s ", words[ref_random_below(random, extra ? 5 : 4)]);
        at += sprintf(at, "\", \"x\": {\"p\": %.17g, \"%s\": %.17g}}\n", ref_random_between(random, -1, 1),
                      extra ? "own" : "q", ref_random_between(random, -1, 1));
        free(tree);
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

static esp_scorer *scorer_of(const esp_kernel *kernel, const esp_dataset *examples)
{
    esp_scorer *scorer = NULL;
    esp_error err = {0};
    assert_ok(esp_scorer_new(kernel, examples, &scorer, &err), "esp_scorer_new", &err);
    return scorer;
}

/* Scores of all rows; compared with coefficients times Gram rows, relative to the sum of absolute terms. */
static void check_scores(const esp_scorer *scorer, const char *expression, const double *coefficient,
                         const esp_dataset *examples, const esp_dataset *inputs)
{
    const size_t m = esp_dataset_count(inputs), n = esp_dataset_count(examples);
    double *gram = gram_of(expression, inputs, inputs == examples ? NULL : examples, 1);
    double score[EXAMPLES], again[EXAMPLES];
    esp_error err = {0};
    assert_ok(esp_scorer_score(scorer, inputs, &(esp_run){.threads = 1}, score, &err), expression, &err);
    assert_ok(esp_scorer_score(scorer, inputs, &(esp_run){.threads = 2}, again, &err), expression, &err);
    assert_memory_equal(score, again, m * sizeof *score);
    for (size_t i = 0; i < m; i++) {
        double sum = 0.0, size = 0.0;
        for (size_t j = 0; j < n; j++) {
            sum += coefficient[j] * gram[i * n + j];
            size += fabs(coefficient[j] * gram[i * n + j]);
        }
        if (!(fabs(score[i] - sum) <= 1e-10 * size))
            fail_msg("%s: score %zu is %.17g instead of %.17g", expression, i, score[i], sum);
    }
    free(gram);
}

static void test_scores(void **state)
{
    (void)state;
    ref_random random = {11};
    esp_dataset *examples = random_examples(&random, EXAMPLES, false), *inputs = random_examples(&random, INPUTS, true);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        esp_kernel *kernel = kernel_of(kernels[k]);
        esp_scorer *scorer = scorer_of(kernel, examples);
        double coefficient[EXAMPLES] = {0};
        esp_error err = {0};
        check_scores(scorer, kernels[k], coefficient, examples, inputs); /* the empty sum is 0 */
        for (int n = 1; n <= ADDITIONS; n++) {
            const size_t example = ref_random_below(&random, EXAMPLES);
            const double c = n % 3 == 0 ? 1.0 : n % 3 == 1 ? -1.0 : ref_random_between(&random, -2.0, 2.0);
            coefficient[example] += c;
            assert_ok(esp_scorer_add(scorer, example, c, &err), kernels[k], &err);
            if (n % 25 != 0 && n != ADDITIONS) continue; /* scoring and adding may alternate */
            check_scores(scorer, kernels[k], coefficient, examples, inputs);
            check_scores(scorer, kernels[k], coefficient, examples, examples);
        }
        esp_scorer_free(scorer);
        esp_kernel_free(kernel);
    }
    esp_dataset_free(examples);
    esp_dataset_free(inputs);
}

/* Roots over 1100 pre-terminals: with lambda = 1, K is too large for a number, and its norm is 2^-|i - j| for trees
 * with i and j words changed. */
static void test_scores_of_huge_values(void **state)
{
    (void)state;
    enum { COUNT = 4, CHILDREN = 1100 };
    static const double coefficient[COUNT] = {1.0, -2.5, 0.0, 0.125};
    char *text[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char *at = text[i] = malloc(CHILDREN * 16 + 8);
        assert_non_null(at);
        at += sprintf(at, "(A");
        for (size_t c = 0; c < CHILDREN; c++) at += sprintf(at, " (B%zu %c)", c, c < i ? 'z' : 'x');
        sprintf(at, ")");
    }
    esp_dataset *data = dataset_of_trees(text, COUNT);
    esp_kernel *normed = kernel_of("norm(sst(lambda=1))"), *plain = kernel_of("sst(lambda=1)");
    esp_scorer *scorer = scorer_of(normed, data), *overflows = scorer_of(plain, data);
    esp_error err = {0};
    double score[COUNT];
    for (size_t j = 0; j < COUNT; j++) {
        assert_ok(esp_scorer_add(scorer, j, coefficient[j], &err), "norm(sst)", &err);
        assert_ok(esp_scorer_add(overflows, j, coefficient[j], &err), "sst", &err);
    }
    assert_ok(esp_scorer_score(scorer, data, NULL, score, &err), "norm(sst)", &err);
    for (size_t i = 0; i < COUNT; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < COUNT; j++) sum += coefficient[j] * pow(2.0, -fabs((double)i - (double)j));
        assert_close(score[i], sum, 1e-10, "the score of norm(sst)");
    }
    assert_int_equal(esp_scorer_score(overflows, data, NULL, score, &err), ESP_ERR_RANGE);
    esp_scorer_free(scorer);
    esp_scorer_free(overflows);
    esp_kernel_free(normed);
    esp_kernel_free(plain);
    esp_dataset_free(data);
    for (size_t i = 0; i < COUNT; i++) free(text[i]);
}

static void test_wrong_calls(void **state)
{
    (void)state;
    ref_random random = {12};
    esp_dataset *examples = random_examples(&random, 4, false), *vectors = dataset_of("{\"x\": [1]}\n");
    esp_kernel *kernel = kernel_of("sst(tree)"), *unbound = kernel_of("sst(nothing)");
    esp_scorer *scorer = (esp_scorer *)1;
    esp_error err = {0};
    double score[4];
    assert_int_equal(esp_scorer_new(unbound, examples, &scorer, &err), ESP_ERR_PARAM);
    assert_null(scorer);
    assert_non_null(strstr(err.message, "'nothing'"));
    scorer = scorer_of(kernel, examples);
    assert_int_equal(esp_scorer_add(scorer, 4, 1.0, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_scorer_add(scorer, 0, (double)NAN, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_scorer_add(scorer, 0, (double)INFINITY, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_scorer_score(scorer, vectors, NULL, score, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "'tree'"));
    esp_scorer_free(scorer);
    esp_scorer_free(NULL);
    esp_kernel_free(kernel);
    esp_kernel_free(unbound);
    esp_dataset_free(examples);
    esp_dataset_free(vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_scores_of_huge_values),
        cmocka_unit_test(test_wrong_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
