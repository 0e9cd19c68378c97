/* An arena: many small blocks with one lifetime, released together. Blocks never move. */
#ifndef ESPI_BASE_ARENA_H
#define ESPI_BASE_ARENA_H

#include <stddef.h>

typedef struct espi_arena {
    struct espi_arena_chunk *chunk; /* the newest, where blocks are cut from */
    size_t used, size;              /* of the newest chunk */
    struct espi_arena_chunk *spare; /* empty, for later; or NULL */
    size_t total;                   /* bytes held by all chunks */
} espi_arena;

/* A block of `size` bytes, aligned to `align` (a power of two up to 16), or NULL. A zeroed espi_arena is empty. */
void *espi_arena_take(espi_arena *arena, size_t size, size_t align);
/* Gives back a block and all that were taken after it. */
void espi_arena_give_back(espi_arena *arena, const void *block);
void espi_arena_free(espi_arena *arena);

#endif
