#include "kernel/grammar_tree/gtk.h"

#include "base/alloc.h"
#include "kernel/grammar_tree/rules.h"

void espi_gtk_clear(espi_gtk *g)
{
    espi_symbols_free(&g->keys);
    espi_symbols_free(&g->kinds);
    espi_symbols_free(&g->sequences);
    espi_free(g->group);
    espi_free(g->place);
    espi_free(g->child);
    espi_free(g->optional);
    espi_free(g->class);
    espi_free(g->size);
    espi_free(g->symbol);
    espi_free(g->kind_size);
    espi_free(g->group_of[ESPI_ROWS]);
    espi_free(g->group_of[ESPI_COLS]);
    *g = (espi_gtk){0};
}

/* ----------------------------------------------------------------- symbols */

/* Symbols that only the rows have are numbered behind those of the columns. */
static bool share_symbols(espi_gtk *g, const espi_forest *rows, const espi_forest *cols)
{
    g->symbols = cols->symbols.count;
    if (rows == cols) return true;
    g->symbol = espi_symbols_map(&rows->symbols, &cols->symbols);
    for (size_t i = 0; g->symbol != NULL && i < rows->symbols.count; i++)
        if (g->symbol[i] == ESPI_NO_SYMBOL) g->symbol[i] = (uint32_t)g->symbols++;
    return g->symbol != NULL;
}

static bool set_classes(espi_gtk *g, const espi_rules *rules, const espi_forest *f, const uint32_t *symbol)
{
    /* Where labels cannot mutate they need no classes. */
    const bool needed = rules != NULL && (g->lambda2 != 0.0 || g->full);
    uint32_t *class = needed ? espi_rules_classes(rules, f) : NULL;
    for (size_t i = 0; i < f->symbols.count; i++) {
        const uint32_t s = symbol == NULL ? (uint32_t)i : symbol[i];
        const uint32_t own = class == NULL ? ESPI_NO_SYMBOL : class[i];
        g->class[s] = own == ESPI_NO_SYMBOL ? s : ESPI_LEAF | own;
        g->size[s] = own == ESPI_NO_SYMBOL ? 1 : rules->class_size[own];
    }
    const bool ok = class != NULL || !needed;
    espi_free(class);
    return ok;
}

/* M */
static double mutation(const espi_gtk *g, uint32_t a, uint32_t b, size_t lane)
{
    const double l = g->lambda2, size = g->size[a];
    if (g->class[a] != g->class[b]) return 0.0;
    if (lane == 0) return a == b ? 1.0 + (size - 1.0) * l * l : 2.0 * l + (size - 2.0) * l * l;
    if (lane != ESPI_GTK_LAMBDA2) return 0.0;
    return a == b ? 2.0 * (size - 1.0) * l : 2.0 + 2.0 * (size - 2.0) * l;
}

double espi_gtk_common(const espi_gtk *g, uint32_t a, uint32_t b, int words, size_t lane)
{
    if (words == 2 && g->frontier) return mutation(g, a, b, lane);
    if (a == b) return lane == 0 ? 1.0 : 0.0;
    if (words == 0 || !g->frontier || g->class[a] != g->class[b]) return 0.0;
    return lane == 0 ? g->lambda2 : lane == ESPI_GTK_LAMBDA2 ? 1.0 : 0.0;
}

double espi_gtk_words(const espi_gtk *g, uint32_t a, uint32_t b, size_t lane)
{
    return lane == ESPI_GTK_LAMBDA ? mutation(g, a, b, 0) : g->lambda * mutation(g, a, b, lane);
}

/* ------------------------------------------------------------------ groups */

typedef struct describer {
    espi_gtk *gtk;
    const espi_forest *forest;
    const uint32_t *symbol;
    const bool *optional; /* goes with forest->child_label; NULL: none is */
    uint32_t *key;
    size_t capacity;
} describer;

/* What tells a group from others: the label, the kind of the first child, then all children or the words' number. */
static bool make_key(describer *d, const espi_production *p, espi_gtk_group *group, size_t *size)
{
    const uint32_t *label = d->forest->child_label + p->children;
    if (!espi_reserve(&d->key, &d->capacity, (size_t)p->arity + 2, sizeof *d->key)) return false;
    d->key[0] = group->label;
    d->key[1] = p->inner == 0;
    for (size_t k = 0; k < p->arity; k++)
        d->key[k + 2] = (d->symbol == NULL ? label[k] >> 1 : d->symbol[label[k] >> 1]) * 2 + (label[k] & 1);
    *size = ((size_t)p->arity + 2) * sizeof *d->key;
    if (p->inner > 0) return true;
    group->words = 0;
    if (d->gtk->words)
        group->words = espi_symbols_add(&d->gtk->sequences, (const char *)(d->key + 2), p->arity * sizeof *d->key);
    d->key[2] = group->words;
    *size = 3 * sizeof *d->key;
    return group->words != ESPI_NO_SYMBOL;
}

