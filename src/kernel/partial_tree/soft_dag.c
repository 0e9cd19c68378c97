/* The DAG of soft.h: vertices by shape, shapes by group, an index of the keys of their children, and occurrences. */
#include "kernel/partial_tree/soft_dag.h"

#include "base/alloc.h"

#include <string.h>

void espi_soft_dag_free(espi_soft_dag *d)
{
    if (d == NULL) return;
    for (size_t a = 0; d->dense != NULL && a < d->trees->atom.count; a++) espi_free(d->dense[a]);
    espi_free(d->dense);
    espi_free(d->shape);
    espi_free(d->born);
    espi_free(d->size);
    espi_free(d->first);
    espi_free(d->child);
    espi_free(d->at);
    espi_soft_map_free(&d->list);
    espi_free(d->list_start);
    espi_free(d->posting);
    espi_free(d->atom_start);
    espi_free(d->atom_at);
    *d = (espi_soft_dag){0};
}

/* While a DAG is made: where a vertex of the forest stands. */
typedef struct making {
    espi_soft_dag *dag;
    uint32_t *rank; /* of a vertex in its shape; ESPI_NO_NODE: not seen yet */
    size_t *cursor; /* per shape: its next occurrence */
} making;

/* Numbers vertices inside their shapes and counts all that needs room. */
static size_t count_vertices(const making *m)
{
    espi_soft_dag *d = m->dag;
    const espi_soft_trees *t = d->trees;
    size_t occurrences = 0;
    for (size_t i = 0; i < t->trees; i++) {
        for (size_t k = t->tree[i].node; k < t->tree[i + 1].node; k++) {
            const espi_soft_node *node = &t->node[k];
            struct espi_soft_group *s = &d->shape[node->shape];
            s->at += (size_t)node->count;
            occurrences += (size_t)node->count;
            if (m->rank[node->vertex] != ESPI_NO_NODE) continue;
            if (s->vertices == 0) d->born[node->shape] = (uint32_t)i;
            m->rank[node->vertex] = s->vertices++;
        }
    }
    return occurrences;
}

/* Gives every shape its places: in its group, among all vertices, for children and for occurrences. */
static size_t lay_out(espi_soft_dag *d)
{
    const espi_soft_trees *t = d->trees;
    size_t children = 0, occurrences = 0;
    for (size_t s = 0; s < t->shapes; s++) {
        struct espi_soft_group *shape = &d->shape[s];
        const size_t count = shape->at;
        shape->children = t->shape[s].children;
        shape->code = t->shape[s].code;
        shape->place = d->size[t->shape[s].group];
        d->size[t->shape[s].group] += shape->vertices;
        shape->vertex = d->vertices;
        shape->child = children;
        shape->at = occurrences;
        d->vertices += shape->vertices;
        children += (size_t)shape->vertices * t->shape[s].children;
        occurrences += count;
    }
    d->shape[t->shapes] = (struct espi_soft_group){.vertex = d->vertices, .child = children, .at = occurrences};
    return children;
}

static void fill_vertices(const making *m)
{
    espi_soft_dag *d = m->dag;
    const espi_soft_trees *t = d->trees;
    for (size_t s = 0; s < t->shapes; s++) m->cursor[s] = d->shape[s].at;
    for (size_t v = 0; v < d->vertices; v++) d->first[v] = ESPI_NO_NODE;
    for (size_t i = 0; i < t->trees; i++) {
        const espi_soft_plan plan = espi_soft_plan_of(t, i);
        for (size_t k = 0; k < plan.nodes; k++) {
            const espi_soft_node *node = &plan.node[k];
            const struct espi_soft_group *s = &d->shape[node->shape];
            const uint32_t rank = m->rank[node->vertex];
            for (double n = 0.0; n < node->count; n++)
                d->at[m->cursor[node->shape]++] = (espi_soft_occurrence){.tree = (uint32_t)i, .item = rank};
            if (d->first[s->vertex + rank] != ESPI_NO_NODE) continue;
            d->first[s->vertex + rank] = (uint32_t)i;
            for (size_t l = 0; l < t->shape[node->shape].children; l++) {
                const uint32_t below = plan.child[node->first + l];
                uint32_t place = 0;
                if (below != ESPI_NO_NODE)
                    place = d->shape[plan.node[below].shape].place + m->rank[plan.node[below].vertex];
                d->child[s->child + l * s->vertices + rank] = place;
            }
        }
    }
}

