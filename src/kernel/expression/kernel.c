#include "kernel/expression/kernel.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- parameters */

size_t espi_parameter_count(const espi_kernel_class *class)
{
    size_t count = 0;
    while (class->parameters[count].info.name != NULL) count++;
    return count;
}

double espi_leaf_value_or(const espi_leaf *leaf, const char *name, double otherwise)
{
    for (size_t i = 0; leaf->class->parameters[i].info.name != NULL; i++)
        if (strcmp(leaf->class->parameters[i].info.name, name) == 0) return leaf->value[i];
    return otherwise;
}

double espi_leaf_value(const espi_leaf *leaf, const char *name) { return espi_leaf_value_or(leaf, name, 0.0); }

bool espi_leaf_selects(const espi_leaf *leaf) { return leaf->class->selects != NULL; }

bool espi_kernel_selects(const esp_kernel *kernel)
{
    for (size_t i = 0; i < kernel->leaves; i++)
        if (espi_leaf_selects(&kernel->leaf[i])) return true;
    return false;
}

/* The class of the argument that leaves of a class may have; NULL: they have none. */
static const espi_argument_class *argument_of(const espi_kernel_class *class)
{
    for (size_t i = 0; class->parameters[i].info.name != NULL; i++)
        if (class->parameters[i].argument != NULL) return class->parameters[i].argument;
    return NULL;
}

/* ---------------------------------------------------------------- kernels */

const char *esp_kernel_text(const esp_kernel *kernel) { return kernel->text; }

static void free_leaf(espi_leaf *leaf)
{
    for (size_t k = 0; k < leaf->symbols; k++) espi_free(leaf->symbol[k].label);
    espi_free(leaf->symbol);
    espi_free(leaf->column);
    if (leaf->selection != NULL) leaf->class->selects->free(leaf->selection);
    if (leaf->argument != NULL) argument_of(leaf->class)->free(leaf->argument);
}

void esp_kernel_free(esp_kernel *kernel)
{
    if (kernel == NULL) return;
    for (size_t i = 0; i < kernel->leaves; i++) free_leaf(&kernel->leaf[i]);
    espi_free(kernel->leaf);
    espi_free(kernel->op);
    espi_free(kernel->text);
    espi_free(kernel);
}

static bool copy_leaf(espi_leaf *copy, const espi_leaf *leaf)
{
    *copy = (espi_leaf){.class = leaf->class};
    memcpy(copy->value, leaf->value, sizeof copy->value);
    if (leaf->argument != NULL) copy->argument = argument_of(leaf->class)->share(leaf->argument);
    if (leaf->column != NULL && (copy->column = espi_copy_text(leaf->column, strlen(leaf->column))) == NULL)
        return false;
    if (!espi_reserve(&copy->symbol, &copy->symbol_capacity, leaf->symbols, sizeof *copy->symbol)) return false;
    for (; copy->symbols < leaf->symbols; copy->symbols++) {
        const espi_symbol_value *from = &leaf->symbol[copy->symbols];
        char *label = espi_copy_text(from->label, strlen(from->label));
        if (label == NULL) return false;
        copy->symbol[copy->symbols] = *from;
        copy->symbol[copy->symbols].label = label;
    }
    return true;
}

esp_status espi_kernel_copy(const esp_kernel *kernel, esp_kernel **out, esp_error *err)
{
    esp_kernel *copy = espi_alloc_zero(1, sizeof *copy);
    *out = NULL;
    if (copy == NULL) return espi_no_memory(err);
    copy->text = espi_copy_text(kernel->text, strlen(kernel->text));
    bool ok = copy->text != NULL &&
              espi_reserve(&copy->leaf, &copy->leaf_capacity, kernel->leaves, sizeof *copy->leaf) &&
              espi_reserve(&copy->op, &copy->op_capacity, kernel->ops, sizeof *copy->op);
    if (ok) memcpy(copy->op, kernel->op, kernel->ops * sizeof *copy->op);
    copy->ops = kernel->ops;
    for (; ok && copy->leaves < kernel->leaves; copy->leaves++)
        ok = copy_leaf(&copy->leaf[copy->leaves], &kernel->leaf[copy->leaves]);
    if (ok) *out = copy;
    else esp_kernel_free(copy);
    return ok ? ESP_OK : espi_no_memory(err);
}

esp_status espi_kernel_check(const esp_kernel *kernel, esp_kernel **out, esp_error *err)
{
    const espi_kernel_class **classes = espi_alloc(kernel->leaves + 1, sizeof *classes);
    *out = NULL;
    if (classes == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < kernel->leaves; i++) classes[i] = kernel->leaf[i].class;
    classes[kernel->leaves] = NULL;
    const esp_status status = espi_expression_parse(kernel->text, classes, false, out, err);
    espi_free(classes);
    return status;
}

/* ----------------------------------------------------------------- values */

/* Sets a value as the expression language reads it for this leaf, so that it is checked in one place only. */
static esp_status set_value(espi_leaf *leaf, size_t parameter, const char *value, esp_error *err)
{
    const espi_kernel_class *const classes[] = {leaf->class, NULL};
    const espi_parameter *p = &leaf->class->parameters[parameter];
    const size_t size = strlen(leaf->class->name) + strlen(p->info.name) + strlen(value) + 8;
    char *text = espi_alloc(size, 1);
    esp_kernel *trial = NULL;
    if (text == NULL) return espi_no_memory(err);
    snprintf(text, size, "%s(%s=%s)", leaf->class->name, p->info.name, value);
    const esp_status status = espi_expression_parse(text, classes, true, &trial, err);
    if (status == ESP_OK && p->argument != NULL) {
        void *argument = trial->leaf[0].argument;
        trial->leaf[0].argument = leaf->argument;
        leaf->argument = argument;
    } else if (status == ESP_OK) {
        leaf->value[parameter] = trial->leaf[0].value[parameter];
    }
    esp_kernel_free(trial);
    espi_free(text);
    return status;
}

esp_status espi_kernel_with(const esp_kernel *kernel, const char *name, const char *value, esp_kernel **out,
                            esp_error *err)
{
    *out = NULL;
    esp_kernel *copy;
    esp_status status = espi_kernel_copy(kernel, &copy, err);
    if (status != ESP_OK) return status;
    size_t set = 0;
    for (size_t i = 0; status == ESP_OK && i < copy->leaves; i++) {
        const espi_parameter *p = copy->leaf[i].class->parameters;
        for (size_t k = 0; status == ESP_OK && p[k].info.name != NULL; k++) {
            if (strcmp(p[k].info.name, name) != 0) continue;
            status = set_value(&copy->leaf[i], k, value, err);
            set++;
        }
    }
    char quoted[96];
    if (status == ESP_OK && set == 0)
        status = espi_fail(err, ESP_ERR_PARAM, "%s is no setting of the learner and no parameter of %s",
                           espi_quote(name, strlen(name), quoted), kernel->text);
    if (status == ESP_OK) status = espi_kernel_print(copy, err);
    if (status == ESP_OK) *out = copy;
    else esp_kernel_free(copy);
    return status;
}
