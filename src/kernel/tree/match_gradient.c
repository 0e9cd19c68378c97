/* The gradient of one row, in reverse. Of the sum over trees j of weight_j K(T, j), with the columns of dag.h,
 *
 *     C(u, v)    = lambda * prod_k f_k,    f_k = alpha + C(u_k, v_k), or alpha where the children's productions differ
 *
 * and a bar for the derivative of that sum by what is under it,
 *
 *     wbar(u)    = sum over the occurrences of u of weight_j
 *     Cbar(u, v) = count(v) wbar(u) + sum over the pairs of parents (u', v') of their gbar_k
 *     gbar_k     = Cbar lambda prod_{l != k} f_l
 *
 *     d/d lambda = sum of Cbar prod_k f_k,    d/d alpha = sum of all gbar_k
 *
 * over the pairs whose production has this lambda or alpha. Nodes v go from the root down. A product that leaves out
 * one factor is that of those before it times that of those after it: nothing is divided by a factor, which may be 0.
 *
 * What a node hands to its children is kept until the row is done. So a node that does exactly what another one did
 * hands on the same, and chains of productions that repeat stay as cheap as they are for match.c. */
#include "kernel/tree/match_gradient.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/tree/match.h"

#include <string.h>

enum {
    LANES = 8,       /* sums that run side by side */
    BLOCK = 256,     /* vertices that are worked on at a time, fewer if this times the factors is beyond ... */
    ENOUGH = 1 << 16 /* ... this */
};

typedef struct total { /* a sum in LANES parts, the same whatever the processor */
    double lane[LANES];
} total;

typedef struct edge { /* from a node to an inner child */
    double *column;   /* gbar, by ranks of the child's group; NULL: the child has no column */
    double word;      /* of a pre-terminal: its share of d/d lambda */
} edge;

typedef struct back { /* per plan node */
    double *bar;      /* Cbar, as far as it is known; NULL: 0 */
    double times;     /* the column of this edge is still to be added so often ... */
    size_t edge;
    bool lent;            /* ... and others may want it */
    double lambda, alpha; /* its derivatives */
} back;

typedef struct newest { /* per group of several nodes: the one that others may repeat; ESPI_NO_NODE: none */
    size_t node;
    size_t edge;         /* where the bar of those who repeat it comes from, alone ... */
    double times, count; /* ... and how often; 0: from nowhere, negative: not that simply */
} newest;

typedef struct factor {           /* a child whose f_k is not alpha throughout */
    const uint32_t *child, *rank; /* of the group; rank NULL: a pre-terminal */
    const double *below;          /* the child's column */
    double *push;                 /* the edge's */
    uint32_t group;
    size_t matches; /* vertices of the block whose child is in this group */
    size_t edge;
    double hit; /* of a pre-terminal: f_k where it matches, and the sum of gbar there */
    total hits;
} factor;

struct espi_backward {
    espi_matcher *m;
    size_t from, to;
    const double *weight;
    back *back;
    newest *newest; /* per sum of the matcher */
    edge *edge;     /* per child of plan nodes */
    factor *factor;
    size_t block;
    double *f;       /* per factor and vertex of the block: f_k */
    double *product; /* the same: the product of the factors before it, from the third on */
    uint32_t *list;  /* per factor: the vertices of the block whose child matches */
    double *s;       /* per vertex of a group: Cbar times the factors after the one at hand */
    double one[BLOCK];
    size_t back_capacity, newest_capacity, edge_capacity, factor_capacity; /* of the arrays above */
    size_t f_capacity, product_capacity, list_capacity, s_capacity;
    double *gradient;
};

espi_backward *espi_backward_new(const espi_dag *dag, const espi_decay *decay, const esp_run *run)
{
    espi_backward *b = espi_alloc_zero(1, sizeof *b);
    if (b == NULL) return NULL;
    b->m = espi_matcher_new(dag, decay, run);
    if (b->m == NULL) {
        espi_free(b);
        return NULL;
    }
    b->m->keep = true;
    for (size_t r = 0; r < BLOCK; r++) b->one[r] = 1.0;
    return b;
}

void espi_backward_free(espi_backward *b)
{
    if (b == NULL) return;
    espi_matcher_free(b->m);
    espi_free(b->back);
    espi_free(b->newest);
    espi_free(b->edge);
    espi_free(b->factor);
    espi_free(b->f);
    espi_free(b->list);
    espi_free(b->product);
    espi_free(b->s);
    espi_free(b);
}

/* ------------------------------------------------------------- hot loops */

static double sum_of(const total *t)
{
    double sum = 0.0;
    for (size_t l = 0; l < LANES; l++) sum += t->lane[l];
    return sum;
}

