/* The best examples of a query: the largest similarities, of equal ones the first examples. */
#ifndef ESPI_SEARCH_BEST_H
#define ESPI_SEARCH_BEST_H

#include "espalier.h"

#include <math.h>

typedef struct espi_best {
    esp_hit *hit; /* a heap, the worst first, once `most` are there */
    size_t count, room, most;
    double above; /* no example below that */
} espi_best;

/* Starts over, for `most` examples. */
void espi_best_start(espi_best *best, size_t most, double above);
/* False if memory is out. */
bool espi_best_add(espi_best *best, size_t example, double similarity);
/* What an example needs at least to get in; it may still lose against earlier ones. */
static inline double espi_best_bar(const espi_best *best)
{
    return best->count < best->most ? best->above : best->hit[0].similarity;
}
/* Sorts them, the best first. */
void espi_best_sort(espi_best *best);
void espi_best_free(espi_best *best);

#endif
