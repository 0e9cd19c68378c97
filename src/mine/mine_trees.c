/* Trees: fragments grown in one canonical order (pattern.h), as occurrences of equal subtrees at once.
 *
 * A fragment matches at a vertex of the forest or does not, whatever tree the vertex stands in. So the projected
 * database of a fragment is the list of vertices at which it matches, each with the vertices that are its open nodes
 * there; the examples that contain it are those that hold one of these vertices. One pass over open node k of all
 * occurrences sorts them by production: these are the fragments one step longer. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "mine/search.h"

#include <string.h>

typedef struct database {
    const espi_forest *forest;
    size_t *start; /* vertex v is in the rows row[start[v]] .. row[start[v+1]-1] */
    uint32_t *row;
    size_t rows;
    uint8_t *positive; /* per row of the column */
    bool *hopeful;     /* per production: it may be part of a kept fragment */
} database;

typedef struct frame {
    espi_step step;
    bool grow;
    size_t from; /* its occurrences: ref[from + i * (1 + open)] is where number i is rooted, its open nodes follow */
    size_t count;
    size_t open;
} frame;

typedef struct miner { /* one thread's */
    espi_search *search;
    const database *db;
    uint64_t *seen; /* per row: the stamp of the last fragment found in it */
    uint64_t stamp;
    size_t *count; /* per production: occurrences whose open node has it; then where they go in `order` */
    uint32_t *touched;
    size_t touches, touched_capacity;
    size_t *order; /* occurrences sorted by production */
    size_t order_capacity;
    frame *frame;
    size_t frames, frame_capacity;
    espi_ref *ref;
    size_t ref_capacity;
    espi_mine_stats stats;
} miner;

typedef struct tree_mining {
    espi_search search;
    database db;
    miner *worker;
    int workers;
    miner first; /* finds the first productions */
} tree_mining;

/* ----------------------------------------------------------------- database */

static void database_free(database *d)
{
    espi_free(d->start);
    espi_free(d->row);
    espi_free(d->positive);
    espi_free(d->hopeful);
}

/* Visits the used trees: first counts in start[v + 2], then with `fill` puts rows where start[v + 1] says. */
static bool post(database *d, const bool *used, espi_fragment_walker *walker, espi_vertices *vertices, bool fill)
{
    for (size_t r = 0; r < d->rows; r++) {
        if (used != NULL && !used[r]) continue;
        if (!espi_vertices_make(vertices, d->forest, d->forest->root[r], walker)) return false;
        for (size_t i = 0; i < vertices->count; i++) {
            const size_t v = vertices->at[i].vertex;
            if (fill) d->row[d->start[v + 1]++] = (uint32_t)r;
            else d->start[v + 2]++;
        }
    }
    return true;
}

static bool database_make(database *d, const espi_column *column, const uint8_t *positive, const bool *used)
{
    espi_fragment_walker walker = {0};
    espi_vertices vertices = {0};
    d->forest = &column->trees;
    d->rows = column->rows;
    d->start = espi_alloc_zero(d->forest->vertices + 2, sizeof *d->start);
    d->positive = espi_alloc(d->rows, sizeof *d->positive);
    d->hopeful = espi_alloc(d->forest->productions, sizeof *d->hopeful);
    bool ok = d->start != NULL && d->positive != NULL && d->hopeful != NULL;
    for (size_t r = 0; ok && r < d->rows; r++) d->positive[r] = positive[r] != 0;
    for (size_t p = 0; ok && p < d->forest->productions; p++) d->hopeful[p] = true;
    ok = ok && post(d, used, &walker, &vertices, false);
    for (size_t v = 2; ok && v < d->forest->vertices + 2; v++) d->start[v] += d->start[v - 1];
    ok = ok && (d->row = espi_alloc(d->start[d->forest->vertices + 1], sizeof *d->row)) != NULL;
    ok = ok && post(d, used, &walker, &vertices, true);
    espi_vertices_free(&vertices);
    espi_fragment_walker_free(&walker);
    return ok;
}

/* ------------------------------------------------------------------- growth */

static void miner_free(miner *m)
{
    espi_free(m->seen);
    espi_free(m->count);
    espi_free(m->touched);
    espi_free(m->order);
    espi_free(m->frame);
    espi_free(m->ref);
}

static bool miner_start(miner *m, espi_search *search, const database *db)
{
    *m = (miner){.search = search, .db = db};
    m->seen = espi_alloc_zero(db->rows, sizeof *m->seen);
    m->count = espi_alloc_zero(db->forest->productions, sizeof *m->count);
    return m->seen != NULL && m->count != NULL;
}

/* Sorts the occurrences by the production of open node k: m->touched are the productions, falling; m->count[p] is where
 * those of p end in m->order. */
