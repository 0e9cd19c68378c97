/* Tree kernels in sums that grow (Aiolli et al. 2007): the trees kept are folded into the annotated DAG (weights.h), so
 * that a score costs what the different subtrees cost, however many trees there are. Trees live in the forest of the
 * column: vertices and productions of the trees kept never change their numbers; those that only the tree at hand
 * has come behind them, and are gone when it goes.
 *
 * The forms `forest` and `plain` keep every tree and add up pairs by FTK and QTK. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/tree/flat.h"
#include "kernel/tree/pair.h"
#include "kernel/tree/tree_kernel.h"
#include "kernel/tree/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct leaf_count {
    uint32_t symbol;
    double count;
} leaf_count;

typedef struct posting {
    size_t example;
    double count;
} posting;

typedef struct postings { /* trees kept that have a leaf */
    posting *at;
    size_t count, capacity;
} postings;

typedef struct growing_tree {
    espi_growing_part part;
    const espi_leaf *leaf;
    const espi_forest *forest;
    espi_tree_algorithm algorithm;
    size_t width; /* outputs, and behind them a sum of the absolute coefficients: the magnitude of the scores */
    bool rows;
    const esp_run *run;
    double *added, *sums;   /* scratch: coefficients and scores of that width */
    double *lambda, *alpha; /* per production */
    size_t lambda_capacity, alpha_capacity;
    espi_decay decay;
    size_t settled; /* productions of the trees kept: their lambda and alpha stay */
    espi_planner *planner;
    espi_plan plan; /* of the tree at hand */
    espi_ref root;
    size_t kept, nodes;
    espi_self_scratch self;

    espi_tree_weights weights;
    espi_matcher *matcher;

    espi_flat at_hand, *flat; /* per tree kept */
    size_t flat_capacity;
    double *coefficient;
    size_t coefficient_capacity;
    espi_pair_scratch scratch;

    double bow;
    leaf_count *leaves; /* of the tree at hand */
    size_t leaf_kinds, leaf_capacity;
    double *word; /* symbol s, output k: word[s * width + k] */
    size_t words, word_capacity;
    postings *list; /* per symbol */
    size_t lists, list_capacity;
} growing_tree;

static growing_tree *view(espi_growing_part *part) { return (growing_tree *)(void *)part; }

static void close_part(espi_growing_part *part)
{
    growing_tree *t = view(part);
    if (t == NULL) return;
    espi_planner_free(t->planner);
    espi_matcher_free(t->matcher);
    espi_tree_weights_free(&t->weights);
    for (size_t i = 0; t->flat != NULL && i < t->kept; i++) espi_flat_free(&t->flat[i]);
    espi_free(t->flat);
    espi_flat_free(&t->at_hand);
    espi_free(t->coefficient);
    espi_pair_scratch_free(&t->scratch);
    espi_self_scratch_free(&t->self);
    for (size_t i = 0; i < t->lists; i++) espi_free(t->list[i].at);
    espi_free(t->list);
    espi_free(t->word);
    espi_free(t->leaves);
    espi_free(t->added);
    espi_free(t->sums);
    espi_free(t->lambda);
    espi_free(t->alpha);
    espi_free(t);
}

static esp_status open_part(const espi_leaf *leaf, const espi_column *column, espi_form form, size_t outputs, bool rows,
                            const esp_run *run, espi_growing_part **out, esp_error *err)
{
    growing_tree *t = espi_alloc_zero(1, sizeof *t);
    *out = NULL;
    if (t == NULL) return espi_no_memory(err);
    t->part.class = leaf->class;
    t->leaf = leaf;
    t->forest = &column->trees;
    /* An algorithm that the kernel names is kept. */
    t->algorithm = (espi_tree_algorithm)espi_leaf_value(leaf, "algorithm");
    if (t->algorithm == ESPI_DAG && form != ESPI_FORM_DAG)
        t->algorithm = form == ESPI_FORM_FOREST ? ESPI_FTK : ESPI_QTK;
    t->width = outputs + 1;
    t->rows = rows;
    t->run = run;
    t->bow = espi_leaf_value(leaf, "bow");
    t->weights = (espi_tree_weights){.dag = {.scores_only = !rows}, .width = t->width};
    t->planner = espi_planner_new(t->forest);
    t->matcher = espi_matcher_new(&t->weights.dag, &t->decay, run);
    t->added = espi_alloc(t->width, sizeof *t->added);
    t->sums = espi_alloc(t->width, sizeof *t->sums);
    if (t->planner == NULL || t->matcher == NULL || t->added == NULL || t->sums == NULL) {
        close_part(&t->part);
        return espi_no_memory(err);
    }
    *out = &t->part;
    return ESP_OK;
}

/* ---------------------------------------------------------- the tree at hand */

