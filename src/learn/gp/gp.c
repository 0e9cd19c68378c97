/* Gaussian processes from settings and data to a model, and in cross-validation; gp.h tells how the parts fit. */
#include "base/dense.h"
#include "learn/gp/gp.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/predictions.h"
#include "mine/mine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct training {
    const espi_settings *settings;
    const espi_gp_likelihood *likelihood;
    espi_gp_problem problem;
    double *target;        /* as the process sees them */
    double mean, scale;    /* the targets are mean + scale times these */
    double spread;         /* the variance of these */
    bool constant;         /* they are all 0 */
    espi_gp_sparse sparse; /* with inducing examples: these */
    espi_gp_space space;
    espi_gp_found found;
    bool cancelled;
} training;

/* ---------------------------------------------------------------- targets */

static esp_status check(const esp_kernel *kernel, const espi_targets *targets, esp_error *err)
{
    if (targets->count == 0) return espi_fail(err, ESP_ERR_PARSE, "there are no examples to learn from");
    if (espi_kernel_selects(kernel))
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s selects patterns while it is learned; gp needs a kernel that does not, such as sst or seq",
                         esp_kernel_text(kernel));
    if (targets->classes > 2)
        return espi_fail(err, ESP_ERR_PARSE, "there are %zu classes; likelihood bernoulli is for two",
                         targets->classes);
    return ESP_OK;
}

/* Mean and standard deviation. Squares are taken of fractions of the largest deviation: they do not overflow. */
static void measure(const double *value, size_t n, double *mean, double *deviation)
{
    double most = 0.0, sum = 0.0;
    *mean = 0.0;
    for (size_t i = 0; i < n; i++) *mean += value[i] / (double)n;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(value[i] - *mean));
    for (size_t i = 0; i < n; i++) sum += most > 0.0 ? (value[i] - *mean) / most * ((value[i] - *mean) / most) : 0.0;
    *deviation = most * sqrt(sum / (double)n);
}

static esp_status standardise(training *t, const espi_targets *targets, esp_error *err)
{
    const size_t n = targets->count;
    const espi_choice how = t->settings->standardise;
    double mean, deviation;
    t->scale = t->spread = 1.0;
    if (targets->classes > 0) {
        for (size_t i = 0; i < n; i++) t->target[i] = targets->class_of[i] == 1 ? 1.0 : -1.0;
        return ESP_OK;
    }
    bool same = true;
    for (size_t i = 1; i < n; i++) same = same && targets->value[i] == targets->value[0];
    measure(targets->value, n, &mean, &deviation);
    if (same) mean = targets->value[0];
    if (!isfinite(mean) || !isfinite(deviation * deviation))
        return espi_fail(err, ESP_ERR_RANGE, "the targets are too large to take their variance");
    t->constant = same && how != ESPI_NONE;
    if (how != ESPI_NONE) t->mean = mean;
    if (how == ESPI_UNIT && !same && deviation > 0.0) t->scale = deviation;
    if (!same && deviation > 0.0) t->spread = deviation / t->scale * (deviation / t->scale);
    if (t->spread < 1e-290)
        return espi_fail(err, ESP_ERR_RANGE,
                         "the targets are too small to take their variance; standardise unit scales them");
    for (size_t i = 0; i < n; i++) t->target[i] = (targets->value[i] - t->mean) / t->scale;
    return ESP_OK;
}

/* --------------------------------------------------------------- learning */

static esp_status take_room(training *t, const esp_run *run, esp_error *err)
{
    const size_t n = t->problem.count;
    const double bytes = (double)t->likelihood->matrices * (double)n * (double)n * sizeof(double);
    char need[32], limit[32];
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "a Gaussian process of %zu examples takes %s; the limit is %s", n,
                         espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    if (t->problem.sparse != NULL) {
        const size_t pivots = t->settings->inducing < n ? t->settings->inducing : n;
        const esp_status status = espi_sparse_room(pivots, n, run, err);
        if (status != ESP_OK) return status;
    }
    bool ok = espi_dense_ready();
    for (size_t k = 0; ok && k < t->likelihood->matrices; k++) {
        t->problem.matrix[k] = espi_alloc(n, n * sizeof(double));
        ok = t->problem.matrix[k] != NULL;
    }
    t->problem.vector = ok ? espi_alloc(8 * n, sizeof *t->problem.vector) : NULL;
    ok = ok && t->problem.vector != NULL && espi_gp_point_make(&t->found.point, n);
    t->found.value = ok ? espi_alloc_zero(t->space.variables, sizeof *t->found.value) : NULL;
    return t->found.value != NULL ? ESP_OK : espi_no_memory(err);
}

