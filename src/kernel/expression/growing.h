/* A kernel in sums that grow example by example, as online learners score and predict with (evaluate/growing.h).
 *
 * The examples are rows of one dataset, whose last row is the current example: it is looked at, asked for its scores,
 * and then either kept with a coefficient per output, or taken out of the dataset again by its owner. */
#ifndef ESPI_KERNEL_EXPRESSION_GROWING_H
#define ESPI_KERNEL_EXPRESSION_GROWING_H

#include "kernel/expression/kernel.h"

/* How such a sum is evaluated: shared structures (the annotated DAG, inverted lists); tree by tree with FTK; or pair by
 * pair, from the definition. All give the same values. */
typedef enum espi_form { ESPI_FORM_DAG, ESPI_FORM_FOREST, ESPI_FORM_PLAIN } espi_form;

typedef struct espi_growing_size { /* what is held */
    size_t nodes;                  /* of the trees kept, leaves left out */
    size_t vertices;               /* different subtrees among them */
    size_t bytes;
} espi_growing_size;

/* A leaf that grows; each kernel puts its own fields behind this. */
typedef struct espi_growing_part {
    const espi_kernel_class *class;
} espi_growing_part;

struct espi_growing_class {
    /* `column` belongs to the dataset that grows and outlives the part, which starts with none of its examples. `rows`:
     * `row` will be called, and `score` will not; else the other way round. */
    esp_status (*open)(const espi_leaf *leaf, const espi_column *column, espi_form form, size_t outputs, bool rows,
                       const esp_run *run, espi_growing_part **out, esp_error *err);
    void (*close)(espi_growing_part *part);
    /* Makes row `row` of the column the current example. */
    esp_status (*look)(espi_growing_part *part, size_t row, esp_error *err);
    /* K(x, x) of the current example. */
    esp_status (*self)(espi_growing_part *part, double *value, esp_error *err);
    /* out[e] = K(x, e) for all examples kept. */
    esp_status (*row)(espi_growing_part *part, double *out, esp_error *err);
    /* score[k] = sum_e coefficient_k(e) K(x, e), and *magnitude the sum of the absolute values of all these terms, or
     * somewhat more: what the rounding of a score is to be compared with. */
    esp_status (*score)(espi_growing_part *part, double *score, double *magnitude, esp_error *err);
    /* Keeps the current example; `coefficient` per output (of no meaning with `rows`). A part after a failure can only
     * be closed. */
    esp_status (*keep)(espi_growing_part *part, const double *coefficient, esp_error *err);
    /* Adds to *size. */
    void (*measure)(const espi_growing_part *part, espi_growing_size *size);
};

#endif
