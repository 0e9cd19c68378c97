/* Sets of tree fragments, matched by walking down.
 *
 * At a node of the set, a fragment f, the walk from a vertex v of a tree at which f matches holds the open nodes of f
 * in the tree, left to right. The child (skip k, production p) matches if open node k has the production p; its open
 * nodes are the inner children of that one and then the open nodes behind it. The empty fragment has v itself open.
 * Two trees are walked at once the same way, with the open nodes of both. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/writer.h"
#include "kernel/pattern/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void espi_fragments_free(espi_fragments *f)
{
    espi_symbols_free(&f->symbols);
    espi_free(f->label);
    espi_free(f->children);
    espi_free(f->child_label);
    espi_patterns_free(&f->set);
    *f = (espi_fragments){0};
}

/* -------------------------------------------------------------- productions */

uint32_t espi_fragments_add(espi_fragments *f, const espi_forest *forest, uint32_t production)
{
    const espi_production *p = &forest->production[production];
    const size_t at = f->productions > 0 ? f->children[f->productions] : 0;
    if (f->productions >= ESPI_NO_NODE - 1 || at + p->arity >= ESPI_NO_NODE ||
        !espi_reserve(&f->label, &f->production_capacity, f->productions + 1, sizeof *f->label) ||
        !espi_reserve(&f->children, &f->children_capacity, f->productions + 2, sizeof *f->children) ||
        !espi_reserve(&f->child_label, &f->child_capacity, at + p->arity, sizeof *f->child_label))
        return ESPI_NO_NODE;
    const espi_symbol *s = &forest->symbols.symbol[p->label];
    f->label[f->productions] = espi_symbols_add(&f->symbols, s->text, s->size);
    bool ok = f->label[f->productions] != ESPI_NO_SYMBOL;
    for (size_t k = 0; ok && k < p->arity; k++) {
        const uint32_t child = forest->child_label[p->children + k];
        s = &forest->symbols.symbol[child / 2];
        const uint32_t symbol = espi_symbols_add(&f->symbols, s->text, s->size);
        ok = symbol != ESPI_NO_SYMBOL;
        f->child_label[at + k] = symbol * 2 + child % 2;
    }
    f->children[f->productions] = (uint32_t)at;
    f->children[f->productions + 1] = (uint32_t)(at + p->arity);
    return ok ? (uint32_t)f->productions++ : ESPI_NO_NODE;
}

uint32_t *espi_fragments_map(const espi_fragments *f, const espi_forest *forest)
{
    uint32_t *map = espi_alloc(forest->productions, sizeof *map);
    uint32_t *symbol = espi_symbols_map(&f->symbols, &forest->symbols), *child = NULL;
    size_t capacity = 0;
    bool ok = map != NULL && symbol != NULL;
    for (size_t p = 0; ok && p < forest->productions; p++) map[p] = ESPI_NO_NODE;
    for (size_t p = 0; ok && p < f->productions; p++) {
        const size_t first = f->children[p], arity = f->children[p + 1] - first;
        bool known = symbol[f->label[p]] != ESPI_NO_SYMBOL;
        ok = espi_reserve(&child, &capacity, arity, sizeof *child);
        for (size_t k = 0; ok && known && k < arity; k++) {
            const uint32_t label = f->child_label[first + k];
            known = symbol[label / 2] != ESPI_NO_SYMBOL;
            child[k] = symbol[label / 2] * 2 + label % 2;
        }
        if (!ok || !known) continue;
        const uint32_t same = espi_forest_find_production(forest, symbol[f->label[p]], child, arity);
        if (same != ESPI_NO_NODE) map[same] = (uint32_t)p;
    }
    espi_free(symbol);
    espi_free(child);
    if (ok) return map;
    espi_free(map);
    return NULL;
}

/* --------------------------------------------------------------------- text */