static esp_status learn(training *t, const esp_kernel *kernel, const esp_dataset *data, const espi_targets *targets,
                        bool keep, const esp_run *run, esp_error *err)
{
    esp_status status = check(kernel, targets, err);
    if (status != ESP_OK) return status;
    const bool inducing = t->settings->inducing > 0;
    t->likelihood = targets->classes > 0 ? &espi_gp_laplace : inducing ? &espi_gp_inducing : &espi_gp_exact;
    t->target = espi_alloc(targets->count, sizeof *t->target);
    status = t->target == NULL ? espi_no_memory(err) : standardise(t, targets, err);
    t->problem.data = data;
    t->problem.target = t->target;
    t->problem.count = targets->count;
    t->problem.constant_mean = t->settings->constant_mean;
    t->problem.sparse = inducing ? &t->sparse : NULL;
    t->found.shift = -(double)targets->count * log(t->scale);
    if (status == ESP_OK)
        status = espi_gp_space_new(&t->space, t->settings, kernel, data, t->likelihood->noisy, t->spread, run, err);
    if (status == ESP_OK) status = take_room(t, run, err);
    espi_settings own = *t->settings; /* with nothing to learn from, the hyperparameters stay */
    if (t->constant) own.max_iterations = own.restarts = 0;
    if (status == ESP_OK)
        status = inducing ? espi_gp_inducing_search(&t->space, &t->problem, &own, keep, run, &t->found, err)
                          : espi_gp_search(&t->space, &t->problem, t->likelihood, &own, run, &t->found, err);
    if (status == ESP_ERR_CANCELLED && keep && t->found.there) {
        t->cancelled = true;
        status = ESP_OK;
    }
    return status == ESP_OK ? espi_kernel_print(t->space.kernel, err) : status;
}

static void end_training(training *t)
{
    for (size_t k = 0; k < 3; k++) espi_free(t->problem.matrix[k]);
    espi_free(t->problem.vector);
    espi_gp_sparse_free(&t->sparse);
    espi_free(t->target);
    espi_gp_space_free(&t->space);
    espi_gp_point_free(&t->found.point);
    espi_free(t->found.value);
}

/* ------------------------------------------------------------------ model */

static void add_number(espi_text *text, const char *key, double value)
{
    char digits[32];
    espi_number_print(value, digits);
    espi_text_string(text, key);
    espi_text_string(text, "\t");
    espi_text_string(text, digits);
    espi_text_string(text, "\n");
}

/* Variables that ended at a bound: "at a bound<TAB>lambda 1". */
static void add_bounds(espi_text *text, const training *t)
{
    for (size_t v = 0; v < t->space.variables; v++) {
        const espi_gp_variable *m = &t->space.moving[v];
        const double value = t->found.value[v];
        if (value > m->low && value < m->high) continue;
        espi_text_string(text, "at a bound\t");
        espi_text_field(text, m->name, strlen(m->name));
        espi_text_string(text, " ");
        espi_text_number(text, value);
        espi_text_string(text, "\n");
    }
}

