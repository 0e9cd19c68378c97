/* What a model is, in words and numbers: for `espalier info` and its like. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "kernel/expression/hyper.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEST = 3 }; /* patterns that a summary shows of each output */

static void add_text(espi_text *t, const char *key, const char *value)
{
    espi_text_string(t, key);
    espi_text_string(t, "\t");
    espi_text_field(t, value, strlen(value));
    espi_text_string(t, "\n");
}

static void add_count(espi_text *t, const char *key, uint64_t count)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, count);
    add_text(t, key, digits);
}

/* "tree: productions<TAB>12" */
static void add_column_count(espi_text *t, const char *column, const char *key, size_t count)
{
    espi_text_field(t, column, strlen(column));
    espi_text_string(t, ": ");
    add_count(t, key, count);
}

static esp_status add_columns(espi_text *t, const esp_dataset *data, esp_error *err)
{
    for (size_t i = 0; i < data->columns; i++) {
        const espi_column *c = &data->column[i];
        esp_column_summary counts;
        const esp_status status = esp_dataset_summarize(data, i, &counts, err);
        if (status != ESP_OK) return status;
        if (c->type == ESP_COLUMN_TREE) {
            add_column_count(t, c->name, "distinct subtrees", counts.distinct);
            add_column_count(t, c->name, "productions", counts.productions);
        } else {
            add_column_count(t, c->name, c->type == ESP_COLUMN_VECTOR ? "features" : "words", counts.distinct);
        }
    }
    return ESP_OK;
}

/* What it takes to go on. The examples behind the last complete epoch are those of a run that is not at its end. */
static void add_history(espi_text *t, const espi_history *h)
{
    add_count(t, "steps", h->steps);
    add_count(t, "epochs", h->epochs);
    if (h->at > 0) add_count(t, "into the next epoch", h->at);
}

/* The best patterns: `best` gets their numbers, by value and then the shorter one first. A file may hold any values, so
 * that this is done without the texts of all. */
static size_t best_patterns(const espi_patterns *set, uint32_t best[BEST])
{
    size_t count = 0;
    for (size_t i = 0; i < set->patterns; i++) {
        size_t at = count < BEST ? count++ : BEST;
        for (; at > 0 && set->statistic[i] > set->statistic[best[at - 1]]; at--)
            if (at < BEST) best[at] = best[at - 1];
        if (at < BEST) best[at] = (uint32_t)i;
    }
    return count;
}

/* "HUM: fseq patterns<TAB>1204" and, for the best, "HUM: fseq<TAB>812.3 who"; of a pair, "HUM against LOC: ...". */
static void add_output(espi_text *t, const esp_model *m, size_t output, const espi_leaf *leaf, const char *key)
{
    size_t positive, negative;
    espi_output_classes(m->one_vs_one, m->classes, output, &positive, &negative);
    espi_text_field(t, m->class_name[positive], strlen(m->class_name[positive]));
    if (m->one_vs_one) espi_text_string(t, " against ");
    if (m->one_vs_one) espi_text_field(t, m->class_name[negative], strlen(m->class_name[negative]));
    espi_text_string(t, ": ");
    espi_text_string(t, leaf->class->name);
    espi_text_string(t, key);
}

static void add_patterns(espi_text *t, const esp_model *m, size_t output, const espi_leaf *leaf)
{
    const espi_patterns *set = espi_selection_set(leaf->selection);
    uint32_t best[BEST];
    add_output(t, m, output, leaf, " ");
    add_count(t, "patterns", set->patterns);
    const size_t count = best_patterns(set, best);
    for (size_t i = 0; i < count; i++) {
        espi_text pattern = {0};
        char value[40];
        snprintf(value, sizeof value, "%.6g ", set->statistic[best[i]]);
        espi_text_string(&pattern, value);
        espi_selection_text(leaf->selection, best[i], &pattern);
        char *text = espi_text_take(&pattern);
        add_output(t, m, output, leaf, "");
        if (text != NULL) add_text(t, "", text);
        else t->failed = true;
        espi_free(text);
    }
}

esp_status esp_model_summary(const esp_model *m, char **out, esp_error *err)
{
    espi_text t = {0};
    uint64_t bytes = 0;
    *out = NULL;
    esp_status status = espi_model_size(m, &bytes, err);
    add_text(&t, "learner", m->learner);
    char *kernel = espi_kernel_print_short(m->kernel);
    if (kernel != NULL) add_text(&t, "kernel", kernel);
    else t.failed = true;
    espi_free(kernel);
    if (m->settings != NULL) add_text(&t, "settings", m->settings);
    if (m->classes > 0) add_count(&t, "classes", m->classes);
    for (size_t i = 0; i < m->classes; i++) add_text(&t, "class", m->class_name[i]);
    add_count(&t, "outputs", m->outputs);
    if (m->classes > 0) add_text(&t, "probabilities", m->platt != NULL || m->gaussian != NULL ? "yes" : "no");
    add_count(&t, "support examples", m->support->rows);
    if (m->gaussian != NULL && m->classes == 0) espi_text_fact(&t, "mean", m->bias[0]);
    if (status == ESP_OK) status = add_columns(&t, m->support, err);
    if (m->history != NULL) add_history(&t, m->history);
    for (size_t k = 0; m->variant != NULL && k < m->outputs; k++)
        for (size_t i = 0; i < m->variant[k]->leaves; i++)
            if (m->variant[k]->leaf[i].selection != NULL) add_patterns(&t, m, k, &m->variant[k]->leaf[i]);
    add_count(&t, "bytes", bytes);
    if (m->summary != NULL) espi_text_string(&t, m->summary);
    if (status == ESP_OK) {
        *out = espi_text_take(&t);
        if (*out == NULL) status = espi_no_memory(err);
    }
    espi_text_free(&t);
    return status;
}

/* -------------------------------------------------------- hyperparameters */

static int by_value(const void *a, const void *b)
{
    const espi_hyper *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value) : strcmp(x->name, y->name);
}

esp_status esp_model_hyperparameters(const esp_model *m, char **out, esp_error *err)
{
    espi_text text = {0};
    espi_hyper *hyper = NULL;
    size_t count = 0;
    *out = NULL;
    esp_status status = m->gaussian != NULL ? espi_hypers_new(m->kernel, &hyper, &count, err) : ESP_OK;
    if (status != ESP_OK) return status;
    const bool noisy = m->gaussian != NULL && m->classes == 0;
    bool told = !noisy;
    if (count > 0) qsort(hyper, count, sizeof *hyper, by_value);
    for (size_t i = 0; i <= count; i++) {
        const bool noise = !told && (i == count || m->gaussian->noise > hyper[i].value);
        if (noise) espi_text_fact(&text, "noise", m->gaussian->noise);
        told = told || noise;
        if (i == count) break;
        espi_text_field(&text, hyper[i].name, strlen(hyper[i].name));
        espi_text_fact(&text, "", hyper[i].value);
    }
    espi_hypers_free(hyper, count);
    *out = espi_text_take(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}
