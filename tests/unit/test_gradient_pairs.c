/* Derivatives of single values: against differences of these values, and their weighted sums against the gradient of
 * the sum, which is made in another way. */
#include "cases.h"

#include "kernel/evaluate/bound.h"
#include "kernel/expression/hyper.h"

/* Equal examples, trees that share nothing, self-values of 0, and features that few examples have. */
static const char lines[] =
    "{\"one\": \"(S (A a) (B (A a) (C c)))\", \"two\": \"(A (B b) (B b))\", \"words\": \"a b a c\", \"x\": {\"u\": 1, "
    "\"v\": -0.5}}\n"
    "{\"one\": \"(S (A a) (B (A b) (C c)))\", \"two\": \"(A (B b) (C b))\", \"words\": \"a b\", \"x\": {\"u\": 0.4}}\n"
    "{\"one\": \"(S (A a) (B (A a) (C c)))\", \"two\": \"(A (B b) (B b))\", \"words\": \"a b a c\", \"x\": {\"u\": 1, "
    "\"v\": -0.5}}\n"
    "{\"one\": \"(T d)\", \"two\": \"(A (A (A a)))\", \"words\": \"d\", \"x\": {\"w\": 2}}\n"
    "{\"one\": \"\", \"two\": \"(B b)\", \"words\": \"\", \"x\": {\"u\": 1}}\n"
    "{\"one\": \"(B (A a) (C c))\", \"two\": \"(A (C b))\", \"words\": \"c b a a b\", \"x\": {\"v\": 1.5, \"w\": "
    "-1}}\n";

static const char *const expressions[] = {
    "sst(one, lambda=0.4)",
    "st(one, lambda=0.3, bow=0.5)",
    "norm(sst(one, lambda=0.4, alpha=0.7, bow=0.2))",
    "norm(sasst(one, lambda=0.5, lambda.A=0.2, alpha.B=0.3))",
    "norm(ptk(two, lambda=0.4, mu=0.5))",
    "norm(gtk(one, lambda=0.4, grammar={A -> [A] B\n= B C}))",
    "norm(seq(words, n=3, lambda=0.5))",
    "rbf(x, gamma=0.7, ard=1)",
    "poly(x, degree=3, gamma=0.4, coef0=0.6)",
    "2*norm(sst(one)) + 0.3*rbf(x)",
    "(0.5*norm(seq(words)) + poly(x, degree=2))^3",
    "norm(sst(one) + 0.7*norm(ptk(two))*rbf(x))",
    "norm(2*norm(sst(one) + sst(two, lambda=0.9)) + linear(x)^2)",
};

static esp_kernel *expanded(const char *text, const esp_dataset *data)
{
    esp_error err;
    esp_kernel *given = kernel_of(text), *kernel;
    assert_ok(espi_kernel_expand(given, data, &kernel, &err), text, &err);
    esp_kernel_free(given);
    return kernel;
}

/* The matrix with the values of the hyperparameters, but one, which is moved. */
static double *moved_gram(const esp_kernel *kernel, const esp_dataset *data, const espi_hyper *hyper, size_t count,
                          size_t which, double value)
{
    esp_error err;
    const size_t n = esp_dataset_count(data);
    double *values = malloc(count * sizeof *values), *gram = malloc(n * n * sizeof *gram);
    esp_kernel *moved;
    for (size_t h = 0; h < count; h++) values[h] = h == which ? value : hyper[h].value;
    assert_ok(esp_kernel_with_values(kernel, values, &moved, &err), "other values", &err);
    assert_ok(esp_gram(moved, data, NULL, NULL, gram, &err), "gram", &err);
    esp_kernel_free(moved);
    free(values);
    return gram;
}

/* Central differences of two widths, by which their errors of second order cancel. */
static double *difference(const esp_kernel *kernel, const esp_dataset *data, const espi_hyper *hyper, size_t count,
                          size_t which)
{
    const size_t n = esp_dataset_count(data);
    double *slope = calloc(n * n, sizeof *slope);
    for (int k = 0; k < 2; k++) {
        const double step = (k == 0 ? 2e-3 : 1e-3) * hyper[which].value, factor = k == 0 ? -1.0 / 3 : 4.0 / 3;
        double *up = moved_gram(kernel, data, hyper, count, which, hyper[which].value + step);
        double *down = moved_gram(kernel, data, hyper, count, which, hyper[which].value - step);
        for (size_t i = 0; i < n * n; i++) slope[i] += factor * (up[i] - down[i]) / (2 * step);
        free(up);
        free(down);
    }
    return slope;
}

