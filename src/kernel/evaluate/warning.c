/* What may be wrong about a kernel and data though values can be computed: values for labels or features that the data
 * lack, and what a kernel itself has to say. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/bag.h"
#include "kernel/expression/columns.h"

#include <stdio.h>
#include <string.h>

enum { MOST_LINES = 8 };

/* The names that values can be for, whatever the column; the caller frees them. */
static bool collect_names(const espi_column *column, espi_symbols *names)
{
    const espi_forest *f = &column->trees;
    espi_bag bag = {0};
    bool ok = true;
    for (size_t i = 0; column->type == ESP_COLUMN_TREE && ok && i < f->productions; i++) {
        const espi_symbol *label = &f->symbols.symbol[f->production[i].label];
        ok = espi_symbols_add(names, label->text, label->size) != ESPI_NO_SYMBOL;
    }
    if (column->type != ESP_COLUMN_TREE) ok = espi_bag_make(&bag, column, names, true);
    espi_bag_free(&bag);
    return ok;
}

/* Adds a line for each of the leaf's values by label or feature that nothing in the columns has, of many for the
 * first ones. False if memory is out. */
static bool unmatched_symbols(const espi_leaf *leaf, const espi_column *const *column, size_t columns, espi_text *lines)
{
    const char *what = column[0]->type == ESP_COLUMN_TREE ? "inner node has that label" : "example has that feature";
    espi_symbols names = {0};
    size_t unmatched = 0;
    if (leaf->symbols == 0) return true;
    bool ok = true;
    for (size_t i = 0; ok && i < columns; i++) ok = collect_names(column[i], &names);
    for (size_t i = 0; ok && i < leaf->symbols; i++) {
        const espi_symbol_value *s = &leaf->symbol[i];
        char quoted[96], line[400];
        if (espi_symbols_find(&names, s->label, strlen(s->label)) != ESPI_NO_SYMBOL) continue;
        if (++unmatched > MOST_LINES) continue;
        snprintf(line, sizeof line, "%s(%.100s): %s is given for %s, but no %s\n", leaf->class->name, column[0]->name,
                 leaf->class->parameters[s->parameter].info.name, espi_quote(s->label, strlen(s->label), quoted), what);
        espi_text_string(lines, line);
    }
    if (unmatched > MOST_LINES) {
        char line[200];
        snprintf(line, sizeof line, "%s(%.100s): the same is true of %zu other values\n", leaf->class->name,
                 column[0]->name, unmatched - MOST_LINES);
        espi_text_string(lines, line);
    }
    espi_symbols_free(&names);
    return ok;
}

esp_status esp_kernel_warning(const esp_kernel *kernel, const esp_dataset *data, const esp_dataset *other, char **text,
                              esp_error *err)
{
    espi_text all = {0};
    esp_status status = ESP_OK;
    *text = NULL;
    for (size_t i = 0; status == ESP_OK && i < kernel->leaves; i++) {
        const espi_leaf *leaf = &kernel->leaf[i];
        const espi_column *column[2];
        const size_t columns = other != NULL ? 2 : 1;
        if (leaf->symbols == 0 && leaf->class->warn == NULL) continue;
        status = espi_leaf_column(leaf, data, &column[0], err);
        if (status == ESP_OK && other != NULL) status = espi_leaf_column(leaf, other, &column[1], err);
        bool ok = status != ESP_OK || unmatched_symbols(leaf, column, columns, &all);
        if (ok && status == ESP_OK && leaf->class->warn != NULL) ok = leaf->class->warn(leaf, column, columns, &all);
        if (!ok) status = espi_no_memory(err);
    }
    if (status == ESP_OK && (all.size > 0 || all.failed)) {
        *text = espi_text_take(&all);
        if (*text == NULL) status = espi_no_memory(err);
    }
    espi_text_free(&all);
    return status;
}
