/* The grammar-driven tree kernel: worked values, all algorithms against the explicit feature map, written from its
 * definition, and what every kernel promises. */
#include "cases.h"
#include "gtk_features.h"

static const char *const algorithms[] = {"fgtk3", "fgtk2", "fgtk1", "gtk"};
enum { ALGORITHMS = 4 };

/* ------------------------------------------------------------------------ tests */

static const char grammar_text[] = "grammar={NP -> DT [JJ] NN; = NN NNS}";
static const char *const spec_trees[] = {"(NP (DT a) (JJ red) (NN car))", "(NP (DT a) (NN car))",
                                         "(NP (DT the) (NNS cars))"};

static void spec_values(void **state)
{
    (void)state;
    static const double expected[2][9] = {
        {2.740026, 1.348736, 0.144, 1.348736, 1.69056, 0.24, 0.144, 0.24, 1.69056},
        {2.740026, 1.348736, 0.92224, 1.348736, 1.69056, 1.1104, 0.92224, 1.1104, 1.69056}};
    esp_dataset *data = dataset_of_trees((char **)(uintptr_t)spec_trees, 3);
    for (int words = 1; words >= 0; words--) {
        for (size_t a = 0; a < ALGORITHMS; a++) {
            char text[256];
            snprintf(text, sizeof text, "gtk(lambda=0.4, lambda1=0.6, lambda2=0.3, %s, words=%d, algorithm=%s)",
                     grammar_text, words, algorithms[a]);
            double *gram = gram_of(text, data, NULL, 1);
            for (size_t i = 0; i < 9; i++)
                if (fabs(gram[i] - expected[!words][i]) > 1e-6)
                    fail_msg("%s: %zu is %.17g instead of %g", text, i, gram[i], expected[!words][i]);
            free(gram);
        }
    }
    esp_dataset_free(data);
}

static void check_round(ref_random *random, size_t most, double fragments, size_t chance)
{
    enum { TREES = 4 };
    char *tree[TREES];
    for (size_t i = 0; i < TREES; i++) tree[i] = ref_random_small_tree(random, most, fragments, i == 3);
    const grammar g = random_grammar(random, tree, TREES, chance);
    const weights w = {.lambda = ref_random_between(random, 0.1, 1.5),
                       .lambda1 = ref_random_below(random, 8) == 0 ? 0.0 : ref_random_between(random, 0.05, 1.0),
                       .lambda2 = ref_random_below(random, 8) == 0 ? 0.0 : ref_random_between(random, 0.05, 1.0),
                       .words = ref_random_below(random, 2) == 0,
                       .frontier = ref_random_below(random, 3) > 0,
                       .grammar = &g};
    ref_features of[TREES];
    for (size_t i = 0; i < TREES; i++) of[i] = features(tree[i], &w);
    esp_dataset *data = dataset_of_trees(tree, TREES), *some = dataset_of_trees(tree + 1, TREES - 1);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        const char *expression = expression_of(&w, algorithms[a]);
        double *gram = gram_of(expression, data, NULL, 1), *part = gram_of(expression, data, some, 2);
        for (size_t i = 0; i < TREES; i++)
            for (size_t j = 0; j < TREES; j++) {
                const double expected = dot(&of[i], &of[j]);
                assert_close(gram[i * TREES + j], expected, 1e-10, expression);
                if (j > 0) assert_close(part[i * (TREES - 1) + j - 1], expected, 1e-10, expression);
            }
        free(gram);
        free(part);
    }
    esp_dataset_free(data);
    esp_dataset_free(some);
    for (size_t i = 0; i < TREES; i++) {
        ref_features_free(&of[i]);
        free(tree[i]);
    }
}

static void equals_its_feature_map(void **state)
{
    (void)state;
    ref_random random = {20};
    for (int round = 0; round < REPEATS(300); round++) check_round(&random, 12, 40, 4);
    for (int round = 0; round < REPEATS(100); round++) check_round(&random, 8, 30, 8);
}

