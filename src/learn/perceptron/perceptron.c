/* Perceptrons, as perceptron.h says: the step. */
#include "learn/perceptron/perceptron.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEW_CLASS SIZE_MAX

esp_status espi_perceptron_new(espi_settings *settings, const esp_kernel *kernel, espi_perceptron **out, esp_error *err)
{
    *out = NULL;
    espi_perceptron *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) {
        espi_settings_free(settings);
        return espi_no_memory(err);
    }
    p->settings = (const espi_perceptron_settings *)(const void *)settings;
    p->state = (espi_online_state){
        .settings = settings, .wanted_epochs = p->settings->epochs, .shuffle = p->settings->shuffle};
    p->outputs = 1;
    const esp_status status = espi_kernel_copy(kernel, &p->kernel, err);
    if (status == ESP_OK) *out = p;
    else espi_perceptron_free(p);
    return status;
}

void espi_perceptron_leave(espi_perceptron *p)
{
    espi_copier_free(p->copier);
    p->copier = NULL;
    p->source = NULL;
}

void espi_perceptron_free(espi_perceptron *p)
{
    if (p == NULL) return;
    espi_perceptron_leave(p);
    espi_growing_free(p->sum);
    esp_dataset_free(p->examples);
    esp_kernel_free(p->kernel);
    for (size_t c = 0; c < p->classes; c++) espi_free(p->class[c].name);
    espi_free(p->class);
    espi_free(p->coefficient);
    espi_free(p->step);
    espi_free(p->score);
    espi_free(p->change);
    espi_settings_free(p->state.settings);
    espi_free(p);
}

/* ----------------------------------------------------------------- classes */

static int by_order(const void *x, const void *y)
{
    const espi_met_class *a = x, *b = y;
    return espi_class_order(a->name, a->value, b->name, b->value);
}

/* The class of a target. One that was given as a number is of the class of an equal number, however written. */
static bool find_class(const espi_perceptron *p, const espi_symbol *target, bool number, size_t *out)
{
    double value, other;
    for (size_t c = 0; c < p->classes; c++) {
        *out = c;
        if (strcmp(p->class[c].name, target->text) == 0) return true;
    }
    if (!number || !espi_number_parse(target->text, target->size, &value)) return false;
    for (size_t c = 0; c < p->classes; c++) {
        *out = c;
        if (espi_number_parse(p->class[c].name, strlen(p->class[c].name), &other) && value == other) return true;
    }
    return false;
}

static double find_weight(const espi_perceptron_settings *settings, const char *name)
{
    const char *text = settings->class_weight != NULL ? settings->class_weight : "", *label;
    size_t size;
    double weight = 1.0, value;
    while (espi_weight_next(&text, &label, &size, &value))
        if (strlen(name) == size && memcmp(name, label, size) == 0) weight = value;
    return weight;
}

esp_status espi_perceptron_add_class(espi_perceptron *p, const char *name, esp_error *err)
{
    if (!espi_reserve(&p->class, &p->class_capacity, p->classes + 1, sizeof *p->class)) return espi_no_memory(err);
    char *copy = espi_copy_text(name, strlen(name));
    if (copy == NULL) return espi_no_memory(err);
    p->class[p->classes++] = (espi_met_class){.name = copy, .weight = find_weight(p->settings, name)};
    return ESP_OK;
}

static void sort_classes(espi_perceptron *p)
{
    bool numbers = true;
    for (size_t c = 0; c < p->classes; c++) {
        espi_met_class *class = &p->class[c];
        class->before = c + 1 < p->classes ? c : NEW_CLASS;
        numbers = espi_number_parse(class->name, strlen(class->name), &class->value) && numbers;
    }
    for (size_t c = 0; c < p->classes && !numbers; c++) p->class[c].value = 0.0; /* then names alone give the order */
    qsort(p->class, p->classes, sizeof *p->class, by_order);
}

/* What an update adds to the score of a class, before the last one came. */
static double share(const double *change, size_t class, size_t classes)
{
    if (class == NEW_CLASS) return 0.0;
    return classes > 2 ? change[class] : classes == 2 && class == 0 ? -change[0] : change[0];
}

static bool reserve_outputs(espi_perceptron *p, size_t outputs)
{
    double *score = espi_alloc(outputs, sizeof *score), *change = espi_alloc(outputs, sizeof *change);
    if (score == NULL || change == NULL) {
        espi_free(score);
        espi_free(change);
        return false;
    }
    espi_free(p->score);
    espi_free(p->change);
    p->score = score;
    p->change = change;
    return true;
}

