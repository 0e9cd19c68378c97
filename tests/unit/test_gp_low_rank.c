/* The low-rank Gaussian process against the formulas of its paper, written out with n x n matrices. */
#include "cases.h"
#include "learn/gp/inducing.h"

enum { N = 24, MOST = N };

/* ---------------------------------------------------------------- reference */

/* x = A^-1 B (n x columns) and log |A|, by elimination with pivots. */
static double ref_solve(const double *a, size_t n, const double *b, size_t columns, double *x)
{
    double *w = malloc(n * n * sizeof *w), log_determinant = 0.0;
    memcpy(w, a, n * n * sizeof *w);
    if (x != b) memcpy(x, b, n * columns * sizeof *x);
    for (size_t k = 0; k < n; k++) {
        size_t best = k;
        for (size_t i = k; i < n; i++)
            if (fabs(w[i * n + k]) > fabs(w[best * n + k])) best = i;
        for (size_t j = 0; j < n; j++) {
            const double swap = w[k * n + j];
            w[k * n + j] = w[best * n + j], w[best * n + j] = swap;
        }
        for (size_t j = 0; j < columns; j++) {
            const double swap = x[k * columns + j];
            x[k * columns + j] = x[best * columns + j], x[best * columns + j] = swap;
        }
        log_determinant += log(fabs(w[k * n + k]));
        for (size_t i = 0; i < n; i++) {
            const double factor = i == k ? 0.0 : w[i * n + k] / w[k * n + k];
            for (size_t j = 0; j < n && factor != 0.0; j++) w[i * n + j] -= factor * w[k * n + j];
            for (size_t j = 0; j < columns && factor != 0.0; j++) x[i * columns + j] -= factor * x[k * columns + j];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < columns; j++) x[i * columns + j] /= w[i * n + i];
    free(w);
    return log_determinant;
}

typedef struct problem { /* parts of a matrix, targets, and K(pivots, x) of a point x with K(x, x) */
    size_t m;
    double mm[MOST * MOST], mn[MOST * N], diagonal[N], target[N], noise;
    double at[MOST], self;
} problem;

/* log N(y - mean; 0, C) */
static double ref_log_normal(const double *c, const double *target, double mean)
{
    double rest[N], solved[N], sum = N * log(2.0 * acos(-1.0));
    for (size_t i = 0; i < N; i++) rest[i] = target[i] - mean;
    sum += ref_solve(c, N, rest, 1, solved);
    for (size_t i = 0; i < N; i++) sum += rest[i] * solved[i];
    return -0.5 * sum;
}

static double ref_bound(const problem *p, double mean)
{
    double solved[MOST * N], c[N * N], left = 0.0;
    (void)ref_solve(p->mm, p->m, p->mn, N, solved);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            c[i * N + j] = i == j ? p->noise : 0.0;
            double q = 0.0;
            for (size_t k = 0; k < p->m; k++) q += p->mn[k * N + i] * solved[k * N + j];
            c[i * N + j] += q;
            if (i == j) left += p->diagonal[i] - q;
        }
    return ref_log_normal(c, p->target, mean) - left / (2.0 * p->noise);
}

/* Titsias, equation 6: with S = K_mm + K_mn K_nm / s2, the mean is k'S^-1 K_mn y / s2, the variance
 * K(x, x) - k'(K_mm^-1 - S^-1) k. */
