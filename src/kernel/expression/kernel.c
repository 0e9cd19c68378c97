#include "kernel/expression/kernel.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/pattern/pattern.h"
#include "kernel/grammar_tree/rules.h"

#include <stdio.h>
#include <string.h>

const espi_kernel_class *const espi_kernels[] = {
    &espi_kernel_st,   &espi_kernel_sst,  &espi_kernel_sasst,  &espi_kernel_ptk,  &espi_kernel_gtk, &espi_kernel_seq,
    &espi_kernel_fseq, &espi_kernel_fsst, &espi_kernel_linear, &espi_kernel_poly, &espi_kernel_rbf, NULL};

double espi_leaf_value(const espi_leaf *leaf, const char *name)
{
    size_t i = 0;
    while (strcmp(leaf->class->parameters[i].info.name, name) != 0) i++;
    return leaf->value[i];
}

const char *esp_kernel_text(const esp_kernel *kernel) { return kernel->text; }

void esp_kernel_free(esp_kernel *kernel)
{
    if (kernel == NULL) return;
    for (size_t i = 0; i < kernel->leaves; i++) {
        for (size_t k = 0; k < kernel->leaf[i].symbols; k++) espi_free(kernel->leaf[i].symbol[k].label);
        espi_free(kernel->leaf[i].symbol);
        espi_free(kernel->leaf[i].column);
        espi_selection_free(kernel->leaf[i].selection);
        espi_rules_free(kernel->leaf[i].rules);
    }
    espi_free(kernel->leaf);
    espi_free(kernel->op);
    espi_free(kernel->text);
    espi_free(kernel);
}

const char *esp_kernel_name(size_t index, const char **help)
{
    for (size_t i = 0; espi_kernels[i] != NULL; i++) {
        if (i != index) continue;
        if (help != NULL) *help = espi_kernels[i]->help;
        return espi_kernels[i]->name;
    }
    return NULL;
}

const esp_parameter_info *esp_kernel_parameter(size_t index, size_t parameter)
{
    if (esp_kernel_name(index, NULL) == NULL) return NULL;
    const espi_parameter *p = espi_kernels[index]->parameters;
    for (size_t i = 0; i < parameter && p->info.name != NULL; i++) p++;
    return p->info.name != NULL ? &p->info : NULL;
}

/* Sets a value as the expression language reads it for this leaf, so that it is checked in one place only. */
static esp_status set_value(espi_leaf *leaf, size_t parameter, const char *value, esp_error *err)
{
    const char *name = leaf->class->parameters[parameter].info.name;
    const size_t size = strlen(leaf->class->name) + strlen(name) + strlen(value) + 8;
    char *text = espi_alloc(size, 1);
    esp_kernel *trial = NULL;
    if (text == NULL) return espi_no_memory(err);
    snprintf(text, size, "%s(%s=%s)", leaf->class->name, name, value);
    const esp_status status = esp_kernel_parse(text, &trial, err);
    if (status == ESP_OK && leaf->class->parameters[parameter].type == ESPI_RULES) {
        espi_rules *rules = trial->leaf[0].rules;
        trial->leaf[0].rules = leaf->rules;
        leaf->rules = rules;
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
    esp_status status = esp_kernel_parse(kernel->text, &copy, err);
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
