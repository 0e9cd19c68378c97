/* Trees laid out for search with st, sst or sasst: in a file that is mapped, and the same in memory.
 *
 * A production that occurs in the collection is a group; with bow > 0 each label that can be a leaf is one more, behind
 * the productions, that acts as a pre-terminal. A tree is its different subtrees, children before parents, each with
 * its group and how often it occurs: nodes, and words (pre-terminals and leaves).
 *
 * What bounds a similarity (tree_blocks.c): the fragments of a tree are divided among groups so that two trees can
 * share a fragment of group g only if both have g. With K_g the kernel of these fragments alone,
 *
 *     K(q, x) = sum_g K_g(q, x)  <=  sum_g sqrt(K_g(q, q)) sqrt(K_g(x, x))
 *
 * and the sum runs over the groups of both. The postings of g list the trees x that have it with
 * a_g(x) = sqrt(K_g(x, x) / K(x, x)), rounded up.
 *
 * Arrays may come from a file that means harm: nothing in them is relied on before it is compared with its bounds,
 * where it is used. "False: wrong" below means that. */
#ifndef ESPI_SEARCH_TREE_INDEX_H
#define ESPI_SEARCH_TREE_INDEX_H

#include "base/wide.h"
#include "data/section.h"
#include "kernel/expression/kernel.h"
#include "kernel/tree/dag.h"

typedef struct espi_tree_posting {
    uint32_t tree;
    float weight;
} espi_tree_posting;

/* Trees as arrays, one behind the other. Tree i has the items end[i - 1] .. end[i] - 1. */
typedef struct espi_tree_list {
    size_t trees, nodes, kids, words;
    const uint64_t *node_end, *kid_end, *word_end;       /* per tree */
    const uint32_t *node_group, *node_kids, *node_count; /* per node; node_kids: where its kids end within its tree's */
    const uint32_t *kid;                                 /* number of a node within its tree, or ESPI_WORD | group */
    const uint32_t *word_group, *word_count;
} espi_tree_list;

typedef struct espi_listed_tree { /* one of them */
    size_t nodes, kids, words;
    const uint32_t *group, *kid_end, *count, *kid;
    const uint32_t *word_group, *word_count;
} espi_listed_tree;

typedef struct espi_tree_index {
    espi_tree_list list;
    size_t symbols, rules, groups; /* groups: rules, and with bow as many as symbols more */
    const uint64_t *symbol_end;
    const char *symbol_text;
    size_t symbol_bytes;
    const uint32_t *rule_label, *rule_kid; /* kids: symbol * 2 + (1 if inner) */
    const uint64_t *rule_end;
    size_t rule_kids;
    const uint32_t *symbol_slot, *rule_slot; /* open addressing; ESPI_NO_NODE: free */
    size_t symbol_slots, rule_slots;         /* powers of two */
    const uint8_t *common;                   /* per group: tree_blocks.c */
    const uint64_t *posting_end;             /* per group */
    const espi_tree_posting *posting;
    size_t postings;
    const double *self;           /* per tree: K(x, x) = self * 2^self_exponent */
    const int64_t *self_exponent; /* 0 where self is a plain double */
    void **owned;                 /* what was allocated; NULL: all is in a file */
    size_t owned_count;
} espi_tree_index;

/* Lays out all trees of a forest. `shared` maps productions to groups, of which there are fewer than `groups`, and
 * `leaf` symbols to the groups of leaves; NULL: productions are groups, leaves count for nothing. The arrays are the
 * caller's: espi_tree_list_free. */
esp_status espi_tree_list_make(espi_tree_list *list, const espi_forest *forest, const uint32_t *shared,
                               const uint32_t *leaf, size_t groups, const esp_run *run, esp_error *err);
void espi_tree_list_free(espi_tree_list *list);
/* False: wrong. */
bool espi_listed_tree_get(const espi_tree_list *list, size_t tree, espi_listed_tree *out);
/* The same as the engine has it; *memory is to be freed. False if memory is out; the tree must have been found right by
 * espi_listed_tree_check. */
bool espi_listed_tree_plan(const espi_listed_tree *tree, espi_plan *out, void **memory);
/* Whether children come before their parents, and kids where they can be. */
bool espi_listed_tree_check(const espi_listed_tree *tree, size_t groups);

/* `leaf` is the kernel's. */
esp_status espi_tree_index_make(const espi_leaf *leaf, const espi_forest *forest, const esp_run *run,
                                espi_tree_index *out, esp_error *err);
void espi_tree_index_free(espi_tree_index *index);

/* For each production (symbol) of a forest its group, or ESPI_NO_NODE; NULL if memory is out. */
uint32_t *espi_tree_index_rules(const espi_tree_index *index, const espi_forest *forest);
uint32_t *espi_tree_index_symbols(const espi_tree_index *index, const espi_forest *forest);

/* The trees as a column again, up to trees without a production where bow is 0: these are empty. */
esp_status espi_tree_index_column(const espi_tree_index *index, espi_column *out, esp_error *err);

/* Sections of a file. What is taken stays in the bytes of the file, which must be aligned to 8. */
void espi_tree_index_put(espi_section_sink *s, const espi_tree_index *index);
esp_status espi_tree_index_take(espi_section_file *f, size_t trees, bool bow, espi_tree_index *out);

static inline espi_wide espi_tree_index_self(const espi_tree_index *index, size_t tree)
{
    const int64_t most = INT64_MAX / 8, e = index->self_exponent[tree];
    return espi_wide_norm(index->self[tree], e > most ? most : e < -most ? -most : e);
}

/* ------------------------------------------------------------------ blocks */

typedef struct espi_block { /* K_g(x, x) */
    uint32_t group;
    double value;
} espi_block;

/* What dividing trees among groups needs; zeroed is empty. */
typedef struct espi_block_maker {
    uint64_t *key;
    uint32_t *place, *first;
    struct espi_block_cell *cell;
    size_t *row;
    espi_block *entry; /* of the cells */
    espi_block *block; /* the result */
    size_t key_room, place_room, first_room, cell_room, row_room, entry_room, block_room, entries, blocks;
    double *sum; /* per group, zeros */
    size_t groups;
    const esp_run *caller; /* asked at times whether to go on; may be NULL */
} espi_block_maker;

/* Divides a tree: maker->block[0 .. blocks), in no order, and K(x, x). Groups are fewer than `groups`; those that are
 * not below `known` are not common. `common` is the index's. Where the tree is too large for it, or K(x, x) too large
 * for a double, every block has a value of K(x, x), and self is wide. The tree must have been found right. */
esp_status espi_blocks_make(espi_block_maker *maker, const espi_listed_tree *tree, const espi_decay *decay,
                            size_t groups, const uint8_t *common, size_t known, espi_wide *self, esp_error *err);
void espi_block_maker_free(espi_block_maker *maker);
/* a_g of a block. */
double espi_block_weight(double value, espi_wide self);

#endif
