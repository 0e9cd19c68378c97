/* The partial tree kernel against its definition, which is written out here: all pairs of increasing sequences of
 * children, one by one. */
#include "kernel/evaluate/bound.h"
#include "ptk_cases.h"

/* ------------------------------------------------------------- definition */

static double delta(const ref_tree *a, const ref_tree *b, const setting *s);

/* Sums over all ways to go on from a pair of sequences that ends at children i and j (SIZE_MAX: none yet) with
 * product `so_far`, gaps included. */
static double go_on(const ref_tree *a, const ref_tree *b, size_t i, size_t j, double so_far, const setting *s)
{
    double sum = 0.0;
    for (size_t k = i + 1; k < a->children; k++) {
        for (size_t l = j + 1; l < b->children; l++) {
            const size_t gaps = i == SIZE_MAX ? 0 : (k - i - 1) + (l - j - 1);
            const double product = so_far * pow(s->lambda, (double)gaps) * delta(a->child[k], b->child[l], s);
            if (product != 0.0) sum += product + go_on(a, b, k, l, product, s);
        }
    }
    return sum;
}

static double delta(const ref_tree *a, const ref_tree *b, const setting *s)
{
    if (strcmp(a->label, b->label) != 0) return 0.0;
    if (a->children == 0 || b->children == 0) return s->mu * s->lambda * s->lambda * s->terminal;
    return s->mu * (s->lambda * s->lambda + go_on(a, b, SIZE_MAX, SIZE_MAX, 1.0, s));
}

static double sum_right(const ref_tree *a, const ref_tree *b, const setting *s)
{
    double sum = delta(a, b, s);
    for (size_t k = 0; k < b->children; k++) sum += sum_right(a, b->child[k], s);
    return sum;
}

static double definition(const ref_tree *a, const ref_tree *b, const setting *s)
{
    double sum = sum_right(a, b, s);
    for (size_t k = 0; k < a->children; k++) sum += definition(a->child[k], b, s);
    return sum;
}

static esp_dataset *random_trees(ref_random *random, size_t count, size_t nodes, size_t most, size_t labels)
{
    char **text = malloc(count * sizeof *text);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) text[i] = random_tree(random, nodes, most, labels);
    esp_dataset *data = dataset_of_trees(text, count);
    for (size_t i = 0; i < count; i++) free(text[i]);
    free(text);
    return data;
}

static void assert_same_matrix(const double *a, const double *b, size_t count, double tolerance, const char *what)
{
    for (size_t i = 0; i < count; i++) assert_close(a[i], b[i], tolerance, what);
}

static const char *const algorithms[] = {"dag", "pair"};

/* ------------------------------------------------------------------ tests */

static void test_worked_value(void **state)
{
    (void)state;
    char *tree[] = {"(NP (DT a) (JJ red) (NN car))", "(NP (DT a) (NN car))"};
    esp_dataset *data = dataset_of_trees(tree, 2);
    assert_close(value_of("ptk", data), 0.4441645056, 1e-14, "PTK");
    assert_close(value_of("ptk(algorithm=pair)", data), 0.4441645056, 1e-14, "PTK, pair");
    esp_dataset_free(data);
}

static void test_definition(void **state)
{
    enum { TREES = 24 };
    static const setting settings[] = {{0.4, 0.4, 1}, {0.4, 0.4, 5}, {1, 1, 1}, {0.7, 1.5, 0}, {1.3, 0.2, 0.5}};
    (void)state;
    ref_random random = {7};
    char *text[TREES];
    ref_tree *tree[TREES];
    for (size_t i = 0; i < TREES; i++) {
        text[i] = random_tree(&random, 1 + ref_random_below(&random, 14), 1 + i % 7, 1 + i % 3);
        tree[i] = ref_tree_parse(text[i]);
    }
    esp_dataset *data = dataset_of_trees(text, TREES);
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        for (size_t a = 0; a < 2; a++) {
            double *gram = gram_of(expression_of(&settings[k], algorithms[a]), data, NULL, 1);
            for (size_t i = 0; i < TREES * TREES; i++)
                assert_close(gram[i], definition(tree[i / TREES], tree[i % TREES], &settings[k]), 1e-10, "PTK");
            free(gram);
        }
    }
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) {
        free(text[i]);
        ref_tree_free(tree[i]);
    }
}

