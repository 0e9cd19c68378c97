/* What a column holds, counted: for `espalier info`. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/dataset.h"

typedef struct tree_size {
    size_t nodes, leaves, depth;
    bool used; /* below the root of some example */
} tree_size;

static tree_size size_of(const tree_size *size, espi_ref node)
{
    if (node == ESPI_NO_NODE) return (tree_size){0};
    return espi_is_leaf(node) ? (tree_size){.leaves = 1, .depth = 1} : size[node];
}

/* Children come before parents, so one pass up gives sizes and one pass down tells what is in use. */
static void measure(const espi_forest *f, tree_size *size)
{
    for (size_t v = 0; v < f->vertices; v++) {
        const espi_ref *child = f->child + f->vertex[v].children;
        size[v] = (tree_size){.nodes = 1};
        for (size_t k = 0; k < espi_production_of(f, (espi_ref)v)->arity; k++) {
            const tree_size c = size_of(size, child[k]);
            size[v].nodes += c.nodes;
            size[v].leaves += c.leaves;
            if (c.depth > size[v].depth) size[v].depth = c.depth;
        }
        size[v].depth++;
    }
    for (size_t i = 0; i < f->roots; i++)
        if (!espi_is_leaf(f->root[i])) size[f->root[i]].used = true;
    for (size_t v = f->vertices; v-- > 0;) {
        const espi_ref *child = f->child + f->vertex[v].children;
        for (size_t k = 0; size[v].used && k < espi_production_of(f, (espi_ref)v)->arity; k++)
            if (!espi_is_leaf(child[k])) size[child[k]].used = true;
    }
}

static size_t count_set(const bool *flag, size_t count)
{
    size_t set = 0;
    for (size_t i = 0; i < count; i++) set += flag[i];
    return set;
}

static esp_status summarize_trees(const espi_forest *f, esp_column_summary *out, esp_error *err)
{
    tree_size *size = espi_alloc(f->vertices, sizeof *size);
    bool *production = espi_alloc_zero(f->productions, sizeof *production);
    bool *symbol = espi_alloc_zero(f->symbols.count, sizeof *symbol);
    const bool ok = size != NULL && production != NULL && symbol != NULL;
    if (ok) {
        measure(f, size);
        for (size_t i = 0; i < f->roots; i++) {
            const tree_size t = size_of(size, f->root[i]);
            out->items += t.nodes;
            out->leaves += t.leaves;
            if (t.nodes > out->longest) out->longest = t.nodes;
            if (t.depth > out->deepest) out->deepest = t.depth;
            if (f->root[i] == ESPI_NO_NODE) out->empty++;
            else if (espi_is_leaf(f->root[i])) symbol[espi_leaf_symbol(f->root[i])] = true;
        }
        for (size_t v = 0; v < f->vertices; v++) {
            if (!size[v].used) continue;
            out->distinct++;
            production[f->vertex[v].production] = true;
        }
        for (size_t p = 0; p < f->productions; p++) {
            if (!production[p]) continue;
            symbol[f->production[p].label] = true;
            for (size_t k = 0; k < f->production[p].arity; k++)
                symbol[f->child_label[f->production[p].children + k] / 2] = true;
        }
        out->productions = count_set(production, f->productions);
        out->symbols = count_set(symbol, f->symbols.count);
    }
    espi_free(size);
    espi_free(production);
    espi_free(symbol);
    return ok ? ESP_OK : espi_no_memory(err);
}

static void summarize_rows(const size_t *row, size_t rows, esp_column_summary *out)
{
    for (size_t i = 0; i < rows; i++) {
        const size_t length = row[i + 1] - row[i];
        out->items += length;
        if (length > out->longest) out->longest = length;
        if (length == 0) out->empty++;
    }
}

esp_status esp_dataset_summarize(const esp_dataset *data, size_t column, esp_column_summary *out, esp_error *err)
{
    const espi_column *c = &data->column[column];
    *out = (esp_column_summary){.bytes = espi_column_bytes(c)};
    if (c->type == ESP_COLUMN_TREE) return summarize_trees(&c->trees, out, err);
    const bool sequence = c->type == ESP_COLUMN_SEQUENCE;
    summarize_rows(sequence ? c->sequences.row : c->vectors.row, c->rows, out);
    out->distinct = sequence ? c->sequences.symbols.count : c->vectors.features.count;
    return ESP_OK;
}
