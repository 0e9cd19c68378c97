#include "kernel/evaluate/bound.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/evaluate/slice.h"
#include "kernel/expression/columns.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ leaves */

/* Says that it is the second dataset, that of the matrix's columns, which does not fit. */
static esp_status in_second(esp_status status, esp_error *err)
{
    char clause[sizeof err->message];
    if (err == NULL) return status;
    memcpy(clause, err->message, sizeof clause);
    return espi_fail(err, status, "in the second dataset: %s", clause);
}

static esp_status bind_leaf(const espi_leaf *leaf, const esp_dataset *rows, const esp_dataset *cols,
                            const espi_part *base, const esp_run *run, espi_part **out, esp_error *err)
{
    const espi_column *row_column, *col_column;
    esp_status status = espi_leaf_column(leaf, rows, &row_column, err);
    if (status != ESP_OK) return status;
    status = espi_leaf_column(leaf, cols, &col_column, err);
    if (status != ESP_OK) return rows == cols ? status : in_second(status, err);
    if (row_column->type == ESP_COLUMN_VECTOR && row_column->vectors.dense && col_column->vectors.dense &&
        row_column->vectors.features.count != col_column->vectors.features.count)
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s: column '%s' has vectors of length %zu in one dataset and %zu in the other",
                         leaf->class->name, row_column->name, row_column->vectors.features.count,
                         col_column->vectors.features.count);
    if (row_column->type != col_column->type)
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s: column '%s' is a %s column in one dataset and '%s' a %s column in the other",
                         leaf->class->name, row_column->name, espi_column_type_name(row_column->type), col_column->name,
                         espi_column_type_name(col_column->type));
    return leaf->class->bind(leaf, row_column, col_column, base, run, out, err);
}

/* ------------------------------------------------------------ evaluation */

size_t espi_first_op(const esp_kernel *kernel, size_t op)
{
    while (kernel->op[op].kind != ESPI_LEAF_OP) op = kernel->op[op].left;
    return op;
}

/* Equal examples have a normalised value of 1 but for rounding, which depends on what else is computed with them; so
 * what is as near to 1 is 1. Searches (src/search) look at as many digits. */
static const double ROUNDING = 0x1p-41;

static inline double normal(double v) { return fabs(fabs(v) - 1.0) < ROUNDING ? copysign(1.0, v) : v; }

HOT static void times_scales(double *restrict v, const double *restrict scale, double factor, size_t n)
{
    for (size_t j = 0; j < n; j++) v[j] = normal(v[j] * factor * scale[j]);
}

static void normalise(const espi_bound *b, size_t op, const espi_slice *s, double *v)
{
    const espi_norm *norm = &b->norm[op];
    const size_t n = s->to - s->from;
    if (s->diagonal) {
        for (size_t i = 0; i < n; i++) v[i] = norm->self[s->side][i].m > 0.0 ? 1.0 : 0.0;
        return;
    }
    times_scales(v, norm->scale[ESPI_COLS] + s->from, norm->scale[ESPI_ROWS][s->row], n);
    if (b->symmetric && s->row >= s->from && s->row < s->to)
        v[s->row - s->from] = norm->self[ESPI_ROWS][s->row].m > 0.0 ? 1.0 : 0.0;
}

void espi_slice_apply(const espi_bound *b, size_t op, const espi_slice *s, const double *right, double *v)
{
    const espi_op *o = &b->kernel->op[op];
    const size_t n = s->to - s->from;
    switch (o->kind) {
    case ESPI_LEAF_OP: break;
    case ESPI_SUM:
        for (size_t j = 0; j < n; j++) v[j] += right[j];
        break;
    case ESPI_PRODUCT:
        for (size_t j = 0; j < n; j++) v[j] *= right[j];
        break;
    case ESPI_SCALE:
        for (size_t j = 0; j < n; j++) v[j] *= o->number;
        break;
    case ESPI_POWER:
        for (size_t j = 0; j < n; j++) v[j] = espi_power(v[j], (unsigned)o->number);
        break;
    case ESPI_NORM: normalise(b, op, s, v); break;
    }
}

