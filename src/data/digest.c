#define XXH_INLINE_ALL
#include "data/dataset.h"

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