static char *summary_text(const training *t)
{
    espi_text text = {0};
    char line[160];
    snprintf(line, sizeof line, "trained-on\t%zu\n", t->problem.count);
    espi_text_string(&text, line);
    if (t->problem.sparse != NULL) {
        snprintf(line, sizeof line, "inducing\t%zu\n", t->sparse.pivots);
        espi_text_string(&text, line);
    }
    add_number(&text, t->likelihood->value, t->found.point.value + t->found.shift);
    if (t->found.point.jitter > 0.0) add_number(&text, "jitter", t->found.point.jitter);
    add_bounds(&text, t);
    snprintf(line, sizeof line, "runs\t%zu\niterations\t%zu\nend\t%s\n", t->found.runs, t->found.iterations,
             t->cancelled  ? "interrupted"
             : t->constant ? "nothing to learn: all targets are the same"
                           : t->found.end);
    espi_text_string(&text, line);
    return espi_text_take(&text);
}

/* All examples, or the inducing ones. */
static esp_status take_examples(esp_model *m, training *t, esp_error *err)
{
    const size_t n = t->problem.count;
    if (t->problem.sparse != NULL) {
        m->support = t->sparse.support;
        t->sparse.support = NULL;
        return ESP_OK;
    }
    bool *all = espi_alloc(n, sizeof *all);
    if (all == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++) all[i] = true;
    const esp_status status = espi_copy_rows(m->kernel, t->problem.data, all, &m->support, err);
    espi_free(all);
    return status;
}

static esp_status fill_support(esp_model *m, training *t, esp_error *err)
{
    espi_sparse *sparse = t->problem.sparse != NULL ? &t->sparse.bound : NULL;
    const double *coefficient = sparse != NULL ? sparse->coefficient : t->found.point.coefficient;
    const esp_status status = take_examples(m, t, err);
    if (status != ESP_OK) return status;
    const size_t n = m->support->rows;
    espi_process *p = m->process = espi_alloc_zero(1, sizeof *p);
    m->coefficient = espi_alloc(n, sizeof *m->coefficient);
    m->bias = espi_alloc(1, sizeof *m->bias);
    if (p == NULL || m->coefficient == NULL || m->bias == NULL) return espi_no_memory(err);
    p->scale = t->scale;
    p->noise = espi_gp_space_noise(&t->space);
    p->jitter = t->found.point.jitter;
    m->bias[0] = t->mean + t->scale * t->found.point.mean;
    for (size_t i = 0; i < n; i++) m->coefficient[i] = t->scale * coefficient[i];
    if (sparse != NULL) {
        espi_sparse_posterior(sparse, sparse->w_mm); /* no one needs these weights any more */
        p->reduction = sparse->w_mm;
        sparse->w_mm = NULL;
    }
    if (m->classes == 0) return ESP_OK;
    p->curvature = espi_alloc(n, sizeof *p->curvature);
    if (p->curvature == NULL) return espi_no_memory(err);
    memcpy(p->curvature, t->found.point.curvature, n * sizeof *p->curvature);
    return ESP_OK;
}

static esp_status fill_model(esp_model *m, training *t, const espi_targets *targets, esp_error *err)
{
    const char *name = espi_learner_text(ESPI_GP);
    m->kernel = t->space.kernel;
    t->space.kernel = NULL;
    m->outputs = 1;
    m->learner = espi_copy_text(name, strlen(name));
    m->settings = espi_settings_text(t->settings);
    m->summary = summary_text(t);
    if (targets->classes > 0) m->class_name = espi_alloc_zero(targets->classes, sizeof *m->class_name);
    bool ok = m->learner != NULL && m->settings != NULL && m->summary != NULL;
    ok = ok && (targets->classes == 0 || m->class_name != NULL);
    for (m->classes = 0; ok && m->classes < targets->classes; m->classes++) {
        const char *class = targets->name[m->classes];
        m->class_name[m->classes] = espi_copy_text(class, strlen(class));
        ok = m->class_name[m->classes] != NULL;
    }
    return ok ? fill_support(m, t, err) : espi_no_memory(err);
}

esp_status espi_gp_train(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                         const espi_targets *targets, bool keep, const esp_run *run, esp_model **out, esp_error *err)
{
    training t = {.settings = settings};
    *out = NULL;
    esp_status status = learn(&t, kernel, data, targets, keep, run, err);
    esp_model *model = status == ESP_OK ? espi_model_new() : NULL;
    if (status == ESP_OK) status = model == NULL ? espi_no_memory(err) : fill_model(model, &t, targets, err);
    if (status == ESP_OK) *out = model;
    else esp_model_free(model);
    end_training(&t);
    return status;
}

