/* The patterns of sequences that weigh most, in a model or in one example.
 *
 *     w(u) = sum over support sequences i of c_i phi_u(S_i),     phi_u(S) = sum over the places of u in S of
 * lambda^gaps
 *
 * and the contribution of u to a sequence S is w(u) phi_u(S). A state holds the places at which its pattern ends:
 * (sequence, token k, sum of lambda^gaps over those that end there). What follows a place that ends at token k of S
 * weighs at most E(k) times as much, with at least one token more:
 *
 *     E(k) = max over factors x of  sum over tokens l > k that have x of lambda^(l-1-k) max(1, E(l))
 *
 * so that whatever grows from a state weighs at most the sum of c_i E over its places with c_i > 0, and the same below
 * 0. */
#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "explain/source.h"

#include <math.h>
#include <string.h>

typedef struct place {
    uint32_t seq, position;
    double weight;
} place;

typedef struct pattern {
    espi_state state;
    size_t size;
    uint32_t *step; /* symbols */
    size_t count[2];
    place *at[2]; /* in the source, in the example; by sequence and position */
} pattern;

typedef struct bucket { /* extensions by one symbol */
    size_t count[2], at[2];
    double sum, size; /* in the source, and of its absolute values */
    double up, down;
    double phi, phi_grown; /* in the example */
} bucket;

typedef struct grower {
    const espi_seq_source *source;
    const espi_seq_example *example; /* NULL: the model */
    const espi_feature_query *query;
    size_t most;    /* tokens of a pattern */
    bucket *bucket; /* per symbol */
    uint32_t *touched;
    size_t touches, touched_capacity;
    place *place[2]; /* of all extensions, by symbol */
    size_t place_capacity[2];
} grower;

/* --------------------------------------------------------------------- bounds */

/* E of all tokens, from right to left: sums by factor fade by lambda from token to token, so the largest of them either
 * was the largest before or has just grown. */
static bool make_grown(const espi_seqs *s, double lambda, size_t symbols, double **out)
{
    struct sum {
        double value; /* as of token `from` */
        size_t from, seq;
    } *sum = espi_alloc_zero(symbols, sizeof *sum);
    *out = espi_alloc(s->count > 0 ? s->row[s->count] : 0, sizeof **out);
    const bool ok = sum != NULL && *out != NULL;
    for (size_t i = 0; ok && i < s->count; i++) {
        double best = 0.0;
        for (size_t k = s->row[i + 1]; k-- > s->row[i];) {
            (*out)[k] = best;
            best *= lambda;
            for (size_t f = s->token[k]; f < s->token[k + 1]; f++) {
                if (s->factor[f] >= symbols) continue;
                struct sum *x = &sum[s->factor[f]];
                const double old = x->seq == i + 1 ? x->value * pow(lambda, (double)(x->from - k)) : 0.0;
                *x = (struct sum){.value = old + fmax(1.0, (*out)[k]), .from = k, .seq = i + 1};
                best = fmax(best, x->value);
            }
        }
    }
    espi_free(sum);
    return ok;
}

/* -------------------------------------------------------------------- sources */

void espi_seq_source_free(espi_seq_source *s)
{
    espi_free(s->coefficient);
    espi_free(s->grown);
    *s = (espi_seq_source){0};
}

esp_status espi_seq_source_make(espi_seq_source *s, const espi_leaf *leaf, const espi_column *support,
                                const double *coefficient, size_t outputs, esp_error *err)
{
    const double n = espi_leaf_value(leaf, "n");
    *s = (espi_seq_source){.symbols = &support->sequences.symbols, .seqs = espi_seqs_of(support), .outputs = outputs};
    s->rule.n = n < 0x1p53 ? (size_t)n : ESPI_ANY_LENGTH;
    s->rule.lambda = espi_leaf_value(leaf, "gap") != 0.0 ? 0.0 : espi_leaf_value(leaf, "lambda");
    s->coefficient = espi_alloc(support->rows, outputs * sizeof *s->coefficient);
    if (s->coefficient == NULL || !make_grown(&s->seqs, s->rule.lambda, s->seqs.symbols, &s->grown)) {
        espi_seq_source_free(s);
        return espi_no_memory(err);
    }
    for (size_t i = 0; i < support->rows * outputs; i++) s->coefficient[i] = coefficient[i];
    return ESP_OK;
}

