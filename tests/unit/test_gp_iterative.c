/* Gaussian processes without the matrix: the likelihood against dense matrices from the definition, its gradient
 * against differences of itself, models against exact ones, and what does not converge. */
#include "dense_reference.h"
#include "files.h"
#include "learn/gp/gp.h"
#include "learning.h"

enum { N = 60 };
static const esp_run one_thread = {.threads = 1};

/* ------------------------------------------------------------- likelihood */

typedef struct process {
    esp_dataset *data;
    esp_kernel *kernel;
    double target[N];
    espi_iterative iterative;
    espi_gp_problem problem;
    espi_gp_point point;
    double noise;
} process;

static void start(process *g, const char *expression, uint64_t seed, size_t rank, size_t probes, bool constant)
{
    ref_random random = {seed};
    esp_error err = {0};
    *g = (process){.data = labelled(seed, N, 0, false), .kernel = kernel_of(expression), .noise = 0.2};
    for (size_t i = 0; i < N; i++) g->target[i] = ref_random_between(&random, -1, 2);
    g->iterative = (espi_iterative){.rank = rank, .probes = probes, .seed = seed, .residual = 1e-22, .iterations = 500};
    g->problem = (espi_gp_problem){.data = g->data, .target = g->target, .count = N, .constant_mean = constant};
    g->problem.iterative = &g->iterative;
    assert_true(espi_gp_point_make(&g->point, N));
    assert_ok(espi_iterative_prepare(&g->iterative, g->kernel, g->data, g->target, constant, g->noise, NULL, &err),
              expression, &err);
}

static void end(process *g)
{
    espi_gp_point_free(&g->point);
    espi_iterative_free(&g->iterative);
    esp_kernel_free(g->kernel);
    esp_dataset_free(g->data);
}

static double value_at(process *g, double noise, double *gradient, double *noise_gradient)
{
    esp_error err = {0};
    assert_ok(espi_gp_iterative.evaluate(&g->problem, g->kernel, noise, &(esp_run){.threads = 2}, &g->point, gradient,
                                         noise_gradient, &err),
              "evaluate", &err);
    return g->point.value;
}

/* log p of the targets and G^-1 (y - m), by elimination. */
static double dense_value(const process *g, double *a, double *mean)
{
    double *gram = gram_of(esp_kernel_text(g->kernel), g->data, NULL, 1), of_targets = 0.0, of_ones = 0.0, fit = 0.0;
    for (size_t i = 0; i < N; i++) gram[i * N + i] += g->noise;
    const double log_determinant = invert(gram, N);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            of_targets += gram[i * N + j] * g->target[j];
            of_ones += gram[i * N + j];
        }
    *mean = g->problem.constant_mean ? of_targets / of_ones : 0.0;
    for (size_t i = 0; i < N; i++) {
        a[i] = 0.0;
        for (size_t j = 0; j < N; j++) a[i] += gram[i * N + j] * (g->target[j] - *mean);
        fit += a[i] * (g->target[i] - *mean);
    }
    free(gram);
    return -0.5 * (fit + log_determinant + N * log(2.0 * acos(-1.0)));
}

static const char *const kernels[] = {"0.8*norm(sst(tree, lambda=0.4))", "0.7*rbf(x, gamma=0.5)",
                                      "0.5*norm(sst(tree)) * rbf(x, gamma=0.8) + 0.2*linear(x)",
                                      "1*norm(seq(words)) + 0.6*norm(sst(tree, alpha=0.7))"};

/* With pivots for all examples the preconditioner is the matrix, and one probe is exact; with few, many probes are
 * close to the determinant. */
static void test_likelihood(void **state)
{
    (void)state;
    double a[N], mean;
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e += SANITIZED ? 2 : 1)
        for (int constant = SANITIZED; constant < 2; constant++) {
            process g;
            start(&g, kernels[e], e + 1, N, 1, constant);
            const double exact = dense_value(&g, a, &mean);
            assert_close(value_at(&g, g.noise, NULL, NULL), exact, 1e-9, kernels[e]);
            assert_near_at(g.point.mean, mean, 1e-9, kernels[e], 0);
            for (size_t i = 0; i < N; i++) assert_near_at(g.point.coefficient[i], a[i], 1e-8, kernels[e], i);
            end(&g);
            start(&g, kernels[e], e + 1, 10, 2000, constant);
            assert_near_at(value_at(&g, g.noise, NULL, NULL), exact, 0.004, kernels[e], 1);
            for (size_t i = 0; i < N; i++) assert_near_at(g.point.coefficient[i], a[i], 1e-8, kernels[e], i);
            end(&g);
        }
}

