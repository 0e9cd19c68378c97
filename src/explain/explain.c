/* The features that weigh most in a model, and those that decide about one example. */
#include "explain/explain.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { TOP = 20, MODEL_EFFORT = 1000000, EXAMPLE_EFFORT = 20000 };
static const size_t usual_memory = (size_t)1 << 29; /* of a search, where run->memory is 0 */

/* The example that is explained, as one program sees it. */
typedef struct view {
    espi_bound *bound; /* the example against the support examples */
    double **row;      /* per term: its kernel values with them, weight and norms included */
    struct seen {      /* per term */
        double scale;
        const espi_column *column;
        bool has_tree, has_sequence;
        espi_tree_example tree;
        espi_seq_example sequence;
    } * seen;
} view;

typedef struct explaining {
    const esp_explainer *explainer;
    esp_explain_options options; /* with defaults */
    const esp_run *run;
    size_t memory; /* of one search; the number of threads must not matter, so that all get the same */
    esp_explanation *x;
    espi_shortlist *shortlist; /* per function and term, or of an example per function */
    esp_dataset *data;         /* the example alone; NULL: the model is explained */
    view *view;                /* per program */
} explaining;

static esp_explain_options with_defaults(const esp_explain_options *options, uint64_t effort)
{
    esp_explain_options o = options != NULL ? *options : (esp_explain_options){0};
    if (o.top == 0) o.top = TOP;
    if (o.max_size == 0) o.max_size = SIZE_MAX;
    if (o.effort == 0) o.effort = effort;
    return o;
}

static void free_explaining(explaining *j, size_t shortlists)
{
    for (size_t i = 0; j->shortlist != NULL && i < shortlists; i++) espi_shortlist_free(&j->shortlist[i]);
    espi_free(j->shortlist);
    for (size_t i = 0; j->view != NULL && i < j->explainer->programs; i++) {
        view *v = &j->view[i];
        for (size_t t = 0; v->row != NULL && t < j->explainer->terms; t++) espi_free(v->row[t]);
        for (size_t t = 0; v->seen != NULL && t < j->explainer->terms; t++) {
            espi_tree_example_free(&v->seen[t].tree);
            espi_seq_example_free(&v->seen[t].sequence);
        }
        espi_free(v->row);
        espi_free(v->seen);
        espi_bound_free(v->bound);
    }
    espi_free(j->view);
    esp_dataset_free(j->data);
}

/* One term of one function: fragments, patterns, words, values. */
static esp_status search(const explaining *j, size_t function, size_t term, espi_shortlist *shortlist,
                         const esp_run *run, esp_error *err)
{
    const espi_function *f = &j->x->function[function];
    const espi_program *p = espi_program_of(j->explainer, f->output);
    const espi_term_source *s = &p->source[term];
    const struct seen *seen = j->view != NULL ? &j->view[p - j->explainer->program].seen[term] : NULL;
    const espi_feature_query q = {.term = term,
                                  .output = f->output - p->first,
                                  .sign = f->sign,
                                  .max_size = j->options.max_size,
                                  .effort = j->options.effort,
                                  .memory = j->memory,
                                  .run = run,
                                  .shortlist = shortlist};
    esp_status status = ESP_OK;
    if (s->has_listed &&
        !espi_search_weight_list(&s->listed, seen != NULL ? seen->column : NULL, seen != NULL ? seen->scale : 1.0, &q))
        status = espi_no_memory(err);
    if (status == ESP_OK && s->has_trees)
        status = espi_search_fragments(&s->trees, seen != NULL ? &seen->tree : NULL, &q, err);
    if (status == ESP_OK && s->has_sequences)
        status = espi_search_patterns(&s->sequences, seen != NULL ? &seen->sequence : NULL, &q, err);
    return status;
}

/* What each of some searches may hold that may all run at once. */
static size_t memory_of(const esp_run *run, size_t searches)
{
    return run != NULL && run->memory > 0 && searches > 0 ? run->memory / searches : usual_memory;
}

static void take_bound(espi_function *f, const espi_shortlist *shortlist)
{
    f->exact = f->exact && shortlist->exact;
    if (shortlist->bound > f->bound) f->bound = shortlist->bound;
}

/* ------------------------------------------------------------------- a model */

static esp_status search_model(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const explaining *j = context;
    const size_t terms = j->explainer->terms;
    return search(j, item / terms, item % terms, &j->shortlist[item], worker->run, err);
}

