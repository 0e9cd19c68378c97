/* The kernel's program there and back over a span: what the sums of gradient.c and
 * the pairs of gradient_pairs.c share. */
#ifndef ESPI_KERNEL_EVALUATE_REVERSE_H
#define ESPI_KERNEL_EVALUATE_REVERSE_H

#include "kernel/evaluate/slice.h"

typedef struct espi_reverse { /* what one thread works with; zeros to begin with */
    espi_workspace *workspace;
    double *value, *adjoint; /* per op a row */
    size_t width;            /* of these rows */
} espi_reverse;

typedef struct espi_selves { /* adjoints of the self-values of a norm's operand */
    double *side[2];         /* of a symmetric bound, [ESPI_COLS] stands for both */
} espi_selves;

typedef struct espi_sums {
    double *gradient;  /* by place (hyper.h) */
    espi_selves *self; /* per op; filled for ESPI_NORM */
} espi_sums;

/* Per op whether the way back asks for its values: those of the ops below products, powers and weights, those of norms,
 * and what they are made of. NULL if memory is out. */
bool *espi_needed_values(const esp_kernel *kernel);

/* Room for rows of `width` values; false if memory is out. The workspace is the
 * caller's to make, and freed at the end. */
bool espi_reverse_start(espi_reverse *reverse, size_t ops, size_t width);
void espi_reverse_end(espi_reverse *reverse);

/* Computes the values of the ops up to `op` that are needed. ESP_ERR_RANGE if one does not fit a double. */
esp_status espi_forward(espi_reverse *reverse, const bool *needed, size_t op, const espi_slice *span, esp_error *err);
/* From the adjoints of `op`, which are set, to those of all ops below it. Of values, only those below products and
 * powers are read. */
void espi_backward_ops(espi_reverse *reverse, size_t op, const espi_slice *span);

#endif
