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
    espi_free(x->group_start);
    espi_free(x->group_block);
    espi_free(x->kin);
    espi_free(x->member);
    espi_free(x->kin_at);
    espi_ptk_map_free(&x->list);
    espi_free(x->list_start);
    espi_free(x->posting);
    espi_free(x->code);
    espi_free(x->block_code);
    espi_free(x->name_start);
    espi_free(x->name_at);
    *x = (espi_ptk_index){0};
}

/* ------------------------------------------------------------------ lists */

static uint64_t list_key(uint32_t group, uint32_t name) { return (uint64_t)group << 32 | espi_ptk_label(name); }

static bool is_rare(const espi_ptk_index *x, uint32_t code) { return code / 2 >= x->frequent; }

/* Gives every child of a shape its list, in order of first appearance. shapes[group]: how many it has. */
static bool number_lists(espi_ptk_index *x, espi_ptk_map *list, uint32_t *shapes)
{
    const espi_ptk_trees *t = x->trees;
    bool ok = true;
    for (size_t s = 0; ok && s < t->shapes; s++) {
        const espi_ptk_shape *shape = &t->shape[s];
        shapes[shape->group]++;
        for (size_t i = shape->name; ok && i < shape->name + shape->children; i++) {
            const uint32_t number = espi_ptk_map_add(list, list_key(shape->group, t->child_name[i]));
            ok = number < ESPI_NO_NODE / 2;
            x->code[i] = number * 2 + t->child_name[i] % 2;
        }
    }
    return ok;
}

/* Counts the shapes of each list. */
static bool count_shapes(const espi_ptk_index *x, size_t lists, uint32_t *members)
{
    const espi_ptk_trees *t = x->trees;
    uint32_t *newest = espi_alloc_zero(lists, sizeof *newest); /* per list: the last shape + 1 */
    for (size_t s = 0; newest != NULL && s < t->shapes; s++) {
        for (size_t i = t->shape[s].name; i < t->shape[s].name + t->shape[s].children; i++) {
            const uint32_t list = x->code[i] / 2;
            members[list] += newest[list] != s + 1;
            newest[list] = (uint32_t)(s + 1);
        }
    }
    espi_free(newest);
    return newest != NULL;
}

/* Makes the lists of frequent labels, then those of rare ones; members[i]: the new number of list i. */
static bool order_lists(espi_ptk_index *x, const espi_ptk_map *list, const uint32_t *shapes, uint32_t *members)
{
    enum { FREQUENT = 64 }; /* one shape in so many: fewer are better looked at one by one */
    bool ok = true;
    for (size_t i = 0; ok && i < list->count; i++)
        if (members[i] > shapes[list->key[i] >> 32] / FREQUENT)
            ok = espi_ptk_map_add(&x->list, list->key[i]) != ESPI_NO_NODE;
    x->frequent = x->list.count;
    for (size_t i = 0; ok && i < list->count; i++)
        ok = (members[i] = espi_ptk_map_add(&x->list, list->key[i])) != ESPI_NO_NODE;
    return ok;
}

static bool make_lists(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    espi_ptk_map list = {0};
    uint32_t *shapes = espi_alloc_zero(t->group.count, sizeof *shapes), *members = NULL;
    x->code = espi_alloc(t->child_names, sizeof *x->code);
    bool ok = shapes != NULL && x->code != NULL && number_lists(x, &list, shapes);
    if (ok) {
        members = espi_alloc_zero(list.count, sizeof *members);
        ok = members != NULL && count_shapes(x, list.count, members) && order_lists(x, &list, shapes, members);
    }
    for (size_t i = 0; ok && i < t->child_names; i++) x->code[i] = members[x->code[i] / 2] * 2 + x->code[i] % 2;
    espi_ptk_map_free(&list);
    espi_free(shapes);
    espi_free(members);
    return ok;
}

/* ----------------------------------------------------------------- blocks */

static bool same_but_rare(const espi_ptk_index *x, const espi_ptk_shape *a, const espi_ptk_shape *b)
{
    if (a->group != b->group || a->children != b->children) return false;
    for (size_t l = 0; l < a->children; l++) {
        const uint32_t p = x->code[a->name + l], q = x->code[b->name + l];
        if (p != q && !(is_rare(x, p) && is_rare(x, q))) return false;
    }
    return true;
}

