/* Gradients of st, sst and sasst: against central differences of the kernel's own values, and, on small trees, against
 * the product rule carried forward through the definition, pair of nodes by pair of nodes. */
#include "base/alloc.h"
#include "cases.h"
#include "kernel/bound.h"

/* --------------------------------------------------------------- problems */

typedef struct problem {
    esp_kernel *kernel;
    esp_dataset *rows, *cols;
    size_t m, n;
    double *weight;   /* m x n */
    double *diagonal; /* m */
} problem;

static problem problem_of(const char *expression, esp_dataset *rows, esp_dataset *cols, uint64_t seed, double low)
{
    ref_random random = {seed};
    problem p = {.kernel = kernel_of(expression), .rows = rows, .cols = cols};
    p.m = esp_dataset_count(rows);
    p.n = esp_dataset_count(cols);
    p.weight = malloc(p.m * p.n * sizeof *p.weight);
    p.diagonal = malloc(p.m * sizeof *p.diagonal);
    assert_true(p.weight != NULL && p.diagonal != NULL);
    for (size_t i = 0; i < p.m * p.n; i++) p.weight[i] = ref_random_between(&random, low, 1.0);
    for (size_t i = 0; i < p.m; i++) p.diagonal[i] = ref_random_between(&random, low, 1.0);
    return p;
}

static void problem_free(problem *p)
{
    esp_kernel_free(p->kernel);
    free(p->weight);
    free(p->diagonal);
}

static size_t parameters_of(const espi_leaf *leaf)
{
    size_t count = 0;
    while (leaf->class->parameters[count].info.name != NULL) count++;
    return count;
}

static double *value_at(espi_leaf *leaf, size_t place)
{
    const size_t own = parameters_of(leaf);
    return place < own ? &leaf->value[place] : &leaf->symbol[place - own].value;
}

/* Whether there is something to learn at this place; the leaves of trees only count where bow is not 0. */
static bool learned(const espi_leaf *leaf, size_t place)
{
    const size_t own = parameters_of(leaf);
    if (place >= own) return true;
    if (strcmp(leaf->class->parameters[place].info.name, "bow") == 0) return leaf->value[place] > 0.0;
    return leaf->class->parameters[place].draw_low > 0.0;
}

typedef struct open_problem {
    espi_bound *bound;
    espi_workspace *workspace;
} open_problem;

static open_problem open_it(const problem *p)
{
    open_problem o;
    esp_error err = {0};
    assert_ok(espi_bind(p->kernel, p->rows, p->cols, NULL, &o.bound, &err), "espi_bind", &err);
    assert_ok(espi_workspace_new(o.bound, NULL, &o.workspace, &err), "espi_workspace_new", &err);
    return o;
}

static void close_it(open_problem *o)
{
    espi_workspace_free(o->workspace);
    espi_bound_free(o->bound);
}

/* The weighted sum of a leaf's values, and that of its diagonal. */
static void values_of(const problem *p, size_t leaf, double sum[2])
{
    const espi_kernel_class *class = p->kernel->leaf[leaf].class;
    open_problem o = open_it(p);
    esp_error err = {0};
    double *row = malloc((p->m + p->n) * sizeof *row);
    sum[0] = sum[1] = 0.0;
    for (size_t i = 0; i < p->m; i++) {
        assert_ok(class->row(o.bound->part[leaf], o.workspace->part[leaf], i, 0, p->n, row, &err), "row", &err);
        for (size_t j = 0; j < p->n; j++) sum[0] += p->weight[i * p->n + j] * row[j];
    }
    assert_ok(class->diagonal(o.bound->part[leaf], ESPI_ROWS, NULL, row, &err), "diagonal", &err);
    for (size_t i = 0; i < p->m; i++) sum[1] += p->diagonal[i] * row[i];
    free(row);
    close_it(&o);
}

/* Central differences with three steps, extrapolated (Richardson). */
static void differences_of(const problem *p, size_t leaf, size_t place, double derivative[2])
{
    double *value = value_at(&p->kernel->leaf[leaf], place), d[3][2];
    const double at = *value, largest = 4e-3 * (at > 0.0 ? at : 1.0);
    for (int k = 0; k < 3; k++) {
        const double step = largest / (1 << k);
        double more[2], less[2];
        *value = at + step;
        values_of(p, leaf, more);
        *value = at - step;
        values_of(p, leaf, less);
        for (int w = 0; w < 2; w++) d[k][w] = (more[w] - less[w]) / (2.0 * step);
    }
    *value = at;
    for (int w = 0; w < 2; w++) {
        const double a = d[1][w] + (d[1][w] - d[0][w]) / 3.0, b = d[2][w] + (d[2][w] - d[1][w]) / 3.0;
        derivative[w] = b + (b - a) / 15.0;
    }
}

