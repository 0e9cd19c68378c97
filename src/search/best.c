#include "search/best.h"

#include "base/alloc.h"

#include <stdlib.h>

void espi_best_start(espi_best *b, size_t most, double above)
{
    b->count = 0;
    b->most = most;
    b->above = above;
}

void espi_best_free(espi_best *b)
{
    espi_free(b->hit);
    *b = (espi_best){0};
}

static bool worse(const esp_hit *a, const esp_hit *b)
{
    return a->similarity != b->similarity ? a->similarity < b->similarity : a->example > b->example;
}

static void swap(esp_hit *a, esp_hit *b)
{
    const esp_hit t = *a;
    *a = *b;
    *b = t;
}

static void sink_down(espi_best *b, size_t at)
{
    for (;;) {
        const size_t left = 2 * at + 1, right = left + 1;
        size_t worst = at;
        if (left < b->count && worse(&b->hit[left], &b->hit[worst])) worst = left;
        if (right < b->count && worse(&b->hit[right], &b->hit[worst])) worst = right;
        if (worst == at) return;
        swap(&b->hit[at], &b->hit[worst]);
        at = worst;
    }
}

bool espi_best_add(espi_best *b, size_t example, double similarity)
{
    const esp_hit hit = {.example = example, .similarity = similarity};
    if (!(similarity >= b->above) || b->most == 0) return true;
    if (b->count < b->most) {
        if (!espi_reserve(&b->hit, &b->room, b->count + 1, sizeof *b->hit)) return false;
        b->hit[b->count++] = hit;
        if (b->count == b->most)
            for (size_t i = b->count / 2; i-- > 0;) sink_down(b, i);
        return true;
    }
    if (worse(&hit, &b->hit[0])) return true;
    b->hit[0] = hit;
    sink_down(b, 0);
    return true;
}

static int order(const void *x, const void *y)
{
    const esp_hit *a = x, *b = y;
    return worse(a, b) ? 1 : worse(b, a) ? -1 : 0;
}

void espi_best_sort(espi_best *b)
{
    if (b->count > 1) qsort(b->hit, b->count, sizeof *b->hit, order);
}
