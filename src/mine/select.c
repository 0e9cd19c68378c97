/* From kernel expressions to what they select. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "mine/mine.h"

/* Numbers of leaves are whole but may be infinite. */
static size_t size_of(double value) { return value >= 9e15 ? SIZE_MAX : (size_t)value; }

espi_mine_options espi_leaf_options(const espi_leaf *leaf)
{
    return (espi_mine_options){.metric = ESPI_CHI2,
                               .tau = espi_leaf_value(leaf, "tau"),
                               .min_support = size_of(espi_leaf_value(leaf, "support")),
                               .max_length = size_of(espi_leaf_value(leaf, "n")),
                               .gap = espi_leaf_value_or(leaf, "gap", 0.0) != 0.0 ? 0 : SIZE_MAX,
                               .paths = espi_leaf_value_or(leaf, "paths", 0.0) != 0.0};
}

esp_status espi_mine_column(const espi_mine_options *options, const espi_column *column, const uint8_t *positive,
                            const bool *used, const esp_run *run, espi_selection **out, espi_mine_stats *stats,
                            esp_error *err)
{
    *out = NULL;
    espi_selection *s = espi_alloc_zero(1, sizeof *s);
    if (s == NULL) return espi_no_memory(err);
    s->kind = column->type == ESP_COLUMN_SEQUENCE ? ESPI_SELECTED_SEQUENCES : ESPI_SELECTED_TREES;
    const esp_status status = s->kind == ESPI_SELECTED_SEQUENCES
                                  ? espi_mine_sequences(column, positive, used, options, run, &s->trie, stats, err)
                                  : espi_mine_trees(column, positive, used, options, run, &s->fragments, stats, err);
    if (status == ESP_OK) *out = s;
    else espi_selection_free(s);
    return status;
}

esp_status espi_kernel_select(const esp_kernel *kernel, const esp_dataset *data, const uint8_t *positive,
                              const bool *used, const esp_run *run, espi_selection **selection, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; i < kernel->leaves; i++) selection[i] = NULL;
    for (size_t i = 0; i < kernel->leaves && status == ESP_OK; i++) {
        const espi_leaf *leaf = &kernel->leaf[i];
        const espi_column *column;
        if (!espi_leaf_selects(leaf)) continue;
        status = espi_leaf_column(leaf, data, &column, err);
        const espi_mine_options options = espi_leaf_options(leaf);
        if (status == ESP_OK)
            status = espi_mine_column(&options, column, positive, used, run, &selection[i], NULL, err);
    }
    for (size_t i = 0; i < kernel->leaves && status != ESP_OK; i++) {
        espi_selection_free(selection[i]);
        selection[i] = NULL;
    }
    return status;
}
