/* The grammar-driven tree kernel (Che et al. 2008; gtk.h). `fgtk3` matches each tree of the rows against the
 * DAG of the columns; `fgtk2`, `fgtk1` and `gtk` go pair by pair and are there to check and to compare. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/text.h"
#include "kernel/grammar_tree/gtk.h"
#include "kernel/tree/lanes.h"
#include "kernel/grammar_tree/rules.h"

#include <math.h>
#include <string.h>

static const char *const algorithms[] = {"fgtk3", "fgtk2", "fgtk1", "gtk", NULL}; /* as espi_gtk_algorithm */

typedef struct gtk_part {
    espi_part part;
    const struct gtk_part *base; /* whose side of the columns is used: this part's own, or that of another */
    const espi_leaf *leaf;
    const espi_column *column[2]; /* per espi_side */
    espi_gtk_algorithm algorithm;
    const espi_forest *rows, *cols; /* may be the same */
    espi_gtk gtk;
    espi_plans row_plans, col_plans; /* algorithm fgtk3; row_plans.chunk NULL: rows is cols */
    espi_dag dag;
    espi_gtk_index index;
    espi_gtk_link link;
    espi_gtk_tree *row_trees, *col_trees; /* the others; row_trees NULL: rows is cols */
} gtk_part;

typedef struct workspace {
    espi_gtk_matcher *matcher;
    espi_gtk_scratch scratch;
    double *rows; /* of a gradient: those of all lanes */
    size_t row_capacity;
    espi_part *full; /* for gradients where the part is not full; NULL: not needed yet */
    struct workspace *of_full;
} workspace;

static const gtk_part *view(const espi_part *part) { return (const gtk_part *)(const void *)part; }

static const espi_forest *forest_of(const gtk_part *t, espi_side side) { return side == ESPI_ROWS ? t->rows : t->cols; }

static const uint32_t *groups_of(const gtk_part *t, espi_side side)
{
    return t->gtk.group_of[t->rows == t->cols ? ESPI_COLS : side];
}

static void free_trees(espi_gtk_tree *tree, size_t count)
{
    for (size_t i = 0; tree != NULL && i < count; i++) espi_gtk_tree_free(&tree[i]);
    espi_free(tree);
}

static void release(espi_part *part)
{
    gtk_part *t = (gtk_part *)(void *)part;
    if (t == NULL) return;
    espi_dag_free(&t->dag);
    espi_gtk_index_free(&t->index);
    espi_gtk_link_free(&t->link);
    espi_plans_free(&t->row_plans);
    espi_plans_free(&t->col_plans);
    free_trees(t->row_trees, t->rows->roots);
    free_trees(t->col_trees, t->cols->roots);
    espi_gtk_clear(&t->gtk);
    espi_free(t);
}

/* ------------------------------------------------------------------ bind */

static espi_gtk_tree *make_trees(const gtk_part *t, espi_side side)
{
    const espi_forest *f = forest_of(t, side);
    espi_gtk_tree *tree = espi_alloc_zero(f->roots, sizeof *tree);
    for (size_t i = 0; tree != NULL && i < f->roots; i++) {
        if (espi_gtk_tree_fill(&tree[i], &t->gtk, f, groups_of(t, side), f->root[i])) continue;
        free_trees(tree, f->roots);
        return NULL;
    }
    return tree;
}

static esp_status prepare_pairs(gtk_part *t, esp_error *err)
{
    if (t->base == t) t->col_trees = make_trees(t, ESPI_COLS);
    if (t->rows != t->cols) t->row_trees = make_trees(t, ESPI_ROWS);
    const bool ok = t->base->col_trees != NULL && (t->rows == t->cols || t->row_trees != NULL);
    return ok ? ESP_OK : espi_no_memory(err);
}

static bool make_dag(gtk_part *t)
{
    bool ok = true;
    for (size_t i = 0; ok && i < t->cols->roots; i++) {
        const espi_plan plan = espi_plan_of(&t->col_plans, i);
        ok = espi_dag_insert(&t->dag, &plan);
    }
    /* With words=0 a tree has several entries for one pre-terminal, which cannot be laid out densely. */
    if (ok && t->gtk.words) ok = espi_dag_settle(&t->dag);
    return ok && espi_gtk_index_make(&t->index, &t->gtk, &t->dag);
}

