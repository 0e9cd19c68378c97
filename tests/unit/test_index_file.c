/* Index files: what is written is read and found again, more examples make the file that all at once would have made,
 * and damaged or hostile files do no harm. */
#define XXH_INLINE_ALL
#include "search_cases.h"

#include "files.h"

#include <xxhash.h>

static const char *const kernels[] = {
    "norm(sst(tree, lambda=0.4))",    "0.3*st(tree, bow=0.5)", "norm(sasst(tree, lambda.NP=0.2))", "norm(ptk(tree))",
    "norm(seq(words, n=2)) + rbf(x)",
};

typedef struct file_bytes {
    unsigned char *bytes;
    size_t size;
} file_bytes;

static file_bytes file_of(const esp_index *index)
{
    char *bytes = NULL;
    size_t size;
    esp_error err = {0};
    assert_ok(esp_index_bytes(index, &bytes, &size, &err), "esp_index_bytes", &err);
    return (file_bytes){(unsigned char *)bytes, size};
}

static void same_files(const esp_index *a, const esp_index *b, const char *what)
{
    const file_bytes x = file_of(a), y = file_of(b);
    if (x.size != y.size || memcmp(x.bytes, y.bytes, x.size) != 0) fail_msg("%s: the files differ", what);
    esp_text_free((char *)x.bytes);
    esp_text_free((char *)y.bytes);
}

static void same_results(const esp_index *a, const esp_index *b, const esp_dataset *queries)
{
    esp_hits *x = NULL, *y = NULL;
    esp_error err = {0};
    assert_ok(esp_search(a, queries, NULL, NULL, &x, &err), "esp_search", &err);
    assert_ok(esp_search(b, queries, NULL, NULL, &y, &err), "esp_search", &err);
    for (size_t q = 0; q < esp_hits_queries(x); q++) {
        size_t m, n;
        const esp_hit *left = esp_hits_of(x, q, &m), *right = esp_hits_of(y, q, &n);
        assert_int_equal(m, n);
        for (size_t i = 0; i < m; i++) {
            assert_int_equal(left[i].example, right[i].example);
            assert_true(left[i].similarity == right[i].similarity);
        }
    }
    esp_hits_free(x);
    esp_hits_free(y);
}

static void written_and_read(void **state)
{
    (void)state;
    ref_random random = {5};
    esp_dataset *data = random_collection(&random, 50, 30, false), *queries = random_collection(&random, 5, 30, true);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        const char *path = in_directory("index");
        esp_index *index = index_of(kernels[k], data, k % 2 == 0 ? "id" : NULL, 2), *again = NULL, *parsed = NULL;
        esp_error err = {0};
        assert_false(esp_index_recognise(path));
        assert_ok(esp_index_write(index, path, &err), "esp_index_write", &err);
        assert_true(esp_index_recognise(path));
        assert_ok(esp_index_read(path, NULL, &again, &err), "esp_index_read", &err);
        unlink(path);
        assert_string_equal(esp_index_kernel(again), esp_index_kernel(index));
        assert_int_equal(esp_index_count(again), 50);
        if (k % 2 == 0) assert_string_equal(esp_index_id(again, 49), "example 50");
        else assert_null(esp_index_id(again, 0));
        same_files(index, again, kernels[k]);
        same_results(index, again, queries);
        const file_bytes b = file_of(again);
        assert_ok(esp_index_parse(b.bytes, b.size, "bytes", NULL, &parsed, &err), "esp_index_parse", &err);
        esp_text_free((char *)b.bytes);
        same_results(parsed, again, queries);
        char *one = NULL, *two = NULL;
        assert_ok(esp_index_summary(index, &one, &err), "summary", &err);
        assert_ok(esp_index_summary(parsed, &two, &err), "summary", &err);
        assert_string_equal(one, two);
        esp_text_free(one);
        esp_text_free(two);
        esp_index_free(parsed);
        esp_index_free(again);
        esp_index_free(index);
    }
    esp_dataset_free(queries);
    esp_dataset_free(data);
}

static void added(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (size_t cut = 1; cut < 40; cut += 19) {
            ref_random random = {k};
            char *lines = random_lines(&random, 40, 25, false), *at = lines;
            esp_dataset *all = dataset_of(lines);
            for (size_t i = 0; i < cut; i++) at = strchr(at, '\n') + 1;
            esp_dataset *second = dataset_of(at);
            *at = '\0';
            esp_dataset *first = dataset_of(lines);
            free(lines);
            esp_index *index = index_of(kernels[k], first, "id", 1), *more = NULL,
                      *whole = index_of(kernels[k], all, "id", 2);
            esp_error err = {0};
            assert_ok(esp_index_add(index, second, NULL, &more, &err), kernels[k], &err);
            same_files(more, whole, kernels[k]);
            esp_index_free(more);
            more = (esp_index *)(uintptr_t)1;
            assert_int_equal(esp_index_add(whole, second, NULL, &more, &err), ESP_ERR_PARSE);
            assert_null(more);
            assert_non_null(strstr(err.message, "have one name"));
            esp_index_free(index);
            esp_index_free(whole);
            esp_dataset_free(first);
            esp_dataset_free(second);
            esp_dataset_free(all);
        }
}

