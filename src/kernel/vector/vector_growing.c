/* Vector kernels in sums that grow:  f_k(x) = sum_e c_k(e) K(x, e)
 *
 * linear is a weight vector per output. poly has inverted lists (Aiolli et al. 2007, sec. IV), by which one pass gives
 * all dot products. While all values are 1, examples are sorted into banks, one for each output k and coefficient c;
 * x.e is then the number n of features in common, and it is enough to know how many examples N(n) of a bank have n:
 *
 *     f_k(x) = sum over the banks of k of c * sum_n N(n) (gamma n + coef0)^degree
 *
 * A bank owns blocks of columns of the inverted lists; an example has a column in each bank it belongs to. With other
 * values, or too many different coefficients, and for rbf, each example has one column, and a row of kernel values is
 * multiplied with the coefficients. So it is in the form plain, whose rows are made pair by pair. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/expression/growing.h"
#include "kernel/vector/postings.h"
#include "kernel/vector/vector_kernel.h"

#include <math.h>
#include <string.h>

enum {
    SPARE_BANKS = 60, /* banks that one output may have, and each further one some */
    OUTPUT_BANKS = 4,
    SPARE_COLUMNS = 4096, /* columns that banks may take beyond ... */
    EXAMPLE_COLUMNS = 4   /* ... this many per example */
};

typedef struct bank {
    size_t output;
    double coefficient;
    size_t count;    /* examples */
    uint32_t *block; /* filled in order; only the last may have room */
    size_t blocks, block_capacity;
} bank;

typedef struct weighted { /* of one output: the examples whose coefficient is not 0, in order */
    uint32_t *example;
    double *coefficient;
    size_t count, example_capacity, coefficient_capacity;
} weighted;

typedef struct growing_vectors {
    espi_growing_part part;
    espi_shape shape;
    const espi_column *column;
    espi_form form;
    size_t outputs;
    bool rows;
    size_t count; /* examples kept */

    espi_sparse_row x;      /* at hand */
    espi_sparse_row scaled; /* x with the weights of espi_shape_weight, as is the square */
    double square;
    bool ones; /* all its values are 1, and they are not too many to be counted */
    uint32_t *feature;
    double *value;
    size_t feature_capacity, value_capacity;

    bool bags;          /* rows are read into `words`: a sequence column, or features that have weights */
    espi_symbols names; /* words in lower case, or features; numbers from known_names on are x's own */
    size_t known_names;
    espi_bag_reader reader;
    espi_bag words; /* the rows kept, and x behind them */

    double *weight; /* linear: weight[feature * (outputs + 1) + k]; the last is the magnitude */
    size_t weights, weight_capacity;

    espi_postings postings;
    espi_planes planes;
    bool banked;
    bank *bank;
    size_t banks, bank_capacity;
    size_t blocks; /* of all banks */
    size_t banked_columns;
    weighted *weighted; /* per output */
    double *squares;    /* rbf: per example kept */
    size_t square_capacity;
    size_t longest; /* rbf: most features of an example kept, if all values are 1 */

    double *table; /* K by the number of features in common; rbf: by squared distance */
    size_t entries, table_capacity;
    uint8_t *number; /* scratch: features in common with each column ... */
    double *k;       /* ... and dot products, or kernel values */
    size_t number_capacity, k_capacity;
} growing_vectors;

static growing_vectors *view(espi_growing_part *part) { return (growing_vectors *)(void *)part; }

static void release(espi_growing_part *part)
{
    growing_vectors *v = view(part);
    if (v == NULL) return;
    for (size_t i = 0; i < v->banks; i++) espi_free(v->bank[i].block);
    for (size_t k = 0; v->weighted != NULL && k < v->outputs; k++) {
        espi_free(v->weighted[k].example);
        espi_free(v->weighted[k].coefficient);
    }
    espi_symbols_free(&v->names);
    espi_bag_reader_free(&v->reader);
    espi_bag_free(&v->words);
    espi_postings_free(&v->postings);
    espi_planes_free(&v->planes);
    espi_free(v->feature);
    espi_free(v->value);
    espi_free(v->weight);
    espi_free(v->bank);
    espi_free(v->weighted);
    espi_free(v->squares);
    espi_free(v->table);
    espi_free(v->number);
    espi_free(v->k);
    espi_free(v);
}

