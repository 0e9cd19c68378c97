/* Vector kernels against their definitions, combinations against their parts, and kernel expressions as text. */
#include "cases.h"

/* ----------------------------------------------------------------- vectors */

enum { VECTORS = 12, OTHERS = 5, FEATURES = 9 };

/* Random sparse vectors over the features f<shift> .. f<shift + FEATURES - 1>, some of them empty. */
static esp_dataset *random_vectors(ref_random *random, size_t count, size_t shift, ref_entry (*entry)[FEATURES + 1],
                                   char (*names)[8])
{
    char lines[VECTORS * FEATURES * 40], *at = lines;
    for (size_t i = 0; i < count; i++) {
        size_t entries = 0;
        at += sprintf(at, "{\"x\": {");
        for (size_t f = 0; f < FEATURES; f++) {
            if (i == 2 || ref_random_below(random, 2) == 0) continue;
            sprintf(names[f], "f%zu", f + shift);
            entry[i][entries] = (ref_entry){names[f], ref_random_between(random, -2.0, 2.0)};
            at += sprintf(at, "%s\"%s\": %.17g", entries > 0 ? ", " : "", names[f], entry[i][entries].value);
            entries++;
        }
        entry[i][entries] = (ref_entry){0};
        at += sprintf(at, "}}\n");
    }
    return dataset_of(lines);
}

static void test_vectors(void **state)
{
    (void)state;
    ref_entry a[VECTORS][FEATURES + 1], b[OTHERS][FEATURES + 1];
    char a_names[FEATURES][8], b_names[FEATURES][8];
    ref_random random = {3};
    esp_dataset *data = random_vectors(&random, VECTORS, 0, a, a_names);
    esp_dataset *other = random_vectors(&random, OTHERS, 4, b, b_names); /* four features of its own */
    const esp_dataset *const rows[] = {data, data, other}, *const cols[] = {NULL, other, data};
    for (int k = 0; k < 3; k++) {
        const size_t m = esp_dataset_count(rows[k]), n = esp_dataset_count(cols[k] == NULL ? rows[k] : cols[k]);
        double *linear = gram_of("linear(x)", rows[k], cols[k], 1);
        double *poly = gram_of("poly(x, degree=3, gamma=0.5, coef0=0.25)", rows[k], cols[k], 2);
        double *plain = gram_of("poly(x, degree=2, gamma=1, coef0=0)", rows[k], cols[k], 2);
        double *rbf = gram_of("rbf(x, gamma=0.3)", rows[k], cols[k], 1);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                const ref_entry *x = k == 2 ? b[i] : a[i], *y = k == 1 ? b[j] : a[j];
                const size_t at = i * n + j;
                assert_true(fabs(linear[at] - ref_linear(x, y)) <= 1e-13);
                assert_true(fabs(plain[at] - ref_poly(x, y, 1, 0, 2)) <= 1e-12);
                assert_true(fabs(poly[at] - ref_poly(x, y, 0.5, 0.25, 3)) <= 1e-12);
                assert_close(rbf[at], ref_rbf(x, y, 0.3), 1e-11, "rbf");
            }
        free(linear);
        free(poly);
        free(plain);
        free(rbf);
    }
    double *normed = gram_of("norm(linear(x))", other, data, 1); /* the features that `data` lacks count in the norm */
    for (size_t i = 0; i < OTHERS; i++)
        for (size_t j = 0; j < VECTORS; j++) {
            const double self = ref_linear(b[i], b[i]) * ref_linear(a[j], a[j]);
            const double expected = self > 0 ? ref_linear(b[i], a[j]) / sqrt(self) : 0.0;
            assert_true(fabs(normed[i * VECTORS + j] - expected) <= 1e-13);
        }
    free(normed);
    esp_dataset_free(data);
    esp_dataset_free(other);
}

static void test_rbf_of_close_vectors(void **state)
{
    (void)state;
    /* |x|^2 + |y|^2 - 2 x.y would lose everything here. */
    esp_dataset *data = dataset_of("{\"x\": [100000000, 1]}\n{\"x\": [100000001, 1]}\n");
    assert_close(value_of("rbf(gamma=0.5)", data), exp(-0.5), 1e-13, "rbf of close vectors");
    esp_dataset_free(data);
}

