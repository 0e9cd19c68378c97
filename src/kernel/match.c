/* Matching one tree against the DAG: the recursion of dag.h, node by node.
 *
 * All inner loops run over one group: contiguous columns, children position-major, so that compilers turn them into
 * vector code (the clones of HOT pick the widest at run time). A column has one slot more than its group has
 * vertices; it holds 0, and children of another production point to it. */
#include "base/alloc.h"
#include "kernel/dag.h"
#include "kernel/hot.h"
#include "kernel/plan.h"

#include <string.h>

typedef struct slot { /* a column of the pool */
    double *value;
    size_t capacity;
    uint32_t users;  /* plan nodes that have this column and are still needed */
    bool fixed;      /* a node above with the same production has the same column: see make_or_share */
    double pending;  /* occurrences of nodes that share it, not yet added to w */
} slot;

typedef struct active { /* a group that the tree at hand touches */
    uint32_t group;
    bool summed;       /* several nodes have this production: their columns are added up in w */
    uint32_t vertices; /* in trees before `to` */
    size_t occurrences;
    double *w;         /* NULL unless summed */
} active;

struct espi_matcher {
    const espi_dag *dag;
    const espi_decay *decay;
    const uint32_t *group_of; /* production of the plan's forest -> group; NULL: the same */
    espi_plan plan;
    slot *slot;
    size_t slots, slot_capacity;
    uint32_t *unused; /* slots not in use, a stack */
    size_t unused_count, unused_capacity;
    uint32_t *slot_of; /* plan node -> slot of its column, ESPI_NO_NODE: none */
    size_t slot_of_capacity;
    active *active;
    size_t actives, active_capacity;
    uint32_t *active_of; /* group -> active; ESPI_NO_NODE: none */
    double *w;           /* sums of columns; one stretch per group in use twice */
    size_t w_capacity;
    struct cursor {         /* per group: how much of it lies in trees before `to`; moves on from row to row */
        uint32_t vertices;
        uint32_t to;
        size_t occurrences;
    } *cursor;
};

espi_matcher *espi_matcher_new(const espi_dag *dag, const espi_decay *decay, const espi_forest *forest,
                               const uint32_t *group)
{
    espi_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    m->dag = dag;
    m->decay = decay;
    m->group_of = group;
    m->active_of = espi_alloc(dag->groups, sizeof *m->active_of);
    m->cursor = espi_alloc_zero(dag->groups, sizeof *m->cursor);
    if (m->active_of == NULL || m->cursor == NULL || !espi_plan_init(&m->plan, forest)) {
        espi_matcher_free(m);
        return NULL;
    }
    memset(m->active_of, 0xFF, dag->groups * sizeof *m->active_of);
    return m;
}

void espi_matcher_free(espi_matcher *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->slots; i++) espi_free(m->slot[i].value);
    espi_plan_free(&m->plan);
    espi_free(m->slot);
    espi_free(m->unused);
    espi_free(m->slot_of);
    espi_free(m->active);
    espi_free(m->active_of);
    espi_free(m->w);
    espi_free(m->cursor);
    espi_free(m);
}

/* ------------------------------------------------------------- hot loops */

/* col[r] = hit or miss, as the child of r is the pre-terminal `group` or not. */
HOT static void set_preterminal(double *restrict col, const uint32_t *restrict child, size_t n, uint32_t group,
                                double hit, double miss)
{
    for (size_t r = 0; r < n; r++) col[r] = child[r] == group ? hit : miss;
}

HOT static void times_preterminal(double *restrict col, const uint32_t *restrict child, size_t n, uint32_t group,
                                  double hit, double miss)
{
    for (size_t r = 0; r < n; r++) col[r] *= child[r] == group ? hit : miss;
}

/* col[r] = scale * (alpha + column of the child of r), the column of a child in another group being 0. */
HOT static void set_column(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank,
                           size_t n, uint32_t group, const double *restrict below, uint32_t none, double alpha,
                           double scale)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t at = child[r] == group ? rank[r] : none;
        col[r] = scale * (alpha + below[at]);
    }
}

