/* Vector kernels in folded sums (expression/folding.h):  f_k(x) = sum_e c_k(e) K(x, e)
 *
 * linear is a weight vector per output. poly has inverted lists of the examples that have a coefficient, by which one
 * pass gives all dot products; a row of kernel values is multiplied with the coefficients. While all values are 1, a
 * dot product is a number of features in common, of which one byte is kept, and the coefficients stand in the order in
 * which these numbers come (postings.h). Banks of equal coefficients, as growing sums have them, would save a fifth at
 * most: coefficients of support vectors differ too much. */
#include "base/alloc.h"
#include "base/hot.h"
#include "base/status.h"
#include "kernel/expression/folding.h"
#include "kernel/vector/postings.h"
#include "kernel/vector/vector_kernel.h"

#include <string.h>

enum { PART = ESPI_CHUNK / ESPI_SLICES, BYTES = 8 }; /* columns of a slice; per word */

typedef struct folding_vectors {
    espi_folding_part part;
    espi_shape shape;
    const espi_column *column;
    espi_bag words; /* the rows of a sequence column */
    size_t outputs;

    double *weight; /* linear: weight[feature * outputs + k]; NULL: poly */
    size_t features;

    espi_postings postings;
    uint32_t *place; /* per row: its column in the lists; UINT32_MAX: none */
    size_t rows;
    size_t columns;
    double *coefficient; /* see coefficient_of */
    size_t coefficient_capacity;
    double table[ESPI_MOST_COUNTED + 1]; /* K by the number of features in common */
} folding_vectors;

typedef struct vector_scores { /* of one thread */
    espi_planes planes;
    double *dot; /* with each column */
    size_t dot_capacity;
    double lane[]; /* per output and word of a slice: sums that run side by side, whatever the processor */
} vector_scores;

static folding_vectors *view(espi_folding_part *part) { return (folding_vectors *)(void *)part; }
static const folding_vectors *look(const espi_folding_part *part)
{
    return (const folding_vectors *)(const void *)part;
}

static espi_sparse_row example(const folding_vectors *v, size_t row)
{
    return v->column->type == ESP_COLUMN_SEQUENCE ? espi_bag_row(&v->words, row)
                                                  : espi_vectors_row(&v->column->vectors, row);
}

/* -------------------------------------------------------------- structure */

static void clear(espi_folding_part *part)
{
    folding_vectors *v = view(part);
    if (v->weight != NULL) memset(v->weight, 0, v->features * v->outputs * sizeof *v->weight);
    if (v->place != NULL) memset(v->place, 0xFF, v->rows * sizeof *v->place);
    espi_postings_free(&v->postings);
    espi_free(v->coefficient);
    v->coefficient = NULL;
    v->columns = v->coefficient_capacity = 0;
}

static void close_part(espi_folding_part *part)
{
    folding_vectors *v = view(part);
    if (v == NULL) return;
    espi_bag_free(&v->words);
    espi_postings_free(&v->postings);
    espi_free(v->weight);
    espi_free(v->place);
    espi_free(v->coefficient);
    espi_free(v);
}

static bool read_column(folding_vectors *v, size_t *features)
{
    espi_symbols names = {0};
    *features = v->column->vectors.features.count;
    if (v->column->type != ESP_COLUMN_SEQUENCE) return true;
    espi_bag_free(&v->words);
    const bool ok = espi_bag_make(&v->words, v->column, &names, true);
    *features = names.count;
    espi_symbols_free(&names);
    return ok;
}

/* Room for all features, whose numbers stay, and all rows; what is new has no coefficients. */
static bool fit_column(folding_vectors *v)
{
    size_t features;
    if (!read_column(v, &features)) return false;
    if (v->shape.kind == ESPI_LINEAR) {
        double *weight = espi_realloc(v->weight, features, v->outputs * sizeof *weight);
        if (weight == NULL) return false;
        v->weight = weight;
        for (size_t i = v->features * v->outputs; i < features * v->outputs; i++) weight[i] = 0.0;
    } else {
        uint32_t *place = espi_realloc(v->place, v->column->rows, sizeof *place);
        if (place == NULL) return false;
        v->place = place;
        for (size_t i = v->rows; i < v->column->rows; i++) place[i] = UINT32_MAX;
    }
    v->features = features;
    v->rows = v->column->rows;
    return true;
}

static esp_status grow(espi_folding_part *part, const espi_leaf *leaf, esp_error *err)
{
    (void)leaf;
    return fit_column(view(part)) ? ESP_OK : espi_no_memory(err);
}

