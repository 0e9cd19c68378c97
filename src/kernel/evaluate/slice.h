/* What the program of a kernel is run over: values (bound.c) and their gradients (gradient.c) go through its ops in the
 * same steps. */
#ifndef ESPI_KERNEL_EVALUATE_SLICE_H
#define ESPI_KERNEL_EVALUATE_SLICE_H

#include "kernel/evaluate/bound.h"

typedef struct espi_slice { /* a piece of one row of the matrix, or the diagonal of one side */
    bool diagonal;
    espi_side side; /* of a diagonal */
    size_t row, from, to;
} espi_slice;

/* The first op of the sub-program that ends with `op`. */
size_t espi_first_op(const esp_kernel *kernel, size_t op);
/* v = the values of a leaf. */
esp_status espi_slice_leaf(const espi_workspace *workspace, size_t leaf, const espi_slice *span, double *v,
                           esp_error *err);
/* v = what an op that is no leaf makes of its operands v and `right`; of those with one operand that is v. */
void espi_slice_apply(const espi_bound *bound, size_t op, const espi_slice *span, const double *right, double *v);

#endif
