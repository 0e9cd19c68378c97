/* Trees with predicates and arguments:
 *
 *     T<TAB>document<TAB>sentence<TAB>(TOP ...)
 *     P<TAB>token<TAB>lemma<TAB>frame<TAB>LABEL:from-to ...        one line per predicate of the tree above
 *
 * The trees become the column "tree"; predicates are checked for their shape and left to the task that needs them. */
#include "base/status.h"
#include "data/srl_line.h"

#include <string.h>

static const bool stop_tab[256] = {['\t'] = true, ['\n'] = true};

esp_status espi_srl_field(espi_reader *r, const char *what, bool digits, espi_text *copy, esp_error *err)
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
    if (copy != NULL) {
        copy->size = 0;
        espi_text_add(copy, s->at, size);
        if (copy->failed) return espi_no_memory(err);
    }
    espi_stream_advance(s, size);
    if (espi_stream_peek(s) != '\t') return espi_stream_fail(s, err, "a TAB is needed behind the %s", what);
    espi_stream_skip(s);
    return ESP_OK;
}

esp_status espi_srl_line(espi_reader *r, char letter, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    if (espi_reader_ahead(r, 2) && s->at[0] == letter && s->at[1] == '\t') {
        espi_stream_advance(s, 2);
        return ESP_OK;
    }
    if (letter == 'T' && espi_stream_peek(s) == 'P')
        return espi_stream_fail(s, err, "a predicate (P) needs a tree (T) above it");
    return espi_stream_fail(s, err,
                            "a line starts with T (tree) or P (predicate of the tree above) and a TAB, not with %s",
                            espi_quote(s->at, s->at < s->end, quoted));
}

static esp_status predicate(espi_reader *r, esp_error *err)
{
    esp_status status = espi_srl_line(r, 'P', err);
    if (status == ESP_OK) status = espi_srl_field(r, "token number", true, NULL, err);
    if (status == ESP_OK) status = espi_srl_field(r, "lemma", false, NULL, err);
    if (status == ESP_OK) status = espi_srl_field(r, "frame", false, NULL, err);
    if (status == ESP_OK) espi_stream_skip_line(&r->stream);
    return status;
}

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_column *column = NULL;
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    const size_t line = r->row_line, place = r->row_column;
    esp_status status = espi_srl_line(r, 'T', err);
    if (status == ESP_OK) status = espi_srl_field(r, "document", false, NULL, err);
    if (status == ESP_OK) status = espi_srl_field(r, "sentence", false, NULL, err);
    if (status == ESP_OK) status = espi_reader_column(r, "tree", 4, ESP_COLUMN_TREE, &column, err);
    if (status == ESP_OK) status = espi_reader_tree(r, column, false, err);
    if (status == ESP_OK) status = espi_reader_line_end(r, "the tree", err);
    while (status == ESP_OK && espi_reader_start(r) && espi_stream_peek(&r->stream) == 'P') status = predicate(r, err);
    r->row_line = line;
    r->row_column = place;
    return status;
}

void espi_srl_recover(espi_reader *r)
{
    do espi_stream_skip_line(&r->stream);
    while (espi_stream_peek(&r->stream) >= 0 && espi_stream_peek(&r->stream) != 'T');
}

static espi_claim recognise(const char *line, size_t size)
{
    return size > 1 && memcmp(line, "T\t", 2) == 0 ? ESPI_CLAIM_SHAPE : ESPI_CLAIM_NONE;
}

const espi_reader_class espi_read_srl = {
    .target = ESPI_TARGET_NONE, .recognise = recognise, .next = next, .recover = espi_srl_recover};
