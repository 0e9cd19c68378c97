/* Sets of patterns, and tries of sequence patterns evaluated by walking down.
 *
 * At a trie node u the walk holds the ends of u's occurrences with their weights,
 *     w_u(e) = sum over occurrences i of u in S that end at e of lambda^(gaps of i),     phi_u(S) = sum_e w_u(e),
 * and for a child ua and a place t of the factor a
 *     w_ua(t) = sum over e < t of w_u(e) lambda^(t - 1 - e),
 * a running sum over both sorted lists. Only children whose factor occurs in S are visited. */
#include "kernel/pattern/pattern.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/writer.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- sets */

void espi_patterns_free(espi_patterns *s)
{
    espi_free(s->parent);
    espi_free(s->label);
    espi_free(s->skip);
    espi_free(s->first);
    espi_free(s->pattern);
    espi_free(s->node);
    espi_free(s->x);
    espi_free(s->y);
    espi_free(s->statistic);
    *s = (espi_patterns){0};
}

static bool take_arrays(espi_patterns *s, bool skips)
{
    s->parent = espi_alloc(s->nodes, sizeof *s->parent);
    s->label = espi_alloc(s->nodes, sizeof *s->label);
    s->first = espi_alloc(s->nodes + 1, sizeof *s->first);
    s->pattern = espi_alloc(s->nodes, sizeof *s->pattern);
    s->node = espi_alloc(s->patterns, sizeof *s->node);
    s->x = espi_alloc(s->patterns, sizeof *s->x);
    s->y = espi_alloc(s->patterns, sizeof *s->y);
    s->statistic = espi_alloc(s->patterns, sizeof *s->statistic);
    if (skips) s->skip = espi_alloc(s->nodes, sizeof *s->skip);
    return s->parent != NULL && s->label != NULL && s->first != NULL && s->pattern != NULL && s->node != NULL &&
           s->x != NULL && s->y != NULL && s->statistic != NULL && (!skips || s->skip != NULL);
}

/* first[] from parent[] */
static void number_children(espi_patterns *s)
{
    for (size_t v = 0; v <= s->nodes; v++) s->first[v] = 0;
    for (size_t v = 1; v < s->nodes; v++) s->first[s->parent[v] + 1]++;
    s->first[0] = 1;
    for (size_t v = 0; v < s->nodes; v++) s->first[v + 1] += s->first[v];
}

bool espi_patterns_finish(espi_patterns *s)
{
    s->first = espi_alloc(s->nodes + 1, sizeof *s->first);
    s->pattern = espi_alloc(s->nodes, sizeof *s->pattern);
    if (s->first == NULL || s->pattern == NULL) return false;
    number_children(s);
    for (size_t v = 0; v < s->nodes; v++) s->pattern[v] = ESPI_NO_NODE;
    for (size_t i = 0; i < s->patterns; i++) s->pattern[s->node[i]] = (uint32_t)i;
    return true;
}

/* Numbers the steps level by level: number[i] is the node of step i. A stable sort of the preorder by depth leaves the
 * children of a node side by side. at[d] is where level d goes on; latest[d] is the newest node of level d. */
static void fill(espi_patterns *s, const espi_step *step, size_t steps, uint32_t *at, uint32_t *latest)
{
    s->parent[0] = s->label[0] = 0;
    s->pattern[0] = ESPI_NO_NODE;
    if (s->skip != NULL) s->skip[0] = 0;
    latest[0] = 0;
    for (size_t i = 0; i < steps; i++) {
        const uint32_t v = at[step[i].depth]++, parent = latest[step[i].depth - 1];
        latest[step[i].depth] = v;
        s->parent[v] = parent;
        s->label[v] = step[i].label;
        if (s->skip != NULL) s->skip[v] = step[i].skip;
        s->pattern[v] = step[i].kept ? (uint32_t)i : ESPI_NO_NODE;
    }
    number_children(s);
    uint32_t patterns = 0;
    for (size_t v = 0; v < s->nodes; v++) {
        if (s->pattern[v] == ESPI_NO_NODE) continue;
        const espi_step *from = &step[s->pattern[v]];
        s->node[patterns] = (uint32_t)v;
        s->x[patterns] = from->x;
        s->y[patterns] = from->y;
        s->statistic[patterns] = from->statistic;
        s->pattern[v] = patterns++;
    }
}