static void compare_differences(const esp_kernel *kernel, const esp_dataset *data, const espi_hyper *hyper,
                                size_t count, const double *gradient)
{
    const size_t n = esp_dataset_count(data);
    for (size_t h = 0; h < count; h++) {
        double *expected = difference(kernel, data, hyper, count, h), largest = 0.0;
        for (size_t i = 0; i < n * n; i++) largest = fmax(largest, fabs(expected[i]));
        for (size_t i = 0; i < n * n; i++)
            if (fabs(gradient[i * count + h] - expected[i]) > 1e-7 * largest + 1e-9)
                fail_msg("%s: the derivative of pair %zu, %zu by %s is %.12g, not %.12g", kernel->text, i / n + 1,
                         i % n + 1, hyper[h].name, gradient[i * count + h], expected[i]);
        free(expected);
    }
}

static void compare_sums(const esp_kernel *kernel, const esp_dataset *data, const espi_hyper *hyper, size_t count,
                         const double *gradient, ref_random *random)
{
    const size_t n = esp_dataset_count(data);
    double *weight = malloc(n * n * sizeof *weight), *sum = calloc(espi_kernel_places(kernel), sizeof *sum);
    espi_bound *bound;
    esp_error err;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) weight[i * n + j] = weight[j * n + i] = ref_random_between(random, -1, 1);
    assert_ok(espi_bind(kernel, data, data, NULL, &bound, &err), kernel->text, &err);
    assert_ok(espi_bound_gradient(bound, weight, NULL, NULL, sum, &err), kernel->text, &err);
    for (size_t h = 0; h < count; h++) {
        double own = 0.0, size = 0.0;
        for (size_t i = 0; i < n * n; i++) own += weight[i] * gradient[i * count + h];
        for (size_t i = 0; i < n * n; i++) size += fabs(weight[i] * gradient[i * count + h]);
        if (fabs(own - sum[hyper[h].place]) > 1e-10 * size)
            fail_msg("%s: the sum by %s is %.17g, not %.17g", kernel->text, hyper[h].name, own, sum[hyper[h].place]);
    }
    espi_bound_free(bound);
    free(weight);
    free(sum);
}

static void check(const char *text, const esp_dataset *data, ref_random *random)
{
    esp_error err;
    espi_hyper *hyper;
    size_t count;
    const size_t n = esp_dataset_count(data);
    esp_kernel *kernel = expanded(text, data);
    assert_ok(espi_hypers_new(kernel, &hyper, &count, &err), text, &err);
    assert_true(count > 0);
    double *gradient = malloc(n * n * count * sizeof *gradient), *again = malloc(n * n * count * sizeof *again);
    assert_ok(esp_gram_gradient(kernel, data, &(esp_run){.threads = 1}, gradient, &err), text, &err);
    assert_ok(esp_gram_gradient(kernel, data, &(esp_run){.threads = 3}, again, &err), text, &err);
    assert_memory_equal(gradient, again, n * n * count * sizeof *gradient);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            assert_memory_equal(gradient + (i * n + j) * count, gradient + (j * n + i) * count,
                                count * sizeof *gradient);
    compare_differences(kernel, data, hyper, count, gradient);
    compare_sums(kernel, data, hyper, count, gradient, random);
    free(gradient);
    free(again);
    espi_hypers_free(hyper, count);
    esp_kernel_free(kernel);
}

static void test_expressions(void **state)
{
    (void)state;
    ref_random random = {5};
    esp_dataset *data = dataset_of(lines);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) check(expressions[i], data, &random);
    esp_dataset_free(data);
}

static void test_random_trees(void **state)
{
    (void)state;
    ref_random random = {17};
    char *tree[12];
    for (size_t i = 0; i < 12; i++) tree[i] = ref_random_small_tree(&random, 20, 3000.0, false);
    esp_dataset *data = dataset_of_trees(tree, 12);
    check("norm(sasst(lambda=0.5))", data, &random);
    check("0.3*norm(sst(lambda=0.2)) + ptk(lambda=0.3)*norm(st)", data, &random);
    for (size_t i = 0; i < 12; i++) free(tree[i]);
    esp_dataset_free(data);
}

