/* Matching one tree against the DAG by the grammar-driven kernel (gtk.h). As in match.c, each different subtree v of
 * the tree gets a column of its Delta with vertices u of the DAG, from the columns of its children; added up they are
 * w(u). Here a column has a piece for each group that the group of v meets (gtk_link.c). A piece is a product of cells
 * where there is one alignment; else FGTK-III (gtk_pair.c) runs over blocks of vertices side by side. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/gtk.h"
#include "kernel/hot.h"
#include "kernel/sink.h"

#include <string.h>

enum { BLOCK = 256 }; /* vertices that FGTK-III works on at a time */

typedef struct slot { /* a column of the pool */
    double *value;    /* value[0] is 0; then the pieces, in order of the meetings */
    uint32_t *piece;  /* per meeting: where its piece starts */
    uint32_t *at;     /* several meetings: per place in the kind, where the group's piece starts; 0: nowhere */
    size_t value_capacity, piece_capacity, at_capacity;
    uint64_t serial; /* its name among all columns of the tree: equal columns of a group have one */
    uint32_t group;
    uint32_t users; /* plan nodes that have this column and are still needed, and the group's newest */
    double pending; /* occurrences of nodes that share it, not yet added to w */
} slot;

typedef struct sum { /* w of a group */
    uint32_t group;
    double *w;
    size_t capacity;
} sum;

typedef struct newest { /* the latest column of a group of the tree */
    uint32_t slot;      /* ESPI_NO_NODE: none */
    size_t node;
} newest;

struct espi_gtk_matcher {
    const espi_gtk *gtk;
    const espi_gtk_index *index;
    const espi_gtk_link *link;
    const espi_dag *dag;
    const espi_plan *plan; /* at hand */
    espi_reach *reach;          /* per group of the DAG */
    newest *newest;        /* per group */
    slot *slot;
    size_t slots, slot_capacity;
    uint32_t *unused; /* slots not in use, a stack */
    size_t unused_count, unused_capacity;
    struct state {
        uint64_t serial; /* of its column; 0: none */
        uint32_t slot;   /* ESPI_NO_NODE: none, or no longer needed */
        uint32_t uses;   /* that are still to come */
    } * state;           /* per plan node */
    size_t state_capacity;
    sum *sum;
    size_t sums, sum_room, sum_capacity; /* in use; with memory; array */
    double *block;                       /* for FGTK-III */
    size_t block_capacity;
    uint64_t serial;
    const esp_run *run;
    size_t work; /* column entries since run was asked */
};

espi_gtk_matcher *espi_gtk_matcher_new(const espi_gtk *gtk, const espi_gtk_index *index, const espi_gtk_link *link,
                                       const espi_dag *dag, const esp_run *run)
{
    espi_gtk_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    *m = (espi_gtk_matcher){.gtk = gtk, .index = index, .link = link, .dag = dag, .run = run};
    m->reach = espi_alloc_zero(dag->groups, sizeof *m->reach);
    m->newest = espi_alloc(gtk->keys.count, sizeof *m->newest);
    if (m->reach != NULL && m->newest != NULL) {
        for (size_t i = 0; i < gtk->keys.count; i++) m->newest[i].slot = ESPI_NO_NODE;
        return m;
    }
    espi_gtk_matcher_free(m);
    return NULL;
}

void espi_gtk_matcher_free(espi_gtk_matcher *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->slots; i++) {
        espi_free(m->slot[i].value);
        espi_free(m->slot[i].piece);
        espi_free(m->slot[i].at);
    }
    for (size_t i = 0; i < m->sum_room; i++) espi_free(m->sum[i].w);
    espi_free(m->reach);
    espi_free(m->newest);
    espi_free(m->slot);
    espi_free(m->unused);
    espi_free(m->state);
    espi_free(m->sum);
    espi_free(m->block);
    espi_free(m);
}

/* ------------------------------------------------------------- hot loops */

HOT static void times_number(double *restrict col, size_t n, double x)
{
    for (size_t r = 0; r < n; r++) col[r] *= x;
}

/* The child of r is the pre-terminal `group`, or another. */
HOT static void times_word(double *restrict col, const uint32_t *restrict child, size_t n, uint32_t group, double hit,
                           double miss)
{
    for (size_t r = 0; r < n; r++) col[r] *= child[r] == group ? hit : miss;
}

