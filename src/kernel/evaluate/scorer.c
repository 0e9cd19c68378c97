/* Scorers: f(x) = sum_i c_i K(x_i, x), term by term.
 *
 * A kernel is a sum of weighted terms. A term that is one leaf, or the norm of one, and whose class folds, becomes
 * one structure (the annotated DAG, a weight vector), coefficients and norms of the x_i taken into it; any other
 * term multiplies its row with the coefficients. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/terms.h"

#include <math.h>
#include <string.h>

struct esp_scorer {
    const esp_kernel *kernel;
    const esp_dataset *examples;
    double *coefficient;
};

typedef struct score_worker {
    espi_workspace *workspace;
    double *score; /* of one term, per output */
    double *row;   /* kernel values with all examples */
} score_worker;

struct espi_scorer {
    espi_bound *bound; /* the examples with themselves; lends its side of the columns to every call */
    size_t examples, outputs;
    const double *coefficient;
    espi_term *term;
    void **folded; /* per term; NULL: by rows */
    size_t terms;
};

typedef struct scoring {
    const espi_scorer *scorer;
    const espi_bound *bound; /* data against examples */
    score_worker *score_worker;
    double *scores;
} scoring;

esp_status esp_scorer_new(const esp_kernel *kernel, const esp_dataset *examples, esp_scorer **out, esp_error *err)
{
    *out = NULL;
    esp_status status = espi_check_columns(kernel, examples, err);
    if (status != ESP_OK) return status;
    esp_scorer *s = espi_alloc_zero(1, sizeof *s);
    if (s != NULL) s->coefficient = espi_alloc_zero(examples->rows, sizeof *s->coefficient);
    if (s == NULL || s->coefficient == NULL) status = espi_no_memory(err);
    /* A copy: the caller may free the kernel. */
    esp_kernel *copy = NULL;
    if (status == ESP_OK) status = espi_kernel_copy(kernel, &copy, err);
    if (status != ESP_OK) {
        esp_scorer_free(s);
        return status;
    }
    s->kernel = copy;
    s->examples = examples;
    *out = s;
    return ESP_OK;
}

void esp_scorer_free(esp_scorer *s)
{
    if (s == NULL) return;
    esp_kernel_free((esp_kernel *)s->kernel);
    espi_free(s->coefficient);
    espi_free(s);
}

esp_status esp_scorer_add(esp_scorer *s, size_t example, double coefficient, esp_error *err)
{
    if (example >= s->examples->rows)
        return espi_fail(err, ESP_ERR_PARAM, "there is no example %zu; there are %zu", example + 1, s->examples->rows);
    if (!isfinite(s->coefficient[example] + coefficient))
        return espi_fail(err, ESP_ERR_PARAM, "the coefficient of example %zu is not a finite number", example + 1);
    s->coefficient[example] += coefficient;
    return ESP_OK;
}

static esp_status fold_term(const espi_scorer *j, size_t number, esp_error *err)
{
    const espi_term *t = &j->term[number];
    if (!t->leaf) return ESP_OK;
    const espi_part *part = j->bound->part[t->number];
    if (part->class->fold == NULL) return ESP_OK;
    const size_t n = j->examples, outputs = j->outputs;
    double *coefficient = espi_alloc(n, outputs * sizeof *coefficient);
    if (coefficient == NULL) return espi_no_memory(err);
    bool plain = true; /* norms that take wide numbers stay with the rows */
    for (size_t i = 0; i < n * outputs; i++) {
        const double norm = t->norm ? j->bound->norm[t->op].scale[ESPI_COLS][i / outputs] : 1.0;
        coefficient[i] = j->coefficient[i] * t->weight * norm;
        plain = plain && isfinite(coefficient[i]);
    }
    const esp_status status = plain ? part->class->fold(part, coefficient, outputs, &j->folded[number], err) : ESP_OK;
    espi_free(coefficient);
    return status;
}

/* The values of a term by its row: also the way out where folded numbers overflow. */
static esp_status score_by_row(const scoring *j, const espi_term *t, size_t i, score_worker *w, esp_error *err)
{
    if (w->row == NULL) w->row = espi_alloc(j->scorer->examples, sizeof *w->row);
    if (w->row == NULL) return espi_no_memory(err);
    const esp_status status = espi_bound_row(w->workspace, t->op, i, 0, j->scorer->examples, w->row, err);
    for (size_t k = 0; k < j->scorer->outputs; k++) w->score[k] = 0.0;
    for (size_t n = 0; status == ESP_OK && n < j->scorer->examples; n++)
        for (size_t k = 0; k < j->scorer->outputs; k++)
            w->score[k] += t->weight * j->scorer->coefficient[n * j->scorer->outputs + k] * w->row[n];
    return status;
}

static esp_status score_term(const scoring *j, size_t number, size_t i, score_worker *w, esp_error *err)
{
    const espi_term *t = &j->scorer->term[number];
    const void *folded = j->scorer->folded[number];
    if (folded == NULL) return score_by_row(j, t, i, w, err);
    const espi_part *part = j->bound->part[t->number];
    const esp_status status = part->class->score(part, folded, w->workspace->part[t->number], i, w->score, err);
    if (status != ESP_OK) return status;
    for (size_t k = 0; t->norm && k < j->scorer->outputs; k++) w->score[k] *= j->bound->norm[t->op].scale[ESPI_ROWS][i];
    return espi_all_finite(w->score, j->scorer->outputs) ? ESP_OK : score_by_row(j, t, i, w, err);
}

