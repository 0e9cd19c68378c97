#include "base/alloc.h"
#include "base/status.h"
#include "search/pairs.h"
#include "search/tree_search.h"

struct espi_pair_asker {
    const esp_index *index;
    espi_tree_search trees; /* its query is `row` */
    size_t row;
    double *lambda, *alpha;
    espi_decay decay;
    espi_workspace *workspace; /* of other kernels */
};

void espi_pair_asker_free(espi_pair_asker *a)
{
    if (a == NULL) return;
    espi_tree_search_free(&a->trees);
    espi_workspace_free(a->workspace);
    espi_free(a->lambda);
    espi_free(a->alpha);
    espi_free(a);
}

esp_status espi_pair_asker_new(const esp_index *index, const esp_run *run, espi_pair_asker **out, esp_error *err)
{
    espi_pair_asker *a = *out = espi_alloc_zero(1, sizeof *a);
    if (a == NULL) return espi_no_memory(err);
    a->index = index;
    a->row = ESPI_NOBODY;
    const esp_status status = index->by_trees ? espi_index_decay(index, &a->lambda, &a->alpha, err)
                                              : espi_workspace_new(index->bound, run, &a->workspace, err);
    a->decay = (espi_decay){.lambda = a->lambda, .alpha = a->alpha};
    if (status == ESP_OK) return ESP_OK;
    espi_pair_asker_free(a);
    *out = NULL;
    return status;
}

static esp_status set_row(espi_pair_asker *a, size_t row, esp_error *err)
{
    const espi_tree_index *x = &a->index->trees;
    espi_listed_tree tree;
    if (a->row == row) return ESP_OK;
    a->row = ESPI_NOBODY;
    if (!espi_listed_tree_get(&x->list, row, &tree) || !espi_listed_tree_check(&tree, x->groups))
        return espi_index_wrong(a->index->file, err);
    const esp_status status = espi_tree_query_set(&a->trees.query, x, &tree, &a->decay, x->groups, err);
    if (status == ESP_OK) a->row = row;
    return status;
}

esp_status espi_pair_ask(espi_pair_asker *a, size_t row, size_t other, double *value, esp_error *err)
{
    const esp_index *x = a->index;
    esp_status status = ESP_OK;
    if (x->by_trees) {
        status = set_row(a, row, err);
        return status == ESP_OK ? espi_tree_search_value(&a->trees, x, other, value, err) : status;
    }
    status = espi_bound_row(a->workspace, x->bound->kernel->ops - 1, row, other, other + 1, value, err);
    if (status == ESP_OK) *value = espi_similarity(*value);
    return status;
}
