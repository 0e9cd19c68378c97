/* The kernels that there are. */
#ifndef ESPI_KERNEL_EVALUATE_REGISTRY_H
#define ESPI_KERNEL_EVALUATE_REGISTRY_H

#include "kernel/expression/kernel.h"

/* Ended by NULL. */
extern const espi_kernel_class *const espi_kernels[];

/* As esp_kernel_parse; `files`: grammar rules may be given by the name of a file, which is read. An expression from a
 * model file must not have any read. */
esp_status espi_kernel_parse(const char *expression, bool files, esp_kernel **out, esp_error *err);

#endif
