/* Models: what prediction needs, and what a model file holds. */
#ifndef ESPI_MODEL_H
#define ESPI_MODEL_H

#include "data/dataset.h"
#include "kernel/bound.h"

#include <pthread.h>

struct esp_model {
    char *learner;       /* "svm", "svr" */
    char *settings;      /* "C=10 multiclass=ovr ...": all of them, one blank between, as given to the learner */
    char *summary;       /* "key<TAB>value" lines about the training run; may be empty */
    esp_kernel *kernel;
    esp_dataset *support; /* the support examples, with the columns that the kernel uses; no target */
    char **class_name;    /* NULL for a regression */
    size_t classes;       /* 0 for a regression; else at least 2 */
    bool one_vs_one;      /* outputs are the pairs (0,1), (0,2), ..., (1,2), ...; positive score: the first of the pair */
    size_t outputs;       /* decision functions: 1 for a regression and for two classes (positive score: class 1, the
                             second), else one per class or per pair */
    double *coefficient;  /* support example i, output k: coefficient[i * outputs + k] */
    double *bias;         /* per output */
    double *platt;        /* NULL, or per output A and B: P = 1 / (1 + exp(A f + B)) */
    pthread_mutex_t lock; /* guards `folded`, which the first prediction makes; all else never changes */
    espi_folded *folded;
};

/* A model of zeros; NULL if memory is out. */
esp_model *espi_model_new(void);

#endif
