/* Subtree (ST), subset-tree (SST) and symbol-aware subset-tree kernels (Moschitti 2006, Beck et al. 2015):
 *
 *     K(T1, T2)     = sum over nodes of Delta(n1, n2)  +  bow * (pairs of equal leaves)
 *     Delta(n1, n2) = lambda_x * prod_k (alpha_x + Delta(n1_k, n2_k))   equal productions, x the label; else 0
 *
 * ST is alpha = 0. `dag` matches each tree of the rows against the DAG of the columns; `ftk` and `qtk` go pair by
 * pair and are there to check and to compare. */
#include "base/alloc.h"
#include "base/status.h"
#include "data/bag.h"
#include "kernel/tree/flat.h"
#include "kernel/expression/hyper.h"
#include "kernel/tree/match_gradient.h"
#include "kernel/tree/pair.h"
#include "kernel/tree/tree_kernel.h"

#include <math.h>
#include <string.h>

typedef struct tree_part {
    espi_part part;
    const struct tree_part *base; /* whose side of the columns is used: this part's own, or that of another */
    espi_tree_algorithm algorithm;
    const espi_forest *rows, *cols; /* may be the same */
    size_t productions;             /* shared numbers: those of cols, then those that only rows has */
    uint32_t *shared;               /* productions of rows -> shared numbers; NULL: rows is cols */
    double *lambda, *alpha;         /* per shared number */
    uint32_t *lambda_place, *alpha_place;
    size_t places; /* of the gradient: parameters, then values by label */
    size_t bow_place;
    espi_decay decay;
    espi_plans row_plans, col_plans;  /* row_plans.chunk NULL: rows is cols */
    espi_dag dag;                     /* algorithm dag */
    espi_flat *flat_rows, *flat_cols; /* the others; flat_rows NULL: rows is cols */
    double bow;
    espi_symbols words;
    espi_bag row_words, col_words; /* bow > 0; row_words.row NULL: rows is cols */
    espi_lists word_lists;
} tree_part;

typedef struct workspace {
    espi_matcher *matcher;
    espi_backward *backward; /* made by the first gradient */
    const esp_run *run;
    espi_pair_scratch scratch;
} workspace;

static const tree_part *view(const espi_part *part) { return (const tree_part *)(const void *)part; }

static const espi_bag *words_of(const tree_part *t, espi_side side)
{
    return side == ESPI_ROWS && t->row_words.row != NULL ? &t->row_words : &t->base->col_words;
}

static const espi_flat *flat_of(const tree_part *t, espi_side side)
{
    return side == ESPI_ROWS && t->flat_rows != NULL ? t->flat_rows : t->base->flat_cols;
}

static const espi_plans *plans_of(const tree_part *t, espi_side side)
{
    return side == ESPI_ROWS && t->row_plans.chunk != NULL ? &t->row_plans : &t->base->col_plans;
}

static void free_flats(espi_flat *flat, size_t count)
{
    for (size_t i = 0; flat != NULL && i < count; i++) espi_flat_free(&flat[i]);
    espi_free(flat);
}

static void release(espi_part *part)
{
    tree_part *t = (tree_part *)(void *)part;
    if (t == NULL) return;
    espi_dag_free(&t->dag);
    espi_plans_free(&t->row_plans);
    espi_plans_free(&t->col_plans);
    free_flats(t->flat_rows, t->rows->roots);
    free_flats(t->flat_cols, t->cols->roots);
    espi_symbols_free(&t->words);
    espi_bag_free(&t->row_words);
    espi_bag_free(&t->col_words);
    espi_lists_free(&t->word_lists);
    espi_free(t->shared);
    espi_free(t->lambda);
    espi_free(t->alpha);
    espi_free(t->lambda_place);
    espi_free(t->alpha_place);
    espi_free(t);
}

/* ------------------------------------------------------------------ bind */

/* One numbering of the productions of both sides. */
static bool share_productions(tree_part *t)
{
    t->productions = t->cols->productions;
    if (t->rows == t->cols) return true;
    t->shared = espi_forest_map_productions(t->rows, t->cols);
    if (t->shared == NULL) return false;
    for (size_t p = 0; p < t->rows->productions; p++)
        if (t->shared[p] == ESPI_NO_NODE) t->shared[p] = (uint32_t)t->productions++;
    return true;
}

