/* Systems of equations, solved in the slow and obvious way. */
#ifndef ELIMINATION_H
#define ELIMINATION_H

#include "cases.h"

/* x of A x = y by Gauss' elimination with pivots; both are destroyed. *log_determinant gets ln |A|. */
static inline void eliminate(double *a, double *y, size_t n, double *log_determinant)
{
    *log_determinant = 0.0;
    for (size_t k = 0; k < n; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        for (size_t j = 0; j < n && best != k; j++) {
            const double other = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = other;
        }
        const double other = y[k];
        y[k] = y[best];
        y[best] = other;
        *log_determinant += log(fabs(a[k * n + k]));
        for (size_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (size_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            y[i] -= factor * y[k];
        }
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++) y[k] -= a[k * n + j] * y[j];
        y[k] /= a[k * n + k];
    }
}

static inline double *copy_of(const double *from, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, from, count * sizeof *copy);
    return copy;
}

#endif
