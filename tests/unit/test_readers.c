/* Unit tests of the readers: what each format becomes. */
#include "cases.h"

#include <unistd.h>

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
                              "{\"t\": \" \", \"w\": \"(b\"}",
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
                              "-1 |BT| |BT| |ET| |BV| |BV| 2:2 |EV|\r\n",
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
    esp_dataset *data = parse("\xEF\xBB\xBF# treebank\n( (S (NP-SBJ (-NONE- *T*-1))\n    (VP (V go))) )\n(A 1\\/2 \\)) "
                              "(B\\ C d)\n(-NONE- *)\n",
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

static esp_status read_text(const void *argument, esp_error *err)
{
    const esp_read_options options = {.skip_bad = true};
    esp_dataset *data;
    const esp_status status = esp_dataset_parse(argument, strlen(argument), "in", &options, NULL, &data, err);
    assert_true((status == ESP_OK) == (data != NULL));
    esp_dataset_free(data);
    return status;
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
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) out_of_memory_everywhere(read_text, texts[i]);
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
        cmocka_unit_test(jsonl_has_all_types),       cmocka_unit_test(jsonl_decodes_strings),
        cmocka_unit_test(jsonl_takes_any_target),    cmocka_unit_test(jsonl_waits_for_the_first_tree),
        cmocka_unit_test(svmtk_numbers_its_columns), cmocka_unit_test(kelp_has_all_sections),
        cmocka_unit_test(libsvm_keeps_names),        cmocka_unit_test(penn_trees_span_lines),
        cmocka_unit_test(conllu_makes_three_trees),  cmocka_unit_test(srl_takes_the_trees),
        cmocka_unit_test(reading_can_be_stopped),    cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(long_lines_are_streamed),   cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
