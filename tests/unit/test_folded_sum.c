/* Folded sums against what they stand for, f_k(i) = sum_j c_k(j) K(i, j), with K from its definition. */
#include "cases.h"
#include "kernel/evaluate/folded_sum.h"

enum { ROWS = 44, MOST_OUTPUTS = 3, MOST_TERMS = 3, MOST_ENTRIES = 8, ROUNDS = 5 };

/* --------------------------------------------------------------- reference */

typedef struct sample { /* the same examples for the library and for the references */
    esp_dataset *data;
    ref_tree *tree[ROWS]; /* NULL: empty */
    ref_entry ones[ROWS][MOST_ENTRIES], values[ROWS][MOST_ENTRIES], words[ROWS][MOST_ENTRIES];
} sample;

typedef enum kind { TREES, ONES, VALUES, WORDS, PAIRS } kind;

typedef struct ref_term {
    double weight;
    bool norm;
    kind kind;
    ref_weights trees;
    double gamma, coef0; /* of vectors */
    int degree;
    const char
        *pairs; /* an expression whose matrix is made pair by pair; its own tests compare it with its definition */
} ref_term;

typedef struct folded_case {
    const char *expression;
    ref_term term[MOST_TERMS]; /* up to a weight of 0 */
} folded_case;

#define GRAMMAR "grammar={NP -> S [X]; S -> [NP] VP; X -> [a] S; = S NP; = VP X}"
static const ref_symbol own[] = {{"NP", 0.9, 1}, {"S", 0.5, 0.2}};
static const folded_case cases[] = {
    {"sst(tree, lambda=0.4)", {{1, false, TREES, .trees = {0.4, 1, 0, NULL, 0}}}},
    {"norm(sst(tree, lambda=0.4))", {{1, true, TREES, .trees = {0.4, 1, 0, NULL, 0}}}},
    {"st(tree, lambda=0.8)", {{1, false, TREES, .trees = {0.8, 0, 0, NULL, 0}}}},
    {"norm(st(tree, lambda=0.8, bow=2))", {{1, true, TREES, .trees = {0.8, 0, 2, NULL, 0}}}},
    {"sasst(tree, lambda=0.5, lambda.NP=0.9, alpha.S=0.2)", {{1, false, TREES, .trees = {0.5, 1, 0, own, 2}}}},
    {"norm(sasst(tree, lambda=0.5, lambda.NP=0.9, alpha.S=0.2))", {{1, true, TREES, .trees = {0.5, 1, 0, own, 2}}}},
    {"sst(tree, lambda=0.6, alpha=0.5, bow=0.7)", {{1, false, TREES, .trees = {0.6, 0.5, 0.7, NULL, 0}}}},
    {"norm(sst(tree, lambda=0.4, bow=0.7))", {{1, true, TREES, .trees = {0.4, 1, 0.7, NULL, 0}}}},
    {"linear(ones)", {{1, false, ONES, .gamma = 1, .degree = 1}}},
    {"linear(values)", {{1, false, VALUES, .gamma = 1, .degree = 1}}},
    {"linear(words)", {{1, false, WORDS, .gamma = 1, .degree = 1}}},
    {"norm(linear(values))", {{1, true, VALUES, .gamma = 1, .degree = 1}}},
    {"poly(ones, degree=3)", {{1, false, ONES, .gamma = 1, .coef0 = 1, .degree = 3}}},
    {"poly(ones, degree=2, gamma=0.5, coef0=0.25)", {{1, false, ONES, .gamma = 0.5, .coef0 = 0.25, .degree = 2}}},
    {"poly(ones, degree=1, coef0=0)", {{1, false, ONES, .gamma = 1, .degree = 1}}},
    {"poly(ones, degree=5, gamma=0.3)", {{1, false, ONES, .gamma = 0.3, .coef0 = 1, .degree = 5}}},
    {"norm(poly(ones, degree=3))", {{1, true, ONES, .gamma = 1, .coef0 = 1, .degree = 3}}},
    {"norm(poly(ones, degree=3, coef0=0))", {{1, true, ONES, .gamma = 1, .degree = 3}}},
    {"poly(values, degree=3)", {{1, false, VALUES, .gamma = 1, .coef0 = 1, .degree = 3}}},
    {"norm(poly(values, degree=4, gamma=0.5))", {{1, true, VALUES, .gamma = 0.5, .coef0 = 1, .degree = 4}}},
    {"poly(words, degree=2)", {{1, false, WORDS, .gamma = 1, .coef0 = 1, .degree = 2}}},
    {"norm(poly(words, degree=3))", {{1, true, WORDS, .gamma = 1, .coef0 = 1, .degree = 3}}},
    {"0.3*norm(sst(tree, lambda=0.4)) + 2*(poly(ones, degree=2) + 0.5*linear(words))",
     {{0.3, true, TREES, .trees = {0.4, 1, 0, NULL, 0}},
      {2, false, ONES, .gamma = 1, .coef0 = 1, .degree = 2},
      {1, false, WORDS, .gamma = 1, .degree = 1}}},
    {"poly(ones, degree=3) + 0.5*poly(values, degree=2) + norm(linear(values))",
     {{1, false, ONES, .gamma = 1, .coef0 = 1, .degree = 3},
      {0.5, false, VALUES, .gamma = 1, .coef0 = 1, .degree = 2},
      {1, true, VALUES, .gamma = 1, .degree = 1}}},
    {"seq(words, lambda=0.6)", {{1, false, PAIRS, .pairs = "seq(words, lambda=0.6, algorithm=pair)"}}},
    {"norm(seq(words))", {{1, false, PAIRS, .pairs = "norm(seq(words, algorithm=pair))"}}},
    {"ptk(tree, lambda=0.6, terminal=2)",
     {{1, false, PAIRS, .pairs = "ptk(tree, lambda=0.6, terminal=2, algorithm=pair)"}}},
    {"norm(gtk(tree, " GRAMMAR "))", {{1, false, PAIRS, .pairs = "norm(gtk(tree, " GRAMMAR ", algorithm=gtk))"}}},
    {"norm(ptk(tree)) + 0.5*poly(values, degree=2) + norm(sst(tree, lambda=0.4))",
     {{1, false, PAIRS, .pairs = "norm(ptk(tree, algorithm=pair))"},
      {0.5, false, VALUES, .gamma = 1, .coef0 = 1, .degree = 2},
      {1, true, TREES, .trees = {0.4, 1, 0, NULL, 0}}}},
};
enum { CASES = sizeof cases / sizeof *cases };

