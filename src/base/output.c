#include "base/output.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

struct espi_output {
    int fd;
    int error;       /* errno of the first failure */
    char *path;      /* the target; for messages and for the rename */
    char *temporary; /* NULL: written directly */
    size_t used;
    char buffer[BUFFER];
};

static void release(espi_output *o)
{
    espi_free(o->path);
    espi_free(o->temporary);
    espi_free(o);
}

/* A new file in the target's folder, named after this process, with the mode a new file would get. */
static int open_temporary(espi_output *o)
{
    const char *slash = strrchr(o->path, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - o->path) + 1 : 0, size = folder + 64;
    o->temporary = espi_alloc(size, 1);
    if (o->temporary == NULL) errno = ENOMEM;
    if (o->temporary == NULL) return -1;
    int fd = -1;
    for (int attempt = 0; attempt < 1000 && fd < 0; attempt++) {
        memcpy(o->temporary, o->path, folder);
        snprintf(o->temporary + folder, size - folder, ".espalier-%ld-%d.tmp", (long)getpid(), attempt);
        fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

/* Follows symbolic links, so that the rename replaces the file and not the link. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = real != NULL ? espi_copy_text(real, strlen(real)) : espi_copy_text(path, strlen(path));
    free(real);
    return copy;
}

esp_status espi_output_open(const char *path, espi_output **out, esp_error *err)
{
    *out = NULL;
    espi_output *o = espi_alloc_zero(1, sizeof *o);
    if (o == NULL) return espi_no_memory(err);
    const bool standard = strcmp(path, "-") == 0;
    o->path = standard ? espi_copy_text("standard output", 15) : resolve(path);
    if (o->path == NULL) {
        release(o);
        return espi_no_memory(err);
    }
    struct stat st;
    const bool exists = !standard && stat(o->path, &st) == 0;
    if (standard) {
        o->fd = STDOUT_FILENO;
    } else if (exists && !S_ISREG(st.st_mode)) {
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
    } else if (exists && access(o->path, W_OK) != 0) {
        o->fd = -1;
    } else {
        o->fd = open_temporary(o);
    }
    if (o->fd < 0) {
        const esp_status status = errno == ENOMEM ? espi_no_memory(err) : espi_fail_errno(err, path);
        release(o);
        return status;
    }
    *out = o;
    return ESP_OK;
}

static void flush(espi_output *o)
{
    size_t done = 0;
    while (done < o->used && o->error == 0) {
        const ssize_t n = write(o->fd, o->buffer + done, o->used - done);
        if (n >= 0) done += (size_t)n;
        else if (errno != EINTR) o->error = errno;
    }
    o->used = 0;
}

void espi_output_write(espi_output *o, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size > 0) {
        if (o->used == BUFFER) flush(o);
        const size_t part = size < BUFFER - o->used ? size : BUFFER - o->used;
        memcpy(o->buffer + o->used, from, part);
        o->used += part;
        from += part;
        size -= part;
    }
}

esp_status espi_output_commit(espi_output *o, esp_error *err)
{
    flush(o);
    if (o->temporary != NULL && o->error == 0 && fsync(o->fd) != 0) o->error = errno;
    if (o->fd != STDOUT_FILENO && close(o->fd) != 0 && o->error == 0) o->error = errno;
    if (o->temporary != NULL) {
        struct stat st;
        if (o->error == 0 && stat(o->path, &st) == 0) (void)chmod(o->temporary, st.st_mode & 07777);
        if (o->error == 0 && rename(o->temporary, o->path) != 0) o->error = errno;
        if (o->error != 0) unlink(o->temporary);
    }
    errno = o->error;
    const esp_status status = o->error == 0 ? ESP_OK : espi_fail_errno(err, o->path);
    release(o);
    return status;
}

void espi_output_discard(espi_output *o)
{
    if (o == NULL) return;
    if (o->fd != STDOUT_FILENO) close(o->fd);
    if (o->temporary != NULL) unlink(o->temporary);
    release(o);
}
