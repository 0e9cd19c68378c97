/* Randomly pivoted Cholesky: the factor against its definition, the draws against their probabilities. */
#include "cases.h"
#include "learn/pivots.h"

typedef struct drawn {
    esp_dataset *data;
    esp_kernel *kernel;
    espi_bound *bound;
    double *gram;
    size_t n;
} drawn;

static drawn start(const char *expression, esp_dataset *data)
{
    drawn d = {.data = data, .kernel = kernel_of(expression), .n = esp_dataset_count(data)};
    esp_error err = {0};
    assert_ok(espi_bind(d.kernel, data, data, NULL, &d.bound, &err), expression, &err);
    d.gram = gram_of(expression, data, NULL, 1);
    return d;
}

static void end(drawn *d)
{
    espi_bound_free(d->bound);
    esp_kernel_free(d->kernel);
    esp_dataset_free(d->data);
    free(d->gram);
}

static espi_pivots draw(const drawn *d, size_t count, uint64_t seed, const bool *allowed, int threads)
{
    espi_pivots p;
    esp_error err = {0};
    const espi_pivot_options options = {.count = count, .seed = seed, .allowed = allowed, .factor = true};
    assert_ok(espi_pivots_draw(d->bound, &options, &(esp_run){.threads = threads}, &p, &err), "draw", &err);
    return p;
}

/* Vectors with `size` features each; those of one cluster are close to each other.
 * Every `repeat`-th is that before it. */
