/* Factors of symmetric positive definite matrices, A = L L^T, and what is computed with them: the algebra of Gaussian
 * processes, behind a table of functions, so that something else than the processor's cores can do it.
 *
 * A matrix is n x n numbers of the caller, stored row by row. Only its lower triangle is read and written, which is
 * lent to the factor from espi_factor_make to espi_factor_free; what is above the diagonal never changes.
 *
 * The cores (espi_algebra_cores, cholesky.c) keep L in that triangle. A device (espi_algebra_device, device.c) keeps a
 * copy in its own memory, and of the caller's matrix it sets the diagonal, to that of L. It does the work where
 * run->device says so and the matrix is large enough; where it has no room or fails, the cores do it. All functions ask
 * run->progress at times and end with ESP_ERR_CANCELLED. */
#ifndef ESPI_BASE_ALGEBRA_H
#define ESPI_BASE_ALGEBRA_H

#include "espalier.h"

typedef struct espi_algebra espi_algebra;

typedef struct espi_factor {
    const espi_algebra *by;
    double *a;
    size_t n;
    size_t failed; /* 0, or the number (from 1) of the row whose pivot is not positive: there is no factor */
    double pivot;  /* that pivot */
    void *own;     /* of the implementation */
} espi_factor;

struct espi_algebra {
    const char *name;
    /* A becomes L. ESP_OK also where a pivot fails. O(n^3/3). */
    esp_status (*make)(espi_factor *factor, const esp_run *run, esp_error *err);
    /* For `count` vectors, one behind the other: x = L^-1 x, or L^-T x if `turn`. */
    esp_status (*solve)(const espi_factor *factor, bool turn, double *x, size_t count, const esp_run *run,
                        esp_error *err);
    /* The lower triangle of the caller's matrix becomes L; NULL: it is. */
    esp_status (*fetch)(espi_factor *factor, const esp_run *run, esp_error *err);
    /* The lower triangle of the caller's matrix becomes that of A^-1. O(2 n^3/3). */
    esp_status (*invert)(espi_factor *factor, const esp_run *run, esp_error *err);
    void (*release)(espi_factor *factor);
};

extern const espi_algebra espi_algebra_cores;

/* `here`: the lower triangle of A is to be L, for those who read it; then there is nothing to free. Nor is there after
 * a failure. */
esp_status espi_factor_make(double *a, size_t n, bool here, const esp_run *run, espi_factor *factor, esp_error *err);
/* The same for A + add I, of which both triangles are given; `diagonal` gets that of A. What has no factor gets jitter
 * on its diagonal, `least` of its mean at first and up to a million times that, by powers of 10. factor->failed tells
 * whether all was in vain. */
esp_status espi_factor_make_jitter(double *a, size_t n, bool here, double add, double least, const esp_run *run,
                                   double *diagonal, double *jitter, espi_factor *factor, esp_error *err);
void espi_factor_free(espi_factor *factor);

/* sum_i log L_ii, half the logarithm of the determinant. */
double espi_factor_half_log(const espi_factor *factor);
/* x = L^-1 x (or L^-T x) for `count` vectors, one behind the other. */
esp_status espi_factor_half_solve(const espi_factor *factor, bool turn, double *x, size_t count, const esp_run *run,
                                  esp_error *err);
/* x = A^-1 x. */
esp_status espi_factor_solve(const espi_factor *factor, double *x, size_t count, const esp_run *run, esp_error *err);
/* The lower triangle of the matrix becomes that of A^-1; only espi_factor_free is called after it. */
esp_status espi_factor_invert(espi_factor *factor, const esp_run *run, esp_error *err);

#endif
