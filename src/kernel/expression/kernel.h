/* Kernels: how one describes itself, and what an expression of several consists of.
 *
 * An esp_kernel is an expression as a program in postfix order over leaves (`sst(tree, lambda=0.4)`) with sums,
 * products, weights, powers and norms. A leaf bound to a column of two datasets, the rows and the columns of a Gram
 * matrix, is a part; a kernel with all its leaves bound is an espi_bound (evaluate/bound.h). Learners know kernels only
 * through that.
 *
 * All that differs between kernels is a field of espi_kernel_class. To add a kernel: describe it in one such class in
 * its own file, list it in evaluate/registry.c, and test it against its definition (CONTRIBUTING.md). */
#ifndef ESPI_KERNEL_EXPRESSION_KERNEL_H
#define ESPI_KERNEL_EXPRESSION_KERNEL_H

#include "base/text.h"
#include "base/wide.h"
#include "data/dataset.h"

/* ------------------------------------------------------------- parameters */

/* An argument that is more than a number, such as grammar rules. It never changes once it is read, so that copies of a
 * kernel share it. */
typedef struct espi_argument_class {
    const char *name, *short_name; /* "grammar rules", "rules" */
    const char *example;           /* as it stands in an expression, braces included */
    /* Reads what stands behind an opening brace at expression[at - 1]; *end is set behind the closing one. A fault is
     * ESP_ERR_PARAM with its column in the expression. */
    esp_status (*parse)(const char *expression, size_t at, size_t *end, void **out, esp_error *err);
    /* Reads a file; a fault is ESP_ERR_PARSE with file, line and column. */
    esp_status (*read)(const char *path, void **out, esp_error *err);
    const char *(*text)(const void *argument); /* what stands between the braces */
    void *(*share)(void *argument);            /* one more owner */
    void (*free)(void *argument);              /* one owner less; NULL does nothing */
} espi_argument_class;

typedef struct espi_parameter {
    esp_parameter_info info; /* name, help, default and range as texts, and the kind */
    double low, high;        /* allowed values */
    bool low_open;           /* `low` itself is not allowed */
    bool infinite;           /* `inf` is allowed; `high` is then infinite too */
    bool per_symbol;         /* may also be given for one label or feature: name.LABEL=value */
    double draw_low;         /* a hyperparameter: where learners draw its first values, by their logarithms; 0: none */
    double draw_high;
    const char *const *choices;          /* of ESP_KIND_CHOICE, ended by NULL; the value is the index */
    const espi_argument_class *argument; /* of ESP_KIND_RULES */
} espi_parameter;

enum { ESPI_MAX_PARAMETERS = 8 };

typedef struct espi_symbol_value { /* name.LABEL=value */
    size_t parameter;
    char *label;
    double value;
} espi_symbol_value;

/* ------------------------------------------------------------------ parts */

typedef struct espi_kernel_class espi_kernel_class;
typedef struct espi_growing_class espi_growing_class; /* growing.h */
typedef struct espi_folding_class espi_folding_class; /* folding.h */

typedef struct espi_leaf { /* a kernel with its parameters, not yet bound to data */
    const espi_kernel_class *class;
    char *column; /* NULL: the only one that fits */
    double value[ESPI_MAX_PARAMETERS];
    espi_symbol_value *symbol;
    size_t symbols, symbol_capacity;
    struct espi_selection *selection; /* of a class that selects: the patterns it sums over (pattern/pattern.h); owned.
                                         Expressions have none, and copies of a kernel have none again */
    void *argument;                   /* of the parameter that has an argument class; NULL: none is given */
} espi_leaf;

typedef enum espi_side { ESPI_ROWS, ESPI_COLS } espi_side;

typedef struct espi_part { /* a bound leaf; each kernel puts its own fields behind this */
    const espi_kernel_class *class;
} espi_part;

/* ------------------------------------------------------------------ class */

/* Kernels that sum over patterns which are mined from training data: what these are, and how a selection is freed. */
typedef enum espi_selection_kind { ESPI_SELECTED_SEQUENCES, ESPI_SELECTED_TREES } espi_selection_kind;
typedef struct espi_selecting {
    espi_selection_kind kind;
    void (*free)(struct espi_selection *selection);
} espi_selecting;

/* What the features are that a model with this kernel can be explained by. */
typedef enum espi_feature_source {
    ESPI_NO_FEATURES,    /* support examples explain it; `no_features` says why */
    ESPI_TREE_FRAGMENTS, /* all fragments of trees, weighed by lambda and alpha, and leaves if it has a parameter bow */
    ESPI_SUBSEQUENCES,   /* all subsequences up to n tokens, weighed by lambda */
    ESPI_VALUES,         /* the entries of vectors */
    ESPI_SELECTED_PATTERNS /* the patterns of its selection */
} espi_feature_source;

struct espi_kernel_class {
    const char *name, *help;
    const char *vector_help; /* where `help` also tells of other columns: that of vectors alone; NULL: `help` */
    const espi_parameter *parameters; /* ended by a NULL name */
    bool takes[3];                    /* which esp_column_type it takes */

    /* Binds to a column of the rows' and of the columns' dataset, which may be the same and outlive the part. `base`:
     * a part of the same leaf and columns, which also outlives it and lends what belongs to the columns; or NULL. */
    esp_status (*bind)(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err);
    void (*free)(espi_part *part);

    /* What one thread needs to call `row` and `score`; NULL if memory is out. The calling thread's has `run`, and
     * its long rows ask whether to go on; others have NULL. */
    void *(*workspace_new)(const espi_part *part, const esp_run *run);
    void (*workspace_free)(void *workspace);

