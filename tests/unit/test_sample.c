/* Grammar files and the trees drawn from them. */
#include "files.h"

#define QUESTIONS "examples/questions.grammar"

static char *text_of(const esp_dataset *data, size_t column, size_t example)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_text(data, column, example, &text, &err), "esp_dataset_text", &err);
    return text;
}

static void assert_tree(const char *grammar, const char *expected)
{
    esp_dataset *data = sample_of(grammar, 1, 1);
    char *tree = text_of(data, 0, 0);
    assert_string_equal(tree, expected);
    esp_text_free(tree);
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------------- form */

static void test_form_of_the_file(void **state)
{
    (void)state;
    assert_tree("class X -> S\nS -> \"a\"\n", "(S a)");
    assert_tree("class X 2.5 -> S # weight\n\n  # comment\nS->NP VP\nNP ->\"a\"|\"a\" 3\r\nVP -> \"b\" NP .5",
                "(S (NP a) (VP b (NP a)))");
    assert_tree("S.top -> NP.one NP.one\nclass X -> S.top\nNP.one -> \"a\"", "(S (NP a) (NP a))");
    assert_tree("class X -> S\nS -> . ..x -LRB-.y\n. -> \"?\"\n..x -> \"!\"\n-LRB-.y -> \"-LRB-\"",
                "(S (. ?) (. !) (-LRB- -LRB-))");
    assert_tree("class X -> S\nS -> (NP (DT.a \"the\") NN) (VP \"runs\")\nNN -> \"dog\"",
                "(S (NP (DT the) (NN dog)) (VP runs))");
    assert_tree("class X -> S\nS -> _two \"x\" _two\n_two -> _one \"b\"\n_one -> (A \"a\")", "(S (A a) b x (A a) b)");
    assert_tree("class X -> S\nS -> \"a\\\"b\" \"c\\\\d\"", "(S a\"b c\\d)");
    assert_tree("class X -> S\nS -> A\n  | A 2\n\n  | A 0.5\nA -> \"a\"", "(S (A a))");
}

static void test_columns(void **state)
{
    (void)state;
    esp_dataset *data = sample_of("class -1 -> S\nclass +1 -> S\nS -> \"a\" (B \"b|c\" \"d\")", 20, 3);
    assert_int_equal(esp_dataset_count(data), 20);
    assert_int_equal(esp_dataset_columns(data), 2);
    assert_string_equal(esp_dataset_column_name(data, 0), "tree");
    assert_string_equal(esp_dataset_column_name(data, 1), "words");
    assert_int_equal(esp_dataset_column_type(data, 0), ESP_COLUMN_TREE);
    assert_int_equal(esp_dataset_column_type(data, 1), ESP_COLUMN_SEQUENCE);
    assert_string_equal(esp_dataset_target_name(data), "y");
    assert_true(esp_dataset_target_is_number(data));
    esp_column_summary summary;
    assert_int_equal(esp_dataset_summarize(data, 1, &summary, NULL), ESP_OK);
    assert_int_equal(summary.items, 60); /* a word is one token with one factor, whatever it contains */
    assert_int_equal(summary.distinct, 3);
    esp_dataset_free(data);
}

/* -------------------------------------------------------------------- drawing */

static void append_leaves(const ref_tree *tree, char *out)
{
    for (size_t i = 0; i < tree->children; i++) append_leaves(tree->child[i], out);
    if (tree->children == 0) strcat(strcat(out, *out == '\0' ? "" : " "), tree->label);
}

static void test_questions(void **state)
{
    (void)state;
    static const char *const classes[] = {"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"};
    enum { COUNT = 3000 };
    esp_dataset *data = NULL, *again = NULL, *differing = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_sample(QUESTIONS, COUNT, 1, NULL, &data, &err), QUESTIONS, &err);
    assert_ok(esp_dataset_sample(QUESTIONS, COUNT, 1, NULL, &again, &err), QUESTIONS, &err);
    assert_ok(esp_dataset_sample(QUESTIONS, COUNT, 2, NULL, &differing, &err), QUESTIONS, &err);
    size_t seen[6] = {0}, different = 0;
    for (size_t i = 0; i < COUNT; i++) {
        char *brackets = text_of(data, 0, i), *words = text_of(data, 1, i), *same = text_of(again, 0, i);
        char *another = text_of(differing, 0, i), leaves[8000] = "";
        assert_string_equal(brackets, same);
        different += strcmp(brackets, another) != 0;
        ref_tree *tree = ref_tree_parse(brackets);
        assert_string_equal(tree->label, "ROOT");
        append_leaves(tree, leaves);
        assert_string_equal(words, leaves);
        assert_null(strchr(brackets, '_'));
        size_t c = 0;
        while (c < 6 && strcmp(classes[c], esp_dataset_target(data, i)) != 0) c++;
        assert_true(c < 6);
        seen[c]++;
        ref_tree_free(tree);
        esp_text_free(brackets);
        esp_text_free(words);
        esp_text_free(same);
        esp_text_free(another);
    }
    assert_true(different > COUNT * 9 / 10);
    for (size_t c = 0; c < 6; c++) { /* weights 2 4 4 4 4 4; five standard deviations */
        const double p = (c == 0 ? 2.0 : 4.0) / 22.0, expected = COUNT * p;
        assert_true(fabs((double)seen[c] - expected) < 5.0 * sqrt(expected * (1.0 - p)));
    }
    esp_dataset_free(data);
    esp_dataset_free(again);
    esp_dataset_free(differing);
}