/* Trees of the KeLP example (questions, grammatical relation centred), with the parameters of its users. */
static void test_kelp_trees(void **state)
{
    char *text[] = {
        ("(SYNT##root (SYNT##advmod (POS##WRB LEX##how::w)) (SYNT##aux (POS##VBD LEX##do::v)) (POS##VB "
         "LEX##develop::v) "
         "(SYNT##prep (POS##IN LEX##in::i)) (SYNT##conj_and (SYNT##nsubj (POS##NN LEX##serfdom::n)) (SYNT##advmod "
         "(POS##RB LEX##then::r)) (POS##VBP LEX##leave::v) (SYNT##dobj (POS##NNP LEX##russia::n))))"),
        ("(SYNT##root (SYNT##nsubj (SYNT##det (POS##WDT LEX##what::w)) (POS##NNS LEX##film::n)) (POS##VBD "
         "LEX##feature::v) (SYNT##xcomp (SYNT##nsubj (SYNT##det (POS##DT LEX##the::d)) (POS##NN LEX##character::n)) "
         "(SYNT##nn (POS##NNP LEX##popeye::n)) (POS##NNP LEX##doyle::n)))"),
        ("(SYNT##root (POS##WP LEX##what::w) (SYNT##cop (POS##VBZ LEX##be::v)) (SYNT##nsubj (SYNT##det (POS##DT "
         "LEX##the::d)) (POS##NN LEX##film::n)))")};
    enum { TREES = sizeof text / sizeof *text };
    const setting s = {0.4, 0.4, 5};
    (void)state;
    ref_tree *tree[TREES];
    ref_features features[TREES];
    for (size_t i = 0; i < TREES; i++) {
        tree[i] = ref_tree_parse(text[i]);
        features[i] = ref_features_of(tree[i], &(ref_weights){.lambda = 0.4, .alpha = 1, .bow = 0.4});
    }
    esp_dataset *data = dataset_of_trees(text, TREES);
    double *ptk = gram_of("norm(ptk(lambda=0.4, mu=0.4, terminal=5))", data, NULL, 1);
    double *sst = gram_of("norm(sst(lambda=0.4, bow=0.4))", data, NULL, 1);
    for (size_t i = 0; i < TREES; i++) {
        for (size_t j = 0; j < TREES; j++) {
            const double self = sqrt(definition(tree[i], tree[i], &s) * definition(tree[j], tree[j], &s));
            assert_close(ptk[i * TREES + j], definition(tree[i], tree[j], &s) / self, 1e-12, "PTK of KeLP's trees");
            const double length =
                sqrt(ref_features_dot(&features[i], &features[i]) * ref_features_dot(&features[j], &features[j]));
            assert_close(sst[i * TREES + j], ref_features_dot(&features[i], &features[j]) / length, 1e-12,
                         "SST with leaves of KeLP's trees");
        }
    }
    free(ptk);
    free(sst);
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) {
        ref_tree_free(tree[i]);
        ref_features_free(&features[i]);
    }
}

/* Larger trees, wide and deep ones: both algorithms, square and not, at once and
 * in pieces, by any number of threads. */
static void test_algorithms_agree(void **state)
{
    enum { TREES = 9, OTHERS = 6 };
    static const struct {
        size_t nodes, most, labels;
    } kinds[] = {{150, 4, 3}, {400, 2, 2}, {320, 300, 4}, {600, 40, 30}, {90, 1, 2}, {61, 3, 5}};
    static const setting settings[] = {{0.4, 0.4, 1}, {0.9, 0.3, 2}};
    (void)state;
    ref_random random = {11};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        esp_dataset *data = random_trees(&random, TREES, kinds[k].nodes, kinds[k].most, kinds[k].labels);
        esp_dataset *other = random_trees(&random, OTHERS, kinds[k].nodes / 2, kinds[k].most, kinds[k].labels + 1);
        for (size_t s = 0; s < 2; s++) {
            double *square[2], *oblong[2], *turned;
            for (size_t a = 0; a < 2; a++) {
                square[a] = gram_of(expression_of(&settings[s], algorithms[a]), data, NULL, 1);
                oblong[a] = gram_of(expression_of(&settings[s], algorithms[a]), other, data, 1);
            }
            turned = gram_of(expression_of(&settings[s], "dag"), data, other, 1);
            assert_same_matrix(square[0], square[1], TREES * TREES, 1e-12, "square");
            assert_same_matrix(oblong[0], oblong[1], OTHERS * TREES, 1e-12, "oblong");
            for (size_t i = 0; i < OTHERS; i++)
                for (size_t j = 0; j < TREES; j++)
                    assert_close(turned[j * OTHERS + i], oblong[0][i * TREES + j], 1e-12, "turned");
            double *threads = gram_of(expression_of(&settings[s], "dag"), data, NULL, 3);
            assert_memory_equal(threads, square[0], TREES * TREES * sizeof *threads);
            for (size_t a = 0; a < 2; a++) {
                free(square[a]);
                free(oblong[a]);
            }
            free(turned);
            free(threads);
        }
        esp_dataset_free(data);
        esp_dataset_free(other);
    }
}

