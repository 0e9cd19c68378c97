/* The sequence kernel against its definition: all places of all subsequences, written out. */
#include "seq_cases.h"

/* ---------------------------------------------------------------- reference */

typedef struct feature {
    char text[LONGEST + 1]; /* a letter per token */
    double phi;
} feature;

typedef struct features {
    feature *at;
    size_t count, capacity;
} features;

static void add_feature(features *f, const char *text, double phi)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity * 2 + 64;
        f->at = realloc(f->at, f->capacity * sizeof *f->at);
        assert_non_null(f->at);
    }
    strcpy(f->at[f->count].text, text);
    f->at[f->count++].phi = phi;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const feature *)a)->text, ((const feature *)b)->text);
}

/* In order, each once. */
static void settle(features *f)
{
    size_t kept = 0;
    if (f->count > 0) qsort(f->at, f->count, sizeof *f->at, by_text);
    for (size_t i = 0; i < f->count; i++) {
        if (kept > 0 && by_text(&f->at[kept - 1], &f->at[i]) == 0) f->at[kept - 1].phi += f->at[i].phi;
        else f->at[kept++] = f->at[i];
    }
    f->count = kept;
}

/* Every way to pick one factor at each of the places. */
static void add_picks(features *f, const tokens *t, const size_t *place, size_t picked, char *text, size_t done,
                      double phi)
{
    text[done] = '\0';
    if (done == picked) {
        add_feature(f, text, phi);
        return;
    }
    for (size_t k = 0; k < t->factors[place[done]]; k++) {
        text[done] = (char)('a' + t->factor[place[done]][k]);
        add_picks(f, t, place, picked, text, done + 1, phi);
    }
}

/* n = 0: any length. */
static features features_of(const tokens *t, size_t n, double lambda, bool gaps)
{
    features f = {0};
    for (unsigned set = 1; set < 1u << t->length; set++) {
        size_t place[LONGEST] = {0}, picked = 0;
        for (size_t i = 0; i < t->length; i++)
            if ((set >> i & 1u) != 0) place[picked++] = i;
        const size_t left_out = place[picked - 1] - place[0] + 1 - picked;
        char text[LONGEST + 1];
        if ((n > 0 && picked > n) || (!gaps && left_out > 0)) continue;
        add_picks(&f, t, place, picked, text, 0, pow(lambda, (double)left_out));
    }
    settle(&f);
    return f;
}

static double dot(const features *a, const features *b)
{
    double sum = 0.0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const int order = by_text(&a->at[i], &b->at[j]);
        if (order == 0) sum += a->at[i].phi * b->at[j].phi;
        i += order <= 0;
        j += order >= 0;
    }
    return sum;
}

/* ---------------------------------------------------------------- kernels */

static const char *const algorithms[] = {"pair", "match", "block"};

static const struct rule {
    const char *text;
    size_t n; /* 0: any */
    double lambda;
    bool gaps;
} rules[] = {{"n=1, lambda=0.5", 1, 0.5, true},         {"n=2, lambda=0.3", 2, 0.3, true},
             {"n=3, lambda=0.5", 3, 0.5, true},         {"n=3, lambda=1", 3, 1.0, true},
             {"n=4, lambda=0.05", 4, 0.05, true},       {"n=inf, lambda=0.7", 0, 0.7, true},
             {"n=inf, lambda=1", 0, 1.0, true},         {"n=100, lambda=0.7", 0, 0.7, true},
             {"n=1, lambda=0.5, gap=0", 1, 0.5, false}, {"n=2, lambda=1, gap=0", 2, 1.0, false},
             {"n=4, lambda=0.5, gap=0", 4, 0.5, false}, {"n=inf, lambda=0.5, gap=0", 0, 0.5, false}};
enum { RULES = sizeof rules / sizeof *rules };

static char *expression(char text[128], const struct rule *rule, const char *algorithm)
{
    sprintf(text, "seq(w, %s, algorithm=%s)", rule->text, algorithm);
    return text;
}

enum { ROWS = 9, COLS = 24 };