/* The place of a parameter in the gradient of its leaf; ESPI_NO_NODE if the kernel does not have it. */
static uint32_t place_of(const espi_kernel_class *class, const char *name)
{
    for (uint32_t p = 0; class->parameters[p].info.name != NULL; p++)
        if (strcmp(class->parameters[p].info.name, name) == 0) return p;
    return ESPI_NO_NODE;
}

/* The same of lambda and alpha for a label, which may have its own. */
static void find_places(const espi_leaf *leaf, const espi_symbol *label, uint32_t *lambda, uint32_t *alpha)
{
    const size_t shared = espi_parameter_count(leaf->class);
    *lambda = place_of(leaf->class, "lambda");
    *alpha = place_of(leaf->class, "alpha");
    const uint32_t lambdas = *lambda;
    for (size_t i = 0; i < leaf->symbols; i++) {
        const espi_symbol_value *s = &leaf->symbol[i];
        if (strlen(s->label) != label->size || memcmp(s->label, label->text, label->size) != 0) continue;
        *(s->parameter == lambdas ? lambda : alpha) = (uint32_t)(shared + i);
    }
}

static double value_at(const espi_leaf *leaf, uint32_t place)
{
    if (place == ESPI_NO_NODE) return 0.0;
    const size_t shared = espi_parameter_count(leaf->class);
    return place < shared ? leaf->value[place] : leaf->symbol[place - shared].value;
}

void espi_tree_decay_of(const espi_leaf *leaf, const char *label, size_t size, double *lambda, double *alpha)
{
    const espi_symbol symbol = {.text = label, .size = (uint32_t)size};
    uint32_t lambda_place, alpha_place;
    find_places(leaf, &symbol, &lambda_place, &alpha_place);
    *lambda = value_at(leaf, lambda_place);
    *alpha = value_at(leaf, alpha_place);
}

void espi_tree_decay(const espi_leaf *leaf, const espi_forest *forest, size_t production, double *lambda, double *alpha)
{
    const espi_symbol *label = &forest->symbols.symbol[forest->production[production].label];
    espi_tree_decay_of(leaf, label->text, label->size, lambda, alpha);
}

bool espi_tree_decays(const espi_leaf *leaf, const espi_forest *forest, const uint32_t *shared, double *lambda,
                      double *alpha, uint32_t *lambda_place, uint32_t *alpha_place)
{
    struct places {
        uint32_t lambda, alpha;
        bool known;
    } *label = espi_alloc_zero(forest->symbols.count, sizeof *label);
    if (label == NULL) return false;
    for (size_t p = 0; p < forest->productions; p++) {
        const uint32_t number = forest->production[p].label;
        const size_t at = shared == NULL ? p : shared[p];
        struct places *x = &label[number];
        if (!x->known) find_places(leaf, &forest->symbols.symbol[number], &x->lambda, &x->alpha);
        x->known = true;
        if (lambda_place != NULL) lambda_place[at] = x->lambda;
        if (alpha_place != NULL) alpha_place[at] = x->alpha;
        lambda[at] = value_at(leaf, x->lambda);
        alpha[at] = value_at(leaf, x->alpha);
    }
    espi_free(label);
    return true;
}

static bool set_side(tree_part *t, const espi_leaf *leaf, const espi_forest *forest, const uint32_t *shared)
{
    return espi_tree_decays(leaf, forest, shared, t->lambda, t->alpha, t->lambda_place, t->alpha_place);
}

static bool set_decay(tree_part *t, const espi_leaf *leaf)
{
    t->lambda = espi_alloc(t->productions, sizeof *t->lambda);
    t->alpha = espi_alloc(t->productions, sizeof *t->alpha);
    t->lambda_place = espi_alloc(t->productions, sizeof *t->lambda_place);
    t->alpha_place = espi_alloc(t->productions, sizeof *t->alpha_place);
    if (t->lambda == NULL || t->alpha == NULL || t->lambda_place == NULL || t->alpha_place == NULL) return false;
    t->decay = (espi_decay){t->lambda, t->alpha, t->lambda_place, t->alpha_place};
    t->places = espi_parameter_count(leaf->class) + leaf->symbols;
    t->bow_place = place_of(leaf->class, "bow");
    return set_side(t, leaf, t->cols, NULL) && (t->shared == NULL || set_side(t, leaf, t->rows, t->shared));
}

