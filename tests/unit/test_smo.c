/* The solver against LIBSVM on the same Gram matrix, against the optimality conditions written out from their
 * definition, and where data are degenerate. */
#include "cases.h"

#include "learn/svm/smo.h"

#include <libsvm/svm.h>

enum { MANY = 100000000 };

typedef struct task { /* a dataset with its rows, and one problem over them */
    esp_dataset *data;
    esp_kernel *kernel;
    espi_bound *bound;
    size_t examples;
    double *gram; /* as LIBSVM and the checks see it: what the rows hold */
    double *y;
    uint32_t *example;
    signed char *sign;
    double *linear, *upper;
    espi_smo_problem problem;
} task;

typedef struct solution {
    double *alpha;
    espi_smo_result result;
} solution;

/* ------------------------------------------------------------------- tasks */

static void *room(size_t count, size_t size)
{
    void *block = calloc(count + 1, size);
    assert_non_null(block);
    return block;
}

/* Takes over `data`. */
static task task_of(esp_dataset *data, const char *expression, size_t memory)
{
    task t = {.data = data, .kernel = kernel_of(expression), .examples = esp_dataset_count(data)};
    const size_t n = t.examples;
    esp_error err = {0};
    assert_ok(espi_bind(t.kernel, data, data, NULL, &t.bound, &err), expression, &err);
    espi_rows *rows = NULL;
    assert_ok(espi_rows_new(t.bound, &(esp_run){.memory = memory}, &rows, &err), expression, &err);
    t.gram = room(n * n, sizeof *t.gram);
    t.y = room(n, sizeof *t.y);
    t.example = room(2 * n, sizeof *t.example);
    t.sign = room(2 * n, sizeof *t.sign);
    t.linear = room(2 * n, sizeof *t.linear);
    t.upper = room(2 * n, sizeof *t.upper);
    for (size_t i = 0; i < n; i++) {
        const float *row;
        assert_ok(espi_rows_get(rows, i, &row, &err), "row", &err);
        for (size_t j = 0; j < n; j++) t.gram[i * n + j] = (double)row[j];
    }
    t.problem = (espi_smo_problem){.rows = rows,
                                   .example = t.example,
                                   .sign = t.sign,
                                   .linear = t.linear,
                                   .bound = t.upper,
                                   .tolerance = 1e-5,
                                   .max_iterations = MANY,
                                   .shrinking = true};
    return t;
}

static void free_task(task *t)
{
    espi_rows_free(t->problem.rows);
    espi_bound_free(t->bound);
    esp_kernel_free(t->kernel);
    esp_dataset_free(t->data);
    void *const block[] = {t->gram, t->y, t->example, t->sign, t->linear, t->upper};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++) free(block[i]);
}

/* y must hold +1 and -1. */
static void make_classification(task *t, double c_positive, double c_negative)
{
    t->problem.variables = t->examples;
    for (size_t i = 0; i < t->examples; i++) {
        t->example[i] = (uint32_t)i;
        t->sign[i] = t->y[i] > 0.0 ? 1 : -1;
        t->linear[i] = -1.0;
        t->upper[i] = t->y[i] > 0.0 ? c_positive : c_negative;
    }
}

static void make_regression(task *t, double c, double epsilon)
{
    t->problem.variables = 2 * t->examples;
    for (size_t k = 0; k < t->problem.variables; k++) {
        const size_t i = k % t->examples;
        t->example[k] = (uint32_t)i;
        t->sign[k] = k < t->examples ? 1 : -1;
        t->linear[k] = epsilon - t->sign[k] * t->y[i];
        t->upper[k] = c;
    }
}

/* Points of the plane around two centres, `each` examples per negative one positive, labels partly wrong. */
static task points(size_t count, size_t each, const char *expression, size_t memory)
{
    ref_random random = {count + each};
    char *lines = room(count, 100), *at = lines;
    double *y = room(count, sizeof *y);
    for (size_t i = 0; i < count; i++) {
        y[i] = i % each == 0 ? 1.0 : -1.0;
        const double centre = ref_random_below(&random, 10) == 0 ? -y[i] : y[i];
        at += sprintf(at, "{\"x\": [%.6f, %.6f]}\n", centre + ref_random_between(&random, -1.5, 1.5),
                      ref_random_between(&random, -2, 2));
    }
    task t = task_of(dataset_of(lines), expression, memory);
    memcpy(t.y, y, count * sizeof *y);
    free(lines);
    free(y);
    return t;
}

