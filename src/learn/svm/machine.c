/* Training and cross-validation of support vector machines: fits over the rows of a source, split by split. */
#include "learn/svm/machine.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/file.h"
#include "learn/svm/row_source.h"

#include <stdio.h>
#include <string.h>

enum { CALIBRATION_FOLDS = 5 };

esp_status espi_machine_check_kernel(const espi_settings *settings, const esp_kernel *kernel, esp_error *err)
{
    const bool numbers = (espi_capabilities(settings) & ESP_LEARNS_CLASSES) == 0;
    if (!numbers && espi_machine_settings_of(settings)->inducing == 0) return ESP_OK;
    for (size_t i = 0; i < kernel->leaves; i++)
        if (espi_leaf_selects(&kernel->leaf[i]))
            return numbers
                       ? espi_fail(err, ESP_ERR_PARAM,
                                   "%s selects patterns that tell classes apart; %s learns %s, which have no classes",
                                   kernel->leaf[i].class->name, settings->learner->name,
                                   (espi_capabilities(settings) & ESP_LEARNS_NUMBERS) != 0 ? "numbers" : "examples")
                       : espi_fail(err, ESP_ERR_PARAM,
                                   "%s selects patterns that tell classes apart; inducing needs a kernel that is "
                                   "the same for all classes",
                                   kernel->leaf[i].class->name);
    return ESP_OK;
}

void espi_machine_for_validation(espi_settings *settings)
{
    ((espi_machine_settings *)(void *)settings)->keep_partial = false;
}

/* ----------------------------------------------------------------- sources */

static void close_source(espi_row_source *source)
{
    if (source != NULL && source->class->close != NULL) source->class->close(source);
    espi_free(source);
}

static esp_status open_source(const espi_problem *problem, const espi_settings *settings, espi_row_source **out,
                              esp_error *err)
{
    const espi_row_source_class *class = espi_kernel_selects(problem->kernel)               ? &espi_row_source_selected
                                         : espi_machine_settings_of(settings)->inducing > 0 ? &espi_row_source_pivots
                                                                                            : &espi_row_source_whole;
    espi_row_source *source = *out = espi_alloc_zero(1, class->size);
    if (source == NULL) return espi_no_memory(err);
    source->class = class;
    source->problem = *problem;
    return class->open != NULL ? class->open(source, err) : ESP_OK;
}

static esp_status make_split(espi_split *split, size_t count, esp_error *err)
{
    split->train = espi_alloc(count, sizeof *split->train);
    split->test = espi_alloc(count, sizeof *split->test);
    return split->train == NULL || split->test == NULL ? espi_no_memory(err) : ESP_OK;
}

static void free_split(espi_split *split)
{
    espi_free(split->train);
    espi_free(split->test);
}

static espi_training training_of(const espi_row_source *source, const espi_settings *settings, espi_fit *fit)
{
    return (espi_training){.settings = settings,
                           .targets = source->problem.targets,
                           .example = source->split->train,
                           .count = source->split->trained,
                           .keep_partial = espi_machine_settings_of(settings)->keep_partial,
                           .fit = fit};
}

/* ------------------------------------------------------------- shared rows */

/* A fit on the rows of a source that has been entered. */
static esp_status fit_shared(espi_training *t, espi_row_source *source, esp_error *err)
{
    return espi_training_run(t, source->class->rows(source), source->problem.run, err);
}

/* ---------------------------------------------------------------- own rows */

typedef struct own_fits { /* that share the rows of each problem */
    espi_row_source *source;
    espi_training *training; /* per fit */
    double *const *scores;   /* per fit; NULL: not wanted */
    size_t count;
    esp_kernel **variant; /* per problem: the kernels; NULL: not wanted */
} own_fits;

static esp_status fit_problem(const own_fits *f, size_t problem, esp_error *err)
{
    espi_row_source *source = f->source;
    const espi_row_source_class *class = source->class;
    espi_rows *rows;
    esp_status status = class->rows_of(source, problem, &rows, err);
    for (size_t i = 0; status == ESP_OK && i < f->count; i++)
        status = espi_training_solve(&f->training[i], problem, rows, source->problem.run, err);
    for (size_t i = 0; status == ESP_OK && f->scores != NULL && i < f->count; i++)
        status = class->score_of(source, f->training[i].fit, problem, f->scores[i], err);
    if (status == ESP_OK && f->variant != NULL) status = class->take(source, problem, &f->variant[problem], err);
    class->end_of(source);
    return status;
}

