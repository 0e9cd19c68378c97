/* Explanations of tree kernels against full enumeration: every fragment of every support tree, with its weight from the
 * definition; every place of every fragment of an example, for the shares of nodes. */
#include "explain_cases.h"

enum { TREES = 14, TOP = 100 };

typedef struct kernel_case {
    const char *expression;
    ref_weights weights;
    bool norm;
    double scale;
} kernel_case;

static const ref_symbol symbols[] = {{"VP", 0.9, 0.3}, {"S", 1.3, 1.0}, {"NP", 0.2, 0.0}, {"X", 0.7, 1.4}};
static const kernel_case cases[] = {
    {"sst(tree, lambda=0.4)", {.lambda = 0.4, .alpha = 1.0}, false, 1.0},
    {"norm(sst(tree, lambda=0.4))", {.lambda = 0.4, .alpha = 1.0}, true, 1.0},
    {"0.3*norm(sst(tree, lambda=1))", {.lambda = 1.0, .alpha = 1.0}, true, 0.3},
    {"sst(tree, lambda=1.5, alpha=0.5)", {.lambda = 1.5, .alpha = 0.5}, false, 1.0},
    {"2*sst(tree, lambda=0.3, alpha=1.7, bow=0.5)", {.lambda = 0.3, .alpha = 1.7, .bow = 0.5}, false, 2.0},
    {"norm(st(tree, lambda=0.6))", {.lambda = 0.6, .alpha = 0.0}, true, 1.0},
    {"st(tree, lambda=1.2, bow=1)", {.lambda = 1.2, .alpha = 0.0, .bow = 1.0}, false, 1.0},
    {"norm(sasst(tree, lambda=0.5, alpha=0.8, lambda.VP=0.9, alpha.VP=0.3, lambda.S=1.3, alpha.S=1, lambda.NP=0.2, "
     "alpha.NP=0, lambda.X=0.7, alpha.X=1.4))",
     {.lambda = 0.5, .alpha = 0.8, .symbol = symbols, .symbols = 4},
     true,
     1.0},
};
enum { CASES = sizeof cases / sizeof *cases };

static int falling(const void *p, const void *q)
{
    const double a = *(const double *)p, b = *(const double *)q;
    return (a < b) - (a > b);
}

typedef struct setting {
    const kernel_case *kernel;
    char *tree[TREES + 1]; /* the last is to be explained */
    esp_model *model;
    esp_dataset *data;
    knowledge *known;
    esp_explainer *explainer;
} setting;

static setting setting_of(const kernel_case *kernel, uint64_t seed, size_t classes, bool one_vs_one)
{
    setting s = {.kernel = kernel};
    ref_random random = {seed};
    char *lines = random_trees(&random, TREES, false, s.tree);
    s.model = random_model(kernel->expression, lines, classes, one_vs_one, &random);
    free(lines);
    lines = random_trees(&random, 1, seed % 2 == 1, s.tree + TREES);
    s.data = dataset_of(lines);
    free(lines);
    s.known = fragments_of(s.tree, TREES, s.tree[TREES], &kernel->weights);
    s.explainer = explainer_of(s.model);
    return s;
}

static void setting_free(setting *s)
{
    esp_explainer_free(s->explainer);
    esp_model_free(s->model);
    esp_dataset_free(s->data);
    knowledge_free(s->known);
    for (size_t i = 0; i <= TREES; i++) free(s->tree[i]);
}

static double true_weight(const setting *s, const known *u, size_t output)
{
    return weight_of(s->model, s->known, u, output, s->kernel->norm, s->kernel->scale);
}

static double true_value(const setting *s, const known *u)
{
    const double self = s->known->self_x;
    return u->of_x * (s->kernel->norm ? (self > 0.0 ? 1.0 / sqrt(self) : 0.0) : 1.0);
}

