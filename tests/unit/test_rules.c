/* Grammar rules: the file, the same inside kernel expressions, learning and checking. */
#include "files.h"

#include "kernel/evaluate/registry.h"
#include "kernel/grammar_tree/rules.h"

static char path[PATH_SIZE];

/* What the rules of a file come to, as a kernel prints them. */
static void assert_reads(const char *text, const char *expected)
{
    espi_rules *rules = NULL;
    esp_error err = {0};
    spill(path, text, strlen(text));
    assert_ok(espi_rules_read(path, &rules, &err), text, &err);
    assert_string_equal(rules->text, expected);
    espi_rules_free(rules);
    /* And the print is read as the same. */
    char *expression = malloc(strlen(expected) + 32);
    sprintf(expression, "gtk(grammar={%s})", expected);
    esp_kernel *kernel = kernel_of(expression);
    assert_string_equal(((const espi_rules *)kernel->leaf[0].argument)->text, expected);
    esp_kernel_free(kernel);
    free(expression);
}

static void reading(void **state)
{
    (void)state;
    assert_reads("", "");
    assert_reads("# nothing\n\n   \t\n", "");
    assert_reads("NP -> DT [JJ] NN", "NP -> DT [JJ] NN");
    assert_reads("NP -> DT [JJ] NN # 12\r\n= NN NNS\r\n", "= NN NNS; NP -> DT [JJ] NN");
    assert_reads("  VP\t->  [ V ]   NP  \n", "VP -> [V] NP");
    assert_reads("A -> [B] [C]\n", "A -> [B] [C]");
    /* In one order, and without what has no effect. */
    assert_reads("B -> [C] D\n= Z Y\nA -> B C\nA -> [B]\n= K\n= X W V\n", "= V W X; = Y Z; A -> [B]; B -> [C] D");
    /* Labels of all kinds. */
    assert_reads("-LRB- -> -NONE- [->x] PRP$ ''\n", "-LRB- -> -NONE- [->x] PRP$ ''");
    assert_reads("\\-> -> \\= [\\#] x#y\n", "\\-> -> \\= [\\#] x#y");
    assert_reads("A\\(x\\) -> [a\\ b] \\[c\\] \\{\\} ; d\\;e\n", "A\\(x\\) -> [a\\ b] \\[c\\] \\{\\} \\; d\\;e");
    assert_reads("A -> 1\\/2 [b\\\\c]\n", "A -> 1\\\\/2 [b\\\\c]");
    assert_reads("\xc3\x84 -> [\xc3\xb6] u\n", "\xc3\x84 -> [\xc3\xb6] u");
    /* The same label may stand on both sides and several times. */
    assert_reads("NP -> NP [NP] [NP]", "NP -> NP [NP] [NP]");
}

typedef struct fault {
    const char *text, *message; /* behind the file's name */
} fault;

