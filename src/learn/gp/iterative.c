/* Log likelihood and gradient without the matrix. With G = K + s I and a preconditioner P = R R', A = R^-1 G R^-T:
 *
 *     log |G| = log |P| + tr log A,     tr log A = mean of w' log(A) w over random w with mean w w' = I
 *     log A   = integral over t = 0 .. 1 of (A - I) (I + t (A - I))^-1 ~ sum_k c_k (A - I) (I + t_k (A - I))^-1
 *
 * by the nodes t_k and weights c_k of Gauss and Legendre. With z = R w and x_k = ((1 - t_k) P + t_k G)^-1 z
 *
 *     w' log(A) w ~ sum_k c_k / t_k (z'P^-1 z - z'x_k),     its derivative is sum_k c_k x_k' dG x_k
 *
 * for a P that stays: the gradient is that of the very value which is estimated, and not an estimate of its own, as it
 * is by stochastic Lanczos quadrature and Hutchinson's traces (Gardner et al. 2018, whose probes z of covariance P
 * these are). All x_k of a probe share a Krylov space (krylov.h). So
 *
 *     W = 1/2 (a a' - mean over probes of sum_k c_k x_k x_k')
 *
 * has a low rank; its rows are made where the gradient wants them (Hale, Higham & Trefethen 2008 on such quadratures).
 */
#include "learn/gp/iterative.h"

#include "base/alloc.h"
#include "base/dense.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/gp/gp.h"

#include <math.h>
#include <string.h>

static const double TWO_PI = 6.283185307179586477;

enum { NODES = 6 };
static const struct {
    double node, weight;
} legendre[NODES / 2] = {{0.23861918608319690863, 0.46791393457269104739},
                         {0.66120938646626451366, 0.36076157304813860757},
                         {0.93246951420315202781, 0.17132449237917034504}};

/* ------------------------------------------------------------ preparation */

double espi_iterative_bytes(size_t rank, size_t probes, size_t examples)
{
    const double n = (double)examples, m = (double)(rank < examples ? rank : examples), c = 2.0 + (double)probes;
    return (n * m + m * m + n * (6.0 * c + 2.0 * c * NODES)) * sizeof(double);
}

static void free_choice(espi_iterative *s)
{
    double **const all[] = {&s->shift, &s->weight, &s->right, &s->solution, &s->form, &s->length};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        espi_free(*all[i]);
        *all[i] = NULL;
    }
    espi_free(s->column);
    s->column = NULL;
    s->solutions = false;
}

void espi_iterative_free(espi_iterative *s)
{
    espi_preconditioner_free(&s->preconditioner);
    free_choice(s);
    *s = (espi_iterative){0};
}

static bool take_memory(espi_iterative *s, size_t n)
{
    s->columns = s->solved + s->probes;
    s->slots = s->solved + s->probes * NODES;
    s->column = espi_alloc(s->slots, sizeof *s->column);
    s->shift = espi_alloc(s->slots, sizeof *s->shift);
    s->weight = espi_alloc_zero(s->slots, sizeof *s->weight);
    s->form = espi_alloc(s->slots, sizeof *s->form);
    s->length = espi_alloc(s->columns, sizeof *s->length);
    s->right = espi_alloc(n, s->columns * sizeof *s->right);
    s->solution = espi_alloc(n, s->slots * sizeof *s->solution);
    return s->column != NULL && s->shift != NULL && s->weight != NULL && s->form != NULL && s->length != NULL &&
           s->right != NULL && s->solution != NULL;
}

static void make_slots(espi_iterative *s)
{
    for (size_t t = 0; t < s->solved; t++) {
        s->column[t] = t;
        s->shift[t] = 1.0;
    }
    for (size_t t = s->solved; t < s->slots; t++) {
        const size_t k = (t - s->solved) % NODES;
        const double side = k % 2 == 0 ? 1.0 : -1.0;
        s->column[t] = s->solved + (t - s->solved) / NODES;
        s->shift[t] = 0.5 * (1.0 + side * legendre[k / 2].node);
        s->weight[t] = 0.5 * legendre[k / 2].weight;
    }
}