bool espi_patterns_make(espi_patterns *s, const espi_step *step, size_t steps, bool skips)
{
    *s = (espi_patterns){.nodes = steps + 1};
    if (steps >= ESPI_NO_NODE) return false;
    size_t deepest = 0;
    for (size_t i = 0; i < steps; i++) {
        if (step[i].depth > deepest) deepest = step[i].depth;
        s->patterns += step[i].kept;
    }
    uint32_t *at = espi_alloc_zero(deepest + 2, sizeof *at), *latest = espi_alloc(deepest + 1, sizeof *latest);
    const bool ok = take_arrays(s, skips) && at != NULL && latest != NULL;
    if (ok) {
        for (size_t i = 0; i < steps; i++) at[step[i].depth + 1]++;
        at[1] = 1; /* behind the empty pattern */
        for (size_t d = 2; d <= deepest; d++) at[d] += at[d - 1];
        fill(s, step, steps, at, latest);
    } else {
        espi_patterns_free(s);
    }
    espi_free(at);
    espi_free(latest);
    return ok;
}

uint32_t espi_patterns_child(const espi_patterns *s, uint32_t node, uint32_t skip, uint32_t label)
{
    uint32_t low = s->first[node], high = s->first[node + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2, k = s->skip != NULL ? s->skip[middle] : 0;
        if (k < skip || (k == skip && s->label[middle] < label)) low = middle + 1;
        else high = middle;
    }
    const bool found = low < s->first[node + 1] && s->label[low] == label && (s->skip == NULL || s->skip[low] == skip);
    return found ? low : ESPI_NO_NODE;
}

bool espi_patterns_path(const espi_patterns *s, uint32_t node, uint32_t **path, size_t *capacity, size_t *length)
{
    size_t n = 0;
    for (uint32_t v = node; v != 0; v = s->parent[v]) n++;
    if (!espi_reserve(path, capacity, n, sizeof **path)) return false;
    *length = n;
    for (uint32_t v = node; v != 0; v = s->parent[v]) (*path)[--n] = v;
    return true;
}

bool espi_patterns_keep(espi_patterns *s, const bool *keep)
{
    uint32_t *number = espi_alloc_zero(s->nodes, sizeof *number);
    if (number == NULL) return false;
    number[0] = 1; /* 1: stays */
    for (size_t v = s->nodes; v-- > 1;) {
        if (s->pattern[v] != ESPI_NO_NODE && keep[s->pattern[v]]) number[v] = 1;
        if (number[v] == 1) number[s->parent[v]] = 1;
    }
    uint32_t nodes = 0, patterns = 0;
    for (size_t v = 0; v < s->nodes; v++) {
        if (number[v] == 0) continue;
        const uint32_t pattern = s->pattern[v];
        s->label[nodes] = s->label[v];
        if (s->skip != NULL) s->skip[nodes] = s->skip[v];
        s->parent[nodes] = number[s->parent[v]]; /* of the smaller node, numbered already; the root is its own */
        s->pattern[nodes] = ESPI_NO_NODE;
        if (pattern != ESPI_NO_NODE && keep[pattern]) {
            s->node[patterns] = nodes;
            s->x[patterns] = s->x[pattern];
            s->y[patterns] = s->y[pattern];
            s->statistic[patterns] = s->statistic[pattern];
            s->pattern[nodes] = patterns++;
        }
        number[v] = nodes++;
    }
    s->parent[0] = 0;
    s->nodes = nodes;
    s->patterns = patterns;
    number_children(s);
    espi_free(number);
    return true;
}

/* -------------------------------------------------------------------- tries */

void espi_trie_free(espi_trie *t)
{
    espi_symbols_free(&t->symbols);
    espi_patterns_free(&t->set);
}

void espi_trie_text(const espi_trie *t, size_t pattern, espi_text *text)
{
    uint32_t *path = NULL;
    size_t capacity = 0, length = 0;
    if (!espi_patterns_path(&t->set, t->set.node[pattern], &path, &capacity, &length)) text->failed = true;
    /* A sequence of one row, so that there is one way to write tokens. */
    size_t row[2] = {0, length}, *token = espi_alloc(length + 1, sizeof *token);
    if (token == NULL) text->failed = true;
    for (size_t i = 0; !text->failed && i <= length; i++) token[i] = i;
    for (size_t i = 0; !text->failed && i < length; i++) path[i] = t->set.label[path[i]];
    if (!text->failed) {
        const espi_sequences one = {.symbols = t->symbols, .row = row, .token = token, .factor = path};
        espi_text_sequence(text, &one, 0);
    }
    espi_free(token);
    espi_free(path);
}

/* ------------------------------------------------------------------- places */

void espi_token_places_free(espi_token_places *p)
{
    espi_free(p->place);
    espi_free(p->symbol);
    espi_free(p->start);
    *p = (espi_token_places){0};
}

