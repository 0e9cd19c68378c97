/* Learners that cannot learn, or not to the end. */
#include "learning.h"

#define KERNEL "norm(sst(tree, lambda=0.4))"

/* -------------------------------------------------------------------- errors */

static void refused(const char *learner, const char *kernel, const esp_dataset *data, const char *settings,
                    const char *clause)
{
    esp_model *m;
    esp_error err = {0};
    assert_refused(train(learner, kernel, data, settings, NULL, &m, &err), &err, clause);
    assert_null(m);
}

static int count_call(void *user, const char *stage, double fraction)
{
    (void)stage;
    (void)fraction;
    ++*(int *)user;
    return 0;
}

/* A kernel that no model can hold is refused before the work begins. */
static void test_kernel_too_long(void **state)
{
    (void)state;
    enum { TERMS = 8000 };
    esp_dataset *data = labelled(60, 20, 2, false);
    char *text = malloc(TERMS * 12 + 20), *at = text;
    assert_non_null(text);
    at += sprintf(at, "sst(tree)");
    for (int i = 1; i < TERMS; i++) at += sprintf(at, "+sst(tree)");
    int calls = 0;
    const esp_run run = {.threads = 1, .progress = count_call, .user = &calls};
    static const char *const learners[] = {"svm", "perceptron"};
    for (int i = 0; i < 2; i++) {
        esp_model *m;
        esp_error err = {0};
        assert_refused(train(learners[i], text, data, "", &run, &m, &err), &err,
                       "bytes besides its grammar rules; a model can hold 262144");
        assert_null(m);
        assert_true(calls <= i); /* a perceptron tells that it starts */
    }
    free(text);
    esp_dataset_free(data);
}

static void test_errors(void **state)
{
    (void)state;
    esp_dataset *two = labelled(60, 20, 2, false), *four = labelled(60, 20, 4, false);
    esp_dataset *bare = dataset_of("{\"tree\": \"(S a)\"}\n{\"tree\": \"(S b)\"}\n");
    esp_dataset *one = dataset_of("{\"y\": \"A\", \"tree\": \"(S a)\"}\n{\"y\": \"A\", \"tree\": \"(S b)\"}\n");
    const struct {
        const char *learner, *settings, *clause;
        const esp_dataset *data;
    } wrong[] = {
        {"svm", "", "no target", bare},
        {"svr", "", "no target", bare},
        {"svm", "", "all 2 examples are of class 'A'", one},
        {"svr", "", "target of example 1 is 'A'", four},
        {"svm", "C=1 class-weight=A=1,Z=2", "'Z'", four},
        {"svm", "class-weight=A", "class-weight has 'A'", four},
        {"svm", "class-weight=A=0", "class-weight has 'A=0'", four},
        {"svm", "class-weight=A=-1", "class-weight has 'A=-1'", four},
        {"svm", "C=0", "C is '0'; allowed is a number > 0", two},
        {"svm", "C=-1", "C is '-1'", two},
        {"svr", "C=nan", "C is 'nan'", two},
        {"svm", "C=", "C is ''", two},
        {"svm", "C=1x", "C is '1x'", two},
        {"svm", "C=inf", "C is 'inf'", two},
        {"svr", "epsilon=-0.1", "epsilon is '-0.1'", two},
        {"svm", "tolerance=0", "tolerance is '0'", two},
        {"svm", "max-iterations=1.5", "max-iterations is '1.5'", two},
        {"svm", "max-iterations=0", "max-iterations is '0'", two},
        {"svm", "multiclass=ovx", "multiclass is 'ovx'; allowed is ovr or ovo", two},
        {"svm", "probability=yes", "probability is 'yes'", two},
        {"svm", "probabilty=1", "did you mean 'probability'?", two},
        {"svm", "positive-wieght=1", "did you mean 'positive-weight'?", two},
        {"svm", "epsilon=0.1", "svm has no setting 'epsilon'", two},
        {"svr", "probability=1", "svr has no setting 'probability'", two},
        {"svm", "multiclass=ovo probability=1", "probability needs multiclass ovr", two},
        {"svn", "", "unknown learner 'svn'", two},
        {"", "", "unknown learner ''", two},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i].learner, "sst(tree)", wrong[i].data, wrong[i].settings, wrong[i].clause);
    refused("svm", "sst(trees)", two, "", "'trees'");
    refused("perceptron", "norm(ptk(tree))", two, "",
            "the kernel ptk cannot be learned example by example; the learner svm takes it");
    refused("perceptron", "gtk(tree, grammar={S -> [NP] VP})", two, "",
            "the kernel gtk cannot be learned example by example; the learner svm takes it");

    esp_model *m = trained("svm", "norm(sst(tree)) + linear(words)", two, "", NULL);
    esp_predictions *p = (esp_predictions *)(uintptr_t)1;
    esp_error err = {0};
    assert_refused(esp_predict(m, bare, NULL, &p, &err), &err, "'words'");
    assert_null(p);
    esp_model_free(m);
    esp_dataset_free(two);
    esp_dataset_free(four);
    esp_dataset_free(bare);
    esp_dataset_free(one);
}

