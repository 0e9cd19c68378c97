/* The search without the matrix (iterative.h):
 *
 *     some examples ─ exact search ─▶ more examples ─ exact search ─▶ v0 ─ P at v0, search on all ─▶ v1 ... ─▶
 *     coefficients at the last
 *
 * A likelihood of all examples costs far more than one of some, whose best values are close (Wang et al. 2019 begin in
 * this way). The search on all begins with the curvature of that on some, which grows with the number of examples: most
 * often its first step is the last, or too small to be taken. Values of two rounds are not compared: each is estimated
 * with a P of its own, and that of the last round with the best. A round is the last when no hyperparameter has moved
 * so far that another P would be much better. */
#include "base/alloc.h"
#include "base/dense.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SOME = 1500, MORE = 10000, ROUNDS = 3 };
static const double moved_little = 0.25; /* of ln values, in a round */

/* Of ln values: a step that is not worth an evaluation of n examples. */
static double too_little(size_t n) { return fmin(fmax(1e-6 * (double)n, 0.01), 0.05); }

/* --------------------------------------------------------------- settings */

bool espi_gp_is_iterative(const espi_gp_settings *s, size_t n, const esp_run *run)
{
    enum { FASTER = 25000 }; /* n^3 operations of one kind against some 30 n^2 of another (docs/gp.md) */
    if (s->likelihood != ESPI_GAUSSIAN || s->inducing > 0 || s->noise == 0.0) return false;
    if (s->solver != ESPI_GP_AUTO) return s->solver == ESPI_GP_ITERATIVE;
    const double bytes = (double)espi_gp_exact.matrices * (double)n * (double)n * sizeof(double);
    return n > FASTER || (run != NULL && run->memory > 0 && bytes > (double)run->memory);
}

static size_t between(size_t low, size_t x, size_t high) { return x < low ? low : x > high ? high : x; }

/* Twice the rank takes three quarters of the iterations, and four times as long to make: at 20,000 sentences 4,000 were
 * best, and by the growth of both it is in proportion to the root of their number. */
static size_t rank_for(size_t n)
{
    enum { SHARE = 5, LEAST = 500, MOST = 10000 };
    const size_t by_root = (size_t)(28.0 * sqrt((double)n));
    return between(LEAST, n / SHARE < by_root ? n / SHARE : by_root, MOST);
}

/* Errors of estimates are some 1 / sqrt(n probes) of the log likelihood: the more examples, the fewer probes will do.
 * The preconditioner must fit half of the memory. */
void espi_gp_iterative_start(espi_iterative *out, const espi_gp_settings *s, size_t n, const esp_run *run)
{
    enum { LEAST_RANK = 500, LEAST_PROBES = 3, MOST_PROBES = 64, SHARED = 320000 };
    *out = (espi_iterative){.rank = s->rank > 0 ? s->rank : rank_for(n),
                            .probes = s->probes > 0 ? s->probes : between(LEAST_PROBES, SHARED / (n + 1), MOST_PROBES),
                            .seed = s->common.seed,
                            .residual = s->residual,
                            .iterations = s->iterations,
                            .partial = s->keep_partial,
                            .reached = -1.0};
    const double memory = run != NULL && run->memory > 0 ? 0.5 * (double)run->memory : INFINITY;
    while (s->rank == 0 && out->rank > LEAST_RANK && espi_iterative_bytes(out->rank, out->probes, n) > memory)
        out->rank = out->rank / 2 > LEAST_RANK ? out->rank / 2 : LEAST_RANK;
}

/* --------------------------------------------------------- a first search */

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
                          .little = count > SOME ? too_little(count) : 0.0}};
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
    return count > 2 * SOME && (double)count * (double)count * sizeof(double) <= memory ? count : 0;
}

static esp_status search_samples(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                                 const esp_run *run, espi_gp_found *found, esp_error *err)
{
    const size_t more = more_of(p->count, run), last = more > 0 ? more : SOME;
    espi_gp_settings own = *settings;
    esp_status status = search_sample(space, p, SOME, settings, run, found, err);
    own.restarts = 0;
    if (status == ESP_OK && more > 0) {
        grow(found->curvature, space->variables, SOME, more);
        status = search_sample(space, p, more, &own, run, found, err);
    }
    grow(found->curvature, space->variables, last, p->count);
    return status;
}

/* ----------------------------------------------------------------- rounds */

static esp_status prepare(espi_gp_space *space, const espi_gp_problem *p, const double *value, const esp_run *run,
                          esp_error *err)
{
    espi_iterative *s = p->iterative;
    char line[120];
    espi_gp_space_set(space, value);
    const esp_status status = espi_iterative_prepare(s, space->kernel, p->data, p->target, p->constant_mean,
                                                     espi_gp_space_noise(space), run, err);
    if (status != ESP_OK) return status;
    snprintf(line, sizeof line, "a preconditioner of rank %zu, %zu probes", s->preconditioner.rank, s->probes);
    espi_message(run, line);
    return ESP_OK;
}

