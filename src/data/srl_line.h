/* Pieces of a line of an .srl file (read_srl.c), for the reader of its trees and for the task that needs its
 * predicates. Each takes what it read from the stream, and fails with the place. */
#ifndef ESPI_DATA_SRL_LINE_H
#define ESPI_DATA_SRL_LINE_H

#include "base/text.h"
#include "data/reader.h"

/* The letter that opens a line, and its TAB. */
esp_status espi_srl_line(espi_reader *reader, char letter, esp_error *err);
/* A field of at least one byte, of digits only if so wanted, and the TAB behind it. `copy` becomes the field, unless it
 * is NULL; `what` names it in the message. */
esp_status espi_srl_field(espi_reader *reader, const char *what, bool digits, espi_text *copy, esp_error *err);
/* Moves to the next line that starts with T, as the predicates of a bad tree are of no use. */
void espi_srl_recover(espi_reader *reader);

#endif
