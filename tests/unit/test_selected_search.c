/* Grid search over kernels that select patterns, what is refused, memory that runs out, and interruptions. */
#include "learning.h"
#include "learn/model/file.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/decision.h"

#define KERNEL "norm(fseq(words, n=2, tau=1.37)) + 0.5*fsst(tree, n=2, tau=1.37)"

enum { N = 40, FOLDS = 3, SEED = 5 };

/* ---------------------------------------------------------------------- grids */

/* Each combination gets the accuracy that cross-validation has for it. */
static void check_grid(const esp_dataset *data, const esp_grid *grid, size_t lines, size_t combinations,
                       const esp_run *run)
{
    const esp_setting precise = {"tolerance", "1e-6"};
    esp_kernel *kernel = kernel_of(KERNEL);
    esp_tuning *t = NULL;
    esp_error err = {0};
    assert_ok(esp_tune("svm", kernel, data, &precise, 1, grid, lines, NULL, FOLDS, SEED, run, &t, &err), grid[0].name,
              &err);
    assert_int_equal(esp_tuning_count(t), combinations);
    for (size_t c = 0; c < combinations; c++) {
        char settings[160] = "tolerance=1e-6";
        for (size_t l = 0; l < lines; l++) {
            char parameter[40];
            sprintf(parameter, "%s=%s", grid[l].name, esp_tuning_value(t, c, l));
            if (strcmp(grid[l].name, "C") == 0 || strcmp(grid[l].name, "multiclass") == 0)
                sprintf(settings + strlen(settings), " %s", parameter);
            else if (strstr(esp_kernel_text(esp_tuning_kernel(t, c)), parameter) == NULL)
                fail_msg("no %s in %s", parameter, esp_kernel_text(esp_tuning_kernel(t, c)));
        }
        esp_predictions *p = validated("svm", esp_kernel_text(esp_tuning_kernel(t, c)), data, settings, FOLDS, SEED);
        double right = 0.0;
        for (size_t i = 0; i < N; i++) right += strcmp(esp_predictions_label(p, i), esp_dataset_target(data, i)) == 0;
        if (fabs(esp_tuning_score(t, c) - right / N) > 1e-12)
            fail_msg("%s, %s: %g instead of %g", esp_kernel_text(esp_tuning_kernel(t, c)), settings,
                     esp_tuning_score(t, c), right / N);
        esp_predictions_free(p);
    }
    esp_tuning_free(t);
    esp_kernel_free(kernel);
}

static void test_grids(void **state)
{
    (void)state;
    static const esp_grid kernels[] = {{"tau", "0.5,3"}, {"n", "1,3"}, {"C", "0.5,5"}};
    static const esp_grid ways[] = {{"C", "5,0.5"}, {"multiclass", "ovr,ovo"}, {"lambda", "0.3,0.9"}};
    esp_dataset *two = labelled(1, N, 2, false), *three = labelled(2, N, 3, false);
    check_grid(two, kernels, 3, 8, NULL);
    check_grid(three, ways, 3, 8, &(esp_run){.threads = 3});
    esp_dataset_free(two);
    esp_dataset_free(three);
}

/* -------------------------------------------------------------------- refusals */

static void test_refusals(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_model *m;
    esp_predictions *p;
    esp_dataset *values = labelled(3, N, 0, false), *two = labelled(4, N, 2, false);
    const char *clause = "fseq selects patterns that tell classes apart; svr learns numbers";
    assert_refused(train("svr", KERNEL, values, "", NULL, &m, &err), &err, clause);
    assert_refused(validate("svr", KERNEL, values, "", 3, 1, NULL, &p, &err), &err, clause);
    esp_tuning *t = NULL;
    esp_kernel *kernel = kernel_of("linear(x) + fsst(tree)");
    const esp_grid grid = {"C", "1,2"};
    assert_refused(esp_tune("svr", kernel, values, NULL, 0, &grid, 1, NULL, 2, 1, NULL, &t, &err), &err,
                   "fsst selects");
    esp_kernel_free(kernel);
    clause = "the kernel fseq cannot be learned example by example";
    assert_refused(train("perceptron", KERNEL, two, "", NULL, &m, &err), &err, clause);
    assert_refused(validate("perceptron", KERNEL, two, "", 3, 1, NULL, &p, &err), &err, clause);
    assert_refused(train("svm", "fseq(nothing)", two, "", NULL, &m, &err), &err, "there is no column 'nothing'");
    assert_refused(train("svm", "fseq(tree)", two, "", NULL, &m, &err), &err, "is a tree column");
    const esp_status status = train("svm", KERNEL, two, "", &(esp_run){.memory = 200}, &m, &err);
    assert_int_equal(status, ESP_ERR_MEMORY);
    esp_dataset_free(values);
    esp_dataset_free(two);
}

/* A model that has not what its kernel selects, or more than that, is neither written nor used. */
static void test_wrong_models(void **state)
{
    (void)state;
    esp_error err = {0};
    esp_dataset *two = labelled(5, N, 2, false);
    esp_model *m = trained("svm", KERNEL, two, "", NULL);
    espi_leaf *leaf = m->variant[0]->leaf;
    espi_selection *const first = leaf[0].selection, *const second = leaf[1].selection;
    esp_kernel **variant = m->variant;
    assert_ok(espi_model_check(m, &err), "model", &err);
    leaf[0].selection = NULL;
    assert_refused(espi_model_check(m, &err), &err, "output 1 has not the patterns that its kernel selects");
    leaf[0].selection = second;
    leaf[1].selection = first;
    assert_refused(espi_model_check(m, &err), &err, "output 1 has not the patterns that its kernel selects");
    leaf[0].selection = first;
    leaf[1].selection = second;
    m->variant = NULL;
    assert_refused(espi_model_check(m, &err), &err, "the patterns that the kernel selects are missing");
    m->variant = variant;
    esp_kernel *selecting = m->kernel, *plain = kernel_of("linear(words)");
    m->kernel = plain;
    assert_refused(espi_model_check(m, &err), &err, "there are patterns, but the kernel selects none");
    m->kernel = selecting;
    assert_refused(esp_online_resume(m, NULL, 0, NULL, &(esp_online *){NULL}, &err), &err, "");
    esp_kernel_free(plain);
    esp_model_free(m);
    esp_dataset_free(two);
}

