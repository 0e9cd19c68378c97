#define XXH_INLINE_ALL
#include "data/dataset.h"

#include <string.h>
#include <xxhash.h>

static void digest_bytes(uint64_t *digest, const void *bytes, size_t size)
{
    if (size > 0) *digest = XXH3_64bits_withSeed(bytes, size, *digest);
}

uint64_t espi_dataset_digest(const esp_dataset *data, uint64_t seed)
{
    uint64_t digest = seed;
    for (size_t i = 0; i < data->columns; i++) {
        const espi_column *c = &data->column[i];
        digest_bytes(&digest, c->trees.child, c->trees.children * sizeof *c->trees.child);
        digest_bytes(&digest, c->trees.root, c->trees.roots * sizeof *c->trees.root);
        digest_bytes(&digest, c->vectors.feature, c->vectors.entries * sizeof *c->vectors.feature);
        digest_bytes(&digest, c->vectors.value, c->vectors.entries * sizeof *c->vectors.value);
        digest_bytes(&digest, c->sequences.factor, c->sequences.factors * sizeof *c->sequences.factor);
    }
    return digest;
}

static void digest_symbols(uint64_t *digest, const espi_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) digest_bytes(digest, symbols->symbol[i].text, symbols->symbol[i].size);
}

static void digest_number(uint64_t *digest, uint64_t number) { *digest = (*digest ^ number) * 0x9E3779B97F4A7C15u; }

static void digest_names(uint64_t *digest, const espi_column *c)
{
    digest_bytes(digest, c->name, strlen(c->name));
    digest_number(digest, (uint64_t)c->type);
    for (size_t v = 0; v < c->trees.vertices; v++) digest_number(digest, c->trees.vertex[v].production);
    for (size_t p = 0; p < c->trees.productions; p++) digest_number(digest, c->trees.production[p].label);
    digest_bytes(digest, c->trees.child_label, c->trees.child_labels * sizeof *c->trees.child_label);
    digest_symbols(digest, &c->trees.symbols);
    digest_symbols(digest, &c->sequences.symbols);
    digest_symbols(digest, &c->vectors.features);
    for (size_t i = 0; c->sequences.row != NULL && i < c->rows; i++) digest_number(digest, c->sequences.row[i]);
    for (size_t i = 0; c->vectors.row != NULL && i < c->rows; i++) digest_number(digest, c->vectors.row[i]);
}

uint64_t espi_dataset_digest_all(const esp_dataset *data)
{
    uint64_t digest = espi_dataset_digest(data, data->rows);
    for (size_t i = 0; i < data->columns; i++) digest_names(&digest, &data->column[i]);
    if (data->target_name == NULL) return digest;
    digest_bytes(&digest, data->target_name, strlen(data->target_name));
    digest_bytes(&digest, data->target, data->target_rows * sizeof *data->target);
    digest_symbols(&digest, &data->target_texts);
    return digest;
}
