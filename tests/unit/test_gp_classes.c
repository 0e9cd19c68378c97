/* Gaussian processes for more than two classes: everything from the Gram matrix by Newton's steps and elimination,
 * class by class; and how they are chosen by NLPD. */
#include "elimination.h"
#include "learn/gp/gp.h"
#include "learning.h"

enum { N = 24, NEW = 9, CLASSES = 4 };
static const char KERNEL[] = "1.5*rbf(x, gamma=0.3) + 0.5*norm(sst(tree, lambda=0.4))";

static double normal_cdf(double z) { return 0.5 * erfc(-z / sqrt(2.0)); }

/* One class against the rest: the mode f by f = (K^-1 + W)^-1 (W f + g), that is (I + K W) f = K (W f + g). Gives log
 * q; g and w are those at the mode. */
static double newton(const double *gram, const double *y, double *g, double *w)
{
    double f[N] = {0}, a[N], b[N * N], log_determinant = 0.0, value = 0.0;
    for (int step = 0; step <= 50; step++) { /* the last one only solves for the determinant at the mode */
        double right[N], full[N];
        for (size_t i = 0; i < N; i++) {
            g[i] = y[i] * exp(-0.5 * f[i] * f[i]) / sqrt(2.0 * 3.14159265358979323846) / normal_cdf(y[i] * f[i]);
            w[i] = g[i] * (g[i] + f[i]);
            right[i] = w[i] * f[i] + g[i];
        }
        for (size_t i = 0; i < N; i++) {
            full[i] = 0.0;
            for (size_t j = 0; j < N; j++) full[i] += gram[i * N + j] * right[j];
            for (size_t j = 0; j < N; j++) b[i * N + j] = (i == j) + gram[i * N + j] * w[j];
        }
        eliminate(b, full, N, &log_determinant);
        memcpy(f, full, sizeof f);
    }
    double k[N * N];
    memcpy(k, gram, sizeof k);
    memcpy(a, f, sizeof a);
    double unused;
    eliminate(k, a, N, &unused);
    for (size_t i = 0; i < N; i++) value += log(normal_cdf(y[i] * f[i])) - 0.5 * a[i] * f[i];
    return value - 0.5 * log_determinant;
}

/* The latent mean and variance at an example with kernel values k. */
static void latent(const double *gram, const double *k, double self, const double *g, const double *w, double *mean,
                   double *variance)
{
    double m[N * N], x[N], unused;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) m[i * N + j] = gram[i * N + j] + (i == j ? 1.0 / w[i] : 0.0);
    memcpy(x, k, sizeof x);
    eliminate(m, x, N, &unused);
    *mean = 0.0;
    *variance = self;
    for (size_t i = 0; i < N; i++) *mean += g[i] * k[i], *variance -= x[i] * k[i];
}

