/* Gradients of L = sum_ij W_ij K_ij in all hyperparameters at once, by reverse differentiation of the kernel's program.
 *
 * For one row, the values of all ops are computed and kept; then adjoints a = dL/d(value) go from the last op down:
 *
 *     u + v       a_u = a             a_v = a
 *     u * v       a_u = a v           a_v = a u
 *     w u         a_u = w a           dL/dw += sum a u
 *     u^p         a_u = a p u^(p-1)
 *     norm(u)     a_u = a s_i s_j     with s = 1/sqrt(u(x, x)); and of the self-values: a_u(i,i) -= a norm(u)_ij s_i^2
 * / 2, and the same for j
 *
 * Leaves take it from there (kernel.h). Without products and powers no adjoint asks for a value: the leaves then come
 * first, and give their values along with their gradients. The self-values of a norm get their adjoints from all rows,
 * and are gone through when these are done. Rows go in chunks whose number does not depend on that of the threads; each
 * has sums of its own. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/hyper.h"
#include "kernel/evaluate/reverse.h"

#include <string.h>

enum {
    CHUNKS = 48,
    BLOCK = 16 /* rows of weights that are asked for at once */
};

typedef struct gradient_sums {
    const espi_bound *bound;
    const double *weight;     /* NULL: ask for them */
    espi_weight_rows weights; /* ... here */
    void *context;
    double **block;     /* per worker: BLOCK rows of them; NULL: none are asked for */
    const double *gram; /* NULL: not known */
    double **turned;    /* per worker: BLOCK columns of its upper triangle, as rows; NULL: none are read */
    const esp_run *run;
    bool *needed;          /* per op: its values are */
    bool linear;           /* no adjoint asks for a value */
    espi_reverse *reverse; /* per worker */
    espi_sums *chunk;
    size_t chunks, rows; /* so many rows each */
} gradient_sums;

bool *espi_needed_values(const esp_kernel *kernel)
{
    bool *needed = espi_alloc_zero(kernel->ops, sizeof *needed);
    for (size_t k = kernel->ops; needed != NULL && k-- > 0;) {
        const espi_op *o = &kernel->op[k];
        if (o->kind == ESPI_LEAF_OP) continue;
        if (o->kind == ESPI_NORM) needed[k] = true;
        const bool binary = o->kind == ESPI_SUM || o->kind == ESPI_PRODUCT;
        const bool below = needed[k] || o->kind != ESPI_SUM;
        needed[o->left] = below;
        if (binary) needed[o->right] = below;
    }
    return needed;
}

static bool is_linear(const esp_kernel *kernel)
{
    for (size_t k = 0; k < kernel->ops; k++)
        if (kernel->op[k].kind == ESPI_PRODUCT || kernel->op[k].kind == ESPI_POWER) return false;
    return true;
}

/* Whether the way back over rows needs no more values than the Gram matrix has: it is a norm, which asks for its own,
 * under weights perhaps. */
static bool gram_suffices(const gradient_sums *j)
{
    const espi_op *op = j->bound->kernel->op, *last = &op[j->bound->kernel->ops - 1];
    while (last->kind == ESPI_SCALE && last->number != 0.0) last = &op[last->left];
    return j->gram != NULL && last->kind == ESPI_NORM && op[last->left].kind == ESPI_LEAF_OP;
}

bool espi_reverse_start(espi_reverse *r, size_t ops, size_t width)
{
    if (r->value != NULL && r->width >= width) return true;
    espi_free(r->value);
    espi_free(r->adjoint);
    r->value = r->adjoint = NULL;
    if (width > 0 && ops > SIZE_MAX / width) return false;
    r->value = espi_alloc(ops * width + 1, sizeof *r->value);
    r->adjoint = espi_alloc(ops * width + 1, sizeof *r->adjoint);
    r->width = width;
    return r->value != NULL && r->adjoint != NULL;
}

void espi_reverse_end(espi_reverse *r)
{
    espi_workspace_free(r->workspace);
    espi_free(r->value);
    espi_free(r->adjoint);
}

