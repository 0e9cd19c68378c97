/* The derivatives of every value of a Gram matrix, n^2 P numbers, for learners that ask for these matrices. Ours do not
 * (gradient.c): here every pair of examples is gone through by itself.
 *
 * For a row i, the adjoints a of all ops (reverse.h), which begin with 1, give dK_ij/dp as the sum of
 *
 *     leaf        a_ij d leaf_ij/dp
 *     w u         a_ij u_ij                where p is w
 *     norm(u)     -1/2 a_ij norm(u)_ij (s_i^2 du_ii/dp + s_j^2 du_jj/dp),  s = 1/sqrt(u(x, x)); 0 where i is j
 *
 * over the ops. The du_ii/dp are made first, as the same sum over the diagonal. Leaves are bound anew for each row, to
 * its example as their only column, so that a pair costs no more than its two examples. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "kernel/expression/hyper.h"
#include "kernel/evaluate/reverse.h"

#include <string.h>

typedef struct pair_worker {
    espi_reverse reverse;
    bool *row;        /* per example: false */
    double *gradient; /* of a pair, by place */
    esp_dataset *example;
    espi_part **part; /* per leaf: bound to the example */
    void **workspace;
} pair_worker;

typedef struct pair_gradients {
    const esp_dataset *data;
    const espi_bound *bound; /* symmetric */
    const esp_run *run;
    bool *needed;  /* per op (reverse.h) */
    bool *column;  /* per column: true */
    size_t *place; /* per op: of a weight, or of the leaf */
    size_t places;
    double **self; /* per norm: du_ii/dp, by example and place */
    size_t norm;   /* the one at hand */
    espi_reverse diagonal;
    espi_hyper *hyper;
    size_t hypers;
    pair_worker *pair_worker;
    int workers;
    double *out;
} pair_gradients;

static size_t count_of(const pair_gradients *j) { return j->bound->count[ESPI_ROWS]; }

/* ----------------------------------------------------------------- leaves */

static void release_leaves(const pair_gradients *j, pair_worker *w)
{
    for (size_t l = 0; l < j->bound->kernel->leaves; l++) {
        const espi_kernel_class *class = j->bound->kernel->leaf[l].class;
        if (w->workspace[l] != NULL) class->workspace_free(w->workspace[l]);
        if (w->part[l] != NULL) class->free(w->part[l]);
        w->workspace[l] = NULL;
        w->part[l] = NULL;
    }
    esp_dataset_free(w->example);
    w->example = NULL;
}

/* Binds the leaves that have derivatives to one example as their column and `rows`
 * (NULL: that example) as their rows. */
static esp_status bind_leaves(const pair_gradients *j, pair_worker *w, size_t example, const esp_dataset *rows,
                              esp_error *err)
{
    const esp_kernel *kernel = j->bound->kernel;
    w->row[example] = true;
    esp_status status = espi_dataset_select(j->data, j->column, w->row, &w->example, err);
    w->row[example] = false;
    if (rows == NULL) rows = w->example;
    for (size_t l = 0; status == ESP_OK && l < kernel->leaves; l++) {
        const espi_leaf *leaf = &kernel->leaf[l];
        const espi_column *row, *col;
        if (leaf->class->gradient == NULL) continue;
        status = espi_leaf_column(leaf, rows, &row, err);
        if (status == ESP_OK) status = espi_leaf_column(leaf, w->example, &col, err);
        if (status == ESP_OK) status = leaf->class->bind(leaf, row, col, NULL, &espi_alone, &w->part[l], err);
        if (status == ESP_OK) w->workspace[l] = leaf->class->workspace_new(w->part[l], NULL);
        if (status == ESP_OK && w->workspace[l] == NULL) status = espi_no_memory(err);
    }
    return status;
}

/* ------------------------------------------------------------------ pairs */

/* The part of a norm that comes from the self-values of its operand. */
static void add_selves(const pair_gradients *j, size_t op, size_t row, size_t col, double moved, double *gradient)
{
    const double *scale = j->bound->norm[op].scale[ESPI_COLS];
    const double *a = j->self[op] + row * j->places, *b = j->self[op] + col * j->places;
    const double of_row = 0.5 * moved * scale[row] * scale[row], of_col = 0.5 * moved * scale[col] * scale[col];
    for (size_t p = 0; p < j->places; p++) gradient[p] -= of_row * a[p] + of_col * b[p];
}

