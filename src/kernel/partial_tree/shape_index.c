/* The index of the columns: vertices by shape, shapes by group, the children of shapes by their labels, occurrences of
 * vertices and names; and the link by which other trees find their like in it. */
#include "base/alloc.h"
#include "kernel/partial_tree/partial_tree.h"

#include <string.h>

void espi_ptk_index_free(espi_ptk_index *x)
{
    if (x == NULL) return;
    for (size_t a = 0; x->dense != NULL && a < x->trees->name.count; a++) espi_free(x->dense[a]);
    espi_free(x->dense);
    espi_free(x->block);
    espi_free(x->size);
    espi_free(x->first);
    espi_free(x->child);
    espi_free(x->at);
    espi_ptk_map_free(&x->list);
    espi_free(x->list_start);
    espi_free(x->posting);
    espi_free(x->name_start);
    espi_free(x->name_at);
    *x = (espi_ptk_index){0};
}

/* --------------------------------------------------------------- vertices */

/* While an index is made: where a vertex of the forest stands. */
typedef struct index_maker {
    espi_ptk_index *index;
    uint32_t *rank; /* of a vertex in its shape; ESPI_NO_NODE: not seen yet */
    size_t *cursor; /* per shape: its next occurrence */
} index_maker;

/* Numbers vertices inside their shapes and counts all that needs room. */
static size_t count_vertices(const index_maker *m)
{
    const espi_ptk_trees *t = m->index->trees;
    size_t occurrences = 0;
    for (size_t k = 0; k < t->tree[t->trees].node; k++) {
        const espi_ptk_node *node = &t->node[k];
        struct espi_ptk_block *b = &m->index->block[node->shape];
        b->at += (size_t)node->count;
        occurrences += (size_t)node->count;
        if (m->rank[node->vertex] == ESPI_NO_NODE) m->rank[node->vertex] = b->vertices++;
    }
    return occurrences;
}

/* Gives every shape its places: in its group, among all vertices, for children and for occurrences. */
static size_t lay_out(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    size_t children = 0, occurrences = 0;
    for (size_t s = 0; s < t->shapes; s++) {
        struct espi_ptk_block *b = &x->block[s];
        const size_t count = b->at;
        b->children = t->shape[s].children;
        b->place = x->size[t->shape[s].group];
        x->size[t->shape[s].group] += b->vertices;
        b->vertex = x->vertices;
        b->child = children;
        b->at = occurrences;
        x->vertices += b->vertices;
        children += (size_t)b->vertices * b->children;
        occurrences += count;
    }
    x->block[t->shapes] = (struct espi_ptk_block){.vertex = x->vertices, .child = children, .at = occurrences};
    return children;
}

/* A vertex that comes for the first time: the places of its children, which have come before. */
static void place_children(const index_maker *m, const espi_ptk_tree *tree, const espi_ptk_node *node)
{
    const espi_ptk_index *x = m->index;
    const struct espi_ptk_block *b = &x->block[node->shape];
    for (size_t l = 0; l < b->children; l++) {
        const uint32_t below = tree->child[node->first + l];
        uint32_t place = 0;
        if (below != ESPI_NO_NODE) place = x->block[tree->node[below].shape].place + m->rank[tree->node[below].vertex];
        x->child[b->child + l * b->vertices + m->rank[node->vertex]] = place;
    }
}

static void fill_vertices(const index_maker *m)
{
    const espi_ptk_index *x = m->index;
    const espi_ptk_trees *t = x->trees;
    for (size_t s = 0; s < t->shapes; s++) m->cursor[s] = x->block[s].at;
    for (size_t v = 0; v < x->vertices; v++) x->first[v] = ESPI_NO_NODE;
    for (size_t i = 0; i < t->trees; i++) {
        const espi_ptk_tree tree = espi_ptk_tree_of(t, i);
        for (size_t k = 0; k < tree.nodes; k++) {
            const espi_ptk_node *node = &tree.node[k];
            const uint32_t rank = m->rank[node->vertex];
            uint32_t *first = &x->first[x->block[node->shape].vertex + rank];
            for (double n = 0.0; n < node->count; n++)
                x->at[m->cursor[node->shape]++] = (espi_ptk_occurrence){.tree = (uint32_t)i, .item = rank};
            if (*first != ESPI_NO_NODE) continue;
            *first = (uint32_t)i;
            place_children(m, &tree, node);
        }
    }
}

static bool index_vertices(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    uint32_t most = 0;
    for (size_t k = 0; k < t->tree[t->trees].node; k++)
        if (t->node[k].vertex >= most) most = t->node[k].vertex + 1;
    index_maker m = {.index = x};
    m.rank = espi_alloc(most, sizeof *m.rank);
    m.cursor = espi_alloc(t->shapes, sizeof *m.cursor);
    x->block = espi_alloc_zero(t->shapes + 1, sizeof *x->block);
    x->size = espi_alloc_zero(t->group.count, sizeof *x->size);
    bool ok = m.rank != NULL && m.cursor != NULL && x->block != NULL && x->size != NULL;
    if (ok) {
        memset(m.rank, 0xFF, most * sizeof *m.rank);
        x->at = espi_alloc(count_vertices(&m), sizeof *x->at);
        x->child = espi_alloc(lay_out(x), sizeof *x->child);
        x->first = espi_alloc(x->vertices, sizeof *x->first);
        ok = x->at != NULL && x->child != NULL && x->first != NULL;
    }
    if (ok) fill_vertices(&m);
    espi_free(m.rank);
    espi_free(m.cursor);
    return ok;
}