static task trees(size_t count, const char *expression)
{
    ref_random random = {5};
    char **tree = room(count, sizeof *tree);
    for (size_t i = 0; i < count; i++) tree[i] = ref_random_small_tree(&random, 30, 100000, i % 3 == 0);
    task t = task_of(dataset_of_trees(tree, count), expression, 0);
    for (size_t i = 0; i < count; i++) {
        t.y[i] = (i % 3 == 0) != (ref_random_below(&random, 10) == 0) ? 1.0 : -1.0;
        free(tree[i]);
    }
    free(tree);
    return t;
}

/* -------------------------------------------- what follows from the definition */

/* sum_k s_k a_k K(x_k, x_e) */
static double score(const task *t, const double *alpha, size_t e)
{
    double sum = 0.0;
    for (size_t k = 0; k < t->problem.variables; k++)
        sum += t->sign[k] * alpha[k] * t->gram[t->example[k] * t->examples + e];
    return sum;
}

static double objective(const task *t, const double *alpha)
{
    double sum = 0.0;
    for (size_t k = 0; k < t->problem.variables; k++)
        sum += alpha[k] * (0.5 * t->sign[k] * score(t, alpha, t->example[k]) + t->linear[k]);
    return sum;
}

/* Feasible; and with g_k = s_k (F_k + bias) + p_k: g_k >= 0 where a_k could grow, g_k <= 0 where it could fall. */
static void check_optimal(const task *t, const solution *s, const char *what)
{
    double sum = 0.0, size = 0.0;
    const size_t n = t->problem.variables;
    for (size_t k = 0; k < n; k++) {
        assert_true(s->alpha[k] >= 0.0 && s->alpha[k] <= t->upper[k]);
        sum += t->sign[k] * s->alpha[k];
        size += s->alpha[k];
    }
    assert_true(fabs(sum) <= 1e-12 * size);
    for (size_t k = 0; k < n; k++) {
        const double f = score(t, s->alpha, t->example[k]);
        const double g = t->sign[k] * (f + s->result.bias) + t->linear[k];
        const double slack = t->problem.tolerance * 1.001 + 1e-11 * (size + fabs(f));
        if ((s->alpha[k] < t->upper[k] && !(g >= -slack)) || (s->alpha[k] > 0.0 && !(g <= slack)))
            fail_msg("%s: variable %zu with alpha %g of %g has gradient %g", what, k, s->alpha[k], t->upper[k], g);
    }
    assert_true(fabs(s->result.objective - objective(t, s->alpha)) <= 1e-9 * (1.0 + fabs(s->result.objective)));
}

static solution solve_from(const task *t, const double *start)
{
    solution s = {.alpha = room(t->problem.variables, sizeof *s.alpha)};
    if (start != NULL) memcpy(s.alpha, start, t->problem.variables * sizeof *start);
    esp_error err = {0};
    assert_ok(espi_smo_solve(&t->problem, NULL, s.alpha, &s.result, &err), "espi_smo_solve", &err);
    return s;
}

static solution solve(const task *t, const char *what)
{
    solution s = solve_from(t, NULL);
    if (!s.result.converged) fail_msg("%s: no convergence", what);
    check_optimal(t, &s, what);
    return s;
}

/* ----------------------------------------------------------------- LIBSVM */

static size_t libsvm_iterations;

static void listen(const char *text)
{
    const char *count = strstr(text, "#iter = ");
    if (count != NULL) libsvm_iterations = strtoul(count + 8, NULL, 10);
}

static struct svm_node **libsvm_rows(const task *t)
{
    const size_t n = t->examples;
    struct svm_node **x = room(n, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = room(n + 2, sizeof **x);
        x[i][0] = (struct svm_node){.index = 0, .value = (double)(i + 1)};
        for (size_t j = 0; j < n; j++) x[i][j + 1] = (struct svm_node){(int)j + 1, t->gram[i * n + j]};
        x[i][n + 1].index = -1;
    }
    return x;
}

/* LIBSVM's coefficients as ours: s_k a_k = c_k. */
static void to_alpha(const task *t, const struct svm_model *model, double flip, double *alpha)
{
    for (int v = 0; v < model->l; v++) {
        const size_t i = (size_t)model->sv_indices[v] - 1;
        const double c = flip * model->sv_coef[0][v];
        alpha[t->problem.variables > t->examples && c < 0.0 ? t->examples + i : i] = fabs(c);
    }
}

