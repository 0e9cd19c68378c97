/* Sequential minimal optimisation. With b_k = s_k a_k and t_k = -s_k p_k the problem of smo.h loses its signs:
 *
 *     maximise    sum_k t_k b_k - 1/2 sum_kl b_k b_l K(x_k, x_l)
 *     subject to  sum_k b_k = 0,   L_k <= b_k <= U_k      ([L, U] = [0, C] or [-C, 0])
 *
 * v_k = t_k - sum_l b_l K(x_k, x_l) is the gradient. A step raises b_i (b_i < U_i: i may go up) and lowers b_j
 * (b_j > L_j: j may go down) by the same amount; it gains while v_i > v_j. At the optimum
 *
 *     m = max { v_k : k may go up }  <=  M = min { v_k : k may go down },
 *
 * and any number in between is the bias; the solver stops at m - M < tolerance (Keerthi et al. 2001). i is where m is,
 * j maximises the gain (m - v_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen, Lin 2005, WSS 2). An iteration is two passes:
 * one finds j, the other moves v and finds the next i. Both are loops without branches over contiguous arrays;
 * floating-point maxima are not associative for the compiler, so they are taken over ordered integers.
 *
 * Shrinking (Joachims 1999): a variable at a bound that cannot be chosen as things stand is left out. Rows of the
 * kernel are shared between problems and cannot be permuted; so the entries that are left are copied out of them
 * once and kept, and the passes run over small contiguous rows. The gradient of the others comes from the variables
 * that changed since the first was left out. */
#include "learn/svm/smo.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 256,           /* variables per maximum: few enough to look through again when it is a new best */
    REPORT_PERIOD = 64,    /* iterations; each may have to compute two rows */
    SHRINK_PERIOD = 1024,  /* a problem of so few iterations is not worth the copies */
    STORE_BYTES = 1 << 26, /* for copies of rows, unless the problem says otherwise */
    SPARE = 2
};
static const uint32_t KEPT = UINT32_C(1) << 31;
static const float tau = 1e-12F; /* stands for a curvature that is not positive */

typedef struct solver {
    const espi_smo_problem *problem;
    const esp_run *run;
    size_t variables, examples;
    bool identity; /* variable k is example k */
    double *b;     /* per variable */
    double *sum;   /* per example: work space for sums of rows */

    /* The variables in play, in increasing order; [0, active). */
    size_t active;
    double *v;
    float *up, *down; /* 0, or -inf and +inf where it may not go there */
    float *diagonal;
    uint32_t *variable, *example;
    size_t top;            /* where m is; `active` if nothing may go up */
    double gap;            /* m - M as last seen */
    double *old_b, *old_v; /* per variable, from when all were last in play */

    /* Copies of rows at the active variables: two spare ones, and then for variables as they come until it is full. */
    float *store;
    size_t room, slots, used; /* room: in floats */
    uint32_t *slot;           /* per active variable: its row in the store, or 0; the first is 2 */
    uint32_t *owner;          /* the reverse */
    uint32_t *kept;           /* work space of shrink */

    size_t iterations;
    double first_gap, fraction;
} solver;

static double lower(const espi_smo_problem *p, size_t k) { return p->sign[k] > 0 ? 0.0 : -p->bound[k]; }
static double upper(const espi_smo_problem *p, size_t k) { return p->sign[k] > 0 ? p->bound[k] : 0.0; }
static double target(const espi_smo_problem *p, size_t k) { return p->sign[k] > 0 ? -p->linear[k] : p->linear[k]; }

/* ------------------------------------------------------------- the passes */

/* An integer that orders as the number does. */
static inline int64_t ordered(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits < 0 ? INT64_MAX : 0);
}

/* The same for floats that are not negative; of the others all are below 0. Back and forth: gcc vectorises a choice
 * between integers for all processors, one between floats not. */
static inline int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

HOT static void add_row(double *restrict sum, const float *restrict row, double c, size_t n)
{
    for (size_t e = 0; e < n; e++) sum[e] += c * (double)row[e];
}

HOT static void pick(float *restrict out, const float *restrict row, const uint32_t *restrict example, size_t n)
{
    for (size_t k = 0; k < n; k++) out[k] = row[example[k]];
}

