/* Unit tests of the readers: where and how errors are told, and how bad examples are skipped. */
#include "files.h"

#include <zlib.h>

/* ------------------------------------------------------------------- errors */

typedef struct bad_input {
    esp_format format;
    const char *text;
    size_t line, column; /* 0: no place */
    const char *reason;  /* a part of it */
} bad_input;

static const bad_input bad[] = {
    {ESP_FORMAT_AUTO, "", 0, 0, "in: no examples"},
    {ESP_FORMAT_AUTO, "\n \n# only\n", 0, 0, "in: no examples"},
    {ESP_FORMAT_JSONL, "\n", 0, 0, "in: no examples"},
    {ESP_FORMAT_AUTO, "\nhello world\n", 2, 1, "'hello world' is the start of no known format"},
    {ESP_FORMAT_JSONL, "[1]\n", 1, 1, "must be an object"},
    {ESP_FORMAT_JSONL, "{\"y\" 1}", 1, 6, "':' is needed"},
    {ESP_FORMAT_JSONL, "{\"y\": 1 \"x\": 2}", 1, 9, "',' or '}'"},
    {ESP_FORMAT_JSONL, "{\"y\": 1,}", 1, 9, "the name of a field"},
    {ESP_FORMAT_JSONL, "{\"y\": 1", 1, 8, "the line ends"},
    {ESP_FORMAT_JSONL, "{\"y\": 1}\n{\"y\": 1} x", 2, 10, "the line must end here"},
    {ESP_FORMAT_JSONL, "{\"y\": \"\"}", 1, 7, "the target 'y' is empty"},
    {ESP_FORMAT_JSONL, "{\"y\": true}", 1, 7, "'true' is no value"},
    {ESP_FORMAT_JSONL, "{\"a\": null}", 1, 7, "'null' is no value"},
    {ESP_FORMAT_JSONL, "{\"y\": {}}", 1, 7, "a string or a number"},
    {ESP_FORMAT_JSONL, "{\"y\": 1, \"y\": 2}", 1, 10, "given twice"},
    {ESP_FORMAT_JSONL, "{\"a\": 1, \"a\": 2}", 1, 15, "given twice"},
    {ESP_FORMAT_JSONL, "{\"a\": 1}\n{\"a\": 1, \"b\": 2}", 2, 15, "'b' is new"},
    {ESP_FORMAT_JSONL, "{\"a\": 1, \"b\": 2}\n\n{\"a\": 1}", 3, 1, "'b' is missing"},
    {ESP_FORMAT_JSONL, "{\"y\": 1, \"a\": 2}\n{\"a\": 1}", 2, 1, "target 'y' is missing"},
    {ESP_FORMAT_JSONL, "{\"a\": 2}\n{\"a\": 1, \"y\": 1}", 2, 15, "not in the first example"},
    {ESP_FORMAT_JSONL, "{\"a\": \"x\"}\n{\"a\": 1}", 2, 7, "'a' is a vector here"},
    {ESP_FORMAT_JSONL, "{\"a\": \"(x y)\"}\n{\"a\": \" x\"}", 2, 9, "holds trees"},
    {ESP_FORMAT_JSONL, "{\"a\": [1, 2]}\n{\"a\": [1, 2, 3]}", 2, 14, "more than the 2 numbers"},
    {ESP_FORMAT_JSONL, "{\"a\": [1, 2]}\n{\"a\": [1]}", 2, 10, "length 1 here, but 2"},
    {ESP_FORMAT_JSONL, "{\"a\": [1, 2]}\n{\"a\": {\"0\": 1}}", 2, 7, "named features here"},
    {ESP_FORMAT_JSONL, "{\"a\": {\"b\": 1, \"b\": 2}}", 1, 7, "'b' is given twice"},
    {ESP_FORMAT_JSONL, "{\"a\": {\"b\": [1]}}", 1, 13, "nest no deeper"},
    {ESP_FORMAT_JSONL, "{\"a\": [1, \"2\"]}", 1, 11, "not a string"},
    {ESP_FORMAT_JSONL, "{\"a\": 1e999}", 1, 7, "not a finite number"},
    {ESP_FORMAT_JSONL, "{\"a\": NaN}", 1, 7, "not a finite number"},
    {ESP_FORMAT_JSONL, "{\"a\": -Infinity}", 1, 7, "not a finite number"},
    {ESP_FORMAT_JSONL, "{\"a\": 01}", 1, 7, "no number as JSON"},
    {ESP_FORMAT_JSONL, "{\"a\": }", 1, 7, "a value is missing"},
    {ESP_FORMAT_JSONL, "{\"\": 1}", 1, 2, "the name of a field is empty"},
    {ESP_FORMAT_JSONL, "{\"a\": \"x\ny\"}", 1, 9, "closing '\"' is missing"},
    {ESP_FORMAT_JSONL, "{\"a\": \"x\ty\"}", 1, 9, "control character '\\x09'"},
    {ESP_FORMAT_JSONL, "{\"a\": \"x\\qy\"}", 1, 9, "no escape of JSON"},
    {ESP_FORMAT_JSONL, "{\"a\": \"\\u12g4\"}", 1, 8, "four hexadecimal digits"},
    {ESP_FORMAT_JSONL, "{\"a\": \"\\ud800x\"}", 1, 8, "surrogate"},
    {ESP_FORMAT_JSONL, "{\"a\": \"\\udc00\"}", 1, 8, "surrogate"},
    {ESP_FORMAT_JSONL, "{\"a\": \"\\u0000\"}", 1, 8, "NUL"},
    {ESP_FORMAT_JSONL, "{\"a\": \"(S (A a)\"}", 1, 16, "ends inside a tree; closing brackets missing: 1"},
    {ESP_FORMAT_JSONL, "{\"a\": \"(S a) (b)\"}", 1, 14, "one tree"},
    {ESP_FORMAT_JSONL, "{\"a\": \"(S (()))\"}", 1, 13, "empty brackets"},
    {ESP_FORMAT_JSONL, "{\"a\": \"()\"}", 1, 9, "empty brackets"},
    {ESP_FORMAT_PENN, "(a b)\n( )\n", 2, 3, "empty brackets"},
    {ESP_FORMAT_LIBSVM, "1 1:2\nnan 1:2\n", 2, 1, "'nan' is not a finite number"},
    {ESP_FORMAT_LIBSVM, "1e999 1:2\n", 1, 1, "'1e999' is not a finite number"},
    {ESP_FORMAT_SVMTK, "-Inf |BT| (a b) |ET|\n", 1, 1, "'-Inf' is not a finite number"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a\n", 1, 12,
     "the line ends inside the tree that starts in line 1; 1 closing bracket is"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a) x |ET|\n", 1, 14, "followed by |ET| or |BT|"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a) |EV|\n", 1, 14, "not by |EV|"},
    {ESP_FORMAT_SVMTK, "1 |BT| S |ET|\n", 1, 8, "a tree starts with '(', not with 'S'"},
    {ESP_FORMAT_SVMTK, "1 |ET|\n", 1, 3, "|ET| closes what was not opened"},
    {ESP_FORMAT_SVMTK, "1 |BX| (S a)\n", 1, 3, "'|BX|' is no marker"},
    {ESP_FORMAT_SVMTK, "1 2 |BT| (S a) |ET|\n", 1, 3, "'2' is no feature"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a) |ET| 1:x |EV|\n", 1, 21, "'x' of a feature is not a finite number"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a) |ET| 1:1 2:2 1:3 |EV|\n", 1, 19, "'1' is given twice"},
    {ESP_FORMAT_SVMTK, "1 |BT| (S a) |ET|\n2 |BT| (S b) |BT| (S c) |ET|\n", 2, 18, "'tree2' is new"},
    {ESP_FORMAT_KELP, "A |BV:x| a:1\n", 1, 13, "|EV| is missing"},
    {ESP_FORMAT_KELP, "A |BV:x| a:1 |BT:t| (a b) |ET|\n", 1, 14, "|EV| is missing"},
    {ESP_FORMAT_KELP, "A |BV:y| a:1 |EV|\n", 1, 3, "must not be named y"},
    {ESP_FORMAT_KELP, "A |BV:| a:1 |EV|\n", 1, 3, "empty name"},
    {ESP_FORMAT_KELP, "A |BS:q| text |ET|\n", 1, 19, "must be closed by |ES|"},
    {ESP_FORMAT_KELP, "A |BSQ:q| (a) b |ESQ|\n", 1, 15, "must be closed by |ESQ|"},
    {ESP_FORMAT_KELP, "A |BSQ:q| (a (b)) |ESQ|\n", 1, 14, "escaped by '\\'"},
    {ESP_FORMAT_KELP, "A |BDV:v| 1.0,x |EDV|\n", 1, 15, "'x' is not a finite number"},
    {ESP_FORMAT_KELP, "|BT:t| (a b) |ET|\nA |BT:t| (a b) |ET|\n", 2, 1, "not in the first example"},
    {ESP_FORMAT_LIBSVM, "1:2\n", 1, 1, "is no label"},
    {ESP_FORMAT_LIBSVM, "1,2 1:2\n", 1, 1, "several labels"},
    {ESP_FORMAT_LIBSVM, "1 a:b:2\n", 1, 3, "two colons"},
    {ESP_FORMAT_LIBSVM, "1 :2\n", 1, 3, "needs a name"},
    {ESP_FORMAT_LIBSVM, "1 2:nan\n", 1, 5, "not a finite number"},
    {ESP_FORMAT_LIBSVM, "1 2:1 2:1\n", 1, 2, "'2' is given twice"},
    {ESP_FORMAT_PENN, "(S a) b\n", 1, 7, "'b' is outside of all brackets"},
    {ESP_FORMAT_PENN, "(S a)\n(S (A a)\n(S b)\n", 4, 1, "the tree that starts in line 2; 1 closing bracket is"},
    {ESP_FORMAT_CONLLU, "1\ta\n", 1, 1, "2 fields between TABs"},
    {ESP_FORMAT_CONLLU, "2\ta\t_\tX\t_\t_\t0\tr\t_\t_\n", 1, 1, "'2' is not the number of the next word"},
    {ESP_FORMAT_CONLLU, "1\ta\t_\tX\t_\t_\t_\tr\t_\t_\n", 1, 13, "'_' is no head"},
    {ESP_FORMAT_CONLLU, "1\ta\t_\tX\t_\t_\t2\tr\t_\t_\n", 1, 13, "head 2 does not exist"},
    {ESP_FORMAT_CONLLU, "1\ta\t_\tX\t_\t_\t1\tr\t_\t_\n", 1, 13, "no root"},
    {ESP_FORMAT_CONLLU, "1\ta\t_\tX\t_\t_\t0\tr\t_\t_\n2\tb\t_\tX\t_\t_\t2\tr\t_\t_\n", 2, 13, "circle"},
    {ESP_FORMAT_CONLLU, "1\t\t_\tX\t_\t_\t0\tr\t_\t_\n", 1, 3, "empty field"},
    {ESP_FORMAT_CONLLU, "1-2\ta\t_\tX\t_\t_\t0\tr\t_\t_\n\n", 2, 1, "no words"},
    {ESP_FORMAT_SRL, "P\t0\tgo\tgo.01\tV:0-0\n", 1, 1, "needs a tree (T) above it"},
    {ESP_FORMAT_SRL, "T\td\t0\t(a b)\nP\tx\tgo\tgo.01\tV:0-0\n", 2, 3, "'x' is no token number"},
    {ESP_FORMAT_SRL, "T\td\t0\t(a b) c\n", 1, 13, "the line must end here"},
    {ESP_FORMAT_SRL, "T\td\n", 1, 4, "a TAB is needed"},
    {ESP_FORMAT_SRL, "X\td\n", 1, 1, "not with 'X'"},
};

