/* Kept patterns: what mining found worth keeping, as plain arrays that are saved with a model.
 *
 * A pattern grows from a shorter one by one step: a sequence by a symbol, a tree fragment by a production.
 * A set of patterns is therefore a tree of steps. Its nodes are numbered level by level, so that the children of a node
 * lie side by side and have larger numbers than it; no node holds a pointer.
 *
 * The features of a sequence S over a trie, each kept u being one of them:
 *     phi_u(S) = sum over positions i with u = S[i] of lambda^(span(i) - |u|)
 * where position i_k may take any factor of its token; a factor that a token has twice counts twice, as in seq.
 *
 * A fragment of a tree holds for each of its nodes all children or none, and at least one production. Its
 * nodes without children that are no leaves are open. It grows by giving one open node a production; the open nodes to
 * the left of that one are closed for good, so that every fragment grows in one way only. Features:
 *
 *     phi_f(T) = c_f(T) sqrt(lambda^productions(f)),     c_f(T) the number of nodes of T at which f matches */
#ifndef ESPI_KERNEL_PATTERN_PATTERN_H
#define ESPI_KERNEL_PATTERN_PATTERN_H

#include "kernel/expression/kernel.h"

typedef struct espi_patterns {
    size_t nodes;      /* at least 1: node 0 is the empty pattern; a zeroed set has none and keeps nothing */
    uint32_t *parent;  /* parent[0] is 0 */
    uint32_t *label;   /* the last step: a symbol or a production; label[0] is 0 */
    uint32_t *skip;    /* the open nodes that the last step closed for good; NULL in a trie */
    uint32_t *first;   /* children of v: first[v] .. first[v+1]-1, by increasing (skip, label); nodes + 1 values */
    uint32_t *pattern; /* the number of the pattern that ends here, ESPI_NO_NODE if it is not kept */
    size_t patterns;   /* numbered in the order of their nodes */
    uint32_t *node;    /* per pattern */
    uint32_t *x, *y;   /* examples and positive examples that contain it */
    double *statistic; /* what it was kept for */
} espi_patterns;

/* One step of a set that is being made, in preorder; siblings by increasing (skip, label). */
typedef struct espi_step {
    uint32_t depth; /* 1: the first step of a pattern */
    uint32_t label, skip;
    uint32_t x, y;
    bool kept;
    double statistic;
} espi_step;

/* Makes the set; the steps are not kept. False if memory is out or there are more than 2^32 - 2 steps. */
bool espi_patterns_make(espi_patterns *set, const espi_step *step, size_t steps, bool skips);
/* Makes first[] and pattern[] of a set whose other arrays are read from a file: parents come before their children, and
 * nodes of patterns are there. False if memory is out. */
bool espi_patterns_finish(espi_patterns *set);
void espi_patterns_free(espi_patterns *set);
/* The child of a node by its step, or ESPI_NO_NODE. */
uint32_t espi_patterns_child(const espi_patterns *set, uint32_t node, uint32_t skip, uint32_t label);
/* The nodes from the first step to `node`; the caller's array is made large enough. False if memory is out. */
bool espi_patterns_path(const espi_patterns *set, uint32_t node, uint32_t **path, size_t *capacity, size_t *length);
/* Forgets the patterns without keep[pattern], and the nodes that lead to none; the others are numbered anew. False if
 * memory is out. */
bool espi_patterns_keep(espi_patterns *set, const bool *keep);

/* ---------------------------------------------------------------- sequences */

typedef struct espi_trie {
    espi_symbols symbols; /* texts of the factors that patterns use, in the order of their bytes */
    espi_patterns set;    /* label: a symbol */
} espi_trie;

void espi_trie_free(espi_trie *trie);
/* A pattern as tokens separated by blanks, each one factor, escaped as in data files. */
void espi_trie_text(const espi_trie *trie, size_t pattern, espi_text *text);
/* Makes the trie of the sequences of a column, the first factor of each token; x, y and statistic are 0. Reads back
 * what espi_trie_text writes. */
