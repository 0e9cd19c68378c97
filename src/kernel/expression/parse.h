/* What the readers of kernel expressions share: the text with the place reached in it (scan.c), and how a
 * kernel with its arguments is read (parse_leaf.c). The grammar stands at the head of parse.c. */
#ifndef ESPI_KERNEL_EXPRESSION_PARSE_H
#define ESPI_KERNEL_EXPRESSION_PARSE_H

#include "kernel/expression/kernel.h"

typedef struct espi_scan {
    const char *text, *at;
    const espi_kernel_class *const *classes; /* that there are, ended by NULL */
    bool files;                              /* arguments may be read from files */
    esp_error *err;
} espi_scan;

typedef struct espi_name { /* a bare or quoted name; `text` is owned */
    char *text;
    size_t size;
} espi_name;

/* ESP_ERR_PARAM at a place of the text, counted from 0. */
__attribute__((format(printf, 3, 4))) esp_status espi_scan_wrong(const espi_scan *source, size_t at, const char *format,
                                                                 ...);

static inline size_t espi_scan_place(const espi_scan *source) { return (size_t)(source->at - source->text); }

void espi_scan_blanks(espi_scan *source); /* passes over them */

/* What stands at the present place, for a message. */
const char *espi_scan_shown(const espi_scan *source, char text[96]);

/* A name: letters, digits, '_', '-' and what is not ASCII; or anything in double quotes. Empty if there is none. */
esp_status espi_scan_name(espi_scan *source, espi_name *out);
esp_status espi_scan_number(espi_scan *source, double *number);

static inline bool espi_is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static inline bool espi_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool espi_is_name(char c)
{
    return espi_is_name_start(c) || espi_is_digit(c) || c == '-' || (unsigned char)c >= 0x80;
}

/* The kernel of this name, which was read at `at`, with its arguments, which follow. `leaf` is zeroed; what it holds is
 * the caller's to free also after a failure. */
esp_status espi_leaf_read(espi_scan *source, const char *name, size_t at, espi_leaf *leaf);

#endif
