/* Folded sums over thousands of vectors: more than planes are made for at once, with rare and frequent features. */
#include "cases.h"
#include "kernel/evaluate/folded_sum.h"

enum { VECTORS = 9000, FEATURES = 400, LENGTH = 12, ASKED = SANITIZED ? 10 : 40 };

typedef struct vectors {
    esp_dataset *data;
    double *x; /* x[i * FEATURES + f] */
} vectors;

/* Some features are frequent, most are rare. `values`: one vector in ten has some; `longest`: one has more features
 * than can be counted. */
static vectors vectors_new(uint64_t seed, bool values, bool longest)
{
    ref_random random = {seed};
    vectors v = {.x = calloc((size_t)VECTORS * FEATURES, sizeof *v.x)};
    char *lines = malloc((size_t)VECTORS * 500 + FEATURES * 20), *at = lines;
    assert_non_null(v.x);
    assert_non_null(lines);
    for (size_t i = 0; i < VECTORS; i++) {
        double *x = v.x + i * FEATURES;
        for (size_t n = 0; n < LENGTH; n++) {
            const size_t f = ref_random_below(&random, n % 2 == 0 ? 10 : FEATURES);
            x[f] = values && i % 10 == 1 ? ref_random_between(&random, -1, 1) : 1.0;
        }
        for (size_t f = 0; f < FEATURES && longest && i == VECTORS - 1; f++) x[f] = 1.0;
        at += sprintf(at, "{\"x\": {\"none\": 0");
        for (size_t f = 0; f < FEATURES; f++)
            if (x[f] != 0.0) at += sprintf(at, ", \"%zu\": %.17g", f, x[f]);
        at += sprintf(at, "}}\n");
    }
    v.data = dataset_of(lines);
    free(lines);
    return v;
}

static double dot_of(const vectors *v, size_t i, size_t j)
{
    double sum = 0.0;
    for (size_t f = 0; f < FEATURES; f++) sum += v->x[i * FEATURES + f] * v->x[j * FEATURES + f];
    return sum;
}

static void check_vectors(const vectors *v, unsigned degree, const char *expression)
{
    ref_random random = {degree};
    esp_kernel *kernel = kernel_of(expression);
    espi_folded_sum *sum = NULL;
    esp_error err = {0};
    uint32_t row[VECTORS], asked[ASKED];
    double coefficient[VECTORS], score[ASKED], again[ASKED];
    assert_ok(espi_folded_sum_new(kernel, v->data, 1, NULL, &sum, &err), expression, &err);
    for (size_t i = 0; i < VECTORS; i++) {
        row[i] = (uint32_t)(i * 7 % VECTORS); /* 7 does not divide it: each row once */
        coefficient[i] = i % 2 == 0 ? 1.0 : ref_random_between(&random, -1, 1);
    }
    for (size_t i = 0; i < ASKED; i++) asked[i] = (uint32_t)(VECTORS - 1 - i * 211);
    assert_ok(espi_folded_sum_add(sum, row, VECTORS, coefficient, &err), expression, &err);
    assert_ok(espi_folded_sum_score(sum, asked, ASKED, &(esp_run){.threads = 1}, score, &err), expression, &err);
    assert_ok(espi_folded_sum_score(sum, asked, ASKED, &(esp_run){.threads = 3}, again, &err), expression, &err);
    assert_memory_equal(score, again, sizeof score);
    for (size_t i = 0; i < ASKED; i++) {
        double expected = 0.0, size = 0.0;
        for (size_t j = 0; j < VECTORS; j++) {
            const double product = coefficient[j] * pow(0.5 * dot_of(v, asked[i], row[j]) + 1.0, degree);
            expected += product;
            size += fabs(product);
        }
        if (!(fabs(score[i] - expected) <= 1e-10 * size))
            fail_msg("%s: score %zu is %.17g instead of %.17g", expression, i, score[i], expected);
    }
    espi_folded_sum_free(sum);
    esp_kernel_free(kernel);
}

static void test_many_vectors_and_threads(void **state)
{
    (void)state;
    for (int values = 0; values < 2; values++) {
        vectors v = vectors_new(31, values != 0, values == 0);
        check_vectors(&v, 1, "poly(x, degree=1, gamma=0.5)");
        check_vectors(&v, 2, "poly(x, degree=2, gamma=0.5)");
        check_vectors(&v, 3, "poly(x, degree=3, gamma=0.5)");
        check_vectors(&v, 4, "poly(x, degree=4, gamma=0.5)");
        esp_dataset_free(v.data);
        free(v.x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_vectors_and_threads),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