static bool set_decay(growing_tree *t)
{
    const size_t productions = t->forest->productions;
    if (!espi_reserve(&t->lambda, &t->lambda_capacity, productions, sizeof *t->lambda) ||
        !espi_reserve(&t->alpha, &t->alpha_capacity, productions, sizeof *t->alpha))
        return false;
    t->decay = (espi_decay){.lambda = t->lambda, .alpha = t->alpha};
    for (size_t p = t->settled; p < productions; p++)
        espi_tree_decay(t->leaf, t->forest, p, &t->lambda[p], &t->alpha[p]);
    return true;
}

static bool add_leaf(growing_tree *t, espi_ref leaf, double count)
{
    if (!espi_reserve(&t->leaves, &t->leaf_capacity, t->leaf_kinds + 1, sizeof *t->leaves)) return false;
    t->leaves[t->leaf_kinds++] = (leaf_count){.symbol = espi_leaf_symbol(leaf), .count = count};
    return true;
}

static bool add_leaves_of(growing_tree *t, espi_ref vertex, double count)
{
    const espi_ref *child = t->forest->child + t->forest->vertex[vertex].children;
    bool ok = true;
    for (size_t k = 0; ok && k < espi_production_of(t->forest, vertex)->arity; k++)
        if (espi_is_leaf(child[k])) ok = add_leaf(t, child[k], count);
    return ok;
}

static int by_symbol(const void *x, const void *y)
{
    const leaf_count *a = x, *b = y;
    return (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

/* How often each leaf occurs; once in the list, so that its square is right. */
static bool count_leaves(growing_tree *t)
{
    bool ok = true;
    size_t kinds = 0;
    t->leaf_kinds = 0;
    if (t->root != ESPI_NO_NODE && espi_is_leaf(t->root)) ok = add_leaf(t, t->root, 1.0);
    for (size_t i = 0; ok && i < t->plan.words; i++)
        ok = add_leaves_of(t, t->plan.word[i].vertex, t->plan.word[i].count);
    for (size_t i = 0; ok && i < t->plan.nodes; i++)
        ok = add_leaves_of(t, t->plan.node[i].vertex, t->plan.node[i].count);
    if (!ok) return false;
    if (t->leaf_kinds > 1) qsort(t->leaves, t->leaf_kinds, sizeof *t->leaves, by_symbol);
    for (size_t i = 0; i < t->leaf_kinds; i++) {
        if (kinds > 0 && t->leaves[kinds - 1].symbol == t->leaves[i].symbol)
            t->leaves[kinds - 1].count += t->leaves[i].count;
        else t->leaves[kinds++] = t->leaves[i];
    }
    t->leaf_kinds = kinds;
    return true;
}

static esp_status look(espi_growing_part *part, size_t row, esp_error *err)
{
    growing_tree *t = view(part);
    t->root = t->forest->root[row];
    bool ok = set_decay(t) && espi_planner_make(t->planner, t->root, &t->plan);
    if (ok && t->algorithm != ESPI_DAG) ok = espi_flat_fill(&t->at_hand, t->forest, t->root, NULL);
    if (ok && t->bow > 0.0) ok = count_leaves(t);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status self(espi_growing_part *part, double *value, esp_error *err)
{
    growing_tree *t = view(part);
    esp_status status = ESP_OK;
    if (t->algorithm == ESPI_DAG)
        status = espi_self_value(&t->plan, &t->decay, t->forest->productions, &t->self, t->run, value, err);
    else if (!(t->algorithm == ESPI_FTK ? espi_ftk : espi_qtk)(&t->at_hand, &t->at_hand, &t->decay, &t->scratch, value))
        status = espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && t->bow > 0.0 && i < t->leaf_kinds; i++)
        *value += t->bow * t->leaves[i].count * t->leaves[i].count;
    return status;
}

/* -------------------------------------------------------------------- values */

static bool pair(growing_tree *t, size_t example, double *value)
{
    return (t->algorithm == ESPI_FTK ? espi_ftk : espi_qtk)(&t->at_hand, &t->flat[example], &t->decay, &t->scratch,
                                                            value);
}

static esp_status row(espi_growing_part *part, double *out, esp_error *err)
{
    growing_tree *t = view(part);
    esp_status status = ESP_OK;
    for (size_t e = 0; e < t->kept; e++) out[e] = 0.0;
    if (t->algorithm == ESPI_DAG) status = espi_match_row(t->matcher, &t->plan, 0, t->kept, out, err);
    for (size_t e = 0; t->algorithm != ESPI_DAG && status == ESP_OK && e < t->kept; e++)
        if (!pair(t, e, &out[e])) status = espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && t->bow > 0.0 && i < t->leaf_kinds; i++) {
        const leaf_count *leaf = &t->leaves[i];
        for (size_t n = 0; leaf->symbol < t->lists && n < t->list[leaf->symbol].count; n++) {
            const posting *at = &t->list[leaf->symbol].at[n];
            out[at->example] += t->bow * leaf->count * at->count;
        }
    }
    return status;
}

static esp_status score(espi_growing_part *part, double *out, double *magnitude, esp_error *err)
{
    growing_tree *t = view(part);
    double *score = t->sums;
    esp_status status = ESP_OK;
    for (size_t k = 0; k < t->width; k++) score[k] = 0.0;
    if (t->algorithm == ESPI_DAG) status = espi_match_score(t->matcher, &t->plan, t->weights.f, t->width, score, err);
    for (size_t e = 0; t->algorithm != ESPI_DAG && e < t->kept; e++) {
        double value;
        if (!pair(t, e, &value)) return espi_no_memory(err);
        for (size_t k = 0; k < t->width; k++) score[k] += t->coefficient[e * t->width + k] * value;
    }
    for (size_t i = 0; status == ESP_OK && t->bow > 0.0 && i < t->leaf_kinds; i++) {
        const leaf_count *leaf = &t->leaves[i];
        for (size_t k = 0; leaf->symbol < t->words && k < t->width; k++)
            score[k] += t->bow * leaf->count * t->word[leaf->symbol * t->width + k];
    }
    memcpy(out, score, (t->width - 1) * sizeof *out);
    *magnitude = score[t->width - 1];
    return status;
}

/* ------------------------------------------------------------------- keeping */

static bool keep_dag(growing_tree *t, const double *coefficient)
{
    return t->rows ? espi_dag_insert(&t->weights.dag, &t->plan)
                   : espi_tree_weights_add(&t->weights, &t->plan, coefficient);
}

static bool keep_flat(growing_tree *t, const double *coefficient)
{
    if (!espi_reserve(&t->flat, &t->flat_capacity, t->kept + 1, sizeof *t->flat) ||
        !espi_reserve(&t->coefficient, &t->coefficient_capacity, (t->kept + 1) * t->width, sizeof *t->coefficient))
        return false;
    for (size_t k = 0; k < t->width; k++) t->coefficient[t->kept * t->width + k] = t->rows ? 0.0 : coefficient[k];
    t->flat[t->kept] = t->at_hand;
    t->at_hand = (espi_flat){0};
    return true;
}

static bool keep_leaf(growing_tree *t, leaf_count leaf, const double *coefficient)
{
    const size_t symbols = leaf.symbol + (size_t)1, had = t->word_capacity;
    if (t->rows) {
        if (!espi_reserve(&t->list, &t->list_capacity, symbols, sizeof *t->list)) return false;
        for (; t->lists < symbols; t->lists++) t->list[t->lists] = (postings){0};
        postings *list = &t->list[leaf.symbol];
        if (!espi_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at)) return false;
        list->at[list->count++] = (posting){.example = t->kept, .count = leaf.count};
        return true;
    }
    if (!espi_reserve(&t->word, &t->word_capacity, symbols * t->width, sizeof *t->word)) return false;
    if (t->word_capacity > had) memset(t->word + had, 0, (t->word_capacity - had) * sizeof *t->word);
    if (t->words < symbols) t->words = symbols;
    for (size_t k = 0; k < t->width; k++) t->word[leaf.symbol * t->width + k] += leaf.count * coefficient[k];
    return true;
}

