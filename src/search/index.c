#include "search/index.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/writer.h"
#include "kernel/evaluate/registry.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/terms.h"
#include "kernel/tree/tree_kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

void esp_index_free(esp_index *x)
{
    if (x == NULL) return;
    espi_bound_free(x->bound);
    esp_dataset_free(x->data);
    espi_tree_index_free(&x->trees);
    esp_kernel_free(x->kernel);
    espi_free(x->id_field);
    espi_free(x->file);
    espi_free(x->bytes);
    espi_free(x->ends);
    if (x->map != NULL) munmap(x->map, x->map_size);
    espi_free(x);
}

double espi_similarity(double value)
{
    const uint64_t half = UINT64_C(1) << 11;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + half) & ~(2 * half - 1);
    memcpy(&value, &bits, sizeof bits);
    return value == 0.0 ? 0.0 : value; /* there is one zero */
}

esp_status espi_index_shape(esp_index *x, esp_error *err)
{
    size_t count;
    espi_term *term = espi_kernel_terms(x->kernel, &count);
    if (term == NULL) return espi_no_memory(err);
    x->by_trees = count == 1 && term->leaf && term->weight > 0.0 &&
                  x->kernel->leaf[term->number].class->features == ESPI_TREE_FRAGMENTS;
    x->norm = term->norm;
    x->weight = term->weight;
    espi_free(term);
    return ESP_OK;
}

/* ------------------------------------------------------------------- names */

/* The name of one example, with a NUL. */
static void add_name(espi_text *text, const esp_dataset *data, const espi_column *column, size_t row)
{
    if (column == NULL) {
        const espi_symbol *s = &data->target_texts.symbol[data->target[row]];
        espi_text_add(text, s->text, s->size);
    } else if (column->type == ESP_COLUMN_SEQUENCE) {
        const espi_sequences *q = &column->sequences;
        for (size_t t = q->row[row]; t < q->row[row + 1]; t++)
            for (size_t f = q->token[t]; f < q->token[t + 1]; f++) {
                const espi_symbol *s = &q->symbols.symbol[q->factor[f]];
                if (f > q->token[t] || t > q->row[row]) espi_text_add(text, f > q->token[t] ? "|" : " ", 1);
                espi_text_add(text, s->text, s->size);
            }
    } else {
        espi_text_vector(text, &column->vectors, row);
    }
    espi_text_add(text, "", 1);
}

static esp_status find_field(const esp_dataset *data, const char *field, const espi_column **column, esp_error *err)
{
    size_t index;
    *column = NULL;
    if (data->target_name != NULL && strcmp(data->target_name, field) == 0) return ESP_OK;
    if (!espi_find_column(data, field, strlen(field), &index))
        return espi_fail(err, ESP_ERR_PARAM, "there is no field '%s' that could name examples", field);
    *column = &data->column[index];
    const espi_column *c = *column;
    if (c->type == ESP_COLUMN_TREE || (c->type == ESP_COLUMN_VECTOR && !c->vectors.scalar))
        return espi_fail(err, ESP_ERR_PARAM, "field '%s' cannot name examples: it is a %s, not a text or a number",
                         field, espi_column_type_name(c->type));
    return ESP_OK;
}

/* A name that occurs twice, or none at all. */
static esp_status check_names(const char *text, const uint64_t *end, size_t count, const char *field, esp_error *err)
{
    espi_symbols seen = {0};
    uint32_t *first = espi_alloc(count, sizeof *first);
    esp_status status = first == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        const size_t from = i > 0 ? (size_t)end[i - 1] : 0, size = (size_t)end[i] - from - 1;
        const size_t before = seen.count;
        const uint32_t number = espi_symbols_add(&seen, text + from, size);
        char quoted[96];
        if (number == ESPI_NO_SYMBOL) status = espi_no_memory(err);
        else if (number < before)
            status = espi_fail(err, ESP_ERR_PARSE, "examples %zu and %zu have one name, %s (field '%s')",
                               (size_t)first[number] + 1, i + 1, espi_quote(text + from, size, quoted), field);
        else if (memchr(text + from, '\0', size) != NULL)
            status = espi_fail(err, ESP_ERR_PARSE, "the name of example %zu has a NUL byte (field '%s')", i + 1, field);
        else first[number] = (uint32_t)i;
    }
    espi_symbols_free(&seen);
    espi_free(first);
    return status;
}

