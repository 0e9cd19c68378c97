/* Writes data files: the choice of the format, and one value as text. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/format.h"

#include <string.h>

static bool is_compressed(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".zst") == 0);
}

/* The format is one that is only read: say which are written. */
static esp_status reading_only(const espi_format *format, esp_error *err)
{
    char list[sizeof err->message] = "";
    const espi_format *f;
    size_t left = 0;
    for (f = espi_formats; f->name != NULL; f++) left += f->writer != NULL;
    for (int number = ESP_FORMAT_AUTO + 1; (f = espi_format_of((esp_format)number)) != NULL; number++) {
        if (f->writer == NULL) continue;
        espi_append(list, sizeof list, f->name);
        left--;
        espi_append(list, sizeof list, left > 1 ? ", " : left == 1 ? " and " : "");
    }
    return espi_fail(err, ESP_ERR_PARAM, "the format %s is for reading only; %s are written", format->name, list);
}

esp_status espi_write_format(const char *path, esp_format *format, esp_error *err)
{
    if (esp_format_name(*format) == NULL)
        return espi_fail(err, ESP_ERR_PARAM, "unknown data format number %d", (int)*format);
    if (is_compressed(path))
        return espi_fail(err, ESP_ERR_PARAM, "%s: compressed files are read, not written; write to - and pipe it",
                         path);
    const espi_format *f = *format == ESP_FORMAT_AUTO ? espi_format_of_path(path) : espi_format_of(*format);
    *format = f != NULL ? f->number : ESP_FORMAT_JSONL;
    return f == NULL || f->writer != NULL ? ESP_OK : reading_only(f, err);
}

esp_status espi_write_rows(const esp_dataset *data, esp_format format, espi_output *output, esp_error *err)
{
    const espi_format *f = espi_format_of(format);
    return f->writer(data, f->name, output, err);
}

esp_status esp_dataset_write(const esp_dataset *data, const char *path, esp_format format, esp_error *err)
{
    espi_output *output;
    esp_status status = espi_write_format(path, &format, err);
    if (status == ESP_OK) status = espi_output_open(path, &output, err);
    if (status != ESP_OK) return status;
    status = espi_write_rows(data, format, output, err);
    if (status == ESP_OK) return espi_output_commit(output, err);
    espi_output_discard(output);
    return status;
}

esp_status esp_dataset_text(const esp_dataset *data, size_t column, size_t example, char **out, esp_error *err)
{
    *out = NULL;
    if (column >= data->columns || example >= data->rows)
        return espi_fail(err, ESP_ERR_PARAM, "column %zu, example %zu: the dataset has %zu columns and %zu examples",
                         column, example, data->columns, data->rows);
    const espi_column *c = &data->column[column];
    espi_text text = {0};
    if (c->type == ESP_COLUMN_TREE) espi_text_tree(&text, &c->trees, c->trees.root[example]);
    else if (c->type == ESP_COLUMN_SEQUENCE) espi_text_sequence(&text, &c->sequences, example);
    else espi_text_vector(&text, &c->vectors, example);
    *out = espi_text_take(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}

void esp_text_free(char *text) { espi_free(text); }
