/* Learning of hyperparameters: what settings move, fix, tie and believe; bounds, restarts, interruption; what models
 * and cross-validation make of it; and input that cannot be learned from. */
#include "base/random.h"
#include "files.h"
#include "learn/gp/gp.h"
#include "learning.h"

/* --------------------------------------------------------------- patterns */

static bool matches(const char *pattern, const char *name)
{
    return espi_pattern_match(pattern, strlen(pattern), name);
}

static void test_patterns(void **state)
{
    (void)state;
    assert_true(matches("lambda", "lambda"));
    assert_false(matches("lambda", "lambda.NP"));
    assert_false(matches("lambda.NP", "lambda"));
    assert_true(matches("lambda.*", "lambda.NP"));
    assert_false(matches("lambda.*", "lambda"));
    assert_true(matches("*", ""));
    assert_true(matches("*a*b*", "xxaxxbxxab"));
    assert_false(matches("*a*b", "xxaxxbxxa"));
    assert_true(matches("?ambda.N?", "lambda.NP"));
    assert_false(matches("?", ""));
    assert_true(matches("lambda.\\*", "lambda.*"));
    assert_false(matches("lambda.\\*", "lambda.x"));
    assert_true(matches("a\\,b", "a,b"));
    assert_true(matches("a\\", "a\\"));
    assert_true(matches("a\\\\", "a\\"));
    assert_false(matches("", "a"));
    assert_true(matches("", ""));
}

static void test_pieces(void **state)
{
    (void)state;
    const char *text = "a\\,b,,c", *piece;
    const char *const expected[] = {"a\\,b", "", "c"};
    size_t size, count = 0;
    for (; espi_pattern_next(&text, ',', &piece, &size); count++) {
        assert_true(count < 3);
        assert_int_equal(size, strlen(expected[count]));
        assert_memory_equal(piece, expected[count], size);
    }
    assert_int_equal(count, 3);
    assert_false(espi_pattern_next(&text, ',', &piece, &size));
}

/* ------------------------------------------------------------------ space */

/* The variables of a space as "name=start,..." with * behind those that have a prior. */
static char *space_text(const char *kernel, const char *settings, esp_error *err)
{
    esp_dataset *data = dataset_of("{\"y\": 1, \"tree\": \"(S (NP (N a)) (VP b))\", \"x\": {\"p\": 1}}\n"
                                   "{\"y\": 2, \"tree\": \"(S (NP (N a)) (SQ b))\", \"x\": {\"q\": 1}}\n");
    espi_settings *s = settings_of("gp", settings);
    espi_gp_space space;
    esp_kernel *k = kernel_of(kernel);
    char *text = NULL;
    if (espi_gp_space_new(&space, (const espi_gp_settings *)(const void *)s, k, data, true, 1.0, NULL, err) == ESP_OK) {
        text = calloc(1, 4000);
        assert_non_null(text);
        for (size_t v = 0; v < space.variables; v++)
            sprintf(text + strlen(text), "%s%s=%g%s", v > 0 ? "," : "", space.moving[v].name, space.moving[v].start,
                    space.moving[v].deviation > 0 ? "*" : "");
        espi_gp_space_free(&space);
    }
    espi_settings_free(s);
    esp_kernel_free(k);
    esp_dataset_free(data);
    return text;
}

static void assert_space(const char *kernel, const char *settings, const char *expected)
{
    esp_error err = {0};
    char *text = space_text(kernel, settings, &err);
    if (text == NULL) fail_msg("%s: %s", settings, err.message);
    if (strcmp(text, expected) != 0) fail_msg("%s, %s: '%s' instead of '%s'", kernel, settings, text, expected);
    free(text);
}

static void assert_no_space(const char *kernel, const char *settings, const char *clause)
{
    esp_error err = {0};
    char *text = space_text(kernel, settings, &err);
    assert_null(text);
    assert_refused(ESP_ERR_PARAM, &err, clause);
}