static double *tree_matrix(const sample *s, const ref_weights *weights)
{
    double *k = malloc(ROWS * ROWS * sizeof *k);
    ref_features features[ROWS] = {0};
    assert_non_null(k);
    for (size_t i = 0; i < ROWS; i++)
        if (s->tree[i] != NULL) features[i] = ref_features_of(s->tree[i], weights);
    for (size_t i = 0; i < ROWS * ROWS; i++) k[i] = ref_features_dot(&features[i / ROWS], &features[i % ROWS]);
    for (size_t i = 0; i < ROWS; i++) ref_features_free(&features[i]);
    return k;
}

static double *vector_matrix(const ref_entry (*x)[MOST_ENTRIES], const ref_term *t)
{
    double *k = malloc(ROWS * ROWS * sizeof *k);
    assert_non_null(k);
    for (size_t i = 0; i < ROWS * ROWS; i++) k[i] = ref_poly(x[i / ROWS], x[i % ROWS], t->gamma, t->coef0, t->degree);
    return k;
}

/* K of all pairs; the caller frees it. */
static double *matrix_of(const sample *s, const folded_case *c)
{
    double *sum = calloc(ROWS * ROWS, sizeof *sum);
    assert_non_null(sum);
    for (const ref_term *t = c->term; t < c->term + MOST_TERMS && t->weight != 0.0; t++) {
        double *k = t->kind == TREES   ? tree_matrix(s, &t->trees)
                    : t->kind == PAIRS ? gram_of(t->pairs, s->data, NULL, 1)
                                       : vector_matrix(t->kind == ONES     ? s->ones
                                                       : t->kind == VALUES ? s->values
                                                                           : s->words,
                                                       t);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < ROWS; j++) {
                const double square = k[i * ROWS + i] * k[j * ROWS + j];
                const double value = k[i * ROWS + j];
                sum[i * ROWS + j] += t->weight * (!t->norm ? value : square > 0.0 ? value / sqrt(square) : 0.0);
            }
        free(k);
    }
    return sum;
}

/* ------------------------------------------------------------------ sample */

static char *write_vector(ref_random *random, char *at, bool ones, size_t most, ref_entry *x)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    size_t count = 0;
    at += sprintf(at, "{");
    for (size_t f = 0; f < 7 && most > 0; f++) {
        const double value = !ones ? ref_random_between(random, -1, 1) : ref_random_below(random, 5) > 0 ? 1.0 : 0.0;
        if (ref_random_below(random, 3) == 0) continue;
        at += sprintf(at, "%s\"%s\": %.17g", count > 0 ? ", " : "", names[f], value);
        x[count++] = (ref_entry){names[f], value};
    }
    return at + sprintf(at, "}");
}

