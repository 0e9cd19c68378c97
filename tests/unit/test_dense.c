/* Dense algebra against triple loops written out here, for sizes around those of tiles; the same bits for any number of
 * threads; matrices without a factor; runs that are cancelled or have no memory. */
#include "base/algebra.h"
#include "base/alloc.h"
#include "base/dense.h"
#include "base/tile.h"
#include "cases.h"

#include <pthread.h>

static const size_t sizes[] = {1, 2, 15, 33, ESPI_TILE - 1, ESPI_TILE, ESPI_TILE + 1, 3 * ESPI_TILE + 5};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGE = 3 * ESPI_TILE + 5 };
static const double ABOVE = 77.0; /* stands above diagonals, where nobody writes */

static double *numbers(size_t count, uint64_t seed)
{
    ref_random random = {seed};
    double *x = malloc((count + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = ref_random_between(&random, -1, 1);
    return x;
}

static double *copy_of(const double *from, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, from, count * sizeof *copy);
    return copy;
}

/* B B^T + n/4 I. */
static double *positive_definite(size_t n, uint64_t seed)
{
    double *b = numbers(n * n, seed), *a = malloc((n * n + 1) * sizeof *a);
    assert_non_null(a);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            a[i * n + j] = i == j ? 0.25 * (double)n : 0.0;
            for (size_t k = 0; k < n; k++) a[i * n + j] += b[i * n + k] * b[j * n + k];
        }
    free(b);
    return a;
}

static double *lower_of(const double *a, size_t n)
{
    double *l = copy_of(a, n * n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) l[i * n + j] = ABOVE;
    return l;
}

static void factor_slowly(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            for (size_t k = 0; k < j; k++) a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(a[i * n + j]) : a[i * n + j] / a[j * n + j];
        }
}

static void made(espi_factor *factor, double *a, size_t n, const esp_run *run)
{
    esp_error err = {0};
    assert_ok(espi_factor_make(a, n, false, run, factor, &err), "a factor", &err);
    assert_int_equal(factor->failed, 0);
}

/* ---------------------------------------------------------------- results */

static void test_factor(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        const size_t n = sizes[s];
        double *a = positive_definite(n, n), *slow = copy_of(a, n * n), *fast = lower_of(a, n), sum = 0.0;
        espi_factor factor;
        factor_slowly(slow, n);
        made(&factor, fast, n, NULL);
        for (size_t i = 0; i < n; i++) sum += log(slow[i * n + i]);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++) assert_true(fabs(fast[i * n + j] - slow[i * n + j]) < 1e-12 * (double)n);
        assert_close(espi_factor_half_log(&factor), sum, 1e-12, "half a logarithm");
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++) assert_true(fast[i * n + j] == ABOVE);
        espi_factor_free(&factor);
        free(a), free(slow), free(fast);
    }
}

static void test_inverse(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        const size_t n = sizes[s];
        double *a = positive_definite(n, n + 1), *z = lower_of(a, n);
        esp_error err = {0};
        espi_factor factor;
        made(&factor, z, n, NULL);
        assert_ok(espi_factor_invert(&factor, NULL, &err), "an inverse", &err);
        espi_factor_free(&factor);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                double sum = 0.0;
                for (size_t k = 0; k < n; k++) sum += a[i * n + k] * (k >= j ? z[k * n + j] : z[j * n + k]);
                assert_true(fabs(sum - (i == j ? 1.0 : 0.0)) < 1e-11);
                if (j > i) assert_true(z[i * n + j] == ABOVE);
            }
        free(a), free(z);
    }
}