    /* out[j - from] = K(row, j), j = from .. to-1. Values that overflow come out as not finite. */
    esp_status (*row)(const espi_part *part, void *workspace, size_t row, size_t from, size_t to, double *out,
                      esp_error *err);
    /* out[i] = K(i, i) for all examples of one side. */
    esp_status (*diagonal)(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err);
    /* K(i, j) of any two examples, without overflow. */
    esp_status (*pair)(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err);

    /* The scorer: for each output k the sum over j of coefficient[j * outputs + k] K(., j), all folded into one
     * structure, and its values for a row. Where nothing folds (no such function, or *folded NULL) the examples stay
     * and rows are multiplied with the coefficients. */
    esp_status (*fold)(const espi_part *part, const double *coefficient, size_t outputs, void **folded, esp_error *err);
    void (*folded_free)(void *folded);
    esp_status (*score)(const espi_part *part, const void *folded, void *workspace, size_t row, double *score,
                        esp_error *err);
    const espi_growing_class *growing; /* the kernel in sums that grow; NULL: it is not learned example by example */
    const espi_folding_class *folding; /* ... and in sums whose coefficients change; NULL: these are made of scorers */

    /* For all hyperparameters of the leaf at once, gradient[p] += sum_j weight[j - from] dK(row, j)/d value[p],
     * j = from .. to-1; p past the class's parameters stands for leaf->symbol[p - parameters]. It costs a few rows,
     * whatever their number; values that overflow make it not finite. `value`: unless it is NULL, it gets what `row`
     * would give, up to rounding. NULL: not differentiable. */
    esp_status (*gradient)(const espi_part *part, void *workspace, size_t row, size_t from, size_t to,
                           const double *weight, double *value, double *gradient, esp_error *err);
    /* The same for self-values: gradient[p] += sum_i weight[i] dK(i, i)/d value[p] over all examples of one side. */
    esp_status (*gradient_diagonal)(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *gradient, esp_error *err);
    /* Whether learners of hyperparameters give every label or feature of the column its own value of the parameters
     * that are per symbol. NULL: they do not. */
    bool (*learns_by_symbol)(const espi_leaf *leaf);

    const espi_selecting *selects; /* NULL: it sums over all of its features */
    espi_feature_source features;
    const char *no_features; /* the end of a sentence that begins with the kernel; NULL: a general one */
    /* Adds a line for what may be wrong about using the leaf on these columns, the same column of one or more datasets.
     * False if memory is out. NULL: nothing ever is. */
    bool (*warn)(const espi_leaf *leaf, const espi_column *const *column, size_t columns, espi_text *lines);
};

size_t espi_parameter_count(const espi_kernel_class *class);
/* The value of a parameter of a leaf, by name; the name must be one of the class. */
double espi_leaf_value(const espi_leaf *leaf, const char *name);
/* The same, or `otherwise` if the class has no such parameter. */
double espi_leaf_value_or(const espi_leaf *leaf, const char *name, double otherwise);
/* Whether a leaf, or one of the leaves, selects patterns. */
bool espi_leaf_selects(const espi_leaf *leaf);
bool espi_kernel_selects(const esp_kernel *kernel);

/* ---------------------------------------------------------------- program */

typedef enum espi_op_kind { ESPI_LEAF_OP, ESPI_SUM, ESPI_PRODUCT, ESPI_SCALE, ESPI_POWER, ESPI_NORM } espi_op_kind;

typedef struct espi_op {
    espi_op_kind kind;
    double number;      /* weight of ESPI_SCALE, exponent of ESPI_POWER */
    size_t left, right; /* operands (indices of earlier ops); of ESPI_LEAF_OP, `left` is the leaf */
} espi_op;

struct esp_kernel {
    espi_leaf *leaf;
    size_t leaves, leaf_capacity;
    espi_op *op; /* operands before operators; the last is the whole */
    size_t ops, op_capacity;
    char *text;
};

/* Reads an expression over the given classes, ended by NULL. `files`: an argument may be given by the name of a file,
 * which is read. */
esp_status espi_expression_parse(const char *expression, const espi_kernel_class *const *classes, bool files,
                                 esp_kernel **out, esp_error *err);
/* The same kernel without its selections. */
esp_status espi_kernel_copy(const esp_kernel *kernel, esp_kernel **out, esp_error *err);
/* A copy that is read from the kernel's text: a value out of its range is refused with its place. */
esp_status espi_kernel_check(const esp_kernel *kernel, esp_kernel **out, esp_error *err);
/* A copy in which every leaf that has the parameter has it set to `value`. ESP_ERR_PARAM if none has, or the value is
 * refused. */
esp_status espi_kernel_with(const esp_kernel *kernel, const char *name, const char *value, esp_kernel **out,
                            esp_error *err);

/* Bytes of an expression that are not arguments in braces: what is costly to take in grows with these. In an
 * expression that is wrong, all is counted right up to the wrong place. */
size_t espi_kernel_plain_size(const char *expression);

/* The expression of the program; kernel->text is set by it. */
esp_status espi_kernel_print(esp_kernel *kernel, esp_error *err);
/* The expression for people: of long grammars the first rules, and how many more there are; of all of it, or of one of
 * its ops. NULL if memory is out. */
char *espi_kernel_print_short(const esp_kernel *kernel);
char *espi_kernel_print_op(const esp_kernel *kernel, size_t op);

#endif
