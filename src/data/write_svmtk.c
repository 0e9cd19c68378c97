/* SVM-light-TK and KeLP; see read_svmtk.c.
 *
 * SVM-light-TK has no names: trees come first, then vectors, in the order of the columns. KeLP has everything: a
 * sequence is |BSQ| with an element per token, or |BS| with text where tokens have
 * several factors; an array is |BDV|. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/writer.h"

#include <string.h>

static const char *const one_line = "\n"; /* rows are lines */

typedef struct writer {
    const esp_dataset *data;
    espi_output *output;
    espi_text text;
    espi_tree_printer printer;
    espi_features *features; /* per column */
    size_t vectors;          /* columns of that type */
} writer;

static esp_status check_column(const espi_column *c, const char *format, const char *bad_first, esp_error *err)
{
    if (c->type == ESP_COLUMN_TREE) return espi_check_symbols(&c->trees.symbols, format, "label", one_line, "", err);
    if (c->type == ESP_COLUMN_SEQUENCE)
        return espi_check_symbols(&c->sequences.symbols, format, "token", one_line, "", err);
    return espi_check_symbols(&c->vectors.features, format, "feature", " \t\r\n", bad_first, err);
}

static esp_status check(const esp_dataset *data, const char *format, bool kelp, esp_error *err)
{
    if (data->target_name == NULL && !kelp)
        return espi_fail(err, ESP_ERR_PARAM, "the format %s needs a target, and the dataset has none", format);
    esp_status status = espi_check_targets(data, format, " \t\r\n", "|#", err);
    for (size_t i = 0; i < data->columns && status == ESP_OK; i++) {
        const espi_column *c = &data->column[i];
        if (!kelp && c->type == ESP_COLUMN_SEQUENCE) return espi_refuse(c, format, "holds sequences", err);
        if (kelp && strpbrk(c->name, "|\n") != NULL)
            return espi_refuse(c, format, "has '|' or a line end in its name", err);
        status = check_column(c, format, kelp ? "" : "|#", err);
    }
    return status;
}

static bool add_tree(writer *w, const espi_forest *f, size_t row, bool kelp)
{
    espi_text_add(&w->text, " ", 1);
    espi_tree_print_start(&w->printer, f, f->root[row], kelp);
    while (espi_tree_print_more(&w->printer, &w->text))
        if (!espi_text_flush(&w->text, w->output, false)) return false;
    return true;
}

static void add_target(writer *w, size_t row)
{
    if (w->data->target_name == NULL) return;
    const espi_symbol *s = &w->data->target_texts.symbol[w->data->target[row]];
    espi_text_add(&w->text, s->text, s->size);
}

static bool svmtk_row(writer *w, size_t row)
{
    const esp_dataset *data = w->data;
    size_t trees = 0, vectors = 0;
    add_target(w, row);
    for (size_t i = 0; i < data->columns; i++) {
        if (data->column[i].type != ESP_COLUMN_TREE) continue;
        espi_text_string(&w->text, " |BT|");
        if (!add_tree(w, &data->column[i].trees, row, false)) return false;
        trees++;
    }
    if (trees > 0) espi_text_string(&w->text, " |ET|");
    for (size_t i = 0; i < data->columns; i++) {
        if (data->column[i].type != ESP_COLUMN_VECTOR) continue;
        /* The first has no |BV|, unless the next one's would then be taken for it. */
        const bool empty = data->column[i].vectors.row[row] == data->column[i].vectors.row[row + 1];
        if (vectors++ > 0 || trees == 0 || (empty && w->vectors > 1)) espi_text_string(&w->text, " |BV|");
        espi_features_text(&w->features[i], row, &w->text);
    }
    if (vectors > 0) espi_text_string(&w->text, " |EV|");
    return true;
}

static bool single_factors(const espi_sequences *s) { return s->factors == s->tokens; }

static void add_elements(espi_text *t, const espi_sequences *s, size_t row)
{
    for (size_t k = s->row[row]; k < s->row[row + 1]; k++) {
        espi_text_add(t, k > s->row[row] ? " (" : "(", k > s->row[row] ? 2 : 1);
        espi_text_label(t, &s->symbols.symbol[s->factor[s->token[k]]]);
        espi_text_add(t, ")", 1);
    }
}

/* " |BT:name|" and its like. */
static void add_marker(espi_text *t, const char *kind, const char *name)
{
    espi_text_string(t, t->size > 0 && t->bytes[t->size - 1] != '\n' ? " |" : "|");
    espi_text_string(t, kind);
    espi_text_string(t, ":");
    espi_text_string(t, name);
    espi_text_string(t, "|");
}

static bool kelp_row(writer *w, size_t row)
{
    espi_text *t = &w->text;
    add_target(w, row);
    for (size_t i = 0; i < w->data->columns; i++) {
        const espi_column *c = &w->data->column[i];
        const espi_vectors *v = &c->vectors;
        const char *end = " |EV|";
        if (c->type == ESP_COLUMN_TREE) {
            add_marker(t, "BT", c->name);
            if (!add_tree(w, &c->trees, row, true)) return false;
            end = " |ET|";
        } else if (c->type == ESP_COLUMN_SEQUENCE) {
            const bool elements = single_factors(&c->sequences);
            add_marker(t, elements ? "BSQ" : "BS", c->name);
            espi_text_add(t, " ", 1);
            if (elements) add_elements(t, &c->sequences, row);
            else espi_text_sequence(t, &c->sequences, row);
            end = elements ? " |ESQ|" : " |ES|";
        } else if (v->dense || v->scalar) {
            add_marker(t, "BDV", c->name);
            for (size_t k = v->row[row]; k < v->row[row + 1]; k++) {
                espi_text_add(t, k > v->row[row] ? "," : " ", 1);
                espi_text_number(t, v->value[k]);
            }
            end = " |EDV|";
        } else {
            add_marker(t, "BV", c->name);
            espi_features_text(&w->features[i], row, t);
        }
        espi_text_string(t, end);
    }
    return true;
}

static esp_status write_rows(const esp_dataset *data, const char *format, bool kelp, espi_output *output,
                             esp_error *err)
{
    const esp_status status = check(data, format, kelp, err);
    if (status != ESP_OK) return status;
    writer w = {.data = data, .output = output, .features = espi_alloc_zero(data->columns, sizeof *w.features)};
    bool ok = w.features != NULL;
    for (size_t i = 0; i < data->columns && ok; i++) {
        ok = espi_features_start(&w.features[i], &data->column[i].vectors);
        w.vectors += data->column[i].type == ESP_COLUMN_VECTOR;
    }
    for (size_t row = 0; row < data->rows && ok; row++) {
        ok = kelp ? kelp_row(&w, row) : svmtk_row(&w, row);
        espi_text_add(&w.text, "\n", 1);
        ok = ok && espi_text_flush(&w.text, output, false);
    }
    ok = ok && espi_text_flush(&w.text, output, true);
    for (size_t i = 0; i < data->columns && w.features != NULL; i++) espi_features_free(&w.features[i]);
    espi_free(w.features);
    espi_text_free(&w.text);
    espi_tree_printer_free(&w.printer);
    return ok ? ESP_OK : espi_no_memory(err);
}

esp_status espi_write_svmtk(const esp_dataset *data, const char *format, espi_output *output, esp_error *err)
{
    return write_rows(data, format, false, output, err);
}

esp_status espi_write_kelp(const esp_dataset *data, const char *format, espi_output *output, esp_error *err)
{
    return write_rows(data, format, true, output, err);
}
