#include "base/group.h"

#include "base/alloc.h"
#include "base/processors.h"
#include "base/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct member { /* what all know of a rank */
    char host[ESPI_GROUP_HOST];
    char version[ESPI_GROUP_HOST];
    uint64_t processors; /* tells apart what it is bound to */
} member;

struct esp_group {
    const espi_group_table *table;
    void *state; /* the plugin's */
    int rank, size, neighbours;
    uint64_t round; /* of the last dealing */
    bool failed;    /* this rank or another; nothing more is done together */
    member *member; /* per rank */
    espi_group_traffic traffic;
};

/* -------------------------------------------------------- one process alone */

typedef struct alone {
    pthread_mutex_t lock;
    uint64_t next, round;
} alone;

static espi_group_result open_alone(void **group, int *rank, int *size, char *why)
{
    *rank = 0;
    *size = 1;
    alone *a = *group = espi_alloc_zero(1, sizeof *a);
    if (a == NULL) snprintf(why, ESPI_GROUP_WORDS, "out of memory");
    else pthread_mutex_init(&a->lock, NULL);
    return a != NULL ? ESPI_GROUP_OK : ESPI_GROUP_BROKEN;
}

static void close_alone(void *group, bool good)
{
    alone *a = group;
    (void)good;
    pthread_mutex_destroy(&a->lock);
    espi_free(a);
}

static espi_group_result keep_alone(void *group, void *bytes, size_t size, const espi_group_wait *wait)
{
    (void)group, (void)bytes, (void)size, (void)wait;
    return ESPI_GROUP_OK;
}

static espi_group_result gather_alone(void *group, const void *bytes, size_t size, void *all,
                                      const espi_group_wait *wait)
{
    (void)group, (void)wait;
    if (size > 0) memcpy(all, bytes, size);
    return ESPI_GROUP_OK;
}

static espi_group_result next_alone(void *group, uint64_t round, uint64_t items, uint64_t *item,
                                    const espi_group_wait *wait)
{
    (void)items, (void)wait;
    alone *a = group;
    pthread_mutex_lock(&a->lock);
    if (a->round != round) a->next = 0;
    a->round = round;
    *item = a->next++;
    pthread_mutex_unlock(&a->lock);
    return ESPI_GROUP_OK;
}

static void fail_alone(void *group, const espi_group_failure *failure) { (void)group, (void)failure; }

static bool failure_alone(void *group, espi_group_failure *out)
{
    (void)group, (void)out;
    return false;
}

static double busy_alone(void *group, int rank)
{
    (void)group, (void)rank;
    return -1.0;
}

static const espi_group_table table_alone = {.head = {.name = "one", .version = ESPI_GROUP_VERSION},
                                             .open = open_alone,
                                             .close = close_alone,
                                             .broadcast = keep_alone,
                                             .gather = gather_alone,
                                             .collect = gather_alone,
                                             .merge = keep_alone,
                                             .next = next_alone,
                                             .fail = fail_alone,
                                             .failure = failure_alone,
                                             .busy = busy_alone};

/* ------------------------------------------------------------------ waiting */

typedef struct waiting {
    const esp_run *run;
    double since; /* seconds; told at rank 0 whom it waits for, once */
    bool told;
    esp_error *err;
} waiting;

/* Names the rank that has been at its item for longest. */
static void tell_slow(const waiting *w)
{
    const esp_group *group = w->run->group;
    int slow = -1;
    double most = 0.0;
    for (int r = 0; r < group->size; r++) {
        const double busy = group->table->busy(group->state, r);
        if (busy <= most) continue;
        most = busy;
        slow = r;
    }
    if (slow < 0) return;
    char line[ESPI_GROUP_HOST + 80];
    snprintf(line, sizeof line, "waiting for rank %d on %s, at work on its part for %.0f s", slow,
             group->member[slow].host, most);
    espi_message(w->run, line);
}

static bool go_on(void *user)
{
    enum { PATIENCE = 5 };
    waiting *w = user;
    if (w->run->group->rank == 0 && !w->told && espi_seconds() - w->since > PATIENCE) {
        w->told = true;
        tell_slow(w);
    }
    return espi_progress(w->run, "waiting for other ranks", -1.0, w->err) == ESP_OK;
}