HOT static void times_column(double *restrict col, const uint32_t *restrict child, const uint32_t *restrict rank,
                             size_t n, uint32_t group, const double *restrict below, uint32_t none, double alpha)
{
    for (size_t r = 0; r < n; r++) {
        const uint32_t at = child[r] == group ? rank[r] : none;
        col[r] *= alpha + below[at];
    }
}

HOT static void add_column(double *restrict w, const double *restrict col, size_t n, double count)
{
    for (size_t r = 0; r < n; r++) w[r] += count * col[r];
}

static void scatter(double *restrict out, const uint32_t *restrict tree, const uint32_t *restrict item,
                    size_t n, const double *restrict w)
{
    for (size_t k = 0; k < n; k++) out[tree[k]] += w[item[k]];
}

static void scatter_counts(double *restrict out, const uint32_t *restrict tree, const uint32_t *restrict count,
                           size_t n, double value)
{
    for (size_t k = 0; k < n; k++) out[tree[k]] += value * count[k];
}

/* ------------------------------------------------------------- one tree */

/* How much of a group lies in trees before `to`. Rows mostly come in order, so that this is a few steps on. */
static const struct cursor *cursor_at(espi_matcher *m, uint32_t g, size_t to)
{
    const espi_group *group = &m->dag->group[g];
    struct cursor *c = &m->cursor[g];
    if (to >= m->dag->trees) {
        c->vertices = group->vertices;
        c->occurrences = group->occurrences;
    } else if (to < c->to) {
        *c = (struct cursor){0};
    }
    while (c->vertices < group->vertices && group->first[c->vertices] < to) c->vertices++;
    while (c->occurrences < group->occurrences && group->tree[c->occurrences] < to) c->occurrences++;
    c->to = (uint32_t)to;
    return c;
}

static uint32_t group_of(const espi_matcher *m, espi_ref vertex)
{
    const uint32_t production = m->plan.forest->vertex[vertex].production;
    return m->group_of == NULL ? production : m->group_of[production];
}

/* Lists the groups that the tree touches, with the number of vertices that count. */
static bool activate(espi_matcher *m, size_t to)
{
    m->actives = 0;
    for (size_t i = 0; i < m->plan.nodes; i++) {
        const uint32_t g = group_of(m, m->plan.node[i].vertex);
        if (g == ESPI_NO_NODE) continue;
        if (m->active_of[g] != ESPI_NO_NODE) {
            m->active[m->active_of[g]].summed = true;
            continue;
        }
        if (!espi_reserve(&m->active, &m->active_capacity, m->actives + 1, sizeof *m->active)) return false;
        const struct cursor *seen = cursor_at(m, g, to);
        m->active_of[g] = (uint32_t)m->actives;
        m->active[m->actives++] = (active){.group = g,
                                           .summed = m->plan.node[i].count > 1.0 && m->dag->group[g].inner > 0,
                                           .vertices = seen->vertices,
                                           .occurrences = seen->occurrences};
    }
    size_t length = 0;
    for (size_t i = 0; i < m->actives; i++) length += m->active[i].summed ? m->active[i].vertices : 0;
    if (!espi_reserve(&m->w, &m->w_capacity, length, sizeof *m->w)) return false;
    if (length > 0) memset(m->w, 0, length * sizeof *m->w);
    length = 0;
    for (size_t i = 0; i < m->actives; i++) {
        if (!m->active[i].summed) continue;
        m->active[i].w = m->w + length;
        length += m->active[i].vertices;
    }
    return true;
}

