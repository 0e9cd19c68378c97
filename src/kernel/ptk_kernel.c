/* The partial tree kernel (SPEC 3; Moschitti, ECML 2006; that of SVM-light-TK and KeLP). Labels are compared as
 * text, and children may be skipped:
 *
 *     K(T1, T2)     = sum over all nodes, leaves included, of Delta(n1, n2)
 *     Delta(n1, n2) = 0                                  the labels differ
 *                   = mu lambda^2 terminal               either is a leaf
 *                   = mu (lambda^2 + S(n1, n2))          otherwise
 *     S(n1, n2)     = sum over J1, J2 of lambda^(g(J1) + g(J2)) prod_i Delta(c1[J1_i], c2[J2_i])
 *
 * J1 and J2 are increasing sequences of children, of one length >= 1; g(J) = last - first + 1 - length are the gaps.
 *
 * S is a sum over chains of cells (k, l), each cell further right in both. Their length is asked nowhere, so one
 * table does: with d(k, l) = Delta of child k and child l,
 *
 *     P(k, l) = d(k, l) (1 + Q(k-1, l-1))                        chains that end in the cell
 *     R(k, l) = P(k, l) + lambda R(k, l-1)
 *     Q(k, l) = R(k, l) + lambda Q(k-1, l)  = sum over i <= k, j <= l of lambda^(k-i + l-j) P(i, j)
 *     S       = sum of all P(k, l)
 *
 * in O(|c1| |c2|), and nothing cancels. Where few cells have equal labels, Q is summed over the cells before (k, l)
 * instead. Over the shared forest (soft.h) mu lambda^2 (terminal), which all nodes with equal labels have in common, is
 * the constant part, and mu S the excess. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/hot.h"
#include "kernel/ptk_pair.h"
#include "kernel/soft.h"

#include <math.h>

enum { POWERS = 64 };

typedef enum ptk_algorithm { PTK_DAG, PTK_PAIR } ptk_algorithm;

typedef struct ptk_rules {
    espi_soft_rules rules;
    espi_ptk_values values;
    double inner, leaf;   /* Delta of equal labels without S: of two inner nodes, and where one is a leaf */
    double power[POWERS]; /* of lambda */
} ptk_rules;

typedef struct ptk_part {
    espi_soft_part soft;
    ptk_rules rules;
    ptk_algorithm algorithm;
    espi_ptk_flat *flat_rows, *flat_cols; /* algorithm pair; flat_rows NULL: rows is cols */
} ptk_part;

/* ------------------------------------------------------------------ rules */

static const ptk_rules *rules_of(const espi_soft_rules *rules) { return (const ptk_rules *)(const void *)rules; }

/* Codes and atoms: symbol * 2, and 1 more for an inner node. */
static uint32_t name_of(const espi_forest *forest, const uint32_t *symbol, espi_ref node)
{
    if (espi_is_leaf(node)) return espi_soft_symbol(symbol, espi_leaf_symbol(node)) * 2;
    return espi_soft_symbol(symbol, espi_production_of(forest, node)->label) * 2 + 1;
}

static void sketch(const espi_soft_rules *rules, const espi_forest *forest, const uint32_t *symbol, espi_ref vertex,
                   espi_soft_sketch *out)
{
    const espi_ref *child = forest->child + forest->vertex[vertex].children;
    (void)rules;
    out->group = name_of(forest, symbol, vertex) / 2;
    out->children = espi_production_of(forest, vertex)->arity;
    for (size_t k = 0; k < out->children; k++) {
        out->child[k].code = name_of(forest, symbol, child[k]);
        out->child[k].node = espi_is_leaf(child[k]) ? ESPI_NO_NODE : child[k];
    }
}

static uint32_t key(const espi_soft_rules *rules, uint32_t code)
{
    (void)rules;
    return code / 2;
}

static espi_soft_cell cell(const espi_soft_rules *rules, uint32_t code_p, uint32_t code_q)
{
    const ptk_rules *r = rules_of(rules);
    if ((code_p & code_q & 1) != 0) return (espi_soft_cell){.kind = ESPI_DEEP, .base = r->inner};
    return (espi_soft_cell){.kind = r->leaf > 0.0 ? ESPI_CONSTANT : ESPI_APART, .base = r->leaf};
}

static uint64_t atom(const espi_soft_rules *rules, const espi_forest *forest, const uint32_t *symbol, espi_ref node)
{
    (void)rules;
    return name_of(forest, symbol, node);
}