static void test_proportions(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    esp_dataset *data = sample_of("class A 3 -> S\nclass B 0.5 -> S\nclass C -> T\n"
                                  "S -> \"one\" 0.1 | \"two\" 0.6 | \"three\" 0.3\nT -> \"one\"\nS -> \"four\" 1",
                                  COUNT, 7);
    static const char *const words[] = {"one", "two", "three", "four"};
    static const double share[] = {0.05, 0.3, 0.15, 0.5};
    size_t a = 0, b = 0, word[4] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        const char class = *esp_dataset_target(data, i);
        char *text = text_of(data, 1, i);
        a += class == 'A';
        b += class == 'B';
        for (size_t w = 0; w < 4 && class != 'C'; w++) word[w] += strcmp(words[w], text) == 0;
        esp_text_free(text);
    }
    assert_true(fabs((double)a / COUNT - 3.0 / 4.5) < 0.02);
    assert_true(fabs((double)b / COUNT - 0.5 / 4.5) < 0.02);
    for (size_t w = 0; w < 4; w++) assert_true(fabs((double)word[w] / (double)(a + b) - share[w]) < 0.02);
    assert_false(esp_dataset_target_is_number(data));
    esp_dataset_free(data);
}

static void test_deep_tree(void **state)
{
    (void)state;
    /* 0.9999 per level: some of the chains are thousands of levels deep, and none needs a stack. */
    esp_dataset *data = sample_of("class X -> A\nA -> A 0.9999 | \"a\" 0.0001", 5, 2);
    esp_column_summary summary;
    assert_int_equal(esp_dataset_summarize(data, 0, &summary, NULL), ESP_OK);
    assert_true(summary.deepest > 10000);
    esp_dataset_free(data);
}

/* --------------------------------------------------------------------- errors */

