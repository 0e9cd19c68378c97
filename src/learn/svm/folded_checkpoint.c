/* Checkpoints of the folded solver. A file holds, in the byte order of the machine:
 *
 *     magic, digest, first problem, problems, state, records of all problems of the training,
 *     per problem the number of variables that are not 0, and each with its number,
 *     one bit per example of the problems at hand: whether it is active, and as many: whether it is near,
 *     a hash of all that. */
#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/output.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/svm/folded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char magic[16] = "espalier svm 1\n";

/* ----------------------------------------------------------------- digest */

static void add_text(uint64_t *digest, const char *text, size_t size)
{
    *digest = XXH3_64bits_withSeed(text, size, *digest + size + 1);
}

esp_status espi_folded_digest(const espi_training *t, const esp_kernel *kernel, const espi_folded_sum *sum,
                              uint64_t *out, esp_error *err)
{
    uint64_t digest;
    char *settings = espi_settings_text(t->settings);
    if (settings == NULL || !espi_folded_sum_digest(sum, &digest)) {
        espi_free(settings);
        return espi_no_memory(err);
    }
    add_text(&digest, (const char *)&t->settings->seed, sizeof t->settings->seed);
    add_text(&digest, kernel->text, strlen(kernel->text));
    add_text(&digest, settings, strlen(settings));
    espi_free(settings);
    add_text(&digest, (const char *)t->example, t->count * sizeof *t->example);
    if (t->targets->class_of != NULL)
        add_text(&digest, (const char *)t->targets->class_of, t->targets->count * sizeof *t->targets->class_of);
    if (t->targets->value != NULL)
        add_text(&digest, (const char *)t->targets->value, t->targets->count * sizeof *t->targets->value);
    *out = digest;
    return ESP_OK;
}

/* ---------------------------------------------------------------- writing */

/* Not more often than every few seconds, and for a small part of the time. */
static bool is_due(const espi_folded_checkpoint *c)
{
    const double wait = 5.0 > 20.0 * c->took ? 5.0 : 20.0 * c->took;
    return c->saved == 0.0 || espi_seconds() - c->saved >= wait;
}

typedef struct hashed_output {
    espi_output *output;
    XXH3_state_t hash;
} hashed_output;

static void put(hashed_output *o, const void *bytes, size_t size)
{
    espi_output_write(o->output, bytes, size);
    if (size > 0) XXH3_64bits_update(&o->hash, bytes, size);
}

static void put_number(hashed_output *o, uint64_t number) { put(o, &number, sizeof number); }

/* Those that are not 0. */
static void put_variables(hashed_output *o, const double *alpha, size_t count)
{
    uint64_t support = 0;
    for (size_t k = 0; k < count; k++) support += alpha[k] != 0.0;
    put_number(o, support);
    for (size_t k = 0; k < count; k++) {
        if (alpha[k] == 0.0) continue;
        put_number(o, k);
        put(o, &alpha[k], sizeof alpha[k]);
    }
}

static void put_flags(hashed_output *o, const bool *flag, size_t count)
{
    for (size_t i = 0; i < count; i += 8) {
        uint8_t bits = 0;
        for (size_t k = 0; k < 8 && i + k < count; k++) bits |= (uint8_t)(flag[i + k] << k);
        put(o, &bits, 1);
    }
}

static void put_all(hashed_output *o, const espi_folded_checkpoint *c, const espi_folded *f, const espi_training *t,
                    size_t first)
{
    put(o, magic, sizeof magic);
    put_number(o, c->digest);
    put_number(o, first);
    put_number(o, f->problems);
    put(o, &f->state, sizeof f->state);
    for (size_t n = 0; n < t->fit->outputs; n++) {
        const bool current = n >= first && n < first + f->problems;
        put(o, current ? &f->problem[n - first].r : &c->record[n], sizeof *c->record);
    }
    for (size_t n = 0; n < first + f->problems; n++)
        put_variables(o, t->fit->alpha + t->fit->alpha_start[n], t->fit->alpha_start[n + 1] - t->fit->alpha_start[n]);
    put_flags(o, f->active, f->examples);
    put_flags(o, f->near, f->examples);
    const uint64_t hash = XXH3_64bits_digest(&o->hash);
    espi_output_write(o->output, &hash, sizeof hash);
}

esp_status espi_folded_save(espi_folded_checkpoint *c, const espi_folded *f, const espi_training *t, size_t first,
                            esp_error *err)
{
    const double began = espi_seconds();
    if (!is_due(c)) return ESP_OK;
    hashed_output *o = espi_alloc(1, sizeof *o);
    if (o == NULL) return espi_no_memory(err);
    XXH3_64bits_reset(&o->hash);
    esp_status status = espi_output_open(c->path, &o->output, err);
    if (status == ESP_OK) {
        put_all(o, c, f, t, first);
        status = espi_output_commit(o->output, err);
    }
    espi_free(o);
    c->saved = espi_seconds();
    c->took = c->saved - began;
    return status;
}

/* ---------------------------------------------------------------- reading */

typedef struct taking { /* what is left of a file */
    const unsigned char *at;
    size_t size;
    bool wrong;
} taking;