esp_status espi_slice_leaf(const espi_workspace *w, size_t leaf, const espi_slice *s, double *v, esp_error *err)
{
    const espi_part *part = w->bound->part[leaf];
    if (s->diagonal) return part->class->diagonal(part, s->side, w->run, v, err);
    return part->class->row(part, w->part[leaf], s->row, s->from, s->to, v, err);
}

/* The program of `op` for one pair, in wide numbers. */
static esp_status run_wide(espi_workspace *w, size_t op, espi_side side_i, size_t i, espi_side side_j, size_t j,
                           espi_wide *value, esp_error *err)
{
    const espi_bound *b = w->bound;
    espi_wide *stack = w->wide;
    size_t top = 0;
    for (size_t k = espi_first_op(b->kernel, op); k <= op; k++) {
        const espi_op *o = &b->kernel->op[k];
        switch (o->kind) {
        case ESPI_LEAF_OP: {
            const espi_part *part = b->part[o->left];
            const esp_status status = part->class->pair(part, side_i, i, side_j, j, &stack[top++], err);
            if (status != ESP_OK) return status;
            break;
        }
        case ESPI_SUM: top--, stack[top - 1] = espi_wide_add(stack[top - 1], stack[top]); break;
        case ESPI_PRODUCT: top--, stack[top - 1] = espi_wide_mul(stack[top - 1], stack[top]); break;
        case ESPI_SCALE: stack[top - 1] = espi_wide_mul(stack[top - 1], espi_wide_of(o->number)); break;
        case ESPI_POWER: {
            const espi_wide base = stack[top - 1];
            for (unsigned n = 1; n < (unsigned)o->number; n++) stack[top - 1] = espi_wide_mul(stack[top - 1], base);
            break;
        }
        case ESPI_NORM: {
            const espi_wide x = b->norm[k].self[side_i][i], y = b->norm[k].self[side_j][j];
            const double unit = x.m > 0.0 && y.m > 0.0 ? normal(espi_wide_normalise(stack[top - 1], x, y)) : 0.0;
            stack[top - 1] = espi_wide_of(unit);
            break;
        }
        }
    }
    *value = stack[0];
    return ESP_OK;
}

/* Sets the self-values of what a norm normalises: `value`, or a wide number where that is not a plain one. */
static esp_status fill_norm(espi_workspace *w, espi_norm *norm, size_t op, espi_side side, const double *value,
                            esp_error *err)
{
    const size_t n = w->bound->count[side], operand = w->bound->kernel->op[op].left;
    double *scale = norm->scale[side] = espi_alloc(n, sizeof *scale);
    espi_wide *self = norm->self[side] = espi_alloc(n, sizeof *self);
    esp_status status = scale == NULL || self == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < n; i++) {
        const bool plain = isfinite(value[i]) && value[i] > DBL_MIN * 1e20;
        self[i] = espi_wide_of(plain ? value[i] : 0.0);
        if (!plain) status = run_wide(w, operand, side, i, side, i, &self[i], err);
        scale[i] = plain ? 1.0 / sqrt(value[i]) : self[i].m > 0.0 ? (double)NAN : 0.0;
    }
    return status;
}

/* Runs the program of `op`; its operands wait in out and behind it in the buffer. `fill`, while binding: the norms are
 * set as the program comes by them. */
static esp_status run_program(espi_workspace *w, size_t op, const espi_slice *s, espi_norm *fill, double *out,
                              esp_error *err)
{
    const esp_kernel *kernel = w->bound->kernel;
    const size_t n = s->to - s->from;
    size_t top = 0; /* operands that wait */
    if (w->bound->depth > 1 && n > 0 && w->bound->depth - 1 >= SIZE_MAX / n) return espi_no_memory(err);
    /* One more, so that there is a buffer to point into where nothing is to be computed. */
    if (!espi_reserve(&w->buffer, &w->capacity, (w->bound->depth - 1) * n + 1, sizeof *w->buffer))
        return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t k = espi_first_op(kernel, op); status == ESP_OK && k <= op; k++) {
        const espi_op *o = &kernel->op[k];
        const bool binary = o->kind == ESPI_SUM || o->kind == ESPI_PRODUCT;
        double *last = top > 1 ? w->buffer + (top - 2) * n : out, *before = top > 2 ? last - n : out;
        if (o->kind == ESPI_LEAF_OP) {
            status = espi_slice_leaf(w, o->left, s, top == 0 ? out : w->buffer + (top - 1) * n, err);
            top++;
            continue;
        }
        if (o->kind == ESPI_NORM && fill != NULL) status = fill_norm(w, &fill[k], k, s->side, last, err);
        if (status == ESP_OK) espi_slice_apply(w->bound, k, s, last, binary ? before : last);
        top -= binary;
    }
    return status;
}

