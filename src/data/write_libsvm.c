/* LIBSVM: a label and one sparse vector per line; see read_libsvm.c. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/writer.h"

#include <stdlib.h>

struct espi_feature {
    uint64_t number;
    uint32_t feature;
    double value;
};

static bool whole_number(const espi_symbol *name, uint64_t *number)
{
    *number = 0;
    if (name->size == 0 || name->size > 18) return false;
    for (size_t i = 0; i < name->size; i++) {
        if (name->text[i] < '0' || name->text[i] > '9') return false;
        *number = *number * 10 + (uint64_t)(name->text[i] - '0');
    }
    return true;
}

bool espi_features_start(espi_features *f, const espi_vectors *vectors)
{
    *f = (espi_features){.vectors = vectors, .number = espi_alloc(vectors->features.count, sizeof *f->number)};
    if (f->number == NULL) return false;
    for (size_t i = 0; i < vectors->features.count; i++) {
        if (whole_number(&vectors->features.symbol[i], &f->number[i])) continue;
        espi_free(f->number);
        f->number = NULL;
        break;
    }
    return true;
}

void espi_features_free(espi_features *f)
{
    espi_free(f->number);
    espi_free(f->sorted);
    *f = (espi_features){0};
}

static int compare(const void *left, const void *right)
{
    const struct espi_feature *a = left, *b = right;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

void espi_features_text(espi_features *f, size_t row, espi_text *text)
{
    const espi_vectors *v = f->vectors;
    const size_t first = v->row[row], count = v->row[row + 1] - first;
    if (!espi_reserve(&f->sorted, &f->sorted_capacity, count, sizeof *f->sorted)) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t feature = v->feature[first + i];
        f->sorted[i] = (struct espi_feature){
            .number = f->number != NULL ? f->number[feature] : 0, .feature = feature, .value = v->value[first + i]};
    }
    if (f->number != NULL && count > 0) qsort(f->sorted, count, sizeof *f->sorted, compare);
    for (size_t i = 0; i < count; i++) {
        const espi_symbol *name = &v->features.symbol[f->sorted[i].feature];
        espi_text_add(text, " ", 1);
        espi_text_add(text, name->text, name->size);
        espi_text_add(text, ":", 1);
        espi_text_number(text, f->sorted[i].value);
    }
}

static esp_status check(const esp_dataset *data, const char *format, esp_error *err)
{
    if (data->target_name == NULL)
        return espi_fail(err, ESP_ERR_PARAM, "the format %s needs a target, and the dataset has none", format);
    for (size_t i = 0; i < data->columns; i++) {
        const espi_column *c = &data->column[i];
        if (c->type == ESP_COLUMN_TREE) return espi_refuse(c, format, "holds trees", err);
        if (c->type == ESP_COLUMN_SEQUENCE) return espi_refuse(c, format, "holds sequences", err);
        if (i > 0) return espi_refuse(c, format, "is a second vector", err);
    }
    if (data->columns == 0)
        return espi_fail(err, ESP_ERR_PARAM, "the format %s needs a vector, and the dataset has none", format);
    const esp_status status = espi_check_targets(data, format, " \t\r\n#,:", "", err);
    if (status != ESP_OK) return status;
    return espi_check_symbols(&data->column[0].vectors.features, format, "feature", " \t\r\n#:", "", err);
}

esp_status espi_write_libsvm(const esp_dataset *data, const char *format, espi_output *output, esp_error *err)
{
    espi_text text = {0};
    espi_features features = {0};
    const esp_status status = check(data, format, err);
    if (status != ESP_OK) return status;
    bool ok = espi_features_start(&features, &data->column[0].vectors);
    for (size_t row = 0; row < data->rows && ok; row++) {
        const espi_symbol *target = &data->target_texts.symbol[data->target[row]];
        espi_text_add(&text, target->text, target->size);
        espi_features_text(&features, row, &text);
        espi_text_add(&text, "\n", 1);
        ok = espi_text_flush(&text, output, false);
    }
    ok = ok && espi_text_flush(&text, output, true);
    espi_features_free(&features);
    espi_text_free(&text);
    return ok ? ESP_OK : espi_no_memory(err);
}
