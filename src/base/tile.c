/* The product: A goes row by row as it stands, B is packed into strips of ESPI_STRIP columns, and ROWS x ESPI_STRIP
 * sums stay in registers (Goto & van de Geijn 2008). A tile of B fits the second-level cache, a strip of it the first.
 *
 * Factors and triangular systems go by strips too: what the strips before contribute is a product; within a strip, the
 * numbers of several rows are computed side by side. */
#include "base/tile.h"

#include "base/hot.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROWS = 8, STRIP = ESPI_STRIP };

/* out = A B for ROWS rows of A, given by where they begin, and one strip. */
typedef void block_product(size_t inner, const double *const *row, const double *strip, double *out);

static void block_any(size_t inner, const double *const *row, const double *strip, double *out)
{
    for (size_t i = 0; i < ROWS * STRIP; i++) out[i] = 0.0;
    for (size_t k = 0; k < inner; k++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < STRIP; j++)
                out[i * STRIP + j] = fma(row[i][k], strip[k * STRIP + j], out[i * STRIP + j]);
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void block_512(size_t inner, const double *const *row, const double *strip,
                                                         double *out)
{
    const double *a[ROWS];
    __m512d sum[ROWS][2];
    for (size_t i = 0; i < ROWS; i++) {
        a[i] = row[i];
        sum[i][0] = sum[i][1] = _mm512_setzero_pd();
    }
    for (size_t k = 0; k < inner; k++) {
        const __m512d x = _mm512_loadu_pd(strip + k * STRIP), y = _mm512_loadu_pd(strip + k * STRIP + 8);
        for (size_t i = 0; i < ROWS; i++) {
            const __m512d v = _mm512_set1_pd(a[i][k]);
            sum[i][0] = _mm512_fmadd_pd(v, x, sum[i][0]);
            sum[i][1] = _mm512_fmadd_pd(v, y, sum[i][1]);
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        _mm512_storeu_pd(out + i * STRIP, sum[i][0]);
        _mm512_storeu_pd(out + i * STRIP + 8, sum[i][1]);
    }
}

/* Half of the rows and half of the strip: there are 16 registers only. */
__attribute__((target("avx,fma"))) static void quarter_256(size_t inner, const double *const *row, const double *strip,
                                                           double *out)
{
    const double *a[ROWS / 2];
    __m256d sum[ROWS / 2][2];
    for (size_t i = 0; i < ROWS / 2; i++) {
        a[i] = row[i];
        sum[i][0] = sum[i][1] = _mm256_setzero_pd();
    }
    for (size_t k = 0; k < inner; k++) {
        const __m256d x = _mm256_loadu_pd(strip + k * STRIP), y = _mm256_loadu_pd(strip + k * STRIP + 4);
        for (size_t i = 0; i < ROWS / 2; i++) {
            const __m256d v = _mm256_broadcast_sd(a[i] + k);
            sum[i][0] = _mm256_fmadd_pd(v, x, sum[i][0]);
            sum[i][1] = _mm256_fmadd_pd(v, y, sum[i][1]);
        }
    }
    for (size_t i = 0; i < ROWS / 2; i++) {
        _mm256_storeu_pd(out + i * STRIP, sum[i][0]);
        _mm256_storeu_pd(out + i * STRIP + 4, sum[i][1]);
    }
}

static void block_256(size_t inner, const double *const *row, const double *strip, double *out)
{
    for (size_t i = 0; i < ROWS; i += ROWS / 2)
        for (size_t j = 0; j < STRIP; j += STRIP / 2) quarter_256(inner, row + i, strip + j, out + i * STRIP + j);
}

static block_product *best_block(void)
{
    if (__builtin_cpu_supports("avx512f")) return block_512;
    return __builtin_cpu_supports("fma") ? block_256 : block_any;
}

#else

static block_product *best_block(void) { return block_any; }

#endif

/* --------------------------------------------------------------- products */

enum { SIDE = 8 }; /* rows whose places in the transpose share cache lines */

HOT static void tile_turn_rows(size_t columns, const double *restrict x, size_t x_stride, double *restrict y,
                               size_t y_stride)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < SIDE; i++) y[j * y_stride + i] = x[i * x_stride + j];
}

void espi_tile_turn(size_t rows, size_t columns, const double *x, size_t x_stride, double *y, size_t y_stride)
{
    size_t i = 0;
    for (; i + SIDE <= rows; i += SIDE) tile_turn_rows(columns, x + i * x_stride, x_stride, y + i, y_stride);
    for (; i < rows; i++)
        for (size_t j = 0; j < columns; j++) y[j * y_stride + i] = x[i * x_stride + j];
}

void espi_tile_mirror(size_t n, const double *a, size_t a_stride, double *b, size_t b_stride)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) b[i * b_stride + j] = b[j * b_stride + i] = a[i * a_stride + j];
}

void espi_tile_pack(bool turn, size_t inner, size_t columns, const double *b, size_t stride, double *packed)
{
    for (size_t first = 0; first < columns; first += STRIP) {
        const size_t width = columns - first < STRIP ? columns - first : STRIP;
        double *strip = packed + first * inner;
        if (width < STRIP) memset(strip, 0, inner * STRIP * sizeof *strip);
        if (turn) espi_tile_turn(width, inner, b + first * stride, stride, strip, STRIP);
        for (size_t k = 0; !turn && k < inner; k++)
            memcpy(strip + k * STRIP, b + k * stride + first, width * sizeof *strip);
    }
}

