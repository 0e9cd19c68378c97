#include "base/text.h"

#include "base/alloc.h"
#include "base/number.h"

#include <string.h>

void espi_text_add(espi_text *t, const char *bytes, size_t size)
{
    if (!espi_reserve(&t->bytes, &t->capacity, t->size + size, 1)) t->failed = true;
    if (t->failed || size == 0) return;
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

void espi_text_string(espi_text *t, const char *string) { espi_text_add(t, string, strlen(string)); }

void espi_text_field(espi_text *t, const char *bytes, size_t size)
{
    static const char letter[256] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\'};
    for (size_t i = 0; i < size; i++) {
        const char escape[2] = {'\\', letter[(unsigned char)bytes[i]]};
        if (escape[1] != '\0') espi_text_add(t, escape, 2);
        else espi_text_add(t, bytes + i, 1);
    }
}

void espi_text_number(espi_text *t, double value)
{
    char digits[32];
    espi_text_add(t, digits, espi_number_print_short(value, digits));
}

void espi_text_fact(espi_text *text, const char *key, double value)
{
    char digits[32];
    espi_text_string(text, key);
    espi_text_string(text, "\t");
    espi_number_print(value, digits);
    espi_text_string(text, digits);
    espi_text_string(text, "\n");
}

char *espi_text_take(espi_text *t)
{
    espi_text_add(t, "", 1);
    char *string = t->failed ? NULL : t->bytes;
    if (string != NULL) t->bytes = NULL;
    espi_text_free(t);
    return string;
}

void espi_text_free(espi_text *t)
{
    espi_free(t->bytes);
    *t = (espi_text){0};
}

void espi_lower_case(char *text, size_t size)
{
    unsigned char *s = (unsigned char *)text;
    for (size_t i = 0; i < size; i++) {
        if (s[i] >= 'A' && s[i] <= 'Z') s[i] = (unsigned char)(s[i] + 32);
        if (i + 1 >= size || (s[i] & 0xE0) != 0xC0 || (s[i + 1] & 0xC0) != 0x80) continue;
        unsigned c = (s[i] & 0x1Fu) << 6 | (s[i + 1] & 0x3Fu);
        if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F)) c += 32;
        else if (c >= 0x400 && c <= 0x40F) c += 80;
        else if ((c >= 0x100 && c <= 0x137) || (c >= 0x14A && c <= 0x177)) c |= 1;
        else if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) c += c & 1;
        s[i] = (unsigned char)(0xC0 | c >> 6);
        s[++i] = (unsigned char)(0x80 | (c & 0x3F));
    }
}
