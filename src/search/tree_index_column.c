/* The trees of an index as a column of a dataset: for an index that gets more examples, which is made anew. Labels and
 * productions get the numbers that they have in the index. */
#include "base/alloc.h"
#include "base/status.h"
#include "search/tree_index.h"

#include <string.h>

typedef struct rebuild {
    const espi_tree_index *index;
    espi_forest *forest;
    espi_listed_tree tree;
    espi_ref *built;   /* per node of the tree; ESPI_NO_NODE: not yet */
    uint32_t *waiting; /* nodes whose children are being built, a stack */
    espi_ref *child;
    size_t built_room, waiting_room, child_room;
    bool wrong;
} rebuild;

static bool rule_of(const espi_tree_index *x, uint32_t group, const uint32_t **kid, size_t *kids)
{
    if (group >= x->rules || x->rule_label[group] >= x->symbols) return false;
    const uint64_t from = group > 0 ? x->rule_end[group - 1] : 0, to = x->rule_end[group];
    if (from >= to || to > x->rule_kids) return false;
    *kid = x->rule_kid + from;
    *kids = (size_t)(to - from);
    for (size_t k = 0; k < *kids; k++)
        if ((*kid)[k] / 2 >= x->symbols) return false;
    return true;
}

/* The vertex of a production whose inner children are inner[0 .. count). ESPI_NO_NODE: memory is out, or wrong. */
static espi_ref make_vertex(rebuild *r, uint32_t group, const espi_ref *inner, size_t count)
{
    const uint32_t *kid;
    size_t kids, used = 0;
    r->wrong = r->wrong || !rule_of(r->index, group, &kid, &kids);
    if (r->wrong || !espi_reserve(&r->child, &r->child_room, kids + count, sizeof *r->child)) return ESPI_NO_NODE;
    espi_ref *child = r->child;
    for (size_t k = 0; k < kids && !r->wrong; k++) {
        const bool leaf = (kid[k] & 1) == 0;
        r->wrong = !leaf && used == count;
        if (!r->wrong) child[k] = leaf ? ESPI_LEAF | kid[k] / 2 : inner[used++];
    }
    r->wrong = r->wrong || used != count;
    return r->wrong ? ESPI_NO_NODE : espi_forest_node(r->forest, r->index->rule_label[group], child, kids);
}

static bool push(rebuild *r, size_t *depth, uint32_t node)
{
    if (!espi_reserve(&r->waiting, &r->waiting_room, *depth + 1, sizeof *r->waiting)) return false;
    r->waiting[(*depth)++] = node;
    return true;
}

/* Builds a node once its children are there, else the first that is not. */
static bool step(rebuild *r, size_t *depth, espi_ref **inner, size_t *room)
{
    const espi_listed_tree *t = &r->tree;
    const uint32_t node = r->waiting[*depth - 1], from = node > 0 ? t->kid_end[node - 1] : 0;
    const size_t count = t->kid_end[node] - from;
    if (!espi_reserve(inner, room, count, sizeof **inner)) return false;
    for (size_t k = 0; k < count; k++) {
        const uint32_t kid = t->kid[from + k];
        if ((kid & ESPI_WORD) == 0 && r->built[kid] == ESPI_NO_NODE) return push(r, depth, kid);
        /* A pre-terminal is made, or found, where the reader of the tree made it. */
        (*inner)[k] = (kid & ESPI_WORD) == 0 ? r->built[kid] : make_vertex(r, kid & ~ESPI_WORD, NULL, 0);
        if ((*inner)[k] == ESPI_NO_NODE) return false;
    }
    r->built[node] = make_vertex(r, t->group[node], *inner, count);
    (*depth)--;
    return r->built[node] != ESPI_NO_NODE;
}

static bool build_tree(rebuild *r, espi_ref *root)
{
    const espi_listed_tree *t = &r->tree;
    const size_t rules = r->index->rules;
    espi_ref *inner = NULL;
    size_t depth = 0, room = 0;
    *root = ESPI_NO_NODE;
    if (t->nodes == 0) {
        if (t->words == 0) return true;
        const uint32_t group = t->word_group[0];
        *root = group < rules ? make_vertex(r, group, NULL, 0) : ESPI_LEAF | (uint32_t)(group - rules);
        return *root != ESPI_NO_NODE;
    }
    if (!espi_reserve(&r->built, &r->built_room, t->nodes, sizeof *r->built)) return false;
    memset(r->built, 0xFF, t->nodes * sizeof *r->built);
    bool ok = push(r, &depth, (uint32_t)t->nodes - 1);
    while (ok && depth > 0) ok = step(r, &depth, &inner, &room);
    espi_free(inner);
    if (ok) *root = r->built[t->nodes - 1];
    return ok;
}

static bool add_symbols(rebuild *r)
{
    const espi_tree_index *x = r->index;
    uint64_t at = 0;
    for (size_t i = 0; i < x->symbols; i++) {
        const uint64_t end = x->symbol_end[i];
        r->wrong = r->wrong || end < at || end > x->symbol_bytes || end - at >= UINT32_MAX;
        if (r->wrong) return false;
        const uint32_t number = espi_symbols_add(&r->forest->symbols, x->symbol_text + at, (size_t)(end - at));
        if (number == ESPI_NO_SYMBOL) return false;
        r->wrong = number != i;
        at = end;
    }
    return !r->wrong;
}

esp_status espi_tree_index_column(const espi_tree_index *index, espi_column *out, esp_error *err)
{
    rebuild r = {.index = index, .forest = &out->trees};
    bool ok = add_symbols(&r);
    for (size_t i = 0; ok && i < index->list.trees; i++) {
        espi_ref root;
        r.wrong = !espi_listed_tree_get(&index->list, i, &r.tree) || !espi_listed_tree_check(&r.tree, index->groups);
        ok = !r.wrong && build_tree(&r, &root) && espi_set_tree(out, root, NULL) == ESP_OK;
    }
    espi_free(r.built);
    espi_free(r.waiting);
    espi_free(r.child);
    if (ok) return ESP_OK;
    return r.wrong ? espi_fail(err, ESP_ERR_PARSE, "the index is wrong: its trees do not fit together")
                   : espi_no_memory(err);
}
