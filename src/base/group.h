/* A group of processes ("ranks", numbered from 0) that make the same calls with the same arguments and divide the work
 * among them: espi_group_deal hands out items to whoever is free, and what each rank has made is put together
 * afterwards. Behind it is the table of a plugin (plugin.h), such as that for MPI, or one process alone.
 *
 * All functions take the run of a call. Where that has no group, or a group of one, they do at once what there is to
 * do. All ranks must call them in the same order, from one thread each; espi_group_fail is for any rank at any time.
 * Once a rank has failed, all functions of the others fail with its sentence. */
#ifndef ESPI_BASE_GROUP_H
#define ESPI_BASE_GROUP_H

#include "base/parallel.h"
#include "base/plugin.h"

enum { ESPI_GROUP_VERSION = 2, ESPI_GROUP_WORDS = 1024, ESPI_GROUP_HOST = 64 };

typedef enum espi_group_result {
    ESPI_GROUP_OK,
    ESPI_GROUP_STOPPED, /* `go_on` said so */
    ESPI_GROUP_FAILED,  /* another rank failed: ask `failure` */
    ESPI_GROUP_BROKEN   /* anything else; a sentence is in `why` (ESPI_GROUP_WORDS bytes) */
} espi_group_result;

/* What a call that waits needs: whom to ask now and then whether to go on, and room for a sentence. */
typedef struct espi_group_wait {
    bool (*go_on)(void *user);
    void *user;
    char *why;
} espi_group_wait;

typedef struct espi_group_failure {
    int rank;
    int status; /* an esp_status */
    char words[ESPI_GROUP_WORDS];
} espi_group_failure;

typedef struct espi_group_table {
    espi_plugin_head head;
    espi_group_result (*open)(void **group, int *rank, int *size, char *why);
    /* `good`: all ranks close it, and none has failed. Else it waits a moment until all others know of a failure. */
    void (*close)(void *group, bool good);
    espi_group_result (*broadcast)(void *group, void *bytes, size_t size,
                                   const espi_group_wait *wait); /* from rank 0 */
    /* all[r * size ..] = the bytes of rank r, at every rank. */
    espi_group_result (*gather)(void *group, const void *bytes, size_t size, void *all, const espi_group_wait *wait);
    /* The same at rank 0 alone; the others' `all` is not used. */
    espi_group_result (*collect)(void *group, const void *bytes, size_t size, void *all, const espi_group_wait *wait);
    /* Every rank gets the bitwise or of the bytes of all. */
    espi_group_result (*merge)(void *group, void *bytes, size_t size, const espi_group_wait *wait);
    /* *item = 0, 1, 2 ... of a round, each to one caller among all ranks; `items` and more mean that there are none
     * left. Rounds are numbered by the caller; one begins when all ranks are done with the one before. May be called by
     * several threads. */
    espi_group_result (*next)(void *group, uint64_t round, uint64_t items, uint64_t *item, const espi_group_wait *wait);
    /* Tells all others, without waiting. Only the first failure counts. */
    void (*fail)(void *group, const espi_group_failure *failure);
    /* Whether another rank has failed. May be called by several threads. */
    bool (*failure)(void *group, espi_group_failure *out);
    /* Seconds since a rank got the item that it works on; negative: it has none. Only rank 0 knows. */
    double (*busy)(void *group, int rank);
} espi_group_table;

/* esp_group_open, with the plugin from this folder. */
esp_status espi_group_open(const char *folder, const char *name, esp_group **out, esp_error *err);

/* Whether the run has a group of several. */
bool espi_group_shares(const esp_run *run);
int espi_group_rank(const esp_run *run);
int espi_group_size(const esp_run *run);
/* Ranks that are bound to the same processors as this one, itself included. */
int espi_group_neighbours(const esp_group *group);
/* The same run without the group, for work that not all ranks do; it uses this rank's part of the processors. */
esp_run espi_group_apart(const esp_run *run);

esp_status espi_group_broadcast(const esp_run *run, void *bytes, size_t size, esp_error *err); /* from rank 0 */
esp_status espi_group_gather(const esp_run *run, const void *bytes, size_t size, void *all, esp_error *err);
/* The same at rank 0 alone. */
esp_status espi_group_collect(const esp_run *run, const void *bytes, size_t size, void *all, esp_error *err);
/* The bytes of all ranks, of any size each: those of rank r are the first size[r] at bytes + r * stride. At rank 0
 * alone unless `everywhere`; the others then have no bytes. espi_group_parts_free releases them, also after a failure.
 */
typedef struct espi_group_parts {
    char *bytes;
    size_t stride;
    uint64_t *size;
} espi_group_parts;
esp_status espi_group_bring(const esp_run *run, const void *bytes, size_t size, bool everywhere, espi_group_parts *out,
                            esp_error *err);
void espi_group_parts_free(espi_group_parts *parts);
/* value[i] = its sum over the ranks, added up in their order. */
esp_status espi_group_sum(const esp_run *run, double *value, size_t count, esp_error *err);
/* For results of which each rank has made some: bytes that others have made must be 0 here. */
esp_status espi_group_merge(const esp_run *run, void *bytes, size_t size, esp_error *err);
esp_status espi_group_barrier(const esp_run *run, esp_error *err);
/* ESP_ERR_PARAM at every rank, naming the first that has `what` ("other data") than rank 0, unless all have the same
 * number. */
esp_status espi_group_agree(const esp_run *run, const char *what, uint64_t digest, esp_error *err);
/* What this rank has given to others and taken from them so far, in bytes; of what is sent to all, one copy. */
typedef struct espi_group_traffic {
    uint64_t given, taken;
} espi_group_traffic;
espi_group_traffic espi_group_traffic_of(const esp_run *run);
/* Tells the others that this rank cannot go on, unless it stops because of another. Returns `status`; ESP_OK and a run
 * without a group are left alone. `err` is not NULL where status is not ESP_OK. */
esp_status espi_group_end(const esp_run *run, esp_status status, const esp_error *err);

/* For espi_group_deal: the number of the next round, and what it is dealt by. */
void espi_group_round(esp_group *group, uint64_t *round, const espi_group_table **table, void **state);
/* espi_parallel over the threads of all ranks: each item is done by one of them. `block` items are taken at a time, by
 * one thread, in increasing order. What the tasks need at their threads has room for espi_worker_count(run, items). */
size_t espi_group_block(const esp_run *run, size_t items); /* a good number of items to take at a time */
esp_status espi_group_deal(const esp_run *run, const char *stage, size_t items, size_t block, espi_task task,
                           void *context, esp_error *err);

#endif