static esp_status keep(espi_growing_part *part, const double *coefficient, esp_error *err)
{
    growing_tree *t = view(part);
    bool ok = true;
    t->added[t->width - 1] = 0.0;
    for (size_t k = 0; k + 1 < t->width; k++) {
        t->added[k] = coefficient[k];
        t->added[t->width - 1] += fabs(coefficient[k]);
    }
    coefficient = t->added;
    for (size_t i = 0; i < t->plan.words; i++) t->nodes += (size_t)t->plan.word[i].count;
    for (size_t i = 0; i < t->plan.nodes; i++) t->nodes += (size_t)t->plan.node[i].count;
    for (size_t i = 0; ok && t->bow > 0.0 && i < t->leaf_kinds; i++) ok = keep_leaf(t, t->leaves[i], coefficient);
    if (ok) ok = t->algorithm == ESPI_DAG ? keep_dag(t, coefficient) : keep_flat(t, coefficient);
    t->settled = t->forest->productions;
    if (ok) t->kept++;
    return ok ? ESP_OK : espi_no_memory(err);
}

static void measure(const espi_growing_part *part, espi_growing_size *size)
{
    const growing_tree *t = (const growing_tree *)(const void *)part;
    size->nodes += t->nodes;
    if (t->algorithm == ESPI_DAG) {
        size->bytes += espi_tree_weights_bytes(&t->weights);
        for (size_t g = 0; g < t->weights.dag.groups; g++) size->vertices += t->weights.dag.group[g].vertices;
    } else {
        size->vertices += t->nodes;
        size->bytes += t->kept * sizeof *t->flat + t->coefficient_capacity * sizeof *t->coefficient;
        for (size_t e = 0; e < t->kept; e++) size->bytes += espi_flat_bytes(&t->flat[e]);
    }
    size->bytes += t->word_capacity * sizeof *t->word;
    for (size_t i = 0; i < t->lists; i++) size->bytes += t->list[i].capacity * sizeof(posting);
}

const espi_growing_class espi_tree_growing = {.open = open_part,
                                              .close = close_part,
                                              .look = look,
                                              .self = self,
                                              .row = row,
                                              .score = score,
                                              .keep = keep,
                                              .measure = measure};
