/* Preconditioned Lanczos with shifts (krylov.h). In the coordinates of P^1/2 the matrix is A = P^-1/2 G P^-1/2; its
 * Lanczos vectors v are kept as u = P^1/2 v and w = P^-1/2 v = P^-1 u:
 *
 *     g = G w_j,   alpha_j = w_j'g,   g := g - alpha_j u_j - beta_j u_(j-1),   beta_(j+1)^2 = g'P^-1 g
 *
 * A shifted system has the tridiagonal matrix (1 - t) I + t T, which is factored as L D L' on the way:
 *
 *     d_j = 1 - t + t alpha_j - (t beta_j)^2 / d_(j-1),    l_j = t beta_j / d_(j-1)
 *     z_1 = beta_1 / d_1,   z_j = -t beta_j z_(j-1) / d_j,   p_j = w_j - l_j p_(j-1),   x = sum_j z_j p_j
 *
 * Then b'x = sum_j z_j^2 d_j, and the residual has the length t beta_(j+1) |z_j| in the norm of P^-1. Rows are handled
 * in portions whose number does not depend on that of the threads. */
#include "learn/krylov.h"

#include "base/alloc.h"
#include "base/hot.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PORTION = 1024 };             /* rows */
static const double nothing = 1e-28; /* beta^2 of a Krylov space that is complete, of alpha^2 */

typedef struct lanczos {
    espi_krylov *k;
    size_t n, portions;
    double *before, *u, *w, *g, *h; /* n x columns: u_(j-1), u_j, w_j; g, P^-1 g */
    double *way;                    /* n x slots: p_j; NULL: no solutions */
    double *part;                   /* portions x columns: of a sum over rows */
    double *alpha, *beta, *next;    /* per column: alpha_j, beta_j, beta_(j+1) */
    double *first;                  /* per column: beta_1 */
    double *left;                   /* per column: the largest residual of its slots, of beta_1 */
    bool *done;                     /* per column */
    double *d, *z, *l;              /* per slot */
    size_t step;                    /* j - 1 */
} lanczos;

/* ------------------------------------------------------------------- rows */

typedef struct portion_job {
    lanczos *s;
    void (*work)(const lanczos *s, size_t first, size_t last, double *sum);
} portion_job;

static esp_status do_portion(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const portion_job *j = context;
    const size_t first = item * PORTION, last = first + PORTION < j->s->n ? first + PORTION : j->s->n;
    (void)thread, (void)err;
    j->work(j->s, first, last, j->s->part + item * j->s->k->columns);
    return ESP_OK;
}

/* Work over all rows; `sum`, per column, gets what the portions have summed. */
static esp_status over_rows(lanczos *s, void (*work)(const lanczos *s, size_t first, size_t last, double *sum),
                            double *sum, const esp_run *run, esp_error *err)
{
    const size_t columns = s->k->columns;
    portion_job j = {.s = s, .work = work};
    esp_run quiet = run != NULL ? *run : (esp_run){0};
    quiet.progress = NULL; /* products report; this is short */
    const esp_status status = espi_parallel(&quiet, "solving", s->portions, do_portion, &j, err);
    for (size_t c = 0; sum != NULL && c < columns; c++) {
        sum[c] = 0.0;
        for (size_t p = 0; p < s->portions; p++) sum[c] += s->part[p * columns + c];
    }
    return status;
}

HOT static void lanczos_dot(const double *restrict a, const double *restrict b, size_t rows, size_t columns,
                            double *restrict sum)
{
    for (size_t c = 0; c < columns; c++) sum[c] = 0.0;
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < columns; c++) sum[c] += a[i * columns + c] * b[i * columns + c];
}

/* g += noise w, and w'g. */
static void add_noise(const lanczos *s, size_t first, size_t last, double *sum)
{
    const size_t columns = s->k->columns;
    for (size_t i = first * columns; i < last * columns; i++) s->g[i] += s->k->noise * s->w[i];
    lanczos_dot(s->w + first * columns, s->g + first * columns, last - first, columns, sum);
}

