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
