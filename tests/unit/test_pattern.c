/* Kept patterns: their features against the definition, by listing every choice of positions; the two evaluations
 * against each other; texts that read back. */
#include "cases.h"

#include "base/alloc.h"
#include "kernel/pattern/pattern.h"

/* ---------------------------------------------------------------- sequences */

enum { LONGEST = 7, FACTORS = 2 };

typedef struct sequence { /* letters; factor 1 of a token may be missing: 0 */
    char factor[LONGEST][FACTORS];
    size_t length;
} sequence;

static sequence random_sequence(ref_random *random, bool factors)
{
    sequence s = {.length = ref_random_below(random, LONGEST + 1)};
    for (size_t i = 0; i < s.length; i++) {
        s.factor[i][0] = (char)('a' + ref_random_below(random, 4));
        if (factors && ref_random_below(random, 2) == 0) s.factor[i][1] = (char)('a' + ref_random_below(random, 6));
    }
    return s;
}

static char *write_sequence(const sequence *s, char *at)
{
    for (size_t i = 0; i < s->length; i++) {
        at += sprintf(at, "%s%c", i > 0 ? " " : "", s->factor[i][0]);
        if (s->factor[i][1] != 0) at += sprintf(at, "|%c", s->factor[i][1]);
    }
    return at;
}

static esp_dataset *dataset_of_sequences(const sequence *s, size_t count)
{
    char lines[4096], *at = lines;
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"w\": \"");
        at = write_sequence(&s[i], at);
        at += sprintf(at, "\"}\n");
    }
    return dataset_of(lines);
}

/* phi_u(S), every way to choose positions and factors spelled out. `from`: the first position that may be next. */
static double phi(const sequence *s, const char *u, size_t from, double lambda, long gap)
{
    double sum = 0.0;
    if (*u == '\0') return 1.0;
    for (size_t i = from; i < s->length; i++)
        for (int f = 0; f < FACTORS; f++) {
            if (s->factor[i][f] != *u) continue;
            const long skipped = (long)i - (long)from;
            if (from > 0 && gap >= 0 && skipped > gap) continue;
            sum += (from > 0 ? pow(lambda, (double)skipped) : 1.0) * phi(s, u + 1, i + 1, lambda, gap);
        }
    return sum;
}

static const char *const patterns[] = {"a",     "b",       "e",   "a b",   "b a", "a a",
                                       "a b c", "c b a d", "b e", "a a a", "d d", "f"};
enum { PATTERNS = sizeof patterns / sizeof *patterns, EXAMPLES = 6 };

static void read_patterns(espi_trie *trie)
{
    char lines[1024], *at = lines;
    for (size_t i = 0; i < PATTERNS; i++) at += sprintf(at, "{\"w\": \"%s\"}\n", patterns[i]);
    esp_dataset *data = dataset_of(lines);
    esp_error err = {0};
    assert_ok(espi_trie_of(&data->column[0], trie, &err), "patterns", &err);
    esp_dataset_free(data);
}

static void text_of(const espi_trie *trie, size_t pattern, char out[64])
{
    espi_text text = {0};
    espi_trie_text(trie, pattern, &text);
    assert_false(text.failed);
    snprintf(out, 64, "%.*s", (int)text.size, text.bytes);
    espi_text_free(&text);
}

static void a_trie_holds_what_it_was_made_of(void **state)
{
    (void)state;
    espi_trie trie;
    read_patterns(&trie);
    assert_int_equal(trie.set.patterns, PATTERNS);
    bool seen[PATTERNS] = {false};
    for (size_t i = 0; i < trie.set.patterns; i++) {
        char text[64];
        text_of(&trie, i, text);
        size_t k = 0;
        while (k < PATTERNS && strcmp(patterns[k], text) != 0) k++;
        assert_true(k < PATTERNS && !seen[k]);
        seen[k] = true;
    }
    for (size_t v = 1; v < trie.set.nodes; v++) {
        assert_true(trie.set.parent[v] < v);
        assert_int_equal(espi_patterns_child(&trie.set, trie.set.parent[v], 0, trie.set.label[v]), v);
    }
    assert_int_equal(espi_patterns_child(&trie.set, 0, 0, 99), ESPI_NO_NODE);
    espi_trie_free(&trie);
}

