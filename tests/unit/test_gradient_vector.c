/* The vector kernels' gradients, and rbf with a gamma for each feature: against differences, and against sums over the
 * features in long double. */
#include "gradient_check.h"

#include "data/dataset.h"
#include "kernel/evaluate/growing.h"

enum { FEATURES = 6, COUNT = 12, OTHERS = 5, PARAMETERS = 2 }; /* rbf has gamma and ard before the features' own */

static const char *const names[FEATURES] = {"len", "a b", "say \"x\"", "back\\slash", "x=1,y", "plain-6"};
static const double shared_gamma = 0.3;
/* Of the first four; the others have the shared one. */
static const double own_gamma[FEATURES] = {0.2, 1.5, 0.01, 3.0, 0.0, 0.0};
static const char *const own_text = "rbf(x, gamma=0.3, ard=1, gamma.len=0.2, gamma.\"a b\"=1.5, "
                                    "gamma.\"say \\\"x\\\"\"=0.01, gamma.\"back\\\\slash\"=3)";

static double gamma_of(size_t feature) { return feature < 4 ? own_gamma[feature] : shared_gamma; }

typedef struct vector {
    double value[FEATURES]; /* 0: left out */
} vector;

/* Sparse; the first is empty, and the last the same as the one before. */
static void draw(ref_random *random, size_t features, vector *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = (vector){.value = {0.0}};
        for (size_t f = 0; i > 0 && f < features; f++)
            if (ref_random_below(random, 3) > 0) x[i].value[f] = ref_random_between(random, -2.0, 2.0);
    }
    x[count - 1] = x[count - 2];
}

static void append(esp_dataset *data, const vector *x)
{
    esp_error err = {0};
    espi_column *column = NULL;
    espi_row_begin(data);
    assert_ok(espi_row_column(data, "x", 1, ESP_COLUMN_VECTOR, &column, &err), "column", &err);
    for (size_t f = FEATURES; f-- > 0;) /* not in the order of the gammas */
        if (x->value[f] != 0.0)
            assert_ok(espi_add_feature(column, names[f], strlen(names[f]), x->value[f], &err), "feature", &err);
    assert_ok(espi_end_vector(column, &err), "vector", &err);
    assert_ok(espi_row_end(data, &err), "row", &err);
}

static esp_dataset *dataset_of_vectors(const vector *x, size_t count)
{
    esp_dataset *data = espi_dataset_new(ESP_FORMAT_JSONL);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) append(data, &x[i]);
    return data;
}

static double rbf(const vector *x, const vector *y)
{
    long double sum = 0.0L;
    for (size_t f = 0; f < FEATURES; f++) {
        const long double d = (long double)x->value[f] - y->value[f];
        sum += gamma_of(f) * d * d;
    }
    return (double)expl(-sum);
}

/* The columns lack the last two features, one with the shared gamma and one with its own. */
typedef struct setting {
    vector x[COUNT], y[OTHERS];
    esp_dataset *cols, *rows;
} setting;

static setting setting_of(uint64_t seed)
{
    setting s;
    ref_random random = {seed};
    draw(&random, FEATURES - 1, s.x, COUNT);
    draw(&random, FEATURES, s.y, OTHERS);
    for (size_t i = 0; i < COUNT; i++) s.x[i].value[3] = 0.0;
    s.cols = dataset_of_vectors(s.x, COUNT);
    s.rows = dataset_of_vectors(s.y, OTHERS);
    return s;
}

static void setting_free(setting *s)
{
    esp_dataset_free(s->cols);
    esp_dataset_free(s->rows);
}

/* -------------------------------------------------------------------- values */

static void test_values(void **state)
{
    (void)state;
    setting s = setting_of(1);
    double *gram = gram_of(own_text, s.cols, NULL, 2), *cross = gram_of(own_text, s.rows, s.cols, 1);
    double *turned = gram_of(own_text, s.cols, s.rows, 1), *self = gram_of(own_text, s.rows, NULL, 1);
    for (size_t j = 0; j < COUNT; j++) {
        for (size_t i = 0; i < COUNT; i++) assert_close(gram[i * COUNT + j], rbf(&s.x[i], &s.x[j]), 1e-12, "value");
        for (size_t i = 0; i < OTHERS; i++) {
            assert_close(cross[i * COUNT + j], rbf(&s.y[i], &s.x[j]), 1e-12, "value of rows");
            assert_close(turned[j * OTHERS + i], cross[i * COUNT + j], 1e-12, "value, turned");
        }
    }
    for (size_t i = 0; i < OTHERS; i++)
        for (size_t j = 0; j < OTHERS; j++)
            assert_close(self[i * OTHERS + j], rbf(&s.y[i], &s.y[j]), 1e-12, "value among rows");
    free(gram);
    free(cross);
    free(turned);
    free(self);
    setting_free(&s);
}

