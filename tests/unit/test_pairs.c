/* Pairs and clusters against the whole Gram matrix, and measures against values worked out by hand. */
#include "search_cases.h"

#include "files.h"

enum { EXAMPLES = 60 };

static const char *const kernels[] = {
    "norm(sst(tree, lambda=0.4))",
    "norm(st(tree, bow=0.5))",
    "sst(tree, lambda=0.2)",
    "norm(ptk(tree))",
    "norm(seq(words, n=2))",
    "norm(linear(words))",
    "linear(x)",
    "rbf(x)",
    "norm(sst(tree)) + norm(linear(words))",
    "0.5*norm(sst(tree, lambda=0.05))",
};

typedef struct known_pair {
    size_t first, second;
    double value;
} known_pair;

static int best_first(const void *x, const void *y)
{
    const known_pair *a = x, *b = y;
    const double p = few_digits(a->value), q = few_digits(b->value);
    if (p != q) return p > q ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->second < b->second ? -1 : 1;
}

static size_t expected_pairs(const double *gram, double above, known_pair *out)
{
    size_t count = 0;
    for (size_t i = 0; i < EXAMPLES; i++)
        for (size_t j = i + 1; j < EXAMPLES; j++)
            if (few_digits(gram[i * EXAMPLES + j]) >= above) out[count++] = (known_pair){i, j, gram[i * EXAMPLES + j]};
    qsort(out, count, sizeof *out, best_first);
    return count;
}

static void check_pairs(const esp_index *index, const double *gram, double above, bool no_bounds, int threads,
                        const char *what)
{
    static known_pair expected[EXAMPLES * EXAMPLES];
    const size_t wanted = expected_pairs(gram, above, expected);
    esp_pairs *pairs = NULL;
    esp_error err = {0};
    size_t count;
    assert_ok(esp_pairs_find(index, above, no_bounds, &(esp_run){.threads = threads}, &pairs, &err), what, &err);
    const esp_pair *pair = esp_pairs_list(pairs, &count);
    if (count != wanted) fail_msg("%s, %g: %zu pairs instead of %zu", what, above, count, wanted);
    for (size_t i = 0; i < count; i++) {
        if (pair[i].first != expected[i].first || pair[i].second != expected[i].second)
            fail_msg("%s, %g: pair %zu is %zu, %zu (%.17g) instead of %zu, %zu (%.17g)", what, above, i, pair[i].first,
                     pair[i].second, pair[i].similarity, expected[i].first, expected[i].second, expected[i].value);
        assert_near_at(pair[i].similarity, expected[i].value, 1e-10, what, i);
    }
    uint64_t skipped;
    const uint64_t all = esp_pairs_computed(pairs, &skipped) + skipped;
    assert_int_equal(all, EXAMPLES * (EXAMPLES - 1) / 2);
    esp_pairs_free(pairs);
}

/* Components by spreading labels until nothing changes. */
static void components(const double *gram, double above, size_t *label)
{
    for (size_t i = 0; i < EXAMPLES; i++) label[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < EXAMPLES; i++)
            for (size_t j = 0; j < EXAMPLES; j++)
                if (i != j && few_digits(gram[i * EXAMPLES + j]) >= above && label[j] > label[i]) {
                    label[j] = label[i];
                    changed = true;
                }
    }
}

