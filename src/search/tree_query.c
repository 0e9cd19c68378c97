/* The kernel of two trees, pair of nodes by pair of nodes (dag.h has the recursion). The nodes of the query are sorted
 * by group, so that a node of the other tree meets only those with its production. */
#include "search/tree_query.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/tree/pair.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_PAIRS = 1 << 22 }; /* of two trees; beyond, the engine of Gram rows takes over, which shares columns */
#define NO_ROW SIZE_MAX

void espi_tree_query_free(espi_tree_query *q)
{
    espi_block_maker_free(&q->maker);
    espi_free(q->local);
    espi_free(q->run);
    espi_free(q->member);
    espi_free(q->place);
    espi_free(q->delta);
    espi_free(q->row);
    *q = (espi_tree_query){0};
}

esp_status espi_index_wrong(const char *file, esp_error *err)
{
    return espi_fail(err, ESP_ERR_PARSE, "%s: the index file is wrong: its trees do not fit together",
                     file != NULL ? file : "index");
}

bool espi_postings_of(const espi_tree_index *x, uint32_t group, size_t *first, size_t *end)
{
    const uint64_t from = group > 0 ? x->posting_end[group - 1] : 0, to = x->posting_end[group];
    *first = (size_t)from;
    *end = (size_t)to;
    return from <= to && to <= x->postings;
}

/* ------------------------------------------------------------------- query */

static void forget(espi_tree_query *q)
{
    for (size_t i = 0; i < q->runs; i++)
        if (q->run[i].group < q->index->groups) q->local[q->run[i].group] = 0;
    q->runs = 0;
}

static bool add_run(espi_tree_query *q, struct espi_query_run run)
{
    if (!espi_reserve(&q->run, &q->run_room, q->runs + 1, sizeof *q->run)) return false;
    q->run[q->runs++] = run;
    if (run.group < q->index->groups) q->local[run.group] = (uint32_t)q->runs;
    return true;
}

static bool fill_runs(espi_tree_query *q)
{
    const espi_listed_tree *t = &q->tree;
    bool ok = espi_reserve(&q->member, &q->member_room, t->nodes, sizeof *q->member) &&
              espi_reserve(&q->place, &q->place_room, t->nodes, sizeof *q->place);
    if (!ok) return false;
    for (size_t i = 0; i < t->nodes; i++) q->member[i] = (uint64_t)t->group[i] << 32 | i;
    espi_sort_keys(q->member, t->nodes);
    for (size_t i = 0; ok && i < t->nodes; i++) {
        const uint32_t group = (uint32_t)(q->member[i] >> 32);
        if (i == 0 || q->member[i - 1] >> 32 != group)
            ok = add_run(q, (struct espi_query_run){.group = group, .first = (uint32_t)i});
        if (ok) q->place[(uint32_t)q->member[i]] = q->run[q->runs - 1].count++;
    }
    for (size_t i = 0; ok && i < t->words; i++) {
        const uint32_t group = t->word_group[i], number = group < q->index->groups ? q->local[group] : 0;
        /* In a file that is wrong a group may have nodes and words, or occur twice. */
        if (number > 0) q->run[number - 1].words += t->word_count[i];
        else ok = add_run(q, (struct espi_query_run){.group = group, .words = t->word_count[i]});
    }
    return ok;
}

static void set_self(espi_tree_query *q)
{
    const double plain = espi_wide_double(q->self);
    q->root = q->self.m > 0.0 ? espi_wide_normalise(q->self, q->self, espi_wide_of(1.0)) : 0.0;
    q->scale = q->self.m <= 0.0 ? 0.0 : isfinite(plain) && plain > DBL_MIN * 1e20 ? 1.0 / sqrt(plain) : (double)NAN;
}

esp_status espi_tree_query_set(espi_tree_query *q, const espi_tree_index *index, const espi_listed_tree *tree,
                               const espi_decay *decay, size_t groups, esp_error *err)
{
    if (q->index != index) {
        espi_free(q->local);
        q->runs = 0;
        q->local = espi_alloc_zero(index->groups, sizeof *q->local);
    }
    if (q->local == NULL) return espi_no_memory(err);
    q->index = index;
    forget(q);
    q->tree = *tree;
    q->decay = decay;
    const esp_status status =
        espi_blocks_make(&q->maker, tree, decay, groups, index->common, index->groups, &q->self, err);
    if (status != ESP_OK) return status;
    set_self(q);
    return fill_runs(q) ? ESP_OK : espi_no_memory(err);
}

/* -------------------------------------------------------------------- pairs */

/* Where the pairs of each node of the other tree go; *pairs is how many there are. False: wrong. */
static bool lay_out(const espi_tree_query *q, const espi_listed_tree *t, size_t *pairs)
{
    uint32_t at = 0;
    *pairs = 0;
    for (size_t i = 0; i < t->nodes; i++) {
        const uint32_t group = t->group[i];
        if (group >= q->index->groups || t->kid_end[i] < at || t->kid_end[i] > t->kids) return false;
        const uint32_t number = q->local[group];
        q->row[i] = NO_ROW;
        if (number > 0) {
            const struct espi_query_run *run = &q->run[number - 1];
            if (run->count > 0) q->row[i] = *pairs;
            *pairs += run->count;
        }
        at = t->kid_end[i];
    }
    return true;
}

