#include "task/grammar.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "data/stream.h"

#include <stdio.h>
#include <string.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_WORD,
    TOKEN_WEIGHT,
    TOKEN_ARROW,
    TOKEN_BAR,
    TOKEN_OPEN,
    TOKEN_CLOSE
} token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* a word without its quotes */
    size_t size;
    espi_grammar_place place;
    double weight;
} token;

/* What an alternative or a bracket inside it has gathered so far. */
typedef struct piece {
    uint32_t symbol;
    size_t first; /* its first item in parser->pending */
    espi_grammar_place place;
} piece;

typedef struct parser {
    espi_grammar *grammar;
    const char *file;
    const char *line; /* the line at hand */
    size_t size, at, number;
    token token;     /* the one at hand */
    bool in_rule;    /* the line before ended a rule, which "|" may go on */
    uint32_t symbol; /* of that rule */
    piece *piece;    /* open brackets, the outermost first */
    size_t pieces, piece_capacity;
    uint32_t *pending; /* items of the open pieces */
    size_t pending_count, pending_capacity;
    char *word; /* a word without its backslashes; the name of a bracket */
    size_t word_capacity;
    esp_error *err;
} parser;

#define FAIL_AT(p, where, ...) espi_fail_at((p)->err, (p)->file, (where).line, (where).column, __VA_ARGS__)

void espi_grammar_free(espi_grammar *g)
{
    espi_symbols_free(&g->symbols);
    espi_symbols_free(&g->words);
    espi_symbols_free(&g->class_names);
    espi_free(g->rule);
    espi_free(g->alternative);
    espi_free(g->item);
    espi_free(g->class);
    *g = (espi_grammar){0};
}

size_t espi_grammar_label_size(const espi_symbol *symbol)
{
    if (symbol->text[0] == '_') return 0;
    const char *mark = symbol->size > 1 ? memchr(symbol->text + 1, '.', symbol->size - 1) : NULL;
    return mark == NULL ? symbol->size : (size_t)(mark - symbol->text);
}

