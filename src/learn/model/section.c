#include "learn/model/section.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

esp_status espi_model_wrong(const espi_model_file *f, const char *format, ...)
{
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    return espi_fail(f->err, ESP_ERR_PARSE, "%s: the model file is wrong: %s", f->name, clause);
}

esp_status espi_section_wrong(const espi_model_file *f, espi_section s, const char *clause)
{
    return espi_model_wrong(f, "section '%s': %s", s.tag, clause);
}

esp_status espi_section_take(espi_model_file *f, const char *tag, espi_section *out)
{
    char expected[ESPI_MODEL_TAG + 1] = "";
    strncpy(expected, tag, ESPI_MODEL_TAG);
    if (f->next == f->sections) return espi_model_wrong(f, "section '%s' is missing", tag);
    const unsigned char *entry = f->bytes + ESPI_MODEL_HEADER + f->next * ESPI_MODEL_ENTRY;
    if (memcmp(entry, expected, ESPI_MODEL_TAG) != 0)
        return espi_model_wrong(f, "section '%s' is not where it belongs, at place %zu", tag, f->next + 1);
    const uint64_t offset = espi_u64_at(entry + ESPI_MODEL_TAG), size = espi_u64_at(entry + ESPI_MODEL_TAG + 8);
    const size_t padding = -f->end & (ESPI_MODEL_ALIGN - 1);
    const bool inside = padding <= f->size - f->end && size <= f->size - f->end - padding;
    if (!inside || offset != f->end + padding)
        return espi_model_wrong(f, "section '%s' does not lie where it should", tag);
    for (size_t i = 0; i < padding; i++)
        if (f->bytes[f->end + i] != 0) return espi_model_wrong(f, "there is something before section '%s'", tag);
    *out = (espi_section){.at = f->bytes + offset, .size = (size_t)size, .tag = tag};
    f->end = (size_t)(offset + size);
    f->next++;
    return ESP_OK;
}

esp_status espi_section_items(espi_model_file *f, const char *tag, size_t item, espi_section *out, size_t *count)
{
    const esp_status status = espi_section_take(f, tag, out);
    if (status != ESP_OK) return status;
    *count = out->size / item;
    return out->size % item == 0 ? ESP_OK : espi_section_wrong(f, *out, "it ends in the middle of a number");
}

esp_status espi_bytes_text(const espi_model_file *f, espi_section s, char **out)
{
    if (s.size > 0 && memchr(s.at, '\0', s.size) != NULL)
        return espi_section_wrong(f, s, "there is a NUL byte in a text");
    *out = espi_copy_text((const char *)s.at, s.size);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

esp_status espi_section_text(espi_model_file *f, const char *tag, char **out)
{
    espi_section s = {0};
    const esp_status status = espi_section_take(f, tag, &s);
    return status == ESP_OK ? espi_bytes_text(f, s, out) : status;
}

esp_status espi_section_u32(espi_model_file *f, const char *tag, uint32_t **out, size_t *count)
{
    espi_section s = {0};
    const esp_status status = espi_section_items(f, tag, 4, &s, count);
    if (status != ESP_OK) return status;
    *out = espi_alloc(*count, sizeof **out);
    for (size_t i = 0; *out != NULL && i < *count; i++) (*out)[i] = espi_u32_at(s.at + 4 * i);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

/* A section of this many numbers of 8 bytes. */
static esp_status take_numbers(espi_model_file *f, const char *tag, uint64_t expected, espi_section *out)
{
    size_t count;
    const esp_status status = espi_section_items(f, tag, 8, out, &count);
    if (status != ESP_OK || count == expected) return status;
    return espi_model_wrong(f, "section '%s': there are %zu numbers instead of %llu", tag, count,
                            (unsigned long long)expected);
}

esp_status espi_section_u64(espi_model_file *f, const char *tag, uint64_t expected, uint64_t **out)
{
    espi_section s = {0};
    const esp_status status = take_numbers(f, tag, expected, &s);
    if (status != ESP_OK) return status;
    *out = espi_alloc(s.size / 8, sizeof **out);
    for (size_t i = 0; *out != NULL && i < s.size / 8; i++) (*out)[i] = espi_u64_at(s.at + 8 * i);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

esp_status espi_section_doubles(espi_model_file *f, const char *tag, uint64_t expected, double **out)
{
    espi_section s = {0};
    const esp_status status = take_numbers(f, tag, expected, &s);
    if (status != ESP_OK) return status;
    *out = espi_alloc(s.size / 8, sizeof **out);
    for (size_t i = 0; *out != NULL && i < s.size / 8; i++) {
        const uint64_t bits = espi_u64_at(s.at + 8 * i);
        memcpy(&(*out)[i], &bits, sizeof bits);
    }
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

esp_status espi_section_symbols(espi_model_file *f, const char *tag, espi_symbols *symbols)
{
    espi_section s = {0};
    const esp_status status = espi_section_take(f, tag, &s);
    if (status != ESP_OK) return status;
    if (s.size < 8 || espi_u64_at(s.at) > (s.size - 8) / 8)
        return espi_section_wrong(f, s, "it has not room for its strings");
    const size_t count = (size_t)espi_u64_at(s.at);
    const unsigned char *text = s.at + 8 + 8 * count;
    const size_t size = s.size - 8 - 8 * count;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t end = espi_u64_at(s.at + 8 + 8 * i);
        if (end < at || end > size) return espi_section_wrong(f, s, "a string ends where it cannot");
        if (end - at >= UINT32_MAX || i >= ESPI_NO_SYMBOL)
            return espi_section_wrong(f, s, "there are too many strings");
        const uint32_t number = espi_symbols_add(symbols, (const char *)text + at, (size_t)end - at);
        if (number == ESPI_NO_SYMBOL) return espi_no_memory(f->err);
        if (number != i) return espi_section_wrong(f, s, "a string is given twice");
        at = (size_t)end;
    }
    return at == size ? ESP_OK : espi_section_wrong(f, s, "there are bytes behind the strings");
}
