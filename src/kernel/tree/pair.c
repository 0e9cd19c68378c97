#include "kernel/tree/pair.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/tree/match_gradient.h"

#include <string.h>

/* ----------------------------------------------------- a tree with itself */

enum { SMALL = 256 }; /* nodes; the table of their pairs stays in the cache */

/* Where the table has the pair of two nodes: delta[i * SMALL + j], i >= j. */
static size_t in_table(size_t i, size_t j) { return i > j ? i * SMALL + j : j * SMALL + i; }

/* Delta of the children at one position of two nodes of a group. */
static double table_below(const espi_plan *plan, const espi_decay *decay, const double *delta, uint32_t i, uint32_t j)
{
    if (((i | j) & ESPI_WORD) != 0) return i == j ? decay->lambda[i & ~ESPI_WORD] : 0.0;
    return plan->node[i].group == plan->node[j].group ? delta[in_table(i, j)] : 0.0;
}

/* Delta of nodes a >= b of one group; the table holds those of earlier ones. */
static double table_delta(const espi_plan *plan, const espi_decay *decay, const double *delta, size_t a, size_t b)
{
    const espi_plan_node *x = &plan->node[a], *y = &plan->node[b];
    const double alpha = decay->alpha[x->group];
    double product = decay->lambda[x->group];
    for (size_t k = 0; k < x->end - x->first; k++)
        product *= alpha + table_below(plan, decay, delta, plan->child[x->first + k], plan->child[y->first + k]);
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

/* The same in reverse: bar is the derivative of the sum by delta, from parents to children (match_gradient.c). */
static void table_back(const espi_plan *plan, const espi_decay *decay, const espi_self_scratch *s, size_t a, size_t b,
                       double *gradient)
{
    const espi_plan_node *x = &plan->node[a], *y = &plan->node[b];
    const size_t inner = x->end - x->first;
    const uint32_t *left = plan->child + x->first, *right = plan->child + y->first;
    const double alpha = decay->alpha[x->group];
    double before = decay->lambda[x->group], after = s->bar[a * SMALL + b], open = 0.0;
    for (size_t k = 0; k < inner; k++) {
        s->factor[2 * k] = alpha + table_below(plan, decay, s->delta, left[k], right[k]);
        s->factor[2 * k + 1] = before;
        before *= s->factor[2 * k];
    }
    for (size_t k = inner; k-- > 0;) {
        const uint32_t i = left[k], j = right[k];
        const double g = after * s->factor[2 * k + 1];
        after *= s->factor[2 * k];
        open += g;
        if (((i | j) & ESPI_WORD) != 0) {
            if (i == j) gradient[decay->lambda_place[i & ~ESPI_WORD]] += g;
        } else if (plan->node[i].group == plan->node[j].group) {
            s->bar[in_table(i, j)] += g;
        }
    }
    gradient[decay->lambda_place[x->group]] += after;
    if (decay->alpha_place[x->group] != ESPI_NO_NODE) gradient[decay->alpha_place[x->group]] += open;
}

static bool small_gradient(const espi_plan *plan, const espi_decay *decay, espi_self_scratch *s, double weight,
                           double *gradient)
{
    size_t inner = 0;
    for (size_t a = 0; a < plan->nodes; a++)
        if (plan->node[a].end - plan->node[a].first > inner) inner = plan->node[a].end - plan->node[a].first;
    if (!espi_reserve(&s->factor, &s->factors, 2 * inner, sizeof *s->factor)) return false;
    if (s->bar == NULL) s->bar = espi_alloc(SMALL * SMALL, sizeof *s->bar);
    if (s->bar == NULL) return false;
    small_value(plan, decay, s->delta);
    for (size_t i = 0; i < plan->words; i++)
        gradient[decay->lambda_place[plan->word[i].group]] += weight * plan->word[i].count * plan->word[i].count;
    for (size_t a = 0; a < plan->nodes; a++)
        for (size_t b = 0; b <= a; b++)
            if (plan->node[a].group == plan->node[b].group)
                s->bar[a * SMALL + b] = (a == b ? 1.0 : 2.0) * weight * plan->node[a].count * plan->node[b].count;
    for (size_t a = plan->nodes; a-- > 0;)
        for (size_t b = a + 1; b-- > 0;)
            if (plan->node[a].group == plan->node[b].group) table_back(plan, decay, s, a, b, gradient);
    return true;
}

typedef struct tree_self_values {
    const espi_plans *plans;
    const espi_decay *decay;
    size_t groups;
    double *value;
    const esp_run *run;
    espi_self_scratch *worker; /* per thread */
    const double *weight;      /* of gradients: per tree, and ... */
    size_t places;
    double *gradient; /* ... `places` numbers per chunk */
} tree_self_values;

/* A large tree in numbers of its own, so that its cost does not depend on the other trees. */
typedef struct local_tree {
    espi_plan plan;
    espi_plan_node *node;
    espi_plan_word *word;
    uint32_t *child;
    double *lambda, *alpha; /* per local group */
    uint32_t *lambda_place, *alpha_place;
    size_t groups;
} local_tree;

static void free_local(local_tree *t)
{
    espi_free(t->node);
    espi_free(t->word);
    espi_free(t->child);
    espi_free(t->lambda);
    espi_free(t->alpha);
    espi_free(t->lambda_place);
    espi_free(t->alpha_place);
}

static uint32_t local_group(local_tree *t, uint32_t *local, const espi_decay *decay, uint32_t group)
{
    if (local[group] != ESPI_NO_NODE) return local[group];
    t->lambda[t->groups] = decay->lambda[group];
    t->alpha[t->groups] = decay->alpha[group];
    if (decay->lambda_place != NULL) t->lambda_place[t->groups] = decay->lambda_place[group];
    if (decay->alpha_place != NULL) t->alpha_place[t->groups] = decay->alpha_place[group];
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
    t->lambda_place = espi_alloc(plan->nodes + plan->words, sizeof *t->lambda_place);
    t->alpha_place = espi_alloc(plan->nodes + plan->words, sizeof *t->alpha_place);
    if (t->node == NULL || t->word == NULL || t->child == NULL || t->lambda == NULL || t->alpha == NULL ||
        t->lambda_place == NULL || t->alpha_place == NULL)
        return false;
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
    t->plan =
        (espi_plan){.node = t->node, .nodes = plan->nodes, .child = t->child, .word = t->word, .words = plan->words};
    return true;
}

/* A row of a DAG of this tree alone: its value, or, with a gradient, `weight` times what it adds there. */
static esp_status local_row(const espi_dag *dag, const espi_plan *plan, const espi_decay *decay, const esp_run *run,
                            double *value, double weight, double *gradient, esp_error *err)
{
    esp_status status;
    if (gradient == NULL) {
        espi_matcher *matcher = espi_matcher_new(dag, decay, run);
        status = matcher == NULL ? espi_no_memory(err) : espi_match_row(matcher, plan, 0, 1, value, err);
        espi_matcher_free(matcher);
    } else {
        espi_backward *backward = espi_backward_new(dag, decay, run);
        status =
            backward == NULL ? espi_no_memory(err) : espi_backward_row(backward, plan, 0, 1, &weight, gradient, err);
        espi_backward_free(backward);
    }
    return status;
}

static esp_status large_tree(const espi_plan *plan, const espi_decay *decay, uint32_t *local, const esp_run *run,
                             double *value, double weight, double *gradient, esp_error *err)
{
    local_tree t = {0};
    espi_dag dag = {0};
    *value = 0.0;
    const bool ok = make_local(&t, plan, decay, local) && espi_dag_insert(&dag, &t.plan);
    const espi_decay own = {
        .lambda = t.lambda, .alpha = t.alpha, .lambda_place = t.lambda_place, .alpha_place = t.alpha_place};
    const esp_status status =
        ok ? local_row(&dag, &t.plan, &own, run, value, weight, gradient, err) : espi_no_memory(err);
    for (size_t i = 0; i < plan->words; i++) local[plan->word[i].group] = ESPI_NO_NODE;
    for (size_t i = 0; i < plan->nodes; i++) local[plan->node[i].group] = ESPI_NO_NODE;
    espi_dag_free(&dag);
    free_local(&t);
    return status;
}

void espi_self_scratch_free(espi_self_scratch *scratch)
{
    espi_free(scratch->delta);
    espi_free(scratch->bar);
    espi_free(scratch->factor);
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
    if (!small) return large_tree(plan, decay, scratch->local, run, value, 0.0, NULL, err);
    *value = small_value(plan, decay, scratch->delta);
    return ESP_OK;
}

static esp_status tree_gradient(const tree_self_values *j, const espi_plan *plan, espi_self_scratch *scratch,
                                const esp_run *run, double weight, double *gradient, esp_error *err)
{
    const bool small = plan->nodes <= SMALL;
    double value;
    if (!fit_scratch(scratch, j->groups, small)) return espi_no_memory(err);
    if (!small) return large_tree(plan, j->decay, scratch->local, run, &value, weight, gradient, err);
    return small_gradient(plan, j->decay, scratch, weight, gradient) ? ESP_OK : espi_no_memory(err);
}

static esp_status self_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const tree_self_values *j = context;
    esp_status status = ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < j->plans->chunk[item].trees; k++) {
        const size_t i = item * ESPI_PLAN_CHUNK + k;
        const espi_plan plan = espi_plan_of(j->plans, i);
        const esp_run *run = thread->run;
        espi_self_scratch *scratch = &j->worker[thread->number];
        if (j->gradient == NULL) status = espi_self_value(&plan, j->decay, j->groups, scratch, run, &j->value[i], err);
        else status = tree_gradient(j, &plan, scratch, run, j->weight[i], j->gradient + item * j->places, err);
    }
    return status;
}