static void take(taking *f, void *to, size_t size)
{
    if (f->wrong || size > f->size) {
        f->wrong = true;
        memset(to, 0, size);
        return;
    }
    memcpy(to, f->at, size);
    f->at += size;
    f->size -= size;
}

static uint64_t take_number(taking *f)
{
    uint64_t number;
    take(f, &number, sizeof number);
    return number;
}

static esp_status is_damaged(const char *path, esp_error *err)
{
    return espi_fail(err, ESP_ERR_PARSE, "%s: the checkpoint is damaged; remove it to start anew", path);
}

/* *bytes is NULL if there is no such file. */
static esp_status read_bytes(const char *path, unsigned char **bytes, size_t *size, esp_error *err)
{
    *bytes = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL && errno == ENOENT) return ESP_OK;
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode)) {
        const int why = file == NULL ? errno : 0;
        if (file != NULL) fclose(file);
        return espi_fail(err, ESP_ERR_IO, "%s: the checkpoint cannot be read: %s", path,
                         why != 0 ? strerror(why) : "it is no regular file");
    }
    *size = (size_t)st.st_size;
    *bytes = espi_alloc(*size + 1, 1);
    const bool ok = *bytes != NULL && fread(*bytes, 1, *size, file) == *size;
    fclose(file);
    if (ok) return ESP_OK;
    const bool memory = *bytes == NULL;
    espi_free(*bytes);
    *bytes = NULL;
    return memory ? espi_no_memory(err) : espi_fail(err, ESP_ERR_IO, "%s: the checkpoint cannot be read", path);
}

static void take_variables(taking *f, double *alpha, size_t count)
{
    const uint64_t support = take_number(f);
    for (uint64_t i = 0; i < support && !f->wrong; i++) {
        const uint64_t k = take_number(f);
        double value;
        take(f, &value, sizeof value);
        if (k >= count) f->wrong = true;
        else alpha[k] = value;
    }
}

/* Returns how many are set. */
static size_t take_flags(taking *f, bool *flag, size_t count)
{
    size_t set = 0;
    for (size_t i = 0; i < count; i += 8) {
        uint8_t bits;
        take(f, &bits, 1);
        for (size_t k = 0; k < 8 && i + k < count; k++) {
            flag[i + k] = (bits >> k & 1) != 0;
            set += flag[i + k];
        }
    }
    return set;
}

/* What the file has for problems `first` and following; those that are done have no state of their own. */
static void take_all(taking *f, const espi_folded_checkpoint *c, espi_folded *to, const espi_training *t, size_t first,
                     bool *there)
{
    const uint64_t at = take_number(f), problems = take_number(f);
    espi_folded_state state;
    take(f, &state, sizeof state);
    if (f->wrong || at + problems > t->fit->outputs || problems != to->problems) {
        f->wrong = true;
        return;
    }
    *there = first <= at;
    if (!*there) return;
    for (size_t n = 0; n < t->fit->outputs; n++) take(f, &c->record[n], sizeof *c->record);
    for (size_t n = 0; n < at + problems; n++) {
        const size_t from = t->fit->alpha_start[n];
        memset(t->fit->alpha + from, 0, (t->fit->alpha_start[n + 1] - from) * sizeof *t->fit->alpha);
        take_variables(f, t->fit->alpha + from, t->fit->alpha_start[n + 1] - from);
    }
    for (size_t n = 0; n < problems; n++) to->problem[n].r = c->record[first + n];
    if (first < at) {
        to->state.phase = ESPI_FOLDED_DONE;
        to->state.moves = c->record[first].moves;
        return;
    }
    to->state = state;
    to->actives = take_flags(f, to->active, to->examples);
    to->nears = take_flags(f, to->near, to->examples);
    if (f->size != 0 || state.phase > ESPI_FOLDED_DONE) f->wrong = true;
}

esp_status espi_folded_load(const espi_folded_checkpoint *c, espi_folded *f, const espi_training *t, size_t first,
                            bool *there, esp_error *err)
{
    unsigned char *bytes;
    size_t size = 0;
    uint64_t hash = 0;
    char begin[sizeof magic];
    *there = false;
    esp_status status = read_bytes(c->path, &bytes, &size, err);
    if (status != ESP_OK || bytes == NULL) return status;
    const size_t content = size >= sizeof magic + sizeof hash ? size - sizeof hash : 0;
    memcpy(&hash, bytes + content, content > 0 ? sizeof hash : 0);
    taking file = {.at = bytes, .size = content};
    take(&file, begin, sizeof begin);
    if (file.wrong || memcmp(begin, magic, sizeof magic) != 0)
        status = espi_fail(err, ESP_ERR_PARSE, "%s is no checkpoint of a support vector machine; name another file",
                           c->path);
    else if (XXH3_64bits(bytes, content) != hash) status = is_damaged(c->path, err);
    else if (take_number(&file) != c->digest)
        status = espi_fail(err, ESP_ERR_PARAM,
                           "%s is the checkpoint of another run, with other data, kernel or settings; remove it to "
                           "start anew, or name another file",
                           c->path);
    else take_all(&file, c, f, t, first, there);
    if (status == ESP_OK && file.wrong) status = is_damaged(c->path, err);
    espi_free(bytes);
    return status;
}
