/* What gtk_match.c and gtk_cells.c share while a tree is matched: columns and sums. */
#ifndef ESPI_KERNEL_GRAMMAR_TREE_GTK_MATCH_H
#define ESPI_KERNEL_GRAMMAR_TREE_GTK_MATCH_H

#include "kernel/grammar_tree/gtk.h"
#include "kernel/tree/pool.h"
#include "kernel/tree/sink.h"

typedef struct espi_gtk_slot { /* what a column of the pool holds */
    double *value;             /* lane after lane, `size` numbers each: a 0, then the pieces in order of the meetings */
    size_t size;
    uint32_t *piece; /* per meeting: where its piece starts */
    uint32_t *at;    /* several meetings: per place in the kind, where the group's piece starts; 0: nowhere */
    size_t value_capacity, piece_capacity, at_capacity;
    uint32_t group;
} espi_gtk_slot;

typedef struct espi_gtk_sum { /* w of a group */
    uint32_t group;
    double *w; /* lane after lane */
    size_t capacity;
} espi_gtk_sum;

struct espi_gtk_matcher {
    const espi_gtk *gtk;
    const espi_gtk_index *index;
    const espi_gtk_link *link;
    const espi_dag *dag;
    const espi_plan *plan; /* at hand */
    size_t lanes;          /* 1, or ESPI_GTK_LANES */
    espi_reach *reach;     /* per group of the DAG */
    struct espi_gtk_newest {
        uint32_t slot; /* the latest column of a group of the tree; ESPI_NO_NODE: none */
        size_t node;
    } * newest; /* per group */
    espi_pool pool;
    espi_gtk_slot *slot;
    size_t slots, slot_capacity;
    espi_gtk_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    double *block;                       /* of gtk_cells.c */
    size_t block_capacity;
    const esp_run *run;
    size_t work; /* column entries since run was asked */
};

/* Fills the column of a plan node, whose pieces are laid out, from its children's. False: memory is out. */
bool espi_gtk_fill(espi_gtk_matcher *matcher, size_t node, espi_gtk_slot *slot);

#endif