static const struct {
    const char *grammar;
    size_t line, column;
    const char *says;
} wrong[] = {
    {"", 1, 1, "no class"},
    {"# nothing\nS -> \"a\"\n", 3, 1, "no class"},
    {"class X -> S\nS -> NP\n\nNPP -> \"a\"\n", 2, 6, "symbol 'NP' has no rule; did you mean 'NPP'?"},
    {"class X -> S\nS -> cat\n", 2, 6, "quote it"},
    {"class X -> Start\nS -> \"a\"\n", 1, 12, "'Start' has no rule"},
    {"class X -> S\nS -> \"a\" | T\nT -> T \"b\" | U\nU -> (V T)\n", 3, 1, "'T' can never come to an end"},
    {"class X -> S\nS -> \"a\" 0\n", 2, 10, "'0' is not allowed: weights are greater than 0"},
    {"class X -> S\nS -> \"a\" -2\n", 2, 10, "'-2' is not allowed"},
    {"class X 0 -> S\nS -> \"a\"\n", 1, 9, "'0' is not allowed"},
    {"class X -> S\nS -> \"a\" 2x\n", 2, 10, "'2x' is not a number"},
    {"class X -> S\nS -> \"a\" 1e999\n", 2, 10, "'1e999' is not a number"},
    {"class X -> S\nS -> \"a\" 1e308 | \"b\" 1e308\n", 2, 18, "add up"},
    {"class X 1e308 -> S\nclass Y 1e308 -> S\nS -> \"a\"\n", 4, 1, "add up"},
    {"class X -> S\nclass X -> S\nS -> \"a\"\n", 2, 7, "class 'X' is given twice"},
    {"class -> S\nS -> \"a\"\n", 1, 7, "name of a class instead of '->'"},
    {"class\n", 1, 6, "name of a class instead of the end of the line"},
    {"class X S\n", 1, 9, "expected '->' instead of 'S'"},
    {"class X -> \"S\"\n", 1, 12, "symbol that class 'X' starts from"},
    {"class X -> S T\n", 1, 14, "one start symbol"},
    {"class X -> _S\n", 1, 12, "make no node"},
    {"S \"a\"\n", 1, 3, "expected '->' instead of 'a'"},
    {"\"a\" -> S\n", 1, 1, "expected a symbol or 'class'"},
    {"3 -> S\n", 1, 1, "expected a symbol or 'class'"},
    {"| \"a\"\n", 1, 1, "expected a symbol or 'class'"},
    {"class X -> S\n| \"a\"\n", 2, 1, "expected a symbol or 'class'"},
    {"S ->\n", 1, 5, "expected a symbol or a \"word\" instead of the end of the line"},
    {"S -> \"a\" |\n", 1, 11, "instead of the end of the line"},
    {"S -> | \"a\"\n", 1, 6, "instead of '|'"},
    {"S -> 3\n", 1, 6, "instead of '3'"},
    {"S -> \"a\" 3 \"b\"\n", 1, 12, "expected '|' or the end of the line instead of 'b'"},
    {"S -> \"a\" -> \"b\"\n", 1, 10, "instead of '->'"},
    {"S -> \"a\n", 1, 6, "not closed on this line"},
    {"S -> \"\"\n", 1, 6, "cannot be empty"},
    {"S -> \"a b\"\n", 1, 6, "cannot hold a blank"},
    {"S -> (A \"a\"\n", 1, 6, "bracket that opens here is not closed"},
    {"S -> \"a\")\n", 1, 9, "never opened"},
    {"S -> ()\n", 1, 7, "label of the bracket instead of ')'"},
    {"S -> (\"a\")\n", 1, 7, "label of the bracket"},
    {"S -> (_a \"a\")\n", 1, 7, "label of the bracket"},
    {"S -> (A)\n", 1, 8, "instead of ')'"},
    {"class X -> S\nS -> \"x\" S S 3 | \"a\"\n", 2, 1, "class 'X' grew beyond 100000 nodes because symbol 'S'"},
    {"class X -> S\nB -> \"b\"\nS -> B B B B A\nA -> S B 9 | B\n", 3, 1, ""},
};

static void test_wrong_grammars(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[PATH_SIZE], place[PATH_SIZE + 50];
        esp_dataset *data = (esp_dataset *)1;
        esp_error err = {0};
        temporary_file(wrong[i].grammar, path);
        /* Many trees, so that the one that grows too large is among them. */
        const esp_status status = esp_dataset_sample(path, 100000, 1, NULL, &data, &err);
        snprintf(place, sizeof place, "%s:%zu:%zu: ", path, wrong[i].line, wrong[i].column);
        unlink(path);
        if (*wrong[i].says == '\0') { /* all right, for all its loops */
            assert_ok(status, wrong[i].grammar, &err);
            esp_dataset_free(data);
            continue;
        }
        if (status != ESP_ERR_PARSE || err.line != wrong[i].line || err.column != wrong[i].column ||
            strncmp(err.message, place, strlen(place)) != 0 || strstr(err.message, wrong[i].says) == NULL)
            fail_msg("%s gives status %d: %s", wrong[i].grammar, (int)status, err.message);
        assert_null(data);
    }
}

