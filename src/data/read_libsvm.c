/* LIBSVM: a line is a label and a sparse vector, "1 3:0.5 7:1"; '#' starts a comment. */
#include "base/number.h"
#include "base/status.h"
#include "data/reader.h"

#include <string.h>

static const bool stop[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, ['#'] = true};

static esp_status label(espi_reader *r, esp_error *err)
{
    const espi_stream *s = &r->stream;
    char quoted[96];
    size_t size;
    const esp_status status = espi_reader_token(r, stop, &size, err);
    if (status != ESP_OK) return status;
    if (size == 0) return espi_stream_fail(s, err, "a label is needed at the start of the line");
    if (memchr(s->at, ':', size) != NULL)
        return espi_stream_fail(s, err, "%s is no label; a line is: label index:value ...",
                                espi_quote(s->at, size, quoted));
    if (memchr(s->at, ',', size) != NULL)
        return espi_stream_fail(s, err, "%s are several labels; an example has one", espi_quote(s->at, size, quoted));
    return espi_reader_label(r, stop, err);
}

static esp_status feature(espi_reader *r, espi_column *column, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    char quoted[96];
    size_t size;
    espi_stream_blanks(s, false);
    const esp_status status = espi_reader_token(r, stop, &size, err);
    *end = status == ESP_OK && size == 0;
    if (status != ESP_OK || *end) return status;
    const char *colon = memchr(s->at, ':', size);
    if (colon != NULL && memchr(colon + 1, ':', size - (size_t)(colon - s->at) - 1) != NULL)
        return espi_stream_fail(s, err, "%s has two colons; a feature is index:value", espi_quote(s->at, size, quoted));
    return espi_reader_feature(r, column, size, err);
}

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_stream *s = &r->stream;
    espi_column *column = NULL;
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    esp_status status = label(r, err);
    const size_t place = s->column;
    if (status == ESP_OK) status = espi_reader_vector(r, "x", 1, ESPI_SPARSE, &column, err);
    bool over = false;
    while (status == ESP_OK && !over) status = feature(r, column, &over, err);
    if (status == ESP_OK) status = espi_reader_place_at(r, s->line, place, espi_end_vector(column, err), err);
    if (status == ESP_OK) espi_stream_skip_line(s); /* a comment, or nothing */
    return status;
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

static espi_claim recognise(const char *line, size_t size)
{
    return like_libsvm(line, size) ? ESPI_CLAIM_LOOSE : ESPI_CLAIM_NONE;
}

const espi_reader_class espi_read_libsvm = {
    .target = ESPI_TARGET_LABEL, .lines = true, .recognise = recognise, .next = next};