/* A column with one piece, that of `group`. */
HOT static void times_piece(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank,
                            size_t n, uint32_t group, uint32_t piece, const double *restrict below)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t at = child[r] == group ? piece + rank[r] : 0;
        col[r] *= 1.0 + below[at];
    }
}

/* A column with several. */
static void times_pieces(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank, size_t n,
                         const uint32_t *restrict place, const uint32_t *restrict at, const double *restrict below)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t piece = at[place[child[r]]];
        col[r] *= 1.0 + below[piece == 0 ? 0 : piece + rank[r]];
    }
}

/* a = o * a + s * (d + e), out = a + q * left. */
HOT static void step_kept(double *restrict a, const double *restrict s, const double *restrict d,
                          const double *restrict left, double *restrict out, size_t n, double o, double e, double q)
{
    for (size_t r = 0; r < n; r++) {
        a[r] = o * a[r] + s[r] * (d[r] + e);
        out[r] = a[r] + q * left[r];
    }
}

HOT static void step_skipped(double *restrict a, const double *restrict left, double *restrict out, size_t n, double o,
                             double q)
{
    for (size_t r = 0; r < n; r++) {
        a[r] = o * a[r];
        out[r] = a[r] + q * left[r];
    }
}

/* ------------------------------------------------------------- one group */

static espi_reach *reach_of(espi_gtk_matcher *m, uint32_t g, size_t to)
{
    if (m->reach[g].to != to) espi_reach_to(&m->reach[g], m->dag, &m->dag->group[g], to);
    return &m->reach[g];
}

static void use(const espi_gtk_matcher *m, uint32_t g, const double *w, espi_sink *s)
{
    espi_sink_add(s, m->dag, g, &m->reach[g], w);
}

/* The w of a group that has vertices: zeros at first. */
static double *sum_of(espi_gtk_matcher *m, uint32_t g)
{
    espi_reach *c = &m->reach[g];
    if (c->sum > 0) return m->sum[c->sum - 1].w;
    if (m->sums == m->sum_room) {
        if (!espi_reserve(&m->sum, &m->sum_capacity, m->sums + 1, sizeof *m->sum)) return NULL;
        m->sum[m->sum_room++] = (sum){0};
    }
    sum *s = &m->sum[m->sums];
    if (!espi_reserve(&s->w, &s->capacity, c->vertices, sizeof *s->w)) return NULL;
    memset(s->w, 0, c->vertices * sizeof *s->w);
    s->group = g;
    c->sum = (uint32_t)++m->sums;
    return s->w;
}

/* ------------------------------------------------------------------- cells */

/* The pre-terminal with the words of `word` and this label, as far as the DAG has one. */
static uint32_t with_label(const espi_gtk_matcher *m, uint32_t word, uint32_t label)
{
    const espi_gtk *g = m->gtk;
    if (g->group[word].label == label) return word;
    for (size_t i = m->link->start[word]; i < m->link->start[word + 1]; i++)
        if (g->group[m->link->meeting[i].group].label == label) return m->link->meeting[i].group;
    return ESPI_NO_NODE;
}

/* Where children of one place are partly pre-terminals and partly not, each is looked at. */
static void times_mixed(const espi_gtk_matcher *m, double *col, const uint32_t *child, const uint32_t *rank, size_t n,
                        double word, double hit, uint32_t match, double other, const slot *below)
{
    for (size_t r = 0; r < n; r++) {
        const espi_gtk_group *group = &m->gtk->group[child[r]];
        double x = other;
        if (group->words != ESPI_NO_NODE) {
            x = child[r] == match ? hit : word;
        } else if (below != NULL) {
            const uint32_t piece = below->at[m->gtk->place[child[r]]];
            x += piece == 0 ? 0.0 : below->value[piece + rank[r]];
        }
        col[r] *= x;
    }
}

