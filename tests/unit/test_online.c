/* Sums that grow: the score of the annotated DAG is the sum over the trees kept (Aiolli et al. 2007), for random
 * insertions with negative and fractional coefficients, with examples that are looked at and go away in between. */
#include "cases.h"
#include "data/dataset.h"
#include "kernel/evaluate/growing.h"

enum { EXAMPLES = 60, OUTPUTS = 3 };

typedef struct world { /* random examples, and their features by the definition */
    esp_dataset *data;
    ref_tree *tree[EXAMPLES];
    ref_entry x[EXAMPLES][5];
} world;

static const char *const names[] = {"a", "b", "c", "d", "e", "f"};

static void make_world(world *w, uint64_t seed)
{
    ref_random random = {seed};
    char *lines = malloc(EXAMPLES * 2000), *end = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < EXAMPLES; i++) {
        char *text = ref_random_small_tree(&random, 14, 3000.0, i % 3 == 0);
        size_t entries = 0;
        w->tree[i] = ref_tree_parse(text);
        end += sprintf(end, "{\"tree\": \"%s\", \"x\": {", text);
        for (size_t k = 0; k < 6 && entries < 4; k++) {
            if (ref_random_below(&random, 2) == 0) continue;
            const double value = i % 4 == 1 ? ref_random_between(&random, -1.0, 2.0) : 1.0;
            w->x[i][entries] = (ref_entry){names[k], value};
            end += sprintf(end, "%s\"%s\": %.17g", entries++ > 0 ? ", " : "", names[k], value);
        }
        w->x[i][entries] = (ref_entry){NULL, 0.0};
        end += sprintf(end, "}}\n");
        free(text);
    }
    w->data = dataset_of(lines);
    free(lines);
}

static void free_world(world *w)
{
    for (size_t i = 0; i < EXAMPLES; i++) ref_tree_free(w->tree[i]);
    esp_dataset_free(w->data);
}

typedef struct recipe { /* an expression, and the same from kernel values of its two leaves */
    const char *expression;
    ref_weights weights;
    double (*combine)(double tree, double x, const double self[4]); /* self: tree i, tree j, x i, x j */
    double (*vector)(const ref_entry *a, const ref_entry *b);
} recipe;

static double poly3(const ref_entry *a, const ref_entry *b) { return ref_poly(a, b, 1.0, 1.0, 3); }
static double poly2(const ref_entry *a, const ref_entry *b) { return ref_poly(a, b, 0.5, 0.25, 2); }
static double gauss(const ref_entry *a, const ref_entry *b) { return ref_rbf(a, b, 0.7); }

static double norm(double value, double a, double b) { return a > 0.0 && b > 0.0 ? value / sqrt(a * b) : 0.0; }
static double tree_only(double tree, double x, const double self[4]) { return (void)x, (void)self, tree; }
static double x_only(double tree, double x, const double self[4]) { return (void)tree, (void)self, x; }
static double sum(double tree, double x, const double self[4]) { return (void)self, tree + x; }
static double weighted(double tree, double x, const double self[4]) { return (void)self, 2.0 * tree + 0.5 * x; }
static double product(double tree, double x, const double self[4]) { return (void)self, tree * x + tree; }
static double norm_plus(double tree, double x, const double self[4]) { return norm(tree, self[0], self[1]) + x; }
static double norm_of_sum(double tree, double x, const double self[4])
{
    return norm(tree + x, self[0] + self[2], self[1] + self[3]);
}
static double square_of_norm(double tree, double x, const double self[4])
{
    const double value = norm(tree, self[0], self[1]);
    return value * value + 3.0 * norm(x, self[2], self[3]);
}

static const ref_symbol symbols[] = {{"S", 0.3, 1.0}, {"NP", 0.6, 0.5}};

