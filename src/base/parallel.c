#include "base/parallel.h"

#include "base/alloc.h"
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 1024 };

typedef struct shared_work {
    const esp_run *run;
    const char *stage;
    size_t items;
    espi_task task;
    void *context;
    atomic_size_t next;
    atomic_bool failed;    /* no item is begun any more */
    atomic_bool cancelled; /* nor is one that was begun to be finished */
    pthread_mutex_t lock;  /* guards what follows */
    pthread_cond_t ended;
    int running; /* workers besides the first */
    size_t failed_item;
    esp_status status;
    esp_error error;
} shared_work;

typedef struct thread {
    shared_work *shared_work;
    espi_worker worker;
    esp_run run;
    pthread_t thread;
} thread;

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

static void record(shared_work *j, size_t item, esp_status status, const esp_error *error)
{
    pthread_mutex_lock(&j->lock);
    if (j->status == ESP_OK || item < j->failed_item) {
        j->status = status;
        j->failed_item = item;
        j->error = *error;
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->failed, true);
    if (status == ESP_ERR_CANCELLED) atomic_store(&j->cancelled, true);
}

/* The progress function of all workers but the first. */
static int is_cancelled(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    shared_work *j = user;
    return atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

static void report(shared_work *j, size_t done)
{
    esp_error error = {0};
    const esp_status status = espi_progress(j->run, j->stage, (double)done / (double)j->items, &error);
    if (status != ESP_OK) record(j, j->items, status, &error);
}

static void work(thread *self)
{
    shared_work *j = self->shared_work;
    esp_error error = {0};
    while (!atomic_load(&j->failed)) {
        const size_t item = atomic_fetch_add(&j->next, 1);
        if (item >= j->items) break;
        const esp_status status = j->task(j->context, item, &self->worker, &error);
        if (status != ESP_OK) record(j, item, status, &error);
        if (self->worker.number == 0) report(j, item + 1);
    }
}

static void *work_beside(void *argument)
{
    thread *self = argument;
    shared_work *j = self->shared_work;
    work(self);
    pthread_mutex_lock(&j->lock);
    j->running--;
    pthread_cond_signal(&j->ended);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* Until the others have finished what they began. */
static void wait_for_others(shared_work *j)
{
    enum { PAUSE = 50000000 }; /* nanoseconds between two questions whether to go on */
    pthread_mutex_lock(&j->lock);
    while (j->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PAUSE;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&j->ended, &j->lock, &until) == 0) continue;
        const size_t done = j->items - (size_t)j->running;
        pthread_mutex_unlock(&j->lock);
        if (!atomic_load(&j->cancelled)) report(j, done);
        pthread_mutex_lock(&j->lock);
    }
    pthread_mutex_unlock(&j->lock);
}

static void start_job(shared_work *j)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&j->lock, NULL);
}

esp_status espi_parallel(const esp_run *run, const char *stage, size_t items, espi_task task, void *context,
                         esp_error *err)
{
    const int count = espi_worker_count(run, items);
    thread *threads = espi_alloc((size_t)count, sizeof *threads);
    if (threads == NULL) return espi_no_memory(err);
    shared_work j = {.run = run, .stage = stage, .items = items, .task = task, .context = context};
    start_job(&j);
    threads[0] = (thread){.shared_work = &j, .worker = {.number = 0, .run = run}};
    int started = 1; /* a thread that cannot be started is done without: the others take its items */
    for (; started < count; started++) {
        thread *t = &threads[started];
        *t = (thread){.shared_work = &j, .run = {.threads = 1, .progress = is_cancelled, .user = &j}};
        t->run.memory = run != NULL ? run->memory : 0;
        t->worker = (espi_worker){.number = started, .run = &t->run};
        pthread_mutex_lock(&j.lock);
        const bool ok = pthread_create(&t->thread, NULL, work_beside, t) == 0;
        if (ok) j.running++;
        pthread_mutex_unlock(&j.lock);
        if (!ok) break;
    }
    work(&threads[0]);
    wait_for_others(&j);
    for (int i = 1; i < started; i++) pthread_join(threads[i].thread, NULL);
    pthread_cond_destroy(&j.ended);
    pthread_mutex_destroy(&j.lock);
    espi_free(threads);
    if (j.status != ESP_OK && err != NULL) *err = j.error;
    return j.status;
}

void espi_message(const esp_run *run, const char *line)
{
    if (run != NULL && run->message != NULL) run->message(run->user, line);
}