static esp_dataset *points(uint64_t seed, size_t count, size_t size, size_t clusters, size_t repeat)
{
    ref_random random = {seed};
    char *lines = malloc(count * (size + 1) * 32), *at = lines;
    double *center = malloc(clusters * size * sizeof *center), *x = malloc(size * sizeof *x);
    for (size_t i = 0; i < clusters * size; i++) center[i] = ref_random_between(&random, -3, 3);
    for (size_t i = 0; i < count; i++) {
        /* Clusters become rarer and rarer: what uniform draws miss. */
        size_t c = 0;
        while (c + 1 < clusters && ref_random_below(&random, 4) == 0) c++;
        for (size_t k = 0; k < size && (repeat == 0 || i % repeat != repeat - 1); k++)
            x[k] = center[c * size + k] + ref_random_between(&random, -0.2, 0.2);
        at += sprintf(at, "{\"x\": [");
        for (size_t k = 0; k < size; k++) at += sprintf(at, "%s%.9f", k > 0 ? ", " : "", x[k]);
        at += sprintf(at, "]}\n");
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    free(center);
    free(x);
    return data;
}

static double residual(const drawn *d, const espi_pivots *p, double *worst)
{
    double sum = 0.0;
    *worst = 0.0;
    for (size_t i = 0; i < d->n; i++)
        for (size_t j = 0; j < d->n; j++) {
            double left = d->gram[i * d->n + j];
            for (size_t q = 0; q < p->count; q++) left -= p->factor[q * d->n + i] * p->factor[q * d->n + j];
            if (i == j) sum += left;
            *worst = fmax(*worst, fabs(left));
        }
    return sum;
}

/* tr(K - K_nm K_mm^-1 K_mn) by plain elimination of the pivots, one after the other, from a copy of K. */
static double residual_of(const drawn *d, const uint32_t *pivot, size_t count)
{
    const size_t n = d->n;
    double *k = malloc(n * n * sizeof *k), *row = malloc(n * sizeof *row), sum = 0.0;
    memcpy(k, d->gram, n * n * sizeof *k);
    for (size_t q = 0; q < count; q++) {
        memcpy(row, k + pivot[q] * n, n * sizeof *row);
        const double self = row[pivot[q]];
        for (size_t i = 0; i < n && self > 1e-12; i++)
            for (size_t j = 0; j < n; j++) k[i * n + j] -= row[i] * row[j] / self;
    }
    for (size_t i = 0; i < n; i++) sum += k[i * n + i];
    free(k);
    free(row);
    return sum;
}

static void test_the_factor_is_exact_where_the_rank_is_small(void **state)
{
    (void)state;
    drawn d = start("linear(x)", points(1, 200, 7, 4, 0));
    for (uint64_t seed = 0; seed < 5; seed++) {
        espi_pivots p = draw(&d, 50, seed, NULL, 1);
        double worst;
        assert_int_equal(p.count, 7);
        (void)residual(&d, &p, &worst);
        assert_true(worst < 1e-11);
        assert_true(p.left <= 1e-12);
        espi_pivots_free(&p);
    }
    end(&d);
}

static void test_the_factor_is_that_of_the_pivots(void **state)
{
    (void)state;
    drawn d = start("rbf(x, gamma=0.5)", points(2, 300, 3, 5, 0));
    for (size_t count = 1; count < 200; count = 2 * count + 5) { /* also more than a block */
        espi_pivots p = draw(&d, count, count, NULL, 1);
        double worst;
        const double left = residual(&d, &p, &worst);
        assert_true(p.count <= count && p.count > 0);
        for (size_t q = 0; q < p.count; q++)
            for (size_t r = 0; r < p.count; r++) {
                double inner = 0.0; /* at the pivots K is F'F, and F there is triangular */
                for (size_t k = 0; k < p.count; k++)
                    inner += p.factor[k * d.n + p.example[q]] * p.factor[k * d.n + p.example[r]];
                assert_true(fabs(inner - d.gram[p.example[q] * d.n + p.example[r]]) < 1e-10);
                if (r < q) assert_true(fabs(p.factor[q * d.n + p.example[r]]) < 1e-7);
            }
        assert_true(fabs(left - residual_of(&d, p.example, p.count)) < 1e-9 * (double)d.n);
        assert_true(fabs(left / (double)d.n - p.left) < 1e-9);
        espi_pivots_free(&p);
    }
    end(&d);
}

static void test_equal_examples_are_chosen_once(void **state)
{
    (void)state;
    drawn d = start("rbf(x, gamma=2)", points(3, 60, 2, 3, 2));
    espi_pivots p = draw(&d, 1000, 1, NULL, 1);
    double worst;
    assert_true(p.count <= 30);
    for (size_t q = 0; q < p.count; q++)
        for (size_t r = 0; r < q; r++) assert_true(p.example[q] / 2 != p.example[r] / 2);
    (void)residual(&d, &p, &worst);
    assert_true(worst < 1e-9);
    espi_pivots_free(&p);
    end(&d);
}

/* All ordered triples of four examples: how often they come, and how often they should. */
static void test_pivots_come_with_their_probabilities(void **state)
{
    (void)state;
    enum { N = 4, SEEDS = 20000 };
    drawn d = start("poly(x, degree=2)",
                    dataset_of("{\"x\": [1, 0.2]}\n{\"x\": [0.9, 0.4]}\n{\"x\": [-0.3, 1]}\n{\"x\": [0.1, -0.4]}\n"));
    double expected[N][N][N] = {0};
    size_t seen[N][N][N] = {0};
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            for (size_t c = 0; c < N; c++) {
                double k[N * N], whole = 0.0, probability = 1.0;
                const size_t order[3] = {a, b, c};
                memcpy(k, d.gram, sizeof k);
                for (size_t q = 0; q < 3; q++, whole = 0.0) {
                    double row[N];
                    memcpy(row, k + order[q] * N, sizeof row);
                    for (size_t i = 0; i < N; i++) whole += fmax(k[i * N + i], 0.0);
                    probability *= row[order[q]] < 1e-12 ? 0.0 : row[order[q]] / whole;
                    for (size_t i = 0; i < N && probability > 0.0; i++)
                        for (size_t j = 0; j < N; j++) k[i * N + j] -= row[i] * row[j] / row[order[q]];
                }
                expected[a][b][c] = probability;
            }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        espi_pivots p = draw(&d, 3, seed, NULL, 1);
        assert_int_equal(p.count, 3);
        seen[p.example[0]][p.example[1]][p.example[2]]++;
        espi_pivots_free(&p);
    }
    for (size_t i = 0; i < N * N * N; i++) {
        const double p = (&expected[0][0][0])[i], mean = p * SEEDS;
        const double is = (double)(&seen[0][0][0])[i];
        if (fabs(is - mean) > 4.5 * sqrt(mean * (1.0 - p))) fail_msg("triple %zu: %g instead of %g", i, is, mean);
    }
    end(&d);
}

static void test_better_than_uniform_draws(void **state)
{
    (void)state;
    enum { N = 150, COUNT = 12, SEEDS = 60 };
    drawn d = start("rbf(x, gamma=0.5)", points(5, N, 3, 8, 0));
    double ours = 0.0, uniform = 0.0;
    ref_random random = {9};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        espi_pivots p = draw(&d, COUNT, seed, NULL, 1);
        ours += residual_of(&d, p.example, p.count);
        espi_pivots_free(&p);
        uint32_t chosen[COUNT];
        for (size_t q = 0; q < COUNT; q++) chosen[q] = (uint32_t)ref_random_below(&random, N);
        uniform += residual_of(&d, chosen, COUNT);
    }
    if (!(ours < 0.8 * uniform)) fail_msg("%g, and %g by uniform draws", ours / SEEDS, uniform / SEEDS);
    end(&d);
}

/* Theorem 5.1 of the paper: r / e + r log(1 / (e h)) pivots leave (1 + e) times what the best matrix of rank r does, in
 * expectation; h is the part of the trace that the latter leaves. The eigenvalues are known where K is diagonal. */