static void check_clusters(const esp_index *index, const double *gram, double above, int threads, const char *what)
{
    size_t label[EXAMPLES], size[EXAMPLES] = {0}, met = 0, last = SIZE_MAX, last_first = 0;
    esp_clusters *clusters = NULL;
    esp_error err = {0};
    components(gram, above, label);
    for (size_t i = 0; i < EXAMPLES; i++) size[label[i]]++;
    assert_ok(esp_clusters_find(index, above, false, &(esp_run){.threads = threads}, &clusters, &err), what, &err);
    for (size_t c = 0; c < esp_clusters_count(clusters); c++) {
        size_t count, first = SIZE_MAX, before = 0;
        const esp_hit *member = esp_clusters_of(clusters, c, &count);
        const size_t name = label[member[0].example];
        double best = -INFINITY, own = 0.0;
        assert_int_equal(count, size[name]);
        assert_true(count > 1 && count <= last);
        for (size_t i = 0; i < count; i++) {
            const size_t e = member[i].example;
            double sum = 0.0;
            assert_int_equal(label[e], name);
            if (i > 1) assert_true(e > before);
            before = e;
            if (e < first) first = e;
            for (size_t j = 0; j < EXAMPLES; j++)
                if (j != e && few_digits(gram[e * EXAMPLES + j]) >= above) sum += gram[e * EXAMPLES + j];
            if (i == 0) own = sum;
            if (sum > best) best = sum;
            assert_near_at(member[i].similarity, gram[member[0].example * EXAMPLES + e], 1e-10, what, i);
        }
        assert_true(own >= best * (1.0 - 1e-9) - 1e-9);
        if (count == last) assert_true(first > last_first);
        last = count;
        last_first = first;
        met += count;
    }
    for (size_t i = 0; i < EXAMPLES; i++) met -= size[label[i]] > 1;
    assert_int_equal(met, 0);
    esp_clusters_free(clusters);
}

static void every_family_threads(void **state)
{
    (void)state;
    static const double thresholds[] = {0.9, 0.5, 0.25, 0.01, 0.0, -0.3};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (uint64_t seed = 0; seed < REPEATS(4); seed++) {
            ref_random random = {seed * 100 + k};
            esp_dataset *data = random_collection(&random, EXAMPLES, 24, false);
            esp_index *index = index_of(kernels[k], data, NULL, 1);
            double *gram = gram_of(kernels[k], data, NULL, 1);
            for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
                check_pairs(index, gram, thresholds[t], false, 1, kernels[k]);
                check_pairs(index, gram, thresholds[t], false, 2, kernels[k]);
                check_pairs(index, gram, thresholds[t], true, 2, kernels[k]);
                check_clusters(index, gram, thresholds[t], 1 + (int)(seed % 2), kernels[k]);
            }
            free(gram);
            esp_index_free(index);
            esp_dataset_free(data);
        }
}