/* Written as they are drawn, in blocks: the bytes of the dataset, whatever their number. */
static void test_stream(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 4095, 4096, 4097, 9000};
    char held[PATH_SIZE], streamed[PATH_SIZE];
    temporary_file("", held);
    temporary_file("", streamed);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        esp_dataset *data = NULL;
        esp_error err = {0};
        assert_ok(esp_dataset_sample(QUESTIONS, counts[i], 3, NULL, &data, &err), QUESTIONS, &err);
        assert_ok(esp_dataset_write(data, held, ESP_FORMAT_JSONL, &err), "held", &err);
        assert_ok(esp_sample_write(QUESTIONS, counts[i], 3, NULL, streamed, ESP_FORMAT_JSONL, &err), "streamed", &err);
        FILE *a = fopen(held, "rb"), *b = fopen(streamed, "rb");
        assert_true(a != NULL && b != NULL);
        int x, y;
        size_t lines = 0;
        do {
            x = getc(a);
            y = getc(b);
            assert_int_equal(x, y);
            lines += x == '\n';
        } while (x != EOF);
        assert_int_equal(lines, counts[i]);
        fclose(a);
        fclose(b);
        esp_dataset_free(data);
    }
    unlink(held);
    unlink(streamed);
}

static int stop_at_half(void *user, const char *stage, double fraction)
{
    if (strcmp(stage, "sampling") == 0) ++*(int *)user;
    return fraction > 0.5;
}

static void test_other_failures(void **state)
{
    (void)state;
    esp_dataset *data = (esp_dataset *)1;
    esp_error err = {0};
    assert_int_equal(esp_dataset_sample("no/such.grammar", 1, 1, NULL, &data, &err), ESP_ERR_IO);
    assert_null(data);
    assert_non_null(strstr(err.message, "no/such.grammar"));
    assert_int_equal(esp_dataset_sample("examples", 1, 1, NULL, &data, &err), ESP_ERR_IO);
    assert_int_equal(esp_dataset_sample(QUESTIONS, 0, 1, NULL, &data, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_dataset_sample("no/such.grammar", 1, 1, NULL, &data, NULL), ESP_ERR_IO);
    int calls = 0;
    const esp_run run = {.progress = stop_at_half, .user = &calls};
    assert_int_equal(esp_dataset_sample(QUESTIONS, 5000, 1, &run, &data, &err), ESP_ERR_CANCELLED);
    assert_null(data);
    assert_true(calls > 3);
    const char *const path = "/tmp/espalier-test-never";
    assert_int_equal(esp_sample_write(QUESTIONS, 9000, 1, &run, path, ESP_FORMAT_JSONL, &err), ESP_ERR_CANCELLED);
    assert_int_equal(esp_sample_write(QUESTIONS, 0, 1, NULL, path, ESP_FORMAT_JSONL, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_sample_write(QUESTIONS, 9, 1, NULL, path, ESP_FORMAT_SRL, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_sample_write(QUESTIONS, 9, 1, NULL, path, ESP_FORMAT_PENN, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_sample_write("no/such.grammar", 9, 1, NULL, path, ESP_FORMAT_JSONL, &err), ESP_ERR_IO);
    assert_true(access(path, F_OK) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form_of_the_file), cmocka_unit_test(test_columns),
        cmocka_unit_test(test_questions),        cmocka_unit_test(test_proportions),
        cmocka_unit_test(test_deep_tree),        cmocka_unit_test(test_wrong_grammars),
        cmocka_unit_test(test_stream),           cmocka_unit_test(test_other_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
