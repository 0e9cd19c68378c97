/* The text of a kernel expression, piece by piece: names, numbers, and the sentence that tells where it is wrong. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/expression/parse.h"

#include <stdarg.h>
#include <stdio.h>

esp_status espi_scan_wrong(const espi_scan *s, size_t at, const char *format, ...)
{
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    const esp_status status = espi_fail(s->err, ESP_ERR_PARAM, "kernel expression, column %zu: %s", at + 1, clause);
    if (s->err != NULL) s->err->column = at + 1;
    return status;
}

void espi_scan_blanks(espi_scan *s)
{
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r') s->at++;
}

const char *espi_scan_shown(const espi_scan *s, char text[96])
{
    if (*s->at == '\0') return "the end";
    size_t size = 1;
    if (espi_is_name(*s->at))
        while (espi_is_name(s->at[size])) size++;
    return espi_quote(s->at, size, text);
}

esp_status espi_scan_name(espi_scan *s, espi_name *out)
{
    const char *start = s->at;
    *out = (espi_name){0};
    if (*s->at != '"') {
        while (espi_is_name(*s->at)) s->at++;
        out->size = (size_t)(s->at - start);
        out->text = espi_copy_text(start, out->size);
        return out->text != NULL ? ESP_OK : espi_no_memory(s->err);
    }
    size_t room = 1;
    while (start[room] != '"' && start[room] != '\0') room += start[room] == '\\' && start[room + 1] != '\0' ? 2 : 1;
    out->text = espi_alloc(room, 1);
    if (out->text == NULL) return espi_no_memory(s->err);
    for (s->at++; *s->at != '"' && *s->at != '\0'; s->at++) {
        if (*s->at == '\\' && (s->at[1] == '"' || s->at[1] == '\\')) s->at++;
        out->text[out->size++] = *s->at;
    }
    out->text[out->size] = '\0';
    if (*s->at == '"') {
        s->at++;
        return ESP_OK;
    }
    espi_free(out->text);
    out->text = NULL;
    return espi_scan_wrong(s, (size_t)(start - s->text), "a quoted name does not end");
}

size_t espi_kernel_plain_size(const char *expression)
{
    size_t size = 0;
    char closing = '\0'; /* of the quotes or braces that are open */
    for (const char *c = expression; *c != '\0'; c++) {
        const bool plain = closing != '}';
        const size_t step = closing != '\0' && c[0] == '\\' && c[1] != '\0' ? 2 : 1;
        if (plain) size += step;
        if (*c == closing) closing = '\0';
        else if (closing == '\0' && (*c == '"' || *c == '{')) closing = *c == '"' ? '"' : '}';
        c += step - 1;
    }
    return size;
}

esp_status espi_scan_number(espi_scan *s, double *number)
{
    const char *start = s->at;
    while (espi_is_name(*s->at) || *s->at == '.' ||
           ((*s->at == '+' || *s->at == '-') && s->at > start && (s->at[-1] == 'e' || s->at[-1] == 'E')))
        s->at++;
    const size_t size = (size_t)(s->at - start);
    char quoted[96];
    if (espi_number_parse(start, size, number)) return ESP_OK;
    return espi_scan_wrong(s, (size_t)(start - s->text), "%s is not a finite number", espi_quote(start, size, quoted));
}
