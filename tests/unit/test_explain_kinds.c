/* Explanations beyond plain kernels of trees and sequences: vectors, selected patterns, terms without features, several
 * classes, and what happens when memory runs out. */
#include "explain_cases.h"
#include "files.h"

/* -------------------------------------------------------------------- vectors */

static void values_of_vectors(void **state)
{
    (void)state;
    ref_random random = {3};
    esp_model *m = random_model("norm(linear(x)) + 2*linear(w)",
                                "{\"x\": {\"p\": 3, \"q\": 4}, \"w\": \"the The cat|N\"}\n"
                                "{\"x\": {\"q\": -2}, \"w\": \"cat\"}\n{\"x\": {}, \"w\": \"\"}\n",
                                0, false, &random);
    for (size_t i = 0; i < 3; i++) m->coefficient[i] = 1.0 + (double)i;
    esp_explainer *e = explainer_of(m);
    assert_int_equal(esp_explainer_terms(e), 2);
    assert_string_equal(esp_explainer_term(e, 0), "norm(linear(x))");
    assert_string_equal(esp_explainer_term(e, 1), "2*linear(w)");
    assert_string_equal(esp_explainer_column(e, 1), "w");
    assert_int_equal(esp_explainer_kind(e, 0), ESP_FEATURE_VALUE);
    assert_null(esp_explainer_reason(e, 0));
    esp_explanation *x = explained(e, NULL);
    static const struct {
        const char *text;
        size_t term, examples;
        double weight, occurrences;
    } expected[] = {{"q", 0, 2, 4.0 / 5.0 - 2.0, 2.0},
                    {"p", 0, 1, 3.0 / 5.0, 1.0},
                    {"cat", 1, 2, 6.0, 2.0},
                    {"the", 1, 1, 4.0, 2.0}};
    assert_int_equal(esp_explanation_count(x), 4);
    for (size_t i = 0; i < 4; i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        assert_string_equal(f->text, expected[i].text);
        assert_int_equal(f->term, expected[i].term);
        assert_int_equal(f->examples, expected[i].examples);
        assert_close(f->weight, expected[i].weight, 1e-12, f->text);
        assert_close(f->occurrences, expected[i].occurrences, 1e-12, f->text);
    }
    esp_dataset *data = dataset_of("{\"x\": {\"q\": 3, \"new\": 4}, \"w\": \"THE dog\"}\n");
    esp_explanation *y = explained_example(e, data, 0, &(esp_explain_options){.shares = true});
    assert_int_equal(esp_explanation_count(y), 2);
    assert_close(esp_explanation_feature(y, 0)->contribution, 4.0, 1e-12, "the");
    assert_close(esp_explanation_feature(y, 1)->contribution, -1.2 * 3.0 / 5.0, 1e-12, "q");
    assert_true(fabs(esp_explanation_rest(y, 0)) < 1e-12);
    assert_int_equal(esp_explanation_nodes(y, 0), 0);
    esp_explanation_free(x);
    esp_explanation_free(y);
    esp_dataset_free(data);
    esp_explainer_free(e);
    esp_model_free(m);
}

/* ----------------------------------------------------------- selected patterns */

static const char planted[] =
    "class HUM -> SBARQ.h\nclass LOC -> SBARQ.l\nclass NUM -> SBARQ.n\n"
    "SBARQ.h -> (WHNP (WP \"who\")) SQ.h .\nSBARQ.l -> (WHNP (WP \"where\")) SQ.l .\n"
    "SBARQ.n -> (WHNP (WP \"when\")) SQ.n .\n"
    "SQ.h -> V NP.where NP.when | V NP.when NP.where\nSQ.l -> V NP.who NP.when | V NP.when NP.who\n"
    "SQ.n -> V NP.who NP.where | V NP.where NP.who\n"
    "NP.who -> DT NN (SBAR (WHNP (WP \"who\")) VP)\nNP.where -> DT NN (SBAR (WHNP (WP \"where\")) VP)\n"
    "NP.when -> DT NN (SBAR (WHNP (WP \"when\")) VP)\n"
    "VP -> V (NP DT NN) | V | V ADV\nV -> \"saw\" | \"left\" | \"found\" | \"drew\"\nDT -> \"the\" | \"a\"\n"
    "NN -> \"poet\" | \"city\" | \"year\" | \"queen\" | \"map\"\nADV -> \"then\" | \"there\"\n. -> \"?\" | \"!\"\n";

