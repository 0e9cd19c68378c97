/* What a search found, inside. */
#ifndef ESPI_SEARCH_SEARCH_H
#define ESPI_SEARCH_SEARCH_H

#include "search/index.h"

struct esp_hits {
    size_t queries;
    esp_hit **hit; /* per query */
    size_t *count;
    uint64_t computed, skipped;
    uint64_t *id_end; /* names of queries; NULL: none */
    char *id_text;
};

/* Queries, or the examples of an index, as lists of trees in groups of the index, with lambda and alpha. */
typedef struct espi_tree_queries {
    espi_tree_list list;
    size_t groups; /* more than all of theirs */
    double *lambda, *alpha;
    espi_decay decay;
} espi_tree_queries;
esp_status espi_tree_queries_make(const esp_index *index, const esp_dataset *queries, const esp_run *run,
                                  espi_tree_queries *out, esp_error *err);
void espi_tree_queries_free(espi_tree_queries *queries);

#endif