typedef struct writer {
    const espi_fragments *of;
    uint32_t *path;
    size_t length, next; /* steps, and the next one */
    uint32_t skip;       /* open nodes before it */
    struct written {     /* a node whose children are being written */
        uint32_t child, end;
    } * frame;
    size_t frames, capacity;
} writer;

/* Writes the label of the next step's production and turns to its children. */
static bool expand(writer *w, espi_text *text)
{
    const espi_fragments *f = w->of;
    const uint32_t p = f->set.label[w->path[w->next++]];
    if (!espi_reserve(&w->frame, &w->capacity, w->frames + 1, sizeof *w->frame)) return false;
    w->frame[w->frames++] = (struct written){.child = f->children[p], .end = f->children[p + 1]};
    if (w->next < w->length) w->skip = f->set.skip[w->path[w->next]];
    espi_text_string(text, "(");
    espi_text_label(text, &f->symbols.symbol[f->label[p]]);
    return true;
}

/* A word that would be taken for the mark of an open node, or for one that was kept from that, gets a backslash. */
static void write_word(espi_text *text, const espi_symbol *s)
{
    size_t slashes = 0;
    while (slashes < s->size && s->text[slashes] == '\\') slashes++;
    const bool mark = s->size - slashes == 3 && memcmp(s->text + slashes, "...", 3) == 0;
    if (!mark) {
        espi_text_label(text, s);
        return;
    }
    char *longer = espi_alloc(s->size + 1, 1);
    if (longer == NULL) {
        text->failed = true;
        return;
    }
    longer[0] = '\\';
    memcpy(longer + 1, s->text, s->size);
    espi_text_label(text, &(espi_symbol){.text = longer, .size = s->size + 1});
    espi_free(longer);
}

static bool write_child(writer *w, uint32_t label, espi_text *text)
{
    const espi_symbol *s = &w->of->symbols.symbol[label / 2];
    espi_text_string(text, " ");
    if (label % 2 == 0) {
        write_word(text, s);
        return true;
    }
    if (w->next < w->length && w->skip-- == 0) return expand(w, text);
    espi_text_string(text, "(");
    espi_text_label(text, s);
    espi_text_string(text, " ...)");
    return true;
}

void espi_fragments_text(const espi_fragments *f, size_t pattern, espi_text *text)
{
    writer w = {.of = f};
    size_t capacity = 0;
    bool ok = espi_patterns_path(&f->set, f->set.node[pattern], &w.path, &capacity, &w.length) && expand(&w, text);
    while (ok && w.frames > 0 && !text->failed) {
        struct written *top = &w.frame[w.frames - 1];
        if (top->child < top->end) {
            ok = write_child(&w, f->child_label[top->child++], text);
        } else {
            espi_text_string(text, ")");
            w.frames--;
        }
    }
    if (!ok) text->failed = true;
    espi_free(w.path);
    espi_free(w.frame);
}

/* ----------------------------------------------------------------- vertices */

void espi_fragment_walker_free(espi_fragment_walker *w)
{
    espi_free(w->feature);
    espi_free(w->frame);
    espi_free(w->open);
    espi_free(w->seen);
    espi_walk_free(&w->walk);
    *w = (espi_fragment_walker){0};
}

void espi_vertices_free(espi_vertices *v)
{
    espi_free(v->at);
    *v = (espi_vertices){0};
}

/* Adds to the counts of the children; `vertices` come children first, so that this goes backwards. */
static void count_down(espi_vertices *v, const espi_forest *f, const uint32_t *seen)
{
    v->at[v->count - 1].count = 1.0;
    for (size_t i = v->count; i-- > 0;) {
        const espi_vertex *vertex = &f->vertex[v->at[i].vertex];
        for (size_t k = 0; k < f->production[vertex->production].arity; k++) {
            const espi_ref child = f->child[vertex->children + k];
            if (!espi_is_leaf(child)) v->at[seen[child]].count += v->at[i].count;
        }
    }
}