static esp_model *trained(const char *learner, const char *expression, const esp_dataset *data,
                          const esp_setting *setting, size_t count)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_model *model = NULL;
    esp_error err = {0};
    assert_ok(esp_train(learner, kernel, data, setting, count, NULL, &model, &err), expression, &err);
    esp_kernel_free(kernel);
    return model;
}

/* No word, no word with its label and no production tells the classes apart; one fragment of each class does. */
static void planted_fragments(void **state)
{
    (void)state;
    static const char *const class[] = {"HUM", "LOC", "NUM"}, *const word[] = {"who", "where", "when"};
    static const struct {
        const char *learner, *kernel;
        esp_setting setting;
    } table[] = {{"svm", "norm(sst(tree, lambda=0.4))", {"C", "10"}},
                 {"svm", "sst(tree, lambda=0.2)", {"C", "1"}},
                 {"perceptron", "norm(sst(tree, lambda=0.4))", {"average", "1"}},
                 {"perceptron", "sst(tree, lambda=0.4)", {"epochs", "3"}},
                 {"svm", "norm(fsst(tree, lambda=0.4, n=4))", {"C", "10"}}};
    esp_dataset *data = sample_of(planted, 400, 7);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        esp_model *m = trained(table[i].learner, table[i].kernel, data, &table[i].setting, 1);
        esp_explainer *e = explainer_of(m);
        for (size_t c = 0; c < 3; c++) {
            char decisive[80];
            sprintf(decisive, "(SBARQ (WHNP (WP %s)) (SQ ...) (. ...))", word[c]);
            esp_explanation *x = explained(e, &(esp_explain_options){.class_name = class[c], .top = 3});
            assert_int_equal(esp_explanation_outputs(x), 1);
            assert_string_equal(esp_explanation_output(x, 0), class[c]);
            size_t found = 0;
            for (size_t k = 0; k < esp_explanation_count(x); k++) {
                const esp_feature *f = esp_explanation_feature(x, k);
                found += strcmp(f->text, decisive) == 0 && f->weight > 0.0;
            }
            if (found != 1)
                fail_msg("%s, class %s: the first is %s", table[i].kernel, class[c],
                         esp_explanation_feature(x, 0) -> text);
            esp_explanation_free(x);
        }
        esp_explainer_free(e);
        esp_model_free(m);
    }
    esp_dataset_free(data);
}

/* Whether a fragment as it is written, (NP (D ...) (N cat)), matches at a node. */
static bool matches(const ref_tree *fragment, const ref_tree *node)
{
    if (strcmp(fragment->label, node->label) != 0 || (fragment->children == 0) != (node->children == 0)) return false;
    if (fragment->children == 1 && strcmp(fragment->child[0]->label, "...") == 0) return true;
    if (fragment->children != node->children) return false;
    for (size_t i = 0; i < node->children; i++)
        if (!matches(fragment->child[i], node->child[i])) return false;
    return true;
}

static double count_below(const ref_tree *fragment, const ref_tree *node)
{
    double count = node->children > 0 && matches(fragment, node);
    for (size_t i = 0; i < node->children; i++) count += count_below(fragment, node->child[i]);
    return count;
}

static double count_in(const esp_dataset *trees, size_t row, const char *fragment)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_dataset_text(trees, 0, row, &text, &err), "text", &err);
    ref_tree *t = ref_tree_parse(text), *f = ref_tree_parse(fragment);
    const double count = count_below(f, t);
    ref_tree_free(f);
    ref_tree_free(t);
    esp_text_free(text);
    return count;
}

