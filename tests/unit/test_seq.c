/* The sequence kernel against its definition: all places of all subsequences, written out. */
#include "base/alloc.h"
#include "cases.h"
#include "kernel/sequence.h"

/* ---------------------------------------------------------------- reference */

enum { LONGEST = 7, FACTORS = 2 };

typedef struct tokens { /* factors are small numbers */
    size_t length;
    int factor[64][FACTORS];
    size_t factors[64];
} tokens;

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

static int by_text(const void *a, const void *b) { return strcmp(((const feature *)a)->text, ((const feature *)b)->text); }

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

/* ------------------------------------------------------------ random sequences */

/* Letters from `shift` on. */
static tokens random_tokens(ref_random *random, size_t length, size_t letters, size_t shift, size_t factors)
{
    tokens t = {.length = length};
    for (size_t i = 0; i < length; i++) {
        t.factors[i] = 1 + ref_random_below(random, factors);
        for (size_t k = 0; k < t.factors[i]; k++) t.factor[i][k] = (int)(shift + ref_random_below(random, letters));
    }
    return t;
}

static esp_dataset *dataset_of_tokens(const tokens *t, size_t count)
{
    size_t room = 1;
    for (size_t i = 0; i < count; i++) room += 16 + t[i].length * 2 * FACTORS;
    char *lines = malloc(room), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"w\": \"");
        for (size_t k = 0; k < t[i].length; k++)
            for (size_t f = 0; f < t[i].factors[k]; f++)
                at += sprintf(at, "%s%c", f > 0 ? "|" : k > 0 ? " " : "", 'a' + t[i].factor[k][f]);
        at += sprintf(at, "\"}\n");
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

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
            for (size_t i = 0; i < COLS; i++)
                cols[i] = random_tokens(&random, i % (LONGEST + 1), letters, 0, factors);
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

/* `count` sequences of up to `most` tokens; the caller frees it. */
static esp_dataset *random_data(uint64_t seed, size_t count, size_t most, size_t letters, size_t factors)
{
    ref_random random = {seed};
    tokens *t = malloc(count * sizeof *t);
    assert_non_null(t);
    for (size_t i = 0; i < count; i++) t[i] = random_tokens(&random, ref_random_below(&random, most + 1), letters, 0, factors);
    esp_dataset *data = dataset_of_tokens(t, count);
    free(t);
    return data;
}

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
    double *match = gram_of("seq(n=3, lambda=0.4)", few, data, 1), *pair = gram_of("seq(n=3, lambda=0.4, algorithm=pair)", few, data, 1);
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
    double *rows = gram_of("seq(n=3, algorithm=pair)", other, NULL, 1), *cols = gram_of("seq(n=3, algorithm=pair)", data, NULL, 1);
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

/* ------------------------------------------------------------------ overflow */

/* A token again and again, in two lengths. */
static esp_dataset *repeated(const char *token, size_t first, size_t second)
{
    char *lines = malloc((strlen(token) + 1) * (first + second) + 40), *at = lines;
    assert_non_null(lines);
    const size_t lengths[] = {first, second};
    for (int k = 0; k < 2; k++) {
        at += sprintf(at, "{\"w\": \"");
        for (size_t i = 0; i < lengths[k]; i++) at += sprintf(at, "%s ", token);
        at += sprintf(at, "\"}\n");
    }
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

/* log of the number of ways to choose k of n */
static double log_choose(double n, double k) { return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1); }

