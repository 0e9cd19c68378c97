/* The fragments of a tree, divided among the groups (productions) of the collection.
 *
 * A group is common if more than about the square root of the number of trees have it. A fragment belongs to the first
 * production in its preorder that is not common; to that of its root if all are. So heavy fragments that start with
 * what every tree starts with are listed under what tells the tree apart, and a bound by the groups of two trees is
 * close. Of a pair of nodes with one production p,
 *
 *     D    = lambda prod_k (alpha + D_k)                          all fragments (dag.h)
 *     A    = lambda prod_k (alpha + A_k), 0 unless p is common    those that are common throughout
 *     F_g  = [g = p] D                                            those of group g: p is not common
 *          = lambda sum_k prod_{j<k} (alpha + A_j) F_g,k prod_{j>k} (alpha + D_j)      p is common
 *
 * and K_g(x, x) is the sum of F_g, of a common g of A at the pairs with production g. F has few groups at a pair. */
#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"
#include "kernel/tree/pair.h"
#include "search/tree_index.h"

#include <float.h>
#include <string.h>

enum { MOST_CELLS = 1 << 22, MOST_ENTRIES = 1 << 23 }; /* of a tree; beyond, it is not divided */

typedef struct espi_block_cell { /* a pair of nodes */
    double all, common;
    size_t first, end; /* its entries */
} block_cell;

void espi_block_maker_free(espi_block_maker *m)
{
    espi_free(m->key);
    espi_free(m->place);
    espi_free(m->first);
    espi_free(m->cell);
    espi_free(m->row);
    espi_free(m->entry);
    espi_free(m->block);
    espi_free(m->sum);
    *m = (espi_block_maker){0};
}

double espi_block_weight(double value, espi_wide self)
{
    if (!(self.m > 0.0)) return 1e-30;
    const double part = espi_wide_normalise(espi_wide_of(value), self, espi_wide_of(1.0));
    const double root = espi_wide_normalise(espi_wide_of(1.0), self, espi_wide_of(1.0));
    const double weight = sqrt(part * root);
    if (weight < 1e-30) return 1e-30; /* so that what is met has a bound */
    return isfinite(value) && weight < 1.0 ? weight : 1.0;
}

/* Room for the sums of all groups, which are zeros between two trees. */
static bool fit(espi_block_maker *m, size_t groups)
{
    const size_t had = m->groups;
    if (!espi_reserve(&m->sum, &m->groups, groups, sizeof *m->sum)) return false;
    if (m->groups > had) memset(m->sum + had, 0, (m->groups - had) * sizeof *m->sum);
    return true;
}

static bool add(espi_block_maker *m, uint32_t group, double value)
{
    if (m->sum[group] == 0.0) {
        if (!espi_reserve(&m->block, &m->block_room, m->blocks + 1, sizeof *m->block)) return false;
        m->block[m->blocks++].group = group;
        m->sum[group] = DBL_MIN; /* so that a group is listed once, whatever is added */
    }
    m->sum[group] += value;
    return true;
}

static bool add_entry(espi_block_maker *m, uint32_t group, double value)
{
    if (!espi_reserve(&m->entry, &m->entry_room, m->entries + 1, sizeof *m->entry)) return false;
    m->entry[m->entries++] = (espi_block){group, value};
    return true;
}

/* Sorts the nodes by group and counts their pairs; false if there are too many. */
static bool pair_up(espi_block_maker *m, const espi_listed_tree *t, bool *memory)
{
    size_t pairs = 0;
    uint32_t place = 0;
    *memory = espi_reserve(&m->key, &m->key_room, t->nodes, sizeof *m->key) &&
              espi_reserve(&m->place, &m->place_room, t->nodes, sizeof *m->place) &&
              espi_reserve(&m->first, &m->first_room, t->nodes, sizeof *m->first) &&
              espi_reserve(&m->row, &m->row_room, t->nodes, sizeof *m->row);
    if (!*memory) return false;
    for (size_t i = 0; i < t->nodes; i++) m->key[i] = (uint64_t)t->group[i] << 32 | i;
    espi_sort_keys(m->key, t->nodes);
    for (size_t i = 0; i < t->nodes; i++) {
        const uint32_t node = (uint32_t)m->key[i];
        place = i > 0 && m->key[i] >> 32 == m->key[i - 1] >> 32 ? place + 1 : 0;
        m->place[node] = place;
        m->first[node] = (uint32_t)i - place;
    }
    for (size_t i = 0; i < t->nodes && pairs <= MOST_CELLS; i++) {
        m->row[i] = pairs;
        pairs += m->place[i] + 1;
    }
    if (pairs > MOST_CELLS) return false;
    *memory = espi_reserve(&m->cell, &m->cell_room, pairs, sizeof *m->cell);
    return *memory;
}

typedef struct division {
    espi_block_maker *m;
    const espi_listed_tree *tree;
    const espi_decay *decay;
    const uint8_t *common;
    size_t known;
} division;

static bool is_common(const division *d, uint32_t group) { return group < d->known && d->common[group] != 0; }

static const block_cell *cell_of(const espi_block_maker *m, uint32_t i, uint32_t j)
{
    return m->place[i] <= m->place[j] ? &m->cell[m->row[j] + m->place[i]] : &m->cell[m->row[i] + m->place[j]];
}