/* Each class has patterns of its own; weights by the counts of the definition. */
static void selected_fragments(void **state)
{
    (void)state;
    esp_dataset *data = sample_of(planted, 60, 3), *fresh = sample_of(planted, 6, 4);
    esp_model *m = trained("svm", "fsst(tree, lambda=0.5, n=3, support=2)", data, &(esp_setting){"C", "1"}, 1);
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained(e, &(esp_explain_options){.top = 8});
    assert_true(esp_explanation_count(x) > 15);
    size_t shared = 0;
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        double examples = 0.0, occurrences = 0.0;
        for (size_t k = 0; k < 3; k++) {
            double sum = 0.0;
            for (size_t s = 0; s < m->support->rows; s++) {
                const double count = count_in(m->support, s, f->text);
                sum += m->coefficient[s * 3 + k] * count * pow(0.5, (double)f->size);
                if (k == 0) examples += count > 0.0, occurrences += count;
            }
            const double is = esp_explanation_weight(x, i, k);
            if (k == f->output) assert_close(f->weight, sum, 1e-9, f->text);
            if (is != 0.0) assert_close(is, sum, 1e-9, f->text);
            shared += k != f->output && is != 0.0;
        }
        assert_true((double)f->examples == examples && f->occurrences == occurrences);
    }
    assert_true(shared > 0);
    esp_predictions *p = NULL;
    esp_error err = {0};
    assert_ok(esp_predict(m, fresh, NULL, &p, &err), "predict", &err);
    for (size_t r = 0; r < 6; r++) {
        esp_explanation *y = explained_example(e, fresh, r, &(esp_explain_options){.top = 5, .shares = true});
        for (size_t k = 0; k < 3; k++) {
            double sum = 0.0;
            assert_adds_up(y, esp_predictions_column(p, r, k), k);
            for (size_t n = 0; n < esp_explanation_nodes(y, 0); n++) sum += esp_explanation_share(y, 0, n, k);
            assert_true(esp_explanation_nodes(y, 0) > 10);
            assert_true(fabs(sum - esp_explanation_term_score(y, k, 0)) < 1e-9);
        }
        esp_explanation_free(y);
    }
    esp_predictions_free(p);
    esp_explanation_free(x);
    esp_explainer_free(e);
    esp_model_free(m);
    esp_dataset_free(data);
    esp_dataset_free(fresh);
}

/* The share of a node under fsst: (A ...) has one production, so its node has it all; (S (A x) (B ...)) has two. */
static void shares_of_selected_fragments(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"y\": 1, \"tree\": \"(S (A x) (B y))\"}\n{\"y\": 1, \"tree\": \"(S (A x) (B z))\"}\n"
                   "{\"y\": -1, \"tree\": \"(S (A y) (B y))\"}\n{\"y\": -1, \"tree\": \"(S (A y) (B z))\"}\n");
    esp_model *m = trained("svm", "fsst(tree, lambda=0.5, n=2, tau=3.9)", data, &(esp_setting){"C", "1"}, 1);
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained(e, NULL), *y = explained_example(e, data, 0, &(esp_explain_options){.shares = true});
    double one = 0.0, two = 0.0;
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        if (strcmp(f->text, "(A x)") == 0) one = f->weight;
        if (strcmp(f->text, "(S (A x) (B ...))") == 0) two = f->weight;
    }
    assert_true(one > 0.0 && two > 0.0);
    const double expected[] = {two / 2.0, one + two / 2.0, 0.0, 0.0, 0.0};
    assert_int_equal(esp_explanation_nodes(y, 0), 5);
    for (size_t n = 0; n < 5; n++) assert_true(fabs(esp_explanation_share(y, 0, n, 0) - expected[n]) < 1e-12);
    esp_explanation_free(x);
    esp_explanation_free(y);
    esp_explainer_free(e);
    esp_model_free(m);
    esp_dataset_free(data);
}

