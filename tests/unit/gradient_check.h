/* Gradients of the leaves of a kernel: against differences of their own values, against references in dual numbers, and
 * what all of them keep to: the same for any number of threads, sentences where there is none, memory that runs out. */
#ifndef GRADIENT_CHECK_H
#define GRADIENT_CHECK_H

#include "base/alloc.h"
#include "base/parallel.h"
#include "cases.h"
#include "kernel/evaluate/bound.h"

enum { SLOPES = 10, LEVELS = 4, MOST_ROWS = 40, MOST_THREADS = 4 };

/* ------------------------------------------------------------ dual numbers */

typedef struct dual { /* a value and its derivatives, one for each place of a gradient */
    double v, d[SLOPES];
} dual;

static inline dual dual_constant(double v) { return (dual){.v = v}; }

/* The hyperparameter at place p itself. */
static inline dual dual_variable(double v, size_t p)
{
    dual x = {.v = v};
    x.d[p] = 1.0;
    return x;
}

static inline dual dual_add(dual a, dual b)
{
    dual sum = {.v = a.v + b.v};
    for (size_t p = 0; p < SLOPES; p++) sum.d[p] = a.d[p] + b.d[p];
    return sum;
}

static inline dual dual_mul(dual a, dual b)
{
    dual product = {.v = a.v * b.v};
    for (size_t p = 0; p < SLOPES; p++) product.d[p] = a.d[p] * b.v + a.v * b.d[p];
    return product;
}

static inline dual dual_power(dual a, size_t exponent)
{
    dual product = dual_constant(1.0);
    while (exponent-- > 0) product = dual_mul(product, a);
    return product;
}

/* ------------------------------------------------------------------ leaves */

static inline size_t parameters_of(const espi_leaf *leaf)
{
    size_t count = 0;
    while (leaf->class->parameters[count].info.name != NULL) count++;
    return count;
}

static inline size_t places_of(const espi_leaf *leaf) { return parameters_of(leaf) + leaf->symbols; }

/* The value behind a place of a gradient; NULL: nothing is learned there. The leaves of trees only count where bow is
 * not 0. */
static inline double *value_at(espi_leaf *leaf, size_t place)
{
    const size_t parameters = parameters_of(leaf);
    if (place >= parameters) return &leaf->symbol[place - parameters].value;
    const espi_parameter *p = &leaf->class->parameters[place];
    if (strcmp(p->info.name, "bow") == 0 && leaf->value[place] == 0.0) return NULL;
    return p->draw_low > 0.0 ? &leaf->value[place] : NULL;
}

typedef struct checked { /* a kernel bound to data, and one of its leaves */
    esp_kernel *kernel;
    const esp_dataset *rows, *cols;
    espi_bound *bound;
    espi_workspace *workspace;
    size_t leaf;
} checked;

static inline checked bind_kernel(esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols)
{
    checked c = {.kernel = kernel, .rows = rows, .cols = cols};
    esp_error err = {0};
    assert_ok(espi_bind(kernel, rows, cols, NULL, &c.bound, &err), kernel->text, &err);
    assert_ok(espi_workspace_new(c.bound, NULL, &c.workspace, &err), kernel->text, &err);
    return c;
}

static inline void unbind(checked *c)
{
    espi_workspace_free(c->workspace);
    espi_bound_free(c->bound);
}

/* The first leaf of the expression. */
static inline checked checked_of(const char *expression, const esp_dataset *rows, const esp_dataset *cols)
{
    return bind_kernel(kernel_of(expression), rows, cols);
}

static inline void checked_free(checked *c)
{
    unbind(c);
    esp_kernel_free(c->kernel);
}

static inline espi_leaf *leaf_of(const checked *c) { return &c->kernel->leaf[c->leaf]; }

/* --------------------------------------------------------------- gradients */

/* What is differentiated: row `row` of the matrix, columns from .. to-1; or the self-values of a side. */
typedef struct asked {
    bool diagonal;
    espi_side side;
    int threads; /* for self-values */
    size_t row, from, to;
} asked;

static inline asked row_of(const checked *c, size_t row)
{
    return (asked){.row = row, .to = c->bound->count[ESPI_COLS]};
}

static inline asked self_of(const checked *c, espi_side side)
{
    return (asked){.diagonal = true, .side = side, .to = c->bound->count[side]};
}

static inline esp_status try_gradient(const checked *c, asked a, const double *weight, double *gradient, esp_error *err)
{
    const espi_part *part = c->bound->part[c->leaf];
    const esp_run run = {.threads = a.threads};
    if (a.diagonal) return part->class->gradient_diagonal(part, a.side, &run, weight, gradient, err);
    return part->class->gradient(part, c->workspace->part[c->leaf], a.row, a.from, a.to, weight, NULL, gradient, err);
}

