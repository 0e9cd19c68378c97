/* Which productions can be aligned, and how: two of them can if a variation of the one looks like a variation of the
 * other. All variations of the columns' productions are kept in a table, so that those of a production of the rows
 * are only looked up; productions with very many are compared one by one. Of a pair that can be aligned, the cells kept
 * are those that lie on some complete alignment; mostly there is just one alignment, and its value a product. */
#include "base/alloc.h"
#include "base/sort.h"
#include "kernel/grammar_tree/gtk.h"

#include <string.h>

enum { LISTED = 8 }; /* optional children up to which all variations are listed */

/* The look of a variation, in `key`: the label, then what each kept child must have in common with another. Its size,
 * or 0 if no child is kept. */
static size_t look_of(const espi_gtk *g, const espi_gtk_group *group, unsigned removed, uint32_t *key)
{
    size_t size = 0;
    unsigned bit = 1;
    key[size++] = group->label;
    for (size_t k = 0; k < group->arity; k++) {
        const uint32_t child = g->child[group->children + k], symbol = child >> 1;
        if (g->optional[group->children + k]) {
            const bool gone = (removed & bit) != 0;
            bit <<= 1;
            if (gone) continue;
        }
        key[size++] = child & 1;
        key[size++] = (child & 1) != 0 && g->frontier ? g->class[symbol] : symbol;
    }
    return size > 1 ? size * sizeof *key : 0;
}

/* ------------------------------------------------------------------- index */

void espi_gtk_index_free(espi_gtk_index *x)
{
    for (size_t i = 0; x->look != NULL && i < x->looks.count; i++) espi_free(x->look[i].group);
    espi_symbols_free(&x->looks);
    espi_free(x->look);
    espi_free(x->many);
    espi_free(x->position);
    espi_free(x->below);
    *x = (espi_gtk_index){0};
}

static bool add_look(espi_gtk_index *x, const uint32_t *key, size_t size, uint32_t group)
{
    const size_t known = x->looks.count;
    /* Room first: what is counted is freed. */
    if (!espi_reserve(&x->look, &x->look_capacity, known + 1, sizeof *x->look)) return false;
    const uint32_t number = espi_symbols_add(&x->looks, (const char *)key, size);
    if (number == ESPI_NO_SYMBOL) return false;
    struct espi_gtk_look *look = &x->look[number];
    if (number == known) *look = (struct espi_gtk_look){0};
    if (look->groups > 0 && look->group[look->groups - 1] == group) return true; /* by two ways */
    if (!espi_reserve(&look->group, &look->capacity, look->groups + 1, sizeof *look->group)) return false;
    look->group[look->groups++] = group;
    return true;
}

/* Which inner children of the DAG's groups are pre-terminals. */
static bool look_below(espi_gtk_index *x, const espi_gtk *g, const espi_dag *dag)
{
    size_t all = 0;
    x->position = espi_alloc(dag->groups, sizeof *x->position);
    for (size_t i = 0; x->position != NULL && i < dag->groups; i++) {
        x->position[i] = all;
        all += dag->group[i].inner;
    }
    x->below = espi_alloc_zero(all, sizeof *x->below);
    if (x->position == NULL || x->below == NULL) return false;
    for (size_t i = 0; i < dag->groups; i++) {
        const espi_group *group = &dag->group[i];
        for (size_t k = 0; k < group->inner; k++)
            for (size_t r = 0; r < group->vertices; r++)
                x->below[x->position[i] + k] |=
                    g->group[group->child[2 * k * group->capacity + r]].words != ESPI_NO_NODE ? 1 : 2;
    }
    return true;
}

bool espi_gtk_index_make(espi_gtk_index *x, const espi_gtk *g, const espi_dag *dag)
{
    uint32_t *key = NULL;
    size_t capacity = 0;
    bool ok = look_below(x, g, dag);
    for (uint32_t i = 0; ok && i < dag->groups; i++) {
        if (dag->group[i].vertices == 0 || dag->group[i].inner == 0) continue;
        const espi_gtk_group *group = &g->group[i];
        const unsigned optional = group->optional;
        ok = espi_reserve(&key, &capacity, 2 * (size_t)group->arity + 1, sizeof *key);
        if (ok && optional > LISTED) {
            ok = espi_reserve(&x->many, &x->many_capacity, x->manies + 1, sizeof *x->many);
            if (ok) x->many[x->manies++] = i;
            continue;
        }
        for (unsigned v = 0; ok && v < 1u << optional; v++) {
            const size_t size = look_of(g, group, v, key);
            ok = size == 0 || add_look(x, key, size, i);
        }
    }
    espi_free(key);
    return ok;
}

/* -------------------------------------------------------------------- link */

void espi_gtk_link_free(espi_gtk_link *l)
{
    espi_free(l->start);
    espi_free(l->meeting);
    espi_free(l->cell);
    *l = (espi_gtk_link){0};
}

