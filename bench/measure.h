/* What the benchmarks share: clocks, medians, and giving up with a sentence. */
#ifndef MEASURE_H
#define MEASURE_H

#include "espalier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 99 }; /* repeats */

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(const double *value, int count)
{
    double sorted[MOST];
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0;
}

static inline void check(esp_status status, const esp_error *err)
{
    if (status == ESP_OK) return;
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static inline void *need(void *block)
{
    if (block != NULL) return block;
    fprintf(stderr, "bench: out of memory\n");
    exit(1);
}

static inline void *zeros(size_t count, size_t size) { return need(calloc(count + 1, size)); }

/* Seconds of the processor, all threads together. */
static inline double spent(void) { return (double)clock() / CLOCKS_PER_SEC; }

static inline int repeats_of(const char *text) { return atoi(text) < 1 ? 1 : atoi(text) < MOST ? atoi(text) : MOST; }

static const esp_run one_thread = {.threads = 1};

/* `target` may be NULL. */
static inline esp_dataset *load(const char *path, const char *target)
{
    esp_dataset *data;
    esp_error err;
    const esp_read_options options = {.target = target};
    check(esp_dataset_read(path, &options, &one_thread, &data, &err), &err);
    return data;
}

static inline esp_kernel *parse(const char *text)
{
    esp_kernel *kernel;
    esp_error err;
    check(esp_kernel_parse(text, &kernel, &err), &err);
    return kernel;
}

#endif
