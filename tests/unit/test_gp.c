/* Gaussian processes: gradients against central differences; likelihoods, predictions and variances against dense
 * algebra written out here. tests/cli/train/gp-reference compares with a program that shares nothing with us. */
#include "elimination.h"
#include "learn/gp/gp.h"
#include "learn/probit.h"
#include "learning.h"

#include "kernel/evaluate/bound.h"

/* ln Phi and phi/Phi: known values, symmetry, and derivatives of one another where the formulas meet. */
static void test_probit(void **state)
{
    (void)state;
    assert_close(espi_log_probit(0.0), log(0.5), 1e-15, "ln Phi(0)");
    assert_close(espi_log_probit(-1.0), -1.8410216450092636, 1e-14, "ln Phi(-1)");
    assert_close(espi_log_probit(-40.0), -804.60844201, 1e-10, "ln Phi(-40)");
    assert_close(espi_probit_ratio(0.0), 0.79788456080286536, 1e-15, "phi/Phi(0)");
    for (double z = -200.0; z < 8.0; z += 0.37) {
        const double h = 1e-3 * fmax(1.0, fabs(z) / 10.0);
        const double slope = (8.0 * (espi_log_probit(z + h) - espi_log_probit(z - h)) -
                              (espi_log_probit(z + 2 * h) - espi_log_probit(z - 2 * h))) /
                             (12.0 * h);
        if (z < 3.0) assert_close(espi_probit_ratio(z), slope, 1e-7, "phi/Phi");
        assert_true(isfinite(espi_log_probit(-1e8)) && espi_probit_ratio(-1e8) >= 1e8);
    }
}

/* --------------------------------------------------------------- gradients */

typedef struct learned_case {
    esp_dataset *data;
    double *target;
    espi_gp_problem problem;
    espi_gp_point point;
    espi_gp_modes modes;
    const espi_gp_likelihood *likelihood;
} learned_case;

/* Numbers (0 classes), two classes, or several, one against the rest. */
static void begin(learned_case *l, size_t count, size_t classes, bool constant, uint64_t seed)
{
    const size_t outputs = classes > 2 ? classes : 1;
    *l = (learned_case){.data = labelled(seed, count, classes, false),
                        .likelihood = classes == 0   ? &espi_gp_exact
                                      : classes == 2 ? &espi_gp_laplace
                                                     : &espi_gp_one_vs_rest};
    l->target = malloc(count * outputs * sizeof *l->target);
    assert_non_null(l->target);
    for (size_t k = 0; k < outputs; k++)
        for (size_t i = 0; i < count; i++) {
            const char *y = esp_dataset_target(l->data, i);
            l->target[k * count + i] = classes > 2 ? ((size_t)(*y - 'A') == k ? 1.0 : -1.0) : strtod(y, NULL);
        }
    l->problem = (espi_gp_problem){.data = l->data,
                                   .target = l->target,
                                   .count = count,
                                   .outputs = outputs,
                                   .modes = &l->modes,
                                   .constant_mean = constant};
    for (size_t k = 0; k < 3; k++) l->problem.matrix[k] = malloc(count * count * sizeof(double));
    l->problem.vector = malloc(8 * count * sizeof(double));
    l->modes.coefficient = malloc(outputs * count * sizeof(double));
    l->modes.curvature = malloc(outputs * count * sizeof(double));
    l->modes.latent = calloc(outputs * count, sizeof(double));
    assert_true(espi_gp_point_make(&l->point, count));
}

static void end(learned_case *l)
{
    for (size_t k = 0; k < 3; k++) free(l->problem.matrix[k]);
    free(l->problem.vector);
    free(l->modes.coefficient), free(l->modes.curvature), free(l->modes.latent);
    free(l->target);
    espi_gp_point_free(&l->point);
    esp_dataset_free(l->data);
}

static double likelihood_at(learned_case *l, const esp_kernel *kernel, double noise)
{
    esp_error err = {0};
    assert_ok(l->likelihood->evaluate(&l->problem, kernel, noise, NULL, &l->point, NULL, NULL, &err), "evaluate", &err);
    return l->point.value;
}

/* d value / d ln theta by central differences of fourth order; `hyper` NULL: of the noise. */
static double difference(learned_case *l, esp_kernel *kernel, const espi_hyper *hyper, double noise)
{
    const double h = 2e-3, at = hyper != NULL ? hyper->value : noise;
    double value[4];
    for (int k = 0; k < 4; k++) {
        const double moved = at * exp((k < 2 ? k - 2 : k - 1) * h);
        if (hyper != NULL) espi_kernel_set(kernel, hyper->place, moved);
        value[k] = likelihood_at(l, kernel, hyper != NULL ? noise : moved);
    }
    if (hyper != NULL) espi_kernel_set(kernel, hyper->place, at);
    return (8.0 * (value[2] - value[1]) - (value[3] - value[0])) / (12.0 * h);
}