static esp_status prepare_dag(gtk_part *t, const esp_run *run, esp_error *err)
{
    const size_t groups = t->gtk.keys.count;
    esp_status status = ESP_OK;
    if (t->base == t) {
        status = espi_plans_make(&t->col_plans, t->cols, t->gtk.group_of[ESPI_COLS], groups, run, err);
        if (status == ESP_OK && !make_dag(t)) status = espi_no_memory(err);
    }
    if (status == ESP_OK && t->rows != t->cols)
        status = espi_plans_make(&t->row_plans, t->rows, t->gtk.group_of[ESPI_ROWS], groups, run, err);
    if (status == ESP_OK && !espi_gtk_link_make(&t->link, &t->gtk, false, &t->base->index, &t->base->dag))
        status = espi_no_memory(err);
    return status;
}

/* Trying all variations is for comparison; it must not run for years. */
static esp_status check_variations(const gtk_part *t, const espi_forest *f, const espi_rules *rules, esp_error *err)
{
    if (t->algorithm != ESPI_GTK || rules == NULL) return ESP_OK;
    bool *optional = espi_rules_optional(rules, f, NULL);
    if (optional == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        size_t count = 0;
        char quoted[96];
        for (size_t k = 0; k < p->arity; k++) count += optional[p->children + k];
        if (count <= ESPI_GTK_OPTIONAL) continue;
        const espi_symbol *label = &f->symbols.symbol[p->label];
        status = espi_fail(err, ESP_ERR_PARAM,
                           "gtk(algorithm=gtk) tries all variations: a production of %s with %u children, %zu of them "
                           "optional, has %.0f, and %d are allowed; algorithm=fgtk3 takes any number",
                           espi_quote(label->text, label->size, quoted), (unsigned)p->arity, count,
                           ldexp(1.0, (int)(count < 1000 ? count : 1000)), 1 << ESPI_GTK_OPTIONAL);
    }
    espi_free(optional);
    return status;
}

static esp_status bind_as(const espi_leaf *leaf, bool full, const espi_column *rows, const espi_column *cols,
                          const espi_part *base, const esp_run *run, espi_part **out, esp_error *err)
{
    *out = NULL;
    gtk_part *t = espi_alloc_zero(1, sizeof *t);
    if (t == NULL) return espi_no_memory(err);
    t->part.class = leaf->class;
    t->base = base != NULL ? view(base) : t;
    t->leaf = leaf;
    t->column[ESPI_ROWS] = rows;
    t->column[ESPI_COLS] = cols;
    t->rows = &rows->trees;
    t->cols = &cols->trees;
    t->algorithm = (espi_gtk_algorithm)espi_leaf_value(leaf, "algorithm");
    esp_status status = check_variations(t, t->rows, leaf->argument, err);
    if (status == ESP_OK && t->rows != t->cols) status = check_variations(t, t->cols, leaf->argument, err);
    if (status == ESP_OK && !espi_gtk_begin(&t->gtk, leaf, full, t->rows, t->cols)) status = espi_no_memory(err);
    if (status == ESP_OK) status = t->algorithm == ESPI_FGTK3 ? prepare_dag(t, run, err) : prepare_pairs(t, err);
    if (status == ESP_OK) *out = &t->part;
    else release(&t->part);
    return status;
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    return bind_as(leaf, false, rows, cols, base, run, out, err);
}

static void workspace_free(void *pointer)
{
    workspace *w = pointer;
    if (w == NULL) return;
    workspace_free(w->of_full);
    release(w->full);
    espi_gtk_matcher_free(w->matcher);
    espi_gtk_scratch_free(&w->scratch);
    espi_free(w->rows);
    espi_free(w);
}

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    const gtk_part *t = view(part);
    workspace *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL || t->algorithm != ESPI_FGTK3) return w;
    w->matcher = espi_gtk_matcher_new(&t->gtk, &t->base->index, &t->link, &t->base->dag, run);
    if (w->matcher != NULL) return w;
    workspace_free(w);
    return NULL;
}

/* ---------------------------------------------------------------- values */

