#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *esp_version(void) { return ESP_VERSION; }

/* All but the message. */
static void begin(esp_error *err, size_t line, size_t column)
{
    err->line = line;
    err->column = column;
    err->system = 0;
    err->setting = NULL;
    err->value[0] = '\0';
}

static void set_message(esp_error *err, const char *place, const char *format, va_list args)
{
    const size_t room = sizeof err->message;
    int used = snprintf(err->message, room, "%s", place);
    if (used < 0) used = 0;
    if ((size_t)used < room) {
        const int more = vsnprintf(err->message + used, room - (size_t)used, format, args);
        if (more > 0) used += more;
    }
    if ((size_t)used >= room) memcpy(err->message + room - 4, "...", 4);
}

esp_status espi_fail(esp_error *err, esp_status status, const char *format, ...)
{
    if (err == NULL) return status;
    begin(err, 0, 0);
    va_list args;
    va_start(args, format);
    set_message(err, "", format, args);
    va_end(args);
    return status;
}

esp_status espi_fail_at(esp_error *err, const char *file, size_t line, size_t column, const char *format, ...)
{
    if (err == NULL) return ESP_ERR_PARSE;
    begin(err, line, column);
    char place[sizeof err->message];
    snprintf(place, sizeof place - 300, "%s", file);
    snprintf(place + strlen(place), 300, ":%zu:%zu: ", line, column);
    va_list args;
    va_start(args, format);
    set_message(err, place, format, args);
    va_end(args);
    return ESP_ERR_PARSE;
}

esp_status espi_suggest(esp_error *err, esp_status status, const char *setting, const char *value)
{
    if (err == NULL || setting == NULL) return status;
    err->setting = setting;
    const bool fits = value != NULL && strlen(value) < sizeof err->value; /* a part of one would be wrong */
    snprintf(err->value, sizeof err->value, "%s", fits ? value : "");
    return status;
}

esp_status espi_fail_errno(esp_error *err, const char *file)
{
    const int code = errno;
    char reason[128];
    if (strerror_r(code, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "system error %d", code);
    espi_fail(err, ESP_ERR_IO, "%s: %s", file, reason);
    if (err != NULL) err->system = code;
    return ESP_ERR_IO;
}

esp_status espi_no_memory(esp_error *err)
{
    return espi_fail(err, ESP_ERR_MEMORY, "out of memory: the system refused an allocation");
}

const char *espi_size_text(double bytes, char text[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 1000.0 && unit + 1 < sizeof units / sizeof *units) bytes /= 1000.0, unit++;
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

/* Length of the UTF-8 character at s[0..size), 0 if the bytes are no character. */
static size_t utf8_length(const unsigned char *s, size_t size)
{
    const size_t length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return length;
}

const char *espi_all_examples(uint64_t count, char text[48])
{
    if (count == 1) return "the only example is";
    snprintf(text, 48, "all %" PRIu64 " examples are", count);
    return text;
}

const char *espi_quote(const char *bytes, size_t size, char text[96])
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t used = 0, at = 0;
    text[used++] = '\'';
    while (at < size && used < 60) {
        const size_t length = utf8_length(s + at, size - at);
        if (length == 0 || s[at] < 0x20 || s[at] == 0x7F) {
            used += (size_t)snprintf(text + used, 8, "\\x%02X", s[at]);
            at++;
        } else {
            memcpy(text + used, s + at, length);
            used += length;
            at += length;
        }
    }
    snprintf(text + used, 96 - used, at < size ? "...'" : "'");
    return text;
}

void espi_append(char *text, size_t room, const char *more)
{
    const size_t used = strlen(text);
    if (used + strlen(more) + 4 < room) memcpy(text + used, more, strlen(more) + 1);
    else if (used < 3 || strcmp(text + used - 3, "...") != 0) snprintf(text + used, room - used, "...");
}

/* Edit distance (insert, delete, replace; case aside) over one row. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64];
    const size_t n = strlen(b);
    if (n >= sizeof row / sizeof *row) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 1; *a != '\0'; a++, i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t replace = diagonal + (tolower((unsigned char)*a) != tolower((unsigned char)b[j - 1]));
            const size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < shift ? replace : shift;
        }
    }
    return row[n];
}

const char *esp_nearest(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        const size_t distance = edit_distance(name, names[i]);
        if (distance < least) least = distance, best = names[i];
    }
    return best;
}
