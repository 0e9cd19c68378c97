/* Trees as arrays: what an index keeps, and what queries become. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/tree/plan.h"
#include "search/tree_index.h"

#include <string.h>

typedef struct arrays { /* the same as espi_tree_list, to be filled */
    uint64_t *node_end, *kid_end, *word_end;
    uint32_t *node_group, *node_kids, *node_count, *kid, *word_group, *word_count;
} arrays;

void espi_tree_list_free(espi_tree_list *l)
{
    const void *const array[] = {l->node_end,   l->kid_end, l->word_end,   l->node_group, l->node_kids,
                                 l->node_count, l->kid,     l->word_group, l->word_count};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) espi_free((void *)(uintptr_t)array[i]);
    *l = (espi_tree_list){0};
}

/* Leaves of a tree, counted per label; those that occur become words. */
typedef struct leaf_counter {
    const espi_forest *forest;
    const uint32_t *group; /* per label; NULL: leaves do not count */
    uint32_t *count;       /* per label, zeros */
    uint32_t *label;       /* those that occur */
    size_t labels;
} leaf_counter;

static void count_leaf(leaf_counter *c, espi_ref leaf, double times)
{
    const uint32_t label = espi_leaf_symbol(leaf);
    if (c->count[label] == 0) c->label[c->labels++] = label;
    c->count[label] += (uint32_t)times;
}

static void count_below(leaf_counter *c, espi_ref vertex, double times)
{
    const espi_ref *child = c->forest->child + c->forest->vertex[vertex].children;
    for (size_t k = 0; k < espi_production_of(c->forest, vertex)->arity; k++)
        if (espi_is_leaf(child[k])) count_leaf(c, child[k], times);
}

static void count_leaves(leaf_counter *c, const espi_plan *plan, espi_ref root)
{
    c->labels = 0;
    if (c->group == NULL) return;
    if (root != ESPI_NO_NODE && espi_is_leaf(root)) count_leaf(c, root, 1.0);
    for (size_t i = 0; i < plan->words; i++) count_below(c, plan->word[i].vertex, plan->word[i].count);
    for (size_t i = 0; i < plan->nodes; i++) count_below(c, plan->node[i].vertex, plan->node[i].count);
}

static void clear_leaves(leaf_counter *c)
{
    for (size_t i = 0; i < c->labels; i++) c->count[c->label[i]] = 0;
}

static bool start_counter(leaf_counter *c, const espi_forest *forest, const uint32_t *leaf)
{
    *c = (leaf_counter){.forest = forest, .group = leaf};
    if (leaf == NULL) return true;
    c->count = espi_alloc_zero(forest->symbols.count, sizeof *c->count);
    c->label = espi_alloc(forest->symbols.count, sizeof *c->label);
    return c->count != NULL && c->label != NULL;
}

static bool take_arrays(espi_tree_list *l, arrays *a)
{
    l->node_end = a->node_end = espi_alloc(l->trees, sizeof *a->node_end);
    l->kid_end = a->kid_end = espi_alloc(l->trees, sizeof *a->kid_end);
    l->word_end = a->word_end = espi_alloc(l->trees, sizeof *a->word_end);
    l->node_group = a->node_group = espi_alloc(l->nodes, sizeof *a->node_group);
    l->node_kids = a->node_kids = espi_alloc(l->nodes, sizeof *a->node_kids);
    l->node_count = a->node_count = espi_alloc(l->nodes, sizeof *a->node_count);
    l->kid = a->kid = espi_alloc(l->kids, sizeof *a->kid);
    l->word_group = a->word_group = espi_alloc(l->words, sizeof *a->word_group);
    l->word_count = a->word_count = espi_alloc(l->words, sizeof *a->word_count);
    return a->node_end != NULL && a->kid_end != NULL && a->word_end != NULL && a->node_group != NULL &&
           a->node_kids != NULL && a->node_count != NULL && a->kid != NULL && a->word_group != NULL &&
           a->word_count != NULL;
}

static void copy_plan(const espi_plan *plan, const leaf_counter *c, const arrays *a, size_t at[3])
{
    for (size_t i = 0; i < plan->nodes; i++, at[0]++) {
        a->node_group[at[0]] = plan->node[i].group;
        a->node_kids[at[0]] = plan->node[i].end;
        a->node_count[at[0]] = (uint32_t)plan->node[i].count;
    }
    const size_t kids = plan->nodes > 0 ? plan->node[plan->nodes - 1].end : 0;
    if (kids > 0) memcpy(a->kid + at[1], plan->child, kids * sizeof *a->kid);
    at[1] += kids;
    for (size_t i = 0; i < plan->words; i++, at[2]++) {
        a->word_group[at[2]] = plan->word[i].group;
        a->word_count[at[2]] = (uint32_t)plan->word[i].count;
    }
    for (size_t i = 0; i < c->labels; i++, at[2]++) {
        a->word_group[at[2]] = c->group[c->label[i]];
        a->word_count[at[2]] = c->count[c->label[i]];
    }
}

