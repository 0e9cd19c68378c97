#include "search/pairs.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

struct esp_pairs {
    esp_pair *pair;
    size_t count;
    uint64_t computed, skipped;
};

void esp_pairs_free(esp_pairs *p)
{
    if (p == NULL) return;
    espi_free(p->pair);
    espi_free(p);
}

const esp_pair *esp_pairs_list(const esp_pairs *p, size_t *count)
{
    *count = p->count;
    return p->pair;
}

uint64_t esp_pairs_computed(const esp_pairs *p, uint64_t *skipped)
{
    if (skipped != NULL) *skipped = p->skipped;
    return p->computed;
}

/* The examples of each kind, one kind behind the other: those that equal example i are member[start[i] .. start[i + 1])
 * if i is the first of them. */
typedef struct kinds {
    size_t *start;
    uint32_t *member;
} kinds;

static bool make_kinds(kinds *k, const uint32_t *twin, size_t count)
{
    k->start = espi_alloc_zero(count + 1, sizeof *k->start);
    k->member = espi_alloc(count, sizeof *k->member);
    if (k->start == NULL || k->member == NULL) return false;
    for (size_t i = 0; i < count; i++) k->start[twin[i] + 1]++;
    for (size_t i = 0; i < count; i++) k->start[i + 1] += k->start[i];
    for (size_t i = count; i-- > 0;) k->member[--k->start[twin[i] + 1]] = (uint32_t)i;
    /* Filled from the back, start[i + 1] has come down to where kind i starts. */
    for (size_t i = 0; i < count; i++) k->start[i] = k->start[i + 1];
    k->start[count] = count;
    return true;
}

static size_t size_of(const kinds *k, size_t first) { return k->start[first + 1] - k->start[first]; }

static esp_pair ordered(size_t a, size_t b, double similarity)
{
    return (esp_pair){.first = a < b ? a : b, .second = a < b ? b : a, .similarity = similarity};
}

/* Every pair of kinds stands for all pairs of their examples, and every kind for those inside. */
static void expand(const espi_pair_list *list, const kinds *k, size_t count, double above, esp_pair *out)
{
    size_t at = 0;
    for (size_t i = 0; i < list->count; i++) {
        const esp_pair p = list->pair[i];
        for (size_t a = k->start[p.first]; a < k->start[p.first + 1]; a++)
            for (size_t b = k->start[p.second]; b < k->start[p.second + 1]; b++)
                out[at++] = ordered(k->member[a], k->member[b], p.similarity);
    }
    for (size_t i = 0; i < count; i++) {
        if (!(list->self[i] >= above)) continue;
        for (size_t a = k->start[i]; a < k->start[i + 1]; a++)
            for (size_t b = a + 1; b < k->start[i + 1]; b++)
                out[at++] = ordered(k->member[a], k->member[b], list->self[i]);
    }
}

/* How many pairs that makes; infinite numbers are too large too. */
static double expanded(const espi_pair_list *list, const kinds *k, size_t count, double above)
{
    double total = 0.0;
    for (size_t i = 0; i < list->count; i++)
        total += (double)size_of(k, list->pair[i].first) * (double)size_of(k, list->pair[i].second);
    for (size_t i = 0; i < count; i++)
        if (list->self[i] >= above) total += (double)size_of(k, i) * ((double)size_of(k, i) - 1.0) / 2.0;
    return total;
}

static int order(const void *x, const void *y)
{
    const esp_pair *a = x, *b = y;
    if (a->similarity != b->similarity) return a->similarity < b->similarity ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return (a->second > b->second) - (a->second < b->second);
}

esp_status esp_pairs_find(const esp_index *index, double above, bool no_bounds, const esp_run *run, esp_pairs **out,
                          esp_error *err)
{
    const double limit = run != NULL && run->memory > 0 ? (double)run->memory : INFINITY;
    espi_pair_list list;
    kinds k = {0};
    *out = NULL;
    esp_pairs *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    esp_status status = espi_pairs_of_kinds(index, above, no_bounds, run, &list, err);
    above = espi_similarity(above);
    if (status == ESP_OK && !make_kinds(&k, list.twin, index->count)) status = espi_no_memory(err);
    const double count = status == ESP_OK ? expanded(&list, &k, index->count, above) : 0.0;
    if (status == ESP_OK && count * sizeof *p->pair > limit) {
        char need[32], have[32];
        status = espi_fail(err, ESP_ERR_MEMORY, "a list of %.0f pairs takes %s; the limit is %s", count,
                           espi_size_text(count * sizeof *p->pair, need), espi_size_text(limit, have));
    }
    if (status == ESP_OK && (p->pair = espi_alloc((size_t)count, sizeof *p->pair)) == NULL)
        status = espi_no_memory(err);
    if (status == ESP_OK) {
        p->count = (size_t)count;
        expand(&list, &k, index->count, above, p->pair);
        if (p->count > 1) qsort(p->pair, p->count, sizeof *p->pair, order);
        p->computed = list.computed;
        p->skipped = list.skipped;
        *out = p;
    }
    espi_free(k.start);
    espi_free(k.member);
    espi_pair_list_free(&list);
    if (status != ESP_OK) esp_pairs_free(p);
    return status;
}
