#include "base/sort.h"

#include <stdlib.h>

static int rising(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static int falling(const void *x, const void *y) { return rising(y, x); }

static int by_key(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

void espi_sort_numbers(uint32_t *number, size_t count)
{
    if (count > 1) qsort(number, count, sizeof *number, rising);
}

void espi_sort_falling(uint32_t *number, size_t count)
{
    if (count > 1) qsort(number, count, sizeof *number, falling);
}

void espi_sort_keys(uint64_t *key, size_t count)
{
    if (count > 1) qsort(key, count, sizeof *key, by_key);
}

size_t espi_key_run(const uint64_t *key, size_t count, uint64_t upper, size_t *first)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (key[middle] >> 32 < upper) low = middle + 1;
        else high = middle;
    }
    *first = low;
    while (high < count && key[high] >> 32 == upper) high++;
    return high - low;
}