esp_status espi_trie_of(const espi_column *column, espi_trie *trie, esp_error *err);

/* Numbers the symbols with rank[symbol] != ESPI_NO_SYMBOL by their bytes: rank[symbol] is then that number, original[]
 * the way back. False if memory is out. */
bool espi_symbols_rank(const espi_symbols *table, uint32_t *rank, uint32_t *original, size_t *count);

typedef struct espi_feature_value {
    uint32_t pattern;
    double value;
} espi_feature_value;

typedef struct espi_token_place { /* a factor known to the trie, and where it stands in the sequence */
    uint32_t symbol;
    size_t position;
} espi_token_place;

typedef struct espi_token_places { /* of one sequence, by symbol and position */
    espi_token_place *place;
    size_t places, capacity;
    uint32_t *symbol; /* the different ones, and where their places start */
    size_t *start;
    size_t symbols, symbol_capacity, start_capacity;
} espi_token_places;

/* How occurrences weigh: lambda in (0, 1] per gap, and at most `gap` tokens (SIZE_MAX: any number) left out between
 * neighbours. */
typedef struct espi_weighing {
    double lambda;
    size_t gap;
} espi_weighing;

/* What one thread needs to evaluate; a zeroed one is ready. */
typedef struct espi_trie_walker {
    espi_token_places places[2];
    espi_feature_value *feature; /* the result of espi_trie_features: patterns increasing, values > 0 */
    size_t features, feature_capacity;
    struct espi_trie_frame *frame;
    size_t frames, frame_capacity;
    struct espi_trie_end *end;
    size_t end_capacity;
    double *power; /* of lambda */
    size_t powers, power_capacity;
    double power_lambda;
} espi_trie_walker;
void espi_trie_walker_free(espi_trie_walker *walker);

/* A row of a column as places; `map` is espi_symbols_map from the column's symbols to the trie's. */
bool espi_token_places_make(espi_token_places *places, const espi_sequences *sequences, const uint32_t *map,
                            size_t row);
void espi_token_places_free(espi_token_places *places);

/* Fills walker->feature for walker->places[0]. O(tokens) for each trie node that the sequence contains. Values that
 * overflow come out as not finite. False if memory is out. */
bool espi_trie_features(const espi_trie *trie, espi_weighing weighing, espi_trie_walker *walker);
/* *value = sum over kept u of phi_u(S) phi_u(T) for two sequences as places, walked down the trie together; features
 * are not made. False if memory is out. */
bool espi_trie_kernel(const espi_trie *trie, espi_weighing weighing, const espi_token_places *s,
                      const espi_token_places *t, espi_trie_walker *walker, double *value);

/* -------------------------------------------------------------------- trees */

typedef struct espi_fragments {
    espi_symbols symbols; /* labels and words of the productions */
    size_t productions;
    uint32_t *label;       /* per production: its left side */
    uint32_t *children;    /* its child labels: child_label[children[p] .. children[p+1]-1]; productions + 1 values */
    uint32_t *child_label; /* symbol * 2 + (1 if inner) */
    size_t production_capacity, children_capacity, child_capacity; /* while it is made */
    espi_patterns set; /* label: a production; the empty fragment has one open node, the root */
} espi_fragments;

void espi_fragments_free(espi_fragments *fragments);
/* A fragment as brackets that any reader of trees takes: an open node is written (NP ...), and a word that is itself
 * "...", or backslashes before that, has a backslash more. */
void espi_fragments_text(const espi_fragments *fragments, size_t pattern, espi_text *text);
/* Makes the set of the fragments that the trees of a column stand for in this notation; x, y and statistic are 0. An
 * empty tree or a single word is ESP_ERR_PARAM. */
