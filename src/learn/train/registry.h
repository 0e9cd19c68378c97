/* The learners that there are. */
#ifndef ESPI_LEARN_TRAIN_REGISTRY_H
#define ESPI_LEARN_TRAIN_REGISTRY_H

#include "learn/learner.h"

/* The learner of this name; NULL and ESP_ERR_PARAM's sentence if there is none. */
const espi_learner *espi_learner_find(const char *name, esp_error *err);

#endif
