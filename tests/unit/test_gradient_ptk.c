/* The gradient of the partial tree kernel in lambda, mu and terminal: against differences of its own values, and
 * against the definition carried out in dual numbers, one pair of sequences of children after the other. */
#include "gradient_check.h"
#include "ptk_cases.h"

/* ------------------------------------------------------------- definition */

static dual delta(const ref_tree *a, const ref_tree *b, const setting *s);

/* All ways to go on from a pair of sequences that ends at children i and j (SIZE_MAX: none yet). */
static dual go_on(const ref_tree *a, const ref_tree *b, size_t i, size_t j, dual so_far, const setting *s)
{
    const dual lambda = dual_variable(s->lambda, 0);
    dual sum = {0};
    for (size_t k = i + 1; k < a->children; k++) {
        for (size_t l = j + 1; l < b->children; l++) {
            if (strcmp(a->child[k]->label, b->child[l]->label) != 0) continue;
            const size_t gaps = i == SIZE_MAX ? 0 : (k - i - 1) + (l - j - 1);
            const dual step = dual_mul(dual_power(lambda, gaps), delta(a->child[k], b->child[l], s));
            const dual product = dual_mul(so_far, step);
            sum = dual_add(sum, dual_add(product, go_on(a, b, k, l, product, s)));
        }
    }
    return sum;
}

static dual delta(const ref_tree *a, const ref_tree *b, const setting *s)
{
    const dual lambda = dual_variable(s->lambda, 0), mu = dual_variable(s->mu, 1);
    const dual square = dual_mul(lambda, lambda);
    if (strcmp(a->label, b->label) != 0) return dual_constant(0.0);
    if (a->children == 0 || b->children == 0) return dual_mul(dual_mul(mu, square), dual_variable(s->terminal, 2));
    return dual_mul(mu, dual_add(square, go_on(a, b, SIZE_MAX, SIZE_MAX, dual_constant(1.0), s)));
}

static dual sum_right(const ref_tree *a, const ref_tree *b, const setting *s)
{
    dual sum = delta(a, b, s);
    for (size_t k = 0; k < b->children; k++) sum = dual_add(sum, sum_right(a, b->child[k], s));
    return sum;
}

static dual definition(const ref_tree *a, const ref_tree *b, const setting *s)
{
    dual sum = sum_right(a, b, s);
    for (size_t k = 0; k < a->children; k++) sum = dual_add(sum, definition(a->child[k], b, s));
    return sum;
}

/* ------------------------------------------------------------ random trees */

/* Trees of 0, 1 and up to `nodes` nodes; every fourth is a copy of another. */
static esp_dataset *random_trees(ref_random *random, size_t count, size_t nodes, size_t most, size_t labels)
{
    char **text = malloc(count * sizeof *text);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        const size_t size = i == 1 ? 1 : i % 4 == 2 ? 1 + ref_random_below(random, nodes) : nodes;
        text[i] = i == 0 ? calloc(1, 1) : i % 4 == 3 ? strdup(text[i / 2]) : random_tree(random, size, most, labels);
        assert_non_null(text[i]);
    }
    esp_dataset *data = dataset_of_trees(text, count);
    for (size_t i = 0; i < count; i++) free(text[i]);
    free(text);
    return data;
}

static const setting settings[] = {{0.4, 0.4, 1}, {0.4, 0.4, 5}, {1, 1, 1}, {0.7, 1.5, 0}, {1.3, 0.2, 0.5}};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* ------------------------------------------------------------------ tests */

static void test_definition(void **state)
{
    enum { TREES = 20 };
    (void)state;
    ref_random random = {31};
    char *text[TREES];
    ref_tree *tree[TREES];
    for (size_t i = 0; i < TREES; i++) {
        text[i] = random_tree(&random, 1 + ref_random_below(&random, 13), 1 + i % 7, 1 + i % 3);
        tree[i] = ref_tree_parse(text[i]);
    }
    esp_dataset *data = dataset_of_trees(text, TREES);
    for (size_t k = 0; k < SETTINGS; k++) {
        const char *expression = expression_of(&settings[k], "dag");
        checked c = checked_of(expression, data, data);
        dual expected[TREES], self[TREES];
        for (size_t i = 0; i < TREES; i++) {
            for (size_t j = 0; j < TREES; j++) expected[j] = definition(tree[i], tree[j], &settings[k]);
            compare_row(&c, i, expected, &random);
            self[i] = expected[i];
        }
        compare_slopes(&c, self_of(&c, ESPI_ROWS), self, 1e-12, NULL, &random);
        checked_free(&c);
    }
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) {
        free(text[i]);
        ref_tree_free(tree[i]);
    }
}

