/* Gaussian processes whose inducing examples stand for all: against dense matrices from the definition, against the
 * exact process, interrupted anywhere, and what is refused. The matrices are
 * worked out here, from the vectors alone. */
#include "dense_reference.h"
#include "files.h"
#include "learn/gp/gp.h"
#include "learning.h"

/* -------------------------------------------------------------- definition */

enum { N = 40, NEW = 7 };

static double x_of(size_t i) { return (double)(i * 37 % 61) / 10.0 - 3.0 + 0.001 * (double)i; }
static double y_of(size_t i) { return 5.0 + 3.0 * sin(x_of(i)) + (double)(i * 7919 % 13) / 20.0; }

static esp_dataset *curve(size_t first, size_t count)
{
    char *lines = malloc(count * 100), *at = lines;
    assert_non_null(lines);
    for (size_t i = first; i < first + count; i++)
        at += sprintf(at, "{\"y\": %.17g, \"x\": [%.17g]}\n", y_of(i), x_of(i));
    esp_dataset *data = dataset_of(lines);
    free(lines);
    return data;
}

typedef struct definition { /* of w exp(-g (x - x')^2) with the inducing examples u */
    double w, g, noise, mean, scale;
    const double *u;
    size_t m;
    double inner[N * N]; /* (K_mm + K_mn K_nm / noise)^-1 */
    double outer[N * N]; /* K_mm^-1 */
} definition;

static double k_of(const definition *d, double a, double b) { return d->w * exp(-d->g * (a - b) * (a - b)); }

static definition definition_of(const esp_model *model)
{
    definition d = {.w = hyper(model, "weight"), .g = hyper(model, "gamma"), .noise = hyper(model, "noise")};
    d.u = model->support->column[0].vectors.value;
    d.m = model->support->rows;
    for (size_t i = 0; i < N; i++) d.mean += y_of(i) / N;
    for (size_t i = 0; i < N; i++) d.scale += (y_of(i) - d.mean) * (y_of(i) - d.mean) / N;
    d.scale = sqrt(d.scale);
    for (size_t i = 0; i < d.m; i++)
        for (size_t j = 0; j < d.m; j++) {
            double sum = d.outer[i * d.m + j] = k_of(&d, d.u[i], d.u[j]);
            for (size_t e = 0; e < N; e++) sum += k_of(&d, d.u[i], x_of(e)) * k_of(&d, d.u[j], x_of(e)) / d.noise;
            d.inner[i * d.m + j] = sum;
        }
    invert(d.inner, d.m);
    invert(d.outer, d.m);
    return d;
}

/* log N(y; 0, Q + noise I) - tr(K - Q) / (2 noise), of the targets as given. */
static double bound_of(const definition *d)
{
    double *a = malloc(N * N * sizeof *a), left = 0.0, product = 0.0;
    assert_non_null(a);
    for (size_t i = 0; i < N; i++) {
        double row[N] = {0.0}; /* K(x_i, u) K_mm^-1 */
        for (size_t k = 0; k < d->m; k++)
            for (size_t l = 0; l < d->m; l++) row[l] += k_of(d, x_of(i), d->u[k]) * d->outer[k * d->m + l];
        for (size_t j = 0; j < N; j++) {
            double q = 0.0;
            for (size_t l = 0; l < d->m; l++) q += row[l] * k_of(d, x_of(j), d->u[l]);
            a[i * N + j] = q + (i == j ? d->noise : 0.0);
            if (i == j) left += d->w - q;
        }
    }
    const double log_determinant = invert(a, N);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            product += (y_of(i) - d->mean) / d->scale * a[i * N + j] * (y_of(j) - d->mean) / d->scale;
    free(a);
    return -0.5 * (N * log(2.0 * acos(-1.0)) + log_determinant + product + left / d->noise) - N * log(d->scale);
}

static void assert_definition(const esp_model *model, double tolerance, const char *settings)
{
    const definition d = definition_of(model);
    esp_dataset *new = curve(N, NEW);
    esp_predictions *p = predicted(model, new, 2);
    assert_close(told(model, "log likelihood bound"), bound_of(&d), tolerance, settings);
    assert_true(told(model, "inducing") == (double)d.m);
    for (size_t t = 0; t < NEW; t++) {
        double mean = 0.0, variance = d.w, weighted[N];
        for (size_t j = 0; j < d.m; j++) {
            weighted[j] = 0.0;
            for (size_t e = 0; e < N; e++)
                weighted[j] += k_of(&d, d.u[j], x_of(e)) * (y_of(e) - d.mean) / d.scale / d.noise;
        }
        for (size_t i = 0; i < d.m; i++)
            for (size_t j = 0; j < d.m; j++) {
                const double ki = k_of(&d, x_of(N + t), d.u[i]), kj = k_of(&d, x_of(N + t), d.u[j]);
                mean += ki * d.inner[i * d.m + j] * weighted[j];
                variance -= ki * (d.outer[i * d.m + j] - d.inner[i * d.m + j]) * kj;
            }
        assert_close(esp_predictions_score(p, t), d.mean + d.scale * mean, tolerance, settings);
        assert_close(esp_predictions_latent_variance(p, t), d.scale * d.scale * variance, 10.0 * tolerance, settings);
        assert_close(esp_predictions_variance(p, t), d.scale * d.scale * (variance + d.noise), tolerance, settings);
    }
    esp_predictions_free(p);
    esp_dataset_free(new);
}