static esp_status bind(const espi_leaf *leaf, const espi_column *column, espi_form form, size_t outputs, bool rows,
                       const esp_run *run, espi_growing_part **out, esp_error *err)
{
    (void)run;
    growing_vectors *v = espi_alloc_zero(1, sizeof *v);
    *out = NULL;
    if (v == NULL) return espi_no_memory(err);
    v->part.class = leaf->class;
    v->shape = espi_shape_of(leaf);
    v->column = column;
    v->form = form;
    v->outputs = outputs;
    v->rows = rows;
    v->banked = v->shape.kind == ESPI_POLY && form != ESPI_FORM_PLAIN && !rows;
    v->bags = column->type == ESP_COLUMN_SEQUENCE || v->shape.owns > 0;
    v->known_names = v->shape.owns;
    v->reader = (espi_bag_reader){.names = &v->names, .grow = true};
    v->weighted = espi_alloc_zero(outputs + 1, sizeof *v->weighted);
    if (v->weighted == NULL || !espi_shape_names(&v->shape, &v->names)) {
        release(&v->part);
        return espi_no_memory(err);
    }
    *out = &v->part;
    return ESP_OK;
}

/* Whether the sum is a weight vector. */
static bool is_folded(const growing_vectors *v)
{
    return v->shape.kind == ESPI_LINEAR && v->form != ESPI_FORM_PLAIN && !v->rows;
}

/* ---------------------------------------------------------- the example at hand */

static bool look_words(growing_vectors *v, size_t row)
{
    espi_symbols_truncate(&v->names, v->known_names);
    v->words.rows = v->count;
    if (!espi_bag_read(&v->reader, v->column, row, &v->words)) return false;
    v->x = espi_bag_row(&v->words, v->count);
    return true;
}

static bool look_vector(growing_vectors *v, size_t row)
{
    const espi_vectors *c = &v->column->vectors;
    const size_t from = c->row[row], to = c->row[row + 1];
    if (!espi_reserve(&v->feature, &v->feature_capacity, to - from, sizeof *v->feature) ||
        !espi_reserve(&v->value, &v->value_capacity, to - from, sizeof *v->value))
        return false;
    size_t entries = 0;
    for (size_t i = from; i < to; i++) {
        if (c->value[i] == 0.0) continue;
        v->feature[entries] = c->feature[i];
        v->value[entries++] = c->value[i];
    }
    v->x = (espi_sparse_row){v->feature, v->value, entries};
    return true;
}

static bool scale(growing_vectors *v)
{
    v->scaled = v->x;
    if (v->shape.owns == 0 || v->x.entries == 0) return true;
    if (!espi_reserve(&v->value, &v->value_capacity, v->x.entries, sizeof *v->value)) return false;
    for (size_t i = 0; i < v->x.entries; i++)
        v->value[i] = espi_shape_weight(&v->shape, v->x.feature[i]) * v->x.value[i];
    v->scaled.value = v->value;
    return true;
}

/* Makes room for all that scores and rows need, so that they do not fail. */
static bool reserve(growing_vectors *v)
{
    const size_t columns = (v->postings.columns + ESPI_BLOCK - 1) / ESPI_BLOCK * ESPI_BLOCK;
    const size_t entries = v->x.entries + (v->shape.kind == ESPI_RBF ? v->longest : 0) + 1;
    const size_t values = v->rows ? 0 : !v->banked ? v->count : v->ones ? 0 : columns;
    if (!espi_reserve(&v->k, &v->k_capacity, values, sizeof *v->k)) return false;
    if (v->form == ESPI_FORM_PLAIN || !v->ones) return true;
    if (!v->banked && !espi_reserve(&v->number, &v->number_capacity, columns, sizeof *v->number)) return false;
    if (!espi_reserve(&v->table, &v->table_capacity, entries, sizeof *v->table)) return false;
    for (; v->entries < entries; v->entries++) {
        const double n = (double)v->entries;
        const double squares = v->shape.kind == ESPI_RBF ? n : 0.0, dot = n - squares;
        v->table[v->entries] =
            espi_shape_value(&v->shape, (espi_sparse_row){0}, (espi_sparse_row){0}, squares, squares, dot);
    }
    return true;
}