static bool sort_by_production(miner *m, const frame *f, size_t k)
{
    const espi_forest *forest = m->db->forest;
    const size_t width = 1 + f->open;
    m->touches = 0;
    if (!espi_reserve(&m->order, &m->order_capacity, f->count, sizeof *m->order)) return false;
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t p = forest->vertex[m->ref[f->from + i * width + 1 + k]].production;
        if (!m->db->hopeful[p]) continue;
        if (m->count[p]++ > 0) continue;
        if (!espi_reserve(&m->touched, &m->touched_capacity, m->touches + 1, sizeof *m->touched)) return false;
        m->touched[m->touches++] = p;
    }
    espi_sort_falling(m->touched, m->touches);
    size_t at = 0;
    for (size_t i = 0; i < m->touches; i++) {
        const size_t count = m->count[m->touched[i]];
        m->count[m->touched[i]] = at;
        at += count;
    }
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t p = forest->vertex[m->ref[f->from + i * width + 1 + k]].production;
        if (m->db->hopeful[p]) m->order[m->count[p]++] = i;
    }
    return true;
}

/* The examples that hold the root of one of the occurrences order[first .. end). */
static void count_examples(miner *m, const frame *f, size_t first, size_t end, espi_step *step)
{
    const database *d = m->db;
    m->stamp++;
    for (size_t i = first; i < end; i++) {
        const size_t root = m->ref[f->from + m->order[i] * (1 + f->open)];
        for (size_t k = d->start[root]; k < d->start[root + 1]; k++) {
            const uint32_t row = d->row[k];
            if (m->seen[row] == m->stamp) continue;
            m->seen[row] = m->stamp;
            step->x++;
            step->y += d->positive[row];
        }
    }
}

/* The database of the fragment that gives open node k a production, behind *top. */
static bool project(miner *m, const frame *f, size_t k, size_t first, size_t end, frame *down, size_t *top)
{
    const espi_forest *forest = m->db->forest;
    const size_t rest = m->search->options->paths ? 0 : f->open - k - 1;
    down->from = *top;
    down->count = end - first;
    down->open = forest->production[down->step.label].inner + rest;
    size_t bytes;
    if (__builtin_mul_overflow(down->count, 1 + down->open, &bytes) ||
        !espi_reserve(&m->ref, &m->ref_capacity, *top + bytes, sizeof *m->ref))
        return false;
    for (size_t i = first; i < end; i++) {
        const size_t at = f->from + m->order[i] * (1 + f->open);
        const espi_vertex *v = &forest->vertex[m->ref[at + 1 + k]];
        m->ref[(*top)++] = m->ref[at];
        for (size_t c = 0; c < forest->production[v->production].arity; c++)
            if (!espi_is_leaf(forest->child[v->children + c])) m->ref[(*top)++] = forest->child[v->children + c];
        for (size_t c = 0; c < rest; c++) m->ref[(*top)++] = m->ref[at + 2 + k + c];
    }
    return true;
}

/* Pushes frames for all fragments one production longer than f, the last first. */
static esp_status grow(miner *m, const frame *f, esp_error *err)
{
    size_t top = f->from + f->count * (1 + f->open);
    for (size_t k = f->open; k-- > 0;) {
        if (!sort_by_production(m, f, k)) return espi_no_memory(err);
        size_t first = 0;
        for (size_t i = 0; i < m->touches; i++) {
            const uint32_t p = m->touched[i];
            const size_t end = m->count[p];
            m->count[p] = 0;
            frame down = {.step = {.depth = f->step.depth + 1, .label = p, .skip = (uint32_t)k}};
            count_examples(m, f, first, end, &down.step);
            const espi_verdict v = espi_search_judge(m->search, down.step.depth, down.step.x, down.step.y, &m->stats);
            down.step.kept = v.keep;
            down.step.statistic = v.statistic;
            down.grow = v.grow;
            if (v.keep || v.grow) {
                if (!espi_reserve(&m->frame, &m->frame_capacity, m->frames + 1, sizeof *m->frame) ||
                    (v.grow && !project(m, f, k, first, end, &down, &top)))
                    return espi_no_memory(err);
                if (!v.grow) down.from = top;
                m->frame[m->frames++] = down;
            }
            first = end;
        }
    }
    return ESP_OK;
}

/* ---------------------------------------------------------------------- tree_mining */

enum { PULSE = 256 }; /* fragments grown between two questions whether to go on */

static esp_status mine_item(void *context, size_t item, const espi_worker *thread, espi_record *record, esp_error *err)
{
    tree_mining *j = context;
    miner *m = &j->worker[thread->number];
    const frame *start = &j->first.frame[item];
    const size_t refs = start->count * (1 + start->open);
    if (!espi_reserve(&m->ref, &m->ref_capacity, refs, sizeof *m->ref) ||
        !espi_reserve(&m->frame, &m->frame_capacity, 1, sizeof *m->frame))
        return espi_no_memory(err);
    if (refs > 0) memcpy(m->ref, j->first.ref + start->from, refs * sizeof *m->ref);
    m->frame[0] = *start;
    m->frame[0].from = 0;
    m->frames = 1;
    esp_status status = ESP_OK;
    for (size_t count = 1; m->frames > 0 && status == ESP_OK; count++) {
        const frame f = m->frame[--m->frames];
        status = espi_record_add(&j->search, record, &f.step, err);
        if (status == ESP_OK && count % PULSE == 0)
            status = espi_progress(thread->run, "mining", (double)item / (double)j->search.items, err);
        if (status == ESP_OK && f.grow) status = grow(m, &f, err);
    }
    return status == ESP_OK ? espi_record_add(&j->search, record, NULL, err) : status;
}