static void faults(void **state)
{
    (void)state;
    static const fault all[] = {
        {"NP -> DT (JJ) NN", ":1:10: unknown bracket '('; optional children stand in [ ], and \\( is part of a label"},
        {"NP -> DT {JJ} NN", ":1:10: unknown bracket '{'; optional children stand in [ ], and \\{ is part of a label"},
        {"\nNP -> DT [JJ NN", ":2:14: a bracket holds one child; give each optional child its own"},
        {"NP -> DT [JJ", ":1:10: the bracket that opens here is not closed"},
        {"NP -> DT JJ] NN", ":1:12: this bracket was never opened"},
        {"NP -> DT ] NN", ":1:10: this bracket was never opened"},
        {"NP -> DT [[JJ]] NN", ":1:11: brackets cannot stand inside brackets"},
        {"NP -> DT [] NN", ":1:10: these brackets are empty"},
        {"NP -> DT [JJ]NN", ":1:14: a blank must follow ']'"},
        {"NP -> DT[JJ] NN",
         ":1:9: '[' inside a label; a blank goes before an optional child, and \\[ is part of a label"},
        {"NP -> DT [JJ)", ":1:13: unknown bracket ')'; optional children stand in [ ], and \\) is part of a label"},
        {"NP ->", ":1:6: the right side is empty"},
        {"NP -> # CD", ":1:7: the right side is empty; write \\# for the label #"},
        {"NP DT NN", ":1:4: '->' must follow 'NP', with blanks around it, as in NP -> DT [JJ] NN"},
        {"NP", ":1:3: '->' must follow 'NP', with blanks around it, as in NP -> DT [JJ] NN"},
        {"NP->DT NN", ":1:8: '->' must follow 'NP->DT', with blanks around it, as in NP -> DT [JJ] NN"},
        {"-> DT", ":1:1: a label must come before '->'"},
        {"[NP] -> DT", ":1:1: the left side of a production cannot be optional"},
        {"NP -> DT -> NN", ":1:10: a second '->' on the line; \\-> is a label"},
        {"NP -> DT [JJ] NN\nVP -> V\nNP -> [DT] JJ NN",
         ":3:1: this production of 'NP' is given twice, first at line 1"},
        {"= ", ":1:3: a class needs labels: = NN NNS"},
        {"= NN [NNS]", ":1:7: a class has no optional labels"},
        {"= NN -> NNS", ":1:6: a class is '=' and labels; write \\- for a label that starts so"},
        {"# classes\n= NN NNS NN", ":2:10: the class names 'NN' twice, first at column 3 of line 2"},
        {"= NN NNS\n\n= VB NNS", ":3:6: 'NNS' is in two classes, the first at line 1"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        espi_rules *rules = (espi_rules *)(uintptr_t)1;
        esp_error err = {0};
        char expected[400];
        spill(path, all[i].text, strlen(all[i].text));
        assert_int_equal(espi_rules_read(path, &rules, &err), ESP_ERR_PARSE);
        assert_null(rules);
        snprintf(expected, sizeof expected, "%s%s", path, all[i].message);
        assert_string_equal(err.message, expected);
        assert_int_equal(espi_rules_read(path, &rules, NULL), ESP_ERR_PARSE);
    }
    espi_rules *rules = NULL;
    esp_error err = {0};
    spill(path, "NP -> D\0T", 9);
    assert_int_equal(espi_rules_read(path, &rules, &err), ESP_ERR_PARSE);
    assert_non_null(strstr(err.message, ":1:8: a NUL byte; text must not contain any"));
    assert_int_equal(espi_rules_read("/nowhere/at.all", &rules, &err), ESP_ERR_IO);
}

static void a_long_line(void **state)
{
    (void)state;
    enum { CHILDREN = 200000 };
    char *text = malloc(CHILDREN * 4 + 16), *end = text + sprintf(text, "A ->");
    for (size_t i = 0; i < CHILDREN; i++) end += sprintf(end, i % 2 ? " [B]" : " B");
    spill(path, text, (size_t)(end - text));
    espi_rules *rules = NULL;
    esp_error err = {0};
    assert_ok(espi_rules_read(path, &rules, &err), "a long line", &err);
    assert_int_equal(rules->lines, 1);
    assert_int_equal(rules->line[0].count, CHILDREN);
    assert_int_equal(rules->line[0].optional, CHILDREN / 2);
    espi_rules_free(rules);
    free(text);
}

static void in_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *message;
        size_t column;
    } all[] = {
        {"gtk(grammar=)", "a file of grammar rules is expected, or rules in braces, as in {NP -> DT [JJ] NN; = NN NNS}",
         13},
        {"gtk(grammar={NP -> DT)", "this brace is never closed", 13},
        {"gtk(grammar={NP -> (DT)})", "unknown bracket '('; optional children stand in [ ], and \\( is part of a label",
         20},
        {"gtk(grammar={A -> [B]; A -> B})", "this production of 'A' is given twice, first at column 14", 24},
        {"gtk(grammar={= A B; = C B})", "'B' is in two classes, the first at column 18", 25},
        {"gtk(grammar={= A B A})", "the class names 'A' twice, first at column 16 of the expression", 20},
        {"gtk(grammar={}, grammar={})", "grammar is given twice", 17},
        {"gtk(lambda1=1.5)", "lambda1 of gtk is '1.5'; allowed is a number from 0 to 1", 13},
        {"gtk(lambda2=-0.1)", "lambda2 of gtk is '-0.1'; allowed is a number from 0 to 1", 13},
        {"gtk(words=2)", "words of gtk is '2'; allowed is 0 or 1", 11},
        {"gtk(algorithm=dag)", "algorithm of gtk is 'dag'; allowed is fgtk3, fgtk2, fgtk1 or gtk", 15},
    };
    esp_kernel *kernel = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        esp_error err = {0};
        char expected[400];
        snprintf(expected, sizeof expected, "kernel expression, column %zu: %s", all[i].column, all[i].message);
        assert_int_equal(esp_kernel_parse(all[i].expression, &kernel, &err), ESP_ERR_PARAM);
        assert_string_equal(err.message, expected);
        assert_int_equal(err.column, all[i].column);
    }
    kernel = kernel_of("gtk(tree, grammar={ NP -> DT [JJ] NN ;\n = NNS NN # classes ; })");
    assert_string_equal(
        esp_kernel_text(kernel),
        "gtk(tree, lambda=0.4, lambda1=0.6, lambda2=0.3, grammar={= NN NNS; NP -> DT [JJ] NN}, words=1, "
        "frontier=1, algorithm=fgtk3)");
    esp_kernel_free(kernel);
    kernel = kernel_of("gtk");
    assert_string_equal(esp_kernel_text(kernel), "gtk(lambda=0.4, lambda1=0.6, lambda2=0.3, grammar={}, words=1, "
                                                 "frontier=1, algorithm=fgtk3)");
    esp_kernel_free(kernel);
}

