/* The joint posterior of Gaussian processes: covariances against elimination, draws against means and covariances, and
 * likelihoods at given values. */
#include "elimination.h"
#include "learn/gp/gp.h"
#include "learning.h"

enum { N = 20, NEW = 6, DRAWS = 20000 };
static const char KERNEL[] = "1.5*rbf(x, gamma=0.3) + 0.5*norm(sst(tree, lambda=0.4))";

static const struct {
    size_t classes;
    const char *settings;
} kinds[] = {{0, "noise=0.2 fix=*"},
             {0, "noise=0.3 fix=* inducing=7"},
             {2, "likelihood=bernoulli fix=*"},
             {3, "likelihood=bernoulli fix=*"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct posterior_case {
    esp_dataset *data, *new;
    esp_model *model;
    esp_predictions *p;
    size_t columns;
    double *covariance; /* of the functions */
} posterior_case;

static void begin(posterior_case *c, size_t kind)
{
    const size_t classes = kinds[kind].classes;
    esp_error err = {0};
    *c = (posterior_case){.data = labelled(6, N, classes, false), .new = labelled(7, NEW, classes, false)};
    c->model = trained("gp", KERNEL, c->data, kinds[kind].settings, NULL);
    c->p = predicted(c->model, c->new, 1);
    c->columns = esp_predictions_columns(c->p);
    c->covariance = malloc(c->columns * NEW * NEW * sizeof *c->covariance);
    assert_ok(esp_predict_covariance(c->model, c->new, true, NULL, c->covariance, &err), "covariance", &err);
}

static void end(posterior_case *c)
{
    free(c->covariance);
    esp_predictions_free(c->p);
    esp_model_free(c->model);
    esp_dataset_free(c->data);
    esp_dataset_free(c->new);
}

static double *drawn(const esp_model *model, const esp_dataset *data, size_t draws, uint64_t seed, esp_draw what,
                     size_t width, int threads)
{
    esp_error err = {0};
    double *out = malloc(esp_dataset_count(data) * width * draws * sizeof *out);
    assert_non_null(out);
    assert_ok(esp_predict_samples(model, data, draws, seed, what, &(esp_run){.threads = threads}, out, &err), "samples",
              &err);
    return out;
}

/* K(X, X) - C (K + D)^-1 C' by elimination; the diagonal is the variance of every kind of model. */
static void test_covariances(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        posterior_case c;
        begin(&c, kind);
        esp_error err = {0};
        double with_noise[3 * NEW * NEW];
        assert_ok(esp_predict_covariance(c.model, c.new, false, &(esp_run){.threads = 2}, with_noise, &err), "noisy",
                  &err);
        for (size_t i = 0; i < NEW; i++)
            for (size_t j = 0; j < NEW; j++)
                for (size_t k = 0; k < c.columns; k++) {
                    const size_t at = (k * NEW + i) * NEW + j;
                    assert_true(c.covariance[at] == c.covariance[(k * NEW + j) * NEW + i]);
                    const double noise =
                        i == j ? esp_predictions_variance(c.p, i) - esp_predictions_latent_variance(c.p, i) : 0.0;
                    assert_close(with_noise[at] - c.covariance[at], noise, 1e-9, "the noise");
                    if (i == j && c.columns == 1)
                        assert_close(c.covariance[at], esp_predictions_latent_variance(c.p, i), 1e-9, "a variance");
                }
        if (strstr(kinds[kind].settings, "inducing") != NULL) {
            end(&c);
            continue;
        }
        double *gram = gram_of(KERNEL, c.data, NULL, 1), *cross = gram_of(KERNEL, c.new, c.data, 1),
               *self = gram_of(KERNEL, c.new, NULL, 1), unused;
        const espi_gaussian *g = c.model->gaussian;
        for (size_t k = 0; k < c.columns; k++)
            for (size_t j = 0; j < NEW; j++) {
                double *a = copy_of(gram, N * N), x[N];
                for (size_t i = 0; i < N; i++)
                    a[i * N + i] += g->curvature != NULL ? 1.0 / g->curvature[i * c.columns + k] : 0.2;
                memcpy(x, cross + j * N, sizeof x);
                eliminate(a, x, N, &unused);
                for (size_t i = 0; i < NEW; i++) {
                    double sum = self[i * NEW + j];
                    for (size_t m = 0; m < N; m++) sum -= cross[i * N + m] * x[m];
                    assert_close(c.covariance[(k * NEW + i) * NEW + j], g->scale * g->scale * sum, 1e-9,
                                 "a covariance");
                }
                free(a);
            }
        free(gram), free(cross), free(self);
        end(&c);
    }
}

/* Means within five standard errors, covariances of two numbers too. */
static void check_moments(const double *draw, const double *mean, const double *covariance, const char *what)
{
    double is[NEW];
    for (size_t i = 0; i < NEW; i++) {
        is[i] = 0.0;
        for (size_t s = 0; s < DRAWS; s++) is[i] += draw[i * DRAWS + s] / DRAWS;
        const double error = sqrt(covariance[i * NEW + i] / DRAWS);
        if (!(fabs(is[i] - mean[i]) < 5.0 * error))
            fail_msg("%s: the mean %zu is %g instead of %g", what, i, is[i], mean[i]);
    }
    for (size_t i = 0; i < NEW; i++)
        for (size_t j = 0; j <= i; j++) {
            const double v = covariance[i * NEW + i] * covariance[j * NEW + j], c = covariance[i * NEW + j];
            double sum = 0.0;
            for (size_t s = 0; s < DRAWS; s++)
                sum += (draw[i * DRAWS + s] - is[i]) * (draw[j * DRAWS + s] - is[j]) / DRAWS;
            if (!(fabs(sum - c) < 5.0 * sqrt((v + c * c) / DRAWS)))
                fail_msg("%s: the covariance of %zu and %zu is %g instead of %g", what, i, j, sum, c);
        }
}

static void test_draws(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        posterior_case c;
        begin(&c, kind);
        double *function = drawn(c.model, c.new, DRAWS, 3, ESP_DRAW_FUNCTION, c.columns, 1), mean[NEW];
        for (size_t k = 0; k < c.columns; k++) {
            double *own = malloc(NEW * DRAWS * sizeof *own);
            for (size_t i = 0; i < NEW; i++) {
                mean[i] = esp_predictions_column(c.p, i, k);
                memcpy(own + i * DRAWS, function + (i * c.columns + k) * DRAWS, DRAWS * sizeof *own);
            }
            check_moments(own, mean, c.covariance + k * NEW * NEW, kinds[kind].settings);
            free(own);
        }
        if (kinds[kind].classes == 0) {
            double *target = drawn(c.model, c.new, DRAWS, 3, ESP_DRAW_TARGET, 1, 1);
            for (size_t i = 0; i < NEW; i++)
                c.covariance[i * NEW + i] += esp_predictions_variance(c.p, i) - esp_predictions_latent_variance(c.p, i);
            check_moments(target, mean, c.covariance, "targets");
            free(target);
        }
        free(function);
        end(&c);
    }
}