static void test_solutions(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++)
        for (size_t count = 1; count < 200; count += 132) {
            const size_t n = sizes[s];
            double *a = positive_definite(n, n + 2), *l = lower_of(a, n), *b = numbers(count * n, 9),
                   *x = copy_of(b, count * n), *y = copy_of(b, count * n), *alone = copy_of(b, n), *length = b;
            esp_error err = {0};
            espi_factor factor;
            made(&factor, l, n, NULL);
            assert_ok(espi_factor_solve(&factor, x, count, NULL, &err), "solutions", &err);
            assert_ok(espi_factor_solve(&factor, alone, 1, NULL, &err), "a solution", &err);
            assert_memory_equal(alone, x, n * sizeof *x);
            for (size_t c = 0; c < count; c++)
                for (size_t i = 0; i < n; i++) {
                    double sum = 0.0;
                    for (size_t k = 0; k < n; k++) sum += a[i * n + k] * x[c * n + k];
                    assert_true(fabs(sum - b[c * n + i]) < 1e-11);
                }
            memcpy(x, y, count * n * sizeof *x);
            assert_ok(espi_factor_half_solve(&factor, false, x, count, NULL, &err), "half solutions", &err);
            espi_dense_lengths(l, n, y, count, length);
            for (size_t c = 0; c < count; c++) {
                double sum = 0.0;
                for (size_t i = 0; i < n; i++) sum += x[c * n + i] * x[c * n + i];
                assert_close(length[c], sum, 1e-11, "a length");
            }
            for (size_t i = 0; i < count * n; i++) assert_true(fabs(x[i] - y[i]) < 1e-11);
            espi_factor_free(&factor);
            free(a), free(l), free(b), free(x), free(y), free(alone);
        }
}

static const size_t shapes[][3] = {{1, 1, 1},     {3, 200, 129}, {129, 7, 0},    {128, 128, 128},
                                   {130, 1, 300}, {1, 130, 300}, {257, 260, 131}};
enum { SHAPES = sizeof shapes / sizeof *shapes, PAD = 3 };

static void test_products(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int way = 0; way < 8; way++) {
            const size_t m = shapes[s][0], n = shapes[s][1], inner = shapes[s][2];
            const bool turn_a = way & 1, turn_b = way & 2, add = way & 4;
            const size_t a_stride = (turn_a ? m : inner) + PAD, b_stride = (turn_b ? inner : n) + PAD, stride = n + PAD;
            double *a = numbers((turn_a ? inner : m) * a_stride, 1), *b = numbers((turn_b ? n : inner) * b_stride, 2),
                   *c = numbers(m * stride, 3), *before = copy_of(c, m * stride);
            const espi_dense_factors f = {turn_a, turn_b, add, m, n, inner, -0.5, a, a_stride, b, b_stride};
            esp_error err = {0};
            assert_ok(espi_dense_product(&f, c, stride, NULL, &err), "a product", &err);
            for (size_t i = 0; i < m; i++)
                for (size_t j = 0; j < stride; j++) {
                    double sum = 0.0;
                    for (size_t k = 0; j < n && k < inner; k++)
                        sum += a[turn_a ? k * a_stride + i : i * a_stride + k] *
                               b[turn_b ? j * b_stride + k : k * b_stride + j];
                    const double whole = (add || j >= n ? before[i * stride + j] : 0.0) - 0.5 * sum;
                    assert_true(fabs(c[i * stride + j] - whole) < 1e-12);
                }
            free(a), free(b), free(c), free(before);
        }
}

static void test_symmetric(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        const size_t n = sizes[s], inner = 150, count = 3;
        double *b = numbers(n * inner, 4), *c = numbers(n * n, 5), *before = copy_of(c, n * n),
               *x = numbers(count * n, 6), *y = numbers(count * n, 7);
        const espi_dense_factors f = {false, true, false, n, n, inner, 1.0, b, inner, b, inner};
        esp_error err = {0};
        assert_ok(espi_dense_symmetric(&f, c, n, NULL, &err), "a product", &err);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                double sum = 0.0;
                for (size_t k = 0; k < inner; k++) sum += b[i * inner + k] * b[j * inner + k];
                assert_true(j > i ? c[i * n + j] == before[i * n + j] : fabs(c[i * n + j] - sum) < 1e-12);
            }
        assert_ok(espi_dense_times(c, n, x, count, y, NULL, &err), "vectors", &err);
        for (size_t v = 0; v < count; v++)
            for (size_t i = 0; i < n; i++) {
                double sum = 0.0;
                for (size_t k = 0; k < n; k++) sum += c[k <= i ? i * n + k : k * n + i] * x[v * n + k];
                assert_true(fabs(y[v * n + i] - sum) < 1e-10);
            }
        free(b), free(c), free(before), free(x), free(y);
    }
}