static void test_space(void **state)
{
    (void)state;
    const char *sum = "0.5*linear(x) + 2*linear(x)";
    assert_space(sum, "", "weight.1=0.5,weight.2=2,noise=0.1");
    assert_space(sum, "noise=0", "weight.1=0.5,weight.2=2");
    assert_space(sum, "fix=noise", "weight.1=0.5,weight.2=2");
    assert_space(sum, "fix=*", "");
    assert_space(sum, "fix=noise,weight.2", "weight.1=0.5");
    assert_space(sum, "tie=weight.*", "weight.1=0.5,noise=0.1");
    assert_space(sum, "tie=weight.* fix=weight.1", "weight.2=2,noise=0.1");
    assert_space(sum, "tie=weight.*,*", "weight.1=0.5,noise=0.1");
    assert_space(sum, "prior=weight.2=1,0.5;noise=0.01,2", "weight.1=0.5,weight.2=2*,noise=0.1*");
    const char *labels = "sasst(tree, lambda.S=0.3, lambda.SQ=0.2, alpha.S=1, lambda.NP=0.1)";
    assert_space(labels, "fix=lambda,alpha,noise", "lambda.NP=0.1,lambda.S=0.3,lambda.SQ=0.2,alpha.S=1");
    assert_space(labels, "fix=lambda,alpha,noise group=SQ,S", "lambda.NP=0.1,lambda.SQ=0.2,alpha.S=1");
    assert_space(labels, "fix=lambda,alpha,noise group=S,SQ tie=lambda.*", "lambda.NP=0.1,lambda.S=0.3,alpha.S=1");
    assert_space(labels, "fix=lambda,alpha,noise tie=*.S,lambda.*", "lambda.NP=0.1,lambda.S=0.3");
    assert_space("sasst(tree)", "fix=lambda,alpha,noise tie=lambda.*,alpha.*", "lambda.N=0.4,alpha.N=1");
    assert_no_space(labels, "group=S,VP", "group names the unknown label 'VP'; did you mean 'NP'?");
    assert_no_space(sum, "fix=lambda",
                    "fix names 'lambda', which is no hyperparameter; there are weight.1, weight.2, noise");
    assert_no_space(sum, "fix=noise,", "fix names ''");
    assert_no_space(sum, "tie=gamma.*", "tie names 'gamma.*'");
    assert_no_space(sum, "group=S,SQ", "group names 'S', but the kernel has no values by label");
    assert_no_space(sum, "prior=lambda=1,1", "prior names 'lambda'");
    assert_no_space(sum, "prior=noise=1", "prior has 'noise=1'; allowed is name=median,sd;...");
    assert_no_space(sum, "prior=noise=0,1", "numbers > 0");
    assert_no_space(sum, "prior=noise=1,1 fix=noise", "prior names 'noise', which is fixed");
}

/* ----------------------------------------------------------------- search */

static bool tells(const esp_model *model, const char *line)
{
    char *summary = NULL;
    esp_error err = {0};
    assert_ok(esp_model_summary(model, &summary, &err), "summary", &err);
    const bool there = strstr(summary, line) != NULL;
    esp_text_free(summary);
    return there;
}

/* No step of any variable from where it ended is better. */
static void test_is_a_maximum(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 60, 0, false);
    const char *shape = "%.17g*rbf(x, gamma=0.3) + %.17g*norm(sst(tree, lambda=0.4))";
    char kernel[200], settings[100];
    esp_model *model = trained("gp", "1*rbf(x, gamma=0.3) + 1*norm(sst(tree, lambda=0.4))", data,
                               "tolerance=1e-7 fix=gamma,lambda,alpha", NULL);
    const double best = told(model, "log likelihood"), w = hyper(model, "weight.1"), v = hyper(model, "weight.2"),
                 noise = hyper(model, "noise");
    assert_true(tells(model, "end\tconverged\n"));
    esp_model_free(model);
    for (int k = 0; k < 7; k++) {
        const double step = k % 2 ? 1.02 : 1 / 1.02;
        snprintf(kernel, sizeof kernel, shape, k / 2 == 0 ? w * step : w, k / 2 == 1 ? v * step : v);
        snprintf(settings, sizeof settings, "fix=* noise=%.17g", k / 2 == 2 ? noise * step : noise);
        model = trained("gp", kernel, data, settings, NULL);
        if (k < 6) assert_true(told(model, "log likelihood") < best);
        else assert_close(told(model, "log likelihood"), best, 1e-12, "the best again");
        esp_model_free(model);
    }
    esp_dataset_free(data);
}

