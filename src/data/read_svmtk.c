/* SVM-light-TK and KeLP: a line is a label and sections between markers.
 *
 *     1 |BT| (S ...) |BT| (S ...) |ET| 3:0.5 7:1 |BV| 2:1 |EV|
 *     DESC |BT:grct| (...) |ET| |BV:bow| a:1.0 |EV| |BS:quest| free text |ES| |BSQ:s| (_a) (_b) |ESQ| |BDV:v| 1.0,2.0
 * |EDV|
 *
 * Both are one language: in SVM-light-TK sections have no names and the first vector has no |BV|. */
#include "base/number.h"
#include "base/status.h"
#include "data/reader.h"

#include <stdio.h>
#include <string.h>

typedef enum marker { BT, ET, BV, EV, BS, ES, BSQ, ESQ, BDV, EDV, MARKERS } marker;
static const char *const markers[MARKERS] = {"BT", "ET", "BV", "EV", "BS", "ES", "BSQ", "ESQ", "BDV", "EDV"};

/* How far a row is. */
typedef struct row {
    size_t unnamed[MARKERS]; /* sections without a name, by the marker that opens them */
    size_t vectors;
    espi_column *vector; /* open */
    bool bare;           /* it has no |BV| */
    size_t vector_place; /* where it starts */
} row;

