/* Trees as lists of their different subtrees, each with its shape, and how often each name occurs in them. */
#include "base/alloc.h"
#include "kernel/partial_tree/partial_tree.h"

#include <string.h>

void espi_ptk_builder_free(espi_ptk_builder *b)
{
    espi_free(b->index);
    espi_free(b->shape);
    espi_free(b->name);
    espi_free(b->named);
    espi_free(b->count);
    espi_free(b->touched);
    espi_free(b->last);
    espi_free(b->stamp);
    espi_walk_free(&b->walk);
    *b = (espi_ptk_builder){0};
}

void espi_ptk_trees_free(espi_ptk_trees *t)
{
    if (t == NULL) return;
    espi_ptk_map_free(&t->group);
    espi_ptk_map_free(&t->name);
    espi_free(t->shape);
    espi_free(t->child_name);
    espi_free(t->tree);
    espi_free(t->node);
    espi_free(t->child);
    espi_free(t->count);
    *t = (espi_ptk_trees){0};
}

typedef struct tree_maker {
    espi_ptk_trees *trees;
    espi_ptk_builder *builder;
    struct espi_ptk_start at; /* where the next node, child and count go */
} tree_maker;

/* ----------------------------------------------------------------- shapes */

/* A name of the forest in the symbols of both sides. */
static uint32_t shared_name(const espi_ptk_trees *t, uint32_t name)
{
    return t->symbol == NULL ? name : t->symbol[name / 2] * 2 + name % 2;
}

/* The name of a node in the symbols of the forest. */
static uint32_t name_of(const espi_ptk_trees *t, espi_ref node)
{
    return espi_is_leaf(node) ? espi_leaf_symbol(node) * 2 : espi_production_of(t->forest, node)->label * 2 + 1;
}

/* The shape of a vertex, added if new; ESPI_NO_NODE: out of memory. */
static uint32_t shape_of(const tree_maker *m, espi_ref vertex)
{
    espi_ptk_trees *t = m->trees;
    const espi_production *p = espi_production_of(t->forest, vertex);
    uint32_t *shape = &m->builder->shape[t->forest->vertex[vertex].production];
    if (*shape != ESPI_NO_NODE) return *shape;
    const uint32_t group = espi_ptk_map_add(&t->group, espi_ptk_label(shared_name(t, name_of(t, vertex))));
    if (group == ESPI_NO_NODE || !espi_reserve(&t->shape, &t->shape_capacity, t->shapes + 1, sizeof *t->shape) ||
        !espi_reserve(&t->child_name, &t->child_name_capacity, t->child_names + p->arity, sizeof *t->child_name))
        return ESPI_NO_NODE;
    t->shape[t->shapes] = (espi_ptk_shape){.group = group, .children = p->arity, .name = t->child_names};
    for (size_t k = 0; k < p->arity; k++)
        t->child_name[t->child_names++] = shared_name(t, t->forest->child_label[p->children + k]);
    return *shape = (uint32_t)t->shapes++;
}

/* ------------------------------------------------------------------ trees */

/* Sets whether the node is the only one of its group in the tree so far. */
static bool stamp_group(tree_maker *m, uint32_t group, espi_ptk_node *node, size_t number)
{
    espi_ptk_builder *b = m->builder;
    const size_t had = b->stamp_capacity;
    if (!espi_reserve(&b->last, &b->last_capacity, group + 1, sizeof *b->last) ||
        !espi_reserve(&b->stamp, &b->stamp_capacity, group + 1, sizeof *b->stamp))
        return false;
    if (b->stamp_capacity > had) memset(b->stamp + had, 0, (b->stamp_capacity - had) * sizeof *b->stamp);
    node->alone = b->stamp[group] != b->trees;
    if (!node->alone) m->trees->node[m->trees->tree[m->trees->trees].node + b->last[group]].alone = false;
    b->stamp[group] = b->trees;
    b->last[group] = (uint32_t)number;
    return true;
}

static bool add_node(tree_maker *m, espi_ref vertex)
{
    espi_ptk_trees *t = m->trees;
    espi_ptk_builder *b = m->builder;
    const struct espi_ptk_start start = t->tree[t->trees];
    const size_t arity = espi_production_of(t->forest, vertex)->arity;
    const espi_ref *child = t->forest->child + t->forest->vertex[vertex].children;
    const uint32_t shape = shape_of(m, vertex);
    if (shape == ESPI_NO_NODE || !espi_reserve(&t->node, &t->node_capacity, m->at.node + 1, sizeof *t->node) ||
        !espi_reserve(&t->child, &t->child_capacity, m->at.child + arity, sizeof *t->child))
        return false;
    const size_t number = m->at.node - start.node;
    espi_ptk_node *node = &t->node[m->at.node];
    *node = (espi_ptk_node){.shape = shape, .vertex = vertex, .first = (uint32_t)(m->at.child - start.child)};
    for (size_t k = 0; k < arity; k++) {
        const uint32_t below = espi_is_leaf(child[k]) ? ESPI_NO_NODE : b->index[child[k]];
        if (below != ESPI_NO_NODE) t->node[start.node + below].uses++;
        t->child[m->at.child++] = below;
    }
    b->index[vertex] = (uint32_t)number;
    m->at.node++;
    return stamp_group(m, t->shape[shape].group, node, number);
}

