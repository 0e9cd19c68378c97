/* Pivots: a few examples that stand for all.
 *
 * With pivots S and K(S, S) = L L', the factor F = L^-1 K(S, .) gives K ~ F'F, the Nystroem approximation; it is exact
 * where K has no larger rank. Pivots are drawn one after the other, example i with probability proportional to
 * (K - F'F)(i, i): randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2023). */
#ifndef ESPI_LEARN_PIVOTS_H
#define ESPI_LEARN_PIVOTS_H

#include "kernel/evaluate/bound.h"

typedef struct espi_pivots {
    size_t count;
    size_t examples;   /* n: those of the bound */
    uint32_t *example; /* of each pivot, in the order they were drawn; all different */
    double *factor;    /* F: factor[p * n + i] for pivot p < count and example i; NULL: not wanted */
    double left;       /* the trace of K - F'F over the examples allowed, as a part of that of K */
} espi_pivots;

typedef struct espi_pivot_options {
    size_t count; /* to be drawn at most */
    uint64_t seed;
    const bool *allowed; /* per example, whether it may be one; NULL: all */
    bool factor;         /* keep it; it is needed on the way in any case */
} espi_pivot_options;

/* Over a symmetric bound. Fewer pivots are drawn where what is left is 0 but for rounding, as it is for examples that
 * are equal. Takes the diagonal and one row of the kernel per pivot, O(n count^2) operations, and n count numbers,
 * which must fit run->memory: else ESP_ERR_MEMORY with a sentence, before they are taken. The result is the same for
 * any number of threads; espi_pivots_free releases it. After a failure there is nothing to free. */
esp_status espi_pivots_draw(const espi_bound *bound, const espi_pivot_options *options, const esp_run *run,
                            espi_pivots *out, esp_error *err);
void espi_pivots_free(espi_pivots *pivots);
/* The bytes of a factor. */
double espi_pivots_bytes(size_t count, size_t examples);

#endif