/* `gradient` has SLOPES places. */
static inline void gradient_of(const checked *c, asked a, const double *weight, double *gradient)
{
    esp_error err = {0};
    assert_true(places_of(leaf_of(c)) <= SLOPES);
    memset(gradient, 0, SLOPES * sizeof *gradient);
    assert_ok(try_gradient(c, a, weight, gradient, &err), c->kernel->text, &err);
}

/* The gradient with random weights against the derivatives of all that is asked for, to `tolerance` relative to the sum
 * of absolute values; noise[p] |v| (NULL: nothing) is added to each of these, for derivatives that are only estimates.
 * A second gradient must be added to the first. */
static inline void compare_slopes(const checked *c, asked a, const dual *expected, double tolerance,
                                  const double *noise, ref_random *random)
{
    const size_t count = a.to - a.from;
    double *weight = malloc((count + 1) * sizeof *weight), gradient[SLOPES] = {0.0};
    assert_true(weight != NULL && places_of(leaf_of(c)) <= SLOPES);
    for (size_t j = 0; j < count; j++) weight[j] = j % 5 == 3 ? 0.0 : ref_random_between(random, -1.0, 1.0);
    for (int times = 1; times <= 2; times++) {
        esp_error err = {0};
        assert_ok(try_gradient(c, a, weight, gradient, &err), c->kernel->text, &err);
        for (size_t p = 0; p < SLOPES; p++) {
            double sum = 0.0, size = 0.0;
            for (size_t j = 0; j < count; j++) {
                sum += times * weight[j] * expected[j].d[p];
                size += times * fabs(weight[j]) * fabs(expected[j].d[p]);
                if (noise != NULL) size += times * fabs(weight[j]) * noise[p] * fabs(expected[j].v);
            }
            if (!(fabs(gradient[p] - sum) <= tolerance * size))
                fail_msg("%s: leaf %zu, place %zu, %s %zu, columns %zu to %zu, time %d: %.17g instead of %.17g",
                         c->kernel->text, c->leaf, p, a.diagonal ? "self-values of side" : "row",
                         a.diagonal ? (size_t)a.side : a.row, a.from, a.to, times, gradient[p], sum);
        }
    }
    free(weight);
}

/* The values that come along with a gradient, which stays the same bytes, are those of the row. */
static inline void compare_values(const checked *c, size_t row)
{
    const espi_part *part = c->bound->part[c->leaf];
    void *workspace = c->workspace->part[c->leaf];
    const size_t n = c->bound->count[ESPI_COLS], from = n / 3;
    double *number = calloc(3 * n + 1, sizeof *number), *weight = number + n, *value = weight + n;
    double gradient[2][SLOPES] = {{0.0}};
    esp_error err = {0};
    assert_non_null(number);
    for (size_t j = 0; j < n; j++) weight[j] = 1.0 / (1.0 + (double)j);
    assert_ok(part->class->row(part, workspace, row, from, n, number, &err), c->kernel->text, &err);
    for (int along = 0; along < 2; along++)
        assert_ok(
            part->class->gradient(part, workspace, row, from, n, weight, along ? value : NULL, gradient[along], &err),
            c->kernel->text, &err);
    assert_memory_equal(gradient[1], gradient[0], sizeof gradient[0]);
    for (size_t j = 0; j < n - from; j++) assert_close(value[j], number[j], 1e-13, c->kernel->text);
    free(number);
}

/* A row against a reference, as a whole and value by value. */
static inline void compare_row(const checked *c, size_t row, const dual *expected, ref_random *random)
{
    compare_slopes(c, row_of(c, row), expected, 1e-12, NULL, random);
    for (size_t j = 0; j < c->bound->count[ESPI_COLS]; j++)
        compare_slopes(c, (asked){.row = row, .from = j, .to = j + 1}, &expected[j], 1e-12, NULL, random);
}

/* ------------------------------------------------------------- differences */

/* Of many rows some are looked at, spread over all of them. */
static inline size_t rows_looked_at(const checked *c)
{
    const size_t m = c->bound->count[ESPI_ROWS];
    return m < MOST_ROWS ? m : MOST_ROWS;
}

static inline size_t row_looked_at(const checked *c, size_t k)
{
    return k * c->bound->count[ESPI_ROWS] / rows_looked_at(c);
}

static inline size_t values_looked_at(const checked *c)
{
    return rows_looked_at(c) * c->bound->count[ESPI_COLS] + c->bound->count[ESPI_ROWS] + c->bound->count[ESPI_COLS];
}