static bool partner(const espi_soft_rules *rules, uint64_t name, size_t number, uint64_t *other, double *value)
{
    const ptk_rules *r = rules_of(rules);
    *other = number == 0 ? name | 1 : name & ~UINT64_C(1);
    *value = (name & *other & 1) != 0 ? r->inner : r->leaf;
    return number < 2;
}

/* --------------------------------------------------------------- children */

static inline double power(const ptk_rules *r, size_t exponent)
{
    return exponent < POWERS ? r->power[exponent] : espi_power(r->values.lambda, (unsigned)exponent);
}

/* Whether cell j may come right before cell i in a chain, and the gaps between them. */
static inline bool before(const espi_soft_meeting *m, size_t j, size_t i, size_t *gaps)
{
    if (m->k[j] >= m->k[i] || m->l[j] >= m->l[i]) return false;
    *gaps = (m->k[i] - m->k[j] - 1) + (m->l[i] - m->l[j] - 1);
    return true;
}

/* S by chains of few cells, for one vertex; p has room for the cells. */
static double chain_one(const ptk_rules *r, const espi_soft_meeting *m, double *p)
{
    double s = 0.0;
    size_t gaps;
    for (size_t i = 0; i < m->cells; i++) {
        double sum = 1.0;
        for (size_t j = 0; j < i; j++)
            if (before(m, j, i, &gaps)) sum += power(r, gaps) * p[j];
        p[i] = m->value[i] * sum;
        s += p[i];
    }
    return s;
}

/* The same for many vertices side by side; p is as long as m->value. */
HOT static void chain_many(const ptk_rules *r, const espi_soft_meeting *m, double *restrict p, double *restrict out)
{
    const size_t n = m->n;
    size_t gaps;
    for (size_t x = 0; x < n; x++) out[x] = 0.0;
    for (size_t i = 0; i < m->cells; i++) {
        const double *restrict value = m->value + i * n;
        double *restrict sum = p + i * n;
        for (size_t x = 0; x < n; x++) sum[x] = 1.0;
        for (size_t j = 0; j < i; j++) {
            if (!before(m, j, i, &gaps)) continue;
            const double *restrict earlier = p + j * n;
            const double factor = power(r, gaps);
            for (size_t x = 0; x < n; x++) sum[x] += factor * earlier[x];
        }
        for (size_t x = 0; x < n; x++) {
            sum[x] *= value[x];
            out[x] += sum[x];
        }
    }
}

/* S by the table, row by row, for one vertex: ended[l] = Q(k, l). Adds to what earlier rows gave. */
static double table_one(const ptk_rules *r, const espi_soft_meeting *m, double *ended, double s)
{
    const double lambda = r->values.lambda;
    const size_t wide = m->q.children;
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        double row = 0.0, corner = 0.0;
        for (size_t l = 0; l < wide; l++) {
            const double above = ended[l];
            row *= lambda;
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const double p = m->value[c++] * (1.0 + corner);
                s += p;
                row += p;
            }
            ended[l] = row + lambda * above;
            corner = above;
        }
    }
    return s;
}

/* The same for many vertices side by side. `ended` has room for a row of the table and two values more, n numbers each.
 */
HOT static void table_many(const ptk_rules *r, const espi_soft_meeting *m, double *restrict ended, double *restrict out)
{
    const double lambda = r->values.lambda;
    const size_t n = m->n, wide = m->q.children;
    double *restrict row = ended + wide * n, *restrict corner = row + n;
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        for (size_t x = 0; x < n; x++) row[x] = corner[x] = 0.0;
        for (size_t l = 0; l < wide; l++) {
            double *restrict end = ended + l * n;
            for (size_t x = 0; x < n; x++) row[x] *= lambda;
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const double *restrict value = m->value + c++ * n;
                for (size_t x = 0; x < n; x++) {
                    const double p = value[x] * (1.0 + corner[x]);
                    out[x] += p;
                    row[x] += p;
                }
            }
            for (size_t x = 0; x < n; x++) {
                corner[x] = end[x];
                end[x] = row[x] + lambda * corner[x];
            }
        }
    }
}

/* By the table; of several calls, the first clears it. */
static bool by_table(const ptk_rules *r, const espi_soft_meeting *m, double *out)
{
    const size_t wide = m->q.children;
    if (!espi_reserve(m->scratch, m->capacity, (wide + 2) * m->n, sizeof *out)) return false;
    double *ended = *m->scratch;
    for (size_t x = 0; x < m->n && m->from == 0; x++) out[x] = 0.0;
    for (size_t x = 0; x < wide * m->n && m->from == 0; x++) ended[x] = 0.0;
    if (m->n == 1) *out = table_one(r, m, ended, *out);
    else table_many(r, m, ended, out);
    return true;
}

