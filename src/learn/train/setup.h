/* From what users give (the name of a learner, settings as texts) to a problem that has been checked. */
#ifndef ESPI_LEARN_TRAIN_SETUP_H
#define ESPI_LEARN_TRAIN_SETUP_H

#include "learn/learner.h"

typedef struct espi_setup {
    espi_settings *settings;
    espi_targets targets;
    espi_problem problem;
    esp_run run; /* the caller's, without its group: learners do all of a problem, or of some folds */
} espi_setup;

/* All that can be known to be wrong before hours of work is an error here. espi_setup_end releases it, also after a
 * failure. */
esp_status espi_setup_start(espi_setup *setup, const char *learner, const esp_kernel *kernel, const esp_dataset *data,
                            const esp_setting *settings, size_t count, const esp_run *run, esp_error *err);
void espi_setup_end(espi_setup *setup);

/* ESP_ERR_PARAM unless all ranks of the run's group were given the same; the grid may be empty. Data are compared
 * unless the problem has none. */
esp_status espi_setup_agree(const espi_setup *setup, const esp_setting *settings, size_t count, const esp_grid *grid,
                            size_t lines, size_t folds, uint64_t seed, const esp_run *run, esp_error *err);

/* Whether the learner can learn with these settings, kernel and targets. */
esp_status espi_setup_check_kernel(const espi_settings *settings, const esp_kernel *kernel, esp_error *err);
esp_status espi_setup_check_targets(const espi_settings *settings, const espi_targets *targets, esp_error *err);

#endif
