/* Predictions of classes or numbers, from scores of decision functions. */
#ifndef ESPI_PREDICTIONS_H
#define ESPI_PREDICTIONS_H

#include "learn/model.h"

struct esp_predictions {
    size_t count, classes;
    char **class_name;   /* owned */
    size_t columns;
    double *column;      /* example i: column[i * columns + c] */
    uint32_t *winner;    /* class per example; NULL for a regression */
    double *probability; /* example i: probability[i * classes + c]; NULL: none */
};

/* From scores[i * outputs + k], bias included. `platt` may be NULL. */
esp_status espi_predictions_make(size_t count, const double *scores, size_t classes, const char *const *class_name,
                                 bool one_vs_one, const double *platt, esp_predictions **out, esp_error *err);

#endif
