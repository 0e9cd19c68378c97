/* Examples with what their scores are made of. A tree may be large: the nodes nearest to the root are written, as many
 * as a browser draws with ease, and of each how many there are below it. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "data/writer.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

#define SHARES 1e9 /* steps that the shares of one tree may take */

enum {
    NODES = 1500,   /* of a tree */
    FEATURES = 8,   /* that push up, and as many that push down */
    FUNCTIONS = 2,  /* decision functions of an example: of the predicted and of the actual class */
    LABEL = 200,    /* bytes of a node's */
    FRAGMENTS = 512 /* sizes of fragments that shares tell apart */
};

typedef struct explained { /* an example with the decision functions that are shown; none if it cannot be explained */
    size_t example;
    espi_shown function[FUNCTIONS];
    size_t functions;
    bool shares; /* of nodes are known */
} explained;

/* ------------------------------------------------------------------- trees */

typedef struct place {
    espi_ref node;
    size_t parent; /* in the list of places; SIZE_MAX for the root */
    size_t number; /* of the node in preorder, by which shares are told */
} place;

/* Children have smaller numbers than their parents. */
static void fill_sizes(const espi_forest *f, const espi_forest *support, const uint32_t *same, espi_tree_sizes *out)
{
    for (size_t v = 0; v < f->vertices; v++) {
        const uint32_t production = same[f->vertex[v].production];
        out->nodes[v] = 1;
        out->matches[v] = production != ESPI_NO_NODE ? (double)support->production[production].count : 0.0;
        for (size_t k = 0; k < espi_production_of(f, (espi_ref)v)->arity; k++) {
            const espi_ref child = f->child[f->vertex[v].children + k];
            out->nodes[v] += espi_is_leaf(child) ? 1 : out->nodes[child];
            if (!espi_is_leaf(child)) out->matches[v] += out->matches[child];
        }
    }
}

/* The sizes of a column, which is one of trees that the model uses; NULL if memory is out. */
static const espi_tree_sizes *sizes_of(espi_report *r, const espi_column *column)
{
    if (r->tree_sizes == NULL) r->tree_sizes = espi_alloc_zero(r->data->columns, sizeof *r->tree_sizes);
    if (r->tree_sizes == NULL) return NULL;
    espi_tree_sizes *sizes = &r->tree_sizes[column - r->data->column];
    if (sizes->matches != NULL) return sizes;
    const espi_column *support = espi_report_column(r->model->support, column->name, ESP_COLUMN_TREE);
    uint32_t *same = espi_forest_map_productions(&column->trees, &support->trees);
    if (sizes->nodes == NULL) sizes->nodes = espi_alloc(column->trees.vertices, sizeof *sizes->nodes);
    if (same != NULL && sizes->nodes != NULL)
        sizes->matches = espi_alloc(column->trees.vertices, sizeof *sizes->matches);
    if (sizes->matches != NULL) fill_sizes(&column->trees, &support->trees, same, sizes);
    espi_free(same);
    return sizes->matches != NULL ? sizes : NULL;
}

static size_t size_of(const espi_tree_sizes *sizes, espi_ref node)
{
    return espi_is_leaf(node) ? 1 : sizes->nodes[node];
}

/* Whether the shares of nodes can be had in a short time and in memory: they take all matching pairs for each size of
 * fragments, and hold two numbers for each at most. */
static esp_status can_share(espi_report *r, size_t example, bool *can, esp_error *err)
{
    *can = true;
    for (size_t i = 0; i < r->model->support->columns; i++) {
        const espi_column *s = &r->model->support->column[i];
        if (s->type != ESP_COLUMN_TREE) continue;
        const espi_column *column = espi_report_column(r->data, s->name, ESP_COLUMN_TREE);
        const espi_tree_sizes *sizes = sizes_of(r, column);
        if (sizes == NULL) return espi_no_memory(err);
        const espi_ref root = column->trees.root[example];
        if (root == ESPI_NO_NODE || espi_is_leaf(root)) continue;
        const double fragments = fmin((double)sizes->nodes[root], FRAGMENTS);
        const double bytes = 2.0 * sizes->matches[root] * sizeof(double);
        *can = *can && sizes->matches[root] * fragments <= SHARES;
        *can = *can && (r->run == NULL || r->run->memory == 0 || bytes <= (double)r->run->memory);
    }
    return ESP_OK;
}