static const recipe recipes[] = {
    {"sst(tree, lambda=0.7)", {.lambda = 0.7, .alpha = 1.0}, tree_only, poly3},
    {"st(tree, lambda=0.5)", {.lambda = 0.5, .alpha = 0.0}, tree_only, poly3},
    {"sst(tree, lambda=0.4, alpha=0.5, bow=0.3)", {.lambda = 0.4, .alpha = 0.5, .bow = 0.3}, tree_only, poly3},
    {"sasst(tree, lambda=0.6, lambda.S=0.3, alpha.NP=0.5)",
     {.lambda = 0.6, .alpha = 1.0, .symbol = symbols, .symbols = 2},
     tree_only,
     poly3},
    {"linear(x)", {.lambda = 1.0}, x_only, ref_linear},
    {"poly(x, degree=3)", {.lambda = 1.0}, x_only, poly3},
    {"rbf(x, gamma=0.7)", {.lambda = 1.0}, x_only, gauss},
    {"sst(tree, lambda=0.7) + poly(x, degree=3)", {.lambda = 0.7, .alpha = 1.0}, sum, poly3},
    {"norm(sst(tree, lambda=0.4)) + poly(x, degree=3)", {.lambda = 0.4, .alpha = 1.0}, norm_plus, poly3},
    {"2*sst(tree, lambda=0.4) + 0.5*poly(x, degree=2, gamma=0.5, coef0=0.25)",
     {.lambda = 0.4, .alpha = 1.0},
     weighted,
     poly2},
    {"sst(tree, lambda=0.4, bow=1)*poly(x) + sst(tree, lambda=0.4, bow=1)",
     {.lambda = 0.4, .alpha = 1.0, .bow = 1.0},
     product,
     poly3},
    {"norm(sst(tree, lambda=0.4) + rbf(x, gamma=0.7))", {.lambda = 0.4, .alpha = 1.0}, norm_of_sum, gauss},
    {"norm(sst(tree, lambda=0.4))^2 + 3*norm(linear(x))", {.lambda = 0.4, .alpha = 1.0}, square_of_norm, ref_linear},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* All kernel values of the world under a recipe. */
static double *values_of(const world *w, const recipe *r)
{
    double *value = malloc(EXAMPLES * EXAMPLES * sizeof *value);
    ref_features *features = malloc(EXAMPLES * sizeof *features);
    assert_non_null(value);
    assert_non_null(features);
    for (size_t i = 0; i < EXAMPLES; i++) features[i] = ref_features_of(w->tree[i], &r->weights);
    for (size_t i = 0; i < EXAMPLES; i++) {
        for (size_t j = 0; j < EXAMPLES; j++) {
            const double self[4] = {ref_features_dot(&features[i], &features[i]),
                                    ref_features_dot(&features[j], &features[j]), r->vector(w->x[i], w->x[i]),
                                    r->vector(w->x[j], w->x[j])};
            value[i * EXAMPLES + j] =
                r->combine(ref_features_dot(&features[i], &features[j]), r->vector(w->x[i], w->x[j]), self);
        }
    }
    for (size_t i = 0; i < EXAMPLES; i++) ref_features_free(&features[i]);
    free(features);
    return value;
}

typedef struct growing {
    esp_kernel *kernel;
    esp_dataset *examples;
    espi_copier *copier;
    espi_growing *sum;
} growing;

/* `rows`: as a power, which is put together from rows of kernel values. */
static void grow_start(growing *g, const world *w, const char *expression, bool rows)
{
    const bool all[2] = {true, true};
    esp_error err = {0};
    char text[200];
    snprintf(text, sizeof text, rows ? "(%s)^1" : "%s", expression);
    g->kernel = kernel_of(text);
    g->examples = espi_dataset_new(ESP_FORMAT_JSONL);
    g->sum = NULL;
    assert_non_null(g->examples);
    assert_ok(espi_copier_new(w->data, all, g->examples, &g->copier, &err), "espi_copier_new", &err);
}

static void grow_look(growing *g, size_t row, espi_form form)
{
    esp_error err = {0};
    assert_ok(espi_copier_row(g->copier, row, &err), "espi_copier_row", &err);
    if (g->sum == NULL)
        assert_ok(espi_growing_new(g->kernel, g->examples, form, OUTPUTS, NULL, &g->sum, &err), g->kernel->text, &err);
    assert_ok(espi_growing_look(g->sum, &err), g->kernel->text, &err);
}

static void grow_end(growing *g)
{
    espi_growing_free(g->sum);
    espi_copier_free(g->copier);
    esp_dataset_free(g->examples);
    esp_kernel_free(g->kernel);
}

/* Compares the scores of the example at hand with sums of the definition. */
static void check_hand(growing *g, const double *value, size_t row, const size_t *kept, const double *coefficient)
{
    const size_t count = espi_growing_count(g->sum);
    double out[OUTPUTS], scale[OUTPUTS] = {0.0}, expected[OUTPUTS] = {0.0}, magnitude = 0.0, size = 0.0;
    esp_error err = {0};
    assert_ok(espi_growing_score(g->sum, out, &magnitude, &err), "espi_growing_score", &err);
    for (size_t e = 0; e < count; e++) {
        const double k = value[row * EXAMPLES + kept[e]];
        for (size_t o = 0; o < OUTPUTS; o++) {
            expected[o] += coefficient[e * OUTPUTS + o] * k;
            scale[o] += fabs(coefficient[e * OUTPUTS + o] * k);
            size += fabs(coefficient[e * OUTPUTS + o] * k);
        }
    }
    for (size_t o = 0; o < OUTPUTS; o++)
        if (!(fabs(out[o] - expected[o]) <= 1e-10 * scale[o]))
            fail_msg("%s: %zu kept: score %.17g instead of %.17g", g->kernel->text, count, out[o], expected[o]);
    if (!(magnitude >= size * (1.0 - 1e-10) && magnitude <= size * 3.0 + 1e3 * (size > 0.0)))
        fail_msg("%s: %zu kept: magnitude %.17g for %.17g", g->kernel->text, count, magnitude, size);
}

static void run_recipe(const world *w, const recipe *r, espi_form form, bool rows, uint64_t seed)
{
    ref_random random = {seed};
    size_t kept[EXAMPLES * 4];
    double coefficient[EXAMPLES * 4 * OUTPUTS];
    double *value = values_of(w, r);
    growing g;
    esp_error err = {0};
    grow_start(&g, w, r->expression, rows);
    for (size_t step = 0, count = 0; step < EXAMPLES * 3; step++) {
        const size_t row = ref_random_below(&random, EXAMPLES);
        grow_look(&g, row, form);
        check_hand(&g, value, row, kept, coefficient);
        if (step > 0 && ref_random_below(&random, 3) > 0) {
            espi_row_undo(g.examples);
            continue;
        }
        for (size_t o = 0; o < OUTPUTS; o++)
            coefficient[count * OUTPUTS + o] =
                o == 0 ? (step % 2 == 0 ? 1.0 : -1.0) : ref_random_between(&random, -2.0, 2.0);
        assert_ok(espi_growing_keep(g.sum, coefficient + count * OUTPUTS, &err), "espi_growing_keep", &err);
        kept[count++] = row;
        assert_int_equal(espi_growing_count(g.sum), count);
    }
    grow_end(&g);
    free(value);
}

static void test_theorem(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        world w;
        make_world(&w, seed);
        for (size_t i = 0; i < RECIPES; i++) {
            run_recipe(&w, &recipes[i], ESPI_FORM_DAG, false, seed * 100 + i);
            run_recipe(&w, &recipes[i], ESPI_FORM_DAG, true, seed * 100 + i);
        }
        free_world(&w);
    }
}

