/* Some examples of a dataset, or the targets of all, as bytes for another process: sections (section.h) without a file.
 */
#include "base/alloc.h"
#include "data/section.h"

#include <string.h>

enum { PARCEL_VERSION = 1 };

static const espi_file_kind kind = {.name = "parcel",
                                    .magic = "\x89"
                                             "EPC\r\n\x1A\n",
                                    .version = PARCEL_VERSION};

static esp_status write_parcel(void (*put)(espi_section_sink *s, const void *what), const esp_dataset *data,
                               char **bytes, size_t *size, esp_error *err)
{
    const espi_section_source source = {.kind = &kind, .version = PARCEL_VERSION, .put = put, .what = data};
    return espi_sections_bytes(&source, bytes, size, err);
}

/* ---------------------------------------------------------------- examples */

static void put_examples(espi_section_sink *s, const void *what)
{
    const esp_dataset *data = what;
    espi_put_u64s(s, "shape", (const uint64_t[]){data->rows, data->columns}, 2);
    for (size_t i = 0; i < data->columns; i++) espi_put_column(s, &data->column[i]);
}

esp_status espi_parcel_examples(const esp_dataset *data, const uint32_t *row, size_t count, char **bytes, size_t *size,
                                esp_error *err)
{
    espi_copier *copier = NULL;
    esp_dataset *copy = NULL;
    bool *column = espi_alloc(data->columns, sizeof *column);
    *bytes = NULL;
    *size = 0;
    if (column == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < data->columns; i++) column[i] = true;
    esp_status status = espi_copier_dataset(&copier, data, column, row, NULL, count, &copy, err);
    if (status == ESP_OK) status = write_parcel(put_examples, copy, bytes, size, err);
    espi_copier_free(copier);
    esp_dataset_free(copy);
    espi_free(column);
    return status;
}

static esp_status read_examples(espi_section_file *f, esp_dataset *data)
{
    uint64_t *shape = NULL;
    esp_status status = espi_section_file_check(f);
    if (status == ESP_OK) status = espi_section_u64(f, "shape", 2, &shape);
    if (status == ESP_OK) data->rows = (size_t)shape[0];
    for (uint64_t i = 0; status == ESP_OK && i < shape[1]; i++) status = espi_section_column(f, data);
    espi_free(shape);
    return status == ESP_OK ? espi_check_sections(data, f->err) : status;
}

static esp_status append(const esp_dataset *from, esp_dataset *to, esp_error *err)
{
    espi_copier *copier = NULL;
    bool *column = espi_alloc(from->columns, sizeof *column);
    if (column == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < from->columns; i++) column[i] = true;
    esp_status status = espi_copier_new(from, column, to, &copier, err);
    for (size_t i = 0; status == ESP_OK && i < from->rows; i++) status = espi_copier_row(copier, i, err);
    espi_copier_free(copier);
    espi_free(column);
    return status;
}

esp_status espi_parcel_append(const void *bytes, size_t size, esp_dataset *to, esp_error *err)
{
    espi_section_file f = {.name = "examples of another rank", .kind = &kind, .bytes = bytes, .size = size, .err = err};
    esp_dataset *data = espi_dataset_new(to->format);
    esp_status status = data == NULL ? espi_no_memory(err) : read_examples(&f, data);
    if (status == ESP_OK) status = append(data, to, err);
    esp_dataset_free(data);
    return status;
}

/* ----------------------------------------------------------------- targets */

static void put_targets(espi_section_sink *s, const void *what)
{
    const esp_dataset *data = what;
    espi_put_text(s, "name", data->target_name);
    espi_put_u64s(s, "numbers", (const uint64_t[]){data->target_numbers}, 1);
    espi_put_symbols(s, &data->target_texts);
    espi_put_u32s(s, "targets", data->target, data->target_rows);
}

esp_status espi_parcel_targets(const esp_dataset *data, char **bytes, size_t *size, esp_error *err)
{
    return write_parcel(put_targets, data, bytes, size, err);
}

/* Appends what was read; numbers of texts are those of `from`. */
static esp_status append_targets(const espi_symbols *from, const uint32_t *target, size_t count, esp_dataset *to,
                                 esp_error *err)
{
    uint32_t *number = espi_alloc(from->count, sizeof *number);
    bool ok =
        number != NULL && espi_reserve(&to->target, &to->target_capacity, to->target_rows + count, sizeof *to->target);
    for (size_t i = 0; ok && i < from->count; i++) {
        number[i] = espi_symbols_add(&to->target_texts, from->symbol[i].text, from->symbol[i].size);
        ok = number[i] != ESPI_NO_SYMBOL;
    }
    for (size_t i = 0; ok && i < count; i++) to->target[to->target_rows++] = number[target[i]];
    espi_free(number);
    to->rows = to->target_rows;
    return ok ? ESP_OK : espi_no_memory(err);
}

esp_status espi_parcel_append_targets(const void *bytes, size_t size, esp_dataset *to, esp_error *err)
{
    espi_section_file f = {.name = "targets of another rank", .kind = &kind, .bytes = bytes, .size = size, .err = err};
    espi_symbols texts = {0};
    char *name = NULL;
    uint64_t *numbers = NULL;
    uint32_t *target = NULL;
    size_t count = 0;
    esp_status status = espi_section_file_check(&f);
    if (status == ESP_OK) status = espi_section_text(&f, "name", &name);
    if (status == ESP_OK) status = espi_section_u64(&f, "numbers", 1, &numbers);
    if (status == ESP_OK) status = espi_section_symbols(&f, "symbols", &texts);
    if (status == ESP_OK) status = espi_section_u32(&f, "targets", &target, &count);
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        if (target[i] >= texts.count) status = espi_file_wrong(&f, "a target is an unknown text");
    if (status == ESP_OK && count > 0) status = append_targets(&texts, target, count, to, err);
    if (status == ESP_OK) to->target_numbers += (size_t)numbers[0];
    if (status == ESP_OK && count > 0 && to->target_name == NULL) {
        to->target_name = name;
        name = NULL;
    }
    espi_symbols_free(&texts);
    espi_free(name);
    espi_free(numbers);
    espi_free(target);
    return status;
}
