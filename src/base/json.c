#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void separate(espi_text *t)
{
    if (t->size > 0 && strchr("{[ \n", t->bytes[t->size - 1]) == NULL) espi_text_add(t, ", ", 2);
}

void espi_json_open(espi_text *t, char bracket)
{
    separate(t);
    espi_text_add(t, &bracket, 1);
}

void espi_json_close(espi_text *t, char bracket) { espi_text_add(t, &bracket, 1); }

void espi_json_key(espi_text *t, const char *key)
{
    espi_json_string(t, key, strlen(key));
    espi_text_add(t, ": ", 2);
}

/* Bytes of the UTF-8 letter at s[0..size); 0 if there is none: cut off, in a longer form than needed, half of a pair,
 * or beyond U+10FFFF. */
static size_t letter(const char *bytes, size_t size)
{
    const unsigned char *s = (const unsigned char *)bytes;
    const size_t length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return length;
}

void espi_json_string(espi_text *t, const char *bytes, size_t size)
{
    size_t done = 0;
    separate(t);
    espi_text_add(t, "\"", 1);
    for (size_t at = 0, length; at < size; at += length) {
        length = letter(bytes + at, size - at);
        if (length > 0) continue;
        espi_text_json(t, bytes + done, at - done);
        espi_text_string(t, "\xEF\xBF\xBD");
        done = at + (length = 1);
    }
    espi_text_json(t, bytes + done, size - done);
    espi_text_add(t, "\"", 1);
}

void espi_json_number(espi_text *t, double value)
{
    separate(t);
    if (isfinite(value)) espi_text_number(t, value);
    else espi_text_string(t, "null");
}

void espi_json_count(espi_text *t, uint64_t value)
{
    char digits[24];
    separate(t);
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    espi_text_string(t, digits);
}

void espi_json_flag(espi_text *t, bool value) { espi_json_raw(t, value ? "true" : "false"); }

void espi_json_raw(espi_text *t, const char *text)
{
    size_t size = strlen(text);
    while (size > 0 && strchr(" \n", text[size - 1]) != NULL) size--;
    separate(t);
    espi_text_add(t, text, size);
}

void espi_json_text_of(espi_text *t, const char *key, const char *text)
{
    espi_json_key(t, key);
    espi_json_string(t, text, strlen(text));
}

void espi_json_number_of(espi_text *t, const char *key, double value)
{
    espi_json_key(t, key);
    espi_json_number(t, value);
}

void espi_json_count_of(espi_text *t, const char *key, uint64_t value)
{
    espi_json_key(t, key);
    espi_json_count(t, value);
}

void espi_json_flag_of(espi_text *t, const char *key, bool value)
{
    espi_json_key(t, key);
    espi_json_flag(t, value);
}

void espi_text_json(espi_text *t, const char *bytes, size_t size)
{
    static const char letter[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    size_t done = 0;
    if (size == 0) return;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        char escape[8] = {'\\', (char)(c >= 0x20 ? c : (unsigned char)letter[c])};
        if (escape[1] == '\0') snprintf(escape, sizeof escape, "\\u%04X", c);
        espi_text_add(t, bytes + done, i - done);
        espi_text_string(t, escape);
        done = i + 1;
    }
    espi_text_add(t, bytes + done, size - done);
}
