/* Columns of a dataset as sections. Arrays are never larger than the sections they come from, and tables are built anew
 * by the code that built them first, which must number everything as the file does. */
#include "base/alloc.h"
#include "base/number.h"
#include "data/section.h"

#include <string.h>

/* Where pieces end, as an array of where they start; the caller knows where the last must end. */
static esp_status read_ends(espi_section_file *f, const char *tag, size_t shortest, size_t **out, size_t *count)
{
    espi_section s = {0};
    const esp_status status = espi_section_items(f, tag, 8, &s, count);
    if (status != ESP_OK) return status;
    size_t *start = *out = espi_alloc(*count + 1, sizeof *start);
    if (start == NULL) return espi_no_memory(f->err);
    start[0] = 0;
    for (size_t i = 0; i < *count; i++) {
        const uint64_t end = espi_u64_at(s.at + 8 * i);
        if (end > f->size || end < start[i] || end - start[i] < shortest)
            return espi_section_wrong(f, s, "a piece ends where it cannot");
        start[i + 1] = (size_t)end;
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ trees */

typedef struct tables { /* the sections of a forest, and how many items each has */
    espi_section rules, rule_kids, nodes, node_kids;
    size_t rule_count, rule_kid_count, node_count, node_kid_count;
} tables;

static esp_status take_tables(espi_section_file *f, tables *t)
{
    esp_status status = espi_section_items(f, "rules", 8, &t->rules, &t->rule_count);
    if (status == ESP_OK) status = espi_section_items(f, "rulekids", 4, &t->rule_kids, &t->rule_kid_count);
    if (status == ESP_OK) status = espi_section_items(f, "nodes", 4, &t->nodes, &t->node_count);
    if (status == ESP_OK) status = espi_section_items(f, "nodekids", 4, &t->node_kids, &t->node_kid_count);
    return status;
}

static bool is_node(const espi_forest *forest, espi_ref node)
{
    return espi_is_leaf(node) ? espi_leaf_symbol(node) < forest->symbols.count : node < forest->vertices;
}

/* The next vertex; its children start at *at in the section and in `kids`. */
static esp_status add_vertex(const espi_section_file *f, const tables *t, espi_forest *forest, espi_ref *kids,
                             size_t *at)
{
    const size_t v = forest->vertices;
    const uint32_t rule = espi_u32_at(t->nodes.at + 4 * v);
    if (rule >= t->rule_count) return espi_section_wrong(f, t->nodes, "a node has an unknown rule");
    const uint32_t label = espi_u32_at(t->rules.at + 8 * (size_t)rule),
                   arity = espi_u32_at(t->rules.at + 8 * (size_t)rule + 4);
    if (label >= forest->symbols.count) return espi_section_wrong(f, t->rules, "a rule has an unknown label");
    if (arity == 0) return espi_section_wrong(f, t->rules, "a rule has no children");
    if (arity > t->node_kid_count - *at) return espi_section_wrong(f, t->node_kids, "there are too few children");
    for (size_t k = 0; k < arity; k++) {
        kids[k] = espi_u32_at(t->node_kids.at + 4 * (*at + k));
        if (!is_node(forest, kids[k]))
            return espi_section_wrong(f, t->node_kids, "a child is unknown or comes too late");
    }
    const espi_ref vertex = espi_forest_node(forest, label, kids, arity);
    if (vertex == ESPI_NO_NODE) return espi_no_memory(f->err);
    if (vertex != v) return espi_section_wrong(f, t->nodes, "a node is given twice");
    if (forest->vertex[v].production != rule) return espi_section_wrong(f, t->nodes, "a node has the rule of another");
    *at += arity;
    return ESP_OK;
}

static esp_status build_forest(const espi_section_file *f, const tables *t, espi_forest *forest)
{
    size_t at = 0;
    esp_status status = ESP_OK;
    espi_ref *kids = espi_alloc(t->node_kid_count, sizeof *kids);
    if (kids == NULL ||
        !espi_reserve(&forest->vertex, &forest->vertex_capacity, t->node_count, sizeof *forest->vertex) ||
        !espi_reserve(&forest->child, &forest->child_capacity, t->node_kid_count, sizeof *forest->child))
        status = espi_no_memory(f->err);
    while (status == ESP_OK && forest->vertices < t->node_count) status = add_vertex(f, t, forest, kids, &at);
    espi_free(kids);
    if (status != ESP_OK) return status;
    if (at != t->node_kid_count) return espi_section_wrong(f, t->node_kids, "there are too many children");
    if (forest->productions != t->rule_count) return espi_section_wrong(f, t->rules, "a rule is of no node");
    bool same = forest->child_labels == t->rule_kid_count;
    for (size_t i = 0; same && i < t->rule_kid_count; i++)
        same = forest->child_label[i] == espi_u32_at(t->rule_kids.at + 4 * i);
    return same ? ESP_OK : espi_section_wrong(f, t->rule_kids, "these are not the labels of the nodes' children");
}

static esp_status read_trees(espi_section_file *f, espi_column *c, size_t rows)
{
    espi_forest *forest = &c->trees;
    tables t = {0};
    esp_status status = espi_section_symbols(f, "symbols", &forest->symbols);
    if (status == ESP_OK) status = take_tables(f, &t);
    if (status == ESP_OK) status = build_forest(f, &t, forest);
    if (status == ESP_OK) status = espi_section_u32(f, "roots", &forest->root, &forest->roots);
    if (status != ESP_OK) return status;
    forest->root_capacity = c->rows = forest->roots;
    for (size_t i = 0; i < forest->roots; i++)
        if (forest->root[i] != ESPI_NO_NODE && !is_node(forest, forest->root[i]))
            return espi_file_wrong(f, "section 'roots': tree %zu has an unknown root", i + 1);
    return c->rows == rows ? ESP_OK
                           : espi_file_wrong(f, "section 'roots': there are %zu trees for %zu examples", c->rows, rows);
}

/* ---------------------------------------------------- sequences and vectors */

static bool all_below(const uint32_t *number, size_t count, size_t bound)
{
    for (size_t i = 0; i < count; i++)
        if (number[i] >= bound) return false;
    return true;
}

static esp_status read_sequences(espi_section_file *f, espi_column *c)
{
    espi_sequences *s = &c->sequences;
    esp_status status = espi_section_symbols(f, "symbols", &s->symbols);
    if (status == ESP_OK) status = read_ends(f, "rows", 0, &s->row, &c->rows);
    if (status == ESP_OK) status = read_ends(f, "tokens", 1, &s->token, &s->tokens);
    if (status == ESP_OK) status = espi_section_u32(f, "factors", &s->factor, &s->factors);
    if (status != ESP_OK) return status;
    s->row_capacity = c->rows + 1;
    s->token_capacity = s->tokens + 1;
    s->factor_capacity = s->factors;
    if (s->row[c->rows] != s->tokens || s->token[s->tokens] != s->factors)
        return espi_file_wrong(f, "sequences, tokens and factors do not fit together");
    return all_below(s->factor, s->factors, s->symbols.count) ? ESP_OK
                                                              : espi_file_wrong(f, "a factor is an unknown word");
}

static esp_status read_vectors(espi_section_file *f, espi_column *c)
{
    espi_vectors *v = &c->vectors;
    esp_status status = espi_section_symbols(f, "symbols", &v->features);
    if (status == ESP_OK) status = read_ends(f, "rows", 0, &v->row, &c->rows);
    if (status == ESP_OK) status = espi_section_u32(f, "features", &v->feature, &v->entries);
    if (status == ESP_OK) status = espi_section_doubles(f, "values", v->entries, &v->value);
    if (status != ESP_OK) return status;
    v->row_capacity = c->rows + 1;
    v->feature_capacity = v->value_capacity = v->entries;
    if (v->row[c->rows] != v->entries) return espi_file_wrong(f, "vectors and features do not fit together");
    if (!all_below(v->feature, v->entries, v->features.count))
        return espi_file_wrong(f, "a vector has an unknown feature");
    for (size_t r = 0; r < c->rows; r++)
        for (size_t i = v->row[r] + 1; i < v->row[r + 1]; i++)
            if (v->feature[i] <= v->feature[i - 1])
                return espi_file_wrong(f, "the features of a vector are not in order");
    return ESP_OK;
}

esp_status espi_section_column(espi_section_file *f, esp_dataset *data)
{
    espi_section s = {0};
    esp_status status = espi_section_take(f, "column", &s);
    if (status != ESP_OK) return status;
    if (s.size < 8) return espi_section_wrong(f, s, "it is too short");
    const uint32_t type = espi_u32_at(s.at), flags = espi_u32_at(s.at + 4);
    const uint32_t allowed = type == ESP_COLUMN_VECTOR ? ESPI_FILE_DENSE | ESPI_FILE_SCALAR : 0;
    if (type > ESP_COLUMN_VECTOR) return espi_section_wrong(f, s, "its type is unknown");
    if ((flags & ~allowed) != 0 || (flags & allowed) == (ESPI_FILE_DENSE | ESPI_FILE_SCALAR))
        return espi_section_wrong(f, s, "its flags are unknown");
    if (!espi_reserve(&data->column, &data->column_capacity, data->columns + 1, sizeof *data->column))
        return espi_no_memory(f->err);
    espi_column *c = &data->column[data->columns++];
    *c = (espi_column){.type = (esp_column_type)type,
                       .vectors = {.dense = (flags & ESPI_FILE_DENSE) != 0, .scalar = (flags & ESPI_FILE_SCALAR) != 0}};
    status = espi_bytes_text(f, (espi_section){.at = s.at + 8, .size = s.size - 8, .tag = s.tag}, &c->name);
    if (status != ESP_OK) return status;
    if (c->type == ESP_COLUMN_TREE) return read_trees(f, c, data->rows);
    return c->type == ESP_COLUMN_SEQUENCE ? read_sequences(f, c) : read_vectors(f, c);
}

/* ---------------------------------------------------------------- checking */

/* A vertex may stand in many places: a few bytes could describe a tree of 2^60 nodes. The engine counts nodes in 32
 * bits, and no tree that was read from data comes near the bound. */
static esp_status check_tree_sizes(const espi_forest *f, esp_error *err)
{
    const uint64_t bound = ESPI_LEAF;
    uint32_t *nodes = espi_alloc(f->vertices, sizeof *nodes);
    if (nodes == NULL) return espi_no_memory(err);
    for (size_t v = 0; v < f->vertices; v++) {
        const espi_ref *child = f->child + f->vertex[v].children;
        uint64_t sum = 1;
        for (size_t k = 0; k < espi_production_of(f, (espi_ref)v)->arity; k++)
            sum += espi_is_leaf(child[k]) ? 1 : nodes[child[k]];
        nodes[v] = (uint32_t)(sum < bound ? sum : bound);
    }
    bool fits = true;
    for (size_t i = 0; fits && i < f->roots; i++) fits = espi_is_leaf(f->root[i]) || nodes[f->root[i]] < bound;
    espi_free(nodes);
    return fits ? ESP_OK : espi_fail(err, ESP_ERR_PARAM, "a tree has more than %llu nodes", (unsigned long long)bound);
}

static esp_status check_vectors(const espi_column *c, esp_error *err)
{
    const espi_vectors *v = &c->vectors;
    if (!espi_all_finite(v->value, v->entries)) return espi_fail(err, ESP_ERR_PARAM, "a feature's value is not finite");
    for (size_t r = 0; (v->dense || v->scalar) && r < c->rows; r++)
        if (v->row[r + 1] - v->row[r] != (v->scalar ? 1 : v->features.count))
            return espi_fail(err, ESP_ERR_PARAM, "a %s has not the length of the others",
                             v->scalar ? "number" : "dense vector");
    return ESP_OK;
}

static esp_status check_column(const esp_dataset *data, const espi_column *c, espi_symbols *names, esp_error *err)
{
    if (c->rows != data->rows)
        return espi_fail(err, ESP_ERR_PARAM, "column '%s' has %zu examples, but there are %zu", c->name, c->rows,
                         data->rows);
    const size_t before = names->count;
    const uint32_t number = espi_symbols_add(names, c->name, strlen(c->name));
    if (number == ESPI_NO_SYMBOL) return espi_no_memory(err);
    if (number < before) return espi_fail(err, ESP_ERR_PARAM, "two columns have the name '%s'", c->name);
    if (c->type == ESP_COLUMN_TREE) return check_tree_sizes(&c->trees, err);
    return c->type == ESP_COLUMN_VECTOR ? check_vectors(c, err) : ESP_OK;
}

esp_status espi_check_sections(const esp_dataset *data, esp_error *err)
{
    espi_symbols names = {0};
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < data->columns; i++)
        status = check_column(data, &data->column[i], &names, err);
    espi_symbols_free(&names);
    return status;
}

/* ----------------------------------------------------------------- writing */

static void put_trees(espi_section_sink *s, const espi_forest *f)
{
    espi_put_symbols(s, &f->symbols);
    espi_put_begin(s, "rules");
    for (size_t i = 0; i < f->productions; i++) {
        espi_put_u32(s, f->production[i].label);
        espi_put_u32(s, f->production[i].arity);
    }
    espi_put_end(s);
    espi_put_u32s(s, "rulekids", f->child_label, f->child_labels);
    espi_put_begin(s, "nodes");
    for (size_t i = 0; i < f->vertices; i++) espi_put_u32(s, f->vertex[i].production);
    espi_put_end(s);
    espi_put_u32s(s, "nodekids", f->child, f->children);
    espi_put_u32s(s, "roots", f->root, f->roots);
}

void espi_put_column(espi_section_sink *s, const espi_column *c)
{
    const espi_sequences *q = &c->sequences;
    const espi_vectors *v = &c->vectors;
    espi_put_begin(s, "column");
    espi_put_u32(s, (uint32_t)c->type);
    espi_put_u32(
        s, c->type != ESP_COLUMN_VECTOR ? 0 : (v->dense ? ESPI_FILE_DENSE : 0u) | (v->scalar ? ESPI_FILE_SCALAR : 0u));
    espi_put(s, c->name, strlen(c->name));
    espi_put_end(s);
    switch (c->type) {
    case ESP_COLUMN_TREE: put_trees(s, &c->trees); break;
    case ESP_COLUMN_SEQUENCE:
        espi_put_symbols(s, &q->symbols);
        espi_put_ends(s, "rows", q->row, c->rows);
        espi_put_ends(s, "tokens", q->token, q->tokens);
        espi_put_u32s(s, "factors", q->factor, q->factors);
        break;
    case ESP_COLUMN_VECTOR:
        espi_put_symbols(s, &v->features);
        espi_put_ends(s, "rows", v->row, c->rows);
        espi_put_u32s(s, "features", v->feature, v->entries);
        espi_put_doubles(s, "values", v->value, v->entries);
        break;
    }
}
