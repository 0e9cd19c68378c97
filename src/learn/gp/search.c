/* The best hyperparameters: the maximum of
 *
 *     log likelihood(theta) + sum over priors of -1/2 ((ln theta - ln median) / sd)^2
 *
 * over x = ln theta, by L-BFGS (liblbfgs), from the values given and from others that are drawn. The bounds of theta
 * are kept in rounds. In a round the objective beyond a bound is that at the bound plus a penalty that grows with the
 * square of the distance; once a step ends beyond, the variable is held at its bound and a new round goes on with the
 * others. When a round has converged, variables whose gradient leads away from their bounds are let go again. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/gp/gp.h"

#include <lbfgs.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STALL = 5, MOST_ROUNDS = 100, MOST_TRIALS = 25, MEMORY = 6 };
static const double ARMIJO = 1e-4, ROUNDING = 1e-12;
static const char CONVERGED[] = "converged", LIMIT[] = "stopped at the limit of iterations",
                  CANCELLED[] = "interrupted", STUCK[] = "stopped where no step was better";

typedef struct search {
    espi_gp_space *space;
    const espi_gp_problem *problem;
    const espi_gp_likelihood *likelihood;
    const espi_gp_settings *settings;
    const esp_run *run;
    espi_gp_found *found;
    esp_error *err;
    espi_gp_point point;
    double *x;                 /* per variable: ln of its value, where the run stands */
    double *slope;             /* per variable: the gradient there */
    double value;              /* the objective there */
    double *trial;             /* per variable: its value in the last evaluation */
    double *way;               /* per variable: the gradient in the last evaluation */
    double height;             /* the objective in it */
    double *place;             /* per place of the kernel: the gradient in it */
    signed char *held;         /* per variable: -1, 1: held at its lower or upper bound */
    size_t *of;                /* per variable of the round: its number */
    size_t moving;             /* variables of the round */
    bool first;                /* the round begins where the run stands, which needs no evaluation */
    double past[STALL];        /* objectives of the last iterations */
    size_t number, iterations; /* of the run; its iterations */
    esp_status status;
    bool beyond, stalled; /* why an iteration ended the round */
} search;

static double low(const search *s, size_t v) { return log(s->space->moving[v].low); }
static double high(const search *s, size_t v) { return log(s->space->moving[v].high); }

/* exp(x), which at a bound is the bound itself to the last bit. */
static double value_at(const search *s, size_t v, double x)
{
    const espi_gp_variable *m = &s->space->moving[v];
    if (x >= high(s, v)) return m->high;
    return x <= low(s, v) ? m->low : fmin(fmax(exp(x), m->low), m->high);
}

/* ------------------------------------------------------------- objective */

static void keep_best(search *s)
{
    espi_gp_found *f = s->found;
    if (f->there && !(s->height > f->objective)) return;
    espi_gp_point_copy(&f->point, &s->point, s->problem->count);
    f->objective = s->height;
    f->there = true;
    memcpy(f->value, s->trial, s->space->variables * sizeof *f->value);
}

/* The log prior of the values in s->trial. */
static double log_prior(const search *s)
{
    double sum = 0.0;
    for (size_t v = 0; v < s->space->variables; v++) {
        const espi_gp_variable *m = &s->space->moving[v];
        const double away = m->deviation > 0.0 ? (log(s->trial[v]) - log(m->median)) / m->deviation : 0.0;
        sum -= 0.5 * away * away;
    }
    return sum;
}

/* The objective at the values in s->trial, and its gradient in their logarithms; this need not be right where the
 * objective is below `enough`. */