static void say_solves(const espi_iterative *s, const esp_run *run)
{
    char line[160];
    snprintf(line, sizeof line,
             "%zu evaluations: %zu iterations of conjugate gradients, at most %zu; residuals to %.2g", s->evaluations,
             s->steps, s->longest, s->left);
    espi_message(run, line);
}

/* A round from space->moving[].start; *moved: by how much, of their logarithms, it has moved the variables. */
static esp_status one_round(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                            const esp_run *run, espi_gp_found *found, double *moved, esp_error *err)
{
    double *start = espi_alloc(space->variables, sizeof *start);
    if (start == NULL) return espi_no_memory(err);
    for (size_t v = 0; v < space->variables; v++) start[v] = space->moving[v].start;
    const bool there = found->there;
    esp_status status = prepare(space, p, start, run, err);
    found->there = false; /* what a round before has found counts only if this one finds nothing */
    if (status == ESP_OK) status = espi_gp_search(space, p, &espi_gp_iterative, settings, run, found, err);
    found->there = found->there || there;
    *moved = 0.0;
    for (size_t v = 0; found->there && v < space->variables; v++) {
        *moved = fmax(*moved, fabs(log(found->value[v]) - log(start[v])));
        space->moving[v].start = found->value[v];
    }
    espi_free(start);
    say_solves(p->iterative, run);
    return status;
}

static esp_status settle(espi_gp_space *space, const espi_gp_problem *p, const esp_run *run, espi_gp_found *found,
                         esp_error *err)
{
    espi_iterative *s = p->iterative;
    char line[120];
    espi_gp_space_set(space, found->value);
    esp_status status = s->right == NULL ? prepare(space, p, found->value, run, err) : ESP_OK;
    if (status == ESP_OK)
        status = espi_iterative_settle(s, space->kernel, p->data, p->target, espi_gp_space_noise(space), run,
                                       found->point.coefficient, &found->point.mean, err);
    snprintf(line, sizeof line, "coefficients with a residual of %.2g", s->reached);
    if (status == ESP_OK) espi_message(run, line);
    return status;
}

/* Conjugate gradients need more iterations the less noise there is, and soon too many: a search stays above this, of
 * the variance of the targets. */
static void bound_noise(espi_gp_space *space)
{
    static const double least = 1e-4;
    const size_t v = space->noisy ? space->variable[space->hypers - 1] : ESPI_GP_FIXED;
    if (v == ESPI_GP_FIXED) return;
    espi_gp_variable *noise = &space->moving[v];
    noise->low = fmax(noise->low, fmin(least, noise->high));
    noise->start = fmax(noise->start, noise->low);
}

/* What the settings mean here: estimates are not worth more than a millionth per example, unless the user says so. */
static espi_gp_settings for_rounds(const espi_gp_settings *settings, size_t n)
{
    espi_gp_settings own = *settings;
    if (!espi_settings_given(&settings->common, &settings->tolerance))
        own.tolerance = fmax(own.tolerance, fmin(1e-6 * (double)n, 1.0));
    return own;
}

esp_status espi_gp_iterative_search(espi_gp_space *space, const espi_gp_problem *p, const espi_gp_settings *settings,
                                    bool keep, const esp_run *run, espi_gp_found *found, esp_error *err)
{
    const bool moves = space->variables > 0 && settings->max_iterations > 0;
    const bool patience = espi_settings_given(&settings->common, &settings->tolerance);
    espi_gp_settings own = for_rounds(settings, p->count);
    espi_gp_curvature curvature = {.moved = espi_alloc_zero(ESPI_GP_MEMORY * (space->variables + 1), sizeof(double)),
                                   .bent = espi_alloc_zero(ESPI_GP_MEMORY * (space->variables + 1), sizeof(double))};
    esp_run patient = run != NULL ? *run : (esp_run){0};
    patient.progress = NULL; /* whoever cancelled wants to have what was found */
    esp_status status = curvature.moved == NULL || curvature.bent == NULL ? espi_no_memory(err) : ESP_OK;
    double moved = INFINITY;
    found->curvature = &curvature;
    found->little = patience ? 0.0 : too_little(p->count);
    bound_noise(space);
    if (status == ESP_OK && moves && p->count > SOME) {
        own.restarts = 0; /* these are the sample's */
        status = search_samples(space, p, settings, run, found, err);
    }
    for (int i = 0; status == ESP_OK && i < ROUNDS && moved > moved_little; i++) {
        status = one_round(space, p, &own, run, found, &moved, err);
        own.restarts = 0;
    }
    found->curvature = NULL;
    espi_free(curvature.moved);
    espi_free(curvature.bent);
    if (status == ESP_OK) status = settle(space, p, run, found, err);
    if (status == ESP_ERR_CANCELLED && keep && found->there) {
        const esp_status settled = settle(space, p, &patient, found, err);
        if (settled != ESP_OK) return settled;
    }
    return status;
}
