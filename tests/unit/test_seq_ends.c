/* The sequence kernel at its ends: large values, scorers, expressions, options of reading, limits and failures. */
#include "kernel/sequence/sequence.h"
#include "seq_cases.h"

static const char *const algorithms[] = {"pair", "match", "block"};

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
    static const char *const expressions[] = {"seq(n=3, lambda=0.6)", "norm(seq(n=2, lambda=1))",
                                              "seq(n=3, gap=0)",      "norm(seq(n=inf, lambda=0.3))",
                                              "seq(n=4) * seq(n=1)",  "0.5*seq(n=2) + norm(seq(n=3, algorithm=match))"};
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

static espi_seqs seqs_of(const esp_dataset *data)
{
    const espi_sequences *s = &data->column[0].sequences;
    return (espi_seqs){
        .count = data->rows, .row = s->row, .token = s->token, .factor = s->factor, .symbols = s->symbols.count};
}

/* Patterns are taken where there is room for them, and only there. */
static void test_block(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    esp_dataset *data = random_data(61, COUNT, 9, 6, 2);
    const espi_seqs seqs = seqs_of(data);
    const espi_seq_rule rule = {.n = 3, .lambda = 0.5};
    double row[COUNT], *gram = gram_of("seq(n=3, algorithm=pair)", data, NULL, 1);
    espi_seq_block block;
    esp_error err = {0};
    assert_ok(espi_seq_block_make(&block, &rule, &seqs, 1e9, NULL, &err), "block", &err);
    assert_non_null(block.self);
    assert_true(block.vectors > 0 && block.lists.features > 0);
    for (size_t i = 0; i < COUNT; i++) {
        espi_seq_block_row(&block, i, 3, COUNT - 2, row);
        for (size_t j = 3; j < COUNT - 2; j++) assert_close(row[j - 3], gram[i * COUNT + j], 1e-12, "block");
    }
    espi_seq_block_free(&block);
    assert_ok(espi_seq_block_make(&block, &rule, &seqs, 100.0, NULL, &err), "little effort", &err);
    assert_null(block.self);
    assert_ok(espi_seq_block_make(&block, &rule, &seqs, 1e9, &(esp_run){.memory = 1000}, &err), "little room", &err);
    assert_null(block.self);
    free(gram);
    esp_dataset_free(data);
}

/* Many outputs, where few sequences share a pattern, and few, where weights are kept. */
static void test_fold(void **state)
{
    (void)state;
    enum { COUNT = 20, OUTPUTS = 30 };
    esp_dataset *data = random_data(41, COUNT, 8, 3, 2);
    const espi_seqs seqs = seqs_of(data);
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
    static const char *const wrong[][2] = {
        {"seq(n=0)", "n of seq is '0'; allowed is a whole number >= 1, or inf"},
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

static esp_status read_normalised(const void *argument, esp_error *err)
{
    const esp_read_options options = {.lowercase = true, .digits = true};
    esp_dataset *data = NULL;
    (void)argument;
    const esp_status status = esp_dataset_parse(mixed_case, sizeof mixed_case - 1, "lines", &options, NULL, &data, err);
    esp_dataset_free(data);
    return status;
}

static void test_normalisation(void **state)
{
    (void)state;
    assert_read(false, false, "The|DT 12 Caf\xC3\x89s|NNS2 || a");
    assert_read(true, false, "the|dt 12 caf\xC3\xA9s|nns2 || a");
    assert_read(false, true, "The|DT 00 Caf\xC3\x89s|NNS0 || a");
    assert_read(true, true, "the|dt 00 caf\xC3\xA9s|nns0 || a");
    out_of_memory_everywhere(read_normalised, NULL);
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
    static const char *const expressions[] = {"seq(n=inf)", "seq(n=inf, algorithm=pair)",
                                              "norm(seq(n=2, algorithm=pair))"};
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

typedef struct work {
    const char *expression;
    const esp_dataset *data, *other;
} work;

static esp_status gram_and_score(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_kernel *kernel = NULL;
    esp_scorer *scorer = NULL;
    double gram[200], scores[20];
    esp_status status = esp_kernel_parse(w->expression, &kernel, err);
    const esp_run run = {.threads = 1};
    if (status == ESP_OK) status = esp_gram(kernel, w->data, NULL, &run, gram, err);
    if (status == ESP_OK) status = esp_gram(kernel, w->other, w->data, &run, gram, err);
    if (status == ESP_OK) status = esp_scorer_new(kernel, w->data, &scorer, err);
    if (status == ESP_OK) status = esp_scorer_add(scorer, 1, 2.0, err);
    if (status == ESP_OK) status = esp_scorer_score(scorer, w->other, &run, scores, err);
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
    for (size_t e = 0; e < 4; e++) out_of_memory_everywhere(gram_and_score, &(work){expressions[e], data, other});
    esp_dataset_free(data);
    esp_dataset_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_scorer),
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_normalisation),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_interruption),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