static esp_status climb(search *s, double enough)
{
    espi_gp_space *space = s->space;
    const size_t places = espi_kernel_places(space->kernel);
    const double prior = log_prior(s);
    double noise = 0.0;
    espi_gp_space_set(space, s->trial);
    for (size_t p = 0; p < places; p++) s->place[p] = 0.0;
    s->point.enough = enough - prior;
    const esp_status status =
        s->likelihood->evaluate(s->problem, space->kernel, espi_gp_space_noise(space), s->run, &s->point,
                                space->variables > 0 ? s->place : NULL, &noise, s->err);
    if (status != ESP_OK) return status;
    s->height = s->point.value + prior;
    for (size_t v = 0; v < space->variables; v++) s->way[v] = 0.0;
    for (size_t i = 0; i < space->hypers; i++) {
        const size_t v = space->variable[i];
        const bool is_noise = space->noisy && i + 1 == space->hypers;
        if (v != ESPI_GP_FIXED) s->way[v] += (is_noise ? noise : s->place[space->hyper[i].place]) * s->trial[v];
    }
    for (size_t v = 0; v < space->variables; v++) {
        const espi_gp_variable *m = &space->moving[v];
        if (m->deviation == 0.0) continue;
        const double away = (log(s->trial[v]) - log(m->median)) / m->deviation;
        s->way[v] -= away / m->deviation;
    }
    keep_best(s);
    return ESP_OK;
}

/* ------------------------------------------------------------------ trace */

static double norm_of(const search *s)
{
    double sum = 0.0;
    for (size_t k = 0; k < s->moving; k++) sum += s->slope[s->of[k]] * s->slope[s->of[k]];
    return sqrt(sum);
}

static void show_iteration(const search *s)
{
    const espi_gp_space *space = s->space;
    espi_text text = {0};
    char part[160];
    if (s->run == NULL || s->run->message == NULL) return;
    snprintf(part, sizeof part, "run %zu, iteration %zu: %s %.6f, gradient %.3g", s->number, s->iterations,
             s->likelihood->value, s->point.value + s->found->shift, norm_of(s));
    espi_text_string(&text, part);
    for (size_t v = 0; v < space->variables; v++) {
        espi_text_string(&text, v == 0 ? "; " : ", ");
        espi_text_field(&text, space->moving[v].name, strlen(space->moving[v].name));
        snprintf(part, sizeof part, " %.6g", value_at(s, v, s->x[v]));
        espi_text_string(&text, part);
    }
    if (s->point.jitter > 0.0) {
        snprintf(part, sizeof part, "; jitter %.3g", s->point.jitter);
        espi_text_string(&text, part);
    }
    char *line = espi_text_take(&text);
    if (line != NULL) espi_message(s->run, line);
    espi_free(line);
}

/* ------------------------------------------------------------------ round */

static double limit(const search *s, size_t v, double x) { return fmin(fmax(x, low(s, v)), high(s, v)); }

/* The line search refuses a step to x, and shortens it without a look at its gradient, if the objective is below this
 * (Armijo's condition, with ARMIJO as its constant) plus the penalty. */
static double least_of_step(const search *s, const lbfgsfloatval_t *x)
{
    double rise = 0.0;
    for (size_t k = 0; k < s->moving; k++) rise += (x[k] - s->x[s->of[k]]) * s->slope[s->of[k]];
    const double least = s->value + ARMIJO * rise;
    return least - ROUNDING * (1.0 + fabs(least));
}

static lbfgsfloatval_t evaluate(void *instance, const lbfgsfloatval_t *x, lbfgsfloatval_t *g, const int n,
                                const lbfgsfloatval_t step)
{
    search *s = instance;
    double sum = 0.0;
    (void)n, (void)step;
    for (size_t k = 0; k < s->moving; k++) g[k] = 0.0;
    for (size_t k = 0; k < s->moving; k++) s->trial[s->of[k]] = value_at(s, s->of[k], x[k]);
    if (s->status == ESP_OK && !s->first) s->status = climb(s, least_of_step(s, x));
    s->first = false;
    if (s->status == ESP_ERR_RANGE) { /* a shorter step may have a likelihood */
        s->status = ESP_OK;
        return INFINITY;
    }
    if (s->status != ESP_OK) return INFINITY;
    for (size_t k = 0; k < s->moving; k++) {
        const double beyond = x[k] - limit(s, s->of[k], x[k]);
        g[k] = beyond != 0.0 ? beyond : -s->way[s->of[k]];
        sum += 0.5 * beyond * beyond;
    }
    return sum - s->height;
}