/* Targets of exactly this scale, so that the weight wants to leave its range. */
static void test_bounds(void **state)
{
    (void)state;
    char lines[4000] = "";
    for (int i = 0; i < 12; i++)
        sprintf(lines + strlen(lines), "{\"y\": %g, \"x\": {\"a\": %d}}\n", i % 2 ? 1e9 : -1e9, i);
    esp_dataset *data = dataset_of(lines);
    esp_model *model = trained("gp", "1*rbf(x, gamma=5)", data, "standardise=none noise=1 fix=noise,gamma", NULL);
    assert_true(hyper(model, "weight") == 1e5); /* the end of its range */
    assert_true(tells(model, "at a bound\tweight 100000\n"));
    assert_true(tells(model, "end\tconverged\n"));
    esp_model_free(model);
    model = trained("gp", "1*rbf(x, gamma=5)", data, "standardise=none noise=1 fix=gamma", NULL);
    assert_true(hyper(model, "weight") == 1e5 || hyper(model, "noise") > 1e17);
    esp_model_free(model);
    esp_dataset_free(data);
}

static void test_priors_pull(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 30, 0, false);
    const char *kernel = "1*rbf(x, gamma=0.3)";
    esp_model *free_one = trained("gp", kernel, data, "fix=gamma", NULL),
              *pulled = trained("gp", kernel, data, "fix=gamma prior=noise=7,0.001", NULL),
              *weak = trained("gp", kernel, data, "fix=gamma prior=noise=7,100", NULL);
    assert_true(fabs(log(hyper(free_one, "noise") / 7.0)) > 0.5);
    assert_close(hyper(pulled, "noise"), 7.0, 0.01, "the noise under a strong prior");
    assert_close(hyper(weak, "noise"), hyper(free_one, "noise"), 0.05, "the noise under a weak prior");
    esp_model_free(free_one);
    esp_model_free(pulled);
    esp_model_free(weak);
    esp_dataset_free(data);
}

/* The first start is a poor one; more of them never do worse, and the same seed does the same. */
static void test_restarts(void **state)
{
    (void)state;
    esp_dataset *data = labelled(5, 40, 0, false);
    const char *kernel = "1000*rbf(x, gamma=0.3) + 0.0001*norm(sst(tree, lambda=0.4))";
    esp_model *one = trained("gp", kernel, data, "max-iterations=1", NULL),
              *more = trained("gp", kernel, data, "max-iterations=1 restarts=8", NULL),
              *again = trained("gp", kernel, data, "max-iterations=1 restarts=8", &(esp_run){.threads = 3}),
              *other = trained("gp", kernel, data, "max-iterations=1 restarts=8 seed=2", NULL);
    assert_true(told(more, "log likelihood") > told(one, "log likelihood"));
    assert_true(told(more, "log likelihood") == told(again, "log likelihood"));
    assert_true(told(more, "log likelihood") != told(other, "log likelihood"));
    assert_true(told(more, "runs") == 9.0);
    assert_string_equal(esp_model_kernel(more), esp_model_kernel(again));
    esp_model_free(one);
    esp_model_free(more);
    esp_model_free(again);
    esp_model_free(other);
    esp_dataset_free(data);
}

/* Targets far from 0 in other units: predictions follow, and the likelihood is that of the targets as they are. */
static void test_standardising(void **state)
{
    (void)state;
    char plain[8000] = "", scaled[8000] = "";
    ref_random random = {11};
    for (int i = 0; i < 20; i++) {
        const double x = ref_random_between(&random, -2, 2), y = sin(x) + ref_random_between(&random, -0.2, 0.2);
        sprintf(plain + strlen(plain), "{\"y\": %.17g, \"x\": {\"a\": %.17g}}\n", y, x);
        sprintf(scaled + strlen(scaled), "{\"y\": %.17g, \"x\": {\"a\": %.17g}}\n", 1e6 + 1000 * y, x);
    }
    esp_dataset *a = dataset_of(plain), *b = dataset_of(scaled);
    esp_model *m = trained("gp", "1*rbf(x, gamma=0.5)", a, "fix=gamma", NULL),
              *n = trained("gp", "1*rbf(x, gamma=0.5)", b, "fix=gamma", NULL);
    esp_predictions *p = predicted(m, a, 1), *q = predicted(n, b, 1);
    assert_close(told(m, "log likelihood"), told(n, "log likelihood") + 20 * log(1000.0), 1e-6, "the log likelihood");
    for (size_t i = 0; i < 20; i++) {
        assert_close(1e6 + 1000 * esp_predictions_score(p, i), esp_predictions_score(q, i), 1e-8, "a mean");
        assert_close(1e6 * esp_predictions_variance(p, i), esp_predictions_variance(q, i), 1e-5, "a variance");
    }
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(m);
    esp_model_free(n);
    esp_dataset_free(a);
    esp_dataset_free(b);
}

