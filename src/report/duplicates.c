/* Equal examples, by hash values of 128 bits: of a subtree from its label and its children's, of a sequence from its
 * tokens, of a vector the sum over its values, whose order may differ between datasets. */
#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/status.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct print {
    uint64_t low, high;
} print;

typedef struct entry {
    print of;
    size_t example; /* support examples before those of the data */
} entry;

/* A hash of two and of a kind, so that a leaf differs from a node and a list from its last item. */
static print mix(uint64_t kind, print a, print b)
{
    const uint64_t all[] = {kind, a.low, a.high, b.low, b.high};
    const XXH128_hash_t hash = XXH3_128bits(all, sizeof all);
    return (print){hash.low64, hash.high64};
}

static print print_of(const espi_symbol *s)
{
    const XXH128_hash_t hash = XXH3_128bits(s->text, s->size);
    return (print){hash.low64, hash.high64};
}

enum { LEAF = 1, NODE, CHILD, TOKEN, FACTOR, VALUE, COLUMN, EMPTY };
static const print nothing = {0, 0};

static print tree_print(const espi_forest *f, const print *vertex, espi_ref node)
{
    if (node == ESPI_NO_NODE) return mix(EMPTY, nothing, nothing);
    if (espi_is_leaf(node)) return mix(LEAF, print_of(&f->symbols.symbol[espi_leaf_symbol(node)]), nothing);
    return vertex[node];
}

/* Children have smaller numbers than their parents. */
static bool print_trees(const espi_forest *f, print *row)
{
    print *vertex = espi_alloc(f->vertices, sizeof *vertex);
    if (vertex == NULL) return false;
    for (size_t v = 0; v < f->vertices; v++) {
        const espi_production *p = espi_production_of(f, (espi_ref)v);
        print sum = mix(NODE, print_of(&f->symbols.symbol[p->label]), nothing);
        for (size_t k = 0; k < p->arity; k++)
            sum = mix(CHILD, sum, tree_print(f, vertex, f->child[f->vertex[v].children + k]));
        vertex[v] = sum;
    }
    for (size_t i = 0; i < f->roots; i++) row[i] = mix(COLUMN, row[i], tree_print(f, vertex, f->root[i]));
    espi_free(vertex);
    return true;
}

static void print_sequences(const espi_sequences *s, size_t rows, print *row)
{
    for (size_t i = 0; i < rows; i++) {
        print sum = nothing;
        for (size_t t = s->row[i]; t < s->row[i + 1]; t++) {
            sum = mix(TOKEN, sum, nothing);
            for (size_t k = s->token[t]; k < s->token[t + 1]; k++)
                sum = mix(FACTOR, sum, print_of(&s->symbols.symbol[s->factor[k]]));
        }
        row[i] = mix(COLUMN, row[i], sum);
    }
}

/* A value of 0 is as good as none. */
static void print_vectors(const espi_vectors *v, size_t rows, print *row)
{
    for (size_t i = 0; i < rows; i++) {
        print sum = nothing;
        for (size_t k = v->row[i]; k < v->row[i + 1]; k++) {
            print value = nothing;
            if (v->value[k] == 0.0) continue;
            memcpy(&value.low, &v->value[k], sizeof value.low);
            value = mix(VALUE, print_of(&v->features.symbol[v->feature[k]]), value);
            sum.low += value.low;
            sum.high += value.high;
        }
        row[i] = mix(COLUMN, row[i], sum);
    }
}

static bool print_column(const espi_column *c, size_t rows, print *row)
{
    if (c->type == ESP_COLUMN_TREE) return print_trees(&c->trees, row);
    if (c->type == ESP_COLUMN_SEQUENCE) print_sequences(&c->sequences, rows, row);
    else print_vectors(&c->vectors, rows, row);
    return true;
}

/* By the columns of the support examples, which are those that the kernel uses. */
static bool print_rows(const esp_dataset *support, const esp_dataset *data, print *row)
{
    bool ok = true;
    for (size_t i = 0; i < data->rows; i++) row[i] = nothing;
    for (size_t i = 0; ok && i < support->columns; i++) {
        const espi_column *c = espi_report_column(data, support->column[i].name, support->column[i].type);
        if (c != NULL) ok = print_column(c, data->rows, row);
    }
    return ok;
}

static int by_print(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->of.low != b->of.low) return a->of.low < b->of.low ? -1 : 1;
    if (a->of.high != b->of.high) return a->of.high < b->of.high ? -1 : 1;
    return (a->example > b->example) - (a->example < b->example);
}

/* Equal ones stand together, support examples first, the others in their order. */
static void count(const entry *e, size_t entries, size_t supports, const esp_dataset *data, espi_duplicates *out)
{
    size_t first = 0, first_of_data = entries; /* of the equal ones; `entries`: none yet */
    for (size_t i = 0; i < entries; i++) {
        if (e[i].of.low != e[first].of.low || e[i].of.high != e[first].of.high) {
            first = i;
            first_of_data = entries;
        }
        if (e[i].example < supports) continue;
        out->support += e[first].example < supports;
        if (first_of_data == entries) {
            first_of_data = i;
            continue;
        }
        const size_t earlier = e[first_of_data].example - supports, later = e[i].example - supports;
        out->within++;
        out->conflicting += data->target_name != NULL && data->target[earlier] != data->target[later];
    }
}

esp_status espi_report_duplicates(const esp_model *model, const esp_dataset *data, espi_duplicates *out, esp_error *err)
{
    const size_t supports = model->support->rows, all = supports + data->rows;
    print *row = espi_alloc(all, sizeof *row);
    entry *e = espi_alloc(all, sizeof *e);
    *out = (espi_duplicates){0};
    const bool ok = row != NULL && e != NULL && print_rows(model->support, model->support, row) &&
                    print_rows(model->support, data, row + supports);
    for (size_t i = 0; ok && i < all; i++) e[i] = (entry){row[i], i};
    if (ok) qsort(e, all, sizeof *e, by_print);
    if (ok) count(e, all, supports, data, out);
    espi_free(row);
    espi_free(e);
    return ok ? ESP_OK : espi_no_memory(err);
}