/* gradient += the derivatives of the pair (row, col) at `at` of the rows of `r`, whose adjoints are there; the leaves
 * are bound to `col`, and `leaf_row` is what they call `row`. */
static esp_status add_pair(const pair_gradients *j, const pair_worker *w, const espi_reverse *r, size_t op, size_t at,
                           size_t row, size_t col, size_t leaf_row, double *gradient, esp_error *err)
{
    const esp_kernel *kernel = j->bound->kernel;
    esp_status status = ESP_OK;
    for (size_t k = espi_first_op(kernel, op); status == ESP_OK && k <= op; k++) {
        const espi_op *o = &kernel->op[k];
        const double a = r->adjoint[k * r->width + at];
        if (a == 0.0) continue;
        if (o->kind == ESPI_LEAF_OP && w->part[o->left] != NULL)
            status = kernel->leaf[o->left].class->gradient(w->part[o->left], w->workspace[o->left], leaf_row, 0, 1, &a,
                                                           NULL, gradient + j->place[k], err);
        if (o->kind == ESPI_SCALE) gradient[j->place[k]] += a * r->value[o->left * r->width + at];
        if (o->kind == ESPI_NORM && row != col) add_selves(j, k, row, col, a * r->value[k * r->width + at], gradient);
    }
    return status;
}

static void set_ones(espi_reverse *r, size_t op, size_t n)
{
    for (size_t i = 0; i < n; i++) r->adjoint[op * r->width + i] = 1.0;
}

static esp_status one_self(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const pair_gradients *j = context;
    pair_worker *w = &j->pair_worker[thread->number];
    esp_status status = bind_leaves(j, w, item, NULL, err);
    if (status == ESP_OK)
        status = add_pair(j, w, &j->diagonal, j->bound->kernel->op[j->norm].left, item, item, item, 0,
                          j->self[j->norm] + item * j->places, err);
    release_leaves(j, w);
    return status;
}

static esp_status make_selves(pair_gradients *j, esp_error *err)
{
    const esp_kernel *kernel = j->bound->kernel;
    const espi_slice s = {.diagonal = true, .side = ESPI_COLS, .to = count_of(j)};
    esp_status status = espi_workspace_new(j->bound, j->run, &j->diagonal.workspace, err);
    if (status == ESP_OK && !espi_reverse_start(&j->diagonal, kernel->ops, s.to)) status = espi_no_memory(err);
    for (size_t k = 0; status == ESP_OK && k < kernel->ops; k++) {
        const size_t operand = kernel->op[k].left;
        if (kernel->op[k].kind != ESPI_NORM) continue;
        j->norm = k;
        j->self[k] = espi_alloc_zero(s.to, j->places * sizeof **j->self);
        status = j->self[k] == NULL ? espi_no_memory(err) : espi_forward(&j->diagonal, j->needed, operand, &s, err);
        if (status != ESP_OK) break;
        set_ones(&j->diagonal, operand, s.to);
        espi_backward_ops(&j->diagonal, operand, &s);
        status = espi_parallel(j->run, "preparing the gradient", s.to, one_self, j, err);
    }
    return status;
}

/* Puts the derivatives of a pair to their place and its mirror image. */
static esp_status hand_out(const pair_gradients *j, size_t row, size_t col, const double *gradient, esp_error *err)
{
    const size_t n = count_of(j);
    double *one = j->out + (row * n + col) * j->hypers, *other = j->out + (col * n + row) * j->hypers;
    for (size_t h = 0; h < j->hypers; h++) one[h] = other[h] = gradient[j->hyper[h].place];
    if (espi_all_finite(one, j->hypers)) return ESP_OK;
    return espi_fail(err, ESP_ERR_RANGE,
                     "a derivative of the kernel of examples %zu and %zu is too large for a number; take a smaller "
                     "lambda (or weight)",
                     row + 1, col + 1);
}

static esp_status one_row(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const pair_gradients *j = context;
    const esp_kernel *kernel = j->bound->kernel;
    const size_t last = kernel->ops - 1;
    const espi_slice s = {.row = item, .to = item + 1};
    pair_worker *w = &j->pair_worker[thread->number];
    espi_reverse *r = &w->reverse;
    esp_status status = ESP_OK;
    if (!espi_reverse_start(r, kernel->ops, count_of(j))) return espi_no_memory(err);
    if (r->workspace == NULL) status = espi_workspace_new(j->bound, thread->run, &r->workspace, err);
    if (status == ESP_OK) status = espi_forward(r, j->needed, last, &s, err);
    if (status != ESP_OK) return status;
    set_ones(r, last, s.to);
    espi_backward_ops(r, last, &s);
    status = bind_leaves(j, w, item, j->data, err);
    for (size_t i = 0; status == ESP_OK && i < s.to; i++) {
        memset(w->gradient, 0, j->places * sizeof *w->gradient);
        status = add_pair(j, w, r, last, i, i, item, i, w->gradient, err);
        if (status == ESP_OK) status = hand_out(j, i, item, w->gradient, err);
    }
    release_leaves(j, w);
    return status;
}