/* The number of a node's name among those of the trees, which has its count; ESPI_NO_NODE: out of memory. Nodes are
 * many, names are few: they are looked up in a plain array. */
static uint32_t number_name(tree_maker *m, espi_ref node)
{
    espi_ptk_builder *b = m->builder;
    const uint32_t name = name_of(m->trees, node);
    if (b->name[name] != ESPI_NO_NODE) return b->name[name];
    const uint32_t number = espi_ptk_map_add(&m->trees->name, shared_name(m->trees, name));
    const size_t had = b->count_capacity;
    if (number == ESPI_NO_NODE || !espi_reserve(&b->named, &b->named_capacity, b->names + 1, sizeof *b->named) ||
        !espi_reserve(&b->count, &b->count_capacity, (size_t)number + 1, sizeof *b->count))
        return ESPI_NO_NODE;
    for (size_t i = had; i < b->count_capacity; i++) b->count[i] = 0.0;
    b->named[b->names++] = name;
    return b->name[name] = number;
}

static bool count_name(tree_maker *m, espi_ref node, double times, size_t *touched)
{
    espi_ptk_builder *b = m->builder;
    const uint32_t name = number_name(m, node);
    if (name == ESPI_NO_NODE) return false;
    if (b->count[name] == 0.0) {
        if (!espi_reserve(&b->touched, &b->touched_capacity, *touched + 1, sizeof *b->touched)) return false;
        b->touched[(*touched)++] = name;
    }
    b->count[name] += times;
    return true;
}

/* Occurrences of nodes and names, from the root down; the root comes last. */
static bool count_tree(tree_maker *m, espi_ref root, size_t *touched)
{
    espi_ptk_trees *t = m->trees;
    const espi_forest *f = t->forest;
    if (espi_is_leaf(root)) return root == ESPI_NO_NODE || count_name(m, root, 1.0, touched);
    espi_ptk_node *node = t->node + t->tree[t->trees].node;
    const size_t nodes = m->at.node - t->tree[t->trees].node;
    node[nodes - 1].count = 1.0;
    for (size_t i = nodes; i-- > 0;) {
        const espi_ref vertex = node[i].vertex, *child = f->child + f->vertex[vertex].children;
        if (node[i].count > 1.0) node[i].alone = false;
        if (!count_name(m, vertex, node[i].count, touched)) return false;
        for (size_t k = 0; k < espi_production_of(f, vertex)->arity; k++) {
            if (!espi_is_leaf(child[k])) node[m->builder->index[child[k]]].count += node[i].count;
            else if (!count_name(m, child[k], node[i].count, touched)) return false;
        }
    }
    return true;
}

static bool add_tree(tree_maker *m, espi_ref root)
{
    espi_ptk_trees *t = m->trees;
    espi_ptk_builder *b = m->builder;
    const size_t first = m->at.node;
    size_t touched = 0;
    espi_ref vertex;
    t->tree[t->trees] = m->at;
    b->trees++;
    bool failed = !espi_walk_start(&b->walk, t->forest, root);
    while (!failed && (vertex = espi_walk_next_new(&b->walk, b->index, &failed)) != ESPI_NO_NODE)
        failed = !add_node(m, vertex);
    failed = failed || !count_tree(m, root, &touched);
    failed = failed || !espi_reserve(&t->count, &t->count_capacity, m->at.count + touched, sizeof *t->count);
    for (size_t i = first; i < m->at.node; i++) b->index[t->node[i].vertex] = ESPI_NO_NODE;
    for (size_t i = 0; i < touched; i++) {
        const uint32_t name = b->touched[i];
        if (!failed) t->count[m->at.count++] = (espi_ptk_count){.name = name, .count = b->count[name]};
        b->count[name] = 0.0;
    }
    if (!failed) t->tree[++t->trees] = m->at;
    return !failed;
}

/* An array of ESPI_NO_NODE, unless there is one; false: out of memory. */
static bool make_blank(uint32_t **array, size_t count)
{
    if (*array != NULL) return true;
    *array = espi_alloc(count, sizeof **array);
    if (*array != NULL) memset(*array, 0xFF, count * sizeof **array);
    return *array != NULL;
}

bool espi_ptk_trees_make(espi_ptk_trees *t, const espi_forest *forest, const uint32_t *symbol, const espi_ref *root,
                         size_t roots, espi_ptk_builder *b)
{
    tree_maker m = {.trees = t, .builder = b};
    t->forest = forest;
    t->symbol = symbol;
    if (!make_blank(&b->index, forest->vertices) || !make_blank(&b->shape, forest->productions) ||
        !make_blank(&b->name, forest->symbols.count * 2))
        return false;
    t->tree = espi_alloc_zero(roots + 1, sizeof *t->tree);
    bool ok = t->tree != NULL;
    for (size_t i = 0; ok && i < roots; i++) ok = add_tree(&m, root[i]);
    for (size_t i = 0; i < m.at.node; i++) /* for the next call */
        b->shape[forest->vertex[t->node[i].vertex].production] = ESPI_NO_NODE;
    for (size_t i = 0; i < b->names; i++) b->name[b->named[i]] = ESPI_NO_NODE;
    b->names = 0;
    return ok;
}