static bool index_children(espi_soft_dag *d)
{
    const espi_soft_trees *t = d->trees;
    uint32_t *list = espi_alloc(t->codes, sizeof *list);
    size_t *cursor = NULL;
    bool ok = list != NULL;
    for (size_t s = 0; ok && s < t->shapes; s++) {
        for (size_t l = 0; ok && l < t->shape[s].children; l++) {
            const size_t at = t->shape[s].code + l;
            list[at] = espi_soft_map_add(&d->list, (uint64_t)t->shape[s].group << 32 | t->key[at]);
            ok = list[at] != ESPI_NO_NODE;
        }
    }
    if (ok) {
        d->list_start = espi_alloc_zero(d->list.count + 1, sizeof *d->list_start);
        d->posting = espi_alloc(t->codes, sizeof *d->posting);
        cursor = espi_alloc(d->list.count + 1, sizeof *cursor);
        ok = d->list_start != NULL && d->posting != NULL && cursor != NULL;
    }
    if (ok) {
        for (size_t i = 0; i < t->codes; i++) d->list_start[list[i] + 1]++;
        for (size_t i = 0; i < d->list.count; i++) d->list_start[i + 1] += d->list_start[i];
        memcpy(cursor, d->list_start, (d->list.count + 1) * sizeof *cursor);
        for (size_t s = 0; s < t->shapes; s++)
            for (size_t l = 0; l < t->shape[s].children; l++)
                d->posting[cursor[list[t->shape[s].code + l]]++] = (struct espi_soft_posting){
                    .shape = (uint32_t)s, .position = (uint32_t)l, .code = t->code[t->shape[s].code + l]};
    }
    espi_free(cursor);
    espi_free(list);
    return ok;
}

/* Lays out a frequent atom so that whole rows can be added. */
static bool settle_atom(espi_soft_dag *d, size_t atom)
{
    enum { FREQUENT = 5 }; /* one tree in so many: where a plain pass over all trees beats scattered adds */
    const espi_soft_occurrence *at = d->atom_at + d->atom_start[atom], *end = d->atom_at + d->atom_start[atom + 1];
    bool fits = (size_t)(end - at) * FREQUENT > d->trees->trees;
    for (size_t k = 0; fits && at + k < end; k++) fits = at[k].item <= ESPI_SOFT_SMALL;
    if (!fits) return true;
    uint8_t *dense = d->dense[atom] = espi_alloc_zero(d->trees->trees, sizeof *dense);
    for (; dense != NULL && at < end; at++) dense[at->tree] = (uint8_t)at->item;
    return dense != NULL;
}

static bool index_atoms(espi_soft_dag *d)
{
    const espi_soft_trees *t = d->trees;
    const size_t all = t->tree[t->trees].atom;
    d->atom_start = espi_alloc_zero(t->atom.count + 2, sizeof *d->atom_start);
    d->atom_at = espi_alloc(all, sizeof *d->atom_at);
    d->dense = espi_alloc_zero(t->atom.count, sizeof *d->dense);
    if (d->atom_start == NULL || d->atom_at == NULL || d->dense == NULL) return false;
    size_t *cursor = d->atom_start + 1; /* ends up as the starts, one further */
    for (size_t i = 0; i < all; i++) cursor[t->at[i].atom + 1]++;
    for (size_t a = 0; a < t->atom.count; a++) cursor[a + 1] += cursor[a];
    for (size_t i = 0; i < t->trees; i++)
        for (size_t k = t->tree[i].atom; k < t->tree[i + 1].atom; k++)
            d->atom_at[cursor[t->at[k].atom]++] =
                (espi_soft_occurrence){.tree = (uint32_t)i, .item = (uint32_t)t->at[k].count};
    bool ok = true;
    for (size_t a = 0; ok && a < t->atom.count; a++) ok = settle_atom(d, a);
    return ok;
}