static espi_flat *make_flats(const espi_forest *forest, const uint32_t *map)
{
    espi_flat *flat = espi_alloc_zero(forest->roots, sizeof *flat);
    for (size_t i = 0; flat != NULL && i < forest->roots; i++) {
        if (espi_flat_fill(&flat[i], forest, forest->root[i], map)) continue;
        free_flats(flat, forest->roots);
        return NULL;
    }
    return flat;
}

static esp_status make_plans(tree_part *t, const esp_run *run, esp_error *err)
{
    esp_status status = ESP_OK;
    if (t->base == t) status = espi_plans_make(&t->col_plans, t->cols, NULL, t->productions, run, err);
    if (status != ESP_OK || t->rows == t->cols) return status;
    return espi_plans_make(&t->row_plans, t->rows, t->shared, t->productions, run, err);
}

static bool make_dag_or_flats(tree_part *t)
{
    if (t->algorithm == ESPI_DAG && t->base != t) return true;
    if (t->algorithm == ESPI_DAG) {
        bool ok = true;
        for (size_t i = 0; ok && i < t->cols->roots; i++) {
            const espi_plan plan = espi_plan_of(&t->col_plans, i);
            ok = espi_dag_insert(&t->dag, &plan);
        }
        return ok && espi_dag_settle(&t->dag);
    }
    if (t->base == t) t->flat_cols = make_flats(t->cols, NULL);
    if (t->rows != t->cols) t->flat_rows = make_flats(t->rows, t->shared);
    return t->base->flat_cols != NULL && (t->rows == t->cols || t->flat_rows != NULL);
}

static bool make_words(tree_part *t, const espi_column *rows, const espi_column *cols)
{
    if (t->bow == 0.0) return true;
    if (t->base == t && !(espi_bag_make(&t->col_words, cols, &t->words, true) &&
                          espi_lists_make(&t->word_lists, &t->col_words, t->words.count)))
        return false;
    /* Words are only looked up here, not added. */
    return rows == cols || espi_bag_make(&t->row_words, rows, (espi_symbols *)&t->base->words, false);
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    *out = NULL;
    tree_part *t = espi_alloc_zero(1, sizeof *t);
    if (t == NULL) return espi_no_memory(err);
    t->part.class = leaf->class;
    t->base = base != NULL ? view(base) : t;
    t->rows = &rows->trees;
    t->cols = &cols->trees;
    t->bow = espi_leaf_value(leaf, "bow");
    t->algorithm = (espi_tree_algorithm)espi_leaf_value(leaf, "algorithm");
    esp_status status = share_productions(t) && set_decay(t, leaf) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = make_plans(t, run, err);
    if (status == ESP_OK && !(make_dag_or_flats(t) && make_words(t, rows, cols))) status = espi_no_memory(err);
    if (status == ESP_OK) *out = &t->part;
    else release(&t->part);
    return status;
}

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    espi_matcher_free(w->matcher);
    espi_backward_free(w->backward);
    espi_pair_scratch_free(&w->scratch);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    const tree_part *t = view(part);
    workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL || t->algorithm != ESPI_DAG) return w;
    w->run = run;
    w->matcher = espi_matcher_new(&t->base->dag, &t->decay, run);
    if (w->matcher != NULL) return w;
    workspace_free(w);
    return NULL;
}

