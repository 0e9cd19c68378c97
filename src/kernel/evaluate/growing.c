/* A growing sum of kernels, term by term (growing.h). */
#include "kernel/evaluate/growing.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/terms.h"

#include <math.h>
#include <string.h>

typedef struct buffer { /* a row of kernel values */
    double *value;
    size_t capacity;
} buffer;

struct espi_growing {
    const esp_kernel *kernel;
    size_t outputs, kept;
    bool rows;                /* some term is put together from rows */
    espi_growing_part **part; /* per leaf */
    espi_term *term;
    size_t terms;
    bool *folded;        /* per term: a leaf that is scored in one go */
    double *scale;       /* per op: of the current example, 1 / sqrt(K(x, x)) of what an ESPI_NORM normalises */
    double *value;       /* per op: K(x, x) of the current example */
    buffer *kept_scale;  /* per op: the same scale of the examples kept */
    buffer *row;         /* per op: kernel values */
    double *coefficient; /* example e, output k; kept if some term is not folded */
    size_t coefficient_capacity;
    double *part_score, *part_coefficient; /* scratch, per output */
};

void espi_growing_free(espi_growing *o)
{
    if (o == NULL) return;
    for (size_t i = 0; o->part != NULL && i < o->kernel->leaves; i++)
        if (o->part[i] != NULL) o->kernel->leaf[i].class->growing->close(o->part[i]);
    for (size_t i = 0; i < o->kernel->ops; i++) {
        if (o->kept_scale != NULL) espi_free(o->kept_scale[i].value);
        if (o->row != NULL) espi_free(o->row[i].value);
    }
    espi_free(o->part);
    espi_free(o->term);
    espi_free(o->folded);
    espi_free(o->scale);
    espi_free(o->value);
    espi_free(o->kept_scale);
    espi_free(o->row);
    espi_free(o->coefficient);
    espi_free(o->part_score);
    espi_free(o->part_coefficient);
    espi_free(o);
}

static esp_status open_leaf(espi_growing *o, const esp_dataset *examples, espi_form form, size_t number,
                            const esp_run *run, esp_error *err)
{
    const espi_leaf *leaf = &o->kernel->leaf[number];
    const espi_column *column;
    if (leaf->class->growing == NULL)
        return espi_fail(err, ESP_ERR_PARAM,
                         "the kernel %s cannot be learned example by example; the learner svm takes it",
                         leaf->class->name);
    const esp_status status = espi_leaf_column(leaf, examples, &column, err);
    if (status != ESP_OK) return status;
    bool rows = true;
    for (size_t k = 0; k < o->terms; k++)
        if (o->folded[k] && o->term[k].number == number) rows = false;
    return leaf->class->growing->open(leaf, column, form, o->outputs, rows, run, &o->part[number], err);
}

esp_status espi_growing_new(const esp_kernel *kernel, const esp_dataset *examples, espi_form form, size_t outputs,
                            const esp_run *run, espi_growing **out, esp_error *err)
{
    espi_growing *o = espi_alloc_zero(1, sizeof *o);
    *out = NULL;
    if (o == NULL) return espi_no_memory(err);
    o->kernel = kernel;
    o->outputs = outputs;
    o->part = espi_alloc_zero(kernel->leaves, sizeof *o->part);
    o->scale = espi_alloc_zero(kernel->ops, sizeof *o->scale);
    o->value = espi_alloc_zero(kernel->ops, sizeof *o->value);
    o->kept_scale = espi_alloc_zero(kernel->ops, sizeof *o->kept_scale);
    o->row = espi_alloc_zero(kernel->ops, sizeof *o->row);
    o->part_score = espi_alloc(outputs, sizeof *o->part_score);
    o->part_coefficient = espi_alloc(outputs, sizeof *o->part_coefficient);
    o->term = espi_kernel_terms(kernel, &o->terms);
    if (o->term != NULL) o->folded = espi_alloc_zero(o->terms, sizeof *o->folded);
    const bool ok = o->part != NULL && o->scale != NULL && o->value != NULL && o->kept_scale != NULL &&
                    o->row != NULL && o->part_score != NULL && o->part_coefficient != NULL && o->folded != NULL;
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t k = 0; ok && k < o->terms; k++) {
        o->folded[k] = o->term[k].leaf;
        o->rows = o->rows || !o->term[k].leaf;
    }
    for (size_t i = 0; status == ESP_OK && i < kernel->leaves; i++) status = open_leaf(o, examples, form, i, run, err);
    if (status == ESP_OK) *out = o;
    else espi_growing_free(o);
    return status;
}