/* After an interruption that is to leave what is done: the other outputs know nothing. */
static esp_status give_up(const own_fits *f, size_t from, esp_error *err)
{
    espi_fit *fit = f->training[0].fit;
    esp_status status = ESP_OK;
    fit->cancelled = true;
    for (size_t p = from; status == ESP_OK && f->variant != NULL && p < fit->outputs; p++)
        status = f->source->class->take(f->source, p, &f->variant[p], err);
    return status;
}

static esp_status fit_problems(const own_fits *f, esp_error *err)
{
    const espi_fit *fit = f->training[0].fit;
    for (size_t p = 0; p < fit->outputs; p++) {
        if (fit->cancelled) return give_up(f, p, err);
        const esp_status status = fit_problem(f, p, err);
        if (status == ESP_ERR_CANCELLED && f->training[0].keep_partial && p > 0) return give_up(f, p, err);
        if (status != ESP_OK) return status;
    }
    return ESP_OK;
}

/* Fits on the rows of each problem, for all settings together. On failure all is freed. */
static esp_status fit_own(const own_fits *f, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; i < f->count; i++) {
        espi_training *t = &f->training[i];
        *t->fit = (espi_fit){0};
        if (status == ESP_OK) status = espi_training_start(t, err);
    }
    if (status == ESP_OK) status = fit_problems(f, err);
    for (size_t i = 0; i < f->count; i++) espi_training_end(&f->training[i], status);
    return status;
}

/* -------------------------------------------------------------- validation */

typedef struct validation {
    espi_row_source *source;
    const espi_folds *folds;
    const espi_trial *trial; /* those that pose the same problems are taken together */
    size_t trials;
    const espi_trial **member; /* of the current group */
    size_t members;
    size_t fold; /* the current one */
} validation;

static esp_status tell_progress(const validation *v, size_t done, esp_error *err)
{
    const double part = ((double)v->fold + (double)done / (double)v->members) / (double)v->folds->count;
    return v->trials > 1 ? espi_progress(v->source->problem.run, "searching", part, err) : ESP_OK;
}

/* Fits and scores one trial. `before` is the fit of the one before it, to start from, and then its own. */
static esp_status validate_trial(const validation *v, size_t number, espi_fit *before, esp_error *err)
{
    const espi_trial *trial = v->member[number];
    espi_fit fit = {0};
    espi_training t = training_of(v->source, trial->settings, &fit);
    if (v->source->class->same_rows && trial->warm && number > 0) {
        t.warm = before;
        t.scale = espi_machine_of(trial->settings)->scale(v->member[number - 1]->settings, trial->settings);
    }
    esp_status status = fit_shared(&t, v->source, err);
    if (status == ESP_OK) status = v->source->class->score(v->source, &fit, trial->scores, err);
    espi_fit_free(before);
    *before = fit;
    return status;
}

static esp_status validate_shared(const validation *v, esp_error *err)
{
    espi_row_source *source = v->source;
    espi_fit fit = {0};
    bool entered = false;
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < v->members; i++) {
        if (!entered) status = source->class->enter(source, v->member[i]->settings, err);
        entered = true;
        if (status == ESP_OK) status = validate_trial(v, i, &fit, err);
        if (status == ESP_OK) status = tell_progress(v, i + 1, err);
        if (source->class->same_rows) continue;
        source->class->leave(source);
        entered = false;
    }
    if (entered) source->class->leave(source);
    espi_fit_free(&fit);
    return status;
}

static esp_status validate_own(const validation *v, esp_error *err)
{
    espi_row_source *source = v->source;
    const size_t n = v->members;
    espi_training *training = espi_alloc(n, sizeof *training);
    espi_fit *fit = espi_alloc_zero(n, sizeof *fit);
    double **scores = espi_alloc(n, sizeof *scores);
    esp_status status = training == NULL || fit == NULL || scores == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        training[i] = training_of(source, v->member[i]->settings, &fit[i]);
        scores[i] = v->member[i]->scores;
        if (i == 0 || !v->member[i]->warm) continue;
        training[i].warm = &fit[i - 1];
        training[i].scale =
            espi_machine_of(v->member[i]->settings)->scale(v->member[i - 1]->settings, v->member[i]->settings);
    }
    const own_fits fits = {.source = source, .training = training, .scores = scores, .count = n};
    if (status == ESP_OK) {
        status = source->class->enter(source, v->member[0]->settings, err);
        if (status == ESP_OK) status = fit_own(&fits, err);
        source->class->leave(source);
        if (status == ESP_OK) status = tell_progress(v, n, err);
    }
    for (size_t i = 0; fit != NULL && i < n; i++) espi_fit_free(&fit[i]);
    espi_free(training);
    espi_free(fit);
    espi_free(scores);
    return status;
}

