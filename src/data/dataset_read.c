/* Reads data files: opens the stream, recognises the format and drives its reader row by row. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "data/format.h"

#include <string.h>

enum { LOOK = 1 << 16 /* bytes of the first line that decide about the format */, PROGRESS_ROWS = 1000 };

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

/* The first line is claimed by no format. */
static esp_status no_format(const espi_stream *s, size_t size, esp_error *err)
{
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        const esp_status status = f->reader->advise != NULL ? f->reader->advise(s, err) : ESP_OK;
        if (status != ESP_OK) return status;
    }
    char quoted[96], list[sizeof err->message] = "";
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        if (f > espi_formats) espi_append(list, sizeof list, f[1].name != NULL ? ", " : " or ");
        espi_append(list, sizeof list, f->name);
        espi_append(list, sizeof list, " (");
        espi_append(list, sizeof list, f->start);
        espi_append(list, sizeof list, ")");
    }
    const esp_status status =
        espi_stream_fail(s, err, "%s is the start of no known format: %s", espi_quote(s->at, size, quoted), list);
    return espi_suggest(err, status, "format", NULL);
}

/* The format with the strongest claim to the first line; *format is left alone if there is no such line. */
static esp_status recognise(espi_reader *r, const espi_format **format, esp_error *err)
{
    espi_stream *s = &r->stream;
    if (!espi_reader_start(r)) return ESP_OK; /* nothing there: any reader will say so */
    const size_t size = first_line(s);
    if (s->status != ESP_OK) return ESP_OK; /* told by the driver */
    espi_claim strongest = ESPI_CLAIM_NONE;
    for (const espi_format *f = espi_formats; f->name != NULL; f++) {
        const espi_claim claim = f->reader->recognise(s->at, size);
        if (claim <= strongest) continue;
        strongest = claim;
        *format = f;
    }
    return strongest > ESPI_CLAIM_NONE ? ESP_OK : no_format(s, size, err);
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
static esp_status check_target(const espi_reader *r, const espi_format *format, esp_error *err)
{
    const char *target = r->options.target;
    char quoted[96];
    if (target == NULL || format->reader->target == ESPI_TARGET_FIELD) return ESP_OK;
    espi_quote(target, strlen(target), quoted);
    if (format->reader->target == ESPI_TARGET_NONE)
        return espi_fail(err, ESP_ERR_PARAM, "%s: target %s: the format %s has no targets", r->stream.name, quoted,
                         format->name);
    if (strcmp(target, "y") == 0) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "%s: target %s: the format %s has one label, and its name is y",
                     r->stream.name, quoted, format->name);
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
    /* Where there is nothing to recognise, JSON Lines. */
    const espi_format *format =
        espi_format_of(r->options.format != ESP_FORMAT_AUTO ? r->options.format : ESP_FORMAT_JSONL);
    if (espi_reader_ahead(r, 3) && memcmp(s->at, "\xEF\xBB\xBF", 3) == 0) s->at += 3; /* editors do not count it */
    esp_status status = ESP_OK;
    if (r->options.format == ESP_FORMAT_AUTO) status = recognise(r, &format, err);
    if (status != ESP_OK) return status;
    const espi_reader_class *class = format->reader;
    if (r->data == NULL) r->data = espi_dataset_new(format->number);
    if (r->data == NULL) return espi_no_memory(err);
    r->data->lowercase = r->options.lowercase;
    r->data->digits = r->options.digits;
    status = check_target(r, format, err);
    if (status == ESP_OK) status = read_rows(r, class, err);
    if (class->close != NULL) class->close(r);
    r->state = NULL;
    return status;
}

/* Reads from the stream that was opened, unless `status` says that it was not. */
static esp_status finish(espi_reader *r, esp_status status, esp_dataset **out, esp_error *error, esp_error *err)
{
    if (status == ESP_OK) status = read_open(r, error);
    if (status == ESP_OK) status = check_examples(r, error);
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
    if (esp_format_name(r->options.format) != NULL) return ESP_OK;
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

/* ----------------------------------------------------------------- pieces */

esp_status espi_file_has_pieces(const char *path, const esp_read_options *options, const esp_run *run, bool *pieces,
                                esp_format *number, esp_error *err)
{
    espi_reader r = {0};
    const espi_format *format = NULL;
    *pieces = false;
    esp_status status = begin(&r, options, err);
    if (status == ESP_OK) status = espi_stream_open(&r.stream, path, run, err);
    if (status != ESP_OK) return status;
    if (r.options.format != ESP_FORMAT_AUTO) format = espi_format_of(r.options.format);
    else status = recognise(&r, &format, err);
    if (status == ESP_OK) status = r.stream.status;
    if (status == ESP_OK && format != NULL) *pieces = format->reader->lines && !espi_stream_packed(&r.stream);
    *number = format != NULL ? format->number : ESP_FORMAT_AUTO;
    if (r.stream.status != ESP_OK && err != NULL) *err = r.stream.error;
    espi_stream_close(&r.stream);
    espi_free(r.scratch);
    return status;
}

/* The line that begins at byte `to` of a file. */
static esp_status line_at(const char *path, uint64_t to, const esp_run *run, size_t *line, esp_error *err)
{
    espi_stream s;
    esp_status status = espi_stream_open_range(&s, path, 0, to, 1, run, err);
    if (status != ESP_OK) return status;
    while (s.at < s.end || espi_stream_fill(&s)) espi_stream_advance(&s, (size_t)(s.end - s.at));
    *line = s.line;
    status = s.status;
    if (status != ESP_OK && err != NULL) *err = s.error;
    espi_stream_close(&s);
    return status;
}

/* `count_lines`: so that messages name the right one, which means to read all that is before it. */
static esp_status read_piece(espi_reader *r, const espi_piece *p, const esp_run *run, bool count_lines, esp_error *err)
{
    const bool all = p->from == 0 && p->to == UINT64_MAX;
    size_t line = 1;
    esp_status status = ESP_OK;
    if (count_lines && p->from > 0) status = line_at(p->path, p->from, run, &line, err);
    if (status == ESP_OK)
        status = all ? espi_stream_open(&r->stream, p->path, run, err)
                     : espi_stream_open_range(&r->stream, p->path, p->from, p->to, line, run, err);
    if (status != ESP_OK) return status;
    status = read_open(r, err);
    espi_stream_close(&r->stream);
    return status;
}

esp_status espi_dataset_read_pieces(const espi_piece *piece, size_t count, const esp_read_options *options,
                                    const esp_run *run, esp_dataset **out, esp_error *err)
{
    espi_reader r = {0};
    esp_error error = {0};
    bool cut = false;
    *out = NULL;
    esp_status status = begin(&r, options, &error);
    for (size_t i = 0; i < count; i++) cut = cut || piece[i].from > 0;
    for (int again = r.options.skip_bad; status == ESP_OK && again < 2; again++) {
        for (size_t i = 0; status == ESP_OK && i < count; i++)
            status = read_piece(&r, &piece[i], run, again != 0, &error);
        if (status == ESP_OK || status != ESP_ERR_PARSE || !cut || again == 1) break;
        esp_dataset_free(r.data); /* once more, for the sake of the message */
        r.data = NULL;
        status = ESP_OK;
    }
    if (status == ESP_OK && r.data == NULL && (r.data = espi_dataset_new(r.options.format)) == NULL)
        status = espi_no_memory(&error);
    if (status == ESP_OK) *out = r.data;
    else esp_dataset_free(r.data);
    if (status != ESP_OK && err != NULL) *err = error;
    espi_tree_parser_free(&r.trees);
    espi_free(r.scratch);
    return status;
}
