#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/tree/tree_kernel.h"
#include "search/tree_index.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

void espi_tree_index_free(espi_tree_index *x)
{
    if (x->owned != NULL) espi_tree_list_free(&x->list);
    for (size_t i = 0; i < x->owned_count; i++) espi_free(x->owned[i]);
    espi_free(x->owned);
    *x = (espi_tree_index){0};
}

/* An array of the index; NULL if memory is out. */
static void *own(espi_tree_index *x, size_t count, size_t size)
{
    enum { MOST = 16 };
    if (x->owned == NULL) x->owned = espi_alloc_zero(MOST, sizeof *x->owned);
    void *array = x->owned != NULL ? espi_alloc_zero(count, size) : NULL;
    if (array != NULL) x->owned[x->owned_count++] = array;
    return array;
}

/* ------------------------------------------------------------------ tables */

static uint64_t hash_text(const char *text, size_t size) { return XXH3_64bits(text, size); }

static uint64_t hash_rule(uint32_t label, const uint32_t *kid, size_t kids)
{
    return XXH3_64bits_withSeed(kid, kids * sizeof *kid, label);
}

static size_t slots_for(size_t count)
{
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    return slots;
}

static void enter(uint32_t *slot, size_t slots, uint64_t hash, size_t number)
{
    size_t at = hash & (slots - 1);
    while (slot[at] != ESPI_NO_NODE) at = (at + 1) & (slots - 1);
    slot[at] = (uint32_t)number;
}

static bool copy_symbols(espi_tree_index *x, const espi_symbols *symbols)
{
    size_t bytes = 0;
    for (size_t i = 0; i < symbols->count; i++) bytes += symbols->symbol[i].size;
    uint64_t *end = own(x, symbols->count, sizeof *end);
    char *text = own(x, bytes, 1);
    x->symbol_slots = slots_for(symbols->count);
    uint32_t *slot = own(x, x->symbol_slots, sizeof *slot);
    if (end == NULL || text == NULL || slot == NULL) return false;
    memset(slot, 0xFF, x->symbol_slots * sizeof *slot);
    for (size_t i = 0, at = 0; i < symbols->count; i++) {
        const espi_symbol *s = &symbols->symbol[i];
        memcpy(text + at, s->text, s->size);
        end[i] = at += s->size;
        enter(slot, x->symbol_slots, hash_text(s->text, s->size), i);
    }
    x->symbols = symbols->count;
    x->symbol_end = end;
    x->symbol_text = text;
    x->symbol_bytes = bytes;
    x->symbol_slot = slot;
    return true;
}

static bool copy_rules(espi_tree_index *x, const espi_forest *f)
{
    uint32_t *label = own(x, f->productions, sizeof *label), *kid = own(x, f->child_labels, sizeof *kid);
    uint64_t *end = own(x, f->productions, sizeof *end);
    x->rule_slots = slots_for(f->productions);
    uint32_t *slot = own(x, x->rule_slots, sizeof *slot);
    if (label == NULL || kid == NULL || end == NULL || slot == NULL) return false;
    memset(slot, 0xFF, x->rule_slots * sizeof *slot);
    if (f->child_labels > 0) memcpy(kid, f->child_label, f->child_labels * sizeof *kid);
    for (size_t i = 0; i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        label[i] = p->label;
        end[i] = p->children + p->arity;
        enter(slot, x->rule_slots, hash_rule(p->label, kid + p->children, p->arity), i);
    }
    x->rules = f->productions;
    x->rule_label = label;
    x->rule_end = end;
    x->rule_kid = kid;
    x->rule_kids = f->child_labels;
    x->rule_slot = slot;
    return true;
}

/* Text and kids of what has a number; sizes are 0 where the file is wrong. */
static const char *symbol_at(const espi_tree_index *x, size_t number, size_t *size)
{
    const uint64_t from = number > 0 ? x->symbol_end[number - 1] : 0, to = x->symbol_end[number];
    const bool right = to <= x->symbol_bytes && from <= to;
    *size = right ? (size_t)(to - from) : 0;
    return x->symbol_text + (right ? from : 0);
}

static const uint32_t *rule_at(const espi_tree_index *x, size_t number, size_t *kids)
{
    const uint64_t from = number > 0 ? x->rule_end[number - 1] : 0, to = x->rule_end[number];
    const bool right = to <= x->rule_kids && from <= to;
    *kids = right ? (size_t)(to - from) : 0;
    return x->rule_kid + (right ? from : 0);
}

static uint32_t find_symbol(const espi_tree_index *x, const char *text, size_t size)
{
    const size_t mask = x->symbol_slots - 1;
    size_t at = hash_text(text, size) & mask;
    for (size_t tries = 0; tries <= mask; tries++, at = (at + 1) & mask) {
        const uint32_t number = x->symbol_slot[at];
        if (number == ESPI_NO_NODE) return ESPI_NO_NODE;
        if (number >= x->symbols) continue;
        size_t have;
        const char *other = symbol_at(x, number, &have);
        if (have == size && memcmp(other, text, size) == 0) return number;
    }
    return ESPI_NO_NODE;
}