static esp_status open_part(const espi_leaf *leaf, const espi_column *column, size_t outputs, espi_folding_part **out,
                            esp_error *err)
{
    folding_vectors *v = espi_alloc_zero(1, sizeof *v);
    *out = NULL;
    if (v == NULL) return espi_no_memory(err);
    v->part.class = leaf->class;
    v->shape = espi_shape_of(leaf);
    v->column = column;
    v->outputs = outputs;
    for (size_t n = 0; n <= ESPI_MOST_COUNTED; n++) v->table[n] = espi_shape_self(&v->shape, (double)n);
    if (!fit_column(v)) {
        close_part(&v->part);
        return espi_no_memory(err);
    }
    *out = &v->part;
    return ESP_OK;
}

static size_t bytes(const espi_folding_part *part)
{
    const folding_vectors *v = look(part);
    return sizeof *v + espi_bag_bytes(&v->words) + espi_postings_bytes(&v->postings) +
           (v->weight != NULL ? v->features * v->outputs * sizeof *v->weight : 0) +
           (v->place != NULL ? v->rows * sizeof *v->place : 0) + v->coefficient_capacity * sizeof *v->coefficient;
}

/* ----------------------------------------------------------- coefficients */

/* Of an output, those of a slice of a chunk: of column 64 w + 8 b + r, the one at b * ESPI_SLICE + w of slice r. */
static double *coefficient_of(const folding_vectors *v, size_t chunk, size_t output, size_t slice)
{
    return v->coefficient + ((chunk * v->outputs + output) * ESPI_SLICES + slice) * PART;
}

static bool add_column(folding_vectors *v, size_t row)
{
    const size_t chunk = v->outputs * ESPI_CHUNK, used = v->columns / ESPI_CHUNK * chunk;
    if (!espi_reserve(&v->coefficient, &v->coefficient_capacity, used + chunk, sizeof *v->coefficient)) return false;
    if (v->columns % ESPI_CHUNK == 0) memset(v->coefficient + used, 0, chunk * sizeof *v->coefficient);
    if (!espi_postings_add(&v->postings, example(v, row), v->columns)) return false;
    v->place[row] = (uint32_t)v->columns++;
    return true;
}

static void add_weights(const folding_vectors *v, espi_sparse_row x, const double *coefficient)
{
    for (size_t i = 0; i < x.entries; i++) {
        double *w = v->weight + x.feature[i] * v->outputs;
        for (size_t k = 0; k < v->outputs; k++) w[k] += coefficient[k] * x.value[i];
    }
}

static esp_status add(espi_folding_part *part, size_t row, const double *coefficient, esp_error *err)
{
    folding_vectors *v = view(part);
    if (v->weight != NULL) {
        add_weights(v, example(v, row), coefficient);
        return ESP_OK;
    }
    if (v->place[row] == UINT32_MAX && !add_column(v, row)) return espi_no_memory(err);
    const size_t c = v->place[row] % ESPI_CHUNK, word = c / 64, byte = c / ESPI_SLICES % BYTES, slice = c % ESPI_SLICES;
    for (size_t k = 0; k < v->outputs; k++)
        coefficient_of(v, v->place[row] / ESPI_CHUNK, k, slice)[byte * ESPI_SLICE + word] += coefficient[k];
    return ESP_OK;
}

/* -------------------------------------------------------------- workspace */

static void workspace_free(void *workspace)
{
    vector_scores *w = workspace;
    if (w == NULL) return;
    espi_planes_free(&w->planes);
    espi_free(w->dot);
    espi_free(w);
}

static void *workspace_new(const espi_folding_part *part)
{
    return espi_alloc_zero(1, sizeof(vector_scores) + look(part)->outputs * ESPI_SLICE * sizeof(double));
}

/* ----------------------------------------------------------- kernel values */

/* Of the columns of a slice, for a degree of at most 3: computing is faster than looking up. A number becomes a double
 * as the last bits of 2^52. */
HOT static void slice_powers(const espi_shape *shape, const uint64_t *restrict number, double *restrict value)
{
    const double gamma = shape->gamma, coef0 = shape->coef0, large = 0x1p52;
    const unsigned degree = shape->degree;
    uint64_t bits;
    memcpy(&bits, &large, sizeof bits);
    for (size_t b = 0; b < BYTES; b++)
        for (size_t w = 0; w < ESPI_SLICE; w++) {
            const uint64_t last = bits | (number[w] >> 8 * b & 0xFF);
            double n;
            memcpy(&n, &last, sizeof n);
            const double base = gamma * (n - large) + coef0;
            value[b * ESPI_SLICE + w] = degree == 1 ? base : degree == 2 ? base * base : base * (base * base);
        }
}