static void ref_predict(const problem *p, double mean, double *f, double *variance)
{
    double s[MOST * MOST], right[MOST * 2], by_s[MOST * 2], by_k[MOST];
    *f = 0.0, *variance = p->self;
    for (size_t i = 0; i < p->m; i++) {
        right[2 * i] = p->at[i];
        right[2 * i + 1] = 0.0;
        for (size_t t = 0; t < N; t++) right[2 * i + 1] += p->mn[i * N + t] * (p->target[t] - mean) / p->noise;
        for (size_t j = 0; j < p->m; j++) {
            s[i * p->m + j] = p->mm[i * p->m + j];
            for (size_t t = 0; t < N; t++) s[i * p->m + j] += p->mn[i * N + t] * p->mn[j * N + t] / p->noise;
        }
    }
    (void)ref_solve(s, p->m, right, 2, by_s);
    (void)ref_solve(p->mm, p->m, p->at, 1, by_k);
    for (size_t i = 0; i < p->m; i++) {
        *f += p->at[i] * by_s[2 * i + 1];
        *variance -= p->at[i] * (by_k[i] - by_s[2 * i]);
    }
}

/* -------------------------------------------------------------------- cases */

/* Points on a plane under exp(-|x - z|^2 / 2) (1 + x z); the first m of N are the pivots. */
static problem problem_of(uint64_t seed, size_t m, double noise)
{
    problem p = {.m = m, .noise = noise};
    ref_random random = {seed};
    double x[N + 1][2];
    for (size_t i = 0; i <= N; i++)
        for (size_t k = 0; k < 2; k++) x[i][k] = ref_random_between(&random, -3, 3);
    for (size_t i = 0; i <= N; i++)
        for (size_t j = 0; j <= N; j++) {
            const double a = x[i][0] - x[j][0], b = x[i][1] - x[j][1];
            const double k = exp(-0.5 * (a * a + b * b)) * (9.0 + x[i][0] * x[j][0]);
            if (i < m && j < m) p.mm[i * m + j] = k;
            if (i < m && j < N) p.mn[i * N + j] = k;
            if (i < N && i == j) p.diagonal[i] = k;
            if (i < m && j == N) p.at[i] = k;
            if (i == N && j == N) p.self = k;
        }
    for (size_t i = 0; i < N; i++) p.target[i] = 3.0 + sin(x[i][0]) + ref_random_between(&random, -0.5, 0.5);
    return p;
}

static espi_low_rank solved(const problem *p, bool constant, bool weights, int threads)
{
    espi_low_rank s;
    esp_error err = {0};
    const esp_run run = {.threads = threads};
    assert_ok(espi_low_rank_new(p->m, N, NULL, &s, &err), "new", &err);
    memcpy(s.k_mm, p->mm, p->m * p->m * sizeof *s.k_mm);
    memcpy(s.k_mn, p->mn, p->m * N * sizeof *s.k_mn);
    memcpy(s.diagonal, p->diagonal, N * sizeof *s.diagonal);
    assert_ok(espi_low_rank_solve(&s, p->target, p->noise, constant, &run, &err), "solve", &err);
    if (weights) assert_ok(espi_low_rank_weights(&s, &run, &err), "weights", &err);
    return s;
}

static void test_bound_mean_and_variance(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const problem p = problem_of(seed, 1 + seed % 9, seed % 2 == 0 ? 0.3 : 2.0);
        for (int constant = 0; constant < 2; constant++) {
            espi_low_rank s = solved(&p, constant == 1, seed % 2 == 0, 1);
            double f = 0.0, variance = p.self, expected_f, expected_variance, matrix[MOST * MOST];
            assert_near_at(s.value, ref_bound(&p, s.mean), 1e-10, "F", seed);
            if (constant == 0) assert_true(s.mean == 0.0);
            else { /* the best mean: F is a parabola in it, with its top there */
                assert_near_at(ref_bound(&p, s.mean + 0.1), ref_bound(&p, s.mean - 0.1), 1e-10, "top", seed);
                assert_true(ref_bound(&p, s.mean + 0.1) < s.value);
            }
            assert_int_equal(espi_low_rank_posterior(&s, matrix, NULL, NULL), ESP_OK);
            for (size_t i = 0; i < p.m; i++) {
                f += s.coefficient[i] * p.at[i];
                for (size_t j = 0; j < p.m; j++) {
                    assert_true(matrix[i * p.m + j] == matrix[j * p.m + i]);
                    variance -= p.at[i] * matrix[i * p.m + j] * p.at[j];
                }
            }
            ref_predict(&p, s.mean, &expected_f, &expected_variance);
            assert_near_at(f, expected_f, 1e-9, "mean", seed);
            assert_near_at(variance, expected_variance, 1e-9, "variance", seed);
            assert_true(variance > 0.0);
            assert_true(s.jitter == 0.0);
            espi_low_rank_free(&s);
        }
    }
}