static esp_status run_chunks(tree_self_values *j, const char *stage, esp_error *err)
{
    const int workers = espi_worker_count(j->run, j->plans->chunks);
    j->worker = espi_alloc_zero((size_t)workers, sizeof *j->worker);
    if (j->worker == NULL) return espi_no_memory(err);
    const esp_status status = espi_parallel(j->run, stage, j->plans->chunks, self_chunk, j, err);
    for (int i = 0; i < workers; i++) espi_self_scratch_free(&j->worker[i]);
    espi_free(j->worker);
    return status;
}

esp_status espi_self_values(const espi_plans *plans, const espi_decay *decay, size_t groups, const esp_run *run,
                            double *value, esp_error *err)
{
    tree_self_values j = {.plans = plans, .decay = decay, .groups = groups, .value = value, .run = run};
    return run_chunks(&j, "preparing the norms", err);
}

esp_status espi_self_gradient(const espi_plans *plans, const espi_decay *decay, size_t groups, const double *weight,
                              size_t places, const esp_run *run, double *gradient, esp_error *err)
{
    tree_self_values j = {
        .plans = plans, .decay = decay, .groups = groups, .run = run, .weight = weight, .places = places};
    j.gradient = espi_alloc_zero(plans->chunks, places * sizeof *j.gradient);
    if (j.gradient == NULL) return espi_no_memory(err);
    const esp_status status = run_chunks(&j, "differentiating the norms", err);
    for (size_t c = 0; status == ESP_OK && c < plans->chunks; c++)
        for (size_t p = 0; p < places; p++) gradient[p] += j.gradient[c * places + p];
    espi_free(j.gradient);
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
    size_t work;        /* since the run was asked */
} matching;

