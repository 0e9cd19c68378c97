#define XXH_INLINE_ALL
#include "learn/model/model.h"

#include <string.h>
#include <xxhash.h>

static void digest_bytes(uint64_t *digest, const void *bytes, size_t size)
{
    if (size > 0) *digest = XXH3_64bits_withSeed(bytes, size, *digest);
}

uint64_t espi_model_digest(const esp_model *m)
{
    uint64_t digest = m->support->rows;
    digest_bytes(&digest, m->kernel->text, strlen(m->kernel->text));
    digest_bytes(&digest, m->coefficient, m->support->rows * m->outputs * sizeof *m->coefficient);
    if (m->history != NULL) digest_bytes(&digest, m->history->step, m->support->rows * sizeof *m->history->step);
    digest = espi_dataset_digest(m->support, digest);
    return digest != 0 ? digest : 1;
}