/* The row of a part, its pairs and its self-values; and of one that borrows its columns. */
static void test_pairs(void **state)
{
    (void)state;
    setting s = setting_of(2);
    esp_kernel *kernel = kernel_of(own_text);
    esp_error err = {0};
    espi_bound *bound = NULL, *like = NULL;
    assert_ok(espi_bind(kernel, s.cols, s.cols, NULL, &bound, &err), "bind", &err);
    assert_ok(espi_bind_to_cols(bound, s.rows, NULL, &like, &err), "bind", &err);
    const espi_part *part = like->part[0];
    void *workspace = part->class->workspace_new(part, NULL);
    double row[COUNT], self[OTHERS];
    for (size_t i = 0; i < OTHERS; i++) {
        assert_ok(part->class->row(part, workspace, i, 2, COUNT, row, &err), "row", &err);
        for (size_t j = 2; j < COUNT; j++) {
            espi_wide value;
            assert_ok(part->class->pair(part, ESPI_ROWS, i, ESPI_COLS, j, &value, &err), "pair", &err);
            assert_close(espi_wide_double(value), rbf(&s.y[i], &s.x[j]), 1e-13, "pair");
            assert_close(row[j - 2], rbf(&s.y[i], &s.x[j]), 1e-12, "row");
        }
    }
    assert_ok(part->class->diagonal(part, ESPI_ROWS, NULL, self, &err), "diagonal", &err);
    for (size_t i = 0; i < OTHERS; i++) assert_true(self[i] == 1.0);
    part->class->workspace_free(workspace);
    espi_bound_free(like);
    espi_bound_free(bound);
    esp_kernel_free(kernel);
    setting_free(&s);
}

/* Large values that are close to each other, of which products leave no digits. */
static void test_large(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"x\": {\"a\": 1000000, \"b\": 3000000}}\n{\"x\": {\"a\": 1000001, \"b\": 2999999.5}}\n");
    assert_close(value_of("rbf(x, gamma=7, gamma.a=0.5, gamma.b=0.3)", data), exp(-0.575), 1e-12, "value");
    assert_close(value_of("rbf(x, gamma=0.3, gamma.a=0.5)", data), exp(-0.575), 1e-12, "value");
    compare_gradients("rbf(x, gamma=0.3, gamma.a=0.5)", data, data, 0.01, 1);
    compare_gradients("rbf(x, gamma=0.3)", data, data, 0.01, 1);
    esp_dataset_free(data);
}

/* Words have their gammas in lower case. */
static void test_words(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"w\": \"The the cat\"}\n{\"w\": \"a Cat\"}\n{\"w\": \"\"}\n");
    esp_dataset *other = dataset_of("{\"w\": \"THE dog dog\"}\n");
    const char *text = "rbf(w, gamma=0.5, gamma.the=0.1, gamma.dog=0.01)";
    double *gram = gram_of(text, data, NULL, 1), *cross = gram_of(text, other, data, 1);
    assert_close(gram[1], exp(-0.1 * 4.0 - 0.5), 1e-13, "the, a");
    assert_close(gram[2], exp(-0.1 * 4.0 - 0.5), 1e-13, "the, cat");
    assert_close(cross[0], exp(-0.1 - 0.5 - 0.01 * 4.0), 1e-13, "the, cat, dog");
    compare_gradients(text, data, data, 0.01, 1);
    compare_gradients(text, other, data, 0.01, 1);
    free(gram);
    free(cross);
    esp_dataset_free(data);
    esp_dataset_free(other);
}

static void test_print(void **state)
{
    (void)state;
    esp_kernel *kernel = kernel_of(own_text);
    assert_string_equal(esp_kernel_text(kernel),
                        "rbf(x, gamma=0.3, ard=1, gamma.\"a b\"=1.5, gamma.\"back\\\\slash\"=3, gamma.len=0.2, "
                        "gamma.\"say \\\"x\\\"\"=0.01)");
    esp_kernel *again = kernel_of(esp_kernel_text(kernel));
    assert_string_equal(esp_kernel_text(again), esp_kernel_text(kernel));
    esp_kernel_free(again);
    esp_kernel_free(kernel);
}

/* -------------------------------------------------------------------- online */

