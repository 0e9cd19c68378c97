/* The grammar-driven tree kernel (Che et al. 2008):
 *
 *     Delta(n1, n2) = lambda * M(label1, label2) * [same words]                   both pre-terminals
 *                   = lambda * sum over (J1, J2) of lambda1^removed * prod_k s(a_k, b_k)   both not, equal labels
 *                   = 0                                                           otherwise
 *     s(a, b)       = m(a, b) + Delta(a, b), and 0 where m(a, b) = 0
 *     M(f, g)       = sum over p in the class of f and g of lambda2^([p != f] + [p != g])
 *
 * J1 keeps all children of n1 that are not optional, J2 those of n2, both as many and at least one; a_k and b_k are
 * the k-th kept. m is what the children's names have in common: 1 for equal words and for equal labels of nodes
 * that are not both pre-terminals, M for pre-terminals. Of a pre-terminal and a node that is none, a label that may
 * mutate into the other gives lambda2: without it the kernel would not be an inner product.
 *
 * Here: what is known of productions; the kernel pair by pair; which productions can be aligned; the matching of a tree
 * against the DAG of dag.h, whose groups are productions here too.
 *
 * Where gradients are asked for numbers have lanes (lanes.h), for lambda, lambda1 and lambda2. */
#ifndef ESPI_KERNEL_GRAMMAR_TREE_GTK_H
#define ESPI_KERNEL_GRAMMAR_TREE_GTK_H

#include "kernel/tree/dag.h"
#include "kernel/expression/kernel.h"

enum { ESPI_GTK_LAMBDA = 1, ESPI_GTK_LAMBDA1, ESPI_GTK_LAMBDA2, ESPI_GTK_LANES }; /* in the order of the parameters */

/* ------------------------------------------------------------- productions */

typedef struct espi_gtk_group { /* the nodes of one production; with words=0 the pre-terminals of one label */
    uint32_t label;             /* symbols are those of both sides */
    uint32_t words;             /* of a pre-terminal: the number of its words; ESPI_NO_NODE: no pre-terminal */
    uint32_t kind;              /* groups of one kind can meet: a label, or a class of pre-terminals */
    uint32_t arity, inner;
    uint32_t optional; /* how many of its children are */
    size_t children;   /* in espi_gtk.child and .optional */
} espi_gtk_group;

typedef struct espi_gtk {
    double lambda, lambda1, lambda2;
    bool words, frontier;
    bool full; /* what is worth 0 because lambda1 or lambda2 is takes part too, for its derivatives */
    espi_symbols keys, kinds, sequences; /* groups; kinds; words of pre-terminals: each a number */
    espi_gtk_group *group;
    uint32_t *place; /* per group: its number among those of its kind */
    size_t group_capacity, place_capacity;
    uint32_t *child; /* symbol * 2 + (1 if inner) */
    bool *optional;  /* with lambda1 = 0 nothing is, unless `full` */
    size_t children, child_capacity, optional_capacity;
    uint32_t *class; /* per symbol: equal where labels may stand for each other; a label in no class has its own */
    uint32_t *size;  /* per symbol: labels of its class */
    size_t symbols;
    uint32_t *symbol;      /* of the rows' forest as symbols of both sides; NULL: rows are the columns */
    uint32_t *group_of[2]; /* per espi_side: of each production; of the rows NULL where they are the columns */
    size_t productions[2];
    uint32_t *kind_size; /* groups per kind */
    size_t kind_capacity;
} espi_gtk;

/* Fills a zeroed one; the leaf may go then. Groups and symbols of the columns have the same numbers whatever the rows
 * are, smaller ones than those that only the rows have. False: memory is out. */
bool espi_gtk_begin(espi_gtk *gtk, const espi_leaf *leaf, bool full, const espi_forest *rows, const espi_forest *cols);
void espi_gtk_clear(espi_gtk *gtk);

/* A lane of m of two labels, as both, one or none of the nodes is a pre-terminal
 * (`words`: how many are); of both: M. */
double espi_gtk_common(const espi_gtk *gtk, uint32_t a, uint32_t b, int words, size_t lane);
/* A lane of Delta of two pre-terminals with the same words. */
double espi_gtk_words(const espi_gtk *gtk, uint32_t label_a, uint32_t label_b, size_t lane);

/* ------------------------------------------------------------- pair by pair */

typedef enum espi_gtk_algorithm { ESPI_FGTK3, ESPI_FGTK2, ESPI_FGTK1, ESPI_GTK } espi_gtk_algorithm;

/* Optional children of a production that ESPI_GTK, which tries all subsets of them, still takes. */
enum { ESPI_GTK_OPTIONAL = 10 };

typedef struct espi_gtk_tree { /* all nodes of a tree but the leaves, children before parents */
    size_t nodes;
    uint32_t *group;
    size_t *first; /* node i has the inner children child[first[i] .. first[i+1]) */
    uint32_t *child;
    uint64_t *sorted; /* nodes as kind << 32 | number, in order */
    uint32_t *place;  /* of a node within the run of its kind */
    size_t capacity[5];
} espi_gtk_tree;

/* `group_of`: of the forest's productions. A zeroed tree may be filled again and again. False: memory is out. */
bool espi_gtk_tree_fill(espi_gtk_tree *tree, const espi_gtk *gtk, const espi_forest *forest, const uint32_t *group_of,
                        espi_ref root);
