/* Penn trees: brackets over as many lines as they like, one tree after the other, in the column "tree". */
#include "base/status.h"
#include "data/reader.h"

static esp_status next(espi_reader *r, bool *end, esp_error *err)
{
    espi_column *column;
    char quoted[96];
    if (!espi_reader_start(r)) {
        *end = true;
        return ESP_OK;
    }
    if (espi_stream_peek(&r->stream) != '(')
        return espi_stream_fail(&r->stream, err, "%s is outside of all brackets; a tree starts with '('",
                                espi_quote(r->stream.at, 1, quoted));
    const esp_status status = espi_reader_column(r, "tree", 4, ESP_COLUMN_TREE, &column, err);
    return status == ESP_OK ? espi_reader_tree(r, column, true, err) : status;
}

/* The next line that starts with a bracket: treebanks indent the lines inside a tree. */
static void recover(espi_reader *r)
{
    espi_stream *s = &r->stream;
    while (espi_stream_peek(s) >= 0 && !(s->column == 1 && espi_stream_peek(s) == '(')) espi_stream_skip_line(s);
}

static espi_claim recognise(const char *line, size_t size)
{
    return size > 0 && line[0] == '(' ? ESPI_CLAIM_FIRST_BYTE : ESPI_CLAIM_NONE;
}

const espi_reader_class espi_read_penn = {
    .target = ESPI_TARGET_NONE, .recognise = recognise, .next = next, .recover = recover};