/* --------------------------------------------------------------- interruptions */

typedef struct patience {
    int calls, left;
} patience;

static int lose_patience(void *context, const char *stage, double fraction)
{
    patience *p = context;
    (void)stage, (void)fraction;
    p->calls++;
    return p->calls > p->left;
}

/* At any moment: nothing, or with keep-partial a model that can be used. */
static void test_interruptions(void **state)
{
    (void)state;
    esp_dataset *data = labelled(6, N, 4, false);
    size_t partial = 0;
    for (int left = 0;; left += 1 + left / 8) {
        patience p = {.left = left};
        esp_run run = {.threads = 1, .progress = lose_patience, .user = &p};
        esp_model *m = NULL;
        esp_error err = {0};
        const esp_status status = train("svm", KERNEL, data, "keep-partial=1", &run, &m, &err);
        if (status != ESP_OK) assert_int_equal(status, ESP_ERR_CANCELLED);
        const bool whole = status == ESP_OK && strstr(m->summary, "converged") != NULL;
        if (status == ESP_OK) {
            assert_ok(espi_model_check(m, &err), "model", &err);
            esp_predictions_free(predicted(m, data, 1));
            partial += !whole;
        }
        esp_model_free(m);
        if (p.calls <= left) {
            assert_true(whole);
            break;
        }
    }
    print_message("%zu models of a part\n", partial);
    assert_true(partial > 3);
    esp_dataset_free(data);
}

/* --------------------------------------------------------------------- memory */

typedef struct work {
    const char *settings;
    size_t calls; /* of those below, how many */
    esp_grid grid;
    esp_run run;
} work;

static const esp_dataset *data_of_work;
static const esp_kernel *kernel_of_work;
static options options_of_work;
static esp_model *model_of_work;

static esp_status learn(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_model *m = (esp_model *)(uintptr_t)1;
    const esp_status status = esp_train("svm", kernel_of_work, data_of_work, options_of_work.setting,
                                        options_of_work.count, &w->run, &m, err);
    assert_true((status == ESP_OK) == (m != NULL));
    esp_model_free(m);
    return status;
}

static esp_status judge(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_predictions *p = (esp_predictions *)(uintptr_t)1;
    char *summary = NULL;
    esp_status status = esp_predict(model_of_work, data_of_work, &w->run, &p, err);
    assert_true((status == ESP_OK) == (p != NULL));
    espi_decision *decision = model_of_work->decision; /* kept from the first prediction on */
    for (size_t k = 0; decision != NULL && k < model_of_work->outputs; k++) espi_decision_free(&decision[k]);
    espi_free(decision);
    model_of_work->decision = NULL;
    esp_predictions_free(p);
    if (status == ESP_OK) status = esp_model_summary(model_of_work, &summary, err);
    esp_text_free(summary);
    return status;
}

static esp_status cross_validate(const void *argument, esp_error *err)
{
    const work *w = argument;
    esp_predictions *p = (esp_predictions *)(uintptr_t)1;
    const esp_status status = esp_cross_validate("svm", kernel_of_work, data_of_work, options_of_work.setting,
                                                 options_of_work.count, 2, 1, &w->run, &p, err);
    assert_true((status == ESP_OK) == (p != NULL));
    esp_predictions_free(p);
    return status;
}

static esp_status tune(const void *argument, esp_error *err)
{
    const work *w = argument;
    const esp_grid grid[] = {w->grid, {"C", "1"}};
    esp_tuning *t = (esp_tuning *)(uintptr_t)1;
    const esp_status status = esp_tune("svm", kernel_of_work, data_of_work, options_of_work.setting,
                                       options_of_work.count, grid, 2, NULL, 2, 1, &w->run, &t, err);
    assert_true((status == ESP_OK) == (t != NULL));
    esp_tuning_free(t);
    return status;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    static const work works[] = {
        {"probability=1", 1, {0}, {.threads = 2}},
        {"class-weight=balanced", 4, {"multiclass", "ovr,ovo"}, {.threads = 1}},
        {"multiclass=ovo", 2, {0}, {.threads = 1, .memory = 8000}},
    };
    static const fallible call[] = {learn, judge, cross_validate, tune};
    esp_kernel *kernel = kernel_of("norm(fseq(words, n=2, tau=0.5)) + fsst(tree, n=1, tau=2)");
    kernel_of_work = kernel;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        esp_dataset *data = labelled(7 + i, 6, i == 0 ? 2 : 3, false);
        data_of_work = data;
        options_of(&options_of_work, works[i].settings);
        model_of_work = trained("svm", esp_kernel_text(kernel), data, works[i].settings, &works[i].run);
        for (size_t c = 0; c < works[i].calls; c++) assert_int_equal(out_of_memory_everywhere(call[c], &works[i]), 0);
        esp_model_free(model_of_work);
        esp_dataset_free(data);
    }
    esp_kernel_free(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wrong_models),    cmocka_unit_test(test_interruptions),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("searching with selected patterns", tests, NULL, no_blocks_left);
}