/* The run has come to where the last evaluation was. */
static int progress(void *instance, const lbfgsfloatval_t *x, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx,
                    const lbfgsfloatval_t xnorm, const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k,
                    int ls)
{
    search *s = instance;
    (void)g, (void)fx, (void)xnorm, (void)gnorm, (void)step, (void)n, (void)k, (void)ls;
    if (s->status != ESP_OK) return 1;
    for (size_t i = 0; i < s->moving; i++) {
        s->x[s->of[i]] = limit(s, s->of[i], x[i]);
        s->beyond = s->beyond || s->x[s->of[i]] != x[i];
    }
    s->value = s->height;
    memcpy(s->slope, s->way, s->space->variables * sizeof *s->slope);
    s->stalled = s->iterations >= STALL && s->value - s->past[s->iterations % STALL] < s->settings->tolerance;
    s->past[s->iterations % STALL] = s->value;
    s->iterations++;
    show_iteration(s);
    return s->beyond || s->stalled || s->iterations >= s->settings->max_iterations;
}

/* Variables at a bound are held there if the objective rises beyond it, and let go if not. True if that changed any. */
static bool hold(search *s)
{
    bool changed = false;
    s->moving = 0;
    for (size_t v = 0; v < s->space->variables; v++) {
        const bool up = s->x[v] >= high(s, v) && s->slope[v] > 0.0, down = s->x[v] <= low(s, v) && s->slope[v] < 0.0;
        const signed char at = up ? 1 : down ? -1 : 0;
        changed = changed || at != s->held[v];
        s->held[v] = at;
        if (at == 0) s->of[s->moving++] = v;
    }
    return changed;
}

/* One round of L-BFGS over the variables that are not held. Its result code. */
static int round_of(search *s)
{
    lbfgs_parameter_t parameter;
    lbfgsfloatval_t *x = lbfgs_malloc((int)s->moving);
    if (x == NULL) return LBFGSERR_OUTOFMEMORY;
    lbfgs_parameter_init(&parameter);
    parameter.m = MEMORY;
    parameter.ftol = ARMIJO;
    parameter.epsilon = s->settings->tolerance;
    parameter.linesearch = LBFGS_LINESEARCH_BACKTRACKING_WOLFE; /* others cannot do with a likelihood that is nowhere */
    parameter.max_linesearch = MOST_TRIALS;
    for (size_t k = 0; k < s->moving; k++) x[k] = s->x[s->of[k]];
    for (size_t v = 0; v < s->space->variables; v++) s->trial[v] = value_at(s, v, s->x[v]);
    memcpy(s->way, s->slope, s->space->variables * sizeof *s->way);
    s->height = s->value;
    s->first = true;
    s->beyond = s->stalled = false;
    const int code = lbfgs((int)s->moving, x, NULL, evaluate, progress, s, &parameter);
    lbfgs_free(x);
    return code;
}

/* ------------------------------------------------------------------- runs */

/* Rounds from s->x on; *end tells how they ended. */
static esp_status climb_rounds(search *s, const char **end)
{
    *end = CONVERGED;
    for (size_t round = 0; s->moving > 0; round++) {
        const size_t before = s->iterations;
        if (before >= s->settings->max_iterations || round == MOST_ROUNDS) {
            *end = LIMIT;
            break;
        }
        const int code = round_of(s);
        if (s->status != ESP_OK) return s->status;
        if (code == LBFGSERR_OUTOFMEMORY) return espi_no_memory(s->err);
        const bool changed = hold(s),
                   converged = s->stalled || code == LBFGS_SUCCESS || code == LBFGS_ALREADY_MINIMIZED;
        if (changed || s->beyond || (!converged && s->iterations > before)) continue;
        *end = converged ? CONVERGED : STUCK;
        break;
    }
    return ESP_OK;
}