static esp_status look(espi_growing_part *part, size_t row, esp_error *err)
{
    growing_vectors *v = view(part);
    if (!(v->bags ? look_words(v, row) : look_vector(v, row)) || !scale(v)) return espi_no_memory(err);
    v->square = 0.0;
    v->ones = v->x.entries <= ESPI_MOST_COUNTED && v->shape.owns == 0;
    for (size_t i = 0; i < v->x.entries; i++) {
        v->square += v->scaled.value[i] * v->x.value[i];
        v->ones = v->ones && v->x.value[i] == 1.0;
    }
    return is_folded(v) || reserve(v) ? ESP_OK : espi_no_memory(err);
}

static esp_status self(espi_growing_part *part, double *value, esp_error *err)
{
    (void)err;
    *value = espi_shape_self(&view(part)->shape, view(part)->square);
    return ESP_OK;
}

/* --------------------------------------------------------------- kernel values */

static espi_sparse_row example(const growing_vectors *v, size_t e)
{
    return v->bags ? espi_bag_row(&v->words, e) : espi_vectors_row(&v->column->vectors, e);
}

static void values_by_pairs(const growing_vectors *v, double *out)
{
    for (size_t e = 0; e < v->count; e++) {
        const espi_sparse_row y = example(v, e);
        const double squares = v->shape.kind == ESPI_RBF ? v->square + v->squares[e] : 0.0;
        out[e] = espi_shape_value(&v->shape, v->x, y, squares, 0.0, espi_sparse_row_dot(v->scaled, y));
    }
}

HOT static void look_up(const double *restrict table, const uint8_t *restrict number, size_t count,
                        double *restrict out)
{
    for (size_t e = 0; e < count; e++) out[e] = table[number[e]];
}

static bool values_by_number(growing_vectors *v, double *out)
{
    if (!espi_postings_count(&v->postings, v->x, &v->planes)) return false;
    espi_planes_counts(&v->planes, v->number);
    if (v->shape.kind != ESPI_RBF) {
        look_up(v->table, v->number, v->count, out);
        return true;
    }
    for (size_t e = 0; e < v->count; e++)
        out[e] = v->table[v->x.entries + (size_t)v->squares[e] - 2 * (size_t)v->number[e]];
    return true;
}

static void values_by_dots(const growing_vectors *v, double *out)
{
    espi_postings_dots(&v->postings, v->scaled, out);
    if (v->shape.kind == ESPI_POLY) espi_shape_powers(&v->shape, out, v->count);
    for (size_t e = 0; e < v->count && v->shape.kind == ESPI_RBF; e++)
        out[e] = espi_shape_value(&v->shape, v->x, example(v, e), v->square + v->squares[e], 0.0, out[e]);
}

/* K(x, e) for all examples; not while they are in banks. */
static esp_status row(espi_growing_part *part, double *out, esp_error *err)
{
    growing_vectors *v = view(part);
    if (v->form == ESPI_FORM_PLAIN) values_by_pairs(v, out);
    else if (!v->ones || v->postings.valued) values_by_dots(v, out);
    else if (!values_by_number(v, out)) return espi_no_memory(err);
    return ESP_OK;
}

/* -------------------------------------------------------------------- scores */