esp_status espi_ids_make(const esp_dataset *data, const char *field, uint64_t **end, char **text, esp_error *err)
{
    const espi_column *column;
    espi_text names = {0};
    *end = NULL;
    *text = NULL;
    esp_status status = find_field(data, field, &column, err);
    if (status == ESP_OK && (*end = espi_alloc(data->rows, sizeof **end)) == NULL) status = espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) {
        add_name(&names, data, column, i);
        (*end)[i] = names.size;
        if (names.failed) status = espi_no_memory(err);
    }
    *text = espi_text_take(&names);
    if (status == ESP_OK && *text == NULL) status = espi_no_memory(err);
    return status == ESP_OK ? check_names(*text, *end, data->rows, field, err) : status;
}

static esp_status take_names(esp_index *x, const esp_dataset *data, const char *field, esp_error *err)
{
    if (field == NULL) return ESP_OK;
    x->id_field = espi_copy_text(field, strlen(field));
    if (x->id_field == NULL) return espi_no_memory(err);
    const esp_status status = espi_ids_make(data, field, &x->ends, &x->bytes, err);
    x->id_end = x->ends;
    x->id_text = x->bytes;
    x->id_bytes = status == ESP_OK && x->count > 0 ? (size_t)x->ends[x->count - 1] : 0;
    return status;
}

const char *esp_index_id_field(const esp_index *x) { return x->id_field; }

const char *esp_index_id(const esp_index *x, size_t example)
{
    if (x->id_end == NULL || example >= x->count) return NULL;
    const uint64_t from = example > 0 ? x->id_end[example - 1] : 0, to = x->id_end[example];
    const bool right = from < to && to <= x->id_bytes && x->id_text[to - 1] == '\0';
    return right ? x->id_text + from : "";
}

/* -------------------------------------------------------------------- making */

size_t esp_index_count(const esp_index *x) { return x->count; }
const char *esp_index_kernel(const esp_index *x) { return esp_kernel_text(x->kernel); }

esp_status espi_index_check_kernel(const char *text, esp_error *err)
{
    enum { PLAIN = 1 << 18, MOST = 1 << 24 };
    const size_t size = strlen(text), plain = espi_kernel_plain_size(text);
    if (size <= MOST && plain <= PLAIN) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "the kernel expression has %zu bytes; an index can hold %d", size, (int)PLAIN);
}

/* All that the examples are made into. `data` is not kept; an index that needs examples copies them. */
static esp_status prepare(esp_index *x, const esp_dataset *data, const esp_run *run, esp_error *err)
{
    if (x->by_trees) {
        const espi_column *column = NULL;
        const esp_status status = espi_leaf_column(&x->kernel->leaf[0], data, &column, err);
        return status == ESP_OK ? espi_tree_index_make(&x->kernel->leaf[0], &column->trees, run, &x->trees, err)
                                : status;
    }
    bool *all = espi_alloc(data->rows, sizeof *all);
    esp_status status = all == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) all[i] = true;
    if (status == ESP_OK) status = espi_copy_rows(x->kernel, data, all, &x->data, err);
    espi_free(all);
    return status == ESP_OK ? espi_bind(x->kernel, x->data, x->data, run, &x->bound, err) : status;
}

esp_status esp_index_new(const esp_kernel *kernel, const esp_dataset *data, const char *id, const esp_run *run,
                         esp_index **out, esp_error *err)
{
    *out = NULL;
    esp_index *x = espi_alloc_zero(1, sizeof *x);
    if (x == NULL) return espi_no_memory(err);
    x->count = data->rows;
    esp_status status = data->rows == 0              ? espi_fail(err, ESP_ERR_PARSE, "there is no example to search in")
                        : data->rows >= ESPI_NO_NODE ? espi_fail(err, ESP_ERR_PARAM, "there are too many examples")
                                                     : espi_kernel_bind_names(kernel, data, &x->kernel, err);
    if (status == ESP_OK) status = espi_index_check_kernel(esp_kernel_text(x->kernel), err);
    if (status == ESP_OK) status = take_names(x, data, id, err);
    if (status == ESP_OK) status = espi_index_shape(x, err);
    if (status == ESP_OK) status = prepare(x, data, run, err);
    if (status == ESP_OK) *out = x;
    else esp_index_free(x);
    return status;
}

