/* Unit tests of the readers: what each format becomes, and where and how errors are told. */
#include "base/alloc.h"
#include "espalier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static esp_dataset *parse(const char *text, const esp_read_options *options)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    if (esp_dataset_parse(text, strlen(text), "in", options, NULL, &data, &err) != ESP_OK) fail_msg("%s", err.message);
    assert_non_null(data);
    return data;
}

static void assert_text(const esp_dataset *data, size_t column, size_t example, const char *wanted)
{
    char *text = NULL;
    esp_error err;
    assert_int_equal(esp_dataset_text(data, column, example, &text, &err), ESP_OK);
    assert_string_equal(text, wanted);
    esp_text_free(text);
}

static void assert_column(const esp_dataset *data, size_t column, const char *name, esp_column_type type)
{
    assert_true(column < esp_dataset_columns(data));
    assert_string_equal(esp_dataset_column_name(data, column), name);
    assert_int_equal(esp_dataset_column_type(data, column), type);
}

/* --------------------------------------------------------------- JSON Lines */

static void jsonl_has_all_types(void **state)
{
    (void)state;
    esp_dataset *data =
        parse("{\"y\": \"DESC\", \"t\": \"(S (A a) b)\", \"w\": \"how  did|VBD\", \"x\": {\"len\": 7, \"c\": "
              "-0.5e1}, \"d\": [1, 2.5], \"n\": 3}\n"
              "\n# a comment\n"
              "  {\"n\":4,\"d\":[0,1],\"x\":{},\"w\":\"\",\"t\":\" \",\"y\":\"HUM\"}",
              NULL);
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_JSONL);
    assert_int_equal(esp_dataset_count(data), 2);
    assert_int_equal(esp_dataset_columns(data), 5);
    assert_string_equal(esp_dataset_target_name(data), "y");
    assert_string_equal(esp_dataset_target(data, 1), "HUM");
    assert_false(esp_dataset_target_is_number(data));
    assert_column(data, 0, "t", ESP_COLUMN_TREE);
    assert_column(data, 1, "w", ESP_COLUMN_SEQUENCE);
    assert_column(data, 2, "x", ESP_COLUMN_VECTOR);
    assert_text(data, 0, 0, "(S (A a) b)");
    assert_text(data, 1, 0, "how did|VBD");
    assert_text(data, 2, 0, "{\"len\": 7, \"c\": -5}");
    assert_text(data, 3, 0, "[1, 2.5]");
    assert_text(data, 4, 0, "3");
    assert_text(data, 0, 1, "");
    assert_text(data, 1, 1, "");
    assert_text(data, 2, 1, "{}");
    assert_text(data, 4, 1, "4");
    esp_dataset_free(data);
}

static void jsonl_decodes_strings(void **state)
{
    (void)state;
    esp_dataset *data =
        parse("{\"\\u0074\": \"\\u0028S \\\"\\u00e9\\\\( \\ud83d\\ude00 \\/)\", \"w\": \"a\\\\|b \\u20ac\xff\"}", NULL);
    assert_column(data, 0, "t", ESP_COLUMN_TREE);
    assert_text(data, 0, 0, "(S \"\xC3\xA9\\( \xF0\x9F\x98\x80 /)");
    assert_text(data, 1, 0, "a\\|b \xE2\x82\xAC\xff");
    esp_dataset_free(data);
}

static void jsonl_takes_any_target(void **state)
{
    (void)state;
    const char *text = "{\"y\": 1.50, \"c\": \"A\", \"t\": \"(a b)\"}\n{\"y\": -2e3, \"c\": \"B\", \"t\": \"(a b)\"}\n";
    esp_dataset *data = parse(text, NULL);
    assert_true(esp_dataset_target_is_number(data));
    assert_string_equal(esp_dataset_target(data, 0), "1.50");
    assert_column(data, 0, "c", ESP_COLUMN_SEQUENCE);
    esp_dataset_free(data);
    data = parse(text, &(esp_read_options){.target = "c"});
    assert_string_equal(esp_dataset_target_name(data), "c");
    assert_string_equal(esp_dataset_target(data, 1), "B");
    assert_column(data, 0, "y", ESP_COLUMN_VECTOR);
    esp_dataset_free(data);
    data = parse("{\"w\": \"a\"}", NULL);
    assert_null(esp_dataset_target_name(data));
    esp_dataset_free(data);
}