/* The trials whose decision functions are for pairs of classes, or those whose are not. */
static void gather(validation *v, bool pairs)
{
    v->members = 0;
    for (size_t i = 0; i < v->trials; i++) {
        const espi_learner *l = v->trial[i].settings->learner;
        const bool own = l->one_vs_one != NULL && l->one_vs_one(v->trial[i].settings);
        if (own == pairs) v->member[v->members++] = &v->trial[i];
    }
}

static esp_status validate(validation *v, esp_error *err)
{
    espi_row_source *source = v->source;
    const size_t count = source->problem.data->rows;
    espi_split split = {0};
    v->member = espi_alloc(v->trials, sizeof *v->member);
    esp_status status = v->member == NULL ? espi_no_memory(err) : make_split(&split, count, err);
    source->split = &split;
    for (v->fold = 0; status == ESP_OK && v->fold < v->folds->count; v->fold++) {
        espi_fold_split(v->folds->fold, count, v->fold, split.train, &split.trained, split.test, &split.tested);
        for (int pairs = 0; status == ESP_OK && pairs < 2; pairs++) {
            gather(v, pairs == 1);
            if (v->members == 0) continue;
            status = source->class->rows != NULL ? validate_shared(v, err) : validate_own(v, err);
        }
    }
    source->split = NULL;
    free_split(&split);
    espi_free(v->member);
    return status;
}

esp_status espi_machine_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                                    size_t trials, esp_error *err)
{
    espi_row_source *source = NULL;
    esp_status status = ESP_OK;
    /* Trials with and without inducing examples have different sources; neighbours of one kind share theirs. */
    for (size_t first = 0, end; status == ESP_OK && first < trials; first = end) {
        const bool pivots = espi_machine_settings_of(trial[first].settings)->inducing > 0;
        for (end = first + 1; end < trials; end++)
            if ((espi_machine_settings_of(trial[end].settings)->inducing > 0) != pivots) break;
        status = open_source(problem, trial[first].settings, &source, err);
        validation v = {.source = source, .folds = folds, .trial = trial + first, .trials = end - first};
        if (status == ESP_OK) status = validate(&v, err);
        close_source(source);
    }
    return status;
}

/* ---------------------------------------------------------------- training */

typedef struct machine_training {
    const espi_problem *problem;
    espi_row_source *source;
    espi_split split;
    size_t outputs;
    espi_fit fit;
    esp_kernel **variant; /* per output, where the kernel selects patterns */
    double *platt;
} machine_training;

static esp_status calibrate(machine_training *t, esp_error *err)
{
    const espi_targets *targets = t->problem->targets;
    const espi_settings *settings = t->problem->settings;
    const size_t n = targets->count;
    espi_settings *plain = espi_settings_copy(settings);
    double *scores = espi_alloc(n, t->outputs * sizeof *scores);
    uint32_t *fold = espi_alloc(n, sizeof *fold);
    const espi_folds folds = {.fold = fold, .count = n < CALIBRATION_FOLDS ? n : CALIBRATION_FOLDS};
    const espi_trial trial = {.settings = plain, .scores = scores};
    validation v = {.source = t->source, .folds = &folds, .trial = &trial, .trials = 1};
    t->platt = espi_alloc(t->outputs, 2 * sizeof *t->platt);
    const bool ok = plain != NULL && scores != NULL && fold != NULL && t->platt != NULL;
    esp_status status = ok ? espi_folds_make(targets, folds.count, settings->seed, fold, err) : espi_no_memory(err);
    if (plain != NULL) settings->learner->for_validation(plain);
    if (status == ESP_OK) status = validate(&v, err);
    if (status == ESP_OK) status = espi_machine_of(settings)->calibrate(scores, targets, t->platt, err);
    espi_settings_free(plain);
    espi_free(scores);
    espi_free(fold);
    return status;
}

/* The decision functions, from all examples. */
static esp_status fit_all(machine_training *t, esp_error *err)
{
    espi_row_source *source = t->source;
    const espi_row_source_class *class = source->class;
    espi_training training = training_of(source, t->problem->settings, &t->fit);
    esp_status status = class->enter(source, t->problem->settings, err);
    if (status == ESP_OK && class->rows != NULL) {
        status = fit_shared(&training, source, err);
        if (status == ESP_OK && class->finish != NULL) status = class->finish(source, &t->fit, err);
    } else if (status == ESP_OK) {
        t->variant = espi_alloc_zero(t->outputs, sizeof(esp_kernel *));
        const own_fits fits = {.source = source, .training = &training, .count = 1, .variant = t->variant};
        status = t->variant == NULL ? espi_no_memory(err) : fit_own(&fits, err);
    }
    class->leave(source);
    return status;
}

