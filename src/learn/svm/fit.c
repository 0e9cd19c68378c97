/* Fits: the problems that a machine poses to the solver, over rows that they share or each over its own. */
#include "base/alloc.h"
#include "base/hot.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/svm/machine.h"

#include <string.h>

void espi_fit_free(espi_fit *fit)
{
    espi_free(fit->coefficient);
    espi_free(fit->bias);
    espi_free(fit->alpha);
    espi_free(fit->alpha_start);
    *fit = (espi_fit){0};
}

/* -------------------------------------------------------------- variables */

void espi_variables_free(espi_variables *v)
{
    espi_free(v->example);
    espi_free(v->sign);
    espi_free(v->linear);
    espi_free(v->bound);
}

static bool make_variables(espi_variables *v, size_t count)
{
    *v = (espi_variables){.count = count};
    v->example = espi_alloc(count, sizeof *v->example);
    v->sign = espi_alloc(count, sizeof *v->sign);
    v->linear = espi_alloc(count, sizeof *v->linear);
    v->bound = espi_alloc(count, sizeof *v->bound);
    return v->example != NULL && v->sign != NULL && v->linear != NULL && v->bound != NULL;
}

/* ----------------------------------------------------------------- solving */

/* A problem that has only some of the examples sees their rows alone, renumbered. */
static esp_status narrow_rows(const espi_training *t, espi_variables *v, espi_rows *rows, espi_rows **narrow,
                              esp_error *err)
{
    *narrow = NULL;
    if (v->count >= t->count) return ESP_OK;
    const bool narrow_already = espi_rows_count(rows) == v->count;
    const esp_status status = narrow_already ? ESP_OK : espi_rows_subset(rows, v->example, v->count, narrow, err);
    for (size_t k = 0; status == ESP_OK && k < v->count; k++) v->example[k] = (uint32_t)k;
    return status;
}

bool espi_training_pose(const espi_training *t, size_t problem, espi_variables *v)
{
    const bool ok = make_variables(v, t->fit->alpha_start[problem + 1] - t->fit->alpha_start[problem]);
    if (ok) espi_machine_of(t->settings)->pose(t, problem, v);
    return ok;
}

void espi_training_set_start(const espi_training *t, size_t problem, const espi_variables *v)
{
    double *alpha = t->fit->alpha + t->fit->alpha_start[problem];
    const double *warm = t->warm != NULL ? t->warm->alpha + t->warm->alpha_start[problem] : NULL;
    for (size_t k = 0; k < v->count; k++) {
        const double start = warm != NULL ? warm[k] * t->scale : 0.0;
        alpha[k] = start < v->bound[k] ? start : v->bound[k];
    }
}

static esp_status solve(const espi_training *t, size_t problem, espi_variables *v, espi_rows *rows, const esp_run *run,
                        esp_error *err)
{
    const espi_machine_settings *settings = espi_machine_settings_of(t->settings);
    double *alpha = t->fit->alpha + t->fit->alpha_start[problem];
    espi_rows *narrow;
    espi_training_set_start(t, problem, v);
    esp_status status = narrow_rows(t, v, rows, &narrow, err);
    if (status != ESP_OK) return status;
    const espi_smo_problem p = {.rows = narrow != NULL ? narrow : rows,
                                .variables = v->count,
                                .example = v->example,
                                .sign = v->sign,
                                .linear = v->linear,
                                .bound = v->bound,
                                .sum = v->sum,
                                .tolerance = settings->tolerance,
                                .max_iterations = settings->max_iterations,
                                .shrinking = !settings->no_shrinking,
                                .store = espi_rows_spare(rows)};
    status = espi_smo_solve(&p, run, alpha, &t->result[problem], err);
    espi_rows_free(narrow);
    if (status == ESP_ERR_CANCELLED && t->keep_partial) {
        t->result[problem].converged = false;
        t->fit->cancelled = true;
        status = ESP_OK;
    }
    return status;
}

esp_status espi_training_solve(const espi_training *t, size_t problem, espi_rows *rows, const esp_run *run,
                               esp_error *err)
{
    espi_variables v;
    esp_status status =
        espi_training_pose(t, problem, &v) ? solve(t, problem, &v, rows, run, err) : espi_no_memory(err);
    if (status == ESP_OK) { /* narrow rows were renumbered, so that the problem is posed once more */
        const double *alpha = t->fit->alpha + t->fit->alpha_start[problem];
        espi_machine_of(t->settings)->pose(t, problem, &v);
        for (size_t k = 0; k < v.count; k++)
            t->fit->coefficient[v.example[k] * t->fit->outputs + problem] += v.sign[k] * alpha[k];
        t->fit->bias[problem] = t->result[problem].bias;
    }
    espi_variables_free(&v);
    return status;
}

