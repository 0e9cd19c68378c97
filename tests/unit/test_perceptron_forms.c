/* Three forms of one perceptron: dag, forest and plain give the same scores, example by example, and learn from the
 * same ones: on random trees, and on 5,000 examples of PropBank, two epochs. Then: cross-validation and grid search of
 * perceptrons, whose results do not depend on threads, and memory that runs out. */
#include "perceptrons.h"

static const char *const forms[] = {"dag", "forest", "plain"};
static const char *const kernels[] = {"sst(tree)", "st(tree)", "sst(tree, lambda=0.7) + poly(x, degree=3)",
                                      "norm(sst(tree)) + poly(x, degree=3)"};

typedef struct course { /* of one form */
    double *score;      /* example i, output k: score[i * CLASSES + k] */
    bool *update;
} course;

enum { CLASSES = 4 };

static course follow(const char *kernel, const char *form, const char *more, const esp_dataset *data, size_t epochs)
{
    char settings[100];
    esp_error err = {0};
    const size_t steps = epochs * data->rows;
    course c = {calloc(steps, CLASSES * sizeof *c.score), calloc(steps, sizeof *c.update)};
    assert_non_null(c.score);
    assert_non_null(c.update);
    snprintf(settings, sizeof settings, "form=%s %s", form, more);
    espi_perceptron *p = perceptron_of(kernel, settings);
    for (size_t i = 0; i < steps; i++) {
        const size_t before = p->updates;
        assert_ok(espi_perceptron_learn(p, data, i % data->rows, &err), "learn", &err);
        assert_true(p->outputs <= CLASSES);
        memcpy(c.score + i * CLASSES, p->score, p->outputs * sizeof *p->score);
        c.update[i] = p->updates > before;
    }
    espi_perceptron_free(p);
    return c;
}

/* The largest difference of scores, relative to the larger of the score and 1. */
static double compare(const char *kernel, const char *more, const esp_dataset *data, size_t epochs)
{
    double most = 0.0;
    course c[3];
    for (int f = 0; f < 3; f++) c[f] = follow(kernel, forms[f], more, data, epochs);
    for (size_t i = 0; i < epochs * data->rows; i++)
        for (int f = 1; f < 3; f++) {
            if (c[f].update[i] != c[0].update[i]) fail_msg("%s, %s: step %zu", kernel, forms[f], i + 1);
            for (size_t k = i * CLASSES; k < (i + 1) * CLASSES; k++)
                most = fmax(most, fabs(c[f].score[k] - c[0].score[k]) / fmax(1.0, fabs(c[0].score[k])));
        }
    for (int f = 0; f < 3; f++) {
        free(c[f].score);
        free(c[f].update);
    }
    return most;
}

static void on_random_trees(void **state)
{
    (void)state;
    static const char *const labels[] = {"1 -1", "B A C"};
    for (size_t k = 0; k < 4; k++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            world w;
            world_make(&w, 20 + seed, WORLD, labels[seed % 2]);
            const double most = compare(kernels[k], seed > 3 ? "margin=0.5" : "", w.data, 2);
            if (!(most <= 1e-9)) fail_msg("%s: scores differ by %g", kernels[k], most);
            world_free(&w);
        }
}

static void on_propbank(void **state)
{
    (void)state;
    enum { EXAMPLES = SANITIZED ? 500 : 5000 };
    const char *folder = getenv("ESPALIER_DATA");
    char path[4096];
    const char *output = in_directory("examples.jsonl");
    snprintf(path, sizeof path, "%s/srl/propbank/bolt_CTS.srl.gz", folder != NULL ? folder : "../shared/data");
    if (access(path, R_OK) != 0) {
        print_message("%s is missing: not compared with real data\n", path);
        skip();
    }
    const char *const paths[] = {path};
    const esp_srl_options some = {.limit = EXAMPLES};
    esp_dataset *data = NULL;
    esp_error err = {0};
    assert_ok(esp_srl_write(paths, 1, &some, NULL, output, NULL, &err), path, &err);
    assert_ok(esp_dataset_read(output, NULL, NULL, &data, &err), output, &err);
    unlink(output);
    assert_int_equal(esp_dataset_count(data), EXAMPLES);
    for (size_t k = 0; k < 4; k++) {
        const double most = compare(kernels[k], "", data, 2);
        print_message("%s: scores differ by %.2g at most\n", kernels[k], most);
        assert_true(most <= 1e-9);
    }
    esp_dataset_free(data);
}

