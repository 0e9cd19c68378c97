/* Training of support vector machines: a fit over the rows of a source, the sigmoids of probabilities, and the model.
 */
#include "learn/svm/machine.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/evaluate/shares.h"
#include "kernel/expression/columns.h"
#include "learn/model/file.h"
#include "learn/svm/folded.h"
#include "learn/svm/row_source.h"

#include <stdio.h>
#include <string.h>

enum { CALIBRATION_FOLDS = 5 };

const char *const espi_solver_names[] = {"auto", "rows", "folded", NULL};

esp_status espi_machine_check_kernel(const espi_settings *settings, const esp_kernel *kernel, esp_error *err)
{
    const bool numbers = (espi_capabilities(settings) & ESP_LEARNS_CLASSES) == 0;
    const espi_machine_settings *s = espi_machine_settings_of(settings);
    if (s->solver == ESPI_SOLVER_FOLDED) {
        if (s->inducing > 0)
            return espi_fail(err, ESP_ERR_PARAM, "inducing examples take the solver rows; folded uses all examples");
        return espi_folded_check(kernel, err);
    }
    if (!numbers && s->inducing == 0) return ESP_OK;
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

esp_status espi_machine_check_shares(const espi_settings *settings, const esp_kernel *kernel, esp_error *err)
{
    const espi_machine_settings *s = espi_machine_settings_of(settings);
    if (s->solver == ESPI_SOLVER_ROWS || s->inducing > 0)
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s needs all examples in one place; over several ranks, only the solver "
                         "folded learns",
                         s->inducing > 0 ? "inducing" : "the solver rows");
    if (s->keep_partial)
        return espi_fail(err, ESP_ERR_PARAM,
                         "keep-partial is for one process; over several ranks, a checkpoint keeps "
                         "what was learned");
    return espi_folded_check(kernel, err);
}