/* ---------------------------------------------------------------- by name */

static int by_value(const void *a, const void *b)
{
    const espi_hyper *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

esp_status esp_model_hyperparameters(const esp_model *m, char **out, esp_error *err)
{
    espi_text text = {0};
    espi_hyper *hyper = NULL;
    size_t count = 0;
    *out = NULL;
    esp_status status = m->process != NULL ? espi_hypers_new(m->kernel, &hyper, &count, err) : ESP_OK;
    if (status != ESP_OK) return status;
    const bool noisy = m->process != NULL && m->classes == 0;
    bool told = !noisy;
    if (count > 0) qsort(hyper, count, sizeof *hyper, by_value);
    for (size_t i = 0; i <= count; i++) {
        const bool noise = !told && (i == count || m->process->noise > hyper[i].value);
        if (noise) add_number(&text, "noise", m->process->noise);
        told = told || noise;
        if (i == count) break;
        espi_text_field(&text, hyper[i].name, strlen(hyper[i].name));
        add_number(&text, "", hyper[i].value);
    }
    espi_hypers_free(hyper, count);
    *out = espi_text_take(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}

/* ------------------------------------------------------------------ folds */

/* The targets of the examples that are not of this fold; names belong to `all`. */
static bool take_targets(espi_targets *part, const espi_targets *all, const uint32_t *fold, size_t number)
{
    *part = (espi_targets){.classes = all->classes, .name = all->name};
    if (all->classes > 0) part->class_of = espi_alloc(all->count, sizeof *part->class_of);
    else part->value = espi_alloc(all->count, sizeof *part->value);
    if (part->class_of == NULL && part->value == NULL) return false;
    for (size_t i = 0; i < all->count; i++) {
        if (fold[i] == number) continue;
        if (all->classes > 0) part->class_of[part->count++] = all->class_of[i];
        else part->value[part->count++] = all->value[i];
    }
    return true;
}

static esp_status one_fold(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                           const espi_targets *targets, const uint32_t *fold, size_t number, const esp_run *run,
                           double *scores, double *variance, esp_error *err)
{
    espi_targets part = {0};
    esp_dataset *train = NULL, *test = NULL;
    esp_model *model = NULL;
    esp_predictions *told = NULL;
    bool *row = espi_alloc(data->rows, sizeof *row);
    esp_status status = row != NULL && take_targets(&part, targets, fold, number) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) row[i] = fold[i] != number;
    if (status == ESP_OK) status = espi_copy_rows(kernel, data, row, &train, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) row[i] = fold[i] == number;
    if (status == ESP_OK) status = espi_copy_rows(kernel, data, row, &test, err);
    if (status == ESP_OK) status = espi_gp_train(settings, kernel, train, &part, false, run, &model, err);
    if (status == ESP_OK) status = esp_predict(model, test, run, &told, err);
    for (size_t i = 0, k = 0; status == ESP_OK && i < data->rows; i++) {
        if (!row[i]) continue;
        scores[i] = told->column[k];
        if (variance != NULL) memcpy(variance + 2 * i, told->variance + 2 * k, 2 * sizeof *variance);
        k++;
    }
    esp_predictions_free(told);
    esp_model_free(model);
    esp_dataset_free(train);
    esp_dataset_free(test);
    espi_free(part.class_of);
    espi_free(part.value);
    espi_free(row);
    return status;
}

esp_status espi_gp_folds(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                         const espi_targets *targets, const uint32_t *fold, size_t folds, const esp_run *run,
                         double *scores, double *variance, esp_error *err)
{
    esp_status status = espi_check_columns(kernel, data, err);
    for (size_t f = 0; status == ESP_OK && f < folds; f++) {
        char line[80];
        snprintf(line, sizeof line, "fold %zu of %zu", f + 1, folds);
        espi_tell(run, line);
        status = one_fold(settings, kernel, data, targets, fold, f, run, scores, variance, err);
    }
    return status;
}