/* Labels are drawn from the probabilities, and these are what the functions of the same draw give. */
static void test_classes(void **state)
{
    (void)state;
    for (size_t kind = 2; kind < KINDS; kind++) {
        posterior_case c;
        const size_t classes = kinds[kind].classes;
        begin(&c, kind);
        double *function = drawn(c.model, c.new, DRAWS, 3, ESP_DRAW_FUNCTION, c.columns, 1);
        double *chance = drawn(c.model, c.new, DRAWS, 3, ESP_DRAW_PROBABILITY, classes, 2);
        double *label = drawn(c.model, c.new, DRAWS, 3, ESP_DRAW_TARGET, 1, 1);
        for (size_t i = 0; i < NEW; i++) {
            double count[3] = {0}, mean[3] = {0};
            for (size_t s = 0; s < DRAWS; s++) {
                double p[3] = {0}, all = 0.0;
                for (size_t k = 0; k < c.columns; k++) {
                    const double f = function[(i * c.columns + k) * DRAWS + s];
                    p[k] = erfc(-f / sqrt(2.0)) / (classes > 2 ? erfc(f / sqrt(2.0)) : 2.0);
                    if (classes == 2) p[1] = p[0], p[0] = 0.5 * erfc(f / sqrt(2.0));
                }
                for (size_t k = 0; k < classes; k++) all += p[k];
                for (size_t k = 0; k < classes; k++) {
                    assert_close(chance[(i * classes + k) * DRAWS + s], p[k] / all, 1e-9, "a probability");
                    mean[k] += p[k] / all / DRAWS;
                }
                const double number = label[i * DRAWS + s];
                assert_true(number >= 0.0 && number < (double)classes && number == floor(number));
                count[(size_t)number] += 1.0 / DRAWS;
            }
            for (size_t k = 0; k < classes; k++) {
                assert_true(fabs(count[k] - mean[k]) < 5.0 * sqrt(mean[k] * (1.0 - mean[k]) / DRAWS) + 1e-12);
                /* Of two classes the mean over draws is the probability that is predicted. */
                const double is = esp_predictions_probability(c.p, i, k);
                if (classes == 2) assert_true(fabs(mean[k] - is) < 5.0 * 0.5 / sqrt(DRAWS));
            }
        }
        free(function), free(chance), free(label);
        end(&c);
    }
}

