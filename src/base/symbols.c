#define XXH_INLINE_ALL
#include "base/symbols.h"

#include "base/alloc.h"

#include <string.h>
#include <xxhash.h>

static uint32_t hash_of(const char *text, size_t size) { return (uint32_t)XXH3_64bits(text, size); }

/* The slot that holds the string, or the free slot where it belongs. */
static size_t probe(const espi_symbols *table, const char *text, size_t size, uint32_t hash)
{
    for (size_t at = hash & table->mask;; at = (at + 1) & table->mask) {
        const uint32_t id = table->slot[at];
        if (id == ESPI_NO_SYMBOL) return at;
        const espi_symbol *s = &table->symbol[id];
        if (s->hash == hash && s->size == size && memcmp(s->text, text, size) == 0) return at;
    }
}

static bool grow(espi_symbols *table)
{
    const size_t slots = table->mask == 0 ? 64 : (table->mask + 1) * 2;
    uint32_t *slot = espi_alloc(slots, sizeof *slot);
    if (slot == NULL) return false;
    for (size_t i = 0; i < slots; i++) slot[i] = ESPI_NO_SYMBOL;
    for (size_t id = 0; id < table->count; id++) {
        size_t at = table->symbol[id].hash & (slots - 1);
        while (slot[at] != ESPI_NO_SYMBOL) at = (at + 1) & (slots - 1);
        slot[at] = (uint32_t)id;
    }
    espi_free(table->slot);
    table->slot = slot;
    table->mask = slots - 1;
    return true;
}

uint32_t espi_symbols_add(espi_symbols *table, const char *text, size_t size)
{
    if (size >= UINT32_MAX) return ESPI_NO_SYMBOL;
    if (table->count * 2 >= table->mask && !grow(table)) return ESPI_NO_SYMBOL;
    const uint32_t hash = hash_of(text, size);
    const size_t at = probe(table, text, size, hash);
    if (table->slot[at] != ESPI_NO_SYMBOL) return table->slot[at];
    if (table->count >= ESPI_NO_SYMBOL) return ESPI_NO_SYMBOL;
    if (!espi_reserve(&table->symbol, &table->capacity, table->count + 1, sizeof *table->symbol)) return ESPI_NO_SYMBOL;
    char *copy = espi_arena_take(&table->text, size + 1, 1);
    if (copy == NULL) return ESPI_NO_SYMBOL;
    if (size > 0) memcpy(copy, text, size);
    copy[size] = '\0';
    table->symbol[table->count] = (espi_symbol){.text = copy, .size = (uint32_t)size, .hash = hash};
    return table->slot[at] = (uint32_t)table->count++;
}

void espi_symbols_truncate(espi_symbols *table, size_t count)
{
    if (table->count > count) espi_arena_give_back(&table->text, table->symbol[count].text);
    /* Last in, first out: no later symbol's probe can run over the slot that is freed. */
    while (table->count > count) {
        size_t at = table->symbol[--table->count].hash & table->mask;
        while (table->slot[at] != table->count) at = (at + 1) & table->mask;
        table->slot[at] = ESPI_NO_SYMBOL;
    }
}

uint32_t espi_symbols_find(const espi_symbols *table, const char *text, size_t size)
{
    if (table->mask == 0 || size >= UINT32_MAX) return ESPI_NO_SYMBOL;
    return table->slot[probe(table, text, size, hash_of(text, size))];
}

uint32_t *espi_symbols_map(const espi_symbols *from, const espi_symbols *to)
{
    uint32_t *map = espi_alloc(from->count, sizeof *map);
    for (size_t i = 0; map != NULL && i < from->count; i++)
        map[i] = espi_symbols_find(to, from->symbol[i].text, from->symbol[i].size);
    return map;
}

size_t espi_symbols_bytes(const espi_symbols *table)
{
    return table->text.total + table->capacity * sizeof *table->symbol + (table->mask + 1) * sizeof *table->slot;
}

void espi_symbols_free(espi_symbols *table)
{
    espi_arena_free(&table->text);
    espi_free(table->symbol);
    espi_free(table->slot);
    *table = (espi_symbols){0};
}
