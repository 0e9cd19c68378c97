/* Gaussian processes of low rank: M pivots (pivots.h) stand for n examples.
 *
 * Titsias (2009), equation 9: with Q = K_nm K_mm^-1 K_mn and s2 the variance of the noise,
 *
 *     F = log N(y; 0, Q + s2 I) - tr(K - Q) / (2 s2)
 *
 * is a lower bound of the log likelihood of y, and equal to it where the pivots span all examples. Raising F can only
 * bring the approximate posterior closer to the exact one, so that M pivots are never worth more than they are. */
#ifndef ESPI_LEARN_GP_LOW_RANK_H
#define ESPI_LEARN_GP_LOW_RANK_H

#include "espalier.h"

/* F, its derivatives and what predicts, from parts of a matrix. All matrices are stored row by row. */
typedef struct espi_low_rank {
    size_t pivots, examples; /* M, n */
    /* Set by the caller before each espi_low_rank_solve, which overwrites the first two. */
    double *k_mm;     /* M x M; its lower triangle is read. Then L, K_mm = L L' */
    double *k_mn;     /* M x n. Then A = L^-1 K_mn */
    double *diagonal; /* n: K(i, i) */
    /* Found by espi_low_rank_solve. */
    double value;          /* F */
    double noise_gradient; /* dF / ds2 */
    double mean;           /* the constant that was subtracted from the targets */
    double jitter;         /* what had to be added to the diagonal of K_mm; 0: nothing */
    double *coefficient;   /* M: the posterior mean of f(x) is sum_m coefficient[m] K(pivot m, x) */
    /* Found by espi_low_rank_weights: dF = sum w_mm dK_mm + sum w_mn dK_mn + w_diagonal sum_i dK(i, i). */
    double *w_mm; /* M x M, symmetric */
    double *w_mn; /* M x n */
    double w_diagonal;
    /* work space */
    double noise;
    double part;     /* jitter, of the mean of the diagonal */
    double *outer;   /* A A' */
    double *inner;   /* s2 I + A A' = B, then its factor */
    double half_log; /* of the determinant of B */
    double *share;   /* B^-1 A A' */
    double *alpha;   /* n: (Q + s2 I)^-1 y */
} espi_low_rank;

/* Whether run->memory has room for the numbers below; else ESP_ERR_MEMORY with a sentence. */
esp_status espi_low_rank_room(size_t pivots, size_t examples, const esp_run *run, esp_error *err);
/* Takes all memory, both M and n being at least 1: 2 n M + 5 M^2 numbers, of which run->memory must have room. After a
 * failure there is nothing to free. */
esp_status espi_low_rank_new(size_t pivots, size_t examples, const esp_run *run, espi_low_rank *out, esp_error *err);
void espi_low_rank_free(espi_low_rank *bound);

/* O(n M^2). `noise` > 0. With `constant`, the targets' mean is a number that maximises F, else 0. ESP_ERR_RANGE if K_mm
 * is not positive definite even with jitter, or the noise is too small for the matrix: other values may do. */
esp_status espi_low_rank_solve(espi_low_rank *bound, const double *target, double noise, bool constant,
                               const esp_run *run, esp_error *err);
/* The weights at what was solved last. O(n M^2). */
esp_status espi_low_rank_weights(espi_low_rank *bound, const esp_run *run, esp_error *err);
/* The symmetric M x M matrix P of the variance of f at x, K(x, x) - k'P k with k = K(pivots, x), which is >= 0 but for
 * rounding. */
esp_status espi_low_rank_posterior(const espi_low_rank *bound, double *p, const esp_run *run, esp_error *err);

#endif
