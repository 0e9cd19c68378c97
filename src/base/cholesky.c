/* The algebra of algebra.h on all cores, tile by tile, in place.
 *
 * The factor, column by column of tiles (L_jj L_jj^T meaning its own factor):
 *
 *     L_jj L_jj^T = A_jj - sum_{k<j} L_jk L_jk^T        L_ij = (A_ij - sum_{k<j} L_ik L_jk^T) L_jj^-T
 *
 * The inverse Z solves Z L = L^-T, whose lower triangle is known: L_jj^-T on its diagonal, 0 below. From the last
 * column to the first,
 *
 *     Z_ij = -(sum_{k>j} Z_ik L_kj) L_jj^-1             Z_jj = (L_jj^-T - sum_{k>j} Z_kj^T L_kj) L_jj^-1
 *
 * which needs of L only column j, once it is known right of it: a packed copy of that column is all the room it takes.
 * Each tile is one task. Its sum goes in a fixed order and waits, term by term, for tiles that others are still at, so
 * that many columns are under way at a time. */
#include "base/algebra.h"

#include "base/alloc.h"
#include "base/dense.h"
#include "base/status.h"
#include "base/tile.h"

#include <string.h>

enum { TILE = ESPI_TILE };

typedef struct tiling {
    double *a;
    size_t n, tiles;
    espi_mark *done; /* per tile of the lower triangle, by rows */
    size_t failed;   /* of the factor: as in espi_factor */
    double pivot;
    espi_mark *ready; /* of the inverse, per tile: it is packed */
    double *packed;   /* COPIES columns of tiles */
} tiling;

enum { COPIES = 3 }; /* of columns of L: as many columns are under way at a time */

static size_t tile_number(size_t i, size_t j) { return i * (i + 1) / 2 + j; }
static double *tile(const tiling *t, size_t i, size_t j) { return t->a + (i * t->n + j) * TILE; }
static size_t width_of(const tiling *t, size_t i) { return espi_tile_width(t->n, i); }

static esp_status await_tile(const tiling *t, size_t i, size_t j, const espi_worker *worker, esp_error *err)
{
    return espi_mark_await(worker, &t->done[tile_number(i, j)], err);
}

/* To a tile of the matrix; of one on the diagonal, only to the lower triangle. */
static void put_tile(const tiling *t, size_t i, size_t j, const double *from)
{
    double *to = tile(t, i, j);
    const size_t columns = width_of(t, j);
    for (size_t r = 0; r < width_of(t, i); r++)
        memcpy(to + r * t->n, from + r * TILE, (i == j ? r + 1 : columns) * sizeof *to);
}

/* ----------------------------------------------------------------- factor */

/* Items go down the columns: column j has tiles - j of them. */
static void place_of(size_t tiles, size_t item, size_t *i, size_t *j)
{
    for (*j = 0; item >= tiles - *j; ++*j) item -= tiles - *j;
    *i = *j + item;
}

static esp_status factor_tile(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    tiling *t = context;
    size_t i, j;
    place_of(t->tiles, item, &i, &j);
    const size_t rows = width_of(t, i), columns = width_of(t, j);
    double packed[ESPI_TILE_SIZE], sum[ESPI_TILE_SIZE];
    esp_status status = ESP_OK;
    for (size_t r = 0; r < rows; r++) memcpy(sum + r * TILE, tile(t, i, j) + r * t->n, columns * sizeof *sum);
    for (size_t k = 0; k < j; k++) {
        status = await_tile(t, j, k, worker, err);
        if (status == ESP_OK) status = await_tile(t, i, k, worker, err);
        if (status != ESP_OK) return status;
        espi_tile_pack(true, TILE, columns, tile(t, j, k), t->n, packed);
        espi_tile_product(false, rows, columns, TILE, -1.0, tile(t, i, k), t->n, packed, sum, TILE);
    }
    if (i == j) {
        const size_t bad = espi_tile_factor(sum, rows, TILE, &t->pivot);
        if (bad > 0) t->failed = j * TILE + bad;
        if (bad > 0) return espi_fail(err, ESP_ERR_RANGE, "pivot %zu is not positive", t->failed);
    } else {
        status = await_tile(t, j, j, worker, err);
        if (status != ESP_OK) return status;
        espi_tile_solve(false, true, columns, tile(t, j, j), t->n, rows, sum, TILE);
    }
    put_tile(t, i, j, sum);
    espi_mark_set(worker, &t->done[tile_number(i, j)]);
    return ESP_OK;
}

static esp_status make(espi_factor *factor, const esp_run *run, esp_error *err)
{
    const double n = (double)factor->n;
    tiling t = {.a = factor->a, .n = factor->n, .tiles = espi_tiles(factor->n)};
    const size_t items = tile_number(t.tiles, 0);
    t.done = espi_alloc_zero(items, sizeof *t.done);
    if (t.done == NULL) return espi_no_memory(err);
    esp_status status = espi_progress(run, "factoring", -1.0, err);
    if (status == ESP_OK) status = espi_dense_tasks(run, "factoring", n * n * n / 6.0, items, factor_tile, &t, err);
    espi_free(t.done);
    factor->failed = t.failed;
    factor->pivot = t.pivot;
    return t.failed > 0 ? ESP_OK : status;
}

