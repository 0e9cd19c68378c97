/* Vector kernels (SPEC 6):  linear  x.y      poly  (gamma x.y + coef0)^degree      rbf  exp(-gamma |x - y|^2)
 *
 * A row of dot products comes from inverted lists in one pass; poly and rbf are functions of it. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/hot.h"
#include "kernel/vector_kernel.h"

#include <float.h>
#include <math.h>

espi_shape espi_shape_of(const espi_leaf *leaf)
{
    if (leaf->class == &espi_kernel_linear) return (espi_shape){.kind = ESPI_LINEAR, .gamma = 1.0, .degree = 1};
    const double gamma = espi_leaf_value(leaf, "gamma");
    if (leaf->class == &espi_kernel_rbf) return (espi_shape){.kind = ESPI_RBF, .gamma = gamma, .degree = 1};
    return (espi_shape){.kind = ESPI_POLY,
                        .gamma = gamma,
                        .coef0 = espi_leaf_value(leaf, "coef0"),
                        .degree = (unsigned)espi_leaf_value(leaf, "degree")};
}

double espi_sparse_dot(espi_sparse x, espi_sparse y)
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

/* |x - y|^2 term by term; `other` is the square of what x has in features that y's side lacks. */
static double distance(espi_sparse x, espi_sparse y, double other)
{
    size_t i = 0, j = 0;
    double sum = other;
    while (i < x.entries || j < y.entries) {
        const bool left = j == y.entries || (i < x.entries && x.feature[i] <= y.feature[j]);
        const bool right = i == x.entries || (j < y.entries && y.feature[j] <= x.feature[i]);
        const double d = (left ? x.value[i] : 0.0) - (right ? y.value[j] : 0.0);
        sum += d * d;
        i += left;
        j += right;
    }
    return sum;
}

double espi_shape_value(const espi_shape *s, espi_sparse x, espi_sparse y, double squares, double other, double dot)
{
    if (s->kind == ESPI_LINEAR) return dot;
    if (s->kind == ESPI_POLY) return espi_power(s->gamma * dot + s->coef0, s->degree);
    /* |x|^2 + |y|^2 - 2 x.y loses digits when the three are large: then it is summed up directly. */
    double d = squares - 2.0 * dot;
    if (!(s->gamma * squares * 64.0 * DBL_EPSILON < 1e-12)) d = distance(x, y, other);
    return exp(-s->gamma * (d > 0.0 ? d : 0.0));
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
    return s->kind == ESPI_RBF ? 1.0 : espi_shape_value(s, (espi_sparse){0}, (espi_sparse){0}, 0.0, 0.0, square);
}

typedef struct vector_part {
    espi_part part;
    const struct vector_part *base; /* whose names, cols and lists are used: this part's own, or those of another */
    espi_shape shape;
    espi_symbols names; /* features of the columns' side */
    espi_bag rows, cols; /* rows.row == NULL: both sides are `cols` */
    espi_lists lists;
} vector_part;

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
    espi_free(v);
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *like,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    (void)run;
    vector_part *v = espi_alloc_zero(1, sizeof *v);
    *out = NULL;
    if (v == NULL) return espi_no_memory(err);
    v->part.class = leaf->class;
    v->base = like != NULL ? view(like) : v;
    v->shape = espi_shape_of(leaf);
    bool ok = like != NULL || (espi_bag_make(&v->cols, cols, &v->names, true) &&
                               espi_lists_make(&v->lists, &v->cols, v->names.count));
    /* Names are only looked up here, not added. */
    if (ok && rows != cols) ok = espi_bag_make(&v->rows, rows, (espi_symbols *)&v->base->names, false);
    if (!ok) {
        release(&v->part);
        return espi_no_memory(err);
    }
    *out = &v->part;
    return ESP_OK;
}