/* ----------------------------------------------------------- interruption */

typedef struct patience {
    long left;
    size_t lines;
} patience;

static int lose_patience(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    patience *p = user;
    return p->left-- <= 0;
}

static void count_lines(void *user, const char *line)
{
    patience *p = user;
    assert_non_null(strstr(line, "run 1, iteration "));
    p->lines++;
}

/* Whenever it is stopped, there is a model from the first point on, and it predicts. */
static void test_interrupted(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 40, 0, false), *classes = labelled(3, 40, 2, false);
    for (int bernoulli = 0; bernoulli < 2; bernoulli++) {
        size_t without = 0, with = 0;
        for (long left = 0;; left += 7) {
            patience p = {.left = left};
            esp_model *model;
            esp_error err = {0};
            const esp_run run = {.threads = 1, .progress = lose_patience, .user = &p, .message = count_lines};
            const esp_status status = train("gp", "1*rbf(x, gamma=0.3) + 1*linear(x)", bernoulli ? classes : data,
                                            bernoulli ? "likelihood=bernoulli" : "", &run, &model, &err);
            if (status == ESP_ERR_CANCELLED) {
                without++;
                continue;
            }
            assert_ok(status, "train", &err);
            const bool stopped = tells(model, "end\tinterrupted\n");
            assert_true(p.lines > 0 || stopped);
            esp_predictions_free(predicted(model, bernoulli ? classes : data, 1));
            esp_model_free(model);
            if (!stopped) break;
            with++;
        }
        assert_true(without > 0);
        assert_true(with > 2);
    }
    esp_dataset_free(data);
    esp_dataset_free(classes);
}

static void test_cross_validation_is_cancelled(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 40, 0, false);
    patience p = {.left = 60};
    esp_predictions *out;
    esp_error err = {0};
    const esp_run run = {.threads = 1, .progress = lose_patience, .user = &p};
    assert_int_equal(validate("gp", "1*rbf(x, gamma=0.3)", data, "", 4, 1, &run, &out, &err), ESP_ERR_CANCELLED);
    esp_dataset_free(data);
}

/* ---------------------------------------------------- models, folds, threads */

/* Whatever the number of threads, in training and in prediction, and whether the model comes from a file or not. */
static void test_threads_and_files(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=0.3)";
    for (int bernoulli = 0; bernoulli < 2; bernoulli++) {
        esp_dataset *data = labelled(3, 70, bernoulli ? 2 : 0, false), *new = labelled(5, 50, bernoulli ? 2 : 0, true);
        const char *settings = bernoulli ? "likelihood=bernoulli" : "mean=constant";
        esp_model *one = trained("gp", kernel, data, settings, &(esp_run){.threads = 1});
        esp_predictions *p = predicted(one, new, 1);
        for (int threads = 2; threads < 6; threads += 3) {
            esp_model *several = trained("gp", kernel, data, settings, &(esp_run){.threads = threads});
            esp_predictions *q = predicted(several, new, threads);
            assert_string_equal(esp_model_kernel(one), esp_model_kernel(several));
            assert_near_predictions(p, q, 0.0);
            esp_predictions_free(q);
            esp_model_free(several);
        }
        const blob bytes = bytes_of(one);
        esp_model *read = model_of_bytes(bytes);
        free(bytes.bytes);
        esp_predictions *q = predicted(read, new, 2);
        assert_near_predictions(p, q, 0.0);
        assert_true(hyper(one, "weight.1") == hyper(read, "weight.1"));
        esp_predictions_free(q);
        esp_predictions_free(p);
        esp_model_free(read);
        esp_model_free(one);
        esp_dataset_free(data);
        esp_dataset_free(new);
    }
}