/* At values other than those that the preconditioner is made for; three probes only, as it is the gradient of what is
 * estimated. */
static void test_gradient_is_that_of_the_value(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e += SANITIZED ? 2 : 1)
        for (int constant = SANITIZED; constant < 2; constant++) {
            process g;
            espi_hyper *hyper;
            size_t hypers;
            esp_error err = {0};
            double gradient[64] = {0.0}, slope;
            const double step = 1e-4;
            start(&g, kernels[e], e + 1, 10, 3, constant);
            assert_ok(espi_hypers_new(g.kernel, &hyper, &hypers, &err), kernels[e], &err);
            assert_true(espi_kernel_places(g.kernel) <= 64);
            for (size_t h = 0; h < hypers; h++) espi_kernel_set(g.kernel, hyper[h].place, hyper[h].value *= 0.8);
            const double noise = 1.5 * g.noise;
            value_at(&g, noise, gradient, &slope);
            const double up = value_at(&g, noise * (1 + step), NULL, NULL),
                         down = value_at(&g, noise * (1 - step), NULL, NULL);
            assert_near_at(slope * noise, (up - down) / (2 * step), 1e-5, kernels[e], 0);
            for (size_t h = 0; h < hypers; h++) {
                const double v = hyper[h].value;
                espi_kernel_set(g.kernel, hyper[h].place, v * (1 + step));
                const double more = value_at(&g, noise, NULL, NULL);
                espi_kernel_set(g.kernel, hyper[h].place, v * (1 - step));
                const double less = value_at(&g, noise, NULL, NULL);
                espi_kernel_set(g.kernel, hyper[h].place, v);
                assert_near_at(gradient[hyper[h].place] * v, (more - less) / (2 * step), 1e-5, kernels[e], h + 1);
            }
            espi_hypers_free(hyper, hypers);
            end(&g);
        }
}

/* ----------------------------------------------------------------- models */

static void test_like_exact(void **state)
{
    (void)state;
    static const char *const settings[] = {"fix=*", "fix=* mean=constant standardise=none"};
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=2)";
    esp_dataset *data = labelled(3, 80, 0, false), *new = labelled(5, 40, 0, true);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char text[100];
        snprintf(text, sizeof text, "%s solver=iterative", settings[i]);
        esp_model *exact = trained("gp", kernel, data, settings[i], NULL),
                  *model = trained("gp", kernel, data, text, NULL);
        esp_predictions *p = predicted(exact, new, 1), *q = predicted(model, new, 1);
        assert_close(told(model, "log likelihood"), told(exact, "log likelihood"), 1e-7, text);
        assert_near_predictions(p, q, 1e-6);
        assert_true(told(model, "residual") <= 1e-8);
        esp_predictions_free(p);
        esp_predictions_free(q);
        esp_model_free(exact);
        esp_model_free(model);
    }
    esp_dataset_free(data);
    esp_dataset_free(new);
}

/* Where a search ends, the exact process has a likelihood close to that where the exact search ends. */
static void test_search(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=2)";
    char text[60];
    esp_dataset *data = labelled(3, 80, 0, false);
    esp_model *start_one = trained("gp", kernel, data, "fix=*", &one_thread),
              *best = trained("gp", kernel, data, "fix=gamma", &one_thread),
              *model = trained("gp", kernel, data, "fix=gamma solver=iterative probes=16", &one_thread);
    snprintf(text, sizeof text, "fix=* noise=%.17g", hyper(model, "noise"));
    esp_model *there = trained("gp", esp_model_kernel(model), data, text, &one_thread);
    const double low = told(start_one, "log likelihood"), high = told(best, "log likelihood");
    assert_true(high > low + 5.0);
    assert_true(told(there, "log likelihood") > high - 0.3);
    assert_true(fabs(told(model, "log likelihood") - told(there, "log likelihood")) < 0.5);
    esp_model_free(start_one);
    esp_model_free(best);
    esp_model_free(model);
    esp_model_free(there);
    esp_dataset_free(data);
}

