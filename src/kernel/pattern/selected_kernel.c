/* Kernels over selected patterns:
 *
 *     fseq  sum over kept sequences u of phi_u(S) phi_u(T)
 *     fsst  sum over kept fragments f of lambda^productions(f) c_f(S) c_f(T)
 *
 * What is kept was mined from training data (src/mine) and hangs on the leaf. Two evaluations with equal values:
 * `features` makes the sparse vectors phi once and multiplies them by inverted lists; `recursion` walks the two
 * examples of each pair down the kept patterns together and makes no features. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "data/bag.h"
#include "kernel/expression/kernel.h"
#include "kernel/pattern/pattern.h"

#include <string.h>

enum { FEATURES, RECURSION };

typedef struct side { /* the rows or the columns of the matrix */
    const espi_column *column;
    uint32_t *map; /* its symbols or productions -> those of the patterns */
    espi_bag bag;  /* features; with `recursion`: none */
} side;

typedef struct selected_part {
    espi_part part;
    const struct selected_part *base; /* whose columns are used: this part's own, or those of another */
    const espi_selection *selection;
    double lambda;
    size_t gap;
    bool recursion;
    side rows, cols; /* rows.column == NULL: both sides are `cols` */
    espi_lists lists;
} selected_part;

typedef struct workspace {
    espi_trie_walker trie;
    espi_fragment_walker fragment;
    espi_matched tree[2];
} workspace;

static const selected_part *view(const espi_part *part) { return (const selected_part *)(const void *)part; }

static const side *side_of(const selected_part *p, espi_side which)
{
    return which == ESPI_ROWS && p->rows.column != NULL ? &p->rows : &p->base->cols;
}

static void side_free(side *s)
{
    espi_free(s->map);
    espi_bag_free(&s->bag);
}

static void release(espi_part *part)
{
    selected_part *p = (selected_part *)(void *)part;
    if (p == NULL) return;
    side_free(&p->rows);
    side_free(&p->cols);
    espi_lists_free(&p->lists);
    espi_free(p);
}

static void workspace_end(workspace *w)
{
    espi_trie_walker_free(&w->trie);
    espi_fragment_walker_free(&w->fragment);
    espi_vertices_free(&w->tree[0].vertices);
    espi_vertices_free(&w->tree[1].vertices);
}

/* ------------------------------------------------------------------ examples */

/* Makes example i of a side the first or second of the workspace. */
static bool load(const selected_part *p, const side *s, size_t i, workspace *w, int which)
{
    if (p->selection->kind == ESPI_SELECTED_SEQUENCES)
        return espi_token_places_make(&w->trie.places[which], &s->column->sequences, s->map, i);
    espi_matched *tree = &w->tree[which];
    tree->forest = &s->column->trees;
    tree->map = s->map;
    return espi_vertices_make(&tree->vertices, tree->forest, tree->forest->root[i], &w->fragment);
}

/* The features of the first. */
static bool features(const selected_part *p, workspace *w, const espi_feature_value **feature, size_t *count)
{
    bool ok;
    if (p->selection->kind == ESPI_SELECTED_SEQUENCES) {
        ok = espi_trie_features(&p->selection->trie, (espi_weighing){p->lambda, p->gap}, &w->trie);
        *feature = w->trie.feature;
        *count = w->trie.features;
    } else {
        ok = espi_fragments_features(&p->selection->fragments, p->lambda, &w->tree[0], &w->fragment);
        *feature = w->fragment.feature;
        *count = w->fragment.features;
    }
    return ok;
}

/* The kernel of the first and the second. */
static bool both(const selected_part *p, workspace *w, double *value)
{
    if (p->selection->kind == ESPI_SELECTED_TREES)
        return espi_fragments_kernel(&p->selection->fragments, p->lambda, &w->tree[0], &w->tree[1], &w->fragment,
                                     value);
    return espi_trie_kernel(&p->selection->trie, (espi_weighing){p->lambda, p->gap}, &w->trie.places[0],
                            &w->trie.places[1], &w->trie, value);
}

/* ---------------------------------------------------------------------- bind */

enum { CHUNK = 64 }; /* rows that a thread takes at a time */

typedef struct making { /* the bag of one side, chunk by chunk */
    const selected_part *part;
    side *side;
    workspace *worker;
    struct chunk {
        espi_feature_value *feature;
        size_t features, capacity;
    } * chunk;
    size_t *count; /* features per row */
} making;

