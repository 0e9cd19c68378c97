/* Plans: the trees of a column as lists of their different subtrees, children before parents, with how often each
 * occurs. This is the form in which trees are inserted into a DAG and matched against one: it is made once, lies side
 * by side in memory and needs nothing of the forest any more.
 *
 * Productions are numbered as `shared` says (tree_kernel.c: those of the Gram matrix's columns first, then those that
 * only its rows have), and are called groups here. */
#ifndef ESPI_KERNEL_TREE_PLAN_H
#define ESPI_KERNEL_TREE_PLAN_H

#include "data/forest.h"

typedef struct espi_plan_node { /* a subtree that is more than a pre-terminal */
    uint32_t group;
    uint32_t vertex;     /* of the forest */
    uint32_t first, end; /* its inner children: plan->child[first .. end) */
    uint32_t uses;       /* places where it is such a child */
    bool alone;          /* the only node of its group, and it occurs once */
    double count;        /* occurrences in the tree */
} espi_plan_node;

typedef struct espi_plan_word { /* a pre-terminal */
    uint32_t group;
    uint32_t vertex;
    double count;
} espi_plan_word;

#define ESPI_WORD UINT32_C(0x80000000)

typedef struct espi_plan { /* of one tree */
    const espi_plan_node *node;
    size_t nodes;
    const uint32_t *child; /* the number of a node, or ESPI_WORD | group of a pre-terminal */
    const espi_plan_word *word;
    size_t words;
} espi_plan;

enum { ESPI_PLAN_CHUNK = 128 }; /* trees; chunks are made in parallel */

typedef struct espi_plan_chunk {
    size_t trees;
    struct espi_plan_start {
        size_t node, child, word;
    } start[ESPI_PLAN_CHUNK + 1];
    espi_plan_node *node;
    uint32_t *child;
    espi_plan_word *word;
    size_t capacity[3];
} espi_plan_chunk;

typedef struct espi_plans {
    size_t trees, chunks;
    espi_plan_chunk *chunk;
} espi_plans;

/* Plans of all trees of the forest; `shared` maps its productions to groups (NULL: they are), which are fewer than
 * `groups`. */
esp_status espi_plans_make(espi_plans *plans, const espi_forest *forest, const uint32_t *shared, size_t groups,
                           const esp_run *run, esp_error *err);
void espi_plans_free(espi_plans *plans);

static inline espi_plan espi_plan_of(const espi_plans *plans, size_t tree)
{
    const espi_plan_chunk *c = &plans->chunk[tree / ESPI_PLAN_CHUNK];
    const struct espi_plan_start *s = &c->start[tree % ESPI_PLAN_CHUNK], *e = s + 1;
    /* An array without entries may be NULL, to which nothing can be added. */
    return (espi_plan){.node = e->node > s->node ? c->node + s->node : NULL,
                       .nodes = e->node - s->node,
                       .child = e->child > s->child ? c->child + s->child : NULL,
                       .word = e->word > s->word ? c->word + s->word : NULL,
                       .words = e->word - s->word};
}

/* Plans of single trees of a forest that may grow and shrink in between; productions are the groups. */
typedef struct espi_planner espi_planner;
espi_planner *espi_planner_new(const espi_forest *forest); /* NULL: memory is out */
void espi_planner_free(espi_planner *planner);
/* The plan is valid until the next is made. False if memory is out. */
bool espi_planner_make(espi_planner *planner, espi_ref root, espi_plan *out);
/* One plan of several trees, row[0 .. rows) of the forest: every different subtree of them once, without counts. place
 * has for each its root: the number of a node, ESPI_WORD | group of a pre-terminal, or ESPI_NO_NODE: a leaf, or none.
 */
bool espi_planner_make_set(espi_planner *planner, const uint32_t *row, size_t rows, espi_plan *out, uint32_t *place);

#endif
