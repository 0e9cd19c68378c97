/* Targets drawn from a Gaussian process: their covariances, and what else is promised of them. */
#include "cases.h"

#include <unistd.h>

#define KERNEL "norm(sst(tree, lambda=0.4)) + 0.5*linear(x)"
static const char *const lines =
    "{\"y\": \"a\", \"tree\": \"(S (NP (D the) (N cat)) (VP (V sat)))\", \"x\": [1, 0.5]}\n"
    "{\"y\": \"b\", \"tree\": \"(S (NP (D the) (N dog)) (VP (V sat)))\", \"x\": [0, 2]}\n"
    "{\"y\": \"a\", \"tree\": \"(NP (D the) (N dog))\", \"x\": [-1, 0.1]}\n"
    "{\"y\": \"c\", \"tree\": \"(S (NP (D a) (N dog)) (VP (V ran)))\", \"x\": [-0.5, -1]}\n";

static esp_dataset *drawn_of(const char *expression, const esp_dataset *data, double noise, uint64_t seed,
                             const esp_run *run, double *jitter)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_dataset *drawn = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_sample_gp(kernel, data, noise, seed, run, &drawn, jitter, &err), expression, &err);
    esp_kernel_free(kernel);
    return drawn;
}

static void targets_of(const char *expression, const esp_dataset *data, double noise, uint64_t seed, double *y)
{
    esp_dataset *drawn = drawn_of(expression, data, noise, seed, &(esp_run){.threads = 1}, NULL);
    assert_int_equal(esp_dataset_count(drawn), esp_dataset_count(data));
    assert_true(esp_dataset_target_is_number(drawn));
    for (size_t i = 0; i < esp_dataset_count(data); i++) y[i] = strtod(esp_dataset_target(drawn, i), NULL);
    esp_dataset_free(drawn);
}

static void test_means_and_covariances(void **state)
{
    (void)state;
    enum { N = 4, DRAWS = REPEATS(20000) };
    const double noise = 0.3;
    esp_dataset *data = dataset_of(lines);
    double *gram = gram_of(KERNEL, data, NULL, 1), sum[N] = {0}, product[N][N] = {{0}}, fourth = 0.0;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        double y[N];
        targets_of(KERNEL, data, noise, seed, y);
        for (size_t i = 0; i < N; i++) {
            sum[i] += y[i];
            for (size_t j = 0; j < N; j++) product[i][j] += y[i] * y[j];
        }
        const double scaled = y[0] / sqrt(gram[0] + noise);
        fourth += scaled * scaled * scaled * scaled;
    }
    for (size_t i = 0; i < N; i++) gram[i * N + i] += noise;
    for (size_t i = 0; i < N; i++) {
        const double k = gram[i * N + i];
        if (fabs(sum[i] / DRAWS) > 4.5 * sqrt(k / DRAWS)) fail_msg("mean %zu is %g", i, sum[i] / DRAWS);
        for (size_t j = 0; j < N; j++) {
            const double is = product[i][j] / DRAWS, expected = gram[i * N + j];
            const double deviation = sqrt((k * gram[j * N + j] + expected * expected) / DRAWS);
            if (fabs(is - expected) > 4.5 * deviation) fail_msg("%zu, %zu: %g instead of %g", i, j, is, expected);
        }
    }
    assert_true(fabs(fourth / DRAWS - 3.0) < 4.5 * sqrt(96.0 / DRAWS)); /* of a normal number */
    free(gram);
    esp_dataset_free(data);
}

static void test_noise_comes_on_top(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(lines);
    double f[4], one[4], four[4], again[4], other[4];
    targets_of(KERNEL, data, 0.0, 7, f);
    targets_of(KERNEL, data, 1.0, 7, one);
    targets_of(KERNEL, data, 4.0, 7, four);
    targets_of(KERNEL, data, 4.0, 7, again);
    targets_of(KERNEL, data, 4.0, 8, other);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fabs(four[i] - f[i] - 2.0 * (one[i] - f[i])) < 1e-12);
        assert_true(one[i] != f[i] && four[i] == again[i] && four[i] != other[i]);
    }
    esp_dataset_free(data);
}