static esp_status tell_failure(esp_group *group, const espi_group_failure *failure, esp_error *err)
{
    group->failed = true;
    return espi_fail(err, (esp_status)failure->status, "rank %d on %s failed: %s", failure->rank,
                     group->member[failure->rank].host, failure->words);
}

static esp_status status_of(esp_group *group, espi_group_result result, const char *why, esp_error *err)
{
    espi_group_failure failure;
    if (result == ESPI_GROUP_OK) return ESP_OK;
    if (group->table->failure(group->state, &failure)) return tell_failure(group, &failure, err);
    if (result == ESPI_GROUP_STOPPED) return ESP_ERR_CANCELLED; /* go_on has told */
    group->failed = true;
    return espi_fail(err, ESP_ERR_IO, "the ranks have lost each other: %s", why);
}

/* Shared by all functions that wait for other ranks. */
#define TOGETHER(call)                                                                                                 \
    do {                                                                                                               \
        char why[ESPI_GROUP_WORDS] = "";                                                                               \
        waiting waits = {.run = run, .since = espi_seconds(), .err = err};                                             \
        const espi_group_wait wait = {.go_on = go_on, .user = &waits, .why = why};                                     \
        esp_group *const group = run->group;                                                                           \
        return status_of(group, group->table->call, why, err);                                                         \
    } while (0)

esp_status espi_group_broadcast(const esp_run *run, void *bytes, size_t size, esp_error *err)
{
    if (run == NULL || run->group == NULL) return ESP_OK;
    if (run->group->rank == 0) run->group->traffic.given += size;
    else run->group->traffic.taken += size;
    TOGETHER(broadcast(group->state, bytes, size, &wait));
}

esp_status espi_group_gather(const esp_run *run, const void *bytes, size_t size, void *all, esp_error *err)
{
    if (run == NULL || run->group == NULL) {
        if (size > 0) memcpy(all, bytes, size);
        return ESP_OK;
    }
    run->group->traffic.given += size;
    run->group->traffic.taken += size * (size_t)(run->group->size - 1);
    TOGETHER(gather(group->state, bytes, size, all, &wait));
}

esp_status espi_group_collect(const esp_run *run, const void *bytes, size_t size, void *all, esp_error *err)
{
    if (run == NULL || run->group == NULL) return espi_group_gather(run, bytes, size, all, err);
    if (run->group->rank == 0) run->group->traffic.taken += size * (size_t)(run->group->size - 1);
    else run->group->traffic.given += size;
    TOGETHER(collect(group->state, bytes, size, all, &wait));
}

void espi_group_parts_free(espi_group_parts *parts)
{
    espi_free(parts->bytes);
    espi_free(parts->size);
    *parts = (espi_group_parts){0};
}

esp_status espi_group_bring(const esp_run *run, const void *bytes, size_t size, bool everywhere, espi_group_parts *out,
                            esp_error *err)
{
    const size_t ranks = (size_t)espi_group_size(run);
    const bool here = everywhere || espi_group_rank(run) == 0;
    const uint64_t own = size;
    *out = (espi_group_parts){.size = espi_alloc(ranks, sizeof *out->size)};
    if (out->size == NULL) return espi_no_memory(err);
    esp_status status = espi_group_gather(run, &own, sizeof own, out->size, err);
    if (status != ESP_OK) return status;
    for (size_t r = 0; r < ranks; r++)
        if (out->size[r] > out->stride) out->stride = (size_t)out->size[r];
    char *padded = espi_alloc_zero(out->stride, 1);
    if (here) out->bytes = espi_alloc(ranks, out->stride);
    if (padded == NULL || (here && out->bytes == NULL)) status = espi_no_memory(err);
    if (status == ESP_OK && size > 0) memcpy(padded, bytes, size);
    if (status == ESP_OK)
        status = everywhere ? espi_group_gather(run, padded, out->stride, out->bytes, err)
                            : espi_group_collect(run, padded, out->stride, out->bytes, err);
    espi_free(padded);
    return status;
}

esp_status espi_group_merge(const esp_run *run, void *bytes, size_t size, esp_error *err)
{
    if (run == NULL || run->group == NULL) return ESP_OK;
    TOGETHER(merge(group->state, bytes, size, &wait));
}

esp_status espi_group_barrier(const esp_run *run, esp_error *err)
{
    uint64_t nothing = 0;
    return espi_group_merge(run, &nothing, sizeof nothing, err);
}