/* What is dropped is gone, with the branches that led to it alone. */
static void patterns_can_be_dropped(void **state)
{
    (void)state;
    espi_trie trie;
    bool keep[PATTERNS];
    read_patterns(&trie);
    for (size_t i = 0; i < PATTERNS; i++) {
        char text[64];
        text_of(&trie, i, text);
        keep[i] = strcmp(text, "a b c") == 0 || strcmp(text, "e") == 0;
        trie.set.x[i] = (uint32_t)strlen(text);
    }
    assert_true(espi_patterns_keep(&trie.set, keep));
    assert_int_equal(trie.set.patterns, 2);
    assert_int_equal(trie.set.nodes, 5); /* the root, a, e, ab, abc */
    for (size_t i = 0; i < 2; i++) {
        char text[64];
        text_of(&trie, i, text);
        assert_string_equal(text, i == 0 ? "e" : "a b c");
        assert_int_equal(trie.set.x[i], strlen(text));
    }
    espi_trie_free(&trie);
}

static void features_are_those_of_the_definition(void **state)
{
    (void)state;
    espi_trie trie;
    read_patterns(&trie);
    ref_random random = {7};
    espi_trie_walker w = {0};
    for (int round = 0; round < 200; round++) {
        sequence s[EXAMPLES];
        for (size_t i = 0; i < EXAMPLES; i++) s[i] = random_sequence(&random, round % 2 == 1);
        esp_dataset *data = dataset_of_sequences(s, EXAMPLES);
        const espi_sequences *column = &data->column[0].sequences;
        uint32_t *map = espi_symbols_map(&column->symbols, &trie.symbols);
        const double lambda = round % 3 == 0 ? 1.0 : ref_random_between(&random, 0.1, 1.0);
        const long gap = round % 5 == 0 ? 0 : round % 5 == 1 ? 2 : -1;
        const espi_weighing weighing = {lambda, gap < 0 ? SIZE_MAX : (size_t)gap};
        espi_token_places other = {0};
        for (size_t i = 0; i < EXAMPLES; i++) {
            assert_true(espi_token_places_make(&w.places[0], column, map, i));
            assert_true(espi_trie_features(&trie, weighing, &w));
            size_t next = 0;
            for (size_t p = 0; p < PATTERNS; p++) {
                char text[64], u[LONGEST + 1];
                text_of(&trie, p, text);
                const double expected = phi(&s[i], letters(text, u), 0, lambda, gap);
                const bool listed = next < w.features && w.feature[next].pattern == p;
                assert_close(listed ? w.feature[next].value : 0.0, expected, 1e-10, text);
                next += listed;
            }
            assert_int_equal(next, w.features);
            const size_t j = ref_random_below(&random, EXAMPLES);
            double expected = 0.0, value = -1.0;
            for (size_t p = 0; p < PATTERNS; p++) {
                char u[LONGEST + 1];
                letters(patterns[p], u);
                expected += phi(&s[i], u, 0, lambda, gap) * phi(&s[j], u, 0, lambda, gap);
            }
            assert_true(espi_token_places_make(&other, column, map, j));
            assert_true(espi_trie_kernel(&trie, weighing, &w.places[0], &other, &w, &value));
            assert_close(value, expected, 1e-10, "kernel");
        }
        espi_token_places_free(&other);
        espi_free(map);
        esp_dataset_free(data);
    }
    espi_trie_walker_free(&w);
    espi_trie_free(&trie);
}

static void odd_tokens_read_back(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"w\": \"\\\\(a b\\\\|c \\\\ \"}\n{\"w\": \"| || d\\\\\\\\\"}\n{\"w\": \"a\\\\ b\"}\n";
    esp_dataset *data = dataset_of(lines), *again;
    espi_trie trie, second;
    esp_error err = {0};
    assert_ok(espi_trie_of(&data->column[0], &trie, &err), lines, &err);
    assert_int_equal(trie.set.patterns, 3);
    char text[1024] = "", *at = text;
    for (size_t i = 0; i < 3; i++) {
        espi_text out = {0}, json = {0};
        espi_trie_text(&trie, i, &out);
        for (size_t k = 0; k < out.size; k++) {
            if (out.bytes[k] == '\\' || out.bytes[k] == '"') espi_text_add(&json, "\\", 1);
            espi_text_add(&json, out.bytes + k, 1);
        }
        at += sprintf(at, "{\"w\": \"%.*s\"}\n", (int)json.size, json.bytes);
        espi_text_free(&out);
        espi_text_free(&json);
    }
    again = dataset_of(text);
    assert_ok(espi_trie_of(&again->column[0], &second, &err), text, &err);
    assert_int_equal(second.set.patterns, 3);
    for (size_t i = 0; i < 3; i++) {
        char a[64], b[64];
        text_of(&trie, i, a);
        text_of(&second, i, b);
        assert_string_equal(a, b);
    }
    espi_trie_free(&trie);
    espi_trie_free(&second);
    esp_dataset_free(data);
    esp_dataset_free(again);
}

