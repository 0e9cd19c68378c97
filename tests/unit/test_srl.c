/* Examples for semantic role labelling: the pieces of trees, the candidates and their labels against a slow reference,
 * heads, voice and features. */
#include "srl_cases.h"

#include "task/srl.h"

/* -------------------------------------------------------------- known values */

static void pieces_of_the_specification(void **state)
{
    (void)state;
    static const char *const plain[][2] = {
        {"1", "(S (N Mary) (VP (V brought)))"},
        {"1", "(VP (V brought) (NP (D a) (N cat)))"},
        {"-1", "(VP (V brought) (NP (D a)))"},
        {"-1", "(VP (V brought) (NP (N cat)))"},
        {"1", "(VP (V brought) (PP (IN to) (N school)))"},
        {"-1", "(VP (V brought) (PP (IN to)))"},
        {"-1", "(VP (V brought) (PP (N school)))"},
    };
    static const char *const marked[][2] = {
        {"1", "(S (N-B Mary) (VP (V-P brought)))"},
        {"1", "(VP (V-P brought) (NP-B (D a) (N cat)))"},
        {"-1", "(VP (V-P brought) (NP (D-B a)))"},
    };
    const esp_srl_options no_mark = {.no_mark = true};
    esp_dataset *data = examples_of(WORKED_SRL, &no_mark, NULL);
    assert_int_equal(esp_dataset_count(data), 7);
    for (size_t i = 0; i < 7; i++) assert_example(data, i, plain[i][0], plain[i][1]);
    esp_dataset_free(data);
    data = examples_of(WORKED_SRL, NULL, NULL);
    for (size_t i = 0; i < 3; i++) assert_example(data, i, marked[i][0], marked[i][1]);
    esp_dataset_free(data);
    data = examples_of(WORKED_SRL, &(esp_srl_options){.task = ESP_SRL_ROLE}, NULL);
    assert_int_equal(esp_dataset_count(data), 3);
    assert_example(data, 0, "ARG0", marked[0][1]);
    assert_example(data, 1, "ARG1", marked[1][1]);
    assert_example(data, 2, "ARG2", "(VP (V-P brought) (PP-B (IN to) (N school)))");
    esp_dataset_free(data);
}

static void split_pieces_of_the_specification(void **state)
{
    (void)state;
    static const struct {
        const char *target, *tree, *path, *cs;
    } marked[] = {
        {"ARG0", "(S (N-B Mary) (VP (V-P brought)))", "(S (N-B *) (VP (V-P brought)))", "(N-B Mary)"},
        {"ARG1", "(VP (V-P brought) (NP-B (D a) (N cat)))", "(VP (V-P brought) (NP-B *))", "(NP-B (D a) (N cat))"},
        {"ARG2", "(VP (V-P brought) (PP-B (IN to) (N school)))", "(VP (V-P brought) (PP-B *))",
         "(PP-B (IN to) (N school))"},
    };
    static const char *const plain[][2] = {
        {"(S (N *) (VP (V brought)))", "(N Mary)"},
        {"(VP (V brought) (NP *))", "(NP (D a) (N cat))"},
        {"(VP (V brought) (NP (D *)))", "(D a)"},
        {"(VP (V brought) (NP (N *)))", "(N cat)"},
        {"(VP (V brought) (PP *))", "(PP (IN to) (N school))"},
        {"(VP (V brought) (PP (IN *)))", "(IN to)"},
        {"(VP (V brought) (PP (N *)))", "(N school)"},
    };
    for (int svmtk = 0; svmtk < 2; svmtk++) {
        esp_srl_options options = {
            .task = ESP_SRL_ROLE, .split = true, .to = svmtk ? ESP_FORMAT_SVMTK : ESP_FORMAT_JSONL};
        esp_dataset *data = examples_of(WORKED_SRL, &options, NULL);
        assert_int_equal(esp_dataset_count(data), 3);
        assert_int_equal(esp_dataset_columns(data), 4);
        assert_string_equal(esp_dataset_column_name(data, 1), svmtk ? "tree2" : "path");
        assert_string_equal(esp_dataset_column_name(data, 2), svmtk ? "tree3" : "cs");
        for (size_t i = 0; i < 3; i++) {
            assert_example(data, i, marked[i].target, marked[i].tree);
            assert_split(data, i, marked[i].path, marked[i].cs);
        }
        esp_dataset_free(data);
        options.task = ESP_SRL_BOUNDARY;
        options.no_mark = true;
        data = examples_of(WORKED_SRL, &options, NULL);
        assert_int_equal(esp_dataset_count(data), 7);
        for (size_t i = 0; i < 7; i++) assert_split(data, i, plain[i][0], plain[i][1]);
        esp_dataset_free(data);
    }
}

