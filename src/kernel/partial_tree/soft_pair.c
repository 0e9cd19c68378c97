/* Two trees under the rules of soft.h, pair by pair in wide numbers; and every tree with itself. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/partial_tree/soft_dag.h"

/* ------------------------------------------------------------ wide numbers */

typedef struct matching {
    const espi_soft_rules *rules;
    const espi_soft_plan *a, *b;
    uint64_t *sorted;   /* nodes of `a` as group << 32 | node, in order */
    uint32_t *place;    /* of a node of `a` within the run of its group */
    espi_wide **column; /* of a node of `b` over that run; NULL: none */
    uint32_t *uses;     /* of a node of `b`, still to come */
    uint32_t *k, *l;    /* of the cells of two nodes */
    espi_wide *value;
    size_t k_capacity, l_capacity, value_capacity;
    void *scratch;
    size_t scratch_capacity;
} matching;

static uint64_t group_of(const espi_soft_plan *plan, size_t node)
{
    return plan->trees->group.key[plan->trees->shape[plan->node[node].shape].group];
}

static bool prepare(matching *m)
{
    m->sorted = espi_alloc(m->a->nodes, sizeof *m->sorted);
    m->place = espi_alloc(m->a->nodes, sizeof *m->place);
    m->column = espi_alloc_zero(m->b->nodes, sizeof *m->column);
    m->uses = espi_alloc(m->b->nodes, sizeof *m->uses);
    if (m->sorted == NULL || m->place == NULL || m->column == NULL || m->uses == NULL) return false;
    for (size_t i = 0; i < m->a->nodes; i++) m->sorted[i] = group_of(m->a, i) << 32 | i;
    espi_sort_keys(m->sorted, m->a->nodes);
    uint32_t place = 0;
    for (size_t i = 0; i < m->a->nodes; i++) {
        place = i > 0 && m->sorted[i] >> 32 == m->sorted[i - 1] >> 32 ? place + 1 : 0;
        m->place[(uint32_t)m->sorted[i]] = place;
    }
    for (size_t i = 0; i < m->b->nodes; i++) m->uses[i] = m->b->node[i].uses;
    return true;
}

static void drop_column(matching *m, size_t node)
{
    espi_free(m->column[node]);
    m->column[node] = NULL;
}

static void release(matching *m)
{
    for (size_t i = 0; m->column != NULL && i < m->b->nodes; i++) drop_column(m, i);
    espi_free(m->column);
    espi_free(m->sorted);
    espi_free(m->place);
    espi_free(m->uses);
    espi_free(m->k);
    espi_free(m->l);
    espi_free(m->value);
    espi_free(m->scratch);
}

/* The constant part: atoms that meet. */
static bool atom_sum(const matching *m, espi_wide *sum)
{
    const espi_soft_trees *a = m->a->trees, *b = m->b->trees;
    double *count = espi_alloc_zero(b->atom.count, sizeof *count);
    if (count == NULL) return false;
    for (size_t i = 0; i < m->b->atoms; i++) count[m->b->atom[i].atom] = m->b->atom[i].count;
    for (size_t i = 0; i < m->a->atoms; i++) {
        uint64_t key;
        const double *value;
        for (size_t n = 0; m->rules->partner(m->rules, a->atom.key[m->a->atom[i].atom], n, &key, &value); n++) {
            const uint32_t atom = espi_soft_map_find(&b->atom, key);
            const double pairs = atom == ESPI_NO_NODE ? 0.0 : m->a->atom[i].count * count[atom];
            *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_of(pairs), espi_wide_of(*value)));
        }
    }
    espi_free(count);
    return true;
}