enum { WIDE_STEPS = 8 }; /* that a product of wide numbers takes */

static bool make_matching(matching *m)
{
    m->sorted = espi_alloc(m->a->nodes + m->a->words + m->b->words, sizeof *m->sorted);
    m->place = espi_alloc(m->a->nodes, sizeof *m->place);
    m->column = espi_alloc_zero(m->b->nodes, sizeof *m->column);
    m->uses = espi_alloc(m->b->nodes, sizeof *m->uses);
    if (m->sorted == NULL || m->place == NULL || m->column == NULL || m->uses == NULL) return false;
    for (size_t i = 0; i < m->a->nodes; i++) m->sorted[i] = (uint64_t)m->a->node[i].group << 32 | i;
    espi_sort_keys(m->sorted, m->a->nodes);
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
    espi_sort_keys(left, m->a->words);
    espi_sort_keys(right, m->b->words);
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
    const size_t count = espi_key_run(m->sorted, m->a->nodes, node->group, &first);
    espi_wide *column = NULL;
    if (count > 0) {
        column = m->column[number] = espi_alloc(count, sizeof *column);
        if (column == NULL) return false;
    }
    m->work += count * WIDE_STEPS * (node->end - node->first + 1);
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

esp_status espi_pair_wide(const espi_plan *a, const espi_plan *b, const espi_decay *decay, const esp_run *run,
                          espi_wide *value, esp_error *err)
{
    matching m = {.a = a, .b = b, .decay = decay};
    *value = espi_wide_of(0.0);
    esp_status status = make_matching(&m) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) *value = word_sum(&m);
    for (size_t i = 0; status == ESP_OK && i < b->nodes; i++)
        status = visit(&m, i, value) ? espi_progress_at_times(run, "computing the kernel", &m.work, err)
                                     : espi_no_memory(err);
    for (size_t i = 0; m.column != NULL && i < b->nodes; i++) drop_column(&m, i);
    espi_free(m.column);
    espi_free(m.place);
    espi_free(m.sorted);
    espi_free(m.uses);
    return status;
}
