/* What the readers of all formats share: rows, tokens, columns, trees, labels and vectors from the stream. */
#include "data/reader.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const bool espi_stop_blank[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true};

esp_status espi_reader_place_at(const espi_reader *r, size_t line, size_t column, esp_status status, esp_error *err)
{
    if (status != ESP_ERR_PARSE || err->line != 0) return status;
    char clause[sizeof err->message];
    memcpy(clause, err->message, sizeof clause);
    return espi_fail_at(err, r->stream.name, line, column, "%s", clause);
}

esp_status espi_reader_place(const espi_reader *r, esp_status status, esp_error *err)
{
    return espi_reader_place_at(r, r->stream.line, r->stream.column, status, err);
}

bool espi_reader_start(espi_reader *r)
{
    espi_stream *s = &r->stream;
    for (;;) {
        const size_t line = s->line;
        const bool fresh = s->column == 1;
        espi_stream_blanks(s, true);
        if (espi_stream_peek(s) != '#' || !(fresh || s->line != line)) break;
        espi_stream_skip_line(s);
    }
    r->row_line = s->line;
    r->row_column = s->column;
    return espi_stream_peek(s) >= 0;
}

bool espi_reader_ahead(espi_reader *r, size_t n)
{
    while ((size_t)(r->stream.end - r->stream.at) < n)
        if (!espi_stream_fill(&r->stream)) return false;
    return true;
}

esp_status espi_reader_line_end(espi_reader *r, const char *what, esp_error *err)
{
    char quoted[96];
    espi_stream_blanks(&r->stream, false);
    if (espi_stream_line_end(&r->stream)) return ESP_OK;
    return espi_stream_fail(&r->stream, err, "%s is followed by %s; the line must end here", what,
                            espi_quote(r->stream.at, 1, quoted));
}

esp_status espi_reader_token(espi_reader *r, const bool stop[256], size_t *size, esp_error *err)
{
    *size = espi_stream_token(&r->stream, stop);
    const char *nul = *size > 0 ? memchr(r->stream.at, '\0', *size) : NULL;
    if (nul == NULL) return ESP_OK;
    espi_stream_advance(&r->stream, (size_t)(nul - r->stream.at));
    return espi_stream_fail(&r->stream, err, "a NUL byte; text must not contain any");
}

bool espi_reader_gather(espi_reader *r, const char *bytes, size_t size)
{
    if (!espi_reserve(&r->scratch, &r->scratch_capacity, r->scratch_size + size, 1)) return false;
    if (size > 0) memcpy(r->scratch + r->scratch_size, bytes, size);
    r->scratch_size += size;
    return true;
}

esp_status espi_reader_column(espi_reader *r, const char *name, size_t size, esp_column_type type, espi_column **out,
                              esp_error *err)
{
    return espi_reader_place(r, espi_row_column(r->data, name, size, type, out, err), err);
}

static esp_status unfinished_tree(espi_reader *r, size_t line, esp_error *err)
{
    const size_t open = espi_tree_open(&r->trees);
    const char *what = espi_stream_peek(&r->stream) < 0 ? "input" : "line";
    return espi_stream_fail(&r->stream, err,
                            "the %s ends inside the tree that starts in line %zu; %zu closing %s missing", what, line,
                            open, open == 1 ? "bracket is" : "brackets are");
}

esp_status espi_reader_tree(espi_reader *r, espi_column *column, bool lines, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    espi_stream_blanks(s, lines);
    const int first = espi_stream_peek(s);
    if (first < 0 || first == '\n') return espi_stream_fail(s, err, "a tree is missing here");
    if (first != '(')
        return espi_stream_fail(s, err, "a tree starts with '(', not with %s", espi_quote(s->at, 1, quoted));
    const size_t line = s->line;
    espi_tree_begin(&r->trees, &column->trees, r->options.clean);
    /* To skip bad trees, one must see where the next starts: at the start of a line. */
    const bool watch = lines && r->options.skip_bad;
    for (;;) {
        if (s->at == s->end && !espi_stream_fill(s)) return unfinished_tree(r, line, err);
        const size_t have = (size_t)(s->end - s->at);
        const char *newline = lines && !watch ? NULL : memchr(s->at, '\n', have);
        if (newline == s->at && !lines) return unfinished_tree(r, line, err);
        if (watch && s->line > line && s->column == 1 && *s->at == '(')
            return espi_stream_fail(s, err, "a tree starts here, but the one that starts in line %zu has not ended",
                                    line);
        size_t used, size = newline != NULL ? (size_t)(newline - s->at) + watch : have;
        const espi_tree_state state = espi_tree_feed(&r->trees, s->at, size, &used);
        espi_stream_advance(s, used);
        if (state == ESPI_TREE_COMPLETE) return espi_set_tree(column, r->trees.root, err);
        if (state == ESPI_TREE_WRONG) return espi_stream_fail(s, err, "%s", r->trees.reason);
        if (state == ESPI_TREE_NO_MEMORY) return espi_no_memory(err);
    }
}