void espi_machine_for_validation(espi_settings *settings)
{
    ((espi_machine_settings *)(void *)settings)->keep_partial = false;
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

typedef struct kept { /* the scores of all examples */
    double *scores;
    size_t outputs;
} kept;

static void keep(void *context, size_t example, const double *score, const double *variance)
{
    const kept *k = context;
    (void)variance;
    memcpy(k->scores + example * k->outputs, score, k->outputs * sizeof *score);
}

/* Sigmoids, from scores by fits that have not seen the examples. */
static esp_status calibrate(machine_training *t, esp_error *err)
{
    const espi_targets *targets = t->problem->targets;
    const espi_settings *settings = t->problem->settings;
    const size_t n = targets->count;
    espi_settings *plain = espi_settings_copy(settings);
    uint32_t *fold = espi_alloc(n, sizeof *fold);
    kept scores = {.scores = espi_alloc(n, t->outputs * sizeof(double)), .outputs = t->outputs};
    const size_t count = n < CALIBRATION_FOLDS ? n : CALIBRATION_FOLDS;
    const espi_folds folds = {.fold = fold, .count = count, .last = count};
    const espi_trial trial = {.settings = plain, .take = keep, .context = &scores};
    const espi_trial *member = &trial;
    t->platt = espi_alloc(t->outputs, 2 * sizeof *t->platt);
    const bool ok = plain != NULL && scores.scores != NULL && fold != NULL && t->platt != NULL;
    esp_status status = ok ? espi_folds_make(targets, folds.count, settings->seed, fold, err) : espi_no_memory(err);
    if (status == ESP_OK) {
        settings->learner->for_validation(plain);
        status = espi_source_validate(t->source, &folds, &member, 1, NULL, err);
    }
    if (status == ESP_OK) status = espi_machine_of(settings)->calibrate(scores.scores, targets, t->platt, err);
    espi_settings_free(plain);
    espi_free(scores.scores);
    espi_free(fold);
    return status;
}

/* The decision functions, from all examples. */
static esp_status fit_all(machine_training *t, esp_error *err)
{
    espi_row_source *source = t->source;
    const espi_row_source_class *class = source->class;
    espi_training training = espi_source_training(source, t->problem->settings, &t->fit);
    training.checkpoint = t->problem->run != NULL ? t->problem->run->checkpoint : NULL;
    esp_status status = class->enter(source, t->problem->settings, err);
    if (status == ESP_OK && class->shared != NULL) {
        status = class->shared->fit(source, &training, err);
        if (status == ESP_OK && class->shared->finish != NULL) status = class->shared->finish(source, &t->fit, err);
    } else if (status == ESP_OK) {
        t->variant = espi_alloc_zero(t->outputs, sizeof(esp_kernel *));
        const espi_own_fits fits = {.source = source, .training = &training, .count = 1, .variant = t->variant};
        status = t->variant == NULL ? espi_no_memory(err) : espi_own_fits_run(&fits, err);
    }
    class->leave(source);
    return status;
}

/* Why there is none. */
static esp_status no_checkpoint(const espi_problem *problem, esp_error *err)
{
    const espi_machine_settings *s = espi_machine_settings_of(problem->settings);
    esp_error why;
    if (s->solver == ESPI_SOLVER_ROWS)
        return espi_fail(err, ESP_ERR_PARAM, "the solver rows keeps no checkpoint; folded does");
    if (s->inducing > 0)
        return espi_fail(err, ESP_ERR_PARAM, "inducing examples take the solver rows, which keeps no checkpoint");
    espi_kernel_folds(problem->kernel, &why);
    return espi_fail(err, ESP_ERR_PARAM, "%s; only the solver folded keeps a checkpoint", why.message);
}

static esp_status learn(machine_training *t, esp_error *err)
{
    const size_t count = t->problem->targets->count;
    const espi_machine *machine = espi_machine_of(t->problem->settings);
    const bool keep = espi_machine_settings_of(t->problem->settings)->keep_partial;
    const bool calibrates = machine->calibrates != NULL && machine->calibrates(t->problem->settings);
    esp_status status = espi_split_make(&t->split, count, err);
    for (size_t i = 0; status == ESP_OK && i < count; i++) t->split.train[i] = (uint32_t)i;
    t->split.trained = count;
    t->outputs = t->problem->settings->learner->outputs(t->problem->settings, t->problem->targets->classes);
    if (status == ESP_OK) status = espi_source_open(t->problem, t->problem->settings, &t->source, err);
    if (status != ESP_OK) return status;
    if (t->problem->run != NULL && t->problem->run->checkpoint != NULL && t->source->class != &espi_row_source_folded)
        return no_checkpoint(t->problem, err);
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
    const espi_certificate *c = &t->fit.certificate;
    char line[160];
    const char *end = t->fit.converged   ? "converged"
                      : t->fit.cancelled ? "interrupted"
                      : c->rounding      ? "stopped by rounding"
                                         : "stopped at the limit of iterations";
    snprintf(line, sizeof line, "trained-on\t%zu\niterations\t%zu\nend\t%s\n", t->problem->targets->count,
             t->fit.iterations, end);
    espi_text_string(&text, line);
    if (c->there) {
        espi_text_string(&text, "solver\tfolded\n");
        if (!t->fit.converged && !c->rounding) espi_text_fact(&text, "limit", (double)c->limit);
        espi_text_fact(&text, "primal objective", c->primal);
        espi_text_fact(&text, "dual objective", c->dual);
        espi_text_fact(&text, "relative gap", c->gap);
        espi_text_fact(&text, "worst violation", c->violation);
    }
    return espi_text_take(&text);
}

/* A copy of examples of which ranks have a share each; all that have coefficients are held. */
static esp_status copy_held(const esp_kernel *kernel, const espi_problem *problem, const bool *wanted,
                            esp_dataset **out, esp_error *err)
{
    const esp_dataset *data = problem->data;
    uint32_t *row = espi_alloc(problem->targets->count, sizeof *row);
    bool *column = espi_alloc(data->columns, sizeof *column);
    espi_copier *copier = NULL;
    size_t count = 0;
    esp_status status = row == NULL || column == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < problem->targets->count; i++)
        if (wanted[i]) row[count++] = espi_shares_row(problem->shares, (uint32_t)i);
    if (status == ESP_OK) espi_used_columns(kernel, data, column);
    if (status == ESP_OK) status = espi_copier_dataset(&copier, data, column, row, NULL, count, out, err);
    espi_copier_free(copier);
    espi_free(column);
    espi_free(row);
    return status;
}

/* The support examples with their coefficients. */
static esp_status take_support(esp_model *m, const machine_training *t, esp_error *err)
{
    const espi_problem *problem = t->problem;
    const size_t outputs = t->outputs, count = problem->targets->count;
    bool *wanted = espi_alloc_zero(count, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < count * outputs; i++)
        if (t->fit.coefficient[i] != 0.0) wanted[i / outputs] = true;
    esp_status status = problem->shares != NULL ? copy_held(m->kernel, problem, wanted, &m->support, err)
                                                : espi_copy_rows(m->kernel, problem->data, wanted, &m->support, err);
    if (status == ESP_OK) {
        m->coefficient = espi_alloc(m->support->rows, outputs * sizeof *m->coefficient);
        if (m->coefficient == NULL) status = espi_no_memory(err);
    }
    for (size_t i = 0, k = 0; status == ESP_OK && i < count; i++) {
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
    m->one_vs_one = m->classes > 2 && espi_learns_pairs(settings);
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
    espi_source_close(t.source); /* before the kernel, which the model takes */
    if (status == ESP_OK) status = make_model(&t, kernel, out, err);
    else esp_kernel_free(kernel);
    espi_variants_free(t.variant, t.outputs);
    espi_fit_free(&t.fit);
    espi_free(t.platt);
    espi_split_free(&t.split);
    return status;
}
