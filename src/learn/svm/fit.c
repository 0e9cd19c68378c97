/* Fits: the problems that a learner poses to the solver, over one set of Gram rows or each over its own.
 *
 *     two classes       one problem, the second class positive
 *     one-vs-rest       one problem per class
 *     one-vs-one        one problem per pair of classes, over the rows of the two
 *     regression        one problem with two variables per example (smo.h) */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/learner.h"

#include <string.h>

typedef struct variables {
    size_t count;
    uint32_t *example; /* among the rows */
    signed char *sign;
    double *linear, *bound;
} variables;

size_t espi_output_count(const espi_settings *settings, size_t classes)
{
    return classes <= 2 ? 1 : settings->one_vs_one ? classes * (classes - 1) / 2 : classes;
}

void espi_fit_free(espi_fit *fit)
{
    espi_free(fit->coefficient);
    espi_free(fit->bias);
    espi_free(fit->alpha);
    espi_free(fit->alpha_start);
    *fit = (espi_fit){0};
}

/* ---------------------------------------------------------------- weights */

static esp_status parse_weights(const char *text, const espi_targets *t, double *weight, esp_error *err)
{
    const char *label;
    size_t size;
    double value;
    char quoted[96];
    while (*text != '\0') {
        size_t class = 0;
        if (!espi_weight_next(&text, &label, &size, &value))
            return espi_fail(err, ESP_ERR_PARAM,
                             "class-weight has %s; allowed is balanced, or label=weight,... with weights > 0",
                             espi_quote(text, strcspn(text, ","), quoted));
        while (class < t->classes && !(strlen(t->name[class]) == size && memcmp(t->name[class], label, size) == 0))
            class ++;
        if (class == t->classes)
            return espi_fail(err, ESP_ERR_PARAM, "class-weight names the class %s, which the data do not have",
                             espi_quote(label, size, quoted));
        weight[class] = value;
    }
    return ESP_OK;
}

esp_status espi_weights_check(const espi_settings *settings, const espi_targets *t, esp_error *err)
{
    if (settings->class_weight == NULL || settings->balanced || t->classes == 0) return ESP_OK;
    double *weight = espi_alloc(t->classes, sizeof *weight);
    if (weight == NULL) return espi_no_memory(err);
    const esp_status status = parse_weights(settings->class_weight, t, weight, err);
    espi_free(weight);
    return status;
}

static esp_status make_weights(espi_fitting *j, esp_error *err)
{
    const espi_targets *t = j->targets;
    if (t->classes == 0) return ESP_OK;
    j->class_weight = espi_alloc(t->classes, sizeof *j->class_weight);
    if (j->class_weight == NULL) return espi_no_memory(err);
    for (size_t c = 0; c < t->classes; c++) {
        size_t members = 0;
        for (size_t i = 0; i < j->fit->examples; i++) members += t->class_of[j->example[i]] == c;
        j->class_weight[c] = j->settings->balanced && members > 0
                                 ? (double)j->fit->examples / (double)t->classes / (double)members
                                 : 1.0;
    }
    if (j->settings->class_weight == NULL || j->settings->balanced) return ESP_OK;
    return parse_weights(j->settings->class_weight, t, j->class_weight, err);
}

/* --------------------------------------------------------------- problems */

void espi_problem_classes(bool one_vs_one, size_t classes, size_t problem, size_t *positive, size_t *negative)
{
    *positive = classes == 2 ? 1 : problem;
    *negative = classes == 2 ? 0 : classes;
    if (classes <= 2 || !one_vs_one) return;
    size_t first = 0;
    for (size_t left = classes - 1; problem >= left; left--) problem -= left, first++;
    *positive = first;
    *negative = first + 1 + problem;
}

static void problem_classes(const espi_fitting *j, size_t problem, size_t *positive, size_t *negative)
{
    espi_problem_classes(j->settings->one_vs_one, j->targets->classes, problem, positive, negative);
}

static size_t variable_count(const espi_fitting *j, size_t problem)
{
    if (j->targets->classes == 0) return 2 * j->fit->examples;
    if (j->targets->classes == 2 || !j->settings->one_vs_one) return j->fit->examples;
    size_t positive, negative, count = 0;
    problem_classes(j, problem, &positive, &negative);
    for (size_t i = 0; i < j->fit->examples; i++) {
        const size_t c = j->targets->class_of[j->example[i]];
        count += c == positive || c == negative;
    }
    return count;
}

static void free_variables(variables *v)
{
    espi_free(v->example);
    espi_free(v->sign);
    espi_free(v->linear);
    espi_free(v->bound);
}

