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
    double *variance;    /* of a Gaussian process, example i, column c: with k = i * columns + c, [2 k] of the function,
                            [2 k + 1] of the target; NULL: none */
};

/* From scores[i * outputs + k], bias included. `platt` may be NULL. */
esp_status espi_predictions_make(size_t count, const double *scores, size_t classes, const char *const *class_name,
                                 bool one_vs_one, const double *platt, esp_predictions **out, esp_error *err);

/* Adds the variances of a Gaussian process, which are copied, and for classes the probabilities that follow from them
 * and the class that has the highest. */
esp_status espi_predictions_spread(esp_predictions *predictions, const double *variance, esp_error *err);

/* From the scores of one example to the class, and its score per column of the predictions (NULL: not wanted). */
size_t espi_decide(const double *score, size_t classes, bool one_vs_one, double *per_class);

/* The same from the scores and variances of a Gaussian process: the most probable class and, unless `probability` is
 * NULL, the probabilities of all. */
size_t espi_decide_spread(const double *score, const double *variance, size_t classes, double *probability);
/* The logarithm of the density that a normal distribution has at a distance from its mean, and of a probability. What
 * is too small to be told, or 0, has a logarithm too. */
double espi_log_density(double distance, double variance);
double espi_log_probability(double probability);

#endif
