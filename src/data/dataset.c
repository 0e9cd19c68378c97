#include "data/dataset.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

esp_dataset *espi_dataset_new(esp_format format)
{
    esp_dataset *data = espi_alloc_zero(1, sizeof *data);
    if (data != NULL) data->format = format;
    return data;
}

static void free_column(espi_column *c)
{
    espi_free(c->name);
    espi_forest_free(&c->trees);
    espi_symbols_free(&c->sequences.symbols);
    espi_free(c->sequences.row);
    espi_free(c->sequences.token);
    espi_free(c->sequences.factor);
    espi_free(c->sequences.scratch);
    espi_symbols_free(&c->vectors.features);
    espi_free(c->vectors.row);
    espi_free(c->vectors.feature);
    espi_free(c->vectors.value);
}

void esp_dataset_free(esp_dataset *data)
{
    if (data == NULL) return;
    for (size_t i = 0; i < data->columns; i++) free_column(&data->column[i]);
    espi_free(data->column);
    espi_free(data->target_name);
    espi_symbols_free(&data->target_texts);
    espi_free(data->target);
    espi_free(data->first_bad);
    espi_free(data);
}

void espi_dataset_strip(esp_dataset *data, const bool *column)
{
    size_t kept = 0;
    for (size_t i = 0; i < data->columns; i++) {
        if (column[i]) data->column[kept++] = data->column[i];
        else free_column(&data->column[i]);
    }
    data->columns = kept;
    espi_free(data->target_name);
    espi_symbols_free(&data->target_texts);
    espi_free(data->target);
    data->target_name = NULL;
    data->target = NULL;
    data->target_rows = data->target_capacity = data->target_numbers = data->kept_targets = 0;
}

/* ------------------------------------------------------------------ rows */