static void regression_variables(const espi_fitting *j, variables *v)
{
    const size_t n = j->fit->examples;
    for (size_t i = 0; i < v->count; i++) {
        const double y = j->targets->value[j->example[i % n]];
        v->example[i] = (uint32_t)(i % n);
        v->sign[i] = i < n ? 1 : -1;
        v->linear[i] = j->settings->epsilon - v->sign[i] * y;
        v->bound[i] = j->settings->cost;
    }
}

static void class_variables(const espi_fitting *j, size_t problem, variables *v)
{
    size_t positive, negative, k = 0;
    problem_classes(j, problem, &positive, &negative);
    for (size_t i = 0; i < j->fit->examples; i++) {
        const size_t c = j->targets->class_of[j->example[i]];
        if (c != positive && c != negative && negative < j->targets->classes) continue;
        v->example[k] = (uint32_t)i;
        v->sign[k] = c == positive ? 1 : -1;
        v->linear[k] = -1.0;
        v->bound[k] = j->settings->cost * j->class_weight[c] * (c == positive ? j->settings->positive_weight : 1.0);
        k++;
    }
}

/* One-vs-one problems see only the rows of their two classes, renumbered. */
static esp_status narrow_rows(const espi_fitting *j, variables *v, espi_rows *rows, espi_rows **narrow, esp_error *err)
{
    *narrow = NULL;
    if (v->count == j->fit->examples || j->targets->classes == 0) return ESP_OK;
    const bool narrow_already = espi_rows_count(rows) == v->count;
    const esp_status status = narrow_already ? ESP_OK : espi_rows_subset(rows, v->example, v->count, narrow, err);
    for (size_t k = 0; status == ESP_OK && k < v->count; k++) v->example[k] = (uint32_t)k;
    return status;
}

static esp_status solve(const espi_fitting *j, size_t problem, variables *v, espi_rows *rows, const esp_run *run,
                        esp_error *err)
{
    double *alpha = j->fit->alpha + j->fit->alpha_start[problem];
    for (size_t k = 0; k < v->count; k++) {
        const double start = j->warm != NULL ? j->warm->alpha[j->warm->alpha_start[problem] + k] * j->scale : 0.0;
        alpha[k] = start < v->bound[k] ? start : v->bound[k];
    }
    espi_rows *narrow;
    esp_status status = narrow_rows(j, v, rows, &narrow, err);
    if (status != ESP_OK) return status;
    const espi_smo_problem p = {.rows = narrow != NULL ? narrow : rows,
                                .variables = v->count,
                                .example = v->example,
                                .sign = v->sign,
                                .linear = v->linear,
                                .bound = v->bound,
                                .tolerance = j->settings->tolerance,
                                .max_iterations = j->settings->max_iterations,
                                .shrinking = !j->settings->no_shrinking,
                                .store = espi_rows_spare(rows)};
    status = espi_smo_solve(&p, run, alpha, &j->result[problem], err);
    espi_rows_free(narrow);
    if (status == ESP_ERR_CANCELLED && j->settings->keep_partial) {
        j->result[problem].converged = false;
        j->fit->cancelled = true;
        status = ESP_OK;
    }
    return status;
}

esp_status espi_fitting_solve(const espi_fitting *j, size_t problem, espi_rows *rows, const esp_run *run,
                              esp_error *err)
{
    variables v = {.count = j->fit->alpha_start[problem + 1] - j->fit->alpha_start[problem]};
    v.example = espi_alloc(v.count, sizeof *v.example);
    v.sign = espi_alloc(v.count, sizeof *v.sign);
    v.linear = espi_alloc(v.count, sizeof *v.linear);
    v.bound = espi_alloc(v.count, sizeof *v.bound);
    esp_status status = ESP_OK;
    if (v.example == NULL || v.sign == NULL || v.linear == NULL || v.bound == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) {
        if (j->targets->classes == 0) regression_variables(j, &v);
        else class_variables(j, problem, &v);
        status = solve(j, problem, &v, rows, run, err);
    }
    if (status == ESP_OK) { /* narrow rows were renumbered, so examples are laid out anew */
        if (j->targets->classes > 0) class_variables(j, problem, &v);
        const double *alpha = j->fit->alpha + j->fit->alpha_start[problem];
        for (size_t k = 0; k < v.count; k++)
            j->fit->coefficient[v.example[k] * j->fit->outputs + problem] += v.sign[k] * alpha[k];
        j->fit->bias[problem] = j->result[problem].bias;
    }
    free_variables(&v);
    return status;
}

