/* Scores of the sequence kernel by one weight per pattern and output:
 *
 *     sum_j c_j K(S_j, S) = sum over u of phi_u(S) a_u      a_u = sum_j c_j phi_u(S_j)
 *
 * The u of all S_j are a trie. S walks through it token by token: for each node reached so far that has children,
 * `reach` is the sum over its places so far of lambda^(gaps, those up to the token at hand included); a factor x of the
 * token leads from u to ux, to whose phi the reach of u is added.
 *
 * Most patterns occur in a few sequences only: where that takes less room than a weight per output, their phi are kept
 * instead of a_u. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

enum { MOST_POSTINGS = 1 << 23, MOST_VISITS = 100000000 };

typedef struct node {
    uint32_t parent, symbol;
    unsigned inner : 1; /* has children */
    unsigned dense : 1; /* a weight per output at weight[first]; else `count` postings from posting[first] on */
    unsigned count : 30;
    uint32_t first; /* of weights, the vector's number */
} node;

struct espi_seq_trie {
    double lambda;
    size_t outputs;
    node *node;
    size_t nodes, node_capacity;
    uint32_t *slot; /* by parent and symbol, open addressing; ESPI_NO_NODE marks a free one */
    size_t mask;
    double *weight;
    espi_seq_posting *posting;
    size_t weights, weight_capacity, postings, posting_capacity, all_postings;
    double *coefficient; /* of the sequences, as given */
};

typedef struct reached {
    uint32_t node;
    double reach;
} reached;

struct espi_seq_walk {
    reached *active, *fresh;
    size_t actives, active_capacity, freshes, fresh_capacity;
    uint32_t *place; /* per node: 1 + its number among the active; 0: none */
};

void espi_seq_trie_free(espi_seq_trie *t)
{
    if (t == NULL) return;
    espi_free(t->node);
    espi_free(t->slot);
    espi_free(t->weight);
    espi_free(t->posting);
    espi_free(t->coefficient);
    espi_free(t);
}

static size_t hash(uint32_t parent, uint32_t symbol)
{
    uint64_t h = ((uint64_t)parent << 32 | symbol) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    return (size_t)(h * UINT64_C(0xD6E8FEB86659FD93) >> 16);
}

static uint32_t find(const espi_seq_trie *t, uint32_t parent, uint32_t symbol)
{
    for (size_t at = hash(parent, symbol) & t->mask;; at = (at + 1) & t->mask) {
        const uint32_t n = t->slot[at];
        if (n == ESPI_NO_NODE || (t->node[n].parent == parent && t->node[n].symbol == symbol)) return n;
    }
}

static bool make_slots(espi_seq_trie *t)
{
    size_t slots = 2;
    while (slots < 2 * t->nodes) slots *= 2;
    t->slot = espi_alloc(slots, sizeof *t->slot);
    if (t->slot == NULL) return false;
    t->mask = slots - 1;
    memset(t->slot, 0xFF, slots * sizeof *t->slot);
    for (size_t i = 0; i < t->nodes; i++) {
        size_t at = hash(t->node[i].parent, t->node[i].symbol) & t->mask;
        while (t->slot[at] != ESPI_NO_NODE) at = (at + 1) & t->mask;
        t->slot[at] = (uint32_t)i;
    }
    return true;
}

static bool add_weights(espi_seq_trie *t, const espi_seq_posting *posting, size_t postings, node *n)
{
    n->dense = postings * sizeof *posting >= t->outputs * sizeof *t->weight;
    if (!n->dense) {
        if (!espi_reserve(&t->posting, &t->posting_capacity, t->postings + postings, sizeof *t->posting)) return false;
        memcpy(t->posting + t->postings, posting, postings * sizeof *posting);
        n->first = (uint32_t)t->postings;
        n->count = (unsigned)postings & 0x3FFFFFFF;
        t->postings += postings;
        return true;
    }
    if (!espi_reserve(&t->weight, &t->weight_capacity, t->weights + t->outputs, sizeof *t->weight)) return false;
    double *weight = t->weight + t->weights;
    n->first = (uint32_t)(t->weights / t->outputs);
    t->weights += t->outputs;
    for (size_t k = 0; k < t->outputs; k++) weight[k] = 0.0;
    for (size_t i = 0; i < postings; i++)
        for (size_t k = 0; k < t->outputs; k++)
            weight[k] += t->coefficient[posting[i].seq * t->outputs + k] * posting[i].phi;
    return true;
}

static bool add_node(void *context, uint32_t parent, uint32_t symbol, const espi_seq_posting *posting, size_t postings,
                     uint32_t *number, double *effort)
{
    espi_seq_trie *t = context;
    t->all_postings += postings;
    if (t->all_postings > MOST_POSTINGS) *effort = HUGE_VAL;
    if (!espi_reserve(&t->node, &t->node_capacity, t->nodes + 1, sizeof *t->node)) return false;
    *number = (uint32_t)t->nodes;
    t->node[t->nodes] = (node){.parent = parent, .symbol = symbol};
    if (parent != ESPI_NO_NODE) t->node[parent].inner = true;
    return add_weights(t, posting, postings, &t->node[t->nodes++]);
}

