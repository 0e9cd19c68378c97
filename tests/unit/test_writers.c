/* Unit tests of the writers: the text of each format, what is refused, and that what is written reads back. */
#include "base/random.h"
#include "files.h"

static esp_dataset *parse(const char *text, esp_format format)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    const esp_read_options options = {.format = format};
    if (esp_dataset_parse(text, strlen(text), "in", &options, NULL, &data, &err) != ESP_OK)
        fail_msg("%s in %s", err.message, text);
    return data;
}

/* The file as text, and no file any more; the caller frees it. */
static char *taken(const char *path)
{
    char *text = (char *)slurp(path).bytes;
    unlink(path);
    return text;
}

static char *written(const esp_dataset *data, esp_format format)
{
    esp_error err = {0};
    if (esp_dataset_write(data, in_directory("file"), format, &err) != ESP_OK) fail_msg("%s", err.message);
    return taken(in_directory("file"));
}

static void assert_written(const char *json, esp_format format, const char *wanted)
{
    esp_dataset *data = parse(json, ESP_FORMAT_JSONL);
    char *text = written(data, format);
    assert_string_equal(text, wanted);
    free(text);
    esp_dataset_free(data);
}

static void formats_look_as_they_should(void **state)
{
    (void)state;
    const char *all = "{\"w\": \"a (b\", \"y\": 1.50, \"t\": \"(S (A a\\\\ \\\"c) b)\", \"x\": {\"b\": 0.1, \"a\": "
                      "1e30}, \"d\": [1.0, -2], "
                      "\"n\": 3, \"f\": \"a|A b\"}\n";
    assert_written(all, ESP_FORMAT_JSONL,
                   "{\"y\": 1.50, \"w\": \"a (b\", \"t\": \"(S (A a\\\\ \\\"c) b)\", \"x\": {\"b\": 0.1, \"a\": "
                   "1e+30}, \"d\": [1, -2], "
                   "\"n\": 3, \"f\": \"a|A b\"}\n");
    assert_written(
        all, ESP_FORMAT_KELP,
        "1.50 |BSQ:w| (a) (\\(b) |ESQ| |BT:t| (S(A(a\\ \"c))(b)) |ET| |BV:x| b:0.1 a:1e+30 |EV| |BDV:d| 1,-2 |EDV| "
        "|BDV:n| 3 |EDV| |BS:f| a|A b |ES|\n");
    assert_written("{\"y\": \"A\", \"x\": {\"10\": 1, \"9\": 2}, \"t\": \"(a b)\", \"u\": \"(c d)\"}\n"
                   "{\"y\": \"B\", \"x\": {}, \"t\": \"(a b)\", \"u\": \"\"}",
                   ESP_FORMAT_SVMTK, "A |BT| (a b) |BT| (c d) |ET| 9:2 10:1 |EV|\nB |BT| (a b) |BT|  |ET| |EV|\n");
    assert_written("{\"y\": 1, \"x\": {}, \"t\": \"(a b)\"}", ESP_FORMAT_SVMTK, "1 |BT| (a b) |ET| |EV|\n");
    assert_written("{\"y\": 1, \"x\": {}, \"z\": {\"a\": 1}, \"t\": \"(a b)\"}", ESP_FORMAT_SVMTK,
                   "1 |BT| (a b) |ET| |BV| |BV| a:1 |EV|\n");
    assert_written("{\"y\": 1, \"x\": {\"a\": 1}}", ESP_FORMAT_SVMTK, "1 |BV| a:1 |EV|\n");
    assert_written("{\"y\": -1, \"x\": {\"10\": 1, \"9\": 2}}\n{\"y\": 2, \"x\": {}}", ESP_FORMAT_LIBSVM,
                   "-1 9:2 10:1\n2\n");
    assert_written("{\"y\": \"a\", \"x\": [5, 0]}", ESP_FORMAT_LIBSVM, "a 0:5 1:0\n");
    assert_written("{\"t\": \"(a (b c) d)\"}\n{\"t\": \"(a)\"}", ESP_FORMAT_PENN, "(a (b c) d)\n(a)\n");
}