static void roles_by_rule(void **state)
{
    (void)state;
    const char *srl = "T\td\t0\t(S (A a) (B b) (C c) (D d) (E e) (V f))\n"
                      "P\t5\tf\tf.01\tARGM-TMP:0-0 R-ARG0:1-1 C-ARG1-DSP:2-2 V:5-5 C-V:3-3 ARGA:4-4\n";
    static const char *const plain[] = {"ARGM", "ARG0", "ARG1", "ARGA"}, *const full[] = {"ARGM-TMP", "R-ARG0",
                                                                                          "C-ARG1-DSP", "ARGA"};
    for (int f = 0; f < 2; f++) {
        esp_srl_counts counts;
        esp_dataset *data = examples_of(srl, &(esp_srl_options){.task = ESP_SRL_ROLE, .full_roles = f}, &counts);
        assert_int_equal(esp_dataset_count(data), 4);
        assert_int_equal(counts.arguments, 4);
        for (size_t i = 0; i < 4; i++) assert_string_equal(esp_dataset_target(data, i), (f ? full : plain)[i]);
        esp_dataset_free(data);
    }
}

static void counts_of_arguments(void **state)
{
    (void)state;
    const char *srl = "T\td\t0\t(S (A a) (X (B b) (C c)) (V d) (D e) (E f))\n"
                      "P\t3\td\td.01\tARG0:0-1 ARG1:1-2 ARG2:1-2 ARG3:2-2 V:3-3 ARG4:3-4 ARG5:5-5\n"
                      "T\td\t1\t(S (A a))\n";
    esp_srl_counts counts;
    esp_dataset *data = examples_of(srl, &(esp_srl_options){.task = ESP_SRL_ROLE}, &counts);
    assert_int_equal(counts.sentences, 2);
    assert_int_equal(counts.predicates, 1);
    assert_int_equal(counts.arguments, 6);
    assert_int_equal(counts.no_constituent, 1); /* ARG0 */
    assert_int_equal(counts.around, 1);         /* ARG4 */
    assert_int_equal(counts.repeated, 1);       /* ARG2 */
    assert_int_equal(counts.overlapping, 2);    /* ARG1 with ARG0, ARG3 with ARG1 */
    assert_int_equal(counts.examples, 3);
    assert_string_equal(esp_dataset_target(data, 0), "ARG1"); /* the first of two with one span */
    assert_string_equal(esp_dataset_target(data, 1), "ARG3");
    assert_string_equal(esp_dataset_target(data, 2), "ARG5");
    esp_dataset_free(data);
}

/* ---------------------------------------------- a slow reference on random trees */

enum { MOST_EXAMPLES = 4000 };

typedef struct ref_example {
    char *tree, *path, *cs;
    const char *target;
} ref_example;

typedef struct ref_argument {
    const char *role;
    size_t first, last;
} ref_argument;

typedef struct ref_problem {
    const ref_tree *root;
    size_t token;
    ref_argument argument[5];
    size_t arguments;
    esp_srl_options options;
    ref_example example[MOST_EXAMPLES];
    size_t examples;
} ref_problem;

static size_t ref_leaves(const ref_tree *t)
{
    size_t count = t->children == 0;
    for (size_t i = 0; i < t->children; i++) count += ref_leaves(t->child[i]);
    return count;
}

static bool ref_within(const ref_tree *t, const ref_tree *node)
{
    if (t == node) return true;
    for (size_t i = 0; i < t->children; i++)
        if (ref_within(t->child[i], node)) return true;
    return false;
}

