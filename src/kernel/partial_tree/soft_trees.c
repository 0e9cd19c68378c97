/* Trees as lists of their different subtrees, each with the shape that a kernel's rules give it. */
#include "base/alloc.h"
#include "kernel/partial_tree/soft_dag.h"

#include <string.h>

/* ------------------------------------------------------------------- maps */

enum { FIRST_SLOTS = 64 };

static size_t probe(const espi_soft_map *m, uint64_t key)
{
    uint64_t h = (key ^ key >> 29) * UINT64_C(0x9FB21C651E98DF25);
    size_t at = (size_t)(h >> 32) & m->mask;
    while (m->slot[at] != ESPI_NO_NODE && m->key[m->slot[at]] != key) at = (at + 1) & m->mask;
    return at;
}

static bool grow_map(espi_soft_map *m)
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

uint32_t espi_soft_map_add(espi_soft_map *m, uint64_t key)
{
    if (!grow_map(m) || !espi_reserve(&m->key, &m->capacity, m->count + 1, sizeof *m->key)) return ESPI_NO_NODE;
    const size_t at = probe(m, key);
    if (m->slot[at] != ESPI_NO_NODE) return m->slot[at];
    if (m->count >= ESPI_NO_NODE) return ESPI_NO_NODE;
    m->key[m->count] = key;
    return m->slot[at] = (uint32_t)m->count++;
}

uint32_t espi_soft_map_find(const espi_soft_map *m, uint64_t key)
{
    return m->slot == NULL ? ESPI_NO_NODE : m->slot[probe(m, key)];
}

void espi_soft_map_free(espi_soft_map *m)
{
    espi_free(m->key);
    espi_free(m->slot);
    *m = (espi_soft_map){0};
}

/* ----------------------------------------------------------------- shapes */

void espi_soft_builder_free(espi_soft_builder *b)
{
    espi_free(b->index);
    espi_free(b->shape);
    espi_free(b->count);
    espi_free(b->touched);
    espi_free(b->last);
    espi_free(b->stamp);
    espi_free(b->child);
    espi_walk_free(&b->walk);
    *b = (espi_soft_builder){0};
}

void espi_soft_trees_free(espi_soft_trees *t)
{
    if (t == NULL) return;
    espi_free(t->shape);
    espi_free(t->code);
    espi_free(t->key);
    espi_soft_map_free(&t->group);
    espi_soft_map_free(&t->atom);
    espi_soft_map_free(&t->start);
    espi_soft_map_free(&t->step);
    espi_free(t->ends);
    espi_free(t->tree);
    espi_free(t->node);
    espi_free(t->child);
    espi_free(t->at);
    *t = (espi_soft_trees){0};
}

typedef struct making {
    espi_soft_trees *trees;
    const espi_soft_rules *rules;
    const espi_forest *forest;
    const uint32_t *symbol;
    espi_soft_builder *builder;
    struct espi_soft_start at;
} making;

/* Where a sketch ends in the trie of shapes. States of both maps are numbered together: even ones are starts. */
static bool find_state(espi_soft_trees *t, const espi_soft_sketch *s, size_t *state)
{
    uint32_t number = espi_soft_map_add(&t->start, s->group);
    if (number == ESPI_NO_NODE || t->step.count >= INT32_MAX || t->start.count >= INT32_MAX) return false;
    *state = (size_t)number * 2;
    for (size_t k = 0; k < s->children; k++) {
        number = espi_soft_map_add(&t->step, (uint64_t)*state << 32 | s->child[k].code);
        if (number == ESPI_NO_NODE) return false;
        *state = (size_t)number * 2 + 1;
    }
    const size_t had = t->end_capacity;
    if (!espi_reserve(&t->ends, &t->end_capacity, *state + 1, sizeof *t->ends)) return false;
    if (t->end_capacity > had) memset(t->ends + had, 0xFF, (t->end_capacity - had) * sizeof *t->ends);
    return true;
}