/* At the values given and where a search ends, whose pivots must be those of its best point. */
static void test_is_the_definition(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "inducing=5 fix=*",  "inducing=9 noise=0.01 fix=*", "inducing=4",
        "inducing=6 seed=3", "inducing=3 restarts=2",       "inducing=6 max-iterations=2"};
    esp_dataset *data = curve(0, N);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        esp_model *model = trained("gp", "2*rbf(x, gamma=0.4)", data, settings[i], NULL);
        assert_definition(model, 1e-8, settings[i]);
        esp_model_free(model);
    }
    esp_dataset_free(data);
}

/* ------------------------------------------------------ the exact process */

static void test_all_examples_are_exact(void **state)
{
    (void)state;
    static const char *const settings[] = {"fix=* noise=0.3", "fix=* mean=constant standardise=none"};
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=2)";
    esp_dataset *data = labelled(3, 60, 0, false), *new = labelled(5, 40, 0, true);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char text[100];
        snprintf(text, sizeof text, "%s inducing=%d", settings[i], i == 0 ? 60 : 1000);
        esp_model *exact = trained("gp", kernel, data, settings[i], NULL),
                  *all = trained("gp", kernel, data, text, NULL);
        esp_predictions *p = predicted(exact, new, 1), *q = predicted(all, new, 1);
        assert_close(told(all, "log likelihood bound"), told(exact, "log likelihood"), 1e-6, text);
        assert_near_predictions(p, q, 1e-6);
        esp_predictions_free(p);
        esp_predictions_free(q);
        esp_model_free(exact);
        esp_model_free(all);
    }
    /* Where the search ends, and that it ends as high; a smoother kernel would be almost singular. */
    esp_model *free_one = trained("gp", kernel, data, "fix=gamma", NULL),
              *all = trained("gp", kernel, data, "fix=gamma inducing=60", NULL);
    assert_close(told(all, "log likelihood bound"), told(free_one, "log likelihood"), 1e-6, "the best");
    char text[60];
    snprintf(text, sizeof text, "fix=* noise=%.17g", hyper(all, "noise"));
    esp_model *exact = trained("gp", esp_model_kernel(all), data, text, NULL);
    esp_predictions *p = predicted(exact, new, 1), *q = predicted(all, new, 1);
    assert_near_predictions(p, q, 1e-6);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(free_one);
    esp_model_free(all);
    esp_model_free(exact);
    p = validated("gp", kernel, data, "fix=*", 4, 1);
    q = validated("gp", kernel, data, "fix=* inducing=60", 4, 1);
    assert_near_predictions(p, q, 1e-6);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

static void test_is_a_lower_bound(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=0.3)";
    esp_dataset *data = labelled(3, 60, 0, false);
    esp_model *exact = trained("gp", kernel, data, "fix=*", NULL);
    double last = -INFINITY;
    for (int inducing = 2; inducing < 60; inducing += 19) {
        char text[40];
        snprintf(text, sizeof text, "fix=* inducing=%d", inducing);
        esp_model *model = trained("gp", kernel, data, text, NULL);
        assert_int_equal(model->support->rows, inducing);
        assert_true(told(model, "log likelihood bound") < told(exact, "log likelihood"));
        assert_true(told(model, "log likelihood bound") > last);
        last = told(model, "log likelihood bound");
        esp_model_free(model);
    }
    esp_model_free(exact);
    esp_dataset_free(data);
}

/* ------------------------------------------------------------------ search */

typedef struct watch {
    long left; /* calls until it is cancelled; negative: never */
    size_t first, again, steps;
    double highest[2]; /* before the pivots are drawn again, and behind that */
} watch;

static int lose_patience(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    watch *w = user;
    return w->left >= 0 && w->left-- == 0 ? (w->left = 0, 1) : 0;
}