/* The diagonal is computed by itself; norms rely on it. */
static void diagonal_is_that_of_the_matrix(void **state)
{
    (void)state;
    enum { TREES = 12 };
    ref_random random = {21};
    char *tree[TREES];
    for (size_t i = 0; i < TREES; i++) tree[i] = ref_random_tree(&random, i < 2 ? 1500 : 5 + 3 * i, false);
    const grammar g = random_grammar(&random, tree + 2, TREES - 2, 5);
    const weights w = {.lambda = 0.3, .lambda1 = 0.5, .lambda2 = 0.4, .words = true, .frontier = true, .grammar = &g};
    esp_dataset *data = dataset_of_trees(tree, TREES);
    for (size_t a = 0; a < 2; a++) {
        const char *expression = expression_of(&w, algorithms[a]);
        double *gram = gram_of(expression, data, NULL, 2), diagonal[TREES];
        esp_kernel *kernel = kernel_of(expression);
        esp_error err = {0};
        assert_ok(esp_gram_diagonal(kernel, data, &(esp_run){.threads = 2}, diagonal, &err), expression, &err);
        for (size_t i = 0; i < TREES; i++) assert_close(diagonal[i], gram[i * TREES + i], 1e-10, "self-value");
        esp_kernel_free(kernel);
        free(gram);
    }
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) free(tree[i]);
}

static void without_a_grammar_it_is_sst(void **state)
{
    (void)state;
    enum { TREES = 6 };
    ref_random random = {22};
    for (int round = 0; round < 40; round++) {
        char *tree[TREES];
        ref_features of[TREES];
        const double lambda = ref_random_between(&random, 0.1, 1.2);
        const ref_weights plain = {.lambda = lambda, .alpha = 1.0};
        for (size_t i = 0; i < TREES; i++) {
            tree[i] = ref_random_small_tree(&random, 20, 400, i == 0);
            ref_tree *t = ref_tree_parse(tree[i]);
            of[i] = ref_features_of(t, &plain);
            ref_tree_free(t);
        }
        esp_dataset *data = dataset_of_trees(tree, TREES);
        for (size_t a = 0; a < ALGORITHMS; a++) {
            char text[128];
            snprintf(text, sizeof text, "gtk(lambda=%.17g, frontier=%d, algorithm=%s)", lambda, round & 1,
                     algorithms[a]);
            double *gram = gram_of(text, data, NULL, 1);
            for (size_t i = 0; i < TREES; i++)
                for (size_t j = 0; j < TREES; j++)
                    assert_close(gram[i * TREES + j], ref_features_dot(&of[i], &of[j]), 1e-10, text);
            free(gram);
        }
        esp_dataset_free(data);
        for (size_t i = 0; i < TREES; i++) {
            ref_features_free(&of[i]);
            free(tree[i]);
        }
    }
}

static void assert_same(const char *one, const char *other, const esp_dataset *data, double tolerance)
{
    const size_t n = esp_dataset_count(data);
    double *a = gram_of(one, data, NULL, 1), *b = gram_of(other, data, NULL, 1);
    for (size_t i = 0; i < n * n; i++) assert_close(a[i], b[i], tolerance, one);
    free(a);
    free(b);
}

static void assert_near(const char *one, const char *other, const esp_dataset *data)
{
    const size_t n = esp_dataset_count(data);
    double *a = gram_of(one, data, NULL, 1), *b = gram_of(other, data, NULL, 1);
    for (size_t i = 0; i < n * n; i++)
        if (fabs(a[i] - b[i]) > 1e-13) fail_msg("%s: %g is far from %g", one, a[i], b[i]);
    free(a);
    free(b);
}

