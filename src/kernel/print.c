/* A program back to the expression it came from: the tree of operators walked in order, without recursion. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/kernel.h"

#include <string.h>

typedef struct text {
    char *bytes;
    size_t size, capacity;
    bool failed;
} text;

static void add(text *t, const char *bytes, size_t size)
{
    if (t->failed || !espi_reserve(&t->bytes, &t->capacity, t->size + size + 1, 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

static void add_text(text *t, const char *bytes) { add(t, bytes, strlen(bytes)); }

static void add_number(text *t, double number)
{
    char digits[32];
    add(t, digits, espi_number_print_short(number, digits));
}

/* A name, in quotes unless it reads back without them. */
static void add_name(text *t, const char *name)
{
    bool plain = *name != '\0';
    for (const char *c = name; *c != '\0'; c++)
        plain = plain && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                          *c == '_' || *c == '-' || (unsigned char)*c >= 0x80);
    if (plain) {
        add_text(t, name);
        return;
    }
    add_text(t, "\"");
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') add_text(t, "\\");
        add(t, c, 1);
    }
    add_text(t, "\"");
}

static void add_leaf(text *t, const espi_leaf *leaf)
{
    const espi_parameter *parameter = leaf->class->parameters;
    const char *comma = "";
    add_text(t, leaf->class->name);
    add_text(t, "(");
    if (leaf->column != NULL) {
        add_name(t, leaf->column);
        comma = ", ";
    }
    for (size_t i = 0; parameter[i].info.name != NULL; i++) {
        add_text(t, comma);
        add_text(t, parameter[i].info.name);
        add_text(t, "=");
        if (parameter[i].type == ESPI_CHOICE) add_text(t, parameter[i].choices[(size_t)leaf->value[i]]);
        else add_number(t, leaf->value[i]);
        comma = ", ";
    }
    for (size_t i = 0; i < leaf->symbols; i++) {
        add_text(t, ", ");
        add_text(t, parameter[leaf->symbol[i].parameter].info.name);
        add_text(t, ".");
        add_name(t, leaf->symbol[i].label);
        add_text(t, "=");
        add_number(t, leaf->symbol[i].value);
    }
    add_text(t, ")");
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
    text out;
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
    const int strength = op->kind == ESPI_SUM                              ? 1
                         : op->kind == ESPI_PRODUCT || op->kind == ESPI_SCALE ? 2
                         : op->kind == ESPI_POWER                          ? 3
                                                                           : 4;
    const bool brackets = strength < around;
    if (brackets) add_text(&p->out, "(");
    if (brackets) later(p, (piece){.literal = ")"});
    switch (op->kind) {
    case ESPI_LEAF_OP: add_leaf(&p->out, &p->kernel->leaf[op->left]); break;
    case ESPI_NORM:
        add_text(&p->out, "norm(");
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
        add_number(&p->out, op->number);
        add_text(&p->out, "*");
        later(p, (piece){.op = op->left, .around = 3});
        break;
    case ESPI_POWER:
        later(p, (piece){.literal = "^", .number = op->number});
        later(p, (piece){.op = op->left, .around = 3});
        break;
    }
}

esp_status espi_kernel_print(esp_kernel *kernel, esp_error *err)
{
    printer p = {.kernel = kernel};
    later(&p, (piece){.op = kernel->ops - 1});
    while (p.pieces > 0 && !p.out.failed) {
        const piece next = p.stack[--p.pieces];
        if (next.literal == NULL) {
            print_op(&p, next.op, next.around);
            continue;
        }
        add_text(&p.out, next.literal);
        if (*next.literal == '^') add_number(&p.out, next.number);
    }
    espi_free(p.stack);
    if (p.out.failed) {
        espi_free(p.out.bytes);
        return espi_no_memory(err);
    }
    espi_free(kernel->text);
    kernel->text = p.out.bytes;
    return ESP_OK;
}