static size_t check_gradient(const char *expression, size_t classes, bool constant, double noise)
{
    learned_case l;
    esp_kernel *parsed = kernel_of(expression), *kernel = NULL;
    espi_hyper *hyper = NULL;
    size_t count = 0;
    esp_error err = {0};
    double of_noise = 0.0;
    begin(&l, 24, classes, constant, 3);
    assert_ok(espi_kernel_expand(parsed, l.data, &kernel, &err), expression, &err);
    assert_ok(espi_hypers_new(kernel, &hyper, &count, &err), expression, &err);
    double *gradient = calloc(espi_kernel_places(kernel) + 1, sizeof *gradient);
    assert_ok(l.likelihood->evaluate(&l.problem, kernel, noise, NULL, &l.point, gradient, &of_noise, &err), expression,
              &err);
    for (size_t i = 0; i < count; i++) {
        if (hyper[i].value == 0.0) continue;
        const double is = gradient[hyper[i].place] * hyper[i].value,
                     expected = difference(&l, kernel, &hyper[i], noise);
        if (!(fabs(is - expected) <= 1e-6 * fmax(fabs(is), fabs(expected)) + 1e-8))
            fail_msg("%s, %s: the derivative in ln %s is %.12g instead of %.12g", expression, l.likelihood->name,
                     hyper[i].name, is, expected);
    }
    if (classes == 0) {
        const double expected = difference(&l, kernel, NULL, noise);
        assert_close(of_noise * noise, expected, 1e-6, "the derivative in ln noise");
    }
    free(gradient);
    espi_hypers_free(hyper, count);
    esp_kernel_free(kernel);
    esp_kernel_free(parsed);
    end(&l);
    return count;
}

static void test_gradients(void **state)
{
    (void)state;
    static const char *const kernels[] = {
        "0.7*rbf(x, gamma=0.4)",
        "2*norm(sst(tree, lambda=0.4)) + 0.3*rbf(x, gamma=0.5)",
        "0.5*(norm(sst(tree, lambda=0.3, alpha=0.8)) * rbf(x, gamma=0.2)) + 0.2*norm(seq(words, n=2))",
        "norm(sasst(tree, lambda=0.5))",
        "1.5*norm(st(tree, lambda=0.6)) + 0.1*linear(x)",
        "0.5*norm(ptk(tree, lambda=0.4, mu=0.3)) + 0.2*rbf(x, gamma=0.3, ard=1)",
        "0.3*poly(x, degree=2, gamma=0.5, coef0=1) + norm(sst(tree, lambda=1, alpha=0))",
    };
    size_t hypers = 0;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        hypers += check_gradient(kernels[k], 0, false, 0.3);
        check_gradient(kernels[k], 0, true, 0.05);
        check_gradient(kernels[k], 2, false, 0.0);
        check_gradient(kernels[k], 4, false, 0.0);
    }
    assert_true(hypers > 30);
}

/* ------------------------------------------- likelihood and predictions, dense */

