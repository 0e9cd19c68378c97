/* A Gaussian process on the way: what lists of names may look like, settings that exclude each other, and that it asks
 * whether to go on before each factorisation. */
#include "learn/gp/gp.h"
#include "learning.h"

static void test_blanks_in_lists(void **state)
{
    (void)state;
    const char *text = " a , b c\t,\\ d\\ ,  ,e\\\\ ", *piece;
    static const char *const expected[] = {"a", "b c", "\\ d\\ ", "", "e\\\\"};
    size_t size, count = 0;
    for (; espi_pattern_next(&text, ',', &piece, &size); count++) {
        assert_true(count < 5);
        assert_int_equal(size, strlen(expected[count]));
        assert_memory_equal(piece, expected[count], size);
    }
    assert_int_equal(count, 5);
}

static esp_status learn(const esp_dataset *data, const char *kernel, const esp_setting *setting, size_t count,
                        const esp_run *run, esp_error *err)
{
    esp_kernel *k = kernel_of(kernel);
    esp_model *model = NULL;
    const esp_status status = esp_train("gp", k, data, setting, count, run, &model, err);
    assert_true((status == ESP_OK) == (model != NULL));
    esp_model_free(model);
    esp_kernel_free(k);
    return status;
}

static void test_settings(void **state)
{
    (void)state;
    static const char kernel[] = "1*sasst(tree, lambda.S=0.2, lambda.W=0.3) + 1*rbf(x)";
    static const struct {
        esp_setting first, second;
        const char *message; /* NULL: it is learned */
    } trials[] = {
        {{"fix", " noise , lambda.* "}, {"tie", " weight.1 ,weight.2 , gamma"}, NULL},
        {{"group", "S , W ; K0,K1"}, {"max-iterations", "0"}, "group names the unknown label 'K0'; there are S, W"},
        {{"group", " S , W "}, {"prior", " lambda.S = 0.2 , 1 ; noise=0.1,1"}, NULL},
        {{"prior", "noise=1,1;gamma=1,1;noise=2,1"},
         {"restarts", "0"},
         "prior names 'noise', but noise has a prior already"},
        {{"prior", "lambda.W=1,1;lambda.*=1,1"},
         {"restarts", "0"},
         "prior names 'lambda.*', but lambda.W has a prior already"},
        {{"prior", "lambda.S=1,1;lambda.W=1,1"},
         {"group", "S,W"},
         "prior names 'lambda.W', but lambda.W has a prior already"},
        {{"prior", "lambda.*=1,1"}, {"group", "S,W"}, NULL},
        {{"prior", "lambda.*=1, x"},
         {"restarts", "0"},
         "prior has 'lambda.*=1, x'; allowed is name=median,sd;... with numbers > 0"},
    };
    esp_dataset *data = labelled(3, 12, 0, false);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const esp_setting setting[] = {trials[i].first, trials[i].second, {"max-iterations", "1"}};
        esp_error err = {0};
        const esp_status status = learn(data, kernel, setting, 3, NULL, &err);
        if (trials[i].message == NULL) assert_ok(status, trials[i].first.value, &err);
        else assert_int_equal(status, ESP_ERR_PARAM);
        if (trials[i].message != NULL) assert_string_equal(err.message, trials[i].message);
    }
    esp_dataset_free(data);
}