/* A draw does not depend on threads, on what follows or on what else is asked for. Training examples without noise have
 * no covariance, which is no reason to fail. */
static void test_same_draws(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        posterior_case c;
        begin(&c, kind);
        double *a = drawn(c.model, c.new, 5, 3, ESP_DRAW_TARGET, 1, 1),
               *b = drawn(c.model, c.new, 9, 3, ESP_DRAW_TARGET, 1, 3),
               *other = drawn(c.model, c.new, 5, 4, ESP_DRAW_TARGET, 1, 1);
        bool differs = false;
        for (size_t i = 0; i < NEW; i++)
            for (size_t s = 0; s < 5; s++) {
                assert_true(a[i * 5 + s] == b[i * 9 + s]);
                differs = differs || a[i * 5 + s] != other[i * 5 + s];
            }
        assert_true(differs);
        free(a), free(b), free(other);
        end(&c);
    }
    esp_dataset *data = labelled(6, N, 0, false);
    esp_model *exact = trained("gp", "1*rbf(x, gamma=0.3)", data, "noise=0 fix=*", NULL);
    double *draw = drawn(exact, data, 3, 1, ESP_DRAW_TARGET, 1, 1);
    for (size_t i = 0; i < N; i++)
        for (size_t s = 0; s < 3; s++)
            assert_true(fabs(draw[3 * i + s] - strtod(esp_dataset_target(data, i), NULL)) < 0.01);
    free(draw);
    esp_model_free(exact);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------- likelihoods */

static double likelihood_at(const char *kernel, const esp_dataset *data, const char *settings, double *gradient)
{
    options o;
    esp_error err = {0};
    double value;
    esp_kernel *k = kernel_of(kernel);
    options_of(&o, settings);
    assert_ok(esp_log_likelihood("gp", k, data, o.setting, o.count, NULL, &value, gradient, &err), settings, &err);
    esp_kernel_free(k);
    return value;
}