/* The keys of all features with this sign (0: any), the largest first; sums that cancel are left out. */
static double *true_keys(const setting *s, size_t output, double turn, int sign, bool example, size_t *count)
{
    double *key = malloc((s->known->count + 1) * sizeof *key);
    assert_non_null(key);
    *count = 0;
    for (size_t i = 0; i < s->known->count; i++) {
        const known *u = &s->known->feature[i];
        const double k = turn * true_weight(s, u, output) * (example ? true_value(s, u) : 1.0);
        if (fabs(k) > 1e-13 && (sign == 0 || k * sign > 0.0)) key[(*count)++] = fabs(k);
    }
    qsort(key, *count, sizeof *key, falling);
    return key;
}

/* What is told of one feature. */
static void check_feature(const setting *s, const esp_explanation *x, size_t index, size_t output)
{
    const esp_feature *f = esp_explanation_feature(x, index);
    char *text = as_known(f);
    const known *u = know(s->known, text, false);
    if (u == NULL) fail_msg("%s is no feature of the support examples", f->text);
    double examples = 0.0, occurrences = 0.0;
    for (size_t i = 0; i < TREES; i++) {
        examples += u->count[i] > 0.0;
        occurrences += u->count[i];
    }
    assert_close(f->weight, true_weight(s, u, output), 1e-9, f->text);
    assert_true((double)f->examples == examples);
    assert_true(f->occurrences == occurrences);
    for (size_t k = 0; k < esp_explanation_outputs(x); k++) {
        const double weight = true_weight(s, u, k);
        assert_true(fabs(esp_explanation_weight(x, index, k) - weight) <= 1e-9 * fmax(fabs(weight), 1e-3));
    }
    free(text);
}

static void check_order(const esp_explanation *x, size_t first, size_t count, const double *key, size_t keys,
                        size_t top, bool example)
{
    if (count < (keys < top ? keys : top)) fail_msg("%zu features listed of %zu, at most %zu", count, keys, top);
    for (size_t i = 0; i < count; i++) {
        const esp_feature *f = esp_explanation_feature(x, first + i);
        const double is = fabs(example ? f->contribution : f->weight);
        if (i < keys) assert_true(fabs(is - key[i]) <= 2e-9 * key[i]);
        else assert_true(is < 1e-12); /* what rounding leaves of a sum that is 0 */
        for (size_t k = 0; k < i; k++) assert_string_not_equal(esp_explanation_feature(x, first + k)->text, f->text);
    }
}

static void same_as_enumeration(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            setting s = setting_of(&cases[c], 100 * c + seed, 3, false);
            const int sign = (int)(seed % 3) - 1;
            esp_explanation *x = explained(s.explainer, &(esp_explain_options){.top = TOP, .sign = sign});
            assert_int_equal(esp_explanation_outputs(x), 3);
            for (size_t k = 0, at = 0; k < 3; k++) {
                size_t keys, count = 0;
                double *key = true_keys(&s, k, 1.0, sign, false, &keys);
                const esp_feature *f;
                for (; (f = esp_explanation_feature(x, at + count)) != NULL && f->output == k; count++)
                    check_feature(&s, x, at + count, k);
                check_order(x, at, count, key, keys, TOP, false);
                assert_true(esp_explanation_is_exact(x, k, NULL));
                at += count;
                free(key);
            }
            esp_explanation_free(x);
            setting_free(&s);
        }
}

static void small_fragments_only(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        setting s = setting_of(&cases[c], 40 + c, 0, false);
        esp_explanation *all = explained(s.explainer, &(esp_explain_options){.top = 100000}),
                        *few = explained(s.explainer, &(esp_explain_options){.top = 100000, .max_size = 2});
        size_t small = 0;
        for (size_t i = 0; i < esp_explanation_count(all); i++) {
            const esp_feature *f = esp_explanation_feature(all, i);
            size_t productions = 0;
            for (const char *at = f->text; *at != '\0'; at++) productions += *at == '(';
            for (const char *at = f->text; (at = strstr(at, " ...)")) != NULL; at++) productions--;
            assert_int_equal(f->size, f->kind == ESP_FEATURE_WORD ? 1 : productions);
            small += f->size <= 2;
        }
        assert_true(small > 0);
        assert_int_equal(esp_explanation_count(few), small);
        esp_explanation_free(all);
        esp_explanation_free(few);
        setting_free(&s);
    }
}

