/* Kernel expressions as text -> program, by operator precedence with an explicit stack.
 *
 *     expr    = operand (op operand)*          op: "+" < "*" < "^"
 *     operand = number | kernel | "norm" "(" expr ")" | "(" expr ")"
 *     kernel  = name [ "(" [column] ("," name ["." label] "=" value)* ")" ]
 *     value   = number | choice | file | "{" grammar rules "}"
 *
 * A number is a weight: it must meet a kernel by "*". The exponent of "^" is a whole number. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/expression/parse.h"

#include <math.h>
#include <string.h>

typedef struct value { /* what an operand came to: a weight, or the op that computes a kernel */
    bool number;
    double weight;
    size_t op;
    size_t at; /* where it started in the text */
} value;

typedef struct parser {
    espi_scan in;
    esp_kernel *kernel;
    value *operand;
    size_t operands, operand_capacity;
    struct pending { /* an operator or bracket that waits: one of + * ^ ( n, n being norm's bracket */
        char kind;
        size_t at;
    } * pending;
    size_t pendings, pending_capacity;
} parser;

/* --------------------------------------------------------------- program */

static esp_status add_op(parser *p, espi_op op, size_t at)
{
    esp_kernel *k = p->kernel;
    if (!espi_reserve(&k->op, &k->op_capacity, k->ops + 1, sizeof *k->op) ||
        !espi_reserve(&p->operand, &p->operand_capacity, p->operands + 1, sizeof *p->operand))
        return espi_no_memory(p->in.err);
    k->op[k->ops] = op;
    p->operand[p->operands++] = (value){.op = k->ops++, .at = at};
    return ESP_OK;
}

static esp_status add_weight(parser *p, double weight, size_t at)
{
    if (!espi_reserve(&p->operand, &p->operand_capacity, p->operands + 1, sizeof *p->operand))
        return espi_no_memory(p->in.err);
    p->operand[p->operands++] = (value){.number = true, .weight = weight, .at = at};
    return ESP_OK;
}

static esp_status need_kernel(parser *p, const value *v)
{
    char text[32];
    if (!v->number) return ESP_OK;
    espi_number_print_short(v->weight, text);
    return espi_scan_wrong(&p->in, v->at, "the number %s stands alone; a number is a weight, as in %s*sst()", text,
                           text);
}

static esp_status weigh(parser *p, double weight, value of, size_t at)
{
    if (!(weight > 0.0)) return espi_scan_wrong(&p->in, at, "a weight must be a positive number");
    return add_op(p, (espi_op){.kind = ESPI_SCALE, .number = weight, .left = of.op}, of.at);
}

/* Applies the operator to the newest operands. */
static esp_status apply(parser *p, struct pending o)
{
    if (o.kind == 'n') {
        value *v = &p->operand[p->operands - 1];
        const esp_status status = need_kernel(p, v);
        if (status != ESP_OK) return status;
        const size_t op = v->op;
        p->operands--;
        return add_op(p, (espi_op){.kind = ESPI_NORM, .left = op}, o.at);
    }
    const value a = p->operand[p->operands - 2], b = p->operand[p->operands - 1];
    esp_status status = ESP_OK;
    p->operands -= 2;
    if (o.kind == '*' && a.number && b.number) {
        const double weight = a.weight * b.weight;
        if (isfinite(weight) && (weight > 0.0 || a.weight == 0.0 || b.weight == 0.0))
            return add_weight(p, weight, a.at);
        return espi_scan_wrong(&p->in, a.at, "the product of these weights is too %s for a number",
                               weight > 1.0 ? "large" : "small");
    }
    if (o.kind == '*' && a.number) return weigh(p, a.weight, b, a.at);
    if (o.kind == '*' && b.number) return weigh(p, b.weight, a, b.at);
    status = need_kernel(p, &a);
    if (status != ESP_OK) return status;
    if (o.kind == '^') {
        const bool whole = b.number && b.weight >= 1.0 && b.weight <= 1000.0 && floor(b.weight) == b.weight;
        if (!whole) return espi_scan_wrong(&p->in, b.at, "an exponent must be a whole number from 1 to 1000");
        return add_op(p, (espi_op){.kind = ESPI_POWER, .number = b.weight, .left = a.op}, a.at);
    }
    status = need_kernel(p, &b);
    if (status != ESP_OK) return status;
    return add_op(p, (espi_op){.kind = o.kind == '+' ? ESPI_SUM : ESPI_PRODUCT, .left = a.op, .right = b.op}, a.at);
}

static int strength(char kind) { return kind == '^' ? 3 : kind == '*' ? 2 : kind == '+' ? 1 : 0; }

static esp_status push(parser *p, char kind, size_t at)
{
    if (!espi_reserve(&p->pending, &p->pending_capacity, p->pendings + 1, sizeof *p->pending))
        return espi_no_memory(p->in.err);
    p->pending[p->pendings++] = (struct pending){.kind = kind, .at = at};
    return ESP_OK;
}