/* Everything from the Gram matrix by elimination. */
static void test_against_dense(void **state)
{
    (void)state;
    enum { N = 30, NEW = 11 };
    const char *kernel = "0.8*norm(sst(tree, lambda=0.4)) + 0.5*rbf(x, gamma=0.3)";
    esp_dataset *data = labelled(4, N, 0, false), *new = labelled(9, NEW, 0, true);
    double *gram = gram_of(kernel, data, NULL, 1), *cross = gram_of(kernel, new, data, 1),
           *self = gram_of(kernel, new, NULL, 1);
    for (int constant = 0; constant < 2; constant++) {
        double y[N], mean = 0.0, var = 0.0, log_determinant, a[N], ones[N], value = 0.0, beta = 0.0, sum = 0.0;
        for (size_t i = 0; i < N; i++) mean += (y[i] = strtod(esp_dataset_target(data, i), NULL)) / N;
        for (size_t i = 0; i < N; i++) var += (y[i] - mean) * (y[i] - mean) / N;
        for (size_t i = 0; i < N; i++) y[i] = (y[i] - mean) / sqrt(var);
        for (size_t i = 0; i < N; i++) ones[i] = 1.0;
        double *g = copy_of(gram, N * N);
        for (size_t i = 0; i < N; i++) g[i * N + i] += 0.2;
        double *work = copy_of(g, N * N);
        eliminate(work, ones, N, &log_determinant);
        for (size_t i = 0; constant && i < N; i++) beta += ones[i] * y[i], sum += ones[i];
        if (constant) beta /= sum;
        for (size_t i = 0; i < N; i++) a[i] = y[i] - beta;
        memcpy(work, g, N * N * sizeof *g);
        eliminate(work, a, N, &log_determinant);
        for (size_t i = 0; i < N; i++) value -= 0.5 * (y[i] - beta) * a[i];
        value -= 0.5 * log_determinant + 0.5 * N * log(2.0 * 3.14159265358979323846) + N * log(sqrt(var));

        esp_model *model =
            trained("gp", kernel, data, constant ? "noise=0.2 fix=* mean=constant" : "noise=0.2 fix=*", NULL);
        char *summary = NULL;
        esp_error err = {0};
        assert_ok(esp_model_summary(model, &summary, &err), "summary", &err);
        const char *told = strstr(summary, "log likelihood\t");
        assert_non_null(told);
        assert_close(strtod(told + 15, NULL), value, 1e-10, "the log likelihood");
        esp_text_free(summary);
        esp_predictions *p = predicted(model, new, 2);
        for (size_t i = 0; i < NEW; i++) {
            double m = 0.0, v = self[i * NEW + i], k[N];
            for (size_t j = 0; j < N; j++) m += (k[j] = cross[i * N + j]) * a[j];
            memcpy(work, g, N * N * sizeof *g);
            eliminate(work, k, N, &log_determinant);
            for (size_t j = 0; j < N; j++) v -= k[j] * cross[i * N + j];
            assert_close(esp_predictions_score(p, i), mean + sqrt(var) * (beta + m), 1e-9, "a mean");
            assert_close(esp_predictions_latent_variance(p, i), var * v, 1e-9, "a variance of f");
            assert_close(esp_predictions_variance(p, i), var * (v + 0.2), 1e-9, "a variance");
        }
        esp_predictions_free(p);
        esp_model_free(model);
        free(g);
        free(work);
    }
    free(gram), free(cross), free(self);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

/* The mode by plain gradient ascent on f (slow, obvious), and from it all that Laplace's approximation says. */
static void test_laplace_against_dense(void **state)
{
    (void)state;
    enum { N = 16, NEW = 7 };
    const char *kernel = "1.5*rbf(x, gamma=0.3) + 0.5*norm(sst(tree, lambda=0.4))";
    esp_dataset *data = labelled(6, N, 2, false), *new = labelled(7, NEW, 2, false);
    double *gram = gram_of(kernel, data, NULL, 1), *cross = gram_of(kernel, new, data, 1),
           *self = gram_of(kernel, new, NULL, 1);
    double f[N] = {0}, a[N] = {0}, y[N], g[N], w[N], log_determinant, none[N] = {0}, value = 0.0;
    for (size_t i = 0; i < N; i++) y[i] = strtod(esp_dataset_target(data, i), NULL);
    for (int step = 0; step < 20000; step++) {
        for (size_t i = 0; i < N; i++) g[i] = y[i] * espi_probit_ratio(y[i] * f[i]);
        for (size_t i = 0; i < N; i++) a[i] += 0.1 * (g[i] - a[i]); /* fixed point of a = g(K a) */
        for (size_t i = 0; i < N; i++) {
            f[i] = 0.0;
            for (size_t j = 0; j < N; j++) f[i] += gram[i * N + j] * a[j];
        }
    }
    double b[N * N];
    for (size_t i = 0; i < N; i++) w[i] = g[i] * (g[i] + f[i]);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) b[i * N + j] = (i == j) + gram[i * N + j] * w[j]; /* |I + K W| = |B| */
    eliminate(b, none, N, &log_determinant);
    for (size_t i = 0; i < N; i++) value += log(0.5 * erfc(-y[i] * f[i] / sqrt(2.0))) - 0.5 * a[i] * f[i];
    value -= 0.5 * log_determinant;

    esp_model *model = trained("gp", kernel, data, "likelihood=bernoulli fix=*", NULL);
    char *summary = NULL;
    esp_error err = {0};
    assert_ok(esp_model_summary(model, &summary, &err), "summary", &err);
    const char *told = strstr(summary, "log evidence\t");
    assert_non_null(told);
    assert_close(strtod(told + 13, NULL), value, 1e-9, "the log evidence");
    esp_text_free(summary);
    esp_predictions *p = predicted(model, new, 1);
    for (size_t i = 0; i < NEW; i++) {
        double m = 0.0, v = self[i * NEW + i], k[N], kw[N * N];
        for (size_t j = 0; j < N; j++) m += (k[j] = cross[i * N + j]) * a[j];
        for (size_t j = 0; j < N; j++)
            for (size_t c = 0; c < N; c++) kw[j * N + c] = gram[j * N + c] + (j == c ? 1.0 / w[j] : 0.0);
        eliminate(kw, k, N, &log_determinant);
        for (size_t j = 0; j < N; j++) v -= k[j] * cross[i * N + j];
        const double probability = 0.5 * erfc(-m / sqrt(2.0 * (1.0 + v)));
        assert_close(esp_predictions_score(p, i), m, 1e-8, "a latent mean");
        assert_close(esp_predictions_variance(p, i), v, 1e-8, "a latent variance");
        assert_close(esp_predictions_probability(p, i, 1), probability, 1e-8, "a probability");
        assert_close(esp_predictions_probability(p, i, 0), 1.0 - probability, 1e-8, "the other probability");
        assert_string_equal(esp_predictions_label(p, i), m > 0 ? "1" : "-1");
    }
    esp_predictions_free(p);
    esp_model_free(model);
    free(gram), free(cross), free(self);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probit),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_against_dense),
        cmocka_unit_test(test_laplace_against_dense),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