/* col[r - from] *= s of the two children of a cell, for vertices r of the group, and a node of the tree. */
static void times_cell(const espi_gtk_matcher *m, const espi_plan_node *node, uint32_t number,
                       const espi_gtk_cell *cell, size_t from, size_t n, double *col)
{
    const espi_gtk *g = m->gtk;
    const espi_group *group = &m->dag->group[number];
    const uint32_t *child = group->child + 2 * (size_t)cell->p * group->capacity + from,
                   *rank = child + group->capacity;
    const uint32_t other = m->plan->child[node->first + cell->q];
    const uint8_t below = m->index->below[m->index->position[number] + cell->p];
    if ((other & ESPI_WORD) != 0) {
        const uint32_t word = other & ~ESPI_WORD;
        const uint32_t label = g->child[g->group[number].children + cell->k] >> 1;
        const uint32_t match = with_label(m, word, label);
        if (below == 1) times_word(col, child, n, match, cell->hit, cell->both);
        else if (below == 2) times_number(col, n, cell->one);
        else times_mixed(m, col, child, rank, n, cell->both, cell->hit, match, cell->one, NULL);
        return;
    }
    const uint32_t number_below = m->state[other].slot;
    const slot *s = number_below == ESPI_NO_NODE || cell->none == 0.0 ? NULL : &m->slot[number_below];
    if (below == 1) times_number(col, n, cell->one);
    else if (below == 3) times_mixed(m, col, child, rank, n, cell->one, 0.0, ESPI_NO_NODE, cell->none, s);
    else if (s == NULL) times_number(col, n, cell->none);
    else if (m->link->start[s->group + 1] - m->link->start[s->group] == 1)
        times_piece(col, child, rank, n, m->link->meeting[m->link->start[s->group]].group, s->piece[0], s->value);
    else times_pieces(col, child, rank, n, g->place, s->at, s->value);
}

/* FGTK-III for up to BLOCK vertices; A and D of a row of the table are `a` and `d`, each a block per column. */
static bool align(espi_gtk_matcher *m, const espi_plan_node *node, const espi_gtk_meeting *meeting, size_t from,
                  size_t n, double *out)
{
    const espi_gtk *g = m->gtk;
    const espi_gtk_group *p = &g->group[meeting->group], *q = &g->group[node->group];
    const espi_gtk_cell *cell = m->link->cell + meeting->cell, *end = cell + meeting->cells;
    const size_t width = (size_t)q->arity + 1;
    if (!espi_reserve(&m->block, &m->block_capacity, (3 * width + 1) * n + width, sizeof *m->block)) return false;
    double *a = m->block, *d = a + width * n, *next = d + width * n, *s = next + width * n, *e = s + n;
    double down = 1.0;
    memset(a, 0, 2 * width * n * sizeof *a);
    e[0] = 1.0;
    for (size_t j = 1; j < width; j++) e[j] = g->optional[q->children + j - 1] ? e[j - 1] * g->lambda1 : 0.0;
    for (size_t i = 1; i <= p->arity; i++) {
        const double o = g->optional[p->children + i - 1] ? g->lambda1 : 0.0;
        memset(next, 0, n * sizeof *next);
        for (size_t j = 1; j < width; j++) {
            const double skip = g->optional[q->children + j - 1] ? g->lambda1 : 0.0;
            double *left = next + (j - 1) * n, *here = next + j * n;
            if (cell < end && cell->k == i - 1 && cell->l == j - 1) {
                for (size_t r = 0; r < n; r++) s[r] = 1.0;
                if (cell->p != ESPI_NO_NODE) times_cell(m, node, meeting->group, cell, from, n, s);
                step_kept(a + j * n, s, d + (j - 1) * n, left, here, n, o, down * e[j - 1], skip);
                cell++;
            } else {
                step_skipped(a + j * n, left, here, n, o, skip);
            }
        }
        double *t = d;
        d = next;
        next = t;
        down *= o;
    }
    const double *last = d + (width - 1) * n;
    for (size_t r = 0; r < n; r++) out[r] = meeting->scale * last[r];
    return true;
}

/* --------------------------------------------------------------- columns */

static slot *take_slot(espi_gtk_matcher *m, size_t node)
{
    if (m->unused_count == 0) {
        if (!espi_reserve(&m->slot, &m->slot_capacity, m->slots + 1, sizeof *m->slot) ||
            !espi_reserve(&m->unused, &m->unused_capacity, m->slots + 1, sizeof *m->unused))
            return NULL;
        m->slot[m->slots] = (slot){0};
        m->unused[m->unused_count++] = (uint32_t)m->slots++;
    }
    const uint32_t number = m->unused[--m->unused_count];
    slot *s = &m->slot[number];
    s->serial = ++m->serial;
    s->group = m->plan->node[node].group;
    s->users = 1;
    s->pending = 0.0;
    m->state[node].slot = number;
    m->state[node].serial = s->serial;
    return s;
}

