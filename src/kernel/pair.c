#include "kernel/pair.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------- a tree with itself */

enum { SMALL = 256 }; /* nodes; the table of their pairs stays in the cache */

/* Delta of nodes a >= b of one group; delta[i * SMALL + j], i >= j, holds those of earlier ones. */
static double table_delta(const espi_plan *plan, const espi_decay *decay, const double *delta, size_t a, size_t b)
{
    const espi_plan_node *x = &plan->node[a], *y = &plan->node[b];
    const double alpha = decay->alpha[x->group];
    double product = decay->lambda[x->group];
    for (size_t k = 0; k < x->end - x->first; k++) {
        const uint32_t i = plan->child[x->first + k], j = plan->child[y->first + k];
        double below = 0.0;
        if (((i | j) & ESPI_WORD) != 0) {
            if (i == j) below = decay->lambda[i & ~ESPI_WORD];
        } else if (plan->node[i].group == plan->node[j].group) {
            below = delta[i > j ? i * SMALL + j : j * SMALL + i];
        }
        product *= alpha + below;
    }
    return product;
}

static double small_value(const espi_plan *plan, const espi_decay *decay, double *delta)
{
    double sum = 0.0;
    for (size_t i = 0; i < plan->words; i++)
        sum += plan->word[i].count * plan->word[i].count * decay->lambda[plan->word[i].group];
    for (size_t a = 0; a < plan->nodes; a++) {
        for (size_t b = 0; b <= a; b++) {
            if (plan->node[a].group != plan->node[b].group) continue;
            delta[a * SMALL + b] = table_delta(plan, decay, delta, a, b);
            sum += (a == b ? 1.0 : 2.0) * plan->node[a].count * plan->node[b].count * delta[a * SMALL + b];
        }
    }
    return sum;
}

typedef struct self_job {
    const espi_plans *plans;
    const espi_decay *decay;
    size_t groups;
    double *value;
    const esp_run *run;
    espi_self_scratch *worker; /* per thread */
} self_job;

/* A large tree in numbers of its own, so that its cost does not depend on the other trees. */
typedef struct local_tree {
    espi_plan plan;
    espi_plan_node *node;
    espi_plan_word *word;
    uint32_t *child;
    double *lambda, *alpha; /* per local group */
    size_t groups;
} local_tree;

static void free_local(local_tree *t)
{
    espi_free(t->node);
    espi_free(t->word);
    espi_free(t->child);
    espi_free(t->lambda);
    espi_free(t->alpha);
}

static uint32_t local_group(local_tree *t, uint32_t *local, const espi_decay *decay, uint32_t group)
{
    if (local[group] != ESPI_NO_NODE) return local[group];
    t->lambda[t->groups] = decay->lambda[group];
    t->alpha[t->groups] = decay->alpha[group];
    return local[group] = (uint32_t)t->groups++;
}

static bool make_local(local_tree *t, const espi_plan *plan, const espi_decay *decay, uint32_t *local)
{
    const size_t children = plan->nodes > 0 ? plan->node[plan->nodes - 1].end : 0;
    t->node = espi_alloc(plan->nodes, sizeof *t->node);
    t->word = espi_alloc(plan->words, sizeof *t->word);
    t->child = espi_alloc(children, sizeof *t->child);
    t->lambda = espi_alloc(plan->nodes + plan->words, sizeof *t->lambda);
    t->alpha = espi_alloc(plan->nodes + plan->words, sizeof *t->alpha);
    if (t->node == NULL || t->word == NULL || t->child == NULL || t->lambda == NULL || t->alpha == NULL) return false;
    for (size_t i = 0; i < plan->words; i++) {
        t->word[i] = plan->word[i];
        t->word[i].group = local_group(t, local, decay, plan->word[i].group);
        t->word[i].vertex = (uint32_t)i;
    }
    for (size_t i = 0; i < plan->nodes; i++) {
        t->node[i] = plan->node[i];
        t->node[i].group = local_group(t, local, decay, plan->node[i].group);
        t->node[i].vertex = (uint32_t)(plan->words + i);
    }
    for (size_t k = 0; k < children; k++) {
        const uint32_t c = plan->child[k];
        t->child[k] = (c & ESPI_WORD) != 0 ? ESPI_WORD | local[c & ~ESPI_WORD] : c;
    }
    t->plan = (espi_plan){
        .node = t->node, .nodes = plan->nodes, .child = t->child, .word = t->word, .words = plan->words};
    return true;
}