/* -------------------------------------------------------------------- adding */

/* The examples of an index as a dataset with the columns that the kernel uses; names are a column of sequences. */
static esp_status to_dataset(const esp_index *x, esp_dataset **out, esp_error *err)
{
    espi_column *column;
    esp_dataset *d = *out = espi_dataset_new(ESP_FORMAT_JSONL);
    if (d == NULL) return espi_no_memory(err);
    if (!x->by_trees) {
        bool *all = espi_alloc(x->count + x->data->columns, sizeof *all);
        esp_dataset_free(d);
        *out = NULL;
        if (all == NULL) return espi_no_memory(err);
        memset(all, 1, (x->count + x->data->columns) * sizeof *all);
        const esp_status status = espi_dataset_select(x->data, all, all, out, err);
        espi_free(all);
        return status;
    }
    const char *name = x->kernel->leaf[0].column;
    esp_status status = espi_row_column(d, name, strlen(name), ESP_COLUMN_TREE, &column, err);
    if (status == ESP_OK) status = espi_tree_index_column(&x->trees, column, err);
    d->rows = x->count;
    return status;
}

/* Labels in the order in which a reader would have met them, before trees are copied. */
static bool copy_labels(const esp_dataset *from, const bool *wanted, esp_dataset *to)
{
    bool ok = true;
    for (size_t c = 0; c < from->columns; c++) {
        const espi_column *column = &from->column[c];
        size_t index;
        if (!wanted[c] || column->type != ESP_COLUMN_TREE) continue;
        if (!espi_find_column(to, column->name, strlen(column->name), &index)) continue;
        const espi_symbols *symbols = &column->trees.symbols;
        for (size_t i = 0; ok && i < symbols->count; i++)
            ok = espi_symbols_add(&to->column[index].trees.symbols, symbols->symbol[i].text, symbols->symbol[i].size) !=
                 ESPI_NO_SYMBOL;
    }
    return ok;
}

static esp_status append(const esp_kernel *kernel, const esp_dataset *data, esp_dataset *to, esp_error *err)
{
    espi_copier *copier = NULL;
    bool *wanted = espi_alloc(data->columns, sizeof *wanted);
    esp_status status = wanted == NULL ? espi_no_memory(err) : espi_check_columns(kernel, data, err);
    if (status == ESP_OK) espi_used_columns(kernel, data, wanted);
    if (status == ESP_OK && !copy_labels(data, wanted, to)) status = espi_no_memory(err);
    if (status == ESP_OK) status = espi_copier_new(data, wanted, to, &copier, err);
    for (size_t i = 0; status == ESP_OK && i < data->rows; i++) status = espi_copier_row(copier, i, err);
    espi_copier_free(copier);
    espi_free(wanted);
    return status;
}

/* The names of both, one behind the other. */
static esp_status join_names(esp_index *x, const esp_index *old, const esp_dataset *data, esp_error *err)
{
    uint64_t *end = NULL;
    char *text = NULL;
    espi_text all = {0};
    if (old->id_field == NULL) return ESP_OK;
    x->id_field = espi_copy_text(old->id_field, strlen(old->id_field));
    x->ends = espi_alloc(x->count, sizeof *x->ends);
    esp_status status = x->id_field == NULL || x->ends == NULL ? espi_no_memory(err)
                                                               : espi_ids_make(data, old->id_field, &end, &text, err);
    for (size_t i = 0; status == ESP_OK && i < x->count; i++) {
        const char *name =
            i < old->count ? esp_index_id(old, i) : text + (i > old->count ? end[i - old->count - 1] : 0);
        espi_text_add(&all, name, strlen(name) + 1);
        x->ends[i] = all.size;
    }
    espi_free(end);
    espi_free(text);
    x->id_bytes = all.size;
    x->bytes = espi_text_take(&all);
    x->id_end = x->ends;
    x->id_text = x->bytes;
    if (status == ESP_OK && x->bytes == NULL) status = espi_no_memory(err);
    return status == ESP_OK ? check_names(x->bytes, x->ends, x->count, x->id_field, err) : status;
}

