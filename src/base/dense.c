/* A product has a task for each tile of its result. A triangular system has one for each tile of X, which waits for the
 * tiles that it needs: so even one right-hand side keeps several threads busy. */
#include "base/dense.h"

#include "base/alloc.h"
#include "base/hot.h"
#include "base/status.h"
#include "base/tile.h"

#include <string.h>

enum { TILE = ESPI_TILE };

esp_status espi_dense_tasks(const esp_run *run, const char *stage, double work, size_t items, espi_task task,
                            void *context, esp_error *err)
{
    const double little = 4e6; /* not worth the start of threads */
    if (work > little && run != &espi_alone) return espi_parallel(run, stage, items, task, context, err);
    const espi_worker alone = {.run = &espi_alone};
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < items; i++) status = task(context, i, &alone, err);
    return status;
}

/* --------------------------------------------------------------- products */

typedef struct product {
    const espi_dense_factors *f;
    double *c;
    size_t c_stride, columns; /* columns of tiles */
    bool lower;
} product;

/* Tile (i, j) of a matrix, or of one whose transpose is stored. */
static size_t tile_at(size_t stride, bool turn, size_t i, size_t j)
{
    return (turn ? j * stride + i : i * stride + j) * TILE;
}

static esp_status multiply_tile(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)worker, (void)err;
    const product *p = context;
    const espi_dense_factors *f = p->f;
    const size_t i = item / p->columns, j = item % p->columns;
    if (p->lower && j > i) return ESP_OK;
    const size_t rows = espi_tile_width(f->rows, i), columns = espi_tile_width(f->columns, j);
    double packed[ESPI_TILE_SIZE], sum[ESPI_TILE_SIZE], *c = p->c + tile_at(p->c_stride, false, i, j);
    for (size_t r = 0; r < rows; r++)
        for (size_t q = 0; q < columns; q++) sum[r * TILE + q] = f->add ? c[r * p->c_stride + q] : 0.0;
    for (size_t k = 0; k < espi_tiles(f->inner); k++) {
        const size_t inner = espi_tile_width(f->inner, k);
        espi_tile_pack(f->turn_b, inner, columns, f->b + tile_at(f->b_stride, f->turn_b, k, j), f->b_stride, packed);
        espi_tile_product(f->turn_a, rows, columns, inner, f->scale, f->a + tile_at(f->a_stride, f->turn_a, i, k),
                          f->a_stride, packed, sum, TILE);
    }
    for (size_t r = 0; r < rows; r++)
        memcpy(c + r * p->c_stride, sum + r * TILE, (p->lower && i == j ? r + 1 : columns) * sizeof *c);
    return ESP_OK;
}

static esp_status multiply(const espi_dense_factors *f, bool lower, double *c, size_t c_stride, const esp_run *run,
                           esp_error *err)
{
    product p = {.f = f, .c = c, .c_stride = c_stride, .columns = espi_tiles(f->columns), .lower = lower};
    const double work = (double)f->rows * (double)f->columns * (double)f->inner;
    return espi_dense_tasks(run, "multiplying", work, espi_tiles(f->rows) * p.columns, multiply_tile, &p, err);
}

esp_status espi_dense_product(const espi_dense_factors *f, double *c, size_t c_stride, const esp_run *run,
                              esp_error *err)
{
    return multiply(f, false, c, c_stride, run, err);
}

esp_status espi_dense_symmetric(const espi_dense_factors *f, double *c, size_t c_stride, const esp_run *run,
                                esp_error *err)
{
    return multiply(f, true, c, c_stride, run, err);
}

/* -------------------------------------------------------- symmetric times */

typedef struct symmetric {
    const double *a, *x;
    double *y;
    size_t n, count, tiles;
} symmetric;

static esp_status times_tile(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)worker, (void)err;
    const symmetric *s = context;
    const size_t n = s->n, i = item / s->tiles, j = item % s->tiles;
    const size_t rows = espi_tile_width(s->count, i), columns = espi_tile_width(n, j);
    double packed[ESPI_TILE_SIZE], whole[ESPI_TILE_SIZE], *y = s->y + tile_at(n, false, i, j);
    for (size_t r = 0; r < rows; r++) memset(y + r * n, 0, columns * sizeof *y);
    for (size_t k = 0; k < s->tiles; k++) {
        const size_t inner = espi_tile_width(n, k);
        const double *from = s->a + (k < j ? tile_at(n, false, j, k) : tile_at(n, false, k, j));
        if (k == j) espi_tile_mirror(inner, from, n, whole, TILE);
        if (k == j) espi_tile_pack(false, inner, columns, whole, TILE, packed);
        else espi_tile_pack(k < j, inner, columns, from, n, packed);
        espi_tile_product(false, rows, columns, inner, 1.0, s->x + tile_at(n, false, i, k), n, packed, y, n);
    }
    return ESP_OK;
}

