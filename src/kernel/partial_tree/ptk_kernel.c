/* The class of the partial tree kernel (partial_tree.h has the definition): parameters, binding to data, and the values
 * by both algorithms. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/partial_tree/pair.h"

#include <math.h>

typedef enum ptk_algorithm { PTK_DAG, PTK_PAIR } ptk_algorithm;

typedef struct ptk_part {
    espi_part part;
    espi_ptk_values values;
    ptk_algorithm algorithm;
    const struct ptk_part *base;    /* whose side of the columns is used: this part's own, or that of another */
    const espi_forest *rows, *cols; /* may be the same */
    uint32_t *symbol;               /* of the rows' symbols on both sides; NULL: rows is cols */
    espi_ptk_trees row_trees;       /* empty: rows is cols */
    espi_ptk_trees col_trees;       /* this and the index: empty, base has them */
    espi_ptk_index index;
    espi_ptk_link link;                   /* from the rows to the index */
    espi_ptk_flat *flat_rows, *flat_cols; /* algorithm pair; flat_rows NULL: rows is cols */
} ptk_part;

static const ptk_part *ptk_of(const espi_part *part) { return (const ptk_part *)(const void *)part; }

static const espi_ptk_trees *trees_of(const ptk_part *p, espi_side side)
{
    return side == ESPI_ROWS && p->rows != p->cols ? &p->row_trees : &p->base->col_trees;
}

static const espi_ptk_flat *flats_of(const ptk_part *p, espi_side side)
{
    return side == ESPI_ROWS && p->rows != p->cols ? p->flat_rows : p->base->flat_cols;
}

/* ------------------------------------------------------------------ bind */

static void free_flats(espi_ptk_flat *flat, size_t count)
{
    for (size_t i = 0; flat != NULL && i < count; i++) espi_ptk_flat_free(&flat[i]);
    espi_free(flat);
}

static void part_free(espi_part *part)
{
    ptk_part *p = (ptk_part *)(void *)part;
    if (p == NULL) return;
    free_flats(p->flat_rows, p->rows->roots);
    free_flats(p->flat_cols, p->cols->roots);
    espi_ptk_link_free(&p->link);
    espi_ptk_index_free(&p->index);
    espi_ptk_trees_free(&p->row_trees);
    espi_ptk_trees_free(&p->col_trees);
    espi_free(p->symbol);
    espi_free(p);
}

static espi_ptk_values values_of(const espi_leaf *leaf)
{
    const double lambda = espi_leaf_value(leaf, "lambda"), mu = espi_leaf_value(leaf, "mu");
    espi_ptk_values v = {.lambda = lambda, .mu = mu, .terminal = espi_leaf_value(leaf, "terminal")};
    v.inner[0] = mu * lambda * lambda;
    v.inner[ESPI_PTK_LAMBDA] = 2.0 * mu * lambda;
    v.inner[ESPI_PTK_MU] = lambda * lambda;
    for (size_t lane = 0; lane < ESPI_PTK_LANES; lane++) v.leaf[lane] = v.inner[lane] * v.terminal;
    v.leaf[ESPI_PTK_TERMINAL] = v.inner[0];
    for (unsigned e = 0; e < ESPI_PTK_POWERS; e++) v.power[e] = espi_power(lambda, e);
    return v;
}

/* One numbering of the symbols of both sides: those of the columns first. */
static bool share_symbols(ptk_part *p)
{
    p->symbol = espi_symbols_map(&p->rows->symbols, &p->cols->symbols);
    if (p->symbol == NULL) return false;
    uint32_t next = (uint32_t)p->cols->symbols.count;
    for (size_t i = 0; i < p->rows->symbols.count; i++)
        if (p->symbol[i] == ESPI_NO_SYMBOL) p->symbol[i] = next++;
    return true;
}

static bool make_trees(const espi_forest *forest, const uint32_t *symbol, espi_ptk_trees *out)
{
    espi_ptk_builder builder = {0};
    const bool ok = espi_ptk_trees_make(out, forest, symbol, forest->root, forest->roots, &builder);
    espi_ptk_builder_free(&builder);
    return ok;
}

