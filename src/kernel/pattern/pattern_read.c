/* Sets of patterns from columns that hold them: the way back from their texts.
 *
 * Each row is a path of steps. Sorted, with what a path shares with the one before left out, the paths are the
 * preorder of the set. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/pattern/pattern.h"

#include <stdlib.h>
#include <string.h>

typedef struct move {
    uint32_t skip, label;
} move;

typedef struct path {
    const move *move;
    size_t first, length; /* `first`: where it starts, until all are gathered and `move` is set */
} path;

typedef struct paths {
    move *move;
    size_t moves, move_capacity;
    path *path;
    size_t count;
} paths;

static void paths_free(paths *p)
{
    espi_free(p->move);
    espi_free(p->path);
}

static bool add_move(paths *p, uint32_t skip, uint32_t label)
{
    if (!espi_reserve(&p->move, &p->move_capacity, p->moves + 1, sizeof *p->move)) return false;
    p->move[p->moves++] = (move){.skip = skip, .label = label};
    return true;
}

static int by_moves(const void *x, const void *y)
{
    const path *a = x, *b = y;
    for (size_t i = 0; i < a->length && i < b->length; i++) {
        const move m = a->move[i], n = b->move[i];
        if (m.skip != n.skip) return m.skip < n.skip ? -1 : 1;
        if (m.label != n.label) return m.label < n.label ? -1 : 1;
    }
    return (a->length > b->length) - (a->length < b->length);
}

static size_t shared_moves(const path *a, const path *b)
{
    size_t n = 0;
    while (n < a->length && n < b->length && a->move[n].skip == b->move[n].skip && a->move[n].label == b->move[n].label)
        n++;
    return n;
}

static bool make_set(paths *p, espi_patterns *set, bool skips)
{
    espi_step *step = espi_alloc_zero(p->moves, sizeof *step);
    size_t steps = 0;
    if (step == NULL) return false;
    for (size_t i = 0; i < p->count; i++) p->path[i].move = p->move + p->path[i].first;
    if (p->count > 1) qsort(p->path, p->count, sizeof *p->path, by_moves);
    for (size_t i = 0; i < p->count; i++) {
        const path *at = &p->path[i];
        for (size_t k = i > 0 ? shared_moves(at - 1, at) : 0; k < at->length; k++)
            step[steps++] = (espi_step){.depth = (uint32_t)k + 1,
                                        .label = at->move[k].label,
                                        .skip = at->move[k].skip,
                                        .kept = k + 1 == at->length};
    }
    const bool ok = espi_patterns_make(set, step, steps, skips);
    espi_free(step);
    return ok;
}

/* ---------------------------------------------------------------- sequences */

typedef struct named {
    const espi_symbol *symbol;
    uint32_t number;
} named;

