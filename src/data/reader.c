/* Opens a data file, recognises its format and drives the reader of that format row by row; with the helpers that
 * the readers share. */
#include "data/reader.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { LOOK = 1 << 16 /* bytes of the first line that decide about the format */, PROGRESS_ROWS = 1000 };

static const struct {
    const char *name;
    const espi_reader_class *class;
} formats[] = {
    [ESP_FORMAT_AUTO] = {"auto", NULL},
    [ESP_FORMAT_JSONL] = {"jsonl", &espi_read_jsonl},
    [ESP_FORMAT_SVMTK] = {"svmtk", &espi_read_svmtk},
    [ESP_FORMAT_KELP] = {"kelp", &espi_read_svmtk},
    [ESP_FORMAT_LIBSVM] = {"libsvm", &espi_read_libsvm},
    [ESP_FORMAT_PENN] = {"penn", &espi_read_penn},
    [ESP_FORMAT_CONLLU] = {"conllu", &espi_read_conllu},
    [ESP_FORMAT_SRL] = {"srl", &espi_read_srl},
};
enum { FORMATS = sizeof formats / sizeof *formats };

const bool espi_stop_blank[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true};

bool esp_format_find(const char *name, esp_format *format)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) != 0) continue;
        *format = (esp_format)i;
        return true;
    }
    return false;
}

const char *esp_format_name(esp_format format) { return (size_t)format < FORMATS ? formats[format].name : NULL; }

/* --------------------------------------------------------------- helpers */

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

esp_status espi_reader_vector(espi_reader *r, const char *name, size_t size, espi_shape shape, espi_column **out,
                              esp_error *err)
{
    static const char *const words[] = {"named features", "an array", "one number"};
    char quoted[96];
    const esp_status status = espi_reader_column(r, name, size, ESP_COLUMN_VECTOR, out, err);
    if (status != ESP_OK) return status;
    espi_vectors *v = &(*out)->vectors;
    const espi_shape first = v->scalar ? ESPI_SCALAR : v->dense ? ESPI_DENSE : ESPI_SPARSE;
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

/* ----------------------------------------------------------- recognition */

/* The first line, or its first LOOK bytes; looked at, not taken. */
static size_t first_line(espi_stream *s)
{
    size_t seen = 0;
    for (;;) {
        const size_t have = (size_t)(s->end - s->at);
        const char *newline = have > seen ? memchr(s->at + seen, '\n', have - seen) : NULL;
        if (newline != NULL) return (size_t)(newline - s->at);
        seen = have;
        if (have >= LOOK || !espi_stream_fill(s)) return (size_t)(s->end - s->at);
    }
}

/* Ten fields separated by TABs, the first a word's number. */
static bool like_conllu(const char *text, size_t size)
{
    size_t tabs = 0, digits = 0;
    while (digits < size &&
           ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '-' || text[digits] == '.'))
        digits++;
    if (digits == 0 || digits == size || text[digits] != '\t') return false;
    for (size_t i = 0; i < size; i++) tabs += text[i] == '\t';
    return tabs == 9;
}

/* A marker such as |BT|, |EV| or |BT:name|. */
static bool has_marker(const char *text, size_t size, bool *named)
{
    for (size_t i = 0; i + 3 < size; i++) {
        if (text[i] != '|' || (text[i + 1] != 'B' && text[i + 1] != 'E')) continue;
        size_t at = i + 2;
        while (at < size && text[at] >= 'A' && text[at] <= 'Z') at++;
        if (at == i + 2 || at == size || (text[at] != '|' && text[at] != ':')) continue;
        *named = text[at] == ':';
        return true;
    }
    return false;
}

/* A label and then index:value, or a number alone. A value that is wrong is the reader's to tell, if the label or the
 * index is a number. */
static bool like_libsvm(const char *text, size_t size)
{
    size_t label = 0, at, end, index;
    double value;
    while (label < size && !espi_stop_blank[(unsigned char)text[label]]) label++;
    for (at = label; at < size && espi_stop_blank[(unsigned char)text[at]];) at++;
    for (end = at; end < size && !espi_stop_blank[(unsigned char)text[end]] && text[end] != '#';) end++;
    if (end == at) return espi_number_parse(text, label, &value);
    for (index = at; index < end && text[index] >= '0' && text[index] <= '9';) index++;
    if (index > at && index < end && text[index] == ':') return true;
    size_t colon = end;
    while (colon > at && text[colon - 1] != ':') colon--;
    return colon > at + 1 && (espi_number_like(text, label) || espi_number_parse(text + colon, end - colon, &value));
}

