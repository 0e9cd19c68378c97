/* What the tests of search share: random collections with equal examples in them, and what a search must find, by
 * sorting whole Gram matrices. */
#ifndef SEARCH_CASES_H
#define SEARCH_CASES_H

#include "cases.h"

/* Examples with all types of columns and names; about every fifth equals an earlier one. */
static inline char *random_lines(ref_random *random, size_t count, size_t nodes, bool extra)
{
    static const char *const words[] = {"a", "The", "the", "cat", "u"};
    size_t *start = malloc((count + 1) * sizeof *start);
    char *lines = malloc(count * (400 + nodes * 12)), *at = lines;
    assert_true(lines != NULL && start != NULL);
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"id\": \"%s%zu\", ", extra ? "query " : "example ", i + 1);
        start[i] = (size_t)(at - lines);
        if (i > 0 && ref_random_below(random, 5) == 0) {
            const char *from = lines + start[ref_random_below(random, i)];
            const size_t size = strcspn(from, "\n") + 1;
            memcpy(at, from, size);
            at += size;
            continue;
        }
        char *tree = ref_random_small_tree(random, nodes, 1e6, extra && i % 2 == 1);
        at += sprintf(at, "\"tree\": \"%s\", \"words\": \"", tree);
        for (size_t k = ref_random_below(random, 7); k > 0; k--)
            at += sprintf(at, "%s ", words[ref_random_below(random, extra ? 5 : 4)]);
        at += sprintf(at, "\", \"x\": {\"p\": %.3f, \"%s\": %.3f}}\n", ref_random_between(random, -1, 1),
                      extra ? "own" : "q", ref_random_between(random, -1, 1));
        free(tree);
    }
    *at = '\0';
    free(start);
    return lines;
}

static inline esp_dataset *random_collection(ref_random *random, size_t count, size_t nodes, bool extra)
{
    char *lines = random_lines(random, count, nodes, extra);
    esp_dataset *data = dataset_of(lines);
    free(lines);
    assert_int_equal(esp_dataset_count(data), count);
    return data;
}

static inline esp_index *index_of(const char *expression, const esp_dataset *data, const char *id, int threads)
{
    esp_kernel *kernel = kernel_of(expression);
    esp_index *index = NULL;
    esp_error err = {0};
    assert_ok(esp_index_new(kernel, data, id, &(esp_run){.threads = threads}, &index, &err), expression, &err);
    esp_kernel_free(kernel);
    return index;
}

/* Equal up to rounding errors: by their first digits. */
static inline double few_digits(double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.11e", value);
    return strtod(text, NULL) + 0.0;
}

typedef struct ranked {
    size_t example;
    double value;
} ranked;

static inline int better(const void *x, const void *y)
{
    const ranked *a = x, *b = y;
    const double p = few_digits(a->value), q = few_digits(b->value);
    if (p != q) return p > q ? -1 : 1;
    return a->example < b->example ? -1 : 1;
}

/* All examples, the best first; the caller frees it. */
static inline ranked *ranking(const double *row, size_t count)
{
    ranked *all = malloc(count * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < count; i++) all[i] = (ranked){i, row[i]};
    qsort(all, count, sizeof *all, better);
    return all;
}

#endif
