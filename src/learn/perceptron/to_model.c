/* From a perceptron to a model, and back. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/perceptron/perceptron.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------- to a model */

static char *summary_text(const espi_perceptron *p)
{
    espi_text text = {0};
    char line[200];
    double accuracy, f1;
    const espi_growing_size size = p->sum != NULL ? espi_growing_measure(p->sum) : (espi_growing_size){0};
    espi_perceptron_quality(p, &accuracy, &f1);
    snprintf(line, sizeof line, "trained-on\t%" PRIu64 "\nmistakes\t%" PRIu64 "\nupdates\t%zu\nrunning-accuracy\t",
             p->state.steps, p->mistakes, p->updates);
    espi_text_string(&text, line);
    espi_text_number(&text, accuracy);
    espi_text_string(&text, "\nrunning-f1\t");
    espi_text_number(&text, f1);
    snprintf(line, sizeof line, "\nnodes\t%zu\nvertices\t%zu\n", size.nodes, size.vertices);
    espi_text_string(&text, line);
    return espi_text_take(&text);
}

static bool fill_history(esp_model *m, const espi_perceptron *p)
{
    espi_history *h = m->history = espi_alloc_zero(1, sizeof *h);
    if (h == NULL) return false;
    const bool finished = p->state.at == 0 && p->state.epochs >= p->settings->epochs;
    *h = (espi_history){.steps = p->state.steps,
                        .mistakes = p->mistakes,
                        .epochs = p->state.epochs,
                        .at = p->state.at,
                        .origin = finished ? 0 : p->state.origin};
    h->step = espi_alloc(p->updates, sizeof *h->step);
    h->change = espi_alloc(p->updates, p->outputs * sizeof *h->change);
    h->tally = espi_alloc(p->classes, sizeof *h->tally);
    if (h->step == NULL || h->change == NULL || h->tally == NULL) return false;
    for (size_t e = 0; e < p->updates; e++) h->step[e] = p->step[e];
    for (size_t i = 0; i < p->updates * p->outputs; i++) h->change[i] = p->coefficient[i];
    for (size_t c = 0; c < p->classes; c++) h->tally[c] = p->class[c].tally;
    return true;
}

static bool fill_coefficients(esp_model *m, const espi_perceptron *p)
{
    m->outputs = p->outputs;
    m->bias = espi_alloc_zero(p->outputs, sizeof *m->bias);
    m->coefficient = espi_alloc(p->updates, p->outputs * sizeof *m->coefficient);
    if (m->bias == NULL || m->coefficient == NULL) return false;
    for (size_t i = 0; i < p->updates * p->outputs; i++) {
        const uint64_t lasts = p->state.steps - p->step[i / p->outputs] + 1;
        m->coefficient[i] =
            p->settings->average ? p->coefficient[i] * ((double)lasts / (double)p->state.steps) : p->coefficient[i];
    }
    return true;
}

/* Examples of several datasets, some written as arrays and some not, or of other
 * lengths, are sparse vectors together. */
static void loosen(esp_dataset *examples)
{
    for (size_t i = 0; i < examples->columns; i++) {
        espi_vectors *v = &examples->column[i].vectors;
        for (size_t r = 0; (v->dense || v->scalar) && r < examples->rows; r++)
            if (v->row[r + 1] - v->row[r] != (v->scalar ? 1 : v->features.count)) v->dense = v->scalar = false;
    }
}

static esp_status fill_model(esp_model *m, const espi_perceptron *p, esp_error *err)
{
    const size_t most = p->examples->columns > p->updates ? p->examples->columns : p->updates;
    bool *all = espi_alloc(most, sizeof *all);
    if (all == NULL) return espi_no_memory(err);
    memset(all, true, most);
    esp_status status = espi_dataset_select(p->examples, all, all, &m->support, err);
    espi_free(all);
    if (status == ESP_OK) status = espi_kernel_copy(p->kernel, &m->kernel, err);
    if (status != ESP_OK) return status;
    loosen(m->support);
    m->vote = p->settings->vote;
    return fill_coefficients(m, p) && fill_history(m, p) ? ESP_OK : espi_no_memory(err);
}

esp_status espi_perceptron_model(const espi_perceptron *p, esp_model **out, esp_error *err)
{
    char quoted[96], all[48];
    *out = NULL;
    if (p->updates == 0) return espi_fail(err, ESP_ERR_PARAM, "there is no model before the first example");
    if (p->classes < 2)
        return espi_fail(err, ESP_ERR_PARSE, "%s of class %s; a classifier needs two classes at least",
                         espi_all_examples(p->state.steps, all),
                         espi_quote(p->class[0].name, strlen(p->class[0].name), quoted));
    const char **name = espi_alloc(p->classes, sizeof *name);
    esp_model *m = NULL;
    if (name == NULL) return espi_no_memory(err);
    for (size_t c = 0; c < p->classes; c++) name[c] = p->class[c].name;
    esp_status status = espi_model_begin(p->state.settings, name, p->classes, summary_text(p), &m, err);
    espi_free(name);
    if (status == ESP_OK) status = fill_model(m, p, err);
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    return status;
}

/* ------------------------------------------------------------- from a model */

static esp_status take_classes(espi_perceptron *p, const esp_model *m, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t c = 0; status == ESP_OK && c < m->classes; c++) {
        status = espi_perceptron_add_class(p, m->class_name[c], err);
        if (status == ESP_OK) p->class[c].tally = m->history->tally[c];
    }
    return status;
}

static esp_status take_updates(espi_perceptron *p, const esp_model *m, esp_error *err)
{
    const espi_history *h = m->history;
    const size_t n = m->support->rows, most = m->support->columns > n ? m->support->columns : n;
    bool *all = espi_alloc(most, sizeof *all);
    if (all == NULL) return espi_no_memory(err);
    memset(all, true, most);
    const esp_status status = espi_dataset_select(m->support, all, all, &p->examples, err);
    espi_free(all);
    if (status != ESP_OK) return status;
    p->outputs = m->outputs;
    p->score = espi_alloc(p->outputs, sizeof *p->score);
    p->change = espi_alloc(p->outputs, sizeof *p->change);
    if (p->score == NULL || p->change == NULL ||
        !espi_reserve(&p->coefficient, &p->coefficient_capacity, n * p->outputs, sizeof *p->coefficient) ||
        !espi_reserve(&p->step, &p->step_capacity, n, sizeof *p->step))
        return espi_no_memory(err);
    for (size_t i = 0; i < n * p->outputs; i++) p->coefficient[i] = h->change[i];
    for (size_t e = 0; e < n; e++) p->step[e] = h->step[e];
    p->updates = n;
    p->state.steps = h->steps;
    p->mistakes = h->mistakes;
    p->state.epochs = h->epochs;
    p->state.at = h->at;
    p->state.origin = h->origin;
    return ESP_OK;
}

esp_status espi_perceptron_from_model(const esp_model *model, espi_settings *settings, const esp_run *run,
                                      espi_perceptron **out, esp_error *err)
{
    espi_perceptron *p = NULL;
    *out = NULL;
    esp_status status = espi_perceptron_new(settings, model->kernel, &p, err);
    if (status == ESP_OK) status = take_classes(p, model, err);
    if (status == ESP_OK) status = take_updates(p, model, err);
    if (status == ESP_OK) status = espi_perceptron_build(p, run, err);
    if (status == ESP_OK) *out = p;
    else espi_perceptron_free(p);
    return status;
}