esp_status espi_fragments_of(const espi_column *column, espi_fragments *fragments, esp_error *err);
/* Adds a production of a forest, for making a set. Its number, ESPI_NO_NODE if memory is out. */
uint32_t espi_fragments_add(espi_fragments *fragments, const espi_forest *forest, uint32_t production);
/* For each production of the forest its number in the set or ESPI_NO_NODE; NULL if memory is out. */
uint32_t *espi_fragments_map(const espi_fragments *fragments, const espi_forest *forest);

/* A tree as its different vertices and how often each occurs. */
typedef struct espi_vertices {
    struct espi_vertex_count {
        espi_ref vertex;
        double count;
    } * at;
    size_t count, capacity;
} espi_vertices;

/* What one thread needs to evaluate; a zeroed one is ready. */
typedef struct espi_fragment_walker {
    espi_feature_value *feature; /* the result of espi_fragments_features: patterns increasing, values > 0 */
    size_t features, feature_capacity;
    struct espi_fragment_frame *frame;
    size_t frames, frame_capacity;
    espi_ref *open; /* open nodes of the frames */
    size_t open_capacity;
    espi_walk walk;
    uint32_t *seen; /* per vertex of the forest whose tree was walked last */
    size_t seen_size;
} espi_fragment_walker;
void espi_fragment_walker_free(espi_fragment_walker *walker);

bool espi_vertices_make(espi_vertices *vertices, const espi_forest *forest, espi_ref root,
                        espi_fragment_walker *walker);
void espi_vertices_free(espi_vertices *vertices);

/* A tree ready to be matched: `map` is espi_fragments_map of its forest. */
typedef struct espi_matched {
    const espi_forest *forest;
    const uint32_t *map;
    espi_vertices vertices;
} espi_matched;

/* Fills walker->feature for a tree. False if memory is out. */
bool espi_fragments_features(const espi_fragments *fragments, double lambda, const espi_matched *tree,
                             espi_fragment_walker *walker);
/* *value = sum over kept f of lambda^productions(f) c_f(S) c_f(T), every pair of nodes walked down the set together;
 * features are not made. False if memory is out. */
bool espi_fragments_kernel(const espi_fragments *fragments, double lambda, const espi_matched *s, const espi_matched *t,
                           espi_fragment_walker *walker, double *value);

/* --------------------------------------------------------------- selections */

typedef struct espi_selection { /* what a kernel that selects sums over */
    espi_selection_kind kind;
    espi_trie trie;           /* of sequences */
    espi_fragments fragments; /* of trees */
} espi_selection;

/* One without patterns; NULL if memory is out. */
espi_selection *espi_selection_new(espi_selection_kind kind);
void espi_selection_free(espi_selection *selection); /* with what it holds */
/* What is wrong with a selection that was read from a file, as a clause such as "a pattern has no node"; NULL if all
 * that this header says of its arrays holds. False through *memory if memory is out. */
const char *espi_selection_check(const espi_selection *selection, bool *memory);
const espi_patterns *espi_selection_set(const espi_selection *selection);
void espi_selection_text(const espi_selection *selection, size_t pattern, espi_text *text);

/* A pattern for people; espi_ranks_free releases the texts. */
typedef struct espi_rank {
    uint32_t pattern, x, y;
    double statistic;
    char *text;
    size_t size;
} espi_rank;
/* All patterns, the best first, ties by the bytes of their texts; NULL if memory is out. */
espi_rank *espi_selection_rank(const espi_selection *selection);
/* Puts ranks of several selections in that order. */
void espi_ranks_sort(espi_rank *rank, size_t count);
void espi_ranks_free(espi_rank *rank, size_t count);
/* The features of a column over the selection of a leaf that selects; the caller frees the bag, also after a
 * failure. */
struct espi_bag;
esp_status espi_selection_bag(const espi_leaf *leaf, const espi_column *column, const esp_run *run,
                              struct espi_bag *bag, esp_error *err);
/* Keeps the first `top` of that order (0: all). */
esp_status espi_selection_limit(espi_selection *selection, size_t top, esp_error *err);

#endif