static void test_forms(void **state)
{
    (void)state;
    world w;
    make_world(&w, 9);
    for (size_t i = 0; i < RECIPES; i++)
        for (int form = ESPI_FORM_FOREST; form <= ESPI_FORM_PLAIN; form++) {
            run_recipe(&w, &recipes[i], (espi_form)form, false, 7 + i);
            run_recipe(&w, &recipes[i], (espi_form)form, true, 7 + i);
        }
    free_world(&w);
}

/* What was looked at and went away leaves nothing: not in the tables, not in the numbers given to what comes later. */
static void test_nothing_stays(void **state)
{
    (void)state;
    world w;
    make_world(&w, 3);
    growing g, h;
    esp_error err = {0};
    const double one[OUTPUTS] = {1.0, 0.5, -1.0};
    grow_start(&g, &w, "sst(tree, bow=0.1) + linear(x)", false);
    grow_start(&h, &w, "sst(tree, bow=0.1) + linear(x)", false);
    for (size_t i = 0; i < EXAMPLES; i++) {
        if (i > 0)
            for (size_t k = 0; k < EXAMPLES; k += 7) {
                grow_look(&g, k, ESPI_FORM_DAG);
                espi_row_undo(g.examples);
            }
        grow_look(&g, i, ESPI_FORM_DAG);
        grow_look(&h, i, ESPI_FORM_DAG);
        double a[OUTPUTS], b[OUTPUTS], magnitude;
        assert_ok(espi_growing_score(g.sum, a, &magnitude, &err), "score", &err);
        assert_ok(espi_growing_score(h.sum, b, &magnitude, &err), "score", &err);
        assert_memory_equal(a, b, sizeof a);
        assert_ok(espi_growing_keep(g.sum, one, &err), "keep", &err);
        assert_ok(espi_growing_keep(h.sum, one, &err), "keep", &err);
    }
    for (size_t c = 0; c < 2; c++) {
        const espi_column *x = &g.examples->column[c], *y = &h.examples->column[c];
        assert_int_equal(x->trees.vertices, y->trees.vertices);
        assert_int_equal(x->trees.productions, y->trees.productions);
        assert_int_equal(x->trees.symbols.count, y->trees.symbols.count);
        assert_int_equal(x->vectors.features.count, y->vectors.features.count);
        for (size_t v = 0; v < x->trees.vertices; v++)
            assert_int_equal(x->trees.vertex[v].production, y->trees.vertex[v].production);
        for (size_t s = 0; s < x->trees.symbols.count; s++)
            assert_string_equal(x->trees.symbols.symbol[s].text, y->trees.symbols.symbol[s].text);
    }
    grow_end(&g);
    grow_end(&h);
    free_world(&w);
}