static void json_is_escaped(void **state)
{
    (void)state;
    assert_written("{\"\\\"\": \"\\u0001\\t\\u00e9 \x7f\xff\\/\\\"\"}", ESP_FORMAT_JSONL,
                   "{\"\\\"\": \"\\u0001 \xC3\xA9 \x7f\xff/\\\"\"}\n");
    assert_written("{\"t\": \"(a\\\\\\n\\u000b \\\\\\t)\"}", ESP_FORMAT_JSONL, "{\"t\": \"(a\\\\\\n \\\\\\t)\"}\n");
    assert_written("{\"y\": \"7\"}", ESP_FORMAT_JSONL, "{\"y\": \"7\"}\n");
}

static void the_ending_names_the_format(void **state)
{
    (void)state;
    static const struct {
        const char *ending, *wanted;
    } endings[] = {{".jsonl", "{\"y\": 1, \"x\": {\"2\": 3}}\n"},
                   {".json", "{\"y\": 1, \"x\": {\"2\": 3}}\n"},
                   {".klp", "1 |BV:x| 2:3 |EV|\n"},
                   {".svmtk", "1 |BV| 2:3 |EV|\n"},
                   {".libsvm", "1 2:3\n"},
                   {".data", "{\"y\": 1, \"x\": {\"2\": 3}}\n"}};
    esp_dataset *data = parse("1 2:3", ESP_FORMAT_AUTO);
    esp_error err = {0};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char name[32];
        snprintf(name, sizeof name, "file%s", endings[i].ending);
        assert_int_equal(esp_dataset_write(data, in_directory(name), ESP_FORMAT_AUTO, &err), ESP_OK);
        char *text = taken(in_directory(name));
        assert_string_equal(text, endings[i].wanted);
        free(text);
    }
    assert_int_equal(esp_dataset_write(data, in_directory("file.jsonl.gz"), ESP_FORMAT_JSONL, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_dataset_write(data, in_directory("file.mrg"), ESP_FORMAT_AUTO, &err), ESP_ERR_PARAM);
    assert_int_not_equal(access(in_directory("file.mrg"), F_OK), 0);
    esp_dataset_free(data);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        esp_format format;
        const char *json, *reason;
    } refused[] = {
        {ESP_FORMAT_PENN, "{\"y\": 1, \"t\": \"(a b)\"}", "no place for the target"},
        {ESP_FORMAT_PENN, "{\"t\": \"(a b)\", \"u\": \"(a b)\"}",
         "column 'u' is a second tree, which the format penn cannot hold"},
        {ESP_FORMAT_PENN, "{\"w\": \"a b\"}", "column 'w' holds sequences"},
        {ESP_FORMAT_LIBSVM, "{\"x\": {\"a\": 1}}", "needs a target"},
        {ESP_FORMAT_LIBSVM, "{\"y\": 1, \"t\": \"(a b)\"}", "column 't' holds trees"},
        {ESP_FORMAT_LIBSVM, "{\"y\": 1, \"x\": {\"a\": 1}, \"z\": {\"a\": 1}}", "column 'z' is a second vector"},
        {ESP_FORMAT_LIBSVM, "{\"y\": 1, \"x\": {\"a:b\": 1}}",
         "the feature 'a:b' cannot be written in the format libsvm"},
        {ESP_FORMAT_LIBSVM, "{\"y\": \"a b\", \"x\": {\"a\": 1}}", "the target 'a b'"},
        {ESP_FORMAT_SVMTK, "{\"t\": \"(a b)\"}", "needs a target"},
        {ESP_FORMAT_SVMTK, "{\"y\": 1, \"w\": \"a b\"}", "column 'w' holds sequences"},
        {ESP_FORMAT_SVMTK, "{\"y\": 1, \"x\": {\"#a\": 1}}", "the feature '#a'"},
        {ESP_FORMAT_SVMTK, "{\"y\": \"|a\", \"x\": {\"a\": 1}}", "the target '|a'"},
        {ESP_FORMAT_KELP, "{\"a|b\": \"(a b)\"}", "column 'a|b' has '|'"},
        {ESP_FORMAT_KELP, "{\"t\": \"(a b\\\\\\n)\"}", "the label 'b\\x0A'"},
        {ESP_FORMAT_KELP, "{\"w\": \"a\\\\\\nb\"}", "the token 'a\\x0Ab'"},
        {ESP_FORMAT_CONLLU, "{\"w\": \"a\"}", "the format conllu is for reading only"},
        {ESP_FORMAT_SRL, "{\"w\": \"a\"}", "the format srl is for reading only"},
        {(esp_format)99, "{\"w\": \"a\"}", "format number 99"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        esp_dataset *data = parse(refused[i].json, ESP_FORMAT_JSONL);
        esp_error err = {0};
        assert_int_equal(esp_dataset_write(data, in_directory("file"), refused[i].format, &err), ESP_ERR_PARAM);
        if (strstr(err.message, refused[i].reason) == NULL) fail_msg("%s gives: %s", refused[i].json, err.message);
        assert_int_not_equal(access(in_directory("file"), F_OK), 0);
        esp_dataset_free(data);
    }
}

