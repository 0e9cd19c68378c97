/* Explainers and explanations: what espalier.h promises about them, as it is held. */
#ifndef ESPI_EXPLAIN_EXPLAIN_H
#define ESPI_EXPLAIN_EXPLAIN_H

#include "explain/source.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/terms.h"
#include "learn/model/model.h"

typedef struct espi_term_source { /* a term in one program; what it has not is zero */
    bool has_trees, has_sequences, has_listed;
    espi_tree_source trees;
    espi_seq_source sequences;
    espi_weight_list listed;
} espi_term_source;

/* Decision functions first .. first + outputs - 1 of the model, which have one kernel. */
typedef struct espi_program {
    const esp_kernel *kernel;
    size_t first, outputs;
    const double *coefficient; /* support example i, output k: coefficient[i * stride + k] */
    size_t stride;
    espi_bound *bound;        /* the support examples with themselves */
    espi_term_source *source; /* per term */
} espi_program;

struct esp_explainer {
    const esp_model *model;
    espi_term *term;                 /* alike in all programs */
    char **text, **reason, **column; /* per term; reason or column is NULL */
    size_t terms;
    espi_program *program;
    size_t programs;
};

typedef struct espi_function { /* a decision function as it is shown */
    size_t output;             /* of the model */
    double sign;
    char *name;
    bool exact;
    double bound;
    double score, bias, rest;
} espi_function;

struct esp_explanation {
    espi_function *function;
    size_t functions;
    char **term; /* texts, per term */
    size_t terms;
    esp_feature *feature; /* texts are owned */
    double *weight;       /* feature i, function o: weight[i * functions + o] */
    size_t features, feature_capacity, weight_capacity;
    /* Of an example: */
    bool of_example;
    size_t example;
    double *term_score;  /* function o, term t: term_score[o * terms + t] */
    struct espi_shared { /* per term; zeros where it has no fragments */
        esp_node *node;  /* labels are in `label` */
        char *label;
        size_t nodes;
        double *share; /* node i, function o: share[i * functions + o] */
    } * shared;
};

/* 1/sqrt of the self-value under a norm, also where that takes a wide number; 0 where it is 0 or beyond all numbers. */
double espi_norm_scale(const espi_norm *norm, espi_side side, size_t example);

const espi_program *espi_program_of(const esp_explainer *explainer, size_t output);

/* One with the decision functions that the options ask for, and no features yet. */
esp_status espi_explanation_new(const esp_explainer *explainer, const esp_explain_options *options,
                                esp_explanation **out, esp_error *err);
/* Adds what a shortlist found for a function, the largest first. */
esp_status espi_explanation_take(esp_explanation *explanation, const esp_explainer *explainer, size_t function,
                                 espi_ranking *side, esp_error *err);
/* Copies of texts; NULL if memory is out. */
char **espi_copy_texts(char *const *text, size_t count);
void espi_free_texts(char **text, size_t count);

#endif