static void test_measure(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"tree\": \"(S (A a) (B b))\", \"x\": 1}\n{\"tree\": \"(S (A a) (B c))\", \"x\": 1}\n");
    world w = {.data = data};
    growing g;
    esp_error err = {0};
    const double one[OUTPUTS] = {1.0, 1.0, 1.0};
    grow_start(&g, &w, "sst(tree)", false);
    for (size_t i = 0; i < 2; i++) {
        grow_look(&g, i, ESPI_FORM_DAG);
        assert_ok(espi_growing_keep(g.sum, one, &err), "keep", &err);
    }
    const espi_growing_size size = espi_growing_measure(g.sum);
    assert_int_equal(size.nodes, 6);
    assert_int_equal(size.vertices, 5); /* two S, one A, two B */
    assert_true(size.bytes > 0);
    grow_end(&g);
    esp_dataset_free(data);
}

static void test_overflow(void **state)
{
    (void)state;
    char lines[9000] = "{\"tree\": \"";
    for (int i = 0; i < 500; i++) strcat(lines, "(A (B b) ");
    strcat(lines, "x");
    for (int i = 0; i < 500; i++) strcat(lines, ")");
    strcat(lines, "\", \"x\": 1}\n");
    world w = {.data = dataset_of(lines)};
    growing g;
    esp_error err = {0};
    const double one[OUTPUTS] = {1.0, -1.0, 1.0};
    double score[OUTPUTS], magnitude;
    grow_start(&g, &w, "sst(tree, lambda=8)", false);
    grow_look(&g, 0, ESPI_FORM_DAG);
    assert_ok(espi_growing_keep(g.sum, one, &err), "keep", &err);
    grow_look(&g, 0, ESPI_FORM_DAG);
    assert_int_equal(espi_growing_score(g.sum, score, &magnitude, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "too large"));
    grow_end(&g);
    esp_dataset_free(w.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theorem), cmocka_unit_test(test_forms),    cmocka_unit_test(test_nothing_stays),
        cmocka_unit_test(test_measure), cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