/* -------------------------------------------------------------- interruptions */

typedef struct stop { /* at the call of this number, from `stage` on (NULL: any) */
    const char *stage;
    size_t at, calls;
} stop;

static int stopping(void *user, const char *stage, double fraction)
{
    stop *s = user;
    assert_true(fraction <= 1.0);
    if (s->stage == NULL || s->calls > 0 || strcmp(stage, s->stage) == 0) s->calls++;
    return s->calls > s->at;
}

static void assert_end(const esp_model *m, const char *end)
{
    char *text = NULL, line[80];
    esp_error err = {0};
    assert_ok(esp_model_summary(m, &text, &err), "summary", &err);
    sprintf(line, "\nend\t%s\n", end);
    if (strstr(text, line) == NULL) fail_msg("not '%s' but\n%s", end, text);
    esp_text_free(text);
}

/* Stopped at any call: no model. With keep-partial there is one as soon as training has begun. */
static void test_interruption(void **state)
{
    (void)state;
    for (size_t t = 0; t < LEARNED_CASES; t++) {
        esp_dataset *data = labelled(70, 60, learned_cases[t].classes, false);
        char keep[100];
        sprintf(keep, "%s keep-partial=1", learned_cases[t].settings);
        for (size_t at = 0, done = 0; done < 2; at++) {
            stop any = {.at = at}, training = {.stage = "training", .at = at};
            const esp_run run = {.threads = 2, .progress = stopping, .user = &any};
            const esp_run kept = {.threads = 2, .progress = stopping, .user = &training};
            esp_model *m;
            esp_error err = {0};
            esp_status status =
                train(learned_cases[t].learner, KERNEL, data, learned_cases[t].settings, &run, &m, &err);
            done = any.calls <= at;
            if (status != (done ? ESP_OK : ESP_ERR_CANCELLED)) fail_msg("%s: %d at %zu", keep, (int)status, at);
            if (!done) assert_non_null(strstr(err.message, "interrupted"));
            else assert_end(m, "converged");
            esp_model_free(m);

            status = train(learned_cases[t].learner, KERNEL, data, keep, &kept, &m, &err);
            if (status != ESP_OK) fail_msg("%s, stopped at %zu: %s", keep, at, err.message);
            if (at == 0) assert_end(m, "interrupted");
            if (training.calls <= at) assert_end(m, "converged");
            done += training.calls <= at;
            esp_predictions *p = predicted(m, data, 1);
            esp_predictions_free(p);
            esp_model_free(m);
        }
        esp_model *m = trained(learned_cases[t].learner, KERNEL, data, "max-iterations=1", NULL);
        assert_end(m, "stopped at the limit of iterations");
        assert_true(m->support->rows > 0);
        esp_model_free(m);
        esp_dataset_free(data);
    }
}

/* ---------------------------------------------------------------------- main */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_kernel_too_long),
        cmocka_unit_test(test_interruption),
    };
    return cmocka_run_group_tests_name("learn errors", tests, NULL, no_blocks_left);
}
