/* The gradient of the grammar-driven kernel in lambda, lambda1 and lambda2: against differences of its own values, and
 * against its definition carried out in dual numbers, over all variations of all pairs of nodes. */
#include "gradient_check.h"
#include "gtk_features.h"

/* ------------------------------------------------------------- definition */

static bool same_class(const weights *w, const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (class_of(w->grammar, a) >= 0 && class_of(w->grammar, a) == class_of(w->grammar, b));
}

/* M: over all labels that both can become. */
static dual mutation(const weights *w, const char *a, const char *b)
{
    const dual lambda2 = dual_variable(w->lambda2, 2);
    dual sum = {0};
    if (!same_class(w, a, b)) return sum;
    if (class_of(w->grammar, a) < 0) return dual_constant(1.0);
    for (size_t i = 0; i < w->grammar->labels; i++) {
        const char *label = w->grammar->class_label[i];
        const size_t changes = (size_t)(strcmp(label, a) != 0) + (size_t)(strcmp(label, b) != 0);
        if (same_class(w, label, a)) sum = dual_add(sum, dual_power(lambda2, changes));
    }
    return sum;
}

static dual delta(const ref_tree *a, const ref_tree *b, const weights *w);

/* s of two children that are kept. */
static dual kept(const ref_tree *a, const ref_tree *b, const weights *w)
{
    const bool equal = strcmp(a->label, b->label) == 0;
    if ((a->children == 0) != (b->children == 0)) return dual_constant(0.0);
    if (a->children == 0 || (!w->frontier && !equal)) return dual_constant(equal ? 1.0 : 0.0);
    const bool x = is_preterminal(a), y = is_preterminal(b);
    dual m = dual_constant(equal ? 1.0 : 0.0);
    if (w->frontier && x && y) m = mutation(w, a->label, b->label);
    else if (w->frontier && x != y && !equal && same_class(w, a->label, b->label)) m = dual_variable(w->lambda2, 2);
    return dual_add(m, delta(a, b, w));
}

/* Whether the children of the bits of `gone` may be removed. */
static bool may_go(const ref_tree *node, size_t gone, const weights *w)
{
    const struct rule *rule = rule_of(w->grammar, node);
    for (size_t k = 0; k < node->children; k++)
        if ((gone >> k & 1) != 0 && (rule == NULL || !rule->optional[k])) return false;
    return gone + 1 < (size_t)1 << node->children;
}

/* The product of one variation of both; they keep as many children. */
static dual product(const ref_tree *a, size_t gone_a, const ref_tree *b, size_t gone_b, const weights *w)
{
    dual all = dual_variable(w->lambda, 0);
    size_t j = 0, removed = 0;
    for (size_t i = 0; i < a->children; i++) removed += gone_a >> i & 1;
    for (size_t i = 0; i < b->children; i++) removed += gone_b >> i & 1;
    all = dual_mul(all, dual_power(dual_variable(w->lambda1, 1), removed));
    for (size_t i = 0; i < a->children; i++) {
        if ((gone_a >> i & 1) != 0) continue;
        while ((gone_b >> j & 1) != 0) j++;
        all = dual_mul(all, kept(a->child[i], b->child[j++], w));
    }
    return all;
}

static size_t count_kept(const ref_tree *node, size_t gone)
{
    size_t count = 0;
    for (size_t k = 0; k < node->children; k++) count += (gone >> k & 1) == 0;
    return count;
}

static dual delta(const ref_tree *a, const ref_tree *b, const weights *w)
{
    dual sum = {0};
    if (is_preterminal(a) != is_preterminal(b)) return sum;
    if (is_preterminal(a)) {
        bool same = !w->words || a->children == b->children;
        for (size_t k = 0; same && w->words && k < a->children; k++)
            same = strcmp(a->child[k]->label, b->child[k]->label) == 0;
        return same ? dual_mul(dual_variable(w->lambda, 0), mutation(w, a->label, b->label)) : sum;
    }
    if (strcmp(a->label, b->label) != 0) return sum;
    for (size_t x = 0; x < (size_t)1 << a->children; x++)
        for (size_t y = 0; may_go(a, x, w) && y < (size_t)1 << b->children; y++)
            if (may_go(b, y, w) && count_kept(a, x) == count_kept(b, y)) sum = dual_add(sum, product(a, x, b, y, w));
    return sum;
}

