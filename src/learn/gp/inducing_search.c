/* Regression with inducing examples: the bound of low_rank.h in the place of the likelihood.
 *
 *     pivots S1 at the first values ─▶ search ─▶ best values v1 ─▶ pivots S2 at v1 ─▶ search from v1 ─▶ v2
 *
 * The bound is one of the same log likelihood whatever the pivots are, so that (S1, v1) and (S2, v2) can be compared:
 * the higher one is the result. Pivots that move with the values would make a bound that jumps. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"

#include <stdio.h>
#include <string.h>

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    const espi_low_rank *b = &p->inducing->bound;
    const esp_status status =
        espi_inducing_evaluate(p->inducing, kernel, p->target, noise, p->constant_mean, run, gradient, err);
    if (status != ESP_OK) return status;
    if (!espi_all_finite(b->coefficient, b->pivots))
        return espi_fail(err, ESP_ERR_RANGE, "a coefficient is too large for a number; raise noise");
    point->value = b->value;
    point->mean = b->mean;
    point->jitter = b->jitter;
    *noise_gradient = b->noise_gradient;
    memset(point->coefficient, 0, p->count * sizeof *point->coefficient);
    for (size_t i = 0; i < b->pivots; i++) point->coefficient[p->inducing->pivot[i]] = b->coefficient[i];
    return ESP_OK;
}

const espi_gp_likelihood espi_gp_inducing = {
    .name = "gaussian", .value = "log likelihood bound", .noisy = true, .matrices = 0, .evaluate = evaluate};

/* ----------------------------------------------------------------- search */

static esp_status choose(const espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                         const char *where, const esp_run *run, esp_error *err)
{
    char line[120];
    const esp_status status =
        espi_inducing_choose(p->inducing, space->kernel, p->data, settings->inducing, settings->common.seed, run, err);
    if (status != ESP_OK) return status;
    snprintf(line, sizeof line, "%zu inducing examples drawn at the %s hyperparameters", p->inducing->pivots, where);
    espi_message(run, line);
    return ESP_OK;
}

/* From the best values on, with new pivots. ESP_ERR_RANGE: there is no bound for these. */
static esp_status go_on(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                        const esp_run *run, const espi_gp_found *found, espi_gp_found *again, esp_error *err)
{
    espi_gp_settings own = *settings;
    own.restarts = 0;
    again->value = espi_alloc_zero(space->variables, sizeof *again->value);
    if (again->value == NULL || !espi_gp_point_make(&again->point, p->count)) return espi_no_memory(err);
    for (size_t v = 0; v < space->variables; v++) space->moving[v].start = found->value[v];
    return espi_gp_search(space, p, &espi_gp_inducing, &own, run, again, err);
}

static void take_better(espi_gp_found *found, espi_gp_found *again)
{
    const espi_gp_found worse = *found;
    found->point = again->point;
    found->value = again->value;
    found->objective = again->objective;
    found->end = again->end;
    again->point = worse.point;
    again->value = worse.value;
}

static esp_status search_again(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                               const esp_run *run, espi_gp_found *found, esp_error *err)
{
    espi_inducing *inducing = p->inducing;
    espi_gp_found again = {.shift = found->shift};
    uint32_t *first = inducing->pivot;
    const size_t count = inducing->pivots;
    esp_error own; /* what fails here is told, even if the caller wants no error */
    inducing->pivot = NULL;
    espi_inducing_free(inducing); /* drawing takes memory of its own */
    esp_status status = choose(space, p, settings, "best", run, &own);
    const bool same =
        status == ESP_OK && inducing->pivots == count && memcmp(inducing->pivot, first, count * sizeof *first) == 0;
    if (status == ESP_OK && !same) status = go_on(space, p, settings, run, found, &again, &own);
    if (status == ESP_ERR_RANGE) {
        espi_message(run, own.message);
        status = ESP_OK;
    }
    found->iterations += again.iterations;
    const bool better = again.there && again.objective > found->objective;
    if (better) take_better(found, &again);
    if (status != ESP_OK && err != NULL) *err = own;
    if (!same && !better && (status == ESP_OK || status == ESP_ERR_CANCELLED)) {
        const esp_status back = espi_inducing_take(inducing, space->kernel, p->data, first, count, run, err);
        if (back != ESP_OK) status = back;
    }
    espi_gp_point_free(&again.point);
    espi_free(again.value);
    espi_free(first);
    return status;
}

/* Solves at the best point: the last evaluation of a search may have been elsewhere. */
static esp_status settle(espi_gp_space *space, const espi_gp_problem *p, const esp_run *run, esp_error *err)
{
    return espi_inducing_evaluate(p->inducing, space->kernel, p->target, espi_gp_space_noise(space), p->constant_mean,
                                  run, NULL, err);
}

esp_status espi_gp_inducing_search(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                                   bool keep, const esp_run *run, espi_gp_found *found, esp_error *err)
{
    const bool moves = space->variables > 0 && settings->max_iterations > 0;
    esp_run patient = run != NULL ? *run : (esp_run){0};
    patient.progress = NULL; /* whoever cancelled wants to have what was found */
    esp_status status = choose(space, p, settings, "first", run, err);
    if (status == ESP_OK) status = espi_gp_search(space, p, &espi_gp_inducing, settings, run, found, err);
    if (status == ESP_OK && moves) status = search_again(space, p, settings, run, found, err);
    if (found->there) espi_gp_space_set(space, found->value);
    if (status == ESP_OK) status = settle(space, p, run, err);
    if (status == ESP_ERR_CANCELLED && keep && found->there) {
        const esp_status settled = settle(space, p, &patient, err);
        if (settled != ESP_OK) return settled;
    }
    return status;
}