static void test_words_are_lower_cased(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"words\": \"The cat saw the CAT\"}\n{\"words\": \"A cat is THE cat\"}\n");
    assert_close(value_of("linear(words)", data), 2.0 * 1.0 + 2.0 * 2.0, 1e-15, "linear over words");
    assert_close(value_of("poly(words, degree=2, gamma=1, coef0=1)", data), 49.0, 1e-15, "poly over words");
    assert_close(value_of("norm(linear(words))", data), 6.0 / sqrt(9.0 * 7.0), 1e-14, "norm over words");
    assert_close(value_of("rbf(words, gamma=0.1)", data), exp(-0.1 * (9.0 + 7.0 - 12.0)), 1e-14, "rbf over words");
    esp_dataset_free(data);
}

/* ------------------------------------------------------------- combinations */

#define LINE_1 "{\"tree\": \"(S (A a) (B b))\", \"other\": \"(X (Y y) z)\", \"x\": {\"p\": 1, \"q\": 2}}\n"
#define LINE_2 "{\"tree\": \"(S (A a) (B c))\", \"other\": \"(X (Y y))\", \"x\": {\"q\": 3, \"r\": -1}}\n"
#define LINE_3 "{\"tree\": \"(A)\", \"other\": \"(X (Y y) z)\", \"x\": {\"p\": -1}}\n"
enum { LINES = 3 };

/* The value at i, j of a combination, given the matrices s = sst(tree), t = st(other), l = linear(x). */
typedef double combined(const double *s, const double *t, const double *l, size_t i, size_t j);

static double at(const double *m, size_t i, size_t j) { return m[i * LINES + j]; }
static double unit(const double *m, size_t i, size_t j)
{
    const double self = at(m, i, i) * at(m, j, j);
    return self > 0 ? at(m, i, j) / sqrt(self) : 0.0;
}

#define COMBINED(name, value)                                                                                          \
    static double name(const double *s, const double *t, const double *l, size_t i, size_t j)                          \
    {                                                                                                                  \
        (void)s, (void)t, (void)l;                                                                                     \
        return value;                                                                                                  \
    }
COMBINED(sum, at(s, i, j) + at(t, i, j) + at(l, i, j))
COMBINED(product, at(s, i, j) * at(t, i, j))
COMBINED(weighted, 0.25 * at(s, i, j) + 3.0 * at(l, i, j))
COMBINED(cubed, at(s, i, j) * at(s, i, j) * at(s, i, j))
COMBINED(ordered, at(s, i, j) + at(t, i, j) * at(l, i, j) * at(l, i, j))
COMBINED(bracketed, (at(s, i, j) + at(t, i, j)) * (at(l, i, j) + 2.0 * at(t, i, j)))
COMBINED(normed, unit(s, i, j) + 0.5 * unit(l, i, j))
COMBINED(power_of_sum, pow(unit(s, i, j) + 2.0 * unit(t, i, j), 2))

static double norm_of(combined *inner, const double *s, const double *t, const double *l, size_t i, size_t j)
{
    const double self = inner(s, t, l, i, i) * inner(s, t, l, j, j);
    return self > 0 ? inner(s, t, l, i, j) / sqrt(self) : 0.0;
}
COMBINED(norm_of_sum, norm_of(sum, s, t, l, i, j))
COMBINED(norm_of_product, norm_of(product, s, t, l, i, j))
COMBINED(norm_of_norms, norm_of(normed, s, t, l, i, j))
COMBINED(norm_of_power, norm_of(power_of_sum, s, t, l, i, j))

#define SST "sst(tree, lambda=0.7)"
#define ST "st(other, lambda=0.9)"
static const struct {
    const char *expression;
    combined *value;
} combinations[] = {
    {SST " + " ST " + linear(x)", sum},
    {SST "*" ST, product},
    {"0.25*" SST "+linear(x)*3", weighted},
    {SST "^3", cubed},
    {SST "^1 * " SST "^2", cubed},
    {SST " + " ST "*linear(x)^2", ordered},
    {"(" SST " + " ST ") * ( linear + 2*" ST " )", bracketed},
    {"norm(" SST ") + 0.5 * norm(linear)", normed},
    {"(norm(" SST ") + 2*norm(" ST "))^2", power_of_sum},
    {"norm(" SST " + " ST " + linear(x))", norm_of_sum},
    {"norm(" SST "*" ST ")", norm_of_product},
    {"norm(norm(" SST "*" ST "))", norm_of_product},
    {"norm(2*(" SST "*" ST "))", norm_of_product},
    {"norm(norm(" SST ") + 0.5*norm(linear))", norm_of_norms},
    {"norm((norm(" SST ") + 2*norm(" ST "))^2)", norm_of_power},
};

