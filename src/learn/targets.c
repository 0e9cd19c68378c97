/* Targets as classes or numbers, and folds of them. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/random.h"
#include "base/status.h"
#include "learn/learner.h"

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

static esp_status make_values(espi_targets *t, const esp_dataset *data, bool gp, esp_error *err)
{
    t->value = espi_alloc(t->count, sizeof *t->value);
    if (t->value == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < t->count; i++) {
        const espi_symbol *s = &data->target_texts.symbol[data->target[i]];
        char quoted[96];
        if (!espi_number_parse(s->text, s->size, &t->value[i]))
            return espi_fail(err, ESP_ERR_PARSE, "the target of example %zu is %s; a regression needs numbers%s", i + 1,
                             espi_quote(s->text, s->size, quoted),
                             gp ? ", and two classes need likelihood bernoulli" : "");
    }
    return ESP_OK;
}

esp_status espi_targets_make(espi_targets *t, const esp_dataset *data, const espi_settings *settings, esp_error *err)
{
    *t = (espi_targets){.count = data->rows};
    if (data->target_name == NULL)
        return espi_fail(err, ESP_ERR_PARSE, "the data have no target; --target FIELD names one");
    const esp_status status = espi_learns_numbers(settings) ? make_values(t, data, settings->learner == ESPI_GP, err)
                                                            : make_classes(t, data, err);
    if (status != ESP_OK) espi_targets_free(t);
    return status;
}

/* Shuffles the examples of each class (all of a regression) and deals them out in turn, going on from class to class,
 * so that folds have the same size to within one. */
esp_status espi_folds_make(const espi_targets *t, size_t folds, uint64_t seed, uint32_t *fold, esp_error *err)
{
    if (folds < 2 || folds > t->count)
        return espi_fail(err, ESP_ERR_PARAM, "%zu folds; allowed are 2 to the number of examples, %zu", folds,
                         t->count);
    uint32_t *order = espi_alloc(t->count, sizeof *order);
    if (order == NULL) return espi_no_memory(err);
    espi_random random;
    espi_random_seed(&random, seed);
    size_t dealt = 0;
    for (size_t c = 0; c < (t->classes > 0 ? t->classes : 1); c++) {
        size_t n = 0;
        for (size_t i = 0; i < t->count; i++)
            if (t->classes == 0 || t->class_of[i] == c) order[n++] = (uint32_t)i;
        for (size_t i = n; i > 1; i--) {
            const size_t k = espi_random_below(&random, i);
            const uint32_t other = order[k];
            order[k] = order[i - 1];
            order[i - 1] = other;
        }
        for (size_t i = 0; i < n; i++) fold[order[i]] = (uint32_t)(dealt++ % folds);
    }
    espi_free(order);
    return ESP_OK;
}

esp_status esp_folds(const char *learner, const esp_dataset *data, size_t folds, uint64_t seed, uint32_t *fold,
                     esp_error *err)
{
    espi_settings settings;
    espi_targets targets;
    esp_status status = espi_settings_parse(&settings, learner, NULL, 0, err);
    if (status != ESP_OK) return status;
    status = espi_targets_make(&targets, data, &settings, err);
    if (status == ESP_OK) status = espi_folds_make(&targets, folds, seed, fold, err);
    espi_targets_free(&targets);
    espi_settings_free(&settings);
    return status;
}

void espi_fold_split(const uint32_t *fold, size_t count, size_t number, uint32_t *train, size_t *trained,
                     uint32_t *test, size_t *tested)
{
    *trained = *tested = 0;
    for (size_t i = 0; i < count; i++) {
        if (fold[i] == number) test[(*tested)++] = (uint32_t)i;
        else train[(*trained)++] = (uint32_t)i;
    }
}
