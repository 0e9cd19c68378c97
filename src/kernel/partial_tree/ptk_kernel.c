/* The partial tree kernel (Moschitti, ECML 2006; that of SVM-light-TK and KeLP). Labels are compared as
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
 * Over the shared forest (soft.h) mu lambda^2 (terminal), which all nodes with equal labels have in common, is the
 * constant part, and mu S the excess (ptk_children.c). */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/partial_tree/ptk_children.h"
#include "kernel/partial_tree/ptk_pair.h"

#include <math.h>

typedef enum ptk_algorithm { PTK_DAG, PTK_PAIR } ptk_algorithm;

typedef struct ptk_part {
    espi_soft_part soft;
    espi_ptk_rules rules;
    ptk_algorithm algorithm;
    espi_ptk_flat *flat_rows, *flat_cols; /* algorithm pair; flat_rows NULL: rows is cols */
} ptk_part;

/* ------------------------------------------------------------------ rules */

static const espi_ptk_rules *rules_of(const espi_soft_rules *rules)
{
    return (const espi_ptk_rules *)(const void *)rules;
}

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
    const espi_ptk_rules *r = rules_of(rules);
    if ((code_p & code_q & 1) != 0) return (espi_soft_cell){.kind = ESPI_DEEP, .base = r->inner};
    return (espi_soft_cell){.kind = ESPI_CONSTANT, .base = r->leaf}; /* 0 still has a derivative in terminal */
}

static uint64_t atom(const espi_soft_rules *rules, const espi_forest *forest, const uint32_t *symbol, espi_ref node)
{
    (void)rules;
    return name_of(forest, symbol, node);
}

static bool partner(const espi_soft_rules *rules, uint64_t name, size_t number, uint64_t *other, const double **value)
{
    const espi_ptk_rules *r = rules_of(rules);
    *other = number == 0 ? name | 1 : name & ~UINT64_C(1);
    *value = (name & *other & 1) != 0 ? r->inner : r->leaf;
    return number < 2;
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

static void set_rules(espi_ptk_rules *r, const espi_leaf *leaf)
{
    r->rules = (espi_soft_rules){.lanes = ESPI_PTK_LANES,
                                 .sketch = sketch,
                                 .key = key,
                                 .cell = cell,
                                 .children = espi_ptk_children,
                                 .children_wide = espi_ptk_children_wide,
                                 .atom = atom,
                                 .partner = partner};
    const double lambda = espi_leaf_value(leaf, "lambda"), mu = espi_leaf_value(leaf, "mu");
    r->values = (espi_ptk_values){.lambda = lambda, .mu = mu, .terminal = espi_leaf_value(leaf, "terminal")};
    r->inner[0] = mu * lambda * lambda;
    r->inner[ESPI_PTK_LAMBDA] = 2.0 * mu * lambda;
    r->inner[ESPI_PTK_MU] = lambda * lambda;
    r->inner[ESPI_PTK_TERMINAL] = 0.0;
    for (size_t lane = 0; lane < ESPI_PTK_LANES; lane++) r->leaf[lane] = r->inner[lane] * r->values.terminal;
    r->leaf[ESPI_PTK_TERMINAL] = r->inner[0];
    for (unsigned e = 0; e < ESPI_PTK_POWERS; e++) r->power[e] = espi_power(lambda, e);
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
    if (w != NULL) w->scratch.run = run;
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
    esp_status status = ESP_OK;
    for (size_t j = from; status == ESP_OK && j < to; j++)
        status = espi_ptk_pair(a, &b[j], &p->rules.values, &w->scratch, &out[j - from], err);
    return status;
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const ptk_part *p = view(part);
    if (p->algorithm == PTK_DAG) return espi_soft_diagonal(part, side, run, out, err);
    const espi_ptk_flat *flat = flats_of(p, side);
    const size_t trees = (side == ESPI_ROWS ? p->soft.rows : p->soft.cols)->roots;
    espi_ptk_scratch scratch = {.run = run};
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < trees; i++)
        status = espi_ptk_pair(&flat[i], &flat[i], &p->rules.values, &scratch, &out[i], err);
    espi_ptk_scratch_free(&scratch);
    return status;
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

/* The engine of algorithm=dag has derivatives, the other is there to compare values. */
static esp_status check_algorithm(const espi_part *part, esp_error *err)
{
    if (view(part)->algorithm == PTK_DAG) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "ptk(algorithm=pair) has no gradient: leave `algorithm` out");
}

static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *out, esp_error *err)
{
    const esp_status status = check_algorithm(part, err);
    if (status != ESP_OK) return status;
    return espi_soft_gradient(part, ((workspace *)pointer)->soft, i, from, to, weight, out, err);
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    const esp_status status = check_algorithm(part, err);
    return status != ESP_OK ? status : espi_soft_gradient_diagonal(part, side, run, weight, out, err);
}

/* ---------------------------------------------------------------- tables */

static const char *const algorithms[] = {"dag", "pair", NULL};

const espi_kernel_class espi_kernel_ptk = {
    .name = "ptk",
    .help = "fragments in common that may skip children: labels match, not productions",
    .parameters =
        (const espi_parameter[]){
            {.info = {"lambda", "decay of a fragment with its width: gaps between children", "0.4", "a number > 0",
                      ESP_KIND_NUMBER},

             .low_open = true,
             .high = HUGE_VAL,
             .draw_low = 1e-4,
             .draw_high = 1.0},
            {.info = {"mu", "decay of a fragment with its height: nodes", "0.4", "a number > 0", ESP_KIND_NUMBER},

             .low_open = true,
             .high = HUGE_VAL,
             .draw_low = 1e-4,
             .draw_high = 1.0},
            {.info = {"terminal", "factor of pairs of nodes of which one is a leaf", "1", "a number >= 0",
                      ESP_KIND_NUMBER},

             .high = HUGE_VAL,
             .draw_low = 0.1,
             .draw_high = 10.0},
            {.info = {"algorithm", "dag: all trees at once; pair: tree by tree, for comparison", "dag", "dag or pair",
                      ESP_KIND_CHOICE},

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
    .gradient = gradient,
    .gradient_diagonal = gradient_diagonal,
    .no_features = "matches fragments in part, so that they have no weights",
};