/* Lays the coefficients out for the classes as they stand now. */
static esp_status lay_out(espi_perceptron *p, esp_error *err)
{
    const size_t outputs = p->classes > 2 ? p->classes : 1, former = p->classes - 1;
    double *laid = espi_alloc(p->updates, outputs * sizeof *laid);
    if (laid == NULL || !reserve_outputs(p, outputs)) {
        espi_free(laid);
        return espi_no_memory(err);
    }
    for (size_t e = 0; e < p->updates; e++) {
        const double *change = p->coefficient + e * p->outputs;
        if (outputs > 1)
            for (size_t k = 0; k < outputs; k++) laid[e * outputs + k] = share(change, p->class[k].before, former);
        else laid[e] = p->class[p->classes - 1].before != NEW_CLASS ? change[0] : -change[0];
    }
    espi_free(p->coefficient);
    p->coefficient = laid;
    p->coefficient_capacity = p->updates * outputs;
    p->outputs = outputs;
    return ESP_OK;
}

esp_status espi_perceptron_build(espi_perceptron *p, const esp_run *run, esp_error *err)
{
    espi_growing_free(p->sum);
    p->sum = NULL;
    if (p->updates == 0) return ESP_OK;
    espi_growing *sum = NULL;
    esp_status status =
        espi_growing_new(p->kernel, p->examples, (espi_form)p->settings->form, p->outputs, &p->state.run, &sum, err);
    for (size_t e = 0; status == ESP_OK && e < p->updates; e++) {
        status = espi_growing_look(sum, err);
        if (status == ESP_OK) status = espi_growing_keep(sum, p->coefficient + e * p->outputs, err);
        if (status == ESP_OK && e % 256 == 0)
            status = espi_progress(run, "restoring", (double)e / (double)p->updates, err);
    }
    if (status == ESP_OK) p->sum = sum;
    else espi_growing_free(sum);
    return status;
}

static esp_status new_class(espi_perceptron *p, const char *name, esp_error *err)
{
    esp_status status = espi_perceptron_add_class(p, name, err);
    if (status != ESP_OK) return status;
    sort_classes(p);
    status = lay_out(p, err);
    if (status != ESP_OK) return status;
    /* Half a sum is none: this is not the moment to be interrupted. */
    const esp_run run = p->state.run;
    p->state.run = (esp_run){0};
    status = espi_perceptron_build(p, NULL, err);
    p->state.run = run;
    return status;
}

/* ---------------------------------------------------------------- one step */

/* Prepares for examples of this dataset. */
static esp_status attach(espi_perceptron *p, const esp_dataset *data, esp_error *err)
{
    if (data == p->source) return ESP_OK;
    espi_perceptron_leave(p);
    if (data->target_name == NULL) return espi_no_target(ESP_ERR_PARSE, err);
    esp_status status = espi_check_columns(p->kernel, data, err);
    if (status == ESP_OK && p->sum == NULL && p->updates == 0) {
        esp_kernel *bound = NULL;
        status = espi_kernel_bind_names(p->kernel, data, &bound, err);
        if (status == ESP_OK) status = espi_model_check_kernel(esp_kernel_text(bound), err);
        if (status != ESP_OK) {
            esp_kernel_free(bound);
            return status;
        }
        esp_kernel_free(p->kernel);
        p->kernel = bound;
    }
    if (status != ESP_OK) return status;
    if (p->examples == NULL) p->examples = espi_dataset_new(ESP_FORMAT_JSONL);
    bool *column = espi_alloc(data->columns, sizeof *column);
    if (column == NULL || p->examples == NULL) {
        espi_free(column);
        return espi_no_memory(err);
    }
    espi_used_columns(p->kernel, data, column);
    status = espi_copier_new(data, column, p->examples, &p->copier, err);
    espi_free(column);
    if (status == ESP_OK) p->source = data;
    return status;
}

/* The current example was not learned from. The first of all takes the columns with it. */
static void take_back(espi_perceptron *p)
{
    if (p->updates > 0) {
        espi_row_undo(p->examples);
        return;
    }
    espi_perceptron_leave(p);
    espi_growing_free(p->sum);
    p->sum = NULL;
    esp_dataset_free(p->examples);
    p->examples = NULL;
}

static bool was_seen(const espi_met_class *class) { return class->tally.hits + class->tally.misses > 0; }

/* The class that the scores tell, as espi_decide would; among those seen before. NEW_CLASS: there is none. */
static size_t predict(const espi_perceptron *p)
{
    const double tie = p->tie;
    if (p->classes == 2 && was_seen(&p->class[0]) && was_seen(&p->class[1])) return p->score[0] > tie;
    size_t best = NEW_CLASS;
    for (size_t c = 0; c < p->classes; c++) {
        if (!was_seen(&p->class[c])) continue;
        if (best == NEW_CLASS || (p->classes > 2 && p->score[c] > p->score[best] + tie)) best = c;
    }
    return best;
}

