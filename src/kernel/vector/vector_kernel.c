/* Vector kernels:  linear  x.y      poly  (gamma x.y + coef0)^degree      rbf  exp(-gamma |x - y|^2)
 *
 * A row of dot products comes from inverted lists in one pass; poly and rbf are functions of it. With a gamma for each
 * feature d (automatic relevance determination), rbf is exp(-sum_d gamma_d (x_d - y_d)^2), and squares and products
 * have gamma_d in each of their terms. Derivatives, b standing for gamma x.y + coef0:
 *
 *     poly   dK / d gamma = degree b^(degree-1) x.y      dK / d coef0 = degree b^(degree-1)
 *     rbf    dK / d gamma_d = -K (x_d - y_d)^2           dK / d gamma = the sum of these over d without their own */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/vector/vector_kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Places in the tables of parameters. */
enum { GAMMA_OF_RBF, ARD, RBF_PARAMETERS };
enum { DEGREE, GAMMA_OF_POLY, COEF0 };

extern const espi_kernel_class espi_kernel_linear, espi_kernel_rbf;

espi_shape espi_shape_of(const espi_leaf *leaf)
{
    if (leaf->class == &espi_kernel_linear) return (espi_shape){.kind = ESPI_LINEAR, .gamma = 1.0, .degree = 1};
    const double gamma = espi_leaf_value(leaf, "gamma");
    if (leaf->class == &espi_kernel_rbf)
        return (espi_shape){.kind = ESPI_RBF, .gamma = gamma, .degree = 1, .own = leaf->symbol, .owns = leaf->symbols};
    return (espi_shape){.kind = ESPI_POLY,
                        .gamma = gamma,
                        .coef0 = espi_leaf_value(leaf, "coef0"),
                        .degree = (unsigned)espi_leaf_value(leaf, "degree")};
}

bool espi_shape_names(const espi_shape *s, espi_symbols *names)
{
    for (size_t f = 0; f < s->owns; f++)
        if (espi_symbols_add(names, s->own[f].label, strlen(s->own[f].label)) == ESPI_NO_SYMBOL) return false;
    return true;
}

double espi_sparse_row_dot(espi_sparse_row x, espi_sparse_row y)
{
    double sum = 0.0;
    for (size_t i = 0, j = 0; i < x.entries && j < y.entries;) {
        const uint32_t f = x.feature[i], g = y.feature[j];
        if (f == g) sum += x.value[i] * y.value[j];
        i += f <= g;
        j += g <= f;
    }
    return sum;
}

/* |x - y|^2 term by term, with weights; `other` is the square of what x has in features that y's side lacks. */
static double distance(const espi_shape *s, espi_sparse_row x, espi_sparse_row y, double other)
{
    size_t i = 0, j = 0;
    double sum = espi_shape_weight(s, UINT32_MAX) * other;
    while (i < x.entries || j < y.entries) {
        const bool left = j == y.entries || (i < x.entries && x.feature[i] <= y.feature[j]);
        const bool right = i == x.entries || (j < y.entries && y.feature[j] <= x.feature[i]);
        const double d = (left ? x.value[i] : 0.0) - (right ? y.value[j] : 0.0);
        const double square = d * d;
        sum += s->owns > 0 ? espi_shape_weight(s, left ? x.feature[i] : y.feature[j]) * square : square;
        i += left;
        j += right;
    }
    return sum;
}

/* What the distance is still to be multiplied with. */
static double gamma_left(const espi_shape *s) { return s->owns > 0 ? 1.0 : s->gamma; }

/* Whether |x|^2 + |y|^2 - 2 x.y would lose digits of the exponent, because the three are large. */
static bool is_large(const espi_shape *s, double squares)
{
    return !(gamma_left(s) * squares * 64.0 * DBL_EPSILON < 1e-12);
}

double espi_shape_value(const espi_shape *s, espi_sparse_row x, espi_sparse_row y, double squares, double other,
                        double dot)
{
    if (s->kind == ESPI_LINEAR) return dot;
    if (s->kind == ESPI_POLY) return espi_power(s->gamma * dot + s->coef0, s->degree);
    const double d = is_large(s, squares) ? distance(s, x, y, other) : squares - 2.0 * dot;
    return exp(-gamma_left(s) * (d > 0.0 ? d : 0.0));
}