/* What a model of these values tells, and differences of it. */
static void test_likelihood(void **state)
{
    (void)state;
    const double h = 1e-4;
    for (size_t classes = 0; classes <= 3; classes += classes == 0 ? 2 : 1) {
        esp_dataset *data = labelled(6, N, classes, false);
        const char *settings = classes == 0 ? "noise=0.2 standardise=mean" : "likelihood=bernoulli",
                   *names = "gamma weight";
        char fixed[80], kernel[80];
        double gradient[3], moved[2];
        snprintf(fixed, sizeof fixed, "%s fix=*", settings);
        esp_model *model = trained("gp", "1.5*rbf(x, gamma=0.3)", data, fixed, NULL);
        const double value = likelihood_at("1.5*rbf(x, gamma=0.3)", data, settings, gradient);
        assert_close(value, told(model, classes == 0 ? "log likelihood" : "log evidence"), 1e-12, names);
        assert_true(value == likelihood_at("1.5*rbf(x, gamma=0.3)", data, settings, NULL));
        for (int k = 0; k < (classes == 0 ? 3 : 2); k++) {
            for (int side = 0; side < 2; side++) {
                const double by = side == 0 ? -h : h;
                char noisy[80];
                snprintf(kernel, sizeof kernel, "%.17g*rbf(x, gamma=%.17g)", 1.5 + (k == 1 ? by : 0.0),
                         0.3 + (k == 0 ? by : 0.0));
                snprintf(noisy, sizeof noisy, "noise=%.17g standardise=mean", 0.2 + (k == 2 ? by : 0.0));
                moved[side] = likelihood_at(kernel, data, classes == 0 ? noisy : settings, NULL);
            }
            assert_close(gradient[k], (moved[1] - moved[0]) / (2.0 * h), 1e-5, "a derivative");
        }
        esp_model_free(model);
        esp_dataset_free(data);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    esp_dataset *data = labelled(6, N, 0, false), *classes = labelled(6, N, 2, false);
    esp_model *svm = trained("svm", "rbf(x)", classes, "C=1", NULL),
              *gp = trained("gp", "1*rbf(x)", data, "fix=*", NULL);
    double out[N * N], value;
    esp_error err = {0};
    assert_refused(esp_predict_samples(svm, classes, 1, 1, ESP_DRAW_TARGET, NULL, out, &err), &err,
                   "a model of svm has no posterior; gp has one");
    assert_refused(esp_predict_covariance(svm, classes, false, NULL, out, &err), &err, "has no posterior");
    assert_refused(esp_predict_samples(gp, data, 0, 1, ESP_DRAW_TARGET, NULL, out, &err), &err,
                   "the number of samples is 0");
    assert_refused(esp_predict_samples(gp, data, 1, 1, ESP_DRAW_PROBABILITY, NULL, out, &err), &err,
                   "numbers have no probabilities");
    const esp_run little = {.memory = N * N * 8}, less = {.memory = N * N * 8 - 1};
    assert_int_equal(esp_predict_covariance(gp, data, false, &little, out, &err), ESP_ERR_MEMORY);
    assert_non_null(strstr(err.message, "the joint distribution of 20 examples takes 12.8 kB; the limit is 3.2 kB"));
    assert_int_equal(esp_predict_samples(gp, data, 1, 1, ESP_DRAW_TARGET, &little, out, &err), ESP_ERR_MEMORY);
    esp_kernel *kernel = kernel_of("1*rbf(x)");
    const esp_setting inducing = {"inducing", "5"};
    assert_refused(esp_log_likelihood("svm", kernel, classes, NULL, 0, NULL, &value, NULL, &err), &err,
                   "svm has no likelihood; gp has one");
    assert_refused(esp_log_likelihood("gp", kernel, data, &inducing, 1, NULL, &value, NULL, &err), &err,
                   "inducing is 5; the likelihood at given values needs all examples");
    assert_int_equal(esp_log_likelihood("gp", kernel, data, NULL, 0, &less, &value, NULL, &err), ESP_ERR_MEMORY);
    esp_kernel_free(kernel);
    esp_model_free(svm);
    esp_model_free(gp);
    esp_dataset_free(data);
    esp_dataset_free(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_covariances), cmocka_unit_test(test_draws),
                                       cmocka_unit_test(test_classes),     cmocka_unit_test(test_same_draws),
                                       cmocka_unit_test(test_likelihood),  cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
