/* Matching one tree against the DAG of soft.h: node by node, shape by shape, all vertices of a shape side by side. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/tree/lanes.h"
#include "kernel/partial_tree/soft_match.h"

#include <string.h>

void espi_soft_matcher_free(espi_soft_matcher *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->slots; i++) espi_free(m->slot[i].value);
    for (size_t i = 0; i < m->sum_room; i++) {
        espi_free(m->sum[i].w);
        espi_free(m->sum[i].shape);
    }
    espi_pool_free(&m->pool);
    espi_free(m->slot);
    espi_free(m->sum);
    espi_free(m->sum_of);
    espi_free(m->summed);
    espi_free(m->met_at);
    espi_free(m->met);
    espi_free(m->k);
    espi_free(m->l);
    espi_free(m->cell);
    espi_free(m->value);
    espi_free(m->scratch);
    espi_free(m->rows);
    espi_free(m->counts);
    espi_free(m);
}

espi_soft_matcher *espi_soft_matcher_new(const espi_soft_rules *rules, const espi_soft_dag *dag,
                                         const espi_soft_link *link, const esp_run *run)
{
    espi_soft_matcher *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return NULL;
    m->rules = rules;
    m->dag = dag;
    m->link = link;
    m->run = run;
    m->sum_of = espi_alloc_zero(dag->trees->group.count, sizeof *m->sum_of);
    m->summed = espi_alloc_zero(dag->trees->shapes, sizeof *m->summed);
    m->met_at = espi_alloc_zero(dag->trees->shapes, sizeof *m->met_at);
    m->counts = espi_alloc_zero(dag->trees->trees, sizeof *m->counts);
    if (m->sum_of != NULL && m->summed != NULL && m->met_at != NULL && m->counts != NULL) return m;
    espi_soft_matcher_free(m);
    return NULL;
}

/* ------------------------------------------------------------- hot loops */

HOT static void add_soft_column(double *restrict w, const double *restrict col, size_t n, double count)
{
    for (size_t r = 0; r < n; r++) w[r] += count * col[r];
}

/* Counts of frequent atoms are small: they are summed in short integers, many side by side. */
HOT static void add_small_counts(uint16_t *restrict total, const uint8_t *restrict count, size_t n, uint16_t times)
{
    for (size_t j = 0; j < n; j++) total[j] = (uint16_t)(total[j] + times * count[j]);
}

HOT static void add_small_sums(double *restrict out, const uint16_t *restrict total, size_t n, double value)
{
    for (size_t j = 0; j < n; j++) out[j] += value * total[j];
}

/* ------------------------------------------------------------ what is done with w */

typedef struct sink { /* a row to scatter over, or weights to multiply with */
    size_t from, to;
    size_t lanes;                     /* of a row; of scores: 1 */
    double *out;                      /* lane after lane */
    const espi_soft_weights *weights; /* NULL: a row */
    double *score;
    const double *value; /* of a pair of frequent atoms: what the sums of their counts are to be multiplied with */
    size_t most;         /* that such a sum can have reached; 0: all are 0 */
} sink;

static void add_waiting(const espi_soft_matcher *m, sink *s)
{
    const size_t n = s->to - s->from;
    if (s->most == 0) return;
    for (size_t lane = 0; lane < s->lanes; lane++) add_small_sums(s->out + lane * n, m->counts, n, s->value[lane]);
    memset(m->counts, 0, n * sizeof *m->counts);
    s->most = 0;
}

/* Adds `times` pairs per occurrence of a frequent atom, as far as short integers can: the caller sees to the rest. */
static bool add_dense(const espi_soft_matcher *m, const uint8_t *count, double times, const double *value, sink *s)
{
    if (times > UINT16_MAX / ESPI_SOFT_SMALL) return false;
    const size_t more = (size_t)times * ESPI_SOFT_SMALL;
    const bool same = s->value != NULL && memcmp(value, s->value, s->lanes * sizeof *value) == 0;
    if (!same || s->most + more > UINT16_MAX) add_waiting(m, s);
    s->value = value;
    s->most += more;
    add_small_counts(m->counts, count + s->from, s->to - s->from, (uint16_t)times);
    return true;
}

