/* What the tests share: datasets made in memory, Gram matrices that must succeed, and memory that runs out. */
#ifndef CASES_H
#define CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/hot.h"
#include "espalier.h"
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often something is tried. Sanitizers take many times as long, and find what is wrong at a place in fewer rounds;
 * numbers are the same with them. */
#ifdef ESPI_SANITIZED
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#define REPEATS(full) (SANITIZED ? ((full) + 3) / 4 : (full))

static inline void assert_ok(esp_status status, const char *what, const esp_error *err)
{
    if (status != ESP_OK) fail_msg("%s: status %d: %s", what, (int)status, err->message);
}

/* Equal up to `tolerance`, relative to the larger of the two. */
static inline void assert_close(double is, double expected, double tolerance, const char *what)
{
    if (!(fabs(is - expected) <= tolerance * fmax(fabs(is), fabs(expected))))
        fail_msg("%s is %.17g instead of %.17g", what, is, expected);
}

/* Equal up to `tolerance`, relative to 1 and what is expected; `what` at `place` is named. */
static inline void assert_near_at(double is, double expected, double tolerance, const char *what, size_t place)
{
    if (!(fabs(is - expected) <= tolerance * (1.0 + fabs(expected))))
        fail_msg("%s, %zu: %.15g instead of %.15g", what, place, is, expected);
}

static inline esp_dataset *dataset_of(const char *lines)
{
    esp_dataset *data = NULL;
    esp_error err = {0};
    const esp_read_options options = {.format = ESP_FORMAT_JSONL};
    assert_ok(esp_dataset_parse(lines, strlen(lines), "lines", &options, NULL, &data, &err), lines, &err);
    return data;
}

static inline esp_dataset *dataset_of_trees(char *const *tree, size_t count)
{
    size_t room = 1;
    for (size_t i = 0; i < count; i++) room += strlen(tree[i]) + 16;
    char *lines = malloc(room), *end = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) end += sprintf(end, "{\"tree\": \"%s\"}\n", tree[i]);
    esp_dataset *data = dataset_of(lines);
    free(lines);
    assert_int_equal(esp_dataset_count(data), count);
    return data;
}

/* A deep tree: `steps` times `step`, which opens brackets, then `end`, and all of them closed. The caller frees it. */
static inline char *chain(const char *step, const char *end, size_t steps)
{
    size_t open = 0;
    for (const char *c = step; *c != '\0'; c++) open += *c == '(', open -= *c == ')';
    char *text = malloc(steps * (strlen(step) + open) + strlen(end) + 1), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < steps; i++) at += sprintf(at, "%s", step);
    at += sprintf(at, "%s", end);
    memset(at, ')', steps * open);
    at[steps * open] = '\0';
    return text;
}

/* "a b" -> "ab"; `out` has room for it. */
static inline const char *letters(const char *text, char *out)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        if (*text != ' ') out[n++] = *text;
    out[n] = '\0';
    return out;
}

static inline esp_kernel *kernel_of(const char *expression)
{
    esp_kernel *kernel = NULL;
    esp_error err = {0};
    assert_ok(esp_kernel_parse(expression, &kernel, &err), expression, &err);
    return kernel;
}

/* The matrix of `rows` against `cols` (NULL: `rows`); the caller frees it. */
static inline double *gram_of(const char *expression, const esp_dataset *rows, const esp_dataset *cols, int threads)
{
    esp_kernel *kernel = kernel_of(expression);
    const size_t m = esp_dataset_count(rows), n = esp_dataset_count(cols == NULL ? rows : cols);
    double *gram = malloc((m * n + 1) * sizeof *gram);
    assert_non_null(gram);
    esp_error err = {0};
    assert_ok(esp_gram(kernel, rows, cols, &(esp_run){.threads = threads}, gram, &err), expression, &err);
    esp_kernel_free(kernel);
    return gram;
}

/* K of the first two examples of a dataset. */
static inline double value_of(const char *expression, const esp_dataset *data)
{
    double *gram = gram_of(expression, data, NULL, 1);
    const double value = gram[esp_dataset_count(data) > 1 ? 1 : 0];
    free(gram);
    return value;
}

/* ------------------------------------------------------------------ memory */

static inline int no_blocks_left(void **state)
{
    (void)state;
    return espi_alloc_live() != 0;
}

/* Gets its argument and a clean error, frees all that it makes, and returns its status. */
typedef esp_status (*fallible)(const void *argument, esp_error *err);

/* The n-th allocation of the call fails, for every n (under a sanitizer for all n at first, then for one in three):
 * memory is named as the reason, in a sentence, no block is left, and in the end it works. Returns how often it did
 * without what was refused. */
static inline size_t out_of_memory_everywhere(fallible call, const void *argument)
{
    bool reached = true;
    size_t survived = 0;
    for (long n = 0; reached; n += SANITIZED && n >= 60 ? 1 + n % 5 : 1) {
        const long live = espi_alloc_live();
        esp_error err = {0};
        espi_alloc_fail_after(n);
        const esp_status status = call(argument, &err);
        reached = espi_alloc_fail_after(-1) < 0;
        if (status != ESP_OK && (status != ESP_ERR_MEMORY || !reached))
            fail_msg("allocation %ld refused: status %d, '%s'", n, (int)status, err.message);
        if (status != ESP_OK && err.message[0] == '\0') fail_msg("allocation %ld refused: no sentence", n);
        if (espi_alloc_live() != live) fail_msg("allocation %ld refused: %ld blocks left", n, espi_alloc_live() - live);
        if (n > 100000) fail_msg("the call never gets by with %ld allocations", n);
        survived += reached && status == ESP_OK;
    }
    return survived;
}

#endif
