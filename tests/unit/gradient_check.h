/* Gradients of a leaf against differences of its own values, and dual numbers for references of their own. */
#ifndef GRADIENT_CHECK_H
#define GRADIENT_CHECK_H

#include "base/alloc.h"
#include "cases.h"
#include "kernel/bound.h"

/* ------------------------------------------------------------ dual numbers */

enum { SLOPES = 3 };

typedef struct dual { /* a value and its derivatives */
    double v, d[SLOPES];
} dual;

static inline dual dual_constant(double v) { return (dual){.v = v}; }

/* The hyperparameter number p itself. */
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

/* ------------------------------------------------------------- differences */

/* The kernel of one leaf bound to data (`cols` NULL: the rows), with a workspace. */
typedef struct checked {
    esp_kernel *kernel;
    espi_bound *bound;
    espi_workspace *workspace;
    const espi_part *part;
} checked;

/* `parameter` gets the value, whether an expression could give it or not. */
static inline checked bind_with(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                size_t parameter, double value)
{
    checked c = {.kernel = kernel_of(expression)};
    esp_error err = {0};
    c.kernel->leaf[0].value[parameter] = value;
    assert_ok(espi_bind(c.kernel, rows, cols == NULL ? rows : cols, NULL, &c.bound, &err), expression, &err);
    assert_ok(espi_workspace_new(c.bound, NULL, &c.workspace, &err), expression, &err);
    c.part = c.bound->part[0];
    return c;
}

static inline void unbind(checked *c)
{
    espi_workspace_free(c->workspace);
    espi_bound_free(c->bound);
    esp_kernel_free(c->kernel);
}

static inline checked bind_as_is(const char *expression, const esp_dataset *rows, const esp_dataset *cols)
{
    esp_kernel *kernel = kernel_of(expression);
    const double value = kernel->leaf[0].value[0];
    esp_kernel_free(kernel);
    return bind_with(expression, rows, cols, 0, value);
}

/* Of row i the columns from[i] .. to[i]-1 are asked for. */
typedef struct ranges {
    size_t rows, cols;
    size_t *from, *to;
} ranges;

static inline ranges random_ranges(ref_random *random, const esp_dataset *rows, const esp_dataset *cols)
{
    ranges r = {.rows = esp_dataset_count(rows), .cols = esp_dataset_count(cols == NULL ? rows : cols)};
    r.from = malloc((r.rows + 1) * sizeof *r.from);
    r.to = malloc((r.rows + 1) * sizeof *r.to);
    assert_true(r.from != NULL && r.to != NULL);
    for (size_t i = 0; i < r.rows; i++) {
        const bool all = ref_random_below(random, 3) == 0;
        r.from[i] = all ? 0 : ref_random_below(random, r.cols + 1);
        r.to[i] = all ? r.cols : r.from[i] + ref_random_below(random, r.cols - r.from[i] + 1);
    }
    return r;
}

static inline void free_ranges(ranges *r)
{
    free(r->from);
    free(r->to);
}

/* K(i, j) at [i * cols + j], then the self-values of the rows and of the columns. */
static inline double *values_with(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                  const ranges *r, size_t parameter, double value)
{
    checked c = bind_with(expression, rows, cols, parameter, value);
    esp_error err = {0};
    double *values = calloc(r->rows * r->cols + r->rows + r->cols + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < r->rows; i++)
        assert_ok(c.part->class->row(c.part, c.workspace->part[0], i, r->from[i], r->to[i],
                                     values + i * r->cols + r->from[i], &err),
                  "row", &err);
    double *self = values + r->rows * r->cols;
    assert_ok(c.part->class->diagonal(c.part, ESPI_ROWS, NULL, self, &err), "diagonal", &err);
    assert_ok(c.part->class->diagonal(c.part, ESPI_COLS, NULL, self + r->rows, &err), "diagonal", &err);
    unbind(&c);
    return values;
}

/* Derivatives of all these in one parameter: central differences with steps h, h/2 and h/4, from which all errors below
 * h^6 are taken out. */
