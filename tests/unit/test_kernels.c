/* Tree kernels against worked values, against the enumeration of all fragments, and against each other. */
#include "cases.h"

static const char *const algorithms[] = {"dag", "ftk", "qtk"};
enum { ALGORITHMS = 3, TREES = 24, OTHERS = 9, LARGEST = 60, FRAGMENTS = 4000 };

/* ------------------------------------------------------------- worked values */

#define M_TREE "(S (N Mary) (VP (V brought) (NP (D a) (N cat))))"
#define V_TREE "(VP (V brought) (NP (D a) (N cat)))"
#define T_TREE "(S (A a) (B b))"

typedef struct worked {
    const char *kernel, *parameters, *a, *b;
    ref_weights weights;
    double value;
} worked;

static const worked spec[] = {
    {"sst", "lambda=1", T_TREE, T_TREE, {1, 1, 0, NULL, 0}, 6},
    {"st", "lambda=1", T_TREE, T_TREE, {1, 0, 0, NULL, 0}, 3},
    {"sst", "lambda=1", V_TREE, V_TREE, {1, 1, 0, NULL, 0}, 17},
    {"sst", "lambda=1", M_TREE, M_TREE, {1, 1, 0, NULL, 0}, 40},
    {"sst", "lambda=0.4", M_TREE, V_TREE, {0.4, 1, 0, NULL, 0}, 2.98304},
    {"sst", "lambda=0.4", M_TREE, M_TREE, {0.4, 1, 0, NULL, 0}, 4.5025024},
    {"sst", "lambda=0.4, bow=1", M_TREE, V_TREE, {0.4, 1, 1, NULL, 0}, 5.98304},
    {"sasst", "lambda=1, lambda.S=0.5", T_TREE, T_TREE, {1, 1, 0, &(ref_symbol){"S", 0.5, 1}, 1}, 4},
    {"sasst", "lambda=1, lambda.S=2", T_TREE, T_TREE, {1, 1, 0, &(ref_symbol){"S", 2, 1}, 1}, 10},
    /* By hand: A, and S with A left alone (alpha) or expanded; its leaf b takes no part. */
    {"sst", "lambda=0.5, alpha=0.25", "(S (A a) b)", "(S (A a) b)", {0.5, 0.25, 0, NULL, 0}, 0.5 + 0.5 * 0.75},
    {"sasst", "lambda=0.5, alpha=1, alpha.S=0", T_TREE, T_TREE, {0.5, 1, 0, &(ref_symbol){"S", 0.5, 0}, 1}, 1.125},
    {"sasst",
     "lambda=0.5, lambda.\"PRP$\"=2",
     "(NP (PRP$ my) cat)",
     "(NP (PRP$ my) cat)",
     {0.5, 1, 0, &(ref_symbol){"PRP$", 2, 1}, 1},
     2 + 0.5 * 3},
    /* A leaf and an inner node of one name are different things; (A (b)) and (A b) are the same. */
    {"sst", "lambda=1", "(A b)", "(A (b c))", {1, 1, 0, NULL, 0}, 0},
    {"sst", "lambda=1", "(A b)", "(A (b))", {1, 1, 0, NULL, 0}, 1},
    {"sst", "lambda=1, bow=0.5", "(A)", "(B A A)", {1, 1, 0.5, NULL, 0}, 1},
    {"sst", "lambda=1", "(A)", "(A)", {1, 1, 0, NULL, 0}, 0},
};

static void test_worked_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++) {
        const worked *w = &spec[i];
        ref_tree *a = ref_tree_parse(w->a), *b = ref_tree_parse(w->b);
        ref_features fa = ref_features_of(a, &w->weights), fb = ref_features_of(b, &w->weights);
        assert_close(ref_features_dot(&fa, &fb), w->value, 1e-14, "the reference itself");
        ref_features_free(&fa);
        ref_features_free(&fb);
        ref_tree_free(a);
        ref_tree_free(b);
        esp_dataset *data = dataset_of_trees((char *[]){(char *)(uintptr_t)w->a, (char *)(uintptr_t)w->b}, 2);
        for (int k = 0; k < ALGORITHMS; k++) {
            char expression[160];
            snprintf(expression, sizeof expression, "%s(tree, %s, algorithm=%s)", w->kernel, w->parameters,
                     algorithms[k]);
            assert_close(value_of(expression, data), w->value, 1e-14, expression);
        }
        esp_dataset_free(data);
    }
}

/* --------------------------------------------------------------- random trees */

