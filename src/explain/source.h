/* Sources: what the features of one term of a kernel are, and what they weigh in a model.
 *
 * A model is f_k(x) = bias_k + sum_i c_ik K(x_i, x). For a term that is one leaf or the norm of one,
 * K(x_i, x) = s_i s(x) sum over features u of scale_u v_u(x_i) v_u(x), with s = 1 or 1/sqrt of the self-value; so a
 * feature weighs scale_u sum_i c_ik s_i v_u(x_i), weights of the expression taken into c. All coefficients below are of
 * this kind. */
#ifndef ESPI_EXPLAIN_SOURCE_H
#define ESPI_EXPLAIN_SOURCE_H

#include "explain/rank.h"
#include "data/bag.h"
#include "kernel/pattern/pattern.h"
#include "kernel/sequence/sequence.h"

/* What is to be searched. */
typedef struct espi_feature_query {
    size_t term;
    size_t output; /* of the source */
    double sign;   /* 1, or -1 to turn the decision function round */
    size_t max_size;
    uint64_t effort;
    size_t memory; /* bytes that the search may hold */
    const esp_run *run;
    espi_shortlist *shortlist;
} espi_feature_query;

/* ------------------------------------------- fragments of trees (fragments.c) */

/* A fragment weighs the product of lambda over its productions and of alpha over its open nodes, the latter by the
 * label of their parents, times the sum of f over the vertices at which it matches. */
typedef struct espi_tree_source {
    const espi_forest *forest; /* of the support examples */
    size_t outputs;
    double *lambda, *alpha; /* per production */
    double *f;              /* vertex v, output k: f[v * outputs + k] */
    double *grown;          /* per vertex: the largest factor of a fragment that is rooted there */
    double *occurrences;    /* per vertex: in all support examples */
    size_t *member_start;   /* vertices of production p: member[member_start[p]] .. */
    espi_ref *member;
    size_t *row_start; /* vertex v is in the support examples row[row_start[v]] .. */
    uint32_t *row;
    size_t largest; /* most vertices of a support tree, with repetition */
    bool complete;  /* all alpha are 0 */
} espi_tree_source;

esp_status espi_tree_source_make(espi_tree_source *source, const espi_leaf *leaf, const espi_column *support,
                                 const double *coefficient, size_t outputs, esp_error *err);
void espi_tree_source_free(espi_tree_source *source);

/* An example as a source sees it. */
typedef struct espi_tree_example {
    const espi_forest *forest; /* its own */
    espi_ref root;
    uint32_t *production; /* of its forest -> of the source, ESPI_NO_NODE where that has none */
    espi_vertices vertices;
    double *count; /* per vertex of its forest */
    double scale;  /* of its norm */
} espi_tree_example;
bool espi_tree_example_make(espi_tree_example *example, const espi_tree_source *source, const espi_column *column,
                            double scale);
void espi_tree_example_free(espi_tree_example *example);

/* Fragments of the model, or of one example (`example` not NULL), whose keys are contributions then. */
esp_status espi_search_fragments(const espi_tree_source *source, const espi_tree_example *example,
                                 const espi_feature_query *query, esp_error *err);

/* What is told of a feature besides its key: weight[k] in all outputs, and where support examples have it. */
typedef struct espi_facts {
    double *weight;
    size_t examples;
    double occurrences;
} espi_facts;
bool espi_fragment_facts(const espi_tree_source *source, const espi_found *found, espi_facts *facts);
bool espi_fragment_text(const espi_tree_source *source, const espi_found *found, espi_text *text);

/* share[node * stride] += the share in one output, for the nodes of the example in preorder, leaves included
 * (shares.c). */
esp_status espi_fragment_shares(const espi_tree_source *source, const espi_tree_example *example, size_t output,
                                double sign, const esp_run *run, double *share, size_t stride, esp_error *err);
/* The bytes that this takes: a number for each pair of a different subtree of the example and one of the support
 * examples that have the same production, and the columns of nodes that wait for their turn. False if memory is out. */