static bool by_chains(const ptk_rules *r, const espi_soft_meeting *m, double *out)
{
    if (!espi_reserve(m->scratch, m->capacity, m->cells * m->n, sizeof *out)) return false;
    if (m->n == 1) *out = chain_one(r, m, *m->scratch);
    else chain_many(r, m, *m->scratch, out);
    return true;
}

/* mu S of a vertex with others of one shape. */
static bool children(const espi_soft_rules *rules, const espi_soft_meeting *m, double *out)
{
    const ptk_rules *r = rules_of(rules);
    const size_t wide = m->q.children;
    const bool all = m->from == 0 && m->to == m->p.children;
    if (all && m->cells == 1) {
        for (size_t x = 0; x < m->n; x++) out[x] = r->values.mu * m->value[x];
        return true;
    }
    const bool few = all && m->cells / 2 <= wide && m->cells * m->cells / 2 <= m->p.children * wide;
    if (!(few ? by_chains : by_table)(r, m, out)) return false;
    for (size_t x = 0; x < m->n && m->to == m->p.children; x++) out[x] *= r->values.mu;
    return true;
}

/* The table in wide numbers. */
static bool children_wide(const espi_soft_rules *rules, const espi_soft_meeting *m, espi_wide *out)
{
    const espi_wide lambda = espi_wide_of(rules_of(rules)->values.lambda), one = espi_wide_of(1.0);
    const size_t wide = m->q.children;
    if (!espi_reserve(m->scratch, m->capacity, wide, sizeof *out)) return false;
    espi_wide *ended = *m->scratch;
    for (size_t l = 0; l < wide && m->from == 0; l++) ended[l] = espi_wide_of(0.0);
    if (m->from == 0) *out = espi_wide_of(0.0);
    for (size_t k = m->from, c = 0; k < m->to; k++) {
        espi_wide row = espi_wide_of(0.0), corner = espi_wide_of(0.0);
        for (size_t l = 0; l < wide; l++) {
            const espi_wide above = ended[l];
            row = espi_wide_mul(row, lambda);
            if (c < m->cells && m->k[c] == k && m->l[c] == l) {
                const espi_wide p = espi_wide_mul(m->wide[c++], espi_wide_add(one, corner));
                *out = espi_wide_add(*out, p);
                row = espi_wide_add(row, p);
            }
            ended[l] = espi_wide_add(row, espi_wide_mul(lambda, above));
            corner = above;
        }
    }
    if (m->to == m->p.children) *out = espi_wide_mul(espi_wide_of(rules_of(rules)->values.mu), *out);
    return true;
}

/* ------------------------------------------------------------------- part */

static const ptk_part *view(const espi_part *part) { return (const ptk_part *)(const void *)part; }

static void free_flats(espi_ptk_flat *flat, size_t count)
{
    for (size_t i = 0; flat != NULL && i < count; i++) espi_ptk_flat_free(&flat[i]);
    espi_free(flat);
}

static void release(espi_part *part)
{
    ptk_part *p = (ptk_part *)(void *)part;
    if (p == NULL) return;
    free_flats(p->flat_rows, p->soft.rows->roots);
    free_flats(p->flat_cols, p->soft.cols->roots);
    espi_soft_clear(&p->soft);
    espi_free(p);
}

static bool make_flats(const espi_forest *forest, const uint32_t *symbol, espi_ptk_flat **out)
{
    *out = espi_alloc_zero(forest->roots, sizeof **out);
    bool ok = *out != NULL;
    for (size_t i = 0; ok && i < forest->roots; i++) ok = espi_ptk_flat_fill(*out + i, forest, forest->root[i], symbol);
    return ok;
}

static void set_rules(ptk_rules *r, const espi_leaf *leaf)
{
    r->rules = (espi_soft_rules){.sketch = sketch,
                                 .key = key,
                                 .cell = cell,
                                 .children = children,
                                 .children_wide = children_wide,
                                 .atom = atom,
                                 .partner = partner};
    r->values.lambda = espi_leaf_value(leaf, "lambda");
    r->values.mu = espi_leaf_value(leaf, "mu");
    r->values.terminal = espi_leaf_value(leaf, "terminal");
    r->inner = r->values.mu * r->values.lambda * r->values.lambda;
    r->leaf = r->inner * r->values.terminal;
    for (unsigned e = 0; e < POWERS; e++) r->power[e] = espi_power(r->values.lambda, e);
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *like,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    (void)run;
    *out = NULL;
    ptk_part *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    set_rules(&p->rules, leaf);
    p->soft.part.class = leaf->class;
    p->soft.rules = &p->rules.rules;
    p->algorithm = (ptk_algorithm)espi_leaf_value(leaf, "algorithm");
    esp_status status = espi_soft_bind(&p->soft, rows, cols, like != NULL ? &view(like)->soft : NULL, err);
    if (status == ESP_OK && p->algorithm == PTK_PAIR &&
        !((like != NULL || make_flats(p->soft.cols, NULL, &p->flat_cols)) &&
          (rows == cols || make_flats(p->soft.rows, p->soft.symbol, &p->flat_rows))))
        status = espi_no_memory(err);
    if (status == ESP_OK) *out = &p->soft.part;
    else release(&p->soft.part);
    return status;
}