/* `c` and the weight of the positive class; epsilon < 0: a classification. */
static void compare(const task *t, double c, double weight, double epsilon, const char *what)
{
    const size_t n = t->examples;
    solution s = solve(t, what);
    struct svm_node **x = libsvm_rows(t);
    struct svm_problem problem = {.l = (int)n, .y = t->y, .x = x};
    struct svm_parameter parameter = {.svm_type = epsilon < 0.0 ? C_SVC : EPSILON_SVR,
                                      .kernel_type = PRECOMPUTED,
                                      .cache_size = 100,
                                      .eps = 1e-5,
                                      .C = c,
                                      .p = epsilon,
                                      .nr_weight = epsilon < 0.0,
                                      .weight_label = (int[]){1},
                                      .weight = &weight,
                                      .shrinking = 1};
    svm_set_print_string_function(listen);
    assert_null(svm_check_parameter(&problem, &parameter));
    struct svm_model *model = svm_train(&problem, &parameter);
    const double flip = epsilon < 0.0 && model->label[0] < 0 ? -1.0 : 1.0;
    double *alpha = room(t->problem.variables, sizeof *alpha);
    to_alpha(t, model, flip, alpha);
    assert_close(s.result.objective, objective(t, alpha), 1e-3, what);
    /* Working sets chosen as well as LIBSVM does it, up to chance. */
    assert_in_range(s.result.iterations, 0, 20 + libsvm_iterations * 3 / 2);
    for (size_t e = 0; e < n; e++) {
        double theirs;
        svm_predict_values(model, x[e], &theirs);
        const double ours = score(t, s.alpha, e) + s.result.bias;
        if (!(fabs(ours - flip * theirs) <= 1e-2)) fail_msg("%s: %g, LIBSVM %g", what, ours, flip * theirs);
    }
    svm_free_and_destroy_model(&model); /* its support vectors are our rows */
    for (size_t e = 0; e < n; e++) free(x[e]);
    free(x);
    free(alpha);
    free(s.alpha);
}

static void test_classification(void **state)
{
    (void)state;
    static const char *const kernels[] = {"rbf(x, gamma=0.5)", "linear(x)", "poly(x, degree=3, gamma=0.5, coef0=1)",
                                          "norm(poly(x, degree=2, gamma=1, coef0=1))"};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        task balanced = points(300, 2, kernels[k], 0);
        make_classification(&balanced, 2.0, 2.0);
        compare(&balanced, 2.0, 1.0, -1.0, kernels[k]);
        free_task(&balanced);
        task rare = points(420, 21, kernels[k], 0);
        make_classification(&rare, 20.0, 1.0);
        compare(&rare, 1.0, 20.0, -1.0, kernels[k]);
        free_task(&rare);
    }
    task t = trees(200, "norm(sst(tree, lambda=0.4))");
    make_classification(&t, 10.0, 10.0);
    compare(&t, 10.0, 1.0, -1.0, "trees");
    free_task(&t);
}

static void test_regression(void **state)
{
    (void)state;
    static const char *const kernels[] = {"rbf(x, gamma=0.5)", "linear(x)"};
    for (size_t k = 0; k < 2; k++) {
        task t = points(250, 2, kernels[k], 0);
        for (size_t i = 0; i < t.examples; i++) t.y[i] = sin((double)i) + 3.0 * t.gram[i];
        make_regression(&t, 5.0, 0.1);
        compare(&t, 5.0, 1.0, 0.1, kernels[k]);
        make_regression(&t, 0.5, 0.0);
        compare(&t, 0.5, 1.0, 0.0, kernels[k]);
        make_regression(&t, 0.5, 1e6); /* nothing is outside the tube */
        solution s = solve(&t, "wide tube");
        assert_int_equal(s.result.free_variables + s.result.bounded_variables, 0);
        free(s.alpha);
        free_task(&t);
    }
}

/* Every bound and kernel shape that could divide by 0: no NaN, an optimum, and LIBSVM's where it has one. */
static void test_degenerate(void **state)
{
    (void)state;
    static const double bounds[] = {1e-6, 1.0, 1e6};
    static const char lines[] = "{\"x\": [0, 0]}\n{\"x\": [0, 0]}\n{\"x\": [1, 2]}\n{\"x\": [1, 2]}\n"
                                "{\"x\": [1, 2]}\n{\"x\": [-1, 3]}\n{\"x\": [-1, 3]}\n{\"x\": [0.5, 0]}\n";
    static const double y[] = {1, -1, 1, -1, 1, -1, -1, 1};
    static const char *const kernels[] = {"linear(x)", "rbf(x, gamma=1)", "0.00000000000000000001*linear(x)",
                                          "100000000000000000000*linear(x)"};
    for (size_t k = 0; k < 4; k++)
        for (size_t c = 0; c < 3; c++) {
            task t = task_of(dataset_of(lines), kernels[k], 0);
            memcpy(t.y, y, sizeof y);
            make_classification(&t, bounds[c], bounds[c]);
            if (k < 2) compare(&t, bounds[c], 1.0, -1.0, kernels[k]);
            solution s = solve(&t, kernels[k]);
            assert_true(isfinite(s.result.bias) && isfinite(s.result.objective));
            free(s.alpha);
            free_task(&t);
        }
    for (size_t c = 0; c < 3; c++) { /* overlapping classes */
        task t = points(120, 2, "rbf(x, gamma=0.5)", 0);
        make_classification(&t, bounds[c], bounds[c]);
        compare(&t, bounds[c], 1.0, -1.0, "overlap");
        free_task(&t);
    }
}