static size_t hash_but_rare(const espi_ptk_index *x, const espi_ptk_shape *s)
{
    const uint64_t factor = UINT64_C(0x9FB21C651E98DF25);
    uint64_t h = s->group * factor + s->children;
    for (size_t l = 0; l < s->children; l++) {
        const uint32_t code = x->code[s->name + l];
        h = (h ^ h >> 29 ^ (is_rare(x, code) ? ESPI_NO_NODE : code)) * factor;
    }
    return (size_t)(h >> 32);
}

/* Puts the shapes that differ in rare labels only into one block. */
static bool make_blocks(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    size_t slots = 64, capacity = 0;
    while (slots < t->shapes * 2) slots *= 2;
    uint32_t *slot = espi_alloc(slots, sizeof *slot);
    x->kin = espi_alloc_zero(t->shapes + 1, sizeof *x->kin);
    bool ok = slot != NULL && x->kin != NULL;
    ok = ok && espi_reserve(&x->block, &capacity, 1, sizeof *x->block);
    if (ok) memset(slot, 0xFF, slots * sizeof *slot);
    for (size_t s = 0; ok && s < t->shapes; s++) {
        ok = espi_reserve(&x->block, &capacity, x->blocks + 2, sizeof *x->block);
        size_t at = hash_but_rare(x, &t->shape[s]) & (slots - 1);
        while (slot[at] != ESPI_NO_NODE && !same_but_rare(x, &t->shape[s], &t->shape[x->block[slot[at]].shape]))
            at = (at + 1) & (slots - 1);
        if (ok && slot[at] == ESPI_NO_NODE) {
            x->block[x->blocks] = (struct espi_ptk_block){.shape = (uint32_t)s, .children = t->shape[s].children};
            slot[at] = (uint32_t)x->blocks++;
        }
        x->kin[s].block = slot[at];
    }
    espi_free(slot);
    return ok;
}

static bool list_blocks(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    x->group_start = espi_alloc_zero(t->group.count + 2, sizeof *x->group_start);
    x->group_block = espi_alloc(x->blocks, sizeof *x->group_block);
    if (x->group_start == NULL || x->group_block == NULL) return false;
    size_t *cursor = x->group_start + 1; /* ends up as the starts, one further */
    for (size_t i = 0; i < x->blocks; i++) cursor[t->shape[x->block[i].shape].group + 1]++;
    for (size_t g = 0; g < t->group.count; g++) cursor[g + 1] += cursor[g];
    for (size_t i = 0; i < x->blocks; i++) x->group_block[cursor[t->shape[x->block[i].shape].group]++] = (uint32_t)i;
    return true;
}

/* The children of blocks, one block after the other. All rare labels are one there, which no node has. */
static bool make_codes(espi_ptk_index *x)
{
    size_t codes = 0;
    for (size_t i = 0; i < x->blocks; i++) {
        x->block[i].code = codes;
        codes += x->block[i].children;
    }
    x->block_code = espi_alloc(codes, sizeof *x->block_code);
    for (size_t i = 0; i < x->blocks && x->block_code != NULL; i++) {
        const uint32_t *code = x->code + x->trees->shape[x->block[i].shape].name;
        for (size_t l = 0; l < x->block[i].children; l++)
            x->block_code[x->block[i].code + l] = is_rare(x, code[l]) ? (uint32_t)x->frequent * 2 : code[l];
    }
    return x->block_code != NULL;
}

/* ---------------------------------------------------------------- postings */

/* Calls of `enter` in order: blocks with their frequent labels, then shapes with their rare ones, each label once. */
typedef struct posting_maker {
    espi_ptk_index *index;
    size_t *cursor;   /* per list: where its next posting goes */
    uint32_t *newest; /* per list: its last posting + 1 */
} posting_maker;

static void enter_labels(const posting_maker *m, uint32_t number, uint32_t shape, bool rare, bool count)
{
    const espi_ptk_index *x = m->index;
    const espi_ptk_shape *s = &x->trees->shape[shape];
    for (size_t i = s->name; i < s->name + s->children; i++) {
        const uint32_t list = x->code[i] / 2;
        if ((list >= x->frequent) != rare || m->newest[list] == number + 1) continue;
        m->newest[list] = number + 1;
        if (count) m->cursor[list + 1]++;
        else x->posting[m->cursor[list]++] = number;
    }
}