static const ref_tree *ref_leaf(const ref_tree *t, size_t number)
{
    if (t->children == 0) return t;
    for (size_t i = 0; i < t->children; i++) {
        const size_t count = ref_leaves(t->child[i]);
        if (number < count) return ref_leaf(t->child[i], number);
        number -= count;
    }
    return NULL;
}

static const ref_tree *ref_parent(const ref_tree *t, const ref_tree *node)
{
    for (size_t i = 0; i < t->children; i++) {
        if (t->child[i] == node) return t;
        const ref_tree *found = ref_parent(t->child[i], node);
        if (found != NULL) return found;
    }
    return NULL;
}

/* A node is kept if it is on a way down to the word or to the candidate, or inside the candidate; without `inside`, a
 * star stands for those. */
static void ref_piece(const ref_tree *t, const ref_tree *word, const ref_tree *parent, const ref_tree *candidate,
                      bool marks, bool inside, char *out)
{
    if (t->children == 0) {
        strcat(strcat(out, " "), t->label);
        return;
    }
    strcat(strcat(out, out[0] == '\0' ? "(" : " ("), t->label);
    if (marks && t == parent) strcat(out, "-P");
    if (marks && t == candidate) strcat(out, "-B");
    if (t == candidate && !inside) strcat(out, " *");
    for (size_t i = 0; i < t->children && (t != candidate || inside); i++) {
        const ref_tree *c = t->child[i];
        if (ref_within(candidate, c) || ref_within(c, candidate) || ref_within(c, word))
            ref_piece(c, word, parent, candidate, marks, inside, out);
    }
    strcat(out, ")");
}

/* The lowest node that holds both. */
static const ref_tree *ref_meeting(const ref_tree *t, const ref_tree *a, const ref_tree *b)
{
    for (size_t i = 0; i < t->children; i++)
        if (ref_within(t->child[i], a) && ref_within(t->child[i], b)) return ref_meeting(t->child[i], a, b);
    return t;
}

static void ref_visit(ref_problem *p, const ref_tree *t, size_t first, size_t parent_leaves)
{
    const size_t leaves = ref_leaves(t);
    if (t->children == 0) return;
    const ref_tree *word = ref_leaf(p->root, p->token);
    const char *target = NULL;
    for (size_t i = 0; i < p->arguments && target == NULL; i++)
        if (p->argument[i].first == first && p->argument[i].last == first + leaves - 1 &&
            (leaves != parent_leaves || p->options.unary_all))
            target = p->argument[i].role;
    if (!ref_within(t, word) && (target != NULL || p->options.task == ESP_SRL_BOUNDARY)) {
        assert_true(p->examples < MOST_EXAMPLES);
        const ref_tree *meeting = ref_meeting(p->root, t, word), *parent = ref_parent(p->root, word);
        const bool marks = !p->options.no_mark;
        char tree[4096] = "", path[4096] = "", cs[4096] = "";
        ref_piece(meeting, word, parent, t, marks, true, tree);
        ref_piece(meeting, word, parent, t, marks, false, path);
        ref_piece(t, word, parent, t, marks, true, cs);
        if (p->options.task == ESP_SRL_BOUNDARY) target = target != NULL ? "1" : "-1";
        p->example[p->examples++] = (ref_example){strdup(tree), strdup(path), strdup(cs), target};
    }
    for (size_t i = 0; i < t->children; i++) {
        ref_visit(p, t->child[i], first, leaves);
        first += ref_leaves(t->child[i]);
    }
}