/* Each fold is what training and predicting by hand gives. */
static void test_folds(void **state)
{
    (void)state;
    enum { N = 42, FOLDS = 3 };
    const char *kernel = "1*norm(sst(lambda=0.4)) + 1*rbf(x, gamma=0.3)";
    for (int bernoulli = 0; bernoulli < 2; bernoulli++) {
        const char *settings = bernoulli ? "likelihood=bernoulli" : "noise=0.3";
        examples e = examples_of(8, N, bernoulli ? 2 : 0, false);
        esp_dataset *data = part_of(&e, NULL, 0, true);
        esp_predictions *cv = validated("gp", kernel, data, settings, FOLDS, 5);
        espi_settings *own = settings_of("gp", settings);
        espi_targets targets = learned_targets(own, data);
        uint32_t fold[N];
        esp_error err = {0};
        espi_settings_free(own);
        assert_ok(espi_folds_make(&targets, FOLDS, 5, fold, &err), "folds", &err);
        for (size_t f = 0; f < FOLDS; f++) {
            esp_dataset *train_part = part_of(&e, fold, f, false), *test_part = part_of(&e, fold, f, true);
            esp_model *model = trained("gp", kernel, train_part, settings, NULL);
            esp_predictions *p = predicted(model, test_part, 1);
            for (size_t i = 0, k = 0; i < N; i++) {
                if (fold[i] != f) continue;
                assert_close(esp_predictions_score(cv, i), esp_predictions_score(p, k), 1e-9, "a score");
                assert_close(esp_predictions_variance(cv, i), esp_predictions_variance(p, k), 1e-9, "a variance");
                k++;
            }
            esp_predictions_free(p);
            esp_model_free(model);
            esp_dataset_free(train_part);
            esp_dataset_free(test_part);
        }
        esp_metrics *metrics = NULL;
        double nlpd = 0.0;
        for (size_t i = 0; i < N; i++) {
            const double y = strtod(esp_dataset_target(data, i), NULL), m = esp_predictions_score(cv, i),
                         v = esp_predictions_variance(cv, i);
            nlpd -= bernoulli ? log(esp_predictions_probability(cv, i, y > 0)) / N
                              : (-0.5 * (y - m) * (y - m) / v - 0.5 * log(2 * 3.14159265358979323846 * v)) / N;
        }
        assert_ok(esp_metrics_new(cv, data, &metrics, &err), "metrics", &err);
        assert_close(esp_metrics_value(metrics, "nlpd"), nlpd, 1e-10, "nlpd");
        esp_metrics_free(metrics);
        espi_targets_free(&targets);
        esp_predictions_free(cv);
        esp_dataset_free(data);
        examples_free(&e);
    }
}

/* -------------------------------------------------------------- bad input */

static void assert_fails(const char *lines, const char *kernel, const char *settings, esp_status expected,
                         const char *clause)
{
    esp_dataset *data = dataset_of(lines);
    esp_model *model;
    esp_error err = {0};
    const esp_status status = train("gp", kernel, data, settings, NULL, &model, &err);
    if (status != expected || strstr(err.message, clause) == NULL)
        fail_msg("status %d, '%s' instead of '%s'", (int)status, err.message, clause);
    esp_dataset_free(data);
}

static void test_bad_input(void **state)
{
    (void)state;
    const char *twice = "{\"y\": 1, \"x\": {\"a\": 1}}\n{\"y\": 5, \"x\": {\"a\": 2}}\n{\"y\": 2, \"x\": {\"a\": 1}}\n";
    assert_fails(twice, "rbf(x)", "noise=0", ESP_ERR_RANGE,
                 "examples 1 and 3 are the same to the kernel but have different targets, and noise is 0");
    assert_fails("{\"y\": \"a\", \"x\": {\"a\": 1}}\n", "rbf(x)", "", ESP_ERR_PARSE, "a regression needs numbers");
    assert_fails("{\"y\": \"a\", \"x\": {\"a\": 1}}\n{\"y\": \"a\", \"x\": {}}\n", "rbf(x)", "likelihood=bernoulli",
                 ESP_ERR_PARSE, "all 2 examples are of class 'a'; a classifier needs two classes at least");
    assert_fails("{\"y\": 1e308, \"x\": {}}\n{\"y\": -1e308, \"x\": {}}\n", "rbf(x)", "", ESP_ERR_RANGE, "too large");
    assert_fails(twice, "fseq(words)", "", ESP_ERR_PARAM, "selects patterns");
    assert_fails(twice, "rbf(z)", "", ESP_ERR_PARAM, "there is no column 'z'");
    assert_fails(twice, "rbf(x)", "likelihood=bernoulli mean=constant", ESP_ERR_PARAM, "mean zero");
    assert_fails(twice, "1*rbf(x)", "fix=lambda", ESP_ERR_PARAM, "fix names 'lambda'");
}

