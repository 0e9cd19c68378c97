/* Systems with G = K + s I and several right-hand sides b, with products alone: preconditioned Lanczos, side by side.
 *
 *     ((1 - t) P + t G) x = b
 *
 * for several shifts t of each b, which share a Krylov space: t = 1 is G itself, and this is then the conjugate
 * gradient method with the preconditioner P (preconditioner.h). Other shifts make logarithms (gp/iterative.c). */
#ifndef ESPI_LEARN_KRYLOV_H
#define ESPI_LEARN_KRYLOV_H

#include "learn/preconditioner.h"
#include "learn/products.h"

typedef struct espi_krylov {
    /* Set by the caller. */
    espi_products *products; /* of `columns` vectors */
    espi_preconditioner *preconditioner;
    double noise;         /* s */
    size_t columns;       /* right-hand sides */
    size_t slots;         /* solutions wanted */
    const size_t *column; /* per slot: of which right-hand side */
    const double *shift;  /* per slot: t, above 0 and at most 1 */
    double tolerance;     /* a solution is good enough when its residual r has r'P^-1 r <= tolerance^2 b'P^-1 b ... */
    double bound;         /* ... or, unless it is 0, where r'P^-1 r `worst` <= this: b'x is then accurate to it */
    size_t most;          /* iterations; at least 1 */
    double *solution;     /* [i * slots + slot]; NULL: not wanted. Overwritten */
    double *form;         /* per slot: b'x, whose error is the square of that of x */
    double *length;       /* per right-hand side: b'P^-1 b */
    /* Found. */
    size_t iterations;
    double residual; /* the largest, of all slots, relative to b: sqrt(r'P^-1 r / b'P^-1 b) */
    bool converged;
} espi_krylov;

/* b[i * columns + k]. Not to converge is no failure: `converged` tells. A right-hand side of zeros has the solution 0.
 * Takes 5 n columns + n slots numbers beyond the solutions, and a product per iteration. The same bits for any number
 * of threads. */
esp_status espi_krylov_solve(espi_krylov *k, const double *b, const esp_run *run, esp_error *err);

#endif