static void candidates_equal_the_reference(void **state)
{
    (void)state;
    static const char *const roles[] = {"ARG0", "ARG1", "ARG2", "ARGM", "ARG5"};
    ref_random random = {7};
    size_t positives = 0, compared = 0;
    for (int round = 0; round < 800; round++) {
        static ref_problem p;
        p = (ref_problem){.options = {.task = round % 3 == 0 ? ESP_SRL_ROLE : ESP_SRL_BOUNDARY,
                                      .unary_all = round % 2 == 0,
                                      .no_mark = round % 5 == 0,
                                      .split = round % 11 < 5,
                                      .to = round % 4 == 0 ? ESP_FORMAT_SVMTK : ESP_FORMAT_JSONL}};
        char *text = ref_random_tree(&random, 3 + ref_random_below(&random, 40), round % 7 == 0);
        ref_tree *tree = ref_tree_parse(text);
        p.root = tree;
        const size_t leaves = ref_leaves(tree);
        p.token = ref_random_below(&random, leaves);
        char srl[8192];
        int size =
            snprintf(srl, sizeof srl, "T\td\t0\t%s\nP\t%zu\tdo\tdo.01\tV:%zu-%zu", text, p.token, p.token, p.token);
        for (; p.arguments < 5; p.arguments++) {
            ref_argument *a = &p.argument[p.arguments];
            a->role = roles[ref_random_below(&random, 5)];
            a->first = ref_random_below(&random, leaves);
            a->last = a->first + ref_random_below(&random, leaves - a->first < 3 ? leaves - a->first : 3);
            size += snprintf(srl + size, sizeof srl - (size_t)size, " %s:%zu-%zu", a->role, a->first, a->last);
        }
        snprintf(srl + size, sizeof srl - (size_t)size, "\n");
        ref_visit(&p, tree, 0, SIZE_MAX);
        esp_srl_counts counts;
        esp_error err = {0};
        assert_ok(try_write(srl, &p.options, &counts, &err), srl, &err);
        assert_int_equal(counts.examples, p.examples);
        if (p.examples > 0) {
            esp_dataset *data = read_back();
            assert_int_equal(esp_dataset_count(data), p.examples);
            for (size_t i = 0; i < p.examples; i++) {
                assert_example(data, i, p.example[i].target, p.example[i].tree);
                if (p.options.split) assert_split(data, i, p.example[i].path, p.example[i].cs);
                positives += p.example[i].target[0] != '-';
                free(p.example[i].tree);
                free(p.example[i].path);
                free(p.example[i].cs);
            }
            esp_dataset_free(data);
        }
        compared += p.examples;
        ref_tree_free(tree);
        free(text);
    }
    if (compared < 2000 || positives < 400)
        fail_msg("only %zu examples, %zu of arguments, were seen", compared, positives);
}

/* ------------------------------------------------------------ heads and features */

static void parse_tree(const char *text, espi_srl_tree *tree)
{
    espi_forest forest = {0};
    espi_tree_parser parser = {0};
    size_t used;
    espi_tree_begin(&parser, &forest, false);
    assert_int_equal(espi_tree_feed(&parser, text, strlen(text), &used), ESPI_TREE_COMPLETE);
    assert_true(espi_srl_tree_set(tree, &forest, parser.root, false));
    espi_tree_parser_free(&parser);
    espi_forest_free(&forest);
}

static void heads_of_phrases(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"(NP (DT the) (JJ old) (NN cat))", "cat"},
        {"(NP (NP (DT the) (NN cat)) (PP (IN of) (NP (NNP Mary))))", "cat"},
        {"(NP (NP (NNP Mary) (POS 's)) (NN cat))", "cat"},
        {"(NP-SBJ (NN school) (NNS cats))", "cats"},
        {"(NP (PRP she))", "she"},
        {"(NP (CD 28))", "28"},
        {"(PP (IN to) (NP (NN school)))", "to"},
        {"(PP (ADVP (RB right)) (IN to) (NP (NN school)))", "to"},
        {"(VP (MD will) (VP (VB go)))", "will"},
        {"(VP (ADVP (RB often)) (VBD went) (NP (NN home)))", "went"},
        {"(S (NP (PRP she)) (VP (VBD went)) (. .))", "went"},
        {"(SBAR (IN that) (S (NP (PRP she)) (VP (VBD went))))", "that"},
        {"(SBAR (WHNP (WP who)) (S (VP (VBD went))))", "who"},
        {"(SQ (VBD was) (NP (PRP she)) (ADJP (JJ old)))", "was"},
        {"(ADJP (RB very) (JJ old))", "old"},
        {"(ADVP (RB very) (RB often))", "often"},
        {"(WHPP (IN to) (WHNP (WP whom)))", "to"},
        {"(QP (RB about) (CD ten))", "about"},
        {"(PRT (RP up))", "up"},
        {"(ODD (X a) (Y b))", "a"},
        {"(X a (B b) c)", "b"},
        {"(-LRB- -LRB-)", "-lrb-"},
    };
    espi_srl_tree tree = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        parse_tree(table[i][0], &tree);
        const espi_srl_piece word = tree.leaf[tree.node[0].head].name;
        if (!espi_srl_is(&tree, word, table[i][1]))
            fail_msg("the head of %s is %.*s", table[i][0], (int)word.size, tree.names.bytes + word.at);
    }
    espi_srl_tree_free(&tree);
}

