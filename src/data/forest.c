#include "data/forest.h"

#include "base/alloc.h"

#include <string.h>

enum { FIRST_SLOTS = 256 };

static uint32_t mix(uint32_t label, const uint32_t *item, size_t count)
{
    uint64_t h = (label + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0x9FB21C651E98DF25);
    h ^= h >> 32;
    for (size_t i = 0; i < count; i++) {
        h = (h ^ item[i]) * UINT64_C(0x9FB21C651E98DF25);
        h ^= h >> 32;
    }
    return (uint32_t)((h * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

#define FREE UINT64_MAX

/* Makes room for one more in a table that is at most half full. Slots carry their hash, so nothing else is read. */
static bool grow_table(uint64_t **slot, size_t *mask, size_t count)
{
    if (count * 2 < *mask) return true;
    const size_t slots = *mask == 0 ? FIRST_SLOTS : (*mask + 1) * 2;
    uint64_t *fresh = espi_alloc(slots, sizeof *fresh);
    if (fresh == NULL) return false;
    memset(fresh, 0xFF, slots * sizeof *fresh);
    for (size_t i = 0; *mask > 0 && i <= *mask; i++) {
        if ((*slot)[i] == FREE) continue;
        size_t at = ((*slot)[i] >> 32) & (slots - 1);
        while (fresh[at] != FREE) at = (at + 1) & (slots - 1);
        fresh[at] = (*slot)[i];
    }
    espi_free(*slot);
    *slot = fresh;
    *mask = slots - 1;
    return true;
}

static bool equal(const uint32_t *a, const uint32_t *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* The slot that holds the production, or the free one where it belongs. */
static size_t probe_production(const espi_forest *f, uint32_t label, const uint32_t *child_label, size_t arity,
                               uint32_t hash)
{
    for (size_t at = hash & f->production_mask;; at = (at + 1) & f->production_mask) {
        const uint64_t slot = f->production_slot[at];
        if (slot == FREE) return at;
        if (slot >> 32 != hash) continue;
        const espi_production *p = &f->production[(uint32_t)slot];
        if (p->label == label && p->arity == arity && equal(f->child_label + p->children, child_label, arity))
            return at;
    }
}

uint32_t espi_forest_find_production(const espi_forest *f, uint32_t label, const uint32_t *child_label, size_t arity)
{
    if (f->production_mask == 0) return ESPI_NO_NODE;
    /* A free slot reads as ESPI_NO_NODE. */
    return (uint32_t)f->production_slot[probe_production(f, label, child_label, arity, mix(label, child_label, arity))];
}

static uint32_t label_of(const espi_forest *f, espi_ref node)
{
    if (espi_is_leaf(node)) return espi_leaf_symbol(node) * 2;
    return espi_production_of(f, node)->label * 2 + 1;
}

/* The production of a node; its child labels are laid out at the end of the pool and stay there if it is new. */
static uint32_t production_of(espi_forest *f, uint32_t label, const espi_ref *child, size_t arity)
{
    if (!espi_reserve(&f->child_label, &f->child_label_capacity, f->child_labels + arity, sizeof *f->child_label))
        return ESPI_NO_NODE;
    uint32_t *labels = f->child_label + f->child_labels, inner = 0;
    for (size_t i = 0; i < arity; i++) {
        labels[i] = label_of(f, child[i]);
        inner += labels[i] & 1;
    }
    if (!grow_table(&f->production_slot, &f->production_mask, f->productions)) return ESPI_NO_NODE;
    const uint32_t hash = mix(label, labels, arity);
    const size_t at = probe_production(f, label, labels, arity, hash);
    if (f->production_slot[at] != FREE) return (uint32_t)f->production_slot[at];
    if (!espi_reserve(&f->production, &f->production_capacity, f->productions + 1, sizeof *f->production))
        return ESPI_NO_NODE;
    f->production[f->productions] =
        (espi_production){.children = f->child_labels, .label = label, .arity = (uint32_t)arity, .inner = inner};
    f->child_labels += arity;
    f->production_slot[at] = (uint64_t)hash << 32 | f->productions;
    return (uint32_t)f->productions++;
}

static size_t probe_vertex(const espi_forest *f, uint32_t label, const espi_ref *child, size_t arity, uint32_t hash)
{
    for (size_t at = hash & f->vertex_mask;; at = (at + 1) & f->vertex_mask) {
        const uint64_t slot = f->vertex_slot[at];
        if (slot == FREE) return at;
        if (slot >> 32 != hash) continue;
        const espi_vertex *v = &f->vertex[(uint32_t)slot];
        const espi_production *p = &f->production[v->production];
        if (p->label == label && p->arity == arity && equal(f->child + v->children, child, arity)) return at;
    }
}

espi_ref espi_forest_node(espi_forest *f, uint32_t label, const espi_ref *child, size_t arity)
{
    if (arity >= ESPI_LEAF || !grow_table(&f->vertex_slot, &f->vertex_mask, f->vertices)) return ESPI_NO_NODE;
    const uint32_t hash = mix(label, child, arity);
    const size_t at = probe_vertex(f, label, child, arity, hash);
    if (f->vertex_slot[at] != FREE) return (uint32_t)f->vertex_slot[at];
    if (f->vertices >= ESPI_NO_SYMBOL ||
        !espi_reserve(&f->child, &f->child_capacity, f->children + arity, sizeof *f->child) ||
        !espi_reserve(&f->vertex, &f->vertex_capacity, f->vertices + 1, sizeof *f->vertex))
        return ESPI_NO_NODE;
    const uint32_t production = production_of(f, label, child, arity);
    if (production == ESPI_NO_NODE) return ESPI_NO_NODE;
    memcpy(f->child + f->children, child, arity * sizeof *child);
    f->vertex[f->vertices] =
        (espi_vertex){.children = f->children, .production = production, .rank = f->production[production].count++};
    f->children += arity;
    f->vertex_slot[at] = (uint64_t)hash << 32 | f->vertices;
    return (uint32_t)f->vertices++;
}

bool espi_forest_add_root(espi_forest *f, espi_ref root)
{
    if (!espi_reserve(&f->root, &f->root_capacity, f->roots + 1, sizeof *f->root)) return false;
    f->root[f->roots++] = root;
    return true;
}

espi_forest_mark espi_forest_marked(const espi_forest *f)
{
    return (espi_forest_mark){.symbols = f->symbols.count, .vertices = f->vertices, .productions = f->productions};
}

/* Frees the slot that holds `number`, and moves up what was pushed behind it. */
static void free_slot(uint64_t *slot, size_t mask, uint32_t hash, size_t number)
{
    size_t hole = hash & mask;
    while ((uint32_t)slot[hole] != number || slot[hole] == FREE) hole = (hole + 1) & mask;
    for (size_t at = (hole + 1) & mask; slot[at] != FREE; at = (at + 1) & mask) {
        const size_t home = (slot[at] >> 32) & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        slot[hole] = slot[at];
        hole = at;
    }
    slot[hole] = FREE;
}

void espi_forest_truncate(espi_forest *f, espi_forest_mark mark)
{
    while (f->vertices > mark.vertices) {
        const espi_vertex *v = &f->vertex[--f->vertices];
        espi_production *p = &f->production[v->production];
        free_slot(f->vertex_slot, f->vertex_mask, mix(p->label, f->child + v->children, p->arity), f->vertices);
        f->children = v->children;
        p->count--;
    }
    while (f->productions > mark.productions) {
        const espi_production *p = &f->production[--f->productions];
        free_slot(f->production_slot, f->production_mask, mix(p->label, f->child_label + p->children, p->arity),
                  f->productions);
        f->child_labels = p->children;
    }
    espi_symbols_truncate(&f->symbols, mark.symbols);
}

uint32_t *espi_forest_map_productions(const espi_forest *from, const espi_forest *to)
{
    uint32_t *symbol = espi_symbols_map(&from->symbols, &to->symbols);
    uint32_t *map = espi_alloc(from->productions, sizeof *map), *labels = NULL;
    size_t capacity = 0;
    bool failed = symbol == NULL || map == NULL;
    for (size_t i = 0; i < from->productions && !failed; i++) {
        const espi_production *p = &from->production[i];
        map[i] = ESPI_NO_NODE;
        failed = !espi_reserve(&labels, &capacity, p->arity, sizeof *labels);
        bool known = !failed && symbol[p->label] != ESPI_NO_SYMBOL;
        for (size_t k = 0; k < p->arity && known; k++) {
            const uint32_t label = from->child_label[p->children + k], mapped = symbol[label / 2];
            known = mapped != ESPI_NO_SYMBOL;
            labels[k] = mapped * 2 + (label & 1);
        }
        if (known) map[i] = espi_forest_find_production(to, symbol[p->label], labels, p->arity);
    }
    espi_free(labels);
    espi_free(symbol);
    if (!failed) return map;
    espi_free(map);
    return NULL;
}

size_t espi_forest_bytes(const espi_forest *f)
{
    return espi_symbols_bytes(&f->symbols) + f->vertex_capacity * sizeof *f->vertex +
           f->child_capacity * sizeof *f->child + f->production_capacity * sizeof *f->production +
           f->child_label_capacity * sizeof *f->child_label + (f->vertex_mask + 1) * sizeof *f->vertex_slot +
           (f->production_mask + 1) * sizeof *f->production_slot + f->root_capacity * sizeof *f->root;
}

void espi_forest_free(espi_forest *f)
{
    espi_symbols_free(&f->symbols);
    espi_free(f->vertex);
    espi_free(f->child);
    espi_free(f->production);
    espi_free(f->child_label);
    espi_free(f->vertex_slot);
    espi_free(f->production_slot);
    espi_free(f->root);
    *f = (espi_forest){0};
}

static bool push(espi_walk *walk, espi_ref vertex)
{
    if (!espi_reserve(&walk->frame, &walk->capacity, walk->depth + 1, sizeof *walk->frame)) return false;
    walk->frame[walk->depth].vertex = vertex;
    walk->frame[walk->depth++].next = 0;
    return true;
}

bool espi_walk_start(espi_walk *walk, const espi_forest *forest, espi_ref root)
{
    walk->forest = forest;
    walk->depth = 0;
    return espi_is_leaf(root) || push(walk, root);
}

/* Steps over subtrees whose number in `seen` is set; NULL: over none. */
static espi_ref next(espi_walk *walk, const uint32_t *seen, bool *failed)
{
    const espi_forest *f = walk->forest;
    while (walk->depth > 0) {
        struct espi_walk_frame *top = &walk->frame[walk->depth - 1];
        const espi_vertex *v = &f->vertex[top->vertex];
        const espi_production *p = &f->production[v->production];
        espi_ref child = ESPI_NO_NODE;
        while (top->next < p->arity && child == ESPI_NO_NODE) {
            child = f->child[v->children + top->next++];
            if (espi_is_leaf(child) || (seen != NULL && seen[child] != ESPI_NO_NODE)) child = ESPI_NO_NODE;
        }
        if (child == ESPI_NO_NODE) {
            walk->depth--;
            return top->vertex;
        }
        if (espi_production_of(f, child)->inner == 0) return child; /* nothing below it to walk */
        if (!push(walk, child)) {
            *failed = true;
            return ESPI_NO_NODE;
        }
    }
    return ESPI_NO_NODE;
}

espi_ref espi_walk_next(espi_walk *walk, bool *failed) { return next(walk, NULL, failed); }

espi_ref espi_walk_next_new(espi_walk *walk, const uint32_t *seen, bool *failed) { return next(walk, seen, failed); }

void espi_walk_free(espi_walk *walk)
{
    espi_free(walk->frame);
    *walk = (espi_walk){0};
}