static void too_many_pairs(void **state)
{
    (void)state;
    ref_random random = {1};
    esp_dataset *data = random_collection(&random, EXAMPLES, 10, false);
    static const char *const some[] = {"norm(sst(tree))", "norm(ptk(tree))"};
    for (size_t k = 0; k < 2; k++) {
        esp_index *index = index_of(some[k], data, NULL, 1);
        esp_pairs *pairs = (esp_pairs *)(uintptr_t)1;
        esp_error err = {0};
        const esp_run run = {.memory = 100};
        assert_int_equal(esp_pairs_find(index, -1.0, false, &run, &pairs, &err), ESP_ERR_MEMORY);
        assert_null(pairs);
        assert_non_null(strstr(err.message, "pairs"));
        assert_int_equal(esp_pairs_find(index, NAN, false, NULL, &pairs, &err), ESP_ERR_PARAM);
        esp_index_free(index);
    }
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------- measures */

static esp_qrels *qrels_of(const char *text, esp_status expected, const char *clause)
{
    const char *path = in_directory("qrels");
    esp_qrels *qrels = (esp_qrels *)(uintptr_t)1;
    esp_error err = {0};
    spill(path, text, strlen(text));
    assert_int_equal(esp_qrels_read(path, &qrels, &err), expected);
    unlink(path);
    if (expected == ESP_OK) return qrels;
    assert_null(qrels);
    if (strstr(err.message, clause) == NULL) fail_msg("%s", err.message);
    return NULL;
}

/* Query a finds itself, b, c, d, e in this order, of which b (relevance 1), d (2) and one that is not there (1) are
 * relevant; query e finds f first, which alone is relevant; c has no judgement above 0. */
static void measures_by_hand(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"id\": \"a\", \"x\": [5, 0]}\n{\"id\": \"b\", \"x\": [4, 0]}\n"
                                   "{\"id\": \"c\", \"x\": [3, 0]}\n{\"id\": \"d\", \"x\": [2, 0]}\n"
                                   "{\"id\": \"e\", \"x\": [1, 1]}\n{\"id\": \"f\", \"x\": [1, 6]}\n");
    esp_dataset *queries = dataset_of("{\"id\": \"a\", \"x\": [1, 0]}\n{\"id\": \"c\", \"x\": [1, 0]}\n"
                                      "{\"id\": \"e\", \"x\": [0, 1]}\n");
    esp_index *index = index_of("linear(x)", data, "id", 1);
    esp_qrels *qrels = qrels_of(
        "a 0 b 1\na 0 d 2\n\na\t0\tgone\t1\r\nc 0 f 0\na 0 a 3\ne 0 f 1\na 0 c -1\nz 0 a 1\na 0 b 0\n", ESP_OK, NULL);
    esp_hits *hits = NULL;
    esp_search_metrics m;
    esp_error err = {0};
    assert_ok(esp_search(index, queries, NULL, NULL, &hits, &err), "esp_search", &err);
    assert_ok(esp_hits_measure(hits, index, qrels, &m, &err), "esp_hits_measure", &err);
    assert_int_equal(m.queries, 2);
    assert_int_equal(m.unjudged, 1);
    assert_int_equal(m.unknown_queries, 1);
    assert_int_equal(m.unknown_examples, 1);
    assert_close(m.mrr, 1.0, 1e-14, "MRR");
    assert_close(m.map, ((1.0 + 2.0 / 3.0) / 3.0 + 1.0) / 2.0, 1e-14, "MAP");
    assert_close(m.precision_1, 1.0, 1e-14, "P@1");
    assert_close(m.precision_5, (2.0 / 5.0 + 1.0 / 5.0) / 2.0, 1e-14, "P@5");
    assert_close(m.precision_10, (2.0 / 10.0 + 1.0 / 10.0) / 2.0, 1e-14, "P@10");
    const double dcg = 1.0 + 2.0 / 2.0, ideal = 2.0 + 1.0 / log2(3.0) + 1.0 / 2.0;
    assert_close(m.ndcg, (dcg / ideal + 1.0) / 2.0, 1e-14, "nDCG");
    assert_close(m.ndcg_10, (dcg / ideal + 1.0) / 2.0, 1e-14, "nDCG@10");
    esp_hits_free(hits);
    /* Of a list of one, which is the query itself, nothing is left. */
    assert_ok(esp_search(index, queries, &(esp_search_options){.top = 1}, NULL, &hits, &err), "esp_search", &err);
    assert_ok(esp_hits_measure(hits, index, qrels, &m, &err), "esp_hits_measure", &err);
    assert_close(m.mrr, 0.5, 1e-14, "MRR of one");
    esp_hits_free(hits);
    esp_qrels_free(qrels);
    esp_index_free(index);
    esp_dataset_free(queries);
    esp_dataset_free(data);
}

static void bad_judgements(void **state)
{
    (void)state;
    (void)qrels_of("", ESP_ERR_PARSE, "there is no judgement");
    (void)qrels_of("a 0 b 1\na 0 b\n", ESP_ERR_PARSE, "qrels:2:1: a judgement is four fields");
    (void)qrels_of("a 0 b 1 x\n", ESP_ERR_PARSE, "a judgement is four fields");
    (void)qrels_of("a 0 b much\n", ESP_ERR_PARSE, "the relevance is a number, not 'much'");
    esp_qrels *qrels = NULL;
    esp_error err = {0};
    assert_int_equal(esp_qrels_read(in_directory("nothing"), &qrels, &err), ESP_ERR_IO);
    esp_dataset *data = dataset_of("{\"x\": {\"a\": 1}}\n");
    esp_index *index = index_of("linear(x)", data, NULL, 1);
    esp_hits *hits = NULL;
    esp_search_metrics m;
    qrels = qrels_of("a 0 b 1\n", ESP_OK, NULL);
    assert_ok(esp_search(index, data, NULL, NULL, &hits, &err), "esp_search", &err);
    assert_int_equal(esp_hits_measure(hits, index, qrels, &m, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "judgements need names"));
    esp_hits_free(hits);
    esp_qrels_free(qrels);
    esp_index_free(index);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_threads),
        cmocka_unit_test(too_many_pairs),
        cmocka_unit_test(measures_by_hand),
        cmocka_unit_test(bad_judgements),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