/* Adds the group, whose key is at hand; its children are those in the key. */
static bool add_group(describer *d, const espi_production *p, espi_gtk_group group)
{
    espi_gtk *g = d->gtk;
    const size_t kinds = g->kinds.count;
    const uint32_t kind[] = {p->inner == 0, p->inner == 0 ? g->class[group.label] : group.label};
    group.kind = espi_symbols_add(&g->kinds, (const char *)kind, sizeof kind);
    group.children = g->children;
    group.inner = p->inner;
    group.arity = p->inner == 0 ? 0 : p->arity; /* words are in `words` */
    if (group.kind == ESPI_NO_SYMBOL ||
        !espi_reserve(&g->kind_size, &g->kind_capacity, kinds + 1, sizeof *g->kind_size) ||
        !espi_reserve(&g->group, &g->group_capacity, g->keys.count, sizeof *g->group) ||
        !espi_reserve(&g->place, &g->place_capacity, g->keys.count, sizeof *g->place) ||
        !espi_reserve(&g->child, &g->child_capacity, g->children + group.arity, sizeof *g->child) ||
        !espi_reserve(&g->optional, &g->optional_capacity, g->children + group.arity, sizeof *g->optional))
        return false;
    for (size_t k = 0; k < group.arity; k++) {
        g->child[g->children] = d->key[k + 2];
        g->optional[g->children] = d->optional != NULL && d->optional[p->children + k];
        group.optional += g->optional[g->children++];
    }
    if (group.kind == kinds) g->kind_size[kinds] = 0;
    g->place[g->keys.count - 1] = g->kind_size[group.kind]++;
    g->group[g->keys.count - 1] = group;
    return true;
}

static bool describe(espi_gtk *g, const espi_rules *rules, const espi_forest *f, const uint32_t *symbol, espi_side side)
{
    uint32_t **group_of = &g->group_of[side];
    const bool needed = rules != NULL && (g->lambda1 != 0.0 || g->full);
    bool *optional = needed ? espi_rules_optional(rules, f, NULL) : NULL;
    describer d = {.gtk = g, .forest = f, .symbol = symbol, .optional = optional};
    *group_of = espi_alloc(f->productions, sizeof **group_of);
    g->productions[side] = f->productions;
    bool ok = *group_of != NULL && (!needed || optional != NULL);
    for (size_t i = 0; ok && i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        espi_gtk_group group = {.label = symbol == NULL ? p->label : symbol[p->label], .words = ESPI_NO_NODE};
        const size_t known = g->keys.count;
        size_t size;
        ok = make_key(&d, p, &group, &size);
        if (!ok) break;
        const uint32_t number = (*group_of)[i] = espi_symbols_add(&g->keys, (const char *)d.key, size);
        ok = number != ESPI_NO_SYMBOL && (number < known || add_group(&d, p, group));
    }
    espi_free(d.key);
    espi_free(optional);
    return ok;
}

bool espi_gtk_begin(espi_gtk *g, const espi_leaf *leaf, bool full, const espi_forest *rows, const espi_forest *cols)
{
    g->full = full;
    g->lambda = espi_leaf_value(leaf, "lambda");
    g->lambda1 = espi_leaf_value(leaf, "lambda1");
    g->lambda2 = espi_leaf_value(leaf, "lambda2");
    g->words = espi_leaf_value(leaf, "words") != 0.0;
    g->frontier = espi_leaf_value(leaf, "frontier") != 0.0;
    if (!share_symbols(g, rows, cols)) return false;
    g->class = espi_alloc(g->symbols, sizeof *g->class);
    g->size = espi_alloc(g->symbols, sizeof *g->size);
    if (g->class == NULL || g->size == NULL || !set_classes(g, leaf->argument, cols, NULL) ||
        !describe(g, leaf->argument, cols, NULL, ESPI_COLS))
        return false;
    return rows == cols ||
           (set_classes(g, leaf->argument, rows, g->symbol) && describe(g, leaf->argument, rows, g->symbol, ESPI_ROWS));
}