/* The nodes of a tree, those near the root first, as far as they are written. Returns how many. */
static size_t place_nodes(const espi_forest *f, espi_ref root, const espi_tree_sizes *size, place *out)
{
    size_t count = 0;
    if (root != ESPI_NO_NODE) out[count++] = (place){root, SIZE_MAX, 0};
    for (size_t i = 0; i < count && count < NODES; i++) {
        if (espi_is_leaf(out[i].node)) continue;
        const espi_ref *child = f->child + f->vertex[out[i].node].children;
        size_t number = out[i].number + 1;
        for (size_t k = 0; k < espi_production_of(f, out[i].node)->arity && count < NODES; k++) {
            out[count++] = (place){child[k], i, number};
            number += size_of(size, child[k]);
        }
    }
    return count;
}

/* [label, parent (-1: root), leaf, nodes below, share in the first function, ...] */
static void add_node(espi_text *t, const explained *x, size_t term, const espi_forest *f, const espi_tree_sizes *size,
                     place at)
{
    const bool leaf = espi_is_leaf(at.node);
    const espi_symbol *label =
        &f->symbols.symbol[leaf ? espi_leaf_symbol(at.node) : espi_production_of(f, at.node)->label];
    espi_json_open(t, '[');
    espi_drawn_text(t, label->text, label->size, LABEL);
    if (at.parent == SIZE_MAX) espi_json_raw(t, "-1");
    else espi_json_count(t, at.parent);
    espi_json_count(t, leaf);
    espi_json_count(t, size_of(size, at.node) - 1);
    for (size_t k = 0; term != SIZE_MAX && k < x->functions; k++)
        espi_drawn_number(t, esp_explanation_share(x->function[k].of, term, at.number, x->function[k].output));
    espi_json_close(t, ']');
}

/* A tree with the shares in a term, or without (SIZE_MAX). */
static esp_status add_tree(espi_report *r, const explained *x, size_t term, const espi_column *column, esp_error *err)
{
    espi_text *t = &r->json;
    const espi_forest *f = &column->trees;
    const espi_ref root = f->root[x->example];
    const espi_tree_sizes *size = sizes_of(r, column);
    place *at = espi_alloc(NODES, sizeof *at);
    const bool ok = size != NULL && at != NULL;
    if (ok) {
        const size_t count = place_nodes(f, root, size, at);
        espi_json_open(t, '{');
        espi_json_text_of(t, "column", column->name);
        if (term != SIZE_MAX) espi_json_count_of(t, "term", term);
        espi_json_count_of(t, "count", root == ESPI_NO_NODE ? 0 : size_of(size, root));
        espi_json_key(t, "nodes");
        espi_json_open(t, '[');
        for (size_t i = 0; i < count; i++) add_node(t, x, term, f, size, at[i]);
        espi_json_close(t, ']');
        espi_json_close(t, '}');
    }
    espi_free(at);
    return ok ? ESP_OK : espi_no_memory(err);
}

/* The trees that terms have shares of; if there are none, those that the model uses. */
static esp_status add_trees(espi_report *r, const esp_explainer *explainer, const explained *x, esp_error *err)
{
    const esp_dataset *support = r->model->support;
    esp_status status = ESP_OK;
    bool any = false;
    espi_json_key(&r->json, "trees");
    espi_json_open(&r->json, '[');
    for (size_t i = 0; status == ESP_OK && x->functions > 0 && i < esp_explainer_terms(explainer); i++) {
        const char *name = esp_explainer_column(explainer, i);
        if (name == NULL || esp_explanation_nodes(x->function[0].of, i) == 0) continue;
        status = add_tree(r, x, i, espi_report_column(r->data, name, ESP_COLUMN_TREE), err);
        any = true;
    }
    for (size_t i = 0; status == ESP_OK && !any && i < support->columns; i++)
        if (support->column[i].type == ESP_COLUMN_TREE)
            status =
                add_tree(r, x, SIZE_MAX, espi_report_column(r->data, support->column[i].name, ESP_COLUMN_TREE), err);
    espi_json_close(&r->json, ']');
    return status;
}

/* ------------------------------------------------------------ contributions */