esp_status espi_dense_times(const double *a, size_t n, const double *x, size_t count, double *y, const esp_run *run,
                            esp_error *err)
{
    symmetric s = {.a = a, .x = x, .y = y, .n = n, .count = count, .tiles = espi_tiles(n)};
    const double work = (double)n * (double)n * (double)count;
    return espi_dense_tasks(run, "multiplying", work, espi_tiles(count) * s.tiles, times_tile, &s, err);
}

/* ------------------------------------------------------ triangular systems */

typedef struct system {
    const espi_dense_triangle *m;
    double *x;
    size_t rows, columns, x_stride;
    size_t n, tiles;      /* of M */
    size_t width, strips; /* the other side of X */
    bool rises;           /* the first tiles of X are found first */
    espi_mark *done;      /* per tile of X, in the order in which they are found */
} system;

/* Where M is not that of X M^-1, it is that of X^T M^-T: X goes through a turned copy. */
static void solve_tile(const system *s, size_t j, size_t rows, size_t n, double *x)
{
    const espi_dense_triangle *m = s->m;
    const double *t = m->t + tile_at(m->t_stride, false, j, j);
    double turned[ESPI_TILE_SIZE];
    if (!m->left) {
        espi_tile_solve(m->upper, m->turn, n, t, m->t_stride, rows, x, s->x_stride);
        return;
    }
    espi_tile_turn(n, rows, x, s->x_stride, turned, n);
    espi_tile_solve(m->upper, !m->turn, n, t, m->t_stride, rows, turned, n);
    espi_tile_turn(rows, n, turned, n, x, s->x_stride);
}

/* Tile j of strip `strip`, from which all found before are subtracted, times their part of M. */
static esp_status find_tile(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const system *s = context;
    const espi_dense_triangle *m = s->m;
    const size_t step = item / s->strips, strip = item % s->strips, j = s->rises ? step : s->tiles - 1 - step;
    const size_t rows = espi_tile_width(s->width, strip), columns = espi_tile_width(s->n, j), stride = s->x_stride;
    double packed[ESPI_TILE_SIZE], *x = s->x + tile_at(stride, m->left, strip, j);
    for (size_t before = 0; before < step; before++) {
        const size_t k = s->rises ? before : s->tiles - 1 - before, inner = espi_tile_width(s->n, k);
        const double *known = s->x + tile_at(stride, m->left, strip, k);
        const esp_status status = espi_mark_await(worker, &s->done[before * s->strips + strip], err);
        if (status != ESP_OK) return status;
        if (m->left) {
            espi_tile_pack(false, inner, rows, known, stride, packed);
            espi_tile_product(m->turn, columns, rows, inner, -1.0, m->t + tile_at(m->t_stride, m->turn, j, k),
                              m->t_stride, packed, x, stride);
        } else {
            espi_tile_pack(m->turn, inner, columns, m->t + tile_at(m->t_stride, m->turn, k, j), m->t_stride, packed);
            espi_tile_product(false, rows, columns, inner, -1.0, known, stride, packed, x, stride);
        }
    }
    solve_tile(s, j, rows, columns, x);
    espi_mark_set(worker, &s->done[item]);
    return ESP_OK;
}

esp_status espi_dense_solve(const espi_dense_triangle *m, size_t rows, size_t columns, double *x, size_t x_stride,
                            const esp_run *run, esp_error *err)
{
    system s = {.m = m, .x = x, .rows = rows, .columns = columns, .x_stride = x_stride};
    s.n = m->left ? rows : columns;
    s.width = m->left ? columns : rows;
    s.tiles = espi_tiles(s.n);
    s.strips = espi_tiles(s.width);
    s.rises = m->left != (m->upper != m->turn);
    s.done = espi_alloc_zero(s.tiles * s.strips, sizeof *s.done);
    if (s.done == NULL) return espi_no_memory(err);
    const double work = (double)s.n * (double)s.n * (double)s.width;
    const esp_status status = espi_dense_tasks(run, "solving", work, s.tiles * s.strips, find_tile, &s, err);
    espi_free(s.done);
    return status;
}

/* ---------------------------------------------------------------- lengths */

enum { LANES = 8 }; /* partial sums: a fixed order that vector units of every width can keep */

HOT static double dense_dot(const double *restrict x, const double *restrict y, size_t n)
{
    double part[LANES] = {0.0}, sum = 0.0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t k = 0; k < LANES; k++) part[k] += x[j + k] * y[j + k];
    for (; j < n; j++) sum += x[j] * y[j];
    for (size_t k = 0; k < LANES; k++) sum += part[k];
    return sum;
}

void espi_dense_lengths(const double *l, size_t n, double *x, size_t count, double *length)
{
    for (size_t i = 0; i < n; i++) /* a row of L serves all vectors while it is in the cache */
        for (size_t c = 0; c < count; c++) {
            double *v = x + c * n;
            v[i] = (v[i] - dense_dot(l + i * n, v, i)) / l[i * n + i];
        }
    for (size_t c = 0; c < count; c++) length[c] = dense_dot(x + c * n, x + c * n, n);
}