/* A kernel does not need the file any more once it is read, and an expression from elsewhere must not name one. */
static void files_in_expressions(void **state)
{
    (void)state;
    char expression[PATH_SIZE + 64];
    esp_error err = {0};
    esp_kernel *kernel = NULL, *copy = NULL;
    spill(path, "NP -> DT [JJ] NN\n", 17);
    snprintf(expression, sizeof expression, "norm(gtk(grammar=%s, lambda=0.5))", path);
    kernel = kernel_of(expression);
    esp_kernel_free(kernel);
    snprintf(expression, sizeof expression, "gtk(grammar=\"%s\")", path);
    kernel = kernel_of(expression);
    assert_int_equal(espi_kernel_parse(expression, false, &copy, &err), ESP_ERR_PARAM);
    assert_string_equal(err.message,
                        "kernel expression, column 13: grammar rules must stand in braces here, not in a file");
    spill(path, "VP -> [V] NP\n", 13);
    assert_ok(espi_kernel_parse(esp_kernel_text(kernel), false, &copy, &err), "a print", &err);
    assert_string_equal(esp_kernel_text(copy), esp_kernel_text(kernel));
    esp_kernel_free(copy);
    assert_ok(espi_kernel_with(kernel, "grammar", path, &copy, &err), "another file", &err);
    assert_non_null(strstr(esp_kernel_text(copy), "{VP -> [V] NP}"));
    esp_kernel_free(copy);
    esp_kernel_free(kernel);
    snprintf(expression, sizeof expression, "gtk(grammar=/nowhere/at.all)");
    assert_int_equal(esp_kernel_parse(expression, &kernel, &err), ESP_ERR_IO);
    assert_string_equal(err.message, "/nowhere/at.all: No such file or directory");
    spill(path, "VP -> (V) NP\n", 13);
    snprintf(expression, sizeof expression, "gtk(grammar=%s)", path);
    assert_int_equal(esp_kernel_parse(expression, &kernel, &err), ESP_ERR_PARSE);
    assert_int_equal(err.line, 1);
    assert_int_equal(err.column, 7);
}

