/* Model files of Gaussian processes with inducing examples: written, read, forged, cut short of memory. */
#include "models.h"

/* The process of models.h with a matrix, P[i][j] = (i + 1) (j + 1) / 30. */
static esp_model *inducing(void)
{
    esp_model *m = made(&recipes[PROCESS]);
    const size_t n = m->support->rows;
    double *p = m->gaussian->reduction = espi_alloc(n * n, sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) m->coefficient[i] = (double)i / 3.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) p[i * n + j] = (double)((i + 1) * (j + 1)) / 30.0;
    return m;
}

static unsigned char *entry_of(blob b, const char *tag)
{
    for (size_t i = 0; i < fetch(b.bytes + 12, 4); i++)
        if (strncmp((char *)b.bytes + 64 + 24 * i, tag, 8) == 0) return b.bytes + 64 + 24 * i;
    fail_msg("there is no section '%s'", tag);
    return NULL;
}

static void test_round_trip(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = inducing(), *again = NULL;
    const size_t n = m->support->rows;
    const blob b = bytes_of(m);
    assert_int_equal(fetch(b.bytes + 8, 4), 4);
    assert_int_equal(fetch(b.bytes + fetch(entry_of(b, "shape") + 8, 8) + 24, 8), ESPI_MODEL_INDUCING);
    assert_int_equal(fetch(entry_of(b, "reduce") + 16, 8), n * n * 8);
    assert_ok(esp_model_parse(b.bytes, b.size, "some.model", &again, &err), "parse", &err);
    assert_memory_equal(m->gaussian->reduction, again->gaussian->reduction, n * n * sizeof(double));
    const blob second = bytes_of(again);
    assert_int_equal(b.size, second.size);
    assert_memory_equal(b.bytes, second.bytes, b.size);
    esp_predictions *p = NULL;
    assert_ok(esp_predict(again, again->support, NULL, &p, &err), "predict", &err);
    for (size_t i = 0; i < n; i++) assert_true(esp_predictions_latent_variance(p, i) >= 0.0);
    esp_predictions_free(p);
    esp_model_free(m);
    esp_model_free(again);
    free(b.bytes);
    free(second.bytes);
}

/* Never below 0, and never what is no number. */
static void test_variances(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = inducing();
    esp_predictions *p = NULL;
    const size_t n = m->support->rows;
    for (size_t i = 0; i < n * n; i++) m->gaussian->reduction[i] = i % (n + 1) == 0 ? 1e6 : 0.0;
    assert_ok(esp_predict(m, m->support, NULL, &p, &err), "predict", &err);
    for (size_t i = 0; i < n; i++) {
        assert_true(esp_predictions_latent_variance(p, i) == 0.0);
        assert_close(esp_predictions_variance(p, i), 0.1 / 9.0, 1e-12, "noise");
    }
    esp_predictions_free(p);
    for (int sign_of = -1; sign_of < 2; sign_of += 2) {
        for (size_t i = 0; i < n * n; i++) m->gaussian->reduction[i] = sign_of * 1e308;
        assert_int_equal(esp_predict(m, m->support, NULL, &p, &err), ESP_ERR_RANGE);
        assert_non_null(strstr(err.message, "is too large for a number"));
        assert_null(p);
    }
    esp_model_free(m);
}

#define NAN_BITS UINT64_C(0x7FF8000000000000)
#define INFINITE_BITS UINT64_C(0x7FF0000000000000)

static const struct {
    const char *tag;
    size_t offset, bytes;
    uint64_t value;
    const char *clause;
} forgeries[] = {
    {"reduce", 16, 8, NAN_BITS, "a number of the variances is not finite"},
    {"reduce", 64, 8, INFINITE_BITS, "a number of the variances is not finite"},
    {"reduce", 8, 8, 0, "the matrix of the variances is not symmetric"},
    {"reduce", 56, 1, 1, "the matrix of the variances is not symmetric"},
    {"process", 8, 8, 0, "there are no inducing examples or there is no noise"},
    {"shape", 24, 8, 0, "section 'column' is not where it belongs"},
    {"shape", 24, 8, 12, "its flags are unknown"},
    {"shape", 24, 8, 16, "its flags are unknown"},
    {"shape", 0, 8, 2, "there are 3 numbers instead of 2"},
    {"shape", 0, 8, UINT64_C(1) << 32, "a number is too large"},
};

static void test_forged(void **state)
{
    (void)state;
    esp_model *m = inducing();
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        const blob b = bytes_of(m);
        print_message("%s %zu\n", forgeries[i].tag, forgeries[i].offset);
        store(b.bytes + fetch(entry_of(b, forgeries[i].tag) + 8, 8) + forgeries[i].offset, forgeries[i].value,
              forgeries[i].bytes);
        sign(b);
        refused(b.bytes, b.size, forgeries[i].clause);
        free(b.bytes);
    }
    static const uint64_t sizes[] = {0, 8, 64, 71, 80, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX - 63};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const blob b = bytes_of(m);
        store(entry_of(b, "reduce") + 16, sizes[i], 8);
        sign(b);
        refused(b.bytes, b.size, "the model file is wrong");
        free(b.bytes);
    }
    const blob exact = file_of(PROCESS); /* which has no matrix, whatever it says */
    store(exact.bytes + fetch(entry_of(exact, "shape") + 8, 8) + 24, ESPI_MODEL_INDUCING, 8);
    sign(exact);
    refused(exact.bytes, exact.size, "section 'reduce' is not where it belongs");
    free(exact.bytes);
    const blob svr = file_of(VECTOR_SVR);
    store(svr.bytes + fetch(entry_of(svr, "shape") + 8, 8) + 24, ESPI_MODEL_INDUCING, 8);
    sign(svr);
    refused(svr.bytes, svr.size, "its flags are unknown");
    free(svr.bytes);
    esp_model_free(m);
}

/* What cannot be read is not written. */
static void test_not_written(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m = inducing();
    m->gaussian->reduction[1] += 1e-9;
    assert_int_equal(esp_model_write(m, in_directory("model"), &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "the matrix of the variances is not symmetric"));
    m->gaussian->reduction[1] = m->gaussian->reduction[3];
    m->gaussian->noise = 0.0;
    assert_int_equal(esp_model_write(m, in_directory("model"), &err), ESP_ERR_PARAM);
    assert_int_equal(access(in_directory("model"), F_OK), -1);
    esp_model_free(m);
    m = made(&recipes[PROCESS_CLASSES]);
    m->gaussian->noise = 0.1;
    m->gaussian->reduction = espi_alloc_zero(m->support->rows * m->support->rows, sizeof(double));
    assert_int_equal(esp_model_write(m, in_directory("model"), &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "only numbers are learned with inducing examples"));
    esp_model_free(m);
}

static esp_status parse(const void *argument, esp_error *err)
{
    const blob *b = argument;
    esp_model *m = NULL;
    const esp_status status = esp_model_parse(b->bytes, b->size, "some.model", &m, err);
    esp_model_free(m);
    return status;
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_model *m = inducing();
    const blob b = bytes_of(m);
    esp_model_free(m);
    out_of_memory_everywhere(parse, &b);
    free(b.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_variances),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