/* -------------------------------------------------------------------- trees */

static void fragments_read_back(void **state)
{
    (void)state;
    /* Two of them are the same. */
    static const char *const given[] = {"(S (NP ...) (VP (V ate)))",
                                        "(S (NP ...) (VP ...))",
                                        "(S (NP (D the) (N ...)) (VP ...))",
                                        "(A \\... b (C ...) \\\\... ... x)",
                                        "(A \\...)",
                                        "(A \\\\\\...)",
                                        "(A \\(x\\) (B\\ c ...) d\\\\)",
                                        "(S (NP ...) (VP ...))",
                                        "(A (A (A a) (A ...)))"};
    enum { GIVEN = sizeof given / sizeof *given };
    char lines[1024], *at = lines;
    for (size_t i = 0; i < GIVEN; i++) at += sprintf(at, "%s\n", given[i]);
    const esp_read_options penn = {.format = ESP_FORMAT_PENN};
    espi_fragments set[2];
    esp_error err = {0};
    for (int round = 0; round < 2; round++) {
        esp_dataset *data;
        assert_ok(esp_dataset_parse(lines, strlen(lines), "lines", &penn, NULL, &data, &err), lines, &err);
        assert_ok(espi_fragments_of(&data->column[0], &set[round], &err), lines, &err);
        esp_dataset_free(data);
        assert_int_equal(set[round].set.patterns, GIVEN - 1);
        at = lines;
        for (size_t i = 0; i < GIVEN - 1; i++) {
            espi_text text = {0};
            espi_fragments_text(&set[round], i, &text);
            at += sprintf(at, "%.*s\n", (int)text.size, text.bytes);
            espi_text_free(&text);
        }
        for (size_t i = 0; i < GIVEN; i++) {
            char line[128];
            /* An ellipsis beside other children is a word; it comes out with the backslash that says so. */
            sprintf(line, "%s\n", i == 3 ? "(A \\... b (C ...) \\... \\... x)" : given[i]);
            if (strstr(lines, line) == NULL) fail_msg("%s is missing in\n%s", line, lines);
        }
    }
    espi_fragments_free(&set[0]);
    espi_fragments_free(&set[1]);
}

static void what_is_no_fragment_is_refused(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"t\": \"(A b)\"}\n{\"t\": \"(A ...)\"}\n");
    espi_fragments set;
    esp_error err = {0};
    assert_int_equal(espi_fragments_of(&data->column[0], &set, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "tree 2"));
    esp_dataset_free(data);
}

/* A chain of a hundred thousand nodes, matched by itself: no recursion, and the counts of a chain. */
static void deep_trees_are_no_matter(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *lines = malloc(4 * DEPTH + 64), *at = lines;
    at += sprintf(at, "{\"t\": \"");
    for (int i = 0; i < DEPTH; i++) at += sprintf(at, "(A ");
    at += sprintf(at, "a");
    for (int i = 0; i < DEPTH; i++) *at++ = ')';
    sprintf(at, "\"}\n");
    esp_dataset *data = dataset_of(lines);
    esp_dataset *few = dataset_of("{\"t\": \"(A (A (A ...)))\"}\n{\"t\": \"(A a)\"}\n");
    espi_fragments whole, set;
    esp_error err = {0};
    assert_ok(espi_fragments_of(&data->column[0], &whole, &err), "chain", &err);
    assert_int_equal(whole.set.nodes, DEPTH + 1);
    assert_ok(espi_fragments_of(&few->column[0], &set, &err), "few", &err);
    espi_matched tree = {.forest = &data->column[0].trees, .map = espi_fragments_map(&set, &data->column[0].trees)};
    espi_fragment_walker w = {0};
    assert_true(espi_vertices_make(&tree.vertices, tree.forest, tree.forest->root[0], &w));
    assert_true(espi_fragments_features(&set, 0.25, &tree, &w));
    assert_int_equal(w.features, 2);
    for (size_t i = 0; i < 2; i++) {
        espi_text text = {0};
        espi_fragments_text(&set, w.feature[i].pattern, &text);
        const bool leaf = text.size == strlen("(A a)");
        assert_close(w.feature[i].value, leaf ? 0.5 : 0.25 * (DEPTH - 2), 1e-12, "count");
        espi_text_free(&text);
    }
    espi_fragment_walker_free(&w);
    espi_vertices_free(&tree.vertices);
    espi_free((void *)(uintptr_t)tree.map);
    espi_fragments_free(&whole);
    espi_fragments_free(&set);
    esp_dataset_free(few);
    esp_dataset_free(data);
    free(lines);
}