/* espi_power for many numbers side by side. */
HOT static void powers(double *restrict value, size_t count, double gamma, double coef0, unsigned degree)
{
    enum { SIDE = 256 };
    double base[SIDE];
    for (size_t i = 0; degree <= 3 && i < count; i++) { /* the usual ones, in one pass */
        const double b = gamma * value[i] + coef0;
        value[i] = degree == 1 ? b : degree == 2 ? b * b : b * (b * b);
    }
    for (; degree > 3 && count > 0; value += SIDE) {
        const size_t n = count < SIDE ? count : SIDE;
        for (size_t i = 0; i < n; i++) {
            base[i] = gamma * value[i] + coef0;
            value[i] = 1.0;
        }
        for (unsigned exponent = degree; exponent > 0; exponent >>= 1) {
            for (size_t i = 0; (exponent & 1) != 0 && i < n; i++) value[i] *= base[i];
            for (size_t i = 0; i < n; i++) base[i] *= base[i];
        }
        count -= n;
    }
}

void espi_shape_powers(const espi_shape *s, double *value, size_t count)
{
    powers(value, count, s->gamma, s->coef0, s->degree);
}

double espi_shape_self(const espi_shape *s, double square)
{
    return s->kind == ESPI_RBF ? 1.0
                               : espi_shape_value(s, (espi_sparse_row){0}, (espi_sparse_row){0}, 0.0, 0.0, square);
}

typedef struct vector_part {
    espi_part part;
    const struct vector_part *base; /* whose names, cols and lists are used: this part's own, or those of another */
    espi_shape shape;
    espi_symbols names;  /* features of the columns' side */
    espi_bag rows, cols; /* rows.row == NULL: both sides are `cols` */
    espi_lists lists;
    double *weighted; /* the values of the rows with weights; NULL: there are none */
} vector_part;

typedef struct workspace {
    double *dot; /* of one row */
    size_t capacity;
} workspace;

static const vector_part *view(const espi_part *part) { return (const vector_part *)(const void *)part; }

static const espi_bag *bag_of(const vector_part *v, espi_side side)
{
    return side == ESPI_ROWS && v->rows.row != NULL ? &v->rows : &v->base->cols;
}

static void release(espi_part *part)
{
    vector_part *v = (vector_part *)(void *)part;
    if (v == NULL) return;
    espi_symbols_free(&v->names);
    espi_bag_free(&v->rows);
    espi_bag_free(&v->cols);
    espi_lists_free(&v->lists);
    espi_free(v->weighted);
    espi_free(v);
}

/* ------------------------------------------------------------------ bind */

/* Puts the weights into the squares of a bag. */
static void weigh_squares(const espi_shape *s, espi_bag *bag)
{
    for (size_t i = 0; s->owns > 0 && i < bag->rows; i++) {
        bag->square[i] = espi_shape_weight(s, UINT32_MAX) * bag->other[i];
        for (size_t e = bag->row[i]; e < bag->row[i + 1]; e++)
            bag->square[i] += espi_shape_weight(s, bag->feature[e]) * (bag->value[e] * bag->value[e]);
    }
}

static bool weigh_rows(vector_part *v)
{
    const espi_bag *bag = bag_of(v, ESPI_ROWS);
    if (v->shape.owns == 0) return true;
    v->weighted = espi_alloc(bag->row[bag->rows], sizeof *v->weighted);
    for (size_t e = 0; v->weighted != NULL && e < bag->row[bag->rows]; e++)
        v->weighted[e] = espi_shape_weight(&v->shape, bag->feature[e]) * bag->value[e];
    return v->weighted != NULL;
}

static bool make_cols(vector_part *v, const espi_column *cols)
{
    if (!espi_shape_names(&v->shape, &v->names) || !espi_bag_make(&v->cols, cols, &v->names, true)) return false;
    weigh_squares(&v->shape, &v->cols);
    return espi_lists_make(&v->lists, &v->cols, v->names.count);
}