/* v -= step (row_i - row_j). Returns where the largest v is that may go up, n if none. */
HOT static size_t move(double *restrict v, const float *restrict row_i, const float *restrict row_j, double step,
                       const float *restrict up, size_t n)
{
    int64_t best = ordered(-(double)INFINITY);
    size_t where = n;
    for (size_t from = 0; from < n; from += BLOCK) {
        const size_t to = n - from < BLOCK ? n : from + BLOCK;
        int64_t most = best;
        for (size_t k = from; k < to; k++) {
            v[k] -= step * ((double)row_i[k] - (double)row_j[k]);
            const int64_t key = ordered(v[k] + (double)up[k]);
            most = key > most ? key : most;
        }
        if (most == best) continue;
        best = most;
        for (where = from; ordered(v[where] + (double)up[where]) != best;) where++;
    }
    return where;
}

typedef struct partner {
    size_t where;    /* n if no gain can be told from 0 */
    float violation; /* scale * (m - M); 0 if there is none */
} partner;

/* Single precision is enough to choose j; `scale` brings violations near 1, so that their squares stay in range. */
HOT static partner find_partner(const double *restrict v, const float *restrict down, const float *restrict diagonal,
                                const float *restrict row_i, size_t n, double m, float k_ii, double scale)
{
    int32_t best = 0, widest = 0, key[BLOCK];
    partner found = {.where = n};
    for (size_t from = 0; from < n; from += BLOCK) {
        const size_t size = n - from < BLOCK ? n - from : BLOCK;
        int32_t most = best;
        for (size_t k = 0; k < size; k++) {
            const int32_t d = bits_of((float)((m - v[from + k] - (double)down[from + k]) * scale));
            const int32_t c = bits_of(k_ii + diagonal[from + k] - 2.0F * row_i[from + k]);
            const float violation = float_of(d > 0 ? d : 0), curvature = float_of(c > 0 ? c : bits_of(tau));
            key[k] = bits_of(violation * violation / curvature);
            widest = d > widest ? d : widest;
            most = key[k] > most ? key[k] : most;
        }
        if (most == best) continue;
        best = most;
        for (found.where = from; key[found.where - from] != best;) found.where++;
    }
    found.violation = float_of(widest);
    return found;
}

/* ------------------------------------------------------------ the active set */

static void allow(solver *s, size_t k)
{
    const size_t variable = s->variable[k];
    s->up[k] = s->b[variable] < upper(s->problem, variable) ? 0.0F : -INFINITY;
    s->down[k] = s->b[variable] > lower(s->problem, variable) ? 0.0F : INFINITY;
}

static bool may_go_up(const solver *s, size_t k) { return s->up[k] == 0.0F; }
static bool may_go_down(const solver *s, size_t k) { return s->down[k] == 0.0F; }

/* Finds i and the gap afresh. */
static void look(solver *s)
{
    s->top = move(s->v, s->diagonal, s->diagonal, 0.0, s->up, s->active);
    double least = INFINITY;
    for (size_t k = 0; k < s->active; k++)
        if (may_go_down(s, k) && s->v[k] < least) least = s->v[k];
    s->gap = s->top < s->active && least < INFINITY ? s->v[s->top] - least : 0.0;
}

/* The variable that violates most with i, where gains left the range of single precision. */
static size_t lowest(const solver *s)
{
    size_t where = s->top;
    for (size_t k = 0; k < s->active; k++)
        if (may_go_down(s, k) && s->v[k] < s->v[where]) where = k;
    return where;
}

/* An empty store, or none if rows serve as they are. */
static esp_status new_store(solver *s, esp_error *err)
{
    espi_free(s->store);
    s->store = NULL;
    if (s->identity && s->active == s->variables) return ESP_OK;
    const size_t bytes = s->problem->store > 0 ? s->problem->store : STORE_BYTES;
    const size_t rows = bytes / sizeof *s->store / s->active;
    s->slots = SPARE + (rows < s->active ? rows : s->active);
    s->used = SPARE;
    s->room = s->slots * s->active;
    s->store = espi_alloc(s->room, sizeof *s->store);
    memset(s->slot, 0, s->active * sizeof *s->slot);
    return s->store == NULL ? espi_no_memory(err) : ESP_OK;
}

/* Keeps the active variables kept[0..count) of the rows that are theirs, in place: rows only move to the front. */
static void compact_store(solver *s, size_t count)
{
    size_t used = SPARE;
    for (size_t k = 0; k < count; k++) {
        s->slot[k] = s->slot[s->kept[k]];
        if (s->slot[k] > 0) s->owner[s->slot[k]] = (uint32_t)k | KEPT;
    }
    for (size_t from = SPARE; from < s->used; from++) {
        if (!(s->owner[from] & KEPT)) continue;
        const float *row = s->store + from * s->active;
        float *copy = s->store + used * count;
        for (size_t k = 0; k < count; k++) copy[k] = row[s->kept[k]];
        s->owner[used] = s->owner[from] & ~KEPT;
        s->slot[s->owner[used]] = (uint32_t)used;
        used++;
    }
    s->used = used;
    s->slots = s->room / count < SPARE + count ? s->room / count : SPARE + count;
}

