/* Reads a share of some files: their bytes, one file behind the other, are divided among the ranks of a group. A file
 * that can only be read as a whole goes to whoever has its first byte. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/status.h"
#include "data/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file {
    const char *path;
    uint64_t size;
} file;

static esp_status measure(const char *path, uint64_t *size, esp_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return espi_fail_errno(err, path);
    if (!S_ISREG(st.st_mode))
        return espi_fail(err, ESP_ERR_PARAM, "%s is no regular file, which ranks could divide among them", path);
    *size = (uint64_t)st.st_size;
    return ESP_OK;
}

/* The first byte at or behind `at` that begins a line. */
static esp_status line_from(const file *f, uint64_t at, uint64_t *begin, esp_error *err)
{
    char some[1 << 12];
    *begin = at;
    if (at == 0 || at >= f->size) return ESP_OK;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return espi_fail_errno(err, f->path);
    esp_status status = ESP_OK;
    for (uint64_t from = at - 1;;) {
        const ssize_t size = pread(fd, some, sizeof some, (off_t)from);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) status = espi_fail_errno(err, f->path);
        const char *newline = size > 0 ? memchr(some, '\n', (size_t)size) : NULL;
        *begin = newline != NULL ? from + (uint64_t)(newline - some) + 1 : f->size;
        if (size <= 0 || newline != NULL) break;
        from += (uint64_t)size;
    }
    close(fd);
    return status;
}

/* What lies of a file, whose first byte is number `first` of all, in from .. to-1; an empty piece is not counted. */
static esp_status cut(const file *f, uint64_t first, uint64_t from, uint64_t to, const esp_read_options *options,
                      const esp_run *run, espi_piece *out, size_t *count, esp_format *format, esp_error *err)
{
    const uint64_t last = first + f->size;
    if (f->size == 0 || last <= from || first >= to) return ESP_OK;
    espi_piece p = {.path = f->path, .to = UINT64_MAX};
    bool pieces;
    esp_format of;
    esp_status status = espi_file_has_pieces(f->path, options, run, &pieces, &of, err);
    if (status == ESP_OK && *count > 0 && of != *format)
        status = espi_fail(err, ESP_ERR_PARAM, "%s is a file of another format than those before it", f->path);
    *format = of;
    if (status == ESP_OK && pieces && (first < from || last > to)) {
        status = line_from(f, from > first ? from - first : 0, &p.from, err);
        if (status == ESP_OK) status = line_from(f, to < last ? to - first : f->size, &p.to, err);
    }
    if (status != ESP_OK || p.from == p.to || (!pieces && first < from)) return status;
    out[(*count)++] = p;
    return ESP_OK;
}

esp_status esp_dataset_read_share(const char *const *paths, size_t count, const esp_read_options *options,
                                  const esp_run *run, esp_dataset **out, esp_error *err)
{
    const uint64_t ranks = (uint64_t)espi_group_size(run), rank = (uint64_t)espi_group_rank(run);
    espi_piece *piece = espi_alloc(count, sizeof *piece);
    file *f = espi_alloc(count, sizeof *f);
    esp_read_options how = options != NULL ? *options : (esp_read_options){0};
    const esp_run here = espi_group_apart(run);
    uint64_t all = 0, first = 0;
    size_t pieces = 0;
    *out = NULL;
    esp_status status = piece == NULL || f == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        f[i] = (file){.path = paths[i]};
        status = measure(paths[i], &f[i].size, err);
        all += f[i].size;
    }
    /* Two numbers of 64 bits are multiplied only as far as that fits. */
    const uint64_t part = all / ranks, rest = all % ranks;
    const uint64_t from = part * rank + rest * rank / ranks, to = part * (rank + 1) + rest * (rank + 1) / ranks;
    for (size_t i = 0; status == ESP_OK && i < count; first += f[i++].size)
        status = cut(&f[i], first, from, to, options, &here, piece, &pieces, &how.format, err);
    if (status == ESP_OK) status = espi_dataset_read_pieces(piece, pieces, &how, &here, out, err);
    if (status == ESP_OK && ranks == 1 && (*out)->rows == 0) {
        esp_dataset_free(*out);
        *out = NULL;
        status = espi_fail(err, ESP_ERR_PARSE, "%s: no examples", count > 0 ? paths[0] : "no file");
    }
    espi_free(piece);
    espi_free(f);
    return status;
}