static bool make_flats(const espi_forest *forest, const uint32_t *symbol, espi_ptk_flat **out)
{
    *out = espi_alloc_zero(forest->roots, sizeof **out);
    bool ok = *out != NULL;
    for (size_t i = 0; ok && i < forest->roots; i++) ok = espi_ptk_flat_fill(*out + i, forest, forest->root[i], symbol);
    return ok;
}

static bool bind_cols(ptk_part *p)
{
    return make_trees(p->cols, NULL, &p->col_trees) && espi_ptk_index_make(&p->index, &p->col_trees) &&
           (p->algorithm == PTK_DAG || make_flats(p->cols, NULL, &p->flat_cols));
}

static bool bind_rows(ptk_part *p)
{
    return share_symbols(p) && make_trees(p->rows, p->symbol, &p->row_trees) &&
           (p->algorithm == PTK_DAG || make_flats(p->rows, p->symbol, &p->flat_rows));
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    (void)run;
    *out = NULL;
    ptk_part *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    p->part.class = leaf->class;
    p->values = values_of(leaf);
    p->algorithm = (ptk_algorithm)espi_leaf_value(leaf, "algorithm");
    p->base = base != NULL ? ptk_of(base) : p;
    p->rows = &rows->trees;
    p->cols = &cols->trees;
    if ((base == NULL && !bind_cols(p)) || (rows != cols && !bind_rows(p)) ||
        !espi_ptk_link_make(&p->link, trees_of(p, ESPI_ROWS), &p->base->index)) {
        part_free(&p->part);
        return espi_no_memory(err);
    }
    *out = &p->part;
    return ESP_OK;
}

/* ------------------------------------------------------------- workspace */

typedef struct workspace {
    espi_ptk_matcher *matcher; /* NULL: algorithm pair */
    espi_ptk_scratch scratch;  /* of algorithm pair */
} workspace;

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    espi_ptk_matcher_free(w->matcher);
    espi_ptk_scratch_free(&w->scratch);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    const ptk_part *p = ptk_of(part);
    workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w != NULL) w->scratch.run = run;
    if (w == NULL || p->algorithm == PTK_PAIR) return w;
    w->matcher = espi_ptk_matcher_new(&p->values, &p->base->index, &p->link, run);
    if (w->matcher != NULL) return w;
    workspace_free(w);
    return NULL;
}

/* ---------------------------------------------------------------- values */

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const ptk_part *p = ptk_of(part);
    workspace *w = pointer;
    if (p->algorithm == PTK_DAG) {
        const espi_ptk_tree tree = espi_ptk_tree_of(trees_of(p, ESPI_ROWS), i);
        return espi_ptk_match_row(w->matcher, &tree, from, to, out, err);
    }
    const espi_ptk_flat *a = &flats_of(p, ESPI_ROWS)[i], *b = flats_of(p, ESPI_COLS);
    esp_status status = ESP_OK;
    for (size_t j = from; status == ESP_OK && j < to; j++)
        status = espi_ptk_pair(a, &b[j], &p->values, &w->scratch, &out[j - from], err);
    return status;
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const ptk_part *p = ptk_of(part);
    const espi_ptk_trees *trees = trees_of(p, side);
    if (p->algorithm == PTK_DAG) return espi_ptk_self_values(&p->values, trees, run, false, out, err);
    const espi_ptk_flat *flat = flats_of(p, side);
    espi_ptk_scratch scratch = {.run = run};
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < trees->trees; i++)
        status = espi_ptk_pair(&flat[i], &flat[i], &p->values, &scratch, &out[i], err);
    espi_ptk_scratch_free(&scratch);
    return status;
}

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    const ptk_part *p = ptk_of(part);
    const espi_ptk_tree a = espi_ptk_tree_of(trees_of(p, side_i), i), b = espi_ptk_tree_of(trees_of(p, side_j), j);
    return espi_ptk_wide_pair(&p->values, &a, &b, value) ? ESP_OK : espi_no_memory(err);
}

