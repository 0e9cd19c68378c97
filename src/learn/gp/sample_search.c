/* Searches that begin on some of the examples:
 *
 *     some examples ─ exact search ─▶ more examples ─ exact search ─▶ all examples
 *
 * A likelihood of all examples costs far more than one of some, whose best values are close (Wang et al. 2019 begin in
 * this way). What the search on some has learned of the curvature, which grows with the number of examples, goes along:
 * few steps are then left to do. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <stdio.h>

enum {
    MORE = 10000,     /* examples of the second sample, at most */
    WORTHWHILE = 5000 /* examples from which on an exact search begins in this way */
};

double espi_gp_too_little(size_t n) { return fmin(fmax(1e-6 * (double)n, 0.01), 0.05); }

bool espi_gp_curvature_make(espi_gp_curvature *c, size_t variables)
{
    *c = (espi_gp_curvature){.moved = espi_alloc_zero(ESPI_GP_MEMORY, variables * sizeof *c->moved),
                             .bent = espi_alloc_zero(ESPI_GP_MEMORY, variables * sizeof *c->bent)};
    return c->moved != NULL && c->bent != NULL;
}

void espi_gp_curvature_free(espi_gp_curvature *c)
{
    espi_free(c->moved);
    espi_free(c->bent);
    *c = (espi_gp_curvature){0};
}

typedef struct sample {
    espi_gp_problem problem;
    esp_dataset *data;
    double *target;
    espi_gp_found found;
} sample;

static void free_sample(sample *s)
{
    esp_dataset_free(s->data);
    espi_free(s->target);
    espi_free(s->problem.matrix[0]);
    espi_free(s->problem.matrix[1]);
    espi_free(s->problem.vector);
    espi_gp_point_free(&s->found.point);
    espi_free(s->found.value);
}

/* `count` random examples, in their order. */
static esp_status draw_sample(sample *s, const espi_gp_space *space, const espi_gp_problem *p, size_t count,
                              uint64_t seed, esp_error *err)
{
    const size_t n = p->count;
    espi_random random;
    bool *wanted = espi_alloc_zero(n, sizeof *wanted);
    s->target = espi_alloc(count, sizeof *s->target);
    s->problem.vector = espi_alloc(8 * count, sizeof *s->problem.vector);
    s->found.value = espi_alloc_zero(space->variables, sizeof *s->found.value);
    bool ok = wanted != NULL && s->target != NULL && s->problem.vector != NULL && s->found.value != NULL &&
              espi_gp_point_make(&s->found.point, count);
    for (size_t k = 0; ok && k < espi_gp_exact.matrices; k++)
        ok = (s->problem.matrix[k] = espi_alloc(count, count * sizeof(double))) != NULL;
    espi_random_seed(&random, seed);
    for (size_t i = 0, left = count; ok && i < n; i++) /* each of the rest with the same probability */
        if (espi_random_below(&random, n - i) < left) {
            wanted[i] = true;
            s->target[count - left--] = p->target[i];
        }
    const esp_status status = ok ? espi_copy_rows(space->kernel, p->data, wanted, &s->data, err) : espi_no_memory(err);
    espi_free(wanted);
    s->problem.data = s->data;
    s->problem.target = s->target;
    s->problem.count = count;
    s->problem.constant_mean = p->constant_mean;
    return status;
}

/* Sets the start of all variables to the best values of a sample of `count`. */
static esp_status search_sample(espi_gp_space *space, const espi_gp_problem *p, size_t count,
                                const espi_gp_settings *settings, const esp_run *run, espi_gp_found *found,
                                esp_error *err)
{
    sample s = {.found = {.shift = found->shift / (double)p->count * (double)count,
                          .curvature = found->curvature,
                          .little = count > ESPI_GP_SOME ? espi_gp_too_little(count) : 0.0}};
    char line[100];
    snprintf(line, sizeof line, "an exact search on %zu random examples", count);
    espi_message(run, line);
    esp_status status = draw_sample(&s, space, p, count, settings->common.seed, err);
    if (status == ESP_OK) status = espi_gp_search(space, &s.problem, &espi_gp_exact, settings, run, &s.found, err);
    for (size_t v = 0; status == ESP_OK && v < space->variables; v++) space->moving[v].start = s.found.value[v];
    found->iterations += s.found.iterations;
    found->runs += s.found.runs;
    free_sample(&s);
    return status;
}

/* The curvature of `from` examples as that of `to`. */
static void grow(espi_gp_curvature *c, size_t variables, size_t from, size_t to)
{
    for (size_t k = 0; k < c->steps * variables; k++) c->bent[k] *= (double)to / (double)from;
}

/* How many examples the second sample has, if it is worth it: a fifth of all, as far as a quarter of the memory goes.
 */
static size_t more_of(size_t n, const esp_run *run)
{
    const double memory = run != NULL && run->memory > 0 ? 0.25 * (double)run->memory : INFINITY;
    const size_t count = n / 5 < MORE ? n / 5 : MORE;
    return count > 2 * ESPI_GP_SOME && (double)count * (double)count * sizeof(double) <= memory ? count : 0;
}

esp_status espi_gp_search_samples(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                                  const esp_run *run, espi_gp_found *found, esp_error *err)
{
    const size_t more = more_of(p->count, run), last = more > 0 ? more : ESPI_GP_SOME;
    espi_gp_settings own = *settings;
    esp_status status = search_sample(space, p, ESPI_GP_SOME, settings, run, found, err);
    own.restarts = 0;
    if (status == ESP_OK && more > 0) {
        grow(found->curvature, space->variables, ESPI_GP_SOME, more);
        status = search_sample(space, p, more, &own, run, found, err);
    }
    grow(found->curvature, space->variables, last, p->count);
    return status;
}

esp_status espi_gp_exact_search(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_likelihood *likelihood,
                                const espi_gp_settings *settings, const esp_run *run, espi_gp_found *found,
                                esp_error *err)
{
    const bool moves = space->variables > 0 && settings->max_iterations > 0;
    espi_gp_curvature curvature;
    if (likelihood != &espi_gp_exact || !moves || settings->restarts > 0 || p->count < WORTHWHILE)
        return espi_gp_search(space, p, likelihood, settings, run, found, err);
    esp_status status = espi_gp_curvature_make(&curvature, space->variables) ? ESP_OK : espi_no_memory(err);
    found->curvature = &curvature;
    if (status == ESP_OK) status = espi_gp_search_samples(space, p, settings, run, found, err);
    if (status == ESP_OK) status = espi_gp_search(space, p, likelihood, settings, run, found, err);
    found->curvature = NULL;
    espi_gp_curvature_free(&curvature);
    return status;
}