/* ------------------------------------------------------------------- learning */

static const char trees[] = "{\"tree\": \"(S (NP (DT a) (NN b)) (VP (V c)))\"}\n"
                            "{\"tree\": \"(S (NP (DT a) (NN b)) (VP (V c)))\"}\n"
                            "{\"tree\": \"(S (NP (DT a) (JJ r) (NN b)) (VP (V c) (NP (NN d))))\"}\n"
                            "{\"tree\": \"(S (NP (DT a) (JJ r) (NN b)))\"}\n";

static void assert_learns(const char *lines, const esp_grammar_options *options, const char *expected)
{
    esp_dataset *data = dataset_of(lines);
    esp_error err = {0};
    char *text = NULL;
    assert_ok(esp_grammar_learn(data, options, &text, NULL, &err), lines, &err);
    assert_string_equal(text, expected);
    esp_text_free(text);
    esp_dataset_free(data);
}

static void learning(void **state)
{
    (void)state;
    assert_learns(trees, &(esp_grammar_options){.min_count = 2},
                  "# productions: 7, seen at least 2 times: 4; rules with optional children: 2, such children: 2\n"
                  "NP -> DT [JJ] NN # 2\nVP -> V [NP] # 1\n");
    assert_learns(trees, &(esp_grammar_options){.min_count = 1, .classes = "ud"},
                  "# productions: 7, seen at least 1 times: 7; rules with optional children: 4, such children: 4\n"
                  "= AUX VERB\n= CCONJ SCONJ\n= NOUN PROPN\n"
                  "NP -> DT [JJ] NN # 2\nNP -> [DT] NN # 2\nS -> NP [VP] # 3\nVP -> V [NP] # 1\n");
}

static void learning_all(void **state)
{
    (void)state;
    esp_grammar_counts c;
    esp_dataset *data = dataset_of(trees);
    esp_error err = {0};
    char *text = NULL;
    assert_ok(esp_grammar_learn(data, &(esp_grammar_options){.min_count = 2, .all = true, .classes = "penn"}, &text, &c,
                                &err),
              "all", &err);
    spill(path, text, strlen(text));
    esp_text_free(text);
    esp_grammar_counts again;
    assert_ok(esp_grammar_check(path, data, NULL, &again, &err), "what was learned", &err);
    assert_int_equal(again.rules, c.rules);
    assert_int_equal(again.optional, c.optional);
    assert_int_equal(again.matched, c.rules);
    assert_int_equal(again.classes, 4);
    assert_int_equal(again.members, 16);
    assert_int_equal(again.seen, 2);
    assert_int_equal(esp_grammar_learn(data, &(esp_grammar_options){.classes = "pen"}, &text, &c, &err), ESP_ERR_PARAM);
    assert_int_equal(esp_grammar_learn(data, &(esp_grammar_options){.column = "tre"}, &text, &c, &err), ESP_ERR_PARAM);
    assert_null(text);
    esp_dataset_free(data);
}

/* The order of the trees does not matter; labels that need backslashes come back; a word and a node of one label share
 * a rule; what cannot be written is counted. */
static void learning_odd_labels(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"tree\": \"(# (= a) (\\\\\\\\ b) (\\\\( c))\"}\n{\"tree\": \"(# (= a) (\\\\( c))\"}\n"
        "{\"tree\": \"(A (B b) (C c))\"}\n{\"tree\": \"(A B (C c))\"}\n{\"tree\": \"(A (C c))\"}\n"
        "{\"tree\": \"(A (B\\\\\\n b) (C c))\"}\n";
    esp_dataset *data = dataset_of(lines);
    esp_error err = {0};
    esp_grammar_counts c, again;
    char *text = NULL;
    assert_ok(esp_grammar_learn(data, &(esp_grammar_options){.min_count = 1}, &text, &c, &err), "odd", &err);
    assert_string_equal(
        text, "# productions: 6, seen at least 1 times: 6; rules with optional children: 2, such children: 2\n"
              "A -> [B] C # 2\n"
              "\\# -> \\= [\\\\] \\( # 1\n");
    assert_int_equal(c.unwritable, 1);
    spill(path, text, strlen(text));
    assert_ok(esp_grammar_check(path, data, "tree", &again, &err), "odd", &err);
    assert_int_equal(again.matched, 2);
    esp_text_free(text);
    esp_dataset_free(data);
}

