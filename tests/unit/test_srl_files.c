/* Files of examples for semantic role labelling: both formats, choices of what is written, and what is refused. */
#include "srl_cases.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------------ formats */

/* The names of numbered features, by number - 1. */
static size_t read_features(char ***names)
{
    char line[1024];
    size_t count = 0;
    *names = NULL;
    FILE *file = fopen(in_directory("features"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        assert_int_equal(strtoul(line, NULL, 10), count + 1);
        tab[strcspn(tab, "\n")] = '\0';
        *names = realloc(*names, (count + 1) * sizeof **names);
        assert_non_null(*names);
        (*names)[count++] = strdup(tab + 1);
    }
    fclose(file);
    return count;
}

static void both_formats_say_the_same(void **state)
{
    (void)state;
    const char *in = "examples/mary.srl", *path = in_directory("out");
    esp_error err = {0};
    assert_ok(esp_srl_write(&in, 1, NULL, NULL, path, NULL, &err), "jsonl", &err);
    esp_dataset *json = read_back();
    const esp_srl_options svmtk = {.to = ESP_FORMAT_SVMTK, .features = in_directory("features")};
    assert_ok(esp_srl_write(&in, 1, &svmtk, NULL, path, NULL, &err), "svmtk", &err);
    esp_dataset *numbered = read_back();
    char **names;
    const size_t count = read_features(&names);
    assert_int_equal(esp_dataset_count(json), esp_dataset_count(numbered));
    assert_true(count > 100);
    for (size_t i = 0; i < esp_dataset_count(json); i++) {
        char *tree = text_of(json, 0, i), *named = text_of(json, 1, i), *numbers = text_of(numbered, 1, i), name[1100];
        assert_example(numbered, i, esp_dataset_target(json, i), tree);
        size_t found = 0, wanted = 0;
        for (const char *c = named; (c = strstr(c, "\": 1")) != NULL; c++) wanted++;
        for (char *c = numbers; (c = strchr(c, '"')) != NULL; c = strchr(c + 1, '"') + 1, found++) {
            const size_t number = strtoul(c + 1, NULL, 10);
            assert_true(number > 0 && number <= count);
            snprintf(name, sizeof name, "\"%s\": 1", names[number - 1]);
            if (strstr(named, name) == NULL) fail_msg("%s is not in %s", name, named);
        }
        assert_int_equal(found, wanted);
        esp_text_free(tree);
        esp_text_free(named);
        esp_text_free(numbers);
    }
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
    esp_dataset_free(json);
    esp_dataset_free(numbered);
}

/* The same bytes whether the input comes at once or three bytes at a time. */
static void pieces_of_input_do_not_matter(void **state)
{
    (void)state;
    const char *whole = "examples/mary.srl", *path = in_directory("fifo"), *out = in_directory("out");
    esp_error err = {0};
    assert_ok(esp_srl_write(&whole, 1, NULL, NULL, out, NULL, &err), "whole", &err);
    const blob expected = slurp(out), text = slurp(whole);
    assert_int_equal(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *file = fopen(path, "wb");
        for (size_t i = 0; file != NULL && i < text.size; i += 3) {
            fwrite(text.bytes + i, 1, text.size - i < 3 ? text.size - i : 3, file);
            fflush(file);
        }
        _exit(file == NULL || fclose(file) != 0);
    }
    assert_ok(esp_srl_write(&path, 1, NULL, NULL, out, NULL, &err), "pieces", &err);
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    const blob got = slurp(out);
    same_bytes(got, expected);
    free(got.bytes);
    free(text.bytes);
    free(expected.bytes);
    unlink(path);
}

/* ------------------------------------------------------------------------ choices */

static void limit_and_sample(void **state)
{
    (void)state;
    const char *in[] = {"examples/mary.srl", "examples/mary.srl", "examples/mary.srl"};
    const char *path = in_directory("out");
    esp_error err = {0};
    esp_srl_counts all, some, again;
    assert_ok(esp_srl_write(in, 3, NULL, NULL, path, &all, &err), "all", &err);
    assert_int_equal(all.sentences, 9);
    assert_int_equal(all.predicates, 15);
    assert_ok(esp_srl_write(in, 3, &(esp_srl_options){.limit = 17}, NULL, path, &some, &err), "limit", &err);
    assert_int_equal(some.examples, 17);
    const esp_srl_options half = {.sample = 0.5, .seed = 3};
    assert_ok(esp_srl_write(in, 3, &half, NULL, path, &some, &err), "sample", &err);
    assert_true(some.examples > all.examples * 2 / 5 && some.examples < all.examples * 3 / 5);
    const blob first = slurp(path);
    assert_ok(esp_srl_write(in, 3, &half, NULL, path, &again, &err), "sample", &err);
    const blob second = slurp(path);
    same_bytes(first, second);
    free(first.bytes);
    free(second.bytes);
}

static void documents_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        size_t sentences, unknown;
    } table[] = {{"mary\n", 2, 0},
                 {"rules\nnowhere\n", 1, 1},
                 {"school/rules.conllu\r\n\nmary", 3, 0},
                 {"ary\nmary\n", 2, 1},
                 {"school/rules\n mary \n", 3, 0}};
    const char *in = "examples/mary.srl", *out = in_directory("out");
    esp_srl_counts counts;
    esp_error err = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const esp_srl_options options = {.documents = write_file("docs", table[i].list)};
        assert_ok(esp_srl_write(&in, 1, &options, NULL, out, &counts, &err), table[i].list, &err);
        assert_int_equal(counts.sentences, table[i].sentences);
        assert_int_equal(counts.unknown_documents, table[i].unknown);
        assert_int_equal(counts.first_unknown[0], table[i].unknown > 0 ? '\'' : '\0');
    }
    const esp_srl_options none = {.documents = write_file("docs", "school\n")};
    assert_int_equal(esp_srl_write(&in, 1, &none, NULL, out, &counts, &err), ESP_ERR_PARSE);
    assert_non_null(
        strstr(err.message, "none of the documents listed is in the data: listed is 'school', the data have '"));
}

