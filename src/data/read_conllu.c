/* CoNLL-U: ten TAB-separated fields per word, a blank line after each sentence. With the words w_1 .. w_n, their
 * forms, UPOS tags and relations to their heads, and D(i) the dependents of word i in the order of the sentence:
 *
 *     dep(i)  = (form_i  dep(j) for j in D(i))
 *     grct(i) = (rel_i   grct(j) for j in D(i), j < i,  (UPOS_i form_i),  grct(j) for j in D(i), j > i)
 *     lct(i)  = (form_i  lct(j) for j in D(i),  UPOS_i  rel_i)
 *
 * GRCT and LCT: Croce, Moschitti, Basili, "Structured lexical similarity via convolution kernels on dependency
 * trees", EMNLP 2011. Several roots are put under a node ROOT. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/reader.h"

#include <string.h>

enum { FIELDS = 10, ID = 0, FORM = 1, UPOS = 3, HEAD = 6, REL = 7 };

typedef struct span {
    size_t at, size;
} span;

typedef struct word {
    span form, upos, rel; /* in reader->scratch */
    size_t head;          /* 0: a root */
    size_t line, place;   /* of the head, for messages */
    size_t first, next;   /* its first dependent; the next dependent of its head; 0: none */
    espi_ref node;        /* of the tree that is being built */
} word;

typedef struct sentence { /* reader->state */
    word *word;           /* 1 .. words; 0 stands for what is above the roots */
    size_t words, word_capacity;
    size_t *order; /* words, heads before dependents */
    size_t order_capacity;
    espi_ref *child; /* of the node that is being built */
    size_t children, child_capacity;
} sentence;

static esp_status fail_field(const espi_reader *r, const char *text, span field, const char *reason, esp_error *err)
{
    char quoted[96];
    return espi_fail_at(err, r->stream.name, r->stream.line, r->stream.column + field.at, "%s %s",
                        espi_quote(text + field.at, field.size, quoted), reason);
}

static bool read_number(const char *text, size_t size, size_t *value)
{
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || *value > SIZE_MAX / 100) return false;
        *value = *value * 10 + (size_t)(text[i] - '0');
    }
    return size > 0;
}

/* "3-4" (a token of several words) and "3.1" (a word that is not in the text) are no words of the tree. */
static bool is_range(const char *text, size_t size)
{
    size_t middle = 0, value;
    while (middle < size && text[middle] != '-' && text[middle] != '.') middle++;
    return middle < size && read_number(text, middle, &value) &&
           read_number(text + middle + 1, size - middle - 1, &value);
}

/* The fields of the line at the stream. */
static esp_status split(espi_reader *r, const char *text, size_t size, span field[FIELDS], esp_error *err)
{
    const espi_stream *s = &r->stream;
    const char *nul = memchr(text, '\0', size);
    if (nul != NULL)
        return espi_fail_at(err, s->name, s->line, s->column + (size_t)(nul - text),
                            "a NUL byte; text must not contain any");
    size_t count = 0, at = 0;
    for (;;) {
        const char *tab = memchr(text + at, '\t', size - at);
        const size_t end = tab != NULL ? (size_t)(tab - text) : size;
        if (count < FIELDS) field[count] = (span){.at = at, .size = end - at};
        count++;
        if (tab == NULL) break;
        at = end + 1;
    }
    if (count != FIELDS)
        return espi_fail_at(err, s->name, s->line, s->column, "%zu fields between TABs; a line of CoNLL-U has %d",
                            count, FIELDS);
    return ESP_OK;
}

/* Copies a field into scratch, which `*to` then refers to. */
static esp_status keep(espi_reader *r, const char *text, span field, span *to, esp_error *err)
{
    *to = (span){.at = r->scratch_size, .size = field.size};
    if (field.size == 0)
        return fail_field(r, text, field, "is an empty field; write _ where there is nothing to say", err);
    return espi_reader_gather(r, text + field.at, field.size) ? ESP_OK : espi_no_memory(err);
}