/* Parts of rows are those of whole rows; groups may be added up in another order. */
static void assert_parts_of_rows(const char *expression, const esp_dataset *rows, const esp_dataset *cols)
{
    const size_t n = esp_dataset_count(cols);
    esp_kernel *kernel = kernel_of(expression);
    espi_bound *bound = NULL;
    espi_workspace *workspace = NULL;
    esp_error err = {0};
    double *whole = calloc(2 * n, sizeof *whole), *part = whole + n;
    assert_non_null(whole);
    assert_ok(espi_bind(kernel, rows, cols, NULL, &bound, &err), expression, &err);
    assert_ok(espi_workspace_new(bound, NULL, &workspace, &err), expression, &err);
    for (size_t i = 0; i < esp_dataset_count(rows); i++) {
        assert_ok(espi_bound_row(workspace, bound->kernel->ops - 1, i, 0, n, whole, &err), expression, &err);
        for (size_t to = 1; to < n; to += 1 + to / 3) {
            assert_ok(espi_bound_row(workspace, bound->kernel->ops - 1, i, to / 2, to, part, &err), expression, &err);
            assert_same_matrix(part, whole + to / 2, to - to / 2, 1e-14, expression);
        }
    }
    free(whole);
    espi_workspace_free(workspace);
    espi_bound_free(bound);
    esp_kernel_free(kernel);
}

/* Trees with words: rare labels, blocks of many vertices and of one, and vertices that differ from their block. */
static void test_programs(void **state)
{
    enum { TREES = 90, OTHERS = 12 };
    static const setting settings[] = {{0.4, 0.4, 1}, {1, 0.3, 2}, {0.7, 0.2, 0}};
    (void)state;
    ref_random random = {37};
    esp_dataset *data = random_programs(&random, TREES, 40), *others = random_programs(&random, OTHERS, 25);
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        double *dag = gram_of(expression_of(&settings[k], "dag"), data, NULL, 1);
        double *threads = gram_of(expression_of(&settings[k], "dag"), data, NULL, 3);
        double *pair = gram_of(expression_of(&settings[k], "pair"), data, NULL, 1);
        double *oblong = gram_of(expression_of(&settings[k], "dag"), others, data, 1);
        double *turned = gram_of(expression_of(&settings[k], "pair"), others, data, 1);
        assert_same_matrix(dag, pair, (size_t)TREES * TREES, 1e-12, "programs");
        assert_same_matrix(oblong, turned, (size_t)OTHERS * TREES, 1e-12, "programs, oblong");
        assert_memory_equal(dag, threads, (size_t)TREES * TREES * sizeof *dag);
        assert_parts_of_rows(expression_of(&settings[k], "dag"), others, data);
        free(dag);
        free(threads);
        free(pair);
        free(oblong);
        free(turned);
    }
    esp_dataset_free(data);
    esp_dataset_free(others);
}

