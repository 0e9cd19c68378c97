#include "search/search.h"

#include "base/alloc.h"
#include "base/group.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "search/tree_search.h"

#include <string.h>

void esp_hits_free(esp_hits *h)
{
    if (h == NULL) return;
    for (size_t i = 0; h->hit != NULL && i < h->queries; i++) espi_free(h->hit[i]);
    espi_free(h->hit);
    espi_free(h->count);
    espi_free(h->id_end);
    espi_free(h->id_text);
    espi_free(h);
}

size_t esp_hits_queries(const esp_hits *h) { return h->queries; }

const esp_hit *esp_hits_of(const esp_hits *h, size_t query, size_t *count)
{
    *count = query < h->queries ? h->count[query] : 0;
    return *count > 0 ? h->hit[query] : NULL;
}

const char *esp_hits_id(const esp_hits *h, size_t query)
{
    if (h->id_end == NULL || query >= h->queries) return NULL;
    return h->id_text + (query > 0 ? h->id_end[query - 1] : 0);
}

uint64_t esp_hits_computed(const esp_hits *h, uint64_t *skipped)
{
    if (skipped != NULL) *skipped = h->skipped;
    return h->computed;
}

typedef struct search_worker {
    espi_tree_search trees;
    espi_workspace *workspace; /* of other kernels */
    double *row;
    espi_best best;
} search_worker;

typedef struct search_job {
    const esp_index *index;
    const esp_search_options *options;
    espi_tree_queries queries;
    espi_bound *bound; /* of other kernels: rows are queries */
    size_t *same;      /* per query: the example that has its name; NULL: nobody is left out */
    double above;
    size_t most;
    search_worker *worker; /* per thread */
    esp_hits *hits;
} search_job;

static esp_status search_rows(const search_job *j, search_worker *w, size_t query, const esp_run *run, esp_error *err)
{
    const size_t n = j->index->count;
    if (w->row == NULL) w->row = espi_alloc(n, sizeof *w->row);
    esp_status status = w->row == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK && w->workspace == NULL) status = espi_workspace_new(j->bound, run, &w->workspace, err);
    if (status == ESP_OK) status = espi_bound_row(w->workspace, j->bound->kernel->ops - 1, query, 0, n, w->row, err);
    for (size_t i = 0; status == ESP_OK && i < n; i++)
        if ((j->same == NULL || j->same[query] != i) && !espi_best_add(&w->best, i, espi_similarity(w->row[i])))
            status = espi_no_memory(err);
    return status;
}

static esp_status search_trees(const search_job *j, search_worker *w, size_t query, const esp_run *run, esp_error *err)
{
    espi_listed_tree tree;
    (void)espi_listed_tree_get(&j->queries.list, query, &tree);
    w->trees.query.file = j->index->file;
    w->trees.query.maker.caller = run;
    const esp_status status =
        espi_tree_query_set(&w->trees.query, &j->index->trees, &tree, &j->queries.decay, j->queries.groups, err);
    if (status != ESP_OK) return status;
    return espi_tree_search_run(&w->trees, j->index, j->index->count, j->same != NULL ? j->same[query] : ESPI_NOBODY,
                                j->options->no_bounds, &w->best, err);
}

static esp_status search_one(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const search_job *j = context;
    search_worker *w = &j->worker[thread->number];
    espi_best_start(&w->best, j->most, j->above);
    const esp_status status =
        j->index->by_trees ? search_trees(j, w, item, thread->run, err) : search_rows(j, w, item, thread->run, err);
    if (status != ESP_OK) return status;
    espi_best_sort(&w->best);
    esp_hit *hit = j->hits->hit[item] = espi_alloc(w->best.count, sizeof *hit);
    if (hit == NULL) return espi_no_memory(err);
    if (w->best.count > 0) memcpy(hit, w->best.hit, w->best.count * sizeof *hit);
    j->hits->count[item] = w->best.count;
    return ESP_OK;
}

