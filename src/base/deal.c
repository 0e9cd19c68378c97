/* Work that is handed out to the threads of all ranks of a group. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

typedef struct share { /* what a rank has done */
    uint64_t parts;
    double seconds;
} share;

typedef struct dealing {
    const esp_run *run;
    const espi_group_table *table;
    void *group;
    const char *stage;
    size_t items, block;
    uint64_t round;
    espi_task task;
    void *context;
    atomic_uint_least64_t parts, latest; /* done here; number of the part that was handed out last */
    bool stopped;                        /* another rank failed */
} dealing;

/* Of all threads of this rank: asks the caller, and whether another rank has failed. */
static int on_progress(void *user, const char *stage, double fraction)
{
    dealing *d = user;
    espi_group_failure failure;
    (void)fraction;
    if (d->table->failure(d->group, &failure)) {
        d->stopped = true;
        return 1;
    }
    const double done = (double)atomic_load(&d->latest) * (double)d->block / (double)(d->items > 0 ? d->items : 1);
    return d->run->progress != NULL ? d->run->progress(d->run->user, stage, done < 1.0 ? done : 1.0) : 0;
}

typedef struct asking {
    dealing *dealing;
    const espi_worker *worker;
    esp_error *err;
} asking;

static bool go_on(void *user)
{
    const asking *a = user;
    return espi_progress(a->worker->run, a->dealing->stage, 0.0, a->err) == ESP_OK;
}

static esp_status do_part(dealing *d, uint64_t part, const espi_worker *worker, esp_error *err)
{
    const size_t first = (size_t)part * d->block;
    const size_t last = d->items - first < d->block ? d->items : first + d->block;
    esp_status status = ESP_OK;
    for (size_t i = first; status == ESP_OK && i < last; i++) status = d->task(d->context, i, worker, err);
    atomic_fetch_add(&d->parts, 1);
    atomic_store(&d->latest, part + 1);
    if (status == ESP_OK) status = espi_progress(worker->run, d->stage, 0.0, err);
    return status;
}

/* One thread: parts until there are none left. */
static esp_status take_parts(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    dealing *d = context;
    char why[ESPI_GROUP_WORDS] = "";
    asking a = {.dealing = d, .worker = worker, .err = err};
    const espi_group_wait wait = {.go_on = go_on, .user = &a, .why = why};
    const uint64_t parts = (d->items + d->block - 1) / d->block;
    uint64_t part = 0;
    (void)item;
    for (;;) {
        const espi_group_result result = d->table->next(d->group, d->round, parts, &part, &wait);
        if (result == ESPI_GROUP_BROKEN) return espi_fail(err, ESP_ERR_IO, "the ranks have lost each other: %s", why);
        if (result != ESPI_GROUP_OK) return espi_fail(err, ESP_ERR_CANCELLED, "interrupted while %s", d->stage);
        if (part >= parts) return ESP_OK;
        const esp_status status = do_part(d, part, worker, err);
        if (status != ESP_OK) return status;
    }
}

/* Who did what, for those who want to know; a rank whose parts took twice as long as those of the others is slow. */
static void tell_shares(const dealing *d, const share *all)
{
    const esp_run *run = d->run;
    const int size = esp_group_size(run->group);
    uint64_t parts = 0;
    double seconds = 0.0;
    for (int r = 0; r < size; r++) {
        parts += all[r].parts;
        seconds += all[r].seconds;
    }
    for (int r = 0; r < size; r++) {
        char line[ESPI_GROUP_HOST + 160];
        const double others = parts > all[r].parts ? (seconds - all[r].seconds) / (double)(parts - all[r].parts) : 0.0;
        const double own = all[r].parts > 0 ? all[r].seconds / (double)all[r].parts : 0.0;
        const bool slow = all[r].parts > 0 && all[r].seconds > 0.1 && others > 0.0 && own > 2.0 * others;
        snprintf(line, sizeof line, "%s: rank %d on %s did %llu of %llu parts in %.3f s%s", d->stage, r,
                 esp_group_host(run->group, r), (unsigned long long)all[r].parts, (unsigned long long)parts,
                 all[r].seconds, slow ? ": slow" : "");
        espi_message(run, line);
    }
}

static esp_status compare_shares(const dealing *d, double seconds, esp_error *err)
{
    const share own = {.parts = atomic_load(&d->parts), .seconds = seconds};
    share *all = espi_alloc((size_t)espi_group_size(d->run), sizeof *all);
    const esp_status status = all == NULL ? espi_no_memory(err) : espi_group_gather(d->run, &own, sizeof own, all, err);
    if (status == ESP_OK && espi_group_rank(d->run) == 0) tell_shares(d, all);
    espi_free(all);
    return status;
}

size_t espi_group_block(const esp_run *run, size_t items)
{
    enum { PARTS = 32, MOST = 256 }; /* parts for each thread; items of one */
    const size_t block = items / (PARTS * (size_t)espi_group_size(run) * (size_t)espi_worker_count(run, items));
    return block < 1 ? 1 : block > MOST ? MOST : block;
}

esp_status espi_group_deal(const esp_run *run, const char *stage, size_t items, size_t block, espi_task task,
                           void *context, esp_error *err)
{
    if (run == NULL || run->group == NULL) return espi_parallel(run, stage, items, task, context, err);
    dealing d = {.run = run, .stage = stage, .items = items, .block = block, .task = task, .context = context};
    espi_group_round(run->group, &d.round, &d.table, &d.group);
    esp_run here = espi_group_apart(run);
    const size_t workers = (size_t)espi_worker_count(run, items);
    here.progress = on_progress;
    here.user = &d;
    here.threads = (int)workers;
    const double began = espi_seconds();
    esp_error ignored;
    if (err == NULL) err = &ignored;
    esp_status status = espi_parallel(&here, stage, workers, take_parts, &d, err);
    if (status != ESP_OK && d.stopped) return espi_group_barrier(run, err); /* gives the failure of the other */
    if (status == ESP_OK) status = compare_shares(&d, espi_seconds() - began, err);
    return espi_group_end(run, status, err);
}