/* ------------------------------------------------------------- round trips */

static size_t add_random(char *text, size_t n, espi_random *random, const char *const *pieces, size_t count)
{
    for (uint64_t k = 1 + espi_random_below(random, 4); k > 0; k--)
        n += (size_t)sprintf(text + n, "%s", pieces[espi_random_below(random, count)]);
    return n;
}

/* A row of JSON whose labels and tokens are made of the pieces that have a meaning somewhere. */
static size_t random_row(char *text, espi_random *random)
{
    static const char *const in_label[] = {"a",    "b", "\\\\(", "\\\\)", "\\\\ ",   "\\\\\\\\", "\\\\b",
                                           "\\\"", "|", "|ET|",  "#",     "\\\\\\t", "\xC3\xA9", "\xff"};
    static const char *const in_token[] = {"a",    "b", "(",    ")", "\\\\(", "\\\\|", "\\\\ ",  "\\\\\\\\",
                                           "\\\\", "|", "|ES|", " ", "#",     ":",     "\\\\\\r"};
    size_t n = (size_t)sprintf(text, "{\"y\": \"c%d\", \"t\": \"", (int)espi_random_below(random, 3));
    int open = 0;
    if (espi_random_below(random, 4) > 0) {
        do {
            n += (size_t)sprintf(text + n, "(");
            n = add_random(text, n, random, in_label, sizeof in_label / sizeof *in_label);
            open++;
            while (open > 1 && espi_random_below(random, 2) == 0) n += (size_t)sprintf(text + n, " )"), open--;
            n += (size_t)sprintf(text + n, " x ");
        } while (open < 6 && espi_random_below(random, 4) > 0);
        while (open-- > 0) n += (size_t)sprintf(text + n, " )"); /* the blank may belong to an escape */
    }
    n += (size_t)sprintf(text + n, "\", \"w\": \"%s", espi_random_below(random, 2) == 0 ? "k" : "\\\\(");
    n = add_random(text, n, random, in_token, sizeof in_token / sizeof *in_token);
    n += (size_t)sprintf(text + n, " \", \"x\": {\"a:b\": %.17g}, \"d\": [%.17g, 0]}\n", espi_random_unit(random),
                         -espi_random_unit(random));
    return n;
}

