/* The grammar-driven kernel from its definition: the features of small trees as texts, and random grammars. */
#ifndef GTK_FEATURES_H
#define GTK_FEATURES_H

#include "cases.h"

/* -------------------------------------------------------------- the feature map */

enum { MOST_RULES = 12, MOST_CHILDREN = 12, LABELS = 8 };

typedef struct grammar { /* productions with optional children, and classes of labels */
    struct rule {
        char label[8], child[MOST_CHILDREN][8];
        bool optional[MOST_CHILDREN];
        size_t children;
    } rule[MOST_RULES];
    size_t rules;
    char class_label[LABELS][8];
    int class[LABELS];
    size_t labels;
} grammar;

typedef struct weights {
    double lambda, lambda1, lambda2;
    bool words, frontier;
    const grammar *grammar;
} weights;

static void add(ref_features *f, const char *text, double weight)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity * 2 + 16;
        f->feature = realloc(f->feature, f->capacity * sizeof *f->feature);
        assert_non_null(f->feature);
    }
    f->feature[f->count++] = (ref_feature){.text = strdup(text), .weight = weight};
}

static int class_of(const grammar *g, const char *label)
{
    for (size_t i = 0; i < g->labels; i++)
        if (strcmp(g->class_label[i], label) == 0) return g->class[i];
    return -1;
}

/* The labels that a pre-terminal's may become, with what the change costs. */
static ref_features mutations(const weights *w, const char *label)
{
    ref_features all = {0};
    const int class = class_of(w->grammar, label);
    add(&all, label, 1.0);
    for (size_t i = 0; class >= 0 && i < w->grammar->labels; i++)
        if (w->grammar->class[i] == class && strcmp(w->grammar->class_label[i], label) != 0)
            add(&all, w->grammar->class_label[i], w->lambda2);
    return all;
}

static bool is_preterminal(const ref_tree *node)
{
    for (size_t i = 0; i < node->children; i++)
        if (node->child[i]->children > 0) return false;
    return true;
}

static const struct rule *rule_of(const grammar *g, const ref_tree *node)
{
    for (size_t i = 0; i < g->rules; i++) {
        const struct rule *r = &g->rule[i];
        bool same = strcmp(r->label, node->label) == 0 && r->children == node->children;
        for (size_t k = 0; same && k < node->children; k++) same = strcmp(r->child[k], node->child[k]->label) == 0;
        if (same) return r;
    }
    return NULL;
}

static ref_features expand(const ref_tree *node, const weights *w);

/* What may stand in a fragment for a child that is kept. */
static ref_features child_choices(const ref_tree *child, const weights *w)
{
    ref_features all = {0};
    char text[4096];
    if (child->children == 0) {
        snprintf(text, sizeof text, "'%s", child->label);
        add(&all, text, 1.0);
        return all;
    }
    ref_features open = {0}, expanded = expand(child, w);
    if (is_preterminal(child) && w->frontier) open = mutations(w, child->label);
    else add(&open, child->label, 1.0);
    for (size_t i = 0; i < open.count; i++) add(&all, open.feature[i].text, open.feature[i].weight);
    for (size_t i = 0; i < expanded.count; i++) {
        /* Without mutation at the frontier a child must have its label unchanged, expanded or not. */
        snprintf(text, sizeof text, "%s%s", w->frontier ? "" : child->label, expanded.feature[i].text);
        add(&all, text, expanded.feature[i].weight);
    }
    ref_features_free(&open);
    ref_features_free(&expanded);
    return all;
}

/* The fragments rooted at a node: pre-terminals with mutated labels as <label words>, others as (label children), for
 * every set of optional children that may go as long as one child stays. */
static ref_features expand(const ref_tree *node, const weights *w)
{
    ref_features all = {0};
    char text[4096];
    if (is_preterminal(node)) {
        ref_features labels = mutations(w, node->label);
        for (size_t i = 0; i < labels.count; i++) {
            int size = snprintf(text, sizeof text, "<%s", labels.feature[i].text);
            for (size_t k = 0; w->words && k < node->children; k++)
                size += snprintf(text + size, sizeof text - (size_t)size, " %s", node->child[k]->label);
            snprintf(text + size, sizeof text - (size_t)size, ">");
            add(&all, text, labels.feature[i].weight * sqrt(w->lambda));
        }
        ref_features_free(&labels);
        return all;
    }
    const struct rule *rule = rule_of(w->grammar, node);
    for (size_t removed = 0; removed < (size_t)1 << node->children; removed++) {
        bool allowed = removed + 1 < (size_t)1 << node->children;
        double cost = 1.0;
        for (size_t k = 0; k < node->children; k++) {
            if ((removed >> k & 1) == 0) continue;
            allowed = allowed && rule != NULL && rule->optional[k];
            cost *= w->lambda1;
        }
        if (!allowed) continue;
        ref_features here = {0};
        snprintf(text, sizeof text, "(%s", node->label);
        add(&here, text, cost * sqrt(w->lambda));
        for (size_t k = 0; k < node->children; k++) {
            if ((removed >> k & 1) != 0) continue;
            ref_features choices = child_choices(node->child[k], w), longer = {0};
            for (size_t i = 0; i < here.count; i++)
                for (size_t j = 0; j < choices.count; j++) {
                    snprintf(text, sizeof text, "%s %s", here.feature[i].text, choices.feature[j].text);
                    add(&longer, text, here.feature[i].weight * choices.feature[j].weight);
                }
            ref_features_free(&here);
            ref_features_free(&choices);
            here = longer;
        }
        for (size_t i = 0; i < here.count; i++) {
            snprintf(text, sizeof text, "%s)", here.feature[i].text);
            add(&all, text, here.feature[i].weight);
        }
        ref_features_free(&here);
    }
    return all;
}