static void test_overflow(void **state)
{
    (void)state;
    /* With lambda = 1, sum over m of C(p, m) C(q, m) = C(p + q, p), the empty sequence included. */
    esp_dataset *data = repeated("a", 12, 9);
    assert_close(value_of("seq(n=inf, lambda=1)", data), exp(log_choose(21, 9)) - 1.0, 1e-12, "short");
    esp_dataset_free(data);
    data = repeated("a", 600, 590);
    const double expected = exp(log_choose(1190, 590) - 0.5 * (log_choose(1200, 600) + log_choose(1180, 590)));
    for (size_t a = 0; a < 3; a++) {
        char text[80];
        sprintf(text, "norm(seq(n=inf, lambda=1, algorithm=%s))", algorithms[a]);
        assert_close(value_of(text, data), expected, 1e-9, text);
        sprintf(text, "seq(n=inf, lambda=1, algorithm=%s)", algorithms[a]);
        esp_kernel *kernel = kernel_of(text);
        esp_error err = {0};
        double gram[4];
        assert_int_equal(esp_gram(kernel, data, NULL, NULL, gram, &err), ESP_ERR_RANGE);
        assert_non_null(strstr(err.message, "too large"));
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
    /* Four equal factors: 16 pairs for each pair of tokens. */
    data = repeated("a|a|a|a", 160, 150);
    double cross = 0.0, first = 0.0, second = 0.0;
    for (double m = 1; m <= 120; m++) {
        cross += exp(m * log(16) + log_choose(160, m) + log_choose(150, m) - 500);
        first += exp(m * log(16) + 2 * log_choose(160, m) - 500);
        second += exp(m * log(16) + 2 * log_choose(150, m) - 500);
    }
    for (size_t a = 0; a < 3; a++) {
        char text[80];
        sprintf(text, "norm(seq(n=120, lambda=1, algorithm=%s))", algorithms[a]);
        assert_close(value_of(text, data), cross / sqrt(first * second), 1e-9, text);
    }
    esp_dataset_free(data);
}

/* -------------------------------------------------------------------- scorer */

static void test_scorer(void **state)
{
    (void)state;
    enum { COUNT = 25, OTHERS = 7 };
    static const char *const expressions[] = {"seq(n=3, lambda=0.6)", "norm(seq(n=2, lambda=1))", "seq(n=3, gap=0)",
                                              "norm(seq(n=inf, lambda=0.3))", "seq(n=4) * seq(n=1)",
                                              "0.5*seq(n=2) + norm(seq(n=3, algorithm=match))"};
    esp_dataset *data = random_data(31, COUNT, 9, 4, 2), *other = random_data(32, OTHERS, 12, 5, 2);
    for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++) {
        esp_kernel *kernel = kernel_of(expressions[e]);
        esp_scorer *scorer;
        esp_error err = {0};
        double scores[OTHERS], again[OTHERS], *gram = gram_of(expressions[e], other, data, 1);
        assert_ok(esp_scorer_new(kernel, data, &scorer, &err), expressions[e], &err);
        for (size_t j = 0; j < COUNT; j++)
            assert_ok(esp_scorer_add(scorer, j, (double)j - 11.5, &err), expressions[e], &err);
        assert_ok(esp_scorer_score(scorer, other, &(esp_run){.threads = 1}, scores, &err), expressions[e], &err);
        assert_ok(esp_scorer_score(scorer, other, &(esp_run){.threads = 3}, again, &err), expressions[e], &err);
        assert_memory_equal(scores, again, sizeof scores);
        for (size_t i = 0; i < OTHERS; i++) {
            double expected = 0.0, size = 0.0;
            for (size_t j = 0; j < COUNT; j++) {
                expected += ((double)j - 11.5) * gram[i * COUNT + j];
                size += fabs((double)j - 11.5) * gram[i * COUNT + j];
            }
            assert_true(fabs(scores[i] - expected) <= 1e-12 * size);
        }
        free(gram);
        esp_scorer_free(scorer);
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
    esp_dataset_free(other);
}

/* Many outputs, where few sequences share a pattern, and few, where weights are kept. */
static void test_fold(void **state)
{
    (void)state;
    enum { COUNT = 20, OUTPUTS = 30 };
    esp_dataset *data = random_data(41, COUNT, 8, 3, 2);
    const espi_sequences *s = &data->column[0].sequences;
    const espi_seqs seqs = {
        .count = COUNT, .row = s->row, .token = s->token, .factor = s->factor, .symbols = s->symbols.count};
    const espi_seq_rule rule = {.n = 3, .lambda = 0.5};
    double coefficient[COUNT * OUTPUTS], score[OUTPUTS], *gram = gram_of("seq(n=3, algorithm=pair)", data, NULL, 1);
    for (size_t i = 0; i < COUNT * OUTPUTS; i++) coefficient[i] = (double)(i * 7 % 11) - 4.0;
    for (size_t outputs = 1; outputs <= OUTPUTS; outputs += OUTPUTS - 1) {
        espi_seq_trie *trie;
        espi_seq_walk *walk = NULL;
        esp_error err = {0};
        assert_ok(espi_seq_fold(&rule, &seqs, coefficient, outputs, &trie, &err), "fold", &err);
        assert_non_null(trie);
        for (size_t i = 0; i < COUNT; i++) {
            const espi_seq a = espi_seq_of(&seqs, i);
            assert_ok(espi_seq_score(trie, &walk, &a, score, &err), "score", &err);
            for (size_t k = 0; k < outputs; k++) {
                double expected = 0.0;
                for (size_t j = 0; j < COUNT; j++) expected += coefficient[j * outputs + k] * gram[i * COUNT + j];
                assert_true(fabs(score[k] - expected) <= 1e-12 * 10.0 * COUNT * (1.0 + gram[i * COUNT + i]));
            }
        }
        espi_seq_walk_free(walk);
        espi_seq_trie_free(trie);
    }
    free(gram);
    esp_dataset_free(data);
}

/* --------------------------------------------------------------- expressions */

static void test_expressions(void **state)
{
    (void)state;
    static const char *const right[][2] = {
        {"seq", "seq(n=3, lambda=0.5, gap=inf, algorithm=block)"},
        {"seq(words, n=inf, gap=0)", "seq(words, n=inf, lambda=0.5, gap=0, algorithm=block)"},
        {"norm(seq(n = inf , lambda=1))^2", "norm(seq(n=inf, lambda=1, gap=inf, algorithm=block))^2"}};
    static const char *const wrong[][2] = {{"seq(n=0)", "n of seq is '0'; allowed is a whole number >= 1, or inf"},
                                           {"seq(n=-1)", "n of seq is '-1'; allowed is a whole number >= 1, or inf"},
                                           {"seq(n=1.5)", "n of seq is '1.5'; allowed is a whole number >= 1, or inf"},
                                           {"seq(n=-inf)", "'inf' is not a finite number"},
                                           {"seq(n=infinite)", "'infinite' is not a finite number"},
                                           {"seq(lambda=0)", "lambda of seq is '0'; allowed is a number > 0 and <= 1"},
                                           {"seq(lambda=1.5)", "lambda of seq is '1.5'; allowed is a number > 0 and <= 1"},
                                           {"seq(lambda=inf)", "'inf' is not a finite number"},
                                           {"seq(gap=2)", "gap of seq is '2'; allowed is inf or 0"},
                                           {"seq(n=inf, n=2)", "n is given twice"}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        esp_kernel *kernel = kernel_of(right[i][0]), *again = kernel_of(right[i][1]);
        assert_string_equal(esp_kernel_text(kernel), right[i][1]);
        assert_string_equal(esp_kernel_text(again), right[i][1]);
        esp_kernel_free(kernel);
        esp_kernel_free(again);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        esp_kernel *kernel = NULL;
        esp_error err = {0};
        assert_int_equal(esp_kernel_parse(wrong[i][0], &kernel, &err), ESP_ERR_PARAM);
        if (strstr(err.message, wrong[i][1]) == NULL) fail_msg("%s: %s", wrong[i][0], err.message);
        assert_null(kernel);
    }
}

/* ------------------------------------------------------------ normalisation */

static const char mixed_case[] = "{\"w\": \"The|DT 12 Caf\u00c9s|NNS2 || a\", \"v\": \"A1\", \"y\": \"X1\"}\n";

/* The first column as `factor|factor token ...`, under the options. */
static void assert_read(bool lowercase, bool digits, const char *expected)
{
    const esp_read_options options = {.format = ESP_FORMAT_JSONL, .lowercase = lowercase, .digits = digits};
    esp_dataset *data = NULL;
    esp_error err = {0};
    char text[200] = "";
    assert_ok(esp_dataset_parse(mixed_case, sizeof mixed_case - 1, "lines", &options, NULL, &data, &err), "read", &err);
    const espi_sequences *s = &data->column[0].sequences;
    for (size_t t = 0; t < s->tokens; t++)
        for (size_t f = s->token[t]; f < s->token[t + 1]; f++) {
            strcat(text, f > s->token[t] ? "|" : t > 0 ? " " : "");
            strcat(text, s->symbols.symbol[s->factor[f]].text);
        }
    assert_string_equal(text, expected);
    assert_string_equal(data->column[1].sequences.symbols.symbol[0].text,
                        lowercase ? (digits ? "a0" : "a1") : (digits ? "A0" : "A1"));
    assert_string_equal(esp_dataset_target(data, 0), "X1");
    esp_dataset_free(data);
}

static void test_normalisation(void **state)
{
    (void)state;
    assert_read(false, false, "The|DT 12 Caf\xC3\x89s|NNS2 || a");
    assert_read(true, false, "the|dt 12 caf\xC3\xA9s|nns2 || a");
    assert_read(false, true, "The|DT 00 Caf\xC3\x89s|NNS0 || a");
    assert_read(true, true, "the|dt 00 caf\xC3\xA9s|nns0 || a");
    esp_status status = ESP_ERR_MEMORY;
    for (long n = 0; status != ESP_OK; n++) {
        const long live = espi_alloc_live();
        esp_dataset *data = NULL;
        espi_alloc_fail_after(n);
        status = esp_dataset_parse(mixed_case, sizeof mixed_case - 1, "lines",
                                   &(esp_read_options){.lowercase = true, .digits = true}, NULL, &data, NULL);
        espi_alloc_fail_after(-1);
        if (status != ESP_OK) assert_int_equal(status, ESP_ERR_MEMORY);
        esp_dataset_free(data);
        assert_int_equal(espi_alloc_live(), live);
    }
}

/* ------------------------------------------------------------------- failures */

static void test_memory_limit(void **state)
{
    (void)state;
    esp_dataset *data = repeated("a", 2000, 2000);
    esp_kernel *kernel = kernel_of("seq(n=1000)");
    esp_error err = {0};
    double gram[4];
    assert_int_equal(esp_gram(kernel, data, NULL, &(esp_run){.memory = 1000000}, gram, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "a sequence of 2000 tokens takes 32.0 MB under this n; the limit is"));
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

static int stop(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    int *left = user;
    return (*left)-- <= 0;
}

static void test_interruption(void **state)
{
    (void)state;
    esp_dataset *data = repeated("a", 20000, 20000);
    static const char *const expressions[] = {"seq(n=inf)", "seq(n=inf, algorithm=pair)", "norm(seq(n=2, algorithm=pair))"};
    for (size_t e = 0; e < 3; e++) {
        esp_kernel *kernel = kernel_of(expressions[e]);
        esp_error err = {0};
        double gram[4];
        int left = 1;
        const esp_run run = {.threads = 1, .progress = stop, .user = &left};
        assert_int_equal(esp_gram(kernel, data, NULL, &run, gram, &err), ESP_ERR_CANCELLED);
        esp_kernel_free(kernel);
    }
    esp_dataset_free(data);
}

static esp_status gram_and_score(const char *text, const esp_dataset *data, const esp_dataset *other)
{
    esp_kernel *kernel = NULL;
    esp_scorer *scorer = NULL;
    double gram[200], scores[20];
    esp_status status = esp_kernel_parse(text, &kernel, NULL);
    const esp_run run = {.threads = 1};
    if (status == ESP_OK) status = esp_gram(kernel, data, NULL, &run, gram, NULL);
    if (status == ESP_OK) status = esp_gram(kernel, other, data, &run, gram, NULL);
    if (status == ESP_OK) status = esp_scorer_new(kernel, data, &scorer, NULL);
    if (status == ESP_OK) status = esp_scorer_add(scorer, 1, 2.0, NULL);
    if (status == ESP_OK) status = esp_scorer_score(scorer, other, &run, scores, NULL);
    esp_scorer_free(scorer);
    esp_kernel_free(kernel);
    return status;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    static const char *const expressions[] = {"norm(seq(n=2))", "seq(n=inf)", "seq(n=3, algorithm=pair)",
                                              "seq(n=2, algorithm=match)"};
    esp_dataset *data = random_data(51, 10, 8, 3, 2), *other = random_data(52, 4, 8, 3, 1);
    for (size_t e = 0; e < 4; e++) {
        const long live = espi_alloc_live();
        esp_status status = ESP_ERR_MEMORY;
        long n = 0;
        for (; status != ESP_OK; n++) {
            espi_alloc_fail_after(n);
            status = gram_and_score(expressions[e], data, other);
            espi_alloc_fail_after(-1);
            if (status != ESP_OK) assert_int_equal(status, ESP_ERR_MEMORY);
            assert_int_equal(espi_alloc_live(), live);
        }
        assert_true(n > 20);
    }
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
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_scorer),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_normalisation),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_interruption),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
