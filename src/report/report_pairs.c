/* One page about pairs of trees, as a search or a comparison has found them. The trees go into the page as text; what
 * they share is found there (pairs.js). */
#include "report/report.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "data/stream.h"
#include "search/index.h"

#include <string.h>

enum {
    PAIRS = 40,         /* where the option is 0 */
    FIELDS = 4,         /* of a line at most */
    TREE_TEXT = 1 << 20 /* bytes of a tree; larger ones are named and not shown */
};

typedef struct side { /* examples by name */
    const esp_dataset *data;
    const char *what; /* for messages */
    uint64_t *end;    /* NULL: examples are numbers from 1 */
    char *text;
} side;

typedef struct field {
    const char *text;
    size_t size;
} field;

typedef struct pairing {
    side first, second;
    bool queries; /* lines of four fields are those of a search */
    size_t most, shown, left;
    espi_text json;
} pairing;

/* Whether a field is this name, in which lists write a TAB, the ends of lines and a backslash as \t, \n, \r, \\. */
static bool is_name(field f, const char *name)
{
    for (size_t i = 0; i < f.size; i++, name++) {
        char c = f.text[i];
        if (c == '\\' && i + 1 < f.size) {
            const char next = f.text[++i];
            c = next == 't' ? '\t' : next == 'n' ? '\n' : next == 'r' ? '\r' : next;
        }
        if (*name == '\0' || *name != c) return false;
    }
    return *name == '\0';
}

static size_t find(const side *s, field name)
{
    for (size_t i = 0; s->end != NULL && i < s->data->rows; i++)
        if (is_name(name, s->text + (i > 0 ? s->end[i - 1] : 0))) return i;
    size_t number = 0;
    if (s->end != NULL || name.size == 0 || name.size > 18) return SIZE_MAX;
    for (size_t i = 0; i < name.size; i++) {
        if (name.text[i] < '0' || name.text[i] > '9') return SIZE_MAX;
        number = 10 * number + (size_t)(name.text[i] - '0');
    }
    return number >= 1 && number <= s->data->rows ? number - 1 : SIZE_MAX;
}

/* ---------------------------------------------------------------- writing */

static esp_status add_tree(espi_text *t, const char *key, const esp_dataset *data, size_t column, size_t example,
                           esp_error *err)
{
    char *text;
    const esp_status status = esp_dataset_text(data, column, example, &text, err);
    if (status != ESP_OK) return status;
    if (strlen(text) <= TREE_TEXT) espi_json_text_of(t, key, text);
    esp_text_free(text);
    return ESP_OK;
}

static size_t column_like(const esp_dataset *data, const espi_column *column)
{
    size_t i = 0;
    while (i < data->columns &&
           (data->column[i].type != column->type || strcmp(data->column[i].name, column->name) != 0))
        i++;
    return i;
}

static esp_status add_pair(pairing *p, const field name[2], const size_t example[2], double similarity, esp_error *err)
{
    const esp_dataset *one = p->first.data, *other = p->second.data;
    esp_status status = ESP_OK;
    espi_json_open(&p->json, '{');
    espi_json_key(&p->json, "first");
    espi_drawn_text(&p->json, name[0].text, name[0].size, ESPI_EXAMPLE_TEXT);
    espi_json_key(&p->json, "second");
    espi_drawn_text(&p->json, name[1].text, name[1].size, ESPI_EXAMPLE_TEXT);
    espi_drawn_number_of(&p->json, "similarity", similarity);
    espi_json_key(&p->json, "trees");
    espi_json_open(&p->json, '[');
    for (size_t i = 0; status == ESP_OK && i < one->columns; i++) {
        const size_t j = column_like(other, &one->column[i]);
        if (one->column[i].type != ESP_COLUMN_TREE || j == other->columns) continue;
        espi_json_open(&p->json, '{');
        espi_json_text_of(&p->json, "column", one->column[i].name);
        status = add_tree(&p->json, "first", one, i, example[0], err);
        if (status == ESP_OK) status = add_tree(&p->json, "second", other, j, example[1], err);
        espi_json_close(&p->json, '}');
    }
    espi_json_close(&p->json, ']');
    espi_json_close(&p->json, '}');
    return status == ESP_OK && p->json.failed ? espi_no_memory(err) : status;
}

/* ---------------------------------------------------------------- reading */

static size_t split(const char *line, size_t size, field out[FIELDS])
{
    size_t count = 0;
    for (const char *end = line + size; count < FIELDS; count++) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        out[count] = (field){line, (size_t)((tab != NULL ? tab : end) - line)};
        if (tab == NULL) return count + 1;
        line = tab + 1;
    }
    return FIELDS + 1;
}

/* Pairs: first, second, similarity. A search: query, rank, example, similarity. Groups: number, representative,
 * example, similarity. */
