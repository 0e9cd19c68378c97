/* Inside a matcher: the columns of the tree at hand, shared by rows (match.c) and
 * their gradients (match_gradient.c). */
#ifndef ESPI_KERNEL_TREE_MATCH_H
#define ESPI_KERNEL_TREE_MATCH_H

#include "kernel/tree/pool.h"
#include "kernel/tree/sink.h"

typedef struct espi_slot { /* what a column of the pool holds */
    double *value;
    size_t capacity;
    uint32_t group;
} espi_slot;

typedef struct espi_sum { /* w of a group that several nodes of the tree belong to */
    uint32_t group;
    double *w;
    size_t capacity;
    uint32_t slot; /* the group's newest column ... */
    size_t node;   /* ... and the node it was made for; slot ESPI_NO_NODE: none */
} espi_sum;

typedef struct espi_stack { /* columns that are dropped together; they never move */
    struct espi_stack_chunk {
        double *value;
        size_t capacity;
    } * chunk;
    size_t chunks, chunk_capacity;
    struct espi_stack_top {
        size_t chunk, used; /* where columns are cut from, and how much of it is taken */
    } top;                  /* set back to an earlier one, it drops what came later */
} espi_stack;

/* A column of `size` numbers; NULL if memory is out. */
double *espi_stack_take(espi_stack *stack, size_t size);
void espi_stack_free(espi_stack *stack);

struct espi_matcher {
    const espi_dag *dag;
    const espi_decay *decay;
    const espi_plan *plan; /* at hand */
    espi_reach *reach;     /* per group */
    size_t reaches;
    espi_pool pool;
    espi_slot *slot;
    size_t slots, slot_capacity;
    espi_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    const esp_run *run;
    size_t work; /* column entries since run was asked */
    bool keep;   /* columns stay, on the stack, and are not added up; set before the first tree */
    espi_stack stack;
};

/* Of a matcher that keeps: the columns of all nodes of the tree over the trees before `to`, until espi_match_done. A
 * group of several nodes has its espi_sum, with w = 0. */
esp_status espi_match_columns(espi_matcher *m, const espi_plan *plan, size_t to, esp_error *err);
void espi_match_done(espi_matcher *m);

/* f[r] = hit or miss, as the child of r is the pre-terminal `group` or not. */
void espi_set_preterminal(double *restrict f, const uint32_t *restrict child, size_t n, uint32_t group, double hit,
                          double miss);

#endif