bool espi_fragment_shares_bytes(const espi_tree_source *source, const espi_tree_example *example, double *bytes);

/* ------------------------------------------ patterns of sequences (patterns.c) */

typedef struct espi_seq_source {
    const espi_symbols *symbols;
    espi_seqs seqs; /* of the support examples */
    espi_seq_rule rule;
    size_t outputs;
    double *coefficient; /* sequence i, output k: coefficient[i * outputs + k] */
    double *grown;       /* per token: the largest factor of what may follow it */
} espi_seq_source;

esp_status espi_seq_source_make(espi_seq_source *source, const espi_leaf *leaf, const espi_column *support,
                                const double *coefficient, size_t outputs, esp_error *err);
void espi_seq_source_free(espi_seq_source *source);

typedef struct espi_seq_example {
    espi_seqs seqs;   /* the example alone */
    uint32_t *factor; /* in the symbols of the source */
    double *grown;
    double scale;
} espi_seq_example;
bool espi_seq_example_make(espi_seq_example *example, const espi_seq_source *source, const espi_column *column,
                           double scale);
void espi_seq_example_free(espi_seq_example *example);

esp_status espi_search_patterns(const espi_seq_source *source, const espi_seq_example *example,
                                const espi_feature_query *query, esp_error *err);
bool espi_pattern_facts(const espi_seq_source *source, const espi_found *found, espi_facts *facts);
bool espi_pattern_text(const espi_seq_source *source, const espi_found *found, espi_text *text);

/* ----------------------------------------------- features in a list (weight_list.c) */

/* Words of trees, values of vectors, and what fseq and fsst selected: few enough to have a weight each. */
typedef struct espi_weight_list {
    esp_feature_kind kind;
    size_t features, outputs;
    double *weight;      /* feature u, output k: weight[u * outputs + k] */
    double *occurrences; /* per feature: the sum of its values in the support examples */
    size_t *examples;    /* per feature: those that have it */
    espi_symbols names;  /* of the features; of selected patterns their texts */
    const espi_leaf *leaf;
    const espi_selection *selection; /* of fseq and fsst; else NULL */
} espi_weight_list;

esp_status espi_weight_list_words(espi_weight_list *listed, const espi_leaf *leaf, const espi_column *support,
                                  const double *coefficient, size_t outputs, esp_error *err);
esp_status espi_weight_list_values(espi_weight_list *listed, const espi_leaf *leaf, const espi_column *support,
                                   const double *coefficient, size_t outputs, esp_error *err);
esp_status espi_weight_list_selected(espi_weight_list *listed, const espi_leaf *leaf, const espi_column *support,
                                     const double *coefficient, size_t outputs, esp_error *err);
void espi_weight_list_free(espi_weight_list *listed);

/* Features of the model, or of the one example of a column with the scale of its norm. */
bool espi_search_weight_list(const espi_weight_list *listed, const espi_column *column, double scale,
                             const espi_feature_query *query);
void espi_weight_list_facts(const espi_weight_list *listed, size_t feature, espi_facts *facts);
void espi_weight_list_text(const espi_weight_list *listed, size_t feature, espi_text *text);
/* share[node * stride] +=, as above: a word's to its leaf, a selected fragment's to its nodes. */
bool espi_weight_list_shares(const espi_weight_list *listed, const espi_column *column, double scale, size_t output,
                             double sign, double *share, size_t stride);

/* ------------------------------------------------------------ nodes of a tree */

typedef struct espi_preorder { /* a tree as a list of its nodes */
    struct espi_preorder_node {
        espi_ref ref;
        uint32_t parent;      /* ESPI_NO_NODE: the root */
        uint32_t first, next; /* the first child and the next sibling; ESPI_NO_NODE: none */
    } * node;
    size_t nodes, capacity;
} espi_preorder;
/* False if memory is out. */
bool espi_preorder_make(espi_preorder *list, const espi_forest *forest, espi_ref root);
void espi_preorder_free(espi_preorder *list);

#endif