static void enter_all(const posting_maker *m, bool count)
{
    const espi_ptk_index *x = m->index;
    memset(m->newest, 0, x->list.count * sizeof *m->newest);
    for (size_t b = 0; b < x->blocks; b++) enter_labels(m, (uint32_t)b, x->block[b].shape, false, count);
    for (size_t s = 0; s < x->trees->shapes; s++) enter_labels(m, (uint32_t)s, (uint32_t)s, true, count);
}

static bool make_postings(espi_ptk_index *x)
{
    posting_maker m = {.index = x};
    x->list_start = espi_alloc(x->list.count + 1, sizeof *x->list_start);
    m.cursor = espi_alloc_zero(x->list.count + 1, sizeof *m.cursor);
    m.newest = espi_alloc(x->list.count, sizeof *m.newest);
    bool ok = x->list_start != NULL && m.cursor != NULL && m.newest != NULL;
    if (ok) {
        enter_all(&m, true);
        for (size_t i = 0; i < x->list.count; i++) m.cursor[i + 1] += m.cursor[i];
        memcpy(x->list_start, m.cursor, (x->list.count + 1) * sizeof *m.cursor);
        x->posting = espi_alloc(x->list_start[x->list.count], sizeof *x->posting);
        ok = x->posting != NULL;
    }
    if (ok) enter_all(&m, false);
    espi_free(m.cursor);
    espi_free(m.newest);
    return ok;
}

/* --------------------------------------------------------------- vertices */

/* While an index is made: where a vertex of the forest stands. */
typedef struct index_maker {
    espi_ptk_index *index;
    uint32_t *rank;     /* of a vertex in its block; ESPI_NO_NODE: not seen yet */
    size_t *cursor;     /* per block: its next occurrence */
    size_t *kin_cursor; /* per shape: its next occurrence ... */
    size_t *member;     /* ... and member */
} index_maker;

static bool has_rare(const espi_ptk_index *x, const espi_ptk_shape *s)
{
    for (size_t i = s->name; i < s->name + s->children; i++)
        if (is_rare(x, x->code[i])) return true;
    return false;
}

/* Numbers vertices inside their blocks and counts all that needs room. */
static void count_vertices(const index_maker *m)
{
    const espi_ptk_index *x = m->index;
    const espi_ptk_trees *t = x->trees;
    for (size_t k = 0; k < t->tree[t->trees].node; k++) {
        const espi_ptk_node *node = &t->node[k];
        struct espi_ptk_kin *kin = &x->kin[node->shape];
        struct espi_ptk_block *b = &x->block[kin->block];
        b->at += (size_t)node->count;
        kin->at += (size_t)node->count;
        if (m->rank[node->vertex] != ESPI_NO_NODE) continue;
        m->rank[node->vertex] = b->vertices++;
        kin->member++;
    }
}

/* Gives every block its places: in its group, among all vertices, for children and for occurrences. */
static size_t lay_out(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    size_t children = 0, occurrences = 0;
    for (size_t i = 0; i < x->blocks; i++) {
        struct espi_ptk_block *b = &x->block[i];
        uint32_t *size = &x->size[t->shape[b->shape].group];
        const size_t count = b->at;
        b->place = *size;
        *size += b->vertices;
        b->vertex = x->vertices;
        b->child = children;
        b->at = occurrences;
        x->vertices += b->vertices;
        children += (size_t)b->vertices * b->children;
        occurrences += count;
    }
    x->block[x->blocks] = (struct espi_ptk_block){.vertex = x->vertices, .child = children, .at = occurrences};
    return children;
}

static void lay_out_kin(const index_maker *m)
{
    espi_ptk_index *x = m->index;
    size_t members = 0, occurrences = 0;
    for (size_t s = 0; s <= x->trees->shapes; s++) {
        struct espi_ptk_kin *kin = &x->kin[s];
        const bool rare = s < x->trees->shapes && has_rare(x, &x->trees->shape[s]);
        const size_t member = rare ? kin->member : 0, count = rare ? kin->at : 0;
        kin->member = members;
        kin->at = occurrences;
        members += member;
        occurrences += count;
    }
}