/* Random trees, some with labels that the others lack. */
typedef struct forest {
    char *text[TREES], *other_text[OTHERS];
    ref_tree *tree[TREES], *other_tree[OTHERS];
    esp_dataset *data, *other;
} forest;

static forest *forest_new(uint64_t seed)
{
    ref_random random = {seed};
    forest *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (size_t i = 0; i < TREES; i++) {
        f->text[i] = i == 0 ? ref_random_tree(&random, 1, false)
                            : ref_random_small_tree(&random, LARGEST, FRAGMENTS, i % 4 == 3);
        f->tree[i] = ref_tree_parse(f->text[i]);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        f->other_text[i] = i == 0 ? ref_random_tree(&random, 1, false)
                                  : ref_random_small_tree(&random, LARGEST, FRAGMENTS, i % 2 == 1);
        f->other_tree[i] = ref_tree_parse(f->other_text[i]);
    }
    f->data = dataset_of_trees(f->text, TREES);
    f->other = dataset_of_trees(f->other_text, OTHERS);
    return f;
}

static void forest_free(forest *f)
{
    for (size_t i = 0; i < TREES; i++) free(f->text[i]), ref_tree_free(f->tree[i]);
    for (size_t i = 0; i < OTHERS; i++) free(f->other_text[i]), ref_tree_free(f->other_tree[i]);
    esp_dataset_free(f->data);
    esp_dataset_free(f->other);
    free(f);
}

static void compare(const double *is, const double *expected, size_t count, double tolerance, const char *what,
                    uint64_t seed)
{
    char text[500];
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s, seed %llu, value %zu", what, (unsigned long long)seed, i);
        assert_close(is[i], expected[i], tolerance, text);
    }
}

/* The Gram matrix within the trees, and of the trees against the others, by enumeration. */
static void enumerate(const forest *f, const ref_weights *weights, double *within, double *against)
{
    ref_features a[TREES], b[OTHERS];
    for (size_t i = 0; i < TREES; i++) a[i] = ref_features_of(f->tree[i], weights);
    for (size_t i = 0; i < OTHERS; i++) b[i] = ref_features_of(f->other_tree[i], weights);
    for (size_t i = 0; i < TREES; i++) {
        for (size_t j = 0; j < TREES; j++) within[i * TREES + j] = ref_features_dot(&a[i], &a[j]);
        for (size_t j = 0; j < OTHERS; j++) against[i * OTHERS + j] = ref_features_dot(&a[i], &b[j]);
    }
    for (size_t i = 0; i < TREES; i++) ref_features_free(&a[i]);
    for (size_t i = 0; i < OTHERS; i++) ref_features_free(&b[i]);
}

static void check_gram_properties(const double *gram, const char *what)
{
    for (size_t i = 0; i < TREES; i++)
        for (size_t j = 0; j < i; j++) assert_memory_equal(&gram[i * TREES + j], &gram[j * TREES + i], sizeof *gram);
    double smallest, largest;
    ref_eigenvalues(gram, TREES, &smallest, &largest);
    if (!(smallest >= -1e-9 * largest)) fail_msg("%s: smallest eigenvalue %g, largest %g", what, smallest, largest);
}

/* Kernel and parameters against the enumeration, in each algorithm; algorithms against each other. */
static void check_kernel(const forest *f, const char *kernel, const char *parameters, const ref_weights *weights,
                         uint64_t seed)
{
    double within[TREES * TREES], against[TREES * OTHERS];
    double *first = NULL, *first_against = NULL;
    enumerate(f, weights, within, against);
    for (int k = 0; k < ALGORITHMS; k++) {
        char expression[400];
        snprintf(expression, sizeof expression, "%s(tree, %s, algorithm=%s)", kernel, parameters, algorithms[k]);
        double *gram = gram_of(expression, f->data, NULL, 1), *rows = gram_of(expression, f->data, f->other, 2);
        compare(gram, within, TREES * TREES, 1e-10, expression, seed);
        compare(rows, against, TREES * OTHERS, 1e-10, expression, seed);
        check_gram_properties(gram, expression);
        if (k > 0) {
            compare(gram, first, TREES * TREES, 1e-12, expression, seed);
            compare(rows, first_against, TREES * OTHERS, 1e-12, expression, seed);
            free(gram);
            free(rows);
        } else {
            first = gram;
            first_against = rows;
        }
    }
    free(first);
    free(first_against);
}

