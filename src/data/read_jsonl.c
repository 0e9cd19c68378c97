/* JSON Lines: one object per line, a field per column.
 *
 *     {"y": "DESC", "tree": "(S (NP ...))", "words": "how did ...", "x": {"len": 7, "caps": 1}}
 *
 * Why not a JSON library: trees go straight from the string into the forest, so that a line of gigabytes takes
 * little memory; bytes that are no UTF-8 are taken as they are; and errors name the byte. A value nests one level
 * deep, so nothing recurs. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "data/reader.h"

#include <string.h>

typedef struct json { /* reader->state */
    char *key;        /* the field at hand */
    size_t key_size, key_capacity;
    bool target_seen; /* in this row */
} json;

static const bool stop_number[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, [','] = true,
                                      ['}'] = true, [']'] = true,  [':'] = true,  ['"'] = true};

/* ---------------------------------------------------------------- strings */

/* Some decoded bytes of a string: a run of the input, or what one escape stands for. */
typedef struct piece {
    const char *bytes;
    size_t size; /* 0: the closing quote is next */
    bool escape; /* then it is taken as a whole */
    size_t raw;  /* length in the input */
    char decoded[4];
} piece;

static esp_status open_string(const espi_reader *r, esp_error *err)
{
    return espi_stream_fail(&r->stream, err, "the line ends inside a string; its closing '\"' is missing");
}

/* Four hexadecimal digits, `from` bytes ahead. */
static bool hex4(espi_reader *r, size_t from, uint32_t *code)
{
    if (!espi_reader_ahead(r, from + 4)) return false;
    *code = 0;
    for (size_t i = from; i < from + 4; i++) {
        const char c = r->stream.at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return false;
        *code = *code * 16 + (uint32_t)digit;
    }
    return true;
}

static size_t encode_utf8(uint32_t code, char text[4])
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    const size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6) text[i] = (char)(0x80 | (code & 0x3F));
    text[0] = (char)((0xF00u >> size & 0xFF) | code);
    return size;
}