static esp_status make_chunk(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    making *m = context;
    workspace *w = &m->worker[worker->number];
    struct chunk *c = &m->chunk[item];
    const size_t end = (item + 1) * CHUNK < m->side->column->rows ? (item + 1) * CHUNK : m->side->column->rows;
    for (size_t i = item * CHUNK; i < end; i++) {
        const espi_feature_value *feature;
        if (!load(m->part, m->side, i, w, 0) || !features(m->part, w, &feature, &m->count[i]) ||
            !espi_reserve(&c->feature, &c->capacity, c->features + m->count[i], sizeof *c->feature))
            return espi_no_memory(err);
        if (m->count[i] > 0) memcpy(c->feature + c->features, feature, m->count[i] * sizeof *feature);
        c->features += m->count[i];
    }
    return ESP_OK;
}

/* Lays the chunks one behind the other. */
static bool join_chunks(const making *m, size_t chunks)
{
    espi_bag *bag = &m->side->bag;
    const size_t rows = m->side->column->rows;
    size_t total = 0, at = 0;
    for (size_t c = 0; c < chunks; c++) total += m->chunk[c].features;
    *bag = (espi_bag){.rows = rows};
    bag->row = espi_alloc(rows + 1, sizeof *bag->row);
    bag->square = espi_alloc_zero(rows, sizeof *bag->square);
    bag->other = espi_alloc_zero(rows, sizeof *bag->other);
    bag->feature = espi_alloc(total, sizeof *bag->feature);
    bag->value = espi_alloc(total, sizeof *bag->value);
    if (bag->row == NULL || bag->square == NULL || bag->other == NULL || bag->feature == NULL || bag->value == NULL)
        return false;
    for (size_t c = 0, i = 0; c < chunks; c++) {
        const espi_feature_value *f = m->chunk[c].feature;
        for (; i < rows && i < (c + 1) * CHUNK; i++) {
            bag->row[i] = at;
            for (size_t k = 0; k < m->count[i]; k++, f++, at++) {
                bag->feature[at] = f->pattern;
                bag->value[at] = f->value;
                bag->square[i] += f->value * f->value;
            }
        }
    }
    bag->row[rows] = at;
    return true;
}

static esp_status make_bag(const selected_part *p, side *s, const esp_run *run, esp_error *err)
{
    const size_t chunks = (s->column->rows + CHUNK - 1) / CHUNK;
    const size_t workers = (size_t)espi_worker_count(run, chunks);
    making m = {.part = p, .side = s};
    m.worker = espi_alloc_zero(workers, sizeof *m.worker);
    m.chunk = espi_alloc_zero(chunks, sizeof *m.chunk);
    m.count = espi_alloc(s->column->rows, sizeof *m.count);
    esp_status status = m.worker != NULL && m.chunk != NULL && m.count != NULL ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = espi_parallel(run, "matching patterns", chunks, make_chunk, &m, err);
    if (status == ESP_OK && !join_chunks(&m, chunks)) status = espi_no_memory(err);
    for (size_t i = 0; m.worker != NULL && i < workers; i++) workspace_end(&m.worker[i]);
    for (size_t i = 0; m.chunk != NULL && i < chunks; i++) espi_free(m.chunk[i].feature);
    espi_free(m.worker);
    espi_free(m.chunk);
    espi_free(m.count);
    return status;
}

static esp_status side_make(const selected_part *p, side *s, const espi_column *column, const esp_run *run,
                            esp_error *err)
{
    const espi_selection *selection = p->selection;
    s->column = column;
    s->map = selection->kind == ESPI_SELECTED_SEQUENCES
                 ? espi_symbols_map(&column->sequences.symbols, &selection->trie.symbols)
                 : espi_fragments_map(&selection->fragments, &column->trees);
    if (s->map == NULL) return espi_no_memory(err);
    return p->recursion ? ESP_OK : make_bag(p, s, run, err);
}

static selected_part part_of(const espi_leaf *leaf)
{
    return (selected_part){
        .part.class = leaf->class,
        .selection = leaf->selection,
        .lambda = espi_leaf_value(leaf, "lambda"),
        .gap = espi_leaf_value_or(leaf, "gap", 0.0) != 0.0 ? 0 : SIZE_MAX,
        .recursion = espi_leaf_value(leaf, "algorithm") == RECURSION,
    };
}