static bool fill(espi_tree_list *l, const espi_plans *plans, leaf_counter *c)
{
    size_t at[3] = {0, 0, 0};
    arrays a;
    for (size_t i = 0; i < l->trees; i++) {
        const espi_plan plan = espi_plan_of(plans, i);
        count_leaves(c, &plan, c->forest->root[i]);
        l->nodes += plan.nodes;
        l->kids += plan.nodes > 0 ? plan.node[plan.nodes - 1].end : 0;
        l->words += plan.words + c->labels;
        clear_leaves(c);
    }
    if (!take_arrays(l, &a)) return false;
    for (size_t i = 0; i < l->trees; i++) {
        const espi_plan plan = espi_plan_of(plans, i);
        count_leaves(c, &plan, c->forest->root[i]);
        copy_plan(&plan, c, &a, at);
        clear_leaves(c);
        a.node_end[i] = at[0];
        a.kid_end[i] = at[1];
        a.word_end[i] = at[2];
    }
    return true;
}

esp_status espi_tree_list_make(espi_tree_list *list, const espi_forest *forest, const uint32_t *shared,
                               const uint32_t *leaf, size_t groups, const esp_run *run, esp_error *err)
{
    espi_plans plans = {0};
    leaf_counter c = {0};
    *list = (espi_tree_list){.trees = forest->roots};
    esp_status status = start_counter(&c, forest, leaf) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = espi_plans_make(&plans, forest, shared, groups, run, err);
    if (status == ESP_OK && !fill(list, &plans, &c)) status = espi_no_memory(err);
    espi_plans_free(&plans);
    espi_free(c.count);
    espi_free(c.label);
    if (status != ESP_OK) espi_tree_list_free(list);
    return status;
}

/* -------------------------------------------------------------------- asked */

/* Where the items of a tree start and end among `all`. */
static bool range(const uint64_t *end, size_t tree, size_t all, size_t *first, size_t *count)
{
    const uint64_t from = tree > 0 ? end[tree - 1] : 0;
    if (end[tree] > all || from > end[tree]) return false;
    *first = (size_t)from;
    *count = (size_t)(end[tree] - from);
    return true;
}

bool espi_listed_tree_get(const espi_tree_list *l, size_t tree, espi_listed_tree *out)
{
    size_t node, kid, word;
    if (!range(l->node_end, tree, l->nodes, &node, &out->nodes) ||
        !range(l->kid_end, tree, l->kids, &kid, &out->kids) || !range(l->word_end, tree, l->words, &word, &out->words))
        return false;
    out->group = l->node_group + node;
    out->kid_end = l->node_kids + node;
    out->count = l->node_count + node;
    out->kid = l->kid + kid;
    out->word_group = l->word_group + word;
    out->word_count = l->word_count + word;
    return true;
}

bool espi_listed_tree_check(const espi_listed_tree *t, size_t groups)
{
    uint32_t at = 0;
    for (size_t i = 0; i < t->words; i++)
        if (t->word_group[i] >= groups) return false;
    for (size_t i = 0; i < t->nodes; i++) {
        if (t->group[i] >= groups || t->kid_end[i] < at || t->kid_end[i] > t->kids) return false;
        for (; at < t->kid_end[i]; at++) {
            const uint32_t kid = t->kid[at];
            if ((kid & ESPI_WORD) != 0 ? (kid & ~ESPI_WORD) >= groups : kid >= i) return false;
        }
    }
    return at == t->kids;
}

bool espi_listed_tree_plan(const espi_listed_tree *t, espi_plan *out, void **memory)
{
    espi_plan_node *node = espi_alloc(t->nodes + t->words + 1, sizeof *node);
    espi_plan_word *word = (espi_plan_word *)(void *)(node + t->nodes);
    _Static_assert(sizeof(espi_plan_word) <= sizeof(espi_plan_node), "both fit one block");
    *memory = node;
    if (node == NULL) return false;
    for (size_t i = 0; i < t->nodes; i++)
        node[i] = (espi_plan_node){.group = t->group[i],
                                   .vertex = (uint32_t)i,
                                   .first = i > 0 ? t->kid_end[i - 1] : 0,
                                   .end = t->kid_end[i],
                                   .count = t->count[i]};
    for (size_t k = 0; k < t->kids; k++)
        if ((t->kid[k] & ESPI_WORD) == 0) node[t->kid[k]].uses++;
    for (size_t i = 0; i < t->words; i++)
        word[i] =
            (espi_plan_word){.group = t->word_group[i], .vertex = (uint32_t)(t->nodes + i), .count = t->word_count[i]};
    *out = (espi_plan){.node = node, .nodes = t->nodes, .child = t->kid, .word = word, .words = t->words};
    return true;
}
