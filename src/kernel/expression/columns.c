#include "kernel/expression/columns.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

const char *espi_column_type_name(esp_column_type type)
{
    static const char *const names[] = {
        [ESP_COLUMN_TREE] = "tree", [ESP_COLUMN_SEQUENCE] = "sequence", [ESP_COLUMN_VECTOR] = "vector"};
    return names[type];
}

/* "a, b, c": the columns of a dataset, all or those of one type. */
static void list_columns(const esp_dataset *data, int type, char *text, size_t room)
{
    *text = '\0';
    for (size_t i = 0; i < data->columns; i++) {
        if (type >= 0 && (int)data->column[i].type != type) continue;
        if (*text != '\0') espi_append(text, room, ", ");
        espi_append(text, room, data->column[i].name);
        if (type >= 0) continue;
        espi_append(text, room, " (");
        espi_append(text, room, espi_column_type_name(data->column[i].type));
        espi_append(text, room, ")");
    }
}

static esp_status named_column(const espi_leaf *leaf, const esp_dataset *data, const espi_column **out, esp_error *err)
{
    const espi_kernel_class *class = leaf->class;
    char list[400];
    size_t index;
    if (!espi_find_column(data, leaf->column, strlen(leaf->column), &index)) {
        list_columns(data, -1, list, sizeof list);
        return espi_fail(err, ESP_ERR_PARAM, "%s(%s): there is no column '%s'; the data have %s", class->name,
                         leaf->column, leaf->column, data->columns > 0 ? list : "none");
    }
    const esp_column_type type = data->column[index].type;
    if (!class->takes[type])
        return espi_fail(err, ESP_ERR_PARAM, "%s(%s): column '%s' is a %s column, which %s does not take", class->name,
                         leaf->column, leaf->column, espi_column_type_name(type), class->name);
    *out = &data->column[index];
    return ESP_OK;
}

/* The only column of the type that the kernel takes; vectors come before sequences. */
static esp_status only_column(const espi_leaf *leaf, const esp_dataset *data, const espi_column **out, esp_error *err)
{
    static const esp_column_type order[] = {ESP_COLUMN_TREE, ESP_COLUMN_VECTOR, ESP_COLUMN_SEQUENCE};
    const espi_kernel_class *class = leaf->class;
    char list[400];
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        size_t fitting = 0;
        for (size_t i = 0; class->takes[order[k]] && i < data->columns; i++)
            if (data->column[i].type == order[k] && fitting++ == 0) *out = &data->column[i];
        if (fitting == 1) return ESP_OK;
        if (fitting == 0) continue;
        list_columns(data, (int)order[k], list, sizeof list);
        return espi_fail(err, ESP_ERR_PARAM, "%s: which column is meant? The %s columns are %s; write %s(%s, ...)",
                         class->name, espi_column_type_name(order[k]), list, class->name, (*out)->name);
    }
    list_columns(data, -1, list, sizeof list);
    return espi_fail(err, ESP_ERR_PARAM, "%s: the data have no column that it takes; they have %s", class->name,
                     data->columns > 0 ? list : "none");
}

esp_status espi_leaf_column(const espi_leaf *leaf, const esp_dataset *data, const espi_column **out, esp_error *err)
{
    return leaf->column != NULL ? named_column(leaf, data, out, err) : only_column(leaf, data, out, err);
}

esp_status espi_check_columns(const esp_kernel *kernel, const esp_dataset *data, esp_error *err)
{
    esp_status status = ESP_OK;
    const espi_column *column;
    for (size_t i = 0; status == ESP_OK && i < kernel->leaves; i++)
        status = espi_leaf_column(&kernel->leaf[i], data, &column, err);
    return status;
}

esp_status espi_kernel_bind_names(const esp_kernel *kernel, const esp_dataset *data, esp_kernel **out, esp_error *err)
{
    *out = NULL;
    esp_kernel *copy;
    esp_status status = espi_kernel_copy(kernel, &copy, err);
    if (status != ESP_OK) return status;
    for (size_t i = 0; status == ESP_OK && i < copy->leaves; i++) {
        const espi_column *column;
        status = espi_leaf_column(&copy->leaf[i], data, &column, err);
        if (status != ESP_OK || copy->leaf[i].column != NULL) continue;
        copy->leaf[i].column = espi_copy_text(column->name, strlen(column->name));
        if (copy->leaf[i].column == NULL) status = espi_no_memory(err);
    }
    if (status == ESP_OK) status = espi_kernel_print(copy, err);
    if (status == ESP_OK) *out = copy;
    else esp_kernel_free(copy);
    return status;
}

void espi_used_columns(const esp_kernel *kernel, const esp_dataset *data, bool *column)
{
    const espi_column *found;
    for (size_t c = 0; c < data->columns; c++) column[c] = false;
    for (size_t i = 0; i < kernel->leaves; i++)
        if (espi_leaf_column(&kernel->leaf[i], data, &found, NULL) == ESP_OK) column[found - data->column] = true;
}

esp_status espi_copy_rows(const esp_kernel *kernel, const esp_dataset *data, const bool *wanted, esp_dataset **out,
                          esp_error *err)
{
    bool *column = espi_alloc(data->columns, sizeof *column);
    *out = NULL;
    if (column == NULL) return espi_no_memory(err);
    espi_used_columns(kernel, data, column);
    const esp_status status = espi_dataset_select(data, column, wanted, out, err);
    espi_free(column);
    return status;
}
