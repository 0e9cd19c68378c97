/* The documents of a split: a name per line. Corpora name their documents by folders, each release by others, so a
 * listed name stands for every document whose name ends with it at the start of a folder's or file's name. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/stream.h"
#include "task/srl.h"

#include <string.h>

static size_t without_ending(const char *name, size_t size)
{
    static const char ending[] = ".conllu";
    const size_t n = sizeof ending - 1;
    return size > n && memcmp(name + size - n, ending, n) == 0 ? size - n : size;
}

static esp_status read_names(espi_srl_documents *d, espi_stream *s, esp_error *err)
{
    size_t size;
    for (;;) {
        espi_stream_blanks(s, true);
        const char *line = espi_stream_line(s, &size);
        if (line == NULL) break;
        size_t n = size;
        while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
        if (espi_symbols_add(&d->names, line, without_ending(line, n)) == ESPI_NO_SYMBOL) return espi_no_memory(err);
        espi_stream_advance(s, size);
    }
    if (s->status != ESP_OK) return espi_stream_fail(s, err, "unreadable");
    if (d->names.count == 0)
        return espi_fail(err, ESP_ERR_PARSE, "%s: no documents: the file is empty; it needs a name in each line",
                         s->name);
    d->met = espi_alloc_zero(d->names.count, sizeof *d->met);
    return d->met != NULL ? ESP_OK : espi_no_memory(err);
}

esp_status espi_srl_documents_read(espi_srl_documents *d, const char *path, const esp_run *run, esp_error *err)
{
    espi_stream stream;
    esp_status status = espi_stream_open(&stream, path, run, err);
    if (status != ESP_OK) return status;
    status = read_names(d, &stream, err);
    espi_stream_close(&stream);
    return status;
}

bool espi_srl_documents_has(void *documents, const char *name, size_t size)
{
    espi_srl_documents *d = documents;
    const char *whole = name;
    for (const char *end = name + size;;) {
        const uint32_t symbol = espi_symbols_find(&d->names, name, (size_t)(end - name));
        if (symbol != ESPI_NO_SYMBOL) return d->met[symbol] = true;
        const char *slash = memchr(name, '/', (size_t)(end - name));
        if (slash == NULL) break;
        name = slash + 1;
    }
    if (d->other[0] == '\0') espi_quote(whole, size, d->other);
    return false;
}

size_t espi_srl_documents_unmet(const espi_srl_documents *d, const espi_symbol **first)
{
    size_t unmet = 0;
    for (size_t i = 0; i < d->names.count; i++)
        if (!d->met[i] && unmet++ == 0) *first = &d->names.symbol[i];
    return unmet;
}

void espi_srl_documents_free(espi_srl_documents *d)
{
    espi_symbols_free(&d->names);
    espi_free(d->met);
    *d = (espi_srl_documents){0};
}
