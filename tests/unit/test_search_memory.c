/* Search when memory runs out: every single allocation of the public functions fails once. */
#include "search_cases.h"

#include "files.h"

static esp_dataset *collection, *queries;

static const char *const kernels[] = {"norm(sst(tree, lambda=0.4))", "st(tree, bow=0.5)",
                                      "norm(linear(words)) + rbf(x)"};

typedef struct memory_case {
    const char *kernel;
    esp_run run;
} memory_case;

static esp_status make(const memory_case *c, esp_index **out, esp_error *err)
{
    esp_kernel *kernel = NULL;
    *out = NULL;
    esp_status status = esp_kernel_parse(c->kernel, &kernel, err);
    if (status == ESP_OK) {
        *out = (esp_index *)(uintptr_t)1;
        status = esp_index_new(kernel, collection, "id", &c->run, out, err);
        assert_true((status == ESP_OK) == (*out != NULL));
    }
    esp_kernel_free(kernel);
    return status;
}

static esp_index *present;

static esp_status make_and_add(const void *argument, esp_error *err)
{
    const memory_case *c = argument;
    esp_index *index = NULL, *more = (esp_index *)(uintptr_t)1;
    esp_status status = make(c, &index, err);
    if (status == ESP_OK) {
        status = esp_index_add(index, queries, &c->run, &more, err);
        assert_true((status == ESP_OK) == (more != NULL));
        esp_index_free(more);
    }
    esp_index_free(index);
    return status;
}

static esp_status write_and_read(const void *argument, esp_error *err)
{
    const memory_case *c = argument;
    const char *path = in_directory("index");
    esp_index *again = NULL;
    char *bytes = NULL, *text = NULL;
    size_t size;
    esp_status status = esp_index_write(present, path, err);
    if (status == ESP_OK) status = esp_index_read(path, &c->run, &again, err);
    (void)unlink(path);
    esp_index_free(again);
    again = NULL;
    if (status == ESP_OK) status = esp_index_bytes(present, &bytes, &size, err);
    if (status == ESP_OK) status = esp_index_parse(bytes, size, "bytes", &c->run, &again, err);
    if (status == ESP_OK) status = esp_index_summary(again, &text, err);
    esp_text_free(bytes);
    esp_text_free(text);
    esp_index_free(again);
    return status;
}

static esp_status search(const void *argument, esp_error *err)
{
    const memory_case *c = argument;
    esp_hits *hits = (esp_hits *)(uintptr_t)1;
    esp_qrels *qrels = NULL;
    esp_search_metrics metrics;
    const esp_search_options options = {.top = 2, .others = true};
    esp_status status = esp_search(present, queries, &options, &c->run, &hits, err);
    assert_true((status == ESP_OK) == (hits != NULL));
    if (status == ESP_OK) status = esp_qrels_read(in_directory("qrels"), &qrels, err);
    if (status == ESP_OK) status = esp_hits_measure(hits, present, qrels, &metrics, err);
    esp_qrels_free(qrels);
    esp_hits_free(hits);
    return status;
}

static esp_status pair_up(const void *argument, esp_error *err)
{
    const memory_case *c = argument;
    esp_pairs *pairs = (esp_pairs *)(uintptr_t)1;
    esp_clusters *clusters = NULL;
    esp_status status = esp_pairs_find(present, 0.3, false, &c->run, &pairs, err);
    assert_true((status == ESP_OK) == (pairs != NULL));
    if (status == ESP_OK) status = esp_clusters_find(present, 0.3, false, &c->run, &clusters, err);
    esp_pairs_free(pairs);
    esp_clusters_free(clusters);
    return status;
}

static void without_memory(void **state)
{
    (void)state;
    static const fallible calls[] = {make_and_add, write_and_read, search, pair_up};
    static const char qrels[] = "query 0 x 1\nquery 0 example 1\n";
    spill(in_directory("qrels"), qrels, sizeof qrels - 1);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int threads = 1; threads <= 2; threads++) {
            const memory_case c = {kernels[k], {.threads = threads}};
            esp_error err = {0};
            print_message("%s, threads: %d\n", c.kernel, threads);
            assert_ok(make(&c, &present, &err), c.kernel, &err);
            for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) out_of_memory_everywhere(calls[i], &c);
            esp_index_free(present);
        }
    unlink(in_directory("qrels"));
}

static int prepare(void **state)
{
    ref_random random = {3};
    collection = random_collection(&random, 9, 12, false);
    queries = random_collection(&random, 3, 12, true);
    return make_directory(state);
}

static int clear(void **state)
{
    esp_dataset_free(collection);
    esp_dataset_free(queries);
    return remove_directory(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, prepare, clear);
}
