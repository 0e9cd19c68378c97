/* Learning with kernels that select patterns (fseq, fsst).
 *
 * What such a kernel sums over is mined from the training examples of a problem and tells its two classes apart. So
 * each problem of a learner (learner.h: the only one, one per class, one per pair) has a kernel of its own, a
 * *variant*: the expression with what was selected from the training examples of that problem, and with Gram rows of
 * its own. One variant after the other has its rows; threads share the work inside. */
#ifndef ESPI_SELECTED_H
#define ESPI_SELECTED_H

#include "learn/learner.h"
#include "mine/mine.h"

/* One decision function, ready to be asked: the examples that support it alone. */
typedef struct espi_decision {
    esp_dataset *example;
    double *coefficient;
    espi_folded *folded;
} espi_decision;

/* coefficient[i * stride] is that of example i of the data; `kernel` must outlive the result. After a failure there is
 * nothing to free. */
esp_status espi_decision_make(espi_decision *decision, const esp_kernel *kernel, const esp_dataset *data,
                              const double *coefficient, size_t stride, const esp_run *run, esp_error *err);
void espi_decision_free(espi_decision *decision);
/* scores[i * stride] = the sum for example i. May be called by several threads. */
esp_status espi_decision_score(const espi_decision *decision, const esp_dataset *data, const esp_run *run,
                               double *scores, size_t stride, esp_error *err);

/* ESP_ERR_PARAM if the kernel selects and the learner has no classes to select by. */
esp_status espi_selected_check(const esp_kernel *kernel, const espi_settings *settings, esp_error *err);

/* What is learned from and what is scored: rows of the data, increasing. Nothing is known of the latter but what is
 * scored. */
typedef struct espi_selected {
    const esp_kernel *kernel;
    const esp_dataset *data;
    const espi_targets *targets;
    const uint32_t *train, *test;
    size_t trained, tested;
} espi_selected;

/* What one selection serves: settings under which the problems are the same ones. */
typedef struct espi_selected_run {
    const espi_settings *settings;
    bool warm;      /* may start from the solution of the run before */
    espi_fit fit;   /* made: espi_fit_free */
    double *scores; /* row r, output k: scores[r * outputs + k] of the rows that are scored; NULL: not wanted */
} espi_selected_run;

/* Mines, fits and scores, for all runs together. `variant`, per output, gets the kernels; NULL: they are not wanted. On
 * failure all that was made is freed. */
esp_status espi_selected_fit(const espi_selected *selected, espi_selected_run *fits, size_t count, const esp_run *run,
                             esp_kernel **variant, esp_error *err);

/* As espi_out_of_fold: patterns are selected anew in every fold. */
esp_status espi_selected_out_of_fold(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                                     const espi_targets *targets, const uint32_t *fold, size_t folds,
                                     const esp_run *run, double *scores, esp_error *err);

#endif