/* ------------------------------------------------------------------ tokens */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_mark(char c) { return c == '"' || c == '|' || c == '(' || c == ')'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A sign or a point makes a number only before a digit: "-LRB-" and "." are symbols. */
static bool looks_like_number(const char *text, size_t size)
{
    size_t at = size > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    if (at < size && text[at] == '.') at++;
    return at < size && is_digit(text[at]);
}

static esp_status scan_word(parser *p)
{
    token *t = &p->token;
    size_t size = 0;
    if (!espi_reserve(&p->word, &p->word_capacity, p->size - p->at, 1)) return espi_no_memory(p->err);
    for (p->at++; p->at < p->size && p->line[p->at] != '"'; p->at++) {
        char c = p->line[p->at];
        if (c == '\\' && p->at + 1 < p->size && (p->line[p->at + 1] == '"' || p->line[p->at + 1] == '\\'))
            c = p->line[++p->at];
        p->word[size++] = c;
    }
    if (p->at == p->size) return FAIL_AT(p, t->place, "the quote that opens here is not closed on this line");
    p->at++;
    if (size == 0) return FAIL_AT(p, t->place, "a word cannot be empty");
    t->kind = TOKEN_WORD;
    t->text = p->word;
    t->size = size;
    return ESP_OK;
}

static esp_status scan_name(parser *p)
{
    token *t = &p->token;
    const char *text = p->line + p->at;
    size_t n = 0;
    while (p->at + n < p->size && !is_blank(text[n]) && !is_mark(text[n]) &&
           !(text[n] == '-' && p->at + n + 1 < p->size && text[n + 1] == '>'))
        n++;
    p->at += n;
    t->kind = TOKEN_NAME;
    t->text = text;
    t->size = n;
    if (!looks_like_number(text, n)) return ESP_OK;
    t->kind = TOKEN_WEIGHT;
    char shown[96];
    if (!espi_number_parse(text, n, &t->weight))
        return FAIL_AT(p, t->place, "%s is not a number (and a symbol cannot start like one)",
                       espi_quote(text, n, shown));
    return ESP_OK;
}

static esp_status next_token(parser *p)
{
    token *t = &p->token;
    while (p->at < p->size && is_blank(p->line[p->at])) p->at++;
    *t = (token){.kind = TOKEN_END, .place = {p->number, p->at + 1}};
    if (p->at == p->size || p->line[p->at] == '#') return ESP_OK;
    const char c = p->line[p->at];
    if (c == '"') return scan_word(p);
    if (is_mark(c)) {
        t->kind = c == '|' ? TOKEN_BAR : c == '(' ? TOKEN_OPEN : TOKEN_CLOSE;
        p->at++;
        return ESP_OK;
    }
    if (p->at + 1 < p->size && memcmp(p->line + p->at, "->", 2) == 0) {
        t->kind = TOKEN_ARROW;
        p->at += 2;
        return ESP_OK;
    }
    return scan_name(p);
}

static const char *show(const token *t, char text[96])
{
    static const char *const fixed[] = {[TOKEN_END] = "the end of the line",
                                        [TOKEN_ARROW] = "'->'",
                                        [TOKEN_BAR] = "'|'",
                                        [TOKEN_OPEN] = "'('",
                                        [TOKEN_CLOSE] = "')'"};
    const bool free_text = t->kind == TOKEN_NAME || t->kind == TOKEN_WORD || t->kind == TOKEN_WEIGHT;
    return free_text ? espi_quote(t->text, t->size, text) : fixed[t->kind];
}

/* Takes the weight if one is at hand; 1 otherwise. */
static esp_status take_weight(parser *p, double *weight)
{
    *weight = 1.0;
    if (p->token.kind != TOKEN_WEIGHT) return ESP_OK;
    char shown[96];
    if (!(p->token.weight > 0.0))
        return FAIL_AT(p, p->token.place, "the weight %s is not allowed: weights are greater than 0",
                       espi_quote(p->token.text, p->token.size, shown));
    *weight = p->token.weight;
    return next_token(p);
}

static esp_status take_arrow(parser *p)
{
    char shown[96];
    if (p->token.kind != TOKEN_ARROW)
        return FAIL_AT(p, p->token.place, "expected '->' instead of %s", show(&p->token, shown));
    return next_token(p);
}

/* ------------------------------------------------------------------- lines */

/* The number of a symbol, which need not have a rule yet. */
static esp_status mention(parser *p, const char *name, size_t size, uint32_t *symbol)
{
    espi_grammar *g = p->grammar;
    const size_t known = g->symbols.count;
    if (!espi_reserve(&g->rule, &g->rule_capacity, known + 1, sizeof *g->rule)) return espi_no_memory(p->err);
    *symbol = espi_symbols_add(&g->symbols, name, size);
    if (*symbol == ESPI_NO_SYMBOL) return espi_no_memory(p->err);
    if (*symbol == known) g->rule[known] = (espi_rule){.used = p->token.place};
    return ESP_OK;
}

static esp_status add_pending(parser *p, uint32_t item)
{
    if (!espi_reserve(&p->pending, &p->pending_capacity, p->pending_count + 1, sizeof *p->pending))
        return espi_no_memory(p->err);
    p->pending[p->pending_count++] = item;
    return ESP_OK;
}

static esp_status open_piece(parser *p, uint32_t symbol)
{
    if (!espi_reserve(&p->piece, &p->piece_capacity, p->pieces + 1, sizeof *p->piece)) return espi_no_memory(p->err);
    p->piece[p->pieces++] = (piece){.symbol = symbol, .first = p->pending_count, .place = p->token.place};
    return ESP_OK;
}

/* Turns what the innermost piece has gathered into an alternative of its symbol. */
static esp_status close_piece(parser *p, double weight)
{
    espi_grammar *g = p->grammar;
    const piece *last = &p->piece[--p->pieces];
    const size_t count = p->pending_count - last->first;
    char shown[96];
    if (count == 0)
        return FAIL_AT(p, p->token.place, "expected a symbol or a \"word\" instead of %s", show(&p->token, shown));
    if (!espi_reserve(&g->alternative, &g->alternative_capacity, g->alternatives + 1, sizeof *g->alternative) ||
        !espi_reserve(&g->item, &g->item_capacity, g->items + count, sizeof *g->item))
        return espi_no_memory(p->err);
    g->alternative[g->alternatives++] = (espi_alternative){
        .symbol = last->symbol, .items = g->items, .count = count, .weight = weight, .place = last->place};
    memcpy(g->item + g->items, p->pending + last->first, count * sizeof *g->item);
    g->items += count;
    p->pending_count = last->first;
    return ESP_OK;
}

/* A bracket is a symbol of its own with one alternative, named by its place so that it is like no other. */
static esp_status open_bracket(parser *p)
{
    const espi_grammar_place place = p->token.place;
    char shown[96];
    esp_status status = next_token(p);
    if (status != ESP_OK) return status;
    if (p->token.kind != TOKEN_NAME || p->token.text[0] == '_')
        return FAIL_AT(p, p->token.place, "expected the label of the bracket instead of %s", show(&p->token, shown));
    const size_t room = p->token.size + 64;
    if (!espi_reserve(&p->word, &p->word_capacity, room, 1)) return espi_no_memory(p->err);
    memcpy(p->word, p->token.text, p->token.size);
    const int more = snprintf(p->word + p->token.size, 64, ".(%zu:%zu)", place.line, place.column);
    uint32_t symbol;
    p->token.place = place;
    status = mention(p, p->word, p->token.size + (size_t)more, &symbol);
    if (status == ESP_OK) status = add_pending(p, symbol);
    if (status != ESP_OK) return status;
    p->grammar->rule[symbol].defined = place;
    return (status = open_piece(p, symbol)) == ESP_OK ? next_token(p) : status;
}

static esp_status take_word(parser *p)
{
    const token *t = &p->token;
    for (size_t i = 0; i < t->size; i++)
        if (is_blank(t->text[i])) return FAIL_AT(p, t->place, "a word cannot hold a blank; quote each word");
    const uint32_t word = espi_symbols_add(&p->grammar->words, t->text, t->size);
    if (word == ESPI_NO_SYMBOL) return espi_no_memory(p->err);
    const esp_status status = add_pending(p, ESPI_GRAMMAR_WORD | word);
    return status == ESP_OK ? next_token(p) : status;
}

static esp_status take_symbol(parser *p)
{
    uint32_t symbol;
    esp_status status = mention(p, p->token.text, p->token.size, &symbol);
    if (status == ESP_OK) status = add_pending(p, symbol);
    return status == ESP_OK ? next_token(p) : status;
}

static esp_status close_bracket(parser *p)
{
    if (p->pieces == 1) return FAIL_AT(p, p->token.place, "this bracket was never opened");
    const esp_status status = close_piece(p, 1.0);
    return status == ESP_OK ? next_token(p) : status;
}

/* item ... [weight] */
static esp_status take_alternative(parser *p)
{
    p->pieces = p->pending_count = 0;
    esp_status status = open_piece(p, p->symbol);
    while (status == ESP_OK) {
        if (p->token.kind == TOKEN_NAME) status = take_symbol(p);
        else if (p->token.kind == TOKEN_WORD) status = take_word(p);
        else if (p->token.kind == TOKEN_OPEN) status = open_bracket(p);
        else if (p->token.kind == TOKEN_CLOSE) status = close_bracket(p);
        else break;
    }
    if (status != ESP_OK) return status;
    if (p->pieces > 1) return FAIL_AT(p, p->piece[p->pieces - 1].place, "the bracket that opens here is not closed");
    double weight = 1.0;
    if (p->pending_count > 0 && (status = take_weight(p, &weight)) != ESP_OK) return status;
    if ((status = close_piece(p, weight)) != ESP_OK) return status;
    char shown[96];
    if (p->token.kind != TOKEN_BAR && p->token.kind != TOKEN_END)
        return FAIL_AT(p, p->token.place, "expected '|' or the end of the line instead of %s", show(&p->token, shown));
    return ESP_OK;
}

/* Alternatives up to the end of the line; the token at hand is the first of them. */
static esp_status take_alternatives(parser *p)
{
    esp_status status = take_alternative(p);
    while (status == ESP_OK && p->token.kind == TOKEN_BAR) {
        status = next_token(p);
        if (status == ESP_OK) status = take_alternative(p);
    }
    p->in_rule = true;
    return status;
}

static esp_status parse_rule(parser *p)
{
    const espi_grammar_place place = p->token.place;
    esp_status status = mention(p, p->token.text, p->token.size, &p->symbol);
    if (status == ESP_OK) status = next_token(p);
    if (status == ESP_OK) status = take_arrow(p);
    if (status != ESP_OK) return status;
    espi_rule *rule = &p->grammar->rule[p->symbol];
    if (rule->defined.line == 0) rule->defined = place;
    return take_alternatives(p);
}

/* class NAME [weight] -> SYMBOL, with "class" already taken. */
static esp_status parse_class(parser *p)
{
    espi_grammar *g = p->grammar;
    const token name = p->token;
    char shown[96];
    if (name.kind != TOKEN_NAME && name.kind != TOKEN_WORD && name.kind != TOKEN_WEIGHT)
        return FAIL_AT(p, name.place, "expected the name of a class instead of %s", show(&name, shown));
    const size_t known = g->class_names.count;
    const uint32_t id = espi_symbols_add(&g->class_names, name.text, name.size);
    if (id == ESPI_NO_SYMBOL) return espi_no_memory(p->err);
    if (id < known) return FAIL_AT(p, name.place, "class %s is given twice", show(&name, shown));
    espi_grammar_class class = {.name = g->class_names.symbol[id].text, .size = name.size};
    esp_status status = next_token(p);
    if (status == ESP_OK) status = take_weight(p, &class.weight);
    if (status == ESP_OK) status = take_arrow(p);
    if (status != ESP_OK) return status;
    if (p->token.kind != TOKEN_NAME)
        return FAIL_AT(p, p->token.place, "expected the symbol that class %s starts from instead of %s",
                       espi_quote(class.name, class.size, shown), show(&p->token, (char[96]){0}));
    if (p->token.text[0] == '_')
        return FAIL_AT(p, p->token.place, "a class cannot start from %s: symbols that start with '_' make no node",
                       show(&p->token, shown));
    status = mention(p, p->token.text, p->token.size, &class.start);
    if (status == ESP_OK) status = next_token(p);
    if (status != ESP_OK) return status;
    if (p->token.kind != TOKEN_END)
        return FAIL_AT(p, p->token.place, "expected the end of the line instead of %s: a class has one start symbol",
                       show(&p->token, shown));
    if (!espi_reserve(&g->class, &g->class_capacity, g->classes + 1, sizeof *g->class)) return espi_no_memory(p->err);
    g->class[g->classes++] = class;
    return ESP_OK;
}

static esp_status parse_line(parser *p)
{
    esp_status status = next_token(p);
    if (status != ESP_OK || p->token.kind == TOKEN_END) return status;
    const bool goes_on = p->in_rule && p->token.kind == TOKEN_BAR;
    p->in_rule = false;
    if (goes_on) return (status = next_token(p)) == ESP_OK ? take_alternatives(p) : status;
    char shown[96];
    if (p->token.kind != TOKEN_NAME)
        return FAIL_AT(p, p->token.place, "expected a symbol or 'class' instead of %s", show(&p->token, shown));
    if (p->token.size != 5 || memcmp(p->token.text, "class", 5) != 0) return parse_rule(p);
    return (status = next_token(p)) == ESP_OK ? parse_class(p) : status;
}

/* -------------------------------------------------------------------- file */

esp_status espi_grammar_read(const char *path, const esp_run *run, espi_grammar *grammar, esp_error *err)
{
    *grammar = (espi_grammar){0};
    espi_stream stream;
    esp_status status = espi_stream_open(&stream, path, run, err);
    if (status != ESP_OK) return status;
    grammar->file = stream.name;
    parser p = {.grammar = grammar, .file = stream.name, .number = 1, .err = err};
    while (status == ESP_OK && (p.line = espi_stream_line(&stream, &p.size)) != NULL) {
        p.at = 0;
        p.number = stream.line;
        status = parse_line(&p);
        espi_stream_advance(&stream, p.size);
        espi_stream_line_end(&stream);
    }
    if (status == ESP_OK && stream.status != ESP_OK) status = espi_stream_fail(&stream, err, "cannot be read");
    if (status == ESP_OK) status = espi_grammar_prepare(grammar, (espi_grammar_place){stream.line, 1}, err);
    espi_free(p.piece);
    espi_free(p.pending);
    espi_free(p.word);
    espi_stream_close(&stream);
    if (status != ESP_OK) espi_grammar_free(grammar);
    return status;
}
