/* Status codes with a sentence: how every failure of the library is told. */
#ifndef ESPI_BASE_STATUS_H
#define ESPI_BASE_STATUS_H

#include "espalier.h"

#define ESPI_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Writes the sentence (with an ellipsis where it does not fit) and returns `status`. */
esp_status espi_fail(esp_error *err, esp_status status, const char *format, ...) ESPI_PRINTF(3, 4);

/* Fails with ESP_ERR_PARSE at a place: "file:line:column: sentence". */
esp_status espi_fail_at(esp_error *err, const char *file, size_t line, size_t column, const char *format, ...)
    ESPI_PRINTF(5, 6);

/* Fails with ESP_ERR_IO: "file: what went wrong" from errno. */
esp_status espi_fail_errno(esp_error *err, const char *file);

esp_status espi_no_memory(esp_error *err);

/* Adds to a failure that another value of a setting or option would help, such as `value` (NULL: none to name). The
 * sentence does not tell how it is given: the tool, Python and programs have their own words for that. Returns
 * `status`. */
esp_status espi_suggest(esp_error *err, esp_status status, const char *setting, const char *value);

/* "12 bytes", "3.4 GB": a size for a sentence. `text` holds the result. */
const char *espi_size_text(double bytes, char text[32]);

/* A piece of input shown in a sentence: quoted, control and non-UTF-8 bytes escaped, cut when long. */
const char *espi_quote(const char *bytes, size_t size, char text[96]);

/* How a sentence starts that tells what all examples are: "all 5 examples are", "the only example is". */
const char *espi_all_examples(uint64_t count, char text[48]);

/* Adds to a text in a buffer of `room` bytes; what does not fit becomes "...". */
void espi_append(char *text, size_t room, const char *more);

#endif