static bool make_rows(vector_part *v, const espi_column *rows)
{
    /* Names are only looked up here, not added. */
    if (!espi_bag_make(&v->rows, rows, (espi_symbols *)&v->base->names, false)) return false;
    weigh_squares(&v->shape, &v->rows);
    return true;
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    (void)run;
    vector_part *v = espi_alloc_zero(1, sizeof *v);
    *out = NULL;
    if (v == NULL) return espi_no_memory(err);
    v->part.class = leaf->class;
    v->base = base != NULL ? view(base) : v;
    v->shape = espi_shape_of(leaf);
    if ((base == NULL && !make_cols(v, cols)) || (rows != cols && !make_rows(v, rows)) || !weigh_rows(v)) {
        release(&v->part);
        return espi_no_memory(err);
    }
    *out = &v->part;
    return ESP_OK;
}

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    espi_free(w->dot);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    (void)part, (void)run;
    return espi_alloc_zero(1, sizeof(workspace));
}

/* ---------------------------------------------------------------- values */

/* Dot products, with weights. */
static void dots(const vector_part *v, size_t i, size_t from, size_t to, double *out)
{
    espi_bag rows = *bag_of(v, ESPI_ROWS);
    if (v->weighted != NULL) rows.value = v->weighted;
    for (size_t j = from; j < to; j++) out[j - from] = 0.0;
    espi_lists_row(&v->base->lists, &rows, i, from, to, 1.0, out);
}

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    (void)pointer, (void)err;
    const vector_part *v = view(part);
    const espi_bag *a = bag_of(v, ESPI_ROWS);
    dots(v, i, from, to, out);
    if (v->shape.kind == ESPI_LINEAR) return ESP_OK;
    const espi_bag *b = &v->base->cols;
    const espi_sparse_row x = espi_bag_row(a, i);
    if (v->shape.kind == ESPI_POLY) espi_shape_powers(&v->shape, out, to - from);
    for (size_t j = from; j < to && v->shape.kind == ESPI_RBF; j++)
        out[j - from] =
            espi_shape_value(&v->shape, x, espi_bag_row(b, j), a->square[i] + b->square[j], a->other[i], out[j - from]);
    return ESP_OK;
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    (void)run, (void)err;
    const vector_part *v = view(part);
    const espi_bag *bag = bag_of(v, side);
    for (size_t i = 0; i < bag->rows; i++) out[i] = espi_shape_self(&v->shape, bag->square[i]);
    return ESP_OK;
}

static espi_wide wide_dot(const espi_bag *a, size_t i, const espi_bag *b, size_t j)
{
    espi_wide sum = espi_wide_of(0.0);
    size_t x = a->row[i], y = b->row[j];
    while (x < a->row[i + 1] && y < b->row[j + 1]) {
        const uint32_t f = a->feature[x], g = b->feature[y];
        if (f == g) sum = espi_wide_add(sum, espi_wide_mul(espi_wide_of(a->value[x]), espi_wide_of(b->value[y])));
        x += f <= g;
        y += g <= f;
    }
    return sum;
}

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    (void)err;
    const vector_part *v = view(part);
    const espi_bag *a = bag_of(v, side_i), *b = bag_of(v, side_j);
    const bool itself = a == b && i == j;
    if (v->shape.kind == ESPI_RBF) {
        const double other = side_i == side_j ? 0.0 : a->other[i];
        const double d = itself ? 0.0 : distance(&v->shape, espi_bag_row(a, i), espi_bag_row(b, j), other);
        *value = espi_wide_of(exp(-gamma_left(&v->shape) * d));
        return ESP_OK;
    }
    /* Unknown features count in an example's product with itself. */
    espi_wide dot = wide_dot(a, i, b, j);
    if (itself && a == &v->rows) dot = espi_wide_add(dot, espi_wide_of(a->other[i]));
    *value = dot;
    if (v->shape.kind == ESPI_LINEAR) return ESP_OK;
    const espi_wide scaled = espi_wide_mul(espi_wide_of(v->shape.gamma), dot);
    const espi_wide base = espi_wide_add(scaled, espi_wide_of(v->shape.coef0));
    *value = espi_wide_of(1.0);
    for (unsigned k = 0; k < v->shape.degree; k++) *value = espi_wide_mul(*value, base);
    return ESP_OK;
}