/* What an op that is no leaf makes of the values of its operands. */
static void apply(espi_reverse *r, size_t op, const espi_slice *s)
{
    const espi_bound *b = r->workspace->bound;
    const espi_op *o = &b->kernel->op[op];
    double *v = r->value + op * r->width;
    memcpy(v, r->value + o->left * r->width, (s->to - s->from) * sizeof *v);
    espi_slice_apply(b, op, s, r->value + o->right * r->width, v);
}

/* espi_forward; `leaves`: those of the leaves are to be computed too. */
static esp_status forward(espi_reverse *r, const bool *needed, bool leaves, size_t op, const espi_slice *s,
                          esp_error *err)
{
    const esp_kernel *kernel = r->workspace->bound->kernel;
    for (size_t k = espi_first_op(kernel, op); k <= op; k++) {
        const espi_op *o = &kernel->op[k];
        double *v = r->value + k * r->width;
        esp_status status = ESP_OK;
        if (!needed[k]) continue;
        if (o->kind != ESPI_LEAF_OP) apply(r, k, s);
        else if (leaves) status = espi_slice_leaf(r->workspace, o->left, s, v, err);
        if (status != ESP_OK) return status;
        if (!espi_all_finite(v, s->to - s->from))
            return espi_fail(
                err, ESP_ERR_RANGE,
                "the kernel is too large for a number where its gradient is wanted; take a smaller lambda (or weight)");
    }
    return ESP_OK;
}

esp_status espi_forward(espi_reverse *r, const bool *needed, size_t op, const espi_slice *s, esp_error *err)
{
    return forward(r, needed, true, op, s, err);
}

/* The adjoints of a norm's operand. Self-values are always 1 after the norm. */
static void back_norm(const espi_bound *b, size_t op, const espi_slice *s, const double *a, double *left)
{
    const size_t n = s->to - s->from;
    memset(left, 0, n * sizeof *left);
    if (s->diagonal) return;
    const double *scale = b->norm[op].scale[ESPI_COLS] + s->from, mine = b->norm[op].scale[ESPI_ROWS][s->row];
    for (size_t j = 0; j < n; j++)
        if (!b->symmetric || s->from + j != s->row) left[j] = a[j] * mine * scale[j];
}

void espi_backward_ops(espi_reverse *r, size_t op, const espi_slice *s)
{
    const espi_bound *b = r->workspace->bound;
    const size_t n = s->to - s->from;
    for (size_t k = op + 1, first = espi_first_op(b->kernel, op); k-- > first;) {
        const espi_op *o = &b->kernel->op[k];
        const double *a = r->adjoint + k * r->width;
        double *left = r->adjoint + o->left * r->width, *right = r->adjoint + o->right * r->width;
        const double *u = r->value + o->left * r->width, *v = r->value + o->right * r->width;
        switch (o->kind) {
        case ESPI_LEAF_OP: break;
        case ESPI_SUM:
            memcpy(left, a, n * sizeof *left);
            memcpy(right, a, n * sizeof *right);
            break;
        case ESPI_PRODUCT:
            for (size_t j = 0; j < n; j++) left[j] = a[j] * v[j];
            for (size_t j = 0; j < n; j++) right[j] = a[j] * u[j];
            break;
        case ESPI_SCALE:
            for (size_t j = 0; j < n; j++) left[j] = o->number * a[j];
            break;
        case ESPI_POWER:
            for (size_t j = 0; j < n; j++) left[j] = a[j] * o->number * espi_power(u[j], (unsigned)o->number - 1);
            break;
        case ESPI_NORM: back_norm(b, k, s, a, left); break;
        }
    }
}

/* The gradient of a leaf from its adjoints; `value` NULL: its values are not asked for. */
static esp_status back_leaf(const espi_reverse *r, size_t leaf, const espi_slice *s, const double *a, double *value,
                            double *gradient, esp_error *err)
{
    const espi_part *part = r->workspace->bound->part[leaf];
    double *at = gradient + espi_leaf_place(r->workspace->bound->kernel, leaf);
    if (part->class->gradient == NULL)
        return value == NULL ? ESP_OK : espi_slice_leaf(r->workspace, leaf, s, value, err);
    if (s->diagonal) return part->class->gradient_diagonal(part, s->side, r->workspace->run, a, at, err);
    return part->class->gradient(part, r->workspace->part[leaf], s->row, s->from, s->to, a, value, at, err);
}

