/* Lanes: how numbers carry their derivatives through a recursion that only adds and multiplies. Lane 0 is the value,
 * lane p + 1 its derivative in parameter p of the kernel's class. A lane of many numbers lies side by side, and the
 * lanes lie one behind the other: lane q of number j at [q * stride + j]. Where no derivatives are asked for there is
 * one lane. */
#ifndef ESPI_KERNEL_TREE_LANES_H
#define ESPI_KERNEL_TREE_LANES_H

#include <stddef.h>

/* gradient[p] += the weighted sum of the derivatives of n numbers in parameter p. */
static inline void espi_lanes_weigh(const double *number, size_t n, size_t lanes, const double *weight,
                                    double *gradient)
{
    for (size_t lane = 1; lane < lanes; lane++)
        for (size_t j = 0; j < n; j++) gradient[lane - 1] += weight[j] * number[lane * n + j];
}

#endif
