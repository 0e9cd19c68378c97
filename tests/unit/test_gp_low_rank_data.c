/* The low-rank Gaussian process on data: pivots, derivatives in hyperparameters, threads and memory. */
#include "cases.h"
#include "kernel/expression/hyper.h"
#include "learn/gp/inducing.h"

static esp_dataset *examples(size_t count)
{
    ref_random random = {5};
    char *lines = malloc(count * 400), *at_line = lines;
    for (size_t i = 0; i < count; i++) {
        char *tree = ref_random_small_tree(&random, 12, 1000, false);
        at_line += sprintf(at_line, "{\"y\": %.6f, \"tree\": \"%s\", \"x\": [%.6f, %.6f]}\n",
                           ref_random_between(&random, -1, 1), tree, ref_random_between(&random, -1, 1),
                           ref_random_between(&random, -1, 1));
        free(tree);
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

static double *targets(const esp_dataset *data)
{
    double *y = malloc(esp_dataset_count(data) * sizeof *y);
    for (size_t i = 0; i < esp_dataset_count(data); i++) y[i] = strtod(esp_dataset_target(data, i), NULL);
    return y;
}

static double value_at(espi_inducing *s, esp_kernel *kernel, size_t place, double value, const double *y)
{
    esp_error err = {0};
    espi_kernel_set(kernel, place, value);
    assert_ok(espi_inducing_evaluate(s, kernel, y, 0.4, true, NULL, NULL, &err), "evaluate", &err);
    return s->bound.value;
}

static void check_gradient(const char *expression, const esp_dataset *data, const double *y)
{
    esp_kernel *kernel = kernel_of(expression);
    espi_inducing s = {0};
    espi_hyper *hyper;
    size_t hypers;
    esp_error err = {0};
    double gradient[64] = {0};
    assert_true(espi_kernel_places(kernel) <= 64);
    assert_ok(espi_inducing_choose(&s, kernel, data, 10, 1, NULL, &err), expression, &err);
    assert_ok(espi_inducing_evaluate(&s, kernel, y, 0.4, true, NULL, gradient, &err), expression, &err);
    assert_ok(espi_hypers_new(kernel, &hyper, &hypers, &err), expression, &err);
    assert_true(hypers > 0);
    for (size_t i = 0; i < hypers; i++) {
        const double h = 1e-3 * hyper[i].value, v = hyper[i].value;
        const double one =
            value_at(&s, kernel, hyper[i].place, v + h, y) - value_at(&s, kernel, hyper[i].place, v - h, y);
        const double two =
            value_at(&s, kernel, hyper[i].place, v + 2 * h, y) - value_at(&s, kernel, hyper[i].place, v - 2 * h, y);
        espi_kernel_set(kernel, hyper[i].place, v);
        assert_near_at(gradient[hyper[i].place], (8.0 * one - two) / (12.0 * h), 1e-6, hyper[i].name, i);
    }
    espi_hypers_free(hyper, hypers);
    espi_inducing_free(&s);
    esp_kernel_free(kernel);
}

static void test_gradient_of_expressions(void **state)
{
    (void)state;
    esp_dataset *data = examples(40);
    double *y = targets(data);
    static const char *const expressions[] = {
        "2*linear(x) + 0.5*norm(sst(tree))",
        "0.7*norm(sst(tree, lambda=0.5, alpha=0.8)) + 0.3*rbf(x, gamma=0.7)",
        "0.4*rbf(x, gamma=0.3)*norm(sst(tree))",
        "0.5*sst(tree, lambda=0.1) + poly(x, degree=2)",
        "norm(ptk(tree, lambda=0.5, mu=0.4)) + 0.3*linear(x)",
        "0.3*(linear(x) + 0.7*norm(ptk(tree, lambda=0.5, mu=0.4)))*norm(ptk(tree, mu=0.6))",
    };
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) check_gradient(expressions[i], data, y);
    free(y);
    esp_dataset_free(data);
}

static void test_the_driver_is_the_bound_of_its_pivots(void **state)
{
    (void)state;
    enum { N = 24 };
    esp_dataset *data = examples(N);
    double *y = targets(data), *gram = gram_of("norm(sst(tree)) + linear(x)", data, NULL, 1);
    esp_kernel *kernel = kernel_of("norm(sst(tree)) + linear(x)");
    espi_inducing s = {0};
    esp_error err = {0};
    for (size_t inducing = 3; inducing <= 9; inducing += 3) { /* again and again */
        espi_low_rank b;
        assert_ok(espi_inducing_choose(&s, kernel, data, inducing, inducing, NULL, &err), "choose", &err);
        assert_ok(espi_inducing_evaluate(&s, kernel, y, 0.7, false, NULL, NULL, &err), "evaluate", &err);
        assert_int_equal(s.pivots, inducing);
        assert_int_equal(esp_dataset_count(s.support), inducing);
        assert_ok(espi_low_rank_new(inducing, N, NULL, &b, &err), "new", &err);
        for (size_t i = 0; i < inducing; i++) {
            assert_true(i == 0 || s.pivot[i] > s.pivot[i - 1]);
            for (size_t j = 0; j < inducing; j++) b.k_mm[i * inducing + j] = gram[s.pivot[i] * N + s.pivot[j]];
            memcpy(b.k_mn + i * N, gram + s.pivot[i] * N, N * sizeof *gram);
        }
        for (size_t i = 0; i < N; i++) b.diagonal[i] = gram[i * N + i];
        assert_ok(espi_low_rank_solve(&b, y, 0.7, false, NULL, &err), "solve", &err);
        assert_near_at(s.bound.value, b.value, 1e-10, "F", inducing);
        for (size_t i = 0; i < inducing; i++)
            assert_near_at(s.bound.coefficient[i], b.coefficient[i], 1e-8, "coefficient", i);
        espi_low_rank_free(&b);
    }
    espi_inducing_free(&s);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(y);
    free(gram);
}

static void test_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    esp_dataset *data = examples(2500);
    double *y = targets(data), first = 0.0, gradient[2][64] = {{0}};
    esp_kernel *kernel = kernel_of("0.5*norm(ptk(tree)) + linear(x)");
    esp_error err = {0};
    for (int threads = 1; threads < 4; threads++) {
        const esp_run run = {.threads = threads};
        espi_inducing s = {0};
        memset(gradient[1], 0, sizeof gradient[1]);
        assert_ok(espi_inducing_choose(&s, kernel, data, 80, 1, &run, &err), "choose", &err);
        assert_ok(espi_inducing_evaluate(&s, kernel, y, 0.3, true, &run, gradient[1], &err), "evaluate", &err);
        if (threads == 1) {
            first = s.bound.value;
            memcpy(gradient[0], gradient[1], sizeof gradient[0]);
        }
        assert_true(s.bound.value == first);
        assert_memory_equal(gradient[0], gradient[1], sizeof gradient[0]);
        espi_inducing_free(&s);
    }
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(y);
}