static void limits(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of_trees((char **)(uintptr_t)spec_trees, 3);
    /* Removing nothing at all is a grammar without optional children; without mutations one without classes. */
    assert_same("gtk(lambda1=0, grammar={NP -> DT [JJ] NN; = NN NNS})", "gtk(grammar={= NN NNS})", data, 0.0);
    assert_near("gtk(lambda1=1e-14, grammar={NP -> DT [JJ] NN; = NN NNS})", "gtk(grammar={= NN NNS})", data);
    assert_same("gtk(lambda2=0, grammar={NP -> DT [JJ] NN; = NN NNS})", "gtk(grammar={NP -> DT [JJ] NN})", data, 0.0);
    assert_near("gtk(lambda2=1e-14, grammar={NP -> DT [JJ] NN; = NN NNS})", "gtk(grammar={NP -> DT [JJ] NN})", data);
    assert_same("gtk(lambda1=0, lambda2=0, grammar={NP -> DT [JJ] NN; = NN NNS})", "sst(lambda=0.4)", data, 1e-15);
    esp_dataset_free(data);
}

/* All children optional: at least one stays. Both words alike: (A b) against (A c), all optional, have nothing in
 * common. */
static void every_child_optional(void **state)
{
    (void)state;
    static const char *const trees[] = {"(A (B b) (C c))", "(A (C c) (D d))", "(A (E e) (D x))", "(A (E e))"};
    esp_dataset *data = dataset_of_trees((char **)(uintptr_t)trees, 4);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        char text[200];
        snprintf(text, sizeof text,
                 "gtk(lambda=0.5, lambda1=0.5, grammar={A -> [B] [C]; A -> [C] [D]; A -> [E] [D]}, "
                 "algorithm=%s)",
                 algorithms[a]);
        double *gram = gram_of(text, data, NULL, 1);
        assert_close(gram[1], 0.5 + 0.5 * 0.25 * 1.5, 1e-15, "A without B, A without D, and C");
        assert_close(gram[2], 0.0, 0.0, "nothing");
        assert_close(gram[6], 0.5 * 0.25 * 1.0, 1e-15, "D with other words");
        assert_close(gram[11], 0.5 + 0.5 * 0.5 * 1.5, 1e-15, "A without D, and E");
        free(gram);
    }
    esp_dataset_free(data);
}

static void words_and_nodes_mixed(void **state)
{
    (void)state;
    /* A pre-terminal is not a node with a child more; several words must all be the same. */
    static const char *const trees[] = {"(A x (B b))", "(A x)", "(A x y)", "(A x (C b) (B b))", "(A (B b) x)"};
    esp_dataset *data = dataset_of_trees((char **)(uintptr_t)trees, 5);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        char text[200];
        snprintf(text, sizeof text,
                 "gtk(lambda=0.5, lambda1=0.5, grammar={A -> x [B]; A -> x [C] B; = B C}, lambda2=0.2, "
                 "algorithm=%s)",
                 algorithms[a]);
        double *gram = gram_of(text, data, NULL, 1);
        const double same = 1.0 + 0.04, other = 0.4;                    /* M of equal and of different labels */
        const double top = 0.5 * (0.5 * same * 1.5 + 0.25 * 0.5 * 0.0); /* x and B kept, C gone */
        assert_close(gram[1], 0.0, 0.0, "a pre-terminal and another node");
        assert_close(gram[1 * 5 + 1], 0.5, 1e-15, "one word");
        assert_close(gram[1 * 5 + 2], 0.0, 0.0, "one word and two");
        assert_close(gram[2 * 5 + 2], 0.5, 1e-15, "two words");
        assert_close(gram[3], top + 0.5 * other + 0.5 * same, 1e-15, "with C and without");
        assert_close(gram[4], 0.5 * same, 1e-15, "in another order only B is the same");
        free(gram);
    }
    esp_dataset_free(data);
}

