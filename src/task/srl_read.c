/* Sentences with predicates and arguments, line by line (the format is in data/read_srl.c and docs/srl.md).
 *
 * What is wrong inside one line is told with its place, and reading can go on behind it; a file that breaks off inside
 * of compressed data, or whose last line has no line end, is cut off. */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "data/srl_line.h"
#include "task/srl.h"

#include <string.h>

enum { KEPT_CHILDREN = 1 << 16 /* of the forest; beyond, it is emptied */ };

esp_status espi_srl_open(espi_srl_reader *r, const char *path, const esp_run *run, esp_error *err)
{
    r->sentence = r->passing = false;
    const esp_status status = espi_stream_open(&r->reader.stream, path, run, err);
    if (status != ESP_OK) return status;
    espi_stream *s = &r->reader.stream;
    if (espi_reader_ahead(&r->reader, 3) && memcmp(s->at, "\xEF\xBB\xBF", 3) == 0) s->at += 3;
    return ESP_OK;
}

void espi_srl_close(espi_srl_reader *r) { espi_stream_close(&r->reader.stream); }

void espi_srl_reader_free(espi_srl_reader *r)
{
    espi_srl_close(r);
    espi_tree_parser_free(&r->reader.trees);
    espi_free(r->reader.scratch);
    espi_forest_free(&r->column.trees);
    espi_srl_tree_free(&r->tree);
    espi_text_free(&r->predicate.lemma);
    espi_text_free(&r->predicate.roles);
    espi_free(r->predicate.argument);
    espi_text_free(&r->field);
    *r = (espi_srl_reader){0};
}

/* Behind the last field of a line. Elsewhere the end of input may stand for a line end, but here a span that lost its
 * last digits would still be a span. */
static esp_status line_end(espi_reader *r, const char *what, esp_error *err)
{
    espi_stream_blanks(&r->stream, false);
    if (espi_stream_peek(&r->stream) < 0)
        return espi_stream_fail(&r->stream, err, "the last line has no line end; the file was cut off here");
    return espi_reader_line_end(r, what, err);
}

static esp_status read_sentence(espi_srl_reader *sr, esp_error *err)
{
    espi_reader *r = &sr->reader;
    espi_forest *forest = &sr->column.trees;
    sr->sentence = sr->passing = false;
    esp_status status = espi_srl_line(r, 'T', err);
    if (status == ESP_OK) status = espi_srl_field(r, "document", false, &sr->field, err);
    if (status != ESP_OK) return status;
    sr->passing = sr->wanted != NULL && !sr->wanted(sr->user, sr->field.bytes, sr->field.size);
    if (sr->passing) {
        espi_stream_skip_line(&r->stream);
        return ESP_OK;
    }
    if (forest->children > KEPT_CHILDREN) espi_forest_free(forest);
    status = espi_srl_field(r, "sentence", false, NULL, err);
    const size_t line = r->stream.line, place = r->stream.column;
    if (status == ESP_OK) status = espi_reader_tree(r, &sr->column, false, err);
    if (status != ESP_OK) return status;
    const espi_ref root = forest->root[forest->roots - 1];
    if (espi_is_leaf(root))
        return espi_fail_at(err, r->stream.name, line, place, "the tree is a single leaf; it has no constituents");
    if (!espi_srl_tree_set(&sr->tree, forest, root, sr->json)) return espi_no_memory(err);
    status = line_end(r, "the tree", err);
    sr->sentence = status == ESP_OK;
    return status;
}

/* A whole number at the front of text[0..size); returns the number of digits. What
 * is too large becomes ESPI_SRL_NONE. */
static size_t take_number(const char *text, size_t size, uint32_t *value)
{
    uint64_t number = 0;
    size_t n = 0;
    for (; n < size && text[n] >= '0' && text[n] <= '9'; n++) {
        number = number * 10 + (uint64_t)(text[n] - '0');
        if (number > ESPI_SRL_NONE) number = ESPI_SRL_NONE;
    }
    *value = (uint32_t)number;
    return n;
}

/* R- and C- off the front of a role: relative pronouns and later pieces count as what they refer to or continue. */
static const char *plain_role(const char *role, size_t *size)
{
    while (*size > 2 && (role[0] == 'R' || role[0] == 'C') && role[1] == '-') role += 2, *size -= 2;
    return role;
}

/* ARG0 .. ARG5, ARGA or ARGM, with or without a tag of capital letters. */
static bool known_role(const char *role, size_t size)
{
    if (size < 4 || memcmp(role, "ARG", 3) != 0 || memchr("012345AM", role[3], 8) == NULL) return false;
    if (size == 4) return true;
    for (size_t i = 5; i < size; i++)
        if (role[i] < 'A' || role[i] > 'Z') return false;
    return role[4] == '-' && size > 5;
}

