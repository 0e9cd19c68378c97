/* The engine on more and larger trees than enumeration can take: dag against qtk, which visits all pairs of nodes. */
#include "cases.h"
#include "data/dataset.h"
#include "kernel/tree/dag.h"

enum { TREES = SANITIZED ? 140 : 340 };

/* A tree of about `size` nodes over few labels, as brackets. */
static size_t random_tree(char *text, ref_random *random, int size)
{
    static const char *const labels[] = {"S", "NP", "VP", "X"};
    size_t n = 0;
    int open = 1;
    n += (size_t)sprintf(text + n, "(S");
    for (int i = 0; i < size; i++) {
        const unsigned pick = (unsigned)(ref_random_below(random, 8));
        if (pick < 3 && open < 12) {
            n += (size_t)sprintf(text + n, " (%s", labels[ref_random_below(random, 4)]);
            open++;
        } else if (pick < 6) {
            n += (size_t)sprintf(text + n, " (%s w%d)", labels[ref_random_below(random, 4)],
                                 (int)(ref_random_below(random, 5)));
        } else {
            n += (size_t)sprintf(text + n, " w%d", (int)(ref_random_below(random, 3)));
            if (open > 1) n += (size_t)sprintf(text + n, ")"), open--;
        }
    }
    while (open-- > 0) n += (size_t)sprintf(text + n, " w0)");
    return n;
}

static size_t write_chain(char *text, const char *step, size_t steps)
{
    char *tree = chain(step, "x", steps);
    const size_t n = (size_t)sprintf(text, "%s", tree);
    free(tree);
    return n;
}

/* Small trees in hundreds, some with over 256 different subtrees, and chains whose columns converge. */
static esp_dataset *many_trees(uint64_t seed, size_t count)
{
    char *text = malloc(4000000);
    assert_non_null(text);
    ref_random random = {seed};
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const int size = i % 60 == 7 ? 900 : 3 + (int)(ref_random_below(&random, 30));
        if (i % 100 == 20) n += write_chain(text + n, "(A ", 300);
        else if (i % 100 == 21) n += write_chain(text + n, "(A (B ", 150);
        else if (i % 100 == 22) n += write_chain(text + n, "(S (W a) ", 200);
        else if (i % 100 == 23) n += write_chain(text + n, "(S (W a) (S (V b)) ", 100);
        else n += random_tree(text + n, &random, size);
        text[n++] = '\n';
    }
    esp_dataset *data;
    esp_error err;
    assert_ok(esp_dataset_parse(text, n, "trees", NULL, NULL, &data, &err), "esp_dataset_parse", &err);
    free(text);
    return data;
}

static void assert_near(const double *a, const double *b, size_t n, double tolerance, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * fabs(b[i])))
            fail_msg("%s: value %zu is %.17g instead of %.17g", what, i, a[i], b[i]);
}

static void test_many_trees(void **state)
{
    (void)state;
    static const char *const kernels[][2] = {
        {"sst(lambda=0.4)", "sst(lambda=0.4, algorithm=qtk)"},
        {"norm(sst(lambda=0.4))", "norm(sst(lambda=0.4, algorithm=qtk))"},
        {"sst(lambda=0.9, alpha=0.3, bow=0.5)", "sst(lambda=0.9, alpha=0.3, bow=0.5, algorithm=qtk)"},
        {"st(lambda=0.7)", "st(lambda=0.7, algorithm=qtk)"},
        {"sasst(lambda=0.5, lambda.S=0.2, alpha.NP=2)", "sasst(lambda=0.5, lambda.S=0.2, alpha.NP=2, algorithm=qtk)"}};
    esp_dataset *data = many_trees(1, TREES), *other = many_trees(2, 90);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        double *fast = gram_of(kernels[k][0], data, NULL, 1), *slow = gram_of(kernels[k][1], data, NULL, 2);
        assert_near(fast, slow, TREES * TREES, 1e-11, kernels[k][0]);
        for (int threads = 2; threads <= 3; threads++) {
            double *again = gram_of(kernels[k][0], data, NULL, threads);
            assert_memory_equal(again, fast, TREES * TREES * sizeof *fast);
            free(again);
        }
        for (size_t i = 0; i < TREES; i++)
            for (size_t j = 0; j < i; j++) assert_true(fast[i * TREES + j] == fast[j * TREES + i]);
        free(fast);
        free(slow);
        fast = gram_of(kernels[k][0], other, data, 2);
        slow = gram_of(kernels[k][1], other, data, 1);
        assert_near(fast, slow, 90 * TREES, 1e-11, kernels[k][0]);
        free(fast);
        free(slow);
    }
    esp_dataset_free(data);
    esp_dataset_free(other);
}