/* The line at the stream, which is `size` bytes long, as the next word. */
static esp_status add_word(espi_reader *r, const char *text, size_t size, esp_error *err)
{
    sentence *b = r->state;
    span field[FIELDS];
    size_t id;
    esp_status status = split(r, text, size, field, err);
    if (status != ESP_OK || is_range(text, field[ID].size)) return status;
    if (!read_number(text, field[ID].size, &id) || id != b->words + 1)
        return fail_field(r, text, field[ID], "is not the number of the next word; they run 1, 2, 3 ...", err);
    if (!espi_reserve(&b->word, &b->word_capacity, id + 1, sizeof *b->word)) return espi_no_memory(err);
    word *w = &b->word[id];
    *w = (word){.line = r->stream.line, .place = r->stream.column + field[HEAD].at};
    if (!read_number(text + field[HEAD].at, field[HEAD].size, &w->head))
        return fail_field(r, text, field[HEAD], "is no head; it must be the number of a word, or 0 for the root", err);
    status = keep(r, text, field[FORM], &w->form, err);
    if (status == ESP_OK) status = keep(r, text, field[UPOS], &w->upos, err);
    if (status == ESP_OK) status = keep(r, text, field[REL], &w->rel, err);
    b->words += status == ESP_OK;
    return status;
}

/* Links the words to their heads and puts heads before dependents. */
static esp_status link_words(espi_reader *r, esp_error *err)
{
    sentence *b = r->state;
    const char *name = r->stream.name;
    if (!espi_reserve(&b->order, &b->order_capacity, b->words, sizeof *b->order)) return espi_no_memory(err);
    b->word[0] = (word){0};
    for (size_t i = b->words; i > 0; i--) { /* from the last, so that each list comes out in order */
        word *w = &b->word[i];
        if (w->head > b->words)
            return espi_fail_at(err, name, w->line, w->place, "head %zu does not exist; words in the sentence: %zu",
                                w->head, b->words);
        w->next = b->word[w->head].first;
        b->word[w->head].first = i;
    }
    size_t ordered = 0;
    for (size_t i = b->word[0].first; i != 0; i = b->word[i].next) b->order[ordered++] = i;
    if (ordered == 0)
        return espi_fail_at(err, name, b->word[1].line, b->word[1].place,
                            "the sentence has no root; one word needs head 0");
    for (size_t done = 0; done < ordered; done++)
        for (size_t i = b->word[b->order[done]].first; i != 0; i = b->word[i].next) b->order[ordered++] = i;
    if (ordered == b->words) return ESP_OK;
    for (size_t i = 0; i < ordered; i++) b->word[b->order[i]].line = 0; /* reached */
    size_t lost = 1;
    while (b->word[lost].line == 0) lost++;
    return espi_fail_at(err, name, b->word[lost].line, b->word[lost].place,
                        "the heads go round in a circle and never reach the root");
}

/* ------------------------------------------------------------------ trees */

typedef struct builder {
    espi_reader *reader;
    sentence *b;
    espi_forest *forest;
} builder;

static bool add(const builder *t, espi_ref node)
{
    sentence *b = t->b;
    if (node == ESPI_NO_NODE || !espi_reserve(&b->child, &b->child_capacity, b->children + 1, sizeof *b->child))
        return false;
    b->child[b->children++] = node;
    return true;
}

static uint32_t symbol(const builder *t, span text)
{
    return espi_symbols_add(&t->forest->symbols, t->reader->scratch + text.at, text.size);
}

static espi_ref leaf(const builder *t, span text)
{
    return ESPI_LEAF | symbol(t, text); /* no symbol makes ESPI_NO_NODE */
}

/* The node of this label over the children gathered, or a leaf. */
static espi_ref node(const builder *t, uint32_t label)
{
    if (label == ESPI_NO_SYMBOL) return ESPI_NO_NODE;
    if (t->b->children == 0) return ESPI_LEAF | label;
    return espi_forest_node(t->forest, label, t->b->child, t->b->children);
}

static espi_ref build_dep(const builder *t, size_t i)
{
    const word *w = t->b->word;
    for (size_t j = w[i].first; j != 0; j = w[j].next)
        if (!add(t, w[j].node)) return ESPI_NO_NODE;
    return node(t, symbol(t, w[i].form));
}

static espi_ref build_grct(const builder *t, size_t i)
{
    const word *w = t->b->word;
    size_t j = w[i].first;
    const espi_ref form = leaf(t, w[i].form);
    const uint32_t upos = symbol(t, w[i].upos);
    if (form == ESPI_NO_NODE || upos == ESPI_NO_SYMBOL) return ESPI_NO_NODE;
    for (; j != 0 && j < i; j = w[j].next)
        if (!add(t, w[j].node)) return ESPI_NO_NODE;
    if (!add(t, espi_forest_node(t->forest, upos, &form, 1))) return ESPI_NO_NODE;
    for (; j != 0; j = w[j].next)
        if (!add(t, w[j].node)) return ESPI_NO_NODE;
    return node(t, symbol(t, w[i].rel));
}