static void test_random_trees(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        forest *f = forest_new(seed);
        ref_random random = {seed + 100};
        const double lambda = ref_random_between(&random, 0.05, 1.2), alpha = ref_random_between(&random, 0.0, 1.5);
        const double bow = ref_random_between(&random, 0.1, 2.0);
        char text[300];
        snprintf(text, sizeof text, "lambda=%.17g", lambda);
        check_kernel(f, "sst", text, &(ref_weights){.lambda = lambda, .alpha = 1}, seed);
        check_kernel(f, "st", text, &(ref_weights){.lambda = lambda, .alpha = 0}, seed);
        snprintf(text, sizeof text, "lambda=%.17g, alpha=%.17g, bow=%.17g", lambda, alpha, bow);
        check_kernel(f, "sst", text, &(ref_weights){.lambda = lambda, .alpha = alpha, .bow = bow}, seed);
        snprintf(text, sizeof text, "lambda=%.17g, bow=%.17g", lambda, bow);
        check_kernel(f, "st", text, &(ref_weights){.lambda = lambda, .alpha = 0, .bow = bow}, seed);
        forest_free(f);
    }
}

static void test_random_trees_by_symbol(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        forest *f = forest_new(seed + 40);
        ref_random random = {seed + 200};
        ref_symbol symbol[4] = {{.label = "S"}, {.label = "NP"}, {.label = "Q"}, {.label = "nowhere"}};
        const double lambda = ref_random_between(&random, 0.05, 1.0), alpha = ref_random_between(&random, 0.0, 1.5);
        const double bow = seed % 2 == 0 ? 0.0 : ref_random_between(&random, 0.1, 2.0);
        char text[400];
        int size = snprintf(text, sizeof text, "lambda=%.17g, alpha=%.17g, bow=%.17g", lambda, alpha, bow);
        for (size_t i = 0; i < 4; i++) {
            symbol[i].lambda = ref_random_between(&random, 0.05, 1.3);
            symbol[i].alpha = i == 1 ? 0.0 : ref_random_between(&random, 0.0, 1.5);
            size += snprintf(text + size, sizeof text - (size_t)size, ", lambda.%s=%.17g, alpha.%s=%.17g",
                             symbol[i].label, symbol[i].lambda, symbol[i].label, symbol[i].alpha);
        }
        const ref_weights weights = {.lambda = lambda, .alpha = alpha, .bow = bow, .symbol = symbol, .symbols = 4};
        check_kernel(f, "sasst", text, &weights, seed);
        forest_free(f);
    }
}

/* ------------------------------------------------------------------ properties */

static void test_threads_give_the_same_bytes(void **state)
{
    (void)state;
    static const char *const kernels[] = {"sst(lambda=0.4)", "norm(sst(lambda=0.7, bow=0.3))", "st(algorithm=ftk)",
                                          "norm(sasst(lambda=0.4, lambda.NP=0.8)) + 0.5*st(lambda=1)^2"};
    forest *f = forest_new(77);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        double *one = gram_of(kernels[k], f->data, NULL, 1), *one_against = gram_of(kernels[k], f->data, f->other, 1);
        check_gram_properties(one, kernels[k]);
        for (int threads = 2; threads <= 3; threads++) {
            double *more = gram_of(kernels[k], f->data, NULL, threads);
            double *more_against = gram_of(kernels[k], f->data, f->other, threads);
            assert_memory_equal(one, more, TREES * TREES * sizeof *one);
            assert_memory_equal(one_against, more_against, TREES * OTHERS * sizeof *one);
            free(more);
            free(more_against);
        }
        free(one);
        free(one_against);
    }
    forest_free(f);
}

static void test_norm(void **state)
{
    (void)state;
    forest *f = forest_new(5); /* the first tree is a single leaf: its own value is 0 */
    for (int k = 0; k < ALGORITHMS; k++) {
        char plain[80], normed[100];
        snprintf(plain, sizeof plain, "sst(lambda=0.4, algorithm=%s)", algorithms[k]);
        snprintf(normed, sizeof normed, "norm(%s)", plain);
        double *raw = gram_of(plain, f->data, NULL, 1), *norm = gram_of(normed, f->data, NULL, 1);
        double *rows = gram_of(normed, f->data, f->other, 1), *cols = gram_of(normed, f->other, f->data, 1);
        for (size_t i = 0; i < TREES; i++) {
            for (size_t j = 0; j < TREES; j++) {
                const double self = raw[i * TREES + i] * raw[j * TREES + j];
                assert_close(norm[i * TREES + j], self > 0 ? raw[i * TREES + j] / sqrt(self) : 0.0, 1e-12, normed);
            }
            assert_true(norm[i * TREES + i] == (f->tree[i]->children == 0 ? 0.0 : 1.0));
            for (size_t j = 0; j < OTHERS; j++) assert_close(rows[i * OTHERS + j], cols[j * TREES + i], 1e-13, normed);
        }
        free(raw);
        free(norm);
        free(rows);
        free(cols);
    }
    forest_free(f);
}