/* By a DAG of this tree alone. */
static esp_status large_value(const espi_plan *plan, const espi_decay *decay, uint32_t *local, const esp_run *run,
                              double *value, esp_error *err)
{
    local_tree t = {0};
    espi_dag dag = {0};
    espi_matcher *matcher = NULL;
    *value = 0.0;
    bool ok = make_local(&t, plan, decay, local) && espi_dag_insert(&dag, &t.plan);
    const espi_decay own = {.lambda = t.lambda, .alpha = t.alpha};
    if (ok) matcher = espi_matcher_new(&dag, &own, run);
    const esp_status status =
        matcher == NULL ? espi_no_memory(err) : espi_match_row(matcher, &t.plan, 0, 1, value, err);
    for (size_t i = 0; i < plan->words; i++) local[plan->word[i].group] = ESPI_NO_NODE;
    for (size_t i = 0; i < plan->nodes; i++) local[plan->node[i].group] = ESPI_NO_NODE;
    espi_matcher_free(matcher);
    espi_dag_free(&dag);
    free_local(&t);
    return status;
}

void espi_self_scratch_free(espi_self_scratch *scratch)
{
    espi_free(scratch->delta);
    espi_free(scratch->local);
    *scratch = (espi_self_scratch){0};
}

static bool fit_scratch(espi_self_scratch *s, size_t groups, bool small)
{
    if (small) {
        if (s->delta == NULL) s->delta = espi_alloc(SMALL * SMALL, sizeof *s->delta);
        return s->delta != NULL;
    }
    const size_t had = s->groups;
    if (!espi_reserve(&s->local, &s->groups, groups, sizeof *s->local)) return false;
    if (s->groups > had) memset(s->local + had, 0xFF, (s->groups - had) * sizeof *s->local);
    return true;
}

esp_status espi_self_value(const espi_plan *plan, const espi_decay *decay, size_t groups, espi_self_scratch *scratch,
                           const esp_run *run, double *value, esp_error *err)
{
    const bool small = plan->nodes <= SMALL;
    if (!fit_scratch(scratch, groups, small)) return espi_no_memory(err);
    if (!small) return large_value(plan, decay, scratch->local, run, value, err);
    *value = small_value(plan, decay, scratch->delta);
    return ESP_OK;
}

static esp_status self_chunk(void *context, size_t item, int number, esp_error *err)
{
    const self_job *j = context;
    esp_status status = ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < j->plans->chunk[item].trees; k++) {
        const size_t i = item * ESPI_PLAN_CHUNK + k;
        const espi_plan plan = espi_plan_of(j->plans, i);
        const esp_run *run = number == 0 ? j->run : NULL;
        status = espi_self_value(&plan, j->decay, j->groups, &j->worker[number], run, &j->value[i], err);
    }
    return status;
}

esp_status espi_self_values(const espi_plans *plans, const espi_decay *decay, size_t groups, const esp_run *run,
                            double *value, esp_error *err)
{
    const int workers = espi_worker_count(run, plans->chunks);
    self_job j = {.plans = plans, .decay = decay, .groups = groups, .value = value, .run = run};
    j.worker = espi_alloc_zero((size_t)workers, sizeof *j.worker);
    if (j.worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(run, "preparing the norms", plans->chunks, self_chunk, &j, err);
    for (int i = 0; i < workers; i++) espi_self_scratch_free(&j.worker[i]);
    espi_free(j.worker);
    return status;
}

/* ------------------------------------------------------------ wide numbers */

typedef struct matching {
    const espi_plan *a, *b;
    const espi_decay *decay;
    uint64_t *sorted;   /* nodes of `a` as group << 32 | node, in order */
    uint32_t *place;    /* of a node of `a` within the run of its group */
    espi_wide **column; /* of a node of `b` over that run; NULL: none */
    uint32_t *uses;     /* of a node of `b`, still to come */
} matching;

static int by_key(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static bool prepare(matching *m)
{
    m->sorted = espi_alloc(m->a->nodes + m->a->words + m->b->words, sizeof *m->sorted);
    m->place = espi_alloc(m->a->nodes, sizeof *m->place);
    m->column = espi_alloc_zero(m->b->nodes, sizeof *m->column);
    m->uses = espi_alloc(m->b->nodes, sizeof *m->uses);
    if (m->sorted == NULL || m->place == NULL || m->column == NULL || m->uses == NULL) return false;
    for (size_t i = 0; i < m->a->nodes; i++) m->sorted[i] = (uint64_t)m->a->node[i].group << 32 | i;
    qsort(m->sorted, m->a->nodes, sizeof *m->sorted, by_key);
    uint32_t place = 0;
    for (size_t i = 0; i < m->a->nodes; i++) {
        place = i > 0 && m->sorted[i] >> 32 == m->sorted[i - 1] >> 32 ? place + 1 : 0;
        m->place[(uint32_t)m->sorted[i]] = place;
    }
    for (size_t i = 0; i < m->b->nodes; i++) m->uses[i] = m->b->node[i].uses;
    return true;
}

/* Sum over equal pre-terminals; the keys are sorted behind those of the nodes. */
static espi_wide word_sum(const matching *m)
{
    uint64_t *left = m->sorted + m->a->nodes, *right = left + m->a->words;
    espi_wide sum = espi_wide_of(0.0);
    for (size_t i = 0; i < m->a->words; i++) left[i] = (uint64_t)m->a->word[i].group << 32 | i;
    for (size_t i = 0; i < m->b->words; i++) right[i] = (uint64_t)m->b->word[i].group << 32 | i;
    qsort(left, m->a->words, sizeof *left, by_key);
    qsort(right, m->b->words, sizeof *right, by_key);
    for (size_t i = 0, j = 0; i < m->a->words && j < m->b->words;) {
        const uint64_t x = left[i] >> 32, y = right[j] >> 32;
        if (x == y) {
            const double count = m->a->word[(uint32_t)left[i]].count * m->b->word[(uint32_t)right[j]].count;
            sum = espi_wide_add(sum, espi_wide_mul(espi_wide_of(count), espi_wide_of(m->decay->lambda[x])));
        }
        i += x <= y;
        j += y <= x;
    }
    return sum;
}

/* The run of nodes of `a` in this group. */
static size_t find_run(const matching *m, uint32_t group, size_t *first)
{
    size_t low = 0, high = m->a->nodes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->sorted[middle] >> 32 < group) low = middle + 1;
        else high = middle;
    }
    *first = low;
    while (high < m->a->nodes && m->sorted[high] >> 32 == group) high++;
    return high - low;
}

