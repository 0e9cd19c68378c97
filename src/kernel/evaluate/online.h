/* Sums of kernels that grow example by example: what online learners score and predict with.
 *
 *     f_k(x) = sum over the examples e kept so far of c_k(e) K(x, e)
 *
 * The examples are rows of one dataset, whose last row is the example at hand. It is looked at, asked for its scores,
 * and then either kept with a coefficient per output, or taken out of the dataset again by its owner (espi_row_undo);
 * the sum needs not be told. So all rows but the last are the examples kept, in order.
 *
 * Terms of the kernel that are one leaf or its norm are folded: a vector of weights per vertex of the annotated DAG
 * (theorem of Aiolli et al. 2007), a weight vector for linear, inverted lists for poly. Any other term is
 * put together from rows of kernel values. */
#ifndef ESPI_ONLINE_H
#define ESPI_ONLINE_H

#include "kernel/expression/kernel.h"

typedef struct espi_online_size { /* what is held */
    size_t nodes;                 /* of the trees kept, leaves left out */
    size_t vertices;              /* different subtrees among them */
    size_t bytes;
} espi_online_size;

/* A leaf that grows; each kernel puts its own fields behind this. */
typedef struct espi_online_part {
    const espi_kernel_class *class;
} espi_online_part;

struct espi_online_class {
    /* `column` belongs to the dataset that grows and outlives the part, which starts with none of its examples. `rows`:
     * `row` will be called, and `score` will not; else the other way round. */
    esp_status (*open)(const espi_leaf *leaf, const espi_column *column, espi_form form, size_t outputs, bool rows,
                       const esp_run *run, espi_online_part **out, esp_error *err);
    void (*close)(espi_online_part *part);
    /* Makes row `row` of the column the example at hand. */
    esp_status (*look)(espi_online_part *part, size_t row, esp_error *err);
    /* K(x, x) of the example at hand. */
    esp_status (*self)(espi_online_part *part, double *value, esp_error *err);
    /* out[e] = K(x, e) for all examples kept. */
    esp_status (*row)(espi_online_part *part, double *out, esp_error *err);
    /* score[k] = sum_e coefficient_k(e) K(x, e), and *magnitude the sum of the absolute values of all these terms, or
     * somewhat more: what the rounding of a score is to be compared with. */
    esp_status (*score)(espi_online_part *part, double *score, double *magnitude, esp_error *err);
    /* Keeps the example at hand; `coefficient` per output (of no meaning with `rows`). A part after a failure can only
     * be closed. */
    esp_status (*keep)(espi_online_part *part, const double *coefficient, esp_error *err);
    /* Adds to *size. */
    void (*measure)(const espi_online_part *part, espi_online_size *size);
};

typedef struct espi_online espi_online;

/* `kernel` and `examples` must outlive the result. The examples have all columns the kernel needs (at least one row was
 * begun). ESP_ERR_PARAM if a kernel cannot grow. */
esp_status espi_online_new(const esp_kernel *kernel, const esp_dataset *examples, espi_form form, size_t outputs,
                           const esp_run *run, espi_online **out, esp_error *err);
void espi_online_free(espi_online *online);
/* Makes row number espi_online_count of the examples the one at hand. */
esp_status espi_online_look(espi_online *online, esp_error *err);
/* score[k] of the example at hand, and the sum of the absolute values of all terms of all scores. A score that is too
 * large for a number is ESP_ERR_RANGE. */
esp_status espi_online_score(espi_online *online, double *score, double *magnitude, esp_error *err);
/* The example at hand is kept. After a failure the sum can only be freed. */
esp_status espi_online_keep(espi_online *online, const double *coefficient, esp_error *err);
size_t espi_online_count(const espi_online *online); /* examples kept */
espi_online_size espi_online_measure(const espi_online *online);

#endif
