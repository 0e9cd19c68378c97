/* Matching one tree against the DAG: the recursion of dag.h, node by node.
 *
 * All inner loops run over one group: contiguous columns, children position-major, so that compilers turn them into
 * vector code (the clones of HOT pick the widest at run time). A column has one slot more than its group has
 * vertices; it holds 0, and children of another production point to it. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/tree/match.h"

#include <string.h>

espi_matcher *espi_matcher_new(const espi_dag *dag, const espi_decay *decay, const esp_run *run)
{
    espi_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    m->dag = dag;
    m->decay = decay;
    m->run = run;
    return m;
}

void espi_matcher_ask(espi_matcher *m, const esp_run *run) { m->run = run; }

void espi_matcher_forget(espi_matcher *m)
{
    if (m->reaches > 0) memset(m->reach, 0, m->reaches * sizeof *m->reach);
}

void espi_matcher_free(espi_matcher *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->slots && !m->keep; i++) espi_free(m->slot[i].value);
    for (size_t i = 0; i < m->sum_room; i++) espi_free(m->sum[i].w);
    espi_free(m->reach);
    espi_pool_free(&m->pool);
    espi_free(m->slot);
    espi_free(m->sum);
    espi_stack_free(&m->stack);
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

void espi_set_preterminal(double *restrict f, const uint32_t *restrict child, size_t n, uint32_t group, double hit,
                          double miss)
{
    set_preterminal(f, child, n, group, hit, miss);
}

/* ------------------------------------------------------------- one group */

static void use(const espi_matcher *m, uint32_t g, const double *w, espi_sink *s)
{
    espi_sink_add(s, m->dag, g, &m->reach[g], w);
}

/* What the nodes of a group share that has several, without w. The group has vertices. */
static espi_sum *shared_of(espi_matcher *m, uint32_t g)
{
    espi_reach *c = &m->reach[g];
    if (c->sum > 0) return &m->sum[c->sum - 1];
    if (m->sums == m->sum_room) {
        if (!espi_reserve(&m->sum, &m->sum_capacity, m->sums + 1, sizeof *m->sum)) return NULL;
        m->sum[m->sum_room++] = (espi_sum){0};
    }
    espi_sum *s = &m->sum[m->sums];
    s->group = g;
    s->slot = ESPI_NO_NODE;
    c->sum = (uint32_t)++m->sums;
    return s;
}

/* The same with w, zeros at first. */
static espi_sum *sum_of(espi_matcher *m, uint32_t g)
{
    const espi_reach *c = &m->reach[g];
    const bool there = c->sum > 0;
    espi_sum *s = shared_of(m, g);
    if (there || s == NULL) return s;
    if (!espi_reserve(&s->w, &s->capacity, c->vertices, sizeof *s->w)) return NULL;
    memset(s->w, 0, c->vertices * sizeof *s->w);
    return s;
}

/* --------------------------------------------------------------- columns */

/* A column for a node of a group, which becomes its first user. */
static double *take_slot(espi_matcher *m, size_t node, size_t size)
{
    const uint32_t number = espi_pool_take(&m->pool, node);
    if (number == ESPI_NO_NODE) return NULL;
    if (number == m->slots) {
        if (!espi_reserve(&m->slot, &m->slot_capacity, m->slots + 1, sizeof *m->slot)) return NULL;
        m->slot[m->slots++] = (espi_slot){0};
    }
    espi_slot *s = &m->slot[number];
    s->group = m->plan->node[node].group;
    if (m->keep) s->value = espi_stack_take(&m->stack, size);
    else if (!espi_reserve(&s->value, &s->capacity, size, sizeof *s->value)) return NULL;
    return s->value;
}

static void leave_slot(espi_matcher *m, uint32_t number)
{
    const double pending = espi_pool_leave(&m->pool, number);
    if (pending == 0.0) return;
    const espi_slot *s = &m->slot[number];
    const espi_reach *c = &m->reach[s->group];
    espi_add_column(m->sum[c->sum - 1].w, s->value, c->vertices, pending);
}

static void release_column(espi_matcher *m, size_t node)
{
    struct espi_pool_node *n = &m->pool.node[node];
    if (n->column != ESPI_NO_NODE) leave_slot(m, n->column);
    n->column = ESPI_NO_NODE;
}

double *espi_stack_take(espi_stack *s, size_t size)
{
    enum { CHUNK = 1 << 15 };
    while (s->top.chunk < s->chunks && s->chunk[s->top.chunk].capacity - s->top.used < size)
        s->top = (struct espi_stack_top){.chunk = s->top.chunk + 1};
    if (s->top.chunk == s->chunks) {
        if (!espi_reserve(&s->chunk, &s->chunk_capacity, s->chunks + 1, sizeof *s->chunk)) return NULL;
        struct espi_stack_chunk *c = &s->chunk[s->chunks];
        c->capacity = size < CHUNK ? CHUNK : size;
        c->value = espi_alloc(c->capacity, sizeof *c->value);
        if (c->value == NULL) return NULL;
        s->chunks++;
    }
    double *column = s->chunk[s->top.chunk].value + s->top.used;
    s->top.used += size;
    return column;
}

