#include "kernel/grammar_tree/rules.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    espi_rules *rules;
    const char *file;     /* NULL: a kernel expression */
    const char *at, *end; /* what is left of the line at hand */
    const char *start;    /* of the line, or of the expression */
    size_t line;          /* 0 in an expression */
    char *label;          /* the one at hand, without backslashes */
    size_t size, capacity;
    espi_rules_place place; /* where it starts */
    bool marked;            /* it stood in brackets */
    uint32_t *key;          /* the production at hand: left side, then children */
    size_t keys, key_capacity;
    esp_error *err;
} parser;

__attribute__((format(printf, 3, 4))) static esp_status wrong(parser *p, espi_rules_place place, const char *format,
                                                              ...)
{
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    if (p->file != NULL) return espi_fail_at(p->err, p->file, place.line, place.column, "%s", clause);
    const esp_status status =
        espi_fail(p->err, ESP_ERR_PARAM, "kernel expression, column %zu: %s", place.column, clause);
    if (p->err != NULL) p->err->column = place.column;
    return status;
}

/* An earlier place, for a sentence. */
static const char *where(const espi_rules_place *place, char text[48])
{
    snprintf(text, 48, "%s %zu", place->line > 0 ? "line" : "column", place->line > 0 ? place->line : place->column);
    return text;
}

static espi_rules_place here(const parser *p) { return (espi_rules_place){p->line, (size_t)(p->at - p->start) + 1}; }

/* ------------------------------------------------------------------ labels */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\n'; }
static bool is_bracket(char c) { return c != '\0' && strchr("()[]{}", c) != NULL; }
/* What needs a backslash to be part of a label. */
static bool is_special(char c, bool first)
{
    return is_blank(c) || is_bracket(c) || c == ';' || c == '\\' || c == '#' || (first && (c == '=' || c == '-'));
}

bool espi_rules_can_hold(const char *label, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)label[i] < 0x20) return false;
    return true;
}

void espi_rules_add_label(espi_text *text, const char *label, size_t size)
{
    const bool sign =
        (size == 1 && *label == '=') || (size == 2 && memcmp(label, "->", 2) == 0) || (size > 0 && *label == '#');
    if (sign) espi_text_string(text, "\\");
    for (size_t i = 0; i < size; i++) {
        /* A backslash that needs none stands for itself in trees and here; doubled it is sure to. */
        if (is_blank(label[i]) || is_bracket(label[i]) || label[i] == ';' || label[i] == '\\')
            espi_text_string(text, "\\");
        espi_text_add(text, label + i, 1);
    }
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && is_blank(*p->at)) p->at++;
}

/* Whether the line ends here. */
static bool at_end(parser *p)
{
    skip_blanks(p);
    return p->at == p->end || *p->at == '#';
}

/* Whether the sign stands here as a word of its own. */
static bool at_sign(parser *p, const char *sign)
{
    const size_t size = strlen(sign);
    skip_blanks(p);
    return (size_t)(p->end - p->at) >= size && memcmp(p->at, sign, size) == 0 &&
           (p->at + size == p->end || is_blank(p->at[size]));
}

/* The bytes of a label up to a blank or bracket. */
static esp_status take_bytes(parser *p)
{
    const char *first = p->at;
    p->place = here(p);
    p->size = 0;
    if (!espi_reserve(&p->label, &p->capacity, (size_t)(p->end - p->at) + 1, 1)) return espi_no_memory(p->err);
    for (; p->at < p->end && !is_blank(*p->at) && !is_bracket(*p->at); p->at++) {
        if (*p->at == '\0') return wrong(p, here(p), "a NUL byte; text must not contain any");
        if (*p->at == '\\' && p->at + 1 < p->end && is_special(p->at[1], p->at == first)) p->at++;
        p->label[p->size++] = *p->at;
    }
    return ESP_OK;
}