static void is_positive_semi_definite(void **state)
{
    (void)state;
    enum { TREES = 40 };
    ref_random random = {23};
    for (int round = 0; round < 12; round++) {
        char *tree[TREES];
        for (size_t i = 0; i < TREES; i++)
            tree[i] = ref_random_tree(&random, 2 + ref_random_below(&random, 12), round & 1);
        const grammar g = random_grammar(&random, tree, TREES, 6);
        const weights w = {.lambda = 0.7,
                           .lambda1 = ref_random_between(&random, 0, 1),
                           .lambda2 = ref_random_between(&random, 0, 1),
                           .words = round % 3 > 0,
                           .frontier = round % 4 > 0,
                           .grammar = &g};
        esp_dataset *data = dataset_of_trees(tree, TREES);
        double *gram = gram_of(expression_of(&w, "fgtk3"), data, NULL, 1), smallest, largest;
        ref_eigenvalues(gram, TREES, &smallest, &largest);
        if (smallest < -1e-11 * largest) fail_msg("round %d: eigenvalue %g (of up to %g)", round, smallest, largest);
        free(gram);
        esp_dataset_free(data);
        for (size_t i = 0; i < TREES; i++) free(tree[i]);
    }
}

static char *chain_of_labels(size_t depth, size_t labels, const char *word)
{
    char *text = malloc(depth * 12 + 64), *end = text;
    assert_non_null(text);
    for (size_t i = 0; i < depth; i++) end += sprintf(end, "(L%zu ", i % labels);
    end += sprintf(end, "%s", word);
    for (size_t i = 0; i < depth; i++) *end++ = ')';
    *end = '\0';
    return text;
}

static void deep_chains(void **state)
{
    (void)state;
    for (size_t labels = 1; labels <= 5000; labels *= 5000) {
        char *tree[2] = {chain_of_labels(100000, labels, "a"), chain_of_labels(100000, labels, "b")};
        esp_dataset *data = dataset_of_trees(tree, 2);
        /* Delta of two nodes of a chain with k productions below both is lambda (1 + Delta): l + l^2 + ... */
        double *gram = gram_of("norm(gtk(lambda=0.4, grammar={L0 -> [L0]}))", data, NULL, 2);
        double *sst = gram_of("norm(sst(lambda=0.4))", data, NULL, 2);
        for (size_t i = 0; i < 4; i++) assert_close(gram[i], sst[i], 1e-9, "a chain");
        free(gram);
        free(sst);
        esp_dataset_free(data);
        free(tree[0]);
        free(tree[1]);
    }
}

static void overflow(void **state)
{
    (void)state;
    enum { TREES = 3 };
    ref_random random = {24};
    char *tree[TREES];
    for (size_t i = 0; i < TREES; i++) tree[i] = ref_random_tree(&random, 400, false);
    const grammar g = random_grammar(&random, tree, TREES, 5);
    const weights w = {.lambda = 1e9, .lambda1 = 0.5, .lambda2 = 0.4, .words = true, .frontier = true, .grammar = &g};
    esp_dataset *data = dataset_of_trees(tree, TREES);
    char text[9000];
    esp_kernel *kernel = kernel_of(expression_of(&w, "fgtk3"));
    double gram[TREES * TREES];
    esp_error err = {0};
    assert_int_equal(esp_gram(kernel, data, NULL, NULL, gram, &err), ESP_ERR_RANGE);
    esp_kernel_free(kernel);
    for (size_t a = 0; a < 3; a++) {
        snprintf(text, sizeof text, "norm(%s)", expression_of(&w, algorithms[a]));
        double *normed = gram_of(text, data, NULL, 1);
        for (size_t i = 0; i < TREES; i++) {
            assert_close(normed[i * TREES + i], 1.0, 1e-9, "K(x, x)");
            for (size_t j = 0; j < TREES; j++)
                if (!(normed[i * TREES + j] >= 0.0 && normed[i * TREES + j] <= 1.0 + 1e-9))
                    fail_msg("%g", normed[i * TREES + j]);
        }
        free(normed);
    }
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) free(tree[i]);
}