static esp_status row(const espi_part *part, void *workspace, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    (void)workspace, (void)err;
    const vector_part *v = view(part);
    const espi_bag *a = bag_of(v, ESPI_ROWS);
    for (size_t j = from; j < to; j++) out[j - from] = 0.0;
    espi_lists_row(&v->base->lists, a, i, from, to, 1.0, out);
    if (v->shape.kind == ESPI_LINEAR) return ESP_OK;
    const espi_bag *b = &v->base->cols;
    const espi_sparse x = espi_bag_row(a, i);
    if (v->shape.kind == ESPI_POLY) espi_shape_powers(&v->shape, out, to - from);
    for (size_t j = from; j < to && v->shape.kind == ESPI_RBF; j++)
        out[j - from] = espi_shape_value(&v->shape, x, espi_bag_row(b, j), a->square[i] + b->square[j], a->other[i],
                                         out[j - from]);
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

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j,
                       espi_wide *value, esp_error *err)
{
    (void)err;
    const vector_part *v = view(part);
    const espi_bag *a = bag_of(v, side_i), *b = bag_of(v, side_j);
    const bool itself = a == b && i == j;
    if (v->shape.kind == ESPI_RBF) {
        const double other = side_i == side_j ? 0.0 : a->other[i];
        const double d = itself ? 0.0 : distance(espi_bag_row(a, i), espi_bag_row(b, j), other);
        *value = espi_wide_of(exp(-v->shape.gamma * d));
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

typedef struct folded {
    size_t outputs;
    double weight[];
} folded;

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    const vector_part *v = view(part);
    folded *s = NULL;
    if (outputs == 0 || v->base->names.count < SIZE_MAX / sizeof *s->weight / 2 / outputs)
        s = espi_alloc(1, sizeof *s + v->base->names.count * outputs * sizeof *s->weight);
    *out = s;
    if (s == NULL) return espi_no_memory(err);
    s->outputs = outputs;
    espi_lists_fold(&v->base->lists, coefficient, outputs, s->weight);
    return ESP_OK;
}

static esp_status score(const espi_part *part, const void *pointer, void *workspace, size_t i, double *out,
                        esp_error *err)
{
    (void)workspace, (void)err;
    const folded *s = pointer;
    for (size_t k = 0; k < s->outputs; k++) out[k] = 0.0;
    espi_bag_score(bag_of(view(part), ESPI_ROWS), i, s->weight, s->outputs, 1.0, out);
    return ESP_OK;
}

#define VECTOR_KERNEL                                                                                                  \
    .takes = {[ESP_COLUMN_VECTOR] = true, [ESP_COLUMN_SEQUENCE] = true}, .bind = bind, .free = release, .row = row,    \
    .diagonal = diagonal, .pair = pair, .online = &espi_vector_online

#define GAMMA(default_)                                                                                                \
    {                                                                                                                  \
        .info = {"gamma", "scale of the dot product or of the squared distance", default_, "a number > 0"},            \
        .type = ESPI_NUMBER, .low = 0.0, .low_open = true, .high = HUGE_VAL                                            \
    }

const espi_kernel_class espi_kernel_linear = {
    .name = "linear",
    .help = "dot product of vectors; a sequence stands for its bag of lower-cased words",
    .parameters = (const espi_parameter[]){{.info = {0}}},
    .fold = fold,
    .folded_free = espi_free,
    .score = score,
    VECTOR_KERNEL,
};

const espi_kernel_class espi_kernel_poly = {
    .name = "poly",
    .help = "polynomial (gamma x.y + coef0)^degree",
    .parameters =
        (const espi_parameter[]){
            {.info = {"degree", "exponent", "3", "a whole number from 1 to 100"},
             .type = ESPI_INTEGER,
             .low = 1.0,
             .high = 100.0},
            GAMMA("1"),
            {.info = {"coef0", "constant added before the power", "1", "a number >= 0"},
             .type = ESPI_NUMBER,
             .low = 0.0,
             .high = HUGE_VAL},
            {.info = {0}}},
    VECTOR_KERNEL,
};

const espi_kernel_class espi_kernel_rbf = {
    .name = "rbf",
    .help = "Gaussian exp(-gamma |x - y|^2)",
    .parameters = (const espi_parameter[]){GAMMA("1"), {.info = {0}}},
    VECTOR_KERNEL,
};
