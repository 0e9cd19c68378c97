/* Predictions of classes or numbers, from scores of decision functions. */
#ifndef ESPI_LEARN_PREDICTIONS_H
#define ESPI_LEARN_PREDICTIONS_H

#include "learn/targets.h"

struct esp_predictions {
    size_t count, classes;
    char **class_name; /* owned */
    size_t columns;
    double *column;      /* example i: column[i * columns + c] */
    uint32_t *winner;    /* class per example; NULL for a regression */
    double *probability; /* example i: probability[i * classes + c]; NULL: none */
    double *variance; /* of a Gaussian process, example i: [2 i] of the function, [2 i + 1] of the target; NULL: none */
};

/* From scores[i * outputs + k], bias included. `platt` may be NULL. */
esp_status espi_predictions_make(size_t count, const double *scores, size_t classes, const char *const *class_name,
                                 bool one_vs_one, const double *platt, esp_predictions **out, esp_error *err);

/* Adds the variances of a Gaussian process, which are copied, and for two classes the probabilities that follow from
 * them. */
esp_status espi_predictions_spread(esp_predictions *predictions, const double *variance, esp_error *err);

/* From the scores of one example to the class, and its score per column of the predictions (NULL: not wanted). */
size_t espi_decide(const double *score, size_t classes, bool one_vs_one, double *per_class);

#endif
