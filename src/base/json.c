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

void espi_json_string(espi_text *t, const char *bytes, size_t size)
{
    separate(t);
    espi_text_add(t, "\"", 1);
    espi_text_json(t, bytes, size);
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
