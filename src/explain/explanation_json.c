/* Explanations as JSON Lines. Of a model a line per feature, of an example a line per decision function. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "data/writer.h"
#include "explain/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_key(espi_text *t, const char *key)
{
    if (t->size > 0 && t->bytes[t->size - 1] != '{') espi_text_string(t, ", ");
    espi_text_string(t, "\"");
    espi_text_string(t, key);
    espi_text_string(t, "\": ");
}

static void add_string(espi_text *t, const char *key, const char *value)
{
    add_key(t, key);
    espi_text_string(t, "\"");
    espi_text_json(t, value, strlen(value));
    espi_text_string(t, "\"");
}

static void add_number(espi_text *t, const char *key, double value)
{
    add_key(t, key);
    espi_text_number(t, value);
}

static void add_count(espi_text *t, const char *key, size_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", value);
    add_key(t, key);
    espi_text_string(t, digits);
}

static void add_exactness(espi_text *t, const espi_function *f)
{
    add_key(t, "exact");
    espi_text_string(t, f->exact ? "true" : "false");
    if (!f->exact && isfinite(f->bound)) add_number(t, "bound", f->bound);
}

static void add_feature(espi_text *t, const esp_explanation *x, size_t index)
{
    const esp_feature *f = &x->feature[index];
    add_string(t, "text", f->text);
    add_string(t, "kind", esp_feature_kind_name(f->kind));
    if (x->of_example) {
        add_number(t, "contribution", f->contribution);
        add_number(t, "value", f->value);
    }
    add_number(t, "weight", f->weight);
    add_count(t, "size", f->size);
    add_count(t, "examples", f->examples);
    add_number(t, "occurrences", f->occurrences);
    add_string(t, "term", x->term[f->term]);
}

/* "up": [{...}, {...}] */
static void add_side(espi_text *t, const esp_explanation *x, size_t output, const char *key, bool up)
{
    const char *comma = "";
    add_key(t, key);
    espi_text_string(t, "[");
    for (size_t i = 0; i < x->features; i++) {
        if (x->feature[i].output != output || (x->feature[i].contribution > 0.0) != up) continue;
        espi_text_string(t, comma);
        espi_text_string(t, "{");
        add_feature(t, x, i);
        espi_text_string(t, "}");
        comma = ", ";
    }
    espi_text_string(t, "]");
}

static void add_nodes(espi_text *t, const esp_explanation *x, size_t output, size_t term)
{
    const struct espi_shared *s = &x->shared[term];
    add_key(t, "nodes");
    espi_text_string(t, "[");
    for (size_t i = 0; i < s->nodes; i++) {
        espi_text_string(t, i > 0 ? ", {" : "{");
        add_string(t, "label", s->node[i].label);
        if (s->node[i].parent != SIZE_MAX) add_count(t, "parent", s->node[i].parent);
        add_key(t, "leaf");
        espi_text_string(t, s->node[i].leaf ? "true" : "false");
        add_number(t, "share", s->share[i * x->functions + output]);
        espi_text_string(t, "}");
    }
    espi_text_string(t, "]");
}

static void add_terms(espi_text *t, const esp_explanation *x, size_t output)
{
    add_key(t, "terms");
    espi_text_string(t, "[");
    for (size_t i = 0; i < x->terms; i++) {
        espi_text_string(t, i > 0 ? ", {" : "{");
        add_string(t, "term", x->term[i]);
        add_number(t, "score", x->term_score[output * x->terms + i]);
        if (x->shared != NULL && x->shared[i].nodes > 0) add_nodes(t, x, output, i);
        espi_text_string(t, "}");
    }
    espi_text_string(t, "]");
}

static void add_example(espi_text *t, const esp_explanation *x, size_t output)
{
    const espi_function *f = &x->function[output];
    add_count(t, "example", x->example + 1);
    add_string(t, "class", f->name);
    add_number(t, "score", f->score);
    add_number(t, "bias", f->bias);
    add_terms(t, x, output);
    add_side(t, x, output, "up", true);
    add_side(t, x, output, "down", false);
    add_number(t, "rest", f->rest);
    add_exactness(t, f);
}

esp_status esp_explanation_json(const esp_explanation *x, char **out, esp_error *err)
{
    espi_text text = {0};
    const size_t lines = x->of_example ? x->functions : x->features;
    *out = NULL;
    for (size_t i = 0; i < lines && !text.failed; i++) {
        espi_text_string(&text, "{");
        if (x->of_example) {
            add_example(&text, x, i);
        } else {
            add_string(&text, "class", x->function[x->feature[i].output].name);
            add_feature(&text, x, i);
            add_exactness(&text, &x->function[x->feature[i].output]);
        }
        espi_text_string(&text, "}\n");
    }
    if (lines == 0) espi_text_string(&text, "");
    *out = espi_text_take(&text);
    espi_text_free(&text);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}
