/* Matching one tree against the DAG by the grammar-driven kernel (gtk.h). As in match.c, each different subtree v of
 * the tree gets a column of its Delta with vertices u of the DAG, from the columns of its children; added up they are
 * w(u). Here a column has a piece for each group that the group of v meets (gtk_link.c), made by gtk_cells.c. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/grammar_tree/gtk_match.h"

#include <string.h>

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
    espi_pool_free(&m->pool);
    espi_free(m->slot);
    espi_free(m->sum);
    espi_free(m->block);
    espi_free(m);
}

/* ------------------------------------------------------------- one group */

static void use(const espi_gtk_matcher *m, uint32_t g, const double *w, const espi_sink *s)
{
    espi_sink lane = *s;
    espi_sink_add(&lane, m->dag, g, &m->reach[g], w);
    for (size_t i = 1; i < m->lanes; i++) {
        lane.out += s->to - s->from;
        espi_sink_add(&lane, m->dag, g, &m->reach[g], w + i * m->reach[g].vertices);
    }
}

/* The w of a group that has vertices: zeros at first. */
static double *sum_of(espi_gtk_matcher *m, uint32_t g)
{
    espi_reach *c = &m->reach[g];
    if (c->sum > 0) return m->sum[c->sum - 1].w;
    if (m->sums == m->sum_room) {
        if (!espi_reserve(&m->sum, &m->sum_capacity, m->sums + 1, sizeof *m->sum)) return NULL;
        m->sum[m->sum_room++] = (espi_gtk_sum){0};
    }
    espi_gtk_sum *s = &m->sum[m->sums];
    const size_t size = c->vertices * m->lanes;
    if (!espi_reserve(&s->w, &s->capacity, size, sizeof *s->w)) return NULL;
    memset(s->w, 0, size * sizeof *s->w);
    s->group = g;
    c->sum = (uint32_t)++m->sums;
    return s->w;
}

/* --------------------------------------------------------------- columns */

static espi_gtk_slot *take_slot(espi_gtk_matcher *m, size_t node)
{
    const uint32_t number = espi_pool_take(&m->pool, node);
    if (number == ESPI_NO_NODE) return NULL;
    if (number == m->slots) {
        if (!espi_reserve(&m->slot, &m->slot_capacity, m->slots + 1, sizeof *m->slot)) return NULL;
        m->slot[m->slots++] = (espi_gtk_slot){0};
    }
    m->slot[number].group = m->plan->node[node].group;
    return &m->slot[number];
}

/* w += count * column. The sums are there. */
static void add_slot(espi_gtk_matcher *m, const espi_gtk_slot *s, double count)
{
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    for (size_t i = 0; i < meetings; i++) {
        const espi_reach *c = &m->reach[m->link->meeting[first + i].group];
        for (size_t lane = 0; lane < m->lanes && c->vertices > 0; lane++)
            espi_add_column(m->sum[c->sum - 1].w + lane * c->vertices, s->value + lane * s->size + s->piece[i],
                            c->vertices, count);
    }
}

static void leave_slot(espi_gtk_matcher *m, uint32_t number)
{
    const double pending = espi_pool_leave(&m->pool, number);
    if (pending > 0.0) add_slot(m, &m->slot[number], pending);
}

static void release_column(espi_gtk_matcher *m, size_t node)
{
    struct espi_pool_node *n = &m->pool.node[node];
    if (n->column != ESPI_NO_NODE) leave_slot(m, n->column);
    n->column = ESPI_NO_NODE;
}

/* Lays out the pieces of a column, as far as the groups lie in trees before `to`, and makes their sums; its size is 1
 * if there is nothing to meet. */
static bool lay_out(espi_gtk_matcher *m, espi_gtk_slot *s, size_t to)
{
    const size_t first = m->link->start[s->group], meetings = m->link->start[s->group + 1] - first;
    const uint32_t places = m->gtk->kind_size[m->gtk->group[s->group].kind];
    s->size = 1;
    if (!espi_reserve(&s->piece, &s->piece_capacity, meetings, sizeof *s->piece) ||
        !espi_reserve(&s->at, &s->at_capacity, places, sizeof *s->at))
        return false;
    memset(s->at, 0, places * sizeof *s->at);
    for (size_t i = 0; i < meetings; i++) {
        const uint32_t group = m->link->meeting[first + i].group;
        const uint32_t vertices = espi_reach_of(m->reach, m->dag, group, to)->vertices;
        s->piece[i] = (uint32_t)s->size;
        s->at[m->gtk->place[group]] = vertices > 0 ? (uint32_t)s->size : 0;
        s->size += vertices;
        if (vertices > 0 && sum_of(m, group) == NULL) return false;
    }
    return espi_reserve(&s->value, &s->value_capacity, s->size * m->lanes, sizeof *s->value);
}