/* An empty string does not yet say what a column holds. */
static void jsonl_waits_for_the_first_tree(void **state)
{
    (void)state;
    esp_dataset *data = parse("{\"t\": \"\", \"w\": \"\"}\n{\"t\": \"(S a)\", \"w\": \"\\\\(a b\"}\n"
                              "{\"t\": \"()\", \"w\": \"(b\"}",
                              NULL);
    assert_column(data, 0, "t", ESP_COLUMN_TREE);
    assert_column(data, 1, "w", ESP_COLUMN_SEQUENCE);
    assert_text(data, 0, 0, "");
    assert_text(data, 0, 1, "(S a)");
    assert_text(data, 0, 2, "");
    assert_text(data, 1, 1, "\\(a b");
    assert_text(data, 1, 2, "(b");
    esp_dataset_free(data);
}

/* ------------------------------------------------------------ other formats */

static void svmtk_numbers_its_columns(void **state)
{
    (void)state;
    esp_dataset *data = parse("+1 |BT| (S (A a)) |BT|(S(B(b)))|ET| 3:0.5 7:1 |BV| 2:1 |EV| # note\n"
                              "# comment\r\n"
                              "-1 |BT| |BT| () |ET| |BV| |BV| 2:2 |EV|\r\n",
                              NULL);
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_SVMTK);
    assert_int_equal(esp_dataset_count(data), 2);
    assert_column(data, 0, "tree1", ESP_COLUMN_TREE);
    assert_column(data, 1, "tree2", ESP_COLUMN_TREE);
    assert_column(data, 2, "x1", ESP_COLUMN_VECTOR);
    assert_column(data, 3, "x2", ESP_COLUMN_VECTOR);
    assert_text(data, 1, 0, "(S (B b))");
    assert_text(data, 0, 1, "");
    assert_text(data, 2, 0, "{\"3\": 0.5, \"7\": 1}");
    assert_text(data, 2, 1, "{}");
    assert_text(data, 3, 1, "{\"2\": 2}");
    assert_true(esp_dataset_target_is_number(data));
    assert_string_equal(esp_dataset_target(data, 0), "1");
    esp_dataset_free(data);
    data = parse("1 |BT| (a b) |ET| |EV|\n2 |BT| (a b) |ET| 1:1\n", NULL);
    assert_text(data, 1, 0, "{}");
    assert_text(data, 1, 1, "{\"1\": 1}");
    esp_dataset_free(data);
}

static void kelp_has_all_sections(void **state)
{
    (void)state;
    esp_dataset *data =
        parse("DESC |BT:t| (A(B(C))) |ET| |BV:bow| a:b:1.0 |x|:2 #:3 |EV| |BS:q| How|W far \\|ES| ? |ES| "
              "|BSQ:s| (_a) (b\\)\\ c) |ESQ| |BDV:v| 1.0, 2 |EDV| |BS| one |ES| |BDV| 3 |EDV|\n",
              NULL);
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_KELP);
    assert_column(data, 0, "t", ESP_COLUMN_TREE);
    assert_text(data, 0, 0, "(A (B C))");
    assert_text(data, 1, 0, "{\"a:b\": 1, \"|x|\": 2, \"#\": 3}");
    assert_text(data, 2, 0, "How|W far \\|ES ?");
    assert_text(data, 3, 0, "_a b)\\ c");
    assert_text(data, 4, 0, "[1, 2]");
    assert_column(data, 5, "text1", ESP_COLUMN_SEQUENCE);
    assert_column(data, 6, "x1", ESP_COLUMN_VECTOR);
    assert_string_equal(esp_dataset_target(data, 0), "DESC");
    esp_dataset_free(data);
    data = parse("|BT:t| (a b) |ET|\n", NULL);
    assert_null(esp_dataset_target_name(data));
    esp_dataset_free(data);
}

static void libsvm_keeps_names(void **state)
{
    (void)state;
    esp_dataset *data = parse("+1 3:0.5 qid:2 7:1e2 # rest\n-1\n2.5 9:1#x\n", &(esp_read_options){.target = "y"});
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_LIBSVM);
    assert_column(data, 0, "x", ESP_COLUMN_VECTOR);
    assert_text(data, 0, 0, "{\"3\": 0.5, \"qid\": 2, \"7\": 100}");
    assert_text(data, 0, 1, "{}");
    assert_text(data, 0, 2, "{\"9\": 1}");
    assert_string_equal(esp_dataset_target(data, 2), "2.5");
    esp_dataset_free(data);
}