/* Gradients of a leaf: of the rows, each in two pieces, and of the diagonal. */
static void gradients_of(const problem *p, open_problem *o, size_t leaf, double *rows, double *diagonal)
{
    const espi_kernel_class *class = p->kernel->leaf[leaf].class;
    esp_error err = {0};
    for (size_t i = 0; i < p->m; i++) {
        const size_t cut[] = {0, i * 7 % (p->n + 1), p->n};
        for (int k = 0; k < 2; k++)
            assert_ok(class->gradient(o->bound->part[leaf], o->workspace->part[leaf], i, cut[k], cut[k + 1],
                                      p->weight + i * p->n + cut[k], rows, &err),
                      "gradient", &err);
    }
    assert_ok(class->gradient_diagonal(o->bound->part[leaf], ESPI_ROWS, NULL, p->diagonal, diagonal, &err),
              "gradient_diagonal", &err);
}

static void check_differences(const char *expression, esp_dataset *rows, esp_dataset *cols)
{
    problem p = problem_of(expression, rows, cols, 17, 0.0);
    open_problem o = open_it(&p);
    for (size_t leaf = 0; leaf < p.kernel->leaves; leaf++) {
        espi_leaf *l = &p.kernel->leaf[leaf];
        double gradient[2][64] = {{0.0}}, expected[2];
        gradients_of(&p, &o, leaf, gradient[0], gradient[1]);
        for (size_t place = 0; place < parameters_of(l) + l->symbols; place++) {
            char what[200];
            if (!learned(l, place)) {
                assert_true(gradient[0][place] == 0.0 && gradient[1][place] == 0.0);
                continue;
            }
            differences_of(&p, leaf, place, expected);
            for (int w = 0; w < 2; w++) {
                snprintf(what, sizeof what, "%s, leaf %zu, place %zu, %s", expression, leaf, place,
                         w ? "diagonal" : "rows");
                assert_close(gradient[w][place], expected[w], 1e-8, what);
            }
        }
    }
    close_it(&o);
    problem_free(&p);
}

/* ------------------------------------------------------------- definition */

enum { MOST_PLACES = 16 };

typedef struct slope { /* a number and its derivatives */
    double value, by[MOST_PLACES];
} slope;

static slope constant(double value) { return (slope){.value = value}; }

static slope plus(slope a, slope b)
{
    a.value += b.value;
    for (size_t p = 0; p < MOST_PLACES; p++) a.by[p] += b.by[p];
    return a;
}

static slope times(slope a, slope b)
{
    for (size_t p = 0; p < MOST_PLACES; p++) a.by[p] = a.by[p] * b.value + a.value * b.by[p];
    a.value *= b.value;
    return a;
}

/* A parameter for a label: its own value, else the shared one. */
static slope parameter(const espi_leaf *leaf, const char *name, const char *label)
{
    const size_t own = parameters_of(leaf);
    slope s = constant(0.0);
    size_t place = MOST_PLACES;
    for (size_t p = 0; p < own; p++)
        if (strcmp(leaf->class->parameters[p].info.name, name) == 0) place = p, s.value = leaf->value[p];
    if (place == MOST_PLACES) return s; /* alpha of st */
    const size_t shared = place;
    for (size_t i = 0; i < leaf->symbols; i++)
        if (leaf->symbol[i].parameter == shared && strcmp(leaf->symbol[i].label, label) == 0)
            place = own + i, s.value = leaf->symbol[i].value;
    s.by[place] = 1.0;
    return s;
}

static bool same_production(const ref_tree *a, const ref_tree *b)
{
    bool same = a->children == b->children && strcmp(a->label, b->label) == 0;
    for (size_t k = 0; same && k < a->children; k++)
        same = strcmp(a->child[k]->label, b->child[k]->label) == 0 &&
               (a->child[k]->children == 0) == (b->child[k]->children == 0);
    return same;
}

static slope delta_of(const espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    if (!same_production(a, b)) return constant(0.0);
    slope product = parameter(leaf, "lambda", a->label);
    for (size_t k = 0; k < a->children; k++)
        if (a->child[k]->children > 0)
            product =
                times(product, plus(parameter(leaf, "alpha", a->label), delta_of(leaf, a->child[k], b->child[k])));
    return product;
}

static slope pairs_below(const espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    slope sum = constant(0.0);
    if (a->children > 0 && b->children > 0) sum = delta_of(leaf, a, b);
    else if (a->children == 0 && b->children == 0 && strcmp(a->label, b->label) == 0) sum = parameter(leaf, "bow", "");
    for (size_t k = 0; k < b->children; k++) sum = plus(sum, pairs_below(leaf, a, b->child[k]));
    return sum;
}