/* Nodes with so many children of few labels that their cells do not come all at once; several vertices of one shape. */
static void test_wide_nodes(void **state)
{
    enum { TREES = 5 };
    static const size_t width[TREES] = {600, 600, 600, 450, 30};
    static const setting settings[] = {{0.4, 0.4, 1}, {0.95, 0.05, 0}, {1.1, 0.01, 2}};
    (void)state;
    ref_random random = {29};
    char *tree[TREES];
    for (size_t i = 0; i < TREES; i++) {
        char *at = tree[i] = malloc(width[i] * 16 + 16);
        assert_non_null(tree[i]);
        at += sprintf(at, "(r");
        /* The first three differ below their children only. */
        for (size_t k = 0; k < width[i]; k++)
            at += k % 3 == 0 ? sprintf(at, " (x %c)", (char)('a' + ref_random_below(&random, 3)))
                             : sprintf(at, " %c", k % 7 == 0 ? 'x' : 'y');
        sprintf(at, ")");
    }
    esp_dataset *data = dataset_of_trees(tree, TREES);
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        double *dag = gram_of(expression_of(&settings[k], "dag"), data, NULL, 2);
        double *pair = gram_of(expression_of(&settings[k], "pair"), data, NULL, 1);
        assert_same_matrix(dag, pair, TREES * TREES, 1e-11, "wide nodes");
        free(dag);
        free(pair);
    }
    double *unit = gram_of("norm(ptk(lambda=0.95, mu=0.9))", data, NULL, 1); /* in wide numbers */
    double *same = gram_of("norm(ptk(lambda=0.95, mu=0.9, algorithm=pair))", data, NULL, 1);
    assert_same_matrix(unit, same, TREES * TREES, 1e-11, "wide nodes, norm");
    free(unit);
    free(same);
    esp_dataset_free(data);
    for (size_t i = 0; i < TREES; i++) free(tree[i]);
}

/* Self-values come by another way than rows; norm puts both together. */
static void test_norm(void **state)
{
    enum { TREES = 8 };
    static const size_t nodes[] = {1, 2, 30, 400};
    (void)state;
    ref_random random = {13};
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        esp_dataset *data = random_trees(&random, TREES, nodes[k], 5, 3);
        double *plain = gram_of("ptk(mu=0.3, terminal=2)", data, NULL, 1);
        double *unit = gram_of("norm(ptk(mu=0.3, terminal=2))", data, NULL, 2), self[TREES];
        esp_kernel *kernel = kernel_of("ptk(mu=0.3, terminal=2)");
        esp_error err = {0};
        assert_ok(esp_gram_diagonal(kernel, data, NULL, self, &err), "diagonal", &err);
        for (size_t i = 0; i < TREES; i++) {
            assert_close(self[i], plain[i * TREES + i], 1e-13, "self-value");
            for (size_t j = 0; j < TREES; j++)
                assert_close(unit[i * TREES + j], plain[i * TREES + j] / sqrt(self[i] * self[j]), 1e-12, "norm");
        }
        esp_kernel_free(kernel);
        free(plain);
        free(unit);
        esp_dataset_free(data);
    }
}

/* K of two chains of one label: Delta of nodes at heights i and j depends on the lower of them only. */
static double chain_value(size_t shorter, size_t longer, const setting *s)
{
    double at = s->mu * s->lambda * s->lambda * s->terminal, sum = 0.0;
    for (size_t height = 0; height < shorter; height++) {
        sum += at * (double)(shorter + longer - 2 * height - 1);
        at = s->mu * (s->lambda * s->lambda + at);
    }
    return sum;
}

static void test_deep_chains(void **state)
{
    static const size_t nodes[] = {3, 1200, 100000};
    enum { TREES = sizeof nodes / sizeof *nodes };
    (void)state;
    const setting s = {0.4, 0.4, 3};
    char *tree[TREES];
    for (size_t i = 0; i < TREES; i++) tree[i] = chain("(a ", "a", nodes[i] - 1);
    esp_dataset *data = dataset_of_trees(tree, TREES), *small = dataset_of_trees(tree, TREES - 1);
    double *gram = gram_of(expression_of(&s, "dag"), data, NULL, 1);
    double *pair = gram_of(expression_of(&s, "pair"), small, NULL, 1);
    double *unit = gram_of("norm(ptk(lambda=0.4, mu=0.4, terminal=3))", data, NULL, 1);
    for (size_t i = 0; i < TREES; i++) {
        for (size_t j = 0; j <= i; j++) {
            const double value = chain_value(nodes[j], nodes[i], &s);
            assert_close(gram[i * TREES + j], value, 1e-11, "chains");
            if (i < TREES - 1) assert_close(pair[i * (TREES - 1) + j], value, 1e-11, "chains, pair");
            const double self = sqrt(chain_value(nodes[i], nodes[i], &s) * chain_value(nodes[j], nodes[j], &s));
            assert_close(unit[i * TREES + j], value / self, 1e-11, "chains, norm");
        }
    }
    free(gram);
    free(pair);
    free(unit);
    esp_dataset_free(data);
    esp_dataset_free(small);
    for (size_t i = 0; i < TREES; i++) free(tree[i]);
}