/* M is on either side, upper or lower, turned or not; it is small off its diagonal, as random triangles are nearly
 * singular. */
static void test_triangles(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++)
        for (int way = 0; way < 8; way++) {
            const size_t n = sizes[s], width = 140, t_stride = n + PAD;
            const bool left = way & 1, upper = way & 2, turn = way & 4;
            const size_t rows = left ? n : width, columns = left ? width : n, stride = columns + PAD;
            double *t = numbers(n * t_stride, 1), *b = numbers(rows * stride, 2), *x = copy_of(b, rows * stride);
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++)
                    if (i == j) t[i * t_stride + j] += 3.0;
                    else if ((j > i) != upper) t[i * t_stride + j] = NAN; /* nobody looks there */
                    else t[i * t_stride + j] /= (double)n;
            const espi_dense_triangle m = {left, upper, turn, t, t_stride};
            esp_error err = {0};
            assert_ok(espi_dense_solve(&m, rows, columns, x, stride, NULL, &err), "a triangle", &err);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < stride; j++) {
                    double sum = 0.0;
                    for (size_t k = 0; j < columns && k < n; k++) {
                        const size_t from = left ? i : k, to = left ? k : j, r = turn ? to : from, c = turn ? from : to;
                        if (upper ? c < r : c > r) continue;
                        sum += t[r * t_stride + c] * (left ? x[k * stride + j] : x[i * stride + k]);
                    }
                    assert_true(fabs((j < columns ? sum : x[i * stride + j]) - b[i * stride + j]) < 1e-11);
                }
            free(t), free(b), free(x);
        }
}

/* The bits of a factor and an inverse, which are the same on every processor and by every compiler. */
static void test_bits(void **state)
{
    (void)state;
    const size_t n = 2 * ESPI_TILE + 11;
    double *b = numbers(n * n, 3);
    uint64_t sum = 0, bits;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) b[i * n + j] = i == j ? 30.0 : b[i * n + j];
    esp_error err = {0};
    espi_factor factor;
    made(&factor, b, n, NULL);
    assert_ok(espi_factor_invert(&factor, NULL, &err), "an inverse", &err);
    espi_factor_free(&factor);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            memcpy(&bits, &b[i * n + j], sizeof bits);
            sum = 31 * sum + bits;
        }
    assert_int_equal(sum, UINT64_C(0xe73dbb8bff9278fd));
    free(b);
}

/* ---------------------------------------------------------------- threads */

static void results_are_the_same_in_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    const size_t n = LARGE, count = 150;
    double *a = positive_definite(n, 3), *b = numbers(count * n, 4), *first[5] = {NULL};
    const size_t length[5] = {n * n, n * n, count * n, count * n, n * n};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        const esp_run run = {.threads = threads[t]};
        double *now[5] = {copy_of(a, n * n), NULL, copy_of(b, count * n), malloc(count * n * sizeof *b),
                          malloc(n * n * sizeof *b)};
        const espi_dense_factors f = {true, false, false, n, n, count, 1.0, b, n, b, n};
        esp_error err = {0};
        espi_factor factor;
        made(&factor, now[0], n, &run);
        assert_ok(espi_factor_solve(&factor, now[2], count, &run, &err), "solutions", &err);
        now[1] = copy_of(now[0], n * n);
        factor.a = now[1];
        assert_ok(espi_factor_invert(&factor, &run, &err), "an inverse", &err);
        espi_factor_free(&factor);
        assert_ok(espi_dense_times(a, n, b, count, now[3], &run, &err), "vectors", &err);
        assert_ok(espi_dense_product(&f, now[4], n, &run, &err), "a product", &err);
        for (size_t k = 0; k < 5; k++) {
            if (t == 0) first[k] = now[k];
            else assert_memory_equal(now[k], first[k], length[k] * sizeof *a);
            if (t > 0) free(now[k]);
        }
    }
    for (size_t k = 0; k < 5; k++) free(first[k]);
    free(a), free(b);
}