static void warnings(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of(trees);
    esp_error err = {0};
    char *text = NULL;
    static const char *const quiet[] = {"gtk", "gtk(grammar={= NN NNS})", "gtk(grammar={NP -> DT [JJ] NN; X -> [Y] Z})",
                                        "sst"};
    for (size_t i = 0; i < 4; i++) {
        esp_kernel *kernel = kernel_of(quiet[i]);
        assert_ok(esp_kernel_warning(kernel, data, NULL, &text, &err), quiet[i], &err);
        assert_null(text);
        esp_kernel_free(kernel);
    }
    esp_kernel *kernel = kernel_of("norm(gtk(grammar={X -> [Y] Z; NP -> [DT] NN NN}))");
    assert_ok(esp_kernel_warning(kernel, data, NULL, &text, &err), "no match", &err);
    assert_string_equal(text,
                        "gtk: of the grammar's rules with optional children (2), none matches a production of the "
                        "trees (7)\n");
    esp_text_free(text);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* Values by label or feature that the data do not have: inner nodes count, words of sequences in lower case. */
static void unmatched_values(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *text; /* NULL: nothing is said */
    } cases[] = {
        {"sasst(tree, lambda.NP=0.2, alpha.N=0.1)", NULL},
        {"norm(sasst(lambda.Np=0.2, alpha.NP=0.1)) + 2*rbf(x, gamma.\"a b\"=1, gamma.c=2)",
         "sasst(tree): lambda is given for 'Np', but no inner node has that label\n"
         "rbf(x): gamma is given for 'c', but no example has that feature\n"},
        {"sasst(tree, lambda.cat=0.2)", "sasst(tree): lambda is given for 'cat', but no inner node has that label\n"},
        {"rbf(words, gamma.the=2, gamma.NN=3)",
         "rbf(words): gamma is given for 'NN', but no example has that feature\n"},
        {"sasst(tree, lambda.A=1, lambda.B=1, lambda.C=1, lambda.E=1, alpha.A=1, alpha.B=1, alpha.C=1, alpha.E=1, "
         "lambda.F=1, lambda.G=1, lambda.NP=1)",
         "sasst(tree): lambda is given for 'A', but no inner node has that label\n"
         "sasst(tree): lambda is given for 'B', but no inner node has that label\n"
         "sasst(tree): lambda is given for 'C', but no inner node has that label\n"
         "sasst(tree): lambda is given for 'E', but no inner node has that label\n"
         "sasst(tree): lambda is given for 'F', but no inner node has that label\n"
         "sasst(tree): lambda is given for 'G', but no inner node has that label\n"
         "sasst(tree): alpha is given for 'A', but no inner node has that label\n"
         "sasst(tree): alpha is given for 'B', but no inner node has that label\n"
         "sasst(tree): the same is true of 2 other values\n"},
    };
    esp_dataset *data =
        dataset_of("{\"tree\": \"(NP (D The) (N cat))\", \"words\": \"The|NN cat\", \"x\": {\"a b\": 1}}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        esp_kernel *kernel = kernel_of(cases[i].kernel);
        esp_error err = {0};
        char *text = NULL;
        bool refused = true;
        assert_ok(esp_kernel_warning(kernel, data, NULL, &text, &err), cases[i].kernel, &err);
        if (cases[i].text == NULL) assert_null(text);
        else assert_string_equal(text, cases[i].text);
        esp_text_free(text);
        for (long n = 0; refused; n++) {
            const long live = espi_alloc_live();
            espi_alloc_fail_after(n);
            const esp_status status = esp_kernel_warning(kernel, data, NULL, &text, &err);
            refused = espi_alloc_fail_after(-1) < 0;
            assert_int_equal(status, refused ? ESP_ERR_MEMORY : ESP_OK);
            esp_text_free(text);
            assert_int_equal(espi_alloc_live(), live);
        }
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
}

static void short_prints(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"sst(tree)", "sst(tree, lambda=0.4, alpha=1, bow=0, algorithm=dag)"},
        {"gtk(grammar={A -> [B]})", "grammar={A -> [B]},"},
        {"gtk(grammar={A -> [B]; C -> [D]; E -> [F]; G -> [H]})", "grammar={A -> [B]; C -> [D]; E -> [F]; G -> [H]},"},
        {"gtk(grammar={A -> [B]; C -> [D]; E -> [F]; G -> [H]; I -> [J]})",
         "grammar={A -> [B]; C -> [D]; E -> [F]; and 2 more},"},
        {"gtk(grammar={A\\; -> [\\;]; C -> [\\\\]; E -> [\\;]; G -> [H]})", "E -> [\\;]; G -> [H]},"},
        {"gtk(grammar={A\\; -> [\\;]; C -> [\\\\]; E -> [\\;]; G -> [H]; I -> [J]})", "E -> [\\;]; and 2 more},"},
        {"2*norm(gtk(grammar={A -> [B]; C -> [D]; E -> [F]; G -> [H]; I -> [J]; K -> [L]})) + ptk(tree)",
         "E -> [F]; and 3 more}, words=1, frontier=1, algorithm=fgtk3)) + ptk(tree,"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        esp_kernel *kernel = kernel_of(table[i][0]);
        char *text = espi_kernel_print_short(kernel);
        assert_non_null(text);
        if (strstr(text, table[i][1]) == NULL) fail_msg("%s is not in %s", table[i][1], text);
        esp_text_free(text);
        esp_kernel_free(kernel);
    }
}