typedef struct linker {
    espi_gtk_link *link;
    const espi_gtk *gtk;
    const espi_gtk_index *index;
    const espi_dag *dag;
    uint32_t *stamp;   /* per group of the DAG: the last that it was compared with, plus 1 */
    uint64_t *members; /* labels of classes as class << 32 | label, in order */
    size_t member_count;
    uint32_t *key;
    double *table;
    size_t key_capacity, table_capacity;
} linker;

/* Whether two children may be kept together. */
static bool possible(const espi_gtk *g, uint32_t a, uint32_t b)
{
    if (a == b) return true;
    return (a & b & 1) != 0 && g->frontier && g->class[a >> 1] == g->class[b >> 1];
}

/* t[i * (n + 1) + j] = the number of alignments, the empty one included, of the first i children of p and j of q; from
 * the other end if `back`. */
static void count_alignments(const espi_gtk *g, const espi_gtk_group *p, const espi_gtk_group *q, bool back, double *t,
                             double *a)
{
    const size_t m = p->arity, n = q->arity, width = n + 1;
    for (size_t j = 0; j <= n; j++) a[j] = 0.0;
    for (size_t i = 0; i <= m; i++) {
        const size_t x = i == 0 ? 0 : p->children + (back ? m - i : i - 1);
        for (size_t j = 0; j <= n; j++) {
            const size_t y = j == 0 ? 0 : q->children + (back ? n - j : j - 1);
            if (i == 0) a[j] = j == 0 ? 1.0 : 0.0;
            else a[j] = g->optional[x] ? a[j] : 0.0;
            if (i > 0 && j > 0 && possible(g, g->child[x], g->child[y])) a[j] += t[(i - 1) * width + j - 1];
            t[i * width + j] = a[j] + (j > 0 && g->optional[y] ? t[i * width + j - 1] : 0.0);
        }
    }
}

espi_gtk_factor espi_gtk_factor_of(const espi_gtk *g, uint32_t a, uint32_t b, size_t lane)
{
    const double both = espi_gtk_common(g, a, b, 2, lane);
    return (espi_gtk_factor){.both = both,
                             .one = espi_gtk_common(g, a, b, 1, lane),
                             .none = espi_gtk_common(g, a, b, 0, lane),
                             .hit = both + espi_gtk_words(g, a, b, lane)};
}

double espi_gtk_scale(const espi_gtk *g, const espi_gtk_meeting *meeting, uint32_t with, size_t lane)
{
    const espi_gtk_group *p = &g->group[meeting->group], *q = &g->group[with];
    if (q->words != ESPI_NO_NODE) return espi_gtk_words(g, p->label, q->label, lane);
    const unsigned removed = meeting->single ? (unsigned)(p->arity + q->arity - 2 * meeting->cells) : 0;
    if (lane == 0) return g->lambda * espi_power(g->lambda1, removed);
    if (lane == ESPI_GTK_LAMBDA) return espi_power(g->lambda1, removed);
    if (lane != ESPI_GTK_LAMBDA1 || removed == 0) return 0.0;
    return g->lambda * removed * espi_power(g->lambda1, removed - 1);
}

static bool add_cell(linker *w, const espi_gtk_group *p, const espi_gtk_group *q, size_t k, size_t l, uint32_t ip,
                     uint32_t iq)
{
    const espi_gtk *g = w->gtk;
    espi_gtk_link *link = w->link;
    const uint32_t a = g->child[p->children + k], b = g->child[q->children + l];
    if (!espi_reserve(&link->cell, &link->cell_capacity, link->cells + 1, sizeof *link->cell)) return false;
    espi_gtk_cell cell = {.k = (uint32_t)k, .l = (uint32_t)l, .p = ESPI_NO_NODE, .q = ESPI_NO_NODE};
    if ((a & 1) != 0)
        cell = (espi_gtk_cell){
            .k = cell.k, .l = cell.l, .p = ip, .q = iq, .factor = espi_gtk_factor_of(g, a >> 1, b >> 1, 0)};
    link->cell[link->cells++] = cell;
    return true;
}

/* Compares a group of the DAG with q and adds their meeting if there is an alignment. */
static bool compare(linker *w, uint32_t number, uint32_t with)
{
    const espi_gtk *g = w->gtk;
    const espi_gtk_group *p = &g->group[number], *q = &g->group[with];
    if (w->stamp[number] == with + 1 || p->kind != q->kind) return true;
    w->stamp[number] = with + 1;
    const size_t m = p->arity, n = q->arity, width = n + 1, size = (m + 1) * width;
    if (!espi_reserve(&w->table, &w->table_capacity, 2 * size + width, sizeof *w->table)) return false;
    double *before = w->table, *after = before + size;
    count_alignments(g, p, q, false, before, after + size);
    const bool empty = p->optional == m && q->optional == n;
    const double alignments = before[size - 1] - (empty ? 1.0 : 0.0);
    if (!(alignments > 0.0)) return true;
    count_alignments(g, p, q, true, after, after + size);
    espi_gtk_link *link = w->link;
    if (!espi_reserve(&link->meeting, &link->meeting_capacity, link->meetings + 1, sizeof *link->meeting)) return false;
    espi_gtk_meeting meeting = {.group = number, .single = alignments == 1.0, .cell = link->cells};
    for (uint32_t k = 0, ip = 0; k < m; ip += g->child[p->children + k++] & 1)
        for (uint32_t l = 0, iq = 0; l < n; iq += g->child[q->children + l++] & 1)
            if (before[k * width + l] > 0.0 && after[(m - k - 1) * width + n - l - 1] > 0.0 &&
                possible(g, g->child[p->children + k], g->child[q->children + l]) && !add_cell(w, p, q, k, l, ip, iq))
                return false;
    meeting.cells = link->cells - meeting.cell;
    meeting.scale = espi_gtk_scale(g, &meeting, with, 0);
    link->meeting[link->meetings++] = meeting;
    return true;
}