static void test_against_newton(void **state)
{
    (void)state;
    esp_dataset *data = labelled(6, N, CLASSES, false), *new = labelled(7, NEW, CLASSES, false);
    double *gram = gram_of(KERNEL, data, NULL, 1), *cross = gram_of(KERNEL, new, data, 1),
           *self = gram_of(KERNEL, new, NULL, 1), mean[CLASSES][NEW], p[CLASSES][NEW], variance[CLASSES][NEW],
           sum = 0.0;
    for (size_t c = 0; c < CLASSES; c++) {
        double y[N], g[N], w[N];
        for (size_t i = 0; i < N; i++) y[i] = esp_dataset_target(data, i)[0] == (char)('A' + (int)c) ? 1.0 : -1.0;
        sum += newton(gram, y, g, w);
        for (size_t i = 0; i < NEW; i++) {
            latent(gram, cross + i * N, self[i * NEW + i], g, w, &mean[c][i], &variance[c][i]);
            p[c][i] = normal_cdf(mean[c][i] / sqrt(1.0 + variance[c][i]));
        }
    }
    esp_model *model = trained("gp", KERNEL, data, "likelihood=bernoulli fix=*", NULL);
    assert_close(told(model, "log evidence"), sum, 1e-9, "the log evidence");
    assert_int_equal(esp_model_classes(model), CLASSES);
    for (int threads = 1; threads <= 2; threads++) {
        esp_predictions *is = predicted(model, new, threads);
        for (size_t i = 0; i < NEW; i++) {
            double exactly[CLASSES], all = 0.0;
            size_t best = 0;
            for (size_t c = 0; c < CLASSES; c++) { /* c and no other */
                exactly[c] = p[c][i];
                for (size_t k = 0; k < CLASSES; k++) exactly[c] *= k == c ? 1.0 : 1.0 - p[k][i];
                all += exactly[c];
                if (exactly[c] > exactly[best]) best = c;
            }
            for (size_t c = 0; c < CLASSES; c++) {
                assert_close(esp_predictions_column(is, i, c), mean[c][i], 1e-9, "a latent mean");
                assert_close(esp_predictions_probability(is, i, c), exactly[c] / all, 1e-9, "a probability");
            }
            assert_string_equal(esp_predictions_label(is, i), esp_model_class(model, best));
            assert_close(esp_predictions_score(is, i), mean[best][i], 1e-9, "the winner's mean");
            assert_close(esp_predictions_variance(is, i), variance[best][i], 1e-9, "the winner's variance");
            assert_close(esp_predictions_latent_variance(is, i), variance[best][i], 1e-9, "the same");
        }
        esp_predictions_free(is);
    }
    esp_model_free(model);
    free(gram), free(cross), free(self);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

/* The search raises the evidence; the file holds the model; folds predict as models do. */
static void test_learned(void **state)
{
    (void)state;
    static const char settings[] = "likelihood=bernoulli max-iterations=4";
    examples e = examples_of(8, 30, 3, false);
    esp_dataset *data = part_of(&e, NULL, 0, true), *new = labelled(9, 12, 3, true);
    esp_model *fixed = trained("gp", KERNEL, data, "likelihood=bernoulli fix=*", NULL);
    esp_model *model = trained("gp", KERNEL, data, settings, NULL), *again = NULL,
              *threaded = trained("gp", KERNEL, data, settings, &(esp_run){.threads = 3});
    assert_true(told(model, "log evidence") > told(fixed, "log evidence") + 0.01);
    /* The model is that of the hyperparameters it tells. */
    esp_model *there = trained("gp", esp_model_kernel(model), data, "likelihood=bernoulli fix=*", NULL);
    assert_close(told(there, "log evidence"), told(model, "log evidence"), 1e-12, "the evidence there");
    for (size_t i = 0; i < 3 * model->support->rows; i++) {
        assert_close(there->coefficient[i], model->coefficient[i], 1e-9, "a coefficient");
        assert_close(there->gaussian->curvature[i], model->gaussian->curvature[i], 1e-9, "a curvature");
    }
    char *bytes = NULL, *others = NULL;
    size_t size = 0, other_size = 0;
    esp_error err = {0};
    assert_ok(esp_model_bytes(model, &bytes, &size, &err), "bytes", &err);
    assert_ok(esp_model_bytes(threaded, &others, &other_size, &err), "bytes", &err);
    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, others, size);
    assert_int_equal(bytes[8], 5);
    assert_ok(esp_model_parse(bytes, size, "file", &again, &err), "parse", &err);
    esp_predictions *p = predicted(model, new, 1), *q = predicted(again, new, 2);
    assert_near_predictions(p, q, 0.0);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_text_free(bytes);
    esp_text_free(others);
    esp_model_free(again);
    esp_model_free(there);
    esp_model_free(fixed);
    esp_model_free(threaded);
    esp_model_free(model);
    examples_free(&e);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

/* Cross-validation predicts a fold as a model does that was trained on the others. */
static void test_folds(void **state)
{
    (void)state;
    static const char settings[] = "likelihood=bernoulli max-iterations=2";
    examples e = examples_of(8, 30, 3, false);
    uint32_t fold[30];
    esp_error err = {0};
    esp_dataset *data = part_of(&e, NULL, 0, true);
    assert_ok(esp_folds("svm", data, 3, 5, fold, &err), "folds", &err); /* those of classes */
    esp_predictions *cv = validated("gp", KERNEL, data, settings, 3, 5);
    for (size_t f = 0; f < 3; f++) {
        esp_dataset *in = part_of(&e, fold, f, true), *out = part_of(&e, fold, f, false);
        esp_model *model = trained("gp", KERNEL, out, settings, NULL);
        esp_predictions *p = predicted(model, in, 1);
        for (size_t i = 0, k = 0; i < e.count; i++) {
            if (fold[i] != f) continue;
            assert_string_equal(esp_predictions_label(p, k), esp_predictions_label(cv, i));
            for (size_t c = 0; c < 3; c++) {
                assert_close(esp_predictions_column(p, k, c), esp_predictions_column(cv, i, c), 1e-8, "a mean");
                assert_close(esp_predictions_probability(p, k, c), esp_predictions_probability(cv, i, c), 1e-8,
                             "a chance");
            }
            k++;
        }
        esp_predictions_free(p);
        esp_model_free(model);
        esp_dataset_free(in);
        esp_dataset_free(out);
    }
    esp_predictions_free(cv);
    esp_dataset_free(data);
    examples_free(&e);
}

/* ----------------------------------------------------------------- by NLPD */

static double *tuned(const char *settings, const esp_dataset *data, const char *metric, size_t *best)
{
    static const esp_grid grid[] = {{"gamma", "0.01,0.3,20"}};
    options o;
    esp_tuning *t = NULL;
    esp_error err = {0};
    esp_kernel *kernel = kernel_of(KERNEL);
    options_of(&o, settings);
    assert_ok(esp_tune("gp", kernel, data, o.setting, o.count, grid, 1, metric, 3, 5, NULL, &t, &err), settings, &err);
    assert_int_equal(esp_tuning_count(t), 3);
    double *score = malloc(3 * sizeof *score);
    for (size_t i = 0; i < 3; i++) score[i] = esp_tuning_score(t, i);
    *best = esp_tuning_best(t);
    esp_tuning_free(t);
    esp_kernel_free(kernel);
    return score;
}

/* The scores of a grid are the metrics of cross-validations with the same folds. */
static void test_tune_by_nlpd(void **state)
{
    (void)state;
    static const char *const kernels[] = {"1.5*rbf(x, gamma=0.01) + 0.5*norm(sst(tree, lambda=0.4))", KERNEL,
                                          "1.5*rbf(x, gamma=20) + 0.5*norm(sst(tree, lambda=0.4))"};
    for (size_t classes = 0; classes <= 3; classes += classes == 0 ? 2 : 1) {
        esp_dataset *data = labelled(8, 30, classes, false);
        const char *settings = classes == 0 ? "fix=* noise=0.2" : "fix=* likelihood=bernoulli";
        size_t best, best_plain, least = 0;
        double *score = tuned(settings, data, "nlpd", &best), *plain = tuned(settings, data, NULL, &best_plain),
               nlpd[3];
        for (size_t i = 0; i < 3; i++) {
            esp_predictions *p = validated("gp", kernels[i], data, settings, 3, 5);
            esp_metrics *m = NULL;
            esp_error err = {0};
            assert_ok(esp_metrics_new(p, data, &m, &err), "metrics", &err);
            nlpd[i] = esp_metrics_value(m, "nlpd");
            assert_close(score[i], -nlpd[i], 1e-12, "minus the NLPD");
            assert_close(plain[i], classes == 0 ? -esp_metrics_value(m, "rmse") : esp_metrics_value(m, "accuracy"),
                         1e-12, "the default");
            if (nlpd[i] < nlpd[least]) least = i;
            esp_metrics_free(m);
            esp_predictions_free(p);
        }
        assert_int_equal(best, least);
        free(score), free(plain);
        esp_dataset_free(data);
    }
}

static void refused_by(const char *learner, const char *settings, const esp_dataset *data, const char *metric,
                       const char *clause)
{
    const esp_grid grid = {"gamma", "0.1,1"};
    options o;
    esp_tuning *t = (esp_tuning *)(uintptr_t)1;
    esp_error err = {0};
    esp_kernel *kernel = kernel_of(KERNEL);
    options_of(&o, settings);
    assert_refused(esp_tune(learner, kernel, data, o.setting, o.count, &grid, 1, metric, 2, 1, NULL, &t, &err), &err,
                   clause);
    assert_null(t);
    esp_kernel_free(kernel);
}

static void test_refusals(void **state)
{
    (void)state;
    esp_dataset *numbers = labelled(8, 12, 0, false), *classes = labelled(8, 12, 3, false);
    refused_by("svm", "C=1", classes, "nlpd", "nlpd needs predictive densities, which gp has and svm has not");
    refused_by("svm", "C=1", classes, "rmse", "rmse is for numbers, but the targets are classes");
    refused_by("gp", "noise=0.1", numbers, "accuracy", "accuracy is for classes, but the targets are numbers");
    refused_by("gp", "noise=0.1", numbers, "f1", "there is no metric 'f1'; allowed are accuracy, rmse and nlpd");
    /* Three matrices to learn, and then one for each class. */
    esp_model *model;
    esp_error err = {0};
    assert_int_equal(
        train("gp", KERNEL, classes, "likelihood=bernoulli", &(esp_run){.memory = 3 * 12 * 12 * 8 - 1}, &model, &err),
        ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "a Gaussian process of 12 examples takes 3.5 kB"));
    model = trained("gp", KERNEL, classes, "likelihood=bernoulli fix=*", &(esp_run){.memory = 3 * 12 * 12 * 8});
    esp_predictions *p = NULL;
    assert_int_equal(esp_predict(model, classes, &(esp_run){.memory = 3 * 12 * 12 * 8 - 1}, &p, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "a matrix for each of 3 classes"));
    assert_null(p);
    esp_model_free(model);
    esp_dataset_free(numbers);
    esp_dataset_free(classes);
}