/* The shape of a sketch, added if new; ESPI_NO_NODE if memory is out. */
static uint32_t shape_of(const making *m, const espi_soft_sketch *s)
{
    espi_soft_trees *t = m->trees;
    size_t state;
    if (!find_state(t, s, &state)) return ESPI_NO_NODE;
    if (t->ends[state] != ESPI_NO_NODE) return t->ends[state];
    const uint32_t group = espi_soft_map_add(&t->group, s->group);
    if (group == ESPI_NO_NODE || !espi_reserve(&t->shape, &t->shape_capacity, t->shapes + 1, sizeof *t->shape) ||
        !espi_reserve(&t->code, &t->code_capacity, t->codes + s->children, sizeof *t->code) ||
        !espi_reserve(&t->key, &t->key_capacity, t->codes + s->children, sizeof *t->key))
        return ESPI_NO_NODE;
    t->shape[t->shapes] = (struct espi_soft_look){.group = group, .children = (uint32_t)s->children, .code = t->codes};
    for (size_t k = 0; k < s->children; k++) {
        t->code[t->codes + k] = s->child[k].code;
        t->key[t->codes + k] = m->rules->key(m->rules, s->child[k].code);
    }
    t->codes += s->children;
    return t->ends[state] = (uint32_t)t->shapes++;
}

/* ------------------------------------------------------------------ trees */

/* Tells whether the node is the only one of its group in the tree so far. */
static bool stamp_group(making *m, uint32_t group, espi_soft_node *node, size_t number)
{
    espi_soft_builder *b = m->builder;
    const size_t had = b->stamp_capacity;
    if (!espi_reserve(&b->last, &b->last_capacity, group + 1, sizeof *b->last) ||
        !espi_reserve(&b->stamp, &b->stamp_capacity, group + 1, sizeof *b->stamp))
        return false;
    if (b->stamp_capacity > had) memset(b->stamp + had, 0, (b->stamp_capacity - had) * sizeof *b->stamp);
    const size_t tree = m->trees->trees + 1;
    node->alone = b->stamp[group] != tree;
    if (!node->alone) m->trees->node[m->trees->tree[tree - 1].node + b->last[group]].alone = false;
    b->stamp[group] = tree;
    b->last[group] = (uint32_t)number;
    return true;
}

static bool add_node(making *m, espi_ref vertex)
{
    espi_soft_trees *t = m->trees;
    espi_soft_builder *b = m->builder;
    const struct espi_soft_start start = t->tree[t->trees];
    const size_t arity = espi_production_of(m->forest, vertex)->arity;
    if (!espi_reserve(&b->child, &b->child_capacity, arity, sizeof *b->child)) return false;
    espi_soft_sketch sketch = {.child = b->child};
    m->rules->sketch(m->rules, m->forest, m->symbol, vertex, &sketch);
    if (b->shape[vertex] == ESPI_NO_NODE) b->shape[vertex] = shape_of(m, &sketch);
    const uint32_t shape = b->shape[vertex];
    if (shape == ESPI_NO_NODE || !espi_reserve(&t->node, &t->node_capacity, m->at.node + 1, sizeof *t->node) ||
        !espi_reserve(&t->child, &t->child_capacity, m->at.child + sketch.children, sizeof *t->child))
        return false;
    const size_t number = m->at.node - start.node;
    espi_soft_node *node = &t->node[m->at.node];
    *node = (espi_soft_node){.shape = shape, .vertex = vertex, .first = (uint32_t)(m->at.child - start.child)};
    for (size_t k = 0; k < sketch.children; k++) {
        const espi_ref child = sketch.child[k].node;
        const uint32_t below = child == ESPI_NO_NODE ? ESPI_NO_NODE : b->index[child];
        if (below != ESPI_NO_NODE) t->node[start.node + below].uses++;
        t->child[m->at.child++] = below;
    }
    b->index[vertex] = (uint32_t)number;
    m->at.node++;
    return stamp_group(m, t->shape[shape].group, node, number);
}

static bool add_atom(making *m, espi_ref node, double times, size_t *touched)
{
    espi_soft_builder *b = m->builder;
    const uint64_t key = m->rules->atom(m->rules, m->forest, m->symbol, node);
    if (key == ESPI_NO_ATOM) return true;
    const uint32_t atom = espi_soft_map_add(&m->trees->atom, key);
    const size_t had = b->count_capacity;
    if (atom == ESPI_NO_NODE || !espi_reserve(&b->count, &b->count_capacity, (size_t)atom + 1, sizeof *b->count) ||
        !espi_reserve(&b->touched, &b->touched_capacity, *touched + 1, sizeof *b->touched))
        return false;
    for (size_t i = had; i < b->count_capacity; i++) b->count[i] = 0.0;
    if (b->count[atom] == 0.0) b->touched[(*touched)++] = atom;
    b->count[atom] += times;
    return true;
}