/* w += count * column. The sums are there. */
static void add_slot(espi_gtk_matcher *m, const slot *s, double count)
{
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    for (size_t i = 0; i < meetings; i++) {
        const espi_reach *c = &m->reach[m->link->meeting[first + i].group];
        if (c->vertices > 0) espi_add_column(m->sum[c->sum - 1].w, s->value + s->piece[i], c->vertices, count);
    }
}

static void leave_slot(espi_gtk_matcher *m, uint32_t number)
{
    slot *s = &m->slot[number];
    if (--s->users > 0) return;
    if (s->pending > 0.0) add_slot(m, s, s->pending);
    m->unused[m->unused_count++] = number;
}

static void release_column(espi_gtk_matcher *m, size_t node)
{
    if (m->state[node].slot != ESPI_NO_NODE) leave_slot(m, m->state[node].slot);
    m->state[node].slot = ESPI_NO_NODE;
}

/* Lays out the pieces of a column, as far as the groups lie in trees before `to`, and makes their sums; *size is 1 if
 * there is nothing to meet. */
static bool lay_out(espi_gtk_matcher *m, slot *s, size_t to, size_t *size)
{
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    const uint32_t places = m->gtk->kind_size[m->gtk->group[s->group].kind];
    *size = 1;
    if (!espi_reserve(&s->piece, &s->piece_capacity, meetings, sizeof *s->piece) ||
        !espi_reserve(&s->at, &s->at_capacity, places, sizeof *s->at))
        return false;
    memset(s->at, 0, places * sizeof *s->at);
    for (size_t i = 0; i < meetings; i++) {
        const uint32_t group = m->link->meeting[first + i].group;
        const uint32_t vertices = reach_of(m, group, to)->vertices;
        s->piece[i] = (uint32_t)*size;
        s->at[m->gtk->place[group]] = vertices > 0 ? (uint32_t)*size : 0;
        *size += vertices;
        if (vertices > 0 && sum_of(m, group) == NULL) return false;
    }
    return espi_reserve(&s->value, &s->value_capacity, *size, sizeof *s->value);
}

/* The column of a plan node, from its children's. */
static bool fill_column(espi_gtk_matcher *m, size_t number, slot *s)
{
    const espi_plan_node *node = &m->plan->node[number];
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    s->value[0] = 0.0;
    for (size_t i = 0; i < meetings; i++) {
        const espi_gtk_meeting *meeting = &m->link->meeting[first + i];
        const size_t n = m->reach[meeting->group].vertices;
        double *col = s->value + s->piece[i];
        m->work += n;
        if (!meeting->single) {
            for (size_t r = 0; r < n; r += BLOCK)
                if (!align(m, node, meeting, r, n - r < BLOCK ? n - r : BLOCK, col + r)) return false;
            continue;
        }
        for (size_t r = 0; r < n; r++) col[r] = meeting->scale;
        for (size_t c = 0; n > 0 && c < meeting->cells; c++) {
            const espi_gtk_cell *cell = &m->link->cell[meeting->cell + c];
            if (cell->p != ESPI_NO_NODE) times_cell(m, node, meeting->group, cell, 0, n, col);
        }
    }
    return true;
}

/* Whether two nodes of a group have the same children, as far as columns can tell. */
static bool same_below(const espi_gtk_matcher *m, size_t a, size_t b)
{
    const espi_plan_node *x = &m->plan->node[a], *y = &m->plan->node[b];
    for (size_t k = 0; k < x->end - x->first; k++) {
        const uint32_t i = m->plan->child[x->first + k], j = m->plan->child[y->first + k];
        if (((i | j) & ESPI_WORD) != 0 ? i != j : m->state[i].serial != m->state[j].serial) return false;
    }
    return true;
}

static void share(espi_gtk_matcher *m, size_t number, uint32_t shared)
{
    m->state[number].slot = shared;
    m->state[number].serial = m->slot[shared].serial;
    m->slot[shared].users++;
    m->slot[shared].pending += m->plan->node[number].count;
}

/* A node's column, added to w. Along a chain that repeats, columns soon stop changing, and the nodes above share the
 * group's newest. A node that meets nothing has no column. */
