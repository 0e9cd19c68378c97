#include "learn/svm/selected.h"

#include "base/alloc.h"
#include "base/status.h"
#include "learn/model/model.h"

/* ---------------------------------------------------------------- decisions */

void espi_decision_free(espi_decision *d)
{
    espi_folded_free(d->folded);
    esp_dataset_free(d->example);
    espi_free(d->coefficient);
    *d = (espi_decision){0};
}

esp_status espi_decision_make(espi_decision *d, const esp_kernel *kernel, const esp_dataset *data,
                              const double *coefficient, size_t stride, const esp_run *run, esp_error *err)
{
    bool *wanted = espi_alloc(data->rows, sizeof *wanted);
    size_t count = 0;
    *d = (espi_decision){.coefficient = espi_alloc(data->rows, sizeof *d->coefficient)};
    esp_status status = wanted == NULL || d->coefficient == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) {
        wanted[i] = coefficient[i * stride] != 0.0;
        if (wanted[i]) d->coefficient[count++] = coefficient[i * stride];
    }
    if (status == ESP_OK) status = espi_copy_rows(kernel, data, wanted, &d->example, err);
    if (status == ESP_OK) status = espi_folded_new(kernel, d->example, d->coefficient, 1, run, &d->folded, err);
    espi_free(wanted);
    if (status != ESP_OK) espi_decision_free(d);
    return status;
}

esp_status espi_decision_score(const espi_decision *d, const esp_dataset *data, const esp_run *run, double *scores,
                               size_t stride, esp_error *err)
{
    double *part = espi_alloc(data->rows, sizeof *part);
    esp_status status = part == NULL ? espi_no_memory(err) : espi_folded_score(d->folded, data, run, part, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) scores[i * stride] = part[i];
    espi_free(part);
    return status;
}

void espi_decisions_free(espi_decision *decision, size_t count)
{
    for (size_t k = 0; decision != NULL && k < count; k++) espi_decision_free(&decision[k]);
    espi_free(decision);
}

esp_status espi_decisions_new(const esp_model *m, const esp_run *run, espi_decision **out, esp_error *err)
{
    espi_decision *decision = espi_alloc_zero(m->outputs, sizeof *decision);
    esp_status status = decision == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++)
        status = espi_decision_make(&decision[k], m->variant[k], m->support, m->coefficient + k, m->outputs, run, err);
    if (status == ESP_OK) *out = decision;
    else espi_decisions_free(decision, m->outputs);
    return status;
}

/* ----------------------------------------------------------------- variants */

esp_status espi_selected_check(const esp_kernel *kernel, const espi_settings *settings, esp_error *err)
{
    if (settings->learner != ESPI_SVR && settings->inducing == 0) return ESP_OK;
    for (size_t i = 0; i < kernel->leaves; i++)
        if (espi_leaf_selects(&kernel->leaf[i]))
            return espi_fail(
                err, ESP_ERR_PARAM, "%s selects patterns that tell classes apart; %s", kernel->leaf[i].class->name,
                settings->learner == ESPI_SVR ? "svr learns numbers, which have no classes"
                                              : "inducing needs a kernel that is the same for all classes");
    return ESP_OK;
}

typedef struct problem { /* one problem of the learner and its variant */
    size_t number;
    uint32_t *member; /* its examples, among those trained on */
    size_t members;
    uint8_t *positive; /* per member */
    bool one_class;
    const esp_dataset *part; /* the members: of all, or `own` */
    esp_dataset *own;
    esp_kernel *kernel;
    espi_bound *bound;
    espi_rows *rows;
} problem;

static void free_problem(problem *p)
{
    espi_rows_free(p->rows);
    espi_bound_free(p->bound);
    esp_kernel_free(p->kernel);
    esp_dataset_free(p->own);
    espi_free(p->member);
    espi_free(p->positive);
}

static esp_status find_members(problem *p, const espi_selected *s, const espi_settings *settings, esp_error *err)
{
    size_t positive, negative, positives = 0;
    espi_problem_classes(settings->one_vs_one, s->targets->classes, p->number, &positive, &negative);
    p->member = espi_alloc(s->trained, sizeof *p->member);
    p->positive = espi_alloc(s->trained, sizeof *p->positive);
    if (p->member == NULL || p->positive == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < s->trained; i++) {
        const size_t c = s->targets->class_of[s->train[i]];
        if (c != positive && c != negative && negative < s->targets->classes) continue;
        p->positive[p->members] = c == positive;
        positives += c == positive;
        p->member[p->members++] = (uint32_t)i;
    }
    p->one_class = positives == 0 || positives == p->members;
    return ESP_OK;
}

