/* The annotated DAG (Aiolli et al. 2007): the different subtrees of a set of trees, grouped by production,
 * with the places where each occurs.
 *
 *     C(u, v) = 0                                       productions of u and v differ
 *             = lambda * prod_k (alpha + C(u_k, v_k))   k over the inner children
 *     w(u)    = sum over the nodes v of a tree T of C(u, v)
 *
 * For a node v the column C(., v) over the group of its production comes from its children's columns alone, and a
 * child's column is dropped when its last parent is done. What is left is w. Scattered over the occurrences of u it
 * is the Gram row of T; multiplied by a coefficient f(u) per vertex it is the score of a model.
 *
 * A DAG grows tree by tree: groups own their arrays, and nothing is renumbered. */
#ifndef ESPI_KERNEL_TREE_DAG_H
#define ESPI_KERNEL_TREE_DAG_H

#include "kernel/tree/plan.h"

typedef struct espi_occurrence {
    uint32_t tree;
    uint32_t item; /* the vertex; in a group of pre-terminals: how often it occurs in the tree */
} espi_occurrence;

typedef struct espi_group { /* the vertices of one production */
    uint32_t inner;         /* inner children; 0: a pre-terminal, whose group is one vertex */
    uint32_t vertices, capacity;
    uint32_t *child;     /* position-major: of position k, child[2k*capacity + r] is the group and
                            child[(2k+1)*capacity + r] the rank of the child of vertex r */
    uint32_t *first;     /* the tree that brought vertex r; increasing; in the same block. Pre-terminals have none */
    espi_occurrence *at; /* in order of trees */
    size_t occurrences, at_capacity;
    uint8_t *dense; /* of a frequent pre-terminal: how often it occurs in each tree; NULL: as told by `at` alone */
} espi_group;

typedef struct espi_dag { /* of zeros: empty */
    espi_group *group;
    size_t groups;
    uint32_t *rank;  /* of each vertex of the forest in its group; ESPI_NO_NODE: not in the DAG */
    size_t vertices; /* of the forest */
    size_t trees;
    bool scores_only; /* occurrences are not kept; no rows */
} espi_dag;

/* lambda and alpha per group. */
typedef struct espi_decay {
    const double *lambda, *alpha;
    const uint32_t *lambda_place,
        *alpha_place; /* where their derivatives go, ESPI_NO_NODE: nowhere; only for gradients */
} espi_decay;

/* Adds the next tree; groups and vertices may be new. A DAG after a failure can only be freed. */
bool espi_dag_insert(espi_dag *dag, const espi_plan *plan);
/* Lays out frequent pre-terminals for whole rows; for a DAG that will not grow. False: memory is out. */
bool espi_dag_settle(espi_dag *dag);
void espi_dag_free(espi_dag *dag);
size_t espi_dag_bytes(const espi_dag *dag);

/* The coefficients of all trees as weights of the vertices: f[group][k * capacity of the group + rank], in a group of
 * pre-terminals f[group][k]. NULL if memory is out. */
double **espi_dag_fold(const espi_dag *dag, const double *coefficient, size_t outputs);
void espi_dag_fold_free(double **f, size_t groups);

/* What matching trees against a DAG needs; one per thread. The DAG may grow between two calls. */
typedef struct espi_matcher espi_matcher;
/* All pointers must outlive the matcher. `run` (may be NULL) is asked now and then whether to go on. NULL if memory is
 * out. */
espi_matcher *espi_matcher_new(const espi_dag *dag, const espi_decay *decay, const esp_run *run);
void espi_matcher_ask(espi_matcher *matcher, const esp_run *run); /* from now on */
void espi_matcher_forget(espi_matcher *matcher);                  /* the DAG was freed, and starts anew */
void espi_matcher_free(espi_matcher *matcher);

/* out[j - from] += K of the tree and tree j of the DAG, j = from .. to-1. */
esp_status espi_match_row(espi_matcher *matcher, const espi_plan *plan, size_t from, size_t to, double *out,
                          esp_error *err);
/* score[k] = sum_u f_k(u) w(u), f[group][k * capacity of the group + rank]; in a group of pre-terminals f[group][k]. */
esp_status espi_match_score(espi_matcher *matcher, const espi_plan *plan, double *const *f, size_t outputs,
                            double *score, esp_error *err);
/* The same of a plan of several trees, node by node: value[i * outputs + k] = sum_u f_k(u) C(u, node i). */
esp_status espi_match_values(espi_matcher *matcher, const espi_plan *plan, double *const *f, size_t outputs,
                             double *value, esp_error *err);

#endif
