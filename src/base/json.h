/* JSON, written piece by piece. Commas come by themselves: a value follows another one unless it is the first in its
 * brackets, on its line, or behind a key. */
#ifndef ESPI_BASE_JSON_H
#define ESPI_BASE_JSON_H

#include "base/text.h"

#include <stdint.h>

/* '{' or '[', and their ends. */
void espi_json_open(espi_text *json, char bracket);
void espi_json_close(espi_text *json, char bracket);
/* The name of what comes next in an object. */
void espi_json_key(espi_text *json, const char *key);

/* Bytes that are no UTF-8 become U+FFFD. */
void espi_json_string(espi_text *json, const char *bytes, size_t size);
/* The shortest decimal that reads back as the same number; what is not finite becomes null. */
void espi_json_number(espi_text *json, double value);
void espi_json_count(espi_text *json, uint64_t value);
void espi_json_flag(espi_text *json, bool value);
/* A value that is JSON already; blanks behind it are left out. */
void espi_json_raw(espi_text *json, const char *text);

/* A key with its value. */
void espi_json_text_of(espi_text *json, const char *key, const char *text);
void espi_json_number_of(espi_text *json, const char *key, double value);
void espi_json_count_of(espi_text *json, const char *key, uint64_t value);
void espi_json_flag_of(espi_text *json, const char *key, bool value);

/* The inside of a string. Only what JSON requires is escaped, so bytes that are no UTF-8 stay as they are. */
void espi_text_json(espi_text *text, const char *bytes, size_t size);

#endif