/* Whole rows, one after the other, then the self-values of the rows and of the columns, with one value set to x. */
static inline void values_at(const checked *c, double *value, double x, double *out)
{
    const double kept = *value;
    esp_error err = {0};
    *value = x;
    checked moved = bind_kernel(c->kernel, c->rows, c->cols);
    const espi_part *part = moved.bound->part[c->leaf];
    void *workspace = moved.workspace->part[c->leaf];
    const size_t m = c->bound->count[ESPI_ROWS], n = c->bound->count[ESPI_COLS];
    for (size_t k = 0; k < rows_looked_at(c); k++, out += n)
        assert_ok(part->class->row(part, workspace, row_looked_at(c, k), 0, n, out, &err), "row", &err);
    assert_ok(part->class->diagonal(part, ESPI_ROWS, NULL, out, &err), "diagonal", &err);
    assert_ok(part->class->diagonal(part, ESPI_COLS, NULL, out + m, &err), "diagonal", &err);
    unbind(&moved);
    *value = kept;
}

/* The derivatives of all these in one hyperparameter, to slope[i].d[place]: central differences with steps h, h/2, ...,
 * from which Romberg's scheme takes the errors of order h^2, h^4 and h^6. */
static inline void add_differences(const checked *c, size_t place, double step, dual *slope)
{
    const size_t count = values_looked_at(c);
    double *value = value_at(leaf_of(c), place), *table[LEVELS], *below = malloc((count + 1) * sizeof *below);
    const double x = *value;
    double h = step * (x > 0.0 ? x : 0.1), four = 4.0;
    assert_non_null(below);
    for (size_t level = 0; level < LEVELS; level++, h /= 2.0) {
        table[level] = malloc((count + 1) * sizeof **table);
        assert_non_null(table[level]);
        values_at(c, value, x + h, table[level]);
        values_at(c, value, x - h, below);
        for (size_t i = 0; i < count; i++) table[level][i] = (table[level][i] - below[i]) / (2.0 * h);
    }
    for (size_t depth = 1; depth < LEVELS; depth++, four *= 4.0)
        for (size_t level = 0; level + depth < LEVELS; level++)
            for (size_t i = 0; i < count; i++)
                table[level][i] = table[level + 1][i] + (table[level + 1][i] - table[level][i]) / (four - 1.0);
    for (size_t i = 0; i < count; i++) slope[i].d[place] = table[0][i];
    for (size_t level = 0; level < LEVELS; level++) free(table[level]);
    free(below);
}

static inline void compare_leaf(const checked *c, double step, ref_random *random)
{
    const size_t count = values_looked_at(c), n = c->bound->count[ESPI_COLS];
    dual *slope = calloc(count + 1, sizeof *slope), *at = slope;
    double *value = calloc(count + 1, sizeof *value), *any = NULL, noise[SLOPES] = {0.0};
    assert_true(slope != NULL && value != NULL && places_of(leaf_of(c)) <= SLOPES);
    for (size_t p = 0; p < places_of(leaf_of(c)); p++) {
        double *x = value_at(leaf_of(c), p);
        if (x == NULL) continue;
        noise[p] = 1e-3 / (*x > 0.0 ? *x : 0.1); /* the values are rounded */
        add_differences(c, p, step, slope);
        any = x;
    }
    if (any != NULL) values_at(c, any, *any, value);
    for (size_t i = 0; i < count; i++) slope[i].v = value[i];
    for (size_t k = 0; k < rows_looked_at(c); k++, at += n) {
        const size_t i = ref_random_below(random, n + 1), j = ref_random_below(random, n + 1);
        asked a = row_of(c, row_looked_at(c, k));
        if (k % 2 == 1) a.from = i < j ? i : j, a.to = i < j ? j : i;
        compare_slopes(c, a, at + a.from, 1e-8, noise, random);
        compare_values(c, a.row);
    }
    compare_slopes(c, self_of(c, ESPI_ROWS), at, 1e-8, noise, random);
    compare_slopes(c, self_of(c, ESPI_COLS), at + c->bound->count[ESPI_ROWS], 1e-8, noise, random);
    free(value);
    free(slope);
}

/* All leaves of the expression against differences, the largest of `step` relative to the hyperparameter: rows of the
 * matrix, whole and in part, and the self-values of both sides. */
static inline void compare_gradients(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                     double step, uint64_t seed)
{
    ref_random random = {seed};
    checked c = checked_of(expression, rows, cols);
    for (; c.leaf < c.kernel->leaves; c.leaf++) compare_leaf(&c, step, &random);
    checked_free(&c);
}

/* ----------------------------------------------------------------- threads */

typedef struct shared_rows { /* the gradients of all rows, made by several threads that share a leaf */
    checked c;
    espi_workspace *workspace[MOST_THREADS];
    double *weight, (*gradient)[SLOPES];
} shared_rows;

static inline esp_status one_row(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const shared_rows *s = context;
    checked own = s->c;
    own.workspace = s->workspace[worker->number];
    memset(s->gradient[item], 0, sizeof s->gradient[item]);
    return try_gradient(&own, (asked){.row = item, .to = item + 1}, s->weight, s->gradient[item], err);
}

