/* Numbers with the precision of a double and an exponent that does not overflow: value = m * 2^e, m = 0 or
 * 0.5 <= |m| < 1. The slow way taken only where plain doubles overflow (lambda = 1 on large trees). */
#ifndef ESPI_BASE_WIDE_H
#define ESPI_BASE_WIDE_H

#include <math.h>
#include <stdint.h>

typedef struct espi_wide {
    double m;
    int64_t e;
} espi_wide;

static inline espi_wide espi_wide_norm(double m, int64_t e)
{
    const int64_t most = INT64_MAX / 4; /* sums of two exponents must not overflow */
    int shift;
    const double fraction = frexp(m, &shift);
    if (fraction == 0.0) return (espi_wide){0.0, 0};
    e += shift;
    return (espi_wide){fraction, e > most ? most : e < -most ? -most : e};
}
static inline espi_wide espi_wide_of(double x) { return espi_wide_norm(x, 0); }

static inline espi_wide espi_wide_mul(espi_wide a, espi_wide b) { return espi_wide_norm(a.m * b.m, a.e + b.e); }

static inline espi_wide espi_wide_add(espi_wide a, espi_wide b)
{
    if (a.m == 0.0) return b;
    if (b.m == 0.0) return a;
    if (a.e < b.e) {
        const espi_wide t = a;
        a = b;
        b = t;
    }
    if (a.e - b.e > 100) return a;
    return espi_wide_norm(a.m + ldexp(b.m, (int)(b.e - a.e)), a.e);
}

/* a / sqrt(b * c) for b, c > 0, as a double. */
static inline double espi_wide_normalise(espi_wide a, espi_wide b, espi_wide c)
{
    const espi_wide square = espi_wide_mul(b, c);
    const int odd = (int)(square.e & 1);
    const double root = sqrt(odd ? square.m * 2.0 : square.m);
    const int64_t e = a.e - (square.e - odd) / 2;
    return e > 2000 ? (a.m < 0.0 ? -INFINITY : INFINITY) : e < -2000 ? 0.0 : ldexp(a.m / root, (int)e);
}

/* The nearest double; infinite where there is none. */
static inline double espi_wide_double(espi_wide a)
{
    return a.e > 2000 ? (a.m < 0.0 ? -INFINITY : INFINITY) : a.e < -2000 ? 0.0 : ldexp(a.m, (int)a.e);
}

/* base^exponent by repeated squaring. */
static inline double espi_power(double base, unsigned exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

#endif
