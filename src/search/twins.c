/* Examples that are equal in all columns of the kernel, found by identity: the kernel need not be asked. */
#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/status.h"
#include "search/pairs.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct piece { /* of what an example consists of */
    const void *at;
    size_t size;
} piece;

enum { PIECES = 6 };

/* The pieces of example i. False: wrong. */
static bool tree_pieces(const esp_index *x, size_t i, piece *p)
{
    espi_listed_tree t;
    if (!espi_listed_tree_get(&x->trees.list, i, &t)) return false;
    p[0] = (piece){t.group, t.nodes * sizeof *t.group};
    p[1] = (piece){t.kid_end, t.nodes * sizeof *t.kid_end};
    p[2] = (piece){t.count, t.nodes * sizeof *t.count};
    p[3] = (piece){t.kid, t.kids * sizeof *t.kid};
    p[4] = (piece){t.word_group, t.words * sizeof *t.word_group};
    p[5] = (piece){t.word_count, t.words * sizeof *t.word_count};
    return true;
}

/* Those of one column, of which sequences are compared by their factors and token by token. */
static void column_pieces(const espi_column *c, size_t i, piece *p)
{
    const espi_sequences *s = &c->sequences;
    const espi_vectors *v = &c->vectors;
    memset(p, 0, PIECES * sizeof *p);
    if (c->type == ESP_COLUMN_TREE) {
        p[0] = (piece){&c->trees.root[i], sizeof *c->trees.root};
    } else if (c->type == ESP_COLUMN_SEQUENCE) {
        const size_t first = s->row[i], end = s->row[i + 1];
        if (end > first)
            p[0] = (piece){s->factor + s->token[first], (s->token[end] - s->token[first]) * sizeof *s->factor};
    } else if (v->row[i + 1] > v->row[i]) {
        const size_t entries = v->row[i + 1] - v->row[i];
        p[0] = (piece){v->feature + v->row[i], entries * sizeof *v->feature};
        p[1] = (piece){v->value + v->row[i], entries * sizeof *v->value};
    }
}

static uint64_t hash_pieces(const piece *p, uint64_t seed)
{
    for (size_t i = 0; i < PIECES; i++)
        if (p[i].size > 0) seed = XXH3_64bits_withSeed(p[i].at, p[i].size, seed + i);
    return seed;
}

static bool same_pieces(const piece *p, const piece *q)
{
    for (size_t i = 0; i < PIECES; i++)
        if (p[i].size != q[i].size || (p[i].size > 0 && memcmp(p[i].at, q[i].at, p[i].size) != 0)) return false;
    return true;
}

/* Whether the tokens of two sequences of equal factors are equal. */
static bool same_tokens(const espi_column *c, size_t i, size_t j)
{
    const espi_sequences *s = &c->sequences;
    if (c->type != ESP_COLUMN_SEQUENCE) return true;
    const size_t a = s->row[i], b = s->row[j], tokens = s->row[i + 1] - a;
    if (s->row[j + 1] - b != tokens) return false;
    for (size_t t = 0; t < tokens; t++)
        if (s->token[a + t + 1] - s->token[a + t] != s->token[b + t + 1] - s->token[b + t]) return false;
    return true;
}

static bool equal_examples(const esp_index *x, size_t i, size_t j)
{
    piece p[PIECES], q[PIECES];
    if (x->by_trees) return tree_pieces(x, i, p) && tree_pieces(x, j, q) && same_pieces(p, q);
    for (size_t c = 0; c < x->data->columns; c++) {
        column_pieces(&x->data->column[c], i, p);
        column_pieces(&x->data->column[c], j, q);
        if (!same_pieces(p, q) || !same_tokens(&x->data->column[c], i, j)) return false;
    }
    return true;
}

static bool hash_example(const esp_index *x, size_t i, uint64_t *hash)
{
    piece p[PIECES];
    *hash = 0;
    if (x->by_trees) {
        if (!tree_pieces(x, i, p)) return false;
        *hash = hash_pieces(p, 0);
    }
    for (size_t c = 0; !x->by_trees && c < x->data->columns; c++) {
        column_pieces(&x->data->column[c], i, p);
        *hash = hash_pieces(p, *hash);
    }
    return true;
}

typedef struct hashed {
    uint64_t hash;
    uint32_t example;
} hashed;

static int by_hash(const void *x, const void *y)
{
    const hashed *a = x, *b = y;
    return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash)
                              : (a->example > b->example) - (a->example < b->example);
}

esp_status espi_twins_find(const esp_index *x, uint32_t **first, esp_error *err)
{
    hashed *h = espi_alloc(x->count, sizeof *h);
    uint32_t *twin = *first = espi_alloc(x->count, sizeof *twin);
    esp_status status = h == NULL || twin == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < x->count; i++) {
        h[i].example = twin[i] = (uint32_t)i;
        if (!hash_example(x, i, &h[i].hash)) status = espi_index_wrong(x->file, err);
    }
    if (status == ESP_OK && x->count > 1) qsort(h, x->count, sizeof *h, by_hash);
    /* Of one hash there is mostly one kind; others are compared with the first of each kind. */
    for (size_t i = 0, run = 0; status == ESP_OK && i < x->count; i++) {
        if (h[i].hash != h[run].hash) run = i;
        for (size_t k = run; k < i; k++) {
            if (twin[h[k].example] != h[k].example || !equal_examples(x, h[k].example, h[i].example)) continue;
            twin[h[i].example] = h[k].example;
            break;
        }
    }
    espi_free(h);
    return status;
}
