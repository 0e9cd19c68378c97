/* Products without the matrix, the preconditioner and conjugate gradients: against dense matrices. */
#include "dense_reference.h"
#include "learn/krylov.h"
#include "learning.h"

enum { N = 60, WIDTH = 3 };

typedef struct gram_system {
    const char *expression;
    esp_dataset *data;
    esp_kernel *kernel;
    espi_bound *bound;
    double *gram;
} gram_system;

static gram_system system_of(const char *expression, uint64_t seed)
{
    gram_system s = {.expression = expression, .data = labelled(seed, N, 0, false), .kernel = kernel_of(expression)};
    esp_error err = {0};
    assert_ok(espi_bind(s.kernel, s.data, s.data, NULL, &s.bound, &err), expression, &err);
    s.gram = gram_of(expression, s.data, NULL, 1);
    return s;
}

static void end(gram_system *s)
{
    espi_bound_free(s->bound);
    esp_kernel_free(s->kernel);
    esp_dataset_free(s->data);
    free(s->gram);
}

static void fill(double *x, size_t count, uint64_t seed)
{
    ref_random random = {seed};
    for (size_t i = 0; i < count; i++) x[i] = ref_random_between(&random, -1, 1);
}

static espi_products *products_of(const gram_system *s, size_t width)
{
    espi_products *p = NULL;
    esp_error err = {0};
    assert_ok(espi_products_new(s->bound, s->data, width, NULL, &p, &err), s->expression, &err);
    return p;
}

/* Kernels with sums of their own, folded by segments, and that do not fold. */
static const char *const kernels[] = {"norm(sst(tree, lambda=0.4))",
                                      "2*norm(sst(tree)) + 0.5*linear(x)",
                                      "norm(seq(words))",
                                      "rbf(x, gamma=0.5)",
                                      "norm(sst(tree)) * rbf(x, gamma=0.5)",
                                      "norm(ptk(tree)) + 0.3*(poly(x, degree=2) * sst(tree, lambda=0.1))"};

static void test_products(void **state)
{
    (void)state;
    static double x[N * WIDTH], out[N * WIDTH], again[N * WIDTH];
    esp_error err = {0};
    fill(x, N * WIDTH, 7);
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e++) {
        gram_system s = system_of(kernels[e], e + 1);
        espi_products *p = products_of(&s, WIDTH);
        for (int times = 0; times < 2; times++) { /* the first leaves nothing behind */
            assert_ok(espi_products_of(p, x, &(esp_run){.threads = 1}, out, &err), kernels[e], &err);
            for (size_t i = 0; i < N; i++)
                for (size_t k = 0; k < WIDTH; k++) {
                    double sum = 0.0, size = 0.0;
                    for (size_t j = 0; j < N; j++) sum += s.gram[i * N + j] * x[j * WIDTH + k];
                    for (size_t j = 0; j < N; j++) size += fabs(s.gram[i * N + j] * x[j * WIDTH + k]);
                    if (!(fabs(out[i * WIDTH + k] - sum) <= 1e-12 * size))
                        fail_msg("%s: row %zu: %.17g instead of %.17g", kernels[e], i, out[i * WIDTH + k], sum);
                }
        }
        assert_ok(espi_products_of(p, x, &(esp_run){.threads = 3}, again, &err), kernels[e], &err);
        assert_memory_equal(out, again, sizeof out);
        espi_products_free(p);
        end(&s);
    }
}

/* P and log |P|, from the factor that is F = L^-1 K(S, .) by its definition. */
static void dense_preconditioner(const gram_system *s, const espi_preconditioner *p, double noise, double *dense)
{
    const size_t m = p->rank;
    double *inverse = malloc(m * m * sizeof *inverse);
    assert_non_null(inverse);
    for (size_t a = 0; a < m; a++)
        for (size_t b = 0; b < m; b++) inverse[a * m + b] = s->gram[p->pivot[a] * N + p->pivot[b]];
    invert(inverse, m);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            double q = 0.0;
            for (size_t a = 0; a < m; a++)
                for (size_t b = 0; b < m; b++)
                    q += s->gram[i * N + p->pivot[a]] * inverse[a * m + b] * s->gram[p->pivot[b] * N + j];
            dense[i * N + j] = i == j ? s->gram[i * N + i] + noise : q;
        }
    free(inverse);
}

static espi_preconditioner preconditioner_of(const gram_system *s, size_t rank, double noise)
{
    espi_preconditioner p = {0};
    esp_error err = {0};
    assert_ok(espi_preconditioner_make(&p, s->bound, rank, 5, noise, NULL, &err), s->expression, &err);
    return p;
}

static void test_preconditioner(void **state)
{
    (void)state;
    static double x[N * WIDTH], out[N * WIDTH], dense[N * N];
    const double noise = 0.2;
    esp_error err = {0};
    fill(x, N * WIDTH, 3);
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e++) {
        gram_system s = system_of(kernels[e], e + 1);
        espi_preconditioner p = preconditioner_of(&s, 12, noise);
        dense_preconditioner(&s, &p, noise, dense);
        assert_close(p.log, invert(dense, N), 1e-8, kernels[e]);
        assert_ok(espi_preconditioner_solve(&p, x, WIDTH, out, NULL, &err), kernels[e], &err);
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < WIDTH; k++) {
                double sum = 0.0;
                for (size_t j = 0; j < N; j++) sum += dense[i * N + j] * x[j * WIDTH + k];
                assert_near_at(out[i * WIDTH + k], sum, 1e-8, kernels[e], i);
            }
        const uint32_t first = p.pivot[0]; /* made again, it keeps its pivots */
        assert_ok(espi_preconditioner_make(&p, s.bound, 7, 99, noise, NULL, &err), kernels[e], &err);
        assert_int_equal(p.rank, 12);
        assert_int_equal(p.pivot[0], first);
        espi_preconditioner_free(&p);
        end(&s);
    }
}