static void test_diagonal(void **state)
{
    (void)state;
    static const char *const kernels[] = {"sst(lambda=0.4, bow=0.5)", "norm(st(lambda=1))", "sasst(alpha.S=0.3)^2",
                                          "2*norm(sst) + st", "sst(algorithm=qtk)"};
    forest *f = forest_new(9);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        double *gram = gram_of(kernels[k], f->data, NULL, 1), diagonal[TREES];
        esp_kernel *kernel = kernel_of(kernels[k]);
        esp_error err = {0};
        assert_ok(esp_gram_diagonal(kernel, f->data, NULL, diagonal, &err), kernels[k], &err);
        for (size_t i = 0; i < TREES; i++) assert_close(diagonal[i], gram[i * TREES + i], 1e-13, kernels[k]);
        esp_kernel_free(kernel);
        free(gram);
    }
    forest_free(f);
}

/* --------------------------------------------------------------- lambda = 1 */

/* A caterpillar of n levels, T_n = (A (B b) T_{n-1}), T_1 = (A (B b)): with lambda = 1 and D = Delta(T_i, T_j),
 * D_ii = 2^(i+1) - 2 and D_ij = 2^min(i,j) - 2, so that for d = n - m the kernel is 2^m (8 + 2d) but for a part that
 * is relatively n^2/2^m, and the normalised kernel (1 + d/4) / 2^(d/2). */
static char *caterpillar(size_t levels)
{
    char *text = malloc(levels * 16 + 1), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < levels; i++) at += sprintf(at, i + 1 < levels ? "(A (B b) " : "(A (B b)");
    memset(at, ')', levels);
    at[levels] = '\0';
    return text;
}

/* The kernel of caterpillars of n and m levels, summed up as it is defined, for small m. */
static double caterpillar_value(size_t n, size_t m)
{
    double sum = (double)n * (double)m; /* the B's */
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) sum += pow(2.0, (double)(i == j ? i + 1 : i < j ? i : j)) - 2.0;
    return sum;
}

/* A full binary tree whose leftmost leaf is `first`; returns its end. */
static char *add_binary(char *at, size_t height, char first)
{
    if (height == 1) return at + sprintf(at, "(A %c)", first);
    at += sprintf(at, "(A ");
    at = add_binary(at, height - 1, first);
    *at++ = ' ';
    at = add_binary(at, height - 1, 'a');
    return at + sprintf(at, ")");
}

static char *full_binary(size_t height, char first)
{
    char *text = malloc((size_t)16 << height);
    assert_non_null(text);
    add_binary(text, height, first);
    return text;
}

/* A root over `children` pre-terminals, all different; the words of the first `changed` are z instead of x. */
static char *fan(size_t children, size_t changed)
{
    char *text = malloc(children * 20 + 8), *at = text;
    assert_non_null(text);
    at += sprintf(at, "(A");
    for (size_t i = 0; i < children; i++) at += sprintf(at, " (B%zu %c)", i, i < changed ? 'z' : 'x');
    sprintf(at, ")");
    return text;
}

/* The value of example `first` with itself is the first that no number holds. */
static void check_overflow(const char *expression, const esp_dataset *data, size_t first)
{
    esp_kernel *kernel = kernel_of(expression);
    const size_t n = esp_dataset_count(data);
    double *gram = malloc(n * n * sizeof *gram);
    char pair[80];
    snprintf(pair, sizeof pair, "examples %zu and %zu", first, first);
    esp_error err = {0};
    for (int threads = 1; threads <= 2; threads++) {
        assert_int_equal(esp_gram(kernel, data, NULL, &(esp_run){.threads = threads}, gram, &err), ESP_ERR_RANGE);
        if (strstr(err.message, pair) == NULL) fail_msg("'%s' does not name the %s", err.message, pair);
        assert_non_null(strstr(err.message, "lambda"));
    }
    free(gram);
    esp_kernel_free(kernel);
}

