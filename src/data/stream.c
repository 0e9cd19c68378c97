#include "data/stream.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 1 << 17 };

typedef enum packing { PLAIN, GZIP, ZSTD } packing;

/* Where bytes come from: a descriptor or memory, packed or not. */
struct espi_source {
    int fd; /* -1: memory */
    const char *memory;
    size_t memory_left;
    uint64_t left; /* of a range; UINT64_MAX: all */
    bool ended;    /* no more packed bytes */
    packing packing;
    bool open_frame; /* inside a compressed frame: the input must not end here */
    z_stream gzip;
    ZSTD_DStream *zstd;
    char *packed; /* bytes read and not yet unpacked: packed[packed_at .. packed_end) */
    size_t packed_at, packed_end;
};

static bool fail(espi_stream *s, esp_status status)
{
    s->status = status;
    return false;
}

/* Up to `room` raw bytes; 0 at the end and on failure. */
static size_t read_raw(espi_stream *s, char *to, size_t room)
{
    struct espi_source *src = s->source;
    if (src->ended) return 0;
    if (src->fd < 0) {
        const size_t n = room < src->memory_left ? room : src->memory_left;
        if (n > 0) memcpy(to, src->memory, n);
        src->memory += n;
        src->memory_left -= n;
        src->ended = src->memory_left == 0;
        return n;
    }
    ssize_t n = -1;
    if (room > src->left) room = (size_t)src->left;
    do { /* asks first: a signal that came a moment ago does not wake a read that waits */
        s->status = espi_progress(s->run, "reading", -1.0, &s->error);
        if (s->status == ESP_OK) n = read(src->fd, to, room < SSIZE_MAX ? room : SSIZE_MAX);
    } while (s->status == ESP_OK && n < 0 && errno == EINTR);
    if (n < 0 && s->status == ESP_OK) fail(s, espi_fail_errno(&s->error, s->name));
    if (n > 0 && src->left != UINT64_MAX) src->left -= (uint64_t)n;
    src->ended = n <= 0;
    return n > 0 ? (size_t)n : 0;
}

static bool fill_packed(espi_stream *s)
{
    struct espi_source *src = s->source;
    if (src->packed_at < src->packed_end) return true;
    src->packed_at = 0;
    src->packed_end = read_raw(s, src->packed, CHUNK);
    return src->packed_end > 0;
}

static bool damaged(espi_stream *s, const char *what)
{
    return fail(s, espi_fail(&s->error, ESP_ERR_IO, "%s: %s", s->name, what));
}

static size_t unpack_gzip(espi_stream *s, char *to, size_t room)
{
    struct espi_source *src = s->source;
    z_stream *z = &src->gzip;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)(room < UINT_MAX ? room : UINT_MAX);
    const uInt wanted = z->avail_out;
    while (z->avail_out == wanted && fill_packed(s)) {
        if (!src->open_frame && inflateReset(z) != Z_OK) damaged(s, "the gzip data cannot be unpacked");
        src->open_frame = true;
        z->next_in = (Bytef *)src->packed + src->packed_at;
        z->avail_in = (uInt)(src->packed_end - src->packed_at);
        const int result = inflate(z, Z_NO_FLUSH);
        src->packed_at = src->packed_end - z->avail_in;
        if (result == Z_STREAM_END) src->open_frame = false;
        else if (result == Z_MEM_ERROR) fail(s, espi_no_memory(&s->error));
        else if (result != Z_OK && result != Z_BUF_ERROR) damaged(s, "the gzip data are damaged");
        if (s->status != ESP_OK) return 0;
    }
    return wanted - z->avail_out;
}

static size_t unpack_zstd(espi_stream *s, char *to, size_t room)
{
    struct espi_source *src = s->source;
    ZSTD_outBuffer out = {.dst = to, .size = room};
    while (out.pos == 0 && (src->open_frame || fill_packed(s))) {
        /* An open frame may still hold unpacked bytes although no packed ones are left. */
        const bool more = fill_packed(s);
        ZSTD_inBuffer in = {.src = src->packed, .size = src->packed_end, .pos = src->packed_at};
        const size_t result = ZSTD_decompressStream(src->zstd, &out, &in);
        src->packed_at = in.pos;
        if (ZSTD_isError(result)) damaged(s, "the zstd data are damaged");
        if (s->status != ESP_OK) return 0;
        src->open_frame = result != 0;
        if (!more && out.pos == 0) break;
    }
    return out.pos;
}