esp_status espi_reader_label(espi_reader *r, const bool stop[256], esp_error *err)
{
    espi_stream *s = &r->stream;
    size_t size;
    double value;
    const size_t column = s->column;
    esp_status status = espi_reader_token(r, stop, &size, err);
    if (status != ESP_OK) return status;
    const bool number = espi_number_parse(s->at, size, &value);
    if (!number && espi_number_like(s->at, size)) {
        char quoted[96];
        return espi_stream_fail(s, err, "the label %s is not a finite number", espi_quote(s->at, size, quoted));
    }
    const size_t plus = number && s->at[0] == '+';
    status = espi_set_target(r->data, "y", s->at + plus, size - plus, number, err);
    if (status == ESP_OK) espi_stream_advance(s, size);
    return espi_reader_place_at(r, s->line, column, status, err);
}

esp_status espi_reader_feature(espi_reader *r, espi_column *column, size_t size, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    double value;
    size_t colon = size;
    while (colon > 0 && s->at[colon - 1] != ':') colon--;
    if (colon == 0)
        return espi_stream_fail(s, err, "%s is no feature; it must be written name:value",
                                espi_quote(s->at, size, quoted));
    if (colon == 1) return espi_stream_fail(s, err, "a feature needs a name before its ':'");
    if (!espi_number_parse(s->at + colon, size - colon, &value)) {
        espi_stream_advance(s, colon);
        return espi_stream_fail(s, err, "the value %s of a feature is not a finite number",
                                espi_quote(s->at, size - colon, quoted));
    }
    const esp_status status = espi_add_feature(column, s->at, colon - 1, value, err);
    espi_stream_advance(s, size);
    return status;
}

esp_status espi_reader_vector(espi_reader *r, const char *name, size_t size, espi_vector_shape shape, espi_column **out,
                              esp_error *err)
{
    static const char *const words[] = {"named features", "an array", "one number"};
    char quoted[96];
    const esp_status status = espi_reader_column(r, name, size, ESP_COLUMN_VECTOR, out, err);
    if (status != ESP_OK) return status;
    espi_vectors *v = &(*out)->vectors;
    const espi_vector_shape first = v->scalar ? ESPI_SCALAR : v->dense ? ESPI_DENSE : ESPI_SPARSE;
    if (r->data->rows > 0 && first != shape)
        return espi_stream_fail(&r->stream, err, "vector %s is %s here, but %s in the first example",
                                espi_quote(name, size, quoted), words[shape], words[first]);
    v->scalar = shape == ESPI_SCALAR;
    v->dense = shape == ESPI_DENSE;
    return ESP_OK;
}

esp_status espi_reader_element(espi_reader *r, espi_column *column, size_t index, double value, esp_error *err)
{
    const espi_vectors *v = &column->vectors;
    char name[24], quoted[96];
    if (r->data->rows > 0 && index >= v->row[1])
        return espi_stream_fail(&r->stream, err, "vector %s has more than the %zu numbers of the first example",
                                espi_quote(column->name, strlen(column->name), quoted), v->row[1]);
    const int size = snprintf(name, sizeof name, "%zu", index);
    return espi_add_feature(column, name, (size_t)size, value, err);
}

esp_status espi_reader_end_elements(espi_reader *r, espi_column *column, size_t count, esp_error *err)
{
    const espi_vectors *v = &column->vectors;
    char quoted[96];
    if (r->data->rows > 0 && count < v->row[1])
        return espi_stream_fail(&r->stream, err, "vector %s has length %zu here, but %zu in the first example",
                                espi_quote(column->name, strlen(column->name), quoted), count, v->row[1]);
    return espi_reader_place(r, espi_end_vector(column, err), err);
}