static slope kernel_slope(const espi_leaf *leaf, const ref_tree *a, const ref_tree *b)
{
    slope sum = pairs_below(leaf, a, b);
    for (size_t k = 0; k < a->children; k++) sum = plus(sum, kernel_slope(leaf, a->child[k], b));
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
    problem p = problem_of(expression, rows->data, cols->data, 23, -1.0);
    open_problem o = open_it(&p);
    for (size_t l = 0; l < p.kernel->leaves; l++) {
        const espi_leaf *leaf = &p.kernel->leaf[l];
        const size_t places = parameters_of(leaf) + leaf->symbols;
        double gradient[2][MOST_PLACES] = {{0.0}}, expected[2][MOST_PLACES] = {{0.0}}, size[2][MOST_PLACES] = {{0.0}};
        assert_true(places <= MOST_PLACES);
        gradients_of(&p, &o, l, gradient[0], gradient[1]);
        for (size_t i = 0; i < p.m; i++)
            for (size_t j = 0; j <= p.n; j++) { /* the last is i itself: the diagonal */
                const int w = j == p.n;
                const ref_tree *a = rows->tree[i], *b = w ? a : cols->tree[j];
                const double weight = w ? p.diagonal[i] : p.weight[i * p.n + j];
                const slope k = a == NULL || b == NULL ? constant(0.0) : kernel_slope(leaf, a, b);
                for (size_t q = 0; q < places; q++) {
                    if (!learned(leaf, q)) continue;
                    expected[w][q] += weight * k.by[q];
                    size[w][q] += fabs(weight * k.by[q]);
                }
            }
        for (int w = 0; w < 2; w++)
            for (size_t q = 0; q < places; q++)
                if (!(fabs(gradient[w][q] - expected[w][q]) <= 1e-12 * size[w][q]))
                    fail_msg("%s, leaf %zu, place %zu, %s: %.17g instead of %.17g", expression, l, q,
                             w ? "diagonal" : "rows", gradient[w][q], expected[w][q]);
    }
    close_it(&o);
    problem_free(&p);
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
    problem p = problem_of("sasst(lambda.S=0.5, alpha.S=0.25, lambda.A=2, lambda.B=3)", data, data, 1, 0.0);
    open_problem o = open_it(&p);
    const espi_leaf *leaf = &p.kernel->leaf[0];
    p.weight[0] = p.diagonal[0] = 10.0;
    double rows[MOST_PLACES] = {0.0}, diagonal[MOST_PLACES] = {0.0};
    gradients_of(&p, &o, 0, rows, diagonal);
    for (int q = 0; q < 4; q++) {
        const slope s = parameter(leaf, derivative[q].name, derivative[q].label);
        for (size_t place = 0; place < MOST_PLACES; place++) {
            if (s.by[place] == 0.0) continue;
            assert_close(rows[place], 10.0 * derivative[q].expected, 1e-15, "rows");
            assert_close(diagonal[place], 10.0 * derivative[q].expected, 1e-15, "diagonal");
        }
    }
    assert_true(rows[0] == 0.0 && rows[1] == 0.0); /* nothing is left for the shared ones */
    close_it(&o);
    problem_free(&p);
    esp_dataset_free(data);
}

/* More and larger trees: groups of more vertices than a block holds, words of many trees, trees of more nodes than a
 * table takes. */
static void test_differences(void **state)
{
    (void)state;
    trees a = trees_of(3, 500, 40, false), b = trees_of(4, 60, 60, true), large = trees_of(5, 8, 1500, false);
    for (size_t k = 0; k < EXPRESSIONS; k++) {
        check_differences(expressions[k], a.data, a.data);
        check_differences(expressions[k], b.data, a.data);
    }
    check_differences("sasst(lambda=0.3, alpha=0.5, lambda.S=0.2, alpha.NP=0.7)", large.data, large.data);
    check_differences("sasst(lambda=0.3, alpha=0.5, lambda.S=0.2, alpha.NP=0.7)", large.data, a.data);
    trees_free(&a);
    trees_free(&b);
    trees_free(&large);
}

static char *chain(const char *step, const char *end, size_t steps)
{
    size_t open = 0, room = steps * strlen(step) + strlen(end) + 1;
    for (const char *c = step; *c != '\0'; c++) open += *c == '(', open -= *c == ')';
    char *text = malloc(room + steps * open), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < steps; i++) at += sprintf(at, "%s", step);
    at += sprintf(at, "%s", end);
    for (size_t i = 0; i < steps * open; i++) *at++ = ')';
    *at = '\0';
    return text;
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
    check_differences("sst(lambda=0.2)", data, data);
    check_differences("sst(lambda=0.1, alpha=0)", data, data);
    check_differences("sasst(lambda=0.4, lambda.S=0.2, alpha.S=0.7, lambda.A=0.3)", data, data);
    esp_dataset_free(data);
    for (size_t i = 0; i < 2 * STEPS + 2; i++) free(text[i]);

    char *long_text[] = {chain("(A (B ", "x", 30000), chain("(S (W a) (S (V b)) ", "(A (B x))", 20000),
                         chain("(A (B ", "x", 5)};
    data = dataset_of_trees(long_text, 3);
    check_differences("sst(lambda=0.3)", data, data);
    esp_dataset_free(data);
    for (size_t i = 0; i < 3; i++) free(long_text[i]);
}

