/* Sequential minimal optimisation for support vector machines:
 *
 *     minimise    1/2 sum_kl a_k a_l s_k s_l K(x_k, x_l) + sum_k p_k a_k
 *     subject to  sum_k s_k a_k = S,   0 <= a_k <= C_k
 *
 * over variables k, each with an example x_k (several variables may share one), a sign s_k = +1 or -1, a linear term
 * p_k and a bound C_k. C-SVC: one variable per example, s = y, p = -1, S = 0. Epsilon-SVR: two per example, s = +1 with
 * p = epsilon - y and s = -1 with p = epsilon + y, S = 0. One class: one per example, s = 1, p = 0, S > 0. The decision
 * function is f(x) = sum_k s_k a_k K(x_k, x) + bias. Working sets by second-order information (Fan, Chen, Lin 2005),
 * shrinking with reconstruction of the gradient. */
#ifndef ESPI_LEARN_SVM_SMO_H
#define ESPI_LEARN_SVM_SMO_H

#include "learn/svm/rows.h"

typedef struct espi_smo_problem {
    espi_rows *rows;
    size_t variables;
    const uint32_t *example; /* variable -> row of `rows` */
    const signed char *sign;
    const double *linear;
    const double *bound;
    double sum;            /* S; it can be reached within the bounds */
    double tolerance;      /* stop when the largest violation is below this; > 0 */
    size_t max_iterations; /* > 0 */
    bool shrinking;
    size_t store; /* bytes for copies of rows at the variables that still matter; 0: 64 MB. At least two rows. */
} espi_smo_problem;

typedef struct espi_smo_result {
    double bias, objective;
    size_t iterations, free_variables, bounded_variables;
    bool converged; /* false: the limit of iterations was reached, or the call was cancelled */
} espi_smo_result;

/* `alpha` holds the start (zeros, or the solution for another C scaled to the bounds; it is made feasible) and then the
 * solution.
 * Deterministic. If run->progress asks to stop, the status is ESP_ERR_CANCELLED and `alpha` holds the best so far. */
esp_status espi_smo_solve(const espi_smo_problem *problem, const esp_run *run, double *alpha, espi_smo_result *result,
                          esp_error *err);

#endif
