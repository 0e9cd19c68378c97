/* Gradients of bound leaves against differences of their own rows and self-values. */
#ifndef GRADIENT_PARTS_H
#define GRADIENT_PARTS_H

#include "cases.h"

#include "kernel/bound.h"

enum { MOST_PLACES = 64, MOST_VALUES = 128, LEVELS = 4 };

static inline size_t parameters_of(const espi_leaf *leaf)
{
    size_t count = 0;
    while (leaf->class->parameters[count].info.name != NULL) count++;
    return count;
}

static inline size_t places_of(const espi_leaf *leaf) { return parameters_of(leaf) + leaf->symbols; }

/* The value behind a place of a gradient; NULL: no hyperparameter. */
static inline double *value_at(espi_leaf *leaf, size_t place)
{
    const size_t parameters = parameters_of(leaf);
    if (place >= parameters) return &leaf->symbol[place - parameters].value;
    return leaf->class->parameters[place].draw_low > 0.0 ? &leaf->value[place] : NULL;
}

/* What is differentiated: row `row` of the matrix of a leaf, columns from .. to-1; or the self-values of a side. */
typedef struct values {
    esp_kernel *kernel;
    size_t leaf;
    const esp_dataset *rows, *cols;
    double step; /* relative, of the differences */
    bool diagonal;
    espi_side side;
    size_t row, from, to;
} values;

static inline espi_bound *bound_of(const values *v)
{
    espi_bound *bound = NULL;
    esp_error err = {0};
    assert_ok(espi_bind(v->kernel, v->rows, v->cols, NULL, &bound, &err), v->kernel->text, &err);
    return bound;
}

/* The values, with one hyperparameter set to x. */
static inline void values_at(const values *v, size_t place, double x, double *out)
{
    double *value = value_at(&v->kernel->leaf[v->leaf], place);
    const double kept = *value;
    *value = x;
    espi_bound *bound = bound_of(v);
    const espi_part *part = bound->part[v->leaf];
    esp_error err = {0};
    if (v->diagonal) {
        assert_ok(part->class->diagonal(part, v->side, NULL, out, &err), v->kernel->text, &err);
    } else {
        void *workspace = part->class->workspace_new(part, NULL);
        assert_non_null(workspace);
        assert_ok(part->class->row(part, workspace, v->row, v->from, v->to, out, &err), v->kernel->text, &err);
        part->class->workspace_free(workspace);
    }
    espi_bound_free(bound);
    *value = kept;
}

/* slope[j] of each value in one hyperparameter: central differences with steps h, h/2, ..., from which Romberg's scheme
 * takes the errors of order h^2, h^4 and h^6. */
static inline void differences(const values *v, size_t place, double *slope)
{
    static double above[MOST_VALUES], below[MOST_VALUES], table[LEVELS][MOST_VALUES];
    const double x = *value_at(&v->kernel->leaf[v->leaf], place);
    const size_t count = v->to - v->from;
    double h = v->step * x;
    for (size_t level = 0; level < LEVELS; level++, h /= 2.0) {
        values_at(v, place, x + h, above);
        values_at(v, place, x - h, below);
        for (size_t j = 0; j < count; j++) table[level][j] = (above[j] - below[j]) / (2.0 * h);
    }
    double four = 4.0;
    for (size_t depth = 1; depth < LEVELS; depth++, four *= 4.0)
        for (size_t level = 0; level + depth < LEVELS; level++)
            for (size_t j = 0; j < count; j++)
                table[level][j] = table[level + 1][j] + (table[level + 1][j] - table[level][j]) / (four - 1.0);
    for (size_t j = 0; j < count; j++) slope[j] = table[0][j];
}

/* The gradient, which must be added to what is there. */
static inline void gradient_of(const values *v, const double *weight, double *gradient)
{
    espi_bound *bound = bound_of(v);
    const espi_part *part = bound->part[v->leaf];
    const size_t places = places_of(&v->kernel->leaf[v->leaf]);
    esp_error err = {0};
    assert_true(places <= MOST_PLACES);
    for (size_t p = 0; p < places; p++) gradient[p] = 0.25 * (double)(p + 1);
    if (v->diagonal) {
        const esp_status status = part->class->gradient_diagonal(part, v->side, NULL, weight, gradient, &err);
        assert_ok(status, v->kernel->text, &err);
    } else {
        void *workspace = part->class->workspace_new(part, NULL);
        assert_non_null(workspace);
        const esp_status status =
            part->class->gradient(part, workspace, v->row, v->from, v->to, weight, gradient, &err);
        assert_ok(status, v->kernel->text, &err);
        part->class->workspace_free(workspace);
    }
    for (size_t p = 0; p < places; p++) gradient[p] -= 0.25 * (double)(p + 1);
    espi_bound_free(bound);
}

static inline void compare_values(const values *v, ref_random *random)
{
    double weight[MOST_VALUES], gradient[MOST_PLACES], value[MOST_VALUES], slope[MOST_VALUES];
    const size_t count = v->to - v->from, places = places_of(&v->kernel->leaf[v->leaf]);
    assert_true(count <= MOST_VALUES);
    for (size_t j = 0; j < count; j++) weight[j] = j % 5 == 3 ? 0.0 : ref_random_between(random, -1.0, 1.0);
    gradient_of(v, weight, gradient);
    for (size_t p = 0; p < places; p++) {
        const double *x = value_at(&v->kernel->leaf[v->leaf], p);
        double expected = 0.0, size = 0.0;
        if (x != NULL) {
            values_at(v, p, *x, value);
            differences(v, p, slope);
        }
        for (size_t j = 0; x != NULL && j < count; j++) {
            expected += weight[j] * slope[j];
            size += fabs(weight[j]) * (fabs(slope[j]) + 1e-3 * fabs(value[j]) / *x);
        }
        if (!(fabs(gradient[p] - expected) <= 1e-8 * size + 1e-14))
            fail_msg("%s: leaf %zu, place %zu, %s %zu, columns %zu to %zu: %.17g instead of %.17g", v->kernel->text,
                     v->leaf, p, v->diagonal ? "self-values of side" : "row", v->diagonal ? (size_t)v->side : v->row,
                     v->from, v->to, gradient[p], expected);
    }
}

/* All leaves of the expression: rows of the matrix, whole and in part, and the self-values of both sides. */
static inline void compare_gradients(const char *expression, const esp_dataset *rows, const esp_dataset *cols,
                                     double step, uint64_t seed)
{
    ref_random random = {seed};
    esp_kernel *kernel = kernel_of(expression);
    const size_t m = esp_dataset_count(rows), n = esp_dataset_count(cols);
    for (size_t leaf = 0; leaf < kernel->leaves; leaf++) {
        values v = {.kernel = kernel, .leaf = leaf, .rows = rows, .cols = cols, .step = step};
        for (size_t i = 0; i < m; i++) {
            const size_t a = ref_random_below(&random, n + 1), b = ref_random_below(&random, n + 1);
            v.row = i;
            v.from = i % 2 == 0 ? 0 : a < b ? a : b;
            v.to = i % 2 == 0 ? n : a < b ? b : a;
            compare_values(&v, &random);
        }
        v.diagonal = true;
        for (int side = ESPI_ROWS; side <= ESPI_COLS; side++) {
            v.side = (espi_side)side;
            v.from = 0;
            v.to = v.side == ESPI_ROWS ? m : n;
            compare_values(&v, &random);
        }
    }
    esp_kernel_free(kernel);
}

#endif