static inline double *differences(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                  const ranges *r, size_t parameter, double value, double h)
{
    const size_t count = r->rows * r->cols + r->rows + r->cols;
    double *of[3];
    for (size_t k = 0; k < 3; k++, h /= 2.0) {
        of[k] = values_with(expression, rows, cols, r, parameter, value + h);
        double *below = values_with(expression, rows, cols, r, parameter, value - h);
        for (size_t i = 0; i < count; i++) of[k][i] = (of[k][i] - below[i]) / (2.0 * h);
        free(below);
    }
    for (size_t i = 0; i < count; i++) {
        const double coarse = (4.0 * of[1][i] - of[0][i]) / 3.0, fine = (4.0 * of[2][i] - of[1][i]) / 3.0;
        of[0][i] = (16.0 * fine - coarse) / 15.0;
    }
    free(of[1]);
    free(of[2]);
    return of[0];
}

/* ------------------------------------------------------------------ checks */

static inline void assert_slope(double is, double expected, double scale, double tolerance, const char *what,
                                const char *expression)
{
    if (!(fabs(is - expected) <= tolerance * scale))
        fail_msg("%s: the derivative in %s is %.17g instead of %.17g", expression, what, is, expected);
}

/* gradient() and gradient_diagonal() with random weights, in the first `parameters` parameters, to `tolerance`,
 * relative to the sum of the absolute values of what they sum up. */
static inline void check_gradient(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                  size_t parameters, double tolerance, ref_random *random)
{
    ranges r = random_ranges(random, rows, cols);
    checked c = bind_as_is(expression, rows, cols);
    const espi_kernel_class *class = c.part->class;
    double *expected[SLOPES], *weight = malloc((r.rows + r.cols + 1) * sizeof *weight);
    esp_error err = {0};
    assert_true(weight != NULL && parameters <= SLOPES);
    for (size_t p = 0; p < parameters; p++) {
        const double value = c.kernel->leaf[0].value[p];
        expected[p] = differences(expression, rows, cols, &r, p, value, 4e-3 * fmax(value, 0.1));
    }
    for (size_t i = 0; i < r.rows + 2; i++) { /* rows, then the diagonals of both sides */
        const size_t from = i < r.rows ? r.from[i] : 0, to = i < r.rows ? r.to[i] : i == r.rows ? r.rows : r.cols;
        const size_t at = i < r.rows ? i * r.cols + from : r.rows * r.cols + (i - r.rows) * r.rows;
        double gradient[ESPI_MAX_PARAMETERS];
        for (size_t p = 0; p < ESPI_MAX_PARAMETERS; p++) gradient[p] = (double)p; /* what is there is added to */
        for (size_t j = 0; j < to - from; j++) weight[j] = ref_random_between(random, -1.0, 1.0);
        if (i < r.rows)
            assert_ok(class->gradient(c.part, c.workspace->part[0], i, from, to, weight, gradient, &err), "gradient",
                      &err);
        else
            assert_ok(
                class->gradient_diagonal(c.part, i == r.rows ? ESPI_ROWS : ESPI_COLS, NULL, weight, gradient, &err),
                "gradient_diagonal", &err);
        for (size_t p = 0; p < ESPI_MAX_PARAMETERS; p++) {
            double sum = (double)p, scale = (double)p;
            for (size_t j = 0; p < parameters && j < to - from; j++) {
                sum += weight[j] * expected[p][at + j];
                scale += fabs(weight[j] * expected[p][at + j]);
            }
            assert_slope(gradient[p], sum, scale, tolerance, class->parameters[p < parameters ? p : 0].info.name,
                         expression);
        }
    }
    for (size_t p = 0; p < parameters; p++) free(expected[p]);
    free(weight);
    unbind(&c);
    free_ranges(&r);
}

/* The derivatives of one value against those of a reference. */
static inline void check_dual(const checked *c, size_t i, size_t j, dual expected, const char *expression)
{
    const espi_kernel_class *class = c->part->class;
    double gradient[ESPI_MAX_PARAMETERS] = {0}, one = 1.0;
    esp_error err = {0};
    assert_ok(class->gradient(c->part, c->workspace->part[0], i, j, j + 1, &one, gradient, &err), "gradient", &err);
    for (size_t p = 0; p < SLOPES; p++) assert_close(gradient[p], expected.d[p], 1e-12, expression);
}

