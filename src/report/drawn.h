/* Values of a report as JSON: as much of them as can be drawn. */
#ifndef ESPI_REPORT_DRAWN_H
#define ESPI_REPORT_DRAWN_H

#include "base/json.h"

/* A string, cut behind `most` bytes at the end of a letter, with an ellipsis. */
void espi_drawn_text(espi_text *json, const char *bytes, size_t size, size_t most);
/* Six significant digits. */
void espi_drawn_number(espi_text *json, double value);
void espi_drawn_number_of(espi_text *json, const char *key, double value);

/* Adds JSON to `page` so that it may stand inside <script>: '<', which stands in strings only, is escaped, so that
 * nothing ends the element early. */
void espi_drawn_embed(espi_text *page, const char *json, size_t size);

#endif