static int by_place(const void *x, const void *y)
{
    const espi_token_place *a = x, *b = y;
    if (a->symbol != b->symbol) return a->symbol < b->symbol ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

bool espi_token_places_make(espi_token_places *p, const espi_sequences *s, const uint32_t *map, size_t row)
{
    p->places = p->symbols = 0;
    const size_t first = s->row[row], end = s->row[row + 1];
    if (first == end) return true;
    const size_t factors = s->token[end] - s->token[first];
    if (!espi_reserve(&p->place, &p->capacity, factors, sizeof *p->place) ||
        !espi_reserve(&p->symbol, &p->symbol_capacity, factors, sizeof *p->symbol) ||
        !espi_reserve(&p->start, &p->start_capacity, factors + 1, sizeof *p->start))
        return false;
    for (size_t t = first; t < end; t++)
        for (size_t f = s->token[t]; f < s->token[t + 1]; f++)
            if (map[s->factor[f]] != ESPI_NO_SYMBOL)
                p->place[p->places++] = (espi_token_place){.symbol = map[s->factor[f]], .position = t - first};
    if (p->places > 1) qsort(p->place, p->places, sizeof *p->place, by_place);
    for (size_t i = 0; i < p->places; i++) {
        if (i > 0 && p->place[i - 1].symbol == p->place[i].symbol) continue;
        p->symbol[p->symbols] = p->place[i].symbol;
        p->start[p->symbols++] = i;
    }
    p->start[p->symbols] = p->places;
    return true;
}

/* ---------------------------------------------------------------- evaluation */

struct espi_trie_frame { /* a node whose children are to be visited, with the ends of its occurrences */
    uint32_t node;
    size_t from[2], to[2]; /* walker->end[from .. to) in each of the two sequences */
};

struct espi_trie_end {
    size_t position;
    double weight;
};

void espi_trie_walker_free(espi_trie_walker *w)
{
    espi_token_places_free(&w->places[0]);
    espi_token_places_free(&w->places[1]);
    espi_free(w->feature);
    espi_free(w->frame);
    espi_free(w->end);
    espi_free(w->power);
    *w = (espi_trie_walker){0};
}

/* walker->power[d] = lambda^d for all distances within the sequence. */
static bool take_powers(espi_trie_walker *w, double lambda, const espi_token_places *p)
{
    size_t longest = 0;
    for (size_t i = 0; i < p->places; i++)
        if (p->place[i].position > longest) longest = p->place[i].position;
    if (w->power_lambda != lambda) w->powers = 0;
    if (!espi_reserve(&w->power, &w->power_capacity, longest + 1, sizeof *w->power)) return false;
    w->power_lambda = lambda;
    for (; w->powers <= longest; w->powers++)
        w->power[w->powers] = w->powers == 0 ? 1.0 : w->power[w->powers - 1] * lambda;
    return true;
}

/* Appends the ends of ua at *top: u's ends are w->end[from .. to), a's places are place[0 .. places). Returns their
 * sum. */
static double extend(espi_trie_walker *w, size_t gap, size_t from, size_t to, const espi_token_place *place,
                     size_t places, size_t *top)
{
    const struct espi_trie_end *end = w->end;
    double sum = 0.0, running = 0.0; /* running: sum over the ends before `from` of weight * lambda^(t - 1 - e) */
    size_t t = 0;
    for (size_t i = 0; i < places; i++) {
        const size_t next = place[i].position;
        double weight = 0.0;
        if (gap == SIZE_MAX) {
            running *= w->power[next - t];
            for (; from < to && end[from].position < next; from++)
                running += end[from].weight * w->power[next - 1 - end[from].position];
            weight = running;
            t = next;
        } else {
            while (from < to && end[from].position + gap + 1 < next) from++;
            for (size_t k = from; k < to && end[k].position < next; k++)
                weight += end[k].weight * w->power[next - 1 - end[k].position];
        }
        if (weight == 0.0) continue; /* nothing before it, or less than the least number */
        w->end[(*top)++] = (struct espi_trie_end){.position = next, .weight = weight};
        sum += weight;
    }
    return sum;
}

/* The ends of child `node` for symbol number k of the sequence `side`; the root's children start anywhere. */
static double step_down(espi_trie_walker *w, size_t gap, const struct espi_trie_frame *frame,
                        const espi_token_places *p, size_t k, int side, size_t *top)
{
    const espi_token_place *place = p->place + p->start[k];
    const size_t places = p->start[k + 1] - p->start[k];
    if (frame->node != 0) return extend(w, gap, frame->from[side], frame->to[side], place, places, top);
    for (size_t i = 0; i < places; i++)
        w->end[(*top)++] = (struct espi_trie_end){.position = place[i].position, .weight = 1.0};
    return (double)places;
}

/* Goes on to the next child of frame->node whose symbol is one of symbol[0 .. symbols), from child *child and symbol *k
 * on. The shorter of the two lists leads, and each of its entries is looked up in the other. */
static bool next_child(const espi_patterns *set, uint32_t node, const uint32_t *symbol, size_t symbols, uint32_t *child,
                       size_t *k)
{
    const uint32_t end = set->first[node + 1];
    if (set->first[node + 1] - set->first[node] > symbols) {
        for (; *k < symbols; ++*k) {
            *child = espi_patterns_child(set, node, 0, symbol[*k]);
            if (*child != ESPI_NO_NODE) return true;
        }
        return false;
    }
    for (; *child < end; ++*child) {
        size_t low = 0, high = symbols;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (symbol[middle] < set->label[*child]) low = middle + 1;
            else high = middle;
        }
        *k = low;
        if (low < symbols && symbol[low] == set->label[*child]) return true;
    }
    return false;
}