static void test_differences(void **state)
{
    static const struct {
        size_t trees, nodes, most, labels;
    } kinds[] = {{12, 20, 3, 3}, {9, 40, 12, 4}, {9, 30, 30, 2}, {7, 25, 1, 2}, {9, 60, 4, 8}};
    (void)state;
    ref_random random = {32};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        esp_dataset *data = random_trees(&random, kinds[k].trees, kinds[k].nodes, kinds[k].most, kinds[k].labels);
        esp_dataset *others = random_trees(&random, 6, kinds[k].nodes, kinds[k].most, kinds[k].labels + 1);
        for (size_t i = 0; i < SETTINGS; i++) {
            const char *expression = expression_of(&settings[i], "dag");
            compare_gradients(expression, data, data, 4e-3, ref_random_bits(&random));
            compare_gradients(expression, others, data, 4e-3, ref_random_bits(&random));
        }
        esp_dataset_free(data);
        esp_dataset_free(others);
    }
}

/* Many trees, so that vertices stand side by side and frequent labels are laid out. */
static void test_many(void **state)
{
    (void)state;
    ref_random random = {33};
    esp_dataset *many = random_trees(&random, 150, 12, 4, 3);
    compare_gradients("ptk(lambda=0.5, mu=0.3)", many, many, 4e-3, 1);
    esp_dataset_free(many);
}

/* Rare labels, and blocks of many vertices and of one. */
static void test_programs(void **state)
{
    (void)state;
    ref_random random = {35};
    esp_dataset *data = random_programs(&random, 40, 20), *others = random_programs(&random, 5, 20);
    compare_gradients("ptk(lambda=0.5, mu=0.3, terminal=2)", others, data, 4e-3, 1);
    compare_gradients("norm(ptk(lambda=0.5, mu=0.3))", data, data, 4e-3, 1);
    esp_dataset_free(data);
    esp_dataset_free(others);
}

static void test_threads(void **state)
{
    (void)state;
    ref_random random = {36};
    esp_dataset *many = random_trees(&random, 150, 12, 4, 3);
    check_threads("ptk", many);
    esp_dataset_free(many);
}

/* Nodes with so many cells that they come in several calls. */
static void test_wide(void **state)
{
    enum { TREES = 3, CHILDREN = 300 };
    (void)state;
    ref_random random = {35};
    char *text[TREES];
    for (size_t i = 0; i < TREES; i++) {
        char *end = text[i] = malloc(CHILDREN * 8 + 8);
        assert_non_null(end);
        end += sprintf(end, "(a");
        for (size_t k = 0; k < CHILDREN; k++) end += sprintf(end, ref_random_below(&random, 9) > 0 ? " (a b)" : " b");
        sprintf(end, ")");
    }
    esp_dataset *data = dataset_of_trees(text, TREES);
    compare_gradients("ptk(lambda=0.1, mu=0.01, terminal=2)", data, data, 4e-3, 1);
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) free(text[i]);
}

/* A chain of one label is done in a few columns, not in one for each node. For one far longer than these are needed,
 * the excess of two nodes deep inside is E = mu (mu lambda^2 + E), so that every pair of nodes adds c = mu lambda^2 /
 * (1 - mu), but near the end. */
static void test_chain(void **state)
{
    enum { DEPTH = 20000 };
    const double lambda = 0.5, mu = 0.4;
    (void)state;
    char *text = chain("(a ", "b", DEPTH);
    esp_dataset *data = dataset_of_trees(&text, 1);
    checked c = checked_of(expression_of(&(setting){lambda, mu, 0.0}, "dag"), data, data);
    double gradient[SLOPES], self[SLOPES];
    gradient_of(&c, row_of(&c, 0), &(double){1.0}, gradient);
    gradient_of(&c, self_of(&c, ESPI_ROWS), &(double){1.0}, self);
    const double pairs = (double)DEPTH * DEPTH, square = lambda * lambda;
    assert_close(gradient[0], pairs * 2.0 * mu * lambda / (1.0 - mu), 1e-3, "lambda");
    assert_close(gradient[1], pairs * square / ((1.0 - mu) * (1.0 - mu)), 1e-3, "mu");
    for (size_t p = 0; p < SLOPES; p++) assert_close(self[p], gradient[p], 1e-12, "the tree with itself");
    checked_free(&c);
    esp_dataset_free(data);
    free(text);
}

static void test_refused(void **state)
{
    (void)state;
    char *text[] = {"(a b)"};
    esp_dataset *data = dataset_of_trees(text, 1);
    check_refused(expression_of(&settings[0], "pair"), data);
    esp_dataset_free(data);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ref_random random = {34};
    esp_dataset *data = random_trees(&random, 8, 20, 4, 2);
    check_out_of_memory("ptk", data, data);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_differences), cmocka_unit_test(test_many),
        cmocka_unit_test(test_programs),   cmocka_unit_test(test_threads),     cmocka_unit_test(test_wide),
        cmocka_unit_test(test_chain),      cmocka_unit_test(test_refused),     cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