/* The cell of position k of node x and position l of node y, unless they are apart. */
static bool add_cell(matching *m, const espi_soft_node *x, size_t k, const espi_soft_node *y, size_t l, size_t *cells)
{
    const espi_soft_trees *a = m->a->trees, *b = m->b->trees;
    const size_t i = a->shape[x->shape].code + k, j = b->shape[y->shape].code + l;
    if (a->key[i] != b->key[j]) return true;
    const espi_soft_cell c = m->rules->cell(m->rules, a->code[i], b->code[j]);
    if (c.kind == ESPI_APART) return true;
    if (!espi_reserve(&m->k, &m->k_capacity, *cells + 1, sizeof *m->k) ||
        !espi_reserve(&m->l, &m->l_capacity, *cells + 1, sizeof *m->l) ||
        !espi_reserve(&m->value, &m->value_capacity, *cells + 1, sizeof *m->value))
        return false;
    espi_wide value = espi_wide_of(*c.base);
    if (c.kind == ESPI_DEEP) {
        const espi_wide *column = m->column[m->b->child[y->first + l]];
        value = espi_wide_add(value, column[m->place[m->a->child[x->first + k]]]);
    }
    m->k[*cells] = (uint32_t)k;
    m->l[*cells] = (uint32_t)l;
    m->value[(*cells)++] = value;
    return true;
}

static bool excess(matching *m, const espi_soft_node *x, const espi_soft_node *y, espi_wide *out)
{
    enum { MANY = 1 << 16 }; /* cells handed over in one call */
    espi_soft_meeting meeting = {.p = espi_soft_shape_of(m->a->trees, x->shape),
                                 .q = espi_soft_shape_of(m->b->trees, y->shape),
                                 .n = 1,
                                 .scratch = &m->scratch,
                                 .capacity = &m->scratch_capacity};
    bool ok = true;
    *out = espi_wide_of(0.0);
    for (; ok && meeting.from < meeting.p.children; meeting.from = meeting.to) {
        size_t cells = 0, k = meeting.from;
        for (; ok && k < meeting.p.children && cells < MANY; k++)
            for (size_t l = 0; ok && l < meeting.q.children; l++) ok = add_cell(m, x, k, y, l, &cells);
        meeting.to = k;
        meeting.k = m->k;
        meeting.l = m->l;
        meeting.cells = cells;
        meeting.wide = m->value;
        if (!ok || (cells == 0 && meeting.from == 0 && k == meeting.p.children)) return ok;
        ok = m->rules->children_wide(m->rules, &meeting, out);
    }
    return ok;
}

/* Adds what a node of `b` contributes, keeps its column for its parents and drops its children's. */
static bool visit(matching *m, size_t number, espi_wide *sum)
{
    const espi_soft_node *node = &m->b->node[number];
    size_t first;
    const size_t count = espi_key_run(m->sorted, m->a->nodes, group_of(m->b, number), &first);
    espi_wide *column = NULL;
    if (count > 0) {
        column = m->column[number] = espi_alloc(count, sizeof *column);
        if (column == NULL) return false;
    }
    for (size_t i = 0; i < count; i++) {
        const espi_soft_node *left = &m->a->node[(uint32_t)m->sorted[first + i]];
        if (!excess(m, left, node, &column[i])) return false;
        *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_of(node->count * left->count), column[i]));
    }
    for (size_t l = 0; l < m->b->trees->shape[node->shape].children; l++) {
        const uint32_t child = m->b->child[node->first + l];
        if (child != ESPI_NO_NODE && --m->uses[child] == 0) drop_column(m, child);
    }
    return true;
}

bool espi_soft_pair_wide(const espi_soft_rules *rules, const espi_soft_plan *a, const espi_soft_plan *b,
                         espi_wide *value)
{
    matching m = {.rules = rules, .a = a, .b = b};
    *value = espi_wide_of(0.0);
    bool ok = prepare(&m) && atom_sum(&m, value);
    for (size_t i = 0; ok && i < b->nodes; i++) ok = visit(&m, i, value);
    release(&m);
    return ok;
}

/* ----------------------------------------------------- a tree with itself */

enum {
    CHUNK = 32, /* trees that a thread takes at a time */
    SMALL = 64, /* nodes; the table of their pairs stays in the cache */
    FEW = 512   /* children of all of them */
};

typedef struct self_worker {
    espi_soft_builder builder;
    double *self;  /* K of the tree at hand, all lanes */
    double *delta; /* excess of nodes i >= j: delta[i * SMALL + j] */
    double *count; /* per atom: of the tree at hand; else 0 */
    uint32_t *k, *l;
    double *value;
    size_t k_capacity, l_capacity, value_capacity;
    void *scratch;
    size_t scratch_capacity;
} self_worker;