static void test_lambda_one_caterpillar(void **state)
{
    (void)state;
    enum { LEVELS = 1100 };
    static const size_t shorter[] = {0, 1, 2, 7, 30};
    char *text[6];
    for (size_t i = 0; i < 5; i++) text[i] = caterpillar(LEVELS - shorter[i]);
    text[5] = caterpillar(3); /* next to nothing in common with the others */
    esp_dataset *data = dataset_of_trees(text, 6);
    double *gram = gram_of("norm(sst(lambda=1))", data, NULL, 1);
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++) {
            const double d = fabs((double)shorter[i] - (double)shorter[j]);
            assert_close(gram[i * 6 + j], (1.0 + d / 4.0) * pow(2.0, -d / 2.0), 1e-10, "norm(sst) of caterpillars");
        }
    for (size_t i = 0; i < 5; i++) {
        const double levels = (double)(LEVELS - shorter[i]);
        const double expected = caterpillar_value(LEVELS - shorter[i], 3) / sqrt(8.0 * caterpillar_value(3, 3));
        assert_close(gram[5 * 6 + i], expected * pow(2.0, -levels / 2.0), 1e-10, "norm(sst) with a short caterpillar");
    }
    assert_true(gram[5 * 6 + 5] == 1.0);
    free(gram);
    esp_dataset_free(data);
    data = dataset_of_trees((char *[]){text[5], text[0], text[1]}, 3);
    for (int k = 0; k < ALGORITHMS; k++) {
        char expression[60];
        snprintf(expression, sizeof expression, "sst(lambda=1, algorithm=%s)", algorithms[k]);
        check_overflow(expression, data, 2);
    }
    esp_dataset_free(data);
    for (size_t i = 0; i < 6; i++) free(text[i]);
}

static void test_lambda_one_fan(void **state)
{
    (void)state;
    /* 60,001 nodes. With k of the n words changed, the root's fragments in common are 2^(n-k) of 2^n. */
    enum { CHILDREN = 20000 };
    char *text[] = {fan(CHILDREN, 0), fan(CHILDREN, 1), fan(CHILDREN, 5), fan(10, 0)};
    static const double changed[] = {0, 1, 5};
    esp_dataset *data = dataset_of_trees(text, 4);
    double *gram = gram_of("norm(sst(lambda=1))", data, NULL, 1);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            assert_close(gram[i * 4 + j], pow(2.0, -fabs(changed[i] - changed[j])), 1e-10, "norm(sst) of fans");
    assert_true(gram[3 * 4 + 3] == 1.0 && gram[3] >= 0.0 && gram[3] < 1e-300);
    free(gram);
    check_overflow("sst(lambda=1)", data, 1);
    esp_dataset_free(data);
    for (size_t i = 0; i < 4; i++) free(text[i]);
}

static void test_lambda_one_full_binary(void **state)
{
    (void)state;
    enum { HEIGHT = 14 }; /* 32,767 nodes */
    char *text[] = {full_binary(HEIGHT, 'a'), full_binary(HEIGHT, 'z'), full_binary(HEIGHT - 1, 'a')};
    /* Against the tree with another first leaf, the left spine has x_1 = 0, x_h = (1 + x_{h-1})(1 + D_{h-1}) where the
     * tree itself has D_1 = 1, D_h = (1 + D_{h-1})^2; the root outweighs all other pairs. */
    double x = 0.0, d = 1.0, ratio = 0.0;
    for (int h = 2; h <= HEIGHT && d < 1e100; h++) {
        ratio = (1.0 + x) / (1.0 + d);
        x = (1.0 + x) * (1.0 + d);
        d = (1.0 + d) * (1.0 + d);
    }
    esp_dataset *data = dataset_of_trees(text, 3);
    double *gram = gram_of("norm(sst(lambda=1))", data, NULL, 1);
    for (size_t i = 0; i < 3; i++) assert_true(gram[i * 3 + i] == 1.0);
    assert_close(gram[1], ratio, 1e-10, "norm(sst) of full binary trees");
    assert_true(gram[2] >= 0.0 && gram[2] < 1e-300);
    free(gram);
    check_overflow("sst(lambda=1)", data, 1);
    esp_dataset_free(data);
    for (size_t i = 0; i < 3; i++) free(text[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_values),
        cmocka_unit_test(test_random_trees),
        cmocka_unit_test(test_random_trees_by_symbol),
        cmocka_unit_test(test_threads_give_the_same_bytes),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_diagonal),
        cmocka_unit_test(test_lambda_one_caterpillar),
        cmocka_unit_test(test_lambda_one_fan),
        cmocka_unit_test(test_lambda_one_full_binary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
