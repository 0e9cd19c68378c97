/* All that is shared out among threads, with one and with several: the same bytes. The tests of each part try more;
 * this one is small enough to run everything under ThreadSanitizer. */
#include "files.h"
#include "learning.h"

enum { COUNT = 90, OTHERS = 20, THREADS = 3 };

static const esp_run one = {.threads = 1}, several = {.threads = THREADS};

static esp_dataset *data, *others;

static int prepare(void **state)
{
    data = labelled(1, COUNT, 3, false);
    others = labelled(2, OTHERS, 3, true);
    return make_directory(state);
}

static int clear(void **state)
{
    esp_dataset_free(data);
    esp_dataset_free(others);
    return remove_directory(state);
}

/* ----------------------------------------------------------------- kernels */

static const char *const kernels[] = {
    "norm(sst(tree, lambda=0.4))",
    "norm(sst(tree, bow=0.5, algorithm=ftk))",
    "st(tree, bow=0.5) + norm(sasst(tree, lambda.S=0.3, alpha.W=0.5))",
    "norm(ptk(tree)) + ptk(tree, mu=0.2)",
    "norm(ptk(tree, algorithm=pair))",
    "norm(gtk(tree, grammar={S -> [NP] VP; NP -> [X] S; = S NP})) + 0.5*gtk(tree)",
    "norm(gtk(tree, algorithm=fgtk2, grammar={S -> [NP] VP}))",
    "norm(seq(words, n=3)) + seq(words, n=inf)",
    "norm(seq(words, n=3, algorithm=pair))",
    "norm(linear(words))*rbf(x, gamma.p=0.3) + poly(x)",
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void matrices_are_the_same_in_threads(void **state)
{
    (void)state;
    for (size_t k = 0; k < KERNELS; k++) {
        esp_kernel *kernel = kernel_of(kernels[k]);
        double self[2][COUNT];
        double *gram = gram_of(kernels[k], data, NULL, 1), *again = gram_of(kernels[k], data, NULL, THREADS);
        double *cross = gram_of(kernels[k], others, data, 1), *twice = gram_of(kernels[k], others, data, THREADS);
        esp_error err = {0};
        assert_memory_equal(gram, again, COUNT * COUNT * sizeof *gram);
        assert_memory_equal(cross, twice, OTHERS * COUNT * sizeof *cross);
        assert_ok(esp_gram_diagonal(kernel, data, &one, self[0], &err), kernels[k], &err);
        assert_ok(esp_gram_diagonal(kernel, data, &several, self[1], &err), kernels[k], &err);
        assert_memory_equal(self[0], self[1], sizeof self[0]);
        free(gram);
        free(again);
        free(cross);
        free(twice);
        esp_kernel_free(kernel);
    }
}

static void scores_are_the_same_in_threads(void **state)
{
    (void)state;
    for (size_t k = 0; k < KERNELS; k++) {
        esp_kernel *kernel = kernel_of(kernels[k]);
        esp_scorer *scorer = NULL;
        double score[2][OTHERS];
        esp_error err = {0};
        assert_ok(esp_scorer_new(kernel, data, &scorer, &err), kernels[k], &err);
        for (size_t i = 0; i < COUNT; i += 7)
            assert_ok(esp_scorer_add(scorer, i, 1.0 - 0.1 * (double)i, &err), kernels[k], &err);
        assert_ok(esp_scorer_score(scorer, others, &one, score[0], &err), kernels[k], &err);
        assert_ok(esp_scorer_score(scorer, others, &several, score[1], &err), kernels[k], &err);
        assert_memory_equal(score[0], score[1], sizeof score[0]);
        esp_scorer_free(scorer);
        esp_kernel_free(kernel);
    }
}

/* The derivative of every value; that of sums is in the tests of gradients. */
static void derivatives_are_the_same_in_threads(void **state)
{
    (void)state;
    static const char *const learned[] = {"2*norm(sst(tree)) + norm(seq(words))*rbf(x)",
                                          "norm(ptk(tree)) + 0.1*gtk(tree, grammar={S -> [NP] VP})"};
    for (size_t k = 0; k < sizeof learned / sizeof *learned; k++) {
        esp_kernel *kernel = kernel_of(learned[k]);
        esp_hyperparameters *hyper = NULL;
        esp_error err = {0};
        assert_ok(esp_hyperparameters_new(kernel, &hyper, &err), learned[k], &err);
        const size_t size = OTHERS * OTHERS * esp_hyperparameters_count(hyper) * sizeof(double);
        double *gradient = malloc(size), *again = malloc(size);
        assert_true(gradient != NULL && again != NULL);
        assert_ok(esp_gram_gradient(kernel, others, &one, gradient, &err), learned[k], &err);
        assert_ok(esp_gram_gradient(kernel, others, &several, again, &err), learned[k], &err);
        assert_memory_equal(gradient, again, size);
        free(gradient);
        free(again);
        esp_hyperparameters_free(hyper);
        esp_kernel_free(kernel);
    }
}

static void matrices_are_written_in_threads(void **state)
{
    (void)state;
    static const esp_gram_format formats[] = {ESP_GRAM_TEXT, ESP_GRAM_NPY, ESP_GRAM_LIBSVM};
    const char *path = in_directory("gram");
    double *gram = gram_of("norm(sst(tree))", data, NULL, 1);
    for (size_t f = 0; f < 3; f++) {
        blob file[2];
        for (int k = 0; k < 2; k++) {
            esp_error err = {0};
            assert_ok(esp_gram_write(gram, COUNT, COUNT, data, formats[f], path, k == 0 ? &one : &several, &err), path,
                      &err);
            file[k] = slurp(path);
        }
        same_bytes(file[0], file[1]);
        free(file[0].bytes);
        free(file[1].bytes);
    }
    unlink(path);
    free(gram);
}

/* ------------------------------------------------------------------ mining */

static void patterns_are_the_same_in_threads(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        esp_mine_options options;
    } works[] = {{"fseq(words, n=inf, tau=0.5)", {0}},
                 {"fseq(words, n=3, tau=0)", {.top = 15}},
                 {"fsst(tree, n=3, tau=0.5)", {0}},
                 {"fsst(tree, n=3, tau=0)", {.top = 40}}};
    for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
        esp_kernel *kernel = kernel_of(works[w].kernel);
        esp_mine_options o = works[w].options;
        esp_patterns *p, *q;
        esp_error err = {0};
        o.positive = "A";
        assert_ok(esp_mine(kernel, data, &o, &one, &p, &err), works[w].kernel, &err);
        assert_ok(esp_mine(kernel, data, &o, &several, &q, &err), works[w].kernel, &err);
        assert_true(esp_patterns_count(p) > 10);
        assert_int_equal(esp_patterns_count(p), esp_patterns_count(q));
        for (size_t i = 0; i < esp_patterns_count(p); i++) {
            assert_string_equal(esp_patterns_text(p, i), esp_patterns_text(q, i));
            assert_true(esp_patterns_value(p, i) == esp_patterns_value(q, i));
        }
        esp_patterns_free(p);
        esp_patterns_free(q);
        esp_kernel_free(kernel);
    }
}