static void add_block(size_t rows, size_t columns, double scale, const double *from, double *c, size_t stride)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) c[i * stride + j] += scale * from[i * STRIP + j];
}

void espi_tile_product(bool turn, size_t rows, size_t columns, size_t inner, double scale, const double *a,
                       size_t a_stride, const double *packed, double *c, size_t c_stride)
{
    block_product *const block = best_block();
    double turned[ESPI_TILE_SIZE], sum[ROWS * STRIP];
    if (turn) {
        espi_tile_turn(inner, rows, a, a_stride, turned, inner);
        a = turned;
        a_stride = inner;
    }
    for (size_t i = 0; i < rows; i += ROWS) {
        const double *row[ROWS];
        const size_t height = rows - i < ROWS ? rows - i : ROWS;
        for (size_t r = 0; r < ROWS; r++) row[r] = a + (i + (r < height ? r : height - 1)) * a_stride;
        for (size_t j = 0; j < columns; j += STRIP) {
            const size_t width = columns - j < STRIP ? columns - j : STRIP;
            block(inner, row, packed + j * inner, sum);
            if (height == ROWS && width == STRIP) add_block(ROWS, STRIP, scale, sum, c + i * c_stride + j, c_stride);
            else add_block(height, width, scale, sum, c + i * c_stride + j, c_stride);
        }
    }
}

/* ----------------------------------------------- factors and triangles */

enum { LANES = 16 }; /* rows side by side */

/* x M^-1 for LANES rows x of a strip, whose number c of all rows stands at x + c LANES. M_dc is at m[d * STRIP + c]. */
HOT static void tile_substitute(size_t n, bool upper, const double *restrict m, double *restrict x)
{
    for (size_t step = 0; step < n; step++) {
        const size_t c = upper ? step : n - 1 - step, from = upper ? 0 : c + 1, to = upper ? c : n;
        double v[LANES];
        for (size_t l = 0; l < LANES; l++) v[l] = x[c * LANES + l];
        for (size_t d = from; d < to; d++)
            for (size_t l = 0; l < LANES; l++) v[l] -= x[d * LANES + l] * m[d * STRIP + c];
        for (size_t l = 0; l < LANES; l++) x[c * LANES + l] = v[l] / m[c * STRIP + c];
    }
}

/* X = X M^-1 for a strip: M is n x n, n <= STRIP, and upper or lower. */
static void solve_strip(size_t n, bool upper, const double *m, size_t rows, double *x, size_t stride)
{
    for (size_t first = 0; first < rows; first += LANES) {
        const size_t count = rows - first < LANES ? rows - first : LANES;
        double turned[STRIP * LANES] = {0.0};
        espi_tile_turn(count, n, x + first * stride, stride, turned, LANES);
        tile_substitute(n, upper, m, turned);
        espi_tile_turn(n, count, turned, LANES, x + first * stride, stride);
    }
}

/* The part of M = T or T^T that belongs to columns first .. first + n - 1 of rows from .. from + n - 1. */
static const double *part_of(const double *t, size_t stride, bool turn, size_t from, size_t first)
{
    return turn ? t + first * stride + from : t + from * stride + first;
}

void espi_tile_solve(bool upper, bool turn, size_t n, const double *t, size_t t_stride, size_t rows, double *x,
                     size_t x_stride)
{
    const bool rises = upper != turn; /* M is upper: from the first column to the last */
    const size_t strips = (n + STRIP - 1) / STRIP;
    double packed[ESPI_TILE * STRIP], m[STRIP * STRIP];
    for (size_t step = 0; step < strips; step++) {
        const size_t first = (rises ? step : strips - 1 - step) * STRIP, width = n - first < STRIP ? n - first : STRIP;
        const size_t from = rises ? 0 : first + width, inner = rises ? first : n - from;
        if (inner > 0) {
            espi_tile_pack(turn, inner, width, part_of(t, t_stride, turn, from, first), t_stride, packed);
            espi_tile_product(false, rows, width, inner, -1.0, x + from, x_stride, packed, x + first, x_stride);
        }
        for (size_t d = 0; d < width; d++)
            for (size_t c = 0; c < width; c++) m[d * STRIP + c] = *part_of(t, t_stride, turn, first + d, first + c);
        solve_strip(width, rises, m, rows, x + first, x_stride);
    }
}

/* The same as espi_tile_factor for n <= STRIP; the factor's transpose goes to m as well. */
static size_t factor_strip(double *a, size_t n, size_t stride, double *m, double *pivot)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = a[i * stride + j];
            for (size_t k = 0; k < j; k++) v -= m[k * STRIP + i] * m[k * STRIP + j];
            if (i == j && !(v > 0.0)) {
                *pivot = v;
                return i + 1;
            }
            a[i * stride + j] = m[j * STRIP + i] = i == j ? sqrt(v) : v / m[j * STRIP + j];
        }
    return 0;
}

size_t espi_tile_factor(double *a, size_t n, size_t stride, double *pivot)
{
    double packed[ESPI_TILE * STRIP], m[STRIP * STRIP];
    for (size_t first = 0; first < n; first += STRIP) {
        const size_t width = n - first < STRIP ? n - first : STRIP, below = first + width;
        double *row = a + first * stride;
        if (first > 0) {
            espi_tile_pack(true, first, width, row, stride, packed);
            espi_tile_product(false, n - first, width, first, -1.0, row, stride, packed, row + first, stride);
        }
        const size_t bad = factor_strip(row + first, width, stride, m, pivot);
        if (bad > 0) return first + bad;
        solve_strip(width, true, m, n - below, a + below * stride + first, stride);
    }
    return 0;
}