/* The row of active variable k at the active variables. `spare` < SPARE: rows with different ones may be held. */
static esp_status row_of(solver *s, size_t k, size_t spare, const float **row, esp_error *err)
{
    if (s->store != NULL && s->slot[k] > 0) {
        *row = s->store + s->slot[k] * s->active;
        return ESP_OK;
    }
    const esp_status status = espi_rows_get(s->problem->rows, s->example[k], row, err);
    if (status != ESP_OK || s->store == NULL) return status;
    if (s->used < s->slots) {
        s->owner[s->used] = (uint32_t)k;
        spare = s->slot[k] = (uint32_t)s->used++;
    }
    float *copy = s->store + spare * s->active;
    pick(copy, *row, s->example, s->active);
    *row = copy;
    return ESP_OK;
}

/* sum = sum_k (b_k - base_k) K(x_k, .) over all examples. */
static esp_status sum_rows(solver *s, const double *base, esp_error *err)
{
    double *c = espi_alloc_zero(s->examples, sizeof *c);
    if (c == NULL) return espi_no_memory(err);
    for (size_t k = 0; k < s->variables; k++) c[s->problem->example[k]] += s->b[k] - base[k];
    memset(s->sum, 0, s->examples * sizeof *s->sum);
    esp_status status = ESP_OK;
    for (size_t e = 0; e < s->examples && status == ESP_OK; e++) {
        const float *row;
        if (c[e] == 0.0) continue;
        status = espi_rows_get(s->problem->rows, e, &row, err);
        if (status == ESP_OK) add_row(s->sum, row, c[e], s->examples);
    }
    espi_free(c);
    return status;
}

/* Brings all variables into play: v = old_v - (sums over what changed since). */
static esp_status activate_all(solver *s, esp_error *err)
{
    const esp_status status = sum_rows(s, s->old_b, err);
    if (status != ESP_OK) return status;
    const float *diagonal = espi_rows_diagonal(s->problem->rows);
    s->active = s->variables;
    for (size_t k = 0; k < s->variables; k++) {
        s->variable[k] = (uint32_t)k;
        s->example[k] = s->problem->example[k];
        s->diagonal[k] = diagonal[s->example[k]];
        s->v[k] = s->old_v[k] - s->sum[s->example[k]];
        allow(s, k);
    }
    look(s);
    return new_store(s, err);
}

static bool is_needed(const solver *s, size_t k, double least, double most)
{
    if (may_go_up(s, k)) return may_go_down(s, k) || s->v[k] >= least;
    return may_go_down(s, k) && s->v[k] <= most;
}

/* Leaves out what cannot be chosen, and could not if m and M moved by the gap: what is left out too early costs whole
 * rounds of iterations. Only if that is enough to pay for copying rows. */
static esp_status shrink(solver *s, esp_error *err)
{
    look(s);
    if (s->gap < s->problem->tolerance) return ESP_OK;
    const double most = s->v[s->top] + s->gap, least = s->v[s->top] - 2.0 * s->gap;
    size_t count = 0;
    for (size_t k = 0; k < s->active; k++)
        if (is_needed(s, k, least, most)) s->kept[count++] = (uint32_t)k;
    if (count > s->active / 2) return ESP_OK;
    if (s->active == s->variables) {
        memcpy(s->old_b, s->b, s->variables * sizeof *s->b);
        memcpy(s->old_v, s->v, s->variables * sizeof *s->v);
    }
    for (size_t k = 0; k < count; k++) {
        const size_t from = s->kept[k];
        s->variable[k] = s->variable[from];
        s->example[k] = s->example[from];
        s->diagonal[k] = s->diagonal[from];
        s->v[k] = s->v[from];
        s->up[k] = s->up[from];
        s->down[k] = s->down[from];
    }
    const bool stored = s->store != NULL;
    if (stored) compact_store(s, count);
    s->active = count;
    look(s);
    return stored ? ESP_OK : new_store(s, err);
}

/* -------------------------------------------------------------- iterations */

