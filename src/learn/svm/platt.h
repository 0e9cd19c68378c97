/* Probabilities from scores: see platt.c. */
#ifndef ESPI_LEARN_SVM_PLATT_H
#define ESPI_LEARN_SVM_PLATT_H

#include "learn/targets.h"

/* Sigmoids P = 1 / (1 + exp(A f + B)) fitted to the scores of one-vs-rest outputs (Platt 1999; Lin, Lin, Weng 2007); B
 * is 0 for two classes, so that the more probable class is the predicted one. platt[2k], platt[2k+1]. */
esp_status espi_platt_fit(const double *scores, const espi_targets *targets, double *platt, esp_error *err);

#endif
