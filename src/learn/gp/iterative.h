/* Regression without the matrix: log likelihood and gradient of gp/exact.c from products K v alone (products.h), by
 * conjugate gradients, random probes and quadrature.
 *
 * In a search the preconditioner P (preconditioner.h) and the probes stay: the value is then a smooth function of the
 * hyperparameters, and the gradient is its own. How accurate the value is depends on how close P is to G, so that a
 * search goes in rounds, each with a P of where it begins (iterative_search.c). */
#ifndef ESPI_LEARN_GP_ITERATIVE_H
#define ESPI_LEARN_GP_ITERATIVE_H

#include "learn/krylov.h"

typedef struct espi_iterative {
    /* Set by the caller. */
    size_t rank, probes; /* both at least 1 */
    uint64_t seed;
    double residual;   /* of the coefficients that predict; the solves of the search stop at its square root */
    size_t iterations; /* of conjugate gradients, at most */
    bool partial;      /* a solve that did not converge is taken all the same */
    /* Made by espi_iterative_prepare. */
    espi_preconditioner preconditioner;
    size_t columns, slots, solved; /* right-hand sides; solutions, of which so many are not of probes */
    size_t *column;                /* per slot */
    double *shift, *weight;        /* per slot: t, and the weight of the quadrature */
    double *right;                 /* n x columns: targets, ones if there is a mean, probes */
    double *solution;              /* n x slots */
    bool solutions;                /* they are those of the last evaluation */
    double *form, *length;
    /* What happened so far. */
    size_t evaluations, steps; /* and iterations of all solves */
    size_t longest;            /* iterations of one solve */
    double left;               /* the largest residual at the end of a solve of the search */
    double reached;            /* |y - G a| / |y| of the coefficients; < 0: not solved yet */
} espi_iterative;

/* The bytes that a problem of n examples takes, work space of the solves included. */
double espi_iterative_bytes(size_t rank, size_t probes, size_t examples);
/* The preconditioner and the probes at these values, in place of earlier ones; `noise` > 0. Pivots and signs are those
 * of the first time, so that little changes with little change of the values. After a failure there are none. */
esp_status espi_iterative_prepare(espi_iterative *s, const esp_kernel *kernel, const esp_dataset *data,
                                  const double *target, bool constant, double noise, const esp_run *run,
                                  esp_error *err);
/* The coefficients G^-1 (target - *mean), from those of the last evaluation on, to the residual wanted; s->reached
 * tells the true one. The mean is found if it was wanted in the preparation, else 0. ESP_ERR_RANGE if that fails,
 * unless s->partial. */
esp_status espi_iterative_settle(espi_iterative *s, const esp_kernel *kernel, const esp_dataset *data,
                                 const double *target, double noise, const esp_run *run, double *coefficient,
                                 double *mean, esp_error *err);
void espi_iterative_free(espi_iterative *s);

#endif