/* Moves b_i up and b_j down as far as it gains or the bounds allow; then v, and i for the next time. */
static void step(solver *s, size_t j, const float *row_i, const float *row_j)
{
    const size_t i = s->top, var_i = s->variable[i], var_j = s->variable[j];
    const double room_i = upper(s->problem, var_i) - s->b[var_i], room_j = s->b[var_j] - lower(s->problem, var_j);
    const double curvature = (double)s->diagonal[i] + (double)s->diagonal[j] - 2.0 * (double)row_i[j];
    double size = (s->v[i] - s->v[j]) / (curvature > 0.0 ? curvature : (double)tau);
    if (size > room_i) size = room_i;
    if (size > room_j) size = room_j;
    /* Exactly at the bound, which adding a rounded difference would miss. */
    s->b[var_i] = size < room_i ? s->b[var_i] + size : upper(s->problem, var_i);
    s->b[var_j] = size < room_j ? s->b[var_j] - size : lower(s->problem, var_j);
    allow(s, i);
    allow(s, j);
    s->top = move(s->v, row_i, row_j, size, s->up, s->active);
}

/* Violations fall roughly geometrically, not steadily: what is shown never goes back. */
static esp_status report(solver *s, esp_error *err)
{
    const double all = log(s->first_gap / s->problem->tolerance), done = log(s->first_gap / s->gap);
    const double fraction = all > 0.0 && done > 0.0 ? fmin(done / all, 1.0) : 0.0;
    s->fraction = fmax(s->fraction, fraction);
    return espi_progress(s->run, "training", s->fraction, err);
}

/* One iteration. `done`: converged over all variables. */
static esp_status iterate(solver *s, bool *done, esp_error *err)
{
    const float *row_i, *row_j;
    *done = false;
    if (s->gap >= s->problem->tolerance) {
        esp_status status = row_of(s, s->top, 0, &row_i, err);
        if (status != ESP_OK) return status;
        partner p =
            find_partner(s->v, s->down, s->diagonal, row_i, s->active, s->v[s->top], s->diagonal[s->top], 1.0 / s->gap);
        s->gap *= (double)p.violation;
        if (isinf(s->gap)) { /* for single precision, that is */
            look(s);
            return ESP_OK;
        }
        if (s->gap >= s->problem->tolerance) {
            const bool gains = p.where < s->active && may_go_down(s, p.where) && s->v[p.where] < s->v[s->top];
            if (!gains) p.where = lowest(s);
            status = row_of(s, p.where, 1, &row_j, err);
            if (status != ESP_OK) return status;
            step(s, p.where, row_i, row_j);
            s->iterations++;
            if (s->top == s->active) s->gap = 0.0;
            return ESP_OK;
        }
    }
    *done = s->active == s->variables;
    return *done ? ESP_OK : activate_all(s, err);
}

static esp_status iterate_all(solver *s, bool *converged, esp_error *err)
{
    s->first_gap = s->gap;
    esp_status status = report(s, err);
    size_t next_report = REPORT_PERIOD, next_shrink = SHRINK_PERIOD;
    while (status == ESP_OK && !*converged && s->iterations < s->problem->max_iterations) {
        const size_t active = s->active;
        status = iterate(s, converged, err);
        if (s->active > active) next_shrink = s->iterations + SHRINK_PERIOD;
        if (status == ESP_OK && s->iterations >= next_report) {
            next_report = s->iterations + REPORT_PERIOD;
            status = report(s, err);
        }
        if (status == ESP_OK && s->problem->shrinking && s->iterations >= next_shrink) {
            next_shrink = s->iterations + SHRINK_PERIOD;
            status = shrink(s, err);
        }
    }
    return status;
}

/* --------------------------------------------------------- begin and end */

static esp_status allocate(solver *s, esp_error *err)
{
    const size_t n = s->variables;
    s->b = espi_alloc(n, sizeof *s->b);
    s->v = espi_alloc(n, sizeof *s->v);
    s->old_b = espi_alloc_zero(n, sizeof *s->old_b);
    s->old_v = espi_alloc(n, sizeof *s->old_v);
    s->sum = espi_alloc(s->examples, sizeof *s->sum);
    s->up = espi_alloc(n, sizeof *s->up);
    s->down = espi_alloc(n, sizeof *s->down);
    s->diagonal = espi_alloc(n, sizeof *s->diagonal);
    s->variable = espi_alloc(n, sizeof *s->variable);
    s->example = espi_alloc(n, sizeof *s->example);
    s->slot = espi_alloc(n, sizeof *s->slot);
    s->owner = espi_alloc(n + SPARE, sizeof *s->owner);
    s->kept = espi_alloc(n, sizeof *s->kept);
    const bool complete = s->b && s->v && s->old_b && s->old_v && s->sum && s->up && s->down && s->diagonal &&
                          s->variable && s->example && s->slot && s->owner && s->kept;
    return complete ? ESP_OK : espi_no_memory(err);
}