/* A node's column, added to w. Along a chain that repeats, columns soon stop changing, and the nodes above share the
 * group's newest. A node that meets nothing has no column. */
static bool visit(espi_gtk_matcher *m, size_t number, size_t to)
{
    const espi_plan_node *node = &m->plan->node[number];
    if (m->link->start[node->group] == m->link->start[node->group + 1]) return true;
    struct espi_gtk_newest *latest = &m->newest[node->group];
    if (latest->slot != ESPI_NO_NODE && espi_pool_same_below(&m->pool, m->plan, number, latest->node)) {
        espi_pool_share(&m->pool, number, latest->slot, node->count);
        latest->node = number;
        return true;
    }
    espi_gtk_slot *s = take_slot(m, number);
    if (s == NULL || !lay_out(m, s, to)) return false;
    if (s->size == 1) {
        release_column(m, number);
        return true;
    }
    if (!espi_gtk_fill(m, number, s)) return false;
    const size_t bytes = s->size * m->lanes * sizeof *s->value;
    if (latest->slot != ESPI_NO_NODE && memcmp(s->value, m->slot[latest->slot].value, bytes) == 0) {
        release_column(m, number);
        espi_pool_share(&m->pool, number, latest->slot, node->count);
    } else {
        add_slot(m, s, node->count);
        if (latest->slot != ESPI_NO_NODE) leave_slot(m, latest->slot);
        latest->slot = m->pool.node[number].column;
        espi_pool_keep(&m->pool, latest->slot);
    }
    latest->node = number;
    return true;
}

static void release_children(espi_gtk_matcher *m, const espi_plan_node *node)
{
    for (size_t k = node->first; k < node->end; k++) {
        const uint32_t child = m->plan->child[k];
        if ((child & ESPI_WORD) == 0 && --m->pool.node[child].uses == 0) release_column(m, child);
    }
}

static bool add_words(espi_gtk_matcher *m, size_t to)
{
    for (size_t i = 0; i < m->plan->words; i++) {
        const espi_plan_word *word = &m->plan->word[i];
        for (size_t k = m->link->start[word->group]; k < m->link->start[word->group + 1]; k++) {
            const espi_gtk_meeting *meeting = &m->link->meeting[k];
            const uint32_t vertices = espi_reach_of(m->reach, m->dag, meeting->group, to)->vertices;
            double *w = sum_of(m, meeting->group);
            if (w == NULL) return false;
            w[0] += word->count * meeting->scale;
            for (size_t lane = 1; lane < m->lanes; lane++)
                w[lane * vertices] += word->count * espi_gtk_scale(m->gtk, meeting, word->group, lane);
        }
    }
    return true;
}

static esp_status match(espi_gtk_matcher *m, const espi_plan *plan, const espi_sink *s, size_t lanes, esp_error *err)
{
    m->plan = plan;
    m->lanes = lanes;
    bool ok = espi_pool_begin(&m->pool, plan->nodes) && add_words(m, s->to);
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < plan->nodes && ok; i++) {
        espi_pool_enter(&m->pool, i, plan->node[i].uses);
        status = visit(m, i, s->to) ? espi_progress_at_times(m->run, "computing the kernel", &m->work, err)
                                    : espi_no_memory(err);
        ok = status == ESP_OK;
        if (ok) release_children(m, &plan->node[i]);
        if (ok && plan->node[i].uses == 0) release_column(m, i);
    }
    for (size_t i = 0; i < plan->nodes; i++) {
        struct espi_gtk_newest *latest = &m->newest[plan->node[i].group];
        if (ok && latest->slot != ESPI_NO_NODE) leave_slot(m, latest->slot);
        latest->slot = ESPI_NO_NODE;
    }
    for (size_t i = 0; i < m->sums; i++) {
        if (ok) use(m, m->sum[i].group, m->sum[i].w, s);
        m->reach[m->sum[i].group].sum = 0;
    }
    m->sums = 0;
    espi_pool_end(&m->pool, ok);
    return status;
}

esp_status espi_gtk_match_row(espi_gtk_matcher *m, const espi_plan *plan, size_t from, size_t to, size_t lanes,
                              double *out, esp_error *err)
{
    const espi_sink s = {.from = from, .to = to, .out = out};
    return match(m, plan, &s, lanes, err);
}

esp_status espi_gtk_match_score(espi_gtk_matcher *m, const espi_plan *plan, double *const *f, size_t outputs,
                                double *score, esp_error *err)
{
    const espi_sink s = {.to = m->dag->trees, .f = f, .outputs = outputs, .score = score};
    for (size_t k = 0; k < outputs; k++) score[k] = 0.0;
    return match(m, plan, &s, 1, err);
}