static esp_status start_worker(const scoring *j, score_worker *w, const esp_run *run, esp_error *err)
{
    if (w->workspace != NULL) return ESP_OK;
    w->score = espi_alloc(j->scorer->outputs, sizeof *w->score);
    return w->score == NULL ? espi_no_memory(err) : espi_workspace_new(j->bound, run, &w->workspace, err);
}

static esp_status score_example(void *context, size_t i, const espi_worker *thread, esp_error *err)
{
    const scoring *j = context;
    score_worker *w = &j->score_worker[thread->number];
    double *out = j->scores + i * j->scorer->outputs;
    esp_status status = start_worker(j, w, thread->run, err);
    for (size_t k = 0; k < j->scorer->outputs; k++) out[k] = 0.0;
    for (size_t t = 0; status == ESP_OK && t < j->scorer->terms; t++) {
        status = score_term(j, t, i, w, err);
        for (size_t k = 0; status == ESP_OK && k < j->scorer->outputs; k++) out[k] += w->score[k];
    }
    if (status == ESP_OK && !espi_all_finite(out, j->scorer->outputs))
        return espi_fail(err, ESP_ERR_RANGE, "the score of example %zu is too large for a number", i + 1);
    return status;
}

esp_status espi_scorer_new(const esp_kernel *kernel, const esp_dataset *examples, const double *coefficient,
                           size_t outputs, const esp_run *run, espi_scorer **out, esp_error *err)
{
    *out = NULL;
    espi_scorer *f = espi_alloc_zero(1, sizeof *f);
    if (f == NULL) return espi_no_memory(err);
    f->examples = examples->rows;
    f->outputs = outputs;
    esp_status status = espi_bind(kernel, examples, examples, run, &f->bound, err);
    f->term = espi_kernel_terms(kernel, &f->terms);
    if (f->term != NULL) f->folded = espi_alloc_zero(f->terms, sizeof *f->folded);
    if (status == ESP_OK && f->folded == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) status = espi_scorer_fold(f, coefficient, err);
    if (status == ESP_OK) *out = f;
    else espi_scorer_free(f);
    return status;
}

static void unfold(espi_scorer *f)
{
    for (size_t k = 0; f->folded != NULL && k < f->terms; k++) {
        if (f->folded[k] != NULL) f->bound->part[f->term[k].number]->class->folded_free(f->folded[k]);
        f->folded[k] = NULL;
    }
}

esp_status espi_scorer_fold(espi_scorer *f, const double *coefficient, esp_error *err)
{
    esp_status status = ESP_OK;
    unfold(f);
    f->coefficient = coefficient;
    for (size_t k = 0; status == ESP_OK && k < f->terms; k++) status = fold_term(f, k, err);
    return status;
}

void espi_scorer_free(espi_scorer *f)
{
    if (f == NULL) return;
    unfold(f);
    espi_free(f->term);
    espi_free(f->folded);
    espi_bound_free(f->bound);
    espi_free(f);
}

/* The ranks of a group score some examples each, and put them together. */
static esp_status score_all(scoring *j, size_t rows, const esp_run *run, esp_error *err)
{
    const size_t bytes = rows * j->scorer->outputs * sizeof *j->scores;
    if (espi_group_shares(run)) memset(j->scores, 0, bytes);
    const esp_status status = espi_group_deal(run, "scoring", rows, espi_group_block(run, rows), score_example, j, err);
    return status == ESP_OK ? espi_group_merge(run, j->scores, bytes, err) : status;
}

esp_status espi_scorer_score(const espi_scorer *scorer, const esp_dataset *data, const esp_run *run, double *scores,
                             esp_error *err)
{
    espi_bound *bound = NULL;
    const int workers = espi_worker_count(run, data->rows);
    const esp_run apart = espi_group_apart(run);
    esp_status status = espi_bind_to_cols(scorer->bound, data, &apart, &bound, err);
    scoring j = {.scorer = scorer, .bound = bound, .scores = scores};
    j.score_worker = espi_alloc_zero((size_t)workers, sizeof *j.score_worker);
    if (status == ESP_OK && j.score_worker == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) status = score_all(&j, data->rows, run, err);
    for (int i = 0; j.score_worker != NULL && i < workers; i++) {
        espi_workspace_free(j.score_worker[i].workspace);
        espi_free(j.score_worker[i].score);
        espi_free(j.score_worker[i].row);
    }
    espi_free(j.score_worker);
    espi_bound_free(bound);
    return status;
}

esp_status esp_scorer_score(const esp_scorer *scorer, const esp_dataset *data, const esp_run *run, double *scores,
                            esp_error *err)
{
    espi_scorer *folded = NULL;
    esp_status status = espi_scorer_new(scorer->kernel, scorer->examples, scorer->coefficient, 1, run, &folded, err);
    if (status == ESP_OK) status = espi_scorer_score(folded, data, run, scores, err);
    espi_scorer_free(folded);
    return status;
}