static void penn_trees_span_lines(void **state)
{
    (void)state;
    esp_dataset *data =
        parse("\xEF\xBB\xBF# treebank\n( (S (NP-SBJ (-NONE- *T*-1))\n    (VP (V go))) )\n(A 1\\/2 \\)) (B\\ C d)\n()\n",
              &(esp_read_options){.clean = true});
    assert_int_equal(esp_dataset_count(data), 4);
    assert_column(data, 0, "tree", ESP_COLUMN_TREE);
    assert_text(data, 0, 0, "(S (VP (V go)))");
    assert_text(data, 0, 1, "(A 1\\/2 \\))");
    assert_text(data, 0, 2, "(B\\ C d)");
    assert_text(data, 0, 3, "");
    esp_dataset_free(data);
}

static void conllu_makes_three_trees(void **state)
{
    (void)state;
    const char *text = "# text = She saw him\n"
                       "1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
                       "1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_\n"
                       "2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_\n"
                       "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
                       "3\thim\the\tPRON\t_\t_\t2\tobj\t_\t_\n"
                       "\n\n"
                       "1\tHi\thi\tINTJ\t_\t_\t0\troot\t_\t_\r\n"
                       "2\ta|b c\t_\tX\t_\t_\t0\troot\t_\t_\r\n";
    esp_dataset *data = parse(text, NULL);
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_CONLLU);
    assert_int_equal(esp_dataset_count(data), 2);
    assert_column(data, 0, "dep", ESP_COLUMN_TREE);
    assert_column(data, 1, "grct", ESP_COLUMN_TREE);
    assert_column(data, 2, "lct", ESP_COLUMN_TREE);
    assert_column(data, 3, "words", ESP_COLUMN_SEQUENCE);
    assert_text(data, 0, 0, "(saw She him)");
    assert_text(data, 1, 0, "(root (nsubj (PRON She)) (VERB saw) (obj (PRON him)))");
    assert_text(data, 2, 0, "(saw (She PRON nsubj) (him PRON obj) VERB root)");
    assert_text(data, 3, 0, "She saw him");
    assert_text(data, 0, 1, "(ROOT Hi a|b\\ c)");
    assert_text(data, 1, 1, "(ROOT (root (INTJ Hi)) (root (X a|b\\ c)))");
    assert_text(data, 3, 1, "Hi a\\|b\\ c");
    esp_dataset_free(data);
}

static void srl_takes_the_trees(void **state)
{
    (void)state;
    esp_dataset *data = parse("T\td\t0\t(TOP (S (V go)))\nP\t0\tgo\tgo.01\tV:0-0\nT\td\t1\t(TOP (X x))\n", NULL);
    assert_int_equal(esp_dataset_format(data), ESP_FORMAT_SRL);
    assert_int_equal(esp_dataset_count(data), 2);
    assert_text(data, 0, 1, "(TOP (X x))");
    esp_dataset_free(data);
}

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
    {ESP_FORMAT_JSONL, "{\"a\": [1, 2]}\n{\"a\": [1]}", 2, 10, "1 numbers here, but 2"},
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
    esp_dataset *data = parse(text, &(esp_read_options){.skip_bad = true});
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
    char path[64], line[128];
    snprintf(path, sizeof path, "/tmp/espalier-test-%ld.gz", (long)getpid());
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
    assert_text(data, 0, 19999, "(S a19999 (B fcbaa6f))");
    esp_dataset_free(data);
    assert_int_equal(truncate(path, 60000), 0);
    assert_int_equal(esp_dataset_read(path, &options, NULL, &data, &err), ESP_ERR_IO);
    assert_null(data);
    assert_int_equal(unlink(path), 0);
}

/* -------------------------------------------------------------- long calls */

static int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)fraction;
    assert_string_equal(stage, "reading");
    return ++*(int *)user > 0;
}

