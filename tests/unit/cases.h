/* What the kernel tests share: datasets made in memory, and Gram matrices that must succeed. */
#ifndef CASES_H
#define CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "espalier.h"
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#endif
