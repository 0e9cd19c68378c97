/* What becomes of the weights w(u) of a group of the DAG once they are known (dag.h): scattered over the occurrences of
 * its vertices they are part of a Gram row, multiplied with f(u) part of the scores of a model. */
#ifndef ESPI_KERNEL_TREE_SINK_H
#define ESPI_KERNEL_TREE_SINK_H

#include "kernel/tree/dag.h"

typedef struct espi_reach { /* per group: how much of it lies in trees before `to` */
    size_t to;
    size_t occurrences;
    uint32_t vertices;
    uint32_t sum; /* the matcher's own */
} espi_reach;

/* Brings the reach of a group up to date. Rows mostly come in order, so that this is a few steps on. */
void espi_reach_to(espi_reach *reach, const espi_dag *dag, const espi_group *group, size_t to);
/* That of group number g, of all groups' reaches. */
static inline espi_reach *espi_reach_of(espi_reach *reach, const espi_dag *dag, uint32_t g, size_t to)
{
    if (reach[g].to != to) espi_reach_to(&reach[g], dag, &dag->group[g], to);
    return &reach[g];
}

typedef struct espi_sink {
    size_t from, to; /* trees of the row; of scores: 0 and all */
    double *out;
    double *const *f; /* NULL: a row; else f[group][k * capacity of the group + rank], of pre-terminals f[group][k] */
    size_t outputs;
    double *score;
} espi_sink;

/* Adds what w[0 .. reach->vertices) of group number g makes. */
void espi_sink_add(espi_sink *sink, const espi_dag *dag, uint32_t g, const espi_reach *reach, const double *w);

/* The way back: w[r] += the weights weight[j - from] of the trees j = from .. to-1 where vertex r of group number g
 * occurs, as often as it does. */
void espi_gather(const espi_dag *dag, uint32_t g, const espi_reach *reach, size_t from, size_t to, const double *weight,
                 double *w);

/* total[k] += the sum of f[k * stride + r] * w[r], r < n, in an order that is the same on every processor and for any
 * number of outputs. */
void espi_weigh(const double *f, size_t stride, size_t outputs, const double *w, size_t n, double *total);
/* w[r] += count * col[r] */
void espi_add_column(double *restrict w, const double *restrict col, size_t n, double count);

#endif
