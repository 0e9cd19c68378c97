/* The preconditioner by Woodbury's identity. With C = I + F D^-1 F':
 *
 *     P^-1    = D^-1 - D^-1 F' C^-1 F D^-1
 *     log |P| = log |D| + log |C| */
#include "learn/preconditioner.h"

#include "base/alloc.h"
#include "base/algebra.h"
#include "base/dense.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

void espi_preconditioner_free(espi_preconditioner *p)
{
    espi_free(p->pivot);
    espi_free(p->factor);
    espi_free(p->diagonal);
    espi_free(p->inner);
    espi_free(p->room);
    *p = (espi_preconditioner){0};
}

static esp_status draw_pivots(espi_preconditioner *p, const espi_bound *bound, size_t rank, uint64_t seed,
                              const esp_run *run, esp_error *err)
{
    const espi_pivot_options options = {.count = rank, .seed = seed};
    espi_pivots pivots;
    const esp_status status = espi_pivots_draw(bound, &options, run, &pivots, err);
    if (status != ESP_OK) return status;
    p->rank = pivots.count;
    p->pivot = pivots.example;
    pivots.example = NULL;
    espi_pivots_free(&pivots);
    return ESP_OK;
}

/* ----------------------------------------------------------------- factor */

typedef struct pivot_rows {
    const espi_preconditioner *p;
    const espi_bound *bound;
    espi_workspace **workspace; /* per worker */
} pivot_rows;

static esp_status make_row(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const pivot_rows *j = context;
    const espi_preconditioner *p = j->p;
    espi_workspace **w = &j->workspace[thread->number];
    const esp_status status = *w == NULL ? espi_workspace_new(j->bound, thread->run, w, err) : ESP_OK;
    if (status != ESP_OK) return status;
    return espi_bound_row(*w, j->bound->kernel->ops - 1, p->pivot[item], 0, p->examples, p->factor + item * p->examples,
                          err);
}

/* The rows of the pivots: K(S, .). */
static esp_status make_rows(const espi_preconditioner *p, const espi_bound *bound, const esp_run *run, esp_error *err)
{
    const int workers = espi_worker_count(run, p->rank);
    pivot_rows j = {.p = p, .bound = bound};
    j.workspace = espi_alloc_zero((size_t)workers, sizeof(espi_workspace *));
    if (j.workspace == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "computing the kernel", p->rank, make_row, &j, err);
    for (int i = 0; i < workers; i++) espi_workspace_free(j.workspace[i]);
    espi_free(j.workspace);
    return status;
}

/* F = L^-1 K(S, .), with K(S, S) = L L' in the place of what is inside later. Jitter makes F'F smaller, but no worse.
 */
static esp_status make_factor(espi_preconditioner *p, const esp_run *run, esp_error *err)
{
    static const double least = 1e-12; /* jitter, of the mean of the diagonal */
    const size_t n = p->examples, m = p->rank;
    const espi_dense_triangle lower = {.left = true, .t = p->inner, .t_stride = m};
    double jitter;
    espi_factor factor;
    for (size_t a = 0; a < m; a++)
        for (size_t b = 0; b < m; b++) p->inner[a * m + b] = p->factor[a * n + p->pivot[b]];
    const esp_status status =
        espi_factor_make_jitter(p->inner, m, true, 0.0, least, run, p->diagonal, &jitter, &factor, err);
    if (status != ESP_OK) return status;
    if (factor.failed != 0)
        return espi_fail(err, ESP_ERR_RANGE, "the kernel of the preconditioner's pivots is not positive definite");
    return espi_dense_solve(&lower, m, n, p->factor, n, run, err);
}

static esp_status make_diagonal(espi_preconditioner *p, const espi_bound *bound, double noise, const esp_run *run,
                                esp_error *err)
{
    const size_t n = p->examples;
    espi_workspace *workspace = NULL;
    esp_status status = espi_workspace_new(bound, run, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_COLS, p->diagonal, err);
    espi_workspace_free(workspace);
    if (status != ESP_OK) return status;
    for (size_t a = 0; a < p->rank; a++)
        for (size_t i = 0; i < n; i++) p->diagonal[i] -= p->factor[a * n + i] * p->factor[a * n + i];
    p->worst = 1.0;
    p->log = 0.0;
    for (size_t i = 0; i < n; i++) {
        p->diagonal[i] = fmax(p->diagonal[i], 0.0) + noise;
        p->worst = fmax(p->worst, p->diagonal[i] / noise);
        p->log += log(p->diagonal[i]);
    }
    return ESP_OK;
}

