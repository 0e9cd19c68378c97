/* Search against sorting the whole Gram matrix, ties included: every family of kernels, with and without bounds, one
 * thread and two. */
#include "search_cases.h"

#include "kernel/tree/tree_kernel.h"
#include "search/index.h"
#include "search/search.h"
#include "search/tree_query.h"

enum { EXAMPLES = 70, QUERIES = 12, NODES = 30 };

static const char *const kernels[] = {
    "norm(sst(tree, lambda=0.4))",
    "sst(tree, lambda=0.4)",
    "sst(tree, lambda=1)",
    "0.7*norm(sst(tree, lambda=0.1, alpha=0.5, bow=0.3))",
    "norm(st(tree, lambda=0.8))",
    "st(tree, lambda=0.5, bow=1)",
    "norm(sasst(tree, lambda=0.5, lambda.NP=0.9, alpha.S=0.2, alpha.VP=0))",
    "norm(sst(tree, lambda=0.6, algorithm=ftk))",
    "norm(ptk(tree))",
    "norm(gtk(tree, grammar={NP -> S [X]; S -> [NP] VP; = S NP}))",
    "norm(seq(words, n=3, lambda=0.5))",
    "norm(linear(words))",
    "linear(x)",
    "poly(x, degree=3, gamma=0.5, coef0=1)",
    "rbf(x, gamma=0.2)",
    "norm(sst(tree)) + 0.3*norm(linear(words))",
    "norm(sst(tree))*norm(linear(words))",
    "norm(norm(sst(tree)) + rbf(x))",
    "norm(sst(tree, lambda=0.4))^2",
};

static esp_hits *hits_of(const esp_index *index, const esp_dataset *queries, const esp_search_options *options,
                         int threads)
{
    esp_hits *hits = NULL;
    esp_error err = {0};
    assert_ok(esp_search(index, queries, options, &(esp_run){.threads = threads}, &hits, &err), "esp_search", &err);
    assert_int_equal(esp_hits_queries(hits), esp_dataset_count(queries));
    return hits;
}

static void check_hits(const esp_hits *hits, const double *gram, size_t examples, size_t top, double above,
                       const char *what)
{
    for (size_t q = 0; q < esp_hits_queries(hits); q++) {
        size_t count, expected = 0;
        const esp_hit *hit = esp_hits_of(hits, q, &count);
        ranked *all = ranking(gram + q * examples, examples);
        while (expected < examples && expected < top && few_digits(all[expected].value) >= above) expected++;
        if (count != expected) fail_msg("%s, query %zu: %zu hits instead of %zu", what, q, count, expected);
        for (size_t i = 0; i < count; i++) {
            if (hit[i].example != all[i].example)
                fail_msg("%s, query %zu, rank %zu: example %zu (%.17g) instead of %zu (%.17g)", what, q, i + 1,
                         hit[i].example, hit[i].similarity, all[i].example, all[i].value);
            assert_near_at(hit[i].similarity, all[i].value, 1e-10, what, i);
        }
        free(all);
    }
}

static void same_hits(const esp_hits *a, const esp_hits *b)
{
    for (size_t q = 0; q < esp_hits_queries(a); q++) {
        size_t m, n;
        const esp_hit *x = esp_hits_of(a, q, &m), *y = esp_hits_of(b, q, &n);
        assert_int_equal(m, n);
        for (size_t i = 0; i < m; i++) {
            assert_int_equal(x[i].example, y[i].example);
            assert_true(x[i].similarity == y[i].similarity);
        }
    }
}

static void search_all_ways(const esp_index *index, const esp_dataset *queries, const double *gram, const char *what)
{
    static const size_t tops[] = {1, 2, 10, EXAMPLES + 5, 0};
    static const double thresholds[] = {-INFINITY, -0.123, 0.0, 0.23456, 0.8765, 0.9999};
    for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
        for (size_t a = 0; a < sizeof thresholds / sizeof *thresholds; a++) {
            esp_search_options options = {.top = tops[t], .threshold = a > 0, .above = thresholds[a]};
            esp_hits *hits = hits_of(index, queries, &options, 1), *two = hits_of(index, queries, &options, 2);
            options.no_bounds = true;
            esp_hits *plain = hits_of(index, queries, &options, 2);
            check_hits(hits, gram, esp_index_count(index), tops[t] > 0 ? tops[t] : SIZE_MAX, thresholds[a], what);
            same_hits(hits, two);
            same_hits(hits, plain);
            uint64_t skipped, all = esp_hits_computed(hits, &skipped) + skipped;
            assert_int_equal(all, esp_index_count(index) * esp_dataset_count(queries));
            esp_hits_free(hits);
            esp_hits_free(two);
            esp_hits_free(plain);
        }
}