typedef struct contest {
    const double *matrix, *factor;
    size_t n, wrong;
} contest;

static void *factor_often(void *argument)
{
    contest *c = argument;
    const esp_run two = {.threads = 2};
    for (int k = 0; k < 10; k++) {
        double *l = copy_of(c->matrix, c->n * c->n);
        espi_factor factor;
        c->wrong += espi_factor_make(l, c->n, false, &two, &factor, NULL) != ESP_OK || factor.failed != 0;
        c->wrong += memcmp(l, c->factor, c->n * c->n * sizeof *l) != 0;
        espi_factor_free(&factor);
        free(l);
    }
    return NULL;
}

static void callers_work_at_once_in_threads(void **state)
{
    (void)state;
    enum { N = 2 * ESPI_TILE + 30, THREADS = 4 };
    double *a = positive_definite(N, 8), *l = copy_of(a, N * N);
    espi_factor factor;
    made(&factor, l, N, &espi_alone);
    pthread_t thread[THREADS];
    contest c[THREADS];
    for (int i = 0; i < THREADS; i++) {
        c[i] = (contest){a, l, N, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, factor_often, &c[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(c[i].wrong, 0);
    }
    espi_factor_free(&factor);
    free(a), free(l);
}

/* --------------------------------------------------------------- failures */

/* A pivot that is not positive, in a tile of its own: which, and what it is, whatever the threads. */
static void pivots_that_fail_are_told_in_threads(void **state)
{
    (void)state;
    const size_t n = LARGE, bad[] = {0, 20, ESPI_TILE - 1, ESPI_TILE, 2 * ESPI_TILE + 3, LARGE - 1};
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (int threads = 1; threads < 5; threads += 3) {
            const esp_run run = {.threads = threads};
            double *a = positive_definite(n, 2), *slow = copy_of(a, n * n);
            factor_slowly(slow, n);
            const double root = slow[bad[b] * (n + 1)];
            a[bad[b] * (n + 1)] -= root * root + 0.125;
            espi_factor factor;
            esp_error err = {0};
            assert_ok(espi_factor_make(a, n, false, &run, &factor, &err), "no factor", &err);
            assert_int_equal(factor.failed, bad[b] + 1);
            assert_close(factor.pivot, -0.125, 1e-9, "a pivot");
            espi_factor_free(&factor);
            free(a), free(slow);
        }
    double none[] = {NAN};
    espi_factor factor;
    assert_int_equal(espi_factor_make(none, 1, false, NULL, &factor, NULL), ESP_OK);
    assert_int_equal(factor.failed, 1);
}

/* Of rank 5: jitter makes a factor, the least that can. */
static void test_nearly_singular(void **state)
{
    (void)state;
    for (size_t s = 2; s < SIZES; s++) {
        const size_t n = sizes[s], rank = 5;
        double *b = numbers(n * rank, 6), *a = malloc(n * n * sizeof *a), *diagonal = malloc(n * sizeof *a), jitter,
               mean = 0.0, *x = numbers(n, 7), *y = malloc(n * sizeof *y);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                a[i * n + j] = 0.0;
                for (size_t k = 0; k < rank; k++) a[i * n + j] += b[i * rank + k] * b[j * rank + k];
            }
        for (size_t i = 0; i < n; i++) mean += a[i * n + i] / (double)n;
        double *k = copy_of(a, n * n);
        espi_factor factor;
        esp_error err = {0};
        assert_ok(espi_factor_make_jitter(k, n, false, 0.0, 1e-10, NULL, diagonal, &jitter, &factor, &err), "jitter",
                  &err);
        assert_int_equal(factor.failed, 0);
        assert_close(jitter, 1e-10 * mean, 1e-12, "the jitter");
        memcpy(y, x, n * sizeof *x);
        assert_ok(espi_factor_half_solve(&factor, false, y, 1, NULL, &err), "half a solution", &err);
        for (size_t i = 0; i < n; i++) { /* L y = x */
            double sum = 0.0, size = 1.0;
            for (size_t j = 0; j <= i; j++) sum += k[i * n + j] * y[j];
            for (size_t j = 0; j <= i; j++) size += fabs(k[i * n + j] * y[j]);
            assert_true(fabs(sum - x[i]) < 1e-12 * size);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) assert_true(j <= i || k[i * n + j] == a[i * n + j]);
        espi_factor_free(&factor);
        free(a), free(b), free(k), free(diagonal), free(x), free(y);
    }
}

typedef struct patience {
    int left;
} patience;

static int lose_it(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    patience *p = user;
    return p->left-- <= 0;
}

/* Cancelled at its k-th question, every part of the work ends at once, and says what it was at. */
static void cancelled_in_the_middle_of_threads(void **state)
{
    (void)state;
    const size_t n = LARGE;
    double *a = positive_definite(n, 5);
    for (int threads = 1; threads < 5; threads += 3)
        for (int asked = 0; asked < 6; asked++) {
            patience p = {asked};
            const esp_run run = {.threads = threads, .progress = lose_it, .user = &p};
            double *l = copy_of(a, n * n), *x = numbers(130 * n, 1);
            espi_factor factor;
            esp_error err = {0};
            const esp_status status = espi_factor_make(l, n, false, &run, &factor, &err);
            if (status != ESP_OK) assert_string_equal(err.message, "interrupted while factoring");
            assert_true(status == ESP_ERR_CANCELLED || (threads > 1 && status == ESP_OK));
            memcpy(l, a, n * n * sizeof *l);
            made(&factor, l, n, NULL);
            p.left = asked;
            const esp_status solved = espi_factor_half_solve(&factor, true, x, 130, &run, &err);
            assert_true(solved == ESP_ERR_CANCELLED || (solved == ESP_OK && (threads > 1 || asked >= 4)));
            p.left = asked;
            const esp_status inverted = espi_factor_invert(&factor, &run, &err);
            if (inverted != ESP_OK) assert_string_equal(err.message, "interrupted while inverting");
            assert_true(inverted == ESP_ERR_CANCELLED || (threads > 1 && inverted == ESP_OK));
            espi_factor_free(&factor);
            free(l), free(x);
        }
    free(a);
}

static void test_no_memory(void **state)
{
    (void)state;
    const size_t n = LARGE;
    const esp_run run = {.threads = 2};
    double *a = positive_definite(n, 5), *x = numbers(130 * n, 1);
    size_t refused = 0;
    for (long k = 0; k < 12; k++) {
        double *l = copy_of(a, n * n);
        const long live = espi_alloc_live();
        espi_factor factor;
        espi_alloc_fail_after(k);
        esp_status status = espi_factor_make(l, n, false, &run, &factor, NULL);
        if (status == ESP_OK) status = espi_factor_half_solve(&factor, false, x, 130, &run, NULL);
        if (status == ESP_OK) status = espi_factor_invert(&factor, &run, NULL);
        espi_alloc_fail_after(-1);
        assert_true(status == ESP_OK || status == ESP_ERR_MEMORY);
        refused += status == ESP_ERR_MEMORY;
        espi_factor_free(&factor);
        assert_int_equal(espi_alloc_live(), live);
        free(l);
    }
    assert_int_equal(refused, 8);
    free(a), free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_solutions),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_symmetric),
        cmocka_unit_test(test_triangles),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(results_are_the_same_in_threads),
        cmocka_unit_test(callers_work_at_once_in_threads),
        cmocka_unit_test(pivots_that_fail_are_told_in_threads),
        cmocka_unit_test(test_nearly_singular),
        cmocka_unit_test(cancelled_in_the_middle_of_threads),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