/* ---------------------------------------------------------------- values */

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const tree_part *t = view(part);
    workspace *w = pointer;
    bool ok = true;
    memset(out, 0, (to - from) * sizeof *out);
    if (t->algorithm == ESPI_DAG) {
        const espi_plan plan = espi_plan_of(plans_of(t, ESPI_ROWS), i);
        const esp_status status = espi_match_row(w->matcher, &plan, from, to, out, err);
        if (status != ESP_OK) return status;
    } else {
        const espi_flat *a = &flat_of(t, ESPI_ROWS)[i], *b = t->base->flat_cols;
        for (size_t j = from; ok && j < to; j++)
            ok = (t->algorithm == ESPI_FTK ? espi_ftk : espi_qtk)(a, &b[j], &t->decay, &w->scratch, &out[j - from]);
    }
    if (ok && t->bow > 0.0) espi_lists_row(&t->base->word_lists, words_of(t, ESPI_ROWS), i, from, to, t->bow, out);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const tree_part *t = view(part);
    const espi_plans *plans = plans_of(t, side);
    const esp_status status = espi_self_values(plans, &t->decay, t->productions, run, out, err);
    for (size_t i = 0; status == ESP_OK && t->bow > 0.0 && i < plans->trees; i++)
        out[i] += t->bow * words_of(t, side)->square[i];
    return status;
}

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    const tree_part *t = view(part);
    const espi_plan a = espi_plan_of(plans_of(t, side_i), i), b = espi_plan_of(plans_of(t, side_j), j);
    const esp_status status = espi_pair_wide(&a, &b, &t->decay, NULL, value, err);
    if (status != ESP_OK) return status;
    if (t->bow > 0.0) {
        double equal = words_of(t, side_i)->square[i];
        if (side_i != side_j || i != j) {
            equal = 0.0;
            espi_lists_row(&t->base->word_lists, words_of(t, side_i), i, j, j + 1, 1.0, &equal);
        }
        *value = espi_wide_add(*value, espi_wide_of(t->bow * equal));
    }
    return ESP_OK;
}

/* -------------------------------------------------------------- gradient */

static esp_status need_dag(const tree_part *t, esp_error *err)
{
    if (t->algorithm == ESPI_DAG) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "%s: algorithm %s has no derivatives; leave `algorithm` out",
                     t->part.class->name, t->algorithm == ESPI_FTK ? "ftk" : "qtk");
}

/* The sum over the trees j of weight_j times the number of leaves of j that equal one of tree i, pair by pair. */
static double equal_words(const tree_part *t, size_t i, size_t from, size_t to, const double *weight)
{
    const espi_lists *lists = &t->base->word_lists;
    const espi_sparse_row words = espi_bag_row(words_of(t, ESPI_ROWS), i);
    double sum = 0.0;
    for (size_t k = 0; k < words.entries; k++) {
        size_t at = lists->start[words.feature[k]];
        const size_t end = lists->start[words.feature[k] + 1];
        while (at < end && lists->row[at] < from) at++;
        for (; at < end && lists->row[at] < to; at++)
            sum += words.value[k] * lists->value[at] * weight[lists->row[at] - from];
    }
    return sum;
}

/* Where bow is 0 leaves are not looked at, and its derivative is not told. */
static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *value, double *out, esp_error *err)
{
    const tree_part *t = view(part);
    workspace *w = pointer;
    esp_status status = need_dag(t, err);
    if (status == ESP_OK && value != NULL) status = row(part, pointer, i, from, to, value, err);
    if (status != ESP_OK) return status;
    if (w->backward == NULL) w->backward = espi_backward_new(&t->base->dag, &t->decay, w->run);
    if (w->backward == NULL) return espi_no_memory(err);
    const espi_plan plan = espi_plan_of(plans_of(t, ESPI_ROWS), i);
    status = espi_backward_row(w->backward, &plan, from, to, weight, out, err);
    if (status == ESP_OK && t->bow > 0.0) out[t->bow_place] += equal_words(t, i, from, to, weight);
    return status;
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    const tree_part *t = view(part);
    const espi_plans *plans = plans_of(t, side);
    esp_status status = need_dag(t, err);
    if (status == ESP_OK)
        status = espi_self_gradient(plans, &t->decay, t->productions, weight, t->places, run, out, err);
    for (size_t i = 0; status == ESP_OK && t->bow > 0.0 && i < plans->trees; i++)
        out[t->bow_place] += weight[i] * words_of(t, side)->square[i];
    return status;
}

/* ---------------------------------------------------------------- scorer */

typedef struct folded { /* f per vertex of the DAG, and a weight per leaf */
    size_t groups, outputs;
    double **f;
    double *word;
} folded;

static void folded_free(void *pointer)
{
    folded *s = pointer;
    if (s == NULL) return;
    espi_dag_fold_free(s->f, s->groups);
    espi_free(s->word);
    espi_free(s);
}

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    const tree_part *t = view(part);
    *out = NULL;
    if (t->algorithm != ESPI_DAG) return ESP_OK;
    folded *s = espi_alloc_zero(1, sizeof *s);
    if (s == NULL) return espi_no_memory(err);
    s->groups = t->base->dag.groups;
    s->outputs = outputs;
    s->f = espi_dag_fold(&t->base->dag, coefficient, outputs);
    s->word = espi_alloc_zero(t->base->words.count, outputs * sizeof *s->word);
    if (s->f == NULL || s->word == NULL) {
        folded_free(s);
        return espi_no_memory(err);
    }
    if (t->bow > 0.0) espi_lists_fold(&t->base->word_lists, coefficient, outputs, s->word);
    *out = s;
    return ESP_OK;
}