static void errors_have_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        esp_dataset *data = NULL;
        esp_error err = {0};
        char place[64] = "in: ";
        const esp_read_options options = {.format = bad[i].format};
        const esp_status status =
            esp_dataset_parse(bad[i].text, strlen(bad[i].text), "in", &options, NULL, &data, &err);
        if (bad[i].line > 0) snprintf(place, sizeof place, "in:%zu:%zu: ", bad[i].line, bad[i].column);
        if (status != ESP_ERR_PARSE || data != NULL || strncmp(err.message, place, strlen(place)) != 0 ||
            strstr(err.message, bad[i].reason) == NULL || err.line != bad[i].line || err.column != bad[i].column)
            fail_msg("%s gives: %s", bad[i].text, err.message);
        assert_int_equal(esp_dataset_parse(bad[i].text, strlen(bad[i].text), "in", &options, NULL, &data, NULL),
                         status);
    }
}

static void nul_bytes_are_errors(void **state)
{
    (void)state;
    static const struct {
        esp_format format;
        const char text[24];
        size_t size, column;
    } nul[] = {
        {ESP_FORMAT_JSONL, "{\"a\": \"x\0\"}", 11, 9},  {ESP_FORMAT_JSONL, "{\"a\": \"(x \0)\"}", 14, 11},
        {ESP_FORMAT_LIBSVM, "1 a\0:1", 6, 4},           {ESP_FORMAT_LIBSVM, "\0 a:1", 6, 1},
        {ESP_FORMAT_KELP, "a |BS:x| a\0 |ES|", 16, 11}, {ESP_FORMAT_PENN, "(a \0)", 5, 4},
        {ESP_FORMAT_CONLLU, "1\ta\0\n", 5, 4},
    };
    for (size_t i = 0; i < sizeof nul / sizeof *nul; i++) {
        esp_dataset *data;
        esp_error err = {0};
        const esp_read_options options = {.format = nul[i].format};
        assert_int_equal(esp_dataset_parse(nul[i].text, nul[i].size, "in", &options, NULL, &data, &err), ESP_ERR_PARSE);
        assert_int_equal(err.column, nul[i].column);
    }
}

