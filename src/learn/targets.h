/* What is to be learned: the targets of all examples of a dataset, as classes or as numbers; and weights of classes. */
#ifndef ESPI_LEARN_TARGETS_H
#define ESPI_LEARN_TARGETS_H

#include "data/dataset.h"

struct espi_settings;

typedef struct espi_targets {
    size_t count;
    size_t classes;     /* 0: a regression */
    const char **name;  /* classes in order: numbers by value, others by bytes; the texts belong to the dataset */
    uint32_t *class_of; /* per example; ESPI_NO_CLASS only where a learner does not learn from it */
    double *value;      /* per example, for a regression */
} espi_targets;

/* For learners (learner.h). ESP_ERR_PARSE if there is no target, one class only, or no number where one is needed. */
esp_status espi_targets_classes(const struct espi_settings *settings, const esp_dataset *data, espi_targets *out,
                                esp_error *err);
esp_status espi_targets_numbers(const struct espi_settings *settings, const esp_dataset *data, espi_targets *out,
                                esp_error *err);
void espi_targets_free(espi_targets *targets);

/* The order of classes: by value (0 for all unless all are numbers), then by bytes. */
int espi_class_order(const char *name_a, double value_a, const char *name_b, double value_b);
/* The class that a label of data stands for: by name, or else by value, so that 1 and 1.0 are one class unless both are
 * names of classes. ESPI_NO_CLASS: none of these. */
#define ESPI_NO_CLASS UINT32_MAX
uint32_t espi_class_of(const char *const *class_name, size_t classes, const char *label);

/* Decision functions for so many classes: one for two classes (positive: the second), else one per class, or one per
 * pair. Class numbers fit 31 bits, so that nothing overflows. */
size_t espi_class_outputs(size_t classes, bool one_vs_one);
/* The classes of a decision function: positive, and negative (`classes`: all others). */
void espi_output_classes(bool one_vs_one, size_t classes, size_t output, size_t *positive, size_t *negative);

/* ---- folds (folds.c) */

/* fold[i] of each example, classes spread evenly, drawn from the seed. ESP_ERR_PARAM if there are too many folds. */
esp_status espi_folds_make(const espi_targets *targets, size_t folds, uint64_t seed, uint32_t *fold, esp_error *err);
/* What is trained on and what is tested in one fold, in order; both have room for all `count` examples. */
void espi_fold_split(const uint32_t *fold, size_t count, size_t number, uint32_t *train, size_t *trained,
                     uint32_t *test, size_t *tested);

/* ---- weights by class (weights.c): "label=weight,label=weight" */

/* The next "label=weight"; *text goes on behind it. False, with *text where it was, if it is none. */
bool espi_weight_next(const char **text, const char **label, size_t *size, double *weight);
/* Sets the weights of the classes that the text names. ESP_ERR_PARAM if it is wrong or names another class. */
esp_status espi_weights_parse(const char *text, const espi_targets *targets, double *weight, esp_error *err);
/* Only asks whether that would fail; NULL is a text without weights. */
esp_status espi_weights_check(const char *text, const espi_targets *targets, esp_error *err);

#endif