/* -------------------------------------------------------------------- checks */

/* Every value of every array, made wrong in several ways, is found out, or the set still means something. */
static void tamper(const espi_selection *s, uint32_t *array, size_t count, const char *what)
{
    bool memory;
    for (size_t i = 0; i < count; i++) {
        const uint32_t was = array[i];
        const uint32_t wrong[] = {was + 1000, ESPI_NO_NODE - 1};
        for (size_t k = 0; k < 2; k++) {
            array[i] = wrong[k];
            if (espi_selection_check(s, &memory) == NULL) fail_msg("%s[%zu] = %u is not found", what, i, wrong[k]);
        }
        array[i] = was;
        assert_null(espi_selection_check(s, &memory));
    }
}

static void tamper_with_set(const espi_selection *s, espi_patterns *set)
{
    bool memory;
    assert_null(espi_selection_check(s, &memory));
    tamper(s, set->parent, set->nodes, "parent");
    tamper(s, set->label + 1, set->nodes - 1, "label");
    tamper(s, set->first, set->nodes + 1, "first");
    tamper(s, set->pattern, set->nodes, "pattern");
    tamper(s, set->node, set->patterns, "node");
    tamper(s, set->y, set->patterns, "y");
    if (set->skip != NULL) tamper(s, set->skip + 1, set->nodes - 1, "skip");
    set->statistic[0] = NAN;
    assert_non_null(espi_selection_check(s, &memory));
    set->statistic[0] = 0.0;
    set->patterns--;
    assert_non_null(espi_selection_check(s, &memory));
    set->patterns++;
}

static void damaged_selections_are_found_out(void **state)
{
    (void)state;
    espi_selection s = {.kind = ESPI_SELECTED_SEQUENCES};
    esp_error err = {0};
    read_patterns(&s.trie);
    tamper_with_set(&s, &s.trie.set);
    espi_trie_free(&s.trie);
    esp_dataset *data =
        dataset_of("{\"t\": \"(S (NP (D the) (N ...)) (VP ...))\"}\n{\"t\": \"(S (NP ...) (VP (V x)))\"}\n");
    s.kind = ESPI_SELECTED_TREES;
    assert_ok(espi_fragments_of(&data->column[0], &s.fragments, &err), "fragments", &err);
    tamper_with_set(&s, &s.fragments.set);
    tamper(&s, s.fragments.label, s.fragments.productions, "label of a production");
    tamper(&s, s.fragments.child_label, s.fragments.children[s.fragments.productions], "child label");
    espi_fragments_free(&s.fragments);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------- kernels */

static void without_a_selection_there_is_a_sentence(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"w\": \"a b\", \"t\": \"(A b)\"}\n");
    static const char *const expressions[] = {"fseq(w)", "norm(fsst(t)) + linear(w)"};
    for (size_t i = 0; i < 2; i++) {
        esp_kernel *kernel = kernel_of(expressions[i]);
        double value;
        esp_error err = {0};
        assert_int_equal(esp_gram(kernel, data, NULL, NULL, &value, &err), ESP_ERR_PARAM);
        assert_non_null(strstr(err.message, "no selected patterns"));
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trie_holds_what_it_was_made_of),
        cmocka_unit_test(patterns_can_be_dropped),
        cmocka_unit_test(features_are_those_of_the_definition),
        cmocka_unit_test(odd_tokens_read_back),
        cmocka_unit_test(fragments_read_back),
        cmocka_unit_test(what_is_no_fragment_is_refused),
        cmocka_unit_test(deep_trees_are_no_matter),
        cmocka_unit_test(damaged_selections_are_found_out),
        cmocka_unit_test(without_a_selection_there_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