/* Delta of two nodes of one group, from the columns of the children of y. */
static espi_wide delta(const matching *m, const espi_plan_node *x, const espi_plan_node *y)
{
    const espi_wide alpha = espi_wide_of(m->decay->alpha[x->group]);
    espi_wide value = espi_wide_of(m->decay->lambda[x->group]);
    for (size_t k = 0; k < x->end - x->first; k++) {
        const uint32_t i = m->a->child[x->first + k], j = m->b->child[y->first + k];
        espi_wide below = espi_wide_of(0.0);
        if (((i | j) & ESPI_WORD) != 0) {
            if (i == j) below = espi_wide_of(m->decay->lambda[i & ~ESPI_WORD]);
        } else if (m->a->node[i].group == m->b->node[j].group) {
            below = m->column[j][m->place[i]];
        }
        value = espi_wide_mul(value, espi_wide_add(alpha, below));
    }
    return value;
}

static void drop_column(matching *m, size_t node)
{
    espi_free(m->column[node]);
    m->column[node] = NULL;
}

/* Adds what a node of `b` contributes, keeps its column for its parents and drops its children's. */
static bool visit(matching *m, size_t number, espi_wide *sum)
{
    const espi_plan_node *node = &m->b->node[number];
    size_t first = 0;
    const size_t count = find_run(m, node->group, &first);
    espi_wide *column = NULL;
    if (count > 0) {
        column = m->column[number] = espi_alloc(count, sizeof *column);
        if (column == NULL) return false;
    }
    for (size_t i = 0; i < count; i++) {
        const espi_plan_node *left = &m->a->node[(uint32_t)m->sorted[first + i]];
        column[i] = delta(m, left, node);
        *sum = espi_wide_add(*sum, espi_wide_mul(espi_wide_of(node->count * left->count), column[i]));
    }
    for (size_t k = node->first; k < node->end; k++) {
        const uint32_t child = m->b->child[k];
        if ((child & ESPI_WORD) == 0 && --m->uses[child] == 0) drop_column(m, child);
    }
    return true;
}

bool espi_pair_wide(const espi_plan *a, const espi_plan *b, const espi_decay *decay, espi_wide *value)
{
    matching m = {.a = a, .b = b, .decay = decay};
    *value = espi_wide_of(0.0);
    bool ok = prepare(&m);
    if (ok) *value = word_sum(&m);
    for (size_t i = 0; ok && i < b->nodes; i++) ok = visit(&m, i, value);
    for (size_t i = 0; m.column != NULL && i < b->nodes; i++) drop_column(&m, i);
    espi_free(m.column);
    espi_free(m.place);
    espi_free(m.sorted);
    espi_free(m.uses);
    return ok;
}