/* -------------------------------------------------------------------- pair_gradients */

static bool start_worker(const pair_gradients *j, pair_worker *w)
{
    const size_t leaves = j->bound->kernel->leaves;
    w->row = espi_alloc_zero(count_of(j), sizeof *w->row);
    w->gradient = espi_alloc(j->places, sizeof *w->gradient);
    w->part = espi_alloc_zero(leaves, sizeof *w->part);
    w->workspace = espi_alloc_zero(leaves, sizeof *w->workspace);
    return w->row != NULL && w->gradient != NULL && w->part != NULL && w->workspace != NULL;
}

static void end_worker(pair_worker *w)
{
    espi_reverse_end(&w->reverse);
    espi_free(w->row);
    espi_free(w->gradient);
    espi_free(w->part);
    espi_free(w->workspace);
}

static esp_status make_buffers(pair_gradients *j, esp_error *err)
{
    const esp_kernel *kernel = j->bound->kernel;
    j->places = espi_kernel_places(kernel);
    j->needed = espi_needed_values(kernel);
    j->column = espi_alloc(j->data->columns, sizeof *j->column);
    j->place = espi_alloc(kernel->ops, sizeof *j->place);
    j->self = espi_alloc_zero(kernel->ops, sizeof *j->self);
    j->workers = espi_worker_count(j->run, count_of(j));
    j->pair_worker = espi_alloc_zero((size_t)j->workers, sizeof *j->pair_worker);
    bool ok = j->needed != NULL && j->column != NULL && j->place != NULL && j->self != NULL && j->pair_worker != NULL;
    for (int i = 0; ok && i < j->workers; i++) ok = start_worker(j, &j->pair_worker[i]);
    if (!ok) return espi_no_memory(err);
    for (size_t c = 0; c < j->data->columns; c++) j->column[c] = true;
    for (size_t k = 0; k < kernel->ops; k++)
        j->place[k] =
            kernel->op[k].kind == ESPI_LEAF_OP ? espi_leaf_place(kernel, kernel->op[k].left) : espi_op_place(kernel, k);
    return ESP_OK;
}

static void free_buffers(pair_gradients *j)
{
    for (int i = 0; j->pair_worker != NULL && i < j->workers; i++) end_worker(&j->pair_worker[i]);
    for (size_t k = 0; j->self != NULL && k < j->bound->kernel->ops; k++) espi_free(j->self[k]);
    espi_reverse_end(&j->diagonal);
    espi_free(j->pair_worker);
    espi_free(j->self);
    espi_free(j->place);
    espi_free(j->column);
    espi_free(j->needed);
}

esp_status esp_gram_gradient(const esp_kernel *kernel, const esp_dataset *data, const esp_run *run, double *gradient,
                             esp_error *err)
{
    pair_gradients j = {.data = data, .run = run, .out = gradient};
    espi_bound *bound = NULL;
    esp_status status = espi_hypers_new(kernel, &j.hyper, &j.hypers, err);
    if (status != ESP_OK) return status;
    const double bytes = (double)data->rows * (double)data->rows * (double)j.hypers * sizeof *gradient;
    char need[32], limit[32];
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        status = espi_fail(
            err, ESP_ERR_MEMORY, "the derivatives of %zu x %zu values by %zu hyperparameters take %s; the limit is %s",
            data->rows, data->rows, j.hypers, espi_size_text(bytes, need), espi_size_text((double)run->memory, limit));
    if (status == ESP_OK) status = espi_bind(kernel, data, data, run, &bound, err);
    if (status == ESP_OK && j.hypers > 0 && data->rows > 0) {
        j.bound = bound;
        status = make_buffers(&j, err);
        if (status == ESP_OK) status = make_selves(&j, err);
        if (status == ESP_OK) status = espi_parallel(run, "computing the gradient", data->rows, one_row, &j, err);
        free_buffers(&j);
    }
    espi_bound_free(bound);
    espi_hypers_free(j.hyper, j.hypers);
    return status;
}