bool espi_soft_dag_make(espi_soft_dag *d, const espi_soft_trees *t)
{
    uint32_t most = 0;
    for (size_t k = 0; k < t->tree[t->trees].node; k++)
        if (t->node[k].vertex >= most) most = t->node[k].vertex + 1;
    making m = {.dag = d};
    d->trees = t;
    m.rank = espi_alloc(most, sizeof *m.rank);
    m.cursor = espi_alloc(t->shapes, sizeof *m.cursor);
    d->shape = espi_alloc_zero(t->shapes + 1, sizeof *d->shape);
    d->born = espi_alloc(t->shapes, sizeof *d->born);
    d->size = espi_alloc_zero(t->group.count, sizeof *d->size);
    bool ok = m.rank != NULL && m.cursor != NULL && d->shape != NULL && d->born != NULL && d->size != NULL;
    if (ok) {
        memset(m.rank, 0xFF, most * sizeof *m.rank);
        d->at = espi_alloc(count_vertices(&m), sizeof *d->at);
        d->child = espi_alloc(lay_out(d), sizeof *d->child);
        d->first = espi_alloc(d->vertices, sizeof *d->first);
        ok = d->at != NULL && d->child != NULL && d->first != NULL;
    }
    if (ok) fill_vertices(&m);
    ok = ok && index_children(d) && index_atoms(d);
    espi_free(m.rank);
    espi_free(m.cursor);
    return ok;
}

/* ------------------------------------------------------------------- link */

void espi_soft_link_free(espi_soft_link *l)
{
    if (l == NULL) return;
    espi_free(l->group);
    espi_free(l->list);
    espi_free(l->partner_start);
    espi_free(l->partner);
    *l = (espi_soft_link){0};
}

static bool link_atoms(espi_soft_link *l, const espi_soft_rules *rules, const espi_soft_trees *t,
                       const espi_soft_dag *d)
{
    for (size_t a = 0; a < t->atom.count; a++) {
        uint64_t key;
        const double *value;
        for (size_t n = 0; rules->partner(rules, t->atom.key[a], n, &key, &value); n++) {
            const uint32_t atom = espi_soft_map_find(&d->trees->atom, key);
            if (atom == ESPI_NO_NODE) continue;
            if (!espi_reserve(&l->partner, &l->partner_capacity, l->partners + 1, sizeof *l->partner)) return false;
            l->partner[l->partners++] = (struct espi_soft_partner){.atom = atom, .value = value};
        }
        l->partner_start[a + 1] = l->partners;
    }
    return true;
}

bool espi_soft_link_make(espi_soft_link *l, const espi_soft_rules *rules, const espi_soft_trees *t,
                         const espi_soft_dag *d)
{
    l->group = espi_alloc(t->shapes, sizeof *l->group);
    l->list = espi_alloc(t->codes, sizeof *l->list);
    l->partner_start = espi_alloc_zero(t->atom.count + 1, sizeof *l->partner_start);
    if (l->group == NULL || l->list == NULL || l->partner_start == NULL) return false;
    for (size_t s = 0; s < t->shapes; s++) {
        const struct espi_soft_look *shape = &t->shape[s];
        const uint32_t group = espi_soft_map_find(&d->trees->group, t->group.key[shape->group]);
        l->group[s] = group;
        for (size_t k = shape->code; k < shape->code + shape->children; k++)
            l->list[k] =
                group == ESPI_NO_NODE ? ESPI_NO_NODE : espi_soft_map_find(&d->list, (uint64_t)group << 32 | t->key[k]);
    }
    return link_atoms(l, rules, t, d);
}
