/* What makes a grammar that was parsed ready to draw from: order, sums, and the promise that drawing ends. */
#include "base/alloc.h"
#include "base/status.h"
#include "task/grammar.h"

#include <math.h>
#include <string.h>

#define FAIL_AT(g, err, where, ...) espi_fail_at(err, (g)->file, (where).line, (where).column, __VA_ARGS__)

/* Each symbol's alternatives side by side, in the order of the file, and weights as running sums. */
static esp_status arrange(espi_grammar *g, esp_error *err)
{
    const size_t n = g->symbols.count;
    espi_alternative *sorted = espi_alloc(g->alternatives, sizeof *sorted);
    if (sorted == NULL) return espi_no_memory(err);
    for (size_t a = 0; a < g->alternatives; a++) g->rule[g->alternative[a].symbol].count++;
    for (size_t s = 0, first = 0; s < n; first += g->rule[s].count, s++) g->rule[s].first = first;
    for (size_t s = 0; s < n; s++) g->rule[s].count = 0;
    esp_status status = ESP_OK;
    for (size_t a = 0; a < g->alternatives; a++) {
        espi_alternative *to = &sorted[g->rule[g->alternative[a].symbol].first];
        const size_t rank = g->rule[g->alternative[a].symbol].count++;
        to[rank] = g->alternative[a];
        if (rank > 0) to[rank].weight += to[rank - 1].weight;
        if (isinf(to[rank].weight) && status == ESP_OK)
            status = FAIL_AT(g, err, to[rank].place, "the weights up to here add up to more than a number holds");
    }
    espi_free(g->alternative);
    g->alternative = sorted;
    g->alternative_capacity = g->alternatives;
    return status;
}

/* A symbol without a rule, with the most similar one that has a rule. */
static esp_status fail_undefined(const espi_grammar *g, uint32_t symbol, esp_error *err)
{
    const char **names = espi_alloc(g->symbols.count, sizeof *names);
    if (names == NULL) return espi_no_memory(err);
    size_t count = 0;
    for (size_t s = 0; s < g->symbols.count; s++) /* brackets have names that nobody wrote */
        if (g->rule[s].defined.line != 0 && strchr(g->symbols.symbol[s].text, '(') == NULL)
            names[count++] = g->symbols.symbol[s].text;
    const espi_symbol *bad = &g->symbols.symbol[symbol];
    const char *near = esp_nearest(bad->text, names, count);
    char shown[96], other[96];
    if (near != NULL)
        FAIL_AT(g, err, g->rule[symbol].used, "symbol %s has no rule; did you mean %s? (Words are quoted.)",
                espi_quote(bad->text, bad->size, shown), espi_quote(near, strlen(near), other));
    else
        FAIL_AT(g, err, g->rule[symbol].used, "symbol %s has no rule; if it is a word, quote it",
                espi_quote(bad->text, bad->size, shown));
    espi_free(names);
    return ESP_ERR_PARSE;
}

/* For each symbol, the alternatives that contain it: use[first[s]] .. use[first[s + 1]]. */
static bool index_uses(const espi_grammar *g, size_t *first, size_t *use)
{
    const size_t n = g->symbols.count;
    for (size_t i = 0; i < g->items; i++)
        if ((g->item[i] & ESPI_GRAMMAR_WORD) == 0) first[g->item[i] + 1]++;
    for (size_t s = 0; s < n; s++) first[s + 1] += first[s];
    size_t *fill = espi_alloc(n, sizeof *fill);
    if (fill == NULL) return false;
    memcpy(fill, first, n * sizeof *fill);
    for (size_t a = 0; a < g->alternatives; a++) {
        const espi_alternative *alternative = &g->alternative[a];
        for (size_t i = alternative->items; i < alternative->items + alternative->count; i++)
            if ((g->item[i] & ESPI_GRAMMAR_WORD) == 0) use[fill[g->item[i]]++] = a;
    }
    espi_free(fill);
    return true;
}

/* Marks the symbols that can come to an end, from the words upwards: a symbol can if one alternative has no
 * symbol left that cannot. `open` counts those per alternative, `stack` holds symbols newly marked. */
static void mark_ending(const espi_grammar *g, const size_t *first, const size_t *use, size_t *open, uint32_t *stack,
                        bool *ends)
{
    size_t depth = 0;
    for (size_t a = 0; a < g->alternatives; a++) {
        const espi_alternative *alternative = &g->alternative[a];
        open[a] = 0;
        for (size_t i = alternative->items; i < alternative->items + alternative->count; i++)
            open[a] += (g->item[i] & ESPI_GRAMMAR_WORD) == 0;
        if (open[a] == 0 && !ends[alternative->symbol]) {
            ends[alternative->symbol] = true;
            stack[depth++] = alternative->symbol;
        }
    }
    while (depth > 0) {
        const uint32_t symbol = stack[--depth];
        for (size_t u = first[symbol]; u < first[symbol + 1]; u++) {
            const uint32_t parent = g->alternative[use[u]].symbol;
            if (--open[use[u]] > 0 || ends[parent]) continue;
            ends[parent] = true;
            stack[depth++] = parent;
        }
    }
}

static esp_status check_ending(const espi_grammar *g, esp_error *err)
{
    const size_t n = g->symbols.count;
    size_t *first = espi_alloc_zero(n + 1, sizeof *first), *use = espi_alloc(g->items, sizeof *use);
    size_t *open = espi_alloc(g->alternatives, sizeof *open);
    uint32_t *stack = espi_alloc(n, sizeof *stack);
    bool *ends = espi_alloc_zero(n, sizeof *ends);
    esp_status status = ESP_OK;
    const bool room = first != NULL && use != NULL && open != NULL && stack != NULL && ends != NULL;
    if (!room || !index_uses(g, first, use)) {
        status = espi_no_memory(err);
    } else {
        mark_ending(g, first, use, open, stack, ends);
        char shown[96];
        for (size_t s = 0; s < n && status == ESP_OK; s++)
            if (!ends[s])
                status = FAIL_AT(g, err, g->rule[s].defined,
                                 "symbol %s can never come to an end: each of its alternatives leads to further "
                                 "symbols without one",
                                 espi_quote(g->symbols.symbol[s].text, g->symbols.symbol[s].size, shown));
    }
    espi_free(first);
    espi_free(use);
    espi_free(open);
    espi_free(stack);
    espi_free(ends);
    return status;
}

esp_status espi_grammar_prepare(espi_grammar *g, espi_grammar_place end, esp_error *err)
{
    if (g->classes == 0)
        return FAIL_AT(g, err, end, "the grammar has no class; add a line such as 'class NAME -> SYMBOL'");
    for (size_t s = 0; s < g->symbols.count; s++)
        if (g->rule[s].defined.line == 0) return fail_undefined(g, (uint32_t)s, err);
    for (size_t c = 1; c < g->classes; c++) g->class[c].weight += g->class[c - 1].weight;
    if (isinf(g->class[g->classes - 1].weight))
        return FAIL_AT(g, err, end, "the weights of the classes add up to more than a number holds");
    const esp_status status = arrange(g, err);
    return status == ESP_OK ? check_ending(g, err) : status;
}