/* A search that ends early says what it may have missed. */
static void bounded_effort(void **state)
{
    (void)state;
    enum { TOP_FEW = 20 };
    size_t inexact = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (uint64_t effort = 1; effort <= 9; effort += 4) {
            setting s = setting_of(&cases[2], 900 + seed, 0, false);
            esp_explanation *x = explained(s.explainer, &(esp_explain_options){.top = TOP_FEW, .effort = effort});
            double bound;
            size_t keys;
            double *key = true_keys(&s, 0, 1.0, 0, false, &keys);
            const bool exact = esp_explanation_is_exact(x, 0, &bound);
            assert_true(exact ? bound == 0.0 : bound > 0.0);
            inexact += !exact;
            const size_t count = esp_explanation_count(x);
            char *text[TOP_FEW];
            assert_true(count <= TOP_FEW);
            for (size_t f = 0; f < count; f++) text[f] = as_known(esp_explanation_feature(x, f));
            for (size_t i = 0; i < s.known->count; i++) {
                const double weight = fabs(true_weight(&s, &s.known->feature[i], 0));
                bool listed = false;
                for (size_t f = 0; f < count; f++) listed |= strcmp(text[f], s.known->feature[i].text) == 0;
                const double least = count < TOP_FEW ? 0.0 : fabs(esp_explanation_feature(x, count - 1)->weight);
                if (!listed && weight > 1e-13) assert_true(weight <= fmax(bound, least) * (1.0 + 1e-8));
            }
            for (size_t f = 0; f < count; f++) free(text[f]);
            free(key);
            esp_explanation_free(x);
            setting_free(&s);
        }
    assert_true(inexact > 5);
}

/* ------------------------------------------------------------------ an example */

static void check_side(const setting *s, const esp_explanation *x, size_t first, size_t count, bool up)
{
    size_t keys;
    double *key = true_keys(s, 0, 1.0, up ? 1 : -1, true, &keys);
    for (size_t i = 0; i < count; i++) {
        const esp_feature *f = esp_explanation_feature(x, first + i);
        check_feature(s, x, first + i, 0);
        char *text = as_known(f);
        const known *u = know(s->known, text, false);
        assert_non_null(u);
        assert_close(f->value, true_value(s, u), 1e-9, f->text);
        free(text);
    }
    check_order(x, first, count, key, keys, 10, true);
    free(key);
}

static void contributions_add_up(void **state)
{
    (void)state;
    size_t listed = 0;
    for (size_t c = 0; c < CASES; c++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            setting s = setting_of(&cases[c], 7000 + 100 * c + seed, 0, false);
            esp_explanation *x = explained_example(s.explainer, s.data, 0, &(esp_explain_options){.top = 10});
            esp_predictions *p = NULL;
            esp_error err = {0};
            assert_ok(esp_predict(s.model, s.data, NULL, &p, &err), "predict", &err);
            assert_adds_up(x, esp_predictions_score(p, 0), 0);
            size_t ups = 0;
            const size_t all = esp_explanation_count(x);
            while (ups < all && esp_explanation_feature(x, ups)->contribution > 0.0) ups++;
            check_side(&s, x, 0, ups, true);
            check_side(&s, x, ups, all - ups, false);
            listed += all;
            esp_predictions_free(p);
            esp_explanation_free(x);
            setting_free(&s);
        }
    assert_true(listed > 500);
}

/* ---------------------------------------------------------------------- shares */

typedef struct piece { /* a fragment at a node, with the nodes of its productions */
    char *text;
    uint64_t nodes;
} piece;

typedef struct pieces {
    piece *at;
    size_t count;
} pieces;

static void add_piece(pieces *p, char *owned, uint64_t nodes)
{
    p->at = realloc(p->at, (p->count + 1) * sizeof *p->at);
    assert_non_null(p->at);
    p->at[p->count++] = (piece){owned, nodes};
}

static char *joined(const char *a, const char *b)
{
    char *text = malloc(strlen(a) + strlen(b) + 1);
    assert_non_null(text);
    strcpy(text, a);
    return strcat(text, b);
}

