/* Examples as lines: {"y": 1, "tree": "...", "x": {"name": 1, ...}} or 1 |BT| ... |ET| 3:1 7:1 |EV|. Split examples
 * have two more trees, "path" and "cs", behind the first.
 *
 * SVM-light-TK knows features by number; they are numbered in the order in which they first appear. */
#include "base/alloc.h"
#include "base/sort.h"
#include "data/writer.h"
#include "task/srl.h"

#include <stdio.h>

static const char *const columns[] = {"tree", "path", "cs"}; /* by espi_srl_part */

static int parts(const espi_srl_writer *w) { return w->split ? 3 : 1; }

static void add_json(espi_srl_writer *w, const char *target, size_t size, bool number, const espi_srl_spine *s,
                     const espi_srl_tree *t, const espi_srl_names *names)
{
    espi_text *text = &w->text;
    espi_text_string(text, number ? "{\"y\": " : "{\"y\": \"");
    espi_text_add(text, target, size);
    if (!number) espi_text_string(text, "\"");
    for (int part = 0; part < parts(w); part++) {
        espi_text_string(text, ", \"");
        espi_text_string(text, columns[part]);
        espi_text_string(text, "\": \"");
        espi_srl_spine_text(s, t, (espi_srl_part)part, text);
        espi_text_string(text, "\"");
    }
    espi_text_string(text, ", \"x\": {");
    for (size_t i = 0, at = 0; i < names->count; at = names->end[i++]) {
        espi_text_string(text, i > 0 ? ", \"" : "\"");
        espi_text_add(text, names->text.bytes + at, names->end[i] - at);
        espi_text_string(text, "\": 1");
    }
    espi_text_string(text, "}}\n");
}

static bool add_svmtk(espi_srl_writer *w, const char *target, size_t size, const espi_srl_spine *s,
                      const espi_srl_tree *t, const espi_srl_names *names)
{
    espi_text *text = &w->text;
    if (!espi_reserve(&w->number, &w->number_capacity, names->count, sizeof *w->number)) return false;
    for (size_t i = 0, at = 0; i < names->count; at = names->end[i++]) {
        const uint32_t symbol = espi_symbols_add(&w->features, names->text.bytes + at, names->end[i] - at);
        if (symbol == ESPI_NO_SYMBOL) return false;
        w->number[i] = symbol + 1;
    }
    espi_sort_numbers(w->number, names->count);
    espi_text_add(text, target, size);
    for (int part = 0; part < parts(w); part++) {
        espi_text_string(text, " |BT| ");
        espi_srl_spine_text(s, t, (espi_srl_part)part, text);
    }
    espi_text_string(text, " |ET|");
    for (size_t i = 0; i < names->count; i++) {
        char feature[24];
        espi_text_add(text, feature, (size_t)snprintf(feature, sizeof feature, " %u:1", (unsigned)w->number[i]));
    }
    espi_text_string(text, " |EV|\n");
    return true;
}

bool espi_srl_writer_add(espi_srl_writer *w, const char *target, size_t size, bool number, const espi_srl_spine *s,
                         const espi_srl_tree *t, const espi_srl_names *names)
{
    bool room = true;
    if (w->json) add_json(w, target, size, number, s, t, names);
    else room = add_svmtk(w, target, size, s, t, names);
    return room && espi_text_flush(&w->text, w->output, false);
}

bool espi_srl_writer_end(espi_srl_writer *w) { return espi_text_flush(&w->text, w->output, true); }

bool espi_srl_writer_features(const espi_srl_writer *w, espi_output *output)
{
    espi_text text = {0};
    bool room = true;
    for (size_t i = 0; i < w->features.count && room; i++) {
        char number[24];
        espi_text_add(&text, number, (size_t)snprintf(number, sizeof number, "%zu\t", i + 1));
        espi_text_add(&text, w->features.symbol[i].text, w->features.symbol[i].size);
        espi_text_add(&text, "\n", 1);
        room = espi_text_flush(&text, output, false);
    }
    room = room && espi_text_flush(&text, output, true);
    espi_text_free(&text);
    return room;
}

void espi_srl_writer_free(espi_srl_writer *w)
{
    espi_text_free(&w->text);
    espi_symbols_free(&w->features);
    espi_free(w->number);
    *w = (espi_srl_writer){0};
}
