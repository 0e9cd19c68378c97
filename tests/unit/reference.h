/* Slow, obvious references, written from the definitions alone and sharing no code with the library.
 *
 * A tree kernel is the inner product of explicit features: every fragment of the tree, written out as text, with
 * the number of times it occurs. Trees are small here, so recursion is fine, and running out of memory aborts. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------ random numbers */

typedef struct ref_random {
    uint64_t state;
} ref_random;

uint64_t ref_random_bits(ref_random *random);
size_t ref_random_below(ref_random *random, size_t bound);
double ref_random_between(ref_random *random, double low, double high);

/* --------------------------------------------------------------------- trees */

/* A node without children is a leaf. */
typedef struct ref_tree {
    char *label;
    struct ref_tree **child;
    size_t children;
} ref_tree;

ref_tree *ref_tree_parse(const char *brackets);
void ref_tree_free(ref_tree *tree);
/* Fragments of the tree with repetition, as a double because they may be very many. */
double ref_tree_fragments(const ref_tree *tree);

/* Brackets of a random tree of exactly `nodes` nodes, leaves included: leaf and inner children mixed, unary chains,
 * few labels, so that trees share fragments. `extra` uses labels and words of its own besides. The caller frees it. */
char *ref_random_tree(ref_random *random, size_t nodes, bool extra);
/* One of 1 .. `most` nodes that has at most `fragments` fragments. */
char *ref_random_small_tree(ref_random *random, size_t most, double fragments, bool extra);

/* ------------------------------------------------------------- tree kernels */

typedef struct ref_symbol {
    const char *label;
    double lambda, alpha;
} ref_symbol;

/* A fragment weighs the product, over its productions, of lambda of the production's label, and, over its inner
 * nodes that are not expanded, of alpha of the label of their parent. Each word weighs `bow`. */
typedef struct ref_weights {
    double lambda, alpha, bow;
    const ref_symbol *symbol; /* labels with values of their own */
    size_t symbols;
} ref_weights;

typedef struct ref_feature {
    char *text;
    double weight, count;
} ref_feature;

typedef struct ref_features { /* sorted by text, each text once */
    ref_feature *feature;
    size_t count, capacity;
} ref_features;

ref_features ref_features_of(const ref_tree *tree, const ref_weights *weights);
double ref_features_dot(const ref_features *a, const ref_features *b);
void ref_features_free(ref_features *features);

/* ---------------------------------------------------------------- vectors */

typedef struct ref_entry {
    const char *name; /* NULL ends a vector */
    double value;
} ref_entry;

double ref_linear(const ref_entry *a, const ref_entry *b);
double ref_poly(const ref_entry *a, const ref_entry *b, double gamma, double coef0, int degree);
double ref_rbf(const ref_entry *a, const ref_entry *b, double gamma);

/* --------------------------------------------------------------- matrices */

/* The smallest and largest eigenvalue of a symmetric n x n matrix, by Jacobi rotations. */
void ref_eigenvalues(const double *matrix, size_t n, double *smallest, double *largest);

#endif