static dual sum_right(const ref_tree *a, const ref_tree *b, const weights *w)
{
    dual sum = {0};
    if (b->children > 0) sum = delta(a, b, w);
    for (size_t k = 0; k < b->children; k++) sum = dual_add(sum, sum_right(a, b->child[k], w));
    return sum;
}

static dual definition(const ref_tree *a, const ref_tree *b, const weights *w)
{
    dual sum = {0};
    if (a->children > 0) sum = sum_right(a, b, w);
    for (size_t k = 0; k < a->children; k++) sum = dual_add(sum, definition(a->child[k], b, w));
    return sum;
}

/* ------------------------------------------------------------------- tests */

/* 0 and 1, the ends of what is allowed, come often. */
static double random_share(ref_random *random)
{
    const size_t kind = ref_random_below(random, 5);
    return kind == 0 ? 0.0 : kind == 1 ? 1.0 : ref_random_between(random, 0.05, 1.0);
}

static weights random_weights(ref_random *random, const grammar *g)
{
    return (weights){.lambda = ref_random_below(random, 4) == 0 ? 1.0 : ref_random_between(random, 0.1, 1.5),
                     .lambda1 = random_share(random),
                     .lambda2 = random_share(random),
                     .words = ref_random_below(random, 2) == 0,
                     .frontier = ref_random_below(random, 3) > 0,
                     .grammar = g};
}

static void equals_its_definition(void **state)
{
    enum { TREES = 4 };
    (void)state;
    ref_random random = {41};
    for (int round = 0; round < REPEATS(300); round++) {
        char *text[TREES];
        ref_tree *tree[TREES];
        ref_features of[TREES];
        for (size_t i = 0; i < TREES; i++) text[i] = ref_random_small_tree(&random, 12, 40, i == 3);
        const grammar g = random_grammar(&random, text, TREES, round % 3 == 0 ? 8 : 4);
        const weights w = random_weights(&random, &g);
        for (size_t i = 0; i < TREES; i++) {
            tree[i] = ref_tree_parse(text[i]);
            of[i] = features(text[i], &w);
        }
        esp_dataset *data = dataset_of_trees(text, TREES);
        const char *expression = expression_of(&w, "fgtk3");
        checked c = checked_of(expression, data, data);
        dual expected[TREES], self[TREES];
        for (size_t i = 0; i < TREES; i++) {
            for (size_t j = 0; j < TREES; j++) {
                expected[j] = definition(tree[i], tree[j], &w);
                assert_close(expected[j].v, dot(&of[i], &of[j]), 1e-10, "the value by both references");
            }
            compare_row(&c, i, expected, &random);
            self[i] = expected[i];
        }
        compare_slopes(&c, self_of(&c, ESPI_ROWS), self, 1e-12, NULL, &random);
        checked_free(&c);
        esp_dataset_free(data);
        for (size_t i = 0; i < TREES; i++) {
            free(text[i]);
            ref_tree_free(tree[i]);
            ref_features_free(&of[i]);
        }
    }
}

static void equals_differences(void **state)
{
    enum { TREES = 12, OTHERS = 5 };
    (void)state;
    ref_random random = {42};
    for (int round = 0; round < REPEATS(40); round++) {
        char *text[TREES], *other[OTHERS];
        for (size_t i = 0; i < TREES; i++) {
            const size_t nodes = i == 1 ? 1 : i == 2 ? 2 : 5 + ref_random_below(&random, 35);
            text[i] = i == 0 ? calloc(1, 1) : i % 4 == 3 ? strdup(text[i / 2]) : ref_random_tree(&random, nodes, false);
            assert_non_null(text[i]);
        }
        for (size_t i = 0; i < OTHERS; i++) other[i] = ref_random_tree(&random, 5 + 6 * i, i % 2 == 0);
        const grammar g = random_grammar(&random, text + 2, TREES - 2, 5);
        const weights w = random_weights(&random, &g);
        esp_dataset *data = dataset_of_trees(text, TREES), *others = dataset_of_trees(other, OTHERS);
        const char *expression = expression_of(&w, "fgtk3");
        compare_gradients(expression, data, data, 4e-3, ref_random_bits(&random));
        compare_gradients(expression, others, data, 4e-3, ref_random_bits(&random));
        esp_dataset_free(data);
        esp_dataset_free(others);
        for (size_t i = 0; i < TREES; i++) free(text[i]);
        for (size_t i = 0; i < OTHERS; i++) free(other[i]);
    }
}