/* `ones`: features that are there are 1, which other sums count instead of adding up. */
static void compare_online(bool ones)
{
    setting s = setting_of(3);
    for (size_t f = 0; ones && f < FEATURES; f++) {
        for (size_t i = 0; i < COUNT; i++) s.x[i].value[f] = s.x[i].value[f] != 0.0 ? 1.0 : 0.0;
        for (size_t i = 0; i < OTHERS; i++) s.y[i].value[f] = s.y[i].value[f] != 0.0 ? 1.0 : 0.0;
    }
    for (int form = ESPI_FORM_DAG; form <= ESPI_FORM_PLAIN; form++) {
        esp_kernel *kernel = kernel_of(own_text);
        esp_dataset *data = espi_dataset_new(ESP_FORMAT_JSONL);
        espi_growing *online = NULL;
        esp_error err = {0};
        const vector *kept[COUNT + OTHERS];
        size_t count = 0;
        assert_non_null(data);
        for (size_t i = 0; i < COUNT + OTHERS; i++) {
            const vector *x = i % 3 == 2 && i / 3 < OTHERS ? &s.y[i / 3] : &s.x[i % COUNT];
            append(data, x);
            if (i == 0) assert_ok(espi_growing_new(kernel, data, (espi_form)form, 1, NULL, &online, &err), "new", &err);
            double score, magnitude, expected = 0.0;
            assert_ok(espi_growing_look(online, &err), "look", &err);
            assert_ok(espi_growing_score(online, &score, &magnitude, &err), "score", &err);
            for (size_t k = 0; k < count; k++) expected += (k % 2 == 0 ? 1.0 : -0.5) * rbf(x, kept[k]);
            if (fabs(score - expected) > 1e-12 * (1.0 + magnitude))
                fail_msg("score %zu: %g, not %g", i, score, expected);
            if (i % 4 == 1) { /* features that go away again */
                espi_row_undo(data);
                continue;
            }
            assert_ok(espi_growing_keep(online, &(double){count % 2 == 0 ? 1.0 : -0.5}, &err), "keep", &err);
            kept[count++] = x;
        }
        espi_growing_free(online);
        esp_dataset_free(data);
        esp_kernel_free(kernel);
    }
    setting_free(&s);
}

static void test_online(void **state)
{
    (void)state;
    compare_online(false);
    compare_online(true);
}

/* ------------------------------------------------------------------ gradients */

static void test_differences(void **state)
{
    (void)state;
    static const char *const texts[] = {"linear(x)",
                                        "poly(x)",
                                        "poly(x, degree=1, gamma=0.5)",
                                        "poly(x, degree=2, gamma=0.3, coef0=2)",
                                        "poly(x, degree=5, gamma=0.125, coef0=0.5)",
                                        "rbf(x)",
                                        "rbf(x, gamma=0.05)",
                                        "rbf(x, gamma=4)",
                                        "norm(poly(x, gamma=0.2)) * rbf(x, gamma=0.2, gamma.len=0.7) + linear(x)"};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        setting s = setting_of(seed);
        for (size_t t = 0; t <= sizeof texts / sizeof *texts; t++) {
            const char *text = t < sizeof texts / sizeof *texts ? texts[t] : own_text;
            compare_gradients(text, s.cols, s.cols, 0.01, seed);
            compare_gradients(text, s.rows, s.cols, 0.01, seed);
            compare_gradients(text, s.cols, s.rows, 0.01, seed);
        }
        setting_free(&s);
    }
}

static void test_coef0_zero(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": [1, 2]}\n{\"x\": [3, 4]}\n{\"x\": [2, -1]}\n");
    checked c = checked_of("poly(x, degree=3, gamma=0.5, coef0=0)", data, data);
    double gradient[SLOPES];
    gradient_of(&c, (asked){.row = 0, .from = 1, .to = 3}, (const double[]){2.0, 5.0}, gradient);
    assert_close(gradient[1], 2.0 * 3.0 * 5.5 * 5.5 * 11.0, 1e-14, "gamma");
    assert_close(gradient[2], 2.0 * 3.0 * 5.5 * 5.5, 1e-14, "coef0");
    gradient_of(&c, self_of(&c, ESPI_ROWS), (const double[]){1.0, 0.0, 0.0}, gradient);
    assert_close(gradient[1], 3.0 * 2.5 * 2.5 * 5.0, 1e-14, "gamma of a self-value");
    assert_close(gradient[2], 3.0 * 2.5 * 2.5, 1e-14, "coef0 of a self-value");
    checked_free(&c);
    esp_dataset_free(data);
}