/* One run from s->x. ESP_ERR_RANGE if there is no likelihood where it starts. */
static esp_status one_run(search *s)
{
    const double best = s->found->objective;
    const bool there = s->found->there;
    const char *end = NULL;
    s->iterations = 0;
    s->status = ESP_OK;
    for (size_t v = 0; v < s->space->variables; v++) {
        s->trial[v] = s->number == 1 ? s->space->moving[v].start : value_at(s, v, s->x[v]); /* to the last bit */
        s->held[v] = 0;
    }
    esp_status status = climb(s, -INFINITY);
    if (status == ESP_OK) {
        s->value = s->height;
        memcpy(s->slope, s->way, s->space->variables * sizeof *s->slope);
        hold(s);
        show_iteration(s);
        status = climb_rounds(s, &end);
    }
    s->found->iterations += s->iterations;
    if (status == ESP_ERR_CANCELLED) s->found->end = CANCELLED;
    else if (s->found->there && (!there || s->found->objective > best)) s->found->end = end;
    return status;
}

static void draw(search *s, espi_random *random)
{
    for (size_t v = 0; v < s->space->variables; v++) {
        const espi_gp_variable *m = &s->space->moving[v];
        const double from = log(fmax(m->draw_low, m->low)), to = log(fmin(m->draw_high, m->high));
        s->x[v] = from + espi_random_unit(random) * (to - from);
    }
}

static esp_status all_runs(search *s)
{
    espi_random random;
    espi_random_seed(&random, s->settings->common.seed);
    for (size_t v = 0; v < s->space->variables; v++) s->x[v] = log(s->space->moving[v].start);
    for (s->number = 1; s->number <= s->settings->restarts + 1; s->number++) {
        if (s->number > 1) draw(s, &random);
        const esp_status status = one_run(s);
        if (status == ESP_ERR_RANGE && s->number > 1) { /* a draw without a likelihood: there are others */
            espi_message(s->run, s->err->message);
            continue;
        }
        s->found->runs = s->number;
        if (status != ESP_OK) return status;
        if (s->space->variables == 0) break;
    }
    return ESP_OK;
}

static bool allocate(search *s)
{
    const size_t n = s->space->variables, places = espi_kernel_places(s->space->kernel);
    s->x = espi_alloc_zero(n, sizeof *s->x);
    s->slope = espi_alloc_zero(n, sizeof *s->slope);
    s->trial = espi_alloc_zero(n, sizeof *s->trial);
    s->way = espi_alloc_zero(n, sizeof *s->way);
    s->place = espi_alloc_zero(places, sizeof *s->place);
    s->held = espi_alloc_zero(n, sizeof *s->held);
    s->of = espi_alloc_zero(n, sizeof *s->of);
    return s->x != NULL && s->slope != NULL && s->trial != NULL && s->way != NULL && s->place != NULL &&
           s->held != NULL && s->of != NULL && espi_gp_point_make(&s->point, s->problem->count);
}

esp_status espi_gp_search(espi_gp_space *space, const espi_gp_problem *problem, const espi_gp_likelihood *likelihood,
                          const espi_gp_settings *settings, const esp_run *run, espi_gp_found *found, esp_error *err)
{
    esp_error own; /* a draw that fails is told, even if the caller wants no error */
    search s = {.space = space,
                .problem = problem,
                .likelihood = likelihood,
                .settings = settings,
                .run = run,
                .found = found,
                .err = err != NULL ? err : &own};
    esp_status status = allocate(&s) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = all_runs(&s);
    if (found->there) espi_gp_space_set(space, found->value);
    espi_gp_point_free(&s.point);
    espi_free(s.x);
    espi_free(s.slope);
    espi_free(s.trial);
    espi_free(s.way);
    espi_free(s.place);
    espi_free(s.held);
    espi_free(s.of);
    return status;
}
