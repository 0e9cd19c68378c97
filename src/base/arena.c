#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>

struct espi_arena_chunk {
    struct espi_arena_chunk *older;
    size_t size;
    _Alignas(16) char bytes[];
};

enum { FIRST_CHUNK = 1 << 10, LARGEST_CHUNK = 1 << 20 };

/* A chunk with room for `size` bytes: the spare one if it is large enough. */
static struct espi_arena_chunk *new_chunk(espi_arena *arena, size_t size)
{
    struct espi_arena_chunk *chunk = arena->spare;
    if (chunk != NULL && chunk->size >= size) {
        arena->spare = NULL;
        return chunk;
    }
    size_t wanted = arena->chunk == NULL ? FIRST_CHUNK : arena->size * 2;
    if (wanted > LARGEST_CHUNK) wanted = LARGEST_CHUNK;
    if (wanted < size) wanted = size;
    chunk = espi_alloc(1, sizeof *chunk + wanted);
    if (chunk == NULL) return NULL;
    chunk->size = wanted;
    arena->total += wanted;
    return chunk;
}

void *espi_arena_take(espi_arena *arena, size_t size, size_t align)
{
    size_t start = (arena->used + align - 1) & ~(align - 1);
    if (arena->chunk == NULL || size > arena->size || start > arena->size - size) {
        struct espi_arena_chunk *chunk = new_chunk(arena, size);
        if (chunk == NULL) return NULL;
        chunk->older = arena->chunk;
        arena->chunk = chunk;
        arena->size = chunk->size;
        start = 0;
    }
    arena->used = start + size;
    return arena->chunk->bytes + start;
}

static void drop_spare(espi_arena *arena)
{
    if (arena->spare != NULL) arena->total -= arena->spare->size;
    espi_free(arena->spare);
    arena->spare = NULL;
}

void espi_arena_give_back(espi_arena *arena, const void *block)
{
    struct espi_arena_chunk *chunk = arena->chunk;
    const uintptr_t at = (uintptr_t)block;
    /* Newer chunks hold only what came later. One is kept, for those who take and give back at the end of a chunk. */
    while (at < (uintptr_t)chunk->bytes || at - (uintptr_t)chunk->bytes >= chunk->size) {
        drop_spare(arena);
        arena->spare = chunk;
        chunk = chunk->older;
    }
    arena->chunk = chunk;
    arena->size = chunk->size;
    arena->used = at - (uintptr_t)chunk->bytes;
}

void espi_arena_free(espi_arena *arena)
{
    drop_spare(arena);
    while (arena->chunk != NULL) {
        struct espi_arena_chunk *older = arena->chunk->older;
        espi_free(arena->chunk);
        arena->chunk = older;
    }
    *arena = (espi_arena){0};
}
