/* Learners from data to predictions: against the sum that a model stands for, the box constraints, and the rules that
 * docs/cli.md gives for classes, votes and probabilities. */
#include "files.h"
#include "learning.h"

#include <pthread.h>

static const struct {
    const char *kernel, *slow; /* the same by the pair-wise recursion */
} kernels[] = {
    {"sst(tree, lambda=0.4)", "sst(tree, lambda=0.4, algorithm=qtk)"},
    {"norm(sst(tree, lambda=0.4))", "norm(sst(tree, lambda=0.4, algorithm=qtk))"},
    {"norm(sst(tree)) + 0.5*poly(x)", "norm(sst(tree, algorithm=qtk)) + 0.5*poly(x)"},
    {"sst(tree, lambda=0.4)*rbf(x, gamma=0.5)", "sst(tree, lambda=0.4, algorithm=qtk)*rbf(x, gamma=0.5)"},
    {"norm(linear(words))", "norm(linear(words))"},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* --------------------------------------------------------------- expanded form */

/* sum_i c_i K(x_i, x) + bias of every example and output, and the size of its terms. */
static void expand(const esp_model *m, const char *slow, const esp_dataset *data, double *score, double *size)
{
    const size_t n = esp_dataset_count(data), support = m->support->rows;
    double *gram = gram_of(slow, data, m->support, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m->outputs; k++) {
            double *s = &score[i * m->outputs + k], *z = &size[i * m->outputs + k];
            *s = m->bias[k];
            *z = fabs(m->bias[k]);
            for (size_t j = 0; j < support; j++) {
                const double term = m->coefficient[j * m->outputs + k] * gram[i * support + j];
                *s += term;
                *z += fabs(term);
            }
        }
    free(gram);
}

static void near(double is, double expected, double size, const char *what)
{
    if (!(fabs(is - expected) <= 1e-10 * size)) fail_msg("%s: %.17g instead of %.17g", what, is, expected);
}

/* A plain recount: each pair votes for one of its two; among equals the larger sum of scores wins, then the first. */
static size_t recount(const double *pair, size_t classes, size_t *votes, double *sum)
{
    size_t best = 0;
    memset(votes, 0, classes * sizeof *votes);
    memset(sum, 0, classes * sizeof *sum);
    for (size_t a = 0; a < classes; a++)
        for (size_t b = a + 1; b < classes; b++, pair++) {
            if (*pair > 0.0) votes[a]++;
            if (*pair < 0.0) votes[b]++;
            sum[a] += *pair;
            sum[b] -= *pair;
        }
    for (size_t c = 1; c < classes; c++)
        if (votes[c] > votes[best] || (votes[c] == votes[best] && sum[c] > sum[best])) best = c;
    return best;
}

static void check_votes(const esp_predictions *p, size_t i, const double *score, double size, const char *what)
{
    size_t votes[8];
    double sum[8];
    const size_t winner = recount(score, 4, votes, sum);
    assert_string_equal(esp_predictions_label(p, i), esp_predictions_class(p, winner));
    for (size_t c = 0; c < 4; c++) {
        const double rest = esp_predictions_column(p, i, c) - (double)votes[c];
        assert_true(fabs(rest) < 0.5);
        near(rest, sum[c] / (3.0 * (fabs(sum[c]) + 1.0)), 1.0 + size, what);
    }
}

static void check_expanded(const esp_model *m, const char *slow, const esp_dataset *data)
{
    enum { N = 30 };
    double score[N * 6], size[N * 6];
    expand(m, slow, data, score, size);
    esp_predictions *p = predicted(m, data, 1);
    const size_t k = m->outputs;
    assert_int_equal(esp_predictions_columns(p), m->classes <= 2 ? 1 : m->classes);
    assert_true(esp_predictions_are_classes(p) == (m->classes > 0));
    for (size_t i = 0; i < N; i++) {
        const double *s = score + i * k, *z = size + i * k;
        if (m->one_vs_one) {
            check_votes(p, i, s, z[0] + z[1] + z[2] + z[3] + z[4] + z[5], slow);
            continue;
        }
        size_t best = 0;
        for (size_t c = 0; c < k; c++) {
            near(esp_predictions_column(p, i, c), s[c], z[c], slow);
            if (s[c] > s[best]) best = c;
        }
        if (m->classes == 2) best = s[0] > 0.0;
        near(esp_predictions_score(p, i), s[m->classes > 2 ? best : 0], z[m->classes > 2 ? best : 0], slow);
        if (m->classes == 0) assert_null(esp_predictions_label(p, i));
        else assert_string_equal(esp_predictions_label(p, i), m->class_name[best]);
        assert_true(esp_predictions_probability(p, i, 0) == -1.0);
    }
    esp_predictions_free(p);
}

static void test_expanded_form(void **state)
{
    (void)state;
    for (size_t t = 0; t < PLAIN; t++) {
        esp_dataset *data = labelled(20 + t, 60, learned_cases[t].classes, false), *unseen = labelled(3, 30, 2, true);
        for (size_t k = 0; k < KERNELS; k++) {
            esp_model *m = trained(learned_cases[t].learner, kernels[k].kernel, data, learned_cases[t].settings, NULL);
            assert_int_equal(esp_model_classes(m), learned_cases[t].classes);
            assert_true(m->support->rows > 0 && m->support->rows <= 60);
            check_expanded(m, kernels[k].slow, unseen);
            esp_model_free(m);
        }
        esp_dataset_free(data);
        esp_dataset_free(unseen);
    }
}

/* Nothing is learned from: the bias alone is left. */
static void test_no_support(void **state)
{
    (void)state;
    esp_dataset *data = labelled(8, 12, 0, false);
    esp_model *m = trained("svr", "norm(sst(tree))", data, "epsilon=100", NULL);
    esp_predictions *p = predicted(m, data, 1);
    assert_int_equal(m->support->rows, 0);
    for (size_t i = 0; i < 12; i++) assert_true(esp_predictions_score(p, i) == m->bias[0]);
    assert_string_equal(esp_predictions_column_name(p, 0), "value");
    esp_predictions_free(p);
    esp_model_free(m);
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------- same again */

static void same_predictions(const esp_model *a, const esp_model *b, const esp_dataset *data)
{
    esp_predictions *p = predicted(a, data, 1), *q = predicted(b, data, 2);
    assert_memory_equal(p->column, q->column, p->count * p->columns * sizeof *p->column);
    if (p->winner != NULL) assert_memory_equal(p->winner, q->winner, p->count * sizeof *p->winner);
    assert_true((p->probability != NULL) == (q->probability != NULL));
    if (p->probability != NULL)
        assert_memory_equal(p->probability, q->probability, p->count * p->classes * sizeof *p->probability);
    esp_predictions_free(p);
    esp_predictions_free(q);
}

static void test_same_bytes_for_any_threads(void **state)
{
    (void)state;
    for (size_t t = 0; t < LEARNED_CASES; t++) {
        esp_dataset *data = labelled(30, 80, learned_cases[t].classes, false), *unseen = labelled(4, 30, 2, true);
        blob first = {0};
        for (int threads = 0; threads <= 3; threads++) { /* 0 is one per core */
            esp_model *m = trained(learned_cases[t].learner, kernels[t % 3].kernel, data, learned_cases[t].settings,
                                   &(esp_run){.threads = threads});
            const blob bytes = bytes_of(m);
            if (threads == 0) {
                first = bytes;
                esp_model *read = model_of_bytes(bytes);
                same_predictions(m, read, unseen);
                same_predictions(m, read, data);
                esp_model_free(read);
            } else {
                same_bytes(first, bytes);
                free(bytes.bytes);
            }
            esp_model_free(m);
        }
        free(first.bytes);
        esp_dataset_free(data);
        esp_dataset_free(unseen);
    }
}

/* A few rows instead of the whole matrix. */
static void test_little_memory(void **state)
{
    (void)state;
    enum { N = 100 };
    for (size_t t = 0; t < LEARNED_CASES; t++) {
        esp_dataset *data = labelled(31, N, learned_cases[t].classes, false), *unseen = labelled(5, 30, 2, true);
        char settings[100];
        sprintf(settings, "%s tolerance=1e-7", learned_cases[t].settings);
        esp_model *whole = trained(learned_cases[t].learner, kernels[1].kernel, data, settings, NULL);
        esp_predictions *p = predicted(whole, unseen, 1);
        static const size_t rows[] = {2, 7, N - 1};
        for (size_t r = 0; r < 3; r++) {
            const esp_run run = {.memory = rows[r] * N * sizeof(float)};
            esp_model *m = trained(learned_cases[t].learner, kernels[1].kernel, data, settings, &run);
            esp_predictions *q = predicted(m, unseen, 1);
            for (size_t i = 0; i < p->count * p->columns; i++)
                if (!(fabs(p->column[i] - q->column[i]) <= 1e-6))
                    fail_msg("%s, %zu rows: %.17g and %.17g", settings, rows[r], p->column[i], q->column[i]);
            for (size_t i = 0; p->probability != NULL && i < p->count * p->classes; i++)
                assert_true(fabs(p->probability[i] - q->probability[i]) <= 1e-5);
            esp_predictions_free(q);
            esp_model_free(m);
        }
        esp_model *m;
        esp_error err = {0};
        const esp_run one = {.memory = N * sizeof(float)};
        assert_int_equal(train(learned_cases[t].learner, kernels[1].kernel, data, settings, &one, &m, &err),
                         ESP_ERR_MEMORY);
        assert_non_null(strstr(err.message, "two rows"));
        esp_predictions_free(p);
        esp_model_free(whole);
        esp_dataset_free(data);
        esp_dataset_free(unseen);
    }
}

/* ------------------------------------------------------------------- classes */

/* Trains on points far apart, one per target, twice; classes in order, separated by blanks. */
static void check_classes(const char *text, esp_format format, const char *expected, const char *of_first)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    const esp_read_options read = {.format = format};
    assert_ok(esp_dataset_parse(text, strlen(text), "text", &read, NULL, &data, &err), text, &err);
    esp_model *m = trained("svm", "linear()", data, "C=1000", NULL);
    char names[100] = "";
    for (size_t c = 0; c < esp_model_classes(m); c++) strcat(strcat(names, c > 0 ? " " : ""), esp_model_class(m, c));
    assert_string_equal(names, expected);
    assert_null(esp_model_class(m, esp_model_classes(m)));
    esp_predictions *p = predicted(m, data, 1);
    assert_string_equal(esp_predictions_label(p, 0), of_first);
    if (esp_model_classes(m) == 2) {
        const char *positive = esp_model_class(m, 1);
        assert_string_equal(esp_predictions_column_name(p, 0), positive);
        for (size_t i = 0; i < esp_predictions_count(p); i++)
            assert_true((esp_predictions_score(p, i) > 0.0) == (strcmp(esp_predictions_label(p, i), positive) == 0));
    }
    esp_predictions_free(p);
    esp_model_free(m);
    esp_dataset_free(data);
}

static void test_classes(void **state)
{
    (void)state;
    check_classes("+1 1:1\n-1 2:1\n", ESP_FORMAT_LIBSVM, "-1 1", "1");
    check_classes("-1 1:1\n+1 2:1\n1 2:2\n", ESP_FORMAT_LIBSVM, "-1 1", "-1");
    check_classes("1 1:1\n0 2:1\n+1 1:1\n", ESP_FORMAT_LIBSVM, "0 1", "1");
    check_classes("1 1:1\n0 2:1\n-1 3:1\n", ESP_FORMAT_LIBSVM, "-1 0 1", "1");
    check_classes("10 1:1\n9 2:1\n-3.5 3:1\n", ESP_FORMAT_LIBSVM, "-3.5 9 10", "10");
    check_classes("+1 |BV| 1:1 |EV|\n-1 |BV| 2:1 |EV|\n", ESP_FORMAT_SVMTK, "-1 1", "1");
    check_classes("{\"y\": 1.0, \"x\": [1, 0]}\n{\"y\": 2, \"x\": [0, 1]}\n{\"y\": 1, \"x\": [1, 0]}\n",
                  ESP_FORMAT_JSONL, "1 2", "1");
    check_classes("{\"y\": \"b\", \"x\": [1, 0]}\n{\"y\": \"B\", \"x\": [0, 1]}\n{\"y\": \"ab\", \"x\": [-1, -1]}\n",
                  ESP_FORMAT_JSONL, "B ab b", "b");
    check_classes("{\"y\": \"10\", \"x\": [1, 0]}\n{\"y\": \"9\", \"x\": [0, 1]}\n", ESP_FORMAT_JSONL, "9 10", "10");
}

/* ------------------------------------------------------------------- weights */

/* Coefficients of output k: of positive examples in (0, high], of negative ones in [-low, 0), sum 0, and the noise
 * drives some to each bound. */
static void check_box(const esp_model *m, size_t k, double high, double low)
{
    double sum = 0.0, most = 0.0, least = 0.0;
    for (size_t i = 0; i < m->support->rows; i++) {
        const double c = m->coefficient[i * m->outputs + k];
        sum += c;
        most = fmax(most, c);
        least = fmin(least, c);
    }
    assert_true(fabs(sum) <= 1e-9);
    assert_true(high >= 0.0 ? most == high : most > 0.0);
    assert_true(low >= 0.0 ? least == -low : least < 0.0);
}

static esp_model *weighted(const esp_dataset *data, const char *settings)
{
    return trained("svm", "norm(linear(words))", data, settings, NULL);
}

static void test_weights(void **state)
{
    (void)state;
    esp_dataset *two = labelled(40, 80, 2, false), *four = labelled(41, 80, 4, false);
    examples e = examples_of(42, 80, 4, false); /* classes of 20, 20, 10, 30 */
    for (size_t i = 0; i < 40; i += 4) strcpy(e.y[i + 2], "\"D\"");
    esp_dataset *uneven = part_of(&e, NULL, 0, true);
    examples_free(&e);
    const struct {
        const esp_dataset *data;
        const char *settings;
        size_t output;
        double high, low; /* < 0: what it is depends on others */
    } boxes[] = {
        {two, "C=0.5", 0, 0.5, 0.5},
        {two, "C=0.5 positive-weight=2", 0, 1.0, 0.5},
        {two, "C=0.5 class-weight=-1=3", 0, -1, 1.5},
        {two, "C=0.5 class-weight=1=0.25,-1=0.5", 0, 0.125, -1},
        {two, "C=0.5 positive-weight=2 class-weight=1=0.25,-1=0.5", 0, 0.25, 0.25},
        {four, "C=0.25 positive-weight=0.5", 2, 0.125, -1},
        {four, "C=0.25 multiclass=ovo class-weight=A=0.5,D=0.5", 0, 0.125, -1},
        {four, "C=0.25 multiclass=ovo class-weight=A=0.5,D=0.5", 2, 0.125, 0.125},
        {four, "C=0.25 multiclass=ovo class-weight=A=0.5,D=0.5", 3, 0.25, 0.25},
        {uneven, "C=0.25 multiclass=ovo class-weight=balanced", 0, 0.25, 0.25},
        {uneven, "C=0.25 multiclass=ovo class-weight=balanced", 5, -1, 0.25 * 80.0 / 4.0 / 30.0},
        {uneven, "C=0.25 class-weight=balanced positive-weight=0.5", 3, 0.25 * 80.0 / 4.0 / 30.0 * 0.5, -1},
    };
    for (size_t b = 0; b < sizeof boxes / sizeof *boxes; b++) {
        print_message("%s\n", boxes[b].settings);
        esp_model *m = weighted(boxes[b].data, boxes[b].settings);
        check_box(m, boxes[b].output, boxes[b].high, boxes[b].low);
        esp_model_free(m);
    }
    esp_dataset *numbers = labelled(43, 60, 0, false);
    esp_model *m = trained("svr", "norm(linear(words))", numbers, "C=0.125", NULL);
    check_box(m, 0, 0.125, 0.125);
    esp_model_free(m);
    esp_dataset_free(numbers);
    esp_dataset_free(two);
    esp_dataset_free(four);
    esp_dataset_free(uneven);
}

/* ----------------------------------------------------------------- decisions */

static void test_decisions(void **state)
{
    (void)state;
    ref_random random = {50};
    for (int round = 0; round < 3000; round++) {
        const size_t classes = 3 + ref_random_below(&random, 4), pairs = classes * (classes - 1) / 2;
        double score[15], column[6], sum[6];
        size_t votes[6], best = 0;
        for (size_t i = 0; i < pairs; i++) score[i] = (double)ref_random_below(&random, 5) - 2.0; /* many ties */
        assert_int_equal(espi_decide(score, classes, true, column), recount(score, classes, votes, sum));
        for (size_t c = 1; c < classes; c++)
            if (score[c] > score[best]) best = c;
        assert_int_equal(espi_decide(score, classes, false, column), best);
        assert_memory_equal(score, column, classes * sizeof *score);
        assert_int_equal(espi_decide(score, 2, false, column), score[0] > 0.0);
    }
}

/* ---------------------------------------------------------------------- main */

/* --------------------------------------------------------- several threads */

typedef struct caller {
    const esp_model *model;
    const esp_dataset *data;
    esp_predictions *predictions;
    pthread_t thread;
} caller;

static void *call_predict(void *argument)
{
    caller *c = argument;
    esp_error err;
    if (esp_predict(c->model, c->data, &(esp_run){.threads = 2}, &c->predictions, &err) != ESP_OK)
        c->predictions = NULL;
    return NULL;
}

/* The first prediction prepares the model; here ten are the first. */
static void test_ten_threads_predict(void **state)
{
    (void)state;
    enum { CALLERS = 10 };
    esp_dataset *data = labelled(5, 40, 3, false), *other = labelled(6, 30, 3, true);
    esp_model *model = trained("svm", "norm(sst(tree)) + norm(linear(words))", data, "C=2", NULL);
    esp_model *alone = trained("svm", "norm(sst(tree)) + norm(linear(words))", data, "C=2", NULL);
    esp_predictions *expected = predicted(alone, other, 1);
    caller callers[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.model = model, .data = other};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_predict, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_non_null(callers[i].predictions);
        for (size_t k = 0; k < 30; k++)
            assert_true(esp_predictions_score(callers[i].predictions, k) == esp_predictions_score(expected, k));
        esp_predictions_free(callers[i].predictions);
    }
    esp_predictions_free(expected);
    esp_model_free(model);
    esp_model_free(alone);
    esp_dataset_free(data);
    esp_dataset_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expanded_form),
        cmocka_unit_test(test_no_support),
        cmocka_unit_test(test_same_bytes_for_any_threads),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_ten_threads_predict),
    };
    return cmocka_run_group_tests_name("learn", tests, NULL, no_blocks_left);
}