size_t espi_growing_count(const espi_growing *o) { return o->kept; }

espi_growing_size espi_growing_measure(const espi_growing *o)
{
    espi_growing_size size = {.bytes = o->coefficient_capacity * sizeof *o->coefficient};
    for (size_t i = 0; i < o->kernel->leaves; i++) o->kernel->leaf[i].class->growing->measure(o->part[i], &size);
    for (size_t i = 0; i < o->kernel->ops; i++)
        size.bytes += (o->kept_scale[i].capacity + o->row[i].capacity) * sizeof(double);
    return size;
}

/* ----------------------------------------------------- the current example */

/* Whether K(x, x) of some op is needed: some norm stands above it. */
static bool has_norm(const esp_kernel *kernel)
{
    for (size_t i = 0; i < kernel->ops; i++)
        if (kernel->op[i].kind == ESPI_NORM) return true;
    return false;
}

/* K(x, x) of every op, and the scale of every norm. */
static esp_status look_at_selves(espi_growing *o, esp_error *err)
{
    double *value = o->value;
    for (size_t i = 0; i < o->kernel->ops; i++) {
        const espi_op *op = &o->kernel->op[i];
        esp_status status = ESP_OK;
        switch (op->kind) {
        case ESPI_LEAF_OP:
            status = o->kernel->leaf[op->left].class->growing->self(o->part[op->left], &value[i], err);
            break;
        case ESPI_SUM: value[i] = value[op->left] + value[op->right]; break;
        case ESPI_PRODUCT: value[i] = value[op->left] * value[op->right]; break;
        case ESPI_SCALE: value[i] = op->number * value[op->left]; break;
        case ESPI_POWER: value[i] = espi_power(value[op->left], (unsigned)op->number); break;
        case ESPI_NORM:
            if (!isfinite(value[op->left]))
                return espi_fail(
                    err, ESP_ERR_RANGE,
                    "the kernel of the example with itself is too large for a number; a smaller lambda helps");
            o->scale[i] = value[op->left] > 0.0 ? 1.0 / sqrt(value[op->left]) : 0.0;
            value[i] = value[op->left] > 0.0 ? 1.0 : 0.0;
            break;
        }
        if (status != ESP_OK) return status;
    }
    return ESP_OK;
}

esp_status espi_growing_look(espi_growing *o, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < o->kernel->leaves; i++)
        status = o->kernel->leaf[i].class->growing->look(o->part[i], o->kept, err);
    if (status == ESP_OK && has_norm(o->kernel)) status = look_at_selves(o, err);
    return status;
}

/* -------------------------------------------------------------------- rows */

static double combine(const espi_growing *o, const espi_op *op, size_t number, double left, double right, size_t e)
{
    switch (op->kind) {
    case ESPI_SUM: return left + right;
    case ESPI_PRODUCT: return left * right;
    case ESPI_SCALE: return op->number * left;
    case ESPI_POWER: return espi_power(left, (unsigned)op->number);
    case ESPI_NORM: return left * (o->scale[number] * o->kept_scale[number].value[e]);
    case ESPI_LEAF_OP: break;
    }
    return left;
}

