/* The classes of data, and what may be wrong about them. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cli_class *)a)->name, ((const cli_class *)b)->name);
}

static int by_count(const void *a, const void *b)
{
    const cli_class *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

cli_class *cli_classes(const esp_dataset *data, size_t *count)
{
    const size_t n = esp_dataset_count(data);
    cli_class *classes = malloc((n == 0 ? 1 : n) * sizeof *classes);
    *count = 0;
    if (classes == NULL) return NULL;
    for (size_t i = 0; i < n; i++) classes[i] = (cli_class){esp_dataset_target(data, i), 1};
    qsort(classes, n, sizeof *classes, by_name);
    for (size_t i = 0; i < n; i++) {
        if (*count > 0 && strcmp(classes[*count - 1].name, classes[i].name) == 0) classes[*count - 1].count++;
        else classes[(*count)++] = classes[i];
    }
    qsort(classes, *count, sizeof *classes, by_count);
    return classes;
}

static void note_numbers(const cli_settings *settings, size_t count)
{
    char list[120] = "";
    for (const char *const *name = (const char *const *)cli_learner_names; *name != NULL; name++) {
        const size_t used = strlen(list);
        if (cli_learner_can(*name, ESP_LEARNS_NUMBERS))
            snprintf(list + used, sizeof list - used, "%s-l %s", used == 0 ? "" : " and ", *name);
    }
    cli_note(settings, "the targets are %zu different numbers, and each becomes a class; %s learn numbers", count,
             list);
}

void cli_note_measured(const cli_settings *settings, const esp_dataset *data)
{
    enum { MANY = 20 };
    size_t count, whole = 0;
    cli_class *classes = esp_dataset_target_is_number(data) ? cli_classes(data, &count) : NULL;
    if (classes == NULL) return;
    for (size_t i = 0; i < count; i++) {
        const double value = strtod(classes[i].name, NULL);
        whole += value == floor(value);
    }
    if (count > MANY && (whole < count || count > esp_dataset_count(data) / 4)) note_numbers(settings, count);
    free(classes);
}

void cli_note_rare(const cli_settings *settings, const esp_dataset *data, size_t folds)
{
    size_t count, rare = 0;
    cli_class *classes =
        folds <= esp_dataset_count(data) ? cli_classes(data, &count) : NULL; /* else an error tells more */
    if (classes == NULL) return;
    while (rare < count && classes[count - 1 - rare].count < folds) rare++;
    const cli_class *least = &classes[count == 0 ? 0 : count - 1];
    if (rare == 1)
        cli_note(settings, "class '%s' has %zu example%s, fewer than the %zu folds: some of these have none",
                 least->name, least->count, least->count == 1 ? "" : "s", folds);
    else if (rare > 1)
        cli_note(settings, "%zu classes have fewer examples than there are folds (%zu), '%s' the fewest: %zu", rare,
                 folds, least->name, least->count);
    free(classes);
}

void cli_note_unknown(const cli_settings *settings, const esp_metrics *metrics, const char *path)
{
    if (esp_metrics_value(metrics, "known") != 0.0) return; /* numbers have no classes: -1 */
    cli_note(settings, "no example of %s is of a class that the model knows; --target names another field",
             strcmp(path, "-") == 0 ? "standard input" : path);
}
