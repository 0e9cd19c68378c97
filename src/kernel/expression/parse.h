/* What the readers of kernel expressions share: the text with the place reached in it (expression_source.c), and how a
 * kernel with its arguments is read (expression_leaf.c). The grammar stands at the head of expression.c. */
#ifndef ESPI_KERNEL_EXPRESSION_PARSE_H
#define ESPI_KERNEL_EXPRESSION_PARSE_H

#include "kernel/expression/kernel.h"

typedef struct espi_source {
    const char *text, *at;
    const espi_kernel_class *const *classes; /* that there are, ended by NULL */
    bool files;                              /* arguments may be read from files */
    esp_error *err;
} espi_source;

typedef struct espi_name { /* a bare or quoted name; `text` is owned */
    char *text;
    size_t size;
} espi_name;

/* ESP_ERR_PARAM at a place of the text, counted from 0. */
__attribute__((format(printf, 3, 4))) esp_status espi_source_wrong(const espi_source *source, size_t at,
                                                                   const char *format, ...);

static inline size_t espi_source_place(const espi_source *source) { return (size_t)(source->at - source->text); }

void espi_source_blanks(espi_source *source); /* passes over them */

/* What stands at the present place, for a message. */
const char *espi_source_shown(const espi_source *source, char text[96]);

/* A name: letters, digits, '_', '-' and what is not ASCII; or anything in double quotes. Empty if there is none. */
esp_status espi_source_name(espi_source *source, espi_name *out);
esp_status espi_source_number(espi_source *source, double *number);

static inline bool espi_is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static inline bool espi_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool espi_is_name(char c)
{
    return espi_is_name_start(c) || espi_is_digit(c) || c == '-' || (unsigned char)c >= 0x80;
}

/* The kernel of this name, which was read at `at`, with its arguments, which follow. `leaf` is zeroed; what it holds is
 * the caller's to free also after a failure. */
esp_status espi_leaf_read(espi_source *source, const char *name, size_t at, espi_leaf *leaf);

#endif
