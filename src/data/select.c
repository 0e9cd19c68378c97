/* Copies of examples: some columns and rows as a dataset of its own with tables of
 * its own, all at once or row by row. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/dataset.h"

#include <string.h>

typedef struct tree_copier {
    espi_walk walk;
    espi_ref *known; /* vertices of the one forest that have a copy -> that copy; else ESPI_NO_NODE */
    size_t known_count, known_capacity;
    espi_ref *child, *visited; /* of a node; vertices copied since espi_copier_row began */
    size_t child_capacity, visits, visited_capacity;
} tree_copier;

struct espi_copier {
    const esp_dataset *from;
    esp_dataset *to;
    bool *wanted; /* per column of `from` */
    tree_copier trees;
};

static void free_trees(tree_copier *c)
{
    espi_walk_free(&c->walk);
    espi_free(c->known);
    espi_free(c->child);
    espi_free(c->visited);
}

/* `known` for all vertices of the forest, which may have grown. */
static bool know(tree_copier *c, const espi_forest *from)
{
    if (!espi_reserve(&c->known, &c->known_capacity, from->vertices, sizeof *c->known)) return false;
    if (from->vertices > c->known_count)
        memset(c->known + c->known_count, 0xFF, (from->vertices - c->known_count) * sizeof *c->known);
    if (from->vertices > c->known_count) c->known_count = from->vertices;
    return true;
}

static void forget(tree_copier *c)
{
    while (c->visits > 0) c->known[c->visited[--c->visits]] = ESPI_NO_NODE;
}

static uint32_t copy_label(const espi_forest *from, uint32_t symbol, espi_forest *to)
{
    const espi_symbol *s = &from->symbols.symbol[symbol];
    return espi_symbols_add(&to->symbols, s->text, s->size);
}

static bool copy_node(tree_copier *c, const espi_forest *from, espi_ref vertex, espi_forest *to)
{
    const espi_production *p = espi_production_of(from, vertex);
    const uint32_t label = copy_label(from, p->label, to);
    if (label == ESPI_NO_SYMBOL || !espi_reserve(&c->child, &c->child_capacity, p->arity, sizeof *c->child) ||
        !espi_reserve(&c->visited, &c->visited_capacity, c->visits + 1, sizeof *c->visited))
        return false;
    for (size_t k = 0; k < p->arity; k++) {
        const espi_ref child = from->child[from->vertex[vertex].children + k];
        const uint32_t leaf = espi_is_leaf(child) ? copy_label(from, espi_leaf_symbol(child), to) : 0;
        if (leaf == ESPI_NO_SYMBOL) return false;
        c->child[k] = espi_is_leaf(child) ? ESPI_LEAF | leaf : c->known[child];
    }
    c->visited[c->visits++] = vertex;
    c->known[vertex] = espi_forest_node(to, label, c->child, p->arity);
    return c->known[vertex] != ESPI_NO_NODE;
}

static esp_status copy_tree(tree_copier *c, const espi_forest *from, espi_ref root, espi_column *to, esp_error *err)
{
    if (root == ESPI_NO_NODE) return espi_set_tree(to, root, err);
    if (espi_is_leaf(root)) {
        const uint32_t leaf = copy_label(from, espi_leaf_symbol(root), &to->trees);
        return leaf == ESPI_NO_SYMBOL ? espi_no_memory(err) : espi_set_tree(to, ESPI_LEAF | leaf, err);
    }
    bool failed = !know(c, from) || !espi_walk_start(&c->walk, from, root);
    espi_ref vertex;
    while (!failed && c->known[root] == ESPI_NO_NODE) {
        vertex = espi_walk_next_new(&c->walk, c->known, &failed);
        failed = failed || !copy_node(c, from, vertex, &to->trees);
    }
    return failed ? espi_no_memory(err) : espi_set_tree(to, c->known[root], err);
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

static esp_status copy_value(tree_copier *trees, const espi_column *from, size_t row, espi_column *to, esp_error *err)
{
    return from->type == ESP_COLUMN_TREE       ? copy_tree(trees, &from->trees, from->trees.root[row], to, err)
           : from->type == ESP_COLUMN_SEQUENCE ? copy_sequence(&from->sequences, row, to, err)
                                               : copy_vector(&from->vectors, row, to, err);
}

static esp_status copy_column(const espi_column *from, const bool *wanted, esp_dataset *to, esp_error *err)
{
    tree_copier trees = {0};
    espi_column *column;
    esp_status status = espi_row_column(to, from->name, strlen(from->name), from->type, &column, err);
    for (size_t i = 0; status == ESP_OK && i < from->rows; i++)
        if (wanted[i]) status = copy_value(&trees, from, i, column, err);
    free_trees(&trees);
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

/* ------------------------------------------------------------- row by row */

esp_status espi_copier_new(const esp_dataset *from, const bool *column, esp_dataset *to, espi_copier **out,
                           esp_error *err)
{
    espi_copier *c = espi_alloc_zero(1, sizeof *c);
    *out = NULL;
    if (c != NULL) c->wanted = espi_alloc(from->columns, sizeof *c->wanted);
    if (c == NULL || c->wanted == NULL) {
        espi_free(c);
        return espi_no_memory(err);
    }
    c->from = from;
    c->to = to;
    memcpy(c->wanted, column, from->columns * sizeof *c->wanted);
    *out = c;
    return ESP_OK;
}

void espi_copier_free(espi_copier *c)
{
    if (c == NULL) return;
    free_trees(&c->trees);
    espi_free(c->wanted);
    espi_free(c);
}

esp_status espi_copier_row(espi_copier *c, size_t row, esp_error *err)
{
    esp_status status = ESP_OK;
    espi_row_begin(c->to);
    for (size_t i = 0; status == ESP_OK && i < c->from->columns; i++) {
        const espi_column *from = &c->from->column[i];
        espi_column *to;
        if (!c->wanted[i]) continue;
        status = espi_row_column(c->to, from->name, strlen(from->name), from->type, &to, err);
        if (status == ESP_OK) status = copy_value(&c->trees, from, row, to, err);
        /* The numbers of either side may soon stand for other trees. */
        forget(&c->trees);
    }
    if (status == ESP_OK) status = espi_row_end(c->to, err);
    if (status != ESP_OK) espi_row_drop(c->to);
    return status;
}

esp_status espi_copier_dataset(espi_copier **copier, const esp_dataset *from, const bool *column, const uint32_t *row,
                               const uint32_t *at, size_t count, esp_dataset **out, esp_error *err)
{
    esp_dataset *copy = *out = espi_dataset_new(from->format);
    esp_status status = copy == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK && *copier == NULL) status = espi_copier_new(from, column, copy, copier, err);
    if (status == ESP_OK) (*copier)->to = copy;
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_copier_row(*copier, row[at != NULL ? at[i] : i], err);
    return status;
}