/* Up to `room` bytes of content; 0 at the end and on failure. */
static size_t read_content(espi_stream *s, char *to, size_t room)
{
    struct espi_source *src = s->source;
    if (s->status != ESP_OK) return 0;
    if (src->packing == PLAIN) {
        const size_t left = src->packed_end - src->packed_at, n = left < room ? left : room;
        if (left == 0) return read_raw(s, to, room);
        memcpy(to, src->packed + src->packed_at, n);
        src->packed_at += n;
        return n;
    }
    const size_t n = src->packing == GZIP ? unpack_gzip(s, to, room) : unpack_zstd(s, to, room);
    if (n == 0 && s->status == ESP_OK && src->open_frame)
        damaged(s, "the file ends in the middle of its compressed data; it is truncated");
    return s->status == ESP_OK ? n : 0;
}

bool espi_stream_fill(espi_stream *s)
{
    const size_t unread = (size_t)(s->end - s->at);
    if (s->status != ESP_OK) return false;
    if (unread + CHUNK > s->capacity) {
        const size_t capacity = (unread + CHUNK) * 2;
        char *buffer = espi_alloc(capacity, 1);
        if (buffer == NULL) {
            s->end = s->at;
            return fail(s, espi_no_memory(&s->error));
        }
        if (unread > 0) memcpy(buffer, s->at, unread);
        espi_free(s->buffer);
        s->buffer = buffer;
        s->capacity = capacity;
    } else if (unread > 0 && s->at != s->buffer) {
        memmove(s->buffer, s->at, unread);
    }
    s->at = s->buffer;
    s->end = s->at + unread;
    const size_t n = read_content(s, s->end, CHUNK);
    s->end += n;
    if (n > 0) {
        const esp_status status = espi_progress(s->run, "reading", -1.0, &s->error);
        if (status != ESP_OK) s->status = status;
    }
    if (s->status != ESP_OK) s->end = s->at;
    return s->status == ESP_OK && n > 0;
}

/* Looks at the first bytes for the marks of gzip and zstd. */
static void recognise(espi_stream *s)
{
    struct espi_source *src = s->source;
    while (src->packed_end < 4) {
        const size_t n = read_raw(s, src->packed + src->packed_end, CHUNK - src->packed_end);
        if (n == 0) break;
        src->packed_end += n;
    }
    if (src->packed_end >= 2 && memcmp(src->packed, "\x1f\x8b", 2) == 0) {
        src->packing = GZIP;
        if (inflateInit2(&src->gzip, 15 + 16) != Z_OK) fail(s, espi_no_memory(&s->error)), src->packing = PLAIN;
    } else if (src->packed_end >= 4 && memcmp(src->packed, "\x28\xb5\x2f\xfd", 4) == 0) {
        src->packing = ZSTD;
        src->zstd = ZSTD_createDStream();
        if (src->zstd == NULL) fail(s, espi_no_memory(&s->error));
    }
}

static esp_status start(espi_stream *s, const char *name, const esp_run *run, esp_error *err)
{
    *s = (espi_stream){.name = name, .line = 1, .column = 1, .run = run};
    s->source = espi_alloc_zero(1, sizeof *s->source);
    if (s->source != NULL) s->source->packed = espi_alloc(CHUNK, 1);
    if (s->source != NULL) s->source->left = UINT64_MAX;
    if (s->source != NULL && s->source->packed != NULL) return ESP_OK;
    espi_stream_close(s);
    return espi_no_memory(err);
}

static esp_status ready(espi_stream *s, esp_error *err)
{
    recognise(s);
    if (s->status == ESP_OK) return ESP_OK;
    const esp_status status = s->status;
    if (err != NULL) *err = s->error;
    espi_stream_close(s);
    return status;
}

esp_status espi_stream_open(espi_stream *s, const char *path, const esp_run *run, esp_error *err)
{
    const bool standard = strcmp(path, "-") == 0;
    const esp_status status = start(s, standard ? "standard input" : path, run, err);
    if (status != ESP_OK) return status;
    s->source->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (s->source->fd >= 0) return ready(s, err);
    const esp_status refused = espi_fail_errno(err, path);
    espi_stream_close(s);
    return refused;
}