static esp_status explain_model(explaining *j, esp_error *err)
{
    const size_t terms = j->explainer->terms, items = j->x->functions * terms;
    const int sign = j->options.sign;
    j->memory = memory_of(j->run, items);
    j->shortlist = espi_alloc(items, sizeof *j->shortlist);
    if (j->shortlist == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < items; i++) j->shortlist[i] = espi_shortlist_of(j->options.top, sign >= 0, sign <= 0, true);
    esp_status status = espi_parallel(j->run, "explaining", items, search_model, j, err);
    for (size_t i = 0; status == ESP_OK && i < items; i++) {
        status = espi_explanation_take(j->x, j->explainer, i / terms, &j->shortlist[i].side[0], err);
        take_bound(&j->x->function[i / terms], &j->shortlist[i]);
    }
    return status;
}

esp_status esp_explain(const esp_explainer *e, const esp_explain_options *options, const esp_run *run,
                       esp_explanation **out, esp_error *err)
{
    explaining j = {.explainer = e, .options = with_defaults(options, MODEL_EFFORT), .run = run};
    size_t with_features = 0;
    *out = NULL;
    for (size_t t = 0; t < e->terms; t++) with_features += e->reason[t] == NULL;
    if (with_features == 0) return espi_fail(err, ESP_ERR_PARAM, "%s", e->reason[0]);
    esp_status status = espi_explanation_new(e, &j.options, &j.x, err);
    if (status == ESP_OK) status = explain_model(&j, err);
    free_explaining(&j, j.x != NULL ? j.x->functions * e->terms : 0);
    if (status == ESP_OK) *out = j.x;
    else esp_explanation_free(j.x);
    return status;
}

/* ----------------------------------------------------------------- an example */

/* The example as a dataset of its own, so that nothing grows with the data around it. */
static esp_status take_row(explaining *j, const esp_dataset *data, size_t example, esp_error *err)
{
    bool *row = espi_alloc_zero(data->rows, sizeof *row), *column = espi_alloc(data->columns, sizeof *column);
    esp_status status = row == NULL || column == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) {
        row[example] = true;
        if (data->columns > 0) memset(column, true, data->columns * sizeof *column);
        status = espi_dataset_select(data, column, row, &j->data, err);
    }
    espi_free(row);
    espi_free(column);
    return status;
}

static esp_status see_term(explaining *j, const espi_program *p, view *v, espi_workspace *w, size_t term,
                           esp_error *err)
{
    const espi_term *t = &j->explainer->term[term];
    const espi_term_source *s = &p->source[term];
    const size_t n = j->explainer->model->support->rows;
    struct seen *seen = &v->seen[term];
    v->row[term] = espi_alloc(n, sizeof *v->row[term]);
    if (v->row[term] == NULL) return espi_no_memory(err);
    esp_status status = espi_bound_row(w, t->op, 0, 0, n, v->row[term], err);
    for (size_t i = 0; status == ESP_OK && i < n; i++) v->row[term][i] *= t->weight;
    if (status != ESP_OK || j->explainer->reason[term] != NULL) return status;
    status = espi_leaf_column(&p->kernel->leaf[t->number], j->data, &seen->column, err);
    if (status != ESP_OK) return status;
    seen->scale = t->norm ? espi_norm_scale(&v->bound->norm[t->op], ESPI_ROWS, 0) : 1.0;
    seen->has_tree = s->has_trees && espi_tree_example_make(&seen->tree, &s->trees, seen->column, seen->scale);
    seen->has_sequence =
        s->has_sequences && espi_seq_example_make(&seen->sequence, &s->sequences, seen->column, seen->scale);
    return seen->has_tree == s->has_trees && seen->has_sequence == s->has_sequences ? ESP_OK : espi_no_memory(err);
}

static esp_status see(explaining *j, const espi_program *p, view *v, esp_error *err)
{
    espi_workspace *w = NULL;
    v->row = espi_alloc_zero(j->explainer->terms, sizeof *v->row);
    v->seen = espi_alloc_zero(j->explainer->terms, sizeof *v->seen);
    if (v->row == NULL || v->seen == NULL) return espi_no_memory(err);
    esp_status status = espi_bind_to_cols(p->bound, j->data, j->run, &v->bound, err);
    if (status == ESP_OK) status = espi_workspace_new(v->bound, j->run, &w, err);
    for (size_t t = 0; status == ESP_OK && t < j->explainer->terms; t++) status = see_term(j, p, v, w, t, err);
    espi_workspace_free(w);
    return status;
}

