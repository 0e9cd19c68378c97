/* Learning grammar rules from trees: a child of a production is optional where the production without it is itself seen
 * often. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/kernel.h"
#include "kernel/grammar_tree/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

esp_status espi_rules_trees(const esp_dataset *data, const char *name, const espi_forest **out, esp_error *err)
{
    size_t index = 0, trees = 0;
    if (name != NULL && !espi_find_column(data, name, strlen(name), &index))
        return espi_fail(err, ESP_ERR_PARAM, "there is no column '%s'", name);
    for (size_t i = 0; name == NULL && i < data->columns; i++) {
        if (data->column[i].type != ESP_COLUMN_TREE) continue;
        if (trees++ > 0)
            return espi_fail(err, ESP_ERR_PARAM, "which column is meant? There are several of trees: '%s', '%s'",
                             data->column[index].name, data->column[i].name);
        index = i;
    }
    if (name == NULL && trees == 0) return espi_fail(err, ESP_ERR_PARAM, "the data have no column of trees");
    if (data->column[index].type != ESP_COLUMN_TREE)
        return espi_fail(err, ESP_ERR_PARAM, "column '%s' does not hold trees", name);
    *out = &data->column[index].trees;
    return ESP_OK;
}

/* ---------------------------------------------------------------- counting */

/* How often each production occurs in the trees; NULL if memory is out. Children have smaller numbers, so that a pass
 * from the top knows how often a vertex occurs before it comes to its children. */
static uint64_t *count_productions(const espi_forest *f)
{
    uint64_t *vertex = espi_alloc_zero(f->vertices, sizeof *vertex);
    uint64_t *count = espi_alloc_zero(f->productions, sizeof *count);
    for (size_t i = 0; vertex != NULL && i < f->roots; i++)
        if (f->root[i] != ESPI_NO_NODE && !espi_is_leaf(f->root[i])) vertex[f->root[i]]++;
    for (size_t v = f->vertices; vertex != NULL && count != NULL && v-- > 0;) {
        const espi_ref *child = f->child + f->vertex[v].children;
        const espi_production *p = espi_production_of(f, (espi_ref)v);
        count[f->vertex[v].production] += vertex[v];
        for (size_t k = 0; k < p->arity; k++)
            if (!espi_is_leaf(child[k])) vertex[child[k]] += vertex[v];
    }
    if (vertex == NULL) {
        espi_free(count);
        count = NULL;
    }
    espi_free(vertex);
    return count;
}

/* ---------------------------------------------------------------- learning */

typedef struct rule { /* productions that a file of rules cannot tell apart: one may have a word where the other has a
                         node */
    char *name;       /* without marks */
    uint64_t count;
    size_t production; /* one of them */
    size_t optional;   /* where its marks start */
} rule;

typedef struct rule_learner {
    const espi_forest *forest;
    uint64_t *count; /* per production */
    uint64_t least;
    espi_symbols names; /* rules by name */
    rule *rule;
    size_t rule_capacity;
    bool *optional;
    size_t optionals, optional_capacity;
    uint32_t *shorter; /* a production without one child */
    size_t shorter_capacity;
    esp_grammar_counts counts;
} rule_learner;

static void add_rule_text(const rule_learner *w, const espi_production *p, const bool *optional, espi_text *text)
{
    const espi_symbol *s = &w->forest->symbols.symbol[p->label];
    espi_rules_add_label(text, s->text, s->size);
    espi_text_string(text, " ->");
    for (size_t k = 0; k < p->arity; k++) {
        const bool marked = optional != NULL && optional[k];
        s = &w->forest->symbols.symbol[w->forest->child_label[p->children + k] >> 1];
        espi_text_string(text, marked ? " [" : " ");
        espi_rules_add_label(text, s->text, s->size);
        if (marked) espi_text_string(text, "]");
    }
}

static bool can_write(const rule_learner *w, const espi_production *p)
{
    const espi_symbol *s = &w->forest->symbols.symbol[p->label];
    bool can = espi_rules_can_hold(s->text, s->size);
    for (size_t k = 0; can && k < p->arity; k++) {
        s = &w->forest->symbols.symbol[w->forest->child_label[p->children + k] >> 1];
        can = espi_rules_can_hold(s->text, s->size);
    }
    return can;
}

/* The rule of a production, added if new. NULL: memory is out. */
static rule *rule_of(rule_learner *w, size_t number)
{
    const espi_production *p = &w->forest->production[number];
    const size_t known = w->names.count;
    espi_text text = {0};
    add_rule_text(w, p, NULL, &text);
    if (text.failed || !espi_reserve(&w->rule, &w->rule_capacity, known + 1, sizeof *w->rule) ||
        !espi_reserve(&w->optional, &w->optional_capacity, w->optionals + p->arity, sizeof *w->optional)) {
        espi_text_free(&text);
        return NULL;
    }
    const uint32_t name = espi_symbols_add(&w->names, text.bytes, text.size);
    espi_text_free(&text);
    if (name == ESPI_NO_SYMBOL) return NULL;
    if (name == known) {
        w->rule[known] = (rule){.production = number, .optional = w->optionals};
        memset(w->optional + w->optionals, 0, p->arity * sizeof *w->optional);
        w->optionals += p->arity;
    }
    return &w->rule[name];
}

