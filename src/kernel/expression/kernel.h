/* Kernels: how one is described, bound to data and asked for values.
 *
 * An esp_kernel is an expression as a program in postfix order over leaves (`sst(tree, lambda=0.4)`) with sums,
 * products, weights, powers and norms. A leaf bound to a column of two datasets, rows and columns of a Gram matrix,
 * is a part; a kernel with all its leaves bound is an espi_bound (bound.h). Learners know kernels only through that.
 *
 * To add a kernel: describe it in one espi_kernel_class in a file of its own, list it in kernel.c, and test it
 * against its definition (CONTRIBUTING.md). */
#ifndef ESPI_KERNEL_H
#define ESPI_KERNEL_H

#include "data/dataset.h"
#include "base/wide.h"

typedef enum espi_parameter_type {
    ESPI_NUMBER,
    ESPI_INTEGER,
    ESPI_CHOICE,
    ESPI_RULES /* grammar rules: a file's name, or the rules themselves in braces; none by default */
} espi_parameter_type;

typedef struct espi_parameter {
    esp_parameter_info info; /* name, help, default and range as texts */
    espi_parameter_type type;
    double low, high; /* allowed values */
    bool low_open;    /* `low` itself is not allowed */
    bool infinite;    /* `inf` is allowed; `high` is then infinite too */
    bool per_symbol;  /* may also be given for one label or feature: name.LABEL=value */
    double draw_low,
        draw_high; /* a hyperparameter: where learners draw its first values, by their logarithms; 0: none */
    const char *const *choices; /* of ESPI_CHOICE, ended by NULL; the value is the index */
} espi_parameter;

enum { ESPI_MAX_PARAMETERS = 8 };

typedef struct espi_symbol_value { /* name.LABEL=value */
    size_t parameter;
    char *label;
    double value;
} espi_symbol_value;

typedef struct espi_kernel_class espi_kernel_class;
typedef struct espi_online_class espi_online_class; /* online.h */

/* How a sum of kernels that grows is evaluated: shared structures (the annotated DAG, inverted lists); tree by tree
 * with FTK; or pair by pair, from the definition. All give the same values. */
typedef enum espi_form { ESPI_FORM_DAG, ESPI_FORM_FOREST, ESPI_FORM_PLAIN } espi_form;

typedef struct espi_leaf { /* a kernel with its parameters, not yet bound to data */
    const espi_kernel_class *class;
    char *column; /* NULL: the only one that fits */
    double value[ESPI_MAX_PARAMETERS];
    espi_symbol_value *symbol;
    size_t symbols, symbol_capacity;
    struct espi_selection *selection; /* of fseq and fsst: the patterns they sum over (pattern.h); owned. Expressions
                                         have none, and a copy of a kernel by its text has none again */
    struct espi_rules *rules;         /* of the parameter of type ESPI_RULES (rules.h); NULL: none */
} espi_leaf;

typedef enum espi_side { ESPI_ROWS, ESPI_COLS } espi_side;

typedef struct espi_part { /* a bound leaf; each kernel puts its own fields behind this */
    const espi_kernel_class *class;
} espi_part;

struct espi_kernel_class {
    const char *name, *help;
    const espi_parameter *parameters; /* ended by a NULL name */
    bool takes[3];                    /* which esp_column_type it takes */

    /* Binds to a column of the rows' and of the columns' dataset, which may be the same and outlive the part. `like`:
     * a part of the same leaf and columns, which also outlives it and lends what belongs to the columns; or NULL. */
    esp_status (*bind)(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *like,
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

    /* For all hyperparameters of the leaf at once, gradient[p] += sum_j weight[j - from] dK(row, j)/d value[p],
     * j = from .. to-1; p past the class's parameters stands for leaf->symbol[p - parameters]. It costs a few rows,
     * whatever their number; values that overflow make it not finite. NULL: not differentiable. */
    esp_status (*gradient)(const espi_part *part, void *workspace, size_t row, size_t from, size_t to,
                           const double *weight, double *gradient, esp_error *err);
    /* The same for self-values: gradient[p] += sum_i weight[i] dK(i, i)/d value[p] over all examples of one side. */
    esp_status (*gradient_diagonal)(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *gradient, esp_error *err);

    const espi_online_class *online; /* the kernel in sums that grow; NULL: it cannot be learned example by example */
};

extern const espi_kernel_class espi_kernel_st, espi_kernel_sst, espi_kernel_sasst, espi_kernel_ptk, espi_kernel_gtk,
    espi_kernel_seq, espi_kernel_fseq, espi_kernel_fsst, espi_kernel_linear, espi_kernel_poly, espi_kernel_rbf;

/* All kernels, ended by NULL. */
extern const espi_kernel_class *const espi_kernels[];

/* The value of a parameter of a leaf, by name; the name must be one of the class. */
double espi_leaf_value(const espi_leaf *leaf, const char *name);

/* The features of a column over the selection of a leaf of fseq or fsst; the caller frees the bag, also after a
 * failure. */
struct espi_bag;
esp_status espi_selection_bag(const espi_leaf *leaf, const espi_column *column, const esp_run *run,
                              struct espi_bag *bag, esp_error *err);

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

/* A copy in which every leaf that has the parameter has it set to `value`. ESP_ERR_PARAM if none has, or the value is
 * refused. */
esp_status espi_kernel_with(const esp_kernel *kernel, const char *name, const char *value, esp_kernel **out,
                            esp_error *err);

/* As esp_kernel_parse; `files`: grammar rules may be given by the name of a file, which is read. An expression from a
 * model file must not have any read. */
esp_status espi_kernel_parse(const char *expression, bool files, esp_kernel **out, esp_error *err);

/* Bytes of an expression that are not grammar rules in braces: what is costly to take in grows with these. In an
 * expression that is wrong, all is counted right up to the wrong place. */
size_t espi_kernel_plain_size(const char *expression);

/* The expression of the program; kernel->text is set by it. */
esp_status espi_kernel_print(esp_kernel *kernel, esp_error *err);
/* The same for people: of long grammars the first rules, and how many more there are. NULL if memory is out. */
char *espi_kernel_print_short(const esp_kernel *kernel);

#endif