/* The same of all leaves up to `op`; `needed` NULL: no values are asked for. */
static esp_status back_leaves(const espi_reverse *r, const bool *needed, size_t op, const espi_slice *s,
                              double *gradient, esp_error *err)
{
    const esp_kernel *kernel = r->workspace->bound->kernel;
    esp_status status = ESP_OK;
    for (size_t k = espi_first_op(kernel, op); status == ESP_OK && k <= op; k++) {
        double *value = needed != NULL && needed[k] ? r->value + k * r->width : NULL;
        if (kernel->op[k].kind == ESPI_LEAF_OP)
            status = back_leaf(r, kernel->op[k].left, s, r->adjoint + k * r->width, value, gradient, err);
    }
    return status;
}

/* What the adjoints `a` of a norm, whose values are v, do to its self-values. */
static void add_selves(const espi_bound *b, size_t op, const espi_slice *s, const double *a, const double *v,
                       espi_selves *self)
{
    if (s->diagonal) return;
    const double *scale = b->norm[op].scale[ESPI_COLS] + s->from, mine = b->norm[op].scale[ESPI_ROWS][s->row];
    double sum = 0.0;
    for (size_t j = 0; j < s->to - s->from; j++) {
        if (b->symmetric && s->from + j == s->row) continue;
        const double moved = a[j] * v[j];
        self->side[ESPI_COLS][s->from + j] -= 0.5 * moved * scale[j] * scale[j];
        sum += moved;
    }
    self->side[b->symmetric ? ESPI_COLS : ESPI_ROWS][s->row] -= 0.5 * sum * mine * mine;
}

/* The derivatives of weights, and the adjoints of self-values, from the adjoints and values of all ops. */
static void add_sums(const espi_reverse *r, size_t op, const espi_slice *s, espi_sums *sums)
{
    const espi_bound *b = r->workspace->bound;
    for (size_t k = espi_first_op(b->kernel, op); k <= op; k++) {
        const espi_op *o = &b->kernel->op[k];
        const double *a = r->adjoint + k * r->width, *u = r->value + o->left * r->width;
        double sum = 0.0;
        if (o->kind == ESPI_NORM) add_selves(b, k, s, a, r->value + k * r->width, &sums->self[k]);
        if (o->kind != ESPI_SCALE) continue;
        for (size_t j = 0; j < s->to - s->from; j++) sum += a[j] * u[j];
        sums->gradient[espi_op_place(b->kernel, k)] += sum;
    }
}

/* Columns begin .. end - 1 of the Gram matrix above its diagonal become rows, tile by tile: a column by itself would
 * ask for a line of the cache for every number. */
static void turn_columns(const double *gram, size_t columns, size_t begin, size_t end, double *turned)
{
    for (size_t first = 0; first < end; first += BLOCK)
        for (size_t k = begin; k < end; k++)
            for (size_t i = first; i < first + BLOCK && i < k; i++)
                turned[(k - begin) * columns + i] = gram[i * columns + k];
}

/* The values of a row in the Gram matrix. Of a symmetric one only what is above the diagonal is there: the row is a
 * column, turned along with those after it, up to `end`. */
static const double *values_of(const gradient_sums *j, int worker, size_t row, size_t first, size_t end)
{
    const size_t columns = j->bound->count[ESPI_COLS];
    if (j->turned == NULL) return j->gram != NULL ? j->gram + row * columns : NULL;
    const size_t begin = row - (row - first) % BLOCK, last = begin + BLOCK < end ? begin + BLOCK : end;
    if (row == begin) turn_columns(j->gram, columns, begin, last, j->turned[worker]);
    return j->turned[worker] + (row - begin) * columns;
}

