/* Explanations as they are handed out: decision functions by name, and features with their texts in order. */
#include "explain/explain.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "data/writer.h"
#include "learn/targets.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void esp_explanation_free(esp_explanation *x)
{
    if (x == NULL) return;
    for (size_t i = 0; x->function != NULL && i < x->functions; i++) espi_free(x->function[i].name);
    for (size_t i = 0; i < x->features; i++) espi_free((char *)x->feature[i].text);
    for (size_t i = 0; x->shared != NULL && i < x->terms; i++) {
        espi_free(x->shared[i].node);
        espi_free(x->shared[i].label);
        espi_free(x->shared[i].share);
    }
    espi_free(x->function);
    espi_free_texts(x->term, x->terms);
    espi_free(x->feature);
    espi_free(x->weight);
    espi_free(x->term_score);
    espi_free(x->shared);
    espi_free(x);
}

/* ------------------------------------------------------------------ functions */

static esp_status find_class(const esp_model *m, const char *name, size_t *out, esp_error *err)
{
    enum { FEW = 20 };
    if (m->classes == 0) return espi_fail(err, ESP_ERR_PARAM, "the model predicts numbers and has no class '%s'", name);
    for (*out = 0; *out < m->classes; ++*out)
        if (strcmp(m->class_name[*out], name) == 0) return ESP_OK;
    const char *nearest = esp_nearest(name, (const char *const *)m->class_name, m->classes);
    if (nearest != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "the model has no class '%s'; did you mean '%s'?", name, nearest);
    if (m->classes > FEW)
        return espi_fail(err, ESP_ERR_PARAM, "the model has no class '%s'; 'espalier info' lists its %zu classes", name,
                         m->classes);
    char list[400] = "";
    for (size_t c = 0; c < m->classes; c++) {
        if (c > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, m->class_name[c]);
    }
    return espi_fail(err, ESP_ERR_PARAM, "the model has no class '%s'; its classes are %s", name, list);
}

/* "HUM", "HUM against LOC" or "value", for the first class of the problem or, turned round, for the second. */
static char *function_name(const esp_model *m, size_t output, bool turned)
{
    if (m->classes == 0) return espi_copy_text("value", 5);
    size_t positive, negative;
    espi_output_classes(m->one_vs_one, m->classes, output, &positive, &negative);
    espi_text text = {0};
    espi_text_string(&text, m->class_name[turned ? negative : positive]);
    if (m->one_vs_one && m->classes > 2) {
        espi_text_string(&text, " against ");
        espi_text_string(&text, m->class_name[turned ? positive : negative]);
    }
    return espi_text_take(&text);
}

static esp_status add_functions(esp_explanation *x, const esp_model *m, const char *class_name, esp_error *err)
{
    size_t class = 0;
    const esp_status status = class_name != NULL ? find_class(m, class_name, &class, err) : ESP_OK;
    if (status != ESP_OK) return status;
    x->function = espi_alloc_zero(m->outputs, sizeof *x->function);
    if (x->function == NULL) return espi_no_memory(err);
    for (size_t k = 0; k < m->outputs; k++) {
        size_t positive, negative;
        espi_output_classes(m->one_vs_one, m->classes, k, &positive, &negative);
        const bool turned = class_name != NULL && negative == class;
        if (class_name != NULL && positive != class && !turned) continue;
        espi_function *f = &x->function[x->functions];
        *f = (espi_function){.output = k, .sign = turned ? -1.0 : 1.0, .exact = true};
        f->name = function_name(m, k, turned);
        if (f->name == NULL) return espi_no_memory(err);
        x->functions++;
    }
    return ESP_OK;
}

esp_status espi_explanation_new(const esp_explainer *e, const esp_explain_options *options, esp_explanation **out,
                                esp_error *err)
{
    *out = NULL;
    esp_explanation *x = espi_alloc_zero(1, sizeof *x);
    if (x == NULL) return espi_no_memory(err);
    esp_status status = add_functions(x, e->model, options->class_name, err);
    if (status == ESP_OK) {
        x->terms = e->terms;
        x->term = espi_copy_texts(e->text, e->terms);
        if (x->term == NULL) status = espi_no_memory(err);
    }
    if (status == ESP_OK) *out = x;
    else esp_explanation_free(x);
    return status;
}

/* ------------------------------------------------------------------- features */