static esp_status make_right(espi_iterative *s, const double *target, size_t n, const esp_run *run, esp_error *err)
{
    double *probe = s->solution; /* free yet */
    const esp_status status = espi_preconditioner_draw(&s->preconditioner, s->seed, s->probes, probe, run, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        double *row = s->right + i * s->columns;
        row[0] = target[i];
        if (s->solved > 1) row[1] = 1.0;
        memcpy(row + s->solved, probe + i * s->probes, s->probes * sizeof *row);
    }
    return status;
}

esp_status espi_iterative_prepare(espi_iterative *s, const esp_kernel *kernel, const esp_dataset *data,
                                  const double *target, bool constant, double noise, const esp_run *run, esp_error *err)
{
    espi_bound *bound = NULL;
    free_choice(s);
    s->solved = constant ? 2 : 1;
    esp_status status = espi_bind(kernel, data, data, run, &bound, err);
    if (status == ESP_OK)
        status = espi_preconditioner_make(&s->preconditioner, bound, s->rank, s->seed, noise, run, err);
    espi_bound_free(bound);
    if (status == ESP_OK && !take_memory(s, data->rows)) status = espi_no_memory(err);
    if (status == ESP_OK) {
        make_slots(s);
        status = make_right(s, target, data->rows, run, err);
    }
    if (status != ESP_OK) free_choice(s);
    return status;
}

/* ---------------------------------------------------------------- solving */

static esp_status not_converged(double residual, double wanted, size_t iterations, esp_error *err)
{
    return espi_fail(err, ESP_ERR_RANGE,
                     "conjugate gradients did not converge: the residual is %.2g after %zu iterations, and %.2g is "
                     "wanted; raise noise, solver-rank or solver-iterations",
                     residual, iterations, wanted);
}

static esp_status solve(espi_iterative *s, const espi_bound *bound, const esp_dataset *data, double noise,
                        const esp_run *run, esp_error *err)
{
    espi_krylov k = {.preconditioner = &s->preconditioner,
                     .noise = noise,
                     .columns = s->columns,
                     .slots = s->slots,
                     .column = s->column,
                     .shift = s->shift,
                     .tolerance = sqrt(s->residual),
                     .most = s->iterations,
                     .solution = s->solution,
                     .form = s->form,
                     .length = s->length};
    esp_status status = espi_products_new(bound, data, s->columns, run, &k.products, err);
    if (status == ESP_OK) status = espi_krylov_solve(&k, s->right, run, err);
    espi_products_free(k.products);
    if (status != ESP_OK) return status;
    s->solutions = true;
    s->evaluations++;
    s->steps += k.iterations;
    if (k.iterations > s->longest) s->longest = k.iterations;
    if (!k.converged && !s->partial) return not_converged(k.residual, k.tolerance, k.iterations, err);
    s->left = fmax(s->left, k.residual);
    return ESP_OK;
}

/* tr log A, and with log |P| the determinant. */
static double log_determinant(const espi_iterative *s)
{
    double sum = 0.0;
    for (size_t t = s->solved; t < s->slots; t++)
        sum += s->weight[t] / s->shift[t] * (s->length[s->column[t]] - s->form[t]);
    return s->preconditioner.log + sum / (double)s->probes;
}

/* -------------------------------------------------------------- evaluation */

/* The mean and the coefficients, from the solutions for targets and ones; returns (y - m)'a. */
static double take_coefficients(const espi_iterative *s, const double *target, size_t n, double *a, double *mean)
{
    double of_targets = 0.0, of_ones = 0.0;
    *mean = 0.0;
    for (size_t i = 0; i < n; i++) a[i] = s->solution[i * s->slots];
    if (s->solved == 1) return s->form[0];
    for (size_t i = 0; i < n; i++) of_targets += s->solution[i * s->slots + 1] * target[i];
    of_ones = s->form[1];
    if (of_ones > 0.0) *mean = of_targets / of_ones;
    for (size_t i = 0; i < n; i++) a[i] -= *mean * s->solution[i * s->slots + 1];
    return s->form[0] - 2.0 * *mean * of_targets + *mean * *mean * of_ones;
}