/* The scores of the terms, by their kernel values; and where a term has no features, its support examples. */
static esp_status sum_terms(const explaining *j, size_t function, espi_shortlist *shortlist, esp_error *err)
{
    const esp_explainer *e = j->explainer;
    espi_function *f = &j->x->function[function];
    const espi_program *p = espi_program_of(e, f->output);
    const view *v = &j->view[p - e->program];
    f->score = f->bias = f->sign * e->model->bias[f->output] + 0.0; /* no -0 */
    for (size_t t = 0; t < e->terms; t++) {
        double sum = 0.0;
        for (size_t i = 0; i < e->model->support->rows; i++) {
            const double c = f->sign * e->model->coefficient[i * e->model->outputs + f->output];
            const double key = c * v->row[t][i];
            sum += key;
            if (e->reason[t] == NULL || !espi_shortlist_wants(shortlist, key)) continue;
            const espi_found found = {.key = key,
                                      .weight = c,
                                      .value = v->row[t][i],
                                      .term = t,
                                      .size = 1,
                                      .kind = ESP_FEATURE_EXAMPLE,
                                      .step = (uint32_t[]){(uint32_t)i},
                                      .steps = 1};
            if (!espi_shortlist_add(shortlist, &found)) return espi_no_memory(err);
        }
        j->x->term_score[function * e->terms + t] = sum;
        f->score += sum;
    }
    if (isfinite(f->score)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE, "the score of example %zu is too large for a number", j->x->example + 1);
}

static esp_status search_example(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const explaining *j = context;
    esp_status status = sum_terms(j, item, &j->shortlist[item], err);
    for (size_t t = 0; status == ESP_OK && t < j->explainer->terms; t++)
        status = search(j, item, t, &j->shortlist[item], worker->run, err);
    return status;
}

/* Labels and parents of a tree's nodes. */
static bool list_nodes(struct espi_shared *s, const espi_forest *f)
{
    espi_preorder tree;
    size_t bytes = 0;
    if (!espi_preorder_make(&tree, f, f->root[0])) return false;
    for (int fill = 0; fill < 2; fill++) {
        if (fill == 1) {
            s->node = espi_alloc(tree.nodes, sizeof *s->node);
            s->label = espi_alloc(bytes, 1);
            if (s->node == NULL || s->label == NULL) break;
            s->nodes = tree.nodes;
        }
        bytes = 0;
        for (size_t i = 0; i < tree.nodes; i++) {
            const espi_ref ref = tree.node[i].ref;
            const bool leaf = espi_is_leaf(ref);
            const espi_symbol *label =
                &f->symbols.symbol[leaf ? espi_leaf_symbol(ref) : espi_production_of(f, ref)->label];
            if (fill == 1) {
                memcpy(s->label + bytes, label->text, label->size + (size_t)1);
                s->node[i] = (esp_node){.label = s->label + bytes, .leaf = leaf, .parent = SIZE_MAX};
                if (tree.node[i].parent != ESPI_NO_NODE) s->node[i].parent = tree.node[i].parent;
            }
            bytes += label->size + (size_t)1;
        }
    }
    const bool ok = s->node != NULL && s->label != NULL;
    espi_preorder_free(&tree);
    return ok;
}

/* The shares of one term after the other are the largest thing in memory. */
static esp_status check_room(const explaining *j, esp_error *err)
{
    const esp_explainer *e = j->explainer;
    double most = 0.0, bytes;
    char need[32], limit[32];
    if (!j->options.shares || j->run == NULL || j->run->memory == 0) return ESP_OK;
    for (size_t i = 0; i < e->programs * e->terms; i++) {
        const size_t p = i / e->terms, t = i % e->terms;
        const struct seen *seen = &j->view[p].seen[t];
        if (!seen->has_tree) continue;
        if (!espi_fragment_shares_bytes(&e->program[p].source[t].trees, &seen->tree, &bytes))
            return espi_no_memory(err);
        most = fmax(most, bytes);
    }
    if (most <= (double)j->run->memory) return ESP_OK;
    return espi_fail(
        err, ESP_ERR_MEMORY,
        "the shares of the nodes of example %zu take %s; the limit is %s; without them it can be explained",
        j->x->example + 1, espi_size_text(most, need), espi_size_text((double)j->run->memory, limit));
}