/* Both algorithms' workspace. */
typedef struct workspace {
    void *soft;
    espi_ptk_scratch scratch;
} workspace;

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    espi_soft_workspace_free(w->soft);
    espi_ptk_scratch_free(&w->scratch);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL || view(part)->algorithm == PTK_PAIR) return w;
    w->soft = espi_soft_workspace_new(part, run);
    if (w->soft != NULL) return w;
    workspace_free(w);
    return NULL;
}

static const espi_ptk_flat *flats_of(const ptk_part *p, espi_side side)
{
    const ptk_part *base = (const ptk_part *)(const void *)p->soft.base;
    return side == ESPI_ROWS && p->flat_rows != NULL ? p->flat_rows : base->flat_cols;
}

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const ptk_part *p = view(part);
    workspace *w = pointer;
    if (p->algorithm == PTK_DAG) return espi_soft_row(part, w->soft, i, from, to, out, err);
    const espi_ptk_flat *a = &flats_of(p, ESPI_ROWS)[i], *b = flats_of(p, ESPI_COLS);
    bool ok = true;
    for (size_t j = from; ok && j < to; j++)
        ok = espi_ptk_pair(a, &b[j], &p->rules.values, &w->scratch, &out[j - from]);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const ptk_part *p = view(part);
    if (p->algorithm == PTK_DAG) return espi_soft_diagonal(part, side, run, out, err);
    const espi_ptk_flat *flat = flats_of(p, side);
    const size_t trees = (side == ESPI_ROWS ? p->soft.rows : p->soft.cols)->roots;
    espi_ptk_scratch scratch = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < trees; i++)
        ok = espi_ptk_pair(&flat[i], &flat[i], &p->rules.values, &scratch, &out[i]);
    espi_ptk_scratch_free(&scratch);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **folded, esp_error *err)
{
    *folded = NULL;
    if (view(part)->algorithm == PTK_PAIR) return ESP_OK;
    return espi_soft_fold(part, coefficient, outputs, folded, err);
}

static esp_status score(const espi_part *part, const void *folded, void *pointer, size_t i, double *out, esp_error *err)
{
    return espi_soft_score(part, folded, ((workspace *)pointer)->soft, i, out, err);
}

/* ---------------------------------------------------------------- tables */

static const char *const algorithms[] = {"dag", "pair", NULL};

const espi_kernel_class espi_kernel_ptk = {
    .name = "ptk",
    .help = "fragments in common that may skip children: labels match, not productions",
    .parameters =
        (const espi_parameter[]){
            {.info = {"lambda", "decay of a fragment with its width: gaps between children", "0.4", "a number > 0"},
             .type = ESPI_NUMBER,
             .low_open = true,
             .high = HUGE_VAL},
            {.info = {"mu", "decay of a fragment with its height: nodes", "0.4", "a number > 0"},
             .type = ESPI_NUMBER,
             .low_open = true,
             .high = HUGE_VAL},
            {.info = {"terminal", "factor of pairs of nodes of which one is a leaf", "1", "a number >= 0"},
             .type = ESPI_NUMBER,
             .high = HUGE_VAL},
            {.info = {"algorithm", "dag: all trees at once; pair: tree by tree, for comparison", "dag", "dag or pair"},
             .type = ESPI_CHOICE,
             .choices = algorithms},
            {.info = {0}}},
    .takes = {[ESP_COLUMN_TREE] = true},
    .bind = bind,
    .free = release,
    .workspace_new = workspace_new,
    .workspace_free = workspace_free,
    .row = row,
    .diagonal = diagonal,
    .pair = espi_soft_pair,
    .fold = fold,
    .folded_free = espi_soft_folded_free,
    .score = score,
    .gradient = NULL, /* in lambda and mu: reverse mode over the same cells, when a learner asks for it */
};