static void test_columns_stay(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(lines), *plain = dataset_of("{\"x\": 1}\n{\"x\": 3}\n");
    esp_dataset *drawn = drawn_of(KERNEL, data, 0.1, 1, &(esp_run){.threads = 2}, NULL);
    assert_string_equal(esp_dataset_target_name(drawn), "y");
    assert_int_equal(esp_dataset_columns(drawn), esp_dataset_columns(data));
    for (size_t c = 0; c < esp_dataset_columns(data); c++)
        for (size_t i = 0; i < 4; i++) {
            char *was, *is;
            esp_error err = {0};
            assert_string_equal(esp_dataset_column_name(drawn, c), esp_dataset_column_name(data, c));
            assert_ok(esp_dataset_text(data, c, i, &was, &err), "text", &err);
            assert_ok(esp_dataset_text(drawn, c, i, &is, &err), "text", &err);
            assert_string_equal(was, is);
            esp_text_free(was);
            esp_text_free(is);
        }
    esp_dataset_free(drawn);
    drawn = drawn_of("linear(x)", plain, 0.0, 1, NULL, NULL);
    assert_string_equal(esp_dataset_target_name(drawn), "y");
    /* K = x x' has rank 1: y is in proportion to x, but for the jitter. */
    const double first = strtod(esp_dataset_target(drawn, 0), NULL),
                 second = strtod(esp_dataset_target(drawn, 1), NULL);
    assert_true(fabs(second - 3.0 * first) < 1e-4);
    esp_dataset_free(drawn);
    esp_dataset_free(plain);
    esp_dataset_free(data);
}

static void test_equal_examples_need_jitter(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": [1, 2]}\n{\"x\": [1, 2]}\n{\"x\": [3, 1]}\n{\"x\": [0, 0]}\n");
    esp_dataset *zero = dataset_of("{\"x\": {}}\n{\"x\": {}}\n");
    double jitter, y[4];
    esp_dataset *drawn = drawn_of("rbf(x)", data, 0.0, 1, NULL, &jitter);
    assert_true(jitter > 0.0 && jitter < 1e-8);
    for (size_t i = 0; i < 4; i++) y[i] = strtod(esp_dataset_target(drawn, i), NULL);
    assert_true(fabs(y[0] - y[1]) < 1e-3 && fabs(y[0] - y[2]) > 1e-3);
    esp_dataset_free(drawn);
    drawn = drawn_of("linear(x)", zero, 0.0, 1, NULL, &jitter);
    assert_true(jitter == 0.0);
    for (size_t i = 0; i < 2; i++) assert_true(strtod(esp_dataset_target(drawn, i), NULL) == 0.0);
    esp_dataset_free(drawn);
    esp_dataset_free(data);
    esp_dataset_free(zero);
}

static void refused(const esp_dataset *data, double noise, size_t memory, esp_status expected, const char *clause)
{
    esp_kernel *kernel = kernel_of("linear(x)");
    esp_dataset *drawn = (esp_dataset *)(uintptr_t)1;
    esp_error err = {0};
    assert_int_equal(esp_dataset_sample_gp(kernel, data, noise, 1, &(esp_run){.memory = memory}, &drawn, NULL, &err),
                     expected);
    assert_null(drawn);
    if (strstr(err.message, clause) == NULL) fail_msg("'%s' instead of '%s'", err.message, clause);
    esp_kernel_free(kernel);
}

static void test_what_cannot_be_is_told(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(lines), *trees = dataset_of("{\"tree\": \"(A b)\"}\n");
    refused(data, -1.0, 0, ESP_ERR_PARAM, "noise is -1; allowed is a number >= 0");
    refused(data, NAN, 0, ESP_ERR_PARAM, "noise is");
    refused(data, 0.0, 100, ESP_ERR_MEMORY,
            "targets for 4 examples take a matrix of 128 bytes; the limit is 100 bytes");
    refused(trees, 0.0, 0, ESP_ERR_PARAM, "no column 'x'");
    esp_dataset_free(data);
    esp_dataset_free(trees);
}

/* The bytes of a file, or NULL; the caller frees them. */
static char *file_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file != NULL ? calloc(1, 10000) : NULL;
    if (text != NULL) (void)!fread(text, 1, 9999, file);
    if (file != NULL) fclose(file);
    return text;
}

