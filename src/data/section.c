#define XXH_INLINE_ALL
#include "data/section.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

esp_status espi_file_wrong(const espi_section_file *f, const char *format, ...)
{
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    return espi_fail(f->err, ESP_ERR_PARSE, "%s: the %s is wrong: %s", f->name, f->kind->name, clause);
}

esp_status espi_section_wrong(const espi_section_file *f, espi_section s, const char *clause)
{
    return espi_file_wrong(f, "section '%s': %s", s.tag, clause);
}

esp_status espi_section_take(espi_section_file *f, const char *tag, espi_section *out)
{
    char expected[ESPI_FILE_TAG + 1] = "";
    strncpy(expected, tag, ESPI_FILE_TAG);
    if (f->next == f->sections) return espi_file_wrong(f, "section '%s' is missing", tag);
    const unsigned char *entry = f->bytes + ESPI_FILE_HEADER + f->next * ESPI_FILE_ENTRY;
    if (memcmp(entry, expected, ESPI_FILE_TAG) != 0)
        return espi_file_wrong(f, "section '%s' is not where it belongs, at place %zu", tag, f->next + 1);
    const uint64_t offset = espi_u64_at(entry + ESPI_FILE_TAG), size = espi_u64_at(entry + ESPI_FILE_TAG + 8);
    const size_t padding = -f->end & (ESPI_FILE_ALIGN - 1);
    const bool inside = padding <= f->size - f->end && size <= f->size - f->end - padding;
    if (!inside || offset != f->end + padding)
        return espi_file_wrong(f, "section '%s' does not lie where it should", tag);
    for (size_t i = 0; i < padding; i++)
        if (f->bytes[f->end + i] != 0) return espi_file_wrong(f, "there is something before section '%s'", tag);
    *out = (espi_section){.at = f->bytes + offset, .size = (size_t)size, .tag = tag};
    f->end = (size_t)(offset + size);
    f->next++;
    return ESP_OK;
}

esp_status espi_section_items(espi_section_file *f, const char *tag, size_t item, espi_section *out, size_t *count)
{
    const esp_status status = espi_section_take(f, tag, out);
    if (status != ESP_OK) return status;
    *count = out->size / item;
    return out->size % item == 0 ? ESP_OK : espi_section_wrong(f, *out, "it ends in the middle of a number");
}

