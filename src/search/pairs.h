/* Pairs of examples, inside. */
#ifndef ESPI_SEARCH_PAIRS_H
#define ESPI_SEARCH_PAIRS_H

#include "search/index.h"
#include "search/tree_query.h"

/* For each example the first that equals it; the caller frees it, also after a failure. */
esp_status espi_twins_find(const esp_index *index, uint32_t **first, esp_error *err);

typedef struct espi_pair_list {
    esp_pair *pair;
    size_t count, room;
    uint32_t *twin;             /* as above */
    uint64_t computed, skipped; /* similarities */
    /* The similarity of an example that has twins to these; NaN: not asked for. */
    double *self;
} espi_pair_list;

/* All pairs of examples that are the first of their kind, in no order, and the self-values of those with twins. */
esp_status espi_pairs_of_kinds(const esp_index *index, double above, bool no_bounds, const esp_run *run,
                               espi_pair_list *out, esp_error *err);
void espi_pair_list_free(espi_pair_list *list);

/* Similarities of pairs that are asked for one by one; those of one `row` should come together. */
typedef struct espi_pair_asker espi_pair_asker;
esp_status espi_pair_asker_new(const esp_index *index, const esp_run *run, espi_pair_asker **out, esp_error *err);
void espi_pair_asker_free(espi_pair_asker *asker);
esp_status espi_pair_ask(espi_pair_asker *asker, size_t row, size_t other, double *value, esp_error *err);

#endif
