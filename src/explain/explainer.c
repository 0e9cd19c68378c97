/* From a model to sources of features: the terms of its kernel, with the coefficients of its support examples. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "explain/explain.h"

#include <math.h>
#include <string.h>

void espi_free_texts(char **text, size_t count)
{
    for (size_t i = 0; text != NULL && i < count; i++) espi_free(text[i]);
    espi_free(text);
}

char **espi_copy_texts(char *const *text, size_t count)
{
    char **copy = espi_alloc_zero(count, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = espi_copy_text(text[i], strlen(text[i]));
        if (copy[i] != NULL) continue;
        espi_free_texts(copy, count);
        return NULL;
    }
    return copy;
}

static void free_program(espi_program *p, size_t terms)
{
    for (size_t t = 0; p->source != NULL && t < terms; t++) {
        espi_tree_source_free(&p->source[t].trees);
        espi_seq_source_free(&p->source[t].sequences);
        espi_weight_list_free(&p->source[t].listed);
    }
    espi_free(p->source);
    espi_bound_free(p->bound);
}

void esp_explainer_free(esp_explainer *e)
{
    if (e == NULL) return;
    for (size_t i = 0; e->program != NULL && i < e->programs; i++) free_program(&e->program[i], e->terms);
    espi_free(e->program);
    espi_free_texts(e->text, e->terms);
    espi_free_texts(e->reason, e->terms);
    espi_free_texts(e->column, e->terms);
    espi_free(e->term);
    espi_free(e);
}

/* ---------------------------------------------------------------------- terms */

static const espi_kernel_class *class_of(const esp_kernel *kernel, const espi_term *t)
{
    return t->leaf ? kernel->leaf[t->number].class : NULL;
}

static espi_feature_source features_of(const espi_kernel_class *c)
{
    return c != NULL ? c->features : ESPI_NO_FEATURES;
}

/* "0.3*norm(sst(tree, lambda=0.4))": a term is an expression that ends with its own operator. */
static char *term_text(const esp_kernel *kernel, const espi_term *t)
{
    esp_kernel part = *kernel;
    part.ops = t->op + 1;
    char *text = espi_kernel_print_short(&part);
    if (text == NULL || t->weight == 1.0) return text;
    espi_text all = {0};
    espi_text_number(&all, t->weight);
    espi_text_string(&all, "*");
    espi_text_string(&all, text);
    espi_free(text);
    return espi_text_take(&all);
}

static const char *why_not(const esp_kernel *kernel, const espi_term *t)
{
    const espi_kernel_class *c = class_of(kernel, t);
    if (c != NULL) return c->no_features != NULL ? c->no_features : "has no features that could be weighed";
    const espi_op *op = &kernel->op[t->op];
    const bool norm = op->kind == ESPI_NORM;
    if (norm) op = &kernel->op[op->left];
    if ((norm && (op->kind == ESPI_SCALE || op->kind == ESPI_NORM)) || (op->kind == ESPI_POWER && op->number == 1.0))
        return "is the same without the inner weight, norm or power of 1, and can be explained when trained so";
    if (op->kind == ESPI_PRODUCT) return "is a product of kernels, whose features are pairs of features";
    if (op->kind == ESPI_POWER) return "is a power of a kernel, whose features are tuples of features";
    return "is a norm of several kernels together, so that none has weights of its own";
}

static char *reason_text(const esp_kernel *kernel, const espi_term *t, const char *name)
{
    espi_text text = {0};
    espi_text_string(&text, name);
    espi_text_string(&text, " ");
    espi_text_string(&text, why_not(kernel, t));
    espi_text_string(&text, "; given examples, it can be told which support examples push their scores");
    return espi_text_take(&text);
}

static esp_status describe_terms(esp_explainer *e, esp_error *err)
{
    const esp_kernel *kernel = e->model->kernel;
    e->term = espi_kernel_terms(kernel, &e->terms);
    if (e->term == NULL) return espi_no_memory(err);
    e->text = espi_alloc_zero(e->terms, sizeof *e->text);
    e->reason = espi_alloc_zero(e->terms, sizeof *e->reason);
    e->column = espi_alloc_zero(e->terms, sizeof *e->column);
    if (e->text == NULL || e->reason == NULL || e->column == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < e->terms; i++) {
        const espi_term *t = &e->term[i];
        e->text[i] = term_text(kernel, t);
        if (e->text[i] == NULL) return espi_no_memory(err);
        if (features_of(class_of(kernel, t)) == ESPI_NO_FEATURES) {
            e->reason[i] = reason_text(kernel, t, e->text[i]);
            if (e->reason[i] == NULL) return espi_no_memory(err);
            continue;
        }
        const espi_column *column;
        const esp_status status = espi_leaf_column(&kernel->leaf[t->number], e->model->support, &column, err);
        if (status != ESP_OK) return status;
        e->column[i] = espi_copy_text(column->name, strlen(column->name));
        if (e->column[i] == NULL) return espi_no_memory(err);
    }
    return ESP_OK;
}

/* -------------------------------------------------------------------- sources */

double espi_norm_scale(const espi_norm *norm, espi_side side, size_t example)
{
    const double scale = norm->scale[side][example];
    return isfinite(scale) ? scale
                           : espi_wide_normalise(espi_wide_of(1.0), norm->self[side][example], espi_wide_of(1.0));
}

