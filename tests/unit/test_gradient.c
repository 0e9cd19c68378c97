/* Gradients of whole kernel expressions against differences of their values; names of hyperparameters. */
#include "cases.h"

#include "kernel/evaluate/bound.h"
#include "kernel/expression/hyper.h"

enum { EXAMPLES = 9, OTHERS = 5 };

static esp_dataset *random_examples(ref_random *random, size_t count)
{
    static const char *const words[] = {"a", "b", "c", "d"};
    char *lines = calloc(count, 4096), *at = lines;
    for (size_t i = 0; i < count; i++) {
        char *one = ref_random_small_tree(random, 14, 2000.0, false);
        char *two = ref_random_small_tree(random, 10, 500.0, false);
        at += sprintf(at, "{\"y\": %zu, \"one\": \"%s\", \"two\": \"%s\", \"words\": \"", i, one, two);
        for (size_t k = 0, n = 1 + ref_random_below(random, 6); k < n; k++)
            at += sprintf(at, "%s%s", k > 0 ? " " : "", words[ref_random_below(random, 4)]);
        at += sprintf(at, "\", \"x\": [%.17g, %.17g, %.17g]}\n", ref_random_between(random, -1, 1),
                      ref_random_between(random, -1, 1), ref_random_between(random, -1, 1));
        free(one);
        free(two);
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

/* sum_ij W_ij K_ij, or of a diagonal, with one hyperparameter moved. */
static double sum_at(esp_kernel *kernel, size_t place, double value, const esp_dataset *rows, const esp_dataset *cols,
                     const double *weight, bool diagonal)
{
    esp_error err;
    const size_t m = esp_dataset_count(rows), n = diagonal ? 1 : esp_dataset_count(cols);
    double *values = calloc(m * n, sizeof *values), sum = 0.0;
    espi_kernel_set(kernel, place, value);
    assert_ok(espi_kernel_print(kernel, &err), "print", &err);
    esp_kernel *moved = kernel_of(esp_kernel_text(kernel)); /* what was set is what is printed */
    if (diagonal) assert_ok(esp_gram_diagonal(moved, rows, NULL, values, &err), "diagonal", &err);
    else assert_ok(esp_gram(moved, rows, cols, NULL, values, &err), "gram", &err);
    for (size_t i = 0; i < m * n; i++) sum += weight[i] * values[i];
    esp_kernel_free(moved);
    free(values);
    return sum;
}

/* Central differences of two widths, by which their errors of second order cancel. */
static double difference(esp_kernel *kernel, const espi_hyper *h, const esp_dataset *rows, const esp_dataset *cols,
                         const double *weight, bool diagonal)
{
    const double wide = 2e-3 * h->value, narrow = wide / 2;
    double slope[2];
    for (int k = 0; k < 2; k++) {
        const double step = k == 0 ? wide : narrow;
        slope[k] = (sum_at(kernel, h->place, h->value + step, rows, cols, weight, diagonal) -
                    sum_at(kernel, h->place, h->value - step, rows, cols, weight, diagonal)) /
                   (2 * step);
    }
    espi_kernel_set(kernel, h->place, h->value);
    return (4 * slope[1] - slope[0]) / 3;
}

static void compare(const char *text, const esp_dataset *rows, const esp_dataset *cols, ref_random *random,
                    bool diagonal)
{
    esp_error err;
    esp_kernel *given = kernel_of(text), *kernel;
    assert_ok(espi_kernel_expand(given, rows, &kernel, &err), text, &err);
    const size_t m = esp_dataset_count(rows), n = diagonal ? 1 : esp_dataset_count(cols);
    double *weight = calloc(m * n, sizeof *weight), *gradient = calloc(espi_kernel_places(kernel), sizeof *gradient);
    double *again = calloc(espi_kernel_places(kernel), sizeof *again);
    double *by_gram = calloc(espi_kernel_places(kernel), sizeof *by_gram);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            weight[i * n + j] =
                !diagonal && rows == cols && j < i ? weight[j * n + i] : ref_random_between(random, -1, 1);
    espi_bound *bound;
    espi_hyper *hyper;
    size_t count;
    const esp_run one = {.threads = 1}, three = {.threads = 3};
    double *gram = calloc(m * esp_dataset_count(cols), sizeof *gram);
    assert_ok(esp_gram(kernel, rows, cols, NULL, gram, &err), text, &err);
    assert_ok(espi_bind(kernel, rows, cols, NULL, &bound, &err), text, &err);
    for (int k = 0; k < 3; k++) {
        double *out = k == 0 ? gradient : k == 1 ? again : by_gram;
        const esp_run *run = k == 0 ? &one : &three;
        assert_ok(diagonal ? espi_bound_gradient_diagonal(bound, ESPI_ROWS, weight, run, out, &err)
                           : espi_bound_gradient(bound, weight, k < 2 ? NULL : gram, run, out, &err),
                  text, &err);
    }
    assert_memory_equal(gradient, again, espi_kernel_places(kernel) * sizeof *gradient);
    espi_bound_free(bound);
    assert_ok(espi_hypers_new(kernel, &hyper, &count, &err), text, &err);
    assert_true(count > 0);
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(gradient[hyper[i].place]));
    for (size_t i = 0; i < count; i++) /* values that are known already are rounded otherwise, at most */
        assert_true(fabs(by_gram[hyper[i].place] - gradient[hyper[i].place]) <= 1e-13 * largest);
    for (size_t i = 0; i < count; i++) {
        const double expected = difference(kernel, &hyper[i], rows, cols, weight, diagonal),
                     is = gradient[hyper[i].place];
        if (fabs(is - expected) > 1e-6 * fabs(expected) + 1e-9 * largest)
            fail_msg("%s%s: d/d %s is %.12g, not %.12g", text, diagonal ? ", diagonal" : "", hyper[i].name, is,
                     expected);
    }
    espi_hypers_free(hyper, count);
    free(weight);
    free(gradient);
    free(again);
    free(by_gram);
    free(gram);
    esp_kernel_free(kernel);
    esp_kernel_free(given);
}

static const char *const expressions[] = {
    "sst(one, lambda=0.4)",
    "st(one, lambda=0.3, bow=0.5)",
    "norm(sst(one, lambda=0.4, alpha=0.7))",
    "sasst(one, lambda=0.5, alpha=0.8)",
    "norm(sasst(one, lambda=0.5, lambda.A=0.2, alpha.B=0.3))",
    "norm(ptk(one, lambda=0.4, mu=0.5))",
    "ptk(two, lambda=0.6, mu=0.3)",
    "norm(gtk(one, lambda=0.4, grammar={A -> [A] B\n= B C}))",
    "seq(words, n=3, lambda=0.5)",
    "norm(seq(words, n=inf, lambda=0.7))",
    "rbf(x, gamma=0.7)",
    "rbf(x, gamma=0.7, ard=1)",
    "poly(x, degree=3, gamma=0.4, coef0=0.6)",
    "2*norm(sst(one)) + 0.3*rbf(x)",
    "3*(0.7*norm(sst(one)))",
    "2*norm(seq(words, n=2)) + 0.3*norm(ptk(two))",
    "norm(0.4*seq(words, n=inf) + ptk(one) + gtk(two) + linear(x))",
    "norm(sst(one))*norm(sst(two, lambda=0.2))",
    "(0.5*norm(seq(words)) + poly(x, degree=2))^3",
    "norm(sst(one) + 0.7*norm(ptk(two))*rbf(x))",
    "norm(2*norm(sst(one) + sst(two, lambda=0.9)) + linear(x)^2)",
};

static void test_expressions(void **state)
{
    (void)state;
    ref_random random = {11};
    esp_dataset *data = random_examples(&random, EXAMPLES), *other = random_examples(&random, OTHERS);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        compare(expressions[i], data, data, &random, false);
        compare(expressions[i], data, other, &random, false);
        compare(expressions[i], data, data, &random, true);
    }
    esp_dataset_free(data);
    esp_dataset_free(other);
}