static void test_combinations(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(LINE_1 LINE_2 LINE_3), *again = dataset_of(LINE_1 LINE_2 LINE_3);
    double *s = gram_of(SST, data, NULL, 1), *t = gram_of(ST, data, NULL, 1), *l = gram_of("linear", data, NULL, 1);
    for (size_t k = 0; k < sizeof combinations / sizeof *combinations; k++) {
        double *one = gram_of(combinations[k].expression, data, NULL, 1);
        double *two = gram_of(combinations[k].expression, data, again, 2);
        for (size_t i = 0; i < LINES; i++)
            for (size_t j = 0; j < LINES; j++) {
                const double expected = combinations[k].value(s, t, l, i, j);
                assert_close(at(one, i, j), expected, 1e-13, combinations[k].expression);
                assert_close(at(two, i, j), expected, 1e-13, combinations[k].expression);
            }
        free(one);
        free(two);
    }
    free(s);
    free(t);
    free(l);
    esp_dataset_free(data);
    esp_dataset_free(again);
}

/* ----------------------------------------------------------------- printing */

static void test_print_round_trip(void **state)
{
    (void)state;
    static const char *const more[] = {
        "sst",
        "st()",
        "poly(x)",
        "rbf(x, gamma=1e-05)",
        "sst(tree, lambda=0.1, alpha=0, bow=1e300, algorithm=qtk)",
        "sasst(tree, lambda=0.3333333333333333, lambda.NP=0.8, alpha.S=0.5, lambda.\"PRP$\"=2)",
        "sasst(tree, lambda=1e-300, alpha.\"a \\\" b\\\\\"=1)",
        "sst(\"tree\")^2^2",
        "(sst(tree)^2)^3",
        "2*(3*st(other))",
        "(st(other) + linear)*2*(linear + st(other))",
        "st(other) + (linear + (st(other) + linear))",
        "st(other)*(linear*st(other))",
        "0.1*0.2*linear(x)",
        "((((linear(x)))))",
        "norm(norm(norm(linear(x) + 1e-9*linear(x))))"};
    esp_dataset *data = dataset_of(LINE_1 LINE_2 LINE_3);
    const size_t known = sizeof combinations / sizeof *combinations, count = known + sizeof more / sizeof *more;
    for (size_t k = 0; k < count; k++) {
        const char *expression = k < known ? combinations[k].expression : more[k - known];
        esp_kernel *kernel = kernel_of(expression), *again = kernel_of(esp_kernel_text(kernel));
        assert_string_equal(esp_kernel_text(kernel), esp_kernel_text(again));
        if (strstr(expression, "(tree") != NULL || strchr(expression, 'x') != NULL) { /* says which column */
            double *one = gram_of(expression, data, NULL, 1), *two = gram_of(esp_kernel_text(kernel), data, NULL, 1);
            assert_memory_equal(one, two, LINES * LINES * sizeof *one);
            free(one);
            free(two);
        }
        esp_kernel_free(kernel);
        esp_kernel_free(again);
    }
    esp_dataset_free(data);
}

static void test_symbols_print_in_one_order(void **state)
{
    (void)state;
    esp_kernel *a = kernel_of("sasst(alpha.B=1, lambda.B=0.5, lambda.A=0.25)");
    esp_kernel *b = kernel_of("sasst(lambda.A=0.25, lambda.B=0.5, alpha.B=1)");
    assert_string_equal(esp_kernel_text(a), esp_kernel_text(b));
    esp_kernel_free(a);
    esp_kernel_free(b);
}

/* ------------------------------------------------------------------- errors */