static void voice_of_predicates(void **state)
{
    (void)state;
    static const struct {
        const char *tree;
        uint32_t token;
        bool passive;
    } table[] = {
        {"(S (NP (NN cat)) (VP (VBD was) (VP (VBN seen))))", 2, true},
        {"(S (NP (NN cat)) (VP (VBD was) (VP (VBN seen))))", 1, false},
        {"(S (NP (NN cat)) (VP (VBD got) (ADVP (RB often)) (VP (VBN seen))))", 3, true},
        {"(S (NP (NN cat)) (VP (VBZ has) (VP (VBN seen) (NP (PRP it)))))", 2, false},
        {"(S (NP (NN cat)) (VP (VBZ has) (VP (VBN been) (VP (VBN seen)))))", 3, true},
        {"(S (NP (NN cat)) (VP (VBZ has) (VP (VP (VBN come)) (CC and) (VP (VBN seen)))))", 4, false},
        {"(SQ (VBD was) (NP (PRP it)) (VP (VBN seen)))", 2, true},
        {"(NP (NP (DT the) (NN cat)) (VP (VBN seen) (ADVP (RB there))))", 2, true},
        {"(S (NP (PRP I)) (VP (VBD saw) (NP (PRP it))))", 1, false},
        {"(S (NP (NN _)) (VP (VBZ _) (VP (VBN see))))", 2, true},
        {"(S (NP (NN _)) (VP (VBZ have) (VP (VBN see))))", 2, false},
        {"(S (NP (NN cat)) (VP (MD could) (VP (VB 've) (VP (VBN seen)))))", 3, false},
    };
    espi_srl_tree tree = {0};
    espi_srl_spine spine = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        parse_tree(table[i].tree, &tree);
        assert_true(espi_srl_spine_set(&spine, &tree, table[i].token, true));
        if (espi_srl_passive(&tree, &spine) != table[i].passive) fail_msg("%s", table[i].tree);
    }
    espi_srl_tree_free(&tree);
    espi_srl_spine_free(&spine);
}

/* The vector of one example, as JSON. */
static void assert_features(const char *srl, size_t example, const char *const *names)
{
    esp_dataset *data = examples_of(srl, NULL, NULL);
    char *text = text_of(data, 1, example), wanted[4096] = "{";
    size_t count = 0, found = 0;
    for (const char *c = text; (c = strstr(c, "\": 1")) != NULL; c++) found++;
    for (; names[count] != NULL; count++) {
        snprintf(wanted, sizeof wanted, "\"%s\": 1", names[count]);
        if (strstr(text, wanted) == NULL) fail_msg("%s is not in %s", wanted, text);
    }
    if (count != found) fail_msg("%zu features instead of %zu: %s", found, count, text);
    esp_text_free(text);
    esp_dataset_free(data);
}