/* "12: (S ...) {...}": a support example with the columns that the kernel uses. */
static bool example_text(const esp_model *m, size_t row, espi_text *text)
{
    char number[32];
    snprintf(number, sizeof number, "%zu:", row + 1);
    espi_text_string(text, number);
    for (size_t i = 0; i < m->support->columns; i++) {
        const espi_column *c = &m->support->column[i];
        espi_text_string(text, " ");
        if (c->type == ESP_COLUMN_TREE) espi_text_tree(text, &c->trees, c->trees.root[row]);
        else if (c->type == ESP_COLUMN_SEQUENCE) espi_text_sequence(text, &c->sequences, row);
        else espi_text_vector(text, &c->vectors, row);
    }
    return !text->failed;
}

static bool is_listed(const espi_found *found, const espi_term_source *s)
{
    return s->has_listed && s->listed.kind == found->kind;
}

static char *feature_text(const esp_explainer *e, const espi_term_source *s, const espi_found *found)
{
    espi_text text = {0};
    bool ok = true;
    if (found->kind == ESP_FEATURE_EXAMPLE) ok = example_text(e->model, found->step[0], &text);
    else if (is_listed(found, s)) espi_weight_list_text(&s->listed, found->step[0], &text);
    else if (s->has_trees) ok = espi_fragment_text(&s->trees, found, &text);
    else ok = espi_pattern_text(&s->sequences, found, &text);
    if (ok) return espi_text_take(&text);
    espi_text_free(&text);
    return NULL;
}

/* Weights in all outputs of one program; of selected patterns those of the same text. */
static bool facts_in(const espi_program *p, const espi_found *found, const char *text, espi_facts *facts)
{
    const espi_term_source *s = &p->source[found->term];
    if (is_listed(found, s)) {
        const size_t u =
            s->listed.selection == NULL ? found->step[0] : espi_symbols_find(&s->listed.names, text, strlen(text));
        if (u < s->listed.features) espi_weight_list_facts(&s->listed, u, facts);
        return true;
    }
    return s->has_trees ? espi_fragment_facts(&s->trees, found, facts)
                        : espi_pattern_facts(&s->sequences, found, facts);
}

static bool state_facts(const esp_explainer *e, const esp_explanation *x, const espi_found *found, const char *text,
                        const espi_program *own, double *all, double *weight, espi_facts *facts)
{
    bool ok = true;
    if (found->kind == ESP_FEATURE_EXAMPLE) {
        for (size_t k = 0; k < e->model->outputs; k++)
            all[k] = e->model->coefficient[found->step[0] * e->model->outputs + k];
        facts->examples = 1;
        facts->occurrences = 1.0;
    }
    for (size_t i = 0; ok && found->kind != ESP_FEATURE_EXAMPLE && i < e->programs; i++) {
        espi_facts here = {.weight = all + e->program[i].first};
        for (size_t k = 0; k < e->program[i].outputs; k++) here.weight[k] = 0.0;
        ok = facts_in(&e->program[i], found, text, &here);
        if (&e->program[i] == own) *facts = here;
    }
    for (size_t o = 0; o < x->functions; o++) weight[o] = x->function[o].sign * all[x->function[o].output];
    return ok;
}

static esp_status add_feature(esp_explanation *x, const esp_explainer *e, size_t function, const espi_found *found,
                              esp_error *err)
{
    const espi_program *own = espi_program_of(e, x->function[function].output);
    espi_facts facts = {0};
    if (!espi_reserve(&x->feature, &x->feature_capacity, x->features + 1, sizeof *x->feature) ||
        !espi_reserve(&x->weight, &x->weight_capacity, (x->features + 1) * x->functions, sizeof *x->weight))
        return espi_no_memory(err);
    double *all = espi_alloc(e->model->outputs, sizeof *all);
    char *text = feature_text(e, &own->source[found->term], found);
    const bool ok = all != NULL && text != NULL &&
                    state_facts(e, x, found, text, own, all, x->weight + x->features * x->functions, &facts);
    espi_free(all);
    if (!ok) {
        espi_free(text);
        return espi_no_memory(err);
    }
    x->feature[x->features++] = (esp_feature){.output = function,
                                              .term = found->term,
                                              .kind = found->kind,
                                              .text = text,
                                              .size = found->size,
                                              .weight = found->weight,
                                              .value = x->of_example ? found->value : 0.0,
                                              .contribution = x->of_example ? found->key : 0.0,
                                              .examples = facts.examples,
                                              .occurrences = facts.occurrences};
    return ESP_OK;
}

