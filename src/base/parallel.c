#include "base/parallel.h"

#include "base/alloc.h"
#include "base/group.h"
#include "base/processors.h"
#include "base/status.h"

#include <pthread.h>
#include <time.h>

const esp_run espi_alone = {.threads = 1};

enum { MAX_WORKERS = 1024 };

typedef struct espi_team {
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
    pthread_cond_t marked; /* a mark was set, or an item failed */
    atomic_int waiting;    /* workers that wait for a mark */
    int running;           /* workers besides the first */
    size_t failed_item;
    esp_status status;
    esp_error error;
} team;

typedef struct thread {
    team *team;
    espi_worker worker;
    esp_run run;
    pthread_t thread;
} thread;

int espi_worker_count(const esp_run *run, size_t items)
{
    long count = run != NULL && run->threads > 0 ? run->threads : espi_processors();
    if (run != NULL && run->threads <= 0 && run->group != NULL) count /= espi_group_neighbours(run->group);
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

/* Of item w->items: the caller was asked to stop. A task that gave up waiting for one that failed changes nothing. */
static void record(team *w, size_t item, esp_status status, const esp_error *error)
{
    pthread_mutex_lock(&w->lock);
    const bool lowest = w->status == ESP_OK || item < w->failed_item;
    if (lowest) {
        w->status = status;
        w->failed_item = item;
        w->error = *error;
    }
    atomic_store(&w->failed, true);
    if (status == ESP_ERR_CANCELLED && (lowest || item == w->items)) atomic_store(&w->cancelled, true);
    pthread_cond_broadcast(&w->marked);
    pthread_mutex_unlock(&w->lock);
}

void espi_mark_set(const espi_worker *worker, espi_mark *mark)
{
    team *w = worker->team;
    atomic_store(mark, true);
    if (w == NULL || atomic_load(&w->waiting) == 0) return; /* whoever comes to wait from now on sees the mark */
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->marked);
    pthread_mutex_unlock(&w->lock);
}

esp_status espi_mark_await(const espi_worker *worker, const espi_mark *mark, esp_error *err)
{
    team *w = worker->team;
    if (atomic_load(mark)) return ESP_OK;
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add(&w->waiting, 1);
    while (!atomic_load(mark) && !atomic_load(&w->failed)) pthread_cond_wait(&w->marked, &w->lock);
    atomic_fetch_sub(&w->waiting, 1);
    pthread_mutex_unlock(&w->lock);
    return atomic_load(mark) ? ESP_OK : espi_fail(err, ESP_ERR_CANCELLED, "interrupted while %s", w->stage);
}

/* The progress function of all workers but the first. */
static int is_cancelled(void *user, const char *stage, double fraction)
{
    (void)stage, (void)fraction;
    team *w = user;
    return atomic_load_explicit(&w->cancelled, memory_order_relaxed);
}

static void report(team *w, size_t done)
{
    esp_error error = {0};
    const esp_status status = espi_progress(w->run, w->stage, (double)done / (double)w->items, &error);
    if (status != ESP_OK) record(w, w->items, status, &error);
}

static void take_items(thread *self)
{
    team *w = self->team;
    esp_error error = {0};
    while (!atomic_load(&w->failed)) {
        const size_t item = atomic_fetch_add(&w->next, 1);
        if (item >= w->items) break;
        const esp_status status = w->task(w->context, item, &self->worker, &error);
        if (status != ESP_OK) record(w, item, status, &error);
        if (self->worker.number == 0) report(w, item + 1);
    }
}

static void *run_thread(void *argument)
{
    thread *self = argument;
    team *w = self->team;
    take_items(self);
    pthread_mutex_lock(&w->lock);
    w->running--;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Until the others have finished what they began. */
static void wait_for_others(team *w)
{
    enum { PAUSE = 50000000 }; /* nanoseconds between two questions whether to go on */
    pthread_mutex_lock(&w->lock);
    while (w->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PAUSE;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&w->ended, &w->lock, &until) == 0) continue;
        const size_t done = w->items - (size_t)w->running;
        pthread_mutex_unlock(&w->lock);
        if (!atomic_load(&w->cancelled)) report(w, done);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

static void make_team(team *w)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&w->marked, NULL);
    pthread_mutex_init(&w->lock, NULL);
}

esp_status espi_parallel(const esp_run *run, const char *stage, size_t items, espi_task task, void *context,
                         esp_error *err)
{
    const int count = espi_worker_count(run, items);
    thread *threads = espi_alloc((size_t)count, sizeof *threads);
    if (threads == NULL) return espi_no_memory(err);
    team w = {.run = run, .stage = stage, .items = items, .task = task, .context = context};
    make_team(&w);
    threads[0] = (thread){.team = &w, .worker = {.number = 0, .team = &w, .run = run}};
    if (run != NULL && run->group != NULL) { /* not all ranks do the same in a task */
        threads[0].run = *run;
        threads[0].run.group = NULL;
        threads[0].worker.run = &threads[0].run;
    }
    int started = 1; /* a thread that cannot be started is done without: the others take its items */
    for (; started < count; started++) {
        thread *t = &threads[started];
        *t = (thread){.team = &w, .run = {.threads = 1, .progress = is_cancelled, .user = &w}};
        t->run.memory = run != NULL ? run->memory : 0;
        t->worker = (espi_worker){.number = started, .team = &w, .run = &t->run};
        pthread_mutex_lock(&w.lock);
        const bool ok = pthread_create(&t->thread, NULL, run_thread, t) == 0;
        if (ok) w.running++;
        pthread_mutex_unlock(&w.lock);
        if (!ok) break;
    }
    take_items(&threads[0]);
    wait_for_others(&w);
    for (int i = 1; i < started; i++) pthread_join(threads[i].thread, NULL);
    pthread_cond_destroy(&w.ended);
    pthread_cond_destroy(&w.marked);
    pthread_mutex_destroy(&w.lock);
    espi_free(threads);
    if (w.status != ESP_OK && err != NULL) *err = w.error;
    return w.status;
}

double espi_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void espi_message(const esp_run *run, const char *line)
{
    if (run != NULL && run->message != NULL) run->message(run->user, line);
}
