/* Randomly pivoted Cholesky, a block of pivots at a time (Epperly, Tropp, Webber 2024, algorithm 3).
 *
 *     d(i) = K(i, i) - sum_p F(p, i)^2             what is left of example i
 *     pivot s with probability d(s) / sum_i d(i)
 *     F(p, i) = (K(s, i) - sum_{q<p} F(q, s) F(q, i)) / sqrt(d(s))
 *
 * One pivot at a time, the sum over q goes through all of F for each. So several examples are proposed at once, by the
 * d at the beginning of the block. Such a proposal is too frequent by the factor by which the pivots accepted before it
 * in the block have lowered its d, and is accepted with just this probability: the pivots have the same distribution.
 * Meanwhile F is known at the proposals only; the rows of the block follow when it is complete, by products of
 * matrices. */
#include "learn/pivots.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "base/dense.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 }; /* proposals */
/* A part of K(i, i) so small may be rounding, which divided by its root would be large. */
static const double tiny = 1e-12;

typedef struct drawing {
    const espi_bound *bound;
    const esp_run *run;
    espi_pivots *out;
    espi_workspace *workspace;
    espi_random random;
    size_t most;
    double *self, *left; /* per example: K(i, i), and d(i) when the block began */
    double largest;      /* K(i, i) of all */
    double *sum;         /* running sums of d, for draws */
    uint32_t *proposal;
    double *now;    /* per proposal: d(s) as it stands */
    double *old;    /* F of earlier blocks at the proposals: old[t * most + p] */
    double *inner;  /* BLOCK x BLOCK: sum_p F(p, s) F(p, t) over earlier blocks */
    double *local;  /* F of this block at the proposals: local[a * BLOCK + t] */
    double *lower;  /* BLOCK x BLOCK: L of its pivots */
    double *before; /* earlier F at its pivots: before[p * BLOCK + a] */
    size_t accepted;
} drawing;

double espi_pivots_bytes(size_t count, size_t examples)
{
    return (double)(count < examples ? count : examples) * (double)examples * sizeof(double);
}

void espi_pivots_free(espi_pivots *p)
{
    espi_free(p->example);
    espi_free(p->factor);
    *p = (espi_pivots){0};
}

static void end_drawing(drawing *d)
{
    espi_workspace_free(d->workspace);
    espi_free(d->self);
    espi_free(d->left);
    espi_free(d->sum);
    espi_free(d->proposal);
    espi_free(d->now);
    espi_free(d->old);
    espi_free(d->inner);
    espi_free(d->local);
    espi_free(d->lower);
    espi_free(d->before);
}

static bool take_memory(drawing *d, size_t n)
{
    espi_pivots *p = d->out;
    p->example = espi_alloc(d->most, sizeof *p->example);
    p->factor = espi_alloc(d->most, n * sizeof *p->factor);
    d->self = espi_alloc(n, sizeof *d->self);
    d->left = espi_alloc(n, sizeof *d->left);
    d->sum = espi_alloc(n, sizeof *d->sum);
    d->proposal = espi_alloc(BLOCK, sizeof *d->proposal);
    d->now = espi_alloc(BLOCK, sizeof *d->now);
    d->old = espi_alloc(BLOCK, d->most * sizeof *d->old);
    d->inner = espi_alloc(BLOCK, BLOCK * sizeof *d->inner);
    d->local = espi_alloc(BLOCK, BLOCK * sizeof *d->local);
    d->lower = espi_alloc_zero(BLOCK, BLOCK * sizeof *d->lower);
    d->before = espi_alloc(BLOCK, d->most * sizeof *d->before);
    return p->example != NULL && p->factor != NULL && d->self != NULL && d->left != NULL && d->sum != NULL &&
           d->proposal != NULL && d->now != NULL && d->old != NULL && d->inner != NULL && d->local != NULL &&
           d->lower != NULL && d->before != NULL;
}

static esp_status start_drawing(drawing *d, const espi_pivot_options *o, const esp_run *run, esp_error *err)
{
    const size_t n = d->bound->count[ESPI_COLS];
    d->most = o->count < n ? o->count : n;
    const double bytes = espi_pivots_bytes(d->most, n);
    char need[32], limit[32];
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "%zu pivots of %zu examples take %s; the limit is %s", d->most, n,
                         espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    espi_random_seed(&d->random, o->seed);
    if (!take_memory(d, n)) return espi_no_memory(err);
    esp_status status = espi_workspace_new(d->bound, run, &d->workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(d->workspace, ESPI_COLS, d->self, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        d->left[i] = d->self[i] > 0.0 && (o->allowed == NULL || o->allowed[i]) ? d->self[i] : 0.0;
        d->largest = fmax(d->largest, d->self[i]);
    }
    d->out->examples = n;
    return status;
}

/* The running sums, in units that keep them from overflow; returns the last. */
static double sum_up(drawing *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < d->out->examples; i++) {
        if (d->left[i] > 0.0) sum += d->left[i] / d->largest;
        d->sum[i] = sum;
    }
    return sum;
}

/* The first example whose running sum lies above a random part of the whole. */
static uint32_t propose(drawing *d, double whole)
{
    const double at = espi_random_unit(&d->random) * whole;
    size_t low = 0, high = d->out->examples - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (d->sum[middle] <= at) low = middle + 1;
        else high = middle;
    }
    return (uint32_t)low;
}