bool espi_vertices_make(espi_vertices *v, const espi_forest *f, espi_ref root, espi_fragment_walker *w)
{
    v->count = 0;
    if (root == ESPI_NO_NODE || espi_is_leaf(root)) return true;
    if (w->seen_size < f->vertices) {
        uint32_t *more = espi_realloc(w->seen, f->vertices, sizeof *more);
        if (more == NULL) return false;
        w->seen = more;
        while (w->seen_size < f->vertices) w->seen[w->seen_size++] = ESPI_NO_NODE;
    }
    bool failed = !espi_walk_start(&w->walk, f, root);
    espi_ref vertex;
    while (!failed && (vertex = espi_walk_next_new(&w->walk, w->seen, &failed)) != ESPI_NO_NODE) {
        failed = !espi_reserve(&v->at, &v->capacity, v->count + 1, sizeof *v->at);
        if (failed) break;
        w->seen[vertex] = (uint32_t)v->count;
        v->at[v->count++] = (struct espi_vertex_count){.vertex = vertex};
    }
    if (!failed) count_down(v, f, w->seen);
    for (size_t i = 0; i < v->count; i++) w->seen[v->at[i].vertex] = ESPI_NO_NODE;
    return !failed;
}

/* ------------------------------------------------------------------ matching */

struct espi_fragment_frame { /* a fragment that matches, with its open nodes walker->open[from .. to) in each tree */
    uint32_t node;
    double weight;
    size_t from[2], to[2];
};

static bool push(espi_fragment_walker *w, struct espi_fragment_frame frame)
{
    if (!espi_reserve(&w->frame, &w->frame_capacity, w->frames + 1, sizeof *w->frame)) return false;
    w->frame[w->frames++] = frame;
    return true;
}

static uint32_t production_of(const espi_matched *tree, espi_ref vertex)
{
    return tree->map[tree->forest->vertex[vertex].production];
}

/* Puts the open nodes after a step at open node `at` behind *top. */
static bool open_next(espi_fragment_walker *w, const espi_forest *f, size_t at, size_t to, size_t *top)
{
    const espi_vertex *v = &f->vertex[w->open[at]];
    const espi_production *p = &f->production[v->production];
    if (!espi_reserve(&w->open, &w->open_capacity, *top + p->inner + (to - at - 1), sizeof *w->open)) return false;
    for (size_t k = 0; k < p->arity; k++)
        if (!espi_is_leaf(f->child[v->children + k])) w->open[(*top)++] = f->child[v->children + k];
    for (size_t k = at + 1; k < to; k++) w->open[(*top)++] = w->open[k];
    return true;
}

/* The next child of frame->node that matches, from child *child and open node *k on; the shorter list leads. With `s`
 * NULL one tree is walked, else both. */
static bool next_match(const espi_patterns *set, const espi_fragment_walker *w, const struct espi_fragment_frame *frame,
                       const espi_matched *const tree[2], uint32_t *child, size_t *k)
{
    const size_t open = frame->to[0] - frame->from[0];
    const uint32_t end = set->first[frame->node + 1];
    if (end - set->first[frame->node] <= open) {
        for (; *child < end; ++*child) {
            *k = set->skip[*child];
            const uint32_t p = set->label[*child];
            if (*k < open && production_of(tree[0], w->open[frame->from[0] + *k]) == p &&
                (tree[1] == NULL || production_of(tree[1], w->open[frame->from[1] + *k]) == p))
                return true;
        }
        return false;
    }
    for (; *k < open; ++*k) {
        const uint32_t p = production_of(tree[0], w->open[frame->from[0] + *k]);
        if (p == ESPI_NO_NODE || (tree[1] != NULL && production_of(tree[1], w->open[frame->from[1] + *k]) != p))
            continue;
        *child = espi_patterns_child(set, frame->node, (uint32_t)*k, p);
        if (*child != ESPI_NO_NODE) return true;
    }
    return false;
}