/* ---------------------------------------------------------------- scorer */

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    *out = espi_folded_lists_new(&view(part)->base->lists, coefficient, outputs);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}

static esp_status score(const espi_part *part, const void *pointer, void *space, size_t i, double *out, esp_error *err)
{
    (void)space, (void)err;
    const espi_folded_lists *s = pointer;
    for (size_t k = 0; k < s->outputs; k++) out[k] = 0.0;
    espi_bag_score(bag_of(view(part), ESPI_ROWS), i, s->weight, s->outputs, 1.0, out);
    return ESP_OK;
}

/* -------------------------------------------------------------- gradient */

/* poly, of one pair. */
static void add_power(const espi_shape *s, double weight, double dot, double *gradient)
{
    if (weight == 0.0) return; /* the power may have overflown */
    const double slope = weight * s->degree * espi_power(s->gamma * dot + s->coef0, s->degree - 1);
    gradient[GAMMA_OF_POLY] += slope * dot;
    gradient[COEF0] += slope;
}

/* rbf with one gamma, of one pair. */
static void add_distance(const vector_part *v, size_t i, size_t j, double weight, double dot, double *gradient)
{
    const espi_shape *s = &v->shape;
    const espi_bag *a = bag_of(v, ESPI_ROWS), *b = &v->base->cols;
    const double squares = a->square[i] + b->square[j];
    double d = squares - 2.0 * dot;
    /* Of a small difference of squares few digits are left: good enough for K, not for its derivative. */
    if (is_large(s, squares) || !(d > 1e-3 * squares))
        d = distance(s, espi_bag_row(a, i), espi_bag_row(b, j), a->other[i]);
    const double factor = -weight * exp(-s->gamma * d);
    if (factor != 0.0) gradient[GAMMA_OF_RBF] += factor * d; /* else the distance may have overflown */
}

/* The sum of factor[j - from] (x - value of the feature in j)^2 over j = from .. to-1, from the feature's list. */
static double sum_squares(const espi_lists *lists, size_t feature, double x, size_t from, size_t to,
                          const double *factor)
{
    double sum = 0.0, lacking = 0.0; /* of those who do not have it, the sum of factors */
    size_t at = lists->start[feature], next = from;
    const size_t end = lists->start[feature + 1];
    while (at < end && lists->row[at] < from) at++;
    for (; at < end && lists->row[at] < to; at++) {
        const size_t j = lists->row[at];
        const double d = x - lists->value[at];
        if (factor[j - from] != 0.0) sum += factor[j - from] * (d * d);
        for (; x != 0.0 && next < j; next++) lacking += factor[next - from];
        next = j + 1;
    }
    for (; x != 0.0 && next < to; next++) lacking += factor[next - from];
    return lacking != 0.0 ? sum + lacking * (x * x) : sum;
}

/* rbf, some features with a gamma of their own: feature by feature. `factor` holds dot products and is overwritten. */
static void add_own(const vector_part *v, size_t i, size_t from, size_t to, const double *weight, double *factor,
                    double *gradient)
{
    const espi_shape *s = &v->shape;
    const espi_bag *a = bag_of(v, ESPI_ROWS), *b = &v->base->cols;
    const espi_sparse_row x = espi_bag_row(a, i);
    double total = 0.0;
    for (size_t j = from; j < to; j++) {
        double *f = &factor[j - from];
        *f = -weight[j - from] *
             espi_shape_value(s, x, espi_bag_row(b, j), a->square[i] + b->square[j], a->other[i], *f);
        total += *f;
    }
    for (size_t f = 0, e = 0; f < v->base->lists.features; f++) {
        const bool has = e < x.entries && x.feature[e] == f;
        gradient[f < s->owns ? RBF_PARAMETERS + f : GAMMA_OF_RBF] +=
            sum_squares(&v->base->lists, f, has ? x.value[e] : 0.0, from, to, factor);
        e += has;
    }
    if (total != 0.0) gradient[GAMMA_OF_RBF] += total * a->other[i];
}

