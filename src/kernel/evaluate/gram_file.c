/* Gram matrices made in their file. A strip of rows is computed in memory and written to its place; of a symmetric
 * matrix it ends at the diagonal and is also written to its mirror image, a short piece in each row above. The ranks of
 * a group take strips in turn, the widest first, so that the last ones are short and all end at about the same time.
 *
 * A file on a disk of this machine is mapped into memory: all who write to it are here, and many short writes of
 * several processes into one file wait for each other. Over a network a page belongs to one machine at a time, so that
 * each range is written by itself. */
#define _GNU_SOURCE /* fallocate */
#include "base/alloc.h"
#include "base/group.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "kernel/evaluate/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Rows of a strip: many make long pieces, few make many strips to divide. */
enum { LEAST = 16, MOST = 256, STRIPS = 8 };
static const double memory_most = 1e9; /* bytes for strips, where the caller sets no limit */

typedef struct strip_worker {
    espi_workspace *workspace;
    double *rows, *piece;
} strip_worker;

typedef struct strips {
    const espi_bound *bound;
    const char *path; /* for messages */
    int fd;
    size_t size;   /* bytes of the file */
    bool reserved; /* the room for all of it is there */
    char *map;     /* the file; NULL: it is not mapped */
    size_t height, count;
    strip_worker *worker;
} strips;

/* ------------------------------------------------------------------- strips */

static esp_status put(const strips *s, const double *values, size_t count, size_t row, size_t col, esp_error *err)
{
    const char *from = (const char *)values;
    size_t left = count * sizeof *values;
    off_t at = (off_t)(ESPI_NPY_HEADER + (row * s->bound->count[ESPI_COLS] + col) * sizeof *values);
    if (s->map != NULL) {
        memcpy(s->map + at, from, left);
        return ESP_OK;
    }
    while (left > 0) {
        const ssize_t done = pwrite(s->fd, from, left, at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return espi_fail_errno(err, s->path);
        from += done;
        left -= (size_t)done;
        at += done;
    }
    return ESP_OK;
}

static esp_status start_worker(const strips *s, strip_worker *w, const esp_run *run, esp_error *err)
{
    if (w->workspace != NULL) return ESP_OK;
    w->rows = espi_alloc(s->height * s->bound->count[ESPI_COLS], sizeof *w->rows);
    w->piece = espi_alloc(s->height, sizeof *w->piece);
    return w->rows == NULL || w->piece == NULL ? espi_no_memory(err)
                                               : espi_workspace_new(s->bound, run, &w->workspace, err);
}

/* Writes rows first .. last-1 of a symmetric matrix, which end at column last-1, and their mirror image. */
static esp_status put_symmetric(const strips *s, strip_worker *w, size_t first, size_t last, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = first; i < last; i++) /* a value is that of the later row, as in esp_gram */
        for (size_t j = i + 1; j < last; j++) w->rows[(i - first) * last + j] = w->rows[(j - first) * last + i];
    for (size_t i = first; status == ESP_OK && i < last; i++)
        status = put(s, w->rows + (i - first) * last, last, i, 0, err);
    for (size_t j = 0; status == ESP_OK && j < first; j++) {
        for (size_t i = first; i < last; i++) w->piece[i - first] = w->rows[(i - first) * last + j];
        status = put(s, w->piece, last - first, j, first, err);
    }
    return status;
}

static esp_status make_strip(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const strips *s = context;
    const espi_bound *b = s->bound;
    strip_worker *w = &s->worker[thread->number];
    const size_t rows = b->count[ESPI_ROWS], first = (s->count - 1 - item) * s->height;
    const size_t last = rows - first < s->height ? rows : first + s->height;
    const size_t width = b->symmetric ? last : b->count[ESPI_COLS];
    esp_status status = start_worker(s, w, thread->run, err);
    for (size_t i = first; status == ESP_OK && i < last; i++) {
        status = espi_bound_row(w->workspace, b->kernel->ops - 1, i, 0, width, w->rows + (i - first) * width, err);
        if (status == ESP_OK) status = espi_progress(thread->run, "computing the kernel", 0.0, err);
    }
    if (status != ESP_OK) return status;
    if (b->symmetric) return put_symmetric(s, w, first, last, err);
    return put(s, w->rows, (last - first) * width, first, 0, err);
}

