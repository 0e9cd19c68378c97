/* The search for hyperparameters, as other searches use it: what it knows of the curvature goes from one to the next,
 * steps too small to matter are not taken, and samples lead to where all examples have their optimum. */
#include "base/alloc.h"
#include "learn/gp/gp.h"
#include "learning.h"

#include <math.h>

typedef struct game {
    esp_dataset *data;
    esp_kernel *kernel;
    espi_settings *settings;
    espi_gp_space space;
    espi_gp_problem problem;
    espi_gp_curvature curvature;
    espi_gp_found found;
    double *target;
} game;

static const espi_gp_settings *settings_in(const game *g)
{
    return (const espi_gp_settings *)(const void *)g->settings;
}

/* n numbers between which the target is a wave, with noise. */
static void start(game *g, size_t n, const char *settings)
{
    esp_error err;
    char *text = calloc(n + 1, 60), *end = text;
    uint32_t random = 7;
    assert_non_null(text);
    *g = (game){.kernel = kernel_of("1*rbf(x, gamma=1)"), .settings = settings_of("gp", settings)};
    g->target = espi_alloc(n, sizeof *g->target);
    for (size_t i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        const double x = 10.0 * (double)i / (double)n, noise = (double)(random >> 8) / (1 << 24) - 0.5;
        g->target[i] = sin(x) + noise;
        end += sprintf(end, "{\"y\": %.6f, \"x\": [%.6f]}\n", g->target[i], x);
    }
    g->data = dataset_of(text);
    free(text);
    assert_ok(espi_gp_space_new(&g->space, settings_in(g), g->kernel, g->data, true, 1.0, NULL, &err), "space", &err);
    g->problem = (espi_gp_problem){.data = g->data, .target = g->target, .count = n, .outputs = 1};
    g->problem.matrix[0] = espi_alloc(n, n * sizeof(double));
    g->problem.vector = espi_alloc(8 * n, sizeof(double));
    g->found.value = espi_alloc_zero(g->space.variables, sizeof *g->found.value);
    assert_true(espi_gp_point_make(&g->found.point, n) && espi_gp_curvature_make(&g->curvature, g->space.variables));
    g->found.curvature = &g->curvature;
}

static void end(game *g)
{
    espi_gp_curvature_free(&g->curvature);
    espi_gp_point_free(&g->found.point);
    espi_free(g->found.value);
    espi_free(g->problem.matrix[0]);
    espi_free(g->problem.vector);
    espi_free(g->target);
    espi_gp_space_free(&g->space);
    espi_settings_free(g->settings);
    esp_kernel_free(g->kernel);
    esp_dataset_free(g->data);
}

static void search(game *g, size_t *iterations)
{
    esp_error err;
    g->found.there = false;
    g->found.iterations = 0;
    assert_ok(espi_gp_search(&g->space, &g->problem, &espi_gp_exact, settings_in(g), NULL, &g->found, &err), "search",
              &err);
    assert_string_equal(g->found.end, "converged");
    *iterations = g->found.iterations;
}

static void test_curvature(void **state)
{
    (void)state;
    game g;
    size_t first, blind, knowing;
    start(&g, 60, "");
    search(&g, &first);
    assert_true(first > 2 && g.curvature.steps > 0);
    const double best = g.found.objective;
    for (size_t v = 0; v < g.space.variables; v++)
        g.space.moving[v].start = g.found.value[v] * (v % 2 == 0 ? 1.2 : 0.8);
    g.found.curvature = NULL;
    search(&g, &blind);
    g.found.curvature = &g.curvature;
    search(&g, &knowing);
    assert_true(knowing < blind);
    assert_true(fabs(g.found.objective - best) < 1e-6 * fabs(best));
    end(&g);
}

static void test_little_steps(void **state)
{
    (void)state;
    game g;
    size_t iterations;
    start(&g, 60, "");
    search(&g, &iterations);
    for (size_t v = 0; v < g.space.variables; v++) g.space.moving[v].start = 1.02 * g.found.value[v];
    g.found.little = 1.0; /* any step is too small */
    search(&g, &iterations);
    assert_int_equal(iterations, 0);
    g.found.little = 1e-6; /* none is, until it has converged */
    search(&g, &iterations);
    assert_true(iterations > 0);
    end(&g);
}

/* Few steps on all examples are left after those on a sample, which is most of them. One number is learned: the tests
 * under sanitizers take long for matrices of this size. */
static void test_samples(void **state)
{
    (void)state;
    game g;
    esp_error err;
    size_t rest;
    start(&g, ESPI_GP_SOME + 100, "fix=weight,gamma");
    assert_ok(espi_gp_search_samples(&g.space, &g.problem, settings_in(&g), NULL, &g.found, &err), "samples", &err);
    assert_true(g.curvature.steps > 0);
    const double near = g.space.moving[0].start;
    search(&g, &rest);
    assert_true(rest <= 3);
    assert_true(fabs(log(g.found.value[0] / near)) < 0.1);
    end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curvature),
        cmocka_unit_test(test_little_steps),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
