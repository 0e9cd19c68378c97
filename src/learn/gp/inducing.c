/* Inducing examples of a Gaussian process: drawn, and the bound of a kernel over a dataset with them. */
#include "learn/gp/inducing.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/expression/columns.h"

#include <string.h>

static void free_choice(espi_inducing *s)
{
    espi_free(s->pivot);
    esp_dataset_free(s->support);
    espi_low_rank_free(&s->bound);
}

void espi_inducing_free(espi_inducing *s)
{
    free_choice(s);
    *s = (espi_inducing){0};
}

static esp_status draw(espi_inducing *s, const esp_kernel *kernel, size_t count, uint64_t seed, const esp_run *run,
                       esp_error *err)
{
    const espi_pivot_options options = {.count = count, .seed = seed};
    espi_bound *bound = NULL;
    espi_pivots pivots = {0};
    esp_status status = espi_bind(kernel, s->data, s->data, run, &bound, err);
    if (status == ESP_OK) status = espi_pivots_draw(bound, &options, run, &pivots, err);
    espi_bound_free(bound);
    if (status == ESP_OK && pivots.count == 0)
        status = espi_fail(err, ESP_ERR_RANGE, "the kernel is 0 for every example: there is nothing to learn from");
    if (status != ESP_OK) {
        espi_pivots_free(&pivots);
        return status;
    }
    espi_sort_numbers(pivots.example, pivots.count);
    s->pivots = pivots.count;
    s->pivot = pivots.example;
    return ESP_OK;
}

static esp_status copy_support(espi_inducing *s, const esp_kernel *kernel, esp_error *err)
{
    bool *wanted = espi_alloc_zero(s->data->rows, sizeof *wanted);
    if (wanted == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < s->pivots; i++) wanted[s->pivot[i]] = true;
    const esp_status status = espi_copy_rows(kernel, s->data, wanted, &s->support, err);
    espi_free(wanted);
    return status;
}

/* Makes the rest of what has pivots and puts it in the place of `inducing`. */
static esp_status replace(espi_inducing *inducing, espi_inducing *s, const esp_kernel *kernel, const esp_run *run,
                          esp_error *err)
{
    const size_t n = s->data->rows;
    esp_status status = copy_support(s, kernel, err);
    const bool fits = inducing->bound.k_mm != NULL && inducing->bound.examples == n && inducing->pivots == s->pivots;
    if (status == ESP_OK && !fits) status = espi_low_rank_new(s->pivots, n, run, &s->bound, err);
    if (status != ESP_OK) {
        espi_inducing_free(s);
        return status;
    }
    if (fits) {
        s->bound = inducing->bound;
        inducing->bound = (espi_low_rank){0};
    }
    free_choice(inducing);
    *inducing = *s;
    return ESP_OK;
}

esp_status espi_inducing_choose(espi_inducing *inducing, const esp_kernel *kernel, const esp_dataset *data,
                                size_t count, uint64_t seed, const esp_run *run, esp_error *err)
{
    espi_inducing s = {.data = data};
    const esp_status status = draw(&s, kernel, count, seed, run, err);
    return status == ESP_OK ? replace(inducing, &s, kernel, run, err) : status;
}

esp_status espi_inducing_take(espi_inducing *inducing, const esp_kernel *kernel, const esp_dataset *data,
                              const uint32_t *pivot, size_t pivots, const esp_run *run, esp_error *err)
{
    espi_inducing s = {.data = data, .pivots = pivots, .pivot = espi_alloc(pivots, sizeof *pivot)};
    if (s.pivot == NULL) return espi_no_memory(err);
    memcpy(s.pivot, pivot, pivots * sizeof *pivot);
    return replace(inducing, &s, kernel, run, err);
}

static void place(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    const espi_low_rank *s = context;
    memcpy(s->k_mn + first * width, rows, (last - first) * width * sizeof *rows);
}

/* K_mn, K(i, i), and K_mm, which is a part of K_mn. */
static esp_status fill(espi_inducing *s, const espi_bound *bound, const esp_run *run, esp_error *err)
{
    espi_low_rank *b = &s->bound;
    espi_workspace *workspace = NULL;
    esp_status status = espi_gram_blocks(bound, run, place, b, err);
    if (status == ESP_OK) status = espi_workspace_new(bound, run, &workspace, err);
    if (status == ESP_OK) status = espi_bound_diagonal(workspace, ESPI_COLS, b->diagonal, err);
    espi_workspace_free(workspace);
    for (size_t i = 0; status == ESP_OK && i < s->pivots; i++)
        for (size_t j = 0; j <= i; j++) b->k_mm[i * s->pivots + j] = b->k_mn[i * b->examples + s->pivot[j]];
    return status;
}

/* As K_mm is a part of K_mn, its weights go where it came from. */
static esp_status add_gradient(espi_inducing *s, const espi_bound *bound, const esp_run *run, double *gradient,
                               esp_error *err)
{
    espi_low_rank *b = &s->bound;
    esp_status status = espi_low_rank_weights(b, run, err);
    for (size_t i = 0; status == ESP_OK && i < s->pivots; i++)
        for (size_t j = 0; j < s->pivots; j++) b->w_mn[i * b->examples + s->pivot[j]] += b->w_mm[i * s->pivots + j];
    for (size_t i = 0; i < b->examples; i++) b->diagonal[i] = b->w_diagonal;
    if (status == ESP_OK) status = espi_bound_gradient(bound, b->w_mn, NULL, run, gradient, err);
    if (status == ESP_OK) status = espi_bound_gradient_diagonal(bound, ESPI_COLS, b->diagonal, run, gradient, err);
    return status;
}

esp_status espi_inducing_evaluate(espi_inducing *s, const esp_kernel *kernel, const double *target, double noise,
                                  bool constant, const esp_run *run, double *gradient, esp_error *err)
{
    espi_bound *bound = NULL;
    esp_status status = espi_bind(kernel, s->support, s->data, run, &bound, err);
    if (status == ESP_OK) status = fill(s, bound, run, err);
    if (status == ESP_OK) status = espi_low_rank_solve(&s->bound, target, noise, constant, run, err);
    if (status == ESP_OK && gradient != NULL) status = add_gradient(s, bound, run, gradient, err);
    espi_bound_free(bound);
    return status;
}