static espi_ref build_lct(const builder *t, size_t i)
{
    const word *w = t->b->word;
    for (size_t j = w[i].first; j != 0; j = w[j].next)
        if (!add(t, w[j].node)) return ESPI_NO_NODE;
    if (!add(t, leaf(t, w[i].upos)) || !add(t, leaf(t, w[i].rel))) return ESPI_NO_NODE;
    return node(t, symbol(t, w[i].form));
}

static esp_status add_tree(espi_reader *r, const char *name, espi_ref (*build)(const builder *, size_t), esp_error *err)
{
    sentence *b = r->state;
    espi_column *column;
    const esp_status status = espi_reader_column(r, name, strlen(name), ESP_COLUMN_TREE, &column, err);
    if (status != ESP_OK) return status;
    const builder t = {.reader = r, .b = b, .forest = &column->trees};
    for (size_t k = b->words; k > 0; k--) { /* dependents before heads */
        const size_t i = b->order[k - 1];
        b->children = 0;
        b->word[i].node = build(&t, i);
        if (b->word[i].node == ESPI_NO_NODE) return espi_no_memory(err);
    }
    espi_ref root = b->word[b->word[0].first].node;
    if (b->word[b->word[0].first].next != 0) {
        b->children = 0;
        for (size_t j = b->word[0].first; j != 0; j = b->word[j].next)
            if (!add(&t, b->word[j].node)) return espi_no_memory(err);
        root = node(&t, espi_symbols_add(&column->trees.symbols, "ROOT", 4));
        if (root == ESPI_NO_NODE) return espi_no_memory(err);
    }
    return espi_set_tree(column, root, err);
}

static esp_status add_words(espi_reader *r, esp_error *err)
{
    const sentence *b = r->state;
    espi_column *column;
    esp_status status = espi_reader_column(r, "words", 5, ESP_COLUMN_SEQUENCE, &column, err);
    for (size_t i = 1; i <= b->words && status == ESP_OK; i++)
        status = espi_add_token(column, r->scratch + b->word[i].form.at, b->word[i].form.size, err);
    return status == ESP_OK ? espi_end_sequence(column, err) : status;
}

/* ------------------------------------------------------------------- rows */

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    if (r->state == NULL) r->state = espi_alloc_zero(1, sizeof(sentence));
    sentence *b = r->state;
    if (b == NULL) return espi_no_memory(err);
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    b->words = r->scratch_size = 0;
    for (;;) {
        size_t size;
        const char *text = espi_stream_line(s, &size);
        if (text != NULL && size > 0 && text[size - 1] == '\r') size--;
        if (text == NULL || size == 0) break;
        const esp_status status = text[0] == '#' ? ESP_OK : add_word(r, text, size, err);
        if (status != ESP_OK) return status;
        espi_stream_skip_line(s);
    }
    if (s->status != ESP_OK || b->words == 0) return espi_stream_fail(s, err, "the sentence has no words");
    esp_status status = link_words(r, err);
    if (status == ESP_OK) status = add_tree(r, "dep", build_dep, err);
    if (status == ESP_OK) status = add_tree(r, "grct", build_grct, err);
    if (status == ESP_OK) status = add_tree(r, "lct", build_lct, err);
    return status == ESP_OK ? add_words(r, err) : status;
}

/* The blank line behind the sentence. */
static void recover(espi_reader *r)
{
    espi_stream *s = &r->stream;
    while (espi_stream_peek(s) >= 0 && espi_stream_peek(s) != '\n' && espi_stream_peek(s) != '\r')
        espi_stream_skip_line(s);
}

static void close(espi_reader *r)
{
    sentence *b = r->state;
    if (b == NULL) return;
    espi_free(b->word);
    espi_free(b->order);
    espi_free(b->child);
    espi_free(b);
}

/* Ten fields separated by TABs, the first a word's number. */
static espi_claim recognise(const char *text, size_t size)
{
    size_t tabs = 0, digits = 0;
    while (digits < size &&
           ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '-' || text[digits] == '.'))
        digits++;
    if (digits == 0 || digits == size || text[digits] != '\t') return ESPI_CLAIM_NONE;
    for (size_t i = 0; i < size; i++) tabs += text[i] == '\t';
    return tabs == FIELDS - 1 ? ESPI_CLAIM_SHAPE : ESPI_CLAIM_NONE;
}

const espi_reader_class espi_read_conllu = {
    .target = ESPI_TARGET_NONE, .recognise = recognise, .next = next, .recover = recover, .close = close};