/* Written as it is drawn; what cannot be written is told before anything is drawn, here by the first question. */
static void test_writing(void **state)
{
    (void)state;
    char path[2][40] = {"/tmp/test_sample_gp_XXXXXX", "/tmp/test_sample_gp_YXXXXXX"};
    for (size_t i = 0; i < 2; i++) {
        const int made = mkstemp(path[i]);
        assert_true(made >= 0 && close(made) == 0 && unlink(path[i]) == 0);
    }
    esp_kernel *kernel = kernel_of(KERNEL), *linear = kernel_of("linear(x)");
    esp_dataset *data = dataset_of(lines), *vectors = dataset_of("{\"x\": {\"1\": 2}}\n{\"x\": {\"2\": 1}}\n");
    esp_dataset *drawn = drawn_of(KERNEL, data, 0.1, 3, NULL, NULL);
    esp_error err = {0};
    const esp_run run = {.threads = 1};
    assert_ok(esp_sample_gp_write(kernel, data, 0.1, 3, &run, path[0], ESP_FORMAT_JSONL, NULL, &err), "write", &err);
    assert_ok(esp_dataset_write(drawn, path[1], ESP_FORMAT_JSONL, &err), "write drawn", &err);
    char *is = file_text(path[0]), *expected = file_text(path[1]);
    assert_non_null(is);
    assert_non_null(expected);
    assert_string_equal(is, expected);
    free(is), free(expected);
    unlink(path[0]), unlink(path[1]);
    /* Data without a target can be written where one is needed: it is drawn. */
    assert_ok(esp_sample_gp_write(linear, vectors, 0.1, 3, &run, path[0], ESP_FORMAT_LIBSVM, NULL, &err), "bare", &err);
    unlink(path[0]);
    static const struct {
        esp_format format;
        const char *clause;
    } refused_formats[] = {{ESP_FORMAT_LIBSVM, "column 'tree' holds trees, which the format libsvm cannot hold"},
                           {ESP_FORMAT_PENN, "it has no place for the target"},
                           {ESP_FORMAT_CONLLU, "for reading only"}};
    for (size_t i = 0; i < 3; i++) {
        const esp_run small = {.threads = 1, .memory = 1}; /* would be told if anything were drawn */
        assert_int_equal(
            esp_sample_gp_write(kernel, data, 0.1, 3, &small, path[0], refused_formats[i].format, NULL, &err),
            ESP_ERR_PARAM);
        if (strstr(err.message, refused_formats[i].clause) == NULL) fail_msg("%s", err.message);
        assert_null(file_text(path[0]));
    }
    esp_kernel_free(kernel);
    esp_kernel_free(linear);
    esp_dataset_free(drawn);
    esp_dataset_free(data);
    esp_dataset_free(vectors);
}

static int stop(void *user, const char *stage, double fraction)
{
    (void)fraction;
    return strcmp(stage, "factoring") == 0 && ++*(size_t *)user == 2;
}

/* Between two attempts at a factor it can be stopped: equal examples need the second. */
static void test_stopping(void **state)
{
    (void)state;
    esp_kernel *kernel = kernel_of("rbf(x)");
    esp_dataset *data = dataset_of("{\"x\": 2}\n{\"x\": 2}\n{\"x\": 0}\n"), *drawn = NULL;
    size_t asked = 0;
    const esp_run run = {.threads = 1, .progress = stop, .user = &asked};
    double jitter = -1.0;
    esp_error err = {0};
    assert_int_equal(esp_dataset_sample_gp(kernel, data, 0.0, 1, &run, &drawn, &jitter, &err), ESP_ERR_CANCELLED);
    assert_string_equal(err.message, "interrupted while factoring");
    assert_null(drawn);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

static esp_status draw_targets(const void *argument, esp_error *err)
{
    esp_kernel *kernel = NULL;
    esp_dataset *drawn = NULL;
    esp_status status = esp_kernel_parse(KERNEL, &kernel, err);
    if (status == ESP_OK)
        status = esp_dataset_sample_gp(kernel, argument, 0.1, 1, &(esp_run){.threads = 1}, &drawn, NULL, err);
    assert_true((status == ESP_OK) == (drawn != NULL));
    esp_dataset_free(drawn);
    esp_kernel_free(kernel);
    return status;
}

static esp_status write_targets(const void *argument, esp_error *err)
{
    esp_kernel *kernel = NULL;
    esp_status status = esp_kernel_parse(KERNEL, &kernel, err);
    if (status == ESP_OK)
        status = esp_sample_gp_write(kernel, argument, 0.1, 1, &(esp_run){.threads = 1}, "/dev/null", ESP_FORMAT_JSONL,
                                     NULL, err);
    esp_kernel_free(kernel);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(lines);
    out_of_memory_everywhere(draw_targets, data);
    out_of_memory_everywhere(write_targets, data);
    esp_dataset_free(data);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_means_and_covariances),
        TEST(test_noise_comes_on_top),
        TEST(test_columns_stay),
        TEST(test_equal_examples_need_jitter),
        TEST(test_what_cannot_be_is_told),
        TEST(test_memory_may_run_out_anywhere),
        TEST(test_writing),
        TEST(test_stopping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