/* Delta of node a of the query and a node of the other tree, whose kids are kid[0 .. kids). False: wrong. */
static bool delta_of(const espi_tree_query *q, const espi_listed_tree *t, uint32_t a, uint32_t node, double *out)
{
    const uint32_t from = node > 0 ? t->kid_end[node - 1] : 0, kids = t->kid_end[node] - from;
    const uint32_t *kid = t->kid + from, first = a > 0 ? q->tree.kid_end[a - 1] : 0;
    const uint32_t *own = q->tree.kid + first;
    const double alpha = q->decay->alpha[q->tree.group[a]];
    double product = q->decay->lambda[q->tree.group[a]];
    if (kids != q->tree.kid_end[a] - first) return false;
    for (uint32_t k = 0; k < kids; k++) {
        const uint32_t i = own[k], j = kid[k];
        double below = 0.0;
        if (((i | j) & ESPI_WORD) != 0) {
            if (i == j) below = q->decay->lambda[i & ~ESPI_WORD];
        } else {
            if (j >= node) return false;
            if (t->group[j] == q->tree.group[i]) below = q->delta[q->row[j] + q->place[i]];
        }
        product *= alpha + below;
    }
    *out = product;
    return true;
}

/* The sum over all pairs. False: wrong. */
static bool sum_pairs(const espi_tree_query *q, const espi_listed_tree *t, double *sum)
{
    *sum = 0.0;
    for (size_t i = 0; i < t->words; i++) {
        if (t->word_group[i] >= q->index->groups) return false;
        const uint32_t number = q->local[t->word_group[i]];
        if (number > 0) *sum += q->run[number - 1].words * t->word_count[i] * q->decay->lambda[t->word_group[i]];
    }
    for (uint32_t node = 0; node < t->nodes; node++) {
        if (q->row[node] == NO_ROW) continue;
        const struct espi_query_run *run = &q->run[q->local[t->group[node]] - 1];
        for (uint32_t r = 0; r < run->count; r++) {
            const uint32_t a = (uint32_t)q->member[run->first + r];
            double *delta = &q->delta[q->row[node] + r];
            if (!delta_of(q, t, a, node, delta)) return false;
            *sum += (double)q->tree.count[a] * t->count[node] * *delta;
        }
    }
    return true;
}

/* The two as plans of the engine. */
static bool both_plans(const espi_tree_query *q, const espi_listed_tree *t, espi_plan plan[2], void *memory[2])
{
    return espi_listed_tree_plan(&q->tree, &plan[0], &memory[0]) && espi_listed_tree_plan(t, &plan[1], &memory[1]);
}

/* By the engine of Gram rows, whose columns are shared along chains. */
static esp_status large_pair(const espi_tree_query *q, const espi_listed_tree *t, double *value, esp_error *err)
{
    espi_plan plan[2];
    void *memory[2] = {NULL, NULL};
    espi_dag dag = {0};
    *value = 0.0;
    espi_matcher *matcher = NULL;
    const bool ok = both_plans(q, t, plan, memory) && espi_dag_insert(&dag, &plan[1]) &&
                    (matcher = espi_matcher_new(&dag, q->decay, q->maker.caller)) != NULL;
    const esp_status status = ok ? espi_match_row(matcher, &plan[0], 0, 1, value, err) : espi_no_memory(err);
    espi_matcher_free(matcher);
    espi_dag_free(&dag);
    espi_free(memory[0]);
    espi_free(memory[1]);
    return status;
}

static esp_status wide_pair(const espi_tree_query *q, const espi_listed_tree *t, espi_wide *value, esp_error *err)
{
    espi_plan plan[2];
    void *memory[2] = {NULL, NULL};
    const esp_status status = both_plans(q, t, plan, memory)
                                  ? espi_pair_wide(&plan[0], &plan[1], q->decay, q->maker.caller, value, err)
                                  : espi_no_memory(err);
    espi_free(memory[0]);
    espi_free(memory[1]);
    return status;
}

static esp_status plain_value(espi_tree_query *q, const espi_listed_tree *t, double *value, esp_error *err)
{
    size_t pairs;
    if (!espi_reserve(&q->row, &q->row_room, t->nodes, sizeof *q->row)) return espi_no_memory(err);
    if (!lay_out(q, t, &pairs)) return espi_index_wrong(q->file, err);
    if (pairs > MOST_PAIRS) {
        if (!espi_listed_tree_check(t, q->index->groups)) return espi_index_wrong(q->file, err);
        return large_pair(q, t, value, err);
    }
    if (!espi_reserve(&q->delta, &q->delta_room, pairs, sizeof *q->delta)) return espi_no_memory(err);
    return sum_pairs(q, t, value) ? ESP_OK : espi_index_wrong(q->file, err);
}

esp_status espi_tree_query_value(espi_tree_query *q, size_t tree, bool norm, double *value, esp_error *err)
{
    espi_listed_tree t;
    if (!espi_listed_tree_get(&q->index->list, tree, &t)) return espi_index_wrong(q->file, err);
    esp_status status = plain_value(q, &t, value, err);
    if (status != ESP_OK) return status;
    const espi_wide self = espi_tree_index_self(q->index, tree);
    if (norm) {
        const double plain = q->index->self[tree];
        const bool usual = q->index->self_exponent[tree] == 0;
        if (!(self.m > 0.0) || !(q->self.m > 0.0)) *value = 0.0;
        else *value *= usual ? q->scale * (1.0 / sqrt(plain)) : (double)NAN;
    }
    if (isfinite(*value)) return ESP_OK;
    espi_wide wide = {0};
    if (!espi_listed_tree_check(&t, q->index->groups)) return espi_index_wrong(q->file, err);
    status = wide_pair(q, &t, &wide, err);
    if (status != ESP_OK) return status;
    *value = norm ? espi_wide_normalise(wide, q->self, self) : espi_wide_double(wide);
    if (isfinite(*value)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the kernel of a query and example %zu is too large for a number; take a smaller lambda (or "
                     "weight), or norm(...)",
                     tree + 1);
}