static esp_status too_large(esp_error *err, size_t i, size_t j)
{
    return espi_fail(
        err, ESP_ERR_RANGE,
        "the kernel of examples %zu and %zu is too large for a number; take a smaller lambda (or weight), or norm(...)",
        i + 1, j + 1);
}

HOT static bool all_finite(const double *v, size_t n)
{
    uint64_t bad = 0; /* infinities and NaN have all bits of the exponent set */
    for (size_t j = 0; j < n; j++) {
        uint64_t bits;
        memcpy(&bits, &v[j], sizeof bits);
        bad |= (bits & UINT64_C(0x7FF0000000000000)) == UINT64_C(0x7FF0000000000000);
    }
    return bad == 0;
}

esp_status espi_bound_row(espi_workspace *w, size_t op, size_t row, size_t from, size_t to, double *out, esp_error *err)
{
    const espi_slice s = {.row = row, .from = from, .to = to};
    esp_status status = run_program(w, op, &s, NULL, out, err);
    if (status != ESP_OK || all_finite(out, to - from)) return status;
    for (size_t j = from; j < to; j++) {
        if (isfinite(out[j - from])) continue;
        espi_wide value;
        status = run_wide(w, op, ESPI_ROWS, row, ESPI_COLS, j, &value, err);
        if (status != ESP_OK) return status;
        out[j - from] = espi_wide_double(value);
        if (!isfinite(out[j - from])) return too_large(err, row, j);
    }
    return ESP_OK;
}

esp_status espi_bound_diagonal(espi_workspace *w, espi_side side, double *out, esp_error *err)
{
    const size_t op = w->bound->kernel->ops - 1;
    const espi_slice s = {.diagonal = true, .side = side, .to = w->bound->count[side]};
    esp_status status = run_program(w, op, &s, NULL, out, err);
    for (size_t i = 0; status == ESP_OK && i < s.to; i++) {
        if (isfinite(out[i])) continue;
        espi_wide value;
        status = run_wide(w, op, side, i, side, i, &value, err);
        out[i] = espi_wide_double(value);
        if (status == ESP_OK && !isfinite(out[i])) return too_large(err, i, i);
    }
    return status;
}

/* ------------------------------------------------------------------ bind */

/* Runs the program over the diagonals once, so that every norm gets its self-values. */
static esp_status fill_norms(espi_bound *b, const esp_run *run, esp_error *err)
{
    espi_workspace *w = NULL;
    const size_t longest = b->count[b->count[ESPI_ROWS] > b->count[ESPI_COLS] ? ESPI_ROWS : ESPI_COLS];
    double *diagonal = espi_alloc(longest, sizeof *diagonal);
    esp_status status = diagonal == NULL ? espi_no_memory(err) : espi_workspace_new(b, run, &w, err);
    for (size_t k = 0; b->base != NULL && k < b->kernel->ops; k++) {
        b->norm[k].self[ESPI_COLS] = b->base->norm[k].self[ESPI_COLS];
        b->norm[k].scale[ESPI_COLS] = b->base->norm[k].scale[ESPI_COLS];
    }
    for (espi_side side = ESPI_ROWS; status == ESP_OK && side <= ESPI_COLS; side++) {
        if ((b->symmetric && side == ESPI_ROWS) || (b->base != NULL && side == ESPI_COLS)) continue;
        const espi_slice s = {.diagonal = true, .side = side, .to = b->count[side]};
        status = run_program(w, b->kernel->ops - 1, &s, b->norm, diagonal, err);
    }
    for (size_t k = 0; b->symmetric && k < b->kernel->ops; k++) {
        b->norm[k].self[ESPI_ROWS] = b->norm[k].self[ESPI_COLS];
        b->norm[k].scale[ESPI_ROWS] = b->norm[k].scale[ESPI_COLS];
    }
    espi_workspace_free(w);
    espi_free(diagonal);
    return status;
}