static void add_features(espi_text *t, const espi_shown *s, const char *key, bool up)
{
    espi_json_key(t, key);
    espi_json_open(t, '[');
    for (size_t i = 0; i < esp_explanation_count(s->of); i++) {
        const esp_feature *f = esp_explanation_feature(s->of, i);
        if (f->output != s->output || (f->contribution > 0.0) != up) continue;
        espi_json_open(t, '{');
        espi_json_key(t, "text");
        espi_drawn_text(t, f->text, strlen(f->text), ESPI_FEATURE_TEXT);
        espi_json_text_of(t, "kind", esp_feature_kind_name(f->kind));
        espi_drawn_number_of(t, "weight", f->weight);
        espi_drawn_number_of(t, "value", f->value);
        espi_drawn_number_of(t, "contribution", f->contribution);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_function(espi_text *t, const espi_shown *s)
{
    double bound;
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", esp_explanation_output(s->of, s->output));
    if (s->class != NULL) espi_json_text_of(t, "class", s->class);
    espi_drawn_number_of(t, "score", esp_explanation_score(s->of, s->output));
    espi_drawn_number_of(t, "bias", esp_explanation_bias(s->of, s->output));
    espi_drawn_number_of(t, "rest", esp_explanation_rest(s->of, s->output));
    if (!esp_explanation_is_exact(s->of, s->output, &bound)) espi_drawn_number_of(t, "bound", bound);
    espi_json_key(t, "terms");
    espi_json_open(t, '[');
    for (size_t i = 0; i < esp_explanation_terms(s->of); i++)
        espi_drawn_number(t, esp_explanation_term_score(s->of, s->output, i));
    espi_json_close(t, ']');
    add_features(t, s, "up", true);
    add_features(t, s, "down", false);
    espi_json_close(t, '}');
}

/* Of the pairs that a class is in, the one that says most: against the actual class, or else the closest. The others
 * stand in their order. */
static size_t telling_pair(const esp_explanation *x, size_t class, uint32_t actual)
{
    size_t best = 0;
    if (actual != ESPI_NO_CLASS && actual != class) return actual < class ? actual : actual - 1;
    for (size_t o = 1; o < esp_explanation_outputs(x); o++)
        if (esp_explanation_score(x, o) < esp_explanation_score(x, best)) best = o;
    return best;
}

static esp_status explain_for(const espi_report *r, const esp_explainer *explainer, const explained *x, size_t class,
                              uint32_t actual, espi_shown *out, esp_error *err)
{
    const esp_model *m = r->model;
    out->class = m->classes > 0 ? m->class_name[class] : NULL;
    const size_t top = r->options.top < FEATURES ? r->options.top : FEATURES;
    const esp_explain_options options = {.class_name = out->class, .top = top, .shares = x->shares};
    const esp_status status = esp_explain_example(explainer, r->data, x->example, &options, r->run, &out->of, err);
    if (status == ESP_OK && m->one_vs_one && m->classes > 2) out->output = telling_pair(out->of, class, actual);
    return status;
}

/* ------------------------------------------------------------------ examples */

/* The words of a tree, with blanks between them, until there are enough. */
static bool add_yield(espi_text *out, const espi_forest *f, espi_ref root)
{
    espi_ref *stack = NULL;
    size_t depth = 0, capacity = 0;
    bool ok = espi_reserve(&stack, &capacity, 1, sizeof *stack);
    if (ok && root != ESPI_NO_NODE) stack[depth++] = root;
    while (ok && depth > 0 && out->size <= ESPI_EXAMPLE_TEXT) {
        const espi_ref node = stack[--depth];
        if (espi_is_leaf(node)) {
            const espi_symbol *s = &f->symbols.symbol[espi_leaf_symbol(node)];
            if (out->size > 0) espi_text_add(out, " ", 1);
            espi_text_add(out, s->text, s->size);
            continue;
        }
        const size_t arity = espi_production_of(f, node)->arity;
        ok = espi_reserve(&stack, &capacity, depth + arity, sizeof *stack);
        for (size_t k = arity; ok && k-- > 0;) stack[depth++] = f->child[f->vertex[node].children + k];
    }
    espi_free(stack);
    return ok;
}

/* How well a column stands for an example: what people read before numbers, what the model uses before what it does
 * not. */
static int rank(const espi_report *r, const espi_column *c)
{
    static const int of_type[] = {[ESP_COLUMN_SEQUENCE] = 4, [ESP_COLUMN_TREE] = 3, [ESP_COLUMN_VECTOR] = 1};
    size_t same;
    const bool used = espi_find_column(r->model->support, c->name, strlen(c->name), &same);
    return of_type[c->type] + (used ? c->type == ESP_COLUMN_VECTOR ? 1 : 2 : 0);
}

static const espi_column *shown_column(const espi_report *r)
{
    const espi_column *best = &r->data->column[0];
    for (size_t i = 1; i < r->data->columns; i++)
        if (rank(r, &r->data->column[i]) > rank(r, best)) best = &r->data->column[i];
    return best;
}

/* What an example is called in the page: a sequence, the words of a tree, or a vector. */
static esp_status add_text(espi_text *t, const espi_column *best, size_t example, esp_error *err)
{
    espi_text text = {0};
    bool ok = true;
    if (best->type == ESP_COLUMN_SEQUENCE) espi_text_sequence(&text, &best->sequences, example);
    else if (best->type == ESP_COLUMN_TREE) ok = add_yield(&text, &best->trees, best->trees.root[example]);
    else espi_text_vector(&text, &best->vectors, example);
    espi_json_key(t, "text");
    espi_drawn_text(t, text.size > 0 ? text.bytes : "", text.size, ESPI_EXAMPLE_TEXT);
    ok = ok && !text.failed;
    espi_text_free(&text);
    return ok ? ESP_OK : espi_no_memory(err);
}

static void add_verdict(espi_report *r, size_t i)
{
    espi_text *t = &r->json;
    const esp_predictions *p = r->predictions;
    espi_json_count_of(t, "number", i + 1);
    if (p->classes == 0) {
        espi_drawn_number_of(t, "value", p->column[i]);
        if (r->target != NULL) espi_drawn_number_of(t, "target", r->target[i]);
        if (r->variance != NULL) espi_drawn_number_of(t, "deviation", sqrt(r->variance[i]));
        return;
    }
    espi_json_text_of(t, "predicted", p->class_name[p->winner[i]]);
    if (r->actual != NULL) espi_json_text_of(t, "actual", esp_dataset_target(r->data, i));
    if (r->actual != NULL) espi_json_flag_of(t, "right", r->actual[i] == p->winner[i]);
    espi_drawn_number_of(t, "score", esp_predictions_score(p, i));
    espi_drawn_number_of(t, "margin", espi_report_margin(p, i));
    if (p->probability != NULL) espi_drawn_number_of(t, "probability", p->probability[i * p->classes + p->winner[i]]);
}

/* The functions of the predicted class and, where it is another one that the model knows, of the actual class. */
static esp_status explain_functions(espi_report *r, const esp_explainer *explainer, explained *x, esp_error *err)
{
    const esp_model *m = r->model;
    const size_t winner = m->classes > 0 ? r->predictions->winner[x->example] : 0;
    const uint32_t actual = r->actual != NULL ? r->actual[x->example] : ESPI_NO_CLASS;
    esp_status status = can_share(r, x->example, &x->shares, err);
    if (status == ESP_OK) status = explain_for(r, explainer, x, winner, actual, &x->function[0], err);
    if (status == ESP_OK) x->functions = 1;
    if (m->classes <= 2 || m->one_vs_one || actual == ESPI_NO_CLASS || actual == winner) return status;
    if (status == ESP_OK) status = explain_for(r, explainer, x, actual, actual, &x->function[1], err);
    if (status == ESP_OK) x->functions = 2;
    return status;
}

/* An example whose values are too large for numbers is shown without its explanation. */
static esp_status add_example(espi_report *r, const esp_explainer *explainer, size_t example, esp_error *err)
{
    espi_text *t = &r->json;
    explained x = {.example = example};
    esp_error reason = {0};
    esp_status status = explainer != NULL ? explain_functions(r, explainer, &x, &reason) : ESP_OK;
    const bool beyond = status == ESP_ERR_RANGE;
    if (beyond) x.functions = 0;
    if (status != ESP_OK && !beyond && err != NULL) *err = reason;
    if (status == ESP_OK || beyond) {
        espi_json_open(t, '{');
        add_verdict(r, example);
        if (beyond) espi_json_text_of(t, "unexplained", reason.message);
        if (x.functions > 0 && !x.shares) espi_json_flag_of(t, "large", true);
        const espi_column *column = shown_column(r);
        status = add_text(t, column, example, err);
        if (status == ESP_OK) status = espi_report_words(r, explainer, example, column, x.function, x.functions, err);
        espi_json_key(t, "functions");
        espi_json_open(t, '[');
        for (size_t k = 0; k < x.functions; k++) add_function(t, &x.function[k]);
        espi_json_close(t, ']');
        if (status == ESP_OK) status = add_trees(r, explainer, &x, err);
        espi_json_close(t, '}');
    }
    for (size_t k = 0; k < FUNCTIONS; k++) esp_explanation_free(x.function[k].of);
    return status;
}

esp_status espi_report_examples(espi_report *r, const esp_explainer *explainer, esp_error *err)
{
    const size_t most = r->options.examples < r->data->rows ? r->options.examples : r->data->rows;
    size_t *example = espi_alloc(most, sizeof *example), count = 0;
    if (example == NULL) return espi_no_memory(err);
    esp_status status = espi_report_choose(r, most, example, &count, err);
    espi_json_key(&r->json, "examples");
    espi_json_open(&r->json, '[');
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        status = add_example(r, explainer, example[i], err);
        if (status == ESP_OK)
            status = espi_progress(r->run, "explaining examples", (double)(i + 1) / (double)count, err);
    }
    espi_json_close(&r->json, ']');
    espi_free(example);
    return status;
}
