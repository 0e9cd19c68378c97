/* All pairs at least so similar, kind by kind: each example is a query to those before it. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "search/pairs.h"
#include "search/tree_search.h"

#include <math.h>
#include <string.h>

typedef struct pair_worker {
    espi_tree_search trees;
    espi_workspace *workspace;
    double *row;
    espi_best best;
    esp_pair *pair;
    size_t count, room;
    uint64_t computed;
} pair_worker;

typedef struct pair_job {
    const esp_index *index;
    double above;
    bool every;
    const uint32_t *twin;
    bool *has_twin;
    double *self;
    double *lambda, *alpha;
    espi_decay decay;
    size_t most; /* pairs that memory allows */
    pair_worker *worker;
} pair_job;

enum { BLOCK = 16 }; /* examples that a thread takes at a time */

static esp_status take_trees(const pair_job *j, pair_worker *w, size_t i, const esp_run *run, esp_error *err)
{
    const esp_index *x = j->index;
    espi_listed_tree tree;
    if (!espi_listed_tree_get(&x->trees.list, i, &tree) || !espi_listed_tree_check(&tree, x->trees.groups))
        return espi_index_wrong(x->file, err);
    w->trees.query.file = x->file;
    w->trees.query.maker.caller = run;
    const uint64_t before = w->trees.computed;
    esp_status status = espi_tree_query_set(&w->trees.query, &x->trees, &tree, &j->decay, x->trees.groups, err);
    if (status == ESP_OK) status = espi_tree_search_run(&w->trees, x, i, ESPI_NOBODY, j->every, &w->best, err);
    w->computed += w->trees.computed - before;
    if (status == ESP_OK && j->has_twin[i]) status = espi_tree_search_value(&w->trees, x, i, &j->self[i], err);
    return status;
}

static esp_status take_row(const pair_job *j, pair_worker *w, size_t i, const esp_run *run, esp_error *err)
{
    const espi_bound *b = j->index->bound;
    if (w->row == NULL) w->row = espi_alloc(j->index->count, sizeof *w->row);
    esp_status status = w->row == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK && w->workspace == NULL) status = espi_workspace_new(b, run, &w->workspace, err);
    if (status == ESP_OK) status = espi_bound_row(w->workspace, b->kernel->ops - 1, i, 0, i + 1, w->row, err);
    for (size_t k = 0; status == ESP_OK && k < i; k++)
        if (!espi_best_add(&w->best, k, espi_similarity(w->row[k]))) status = espi_no_memory(err);
    if (status == ESP_OK && j->has_twin[i]) j->self[i] = espi_similarity(w->row[i]);
    w->computed += i;
    return status;
}

static esp_status too_many(esp_error *err)
{
    return espi_fail(err, ESP_ERR_MEMORY, "the list of pairs does not fit the memory; take a higher threshold");
}

static esp_status take_example(const pair_job *j, pair_worker *w, size_t i, const esp_run *run, esp_error *err)
{
    espi_best_start(&w->best, SIZE_MAX, j->above);
    esp_status status = j->index->by_trees ? take_trees(j, w, i, run, err) : take_row(j, w, i, run, err);
    for (size_t k = 0; status == ESP_OK && k < w->best.count; k++) {
        const esp_hit hit = w->best.hit[k];
        if (j->twin[hit.example] != hit.example) continue;
        if (w->count >= j->most) return too_many(err);
        if (!espi_reserve(&w->pair, &w->room, w->count + 1, sizeof *w->pair)) return espi_no_memory(err);
        w->pair[w->count++] = (esp_pair){.first = hit.example, .second = i, .similarity = hit.similarity};
    }
    return status;
}

static esp_status take_block(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const pair_job *j = context;
    esp_status status = ESP_OK;
    for (size_t i = item * BLOCK; status == ESP_OK && i < (item + 1) * BLOCK && i < j->index->count; i++)
        if (j->twin[i] == i) status = take_example(j, &j->worker[thread->number], i, thread->run, err);
    return status;
}

static esp_status set_up(pair_job *j, espi_pair_list *list, esp_error *err)
{
    const size_t n = j->index->count;
    esp_status status = espi_twins_find(j->index, &list->twin, err);
    if (status != ESP_OK) return status;
    j->twin = list->twin;
    j->self = list->self = espi_alloc(n, sizeof *list->self);
    j->has_twin = espi_alloc_zero(n, sizeof *j->has_twin);
    if (j->self == NULL || j->has_twin == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        j->self[i] = (double)NAN;
        if (j->twin[i] != i) j->has_twin[j->twin[i]] = true;
    }
    if (!j->index->by_trees) return ESP_OK;
    status = espi_index_decay(j->index, &j->lambda, &j->alpha, err);
    j->decay = (espi_decay){.lambda = j->lambda, .alpha = j->alpha};
    return status;
}

/* What all threads found, one behind the other. */
static esp_status gather(const pair_job *j, int workers, espi_pair_list *list, esp_error *err)
{
    for (int i = 0; i < workers; i++) list->count += j->worker[i].count;
    if (list->count > j->most) return too_many(err);
    list->pair = espi_alloc(list->count, sizeof *list->pair);
    list->room = list->count;
    if (list->pair == NULL) return espi_no_memory(err);
    for (size_t i = 0, at = 0; i < (size_t)workers; i++) {
        const pair_worker *w = &j->worker[i];
        if (w->count > 0) memcpy(list->pair + at, w->pair, w->count * sizeof *w->pair);
        at += w->count;
        list->computed += w->computed;
    }
    const uint64_t n = j->index->count, all = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
    list->skipped = all > list->computed ? all - list->computed : 0;
    return ESP_OK;
}

static void clean_up(pair_job *j, int workers)
{
    for (int i = 0; j->worker != NULL && i < workers; i++) {
        pair_worker *w = &j->worker[i];
        espi_tree_search_free(&w->trees);
        espi_workspace_free(w->workspace);
        espi_free(w->row);
        espi_free(w->pair);
        espi_best_free(&w->best);
    }
    espi_free(j->worker);
    espi_free(j->has_twin);
    espi_free(j->lambda);
    espi_free(j->alpha);
}

void espi_pair_list_free(espi_pair_list *list)
{
    espi_free(list->pair);
    espi_free(list->twin);
    espi_free(list->self);
    *list = (espi_pair_list){0};
}

esp_status espi_pairs_of_kinds(const esp_index *index, double above, bool no_bounds, const esp_run *run,
                               espi_pair_list *out, esp_error *err)
{
    const size_t blocks = (index->count + BLOCK - 1) / BLOCK;
    const int workers = espi_worker_count(run, blocks);
    const size_t memory = run != NULL && run->memory > 0 ? run->memory : SIZE_MAX;
    pair_job j = {.index = index, .above = espi_similarity(above), .every = no_bounds};
    *out = (espi_pair_list){0};
    if (isnan(above)) return espi_fail(err, ESP_ERR_PARAM, "the least similarity is not a number");
    j.most = memory / sizeof(esp_pair);
    j.worker = espi_alloc_zero((size_t)workers, sizeof *j.worker);
    esp_status status = j.worker == NULL ? espi_no_memory(err) : set_up(&j, out, err);
    if (status == ESP_OK) status = espi_parallel(run, "comparing", blocks, take_block, &j, err);
    if (status == ESP_OK) status = gather(&j, workers, out, err);
    clean_up(&j, workers);
    if (status != ESP_OK) espi_pair_list_free(out);
    return status;
}
