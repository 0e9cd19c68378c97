#include "report/drawn.h"

#include "base/json.h"

#include <math.h>

void espi_drawn_text(espi_text *t, const char *bytes, size_t size, size_t most)
{
    const bool cut = size > most;
    for (; cut && most > 0 && ((unsigned char)bytes[most] & 0xC0) == 0x80;) most--;
    espi_json_string(t, bytes, cut ? most : size);
    if (!cut || t->failed) return;
    t->size--; /* the quotation mark */
    espi_text_string(t, "\xE2\x80\xA6\"");
}

/* The nearest number of six significant digits. Whole numbers below 10^6 and powers of ten up to 10^22 are exact, so
 * that the quotient is what its digits read as; numbers that are too large or small for that stay as they are. */
static double rounded(double value)
{
    const double size = fabs(value);
    double power = 1.0;
    if (size >= 1e6 || size < 1e-16) return value;
    while (size * power < 1e5) power *= 10.0;
    return round(value * power) / power;
}

void espi_drawn_number(espi_text *t, double value) { espi_json_number(t, rounded(value)); }

void espi_drawn_number_of(espi_text *t, const char *key, double value)
{
    espi_json_key(t, key);
    espi_drawn_number(t, value);
}

void espi_drawn_embed(espi_text *t, const char *json, size_t size)
{
    size_t done = 0;
    for (size_t at = 0; at < size; at++) {
        if (json[at] != '<') continue;
        espi_text_add(t, json + done, at - done);
        espi_text_string(t, "\\u003C");
        done = at + 1;
    }
    espi_text_add(t, json + done, size - done);
}
