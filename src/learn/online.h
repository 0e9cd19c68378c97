/* Learners that take one example after the other: what they do beyond espi_learner. Runs over data and streams,
 * checkpoints and resuming (train/online.c) know them only through this. */
#ifndef ESPI_LEARN_ONLINE_H
#define ESPI_LEARN_ONLINE_H

#include "learn/learner.h"

/* The state of such a learner; each puts its own fields behind this. */
typedef struct espi_online_state {
    espi_settings *settings; /* owned */
    size_t wanted_epochs;    /* of the settings: how often to go through the data, ... */
    bool shuffle;            /* ... and whether in random order */
    uint64_t steps;          /* examples seen, all epochs */
    uint64_t epochs;         /* complete ones of the current run */
    uint64_t at;             /* examples seen in its present epoch */
    uint64_t origin;         /* of the current run (model/model.h) */
    esp_run run;             /* asked by long steps; zeros between the calls of a user */
} espi_online_state;

typedef struct espi_online_class {
    /* Settings are taken over, also after a failure. `kernel` is copied. */
    esp_status (*start)(espi_settings *settings, const esp_kernel *kernel, espi_online_state **out, esp_error *err);
    /* Goes on where a model with a history stopped, to the last bit. Settings as above. */
    esp_status (*restore)(const esp_model *model, espi_settings *settings, const esp_run *run, espi_online_state **out,
                          esp_error *err);
    void (*free)(espi_online_state *state);
    /* Learns from one example, a row of a dataset with a target. The dataset must stay until the next one or `leave`.
     * After ESP_ERR_PARAM, ESP_ERR_PARSE and ESP_ERR_CANCELLED the example was not seen; after other failures the state
     * can only be freed. */
    esp_status (*learn)(espi_online_state *state, const esp_dataset *data, size_t row, esp_error *err);
    /* Forgets the dataset that the last example came from. */
    void (*leave)(espi_online_state *state);
    /* The model as it stands. ESP_ERR_PARAM before the first example, ESP_ERR_PARSE before the second class. */
    esp_status (*model)(const espi_online_state *state, esp_model **out, esp_error *err);
    size_t (*bytes)(const espi_online_state *state); /* memory held */
    /* Mistakes, updates, accuracy, F1, classes, nodes and vertices. */
    void (*measure)(const espi_online_state *state, esp_online_stats *out);
    /* Settings of a model were replaced by those given: switches off what these exclude. May be NULL. */
    void (*replaced)(espi_settings *settings, const esp_setting *given, size_t count);
} espi_online_class;

/* The order of `count` examples in an epoch (from 0) if they are shuffled; order[0 .. count) is 0, 1, 2, ... before. */
void espi_epoch_shuffle(uint64_t seed, uint64_t epoch, uint32_t *order, size_t count);

#endif