/* The values of weights and of the norm below them, from those of the Gram matrix. */
static void take_values(const gradient_sums *j, espi_reverse *r, const double *gram, const espi_slice *s)
{
    const espi_bound *b = j->bound;
    const espi_op *op = b->kernel->op;
    const size_t last = b->kernel->ops - 1;
    double *v = r->value + last * r->width, weight = 1.0;
    size_t k = last;
    for (; op[k].kind == ESPI_SCALE; k = op[k].left) weight *= op[k].number;
    memcpy(v, gram, (b->symmetric ? s->row : s->to) * sizeof *v);
    if (b->symmetric) v[s->row] = b->norm[k].self[ESPI_ROWS][s->row].m > 0.0 ? weight : 0.0;
    for (k = last; op[k].kind == ESPI_SCALE; k = op[k].left)
        for (size_t i = 0; i < s->to; i++)
            r->value[op[k].left * r->width + i] = r->value[k * r->width + i] / op[k].number;
}

/* From the adjoints of the last op to all sums. */
static esp_status back_row(const gradient_sums *j, espi_reverse *r, const double *gram, const espi_slice *s,
                           espi_sums *sums, esp_error *err)
{
    const size_t last = j->bound->kernel->ops - 1;
    const bool suffices = gram_suffices(j), late = j->linear && !suffices;
    esp_status status = ESP_OK;
    if (suffices) take_values(j, r, gram, s);
    else if (!late) status = espi_forward(r, j->needed, last, s, err);
    if (status != ESP_OK) return status;
    espi_backward_ops(r, last, s);
    status = back_leaves(r, late ? j->needed : NULL, last, s, sums->gradient, err);
    if (status == ESP_OK && late) status = forward(r, j->needed, false, last, s, err);
    if (status == ESP_OK) add_sums(r, last, s, sums);
    return status;
}

static esp_status one_row(const gradient_sums *j, espi_reverse *r, size_t row, const double *weight, const double *gram,
                          espi_sums *sums, esp_error *err)
{
    const espi_bound *b = j->bound;
    const espi_slice s = {.row = row, .to = b->symmetric ? row + 1 : b->count[ESPI_COLS]};
    double *a = r->adjoint + (b->kernel->ops - 1) * r->width;
    memcpy(a, weight, s.to * sizeof *a);
    for (size_t k = 0; b->symmetric && k < row; k++) a[k] *= 2.0; /* the upper triangle is as the lower */
    return back_row(j, r, gram, &s, sums, err);
}

/* The weights of a row; those of the rows after it, up to `end`, are asked for at the same time. */
static const double *weights_of(const gradient_sums *j, int worker, size_t row, size_t first, size_t end)
{
    if (j->weight != NULL) return j->weight + row * j->bound->count[ESPI_COLS];
    const size_t begin = row - (row - first) % BLOCK, last = begin + BLOCK < end ? begin + BLOCK : end;
    if (row == begin) j->weights(j->context, begin, last, last, j->block[worker]);
    return j->block[worker] + (row - begin) * last;
}

/* The last chunk first: below a diagonal it is the largest, and nobody has to wait for it in the end. */
static esp_status one_chunk(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const gradient_sums *j = context;
    espi_reverse *r = &j->reverse[worker->number];
    const size_t rows = j->bound->count[ESPI_ROWS], chunk = j->chunks - 1 - item, first = chunk * j->rows;
    const size_t end = first + j->rows < rows ? first + j->rows : rows;
    esp_status status = ESP_OK;
    if (!espi_reverse_start(r, j->bound->kernel->ops, j->bound->count[ESPI_COLS])) return espi_no_memory(err);
    if (r->workspace == NULL) status = espi_workspace_new(j->bound, worker->run, &r->workspace, err);
    for (size_t i = first; status == ESP_OK && i < end; i++)
        status = one_row(j, r, i, weights_of(j, worker->number, i, first, end),
                         values_of(j, worker->number, i, first, end), &j->chunk[chunk], err);
    return status;
}