static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *value, double *out, esp_error *err)
{
    const vector_part *v = view(part);
    const espi_shape *s = &v->shape;
    workspace *w = pointer;
    if (value != NULL) {
        const esp_status status = row(part, pointer, i, from, to, value, err);
        if (status != ESP_OK) return status;
    }
    if (s->kind == ESPI_LINEAR) return ESP_OK;
    if (!espi_reserve(&w->dot, &w->capacity, to - from, sizeof *w->dot)) return espi_no_memory(err);
    dots(v, i, from, to, w->dot);
    if (s->owns > 0) add_own(v, i, from, to, weight, w->dot, out);
    for (size_t j = from; s->owns == 0 && j < to; j++) {
        if (s->kind == ESPI_POLY) add_power(s, weight[j - from], w->dot[j - from], out);
        else add_distance(v, i, j, weight[j - from], w->dot[j - from], out);
    }
    return ESP_OK;
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    (void)run, (void)err;
    const vector_part *v = view(part);
    const espi_bag *bag = bag_of(v, side);
    for (size_t i = 0; v->shape.kind == ESPI_POLY && i < bag->rows; i++)
        add_power(&v->shape, weight[i], bag->square[i], out);
    return ESP_OK;
}

/* ----------------------------------------------------------------- table */

#define VECTOR_KERNEL                                                                                                  \
    .takes = {[ESP_COLUMN_VECTOR] = true, [ESP_COLUMN_SEQUENCE] = true}, .bind = bind, .free = release,                \
    .workspace_new = workspace_new, .workspace_free = workspace_free, .row = row, .diagonal = diagonal, .pair = pair,  \
    .gradient = gradient, .gradient_diagonal = gradient_diagonal, .growing = &espi_vector_growing

#define GAMMA(help_, features)                                                                                         \
    {                                                                                                                  \
        .info = {"gamma", help_, "1", "a number > 0", ESP_KIND_NUMBER}, .low = 0.0, .low_open = true,                  \
        .high = HUGE_VAL, .draw_low = 1e-3, .draw_high = 10.0, .per_symbol = features                                  \
    }

const espi_kernel_class espi_kernel_linear = {
    .name = "linear",
    .help = "dot product of vectors; a sequence stands for its bag of lower-cased words",
    .vector_help = "dot product of vectors",
    .features = ESPI_VALUES,
    .parameters = (const espi_parameter[]){{.info = {0}}},
    .fold = fold,
    .folded_free = espi_free,
    .score = score,
    .folding = &espi_vector_folding,
    VECTOR_KERNEL,
};

const espi_kernel_class espi_kernel_poly = {
    .name = "poly",
    .help = "polynomial (gamma x.y + coef0)^degree",
    .no_features = "has products of features, which are too many to weigh",
    .parameters =
        (const espi_parameter[]){
            {.info = {"degree", "exponent", "3", "a whole number from 1 to 100", ESP_KIND_WHOLE},
             .low = 1.0,
             .high = 100.0},
            GAMMA("scale of the dot product", false),
            {.info = {"coef0", "constant added before the power", "1", "a number >= 0", ESP_KIND_NUMBER},
             .low = 0.0,
             .high = HUGE_VAL,
             .draw_low = 1e-2,
             .draw_high = 10.0},
            {.info = {0}}},
    .folding = &espi_vector_folding,
    VECTOR_KERNEL,
};

static bool every_feature(const espi_leaf *leaf) { return leaf->value[ARD] == 1.0; }

const espi_kernel_class espi_kernel_rbf = {
    .name = "rbf",
    .help = "Gaussian exp(-gamma |x - y|^2)",
    .no_features = "measures distances and has no features to weigh",
    .learns_by_symbol = every_feature,
    .parameters =
        (const espi_parameter[]){
            GAMMA("scale of the squared distance; gamma.NAME: that of one feature", true),
            {.info = {"ard", "1: learners of gamma give every feature its own", "0", "0 or 1", ESP_KIND_FLAG},
             .low = 0.0,
             .high = 1.0},
            {.info = {0}}},
    VECTOR_KERNEL,
};