static char *write_words(ref_random *random, char *at, ref_entry *x)
{
    static const char *const words[] = {"a", "The", "the", "cat", "u"}, *const lower[] = {"a", "the", "cat", "u"};
    static const size_t which[] = {0, 1, 1, 2, 3};
    for (size_t w = 0; w < 4; w++) x[w] = (ref_entry){lower[w], 0.0};
    for (size_t k = ref_random_below(random, 7); k > 0; k--) {
        const size_t word = ref_random_below(random, 5);
        at += sprintf(at, "%s ", words[word]);
        x[which[word]].value += 1.0;
    }
    return at;
}

/* The first trees are empty, leaves alone and pre-terminals; a vector in seven is empty. */
static sample *sample_new(uint64_t seed)
{
    static const char *const small[] = {"", "(a)", "(NP a)", "(a)", "(NP a b)", "", "(VP)"};
    enum { SMALL = sizeof small / sizeof *small };
    ref_random random = {seed};
    sample *s = calloc(1, sizeof *s);
    char *lines = malloc(ROWS * 8000), *at = lines;
    assert_non_null(s);
    assert_non_null(lines);
    for (size_t i = 0; i < ROWS; i++) {
        const size_t row = (i + ROWS - 1) % ROWS; /* an empty tree does not come first: it could be a sequence */
        char *tree = row >= SMALL ? ref_random_small_tree(&random, 40, 20000, row % 5 == 0) : NULL;
        const char *text = tree != NULL ? tree : small[row];
        if (text[0] != '\0') s->tree[i] = ref_tree_parse(text);
        at += sprintf(at, "{\"tree\": \"%s\", \"words\": \"", text);
        at = write_words(&random, at, s->words[i]);
        at += sprintf(at, "\", \"ones\": ");
        at = write_vector(&random, at, true, i % 7, s->ones[i]);
        at += sprintf(at, ", \"values\": ");
        at = write_vector(&random, at, false, (i + 3) % 7, s->values[i]);
        at += sprintf(at, "}\n");
        free(tree);
    }
    s->data = dataset_of(lines);
    free(lines);
    return s;
}

static void sample_free(sample *s)
{
    for (size_t i = 0; i < ROWS; i++)
        if (s->tree[i] != NULL) ref_tree_free(s->tree[i]);
    esp_dataset_free(s->data);
    free(s);
}

/* ------------------------------------------------------------------- sums */

typedef struct tested { /* a folded sum, and the coefficients that it should have */
    const char *expression;
    esp_kernel *kernel;
    espi_folded_sum *sum;
    size_t outputs;
    double coefficient[ROWS][MOST_OUTPUTS];
    double added[ROWS][MOST_OUTPUTS]; /* absolute values: what rounding errors are relative to */
} tested;

static void tested_open(tested *t, const sample *s, const char *expression, size_t outputs)
{
    esp_error err = {0};
    *t = (tested){.expression = expression, .kernel = kernel_of(expression), .outputs = outputs};
    assert_ok(espi_kernel_folds(t->kernel, &err), expression, &err);
    assert_ok(espi_folded_sum_new(t->kernel, s->data, outputs, NULL, &t->sum, &err), expression, &err);
}

static void tested_close(tested *t)
{
    espi_folded_sum_free(t->sum);
    esp_kernel_free(t->kernel);
}

static void tested_add(tested *t, const uint32_t *row, size_t count, const double *coefficient)
{
    esp_error err = {0};
    assert_ok(espi_folded_sum_add(t->sum, row, count, coefficient, &err), t->expression, &err);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < t->outputs; k++) {
            t->coefficient[row[i]][k] += coefficient[i * t->outputs + k];
            t->added[row[i]][k] += fabs(coefficient[i * t->outputs + k]);
        }
}

static void tested_score(tested *t, const uint32_t *row, size_t count, int threads, double *score)
{
    esp_error err = {0};
    assert_ok(espi_folded_sum_score(t->sum, row, count, &(esp_run){.threads = threads}, score, &err), t->expression,
              &err);
}