HOT static double add_up(const double *restrict x, size_t n)
{
    total t = {{0.0}};
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        for (size_t l = 0; l < LANES; l++) t.lane[l] += x[r + l];
    for (; r < n; r++) t.lane[0] += x[r];
    return sum_of(&t);
}

HOT static void multiply(double *restrict out, const double *restrict a, const double *restrict b, size_t n)
{
    for (size_t r = 0; r < n; r++) out[r] = a[r] * b[r];
}

/* One factor of the way back, a pre-terminal: gbar = s * before is added up, all of it and where the child matches. */
HOT static void back_preterminal(double *restrict s, const double *restrict before, const double *restrict f,
                                 const uint32_t *restrict child, size_t n, uint32_t group, total *restrict all,
                                 total *restrict hits)
{
    total a = *all, h = *hits;
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double g = s[r + l] * before[r + l];
            a.lane[l] += g;
            h.lane[l] += child[r + l] == group ? g : 0.0;
            s[r + l] *= f[r + l];
        }
    for (; r < n; r++) {
        const double g = s[r] * before[r];
        a.lane[0] += g;
        h.lane[0] += child[r] == group ? g : 0.0;
        s[r] *= f[r];
    }
    *all = a;
    *hits = h;
}

/* The same for a child with a column; gbar takes the place of f. */
HOT static void back_column(double *restrict s, const double *restrict before, double *restrict f, size_t n,
                            total *restrict all)
{
    total a = *all;
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double g = s[r + l] * before[r + l];
            a.lane[l] += g;
            s[r + l] *= f[r + l];
            f[r + l] = g;
        }
    for (; r < n; r++) {
        const double g = s[r] * before[r];
        a.lane[0] += g;
        s[r] *= f[r];
        f[r] = g;
    }
    *all = a;
}

/* f of a child with a column, and the list of the vertices where it is not alpha. */
HOT static size_t set_factor(double *restrict f, uint32_t *restrict list, const uint32_t *restrict child,
                             const uint32_t *restrict rank, size_t n, uint32_t group, const double *restrict below,
                             double alpha)
{
    size_t matches = 0;
    for (size_t r = 0; r < n; r++) {
        list[matches] = (uint32_t)r;
        matches += child[r] == group;
    }
    for (size_t r = 0; r < n; r++) f[r] = alpha;
    for (size_t i = 0; i < matches; i++) f[list[i]] += below[rank[list[i]]];
    return matches;
}

/* --------------------------------------------------------------- weights */

/* w += the weights of the trees where each vertex of a group occurs. */
static void gather(const espi_backward *b, uint32_t g, double *w)
{
    espi_gather(b->m->dag, g, &b->m->reach[g], b->from, b->to, b->weight, w);
}

static void add_to(const espi_backward *b, uint32_t place, double value)
{
    if (place != ESPI_NO_NODE) b->gradient[place] += value;
}

static void visit_words(const espi_backward *b)
{
    const espi_plan *plan = b->m->plan;
    for (size_t i = 0; i < plan->words; i++) {
        const uint32_t g = plan->word[i].group;
        if (g >= b->m->dag->groups || espi_reach_of(b->m->reach, b->m->dag, g, b->to)->vertices == 0) continue;
        double w = 0.0;
        gather(b, g, &w);
        add_to(b, b->m->decay->lambda_place[g], plan->word[i].count * w);
    }
}

/* ---------------------------------------------------------------- columns */

static double *zeros(espi_backward *b, size_t n)
{
    double *column = espi_stack_take(&b->m->stack, n);
    if (column != NULL) memset(column, 0, n * sizeof *column);
    return column;
}

/* Adds to the bar of a node what waits for it at its edge. A column that nobody else wants becomes the bar. */
static bool settle(espi_backward *b, size_t number)
{
    back *x = &b->back[number];
    const size_t n = b->m->reach[b->m->plan->node[number].group].vertices;
    const double times = x->times;
    x->times = 0.0;
    if (times == 1.0 && x->bar == NULL && !x->lent) {
        x->bar = b->edge[x->edge].column;
        return true;
    }
    if (x->bar == NULL) x->bar = zeros(b, n);
    if (x->bar != NULL && times > 0.0) espi_add_column(x->bar, b->edge[x->edge].column, n, times);
    return x->bar != NULL;
}

/* The bar of a node whose parents are all done. */
static bool make_bar(espi_backward *b, size_t number)
{
    const espi_plan_node *node = &b->m->plan->node[number];
    const espi_reach *c = &b->m->reach[node->group];
    if (!settle(b, number)) return false;
    if (node->alone) gather(b, node->group, b->back[number].bar);
    else espi_add_column(b->back[number].bar, b->m->sum[c->sum - 1].w, c->vertices, node->count);
    return true;
}