static espi_plan plan_of(const gtk_part *t, espi_side side, size_t i)
{
    return espi_plan_of(side == ESPI_ROWS && t->rows != t->cols ? &t->row_plans : &t->base->col_plans, i);
}

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const gtk_part *t = view(part);
    workspace *w = pointer;
    memset(out, 0, (to - from) * sizeof *out);
    if (t->algorithm == ESPI_FGTK3) {
        const espi_plan plan = plan_of(t, ESPI_ROWS, i);
        return espi_gtk_match_row(w->matcher, &plan, from, to, 1, out, err);
    }
    const espi_gtk_tree *a = &(t->rows != t->cols ? t->row_trees : t->base->col_trees)[i], *b = t->base->col_trees;
    bool ok = true;
    for (size_t j = from; ok && j < to; j++)
        ok = espi_gtk_pair(&t->gtk, t->algorithm, a, &b[j], &w->scratch, &out[j - from]);
    return ok ? ESP_OK : espi_no_memory(err);
}

enum { LARGE = 512 }; /* nodes from which on a tree is matched against a DAG of its own */

/* Trees first .. last-1 with themselves, by a DAG of these alone; all lanes of one, then of the next. */
static esp_status dag_values(const gtk_part *t, espi_side side, size_t first, size_t last, const esp_run *run,
                             size_t lanes, double *value, esp_error *err)
{
    espi_dag dag = {0};
    espi_gtk_index index = {0};
    espi_gtk_link link = {0};
    espi_gtk_matcher *matcher = NULL;
    bool ok = true;
    for (size_t i = first; ok && i < last; i++) {
        const espi_plan plan = plan_of(t, side, i);
        ok = espi_dag_insert(&dag, &plan);
    }
    if (ok && espi_gtk_index_make(&index, &t->gtk, &dag) && espi_gtk_link_make(&link, &t->gtk, true, &index, &dag))
        matcher = espi_gtk_matcher_new(&t->gtk, &index, &link, &dag, run);
    esp_status status = matcher == NULL ? espi_no_memory(err) : ESP_OK;
    memset(value, 0, (last - first) * lanes * sizeof *value);
    for (size_t i = 0; status == ESP_OK && i < last - first; i++) {
        const espi_plan plan = plan_of(t, side, first + i);
        status = espi_gtk_match_row(matcher, &plan, i, i + 1, lanes, value + i * lanes, err);
    }
    espi_gtk_matcher_free(matcher);
    espi_gtk_link_free(&link);
    espi_gtk_index_free(&index);
    espi_dag_free(&dag);
    return status;
}

typedef struct gtk_self_values {
    const gtk_part *part;
    espi_side side;
    double *out;
    const double *weight; /* of a gradient */
    struct self_worker {
        espi_gtk_tree tree;
        espi_gtk_scratch scratch;
    } * worker; /* per thread */
} gtk_self_values;

static esp_status self_value(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const gtk_self_values *j = context;
    struct self_worker *w = &j->worker[thread->number];
    const espi_forest *f = forest_of(j->part, j->side);
    /* Along a chain that repeats, the columns of a DAG converge, where pairs of nodes would all be visited. */
    if (j->part->algorithm == ESPI_FGTK3 && plan_of(j->part, j->side, item).nodes > LARGE)
        return dag_values(j->part, j->side, item, item + 1, thread->run, 1, &j->out[item], err);
    if (espi_gtk_tree_fill(&w->tree, &j->part->gtk, f, groups_of(j->part, j->side), f->root[item]) &&
        espi_gtk_pair(&j->part->gtk, j->part->algorithm, &w->tree, &w->tree, &w->scratch, &j->out[item]))
        return ESP_OK;
    return espi_no_memory(err);
}

static esp_status diagonal(const espi_part *part, espi_side side, const esp_run *run, double *out, esp_error *err)
{
    const gtk_part *t = view(part);
    const size_t count = forest_of(t, side)->roots;
    const int workers = espi_worker_count(run, count);
    gtk_self_values j = {.part = t, .side = side, .out = out};
    j.worker = espi_alloc_zero((size_t)workers, sizeof *j.worker);
    if (j.worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "preparing the norms", count, self_value, &j, err);
    for (int i = 0; i < workers; i++) {
        espi_gtk_tree_free(&j.worker[i].tree);
        espi_gtk_scratch_free(&j.worker[i].scratch);
    }
    espi_free(j.worker);
    return status;
}