/* The coefficients of a term, its weight and the norms of the support examples taken in. */
static esp_status term_coefficients(const esp_explainer *e, const espi_program *p, size_t term, double **out,
                                    esp_error *err)
{
    const espi_term *t = &e->term[term];
    const size_t n = e->model->support->rows;
    double *c = *out = espi_alloc(n, p->outputs * sizeof *c);
    if (c == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const espi_norm *norm = t->norm ? &p->bound->norm[t->op] : NULL;
        const double scale = norm != NULL ? espi_norm_scale(norm, ESPI_COLS, i) : 1.0;
        bool fits = scale > 0.0 || norm->self[ESPI_COLS][i].m == 0.0;
        for (size_t k = 0; k < p->outputs; k++) {
            c[i * p->outputs + k] = p->coefficient[i * p->stride + k] * t->weight * scale;
            fits = fits && isfinite(c[i * p->outputs + k]);
        }
        if (!fits)
            return espi_fail(
                err, ESP_ERR_RANGE,
                "%s: the self-value of support example %zu is too large for a number, so that its features "
                "have no weights",
                e->text[term], i + 1);
    }
    return ESP_OK;
}

static esp_status make_source(const esp_explainer *e, espi_program *p, size_t term, esp_error *err)
{
    const espi_term *t = &e->term[term];
    const espi_feature_source from = features_of(class_of(p->kernel, t));
    espi_term_source *s = &p->source[term];
    if (from == ESPI_NO_FEATURES) return ESP_OK;
    const espi_leaf *leaf = &p->kernel->leaf[t->number];
    const espi_column *column;
    double *c = NULL;
    esp_status status = espi_leaf_column(leaf, e->model->support, &column, err);
    if (status == ESP_OK) status = term_coefficients(e, p, term, &c, err);
    if (status == ESP_OK && from == ESPI_TREE_FRAGMENTS) {
        status = espi_tree_source_make(&s->trees, leaf, column, c, p->outputs, err);
        s->has_trees = status == ESP_OK;
        s->has_listed = s->has_trees && espi_leaf_value(leaf, "bow") > 0.0;
        if (s->has_listed) status = espi_weight_list_words(&s->listed, leaf, column, c, p->outputs, err);
    } else if (status == ESP_OK && from == ESPI_SUBSEQUENCES) {
        status = espi_seq_source_make(&s->sequences, leaf, column, c, p->outputs, err);
        s->has_sequences = true;
    } else if (status == ESP_OK) {
        status = (from == ESPI_VALUES ? espi_weight_list_values : espi_weight_list_selected)(&s->listed, leaf, column,
                                                                                             c, p->outputs, err);
        s->has_listed = true;
    }
    espi_free(c);
    return status;
}

static esp_status make_programs(esp_explainer *e, const esp_run *run, esp_error *err)
{
    const esp_model *m = e->model;
    e->programs = m->variant != NULL ? m->outputs : 1;
    e->program = espi_alloc_zero(e->programs, sizeof *e->program);
    if (e->program == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < e->programs; i++) {
        espi_program *p = &e->program[i];
        *p = (espi_program){.kernel = m->variant != NULL ? m->variant[i] : m->kernel,
                            .first = i,
                            .outputs = m->variant != NULL ? 1 : m->outputs,
                            .coefficient = m->coefficient + i,
                            .stride = m->outputs};
        p->source = espi_alloc_zero(e->terms, sizeof *p->source);
        if (p->source == NULL) return espi_no_memory(err);
        status = espi_bind(p->kernel, m->support, m->support, run, &p->bound, err);
        for (size_t t = 0; status == ESP_OK && t < e->terms; t++) status = make_source(e, p, t, err);
    }
    return status;
}

esp_status esp_explainer_new(const esp_model *model, const esp_run *run, esp_explainer **out, esp_error *err)
{
    *out = NULL;
    if (model->vote)
        return espi_fail(err, ESP_ERR_PARAM,
                         "a voted perceptron decides by votes, which are no sum of features; train it with average in "
                         "place of vote, or resume it so with epochs=0, and explain that model");
    esp_explainer *e = espi_alloc_zero(1, sizeof *e);
    if (e == NULL) return espi_no_memory(err);
    e->model = model;
    esp_status status = describe_terms(e, err);
    if (status == ESP_OK) status = make_programs(e, run, err);
    if (status == ESP_OK) *out = e;
    else esp_explainer_free(e);
    return status;
}

const espi_program *espi_program_of(const esp_explainer *e, size_t output)
{
    return &e->program[e->programs > 1 ? output : 0];
}

size_t esp_explainer_terms(const esp_explainer *e) { return e->terms; }
const char *esp_explainer_term(const esp_explainer *e, size_t term) { return e->text[term]; }
const char *esp_explainer_reason(const esp_explainer *e, size_t term) { return e->reason[term]; }
const char *esp_explainer_column(const esp_explainer *e, size_t term) { return e->column[term]; }

esp_feature_kind esp_explainer_kind(const esp_explainer *e, size_t term)
{
    const espi_term_source *s = &e->program[0].source[term];
    return s->has_trees       ? ESP_FEATURE_FRAGMENT
           : s->has_sequences ? ESP_FEATURE_PATTERN
           : s->has_listed    ? s->listed.kind
                              : ESP_FEATURE_EXAMPLE;
}
