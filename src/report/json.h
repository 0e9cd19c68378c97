/* JSON, written piece by piece; commas come by themselves. What is written is one value, without blanks. */
#ifndef ESPI_JSON_H
#define ESPI_JSON_H

#include "base/text.h"

#include <stdint.h>

/* '{' or '[', and their ends. */
void espi_json_open(espi_text *json, char bracket);
void espi_json_close(espi_text *json, char bracket);
/* The name of what comes next in an object. */
void espi_json_key(espi_text *json, const char *key);

void espi_json_string(espi_text *json, const char *bytes, size_t size);
/* The same, cut behind `most` bytes at the end of a letter, with an ellipsis. */
void espi_json_cut(espi_text *json, const char *bytes, size_t size, size_t most);
/* Six significant digits, which is more than can be drawn; what is not finite becomes null. */
void espi_json_number(espi_text *json, double value);
void espi_json_count(espi_text *json, uint64_t value);
void espi_json_flag(espi_text *json, bool value);
void espi_json_null(espi_text *json);
/* A value that is JSON already; blanks around it do no harm. */
void espi_json_raw(espi_text *json, const char *text);

/* A key with its value. */
void espi_json_text_of(espi_text *json, const char *key, const char *text);
void espi_json_number_of(espi_text *json, const char *key, double value);
void espi_json_count_of(espi_text *json, const char *key, uint64_t value);
void espi_json_flag_of(espi_text *json, const char *key, bool value);

/* Adds JSON to `page` so that it may stand inside <script>: '<' is escaped, so that nothing ends the element early, and
 * bytes that are no UTF-8 become U+FFFD. Both stand in strings only, so it stays the same value. */
void espi_json_embed(espi_text *page, const char *json, size_t size);

#endif
