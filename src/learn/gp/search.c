/* The best hyperparameters: the maximum of
 *
 *     log likelihood(theta) + sum over priors of -1/2 ((ln theta - ln median) / sd)^2
 *
 * over x = ln theta within its bounds, by L-BFGS (Nocedal & Wright 2006, algorithm 7.4) from the values given and from
 * others that are drawn. A variable at a bound is held there while the objective rises beyond it; a step ends at the
 * bounds that it would cross. A step that does not rise enough (Armijo's condition) is shortened to where a parabola
 * through what is known has its top; its gradient is never asked for, which is most of what an evaluation costs. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STALL = 5, MOST_TRIALS = 25, MEMORY = ESPI_GP_MEMORY };
static const double ARMIJO = 1e-4, ROUNDING = 1e-12;
static const double LONGEST = 3.0; /* that a variable moves in a step: 20 times its value */
static const double ROUND = 1e-10; /* cosine of a step and the change of the gradient: below, it tells nothing */
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
    double *x;              /* per variable: ln of its value, where the run stands */
    double *slope;          /* per variable: the gradient there */
    double value;           /* the objective there */
    double *way;            /* per variable: the direction of the step */
    double *next;           /* per variable: x at its end */
    double *trial;          /* per variable: its value there */
    double *rise;           /* per variable: the gradient there */
    double height;          /* the objective there */
    double *place;          /* per place of the kernel: the gradient there */
    bool *held;             /* per variable: it stays at its bound */
    double *moved, *bent;   /* of the last steps, MEMORY of them, per variable: how x and minus its gradient changed */
    size_t steps;           /* since the search knows nothing of the curvature */
    double past[STALL + 1]; /* objectives of the last iterations */
    size_t number, iterations; /* of the run; its iterations */
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
    for (size_t v = 0; v < space->variables; v++) s->rise[v] = 0.0;
    for (size_t i = 0; i < space->hypers; i++) {
        const size_t v = space->variable[i];
        const bool is_noise = space->noisy && i + 1 == space->hypers;
        if (v != ESPI_GP_FIXED) s->rise[v] += (is_noise ? noise : s->place[space->hyper[i].place]) * s->trial[v];
    }
    for (size_t v = 0; v < space->variables; v++) {
        const espi_gp_variable *m = &space->moving[v];
        if (m->deviation == 0.0) continue;
        const double away = (log(s->trial[v]) - log(m->median)) / m->deviation;
        s->rise[v] -= away / m->deviation;
    }
    keep_best(s);
    return ESP_OK;
}

/* ------------------------------------------------------------------ trace */