static bool start_fit(espi_fitting *j)
{
    espi_fit *f = j->fit;
    f->alpha_start = espi_alloc_zero(f->problems + 1, sizeof *f->alpha_start);
    if (f->alpha_start == NULL) return false;
    for (size_t p = 0; p < f->problems; p++) f->alpha_start[p + 1] = f->alpha_start[p] + variable_count(j, p);
    f->alpha = espi_alloc(f->alpha_start[f->problems], sizeof *f->alpha);
    f->coefficient = espi_alloc_zero(f->examples, f->outputs * sizeof *f->coefficient);
    f->bias = espi_alloc_zero(f->outputs, sizeof *f->bias);
    j->result = espi_alloc_zero(f->problems, sizeof *j->result);
    return f->alpha != NULL && f->coefficient != NULL && f->bias != NULL && j->result != NULL;
}

esp_status espi_fitting_start(espi_fitting *f, espi_fit *fit, const espi_settings *settings,
                              const espi_targets *targets, const uint32_t *example, size_t count, const espi_fit *warm,
                              double warm_cost, esp_error *err)
{
    const size_t outputs = espi_output_count(settings, targets->classes);
    *fit = (espi_fit){.examples = count, .outputs = outputs, .problems = outputs, .converged = true};
    *f = (espi_fitting){.fit = fit,
                        .settings = settings,
                        .targets = targets,
                        .example = example,
                        .warm = warm,
                        .scale = warm != NULL ? settings->cost / warm_cost : 0.0};
    return start_fit(f) ? make_weights(f, err) : espi_no_memory(err);
}

esp_status espi_fitting_end(espi_fitting *f, esp_status status)
{
    espi_fit *fit = f->fit;
    for (size_t p = 0; status == ESP_OK && p < fit->problems; p++) {
        fit->iterations += f->result[p].iterations;
        fit->converged = fit->converged && f->result[p].converged;
    }
    espi_free(f->class_weight);
    espi_free(f->result);
    if (status != ESP_OK) espi_fit_free(fit);
    return status;
}

typedef struct job {
    const espi_fitting *fitting;
    espi_rows *rows;
} job;

/* How far one of several problems is tells nothing. */
static int ask_only(void *user, const char *stage, double fraction)
{
    (void)fraction;
    const esp_run *run = user;
    return run->progress(run->user, stage, -1.0);
}

static esp_status solve_in_thread(void *context, size_t problem, const espi_worker *worker, esp_error *err)
{
    const job *j = context;
    esp_run from = worker->run != NULL ? *worker->run : (esp_run){0};
    const esp_run run = {.threads = 1, .progress = from.progress != NULL ? ask_only : NULL, .user = &from};
    return espi_fitting_solve(j->fitting, problem, j->rows, &run, err);
}

esp_status espi_fit_make(espi_fit *fit, const espi_settings *settings, const espi_targets *targets,
                         const uint32_t *example, espi_rows *rows, const espi_fit *warm, double warm_cost,
                         const esp_run *run, esp_error *err)
{
    espi_fitting f;
    job j = {.fitting = &f, .rows = rows};
    esp_status status =
        espi_fitting_start(&f, fit, settings, targets, example, espi_rows_count(rows), warm, warm_cost, err);
    /* One after the other where an interruption must leave what is done. */
    if (status == ESP_OK && espi_rows_complete(rows) && fit->problems > 1 && !settings->keep_partial)
        status = espi_parallel(run, "training", fit->problems, solve_in_thread, &j, err);
    else
        for (size_t p = 0; status == ESP_OK && p < fit->problems; p++)
            status = espi_fitting_solve(&f, p, rows, run, err);
    return espi_fitting_end(&f, status);
}

esp_status espi_fit_score(const espi_fit *fit, espi_rows *all, const uint32_t *train, const uint32_t *test,
                          size_t count, double *scores, esp_error *err)
{
    const size_t outputs = fit->outputs;
    for (size_t t = 0; t < count; t++) memcpy(scores + t * outputs, fit->bias, outputs * sizeof *scores);
    for (size_t i = 0; i < fit->examples; i++) {
        const double *c = fit->coefficient + i * outputs;
        const float *row;
        bool used = false;
        for (size_t k = 0; k < outputs; k++) used = used || c[k] != 0.0;
        if (!used) continue;
        const esp_status status = espi_rows_get(all, train[i], &row, err);
        if (status != ESP_OK) return status;
        for (size_t t = 0; t < count; t++)
            for (size_t k = 0; k < outputs; k++) scores[t * outputs + k] += c[k] * (double)row[test[t]];
    }
    return ESP_OK;
}
