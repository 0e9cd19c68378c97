/* Dense linear algebra over matrices stored row by row, tile by tile (tile.h) on all cores. Every number is computed in
 * the same order by however many threads, on every processor. Strides are the lengths of rows in memory.
 *
 * `run` says how many threads there are (&espi_alone: the caller only) and whether to stop; small
 * work stays with the caller. ESP_ERR_CANCELLED or ESP_ERR_MEMORY leave what was to be computed unfinished. */
#ifndef ESPI_BASE_DENSE_H
#define ESPI_BASE_DENSE_H

#include "base/parallel.h"

/* espi_parallel, or the same by the calling thread alone if the work, in multiplications, is little. */
esp_status espi_dense_tasks(const esp_run *run, const char *stage, double work, size_t items, espi_task task,
                            void *context, esp_error *err);

/* C = scale A B + C, or without C unless `add`. A (or A^T, if `turn_a`) is rows x inner, B (or B^T) inner x columns. */
typedef struct espi_dense_factors {
    bool turn_a, turn_b, add;
    size_t rows, columns, inner;
    double scale;
    const double *a;
    size_t a_stride;
    const double *b;
    size_t b_stride;
} espi_dense_factors;
esp_status espi_dense_product(const espi_dense_factors *f, double *c, size_t c_stride, const esp_run *run,
                              esp_error *err);
/* The lower triangle of the same, for products that are symmetric. */
esp_status espi_dense_symmetric(const espi_dense_factors *f, double *c, size_t c_stride, const esp_run *run,
                                esp_error *err);

/* Y = X A for `count` vectors of n numbers, one behind the other; A is symmetric, and its lower triangle is read. */
esp_status espi_dense_times(const double *a, size_t n, const double *x, size_t count, double *y, const esp_run *run,
                            esp_error *err);

/* X = M^-1 X (`left`), or X M^-1. M is the lower (or `upper`) triangle of T, or, if `turn`, its transpose. */
typedef struct espi_dense_triangle {
    bool left, upper, turn;
    const double *t;
    size_t t_stride;
} espi_dense_triangle;
/* X is rows x columns. */
esp_status espi_dense_solve(const espi_dense_triangle *m, size_t rows, size_t columns, double *x, size_t x_stride,
                            const esp_run *run, esp_error *err);

/* |L^-1 x|^2 for `count` vectors of n numbers, which are changed; L is a lower triangle. By the calling thread. */
void espi_dense_lengths(const double *l, size_t n, double *x, size_t count, double *length);

#endif