/* What is ignored is refused; also as a line of a grid. */
static void test_settings_of_numbers(void **state)
{
    (void)state;
    static const esp_setting given[] = {{"noise", "0.1"}, {"standardise", "unit"}};
    esp_dataset *data = labelled(3, 12, 2, false);
    esp_kernel *kernel = kernel_of("rbf(x)");
    for (size_t i = 0; i < 2; i++) {
        const esp_setting setting[] = {given[i], {"likelihood", "bernoulli"}};
        const esp_grid grid = {given[i].name, given[i].value};
        esp_tuning *tuning = NULL;
        char message[120];
        esp_error err = {0};
        sprintf(message, "%s is for numbers, not for the classes of likelihood bernoulli", given[i].name);
        assert_int_equal(learn(data, "rbf(x)", setting, 2, NULL, &err), ESP_ERR_PARAM);
        assert_string_equal(err.message, message);
        assert_int_equal(esp_tune("gp", kernel, data, setting + 1, 1, &grid, 1, NULL, 2, 1, NULL, &tuning, &err),
                         ESP_ERR_PARAM);
        assert_string_equal(err.message, message);
        assert_null(tuning);
    }
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ asking */

typedef struct watch {
    const char *stage; /* that is waited for */
    size_t times;      /* it came */
    size_t stop;       /* at which of them to stop; 0: never */
} watch;

static int look(void *user, const char *stage, double fraction)
{
    watch *w = user;
    (void)fraction;
    if (strcmp(stage, w->stage) != 0) return 0;
    return ++w->times == w->stop;
}

static bool is_told(const esp_model *model, const char *line)
{
    char *text = NULL;
    esp_error err = {0};
    assert_ok(esp_model_summary(model, &text, &err), "summary", &err);
    const bool told = strstr(text, line) != NULL;
    esp_text_free(text);
    return told;
}

/* How often a process asks in this stage; each time it can be stopped, with a
 * model where there is a best one so far. */
static size_t asked(const esp_dataset *data, const char *kernel, const char *settings, const char *stage)
{
    watch w = {.stage = stage};
    const esp_run run = {.threads = 1, .progress = look, .user = &w};
    esp_model *model = trained("gp", kernel, data, settings, &run);
    const size_t times = w.times;
    esp_model_free(model);
    for (size_t k = 1; k <= times; k++) {
        char message[80];
        esp_error err = {0};
        w = (watch){.stage = stage, .stop = k};
        const esp_status status = train("gp", kernel, data, settings, &run, &model, &err);
        sprintf(message, "interrupted while %s", stage);
        if (status == ESP_ERR_CANCELLED) assert_string_equal(err.message, message);
        else assert_true(status == ESP_OK && is_told(model, "\nend\tinterrupted\n"));
        assert_int_equal(w.times, k);
        esp_model_free(model);
    }
    return times;
}

static void test_asking(void **state)
{
    (void)state;
    esp_dataset *numbers = labelled(3, 20, 0, false), *classes = labelled(4, 20, 2, false);
    esp_dataset *equal = dataset_of("{\"y\": 1, \"x\": [1]}\n{\"y\": 2, \"x\": [3]}\n{\"y\": 1, \"x\": [1]}\n");
    assert_int_equal(asked(numbers, "1*rbf(x)", "max-iterations=0", "factoring"), 1);
    assert_int_equal(asked(numbers, "1*rbf(x)", "max-iterations=0", "inverting"), 1);
    assert_int_equal(asked(numbers, "1*rbf(x)", "fix=*", "inverting"), 0);
    assert_int_equal(asked(equal, "rbf(x)", "noise=0 fix=*", "factoring"), 2); /* the second with jitter */
    assert_true(asked(classes, "1*rbf(x)", "likelihood=bernoulli max-iterations=0", "finding the mode") > 2);
    esp_dataset *several = labelled(4, 20, 3, false); /* once for each class */
    assert_int_equal(asked(several, "1*rbf(x)", "likelihood=bernoulli max-iterations=0", "inverting"), 3);
    esp_dataset_free(several);
    assert_int_equal(asked(classes, "1*rbf(x)", "likelihood=bernoulli max-iterations=0", "inverting"), 1);
    assert_int_equal(asked(numbers, "1*rbf(x)", "inducing=5 fix=*", "factoring"),
                     4); /* two, and once more at the end */
    esp_dataset_free(numbers);
    esp_dataset_free(classes);
    esp_dataset_free(equal);
}

/* The first prediction factors a matrix; one that was stopped can be made again. */
static void test_asking_to_predict(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 20, 0, false);
    esp_model *model = trained("gp", "1*rbf(x)", data, "fix=*", NULL);
    watch w = {.stage = "factoring", .stop = 1};
    const esp_run run = {.threads = 1, .progress = look, .user = &w};
    esp_predictions *p = NULL;
    esp_error err = {0};
    assert_int_equal(esp_predict(model, data, &run, &p, &err), ESP_ERR_CANCELLED);
    assert_null(p);
    assert_ok(esp_predict(model, data, &run, &p, &err), "again", &err);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------- telling */

/* The mean that a model tells is what it predicts far from all examples. */
static void test_mean(void **state)
{
    (void)state;
    static const char *const settings[] = {"mean=constant fix=*", "fix=*", "standardise=none fix=*",
                                           "mean=constant standardise=mean inducing=4 fix=*"};
    esp_dataset *data = labelled(3, 20, 0, false), *far = dataset_of("{\"x\": {\"p\": 1e6}}\n");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        esp_model *model = trained("gp", "1*rbf(x)", data, settings[i], NULL);
        esp_predictions *p = predicted(model, far, 1);
        esp_error err = {0};
        char *text = NULL;
        assert_ok(esp_model_summary(model, &text, &err), "summary", &err);
        const char *line = strstr(text, "\nmean\t");
        assert_non_null(line);
        assert_true(strtod(line + 6, NULL) == esp_predictions_score(p, 0));
        esp_text_free(text);
        esp_predictions_free(p);
        esp_model_free(model);
    }
    esp_dataset_free(data);
    esp_dataset_free(far);
}

#define TEST(name) cmocka_unit_test_teardown(name, no_blocks_left)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blanks_in_lists), TEST(test_settings),          TEST(test_settings_of_numbers),
        TEST(test_asking),          TEST(test_asking_to_predict), TEST(test_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