static void look(void *user, const char *line)
{
    watch *w = user;
    const char *value = strstr(line, "log likelihood bound ");
    if (strstr(line, " inducing examples drawn at the first hyperparameters") != NULL) w->first++;
    if (strstr(line, " inducing examples drawn at the best hyperparameters") != NULL) w->again++;
    double *highest = &w->highest[w->again];
    if (value != NULL) *highest = fmax(*highest, strtod(value + strlen("log likelihood bound "), NULL));
    w->steps += value != NULL;
}

/* A first kernel that knows nothing of the data has pivots as good as random ones: others are better. A good kernel has
 * good ones: others may be worse. The better ones count. */
static void test_pivots_are_drawn_again(void **state)
{
    (void)state;
    static const char *const kernel[] = {"1*rbf(x, gamma=1000)", "2*rbf(x, gamma=0.4)"};
    esp_dataset *data = curve(0, N);
    size_t better = 0, worse = 0;
    for (int i = 0; i < 24; i++) {
        char text[40];
        watch w = {.left = -1, .highest = {-INFINITY, -INFINITY}}, fixed = {.left = -1};
        snprintf(text, sizeof text, "inducing=4 seed=%d", i);
        esp_model *model = trained("gp", kernel[i % 2], data, text, &(esp_run){.message = look, .user = &w});
        assert_int_equal(w.first, 1);
        assert_int_equal(w.again, 1);
        assert_true(w.steps > 2);
        better += w.highest[1] > w.highest[0] + 1e-3;
        worse += w.highest[1] > -INFINITY && w.highest[1] < w.highest[0] - 1e-3;
        assert_true(told(model, "log likelihood bound") > fmax(w.highest[0], w.highest[1]) - 1e-5); /* as printed */
        esp_model_free(model);
        snprintf(text, sizeof text, "inducing=4 fix=* seed=%d", i);
        model = trained("gp", kernel[i % 2], data, text, &(esp_run){.message = look, .user = &fixed});
        assert_int_equal(fixed.first, 1);
        assert_int_equal(fixed.again, 0);
        esp_model_free(model);
    }
    assert_true(better > 0);
    assert_true(worse > 0);
    esp_dataset_free(data);
}

/* Whenever it is stopped, what there is is a process with pivots, variances and all. */
static void test_interrupted(void **state)
{
    (void)state;
    esp_dataset *data = curve(0, N);
    size_t without = 0, early = 0, late = 0;
    for (long left = 0;; left += 7) {
        watch w = {.left = left};
        esp_model *model;
        esp_error err = {0};
        const esp_run run = {.threads = 1, .progress = lose_patience, .user = &w, .message = look};
        const esp_status status = train("gp", "1*rbf(x, gamma=8)", data, "inducing=5", &run, &model, &err);
        if (status == ESP_ERR_CANCELLED) {
            without++;
            continue;
        }
        assert_ok(status, "train", &err);
        assert_definition(model, 1e-6, "interrupted"); /* some of these kernels are almost singular */
        const bool stopped = strstr(model->summary, "end\tinterrupted\n") != NULL;
        early += w.again == 0;
        late += w.again == 1 && stopped;
        esp_model_free(model);
        if (!stopped) break;
    }
    assert_true(without > 0);
    assert_true(early > 2);
    assert_true(late > 2);
    watch w = {.left = 60};
    esp_predictions *out;
    esp_error err = {0};
    const esp_run run = {.threads = 1, .progress = lose_patience, .user = &w};
    assert_int_equal(validate("gp", "1*rbf(x)", data, "inducing=5", 4, 1, &run, &out, &err), ESP_ERR_CANCELLED);
    esp_dataset_free(data);
}

static void test_threads_and_files(void **state)
{
    (void)state;
    const char *kernel = "1*norm(sst(tree, lambda=0.4)) + 1*rbf(x, gamma=0.3)", *settings = "inducing=20 mean=constant";
    esp_dataset *data = labelled(3, 150, 0, false), *new = labelled(5, 50, 0, true);
    esp_model *one = trained("gp", kernel, data, settings, &(esp_run){.threads = 1});
    esp_predictions *p = predicted(one, new, 1);
    assert_int_equal(one->support->rows, 20);
    for (int threads = 2; threads < 6; threads += 3) {
        esp_model *several = trained("gp", kernel, data, settings, &(esp_run){.threads = threads});
        esp_predictions *q = predicted(several, new, threads);
        assert_string_equal(esp_model_kernel(one), esp_model_kernel(several));
        assert_memory_equal(one->gaussian->reduction, several->gaussian->reduction, 20 * 20 * sizeof(double));
        assert_near_predictions(p, q, 0.0);
        esp_predictions_free(q);
        esp_model_free(several);
    }
    const blob bytes = bytes_of(one);
    esp_model *read = model_of_bytes(bytes);
    free(bytes.bytes);
    esp_predictions *q = predicted(read, new, 2);
    assert_near_predictions(p, q, 0.0);
    esp_predictions_free(q);
    esp_predictions_free(p);
    esp_model_free(read);
    esp_model_free(one);
    esp_dataset_free(data);
    esp_dataset_free(new);
}