/* Few pivots: means are as accurate as the residual, whatever the estimates are. */
static void test_means_are_exact(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=2)";
    esp_dataset *data = labelled(3, 150, 0, false), *new = labelled(5, 60, 0, true);
    esp_model *exact = trained("gp", kernel, data, "fix=*", NULL),
              *model = trained("gp", kernel, data, "fix=* solver=iterative solver-rank=9 probes=2", NULL);
    esp_predictions *p = predicted(exact, new, 1), *q = predicted(model, new, 1), *few = NULL;
    esp_error err = {0};
    assert_near_predictions(p, q, 1e-6);
    /* Without room for the factor, variances are those of conjugate gradients. */
    const esp_run little = {.memory = 150 * 150 * 8 - 1, .threads = 2};
    const blob bytes = bytes_of(model);
    esp_model *read = model_of_bytes(bytes);
    free(bytes.bytes);
    assert_ok(esp_predict(read, new, &little, &few, &err), "few", &err);
    bool differ = false;
    for (size_t i = 0; i < 60; i++) {
        assert_close(esp_predictions_score(few, i), esp_predictions_score(p, i), 1e-6, "mean");
        assert_close(esp_predictions_variance(few, i), esp_predictions_variance(p, i), 1e-3, "variance");
        differ = differ || esp_predictions_variance(few, i) != esp_predictions_variance(q, i);
    }
    assert_true(differ);
    esp_predictions_free(few);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(exact);
    esp_model_free(model);
    esp_model_free(read);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

static void test_threads(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=0.3)",
               *settings = "solver=iterative solver-rank=20 probes=4 mean=constant max-iterations=4";
    esp_dataset *data = labelled(3, 150, 0, false);
    esp_model *one = trained("gp", kernel, data, settings, &(esp_run){.threads = 1});
    const blob first = bytes_of(one);
    for (int threads = 2; threads < 6; threads += 3) {
        esp_model *several = trained("gp", kernel, data, settings, &(esp_run){.threads = threads});
        const blob bytes = bytes_of(several);
        assert_int_equal(bytes.size, first.size);
        assert_memory_equal(bytes.bytes, first.bytes, first.size);
        free(bytes.bytes);
        esp_model_free(several);
    }
    free(first.bytes);
    esp_model_free(one);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ input */

static void test_not_converged(void **state)
{
    (void)state;
    const char *settings = "solver=iterative solver-rank=1 solver-iterations=2 noise=1e-06 fix=*";
    char text[160];
    esp_dataset *data = labelled(3, 100, 0, false);
    esp_model *model;
    esp_error err = {0};
    assert_int_equal(train("gp", "1*norm(sst(tree))", data, settings, NULL, &model, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "conjugate gradients did not converge: the residual is "));
    assert_non_null(strstr(err.message, " after 2 iterations, and 0.0001 is wanted; raise noise, solver-rank or"));
    snprintf(text, sizeof text, "%s keep-partial=1", settings);
    assert_ok(train("gp", "1*norm(sst(tree))", data, text, NULL, &model, &err), text, &err);
    assert_non_null(strstr(model->summary, "converged\tno\n"));
    assert_true(told(model, "residual") > 1e-8);
    esp_model_free(model);
    esp_dataset_free(data);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"solver=iterative noise=0", "noise is 0; solver iterative needs noise above 0"},
        {"solver=iterative inducing=3", "solver iterative learns from all examples; leave out inducing"},
        {"solver=fast", "solver is 'fast'"},
        {"residual=1", "residual is '1'"},
        {"residual=0", "residual is '0'"},
        {"solver-iterations=0", "solver-iterations is '0'"}};
    esp_dataset *data = labelled(3, 60, 0, false), *classes = labelled(3, 20, 2, false);
    esp_model *model;
    esp_error err = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(train("gp", "rbf(x)", data, wrong[i][0], NULL, &model, &err), &err, wrong[i][1]);
    assert_refused(train("gp", "rbf(x)", classes, "likelihood=bernoulli solver=iterative", NULL, &model, &err), &err,
                   "solver iterative is for numbers; likelihood bernoulli needs solver exact");
    const esp_run little = {.memory = 60 * 60 * 8 - 1};
    assert_int_equal(train("gp", "rbf(x)", data, "solver=exact", &little, &model, &err), ESP_ERR_MEMORY);
    assert_string_equal(err.message, "a Gaussian process of 60 examples takes 28.8 kB; the limit is 28.8 kB; solver "
                                     "iterative and inducing take less");
    /* By itself the solver is the iterative one there, if that fits. */
    assert_int_equal(train("gp", "rbf(x)", data, "fix=*", &little, &model, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "a smaller solver-rank takes less"));
    assert_ok(train("gp", "rbf(x)", data, "fix=* solver-rank=5 probes=1", &little, &model, &err), "auto", &err);
    assert_non_null(strstr(model->summary, "solver\titerative\n"));
    esp_model_free(model);
    assert_ok(train("gp", "rbf(x)", data, "fix=*", NULL, &model, &err), "auto", &err);
    assert_null(strstr(model->summary, "solver\t"));
    esp_model_free(model);
    esp_dataset_free(data);
    esp_dataset_free(classes);
}

