#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef ESPI_ALLOC_HOOK
#include <stdatomic.h>

static atomic_long countdown = -1;
static atomic_long live = 0;

long espi_alloc_fail_after(long allocations) { return atomic_exchange(&countdown, allocations); }
long espi_alloc_live(void) { return atomic_load(&live); }

static bool refused(void)
{
    if (atomic_load(&countdown) < 0) return false;
    return atomic_fetch_sub(&countdown, 1) <= 0;
}
static void *counted(void *block)
{
    if (block != NULL) atomic_fetch_add(&live, 1);
    return block;
}
static void forgotten(const void *block)
{
    if (block != NULL) atomic_fetch_sub(&live, 1);
}
#else
static bool refused(void) { return false; }
static void *counted(void *block) { return block; }
static void forgotten(const void *block) { (void)block; }
#endif

/* Large tables are looked up at random: huge pages spare most of the address translation. */
static void *advised(void *block, size_t bytes)
{
    enum { LARGE = 1 << 22, HUGE_PAGE = 1 << 21 };
    if (block != NULL && bytes >= LARGE) {
        const uintptr_t start = ((uintptr_t)block + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
        (void)madvise((void *)start, bytes - HUGE_PAGE, MADV_HUGEPAGE);
    }
    return block;
}

static bool product(size_t count, size_t size, size_t *bytes)
{
    if (size != 0 && count > SIZE_MAX / 2 / size) return false;
    *bytes = count * size > 0 ? count * size : 1;
    return true;
}

void *espi_alloc(size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) && !refused() ? counted(advised(malloc(bytes), bytes)) : NULL;
}

void *espi_alloc_zero(size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) && !refused() ? counted(advised(calloc(1, bytes), bytes)) : NULL;
}

void *espi_realloc(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (!product(count, size, &bytes) || refused()) return NULL;
    return block == NULL ? counted(advised(malloc(bytes), bytes)) : advised(realloc(block, bytes), bytes);
}

void espi_free(void *block)
{
    forgotten(block);
    free(block);
}

bool espi_reserve(void *array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return true;
    size_t wanted = *capacity + *capacity / 2 + 8;
    if (wanted < need) wanted = need;
    void *block;
    memcpy(&block, array, sizeof block);
    block = espi_realloc(block, wanted, size);
    if (block == NULL) return false;
    memcpy(array, &block, sizeof block);
    *capacity = wanted;
    return true;
}

char *espi_copy_text(const char *text, size_t size)
{
    char *copy = espi_alloc(size + 1, 1);
    if (copy == NULL) return NULL;
    if (size > 0) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

bool espi_alloc_possible(size_t size)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return false;
    munmap(block, size);
    return true;
}