static const struct {
    const char *expression, *says;
    size_t column; /* 0: anywhere */
} wrong[] = {
    {"sstt(lambda=0.4)", "unknown kernel 'sstt'; did you mean 'sst'?", 1},
    {"sst + lineer(x)", "unknown kernel 'lineer'; did you mean 'linear'?", 7},
    {"sst(lamda=0.4)", "did you mean 'lambda'?", 5},
    {"sst(tree, lambda=0)", "> 0", 18},
    {"sst(lambda=-1)", "'-1'", 12},
    {"sst(alpha=-0.5)", "'-0.5'", 11},
    {"sst(lambda=nan)", "nan", 12},
    {"sst(lambda=inf)", "inf", 12},
    {"sst(lambda=1e999)", "1e999", 12},
    {"sst(bow=-1)", "'-1'", 9},
    {"sst(algorithm=fast)", "dag", 15},
    {"sst(lambda.NP=0.5)", "symbol", 0},
    {"sasst(lambda.NP=0)", "> 0", 17},
    {"sasst(lambda.NP=1, lambda.NP=2)", "twice", 20},
    {"sasst(lambda.=1)", "symbol", 14},
    {"sst(lambda=0.4, lambda=0.5)", "twice", 17},
    {"poly(x, degree=0)", "'0'", 16},
    {"poly(degree=1.5)", "'1.5'", 13},
    {"rbf(gamma=0)", "'0'", 11},
    {"linear(x, gamma=1)", "gamma", 11},
    {"sst(", "expected", 0},
    {"sst(tree", "never closed", 4},
    {"sst(tree))", "never opened", 10},
    {"(sst", "closed", 1},
    {"sst sst", "'sst'", 5},
    {"sst + ", "the end", 0},
    {"+ sst", "'+'", 1},
    {"", "", 1},
    {"norm", "norm", 0},
    {"norm()", "", 0},
    {"2", "weight", 1},
    {"2 + sst", "weight", 1},
    {"0*sst", "positive", 1},
    {"-1*sst", "positive", 1},
    {"sst^0", "whole number", 5},
    {"sst^1.5", "whole number", 5},
    {"sst^sst", "whole number", 5},
    {"sst(tree, x)", "name=value", 11},
    {"sst(\"tree)", "does not end", 5},
    {"sst ~ st", "'~'", 5},
};

static void test_wrong_expressions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        esp_kernel *kernel = (esp_kernel *)1;
        esp_error err = {0};
        if (esp_kernel_parse(wrong[i].expression, &kernel, &err) != ESP_ERR_PARAM)
            fail_msg("'%s' is accepted", wrong[i].expression);
        assert_null(kernel);
        if (strstr(err.message, wrong[i].says) == NULL || (wrong[i].column != 0 && err.column != wrong[i].column))
            fail_msg("'%s' gives, at column %zu: %s", wrong[i].expression, err.column, err.message);
        assert_int_equal(esp_kernel_parse(wrong[i].expression, &kernel, NULL), ESP_ERR_PARAM);
    }
}

static void test_wrong_columns(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"sst(tre)", "'tre'"}, {"sst", "other"}, {"sst(x)", "'x'"}, {"linear(tree)", "tree"}, {"poly(y)", "'y'"}};
    esp_dataset *data = dataset_of(LINE_1 LINE_2);
    double gram[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        esp_kernel *kernel = kernel_of(cases[i][0]);
        esp_error err = {0};
        assert_int_equal(esp_gram(kernel, data, NULL, NULL, gram, &err), ESP_ERR_PARAM);
        if (strstr(err.message, cases[i][1]) == NULL) fail_msg("%s: %s", cases[i][0], err.message);
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
}

static void test_overflow_of_combinations(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": [1]}\n{\"x\": [1e200]}\n");
    static const char *const kernels[] = {"linear", "poly(degree=2, gamma=1, coef0=0)", "linear^2", "linear*linear",
                                          "1e300*linear"};
    double gram[4];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        esp_kernel *kernel = kernel_of(kernels[i]);
        esp_error err = {0};
        if (esp_gram(kernel, data, NULL, NULL, gram, &err) != ESP_ERR_RANGE) fail_msg("%s fits", kernels[i]);
        assert_non_null(strstr(err.message, "2"));
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
}

static void test_single_precision(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": [1, 2]}\n{\"x\": [0.3, 4]}\n{\"x\": [1, 2]}\n");
    esp_kernel *kernel = kernel_of("norm(linear)"), *large = kernel_of("1e39*linear");
    double gram[9];
    float half[9];
    esp_error err = {0};
    assert_ok(esp_gram(kernel, data, NULL, NULL, gram, &err), "gram", &err);
    assert_ok(esp_gram_single(kernel, data, NULL, NULL, half, &err), "gram", &err);
    for (size_t i = 0; i < 9; i++) assert_true(half[i] == (float)gram[i]);
    assert_true(gram[2] == 1.0); /* equal examples, but for rounding */
    assert_int_equal(esp_gram_single(large, data, NULL, NULL, half, &err), ESP_ERR_RANGE);
    const esp_run run = {.memory = 35}; /* the matrix takes 36 */
    assert_int_equal(esp_gram_single(kernel, data, NULL, &run, half, &err), ESP_ERR_MEMORY);
    esp_kernel_free(kernel);
    esp_kernel_free(large);
    esp_dataset_free(data);
}