static bool start_chunk(espi_sums *c, const espi_bound *b)
{
    const esp_kernel *kernel = b->kernel;
    c->gradient = espi_alloc_zero(espi_kernel_places(kernel), sizeof *c->gradient);
    c->self = espi_alloc_zero(kernel->ops, sizeof *c->self);
    bool ok = c->gradient != NULL && c->self != NULL;
    for (size_t k = 0; ok && k < kernel->ops; k++)
        for (espi_side side = b->symmetric ? ESPI_COLS : ESPI_ROWS; ok && side <= ESPI_COLS; side++) {
            if (kernel->op[k].kind != ESPI_NORM) continue;
            c->self[k].side[side] = espi_alloc_zero(b->count[side], sizeof(double));
            ok = c->self[k].side[side] != NULL;
        }
    return ok;
}

static void free_chunk(espi_sums *c, const espi_bound *b)
{
    for (size_t k = 0; c->self != NULL && k < b->kernel->ops; k++) {
        espi_free(c->self[k].side[ESPI_ROWS]);
        espi_free(c->self[k].side[ESPI_COLS]);
    }
    espi_free(c->self);
    espi_free(c->gradient);
}

/* Adds the sums of a chunk to those of the first. */
static void merge(espi_sums *into, const espi_sums *from, const espi_bound *b)
{
    const size_t places = espi_kernel_places(b->kernel);
    for (size_t p = 0; p < places; p++) into->gradient[p] += from->gradient[p];
    for (size_t k = 0; k < b->kernel->ops; k++)
        for (espi_side side = ESPI_ROWS; side <= ESPI_COLS; side++)
            for (size_t i = 0; into->self[k].side[side] != NULL && i < b->count[side]; i++)
                into->self[k].side[side][i] += from->self[k].side[side][i];
}

/* The program of `op` over a diagonal, from adjoints of its values. */
static esp_status back_diagonal(const gradient_sums *j, size_t op, espi_side side, const double *weight,
                                espi_sums *sums, esp_error *err)
{
    const espi_bound *b = j->bound;
    espi_reverse *r = &j->reverse[0];
    const espi_slice s = {.diagonal = true, .side = side, .to = b->count[side]};
    esp_status status = ESP_OK;
    if (!espi_reverse_start(r, b->kernel->ops, s.to)) return espi_no_memory(err);
    if (r->workspace == NULL) status = espi_workspace_new(b, j->run, &r->workspace, err);
    if (status == ESP_OK) status = espi_forward(r, j->needed, op, &s, err);
    if (status != ESP_OK) return status;
    if (s.to > 0) memcpy(r->adjoint + op * r->width, weight, s.to * sizeof *weight);
    espi_backward_ops(r, op, &s);
    status = back_leaves(r, NULL, op, &s, sums->gradient, err);
    if (status == ESP_OK) add_sums(r, op, &s, sums);
    return status;
}

static esp_status back_norms(const gradient_sums *j, esp_error *err)
{
    const espi_bound *b = j->bound;
    espi_sums *all = &j->chunk[0];
    esp_status status = ESP_OK;
    for (size_t k = b->kernel->ops; k-- > 0;)
        for (espi_side side = ESPI_ROWS; status == ESP_OK && side <= ESPI_COLS; side++)
            if (all->self[k].side[side] != NULL)
                status = back_diagonal(j, b->kernel->op[k].left, side, all->self[k].side[side], all, err);
    return status;
}

static void free_buffers(gradient_sums *j, int workers)
{
    for (int i = 0; j->reverse != NULL && i < workers; i++) espi_reverse_end(&j->reverse[i]);
    for (size_t i = 0; j->chunk != NULL && i < j->chunks; i++) free_chunk(&j->chunk[i], j->bound);
    for (int i = 0; j->block != NULL && i < workers; i++) espi_free(j->block[i]);
    for (int i = 0; j->turned != NULL && i < workers; i++) espi_free(j->turned[i]);
    espi_free(j->block);
    espi_free(j->turned);
    espi_free(j->reverse);
    espi_free(j->chunk);
    espi_free(j->needed);
}