/* Self-values come from another way than rows: the diagonal must be that of the matrix. */
static void test_diagonal(void **state)
{
    (void)state;
    esp_dataset *data = many_trees(3, TREES);
    double *gram = gram_of("sst(lambda=0.6, algorithm=qtk)", data, NULL, 2), diagonal[TREES];
    esp_kernel *kernel = kernel_of("sst(lambda=0.6)");
    esp_error err;
    assert_ok(esp_gram_diagonal(kernel, data, NULL, diagonal, &err), "esp_gram_diagonal", &err);
    for (size_t i = 0; i < TREES; i++) assert_near(&diagonal[i], &gram[i * TREES + i], 1, 1e-11, "diagonal");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(gram);
}

/* A matcher is asked for rows in any order, for parts of rows, and while its DAG grows. */
static void test_growing_dag(void **state)
{
    (void)state;
    enum { COUNT = 120 };
    esp_dataset *data = many_trees(4, COUNT);
    const espi_forest *forest = &data->column[0].trees;
    double *gram = gram_of("sst(lambda=0.5, algorithm=qtk)", data, NULL, 2), row[COUNT];
    double *decay = malloc(2 * forest->productions * sizeof *decay);
    for (size_t p = 0; p < forest->productions; p++) decay[p] = 0.5, decay[forest->productions + p] = 1.0;
    const espi_decay d = {.lambda = decay, .alpha = decay + forest->productions};
    espi_plans plans;
    espi_dag dag = {0};
    esp_error err;
    assert_ok(espi_plans_make(&plans, forest, NULL, forest->productions, NULL, &err), "espi_plans_make", &err);
    espi_matcher *matcher = espi_matcher_new(&dag, &d, NULL);
    ref_random random = {9};
    for (size_t i = 0; i < COUNT; i++) {
        const espi_plan plan = espi_plan_of(&plans, i);
        assert_true(espi_dag_insert(&dag, &plan));
        for (int again = 0; again < 4; again++) {
            const size_t tree = ref_random_below(&random, COUNT), from = ref_random_below(&random, i + 1);
            const size_t to = from + 1 + ref_random_below(&random, i + 1 - from);
            const espi_plan asked = espi_plan_of(&plans, tree);
            memset(row, 0, sizeof row);
            assert_ok(espi_match_row(matcher, &asked, from, to, row, &err), "espi_match_row", &err);
            assert_near(row, gram + tree * COUNT + from, to - from, 1e-11, "part of a row");
        }
    }
    espi_matcher_free(matcher);
    espi_dag_free(&dag);
    espi_plans_free(&plans);
    esp_dataset_free(data);
    free(decay);
    free(gram);
}

static void assert_value(const char *rows, const char *cols, const esp_read_options *options, const char *expression,
                         double expected)
{
    esp_dataset *a, *b;
    esp_error err;
    assert_ok(esp_dataset_parse(rows, strlen(rows), "rows", options, NULL, &a, &err), "rows", &err);
    assert_ok(esp_dataset_parse(cols, strlen(cols), "cols", options, NULL, &b, &err), "cols", &err);
    double *gram = gram_of(expression, a, b, 1);
    assert_near(gram, &expected, 1, 1e-12, expression);
    free(gram);
    esp_dataset_free(a);
    esp_dataset_free(b);
}

/* Bad rows and traces leave productions in the forest that no tree has; empty values come first. */
static void test_leftovers(void **state)
{
    (void)state;
    const char *rows = "{\"tree\": \"(S (X (Y a)) (X (Y b)) (A a))\"}";
    assert_value(rows, "{\"tree\": \"(S (A a))\"}\n{\"tree\": \"(S (X (Y a)) (X (Y b)) (\"}",
                 &(esp_read_options){.skip_bad = true}, "sst(lambda=1)", 1.0);
    assert_value("(S (X (Y a)) (X (Y b)) (A a))", "(S (A a) (-NONE- (X (Y a)) (X (Y b))))",
                 &(esp_read_options){.clean = true}, "sst(lambda=1)", 1.0);
    assert_value("{\"x\": {}}\n{\"x\": {\"a\": 1}}", "{\"x\": {}}\n{\"x\": {\"a\": 1}}", NULL, "poly(x, degree=2)",
                 1.0);
    assert_value("{\"w\": \"\"}\n{\"w\": \"a\"}", "{\"w\": \"\"}\n{\"w\": \"a\"}", NULL, "rbf(w)", 1.0);
    assert_value("{\"t\": \"\"}\n{\"t\": \"(a b)\"}", "{\"t\": \"\"}\n{\"t\": \"(a b)\"}", NULL, "sst(t, bow=1)", 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_trees), cmocka_unit_test(test_diagonal),
                                       cmocka_unit_test(test_growing_dag), cmocka_unit_test(test_leftovers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