static esp_status solve(const espi_factor *factor, bool turn, double *x, size_t count, const esp_run *run,
                        esp_error *err)
{
    const espi_dense_triangle l = {.turn = !turn, .t = factor->a, .t_stride = factor->n}; /* vectors are rows */
    return espi_dense_solve(&l, count, factor->n, x, factor->n, run, err);
}

/* ---------------------------------------------------------------- inverse */

static double *packed_tile(const tiling *t, size_t k, size_t j)
{
    return t->packed + (j % COPIES * t->tiles + k) * ESPI_TILE_SIZE;
}

/* L_kj, to where a column was that nobody needs any more. */
static esp_status pack_tile(const tiling *t, size_t k, size_t j, const espi_worker *worker, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = t->tiles; status == ESP_OK && i-- > j + COPIES;) status = await_tile(t, i, j + COPIES, worker, err);
    if (status != ESP_OK) return status;
    espi_tile_pack(false, width_of(t, k), width_of(t, j), tile(t, k, j), t->n, packed_tile(t, k, j));
    espi_mark_set(worker, &t->ready[tile_number(k, j)]);
    return ESP_OK;
}

/* sum -= Z_ik L_kj, the tile Z_ik being that below or on the diagonal, or what it is the transpose of. */
static void subtract_term(const tiling *t, size_t i, size_t k, size_t j, double *sum)
{
    const size_t rows = width_of(t, i), columns = width_of(t, j), inner = width_of(t, k);
    const double *packed = packed_tile(t, k, j);
    double whole[ESPI_TILE_SIZE];
    if (k == i) {
        espi_tile_mirror(rows, tile(t, i, i), t->n, whole, TILE);
        espi_tile_product(false, rows, columns, inner, -1.0, whole, TILE, packed, sum, TILE);
    } else if (k < i) {
        espi_tile_product(false, rows, columns, inner, -1.0, tile(t, i, k), t->n, packed, sum, TILE);
    } else {
        espi_tile_product(true, rows, columns, inner, -1.0, tile(t, k, i), t->n, packed, sum, TILE);
    }
}

static esp_status invert_tile(const tiling *t, size_t i, size_t j, const espi_worker *worker, esp_error *err)
{
    const size_t rows = width_of(t, i), columns = width_of(t, j);
    const double *corner = tile(t, j, j);
    double sum[ESPI_TILE_SIZE] = {0.0};
    esp_status status = ESP_OK;
    if (i == j) {
        for (size_t r = 0; r < rows; r++) sum[r * TILE + r] = 1.0;
        espi_tile_solve(false, true, columns, corner, t->n, rows, sum, TILE);
    }
    for (size_t k = t->tiles; k-- > j + 1;) {
        status = espi_mark_await(worker, &t->ready[tile_number(k, j)], err);
        if (status == ESP_OK) status = k > i ? await_tile(t, k, i, worker, err) : await_tile(t, i, k, worker, err);
        if (status != ESP_OK) return status;
        subtract_term(t, i, k, j, sum);
    }
    espi_tile_solve(false, false, columns, corner, t->n, rows, sum, TILE);
    put_tile(t, i, j, sum);
    espi_mark_set(worker, &t->done[tile_number(i, j)]);
    return ESP_OK;
}

/* Column j, beginning with the last, has the tiles of L below its corner to be packed, those of Z to be found, from the
 * one that the next column waits for on, and the corner. */
static esp_status inverse_item(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const tiling *t = context;
    size_t below = 0;
    for (; item >= 2 * below + 1; below++) item -= 2 * below + 1;
    const size_t j = t->tiles - 1 - below;
    if (item < below) return pack_tile(t, j + 1 + item, j, worker, err);
    return item < 2 * below ? invert_tile(t, j + 1 + item - below, j, worker, err) : invert_tile(t, j, j, worker, err);
}

static esp_status invert(espi_factor *factor, const esp_run *run, esp_error *err)
{
    const double n = (double)factor->n;
    tiling t = {.a = factor->a, .n = factor->n, .tiles = espi_tiles(factor->n)};
    const size_t items = tile_number(t.tiles, 0);
    t.done = espi_alloc_zero(items, sizeof *t.done);
    t.ready = espi_alloc_zero(items, sizeof *t.ready);
    t.packed = espi_alloc(COPIES * t.tiles, ESPI_TILE_SIZE * sizeof *t.packed);
    esp_status status = t.done == NULL || t.ready == NULL || t.packed == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = espi_progress(run, "inverting", -1.0, err);
    if (status == ESP_OK)
        status = espi_dense_tasks(run, "inverting", n * n * n / 3.0, t.tiles * t.tiles, inverse_item, &t, err);
    espi_free(t.done);
    espi_free(t.ready);
    espi_free(t.packed);
    return status;
}

const espi_algebra espi_algebra_cores = {.name = "cores", .make = make, .solve = solve, .invert = invert};
