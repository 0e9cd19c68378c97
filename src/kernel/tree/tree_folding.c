/* Tree kernels in folded sums (expression/folding.h): coefficients are weights of the annotated DAG (weights.h).
 *
 * Trees that are scored together share their subtrees, as the forest does. What a subtree v is worth,
 *
 *     g(v) = sum_u f(u) C(u, v)
 *
 * depends on v alone, so it is computed once for all of them, and added up along the forest:
 *
 *     score(T) = G(root),   G(v) = g(v) + sum over the children c of v of G(c) */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/folding.h"
#include "kernel/tree/pair.h"
#include "kernel/tree/tree_kernel.h"
#include "kernel/tree/weights.h"

#include <string.h>

typedef struct folding_tree {
    espi_folding_part part;
    const espi_forest *forest;
    double *lambda, *alpha; /* per production */
    espi_decay decay;
    espi_planner *planner; /* for adding */
    espi_tree_weights weights;
    uint64_t clears; /* so far */
    double bow;
    double *word; /* leaf of symbol s, output k: word[s * outputs + k]; NULL: bow is 0 */
    size_t words; /* symbols there are */
} folding_tree;

typedef struct tree_scores { /* of one thread */
    const folding_tree *part;
    uint64_t clears; /* of the part that the matcher knows of */
    espi_planner *planner;
    espi_matcher *matcher;
    espi_self_scratch self;
    double *value;   /* per node of a plan and output */
    uint32_t *place; /* per tree */
    double *count;   /* per symbol, zeros: how often a leaf occurs; NULL: bow is 0 */
    size_t value_capacity, place_capacity;
} tree_scores;

static folding_tree *view(espi_folding_part *part) { return (folding_tree *)(void *)part; }
static const folding_tree *look(const espi_folding_part *part) { return (const folding_tree *)(const void *)part; }

/* -------------------------------------------------------------- structure */

static void close_part(espi_folding_part *part)
{
    folding_tree *t = view(part);
    if (t == NULL) return;
    espi_planner_free(t->planner);
    espi_tree_weights_free(&t->weights);
    espi_free(t->lambda);
    espi_free(t->alpha);
    espi_free(t->word);
    espi_free(t);
}

/* Room for all productions and symbols. */
static bool fit_forest(folding_tree *t, const espi_leaf *leaf)
{
    const espi_forest *forest = t->forest;
    double *lambda = espi_realloc(t->lambda, forest->productions, sizeof *lambda);
    if (lambda != NULL) t->lambda = lambda;
    double *alpha = espi_realloc(t->alpha, forest->productions, sizeof *alpha);
    if (alpha != NULL) t->alpha = alpha;
    t->decay = (espi_decay){.lambda = t->lambda, .alpha = t->alpha};
    if (lambda == NULL || alpha == NULL || !espi_tree_decays(leaf, forest, NULL, lambda, alpha, NULL, NULL))
        return false;
    if (!(t->bow > 0.0)) return true;
    double *word = espi_realloc(t->word, forest->symbols.count, t->weights.width * sizeof *word);
    if (word == NULL) return false;
    memset(word + t->words * t->weights.width, 0, (forest->symbols.count - t->words) * t->weights.width * sizeof *word);
    t->word = word;
    t->words = forest->symbols.count;
    return true;
}

static esp_status grow(espi_folding_part *part, const espi_leaf *leaf, esp_error *err)
{
    return fit_forest(view(part), leaf) ? ESP_OK : espi_no_memory(err);
}

static esp_status open_part(const espi_leaf *leaf, const espi_column *column, size_t outputs, espi_folding_part **out,
                            esp_error *err)
{
    const espi_forest *forest = &column->trees;
    folding_tree *t = espi_alloc_zero(1, sizeof *t);
    *out = NULL;
    if (t == NULL) return espi_no_memory(err);
    t->part.class = leaf->class;
    t->forest = forest;
    t->weights = (espi_tree_weights){.dag = {.scores_only = true}, .width = outputs};
    t->planner = espi_planner_new(forest);
    t->bow = espi_leaf_value(leaf, "bow");
    if (t->planner == NULL || !fit_forest(t, leaf)) {
        close_part(&t->part);
        return espi_no_memory(err);
    }
    *out = &t->part;
    return ESP_OK;
}