esp_status espi_selection_bag(const espi_leaf *leaf, const espi_column *column, const esp_run *run, espi_bag *bag,
                              esp_error *err)
{
    selected_part part = part_of(leaf);
    side s = {0};
    part.recursion = false;
    const esp_status status = side_make(&part, &s, column, run, err);
    *bag = s.bag;
    s.bag = (espi_bag){0};
    side_free(&s);
    return status;
}

static esp_status bind(const espi_leaf *leaf, const espi_column *rows, const espi_column *cols, const espi_part *base,
                       const esp_run *run, espi_part **out, esp_error *err)
{
    *out = NULL;
    if (leaf->selection == NULL)
        return espi_fail(err, ESP_ERR_PARAM,
                         "%s has no selected patterns: its features come from training data with classes, so that it "
                         "has values only inside training and in a model",
                         leaf->class->name);
    selected_part *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    *p = part_of(leaf);
    p->base = base != NULL ? view(base) : p;
    esp_status status = ESP_OK;
    if (p->base == p) status = side_make(p, &p->cols, cols, run, err);
    if (status == ESP_OK && p->base == p && !p->recursion &&
        !espi_lists_make(&p->lists, &p->cols.bag, espi_selection_set(p->selection)->patterns))
        status = espi_no_memory(err);
    if (status == ESP_OK && rows != cols) status = side_make(p, &p->rows, rows, run, err);
    if (status == ESP_OK) *out = &p->part;
    else release(&p->part);
    return status;
}

/* -------------------------------------------------------------------- values */

static void *workspace_new(const espi_part *part, const esp_run *run)
{
    (void)part, (void)run;
    return espi_alloc_zero(1, sizeof(workspace));
}

static void workspace_free(void *pointer)
{
    if (pointer != NULL) workspace_end(pointer);
    espi_free(pointer);
}

static esp_status row(const espi_part *part, void *pointer, size_t i, size_t from, size_t to, double *out,
                      esp_error *err)
{
    const selected_part *p = view(part);
    const side *a = side_of(p, ESPI_ROWS);
    if (!p->recursion) {
        for (size_t j = from; j < to; j++) out[j - from] = 0.0;
        espi_lists_row(&p->base->lists, &a->bag, i, from, to, 1.0, out);
        return ESP_OK;
    }
    workspace *w = pointer;
    bool ok = load(p, a, i, w, 0);
    for (size_t j = from; ok && j < to; j++) ok = load(p, side_of(p, ESPI_COLS), j, w, 1) && both(p, w, &out[j - from]);
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status diagonal(const espi_part *part, espi_side which, const esp_run *run, double *out, esp_error *err)
{
    (void)run;
    const selected_part *p = view(part);
    const side *s = side_of(p, which);
    for (size_t i = 0; !p->recursion && i < s->bag.rows; i++) out[i] = s->bag.square[i];
    if (!p->recursion) return ESP_OK;
    workspace w = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->column->rows; i++)
        ok = load(p, s, i, &w, 0) && load(p, s, i, &w, 1) && both(p, &w, &out[i]);
    workspace_end(&w);
    return ok ? ESP_OK : espi_no_memory(err);
}

/* Called where a value is not finite; a product of finite features may still fit a wide number. */
static esp_status pair(const espi_part *part, espi_side side_i, size_t i, espi_side side_j, size_t j, espi_wide *value,
                       esp_error *err)
{
    const selected_part *p = view(part);
    const side *a = side_of(p, side_i), *b = side_of(p, side_j);
    *value = espi_wide_of(0.0);
    if (p->recursion) {
        workspace w = {0};
        double plain = 0.0;
        const bool ok = load(p, a, i, &w, 0) && load(p, b, j, &w, 1) && both(p, &w, &plain);
        workspace_end(&w);
        *value = espi_wide_of(plain);
        return ok ? ESP_OK : espi_no_memory(err);
    }
    size_t x = a->bag.row[i], y = b->bag.row[j];
    while (x < a->bag.row[i + 1] && y < b->bag.row[j + 1]) {
        const uint32_t f = a->bag.feature[x], g = b->bag.feature[y];
        if (f == g)
            *value = espi_wide_add(*value, espi_wide_mul(espi_wide_of(a->bag.value[x]), espi_wide_of(b->bag.value[y])));
        x += f <= g;
        y += g <= f;
    }
    return ESP_OK;
}