static const bool stop_bar[256] = {['|'] = true, ['\n'] = true};
static const bool stop_number[256] = {
    [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, [','] = true, ['|'] = true};
static const bool stop_element[256] = {['('] = true, [')'] = true, ['\\'] = true, ['\n'] = true};

/* The marker at the stream; its name, if it has one, is put into scratch. Nothing is taken on failure. */
static esp_status take_marker(espi_reader *r, marker *kind, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    size_t size = 1;
    while (espi_reader_ahead(r, size + 1) && !stop_bar[(unsigned char)s->at[size]]) size++;
    const bool closed = (size_t)(s->end - s->at) > size && s->at[size] == '|';
    size_t letters = 1;
    while (letters < size && s->at[letters] >= 'A' && s->at[letters] <= 'Z') letters++;
    const bool named = letters < size && s->at[letters] == ':';
    *kind = MARKERS;
    for (int i = 0; i < MARKERS && closed && (letters == size || named); i++)
        if (strlen(markers[i]) == letters - 1 && memcmp(markers[i], s->at + 1, letters - 1) == 0) *kind = (marker)i;
    if (*kind == MARKERS)
        return espi_stream_fail(s, err,
                                "%s is no marker; there are |BT|, |BV|, |BS|, |BSQ|, |BDV|, named like |BT:name| "
                                "or not, and |ET|, |EV|, |ES|, |ESQ|, |EDV|",
                                espi_quote(s->at, size + closed, quoted));
    if (named && letters + 1 == size) return espi_stream_fail(s, err, "a marker has an empty name");
    if (named && letters + 2 == size && s->at[letters + 1] == 'y')
        return espi_stream_fail(s, err, "a section must not be named y; that is the name of the label");
    r->scratch_size = 0;
    if (named && !espi_reader_gather(r, s->at + letters + 1, size - letters - 1)) return espi_no_memory(err);
    if (memchr(s->at, '\0', size) != NULL) return espi_stream_fail(s, err, "the name of a marker holds a NUL byte");
    if (named && r->options.format == ESP_FORMAT_AUTO) r->data->format = ESP_FORMAT_KELP;
    espi_stream_advance(s, size + 1);
    return ESP_OK;
}

/* Takes the marker that must be next. */
static esp_status expect(espi_reader *r, marker wanted, const char *what, esp_error *err)
{
    espi_stream *s = &r->stream;
    marker kind;
    espi_stream_blanks(s, false);
    const size_t line = s->line, place = s->column;
    if (espi_stream_peek(s) != '|') return espi_stream_fail(s, err, "%s must be closed by |%s|", what, markers[wanted]);
    const esp_status status = take_marker(r, &kind, err);
    if (status != ESP_OK || kind == wanted) return status;
    espi_fail(err, ESP_ERR_PARSE, "%s must be closed by |%s|, not by |%s|", what, markers[wanted], markers[kind]);
    return espi_reader_place_at(r, line, place, ESP_ERR_PARSE, err);
}

/* The name of the section: the one in scratch, or a number behind `kind_name`. */
static const char *section_name(espi_reader *r, row *w, marker kind, const char *kind_name, char text[32], size_t *size)
{
    *size = r->scratch_size;
    if (*size > 0) return r->scratch;
    *size = (size_t)snprintf(text, 32, "%s%zu", kind_name, ++w->unnamed[kind]);
    return text;
}

/* One or more trees after |BT|, up to and with |ET|. */
static esp_status tree_sections(espi_reader *r, row *w, esp_error *err)
{
    espi_stream *s = &r->stream;
    marker kind;
    do {
        char text[32];
        size_t size;
        espi_column *column;
        const char *name = section_name(r, w, BT, "tree", text, &size);
        esp_status status = espi_reader_column(r, name, size, ESP_COLUMN_TREE, &column, err);
        espi_stream_blanks(s, false);
        if (status == ESP_OK)
            status = espi_stream_peek(s) == '|' ? espi_set_tree(column, ESPI_NO_NODE, err)
                                                : espi_reader_tree(r, column, false, err);
        espi_stream_blanks(s, false);
        const size_t line = s->line, place = s->column;
        if (status == ESP_OK && espi_stream_peek(s) != '|')
            status = espi_stream_fail(s, err, "a tree must be followed by |ET| or |BT|");
        if (status == ESP_OK) status = take_marker(r, &kind, err);
        if (status == ESP_OK && kind != BT && kind != ET) {
            espi_fail(err, ESP_ERR_PARSE, "a tree must be followed by |ET| or |BT|, not by |%s|", markers[kind]);
            status = espi_reader_place_at(r, line, place, ESP_ERR_PARSE, err);
        }
        if (status != ESP_OK) return status;
    } while (kind == BT);
    return ESP_OK;
}

static esp_status open_vector(espi_reader *r, row *w, bool bare, esp_error *err)
{
    char text[32];
    size_t size;
    w->vector_place = r->stream.column;
    w->bare = bare;
    w->vectors++;
    const char *name = section_name(r, w, BV, "x", text, &size);
    return espi_reader_vector(r, name, size, ESPI_SPARSE, &w->vector, err);
}

static esp_status end_vector(espi_reader *r, row *w, esp_error *err)
{
    const esp_status status = espi_end_vector(w->vector, err);
    w->vector = NULL;
    return espi_reader_place_at(r, r->stream.line, w->vector_place, status, err);
}

/* Numbers after |BDV|, separated by commas or blanks. */
static esp_status dense_section(espi_reader *r, row *w, esp_error *err)
{
    espi_stream *s = &r->stream;
    char text[32], quoted[96];
    size_t size, count = 0;
    espi_column *column;
    const char *name = section_name(r, w, BV, "x", text, &size);
    esp_status status = espi_reader_vector(r, name, size, ESPI_DENSE, &column, err);
    while (status == ESP_OK) {
        double value;
        espi_stream_blanks(s, false);
        if (count > 0 && espi_stream_peek(s) == ',') espi_stream_skip(s);
        espi_stream_blanks(s, false);
        size = espi_stream_token(s, stop_number);
        if (size == 0) break;
        if (!espi_number_parse(s->at, size, &value))
            return espi_stream_fail(s, err, "%s is not a finite number", espi_quote(s->at, size, quoted));
        status = espi_reader_element(r, column, count++, value, err);
        espi_stream_advance(s, status == ESP_OK ? size : 0);
    }
    if (status == ESP_OK) status = espi_reader_end_elements(r, column, count, err);
    return status == ESP_OK ? expect(r, EDV, "a dense vector", err) : status;
}

/* Whether |ES| is next, as a marker: it ends a word, and no backslash is before it. */
static bool text_ends(espi_reader *r)
{
    const espi_stream *s = &r->stream;
    if (!espi_reader_ahead(r, 4) || memcmp(s->at, "|ES|", 4) != 0) return false;
    if (r->scratch_size > 0 && r->scratch[r->scratch_size - 1] == '\\') return false;
    return !espi_reader_ahead(r, 5) || espi_stop_blank[(unsigned char)s->at[4]] || s->at[4] == '|';
}

/* Free text after |BS|. */
static esp_status text_section(espi_reader *r, row *w, esp_error *err)
{
    espi_stream *s = &r->stream;
    char text[32];
    size_t size;
    espi_column *column;
    const char *name = section_name(r, w, BS, "text", text, &size);
    esp_status status = espi_reader_column(r, name, size, ESP_COLUMN_SEQUENCE, &column, err);
    r->scratch_size = 0;
    while (status == ESP_OK && !text_ends(r)) {
        if (espi_stream_peek(s) == '|') {
            size = 1;
        } else {
            status = espi_reader_token(r, stop_bar, &size, err);
            if (status == ESP_OK && size == 0) return espi_stream_fail(s, err, "a text must be closed by |ES|");
        }
        if (status == ESP_OK && !espi_reader_gather(r, s->at, size)) status = espi_no_memory(err);
        espi_stream_advance(s, status == ESP_OK ? size : 0);
    }
    if (status == ESP_OK)
        status = espi_reader_place(r, espi_set_sequence(column, r->scratch, r->scratch_size, err), err);
    return status == ESP_OK ? expect(r, ES, "a text", err) : status;
}

/* An element "(...)" of a sequence into scratch; a backslash escapes as in the label of a tree. */
static esp_status take_element(espi_reader *r, esp_error *err)
{
    espi_stream *s = &r->stream;
    r->scratch_size = 0;
    espi_stream_skip(s);
    for (;;) {
        size_t size;
        const esp_status status = espi_reader_token(r, stop_element, &size, err);
        if (status != ESP_OK) return status;
        if (!espi_reader_gather(r, s->at, size)) return espi_no_memory(err);
        espi_stream_advance(s, size);
        const int c = espi_stream_peek(s);
        if (c == ')') break;
        if (c != '\\')
            return espi_stream_fail(s, err,
                                    "an element of a sequence needs its ')'; brackets inside are escaped by '\\'");
        const bool escape = espi_reader_ahead(r, 2) && strchr("()\\ \t\r\v\f", s->at[1]) != NULL && s->at[1] != '\0';
        if (!espi_reader_gather(r, s->at + escape, 1)) return espi_no_memory(err);
        espi_stream_advance(s, (size_t)escape + 1);
    }
    if (r->scratch_size == 0) return espi_stream_fail(s, err, "an element of a sequence is empty");
    espi_stream_skip(s);
    return ESP_OK;
}

/* Bracketed elements after |BSQ|. */
static esp_status sequence_section(espi_reader *r, row *w, esp_error *err)
{
    char text[32];
    size_t size;
    espi_column *column;
    const char *name = section_name(r, w, BSQ, "seq", text, &size);
    esp_status status = espi_reader_column(r, name, size, ESP_COLUMN_SEQUENCE, &column, err);
    while (status == ESP_OK) {
        espi_stream_blanks(&r->stream, false);
        if (espi_stream_peek(&r->stream) != '(') break;
        status = take_element(r, err);
        if (status == ESP_OK) status = espi_add_token(column, r->scratch, r->scratch_size, err);
    }
    if (status == ESP_OK) status = espi_end_sequence(column, err);
    return status == ESP_OK ? expect(r, ESQ, "a sequence", err) : status;
}

/* A marker and all that belongs to it; of vectors, only the marker. */
static esp_status section(espi_reader *r, row *w, esp_error *err)
{
    const size_t line = r->stream.line, place = r->stream.column;
    const bool open = w->vector != NULL;
    marker kind;
    esp_status status = take_marker(r, &kind, err);
    if (status != ESP_OK) return status;
    if (open && kind != BV && kind != EV) {
        espi_fail(err, ESP_ERR_PARSE, "|EV| is missing: a vector must be closed before |%s|", markers[kind]);
        return espi_reader_place_at(r, line, place, ESP_ERR_PARSE, err);
    }
    if (open) status = end_vector(r, w, err);
    if (status != ESP_OK) return status;
    switch (kind) {
    case BT: return tree_sections(r, w, err);
    case BS: return text_section(r, w, err);
    case BSQ: return sequence_section(r, w, err);
    case BDV: return dense_section(r, w, err);
    case BV: return open_vector(r, w, false, err);
    case EV:
        if (open) return ESP_OK;
        if (w->vectors == 0) { /* SVM-light-TK closes even a vector that has nothing in it */
            status = open_vector(r, w, true, err);
            return status == ESP_OK ? end_vector(r, w, err) : status;
        }
        break;
    default: break;
    }
    espi_fail(err, ESP_ERR_PARSE, "|%s| closes what was not opened", markers[kind]);
    return espi_reader_place_at(r, line, place, ESP_ERR_PARSE, err);
}

/* A word that is no marker: a feature, of a vector that has no |BV| if none is open. */
static esp_status word(espi_reader *r, row *w, esp_error *err)
{
    size_t size;
    esp_status status = espi_reader_token(r, espi_stop_blank, &size, err);
    if (status != ESP_OK) return status;
    /* Only a marker ends with a bar, as a feature ends with its value; so bars are allowed in names. */
    if (r->stream.at[0] == '|' && (w->vector == NULL || r->stream.at[size - 1] == '|')) return section(r, w, err);
    r->scratch_size = 0;
    if (w->vector == NULL) status = open_vector(r, w, true, err);
    return status == ESP_OK ? espi_reader_feature(r, w->vector, size, err) : status;
}

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    row w = {0};
    esp_status status = ESP_OK;
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    if (espi_stream_peek(s) != '|') status = espi_reader_label(r, espi_stop_blank, err);
    while (status == ESP_OK) {
        espi_stream_blanks(s, false);
        const int c = espi_stream_peek(s);
        if (c < 0 || c == '\n' || (c == '#' && (w.vector == NULL || w.bare))) break;
        status = c == '|' && w.vector == NULL ? section(r, &w, err) : word(r, &w, err);
    }
    if (status == ESP_OK && w.vector != NULL && !w.bare)
        status = espi_stream_fail(s, err, "the line ends inside a vector; |EV| is missing");
    if (status == ESP_OK && w.vector != NULL) status = end_vector(r, &w, err);
    if (status == ESP_OK) espi_stream_skip_line(s); /* a comment, or nothing */
    return status;
}

/* ----------------------------------------------------------- recognition */

/* The first marker such as |BT|, |EV| or |BT:name|: whether there is one, and whether it has a name. */
static bool find_marker(const char *text, size_t size, bool *named)
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

static espi_claim claim(const char *line, size_t size, bool names)
{
    bool named;
    return find_marker(line, size, &named) && named == names ? ESPI_CLAIM_MARKER : ESPI_CLAIM_NONE;
}

static espi_claim recognise_svmtk(const char *line, size_t size) { return claim(line, size, false); }
static espi_claim recognise_kelp(const char *line, size_t size) { return claim(line, size, true); }

const espi_reader_class espi_read_svmtk = {
    .target = ESPI_TARGET_LABEL, .lines = true, .recognise = recognise_svmtk, .next = next};
const espi_reader_class espi_read_kelp = {
    .target = ESPI_TARGET_LABEL, .lines = true, .recognise = recognise_kelp, .next = next};