/* C, a stretch of columns of F D^-1/2 after the other, and its factor. */
static esp_status factor_inner(espi_preconditioner *p, const esp_run *run, esp_error *err)
{
    enum { COLUMNS = 512 };
    const size_t n = p->examples, m = p->rank;
    if (m == 0) return ESP_OK;
    double *some = espi_alloc(m, COLUMNS * sizeof *some);
    esp_status status = some == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < n; first += COLUMNS) {
        const size_t width = n - first < COLUMNS ? n - first : COLUMNS;
        for (size_t a = 0; a < m; a++)
            for (size_t i = 0; i < width; i++)
                some[a * COLUMNS + i] = p->factor[a * n + first + i] / sqrt(p->diagonal[first + i]);
        const espi_dense_factors outer = {.turn_b = true,
                                          .add = first > 0,
                                          .rows = m,
                                          .columns = m,
                                          .inner = width,
                                          .scale = 1.0,
                                          .a = some,
                                          .a_stride = COLUMNS,
                                          .b = some,
                                          .b_stride = COLUMNS};
        status = espi_dense_symmetric(&outer, p->inner, m, run, err);
        if (status == ESP_OK) status = espi_progress(run, "preconditioning", (double)first / (double)n, err);
    }
    espi_free(some);
    if (status != ESP_OK) return status;
    for (size_t a = 0; a < m; a++) p->inner[a * m + a] += 1.0;
    espi_factor factor;
    status = espi_factor_make(p->inner, m, true, run, &factor, err);
    if (status != ESP_OK) return status;
    if (factor.failed != 0)
        return espi_fail(err, ESP_ERR_RANGE, "the noise is too small for the kernel's values; raise noise");
    p->log += 2.0 * espi_factor_half_log(&factor);
    return ESP_OK;
}

static esp_status take_memory(espi_preconditioner *p, const espi_bound *bound, esp_error *err)
{
    p->examples = bound->count[ESPI_COLS];
    if (p->factor != NULL) return ESP_OK;
    p->diagonal = espi_alloc(p->examples, sizeof *p->diagonal);
    p->inner = espi_alloc_zero(p->rank, p->rank * sizeof *p->inner);
    p->factor = espi_alloc(p->rank, p->examples * sizeof *p->factor);
    return p->diagonal == NULL || p->inner == NULL || p->factor == NULL ? espi_no_memory(err) : ESP_OK;
}

esp_status espi_preconditioner_make(espi_preconditioner *p, const espi_bound *bound, size_t rank, uint64_t seed,
                                    double noise, const esp_run *run, esp_error *err)
{
    esp_status status = ESP_OK;
    if (p->pivot == NULL) status = draw_pivots(p, bound, rank, seed, run, err);
    if (status == ESP_OK) status = take_memory(p, bound, err);
    if (status == ESP_OK) status = make_rows(p, bound, run, err);
    if (status == ESP_OK && p->rank > 0) status = make_factor(p, run, err);
    if (status == ESP_OK) status = make_diagonal(p, bound, noise, run, err);
    if (status == ESP_OK) status = factor_inner(p, run, err);
    if (status == ESP_OK && !isfinite(p->log))
        status = espi_fail(err, ESP_ERR_RANGE, "the kernel's values are too large for its determinant");
    if (status != ESP_OK) espi_preconditioner_free(p);
    return status;
}

/* room = F x, or x += scale F'room. */
static esp_status multiply(const espi_preconditioner *p, bool turn, double scale, size_t width, double *x,
                           const esp_run *run, esp_error *err)
{
    const size_t n = p->examples, m = p->rank;
    const espi_dense_factors f = {.turn_a = turn,
                                  .add = turn,
                                  .rows = turn ? n : m,
                                  .columns = width,
                                  .inner = turn ? m : n,
                                  .scale = scale,
                                  .a = p->factor,
                                  .a_stride = n,
                                  .b = turn ? p->room : x,
                                  .b_stride = width};
    return espi_dense_product(&f, turn ? x : p->room, width, run, err);
}

esp_status espi_preconditioner_solve(espi_preconditioner *p, const double *x, size_t width, double *out,
                                     const esp_run *run, esp_error *err)
{
    const size_t n = p->examples, m = p->rank;
    const espi_dense_triangle lower = {.left = true, .t = p->inner, .t_stride = m},
                              upper = {.left = true, .turn = true, .t = p->inner, .t_stride = m};
    if (!espi_reserve(&p->room, &p->room_capacity, p->rank * width, sizeof *p->room)) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++) out[i * width + k] = x[i * width + k] / p->diagonal[i];
    if (m == 0) return ESP_OK;
    esp_status status = multiply(p, false, 1.0, width, out, run, err);
    if (status == ESP_OK) status = espi_dense_solve(&lower, m, width, p->room, width, run, err);
    if (status == ESP_OK) status = espi_dense_solve(&upper, m, width, p->room, width, run, err);
    if (status != ESP_OK) return status;
    /* x - F'C^-1 F D^-1 x, and then D^-1 of it: `out` is made a second time */
    memcpy(out, x, n * width * sizeof *out);
    status = multiply(p, true, -1.0, width, out, run, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++)
        for (size_t k = 0; k < width; k++) out[i * width + k] /= p->diagonal[i];
    return status;
}

static void draw_signs(espi_random *random, double *sign, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++, bits >>= 1) {
        if (i % 64 == 0) bits = espi_random_bits(random);
        sign[i] = (bits & 1) != 0 ? 1.0 : -1.0;
    }
}

esp_status espi_preconditioner_draw(espi_preconditioner *p, uint64_t seed, size_t width, double *x, const esp_run *run,
                                    esp_error *err)
{
    const size_t n = p->examples;
    espi_random random;
    if (!espi_reserve(&p->room, &p->room_capacity, p->rank * width, sizeof *p->room)) return espi_no_memory(err);
    espi_random_seed(&random, seed);
    draw_signs(&random, x, n * width);
    draw_signs(&random, p->room, p->rank * width);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++) x[i * width + k] *= sqrt(p->diagonal[i]);
    return p->rank > 0 ? multiply(p, true, 1.0, width, x, run, err) : ESP_OK;
}
