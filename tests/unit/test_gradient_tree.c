/* Gradients of st, sst and sasst: against central differences of the kernel's own values, and, on small trees, against
 * the product rule carried forward through the definition, pair of nodes by pair of nodes. */
#include "gradient_check.h"

/* ------------------------------------------------------------- definition */

/* A parameter for a label: its own value, else the shared one. */
static dual parameter(espi_leaf *leaf, const char *name, const char *label)
{
    const size_t own = parameters_of(leaf);
    size_t shared = 0;
    while (shared < own && strcmp(leaf->class->parameters[shared].info.name, name) != 0) shared++;
    if (shared == own) return dual_constant(0.0); /* alpha of st */
    size_t place = shared;
    for (size_t i = 0; i < leaf->symbols; i++)
        if (leaf->symbol[i].parameter == shared && strcmp(leaf->symbol[i].label, label) == 0) place = own + i;
    const double *value = value_at(leaf, place);
    return value == NULL ? dual_constant(leaf->value[place]) : dual_variable(*value, place);
}

static bool same_production(const ref_tree *a, const ref_tree *b)
{
    bool same = a->children == b->children && strcmp(a->label, b->label) == 0;
    for (size_t k = 0; same && k < a->children; k++)
        same = strcmp(a->child[k]->label, b->child[k]->label) == 0 &&
               (a->child[k]->children == 0) == (b->child[k]->children == 0);
    return same;
}

static dual delta_of(espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    if (!same_production(a, b)) return dual_constant(0.0);
    dual product = parameter(leaf, "lambda", a->label);
    for (size_t k = 0; k < a->children; k++)
        if (a->child[k]->children > 0)
            product = dual_mul(product,
                               dual_add(parameter(leaf, "alpha", a->label), delta_of(leaf, a->child[k], b->child[k])));
    return product;
}

static dual pairs_below(espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    dual sum = dual_constant(0.0);
    if (a->children > 0 && b->children > 0) sum = delta_of(leaf, a, b);
    else if (a->children == 0 && b->children == 0 && strcmp(a->label, b->label) == 0) sum = parameter(leaf, "bow", "");
    for (size_t k = 0; k < b->children; k++) sum = dual_add(sum, pairs_below(leaf, a, b->child[k]));
    return sum;
}

static dual definition(espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    dual sum = pairs_below(leaf, a, b);
    for (size_t k = 0; k < a->children; k++) sum = dual_add(sum, definition(leaf, a->child[k], b));
    return sum;
}

/* ---------------------------------------------------------------- the data */

typedef struct trees {
    char **text;
    ref_tree **tree; /* NULL: the empty tree */
    size_t count;
    esp_dataset *data;
} trees;

/* Random trees, single leaves among them; every fifth repeats an earlier one, every ninth is empty. */
static trees trees_of(uint64_t seed, size_t count, size_t nodes, bool extra)
{
    ref_random random = {seed};
    trees t = {.count = count, .text = malloc(count * sizeof *t.text), .tree = malloc(count * sizeof *t.tree)};
    assert_true(t.text != NULL && t.tree != NULL);
    for (size_t i = 0; i < count; i++) {
        if (i % 9 == 8) t.text[i] = strdup("");
        else if (i % 5 == 4) t.text[i] = strdup(t.text[i / 2]);
        else t.text[i] = ref_random_tree(&random, 1 + ref_random_below(&random, nodes), extra);
        t.tree[i] = *t.text[i] == '\0' ? NULL : ref_tree_parse(t.text[i]);
    }
    t.data = dataset_of_trees(t.text, count);
    return t;
}

static void trees_free(trees *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->tree[i] != NULL) ref_tree_free(t->tree[i]);
        free(t->text[i]);
    }
    free(t->text);
    free(t->tree);
    esp_dataset_free(t->data);
}

