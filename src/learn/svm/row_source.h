/* Where the kernel values of a machine's problems come from. There are four sources, each in a file row_source_*.c:
 *
 *     whole       one Gram matrix of all examples; problems, folds and values of C share its rows
 *     pivots      features from a few examples, drawn for each fold, stand for the matrix
 *     selected    a matrix for each fold and problem, since each selects its own patterns
 *     folded      no rows at all, but sums over the examples (folded.h) */
#ifndef ESPI_LEARN_SVM_ROW_SOURCE_H
#define ESPI_LEARN_SVM_ROW_SOURCE_H

#include "kernel/evaluate/bound.h"
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

/* Of a source that serves all problems of a fit. */
typedef struct espi_shared_source {
    /* As espi_training_run, on the current split. */
    esp_status (*fit)(espi_row_source *source, espi_training *training, esp_error *err);
    /* scores[t * outputs + k] of the t-th example tested. */
    esp_status (*score)(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err);
    /* Turns coefficients of a fit on all examples into those of a model; may be NULL. */
    esp_status (*finish)(espi_row_source *source, espi_fit *fit, esp_error *err);
} espi_shared_source;

/* Of a source with other rows for each problem: one problem after the other, `rows` ... `end`. */
typedef struct espi_own_rows {
    esp_status (*rows)(espi_row_source *source, size_t problem, espi_rows **out, esp_error *err); /* of its examples */
    esp_status (*score)(espi_row_source *source, const espi_fit *fit, size_t problem, double *scores, esp_error *err);
    /* Hands over the kernel with what was selected for the problem; one that selects nothing where the problem is not
     * the current one. */
    esp_status (*take)(espi_row_source *source, size_t problem, esp_kernel **out, esp_error *err);
    void (*end)(espi_row_source *source); /* of the current problem, also after a failure */
} espi_own_rows;

struct espi_row_source_class {
    size_t size;    /* of the struct that begins with espi_row_source */
    bool same_rows; /* under all settings that pose the same problems: one solution is then a start for another */
    /* What all splits share; may both be NULL. After a failure `close` follows, too. */
    esp_status (*open)(espi_row_source *source, esp_error *err);
    void (*close)(espi_row_source *source);
    /* Makes ready for training on source->split under these settings; `leave` follows, also after a failure. */
    esp_status (*enter)(espi_row_source *source, const espi_settings *settings, esp_error *err);
    void (*leave)(espi_row_source *source);
    const espi_shared_source *shared; /* one of the two; the other is NULL */
    const espi_own_rows *own;
};

/* What sources with shared rows have: `all`, of all examples, and `part`, of what is trained on; NULL: that is all. */
typedef struct espi_rows_of_split {
    espi_row_source source;
    espi_bound *bound;
    espi_rows *all, *part;
} espi_rows_of_split;
esp_status espi_rows_of_split_fit(espi_row_source *source, espi_training *training, esp_error *err);
esp_status espi_rows_of_split_score(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err);

/* ------------------------------------------------------------------- fits */

esp_status espi_split_make(espi_split *split, size_t count, esp_error *err); /* with room for so many examples */
void espi_split_free(espi_split *split);

/* Of all sources the one that the kernel, the data and the settings call for. */
const espi_row_source_class *espi_source_for(const espi_problem *problem, const espi_settings *settings);
/* Opens it; espi_source_close follows, also after a failure. */
esp_status espi_source_open(const espi_problem *problem, const espi_settings *settings, espi_row_source **out,
                            esp_error *err);
void espi_source_close(espi_row_source *source);

/* What a fit on the split of a source is made on. */
espi_training espi_source_training(const espi_row_source *source, const espi_settings *settings, espi_fit *fit);

typedef struct espi_own_fits { /* on a source with own rows: fits that pose the same problems share the rows of each */
    espi_row_source *source;
    espi_training *training; /* per fit */
    double *const *scores;   /* per fit; NULL: not wanted */
    size_t count;
    esp_kernel **variant; /* per problem: the kernels; NULL: not wanted */
} espi_own_fits;
/* On failure all fits are freed. */
esp_status espi_own_fits_run(const espi_own_fits *fits, esp_error *err);

typedef struct espi_trial_progress { /* counted in fits: one for each trial and fold */
    size_t done, all;
} espi_trial_progress;
/* Fits and scores trials of one kind fold by fold. Progress is told unless it is NULL. */
esp_status espi_source_validate(espi_row_source *source, const espi_folds *folds, const espi_trial *const *trial,
                                size_t trials, espi_trial_progress *progress, esp_error *err);

extern const espi_row_source_class espi_row_source_whole, espi_row_source_pivots, espi_row_source_selected,
    espi_row_source_folded;

#endif
