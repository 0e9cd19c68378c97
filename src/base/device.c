/* The algebra of algebra.h by a device: its matrix is a copy, made row by row and fetched in the same way. */
#include "base/device.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum {
    LEAST = 512,      /* rows of a matrix: for fewer, sending them takes longer than doing it here */
    WORTHWHILE = 2000 /* examples: for fewer, opening the device takes longer than it saves */
};

struct esp_device {
    const espi_device_table *table;
    void *state;          /* the plugin's */
    pthread_mutex_t lock; /* one thread at a time asks for something */
    size_t memory;        /* bytes that were free when it was opened */
    char name[ESPI_DEVICE_WORDS];
};

typedef struct device_matrix {
    esp_device *device;
    void *matrix;
} device_matrix;

esp_status espi_device_open(const char *folder, const char *name, esp_device **out, esp_error *err)
{
    const espi_plugin_head *head;
    char why[ESPI_DEVICE_WORDS] = "";
    *out = NULL;
    const esp_status status =
        espi_plugin_load(folder, name, ESPI_DEVICE_VERSION, sizeof(espi_device_table), &head, err);
    if (status != ESP_OK) return status;
    esp_device *device = espi_alloc_zero(1, sizeof *device);
    if (device == NULL) return espi_no_memory(err);
    device->table = (const espi_device_table *)(const void *)head;
    if (device->table->open(&device->state, device->name, &device->memory, why) != ESPI_DEVICE_OK) {
        espi_free(device);
        espi_fail(err, ESP_ERR_IO, "%s", why);
        if (err != NULL) err->system = ENODEV;
        return ESP_ERR_IO;
    }
    pthread_mutex_init(&device->lock, NULL);
    *out = device;
    return ESP_OK;
}

esp_status esp_device_open(const char *name, esp_device **out, esp_error *err)
{
    return espi_device_open(NULL, name, out, err);
}

const char *esp_device_name(const esp_device *device) { return device->name; }

bool esp_device_pays(size_t examples) { return examples >= WORTHWHILE; }

esp_status esp_device_fits(const esp_device *device, size_t examples, esp_error *err)
{
    const double matrix = (double)examples * (double)examples * sizeof(double), memory = (double)device->memory;
    char need[32], room[32];
    if (matrix <= memory) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY,
                     "a matrix of %zu examples takes %s and the GPU has %s free: using the CPU for it", examples,
                     espi_size_text(matrix, need), espi_size_text(memory, room));
}

void esp_device_close(esp_device *device)
{
    if (device == NULL) return;
    device->table->close(device->state);
    pthread_mutex_destroy(&device->lock);
    espi_free(device);
}

bool espi_device_takes(const esp_run *run, size_t n) { return run != NULL && run->device != NULL && n >= LEAST; }

/* ------------------------------------------------------------------- rows */

typedef struct sending {
    const device_matrix *m;
    espi_factor *factor;
    size_t rows; /* of an item */
    bool back;
} sending;

static esp_status broken(const char *why, esp_error *err)
{
    return espi_fail(err, ESP_ERR_IO, "the GPU failed: %s; run again without it (device cpu)", why);
}

static esp_status send_rows(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    sending *s = context;
    const espi_device_table *table = s->m->device->table;
    const size_t n = s->factor->n, first = item * s->rows, rows = n - first < s->rows ? n - first : s->rows;
    const unsigned lane = (unsigned)worker->number;
    char why[ESPI_DEVICE_WORDS] = "";
    double *numbers = s->factor->a + first * n;
    const espi_device_result result = s->back ? table->get(s->m->matrix, lane, first, rows, numbers, why)
                                              : table->put(s->m->matrix, lane, first, rows, numbers, why);
    return result == ESPI_DEVICE_OK ? ESP_OK : broken(why, err);
}

/* All rows, there or back. */
static esp_status send(const device_matrix *m, espi_factor *factor, bool back, const esp_run *run, esp_error *err)
{
    sending s = {.m = m, .factor = factor, .rows = m->device->table->rows_most(m->matrix), .back = back};
    esp_run lanes = run != NULL ? *run : (esp_run){0};
    lanes.threads = espi_worker_count(run, ESPI_DEVICE_LANES);
    return espi_parallel(&lanes, "copying", (factor->n + s.rows - 1) / s.rows, send_rows, &s, err);
}

