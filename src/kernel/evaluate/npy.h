/* The head of NumPy's .npy files, version 1.0: padded so that the numbers start at a multiple of 64. */
#ifndef ESPI_KERNEL_EVALUATE_NPY_H
#define ESPI_KERNEL_EVALUATE_NPY_H

#include <stddef.h>

enum { ESPI_NPY_HEADER = 128 };

/* Of a matrix of doubles, row by row. */
void espi_npy_header(size_t rows, size_t cols, char header[ESPI_NPY_HEADER]);

#endif