/* The next child of a pair of nodes with a common production: `cell` holds the children before it. */
static bool multiply(const division *d, block_cell *cell, double alpha, uint32_t i, uint32_t j, bool spread)
{
    espi_block_maker *m = d->m;
    double all = 0.0, common = 0.0;
    const block_cell *below = NULL;
    const uint32_t word = i & ~ESPI_WORD;
    const bool is_word = ((i | j) & ESPI_WORD) != 0;
    if (is_word && i == j) {
        all = d->decay->lambda[word];
        if (is_common(d, word)) common = all;
    } else if (!is_word && d->tree->group[i] == d->tree->group[j]) {
        below = cell_of(m, i, j);
        all = below->all;
        common = below->common;
    }
    bool ok = true;
    for (size_t e = cell->first; spread && e < m->entries; e++) m->entry[e].value *= alpha + all;
    if (spread && all > 0.0 && is_word && common == 0.0) ok = add_entry(m, word, cell->common * all);
    for (size_t e = below != NULL ? below->first : 0; ok && spread && below != NULL && e < below->end; e++)
        ok = add_entry(m, m->entry[e].group, cell->common * m->entry[e].value);
    cell->all *= alpha + all;
    cell->common *= alpha + common;
    return ok;
}

/* A pair of nodes of one production, i <= j. */
static bool divide_pair(const division *d, uint32_t i, uint32_t j, double *total)
{
    espi_block_maker *m = d->m;
    const espi_listed_tree *t = d->tree;
    const uint32_t group = t->group[j];
    const bool common = is_common(d, group);
    block_cell cell = {.all = d->decay->lambda[group], .common = d->decay->lambda[group], .first = m->entries};
    const uint32_t at = i > 0 ? t->kid_end[i - 1] : 0, to = j > 0 ? t->kid_end[j - 1] : 0, kids = t->kid_end[j] - to;
    bool ok = true;
    for (uint32_t k = 0; ok && k < kids; k++)
        ok = multiply(d, &cell, d->decay->alpha[group], t->kid[at + k], t->kid[to + k], common);
    if (!common) cell.common = 0.0;
    if (!common) ok = ok && add_entry(m, group, cell.all);
    cell.end = m->entries;
    m->cell[m->row[j] + m->place[i]] = cell;
    const double times = (i == j ? 1.0 : 2.0) * t->count[i] * t->count[j];
    if (common && cell.common > 0.0) ok = ok && add(m, group, times * cell.common);
    for (size_t e = cell.first; ok && e < cell.end; e++) ok = add(m, m->entry[e].group, times * m->entry[e].value);
    *total += times * cell.all;
    return ok;
}

/* False if memory is out; *whole if the tree is too large. */
static bool divide(const division *d, double *total, bool *whole)
{
    espi_block_maker *m = d->m;
    const espi_listed_tree *t = d->tree;
    bool ok = true;
    *total = 0.0;
    for (size_t i = 0; ok && i < t->words; i++) {
        const double value = d->decay->lambda[t->word_group[i]] * t->word_count[i] * t->word_count[i];
        ok = add(m, t->word_group[i], value);
        *total += value;
    }
    const bool fits = ok && pair_up(m, t, &ok);
    for (uint32_t j = 0; fits && ok && j < t->nodes && m->entries <= MOST_ENTRIES; j++)
        for (uint32_t r = 0; ok && r <= m->place[j]; r++)
            ok = divide_pair(d, (uint32_t)m->key[m->first[j] + r], j, total);
    *whole = !fits || m->entries > MOST_ENTRIES || !isfinite(*total) || !(*total > DBL_MIN * 1e20);
    return ok;
}

/* All groups of the tree, with a value that is not a number: their weight is 1. */
static esp_status take_whole(const division *d, espi_wide *self, esp_error *err)
{
    espi_block_maker *m = d->m;
    const espi_listed_tree *t = d->tree;
    espi_plan plan;
    void *memory = NULL;
    double value = 0.0;
    espi_self_scratch scratch = {0};
    esp_status status = espi_listed_tree_plan(t, &plan, &memory) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = espi_self_value(&plan, d->decay, m->groups, &scratch, m->caller, &value, err);
    espi_self_scratch_free(&scratch);
    const bool plain = isfinite(value) && value > DBL_MIN * 1e20;
    *self = espi_wide_of(plain ? value : 0.0);
    if (status == ESP_OK && !plain) status = espi_pair_wide(&plan, &plan, d->decay, m->caller, self, err);
    espi_free(memory);
    bool ok = status == ESP_OK;
    for (size_t i = 0; ok && i < t->words; i++) ok = add(m, t->word_group[i], 1.0);
    for (size_t i = 0; ok && i < t->nodes; i++) ok = add(m, t->group[i], 1.0);
    for (size_t i = 0; i < m->blocks; i++) m->sum[m->block[i].group] = INFINITY;
    return ok || status != ESP_OK ? status : espi_no_memory(err);
}

esp_status espi_blocks_make(espi_block_maker *m, const espi_listed_tree *tree, const espi_decay *decay, size_t groups,
                            const uint8_t *common, size_t known, espi_wide *self, esp_error *err)
{
    const division d = {.m = m, .tree = tree, .decay = decay, .common = common, .known = known};
    double total = 0.0;
    bool whole = false;
    m->blocks = m->entries = 0;
    if (!fit(m, groups)) return espi_no_memory(err);
    esp_status status = divide(&d, &total, &whole) ? ESP_OK : espi_no_memory(err);
    *self = espi_wide_of(total);
    if (status == ESP_OK && whole && tree->nodes + tree->words > 0) status = take_whole(&d, self, err);
    for (size_t i = 0; i < m->blocks; i++) {
        m->block[i].value = m->sum[m->block[i].group];
        m->sum[m->block[i].group] = 0.0;
    }
    return status;
}
