/* A matrix that is close to G = K + s I and easy to solve with: with pivots (pivots.h) and their factor F,
 *
 *     P = F'F + D,    D = diag(K - F'F) + s I
 *
 * P has the diagonal of G. As K - F'F is positive semi-definite, G >= P - diag(K - F'F), so that no eigenvalue of
 * P^-1 G is below 1 / `worst`, the largest of D(i) / s being `worst`. */
#ifndef ESPI_LEARN_PRECONDITIONER_H
#define ESPI_LEARN_PRECONDITIONER_H

#include "learn/pivots.h"

typedef struct espi_preconditioner {
    size_t examples, rank;
    uint32_t *pivot;  /* in the order they were drawn */
    double *factor;   /* F: rank x n */
    double *diagonal; /* D: n */
    double *inner;    /* rank x rank: the factor of I + F D^-1 F' */
    double log;       /* log |P| */
    double worst;
    double *room; /* of rank numbers per vector */
    size_t room_capacity;
} espi_preconditioner;

/* Over a symmetric bound; `noise` > 0. A preconditioner of zeros gets at most `rank` pivots, drawn with this seed; one
 * that was made before keeps its pivots, and is that of the bound's present values. Rows of the kernel, time and memory
 * as espi_pivots_draw. After a failure it is zeros. */
esp_status espi_preconditioner_make(espi_preconditioner *p, const espi_bound *bound, size_t rank, uint64_t seed,
                                    double noise, const esp_run *run, esp_error *err);
void espi_preconditioner_free(espi_preconditioner *p);

/* out = P^-1 x for `width` vectors, side by side as in products.h. ESP_ERR_MEMORY if memory is out. */
esp_status espi_preconditioner_solve(espi_preconditioner *p, const double *x, size_t width, double *out,
                                     const esp_run *run, esp_error *err);
/* x = F'a + D^1/2 b for signs a and b, so that the mean of x x' is P: `width` vectors side by side. */
esp_status espi_preconditioner_draw(espi_preconditioner *p, uint64_t seed, size_t width, double *x, const esp_run *run,
                                    esp_error *err);

#endif
