/* What both searches share: the decision about a pattern, the steps kept so far,
 * the best K, limits and cancellation. */
#ifndef ESPI_MINE_SEARCH_H
#define ESPI_MINE_SEARCH_H

#include "base/parallel.h"
#include "mine/mine.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct espi_search {
    const espi_mine_options *options;
    const esp_run *run;
    espi_margins margins;
    size_t min_support, max_length; /* at least 1 */
    double threshold;               /* of the metric */
    size_t items;                   /* first steps: what threads are given to do */
    _Atomic double rising;          /* `threshold`, or the statistic of the K-th best so far */
    atomic_size_t bytes;            /* held by what is kept */
    pthread_mutex_t lock;           /* guards the heap: the K best statistics, the least first */
    double *heap;
    size_t heaped;
} espi_search;

/* Counts the classes of the used rows and gets ready. */
esp_status espi_search_start(espi_search *search, size_t rows, const uint8_t *positive, const bool *used,
                             const espi_mine_options *options, const esp_run *run, esp_error *err);
void espi_search_free(espi_search *search);

typedef struct espi_verdict {
    bool keep, grow;
    double statistic;
} espi_verdict;

/* What becomes of a pattern of `length` steps; counted in `stats`. */
espi_verdict espi_search_judge(const espi_search *search, size_t length, uint32_t x, uint32_t y,
                               espi_mine_stats *stats);
/* Whether a step with these counts can be part of any kept pattern. */
bool espi_search_hopeful(const espi_search *search, uint32_t x, uint32_t y);

/* Steps of one item in preorder; only those that lead to a kept pattern stay. */
typedef struct espi_record {
    espi_step *step;
    size_t steps, capacity;
    size_t counted; /* steps counted in search->bytes */
} espi_record;
/* Adds a step, or ends the record (NULL). Fails when memory is out or the limit is reached. */
esp_status espi_record_add(espi_search *search, espi_record *record, const espi_step *step, esp_error *err);

/* Mines all that grows from first step number `item`. */
typedef esp_status (*espi_mine_item)(void *context, size_t item, const espi_worker *worker, espi_record *record,
                                     esp_error *err);

/* Runs the items in parallel, those with the largest x first, so that threads end together. `frame` holds for
 * each something of `size` bytes that begins with its espi_step; the last item is the first in preorder. *all gets what
 * is kept, in preorder; the caller frees all->step. With options->top, steps that tie with the last that is wanted are
 * still kept. */
esp_status espi_search_run(espi_search *search, size_t items, const void *frame, size_t size, espi_mine_item mine,
                           void *context, espi_record *all, esp_error *err);

#endif