/* A node hands its child at `edge` of node `from`, itself or the one that it repeats, what is there. */
static bool hand_on(espi_backward *b, size_t from, size_t e, size_t child)
{
    back *x = &b->back[child];
    if (x->times > 0.0 && x->edge == e) {
        x->times++;
        return true;
    }
    if (x->times > 0.0 && !settle(b, child)) return false;
    x->edge = e;
    x->times = 1.0;
    x->lent = !b->m->plan->node[from].alone;
    return true;
}

/* ----------------------------------------------------------------- a node */

static bool fit_block(espi_backward *b, size_t inner)
{
    b->block = BLOCK;
    while (b->block > LANES && inner * b->block > ENOUGH) b->block /= 2;
    const size_t room = inner * b->block;
    return espi_reserve(&b->factor, &b->factor_capacity, inner, sizeof *b->factor) &&
           espi_reserve(&b->f, &b->f_capacity, room, sizeof *b->f) &&
           espi_reserve(&b->product, &b->product_capacity, room, sizeof *b->product) &&
           espi_reserve(&b->list, &b->list_capacity, room, sizeof *b->list);
}

/* The children of a node whose factors are not alpha throughout, with new columns for their edges. */
static bool find_factors(espi_backward *b, size_t number, size_t *count)
{
    const espi_matcher *m = b->m;
    const espi_plan_node *node = &m->plan->node[number];
    const espi_group *group = &m->dag->group[node->group];
    *count = 0;
    if (!fit_block(b, group->inner)) return false;
    for (size_t k = 0; k < group->inner; k++) {
        const uint32_t child = m->plan->child[node->first + k];
        const bool word = (child & ESPI_WORD) != 0;
        const uint32_t q = word ? child & ~ESPI_WORD : m->plan->node[child].group;
        factor *x = &b->factor[*count];
        b->edge[node->first + k] = (edge){0};
        if (q >= m->dag->groups || (!word && m->pool.node[child].column == ESPI_NO_NODE)) continue;
        ++*count;
        x->child = group->child + 2 * k * group->capacity;
        x->group = q;
        x->edge = node->first + k;
        if (word) {
            x->rank = NULL;
            x->hit = m->decay->alpha[node->group] + m->decay->lambda[q];
            x->hits = (total){{0.0}};
            continue;
        }
        x->rank = x->child + group->capacity;
        x->below = m->slot[m->pool.node[child].column].value;
        x->push = b->edge[x->edge].column = zeros(b, m->reach[q].vertices);
        if (x->push == NULL) return false;
    }
    return true;
}

/* gbar, but for `scale`, of the vertices in the list, to the child's. */
static void push_matches(const factor *x, const uint32_t *restrict list, size_t first, const double *restrict g,
                         double scale)
{
    const uint32_t *restrict rank = x->rank + first;
    double *restrict push = x->push;
    for (size_t i = 0; i < x->matches; i++) push[rank[list[i]]] += scale * g[list[i]];
}

/* The vertices from `first` on of the group of a node: what they hand to their children. s is their Cbar, and becomes
 * Cbar times all factors. all += gbar, but for `scale`, of all factors. */
static void push_block(espi_backward *b, double *s, size_t first, size_t n, size_t factors, double alpha, double scale,
                       total *all)
{
    for (size_t k = 0; k < factors; k++) {
        factor *x = &b->factor[k];
        double *f = b->f + k * b->block, *product = b->product + k * b->block;
        if (x->rank == NULL) espi_set_preterminal(f, x->child + first, n, x->group, x->hit, alpha);
        else
            x->matches =
                set_factor(f, b->list + k * b->block, x->child + first, x->rank + first, n, x->group, x->below, alpha);
        if (k > 0 && k + 1 < factors) multiply(product + b->block, k == 1 ? b->f : product, f, n);
    }
    for (size_t k = factors; k-- > 0;) {
        factor *x = &b->factor[k];
        double *f = b->f + k * b->block;
        const double *before = k == 0 ? b->one : k == 1 ? b->f : b->product + k * b->block;
        if (x->rank == NULL) {
            back_preterminal(s, before, f, x->child + first, n, x->group, all, &x->hits);
        } else {
            back_column(s, before, f, n, all);
            push_matches(x, b->list + k * b->block, first, f, scale);
        }
    }
}