/* The members as a dataset of their own, unless they are all that is trained on. */
static esp_status make_part(problem *p, const espi_selected *s, const esp_dataset *train, esp_error *err)
{
    p->part = train;
    if (p->members == s->trained) return ESP_OK;
    bool *wanted = espi_alloc_zero(train->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t k = 0; k < p->members; k++) wanted[p->member[k]] = true;
    const esp_status status = espi_copy_rows(s->kernel, train, wanted, &p->own, err);
    espi_free(wanted);
    p->part = p->own;
    return status;
}

/* The expression with nothing selected: nothing tells classes apart where there is only one. */
static esp_status select_nothing(esp_kernel *kernel, esp_error *err)
{
    for (size_t i = 0; i < kernel->leaves; i++) {
        espi_leaf *leaf = &kernel->leaf[i];
        if (!espi_leaf_selects(leaf)) continue;
        leaf->selection = espi_selection_new(leaf->class->selects->kind);
        if (leaf->selection == NULL) return espi_no_memory(err);
    }
    return ESP_OK;
}

static esp_status select_patterns(problem *p, const esp_run *run, esp_error *err)
{
    espi_selection **selection = espi_alloc(p->kernel->leaves, sizeof *selection);
    if (selection == NULL) return espi_no_memory(err);
    const esp_status status = espi_kernel_select(p->kernel, p->part, p->positive, NULL, run, selection, err);
    for (size_t i = 0; i < p->kernel->leaves; i++) p->kernel->leaf[i].selection = selection[i];
    espi_free(selection);
    return status;
}

static esp_status start_problem(problem *p, const espi_selected *s, const esp_dataset *train,
                                const espi_settings *settings, const esp_run *run, esp_error *err)
{
    esp_status status = find_members(p, s, settings, err);
    if (status == ESP_OK) status = make_part(p, s, train, err);
    if (status == ESP_OK) status = espi_kernel_bind_names(s->kernel, s->data, &p->kernel, err);
    if (status == ESP_OK) status = p->one_class ? select_nothing(p->kernel, err) : select_patterns(p, run, err);
    if (status == ESP_OK) status = espi_bind(p->kernel, p->part, p->part, run, &p->bound, err);
    return status == ESP_OK ? espi_rows_new(p->bound, run, &p->rows, err) : status;
}

/* --------------------------------------------------------------------- fits */

/* The rows of one list as a dataset; the data themselves where these are all. *own is to be freed. */
static esp_status take_rows(const espi_selected *s, const uint32_t *row, size_t count, const esp_dataset **out,
                            esp_dataset **own, esp_error *err)
{
    *out = s->data;
    if (count == s->data->rows) return ESP_OK;
    bool *wanted = espi_alloc_zero(s->data->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < count; i++) wanted[row[i]] = true;
    const esp_status status = espi_copy_rows(s->kernel, s->data, wanted, own, err);
    espi_free(wanted);
    *out = *own;
    return status;
}

/* Scores of the problem's output for the rows to be scored. */
static esp_status score_problem(const problem *p, const espi_selected *s, const esp_dataset *test,
                                const espi_selected_run *r, const esp_run *run, esp_error *err)
{
    const size_t outputs = r->fit.outputs;
    espi_decision decision = {0};
    double *coefficient = espi_alloc(p->members, sizeof *coefficient), *part = espi_alloc(s->tested, sizeof *part);
    esp_status status = coefficient == NULL || part == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < p->members; k++)
        coefficient[k] = r->fit.coefficient[p->member[k] * outputs + p->number];
    if (status == ESP_OK) status = espi_decision_make(&decision, p->kernel, p->part, coefficient, 1, run, err);
    if (status == ESP_OK) status = espi_decision_score(&decision, test, run, part, 1, err);
    for (size_t t = 0; status == ESP_OK && t < s->tested; t++)
        r->scores[s->test[t] * outputs + p->number] = part[t] + r->fit.bias[p->number];
    espi_decision_free(&decision);
    espi_free(coefficient);
    espi_free(part);
    return status;
}

typedef struct job {
    const espi_selected *selected;
    const esp_dataset *train, *test;
    espi_selected_run *fits;
    espi_fitting *fitting;
    size_t count;
    esp_kernel **variant;
} job;

static esp_status fit_problem(const job *j, size_t number, const esp_run *run, esp_error *err)
{
    problem p = {.number = number};
    esp_status status = start_problem(&p, j->selected, j->train, j->fits[0].settings, run, err);
    for (size_t c = 0; status == ESP_OK && c < j->count; c++)
        status = espi_fitting_solve(&j->fitting[c], number, p.rows, run, err);
    for (size_t c = 0; status == ESP_OK && c < j->count; c++)
        if (j->fits[c].scores != NULL) status = score_problem(&p, j->selected, j->test, &j->fits[c], run, err);
    if (status == ESP_OK && j->variant != NULL) {
        j->variant[number] = p.kernel;
        espi_rows_free(p.rows);
        espi_bound_free(p.bound);
        p.rows = NULL;
        p.bound = NULL;
        p.kernel = NULL;
    }
    free_problem(&p);
    return status;
}

