/* Inverted lists that grow: for each feature the columns of a sparse matrix that have it, so that one pass over the
 * features of a vector x gives its dot products with all columns.
 *
 * Features that few columns have are lists of columns. A feature that many have, always with the value 1, is a bitset:
 * one bit per column. While all values are 1, a dot product is the number of features in common; these numbers are
 * added up for 64 columns and more at once in planes, of which plane b holds bit b of the number of every column. */
#ifndef ESPI_KERNEL_VECTOR_POSTINGS_H
#define ESPI_KERNEL_VECTOR_POSTINGS_H

#include "data/bag.h"

enum {
    ESPI_BLOCK = 512,        /* columns that are counted together */
    ESPI_MOST_COUNTED = 255, /* features of a vector that planes can count */
    ESPI_SLICES = 8,
    ESPI_SLICE = 64, /* words of 64 columns whose planes are made together, from inputs that stay in the cache ... */
    ESPI_CHUNK = ESPI_SLICE * 64 /* ... and their columns */
};

typedef struct espi_posting { /* of one feature */
    uint32_t count;           /* columns that have it */
    uint32_t capacity;        /* of `column`, or words of `bits` */
    uint32_t *column;         /* the columns, or NULL: */
    uint64_t *bits;           /* bit c: column c has it; columns beyond the capacity have not */
    double *value;            /* with `column`; NULL: all are 1 */
} espi_posting;

typedef struct espi_postings { /* zeroed: empty */
    espi_posting *feature;
    size_t features, feature_capacity;
    size_t columns; /* all columns that have something are below */
    bool valued;    /* some value is not 1 */
} espi_postings;

typedef struct espi_planes { /* what espi_postings_count left, of one thread; zeroed: empty */
    uint64_t *plane;
    size_t planes, capacity;
    size_t columns; /* that were counted */
} espi_planes;

void espi_postings_free(espi_postings *p);
/* Sets a column, which was empty, to x. Entries of 0 are left out. False if memory is out; then p can only be freed. */
bool espi_postings_add(espi_postings *p, espi_sparse_row x, size_t column);
/* dot[c] = x . column c for c < columns. */
void espi_postings_dots(const espi_postings *p, espi_sparse_row x, double *dot);
/* Counts the features that x and each column have in common, in planes. Not if `valued`; x has at most
 * ESPI_MOST_COUNTED entries of 1, and else only of 0. False if memory is out. May be called by several threads. */
bool espi_postings_count(const espi_postings *p, espi_sparse_row x, espi_planes *planes);
size_t espi_postings_bytes(const espi_postings *p);

void espi_planes_free(espi_planes *planes);
/* number[n] = how many columns of some blocks have n features in common with x, n < 1 << planes. Columns that were
 * never set count as 0 in common. `number` has room for ESPI_MOST_COUNTED + 1. */
void espi_planes_histogram(espi_planes *planes, const uint32_t *block, size_t blocks, uint64_t *number);
/* The numbers of a chunk of columns, a byte each: that of column 64 w + 8 b + r is byte b (the lowest is 0) of
 * slice[r * ESPI_SLICE + w]. This order costs the least. */
void espi_planes_slices(const espi_planes *planes, size_t chunk, uint64_t *slice);
/* count[c] for all columns; room for `columns`, rounded up to whole blocks. */
void espi_planes_counts(const espi_planes *planes, uint8_t *count);
size_t espi_planes_bytes(const espi_planes *planes);

#endif
