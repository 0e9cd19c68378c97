/* Hyperparameters: the numbers of a kernel expression that can be learned. */
#ifndef ESPI_KERNEL_EXPRESSION_HYPER_H
#define ESPI_KERNEL_EXPRESSION_HYPER_H

#include "kernel/expression/kernel.h"

/* Gradients of a kernel are arrays with one place for each parameter of each leaf, then one for each of its values by
 * label, leaf by leaf; then one for each op. Places of what is no hyperparameter stay as they are. */
size_t espi_kernel_places(const esp_kernel *kernel);
size_t espi_leaf_place(const esp_kernel *kernel, size_t leaf);
size_t espi_op_place(const esp_kernel *kernel, size_t op);

typedef struct espi_hyper {
    char *name; /* "lambda", "lambda.NP", "weight"; where several leaves have such a parameter: "sst(src).lambda", or
                   "sst()#2.lambda" where leaves have one kernel and column; of several weights "weight.2" */
    size_t place;
    double value;
    double low, high;           /* allowed, both included; low > 0 */
    double draw_low, draw_high; /* where first values are drawn, by their logarithms */
} espi_hyper;

/* The hyperparameters of a kernel in the order of the expression; weights come last. A value of 0 switches something
 * off (bow, alpha) and is none. */
esp_status espi_hypers_new(const esp_kernel *kernel, espi_hyper **out, size_t *count, esp_error *err);
void espi_hypers_free(espi_hyper *hyper, size_t count);

/* Sets one; kernel->text is not renewed (espi_kernel_print). */
void espi_kernel_set(esp_kernel *kernel, size_t place, double value);

/* A copy in which leaves whose classes learn by symbol, unless they have such values already, have one for each label
 * of inner nodes, or each feature, of their column: all that can be learned apart. Leaves name their columns. */
esp_status espi_kernel_expand(const esp_kernel *kernel, const esp_dataset *data, esp_kernel **out, esp_error *err);

#endif