static double *take_slot(espi_matcher *m, uint32_t node, size_t size)
{
    if (m->unused_count == 0) {
        if (!espi_reserve(&m->slot, &m->slot_capacity, m->slots + 1, sizeof *m->slot) ||
            !espi_reserve(&m->unused, &m->unused_capacity, m->slots + 1, sizeof *m->unused))
            return NULL;
        m->slot[m->slots] = (slot){0};
        m->unused[m->unused_count++] = (uint32_t)m->slots++;
    }
    const uint32_t number = m->unused[m->unused_count - 1];
    slot *s = &m->slot[number];
    if (!espi_reserve(&s->value, &s->capacity, size, sizeof *s->value)) return NULL;
    m->unused_count--;
    m->slot_of[node] = number;
    s->users = 1;
    s->fixed = false;
    s->pending = 0.0;
    return s->value;
}

static void release_slot(espi_matcher *m, uint32_t node)
{
    const uint32_t number = m->slot_of[node];
    if (number == ESPI_NO_NODE) return;
    m->slot_of[node] = ESPI_NO_NODE;
    slot *s = &m->slot[number];
    if (--s->users > 0) return;
    if (s->pending > 0.0) {
        const active *a = &m->active[m->active_of[group_of(m, m->plan.node[node].vertex)]];
        add_column(a->w, s->value, a->vertices, s->pending);
    }
    m->unused[m->unused_count++] = number;
}

/* The column of a plan node, from its children's. */
static double *make_column(espi_matcher *m, uint32_t node, const active *a)
{
    const espi_forest *f = m->plan.forest;
    const espi_group *group = &m->dag->group[a->group];
    const espi_ref *child = f->child + f->vertex[m->plan.node[node].vertex].children;
    const double lambda = m->decay->lambda[a->group], alpha = m->decay->alpha[a->group];
    const size_t n = a->vertices, stride = group->capacity;
    double *col = take_slot(m, node, n + 1);
    if (col == NULL) return NULL;
    double scale = lambda; /* what is not yet multiplied in */
    bool set = false;
    for (size_t k = 0, c = 0; c < group->inner; k++) {
        if (espi_is_leaf(child[k])) continue;
        const uint32_t *child_group = group->child + 2 * c * stride, *child_rank = child_group + stride;
        const uint32_t below_node = m->plan.index[child[k]], q = group_of(m, child[k]);
        c++;
        if (q == ESPI_NO_NODE) {
            scale *= alpha;
        } else if (m->dag->group[q].inner == 0) {
            const double hit = alpha + m->decay->lambda[q];
            if (set) times_preterminal(col, child_group, n, q, hit, alpha);
            else set_preterminal(col, child_group, n, q, scale * hit, scale * alpha), scale = 1.0;
            set = true;
        } else {
            const double *column = m->slot[m->slot_of[below_node]].value;
            const uint32_t none = m->active[m->active_of[q]].vertices;
            if (set) times_column(col, child_group, child_rank, n, q, column, none, alpha);
            else set_column(col, child_group, child_rank, n, q, column, none, alpha, scale), scale = 1.0;
            set = true;
        }
    }
    for (size_t r = 0; r < n && (!set || scale != 1.0); r++) col[r] = set ? col[r] * scale : scale;
    col[n] = 0.0;
    return col;
}

/* What is done with w(.) of a group: `w` holds its vertices' values, for pre-terminals one. */
typedef struct sink {
    size_t from, to;
    double *out;
    double *const *f;
    double score;
} sink;

static void use(const espi_matcher *m, const active *a, const double *w, sink *s)
{
    const espi_group *group = &m->dag->group[a->group];
    if (s->f != NULL) {
        for (size_t r = 0; r < a->vertices; r++) s->score += s->f[a->group][r] * w[r];
        return;
    }
    size_t first = 0;
    while (s->from > 0 && first < a->occurrences && group->tree[first] < s->from) first++;
    const size_t n = a->occurrences - first;
    double *out = s->out - s->from;
    if (group->inner == 0) scatter_counts(out, group->tree + first, group->item + first, n, w[0]);
    else scatter(out, group->tree + first, group->item + first, n, w);
}