esp_status espi_group_sum(const esp_run *run, double *value, size_t count, esp_error *err)
{
    enum { PIECE = 1 << 14 }; /* numbers */
    if (!espi_group_shares(run) || count == 0) return ESP_OK;
    const size_t size = (size_t)run->group->size;
    double *all = espi_alloc(size * PIECE, sizeof *all);
    esp_status status = all == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < count; first += PIECE) {
        const size_t some = count - first < PIECE ? count - first : PIECE;
        status = espi_group_gather(run, value + first, some * sizeof *value, all, err);
        for (size_t i = 0; status == ESP_OK && i < some; i++) {
            double sum = 0.0;
            for (size_t r = 0; r < size; r++) sum += all[r * some + i];
            value[first + i] = sum;
        }
    }
    espi_free(all);
    return status;
}

esp_status espi_group_end(const esp_run *run, esp_status status, const esp_error *err)
{
    if (status != ESP_OK && run != NULL) esp_group_fail(run->group, status, err != NULL ? err->message : "");
    return status;
}

/* ------------------------------------------------------------------ agreeing */

esp_status espi_group_agree(const esp_run *run, const char *what, uint64_t digest, esp_error *err)
{
    if (!espi_group_shares(run)) return ESP_OK;
    const esp_group *group = run->group;
    uint64_t *all = espi_alloc((size_t)group->size, sizeof *all);
    esp_status status = all == NULL ? espi_no_memory(err) : espi_group_gather(run, &digest, sizeof digest, all, err);
    for (int r = 1; status == ESP_OK && r < group->size; r++)
        if (all[r] != all[0])
            status = espi_fail(err, ESP_ERR_PARAM, "rank %d on %s has %s than rank 0 on %s", r, group->member[r].host,
                               what, group->member[0].host);
    espi_free(all);
    return status;
}

/* Where two texts differ: the line of each. */
static esp_status tell_difference(const esp_group *group, int rank, const char *what, const char *first,
                                  const char *other, esp_error *err)
{
    char has[96], not_[96];
    size_t size = strcspn(first, "\n"), others = strcspn(other, "\n");
    while (size == others && strncmp(first, other, size) == 0 && first[size] != '\0') {
        first += size + 1;
        other += size + 1;
        size = strcspn(first, "\n");
        others = strcspn(other, "\n");
    }
    const char *none = "nothing";
    return espi_fail(err, ESP_ERR_PARAM, "rank %d on %s has another %s than rank 0 on %s: %s, not %s", rank,
                     group->member[rank].host, what, group->member[0].host,
                     others > 0 ? espi_quote(other, others, has) : none,
                     size > 0 ? espi_quote(first, size, not_) : none);
}

esp_status esp_group_agree(const esp_run *run, const char *what, const char *text, esp_error *err)
{
    if (!espi_group_shares(run)) return ESP_OK;
    const esp_group *group = run->group;
    const size_t ranks = (size_t)group->size;
    uint64_t size = strlen(text) + 1, most = 0, *sizes = espi_alloc(ranks, sizeof *sizes);
    char *own = NULL, *all = NULL;
    esp_status status = sizes == NULL ? espi_no_memory(err) : espi_group_gather(run, &size, sizeof size, sizes, err);
    for (size_t r = 0; status == ESP_OK && r < ranks; r++) most = sizes[r] > most ? sizes[r] : most;
    if (status == ESP_OK) {
        own = espi_alloc_zero((size_t)most, 1);
        all = espi_alloc(ranks, (size_t)most);
        if (own == NULL || all == NULL) status = espi_no_memory(err);
    }
    if (status == ESP_OK) {
        memcpy(own, text, size);
        status = espi_group_gather(run, own, (size_t)most, all, err);
    }
    for (size_t r = 1; status == ESP_OK && r < ranks; r++)
        if (strcmp(all, all + r * most) != 0) status = tell_difference(group, (int)r, what, all, all + r * most, err);
    espi_free(sizes);
    espi_free(own);
    espi_free(all);
    return status;
}

esp_status esp_group_wait(const esp_run *run, esp_error *err) { return espi_group_barrier(run, err); }

/* ------------------------------------------------------------------- opening */

