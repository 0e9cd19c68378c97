/* The functions of a kernel class for kernels by soft.h: binding, rows, self-values, single pairs and scores. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/tree/lanes.h"
#include "kernel/partial_tree/soft_dag.h"

#include <string.h>

static const espi_soft_part *view(const espi_part *part) { return (const espi_soft_part *)(const void *)part; }

static const espi_soft_trees *trees_of(const espi_soft_part *p, espi_side side)
{
    return side == ESPI_ROWS && p->row_trees != NULL ? p->row_trees : p->base->col_trees;
}

void espi_soft_clear(espi_soft_part *p)
{
    espi_soft_link_free(p->link);
    espi_soft_dag_free(p->dag);
    espi_soft_trees_free(p->row_trees);
    espi_soft_trees_free(p->col_trees);
    espi_free(p->link);
    espi_free(p->dag);
    espi_free(p->row_trees);
    espi_free(p->col_trees);
    espi_free(p->symbol);
}

/* ------------------------------------------------------------------ bind */

/* One numbering of the symbols of both sides: those of the columns first. */
static bool share_symbols(espi_soft_part *p)
{
    if (p->rows == p->cols) return true;
    p->symbol = espi_symbols_map(&p->rows->symbols, &p->cols->symbols);
    if (p->symbol == NULL) return false;
    uint32_t next = (uint32_t)p->cols->symbols.count;
    for (size_t i = 0; i < p->rows->symbols.count; i++)
        if (p->symbol[i] == ESPI_NO_SYMBOL) p->symbol[i] = next++;
    return true;
}

static bool make_trees(const espi_soft_part *p, const espi_forest *forest, const uint32_t *symbol,
                       espi_soft_trees **out)
{
    espi_soft_builder builder = {0};
    *out = espi_alloc_zero(1, sizeof **out);
    const bool ok =
        *out != NULL && espi_soft_trees_make(*out, p->rules, forest, symbol, forest->root, forest->roots, &builder);
    espi_soft_builder_free(&builder);
    return ok;
}

esp_status espi_soft_bind(espi_soft_part *p, const espi_column *rows, const espi_column *cols,
                          const espi_soft_part *like, esp_error *err)
{
    p->base = like != NULL ? like : p;
    p->rows = &rows->trees;
    p->cols = &cols->trees;
    bool ok = share_symbols(p);
    if (ok && like == NULL) {
        ok = make_trees(p, p->cols, NULL, &p->col_trees);
        if (ok) p->dag = espi_alloc_zero(1, sizeof *p->dag);
        ok = ok && p->dag != NULL && espi_soft_dag_make(p->dag, p->col_trees);
    }
    if (ok && p->rows != p->cols) ok = make_trees(p, p->rows, p->symbol, &p->row_trees);
    if (ok) p->link = espi_alloc_zero(1, sizeof *p->link);
    ok = ok && p->link != NULL && espi_soft_link_make(p->link, p->rules, trees_of(p, ESPI_ROWS), p->base->dag);
    return ok ? ESP_OK : espi_no_memory(err);
}

void *espi_soft_workspace_new(const espi_part *part, const esp_run *run)
{
    const espi_soft_part *p = view(part);
    return espi_soft_matcher_new(p->rules, p->base->dag, p->link, run);
}

void espi_soft_workspace_free(void *workspace) { espi_soft_matcher_free(workspace); }

/* ---------------------------------------------------------------- values */

esp_status espi_soft_row(const espi_part *part, void *workspace, size_t row, size_t from, size_t to, double *out,
                         esp_error *err)
{
    const espi_soft_plan plan = espi_soft_plan_of(trees_of(view(part), ESPI_ROWS), row);
    memset(out, 0, (to - from) * sizeof *out);
    return espi_soft_match_row(workspace, &plan, from, to, 1, out, err);
}

static esp_status self_values(const espi_soft_part *p, espi_side side, const esp_run *run, size_t lanes, double *out,
                              esp_error *err)
{
    const bool rows = side == ESPI_ROWS && p->row_trees != NULL;
    return espi_soft_self_values(p->rules, trees_of(p, side), rows ? p->rows : p->cols, rows ? p->symbol : NULL, run,
                                 lanes, out, err);
}

esp_status espi_soft_diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    return self_values(view(part), side, run, 1, out, err);
}

esp_status espi_soft_pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j,
                          espi_wide *value, esp_error *err)
{
    const espi_soft_part *p = view(part);
    const espi_soft_plan a = espi_soft_plan_of(trees_of(p, side_i), i), b = espi_soft_plan_of(trees_of(p, side_j), j);
    return espi_soft_pair_wide(p->rules, &a, &b, value) ? ESP_OK : espi_no_memory(err);
}

/* ------------------------------------------------------------- gradients */

esp_status espi_soft_gradient(const espi_part *part, void *workspace, size_t row, size_t from, size_t to,
                              const double *weight, double *gradient, esp_error *err)
{
    const espi_soft_plan plan = espi_soft_plan_of(trees_of(view(part), ESPI_ROWS), row);
    return espi_soft_match_gradient(workspace, &plan, from, to, weight, gradient, err);
}

esp_status espi_soft_gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                       double *gradient, esp_error *err)
{
    const espi_soft_part *p = view(part);
    const size_t trees = trees_of(p, side)->trees, lanes = p->rules->lanes;
    double *value = espi_alloc(trees, lanes * sizeof *value);
    const esp_status status = value == NULL ? espi_no_memory(err) : self_values(p, side, run, lanes, value, err);
    if (status == ESP_OK) espi_lanes_weigh(value, trees, lanes, weight, gradient);
    espi_free(value);
    return status;
}

/* ---------------------------------------------------------------- scorer */

void espi_soft_folded_free(void *folded)
{
    espi_soft_weights *w = folded;
    if (w == NULL) return;
    espi_free(w->vertex);
    espi_free(w->atom);
    espi_free(w);
}

esp_status espi_soft_fold(const espi_part *part, const double *coefficient, size_t outputs, void **folded,
                          esp_error *err)
{
    const espi_soft_dag *d = view(part)->base->dag;
    const espi_soft_trees *t = d->trees;
    *folded = NULL;
    espi_soft_weights *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL) return espi_no_memory(err);
    w->outputs = outputs;
    w->vertex = espi_alloc_zero(d->vertices, outputs * sizeof *w->vertex);
    w->atom = espi_alloc_zero(t->atom.count, outputs * sizeof *w->atom);
    if (w->vertex == NULL || w->atom == NULL) {
        espi_soft_folded_free(w);
        return espi_no_memory(err);
    }
    for (size_t s = 0; s < t->shapes; s++) {
        const struct espi_soft_group *q = &d->shape[s];
        for (size_t i = q->at; i < q[1].at; i++)
            for (size_t k = 0; k < outputs; k++)
                w->vertex[k * d->vertices + q->vertex + d->at[i].item] += coefficient[d->at[i].tree * outputs + k];
    }
    for (size_t i = 0; i < t->trees; i++)
        for (size_t a = t->tree[i].atom; a < t->tree[i + 1].atom; a++)
            for (size_t k = 0; k < outputs; k++)
                w->atom[k * t->atom.count + t->at[a].atom] += t->at[a].count * coefficient[i * outputs + k];
    *folded = w;
    return ESP_OK;
}

esp_status espi_soft_score(const espi_part *part, const void *folded, void *workspace, size_t row, double *score,
                           esp_error *err)
{
    const espi_soft_plan plan = espi_soft_plan_of(trees_of(view(part), ESPI_ROWS), row);
    return espi_soft_match_score(workspace, &plan, folded, score, err);
}