static void features_of_a_sentence(void **state)
{
    (void)state;
    const char *words = "T\td\t0\t(TOP (S (NP (PRP$ My) (NN cat)) (VP (VBD was) (VP (VBN seen) (PP (IN by) (NP (NNP "
                        "Mary)) ) (NP (NN today)))) (. .)))\n"
                        "P\t3\tsee\tsee.01\tARG1:0-1 V:3-3 ARG0:4-5 ARGM-TMP:6-6\n";
    assert_features(words, 0,
                    (const char *const[]){"pt=NP",          "hw=cat",        "hp=NN",         "fw=my",
                                          "fp=PRP$",        "lw=cat",        "lp=NN",         "gov=S",
                                          "rs=VP",          "par=S",         "exp=PRP$-NN",   "pl=see",
                                          "pw=seen",        "pp=VBN",        "voice=passive", "sub=VP>VBN*-PP-NP",
                                          "ob=today",       "pg=VP",         "pos=before",    "path=VBN^VP^VP^S!NP",
                                          "up=VBN^VP^VP^S", "down=1",        "dist=1",        "cl=1",
                                          "nb=0",           "lca=NP*-VP'-.", "plt=see+NP",    NULL});
    assert_features(words, 4,
                    (const char *const[]){
                        /* the PP; before it: PRP$, NN, VBD */
                        "pt=PP",     "hw=by",   "hp=IN",     "fw=by",           "fp=IN",         "lw=mary",
                        "lp=NNP",    "ow=mary", "op=NNP",    "ls=VBN",          "rs=NP",         "par=VP",
                        "exp=IN-NP", "pl=see",  "pw=seen",   "pp=VBN",          "voice=passive", "sub=VP>VBN*-PP-NP",
                        "ob=today",  "pg=VP",   "pos=after", "path=VBN^VP!PP",  "up=VBN^VP",     "down=1",
                        "dist=0",    "cl=0",    "nb=0",      "lca=VBN'-PP*-NP", "plt=see+PP",    NULL});
    /* Without words; a noun below a verb; an NP that is nearer; a unary chain; control. */
    const char *bare =
        "T\td\t0\t(S (NP (PRP _)) (VP (VBD want) (NP (NN _)) (S (VP (TO _) (VP (VB see) (NP (DT _)))))))\n"
        "P\t4\tsee\tsee.01\tARG1:5-5\n";
    assert_features(bare, 1,
                    (const char *const[]){/* PRP below the first NP */
                                          "pt=PRP",
                                          "hp=PRP",
                                          "fp=PRP",
                                          "lp=PRP",
                                          "par=NP",
                                          "un=1",
                                          "pl=see",
                                          "pw=see",
                                          "pp=VB",
                                          "voice=active",
                                          "sub=VP>VB*-NP",
                                          "gv=want",
                                          "pg=VP",
                                          "pos=before",
                                          "path=VB^VP^VP^S^VP^S!NP!PRP",
                                          "up=VB^VP^VP^S^VP^S",
                                          "down=2",
                                          "dist=3",
                                          "cl=2",
                                          "nb=1",
                                          "lca=NP*-VP'",
                                          "plt=see+PRP",
                                          NULL});
}

static void names_are_escaped(void **state)
{
    (void)state;
    const char *srl = "T\td\t0\t(S (`` \\\"Oh\\\\\") (V a\\ b))\nP\t1\ta\"b\ta.01\t\n";
    assert_features(srl, 0, (const char *const[]){"pt=``",         "hw=\\\\\\\"oh\\\\\\\"",
                                                  "hp=``",         "fw=\\\\\\\"oh\\\\\\\"",
                                                  "fp=``",         "lw=\\\\\\\"oh\\\\\\\"",
                                                  "lp=``",         "rs=V",
                                                  "par=S",         "pl=a\\\"b",
                                                  "pw=a b",        "pp=V",
                                                  "voice=active",  "sub=S>``-V*",
                                                  "pos=before",    "path=V^S!``",
                                                  "up=V^S",        "down=1",
                                                  "dist=0",        "cl=1",
                                                  "nb=0",          "lca=``*-V'",
                                                  "plt=a\\\"b+``", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_the_specification),
        cmocka_unit_test(split_pieces_of_the_specification),
        cmocka_unit_test(roles_by_rule),
        cmocka_unit_test(counts_of_arguments),
        cmocka_unit_test(candidates_equal_the_reference),
        cmocka_unit_test(heads_of_phrases),
        cmocka_unit_test(voice_of_predicates),
        cmocka_unit_test(features_of_a_sentence),
        cmocka_unit_test(names_are_escaped),
    };
    return cmocka_run_group_tests(tests, make_directory, tear_down);
}