void espi_gtk_tree_free(espi_gtk_tree *tree);

typedef struct espi_gtk_scratch { /* zeroed is empty */
    void *delta;                  /* columns of the nodes whose parent has not come yet, one upon the other */
    size_t *base;                 /* of a node of the first tree: where its column starts */
    uint32_t *from, *count;       /* the run in the second tree that it meets */
    void *value, *table;          /* s of the children of a pair; for the algorithms */
    size_t capacity[6];
} espi_gtk_scratch;
void espi_gtk_scratch_free(espi_gtk_scratch *scratch);

/* K of two trees: ESPI_GTK tries all variations, ESPI_FGTK1 takes O(p |c1| |c2|^2) for a pair of nodes, ESPI_FGTK2
 * O(p |c1| |c2|), ESPI_FGTK3 O(|c1| |c2|). Memory is O(depth * nodes). False: memory is out. */
bool espi_gtk_pair(const espi_gtk *gtk, espi_gtk_algorithm algorithm, const espi_gtk_tree *a, const espi_gtk_tree *b,
                   espi_gtk_scratch *scratch, double *value);
/* The same by ESPI_FGTK3 in wide numbers. */
bool espi_gtk_pair_wide(const espi_gtk *gtk, const espi_gtk_tree *a, const espi_gtk_tree *b, espi_gtk_scratch *scratch,
                        espi_wide *value);

/* ------------------------------------------------------- groups that can meet */

typedef struct espi_gtk_factor { /* s of two inner children, but for Delta of nodes that are no pre-terminals */
    double both, one, none;      /* m, as both, one or none are pre-terminals */
    double hit;                  /* m + Delta of both with the same words */
} espi_gtk_factor;

typedef struct espi_gtk_cell { /* two children that some alignment keeps together */
    uint32_t k, l;             /* which of the children ... */
    uint32_t p, q;             /* ... and of the inner children; ESPI_NO_NODE: words, whose value is 1 */
    espi_gtk_factor factor;
} espi_gtk_cell;

typedef struct espi_gtk_meeting { /* of a group with a group of the columns */
    uint32_t group;
    bool single;  /* there is one alignment: the value is `scale` times the product of all cells that are not words */
    double scale; /* lambda, times lambda1 for each child that a single alignment removes; of pre-terminals: Delta */
    size_t cell, cells;
} espi_gtk_meeting;

typedef struct espi_gtk_link { /* what each group of one side meets; a zeroed one is empty */
    size_t *start;             /* per group, and one more */
    espi_gtk_meeting *meeting;
    espi_gtk_cell *cell;
    size_t meetings, cells, meeting_capacity, cell_capacity;
} espi_gtk_link;

/* An index of the DAG's groups by what their variations look like; belongs to the columns. */
typedef struct espi_gtk_index {
    espi_symbols looks; /* variations, with classes in place of labels */
    struct espi_gtk_look {
        uint32_t *group; /* that can look so */
        size_t groups, capacity;
    } * look;
    size_t look_capacity;
    uint32_t *many; /* groups of more variations than are listed */
    size_t manies, many_capacity;
    size_t *position; /* per group: where its inner children start in `below` */
    uint8_t *below;   /* per inner child: whether some are pre-terminals (1), and some not (2) */
} espi_gtk_index;

bool espi_gtk_index_make(espi_gtk_index *index, const espi_gtk *gtk, const espi_dag *dag);
void espi_gtk_index_free(espi_gtk_index *index);
/* For the groups of the rows; `own`: only for those of the DAG itself. */
bool espi_gtk_link_make(espi_gtk_link *link, const espi_gtk *gtk, bool own, const espi_gtk_index *index,
                        const espi_dag *dag);
void espi_gtk_link_free(espi_gtk_link *link);
/* A lane of the factor of two labels, and of the scale of a meeting with a group. */
espi_gtk_factor espi_gtk_factor_of(const espi_gtk *gtk, uint32_t label_a, uint32_t label_b, size_t lane);
double espi_gtk_scale(const espi_gtk *gtk, const espi_gtk_meeting *meeting, uint32_t with, size_t lane);

/* ---------------------------------------------------------------- matching */

/* What matching trees against a DAG needs; one per thread. All pointers must outlive it; `run` may be NULL. NULL if
 * memory is out. */
typedef struct espi_gtk_matcher espi_gtk_matcher;
espi_gtk_matcher *espi_gtk_matcher_new(const espi_gtk *gtk, const espi_gtk_index *index, const espi_gtk_link *link,
                                       const espi_dag *dag, const esp_run *run);
void espi_gtk_matcher_free(espi_gtk_matcher *matcher);
/* As espi_match_row and espi_match_score (dag.h); with lanes: out[lane * (to - from) + j - from]. */
esp_status espi_gtk_match_row(espi_gtk_matcher *matcher, const espi_plan *plan, size_t from, size_t to, size_t lanes,
                              double *out, esp_error *err);
esp_status espi_gtk_match_score(espi_gtk_matcher *matcher, const espi_plan *plan, double *const *f, size_t outputs,
                                double *score, esp_error *err);

#endif
