/* Penn trees: one per line. */
#include "base/status.h"
#include "data/writer.h"

static esp_status check(const esp_dataset *data, const char *format, esp_error *err)
{
    static const char only[] = "holds one column of trees and nothing else";
    if (data->target_name != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "the format %s %s; it has no place for the target", format, only);
    if (data->columns == 0)
        return espi_fail(err, ESP_ERR_PARAM, "the format %s %s; the dataset has no columns", format, only);
    for (size_t i = 0; i < data->columns; i++) {
        const espi_column *c = &data->column[i];
        if (c->type == ESP_COLUMN_SEQUENCE) return espi_refuse(c, format, "holds sequences", err);
        if (c->type == ESP_COLUMN_VECTOR) return espi_refuse(c, format, "holds vectors", err);
        if (i > 0) return espi_refuse(c, format, "is a second tree", err);
        for (size_t row = 0; row < data->rows; row++)
            if (c->trees.root[row] == ESPI_NO_NODE) return espi_refuse(c, format, "has an empty tree", err);
    }
    return ESP_OK;
}

esp_status espi_write_penn(const esp_dataset *data, const char *format, espi_output *output, esp_error *err)
{
    espi_text text = {0};
    espi_tree_printer printer = {0};
    const esp_status status = check(data, format, err);
    if (status != ESP_OK) return status;
    const espi_forest *f = &data->column[0].trees;
    bool ok = true;
    for (size_t row = 0; row < data->rows && ok; row++) {
        espi_tree_print_start(&printer, f, f->root[row], false);
        while (ok && espi_tree_print_more(&printer, &text)) ok = espi_text_flush(&text, output, false);
        espi_text_add(&text, "\n", 1);
        ok = ok && espi_text_flush(&text, output, false);
    }
    ok = ok && espi_text_flush(&text, output, true);
    espi_text_free(&text);
    espi_tree_printer_free(&printer);
    return ok ? ESP_OK : espi_no_memory(err);
}
