/* Explanations as JSON Lines. Of a model a line per feature, of an example a line per decision function. */
#include "base/json.h"
#include "base/status.h"
#include "explain/explain.h"

#include <math.h>

static void add_exactness(espi_text *t, const espi_function *f)
{
    espi_json_flag_of(t, "exact", f->exact);
    if (!f->exact && isfinite(f->bound)) espi_json_number_of(t, "bound", f->bound);
}

static void add_feature(espi_text *t, const esp_explanation *x, size_t index)
{
    const esp_feature *f = &x->feature[index];
    espi_json_text_of(t, "text", f->text);
    espi_json_text_of(t, "kind", esp_feature_kind_name(f->kind));
    if (x->of_example) {
        espi_json_number_of(t, "contribution", f->contribution);
        espi_json_number_of(t, "value", f->value);
    }
    espi_json_number_of(t, "weight", f->weight);
    espi_json_count_of(t, "size", f->size);
    espi_json_count_of(t, "examples", f->examples);
    espi_json_number_of(t, "occurrences", f->occurrences);
    espi_json_text_of(t, "term", x->term[f->term]);
}

/* "up": [{...}, {...}] */
static void add_side(espi_text *t, const esp_explanation *x, size_t output, const char *key, bool up)
{
    espi_json_key(t, key);
    espi_json_open(t, '[');
    for (size_t i = 0; i < x->features; i++) {
        if (x->feature[i].output != output || (x->feature[i].contribution > 0.0) != up) continue;
        espi_json_open(t, '{');
        add_feature(t, x, i);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_nodes(espi_text *t, const esp_explanation *x, size_t output, size_t term)
{
    const struct espi_shared *s = &x->shared[term];
    espi_json_key(t, "nodes");
    espi_json_open(t, '[');
    for (size_t i = 0; i < s->nodes; i++) {
        espi_json_open(t, '{');
        espi_json_text_of(t, "label", s->node[i].label);
        if (s->node[i].parent != SIZE_MAX) espi_json_count_of(t, "parent", s->node[i].parent);
        espi_json_flag_of(t, "leaf", s->node[i].leaf);
        espi_json_number_of(t, "share", s->share[i * x->functions + output]);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_terms(espi_text *t, const esp_explanation *x, size_t output)
{
    espi_json_key(t, "terms");
    espi_json_open(t, '[');
    for (size_t i = 0; i < x->terms; i++) {
        espi_json_open(t, '{');
        espi_json_text_of(t, "term", x->term[i]);
        espi_json_number_of(t, "score", x->term_score[output * x->terms + i]);
        if (x->shared != NULL && x->shared[i].nodes > 0) add_nodes(t, x, output, i);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_example(espi_text *t, const esp_explanation *x, size_t output)
{
    const espi_function *f = &x->function[output];
    espi_json_count_of(t, "example", x->example + 1);
    espi_json_text_of(t, "class", f->name);
    espi_json_number_of(t, "score", f->score);
    espi_json_number_of(t, "bias", f->bias);
    add_terms(t, x, output);
    add_side(t, x, output, "up", true);
    add_side(t, x, output, "down", false);
    espi_json_number_of(t, "rest", f->rest);
    add_exactness(t, f);
}

esp_status esp_explanation_json(const esp_explanation *x, char **out, esp_error *err)
{
    espi_text text = {0};
    const size_t lines = x->of_example ? x->functions : x->features;
    *out = NULL;
    for (size_t i = 0; i < lines && !text.failed; i++) {
        espi_json_open(&text, '{');
        if (x->of_example) {
            add_example(&text, x, i);
        } else {
            espi_json_text_of(&text, "class", x->function[x->feature[i].output].name);
            add_feature(&text, x, i);
            add_exactness(&text, &x->function[x->feature[i].output]);
        }
        espi_json_close(&text, '}');
        espi_text_string(&text, "\n");
    }
    if (lines == 0) espi_text_string(&text, "");
    *out = espi_text_take(&text);
    espi_text_free(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}
