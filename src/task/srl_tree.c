/* A sentence as arrays: one walk over the tree, parents before children, gives each node its leaves, its neighbours and
 * its place in the bracketed text, so that a whole subtree is a slice of that text. */
#include "task/srl.h"

#include "base/alloc.h"
#include "base/json.h"
#include "data/writer.h"

#include <string.h>

typedef struct espi_srl_frame {
    espi_ref vertex;
    uint32_t node;
    uint32_t next;      /* the child to look at next */
    uint32_t neighbour; /* the last child before it that is no leaf */
} frame;

bool espi_srl_is(const espi_srl_tree *t, espi_srl_piece name, const char *string)
{
    return strlen(string) == name.size && memcmp(t->names.bytes + name.at, string, name.size) == 0;
}

/* A label as brackets need it, inside of a JSON string or not. */
static void add_text(espi_srl_tree *t, const espi_symbol *symbol, bool json)
{
    t->part.size = 0;
    espi_text_label(json ? &t->part : &t->text, symbol);
    if (json) espi_text_json(&t->text, t->part.bytes, t->part.size);
}

static espi_srl_piece add_name(espi_srl_tree *t, const espi_symbol *symbol, bool lower)
{
    const size_t at = t->names.size;
    t->part.size = 0;
    espi_text_add(&t->part, symbol->text, symbol->size);
    for (size_t i = 0; i < t->part.size && lower; i++) {
        char *c = &t->part.bytes[i];
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    }
    espi_text_json(&t->names, t->part.bytes, t->part.size);
    return (espi_srl_piece){.at = at, .size = t->names.size - at};
}

static bool add_leaf(espi_srl_tree *t, const espi_symbol *symbol, uint32_t parent, bool json)
{
    if (t->leaves >= ESPI_SRL_NONE || !espi_reserve(&t->leaf, &t->leaf_capacity, t->leaves + 1, sizeof *t->leaf))
        return false;
    espi_text_add(&t->text, " ", 1);
    espi_srl_leaf *leaf = &t->leaf[t->leaves++];
    *leaf = (espi_srl_leaf){.parent = parent, .name = add_name(t, symbol, true), .text = {.at = t->text.size}};
    add_text(t, symbol, json);
    leaf->text.size = t->text.size - leaf->text.at;
    leaf->word = !(symbol->size == 1 && symbol->text[0] == '_');
    return true;
}

/* Makes a node its parent's next child. */
static void attach(espi_srl_tree *t, frame *above, uint32_t number)
{
    espi_srl_node *n = &t->node[number];
    n->parent = above->node;
    n->left = above->neighbour;
    if (n->left != ESPI_SRL_NONE) t->node[n->left].right = number;
    if (t->node[n->parent].child == ESPI_SRL_NONE) t->node[n->parent].child = number;
    above->neighbour = number;
    espi_text_add(&t->text, " ", 1);
}

static bool open_node(espi_srl_tree *t, const espi_forest *f, espi_ref vertex, bool json)
{
    if (t->nodes >= ESPI_SRL_NONE || !espi_reserve(&t->node, &t->node_capacity, t->nodes + 1, sizeof *t->node) ||
        !espi_reserve(&t->frame, &t->frame_capacity, t->frames + 1, sizeof *t->frame))
        return false;
    const uint32_t number = (uint32_t)t->nodes++;
    const espi_symbol *label = &f->symbols.symbol[espi_production_of(f, vertex)->label];
    espi_srl_node *n = &t->node[number];
    *n = (espi_srl_node){.parent = ESPI_SRL_NONE,
                         .left = ESPI_SRL_NONE,
                         .right = ESPI_SRL_NONE,
                         .child = ESPI_SRL_NONE,
                         .first = (uint32_t)t->leaves,
                         .depth = (uint32_t)t->frames,
                         .name = add_name(t, label, false)};
    if (t->frames > 0) attach(t, &t->frame[t->frames - 1], number);
    n->text.at = t->text.size;
    espi_text_add(&t->text, "(", 1);
    add_text(t, label, json);
    n->label_end = t->text.size;
    t->frame[t->frames++] = (frame){.vertex = vertex, .node = number, .neighbour = ESPI_SRL_NONE};
    return true;
}

static void close_node(espi_srl_tree *t)
{
    espi_srl_node *n = &t->node[t->frame[--t->frames].node];
    espi_text_add(&t->text, ")", 1);
    n->text.size = t->text.size - n->text.at;
    n->last = (uint32_t)t->leaves - 1;
}

bool espi_srl_tree_set(espi_srl_tree *t, const espi_forest *f, espi_ref root, bool json)
{
    t->nodes = t->leaves = t->frames = t->text.size = t->names.size = 0;
    bool room = open_node(t, f, root, json);
    while (room && t->frames > 0) {
        frame *top = &t->frame[t->frames - 1];
        const espi_vertex *v = &f->vertex[top->vertex];
        if (top->next == f->production[v->production].arity) {
            close_node(t);
            continue;
        }
        const espi_ref child = f->child[v->children + top->next++];
        room = espi_is_leaf(child) ? add_leaf(t, &f->symbols.symbol[espi_leaf_symbol(child)], top->node, json)
                                   : open_node(t, f, child, json);
    }
    if (!room || t->text.failed || t->names.failed || t->part.failed) return false;
    espi_srl_heads(t);
    return true;
}

void espi_srl_tree_free(espi_srl_tree *t)
{
    espi_free(t->node);
    espi_free(t->leaf);
    espi_free(t->frame);
    espi_text_free(&t->text);
    espi_text_free(&t->names);
    espi_text_free(&t->part);
    *t = (espi_srl_tree){0};
}