static esp_status wrong_bracket(parser *p)
{
    const char c = *p->at;
    if (c == ']') return wrong(p, here(p), "this bracket was never opened");
    if (c == '[' && p->at > p->start && !is_blank(p->at[-1]))
        return wrong(p, here(p),
                     "'[' inside a label; a blank goes before an optional child, and \\[ is part of a label");
    return wrong(p, here(p), "unknown bracket '%c'; optional children stand in [ ], and \\%c is part of a label", c, c);
}

/* A label, or one in brackets. */
static esp_status take_label(parser *p)
{
    skip_blanks(p);
    const espi_rules_place open = here(p);
    p->marked = p->at < p->end && *p->at == '[';
    if (p->marked) {
        p->at++;
        skip_blanks(p);
    }
    if (p->at < p->end && *p->at == '[') return wrong(p, here(p), "brackets cannot stand inside brackets");
    if (p->marked && p->at < p->end && *p->at == ']') return wrong(p, open, "these brackets are empty");
    if (p->at < p->end && is_bracket(*p->at)) return wrong_bracket(p);
    const esp_status status = take_bytes(p);
    if (status != ESP_OK) return status;
    if (!p->marked) return p->at == p->end || is_blank(*p->at) ? ESP_OK : wrong_bracket(p);
    skip_blanks(p);
    if (p->at == p->end) return wrong(p, open, "the bracket that opens here is not closed");
    if (*p->at != ']' && is_bracket(*p->at)) return wrong_bracket(p);
    if (*p->at != ']') return wrong(p, here(p), "a bracket holds one child; give each optional child its own");
    p->at++;
    if (p->at == p->end || is_blank(*p->at)) return ESP_OK;
    return wrong(p, here(p), "a blank must follow ']'");
}

/* The number of the label at hand. */
static esp_status number_label(parser *p, uint32_t *number)
{
    espi_rules *r = p->rules;
    const size_t known = r->labels.count;
    if (!espi_reserve(&r->class, &r->class_capacity, known + 1, sizeof *r->class) ||
        !espi_reserve(&r->class_place, &r->place_capacity, known + 1, sizeof *r->class_place))
        return espi_no_memory(p->err);
    *number = espi_symbols_add(&r->labels, p->label, p->size);
    if (*number == ESPI_NO_SYMBOL) return espi_no_memory(p->err);
    if (*number == known) r->class[known] = ESPI_NO_SYMBOL;
    return ESP_OK;
}

/* ------------------------------------------------------------------- lines */

static esp_status take_class(parser *p)
{
    espi_rules *r = p->rules;
    char quoted[96], text[48];
    if (at_end(p)) return wrong(p, here(p), "a class needs labels: = NN NNS");
    if (!espi_reserve(&r->class_size, &r->size_capacity, r->classes + 1, sizeof *r->class_size))
        return espi_no_memory(p->err);
    const uint32_t class = (uint32_t)r->classes++;
    r->class_size[class] = 0;
    while (!at_end(p)) {
        uint32_t label = 0;
        if (at_sign(p, "=") || at_sign(p, "->"))
            return wrong(p, here(p), "a class is '=' and labels; write \\%c for a label that starts so", *p->at);
        esp_status status = take_label(p);
        if (status == ESP_OK && p->marked) status = wrong(p, p->place, "a class has no optional labels");
        if (status == ESP_OK) status = number_label(p, &label);
        if (status != ESP_OK) return status;
        espi_quote(p->label, p->size, quoted);
        if (r->class[label] == class)
            return wrong(p, p->place, "the class names %s twice, first at column %zu of %s", quoted,
                         r->class_place[label].column, p->line > 0 ? where(&p->place, text) : "the expression");
        if (r->class[label] != ESPI_NO_SYMBOL)
            return wrong(p, p->place, "%s is in two classes, the first at %s", quoted,
                         where(&r->class_place[label], text));
        if (!espi_reserve(&r->member, &r->member_capacity, r->members + 1, sizeof *r->member))
            return espi_no_memory(p->err);
        r->member[r->members++] = label;
        r->class[label] = class;
        r->class_place[label] = p->place;
        r->class_size[class]++;
    }
    return ESP_OK;
}

