/* Index files: a file of sections (data/section.h) that is mapped where the kernel is one over trees. docs/search.md
 * describes it. The checksum, over the whole file, finds damage when it is opened; what means harm is met where it is
 * used, since nothing in the arrays is relied on without comparing it with its bounds. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/evaluate/registry.h"
#include "kernel/expression/columns.h"
#include "search/index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INDEX_VERSION = 1, MOST_COLUMNS = 1 << 12 };

const espi_file_kind espi_index_kind = {.name = "index file",
                                        .magic = "\x89"
                                                 "EIX\r\n\x1A\n",
                                        .version = INDEX_VERSION};

static void put_index(espi_section_sink *s, const void *what)
{
    const esp_index *x = what;
    espi_put_text(s, "kernel", esp_kernel_text(x->kernel));
    espi_put_u64s(s, "shape",
                  (const uint64_t[]){x->count, x->by_trees ? 0 : x->data->columns, x->id_field != NULL ? 1 : 0}, 3);
    espi_put_text(s, "idfield", x->id_field);
    espi_put_u64s(s, "idends", x->id_end, x->id_end != NULL ? x->count : 0);
    espi_put_begin(s, "idtexts");
    espi_put(s, x->id_text, x->id_bytes);
    espi_put_end(s);
    if (x->by_trees) espi_tree_index_put(s, &x->trees);
    for (size_t i = 0; !x->by_trees && i < x->data->columns; i++) espi_put_column(s, &x->data->column[i]);
}

/* Numbers are written as they lie in memory. */
static esp_status check_order(esp_error *err)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "index files need a machine that stores the low byte of a number first");
}

static espi_section_source source_of(const esp_index *x)
{
    return (espi_section_source){.kind = &espi_index_kind, .version = INDEX_VERSION, .put = put_index, .what = x};
}

esp_status esp_index_write(const esp_index *index, const char *path, esp_error *err)
{
    const espi_section_source source = source_of(index);
    const esp_status status = check_order(err);
    return status == ESP_OK ? espi_sections_write(&source, path, err) : status;
}

esp_status espi_index_digest(const esp_index *index, uint64_t *digest, esp_error *err)
{
    const espi_section_source source = source_of(index);
    return espi_sections_digest(&source, digest, err);
}

esp_status esp_index_bytes(const esp_index *index, char **bytes, size_t *size, esp_error *err)
{
    const espi_section_source source = source_of(index);
    *bytes = NULL;
    *size = 0;
    const esp_status status = check_order(err);
    return status == ESP_OK ? espi_sections_bytes(&source, bytes, size, err) : status;
}

/* ------------------------------------------------------------------- reading */

/* A failure of another part of the library, as one of this file. */
static esp_status in_file(const espi_section_file *f, esp_status status, const esp_error *why)
{
    if (status == ESP_OK || status == ESP_ERR_CANCELLED) return status;
    return status == ESP_ERR_MEMORY ? espi_no_memory(f->err) : espi_file_wrong(f, "%s", why->message);
}

static esp_status read_kernel(espi_section_file *f, esp_index *x)
{
    esp_error why = {0};
    char *text = NULL;
    esp_status status = espi_section_text(f, "kernel", &text);
    if (status == ESP_OK) status = in_file(f, espi_index_check_kernel(text, &why), &why);
    if (status == ESP_OK) status = in_file(f, espi_kernel_parse(text, false, &x->kernel, &why), &why);
    espi_free(text);
    for (size_t i = 0; status == ESP_OK && i < x->kernel->leaves; i++)
        if (x->kernel->leaf[i].column == NULL) status = espi_file_wrong(f, "the kernel does not name its columns");
    return status == ESP_OK ? in_file(f, espi_index_shape(x, &why), &why) : status;
}

static esp_status read_shape(espi_section_file *f, esp_index *x, size_t *columns, bool *names)
{
    uint64_t *number = NULL;
    const esp_status status = espi_section_u64(f, "shape", 3, &number);
    if (status == ESP_OK) {
        x->count = number[0] < ESPI_NO_NODE ? (size_t)number[0] : 0;
        *columns = number[1] <= MOST_COLUMNS ? (size_t)number[1] : SIZE_MAX;
        *names = number[2] == 1;
    }
    const bool right = status == ESP_OK && x->count > 0 && x->count <= f->size && number[2] <= 1 &&
                       (x->by_trees ? *columns == 0 : *columns > 0 && *columns <= MOST_COLUMNS);
    espi_free(number);
    if (status != ESP_OK) return status;
    return right ? ESP_OK : espi_file_wrong(f, "section 'shape': a number is wrong");
}