/* All rows at once, one by one, backwards and several times give the same bits, and the sums that are expected. */
static void check_scores(tested *t, const double *k)
{
    enum { ALL = ROWS * MOST_OUTPUTS };
    uint32_t row[2 * ROWS];
    double score[ALL], twice[2 * ALL];
    for (uint32_t i = 0; i < 2 * ROWS; i++) row[i] = i < ROWS ? i : 2 * ROWS - 1 - i;
    tested_score(t, row, ROWS, 1, score);
    tested_score(t, row, 2 * ROWS, 1, twice);
    for (size_t i = 0; i < 2 * ROWS; i++) {
        double alone[MOST_OUTPUTS];
        tested_score(t, &row[i], 1, 1, alone);
        assert_memory_equal(alone, score + row[i] * t->outputs, t->outputs * sizeof *alone);
        assert_memory_equal(alone, twice + i * t->outputs, t->outputs * sizeof *alone);
    }
    for (size_t i = 0; i < ROWS * t->outputs; i++) {
        double sum = 0.0, size = 0.0;
        for (size_t j = 0; j < ROWS; j++) {
            const double value = k[i / t->outputs * ROWS + j];
            sum += t->coefficient[j][i % t->outputs] * value;
            size += t->added[j][i % t->outputs] * fabs(value);
        }
        if (!(fabs(score[i] - sum) <= 1e-10 * size))
            fail_msg("%s: score %zu is %.17g instead of %.17g", t->expression, i, score[i], sum);
    }
}

/* Some rows, perhaps one of them twice; of several outputs some are left out. */
static void add_some(tested *t, ref_random *random)
{
    uint32_t row[4];
    double coefficient[4 * MOST_OUTPUTS];
    const size_t count = 1 + ref_random_below(random, 4);
    for (size_t i = 0; i < count; i++) row[i] = (uint32_t)ref_random_below(random, ROWS);
    for (size_t i = 0; i < count * t->outputs; i++) {
        const size_t pick = ref_random_below(random, 4);
        coefficient[i] = pick == 0 ? 0.0 : pick == 1 ? 1.0 : pick == 2 ? -1.0 : ref_random_between(random, -2, 2);
    }
    tested_add(t, row, count, coefficient);
}

/* Takes the coefficients of some rows away again. */
static void take_back(tested *t, ref_random *random)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        double coefficient[MOST_OUTPUTS];
        if (ref_random_below(random, 2) == 0) continue;
        for (size_t k = 0; k < t->outputs; k++) coefficient[k] = -t->coefficient[row][k];
        tested_add(t, &row, 1, coefficient);
    }
}

static void test_sums(void **state)
{
    (void)state;
    sample *s = sample_new(21);
    ref_random random = {22};
    for (size_t c = 0; c < CASES; c++) {
        double *k = matrix_of(s, &cases[c]);
        for (size_t outputs = 1; outputs <= MOST_OUTPUTS; outputs += MOST_OUTPUTS - 1) {
            tested t;
            tested_open(&t, s, cases[c].expression, outputs);
            check_scores(&t, k); /* the empty sum is 0 */
            const size_t empty = espi_folded_sum_bytes(t.sum);
            for (int round = 0; round < ROUNDS; round++) {
                for (int n = 0; n < 1 + 3 * round; n++) add_some(&t, &random);
                check_scores(&t, k);
                if (round == ROUNDS / 2) take_back(&t, &random);
                check_scores(&t, k);
            }
            assert_true(espi_folded_sum_bytes(t.sum) >= empty);
            espi_folded_sum_clear(t.sum);
            memset(t.coefficient, 0, sizeof t.coefficient);
            memset(t.added, 0, sizeof t.added);
            check_scores(&t, k);
            for (int n = 0; n < 4; n++) add_some(&t, &random);
            check_scores(&t, k);
            tested_close(&t);
        }
        free(k);
    }
    sample_free(s);
}

/* So many that threads take larger portions, from one call and from several. */
static void test_threads(void **state)
{
    (void)state;
    enum { MANY = 4200, FEW = 100 };
    sample *s = sample_new(23);
    ref_random random = {24};
    uint32_t row[MANY];
    double one[MANY * MOST_OUTPUTS], three[MANY * MOST_OUTPUTS], few[FEW * MOST_OUTPUTS];
    for (size_t i = 0; i < MANY; i++) row[i] = (uint32_t)ref_random_below(&random, ROWS);
    for (size_t c = 0; c < CASES; c += SANITIZED ? 3 : 1) {
        tested t;
        tested_open(&t, s, cases[c].expression, MOST_OUTPUTS);
        for (int round = 0; round < 2; round++) {
            for (int n = 0; n < 10; n++) add_some(&t, &random);
            tested_score(&t, row, MANY, 1, one);
            tested_score(&t, row, MANY, 3, three);
            tested_score(&t, row, FEW, 3, few);
            assert_memory_equal(one, three, sizeof one);
            assert_memory_equal(one, few, sizeof few);
        }
        tested_close(&t);
    }
    sample_free(s);
}

