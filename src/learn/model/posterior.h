/* What the first prediction of a Gaussian process prepares: what its variances and covariances are computed with. */
#ifndef ESPI_LEARN_MODEL_POSTERIOR_H
#define ESPI_LEARN_MODEL_POSTERIOR_H

#include "learn/model/model.h"

struct espi_posterior {
    espi_bound *bound;                /* of the support examples */
    double *factor;                   /* n x n numbers for each output; NULL with inducing examples */
    double *root;                     /* S, n numbers for each output; NULL for a regression */
    struct espi_variances *variances; /* in the place of the factor; NULL: there is one */
};

/* Kernel values for the covariances of all examples of a dataset at once, with room to work in. */
typedef struct espi_joint {
    size_t rows;        /* examples */
    double *prior;      /* rows x rows: their kernel values, */
    double *cross;      /* rows x n: those with the support examples, */
    double *work;       /* rows x n, */
    double *covariance; /* and rows x rows: those of the output that was asked for last, both triangles */
} espi_joint;

/* The model is prepared (espi_model_score). ESP_ERR_MEMORY with the numbers if that is beyond the limit of the run, of
 * which `more` bytes are taken. */
esp_status espi_joint_new(espi_joint *joint, const esp_model *model, const esp_dataset *data, double more,
                          const esp_run *run, esp_error *err);
void espi_joint_free(espi_joint *joint);
/* The covariances of the function, without noise, in one output. */
esp_status espi_joint_covariance(espi_joint *joint, const esp_model *model, size_t output, const esp_run *run,
                                 esp_error *err);

#endif
