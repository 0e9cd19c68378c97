/* The gradient of the sequence kernel in lambda: against differences, against all places of all subsequences written
 * out, and by several threads. */
#include "gradient_check.h"
#include "seq_cases.h"

/* -------------------------------------------------------------- differences */

static const char *const rules[] = {"n=1",
                                    "n=2, lambda=0.3",
                                    "n=3",
                                    "n=3, lambda=1",
                                    "n=4, lambda=0.05",
                                    "n=5, lambda=0.9, algorithm=match",
                                    "n=inf, lambda=0.7",
                                    "n=inf, lambda=1",
                                    "n=100, lambda=0.2"};
enum { RULES = sizeof rules / sizeof *rules };

/* Few and many letters, so that rows are made from few matches, from many, and in lanes; several factors; duplicates,
 * empty sequences and single tokens are among them. */
static void test_differences(void **state)
{
    (void)state;
    static const struct {
        size_t count, most, letters, factors;
    } shapes[] = {{12, 7, 4, 1}, {30, 12, 2, 1}, {20, 30, 20, 1}, {10, 12, 6, 2}, {1, 5, 2, 1}, {4, 0, 1, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        esp_dataset *data = random_data(s + 1, shapes[s].count, shapes[s].most, shapes[s].letters, shapes[s].factors);
        esp_dataset *other = random_data(s + 50, 5, shapes[s].most, shapes[s].letters + 1, shapes[s].factors);
        for (size_t r = 0; r < RULES; r++) {
            char text[128];
            sprintf(text, "seq(w, %s)", rules[r]);
            compare_gradients(text, data, data, 0.01, r + 1);
            compare_gradients(text, other, data, 0.01, r + 1);
            compare_gradients(text, data, other, 0.01, r + 1);
        }
        esp_dataset_free(data);
        esp_dataset_free(other);
    }
}

static void test_several_leaves(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"v\": \"a b c a\", \"w\": \"x y x x\"}\n{\"v\": \"a c b c\", \"w\": \"x\"}\n"
                                   "{\"v\": \"a b c a\", \"w\": \"\"}\n{\"v\": \"\", \"w\": \"y z x y\"}\n");
    compare_gradients("seq(v, n=3, lambda=0.4) + norm(seq(w, n=inf, lambda=0.9)) * seq(w, n=2, lambda=0.2)", data, data,
                      0.01, 7);
    esp_dataset_free(data);
}

/* Tokens between which hundreds are left out: what became too small to matter must not. */
static void test_long_gaps(void **state)
{
    (void)state;
    enum { LEFT_OUT = 500 };
    static const struct {
        const char *text;
        double step;
    } cases[] = {
        {"seq(w, n=2, lambda=0.3)", 0.01}, {"seq(w, n=3, lambda=0.05)", 0.05}, {"seq(w, n=3, lambda=1)", 2e-5}};
    char *lines = malloc(16 * LEFT_OUT), *at = lines;
    assert_non_null(lines);
    for (int row = 0; row < 3; row++) {
        at += sprintf(at, "{\"w\": \"a b");
        for (int i = 0; i < LEFT_OUT; i++) at += sprintf(at, " %c", 'c' + row);
        at += sprintf(at, " a b\"}\n");
    }
    esp_dataset *data = dataset_of(lines);
    *strchr(lines, '\n') = '\0';
    for (char *c = lines; (c = strstr(c, " c")) != NULL;) c[1] = 'x'; /* of a letter that no other row has */
    esp_dataset *other = dataset_of(lines);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        compare_gradients(cases[c].text, data, data, cases[c].step, c + 1);
        compare_gradients(cases[c].text, other, data, cases[c].step, c + 1);
    }
    free(lines);
    esp_dataset_free(data);
    esp_dataset_free(other);
}

/* --------------------------------------------------------------- definition */

typedef struct feature {
    char text[LONGEST + 1];
    double phi, slope;
} feature;

typedef struct features {
    feature at[1 << LONGEST];
    size_t count;
} features;

/* Every subsequence of tokens of one factor, with phi and its derivative: those of lambda^(tokens left out). */
static features features_of(const tokens *t, size_t n, double lambda)
{
    features f = {.count = 0};
    for (unsigned set = 1; set < 1u << t->length; set++) {
        size_t first = LONGEST, last = 0, picked = 0;
        char text[LONGEST + 1] = "";
        for (size_t i = 0; i < t->length; i++) {
            if ((set >> i & 1u) == 0) continue;
            if (first == LONGEST) first = i;
            last = i;
            text[picked++] = (char)('a' + t->factor[i][0]);
        }
        if (picked > n) continue;
        const double gaps = (double)(last - first + 1 - picked);
        size_t k = 0;
        while (k < f.count && strcmp(f.at[k].text, text) != 0) k++;
        if (k == f.count) {
            f.at[f.count] = (feature){.phi = 0.0};
            strcpy(f.at[f.count++].text, text);
        }
        f.at[k].phi += pow(lambda, gaps);
        f.at[k].slope += gaps > 0.0 ? gaps * pow(lambda, gaps - 1.0) : 0.0;
    }
    return f;
}