bool espi_find_column(const esp_dataset *data, const char *name, size_t size, size_t *index)
{
    for (size_t i = 0; i < data->columns; i++) {
        const char *have = data->column[i].name;
        if (strlen(have) != size || memcmp(have, name, size) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}

static const char *type_name(esp_column_type type)
{
    return type == ESP_COLUMN_TREE ? "a tree" : type == ESP_COLUMN_SEQUENCE ? "a sequence" : "a vector";
}

esp_status espi_row_column(esp_dataset *data, const char *name, size_t size, esp_column_type type, espi_column **out,
                           esp_error *err)
{
    size_t index;
    char quoted[96];
    *out = NULL;
    if (!espi_find_column(data, name, size, &index)) {
        if (data->rows > 0)
            return espi_fail(err, ESP_ERR_PARSE, "field %s is new here; the first example has no such field",
                             espi_quote(name, size, quoted));
        char *copy = espi_copy_text(name, size);
        if (copy == NULL ||
            !espi_reserve(&data->column, &data->column_capacity, data->columns + 1, sizeof *data->column)) {
            espi_free(copy);
            return espi_no_memory(err);
        }
        index = data->columns++;
        data->column[index] = (espi_column){
            .name = copy, .type = type, .sequences = {.lowercase = data->lowercase, .digits = data->digits}};
    }
    espi_column *column = &data->column[index];
    if (column->type != type)
        return espi_fail(err, ESP_ERR_PARSE, "field %s is %s here, but %s in the first example",
                         espi_quote(name, size, quoted), type_name(type), type_name(column->type));
    if (column->rows > data->rows)
        return espi_fail(err, ESP_ERR_PARSE, "field %s is given twice", espi_quote(name, size, quoted));
    *out = column;
    return ESP_OK;
}

/* The words of a sequence column, the features of a vector column. */
static espi_symbols *symbols_of(espi_column *c)
{
    return c->type == ESP_COLUMN_SEQUENCE ? &c->sequences.symbols : &c->vectors.features;
}

void espi_row_begin(esp_dataset *data)
{
    data->row_target_number = false;
    data->kept_targets = data->target_texts.count;
    for (size_t i = 0; i < data->columns; i++) {
        data->column[i].kept_symbols = symbols_of(&data->column[i])->count;
        data->column[i].kept_trees = espi_forest_marked(&data->column[i].trees);
    }
}

esp_status espi_row_end(esp_dataset *data, esp_error *err)
{
    char quoted[96];
    for (size_t i = 0; i < data->columns; i++)
        if (data->column[i].rows != data->rows + 1)
            return espi_fail(err, ESP_ERR_PARSE, "field %s is missing; every example needs the fields of the first",
                             espi_quote(data->column[i].name, strlen(data->column[i].name), quoted));
    if (data->target_name != NULL && data->target_rows != data->rows + 1)
        return espi_fail(err, ESP_ERR_PARSE, "the target %s is missing; the first example has one",
                         espi_quote(data->target_name, strlen(data->target_name), quoted));
    data->target_numbers += data->row_target_number;
    data->rows++;
    return ESP_OK;
}

void espi_row_drop(esp_dataset *data)
{
    if (data->rows == 0) { /* the next row decides which columns there are */
        while (data->columns > 0) free_column(&data->column[--data->columns]);
        espi_free(data->target_name);
        data->target_name = NULL;
    }
    for (size_t i = 0; i < data->columns; i++) {
        espi_column *c = &data->column[i];
        c->rows = data->rows;
        espi_symbols_truncate(symbols_of(c), c->kept_symbols);
        if (c->type == ESP_COLUMN_TREE) {
            c->trees.roots = data->rows;
            espi_forest_truncate(&c->trees, c->kept_trees);
        }
        if (c->sequences.row != NULL) {
            c->sequences.tokens = c->sequences.row[data->rows];
            c->sequences.factors = c->sequences.token != NULL ? c->sequences.token[c->sequences.tokens] : 0;
        }
        if (c->vectors.row != NULL) c->vectors.entries = c->vectors.row[data->rows];
    }
    data->target_rows = data->target_name != NULL ? data->rows : 0;
    espi_symbols_truncate(&data->target_texts, data->kept_targets);
}

void espi_row_undo(esp_dataset *data)
{
    data->rows--;
    data->target_numbers -= data->row_target_number;
    espi_row_drop(data);
}

/* ---------------------------------------------------------------- values */

esp_status espi_set_tree(espi_column *column, espi_ref root, esp_error *err)
{
    if (!espi_forest_add_root(&column->trees, root)) return espi_no_memory(err);
    column->rows++;
    return ESP_OK;
}

esp_status espi_become_trees(espi_column *c, esp_error *err)
{
    espi_free(c->sequences.row);
    espi_free(c->sequences.token);
    espi_free(c->sequences.factor);
    espi_symbols_free(&c->sequences.symbols);
    c->sequences = (espi_sequences){0};
    c->type = ESP_COLUMN_TREE;
    for (size_t i = 0; i < c->rows; i++)
        if (!espi_forest_add_root(&c->trees, ESPI_NO_NODE)) return espi_no_memory(err);
    return ESP_OK;
}

/* The factor as options say, in the scratch. False if memory is out. */
static bool normalise(espi_sequences *s, const char *text, size_t size)
{
    if (!espi_reserve(&s->scratch, &s->scratch_capacity, size + 1, 1)) return false;
    if (size > 0) memcpy(s->scratch, text, size);
    if (s->lowercase) espi_lower_case(s->scratch, size);
    for (size_t i = 0; s->digits && i < size; i++)
        if (s->scratch[i] >= '0' && s->scratch[i] <= '9') s->scratch[i] = '0';
    return true;
}

static bool add_factor(espi_sequences *s, const char *text, size_t size)
{
    if (s->lowercase || s->digits) {
        if (!normalise(s, text, size)) return false;
        text = s->scratch;
    }
    if (!espi_reserve(&s->factor, &s->factor_capacity, s->factors + 1, sizeof *s->factor)) return false;
    const uint32_t symbol = espi_symbols_add(&s->symbols, text, size);
    if (symbol == ESPI_NO_SYMBOL) return false;
    s->factor[s->factors++] = symbol;
    return true;
}

static bool end_token(espi_sequences *s)
{
    if (!espi_reserve(&s->token, &s->token_capacity, s->tokens + 2, sizeof *s->token)) return false;
    s->token[0] = 0;
    s->token[++s->tokens] = s->factors;
    return true;
}

esp_status espi_add_factor(espi_column *column, const char *text, size_t size, esp_error *err)
{
    return add_factor(&column->sequences, text, size) ? ESP_OK : espi_no_memory(err);
}

esp_status espi_end_token(espi_column *column, esp_error *err)
{
    return end_token(&column->sequences) ? ESP_OK : espi_no_memory(err);
}

esp_status espi_add_token(espi_column *column, const char *text, size_t size, esp_error *err)
{
    espi_sequences *s = &column->sequences;
    return add_factor(s, text, size) && end_token(s) ? ESP_OK : espi_no_memory(err);
}

/* Closes row `row` of an array of row starts at `end`. */
static bool end_row(size_t **starts, size_t *capacity, size_t row, size_t end)
{
    if (!espi_reserve(starts, capacity, row + 2, sizeof **starts)) return false;
    (*starts)[0] = 0;
    (*starts)[row + 1] = end;
    return true;
}

esp_status espi_end_sequence(espi_column *column, esp_error *err)
{
    espi_sequences *s = &column->sequences;
    if (!end_row(&s->row, &s->row_capacity, column->rows, s->tokens)) return espi_no_memory(err);
    column->rows++;
    return ESP_OK;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

/* Reads one factor at text[at..size) up to an unescaped blank or '|', unescaped into `factor`. */
static size_t take_factor(const char *text, size_t at, size_t size, char *factor, size_t *length)
{
    *length = 0;
    while (at < size && text[at] != '|' && !is_blank(text[at])) {
        if (text[at] == '\\' && at + 1 < size &&
            (text[at + 1] == '|' || text[at + 1] == '\\' || text[at + 1] == '(' || is_blank(text[at + 1])))
            at++;
        factor[(*length)++] = text[at++];
    }
    return at;
}

esp_status espi_set_sequence(espi_column *column, const char *text, size_t size, esp_error *err)
{
    espi_sequences *s = &column->sequences;
    char *factor = espi_alloc(size + 1, 1);
    bool ok = factor != NULL;
    size_t at = 0, length;
    while (ok) {
        while (at < size && is_blank(text[at])) at++;
        if (at == size) break;
        const size_t first = s->factors, start = at;
        for (;;) {
            at = take_factor(text, at, size, factor, &length);
            if (length > 0) ok = ok && add_factor(s, factor, length);
            if (at == size || text[at] != '|') break;
            at++;
        }
        if (ok && s->factors == first) ok = add_factor(s, text + start, at - start);
        ok = ok && end_token(s);
    }
    espi_free(factor);
    return ok ? espi_end_sequence(column, err) : espi_no_memory(err);
}

esp_status espi_add_feature(espi_column *column, const char *name, size_t size, double value, esp_error *err)
{
    espi_vectors *v = &column->vectors;
    const uint32_t feature = espi_symbols_add(&v->features, name, size);
    if (feature == ESPI_NO_SYMBOL ||
        !espi_reserve(&v->feature, &v->feature_capacity, v->entries + 1, sizeof *v->feature) ||
        !espi_reserve(&v->value, &v->value_capacity, v->entries + 1, sizeof *v->value))
        return espi_no_memory(err);
    v->feature[v->entries] = feature;
    v->value[v->entries++] = value;
    return ESP_OK;
}

/* Sorts entries by feature: shell sort, as they mostly come in order already. */
static void sort_entries(uint32_t *feature, double *value, size_t count)
{
    size_t gap = 1;
    while (gap < count / 3) gap = gap * 3 + 1;
    for (; gap > 0; gap /= 3) {
        for (size_t i = gap; i < count; i++) {
            const uint32_t f = feature[i];
            const double v = value[i];
            size_t j = i;
            for (; j >= gap && feature[j - gap] > f; j -= gap) {
                feature[j] = feature[j - gap];
                value[j] = value[j - gap];
            }
            feature[j] = f;
            value[j] = v;
        }
    }
}

esp_status espi_end_vector(espi_column *column, esp_error *err)
{
    espi_vectors *v = &column->vectors;
    const size_t first = column->rows > 0 ? v->row[column->rows] : 0;
    if (v->entries > first) sort_entries(v->feature + first, v->value + first, v->entries - first);
    for (size_t i = first + 1; i < v->entries; i++) {
        char quoted[96];
        if (v->feature[i] != v->feature[i - 1]) continue;
        const espi_symbol *s = &v->features.symbol[v->feature[i]];
        return espi_fail(err, ESP_ERR_PARSE, "feature %s is given twice", espi_quote(s->text, s->size, quoted));
    }
    if (!end_row(&v->row, &v->row_capacity, column->rows, v->entries)) return espi_no_memory(err);
    column->rows++;
    return ESP_OK;
}

esp_status espi_set_target(esp_dataset *data, const char *name, const char *text, size_t size, bool number,
                           esp_error *err)
{
    char quoted[96];
    if (data->target_name == NULL) {
        if (data->rows > 0)
            return espi_fail(err, ESP_ERR_PARSE, "a target %s is given here, but not in the first example",
                             espi_quote(text, size, quoted));
        data->target_name = espi_copy_text(name, strlen(name));
        if (data->target_name == NULL) return espi_no_memory(err);
    }
    if (data->target_rows > data->rows)
        return espi_fail(err, ESP_ERR_PARSE, "the target %s is given twice", espi_quote(name, strlen(name), quoted));
    const uint32_t symbol = espi_symbols_add(&data->target_texts, text, size);
    if (symbol == ESPI_NO_SYMBOL ||
        !espi_reserve(&data->target, &data->target_capacity, data->target_rows + 1, sizeof *data->target))
        return espi_no_memory(err);
    data->target[data->target_rows++] = symbol;
    data->row_target_number = number;
    return ESP_OK;
}

/* ------------------------------------------------------------- questions */

size_t espi_column_bytes(const espi_column *c)
{
    const espi_sequences *s = &c->sequences;
    const espi_vectors *v = &c->vectors;
    return espi_forest_bytes(&c->trees) + espi_symbols_bytes(&s->symbols) + s->row_capacity * sizeof *s->row +
           s->token_capacity * sizeof *s->token + s->factor_capacity * sizeof *s->factor + s->scratch_capacity +
           espi_symbols_bytes(&v->features) + v->row_capacity * sizeof *v->row +
           v->feature_capacity * sizeof *v->feature + v->value_capacity * sizeof *v->value;
}

size_t esp_dataset_count(const esp_dataset *data) { return data->rows; }
esp_format esp_dataset_format(const esp_dataset *data) { return data->format; }
size_t esp_dataset_bad_count(const esp_dataset *data) { return data->bad_rows; }
const char *esp_dataset_first_bad(const esp_dataset *data) { return data->first_bad; }
size_t esp_dataset_columns(const esp_dataset *data) { return data->columns; }
const char *esp_dataset_column_name(const esp_dataset *data, size_t column) { return data->column[column].name; }
esp_column_type esp_dataset_column_type(const esp_dataset *data, size_t column) { return data->column[column].type; }
const char *esp_dataset_target_name(const esp_dataset *data) { return data->target_name; }

const char *esp_dataset_target(const esp_dataset *data, size_t example)
{
    if (data->target_name == NULL || example >= data->rows) return NULL;
    return data->target_texts.symbol[data->target[example]].text;
}

bool esp_dataset_target_is_number(const esp_dataset *data)
{
    return data->target_name != NULL && data->target_numbers == data->rows;
}

esp_status espi_no_target(esp_status status, esp_error *err)
{
    return espi_suggest(err, espi_fail(err, status, "the data have no target"), "target", NULL);
}