/* The mean of x x' over very many draws is P. */
static void test_draws(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    static double dense[N * N];
    esp_error err = {0};
    gram_system s = system_of("norm(sst(tree, lambda=0.4))", 1);
    espi_preconditioner p = preconditioner_of(&s, 8, 0.3);
    double *x = malloc((size_t)N * DRAWS * sizeof *x);
    assert_non_null(x);
    dense_preconditioner(&s, &p, 0.3, dense);
    assert_ok(espi_preconditioner_draw(&p, 11, DRAWS, x, NULL, &err), "draw", &err);
    for (size_t i = 0; i < N; i += 7)
        for (size_t j = 0; j < N; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < DRAWS; k++) sum += x[i * DRAWS + k] * x[j * DRAWS + k] / DRAWS;
            assert_near_at(sum, dense[i * N + j], 0.05, "covariance", i * N + j);
        }
    free(x);
    espi_preconditioner_free(&p);
    end(&s);
}

/* Two shifts of each right-hand side, with and without solutions; b of zeros; forms; and what has not converged. */
static void test_solutions(void **state)
{
    (void)state;
    enum { SLOTS = 2 * WIDTH };
    static double b[N * WIDTH], x[N * SLOTS], again[N * SLOTS], p_dense[N * N], a[N * N];
    const size_t column[SLOTS] = {0, 1, 2, 0, 1, 2};
    const double shift[SLOTS] = {1, 1, 1, 0.3, 0.3, 0.3}, noise = 0.1;
    double form[SLOTS], length[WIDTH];
    esp_error err = {0};
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e++) {
        gram_system s = system_of(kernels[e], e + 1);
        espi_preconditioner p = preconditioner_of(&s, 10, noise);
        fill(b, N * WIDTH, e);
        for (size_t i = 0; i < N; i++) b[i * WIDTH + 1] = 0.0;
        espi_krylov k = {.products = products_of(&s, WIDTH),
                         .preconditioner = &p,
                         .noise = noise,
                         .columns = WIDTH,
                         .slots = SLOTS,
                         .column = column,
                         .shift = shift,
                         .tolerance = 1e-13,
                         .most = 400,
                         .solution = x,
                         .form = form,
                         .length = length};
        assert_ok(espi_krylov_solve(&k, b, &(esp_run){.threads = 1}, &err), kernels[e], &err);
        assert_true(k.converged);
        assert_true(k.residual <= 1e-13);
        dense_preconditioner(&s, &p, noise, p_dense);
        for (size_t t = 0; t < SLOTS; t++) {
            double sum = 0.0;
            for (size_t i = 0; i < N; i++)
                for (size_t j = 0; j < N; j++)
                    a[i * N + j] =
                        (1 - shift[t]) * p_dense[i * N + j] + shift[t] * (s.gram[i * N + j] + (i == j ? noise : 0.0));
            invert(a, N);
            for (size_t i = 0; i < N; i++) {
                double value = 0.0;
                for (size_t j = 0; j < N; j++) value += a[i * N + j] * b[j * WIDTH + column[t]];
                assert_near_at(x[i * SLOTS + t], value, 1e-8, kernels[e], t * N + i);
                sum += value * b[i * WIDTH + column[t]];
            }
            assert_near_at(form[t], sum, 1e-8, kernels[e], t);
        }
        k.solution = again;
        assert_ok(espi_krylov_solve(&k, b, &(esp_run){.threads = 4}, &err), kernels[e], &err);
        assert_memory_equal(x, again, sizeof x);
        const double whole = form[0];
        k.solution = NULL;
        k.tolerance = 0.0;
        k.bound = 1e-3; /* b'x is accurate to that, and not just by chance */
        assert_ok(espi_krylov_solve(&k, b, NULL, &err), kernels[e], &err);
        assert_true(k.converged && form[0] <= whole * (1 + 1e-12) && whole - form[0] <= 1e-3);
        k.most = 1;
        k.bound = 0.0;
        assert_ok(espi_krylov_solve(&k, b, NULL, &err), kernels[e], &err);
        assert_false(k.converged);
        assert_int_equal(k.iterations, 1);
        assert_true(k.residual > 0.0);
        espi_products_free(k.products);
        espi_preconditioner_free(&p);
        end(&s);
    }
}

static esp_status solve_once(const void *argument, esp_error *err)
{
    const gram_system *s = argument;
    static double b[N], x[N];
    const size_t column[1] = {0};
    const double shift[1] = {1.0};
    double form[1], length[1];
    espi_preconditioner p = {0};
    const esp_run run = {.threads = 2};
    espi_krylov k = {.preconditioner = &p,
                     .noise = 0.5,
                     .columns = 1,
                     .slots = 1,
                     .column = column,
                     .shift = shift,
                     .tolerance = 1e-6,
                     .most = 3,
                     .solution = x,
                     .form = form,
                     .length = length};
    fill(b, N, 1);
    esp_status status = espi_preconditioner_make(&p, s->bound, 5, 1, 0.5, &run, err);
    if (status == ESP_OK) status = espi_products_new(s->bound, s->data, 1, &run, &k.products, err);
    if (status == ESP_OK) status = espi_krylov_solve(&k, b, &run, err);
    espi_products_free(k.products);
    espi_preconditioner_free(&p);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof kernels / sizeof *kernels; e += 3) {
        gram_system s = system_of(kernels[e], 1);
        out_of_memory_everywhere(solve_once, &s);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_preconditioner),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_solutions),
        cmocka_unit_test(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
