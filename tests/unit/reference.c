#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *block, size_t count, size_t size)
{
    void *grown = realloc(block, count * size);
    if (grown == NULL) abort();
    return grown;
}

static char *copy_text(const char *text, size_t size)
{
    char *copy = grow(NULL, size + 1, 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* ------------------------------------------------------------ random numbers */

uint64_t ref_random_bits(ref_random *random) /* splitmix64 */
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

size_t ref_random_below(ref_random *random, size_t bound) { return (size_t)(ref_random_bits(random) % bound); }

double ref_random_between(ref_random *random, double low, double high)
{
    return low + (high - low) * ((double)(ref_random_bits(random) >> 11) * 0x1p-53);
}

/* --------------------------------------------------------------------- trees */

static ref_tree *new_node(const char **at)
{
    while (**at == ' ') ++*at;
    const size_t size = strcspn(*at, " ()");
    ref_tree *node = grow(NULL, 1, sizeof *node);
    *node = (ref_tree){.label = copy_text(*at, size)};
    *at += size;
    return node;
}

static ref_tree *parse(const char **at)
{
    while (**at == ' ') ++*at;
    if (**at != '(') return new_node(at);
    ++*at;
    ref_tree *node = new_node(at);
    for (;;) {
        while (**at == ' ') ++*at;
        if (**at == ')' || **at == '\0') break;
        node->child = grow(node->child, node->children + 1, sizeof(ref_tree *));
        node->child[node->children++] = parse(at);
    }
    if (**at == ')') ++*at;
    return node;
}

ref_tree *ref_tree_parse(const char *brackets) { return parse(&brackets); }

void ref_tree_free(ref_tree *tree)
{
    for (size_t i = 0; i < tree->children; i++) ref_tree_free(tree->child[i]);
    free(tree->child);
    free(tree->label);
    free(tree);
}

/* Fragments rooted at the node; each inner child is either left alone or expanded. */
static double rooted(const ref_tree *node, double *total)
{
    if (node->children == 0) return 0.0;
    double product = 1.0;
    for (size_t i = 0; i < node->children; i++) product *= 1.0 + rooted(node->child[i], total);
    *total += product;
    return product;
}

double ref_tree_fragments(const ref_tree *tree)
{
    double total = 0.0;
    rooted(tree, &total);
    return total;
}

/* ------------------------------------------------------------------ random trees */

typedef struct text {
    char *bytes;
    size_t size;
} text;

static void append(text *t, const char *more)
{
    const size_t size = strlen(more);
    t->bytes = grow(t->bytes, t->size + size + 1, 1);
    memcpy(t->bytes + t->size, more, size + 1);
    t->size += size;
}

static void random_node(ref_random *random, size_t nodes, bool extra, text *out)
{
    static const char *const labels[] = {"S", "NP", "VP", "X"}, *const words[] = {"a", "b", "c", "S"};
    static const char *const own_labels[] = {"S", "NP", "Q", "R"}, *const own_words[] = {"a", "b", "u", "NP"};
    if (nodes == 1) { /* (b) inside a tree is the leaf b */
        const char *word = (extra ? own_words : words)[ref_random_below(random, 4)];
        const bool bracket = ref_random_below(random, 4) == 0;
        append(out, bracket ? "(" : "");
        append(out, word);
        append(out, bracket ? ")" : "");
        return;
    }
    append(out, "(");
    append(out, (extra ? own_labels : labels)[ref_random_below(random, 4)]);
    for (size_t left = nodes - 1; left > 0;) {
        const size_t all = ref_random_below(random, 3) == 0 ? left : 1 + ref_random_below(random, left);
        append(out, " ");
        random_node(random, all, extra, out);
        left -= all;
    }
    append(out, ")");
}

char *ref_random_tree(ref_random *random, size_t nodes, bool extra)
{
    text out = {0};
    if (nodes > 1) {
        random_node(random, nodes, extra, &out);
    } else {
        append(&out, "(");
        append(&out, ref_random_below(random, 2) == 0 ? "a" : "b");
        append(&out, ")");
    }
    return out.bytes;
}

char *ref_random_small_tree(ref_random *random, size_t most, double fragments, bool extra)
{
    for (;;) {
        char *brackets = ref_random_tree(random, 1 + ref_random_below(random, most), extra);
        ref_tree *tree = ref_tree_parse(brackets);
        const double count = ref_tree_fragments(tree);
        ref_tree_free(tree);
        if (count <= fragments) return brackets;
        free(brackets);
    }
}

/* ------------------------------------------------------------- tree kernels */

static double lambda_of(const ref_weights *w, const char *label)
{
    for (size_t i = 0; i < w->symbols; i++)
        if (strcmp(w->symbol[i].label, label) == 0) return w->symbol[i].lambda;
    return w->lambda;
}

static double alpha_of(const ref_weights *w, const char *label)
{
    for (size_t i = 0; i < w->symbols; i++)
        if (strcmp(w->symbol[i].label, label) == 0) return w->symbol[i].alpha;
    return w->alpha;
}

static void add_feature(ref_features *f, char *owned, double weight)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity * 2 + 16;
        f->feature = grow(f->feature, f->capacity, sizeof *f->feature);
    }
    f->feature[f->count++] = (ref_feature){.text = owned, .weight = weight, .count = 1.0};
}

static char *join(const char *a, const char *b, const char *c)
{
    const size_t room = strlen(a) + strlen(b) + strlen(c) + 1;
    char *joined = grow(NULL, room, 1);
    snprintf(joined, room, "%s%s%s", a, b, c);
    return joined;
}

