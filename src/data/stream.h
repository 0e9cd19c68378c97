/* Input as a stream of bytes: a file, standard input or memory; gzip and zstd are unpacked on the way.
 *
 * Readers look at s->at .. s->end, ask for more with espi_stream_fill when they need it, and take bytes with
 * espi_stream_advance, which also counts lines. The buffer is small unless a token is long. */
#ifndef ESPI_DATA_STREAM_H
#define ESPI_DATA_STREAM_H

#include "espalier.h"

#include <stdint.h>

typedef struct espi_stream {
    const char *name;  /* for messages: the path, or "standard input" */
    char *at, *end;    /* unread bytes */
    size_t line;       /* 1-based, of `at` */
    size_t column;     /* 1-based, in bytes, of `at` */
    esp_status status; /* not ESP_OK: reading failed, and `error` says why; the stream then looks ended */
    esp_error error;
    struct espi_source *source;
    char *buffer;
    size_t capacity;
    const esp_run *run; /* progress while reading; may be NULL */
} espi_stream;

esp_status espi_stream_open(espi_stream *stream, const char *path, const esp_run *run, esp_error *err);
/* Only the bytes from .. to-1 of a file that is not packed. Lines are counted from `line` on. */
esp_status espi_stream_open_range(espi_stream *stream, const char *path, uint64_t from, uint64_t to, size_t line,
                                  const esp_run *run, esp_error *err);
bool espi_stream_packed(const espi_stream *stream); /* by gzip or zstd */
esp_status espi_stream_open_memory(espi_stream *stream, const void *bytes, size_t size, const char *name,
                                   const esp_run *run, esp_error *err);
void espi_stream_close(espi_stream *stream);

/* Brings more bytes behind those that are unread (which may move). False at the end or after a failure. */
bool espi_stream_fill(espi_stream *stream);
/* Takes n <= end - at bytes. */
void espi_stream_advance(espi_stream *stream, size_t n);

/* The next byte without taking it, or -1 at the end. */
static inline int espi_stream_peek(espi_stream *stream)
{
    return stream->at < stream->end || espi_stream_fill(stream) ? (unsigned char)*stream->at : -1;
}
/* Takes one byte that is no line end. */
static inline void espi_stream_skip(espi_stream *stream) { stream->at++, stream->column++; }

/* Makes the bytes up to (without) the first byte for which stop[byte] is true lie side by side at stream->at,
 * and returns how many they are; at the end of input, all that is left. Takes nothing. */
size_t espi_stream_token(espi_stream *stream, const bool stop[256]);
/* The rest of the line, without its end, side by side; *size bytes at the returned place. NULL at the end of
 * input. Takes nothing: advance by *size, then by espi_stream_line_end. */
const char *espi_stream_line(espi_stream *stream, size_t *size);
/* Takes blanks (space, tab, CR); with `lines` also line ends. */
void espi_stream_blanks(espi_stream *stream, bool lines);
/* Takes a line end if one is next. False if there is none (end of input counts as a line end). */
bool espi_stream_line_end(espi_stream *stream);
/* Takes everything up to and including the next line end. */
void espi_stream_skip_line(espi_stream *stream);

/* Fails with ESP_ERR_PARSE at the present place (or with what broke the stream, if something did). */
esp_status espi_stream_fail(const espi_stream *stream, esp_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
