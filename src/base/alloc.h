/* Checked allocation: the one place where the library asks for memory.
 *
 * Sizes are given as count and element size, and their product is checked. Every function returns NULL (or
 * false) when memory is out and leaves its arguments as they were. A build with ESPI_ALLOC_HOOK lets a test
 * make the n-th allocation fail. */
#ifndef ESPI_BASE_ALLOC_H
#define ESPI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *espi_alloc(size_t count, size_t size);
void *espi_alloc_zero(size_t count, size_t size);
void *espi_realloc(void *block, size_t count, size_t size);
void espi_free(void *block);

/* Makes room for `need` elements in the array *(void **)array of capacity *capacity, doubling at least. */
bool espi_reserve(void *array, size_t *capacity, size_t need, size_t size);

/* Whether the system would give a block of this size now; nothing is kept, and next to nothing spent. */
bool espi_alloc_possible(size_t size);

/* A copy of `size` bytes with a NUL behind them. */
char *espi_copy_text(const char *text, size_t size);

#ifdef ESPI_ALLOC_HOOK
/* The allocation that fails, counted down from now; negative: none. Returns what was left. */
long espi_alloc_fail_after(long allocations);
/* Blocks allocated and not yet freed. */
long espi_alloc_live(void);
#endif

#endif