static esp_status share_term(const explaining *j, size_t term, esp_error *err)
{
    const esp_explainer *e = j->explainer;
    struct espi_shared *s = &j->x->shared[term];
    const size_t functions = j->x->functions;
    const espi_term_source *first = &e->program[0].source[term];
    if (!first->has_trees && !(first->has_listed && first->listed.kind == ESP_FEATURE_FRAGMENT)) return ESP_OK;
    if (!list_nodes(s, &j->view[0].seen[term].column->trees)) return espi_no_memory(err);
    s->share = espi_alloc_zero(s->nodes, functions * sizeof *s->share);
    if (s->share == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t o = 0; status == ESP_OK && o < functions; o++) {
        const espi_function *f = &j->x->function[o];
        const espi_program *p = espi_program_of(e, f->output);
        const espi_term_source *source = &p->source[term];
        const struct seen *seen = &j->view[p - e->program].seen[term];
        const size_t output = f->output - p->first;
        if (source->has_listed && !espi_weight_list_shares(&source->listed, seen->column, seen->scale, output, f->sign,
                                                           s->share + o, functions))
            status = espi_no_memory(err);
        if (status == ESP_OK && source->has_trees)
            status = espi_fragment_shares(&source->trees, &seen->tree, output, f->sign, j->run, s->share + o, functions,
                                          err);
    }
    if (status == ESP_OK && !espi_all_finite(s->share, s->nodes * functions))
        return espi_fail(err, ESP_ERR_RANGE, "%s: the share of a node of example %zu is too large for a number",
                         e->text[term], j->x->example + 1);
    return status;
}

static esp_status explain_row(explaining *j, esp_error *err)
{
    const esp_explainer *e = j->explainer;
    esp_explanation *x = j->x;
    j->memory = memory_of(j->run, x->functions);
    j->view = espi_alloc_zero(e->programs, sizeof *j->view);
    j->shortlist = espi_alloc(x->functions, sizeof *j->shortlist);
    x->term_score = espi_alloc_zero(x->functions, e->terms * sizeof *x->term_score);
    if (j->options.shares) x->shared = espi_alloc_zero(e->terms, sizeof *x->shared);
    const bool ok =
        j->view != NULL && j->shortlist != NULL && x->term_score != NULL && (x->shared != NULL || !j->options.shares);
    for (size_t o = 0; j->shortlist != NULL && o < x->functions; o++)
        j->shortlist[o] = espi_shortlist_of(j->options.top, true, true, false);
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < e->programs; i++) status = see(j, &e->program[i], &j->view[i], err);
    if (status == ESP_OK) status = check_room(j, err);
    if (status == ESP_OK) status = espi_parallel(j->run, "explaining", x->functions, search_example, j, err);
    for (size_t o = 0; status == ESP_OK && o < x->functions; o++) {
        const size_t first = x->features;
        status = espi_explanation_take(x, e, o, &j->shortlist[o].side[0], err);
        if (status == ESP_OK) status = espi_explanation_take(x, e, o, &j->shortlist[o].side[1], err);
        take_bound(&x->function[o], &j->shortlist[o]);
        x->function[o].rest = x->function[o].score - x->function[o].bias;
        for (size_t i = first; i < x->features; i++) x->function[o].rest -= x->feature[i].contribution;
    }
    for (size_t t = 0; status == ESP_OK && j->options.shares && t < e->terms; t++) status = share_term(j, t, err);
    return status;
}

esp_status esp_explain_example(const esp_explainer *e, const esp_dataset *data, size_t example,
                               const esp_explain_options *options, const esp_run *run, esp_explanation **out,
                               esp_error *err)
{
    explaining j = {.explainer = e, .options = with_defaults(options, EXAMPLE_EFFORT), .run = run};
    *out = NULL;
    if (example >= data->rows)
        return espi_fail(err, ESP_ERR_PARAM, "there is no example %zu; there are %zu", example + 1, data->rows);
    esp_status status = espi_check_columns(e->model->kernel, data, err);
    if (status == ESP_OK) status = espi_explanation_new(e, &j.options, &j.x, err);
    if (status == ESP_OK) status = take_row(&j, data, example, err);
    if (status == ESP_OK) {
        j.x->of_example = true;
        j.x->example = example;
        status = explain_row(&j, err);
    }
    free_explaining(&j, j.x != NULL ? j.x->functions : 0);
    if (status == ESP_OK) *out = j.x;
    else esp_explanation_free(j.x);
    return status;
}
