/* The rules of the partial tree kernel (ptk_kernel.c) for the engine of soft.h, and what its children make of them. */
#ifndef ESPI_PTK_CHILDREN_H
#define ESPI_PTK_CHILDREN_H

#include "kernel/partial_tree/ptk_pair.h"
#include "kernel/partial_tree/soft.h"

enum { ESPI_PTK_LAMBDA = 1, ESPI_PTK_MU, ESPI_PTK_TERMINAL, ESPI_PTK_LANES }; /* in the order of the parameters */
enum { ESPI_PTK_POWERS = 64 };

typedef struct espi_ptk_rules {
    espi_soft_rules rules;
    espi_ptk_values values;
    double inner[ESPI_PTK_LANES];  /* Delta of equal labels without S: of two inner nodes ... */
    double leaf[ESPI_PTK_LANES];   /* ... and where one is a leaf */
    double power[ESPI_PTK_POWERS]; /* of lambda */
} espi_ptk_rules;

/* mu S of a vertex with others of one shape: espi_soft_rules.children and .children_wide. */
bool espi_ptk_children(const espi_soft_rules *rules, const espi_soft_meeting *meeting, double *out);
bool espi_ptk_children_wide(const espi_soft_rules *rules, const espi_soft_meeting *meeting, espi_wide *out);

#endif