HOT static void slice_table(const double *restrict table, const uint64_t *restrict number, double *restrict value)
{
    for (size_t b = 0; b < BYTES; b++)
        for (size_t w = 0; w < ESPI_SLICE; w++) value[b * ESPI_SLICE + w] = table[number[w] >> 8 * b & 0xFF];
}

static void slice_dots(const folding_vectors *v, const double *dot, size_t chunk, size_t slice, double *value)
{
    for (size_t b = 0; b < BYTES; b++)
        for (size_t w = 0; w < ESPI_SLICE; w++) {
            const size_t column = chunk * ESPI_CHUNK + w * 64 + b * ESPI_SLICES + slice;
            value[b * ESPI_SLICE + w] = column < v->columns ? dot[column] : 0.0;
        }
    espi_shape_powers(&v->shape, value, PART);
}

/* ------------------------------------------------------------------ scores */

HOT static void add_products(const double *restrict coefficient, const double *restrict value, double *restrict lane)
{
    for (size_t b = 0; b < BYTES; b++)
        for (size_t w = 0; w < ESPI_SLICE; w++) lane[w] += coefficient[b * ESPI_SLICE + w] * value[b * ESPI_SLICE + w];
}

/* Whether planes can count what x has in common with the columns. */
static bool is_counted(const folding_vectors *v, espi_sparse_row x)
{
    size_t ones = 0;
    for (size_t i = 0; i < x.entries; i++) {
        if (x.value[i] != 0.0 && x.value[i] != 1.0) return false;
        ones += x.value[i] == 1.0;
    }
    return ones <= ESPI_MOST_COUNTED && !v->postings.valued;
}

static bool score_columns(const folding_vectors *v, vector_scores *s, espi_sparse_row x, double *score)
{
    const bool counted = is_counted(v, x);
    uint64_t number[ESPI_SLICES * ESPI_SLICE];
    double value[PART];
    if (!(counted ? espi_postings_count(&v->postings, x, &s->planes)
                  : espi_reserve(&s->dot, &s->dot_capacity, v->columns, sizeof *s->dot)))
        return false;
    if (!counted) espi_postings_dots(&v->postings, x, s->dot);
    for (size_t i = 0; i < v->outputs * ESPI_SLICE; i++) s->lane[i] = 0.0;
    for (size_t chunk = 0; chunk * ESPI_CHUNK < v->columns; chunk++) {
        if (counted) espi_planes_slices(&s->planes, chunk, number);
        for (size_t r = 0; r < ESPI_SLICES; r++) {
            if (!counted) slice_dots(v, s->dot, chunk, r, value);
            else if (v->shape.degree <= 3) slice_powers(&v->shape, number + r * ESPI_SLICE, value);
            else slice_table(v->table, number + r * ESPI_SLICE, value);
            for (size_t k = 0; k < v->outputs; k++)
                add_products(coefficient_of(v, chunk, k, r), value, s->lane + k * ESPI_SLICE);
        }
    }
    for (size_t k = 0; k < v->outputs; k++) {
        score[k] = 0.0;
        for (size_t i = 0; i < ESPI_SLICE; i++) score[k] += s->lane[k * ESPI_SLICE + i];
    }
    return true;
}

static void score_weights(const folding_vectors *v, espi_sparse_row x, double *score)
{
    for (size_t k = 0; k < v->outputs; k++) score[k] = 0.0;
    for (size_t i = 0; i < x.entries; i++) {
        const double *w = v->weight + x.feature[i] * v->outputs;
        for (size_t k = 0; k < v->outputs; k++) score[k] += w[k] * x.value[i];
    }
}

static esp_status score(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                        size_t count, double *out, esp_error *err)
{
    (void)run; /* an example takes microseconds */
    const folding_vectors *v = look(part);
    for (size_t i = 0; i < count; i++, out += v->outputs) {
        const espi_sparse_row x = example(v, row[i]);
        if (v->weight != NULL) score_weights(v, x, out);
        else if (!score_columns(v, workspace, x, out)) return espi_no_memory(err);
    }
    return ESP_OK;
}

static esp_status selves(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                         size_t count, double *value, esp_error *err)
{
    (void)workspace, (void)run, (void)err;
    const folding_vectors *v = look(part);
    for (size_t i = 0; i < count; i++) {
        const espi_sparse_row x = example(v, row[i]);
        value[i] = espi_shape_self(&v->shape, espi_sparse_row_dot(x, x));
    }
    return ESP_OK;
}

const espi_folding_class espi_vector_folding = {.open = open_part,
                                                .close = close_part,
                                                .workspace_new = workspace_new,
                                                .workspace_free = workspace_free,
                                                .selves = selves,
                                                .score = score,
                                                .add = add,
                                                .grow = grow,
                                                .clear = clear,
                                                .bytes = bytes};