/* The sum of c[i] * k[at[i]], in LANES sums that run side by side, whatever the processor. `at` NULL: k[i]. */
HOT static double dot_at(const double *restrict c, const uint32_t *restrict at, const double *restrict k, size_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0.0}, total = 0.0;
    size_t i = 0;
    for (; at == NULL && i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += c[i + l] * k[i + l];
    for (; at != NULL && i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += c[i + l] * k[at[i + l]];
    for (; i < n; i++) total += c[i] * k[at == NULL ? i : at[i]];
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

/* The same of absolute values. */
HOT static double size_at(const double *restrict c, const uint32_t *restrict at, const double *restrict k, size_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0.0}, total = 0.0;
    size_t i = 0;
    for (; at == NULL && i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += fabs(c[i + l] * k[i + l]);
    for (; at != NULL && i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += fabs(c[i + l] * k[at[i + l]]);
    for (; i < n; i++) total += fabs(c[i] * k[at == NULL ? i : at[i]]);
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

static double score_weights(const growing_vectors *v, double *score)
{
    double magnitude = 0.0;
    for (size_t i = 0; i < v->x.entries && v->x.feature[i] < v->weights; i++) {
        const double *w = v->weight + v->x.feature[i] * (v->outputs + 1), x = v->x.value[i];
        for (size_t k = 0; k < v->outputs; k++) score[k] += x * w[k];
        magnitude += fabs(x) * w[v->outputs];
    }
    return magnitude;
}

static bool score_banks(growing_vectors *v, double *score, double *magnitude)
{
    uint64_t number[ESPI_MOST_COUNTED + 1];
    if (!espi_postings_count(&v->postings, v->x, &v->planes)) return false;
    for (size_t i = 0; i < v->banks; i++) {
        const bank *b = &v->bank[i];
        espi_planes_histogram(&v->planes, b->block, b->blocks, number);
        number[0] -= b->blocks * ESPI_BLOCK - b->count;
        double sum = 0.0;
        for (size_t n = 0; n <= v->x.entries && n >> v->planes.planes == 0; n++)
            if (number[n] > 0) sum += (double)number[n] * v->table[n];
        score[b->output] += b->coefficient * sum;
        *magnitude += fabs(b->coefficient) * sum;
    }
    return true;
}

static void score_banks_by_dots(growing_vectors *v, double *score, double *magnitude)
{
    espi_postings_dots(&v->postings, v->x, v->k);
    espi_shape_powers(&v->shape, v->k, v->postings.columns);
    for (size_t i = 0; i < v->banks; i++) {
        const bank *b = &v->bank[i];
        double sum = 0.0, size = 0.0;
        for (size_t e = 0; e < b->count; e++) {
            const double k = v->k[(size_t)b->block[e / ESPI_BLOCK] * ESPI_BLOCK + e % ESPI_BLOCK];
            sum += k;
            size += fabs(k);
        }
        score[b->output] += b->coefficient * sum;
        *magnitude += fabs(b->coefficient) * size;
    }
}

static esp_status score(espi_growing_part *part, double *out, double *magnitude, esp_error *err)
{
    growing_vectors *v = view(part);
    esp_status status = ESP_OK;
    for (size_t k = 0; k < v->outputs; k++) out[k] = 0.0;
    *magnitude = 0.0;
    if (is_folded(v)) *magnitude = score_weights(v, out);
    else if (v->banked && !v->ones) score_banks_by_dots(v, out, magnitude);
    else if (v->banked) status = score_banks(v, out, magnitude) ? ESP_OK : espi_no_memory(err);
    else {
        status = row(part, v->k, err);
        for (size_t k = 0; k < v->outputs && status == ESP_OK; k++) {
            const weighted *w = &v->weighted[k];
            const uint32_t *at = w->count == v->count ? NULL : w->example;
            out[k] = dot_at(w->coefficient, at, v->k, w->count);
            *magnitude += size_at(w->coefficient, at, v->k, w->count);
        }
    }
    return status;
}

/* ------------------------------------------------------------------- keeping */

static bool keep_weights(growing_vectors *v, const double *coefficient)
{
    if (v->x.entries == 0) return true;
    const size_t features = (size_t)v->x.feature[v->x.entries - 1] + 1;
    if (features > v->weights) {
        const size_t width = v->outputs + 1;
        if (features > SIZE_MAX / sizeof *v->weight / width ||
            !espi_reserve(&v->weight, &v->weight_capacity, features * width, sizeof *v->weight))
            return false;
        for (size_t i = v->weights * width; i < features * width; i++) v->weight[i] = 0.0;
        v->weights = features;
    }
    for (size_t i = 0; i < v->x.entries; i++) {
        double *w = v->weight + v->x.feature[i] * (v->outputs + 1);
        for (size_t k = 0; k < v->outputs; k++) {
            w[k] += coefficient[k] * v->x.value[i];
            w[v->outputs] += fabs(coefficient[k] * v->x.value[i]);
        }
    }
    return true;
}

static bool keep_coefficients(growing_vectors *v, const double *coefficient)
{
    for (size_t k = 0; k < v->outputs; k++) {
        weighted *w = &v->weighted[k];
        if (coefficient[k] == 0.0) continue;
        if (!espi_reserve(&w->example, &w->example_capacity, w->count + 1, sizeof *w->example) ||
            !espi_reserve(&w->coefficient, &w->coefficient_capacity, w->count + 1, sizeof *w->coefficient))
            return false;
        w->example[w->count] = (uint32_t)v->count;
        w->coefficient[w->count++] = coefficient[k];
    }
    return true;
}

/* The bank of an output and a coefficient, made if there is none; NULL if memory is out. */
static bank *bank_of(growing_vectors *v, size_t output, double coefficient)
{
    for (size_t i = 0; i < v->banks; i++)
        if (v->bank[i].output == output && v->bank[i].coefficient == coefficient) return &v->bank[i];
    if (!espi_reserve(&v->bank, &v->bank_capacity, v->banks + 1, sizeof *v->bank)) return NULL;
    v->bank[v->banks] = (bank){.output = output, .coefficient = coefficient};
    return &v->bank[v->banks++];
}

static bool keep_in_bank(growing_vectors *v, bank *b)
{
    if (b->count == b->blocks * ESPI_BLOCK) {
        if (!espi_reserve(&b->block, &b->block_capacity, b->blocks + 1, sizeof *b->block)) return false;
        b->block[b->blocks++] = (uint32_t)v->blocks++;
    }
    const size_t column = (size_t)b->block[b->blocks - 1] * ESPI_BLOCK + b->count++ % ESPI_BLOCK;
    v->banked_columns++;
    return espi_postings_add(&v->postings, v->x, column);
}

/* Gives every example one column instead. */
static bool leave_banks(growing_vectors *v)
{
    for (size_t i = 0; i < v->banks; i++) espi_free(v->bank[i].block);
    espi_postings_free(&v->postings);
    espi_planes_free(&v->planes);
    v->banks = 0;
    v->banked = false;
    for (size_t e = 0; e < v->count; e++)
        if (!espi_postings_add(&v->postings, example(v, e), e)) return false;
    return true;
}

static bool keep_in_banks(growing_vectors *v, const double *coefficient)
{
    for (size_t k = 0; k < v->outputs; k++) {
        if (coefficient[k] == 0.0) continue;
        bank *b = bank_of(v, k, coefficient[k]);
        if (b == NULL || !keep_in_bank(v, b)) return false;
    }
    return true;
}

static bool banks_suit(const growing_vectors *v)
{
    for (size_t i = 0; i < v->x.entries; i++)
        if (v->x.value[i] != 1.0) return false;
    return v->banks <= SPARE_BANKS + OUTPUT_BANKS * v->outputs &&
           v->banked_columns <= SPARE_COLUMNS + EXAMPLE_COLUMNS * v->count;
}

static bool keep_example(growing_vectors *v, const double *coefficient)
{
    if (is_folded(v)) return keep_weights(v, coefficient);
    if (!v->rows && !keep_coefficients(v, coefficient)) return false;
    if (v->shape.kind == ESPI_RBF) {
        if (!espi_reserve(&v->squares, &v->square_capacity, v->count + 1, sizeof *v->squares)) return false;
        v->squares[v->count] = v->square;
        if (v->x.entries > v->longest) v->longest = v->x.entries;
    }
    if (v->form == ESPI_FORM_PLAIN) return true;
    if (v->banked && !banks_suit(v) && !leave_banks(v)) return false;
    return v->banked ? keep_in_banks(v, coefficient) : espi_postings_add(&v->postings, v->x, v->count);
}

static esp_status keep(espi_growing_part *part, const double *coefficient, esp_error *err)
{
    growing_vectors *v = view(part);
    if (v->count >= UINT32_MAX - 1 || !keep_example(v, coefficient)) return espi_no_memory(err);
    v->count++;
    v->known_names = v->names.count;
    return ESP_OK;
}

static void measure(const espi_growing_part *part, espi_growing_size *size)
{
    const growing_vectors *v = (const growing_vectors *)(const void *)part;
    size->bytes += sizeof *v + espi_postings_bytes(&v->postings) + espi_planes_bytes(&v->planes) +
                   espi_symbols_bytes(&v->names) + espi_bag_bytes(&v->words);
    size->bytes += v->feature_capacity * sizeof *v->feature + v->value_capacity * sizeof *v->value +
                   v->weight_capacity * sizeof *v->weight + v->square_capacity * sizeof *v->squares +
                   v->table_capacity * sizeof *v->table + v->number_capacity * sizeof *v->number +
                   v->k_capacity * sizeof *v->k + v->bank_capacity * sizeof *v->bank;
    for (size_t i = 0; i < v->banks; i++) size->bytes += v->bank[i].block_capacity * sizeof *v->bank[i].block;
    for (size_t k = 0; k < v->outputs; k++)
        size->bytes += v->weighted[k].example_capacity * sizeof *v->weighted[k].example +
                       v->weighted[k].coefficient_capacity * sizeof *v->weighted[k].coefficient;
}

const espi_growing_class espi_vector_growing = {
    .open = bind,
    .close = release,
    .look = look,
    .self = self,
    .row = row,
    .score = score,
    .keep = keep,
    .measure = measure,
};