typedef struct weighing {
    const espi_iterative *s;
    const double *a;
} weighing;

/* Rows of W; the solutions of probes have the roots of their weights as factors. */
static void weigh_rows(void *context, size_t first, size_t last, size_t width, double *rows)
{
    const weighing *w = context;
    const espi_iterative *s = w->s;
    const double *x = s->solution + s->solved;
    const espi_dense_factors f = {.turn_b = true,
                                  .add = true,
                                  .rows = last - first,
                                  .columns = width,
                                  .inner = s->slots - s->solved,
                                  .scale = -1.0,
                                  .a = x + first * s->slots,
                                  .a_stride = s->slots,
                                  .b = x,
                                  .b_stride = s->slots};
    for (size_t i = first; i < last; i++)
        for (size_t j = 0; j < width; j++) rows[(i - first) * width + j] = 0.5 * w->a[i] * w->a[j];
    espi_dense_product(&f, rows, width, &espi_alone, NULL); /* alone it does not fail */
}

static esp_status add_gradient(const espi_iterative *s, const espi_bound *bound, const double *a, const esp_run *run,
                               double *gradient, double *noise_gradient, esp_error *err)
{
    const size_t n = bound->count[ESPI_COLS];
    weighing w = {.s = s, .a = a};
    *noise_gradient = 0.0;
    for (size_t i = 0; i < n; i++) {
        *noise_gradient += 0.5 * a[i] * a[i];
        for (size_t t = s->solved; t < s->slots; t++) {
            double *x = &s->solution[i * s->slots + t];
            *x *= sqrt(0.5 * s->weight[t] / (double)s->probes);
            *noise_gradient -= *x * *x;
        }
    }
    return espi_bound_gradient_rows(bound, weigh_rows, &w, run, gradient, err);
}

static esp_status evaluate(const espi_gp_problem *p, const esp_kernel *kernel, double noise, const esp_run *run,
                           espi_gp_point *point, double *gradient, double *noise_gradient, esp_error *err)
{
    espi_iterative *s = p->iterative;
    const size_t n = p->count;
    espi_bound *bound = NULL;
    esp_status status = espi_bind(kernel, p->data, p->data, run, &bound, err);
    if (status == ESP_OK) status = solve(s, bound, p->data, noise, run, err);
    if (status == ESP_OK) {
        const double fit = take_coefficients(s, p->target, n, point->coefficient, &point->mean);
        point->value = -0.5 * (fit + log_determinant(s) + (double)n * log(TWO_PI));
        point->jitter = 0.0;
        if (!isfinite(point->value) || !espi_all_finite(point->coefficient, n))
            status = espi_fail(err, ESP_ERR_RANGE, "the likelihood is too small for a number; raise noise");
    }
    if (status == ESP_OK && gradient != NULL && point->value >= point->enough)
        status = add_gradient(s, bound, point->coefficient, run, gradient, noise_gradient, err);
    espi_bound_free(bound);
    return status;
}

const espi_gp_likelihood espi_gp_iterative = {
    .name = "gaussian", .value = "log likelihood", .noisy = true, .matrices = 0, .evaluate = evaluate};

/* --------------------------------------------------------------- settling */

typedef struct settling {
    espi_iterative *s;
    size_t n;
    espi_krylov krylov;
    double *x, *r, *step; /* n x solved: solutions, residuals, corrections */
} settling;