/* Rows against columns, and the columns against themselves, for one rule. */
static void compare(const struct rule *rule, const tokens *rows, const tokens *cols)
{
    esp_dataset *row_data = dataset_of_tokens(rows, ROWS), *col_data = dataset_of_tokens(cols, COLS);
    features f[ROWS], g[COLS];
    char text[128];
    for (size_t i = 0; i < ROWS; i++) f[i] = features_of(&rows[i], rule->n, rule->lambda, rule->gaps);
    for (size_t i = 0; i < COLS; i++) g[i] = features_of(&cols[i], rule->n, rule->lambda, rule->gaps);
    for (size_t a = 0; a < 3; a++) {
        expression(text, rule, algorithms[a]);
        double *gram = gram_of(text, col_data, NULL, 1), *other = gram_of(text, row_data, col_data, 1);
        double *turned = gram_of(text, col_data, row_data, 2);
        for (size_t j = 0; j < COLS; j++) {
            for (size_t i = 0; i < COLS; i++) {
                assert_close(gram[i * COLS + j], dot(&g[i], &g[j]), 1e-10, text);
                assert_true(gram[i * COLS + j] == gram[j * COLS + i]);
            }
            for (size_t i = 0; i < ROWS; i++) {
                assert_close(other[i * COLS + j], dot(&f[i], &g[j]), 1e-10, text);
                assert_close(turned[j * ROWS + i], other[i * COLS + j], 1e-12, text);
            }
        }
        free(gram);
        free(other);
        free(turned);
    }
    for (size_t i = 0; i < ROWS; i++) free(f[i].at);
    for (size_t i = 0; i < COLS; i++) free(g[i].at);
    esp_dataset_free(row_data);
    esp_dataset_free(col_data);
}

static void test_enumeration(void **state)
{
    (void)state;
    ref_random random = {11};
    for (size_t factors = 1; factors <= FACTORS; factors++)
        for (size_t letters = 2; letters <= 5; letters += 3) {
            tokens rows[ROWS], cols[COLS];
            for (size_t i = 0; i < ROWS; i++) /* one letter of their own */
                rows[i] = random_tokens(&random, i % (LONGEST + 1), letters, 1, factors);
            for (size_t i = 0; i < COLS; i++) cols[i] = random_tokens(&random, i % (LONGEST + 1), letters, 0, factors);
            for (size_t r = 0; r < RULES; r++) compare(&rules[r], rows, cols);
        }
}

static void test_values(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"w\": \"a b c\"}\n{\"w\": \"a b a c\"}\n");
    for (size_t a = 0; a < 3; a++)
        for (double lambda = 0.125; lambda <= 1.0; lambda += 0.125) {
            char text[80];
            const double expected = 5.0 + 3.0 * lambda + lambda * lambda * lambda;
            sprintf(text, "seq(n=4, lambda=%.17g, algorithm=%s)", lambda, algorithms[a]);
            assert_close(value_of(text, data), expected, 1e-15, text);
            sprintf(text, "seq(n=inf, lambda=%.17g, algorithm=%s)", lambda, algorithms[a]);
            assert_close(value_of(text, data), expected, 1e-15, text);
        }
    assert_close(value_of("seq(n=2, gap=0)", data), 5.0, 1e-15, "words in common 4, pairs 1");
    esp_dataset_free(data);
    data = dataset_of("{\"w\": \"America|B-NP|GPE has|VBZ\"}\n{\"w\": \"Italy|B-NP|GPE has|VBZ\"}\n");
    assert_close(value_of("seq(n=1)", data), 4.0, 1e-15, "equal factors");
    assert_close(value_of("seq(n=2)", data), 8.0, 1e-15, "and pairs of them");
    esp_dataset_free(data);
    data = dataset_of("{\"w\": \"||| a|a\"}\n{\"w\": \"||| a\"}\n");
    assert_close(value_of("seq(n=2)", data), 5.0, 1e-15, "a token of bars, and a factor given twice");
    esp_dataset_free(data);
}

/* --------------------------------------------------------------- algorithms */