/* --------------------------------------------------------------- validation */

static const struct {
    const char *settings;
    size_t classes;
} trials[] = {{"", 2}, {"epochs=2 average=1", 2}, {"vote=1 margin=0.5", 3}, {"epochs=2 shuffle=1 seed=9", 4}};

static void validation_is_training_on_the_others(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        examples e = examples_of(50 + t, 80, trials[t].classes, true);
        compare_with_training(&e, "perceptron", "sst(tree) + linear(x)", trials[t].settings, 4, 3, 1e-9);
        examples_free(&e);
    }
}

static void validation_is_the_same_in_threads(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        esp_dataset *data = labelled(50 + t, 80, trials[t].classes, true);
        esp_predictions *one, *many;
        esp_error err = {0};
        for (int threads = 1; threads <= 3; threads += 2)
            assert_ok(validate("perceptron", "sst(tree) + linear(x)", data, trials[t].settings, 4, 3,
                               &(esp_run){.threads = threads}, threads == 1 ? &one : &many, &err),
                      trials[t].settings, &err);
        assert_memory_equal(one->column, many->column, one->count * one->columns * sizeof *one->column);
        esp_predictions_free(one);
        esp_predictions_free(many);
        esp_dataset_free(data);
    }
}

/* Folds in which a class, or all but one, are never learned. */
static void folds_without_a_class(void **state)
{
    (void)state;
    esp_dataset *data = dataset_of("{\"y\": \"A\", \"x\": {\"a\": 1}}\n{\"y\": \"A\", \"x\": {\"a\": 2}}\n"
                                   "{\"y\": \"B\", \"x\": {\"a\": -1}}\n");
    esp_predictions *p = validated("perceptron", "linear(x)", data, "", 3, 1);
    assert_string_equal(esp_predictions_label(p, 2), "A"); /* B was not there to be learned */
    esp_predictions_free(p);
    esp_dataset_free(data);
    data = dataset_of(
        "{\"y\": \"A\", \"x\": {\"a\": 1}}\n{\"y\": \"A\", \"x\": {\"a\": 2}}\n"
        "{\"y\": \"B\", \"x\": {\"b\": 1}}\n{\"y\": \"B\", \"x\": {\"b\": 2}}\n{\"y\": \"C\", \"x\": {\"c\": 1}}\n");
    p = validated("perceptron", "linear(x)", data, "", 5, 1);
    for (size_t i = 0; i < 4; i++) assert_string_equal(esp_predictions_label(p, i), i < 2 ? "A" : "B");
    assert_true(strcmp(esp_predictions_label(p, 4), "C") != 0);
    esp_predictions_free(p);
    esp_error err = {0};
    assert_refused(validate("perceptron", "linear(x)", data, "epochs=0", 2, 1, NULL, &p, &err), &err, "epochs is 0");
    esp_dataset_free(data);
}