/* A node with n equal leaves against one with m, all parameters 1: n m pairs of
 * leaves, and 1 + S = binomial(n + m, n). */
static void test_overflow(void **state)
{
    static const size_t leaves[] = {700, 680, 2};
    (void)state;
    char *tree[3];
    for (size_t i = 0; i < 3; i++) {
        tree[i] = malloc(leaves[i] * 2 + 8);
        assert_non_null(tree[i]);
        char *at = tree[i] + sprintf(tree[i], "(A");
        for (size_t k = 0; k < leaves[i]; k++) at += sprintf(at, " b");
        sprintf(at, ")");
    }
    esp_dataset *data = dataset_of_trees(tree, 3);
    esp_kernel *kernel = kernel_of("ptk(lambda=1, mu=1)");
    double gram[9];
    esp_error err = {0};
    assert_int_equal(esp_gram(kernel, data, NULL, NULL, gram, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "too large for a number"));
    esp_kernel_free(kernel);
    double *unit = gram_of("norm(ptk(lambda=1, mu=1))", data, NULL, 1);
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            const double n = (double)leaves[i], m = (double)leaves[j];
            const double log_value = lgamma(n + m + 1) - lgamma(n + 1) - lgamma(m + 1);
            const double log_self = lgamma(2 * n + 1) / 2 - lgamma(n + 1) + lgamma(2 * m + 1) / 2 - lgamma(m + 1);
            if (i < 2 && j < 2) assert_close(unit[i * 3 + j], exp(log_value - log_self), 1e-9, "norm");
            assert_true(isfinite(unit[i * 3 + j]) && unit[i * 3 + j] <= 1.0 + 1e-12);
        }
    }
    free(unit);
    esp_dataset_free(data);
    for (size_t i = 0; i < 3; i++) free(tree[i]);
}

enum { EXAMPLES = 12, INPUTS = 9 };

static void compare_scores(const char *expression, const esp_dataset *examples, const esp_dataset *inputs,
                           ref_random *random)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_scorer *scorer = NULL;
    esp_error err = {0};
    double coefficient[EXAMPLES], score[INPUTS], again[INPUTS];
    assert_ok(esp_scorer_new(kernel, examples, &scorer, &err), expression, &err);
    for (size_t i = 0; i < EXAMPLES; i++) {
        coefficient[i] = ref_random_between(random, -1, 1);
        assert_ok(esp_scorer_add(scorer, i, coefficient[i], &err), expression, &err);
    }
    double *gram = gram_of(expression, inputs, examples, 1);
    assert_ok(esp_scorer_score(scorer, inputs, &(esp_run){.threads = 1}, score, &err), expression, &err);
    assert_ok(esp_scorer_score(scorer, inputs, &(esp_run){.threads = 3}, again, &err), expression, &err);
    assert_memory_equal(score, again, sizeof score);
    for (size_t i = 0; i < INPUTS; i++) {
        double sum = 0.0, size = 0.0;
        for (size_t j = 0; j < EXAMPLES; j++) {
            sum += coefficient[j] * gram[i * EXAMPLES + j];
            size += fabs(coefficient[j] * gram[i * EXAMPLES + j]);
        }
        if (!(fabs(score[i] - sum) <= 1e-12 * size)) fail_msg("%s: %.17g, not %.17g", expression, score[i], sum);
    }
    free(gram);
    esp_scorer_free(scorer);
    esp_kernel_free(kernel);
}