void espi_seq_example_free(espi_seq_example *x)
{
    espi_free(x->factor);
    espi_free(x->grown);
    *x = (espi_seq_example){0};
}

bool espi_seq_example_make(espi_seq_example *x, const espi_seq_source *s, const espi_column *column, double scale)
{
    *x = (espi_seq_example){.seqs = espi_seqs_of(column), .scale = scale};
    uint32_t *map = espi_symbols_map(&column->sequences.symbols, s->symbols);
    x->factor = espi_alloc(column->sequences.factors, sizeof *x->factor);
    bool ok = map != NULL && x->factor != NULL;
    for (size_t i = 0; ok && i < column->sequences.factors; i++) x->factor[i] = map[column->sequences.factor[i]];
    x->seqs.factor = x->factor;
    ok = ok && make_grown(&x->seqs, s->rule.lambda, s->seqs.symbols, &x->grown);
    espi_free(map);
    if (!ok) espi_seq_example_free(x);
    return ok;
}

/* -------------------------------------------------------------------- growing */

static void free_pattern(espi_state *state)
{
    pattern *u = (pattern *)(void *)state;
    espi_free(u->step);
    espi_free(u->at[0]);
    espi_free(u->at[1]);
    espi_free(u);
}

static pattern *new_pattern(size_t size, size_t count, size_t in_example)
{
    pattern *u = espi_alloc_zero(1, sizeof *u);
    if (u == NULL) return NULL;
    u->size = size;
    u->step = espi_alloc(size, sizeof *u->step);
    u->at[0] = espi_alloc(count, sizeof *u->at[0]);
    u->at[1] = espi_alloc(in_example, sizeof *u->at[1]);
    u->count[0] = count;
    u->count[1] = in_example;
    u->state.bytes = sizeof *u + size * sizeof *u->step + (count + in_example) * sizeof *u->at[0];
    if (u->step != NULL && u->at[0] != NULL && u->at[1] != NULL) return u;
    free_pattern(&u->state);
    return NULL;
}

static const espi_seqs *seqs_at(const grower *g, int side) { return side == 0 ? &g->source->seqs : &g->example->seqs; }

/* One place of an extension: counted first, then written. */
static bool meet(grower *g, int side, uint32_t symbol, place p, bool write)
{
    if (symbol >= g->source->seqs.symbols) return true;
    bucket *b = &g->bucket[symbol];
    if (side == 0 && g->example != NULL && b->count[1] == 0) return true;
    if (write) {
        g->place[side][b->at[side]++] = p;
        return true;
    }
    if (b->count[0] == 0 && b->count[1] == 0) {
        if (!espi_reserve(&g->touched, &g->touched_capacity, g->touches + 1, sizeof *g->touched)) return false;
        g->touched[g->touches++] = symbol;
    }
    b->count[side]++;
    const size_t token = seqs_at(g, side)->row[p.seq] + p.position;
    if (side == 1) {
        b->phi += p.weight;
        b->phi_grown += p.weight * g->example->grown[token];
        return true;
    }
    const double c = g->query->sign * p.weight * g->source->coefficient[p.seq * g->source->outputs + g->query->output];
    b->sum += c;
    b->size += fabs(c);
    if (c > 0.0) b->up += c * g->source->grown[token];
    else b->down -= c * g->source->grown[token];
    return true;
}

static bool meet_token(grower *g, int side, size_t seq, size_t position, double weight, bool write)
{
    const espi_seqs *s = seqs_at(g, side);
    const size_t token = s->row[seq] + position;
    const place p = {.seq = (uint32_t)seq, .position = (uint32_t)position, .weight = weight};
    bool ok = true;
    for (size_t f = s->token[token]; ok && f < s->token[token + 1]; f++) ok = meet(g, side, s->factor[f], p, write);
    return ok;
}