static esp_status fold(const espi_part *part, const double *coefficient, size_t outputs, void **out, esp_error *err)
{
    const selected_part *p = view(part);
    *out = NULL;
    if (p->recursion) return ESP_OK;
    *out = espi_folded_lists_new(&p->base->lists, coefficient, outputs);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}

static esp_status score(const espi_part *part, const void *pointer, void *work, size_t i, double *out, esp_error *err)
{
    (void)work, (void)err;
    const espi_folded_lists *s = pointer;
    for (size_t k = 0; k < s->outputs; k++) out[k] = 0.0;
    espi_bag_score(&side_of(view(part), ESPI_ROWS)->bag, i, s->weight, s->outputs, 1.0, out);
    return ESP_OK;
}

static const char *const gaps[] = {"inf", "0", NULL};
static const char *const algorithms[] = {"features", "recursion", NULL};

/* clang-format off */
#define LENGTH(help_, default_)                                                                                        \
    {.info = {"n", help_, default_, "a whole number >= 1, or inf", ESP_KIND_WHOLE},                                                    \
     .low = 1.0, .high = HUGE_VAL, .infinite = true}
#define LAMBDA(help_, default_)                                                                                        \
    {.info = {"lambda", help_, default_, "a number > 0 and <= 1", ESP_KIND_NUMBER},                                                     \
     .low = 0.0, .low_open = true, .high = 1.0}
#define TAU                                                                                                            \
    {.info = {"tau", "least chi-squared value of a pattern: 3.8415 is 5 %, 2.7055 10 %", "3.8415", "a number >= 0", ESP_KIND_NUMBER},   \
     .low = 0.0, .high = HUGE_VAL}
#define SUPPORT                                                                                                        \
    {.info = {"support", "least number of training examples that contain a pattern", "1", "a whole number >= 1", ESP_KIND_WHOLE},      \
     .low = 1.0, .high = 4294967295.0}
#define ALGORITHM                                                                                                      \
    {.info = {"algorithm", "features: sparse vectors; recursion: pair by pair, to compare", "features",                \
              "features or recursion", ESP_KIND_CHOICE},                                                                                \
     .choices = algorithms}
#define SELECTED_KERNEL                                                                                                \
    .bind = bind, .free = release, .workspace_new = workspace_new, .workspace_free = workspace_free, .row = row,       \
    .diagonal = diagonal, .pair = pair, .fold = fold, .folded_free = espi_free, .score = score,                     \
    .features = ESPI_SELECTED_PATTERNS

static const espi_selecting sequences = {ESPI_SELECTED_SEQUENCES, espi_selection_free},
                            trees = {ESPI_SELECTED_TREES, espi_selection_free};

const espi_kernel_class espi_kernel_fseq = {
    .name = "fseq",
    .help = "seq over the subsequences that tell the classes apart",
    .parameters = (const espi_parameter[]){
        LENGTH("longest subsequence", "3"),
        LAMBDA("decay: each token left out in between weighs lambda", "0.5"),
        TAU, SUPPORT,
        {.info = {"gap", "inf: any tokens may be left out; 0: none, as in n-grams", "inf", "inf or 0", ESP_KIND_CHOICE},
         .choices = gaps},
        ALGORITHM, {.info = {0}}},
    .takes = {[ESP_COLUMN_SEQUENCE] = true},
    .selects = &sequences,
    SELECTED_KERNEL,
};

const espi_kernel_class espi_kernel_fsst = {
    .name = "fsst",
    .help = "sst over the fragments that tell the classes apart",
    .parameters = (const espi_parameter[]){
        LENGTH("most productions of a fragment", "5"),
        LAMBDA("decay: a fragment of s productions weighs lambda^s", "0.4"),
        TAU, SUPPORT,
        {.info = {"paths", "1: only fragments in which at most one child of a node is expanded", "0", "0 or 1", ESP_KIND_FLAG},
         .low = 0.0, .high = 1.0},
        ALGORITHM, {.info = {0}}},
    .takes = {[ESP_COLUMN_TREE] = true},
    .selects = &trees,
    SELECTED_KERNEL,
};
/* clang-format on */