static esp_status read_line(pairing *p, const espi_stream *s, const char *line, size_t size, esp_error *err)
{
    field f[FIELDS];
    double similarity;
    if (size > 0 && line[size - 1] == '\r') size--;
    const size_t count = split(line, size, f);
    if (p->queries ? count != FIELDS : count < 3 || count > FIELDS)
        return espi_stream_fail(s, err, "%zu field(s) between TABs; %s", count,
                                p->queries ? "lines of a search have 4" : "lines of pairs have 3, those of groups 4");
    if (!espi_number_parse(f[count - 1].text, f[count - 1].size, &similarity))
        return espi_stream_fail(s, err, "'%.*s' is no similarity",
                                (int)(f[count - 1].size < 60 ? f[count - 1].size : 60), f[count - 1].text);
    const field name[2] = {f[count == FIELDS && !p->queries ? 1 : 0], f[count - 2]};
    size_t example[2];
    for (size_t i = 0; i < 2; i++) {
        const side *from = i == 0 ? &p->first : &p->second;
        example[i] = find(from, name[i]);
        if (example[i] == SIZE_MAX)
            return espi_stream_fail(s, err, "there is no example '%.*s' in the %s%s",
                                    (int)(name[i].size < 60 ? name[i].size : 60), name[i].text, from->what,
                                    from->end == NULL ? "; examples are numbers from 1 unless a field names them" : "");
    }
    if (!p->queries && example[0] == example[1]) return ESP_OK; /* the representative of a group */
    if (p->shown == p->most) {
        p->left++;
        return ESP_OK;
    }
    p->shown++;
    return add_pair(p, name, example, similarity, err);
}

static esp_status read_pairs(pairing *p, const char *path, const esp_run *run, esp_error *err)
{
    espi_stream stream;
    esp_status status = espi_stream_open(&stream, path, run, err);
    if (status != ESP_OK) return status;
    for (const char *line; status == ESP_OK;) {
        size_t size;
        if ((line = espi_stream_line(&stream, &size)) == NULL) break;
        if (size > 0) status = read_line(p, &stream, line, size, err);
        espi_stream_advance(&stream, size);
        (void)espi_stream_line_end(&stream);
    }
    if (status == ESP_OK && stream.status != ESP_OK) status = espi_stream_fail(&stream, err, "unreadable");
    if (status == ESP_OK && p->shown == 0) status = espi_fail(err, ESP_ERR_PARSE, "%s: there are no pairs", path);
    espi_stream_close(&stream);
    return status;
}

static esp_status check(const pairing *p, const char *id, side *s, esp_error *err)
{
    for (size_t i = 0; i < s->data->columns; i++)
        if (s->data->column[i].type == ESP_COLUMN_TREE &&
            column_like(p->first.data, &s->data->column[i]) < p->first.data->columns)
            return id != NULL ? espi_ids_make(s->data, id, &s->end, &s->text, err) : ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "the %s have no column of trees that could be shown side by side", s->what);
}

esp_status esp_report_pairs(const char *pairs, const esp_dataset *data, const esp_dataset *queries, const char *id,
                            const esp_report_options *options, const char *path, const esp_run *run, esp_error *err)
{
    const esp_report_options none = {0}, *o = options != NULL ? options : &none;
    pairing p = {.first = {.data = queries != NULL ? queries : data, .what = queries != NULL ? "queries" : "data"},
                 .second = {.data = data, .what = "data"},
                 .queries = queries != NULL,
                 .most = o->examples > 0 ? o->examples : PAIRS};
    esp_status status = check(&p, id, &p.first, err);
    if (status == ESP_OK) status = check(&p, id, &p.second, err);
    espi_json_open(&p.json, '{');
    espi_json_text_of(&p.json, "title", o->title != NULL ? o->title : "Report");
    espi_json_text_of(&p.json, "version", ESP_VERSION);
    espi_json_flag_of(&p.json, "search", p.queries);
    if (o->data_name != NULL) espi_json_text_of(&p.json, "name", o->data_name);
    espi_json_key(&p.json, "pairs");
    espi_json_open(&p.json, '[');
    if (status == ESP_OK) status = read_pairs(&p, pairs, run, err);
    espi_json_close(&p.json, ']');
    espi_json_count_of(&p.json, "left", p.left);
    espi_json_close(&p.json, '}');
    if (status == ESP_OK && p.json.failed) status = espi_no_memory(err);
    if (status == ESP_OK) status = espi_report_page(&p.json, path, err);
    espi_text_free(&p.json);
    for (side *s = &p.first; s != NULL; s = s == &p.first ? &p.second : NULL) {
        espi_free(s->end);
        espi_free(s->text);
    }
    return status;
}
