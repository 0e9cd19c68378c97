/* Model files are read without trust. First the checksum, which finds damage; then every count, place and number, since
 * whoever makes a file can make its checksum too. Arrays are never larger than the sections they come from, and tables
 * are built anew by the code that built them first, which must number everything as the file does. */
#include "base/alloc.h"
#include "data/section.h"
#include "kernel/evaluate/registry.h"
#include "learn/model/file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const espi_file_kind espi_model_kind = {.name = "model file", .magic = ESPI_MODEL_MAGIC, .version = ESPI_MODEL_VERSION};

/* A failure of another part of the library, as one of this file. */
static esp_status in_file(const espi_section_file *f, esp_status status, const esp_error *why)
{
    if (status == ESP_OK) return ESP_OK;
    return status == ESP_ERR_MEMORY ? espi_no_memory(f->err) : espi_file_wrong(f, "%s", why->message);
}

static esp_status read_kernel(espi_section_file *f, esp_model *m)
{
    esp_error why = {0};
    char *text = NULL;
    esp_status status = espi_section_text(f, "kernel", &text);
    if (status == ESP_OK) status = in_file(f, espi_model_check_kernel(text, &why), &why);
    if (status == ESP_OK) status = in_file(f, espi_kernel_parse(text, false, &m->kernel, &why), &why);
    espi_free(text);
    return status;
}

static esp_status read_classes(espi_section_file *f, esp_model *m)
{
    espi_symbols names = {0};
    esp_status status = espi_section_symbols(f, "classes", &names);
    if (status == ESP_OK && names.count > 0) {
        m->class_name = espi_alloc(names.count, sizeof *m->class_name);
        if (m->class_name == NULL) status = espi_no_memory(f->err);
    }
    for (size_t i = 0; status == ESP_OK && i < names.count; i++) {
        const espi_section name = {(const unsigned char *)names.symbol[i].text, names.symbol[i].size, "classes"};
        status = espi_bytes_text(f, name, &m->class_name[i]);
        if (status == ESP_OK) m->classes++;
    }
    espi_symbols_free(&names);
    return status;
}

/* Rows, columns, outputs and flags. No section could hold more rows or outputs than the file has bytes. */
static esp_status read_shape(espi_section_file *f, esp_model *m, uint64_t *columns, uint64_t *flags)
{
    espi_section s = {0};
    const esp_status status = espi_section_take(f, "shape", &s);
    if (status != ESP_OK) return status;
    if (s.size != 32) return espi_section_wrong(f, s, "its size is wrong");
    const uint64_t rows = espi_u64_at(s.at), outputs = espi_u64_at(s.at + 16);
    *columns = espi_u64_at(s.at + 8);
    *flags = espi_u64_at(s.at + 24);
    if (rows > f->size || outputs == 0 || outputs > f->size || rows > f->size / outputs || *columns > f->sections)
        return espi_section_wrong(f, s, "a number is too large");
    const uint64_t known = ESPI_MODEL_ONE_VS_ONE | ESPI_MODEL_PLATT | (f->version == 2 ? ESPI_MODEL_VOTE : 0) |
                           (f->version == 4 ? ESPI_MODEL_INDUCING : 0);
    if ((*flags & ~known) != 0) return espi_section_wrong(f, s, "its flags are unknown");
    m->support->rows = (size_t)rows;
    m->outputs = (size_t)outputs;
    m->one_vs_one = (*flags & ESPI_MODEL_ONE_VS_ONE) != 0;
    m->vote = (*flags & ESPI_MODEL_VOTE) != 0;
    return ESP_OK;
}

/* Of a model that was learned example by example: what version 2 has more than version 1. */
static esp_status read_history(espi_section_file *f, esp_model *m)
{
    espi_history *h = m->history = espi_alloc_zero(1, sizeof *h);
    uint64_t *count = NULL, *tally = NULL;
    if (h == NULL) return espi_no_memory(f->err);
    esp_status status = espi_section_u64(f, "history", 5, &count);
    if (status == ESP_OK) status = espi_section_u64(f, "tally", 3 * (uint64_t)m->classes, &tally);
    if (status == ESP_OK) status = espi_section_u64(f, "steps", m->support->rows, &h->step);
    if (status == ESP_OK)
        status = espi_section_doubles(f, "changes", (uint64_t)m->support->rows * m->outputs, &h->change);
    if (status == ESP_OK) {
        h->steps = count[0];
        h->mistakes = count[1];
        h->epochs = count[2];
        h->at = count[3];
        h->origin = count[4];
        h->tally = espi_alloc(m->classes, sizeof *h->tally);
        if (h->tally == NULL) status = espi_no_memory(f->err);
    }
    for (size_t c = 0; status == ESP_OK && c < m->classes; c++)
        h->tally[c] = (espi_tally){tally[3 * c], tally[3 * c + 1], tally[3 * c + 2]};
    espi_free(count);
    espi_free(tally);
    return status;
}