/* The only inner child of a node, if it has its parent's production. */
static uint32_t twin_below(const espi_matcher *m, uint32_t node, const active *a)
{
    const espi_forest *f = m->plan.forest;
    const espi_ref *child = f->child + f->vertex[m->plan.node[node].vertex].children;
    if (m->dag->group[a->group].inner != 1) return ESPI_NO_NODE;
    while (espi_is_leaf(*child)) child++;
    return group_of(m, *child) == a->group ? m->plan.index[*child] : ESPI_NO_NODE;
}

/* The column of a node, added to w. In a chain of one production columns soon stop changing (lambda < 1); from
 * there on all nodes above share one, and a chain of a million nodes costs a few columns instead of a million. */
static bool make_or_share(espi_matcher *m, uint32_t node, const active *a, sink *s)
{
    const double count = m->plan.node[node].count;
    const uint32_t twin = twin_below(m, node, a);
    if (twin != ESPI_NO_NODE && m->slot[m->slot_of[twin]].fixed) {
        m->slot_of[node] = m->slot_of[twin];
        m->slot[m->slot_of[node]].users++;
        m->slot[m->slot_of[node]].pending += count;
        return true;
    }
    double *col = make_column(m, node, a);
    if (col == NULL) return false;
    if (twin != ESPI_NO_NODE)
        m->slot[m->slot_of[node]].fixed =
            memcmp(col, m->slot[m->slot_of[twin]].value, a->vertices * sizeof *col) == 0;
    if (a->summed) add_column(a->w, col, a->vertices, count);
    else use(m, a, col, s);
    return true;
}

static void release_children(espi_matcher *m, uint32_t node)
{
    const espi_forest *f = m->plan.forest;
    const espi_ref vertex = m->plan.node[node].vertex, *child = f->child + f->vertex[vertex].children;
    const espi_production *p = espi_production_of(f, vertex);
    for (size_t k = 0; p->inner > 0 && k < p->arity; k++)
        if (!espi_is_leaf(child[k]) && --m->plan.node[m->plan.index[child[k]]].uses == 0)
            release_slot(m, m->plan.index[child[k]]);
}

static bool match(espi_matcher *m, espi_ref root, sink *s)
{
    if (!espi_plan_make(&m->plan, root) || !activate(m, s->to) ||
        !espi_reserve(&m->slot_of, &m->slot_of_capacity, m->plan.nodes, sizeof *m->slot_of))
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < m->plan.nodes && ok; i++) {
        const uint32_t g = group_of(m, m->plan.node[i].vertex);
        m->slot_of[i] = ESPI_NO_NODE;
        if (g == ESPI_NO_NODE) {
            release_children(m, i);
            continue;
        }
        active *a = &m->active[m->active_of[g]];
        if (m->dag->group[g].inner == 0) {
            const double w = m->plan.node[i].count * m->decay->lambda[g];
            use(m, a, &w, s);
            continue;
        }
        ok = make_or_share(m, i, a, s);
        if (!ok) break;
        release_children(m, i);
        if (m->plan.node[i].uses == 0) release_slot(m, i);
    }
    for (size_t i = 0; i < m->actives; i++) {
        if (ok && m->active[i].summed) use(m, &m->active[i], m->active[i].w, s);
        m->active_of[m->active[i].group] = ESPI_NO_NODE;
    }
    m->unused_count = m->slots;
    for (size_t i = 0; i < m->slots; i++) m->unused[i] = (uint32_t)i;
    return ok;
}

bool espi_match_row(espi_matcher *m, espi_ref root, size_t from, size_t to, double *out)
{
    sink s = {.from = from, .to = to, .out = out};
    return match(m, root, &s);
}

bool espi_match_score(espi_matcher *m, espi_ref root, double *const *f, double *score)
{
    sink s = {.to = m->dag->trees, .f = f};
    const bool ok = match(m, root, &s);
    *score = s.score;
    return ok;
}