static esp_status read_names(espi_section_file *f, esp_index *x, bool names)
{
    espi_section ends = {0}, texts = {0};
    size_t count = 0;
    esp_status status = espi_section_text(f, "idfield", &x->id_field);
    if (status == ESP_OK) status = espi_section_items(f, "idends", 8, &ends, &count);
    if (status == ESP_OK) status = espi_section_take(f, "idtexts", &texts);
    if (status != ESP_OK) return status;
    if (count != (names ? x->count : 0)) return espi_section_wrong(f, ends, "there is not one name per example");
    if (names) {
        x->id_end = (const uint64_t *)(const void *)ends.at;
        x->id_text = (const char *)texts.at;
        x->id_bytes = texts.size;
        return ESP_OK;
    }
    espi_free(x->id_field);
    x->id_field = NULL;
    return texts.size == 0 ? ESP_OK : espi_section_wrong(f, texts, "it is not empty");
}

static esp_status read_columns(espi_section_file *f, esp_index *x, size_t columns, const esp_run *run)
{
    esp_error why = {0};
    esp_status status = ESP_OK;
    x->data = espi_dataset_new(ESP_FORMAT_JSONL);
    if (x->data == NULL) return espi_no_memory(f->err);
    x->data->rows = x->count;
    for (size_t i = 0; status == ESP_OK && i < columns; i++) status = espi_section_column(f, x->data);
    if (status == ESP_OK) status = in_file(f, espi_check_sections(x->data, &why), &why);
    if (status == ESP_OK) status = in_file(f, espi_bind(x->kernel, x->data, x->data, run, &x->bound, &why), &why);
    return status;
}

static esp_status read_index(espi_section_file *f, esp_index *x, const esp_run *run)
{
    size_t columns = 0;
    bool names = false;
    esp_status status = check_order(f->err);
    if (status == ESP_OK) status = espi_section_file_check(f);
    if (status == ESP_OK) status = read_kernel(f, x);
    if (status == ESP_OK) status = read_shape(f, x, &columns, &names);
    if (status == ESP_OK) status = read_names(f, x, names);
    if (status == ESP_OK && x->by_trees) {
        const bool bow = espi_leaf_value_or(&x->kernel->leaf[0], "bow", 0.0) > 0.0;
        status = espi_tree_index_take(f, x->count, bow, &x->trees);
    } else if (status == ESP_OK) {
        status = read_columns(f, x, columns, run);
    }
    if (status == ESP_OK && (f->next != f->sections || f->end != f->size))
        status = espi_file_wrong(f, "it holds too much");
    return status;
}

/* An index whose bytes it owns already. */
static esp_status finish(esp_index *x, const void *bytes, size_t size, const char *name, const esp_run *run,
                         esp_index **out, esp_error *err)
{
    espi_section_file f = {.name = name, .kind = &espi_index_kind, .bytes = bytes, .size = size, .err = err};
    x->file = espi_copy_text(name, strlen(name));
    const esp_status status = x->file == NULL ? espi_no_memory(err) : read_index(&f, x, run);
    if (status == ESP_OK) *out = x;
    else esp_index_free(x);
    return status;
}

esp_status esp_index_parse(const void *bytes, size_t size, const char *name, const esp_run *run, esp_index **out,
                           esp_error *err)
{
    *out = NULL;
    esp_index *x = espi_alloc_zero(1, sizeof *x);
    if (x != NULL) x->bytes = espi_alloc(size, 1); /* a copy is aligned */
    if (x == NULL || x->bytes == NULL) {
        espi_free(x);
        return espi_no_memory(err);
    }
    if (size > 0) memcpy(x->bytes, bytes, size);
    return finish(x, x->bytes, size, name, run, out, err);
}

/* The bytes of a file: mapped, or read where there is nothing to map. */
static esp_status open_bytes(esp_index *x, int fd, const char *name, const void **bytes, size_t *size, esp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return espi_fail_errno(err, name);
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) {
            x->map = map;
            x->map_size = (size_t)st.st_size;
            *bytes = map;
            *size = x->map_size;
            return ESP_OK;
        }
    }
    const esp_status status = espi_section_file_load(fd, name, &espi_index_kind, &x->bytes, size, err);
    *bytes = x->bytes;
    return status;
}

esp_status esp_index_read(const char *path, const esp_run *run, esp_index **out, esp_error *err)
{
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    const void *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return espi_fail_errno(err, path);
    esp_index *x = espi_alloc_zero(1, sizeof *x);
    esp_status status = x == NULL ? espi_no_memory(err) : open_bytes(x, fd, name, &bytes, &size, err);
    if (!standard) close(fd);
    if (status == ESP_OK) return finish(x, bytes, size, name, run, out, err);
    esp_index_free(x);
    return status;
}

bool esp_index_recognise(const char *path) { return espi_section_file_recognise(path, &espi_index_kind); }
