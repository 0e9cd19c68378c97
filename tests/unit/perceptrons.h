/* What the tests of perceptrons share: labelled examples with trees and features, and runs that must succeed. */
#ifndef PERCEPTRONS_H
#define PERCEPTRONS_H

#include "files.h"
#include "learning.h"
#include "learn/perceptron/perceptron.h"

enum { WORLD = 50 };

typedef struct world {
    esp_dataset *data;
    char *lines; /* what it was read from */
    size_t count;
    char label[WORLD][12]; /* as in JSON, without quotes */
    ref_tree *tree[WORLD];
    ref_entry x[WORLD][6];
} world;

/* Labels as in JSON, apart by blanks; a new one comes with every sixth example, then any of them. Labels that are not
 * numbers are quoted. */
static inline void world_make(world *w, uint64_t seed, size_t count, const char *labels)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    char text[200], *label[8], *end;
    size_t kinds = 0;
    ref_random random = {seed};
    snprintf(text, sizeof text, "%s", labels);
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) label[kinds++] = at;
    *w = (world){.count = count, .lines = malloc(count * 1500)};
    assert_non_null(w->lines);
    char *to = w->lines;
    for (size_t i = 0; i < count; i++) {
        const size_t open = i / 6 + 1 < kinds ? i / 6 + 1 : kinds;
        const char *y = i % 6 == 0 && i / 6 < kinds ? label[i / 6] : label[ref_random_below(&random, open)];
        char *tree = ref_random_small_tree(&random, 12, 1000, i % 3 == 0);
        size_t entries = 0;
        strcpy(w->label[i], y);
        (void)strtod(y, &end);
        to += sprintf(to, *end == '\0' ? "{\"y\": %s, " : "{\"y\": \"%s\", ", y);
        to += sprintf(to, "\"tree\": \"%s\", \"x\": {", tree);
        for (size_t k = 0; k < 7 && entries < 5; k++) {
            if (ref_random_below(&random, 3) > 0) continue;
            const double value = ref_random_between(&random, -1.0, 2.0);
            w->x[i][entries] = (ref_entry){names[k], value};
            to += sprintf(to, "%s\"%s\": %.17g", entries++ > 0 ? ", " : "", names[k], value);
        }
        to += sprintf(to, "}}\n");
        w->tree[i] = ref_tree_parse(tree);
        free(tree);
    }
    w->data = dataset_of(w->lines);
}

static inline void world_free(world *w)
{
    for (size_t i = 0; i < w->count; i++) ref_tree_free(w->tree[i]);
    esp_dataset_free(w->data);
    free(w->lines);
}

static inline espi_perceptron *perceptron_of(const char *kernel, const char *settings)
{
    espi_perceptron *p = NULL;
    esp_error err = {0};
    esp_kernel *k = kernel_of(kernel);
    assert_ok(espi_perceptron_new(settings_of("perceptron", settings), k, &p, &err), settings, &err);
    esp_kernel_free(k);
    return p;
}

static inline esp_online *online_of(const char *kernel, const char *settings)
{
    options o;
    esp_online *online = NULL;
    esp_error err = {0};
    esp_kernel *k = kernel_of(kernel);
    options_of(&o, settings);
    assert_ok(esp_online_new("perceptron", k, o.setting, o.count, &online, &err), settings, &err);
    esp_kernel_free(k);
    return online;
}

static inline esp_model *model_of(const esp_online *online)
{
    esp_model *model = NULL;
    esp_error err = {0};
    assert_ok(esp_online_model(online, &model, &err), "esp_online_model", &err);
    return model;
}

static inline esp_status resume(const esp_model *model, const char *settings, esp_online **out, esp_error *err)
{
    options o;
    options_of(&o, settings);
    *out = (esp_online *)(uintptr_t)1;
    const esp_status status = esp_online_resume(model, o.setting, o.count, NULL, out, err);
    assert_true((status == ESP_OK) == (*out != NULL));
    return status;
}

/* `kernel` may be NULL. */
static inline esp_status go_on(const esp_model *checkpoint, const char *kernel, const char *settings, esp_online **out,
                               esp_error *err)
{
    options o;
    options_of(&o, settings);
    esp_kernel *k = kernel != NULL ? kernel_of(kernel) : NULL;
    *out = (esp_online *)(uintptr_t)1;
    const esp_status status = esp_online_continue(checkpoint, k, NULL, o.setting, o.count, NULL, out, err);
    assert_true((status == ESP_OK) == (*out != NULL));
    esp_kernel_free(k);
    return status;
}

/* Frees the model. */
static inline blob bytes_of_online(const esp_online *online)
{
    esp_model *model = model_of(online);
    const blob b = bytes_of(model);
    esp_model_free(model);
    return b;
}

#endif
