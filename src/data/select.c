/* Some columns of some examples, as a dataset of its own with tables of its own. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/dataset.h"

#include <string.h>

static esp_status copy_tree(const espi_forest *from, espi_ref root, espi_ref *known, espi_column *to, esp_error *err)
{
    espi_walk walk = {0};
    espi_ref *child = NULL, vertex;
    size_t capacity = 0;
    bool failed = !espi_walk_start(&walk, from, root);
    while (!failed && (vertex = espi_walk_next_new(&walk, known, &failed)) != ESPI_NO_NODE) {
        const espi_production *p = espi_production_of(from, vertex);
        const espi_symbol *label = &from->symbols.symbol[p->label];
        const uint32_t symbol = espi_symbols_add(&to->trees.symbols, label->text, label->size);
        failed = symbol == ESPI_NO_SYMBOL || !espi_reserve(&child, &capacity, p->arity, sizeof *child);
        for (size_t k = 0; !failed && k < p->arity; k++) {
            const espi_ref c = from->child[from->vertex[vertex].children + k];
            if (espi_is_leaf(c)) {
                const espi_symbol *leaf = &from->symbols.symbol[espi_leaf_symbol(c)];
                const uint32_t number = espi_symbols_add(&to->trees.symbols, leaf->text, leaf->size);
                failed = number == ESPI_NO_SYMBOL;
                child[k] = ESPI_LEAF | number;
            } else {
                child[k] = known[c];
            }
        }
        if (!failed) known[vertex] = espi_forest_node(&to->trees, symbol, child, p->arity);
        failed = failed || known[vertex] == ESPI_NO_NODE;
    }
    espi_walk_free(&walk);
    espi_free(child);
    if (failed) return espi_no_memory(err);
    if (root == ESPI_NO_NODE) return espi_set_tree(to, ESPI_NO_NODE, err);
    if (!espi_is_leaf(root)) return espi_set_tree(to, known[root], err);
    const espi_symbol *leaf = &from->symbols.symbol[espi_leaf_symbol(root)];
    const uint32_t number = espi_symbols_add(&to->trees.symbols, leaf->text, leaf->size);
    return number == ESPI_NO_SYMBOL ? espi_no_memory(err) : espi_set_tree(to, ESPI_LEAF | number, err);
}

static esp_status copy_sequence(const espi_sequences *from, size_t row, espi_column *to, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t t = from->row[row]; status == ESP_OK && t < from->row[row + 1]; t++) {
        for (size_t f = from->token[t]; status == ESP_OK && f < from->token[t + 1]; f++) {
            const espi_symbol *s = &from->symbols.symbol[from->factor[f]];
            status = espi_add_factor(to, s->text, s->size, err);
        }
        if (status == ESP_OK) status = espi_end_token(to, err);
    }
    return status == ESP_OK ? espi_end_sequence(to, err) : status;
}

static esp_status copy_vector(const espi_vectors *from, size_t row, espi_column *to, esp_error *err)
{
    esp_status status = ESP_OK;
    to->vectors.dense = from->dense;
    to->vectors.scalar = from->scalar;
    for (size_t i = from->row[row]; status == ESP_OK && i < from->row[row + 1]; i++) {
        const espi_symbol *s = &from->features.symbol[from->feature[i]];
        status = espi_add_feature(to, s->text, s->size, from->value[i], err);
    }
    return status == ESP_OK ? espi_end_vector(to, err) : status;
}

static esp_status copy_column(const espi_column *from, const bool *wanted, esp_dataset *to, esp_error *err)
{
    espi_ref *known = NULL;
    if (from->type == ESP_COLUMN_TREE) {
        known = espi_alloc(from->trees.vertices, sizeof *known);
        if (known == NULL) return espi_no_memory(err);
        memset(known, 0xFF, from->trees.vertices * sizeof *known);
    }
    espi_column *column;
    esp_status status = espi_row_column(to, from->name, strlen(from->name), from->type, &column, err);
    for (size_t i = 0; status == ESP_OK && i < from->rows; i++) {
        if (!wanted[i]) continue;
        status = from->type == ESP_COLUMN_TREE       ? copy_tree(&from->trees, from->trees.root[i], known, column, err)
                 : from->type == ESP_COLUMN_SEQUENCE ? copy_sequence(&from->sequences, i, column, err)
                                                     : copy_vector(&from->vectors, i, column, err);
    }
    espi_free(known);
    return status;
}

esp_status espi_dataset_select(const esp_dataset *data, const bool *column, const bool *row, esp_dataset **out,
                               esp_error *err)
{
    esp_dataset *copy = espi_dataset_new(data->format);
    *out = NULL;
    if (copy == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t c = 0; status == ESP_OK && c < data->columns; c++)
        if (column[c]) status = copy_column(&data->column[c], row, copy, err);
    for (size_t i = 0; i < data->rows; i++) copy->rows += row[i];
    if (status == ESP_OK) *out = copy;
    else esp_dataset_free(copy);
    return status;
}