static bool push(espi_trie_walker *w, struct espi_trie_frame frame)
{
    if (!espi_reserve(&w->frame, &w->frame_capacity, w->frames + 1, sizeof *w->frame)) return false;
    w->frame[w->frames++] = frame;
    return true;
}

static int by_pattern(const void *x, const void *y)
{
    const espi_feature_value *a = x, *b = y;
    return (a->pattern > b->pattern) - (a->pattern < b->pattern);
}

static bool add_feature(espi_trie_walker *w, uint32_t pattern, double value)
{
    if (pattern == ESPI_NO_NODE || value == 0.0) return true;
    if (!espi_reserve(&w->feature, &w->feature_capacity, w->features + 1, sizeof *w->feature)) return false;
    w->feature[w->features++] = (espi_feature_value){.pattern = pattern, .value = value};
    return true;
}

bool espi_trie_features(const espi_trie *trie, espi_weighing weighing, espi_trie_walker *w)
{
    const espi_patterns *set = &trie->set;
    const espi_token_places *p = &w->places[0];
    w->features = w->frames = 0;
    if (p->symbols == 0 || set->nodes == 0) return true;
    if (!take_powers(w, weighing.lambda, p) || !push(w, (struct espi_trie_frame){0})) return false;
    while (w->frames > 0) {
        const struct espi_trie_frame frame = w->frame[--w->frames];
        size_t top = frame.to[0]; /* lists above belong to nodes that are done */
        uint32_t child = set->first[frame.node];
        for (size_t k = 0; next_child(set, frame.node, p->symbol, p->symbols, &child, &k); child++, k++) {
            const size_t from = top;
            if (!espi_reserve(&w->end, &w->end_capacity, top + p->start[k + 1] - p->start[k], sizeof *w->end))
                return false;
            const double value = step_down(w, weighing.gap, &frame, p, k, 0, &top);
            if (!add_feature(w, set->pattern[child], value)) return false;
            if (top == from || set->first[child] == set->first[child + 1]) top = from;
            else if (!push(w, (struct espi_trie_frame){.node = child, .from = {from}, .to = {top}})) return false;
        }
    }
    if (w->features > 1) qsort(w->feature, w->features, sizeof *w->feature, by_pattern);
    return true;
}

/* The place of a symbol among those of a sequence, or SIZE_MAX. */
static size_t find_symbol(const espi_token_places *p, uint32_t symbol)
{
    size_t low = 0, high = p->symbols;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->symbol[middle] < symbol) low = middle + 1;
        else high = middle;
    }
    return low < p->symbols && p->symbol[low] == symbol ? low : SIZE_MAX;
}

bool espi_trie_kernel(const espi_trie *trie, espi_weighing weighing, const espi_token_places *s,
                      const espi_token_places *t, espi_trie_walker *w, double *value)
{
    const espi_patterns *set = &trie->set;
    *value = 0.0;
    w->frames = 0;
    if (s->symbols == 0 || t->symbols == 0 || set->nodes == 0) return true;
    if (!take_powers(w, weighing.lambda, s) || !take_powers(w, weighing.lambda, t) ||
        !push(w, (struct espi_trie_frame){0}))
        return false;
    while (w->frames > 0) {
        const struct espi_trie_frame frame = w->frame[--w->frames];
        size_t top = frame.to[1];
        uint32_t child = set->first[frame.node];
        for (size_t k = 0; next_child(set, frame.node, s->symbol, s->symbols, &child, &k); child++, k++) {
            const size_t other = find_symbol(t, s->symbol[k]);
            if (other == SIZE_MAX) continue;
            const size_t room = s->start[k + 1] - s->start[k] + t->start[other + 1] - t->start[other];
            if (!espi_reserve(&w->end, &w->end_capacity, top + room, sizeof *w->end)) return false;
            struct espi_trie_frame down = {.node = child, .from = {top}};
            const double in_s = step_down(w, weighing.gap, &frame, s, k, 0, &top);
            down.to[0] = down.from[1] = top;
            const double in_t = step_down(w, weighing.gap, &frame, t, other, 1, &top);
            down.to[1] = top;
            if (set->pattern[child] != ESPI_NO_NODE) *value += in_s * in_t;
            if (in_s == 0.0 || in_t == 0.0 || set->first[child] == set->first[child + 1]) top = down.from[0];
            else if (!push(w, down)) return false;
        }
    }
    return true;
}