/* A gradient is the same bytes for any number of threads, and when a workspace is asked again: those of the rows, for
 * which whoever asks first makes what all share, and those of the self-values. */
static inline void check_threads(const char *expression, const esp_dataset *data)
{
    const size_t count = esp_dataset_count(data);
    esp_kernel *kernel = kernel_of(expression);
    double(*first)[SLOPES] = calloc(count + 1, sizeof *first), self[2][SLOPES];
    shared_rows s = {.weight = malloc((count + 1) * sizeof *s.weight),
                     .gradient = malloc((count + 1) * sizeof *s.gradient)};
    assert_true(first != NULL && s.weight != NULL && s.gradient != NULL);
    for (size_t i = 0; i < count; i++) s.weight[i] = 1.0 / (1.0 + (double)i);
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        const esp_run run = {.threads = threads};
        esp_error err = {0};
        s.c = bind_kernel(kernel, data, data);
        for (int t = 0; t < threads; t++)
            assert_ok(espi_workspace_new(s.c.bound, NULL, &s.workspace[t], &err), expression, &err);
        for (int again = 0; again < 2; again++) {
            assert_ok(espi_parallel(&run, "rows", count, one_row, &s, &err), expression, &err);
            if (threads == 1 && again == 0) memcpy(first, s.gradient, count * sizeof *first);
            assert_memory_equal(s.gradient, first, count * sizeof *first);
        }
        asked a = self_of(&s.c, ESPI_COLS);
        a.threads = threads;
        gradient_of(&s.c, a, s.weight, self[threads > 1]);
        if (threads > 1) assert_memory_equal(self[1], self[0], sizeof self[0]);
        for (int t = 0; t < threads; t++) espi_workspace_free(s.workspace[t]);
        unbind(&s.c);
    }
    free(first);
    free(s.weight);
    free(s.gradient);
    esp_kernel_free(kernel);
}

/* ---------------------------------------------------------------- failures */

static inline void check_refused(const char *expression, const esp_dataset *data)
{
    checked c = checked_of(expression, data, data);
    double gradient[SLOPES] = {0.0}, *weight = calloc(esp_dataset_count(data) + 1, sizeof *weight);
    assert_non_null(weight);
    for (int diagonal = 0; diagonal < 2; diagonal++) {
        esp_error err = {0};
        const asked a = diagonal ? self_of(&c, ESPI_ROWS) : row_of(&c, 0);
        assert_int_equal(try_gradient(&c, a, weight, gradient, &err), ESP_ERR_PARAM);
        if (strstr(err.message, "leave `algorithm` out") == NULL) fail_msg("'%s' does not say what helps", err.message);
    }
    free(weight);
    checked_free(&c);
}

/* Every allocation fails once, of each of some rows and of the self-values: nothing leaks, and the workspace goes on to
 * give what it would have given. */
static inline void check_out_of_memory(const char *expression, const esp_dataset *rows, const esp_dataset *cols)
{
    enum { ROWS = 6 };
    const size_t m = esp_dataset_count(rows), n = esp_dataset_count(cols);
    esp_kernel *kernel = kernel_of(expression);
    double expected[ROWS + 1][SLOPES], gradient[SLOPES], *weight = malloc((m + n + 1) * sizeof *weight);
    const long before = espi_alloc_live();
    assert_non_null(weight);
    for (size_t i = 0; i < m + n; i++) weight[i] = 1.0 + (double)i;
    for (long at = -1, failures = 1; failures > 0; at++) { /* -1: none fails */
        checked c = bind_kernel(kernel, rows, cols);
        failures = at < 0;
        for (size_t k = 0; k <= ROWS; k++) {
            asked a = k < ROWS ? row_of(&c, (m - 1 + k) % m) : self_of(&c, ESPI_ROWS); /* the last comes first */
            esp_error err = {0};
            a.threads = 1;
            memset(gradient, 0, sizeof gradient);
            espi_alloc_fail_after(at);
            const esp_status status = try_gradient(&c, a, weight, gradient, &err);
            const bool reached = espi_alloc_fail_after(-1) < 0 && at >= 0;
            failures += reached;
            if (status != ESP_OK && (status != ESP_ERR_MEMORY || !reached || err.message[0] == '\0'))
                fail_msg("%s, allocation %ld: status %d, '%s'", expression, at, (int)status, err.message);
            gradient_of(&c, a, weight, gradient);
            if (at < 0) memcpy(expected[k], gradient, sizeof gradient);
            assert_memory_equal(expected[k], gradient, sizeof gradient);
        }
        unbind(&c);
        assert_int_equal(espi_alloc_live(), before);
    }
    free(weight);
    esp_kernel_free(kernel);
}

#endif