/* BLOCK rows for each worker. */
static bool make_blocks(double ***out, int workers, size_t columns)
{
    bool ok = (*out = espi_alloc_zero((size_t)workers, sizeof **out)) != NULL;
    for (int i = 0; ok && i < workers; i++) ok = ((*out)[i] = espi_alloc(BLOCK, columns * sizeof ***out)) != NULL;
    return ok;
}

static esp_status make_buffers(gradient_sums *j, int workers, esp_error *err)
{
    j->needed = espi_needed_values(j->bound->kernel);
    j->linear = is_linear(j->bound->kernel);
    j->reverse = espi_alloc_zero((size_t)workers, sizeof *j->reverse);
    j->chunk = espi_alloc_zero(j->chunks, sizeof *j->chunk);
    bool ok = j->needed != NULL && j->reverse != NULL && j->chunk != NULL;
    for (size_t i = 0; ok && i < j->chunks; i++) ok = start_chunk(&j->chunk[i], j->bound);
    if (ok && j->weights != NULL) ok = make_blocks(&j->block, workers, j->bound->count[ESPI_COLS]);
    if (ok && j->bound->symmetric && gram_suffices(j))
        ok = make_blocks(&j->turned, workers, j->bound->count[ESPI_COLS]);
    return ok ? ESP_OK : espi_no_memory(err);
}

/* Adds the sums to the caller's, if they are numbers. */
static esp_status hand_out(const gradient_sums *j, double *gradient, esp_error *err)
{
    const double *sum = j->chunk[0].gradient;
    const size_t places = espi_kernel_places(j->bound->kernel);
    if (!espi_all_finite(sum, places))
        return espi_fail(err, ESP_ERR_RANGE,
                         "a derivative of the kernel is too large for a number; take a smaller lambda (or weight)");
    for (size_t p = 0; p < places; p++) gradient[p] += sum[p];
    return ESP_OK;
}

static esp_status sum_rows(gradient_sums *j, double *gradient, esp_error *err)
{
    const size_t rows = j->bound->count[ESPI_ROWS];
    if (rows == 0) return ESP_OK;
    j->rows = (rows + CHUNKS - 1) / CHUNKS;
    j->chunks = (rows + j->rows - 1) / j->rows;
    const int workers = espi_worker_count(j->run, j->chunks);
    esp_status status = make_buffers(j, workers, err);
    if (status == ESP_OK) status = espi_parallel(j->run, "computing the gradient", j->chunks, one_chunk, j, err);
    for (size_t i = 1; status == ESP_OK && i < j->chunks; i++) merge(&j->chunk[0], &j->chunk[i], j->bound);
    if (status == ESP_OK) status = back_norms(j, err);
    if (status == ESP_OK) status = hand_out(j, gradient, err);
    free_buffers(j, workers);
    return status;
}

esp_status espi_bound_gradient(const espi_bound *bound, const double *weight, const double *gram, const esp_run *run,
                               double *gradient, esp_error *err)
{
    gradient_sums j = {.bound = bound, .weight = weight, .gram = gram, .run = run};
    return sum_rows(&j, gradient, err);
}

esp_status espi_bound_gradient_rows(const espi_bound *bound, espi_weight_rows weights, void *context,
                                    const esp_run *run, double *gradient, esp_error *err)
{
    gradient_sums j = {.bound = bound, .weights = weights, .context = context, .run = run};
    return sum_rows(&j, gradient, err);
}

esp_status espi_bound_gradient_diagonal(const espi_bound *bound, espi_side side, const double *weight,
                                        const esp_run *run, double *gradient, esp_error *err)
{
    gradient_sums j = {.bound = bound, .run = run, .chunks = 1};
    esp_status status = make_buffers(&j, 1, err);
    if (status == ESP_OK) status = back_diagonal(&j, bound->kernel->ops - 1, side, weight, &j.chunk[0], err);
    if (status == ESP_OK) status = hand_out(&j, gradient, err);
    free_buffers(&j, 1);
    return status;
}