/* F with one number moved, of a symmetric matrix with its mirror image. */
static double moved(const problem *p, double mean, double *where, double *mirror, double by)
{
    const double was = *where;
    *where = *mirror = was + by;
    const double value = ref_bound(p, mean);
    *where = *mirror = was;
    return value;
}

/* dF by a number of p: a central difference of fourth order. */
static double slope(const problem *p, double mean, double *where, double *mirror)
{
    const double h = 1e-4;
    const double one = moved(p, mean, where, mirror, h) - moved(p, mean, where, mirror, -h);
    const double two = moved(p, mean, where, mirror, 2 * h) - moved(p, mean, where, mirror, -2 * h);
    return (8.0 * one - two) / (12.0 * h);
}

static void test_weights_are_derivatives(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        problem p = problem_of(100 + seed, 1 + seed, seed % 2 == 0 ? 0.3 : 2.0);
        espi_low_rank s = solved(&p, seed % 3 == 0, true, 1);
        const size_t m = p.m;
        /* The mean may stay, as F is flat in it. */
        assert_near_at(s.noise_gradient, slope(&p, s.mean, &p.noise, &p.noise), 1e-7, "noise", seed);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j <= i; j++) {
                assert_true(s.w_mm[i * m + j] == s.w_mm[j * m + i]);
                assert_near_at(i == j ? s.w_mm[i * m + j] : 2.0 * s.w_mm[i * m + j],
                               slope(&p, s.mean, &p.mm[i * m + j], &p.mm[j * m + i]), 1e-6, "w_mm", i * m + j);
            }
        for (size_t i = 0; i < m * N; i += 3)
            assert_near_at(s.w_mn[i], slope(&p, s.mean, &p.mn[i], &p.mn[i]), 1e-6, "w_mn", i);
        for (size_t i = 0; i < N; i += 5)
            assert_near_at(s.w_diagonal, slope(&p, s.mean, &p.diagonal[i], &p.diagonal[i]), 1e-6, "w_diagonal", i);
        espi_low_rank_free(&s);
    }
}

static void test_all_examples_as_pivots_are_the_exact_process(void **state)
{
    (void)state;
    const problem p = problem_of(7, N, 0.5);
    double c[N * N], by_c[N * 2], right[N * 2], f = 0.0, variance = p.self, is_f = 0.0, is_variance = p.self,
                                                matrix[N * N];
    espi_low_rank s = solved(&p, false, false, 1);
    memcpy(c, p.mm, sizeof c);
    for (size_t i = 0; i < N; i++) {
        c[i * N + i] += p.noise;
        right[2 * i] = p.target[i];
        right[2 * i + 1] = p.at[i];
    }
    (void)ref_solve(c, N, right, 2, by_c);
    assert_int_equal(espi_low_rank_posterior(&s, matrix, NULL, NULL), ESP_OK);
    for (size_t i = 0; i < N; i++) {
        f += p.at[i] * by_c[2 * i];
        variance -= p.at[i] * by_c[2 * i + 1];
        is_f += p.at[i] * s.coefficient[i];
        for (size_t j = 0; j < N; j++) is_variance -= p.at[i] * matrix[i * N + j] * p.at[j];
    }
    assert_near_at(s.value, ref_log_normal(c, p.target, 0.0), 1e-8, "log likelihood", 0);
    assert_near_at(is_f, f, 1e-8, "mean", 0);
    assert_near_at(is_variance, variance, 1e-8, "variance", 0);
    espi_low_rank_free(&s);
}

