/* Files of sections: model files and indexes for search. A header with a checksum, a table of sections, the sections,
 * each aligned; everything little-endian. docs/model-format.md describes it.
 *
 * Reading: sections are taken one after the other and never trusted. Writing: three passes over the same code, of which
 * one tells the places of the sections, one the checksum, one writes. */
#ifndef ESPI_DATA_SECTION_H
#define ESPI_DATA_SECTION_H

#include "base/status.h"
#include "data/dataset.h"

enum {
    /* The header: magic, version (u32), sections (u32), bytes of the file (u64), checksum (128 bits), 24 zeros. */
    ESPI_FILE_MAGIC_SIZE = 8,
    ESPI_FILE_CHECKSUM = 24, /* where it stands */
    ESPI_FILE_CHECKSUM_SIZE = 16,
    ESPI_FILE_HEADER = 64,
    /* The table behind it: per section a tag, its offset (u64) and its size (u64). */
    ESPI_FILE_TAG = 8,
    ESPI_FILE_ENTRY = 24,
    ESPI_FILE_ALIGN = 64 /* of sections */
};

enum { ESPI_FILE_DENSE = 1, ESPI_FILE_SCALAR = 2 }; /* flags of a column of vectors */

typedef struct espi_file_kind {
    const char *name;  /* "model file" */
    const char *magic; /* not valid UTF-8, and broken by whatever changes line ends */
    uint32_t version;  /* the latest that is read */
} espi_file_kind;

/* ----------------------------------------------------------------- reading */

typedef struct espi_section_file {
    const char *name;
    const espi_file_kind *kind;
    const unsigned char *bytes;
    size_t size;
    uint32_t version;
    size_t sections, next; /* the section to take next */
    size_t end;            /* of what was taken so far */
    esp_error *err;
} espi_section_file;

typedef struct espi_section { /* the bytes of a section */
    const unsigned char *at;
    size_t size;
    const char *tag;
} espi_section;

static inline uint32_t espi_u32_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t espi_u64_at(const unsigned char *p)
{
    return espi_u32_at(p) | (uint64_t)espi_u32_at(p + 4) << 32;
}

/* ESP_ERR_PARSE: "NAME: the model file is wrong: clause". */
esp_status espi_file_wrong(const espi_section_file *f, const char *format, ...) ESPI_PRINTF(2, 3);
esp_status espi_section_wrong(const espi_section_file *f, espi_section s, const char *clause);

/* The next section, which must be of this name and start where the one before ends, up to padding. */
esp_status espi_section_take(espi_section_file *f, const char *tag, espi_section *out);
/* A section of items of this size each. */
esp_status espi_section_items(espi_section_file *f, const char *tag, size_t item, espi_section *out, size_t *count);

/* Whole sections as what they hold; the caller frees *out, also after a failure. Where `expected` is given, there must
 * be as many. */
esp_status espi_bytes_text(const espi_section_file *f, espi_section s, char **out);
esp_status espi_section_text(espi_section_file *f, const char *tag, char **out);
esp_status espi_section_u32(espi_section_file *f, const char *tag, uint32_t **out, size_t *count);
esp_status espi_section_u64(espi_section_file *f, const char *tag, uint64_t expected, uint64_t **out);
esp_status espi_section_doubles(espi_section_file *f, const char *tag, uint64_t expected, double **out);
/* Strings into an empty table, each a new one, so that they are numbered as in the file. */
esp_status espi_section_symbols(espi_section_file *f, const char *tag, espi_symbols *symbols);

/* The next column of a dataset whose number of rows is known. */
esp_status espi_section_column(espi_section_file *f, esp_dataset *data);
/* Whether columns that were read are what the rest of the library relies on; ESP_ERR_PARAM with a clause if not. */
esp_status espi_check_sections(const esp_dataset *data, esp_error *err);

/* The header: whether this is such a file, all of it, undamaged, and of a version that is known here. Sections can be
 * taken then. */
esp_status espi_section_file_check(espi_section_file *f);
/* All bytes of a file, unless its first ones tell that it is none of this kind. They are read and not mapped: who can
 * write to a mapped file can change it after it was checked, or cut it short under the reader. *bytes is the caller's,
 * also after a failure. */
esp_status espi_section_file_load(int fd, const char *name, const espi_file_kind *kind, char **bytes, size_t *size,
                                  esp_error *err);
/* Whether a file starts like one of this kind; false also if it cannot be read. */
bool espi_section_file_recognise(const char *path, const espi_file_kind *kind);

/* ----------------------------------------------------------------- writing */

typedef struct espi_section_sink espi_section_sink;

void espi_put(espi_section_sink *s, const void *bytes, size_t size);
void espi_put_u32(espi_section_sink *s, uint32_t value);
void espi_put_u64(espi_section_sink *s, uint64_t value);
void espi_put_double(espi_section_sink *s, double value);
/* A section is what is put between these two. */
void espi_put_begin(espi_section_sink *s, const char *tag);
void espi_put_end(espi_section_sink *s);
/* Whole sections. */
void espi_put_text(espi_section_sink *s, const char *tag, const char *text); /* NULL: an empty one */
void espi_put_u32s(espi_section_sink *s, const char *tag, const uint32_t *value, size_t count);
void espi_put_u64s(espi_section_sink *s, const char *tag, const uint64_t *value, size_t count);
void espi_put_doubles(espi_section_sink *s, const char *tag, const double *value, size_t count);
/* Where each of `count` pieces ends; it starts where the one before ends. */
void espi_put_ends(espi_section_sink *s, const char *tag, const size_t *start, size_t count);
/* Strings: their number, where each ends, their bytes. */
void espi_put_symbols(espi_section_sink *s, const espi_symbols *symbols);
/* A column of a dataset, as espi_section_column reads it. */
void espi_put_column(espi_section_sink *s, const espi_column *column);

/* Something to write: `put` puts its sections, the same in every pass. */
typedef struct espi_section_source {
    const espi_file_kind *kind;
    uint32_t version;
    void (*put)(espi_section_sink *s, const void *what);
    const void *what;
} espi_section_source;
esp_status espi_sections_size(const espi_section_source *source, uint64_t *bytes, esp_error *err);
esp_status espi_sections_digest(const espi_section_source *source, uint64_t *digest, esp_error *err); /* of its bytes */
/* To a file, which appears complete or not at all, or to memory that the caller owns. */
esp_status espi_sections_write(const espi_section_source *source, const char *path, esp_error *err);
esp_status espi_sections_bytes(const espi_section_source *source, char **bytes, size_t *size, esp_error *err);

#endif