/* ---------------------------------------------------------------- learners */

static const struct {
    const char *learner, *kernel, *settings;
    size_t classes;
} works[] = {
    {"svm", "norm(sst(tree)) + linear(x)", "C=2 probability=1", 3},
    {"svm", "norm(sst(tree))", "C=2 multiclass=ovo", 4},
    {"svm", "norm(ptk(tree))", "inducing=20", 3},
    {"svm", "norm(fseq(words, n=2, tau=0.5)) + fsst(tree, n=2, tau=1)", "", 3},
    {"svr", "rbf(x) + norm(seq(words))", "C=2 inducing=30", 0},
    {"perceptron", "sst(tree) + linear(x)", "epochs=2 vote=1", 3},
    {"perceptron", "norm(sst(tree))", "epochs=2 average=1", 2},
    {"gp", "1*norm(sst(tree)) + 1*rbf(x)", "max-iterations=2", 0},
    {"gp", "1*norm(sst(tree))", "max-iterations=2 likelihood=bernoulli", 2},
    {"gp", "1*norm(sst(tree)) + 1*rbf(x)", "max-iterations=2 inducing=30", 0},
};

static void assert_same_columns(const esp_predictions *p, const esp_predictions *q)
{
    assert_int_equal(p->columns, q->columns);
    assert_memory_equal(p->column, q->column, p->count * p->columns * sizeof *p->column);
}