static void clear(espi_folding_part *part)
{
    folding_tree *t = view(part);
    espi_tree_weights_free(&t->weights);
    t->clears++;
    if (t->word != NULL) memset(t->word, 0, t->words * t->weights.width * sizeof *t->word);
}

static size_t bytes(const espi_folding_part *part)
{
    const folding_tree *t = look(part);
    return espi_tree_weights_bytes(&t->weights) + t->forest->productions * 2 * sizeof(double) +
           (t->word != NULL ? t->words * t->weights.width * sizeof *t->word : 0);
}

/* ----------------------------------------------------------------- leaves */

/* Adds `times` coefficients to each leaf below a vertex, or, if `count` is given, to what is counted of it. */
static void add_leaves(const folding_tree *t, espi_ref vertex, double times, const double *coefficient, double *count)
{
    const espi_ref *child = t->forest->child + t->forest->vertex[vertex].children;
    for (size_t c = 0; c < espi_production_of(t->forest, vertex)->arity; c++) {
        if (!espi_is_leaf(child[c])) continue;
        const uint32_t symbol = espi_leaf_symbol(child[c]);
        if (count != NULL) count[symbol] += times;
        for (size_t k = 0; count == NULL && k < t->weights.width; k++)
            t->word[symbol * t->weights.width + k] += times * coefficient[k];
    }
}

static esp_status add(espi_folding_part *part, size_t row, const double *coefficient, esp_error *err)
{
    folding_tree *t = view(part);
    const espi_ref root = t->forest->root[row];
    espi_plan plan;
    if (!espi_planner_make(t->planner, root, &plan) || !espi_tree_weights_add(&t->weights, &plan, coefficient))
        return espi_no_memory(err);
    if (t->word == NULL || root == ESPI_NO_NODE) return ESP_OK;
    for (size_t k = 0; espi_is_leaf(root) && k < t->weights.width; k++)
        t->word[espi_leaf_symbol(root) * t->weights.width + k] += coefficient[k];
    for (size_t i = 0; i < plan.words; i++) add_leaves(t, plan.word[i].vertex, plan.word[i].count, coefficient, NULL);
    for (size_t i = 0; i < plan.nodes; i++) add_leaves(t, plan.node[i].vertex, plan.node[i].count, coefficient, NULL);
    return ESP_OK;
}

/* --------------------------------------------------------------- workspace */

static void workspace_free(void *workspace)
{
    tree_scores *w = workspace;
    if (w == NULL) return;
    espi_planner_free(w->planner);
    espi_matcher_free(w->matcher);
    espi_self_scratch_free(&w->self);
    espi_free(w->value);
    espi_free(w->place);
    espi_free(w->count);
    espi_free(w);
}

static void *workspace_new(const espi_folding_part *part)
{
    const folding_tree *t = look(part);
    tree_scores *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL) return NULL;
    w->part = t;
    w->planner = espi_planner_new(t->forest);
    w->matcher = espi_matcher_new(&t->weights.dag, &t->decay, NULL);
    if (t->word != NULL) w->count = espi_alloc_zero(t->words, sizeof *w->count);
    if (w->planner != NULL && w->matcher != NULL && (t->word == NULL || w->count != NULL)) return w;
    workspace_free(w);
    return NULL;
}

/* ------------------------------------------------------------------ selves */

/* The square of the number of each leaf of the tree; sets them back to 0. */
static double squares(const tree_scores *w, const espi_plan *plan, espi_ref root)
{
    const folding_tree *t = w->part;
    double sum = 0.0;
    if (root != ESPI_NO_NODE && espi_is_leaf(root)) return 1.0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < plan->words + plan->nodes; i++) {
            const bool word = i < plan->words;
            const espi_ref vertex = word ? plan->word[i].vertex : plan->node[i - plan->words].vertex;
            const double times = word ? plan->word[i].count : plan->node[i - plan->words].count;
            if (pass == 0) add_leaves(t, vertex, times, NULL, w->count);
            const espi_ref *child = t->forest->child + t->forest->vertex[vertex].children;
            for (size_t c = 0; pass == 1 && c < espi_production_of(t->forest, vertex)->arity; c++) {
                if (!espi_is_leaf(child[c])) continue;
                double *count = &w->count[espi_leaf_symbol(child[c])];
                sum += *count * *count;
                *count = 0.0;
            }
        }
    return sum;
}