static void test_hyperparameters(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_kernel *kernel = kernel_of("2*sst(lambda=0.3, alpha=0.5)"), *other;
    esp_hyperparameters *hyper;
    double low, high;
    assert_ok(esp_hyperparameters_new(kernel, &hyper, &err), "hyperparameters", &err);
    assert_int_equal(esp_hyperparameters_count(hyper), 3);
    assert_string_equal(esp_hyperparameters_name(hyper, 0), "lambda");
    assert_string_equal(esp_hyperparameters_name(hyper, 1), "alpha");
    assert_string_equal(esp_hyperparameters_name(hyper, 2), "weight");
    assert_true(esp_hyperparameters_value(hyper, 0, &low, &high) == 0.3 && low > 0.0 && low < 0.3 && high > 0.3);
    assert_true(esp_hyperparameters_value(hyper, 2, NULL, NULL) == 2.0);
    esp_hyperparameters_free(hyper);
    assert_ok(esp_kernel_with_values(kernel, (const double[]){0.1, 0.7, 3.0}, &other, &err), "values", &err);
    esp_kernel *expected = kernel_of("3*sst(lambda=0.1, alpha=0.7)");
    assert_string_equal(esp_kernel_text(other), esp_kernel_text(expected));
    esp_kernel_free(expected);
    esp_kernel_free(other);
    assert_int_equal(esp_kernel_with_values(kernel, (const double[]){0.1, 0.0, 3.0}, &other, &err), ESP_ERR_PARAM);
    assert_null(other);
    assert_non_null(strstr(err.message, "alpha is 0"));
    assert_int_equal(esp_kernel_with_values(kernel, (const double[]){(double)NAN, 1.0, 3.0}, &other, &err),
                     ESP_ERR_PARAM);
    esp_kernel_free(kernel);
}

static void test_refused(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_dataset *data = dataset_of(lines);
    esp_kernel *kernel = kernel_of("sst(one)"), *plain = kernel_of("linear(x)"),
               *slow = kernel_of("sst(one, algorithm=ftk)");
    esp_kernel *large = kernel_of("2*poly(x, degree=100, gamma=1000000)");
    double gradient[6 * 6 * 3];
    assert_int_equal(esp_gram_gradient(kernel, data, &(esp_run){.memory = 64}, gradient, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "the limit is"));
    assert_ok(esp_gram_gradient(plain, data, NULL, NULL, &err), "no hyperparameters", &err);
    assert_int_equal(esp_gram_gradient(slow, data, NULL, gradient, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_gram_gradient(large, data, NULL, gradient, &err), ESP_ERR_RANGE);
    esp_kernel_free(kernel);
    esp_kernel_free(plain);
    esp_kernel_free(slow);
    esp_kernel_free(large);
    esp_dataset_free(data);
}

typedef struct work {
    const esp_kernel *kernel;
    const esp_dataset *data;
} work;

static esp_status gradient_of_work(const void *argument, esp_error *err)
{
    const work *w = argument;
    double gradient[6 * 6 * 4];
    return esp_gram_gradient(w->kernel, w->data, &(esp_run){.threads = 1}, gradient, err);
}

static esp_status other_values(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_hyperparameters *hyper = NULL;
    esp_kernel *other = NULL;
    esp_status status = esp_hyperparameters_new(w->kernel, &hyper, err);
    if (status == ESP_OK) status = esp_kernel_with_values(w->kernel, (const double[]){0.1, 0.2, 0.3, 0.4}, &other, err);
    assert_true((status == ESP_OK) == (other != NULL));
    esp_hyperparameters_free(hyper);
    esp_kernel_free(other);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(lines);
    esp_kernel *kernel = kernel_of("2*norm(sst(one)) + rbf(x)");
    const work w = {kernel, data};
    out_of_memory_everywhere(gradient_of_work, &w);
    out_of_memory_everywhere(other_values, &w);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_expressions), cmocka_unit_test(test_random_trees),
                                       cmocka_unit_test(test_hyperparameters), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