static esp_status all_of_it(const void *argument, esp_error *err)
{
    const esp_dataset *data = argument;
    esp_grammar_counts c;
    char *text = NULL, *warning = NULL;
    esp_kernel *kernel = NULL;
    esp_status status =
        esp_grammar_learn(data, &(esp_grammar_options){.min_count = 1, .classes = "penn"}, &text, &c, err);
    if (status == ESP_OK) status = esp_grammar_check(path, data, NULL, &c, err);
    if (status == ESP_OK) status = esp_kernel_parse("gtk(grammar={X -> [Y]; = A B})", &kernel, err);
    if (status == ESP_OK) status = esp_kernel_warning(kernel, data, NULL, &warning, err);
    esp_text_free(text);
    esp_text_free(warning);
    esp_kernel_free(kernel);
    return status;
}

static void out_of_memory(void **state)
{
    (void)state;
    static const char rules[] = "NP -> DT [JJ] NN\n= NN NNS\nX -> [Y] \\(\n";
    esp_dataset *data = dataset_of(trees);
    spill(path, rules, sizeof rules - 1);
    out_of_memory_everywhere(all_of_it, data);
    esp_dataset_free(data);
}

static int begin(void **state)
{
    (void)state;
    temporary_file("", path);
    return 0;
}

static int end(void **state)
{
    unlink(path);
    return no_blocks_left(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(faults),
        cmocka_unit_test(a_long_line),
        cmocka_unit_test(in_expressions),
        cmocka_unit_test(files_in_expressions),
        cmocka_unit_test(learning),
        cmocka_unit_test(learning_all),
        cmocka_unit_test(learning_odd_labels),
        cmocka_unit_test(warnings),
        cmocka_unit_test(unmatched_values),
        cmocka_unit_test(short_prints),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
