/* Models: what prediction needs, and what a model file holds. */
#ifndef ESPI_LEARN_MODEL_MODEL_H
#define ESPI_LEARN_MODEL_MODEL_H

#include "kernel/evaluate/bound.h"
#include "learn/learner.h"

#include <pthread.h>

typedef struct espi_tally { /* of one class: predictions made before learning from the example */
    uint64_t hits, misses, false_alarms;
} espi_tally;

typedef struct espi_history { /* of a model learned example by example: what it takes to go on */
    uint64_t *step;           /* per support example: the step that made it one, from 1, increasing */
    double *change;           /* support example i, output k: what step i added; change[i * outputs + k] */
    espi_tally *tally;        /* per class */
    uint64_t steps;           /* examples seen, in all epochs */
    uint64_t mistakes;
    uint64_t epochs; /* complete ones of the last run */
    uint64_t origin; /* of an unfinished run: the digest of the model that it resumed; else 0 */
    uint64_t at;     /* examples seen in its present epoch */
} espi_history;

typedef struct espi_gaussian { /* of a Gaussian process: what its variances need beyond kernel and support examples */
    double scale;              /* of the targets: variances are those of standardised targets times its square */
    double noise;              /* variance of the noise of standardised targets; 0 for classes */
    double jitter;             /* added to the diagonal beyond the noise */
    double *curvature; /* W of Laplace's approximation, of support example i in output k: [i * outputs + k]; NULL
                          for a regression */
    double *reduction; /* where inducing examples alone are support examples: the symmetric matrix P of the variance
                          K(x, x) - k'P k; NULL: all examples are */
} espi_gaussian;

struct esp_model {
    char *learner;  /* its name */
    char *settings; /* "C=10 multiclass=ovr ...": all of them, one blank between, as given to the learner */
    char *summary;  /* "key<TAB>value" lines about the training run; may be empty */
    esp_kernel *kernel;
    esp_dataset *support; /* the support examples, with the columns that the kernel uses; no target */
    char **class_name;    /* NULL for a regression */
    size_t classes;       /* 0 for a regression; else at least 2 */
    bool one_vs_one; /* outputs are the pairs (0,1), (0,2), ..., (1,2), ...; positive score: the first of the pair */
    size_t outputs;  /* decision functions: 1 for a regression and for two classes (positive score: class 1, the
                        second), else one per class or per pair */
    double *coefficient;              /* support example i, output k: coefficient[i * outputs + k]; what predicts */
    double *bias;                     /* per output */
    double *platt;                    /* NULL, or per output A and B: P = 1 / (1 + exp(A f + B)) */
    espi_history *history;            /* NULL: not learned online */
    bool vote;                        /* updates vote (vote.c) instead of being summed up; needs a history */
    esp_kernel **variant;             /* NULL, or per output the kernel with the patterns that it selects */
    espi_gaussian *gaussian;          /* NULL: no Gaussian process */
    pthread_mutex_t lock;             /* guards the making of these, by the first prediction; all else never changes */
    espi_scorer *scorer;              /* all outputs; NULL where there are variants */
    struct espi_decision *decision;   /* per output, where there are */
    struct espi_posterior *posterior; /* of a Gaussian process (posterior.c) */
};

/* A model of zeros; NULL if memory is out. */
esp_model *espi_model_new(void);

/* A model with the name and settings of its learner, its classes (copied) and a summary, which it takes over; NULL:
 * memory was out. The rest is zeros. */
esp_status espi_model_begin(const espi_settings *settings, const char *const *class_name, size_t classes, char *summary,
                            esp_model **out, esp_error *err);

/* A number that tells models apart; never 0. */
uint64_t espi_model_digest(const esp_model *model);

/* Frees variants, some of which may be NULL, and their array. */
void espi_variants_free(esp_kernel **variant, size_t count);

/* ------------------------------------------------------------- predicting */

/* Scores count as equal if they differ by at most this part of the sum of the absolute values of their terms: what is a
 * tie in exact numbers must be one in every form of the sum, whatever its rounding. */
#define ESPI_TIE 1e-10

/* Prepares the model and writes the scores of its decision functions, biases included: scores[i * outputs + k].
 * ESP_ERR_PARAM if the columns of the data do not fit. */
esp_status espi_model_score(const esp_model *model, const esp_dataset *data, const esp_run *run, double *scores,
                            esp_error *err);

/* Scores of a model whose updates vote: scores[i * outputs + k]. */
esp_status espi_vote_score(const esp_model *model, const esp_dataset *data, const esp_run *run, double *scores,
                           esp_error *err);

/* What the first prediction makes of a Gaussian process: the factor of its matrix, count x count numbers, for each
 * output. One with inducing examples has its matrix already. */
esp_status espi_posterior_new(const esp_model *model, const esp_run *run, struct espi_posterior **out, esp_error *err);
void espi_posterior_free(struct espi_posterior *posterior);
/* variance[2 k], variance[2 k + 1] of output o at example i of `data`, with k = i * outputs + o: that of the function,
 * and that of the target. May be called by several threads. */
esp_status espi_posterior_variance(const esp_model *model, const esp_dataset *data, const esp_run *run,
                                   double *variance, esp_error *err);

#endif
