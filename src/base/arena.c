#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>

struct espi_arena_chunk {
    struct espi_arena_chunk *older;
    _Alignas(16) char bytes[];
};

enum { FIRST_CHUNK = 1 << 10, LARGEST_CHUNK = 1 << 20 };

void *espi_arena_take(espi_arena *arena, size_t size, size_t align)
{
    size_t start = (arena->used + align - 1) & ~(align - 1);
    if (arena->chunk == NULL || size > arena->size || start > arena->size - size) {
        size_t wanted = arena->chunk == NULL ? FIRST_CHUNK : arena->size * 2;
        if (wanted > LARGEST_CHUNK) wanted = LARGEST_CHUNK;
        if (wanted < size) wanted = size;
        struct espi_arena_chunk *chunk = espi_alloc(1, sizeof *chunk + wanted);
        if (chunk == NULL) return NULL;
        chunk->older = arena->chunk;
        arena->chunk = chunk;
        arena->size = wanted;
        arena->total += wanted;
        start = 0;
    }
    arena->used = start + size;
    return arena->chunk->bytes + start;
}

void espi_arena_give_back(espi_arena *arena, const void *block)
{
    const uintptr_t at = (uintptr_t)block, start = (uintptr_t)arena->chunk->bytes;
    /* A block of an older chunk: the newest holds only what came later. The end of the older one is lost. */
    arena->used = at >= start && at - start < arena->size ? at - start : 0;
}

void espi_arena_free(espi_arena *arena)
{
    while (arena->chunk != NULL) {
        struct espi_arena_chunk *older = arena->chunk->older;
        espi_free(arena->chunk);
        arena->chunk = older;
    }
    *arena = (espi_arena){0};
}
