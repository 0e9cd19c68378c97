#include "data/bag.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct espi_bag_entry {
    uint32_t feature;
    double value;
};

#define STRANGER UINT32_C(0x80000000) /* from here on features are strangers */

void espi_bag_free(espi_bag *bag)
{
    espi_free(bag->row);
    espi_free(bag->feature);
    espi_free(bag->value);
    espi_free(bag->square);
    espi_free(bag->other);
    *bag = (espi_bag){0};
}

/* Adds to the row. False if memory is out. */
static bool add(espi_bag_reader *b, const char *text, size_t size, double value)
{
    uint32_t feature = b->grow ? espi_symbols_add(b->names, text, size) : espi_symbols_find(b->names, text, size);
    if (feature == ESPI_NO_SYMBOL && !b->grow) {
        feature = espi_symbols_add(&b->strangers, text, size);
        if (feature != ESPI_NO_SYMBOL) feature |= STRANGER;
    }
    if (feature == ESPI_NO_SYMBOL || !espi_reserve(&b->entry, &b->capacity, b->entries + 1, sizeof *b->entry))
        return false;
    b->entry[b->entries++] = (struct espi_bag_entry){.feature = feature, .value = value};
    return true;
}

static int by_feature(const void *x, const void *y)
{
    const struct espi_bag_entry *a = x, *b = y;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Makes room for another row of `entries`. */
static bool reserve_row(espi_bag *bag, size_t entries)
{
    const size_t rows = bag->rows + 1;
    if (!espi_reserve(&bag->row, &bag->row_capacity, rows + 1, sizeof *bag->row)) return false;
    bag->row[0] = 0;
    const size_t total = bag->row[bag->rows] + entries;
    return espi_reserve(&bag->feature, &bag->feature_capacity, total, sizeof *bag->feature) &&
           espi_reserve(&bag->value, &bag->value_capacity, total, sizeof *bag->value) &&
           espi_reserve(&bag->square, &bag->square_capacity, rows, sizeof *bag->square) &&
           espi_reserve(&bag->other, &bag->other_capacity, rows, sizeof *bag->other);
}

/* Sorts the row, adds up equal features and appends it to the bag. */
static bool end_row(espi_bag_reader *b, espi_bag *bag)
{
    if (!reserve_row(bag, b->entries)) return false;
    size_t at = bag->row[bag->rows];
    if (b->entries > 1) qsort(b->entry, b->entries, sizeof *b->entry, by_feature);
    double known = 0.0, other = 0.0;
    for (size_t i = 0; i < b->entries;) {
        const uint32_t feature = b->entry[i].feature;
        double value = b->entry[i++].value;
        while (i < b->entries && b->entry[i].feature == feature) value += b->entry[i++].value;
        if (feature >= STRANGER) {
            other += value * value;
            continue;
        }
        known += value * value;
        bag->feature[at] = feature;
        bag->value[at++] = value;
    }
    bag->square[bag->rows] = known + other;
    bag->other[bag->rows++] = other;
    bag->row[bag->rows] = at;
    return true;
}

static bool add_words(espi_bag_reader *b, const espi_sequences *s, size_t row)
{
    for (size_t t = s->row[row]; t < s->row[row + 1]; t++) {
        const espi_symbol *word = &s->symbols.symbol[s->factor[s->token[t]]];
        if (!espi_reserve(&b->lower, &b->lower_capacity, word->size, 1)) return false;
        if (word->size > 0) memcpy(b->lower, word->text, word->size);
        espi_lower_case(b->lower, word->size);
        if (!add(b, b->lower, word->size, 1.0)) return false;
    }
    return true;
}

static bool add_leaf(espi_bag_reader *b, const espi_forest *f, espi_ref leaf)
{
    const espi_symbol *s = &f->symbols.symbol[espi_leaf_symbol(leaf)];
    return add(b, s->text, s->size, 1.0);
}

static bool add_leaves(espi_bag_reader *b, const espi_forest *f, espi_ref root)
{
    if (root == ESPI_NO_NODE) return true;
    if (espi_is_leaf(root)) return add_leaf(b, f, root);
    bool failed = !espi_walk_start(&b->walk, f, root);
    espi_ref vertex;
    while (!failed && (vertex = espi_walk_next(&b->walk, &failed)) != ESPI_NO_NODE) {
        const espi_ref *child = f->child + f->vertex[vertex].children;
        for (size_t k = 0; !failed && k < espi_production_of(f, vertex)->arity; k++)
            failed = espi_is_leaf(child[k]) && !add_leaf(b, f, child[k]);
    }
    return !failed;
}

static bool add_vector(espi_bag_reader *b, const espi_vectors *v, size_t row)
{
    for (size_t i = v->row[row]; i < v->row[row + 1]; i++) {
        const espi_symbol *s = &v->features.symbol[v->feature[i]];
        if (!add(b, s->text, s->size, v->value[i])) return false;
    }
    return true;
}

bool espi_bag_read(espi_bag_reader *b, const espi_column *column, size_t row, espi_bag *bag)
{
    b->entries = 0;
    const bool ok = column->type == ESP_COLUMN_VECTOR     ? add_vector(b, &column->vectors, row)
                    : column->type == ESP_COLUMN_SEQUENCE ? add_words(b, &column->sequences, row)
                                                          : add_leaves(b, &column->trees, column->trees.root[row]);
    return ok && end_row(b, bag);
}

void espi_bag_reader_free(espi_bag_reader *b)
{
    espi_walk_free(&b->walk);
    espi_symbols_free(&b->strangers);
    espi_free(b->entry);
    espi_free(b->lower);
}

bool espi_bag_make(espi_bag *bag, const espi_column *column, espi_symbols *names, bool grow)
{
    espi_bag_reader b = {.names = names, .grow = grow};
    *bag = (espi_bag){0};
    bag->row = espi_alloc_zero(column->rows + 1, sizeof *bag->row); /* there, even if there are no rows */
    if (bag->row != NULL) bag->row_capacity = column->rows + 1;
    bool ok = bag->row != NULL;
    for (size_t i = 0; ok && i < column->rows; i++) ok = espi_bag_read(&b, column, i, bag);
    espi_bag_reader_free(&b);
    if (!ok) espi_bag_free(bag);
    return ok;
}

espi_sparse_row espi_bag_row(const espi_bag *bag, size_t row)
{
    const size_t from = bag->row[row], entries = bag->row[row + 1] - from;
    return entries > 0 ? (espi_sparse_row){bag->feature + from, bag->value + from, entries} : (espi_sparse_row){0};
}

espi_sparse_row espi_vectors_row(const espi_vectors *v, size_t row)
{
    const size_t from = v->row[row], entries = v->row[row + 1] - from;
    return entries > 0 ? (espi_sparse_row){v->feature + from, v->value + from, entries} : (espi_sparse_row){0};
}

size_t espi_bag_bytes(const espi_bag *b)
{
    return b->row_capacity * sizeof *b->row + b->feature_capacity * sizeof *b->feature +
           b->value_capacity * sizeof *b->value + b->square_capacity * sizeof *b->square +
           b->other_capacity * sizeof *b->other;
}

void espi_lists_free(espi_lists *lists)
{
    espi_free(lists->start);
    espi_free(lists->row);
    espi_free(lists->value);
    *lists = (espi_lists){0};
}

bool espi_lists_make(espi_lists *lists, const espi_bag *bag, size_t features)
{
    const size_t entries = bag->row[bag->rows];
    *lists = (espi_lists){.features = features};
    lists->start = espi_alloc_zero(features + 2, sizeof *lists->start);
    lists->row = espi_alloc(entries, sizeof *lists->row);
    lists->value = espi_alloc(entries, sizeof *lists->value);
    if (lists->start == NULL || lists->row == NULL || lists->value == NULL) {
        espi_lists_free(lists);
        return false;
    }
    /* Counting sort: start[f + 2] counts, then start[f + 1] is where f's next entry goes. */
    for (size_t i = 0; i < entries; i++) lists->start[bag->feature[i] + 2]++;
    for (size_t f = 2; f < features + 2; f++) lists->start[f] += lists->start[f - 1];
    for (size_t r = 0; r < bag->rows; r++)
        for (size_t i = bag->row[r]; i < bag->row[r + 1]; i++) {
            const size_t at = lists->start[bag->feature[i] + 1]++;
            lists->row[at] = (uint32_t)r;
            lists->value[at] = bag->value[i];
        }
    return true;
}

bool espi_lists_bag(const espi_lists *lists, size_t rows, espi_bag *bag)
{
    const size_t entries = lists->start[lists->features];
    *bag = (espi_bag){.rows = rows};
    bag->row = espi_alloc_zero(rows + 2, sizeof *bag->row);
    bag->feature = espi_alloc(entries, sizeof *bag->feature);
    bag->value = espi_alloc(entries, sizeof *bag->value);
    if (bag->row == NULL || bag->feature == NULL || bag->value == NULL) {
        espi_bag_free(bag);
        return false;
    }
    for (size_t i = 0; i < entries; i++) bag->row[lists->row[i] + 2]++; /* as above */
    for (size_t r = 2; r < rows + 2; r++) bag->row[r] += bag->row[r - 1];
    for (size_t f = 0; f < lists->features; f++)
        for (size_t i = lists->start[f]; i < lists->start[f + 1]; i++) {
            const size_t at = bag->row[lists->row[i] + 1]++;
            bag->feature[at] = (uint32_t)f;
            bag->value[at] = lists->value[i];
        }
    return true;
}

void espi_lists_row(const espi_lists *lists, const espi_bag *bag, size_t row, size_t from, size_t to, double scale,
                    double *out)
{
    for (size_t i = bag->row[row]; i < bag->row[row + 1]; i++) {
        const double x = scale * bag->value[i];
        size_t at = lists->start[bag->feature[i]];
        const size_t end = lists->start[bag->feature[i] + 1];
        while (at < end && lists->row[at] < from) at++;
        for (; at < end && lists->row[at] < to; at++) out[lists->row[at] - from] += x * lists->value[at];
    }
}

void espi_lists_fold(const espi_lists *lists, const double *coefficient, size_t outputs, double *weight)
{
    for (size_t f = 0; f < lists->features; f++) {
        double *w = weight + f * outputs;
        for (size_t k = 0; k < outputs; k++) w[k] = 0.0;
        for (size_t at = lists->start[f]; at < lists->start[f + 1]; at++)
            for (size_t k = 0; k < outputs; k++) w[k] += coefficient[lists->row[at] * outputs + k] * lists->value[at];
    }
}

void espi_bag_score(const espi_bag *bag, size_t row, const double *weight, size_t outputs, double scale, double *score)
{
    for (size_t i = bag->row[row]; i < bag->row[row + 1]; i++) {
        const double *w = weight + bag->feature[i] * outputs, x = scale * bag->value[i];
        for (size_t k = 0; k < outputs; k++) score[k] += x * w[k];
    }
}

espi_folded_lists *espi_folded_lists_new(const espi_lists *lists, const double *coefficient, size_t outputs)
{
    espi_folded_lists *f = NULL;
    if (outputs == 0 || lists->features < SIZE_MAX / sizeof *f->weight / 2 / outputs)
        f = espi_alloc(1, sizeof *f + lists->features * outputs * sizeof *f->weight);
    if (f == NULL) return NULL;
    f->outputs = outputs;
    espi_lists_fold(lists, coefficient, outputs, f->weight);
    return f;
}