esp_status espi_stream_open_range(espi_stream *s, const char *path, uint64_t from, uint64_t to, size_t line,
                                  const esp_run *run, esp_error *err)
{
    const esp_status status = start(s, path, run, err);
    if (status != ESP_OK) return status;
    s->line = line;
    s->source->left = to - from;
    s->source->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->source->fd >= 0 && lseek(s->source->fd, (off_t)from, SEEK_SET) >= 0) return ESP_OK;
    const esp_status refused = espi_fail_errno(err, path);
    espi_stream_close(s);
    return refused;
}

bool espi_stream_packed(const espi_stream *s) { return s->source->packing != PLAIN; }

esp_status espi_stream_open_memory(espi_stream *s, const void *bytes, size_t size, const char *name, const esp_run *run,
                                   esp_error *err)
{
    const esp_status status = start(s, name, run, err);
    if (status != ESP_OK) return status;
    s->source->fd = -1;
    s->source->memory = bytes;
    s->source->memory_left = size;
    return ready(s, err);
}

void espi_stream_close(espi_stream *s)
{
    struct espi_source *src = s->source;
    if (src != NULL) {
        if (src->fd > STDIN_FILENO) close(src->fd);
        if (src->packing == GZIP) inflateEnd(&src->gzip);
        ZSTD_freeDStream(src->zstd);
        espi_free(src->packed);
        espi_free(src);
    }
    espi_free(s->buffer);
    *s = (espi_stream){0};
}

void espi_stream_advance(espi_stream *s, size_t n)
{
    char *from = s->at, *to = s->at + n, *newline;
    while ((newline = memchr(from, '\n', (size_t)(to - from))) != NULL) {
        s->line++;
        s->column = 1;
        from = newline + 1;
    }
    s->column += (size_t)(to - from);
    s->at = to;
}

size_t espi_stream_token(espi_stream *s, const bool stop[256])
{
    size_t n = 0;
    for (;;) {
        const size_t have = (size_t)(s->end - s->at);
        while (n < have && !stop[(unsigned char)s->at[n]]) n++;
        if (n < have || !espi_stream_fill(s)) break;
    }
    return n <= (size_t)(s->end - s->at) ? n : 0; /* a broken stream has nothing left */
}

const char *espi_stream_line(espi_stream *s, size_t *size)
{
    size_t looked = 0;
    const char *newline = NULL;
    for (;;) {
        const size_t have = (size_t)(s->end - s->at);
        if (have > looked) newline = memchr(s->at + looked, '\n', have - looked);
        if (newline != NULL) break;
        looked = have;
        if (!espi_stream_fill(s)) break;
    }
    *size = newline != NULL ? (size_t)(newline - s->at) : (size_t)(s->end - s->at);
    if (newline == NULL && *size == 0) return NULL;
    return s->at;
}

void espi_stream_blanks(espi_stream *s, bool lines)
{
    for (;;) {
        const int c = espi_stream_peek(s);
        if (c == ' ' || c == '\t' || c == '\r') espi_stream_skip(s);
        else if (c == '\n' && lines) espi_stream_advance(s, 1);
        else break;
    }
}

bool espi_stream_line_end(espi_stream *s)
{
    const int c = espi_stream_peek(s);
    if (c == '\n') espi_stream_advance(s, 1);
    return c == '\n' || c < 0;
}

void espi_stream_skip_line(espi_stream *s)
{
    while (s->at < s->end || espi_stream_fill(s)) {
        const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
        espi_stream_advance(s, newline != NULL ? (size_t)(newline - s->at) + 1 : (size_t)(s->end - s->at));
        if (newline != NULL) break;
    }
}

esp_status espi_stream_fail(const espi_stream *s, esp_error *err, const char *format, ...)
{
    if (s->status != ESP_OK) {
        if (err != NULL) *err = s->error;
        return s->status;
    }
    char clause[700];
    va_list args;
    va_start(args, format);
    vsnprintf(clause, sizeof clause, format, args);
    va_end(args);
    return espi_fail_at(err, s->name, s->line, s->column, "%s", clause);
}