esp_status espi_seq_fold(const espi_seq_rule *rule, const espi_seqs *seqs, const double *coefficient, size_t outputs,
                         espi_seq_trie **out, esp_error *err)
{
    *out = NULL;
    espi_seq_trie *t = espi_alloc_zero(1, sizeof *t);
    if (t == NULL) return espi_no_memory(err);
    t->lambda = rule->lambda;
    t->outputs = outputs;
    t->coefficient = espi_alloc(seqs->count, outputs * sizeof *t->coefficient);
    esp_status status = t->coefficient == NULL ? espi_no_memory(err) : ESP_OK;
    bool done = false;
    if (status == ESP_OK) {
        memcpy(t->coefficient, coefficient, seqs->count * outputs * sizeof *coefficient);
        const espi_seq_mining mining = {.seqs = seqs,
                                        .rule = rule,
                                        .support = 1,
                                        .effort = MOST_VISITS,
                                        .places = MOST_POSTINGS,
                                        .sink = add_node,
                                        .context = t};
        status = espi_seq_mine(&mining, NULL, &done, err);
    }
    if (status == ESP_OK && done && !make_slots(t)) status = espi_no_memory(err);
    if (status == ESP_OK && done) *out = t;
    else espi_seq_trie_free(t);
    return status;
}

/* -------------------------------------------------------------------- score */

void espi_seq_walk_free(espi_seq_walk *w)
{
    if (w == NULL) return;
    espi_free(w->active);
    espi_free(w->fresh);
    espi_free(w->place);
    espi_free(w);
}

static espi_seq_walk *walk_new(const espi_seq_trie *t)
{
    espi_seq_walk *w = espi_alloc_zero(1, sizeof *w);
    if (w == NULL) return NULL;
    w->place = espi_alloc_zero(t->nodes, sizeof *w->place);
    if (w->place != NULL) return w;
    espi_free(w);
    return NULL;
}

static void add_score(const espi_seq_trie *t, const node *n, double phi, double *score)
{
    if (n->dense) {
        const double *weight = t->weight + n->first * t->outputs;
        for (size_t k = 0; k < t->outputs; k++) score[k] += phi * weight[k];
        return;
    }
    for (size_t i = n->first; i < n->first + (size_t)n->count; i++) {
        const double *c = t->coefficient + t->posting[i].seq * t->outputs, x = phi * t->posting[i].phi;
        for (size_t k = 0; k < t->outputs; k++) score[k] += x * c[k];
    }
}

/* From a node (or ESPI_NO_NODE, the root) by one factor. */
static bool follow(const espi_seq_trie *t, espi_seq_walk *w, uint32_t from, double reach, uint32_t symbol,
                   double *score)
{
    const uint32_t to = find(t, from, symbol);
    if (to == ESPI_NO_NODE) return true;
    add_score(t, &t->node[to], reach, score);
    if (!t->node[to].inner) return true;
    if (!espi_reserve(&w->fresh, &w->fresh_capacity, w->freshes + 1, sizeof *w->fresh)) return false;
    w->fresh[w->freshes++] = (reached){.node = to, .reach = reach};
    return true;
}

/* Lets what was reached fade by a token, and adds what was reached at it. */
static bool advance(double lambda, espi_seq_walk *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->actives; i++) {
        const reached r = {.node = w->active[i].node, .reach = w->active[i].reach * lambda};
        const bool keep = r.reach > ESPI_SEQ_TINY;
        w->place[r.node] = keep ? (uint32_t)kept + 1 : 0;
        if (keep) w->active[kept++] = r;
    }
    w->actives = kept;
    if (!espi_reserve(&w->active, &w->active_capacity, w->actives + w->freshes, sizeof *w->active)) return false;
    for (size_t i = 0; i < w->freshes; i++) {
        uint32_t *place = &w->place[w->fresh[i].node];
        if (*place > 0) {
            w->active[*place - 1].reach += w->fresh[i].reach;
        } else {
            w->active[w->actives++] = w->fresh[i];
            *place = (uint32_t)w->actives;
        }
    }
    w->freshes = 0;
    return true;
}

esp_status espi_seq_score(const espi_seq_trie *t, espi_seq_walk **walk, const espi_seq *a, double *score,
                          esp_error *err)
{
    if (*walk == NULL) *walk = walk_new(t);
    espi_seq_walk *w = *walk;
    bool ok = w != NULL;
    for (size_t k = 0; k < t->outputs; k++) score[k] = 0.0;
    for (size_t k = 0; ok && k < a->length; k++) {
        for (size_t f = a->token[k]; ok && f < a->token[k + 1]; f++) {
            ok = follow(t, w, ESPI_NO_NODE, 1.0, a->factor[f], score);
            for (size_t i = 0; ok && i < w->actives; i++)
                ok = follow(t, w, w->active[i].node, w->active[i].reach, a->factor[f], score);
        }
        ok = ok && advance(t->lambda, w);
    }
    for (size_t i = 0; w != NULL && i < w->actives; i++) w->place[w->active[i].node] = 0;
    if (w != NULL) w->actives = w->freshes = 0;
    return ok ? ESP_OK : espi_no_memory(err);
}
