/* Keys to dense numbers in order of first appearance: open addressing, at most half full. */
#include "base/alloc.h"
#include "kernel/partial_tree/partial_tree.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

static size_t probe(const espi_ptk_map *m, uint64_t key)
{
    uint64_t h = (key ^ key >> 29) * UINT64_C(0x9FB21C651E98DF25);
    size_t at = (size_t)(h >> 32) & m->mask;
    while (m->slot[at] != ESPI_NO_NODE && m->key[m->slot[at]] != key) at = (at + 1) & m->mask;
    return at;
}

static bool grow_map(espi_ptk_map *m)
{
    if (m->slot != NULL && m->count * 2 < m->mask) return true;
    const size_t slots = m->slot == NULL ? FIRST_SLOTS : (m->mask + 1) * 2;
    uint32_t *fresh = espi_alloc(slots, sizeof *fresh);
    if (fresh == NULL) return false;
    memset(fresh, 0xFF, slots * sizeof *fresh);
    espi_free(m->slot);
    m->slot = fresh;
    m->mask = slots - 1;
    for (size_t i = 0; i < m->count; i++) m->slot[probe(m, m->key[i])] = (uint32_t)i;
    return true;
}

uint32_t espi_ptk_map_add(espi_ptk_map *m, uint64_t key)
{
    if (!grow_map(m) || !espi_reserve(&m->key, &m->capacity, m->count + 1, sizeof *m->key)) return ESPI_NO_NODE;
    const size_t at = probe(m, key);
    if (m->slot[at] != ESPI_NO_NODE) return m->slot[at];
    if (m->count >= ESPI_NO_NODE) return ESPI_NO_NODE;
    m->key[m->count] = key;
    return m->slot[at] = (uint32_t)m->count++;
}

uint32_t espi_ptk_map_find(const espi_ptk_map *m, uint64_t key)
{
    return m->slot == NULL ? ESPI_NO_NODE : m->slot[probe(m, key)];
}

void espi_ptk_map_free(espi_ptk_map *m)
{
    espi_free(m->key);
    espi_free(m->slot);
    *m = (espi_ptk_map){0};
}