/* text[0..role) is the role as it stands, and the last `plain` bytes of it are those behind R- and C-. */
static bool add_argument(espi_srl_predicate *p, const char *text, size_t role, size_t plain, espi_srl_argument span)
{
    if (!espi_reserve(&p->argument, &p->argument_capacity, p->arguments + 1, sizeof *p->argument)) return false;
    span.role = (espi_srl_piece){.at = p->roles.size, .size = role};
    span.plain = (espi_srl_piece){.at = p->roles.size + role - plain, .size = 4};
    p->argument[p->arguments++] = span;
    espi_text_add(&p->roles, text, role);
    return !p->roles.failed;
}

/* One "ROLE:from-to" of `size` bytes at the stream, which is not taken. */
static esp_status read_argument(espi_srl_reader *sr, size_t size, esp_error *err)
{
    const espi_stream *s = &sr->reader.stream;
    const char *text = s->at, *end = s->at + size, *colon = end;
    char quoted[96];
    uint32_t first, last = 0;
    while (colon > text && *--colon != ':') continue;
    const size_t role = (size_t)(colon - text), from = take_number(colon + 1, (size_t)(end - colon) - 1, &first);
    const char *dash = colon + 1 + from;
    bool shaped = *colon == ':' && role > 0 && from > 0 && dash < end && *dash == '-' && dash + 1 < end;
    shaped = shaped && dash + 1 + take_number(dash + 1, (size_t)(end - dash) - 1, &last) == end;
    espi_quote(text, size, quoted);
    if (!shaped)
        return espi_stream_fail(s, err, "%s is no argument; it must be ROLE:from-to with two token numbers", quoted);
    if (first > last) return espi_stream_fail(s, err, "the span of %s ends before it starts", quoted);
    if (last >= sr->tree.leaves)
        return espi_stream_fail(s, err, "the span of %s is outside the sentence, whose tokens are 0 to %zu", quoted,
                                sr->tree.leaves - 1);
    size_t plain_size = role;
    const char *plain = plain_role(text, &plain_size);
    if (plain_size == 1 && *plain == 'V') return ESP_OK;
    if (!known_role(plain, plain_size))
        return espi_stream_fail(s, err,
                                "%s has an unknown role; roles are V, ARG0 to ARG5, ARGA and ARGM, with a tag as in "
                                "ARGM-TMP or not, and R- or C- before them",
                                quoted);
    const espi_srl_argument span = {.first = first, .last = last};
    return add_argument(&sr->predicate, text, role, plain_size, span) ? ESP_OK : espi_no_memory(err);
}

static esp_status read_predicate(espi_srl_reader *sr, esp_error *err)
{
    espi_reader *r = &sr->reader;
    espi_srl_predicate *p = &sr->predicate;
    esp_status status = espi_srl_line(r, 'P', err);
    const size_t line = r->stream.line, place = r->stream.column;
    if (status == ESP_OK) status = espi_srl_field(r, "token number", true, &sr->field, err);
    if (status != ESP_OK) return status;
    take_number(sr->field.bytes, sr->field.size, &p->token);
    if (p->token >= sr->tree.leaves) {
        char quoted[96];
        return espi_fail_at(err, r->stream.name, line, place,
                            "the predicate's token %s is outside the sentence, whose tokens are 0 to %zu",
                            espi_quote(sr->field.bytes, sr->field.size, quoted), sr->tree.leaves - 1);
    }
    status = espi_srl_field(r, "lemma", false, &sr->field, err);
    if (status == ESP_OK) status = espi_srl_field(r, "frame", false, NULL, err);
    if (status != ESP_OK) return status;
    p->arguments = p->roles.size = p->lemma.size = 0;
    espi_text_json(&p->lemma, sr->field.bytes, sr->field.size);
    if (p->lemma.failed) return espi_no_memory(err);
    for (;;) {
        size_t size;
        espi_stream_blanks(&r->stream, false);
        status = espi_reader_token(r, espi_stop_blank, &size, err);
        if (status == ESP_OK && size > 0) status = read_argument(sr, size, err);
        if (status != ESP_OK || size == 0) break;
        espi_stream_advance(&r->stream, size);
    }
    return status == ESP_OK ? line_end(r, "an argument", err) : status;
}

esp_status espi_srl_next(espi_srl_reader *sr, espi_srl_event *event, esp_error *err)
{
    espi_stream *s = &sr->reader.stream;
    *event = ESPI_SRL_END;
    while (espi_reader_start(&sr->reader)) {
        const bool predicate = (sr->sentence || sr->passing) && espi_stream_peek(s) == 'P';
        if (predicate && sr->passing) {
            espi_stream_skip_line(s);
            continue;
        }
        const esp_status status = predicate ? read_predicate(sr, err) : read_sentence(sr, err);
        if (s->status != ESP_OK) break;
        if (status == ESP_ERR_PARSE && predicate) espi_stream_skip_line(s);
        else if (status == ESP_ERR_PARSE) espi_srl_recover(&sr->reader);
        if (status != ESP_OK) return status;
        if (sr->passing) continue;
        *event = predicate ? ESPI_SRL_PREDICATE : ESPI_SRL_SENTENCE;
        return ESP_OK;
    }
    if (s->status != ESP_OK && err != NULL) *err = s->error;
    return s->status;
}