static bool link_inner(linker *w, uint32_t with)
{
    const espi_gtk_group *q = &w->gtk->group[with];
    const unsigned optional = q->optional;
    bool ok = espi_reserve(&w->key, &w->key_capacity, 2 * (size_t)q->arity + 1, sizeof *w->key);
    for (uint32_t i = 0; ok && optional > LISTED && i < w->dag->groups; i++)
        if (w->dag->group[i].vertices > 0) ok = compare(w, i, with);
    for (unsigned v = 0; ok && optional <= LISTED && v < 1u << optional; v++) {
        const size_t size = look_of(w->gtk, q, v, w->key);
        const uint32_t look =
            size == 0 ? ESPI_NO_SYMBOL : espi_symbols_find(&w->index->looks, (const char *)w->key, size);
        for (size_t i = 0; ok && look != ESPI_NO_SYMBOL && i < w->index->look[look].groups; i++)
            ok = compare(w, w->index->look[look].group[i], with);
    }
    for (size_t i = 0; ok && optional <= LISTED && i < w->index->manies; i++) ok = compare(w, w->index->many[i], with);
    return ok;
}

/* A pre-terminal meets those with its words and a label of its class. */
static bool link_words(linker *w, uint32_t with)
{
    const espi_gtk *g = w->gtk;
    const espi_gtk_group *q = &g->group[with];
    const uint64_t class = g->class[q->label];
    const uint64_t own = class << 32 | q->label;
    const uint64_t *member = g->size[q->label] > 1 ? w->members : &own;
    size_t low = 0, high = g->size[q->label] > 1 ? w->member_count : 1;
    const size_t all = high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (member[middle] < class << 32) low = middle + 1;
        else high = middle;
    }
    for (; low < all && member[low] >> 32 == class; low++) {
        const uint32_t key[3] = {(uint32_t)member[low], 1, q->words};
        const uint32_t number = espi_symbols_find(&g->keys, (const char *)key, sizeof key);
        if (number >= w->dag->groups || w->dag->group[number].vertices == 0) continue;
        if (!espi_reserve(&w->link->meeting, &w->link->meeting_capacity, w->link->meetings + 1,
                          sizeof *w->link->meeting))
            return false;
        espi_gtk_meeting meeting = {.group = number, .single = true};
        meeting.scale = espi_gtk_scale(g, &meeting, with, 0);
        w->link->meeting[w->link->meetings++] = meeting;
    }
    return true;
}

static bool list_members(linker *w)
{
    const espi_gtk *g = w->gtk;
    w->members = espi_alloc(g->symbols, sizeof *w->members);
    for (size_t i = 0; w->members != NULL && i < g->symbols; i++)
        if (g->size[i] > 1) w->members[w->member_count++] = (uint64_t)g->class[i] << 32 | i;
    espi_sort_keys(w->members, w->member_count);
    return w->members != NULL;
}

bool espi_gtk_link_make(espi_gtk_link *link, const espi_gtk *g, bool own, const espi_gtk_index *index,
                        const espi_dag *dag)
{
    const espi_side from = g->group_of[ESPI_ROWS] != NULL ? ESPI_ROWS : ESPI_COLS;
    const size_t groups = g->keys.count;
    linker w = {.link = link, .gtk = g, .index = index, .dag = dag};
    bool *wanted = espi_alloc_zero(groups, sizeof *wanted);
    link->start = espi_alloc_zero(groups + 1, sizeof *link->start);
    w.stamp = espi_alloc_zero(dag->groups, sizeof *w.stamp);
    bool ok = wanted != NULL && link->start != NULL && w.stamp != NULL && list_members(&w);
    for (size_t i = 0; ok && own && i < groups && i < dag->groups; i++) wanted[i] = dag->group[i].vertices > 0;
    for (size_t i = 0; ok && !own && i < g->productions[from]; i++) wanted[g->group_of[from][i]] = true;
    for (uint32_t i = 0; ok && i < groups; i++) {
        if (wanted[i]) ok = g->group[i].words != ESPI_NO_NODE ? link_words(&w, i) : link_inner(&w, i);
        link->start[i + 1] = link->meetings;
    }
    espi_free(wanted);
    espi_free(w.stamp);
    espi_free(w.members);
    espi_free(w.key);
    espi_free(w.table);
    return ok;
}
