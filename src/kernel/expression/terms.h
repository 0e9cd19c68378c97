/* A kernel as a sum of weighted terms: what scorers add up. */
#ifndef ESPI_KERNEL_EXPRESSION_TERMS_H
#define ESPI_KERNEL_EXPRESSION_TERMS_H

#include "kernel/expression/kernel.h"

typedef struct espi_term {
    size_t op;     /* of the kernel: no sum and no scale */
    double weight; /* all that it is multiplied by */
    bool leaf;     /* it is one leaf, or the norm of one */
    bool norm;     /* it is a norm */
    size_t number; /* of the leaf */
} espi_term;

/* The terms, in the order of the expression; the caller frees them. NULL if memory is out. */
espi_term *espi_kernel_terms(const esp_kernel *kernel, size_t *count);

#endif