static double norm_of(const search *s)
{
    double sum = 0.0;
    for (size_t v = 0; v < s->space->variables; v++) sum += s->held[v] ? 0.0 : s->slope[v] * s->slope[v];
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

/* ------------------------------------------------------------------- step */

static double limit(const search *s, size_t v, double x) { return fmin(fmax(x, low(s, v)), high(s, v)); }

/* Over the variables that are not held. */
static double dot(const search *s, const double *a, const double *b)
{
    double sum = 0.0;
    for (size_t v = 0; v < s->space->variables; v++) sum += s->held[v] ? 0.0 : a[v] * b[v];
    return sum;
}

static void add(const search *s, double *to, double factor, const double *what)
{
    for (size_t v = 0; v < s->space->variables; v++) to[v] += factor * what[v];
}

/* Variables at a bound are held there if the objective rises beyond it. */
static void hold(search *s)
{
    for (size_t v = 0; v < s->space->variables; v++)
        s->held[v] = (s->x[v] >= high(s, v) && s->slope[v] > 0.0) || (s->x[v] <= low(s, v) && s->slope[v] < 0.0);
}

/* The direction in which to step: the gradient times what is known of the inverse of the curvature. */
static void find_way(search *s)
{
    const size_t n = s->space->variables, first = s->steps > MEMORY ? s->steps - MEMORY : 0;
    double factor[MEMORY], scale = 1.0 / sqrt(dot(s, s->slope, s->slope));
    memcpy(s->way, s->slope, n * sizeof *s->way);
    for (size_t k = s->steps; k-- > first;) {
        const double *moved = s->moved + k % MEMORY * n, *bent = s->bent + k % MEMORY * n, both = dot(s, moved, bent);
        factor[k % MEMORY] = both > 0.0 ? dot(s, moved, s->way) / both : 0.0;
        add(s, s->way, -factor[k % MEMORY], bent);
        if (k + 1 == s->steps && both > 0.0) scale = both / dot(s, bent, bent);
    }
    for (size_t v = 0; v < n; v++) s->way[v] *= scale;
    for (size_t k = first; k < s->steps; k++) {
        const double *moved = s->moved + k % MEMORY * n, *bent = s->bent + k % MEMORY * n, both = dot(s, moved, bent);
        if (both > 0.0) add(s, s->way, factor[k % MEMORY] - dot(s, bent, s->way) / both, moved);
    }
    double longest = 0.0;
    for (size_t v = 0; v < n; v++) s->way[v] = s->held[v] ? 0.0 : s->way[v];
    for (size_t v = 0; v < n; v++) longest = fmax(longest, fabs(s->way[v]));
    for (size_t v = 0; v < n; v++) s->way[v] *= longest > LONGEST ? LONGEST / longest : 1.0;
}

/* Goes along s->way as far as the objective rises enough. *there: it did, and the last evaluation is its end. */
static esp_status go(search *s, bool *there)
{
    const size_t n = s->space->variables;
    double length = 1.0;
    *there = false;
    for (size_t trial = 0; trial < MOST_TRIALS; trial++) {
        double expected = 0.0;
        for (size_t v = 0; v < n; v++) {
            s->next[v] = s->held[v] ? s->x[v] : limit(s, v, s->x[v] + length * s->way[v]);
            s->trial[v] = value_at(s, v, s->next[v]);
            expected += s->slope[v] * (s->next[v] - s->x[v]);
        }
        const double least = s->value + ARMIJO * expected;
        const esp_status status = climb(s, least - ROUNDING * (1.0 + fabs(least)));
        if (status != ESP_OK && status != ESP_ERR_RANGE) return status; /* a shorter step may have a likelihood */
        *there = status == ESP_OK && expected > 0.0 && s->height >= least && s->height > s->value;
        if (*there) return ESP_OK;
        const double lost = status == ESP_OK ? expected - (s->height - s->value) : INFINITY;
        length *= fmin(fmax(0.5 * expected / lost, 0.1), 0.5);
    }
    return ESP_OK;
}

/* The run comes to where the last evaluation was. */
static void arrive(search *s)
{
    const size_t n = s->space->variables;
    double *moved = s->moved + s->steps % MEMORY * n, *bent = s->bent + s->steps % MEMORY * n;
    for (size_t v = 0; v < n; v++) {
        moved[v] = s->next[v] - s->x[v];
        bent[v] = s->slope[v] - s->rise[v];
    }
    if (dot(s, moved, bent) > ROUND * sqrt(dot(s, moved, moved) * dot(s, bent, bent))) s->steps++;
    memcpy(s->x, s->next, n * sizeof *s->x);
    memcpy(s->slope, s->rise, n * sizeof *s->slope);
    s->value = s->height;
    s->past[++s->iterations % (STALL + 1)] = s->value;
    hold(s);
}

/* ------------------------------------------------------------------- runs */

/* Whether the gradient is small, or what was gained by the last steps, or nothing by the last one, and nothing is
 * expected of the next. */
static bool has_converged(const search *s)
{
    const size_t n = s->iterations;
    const double tolerance = s->settings->tolerance, length = sqrt(dot(s, s->x, s->x));
    if (norm_of(s) <= tolerance * fmax(1.0, length)) return true;
    if (n >= STALL && s->value - s->past[(n - STALL) % (STALL + 1)] < tolerance) return true;
    const double gained = n > 0 ? s->value - s->past[(n - 1) % (STALL + 1)] : INFINITY;
    double longest = 0.0;
    for (size_t v = 0; v < s->space->variables; v++) longest = fmax(longest, fabs(s->way[v]));
    if (s->steps > 0 && longest <= s->found->little) return true;
    return s->steps > 0 && fmax(gained, 0.5 * dot(s, s->slope, s->way)) < 0.01 * tolerance;
}

/* What is known of the curvature from before, in the first run. */
static void recall(search *s)
{
    const espi_gp_curvature *c = s->found->curvature;
    s->steps = c != NULL && s->number == 1 ? c->steps : 0;
    if (s->steps == 0) return;
    memcpy(s->moved, c->moved, s->steps * s->space->variables * sizeof *s->moved);
    memcpy(s->bent, c->bent, s->steps * s->space->variables * sizeof *s->bent);
}

static void remember(const search *s)
{
    espi_gp_curvature *c = s->found->curvature;
    const size_t n = s->space->variables, first = s->steps > MEMORY ? s->steps - MEMORY : 0;
    if (c == NULL) return;
    c->steps = s->steps - first;
    for (size_t k = first; k < s->steps; k++) {
        memcpy(c->moved + (k - first) * n, s->moved + k % MEMORY * n, n * sizeof *c->moved);
        memcpy(c->bent + (k - first) * n, s->bent + k % MEMORY * n, n * sizeof *c->bent);
    }
}

/* Steps from s->x on; *end tells how they ended. */
static esp_status climb_on(search *s, const char **end)
{
    for (recall(s);;) {
        bool there;
        find_way(s);
        *end = has_converged(s) ? CONVERGED : s->iterations >= s->settings->max_iterations ? LIMIT : NULL;
        if (*end != NULL) return ESP_OK;
        const esp_status status = go(s, &there);
        if (status != ESP_OK) return status;
        if (there) {
            arrive(s);
            show_iteration(s);
        } else if (s->steps > 0) {
            s->steps = 0;
        } else {
            *end = STUCK;
            return ESP_OK;
        }
    }
}

/* One run from s->x. ESP_ERR_RANGE if there is no likelihood where it starts. */
static esp_status one_run(search *s)
{
    const double best = s->found->objective;
    const bool there = s->found->there;
    const char *end = NULL;
    s->iterations = 0;
    for (size_t v = 0; v < s->space->variables; v++)
        s->trial[v] = s->number == 1 ? s->space->moving[v].start : value_at(s, v, s->x[v]); /* to the last bit */
    esp_status status = climb(s, -INFINITY);
    if (status == ESP_OK) {
        s->value = s->past[0] = s->height;
        memcpy(s->slope, s->rise, s->space->variables * sizeof *s->slope);
        hold(s);
        show_iteration(s);
        status = climb_on(s, &end);
    }
    s->found->iterations += s->iterations;
    if (status == ESP_ERR_CANCELLED) {
        s->found->end = CANCELLED;
    } else if (s->found->there && (!there || s->found->objective > best)) {
        s->found->end = end;
        remember(s);
    }
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
    double **const vector[] = {&s->x, &s->slope, &s->way, &s->next, &s->trial, &s->rise};
    bool ok = espi_gp_point_make(&s->point, s->problem->count);
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++)
        ok = (*vector[i] = espi_alloc_zero(n, sizeof(double))) != NULL && ok;
    s->place = espi_alloc_zero(places, sizeof *s->place);
    s->held = espi_alloc_zero(n, sizeof *s->held);
    s->moved = espi_alloc_zero(MEMORY, n * sizeof *s->moved);
    s->bent = espi_alloc_zero(MEMORY, n * sizeof *s->bent);
    return ok && s->place != NULL && s->held != NULL && s->moved != NULL && s->bent != NULL;
}

static void release(search *s)
{
    double *const all[] = {s->x, s->slope, s->way, s->next, s->trial, s->rise, s->place, s->moved, s->bent};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) espi_free(all[i]);
    espi_free(s->held);
    espi_gp_point_free(&s->point);
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
    release(&s);
    return status;
}
