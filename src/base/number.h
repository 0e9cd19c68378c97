/* Numbers as text, independent of the locale. */
#ifndef ESPI_BASE_NUMBER_H
#define ESPI_BASE_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads all of text[0..size) as a decimal number. False if it is none, or not finite ("nan", "inf", "1e999"). */
bool espi_number_parse(const char *text, size_t size, double *value);
/* Whether the text is written like a number, finite or not: 1e999, -inf, NaN. */
bool espi_number_like(const char *text, size_t size);
/* Writes %.17g. Returns the length. */
size_t espi_number_print(double value, char text[32]);
/* Writes the shortest decimal that reads back as the same number. Returns the length. */
size_t espi_number_print_short(double value, char text[32]);

static inline bool espi_all_finite(const double *value, size_t count)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++) finite = finite && isfinite(value[i]);
    return finite;
}

/* Whether text[0..size) is a number as JSON writes it. */
bool espi_is_json_number(const char *text, size_t size);

#endif