static void gather(const ref_tree *node, const weights *w, ref_features *all)
{
    if (node->children == 0) return;
    ref_features here = expand(node, w);
    for (size_t i = 0; i < here.count; i++) add(all, here.feature[i].text, here.feature[i].weight);
    ref_features_free(&here);
    for (size_t k = 0; k < node->children; k++) gather(node->child[k], w, all);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const ref_feature *)a)->text, ((const ref_feature *)b)->text);
}

/* The features of a tree, each text once. */
static ref_features features(const char *brackets, const weights *w)
{
    ref_features all = {0};
    ref_tree *tree = ref_tree_parse(brackets);
    gather(tree, w, &all);
    ref_tree_free(tree);
    if (all.count > 0) qsort(all.feature, all.count, sizeof *all.feature, by_text);
    size_t kept = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (kept > 0 && strcmp(all.feature[kept - 1].text, all.feature[i].text) == 0) {
            all.feature[kept - 1].weight += all.feature[i].weight;
            free(all.feature[i].text);
        } else {
            all.feature[kept++] = all.feature[i];
        }
    }
    all.count = kept;
    return all;
}

static double dot(const ref_features *a, const ref_features *b)
{
    double sum = 0.0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const int order = strcmp(a->feature[i].text, b->feature[j].text);
        if (order == 0) sum += a->feature[i].weight * b->feature[j].weight;
        i += order <= 0;
        j += order >= 0;
    }
    return sum;
}

/* ------------------------------------------------------------- random grammars */

static const struct rule *add_rule(grammar *g, const ref_tree *node, ref_random *random, size_t chance)
{
    if (node->children == 0 || is_preterminal(node) || node->children > MOST_CHILDREN || g->rules == MOST_RULES ||
        rule_of(g, node) != NULL)
        return NULL;
    struct rule *r = &g->rule[g->rules++];
    *r = (struct rule){.children = node->children};
    snprintf(r->label, sizeof r->label, "%s", node->label);
    for (size_t k = 0; k < node->children; k++) {
        snprintf(r->child[k], sizeof r->child[k], "%s", node->child[k]->label);
        r->optional[k] = ref_random_below(random, 10) < chance;
    }
    return r;
}

static void add_rules(grammar *g, const ref_tree *node, ref_random *random, size_t chance)
{
    if (ref_random_below(random, 4) > 0) add_rule(g, node, random, chance);
    for (size_t k = 0; k < node->children; k++) add_rules(g, node->child[k], random, chance);
}

/* Rules for some of the productions of the trees, and some of the labels in classes. */
static grammar random_grammar(ref_random *random, char *const *tree, size_t count, size_t chance)
{
    static const char *const labels[] = {"S", "NP", "VP", "X", "Q", "R"};
    grammar g = {0};
    for (size_t i = 0; i < count; i++) {
        ref_tree *t = ref_tree_parse(tree[i]);
        add_rules(&g, t, random, chance);
        ref_tree_free(t);
    }
    for (size_t i = 0; i < 6; i++) {
        const size_t class = ref_random_below(random, 4);
        if (class == 3) continue;
        snprintf(g.class_label[g.labels], sizeof g.class_label[0], "%s", labels[i]);
        g.class[g.labels++] = (int)class;
    }
    return g;
}

/* As an expression; the text is static. */
static const char *expression_of(const weights *w, const char *algorithm)
{
    static char text[8192];
    const grammar *g = w->grammar;
    size_t n = (size_t)snprintf(text, sizeof text,
                                "gtk(lambda=%.17g, lambda1=%.17g, lambda2=%.17g, words=%d, frontier=%d, "
                                "algorithm=%s, grammar={",
                                w->lambda, w->lambda1, w->lambda2, w->words, w->frontier, algorithm);
    for (size_t i = 0; i < g->rules; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s ->", g->rule[i].label);
        for (size_t k = 0; k < g->rule[i].children; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, g->rule[i].optional[k] ? " [%s]" : " %s",
                                  g->rule[i].child[k]);
        n += (size_t)snprintf(text + n, sizeof text - n, "; ");
    }
    for (int class = 0; class < 3; class ++) {
        bool any = false;
        for (size_t i = 0; i < g->labels; i++) {
            if (g->class[i] != class) continue;
            n += (size_t)snprintf(text + n, sizeof text - n, any ? " %s" : "= %s", g->class_label[i]);
            any = true;
        }
        if (any) n += (size_t)snprintf(text + n, sizeof text - n, ";");
    }
    snprintf(text + n, sizeof text - n, "})");
    return text;
}

#endif