static void test_scorer(void **state)
{
    static const char *const kernels[] = {"ptk", "norm(ptk(terminal=3))", "ptk(algorithm=pair)",
                                          "0.5*norm(ptk(lambda=0.9)) + sst"};
    (void)state;
    ref_random random = {17};
    esp_dataset *trees[2][2] = {
        {random_trees(&random, EXAMPLES, 40, 4, 3), random_trees(&random, INPUTS, 90, 5, 4)},
        {random_programs(&random, EXAMPLES, 60), random_programs(&random, INPUTS, 60)},
    };
    for (size_t k = 0; k < 2 * (sizeof kernels / sizeof *kernels); k++)
        compare_scores(kernels[k / 2], trees[k % 2][0], trees[k % 2][1], &random);
    for (size_t k = 0; k < 4; k++) esp_dataset_free(trees[k / 2][k % 2]);
}
static void test_positive_semi_definite(void **state)
{
    enum { TREES = 30 };
    (void)state;
    ref_random random = {19};
    esp_dataset *data = random_trees(&random, TREES, 25, 5, 3);
    double *gram = gram_of("ptk(lambda=0.8, mu=0.6, terminal=1)", data, NULL, 1), smallest, largest;
    ref_eigenvalues(gram, TREES, &smallest, &largest);
    assert_true(smallest > -1e-10 * largest);
    free(gram);
    esp_dataset_free(data);
}

/* A tree that is one leaf meets leaves and inner nodes. */
static void test_small_trees(void **state)
{
    (void)state;
    char *tree[] = {"(a)", "(a b)", "(b (a b))"};
    esp_dataset *data = dataset_of_trees(tree, 3);
    for (size_t a = 0; a < 2; a++) {
        const setting s = {0.5, 0.3, 2};
        double *gram = gram_of(expression_of(&s, algorithms[a]), data, NULL, 1);
        const double leaf = 0.3 * 0.25 * 2, inner = 0.3 * 0.25;
        const double both = inner + 0.3 * leaf; /* of (a b) and itself, its leaf not counted */
        const double expected[] = {leaf, leaf, leaf, leaf, both + leaf, both + 2 * leaf};
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            assert_close(gram[i], expected[i], 1e-14, "PTK");
        free(gram);
    }
    esp_dataset_free(data);
}

static int refuse(void *user, const char *stage, double fraction)
{
    (void)stage;
    return fraction < 0.0 && ++*(int *)user > 3;
}

/* One row that would take long asks now and then whether to go on. */
static void test_long_row_can_be_stopped(void **state)
{
    (void)state;
    char *tree[] = {chain("(a ", "a", 5999)};
    esp_dataset *data = dataset_of_trees(tree, 1);
    esp_kernel *kernel = kernel_of("ptk(mu=1)"); /* whose columns never stop changing */
    int asked = 0;
    double value;
    esp_error err = {0};
    esp_run run = {.threads = 1, .progress = refuse, .user = &asked};
    assert_int_equal(esp_gram(kernel, data, NULL, &run, &value, &err), ESP_OK);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(tree[0]);
    tree[0] = chain("(a ", "a", 23999);
    data = dataset_of_trees(tree, 1);
    kernel = kernel_of("ptk(mu=1)");
    asked = 0;
    assert_int_equal(esp_gram(kernel, data, NULL, &run, &value, &err), ESP_ERR_CANCELLED);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    free(tree[0]);
}

typedef struct work {
    const esp_kernel *kernel;
    const esp_dataset *rows, *cols;
} work;

static esp_status multiply(const void *argument, esp_error *err)
{
    const work *w = argument;
    double gram[12];
    return esp_gram(w->kernel, w->rows, w->cols, &(esp_run){.threads = 1}, gram, err);
}

static void test_memory_runs_out(void **state)
{
    static const char *const kernels[] = {"norm(ptk)", "ptk(algorithm=pair)"};
    (void)state;
    ref_random random = {23};
    esp_dataset *rows = random_trees(&random, 3, 90, 4, 3), *cols = random_trees(&random, 4, 20, 4, 4);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        esp_kernel *kernel = kernel_of(kernels[k]);
        out_of_memory_everywhere(multiply, &(work){kernel, rows, cols});
        esp_kernel_free(kernel);
    }
    esp_dataset_free(rows);
    esp_dataset_free(cols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_value),    cmocka_unit_test(test_definition),
        cmocka_unit_test(test_kelp_trees),      cmocka_unit_test(test_algorithms_agree),
        cmocka_unit_test(test_wide_nodes),      cmocka_unit_test(test_norm),
        cmocka_unit_test(test_deep_chains),     cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_scorer),          cmocka_unit_test(test_positive_semi_definite),
        cmocka_unit_test(test_small_trees),     cmocka_unit_test(test_long_row_can_be_stopped),
        cmocka_unit_test(test_memory_runs_out), cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
