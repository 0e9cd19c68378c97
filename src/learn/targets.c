/* Targets as classes or numbers. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/targets.h"

#include <stdlib.h>
#include <string.h>

typedef struct class_entry {
    const char *name;
    double value; /* if all targets read as numbers, be they given as strings or not */
    uint32_t symbol;
} class_entry;

void espi_targets_free(espi_targets *t)
{
    espi_free(t->name);
    espi_free(t->class_of);
    espi_free(t->value);
    *t = (espi_targets){0};
}

int espi_class_order(const char *name_a, double value_a, const char *name_b, double value_b)
{
    return value_a != value_b ? (value_a > value_b) - (value_a < value_b) : strcmp(name_a, name_b);
}

static int by_value(const void *x, const void *y)
{
    const class_entry *a = x, *b = y;
    return espi_class_order(a->name, a->value, b->name, b->value);
}

/* Numbers that are equal are one class, however they are written; strings are not. */
static bool number_classes(espi_targets *t, const esp_dataset *data, class_entry *entry, size_t entries)
{
    uint32_t *class_of_symbol = espi_alloc(data->target_texts.count, sizeof *class_of_symbol);
    t->name = espi_alloc(entries, sizeof *t->name);
    t->class_of = espi_alloc(t->count, sizeof *t->class_of);
    const bool ok = class_of_symbol != NULL && t->name != NULL && t->class_of != NULL;
    const bool numbers = esp_dataset_target_is_number(data);
    if (ok) {
        qsort(entry, entries, sizeof *entry, by_value);
        for (size_t i = 0; i < entries; i++) {
            if (i == 0 || !numbers || entry[i].value != entry[i - 1].value) t->name[t->classes++] = entry[i].name;
            class_of_symbol[entry[i].symbol] = (uint32_t)t->classes - 1;
        }
        for (size_t i = 0; i < t->count; i++) t->class_of[i] = class_of_symbol[data->target[i]];
    }
    espi_free(class_of_symbol);
    return ok;
}

static esp_status make_classes(espi_targets *t, const esp_dataset *data, esp_error *err)
{
    const espi_symbols *texts = &data->target_texts;
    class_entry *entry = espi_alloc(texts->count, sizeof *entry);
    bool *seen = espi_alloc_zero(texts->count, sizeof *seen);
    size_t entries = 0;
    bool ok = entry != NULL && seen != NULL, numbers = true;
    for (size_t i = 0; ok && i < t->count; i++) {
        const uint32_t symbol = data->target[i];
        if (seen[symbol]) continue;
        seen[symbol] = true;
        entry[entries] = (class_entry){.name = texts->symbol[symbol].text, .symbol = symbol};
        if (!espi_number_parse(texts->symbol[symbol].text, texts->symbol[symbol].size, &entry[entries].value))
            numbers = false;
        entries++;
    }
    for (size_t i = 0; i < entries && !numbers; i++) entry[i].value = 0.0; /* then names alone give the order */
    ok = ok && number_classes(t, data, entry, entries);
    espi_free(entry);
    espi_free(seen);
    if (!ok) return espi_no_memory(err);
    char quoted[96], all[48];
    if (t->classes < 2)
        return espi_fail(err, ESP_ERR_PARSE, "%s of class %s; a classifier needs two classes at least",
                         espi_all_examples(t->count, all), espi_quote(t->name[0], strlen(t->name[0]), quoted));
    return ESP_OK;
}

static esp_status make_values(espi_targets *t, const esp_dataset *data, esp_error *err)
{
    t->value = espi_alloc(t->count, sizeof *t->value);
    if (t->value == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < t->count; i++) {
        const espi_symbol *s = &data->target_texts.symbol[data->target[i]];
        char quoted[96];
        if (!espi_number_parse(s->text, s->size, &t->value[i]))
            return espi_fail(err, ESP_ERR_PARSE, "the target of example %zu is %s; a regression needs numbers", i + 1,
                             espi_quote(s->text, s->size, quoted));
    }
    return ESP_OK;
}

static esp_status make(espi_targets *t, const esp_dataset *data, bool numbers, esp_error *err)
{
    *t = (espi_targets){.count = data->rows};
    if (data->target_name == NULL) return espi_no_target(ESP_ERR_PARSE, err);
    const esp_status status = numbers ? make_values(t, data, err) : make_classes(t, data, err);
    if (status != ESP_OK) espi_targets_free(t);
    return status;
}

esp_status espi_targets_classes(const struct espi_settings *settings, const esp_dataset *data, espi_targets *out,
                                esp_error *err)
{
    (void)settings;
    return make(out, data, false, err);
}

esp_status espi_targets_numbers(const struct espi_settings *settings, const esp_dataset *data, espi_targets *out,
                                esp_error *err)
{
    (void)settings;
    return make(out, data, true, err);
}

/* ---------------------------------------------------------------- outputs */

size_t espi_class_outputs(size_t classes, bool one_vs_one)
{
    return classes <= 2 ? 1 : one_vs_one ? classes * (classes - 1) / 2 : classes;
}

void espi_output_classes(bool one_vs_one, size_t classes, size_t output, size_t *positive, size_t *negative)
{
    *positive = classes == 2 ? 1 : output;
    *negative = classes == 2 ? 0 : classes;
    if (classes <= 2 || !one_vs_one) return;
    size_t first = 0;
    for (size_t left = classes - 1; output >= left; left--) output -= left, first++;
    *positive = first;
    *negative = first + 1 + output;
}

uint32_t espi_class_of(const char *const *class_name, size_t classes, const char *label)
{
    double value, other;
    for (size_t c = 0; c < classes; c++)
        if (strcmp(class_name[c], label) == 0) return (uint32_t)c;
    if (!espi_number_parse(label, strlen(label), &value)) return ESPI_NO_CLASS;
    for (size_t c = 0; c < classes; c++)
        if (espi_number_parse(class_name[c], strlen(class_name[c]), &other) && other == value) return (uint32_t)c;
    return ESPI_NO_CLASS;
}