static void release(solver *s)
{
    void *const block[] = {s->b,        s->v,        s->old_b,   s->old_v, s->sum,   s->up,   s->down,
                           s->diagonal, s->variable, s->example, s->slot,  s->owner, s->kept, s->store};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++) espi_free(block[i]);
}

/* b from alpha, brought into the bounds and then to its sum: towards 0 as far as
 * that leads there, else away from it. */
static void make_feasible(solver *s, const double *alpha)
{
    const espi_smo_problem *p = s->problem;
    double excess = -p->sum;
    for (size_t k = 0; k < s->variables; k++) {
        const double a = alpha[k] > 0.0 ? fmin(alpha[k], p->bound[k]) : 0.0;
        s->b[k] = p->sign[k] > 0 ? a : -a;
        excess += s->b[k];
    }
    for (size_t k = 0; k < s->variables && excess != 0.0; k++) {
        if (s->b[k] == 0.0 || (s->b[k] > 0.0) != (excess > 0.0)) continue;
        const double change = fabs(s->b[k]) < fabs(excess) ? s->b[k] : excess;
        s->b[k] -= change;
        excess -= change;
    }
    for (size_t k = 0; k < s->variables && p->sum != 0.0 && excess != 0.0; k++) { /* a sum of 0 is reached by now */
        const double before = s->b[k];
        s->b[k] = fmin(fmax(before - excess, lower(p, k)), upper(p, k));
        excess += s->b[k] - before;
    }
}

/* Called with all variables in play, unless the rows for that could not be had. */
static void finish(const solver *s, double *alpha, espi_smo_result *result)
{
    const espi_smo_problem *p = s->problem;
    double free_sum = 0.0, m = -INFINITY, least = INFINITY;
    for (size_t k = 0; k < s->active; k++) {
        /* A variable that rounding left a hair's breadth from its bound must not settle the bias alone. */
        const double b = s->b[s->variable[k]], bound = p->bound[s->variable[k]], hair = 1e-12 * bound;
        const bool positive = p->sign[s->variable[k]] > 0;
        const bool up = (positive ? bound : 0.0) - b > hair, down = b - (positive ? 0.0 : -bound) > hair;
        if (up) m = fmax(m, s->v[k]);
        if (down) least = fmin(least, s->v[k]);
        if (up && down) free_sum += s->v[k];
        if (up && down) result->free_variables++;
        else if (b != 0.0) result->bounded_variables++;
        result->objective -= b * (target(p, s->variable[k]) + s->v[k]) / 2.0;
    }
    if (result->free_variables > 0) result->bias = free_sum / (double)result->free_variables;
    else if (m > -INFINITY && least < INFINITY) result->bias = (m + least) / 2.0;
    else if (m > -INFINITY || least < INFINITY) result->bias = m > -INFINITY ? m : least;
    for (size_t k = 0; k < s->variables; k++) alpha[k] = fabs(s->b[k]);
    result->iterations = s->iterations;
}

esp_status espi_smo_solve(const espi_smo_problem *problem, const esp_run *run, double *alpha, espi_smo_result *result,
                          esp_error *err)
{
    solver s = {.problem = problem, .run = run, .variables = problem->variables};
    *result = (espi_smo_result){.converged = true};
    if (s.variables == 0) return ESP_OK;
    s.examples = espi_rows_count(problem->rows);
    s.identity = s.variables <= s.examples;
    for (size_t k = 0; k < s.variables && s.identity; k++) s.identity = problem->example[k] == k;
    result->converged = false;

    esp_status status = allocate(&s, err);
    if (status == ESP_OK) {
        make_feasible(&s, alpha);
        for (size_t k = 0; k < s.variables; k++) s.old_v[k] = target(problem, k);
        status = activate_all(&s, err); /* old_b is 0 */
    }
    if (status == ESP_OK) {
        s.gap = fmax(s.gap, 0.0);
        status = iterate_all(&s, &result->converged, err);
        if (s.active < s.variables) {
            const esp_status complete = activate_all(&s, status == ESP_OK ? err : NULL);
            if (status == ESP_OK) status = complete;
        }
        finish(&s, alpha, result);
    }
    release(&s);
    return status;
}
