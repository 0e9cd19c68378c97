/* A growing text. A zeroed one is empty; `failed` once memory was out, from when on it stays as it is. */
#ifndef ESPI_BASE_TEXT_H
#define ESPI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct espi_text {
    char *bytes; /* no NUL behind them unless added */
    size_t size, capacity;
    bool failed;
} espi_text;

void espi_text_add(espi_text *text, const char *bytes, size_t size);
void espi_text_string(espi_text *text, const char *string);
/* Bytes as a field of a line: TAB, line ends and backslashes become \t, \n, \r, \\. */
void espi_text_field(espi_text *text, const char *bytes, size_t size);
/* The shortest decimal that reads back as the same number. */
void espi_text_number(espi_text *text, double value);
/* "key<TAB>value" with the end of the line, the value in 17 digits. */
void espi_text_fact(espi_text *text, const char *key, double value);
/* The text as a string that the caller owns, NULL if memory was out; `text` is then empty. */
char *espi_text_take(espi_text *text);
void espi_text_free(espi_text *text);

/* Lower case in place, for ASCII and for the two-byte letters of Latin, Greek and Cyrillic; other bytes stay. */
void espi_lower_case(char *text, size_t size);

#endif