/* The derivatives of a node, and what it hands to its children. */
static bool push(espi_backward *b, size_t number)
{
    espi_matcher *m = b->m;
    const espi_plan_node *node = &m->plan->node[number];
    const size_t n = m->reach[node->group].vertices;
    const double lambda = m->decay->lambda[node->group], alpha = m->decay->alpha[node->group];
    back *x = &b->back[number];
    double *s = x->bar;
    total all = {{0.0}};
    size_t factors;
    if (!find_factors(b, number, &factors)) return false;
    if (!node->alone) { /* its bar is still to be compared */
        if (!espi_reserve(&b->s, &b->s_capacity, n, sizeof *b->s)) return false;
        s = memcpy(b->s, x->bar, n * sizeof *s);
    }
    const size_t open = node->end - node->first - factors; /* children whose factor is alpha */
    double fixed = 1.0, but_one = 0.0;                     /* alpha^open, alpha^(open-1) */
    for (size_t k = 0; k < open; k++) {
        but_one = fixed;
        fixed *= alpha;
    }
    const double scale = lambda * fixed;
    for (size_t first = 0; first < n && factors > 0; first += b->block)
        push_block(b, s + first, first, n - first < b->block ? n - first : b->block, factors, alpha, scale, &all);
    const double sum = add_up(s, n);
    x->lambda = fixed * sum;
    x->alpha = scale * sum_of(&all) + (double)open * but_one * lambda * sum;
    for (size_t k = 0; k < factors; k++)
        if (b->factor[k].rank == NULL) b->edge[b->factor[k].edge].word = scale * sum_of(&b->factor[k].hits);
    m->work += n * (factors + 1);
    return true;
}

/* The node that a node does exactly as, or itself, which is then ready to be repeated. */
static bool push_or_repeat(espi_backward *b, size_t number, size_t *as)
{
    espi_matcher *m = b->m;
    const espi_plan_node *node = &m->plan->node[number];
    const espi_reach *c = &m->reach[node->group];
    const back *x = &b->back[number];
    newest *u = &b->newest[c->sum - 1];
    const bool like = u->node != ESPI_NO_NODE && espi_pool_same_below(&m->pool, m->plan, number, u->node);
    const newest mine = {
        .node = number, .edge = x->edge, .times = x->bar == NULL ? x->times : -1.0, .count = node->count};
    *as = u->node;
    if (like && mine.times >= 0.0 && mine.times == u->times && mine.count == u->count &&
        (mine.times == 0.0 || mine.edge == u->edge))
        return true;
    const struct espi_stack_top top = m->stack.top;
    if (!make_bar(b, number)) return false;
    if (like && memcmp(x->bar, b->back[u->node].bar, c->vertices * sizeof *x->bar) == 0) {
        m->stack.top = top;
        *u = (newest){.node = u->node, .edge = mine.edge, .times = mine.times, .count = mine.count};
        return true;
    }
    *u = mine;
    *as = number;
    return push(b, number);
}

static bool visit(espi_backward *b, size_t number)
{
    const espi_matcher *m = b->m;
    const espi_plan_node *node = &m->plan->node[number];
    size_t as = number;
    if (m->pool.node[number].column == ESPI_NO_NODE) return true;
    if (node->alone ? !(make_bar(b, number) && push(b, number)) : !push_or_repeat(b, number, &as)) return false;
    const size_t first = m->plan->node[as].first;
    add_to(b, m->decay->lambda_place[node->group], b->back[as].lambda);
    add_to(b, m->decay->alpha_place[node->group], b->back[as].alpha);
    for (size_t k = 0; k < node->end - node->first; k++) {
        const uint32_t child = m->plan->child[node->first + k];
        const edge *e = &b->edge[first + k];
        if ((child & ESPI_WORD) != 0) add_to(b, m->decay->lambda_place[child & ~ESPI_WORD], e->word);
        else if (e->column != NULL && !hand_on(b, as, first + k, child)) return false;
    }
    return true;
}

static bool start(espi_backward *b)
{
    const espi_plan *plan = b->m->plan;
    const size_t children = plan->nodes > 0 ? plan->node[plan->nodes - 1].end : 0;
    if (!espi_reserve(&b->back, &b->back_capacity, plan->nodes, sizeof *b->back) ||
        !espi_reserve(&b->newest, &b->newest_capacity, b->m->sums, sizeof *b->newest) ||
        !espi_reserve(&b->edge, &b->edge_capacity, children, sizeof *b->edge))
        return false;
    for (size_t i = 0; i < plan->nodes; i++) b->back[i] = (back){0};
    for (size_t i = 0; i < b->m->sums; i++) {
        b->newest[i].node = ESPI_NO_NODE;
        gather(b, b->m->sum[i].group, b->m->sum[i].w);
    }
    return true;
}

esp_status espi_backward_row(espi_backward *b, const espi_plan *plan, size_t from, size_t to, const double *weight,
                             double *gradient, esp_error *err)
{
    b->from = from;
    b->to = to;
    b->weight = weight;
    b->gradient = gradient;
    esp_status status = espi_match_columns(b->m, plan, to, err);
    if (status != ESP_OK) return status;
    visit_words(b);
    if (!start(b)) status = espi_no_memory(err);
    for (size_t i = plan->nodes; i-- > 0 && status == ESP_OK;)
        status = visit(b, i) ? espi_progress_at_times(b->m->run, "computing the kernel", &b->m->work, err)
                             : espi_no_memory(err);
    espi_match_done(b->m);
    return status;
}