static uint32_t find_rule(const espi_tree_index *x, uint32_t label, const uint32_t *kid, size_t kids)
{
    const size_t mask = x->rule_slots - 1;
    size_t at = hash_rule(label, kid, kids) & mask;
    for (size_t tries = 0; tries <= mask; tries++, at = (at + 1) & mask) {
        const uint32_t number = x->rule_slot[at];
        if (number == ESPI_NO_NODE) return ESPI_NO_NODE;
        if (number >= x->rules || x->rule_label[number] != label) continue;
        size_t have;
        const uint32_t *other = rule_at(x, number, &have);
        if (have == kids && memcmp(other, kid, kids * sizeof *kid) == 0) return number;
    }
    return ESPI_NO_NODE;
}

uint32_t *espi_tree_index_symbols(const espi_tree_index *x, const espi_forest *forest)
{
    uint32_t *map = espi_alloc(forest->symbols.count, sizeof *map);
    for (size_t i = 0; map != NULL && i < forest->symbols.count; i++)
        map[i] = find_symbol(x, forest->symbols.symbol[i].text, forest->symbols.symbol[i].size);
    return map;
}

uint32_t *espi_tree_index_rules(const espi_tree_index *x, const espi_forest *f)
{
    uint32_t *symbol = espi_tree_index_symbols(x, f), *map = espi_alloc(f->productions, sizeof *map);
    uint32_t *kid = espi_alloc(f->child_labels, sizeof *kid);
    const bool ok = symbol != NULL && map != NULL && kid != NULL;
    for (size_t i = 0; ok && i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        bool known = symbol[p->label] != ESPI_NO_NODE;
        for (size_t k = 0; known && k < p->arity; k++) {
            const uint32_t label = f->child_label[p->children + k], number = symbol[label / 2];
            known = number != ESPI_NO_NODE;
            kid[k] = number * 2 + (label & 1);
        }
        map[i] = known ? find_rule(x, symbol[p->label], kid, p->arity) : ESPI_NO_NODE;
    }
    espi_free(symbol);
    espi_free(kid);
    if (ok) return map;
    espi_free(map);
    return NULL;
}

/* ---------------------------------------------------------------- postings */

/* Groups that more than the square root of all trees have, and more than a few. */
static bool find_common(espi_tree_index *x)
{
    const espi_tree_list *l = &x->list;
    const double bound = sqrt((double)l->trees) + 4.0;
    uint8_t *common = own(x, x->groups, sizeof *common);
    uint32_t *trees = espi_alloc_zero(x->groups, sizeof *trees), *last = espi_alloc_zero(x->groups, sizeof *last);
    const bool ok = common != NULL && trees != NULL && last != NULL;
    for (size_t i = 0, n = 0, w = 0; ok && i < l->trees; i++) {
        for (; n < l->node_end[i]; n++) {
            const uint32_t g = l->node_group[n];
            if (last[g] != i + 1) trees[g]++;
            last[g] = (uint32_t)i + 1;
        }
        for (; w < l->word_end[i]; w++) trees[l->word_group[w]]++;
    }
    for (size_t g = 0; ok && g < x->groups; g++) common[g] = trees[g] > bound;
    espi_free(trees);
    espi_free(last);
    x->common = common;
    return ok;
}

enum { CHUNK = 256 }; /* trees that are divided together */

typedef struct divided { /* of a chunk */
    espi_block *block;   /* of its trees, one behind the other */
    size_t end[CHUNK];
    size_t blocks, room;
} divided;

typedef struct dividing {
    espi_tree_index *index;
    const espi_decay *decay;
    divided *chunk;
    espi_block_maker *maker; /* per thread */
    double *self;
    int64_t *exponent;
} dividing;

static esp_status divide_tree(const dividing *j, espi_block_maker *maker, size_t tree, divided *out, esp_error *err)
{
    const espi_tree_index *x = j->index;
    espi_listed_tree t;
    espi_wide self;
    (void)espi_listed_tree_get(&x->list, tree, &t);
    const esp_status status = espi_blocks_make(maker, &t, j->decay, x->groups, x->common, x->groups, &self, err);
    if (status != ESP_OK) return status;
    if (!espi_reserve(&out->block, &out->room, out->blocks + maker->blocks, sizeof *out->block))
        return espi_no_memory(err);
    for (size_t b = 0; b < maker->blocks; b++)
        out->block[out->blocks++] = (espi_block){maker->block[b].group, espi_block_weight(maker->block[b].value, self)};
    out->end[tree % CHUNK] = out->blocks;
    const double plain = espi_wide_double(self);
    const bool is_plain = isfinite(plain) && (plain == 0.0 ? self.m == 0.0 : plain > DBL_MIN * 1e20);
    j->self[tree] = is_plain ? plain : self.m;
    j->exponent[tree] = is_plain ? 0 : self.e;
    return ESP_OK;
}

static esp_status divide_chunk(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    const dividing *j = context;
    esp_status status = ESP_OK;
    j->maker[worker->number].caller = worker->run;
    for (size_t i = item * CHUNK; status == ESP_OK && i < (item + 1) * CHUNK && i < j->index->list.trees; i++)
        status = divide_tree(j, &j->maker[worker->number], i, &j->chunk[item], err);
    return status;
}

