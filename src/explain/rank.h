/* The best of many features, and a search that asks for them best-first.
 *
 * A feature is ranked by the absolute value of its key, which is its weight in a model or its contribution to a score.
 * A search grows features one step at a time; whatever grows from a state has a key within [-down, up] of that state,
 * so that the state with the largest such bound is grown next, and nothing is left to do once no bound exceeds what is
 * listed already. */
#ifndef ESPI_EXPLAIN_RANK_H
#define ESPI_EXPLAIN_RANK_H

#include "espalier.h"

#include <math.h>

typedef struct espi_found {
    double key, weight, value;
    size_t term, size;
    esp_feature_kind kind;
    uint32_t *step; /* owned. Of a fragment: skip and production of each step (pattern.h), of a pattern: its symbols,
                       else one number */
    size_t steps;   /* values in it */
} espi_found;

/* A sum of numbers whose absolute values come to `size`: 0 where it is so small that it may be rounding. */
static inline double espi_rank_sum(double sum, double size) { return fabs(sum) > 1e-13 * size ? sum : 0.0; }

/* Two keys that differ by less than this of themselves count as equal. */
#define ESPI_RANK_TIE 1e-9
enum { ESPI_RANK_TIES = 256 };

typedef struct espi_ranking { /* the best `top`, a heap with the least in front ... */
    espi_found *item;
    size_t count, top, capacity;
    espi_found *tie; /* ... and some that are equal to the least, so that the end of the list is in order, too */
    size_t ties, tie_capacity;
} espi_ranking;

/* What a search fills: keys above 0 go to side[0], others to side[1], or with `together` all to side[0]. */
typedef struct espi_shortlist {
    espi_ranking side[2];
    bool together;
    bool wanted[2]; /* keys above 0, keys below 0 */
    bool exact;
    double bound; /* where it is not: no key that was left out is larger in absolute value */
} espi_shortlist;

espi_shortlist espi_shortlist_of(size_t top, bool up, bool down, bool together);
void espi_shortlist_free(espi_shortlist *shortlist);
/* Whether a feature of this key would be listed. */
bool espi_shortlist_wants(const espi_shortlist *shortlist, double key);
/* Lists it, a copy of its steps included; the caller asked before. False if memory is out. */
bool espi_shortlist_add(espi_shortlist *shortlist, const espi_found *found);
/* The larger of two bounds on keys, 0 where neither can lead to a feature that would be listed. */
double espi_shortlist_hope(const espi_shortlist *shortlist, double up, double down);
/* Puts what is equal to the least behind the others, which are then no heap any more: count may exceed top. False if
 * memory is out. */
bool espi_ranking_join(espi_ranking *ranking);

/* ---------------------------------------------------------------- the search */

typedef struct espi_state { /* growers put their own fields behind this */
    double up, down;        /* no feature that grows from here has a key above `up` or below -down */
    double hope;
    uint64_t serial;
    size_t bytes; /* that it holds */
} espi_state;

typedef struct espi_best_first {
    espi_shortlist *shortlist;
    /* Puts the features that are one step larger into the shortlist, and those that may lead further into the search
     * (espi_best_first_push). */
    esp_status (*grow)(void *grower, struct espi_best_first *best, espi_state *state, esp_error *err);
    void (*free)(espi_state *state);
    void *grower;
    uint64_t effort; /* states to grow at most */
    size_t memory;   /* bytes that waiting states may hold */
    const esp_run *run;
    espi_state **heap;
    size_t states, capacity, bytes;
    uint64_t serial, grown;
} espi_best_first;

/* Takes the state, also on failure; it is dropped where it leads to nothing that would be listed. */
esp_status espi_best_first_push(espi_best_first *best, espi_state *state, esp_error *err);
/* Grows until nothing is left, or sets shortlist->bound where effort or memory are spent; what is pushed first is grown
 * in any case, so that there is a bound. All states are freed. */
esp_status espi_best_first_search(espi_best_first *best, esp_error *err);

#endif