/* Wide numbers agree with plain ones where both can be had: a weight so small that the norm needs them for one only. */
static void wide_numbers_agree(void **state)
{
    (void)state;
    enum { TREES = 5 };
    ref_random random = {25};
    char *tree[TREES], text[9000], other[9000];
    for (size_t i = 0; i < TREES; i++) tree[i] = ref_random_tree(&random, 40, false);
    const grammar g = random_grammar(&random, tree, TREES, 5);
    const weights w = {.lambda = 0.9, .lambda1 = 0.5, .lambda2 = 0.4, .words = true, .frontier = true, .grammar = &g};
    esp_dataset *data = dataset_of_trees(tree, TREES);
    snprintf(text, sizeof text, "norm(%s)", expression_of(&w, "fgtk3"));
    /* The power overflows; K^1000 normalised is the normalised K to the power 1000. */
    snprintf(other, sizeof other, "norm(%s^1000)", expression_of(&w, "fgtk3"));
    double *plain = gram_of(text, data, NULL, 1), *wide = gram_of(other, data, NULL, 1);
    for (size_t i = 0; i < TREES * TREES; i++) assert_close(wide[i], pow(plain[i], 1000.0), 1e-8, "a power");
    free(plain);
    free(wide);
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) free(tree[i]);
}

static void scorers_and_threads(void **state)
{
    (void)state;
    enum { TREES = 30, OTHERS = 20 };
    ref_random random = {26};
    char *tree[TREES + OTHERS];
    for (size_t i = 0; i < TREES + OTHERS; i++)
        tree[i] = ref_random_tree(&random, 2 + ref_random_below(&random, 30), i > 40);
    const grammar g = random_grammar(&random, tree, TREES, 5);
    weights w = {.lambda = 0.6, .lambda1 = 0.5, .lambda2 = 0.4, .frontier = true, .grammar = &g};
    esp_dataset *cols = dataset_of_trees(tree, TREES), *rows = dataset_of_trees(tree + TREES, OTHERS);
    for (int words = 0; words < 2; words++) {
        w.words = words == 1;
        for (size_t a = 0; a < 2; a++) {
            const char *expression = expression_of(&w, algorithms[a]);
            double *gram = gram_of(expression, rows, cols, 1), *again = gram_of(expression, rows, cols, 3);
            assert_memory_equal(gram, again, TREES * OTHERS * sizeof *gram);
            esp_kernel *kernel = kernel_of(expression);
            esp_scorer *scorer = NULL;
            esp_error err = {0};
            double scores[OTHERS];
            assert_ok(esp_scorer_new(kernel, cols, &scorer, &err), expression, &err);
            for (size_t j = 0; j < TREES; j++)
                assert_ok(esp_scorer_add(scorer, j, sin((double)j), &err), expression, &err);
            assert_ok(esp_scorer_score(scorer, rows, &(esp_run){.threads = 2}, scores, &err), expression, &err);
            for (size_t i = 0; i < OTHERS; i++) {
                double sum = 0.0, size = 0.0;
                for (size_t j = 0; j < TREES; j++) {
                    sum += sin((double)j) * gram[i * TREES + j];
                    size += fabs(gram[i * TREES + j]);
                }
                if (fabs(sum - scores[i]) > 1e-11 * size) fail_msg("score %zu is %g instead of %g", i, scores[i], sum);
            }
            esp_scorer_free(scorer);
            esp_kernel_free(kernel);
            free(gram);
            free(again);
        }
    }
    esp_dataset_free(cols);
    esp_dataset_free(rows);
    for (size_t i = 0; i < TREES + OTHERS; i++) free(tree[i]);
}

static char *wide_tree(size_t children)
{
    char *text = malloc(children * 8 + 16), *end = text + sprintf(text, "(A");
    for (size_t i = 0; i < children; i++) end += sprintf(end, " (B b)");
    strcpy(end, ")");
    return text;
}