/* Next above, as a float: no bound may be too small, and none is nothing. */
static float round_up(double weight)
{
    const float least = 1e-30F, near = (float)weight;
    if (!(near > least)) return least;
    return (double)near >= weight ? near : nextafterf(near, INFINITY);
}

static bool post(espi_tree_index *x, const divided *chunk, size_t chunks)
{
    size_t total = 0;
    for (size_t c = 0; c < chunks; c++) total += chunk[c].blocks;
    uint64_t *end = own(x, x->groups, sizeof *end);
    espi_tree_posting *posting = own(x, total, sizeof *posting);
    if (end == NULL || posting == NULL) return false;
    for (size_t c = 0; c < chunks; c++)
        for (size_t b = 0; b < chunk[c].blocks; b++) end[chunk[c].block[b].group]++;
    for (size_t g = 0, at = 0; g < x->groups; g++) {
        const size_t count = (size_t)end[g];
        end[g] = at; /* where the next one goes; in the end, behind the last */
        at += count;
    }
    for (size_t c = 0; c < chunks; c++)
        for (size_t b = 0, tree = c * CHUNK; b < chunk[c].blocks; b++) {
            while (b >= chunk[c].end[tree % CHUNK]) tree++;
            const espi_block *block = &chunk[c].block[b];
            posting[end[block->group]++] = (espi_tree_posting){(uint32_t)tree, round_up(block->value)};
        }
    x->posting_end = end;
    x->posting = posting;
    x->postings = total;
    return true;
}

static esp_status make_postings(espi_tree_index *x, const espi_decay *decay, const esp_run *run, esp_error *err)
{
    const size_t chunks = (x->list.trees + CHUNK - 1) / CHUNK;
    const int workers = espi_worker_count(run, chunks);
    dividing j = {.index = x, .decay = decay};
    j.self = own(x, x->list.trees, sizeof *j.self);
    j.exponent = own(x, x->list.trees, sizeof *j.exponent);
    j.chunk = espi_alloc_zero(chunks, sizeof *j.chunk);
    j.maker = espi_alloc_zero((size_t)workers, sizeof *j.maker);
    const bool ready = j.self != NULL && j.exponent != NULL && j.chunk != NULL && j.maker != NULL;
    esp_status status =
        ready ? espi_parallel(run, "preparing the trees", chunks, divide_chunk, &j, err) : espi_no_memory(err);
    if (status == ESP_OK && !post(x, j.chunk, chunks)) status = espi_no_memory(err);
    for (size_t c = 0; j.chunk != NULL && c < chunks; c++) espi_free(j.chunk[c].block);
    for (int i = 0; j.maker != NULL && i < workers; i++) espi_block_maker_free(&j.maker[i]);
    espi_free(j.chunk);
    espi_free(j.maker);
    x->self = j.self;
    x->self_exponent = j.exponent;
    return status;
}

/* -------------------------------------------------------------------- whole */

/* The groups of leaves follow those of productions. */
static uint32_t *leaf_groups(const espi_forest *forest)
{
    uint32_t *leaf = espi_alloc(forest->symbols.count, sizeof *leaf);
    for (size_t i = 0; leaf != NULL && i < forest->symbols.count; i++) leaf[i] = (uint32_t)(forest->productions + i);
    return leaf;
}

esp_status espi_tree_index_make(const espi_leaf *leaf, const espi_forest *forest, const esp_run *run,
                                espi_tree_index *out, esp_error *err)
{
    const double bow = espi_leaf_value_or(leaf, "bow", 0.0);
    espi_tree_index x = {.groups = forest->productions + (bow > 0.0 ? forest->symbols.count : 0)};
    uint32_t *leaves = bow > 0.0 ? leaf_groups(forest) : NULL;
    double *lambda = espi_alloc(x.groups, sizeof *lambda), *alpha = espi_alloc(x.groups, sizeof *alpha);
    const espi_decay decay = {.lambda = lambda, .alpha = alpha};
    *out = (espi_tree_index){0};
    bool ok = lambda != NULL && alpha != NULL && (bow == 0.0 || leaves != NULL) && x.groups < ESPI_WORD;
    ok = ok && espi_tree_decays(leaf, forest, NULL, lambda, alpha, NULL, NULL);
    for (size_t g = forest->productions; ok && g < x.groups; g++) lambda[g] = bow, alpha[g] = 0.0;
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = espi_tree_list_make(&x.list, forest, NULL, leaves, forest->productions, run, err);
    if (status == ESP_OK && !(copy_symbols(&x, &forest->symbols) && copy_rules(&x, forest) && find_common(&x)))
        status = espi_no_memory(err);
    if (status == ESP_OK) status = make_postings(&x, &decay, run, err);
    espi_free(lambda);
    espi_free(alpha);
    espi_free(leaves);
    if (status == ESP_OK) *out = x;
    else {
        espi_tree_list_free(&x.list);
        espi_tree_index_free(&x);
    }
    return status;
}
