/* The connected components of the pairs that are similar enough. Equal examples belong together if the kernel finds
 * them similar enough to themselves, which norm(...) always does but for empty ones. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "search/pairs.h"

#include <stdlib.h>
#include <string.h>

struct esp_clusters {
    size_t count;
    size_t *start; /* cluster i: member[start[i] .. start[i + 1]) */
    esp_hit *member;
    uint64_t computed, skipped;
};

void esp_clusters_free(esp_clusters *c)
{
    if (c == NULL) return;
    espi_free(c->start);
    espi_free(c->member);
    espi_free(c);
}

size_t esp_clusters_count(const esp_clusters *c) { return c->count; }

const esp_hit *esp_clusters_of(const esp_clusters *c, size_t cluster, size_t *count)
{
    *count = cluster < c->count ? c->start[cluster + 1] - c->start[cluster] : 0;
    return *count > 0 ? c->member + c->start[cluster] : NULL;
}

uint64_t esp_clusters_computed(const esp_clusters *c, uint64_t *skipped)
{
    if (skipped != NULL) *skipped = c->skipped;
    return c->computed;
}

typedef struct clustering {
    const esp_index *index;
    double above;
    espi_pair_list list;
    uint32_t *parent; /* towards the first example of the component, which is its own */
    uint32_t *size;   /* of a component, at its first example; of a kind, at its first */
    uint32_t *kind;
    double *sum; /* per example: of its similarities in the list of pairs */
} clustering;

static uint32_t find(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find(parent, a);
    b = find(parent, b);
    if (a < b) parent[b] = a;
    else parent[a] = b;
}

static bool start(clustering *c)
{
    const size_t n = c->index->count;
    c->parent = espi_alloc(n, sizeof *c->parent);
    c->size = espi_alloc_zero(n, sizeof *c->size);
    c->kind = espi_alloc_zero(n, sizeof *c->kind);
    c->sum = espi_alloc_zero(n, sizeof *c->sum);
    return c->parent != NULL && c->size != NULL && c->kind != NULL && c->sum != NULL;
}

/* Whether the examples of a kind are pairs of each other. */
static bool tight(const clustering *c, size_t first) { return c->list.self[first] >= c->above; }

static void connect(clustering *c)
{
    const size_t n = c->index->count;
    const espi_pair_list *l = &c->list;
    for (size_t i = 0; i < n; i++) {
        c->parent[i] = (uint32_t)i;
        c->kind[l->twin[i]]++;
    }
    for (size_t i = 0; i < n; i++)
        if (l->twin[i] != i && tight(c, l->twin[i])) join(c->parent, l->twin[i], (uint32_t)i);
    for (size_t i = 0; i < l->count; i++) {
        const esp_pair p = l->pair[i];
        join(c->parent, (uint32_t)p.first, (uint32_t)p.second);
        c->sum[p.first] += p.similarity * c->kind[p.second];
        c->sum[p.second] += p.similarity * c->kind[p.first];
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t first = l->twin[i];
        /* Twins of an example that has pairs are connected by these, similar to themselves or not. */
        if (first != i && c->sum[first] > 0.0) join(c->parent, first, (uint32_t)i);
        if (first == i && tight(c, i)) c->sum[i] += l->self[i] * (c->kind[i] - 1.0);
    }
    for (size_t i = 0; i < n; i++) c->size[find(c->parent, (uint32_t)i)]++;
}

typedef struct sort_key {
    uint32_t size, first, example;
} sort_key;

static int by_size(const void *x, const void *y)
{
    const sort_key *a = x, *b = y;
    if (a->size != b->size) return a->size < b->size ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return (a->example > b->example) - (a->example < b->example);
}

/* The members of all components of two or more, the largest component first; count[0] members, count[1] components. */
static sort_key *list_members(clustering *c, size_t count[2])
{
    const size_t n = c->index->count;
    sort_key *key = espi_alloc(n, sizeof *key);
    count[0] = count[1] = 0;
    for (size_t i = 0; key != NULL && i < n; i++) {
        const uint32_t first = find(c->parent, (uint32_t)i);
        if (c->size[first] > 1) key[count[0]++] = (sort_key){c->size[first], first, (uint32_t)i};
        if (c->size[first] > 1 && first == i) count[1]++;
    }
    if (key != NULL && count[0] > 1) qsort(key, count[0], sizeof *key, by_size);
    return key;
}

/* Puts the representative first, and asks for the similarities to it. */
static esp_status represent(const clustering *c, espi_pair_asker *asker, esp_hit *member, size_t count, esp_error *err)
{
    size_t best = 0;
    esp_status status = ESP_OK;
    for (size_t i = 1; i < count; i++)
        if (c->sum[c->list.twin[member[i].example]] > c->sum[c->list.twin[member[best].example]]) best = i;
    const size_t chosen = member[best].example;
    memmove(member + 1, member, best * sizeof *member);
    member[0].example = chosen;
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_pair_ask(asker, chosen, member[i].example, &member[i].similarity, err);
    return status;
}

static esp_status collect(clustering *c, const esp_run *run, esp_clusters *out, esp_error *err)
{
    size_t count[2];
    espi_pair_asker *asker = NULL;
    sort_key *key = list_members(c, count);
    out->start = espi_alloc(count[1] + 1, sizeof *out->start);
    out->member = espi_alloc(count[0], sizeof *out->member);
    esp_status status = key == NULL || out->start == NULL || out->member == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count[0]; i++) {
        if (i == 0 || key[i].first != key[i - 1].first) out->start[out->count++] = i;
        out->member[i] = (esp_hit){.example = key[i].example};
    }
    if (status == ESP_OK) out->start[out->count] = count[0];
    if (status == ESP_OK) status = espi_pair_asker_new(c->index, run, &asker, err);
    for (size_t i = 0; status == ESP_OK && i < out->count; i++) {
        status = espi_progress(run, "choosing representatives", (double)i / (double)out->count, err);
        if (status == ESP_OK)
            status = represent(c, asker, out->member + out->start[i], out->start[i + 1] - out->start[i], err);
    }
    espi_pair_asker_free(asker);
    espi_free(key);
    return status;
}

esp_status esp_clusters_find(const esp_index *index, double above, bool no_bounds, const esp_run *run,
                             esp_clusters **out, esp_error *err)
{
    clustering c = {.index = index, .above = espi_similarity(above)};
    *out = NULL;
    esp_clusters *found = espi_alloc_zero(1, sizeof *found);
    esp_status status = found == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) status = espi_pairs_of_kinds(index, above, no_bounds, run, &c.list, err);
    if (status == ESP_OK && !start(&c)) status = espi_no_memory(err);
    if (status == ESP_OK) {
        connect(&c);
        found->computed = c.list.computed;
        found->skipped = c.list.skipped;
        status = collect(&c, run, found, err);
    }
    espi_pair_list_free(&c.list);
    espi_free(c.parent);
    espi_free(c.size);
    espi_free(c.kind);
    espi_free(c.sum);
    if (status == ESP_OK) *out = found;
    else esp_clusters_free(found);
    return status;
}