/* Extensions in one sequence, where the pattern ends at at[0 .. count). */
static bool extend_in(grower *g, int side, const place *at, size_t count, bool write)
{
    const espi_seqs *s = seqs_at(g, side);
    const size_t seq = at[0].seq, length = s->row[seq + 1] - s->row[seq];
    const double lambda = g->source->rule.lambda;
    double reach = 0.0;
    size_t next = 0;
    for (size_t k = at[0].position + (size_t)1; k < length; k++) {
        reach = reach < ESPI_SEQ_TINY ? 0.0 : reach * lambda;
        for (; next < count && at[next].position == k - 1; next++) reach += at[next].weight;
        if (reach == 0.0) { /* contiguous places only, or a long gap */
            if (next == count) break;
            k = at[next].position;
        } else if (!meet_token(g, side, seq, k, reach, write)) {
            return false;
        }
    }
    return true;
}

/* Extensions on one side; of the empty pattern every factor of every token. */
static bool extend_side(grower *g, const pattern *u, int side, bool write)
{
    bool ok = true;
    if (u->size == 0) {
        const espi_seqs *s = side == 1 && g->example == NULL ? NULL : seqs_at(g, side);
        for (size_t i = 0; s != NULL && ok && i < s->count; i++) {
            if (side == 0 && g->source->coefficient[i * g->source->outputs + g->query->output] == 0.0) continue;
            for (size_t k = 0; ok && k < s->row[i + 1] - s->row[i]; k++) ok = meet_token(g, side, i, k, 1.0, write);
        }
        return ok;
    }
    for (size_t i = 0, end; ok && i < u->count[side]; i = end) {
        for (end = i + 1; end < u->count[side] && u->at[side][end].seq == u->at[side][i].seq;) end++;
        ok = extend_in(g, side, u->at[side] + i, end - i, write);
    }
    return ok;
}

static bool list(const grower *g, const pattern *u, uint32_t symbol, double weight, double value)
{
    uint32_t *step = espi_alloc(u->size + 1, sizeof *step);
    if (step == NULL) return false;
    if (u->size > 0) memcpy(step, u->step, u->size * sizeof *step);
    step[u->size] = symbol;
    const espi_found found = {.key = weight * value,
                              .weight = weight,
                              .value = value,
                              .term = g->query->term,
                              .size = u->size + 1,
                              .kind = ESP_FEATURE_PATTERN,
                              .step = step,
                              .steps = u->size + 1};
    const bool ok = espi_shortlist_add(g->query->shortlist, &found);
    espi_free(step);
    return ok;
}

static esp_status judge(grower *g, espi_best_first *best, const pattern *u, uint32_t symbol, esp_error *err)
{
    const bucket *b = &g->bucket[symbol];
    const bool model = g->example == NULL;
    if (b->count[0] == 0) return ESP_OK;
    const double value = model ? 1.0 : b->phi * g->example->scale, weight = espi_rank_sum(b->sum, b->size);
    if (!isfinite(weight * value))
        return espi_fail(err, ESP_ERR_RANGE, "the weight of a pattern of %zu tokens is too large for a number",
                         u->size + 1);
    if (espi_shortlist_wants(g->query->shortlist, weight * value) && !list(g, u, symbol, weight, value))
        return espi_no_memory(err);
    const double follows = model ? 1.0 : b->phi_grown * g->example->scale;
    const double up = b->up * follows, down = b->down * follows;
    if (u->size + 1 >= g->most || espi_shortlist_hope(g->query->shortlist, up, down) == 0.0) return ESP_OK;
    pattern *next = new_pattern(u->size + 1, b->count[0], b->count[1]);
    if (next == NULL) return espi_no_memory(err);
    if (u->size > 0) memcpy(next->step, u->step, u->size * sizeof *next->step);
    next->step[u->size] = symbol;
    for (int side = 0; side < 2; side++)
        if (b->count[side] > 0)
            memcpy(next->at[side], g->place[side] + b->at[side] - b->count[side], b->count[side] * sizeof(place));
    next->state.up = up;
    next->state.down = down;
    return espi_best_first_push(best, &next->state, err);
}

/* Where the places of each symbol go. */
static bool lay_out(grower *g)
{
    espi_sort_numbers(g->touched, g->touches);
    for (int side = 0; side < 2; side++) {
        size_t at = 0;
        for (size_t i = 0; i < g->touches; i++) {
            bucket *b = &g->bucket[g->touched[i]];
            b->at[side] = at;
            at += b->count[side];
        }
        if (!espi_reserve(&g->place[side], &g->place_capacity[side], at, sizeof *g->place[side])) return false;
    }
    return true;
}