static void test_nothing_to_move(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        task t = points(20, 2, "rbf(x, gamma=0.5)", 0);
        for (size_t i = 0; i < t.examples; i++) t.y[i] = sign;
        make_classification(&t, 1.0, 1.0);
        for (int warm = 0; warm < 2; warm++) { /* also from a start that breaks the constraint */
            double start[20] = {warm, warm, 0.5 * warm};
            solution s = solve_from(&t, start);
            check_optimal(&t, &s, "one class");
            assert_true(s.result.converged);
            for (size_t i = 0; i < t.examples; i++) assert_true(s.alpha[i] == 0.0);
            assert_true(s.result.bias == sign && s.result.objective == 0.0);
            free(s.alpha);
        }
        free_task(&t);
    }
    task t = points(20, 2, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 0.0, 0.0);
    solution s = solve(&t, "bounds of 0");
    assert_true(s.result.bias == 0.0);
    free(s.alpha);
    t.problem.variables = 0;
    s = solve(&t, "no variables");
    free(s.alpha);
    free_task(&t);
}

/* ------------------------------------------------- the same from other sides */

static void assert_same(const task *t, const solution *a, const solution *b, const char *what)
{
    assert_close(a->result.objective, b->result.objective, 1e-6, what);
    for (size_t e = 0; e < t->examples; e++) {
        const double x = score(t, a->alpha, e) + a->result.bias, z = score(t, b->alpha, e) + b->result.bias;
        if (!(fabs(x - z) <= 1e-2)) fail_msg("%s: %g and %g", what, x, z);
    }
}

static void test_warm_start(void **state)
{
    (void)state;
    task t = points(300, 3, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 1.0, 1.0);
    solution small = solve(&t, "C = 1");
    make_classification(&t, 3.0, 3.0);
    solution cold = solve(&t, "C = 3");
    for (size_t k = 0; k < t.examples; k++) small.alpha[k] *= 3.0;
    solution warm = solve_from(&t, small.alpha);
    check_optimal(&t, &warm, "warm");
    assert_same(&t, &cold, &warm, "warm start");
    assert_true(warm.result.iterations < cold.result.iterations);
    solution again = solve_from(&t, cold.alpha);
    assert_true(again.result.iterations <= 2);
    for (size_t k = 0; k < t.examples; k++) small.alpha[k] = k % 2 == 0 ? 1e9 : (double)NAN;
    solution astray = solve_from(&t, small.alpha);
    check_optimal(&t, &astray, "from outside");
    assert_same(&t, &cold, &astray, "from outside");
    free(small.alpha), free(cold.alpha), free(warm.alpha), free(again.alpha), free(astray.alpha);
    free_task(&t);
}

/* Shrinking, with room for all copies of rows and for none, and few rows in memory: one optimum. */
static void test_shrinking(void **state)
{
    (void)state;
    for (int regression = 0; regression < REPEATS(2); regression++) {
        task t = points(600, 2, "rbf(x, gamma=0.5)", 0), few = points(600, 2, "rbf(x, gamma=0.5)", 10 * 600 * 4);
        assert_false(espi_rows_complete(few.problem.rows));
        for (size_t i = 0; i < t.examples && regression; i++) t.y[i] = few.y[i] = 2.0 * t.gram[i] + t.y[i];
        if (regression) make_regression(&t, 100.0, 0.2), make_regression(&few, 100.0, 0.2);
        else make_classification(&t, 100.0, 100.0), make_classification(&few, 100.0, 100.0);
        t.problem.shrinking = false;
        solution whole = solve(&t, "whole");
        assert_true(whole.result.iterations > 5000); /* long enough to shrink */
        t.problem.shrinking = true;
        solution shrunk = solve(&t, "shrunk"), repeated = solve(&t, "shrunk");
        assert_same(&t, &whole, &shrunk, "shrunk");
        assert_in_range(shrunk.result.iterations, 0, whole.result.iterations * 3 / 2);
        assert_memory_equal(shrunk.alpha, repeated.alpha, t.problem.variables * sizeof(double));
        assert_true(shrunk.result.bias == repeated.result.bias);
        t.problem.store = 1;
        solution tight = solve(&t, "no store"), cached = solve(&few, "few rows");
        assert_memory_equal(shrunk.alpha, tight.alpha, t.problem.variables * sizeof(double));
        assert_same(&t, &whole, &cached, "few rows");
        free(whole.alpha), free(shrunk.alpha), free(repeated.alpha), free(tight.alpha), free(cached.alpha);
        free_task(&t);
        free_task(&few);
    }
}

