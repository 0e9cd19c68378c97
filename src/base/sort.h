/* Sorting numbers. */
#ifndef ESPI_BASE_SORT_H
#define ESPI_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

void espi_sort_numbers(uint32_t *number, size_t count);
/* The largest first. */
void espi_sort_falling(uint32_t *number, size_t count);
void espi_sort_keys(uint64_t *key, size_t count);
/* How many of the sorted keys have this upper half, and where the first of them is, or would be. */
size_t espi_key_run(const uint64_t *key, size_t count, uint64_t upper, size_t *first);

#endif