/* ---------------------------------------------------------------- scorer */

static void folded_free(void *pointer)
{
    espi_ptk_folded *f = pointer;
    if (f == NULL) return;
    espi_free(f->vertex);
    espi_free(f->name);
    espi_free(f);
}

static void add_examples(const espi_ptk_index *x, const double *coefficient, espi_ptk_folded *f)
{
    const espi_ptk_trees *t = x->trees;
    for (size_t n = 0; n < x->blocks; n++) {
        const struct espi_ptk_block *b = &x->block[n];
        for (size_t i = b->at; i < b[1].at; i++)
            for (size_t k = 0; k < f->outputs; k++)
                f->vertex[k * x->vertices + b->vertex + x->at[i].item] += coefficient[x->at[i].tree * f->outputs + k];
    }
    for (size_t i = 0; i < t->trees; i++)
        for (size_t c = t->tree[i].count; c < t->tree[i + 1].count; c++)
            for (size_t k = 0; k < f->outputs; k++)
                f->name[k * t->name.count + t->count[c].name] += t->count[c].count * coefficient[i * f->outputs + k];
}

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **folded, esp_error *err)
{
    const espi_ptk_index *x = &ptk_of(part)->base->index;
    *folded = NULL;
    if (ptk_of(part)->algorithm == PTK_PAIR) return ESP_OK;
    espi_ptk_folded *f = espi_alloc_zero(1, sizeof *f);
    if (f == NULL) return espi_no_memory(err);
    f->outputs = outputs;
    f->vertex = espi_alloc_zero(x->vertices, outputs * sizeof *f->vertex);
    f->name = espi_alloc_zero(x->trees->name.count, outputs * sizeof *f->name);
    if (f->vertex == NULL || f->name == NULL) {
        folded_free(f);
        return espi_no_memory(err);
    }
    add_examples(x, coefficient, f);
    *folded = f;
    return ESP_OK;
}

static esp_status score(const espi_part *part, const void *folded, void *pointer, size_t i, double *out, esp_error *err)
{
    const espi_ptk_tree tree = espi_ptk_tree_of(trees_of(ptk_of(part), ESPI_ROWS), i);
    return espi_ptk_match_score(((workspace *)pointer)->matcher, &tree, folded, out, err);
}

/* ------------------------------------------------------------- gradients */

/* Matching all trees at once has derivatives; the other algorithm is there to compare values. */
static esp_status check_algorithm(const espi_part *part, esp_error *err)
{
    if (ptk_of(part)->algorithm == PTK_DAG) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "ptk(algorithm=pair) has no gradient: leave `algorithm` out");
}

static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *value, double *out, esp_error *err)
{
    const esp_status status = check_algorithm(part, err);
    if (status != ESP_OK) return status;
    const espi_ptk_tree tree = espi_ptk_tree_of(trees_of(ptk_of(part), ESPI_ROWS), i);
    return espi_ptk_match_gradient(((workspace *)pointer)->matcher, &tree, from, to, weight, value, out, err);
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    esp_status status = check_algorithm(part, err);
    if (status != ESP_OK) return status;
    const espi_ptk_trees *trees = trees_of(ptk_of(part), side);
    const size_t slopes = ESPI_PTK_LANES - 1;
    double *value = espi_alloc(trees->trees, slopes * sizeof *value);
    if (value == NULL) return espi_no_memory(err);
    status = espi_ptk_self_values(&ptk_of(part)->values, trees, run, true, value, err);
    for (size_t i = 0; status == ESP_OK && i < trees->trees; i++)
        for (size_t p = 0; p < slopes; p++) out[p] += weight[i] * value[i * slopes + p];
    espi_free(value);
    return status;
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
    .free = part_free,
    .workspace_new = workspace_new,
    .workspace_free = workspace_free,
    .row = row,
    .diagonal = diagonal,
    .pair = pair,
    .fold = fold,
    .folded_free = folded_free,
    .score = score,
    .gradient = gradient,
    .gradient_diagonal = gradient_diagonal,
    .no_features = "matches fragments in part, so that they have no weights",
};