static void selected_sequences(void **state)
{
    (void)state;
    esp_dataset *data = sample_of(planted, 80, 5);
    esp_model *m = trained("svm", "norm(fseq(words, n=2, support=2)) + norm(fsst(tree, n=2))", data,
                           &(esp_setting){"multiclass", "ovo"}, 1);
    esp_explainer *e = explainer_of(m);
    esp_explanation *y = explained_example(e, data, 1, &(esp_explain_options){.top = 1000});
    assert_int_equal(esp_explanation_outputs(y), 3);
    assert_string_equal(esp_explanation_output(y, 0), "HUM against LOC");
    assert_int_equal(esp_explainer_kind(e, 0), ESP_FEATURE_PATTERN);
    assert_int_equal(esp_explainer_kind(e, 1), ESP_FEATURE_FRAGMENT);
    /* All features are listed, so that nothing is left. */
    for (size_t k = 0; k < 3; k++) {
        assert_adds_up(y, esp_explanation_score(y, k), k);
        assert_true(fabs(esp_explanation_rest(y, k)) < 1e-9);
        assert_true(esp_explanation_is_exact(y, k, NULL));
    }
    esp_explanation_free(y);
    y = explained_example(e, data, 1, &(esp_explain_options){.class_name = "LOC"});
    assert_int_equal(esp_explanation_outputs(y), 2);
    assert_string_equal(esp_explanation_output(y, 0), "LOC against HUM");
    assert_string_equal(esp_explanation_output(y, 1), "LOC against NUM");
    esp_explanation_free(y);
    esp_explainer_free(e);
    esp_model_free(m);
    esp_dataset_free(data);
}

/* ----------------------------------------------------- terms without features */