static esp_status start_block(drawing *d, double whole, esp_error *err)
{
    const espi_pivots *p = d->out;
    for (size_t t = 0; t < BLOCK; t++) {
        d->proposal[t] = propose(d, whole);
        d->now[t] = d->left[d->proposal[t]];
        for (size_t q = 0; q < p->count; q++) d->old[t * d->most + q] = p->factor[q * p->examples + d->proposal[t]];
    }
    d->accepted = 0;
    const espi_dense_factors square = {.turn_b = true,
                                       .rows = BLOCK,
                                       .columns = BLOCK,
                                       .inner = p->count,
                                       .scale = 1.0,
                                       .a = d->old,
                                       .a_stride = d->most,
                                       .b = d->old,
                                       .b_stride = d->most};
    return espi_dense_product(&square, d->inner, BLOCK, d->run, err);
}

/* Makes proposal t a pivot: its row of the kernel, and its row of F at the proposals. */
static esp_status accept(drawing *d, size_t t, esp_error *err)
{
    espi_pivots *p = d->out;
    const size_t a = d->accepted, s = d->proposal[t];
    double *row = p->factor + (p->count + a) * p->examples, *local = d->local + a * BLOCK;
    const double root = sqrt(d->now[t]);
    const esp_status status = espi_bound_row(d->workspace, d->bound->kernel->ops - 1, s, 0, p->examples, row, err);
    if (status != ESP_OK) return status;
    for (size_t b = 0; b < a; b++) d->lower[a * BLOCK + b] = d->local[b * BLOCK + t];
    d->lower[a * BLOCK + a] = root;
    for (size_t u = 0; u < BLOCK; u++) {
        double value = row[d->proposal[u]] - d->inner[t * BLOCK + u];
        for (size_t b = 0; b < a; b++) value -= d->lower[a * BLOCK + b] * d->local[b * BLOCK + u];
        local[u] = value / root;
        d->now[u] -= local[u] * local[u];
        if (d->proposal[u] == s) d->now[u] = 0.0;
    }
    for (size_t q = 0; q < p->count; q++) d->before[q * BLOCK + a] = d->old[t * d->most + q];
    p->example[p->count + a] = (uint32_t)s;
    d->accepted++;
    return ESP_OK;
}

/* The rows of the block, which are those of the kernel so far, and what they leave of d. */
static esp_status finish_block(drawing *d, esp_error *err)
{
    espi_pivots *p = d->out;
    const size_t n = p->examples;
    double *row = p->factor + p->count * n;
    const espi_dense_factors before = {.turn_a = true,
                                       .add = true,
                                       .rows = d->accepted,
                                       .columns = n,
                                       .inner = p->count,
                                       .scale = -1.0,
                                       .a = d->before,
                                       .a_stride = BLOCK,
                                       .b = p->factor,
                                       .b_stride = n};
    const espi_dense_triangle lower = {.left = true, .t = d->lower, .t_stride = BLOCK};
    esp_status status = espi_dense_product(&before, row, n, d->run, err);
    if (status == ESP_OK) status = espi_dense_solve(&lower, d->accepted, n, row, n, d->run, err);
    if (status != ESP_OK) return status;
    for (size_t a = 0; a < d->accepted; a++)
        for (size_t i = 0; i < n; i++) d->left[i] -= row[a * n + i] * row[a * n + i];
    for (size_t i = 0; i < n; i++)
        if (!(d->left[i] > tiny * d->self[i])) d->left[i] = 0.0;
    for (size_t a = 0; a < d->accepted; a++) d->left[p->example[p->count + a]] = 0.0;
    p->count += d->accepted;
    return ESP_OK;
}

static esp_status draw_block(drawing *d, double whole, esp_error *err)
{
    esp_status status = start_block(d, whole, err);
    for (size_t t = 0; status == ESP_OK && t < BLOCK && d->out->count + d->accepted < d->most; t++) {
        const double at = espi_random_unit(&d->random) * d->left[d->proposal[t]];
        if (at < d->now[t] && d->now[t] > tiny * d->self[d->proposal[t]]) status = accept(d, t, err);
    }
    return status == ESP_OK ? finish_block(d, err) : status;
}

esp_status espi_pivots_draw(const espi_bound *bound, const espi_pivot_options *options, const esp_run *run,
                            espi_pivots *out, esp_error *err)
{
    *out = (espi_pivots){0};
    drawing d = {.bound = bound, .out = out, .run = run};
    esp_status status = start_drawing(&d, options, run, err);
    const double all = status == ESP_OK ? sum_up(&d) : 0.0;
    double whole = all;
    while (status == ESP_OK && out->count < d.most && whole > 0.0) {
        status = espi_progress(run, "choosing pivots", (double)out->count / (double)d.most, err);
        if (status == ESP_OK) status = draw_block(&d, whole, err);
        whole = sum_up(&d);
    }
    out->left = all > 0.0 ? whole / all : 0.0;
    if (status != ESP_OK || !options->factor) {
        espi_free(out->factor);
        out->factor = NULL;
    }
    end_drawing(&d);
    if (status != ESP_OK) espi_pivots_free(out);
    return status;
}
