/* Rows of kernels that select patterns (fseq, fsst).
 *
 * What such a kernel sums over is mined from the training examples of a problem and tells its two classes apart. So
 * each problem (the only one, one per class, one per pair) has its own kernel, a *variant*: the expression with what
 * was selected from the training examples of that problem, and with its own Gram rows. One variant after the other has
 * its rows; threads share the work inside. A fold is a dataset of its training examples alone, so that nothing of its
 * test part can get into a selection. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/decision.h"
#include "learn/svm/row_source.h"
#include "mine/mine.h"

typedef struct selected_source {
    espi_row_source source;
    const espi_settings *settings;
    const esp_dataset *train, *test; /* of the split: the data themselves, or the next two */
    esp_dataset *own_train, *own_test;
    /* the current problem */
    size_t number;
    uint32_t *member; /* its examples, among those trained on */
    size_t members;
    uint8_t *positive;       /* per member */
    bool one_class;          /* they are all of one */
    const esp_dataset *part; /* the members: `train`, or the next */
    esp_dataset *own_part;
    esp_kernel *kernel; /* the variant; NULL: there is no current problem */
    espi_bound *bound;
    espi_rows *rows;
} selected_source;

static selected_source *view(espi_row_source *source) { return (selected_source *)(void *)source; }

/* ------------------------------------------------------------------ splits */

/* The rows of one list as a dataset; the data themselves where these are all. *own is to be freed. */
static esp_status take_rows(const espi_problem *p, const uint32_t *row, size_t count, const esp_dataset **out,
                            esp_dataset **own, esp_error *err)
{
    *out = p->data;
    if (count == p->data->rows) return ESP_OK;
    bool *wanted = espi_alloc_zero(p->data->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < count; i++) wanted[row[i]] = true;
    const esp_status status = espi_copy_rows(p->kernel, p->data, wanted, own, err);
    espi_free(wanted);
    *out = *own;
    return status;
}

static esp_status enter(espi_row_source *source, const espi_settings *settings, esp_error *err)
{
    selected_source *s = view(source);
    const espi_split *split = source->split;
    s->settings = settings;
    const esp_status status = take_rows(&source->problem, split->train, split->trained, &s->train, &s->own_train, err);
    if (status != ESP_OK || split->tested == 0) return status;
    return take_rows(&source->problem, split->test, split->tested, &s->test, &s->own_test, err);
}

static void end(espi_row_source *source)
{
    selected_source *s = view(source);
    espi_rows_free(s->rows);
    espi_bound_free(s->bound);
    esp_kernel_free(s->kernel);
    esp_dataset_free(s->own_part);
    espi_free(s->member);
    espi_free(s->positive);
    s->rows = NULL;
    s->bound = NULL;
    s->kernel = NULL;
    s->own_part = NULL;
    s->member = NULL;
    s->positive = NULL;
    s->members = 0;
}

static void leave(espi_row_source *source)
{
    selected_source *s = view(source);
    end(source);
    esp_dataset_free(s->own_train);
    esp_dataset_free(s->own_test);
    s->own_train = s->own_test = NULL;
}

/* ---------------------------------------------------------------- variants */

static esp_status find_members(selected_source *s, esp_error *err)
{
    const espi_targets *targets = s->source.problem.targets;
    const espi_split *split = s->source.split;
    const bool pairs = espi_learns_pairs(s->settings);
    size_t positive, negative, positives = 0;
    espi_output_classes(pairs, targets->classes, s->number, &positive, &negative);
    s->member = espi_alloc(split->trained, sizeof *s->member);
    s->positive = espi_alloc(split->trained, sizeof *s->positive);
    if (s->member == NULL || s->positive == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < split->trained; i++) {
        const size_t c = targets->class_of[split->train[i]];
        if (c != positive && c != negative && negative < targets->classes) continue;
        s->positive[s->members] = c == positive;
        positives += c == positive;
        s->member[s->members++] = (uint32_t)i;
    }
    s->one_class = positives == 0 || positives == s->members;
    return ESP_OK;
}

/* The members as their own dataset, unless they are all that is trained on. */
static esp_status make_part(selected_source *s, esp_error *err)
{
    s->part = s->train;
    if (s->members == s->source.split->trained) return ESP_OK;
    bool *wanted = espi_alloc_zero(s->train->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t k = 0; k < s->members; k++) wanted[s->member[k]] = true;
    const esp_status status = espi_copy_rows(s->source.problem.kernel, s->train, wanted, &s->own_part, err);
    espi_free(wanted);
    s->part = s->own_part;
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

static esp_status select_patterns(selected_source *s, esp_error *err)
{
    espi_selection **selection = espi_alloc(s->kernel->leaves, sizeof *selection);
    if (selection == NULL) return espi_no_memory(err);
    const esp_status status =
        espi_kernel_select(s->kernel, s->part, s->positive, NULL, s->source.problem.run, selection, err);
    for (size_t i = 0; i < s->kernel->leaves; i++) s->kernel->leaf[i].selection = selection[i];
    espi_free(selection);
    return status;
}

static esp_status rows(espi_row_source *source, size_t number, espi_rows **out, esp_error *err)
{
    selected_source *s = view(source);
    const espi_problem *p = &source->problem;
    s->number = number;
    esp_status status = find_members(s, err);
    if (status == ESP_OK) status = make_part(s, err);
    if (status == ESP_OK) status = espi_kernel_bind_names(p->kernel, p->data, &s->kernel, err);
    if (status == ESP_OK) status = s->one_class ? select_nothing(s->kernel, err) : select_patterns(s, err);
    if (status == ESP_OK) status = espi_bind(s->kernel, s->part, s->part, p->run, &s->bound, err);
    if (status == ESP_OK) status = espi_rows_new(s->bound, p->run, &s->rows, err);
    *out = s->rows;
    return status;
}

/* Scores of the problem's output for the rows to be scored, in their order. */
static esp_status score(espi_row_source *source, const espi_fit *fit, size_t number, double *scores, esp_error *err)
{
    selected_source *s = view(source);
    const espi_split *split = source->split;
    const esp_run *run = source->problem.run;
    const size_t outputs = fit->outputs;
    espi_decision decision = {0};
    double *coefficient = espi_alloc(s->members, sizeof *coefficient);
    esp_status status = coefficient == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < s->members; k++)
        coefficient[k] = fit->coefficient[s->member[k] * outputs + number];
    if (status == ESP_OK) status = espi_decision_make(&decision, s->kernel, s->part, coefficient, 1, run, err);
    if (status == ESP_OK) status = espi_decision_score(&decision, s->test, run, scores + number, outputs, err);
    for (size_t t = 0; status == ESP_OK && t < split->tested; t++) scores[t * outputs + number] += fit->bias[number];
    espi_decision_free(&decision);
    espi_free(coefficient);
    return status;
}

static esp_status take(espi_row_source *source, size_t number, esp_kernel **out, esp_error *err)
{
    selected_source *s = view(source);
    if (s->kernel != NULL && s->number == number) {
        espi_rows_free(s->rows);
        espi_bound_free(s->bound);
        s->rows = NULL;
        s->bound = NULL;
        *out = s->kernel;
        s->kernel = NULL;
        return ESP_OK;
    }
    const esp_status status = espi_kernel_bind_names(source->problem.kernel, source->problem.data, out, err);
    return status == ESP_OK ? select_nothing(*out, err) : status;
}

static const espi_own_rows own = {.rows = rows, .score = score, .take = take, .end = end};

const espi_row_source_class espi_row_source_selected = {
    .size = sizeof(selected_source), .same_rows = true, .enter = enter, .leave = leave, .own = &own};