static void assert_names(const char *text, const esp_dataset *data, const char *expected)
{
    esp_error err;
    esp_kernel *given = kernel_of(text), *kernel;
    espi_hyper *hyper;
    size_t count;
    char names[1024] = "";
    assert_ok(espi_kernel_expand(given, data, &kernel, &err), text, &err);
    assert_ok(espi_hypers_new(kernel, &hyper, &count, &err), text, &err);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) strcat(names, " ");
        strcat(names, hyper[i].name);
        assert_true(hyper[i].low > 0.0 && hyper[i].low <= hyper[i].draw_low);
        assert_true(hyper[i].draw_high <= hyper[i].high && hyper[i].draw_low < hyper[i].draw_high);
    }
    assert_string_equal(names, expected);
    espi_hypers_free(hyper, count);
    esp_kernel_free(kernel);
    esp_kernel_free(given);
}

static void test_names(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"t\": \"(S (A a) (B b))\", \"u\": \"(S (A a))\", \"x\": {\"len\": 1, \"a b\": 2}}\n");
    assert_names("sst(t)", data, "lambda alpha");
    assert_names("2*sst(t)", data, "lambda alpha weight");
    assert_names("2*sst(t) + 3*rbf(x)", data, "lambda alpha gamma weight.1 weight.2");
    assert_names("sst(t) + sst(u)", data, "sst(t).lambda sst(t).alpha sst(u).lambda sst(u).alpha");
    assert_names("sst(t) + sst(t, lambda=0.1)", data, "sst(t)#1.lambda sst(t)#1.alpha sst(t)#2.lambda sst(t)#2.alpha");
    assert_names("sasst(t)", data, "lambda alpha lambda.A lambda.B lambda.S alpha.A alpha.B alpha.S");
    assert_names("sasst(t, lambda.S=0.3)", data, "lambda alpha lambda.S");
    assert_names("rbf(x, ard=1)", data, "gamma gamma.a b gamma.len");
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_expressions), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