/* -sum_j w_j K (x_d - y_d)^2, written out; the kernel has the places of its features in the order of their names. */
static void test_definition(void **state)
{
    (void)state;
    setting s = setting_of(4);
    checked c = checked_of(own_text, s.rows, s.cols);
    const espi_leaf *leaf = leaf_of(&c);
    double weight[COUNT];
    for (size_t j = 0; j < COUNT; j++) weight[j] = j % 2 == 0 ? 1.0 : -0.3 * (double)j;
    for (size_t i = 0; i < OTHERS; i++) {
        double gradient[SLOPES], expected[SLOPES] = {0.0}, size[SLOPES] = {0.0};
        gradient_of(&c, row_of(&c, i), weight, gradient);
        for (size_t f = 0; f < FEATURES; f++) {
            size_t place = 0; /* the shared gamma */
            for (size_t k = 0; k < leaf->symbols; k++)
                if (strcmp(leaf->symbol[k].label, names[f]) == 0) place = PARAMETERS + k;
            for (size_t j = 0; j < COUNT; j++) {
                const double d = s.y[i].value[f] - s.x[j].value[f];
                expected[place] -= weight[j] * rbf(&s.y[i], &s.x[j]) * d * d;
                size[place] += fabs(weight[j]) * rbf(&s.y[i], &s.x[j]) * d * d;
            }
        }
        for (size_t p = 0; p < SLOPES; p++)
            if (!(fabs(gradient[p] - expected[p]) <= 1e-11 * size[p]))
                fail_msg("row %zu, place %zu: %.17g instead of %.17g", i, p, gradient[p], expected[p]);
    }
    checked_free(&c);
    setting_free(&s);
}

/* Examples that are almost the same: the derivative is a small number, and all its digits are wanted. */
static void test_close_examples(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": {\"a\": 1.1, \"b\": 2.3}}\n{\"x\": {\"a\": 1.10001, \"b\": 2.3}}\n");
    const double d = 1.10001 - 1.1;
    static const char *const texts[] = {"rbf(x, gamma=0.5)", "rbf(x, gamma=9, gamma.a=0.5, gamma.b=0.25)"};
    for (size_t t = 0; t < 2; t++) {
        checked c = checked_of(texts[t], data, data);
        double gradient[SLOPES];
        gradient_of(&c, (asked){.row = 0, .from = 1, .to = 2}, &(double){1.0}, gradient);
        assert_close(gradient[t == 0 ? 0 : PARAMETERS], -d * d * exp(-0.5 * d * d), 1e-12, texts[t]);
        checked_free(&c);
    }
    esp_dataset_free(data);
}

/* So far apart that the distance is no number: K and its derivative are 0. */
static void test_far_examples(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"x\": {\"a\": 1e200}}\n{\"x\": {\"a\": -1e200}}\n{\"x\": {\"b\": 40}}\n");
    static const char *const texts[] = {"rbf(x, gamma=2)", "rbf(x, gamma=2, gamma.a=3)"};
    for (size_t t = 0; t < 2; t++) {
        checked c = checked_of(texts[t], data, data);
        double gradient[SLOPES];
        gradient_of(&c, row_of(&c, 0), (const double[]){1.0, 1.0, 1.0}, gradient);
        for (size_t p = 0; p < SLOPES; p++) assert_true(gradient[p] == 0.0);
        checked_free(&c);
    }
    esp_dataset_free(data);
}

static void test_memory(void **state)
{
    (void)state;
    setting s = setting_of(5);
    esp_kernel *kernel = kernel_of(own_text);
    const double weight[COUNT] = {1.0};
    const long live = espi_alloc_live();
    long failures = 0;
    for (bool done = false; !done; failures += !done) {
        espi_bound *bound = NULL;
        esp_error err = {0};
        void *workspace = NULL;
        double gradient[SLOPES] = {0.0};
        espi_alloc_fail_after(failures);
        esp_status status = espi_bind(kernel, s.rows, s.cols, NULL, &bound, &err);
        const espi_part *part = status == ESP_OK ? bound->part[0] : NULL;
        if (part != NULL && (workspace = part->class->workspace_new(part, NULL)) == NULL) status = ESP_ERR_MEMORY;
        if (status == ESP_OK)
            status = part->class->gradient(part, workspace, 1, 0, COUNT, weight, NULL, gradient, &err);
        espi_alloc_fail_after(-1);
        done = status == ESP_OK;
        if (!done) assert_int_equal(status, ESP_ERR_MEMORY);
        if (part != NULL) part->class->workspace_free(workspace);
        espi_bound_free(bound);
        assert_int_equal(espi_alloc_live(), live);
    }
    assert_true(failures > 10);
    esp_kernel_free(kernel);
    setting_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_pairs),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_words),          cmocka_unit_test(test_print),        cmocka_unit_test(test_online),
        cmocka_unit_test(test_differences),    cmocka_unit_test(test_coef0_zero),   cmocka_unit_test(test_definition),
        cmocka_unit_test(test_close_examples), cmocka_unit_test(test_far_examples), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
