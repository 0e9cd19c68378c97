/* The table of data formats (formats.c): all that is known about a format stands in its row, and nobody else lists
 * formats. To add one, put its number behind the last of esp_format, its reader in reader.h and its row at the end of
 * the table. */
#ifndef ESPI_DATA_FORMAT_H
#define ESPI_DATA_FORMAT_H

#include "data/reader.h"
#include "data/writer.h"

typedef struct espi_format {
    esp_format number;
    const char *name;           /* by which users choose it */
    const char *help;           /* a few words */
    const char *start;          /* how a file of it starts, for the message about one that starts like none */
    const char *const *endings; /* of files, each with its dot; ends with NULL */
    const espi_reader_class *reader;
    espi_writer *writer; /* NULL: for reading only */
} espi_format;

/* Ends with a row whose name is NULL. Messages about a file of no format name them in this order; help texts go by
 * their numbers, and which one has a file is up to the claims of their readers. */
extern const espi_format espi_formats[];

/* NULL for AUTO and for numbers that no format has. */
const espi_format *espi_format_of(esp_format number);
/* The format whose ending the path has, or NULL. */
const espi_format *espi_format_of_path(const char *path);

#endif