typedef struct self_job {
    const espi_soft_rules *rules;
    const espi_soft_trees *trees;
    const espi_forest *forest;
    const uint32_t *symbol;
    size_t lanes;
    double *value;
    self_worker *worker; /* per thread */
} self_job;

static bool start_worker(const self_job *j, self_worker *w)
{
    if (w->delta == NULL) w->delta = espi_alloc(SMALL * SMALL, sizeof *w->delta);
    if (w->count == NULL) w->count = espi_alloc_zero(j->trees->atom.count, sizeof *w->count);
    if (w->self == NULL) w->self = espi_alloc(j->lanes, sizeof *w->self);
    return w->delta != NULL && w->count != NULL && w->self != NULL;
}

static void free_worker(self_worker *w)
{
    espi_soft_builder_free(&w->builder);
    espi_free(w->self);
    espi_free(w->delta);
    espi_free(w->count);
    espi_free(w->k);
    espi_free(w->l);
    espi_free(w->value);
    espi_free(w->scratch);
}

/* The cells of nodes a >= b of one small tree, and their values. False: memory is out. */
static bool small_cells(const self_job *j, const espi_soft_plan *plan, size_t a, size_t b, self_worker *w,
                        size_t *cells)
{
    const espi_soft_trees *t = j->trees;
    const struct espi_soft_look *p = &t->shape[plan->node[a].shape], *q = &t->shape[plan->node[b].shape];
    const uint32_t *below = plan->child + plan->node[a].first, *other = plan->child + plan->node[b].first;
    *cells = 0;
    for (size_t k = 0; k < p->children; k++) {
        for (size_t l = 0; l < q->children; l++) {
            if (t->key[p->code + k] != t->key[q->code + l]) continue;
            const espi_soft_cell c = j->rules->cell(j->rules, t->code[p->code + k], t->code[q->code + l]);
            if (c.kind == ESPI_APART) continue;
            if (!espi_reserve(&w->k, &w->k_capacity, *cells + 1, sizeof *w->k) ||
                !espi_reserve(&w->l, &w->l_capacity, *cells + 1, sizeof *w->l) ||
                !espi_reserve(&w->value, &w->value_capacity, *cells + 1, sizeof *w->value))
                return false;
            double value = *c.base;
            if (c.kind == ESPI_DEEP) {
                const size_t x = below[k], y = other[l];
                value += w->delta[x > y ? x * SMALL + y : y * SMALL + x];
            }
            w->k[*cells] = (uint32_t)k;
            w->l[*cells] = (uint32_t)l;
            w->value[(*cells)++] = value;
        }
    }
    return true;
}

static double small_atoms(const self_job *j, const espi_soft_plan *plan, double *count)
{
    const espi_soft_map *map = &j->trees->atom;
    double sum = 0.0;
    for (size_t i = 0; i < plan->atoms; i++) count[plan->atom[i].atom] = plan->atom[i].count;
    for (size_t i = 0; i < plan->atoms; i++) {
        uint64_t key;
        const double *value;
        for (size_t n = 0; j->rules->partner(j->rules, map->key[plan->atom[i].atom], n, &key, &value); n++) {
            const uint32_t atom = espi_soft_map_find(map, key);
            if (atom != ESPI_NO_NODE) sum += *value * plan->atom[i].count * count[atom];
        }
    }
    for (size_t i = 0; i < plan->atoms; i++) count[plan->atom[i].atom] = 0.0;
    return sum;
}

