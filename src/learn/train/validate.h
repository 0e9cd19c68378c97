/* What cross-validation and grid search have in common. */
#ifndef ESPI_VALIDATE_H
#define ESPI_VALIDATE_H

#include "learn/learner.h"

typedef struct espi_validation {
    espi_settings settings;
    espi_targets targets;
    uint32_t *fold;
    size_t folds;
} espi_validation;

/* Settings, targets and folds; espi_validation_end releases them, also after a failure. */
esp_status espi_validation_start(espi_validation *v, const char *learner, const esp_kernel *kernel,
                                 const esp_dataset *data, const esp_setting *settings, size_t count, size_t folds,
                                 uint64_t seed, esp_error *err);
void espi_validation_end(espi_validation *v);

typedef struct espi_split { /* one fold: what is trained on, what is tested */
    uint32_t *train, *test;
    size_t trained, tested;
    espi_rows *rows; /* of what is trained on */
} espi_split;

/* espi_split_free releases it, also after a failure. */
esp_status espi_split_make(espi_split *s, const uint32_t *fold, size_t number, espi_rows *all, esp_error *err);
void espi_split_free(espi_split *s);
/* Fits on the fold's training part and puts the scores of its test part to their places. */
esp_status espi_split_score(const espi_split *s, const espi_settings *settings, const espi_targets *targets,
                            espi_rows *all, espi_fit *fit, const espi_fit *warm, double warm_cost, const esp_run *run,
                            double *scores, esp_error *err);

#endif
