/* A selection: the kept patterns of one fseq or fsst kernel, and their order for people. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/pattern/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

espi_selection *espi_selection_new(espi_selection_kind kind)
{
    espi_selection *s = espi_alloc_zero(1, sizeof *s);
    if (s == NULL) return NULL;
    s->kind = kind;
    const bool trees = kind == ESPI_SELECTED_TREES;
    if (espi_patterns_make(trees ? &s->fragments.set : &s->trie.set, NULL, 0, trees)) return s;
    espi_free(s);
    return NULL;
}

void espi_selection_free(espi_selection *s)
{
    if (s == NULL) return;
    espi_trie_free(&s->trie);
    espi_fragments_free(&s->fragments);
    espi_free(s);
}

const espi_patterns *espi_selection_set(const espi_selection *s)
{
    return s->kind == ESPI_SELECTED_SEQUENCES ? &s->trie.set : &s->fragments.set;
}

void espi_selection_text(const espi_selection *s, size_t pattern, espi_text *text)
{
    if (s->kind == ESPI_SELECTED_SEQUENCES) espi_trie_text(&s->trie, pattern, text);
    else espi_fragments_text(&s->fragments, pattern, text);
}

/* -------------------------------------------------------------------- checks */

static const char *check_nodes(const espi_patterns *s, size_t labels)
{
    if (s->nodes == 0 || s->nodes >= ESPI_NO_NODE) return "the number of its nodes is wrong";
    if (s->parent[0] != 0 || s->first[0] != 1 || s->first[s->nodes] != s->nodes) return "its root is wrong";
    for (size_t v = 0; v < s->nodes; v++)
        if (s->first[v + 1] < s->first[v] || s->first[v + 1] > s->nodes) return "the children of a node are wrong";
    for (size_t v = 1; v < s->nodes; v++) {
        const uint32_t p = s->parent[v];
        if (p >= v || v < s->first[p] || v >= s->first[p + 1]) return "the parent of a node is wrong";
        if (s->label[v] >= labels) return "a node has an unknown label";
        if (v == s->first[p]) continue;
        const uint32_t before = s->skip != NULL ? s->skip[v - 1] : 0, skip = s->skip != NULL ? s->skip[v] : 0;
        if (before > skip || (before == skip && s->label[v - 1] >= s->label[v])) return "children are not in order";
    }
    return NULL;
}

static const char *check_patterns(const espi_patterns *s)
{
    size_t patterns = 0;
    if (s->pattern[0] != ESPI_NO_NODE) return "the empty pattern is kept";
    for (size_t v = 1; v < s->nodes; v++) {
        if (s->pattern[v] == ESPI_NO_NODE) continue;
        if (patterns == s->patterns || s->pattern[v] != patterns || s->node[patterns] != v)
            return "a pattern is numbered wrongly";
        if (s->y[patterns] > s->x[patterns] || !(s->statistic[patterns] >= 0.0) || isinf(s->statistic[patterns]))
            return "the counts of a pattern are wrong";
        patterns++;
    }
    return patterns == s->patterns ? NULL : "a pattern has no node";
}

static const char *check_productions(const espi_fragments *f)
{
    if (f->productions > 0 && f->children[0] != 0) return "its productions are wrong";
    for (size_t p = 0; p < f->productions; p++) {
        if (f->children[p + 1] <= f->children[p]) return "a production has no children";
        if (f->label[p] >= f->symbols.count) return "a production has an unknown label";
        for (size_t k = f->children[p]; k < f->children[p + 1]; k++)
            if (f->child_label[k] / 2 >= f->symbols.count) return "a production has an unknown child";
    }
    return NULL;
}

/* Every step must find the open node that it expands. */
static const char *check_steps(const espi_fragments *f, bool *memory)
{
    const espi_patterns *s = &f->set;
    uint64_t *open = espi_alloc(s->nodes, sizeof *open);
    const char *wrong = NULL;
    *memory = open != NULL;
    if (open == NULL) return NULL;
    open[0] = 1;
    for (size_t v = 1; wrong == NULL && v < s->nodes; v++) {
        const uint32_t p = s->label[v];
        if (s->skip[v] >= open[s->parent[v]]) wrong = "a step expands a node that is not there";
        open[v] = open[s->parent[v]] - s->skip[v] - 1;
        for (size_t k = f->children[p]; k < f->children[p + 1]; k++) open[v] += f->child_label[k] % 2;
    }
    espi_free(open);
    return wrong;
}

const char *espi_selection_check(const espi_selection *s, bool *memory)
{
    const bool trees = s->kind == ESPI_SELECTED_TREES;
    *memory = true;
    const char *wrong = trees ? check_productions(&s->fragments) : NULL;
    if (wrong == NULL && trees && s->fragments.set.skip == NULL) wrong = "its steps are missing";
    if (wrong == NULL)
        wrong = check_nodes(espi_selection_set(s), trees ? s->fragments.productions : s->trie.symbols.count);
    if (wrong == NULL) wrong = check_patterns(espi_selection_set(s));
    if (wrong == NULL && trees) wrong = check_steps(&s->fragments, memory);
    return wrong;
}

/* --------------------------------------------------------------------- order */

static int best_first(const void *x, const void *y)
{
    const espi_rank *a = x, *b = y;
    if (a->statistic != b->statistic) return a->statistic > b->statistic ? -1 : 1;
    const int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

void espi_ranks_free(espi_rank *rank, size_t count)
{
    for (size_t i = 0; rank != NULL && i < count; i++) espi_free(rank[i].text);
    espi_free(rank);
}

void espi_ranks_sort(espi_rank *rank, size_t count)
{
    if (count > 1) qsort(rank, count, sizeof *rank, best_first);
}

espi_rank *espi_selection_rank(const espi_selection *s)
{
    const espi_patterns *set = espi_selection_set(s);
    espi_rank *rank = espi_alloc_zero(set->patterns, sizeof *rank);
    for (size_t i = 0; rank != NULL && i < set->patterns; i++) {
        espi_text text = {0};
        espi_selection_text(s, i, &text);
        const size_t size = text.size;
        rank[i] = (espi_rank){.pattern = (uint32_t)i,
                              .x = set->x[i],
                              .y = set->y[i],
                              .statistic = set->statistic[i],
                              .size = size,
                              .text = espi_text_take(&text)};
        if (rank[i].text != NULL) continue;
        espi_ranks_free(rank, set->patterns);
        return NULL;
    }
    if (rank != NULL) espi_ranks_sort(rank, set->patterns);
    return rank;
}

esp_status espi_selection_limit(espi_selection *s, size_t top, esp_error *err)
{
    espi_patterns *set = s->kind == ESPI_SELECTED_SEQUENCES ? &s->trie.set : &s->fragments.set;
    const size_t patterns = set->patterns;
    if (top == 0 || patterns <= top) return ESP_OK;
    espi_rank *rank = espi_selection_rank(s);
    bool *keep = espi_alloc_zero(patterns, sizeof *keep);
    bool ok = rank != NULL && keep != NULL;
    for (size_t i = 0; ok && i < top; i++) keep[rank[i].pattern] = true;
    ok = ok && espi_patterns_keep(set, keep);
    espi_ranks_free(rank, patterns);
    espi_free(keep);
    return ok ? ESP_OK : espi_no_memory(err);
}