static int by_key(const void *p, const void *q)
{
    const espi_found *a = p, *b = q;
    const double x = fabs(a->key), y = fabs(b->key);
    if (x != y) return x > y ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

typedef struct ordered { /* a feature that was added, to be put in order among equals */
    esp_feature feature;
    size_t from;
} ordered;

static int by_text(const void *p, const void *q)
{
    const esp_feature *a = &((const ordered *)p)->feature, *b = &((const ordered *)q)->feature;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return strcmp(a->text, b->text);
}

/* Puts features first .. first+count-1, whose keys count as equal, in the order of size and text. */
static bool order_equals(esp_explanation *x, size_t first, size_t count)
{
    ordered *order = espi_alloc(count, sizeof *order);
    double *weight = espi_alloc(count, x->functions * sizeof *weight);
    const bool ok = order != NULL && weight != NULL;
    for (size_t i = 0; ok && i < count; i++) order[i] = (ordered){x->feature[first + i], i};
    if (ok) {
        memcpy(weight, x->weight + first * x->functions, count * x->functions * sizeof *weight);
        qsort(order, count, sizeof *order, by_text);
    }
    for (size_t i = 0; ok && i < count; i++) {
        x->feature[first + i] = order[i].feature;
        memcpy(x->weight + (first + i) * x->functions, weight + order[i].from * x->functions,
               x->functions * sizeof *weight);
    }
    espi_free(order);
    espi_free(weight);
    return ok;
}

esp_status espi_explanation_take(esp_explanation *x, const esp_explainer *e, size_t function, espi_ranking *side,
                                 esp_error *err)
{
    const size_t first = x->features;
    esp_status status = espi_ranking_join(side) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK && side->count > 1) qsort(side->item, side->count, sizeof *side->item, by_key);
    for (size_t i = 0; status == ESP_OK && i < side->count; i++)
        status = add_feature(x, e, function, &side->item[i], err);
    for (size_t i = 0, end; status == ESP_OK && i < side->count; i = end) {
        const double key = fabs(side->item[i].key);
        for (end = i + 1; end < side->count && key - fabs(side->item[end].key) <= ESPI_RANK_TIE * key;) end++;
        if (end > i + 1 && !order_equals(x, first + i, end - i)) status = espi_no_memory(err);
    }
    while (x->features - first > side->top) espi_free((char *)x->feature[--x->features].text);
    return status;
}

/* ------------------------------------------------------------------ accessors */

const char *esp_feature_kind_name(esp_feature_kind kind)
{
    static const char *const names[] = {"fragment", "word", "pattern", "value", "example"};
    return names[kind];
}

size_t esp_explanation_outputs(const esp_explanation *x) { return x->functions; }
const char *esp_explanation_output(const esp_explanation *x, size_t output) { return x->function[output].name; }
size_t esp_explanation_terms(const esp_explanation *x) { return x->terms; }
size_t esp_explanation_count(const esp_explanation *x) { return x->features; }
double esp_explanation_score(const esp_explanation *x, size_t output) { return x->function[output].score; }
double esp_explanation_bias(const esp_explanation *x, size_t output) { return x->function[output].bias; }
double esp_explanation_rest(const esp_explanation *x, size_t output) { return x->function[output].rest; }

const esp_feature *esp_explanation_feature(const esp_explanation *x, size_t index)
{
    return index < x->features ? &x->feature[index] : NULL;
}

double esp_explanation_weight(const esp_explanation *x, size_t index, size_t output)
{
    return x->weight[index * x->functions + output];
}

bool esp_explanation_is_exact(const esp_explanation *x, size_t output, double *bound)
{
    if (bound != NULL) *bound = x->function[output].bound;
    return x->function[output].exact;
}

double esp_explanation_term_score(const esp_explanation *x, size_t output, size_t term)
{
    return x->term_score != NULL ? x->term_score[output * x->terms + term] : 0.0;
}

size_t esp_explanation_nodes(const esp_explanation *x, size_t term)
{
    return x->shared != NULL ? x->shared[term].nodes : 0;
}

const esp_node *esp_explanation_node(const esp_explanation *x, size_t term, size_t node)
{
    return node < esp_explanation_nodes(x, term) ? &x->shared[term].node[node] : NULL;
}

double esp_explanation_share(const esp_explanation *x, size_t term, size_t node, size_t output)
{
    return node < esp_explanation_nodes(x, term) ? x->shared[term].share[node * x->functions + output] : 0.0;
}