static esp_status score(const espi_part *part, const void *pointer, void *work, size_t i, double *out, esp_error *err)
{
    const tree_part *t = view(part);
    const folded *s = pointer;
    const espi_plan plan = espi_plan_of(plans_of(t, ESPI_ROWS), i);
    const esp_status status = espi_match_score(((workspace *)work)->matcher, &plan, s->f, s->outputs, out, err);
    if (status != ESP_OK) return status;
    if (t->bow > 0.0) espi_bag_score(words_of(t, ESPI_ROWS), i, s->word, s->outputs, t->bow, out);
    return ESP_OK;
}

/* ---------------------------------------------------------------- tables */

static const char *const algorithms[] = {"dag", "ftk", "qtk", NULL};

#define LAMBDA(symbols)                                                                                                \
    {                                                                                                                  \
        .info = {"lambda", "decay: a fragment of s productions weighs lambda^s", "0.4", "a number > 0",                \
                 ESP_KIND_NUMBER},                                                                                     \
        .low = 0.0, .low_open = true, .high = HUGE_VAL, .per_symbol = symbols, .draw_low = 1e-4, .draw_high = 1.0      \
    }
#define ALPHA(symbols)                                                                                                 \
    {                                                                                                                  \
        .info = {"alpha", "weight of leaving a child open: 1 counts all fragments, 0 complete subtrees only", "1",     \
                 "a number >= 0", ESP_KIND_NUMBER},                                                                    \
        .low = 0.0, .high = HUGE_VAL, .per_symbol = symbols, .draw_low = 0.01, .draw_high = 1.0                        \
    }
#define BOW                                                                                                            \
    {                                                                                                                  \
        .info = {"bow", "added for each pair of equal leaves", "0", "a number >= 0", ESP_KIND_NUMBER}, .low = 0.0,     \
        .high = HUGE_VAL, .draw_low = 0.01, .draw_high = 10.0                                                          \
    }
#define ALGORITHM                                                                                                      \
    {                                                                                                                  \
        .info = {"algorithm", "dag: all trees at once; ftk, qtk: pair by pair, for comparison", "dag",                 \
                 "dag, ftk or qtk", ESP_KIND_CHOICE},                                                                  \
        .choices = algorithms                                                                                          \
    }
#define TREE_KERNEL                                                                                                    \
    .takes = {[ESP_COLUMN_TREE] = true}, .bind = bind, .free = release, .workspace_new = workspace_new,                \
    .workspace_free = workspace_free, .row = row, .diagonal = diagonal, .pair = pair, .fold = fold,                    \
    .folded_free = folded_free, .score = score, .gradient = gradient, .gradient_diagonal = gradient_diagonal,          \
    .growing = &espi_tree_growing, .folding = &espi_tree_folding, .features = ESPI_TREE_FRAGMENTS

const espi_kernel_class espi_kernel_st = {
    .name = "st",
    .help = "complete subtrees in common",
    .parameters = (const espi_parameter[]){LAMBDA(false), BOW, ALGORITHM, {.info = {0}}},
    TREE_KERNEL,
};

const espi_kernel_class espi_kernel_sst = {
    .name = "sst",
    .help = "fragments in common that keep all or none of each node's children",
    .parameters = (const espi_parameter[]){LAMBDA(false), ALPHA(false), BOW, ALGORITHM, {.info = {0}}},
    TREE_KERNEL,
};

/* Its only difference from sst. */
static bool every_label(const espi_leaf *leaf)
{
    (void)leaf;
    return true;
}

const espi_kernel_class espi_kernel_sasst = {
    .name = "sasst",
    .help = "sst with lambda and alpha per label: lambda.NP=0.8",
    .parameters = (const espi_parameter[]){LAMBDA(true), ALPHA(true), BOW, ALGORITHM, {.info = {0}}},
    .learns_by_symbol = every_label,
    TREE_KERNEL,
};
