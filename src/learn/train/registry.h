/* The learners that there are. */
#ifndef ESPI_LEARNERS_H
#define ESPI_LEARNERS_H

#include "learn/learner.h"

/* The learner of this name; NULL and ESP_ERR_PARAM's sentence if there is none. */
const espi_learner *espi_learner_find(const char *name, esp_error *err);

#endif
