#include "kernel/evaluate/registry.h"

/* All kernels, in the order in which help texts list them. A new one is named here and nowhere else. */
#define KERNELS(X)                                                                                                     \
    X(st)                                                                                                              \
    X(sst)                                                                                                             \
    X(sasst)                                                                                                           \
    X(ptk)                                                                                                             \
    X(gtk)                                                                                                             \
    X(seq)                                                                                                             \
    X(fseq)                                                                                                            \
    X(fsst)                                                                                                            \
    X(linear)                                                                                                          \
    X(poly)                                                                                                            \
    X(rbf)

#define DECLARE(name) extern const espi_kernel_class espi_kernel_##name;
KERNELS(DECLARE)

#define LIST(name) &espi_kernel_##name,
const espi_kernel_class *const espi_kernels[] = {KERNELS(LIST) NULL};

esp_status espi_kernel_parse(const char *expression, bool files, esp_kernel **out, esp_error *err)
{
    return espi_expression_parse(expression, espi_kernels, files, out, err);
}

esp_status esp_kernel_parse(const char *expression, esp_kernel **out, esp_error *err)
{
    return espi_kernel_parse(expression, true, out, err);
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

bool esp_kernel_takes(size_t index, esp_column_type type)
{
    return esp_kernel_name(index, NULL) != NULL && espi_kernels[index]->takes[type];
}

const esp_parameter_info *esp_kernel_parameter(size_t index, size_t parameter)
{
    if (esp_kernel_name(index, NULL) == NULL) return NULL;
    const espi_parameter *p = espi_kernels[index]->parameters;
    for (size_t i = 0; i < parameter && p->info.name != NULL; i++) p++;
    return p->info.name != NULL ? &p->info : NULL;
}
