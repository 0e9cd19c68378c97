/* Sections of a model file that is read: taken one after the other, never trusted. */
#ifndef ESPI_LEARN_MODEL_SECTION_H
#define ESPI_LEARN_MODEL_SECTION_H

#include "base/status.h"
#include "learn/model/file.h"

typedef struct espi_model_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
    uint32_t version;
    size_t sections, next; /* the section to take next */
    size_t end;            /* of what was taken so far */
    esp_error *err;
} espi_model_file;

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
esp_status espi_model_wrong(const espi_model_file *f, const char *format, ...) ESPI_PRINTF(2, 3);
esp_status espi_section_wrong(const espi_model_file *f, espi_section s, const char *clause);

/* The next section, which must be of this name and start where the one before ends, up to padding. */
esp_status espi_section_take(espi_model_file *f, const char *tag, espi_section *out);
/* A section of items of this size each. */
esp_status espi_section_items(espi_model_file *f, const char *tag, size_t item, espi_section *out, size_t *count);

/* Whole sections as what they hold; the caller frees *out, also after a failure. Where `expected` is given, there must
 * be as many. */
esp_status espi_bytes_text(const espi_model_file *f, espi_section s, char **out);
esp_status espi_section_text(espi_model_file *f, const char *tag, char **out);
esp_status espi_section_u32(espi_model_file *f, const char *tag, uint32_t **out, size_t *count);
esp_status espi_section_u64(espi_model_file *f, const char *tag, uint64_t expected, uint64_t **out);
esp_status espi_section_doubles(espi_model_file *f, const char *tag, uint64_t expected, double **out);
/* Strings into an empty table, each a new one, so that they are numbered as in the file. */
esp_status espi_section_symbols(espi_model_file *f, const char *tag, espi_symbols *symbols);

/* What the kernel of a model selects: fills m->variant, whose outputs and kernel are read already. */
esp_status espi_selections_read(espi_model_file *f, esp_model *m);

#endif
