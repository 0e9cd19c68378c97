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
#include "kernel/kernel.h"
#include "kernel/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct value { /* what an operand came to: a weight, or the op that computes a kernel */
    bool number;
    double weight;
    size_t op;
    size_t at; /* where it started in the text */
} value;

typedef struct parser {
    const char *text, *at;
    bool files; /* may be read */
    esp_kernel *kernel;
    value *operand;
    size_t operands, operand_capacity;
    struct pending { /* an operator or bracket that waits: one of + * ^ ( n, n being norm's bracket */
        char kind;
        size_t at;
    } *pending;
    size_t pendings, pending_capacity;
    esp_error *err;
} parser;

typedef struct name { /* a bare or quoted name; `text` is owned */
    char *text;
    size_t size;
} name;

__attribute__((format(printf, 3, 4))) static esp_status wrong(parser *p, size_t at, const char *format, ...)
{
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    const esp_status status =
        espi_fail(p->err, ESP_ERR_PARAM, "kernel expression, column %zu: %s", at + 1, clause);
    if (p->err != NULL) p->err->column = at + 1;
    return status;
}

static size_t place(const parser *p) { return (size_t)(p->at - p->text); }

static void blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name(char c) { return is_name_start(c) || is_digit(c) || c == '-' || (unsigned char)c >= 0x80; }

/* What stands at the present place, for a message. */
static const char *shown(const parser *p, char text[96])
{
    if (*p->at == '\0') return "the end";
    size_t size = 1;
    if (is_name(*p->at))
        while (is_name(p->at[size])) size++;
    return espi_quote(p->at, size, text);
}

/* A name: letters, digits, '_', '-' and what is not ASCII; or anything in double quotes. Empty if there is none. */
static esp_status take_name(parser *p, name *out)
{
    const char *start = p->at;
    *out = (name){0};
    if (*p->at != '"') {
        while (is_name(*p->at)) p->at++;
        out->size = (size_t)(p->at - start);
        out->text = espi_copy_text(start, out->size);
        return out->text != NULL ? ESP_OK : espi_no_memory(p->err);
    }
    size_t room = 1;
    while (start[room] != '"' && start[room] != '\0') room += start[room] == '\\' && start[room + 1] != '\0' ? 2 : 1;
    out->text = espi_alloc(room, 1);
    if (out->text == NULL) return espi_no_memory(p->err);
    for (p->at++; *p->at != '"' && *p->at != '\0'; p->at++) {
        if (*p->at == '\\' && (p->at[1] == '"' || p->at[1] == '\\')) p->at++;
        out->text[out->size++] = *p->at;
    }
    out->text[out->size] = '\0';
    if (*p->at == '"') {
        p->at++;
        return ESP_OK;
    }
    espi_free(out->text);
    out->text = NULL;
    return wrong(p, (size_t)(start - p->text), "a quoted name does not end");
}

static esp_status take_number(parser *p, double *number)
{
    const char *start = p->at;
    while (is_name(*p->at) || *p->at == '.' || ((*p->at == '+' || *p->at == '-') && p->at > start &&
                                                (p->at[-1] == 'e' || p->at[-1] == 'E')))
        p->at++;
    const size_t size = (size_t)(p->at - start);
    char quoted[96];
    if (espi_number_parse(start, size, number)) return ESP_OK;
    return wrong(p, (size_t)(start - p->text), "%s is not a finite number", espi_quote(start, size, quoted));
}

/* --------------------------------------------------------------- program */

static esp_status add_op(parser *p, espi_op op, size_t at)
{
    esp_kernel *k = p->kernel;
    if (!espi_reserve(&k->op, &k->op_capacity, k->ops + 1, sizeof *k->op) ||
        !espi_reserve(&p->operand, &p->operand_capacity, p->operands + 1, sizeof *p->operand))
        return espi_no_memory(p->err);
    k->op[k->ops] = op;
    p->operand[p->operands++] = (value){.op = k->ops++, .at = at};
    return ESP_OK;
}

static esp_status add_weight(parser *p, double weight, size_t at)
{
    if (!espi_reserve(&p->operand, &p->operand_capacity, p->operands + 1, sizeof *p->operand))
        return espi_no_memory(p->err);
    p->operand[p->operands++] = (value){.number = true, .weight = weight, .at = at};
    return ESP_OK;
}

static esp_status need_kernel(parser *p, const value *v)
{
    char text[32];
    if (!v->number) return ESP_OK;
    espi_number_print_short(v->weight, text);
    return wrong(p, v->at, "the number %s stands alone; a number is a weight, as in %s*sst()", text, text);
}

