/* A tree made ready to be compared with the trees of an index, one pair at a time. */
#ifndef ESPI_SEARCH_TREE_QUERY_H
#define ESPI_SEARCH_TREE_QUERY_H

#include "search/tree_index.h"

/* What one thread needs; zeroed is empty. The value of a pair depends on the two trees alone. */
typedef struct espi_tree_query {
    const espi_tree_index *index;
    const char *file;        /* for messages: where the index comes from */
    const espi_decay *decay; /* of all groups of the query */
    espi_listed_tree tree;
    espi_wide self;
    double scale;           /* 1/sqrt(self); 0 where self is 0, NaN where it takes a wide number */
    double root;            /* sqrt(self); may be infinite */
    espi_block_maker maker; /* its blocks */
    uint32_t *local;        /* per group of the index: 1 + number of its run; 0: the query has no such group */
    struct espi_query_run {
        uint32_t group, first, count; /* nodes member[first .. first + count) */
        double words;                 /* how often it occurs as a word */
    } * run;
    uint64_t *member; /* group << 32 | node, sorted */
    uint32_t *place;  /* of a node within its run */
    double *delta;    /* of pairs of nodes */
    size_t *row;      /* per node of the other tree: where its pairs are */
    size_t runs, run_room, member_room, place_room, delta_room, row_room;
} espi_tree_query;

/* Prepares for a tree, in groups of the index and others that are below `groups`; `decay` has those of the tree. What
 * the tree consists of must stay, and must have been found right. */
esp_status espi_tree_query_set(espi_tree_query *query, const espi_tree_index *index, const espi_listed_tree *tree,
                               const espi_decay *decay, size_t groups, esp_error *err);
void espi_tree_query_free(espi_tree_query *query);

/* K(query, tree of the index), or normalised. ESP_ERR_PARSE if the index is wrong there; ESP_ERR_RANGE if the value is
 * too large for a number. */
esp_status espi_tree_query_value(espi_tree_query *query, size_t tree, bool norm, double *value, esp_error *err);

/* The postings of a group of the index. False: wrong. */
bool espi_postings_of(const espi_tree_index *index, uint32_t group, size_t *first, size_t *end);
esp_status espi_index_wrong(const char *file, esp_error *err);

#endif
