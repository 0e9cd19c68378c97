/* Cross-validation of support vector machines. For each fold the source of rows is entered once where it can be, so
 * that all trials share its rows, and a trial that differs from the one before it only in what allows it starts from
 * its solution. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/svm/row_source.h"

typedef struct validation {
    espi_row_source *source;
    const espi_trial *const *trial; /* in the order of the grid; some may be missing */
    size_t trials;
    espi_trial_progress *progress;
} validation;

static esp_status show_progress(const validation *v, size_t fits, esp_error *err)
{
    espi_trial_progress *p = v->progress;
    if (p == NULL) return ESP_OK;
    p->done += fits;
    return espi_progress(v->source->problem.run, "searching", (double)p->done / (double)p->all, err);
}

/* A trial's scores of the tested examples, scores[t * outputs + k], for espi_free. */
static double *make_scores(const validation *v, const espi_trial *trial)
{
    const espi_settings *s = trial->settings;
    return espi_alloc(v->source->split->tested,
                      s->learner->outputs(s, v->source->problem.targets->classes) * sizeof(double));
}

static void hand_over(const validation *v, const espi_trial *trial, const espi_fit *fit, const double *scores)
{
    const espi_split *split = v->source->split;
    for (size_t t = 0; t < split->tested; t++)
        trial->take(trial->context, split->test[t], scores + t * fit->outputs, NULL);
}

/* Starts a training from the fit of another trial, if that is a start. */
static void start_from(espi_training *t, const espi_settings *before, const espi_fit *fit)
{
    const espi_machine *machine = espi_machine_of(t->settings);
    if (machine->scale == NULL || !espi_settings_start_from(t->settings, before)) return;
    t->warm = fit;
    t->scale = machine->scale(before, t->settings);
}

/* ------------------------------------------------------------- shared rows */

/* Fits and scores one trial. `before` is the fit of the one before it, to start from, and then its own. */
static esp_status validate_trial(const validation *v, size_t number, espi_fit *before, esp_error *err)
{
    espi_row_source *source = v->source;
    const espi_trial *trial = v->trial[number];
    espi_fit fit = {0};
    espi_training t = espi_source_training(source, trial->settings, &fit);
    double *scores = make_scores(v, trial);
    if (source->class->same_rows && number > 0 && v->trial[number - 1] == trial - 1)
        start_from(&t, v->trial[number - 1]->settings, before);
    esp_status status = scores == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = source->class->shared->fit(source, &t, err);
    if (status == ESP_OK) status = source->class->shared->score(source, &fit, scores, err);
    if (status == ESP_OK) hand_over(v, trial, &fit, scores);
    espi_free(scores);
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
    for (size_t i = 0; status == ESP_OK && i < v->trials; i++) {
        if (!entered) status = source->class->enter(source, v->trial[i]->settings, err);
        entered = true;
        if (status == ESP_OK) status = validate_trial(v, i, &fit, err);
        if (status == ESP_OK) status = show_progress(v, 1, err);
        if (source->class->same_rows) continue;
        source->class->leave(source);
        entered = false;
    }
    if (entered) source->class->leave(source);
    espi_fit_free(&fit);
    return status;
}

/* ---------------------------------------------------------------- own rows */

typedef struct group { /* trials that pose the same problems */
    const espi_trial **trial;
    espi_training *training;
    espi_fit *fit;
    double **scores;
    size_t count;
} group;

static void free_group(group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        espi_fit_free(&g->fit[i]);
        espi_free(g->scores[i]);
    }
    espi_free(g->trial);
    espi_free(g->training);
    espi_free(g->fit);
    espi_free(g->scores);
}

/* Those for pairs of classes, or those that are not. */
static esp_status make_group(const validation *v, bool pairs, group *g, esp_error *err)
{
    *g = (group){.trial = espi_alloc(v->trials, sizeof *g->trial),
                 .training = espi_alloc(v->trials, sizeof *g->training),
                 .fit = espi_alloc_zero(v->trials, sizeof *g->fit),
                 .scores = espi_alloc_zero(v->trials, sizeof *g->scores)};
    if (g->trial == NULL || g->training == NULL || g->fit == NULL || g->scores == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < v->trials; i++) {
        const espi_settings *settings = v->trial[i]->settings;
        if (espi_learns_pairs(settings) != pairs) continue;
        const size_t k = g->count++;
        g->trial[k] = v->trial[i];
        g->training[k] = espi_source_training(v->source, settings, &g->fit[k]);
        if (k > 0) start_from(&g->training[k], g->trial[k - 1]->settings, &g->fit[k - 1]);
        g->scores[k] = make_scores(v, v->trial[i]);
        if (g->scores[k] == NULL) return espi_no_memory(err);
    }
    return ESP_OK;
}

static esp_status validate_group(const validation *v, bool pairs, esp_error *err)
{
    espi_row_source *source = v->source;
    group g;
    esp_status status = make_group(v, pairs, &g, err);
    if (status == ESP_OK && g.count > 0) {
        const espi_own_fits fits = {.source = source, .training = g.training, .scores = g.scores, .count = g.count};
        status = source->class->enter(source, g.trial[0]->settings, err);
        if (status == ESP_OK) status = espi_own_fits_run(&fits, err);
        source->class->leave(source);
        for (size_t i = 0; status == ESP_OK && i < g.count; i++) hand_over(v, g.trial[i], &g.fit[i], g.scores[i]);
        if (status == ESP_OK) status = show_progress(v, g.count, err);
    }
    free_group(&g);
    return status;
}

/* -------------------------------------------------------------- all trials */

esp_status espi_source_validate(espi_row_source *source, const espi_folds *folds, const espi_trial *const *trial,
                                size_t trials, espi_trial_progress *progress, esp_error *err)
{
    const validation v = {.source = source, .trial = trial, .trials = trials, .progress = progress};
    const size_t count = source->problem.targets->count;
    const espi_split *outer = source->split;
    espi_split split = {0};
    esp_status status = espi_split_make(&split, count, err);
    source->split = &split;
    for (size_t fold = folds->first; status == ESP_OK && fold < folds->last; fold++) {
        espi_fold_split(folds->fold, count, fold, split.train, &split.trained, split.test, &split.tested);
        if (source->class->shared != NULL) {
            status = validate_shared(&v, err);
            continue;
        }
        status = validate_group(&v, false, err);
        if (status == ESP_OK) status = validate_group(&v, true, err);
    }
    source->split = outer;
    espi_split_free(&split);
    return status;
}

esp_status espi_machine_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                                    size_t trials, esp_error *err)
{
    espi_trial_progress progress = {.all = trials * (folds->last - folds->first)};
    const espi_trial **member = espi_alloc(trials, sizeof *member);
    esp_status status = member == NULL ? espi_no_memory(err) : ESP_OK;
    static const espi_row_source_class *const sources[] = {&espi_row_source_whole, &espi_row_source_pivots,
                                                           &espi_row_source_selected, &espi_row_source_folded};
    for (size_t n = 0; status == ESP_OK && n < sizeof sources / sizeof *sources; n++) {
        espi_row_source *source = NULL;
        size_t members = 0;
        for (size_t i = 0; i < trials; i++)
            if (espi_source_for(problem, trial[i].settings) == sources[n]) member[members++] = &trial[i];
        if (members == 0) continue;
        status = espi_source_open(problem, member[0]->settings, &source, err);
        if (status == ESP_OK)
            status = espi_source_validate(source, folds, member, members, trials > 1 ? &progress : NULL, err);
        espi_source_close(source);
    }
    espi_free(member);
    return status;
}