static esp_status apply_stronger(parser *p, int than)
{
    esp_status status = ESP_OK;
    while (status == ESP_OK && p->pendings > 0 && strength(p->pending[p->pendings - 1].kind) > than)
        status = apply(p, p->pending[--p->pendings]);
    return status;
}

static esp_status take_kernel(parser *p, const char *text, size_t at)
{
    esp_kernel *k = p->kernel;
    if (!espi_reserve(&k->leaf, &k->leaf_capacity, k->leaves + 1, sizeof *k->leaf)) return espi_no_memory(p->in.err);
    espi_leaf *leaf = &k->leaf[k->leaves++];
    *leaf = (espi_leaf){0};
    const esp_status status = espi_leaf_read(&p->in, text, at, leaf);
    return status != ESP_OK ? status : add_op(p, (espi_op){.kind = ESPI_LEAF_OP, .left = k->leaves - 1}, at);
}

/* ------------------------------------------------------------ expression */

/* An operand, or an opening bracket (then *opened is set and an operand is still expected). */
static esp_status take_operand(parser *p, bool *opened)
{
    char text[96];
    const size_t at = espi_scan_place(&p->in);
    *opened = false;
    if (espi_is_digit(*p->in.at) || *p->in.at == '.') {
        double number;
        const esp_status status = espi_scan_number(&p->in, &number);
        return status != ESP_OK ? status : add_weight(p, number, at);
    }
    if (*p->in.at == '(') {
        p->in.at++;
        *opened = true;
        return push(p, '(', at);
    }
    if (!espi_is_name_start(*p->in.at)) {
        if (*p->in.at == '-' && p->pendings > 0 && p->pending[p->pendings - 1].kind == '^')
            return espi_scan_wrong(&p->in, at, "an exponent must be a whole number from 1 to 1000");
        if (*p->in.at == '-') return espi_scan_wrong(&p->in, at, "a weight must be a positive number");
        return espi_scan_wrong(&p->in, at, "a kernel is expected, not %s", espi_scan_shown(&p->in, text));
    }
    espi_name word;
    esp_status status = espi_scan_name(&p->in, &word);
    if (status != ESP_OK) return status;
    if (strcmp(word.text, "norm") == 0) {
        espi_scan_blanks(&p->in);
        if (*p->in.at == '(') {
            p->in.at++;
            *opened = true;
            status = push(p, 'n', at);
        } else {
            status =
                espi_scan_wrong(&p->in, espi_scan_place(&p->in), "norm needs a kernel in brackets, as in norm(sst())");
        }
    } else {
        status = take_kernel(p, word.text, at);
    }
    espi_free(word.text);
    return status;
}

/* Closing brackets and then an operator, or the end (*ended). */
static esp_status take_operator(parser *p, bool *ended)
{
    char text[96];
    esp_status status = ESP_OK;
    for (espi_scan_blanks(&p->in); *p->in.at == ')' && status == ESP_OK; espi_scan_blanks(&p->in)) {
        status = apply_stronger(p, 0);
        if (status != ESP_OK) return status;
        if (p->pendings == 0)
            return espi_scan_wrong(&p->in, espi_scan_place(&p->in), "a bracket closes that was never opened");
        const struct pending open = p->pending[--p->pendings];
        if (open.kind == 'n') status = apply(p, open);
        p->in.at++;
    }
    if (status != ESP_OK) return status;
    *ended = *p->in.at == '\0';
    if (*ended) return ESP_OK;
    const char kind = *p->in.at;
    if (strength(kind) == 0)
        return espi_scan_wrong(&p->in, espi_scan_place(&p->in), "'+', '*' or '^' is expected, not %s",
                               espi_scan_shown(&p->in, text));
    status = apply_stronger(p, strength(kind) - 1);
    if (status != ESP_OK) return status;
    const size_t at = espi_scan_place(&p->in);
    p->in.at++;
    return push(p, kind, at);
}

static esp_status parse(parser *p)
{
    bool ended = false, opened = false;
    while (!ended) {
        espi_scan_blanks(&p->in);
        esp_status status = take_operand(p, &opened);
        if (status == ESP_OK && !opened) status = take_operator(p, &ended);
        if (status != ESP_OK) return status;
    }
    const esp_status status = apply_stronger(p, 0);
    if (status != ESP_OK) return status;
    if (p->pendings > 0) return espi_scan_wrong(&p->in, p->pending[p->pendings - 1].at, "this bracket is never closed");
    return need_kernel(p, &p->operand[0]);
}

esp_status espi_expression_parse(const char *expression, const espi_kernel_class *const *classes, bool files,
                                 esp_kernel **out, esp_error *err)
{
    *out = NULL;
    parser p = {.in = {.text = expression, .at = expression, .classes = classes, .files = files, .err = err}};
    p.kernel = espi_alloc_zero(1, sizeof *p.kernel);
    if (p.kernel == NULL) return espi_no_memory(err);
    esp_status status = parse(&p);
    if (status == ESP_OK) status = espi_kernel_print(p.kernel, err);
    espi_free(p.operand);
    espi_free(p.pending);
    if (status == ESP_OK) *out = p.kernel;
    else esp_kernel_free(p.kernel);
    return status;
}