static esp_status add_key(parser *p, uint32_t label)
{
    if (!espi_reserve(&p->key, &p->key_capacity, p->keys + 1, sizeof *p->key)) return espi_no_memory(p->err);
    p->key[p->keys++] = label;
    return ESP_OK;
}

/* A child of the production at hand. */
static esp_status take_child(parser *p, espi_rules_line *line)
{
    espi_rules *r = p->rules;
    uint32_t label = 0;
    if (at_sign(p, "->")) return wrong(p, here(p), "a second '->' on the line; \\-> is a label");
    esp_status status = take_label(p);
    if (status == ESP_OK) status = number_label(p, &label);
    if (status == ESP_OK) status = add_key(p, label);
    if (status == ESP_OK && !espi_reserve(&r->item, &r->item_capacity, r->items + 1, sizeof *r->item))
        status = espi_no_memory(p->err);
    if (status != ESP_OK) return status;
    r->item[r->items++] = label * 2 + p->marked;
    line->count++;
    line->optional += p->marked;
    return ESP_OK;
}

static esp_status take_production(parser *p)
{
    espi_rules *r = p->rules;
    espi_rules_line line = {.first = r->items, .place = here(p)};
    char quoted[96], text[48];
    if (at_sign(p, "->")) return wrong(p, here(p), "a label must come before '->'");
    esp_status status = take_label(p);
    if (status == ESP_OK && p->marked)
        status = wrong(p, line.place, "the left side of a production cannot be optional");
    if (status == ESP_OK) status = number_label(p, &line.left);
    p->keys = 0;
    if (status == ESP_OK) status = add_key(p, line.left);
    if (status != ESP_OK) return status;
    espi_quote(p->label, p->size, quoted);
    if (!at_sign(p, "->"))
        return wrong(p, here(p), "'->' must follow %s, with blanks around it, as in NP -> DT [JJ] NN", quoted);
    p->at += 2;
    if (at_end(p))
        return wrong(p, here(p), "the right side is empty%s", p->at < p->end ? "; write \\# for the label #" : "");
    while (status == ESP_OK && !at_end(p)) status = take_child(p, &line);
    if (status != ESP_OK) return status;
    const uint32_t number = espi_symbols_add(&r->keys, (const char *)p->key, p->keys * sizeof *p->key);
    if (number == ESPI_NO_SYMBOL || !espi_reserve(&r->line, &r->line_capacity, r->lines + 1, sizeof *r->line))
        return espi_no_memory(p->err);
    if (number < r->lines)
        return wrong(p, line.place, "this production of %s is given twice, first at %s", quoted,
                     where(&r->line[number].place, text));
    r->line[r->lines++] = line;
    return ESP_OK;
}

static esp_status take_line(parser *p)
{
    if (at_end(p)) return ESP_OK;
    if (!at_sign(p, "=")) return take_production(p);
    p->at++;
    return take_class(p);
}

/* ---------------------------------------------------------- canonical text */