static int by_bytes(const void *x, const void *y)
{
    const espi_symbol *a = ((const named *)x)->symbol, *b = ((const named *)y)->symbol;
    const int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

bool espi_symbols_rank(const espi_symbols *table, uint32_t *rank, uint32_t *original, size_t *count)
{
    named *name = espi_alloc(table->count, sizeof *name);
    if (name == NULL) return false;
    *count = 0;
    for (size_t i = 0; i < table->count; i++)
        if (rank[i] != ESPI_NO_SYMBOL) name[(*count)++] = (named){.symbol = &table->symbol[i], .number = (uint32_t)i};
    if (*count > 1) qsort(name, *count, sizeof *name, by_bytes);
    for (size_t i = 0; i < *count; i++) {
        rank[name[i].number] = (uint32_t)i;
        original[i] = name[i].number;
    }
    espi_free(name);
    return true;
}

static bool rank_column(const espi_sequences *s, size_t rows, espi_symbols *out, uint32_t *rank)
{
    uint32_t *original = espi_alloc(s->symbols.count, sizeof *original);
    size_t count = 0;
    for (size_t i = 0; i < s->symbols.count; i++) rank[i] = ESPI_NO_SYMBOL;
    for (size_t t = 0; rows > 0 && t < s->row[rows]; t++) rank[s->factor[s->token[t]]] = 0;
    bool ok = original != NULL && espi_symbols_rank(&s->symbols, rank, original, &count);
    for (size_t i = 0; ok && i < count; i++) {
        const espi_symbol *symbol = &s->symbols.symbol[original[i]];
        ok = espi_symbols_add(out, symbol->text, symbol->size) == i;
    }
    espi_free(original);
    return ok;
}

esp_status espi_trie_of(const espi_column *column, espi_trie *trie, esp_error *err)
{
    const espi_sequences *s = &column->sequences;
    *trie = (espi_trie){0};
    paths p = {.path = espi_alloc(column->rows, sizeof *p.path)};
    uint32_t *rank = espi_alloc(s->symbols.count, sizeof *rank);
    bool ok = p.path != NULL && rank != NULL && rank_column(s, column->rows, &trie->symbols, rank);
    for (size_t r = 0; ok && r < column->rows; r++) {
        if (s->row[r] == s->row[r + 1]) continue;
        p.path[p.count++] = (path){.first = p.moves, .length = s->row[r + 1] - s->row[r]};
        for (size_t t = s->row[r]; ok && t < s->row[r + 1]; t++) ok = add_move(&p, 0, rank[s->factor[s->token[t]]]);
    }
    ok = ok && make_set(&p, &trie->set, false);
    espi_free(rank);
    paths_free(&p);
    if (ok) return ESP_OK;
    espi_trie_free(trie);
    return espi_no_memory(err);
}

/* -------------------------------------------------------------------- trees */

typedef struct tree_reader {
    const espi_forest *forest;
    espi_fragments *out;
    espi_forest plain; /* the productions, with marks of open nodes taken away: each a vertex of its own */
    espi_ref *open;    /* nodes still to be visited, the leftmost last */
    size_t opens, open_capacity;
    espi_ref *child;
    size_t child_capacity;
    uint32_t *number; /* production of `plain` -> production of `out` */
    size_t numbers, number_capacity;
} tree_reader;

/* Whether a word is "..." behind at least `slashes` backslashes. */
static bool is_mark(const espi_symbol *s, size_t slashes)
{
    size_t n = 0;
    while (n < s->size && s->text[n] == '\\') n++;
    return n >= slashes && s->size - n == 3 && memcmp(s->text + n, "...", 3) == 0;
}

/* Whether the node is written (NP ...). */
static bool is_open(const espi_forest *f, espi_ref vertex)
{
    if (espi_production_of(f, vertex)->arity != 1) return false;
    const espi_ref child = f->child[f->vertex[vertex].children];
    if (!espi_is_leaf(child)) return false;
    const espi_symbol *s = &f->symbols.symbol[espi_leaf_symbol(child)];
    return s->size == 3 && is_mark(s, 0);
}

/* The word as it was before espi_fragments_text added a backslash. */
static uint32_t plain_word(tree_reader *r, const espi_symbol *s)
{
    const size_t cut = is_mark(s, 1) ? 1 : 0;
    return espi_symbols_add(&r->plain.symbols, s->text + cut, s->size - cut);
}

/* The production of a node in `out`, added if it is new; ESPI_NO_NODE if memory is out. */
static uint32_t production_of(tree_reader *r, espi_ref vertex)
{
    const espi_forest *f = r->forest;
    const espi_production *p = espi_production_of(f, vertex);
    const espi_symbol *s = &f->symbols.symbol[p->label];
    const uint32_t label = espi_symbols_add(&r->plain.symbols, s->text, s->size);
    if (label == ESPI_NO_SYMBOL || !espi_reserve(&r->child, &r->child_capacity, p->arity, sizeof *r->child))
        return ESPI_NO_NODE;
    for (size_t k = 0; k < p->arity; k++) {
        const uint32_t inner = f->child_label[p->children + k] % 2;
        s = &f->symbols.symbol[f->child_label[p->children + k] / 2];
        const uint32_t symbol = inner ? espi_symbols_add(&r->plain.symbols, s->text, s->size) : plain_word(r, s);
        if (symbol == ESPI_NO_SYMBOL) return ESPI_NO_NODE;
        /* Below an inner child stands its own label as a word, so that it is a node. */
        const espi_ref leaf = ESPI_LEAF | symbol;
        r->child[k] = inner ? espi_forest_node(&r->plain, symbol, &leaf, 1) : leaf;
        if (r->child[k] == ESPI_NO_NODE) return ESPI_NO_NODE;
    }
    const espi_ref node = espi_forest_node(&r->plain, label, r->child, p->arity);
    if (node == ESPI_NO_NODE || !espi_reserve(&r->number, &r->number_capacity, r->plain.productions, sizeof *r->number))
        return ESPI_NO_NODE;
    while (r->numbers < r->plain.productions) r->number[r->numbers++] = ESPI_NO_NODE;
    const uint32_t at = r->plain.vertex[node].production;
    if (r->number[at] == ESPI_NO_NODE) r->number[at] = espi_fragments_add(r->out, &r->plain, at);
    return r->number[at];
}

/* The steps of one fragment: its nodes in preorder, those written as open counted as skipped. */
static bool read_tree(tree_reader *r, espi_ref root, paths *p)
{
    const espi_forest *f = r->forest;
    uint32_t skip = 0;
    r->opens = 0;
    if (!espi_reserve(&r->open, &r->open_capacity, 1, sizeof *r->open)) return false;
    r->open[r->opens++] = root;
    while (r->opens > 0) {
        const espi_ref vertex = r->open[--r->opens];
        if (is_open(f, vertex)) {
            skip++;
            continue;
        }
        const uint32_t production = production_of(r, vertex);
        if (production == ESPI_NO_NODE || !add_move(p, skip, production)) return false;
        skip = 0;
        const espi_production *of = espi_production_of(f, vertex);
        if (!espi_reserve(&r->open, &r->open_capacity, r->opens + of->arity, sizeof *r->open)) return false;
        for (size_t k = of->arity; k-- > 0;) {
            const espi_ref child = f->child[f->vertex[vertex].children + k];
            if (!espi_is_leaf(child)) r->open[r->opens++] = child;
        }
    }
    return true;
}

esp_status espi_fragments_of(const espi_column *column, espi_fragments *fragments, esp_error *err)
{
    *fragments = (espi_fragments){0};
    tree_reader r = {.forest = &column->trees, .out = fragments};
    paths p = {.path = espi_alloc(column->rows, sizeof *p.path)};
    esp_status status = p.path != NULL ? ESP_OK : espi_no_memory(err);
    for (size_t row = 0; row < column->rows && status == ESP_OK; row++) {
        const espi_ref root = column->trees.root[row];
        if (root == ESPI_NO_NODE || espi_is_leaf(root) || is_open(&column->trees, root)) {
            status = espi_fail(err, ESP_ERR_PARAM, "tree %zu has no production; a fragment has one at least", row + 1);
            break;
        }
        p.path[p.count++] = (path){.first = p.moves};
        if (!read_tree(&r, root, &p)) status = espi_no_memory(err);
        p.path[p.count - 1].length = p.moves - p.path[p.count - 1].first;
    }
    if (status == ESP_OK && !make_set(&p, &fragments->set, true)) status = espi_no_memory(err);
    paths_free(&p);
    espi_forest_free(&r.plain);
    espi_free(r.open);
    espi_free(r.child);
    espi_free(r.number);
    if (status != ESP_OK) espi_fragments_free(fragments);
    return status;
}
