/* Perceptrons (Aiolli et al. 2007): one example after the other, an update where the score is not right.
 *
 *     S_k(x) = sum over updates e of c_k(e) K(x_e, x)
 *     y_k S_k(x) <= margin:  the example becomes an update, with c_k = y_k times the weight of its class
 *
 * y_k is +1 for the example's class, -1 for the others (one vs rest; two classes have one output, positive for the
 * second). An update remembers its step t, from which all that predicts follows, T being the number of steps:
 *
 *     last     c                        average  c (T - t + 1) / T
 *     vote     sum over e of (steps from this update to the next) * sign(S after e) / T, sign(0) being -1
 *
 * Classes are found as they come. They stand in the order of all learners (numbers by value, others by bytes); a class
 * that is new gets weights of 0, the second class makes one output, the third turns that into one for each of the first
 * two, each the negative of the other. Until then the one output stands for the only class there is.
 *
 * What is a tie in exact numbers must be one in every form of the sum, whatever its rounding. Scores of an example
 * therefore count as equal if they differ by at most ESPI_TIE of the sum of the absolute values of their terms.
 *
 * An update is a row of `examples`, in order; an example that errs in two epochs is there twice. */
#ifndef ESPI_LEARN_PERCEPTRON_PERCEPTRON_H
#define ESPI_LEARN_PERCEPTRON_PERCEPTRON_H

#include "kernel/evaluate/growing.h"
#include "learn/model/model.h"
#include "learn/online.h"

typedef struct espi_perceptron_settings {
    espi_settings common;
    espi_choice form; /* an espi_form */
    size_t epochs;
    double margin;
    bool average, vote, shuffle;
    char *class_weight; /* "label=w,label=w", NULL: none */
} espi_perceptron_settings;

typedef struct espi_met_class { /* a class that was met */
    char *name;
    double weight; /* of class-weight */
    double value;  /* orders the classes if all are numbers */
    espi_tally tally;
    size_t before; /* its place before the last class came; only while that is put in */
} espi_met_class;

typedef struct espi_perceptron {
    espi_online_state state;
    const espi_perceptron_settings *settings; /* those of the state */
    esp_kernel *kernel;                       /* every leaf names its column, once the first example is there */
    esp_dataset *examples;                    /* the updates, columns of the kernel only; then the current example */
    espi_growing *sum;                        /* NULL before the first update */
    espi_copier *copier; /* from `source`, the dataset that examples come from; made anew when that changes */
    const esp_dataset *source;
    espi_met_class *class; /* in order */
    size_t classes, class_capacity;
    size_t outputs;      /* 1, or one per class from three on */
    double *coefficient; /* update e, output k: coefficient[e * outputs + k] */
    uint64_t *step;      /* per update, from 1 */
    size_t updates, coefficient_capacity, step_capacity;
    uint64_t mistakes;      /* predicted wrongly before learning */
    double tie;             /* of the current example: scores that differ by less are equal */
    double *score, *change; /* scratch, per output */
} espi_perceptron;

/* Settings are taken over, also after a failure. `kernel` is copied. */
esp_status espi_perceptron_new(espi_settings *settings, const esp_kernel *kernel, espi_perceptron **out,
                               esp_error *err);
void espi_perceptron_free(espi_perceptron *p);
/* As espi_online_class; p->score holds the scores of the example then. */
esp_status espi_perceptron_learn(espi_perceptron *p, const esp_dataset *data, size_t row, esp_error *err);
void espi_perceptron_leave(espi_perceptron *p);
/* Accuracy and F1 (of the second of two classes, or the mean of more) of the predictions before learning; 0 where
 * undefined. */
void espi_perceptron_quality(const espi_perceptron *p, double *accuracy, double *f1);
/* Memory held. */
size_t espi_perceptron_bytes(const espi_perceptron *p);

/* From a perceptron to a model, and back (to_model.c): updates are inserted in the order they were made. */
esp_status espi_perceptron_model(const espi_perceptron *p, esp_model **out, esp_error *err);
esp_status espi_perceptron_from_model(const esp_model *model, espi_settings *settings, const esp_run *run,
                                      espi_perceptron **out, esp_error *err);
/* Parts of that: a class behind those there are, which stand in their order; the sum once more, from the updates. */
esp_status espi_perceptron_add_class(espi_perceptron *p, const char *name, esp_error *err);
esp_status espi_perceptron_build(espi_perceptron *p, const esp_run *run, esp_error *err);

/* For the class (folds.c). A class that a fold does not learn scores below all others there. */
esp_status espi_perceptron_out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                                       size_t trials, esp_error *err);

#endif
