/* Bags: sparse vectors of one side of a Gram matrix, made from a column of vectors, from the words of sequences or
 * from the leaves of trees; and their inverted lists, by which one pass over a vector's features gives its dot
 * products with all the others. */
#ifndef ESPI_DATA_BAG_H
#define ESPI_DATA_BAG_H

#include "data/dataset.h"

typedef struct espi_bag { /* row r: entries row[r] .. row[r+1], features increasing */
    size_t rows;
    size_t *row;
    uint32_t *feature;
    double *value;
    double *square; /* sum of squares of the whole row ... */
    double *other;  /* ... and of those of its features that the other side lacks */
    size_t row_capacity, feature_capacity, value_capacity, square_capacity, other_capacity;
} espi_bag;

typedef struct espi_sparse_row { /* one row, features increasing */
    const uint32_t *feature;
    const double *value;
    size_t entries;
} espi_sparse_row;

/* Puts rows of columns into bags. Set `names` and `grow`, the rest is zero; features not among the names are added to
 * them if `grow`, or else left out (but count in `square` and `other`). */
typedef struct espi_bag_reader {
    espi_symbols *names;
    bool grow;
    espi_symbols strangers;       /* features that are not among the names */
    struct espi_bag_entry *entry; /* of the row at hand */
    size_t entries, capacity;
    char *lower;
    size_t lower_capacity;
    espi_walk walk;
} espi_bag_reader;

typedef struct espi_lists { /* feature f occurs in rows row[start[f]] .. row[start[f+1]-1], increasing */
    size_t features;
    size_t *start;
    uint32_t *row;
    double *value;
} espi_lists;

/* Appends a row of a column to a bag. A vector column keeps its values, a sequence counts its lower-cased words (the
 * first factor of a token), a tree column counts its leaves as they are. False if memory is out. */
bool espi_bag_read(espi_bag_reader *reader, const espi_column *column, size_t row, espi_bag *bag);
void espi_bag_reader_free(espi_bag_reader *reader);

/* The bag of a whole column. False if memory is out. */
bool espi_bag_make(espi_bag *bag, const espi_column *column, espi_symbols *names, bool grow);
void espi_bag_free(espi_bag *bag);
espi_sparse_row espi_bag_row(const espi_bag *bag, size_t row); /* valid until the bag changes */
espi_sparse_row espi_vectors_row(const espi_vectors *vectors, size_t row);
size_t espi_bag_bytes(const espi_bag *bag);

bool espi_lists_make(espi_lists *lists, const espi_bag *bag, size_t features);
/* The other way round: the bag of `rows` rows that has these lists, without squares. */
bool espi_lists_bag(const espi_lists *lists, size_t rows, espi_bag *bag);
void espi_lists_free(espi_lists *lists);

/* out[j - from] += scale * (row of the bag) . (row j of the lists), j = from .. to-1 */
void espi_lists_row(const espi_lists *lists, const espi_bag *bag, size_t row, size_t from, size_t to, double scale,
                    double *out);
/* weight[f * outputs + k] = sum_j coefficient[j * outputs + k] * value of feature f in row j */
void espi_lists_fold(const espi_lists *lists, const double *coefficient, size_t outputs, double *weight);
/* score[k] += scale * sum over the features f of a row of its value * weight[f * outputs + k] */
void espi_bag_score(const espi_bag *bag, size_t row, const double *weight, size_t outputs, double scale, double *score);

/* Lists folded into one weight per feature and output, as espi_lists_fold does; for espi_free. NULL if memory is out.
 */
typedef struct espi_folded_lists {
    size_t outputs;
    double weight[];
} espi_folded_lists;
espi_folded_lists *espi_folded_lists_new(const espi_lists *lists, const double *coefficient, size_t outputs);

#endif