static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    const gtk_part *t = view(part);
    const espi_forest *f = forest_of(t, side_i), *g = forest_of(t, side_j);
    espi_gtk_tree a = {0}, b = {0};
    espi_gtk_scratch scratch = {0};
    const bool ok = espi_gtk_tree_fill(&a, &t->gtk, f, groups_of(t, side_i), f->root[i]) &&
                    espi_gtk_tree_fill(&b, &t->gtk, g, groups_of(t, side_j), g->root[j]) &&
                    espi_gtk_pair_wide(&t->gtk, &a, &b, &scratch, value);
    espi_gtk_tree_free(&a);
    espi_gtk_tree_free(&b);
    espi_gtk_scratch_free(&scratch);
    return ok ? ESP_OK : espi_no_memory(err);
}

/* ------------------------------------------------------------- gradients */

/* The engine of algorithm=fgtk3 has derivatives, the others are there to compare values. */
static esp_status check_algorithm(const gtk_part *t, esp_error *err)
{
    if (t->algorithm == ESPI_FGTK3) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "gtk(algorithm=%s) has no gradient: leave `algorithm` out",
                     algorithms[t->algorithm]);
}

/* Whether the part leaves something out that has derivatives. Few ask for gradients there: a full part is made for
 * those. */
static bool is_partial(const gtk_part *t)
{
    return !t->gtk.full && t->leaf->argument != NULL && (t->gtk.lambda1 == 0.0 || t->gtk.lambda2 == 0.0);
}

static esp_status make_full(const gtk_part *t, const esp_run *run, espi_part **out, esp_error *err)
{
    return bind_as(t->leaf, true, t->column[ESPI_ROWS], t->column[ESPI_COLS], NULL, run, out, err);
}

static esp_status gradient(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, const double *weight,
                           double *value, double *out, esp_error *err)
{
    workspace *w = pointer;
    const size_t n = to - from;
    esp_status status = check_algorithm(view(part), err);
    if (status == ESP_OK && is_partial(view(part))) {
        if (w->full == NULL) status = make_full(view(part), NULL, &w->full, err);
        if (status == ESP_OK && w->of_full == NULL) w->of_full = workspace_new(w->full, NULL);
        if (status == ESP_OK && w->of_full == NULL) status = espi_no_memory(err);
        part = w->full;
        w = w->of_full;
    }
    if (status != ESP_OK || n == 0) return status;
    if (!espi_reserve(&w->rows, &w->row_capacity, ESPI_GTK_LANES * n, sizeof *w->rows)) return espi_no_memory(err);
    memset(w->rows, 0, ESPI_GTK_LANES * n * sizeof *w->rows);
    const espi_plan plan = plan_of(view(part), ESPI_ROWS, i);
    status = espi_gtk_match_row(w->matcher, &plan, from, to, ESPI_GTK_LANES, w->rows, err);
    if (status == ESP_OK) espi_lanes_weigh(w->rows, n, ESPI_GTK_LANES, weight, out);
    if (status == ESP_OK && value != NULL) memcpy(value, w->rows, n * sizeof *value);
    return status;
}

enum { CHUNK = 32 }; /* trees that share a DAG, to which each is matched: making one takes as long as many rows */

/* The gradient of the self-values of a chunk. */
static esp_status chunk_gradient(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const gtk_self_values *j = context;
    const size_t first = item * CHUNK, trees = forest_of(j->part, j->side)->roots;
    const size_t last = trees - first < CHUNK ? trees : first + CHUNK;
    double value[CHUNK * ESPI_GTK_LANES], *sum = j->out + item * ESPI_GTK_LANES;
    const esp_status status = dag_values(j->part, j->side, first, last, thread->run, ESPI_GTK_LANES, value, err);
    for (size_t i = first; status == ESP_OK && i < last; i++)
        espi_lanes_weigh(value + (i - first) * ESPI_GTK_LANES, 1, ESPI_GTK_LANES, &j->weight[i], sum);
    return status;
}