/* ------------------------------------------------------- children and names */

static uint64_t list_key(uint32_t group, uint32_t name) { return (uint64_t)group << 32 | espi_ptk_label(name); }

static bool index_children(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    uint32_t *list = espi_alloc(t->child_names, sizeof *list);
    size_t *cursor = NULL;
    bool ok = list != NULL;
    for (size_t s = 0; ok && s < t->shapes; s++) {
        for (size_t l = 0; ok && l < t->shape[s].children; l++) {
            const size_t at = t->shape[s].name + l;
            list[at] = espi_ptk_map_add(&x->list, list_key(t->shape[s].group, t->child_name[at]));
            ok = list[at] != ESPI_NO_NODE;
        }
    }
    if (ok) {
        x->list_start = espi_alloc_zero(x->list.count + 1, sizeof *x->list_start);
        x->posting = espi_alloc(t->child_names, sizeof *x->posting);
        cursor = espi_alloc(x->list.count + 1, sizeof *cursor);
        ok = x->list_start != NULL && x->posting != NULL && cursor != NULL;
    }
    if (ok) {
        for (size_t i = 0; i < t->child_names; i++) x->list_start[list[i] + 1]++;
        for (size_t i = 0; i < x->list.count; i++) x->list_start[i + 1] += x->list_start[i];
        memcpy(cursor, x->list_start, (x->list.count + 1) * sizeof *cursor);
        for (size_t s = 0; s < t->shapes; s++)
            for (size_t l = 0; l < t->shape[s].children; l++)
                x->posting[cursor[list[t->shape[s].name + l]]++] = (struct espi_ptk_posting){
                    .shape = (uint32_t)s, .position = (uint32_t)l, .name = t->child_name[t->shape[s].name + l]};
    }
    espi_free(cursor);
    espi_free(list);
    return ok;
}

/* Lays out a frequent name so that whole rows can be added. */
static bool settle_name(espi_ptk_index *x, size_t name)
{
    enum { FREQUENT = 5 }; /* one tree in so many: where a plain pass over all trees beats scattered adds */
    const espi_ptk_occurrence *at = x->name_at + x->name_start[name], *end = x->name_at + x->name_start[name + 1];
    bool fits = (size_t)(end - at) * FREQUENT > x->trees->trees;
    for (size_t k = 0; fits && at + k < end; k++) fits = at[k].item <= ESPI_PTK_SMALL;
    if (!fits) return true;
    uint8_t *dense = x->dense[name] = espi_alloc_zero(x->trees->trees, sizeof *dense);
    for (; dense != NULL && at < end; at++) dense[at->tree] = (uint8_t)at->item;
    return dense != NULL;
}

static bool index_names(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    const size_t all = t->tree[t->trees].count;
    x->name_start = espi_alloc_zero(t->name.count + 2, sizeof *x->name_start);
    x->name_at = espi_alloc(all, sizeof *x->name_at);
    x->dense = espi_alloc_zero(t->name.count, sizeof *x->dense);
    if (x->name_start == NULL || x->name_at == NULL || x->dense == NULL) return false;
    size_t *cursor = x->name_start + 1; /* ends up as the starts, one further */
    for (size_t i = 0; i < all; i++) cursor[t->count[i].name + 1]++;
    for (size_t a = 0; a < t->name.count; a++) cursor[a + 1] += cursor[a];
    for (size_t i = 0; i < t->trees; i++)
        for (size_t k = t->tree[i].count; k < t->tree[i + 1].count; k++)
            x->name_at[cursor[t->count[k].name]++] =
                (espi_ptk_occurrence){.tree = (uint32_t)i, .item = (uint32_t)t->count[k].count};
    bool ok = true;
    for (size_t a = 0; ok && a < t->name.count; a++) ok = settle_name(x, a);
    return ok;
}

bool espi_ptk_index_make(espi_ptk_index *x, const espi_ptk_trees *t)
{
    x->trees = t;
    return index_vertices(x) && index_children(x) && index_names(x);
}

/* ------------------------------------------------------------------- link */

void espi_ptk_link_free(espi_ptk_link *l)
{
    if (l == NULL) return;
    espi_free(l->group);
    espi_free(l->list);
    espi_free(l->namesake);
    *l = (espi_ptk_link){0};
}

bool espi_ptk_link_make(espi_ptk_link *l, const espi_ptk_trees *t, const espi_ptk_index *x)
{
    l->group = espi_alloc(t->shapes, sizeof *l->group);
    l->list = espi_alloc(t->child_names, sizeof *l->list);
    l->namesake = espi_alloc(t->name.count, sizeof *l->namesake);
    if (l->group == NULL || l->list == NULL || l->namesake == NULL) return false;
    for (size_t s = 0; s < t->shapes; s++) {
        const espi_ptk_shape *shape = &t->shape[s];
        const uint32_t group = l->group[s] = espi_ptk_map_find(&x->trees->group, t->group.key[shape->group]);
        for (size_t k = shape->name; k < shape->name + shape->children; k++)
            l->list[k] =
                group == ESPI_NO_NODE ? ESPI_NO_NODE : espi_ptk_map_find(&x->list, list_key(group, t->child_name[k]));
    }
    for (size_t a = 0; a < t->name.count; a++)
        for (size_t n = 0; n < 2; n++)
            l->namesake[a][n] = espi_ptk_map_find(&x->trees->name, espi_ptk_namesake((uint32_t)t->name.key[a], n));
    return true;
}
