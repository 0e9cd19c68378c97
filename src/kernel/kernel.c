#include "kernel/kernel.h"

#include "base/alloc.h"

#include <string.h>

const espi_kernel_class *const espi_kernels[] = {&espi_kernel_st,     &espi_kernel_sst,  &espi_kernel_sasst,
                                                 &espi_kernel_linear, &espi_kernel_poly, &espi_kernel_rbf,
                                                 NULL};

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
