/* The vector kernels as functions of dot products; see vector_kernel.c. */
#ifndef ESPI_KERNEL_VECTOR_VECTOR_KERNEL_H
#define ESPI_KERNEL_VECTOR_VECTOR_KERNEL_H

#include "data/bag.h"
#include "kernel/expression/kernel.h"

typedef enum espi_shape_kind { ESPI_LINEAR, ESPI_POLY, ESPI_RBF } espi_shape_kind;

typedef struct espi_shape {
    espi_shape_kind kind;
    double gamma, coef0;
    unsigned degree;
    const espi_symbol_value *own; /* rbf: feature f < owns has own[f].value as its gamma; the leaf's */
    size_t owns;
} espi_shape;

/* The leaf must outlive the result. */
espi_shape espi_shape_of(const espi_leaf *leaf);
/* Gives the features that have a gamma of their own their numbers; `names` is empty. False if memory is out. */
bool espi_shape_names(const espi_shape *shape, espi_symbols *names);
/* What a feature's part of dot products and squares is to be multiplied with before espi_shape_value is asked: its
 * gamma if some have one of their own; else 1, as the value then takes gamma into account. */
static inline double espi_shape_weight(const espi_shape *shape, uint32_t feature)
{
    if (feature < shape->owns) return shape->own[feature].value;
    return shape->owns > 0 ? shape->gamma : 1.0;
}
double espi_sparse_row_dot(espi_sparse_row x, espi_sparse_row y);
/* K(x, y) from the dot product and the sum of the squares of x and y, both with the weights above; `other` is the
 * square of what x has in features that y's side lacks and that are not in x's entries, without weights. */
double espi_shape_value(const espi_shape *shape, espi_sparse_row x, espi_sparse_row y, double squares, double other,
                        double dot);
/* Poly: value[i], a dot product, becomes K. The same as espi_shape_value, bit for bit. */
void espi_shape_powers(const espi_shape *shape, double *value, size_t count);
double espi_shape_self(const espi_shape *shape, double square); /* K(x, x) from the square of x */

extern const espi_growing_class espi_vector_growing; /* vector_growing.c */
extern const espi_folding_class espi_vector_folding; /* vector_folding.c; not of rbf */

#endif