void espi_stack_free(espi_stack *s)
{
    for (size_t i = 0; i < s->chunks; i++) espi_free(s->chunk[i].value);
    espi_free(s->chunk);
    *s = (espi_stack){0};
}

/* The column of a plan node, from its children's. */
static double *make_column(espi_matcher *m, size_t number, size_t n)
{
    const espi_plan_node *node = &m->plan->node[number];
    const espi_group *group = &m->dag->group[node->group];
    const uint32_t *child = m->plan->child + node->first, *child_group = group->child;
    const double alpha = m->decay->alpha[node->group];
    double scale = m->decay->lambda[node->group]; /* what is not yet multiplied in */
    bool set = false;
    double *col = take_slot(m, number, n + 1);
    if (col == NULL) return NULL;
    m->work += n;
    for (size_t k = 0; k < group->inner; k++, child_group += 2 * (size_t)group->capacity) {
        const bool word = (child[k] & ESPI_WORD) != 0;
        const uint32_t q = word ? child[k] & ~ESPI_WORD : m->plan->node[child[k]].group;
        if (q >= m->dag->groups || (!word && m->pool.node[child[k]].column == ESPI_NO_NODE)) {
            scale *= alpha;
            continue;
        }
        if (word) {
            const double hit = alpha + m->decay->lambda[q];
            if (set) times_preterminal(col, child_group, n, q, hit, alpha);
            else set_preterminal(col, child_group, n, q, scale * hit, scale * alpha);
        } else {
            const double *below = m->slot[m->pool.node[child[k]].column].value;
            const uint32_t *rank = child_group + group->capacity, none = m->reach[q].vertices;
            if (set) times_column(col, child_group, rank, n, q, below, none, alpha);
            else set_column(col, child_group, rank, n, q, below, none, alpha, scale);
        }
        if (!set) scale = 1.0;
        set = true;
    }
    for (size_t r = 0; r < n && (!set || scale != 1.0); r++) col[r] = set ? col[r] * scale : scale;
    col[n] = 0.0;
    return col;
}

/* The column of one of several nodes of a group, added to w if that is wanted; *col is NULL where it is the group's
 * newest. Along a chain of
 * productions that repeats, columns soon stop changing (lambda < 1), and the nodes above share the newest: a chain of a
 * million nodes costs a few columns instead of a million. */
static bool make_or_share(espi_matcher *m, espi_sum *s, size_t number, size_t n, bool add, const double **col)
{
    *col = NULL;
    if (s->slot != ESPI_NO_NODE && espi_pool_same_below(&m->pool, m->plan, number, s->node)) {
        espi_pool_share(&m->pool, number, s->slot, m->plan->node[number].count);
        return true;
    }
    const struct espi_stack_top top = m->stack.top;
    const double *made = make_column(m, number, n);
    if (made == NULL) return false;
    if (s->slot != ESPI_NO_NODE && memcmp(made, m->slot[s->slot].value, n * sizeof *made) == 0) {
        release_column(m, number);
        m->stack.top = top;
        espi_pool_share(&m->pool, number, s->slot, m->plan->node[number].count);
    } else {
        if (add) espi_add_column(s->w, made, n, m->plan->node[number].count);
        if (s->slot != ESPI_NO_NODE) leave_slot(m, s->slot);
        s->slot = m->pool.node[number].column;
        espi_pool_keep(&m->pool, s->slot);
        *col = made;
    }
    s->node = number;
    return true;
}

/* A node's column, and what it adds to the result. Nodes that the DAG has nothing like have no column. */
static bool visit(espi_matcher *m, size_t number, espi_sink *s)
{
    const espi_plan_node *node = &m->plan->node[number];
    const size_t n = node->group < m->dag->groups ? espi_reach_of(m->reach, m->dag, node->group, s->to)->vertices : 0;
    if (n == 0) return true;
    const double *col;
    if (!node->alone) {
        espi_sum *shared = sum_of(m, node->group);
        return shared != NULL && make_or_share(m, shared, number, n, !m->keep, &col);
    }
    col = make_column(m, number, n);
    if (col != NULL && !m->keep) use(m, node->group, col, s);
    return col != NULL;
}

static void release_children(espi_matcher *m, const espi_plan_node *node)
{
    for (size_t k = node->first; k < node->end; k++) {
        const uint32_t child = m->plan->child[k];
        if ((child & ESPI_WORD) == 0 && --m->pool.node[child].uses == 0) release_column(m, child);
    }
}

/* Room for all that the tree and the DAG, which may have grown, ask for. */
static bool start(espi_matcher *m, const espi_plan *plan)
{
    size_t capacity = m->reaches;
    m->plan = plan;
    if (!espi_reserve(&m->reach, &capacity, m->dag->groups, sizeof *m->reach)) return false;
    if (capacity > m->reaches) memset(m->reach + m->reaches, 0, (capacity - m->reaches) * sizeof *m->reach);
    m->reaches = capacity;
    return espi_pool_begin(&m->pool, plan->nodes);
}