/* Kernel values of an op and all below it; operands come before operators. */
static esp_status make_row(espi_growing *o, size_t last, esp_error *err)
{
    size_t first = last; /* the program of an op ends with it and starts with its leftmost leaf */
    while (o->kernel->op[first].kind != ESPI_LEAF_OP) first = o->kernel->op[first].left;
    for (size_t i = first; i <= last; i++) {
        const espi_op *op = &o->kernel->op[i];
        buffer *b = &o->row[i];
        if (!espi_reserve(&b->value, &b->capacity, o->kept, sizeof *b->value)) return espi_no_memory(err);
        if (op->kind == ESPI_LEAF_OP) {
            const esp_status status = o->kernel->leaf[op->left].class->growing->row(o->part[op->left], b->value, err);
            if (status != ESP_OK) return status;
            continue;
        }
        const bool binary = op->kind == ESPI_SUM || op->kind == ESPI_PRODUCT;
        const double *left = o->row[op->left].value, *right = binary ? o->row[op->right].value : left;
        for (size_t e = 0; e < o->kept; e++) b->value[e] = combine(o, op, i, left[e], right[e], e);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ scores */

static esp_status score_by_row(espi_growing *o, const espi_term *t, double *score, double *magnitude, esp_error *err)
{
    const esp_status status = make_row(o, t->op, err);
    for (size_t k = 0; k < o->outputs; k++) score[k] = 0.0;
    *magnitude = 0.0;
    for (size_t e = 0; status == ESP_OK && e < o->kept; e++)
        for (size_t k = 0; k < o->outputs; k++) {
            const double value = t->weight * o->coefficient[e * o->outputs + k] * o->row[t->op].value[e];
            score[k] += value;
            *magnitude += fabs(value);
        }
    return status;
}

esp_status espi_growing_score(espi_growing *o, double *score, double *magnitude, esp_error *err)
{
    for (size_t k = 0; k < o->outputs; k++) score[k] = 0.0;
    *magnitude = 0.0;
    for (size_t i = 0; i < o->terms; i++) {
        const espi_term *t = &o->term[i];
        double *part = o->part_score, size;
        const esp_status status =
            o->folded[i] ? o->kernel->leaf[t->number].class->growing->score(o->part[t->number], part, &size, err)
                         : score_by_row(o, t, part, &size, err);
        if (status != ESP_OK) return status;
        const double scale = o->folded[i] && t->norm ? o->scale[t->op] : 1.0;
        for (size_t k = 0; k < o->outputs; k++) score[k] += scale * part[k];
        *magnitude += scale * size;
    }
    for (size_t k = 0; k < o->outputs; k++)
        if (!isfinite(score[k]))
            return espi_fail(
                err, ESP_ERR_RANGE,
                "the score of the example is too large for a number; a smaller lambda or norm() of the tree "
                "kernel helps");
    return ESP_OK;
}

/* ----------------------------------------------------------------- keeping */

/* What rows need. */
static bool keep_rest(espi_growing *o, const double *coefficient)
{
    if (!o->rows) return true;
    for (size_t i = 0; i < o->kernel->ops; i++) {
        buffer *b = &o->kept_scale[i];
        if (o->kernel->op[i].kind != ESPI_NORM) continue;
        if (!espi_reserve(&b->value, &b->capacity, o->kept + 1, sizeof *b->value)) return false;
        b->value[o->kept] = o->scale[i];
    }
    if (!espi_reserve(&o->coefficient, &o->coefficient_capacity, (o->kept + 1) * o->outputs, sizeof *o->coefficient))
        return false;
    memcpy(o->coefficient + o->kept * o->outputs, coefficient, o->outputs * sizeof *coefficient);
    return true;
}

/* The term in which a leaf is folded; NULL: it is asked for rows. */
static const espi_term *term_of(const espi_growing *o, size_t leaf)
{
    for (size_t i = 0; i < o->terms; i++)
        if (o->folded[i] && o->term[i].number == leaf) return &o->term[i];
    return NULL;
}

esp_status espi_growing_keep(espi_growing *o, const double *coefficient, esp_error *err)
{
    if (!keep_rest(o, coefficient)) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < o->kernel->leaves; i++) {
        const espi_term *t = term_of(o, i);
        const double scale = t == NULL ? 1.0 : t->weight * (t->norm ? o->scale[t->op] : 1.0);
        for (size_t k = 0; k < o->outputs; k++) o->part_coefficient[k] = scale * coefficient[k];
        status = o->kernel->leaf[i].class->growing->keep(o->part[i], o->part_coefficient, err);
    }
    if (status == ESP_OK) o->kept++;
    return status;
}