static esp_status read_reduction(espi_section_file *f, esp_model *m)
{
    const uint64_t n = m->support->rows;
    if (n > 0 && n > f->size / n) return espi_file_wrong(f, "section 'reduce': it cannot have room for its numbers");
    return espi_section_doubles(f, "reduce", n * n, &m->gaussian->reduction);
}

/* Of a Gaussian process: what version 4, or 5 with more than two classes, has more than version 1. */
static esp_status read_process(espi_section_file *f, esp_model *m, bool inducing)
{
    espi_gaussian *p = m->gaussian = espi_alloc_zero(1, sizeof *p);
    double *number = NULL;
    espi_section s = {0};
    if (p == NULL) return espi_no_memory(f->err);
    esp_status status = espi_section_doubles(f, "process", 3, &number);
    if (status == ESP_OK) *p = (espi_gaussian){.scale = number[0], .noise = number[1], .jitter = number[2]};
    espi_free(number);
    if (status != ESP_OK) return status;
    if (m->classes > 0 && inducing) return espi_file_wrong(f, "only numbers are learned with inducing examples");
    if ((m->classes > 2) != (f->version == 5))
        return espi_file_wrong(f, "version %u is not for %zu classes", (unsigned)f->version, m->classes);
    if (m->classes > 0) return espi_section_doubles(f, "curve", (uint64_t)m->support->rows * m->outputs, &p->curvature);
    status = espi_section_take(f, "curve", &s);
    if (status == ESP_OK && s.size > 0) return espi_section_wrong(f, s, "it is not empty");
    return status == ESP_OK && inducing ? read_reduction(f, m) : status;
}

static esp_status read_platt(espi_section_file *f, esp_model *m, bool there)
{
    espi_section s = {0};
    if (there) return espi_section_doubles(f, "platt", 2 * (uint64_t)m->outputs, &m->platt);
    const esp_status status = espi_section_take(f, "platt", &s);
    return status != ESP_OK || s.size == 0 ? status : espi_section_wrong(f, s, "it is not empty");
}

static esp_status read_model(espi_section_file *f, esp_model *m)
{
    esp_error why = {0};
    uint64_t columns = 0, flags = 0;
    m->support = espi_dataset_new(ESP_FORMAT_JSONL);
    if (m->support == NULL) return espi_no_memory(f->err);
    esp_status status = read_kernel(f, m);
    if (status == ESP_OK) status = espi_section_text(f, "learner", &m->learner);
    if (status == ESP_OK) status = espi_section_text(f, "settings", &m->settings);
    if (status == ESP_OK) status = espi_section_text(f, "summary", &m->summary);
    if (status == ESP_OK) status = read_shape(f, m, &columns, &flags);
    if (status == ESP_OK) status = read_classes(f, m);
    if (status == ESP_OK) status = espi_section_doubles(f, "bias", m->outputs, &m->bias);
    if (status == ESP_OK)
        status = espi_section_doubles(f, "coef", (uint64_t)m->support->rows * m->outputs, &m->coefficient);
    if (status == ESP_OK) status = read_platt(f, m, (flags & ESPI_MODEL_PLATT) != 0);
    if (status == ESP_OK && f->version == 2) status = read_history(f, m);
    if (status == ESP_OK && f->version == 3) status = espi_selections_read(f, m);
    if (status == ESP_OK && f->version >= 4) status = read_process(f, m, (flags & ESPI_MODEL_INDUCING) != 0);
    for (uint64_t i = 0; status == ESP_OK && i < columns; i++) status = espi_section_column(f, m->support);
    if (status == ESP_OK && (f->next != f->sections || f->end != f->size))
        status = espi_file_wrong(f, "it holds too much");
    return status == ESP_OK ? in_file(f, espi_model_check(m, &why), &why) : status;
}

esp_status esp_model_parse(const void *bytes, size_t size, const char *name, esp_model **out, esp_error *err)
{
    espi_section_file f = {.name = name, .kind = &espi_model_kind, .bytes = bytes, .size = size, .err = err};
    *out = NULL;
    esp_status status = espi_section_file_check(&f);
    if (status != ESP_OK) return status;
    esp_model *m = espi_model_new();
    if (m == NULL) return espi_no_memory(err);
    status = read_model(&f, m);
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    return status;
}

/* ------------------------------------------------------------------- files */

esp_status esp_model_read(const char *path, esp_model **out, esp_error *err)
{
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    char *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return espi_fail_errno(err, path);
    esp_status status = espi_section_file_load(fd, name, &espi_model_kind, &bytes, &size, err);
    if (!standard) close(fd);
    if (status == ESP_OK) status = esp_model_parse(bytes, size, name, out, err);
    espi_free(bytes);
    return status;
}

bool esp_model_recognise(const char *path) { return espi_section_file_recognise(path, &espi_model_kind); }