static void test_what_is_left_on_average_is_bounded(void **state)
{
    (void)state;
    enum { N = 60, RANK = 4, SEEDS = 200 };
    char lines[N * 64], *at = lines;
    double whole = 0.0, tail = 0.0, mean = 0.0;
    for (size_t i = 0; i < N; i++) {
        const double value = 1.0 / (double)((i + 1) * (i + 1));
        at += sprintf(at, "{\"x\": {\"f%zu\": %.17g}}\n", i, sqrt(value));
        whole += value;
        if (i >= RANK) tail += value;
    }
    drawn d = start("linear(x)", dataset_of(lines));
    const size_t count = (size_t)ceil(RANK + RANK * log(whole / tail)); /* e = 1 */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        espi_pivots p = draw(&d, count, seed, NULL, 1);
        mean += p.left * whole / SEEDS;
        espi_pivots_free(&p);
    }
    if (!(mean <= 2.0 * tail)) fail_msg("%zu pivots leave %g; at most %g", count, mean, 2.0 * tail);
    end(&d);
}

static void test_only_allowed_examples_are_chosen(void **state)
{
    (void)state;
    bool allowed[80];
    drawn d = start("rbf(x)", points(6, 80, 4, 6, 0));
    for (size_t i = 0; i < 80; i++) allowed[i] = i % 3 == 0;
    espi_pivots p = draw(&d, 60, 1, allowed, 1);
    assert_true(p.count <= 27 && p.count > 5);
    for (size_t q = 0; q < p.count; q++) assert_true(allowed[p.example[q]]);
    double worst; /* all examples have columns in the factor */
    assert_true(fabs(residual(&d, &p, &worst) - residual_of(&d, p.example, p.count)) < 1e-7);
    espi_pivots_free(&p);
    end(&d);
}

static void test_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    drawn d = start("rbf(x, gamma=0.1)", points(7, 5000, 4, 9, 0));
    espi_pivots one = draw(&d, 150, 3, NULL, 1), other = draw(&d, 150, 4, NULL, 1);
    for (int threads = 2; threads < 5; threads++) {
        espi_pivots many = draw(&d, 150, 3, NULL, threads);
        assert_int_equal(one.count, many.count);
        assert_memory_equal(one.example, many.example, one.count * sizeof *one.example);
        assert_memory_equal(one.factor, many.factor, one.count * d.n * sizeof *one.factor);
        espi_pivots_free(&many);
    }
    assert_true(memcmp(one.example, other.example, 100 * sizeof *one.example) != 0);
    espi_pivots_free(&one);
    espi_pivots_free(&other);
    end(&d);
}

static void test_what_cannot_be_is_told(void **state)
{
    (void)state;
    drawn d = start("linear(x)", dataset_of("{\"x\": {}}\n{\"x\": {}}\n"));
    espi_pivots p = draw(&d, 5, 1, NULL, 1);
    assert_int_equal(p.count, 0);
    assert_true(p.left == 0.0);
    espi_pivots_free(&p);
    end(&d);
    d = start("rbf(x)", points(8, 1000, 2, 2, 0));
    esp_error err = {0};
    const espi_pivot_options options = {.count = 100};
    assert_int_equal(espi_pivots_draw(d.bound, &options, &(esp_run){.memory = 700000}, &p, &err), ESP_ERR_MEMORY);
    assert_string_equal(err.message, "100 pivots of 1000 examples take 800.0 kB; the limit is 700.0 kB");
    assert_ok(espi_pivots_draw(d.bound, &options, &(esp_run){.memory = 900000}, &p, &err), "900 kB", &err);
    assert_null(p.factor);
    espi_pivots_free(&p);
    end(&d);
}

static esp_status draw_some(const void *argument, esp_error *err)
{
    const drawn *d = argument;
    const espi_pivot_options options = {.count = 20, .factor = true};
    espi_pivots p;
    const esp_status status = espi_pivots_draw(d->bound, &options, &(esp_run){.threads = 1}, &p, err);
    if (status == ESP_OK) espi_pivots_free(&p);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    drawn d = start("rbf(x)", points(8, 100, 2, 2, 0));
    out_of_memory_everywhere(draw_some, &d);
    end(&d);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_factor_is_exact_where_the_rank_is_small),
        TEST(test_the_factor_is_that_of_the_pivots),
        TEST(test_equal_examples_are_chosen_once),
        TEST(test_pivots_come_with_their_probabilities),
        TEST(test_better_than_uniform_draws),
        TEST(test_what_is_left_on_average_is_bounded),
        TEST(test_only_allowed_examples_are_chosen),
        TEST(test_the_same_for_any_number_of_threads),
        TEST(test_what_cannot_be_is_told),
        TEST(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