static void support_examples_instead(void **state)
{
    (void)state;
    ref_random random = {9};
    static const char lines[] =
        "{\"tree\": \"(S (A a))\", \"x\": {\"p\": 1}}\n{\"tree\": \"(S (A b))\", \"x\": {\"p\": 2}}\n"
        "{\"tree\": \"(S (A a) (A b))\", \"x\": {\"q\": 1}}\n";
    static const struct {
        const char *kernel, *reason;
    } table[] = {{"sst(tree)*linear(x)", "is a product of kernels"},
                 {"norm(sst(tree)*linear(x))", "is a product of kernels"},
                 {"sst(tree)^2", "is a power of a kernel"},
                 {"norm(sst(tree) + linear(x))", "is a norm of several kernels"},
                 {"0.5*poly(x)", "has products of features"},
                 {"rbf(x)", "measures distances"},
                 {"ptk(tree)", "matches fragments in part"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        esp_model *m = random_model(table[i].kernel, lines, 2, false, &random);
        m->coefficient[0] = 1.5;
        esp_explainer *e = explainer_of(m);
        esp_explanation *x = (esp_explanation *)(uintptr_t)1, *y;
        esp_error err = {0};
        assert_int_equal(esp_explainer_kind(e, 0), ESP_FEATURE_EXAMPLE);
        assert_null(esp_explainer_column(e, 0));
        assert_non_null(strstr(esp_explainer_reason(e, 0), table[i].reason));
        assert_int_equal(esp_explain(e, NULL, NULL, &x, &err), ESP_ERR_PARAM);
        assert_null(x);
        assert_non_null(strstr(err.message, "support examples"));
        esp_dataset *data = dataset_of("{\"tree\": \"(S (A a))\", \"x\": {\"p\": 3, \"q\": 1}}\n");
        y = explained_example(e, data, 0, &(esp_explain_options){.shares = true, .class_name = "B"});
        esp_predictions *p = NULL;
        assert_ok(esp_predict(m, data, NULL, &p, &err), "predict", &err);
        assert_adds_up(y, esp_predictions_score(p, 0), 0);
        assert_true(fabs(esp_explanation_rest(y, 0)) < 1e-9);
        const esp_feature *f = esp_explanation_feature(y, 0);
        assert_int_equal(f->kind, ESP_FEATURE_EXAMPLE);
        if (f->text[0] == '1') assert_string_equal(f->text, "1: (S (A a)) {\"p\": 1}");
        assert_int_equal(esp_explanation_nodes(y, 0), 0);
        esp_predictions_free(p);
        esp_explanation_free(y);
        esp_dataset_free(data);
        esp_explainer_free(e);
        esp_model_free(m);
    }
}

static void terms_of_both_kinds(void **state)
{
    (void)state;
    ref_random random = {10};
    esp_model *m =
        random_model("sst(tree) + poly(x)", "{\"tree\": \"(S (A a))\", \"x\": {\"p\": 1}}\n", 2, false, &random);
    m->coefficient[0] = 2.0;
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained(e, NULL), *y = explained_example(e, m->support, 0, NULL),
                    *z = explained_example(e, m->support, 0, &(esp_explain_options){.class_name = "A"});
    for (size_t i = 0; i < esp_explanation_count(x); i++) assert_int_equal(esp_explanation_feature(x, i)->term, 0);
    assert_int_equal(esp_explanation_count(x), 3);
    assert_int_equal(esp_explanation_count(y), 4);
    assert_int_equal(esp_explanation_feature(y, 0)->kind, ESP_FEATURE_EXAMPLE); /* 2 * (1 + 1)^3 */
    assert_close(esp_explanation_feature(y, 0)->contribution, 16.0, 1e-12, "example");
    /* Turned round for the first of two classes. */
    assert_string_equal(esp_explanation_output(y, 0), "B");
    assert_string_equal(esp_explanation_output(z, 0), "A");
    assert_true(esp_explanation_score(z, 0) == -esp_explanation_score(y, 0));
    assert_true(esp_explanation_bias(z, 0) == -esp_explanation_bias(y, 0));
    assert_close(esp_explanation_feature(z, 0)->contribution, -16.0, 1e-12, "example");
    assert_adds_up(z, esp_explanation_score(z, 0), 0);
    esp_explanation_free(x);
    esp_explanation_free(y);
    esp_explanation_free(z);
    esp_explainer_free(e);
    esp_model_free(m);
}

/* --------------------------------------------------------------------- memory */

static esp_status all_of_it(const void *argument, esp_error *err)
{
    const esp_model *m = argument;
    const esp_explain_options o = {.top = 5, .shares = true};
    esp_explainer *e = (esp_explainer *)(uintptr_t)1;
    esp_explanation *x = NULL, *y = NULL;
    char *text = NULL;
    esp_status status = esp_explainer_new(m, &(esp_run){.threads = 1}, &e, err);
    assert_true((status == ESP_OK) == (e != NULL));
    if (status == ESP_OK) status = esp_explain(e, &o, &(esp_run){.threads = 1}, &x, err);
    if (status == ESP_OK) status = esp_explain_example(e, m->support, 1, &o, &(esp_run){.threads = 1}, &y, err);
    if (status == ESP_OK) status = esp_explanation_json(y, &text, err);
    assert_true((status == ESP_OK) == (text != NULL));
    esp_text_free(text);
    esp_explanation_free(x);
    esp_explanation_free(y);
    esp_explainer_free(e);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    ref_random random = {8};
    esp_dataset *data = sample_of(planted, 12, 5);
    esp_model *models[] = {random_model("norm(sst(tree, bow=0.5)) + seq(w, n=2) + linear(w) + poly(x) + st(tree)",
                                        "{\"tree\": \"(S (A a) (B (A a)))\", \"w\": \"a b\", \"x\": {\"p\": 1}}\n"
                                        "{\"tree\": \"(S (B (A b)))\", \"w\": \"b b\", \"x\": {\"q\": 1}}\n",
                                        3, false, &random),
                           trained("svm", "fsst(tree, n=2, tau=3) + norm(fseq(words, n=1, tau=3))", data, NULL, 0)};
    for (size_t i = 0; i < 2; i++) {
        out_of_memory_everywhere(all_of_it, models[i]);
        esp_model_free(models[i]);
    }
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_vectors),   cmocka_unit_test(planted_fragments),
        cmocka_unit_test(selected_fragments),  cmocka_unit_test(shares_of_selected_fragments),
        cmocka_unit_test(selected_sequences),  cmocka_unit_test(support_examples_instead),
        cmocka_unit_test(terms_of_both_kinds), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