/* ----------------------------------------------------------------------- bad input */

#define TREE "T\td\t0\t(S (A a) (V b))\n"

static void bad_input_is_refused_or_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *srl, *message;
        size_t bad; /* with skip_bad */
    } table[] = {
        {TREE "P\t1\tb\tb.01\tARG0:0-2\n", ":2:12: the span of 'ARG0:0-2' is outside the sentence, whose tokens", 1},
        {TREE "P\t1\tb\tb.01\tARG0:1-0\n", ":2:12: the span of 'ARG0:1-0' ends before it starts", 1},
        {TREE "P\t2\tb\tb.01\tARG0:0-0\n", ":2:3: the predicate's token '2' is outside the sentence", 1},
        {TREE "P\t99999999999999999999\tb\tb.01\t\n", ":2:3: the predicate's token '99999999999999999999' is", 1},
        {TREE "P\tx\tb\tb.01\tARG0:0-0\n", ":2:3: 'x' is no token number", 1},
        {TREE "P\t1\tb\tb.01\n", ":2:11: a TAB is needed behind the frame", 1},
        {TREE "P\t1\tb\tb.01\tARG0\n", ":2:12: 'ARG0' is no argument", 1},
        {TREE "P\t1\tb\tb.01\tARG0:0\n", ":2:12: 'ARG0:0' is no argument", 1},
        {TREE "P\t1\tb\tb.01\tARG0:0-\n", ":2:12: 'ARG0:0-' is no argument", 1},
        {TREE "P\t1\tb\tb.01\tARG0:0-0x\n", ":2:12: 'ARG0:0-0x' is no argument", 1},
        {TREE "P\t1\tb\tb.01\t:0-0\n", ":2:12: ':0-0' is no argument", 1},
        {TREE "P\t1\tb\tb.01\tV:1-1 ARG9:0-0\n", ":2:18: 'ARG9:0-0' has an unknown role", 1},
        {TREE "P\t1\tb\tb.01\tARGM-tmp:0-0\n", ":2:12: 'ARGM-tmp:0-0' has an unknown role", 1},
        {TREE "P\t1\tb\tb.01\tARG0:0-0", ":2:20: the last line has no line end; the file was cut off here", 1},
        {"P\t1\tb\tb.01\tARG0:0-0\n" TREE, ":1:1: a predicate (P) needs a tree (T) above it", 1},
        {TREE "X\t1\n", ":2:1: a line starts with T (tree) or P", 1},
        {TREE "T\td\t1\t(S (A a)\nP\t7\tx\n", ":2:15: the line ends inside the tree", 1},
        {TREE "T\td\t1\t(S a) b\n", ":2:13: the tree is followed by 'b'", 1},
        {TREE "T\td\t1\t(S)\nP\t0\tb\tb.01\t\n", ":2:7: the tree is a single leaf", 1},
        {TREE "T\td\t1\n", ":2:6: a TAB is needed behind the sentence", 1},
    };
    const char *path = in_directory("out");
    unlink(path);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        esp_error err = {0};
        esp_srl_counts counts;
        assert_int_equal(try_write(table[i].srl, NULL, &counts, &err), ESP_ERR_PARSE);
        if (strstr(err.message, table[i].message) == NULL) fail_msg("%zu: %s", i, err.message);
        assert_int_equal(access(path, F_OK), -1);
        char longer[512];
        snprintf(longer, sizeof longer, "%s%s" TREE "P\t1\tb\tb.01\tARG0:0-0\n", table[i].srl,
                 i == 13 ? " ARG0:1-0\n" : "");
        assert_ok(try_write(longer, &(esp_srl_options){.skip_bad = true}, &counts, &err), longer, &err);
        assert_int_equal(counts.bad, table[i].bad);
        assert_int_equal(counts.predicates, 1);
        assert_int_equal(counts.positives, 1);
        if (i != 13) assert_non_null(strstr(counts.first_bad, table[i].message));
        unlink(path);
    }
}

