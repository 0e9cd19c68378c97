/* A program back to the expression it came from: the tree of operators walked in order, without recursion. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "kernel/expression/kernel.h"

#include <stdio.h>

/* A name, in quotes unless it reads back without them. */
static void add_name(espi_text *t, const char *name)
{
    bool plain = *name != '\0';
    for (const char *c = name; *c != '\0'; c++)
        plain = plain && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                          *c == '_' || *c == '-' || (unsigned char)*c >= 0x80);
    if (plain) {
        espi_text_string(t, name);
        return;
    }
    espi_text_string(t, "\"");
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') espi_text_string(t, "\\");
        espi_text_add(t, c, 1);
    }
    espi_text_string(t, "\"");
}

enum { RULES_SHOWN = 3 }; /* of an argument that is shortened; one more is shown rather than counted */

/* "A -> [B] C; ...; and 12 more" */
static void add_few_rules(espi_text *t, const char *rules)
{
    size_t lines = 1, shown = 0;
    for (const char *c = rules; *c != '\0'; c++) {
        if (*c == '\\') c++; /* what follows is of a label, and there is something */
        else if (*c == ';' && lines++ == RULES_SHOWN) shown = (size_t)(c - rules);
    }
    if (lines <= RULES_SHOWN + 1) {
        espi_text_string(t, rules);
        return;
    }
    char more[40];
    snprintf(more, sizeof more, "; and %zu more", lines - RULES_SHOWN);
    espi_text_add(t, rules, shown);
    espi_text_string(t, more);
}

/* The argument itself and not the file it came from, so that the expression stands on its own. */
static void add_argument(espi_text *t, const espi_argument_class *class, const void *argument, bool few)
{
    espi_text_string(t, "{");
    if (argument != NULL && few) add_few_rules(t, class->text(argument));
    else if (argument != NULL) espi_text_string(t, class->text(argument));
    espi_text_string(t, "}");
}

static void add_leaf(espi_text *t, const espi_leaf *leaf, bool few_rules)
{
    const espi_parameter *parameter = leaf->class->parameters;
    const char *comma = "";
    espi_text_string(t, leaf->class->name);
    espi_text_string(t, "(");
    if (leaf->column != NULL) {
        add_name(t, leaf->column);
        comma = ", ";
    }
    for (size_t i = 0; parameter[i].info.name != NULL; i++) {
        espi_text_string(t, comma);
        espi_text_string(t, parameter[i].info.name);
        espi_text_string(t, "=");
        if (parameter[i].choices != NULL) espi_text_string(t, parameter[i].choices[(size_t)leaf->value[i]]);
        else if (parameter[i].argument != NULL) add_argument(t, parameter[i].argument, leaf->argument, few_rules);
        else espi_text_number(t, leaf->value[i]);
        comma = ", ";
    }
    for (size_t i = 0; i < leaf->symbols; i++) {
        espi_text_string(t, ", ");
        espi_text_string(t, parameter[leaf->symbol[i].parameter].info.name);
        espi_text_string(t, ".");
        add_name(t, leaf->symbol[i].label);
        espi_text_string(t, "=");
        espi_text_number(t, leaf->symbol[i].value);
    }
    espi_text_string(t, ")");
}

/* A piece of work: an op to print, or a text to put behind what it printed. */
typedef struct piece {
    size_t op;
    const char *literal; /* not NULL: print this */
    double number;       /* with literal "^": the exponent behind it */
    int around;          /* how strong the operator around the op binds */
} piece;

typedef struct printer {
    const esp_kernel *kernel;
    bool few_rules; /* shorten grammars */
    espi_text out;
    piece *stack;
    size_t pieces, capacity;
} printer;

static void later(printer *p, piece work)
{
    if (!espi_reserve(&p->stack, &p->capacity, p->pieces + 1, sizeof *p->stack)) p->out.failed = true;
    else p->stack[p->pieces++] = work;
}

static void print_op(printer *p, size_t index, int around)
{
    const espi_op *op = &p->kernel->op[index];
    const int strength = op->kind == ESPI_SUM                                 ? 1
                         : op->kind == ESPI_PRODUCT || op->kind == ESPI_SCALE ? 2
                         : op->kind == ESPI_POWER                             ? 3
                                                                              : 4;
    const bool brackets = strength < around;
    if (brackets) espi_text_string(&p->out, "(");
    if (brackets) later(p, (piece){.literal = ")"});
    switch (op->kind) {
    case ESPI_LEAF_OP: add_leaf(&p->out, &p->kernel->leaf[op->left], p->few_rules); break;
    case ESPI_NORM:
        espi_text_string(&p->out, "norm(");
        later(p, (piece){.literal = ")"});
        later(p, (piece){.op = op->left, .around = 0});
        break;
    case ESPI_SUM:
    case ESPI_PRODUCT: /* the right operand needs brackets where the left does not: a + (b + c) */
        later(p, (piece){.op = op->right, .around = strength + 1});
        later(p, (piece){.literal = op->kind == ESPI_SUM ? " + " : "*"});
        later(p, (piece){.op = op->left, .around = strength});
        break;
    case ESPI_SCALE:
        espi_text_number(&p->out, op->number);
        espi_text_string(&p->out, "*");
        later(p, (piece){.op = op->left, .around = 3});
        break;
    case ESPI_POWER:
        later(p, (piece){.literal = "^", .number = op->number});
        later(p, (piece){.op = op->left, .around = 3});
        break;
    }
}

static char *print(const esp_kernel *kernel, size_t op, bool few_rules)
{
    printer p = {.kernel = kernel, .few_rules = few_rules};
    later(&p, (piece){.op = op});
    while (p.pieces > 0 && !p.out.failed) {
        const piece next = p.stack[--p.pieces];
        if (next.literal == NULL) {
            print_op(&p, next.op, next.around);
            continue;
        }
        espi_text_string(&p.out, next.literal);
        if (*next.literal == '^') espi_text_number(&p.out, next.number);
    }
    espi_free(p.stack);
    return espi_text_take(&p.out);
}

esp_status espi_kernel_print(esp_kernel *kernel, esp_error *err)
{
    espi_free(kernel->text);
    kernel->text = print(kernel, kernel->ops - 1, false);
    return kernel->text != NULL ? ESP_OK : espi_no_memory(err);
}

char *espi_kernel_print_short(const esp_kernel *kernel) { return print(kernel, kernel->ops - 1, true); }

char *espi_kernel_print_op(const esp_kernel *kernel, size_t op) { return print(kernel, op, true); }
