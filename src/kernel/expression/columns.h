/* Which columns of a dataset a kernel works on. */
#ifndef ESPI_KERNEL_EXPRESSION_COLUMNS_H
#define ESPI_KERNEL_EXPRESSION_COLUMNS_H

#include "kernel/expression/kernel.h"

/* "tree", "sequence" or "vector". */
const char *espi_column_type_name(esp_column_type type);

/* The column of the data that a leaf works on. ESP_ERR_PARAM if it is missing, ambiguous or of another type. */
esp_status espi_leaf_column(const espi_leaf *leaf, const esp_dataset *data, const espi_column **out, esp_error *err);
/* Whether every leaf of the kernel finds its column in the data: what espi_bind would say, at no cost. */
esp_status espi_check_columns(const esp_kernel *kernel, const esp_dataset *data, esp_error *err);
/* A copy of the kernel in which every leaf names the column of the data that it works on. */
esp_status espi_kernel_bind_names(const esp_kernel *kernel, const esp_dataset *data, esp_kernel **out, esp_error *err);

/* Which columns of the data the kernel uses: column[0 .. data->columns). */
void espi_used_columns(const esp_kernel *kernel, const esp_dataset *data, bool *column);
/* A copy of the rows that are wanted, with the columns that the kernel uses, without the target. */
esp_status espi_copy_rows(const esp_kernel *kernel, const esp_dataset *data, const bool *wanted, esp_dataset **out,
                          esp_error *err);

#endif
