#define XXH_INLINE_ALL
#include "base/alloc.h"
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

/* ------------------------------------------------------------------- rows */

static uint64_t joined(uint64_t digest, uint64_t next)
{
    const uint64_t both[2] = {digest, next};
    return XXH3_64bits(both, sizeof both);
}

static uint64_t text_digest(const espi_symbols *symbols, uint32_t number)
{
    return XXH3_64bits(symbols->symbol[number].text, symbols->symbol[number].size);
}

/* Of every different subtree, by its labels; NULL if memory is out. */
static uint64_t *subtree_digests(const espi_forest *f)
{
    uint64_t *digest = espi_alloc(f->vertices, sizeof *digest);
    for (size_t v = 0; digest != NULL && v < f->vertices; v++) {
        const espi_production *p = &f->production[f->vertex[v].production];
        digest[v] = joined(text_digest(&f->symbols, p->label), p->arity);
        for (size_t k = 0; k < p->arity; k++) { /* children have smaller numbers */
            const espi_ref child = f->child[f->vertex[v].children + k];
            digest[v] = joined(digest[v], espi_is_leaf(child) ? ~text_digest(&f->symbols, espi_leaf_symbol(child))
                                                              : digest[child]);
        }
    }
    return digest;
}

static uint64_t sequence_digest(const espi_sequences *s, size_t row)
{
    uint64_t digest = 0;
    for (size_t t = s->row[row]; t < s->row[row + 1]; t++) {
        digest = joined(digest, s->token[t + 1] - s->token[t]);
        for (size_t i = s->token[t]; i < s->token[t + 1]; i++)
            digest = joined(digest, text_digest(&s->symbols, s->factor[i]));
    }
    return digest;
}

/* The order of features is that in which they came to the table. */
static uint64_t vector_digest(const espi_vectors *v, size_t row)
{
    uint64_t digest = 0;
    for (size_t i = v->row[row]; i < v->row[row + 1]; i++) {
        uint64_t bits;
        memcpy(&bits, &v->value[i], sizeof bits);
        digest += joined(text_digest(&v->features, v->feature[i]), bits);
    }
    return digest;
}

bool espi_dataset_digest_rows(const esp_dataset *data, const bool *column, size_t first, uint64_t *digest)
{
    *digest = 0;
    for (size_t c = 0; c < data->columns; c++) {
        const espi_column *x = &data->column[c];
        uint64_t *subtree = column[c] && x->type == ESP_COLUMN_TREE ? subtree_digests(&x->trees) : NULL;
        if (!column[c]) continue;
        if (x->type == ESP_COLUMN_TREE && subtree == NULL) return false;
        const uint64_t name = XXH3_64bits(x->name, strlen(x->name));
        for (size_t i = 0; i < data->rows; i++) {
            const espi_ref root = x->type == ESP_COLUMN_TREE ? x->trees.root[i] : ESPI_NO_NODE;
            const uint64_t value = x->type == ESP_COLUMN_SEQUENCE ? sequence_digest(&x->sequences, i)
                                   : x->type == ESP_COLUMN_VECTOR ? vector_digest(&x->vectors, i)
                                   : root == ESPI_NO_NODE         ? 0
                                   : espi_is_leaf(root) ? ~text_digest(&x->trees.symbols, espi_leaf_symbol(root))
                                                        : subtree[root];
            *digest += joined(joined(name, first + i), value);
        }
        espi_free(subtree);
    }
    return true;
}