static void nothing_to_read(void **state)
{
    (void)state;
    esp_error err = {0};
    static const char *const empty[] = {"", "\n\n", "# nothing\n"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(try_write(empty[i], NULL, NULL, &err), ESP_ERR_PARSE);
        assert_non_null(strstr(err.message, "no sentences"));
    }
    assert_int_equal(esp_srl_write(NULL, 0, NULL, NULL, "-", NULL, &err), ESP_ERR_PARAM);
    static const esp_srl_options wrong[] = {
        {.task = (esp_srl_task)7}, {.sample = -0.5}, {.sample = 1.5}, {.to = ESP_FORMAT_PENN}, {.features = "f"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(try_write(WORKED_SRL, &wrong[i], NULL, &err), ESP_ERR_PARAM);
}

static esp_status write_out(const void *argument, esp_error *err)
{
    const char *in = "examples/mary.srl", *out = in_directory("out");
    const esp_status status = esp_srl_write(&in, 1, argument, NULL, out, NULL, err);
    assert_int_equal(unlink(out), status == ESP_OK ? 0 : -1); /* no file appears but a whole one */
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    unlink(in_directory("out"));
    const esp_srl_options table[] = {
        {.documents = write_file("docs", "mary\nrules\n")},
        {.to = ESP_FORMAT_SVMTK, .features = in_directory("features"), .task = ESP_SRL_ROLE}};
    for (size_t i = 0; i < 2; i++) out_of_memory_everywhere(write_out, &table[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_formats_say_the_same),
        cmocka_unit_test(pieces_of_input_do_not_matter),
        cmocka_unit_test(limit_and_sample),
        cmocka_unit_test(documents_by_name),
        cmocka_unit_test(bad_input_is_refused_or_skipped),
        cmocka_unit_test(nothing_to_read),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, make_directory, tear_down);
}
