/* Threads whose number never changes a result.
 *
 * Items 0 .. items-1 are handed out in increasing order to workers; a task writes only what belongs to its item.
 * If tasks fail, the error of the lowest failing item is returned, whatever the number of threads. The calling
 * thread is worker 0, and it alone reports progress and asks whether to stop; it goes on to ask while the others finish
 * what they have begun. */
#ifndef ESPI_BASE_PARALLEL_H
#define ESPI_BASE_PARALLEL_H

#include "espalier.h"

#include <stdatomic.h>

struct espi_team;

typedef struct espi_worker {
    int number;
    struct espi_team *team; /* all workers of an espi_parallel; NULL: there is no other */
    /* For what a task calls that takes long. Of worker 0 it is the caller's; to the others it says whether the caller
     * was asked to stop, and it is gone with espi_parallel, as is the copy without the group that worker 0 has where
     * the caller's run has one. */
    const esp_run *run;
} espi_worker;

typedef esp_status (*espi_task)(void *context, size_t item, const espi_worker *worker, esp_error *err);

/* For work that one of several threads has done for it: the caller only, who asks nobody. */
extern const esp_run espi_alone;

/* How many workers espi_parallel will use at most: 1 .. min(threads, items); threads
 * that are not given are the processors of this process, or its part of them among the ranks of a group. */
int espi_worker_count(const esp_run *run, size_t items);

esp_status espi_parallel(const esp_run *run, const char *stage, size_t items, espi_task task, void *context,
                         esp_error *err);

/* Tasks that need results of others. An item may wait for marks that items before it set, and for no other: as items
 * are begun in their order, one that waits has all that it waits for begun by somebody. Marks are false at first, and
 * belong to the caller of espi_parallel. What was written before a mark was set can be read after waiting for it. */
typedef atomic_bool espi_mark;
void espi_mark_set(const espi_worker *worker, espi_mark *mark);
/* ESP_ERR_CANCELLED if the mark will not come, since an item failed or the run was cancelled: the task ends then. */
esp_status espi_mark_await(const espi_worker *worker, const espi_mark *mark, esp_error *err);

/* Seconds since some moment, for measuring how long things take. */
double espi_seconds(void);

/* A line for whoever watches the run, from the calling thread. */
void espi_message(const esp_run *run, const char *line);

/* Reports progress from the calling thread; ESP_ERR_CANCELLED if the callback asks to stop. */
esp_status espi_progress(const esp_run *run, const char *stage, double fraction, esp_error *err);
/* The same of long loops: only when *work, the simple steps that the caller has counted, comes to some tenths of a
 * second; then it starts at 0 again. */
esp_status espi_progress_at_times(const esp_run *run, const char *stage, size_t *work, esp_error *err);

#endif