static void orthogonalise(const lanczos *s, size_t first, size_t last, double *sum)
{
    const size_t columns = s->k->columns;
    (void)sum;
    for (size_t i = first; i < last; i++)
        for (size_t c = 0; c < columns; c++) {
            const size_t at = i * columns + c;
            s->g[at] -= s->alpha[c] * s->u[at] + s->beta[c] * s->before[at];
        }
}

static void measure(const lanczos *s, size_t first, size_t last, double *sum)
{
    const size_t columns = s->k->columns;
    lanczos_dot(s->g + first * columns, s->h + first * columns, last - first, columns, sum);
}

/* u_(j-1) and u_j move on; w_j, too. A column that is done, or complete, is zeros from here on. */
static void move_on(const lanczos *s, size_t first, size_t last, double *sum)
{
    const size_t columns = s->k->columns;
    (void)sum;
    for (size_t i = first; i < last; i++)
        for (size_t c = 0; c < columns; c++) {
            const size_t at = i * columns + c;
            const double scale = s->done[c] ? 0.0 : 1.0 / s->next[c];
            s->before[at] = s->u[at];
            s->u[at] = scale * s->g[at];
            s->w[at] = scale * s->h[at];
        }
}

/* p_j and x. Slots of columns that are done have z = 0. */
static void extend(const lanczos *s, size_t first, size_t last, double *sum)
{
    const espi_krylov *k = s->k;
    (void)sum;
    for (size_t i = first; i < last; i++) {
        const double *w = s->w + i * k->columns;
        double *way = s->way + i * k->slots, *x = k->solution + i * k->slots;
        for (size_t t = 0; t < k->slots; t++) {
            way[t] = w[k->column[t]] - s->l[t] * way[t];
            x[t] += s->z[t] * way[t];
        }
    }
}

/* ------------------------------------------------------------------ slots */

/* The next row of the factors of all shifted matrices, from alpha_j and beta_j. */
static bool factor_next(lanczos *s)
{
    espi_krylov *k = s->k;
    for (size_t t = 0; t < k->slots; t++) {
        const size_t c = k->column[t];
        const double shift = k->shift[t], off = shift * s->beta[c];
        if (s->done[c]) {
            s->l[t] = s->z[t] = 0.0;
            continue;
        }
        s->l[t] = s->step > 0 ? off / s->d[t] : 0.0;
        s->d[t] = 1.0 - shift + shift * s->alpha[c] - s->l[t] * off;
        s->z[t] = s->step > 0 ? -off * s->z[t] / s->d[t] : s->first[c] / s->d[t];
        if (!(s->d[t] > 0.0) || !isfinite(s->z[t])) return false; /* rounding has spoilt what is positive definite */
        k->form[t] += s->z[t] * s->z[t] * s->d[t];
    }
    return true;
}

/* Which columns are done; the residuals of those stay as they are. */
static void judge(lanczos *s)
{
    espi_krylov *k = s->k;
    k->residual = 0.0;
    k->converged = true;
    for (size_t c = 0; c < k->columns; c++) {
        double most = 0.0;
        for (size_t t = 0; t < k->slots && !s->done[c]; t++)
            if (k->column[t] == c) most = fmax(most, k->shift[t] * s->next[c] * fabs(s->z[t]));
        if (!s->done[c]) {
            s->left[c] = most / s->first[c];
            s->done[c] = s->left[c] <= k->tolerance || most * most * k->preconditioner->worst <= k->bound ||
                         s->next[c] * s->next[c] <= nothing * s->alpha[c] * s->alpha[c];
        }
        k->residual = fmax(k->residual, s->left[c]);
        k->converged = k->converged && s->done[c];
    }
}

/* -------------------------------------------------------------- iterations */

static void free_lanczos(lanczos *s)
{
    double *const all[] = {s->before, s->u,    s->w,     s->g, s->h, s->way, s->part, s->alpha,
                           s->beta,   s->next, s->first, s->d, s->z, s->l,   s->left};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) espi_free(all[i]);
    espi_free(s->done);
}