static bool start(espi_fragment_walker *w, espi_ref s, espi_ref t, double weight)
{
    w->frames = 0;
    if (!espi_reserve(&w->open, &w->open_capacity, 2, sizeof *w->open)) return false;
    w->open[0] = s;
    w->open[1] = t;
    return push(w, (struct espi_fragment_frame){.weight = weight, .from = {0, 1}, .to = {1, 2}});
}

/* Walks down from the nodes on the stack. With one tree, features get the weights; with two, *sum does. */
static bool walk(const espi_patterns *set, double decay, const espi_matched *const tree[2], espi_fragment_walker *w,
                 double *sum)
{
    while (w->frames > 0) {
        const struct espi_fragment_frame frame = w->frame[--w->frames];
        size_t top = frame.to[1];
        uint32_t child = set->first[frame.node];
        for (size_t k = 0; next_match(set, w, &frame, tree, &child, &k); child++, k++) {
            struct espi_fragment_frame down = {.node = child, .weight = frame.weight * decay, .from = {top}};
            const uint32_t pattern = set->pattern[child];
            if (pattern != ESPI_NO_NODE && tree[1] != NULL) *sum += down.weight;
            if (pattern != ESPI_NO_NODE && tree[1] == NULL) {
                if (!espi_reserve(&w->feature, &w->feature_capacity, w->features + 1, sizeof *w->feature)) return false;
                w->feature[w->features++] = (espi_feature_value){.pattern = pattern, .value = down.weight};
            }
            if (set->first[child] == set->first[child + 1]) continue;
            if (!open_next(w, tree[0]->forest, frame.from[0] + k, frame.to[0], &top)) return false;
            down.to[0] = down.from[1] = down.to[1] = top;
            if (tree[1] != NULL) {
                if (!open_next(w, tree[1]->forest, frame.from[1] + k, frame.to[1], &top)) return false;
                down.to[1] = top;
            }
            if (!push(w, down)) return false;
        }
    }
    return true;
}

static int by_pattern(const void *x, const void *y)
{
    const espi_feature_value *a = x, *b = y;
    if (a->pattern != b->pattern) return a->pattern < b->pattern ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value); /* so that sums have one order */
}

bool espi_fragments_features(const espi_fragments *f, double lambda, const espi_matched *tree, espi_fragment_walker *w)
{
    const espi_matched *const one[2] = {tree, NULL};
    w->features = 0;
    for (size_t i = 0; f->set.nodes > 0 && i < tree->vertices.count; i++) {
        const struct espi_vertex_count *v = &tree->vertices.at[i];
        if (!start(w, v->vertex, v->vertex, v->count) || !walk(&f->set, sqrt(lambda), one, w, NULL)) return false;
    }
    if (w->features > 1) qsort(w->feature, w->features, sizeof *w->feature, by_pattern);
    size_t kept = 0;
    for (size_t i = 0; i < w->features; i++) {
        if (kept > 0 && w->feature[kept - 1].pattern == w->feature[i].pattern)
            w->feature[kept - 1].value += w->feature[i].value;
        else w->feature[kept++] = w->feature[i];
    }
    w->features = kept;
    return true;
}

bool espi_fragments_kernel(const espi_fragments *f, double lambda, const espi_matched *s, const espi_matched *t,
                           espi_fragment_walker *w, double *value)
{
    const espi_matched *const both[2] = {s, t};
    *value = 0.0;
    for (size_t i = 0; f->set.nodes > 0 && i < s->vertices.count; i++) {
        const struct espi_vertex_count *a = &s->vertices.at[i];
        const uint32_t p = production_of(s, a->vertex);
        if (p == ESPI_NO_NODE) continue;
        for (size_t k = 0; k < t->vertices.count; k++) {
            const struct espi_vertex_count *b = &t->vertices.at[k];
            if (production_of(t, b->vertex) != p) continue;
            if (!start(w, a->vertex, b->vertex, a->count * b->count) || !walk(&f->set, lambda, both, w, value))
                return false;
        }
    }
    return true;
}