/* Matrices that no kernel should have: what is wrong with them is told. */
static void test_not_positive_definite(void **state)
{
    (void)state;
    double a[] = {1, 2, 2, 1}, b[] = {4, 1, 1, 1, 2, 2, 1, 2, 1.5}, zero[] = {0}, target[] = {1, 1, 1}, diagonal[3],
           jitter;
    esp_error err = {0};
    espi_factor factor;
    espi_gp_problem p = {.target = target, .count = 2, .matrix = {a}, .vector = diagonal};
    assert_int_equal(espi_gp_factor(&p, 0.5, NULL, &jitter, &factor, &err), ESP_ERR_RANGE);
    assert_string_equal(err.message,
                        "the kernel matrix is not positive definite, even with 0.0001 added to its diagonal: the "
                        "pivot of example 2 is -1.17; examples 1 and 2 are the same to the kernel; raise noise");
    espi_factor_free(&factor);
    p.matrix[0] = b;
    p.count = 3;
    assert_int_equal(espi_gp_factor(&p, 0.0, NULL, &jitter, &factor, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "the pivot of example 3 is -0.5"));
    espi_factor_free(&factor);
    p.matrix[0] = zero;
    p.count = 1;
    assert_int_equal(espi_gp_factor(&p, 0.0, NULL, &jitter, &factor, &err), ESP_ERR_RANGE);
    assert_non_null(strstr(err.message, "the pivot of example 1 is 0; raise noise"));
    espi_factor_free(&factor);
}

/* Equal examples with equal targets only need jitter, which is told; they and others predict. */
static void test_jitter(void **state)
{
    (void)state;
    esp_dataset *data =
        dataset_of("{\"y\": 1, \"x\": {\"a\": 1}}\n{\"y\": 5, \"x\": {\"a\": 2}}\n{\"y\": 1, \"x\": {\"a\": 1}}\n");
    esp_model *model = trained("gp", "rbf(x)", data, "noise=0 fix=*", NULL);
    assert_close(told(model, "jitter"), 1e-10, 1e-6, "the jitter");
    esp_predictions *p = predicted(model, data, 1);
    for (size_t i = 0; i < 3; i++) assert_close(esp_predictions_score(p, i), i == 1 ? 5.0 : 1.0, 1e-6, "a mean");
    esp_predictions_free(p);
    esp_model_free(model);
    esp_dataset_free(data);
}

/* One example, and targets that are all the same: they predict it, and nothing moves. */
static void test_nothing_to_learn(void **state)
{
    (void)state;
    static const char *const lines[] = {"{\"y\": 7, \"x\": {\"a\": 1}}\n",
                                        "{\"y\": 7, \"x\": {\"a\": 1}}\n{\"y\": 7, \"x\": {\"a\": 2}}\n"};
    for (size_t k = 0; k < 2; k++) {
        esp_dataset *data = dataset_of(lines[k]);
        esp_model *model = trained("gp", "3*rbf(x)", data, "noise=0.25 restarts=2", NULL);
        assert_true(tells(model, "end\tnothing to learn: all targets are the same\n"));
        assert_true(hyper(model, "weight") == 3.0);
        assert_true(hyper(model, "noise") == 0.25);
        esp_predictions *p = predicted(model, data, 1);
        assert_true(esp_predictions_score(p, 0) == 7.0);
        assert_true(esp_predictions_variance(p, 0) > 0.25);
        esp_predictions_free(p);
        esp_model_free(model);
        model = trained("gp", "3*rbf(x)", data, "standardise=none fix=gamma", NULL); /* this can be learned */
        assert_true(hyper(model, "weight") != 3.0);
        esp_model_free(model);
        esp_dataset_free(data);
    }
}

static void test_memory_limit(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 60, 0, false);
    esp_model *model;
    esp_error err = {0};
    assert_int_equal(train("gp", "rbf(x)", data, "solver=exact", &(esp_run){.memory = 60 * 60 * 8 - 1}, &model, &err),
                     ESP_ERR_MEMORY);
    assert_string_equal(err.message, "a Gaussian process of 60 examples takes 28.8 kB; the limit is 28.8 kB; solver "
                                     "iterative and inducing take less");
    assert_ok(train("gp", "rbf(x)", data, "fix=*", &(esp_run){.memory = 60 * 60 * 8}, &model, &err), "train", &err);
    esp_predictions *p = NULL;
    assert_int_equal(esp_predict(model, data, &(esp_run){.memory = 1000}, &p, &err), ESP_ERR_MEMORY);
    assert_null(p);
    esp_model_free(model);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_is_a_maximum),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_priors_pull),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_standardising),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_cross_validation_is_cancelled),
        cmocka_unit_test(test_threads_and_files),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_not_positive_definite),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_nothing_to_learn),
        cmocka_unit_test(test_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