/* A workspace gives the same bytes again, whatever was asked in between. */
static void test_again(void **state)
{
    (void)state;
    trees a = trees_of(6, 120, 60, false);
    problem p = problem_of("sasst(lambda=0.4, alpha=0.9, lambda.S=0.3)", a.data, a.data, 5, -1.0);
    open_problem o = open_it(&p), other = open_it(&p);
    double first[2][8] = {{0.0}}, again[2][8] = {{0.0}}, fresh[2][8] = {{0.0}};
    gradients_of(&p, &o, 0, first[0], first[1]);
    gradients_of(&p, &o, 0, again[0], again[1]);
    gradients_of(&p, &other, 0, fresh[0], fresh[1]);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_equal(first, fresh, sizeof first);
    for (int threads = 1; threads <= 3; threads++) {
        double diagonal[8] = {0.0};
        esp_error err = {0};
        assert_ok(p.kernel->leaf[0].class->gradient_diagonal(
                      o.bound->part[0], ESPI_COLS, &(esp_run){.threads = threads}, p.diagonal, diagonal, &err),
                  "gradient_diagonal", &err);
        assert_memory_equal(diagonal, first[1], sizeof diagonal);
    }
    close_it(&o);
    close_it(&other);
    problem_free(&p);
    trees_free(&a);
}

static void test_other_algorithms(void **state)
{
    (void)state;
    trees a = trees_of(7, 3, 9, false);
    static const char *const algorithm[] = {"sst(algorithm=ftk)", "sst(algorithm=qtk)"};
    for (int k = 0; k < 2; k++) {
        problem p = problem_of(algorithm[k], a.data, a.data, 5, 0.0);
        open_problem o = open_it(&p);
        double gradient[8] = {0.0};
        esp_error err = {0};
        assert_int_equal(
            espi_kernel_sst.gradient(o.bound->part[0], o.workspace->part[0], 0, 0, 3, p.weight, gradient, &err),
            ESP_ERR_PARAM);
        assert_non_null(strstr(err.message, "leave `algorithm` out"));
        assert_int_equal(
            espi_kernel_sst.gradient_diagonal(o.bound->part[0], ESPI_ROWS, NULL, p.diagonal, gradient, &err),
            ESP_ERR_PARAM);
        close_it(&o);
        problem_free(&p);
    }
    trees_free(&a);
}

/* Every allocation fails once; the workspace goes on to work, and gives what it would have given. */
static void test_no_memory(void **state)
{
    (void)state;
    trees a = trees_of(8, 40, 600, false);
    problem p = problem_of("sst(lambda=0.4, alpha=0.5)", a.data, a.data, 5, -1.0);
    open_problem o = open_it(&p);
    double first[2][8] = {{0.0}};
    gradients_of(&p, &o, 0, first[0], first[1]);
    close_it(&o);
    const espi_kernel_class *class = p.kernel->leaf[0].class;
    for (long fail = 0, failures = 1; failures > 0; fail++) {
        double gradient[2][8] = {{0.0}};
        esp_error err = {0};
        failures = 0;
        o = open_it(&p);
        for (size_t i = 0; i < 6; i++) {
            espi_alloc_fail_after(fail);
            const esp_status status =
                class->gradient(o.bound->part[0], o.workspace->part[0], i, 0, p.n, p.weight, gradient[0], &err);
            failures += espi_alloc_fail_after(-1) < 0;
            assert_true(status == ESP_OK || status == ESP_ERR_MEMORY);
        }
        const long live = espi_alloc_live();
        espi_alloc_fail_after(fail);
        const esp_status status = class->gradient_diagonal(o.bound->part[0], ESPI_ROWS, &(esp_run){.threads = 1},
                                                           p.diagonal, gradient[1], &err);
        failures += espi_alloc_fail_after(-1) < 0;
        assert_true(status == ESP_OK || status == ESP_ERR_MEMORY);
        assert_int_equal(espi_alloc_live(), live);
        memset(gradient, 0, sizeof gradient);
        gradients_of(&p, &o, 0, gradient[0], gradient[1]);
        assert_memory_equal(gradient, first, sizeof first);
        close_it(&o);
    }
    problem_free(&p);
    trees_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_wide),
        cmocka_unit_test(test_strangers),   cmocka_unit_test(test_definition),
        cmocka_unit_test(test_differences), cmocka_unit_test(test_chains),
        cmocka_unit_test(test_again),       cmocka_unit_test(test_other_algorithms),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