static void test_what_cannot_be_is_told(void **state)
{
    (void)state;
    esp_dataset *data = examples(100), *empty = dataset_of("{\"x\": {}}\n{\"x\": {}}\n");
    esp_kernel *kernel = kernel_of("linear(x)");
    espi_inducing s = {0};
    esp_error err = {0};
    assert_int_equal(espi_inducing_choose(&s, kernel, data, 50, 1, &(esp_run){.memory = 30000}, &err), ESP_ERR_MEMORY);
    assert_string_equal(err.message, "50 pivots of 100 examples take 40.0 kB; the limit is 30.0 kB");
    assert_int_equal(espi_inducing_choose(&s, kernel, empty, 50, 1, NULL, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "the kernel is 0 for every example"));
    espi_low_rank b;
    assert_int_equal(espi_low_rank_new(50, 100, &(esp_run){.memory = 100000}, &b, &err), ESP_ERR_MEMORY);
    assert_string_equal(err.message,
                        "a Gaussian process of 50 pivots for 100 examples takes 180.0 kB; the limit is 100.0 kB");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    esp_dataset_free(empty);
}

typedef struct work {
    const esp_kernel *kernel;
    const esp_dataset *data;
    const double *y;
} work;

static esp_status choose_and_evaluate(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_run run = {.threads = 1};
    espi_inducing s = {0};
    double gradient[64] = {0};
    esp_status status = espi_inducing_choose(&s, w->kernel, w->data, 5, 1, &run, err);
    if (status == ESP_OK) status = espi_inducing_evaluate(&s, w->kernel, w->y, 0.3, true, &run, gradient, err);
    espi_inducing_free(&s);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_dataset *data = examples(20);
    double *y = targets(data);
    esp_kernel *kernel = kernel_of("0.5*norm(ptk(tree)) + linear(x)");
    out_of_memory_everywhere(choose_and_evaluate, &(work){kernel, data, y});
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(y);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gradient_of_expressions),
        TEST(test_the_driver_is_the_bound_of_its_pivots),
        TEST(test_the_same_for_any_number_of_threads),
        TEST(test_what_cannot_be_is_told),
        TEST(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
