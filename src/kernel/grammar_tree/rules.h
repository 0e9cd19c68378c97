/* Grammar rules: what is known about a grammar, to soften the match of trees (docs/grammars.md). A file has
 * lines of two kinds, besides blank ones and what follows a '#':
 *
 *     NP -> DT [JJ] NN        a production; children in brackets may be missing
 *     = NN NNS NNP NNPS       labels of pre-terminals that may stand for each other
 *
 * Inside a kernel expression the same stands in braces, ';' ends a line: {NP -> DT [JJ] NN; = NN NNS}. Labels are
 * separated by blanks; a backslash before a blank, a bracket of any kind, ';', '#' or a backslash makes it a part of
 * the label, and so it does at its start before '=' and '-'. A rule names labels
 * whether they are words or inner nodes. */
#ifndef ESPI_KERNEL_GRAMMAR_TREE_RULES_H
#define ESPI_KERNEL_GRAMMAR_TREE_RULES_H

#include "kernel/expression/kernel.h"

#include <stdatomic.h>

typedef struct espi_rules_place {
    size_t line, column; /* line 0: inside a kernel expression */
} espi_rules_place;

typedef struct espi_rules_line { /* a production */
    size_t first, count;         /* its children: item[first .. first+count) */
    uint32_t left;
    uint32_t optional; /* how many of them may be missing */
    espi_rules_place place;
} espi_rules_line;

typedef struct espi_rules {
    atomic_size_t owners;
    espi_symbols labels;
    espi_symbols keys; /* productions as bytes of label numbers: left, then children; numbers as in `line` */
    espi_rules_line *line;
    size_t lines, line_capacity;
    uint32_t *item; /* label * 2 + (1 if optional) */
    size_t items, item_capacity;
    uint32_t *class;               /* of each label; ESPI_NO_SYMBOL: in none */
    espi_rules_place *class_place; /* where the label was put there */
    size_t class_capacity, place_capacity;
    uint32_t *class_size; /* labels per class */
    uint32_t *member;     /* the labels of all classes, one class after the other */
    size_t classes, members, size_capacity, member_capacity;
    char *text; /* the braces' content: what has an effect, in one order; rules that say the same have the same text */
} espi_rules;

/* Reads a file; a fault is ESP_ERR_PARSE with file, line and column. O(size of the file). */
esp_status espi_rules_read(const char *path, espi_rules **out, esp_error *err);
/* Reads what stands behind an opening brace at expression[at - 1]; *end is set behind the closing one. A fault is
 * ESP_ERR_PARAM with its column in the expression. */
esp_status espi_rules_parse(const char *expression, size_t at, size_t *end, espi_rules **out, esp_error *err);
/* One owner more, or less; NULL has none. */
espi_rules *espi_rules_share(espi_rules *rules);
void espi_rules_free(espi_rules *rules);

/* Rules as the argument of a kernel, and what they say of the columns it is used on (kernel.h). */
extern const espi_argument_class espi_rules_argument;
bool espi_rules_warn(const espi_leaf *leaf, const espi_column *const *column, size_t columns, espi_text *lines);

/* Which children of the forest's productions may be missing: optional[i] goes with forest->child_label[i]. If
 * `matched` is not NULL, matched[line] counts the forest's productions that match it. NULL if memory is out. */
bool *espi_rules_optional(const espi_rules *rules, const espi_forest *forest, size_t *matched);
/* The class of each symbol of the forest, or ESPI_NO_SYMBOL; NULL if memory is out. */
uint32_t *espi_rules_classes(const espi_rules *rules, const espi_forest *forest);

/* The column of trees of this name, or, without a name, the only one. */
esp_status espi_rules_trees(const esp_dataset *data, const char *name, const espi_forest **out, esp_error *err);

/* Adds a label to a text, with backslashes where it needs them. */
void espi_rules_add_label(espi_text *text, const char *label, size_t size);
/* Whether a file of rules can hold the label: it has no control characters. */
bool espi_rules_can_hold(const char *label, size_t size);

#endif
