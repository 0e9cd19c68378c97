#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "kernel/tree/tree_kernel.h"
#include "search/search.h"

void espi_tree_queries_free(espi_tree_queries *q)
{
    espi_tree_list_free(&q->list);
    espi_free(q->lambda);
    espi_free(q->alpha);
    *q = (espi_tree_queries){0};
}

/* Groups of the index, and behind them a number for each production and leaf that only queries have. */
static bool share(const espi_tree_index *x, const espi_forest *forest, bool bow, uint32_t **rule, uint32_t **leaf,
                  size_t *groups)
{
    *groups = x->groups;
    *rule = espi_tree_index_rules(x, forest);
    *leaf = bow ? espi_tree_index_symbols(x, forest) : NULL;
    if (*rule == NULL || (bow && *leaf == NULL)) return false;
    for (size_t i = 0; i < forest->productions; i++)
        if ((*rule)[i] == ESPI_NO_NODE) (*rule)[i] = (uint32_t)(*groups)++;
    for (size_t i = 0; bow && i < forest->symbols.count; i++)
        (*leaf)[i] = (*leaf)[i] == ESPI_NO_NODE ? (uint32_t)(*groups)++ : (uint32_t)(x->rules + (*leaf)[i]);
    return *groups < ESPI_WORD;
}

esp_status espi_tree_queries_make(const esp_index *x, const esp_dataset *queries, const esp_run *run,
                                  espi_tree_queries *out, esp_error *err)
{
    const espi_leaf *kernel = &x->kernel->leaf[0];
    const double bow = espi_leaf_value_or(kernel, "bow", 0.0);
    const espi_column *column = NULL;
    uint32_t *rule = NULL, *leaf = NULL;
    *out = (espi_tree_queries){0};
    esp_status status = espi_leaf_column(kernel, queries, &column, err);
    if (status != ESP_OK) return status;
    const espi_forest *forest = &column->trees;
    bool ok = share(&x->trees, forest, bow > 0.0, &rule, &leaf, &out->groups);
    if (ok) out->lambda = espi_alloc(out->groups, sizeof *out->lambda);
    if (ok) out->alpha = espi_alloc(out->groups, sizeof *out->alpha);
    ok = ok && out->lambda != NULL && out->alpha != NULL &&
         espi_tree_decays(kernel, forest, rule, out->lambda, out->alpha, NULL, NULL);
    for (size_t i = 0; ok && leaf != NULL && i < forest->symbols.count; i++) {
        out->lambda[leaf[i]] = bow;
        out->alpha[leaf[i]] = 0.0;
    }
    out->decay = (espi_decay){.lambda = out->lambda, .alpha = out->alpha};
    status = ok ? espi_tree_list_make(&out->list, forest, rule, leaf, out->groups, run, err) : espi_no_memory(err);
    espi_free(rule);
    espi_free(leaf);
    if (status != ESP_OK) espi_tree_queries_free(out);
    return status;
}