/* ------------------------------------------------------------------- set-up */

static bool has_field(const esp_dataset *data, const char *field)
{
    size_t index;
    return (data->target_name != NULL && strcmp(data->target_name, field) == 0) ||
           espi_find_column(data, field, strlen(field), &index);
}

static esp_status name_queries(search_job *j, const esp_dataset *queries, esp_error *err)
{
    const char *field = j->options->id;
    if (field == NULL && j->index->id_field != NULL && has_field(queries, j->index->id_field))
        field = j->index->id_field;
    if (field == NULL) return ESP_OK;
    return espi_ids_make(queries, field, &j->hits->id_end, &j->hits->id_text, err);
}

/* For each query the example of the same name. */
static esp_status find_same(search_job *j, esp_error *err)
{
    espi_symbols names = {0};
    if (!j->options->others) return ESP_OK;
    if (j->hits->id_end == NULL || j->index->id_end == NULL)
        return espi_suggest(err,
                            espi_fail(err, ESP_ERR_PARAM,
                                      "%s have no names, so that an example cannot be recognised as the query",
                                      j->index->id_end == NULL ? "the examples" : "the queries"),
                            "id", NULL);
    j->same = espi_alloc(j->hits->queries, sizeof *j->same);
    bool ok = j->same != NULL;
    for (size_t i = 0; ok && i < j->index->count; i++) {
        const char *name = esp_index_id(j->index, i);
        ok = espi_symbols_add(&names, name, strlen(name)) != ESPI_NO_SYMBOL;
    }
    for (size_t i = 0; ok && i < j->hits->queries; i++) {
        const char *name = esp_hits_id(j->hits, i);
        const uint32_t number = espi_symbols_find(&names, name, strlen(name));
        j->same[i] = number == ESPI_NO_SYMBOL ? ESPI_NOBODY : number;
    }
    espi_symbols_free(&names);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status set_up(search_job *j, const esp_dataset *queries, int workers, const esp_run *run, esp_error *err)
{
    esp_hits *h = j->hits;
    h->queries = queries->rows;
    h->hit = espi_alloc_zero(queries->rows, sizeof *h->hit);
    h->count = espi_alloc_zero(queries->rows, sizeof *h->count);
    j->worker = espi_alloc_zero((size_t)workers, sizeof *j->worker);
    if (h->hit == NULL || h->count == NULL || j->worker == NULL) return espi_no_memory(err);
    if (queries->rows == 0) return espi_fail(err, ESP_ERR_PARSE, "there is no query");
    esp_status status = espi_check_columns(j->index->kernel, queries, err);
    if (status == ESP_OK) status = name_queries(j, queries, err);
    if (status == ESP_OK) status = find_same(j, err);
    if (status != ESP_OK) return status;
    return j->index->by_trees ? espi_tree_queries_make(j->index, queries, run, &j->queries, err)
                              : espi_bind_to_cols(j->index->bound, queries, run, &j->bound, err);
}

static void add_up(search_job *j, int workers)
{
    for (int i = 0; j->worker != NULL && i < workers; i++) j->hits->computed += j->worker[i].trees.computed;
}

static void clean_up(search_job *j, int workers)
{
    for (int i = 0; j->worker != NULL && i < workers; i++) {
        search_worker *w = &j->worker[i];
        espi_tree_search_free(&w->trees);
        espi_workspace_free(w->workspace);
        espi_free(w->row);
        espi_best_free(&w->best);
    }
    const uint64_t all = (uint64_t)j->hits->queries * j->index->count;
    if (!j->index->by_trees) j->hits->computed = all;
    j->hits->skipped = all > j->hits->computed ? all - j->hits->computed : 0;
    espi_free(j->worker);
    espi_free(j->same);
    espi_tree_queries_free(&j->queries);
    espi_bound_free(j->bound);
}

/* ------------------------------------------------------- several processes */

static esp_status agree(const esp_index *index, const esp_dataset *queries, const esp_run *run, esp_error *err)
{
    if (!espi_group_shares(run)) return ESP_OK;
    uint64_t digest = 0;
    esp_status status = espi_index_digest(index, &digest, err);
    if (status == ESP_OK) status = espi_group_agree(run, "another index", digest, err);
    return status == ESP_OK ? espi_group_agree(run, "other data", espi_dataset_digest_all(queries), err) : status;
}

/* Each rank has found what some queries ask for; then all have it. */
static esp_status join(esp_hits *h, const esp_run *run, esp_error *err)
{
    double computed = (double)h->computed;
    size_t all = 0, at = 0;
    if (!espi_group_shares(run)) return ESP_OK;
    bool *own = espi_alloc(h->queries, sizeof *own);
    if (own == NULL) return espi_no_memory(err);
    for (size_t q = 0; q < h->queries; q++) own[q] = h->hit[q] != NULL;
    esp_status status = espi_group_merge(run, h->count, h->queries * sizeof *h->count, err);
    for (size_t q = 0; status == ESP_OK && q < h->queries; q++) all += h->count[q];
    esp_hit *hit = status == ESP_OK ? espi_alloc_zero(all, sizeof *hit) : NULL;
    if (status == ESP_OK && hit == NULL) status = espi_no_memory(err);
    for (size_t q = 0; status == ESP_OK && q < h->queries; at += h->count[q++])
        if (own[q] && h->count[q] > 0) memcpy(hit + at, h->hit[q], h->count[q] * sizeof *hit);
    if (status == ESP_OK) status = espi_group_merge(run, hit, all * sizeof *hit, err);
    at = 0;
    for (size_t q = 0; status == ESP_OK && q < h->queries; at += h->count[q++]) {
        if (own[q]) continue;
        h->hit[q] = espi_alloc(h->count[q], sizeof *hit);
        if (h->hit[q] == NULL) status = espi_no_memory(err);
        else if (h->count[q] > 0) memcpy(h->hit[q], hit + at, h->count[q] * sizeof *hit);
    }
    if (status == ESP_OK) status = espi_group_sum(run, &computed, 1, err); /* exact below 2^53 */
    h->computed = (uint64_t)computed;
    espi_free(hit);
    espi_free(own);
    return status;
}

esp_status esp_search(const esp_index *index, const esp_dataset *queries, const esp_search_options *options,
                      const esp_run *run, esp_hits **out, esp_error *err)
{
    static const esp_search_options none = {0};
    const int workers = espi_worker_count(run, queries->rows);
    const esp_run apart = espi_group_apart(run);
    search_job j = {.index = index, .options = options != NULL ? options : &none};
    esp_error ignored;
    *out = NULL;
    if (err == NULL) err = &ignored;
    j.most = j.options->top > 0 && j.options->top < index->count ? j.options->top : index->count;
    j.above = j.options->threshold ? espi_similarity(j.options->above) : -INFINITY;
    if (isnan(j.above)) return espi_fail(err, ESP_ERR_PARAM, "the least similarity is not a number");
    j.hits = espi_alloc_zero(1, sizeof *j.hits);
    if (j.hits == NULL) return espi_group_end(run, espi_no_memory(err), err);
    esp_status status = agree(index, queries, run, err);
    if (status == ESP_OK) status = set_up(&j, queries, workers, &apart, err);
    if (status == ESP_OK)
        status =
            espi_group_deal(run, "searching", queries->rows, espi_group_block(run, queries->rows), search_one, &j, err);
    add_up(&j, workers);
    if (status == ESP_OK) status = join(j.hits, run, err);
    clean_up(&j, workers);
    status = espi_group_end(run, status, err);
    if (status == ESP_OK) *out = j.hits;
    else esp_hits_free(j.hits);
    return status;
}
