/* What decides in the model: for each decision function the features with the largest weights. */
#include "base/parallel.h"
#include "base/status.h"
#include "report/report.h"

#include <string.h>

enum { LISTS = 120 }; /* beyond, a page would be hard to read; how many are left out is told */

static void add_terms(espi_text *t, const esp_explainer *x)
{
    espi_json_key(t, "terms");
    espi_json_open(t, '[');
    for (size_t i = 0; i < esp_explainer_terms(x); i++) {
        const char *reason = esp_explainer_reason(x, i), *column = esp_explainer_column(x, i);
        espi_json_open(t, '{');
        espi_json_text_of(t, "text", esp_explainer_term(x, i));
        espi_json_text_of(t, "kind", esp_feature_kind_name(esp_explainer_kind(x, i)));
        if (reason != NULL) espi_json_text_of(t, "reason", reason);
        if (column != NULL) espi_json_text_of(t, "column", column);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
}

static void add_feature(espi_text *t, const esp_feature *f)
{
    espi_json_open(t, '{');
    espi_json_key(t, "text");
    espi_drawn_text(t, f->text, strlen(f->text), ESPI_FEATURE_TEXT);
    espi_json_text_of(t, "kind", esp_feature_kind_name(f->kind));
    espi_json_count_of(t, "term", f->term);
    espi_drawn_number_of(t, "weight", f->weight);
    espi_json_count_of(t, "examples", f->examples);
    espi_drawn_number_of(t, "occurrences", f->occurrences);
    espi_json_close(t, '}');
}

/* A list of one decision function; `class` is what filters it, NULL for a regression. */
static void add_list(espi_text *t, const esp_explanation *x, size_t output, const char *class, int sign)
{
    double bound;
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", esp_explanation_output(x, output));
    if (class != NULL) espi_json_text_of(t, "class", class);
    espi_json_flag_of(t, "up", sign > 0);
    if (!esp_explanation_is_exact(x, output, &bound)) espi_drawn_number_of(t, "bound", bound);
    espi_json_key(t, "features");
    espi_json_open(t, '[');
    for (size_t i = 0; i < esp_explanation_count(x); i++) {
        const esp_feature *f = esp_explanation_feature(x, i);
        if (f->output == output) add_feature(t, f);
    }
    espi_json_close(t, ']');
    espi_json_close(t, '}');
}

static esp_status add_side(espi_report *r, const esp_explainer *explainer, const char *class, int sign, size_t *lists,
                           esp_error *unlisted, esp_error *err)
{
    const esp_explain_options options = {.class_name = class, .top = r->options.top, .sign = sign};
    esp_explanation *x = NULL;
    esp_error reason = {0};
    const esp_status status = esp_explain(explainer, &options, r->run, &x, &reason);
    if (status == ESP_ERR_RANGE) { /* weights that are no numbers: a page without them, which says so */
        *unlisted = reason;
        return ESP_OK;
    }
    if (status != ESP_OK && err != NULL) *err = reason;
    for (size_t o = 0; status == ESP_OK && o < esp_explanation_outputs(x); o++, ++*lists)
        add_list(&r->json, x, o, class, sign);
    esp_explanation_free(x);
    return status;
}

/* What speaks against one of two classes speaks for the other, so that one side of each is enough there. */
static esp_status add_lists(espi_report *r, const esp_explainer *explainer, esp_error *err)
{
    const esp_model *m = r->model;
    const bool both = m->classes != 2 && !m->one_vs_one;
    const size_t speakers = m->classes > 0 ? m->classes : 1;
    const size_t each = m->one_vs_one ? m->classes - 1 : both ? 2 : 1; /* lists for a class */
    size_t lists = 0, shown = 0;
    esp_error unlisted = {0};
    esp_status status = ESP_OK;
    espi_json_key(&r->json, "lists");
    espi_json_open(&r->json, '[');
    for (; status == ESP_OK && shown < speakers && (shown == 0 || lists + each <= LISTS); shown++) {
        const char *class = m->classes > 0 ? m->class_name[shown] : NULL;
        status = add_side(r, explainer, class, 1, &lists, &unlisted, err);
        if (status == ESP_OK && both) status = add_side(r, explainer, class, -1, &lists, &unlisted, err);
        if (status == ESP_OK)
            status = espi_progress(r->run, "looking for features", (double)(shown + 1) / (double)speakers, err);
    }
    espi_json_close(&r->json, ']');
    espi_json_count_of(&r->json, "left", speakers - shown);
    if (unlisted.message[0] != '\0') espi_json_text_of(&r->json, "unlisted", unlisted.message);
    return status;
}

esp_status espi_report_features(espi_report *r, const esp_explainer *explainer, esp_error *err)
{
    bool any = false;
    for (size_t i = 0; i < esp_explainer_terms(explainer); i++) any = any || esp_explainer_reason(explainer, i) == NULL;
    espi_json_key(&r->json, "features");
    espi_json_open(&r->json, '{');
    add_terms(&r->json, explainer);
    const esp_status status = any ? add_lists(r, explainer, err) : ESP_OK;
    espi_json_close(&r->json, '}');
    return status;
}