/* The first of the occurrences in a tree >= `from`. */
static size_t skip_to(const espi_soft_occurrence *at, size_t n, size_t from)
{
    size_t low = 0, high = from == 0 ? 0 : n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (at[middle].tree < from) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Uses w of the first n vertices of a shape of a group. */
static void use(const espi_soft_matcher *m, uint32_t group, uint32_t shape, const double *w, size_t n, sink *s)
{
    const struct espi_soft_group *q = &m->dag->shape[shape];
    w += q->place;
    if (s->weights == NULL) {
        const espi_soft_occurrence *at = m->dag->at + q->at;
        const size_t end = q[1].at - q->at, first = skip_to(at, end, s->from);
        for (size_t lane = 0; lane < s->lanes; lane++, w += m->dag->size[group]) {
            double *out = s->out + lane * (s->to - s->from);
            for (size_t i = first; i < end && at[i].tree < s->to; i++) out[at[i].tree - s->from] += w[at[i].item];
        }
        return;
    }
    for (size_t k = 0; k < s->weights->outputs; k++) {
        const double *f = s->weights->vertex + k * m->dag->vertices + q->vertex;
        double total = 0.0;
        for (size_t r = 0; r < n; r++) total += f[r] * w[r];
        s->score[k] += total;
    }
}

/* Uses `times` pairs per occurrence of an atom, worth `value` each. */
static void use_atom(const espi_soft_matcher *m, uint32_t atom, double times, const double *value, sink *s)
{
    const espi_soft_dag *d = m->dag;
    if (s->weights != NULL) {
        for (size_t k = 0; k < s->weights->outputs; k++)
            s->score[k] += times * *value * s->weights->atom[k * d->trees->atom.count + atom];
        return;
    }
    if (d->dense[atom] != NULL && add_dense(m, d->dense[atom], times, value, s)) return;
    const espi_soft_occurrence *at = d->atom_at + d->atom_start[atom];
    const size_t end = d->atom_start[atom + 1] - d->atom_start[atom], first = skip_to(at, end, s->from);
    for (size_t lane = 0; lane < s->lanes; lane++) {
        double *out = s->out + lane * (s->to - s->from);
        for (size_t i = first; i < end && at[i].tree < s->to; i++)
            out[at[i].tree - s->from] += times * value[lane] * at[i].item;
    }
}

static void use_atoms(const espi_soft_matcher *m, sink *s)
{
    for (size_t i = 0; i < m->plan->atoms; i++) {
        const espi_soft_atom *a = &m->plan->atom[i];
        for (size_t k = m->link->partner_start[a->atom]; k < m->link->partner_start[a->atom + 1]; k++)
            use_atom(m, m->link->partner[k].atom, a->count, m->link->partner[k].value, s);
    }
    add_waiting(m, s);
}

/* The w of a group that several nodes share: zeros at first. */
static espi_soft_sum *sum_of(espi_soft_matcher *m, uint32_t g)
{
    if (m->sum_of[g] > 0) return &m->sum[m->sum_of[g] - 1];
    if (m->sums == m->sum_room) {
        if (!espi_reserve(&m->sum, &m->sum_capacity, m->sums + 1, sizeof *m->sum)) return NULL;
        m->sum[m->sum_room++] = (espi_soft_sum){0};
    }
    espi_soft_sum *s = &m->sum[m->sums];
    const size_t size = m->dag->size[g] * m->lanes;
    if (!espi_reserve(&s->w, &s->capacity, size, sizeof *s->w)) return NULL;
    memset(s->w, 0, size * sizeof *s->w);
    s->group = g;
    s->shapes = 0;
    s->slot = ESPI_NO_NODE;
    m->sum_of[g] = (uint32_t)++m->sums;
    return s;
}

/* --------------------------------------------------------------- columns */

/* A column for a node, which becomes its first user. */
static double *take_slot(espi_soft_matcher *m, size_t node, uint32_t group)
{
    const uint32_t number = espi_pool_take(&m->pool, node);
    if (number == ESPI_NO_NODE) return NULL;
    if (number == m->slots) {
        if (!espi_reserve(&m->slot, &m->slot_capacity, m->slots + 1, sizeof *m->slot)) return NULL;
        m->slot[m->slots++] = (espi_soft_slot){0};
    }
    espi_soft_slot *s = &m->slot[number];
    const size_t size = m->dag->size[group] * m->lanes;
    s->group = group;
    if (!espi_reserve(&s->value, &s->capacity, size, sizeof *s->value)) return NULL;
    memset(s->value, 0, size * sizeof *s->value);
    m->work += size;
    return s->value;
}

static void leave_slot(espi_soft_matcher *m, uint32_t number)
{
    const double pending = espi_pool_leave(&m->pool, number);
    if (pending == 0.0) return;
    const espi_soft_slot *s = &m->slot[number];
    add_soft_column(m->sum[m->sum_of[s->group] - 1].w, s->value, m->dag->size[s->group] * m->lanes, pending);
}

static void release_column(espi_soft_matcher *m, size_t node)
{
    struct espi_pool_node *n = &m->pool.node[node];
    if (n->column != ESPI_NO_NODE) leave_slot(m, n->column);
    n->column = ESPI_NO_NODE;
}

/* ----------------------------------------------------------------- nodes */

/* The column of a node; *out is NULL if nothing in the DAG has cells with it. The
 * shapes that have are left in `met`. */
static esp_status make_column(espi_soft_matcher *m, size_t number, uint32_t group, double **out, esp_error *err)
{
    const espi_soft_node *node = &m->plan->node[number];
    bool together;
    *out = NULL;
    if (!espi_soft_meet(m, node, &together)) return espi_no_memory(err);
    if (m->mets == 0) return ESP_OK;
    *out = take_slot(m, number, group);
    return *out == NULL ? espi_no_memory(err) : espi_soft_fill(m, node, together, *out, err);
}

/* Whether two nodes have one shape and the same children, as far as columns can tell. */
static bool same_below(const espi_soft_matcher *m, size_t a, size_t b)
{
    const espi_soft_node *x = &m->plan->node[a], *y = &m->plan->node[b];
    if (x->shape != y->shape) return false;
    for (size_t k = 0; k < m->plan->trees->shape[x->shape].children; k++) {
        const uint32_t i = m->plan->child[x->first + k], j = m->plan->child[y->first + k];
        if (i == ESPI_NO_NODE || j == ESPI_NO_NODE ? i != j : m->pool.node[i].serial != m->pool.node[j].serial)
            return false;
    }
    return true;
}

static bool same_column(const espi_soft_matcher *m, const double *a, const double *b, uint32_t group)
{
    return memcmp(a, b, m->dag->size[group] * m->lanes * sizeof *a) == 0;
}

/* Adds the column just made to w, shape by shape. */
static bool add_to_sum(espi_soft_matcher *m, espi_soft_sum *s, const double *col, double count)
{
    if (!espi_reserve(&s->shape, &s->shape_capacity, s->shapes + m->mets, sizeof *s->shape)) return false;
    for (size_t i = 0; i < m->mets; i++) {
        const uint32_t shape = m->met[i].shape;
        size_t place = m->dag->shape[shape].place;
        if (!m->summed[shape]) s->shape[s->shapes++] = shape;
        m->summed[shape] = true;
        for (size_t lane = 0; lane < m->lanes; lane++, place += m->dag->size[s->group]) {
            if (m->met[i].n == 1) s->w[place] += count * col[place];
            else add_soft_column(s->w + place, col + place, m->met[i].n, count);
        }
    }
    return true;
}

/* The column of one of several nodes of a group, added to w. Along a chain that repeats, columns soon stop changing
 * (lambda < 1), and the nodes above share the group's newest: a chain of many nodes costs a few columns. */
static esp_status make_or_share(espi_soft_matcher *m, size_t number, uint32_t group, esp_error *err)
{
    double *col;
    espi_soft_sum *s = m->sum_of[group] > 0 ? &m->sum[m->sum_of[group] - 1] : NULL;
    if (s != NULL && same_below(m, number, s->node)) {
        espi_pool_share(&m->pool, number, s->slot, m->plan->node[number].count);
        s->node = number;
        return ESP_OK;
    }
    const esp_status status = make_column(m, number, group, &col, err);
    if (status != ESP_OK || col == NULL) return status;
    s = sum_of(m, group);
    if (s == NULL) return espi_no_memory(err);
    if (s->slot != ESPI_NO_NODE && same_column(m, col, m->slot[s->slot].value, group)) {
        release_column(m, number);
        espi_pool_share(&m->pool, number, s->slot, m->plan->node[number].count);
    } else {
        if (!add_to_sum(m, s, col, m->plan->node[number].count)) return espi_no_memory(err);
        if (s->slot != ESPI_NO_NODE) leave_slot(m, s->slot);
        s->slot = m->pool.node[number].column;
        espi_pool_keep(&m->pool, s->slot);
    }
    s->node = number;
    return ESP_OK;
}

static esp_status visit(espi_soft_matcher *m, size_t number, sink *s, esp_error *err)
{
    const espi_soft_node *node = &m->plan->node[number];
    const uint32_t group = m->link->group[node->shape];
    espi_pool_enter(&m->pool, number, node->uses);
    if (group == ESPI_NO_NODE) return ESP_OK;
    if (!node->alone) return make_or_share(m, number, group, err);
    double *col;
    const esp_status status = make_column(m, number, group, &col, err);
    for (size_t i = 0; status == ESP_OK && i < m->mets; i++) {
        const espi_soft_met *q = &m->met[i];
        use(m, group, q->shape, col, q->n, s);
    }
    return status;
}

static void release_children(espi_soft_matcher *m, size_t number)
{
    const espi_soft_node *node = &m->plan->node[number];
    for (size_t k = 0; k < m->plan->trees->shape[node->shape].children; k++) {
        const uint32_t child = m->plan->child[node->first + k];
        if (child != ESPI_NO_NODE && --m->pool.node[child].uses == 0) release_column(m, child);
    }
    if (node->uses == 0) release_column(m, number);
}

/* Uses and forgets the sums, and takes all columns back, also after a failure in the middle. */
static void finish(espi_soft_matcher *m, bool ok, sink *s)
{
    for (size_t i = 0; i < m->sums; i++) {
        const espi_soft_sum *x = &m->sum[i];
        if (ok && x->slot != ESPI_NO_NODE) leave_slot(m, x->slot);
        for (size_t k = 0; k < x->shapes; k++) {
            const struct espi_soft_group *q = &m->dag->shape[x->shape[k]];
            if (ok) use(m, x->group, x->shape[k], x->w, espi_soft_reach(m, q), s);
            m->summed[x->shape[k]] = false;
        }
        m->sum_of[x->group] = 0;
    }
    m->sums = 0;
    espi_pool_end(&m->pool, ok);
}

/* Shapes come in order of the trees that brought them. */
static uint32_t find_limit(const espi_soft_dag *d, size_t to)
{
    size_t low = 0, high = d->trees->shapes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (d->born[middle] < to) low = middle + 1;
        else high = middle;
    }
    return (uint32_t)low;
}

