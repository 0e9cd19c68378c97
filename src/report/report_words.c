/* The words of an example whose part of the score is a sum over them: linear on a column of sequences, where
 *
 *     contribution(u) = s(x) w(u) v_u(x)      v_u: how often x has the word u, s: 1, or 1/sqrt of the sum of all v_u^2
 *
 * Two terms on one column add up. Where another kernel works on the column too, what a word contributes cannot be told
 * by it alone, and there is nothing here. */
#include "base/alloc.h"
#include "base/status.h"
#include "explain/explain.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

typedef struct words {
    const espi_column *column;
    size_t example, count, functions; /* `count` tokens from the first one on */
    double *share;                    /* token i, function k: share[i * functions + k] */
} words;

static const espi_symbol *word_of(const espi_sequences *s, size_t token)
{
    return &s->symbols.symbol[s->factor[s->token[token]]];
}

static const espi_column *column_of(const espi_report *r, const esp_explainer *e, size_t term)
{
    const espi_column *column = NULL;
    if (!e->term[term].leaf) return NULL;
    const espi_leaf *leaf = &e->program[0].kernel->leaf[e->term[term].number];
    return espi_leaf_column(leaf, r->data, &column, NULL) == ESP_OK ? column : NULL;
}

static bool is_sum(const espi_report *r, const esp_explainer *e, const espi_column *column)
{
    bool any = false;
    for (size_t i = 0; i < r->model->support->columns; i++) /* nodes of trees have shares of their own */
        if (r->model->support->column[i].type == ESP_COLUMN_TREE) return false;
    for (size_t t = 0; t < esp_explainer_terms(e); t++) {
        const espi_column *of = column_of(r, e, t);
        if (of == NULL) return false;
        if (of != column) continue;
        if (esp_explainer_kind(e, t) != ESP_FEATURE_VALUE) return false;
        any = true;
    }
    return any;
}

static double value_of(const espi_bag *bag, uint32_t feature)
{
    const espi_sparse_row row = espi_bag_row(bag, 0);
    for (size_t i = 0; i < row.entries; i++)
        if (row.feature[i] == feature) return row.value[i];
    return 0.0;
}

/* Adds the contributions in one term of one function. */
static bool add_term(const words *w, const espi_weight_list *l, bool norm, double sign, size_t output, size_t function)
{
    const espi_sequences *s = &w->column->sequences;
    espi_bag_reader reader = {.names = (espi_symbols *)&l->names}; /* only looked up, as it may not grow */
    espi_bag bag = {0};
    espi_text lower = {0};
    bool ok = espi_bag_read(&reader, w->column, w->example, &bag);
    const double scale = !ok ? 0.0 : !norm ? sign : bag.square[0] > 0.0 ? sign / sqrt(bag.square[0]) : 0.0;
    for (size_t i = 0; ok && i < w->count; i++) {
        const espi_symbol *word = word_of(s, s->row[w->example] + i);
        lower.size = 0;
        espi_text_add(&lower, word->text, word->size);
        ok = !lower.failed;
        if (!ok || word->size == 0) continue;
        espi_lower_case(lower.bytes, lower.size);
        const uint32_t u = espi_symbols_find(&l->names, lower.bytes, lower.size);
        if (u != ESPI_NO_SYMBOL)
            w->share[i * w->functions + function] += scale * value_of(&bag, u) * l->weight[u * l->outputs + output];
    }
    espi_text_free(&lower);
    espi_bag_reader_free(&reader);
    espi_bag_free(&bag);
    return ok;
}

static bool add_shares(const espi_report *r, const esp_explainer *e, const words *w, const espi_shown *shown)
{
    bool ok = true;
    for (size_t k = 0; k < w->functions; k++) {
        const espi_function *f = &shown[k].of->function[shown[k].output];
        const espi_program *p = espi_program_of(e, f->output);
        for (size_t t = 0; ok && t < e->terms; t++)
            if (column_of(r, e, t) == w->column)
                ok = add_term(w, &p->source[t].listed, e->term[t].norm, f->sign, f->output - p->first, k);
    }
    return ok;
}

/* [word, contribution in the first function, ...] */
static void write_words(espi_text *t, const words *w)
{
    const espi_sequences *s = &w->column->sequences;
    espi_json_key(t, "words");
    espi_json_open(t, '[');
    for (size_t i = 0; i < w->count; i++) {
        const espi_symbol *word = word_of(s, s->row[w->example] + i);
        espi_json_open(t, '[');
        espi_drawn_text(t, word->text, word->size, ESPI_EXAMPLE_TEXT);
        for (size_t k = 0; k < w->functions; k++) espi_drawn_number(t, w->share[i * w->functions + k]);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
}

esp_status espi_report_words(espi_report *r, const esp_explainer *e, size_t example, const espi_column *column,
                             const espi_shown *shown, size_t functions, esp_error *err)
{
    const espi_sequences *s = &column->sequences;
    words w = {.column = column, .example = example, .functions = functions};
    if (functions == 0 || column->type != ESP_COLUMN_SEQUENCE || !is_sum(r, e, column)) return ESP_OK;
    size_t bytes = 0;
    while (s->row[example] + w.count < s->row[example + 1] && bytes <= ESPI_EXAMPLE_TEXT)
        bytes += word_of(s, s->row[example] + w.count++)->size + (size_t)1;
    w.share = espi_alloc_zero(w.count, functions * sizeof *w.share);
    const bool ok = w.share != NULL && add_shares(r, e, &w, shown);
    if (ok) write_words(&r->json, &w);
    espi_free(w.share);
    return ok ? ESP_OK : espi_no_memory(err);
}