static void every_family_as_sorted_threads(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (uint64_t seed = 0; seed < REPEATS(4); seed++) {
            ref_random random = {seed * 1000 + k};
            esp_dataset *data = random_collection(&random, EXAMPLES, NODES, false);
            esp_dataset *queries = random_collection(&random, QUERIES, NODES, true);
            esp_index *index = index_of(kernels[k], data, "id", 1 + seed % 2);
            double *gram = gram_of(kernels[k], queries, data, 1);
            search_all_ways(index, queries, gram, kernels[k]);
            free(gram);
            esp_index_free(index);
            esp_dataset_free(queries);
            esp_dataset_free(data);
        }
}

/* Larger collections, where some productions are common and lists stay closed. */
static void larger_collections(void **state)
{
    (void)state;
    enum { MANY = 600 };
    static const char *const some[] = {"norm(sst(tree, lambda=0.4))", "norm(sst(tree, lambda=0.05, bow=0.1))",
                                       "norm(st(tree))", "sst(tree, lambda=0.3)"};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        ref_random random = {77 + k};
        esp_dataset *data = random_collection(&random, MANY, 60, false);
        esp_dataset *queries = random_collection(&random, QUERIES, 60, true);
        esp_index *index = index_of(some[k], data, NULL, 2);
        double *gram = gram_of(some[k], queries, data, 1);
        for (double above = 0.1; above < 1.0; above += 0.2345) {
            esp_hits *hits = hits_of(index, queries, &(esp_search_options){.threshold = true, .above = above}, 1);
            check_hits(hits, gram, MANY, SIZE_MAX, above, some[k]);
            esp_hits_free(hits);
        }
        esp_hits *hits = hits_of(index, queries, &(esp_search_options){.top = 10}, 1);
        check_hits(hits, gram, MANY, 10, -INFINITY, some[k]);
        uint64_t skipped;
        const uint64_t computed = esp_hits_computed(hits, &skipped);
        print_message("%s: %llu computed, %llu skipped\n", some[k], (unsigned long long)computed,
                      (unsigned long long)skipped);
        assert_true(skipped > 0);
        esp_hits_free(hits);
        free(gram);
        esp_index_free(index);
        esp_dataset_free(queries);
        esp_dataset_free(data);
    }
}

/* The bound of every pair is at least its kernel, and not more than Cauchy-Schwarz gives for whole trees times the
 * number of groups they share. */
static void bounds_are_bounds(void **state)
{
    (void)state;
    static const char *const some[] = {"norm(sst(tree, lambda=0.4))", "norm(sst(tree, lambda=1, alpha=0.7, bow=2))",
                                       "norm(st(tree))", "norm(sasst(tree, lambda.S=0.1, alpha.NP=2))"};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        ref_random random = {k};
        esp_dataset *data = random_collection(&random, 200, 50, false);
        esp_index *index = index_of(some[k], data, NULL, 1);
        const espi_tree_index *x = &index->trees;
        double *gram = gram_of(some[k], data, NULL, 1), *lambda, *alpha, bound[200];
        size_t common = 0;
        espi_tree_query query = {0};
        esp_error err = {0};
        for (size_t g = 0; g < x->groups; g++) common += x->common[g];
        assert_true(common > 0 && common < x->groups);
        assert_ok(espi_index_decay(index, &lambda, &alpha, &err), "espi_index_decay", &err);
        const espi_decay decay = {.lambda = lambda, .alpha = alpha};
        for (size_t i = 0; i < 200; i++) {
            espi_listed_tree tree;
            double total = 0.0;
            assert_true(espi_listed_tree_get(&x->list, i, &tree) && espi_listed_tree_check(&tree, x->groups));
            assert_ok(espi_tree_query_set(&query, x, &tree, &decay, x->groups, &err), "espi_tree_query_set", &err);
            memset(bound, 0, sizeof bound);
            for (size_t b = 0; b < query.maker.blocks; b++) {
                size_t first, end;
                assert_true(espi_postings_of(x, query.maker.block[b].group, &first, &end));
                const double weight = espi_block_weight(query.maker.block[b].value, query.self);
                total += query.maker.block[b].value;
                for (size_t p = first; p < end; p++) bound[x->posting[p].tree] += weight * (double)x->posting[p].weight;
            }
            if (tree.nodes + tree.words > 0) assert_close(total, espi_wide_double(query.self), 1e-12, "sum of blocks");
            for (size_t j = 0; j < 200; j++)
                if (!(bound[j] * (1.0 + 1e-12) + 1e-12 >= gram[i * 200 + j]))
                    fail_msg("%s: bound %.17g of %zu and %zu, whose kernel is %.17g", some[k], bound[j], i, j,
                             gram[i * 200 + j]);
        }
        espi_tree_query_free(&query);
        free(gram);
        espi_free(lambda);
        espi_free(alpha);
        esp_index_free(index);
        esp_dataset_free(data);
    }
}