/* Each beginning of a fragment goes on with each of the choices for the next child. */
static ref_features cross(ref_features *beginnings, const ref_features *choices)
{
    ref_features all = {0};
    for (size_t i = 0; i < beginnings->count; i++)
        for (size_t j = 0; j < choices->count; j++)
            add_feature(&all, join(beginnings->feature[i].text, " ", choices->feature[j].text),
                        beginnings->feature[i].weight * choices->feature[j].weight);
    ref_features_free(beginnings);
    return all;
}

/* All fragments rooted at an inner node; those of the nodes below it go to `below` with them. A leaf is written
 * 'word, an inner node that is not expanded is its label, an expanded one is in brackets. */
static ref_features fragments_at(const ref_tree *node, const ref_weights *w, ref_features *below)
{
    ref_features here = {0};
    add_feature(&here, join("(", node->label, ""), lambda_of(w, node->label));
    for (size_t i = 0; i < node->children; i++) {
        const ref_tree *child = node->child[i];
        ref_features choices = {0};
        if (child->children == 0) {
            add_feature(&choices, join("'", child->label, ""), 1.0);
            add_feature(below, join("'", child->label, ""), w->bow);
        } else {
            choices = fragments_at(child, w, below);
            add_feature(&choices, join(child->label, "", ""), alpha_of(w, node->label));
        }
        here = cross(&here, &choices);
        ref_features_free(&choices);
    }
    for (size_t i = 0; i < here.count; i++) {
        char *closed = join(here.feature[i].text, ")", "");
        free(here.feature[i].text);
        here.feature[i].text = closed;
        add_feature(below, join(closed, "", ""), here.feature[i].weight);
    }
    return here;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const ref_feature *)a)->text, ((const ref_feature *)b)->text);
}

ref_features ref_features_of(const ref_tree *tree, const ref_weights *weights)
{
    ref_features all = {0};
    if (tree->children == 0) {
        add_feature(&all, join("'", tree->label, ""), weights->bow);
    } else {
        ref_features top = fragments_at(tree, weights, &all);
        ref_features_free(&top);
    }
    qsort(all.feature, all.count, sizeof *all.feature, by_text);
    size_t kept = 0;
    for (size_t i = 1; i < all.count; i++) {
        if (strcmp(all.feature[kept].text, all.feature[i].text) == 0) {
            all.feature[kept].count += 1.0;
            free(all.feature[i].text);
        } else {
            all.feature[++kept] = all.feature[i];
        }
    }
    all.count = kept + 1;
    return all;
}

double ref_features_dot(const ref_features *a, const ref_features *b)
{
    double sum = 0.0;
    size_t i = 0, j = 0;
    while (i < a->count && j < b->count) {
        const int order = strcmp(a->feature[i].text, b->feature[j].text);
        if (order == 0) sum += a->feature[i].count * b->feature[j].count * a->feature[i].weight;
        i += order <= 0;
        j += order >= 0;
    }
    return sum;
}

void ref_features_free(ref_features *features)
{
    for (size_t i = 0; i < features->count; i++) free(features->feature[i].text);
    free(features->feature);
    *features = (ref_features){0};
}

/* ---------------------------------------------------------------- vectors */

double ref_linear(const ref_entry *a, const ref_entry *b)
{
    double sum = 0.0;
    for (const ref_entry *x = a; x->name != NULL; x++)
        for (const ref_entry *y = b; y->name != NULL; y++)
            if (strcmp(x->name, y->name) == 0) sum += x->value * y->value;
    return sum;
}

double ref_poly(const ref_entry *a, const ref_entry *b, double gamma, double coef0, int degree)
{
    double product = 1.0;
    for (int i = 0; i < degree; i++) product *= gamma * ref_linear(a, b) + coef0;
    return product;
}

double ref_rbf(const ref_entry *a, const ref_entry *b, double gamma)
{
    return exp(-gamma * (ref_linear(a, a) - 2.0 * ref_linear(a, b) + ref_linear(b, b)));
}

/* --------------------------------------------------------------- matrices */

/* One rotation in the plane (p, q) that makes m[p][q] zero. */
static void rotate(double *m, size_t n, size_t p, size_t q)
{
    if (m[p * n + q] == 0.0) return;
    const double angle = 0.5 * atan2(2.0 * m[p * n + q], m[q * n + q] - m[p * n + p]);
    const double c = cos(angle), s = sin(angle);
    for (size_t k = 0; k < n; k++) {
        const double kp = m[k * n + p], kq = m[k * n + q];
        m[k * n + p] = c * kp - s * kq;
        m[k * n + q] = s * kp + c * kq;
    }
    for (size_t k = 0; k < n; k++) {
        const double pk = m[p * n + k], qk = m[q * n + k];
        m[p * n + k] = c * pk - s * qk;
        m[q * n + k] = s * pk + c * qk;
    }
}

void ref_eigenvalues(const double *matrix, size_t n, double *smallest, double *largest)
{
    double *m = grow(NULL, n * n, sizeof *m);
    memcpy(m, matrix, n * n * sizeof *m);
    for (int sweep = 0; sweep < 30; sweep++)
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++) rotate(m, n, p, q);
    *smallest = *largest = m[0];
    for (size_t i = 1; i < n; i++) {
        *smallest = fmin(*smallest, m[i * n + i]);
        *largest = fmax(*largest, m[i * n + i]);
    }
    free(m);
}
