/* Drawing targets from a Gaussian process: with K = L L' over the examples and independent standard normal z and e,
 *
 *     f = L z,   y = f + sqrt(noise) e.
 *
 * All z are drawn before all e, so that the same seed gives the same f whatever the noise. */
#include "base/algebra.h"
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "data/writer.h"

#include <math.h>
#include <string.h>

/* Of the mean of the diagonal: what rounding makes of the zeros that equal examples bring. */
static const double first_jitter = 1e-12;

/* The lower triangle of K becomes L; `self` is overwritten. */
static esp_status factor_prior(double *k, size_t n, double *self, const esp_run *run, double *jitter, esp_error *err)
{
    espi_factor factor = {0};
    bool zero = true; /* without a diagonal K is 0, and so is L */
    for (size_t i = 0; i < n; i++) zero = zero && k[i * n + i] == 0.0;
    *jitter = 0.0;
    const esp_status status =
        zero ? ESP_OK : espi_factor_make_jitter(k, n, true, 0.0, first_jitter, run, self, jitter, &factor, err);
    if (status != ESP_OK || factor.failed == 0) return status;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the kernel is not positive definite on these examples, not even with %g added to its diagonal",
                     *jitter);
}

/* y from the prior; `k` is overwritten. */
static esp_status draw(double *k, size_t n, double noise, uint64_t seed, const esp_run *run, double *y, double *jitter,
                       esp_error *err)
{
    double *z = espi_alloc(n, sizeof *z);
    if (z == NULL) return espi_no_memory(err);
    const esp_status status = factor_prior(k, n, y, run, jitter, err);
    espi_random random;
    espi_random_seed(&random, seed);
    espi_random_normal(&random, z, n);
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        y[i] = 0.0;
        for (size_t j = 0; j <= i; j++) y[i] += k[i * n + j] * z[j];
    }
    espi_random_normal(&random, z, n);
    for (size_t i = 0; status == ESP_OK && i < n; i++) y[i] += sqrt(noise) * z[i];
    espi_free(z);
    return status == ESP_OK && !espi_all_finite(y, n)
               ? espi_fail(err, ESP_ERR_RANGE, "a target is too large for a number; take a smaller lambda (or weight)")
               : status;
}

static esp_status with_targets(const esp_dataset *data, const char *name, const double *y, esp_dataset **out,
                               esp_error *err)
{
    bool *all = espi_alloc(data->rows + data->columns, sizeof *all);
    char text[32];
    *out = NULL;
    if (all == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < data->rows + data->columns; i++) all[i] = true;
    esp_status status = espi_dataset_select(data, all, all, out, err);
    espi_free(all);
    if (status != ESP_OK) return status;
    esp_dataset *copy = *out;
    for (copy->rows = 0; status == ESP_OK && copy->rows < data->rows; copy->rows++)
        status = espi_set_target(copy, name, text, espi_number_print_short(y[copy->rows], text), true, err);
    copy->rows = copy->target_numbers = data->rows;
    if (status == ESP_OK) return status;
    esp_dataset_free(copy);
    *out = NULL;
    return status;
}

/* What can be told before anything is computed. */
static esp_status check(const esp_dataset *data, const char *name, double noise, const esp_run *run, esp_error *err)
{
    const double n = (double)data->rows, bytes = n * n * sizeof(double);
    size_t column;
    char need[32], limit[32], quoted[96];
    if (!(noise >= 0.0) || !isfinite(noise))
        return espi_fail(err, ESP_ERR_PARAM, "noise is %g; allowed is a number >= 0, the variance", noise);
    if (espi_find_column(data, name, strlen(name), &column))
        return espi_fail(err, ESP_ERR_PARAM, "the data have a column %s; the target needs another name",
                         espi_quote(name, strlen(name), quoted));
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "targets for %zu examples take a matrix of %s; the limit is %s",
                         data->rows, espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    return ESP_OK;
}

esp_status esp_dataset_sample_gp(const esp_kernel *kernel, const esp_dataset *data, double noise, uint64_t seed,
                                 const esp_run *run, esp_dataset **out, double *jitter, esp_error *err)
{
    const size_t n = data->rows;
    const char *name = data->target_name != NULL ? data->target_name : "y";
    double added = 0.0;
    *out = NULL;
    if (jitter != NULL) *jitter = 0.0;
    esp_status status = check(data, name, noise, run, err);
    if (status != ESP_OK) return status;
    double *k = espi_alloc(n, n * sizeof *k), *y = espi_alloc(n, sizeof *y);
    if (k == NULL || y == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) status = esp_gram(kernel, data, NULL, run, k, err);
    if (status == ESP_OK) status = draw(k, n, noise, seed, run, y, &added, err);
    if (status == ESP_OK) status = espi_progress(run, "drawing", -1.0, err);
    if (status == ESP_OK) status = with_targets(data, name, y, out, err);
    if (jitter != NULL) *jitter = added;
    espi_free(k);
    espi_free(y);
    return status;
}

esp_status esp_sample_gp_write(const esp_kernel *kernel, const esp_dataset *data, double noise, uint64_t seed,
                               const esp_run *run, const char *path, esp_format format, double *jitter, esp_error *err)
{
    espi_output *output = NULL;
    esp_dataset *drawn = NULL, shape = *data; /* what will be written, without its rows */
    char name[] = "y";
    shape.rows = 0;
    if (shape.target_name == NULL) shape.target_name = name;
    if (jitter != NULL) *jitter = 0.0;
    esp_status status = espi_write_format(path, &format, err);
    if (status == ESP_OK) status = espi_output_open(path, &output, err);
    if (status == ESP_OK) status = espi_write_rows(&shape, format, output, err);
    if (status == ESP_OK) status = esp_dataset_sample_gp(kernel, data, noise, seed, run, &drawn, jitter, err);
    if (status == ESP_OK) status = espi_write_rows(drawn, format, output, err);
    if (status == ESP_OK) status = espi_output_commit(output, err);
    else espi_output_discard(output);
    esp_dataset_free(drawn);
    return status;
}
