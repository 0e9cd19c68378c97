/* Output files that appear complete or not at all: a temporary beside the target, fsync, rename.
 *
 * "-" is standard output; a path that exists and is no regular file (a pipe, /dev/full) is written directly.
 * Write errors are remembered and told by espi_output_commit, so that writers need not check every call. */
#ifndef ESPI_BASE_OUTPUT_H
#define ESPI_BASE_OUTPUT_H

#include "espalier.h"

typedef struct espi_output espi_output;

esp_status espi_output_open(const char *path, espi_output **out, esp_error *err);
void espi_output_write(espi_output *output, const void *bytes, size_t size);
/* Makes the file appear and releases `output`, also on failure. */
esp_status espi_output_commit(espi_output *output, esp_error *err);
/* Releases `output` and leaves no trace of it. */
void espi_output_discard(espi_output *output);

#endif