static void test_algorithms_agree(void **state)
{
    (void)state;
    static const struct {
        size_t count, most, letters, factors;
    } shapes[] = {{70, 12, 25, 1}, {70, 30, 2, 1}, {40, 60, 4, 1}, {50, 20, 6, 2}, {1, 5, 2, 1}, {5, 0, 1, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const size_t n = shapes[s].count;
        esp_dataset *data = random_data(s + 1, n, shapes[s].most, shapes[s].letters, shapes[s].factors);
        esp_dataset *half = random_data(s + 1, n / 2 + 1, shapes[s].most, shapes[s].letters + 1, shapes[s].factors);
        for (size_t r = 0; r < RULES; r++) {
            char text[128];
            double *pair = gram_of(expression(text, &rules[r], "pair"), data, NULL, 1);
            double *cross = gram_of(text, half, data, 1);
            for (size_t a = 1; a < 3; a++) {
                double *gram = gram_of(expression(text, &rules[r], algorithms[a]), data, NULL, 1);
                double *other = gram_of(text, half, data, 1);
                for (size_t i = 0; i < n * n; i++) assert_close(gram[i], pair[i], 1e-12, text);
                for (size_t i = 0; i < (n / 2 + 1) * n; i++) assert_close(other[i], cross[i], 1e-12, text);
                double *threads = gram_of(text, data, NULL, 3);
                assert_memory_equal(threads, gram, n * n * sizeof *gram);
                free(gram);
                free(other);
                free(threads);
            }
            free(pair);
            free(cross);
        }
        esp_dataset_free(data);
        esp_dataset_free(half);
    }
}

/* The matrix is large enough for columns in several portions, and for patterns to be given up. */
static void test_many_sequences(void **state)
{
    (void)state;
    enum { MANY = 5000, FEW = 3 };
    esp_dataset *data = random_data(5, MANY, 6, 40, 2), *few = random_data(6, FEW, 20, 45, 1);
    double *match = gram_of("seq(n=3, lambda=0.4)", few, data, 1),
           *pair = gram_of("seq(n=3, lambda=0.4, algorithm=pair)", few, data, 1);
    for (size_t i = 0; i < FEW * MANY; i++) assert_close(match[i], pair[i], 1e-12, "several portions");
    free(match);
    free(pair);
    esp_dataset_free(data);
    esp_dataset_free(few);
    data = random_data(7, 60, 60, 2, 2);
    match = gram_of("norm(seq(n=20, lambda=0.4))", data, NULL, 1);
    pair = gram_of("norm(seq(n=20, lambda=0.4, algorithm=pair))", data, NULL, 1);
    for (size_t i = 0; i < 60 * 60; i++) assert_close(match[i], pair[i], 1e-12, "too many patterns");
    free(match);
    free(pair);
    esp_dataset_free(data);
}

static void test_positive_semidefinite(void **state)
{
    (void)state;
    enum { COUNT = 30 };
    static const char *const expressions[] = {"norm(seq(n=3, lambda=0.5))", "norm(seq(n=inf, lambda=0.9))",
                                              "seq(n=2, gap=0)", "norm(seq(n=2) * seq(n=4, gap=0)) + 0.5*seq(n=1)"};
    esp_dataset *data = random_data(21, COUNT, 8, 4, 2);
    for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++) {
        double *gram = gram_of(expressions[e], data, NULL, 2), least, most;
        ref_eigenvalues(gram, COUNT, &least, &most);
        if (!(least > -1e-12 * most)) fail_msg("%s: eigenvalue %g", expressions[e], least);
        for (size_t i = 0; i < COUNT; i++)
            for (size_t j = 0; j < i; j++) assert_true(gram[i * COUNT + j] == gram[j * COUNT + i]);
        free(gram);
    }
    esp_dataset_free(data);
}

static void test_norm(void **state)
{
    (void)state;
    esp_dataset *data = random_data(3, 12, 6, 3, 2), *other = random_data(4, 5, 6, 4, 2);
    double *plain = gram_of("seq(n=3)", other, data, 1), *normed = gram_of("norm(seq(n=3))", other, data, 1);
    double *rows = gram_of("seq(n=3, algorithm=pair)", other, NULL, 1),
           *cols = gram_of("seq(n=3, algorithm=pair)", data, NULL, 1);
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 12; j++) {
            const double self = rows[i * 5 + i] * cols[j * 12 + j];
            assert_close(normed[i * 12 + j], self > 0.0 ? plain[i * 12 + j] / sqrt(self) : 0.0, 1e-13, "norm");
        }
    free(plain);
    free(normed);
    free(rows);
    free(cols);
    esp_dataset_free(data);
    esp_dataset_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_enumeration),
        cmocka_unit_test(test_algorithms_agree),
        cmocka_unit_test(test_many_sequences),
        cmocka_unit_test(test_positive_semidefinite),
        cmocka_unit_test(test_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