static bool visit(espi_gtk_matcher *m, size_t number, size_t to)
{
    const espi_plan_node *node = &m->plan->node[number];
    if (m->link->start[node->group] == m->link->start[node->group + 1]) return true;
    newest *latest = &m->newest[node->group];
    if (latest->slot != ESPI_NO_NODE && same_below(m, number, latest->node)) {
        share(m, number, latest->slot);
        latest->node = number;
        return true;
    }
    size_t size;
    slot *s = take_slot(m, number);
    if (s == NULL || !lay_out(m, s, to, &size)) return false;
    if (size == 1) {
        release_column(m, number);
        return true;
    }
    if (!fill_column(m, number, s)) return false;
    if (latest->slot != ESPI_NO_NODE && memcmp(s->value, m->slot[latest->slot].value, size * sizeof *s->value) == 0) {
        release_column(m, number);
        share(m, number, latest->slot);
    } else {
        add_slot(m, s, node->count);
        if (latest->slot != ESPI_NO_NODE) leave_slot(m, latest->slot);
        latest->slot = m->state[number].slot;
        s->users++;
    }
    latest->node = number;
    return true;
}

static void release_children(espi_gtk_matcher *m, const espi_plan_node *node)
{
    for (size_t k = node->first; k < node->end; k++) {
        const uint32_t child = m->plan->child[k];
        if ((child & ESPI_WORD) == 0 && --m->state[child].uses == 0) release_column(m, child);
    }
}

/* Trees of ordinary size never get here. */
static esp_status ask_to_go_on(espi_gtk_matcher *m, esp_error *err)
{
    enum { PATIENCE = 1 << 26 };
    if (m->work < PATIENCE) return ESP_OK;
    m->work = 0;
    return espi_progress(m->run, "computing the kernel", -1.0, err);
}

static bool add_words(espi_gtk_matcher *m, size_t to)
{
    for (size_t i = 0; i < m->plan->words; i++) {
        const espi_plan_word *word = &m->plan->word[i];
        for (size_t k = m->link->start[word->group]; k < m->link->start[word->group + 1]; k++) {
            const espi_gtk_meeting *meeting = &m->link->meeting[k];
            reach_of(m, meeting->group, to);
            double *w = sum_of(m, meeting->group);
            if (w == NULL) return false;
            w[0] += word->count * meeting->scale;
        }
    }
    return true;
}

static esp_status match(espi_gtk_matcher *m, const espi_plan *plan, espi_sink *s, esp_error *err)
{
    m->plan = plan;
    m->serial = 0;
    bool ok = espi_reserve(&m->state, &m->state_capacity, plan->nodes, sizeof *m->state) && add_words(m, s->to);
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < plan->nodes && ok; i++) {
        m->state[i] = (struct state){.slot = ESPI_NO_NODE, .uses = plan->node[i].uses};
        status = visit(m, i, s->to) ? ask_to_go_on(m, err) : espi_no_memory(err);
        ok = status == ESP_OK;
        if (ok) release_children(m, &plan->node[i]);
        if (ok && plan->node[i].uses == 0) release_column(m, i);
    }
    for (size_t i = 0; i < plan->nodes; i++) {
        newest *latest = &m->newest[plan->node[i].group];
        if (ok && latest->slot != ESPI_NO_NODE) leave_slot(m, latest->slot);
        latest->slot = ESPI_NO_NODE;
    }
    for (size_t i = 0; i < m->sums; i++) {
        if (ok) use(m, m->sum[i].group, m->sum[i].w, s);
        m->reach[m->sum[i].group].sum = 0;
    }
    m->sums = 0;
    m->unused_count = m->slots; /* all, also after a failure in the middle */
    for (size_t i = 0; !ok && i < m->slots; i++) m->unused[i] = (uint32_t)i;
    return status;
}

esp_status espi_gtk_match_row(espi_gtk_matcher *m, const espi_plan *plan, size_t from, size_t to, double *out,
                              esp_error *err)
{
    espi_sink s = {.from = from, .to = to, .out = out};
    return match(m, plan, &s, err);
}

esp_status espi_gtk_match_score(espi_gtk_matcher *m, const espi_plan *plan, double *const *f, size_t outputs,
                                double *score, esp_error *err)
{
    espi_sink s = {.to = m->dag->trees, .f = f, .outputs = outputs, .score = score};
    for (size_t k = 0; k < outputs; k++) score[k] = 0.0;
    return match(m, plan, &s, err);
}
