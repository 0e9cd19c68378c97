/* Products and triangular systems of tiles: pieces of matrices, stored row by row, of at most ESPI_TILE rows, columns
 * and terms. Everything that dense.h and algebra.h compute is made of them.
 *
 * Each number of a product is one sum in the order of its terms, every step of which is one fused multiply-add. So it
 * depends neither on the processor, nor on the width of its vectors, nor on what else is computed. A processor without
 * such an instruction (x86 before 2013) gets the same numbers from the C library, slowly.
 *
 * Nothing here fails, keeps state or asks for memory; the stack has to hold some tiles (half a megabyte). */
#ifndef ESPI_BASE_TILE_H
#define ESPI_BASE_TILE_H

#include <stdbool.h>
#include <stddef.h>

enum { ESPI_TILE = 128, ESPI_STRIP = 16, ESPI_TILE_SIZE = ESPI_TILE * ESPI_TILE };

static inline size_t espi_tiles(size_t n) { return (n + ESPI_TILE - 1) / ESPI_TILE; }
/* Rows or columns of tile i of n. */
static inline size_t espi_tile_width(size_t n, size_t i)
{
    const size_t left = n - i * ESPI_TILE;
    return left < ESPI_TILE ? left : ESPI_TILE;
}

/* B (`turn`: its transpose is stored), inner x columns, as espi_tile_product wants it: ESPI_STRIP columns side by side,
 * zeros behind the last. `packed` has room for ESPI_TILE_SIZE numbers. */
void espi_tile_pack(bool turn, size_t inner, size_t columns, const double *b, size_t stride, double *packed);
/* C += scale A B; A is rows x inner (`turn`: its transpose is stored). C may not overlap A but for whole columns that
 * are not among the `inner`. */
void espi_tile_product(bool turn, size_t rows, size_t columns, size_t inner, double scale, const double *a,
                       size_t a_stride, const double *packed, double *c, size_t c_stride);

/* The lower triangle of A becomes L, A = L L^T; what is above the diagonal is not looked at, but changed. Returns 0, or
 * the number (from 1) of the row whose pivot is not positive, and that pivot. */
size_t espi_tile_factor(double *a, size_t n, size_t stride, double *pivot);
/* X = X M^-1, X being rows x n; M is the lower (or `upper`) triangle of T, or, if `turn`, its transpose. */
void espi_tile_solve(bool upper, bool turn, size_t n, const double *t, size_t t_stride, size_t rows, double *x,
                     size_t x_stride);
/* Y = X^T; X is rows x columns. They do not overlap. */
void espi_tile_turn(size_t rows, size_t columns, const double *x, size_t x_stride, double *y, size_t y_stride);
/* Both triangles of B from the lower one of A. */
void espi_tile_mirror(size_t n, const double *a, size_t a_stride, double *b, size_t b_stride);

#endif