static esp_status learn(machine_training *t, esp_error *err)
{
    const size_t count = t->problem->data->rows;
    const espi_machine *machine = espi_machine_of(t->problem->settings);
    const bool keep = espi_machine_settings_of(t->problem->settings)->keep_partial;
    const bool calibrates = machine->calibrates != NULL && machine->calibrates(t->problem->settings);
    esp_status status = make_split(&t->split, count, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++) t->split.train[i] = (uint32_t)i;
    t->split.trained = count;
    t->outputs = t->problem->settings->learner->outputs(t->problem->settings, t->problem->targets->classes);
    if (status == ESP_OK) status = open_source(t->problem, t->problem->settings, &t->source, err);
    if (status != ESP_OK) return status;
    t->source->split = &t->split;
    status = fit_all(t, err);
    if (status == ESP_OK && calibrates && !t->fit.cancelled) status = calibrate(t, err);
    if (status == ESP_ERR_CANCELLED && keep && t->fit.bias != NULL) {
        /* The decision functions are there, the probabilities are not. */
        espi_free(t->platt);
        t->platt = NULL;
        t->fit.cancelled = true;
        t->fit.converged = false;
        status = ESP_OK;
    }
    return status;
}

/* ------------------------------------------------------------------- model */

static char *summary_text(const machine_training *t)
{
    espi_text text = {0};
    char line[160];
    const char *end = t->fit.converged   ? "converged"
                      : t->fit.cancelled ? "interrupted"
                                         : "stopped at the limit of iterations";
    snprintf(line, sizeof line, "trained-on\t%zu\niterations\t%zu\nend\t%s\n", t->problem->targets->count,
             t->fit.iterations, end);
    espi_text_string(&text, line);
    return espi_text_take(&text);
}

/* The support examples with their coefficients. */
static esp_status take_support(esp_model *m, const machine_training *t, esp_error *err)
{
    const esp_dataset *data = t->problem->data;
    const size_t outputs = t->outputs;
    bool *wanted = espi_alloc_zero(data->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < data->rows * outputs; i++)
        if (t->fit.coefficient[i] != 0.0) wanted[i / outputs] = true;
    esp_status status = espi_copy_rows(m->kernel, data, wanted, &m->support, err);
    if (status == ESP_OK) {
        m->coefficient = espi_alloc(m->support->rows, outputs * sizeof *m->coefficient);
        if (m->coefficient == NULL) status = espi_no_memory(err);
    }
    for (size_t i = 0, k = 0; status == ESP_OK && i < data->rows; i++) {
        if (!wanted[i]) continue;
        memcpy(m->coefficient + k++ * outputs, t->fit.coefficient + i * outputs, outputs * sizeof *m->coefficient);
    }
    espi_free(wanted);
    return status;
}

/* Takes over the kernel and what the training has. */
static esp_status make_model(machine_training *t, esp_kernel *kernel, esp_model **out, esp_error *err)
{
    const espi_settings *settings = t->problem->settings;
    const espi_targets *targets = t->problem->targets;
    esp_model *m;
    esp_status status = espi_model_begin(settings, targets->name, targets->classes, summary_text(t), &m, err);
    if (status != ESP_OK) {
        esp_kernel_free(kernel);
        return status;
    }
    m->kernel = kernel;
    m->outputs = t->outputs;
    m->one_vs_one = m->classes > 2 && settings->learner->one_vs_one != NULL && settings->learner->one_vs_one(settings);
    m->variant = t->variant;
    m->bias = t->fit.bias;
    m->platt = t->platt;
    t->variant = NULL;
    t->fit.bias = t->platt = NULL;
    status = take_support(m, t, err);
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    return status;
}

esp_status espi_machine_train(const espi_problem *problem, esp_model **out, esp_error *err)
{
    esp_kernel *kernel = NULL; /* with the names of its columns */
    espi_problem named = *problem;
    machine_training t = {.problem = &named};
    *out = NULL;
    esp_status status = espi_kernel_bind_names(problem->kernel, problem->data, &kernel, err);
    if (status == ESP_OK) status = espi_model_check_kernel(esp_kernel_text(kernel), err);
    named.kernel = kernel;
    if (status == ESP_OK) status = learn(&t, err);
    close_source(t.source); /* before the kernel, which the model takes */
    if (status == ESP_OK) status = make_model(&t, kernel, out, err);
    else esp_kernel_free(kernel);
    espi_variants_free(t.variant, t.outputs);
    espi_fit_free(&t.fit);
    espi_free(t.platt);
    free_split(&t.split);
    return status;
}