esp_status esp_index_add(const esp_index *index, const esp_dataset *data, const esp_run *run, esp_index **out,
                         esp_error *err)
{
    esp_dataset *all = NULL;
    *out = NULL;
    esp_index *x = espi_alloc_zero(1, sizeof *x);
    if (x == NULL) return espi_no_memory(err);
    x->count = index->count + data->rows;
    esp_status status = x->count >= ESPI_NO_NODE ? espi_fail(err, ESP_ERR_PARAM, "there are too many examples")
                                                 : espi_kernel_check(index->kernel, &x->kernel, err);
    if (status == ESP_OK) status = espi_index_shape(x, err);
    if (status == ESP_OK) status = join_names(x, index, data, err);
    if (status == ESP_OK) status = to_dataset(index, &all, err);
    if (status == ESP_OK) status = append(x->kernel, data, all, err);
    if (status == ESP_OK) status = prepare(x, all, run, err);
    esp_dataset_free(all);
    if (status == ESP_OK) *out = x;
    else esp_index_free(x);
    return status;
}

/* --------------------------------------------------------------------- asked */

esp_status espi_index_decay(const esp_index *x, double **lambda, double **alpha, esp_error *err)
{
    const espi_tree_index *t = &x->trees;
    const espi_leaf *leaf = &x->kernel->leaf[0];
    double *of_label = espi_alloc(2 * t->symbols, sizeof *of_label);
    *lambda = espi_alloc(t->groups, sizeof **lambda);
    *alpha = espi_alloc(t->groups, sizeof **alpha);
    const bool ok = of_label != NULL && *lambda != NULL && *alpha != NULL;
    for (size_t i = 0; ok && i < t->symbols; i++) {
        const uint64_t from = i > 0 ? t->symbol_end[i - 1] : 0, to = t->symbol_end[i];
        const bool right = from <= to && to <= t->symbol_bytes;
        espi_tree_decay_of(leaf, right ? t->symbol_text + from : "", right ? (size_t)(to - from) : 0, &of_label[2 * i],
                           &of_label[2 * i + 1]);
    }
    for (size_t g = 0; ok && g < t->groups; g++) {
        const uint32_t label = g < t->rules ? t->rule_label[g] : 0;
        const bool rule = g < t->rules && label < t->symbols;
        (*lambda)[g] = rule ? of_label[2 * label] : espi_leaf_value_or(leaf, "bow", 0.0);
        (*alpha)[g] = rule ? of_label[2 * label + 1] : 0.0;
    }
    espi_free(of_label);
    return ok ? ESP_OK : espi_no_memory(err);
}

esp_status esp_index_summary(const esp_index *x, char **out, esp_error *err)
{
    espi_text text = {0};
    char line[128];
    espi_text_string(&text, "kernel\t");
    espi_text_field(&text, esp_kernel_text(x->kernel), strlen(esp_kernel_text(x->kernel)));
    snprintf(line, sizeof line, "\nexamples\t%zu\n", x->count);
    espi_text_string(&text, line);
    if (x->id_field != NULL) {
        espi_text_string(&text, "names\t");
        espi_text_field(&text, x->id_field, strlen(x->id_field));
        espi_text_string(&text, "\n");
    }
    espi_text_string(&text, x->by_trees ? "bounds\tyes\n" : "bounds\tno\n");
    if (x->by_trees) {
        const espi_tree_index *t = &x->trees;
        snprintf(line, sizeof line, "labels\t%zu\nproductions\t%zu\nsubtrees\t%zu\npostings\t%zu\n", t->symbols,
                 t->rules, t->list.nodes + t->list.words, t->postings);
        espi_text_string(&text, line);
    }
    *out = espi_text_take(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}