static void add_line(const espi_rules *r, const espi_rules_line *line, espi_text *text)
{
    const espi_symbol *s = &r->labels.symbol[line->left];
    espi_rules_add_label(text, s->text, s->size);
    espi_text_string(text, " ->");
    for (size_t i = line->first; i < line->first + line->count; i++) {
        const bool optional = (r->item[i] & 1) != 0;
        s = &r->labels.symbol[r->item[i] >> 1];
        espi_text_string(text, optional ? " [" : " ");
        espi_rules_add_label(text, s->text, s->size);
        if (optional) espi_text_string(text, "]");
    }
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A class with its labels in order; `label` has room for them. */
static bool add_class(const espi_rules *r, const uint32_t *member, size_t count, char **label, espi_text *text)
{
    for (size_t i = 0; i < count; i++) {
        const espi_symbol *s = &r->labels.symbol[member[i]];
        espi_text one = {0};
        espi_rules_add_label(&one, s->text, s->size);
        label[i] = espi_text_take(&one);
        if (label[i] == NULL) text->failed = true;
    }
    if (!text->failed) qsort(label, count, sizeof *label, by_text);
    espi_text_string(text, "=");
    for (size_t i = 0; i < count; i++) {
        espi_text_string(text, " ");
        if (label[i] != NULL) espi_text_string(text, label[i]);
        espi_free(label[i]);
    }
    return !text->failed;
}

/* The lines that have an effect, as texts; *count of them. */
static bool print_lines(const espi_rules *r, char **line, size_t *count)
{
    char **label = espi_alloc(r->members, sizeof *label);
    size_t members = 0;
    bool ok = label != NULL;
    for (size_t i = 0; ok && i < r->lines + r->classes; i++) {
        espi_text text = {0};
        const size_t size = i < r->lines ? 0 : r->class_size[i - r->lines];
        members += size;
        if (i < r->lines ? r->line[i].optional == 0 : size < 2) continue;
        if (i < r->lines) add_line(r, &r->line[i], &text);
        else ok = add_class(r, r->member + members - size, size, label, &text);
        line[*count] = espi_text_take(&text);
        ok = ok && line[(*count)++] != NULL;
    }
    espi_free(label);
    return ok;
}

static bool print_rules(espi_rules *r)
{
    char **line = espi_alloc_zero(r->lines + r->classes, sizeof *line);
    size_t count = 0;
    espi_text text = {0};
    const bool ok = line != NULL && print_lines(r, line, &count);
    if (ok) qsort(line, count, sizeof *line, by_text);
    for (size_t i = 0; ok && i < count; i++) {
        if (i > 0) espi_text_string(&text, "; ");
        espi_text_string(&text, line[i]);
    }
    for (size_t i = 0; line != NULL && i < count; i++) espi_free(line[i]);
    espi_free(line);
    if (ok) r->text = espi_text_take(&text);
    else espi_text_free(&text);
    return r->text != NULL;
}

/* ----------------------------------------------------------------- reading */

espi_rules *espi_rules_share(espi_rules *r)
{
    if (r != NULL) atomic_fetch_add_explicit(&r->owners, 1, memory_order_relaxed);
    return r;
}

void espi_rules_free(espi_rules *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->owners, 1, memory_order_acq_rel) > 1) return;
    espi_symbols_free(&r->labels);
    espi_symbols_free(&r->keys);
    espi_free(r->line);
    espi_free(r->item);
    espi_free(r->class);
    espi_free(r->class_place);
    espi_free(r->class_size);
    espi_free(r->member);
    espi_free(r->text);
    espi_free(r);
}

/* Rules of one owner; NULL if memory is out. */
static espi_rules *new_rules(void)
{
    espi_rules *r = espi_alloc_zero(1, sizeof *r);
    if (r != NULL) atomic_init(&r->owners, 1);
    return r;
}

static esp_status finish(parser *p, esp_status status, espi_rules **out)
{
    espi_free(p->label);
    espi_free(p->key);
    if (status == ESP_OK && !print_rules(p->rules)) status = espi_no_memory(p->err);
    if (status == ESP_OK) *out = p->rules;
    else espi_rules_free(p->rules);
    return status;
}

esp_status espi_rules_read(const char *path, espi_rules **out, esp_error *err)
{
    *out = NULL;
    espi_stream stream;
    esp_status status = espi_stream_open(&stream, path, NULL, err);
    if (status != ESP_OK) return status;
    parser p = {.file = stream.name, .rules = new_rules(), .err = err};
    if (p.rules == NULL) status = espi_no_memory(err);
    size_t size;
    while (status == ESP_OK && (p.start = espi_stream_line(&stream, &size)) != NULL) {
        p.at = p.start;
        p.end = p.start + size;
        p.line = stream.line;
        status = take_line(&p);
        espi_stream_advance(&stream, size);
        espi_stream_line_end(&stream);
    }
    if (status == ESP_OK && stream.status != ESP_OK) status = espi_stream_fail(&stream, err, "cannot be read");
    status = finish(&p, status, out);
    espi_stream_close(&stream);
    return status;
}