static void grid_search(void **state)
{
    (void)state;
    const esp_grid grid[] = {{"epochs", "1,2"}, {"lambda", "0.2,0.8"}, {"average", "0,1"}};
    esp_dataset *data = labelled(5, 60, 3, false);
    esp_kernel *kernel = kernel_of("sst(tree)");
    esp_tuning *tuning = NULL;
    esp_error err = {0};
    assert_ok(esp_tune("perceptron", kernel, data, NULL, 0, grid, 3, NULL, 3, 4, NULL, &tuning, &err), "tune", &err);
    assert_int_equal(esp_tuning_count(tuning), 8);
    for (size_t c = 0; c < 8; c++) {
        char settings[60];
        size_t right = 0;
        snprintf(settings, sizeof settings, "epochs=%s average=%s", esp_tuning_value(tuning, c, 0),
                 esp_tuning_value(tuning, c, 2));
        esp_predictions *p =
            validated("perceptron", esp_kernel_text(esp_tuning_kernel(tuning, c)), data, settings, 3, 4);
        for (size_t i = 0; i < data->rows; i++)
            right += strcmp(esp_predictions_label(p, i), esp_dataset_target(data, i)) == 0;
        assert_close(esp_tuning_score(tuning, c), (double)right / (double)data->rows, 1e-12, "accuracy");
        assert_true(esp_tuning_score(tuning, c) <= esp_tuning_score(tuning, esp_tuning_best(tuning)));
        esp_predictions_free(p);
    }
    esp_tuning_free(tuning);
    const esp_grid both[] = {{"vote", "0,1"}, {"average", "0,1"}};
    assert_refused(esp_tune("perceptron", kernel, data, NULL, 0, both, 2, NULL, 3, 4, NULL, &tuning, &err), &err,
                   "average and vote exclude each other");
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------- memory */

static world small;

/* All of it: a stream, a checkpoint in its middle, a file, going on, and resuming with more classes. */
static esp_status whole_life(const void *kernel, esp_error *err)
{
    const char *data = in_directory("data");
    esp_online *online = NULL, *again = NULL, *more = NULL;
    esp_model *model = NULL, *end = NULL;
    esp_kernel *k = NULL;
    const esp_setting settings[] = {{"epochs", "2"}, {"vote", "1"}, {"class-weight", "A=2"}};
    esp_predictions *told = NULL;
    esp_status status = esp_kernel_parse(kernel, &k, err);
    if (status == ESP_OK) status = esp_online_new("perceptron", k, settings, 3, &online, err);
    if (status == ESP_OK) status = esp_online_read(online, data, NULL, NULL, err);
    if (status == ESP_OK) status = esp_online_model(online, &model, err);
    if (status == ESP_OK) status = esp_online_continue(model, k, NULL, settings, 3, NULL, &again, err);
    if (status == ESP_OK) status = esp_online_learn(again, small.data, NULL, err);
    if (status == ESP_OK) status = esp_online_resume(model, NULL, 0, NULL, &more, err);
    if (status == ESP_OK) status = esp_online_learn(more, small.data, NULL, err);
    if (status == ESP_OK) status = esp_online_model(more, &end, err);
    if (status == ESP_OK) status = esp_predict(end, small.data, &(esp_run){.threads = 1}, &told, err);
    esp_predictions_free(told);
    esp_model_free(model);
    esp_model_free(end);
    esp_online_free(online);
    esp_online_free(again);
    esp_online_free(more);
    esp_kernel_free(k);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const all[] = {"norm(sst(tree)) + poly(x)", "sst(tree, bow=1)*linear(x)"};
    const char *data = in_directory("data");
    world first;
    world_make(&small, 1, 9, "A B");
    world_make(&first, 2, 14, "B A C");
    spill(data, first.lines, strlen(first.lines));
    for (size_t i = 0; i < 2; i++) out_of_memory_everywhere(whole_life, all[i]);
    unlink(data);
    world_free(&small);
    world_free(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_random_trees),
        cmocka_unit_test(on_propbank),
        cmocka_unit_test(validation_is_training_on_the_others),
        cmocka_unit_test(validation_is_the_same_in_threads),
        cmocka_unit_test(folds_without_a_class),
        cmocka_unit_test(grid_search),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("perceptron forms", tests, make_directory, remove_directory);
}