static esp_status unicode_escape(espi_reader *r, piece *p, esp_error *err)
{
    const espi_stream *s = &r->stream;
    uint32_t code, low;
    if (!hex4(r, 2, &code)) return espi_stream_fail(s, err, "\\u needs four hexadecimal digits behind it");
    p->raw = 6;
    if (code >= 0xD800 && code < 0xDC00 && espi_reader_ahead(r, 8) && s->at[6] == '\\' && s->at[7] == 'u' &&
        hex4(r, 8, &low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p->raw = 12;
    }
    if (code == 0) return espi_stream_fail(s, err, "\\u0000 is a NUL byte; text must not contain any");
    if (code >= 0xD800 && code < 0xE000)
        return espi_stream_fail(s, err, "\\u%04X is half of a surrogate pair; the other half is missing", code);
    p->size = encode_utf8(code, p->decoded);
    return ESP_OK;
}

static esp_status escape(espi_reader *r, piece *p, esp_error *err)
{
    static const char from[8] = "\"\\/bfnrt", to[8] = "\"\\/\b\f\n\r\t";
    char quoted[96];
    if (!espi_reader_ahead(r, 2)) return open_string(r, err);
    p->escape = true;
    p->bytes = p->decoded;
    const char c = r->stream.at[1], *hit = memchr(from, c, sizeof from);
    if (c == 'u') return unicode_escape(r, p, err);
    if (hit == NULL)
        return espi_stream_fail(&r->stream, err, "%s is no escape of JSON; a backslash itself is written \\\\",
                                espi_quote(r->stream.at, 2, quoted));
    p->decoded[0] = to[hit - from];
    p->size = 1;
    p->raw = 2;
    return ESP_OK;
}

static esp_status next_piece(espi_reader *r, piece *p, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    const int c = espi_stream_peek(s);
    *p = (piece){.bytes = s->at};
    if (c == '"') return ESP_OK;
    if (c == '\\') return escape(r, p, err);
    if (c < 0 || c == '\n') return open_string(r, err);
    if (c < 0x20)
        return espi_stream_fail(s, err, "the control character %s must be escaped in a string",
                                espi_quote(s->at, 1, quoted));
    const char *at = s->at;
    while (at < s->end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\') at++;
    p->size = (size_t)(at - s->at);
    return ESP_OK;
}

static void take(espi_reader *r, const piece *p, size_t used)
{
    const size_t raw = !p->escape ? used : used == p->size ? p->raw : 0;
    r->stream.at += raw;
    r->stream.column += raw;
}

/* What is left of a string, with its closing quote, behind text[0..*size). */
static esp_status take_rest(espi_reader *r, char **text, size_t *size, size_t *capacity, esp_error *err)
{
    for (;;) {
        piece p;
        const esp_status status = next_piece(r, &p, err);
        if (status != ESP_OK) return status;
        if (p.size == 0) break;
        if (!espi_reserve(text, capacity, *size + p.size, 1)) return espi_no_memory(err);
        memcpy(*text + *size, p.bytes, p.size);
        *size += p.size;
        take(r, &p, p.size);
    }
    espi_stream_skip(&r->stream);
    return ESP_OK;
}

static esp_status take_scratch(espi_reader *r, esp_error *err)
{
    r->scratch_size = 0;
    return take_rest(r, &r->scratch, &r->scratch_size, &r->scratch_capacity, err);
}

static size_t count_blanks(const piece *p)
{
    size_t n = 0;
    while (n < p->size && (p->bytes[n] == ' ' || (p->bytes[n] >= '\t' && p->bytes[n] <= '\r'))) n++;
    return n;
}

/* Takes blanks; *first is the byte behind them, -1 at the closing quote. */
static esp_status skip_blanks(espi_reader *r, int *first, esp_error *err)
{
    for (;;) {
        piece p;
        const esp_status status = next_piece(r, &p, err);
        if (status != ESP_OK) return status;
        const size_t blanks = count_blanks(&p);
        *first = blanks < p.size ? (unsigned char)p.bytes[blanks] : -1;
        take(r, &p, blanks);
        if (*first >= 0 || p.size == 0) return ESP_OK;
    }
}

/* ----------------------------------------------------------------- values */

#define TEXT_INSTEAD "text that starts with '(' is written \"\\\\(...\""

/* What to add where the string that made trees of a column is none itself. */
static const char *text_instead(const espi_reader *r, const espi_column *column)
{
    return column->decided == r->stream.line ? "; " TEXT_INSTEAD : "";
}

static esp_status no_tree(const espi_reader *r, const espi_column *column, esp_error *err)
{
    char quoted[96];
    espi_quote(column->name, strlen(column->name), quoted);
    if (column->decided == 0)
        return espi_stream_fail(&r->stream, err, "field %s holds trees; a tree starts with '('", quoted);
    return espi_stream_fail(&r->stream, err,
                            "field %s holds trees, since line %zu starts it with '('; " TEXT_INSTEAD " there", quoted,
                            column->decided);
}

/* A tree up to the closing quote, which is taken. The stream is at its opening bracket. */
static esp_status tree_string(espi_reader *r, espi_column *column, esp_error *err)
{
    espi_tree_parser *t = &r->trees;
    char quoted[96];
    espi_tree_begin(t, &column->trees, r->options.clean);
    bool complete = false;
    for (;;) {
        piece p;
        const esp_status status = next_piece(r, &p, err);
        if (status != ESP_OK) return status;
        if (p.size == 0) break;
        size_t used = count_blanks(&p);
        const espi_tree_state state = complete ? ESPI_TREE_COMPLETE : espi_tree_feed(t, p.bytes, p.size, &used);
        take(r, &p, used);
        if (state == ESPI_TREE_NO_MEMORY) return espi_no_memory(err);
        if (state == ESPI_TREE_WRONG)
            return espi_stream_fail(&r->stream, err, "%s%s", t->reason, text_instead(r, column));
        if (complete && used < p.size)
            return espi_stream_fail(&r->stream, err, "the tree is complete, but %s follows; a field holds one tree%s",
                                    espi_quote(p.bytes + used, p.size - used, quoted), text_instead(r, column));
        complete = state == ESPI_TREE_COMPLETE;
    }
    if (!complete)
        return espi_stream_fail(&r->stream, err, "the string ends inside a tree; closing brackets missing: %zu%s",
                                espi_tree_open(t), text_instead(r, column));
    espi_stream_skip(&r->stream);
    return espi_set_tree(column, t->root, err);
}

static esp_status string_value(espi_reader *r, esp_error *err)
{
    const json *j = r->state;
    espi_stream *s = &r->stream;
    const size_t place = s->column;
    size_t index;
    int first;
    espi_stream_skip(s);
    esp_status status = skip_blanks(r, &first, err);
    if (status != ESP_OK) return status;
    espi_column *column = espi_find_column(r->data, j->key, j->key_size, &index) ? &r->data->column[index] : NULL;
    const bool known = column != NULL && column->type == ESP_COLUMN_TREE;
    if (column != NULL && column->type == ESP_COLUMN_SEQUENCE && column->rows == r->data->rows &&
        column->sequences.tokens == 0 && first == '(')
        status = espi_become_trees(column, err);
    if (status != ESP_OK) return status;
    const bool tree = column != NULL ? column->type == ESP_COLUMN_TREE : first == '(';
    if (tree && first >= 0 && first != '(') return no_tree(r, column, err);
    status = espi_row_column(r->data, j->key, j->key_size, tree ? ESP_COLUMN_TREE : ESP_COLUMN_SEQUENCE, &column, err);
    if (status == ESP_OK && tree && !known) column->decided = s->line;
    if (status == ESP_OK && tree && first >= 0) return tree_string(r, column, err);
    if (status == ESP_OK) status = take_scratch(r, err);
    if (status == ESP_OK)
        status = tree ? espi_set_tree(column, ESPI_NO_NODE, err)
                      : espi_set_sequence(column, r->scratch, r->scratch_size, err);
    return espi_reader_place_at(r, s->line, place, status, err);
}

/* Why the value at the stream is no number. */
static esp_status no_number(espi_reader *r, esp_error *err)
{
    const espi_stream *s = &r->stream;
    char quoted[96];
    size_t size;
    const int c = espi_stream_peek(&r->stream);
    if (c == '"') return espi_stream_fail(s, err, "a number is needed here, not a string");
    if (c == '{' || c == '[')
        return espi_stream_fail(s, err, "a number is needed here; objects and arrays nest no deeper");
    const esp_status status = espi_reader_token(r, stop_number, &size, err);
    if (status != ESP_OK) return status;
    const char *digits = espi_quote(s->at, size, quoted);
    if (size == 0) return espi_stream_fail(s, err, "a value is missing here");
    if (c == 't' || c == 'f')
        return espi_stream_fail(s, err, "%s is no value; write 1 and 0, or strings for classes", digits);
    if (c == 'n')
        return espi_stream_fail(s, err, "%s is no value; a missing text or tree is \"\", a missing vector {}", digits);
    if (c == 'N' || c == 'I' || (size > 1 && s->at[0] == '-' && s->at[1] == 'I') || espi_is_json_number(s->at, size))
        return espi_stream_fail(s, err, "%s is not a finite number", digits);
    return espi_stream_fail(s, err, "%s is no number as JSON writes them, and text needs quotes", digits);
}

/* The number at the stream, `size` bytes long, which are not taken. */
static esp_status number(espi_reader *r, double *value, size_t *size, esp_error *err)
{
    *size = espi_stream_token(&r->stream, stop_number);
    if (espi_is_json_number(r->stream.at, *size) && espi_number_parse(r->stream.at, *size, value)) return ESP_OK;
    return no_number(r, err);
}

/* Between the members of an object or array: *more is whether a ',' was taken, not the closing `end`. */
static esp_status separator(espi_reader *r, char end, bool *more, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    espi_stream_blanks(s, false);
    const int c = espi_stream_peek(s);
    *more = c == ',';
    if (c != ',' && c != end && (c < 0 || c == '\n'))
        return espi_stream_fail(s, err, "the line ends where ',' or '%c' is needed; one line holds one object", end);
    if (c != ',' && c != end)
        return espi_stream_fail(s, err, "',' or '%c' is needed here, not %s", end, espi_quote(s->at, 1, quoted));
    espi_stream_skip(s);
    espi_stream_blanks(s, false);
    return ESP_OK;
}

/* A name and its ':'; the stream is where its quote must be. */
static esp_status name_and_colon(espi_reader *r, char **text, size_t *size, size_t *capacity, const char *what,
                                 esp_error *err)
{
    espi_stream *s = &r->stream;
    const size_t place = s->column;
    *size = 0;
    const int c = espi_stream_peek(s);
    if (c < 0 || c == '\n')
        return espi_stream_fail(
            s, err, "the line ends inside an object; a line holds one object, whole: 'jq -c .' writes it so");
    if (c != '"') return espi_stream_fail(s, err, "the name of a %s is needed here, in double quotes", what);
    espi_stream_skip(s);
    esp_status status = take_rest(r, text, size, capacity, err);
    if (status != ESP_OK) return status;
    if (*size == 0)
        return espi_reader_place_at(r, s->line, place, espi_fail(err, ESP_ERR_PARSE, "the name of a %s is empty", what),
                                    err);
    espi_stream_blanks(s, false);
    if (espi_stream_peek(s) != ':') return espi_stream_fail(s, err, "':' is needed behind the name of a %s", what);
    espi_stream_skip(s);
    espi_stream_blanks(s, false);
    return ESP_OK;
}

/* Whether the container that opens at the stream is not empty; takes its opening byte, or all of it. */
static bool opens(espi_reader *r, char end)
{
    espi_stream_skip(&r->stream);
    espi_stream_blanks(&r->stream, false);
    if (espi_stream_peek(&r->stream) != end) return true;
    espi_stream_skip(&r->stream);
    return false;
}

static esp_status object_value(espi_reader *r, esp_error *err)
{
    const json *j = r->state;
    espi_column *column;
    const size_t place = r->stream.column;
    esp_status status = espi_reader_vector(r, j->key, j->key_size, ESPI_SPARSE, &column, err);
    bool more = status == ESP_OK && opens(r, '}');
    while (status == ESP_OK && more) {
        double value;
        size_t size = 0;
        status = name_and_colon(r, &r->scratch, &r->scratch_size, &r->scratch_capacity, "feature", err);
        if (status == ESP_OK) status = number(r, &value, &size, err);
        if (status == ESP_OK) status = espi_add_feature(column, r->scratch, r->scratch_size, value, err);
        espi_stream_advance(&r->stream, status == ESP_OK ? size : 0);
        if (status == ESP_OK) status = separator(r, '}', &more, err);
    }
    if (status == ESP_OK) status = espi_end_vector(column, err);
    return espi_reader_place_at(r, r->stream.line, place, status, err);
}

static esp_status array_value(espi_reader *r, esp_error *err)
{
    const json *j = r->state;
    espi_column *column;
    size_t count = 0, size = 0;
    esp_status status = espi_reader_vector(r, j->key, j->key_size, ESPI_DENSE, &column, err);
    bool more = status == ESP_OK && opens(r, ']');
    while (status == ESP_OK && more) {
        double value;
        status = number(r, &value, &size, err);
        if (status == ESP_OK) status = espi_reader_element(r, column, count++, value, err);
        espi_stream_advance(&r->stream, status == ESP_OK ? size : 0);
        if (status == ESP_OK) status = separator(r, ']', &more, err);
    }
    return status == ESP_OK ? espi_reader_end_elements(r, column, count, err) : status;
}

static esp_status scalar_value(espi_reader *r, esp_error *err)
{
    const json *j = r->state;
    espi_column *column;
    double value;
    size_t size;
    esp_status status = number(r, &value, &size, err);
    if (status == ESP_OK) status = espi_reader_vector(r, j->key, j->key_size, ESPI_SCALAR, &column, err);
    if (status == ESP_OK) status = espi_add_feature(column, "0", 1, value, err);
    if (status == ESP_OK) status = espi_end_vector(column, err);
    espi_stream_advance(&r->stream, status == ESP_OK ? size : 0);
    return status;
}

static esp_status target_value(espi_reader *r, const char *name, int c, esp_error *err)
{
    espi_stream *s = &r->stream;
    const size_t place = s->column;
    char quoted[96];
    double value;
    size_t size;
    esp_status status;
    if (c == '{' || c == '[')
        return espi_stream_fail(s, err, "the target %s must be a string or a number",
                                espi_quote(name, strlen(name), quoted));
    if (c == '"') {
        espi_stream_skip(s);
        status = take_scratch(r, err);
        if (status == ESP_OK && r->scratch_size == 0)
            status = espi_fail(err, ESP_ERR_PARSE, "the target %s is empty", espi_quote(name, strlen(name), quoted));
        if (status == ESP_OK) status = espi_set_target(r->data, name, r->scratch, r->scratch_size, false, err);
    } else {
        status = number(r, &value, &size, err);
        if (status == ESP_OK) status = espi_set_target(r->data, name, s->at, size, true, err);
        espi_stream_advance(s, status == ESP_OK ? size : 0);
    }
    return espi_reader_place_at(r, s->line, place, status, err);
}

/* ------------------------------------------------------------------- rows */

static esp_status field(espi_reader *r, esp_error *err)
{
    json *j = r->state;
    const char *target = r->options.target != NULL ? r->options.target : "y";
    const size_t line = r->stream.line, place = r->stream.column;
    esp_status status = name_and_colon(r, &j->key, &j->key_size, &j->key_capacity, "field", err);
    if (status != ESP_OK) return status;
    const int c = espi_stream_peek(&r->stream);
    if (strlen(target) == j->key_size && memcmp(target, j->key, j->key_size) == 0) {
        if (j->target_seen) status = espi_fail(err, ESP_ERR_PARSE, "the target '%s' is given twice", target);
        j->target_seen = true;
        if (status == ESP_OK) status = target_value(r, target, c, err);
        return espi_reader_place_at(r, line, place, status, err);
    }
    if (c == '"') return string_value(r, err);
    if (c == '{') return object_value(r, err);
    return c == '[' ? array_value(r, err) : scalar_value(r, err);
}

/* The target that was asked for is not there: say what is. */
static esp_status no_target(espi_reader *r, esp_error *err)
{
    const esp_dataset *data = r->data;
    char quoted[96];
    r->scratch_size = 0;
    for (size_t i = 0; i < data->columns; i++) {
        const char *name = espi_quote(data->column[i].name, strlen(data->column[i].name), quoted);
        if ((i > 0 && !espi_reader_gather(r, ", ", 2)) || !espi_reader_gather(r, name, strlen(name)))
            return espi_no_memory(err);
    }
    const int size = r->scratch_size < 500 ? (int)r->scratch_size : 500;
    espi_fail(err, ESP_ERR_PARSE, "the target %s is missing; the fields are %.*s",
              espi_quote(r->options.target, strlen(r->options.target), quoted), size,
              data->columns > 0 ? r->scratch : "");
    return espi_reader_place_at(r, r->row_line, r->row_column, ESP_ERR_PARSE, err);
}

static esp_status array_of_objects(const espi_stream *s, esp_error *err)
{
    return espi_stream_fail(s, err,
                            "a line must be an object, {...}, not an array: jq -c '.[]' FILE takes objects out of one");
}

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    if (r->state == NULL) r->state = espi_alloc_zero(1, sizeof(json));
    json *j = r->state;
    if (j == NULL) return espi_no_memory(err);
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    if (espi_stream_peek(s) == '[' && r->data->columns == 0) return array_of_objects(s, err);
    if (espi_stream_peek(s) != '{') return espi_stream_fail(s, err, "a line of JSON Lines must be an object: {...}");
    j->target_seen = false;
    esp_status status = ESP_OK;
    bool more = opens(r, '}');
    while (status == ESP_OK && more) {
        status = field(r, err);
        if (status == ESP_OK) status = separator(r, '}', &more, err);
    }
    if (status == ESP_OK && r->options.target != NULL && !j->target_seen) status = no_target(r, err);
    return status == ESP_OK ? espi_reader_line_end(r, "the object", err) : status;
}

static void close(espi_reader *r)
{
    json *j = r->state;
    if (j != NULL) espi_free(j->key);
    espi_free(j);
}

static espi_claim recognise(const char *line, size_t size)
{
    return size > 0 && line[0] == '{' ? ESPI_CLAIM_FIRST_BYTE : ESPI_CLAIM_NONE;
}

static esp_status advise(const espi_stream *s, esp_error *err)
{
    return s->at[0] == '[' ? array_of_objects(s, err) : ESP_OK;
}

const espi_reader_class espi_read_jsonl = {
    .target = ESPI_TARGET_FIELD, .lines = true, .recognise = recognise, .advise = advise, .next = next, .close = close};