/* ----------------------------------------------------------- start and end */

static bool take_memory(espi_training *t)
{
    espi_fit *f = t->fit;
    f->alpha_start = espi_alloc_zero(f->outputs + 1, sizeof *f->alpha_start);
    if (f->alpha_start == NULL) return false;
    for (size_t p = 0; p < f->outputs; p++)
        f->alpha_start[p + 1] = f->alpha_start[p] + espi_machine_of(t->settings)->variables(t, p);
    f->alpha = espi_alloc(f->alpha_start[f->outputs], sizeof *f->alpha);
    f->coefficient = espi_alloc_zero(f->examples, f->outputs * sizeof *f->coefficient);
    f->bias = espi_alloc_zero(f->outputs, sizeof *f->bias);
    t->result = espi_alloc_zero(f->outputs, sizeof *t->result);
    return f->alpha != NULL && f->coefficient != NULL && f->bias != NULL && t->result != NULL;
}

esp_status espi_training_start(espi_training *t, esp_error *err)
{
    const size_t classes = t->targets->classes;
    *t->fit = (espi_fit){
        .examples = t->count, .outputs = t->settings->learner->outputs(t->settings, classes), .converged = true};
    if (!take_memory(t)) return espi_no_memory(err);
    if (espi_machine_of(t->settings)->weigh == NULL) return ESP_OK;
    t->class_weight = espi_alloc(classes, sizeof *t->class_weight);
    return t->class_weight == NULL ? espi_no_memory(err) : espi_machine_of(t->settings)->weigh(t, t->class_weight, err);
}

esp_status espi_training_end(espi_training *t, esp_status status)
{
    espi_fit *fit = t->fit;
    for (size_t p = 0; status == ESP_OK && p < fit->outputs; p++) {
        fit->iterations += t->result[p].iterations;
        fit->converged = fit->converged && t->result[p].converged;
    }
    espi_free(t->class_weight);
    espi_free(t->result);
    if (status != ESP_OK) espi_fit_free(fit);
    return status;
}

/* ------------------------------------------------------------ all problems */

typedef struct solving {
    const espi_training *training;
    espi_rows *rows;
} solving;

/* How far one of several problems is tells nothing. */
static int ask_only(void *user, const char *stage, double fraction)
{
    (void)fraction;
    const esp_run *run = user;
    return run->progress(run->user, stage, -1.0);
}

static esp_status solve_in_thread(void *context, size_t problem, const espi_worker *worker, esp_error *err)
{
    const solving *s = context;
    esp_run from = worker->run != NULL ? *worker->run : (esp_run){0};
    const esp_run run = {.threads = 1, .progress = from.progress != NULL ? ask_only : NULL, .user = &from};
    return espi_training_solve(s->training, problem, s->rows, &run, err);
}

esp_status espi_training_run(espi_training *t, espi_rows *rows, const esp_run *run, esp_error *err)
{
    solving s = {.training = t, .rows = rows};
    esp_status status = espi_training_start(t, err);
    const size_t problems = t->fit->outputs;
    /* One after the other where an interruption must leave what is done. */
    if (status == ESP_OK && espi_rows_complete(rows) && problems > 1 && !t->keep_partial)
        status = espi_parallel(run, "training", problems, solve_in_thread, &s, err);
    else
        for (size_t p = 0; status == ESP_OK && p < problems; p++) status = espi_training_solve(t, p, rows, run, err);
    return espi_training_end(t, status);
}

/* ------------------------------------------------------------------ scores */

/* scores[t * outputs + k] += c[k] row[test[t]] */
HOT static void add_scores(double *restrict scores, const float *restrict row, const uint32_t *restrict test,
                           const double *restrict c, size_t count, size_t outputs)
{
    for (size_t t = 0; t < count; t++) {
        const double value = (double)row[test[t]];
        for (size_t k = 0; k < outputs; k++) scores[t * outputs + k] += c[k] * value;
    }
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
        add_scores(scores, row, test, c, count, outputs);
    }
    return ESP_OK;
}