/* So many vertices of one production that they take several blocks, with one alignment and with several. */
static esp_dataset *many_trees(void)
{
    enum { TREES = 250 };
    ref_random random = {43};
    char *text[TREES];
    for (size_t i = 0; i < TREES; i++) {
        text[i] = malloc(100);
        assert_non_null(text[i]);
        snprintf(text[i], 100, "(S (NP (D d%zu) %s(N n%zu)) (VP (V v%zu)%s))", ref_random_below(&random, 9),
                 i % 3 > 0 ? "(J j) (J k) " : "", ref_random_below(&random, 40), i,
                 ref_random_below(&random, 2) > 0 ? " (NP (N n1))" : "");
    }
    esp_dataset *data = dataset_of_trees(text, TREES);
    for (size_t i = 0; i < TREES; i++) free(text[i]);
    return data;
}

static void of_many_trees(void **state)
{
    (void)state;
    esp_dataset *data = many_trees();
    compare_gradients("gtk(lambda=0.5, lambda1=0.4, lambda2=0.2, grammar={NP -> [D] [J] [J] N; VP -> V [NP]; = N J V})",
                      data, data, 4e-3, 1);
    compare_gradients("gtk(lambda=0.9, lambda1=0, lambda2=0, words=0, grammar={NP -> [D] J [J] N; = N D})", data, data,
                      4e-3, 2);
    esp_dataset_free(data);
}

static void several_threads(void **state)
{
    (void)state;
    esp_dataset *data = many_trees();
    check_threads("gtk(grammar={NP -> [D] J [J] N; = N D})", data);
    esp_dataset_free(data);
}

/* A chain of one label is done in a few columns. Delta of two nodes deep inside is D = lambda (1 + D). */
static void deep_chain(void **state)
{
    enum { DEPTH = 20000 };
    const double lambda = 0.4;
    (void)state;
    char *text = chain("(a ", "b", DEPTH);
    esp_dataset *data = dataset_of_trees(&text, 1);
    checked c = checked_of("gtk(lambda=0.4, grammar={a -> [a]})", data, data);
    double gradient[SLOPES], self[SLOPES];
    gradient_of(&c, row_of(&c, 0), &(double){1.0}, gradient);
    gradient_of(&c, self_of(&c, ESPI_ROWS), &(double){1.0}, self);
    assert_close(gradient[0], (double)DEPTH * DEPTH / ((1.0 - lambda) * (1.0 - lambda)), 1e-3, "lambda");
    for (size_t p = 0; p < SLOPES; p++) assert_close(self[p], gradient[p], 1e-12, "the tree with itself");
    checked_free(&c);
    esp_dataset_free(data);
    free(text);
}

static char *const spec_trees[] = {"(NP (DT a) (JJ red) (NN car))", "(NP (DT a) (NN car))", "(NP (DT the) (NNS cars))"};

static void refused(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of_trees(spec_trees, 3);
    check_refused("gtk(algorithm=fgtk2)", data);
    check_refused("gtk(algorithm=gtk)", data);
    esp_dataset_free(data);
}

static void out_of_memory(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of_trees(spec_trees, 3);
    check_out_of_memory("gtk(grammar={NP -> [DT] [JJ] NN; = NN NNS})", data, data);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_its_definition), cmocka_unit_test(equals_differences), cmocka_unit_test(of_many_trees),
        cmocka_unit_test(several_threads),       cmocka_unit_test(deep_chain),         cmocka_unit_test(refused),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