/* After an interruption that is to leave what is done: the other outputs know nothing. */
static esp_status give_up(const job *j, size_t from, esp_error *err)
{
    espi_fit *fit = &j->fits[0].fit;
    fit->cancelled = true;
    esp_status status = ESP_OK;
    for (size_t p = from; status == ESP_OK && j->variant != NULL && p < fit->problems; p++) {
        status = espi_kernel_bind_names(j->selected->kernel, j->selected->data, &j->variant[p], err);
        if (status == ESP_OK) status = select_nothing(j->variant[p], err);
    }
    return status;
}

static esp_status fit_problems(const job *j, const esp_run *run, esp_error *err)
{
    const espi_fit *fit = &j->fits[0].fit;
    const bool partial = j->fits[0].settings->keep_partial;
    for (size_t p = 0; p < fit->problems; p++) {
        if (fit->cancelled) return give_up(j, p, err);
        const esp_status status = fit_problem(j, p, run, err);
        if (status == ESP_ERR_CANCELLED && partial && p > 0) return give_up(j, p, err);
        if (status != ESP_OK) return status;
    }
    return ESP_OK;
}

static esp_status start_fits(const job *j, esp_error *err)
{
    const espi_selected *s = j->selected;
    esp_status status = ESP_OK;
    for (size_t c = 0; status == ESP_OK && c < j->count; c++) {
        const espi_selected_run *before = c > 0 && j->fits[c].warm ? &j->fits[c - 1] : NULL;
        status = espi_fitting_start(&j->fitting[c], &j->fits[c].fit, j->fits[c].settings, s->targets, s->train,
                                    s->trained, before != NULL ? &before->fit : NULL,
                                    before != NULL ? before->settings->cost : 0.0, err);
    }
    return status;
}

esp_status espi_selected_fit(const espi_selected *s, espi_selected_run *fits, size_t count, const esp_run *run,
                             esp_kernel **variant, esp_error *err)
{
    const size_t outputs = espi_output_count(fits[0].settings, s->targets->classes);
    esp_dataset *own_train = NULL, *own_test = NULL;
    job j = {.selected = s, .fits = fits, .count = count, .variant = variant};
    for (size_t c = 0; c < count; c++) fits[c].fit = (espi_fit){0};
    for (size_t k = 0; variant != NULL && k < outputs; k++) variant[k] = NULL;
    j.fitting = espi_alloc_zero(count, sizeof *j.fitting);
    if (j.fitting == NULL) return espi_no_memory(err);
    for (size_t c = 0; c < count; c++) j.fitting[c].fit = &fits[c].fit;
    esp_status status = take_rows(s, s->train, s->trained, &j.train, &own_train, err);
    if (status == ESP_OK && s->tested > 0) status = take_rows(s, s->test, s->tested, &j.test, &own_test, err);
    if (status == ESP_OK) status = start_fits(&j, err);
    if (status == ESP_OK) status = fit_problems(&j, run, err);
    for (size_t c = 0; c < count; c++) espi_fitting_end(&j.fitting[c], status);
    for (size_t k = 0; status != ESP_OK && variant != NULL && k < outputs; k++) {
        esp_kernel_free(variant[k]);
        variant[k] = NULL;
    }
    espi_free(j.fitting);
    esp_dataset_free(own_train);
    esp_dataset_free(own_test);
    return status;
}

/* -------------------------------------------------------------------- folds */

esp_status espi_selected_out_of_fold(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                                     const espi_targets *targets, const uint32_t *fold, size_t folds,
                                     const esp_run *run, double *scores, esp_error *err)
{
    espi_settings plain = *settings; /* no part of a fold is kept, and probabilities are not learned within */
    plain.keep_partial = plain.probability = false;
    uint32_t *train = espi_alloc(data->rows, sizeof *train), *test = espi_alloc(data->rows, sizeof *test);
    espi_selected s = {.kernel = kernel, .data = data, .targets = targets, .train = train, .test = test};
    esp_status status = train == NULL || test == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t f = 0; status == ESP_OK && f < folds; f++) {
        espi_selected_run r = {.settings = &plain, .scores = scores};
        espi_fold_split(fold, data->rows, f, train, &s.trained, test, &s.tested);
        status = espi_selected_fit(&s, &r, 1, run, NULL, err);
        espi_fit_free(&r.fit);
    }
    espi_free(train);
    espi_free(test);
    return status;
}