static void reading_can_be_stopped(void **state)
{
    (void)state;
    int calls = 0;
    const esp_run run = {.progress = stop_at_once, .user = &calls}, small = {.memory = 1000};
    esp_dataset *data;
    esp_error err = {0};
    assert_int_equal(esp_dataset_parse("(a b)", 5, "in", NULL, &run, &data, &err), ESP_ERR_CANCELLED);
    assert_null(data);
    assert_int_equal(esp_dataset_parse("(a b)", 5, "in", NULL, &small, &data, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "1.0 kB allowed"));
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ("{\"y\": \"a\", \"e\": \"\", \"t\": \"(S (A a) b\\u0020)\", \"w\": \"a|b c\", \"x\": {\"f\": 1}, \"d\": [1], "
         "\"n\": 2}\n"
         "{\"y\": \"b\", \"e\": \"(a b)\", \"t\": \"\", \"w\": \"\", \"x\": {}, \"d\": [2], \"n\": 3}\n"),
        "1 |BT| (S a) |BT| (S b) |ET| 1:1 |BV| 2:2 |EV|\n",
        "A |BT:t| (S(a)) |ET| |BV:b| a:1 |EV| |BS:s| a b |ES| |BSQ:q| (a) |ESQ| |BDV:d| 1,2 |EDV|\n",
        "1 2:3 4:5\n",
        "((S (A\\ B a)\n (B b)))\n",
        "1\ta\t_\tX\t_\t_\t2\tr\t_\t_\n2\tb\t_\tX\t_\t_\t0\tr\t_\t_\n3\tc\t_\tX\t_\t_\t0\tr\t_\t_\n",
        "T\td\t0\t(TOP (S (V go)))\nP\t0\tgo\tgo.01\tV:0-0\n",
        "(a b))\n(c d)\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const long live = espi_alloc_live();
        esp_status status = ESP_ERR_MEMORY;
        for (long n = 0; status != ESP_OK; n++) {
            esp_dataset *data;
            esp_error err = {0};
            assert_true(n < 1000);
            espi_alloc_fail_after(n);
            status = esp_dataset_parse(texts[i], strlen(texts[i]), "in", &(esp_read_options){.skip_bad = true}, NULL,
                                       &data, &err);
            espi_alloc_fail_after(-1);
            if (status != ESP_OK) assert_int_equal(status, ESP_ERR_MEMORY);
            assert_true((status == ESP_OK) == (data != NULL));
            esp_dataset_free(data);
            assert_int_equal(espi_alloc_live(), live);
        }
    }
}

/* A line much longer than the buffer of the stream, with bytes of every kind at its edges. */
static void long_lines_are_streamed(void **state)
{
    (void)state;
    enum { NODES = 60000 };
    char *text = malloc(NODES * 40), *wanted = malloc(NODES * 40), *got;
    assert_non_null(text);
    assert_non_null(wanted);
    size_t n = (size_t)sprintf(text, "{\"t\": \"(S"), m = (size_t)sprintf(wanted, "(S");
    for (int i = 0; i < NODES; i++) {
        n += (size_t)sprintf(text + n, "\\t(A\\u00e9%d \\\\)\\\"x)", i % 97);
        m += (size_t)sprintf(wanted + m, " (A\xC3\xA9%d \\)\"x)", i % 97);
    }
    strcpy(text + n, ")\"}");
    strcpy(wanted + m, ")");
    esp_dataset *data = parse(text, NULL);
    esp_error err;
    assert_int_equal(esp_dataset_text(data, 0, 0, &got, &err), ESP_OK);
    assert_true(strcmp(got, wanted) == 0);
    esp_text_free(got);
    esp_dataset_free(data);
    free(text);
    free(wanted);
}

/* ---------------------------------------------------------------- real data */

static void assert_count(const char *name, size_t count)
{
    char path[512];
    const char *folder = getenv("ESPALIER_DATA");
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "../shared/data", name);
    if (access(path, R_OK) != 0) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    esp_dataset *data;
    esp_error err = {0};
    if (esp_dataset_read(path, NULL, NULL, &data, &err) != ESP_OK) fail_msg("%s", err.message);
    assert_int_equal(esp_dataset_count(data), count);
    esp_dataset_free(data);
}

static void real_files_are_read(void **state)
{
    (void)state;
    assert_count("questions/train.jsonl.gz", 5452);
    assert_count("questions/test.klp.gz", 500);
    assert_count("quality/en-es.jsonl.gz", 858);
    assert_count("emotion/trial.jsonl.gz", 250);
    assert_count("dna/splice.jsonl.gz", 3190);
    assert_count("xml/inex2005.train.jsonl.gz", 4820);
    assert_count("dependency/ewt-2000.conllu.gz", 2000);
    assert_count("srl/ewt.srl.gz", 16553);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jsonl_has_all_types),
        cmocka_unit_test(jsonl_decodes_strings),
        cmocka_unit_test(jsonl_takes_any_target),
        cmocka_unit_test(jsonl_waits_for_the_first_tree),
        cmocka_unit_test(svmtk_numbers_its_columns),
        cmocka_unit_test(kelp_has_all_sections),
        cmocka_unit_test(libsvm_keeps_names),
        cmocka_unit_test(penn_trees_span_lines),
        cmocka_unit_test(conllu_makes_three_trees),
        cmocka_unit_test(srl_takes_the_trees),
        cmocka_unit_test(errors_have_their_place),
        cmocka_unit_test(nul_bytes_are_errors),
        cmocka_unit_test(targets_must_suit_the_format),
        cmocka_unit_test(bad_examples_are_skipped),
        cmocka_unit_test(a_truncated_file_is_never_skipped),
        cmocka_unit_test(reading_can_be_stopped),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(long_lines_are_streamed),
        cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