/* A class of one example is learned and, where a fold has none of it to learn from, not predicted. */
static void test_rare_class(void **state)
{
    (void)state;
    examples e = examples_of(8, 25, 3, false);
    for (size_t i = 0; i < e.count; i++)
        if (e.y[i][1] == 'C') strcpy(e.y[i], "\"A\"");
    strcpy(e.y[4], "\"Z\"");
    esp_dataset *data = part_of(&e, NULL, 0, true);
    esp_model *model = trained("gp", KERNEL, data, "likelihood=bernoulli", NULL);
    assert_int_equal(esp_model_classes(model), 3);
    esp_predictions *p = predicted(model, data, 1);
    for (size_t i = 0; i < e.count; i++) {
        double sum = 0.0;
        for (size_t c = 0; c < 3; c++) sum += esp_predictions_probability(p, i, c);
        assert_close(sum, 1.0, 1e-14, "all probabilities");
    }
    esp_predictions_free(p);
    p = validated("gp", KERNEL, data, "likelihood=bernoulli fix=*", 5, 3);
    for (size_t c = 0; c < 3; c++) assert_true(esp_predictions_probability(p, 4, c) > 0.0);
    assert_true(esp_predictions_probability(p, 4, 2) < 0.3);
    esp_predictions_free(p);
    esp_model_free(model);
    esp_dataset_free(data);
    examples_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_newton), cmocka_unit_test(test_learned),
                                       cmocka_unit_test(test_folds),          cmocka_unit_test(test_tune_by_nlpd),
                                       cmocka_unit_test(test_refusals),       cmocka_unit_test(test_rare_class)};
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
