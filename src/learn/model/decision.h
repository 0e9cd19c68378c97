/* One decision function, ready to be asked: the examples that support it alone, with a kernel of its own. What a model
 * whose kernel selects patterns predicts with. */
#ifndef ESPI_LEARN_MODEL_DECISION_H
#define ESPI_LEARN_MODEL_DECISION_H

#include "kernel/evaluate/bound.h"

typedef struct espi_decision {
    esp_dataset *example;
    double *coefficient;
    espi_scorer *scorer;
} espi_decision;

/* coefficient[i * stride] is that of example i of the data; `kernel` must outlive the result. After a failure there is
 * nothing to free. */
esp_status espi_decision_make(espi_decision *decision, const esp_kernel *kernel, const esp_dataset *data,
                              const double *coefficient, size_t stride, const esp_run *run, esp_error *err);
void espi_decision_free(espi_decision *decision);
/* scores[i * stride] = the sum for example i. May be called by several threads. */
esp_status espi_decision_score(const espi_decision *decision, const esp_dataset *data, const esp_run *run,
                               double *scores, size_t stride, esp_error *err);

#endif