static bool small_value(const self_job *j, const espi_soft_plan *plan, self_worker *w, double *sum)
{
    const espi_soft_trees *t = j->trees;
    *sum = small_atoms(j, plan, w->count);
    for (size_t a = 0; a < plan->nodes; a++) {
        for (size_t b = 0; b <= a; b++) {
            const espi_soft_node *x = &plan->node[a], *y = &plan->node[b];
            if (t->shape[x->shape].group != t->shape[y->shape].group) continue;
            double *delta = &w->delta[a * SMALL + b];
            size_t cells;
            *delta = 0.0;
            if (!small_cells(j, plan, a, b, w, &cells)) return false;
            const espi_soft_meeting meeting = {.p = espi_soft_shape_of(t, x->shape),
                                               .q = espi_soft_shape_of(t, y->shape),
                                               .to = t->shape[x->shape].children,
                                               .k = w->k,
                                               .l = w->l,
                                               .cells = cells,
                                               .value = w->value,
                                               .lanes = 1,
                                               .n = 1,
                                               .scratch = &w->scratch,
                                               .capacity = &w->scratch_capacity};
            if (cells > 0 && !j->rules->children(j->rules, &meeting, delta)) return false;
            *sum += (a == b ? 1.0 : 2.0) * x->count * y->count * *delta;
        }
    }
    return true;
}

/* By a DAG of this tree alone, so that its cost does not depend on the other trees. */
static esp_status large_value(const self_job *j, size_t i, espi_soft_builder *builder, const esp_run *run,
                              double *value, esp_error *err)
{
    espi_soft_trees trees = {0};
    espi_soft_dag dag = {0};
    espi_soft_link link = {0};
    espi_soft_matcher *matcher = NULL;
    bool ok = espi_soft_trees_make(&trees, j->rules, j->forest, j->symbol, &j->forest->root[i], 1, builder);
    if (ok) {
        for (size_t k = 0; k < trees.tree[1].node; k++) trees.node[k].vertex = (uint32_t)k; /* the forest is large */
        ok = espi_soft_dag_make(&dag, &trees) && espi_soft_link_make(&link, j->rules, &trees, &dag);
    }
    if (ok) matcher = espi_soft_matcher_new(j->rules, &dag, &link, run);
    esp_status status = matcher == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK) {
        const espi_soft_plan plan = espi_soft_plan_of(&trees, 0);
        for (size_t lane = 0; lane < j->lanes; lane++) value[lane] = 0.0;
        status = espi_soft_match_row(matcher, &plan, 0, 1, j->lanes, value, err);
    }
    espi_soft_matcher_free(matcher);
    espi_soft_link_free(&link);
    espi_soft_dag_free(&dag);
    espi_soft_trees_free(&trees);
    return status;
}

static esp_status self_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const self_job *j = context;
    const size_t end = (item + 1) * CHUNK < j->trees->trees ? (item + 1) * CHUNK : j->trees->trees;
    esp_status status = ESP_OK;
    self_worker *w = &j->worker[thread->number];
    if (!start_worker(j, w)) return espi_no_memory(err);
    for (size_t i = item * CHUNK; status == ESP_OK && i < end; i++) {
        const espi_soft_plan plan = espi_soft_plan_of(j->trees, i);
        const size_t children = j->trees->tree[i + 1].child - j->trees->tree[i].child;
        if (plan.nodes > SMALL || children > FEW || j->lanes > 1)
            status = large_value(j, i, &w->builder, thread->run, w->self, err);
        else if (!small_value(j, &plan, w, w->self)) status = espi_no_memory(err);
        for (size_t lane = 0; status == ESP_OK && lane < j->lanes; lane++)
            j->value[lane * j->trees->trees + i] = w->self[lane];
    }
    return status;
}

esp_status espi_soft_self_values(const espi_soft_rules *rules, const espi_soft_trees *trees, const espi_forest *forest,
                                 const uint32_t *symbol, const esp_run *run, size_t lanes, double *value,
                                 esp_error *err)
{
    const size_t items = (trees->trees + CHUNK - 1) / CHUNK;
    const int workers = espi_worker_count(run, items);
    self_job j = {.rules = rules, .trees = trees, .forest = forest, .symbol = symbol, .lanes = lanes, .value = value};
    j.worker = espi_alloc_zero((size_t)workers, sizeof *j.worker);
    if (j.worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "preparing the norms", items, self_chunk, &j, err);
    for (int i = 0; i < workers; i++) free_worker(&j.worker[i]);
    espi_free(j.worker);
    return status;
}