static double slope_of(const features *a, const features *b)
{
    double sum = 0.0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (strcmp(a->at[i].text, b->at[j].text) == 0)
                sum += a->at[i].slope * b->at[j].phi + a->at[i].phi * b->at[j].slope;
    return sum;
}

static void test_definition(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    static const struct {
        const char *text;
        size_t n;
        double lambda;
    } cases[] = {{"seq(w, n=3, lambda=0.3)", 3, 0.3},
                 {"seq(w, n=inf, lambda=0.6)", LONGEST, 0.6},
                 {"seq(w, n=4, lambda=1)", 4, 1.0},
                 {"seq(w, n=2, lambda=1e-260, algorithm=match)", 2, 1e-260}};
    ref_random random = {5};
    tokens t[COUNT];
    for (size_t i = 0; i < COUNT; i++) t[i] = random_tokens(&random, i % (LONGEST + 1), 3, 0, 1);
    esp_dataset *data = dataset_of_tokens(t, COUNT);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static features f[COUNT];
        checked leaf = checked_of(cases[c].text, data, data);
        for (size_t i = 0; i < COUNT; i++) f[i] = features_of(&t[i], cases[c].n, cases[c].lambda);
        for (size_t i = 0; i < COUNT; i++)
            for (size_t j = 0; j < COUNT; j++) {
                double gradient[SLOPES];
                gradient_of(&leaf, (asked){.row = i, .from = j, .to = j + 1}, &(double){2.0}, gradient);
                const double expected = 2.0 * slope_of(&f[i], &f[j]);
                if (expected > 1e-200) assert_close(gradient[1], expected, 1e-13, cases[c].text);
                else assert_true(gradient[1] >= 0.0 && gradient[1] < 1e-200);
            }
        checked_free(&leaf);
    }
    esp_dataset_free(data);
}

/* K = 5 + 3 lambda + lambda^3 (docs/kernels.md). */
static void test_by_hand(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"w\": \"a b c\"}\n{\"w\": \"a b a c\"}\n");
    checked c = checked_of("seq(n=4, lambda=0.5)", data, data);
    double gradient[SLOPES];
    gradient_of(&c, (asked){.row = 0, .from = 1, .to = 2}, &(double){1.0}, gradient);
    assert_close(gradient[1], 3.75, 1e-15, "3 + 3 lambda^2");
    checked_free(&c);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ the rest */

static void test_without_gaps(void **state)
{
    (void)state;
    esp_dataset *data = random_data(3, 8, 6, 2, 1);
    checked c = checked_of("seq(w, n=3, gap=0)", data, data);
    const double weight[8] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    for (int diagonal = 0; diagonal < 2; diagonal++) {
        double gradient[SLOPES];
        gradient_of(&c, diagonal ? self_of(&c, ESPI_ROWS) : row_of(&c, 1), weight, gradient);
        for (size_t p = 0; p < SLOPES; p++) assert_true(gradient[p] == 0.0);
    }
    checked_free(&c);
    esp_dataset_free(data);
}

static void test_refused(void **state)
{
    (void)state;
    esp_dataset *data = random_data(3, 4, 6, 2, 1);
    check_refused("seq(w, algorithm=pair)", data);
    esp_dataset_free(data);
}

/* 2^600 subsequences in common: no derivative, but no trap either. */
static void test_overflow(void **state)
{
    (void)state;
    char lines[4096] = "{\"w\": \"", *at = lines + strlen(lines);
    for (int i = 0; i < 1200; i++) at += sprintf(at, " a");
    sprintf(at, "\"}\n{\"w\": \"a b\"}\n");
    esp_dataset *data = dataset_of(lines);
    checked c = checked_of("seq(w, n=inf, lambda=1)", data, data);
    double gradient[SLOPES];
    gradient_of(&c, row_of(&c, 0), (const double[]){1.0, 0.0}, gradient);
    assert_true(!isfinite(gradient[1]));
    gradient_of(&c, row_of(&c, 0), (const double[]){0.0, 1.0}, gradient);
    assert_true(gradient[1] == 0.0);
    gradient_of(&c, self_of(&c, ESPI_ROWS), (const double[]){0.0, 1.0}, gradient);
    assert_true(gradient[1] == 0.0);
    checked_free(&c);
    esp_dataset_free(data);
}

static void test_threads(void **state)
{
    (void)state;
    esp_dataset *data = random_data(9, 60, 14, 5, 1);
    check_threads("seq(w, n=3)", data);
    check_threads("seq(w, n=inf)", data);
    esp_dataset_free(data);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char *const texts[] = {"seq(w, n=3)", "seq(w, n=inf)", "seq(w, n=4, algorithm=match)"};
    esp_dataset *data = random_data(4, 12, 12, 3, 1);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) check_out_of_memory(texts[t], data, data);
    esp_dataset_free(data);
    assert_int_equal(espi_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences), cmocka_unit_test(test_several_leaves),
        cmocka_unit_test(test_long_gaps),   cmocka_unit_test(test_definition),
        cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_without_gaps),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