/* ------------------------------------------------------------------- input */

static void test_refused(void **state)
{
    (void)state;
    esp_dataset *data = labelled(3, 60, 0, false), *classes = labelled(3, 20, 2, false);
    esp_model *model;
    esp_error err = {0};
    assert_refused(train("gp", "rbf(x)", classes, "likelihood=bernoulli inducing=3", NULL, &model, &err), &err,
                   "inducing is for numbers; likelihood bernoulli learns from all examples");
    assert_refused(train("gp", "rbf(x)", data, "inducing=3 noise=0", NULL, &model, &err), &err,
                   "noise is 0; inducing needs noise above 0");
    assert_refused(train("gp", "rbf(x)", data, "inducing=1.5", NULL, &model, &err), &err, "inducing is '1.5'");
    const size_t bytes = (2 * 60 * 20 + 5 * 20 * 20) * 8; /* of numbers */
    assert_int_equal(train("gp", "rbf(x)", data, "inducing=20", &(esp_run){.memory = bytes - 1}, &model, &err),
                     ESP_ERR_MEMORY);
    assert_string_equal(err.message,
                        "a Gaussian process of 20 pivots for 60 examples takes 35.2 kB; the limit is 35.2 kB");
    assert_ok(train("gp", "rbf(x)", data, "inducing=20", &(esp_run){.memory = bytes}, &model, &err), "train", &err);
    esp_model_free(model);
    assert_int_equal(train("gp", "rbf(x)", data, "inducing=1000", &(esp_run){.memory = 1000}, &model, &err),
                     ESP_ERR_MEMORY);
    assert_string_equal(err.message,
                        "a Gaussian process of 60 pivots for 60 examples takes 201.6 kB; the limit is 1.0 kB");
    esp_dataset_free(data);
    esp_dataset_free(classes);
}

/* Equal examples are one to the pivots; one example, or targets that are all the same, teach nothing. */
static void test_odd_data(void **state)
{
    (void)state;
    esp_dataset *twice = dataset_of("{\"y\": 1, \"x\": [1]}\n{\"y\": 2, \"x\": [2]}\n{\"y\": 2, \"x\": [1]}\n"
                                    "{\"y\": 4, \"x\": [2]}\n"),
                *same = dataset_of("{\"y\": 3, \"x\": [1]}\n{\"y\": 3, \"x\": [2]}\n{\"y\": 3, \"x\": [3]}\n"),
                *one = dataset_of("{\"y\": 3, \"x\": [1]}\n");
    esp_model *exact = trained("gp", "2*rbf(x)", twice, "fix=*", NULL),
              *model = trained("gp", "2*rbf(x)", twice, "fix=* inducing=4", NULL);
    esp_predictions *p = predicted(exact, same, 1), *q = predicted(model, same, 1);
    assert_int_equal(model->support->rows, 2);
    assert_near_predictions(p, q, 1e-6);
    esp_predictions_free(p);
    esp_predictions_free(q);
    esp_model_free(exact);
    esp_model_free(model);
    for (int i = 0; i < 2; i++) {
        model = trained("gp", "2*rbf(x)", i == 0 ? same : one, "inducing=2", NULL);
        assert_non_null(strstr(model->summary, "end\tnothing to learn: all targets are the same\n"));
        p = predicted(model, twice, 1);
        assert_true(esp_predictions_score(p, 0) == 3.0);
        assert_true(esp_predictions_latent_variance(p, 0) >= 0.0);
        esp_predictions_free(p);
        esp_model_free(model);
    }
    esp_dataset_free(twice);
    esp_dataset_free(same);
    esp_dataset_free(one);
}

static void test_memory_may_run_out_anywhere(void **state)
{
    (void)state;
    esp_dataset *data = curve(0, 12);
    const learning_case whole = {"gp", "1*rbf(x, gamma=100)", {{"inducing", "3"}, {"max-iterations", "3"}}, 2, data};
    out_of_memory_everywhere(train_and_predict, &whole);
    esp_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_definition),
        cmocka_unit_test(test_all_examples_are_exact),
        cmocka_unit_test(test_is_a_lower_bound),
        cmocka_unit_test(test_pivots_are_drawn_again),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_threads_and_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_odd_data),
        cmocka_unit_test(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
