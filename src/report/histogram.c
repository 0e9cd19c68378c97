#include "report/report.h"

#include <math.h>

espi_histogram espi_histogram_between(double low, double high, bool whole)
{
    espi_histogram h = {.low = low, .high = high, .bins = ESPI_BINS};
    if (whole) { /* each value in the middle of its bin, or as many of them in each */
        const double width = ceil((high - low + 1.0) / ESPI_BINS);
        h.bins = (size_t)ceil((high - low + 1.0) / width);
        h.low = low - 0.5;
        h.high = h.low + width * (double)h.bins;
    } else if (!(high / 2.0 - low / 2.0 > 0.0)) {
        h.bins = 1;
        h.low = low - fmax(0.5, fabs(low) / 2.0);
        h.high = high + fmax(0.5, fabs(high) / 2.0);
    }
    return h;
}

void espi_histogram_add(espi_histogram *h, double value)
{
    /* Halves, because the distance of two numbers may be too large for one. */
    const double place = (value / 2.0 - h->low / 2.0) / (h->high / 2.0 - h->low / 2.0) * (double)h->bins;
    const size_t bin = place > 0.0 ? (size_t)fmin(place, (double)h->bins - 1.0) : 0;
    h->bin[bin]++;
    h->count++;
}

void espi_histogram_bins(espi_text *t, const espi_histogram *h)
{
    espi_json_open(t, '[');
    for (size_t i = 0; i < h->bins; i++) espi_json_count(t, h->bin[i]);
    espi_json_close(t, ']');
}
