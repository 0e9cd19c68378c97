/* The probit link of Gaussian processes for classes: from latent functions to probabilities. */
#ifndef ESPI_LEARN_PROBIT_H
#define ESPI_LEARN_PROBIT_H

#include <stddef.h>

/* Phi(z); ln Phi(z), and phi(z) / Phi(z), for any z. */
double espi_probit(double z);
double espi_log_probit(double z);
double espi_probit_ratio(double z);

/* What a normal latent value gives to the link: Phi(f) has the mean Phi(m / sqrt(1 + v)) (Rasmussen & Williams 2006,
 * equation 3.82). */
double espi_probit_argument(double mean, double variance);

/* The probabilities of all classes from an argument of Phi for each output: one output for two classes, else one per
 * class. With several, output c tells whether class c is the one, independently of the others; that exactly one is, has
 *
 *     p(c) proportional to Phi(z_c) prod_(k != c) (1 - Phi(z_k)), which is proportional to Phi(z_c) / (1 - Phi(z_c))
 *
 * `out` has room for all classes, and may be `z`. */
void espi_class_probabilities(const double *z, size_t classes, double *out);

#endif