/* The empty fragment occurs at every vertex of a used tree, with that vertex open. Productions that cannot be part of
 * any kept fragment are left out from here on. */
static esp_status find_first(tree_mining *j, esp_error *err)
{
    miner *m = &j->first;
    const espi_forest *forest = j->db.forest;
    frame empty = {.open = 1};
    if (!miner_start(m, &j->search, &j->db) ||
        !espi_reserve(&m->ref, &m->ref_capacity, 2 * forest->vertices, sizeof *m->ref))
        return espi_no_memory(err);
    for (size_t v = 0; v < forest->vertices; v++) {
        if (j->db.start[v] == j->db.start[v + 1]) continue;
        m->ref[2 * empty.count] = m->ref[2 * empty.count + 1] = (espi_ref)v;
        empty.count++;
    }
    if (!sort_by_production(m, &empty, 0)) return espi_no_memory(err);
    for (size_t i = 0, first = 0; i < m->touches; i++) {
        const uint32_t p = m->touched[i];
        espi_step step = {0};
        count_examples(m, &empty, first, m->count[p], &step);
        j->db.hopeful[p] = espi_search_hopeful(&j->search, step.x, step.y);
        first = m->count[p];
        m->count[p] = 0;
    }
    return grow(m, &empty, err);
}

/* The set of the joined steps, with the productions that they use. */
static bool make_fragments(const espi_forest *forest, espi_record *all, espi_fragments *out)
{
    uint32_t *number = espi_alloc_zero(forest->productions, sizeof *number);
    bool ok = number != NULL;
    for (size_t i = 0; ok && i < all->steps; i++) number[all->step[i].label] = 1;
    /* By rising number, so that the order of siblings stays. */
    for (size_t p = 0; ok && p < forest->productions; p++)
        if (number[p] == 1) ok = (number[p] = espi_fragments_add(out, forest, (uint32_t)p)) != ESPI_NO_NODE;
    for (size_t i = 0; ok && i < all->steps; i++) all->step[i].label = number[all->step[i].label];
    ok = ok && espi_patterns_make(&out->set, all->step, all->steps, true);
    espi_free(number);
    return ok;
}

static esp_status run_job(tree_mining *j, espi_fragments *out, esp_error *err)
{
    const size_t items = j->first.frames;
    espi_record all = {0};
    j->workers = espi_worker_count(j->search.run, items);
    j->worker = espi_alloc_zero((size_t)j->workers, sizeof *j->worker);
    bool ok = j->worker != NULL;
    for (int w = 0; ok && w < j->workers; w++) ok = miner_start(&j->worker[w], &j->search, &j->db);
    if (!ok) return espi_no_memory(err);
    esp_status status =
        espi_search_run(&j->search, items, j->first.frame, sizeof *j->first.frame, mine_item, j, &all, err);
    if (status == ESP_OK && !make_fragments(j->db.forest, &all, out)) status = espi_no_memory(err);
    espi_free(all.step);
    return status;
}

esp_status espi_mine_trees(const espi_column *column, const uint8_t *positive, const bool *used,
                           const espi_mine_options *options, const esp_run *run, espi_fragments *out,
                           espi_mine_stats *stats, esp_error *err)
{
    tree_mining j = {0};
    *out = (espi_fragments){0};
    esp_status status = espi_search_start(&j.search, column->rows, positive, used, options, run, err);
    if (status == ESP_OK && !database_make(&j.db, column, positive, used)) status = espi_no_memory(err);
    if (status == ESP_OK) status = find_first(&j, err);
    if (status == ESP_OK) status = run_job(&j, out, err);
    espi_selection found = {.kind = ESPI_SELECTED_TREES, .fragments = *out};
    if (status == ESP_OK) status = espi_selection_limit(&found, options->top, err);
    *out = found.fragments;
    if (status != ESP_OK) espi_fragments_free(out);
    espi_mine_stats sum = j.first.stats;
    for (int w = 0; j.worker != NULL && w < j.workers; w++) {
        sum.visited += j.worker[w].stats.visited;
        sum.pruned += j.worker[w].stats.pruned;
        miner_free(&j.worker[w]);
    }
    sum.kept = out->set.patterns;
    if (stats != NULL) *stats = sum;
    miner_free(&j.first);
    espi_free(j.worker);
    database_free(&j.db);
    espi_search_free(&j.search);
    return status;
}
