#define _GNU_SOURCE /* strtod_l */
#include "base/number.h"

#include "base/alloc.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Powers of ten that a double holds exactly. */
static const double exact_power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The C library's conversion in the C locale, for what the short way cannot do exactly. */
static bool parse_slowly(const char *text, size_t size, double *value)
{
    char small[64], *copy = size < sizeof small ? small : espi_alloc(size + 1, 1);
    if (copy == NULL) return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    char *end = copy;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain != (locale_t)0) {
        *value = strtod_l(copy, &end, plain);
        freelocale(plain);
    }
    const bool whole = end == copy + size;
    if (copy != small) espi_free(copy);
    return whole && isfinite(*value);
}

bool espi_number_parse(const char *text, size_t size, double *value)
{
    size_t at = 0, digits = 0;
    const bool negative = size > 0 && text[0] == '-';
    if (size > 0 && (text[0] == '-' || text[0] == '+')) at++;
    uint64_t mantissa = 0;
    int scale = 0, exponent = 0, significant = 0;
    bool point = false;
    for (; at < size; at++) {
        const char c = text[at];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            if (mantissa != 0 || c != '0') significant++;
            if (significant <= 18) mantissa = mantissa * 10 + (uint64_t)(c - '0'), scale -= point;
            digits++;
        } else {
            break;
        }
    }
    if (digits == 0) return false;
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        const bool minus = at + 1 < size && text[at + 1] == '-';
        at += at + 1 < size && (text[at + 1] == '-' || text[at + 1] == '+') ? 2 : 1;
        if (at == size) return false;
        for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
            if (exponent < 10000) exponent = exponent * 10 + (text[at] - '0');
        if (minus) exponent = -exponent;
    }
    if (at != size) return false;
    const int power = exponent + scale;
    /* A mantissa below 2^53 and a power of ten up to 22 are exact, so one rounding gives the nearest double. */
    if (significant > 18 || mantissa > (UINT64_C(1) << 53) || power < -22 || power > 22)
        return parse_slowly(text, size, value);
    const double m = (double)mantissa, v = power < 0 ? m / exact_power[-power] : m * exact_power[power];
    *value = negative ? -v : v;
    return true;
}

bool espi_number_like(const char *text, size_t size)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    const size_t sign = size > 0 && (text[0] == '+' || text[0] == '-');
    size_t digits = 0, other = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size - sign && strncasecmp(words[i], text + sign, size - sign) == 0) return true;
    for (size_t i = sign; i < size; i++) {
        if (text[i] >= '0' && text[i] <= '9') digits++;
        else if (strchr(".eE+-", text[i]) == NULL || text[i] == '\0' || digits == 0) other++;
    }
    return digits > 0 && other == 0;
}

static size_t print(double value, int digits, char text[32])
{
    const int size = snprintf(text, 32, "%.*g", digits, value);
    char *comma = strchr(text, ',');
    if (comma != NULL) *comma = '.';
    return (size_t)size;
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