/* ---------------------------------------------------------------- refusals */

static void test_kernels_that_do_not_fold(void **state)
{
    static const char *const refused[][2] = {
        {"rbf(x)", "rbf(x"},
        {"linear(x) + 0.5*rbf(x, gamma=0.25)", "rbf(x, gamma=0.25"},
        {"sst(tree) + poly(x)*linear(x)", "poly(x"},
        {"sst(tree)^2", "sst(tree"},
        {"norm(linear(x) + poly(x))", "norm(linear(x)"},
        {"norm(rbf(x))", "norm(rbf(x"},
        {"fseq(words)", "fseq(words"},
        {"linear(x) + norm(fsst(tree))", "norm(fsst(tree"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        esp_kernel *kernel = kernel_of(refused[i][0]);
        esp_error err = {0};
        assert_int_equal(espi_kernel_folds(kernel, &err), ESP_ERR_PARAM);
        if (strstr(err.message, refused[i][1]) == NULL) fail_msg("%s: %s", refused[i][0], err.message);
        esp_kernel_free(kernel);
    }
}

static void test_values_too_large(void **state)
{
    (void)state;
    sample *s = sample_new(25);
    esp_kernel *normed = kernel_of("norm(poly(ones, degree=100, gamma=1e6))");
    esp_kernel *plain = kernel_of("poly(ones, degree=100, gamma=1e6)"), *missing = kernel_of("linear(nothing)");
    espi_folded_sum *sum = (espi_folded_sum *)(uintptr_t)1;
    esp_error err = {0};
    double score[ROWS];
    uint32_t row[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) row[i] = i;
    assert_int_equal(espi_folded_sum_new(normed, s->data, 1, NULL, &sum, &err), ESP_ERR_RANGE);
    assert_null(sum);
    assert_int_equal(espi_folded_sum_new(missing, s->data, 1, NULL, &sum, &err), ESP_ERR_PARAM);
    assert_null(sum);
    assert_ok(espi_folded_sum_new(plain, s->data, 1, NULL, &sum, &err), "poly", &err);
    assert_ok(espi_folded_sum_add(sum, &row[1], 1, &(double){1.0}, &err), "poly", &err);
    assert_int_equal(espi_folded_sum_score(sum, row, ROWS, NULL, score, &err), ESP_ERR_RANGE);
    espi_folded_sum_free(sum);
    espi_folded_sum_free(NULL);
    esp_kernel_free(normed);
    esp_kernel_free(plain);
    esp_kernel_free(missing);
    sample_free(s);
}

/* ------------------------------------------------------------------ memory */

typedef struct asked {
    const esp_kernel *kernel;
    const esp_dataset *data;
} asked;

static esp_status use_sum(const void *argument, esp_error *err)
{
    const asked *a = argument;
    espi_folded_sum *sum = NULL;
    uint32_t row[ROWS];
    double coefficient[2 * ROWS], score[2 * ROWS];
    for (uint32_t i = 0; i < ROWS; i++) row[i] = i;
    for (size_t i = 0; i < 2 * ROWS; i++) coefficient[i] = i % 3 == 0 ? 1.0 : 0.25;
    esp_status status = espi_kernel_folds(a->kernel, err);
    if (status == ESP_OK) status = espi_folded_sum_new(a->kernel, a->data, 2, &(esp_run){.threads = 1}, &sum, err);
    for (int round = 0; status == ESP_OK && round < 2; round++) {
        status = espi_folded_sum_add(sum, row, ROWS, coefficient, err);
        if (status == ESP_OK) status = espi_folded_sum_score(sum, row, ROWS, &(esp_run){.threads = 1}, score, err);
        if (status == ESP_OK) espi_folded_sum_clear(sum);
    }
    espi_folded_sum_free(sum);
    return status;
}

static void test_memory_runs_out(void **state)
{
    static const char *const expressions[] = {
        "norm(sst(tree, bow=1)) + linear(ones)", "norm(poly(ones)) + sasst(tree, lambda.NP=0.9)",
        "poly(values, degree=4) + norm(linear(words))", "poly(words, degree=2)", "norm(seq(words)) + poly(ones)"};
    (void)state;
    sample *s = sample_new(26);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        esp_kernel *kernel = kernel_of(expressions[i]);
        out_of_memory_everywhere(use_sum, &(asked){kernel, s->data});
        esp_kernel_free(kernel);
    }
    sample_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_kernels_that_do_not_fold),
        cmocka_unit_test(test_values_too_large),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