/* r = B - G x, and the largest |r| / |B| of a column. */
static esp_status measure(settling *t, double *worst, const esp_run *run, esp_error *err)
{
    const espi_iterative *s = t->s;
    const size_t width = s->solved;
    *worst = 0.0;
    const esp_status status = espi_products_of(t->krylov.products, t->x, run, t->r, err);
    if (status != ESP_OK) return status;
    for (size_t c = 0; c < width; c++) {
        double left = 0.0, all = 0.0;
        for (size_t i = 0; i < t->n; i++) {
            const double b = s->right[i * s->columns + c];
            double *r = &t->r[i * width + c];
            *r = b - *r - t->krylov.noise * t->x[i * width + c];
            left += *r * *r;
            all += b * b;
        }
        if (all > 0.0) *worst = fmax(*worst, sqrt(left / all));
    }
    return ESP_OK;
}

/* Corrections until the true residual is small: that of conjugate gradients is measured otherwise, and drifts. */
static esp_status refine(settling *t, const esp_run *run, esp_error *err)
{
    enum { TIMES = 4 };
    espi_iterative *s = t->s;
    size_t used = 0;
    esp_status status = measure(t, &s->reached, run, err);
    for (int i = 0; status == ESP_OK && i < TIMES && s->reached > s->residual && used < s->iterations; i++) {
        t->krylov.tolerance = 0.1 * s->residual / s->reached;
        t->krylov.most = s->iterations - used;
        status = espi_krylov_solve(&t->krylov, t->r, run, err);
        if (status != ESP_OK) return status;
        used += t->krylov.iterations;
        for (size_t k = 0; k < t->n * s->solved; k++) t->x[k] += t->step[k];
        status = measure(t, &s->reached, run, err);
    }
    s->steps += used;
    if (used > s->longest) s->longest = used;
    if (status == ESP_OK && !(s->reached <= s->residual) && !s->partial)
        return not_converged(s->reached, s->residual, used, err);
    return status;
}

static void take_settled(const settling *t, const double *target, double *coefficient, double *mean)
{
    const size_t width = t->s->solved;
    double of_targets = 0.0, of_ones = 0.0;
    for (size_t i = 0; width > 1 && i < t->n; i++) {
        of_targets += t->x[i * width + 1] * target[i];
        of_ones += t->x[i * width + 1];
    }
    *mean = of_ones > 0.0 ? of_targets / of_ones : 0.0;
    for (size_t i = 0; i < t->n; i++)
        coefficient[i] = t->x[i * width] - (width > 1 ? *mean * t->x[i * width + 1] : 0.0);
}

esp_status espi_iterative_settle(espi_iterative *s, const esp_kernel *kernel, const esp_dataset *data,
                                 const double *target, double noise, const esp_run *run, double *coefficient,
                                 double *mean, esp_error *err)
{
    settling t = {.s = s, .n = data->rows};
    espi_bound *bound = NULL;
    t.x = espi_alloc_zero(t.n, s->solved * sizeof *t.x);
    t.r = espi_alloc(t.n, s->solved * sizeof *t.r);
    t.step = espi_alloc(t.n, s->solved * sizeof *t.step);
    esp_status status = t.x == NULL || t.r == NULL || t.step == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && s->solutions && i < t.n; i++)
        memcpy(t.x + i * s->solved, s->solution + i * s->slots, s->solved * sizeof *t.x);
    t.krylov = (espi_krylov){.preconditioner = &s->preconditioner,
                             .noise = noise,
                             .columns = s->solved,
                             .slots = s->solved,
                             .column = s->column,
                             .shift = s->shift,
                             .solution = t.step,
                             .form = s->form,
                             .length = s->length};
    if (status == ESP_OK) status = espi_bind(kernel, data, data, run, &bound, err);
    if (status == ESP_OK) status = espi_products_new(bound, data, s->solved, run, &t.krylov.products, err);
    if (status == ESP_OK) status = refine(&t, run, err);
    if (status == ESP_OK) take_settled(&t, target, coefficient, mean);
    espi_products_free(t.krylov.products);
    espi_bound_free(bound);
    espi_free(t.x);
    espi_free(t.r);
    espi_free(t.step);
    return status;
}
