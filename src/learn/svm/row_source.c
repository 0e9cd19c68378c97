/* Sources of rows, and fits on one that has been entered. */
#include "learn/svm/row_source.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/evaluate/folded_sum.h"

esp_status espi_split_make(espi_split *split, size_t count, esp_error *err)
{
    split->train = espi_alloc(count, sizeof *split->train);
    split->test = espi_alloc(count, sizeof *split->test);
    return split->train == NULL || split->test == NULL ? espi_no_memory(err) : ESP_OK;
}

void espi_split_free(espi_split *split)
{
    espi_free(split->train);
    espi_free(split->test);
}

/* Whether a solver without rows is better: it is faster, as measured (docs/results.md), or a checkpoint is wanted.
 * Several decision functions share rows, so that these are better as long as they fit the memory. */
static bool is_better_folded(const espi_problem *problem, const espi_settings *settings)
{
    enum { MANY = 10000, VERY_MANY = 100000 };
    const double rows = (double)problem->targets->count;
    const size_t memory = problem->run != NULL ? problem->run->memory : 0;
    const bool many = espi_kernel_folds_well(problem->kernel) &&
                      settings->learner->outputs(settings, problem->targets->classes) == 1 && rows >= MANY;
    const bool fit = memory == 0 || rows * rows * sizeof(float) <= (double)memory;
    const bool checkpoint = problem->run != NULL && problem->run->checkpoint != NULL;
    return (many || (!fit && rows >= MANY) || rows >= VERY_MANY || checkpoint) &&
           espi_kernel_folds(problem->kernel, NULL) == ESP_OK;
}

const espi_row_source_class *espi_source_for(const espi_problem *problem, const espi_settings *settings)
{
    const espi_machine_settings *s = espi_machine_settings_of(settings);
    if (espi_kernel_selects(problem->kernel)) return &espi_row_source_selected;
    if (s->inducing > 0) return &espi_row_source_pivots;
    if (s->solver == ESPI_SOLVER_FOLDED || problem->shares != NULL) return &espi_row_source_folded;
    return s->solver == ESPI_SOLVER_AUTO && is_better_folded(problem, settings) ? &espi_row_source_folded
                                                                                : &espi_row_source_whole;
}

esp_status espi_source_open(const espi_problem *problem, const espi_settings *settings, espi_row_source **out,
                            esp_error *err)
{
    const espi_row_source_class *class = espi_source_for(problem, settings);
    espi_row_source *source = *out = espi_alloc_zero(1, class->size);
    if (source == NULL) return espi_no_memory(err);
    source->class = class;
    source->problem = *problem;
    return class->open != NULL ? class->open(source, err) : ESP_OK;
}

void espi_source_close(espi_row_source *source)
{
    if (source != NULL && source->class->close != NULL) source->class->close(source);
    espi_free(source);
}

espi_training espi_source_training(const espi_row_source *source, const espi_settings *settings, espi_fit *fit)
{
    return (espi_training){.settings = settings,
                           .targets = source->problem.targets,
                           .example = source->split->train,
                           .count = source->split->trained,
                           .keep_partial = espi_machine_settings_of(settings)->keep_partial,
                           .fit = fit};
}

/* ------------------------------------------------------------- shared rows */

static const espi_rows_of_split *view(espi_row_source *source) { return (espi_rows_of_split *)(void *)source; }

esp_status espi_rows_of_split_fit(espi_row_source *source, espi_training *training, esp_error *err)
{
    espi_rows *rows = view(source)->part != NULL ? view(source)->part : view(source)->all;
    return espi_training_run(training, rows, source->problem.run, err);
}

esp_status espi_rows_of_split_score(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err)
{
    const espi_split *split = source->split;
    return espi_fit_score(fit, view(source)->all, split->train, split->test, split->tested, scores, err);
}

/* ---------------------------------------------------------------- own rows */

static esp_status fit_problem(const espi_own_fits *f, size_t problem, esp_error *err)
{
    espi_row_source *source = f->source;
    const espi_own_rows *own = source->class->own;
    espi_rows *rows;
    esp_status status = own->rows(source, problem, &rows, err);
    for (size_t i = 0; status == ESP_OK && i < f->count; i++)
        status = espi_training_solve(&f->training[i], problem, rows, source->problem.run, err);
    for (size_t i = 0; status == ESP_OK && f->scores != NULL && i < f->count; i++)
        status = own->score(source, f->training[i].fit, problem, f->scores[i], err);
    if (status == ESP_OK && f->variant != NULL) status = own->take(source, problem, &f->variant[problem], err);
    own->end(source);
    return status;
}

/* After an interruption that is to leave what is done: the other outputs know nothing. */
static esp_status give_up(const espi_own_fits *f, size_t from, esp_error *err)
{
    espi_fit *fit = f->training[0].fit;
    esp_status status = ESP_OK;
    fit->cancelled = true;
    for (size_t p = from; status == ESP_OK && f->variant != NULL && p < fit->outputs; p++)
        status = f->source->class->own->take(f->source, p, &f->variant[p], err);
    return status;
}

static esp_status fit_problems(const espi_own_fits *f, esp_error *err)
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

esp_status espi_own_fits_run(const espi_own_fits *f, esp_error *err)
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
