/* A symbol table: byte strings (NUL bytes included) <-> dense numbers in order of first appearance. */
#ifndef ESPI_BASE_SYMBOLS_H
#define ESPI_BASE_SYMBOLS_H

#include "base/arena.h"

#include <stdint.h>

enum { ESPI_NO_SYMBOL = 0x7FFFFFFF }; /* also the largest number of symbols */

typedef struct espi_symbol {
    const char *text; /* NUL-terminated copy */
    uint32_t size, hash;
} espi_symbol;

typedef struct espi_symbols {
    espi_arena text;
    espi_symbol *symbol;
    size_t count, capacity;
    uint32_t *slot; /* open addressing; ESPI_NO_SYMBOL marks a free slot */
    size_t mask;    /* slots - 1, 0 while there are none */
} espi_symbols;

/* A zeroed espi_symbols is empty. Returns the number of the string, added if new; ESPI_NO_SYMBOL if memory is
 * out or the string is longer than 4 GB. */
uint32_t espi_symbols_add(espi_symbols *table, const char *text, size_t size);
/* Forgets the symbols from `count` on, so that their numbers are given anew. */
void espi_symbols_truncate(espi_symbols *table, size_t count);
/* The number of the string, or ESPI_NO_SYMBOL. */
uint32_t espi_symbols_find(const espi_symbols *table, const char *text, size_t size);
/* For each symbol of `from`, its number in `to` or ESPI_NO_SYMBOL; NULL if memory is out. */
uint32_t *espi_symbols_map(const espi_symbols *from, const espi_symbols *to);
size_t espi_symbols_bytes(const espi_symbols *table);
void espi_symbols_free(espi_symbols *table);

#endif