esp_status espi_rules_parse(const char *expression, size_t at, size_t *end, espi_rules **out, esp_error *err)
{
    *out = NULL;
    parser p = {.start = expression, .rules = new_rules(), .err = err};
    if (p.rules == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    const char *c = p.at = expression + at;
    for (bool closed = false; status == ESP_OK && !closed; c++) {
        while (*c != '\0' && *c != ';' && *c != '}' && *c != '\n')
            c += c[0] == '\\' && c[1] != '\0' && c[1] != '\n' ? 2 : 1;
        closed = *c == '}';
        p.end = c;
        if (*c == '\0') status = wrong(&p, (espi_rules_place){0, at}, "this brace is never closed");
        else status = take_line(&p);
        p.at = c + 1;
    }
    *end = (size_t)(c - expression);
    return finish(&p, status, out);
}

/* --------------------------------------------------------------- argument */

static esp_status parse_argument(const char *expression, size_t at, size_t *end, void **out, esp_error *err)
{
    espi_rules *rules;
    const esp_status status = espi_rules_parse(expression, at, end, &rules, err);
    *out = rules;
    return status;
}

static esp_status read_argument(const char *path, void **out, esp_error *err)
{
    espi_rules *rules;
    const esp_status status = espi_rules_read(path, &rules, err);
    *out = rules;
    return status;
}

static const char *argument_text(const void *rules) { return ((const espi_rules *)rules)->text; }
static void *share_argument(void *rules) { return espi_rules_share(rules); }
static void free_argument(void *rules) { espi_rules_free(rules); }

const espi_argument_class espi_rules_argument = {.name = "grammar rules",
                                                 .short_name = "rules",
                                                 .example = "{NP -> DT [JJ] NN; = NN NNS}",
                                                 .parse = parse_argument,
                                                 .read = read_argument,
                                                 .text = argument_text,
                                                 .share = share_argument,
                                                 .free = free_argument};

/* ----------------------------------------------------------------- matching */

bool *espi_rules_optional(const espi_rules *r, const espi_forest *f, size_t *matched)
{
    uint32_t *map = espi_symbols_map(&f->symbols, &r->labels), *key = NULL;
    bool *optional = espi_alloc_zero(f->child_labels, sizeof *optional);
    size_t capacity = 0;
    bool ok = map != NULL && optional != NULL;
    for (size_t i = 0; matched != NULL && i < r->lines; i++) matched[i] = 0;
    for (size_t i = 0; ok && i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        if (p->inner == 0) continue;
        ok = espi_reserve(&key, &capacity, (size_t)p->arity + 1, sizeof *key);
        if (!ok) break;
        key[0] = map[p->label];
        for (size_t k = 0; k < p->arity; k++) key[k + 1] = map[f->child_label[p->children + k] >> 1];
        /* A label that the rules do not name is ESPI_NO_SYMBOL, which no key holds. */
        const uint32_t line = espi_symbols_find(&r->keys, (const char *)key, ((size_t)p->arity + 1) * sizeof *key);
        if (line == ESPI_NO_SYMBOL) continue;
        if (matched != NULL) matched[line]++;
        for (size_t k = 0; k < p->arity; k++) optional[p->children + k] = (r->item[r->line[line].first + k] & 1) != 0;
    }
    espi_free(map);
    espi_free(key);
    if (ok) return optional;
    espi_free(optional);
    return NULL;
}

uint32_t *espi_rules_classes(const espi_rules *r, const espi_forest *f)
{
    uint32_t *map = espi_symbols_map(&f->symbols, &r->labels);
    for (size_t i = 0; map != NULL && i < f->symbols.count; i++)
        if (map[i] != ESPI_NO_SYMBOL) map[i] = r->class[map[i]];
    return map;
}