static void learners_are_the_same_in_threads(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
        const char *learner = works[w].learner, *kernel = works[w].kernel, *settings = works[w].settings;
        esp_dataset *given = labelled(3, COUNT, works[w].classes, false), *new = labelled(4, COUNT, 2, true);
        esp_model *m = trained(learner, kernel, given, settings, &one);
        esp_model *n = trained(learner, kernel, given, settings, &several);
        const blob a = bytes_of(m), b = bytes_of(n);
        esp_predictions *p = predicted(m, new, 1), *q = predicted(n, new, THREADS), *r, *s;
        esp_error err = {0};
        print_message("%s, %s, %s\n", learner, kernel, settings);
        same_bytes(a, b);
        assert_same_columns(p, q);
        assert_ok(validate(learner, kernel, given, settings, 3, 1, &one, &r, &err), settings, &err);
        assert_ok(validate(learner, kernel, given, settings, 3, 1, &several, &s, &err), settings, &err);
        assert_same_columns(r, s);
        esp_predictions_free(p);
        esp_predictions_free(q);
        esp_predictions_free(r);
        esp_predictions_free(s);
        free(a.bytes);
        free(b.bytes);
        esp_model_free(m);
        esp_model_free(n);
        esp_dataset_free(given);
        esp_dataset_free(new);
    }
}

/* ---------------------------------------------------------------- failures */

static esp_status multiply(const void *argument, esp_error *err)
{
    esp_kernel *kernel = NULL;
    double gram[OTHERS * OTHERS];
    esp_status status = esp_kernel_parse("norm(sst(tree)) + norm(gtk(tree))*norm(seq(words))", &kernel, err);
    if (status == ESP_OK) status = esp_gram(kernel, others, NULL, argument, gram, err);
    esp_kernel_free(kernel);
    return status;
}

static esp_status mine(const void *argument, esp_error *err)
{
    esp_kernel *kernel = NULL;
    esp_patterns *p = NULL;
    esp_status status = esp_kernel_parse("fsst(tree, n=2, tau=1)", &kernel, err);
    if (status == ESP_OK)
        status = esp_mine(kernel, others, &(esp_mine_options){.positive = "A", .top = 9}, argument, &p, err);
    esp_patterns_free(p);
    esp_kernel_free(kernel);
    return status;
}

static esp_status learn(const void *argument, esp_error *err)
{
    esp_kernel *kernel = NULL;
    esp_model *model = NULL;
    esp_predictions *p = NULL;
    esp_status status = esp_kernel_parse("norm(sst(tree)) + linear(x)", &kernel, err);
    if (status == ESP_OK) status = esp_train("svm", kernel, others, NULL, 0, argument, &model, err);
    if (status == ESP_OK) status = esp_predict(model, others, argument, &p, err);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_kernel_free(kernel);
    return status;
}

static const fallible calls[] = {multiply, mine, learn};
enum { CALLS = sizeof calls / sizeof *calls };

static void memory_runs_out_in_threads(void **state)
{
    (void)state;
    for (size_t c = 0; c < CALLS; c++) out_of_memory_everywhere(calls[c], &several);
}

static int lose_patience(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    return (*(int *)user)-- <= 0;
}

static void threads_can_be_stopped(void **state)
{
    (void)state;
    for (size_t c = 0; c < CALLS; c++) {
        esp_status status = ESP_ERR_CANCELLED;
        for (int patience = 0; status != ESP_OK; patience++) {
            int left = patience;
            const esp_run run = {.threads = THREADS, .progress = lose_patience, .user = &left};
            esp_error err = {0};
            status = calls[c](&run, &err);
            if (status != (left < 0 ? ESP_ERR_CANCELLED : ESP_OK)) fail_msg("status %d: %s", (int)status, err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_the_same_in_threads),    cmocka_unit_test(scores_are_the_same_in_threads),
        cmocka_unit_test(derivatives_are_the_same_in_threads), cmocka_unit_test(matrices_are_written_in_threads),
        cmocka_unit_test(patterns_are_the_same_in_threads),    cmocka_unit_test(learners_are_the_same_in_threads),
        cmocka_unit_test(memory_runs_out_in_threads),          cmocka_unit_test(threads_can_be_stopped),
    };
    return cmocka_run_group_tests_name("threads", tests, prepare, clear);
}
