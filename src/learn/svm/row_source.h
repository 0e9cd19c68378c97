/* Where the Gram rows of a machine's problems come from. There are three sources, each in a file row_source_*.c:
 *
 *     whole       one Gram matrix of all examples; problems, folds and values of C share its rows
 *     pivots      features from a few examples, drawn for each fold, stand for the matrix
 *     selected    a matrix for each fold and problem, since each selects its own patterns */
#ifndef ESPI_LEARN_SVM_ROW_SOURCE_H
#define ESPI_LEARN_SVM_ROW_SOURCE_H

#include "learn/svm/machine.h"

typedef struct espi_split { /* what is trained on and what is tested: rows of the data, increasing */
    uint32_t *train, *test;
    size_t trained, tested;
} espi_split;

typedef struct espi_row_source_class espi_row_source_class;
typedef struct espi_row_source { /* each source puts its own fields behind this */
    const espi_row_source_class *class;
    espi_problem problem;
    const espi_split *split; /* the current one */
} espi_row_source;

struct espi_row_source_class {
    size_t size;    /* of the struct that begins with espi_row_source */
    bool same_rows; /* under all settings that pose the same problems: one solution is then a start for another */
    /* What all splits share; may both be NULL. After a failure `close` follows, too. */
    esp_status (*open)(espi_row_source *source, esp_error *err);
    void (*close)(espi_row_source *source);
    /* Makes ready for training on source->split under these settings; `leave` follows, also after a failure. */
    esp_status (*enter)(espi_row_source *source, const espi_settings *settings, esp_error *err);
    void (*leave)(espi_row_source *source);

    /* Either `rows`: those of all examples trained on, for all problems alike; `score` puts the scores of what is
     * tested to their places, and `finish` (may be NULL) turns coefficients into those of a model. */
    espi_rows *(*rows)(espi_row_source *source);
    esp_status (*score)(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err);
    esp_status (*finish)(espi_row_source *source, espi_fit *fit, esp_error *err);

    /* Or, one problem after the other, `rows_of` those of its examples alone, and `score_of`; `take` hands over the
     * kernel with what was selected for it, or makes one that selects nothing if its rows were never asked for. */
    esp_status (*rows_of)(espi_row_source *source, size_t problem, espi_rows **out, esp_error *err);
    esp_status (*score_of)(espi_row_source *source, const espi_fit *fit, size_t problem, double *scores,
                           esp_error *err);
    esp_status (*take)(espi_row_source *source, size_t problem, esp_kernel **out, esp_error *err);
    void (*end_of)(espi_row_source *source); /* the problem whose rows were asked for last */
};

extern const espi_row_source_class espi_row_source_whole, espi_row_source_pivots, espi_row_source_selected;

#endif