static const char *const expressions[] = {
    "st(lambda=0.7)",
    "st(lambda=1, bow=0.5)",
    "sst(lambda=0.4)",
    "sst(lambda=1, alpha=0)",
    "sst(lambda=0.3, alpha=0.2, bow=2)",
    "sasst(lambda=0.5, lambda.S=0.2, alpha.NP=0.7, lambda.NP=1.3, alpha.X=0, lambda.nobody=1)",
    "sasst(lambda=0.5, alpha=0, alpha.S=0.5, bow=0.1)",
    "sst(lambda=0.4) + 2 * sasst(lambda=0.6, alpha=0.1, lambda.VP=0.2) * st(lambda=1)",
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

/* ------------------------------------------------------------------- tests */

static void check_definition(const char *expression, const trees *rows, const trees *cols)
{
    ref_random random = {23};
    checked c = checked_of(expression, rows->data, cols->data);
    dual *expected = calloc(cols->count, sizeof *expected), *self = calloc(rows->count, sizeof *self);
    assert_true(expected != NULL && self != NULL);
    for (; c.leaf < c.kernel->leaves; c.leaf++) {
        for (size_t i = 0; i < rows->count; i++) {
            const ref_tree *a = rows->tree[i];
            for (size_t j = 0; a != NULL && j < cols->count; j++)
                if (cols->tree[j] != NULL) expected[j] = definition(leaf_of(&c), a, cols->tree[j]);
            if (a != NULL) self[i] = definition(leaf_of(&c), a, a);
            else memset(expected, 0, cols->count * sizeof *expected);
            compare_slopes(&c, row_of(&c, i), expected, 1e-12, NULL, &random);
        }
        compare_slopes(&c, self_of(&c, ESPI_ROWS), self, 1e-12, NULL, &random);
    }
    free(expected);
    free(self);
    checked_free(&c);
}

static void test_definition(void **state)
{
    (void)state;
    trees a = trees_of(1, 30, 24, false), b = trees_of(2, 20, 24, true);
    for (size_t k = 0; k < EXPRESSIONS; k++) {
        check_definition(expressions[k], &a, &a);
        check_definition(expressions[k], &a, &b);
        check_definition(expressions[k], &b, &a);
    }
    trees_free(&a);
    trees_free(&b);
}

/* Nodes that look alike to the columns, as what is below them is in none of these, but occur more or less often. */
static void test_strangers(void **state)
{
    (void)state;
    char *row_text[] = {"(Q (A (U (X w))) (R (A (U (Y w))) (A (U (Y w)))))"}, *col_text[] = {"(S (A (U (Z w))))"};
    trees rows = {row_text, (ref_tree *[]){ref_tree_parse(*row_text)}, 1, dataset_of_trees(row_text, 1)};
    trees cols = {col_text, (ref_tree *[]){ref_tree_parse(*col_text)}, 1, dataset_of_trees(col_text, 1)};
    check_definition("sasst(lambda=0.4, alpha=0.5, alpha.A=0.2)", &rows, &cols);
    check_definition("sasst(lambda=0.4, alpha=0.5, alpha.A=0.2)", &cols, &rows);
    ref_tree_free(rows.tree[0]);
    ref_tree_free(cols.tree[0]);
    esp_dataset_free(rows.data);
    esp_dataset_free(cols.data);
}

/* A node of so many children that fewer of its like are worked on at a time. */
static void test_wide(void **state)
{
    (void)state;
    enum { TREES = 3, CHILDREN = 600 };
    static const char *const child[] = {" (V a)", " (V b)", " (N (V a))", " (N (V b))"};
    ref_random random = {11};
    trees t = {.count = TREES, .text = malloc(TREES * sizeof *t.text), .tree = malloc(TREES * sizeof *t.tree)};
    for (size_t i = 0; i < TREES; i++) {
        char *at = t.text[i] = malloc(16 * CHILDREN);
        at += sprintf(at, "(S");
        for (size_t k = 0; k < CHILDREN; k++)
            at += sprintf(at, "%s", child[(k % 2) * 2 + ref_random_below(&random, 2)]);
        sprintf(at, ")");
        t.tree[i] = ref_tree_parse(t.text[i]);
    }
    t.data = dataset_of_trees(t.text, TREES);
    check_definition("sasst(lambda=0.001, alpha=0.9, lambda.V=0.1, alpha.S=0.95)", &t, &t);
    trees_free(&t);
}

/* By hand: K = lambda_S (alpha_S + lambda_A)(alpha_S + lambda_B) + lambda_A + lambda_B. */
static void test_by_hand(void **state)
{
    (void)state;
    char *const text[] = {"(S (A a) (B b))"};
    static const struct {
        const char *name, *label;
        double expected;
    } derivative[] = {{"lambda", "S", 2.25 * 3.25},
                      {"alpha", "S", 0.5 * (2.25 + 3.25)},
                      {"lambda", "A", 0.5 * 3.25 + 1.0},
                      {"lambda", "B", 0.5 * 2.25 + 1.0}};
    esp_dataset *data = dataset_of_trees(text, 1);
    checked c = checked_of("sasst(lambda.S=0.5, alpha.S=0.25, lambda.A=2, lambda.B=3)", data, data);
    double row[SLOPES], self[SLOPES];
    gradient_of(&c, row_of(&c, 0), &(double){10.0}, row);
    gradient_of(&c, self_of(&c, ESPI_ROWS), &(double){10.0}, self);
    for (int q = 0; q < 4; q++) {
        const dual one = parameter(leaf_of(&c), derivative[q].name, derivative[q].label);
        for (size_t p = 0; p < SLOPES; p++) {
            if (one.d[p] == 0.0) continue;
            assert_close(row[p], 10.0 * derivative[q].expected, 1e-15, "row");
            assert_close(self[p], 10.0 * derivative[q].expected, 1e-15, "self-value");
        }
    }
    assert_true(row[0] == 0.0 && row[1] == 0.0); /* nothing is left for the shared ones */
    checked_free(&c);
    esp_dataset_free(data);
}

/* More and larger trees: groups of more vertices than a block holds, words of many trees, trees of more nodes than a
 * table takes. */
static void test_differences(void **state)
{
    (void)state;
    trees a = trees_of(3, 500, 40, false), b = trees_of(4, 60, 60, true), large = trees_of(5, 8, 1500, false);
    for (size_t k = 0; k < EXPRESSIONS; k += SANITIZED ? 3 : 1) {
        compare_gradients(expressions[k], a.data, a.data, 4e-3, 17);
        compare_gradients(expressions[k], b.data, a.data, 4e-3, 17);
    }
    compare_gradients("sasst(lambda=0.3, alpha=0.5, lambda.S=0.2, alpha.NP=0.7)", large.data, large.data, 4e-3, 17);
    compare_gradients("sasst(lambda=0.3, alpha=0.5, lambda.S=0.2, alpha.NP=0.7)", large.data, a.data, 4e-3, 17);
    trees_free(&a);
    trees_free(&b);
    trees_free(&large);
}

/* Chains of productions that repeat, which are short work however long they are. */
static void test_chains(void **state)
{
    (void)state;
    static const char *const step[] = {
        "(A ", "(A (B ", "(S (W a) ", "(S (W a) (S (V b)) ", "(S (T (S (V b)) (V c)) (S (V b)) ", "(A (A (A (B "};
    enum { STEPS = sizeof step / sizeof *step };
    char *text[2 * STEPS + 2];
    for (size_t i = 0; i < STEPS; i++) {
        text[2 * i] = chain(step[i], "x", 60 + 40 * i);
        text[2 * i + 1] = chain(step[i], "(V b)", 20);
    }
    text[2 * STEPS] = strdup("(S (W a) (S (V b)))");
    text[2 * STEPS + 1] = chain("(S (W a) ", "(A (A x))", 300);
    esp_dataset *data = dataset_of_trees(text, 2 * STEPS + 2);
    compare_gradients("sst(lambda=0.2)", data, data, 4e-3, 17);
    compare_gradients("sst(lambda=0.1, alpha=0)", data, data, 4e-3, 17);
    compare_gradients("sasst(lambda=0.4, lambda.S=0.2, alpha.S=0.7, lambda.A=0.3)", data, data, 4e-3, 17);
    esp_dataset_free(data);
    for (size_t i = 0; i < 2 * STEPS + 2; i++) free(text[i]);

    char *long_text[] = {chain("(A (B ", "x", REPEATS(30000)),
                         chain("(S (W a) (S (V b)) ", "(A (B x))", REPEATS(20000)), chain("(A (B ", "x", 5)};
    data = dataset_of_trees(long_text, 3);
    compare_gradients("sst(lambda=0.3)", data, data, 4e-3, 17);
    esp_dataset_free(data);
    for (size_t i = 0; i < 3; i++) free(long_text[i]);
}

static void test_threads(void **state)
{
    (void)state;
    trees a = trees_of(6, 120, 60, false);
    check_threads("sasst(lambda=0.4, alpha=0.9, lambda.S=0.3)", a.data);
    trees_free(&a);
}

static void test_other_algorithms(void **state)
{
    (void)state;
    trees a = trees_of(7, 3, 9, false);
    check_refused("sst(algorithm=ftk)", a.data);
    check_refused("sst(algorithm=qtk)", a.data);
    trees_free(&a);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    trees a = trees_of(8, 40, 600, false);
    check_out_of_memory("sst(lambda=0.4, alpha=0.5)", a.data, a.data);
    trees_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),       cmocka_unit_test(test_wide),
        cmocka_unit_test(test_strangers),     cmocka_unit_test(test_definition),
        cmocka_unit_test(test_differences),   cmocka_unit_test(test_chains),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_other_algorithms),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
