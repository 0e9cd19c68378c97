/* Models: what prediction needs, and what a model file holds. */
#ifndef ESPI_MODEL_H
#define ESPI_MODEL_H

#include "data/dataset.h"
#include "kernel/evaluate/bound.h"

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

typedef struct espi_process { /* of a Gaussian process: what its variances need besides kernel and support examples */
    double scale;             /* of the targets: variances are those of standardised targets times its square */
    double noise;             /* variance of the noise of standardised targets; 0 for classes */
    double jitter;            /* added to the diagonal besides it */
    double *curvature;        /* per support example: W of Laplace's approximation; NULL for a regression */
    double *reduction;        /* with inducing examples, which alone are support examples: the symmetric matrix P of the
                                 variance        K(x, x) - k'P k; NULL: all examples are */
} espi_process;

struct esp_model {
    char *learner;  /* "svm", "svr", "perceptron", "gp" */
    char *settings; /* "C=10 multiclass=ovr ...": all of them, one blank between, as given to the learner */
    char *summary;  /* "key<TAB>value" lines about the training run; may be empty */
    esp_kernel *kernel;
    esp_dataset *support; /* the support examples, with the columns that the kernel uses; no target */
    char **class_name;    /* NULL for a regression */
    size_t classes;       /* 0 for a regression; else at least 2 */
    bool one_vs_one; /* outputs are the pairs (0,1), (0,2), ..., (1,2), ...; positive score: the first of the pair */
    size_t outputs;  /* decision functions: 1 for a regression and for two classes (positive score: class 1, the
                        second), else one per class or per pair */
    double *coefficient;            /* support example i, output k: coefficient[i * outputs + k]; what predicts */
    double *bias;                   /* per output */
    double *platt;                  /* NULL, or per output A and B: P = 1 / (1 + exp(A f + B)) */
    espi_history *history;          /* NULL: not learned online */
    bool vote;                      /* updates vote (perceptron.h) instead of being summed up; needs a history */
    esp_kernel **variant;           /* NULL, or per output the kernel with the patterns that it selects (selected.h) */
    espi_process *process;          /* NULL: no Gaussian process */
    pthread_mutex_t lock;           /* guards the making of these, by the first prediction; all else never changes */
    espi_folded *folded;            /* all outputs; NULL where there are variants */
    struct espi_decision *decision; /* per output, where there are */
    struct espi_posterior *posterior; /* of a Gaussian process (gp.h) */
};

/* A model of zeros; NULL if memory is out. */
esp_model *espi_model_new(void);

/* Frees variants, some of which may be NULL, and their array. */
void espi_variants_free(esp_kernel **variant, size_t count);

/* What the first prediction makes of a model with variants; espi_decisions_free releases it. */
esp_status espi_decisions_new(const esp_model *model, const esp_run *run, struct espi_decision **out, esp_error *err);
void espi_decisions_free(struct espi_decision *decision, size_t count);

#endif