static bool make_lanczos(lanczos *s)
{
    const espi_krylov *k = s->k;
    double **const vector[] = {&s->before, &s->u, &s->w, &s->g, &s->h};
    double **const of_column[] = {&s->alpha, &s->beta, &s->next, &s->first, &s->left};
    double **const of_slot[] = {&s->d, &s->z, &s->l};
    bool ok = true;
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++)
        ok = ok && (*vector[i] = espi_alloc_zero(s->n, k->columns * sizeof(double))) != NULL;
    for (size_t i = 0; i < sizeof of_column / sizeof *of_column; i++)
        ok = ok && (*of_column[i] = espi_alloc_zero(k->columns, sizeof(double))) != NULL;
    for (size_t i = 0; i < sizeof of_slot / sizeof *of_slot; i++)
        ok = ok && (*of_slot[i] = espi_alloc_zero(k->slots, sizeof(double))) != NULL;
    if (k->solution != NULL) ok = ok && (s->way = espi_alloc_zero(s->n, k->slots * sizeof(double))) != NULL;
    ok = ok && (s->part = espi_alloc_zero(s->portions, k->columns * sizeof(double))) != NULL;
    return ok && (s->done = espi_alloc_zero(k->columns, sizeof *s->done)) != NULL;
}

/* u_1, w_1 and beta_1, from g = b. */
static esp_status begin(lanczos *s, const double *b, const esp_run *run, esp_error *err)
{
    espi_krylov *k = s->k;
    memcpy(s->g, b, s->n * k->columns * sizeof *b);
    if (k->solution != NULL) memset(k->solution, 0, s->n * k->slots * sizeof *k->solution);
    for (size_t t = 0; t < k->slots; t++) k->form[t] = 0.0;
    esp_status status = espi_preconditioner_solve(k->preconditioner, s->g, k->columns, s->h, run, err);
    if (status == ESP_OK) status = over_rows(s, measure, k->length, run, err);
    for (size_t c = 0; status == ESP_OK && c < k->columns; c++) {
        s->first[c] = s->next[c] = sqrt(fmax(k->length[c], 0.0));
        s->done[c] = !(s->first[c] > 0.0);
    }
    return status == ESP_OK ? over_rows(s, move_on, NULL, run, err) : status;
}

/* alpha_j, what it makes of the solutions, and the next Lanczos vector. */
static esp_status iterate(lanczos *s, const esp_run *run, esp_error *err)
{
    espi_krylov *k = s->k;
    esp_status status = espi_products_of(k->products, s->w, run, s->g, err);
    if (status == ESP_OK) status = over_rows(s, add_noise, s->alpha, run, err);
    if (status != ESP_OK) return status;
    if (!factor_next(s))
        return espi_fail(err, ESP_ERR_RANGE,
                         "rounding errors spoil the conjugate gradients after %zu iterations; raise noise", s->step);
    if (k->solution != NULL) status = over_rows(s, extend, NULL, run, err);
    if (status == ESP_OK) status = over_rows(s, orthogonalise, NULL, run, err);
    if (status == ESP_OK) status = espi_preconditioner_solve(k->preconditioner, s->g, k->columns, s->h, run, err);
    if (status == ESP_OK) status = over_rows(s, measure, s->next, run, err);
    if (status != ESP_OK) return status;
    for (size_t c = 0; c < k->columns; c++) s->next[c] = sqrt(fmax(s->next[c], 0.0));
    judge(s);
    s->step++;
    memcpy(s->beta, s->next, k->columns * sizeof *s->beta);
    return over_rows(s, move_on, NULL, run, err);
}

esp_status espi_krylov_solve(espi_krylov *k, const double *b, const esp_run *run, esp_error *err)
{
    lanczos s = {.k = k, .n = k->preconditioner->examples};
    s.portions = (s.n + PORTION - 1) / PORTION;
    k->iterations = 0;
    k->residual = 0.0;
    k->converged = true;
    esp_status status = make_lanczos(&s) ? begin(&s, b, run, err) : espi_no_memory(err);
    for (size_t c = 0; status == ESP_OK && c < k->columns; c++) k->converged = k->converged && s.done[c];
    while (status == ESP_OK && !k->converged && k->iterations < k->most) {
        char stage[80];
        snprintf(stage, sizeof stage, "solving, iteration %zu, residual %.1e", k->iterations + 1, k->residual);
        status = espi_progress(run, stage, -1.0, err);
        if (status == ESP_OK) status = iterate(&s, run, err);
        k->iterations++;
    }
    free_lanczos(&s);
    return status;
}