/* Occurrences of nodes and atoms, from the root down; the root comes last. */
static bool count(making *m, espi_ref root, size_t *touched)
{
    espi_soft_trees *t = m->trees;
    const espi_forest *f = m->forest;
    if (espi_is_leaf(root)) return root == ESPI_NO_NODE || add_atom(m, root, 1.0, touched);
    espi_soft_node *node = t->node + t->tree[t->trees].node;
    const size_t nodes = m->at.node - t->tree[t->trees].node;
    node[nodes - 1].count = 1.0;
    for (size_t i = nodes; i-- > 0;) {
        const espi_ref vertex = node[i].vertex, *child = f->child + f->vertex[vertex].children;
        if (node[i].count > 1.0) node[i].alone = false;
        if (!add_atom(m, vertex, node[i].count, touched)) return false;
        for (size_t k = 0; k < espi_production_of(f, vertex)->arity; k++) {
            if (!espi_is_leaf(child[k])) node[m->builder->index[child[k]]].count += node[i].count;
            else if (!add_atom(m, child[k], node[i].count, touched)) return false;
        }
    }
    return true;
}

static bool add_tree(making *m, espi_ref root)
{
    espi_soft_trees *t = m->trees;
    espi_soft_builder *b = m->builder;
    const size_t first = m->at.node;
    size_t touched = 0;
    espi_ref vertex;
    t->tree[t->trees] = m->at;
    bool failed = !espi_walk_start(&b->walk, m->forest, root);
    while (!failed && (vertex = espi_walk_next_new(&b->walk, b->index, &failed)) != ESPI_NO_NODE)
        failed = !add_node(m, vertex);
    failed = failed || !count(m, root, &touched);
    failed = failed || !espi_reserve(&t->at, &t->at_capacity, m->at.atom + touched, sizeof *t->at);
    for (size_t i = first; i < m->at.node; i++) b->index[t->node[i].vertex] = ESPI_NO_NODE;
    for (size_t i = 0; i < touched; i++) {
        const uint32_t atom = b->touched[i];
        if (!failed) t->at[m->at.atom++] = (espi_soft_atom){.atom = atom, .count = b->count[atom]};
        b->count[atom] = 0.0;
    }
    if (!failed) t->tree[++t->trees] = m->at;
    return !failed;
}

/* Room for all vertices of the forest. */
static bool fit_builder(espi_soft_builder *b, size_t vertices)
{
    const size_t had = b->index_count;
    if (!espi_reserve(&b->index, &b->index_capacity, vertices, sizeof *b->index) ||
        !espi_reserve(&b->shape, &b->shape_capacity, vertices, sizeof *b->shape))
        return false;
    for (size_t i = 0; i < b->stamp_capacity; i++) b->stamp[i] = 0;
    if (vertices <= had) return true;
    memset(b->index + had, 0xFF, (vertices - had) * sizeof *b->index);
    memset(b->shape + had, 0xFF, (vertices - had) * sizeof *b->shape);
    b->index_count = vertices;
    return true;
}

bool espi_soft_trees_make(espi_soft_trees *t, const espi_soft_rules *rules, const espi_forest *forest,
                          const uint32_t *symbol, const espi_ref *root, size_t roots, espi_soft_builder *b)
{
    making m = {.trees = t, .rules = rules, .forest = forest, .symbol = symbol, .builder = b};
    if (!fit_builder(b, forest->vertices)) return false;
    t->tree = espi_alloc_zero(roots + 1, sizeof *t->tree);
    bool ok = t->tree != NULL;
    for (size_t i = 0; ok && i < roots; i++) ok = add_tree(&m, root[i]);
    for (size_t i = 0; i < m.at.node; i++) b->shape[t->node[i].vertex] = ESPI_NO_NODE; /* for the next call */
    return ok;
}