/* Productions with so many optional children that their variations are not listed. */
static void many_optional_children(void **state)
{
    (void)state;
    enum { MOST = 14 };
    char *tree[MOST], text[4096];
    size_t n = 0;
    n += (size_t)sprintf(text, "gtk(lambda=0.5, lambda1=0.3, grammar={");
    for (size_t i = 0; i < MOST; i++) {
        tree[i] = wide_tree(i + 1);
        n += (size_t)sprintf(text + n, "A ->");
        for (size_t k = 0; k <= i; k++) n += (size_t)sprintf(text + n, " [B]");
        n += (size_t)sprintf(text + n, ";");
    }
    esp_dataset *data = dataset_of_trees(tree, MOST);
    sprintf(text + n, "}, algorithm=fgtk3)");
    double *gram = gram_of(text, data, NULL, 1);
    for (size_t i = 0; i < MOST; i++)
        for (size_t j = 0; j < MOST; j++) {
            /* Choose k of both; each kept pair is 1 + 0.5. */
            double sum = (double)((i + 1) * (j + 1)) * 0.5, ways = 1.0;
            for (size_t k = 1; k <= i + 1 && k <= j + 1; k++) {
                ways *= (double)(i + 2 - k) * (double)(j + 2 - k) / (double)(k * k);
                sum += 0.5 * ways * pow(1.5, (double)k) * pow(0.3, (double)(i + j + 2 - 2 * k));
            }
            assert_close(gram[i * MOST + j], sum, 1e-12, "binomials");
        }
    free(gram);
    esp_kernel *kernel = NULL;
    esp_error err = {0};
    double values[MOST * MOST];
    sprintf(text + n, "}, algorithm=gtk)");
    kernel = kernel_of(text);
    assert_int_equal(esp_gram(kernel, data, NULL, NULL, values, &err), ESP_ERR_PARAM);
    assert_string_equal(err.message,
                        "gtk(algorithm=gtk) tries all variations: a production of 'A' with 11 children, 11 of "
                        "them optional, has 2048, and 1024 are allowed; algorithm=fgtk3 takes any number");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    for (size_t i = 0; i < MOST; i++) free(tree[i]);
}

typedef struct work {
    const char *expression;
    const esp_dataset *data, *two;
} work;

static esp_status multiply_and_score(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_run run = {.threads = 1};
    esp_kernel *kernel = NULL;
    esp_scorer *scorer = NULL;
    double values[9];
    esp_status status = esp_kernel_parse(w->expression, &kernel, err);
    if (status == ESP_OK) status = esp_gram(kernel, w->data, w->two, &run, values, err);
    if (status == ESP_OK) status = esp_scorer_new(kernel, w->data, &scorer, err);
    if (status == ESP_OK) status = esp_scorer_add(scorer, 0, 1.0, err);
    if (status == ESP_OK) status = esp_scorer_score(scorer, w->two, &run, values, err);
    esp_scorer_free(scorer);
    esp_kernel_free(kernel);
    return status;
}

static void out_of_memory(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of_trees((char **)(uintptr_t)spec_trees, 3),
                *two = dataset_of_trees((char **)(uintptr_t)spec_trees, 2);
    for (size_t a = 0; a < ALGORITHMS; a++) {
        char text[256];
        snprintf(text, sizeof text, "norm(gtk(%s, algorithm=%s))", grammar_text, algorithms[a]);
        out_of_memory_everywhere(multiply_and_score, &(work){text, data, two});
    }
    esp_dataset_free(data);
    esp_dataset_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_values),
        cmocka_unit_test(equals_its_feature_map),
        cmocka_unit_test(diagonal_is_that_of_the_matrix),
        cmocka_unit_test(without_a_grammar_it_is_sst),
        cmocka_unit_test(limits),
        cmocka_unit_test(every_child_optional),
        cmocka_unit_test(words_and_nodes_mixed),
        cmocka_unit_test(is_positive_semi_definite),
        cmocka_unit_test(deep_chains),
        cmocka_unit_test(overflow),
        cmocka_unit_test(wide_numbers_agree),
        cmocka_unit_test(scorers_and_threads),
        cmocka_unit_test(many_optional_children),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