/* Every rank proposes what suits its memory and threads; the least is taken. */
static esp_status choose_height(strips *s, const esp_run *run, esp_error *err)
{
    const size_t rows = s->bound->count[ESPI_ROWS], ranks = (size_t)espi_group_size(run);
    const double workers = espi_worker_count(run, rows), row = (double)(s->bound->count[ESPI_COLS] * sizeof(double));
    const double room = run != NULL && run->memory > 0 ? 0.5 * (double)run->memory : memory_most;
    const double fit = room < memory_most ? room / (workers * row) : memory_most / (workers * row);
    char need[32], limit[32];
    uint64_t height = rows / (STRIPS * ranks * (size_t)workers) + 1;
    height = height < LEAST ? LEAST : height > MOST ? MOST : height;
    if ((double)height > fit) height = (uint64_t)fit;
    if (height == 0 && run != NULL && run->memory > 0 && 2.0 * row * workers > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "a row of the matrix for each thread takes %s; the limit is %s",
                         espi_size_text(2.0 * row * workers, need), espi_size_text((double)run->memory, limit));
    if (height == 0) height = 1;
    uint64_t *all = espi_alloc(ranks, sizeof *all);
    const esp_status status =
        all == NULL ? espi_no_memory(err) : espi_group_gather(run, &height, sizeof height, all, err);
    for (size_t r = 0; status == ESP_OK && r < ranks; r++) height = all[r] < height ? all[r] : height;
    s->height = (size_t)height;
    s->count = (rows + s->height - 1) / s->height;
    espi_free(all);
    return status;
}

static esp_status fill(strips *s, const esp_run *run, esp_error *err)
{
    const int workers = espi_worker_count(run, s->count);
    s->worker = espi_alloc_zero((size_t)workers, sizeof *s->worker);
    esp_status status = s->worker == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = espi_group_deal(run, "computing the kernel", s->count, 1, make_strip, s, err);
    for (int i = 0; s->worker != NULL && i < workers; i++) {
        espi_workspace_free(s->worker[i].workspace);
        espi_free(s->worker[i].rows);
        espi_free(s->worker[i].piece);
    }
    espi_free(s->worker);
    if (status == ESP_OK && fsync(s->fd) != 0) status = espi_fail_errno(err, s->path);
    return status;
}

/* --------------------------------------------------------------------- file */

/* Takes all the room that the file will need, where the file system can, so that a full disk is told now. */
static bool take_room(strips *s)
{
    s->reserved = fallocate(s->fd, 0, 0, (off_t)s->size) == 0;
    if (s->reserved) return true;
    return (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) && ftruncate(s->fd, (off_t)s->size) == 0;
}

/* Only where the room is there: a mapped page that has none ends the process. */
static void map_file(strips *s)
{
    static const long local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC};
    struct statfs system;
    if (!s->reserved || fstatfs(s->fd, &system) != 0) return;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if ((long)system.f_type != local[i]) continue;
        void *map = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        s->map = map != MAP_FAILED ? map : NULL;
        return;
    }
}

/* Rank 0 makes a temporary file beside the target, with its head. */
static esp_status make_file(strips *s, const char *target, char temporary[PATH_MAX], esp_error *err)
{
    const size_t rows = s->bound->count[ESPI_ROWS], cols = s->bound->count[ESPI_COLS];
    const char *slash = strrchr(target, '/');
    const int folder = slash != NULL ? (int)(slash - target) + 1 : 0;
    char header[ESPI_NPY_HEADER];
    struct stat st;
    if (stat(target, &st) == 0 && !S_ISREG(st.st_mode))
        return espi_fail(err, ESP_ERR_PARAM, "%s is not a file; a matrix that is written in place needs one", s->path);
    for (int attempt = 0; attempt < 1000 && s->fd < 0; attempt++) {
        snprintf(temporary, PATH_MAX, "%.*s.espalier-%ld-%d.tmp", folder, target, (long)getpid(), attempt);
        s->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd < 0 && errno != EEXIST) break;
    }
    if (s->fd < 0) temporary[0] = '\0';
    espi_npy_header(rows, cols, header);
    if (s->fd >= 0 && take_room(s) && pwrite(s->fd, header, sizeof header, 0) == (ssize_t)sizeof header) return ESP_OK;
    return espi_fail_errno(err, s->path);
}

