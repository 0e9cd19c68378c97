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
#ifndef ESPI_PERCEPTRON_H
#define ESPI_PERCEPTRON_H

#include "kernel/evaluate/growing.h"
#include "learn/learner.h"
#include "learn/model/model.h"

#define ESPI_TIE 1e-10

typedef struct espi_class {
    char *name;
    double weight; /* of class-weight */
    double value;  /* orders the classes if all are numbers */
    espi_tally tally;
    size_t before; /* its place before the last class came; only while that is put in */
} espi_class;

typedef struct espi_perceptron {
    espi_settings settings;
    esp_kernel *kernel;    /* every leaf names its column, once the first example is there */
    esp_dataset *examples; /* the updates, columns of the kernel only; then the example at hand */
    espi_growing *sum;     /* NULL before the first update */
    espi_copier *copier;   /* from `source`, the dataset that examples come from; made anew when that changes */
    const esp_dataset *source;
    espi_class *class; /* in order */
    size_t classes, class_capacity;
    size_t outputs;      /* 1, or one per class from three on */
    double *coefficient; /* update e, output k: coefficient[e * outputs + k] */
    uint64_t *step;      /* per update, from 1 */
    size_t updates, coefficient_capacity, step_capacity;
    uint64_t steps;         /* examples seen, all epochs */
    uint64_t mistakes;      /* predicted wrongly before learning */
    uint64_t epochs;        /* complete ones of the run at hand */
    uint64_t at;            /* examples seen in its present epoch */
    double tie;             /* of the example at hand: scores that differ by less are equal */
    uint64_t origin;        /* of the run at hand (model.h) */
    double *score, *change; /* scratch, per output */
    esp_run run;            /* asked by long sums; zeros between the calls of a user */
} espi_perceptron;

/* Settings are taken over (the caller's are empty then). `kernel` is copied. */
esp_status espi_perceptron_new(espi_settings *settings, const esp_kernel *kernel, espi_perceptron **out,
                               esp_error *err);
void espi_perceptron_free(espi_perceptron *p);
/* Learns from one example, a row of a dataset with a target; p->score holds its scores then. The dataset must stay
 * until the next one or espi_perceptron_leave. After ESP_ERR_PARAM, ESP_ERR_PARSE and ESP_ERR_CANCELLED the example was
 * not seen; after other failures p can only be freed. */
esp_status espi_perceptron_learn(espi_perceptron *p, const esp_dataset *data, size_t row, esp_error *err);
/* Forgets the dataset that the last example came from. */
void espi_perceptron_leave(espi_perceptron *p);
/* The order of `count` examples in an epoch (from 0) if they are shuffled; order[0 .. count) is 0, 1, 2, ... before. */
void espi_epoch_shuffle(uint64_t seed, uint64_t epoch, uint32_t *order, size_t count);
/* Accuracy and F1 (of the second of two classes, or the mean of more) of the predictions before learning; 0 where
 * undefined. */
void espi_perceptron_quality(const espi_perceptron *p, double *accuracy, double *f1);
/* Memory held. */
size_t espi_perceptron_bytes(const espi_perceptron *p);
/* The model as it stands. ESP_ERR_PARAM before the first example, ESP_ERR_PARSE before the second class. */
esp_status espi_perceptron_model(const espi_perceptron *p, esp_model **out, esp_error *err);
/* Goes on where a model that has a history stopped, to the last bit: updates are inserted in the order they were made.
 * Settings as above. */
esp_status espi_perceptron_from_model(const esp_model *model, espi_settings *settings, const esp_run *run,
                                      espi_perceptron **out, esp_error *err);
/* A number that tells models apart; never 0. */
uint64_t espi_model_digest(const esp_model *model);
/* Parts of that: a class behind those there are, which stand in their order; the sum anew, from the updates. */
esp_status espi_perceptron_add_class(espi_perceptron *p, const char *name, esp_error *err);
esp_status espi_perceptron_build(espi_perceptron *p, const esp_run *run, esp_error *err);

/* Scores of a model whose updates vote: scores[i * outputs + k]. */
esp_status espi_vote_score(const esp_model *model, const esp_dataset *data, const esp_run *run, double *scores,
                           esp_error *err);

/* Scores of every example by perceptrons that have not seen it, in the layout of all learners. A class that a fold does
 * not learn scores below all others there. */
esp_status espi_perceptron_folds(const espi_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                                 const espi_targets *targets, const uint32_t *fold, size_t folds, const esp_run *run,
                                 double *scores, esp_error *err);

#endif