static esp_status gradient_diagonal(const espi_part *part, espi_side side, const esp_run *run, const double *weight,
                                    double *out, esp_error *err)
{
    espi_part *full = NULL;
    esp_status status = check_algorithm(view(part), err);
    if (status == ESP_OK && is_partial(view(part))) {
        status = make_full(view(part), run, &full, err);
        part = full;
    }
    if (status != ESP_OK) return status;
    const size_t items = (forest_of(view(part), side)->roots + CHUNK - 1) / CHUNK;
    gtk_self_values j = {.part = view(part), .side = side, .weight = weight};
    j.out = espi_alloc_zero(items, ESPI_GTK_LANES * sizeof *j.out);
    status =
        j.out == NULL ? espi_no_memory(err) : espi_parallel(run, "preparing the norms", items, chunk_gradient, &j, err);
    for (size_t i = 0; status == ESP_OK && i < items; i++)
        for (size_t p = 0; p + 1 < ESPI_GTK_LANES; p++) out[p] += j.out[i * ESPI_GTK_LANES + p];
    espi_free(j.out);
    release(full);
    return status;
}

/* ---------------------------------------------------------------- scorer */

typedef struct folded { /* f per vertex of the DAG */
    size_t groups, outputs;
    double **f;
} folded;

static void folded_free(void *pointer)
{
    folded *s = pointer;
    if (s == NULL) return;
    espi_dag_fold_free(s->f, s->groups);
    espi_free(s);
}

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    const gtk_part *t = view(part);
    *out = NULL;
    if (t->algorithm != ESPI_FGTK3) return ESP_OK;
    folded *s = espi_alloc_zero(1, sizeof *s);
    if (s == NULL) return espi_no_memory(err);
    s->groups = t->base->dag.groups;
    s->outputs = outputs;
    s->f = espi_dag_fold(&t->base->dag, coefficient, outputs);
    if (s->f == NULL) {
        folded_free(s);
        return espi_no_memory(err);
    }
    *out = s;
    return ESP_OK;
}

static esp_status score(const espi_part *part, const void *pointer, void *work, size_t i, double *out, esp_error *err)
{
    const folded *s = pointer;
    const espi_plan plan = plan_of(view(part), ESPI_ROWS, i);
    return espi_gtk_match_score(((workspace *)work)->matcher, &plan, s->f, s->outputs, out, err);
}

/* ----------------------------------------------------------------- table */

#define SHARE(name, help, default_value)                                                                               \
    {                                                                                                                  \
        .info = {name, help, default_value, "a number from 0 to 1", ESP_KIND_NUMBER}, .low = 0.0, .high = 1.0,         \
        .draw_low = 0.01, .draw_high = 1.0                                                                             \
    }
#define SWITCH(name, help)                                                                                             \
    {                                                                                                                  \
        .info = {name, help, "1", "0 or 1", ESP_KIND_FLAG}, .low = 0.0, .high = 1.0                                    \
    }

const espi_kernel_class espi_kernel_gtk = {
    .name = "gtk",
    .help = "fragments in common, where a grammar lets children be missing and labels stand for each other",
    .parameters =
        (const espi_parameter[]){
            {.info = {"lambda", "decay: a fragment of s productions weighs lambda^s", "0.4", "a number > 0",
                      ESP_KIND_NUMBER},
             .low = 0.0,
             .low_open = true,
             .high = HUGE_VAL,
             .draw_low = 1e-4,
             .draw_high = 1.0},
            SHARE("lambda1", "weight of each optional child that is removed", "0.6"),
            SHARE("lambda2", "weight of each label of a pre-terminal that is changed within its class", "0.3"),
            {.info = {"grammar", "optional children and classes of labels (docs/grammars.md)", "{}",
                      "a file, or rules in braces: {NP -> DT [JJ] NN; = NN NNS}", ESP_KIND_RULES},
             .argument = &espi_rules_argument},
            SWITCH("words", "1: pre-terminals match by their words too, 0: by their labels alone"),
            SWITCH("frontier", "1: labels change also where a fragment ends, 0: only with their words"),
            {.info = {"algorithm", "fgtk3: all trees at once; fgtk2, fgtk1, gtk: pair by pair, for comparison", "fgtk3",
                      "fgtk3, fgtk2, fgtk1 or gtk", ESP_KIND_CHOICE},
             .choices = algorithms},
            {.info = {0}}},
    .takes = {[ESP_COLUMN_TREE] = true},
    .bind = bind,
    .free = release,
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
    .warn = espi_rules_warn,
};
