/* Dense linear algebra by LAPACK (OpenBLAS), for symmetric matrices stored row by row. A factor L is lower triangular,
 * A = L L^T, and stands in the lower triangle; what is above the diagonal is never looked at nor changed.
 * All may be called by several threads, which wait for each other. */
#ifndef ESPI_BASE_DENSE_H
#define ESPI_BASE_DENSE_H

#include "espalier.h"

/* Whether there is memory for the room that OpenBLAS works in. It does not tell when there is none, but asks for ever:
 * to be called before the others. */
bool espi_dense_ready(void);

/* The lower triangle of A becomes L. O(n^3/3). Returns 0, or the number (from 1) of the row whose pivot is not
 * positive; the rows before it are then those of L. */
size_t espi_dense_factor(double *a, size_t n);
/* The same for A + add I, of which both triangles are given; the upper one stays, and `diagonal` gets that of A. What
 * has no factor gets jitter on its diagonal, `least` of its mean at first and up to a million times that, by powers
 * of 10. ESP_OK also if all fails: *failed tells. LAPACK cannot be interrupted; `run` is asked before each attempt. */
esp_status espi_dense_factor_jitter(double *a, size_t n, double add, double least, const esp_run *run, double *diagonal,
                                    double *jitter, size_t *failed, esp_error *err);
/* sum_i log L_ii, half the logarithm of the determinant. */
double espi_dense_half_log(const double *l, size_t n);
/* The lower triangle of L becomes that of A^-1. O(2 n^3/3). */
void espi_dense_invert(double *l, size_t n);
/* x = L^-1 x, or L^-T x, in place; `stride` is the length of the rows of L, of which `n` are used. */
void espi_dense_half_solve(const double *l, size_t n, size_t stride, bool transposed, double *x);
/* x = A^-1 x in place. */
void espi_dense_solve(const double *l, size_t n, double *x);
/* The same as espi_dense_half_solve for `count` vectors, one behind the other. */
void espi_dense_half_solve_all(const double *l, size_t n, double *x, size_t count);
/* y = A x, from the lower triangle of A. */
void espi_dense_times(const double *a, size_t n, const double *x, double *y);

/* C = scale A B + keep C, A (or A^T, if `turn_a`) being rows x inner, B (or B^T) inner x columns; strides are the
 * lengths of the rows in memory. */
void espi_dense_product(bool turn_a, bool turn_b, int rows, int columns, int inner, double scale, const double *a,
                        int a_stride, const double *b, int b_stride, double keep, double *c, int c_stride);
/* The lower triangle of C = A A' + keep C, A being rows x inner. */
void espi_dense_outer(int rows, int inner, const double *a, int a_stride, double keep, double *c, int c_stride);
/* X = T^-1 X (left), or X T^-1; T is the lower or the upper triangle, `turn`: T^T is meant. X is rows x columns. */
void espi_dense_triangle(bool left, bool upper, bool turn, int rows, int columns, const double *t, int t_stride,
                         double *x, int x_stride);

/* |L^-1 x|^2 for `count` vectors of n numbers, which are changed. Without LAPACK: any number of threads may work at
 * once, and a result does not depend on what else is computed. */
void espi_dense_lengths(const double *l, size_t n, double *x, size_t count, double *length);

#endif
