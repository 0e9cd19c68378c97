/* Dense matrices from their definitions, for what the library does otherwise. */
#ifndef DENSE_REFERENCE_H
#define DENSE_REFERENCE_H

#include "cases.h"

/* a = a^-1 in place by Gauss and Jordan with the largest pivot of a column; the logarithm of the determinant. */
static inline double invert(double *a, size_t n)
{
    double *b = calloc(n * n, sizeof *b), log_determinant = 0.0;
    assert_non_null(b);
    for (size_t i = 0; i < n; i++) b[i * n + i] = 1.0;
    for (size_t c = 0; c < n; c++) {
        size_t best = c;
        for (size_t r = c; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[best * n + c])) best = r;
        for (size_t k = 0; k < n; k++) {
            const double u = a[c * n + k], v = b[c * n + k];
            a[c * n + k] = a[best * n + k], a[best * n + k] = u;
            b[c * n + k] = b[best * n + k], b[best * n + k] = v;
        }
        const double pivot = a[c * n + c];
        log_determinant += log(fabs(pivot));
        for (size_t k = 0; k < n; k++) a[c * n + k] /= pivot, b[c * n + k] /= pivot;
        for (size_t r = 0; r < n; r++) {
            const double f = r == c ? 0.0 : a[r * n + c];
            for (size_t k = 0; k < n; k++) a[r * n + k] -= f * a[c * n + k], b[r * n + k] -= f * b[c * n + k];
        }
    }
    memcpy(a, b, n * n * sizeof *a);
    free(b);
    return log_determinant;
}

#endif