/* One example, two, equal ones, targets that are all the same. */
static void test_odd_data(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"y\": 3, \"x\": [1]}\n", "{\"y\": 1, \"x\": [1]}\n{\"y\": 2, \"x\": [2]}\n",
        "{\"y\": 1, \"x\": [1]}\n{\"y\": 2, \"x\": [2]}\n{\"y\": 2, \"x\": [1]}\n{\"y\": 4, \"x\": [2]}\n",
        "{\"y\": 3, \"x\": [1]}\n{\"y\": 3, \"x\": [2]}\n{\"y\": 3, \"x\": [3]}\n",
        "{\"y\": 3, \"x\": [0]}\n{\"y\": 5, \"x\": [0]}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        esp_dataset *data = dataset_of(lines[i]);
        const char *kernel = i == 4 ? "2*linear(x)" : "2*rbf(x)";
        esp_model *exact = trained("gp", kernel, data, "fix=*", NULL),
                  *model = trained("gp", kernel, data, "fix=* solver=iterative", NULL),
                  *learned = trained("gp", kernel, data, "solver=iterative", NULL);
        esp_predictions *p = predicted(exact, data, 1), *q = predicted(model, data, 1),
                        *r = predicted(learned, data, 1);
        assert_near_predictions(p, q, 1e-6);
        assert_true(isfinite(esp_predictions_score(r, 0)) && esp_predictions_variance(r, 0) >= 0.0);
        esp_predictions_free(p);
        esp_predictions_free(q);
        esp_predictions_free(r);
        esp_model_free(exact);
        esp_model_free(model);
        esp_model_free(learned);
        esp_dataset_free(data);
    }
}

static int lose_patience(void *user, const char *stage, double fraction)
{
    long *left = user;
    (void)stage, (void)fraction;
    return (*left)-- <= 0;
}

/* Whenever it is stopped, there is no model, or one that predicts with converged coefficients. */
static void test_interrupted(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 60, 0, false);
    size_t without = 0, with = 0;
    for (long left = 0;; left += 1 + left / 4) {
        long calls = left;
        esp_model *model;
        esp_error err = {0};
        const esp_run run = {.threads = 1, .progress = lose_patience, .user = &calls};
        const esp_status status = train("gp", "1*norm(sst(tree)) + 1*rbf(x)", data,
                                        "solver=iterative solver-rank=9 probes=3 max-iterations=6", &run, &model, &err);
        if (status == ESP_ERR_CANCELLED) {
            without++;
            continue;
        }
        assert_ok(status, "train", &err);
        assert_true(told(model, "residual") <= 1e-8);
        const bool stopped = strstr(model->summary, "end\tinterrupted\n") != NULL;
        with += stopped;
        esp_model_free(model);
        if (!stopped) break;
    }
    assert_true(without > 2);
    assert_true(with > 2);
    esp_dataset_free(data);
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 6, 0, false);
    const learning_case whole = {
        "gp",
        "1*norm(sst(tree))",
        {{"solver", "iterative"}, {"max-iterations", "0"}, {"solver-rank", "4"}, {"probes", "2"}},
        4,
        data};
    out_of_memory_everywhere(train_and_predict, &whole);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_gradient_is_that_of_the_value),
        cmocka_unit_test(test_like_exact),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_means_are_exact),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_not_converged),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_odd_data),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