/* Whether the production is seen often without its child k. */
static bool often_without(const rule_learner *w, const espi_production *p, size_t k)
{
    size_t size = 0;
    for (size_t i = 0; i < p->arity; i++)
        if (i != k) w->shorter[size++] = w->forest->child_label[p->children + i];
    if (size == 0) return false;
    const uint32_t found = espi_forest_find_production(w->forest, p->label, w->shorter, size);
    return found != ESPI_NO_NODE && w->count[found] >= w->least;
}

static bool learn_rules(rule_learner *w)
{
    const espi_forest *f = w->forest;
    for (size_t i = 0; i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        if (p->inner == 0 || w->count[i] == 0) continue;
        w->counts.productions++;
        w->counts.frequent += w->count[i] >= w->least;
        if (!can_write(w, p)) {
            w->counts.unwritable++;
            continue;
        }
        rule *r = rule_of(w, i);
        if (r == NULL || !espi_reserve(&w->shorter, &w->shorter_capacity, p->arity, sizeof *w->shorter)) return false;
        r->count += w->count[i];
        for (size_t k = 0; k < p->arity; k++)
            if (often_without(w, p, k)) w->optional[r->optional + k] = true;
    }
    return true;
}

/* ----------------------------------------------------------------- writing */

static const char *const penn[] = {"JJ JJR JJS", "NN NNP NNPS NNS", "RB RBR RBS", "VB VBD VBG VBN VBP VBZ", NULL};
static const char *const ud[] = {"AUX VERB", "CCONJ SCONJ", "NOUN PROPN", NULL};
static const char *const none[] = {NULL};

static esp_status find_classes(const char *name, const char *const **out, esp_error *err)
{
    if (name == NULL || strcmp(name, "none") == 0) *out = none;
    else if (strcmp(name, "penn") == 0) *out = penn;
    else if (strcmp(name, "ud") == 0) *out = ud;
    else return espi_fail(err, ESP_ERR_PARAM, "unknown classes '%s'; there are penn, ud and none", name);
    return ESP_OK;
}

static void add_classes(esp_grammar_counts *counts, const char *const *classes, espi_text *text)
{
    for (; *classes != NULL; classes++) {
        espi_text_string(text, "= ");
        espi_text_string(text, *classes);
        espi_text_string(text, "\n");
        counts->classes++;
        counts->members++;
        for (const char *c = *classes; *c != '\0'; c++) counts->members += *c == ' ';
    }
}

static int by_name(const void *a, const void *b) { return strcmp(((const rule *)a)->name, ((const rule *)b)->name); }

/* The rules in order of their names, so that the order of the trees does not matter. */
static bool write_rules(rule_learner *w, bool all, espi_text *text)
{
    const size_t rules = w->names.count;
    for (size_t i = 0; i < rules; i++) w->rule[i].name = (char *)(uintptr_t)w->names.symbol[i].text;
    if (rules > 0) qsort(w->rule, rules, sizeof *w->rule, by_name);
    for (size_t i = 0; i < rules; i++) {
        const rule *r = &w->rule[i];
        const espi_production *p = &w->forest->production[r->production];
        size_t optional = 0;
        char comment[64];
        for (size_t k = 0; k < p->arity; k++) optional += w->optional[r->optional + k];
        w->counts.rules += optional > 0;
        w->counts.optional += optional;
        if (optional == 0 && !(all && r->count >= w->least)) continue;
        add_rule_text(w, p, w->optional + r->optional, text);
        snprintf(comment, sizeof comment, " # %" PRIu64 "\n", r->count);
        espi_text_string(text, comment);
    }
    w->counts.matched = w->counts.rules;
    return !text->failed;
}

/* Head of the file; written last, when all is counted. */
static void add_head(const rule_learner *w, espi_text *text)
{
    char line[200];
    snprintf(line, sizeof line,
             "# productions: %zu, seen at least %" PRIu64
             " times: %zu; rules with optional children: %zu, such children: %zu\n",
             w->counts.productions, w->least, w->counts.frequent, w->counts.rules, w->counts.optional);
    espi_text_string(text, line);
}

static void free_rule_learner(rule_learner *w)
{
    espi_free(w->count);
    espi_symbols_free(&w->names);
    espi_free(w->rule);
    espi_free(w->optional);
    espi_free(w->shorter);
}

esp_status esp_grammar_learn(const esp_dataset *data, const esp_grammar_options *options, char **text,
                             esp_grammar_counts *counts, esp_error *err)
{
    static const esp_grammar_options usual = {0};
    const esp_grammar_options *o = options != NULL ? options : &usual;
    const char *const *classes = NULL;
    rule_learner w = {.least = o->min_count > 0 ? o->min_count : 5};
    espi_text body = {0}, file = {0};
    *text = NULL;
    esp_status status = find_classes(o->classes, &classes, err);
    if (status == ESP_OK) status = espi_rules_trees(data, o->column, &w.forest, err);
    if (status != ESP_OK) return status;
    w.count = count_productions(w.forest);
    if (w.count != NULL && learn_rules(&w) && write_rules(&w, o->all, &body)) {
        add_head(&w, &file);
        add_classes(&w.counts, classes, &file);
        espi_text_add(&file, body.bytes, body.size);
        *text = espi_text_take(&file);
    }
    if (*text == NULL) status = espi_no_memory(err);
    else if (counts != NULL) *counts = w.counts;
    espi_text_free(&body);
    espi_text_free(&file);
    free_rule_learner(&w);
    return status;
}