/* p->change, and whether there is any. */
static bool find_change(espi_perceptron *p, size_t class)
{
    bool wrong = false;
    for (size_t k = 0; k < p->outputs; k++) {
        const bool positive = p->outputs > 1 ? k == class : class + 1 == p->classes;
        const double y = positive ? 1.0 : -1.0;
        const bool errs = y * p->score[k] <= p->settings->margin + p->tie;
        p->change[k] = errs ? y * p->class[class].weight : 0.0;
        wrong = wrong || errs;
    }
    return wrong;
}

static esp_status keep(espi_perceptron *p, esp_error *err)
{
    if (!espi_reserve(&p->coefficient, &p->coefficient_capacity, (p->updates + 1) * p->outputs,
                      sizeof *p->coefficient) ||
        !espi_reserve(&p->step, &p->step_capacity, p->updates + 1, sizeof *p->step))
        return espi_no_memory(err);
    const esp_status status = espi_growing_keep(p->sum, p->change, err);
    if (status != ESP_OK) return status;
    memcpy(p->coefficient + p->updates * p->outputs, p->change, p->outputs * sizeof *p->change);
    p->step[p->updates++] = p->state.steps + 1;
    return ESP_OK;
}

/* The scores of the current example, which is the last row of the examples. */
static esp_status look(espi_perceptron *p, esp_error *err)
{
    esp_status status = ESP_OK;
    if (p->sum == NULL)
        status = espi_growing_new(p->kernel, p->examples, (espi_form)p->settings->form, p->outputs, &p->state.run,
                                  &p->sum, err);
    if (status == ESP_OK) status = espi_growing_look(p->sum, err);
    double magnitude = 0.0;
    for (size_t k = 0; k < p->outputs; k++) p->score[k] = 0.0;
    if (status == ESP_OK && p->updates > 0) status = espi_growing_score(p->sum, p->score, &magnitude, err);
    p->tie = ESPI_TIE * magnitude;
    return status;
}

esp_status espi_perceptron_learn(espi_perceptron *p, const esp_dataset *data, size_t row, esp_error *err)
{
    size_t class;
    esp_status status = attach(p, data, err);
    if (status != ESP_OK) return status;
    const espi_symbol *target = &data->target_texts.symbol[data->target[row]];
    if (!find_class(p, target, esp_dataset_target_is_number(data), &class)) {
        status = new_class(p, target->text, err);
        if (status != ESP_OK) return status;
        find_class(p, target, false, &class);
    }
    status = espi_copier_row(p->copier, row, err);
    if (status != ESP_OK) return status;
    status = look(p, err);
    if (status != ESP_OK) {
        take_back(p);
        return status;
    }
    const size_t predicted = predict(p);
    if (find_change(p, class)) status = keep(p, err);
    else take_back(p);
    if (status != ESP_OK) return status;
    p->state.steps++;
    p->state.at++;
    p->mistakes += predicted != class;
    if (predicted == class) p->class[class].tally.hits++;
    else p->class[class].tally.misses++;
    if (predicted != class && predicted != NEW_CLASS) p->class[predicted].tally.false_alarms++;
    return ESP_OK;
}

void espi_perceptron_quality(const espi_perceptron *p, double *accuracy, double *f1)
{
    *accuracy = p->state.steps > 0 ? (double)(p->state.steps - p->mistakes) / (double)p->state.steps : 0.0;
    double sum = 0.0;
    for (size_t c = p->classes == 2 ? 1 : 0; p->classes > 1 && c < p->classes; c++) {
        const espi_tally *t = &p->class[c].tally;
        const double hits = 2.0 * (double)t->hits;
        if (t->hits > 0) sum += hits / (hits + (double)t->misses + (double)t->false_alarms);
    }
    *f1 = p->classes > 2 ? sum / (double)p->classes : sum;
}

size_t espi_perceptron_bytes(const espi_perceptron *p)
{
    size_t bytes = p->coefficient_capacity * sizeof *p->coefficient + p->step_capacity * sizeof *p->step +
                   p->class_capacity * sizeof *p->class;
    for (size_t i = 0; p->examples != NULL && i < p->examples->columns; i++)
        bytes += espi_column_bytes(&p->examples->column[i]);
    return bytes + (p->sum != NULL ? espi_growing_measure(p->sum).bytes : 0);
}