/* The gradient of the last row, or of the diagonal. */
static inline esp_status ask(const checked *c, void *workspace, bool diagonal, const double *weight, double *gradient,
                             esp_error *err)
{
    const espi_kernel_class *class = c->part->class;
    if (diagonal) return class->gradient_diagonal(c->part, ESPI_ROWS, NULL, weight, gradient, err);
    return class->gradient(c->part, workspace, c->bound->count[ESPI_ROWS] - 1, 0, c->bound->count[ESPI_COLS], weight,
                           gradient, err);
}

/* Self-values are differentiated by several threads: the sum must not depend on how many. */
static inline void check_threads(const char *expression, const esp_dataset *data)
{
    checked c = bind_as_is(expression, data, NULL);
    const size_t count = esp_dataset_count(data);
    double *weight = malloc((count + 1) * sizeof *weight), gradient[3][ESPI_MAX_PARAMETERS] = {{0}};
    assert_non_null(weight);
    for (size_t i = 0; i < count; i++) weight[i] = 1.0 / (1.0 + (double)i);
    for (int threads = 1; threads <= 3; threads++) {
        esp_error err = {0};
        assert_ok(c.part->class->gradient_diagonal(c.part, ESPI_COLS, &(esp_run){.threads = threads}, weight,
                                                   gradient[threads - 1], &err),
                  expression, &err);
        assert_memory_equal(gradient[threads - 1], gradient[0], sizeof gradient[0]);
    }
    free(weight);
    unbind(&c);
}

static inline void check_refused(const char *expression, const esp_dataset *data)
{
    checked c = bind_as_is(expression, data, NULL);
    double gradient[ESPI_MAX_PARAMETERS] = {0}, weight[16] = {0};
    assert_true(esp_dataset_count(data) <= 16);
    for (int diagonal = 0; diagonal < 2; diagonal++) {
        esp_error err = {0};
        assert_int_equal(ask(&c, c.workspace->part[0], diagonal, weight, gradient, &err), ESP_ERR_PARAM);
        assert_non_null(strstr(err.message, "leave `algorithm` out"));
    }
    unbind(&c);
}

/* Every allocation fails once, nothing leaks, and a workspace can be used afterwards. */
static inline void check_out_of_memory(const char *expression, const esp_dataset *data)
{
    checked c = bind_as_is(expression, data, NULL);
    const espi_kernel_class *class = c.part->class;
    const long before = espi_alloc_live();
    double weight[16], expected[ESPI_MAX_PARAMETERS] = {0};
    esp_error err = {0};
    assert_true(esp_dataset_count(data) <= 16);
    for (size_t i = 0; i < 16; i++) weight[i] = 1.0 + (double)i;
    for (int diagonal = 0; diagonal < 2; diagonal++) {
        memset(expected, 0, sizeof expected);
        void *first = class->workspace_new(c.part, NULL);
        assert_ok(ask(&c, first, diagonal, weight, expected, &err), expression, &err);
        class->workspace_free(first);
        esp_status status = ESP_ERR_MEMORY;
        for (long n = 0; status == ESP_ERR_MEMORY; n++) {
            double gradient[ESPI_MAX_PARAMETERS] = {0}, again[ESPI_MAX_PARAMETERS] = {0};
            void *workspace = class->workspace_new(c.part, NULL);
            assert_non_null(workspace);
            espi_alloc_fail_after(n);
            status = ask(&c, workspace, diagonal, weight, gradient, &err);
            espi_alloc_fail_after(-1);
            assert_true(status == ESP_OK || status == ESP_ERR_MEMORY);
            assert_ok(ask(&c, workspace, diagonal, weight, again, &err), expression, &err);
            assert_memory_equal(again, expected, sizeof again);
            class->workspace_free(workspace);
            assert_int_equal(espi_alloc_live(), before);
        }
        assert_int_equal(status, ESP_OK);
    }
    unbind(&c);
}

#endif