/* Everybody learns who the others are. */
static esp_status introduce(esp_group *group, esp_error *err)
{
    const esp_run run = {.group = group};
    member own = {0};
    if (gethostname(own.host, sizeof own.host - 1) != 0) snprintf(own.host, sizeof own.host, "unknown");
    snprintf(own.version, sizeof own.version, "%s", esp_version());
    espi_processors_bound(&own.processors);
    esp_status status = espi_group_gather(&run, &own, sizeof own, group->member, err);
    for (int r = 0; status == ESP_OK && r < group->size; r++) {
        const member *m = &group->member[r];
        group->neighbours += strcmp(m->host, own.host) == 0 && m->processors == own.processors;
        if (strcmp(m->version, group->member[0].version) != 0)
            status = espi_fail(err, ESP_ERR_PARAM, "rank %d on %s has version %s of Espalier, and rank 0 on %s has %s",
                               r, m->host, m->version, group->member[0].host, group->member[0].version);
    }
    return status;
}

esp_status espi_group_open(const char *folder, const char *name, esp_group **out, esp_error *err)
{
    const espi_plugin_head *head = &table_alone.head;
    char why[ESPI_GROUP_WORDS] = "";
    esp_status status = ESP_OK;
    *out = NULL;
    if (strcmp(name, "one") != 0)
        status = espi_plugin_load(folder, name, ESPI_GROUP_VERSION, sizeof(espi_group_table), &head, err);
    if (status != ESP_OK) return status;
    esp_group *group = espi_alloc_zero(1, sizeof *group);
    if (group == NULL) return espi_no_memory(err);
    group->table = (const espi_group_table *)(const void *)head;
    if (group->table->open(&group->state, &group->rank, &group->size, why) != ESPI_GROUP_OK) {
        espi_free(group);
        if (head == &table_alone.head) return espi_no_memory(err);
        espi_fail(err, ESP_ERR_IO, "%s", why);
        if (err != NULL) err->system = ENODEV;
        return ESP_ERR_IO;
    }
    group->member = espi_alloc_zero((size_t)group->size, sizeof *group->member);
    status = group->member == NULL ? espi_no_memory(err) : introduce(group, err);
    if (status == ESP_OK) {
        *out = group;
        return ESP_OK;
    }
    group->failed = true; /* all have seen the same */
    esp_group_close(group);
    return status;
}

esp_status esp_group_open(const char *name, esp_group **out, esp_error *err)
{
    return espi_group_open(NULL, name, out, err);
}

int esp_group_rank(const esp_group *group) { return group->rank; }
int esp_group_size(const esp_group *group) { return group->size; }

const char *esp_group_host(const esp_group *group, int rank)
{
    return rank >= 0 && rank < group->size ? group->member[rank].host : NULL;
}

void esp_group_fail(esp_group *group, esp_status status, const char *sentence)
{
    if (group == NULL || group->failed) return;
    espi_group_failure failure = {.rank = group->rank, .status = (int)status};
    snprintf(failure.words, sizeof failure.words, "%s", sentence);
    group->failed = true;
    group->table->fail(group->state, &failure);
}

void esp_group_close(esp_group *group)
{
    if (group == NULL) return;
    group->table->close(group->state, !group->failed);
    espi_free(group->member);
    espi_free(group);
}

bool espi_group_shares(const esp_run *run) { return run != NULL && run->group != NULL && run->group->size > 1; }
int espi_group_rank(const esp_run *run) { return run != NULL && run->group != NULL ? run->group->rank : 0; }
int espi_group_size(const esp_run *run) { return run != NULL && run->group != NULL ? run->group->size : 1; }
espi_group_traffic espi_group_traffic_of(const esp_run *run)
{
    return run != NULL && run->group != NULL ? run->group->traffic : (espi_group_traffic){0};
}
int espi_group_neighbours(const esp_group *group) { return group->neighbours > 0 ? group->neighbours : 1; }

void espi_group_round(esp_group *group, uint64_t *round, const espi_group_table **table, void **state)
{
    *round = ++group->round;
    *table = group->table;
    *state = group->state;
}

esp_run espi_group_apart(const esp_run *run)
{
    esp_run apart = run != NULL ? *run : (esp_run){0};
    if (apart.group != NULL) apart.threads = espi_worker_count(run, SIZE_MAX);
    apart.group = NULL;
    return apart;
}
