/* One query against the trees of an index, with bounds (tree_index.h). */
#ifndef ESPI_SEARCH_TREE_SEARCH_H
#define ESPI_SEARCH_TREE_SEARCH_H

#include "search/best.h"
#include "search/index.h"
#include "search/tree_query.h"

/* A value that is no example. */
#define ESPI_NOBODY SIZE_MAX

/* What one thread needs; zeroed is empty. */
typedef struct espi_tree_search {
    espi_tree_query query;
    double *bound; /* per tree of the index, zeros between two queries */
    double *mass;  /* the same, of the part of the trees that was looked at */
    uint32_t *met; /* trees whose bound is not zero */
    struct espi_candidate {
        double bound;
        uint32_t tree;
    } * candidate;
    struct espi_opened { /* a group of the query: its postings, and its weight */
        size_t first, end;
        double weight;
    } * opened;
    size_t trees, candidate_room, opened_room;
    uint64_t computed; /* similarities, so far */
} espi_tree_search;

void espi_tree_search_free(espi_tree_search *search);

/* Adds to `best` the trees most similar to search->query, which is set, among those before `limit` and but for `not`.
 * `every`: without bounds. */
esp_status espi_tree_search_run(espi_tree_search *search, const esp_index *index, size_t limit, size_t not, bool every,
                                espi_best *best, esp_error *err);
/* The similarity of the query and a tree, as it is told. */
esp_status espi_tree_search_value(espi_tree_search *search, const esp_index *index, size_t tree, double *value,
                                  esp_error *err);

#endif