/* Fewer pivots can only lower the bound. */
static void test_more_pivots_raise_the_bound(void **state)
{
    (void)state;
    double before = -INFINITY;
    for (size_t m = 1; m < 16; m++) {
        const problem p = problem_of(11, m, 0.5);
        espi_low_rank s = solved(&p, false, false, 1);
        assert_true(s.value > before);
        before = s.value;
        espi_low_rank_free(&s);
    }
}

/* The last two of four pivots are one; a self-value that is too small by a part makes K_mm indefinite. */
static problem equal_pivots(double part)
{
    problem p = problem_of(3, 4, 0.5);
    for (size_t j = 0; j < 4; j++) p.mm[3 * 4 + j] = p.mm[2 * 4 + j];
    for (size_t j = 0; j < 4; j++) p.mm[j * 4 + 3] = p.mm[j * 4 + 2];
    p.mm[3 * 4 + 3] = p.mm[2 * 4 + 2] * (1.0 - part);
    memcpy(p.mn + 3 * N, p.mn + 2 * N, N * sizeof *p.mn);
    return p;
}

/* F with jitter in proportion to the mean of the diagonal. */
static double with_jitter(problem p, double part)
{
    double mean = 0.0;
    for (size_t i = 0; i < p.m; i++) mean += p.mm[i * p.m + i] / (double)p.m;
    for (size_t i = 0; i < p.m; i++) p.mm[i * p.m + i] += part * mean;
    return ref_bound(&p, 0.0);
}

static void test_jitter_has_derivatives(void **state)
{
    (void)state;
    problem p = equal_pivots(1e-4);
    espi_low_rank s = solved(&p, false, true, 1);
    assert_close(s.jitter, 1e-4 * (p.mm[0] + p.mm[5] + p.mm[10] + p.mm[15]) / 4.0, 1e-9, "jitter");
    assert_near_at(s.value, with_jitter(p, 1e-4), 1e-9, "F", 0);
    for (size_t i = 0; i < 4; i++) {
        const double was = p.mm[5 * i], h = 1e-6;
        p.mm[5 * i] = was + h;
        const double above = with_jitter(p, 1e-4);
        p.mm[5 * i] = was - h;
        const double below = with_jitter(p, 1e-4);
        p.mm[5 * i] = was;
        assert_near_at(s.w_mm[5 * i], (above - below) / (2.0 * h), 1e-4, "w_mm", i);
    }
    espi_low_rank_free(&s);
}

static void test_equal_pivots(void **state)
{
    (void)state;
    problem p = equal_pivots(1e-9), plain = p;
    espi_low_rank s = solved(&p, false, true, 1);
    assert_true(s.jitter > 0.0 && s.jitter < 1e-7);
    plain.m = 3; /* as if it were not there */
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) plain.mm[i * 3 + j] = p.mm[i * 4 + j];
    assert_near_at(s.value, ref_bound(&plain, 0.0), 1e-6, "F", 0);
    espi_low_rank_free(&s);
    for (size_t i = 0; i < 16; i++) p.mm[i] = i % 5 == 0 ? -1.0 : 0.0;
    esp_error err = {0};
    assert_ok(espi_low_rank_new(4, N, NULL, &s, &err), "new", &err);
    memcpy(s.k_mm, p.mm, 16 * sizeof *s.k_mm);
    assert_int_equal(espi_low_rank_solve(&s, p.target, 1.0, false, NULL, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "not positive definite"));
    assert_int_equal(espi_low_rank_solve(&s, p.target, 0.0, false, NULL, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "needs noise"));
    espi_low_rank_free(&s);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bound_mean_and_variance),
        TEST(test_weights_are_derivatives),
        TEST(test_all_examples_as_pivots_are_the_exact_process),
        TEST(test_more_pivots_raise_the_bound),
        TEST(test_jitter_has_derivatives),
        TEST(test_equal_pivots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