/* Trees whose kernel is larger than any number, deep ones, and ones with nothing in them. */
static void large_deep_and_empty_trees(void **state)
{
    (void)state;
    char *tree[8];
    tree[0] = chain("(A (b b) ", "(A x)", 1200);
    tree[1] = chain("(A (b b) ", "(A x)", 1100);
    tree[2] = chain("(A (b c) ", "(A x)", 1200);
    tree[3] = chain("(A ", "x", SANITIZED ? 2000 : 20000);
    tree[4] = strdup("(A x)");
    tree[5] = strdup("(x)");
    tree[6] = strdup("");
    tree[7] = chain("(A (b b) (b b) (c c) (d d) (e e) ", "(A x)", 600);
    esp_dataset *data = dataset_of_trees(tree, 8);
    static const char *const some[] = {"norm(sst(tree, lambda=1))", "norm(sst(tree, lambda=0.9))",
                                       "norm(sst(tree, lambda=0.05))", "norm(st(tree, lambda=0.5, bow=1))"};
    for (size_t k = 0; k < sizeof some / sizeof *some; k += SANITIZED ? 3 : 1) {
        esp_index *index = index_of(some[k], data, NULL, 2);
        double *gram = gram_of(some[k], data, NULL, 1);
        esp_hits *hits = hits_of(index, data, NULL, 1);
        check_hits(hits, gram, 8, SIZE_MAX, -INFINITY, some[k]);
        esp_hits *plain = hits_of(index, data, &(esp_search_options){.no_bounds = true}, 2);
        same_hits(hits, plain);
        esp_hits_free(plain);
        esp_hits_free(hits);
        free(gram);
        esp_index_free(index);
    }
    esp_index *index = index_of("sst(tree, lambda=1)", data, NULL, 1);
    esp_hits *hits = (esp_hits *)(uintptr_t)1;
    esp_error err = {0};
    assert_int_equal(esp_search(index, data, NULL, NULL, &hits, &err), ESP_ERR_RANGE);
    assert_null(hits);
    assert_non_null(strstr(err.message, "too large for a number"));
    esp_index_free(index);
    esp_dataset_free(data);
    for (size_t i = 0; i < 8; i++) free(tree[i]);
}

