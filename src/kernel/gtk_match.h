/* What gtk_match.c and gtk_cells.c share while a tree is matched: columns and sums. */
#ifndef ESPI_GTK_MATCH_H
#define ESPI_GTK_MATCH_H

#include "kernel/gtk.h"
#include "kernel/sink.h"

typedef struct espi_gtk_slot { /* a column of the pool */
    double *value;             /* lane after lane, `size` numbers each: a 0, then the pieces in order of the meetings */
    size_t size;
    uint32_t *piece; /* per meeting: where its piece starts */
    uint32_t *at;    /* several meetings: per place in the kind, where the group's piece starts; 0: nowhere */
    size_t value_capacity, piece_capacity, at_capacity;
    uint64_t serial; /* its name among all columns of the tree: equal columns of a group have one */
    uint32_t group;
    uint32_t users; /* plan nodes that have this column and are still needed, and the group's newest */
    double pending; /* occurrences of nodes that share it, not yet added to w */
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
    espi_gtk_slot *slot;
    size_t slots, slot_capacity;
    uint32_t *unused; /* slots not in use, a stack */
    size_t unused_count, unused_capacity;
    struct espi_gtk_state {
        uint64_t serial; /* of its column; 0: none */
        uint32_t slot;   /* ESPI_NO_NODE: none, or no longer needed */
        uint32_t uses;   /* that are still to come */
    } * state;           /* per plan node */
    size_t state_capacity;
    espi_gtk_sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    double *block;                       /* of gtk_cells.c */
    size_t block_capacity;
    uint64_t serial;
    const esp_run *run;
    size_t work; /* column entries since run was asked */
};

/* Fills the column of a plan node, whose pieces are laid out, from its children's. False: memory is out. */
bool espi_gtk_fill(espi_gtk_matcher *matcher, size_t node, espi_gtk_slot *slot);

#endif