static esp_status weigh(parser *p, double weight, value of, size_t at)
{
    if (!(weight > 0.0)) return wrong(p, at, "a weight must be a positive number");
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
        return wrong(p, a.at, "the product of these weights is too %s for a number", weight > 1.0 ? "large" : "small");
    }
    if (o.kind == '*' && a.number) return weigh(p, a.weight, b, a.at);
    if (o.kind == '*' && b.number) return weigh(p, b.weight, a, b.at);
    status = need_kernel(p, &a);
    if (status != ESP_OK) return status;
    if (o.kind == '^') {
        const bool whole = b.number && b.weight >= 1.0 && b.weight <= 1000.0 && floor(b.weight) == b.weight;
        if (!whole) return wrong(p, b.at, "an exponent must be a whole number from 1 to 1000");
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
        return espi_no_memory(p->err);
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

/* ---------------------------------------------------------------- leaves */

static esp_status unknown_kernel(parser *p, size_t at, const char *text)
{
    const char *names[32];
    char all[400] = "";
    size_t count = 0;
    for (; espi_kernels[count] != NULL; count++) {
        names[count] = espi_kernels[count]->name;
        if (count > 0) espi_append(all, sizeof all, ", ");
        espi_append(all, sizeof all, names[count]);
    }
    names[count++] = "norm";
    const char *near = esp_nearest(text, names, count);
    char quoted[96];
    espi_quote(text, strlen(text), quoted);
    if (near != NULL) return wrong(p, at, "unknown kernel %s; did you mean '%s'?", quoted, near);
    return wrong(p, at, "unknown kernel %s; there are %s and norm(...)", quoted, all);
}

static esp_status unknown_parameter(parser *p, size_t at, const espi_kernel_class *class, const char *text)
{
    const char *names[ESPI_MAX_PARAMETERS];
    char all[400] = "";
    size_t count = 0;
    for (; class->parameters[count].info.name != NULL; count++) {
        names[count] = class->parameters[count].info.name;
        if (count > 0) espi_append(all, sizeof all, ", ");
        espi_append(all, sizeof all, names[count]);
    }
    const char *near = esp_nearest(text, names, count);
    char quoted[96];
    espi_quote(text, strlen(text), quoted);
    if (near != NULL)
        return wrong(p, at, "%s has no parameter %s; did you mean '%s'?", class->name, quoted, near);
    if (count == 0) return wrong(p, at, "%s has no parameter %s; it has none", class->name, quoted);
    return wrong(p, at, "%s has no parameter %s; it has %s", class->name, quoted, all);
}

static esp_status take_value(parser *p, const espi_kernel_class *class, const espi_parameter *parameter, double *out)
{
    const size_t at = place(p);
    char quoted[96];
    if (parameter->type == ESPI_CHOICE) {
        name choice;
        const esp_status status = take_name(p, &choice);
        if (status != ESP_OK) return status;
        size_t i = 0;
        while (parameter->choices[i] != NULL && strcmp(parameter->choices[i], choice.text) != 0) i++;
        espi_quote(choice.text, choice.size, quoted);
        espi_free(choice.text);
        *out = (double)i;
        if (parameter->choices[i] != NULL) return ESP_OK;
        return wrong(p, at, "%s of %s is %s; allowed is %s", parameter->info.name, class->name, quoted,
                     parameter->info.range);
    }
    const bool negative = *p->at == '-';
    if (negative) p->at++;
    const esp_status status = take_number(p, out);
    if (status != ESP_OK) return status;
    if (negative) *out = -*out;
    const bool inside = *out <= parameter->high && (parameter->low_open ? *out > parameter->low : *out >= parameter->low);
    if (inside && (parameter->type != ESPI_INTEGER || floor(*out) == *out)) return ESP_OK;
    return wrong(p, at, "%s of %s is %s; allowed is %s", parameter->info.name, class->name,
                 espi_quote(p->text + at, place(p) - at, quoted), parameter->info.range);
}

/* Grammar rules: in braces, or a file's name, in quotes or without blanks, brackets and commas. */
static esp_status take_rules(parser *p, espi_leaf *leaf)
{
    const size_t at = place(p);
    espi_rules_free(leaf->rules);
    leaf->rules = NULL;
    if (*p->at == '{') {
        size_t end;
        const esp_status status = espi_rules_parse(p->text, at + 1, &end, &leaf->rules, p->err);
        p->at = p->text + end;
        return status;
    }
    name file = {0};
    const size_t size = strcspn(p->at, " \t\r\n,(){}\"");
    esp_status status = ESP_OK;
    if (*p->at == '"') {
        status = take_name(p, &file);
    } else {
        file.text = espi_copy_text(p->at, file.size = size);
        if (file.text == NULL) status = espi_no_memory(p->err);
        p->at += size;
    }
    if (status == ESP_OK && file.size == 0)
        status = wrong(p, at, "a file of grammar rules is expected, or rules in braces, as in {NP -> DT [JJ] NN; = NN NNS}");
    if (status == ESP_OK && !p->files) status = wrong(p, at, "grammar rules must stand in braces here, not in a file");
    if (status == ESP_OK) status = espi_rules_read(file.text, &leaf->rules, p->err);
    espi_free(file.text);
    return status;
}

/* name = value, or name.LABEL = value; the name is read already. */
static esp_status take_parameter(parser *p, espi_leaf *leaf, const name *key, size_t at, bool *given)
{
    const espi_parameter *all = leaf->class->parameters;
    size_t i = 0;
    while (all[i].info.name != NULL && strcmp(all[i].info.name, key->text) != 0) i++;
    if (all[i].info.name == NULL) return unknown_parameter(p, at, leaf->class, key->text);
    name label = {0};
    esp_status status = ESP_OK;
    if (*p->at == '.') {
        if (!all[i].per_symbol)
            return wrong(p, place(p), "%s of %s cannot be given per symbol", key->text, leaf->class->name);
        p->at++;
        status = take_name(p, &label);
        if (status == ESP_OK && label.size == 0)
            status = wrong(p, place(p), "a symbol must follow '%s.'; quote odd ones: %s.\"PRP$\"", key->text, key->text);
    }
    blanks(p);
    if (status == ESP_OK && *p->at != '=') status = wrong(p, place(p), "'=' must follow the parameter %s", key->text);
    if (status == ESP_OK) {
        p->at++;
        blanks(p);
    }
    double number = 0.0;
    if (status == ESP_OK && all[i].type == ESPI_RULES) status = take_rules(p, leaf);
    else if (status == ESP_OK) status = take_value(p, leaf->class, &all[i], &number);
    bool twice = status == ESP_OK && label.text == NULL && given[i];
    for (size_t k = 0; status == ESP_OK && label.text != NULL && k < leaf->symbols; k++)
        twice = twice || (leaf->symbol[k].parameter == i && strcmp(leaf->symbol[k].label, label.text) == 0);
    if (twice) status = wrong(p, at, "%s is given twice", key->text);
    if (status == ESP_OK && label.text != NULL) {
        if (!espi_reserve(&leaf->symbol, &leaf->symbol_capacity, leaf->symbols + 1, sizeof *leaf->symbol))
            status = espi_no_memory(p->err);
        else
            leaf->symbol[leaf->symbols++] = (espi_symbol_value){.parameter = i, .label = label.text, .value = number};
        if (status == ESP_OK) return ESP_OK;
    } else if (status == ESP_OK) {
        leaf->value[i] = number;
        given[i] = true;
    }
    espi_free(label.text);
    return status;
}

/* One argument: a parameter, or, as the first, a column. */
static esp_status take_argument(parser *p, espi_leaf *leaf, bool first, bool *given)
{
    char text[96];
    const size_t at = place(p);
    const bool quoted = *p->at == '"';
    name key;
    esp_status status = take_name(p, &key);
    if (status != ESP_OK) return status;
    blanks(p);
    const bool parameter = !quoted && (*p->at == '=' || *p->at == '.');
    if (key.size == 0) {
        status = wrong(p, at, "a column or a parameter is expected, not %s", shown(p, text));
    } else if (parameter) {
        status = take_parameter(p, leaf, &key, at, given);
    } else if (!first) {
        status = wrong(p, at, "only the first argument may be a column; write name=value for a parameter");
    } else {
        leaf->column = key.text;
        return ESP_OK;
    }
    espi_free(key.text);
    return status;
}

static esp_status take_arguments(parser *p, espi_leaf *leaf)
{
    bool given[ESPI_MAX_PARAMETERS] = {false};
    char text[96];
    const size_t open = place(p);
    p->at++;
    blanks(p);
    if (*p->at == ')') {
        p->at++;
        return ESP_OK;
    }
    for (bool first = true;; first = false) {
        blanks(p);
        const esp_status status = take_argument(p, leaf, first, given);
        if (status != ESP_OK) return status;
        blanks(p);
        if (*p->at == ')') break;
        if (*p->at == '\0') return wrong(p, open, "this bracket is never closed");
        if (*p->at != ',') return wrong(p, place(p), "',' or ')' is expected, not %s", shown(p, text));
        p->at++;
    }
    p->at++;
    return ESP_OK;
}

static int by_symbol(const espi_symbol_value *a, const espi_symbol_value *b)
{
    return a->parameter != b->parameter ? (a->parameter > b->parameter ? 1 : -1) : strcmp(a->label, b->label);
}

/* Kernel by name, with default values; its arguments follow. */
static esp_status take_kernel(parser *p, const char *text, size_t at)
{
    size_t i = 0;
    while (espi_kernels[i] != NULL && strcmp(espi_kernels[i]->name, text) != 0) i++;
    if (espi_kernels[i] == NULL) return unknown_kernel(p, at, text);
    esp_kernel *k = p->kernel;
    if (!espi_reserve(&k->leaf, &k->leaf_capacity, k->leaves + 1, sizeof *k->leaf)) return espi_no_memory(p->err);
    espi_leaf *leaf = &k->leaf[k->leaves++];
    *leaf = (espi_leaf){.class = espi_kernels[i]};
    for (size_t n = 0; leaf->class->parameters[n].info.name != NULL; n++) {
        const espi_parameter *parameter = &leaf->class->parameters[n];
        if (parameter->type != ESPI_CHOICE && parameter->type != ESPI_RULES) /* that of a choice is its first */
            espi_number_parse(parameter->info.fallback, strlen(parameter->info.fallback), &leaf->value[n]);
    }
    blanks(p);
    esp_status status = *p->at == '(' ? take_arguments(p, leaf) : ESP_OK;
    /* In one order, so that equal kernels print alike. */
    for (size_t a = 1; status == ESP_OK && a < leaf->symbols; a++)
        for (size_t b = a; b > 0 && by_symbol(&leaf->symbol[b - 1], &leaf->symbol[b]) > 0; b--) {
            const espi_symbol_value t = leaf->symbol[b];
            leaf->symbol[b] = leaf->symbol[b - 1];
            leaf->symbol[b - 1] = t;
        }
    return status != ESP_OK ? status : add_op(p, (espi_op){.kind = ESPI_LEAF_OP, .left = k->leaves - 1}, at);
}

/* ------------------------------------------------------------ expression */

/* An operand, or an opening bracket (then *opened is set and an operand is still expected). */
static esp_status take_operand(parser *p, bool *opened)
{
    char text[96];
    const size_t at = place(p);
    *opened = false;
    if (is_digit(*p->at) || *p->at == '.') {
        double number;
        const esp_status status = take_number(p, &number);
        return status != ESP_OK ? status : add_weight(p, number, at);
    }
    if (*p->at == '(') {
        p->at++;
        *opened = true;
        return push(p, '(', at);
    }
    if (!is_name_start(*p->at)) {
        if (*p->at == '-' && p->pendings > 0 && p->pending[p->pendings - 1].kind == '^')
            return wrong(p, at, "an exponent must be a whole number from 1 to 1000");
        if (*p->at == '-') return wrong(p, at, "a weight must be a positive number");
        return wrong(p, at, "a kernel is expected, not %s", shown(p, text));
    }
    name word;
    esp_status status = take_name(p, &word);
    if (status != ESP_OK) return status;
    if (strcmp(word.text, "norm") == 0) {
        blanks(p);
        if (*p->at == '(') {
            p->at++;
            *opened = true;
            status = push(p, 'n', at);
        } else {
            status = wrong(p, place(p), "norm needs a kernel in brackets, as in norm(sst())");
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
    for (blanks(p); *p->at == ')' && status == ESP_OK; blanks(p)) {
        status = apply_stronger(p, 0);
        if (status != ESP_OK) return status;
        if (p->pendings == 0) return wrong(p, place(p), "a bracket closes that was never opened");
        const struct pending open = p->pending[--p->pendings];
        if (open.kind == 'n') status = apply(p, open);
        p->at++;
    }
    if (status != ESP_OK) return status;
    *ended = *p->at == '\0';
    if (*ended) return ESP_OK;
    const char kind = *p->at;
    if (strength(kind) == 0) return wrong(p, place(p), "'+', '*' or '^' is expected, not %s", shown(p, text));
    status = apply_stronger(p, strength(kind) - 1);
    if (status != ESP_OK) return status;
    const size_t at = place(p);
    p->at++;
    return push(p, kind, at);
}

static esp_status parse(parser *p)
{
    bool ended = false, opened = false;
    while (!ended) {
        blanks(p);
        esp_status status = take_operand(p, &opened);
        if (status == ESP_OK && !opened) status = take_operator(p, &ended);
        if (status != ESP_OK) return status;
    }
    const esp_status status = apply_stronger(p, 0);
    if (status != ESP_OK) return status;
    if (p->pendings > 0) return wrong(p, p->pending[p->pendings - 1].at, "this bracket is never closed");
    return need_kernel(p, &p->operand[0]);
}

esp_status esp_kernel_parse(const char *expression, esp_kernel **out, esp_error *err)
{
    return espi_kernel_parse(expression, true, out, err);
}

esp_status espi_kernel_parse(const char *expression, bool files, esp_kernel **out, esp_error *err)
{
    *out = NULL;
    parser p = {.text = expression, .at = expression, .files = files, .err = err};
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