static void expect_refused(const void *bytes, size_t size, const char *clause)
{
    esp_index *index = (esp_index *)(uintptr_t)1;
    esp_error err = {0};
    assert_int_equal(esp_index_parse(bytes, size, "input", NULL, &index, &err), ESP_ERR_PARSE);
    assert_null(index);
    if (strstr(err.message, clause) == NULL) fail_msg("%s instead of: %s", err.message, clause);
}

static void damaged(void **state)
{
    (void)state;
    ref_random random = {5};
    esp_dataset *data = random_collection(&random, 12, 15, false);
    esp_index *index = index_of(kernels[0], data, "id", 1);
    const file_bytes b = file_of(index);
    for (size_t size = 0; size < b.size; size += size < 200 ? 1 : 37)
        expect_refused(b.bytes, size, size < 8 ? "input: this is not an index file" : "damaged");
    for (size_t i = 0; i < b.size; i += 13) {
        b.bytes[i] ^= 0x40;
        expect_refused(b.bytes, b.size, "input: ");
        b.bytes[i] ^= 0x40;
    }
    expect_refused("{\"tree\": \"(S a)\"}\n", 18, "input: this is not an index file");
    expect_refused("\x89"
                   "ESP\r\n\x1A\n",
                   8, "this is not an index file");
    esp_text_free((char *)b.bytes);
    esp_index_free(index);
    esp_dataset_free(data);
    esp_error err = {0};
    assert_int_equal(esp_index_read(in_directory("nothing"), NULL, &index, &err), ESP_ERR_IO);
    spill(in_directory("empty"), "", 0);
    assert_int_equal(esp_index_read(in_directory("empty"), NULL, &index, &err), ESP_ERR_PARSE);
    unlink(in_directory("empty"));
    assert_int_equal(esp_index_read(directory, NULL, &index, &err), ESP_ERR_IO);
}

static void sign(file_bytes b)
{
    XXH3_state_t hash;
    XXH3_128bits_reset(&hash);
    XXH3_128bits_update(&hash, b.bytes, 24);
    XXH3_128bits_update(&hash, b.bytes + 40, b.size - 40);
    const XXH128_hash_t sum = XXH3_128bits_digest(&hash);
    for (int i = 0; i < 8; i++) {
        b.bytes[24 + i] = (unsigned char)(sum.low64 >> 8 * i);
        b.bytes[32 + i] = (unsigned char)(sum.high64 >> 8 * i);
    }
}

/* Whatever it is: it is refused with a sentence, or every question has an answer or a sentence. */
static void use(file_bytes b, const esp_dataset *queries)
{
    esp_index *index = NULL, *more = NULL;
    esp_hits *hits = NULL;
    esp_pairs *pairs = NULL;
    esp_clusters *clusters = NULL;
    esp_error err = {0};
    const esp_run run = {.threads = 1, .memory = 1 << 24};
    sign(b);
    const esp_status status = esp_index_parse(b.bytes, b.size, "input", &run, &index, &err);
    assert_int_equal(status == ESP_OK, index != NULL);
    if (status != ESP_OK) {
        assert_true(strncmp(err.message, "input: ", 7) == 0);
        return;
    }
    for (size_t i = 0; i < esp_index_count(index); i++) (void)esp_index_id(index, i);
    for (int all = 0; all < 2; all++) {
        const esp_search_options options = {.top = 3, .no_bounds = all == 1};
        if (esp_search(index, queries, &options, &run, &hits, &err) != ESP_OK) assert_true(err.message[0] != '\0');
        esp_hits_free(hits);
    }
    if (esp_pairs_find(index, 0.5, false, &run, &pairs, &err) != ESP_OK) assert_true(err.message[0] != '\0');
    if (esp_clusters_find(index, 0.5, false, &run, &clusters, &err) != ESP_OK) assert_true(err.message[0] != '\0');
    if (esp_index_add(index, queries, &run, &more, &err) != ESP_OK) assert_true(err.message[0] != '\0');
    esp_pairs_free(pairs);
    esp_clusters_free(clusters);
    esp_index_free(more);
    esp_index_free(index);
}

static void hostile(void **state)
{
    (void)state;
    ref_random random = {9};
    esp_dataset *data = random_collection(&random, 10, 12, false), *queries = random_collection(&random, 3, 12, true);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        esp_index *index = index_of(kernels[k], data, "id", 1);
        const file_bytes b = file_of(index);
        unsigned char *copy = malloc(b.size);
        assert_non_null(copy);
        memcpy(copy, b.bytes, b.size);
        static const unsigned char values[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
        for (size_t i = 8; i < b.size; i += SANITIZED ? 7 : 1) {
            if (i >= 24 && i < 40) continue;
            b.bytes[i] = values[ref_random_below(&random, 5)];
            if (ref_random_below(&random, 3) == 0) b.bytes[i] ^= copy[i];
            use(b, queries);
            memcpy(b.bytes, copy, b.size);
        }
        /* Whole numbers. */
        for (size_t i = 64; i + 8 <= b.size; i += SANITIZED ? 28 : 4) {
            memset(b.bytes + i, ref_random_below(&random, 2) == 0 ? 0xFF : 0x00, i % 8 == 0 ? 8 : 4);
            use(b, queries);
            memcpy(b.bytes, copy, b.size);
        }
        free(copy);
        esp_text_free((char *)b.bytes);
        esp_index_free(index);
    }
    esp_dataset_free(queries);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(added),
        cmocka_unit_test(damaged),
        cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
