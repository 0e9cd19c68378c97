/* JSON Lines; see read_jsonl.c. */
#include "base/json.h"
#include "base/number.h"
#include "base/status.h"
#include "data/writer.h"

#include <stdio.h>
#include <string.h>

static void add_name(espi_text *t, const char *name, size_t size)
{
    espi_text_add(t, "\"", 1);
    espi_text_json(t, name, size);
    espi_text_add(t, "\": ", 3);
}

void espi_text_vector(espi_text *t, const espi_vectors *v, size_t row)
{
    const size_t first = v->row[row], end = v->row[row + 1];
    if (!v->scalar) espi_text_add(t, v->dense ? "[" : "{", 1);
    for (size_t i = first; i < end; i++) {
        const espi_symbol *name = &v->features.symbol[v->feature[i]];
        if (i > first) espi_text_add(t, ", ", 2);
        if (!v->dense && !v->scalar) add_name(t, name->text, name->size);
        espi_text_number(t, v->value[i]);
    }
    if (!v->scalar) espi_text_add(t, v->dense ? "]" : "}", 1);
}

static void add_target(espi_text *t, const esp_dataset *data, size_t row, bool number)
{
    const espi_symbol *s = &data->target_texts.symbol[data->target[row]];
    double value = 0.0;
    add_name(t, data->target_name, strlen(data->target_name));
    if (number && espi_is_json_number(s->text, s->size)) {
        espi_text_add(t, s->text, s->size);
    } else if (number && espi_number_parse(s->text, s->size, &value)) { /* "007" and ".5" are none of JSON's */
        espi_text_number(t, value);
    } else {
        espi_text_add(t, "\"", 1);
        espi_text_json(t, s->text, s->size);
        espi_text_add(t, "\"", 1);
    }
}

typedef struct writing {
    espi_text text, part; /* what goes out, and a piece of a string before it is escaped */
    espi_tree_printer printer;
    espi_output *output;
} writing;

/* A tree or sequence as a string. An empty tree is an empty string. */
static bool add_string(writing *w, const espi_column *c, size_t row)
{
    bool more = false;
    espi_text_add(&w->text, "\"", 1);
    w->part.size = 0;
    if (c->type == ESP_COLUMN_SEQUENCE) {
        espi_text_sequence(&w->part, &c->sequences, row);
    } else {
        espi_tree_print_start(&w->printer, &c->trees, c->trees.root[row], false);
        more = espi_tree_print_more(&w->printer, &w->part);
    }
    for (;;) {
        espi_text_json(&w->text, w->part.bytes, w->part.size);
        if (!more || !espi_text_flush(&w->text, w->output, false)) break;
        w->part.size = 0;
        more = espi_tree_print_more(&w->printer, &w->part);
    }
    espi_text_add(&w->text, "\"", 1);
    return !w->part.failed;
}

esp_status espi_write_jsonl(const esp_dataset *data, const char *format, espi_output *output, esp_error *err)
{
    (void)format; /* it holds everything */
    writing w = {.output = output};
    const bool number = esp_dataset_target_is_number(data);
    bool ok = true;
    for (size_t row = 0; row < data->rows && ok; row++) {
        espi_text_add(&w.text, "{", 1);
        if (data->target_name != NULL) add_target(&w.text, data, row, number);
        for (size_t i = 0; i < data->columns && ok; i++) {
            const espi_column *c = &data->column[i];
            if (i > 0 || data->target_name != NULL) espi_text_add(&w.text, ", ", 2);
            add_name(&w.text, c->name, strlen(c->name));
            if (c->type == ESP_COLUMN_VECTOR) espi_text_vector(&w.text, &c->vectors, row);
            else ok = add_string(&w, c, row);
        }
        espi_text_add(&w.text, "}\n", 2);
        ok = ok && espi_text_flush(&w.text, output, false);
    }
    ok = ok && espi_text_flush(&w.text, output, true);
    espi_text_free(&w.text);
    espi_text_free(&w.part);
    espi_tree_printer_free(&w.printer);
    return ok ? ESP_OK : espi_no_memory(err);
}
