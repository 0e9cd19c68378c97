#define _GNU_SOURCE /* strtod_l */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* More significant digits than a number half-way between two doubles can have (767), and one for the rest. */
enum { DIGITS = 780 };

/* Powers of ten that a double holds exactly. */
static const double exact_power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A decimal number as it is read: 0.d1d2d3... * 10^power. */
typedef struct decimal {
    bool negative;
    char digit[DIGITS + 1];
    size_t digits;
    long power;
} decimal;

/* The C library's conversion in the C locale, for what the short way cannot do exactly. */
static bool convert_slowly(decimal *d, double *value)
{
    char text[DIGITS + 32];
    d->digit[d->digits] = '\0';
    snprintf(text, sizeof text, "%s.%se%ld", d->negative ? "-" : "", d->digit, d->power);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) return false;
    *value = strtod_l(text, NULL, plain);
    freelocale(plain);
    return isfinite(*value);
}

/* A mantissa below 2^53 and a power of ten up to 22 are exact, so that one rounding gives the nearest double. */
static bool convert(decimal *d, double *value)
{
    const long power = d->power - (long)d->digits;
    uint64_t mantissa = 0;
    if (d->digits > 18 || power < -22 || power > 22) return convert_slowly(d, value);
    for (size_t i = 0; i < d->digits; i++) mantissa = mantissa * 10 + (uint64_t)(d->digit[i] - '0');
    if (mantissa > (UINT64_C(1) << 53)) return convert_slowly(d, value);
    const double m = (double)mantissa, v = power < 0 ? m / exact_power[-power] : m * exact_power[power];
    *value = d->negative ? -v : v;
    return true;
}

/* Digits with an optional point. More than DIGITS cannot change how the number is rounded, except that the last
 * one kept must tell whether anything behind it was not zero. */
static size_t take_digits(const char *text, size_t at, size_t size, decimal *d)
{
    bool point = false, any = false;
    for (; at < size; at++) {
        const char c = text[at];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        any = true;
        if (d->digits == 0 && c == '0') {
            d->power -= point;
            continue;
        }
        if (d->digits < DIGITS) d->digit[d->digits++] = c;
        else if (c != '0') d->digit[DIGITS - 1] = '1';
        d->power += !point;
    }
    return any ? at : 0;
}

/* Whether all of the text is a decimal number, whose value goes to *value; false there: it is not finite. */
static bool scan(const char *text, size_t size, double *value, bool *finite)
{
    decimal d; /* its digits need no zeros */
    d.negative = size > 0 && text[0] == '-';
    d.digits = 0;
    d.power = 0;
    size_t at = take_digits(text, size > 0 && (text[0] == '-' || text[0] == '+'), size, &d);
    if (at == 0) return false;
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        const bool minus = at + 1 < size && text[at + 1] == '-';
        long exponent = 0;
        at += at + 1 < size && (text[at + 1] == '-' || text[at + 1] == '+') ? 2 : 1;
        if (at == size) return false;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            if (exponent < 100000000) exponent = exponent * 10 + (text[at] - '0');
        d.power += minus ? -exponent : exponent;
    }
    if (at != size) return false;
    *finite = true;
    if (d.digits > 0) *finite = convert(&d, value);
    else *value = d.negative ? -0.0 : 0.0;
    return true;
}

bool espi_number_parse(const char *text, size_t size, double *value)
{
    bool finite;
    return scan(text, size, value, &finite) && finite;
}

bool espi_number_like(const char *text, size_t size)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    const size_t sign = size > 0 && (text[0] == '+' || text[0] == '-');
    double value;
    bool finite;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size - sign && strncasecmp(words[i], text + sign, size - sign) == 0) return true;
    return scan(text, size, &value, &finite);
}

static size_t print(double value, int digits, char text[32])
{
    const int size = snprintf(text, 32, "%.*g", digits, value);
    const char *point = localeconv()->decimal_point;
    char *found = strcmp(point, ".") != 0 ? strstr(text, point) : NULL;
    if (found == NULL) return (size_t)size;
    *found = '.';
    memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    return strlen(text);
}

size_t espi_number_print(double value, char text[32]) { return print(value, 17, text); }

size_t espi_number_print_short(double value, char text[32])
{
    double back;
    size_t size = 0;
    for (int digits = 6; digits <= 17; digits += digits == 6 ? 9 : 1) {
        size = print(value, digits, text);
        if (espi_number_parse(text, size, &back) && back == value) break;
    }
    return size;
}

bool espi_is_json_number(const char *text, size_t size)
{
    size_t at = size > 0 && text[0] == '-', start = at;
    while (at < size && text[at] >= '0' && text[at] <= '9') at++;
    if (at == start || (text[start] == '0' && at > start + 1)) return false;
    if (at < size && text[at] == '.') {
        for (start = ++at; at < size && text[at] >= '0' && text[at] <= '9';) at++;
        if (at == start) return false;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < size && (text[at] == '+' || text[at] == '-')) at++;
        for (start = at; at < size && text[at] >= '0' && text[at] <= '9';) at++;
        if (at == start) return false;
    }
    return at == size;
}