static void assert_same(const esp_dataset *a, const esp_dataset *b, const char *text)
{
    assert_int_equal(esp_dataset_count(a), esp_dataset_count(b));
    assert_int_equal(esp_dataset_columns(a), esp_dataset_columns(b));
    for (size_t c = 0; c < esp_dataset_columns(a); c++) {
        assert_string_equal(esp_dataset_column_name(a, c), esp_dataset_column_name(b, c));
        assert_int_equal(esp_dataset_column_type(a, c), esp_dataset_column_type(b, c));
        for (size_t i = 0; i < esp_dataset_count(a); i++) {
            char *left, *right;
            assert_int_equal(esp_dataset_text(a, c, i, &left, NULL), ESP_OK);
            assert_int_equal(esp_dataset_text(b, c, i, &right, NULL), ESP_OK);
            if (strcmp(left, right) != 0) fail_msg("'%s' became '%s' through %s", left, right, text);
            assert_string_equal(esp_dataset_target(a, i), esp_dataset_target(b, i));
            esp_text_free(left);
            esp_text_free(right);
        }
    }
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    espi_random random;
    espi_random_seed(&random, 7);
    for (int round = 0; round < 300; round++) {
        char json[4096];
        size_t n = 0;
        for (int row = 0; row < 3; row++) n += random_row(json + n, &random);
        esp_dataset *data = parse(json, ESP_FORMAT_JSONL);
        static const esp_format formats[] = {ESP_FORMAT_JSONL, ESP_FORMAT_KELP};
        for (size_t f = 0; f < 2; f++) {
            char *text = written(data, formats[f]);
            esp_dataset *back = parse(text, ESP_FORMAT_AUTO);
            assert_int_equal(esp_dataset_format(back), formats[f]);
            assert_same(data, back, text);
            char *again = written(back, formats[f]);
            assert_string_equal(text, again);
            free(text);
            free(again);
            esp_dataset_free(back);
        }
        esp_dataset_free(data);
    }
}

typedef struct work {
    esp_format format;
    const char *json;
    const esp_dataset *data;
} work;

static esp_status write_out(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_status status = esp_dataset_write(w->data, in_directory("file"), w->format, err);
    assert_int_equal(unlink(in_directory("file")), status == ESP_OK ? 0 : -1); /* no file appears but a whole one */
    return status;
}

static esp_status first_text(const void *argument, esp_error *err)
{
    const work *w = argument;
    char *text = NULL;
    const esp_status status = esp_dataset_text(w->data, 0, 0, &text, err);
    assert_true((status == ESP_OK) == (text != NULL));
    esp_text_free(text);
    return status;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    work works[] = {
        {ESP_FORMAT_JSONL, "{\"y\": 1, \"t\": \"(S (A a))\", \"w\": \"a b\", \"x\": {\"a\": 1}}", NULL},
        {ESP_FORMAT_KELP, "{\"y\": 1, \"t\": \"(S (A a))\", \"w\": \"a b\", \"x\": {\"a\": 1}}", NULL},
        {ESP_FORMAT_SVMTK, "{\"y\": 1, \"t\": \"(S (A a))\", \"x\": {\"a\": 1}}", NULL},
        {ESP_FORMAT_LIBSVM, "{\"y\": 1, \"x\": {\"1\": 1}}", NULL},
        {ESP_FORMAT_PENN, "{\"t\": \"(S (A a))\"}", NULL},
    };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        esp_dataset *data = parse(works[i].json, ESP_FORMAT_JSONL);
        works[i].data = data;
        assert_int_equal(out_of_memory_everywhere(write_out, &works[i]), 0);
        assert_int_equal(out_of_memory_everywhere(first_text, &works[i]), 0);
        esp_dataset_free(data);
    }
}

static void texts_are_checked(void **state)
{
    (void)state;
    esp_dataset *data = parse("(a b)\n", ESP_FORMAT_AUTO);
    char *text;
    esp_error err = {0};
    assert_int_equal(esp_dataset_text(data, 1, 0, &text, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_dataset_text(data, 0, 1, &text, &err), ESP_ERR_PARAM);
    assert_null(text);
    esp_text_free(NULL);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_look_as_they_should), cmocka_unit_test(json_is_escaped),
        cmocka_unit_test(the_ending_names_the_format), cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(what_is_written_reads_back),  cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(texts_are_checked),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