static void targets_must_suit_the_format(void **state)
{
    (void)state;
    esp_dataset *data;
    esp_error err = {0};
    esp_read_options options = {.target = "z"};
    assert_int_equal(esp_dataset_parse("1 2:3\n", 6, "in", &options, NULL, &data, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "has one label"));
    assert_int_equal(esp_dataset_parse("(a b)\n", 6, "in", &options, NULL, &data, &err), ESP_ERR_PARAM);
    assert_non_null(strstr(err.message, "has no targets"));
    assert_int_equal(esp_dataset_parse("{\"a\": 1, \"b\": 2}", 16, "in", &options, NULL, &data, &err), ESP_ERR_PARSE);
    assert_string_equal(err.message, "in:1:1: the target 'z' is missing; the fields are 'a', 'b'");
    options = (esp_read_options){.format = (esp_format)99};
    assert_int_equal(esp_dataset_parse("(a b)\n", 6, "in", &options, NULL, &data, &err), ESP_ERR_PARAM);
}

/* ----------------------------------------------------------------- skip_bad */

static void assert_skips(const char *text, size_t rows, size_t bad_rows, const char *first)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    const esp_read_options options = {.skip_bad = true};
    if (esp_dataset_parse(text, strlen(text), "in", &options, NULL, &data, &err) != ESP_OK) fail_msg("%s", err.message);
    assert_int_equal(esp_dataset_count(data), rows);
    assert_int_equal(esp_dataset_bad_count(data), bad_rows);
    assert_non_null(strstr(esp_dataset_first_bad(data), first));
    esp_dataset_free(data);
}