static esp_status selves(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                         size_t count, double *value, esp_error *err)
{
    const folding_tree *t = look(part);
    tree_scores *w = workspace;
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        const espi_ref root = t->forest->root[row[i]];
        espi_plan plan;
        if (!espi_planner_make(w->planner, root, &plan)) return espi_no_memory(err);
        status = espi_self_value(&plan, &t->decay, t->forest->productions, &w->self, run, &value[i], err);
        if (t->word != NULL) value[i] += t->bow * squares(w, &plan, root);
    }
    return status;
}

/* ------------------------------------------------------------------ scores */

/* What a pre-terminal is worth: itself, and its leaves. */
static double word_value(const folding_tree *t, uint32_t group, size_t k)
{
    const bool known = group < t->weights.groups && t->weights.f[group] != NULL;
    double value = known ? t->lambda[group] * t->weights.f[group][k] : 0.0;
    const espi_production *p = &t->forest->production[group];
    for (size_t c = 0; t->word != NULL && c < p->arity; c++)
        value += t->bow * t->word[(t->forest->child_label[p->children + c] >> 1) * t->weights.width + k];
    return value;
}

/* Adds to each node what its children and leaves are worth; children come first. */
static void add_up(const tree_scores *w, const espi_plan *plan)
{
    const folding_tree *t = w->part;
    const size_t outputs = t->weights.width;
    for (size_t i = 0; i < plan->nodes; i++) {
        const espi_plan_node *node = &plan->node[i];
        double *value = w->value + i * outputs;
        for (size_t c = node->first; c < node->end; c++) {
            const uint32_t child = plan->child[c];
            for (size_t k = 0; k < outputs; k++)
                value[k] +=
                    (child & ESPI_WORD) != 0 ? word_value(t, child & ~ESPI_WORD, k) : w->value[child * outputs + k];
        }
        if (t->word == NULL) continue;
        const espi_ref *child = t->forest->child + t->forest->vertex[node->vertex].children;
        for (size_t c = 0; c < espi_production_of(t->forest, node->vertex)->arity; c++)
            for (size_t k = 0; espi_is_leaf(child[c]) && k < outputs; k++)
                value[k] += t->bow * t->word[espi_leaf_symbol(child[c]) * outputs + k];
    }
}

static esp_status score(const espi_folding_part *part, void *workspace, const esp_run *run, const uint32_t *row,
                        size_t count, double *out, esp_error *err)
{
    const folding_tree *t = look(part);
    tree_scores *w = workspace;
    const size_t outputs = t->weights.width;
    espi_plan plan;
    if (!espi_reserve(&w->place, &w->place_capacity, count, sizeof *w->place) ||
        !espi_planner_make_set(w->planner, row, count, &plan, w->place) ||
        !espi_reserve(&w->value, &w->value_capacity, plan.nodes * outputs, sizeof *w->value))
        return espi_no_memory(err);
    espi_matcher_ask(w->matcher, run);
    if (w->clears != t->clears) espi_matcher_forget(w->matcher);
    w->clears = t->clears;
    const esp_status status = espi_match_values(w->matcher, &plan, t->weights.f, outputs, w->value, err);
    if (status != ESP_OK) return status;
    add_up(w, &plan);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < outputs; k++) {
            const espi_ref root = t->forest->root[row[i]];
            const bool leaf = t->word != NULL && root != ESPI_NO_NODE && espi_is_leaf(root);
            out[i * outputs + k] = leaf ? t->bow * t->word[espi_leaf_symbol(root) * outputs + k]
                                   : w->place[i] == ESPI_NO_NODE    ? 0.0
                                   : (w->place[i] & ESPI_WORD) != 0 ? word_value(t, w->place[i] & ~ESPI_WORD, k)
                                                                    : w->value[w->place[i] * outputs + k];
        }
    return ESP_OK;
}

const espi_folding_class espi_tree_folding = {.open = open_part,
                                              .close = close_part,
                                              .workspace_new = workspace_new,
                                              .workspace_free = workspace_free,
                                              .selves = selves,
                                              .score = score,
                                              .add = add,
                                              .grow = grow,
                                              .clear = clear,
                                              .bytes = bytes};
