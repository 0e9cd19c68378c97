#include "base/parallel.h"

#include "base/alloc.h"
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_WORKERS = 1024 };

typedef struct job {
    const esp_run *run;
    const char *stage;
    size_t items;
    espi_task task;
    void *context;
    atomic_size_t next;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows */
    size_t failed_item;
    esp_status status;
    esp_error error;
} job;

typedef struct worker {
    job *job;
    int number;
    pthread_t thread;
} worker;

int espi_worker_count(const esp_run *run, size_t items)
{
    long count = run != NULL && run->threads > 0 ? run->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (count > MAX_WORKERS) count = MAX_WORKERS;
    if (count > 0 && (size_t)count > items) count = (long)items;
    return count < 1 ? 1 : (int)count;
}

esp_status espi_progress(const esp_run *run, const char *stage, double fraction, esp_error *err)
{
    if (run == NULL || run->progress == NULL || run->progress(run->user, stage, fraction) == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_CANCELLED, "interrupted while %s", stage);
}

esp_status espi_progress_at_times(const esp_run *run, const char *stage, size_t *work, esp_error *err)
{
    enum { PATIENCE = 1 << 26 };
    if (*work < PATIENCE) return ESP_OK;
    *work = 0;
    return espi_progress(run, stage, -1.0, err);
}

static void record(job *j, size_t item, esp_status status, const esp_error *error)
{
    pthread_mutex_lock(&j->lock);
    if (j->status == ESP_OK || item < j->failed_item) {
        j->status = status;
        j->failed_item = item;
        j->error = *error;
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->stop, true);
}

static void *work(void *argument)
{
    const worker *self = argument;
    job *j = self->job;
    esp_error error = {0};
    while (!atomic_load(&j->stop)) {
        const size_t item = atomic_fetch_add(&j->next, 1);
        if (item >= j->items) break;
        esp_status status = j->task(j->context, item, self->number, &error);
        if (status != ESP_OK) record(j, item, status, &error);
        if (self->number != 0) continue;
        status = espi_progress(j->run, j->stage, (double)(item + 1) / (double)j->items, &error);
        if (status != ESP_OK) record(j, j->items, status, &error);
    }
    return NULL;
}

esp_status espi_parallel(const esp_run *run, const char *stage, size_t items, espi_task task, void *context,
                         esp_error *err)
{
    const int count = espi_worker_count(run, items);
    worker *workers = espi_alloc((size_t)count, sizeof *workers);
    if (workers == NULL) return espi_no_memory(err);
    job j = {.run = run, .stage = stage, .items = items, .task = task, .context = context};
    pthread_mutex_init(&j.lock, NULL);
    int started = 1; /* a thread that cannot be started is done without: the others take its items */
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){.job = &j, .number = i};
        if (i > 0 && started == i && pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0) started++;
    }
    work(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&j.lock);
    espi_free(workers);
    if (j.status != ESP_OK && err != NULL) *err = j.error;
    return j.status;
}