static esp_status open_file(strips *s, const char *target, char temporary[PATH_MAX], const esp_run *run, esp_error *err)
{
    esp_status status = espi_group_rank(run) == 0 ? make_file(s, target, temporary, err) : ESP_OK;
    espi_group_end(run, status, err);
    if (status == ESP_OK) status = espi_group_broadcast(run, temporary, PATH_MAX, err);
    if (status == ESP_OK) status = espi_group_broadcast(run, &s->reserved, sizeof s->reserved, err);
    if (status == ESP_OK && s->fd < 0) s->fd = open(temporary, O_RDWR | O_CLOEXEC);
    if (status != ESP_OK) return status;
    if (s->fd < 0)
        return espi_fail(err, ESP_ERR_IO,
                         "%s: %s: all ranks write into the file that rank 0 makes, so they must share its folder",
                         temporary, strerror(errno));
    map_file(s);
    return espi_group_barrier(run, err); /* none may fail and remove the file before all have opened it */
}

static esp_status publish(const strips *s, const char *target, const char *temporary, const esp_run *run,
                          esp_error *err)
{
    struct stat st;
    esp_status status = espi_group_barrier(run, err);
    if (status == ESP_OK && espi_group_rank(run) == 0) {
        if (stat(target, &st) == 0) (void)chmod(temporary, st.st_mode & 07777);
        if (rename(temporary, target) != 0) status = espi_fail_errno(err, s->path);
        espi_group_end(run, status, err);
    }
    return status == ESP_OK ? espi_group_barrier(run, err) : status;
}

/* On failure every rank that is left removes the file, since rank 0 may be gone. */
static esp_status write_file(strips *s, const char *target, const esp_run *run, esp_error *err)
{
    char *temporary = espi_alloc_zero(PATH_MAX, 1);
    esp_status status = temporary == NULL ? espi_no_memory(err) : choose_height(s, run, err);
    if (status == ESP_OK) status = open_file(s, target, temporary, run, err);
    if (status == ESP_OK) status = fill(s, run, err);
    if (s->map != NULL) munmap(s->map, s->size);
    if (s->fd >= 0 && close(s->fd) != 0 && status == ESP_OK) status = espi_fail_errno(err, s->path);
    if (status == ESP_OK) status = publish(s, target, temporary, run, err);
    if (status != ESP_OK && temporary != NULL && temporary[0] != '\0') (void)unlink(temporary);
    espi_free(temporary);
    return status;
}

esp_status esp_gram_file(const esp_kernel *kernel, const esp_dataset *rows, const esp_dataset *cols, const char *path,
                         const esp_run *run, esp_error *err)
{
    espi_bound *bound = NULL;
    esp_error own;
    if (err == NULL) err = &own;
    if (cols == NULL) cols = rows;
    const double bytes = (double)rows->rows * (double)cols->rows * sizeof(double);
    char *real = realpath(path, NULL), need[32]; /* the rename replaces the file, not a link to it */
    const char *target = real != NULL ? real : path;
    esp_status status = ESP_OK;
    if (strlen(target) + 64 > PATH_MAX || bytes > 9e18)
        status = bytes > 9e18
                     ? espi_fail(err, ESP_ERR_PARAM, "a matrix of %zu x %zu takes %s, more than a file can hold",
                                 rows->rows, cols->rows, espi_size_text(bytes, need))
                     : espi_fail(err, ESP_ERR_PARAM, "%s: the name is too long", path);
    if (status == ESP_OK) status = espi_group_agree(run, "other data", espi_dataset_digest_all(rows), err);
    if (status == ESP_OK && cols != rows)
        status = espi_group_agree(run, "other data", espi_dataset_digest_all(cols), err);
    if (status == ESP_OK) status = esp_group_agree(run, "kernel", kernel->text, err);
    const esp_run apart = espi_group_apart(run);
    if (status == ESP_OK) status = espi_bind(kernel, rows, cols, &apart, &bound, err);
    strips s = {.bound = bound, .path = path, .fd = -1};
    s.size = ESPI_NPY_HEADER + rows->rows * cols->rows * sizeof(double);
    if (status == ESP_OK) status = write_file(&s, target, run, err);
    espi_bound_free(bound);
    free(real);
    return espi_group_end(run, status, err);
}
