/* A kernel bound to two datasets, the rows and the columns of its Gram matrix: the interface that learners use. */
#ifndef ESPI_KERNEL_EVALUATE_BOUND_H
#define ESPI_KERNEL_EVALUATE_BOUND_H

#include "kernel/expression/kernel.h"

typedef struct espi_norm { /* of one ESPI_NORM op: K(x, x) of what is normalised, and 1/sqrt of it */
    espi_wide *self[2];    /* per espi_side */
    double *scale[2];      /* 0 where K(x, x) = 0; NaN where it takes a wide number */
} espi_norm;

typedef struct espi_bound {
    const esp_kernel *kernel;
    size_t count[2];  /* examples per espi_side */
    bool symmetric;   /* rows and columns are the same dataset */
    espi_part **part; /* per leaf */
    espi_norm *norm;  /* per op; filled for ESPI_NORM */
    size_t depth;     /* operands that wait at the same time, at most */
    const esp_dataset *cols;
    const struct espi_bound *base; /* lends what belongs to the columns; NULL: none */
} espi_bound;

/* `kernel` and both datasets must outlive the result. ESP_ERR_PARAM if a column is missing or ambiguous. */
esp_status espi_bind(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols, const esp_run *run,
                     espi_bound **out, esp_error *err);
/* Binds other rows to the columns of a symmetric bound, which must outlive the result and is not prepared again. */
esp_status espi_bind_to_cols(const espi_bound *base, const esp_dataset *rows, const esp_run *run, espi_bound **out,
                             esp_error *err);
void espi_bound_free(espi_bound *bound);

/* What one thread needs to ask for values. */
typedef struct espi_workspace {
    const espi_bound *bound;
    void **part;    /* per leaf */
    double *buffer; /* depth - 1 vectors */
    size_t capacity;
    espi_wide *wide;    /* depth numbers */
    const esp_run *run; /* the calling thread's; NULL in others */
} espi_workspace;
/* `run` only for the thread that was called with it. */
esp_status espi_workspace_new(const espi_bound *bound, const esp_run *run, espi_workspace **out, esp_error *err);
void espi_workspace_free(espi_workspace *workspace);

/* out[j - from] = K(row, j) for j = from .. to-1. The part of the kernel up to `op` (kernel->ops - 1: all of it). */
esp_status espi_bound_row(espi_workspace *workspace, size_t op, size_t row, size_t from, size_t to, double *out,
                          esp_error *err);
/* out[i] = K(i, i) for all examples of a side. */
esp_status espi_bound_diagonal(espi_workspace *workspace, espi_side side, double *out, esp_error *err);

/* The whole Gram matrix by blocks of rows, in parallel: sink(context, rows, width, first, last) is handed rows
 * first .. last-1, `width` values each, at rows[(i - first) * width]; of a symmetric matrix only columns below `last`.
 * It is called from several threads, with different rows. */
typedef void (*espi_block_sink)(void *context, const double *rows, size_t width, size_t first, size_t last);
esp_status espi_gram_blocks(const espi_bound *bound, const esp_run *run, espi_block_sink sink, void *context,
                            esp_error *err);

/* Binds the kernel to the examples and writes both triangles of their Gram matrix. */
esp_status espi_gram_square(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run, double *gram,
                            espi_bound **bound, esp_error *err);

/* The gradient of sum_ij weight[i * columns + j] K_ij for all hyperparameters at once: gradient[place] += ..., places
 * as in hyper.h. Of a symmetric bound, weights are symmetric and only their lower triangle is read. `gram`: the matrix
 * K, if the caller has it, which saves computing some of it again; or NULL. Of a symmetric bound, what is above its
 * diagonal is read, so that one matrix can be both. No matrix of derivatives is made; the sums
 * have a fixed order. ESP_ERR_RANGE if a derivative does not fit a double. */
esp_status espi_bound_gradient(const espi_bound *bound, const double *weight, const double *gram, const esp_run *run,
                               double *gradient, esp_error *err);
/* The same without a matrix of weights, over a symmetric bound: weights(context, first, last, width, rows) is asked for
 * rows first .. last-1 of the lower triangle, and puts weight (i, j), j < width, at rows[(i - first) * width + j]; what
 * is above the diagonal is not read. It is called by several threads, and by each for different rows. */
typedef void (*espi_weight_rows)(void *context, size_t first, size_t last, size_t width, double *rows);
esp_status espi_bound_gradient_rows(const espi_bound *bound, espi_weight_rows weights, void *context,
                                    const esp_run *run, double *gradient, esp_error *err);
/* The same of sum_i weight[i] K(i, i) over the examples of a side. */
esp_status espi_bound_gradient_diagonal(const espi_bound *bound, espi_side side, const double *weight,
                                        const esp_run *run, double *gradient, esp_error *err);

/* A weighted sum of kernels, ready to be asked again and again: how every model predicts. */
typedef struct espi_scorer espi_scorer;
/* All but `run` must outlive the result; coefficient[j * outputs + k] is that of example j in output k. */
esp_status espi_scorer_new(const esp_kernel *kernel, const esp_dataset *examples, const double *coefficient,
                           size_t outputs, const esp_run *run, espi_scorer **out, esp_error *err);
/* scores[i * outputs + k] = sum_j coefficient[j * outputs + k] K(example j, data i). May be called by several threads.
 */
esp_status espi_scorer_score(const espi_scorer *scorer, const esp_dataset *data, const esp_run *run, double *scores,
                             esp_error *err);
/* The same kernel and examples with other coefficients. */
esp_status espi_scorer_fold(espi_scorer *scorer, const double *coefficient, esp_error *err);
void espi_scorer_free(espi_scorer *scorer);

#endif