/* Variables in any order, several of them on one example, others on none. */
static void test_mapping(void **state)
{
    (void)state;
    task t = points(200, 2, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 2.0, 2.0);
    t.problem.variables = 300;
    for (size_t k = 0; k < 300; k++) {
        t.example[k] = (uint32_t)((k * 7) % 150);
        t.sign[k] = t.y[t.example[k]] > 0.0 ? 1 : -1;
        t.linear[k] = k % 5 == 0 ? -0.5 : -1.0;
        t.upper[k] = k % 7 == 0 ? 0.0 : 2.0;
    }
    solution s = solve(&t, "mapping");
    free(s.alpha);
    free_task(&t);
}

/* ------------------------------------------------------------ early endings */

typedef struct watch {
    int calls, stop_at;
    double last;
} watch;

static int watched(void *user, const char *stage, double fraction)
{
    watch *w = user;
    assert_string_equal(stage, "training");
    assert_true(fraction >= w->last && fraction <= 1.0);
    w->last = fraction;
    return ++w->calls == w->stop_at;
}

static void test_limit(void **state)
{
    (void)state;
    task t = points(600, 2, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 100.0, 100.0);
    double before = 0.0;
    for (size_t limit = 1; limit < 5000; limit *= 4) { /* the last ends while shrunk */
        t.problem.max_iterations = limit;
        solution s = solve_from(&t, NULL);
        assert_false(s.result.converged);
        assert_int_equal(s.result.iterations, limit);
        assert_close(s.result.objective, objective(&t, s.alpha), 1e-9, "objective");
        assert_true(s.result.objective < before);
        before = s.result.objective;
        free(s.alpha);
    }
    free_task(&t);
}

static void test_cancel(void **state)
{
    (void)state;
    task t = points(600, 2, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 100.0, 100.0);
    solution s = {.alpha = room(t.examples, sizeof *s.alpha)};
    esp_error err = {0};
    double before = 0.0;
    watch w;
    const esp_run run = {.progress = watched, .user = &w};
    for (int stop_at = 1; stop_at < 100; stop_at *= 3) {
        w = (watch){.stop_at = stop_at};
        memset(s.alpha, 0, t.examples * sizeof *s.alpha);
        assert_int_equal(espi_smo_solve(&t.problem, &run, s.alpha, &s.result, &err), ESP_ERR_CANCELLED);
        assert_int_equal(w.calls, stop_at);
        assert_false(s.result.converged);
        assert_true(stop_at == 1 ? s.result.objective == 0.0 : s.result.objective < before);
        assert_true(fabs(s.result.objective - objective(&t, s.alpha)) <= 1e-9 * fabs(s.result.objective));
        before = s.result.objective;
    }
    w = (watch){0};
    memset(s.alpha, 0, t.examples * sizeof *s.alpha);
    assert_ok(espi_smo_solve(&t.problem, &run, s.alpha, &s.result, &err), "all", &err);
    assert_true(w.calls > 10);
    free(s.alpha);
    free_task(&t);
}

static esp_status solve_from_zero(const void *argument, esp_error *err)
{
    const task *t = argument;
    solution s = {.alpha = room(t->examples, sizeof *s.alpha)};
    memset(s.alpha, 0, t->examples * sizeof *s.alpha);
    const esp_status status = espi_smo_solve(&t->problem, NULL, s.alpha, &s.result, err);
    if (status == ESP_OK) assert_true(s.result.converged);
    free(s.alpha);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    task t = points(600, 2, "rbf(x, gamma=0.5)", 0);
    make_classification(&t, 100.0, 100.0);
    out_of_memory_everywhere(solve_from_zero, &t);
    free_task(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classification),  cmocka_unit_test(test_regression), cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_nothing_to_move), cmocka_unit_test(test_warm_start), cmocka_unit_test(test_shrinking),
        cmocka_unit_test(test_mapping),         cmocka_unit_test(test_limit),      cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