esp_status espi_json_array(const espi_stream *s, esp_error *err)
{
    return espi_stream_fail(s, err,
                            "a line must be an object, {...}, not an array: jq -c '.[]' FILE takes objects out of one");
}

static esp_status recognise(espi_reader *r, esp_format *format, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    bool named;
    if (!espi_reader_start(r)) return ESP_OK; /* nothing there: any reader will say so */
    const size_t size = first_line(s);
    if (s->status != ESP_OK) return ESP_OK; /* told by the driver */
    if (s->at[0] == '{') *format = ESP_FORMAT_JSONL;
    else if (s->at[0] == '(') *format = ESP_FORMAT_PENN;
    else if (size > 1 && memcmp(s->at, "T\t", 2) == 0) *format = ESP_FORMAT_SRL;
    else if (like_conllu(s->at, size)) *format = ESP_FORMAT_CONLLU;
    else if (has_marker(s->at, size, &named)) *format = named ? ESP_FORMAT_KELP : ESP_FORMAT_SVMTK;
    else if (like_libsvm(s->at, size)) *format = ESP_FORMAT_LIBSVM;
    else if (s->at[0] == '[') return espi_json_array(s, err);
    else
        return espi_stream_fail(
            s, err,
            "%s is the start of no known format: jsonl ({...}), penn ((...)), svmtk (1 |BT| ...), kelp "
            "(LABEL |BT:name| ...), libsvm (1 3:0.5 ...), conllu (ten fields between TABs) or srl (T, TAB, "
            "...); --from names one",
            espi_quote(s->at, size, quoted));
    return ESP_OK;
}

/* ---------------------------------------------------------------- driver */

static esp_status skip_bad(espi_reader *r, const espi_reader_class *class, bool inside, esp_error *err)
{
    esp_dataset *data = r->data;
    data->bad_rows++;
    if (data->first_bad == NULL) data->first_bad = espi_copy_text(err->message, strlen(err->message));
    if (data->first_bad == NULL) return espi_no_memory(err);
    if (inside && class->recover != NULL) class->recover(r);
    else if (inside) espi_stream_skip_line(&r->stream);
    return ESP_OK;
}

/* The result so far against esp_run.memory. */
static esp_status check_memory(const espi_reader *r, esp_error *err)
{
    const esp_dataset *data = r->data;
    const size_t limit = r->stream.run != NULL ? r->stream.run->memory : 0;
    char allowed[32];
    if (limit == 0) return ESP_OK;
    size_t bytes = espi_symbols_bytes(&data->target_texts) + data->target_capacity * sizeof *data->target;
    for (size_t i = 0; i < data->columns; i++) bytes += espi_column_bytes(&data->column[i]);
    if (bytes <= limit) return ESP_OK;
    return espi_fail(err, ESP_ERR_MEMORY, "%s: the examples up to line %zu need more memory than the %s allowed",
                     r->stream.name, r->stream.line, espi_size_text((double)limit, allowed));
}

/* A row of a stream: handed on and, unless it is the first, forgotten. */
static esp_status pass_on(espi_reader *r, esp_error *err)
{
    const esp_status status = r->task(r->context, r->data, r->data->rows - 1, err);
    if (r->data->rows > 1) espi_row_undo(r->data);
    return status;
}

static esp_status read_rows(espi_reader *r, const espi_reader_class *class, esp_error *err)
{
    bool end = false;
    esp_status status = ESP_OK;
    for (size_t n = 0; status == ESP_OK && !end; n++) {
        if (n % PROGRESS_ROWS == 0) status = espi_progress(r->stream.run, "reading", -1.0, err);
        if (status != ESP_OK) break;
        espi_row_begin(r->data);
        status = class->next(r, &end, err);
        const bool inside = status != ESP_OK;
        if (!inside && !end)
            status = espi_reader_place_at(r, r->row_line, r->row_column, espi_row_end(r->data, err), err);
        if (status == ESP_OK) status = check_memory(r, err);
        if (status == ESP_OK && !end && r->task != NULL && (status = pass_on(r, err)) != ESP_OK) return status;
        if (status == ESP_OK && !end) continue;
        espi_row_drop(r->data);
        if (status == ESP_ERR_PARSE && r->options.skip_bad && r->stream.status == ESP_OK)
            status = skip_bad(r, class, inside, err);
    }
    if (r->stream.status == ESP_OK || status == ESP_ERR_MEMORY) return status;
    *err = r->stream.error; /* whatever the reader made of an input that broke off */
    return r->stream.status;
}