static void free_pieces(pieces *p)
{
    for (size_t i = 0; i < p->count; i++) free(p->at[i].text);
    free(p->at);
    *p = (pieces){0};
}

/* All fragments at a node, whose number in preorder is *number; those at the nodes below go to `all`, too. */
static pieces pieces_at(const ref_tree *node, size_t *number, pieces *all)
{
    pieces here = {0};
    assert_true(*number < 64);
    const uint64_t own = UINT64_C(1) << (*number)++;
    char *start = joined("(", node->label);
    add_piece(&here, start, own);
    for (size_t i = 0; i < node->children; i++) {
        const ref_tree *child = node->child[i];
        pieces below = {0}, longer = {0};
        if (child->children == 0) {
            add_piece(&below, joined("'", child->label), 0);
            add_piece(all, joined("'", child->label), UINT64_C(1) << (*number)++);
        } else {
            below = pieces_at(child, number, all);
            add_piece(&below, joined(child->label, ""), 0);
        }
        for (size_t a = 0; a < here.count; a++)
            for (size_t b = 0; b < below.count; b++) {
                char *front = joined(here.at[a].text, " ");
                add_piece(&longer, joined(front, below.at[b].text), here.at[a].nodes | below.at[b].nodes);
                free(front);
            }
        free_pieces(&here);
        free_pieces(&below);
        here = longer;
    }
    for (size_t i = 0; i < here.count; i++) {
        char *closed = joined(here.at[i].text, ")");
        free(here.at[i].text);
        here.at[i].text = closed;
        add_piece(all, joined(closed, ""), here.at[i].nodes);
    }
    return here;
}

static void shares_of_nodes(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            setting s = setting_of(&cases[c], 300 * c + seed, 3, false);
            esp_explanation *x = explained_example(s.explainer, s.data, 0, &(esp_explain_options){.shares = true});
            ref_tree *t = ref_tree_parse(s.tree[TREES]);
            pieces all = {0};
            size_t nodes = 0;
            pieces root = {0};
            if (t->children > 0) root = pieces_at(t, &nodes, &all);
            assert_int_equal(esp_explanation_nodes(x, 0), t->children > 0 ? nodes : 1);
            for (size_t k = 0; k < 3; k++) {
                double share[64] = {0}, sum = 0.0;
                for (size_t i = 0; i < all.count; i++) {
                    const known *u = know(s.known, all.at[i].text, false);
                    const double part = true_weight(&s, u, k) * true_value(&s, u) / u->of_x /
                                        (double)__builtin_popcountll(all.at[i].nodes);
                    for (size_t n = 0; n < nodes; n++)
                        if ((all.at[i].nodes >> n & 1) != 0) share[n] += part;
                }
                for (size_t n = 0; n < nodes; n++) {
                    const double is = esp_explanation_share(x, 0, n, k);
                    if (fabs(is - share[n]) > 1e-10) fail_msg("node %zu has %.17g, not %.17g", n, is, share[n]);
                    sum += is;
                }
                if (t->children > 0) assert_true(fabs(sum - esp_explanation_term_score(x, k, 0)) <= 1e-9);
            }
            free_pieces(&all);
            free_pieces(&root);
            ref_tree_free(t);
            esp_explanation_free(x);
            setting_free(&s);
        }
}