static esp_status match(espi_soft_matcher *m, const espi_soft_plan *plan, sink *s, esp_error *err)
{
    m->plan = plan;
    m->lanes = s->lanes;
    if (m->to != s->to) m->limit = find_limit(m->dag, s->to);
    m->to = s->to;
    if (!espi_pool_begin(&m->pool, plan->nodes)) return espi_no_memory(err);
    use_atoms(m, s);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < plan->nodes; i++) {
        status = visit(m, i, s, err);
        if (status == ESP_OK) release_children(m, i);
    }
    finish(m, status == ESP_OK, s);
    return status;
}

esp_status espi_soft_match_row(espi_soft_matcher *m, const espi_soft_plan *plan, size_t from, size_t to, size_t lanes,
                               double *out, esp_error *err)
{
    sink s = {.from = from, .to = to, .lanes = lanes, .out = out};
    return match(m, plan, &s, err);
}

esp_status espi_soft_match_gradient(espi_soft_matcher *m, const espi_soft_plan *plan, size_t from, size_t to,
                                    const double *weight, double *gradient, esp_error *err)
{
    const size_t n = to - from, lanes = m->rules->lanes;
    if (n == 0) return ESP_OK;
    if (!espi_reserve(&m->rows, &m->row_capacity, lanes * n, sizeof *m->rows)) return espi_no_memory(err);
    memset(m->rows, 0, lanes * n * sizeof *m->rows);
    const esp_status status = espi_soft_match_row(m, plan, from, to, lanes, m->rows, err);
    if (status == ESP_OK) espi_lanes_weigh(m->rows, n, lanes, weight, gradient);
    return status;
}

esp_status espi_soft_match_score(espi_soft_matcher *m, const espi_soft_plan *plan, const espi_soft_weights *weights,
                                 double *score, esp_error *err)
{
    sink s = {.to = m->dag->trees->trees, .lanes = 1, .weights = weights, .score = score};
    for (size_t k = 0; k < weights->outputs; k++) score[k] = 0.0;
    return match(m, plan, &s, err);
}