/* All nodes of the tree, children before parents. */
static esp_status visit_all(espi_matcher *m, const espi_plan *plan, espi_sink *s, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; i < plan->nodes && status == ESP_OK; i++) {
        espi_pool_enter(&m->pool, i, plan->node[i].uses);
        status = visit(m, i, s) ? espi_progress_at_times(m->run, "computing the kernel", &m->work, err)
                                : espi_no_memory(err);
        if (m->keep) continue;
        release_children(m, &plan->node[i]);
        if (plan->node[i].uses == 0) release_column(m, i);
    }
    return status;
}

static esp_status match(espi_matcher *m, const espi_plan *plan, espi_sink *s, esp_error *err)
{
    if (!start(m, plan)) return espi_no_memory(err);
    for (size_t i = 0; i < plan->words; i++) {
        const espi_plan_word *word = &plan->word[i];
        if (word->group >= m->dag->groups || espi_reach_of(m->reach, m->dag, word->group, s->to)->vertices == 0)
            continue;
        const double w = word->count * m->decay->lambda[word->group];
        use(m, word->group, &w, s);
    }
    const esp_status status = visit_all(m, plan, s, err);
    for (size_t i = 0; i < m->sums; i++) {
        if (status == ESP_OK && m->sum[i].slot != ESPI_NO_NODE) leave_slot(m, m->sum[i].slot);
        if (status == ESP_OK) use(m, m->sum[i].group, m->sum[i].w, s);
        m->reach[m->sum[i].group].sum = 0;
    }
    m->sums = 0;
    espi_pool_end(&m->pool, status == ESP_OK);
    return status;
}

esp_status espi_match_columns(espi_matcher *m, const espi_plan *plan, size_t to, esp_error *err)
{
    espi_sink s = {.to = to};
    const esp_status status = start(m, plan) ? visit_all(m, plan, &s, err) : espi_no_memory(err);
    if (status != ESP_OK) espi_match_done(m);
    return status;
}

void espi_match_done(espi_matcher *m)
{
    for (size_t i = 0; i < m->sums; i++) m->reach[m->sum[i].group].sum = 0;
    m->sums = 0;
    espi_pool_end(&m->pool, false); /* they were all kept */
    m->stack.top = (struct espi_stack_top){0};
}

esp_status espi_match_row(espi_matcher *m, const espi_plan *plan, size_t from, size_t to, double *out, esp_error *err)
{
    espi_sink s = {.from = from, .to = to, .out = out};
    return match(m, plan, &s, err);
}

esp_status espi_match_score(espi_matcher *m, const espi_plan *plan, double *const *f, size_t outputs, double *score,
                            esp_error *err)
{
    espi_sink s = {.to = m->dag->trees, .f = f, .outputs = outputs, .score = score};
    for (size_t k = 0; k < outputs; k++) score[k] = 0.0;
    return match(m, plan, &s, err);
}

/* ------------------------------------------------------------ node by node */

/* What a node is worth; one that shares the newest column of its group, as much as the node that has it. */
static bool value_node(espi_matcher *m, size_t number, double *const *f, size_t outputs, double *value)
{
    const uint32_t g = m->plan->node[number].group;
    const size_t n = g < m->dag->groups ? espi_reach_of(m->reach, m->dag, g, m->dag->trees)->vertices : 0;
    double *out = value + number * outputs;
    const double *col;
    for (size_t k = 0; k < outputs; k++) out[k] = 0.0;
    if (n == 0) return true;
    if (m->plan->node[number].alone) {
        col = make_column(m, number, n);
        if (col == NULL) return false;
    } else {
        espi_sum *s = shared_of(m, g);
        const size_t newest = s != NULL && s->slot != ESPI_NO_NODE ? s->node : number;
        if (s == NULL || !make_or_share(m, s, number, n, false, &col)) return false;
        if (col == NULL) {
            for (size_t k = 0; k < outputs; k++) out[k] = value[newest * outputs + k];
            return true;
        }
    }
    espi_weigh(f[g], m->dag->group[g].capacity, outputs, col, n, out);
    return true;
}

esp_status espi_match_values(espi_matcher *m, const espi_plan *plan, double *const *f, size_t outputs, double *value,
                             esp_error *err)
{
    esp_status status = start(m, plan) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < plan->nodes && status == ESP_OK; i++) {
        espi_pool_enter(&m->pool, i, plan->node[i].uses);
        status = value_node(m, i, f, outputs, value)
                     ? espi_progress_at_times(m->run, "computing the kernel", &m->work, err)
                     : espi_no_memory(err);
        release_children(m, &plan->node[i]);
        if (plan->node[i].uses == 0) release_column(m, i);
    }
    for (size_t i = 0; i < m->sums; i++) {
        if (status == ESP_OK && m->sum[i].slot != ESPI_NO_NODE) leave_slot(m, m->sum[i].slot);
        m->reach[m->sum[i].group].sum = 0;
    }
    m->sums = 0;
    espi_pool_end(&m->pool, status == ESP_OK);
    return status;
}
