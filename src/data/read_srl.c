/* Trees with predicates and arguments:
 *
 *     T<TAB>document<TAB>sentence<TAB>(TOP ...)
 *     P<TAB>token<TAB>lemma<TAB>frame<TAB>LABEL:from-to ...        one line per predicate of the tree above
 *
 * The trees become the column "tree"; predicates are checked for their shape and left to the task that needs them. */
#include "base/status.h"
#include "data/reader.h"

static const bool stop_tab[256] = {['\t'] = true, ['\n'] = true};

/* Takes a field of at least one byte and the TAB behind it. */
static esp_status field(espi_reader *r, const char *what, bool digits, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    size_t size;
    const esp_status status = espi_reader_token(r, stop_tab, &size, err);
    if (status != ESP_OK) return status;
    bool good = size > 0;
    for (size_t i = 0; i < size && digits; i++) good = good && s->at[i] >= '0' && s->at[i] <= '9';
    if (!good)
        return espi_stream_fail(s, err, "%s is no %s; it must be %s", espi_quote(s->at, size, quoted), what,
                                digits ? "a number" : "a text between TABs");
    espi_stream_advance(s, size);
    if (espi_stream_peek(s) != '\t') return espi_stream_fail(s, err, "a TAB is needed behind the %s", what);
    espi_stream_skip(s);
    return ESP_OK;
}

/* Takes the letter that opens a line, and its TAB. */
static esp_status line_start(espi_reader *r, char letter, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    if (espi_reader_ahead(r, 2) && s->at[0] == letter && s->at[1] == '\t') {
        espi_stream_advance(s, 2);
        return ESP_OK;
    }
    return espi_stream_fail(s, err,
                            "a line starts with T (tree) or P (predicate of the tree above) and a TAB, not with %s",
                            espi_quote(s->at, s->at < s->end, quoted));
}

static esp_status predicate(espi_reader *r, esp_error *err)
{
    esp_status status = line_start(r, 'P', err);
    if (status == ESP_OK) status = field(r, "token number", true, err);
    if (status == ESP_OK) status = field(r, "lemma", false, err);
    if (status == ESP_OK) status = field(r, "frame", false, err);
    if (status == ESP_OK) espi_stream_skip_line(&r->stream);
    return status;
}

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    espi_column *column = NULL;
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    if (espi_stream_peek(s) == 'P') return espi_stream_fail(s, err, "a predicate (P) needs a tree (T) above it");
    esp_status status = line_start(r, 'T', err);
    if (status == ESP_OK) status = field(r, "document", false, err);
    if (status == ESP_OK) status = field(r, "sentence", false, err);
    if (status == ESP_OK) status = espi_reader_column(r, "tree", 4, ESP_COLUMN_TREE, &column, err);
    if (status == ESP_OK) status = espi_reader_tree(r, column, false, err);
    if (status == ESP_OK) status = espi_reader_line_end(r, "the tree", err);
    while (status == ESP_OK && espi_stream_peek(s) == 'P') status = predicate(r, err);
    return status;
}

/* The next tree, as the predicates of a bad one are of no use. */
static void recover(espi_reader *r)
{
    do espi_stream_skip_line(&r->stream);
    while (espi_stream_peek(&r->stream) >= 0 && espi_stream_peek(&r->stream) != 'T');
}

const espi_reader_class espi_read_srl = {.target = ESPI_TARGET_NONE, .next = next, .recover = recover};