/* Roots over 1100 pre-terminals, of which `changed` words differ, next to a vector: with lambda = 1 the fragments of
 * the root alone, 2^1100, are too many for a number, and norm(sst) of two trees is 2^-(difference of changed). */
static esp_dataset *huge_examples(const size_t *changed, const double (*x)[2], const char *second, size_t count)
{
    enum { CHILDREN = 1100 };
    char *lines = malloc(count * (CHILDREN * 16 + 200)), *end = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        end += sprintf(end, "{\"tree\": \"(A");
        for (size_t c = 0; c < CHILDREN; c++) end += sprintf(end, " (B%zu %c)", c, c < changed[i] ? 'z' : 'x');
        end += sprintf(end, ")\", \"x\": {\"p\": %.17g, \"%s\": %.17g}}\n", x[i][0], second, x[i][1]);
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

static void check_huge(const esp_dataset *rows, const esp_dataset *cols, const size_t *row_changed,
                       const size_t *col_changed, const double (*a)[2], const double (*b)[2], bool same_features)
{
    static const char *const expressions[] = {
        "norm(sst(lambda=1) + linear)",       "norm(sst(lambda=1)*linear)",
        "norm(sst(lambda=1)*rbf(gamma=0.1))", "norm(2*sst(lambda=1)^2)",
        "norm(sst(lambda=1))*linear",         "norm(sst(lambda=1)*poly(degree=2, gamma=1, coef0=1))"};
    const size_t m = esp_dataset_count(rows), n = esp_dataset_count(cols);
    double *gram[6];
    for (size_t k = 0; k < 6; k++) gram[k] = gram_of(expressions[k], rows, cols, 1);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const double tree = pow(2.0, -fabs((double)row_changed[i] - (double)col_changed[j]));
            const double aa = a[i][0] * a[i][0] + a[i][1] * a[i][1], bb = b[j][0] * b[j][0] + b[j][1] * b[j][1];
            const double ab = a[i][0] * b[j][0] + (same_features ? a[i][1] * b[j][1] : 0.0);
            const double poly = (1.0 + ab) * (1.0 + ab) / ((1.0 + aa) * (1.0 + bb));
            const double expected[] = {
                tree,       tree * ab / sqrt(aa * bb), tree * exp(-0.1 * (aa + bb - 2.0 * ab)), tree * tree, tree * ab,
                tree * poly};
            for (size_t k = 0; k < 6; k++) assert_close(gram[k][i * n + j], expected[k], 1e-10, expressions[k]);
        }
    for (size_t k = 0; k < 6; k++) free(gram[k]);
}

static void test_norm_of_huge_values(void **state)
{
    (void)state;
    static const size_t one_changed[] = {0, 1, 5}, two_changed[] = {2, 3};
    static const double one_x[][2] = {{1, 2}, {-0.5, 1}, {3, 0.25}}, two_x[][2] = {{1, -2}, {2, 4}};
    esp_dataset *one = huge_examples(one_changed, one_x, "q", 3), *two = huge_examples(two_changed, two_x, "own", 2);
    check_huge(one, one, one_changed, one_changed, one_x, one_x, true);
    check_huge(one, two, one_changed, two_changed, one_x, two_x, false);
    check_huge(two, one, two_changed, one_changed, two_x, one_x, false);
    esp_dataset_free(one);
    esp_dataset_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_rbf_of_close_vectors),
        cmocka_unit_test(test_words_are_lower_cased),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_print_round_trip),
        cmocka_unit_test(test_symbols_print_in_one_order),
        cmocka_unit_test(test_wrong_expressions),
        cmocka_unit_test(test_wrong_columns),
        cmocka_unit_test(test_overflow_of_combinations),
        cmocka_unit_test(test_single_precision),
        cmocka_unit_test(test_norm_of_huge_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
