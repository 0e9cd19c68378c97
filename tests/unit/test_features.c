/* Patterns as features, against counts by hand, the kernels they add up to, and with memory that runs out. */
#include "cases.h"

static double feature_of(const esp_features *f, size_t row, const char *text)
{
    const size_t *start;
    const uint32_t *column;
    const double *value;
    esp_features_entries(f, &start, &column, &value);
    for (size_t k = start[row]; k < start[row + 1]; k++) {
        assert_true(k == start[row] || column[k - 1] < column[k]);
        if (strcmp(esp_features_text(f, column[k]), text) == 0) return value[k];
    }
    return 0.0;
}

static esp_features *features_of(const char *expression, const char *patterns, const char *lines)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_dataset *given = dataset_of(patterns), *data = dataset_of(lines);
    esp_features *f = NULL;
    esp_error err = {0};
    assert_ok(esp_features_new(kernel, given, data, NULL, &f, &err), expression, &err);
    assert_int_equal(esp_features_rows(f), esp_dataset_count(data));
    esp_kernel_free(kernel);
    esp_dataset_free(given);
    esp_dataset_free(data);
    return f;
}

static void sequences(void **state)
{
    (void)state;
    static const char patterns[] = "{\"p\": \"a\"}\n{\"p\": \"a b\"}\n{\"p\": \"a\"}\n{\"p\": \"N\"}\n";
    static const char lines[] = "{\"w\": \"a b a b\"}\n{\"w\": \"b|N a\"}\n{\"w\": \"\"}\n";
    esp_features *f = features_of("fseq(lambda=1)", patterns, lines);
    assert_int_equal(esp_features_columns(f), 3); /* two are the same */
    assert_true(feature_of(f, 0, "a") == 2.0 && feature_of(f, 0, "a b") == 3.0 && feature_of(f, 0, "N") == 0.0);
    assert_true(feature_of(f, 1, "a") == 1.0 && feature_of(f, 1, "a b") == 0.0 && feature_of(f, 1, "N") == 1.0);
    esp_features_free(f);
    f = features_of("fseq(lambda=1, gap=0, algorithm=recursion)", patterns, lines);
    assert_true(feature_of(f, 0, "a b") == 2.0);
    esp_features_free(f);
    f = features_of("fseq(lambda=0.5)", patterns, lines);
    assert_true(feature_of(f, 0, "a b") == 2.25); /* one of three occurrences leaves out two tokens */
    esp_features_free(f);
}

static void fragments(void **state)
{
    (void)state;
    static const char patterns[] =
        "{\"p\": \"(S (A ...) (A ...))\"}\n{\"p\": \"(A a)\"}\n{\"p\": \"(S (A a) (A ...))\"}\n";
    static const char lines[] = "{\"t\": \"(S (A a) (A a))\"}\n{\"t\": \"(S (A b) (A a))\"}\n{\"t\": \"(A x)\"}\n";
    esp_features *f = features_of("fsst(lambda=1)", patterns, lines);
    assert_int_equal(esp_features_columns(f), 3);
    assert_true(feature_of(f, 0, "(A a)") == 2.0 && feature_of(f, 1, "(A a)") == 1.0 &&
                feature_of(f, 2, "(A a)") == 0.0);
    assert_true(feature_of(f, 0, "(S (A ...) (A ...))") == 1.0 && feature_of(f, 1, "(S (A ...) (A ...))") == 1.0);
    assert_true(feature_of(f, 0, "(S (A a) (A ...))") == 1.0 && feature_of(f, 1, "(S (A a) (A ...))") == 0.0);
    esp_features_free(f);
    f = features_of("fsst(lambda=0.25)", patterns, lines);
    assert_true(feature_of(f, 0, "(A a)") == 1.0 && feature_of(f, 0, "(S (A a) (A ...))") == 0.25);
    esp_features_free(f);
}

static const char words[] = "{\"w\": \"a b\", \"t\": \"(A b)\"}\n{\"w\": \"b\", \"t\": \"(A c)\"}\n";

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *patterns, *message;
    } wrong[] = {
        {"seq", "{\"p\": \"a\"}\n", "features need one fseq(...) or fsst(...)"},
        {"2*fseq", "{\"p\": \"a\"}\n", "features need one"},
        {"fseq + fsst", "{\"p\": \"a\"}\n", "features need one"},
        {"fseq", "{\"p\": \"(A b)\"}\n", "the patterns of fseq are one column of sequences"},
        {"fsst", "{\"p\": \"a\"}\n", "the patterns of fsst are one column of fragments"},
        {"fseq", "{\"p\": \"a\", \"q\": \"b\"}\n", "one column"},
        {"fsst", "{\"p\": \"(A ...)\"}\n", "a fragment has one at least"},
        {"fseq(q)", "{\"p\": \"a\"}\n", "there is no column 'q'"},
    };
    esp_dataset *data = dataset_of(words);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        esp_kernel *kernel = kernel_of(wrong[i].expression);
        esp_dataset *patterns = dataset_of(wrong[i].patterns);
        esp_features *f = (esp_features *)(uintptr_t)1;
        esp_error err = {0};
        assert_int_equal(esp_features_new(kernel, patterns, data, NULL, &f, &err), ESP_ERR_PARAM);
        assert_null(f);
        if (strstr(err.message, wrong[i].message) == NULL) fail_msg("%s", err.message);
        esp_kernel_free(kernel);
        esp_dataset_free(patterns);
    }
    esp_dataset_free(data);
}

typedef struct work {
    const esp_kernel *kernel;
    const esp_dataset *patterns, *data;
} work;

static esp_status make(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_features *f = (esp_features *)(uintptr_t)1;
    const esp_status status = esp_features_new(w->kernel, w->patterns, w->data, &(esp_run){.threads = 1}, &f, err);
    assert_true((status == ESP_OK) == (f != NULL));
    esp_features_free(f);
    return status;
}

static void out_of_memory(void **state)
{
    (void)state;
    static const char *const expression[] = {"fseq(w)", "fsst(t)"};
    static const char *const patterns[] = {"{\"p\": \"a b\"}\n{\"p\": \"b\"}\n",
                                           "{\"p\": \"(A b)\"}\n{\"p\": \"(A c)\"}\n"};
    esp_dataset *data = dataset_of(words);
    for (int i = 0; i < 2; i++) {
        esp_kernel *kernel = kernel_of(expression[i]);
        esp_dataset *given = dataset_of(patterns[i]);
        out_of_memory_everywhere(make, &(work){kernel, given, data});
        esp_kernel_free(kernel);
        esp_dataset_free(given);
    }
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences),
        cmocka_unit_test(fragments),
        cmocka_unit_test(refusals),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("features", tests, NULL, NULL);
}