/* -------------------------------------------------------------- functions */

typedef struct asking {
    const esp_run *run;
    const char *stage;
    esp_error *err;
} asking;

static bool go_on(void *user)
{
    const asking *a = user;
    return espi_progress(a->run, a->stage, -1.0, a->err) == ESP_OK;
}

static esp_status status_of(espi_device_result result, const char *why, esp_error *err)
{
    return result == ESPI_DEVICE_OK        ? ESP_OK
           : result == ESPI_DEVICE_STOPPED ? ESP_ERR_CANCELLED /* go_on has told */
                                           : broken(why, err);
}

static void release(espi_factor *factor)
{
    device_matrix *m = factor->own;
    if (m == NULL) return;
    pthread_mutex_lock(&m->device->lock);
    m->device->table->matrix_free(m->matrix);
    pthread_mutex_unlock(&m->device->lock);
    espi_free(m);
    factor->own = NULL;
}

/* With the lock held. ESP_ERR_MEMORY: the device has no room or fails, and the matrix is as it was. */
static esp_status make_there(espi_factor *factor, const esp_run *run, esp_error *err)
{
    device_matrix *m = factor->own;
    const espi_device_table *table = m->device->table;
    char why[ESPI_DEVICE_WORDS] = "";
    asking a = {run, "factoring", err};
    double *diagonal = espi_alloc(factor->n, sizeof *diagonal);
    if (diagonal == NULL) return espi_no_memory(err);
    esp_status status = table->matrix_new(m->device->state, factor->n, &m->matrix, why) == ESPI_DEVICE_OK
                            ? send(m, factor, false, run, err)
                            : espi_fail(err, ESP_ERR_MEMORY, "%s", why);
    if (status == ESP_OK) status = status_of(table->factor(m->matrix, &factor->failed, go_on, &a, why), why, err);
    const bool whole = status == ESP_OK && factor->failed == 0;
    if (whole) status = status_of(table->diagonal(m->matrix, diagonal, why), why, err);
    for (size_t i = 0; whole && status == ESP_OK && i < factor->n; i++) factor->a[i * factor->n + i] = diagonal[i];
    espi_free(diagonal);
    return status == ESP_ERR_IO ? ESP_ERR_MEMORY : status;
}

static esp_status make(espi_factor *factor, const esp_run *run, esp_error *err)
{
    device_matrix *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return espi_no_memory(err);
    m->device = run->device;
    factor->own = m;
    pthread_mutex_lock(&m->device->lock);
    const esp_status status = make_there(factor, run, err);
    pthread_mutex_unlock(&m->device->lock);
    if (status != ESP_OK || factor->failed > 0) release(factor);
    return status;
}

static esp_status solve(const espi_factor *factor, bool turn, double *x, size_t count, const esp_run *run,
                        esp_error *err)
{
    const device_matrix *m = factor->own;
    char why[ESPI_DEVICE_WORDS] = "";
    esp_status status = espi_progress(run, "solving", -1.0, err);
    if (status != ESP_OK) return status;
    pthread_mutex_lock(&m->device->lock);
    status = status_of(m->device->table->solve(m->matrix, turn, x, count, why), why, err);
    pthread_mutex_unlock(&m->device->lock);
    return status;
}

static esp_status fetch(espi_factor *factor, const esp_run *run, esp_error *err)
{
    const device_matrix *m = factor->own;
    pthread_mutex_lock(&m->device->lock);
    const esp_status status = send(m, factor, true, run, err);
    pthread_mutex_unlock(&m->device->lock);
    return status;
}

static esp_status invert(espi_factor *factor, const esp_run *run, esp_error *err)
{
    const device_matrix *m = factor->own;
    char why[ESPI_DEVICE_WORDS] = "";
    asking a = {run, "inverting", err};
    pthread_mutex_lock(&m->device->lock);
    const esp_status status = status_of(m->device->table->invert(m->matrix, go_on, &a, why), why, err);
    pthread_mutex_unlock(&m->device->lock);
    return status == ESP_OK ? fetch(factor, run, err) : status;
}

const espi_algebra espi_algebra_device = {
    .name = "device", .make = make, .solve = solve, .fetch = fetch, .invert = invert, .release = release};