/* A vertex that comes for the first time: the places of its children, which have come before. */
static void place_children(const index_maker *m, const espi_ptk_tree *tree, const espi_ptk_node *node)
{
    const espi_ptk_index *x = m->index;
    const struct espi_ptk_block *b = &x->block[x->kin[node->shape].block];
    for (size_t l = 0; l < b->children; l++) {
        const uint32_t below = tree->child[node->first + l];
        uint32_t place = 0;
        if (below != ESPI_NO_NODE)
            place = x->block[x->kin[tree->node[below].shape].block].place + m->rank[tree->node[below].vertex];
        x->child[b->child + l * b->vertices + m->rank[node->vertex]] = place;
    }
}

static void fill_vertex(const index_maker *m, size_t i, const espi_ptk_tree *tree, const espi_ptk_node *node)
{
    const espi_ptk_index *x = m->index;
    const struct espi_ptk_kin *kin = &x->kin[node->shape];
    const uint32_t rank = m->rank[node->vertex];
    const bool rare = kin[1].member > kin->member;
    uint32_t *first = &x->first[x->block[kin->block].vertex + rank];
    for (double n = 0.0; n < node->count; n++) {
        const espi_ptk_occurrence at = {.tree = (uint32_t)i, .item = rank};
        x->at[m->cursor[kin->block]++] = at;
        if (rare) x->kin_at[m->kin_cursor[node->shape]++] = at;
    }
    if (*first != ESPI_NO_NODE) return;
    *first = (uint32_t)i;
    if (rare) x->member[m->member[node->shape]++] = rank;
    place_children(m, tree, node);
}

static void fill_vertices(const index_maker *m)
{
    const espi_ptk_index *x = m->index;
    const espi_ptk_trees *t = x->trees;
    for (size_t b = 0; b < x->blocks; b++) m->cursor[b] = x->block[b].at;
    for (size_t s = 0; s < t->shapes; s++) {
        m->kin_cursor[s] = x->kin[s].at;
        m->member[s] = x->kin[s].member;
    }
    for (size_t v = 0; v < x->vertices; v++) x->first[v] = ESPI_NO_NODE;
    for (size_t i = 0; i < t->trees; i++) {
        const espi_ptk_tree tree = espi_ptk_tree_of(t, i);
        for (size_t k = 0; k < tree.nodes; k++) fill_vertex(m, i, &tree, &tree.node[k]);
    }
}

static bool make_vertices(espi_ptk_index *x)
{
    const espi_ptk_trees *t = x->trees;
    uint32_t most = 0;
    for (size_t k = 0; k < t->tree[t->trees].node; k++)
        if (t->node[k].vertex >= most) most = t->node[k].vertex + 1;
    index_maker m = {.index = x};
    m.rank = espi_alloc(most, sizeof *m.rank);
    m.cursor = espi_alloc(x->blocks, sizeof *m.cursor);
    m.kin_cursor = espi_alloc(t->shapes, sizeof *m.kin_cursor);
    m.member = espi_alloc(t->shapes, sizeof *m.member);
    x->size = espi_alloc_zero(t->group.count, sizeof *x->size);
    bool ok = m.rank != NULL && m.cursor != NULL && m.kin_cursor != NULL && m.member != NULL && x->size != NULL;
    if (ok) {
        memset(m.rank, 0xFF, most * sizeof *m.rank);
        count_vertices(&m);
        lay_out_kin(&m);
        x->child = espi_alloc(lay_out(x), sizeof *x->child);
        x->at = espi_alloc(x->block[x->blocks].at, sizeof *x->at);
        x->first = espi_alloc(x->vertices, sizeof *x->first);
        x->member = espi_alloc(x->kin[t->shapes].member, sizeof *x->member);
        x->kin_at = espi_alloc(x->kin[t->shapes].at, sizeof *x->kin_at);
        ok = x->at != NULL && x->child != NULL && x->first != NULL && x->member != NULL && x->kin_at != NULL;
    }
    if (ok) fill_vertices(&m);
    espi_free(m.rank);
    espi_free(m.cursor);
    espi_free(m.kin_cursor);
    espi_free(m.member);
    return ok;
}

/* ------------------------------------------------------------------- names */

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
    return make_lists(x) && make_blocks(x) && list_blocks(x) && make_codes(x) && make_postings(x) && make_vertices(x) &&
           index_names(x);
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
