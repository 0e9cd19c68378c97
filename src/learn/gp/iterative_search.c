/* The search without the matrix (iterative.h):
 *
 *     samples ─ exact searches ─▶ v0 ─ P at v0, search on all ─▶ v1 ─ P at v1 ... ─▶ coefficients at the last
 *
 * With the curvature of the samples (sample_search.c) its first step is most often the last, or too small to be taken.
 * Values of two rounds are not compared: each is estimated with a P of its own, and that of the last round with the
 * best. A round is the last when no hyperparameter has moved so far that another P would be much better. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS = 3 };
static const double moved_little = 0.25; /* of ln values, in a round */

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
    espi_gp_curvature curvature;
    esp_run patient = run != NULL ? *run : (esp_run){0};
    patient.progress = NULL; /* whoever cancelled wants to have what was found */
    esp_status status = espi_gp_curvature_make(&curvature, space->variables) ? ESP_OK : espi_no_memory(err);
    double moved = INFINITY;
    found->curvature = &curvature;
    found->little = patience ? 0.0 : espi_gp_too_little(p->count);
    bound_noise(space);
    if (status == ESP_OK && moves && p->count > ESPI_GP_SOME) {
        own.restarts = 0; /* these are the sample's */
        status = espi_gp_search_samples(space, p, settings, run, found, err);
    }
    for (int i = 0; status == ESP_OK && i < ROUNDS && moved > moved_little; i++) {
        status = one_round(space, p, &own, run, found, &moved, err);
        own.restarts = 0;
    }
    found->curvature = NULL;
    espi_gp_curvature_free(&curvature);
    if (status == ESP_OK) status = settle(space, p, run, found, err);
    if (status == ESP_ERR_CANCELLED && keep && found->there) {
        const esp_status settled = settle(space, p, &patient, found, err);
        if (settled != ESP_OK) return settled;
    }
    return status;
}
