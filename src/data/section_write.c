#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/output.h"
#include "data/section.h"

#include <string.h>
#include <xxhash.h>

typedef struct section_place {
    const char *tag;
    uint64_t offset, size;
} section_place;

struct espi_section_sink {  /* where the bytes of a pass go */
    section_place *section; /* what the first pass found */
    size_t sections, capacity;
    bool failed;         /* memory is out */
    uint64_t at;         /* bytes so far */
    XXH3_state_t *hash;  /* of the second pass */
    espi_output *output; /* of the third: a file ... */
    char *bytes;         /* ... or memory */
    size_t used;
    unsigned char buffer[4096];
};

/* Whether numbers lie in memory as they do in the file. */
enum { IN_PLACE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

static bool measuring(const espi_section_sink *s) { return s->hash == NULL && s->output == NULL && s->bytes == NULL; }

static void flush(espi_section_sink *s)
{
    if (s->hash != NULL) XXH3_128bits_update(s->hash, s->buffer, s->used);
    if (s->output != NULL) espi_output_write(s->output, s->buffer, s->used);
    if (s->bytes != NULL) {
        memcpy(s->bytes, s->buffer, s->used);
        s->bytes += s->used;
    }
    s->used = 0;
}

void espi_put(espi_section_sink *s, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    s->at += size;
    if (measuring(s) || size == 0) return;
    while (size > 0) {
        if (s->used == sizeof s->buffer) flush(s);
        const size_t part = size < sizeof s->buffer - s->used ? size : sizeof s->buffer - s->used;
        memcpy(s->buffer + s->used, from, part);
        s->used += part;
        from += part;
        size -= part;
    }
}

static void put_integer(espi_section_sink *s, uint64_t value, size_t bytes)
{
    s->at += bytes;
    if (measuring(s)) return;
    if (sizeof s->buffer - s->used < bytes) flush(s);
    for (size_t i = 0; i < bytes; i++) s->buffer[s->used++] = (unsigned char)(value >> 8 * i);
}

void espi_put_u32(espi_section_sink *s, uint32_t value) { put_integer(s, value, 4); }
void espi_put_u64(espi_section_sink *s, uint64_t value) { put_integer(s, value, 8); }

void espi_put_double(espi_section_sink *s, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    espi_put_u64(s, bits);
}

static void align(espi_section_sink *s)
{
    static const char zeros[ESPI_FILE_ALIGN];
    espi_put(s, zeros, (size_t)(-s->at & (ESPI_FILE_ALIGN - 1)));
}

/* --------------------------------------------------------------- sections */

void espi_put_begin(espi_section_sink *s, const char *tag)
{
    align(s);
    if (!measuring(s)) return;
    if (!espi_reserve(&s->section, &s->capacity, s->sections + 1, sizeof *s->section)) s->failed = true;
    else s->section[s->sections++] = (section_place){.tag = tag, .offset = s->at};
}

void espi_put_end(espi_section_sink *s)
{
    if (measuring(s) && !s->failed) s->section[s->sections - 1].size = s->at - s->section[s->sections - 1].offset;
}

void espi_put_text(espi_section_sink *s, const char *tag, const char *text)
{
    espi_put_begin(s, tag);
    if (text != NULL) espi_put(s, text, strlen(text));
    espi_put_end(s);
}

void espi_put_u32s(espi_section_sink *s, const char *tag, const uint32_t *value, size_t count)
{
    espi_put_begin(s, tag);
    if (IN_PLACE) espi_put(s, value, count * sizeof *value);
    for (size_t i = 0; i < count && !IN_PLACE; i++) espi_put_u32(s, value[i]);
    espi_put_end(s);
}

void espi_put_u64s(espi_section_sink *s, const char *tag, const uint64_t *value, size_t count)
{
    espi_put_begin(s, tag);
    if (IN_PLACE) espi_put(s, value, count * sizeof *value);
    for (size_t i = 0; i < count && !IN_PLACE; i++) espi_put_u64(s, value[i]);
    espi_put_end(s);
}

void espi_put_doubles(espi_section_sink *s, const char *tag, const double *value, size_t count)
{
    espi_put_begin(s, tag);
    for (size_t i = 0; i < count; i++) espi_put_double(s, value[i]);
    espi_put_end(s);
}

void espi_put_ends(espi_section_sink *s, const char *tag, const size_t *start, size_t count)
{
    espi_put_begin(s, tag);
    for (size_t i = 0; i < count; i++) espi_put_u64(s, start[i + 1]);
    espi_put_end(s);
}

void espi_put_symbols(espi_section_sink *s, const espi_symbols *symbols)
{
    uint64_t at = 0;
    espi_put_begin(s, "symbols");
    espi_put_u64(s, symbols->count);
    for (size_t i = 0; i < symbols->count; i++) espi_put_u64(s, at += symbols->symbol[i].size);
    for (size_t i = 0; i < symbols->count; i++) espi_put(s, symbols->symbol[i].text, symbols->symbol[i].size);
    espi_put_end(s);
}

/* ------------------------------------------------------------- whole files */

/* Fills the section table of a sink, whose offsets count from the end of the table, and tells where that is. */
static esp_status measure(espi_section_sink *s, const espi_section_source *source, uint64_t *body, esp_error *err)
{
    source->put(s, source->what);
    if (s->failed) return espi_no_memory(err);
    const uint64_t table = ESPI_FILE_HEADER + (uint64_t)s->sections * ESPI_FILE_ENTRY;
    *body = (table + ESPI_FILE_ALIGN - 1) / ESPI_FILE_ALIGN * ESPI_FILE_ALIGN;
    return ESP_OK;
}

/* All of the file. The checksum is left out (NULL) where it is computed. */
static void put_file(espi_section_sink *s, const espi_section_source *source, const espi_section_sink *plan,
                     uint64_t body, const XXH128_hash_t *checksum)
{
    espi_put(s, source->kind->magic, ESPI_FILE_MAGIC_SIZE);
    espi_put_u32(s, source->version);
    espi_put_u32(s, (uint32_t)plan->sections);
    espi_put_u64(s, body + plan->at);
    if (checksum != NULL) espi_put_u64(s, checksum->low64);
    if (checksum != NULL) espi_put_u64(s, checksum->high64);
    s->at = ESPI_FILE_CHECKSUM + ESPI_FILE_CHECKSUM_SIZE;
    while (s->at < ESPI_FILE_HEADER) espi_put_u64(s, 0);
    for (size_t i = 0; i < plan->sections; i++) {
        char tag[ESPI_FILE_TAG + 1] = "";
        strncpy(tag, plan->section[i].tag, ESPI_FILE_TAG);
        espi_put(s, tag, ESPI_FILE_TAG);
        espi_put_u64(s, body + plan->section[i].offset);
        espi_put_u64(s, plan->section[i].size);
    }
    source->put(s, source->what);
    flush(s);
}

esp_status espi_sections_size(const espi_section_source *source, uint64_t *bytes, esp_error *err)
{
    espi_section_sink plan = {0};
    uint64_t body = 0;
    const esp_status status = measure(&plan, source, &body, err);
    *bytes = body + plan.at;
    espi_free(plan.section);
    return status;
}

/* The first two passes: the plan, whose sections the caller frees also on failure, and the checksum. */
static esp_status measure_and_hash(const espi_section_source *source, espi_section_sink *plan, uint64_t *body,
                                   XXH128_hash_t *checksum, esp_error *err)
{
    XXH3_state_t state;
    espi_section_sink hashing = {.hash = &state};
    const esp_status status = measure(plan, source, body, err);
    if (status != ESP_OK) return status;
    XXH3_128bits_reset(&state);
    put_file(&hashing, source, plan, *body, NULL);
    *checksum = XXH3_128bits_digest(&state);
    return ESP_OK;
}

esp_status espi_sections_digest(const espi_section_source *source, uint64_t *digest, esp_error *err)
{
    espi_section_sink plan = {0};
    uint64_t body = 0;
    XXH128_hash_t hash = {0};
    const esp_status status = measure_and_hash(source, &plan, &body, &hash, err);
    *digest = hash.low64;
    espi_free(plan.section);
    return status;
}

esp_status espi_sections_write(const espi_section_source *source, const char *path, esp_error *err)
{
    espi_section_sink plan = {0};
    uint64_t body = 0;
    XXH128_hash_t checksum;
    espi_output *output = NULL;
    esp_status status = measure_and_hash(source, &plan, &body, &checksum, err);
    if (status == ESP_OK) status = espi_output_open(path, &output, err);
    if (status == ESP_OK) {
        espi_section_sink writing = {.output = output};
        put_file(&writing, source, &plan, body, &checksum);
        status = espi_output_commit(output, err);
    }
    espi_free(plan.section);
    return status;
}

esp_status espi_sections_bytes(const espi_section_source *source, char **bytes, size_t *size, esp_error *err)
{
    espi_section_sink plan = {0};
    uint64_t body = 0;
    XXH128_hash_t checksum;
    *bytes = NULL;
    *size = 0;
    esp_status status = measure_and_hash(source, &plan, &body, &checksum, err);
    if (status == ESP_OK && (*bytes = espi_alloc(body + plan.at, 1)) == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) {
        espi_section_sink writing = {.bytes = *bytes};
        put_file(&writing, source, &plan, body, &checksum);
        *size = body + plan.at;
    }
    espi_free(plan.section);
    return status;
}