static void bad_examples_are_skipped(void **state)
{
    (void)state;
    assert_skips(
        "{\"a\": tru}\n{\"t\": \"(S a)\"}\n{\"t\": \"(S\"}\n{\"t\": \"(S b)\", \"u\": 1}\n{\"t\": \"(S b)\"}\n", 2, 3,
        "in:1:7: 'tru'");
    assert_skips("1 |BT| (a b) |ET|\n1 |BT| (a b |ET|\n1 |BT| (a b) |ET|\n1", 2, 2, "in:2:17:");
    assert_skips("(a b)\n(a (\n  () b)\n(a c)\n) x\n(d e)", 3, 2, "in:3:4: empty brackets");
    assert_skips("T\td\t0\t(a b)\nP\tx\n\nT\td\t1\t(a c)\n", 1, 1, "in:2:3:");
    assert_skips("1\ta\t_\tX\t_\t_\t0\tr\t_\t_\n\n1\tb\t_\tX\t_\t_\t7\tr\t_\t_\n\n"
                 "1\tb\n2\tc\n\n1\td\t_\tX\t_\t_\t0\tr\t_\t_\n",
                 2, 2, "in:3:13: head 7");
    esp_dataset *data;
    esp_error err = {0};
    const esp_read_options options = {.format = ESP_FORMAT_JSONL, .skip_bad = true};
    assert_int_equal(esp_dataset_parse("x\ny\n", 4, "in", &options, NULL, &data, &err), ESP_ERR_PARSE);
    assert_non_null(strstr(err.message, "all 2 are bad, the first at in:1:1: "));
}

static void a_truncated_file_is_never_skipped(void **state)
{
    (void)state;
    char path[PATH_SIZE], line[128];
    temporary_file("", path);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 20000; i++) {
        snprintf(line, sizeof line, "{\"t\": \"(S a%d (B %x))\"}\n", i, (unsigned)i * 2654435761u);
        assert_true(gzputs(file, line) > 0);
    }
    assert_int_equal(gzclose(file), Z_OK);
    esp_dataset *data;
    esp_error err = {0};
    const esp_read_options options = {.skip_bad = true};
    assert_int_equal(esp_dataset_read(path, &options, NULL, &data, &err), ESP_OK);
    assert_int_equal(esp_dataset_count(data), 20000);
    esp_dataset_free(data);
    assert_int_equal(truncate(path, 60000), 0);
    assert_int_equal(esp_dataset_read(path, &options, NULL, &data, &err), ESP_ERR_IO);
    assert_null(data);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_their_place),           cmocka_unit_test(nul_bytes_are_errors),
        cmocka_unit_test(targets_must_suit_the_format),      cmocka_unit_test(bad_examples_are_skipped),
        cmocka_unit_test(a_truncated_file_is_never_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