static void names_and_others(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"id\": \"a b\", \"n\": 1, \"tree\": \"(S (A a))\"}\n"
                                   "{\"id\": \"c|d\", \"n\": 2, \"tree\": \"(S (A a))\"}\n"
                                   "{\"id\": \"e\", \"n\": 3.5, \"tree\": \"(S (B b))\"}\n");
    esp_dataset *other = dataset_of("{\"name\": \"e\", \"tree\": \"(S (A a))\"}\n");
    esp_index *index = index_of("norm(sst(tree))", data, "id", 1),
              *numbered = index_of("norm(sst(tree))", data, NULL, 1),
              *by_number = index_of("norm(sst(tree))", data, "n", 1);
    assert_string_equal(esp_index_id_field(index), "id");
    assert_string_equal(esp_index_id(index, 0), "a b");
    assert_string_equal(esp_index_id(index, 1), "c|d");
    assert_string_equal(esp_index_id(by_number, 2), "3.5");
    assert_null(esp_index_id(index, 3));
    assert_null(esp_index_id(numbered, 0));
    assert_null(esp_index_id_field(numbered));
    esp_hits *hits = hits_of(index, data, &(esp_search_options){.top = 1, .others = true}, 1);
    static const size_t expected[] = {1, 0, 0};
    for (size_t q = 0; q < 3; q++) {
        size_t count;
        assert_int_equal(esp_hits_of(hits, q, &count)->example, expected[q]);
        assert_int_equal(count, 1);
    }
    assert_string_equal(esp_hits_id(hits, 1), "c|d");
    esp_hits_free(hits);
    hits = hits_of(index, other, NULL, 1); /* queries need no names */
    assert_null(esp_hits_id(hits, 0));
    esp_hits_free(hits);
    hits = hits_of(index, other, &(esp_search_options){.id = "name", .others = true}, 1);
    size_t count;
    (void)esp_hits_of(hits, 0, &count);
    assert_int_equal(count, 2); /* "e" is left out */
    esp_hits_free(hits);
    esp_error err = {0};
    assert_int_equal(esp_search(numbered, data, &(esp_search_options){.others = true}, NULL, &hits, &err),
                     ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "the examples have no names"));
    assert_int_equal(esp_search(index, other, &(esp_search_options){.others = true}, NULL, &hits, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "the queries have no names"));
    assert_int_equal(esp_search(index, other, &(esp_search_options){.id = "id"}, NULL, &hits, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "there is no field 'id'"));
    esp_index_free(index);
    esp_index_free(numbered);
    esp_index_free(by_number);
    esp_dataset_free(other);
    esp_dataset_free(data);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *lines, *id, *clause;
    } bad[] = {
        {"sst(tree)", "{\"id\": \"a\", \"tree\": \"(S a)\"}\n{\"id\": \"a\", \"tree\": \"(S b)\"}\n", "id",
         "examples 1 and 2 have one name, 'a' (field 'id')"},
        {"sst(tree)", "{\"tree\": \"(S a)\"}\n", "id", "there is no field 'id' that could name examples"},
        {"sst(tree)", "{\"tree\": \"(S a)\"}\n", "tree", "field 'tree' cannot name examples: it is a tree"},
        {"linear(x)", "{\"x\": {\"a\": 1}}\n", "x", "field 'x' cannot name examples: it is a vector"},
        {"sst(other)", "{\"tree\": \"(S a)\"}\n", NULL, "there is no column 'other'"},
        {"fsst(tree)", "{\"tree\": \"(S a)\"}\n", NULL, "fsst"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        esp_dataset *data = dataset_of(bad[i].lines);
        esp_kernel *kernel = kernel_of(bad[i].kernel);
        esp_index *index = (esp_index *)(uintptr_t)1;
        esp_error err = {0};
        assert_true(esp_index_new(kernel, data, bad[i].id, NULL, &index, &err) != ESP_OK);
        assert_null(index);
        if (strstr(err.message, bad[i].clause) == NULL) fail_msg("case %zu: %s", i, err.message);
        esp_kernel_free(kernel);
        esp_dataset_free(data);
    }
    esp_dataset *data = dataset_of("{\"tree\": \"(S a)\"}\n"), *words = dataset_of("{\"words\": \"a b\"}\n");
    esp_index *index = index_of("sst(tree)", data, NULL, 1);
    esp_hits *hits = NULL;
    esp_error err = {0};
    assert_int_equal(esp_search(index, words, NULL, NULL, &hits, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "there is no column 'tree'"));
    esp_search_options options = {.threshold = true, .above = NAN};
    assert_int_equal(esp_search(index, data, &options, NULL, &hits, &err), ESP_ERR_PARAM);
    assert_null(hits);
    esp_index_free(index);
    esp_dataset_free(data);
    esp_dataset_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_as_sorted_threads),
        cmocka_unit_test(larger_collections),
        cmocka_unit_test(bounds_are_bounds),
        cmocka_unit_test(large_deep_and_empty_trees),
        cmocka_unit_test(names_and_others),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