static size_t program_depth(const esp_kernel *kernel)
{
    size_t waiting = 0, most = 0;
    for (size_t k = 0; k < kernel->ops; k++) {
        if (kernel->op[k].kind == ESPI_LEAF_OP && ++waiting > most) most = waiting;
        if (kernel->op[k].kind == ESPI_SUM || kernel->op[k].kind == ESPI_PRODUCT) waiting--;
    }
    return most;
}

static esp_status bind_all(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols,
                           const espi_bound *base, const esp_run *run, espi_bound **out, esp_error *err)
{
    *out = NULL;
    espi_bound *b = espi_alloc_zero(1, sizeof *b);
    if (b == NULL) return espi_no_memory(err);
    b->kernel = kernel;
    b->count[ESPI_ROWS] = rows->rows;
    b->count[ESPI_COLS] = cols->rows;
    b->symmetric = rows == cols;
    b->cols = cols;
    b->base = base;
    b->depth = program_depth(kernel);
    b->part = espi_alloc_zero(kernel->leaves, sizeof *b->part);
    b->norm = espi_alloc_zero(kernel->ops, sizeof *b->norm);
    esp_status status = b->part == NULL || b->norm == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < kernel->leaves; i++)
        status = bind_leaf(&kernel->leaf[i], rows, cols, base != NULL ? base->part[i] : NULL, run, &b->part[i], err);
    bool norms = false;
    for (size_t k = 0; k < kernel->ops; k++) norms = norms || kernel->op[k].kind == ESPI_NORM;
    if (status == ESP_OK && norms) status = fill_norms(b, run, err);
    if (status == ESP_OK) *out = b;
    else espi_bound_free(b);
    return status;
}

esp_status espi_bind(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols, const esp_run *run,
                     espi_bound **out, esp_error *err)
{
    return bind_all(kernel, rows, cols, NULL, run, out, err);
}

esp_status espi_bind_to_cols(const espi_bound *base, const esp_dataset *rows, const esp_run *run, espi_bound **out,
                             esp_error *err)
{
    return bind_all(base->kernel, rows, base->cols, rows == base->cols ? NULL : base, run, out, err);
}

void espi_bound_free(espi_bound *b)
{
    if (b == NULL) return;
    for (size_t i = 0; b->part != NULL && i < b->kernel->leaves; i++)
        if (b->part[i] != NULL) b->part[i]->class->free(b->part[i]);
    for (size_t k = 0; b->norm != NULL && k < b->kernel->ops; k++) {
        if (b->base == NULL) espi_free(b->norm[k].self[ESPI_COLS]);
        if (b->base == NULL) espi_free(b->norm[k].scale[ESPI_COLS]);
        if (b->symmetric) continue;
        espi_free(b->norm[k].self[ESPI_ROWS]);
        espi_free(b->norm[k].scale[ESPI_ROWS]);
    }
    espi_free(b->part);
    espi_free(b->norm);
    espi_free(b);
}

esp_status espi_workspace_new(const espi_bound *b, const esp_run *run, espi_workspace **out, esp_error *err)
{
    *out = NULL;
    espi_workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL) return espi_no_memory(err);
    w->bound = b;
    w->run = run;
    w->part = espi_alloc_zero(b->kernel->leaves, sizeof *w->part);
    w->wide = espi_alloc(b->depth, sizeof *w->wide);
    bool ok = w->part != NULL && w->wide != NULL;
    for (size_t i = 0; ok && i < b->kernel->leaves; i++) {
        const espi_kernel_class *class = b->part[i]->class;
        if (class->workspace_new == NULL) continue;
        w->part[i] = class->workspace_new(b->part[i], run);
        ok = w->part[i] != NULL;
    }
    if (!ok) {
        espi_workspace_free(w);
        return espi_no_memory(err);
    }
    *out = w;
    return ESP_OK;
}

void espi_workspace_free(espi_workspace *w)
{
    if (w == NULL) return;
    for (size_t i = 0; w->part != NULL && i < w->bound->kernel->leaves; i++)
        if (w->part[i] != NULL) w->bound->part[i]->class->workspace_free(w->part[i]);
    espi_free(w->part);
    espi_free(w->buffer);
    espi_free(w->wide);
    espi_free(w);
}