esp_status espi_bytes_text(const espi_section_file *f, espi_section s, char **out)
{
    if (s.size > 0 && memchr(s.at, '\0', s.size) != NULL)
        return espi_section_wrong(f, s, "there is a NUL byte in a text");
    *out = espi_copy_text((const char *)s.at, s.size);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

esp_status espi_section_text(espi_section_file *f, const char *tag, char **out)
{
    espi_section s = {0};
    const esp_status status = espi_section_take(f, tag, &s);
    return status == ESP_OK ? espi_bytes_text(f, s, out) : status;
}

esp_status espi_section_u32(espi_section_file *f, const char *tag, uint32_t **out, size_t *count)
{
    espi_section s = {0};
    const esp_status status = espi_section_items(f, tag, 4, &s, count);
    if (status != ESP_OK) return status;
    *out = espi_alloc(*count, sizeof **out);
    for (size_t i = 0; *out != NULL && i < *count; i++) (*out)[i] = espi_u32_at(s.at + 4 * i);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

/* A section of this many numbers of 8 bytes. */
static esp_status take_numbers(espi_section_file *f, const char *tag, uint64_t expected, espi_section *out)
{
    size_t count;
    const esp_status status = espi_section_items(f, tag, 8, out, &count);
    if (status != ESP_OK || count == expected) return status;
    return espi_file_wrong(f, "section '%s': there are %zu numbers instead of %llu", tag, count,
                           (unsigned long long)expected);
}

esp_status espi_section_u64(espi_section_file *f, const char *tag, uint64_t expected, uint64_t **out)
{
    espi_section s = {0};
    const esp_status status = take_numbers(f, tag, expected, &s);
    if (status != ESP_OK) return status;
    *out = espi_alloc(s.size / 8, sizeof **out);
    for (size_t i = 0; *out != NULL && i < s.size / 8; i++) (*out)[i] = espi_u64_at(s.at + 8 * i);
    return *out != NULL ? ESP_OK : espi_no_memory(f->err);
}

esp_status espi_section_doubles(espi_section_file *f, const char *tag, uint64_t expected, double **out)
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

esp_status espi_section_symbols(espi_section_file *f, const char *tag, espi_symbols *symbols)
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

/* ------------------------------------------------------------- whole files */

esp_status espi_section_file_check(espi_section_file *f)
{
    const size_t behind = ESPI_FILE_CHECKSUM + ESPI_FILE_CHECKSUM_SIZE;
    const unsigned char *b = f->bytes;
    if (f->size < ESPI_FILE_MAGIC_SIZE || memcmp(b, f->kind->magic, ESPI_FILE_MAGIC_SIZE) != 0)
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: this is not %s %s", f->name,
                         strchr("aeiou", f->kind->name[0]) != NULL ? "an" : "a", f->kind->name);
    if (f->size < ESPI_FILE_HEADER || espi_u64_at(b + 16) != f->size)
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: the %s is damaged: it has not the length that it says%s", f->name,
                         f->kind->name,
                         f->size < ESPI_FILE_HEADER || espi_u64_at(b + 16) > f->size ? "; it may be truncated" : "");
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, b, ESPI_FILE_CHECKSUM);
    XXH3_128bits_update(&state, b + behind, f->size - behind);
    const XXH128_hash_t sum = XXH3_128bits_digest(&state);
    if (sum.low64 != espi_u64_at(b + ESPI_FILE_CHECKSUM) || sum.high64 != espi_u64_at(b + ESPI_FILE_CHECKSUM + 8))
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: the %s is damaged: its checksum is wrong", f->name, f->kind->name);
    const uint32_t version = f->version = espi_u32_at(b + 8);
    if (version > f->kind->version)
        return espi_fail(f->err, ESP_ERR_PARSE,
                         "%s: the %s has version %lu of the format; this is Espalier %s, which reads versions up "
                         "to %lu",
                         f->name, f->kind->name, (unsigned long)version, ESP_VERSION, (unsigned long)f->kind->version);
    if (version == 0) return espi_file_wrong(f, "there is no version 0 of the format");
    f->sections = espi_u32_at(b + 12);
    if (f->sections > (f->size - ESPI_FILE_HEADER) / ESPI_FILE_ENTRY)
        return espi_file_wrong(f, "it has not room for its sections");
    f->end = ESPI_FILE_HEADER + f->sections * ESPI_FILE_ENTRY;
    for (size_t i = behind; i < ESPI_FILE_HEADER; i++)
        if (b[i] != 0) return espi_file_wrong(f, "there is something behind the checksum");
    return ESP_OK;
}

esp_status espi_section_file_load(int fd, const char *name, const espi_file_kind *kind, char **bytes, size_t *size,
                                  esp_error *err)
{
    enum { FIRST = 1 << 16 };
    struct stat st;
    size_t capacity = 0, wanted = FIRST;
    for (;;) {
        if (!espi_reserve(bytes, &capacity, wanted, 1)) return espi_no_memory(err);
        const ssize_t n = read(fd, *bytes + *size, capacity - *size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return espi_fail_errno(err, name);
        *size += (size_t)n;
        if (n == 0 || (*size >= ESPI_FILE_MAGIC_SIZE && memcmp(*bytes, kind->magic, ESPI_FILE_MAGIC_SIZE) != 0))
            return ESP_OK;
        const bool known = wanted == FIRST && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
        wanted = known && (size_t)st.st_size >= *size ? (size_t)st.st_size + 1 : *size + 1;
    }
}

bool espi_section_file_recognise(const char *path, const espi_file_kind *kind)
{
    char first[ESPI_FILE_MAGIC_SIZE];
    struct stat st;
    /* What is taken from a pipe cannot be put back. */
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, first, sizeof first);
    close(fd);
    return n == (ssize_t)sizeof first && memcmp(first, kind->magic, sizeof first) == 0;
}