static esp_status grow(void *context, espi_best_first *best, espi_state *state, esp_error *err)
{
    grower *g = context;
    const pattern *u = (const pattern *)(const void *)state;
    g->touches = 0;
    /* The example first, as only what it has counts there. */
    const bool ok = extend_side(g, u, 1, false) && extend_side(g, u, 0, false) && lay_out(g) &&
                    extend_side(g, u, 1, true) && extend_side(g, u, 0, true);
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; i < g->touches; i++) {
        if (status == ESP_OK) status = judge(g, best, u, g->touched[i], err);
        g->bucket[g->touched[i]] = (bucket){0};
    }
    return status;
}

esp_status espi_search_patterns(const espi_seq_source *source, const espi_seq_example *example,
                                const espi_feature_query *query, esp_error *err)
{
    grower g = {.source = source, .example = example, .query = query};
    g.most = query->max_size < source->rule.n ? query->max_size : source->rule.n;
    espi_best_first best = {.shortlist = query->shortlist,
                            .grow = grow,
                            .free = free_pattern,
                            .grower = &g,
                            .effort = query->effort,
                            .memory = query->memory,
                            .run = query->run};
    g.bucket = espi_alloc_zero(source->seqs.symbols, sizeof *g.bucket);
    pattern *empty = g.bucket != NULL ? new_pattern(0, 0, 0) : NULL;
    if (empty != NULL) empty->state.up = empty->state.down = HUGE_VAL;
    esp_status status = empty == NULL ? espi_no_memory(err) : espi_best_first_push(&best, &empty->state, err);
    if (status == ESP_OK) status = espi_best_first_search(&best, err);
    espi_free(g.bucket);
    espi_free(g.touched);
    espi_free(g.place[0]);
    espi_free(g.place[1]);
    return status;
}

/* ------------------------------------------------------ what is told of them */

/* phi of one sequence; reach[j] is that of the first j symbols, faded to the token at hand. */
static double phi_of(const espi_seq_source *s, size_t i, const uint32_t *step, size_t steps, double *reach)
{
    double phi = 0.0;
    reach[0] = 1.0;
    for (size_t j = 1; j <= steps; j++) reach[j] = 0.0;
    for (size_t k = s->seqs.row[i]; k < s->seqs.row[i + 1]; k++)
        for (size_t j = steps; j > 0; j--) {
            double ends = 0.0;
            for (size_t f = s->seqs.token[k]; f < s->seqs.token[k + 1]; f++)
                if (s->seqs.factor[f] == step[j - 1]) ends += reach[j - 1];
            if (j == steps) phi += ends;
            reach[j] = s->rule.lambda * reach[j] + ends;
        }
    return phi;
}

bool espi_pattern_facts(const espi_seq_source *s, const espi_found *found, espi_facts *facts)
{
    double *reach = espi_alloc(found->steps + 1, sizeof *reach);
    const bool ok = reach != NULL;
    for (size_t k = 0; k < s->outputs; k++) facts->weight[k] = 0.0;
    for (size_t i = 0; ok && i < s->seqs.count; i++) {
        const double phi = phi_of(s, i, found->step, found->steps, reach);
        facts->examples += phi > 0.0;
        facts->occurrences += phi;
        for (size_t k = 0; k < s->outputs; k++) facts->weight[k] += s->coefficient[i * s->outputs + k] * phi;
    }
    espi_free(reach);
    return ok;
}

/* A trie that holds the one pattern, written as tries are. */
bool espi_pattern_text(const espi_seq_source *s, const espi_found *found, espi_text *text)
{
    espi_trie one = {0};
    espi_step *path = espi_alloc(found->steps, sizeof *path);
    bool ok = path != NULL;
    for (size_t i = 0; ok && i < found->steps; i++) {
        const espi_symbol *symbol = &s->symbols->symbol[found->step[i]];
        const uint32_t label = espi_symbols_add(&one.symbols, symbol->text, symbol->size);
        ok = label != ESPI_NO_SYMBOL;
        path[i] = (espi_step){.depth = (uint32_t)i + 1, .label = label, .kept = i + 1 == found->steps};
    }
    ok = ok && espi_patterns_make(&one.set, path, found->steps, false);
    if (ok) espi_trie_text(&one, 0, text);
    espi_free(path);
    espi_trie_free(&one);
    return ok && !text->failed;
}