/* options.target must suit the format. */
static esp_status check_target(const espi_reader *r, const espi_reader_class *class, esp_format format, esp_error *err)
{
    const char *target = r->options.target;
    char quoted[96];
    if (target == NULL || class->target == ESPI_TARGET_FIELD) return ESP_OK;
    espi_quote(target, strlen(target), quoted);
    if (class->target == ESPI_TARGET_NONE)
        return espi_fail(err, ESP_ERR_PARAM, "%s: target %s: the format %s has no targets", r->stream.name, quoted,
                         formats[format].name);
    if (strcmp(target, "y") == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "%s: target %s: the format %s has one label, and its name is y",
                     r->stream.name, quoted, formats[format].name);
}

static esp_status check_examples(const espi_reader *r, esp_error *err)
{
    const esp_dataset *data = r->data;
    if (data->rows > 0) return ESP_OK;
    if (data->bad_rows > 0)
        return espi_fail(err, ESP_ERR_PARSE, "%s: no examples: all %zu are bad, the first at %s", r->stream.name,
                         data->bad_rows, data->first_bad);
    return espi_fail(err, ESP_ERR_PARSE, "%s: no examples: the file is empty or holds only blank lines and comments",
                     r->stream.name);
}

static esp_status read_open(espi_reader *r, esp_error *err)
{
    espi_stream *s = &r->stream;
    esp_format format = r->options.format;
    if (espi_reader_ahead(r, 3) && memcmp(s->at, "\xEF\xBB\xBF", 3) == 0) s->at += 3; /* editors do not count it */
    esp_status status = ESP_OK;
    if (format == ESP_FORMAT_AUTO) status = recognise(r, &format, err);
    if (status != ESP_OK) return status;
    if (format == ESP_FORMAT_AUTO) format = ESP_FORMAT_JSONL;
    const espi_reader_class *class = formats[format].class;
    r->data = espi_dataset_new(format);
    if (r->data == NULL) return espi_no_memory(err);
    r->data->lowercase = r->options.lowercase;
    r->data->digits = r->options.digits;
    status = check_target(r, class, format, err);
    if (status == ESP_OK) status = read_rows(r, class, err);
    if (status == ESP_OK) status = check_examples(r, err);
    if (class->close != NULL) class->close(r);
    return status;
}

/* Reads from the stream that was opened, unless `status` says that it was not. */
static esp_status finish(espi_reader *r, esp_status status, esp_dataset **out, esp_error *error, esp_error *err)
{
    if (status == ESP_OK) status = read_open(r, error);
    if (status == ESP_OK) {
        *out = r->data;
    } else {
        esp_dataset_free(r->data);
        if (err != NULL) *err = *error;
    }
    espi_stream_close(&r->stream);
    espi_tree_parser_free(&r->trees);
    espi_free(r->scratch);
    return status;
}

static esp_status begin(espi_reader *r, const esp_read_options *options, esp_error *error)
{
    if (options != NULL) r->options = *options;
    if ((size_t)r->options.format < FORMATS) return ESP_OK;
    return espi_fail(error, ESP_ERR_PARAM, "unknown data format number %d", (int)r->options.format);
}

esp_status esp_dataset_read(const char *path, const esp_read_options *options, const esp_run *run, esp_dataset **out,
                            esp_error *err)
{
    espi_reader r = {0};
    esp_error error = {0};
    *out = NULL;
    esp_status status = begin(&r, options, &error);
    if (status == ESP_OK) status = espi_stream_open(&r.stream, path, run, &error);
    return finish(&r, status, out, &error, err);
}

esp_status espi_dataset_stream(const char *path, const esp_read_options *options, const esp_run *run,
                               espi_row_task task, void *context, uint64_t *bad, esp_error *err)
{
    espi_reader r = {.task = task, .context = context};
    esp_error error = {0};
    esp_dataset *data = NULL;
    esp_status status = begin(&r, options, &error);
    if (status == ESP_OK) status = espi_stream_open(&r.stream, path, run, &error);
    status = finish(&r, status, &data, &error, err);
    *bad = data != NULL ? data->bad_rows : 0;
    esp_dataset_free(data);
    return status;
}

esp_status esp_dataset_parse(const void *bytes, size_t size, const char *name, const esp_read_options *options,
                             const esp_run *run, esp_dataset **out, esp_error *err)
{
    espi_reader r = {0};
    esp_error error = {0};
    *out = NULL;
    esp_status status = begin(&r, options, &error);
    if (status == ESP_OK) status = espi_stream_open_memory(&r.stream, bytes, size, name, run, &error);
    return finish(&r, status, out, &error, err);
}