/* Labels and parents, from which the tree can be drawn again. */
static void nodes_of_a_tree(void **state)
{
    (void)state;
    ref_random random = {5};
    esp_model *m = random_model("sst(tree)", "{\"tree\": \"(S (A a) b)\"}\n", 0, false, &random);
    esp_dataset *data = dataset_of("{\"tree\": \"(S (NP (D the) cat) (A a))\"}\n{\"tree\": \"\"}\n");
    esp_explainer *e = explainer_of(m);
    static const struct {
        const char *label;
        size_t parent;
        bool leaf;
    } expected[] = {{"S", SIZE_MAX, false}, {"NP", 0, false}, {"D", 1, false}, {"the", 2, true},
                    {"cat", 1, true},       {"A", 0, false},  {"a", 5, true}};
    esp_explanation *x = explained_example(e, data, 0, &(esp_explain_options){.shares = true}),
                    *empty = explained_example(e, data, 1, &(esp_explain_options){.shares = true});
    assert_int_equal(esp_explanation_nodes(x, 0), 7);
    assert_null(esp_explanation_node(x, 0, 7));
    for (size_t i = 0; i < 7; i++) {
        const esp_node *n = esp_explanation_node(x, 0, i);
        assert_string_equal(n->label, expected[i].label);
        assert_true(n->parent == expected[i].parent);
        assert_true(n->leaf == expected[i].leaf);
    }
    /* (A a) is the only fragment that both have. */
    assert_close(esp_explanation_share(x, 0, 5, 0), 0.4 * m->coefficient[0], 1e-12, "share");
    assert_int_equal(esp_explanation_nodes(empty, 0), 0);
    assert_true(esp_explanation_score(empty, 0) == m->bias[0]);
    esp_explanation_free(x);
    esp_explanation_free(empty);
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
}

/* A chain of 540 productions against itself: more than a fragment is divided by exactly. */
static void shares_of_a_long_chain(void **state)
{
    (void)state;
    enum { LONG = 540 };
    char *line = malloc(LONG * 5 + 100), *at = line;
    at += sprintf(at, "{\"tree\": \"");
    for (size_t i = 0; i < LONG; i++) at += sprintf(at, "(A ");
    at += sprintf(at, "a");
    for (size_t i = 0; i < LONG; i++) at += sprintf(at, ")");
    sprintf(at, "\"}\n");
    ref_random random = {11};
    esp_model *m = random_model("norm(sst(tree, lambda=0.9))", line, 0, false, &random);
    m->coefficient[0] = 1.5;
    esp_dataset *data = dataset_of(line);
    esp_explainer *e = explainer_of(m);
    esp_explanation *x = explained_example(e, data, 0, &(esp_explain_options){.shares = true, .effort = 10});
    double sum = 0.0;
    assert_int_equal(esp_explanation_nodes(x, 0), LONG + 1);
    for (size_t n = 0; n < LONG; n++) sum += esp_explanation_share(x, 0, n, 0);
    assert_close(sum, 1.5, 1e-9, "sum of shares");
    esp_explanation_free(x);
    esp_explainer_free(e);
    esp_dataset_free(data);
    esp_model_free(m);
    free(line);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    setting s = setting_of(&cases[1], 77, 5, true);
    char *first = NULL, *first_example = NULL;
    esp_error err = {0};
    for (int threads = 1; threads <= 4; threads++) {
        const esp_run run = {.threads = threads};
        const esp_explain_options o = {.shares = true};
        esp_explainer *e = NULL;
        esp_explanation *x = NULL, *y = NULL;
        char *text = NULL, *example = NULL;
        assert_ok(esp_explainer_new(s.model, &run, &e, &err), "new", &err);
        assert_ok(esp_explain(e, &o, &run, &x, &err), "explain", &err);
        assert_ok(esp_explain_example(e, s.data, 0, &o, &run, &y, &err), "example", &err);
        assert_ok(esp_explanation_json(x, &text, &err), "json", &err);
        assert_ok(esp_explanation_json(y, &example, &err), "json", &err);
        if (threads == 1) {
            first = text;
            first_example = example;
        } else {
            assert_string_equal(text, first);
            assert_string_equal(example, first_example);
            esp_text_free(text);
            esp_text_free(example);
        }
        esp_explanation_free(x);
        esp_explanation_free(y);
        esp_explainer_free(e);
    }
    esp_text_free(first);
    esp_text_free(first_example);
    setting_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_enumeration),    cmocka_unit_test(small_fragments_only),
        cmocka_unit_test(bounded_effort),         cmocka_unit_test(contributions_add_up),
        cmocka_unit_test(shares_of_nodes),        cmocka_unit_test(nodes_of_a_tree),
        cmocka_unit_test(shares_of_a_long_chain), cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
