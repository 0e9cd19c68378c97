/* What the examples are like: sizes, depths, labels and words, and how much of that the model has never seen. */
#include "base/alloc.h"
#include "base/status.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 15, WORD = 80 }; /* labels of a list, and their bytes */

/* ------------------------------------------------------------ distributions */

static int by_size(const void *x, const void *y)
{
    const size_t a = *(const size_t *)x, b = *(const size_t *)y;
    return (a > b) - (a < b);
}

/* Sorts the values. */
static void add_distribution(espi_text *t, const char *key, size_t *value, size_t count)
{
    if (count == 0) return;
    qsort(value, count, sizeof *value, by_size);
    double sum = 0.0;
    espi_histogram h = espi_histogram_between((double)value[0], (double)value[count - 1], true);
    for (size_t i = 0; i < count; i++) {
        espi_histogram_add(&h, (double)value[i]);
        sum += (double)value[i];
    }
    espi_json_key(t, key);
    espi_json_open(t, '{');
    espi_drawn_number_of(t, "low", h.low);
    espi_drawn_number_of(t, "high", h.high);
    espi_json_key(t, "bins");
    espi_histogram_bins(t, &h);
    espi_drawn_number_of(t, "mean", sum / (double)count);
    espi_json_count_of(t, "median", value[(count - 1) / 2]);
    espi_json_count_of(t, "least", value[0]);
    espi_json_count_of(t, "most", value[count - 1]);
    espi_json_close(t, '}');
}

typedef struct ranked {
    size_t count;
    const espi_symbol *symbol;
} ranked;

static int by_count(const void *x, const void *y)
{
    const ranked *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    const size_t size = a->symbol->size < b->symbol->size ? a->symbol->size : b->symbol->size;
    const int order = memcmp(a->symbol->text, b->symbol->text, size);
    return order != 0 ? order : (a->symbol->size > b->symbol->size) - (a->symbol->size < b->symbol->size);
}

typedef struct familiar {        /* what the support examples have */
    const espi_symbols *symbols; /* NULL: it is not known */
    const size_t *times;         /* per symbol: how often, in the same role; NULL: each */
} familiar;

static bool is_strange(const familiar *k, const espi_symbol *s)
{
    if (k->symbols == NULL) return false;
    const uint32_t number = espi_symbols_find(k->symbols, s->text, s->size);
    return number == ESPI_NO_SYMBOL || (k->times != NULL && k->times[number] == 0);
}

/* The most frequent of some symbols, and how many of them are not known. */
static bool add_frequent(espi_text *t, const char *key, const espi_symbols *symbols, const size_t *times, familiar k)
{
    size_t count = 0, total = 0, strange = 0, strange_total = 0;
    ranked *order = espi_alloc(symbols->count, sizeof *order);
    if (order == NULL) return false;
    for (size_t i = 0; i < symbols->count; i++) {
        const espi_symbol *s = &symbols->symbol[i];
        if (times[i] == 0) continue;
        order[count++] = (ranked){times[i], s};
        total += times[i];
        if (!is_strange(&k, s)) continue;
        strange++;
        strange_total += times[i];
    }
    if (count > 0) qsort(order, count, sizeof *order, by_count);
    espi_json_key(t, key);
    espi_json_open(t, '{');
    espi_json_count_of(t, "different", count);
    espi_json_count_of(t, "total", total);
    if (k.symbols != NULL) espi_json_count_of(t, "strange", strange);
    if (k.symbols != NULL) espi_json_count_of(t, "strangeTotal", strange_total);
    espi_json_key(t, "top");
    espi_json_open(t, '[');
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        espi_json_open(t, '[');
        espi_drawn_text(t, order[i].symbol->text, order[i].symbol->size, WORD);
        espi_json_count(t, order[i].count);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
    espi_json_close(t, '}');
    espi_free(order);
    return true;
}

/* -------------------------------------------------------------------- trees */

typedef struct tree_counts {
    size_t *nodes, *depth, *times; /* per vertex: of its subtree, leaves included; occurrences in all examples */
    size_t *label, *word;          /* per symbol: occurrences as inner node, as leaf */
    size_t *example_nodes, *example_depth; /* per example */
} tree_counts;

static void free_counts(tree_counts *c)
{
    espi_free(c->nodes);
    espi_free(c->depth);
    espi_free(c->times);
    espi_free(c->label);
    espi_free(c->word);
    espi_free(c->example_nodes);
    espi_free(c->example_depth);
}

static bool make_counts(tree_counts *c, const espi_forest *f)
{
    c->nodes = espi_alloc_zero(f->vertices, sizeof *c->nodes);
    c->depth = espi_alloc_zero(f->vertices, sizeof *c->depth);
    c->times = espi_alloc_zero(f->vertices, sizeof *c->times);
    c->label = espi_alloc_zero(f->symbols.count, sizeof *c->label);
    c->word = espi_alloc_zero(f->symbols.count, sizeof *c->word);
    c->example_nodes = espi_alloc_zero(f->roots, sizeof *c->example_nodes);
    c->example_depth = espi_alloc_zero(f->roots, sizeof *c->example_depth);
    return c->nodes != NULL && c->depth != NULL && c->times != NULL && c->label != NULL && c->word != NULL &&
           c->example_nodes != NULL && c->example_depth != NULL;
}

/* Children have smaller numbers than parents: sizes on the way up, occurrences on the way down. */
static void count_trees(tree_counts *c, const espi_forest *f)
{
    for (size_t v = 0; v < f->vertices; v++) {
        const espi_ref *child = f->child + f->vertex[v].children;
        c->nodes[v] = c->depth[v] = 1;
        for (size_t k = 0; k < espi_production_of(f, (espi_ref)v)->arity; k++) {
            const size_t depth = espi_is_leaf(child[k]) ? 1 : c->depth[child[k]];
            c->nodes[v] += espi_is_leaf(child[k]) ? 1 : c->nodes[child[k]];
            if (depth + 1 > c->depth[v]) c->depth[v] = depth + 1;
        }
    }
    for (size_t i = 0; i < f->roots; i++) {
        const espi_ref root = f->root[i];
        if (root == ESPI_NO_NODE) continue;
        c->example_nodes[i] = espi_is_leaf(root) ? 1 : c->nodes[root];
        c->example_depth[i] = espi_is_leaf(root) ? 1 : c->depth[root];
        if (espi_is_leaf(root)) c->word[espi_leaf_symbol(root)]++;
        else c->times[root]++;
    }
    for (size_t v = f->vertices; v-- > 0;) {
        const espi_production *p = espi_production_of(f, (espi_ref)v);
        const espi_ref *child = f->child + f->vertex[v].children;
        c->label[p->label] += c->times[v];
        for (size_t k = 0; k < p->arity; k++) {
            if (espi_is_leaf(child[k])) c->word[espi_leaf_symbol(child[k])] += c->times[v];
            else c->times[child[k]] += c->times[v];
        }
    }
}

static bool add_trees(espi_text *t, const espi_forest *f, const espi_column *support)
{
    tree_counts c = {0}, of_support = {0};
    familiar labels = {0}, words = {0};
    bool ok = make_counts(&c, f) && (support == NULL || make_counts(&of_support, &support->trees));
    if (ok && support != NULL) {
        count_trees(&of_support, &support->trees);
        labels = (familiar){&support->trees.symbols, of_support.label};
        words = (familiar){&support->trees.symbols, of_support.word};
    }
    if (ok) {
        count_trees(&c, f);
        add_distribution(t, "sizes", c.example_nodes, f->roots);
        add_distribution(t, "depths", c.example_depth, f->roots);
        ok = add_frequent(t, "labels", &f->symbols, c.label, labels) &&
             add_frequent(t, "words", &f->symbols, c.word, words);
    }
    free_counts(&c);
    free_counts(&of_support);
    return ok;
}

/* ---------------------------------------------------- sequences and vectors */

/* Rows of anything: `start` are their places, item[i] is the symbol of the i-th. */
static bool add_rows(espi_text *t, const char *key, const size_t *start, size_t rows, const uint32_t *item,
                     const espi_symbols *symbols, const espi_symbols *of_support)
{
    size_t *length = espi_alloc(rows, sizeof *length), *times = espi_alloc_zero(symbols->count, sizeof *times);
    bool ok = length != NULL && times != NULL;
    for (size_t i = 0; ok && i < rows; i++) length[i] = start[i + 1] - start[i];
    for (size_t i = 0; ok && rows > 0 && i < start[rows]; i++) times[item[i]]++;
    if (ok) add_distribution(t, "sizes", length, rows);
    ok = ok && add_frequent(t, key, symbols, times, (familiar){of_support, NULL});
    espi_free(length);
    espi_free(times);
    return ok;
}

/* The first factor of each token is its word. */
static bool add_sequences(espi_text *t, const espi_sequences *s, size_t rows, const espi_column *known)
{
    uint32_t *word = espi_alloc(s->tokens, sizeof *word);
    if (word == NULL) return false;
    for (size_t i = 0; i < s->tokens; i++) word[i] = s->factor[s->token[i]];
    const bool ok =
        add_rows(t, "words", s->row, rows, word, &s->symbols, known != NULL ? &known->sequences.symbols : NULL);
    espi_free(word);
    return ok;
}

/* ------------------------------------------------------------------ columns */

static esp_status add_column(espi_report *r, const espi_column *c, const espi_column *known, esp_error *err)
{
    static const char *const types[] = {
        [ESP_COLUMN_TREE] = "tree", [ESP_COLUMN_SEQUENCE] = "sequence", [ESP_COLUMN_VECTOR] = "vector"};
    espi_text *t = &r->json;
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", c->name);
    espi_json_text_of(t, "type", types[c->type]);
    bool ok;
    if (c->type == ESP_COLUMN_TREE) {
        ok = add_trees(t, &c->trees, known);
    } else if (c->type == ESP_COLUMN_SEQUENCE) {
        ok = add_sequences(t, &c->sequences, c->rows, known);
    } else {
        const espi_vectors *v = &c->vectors;
        ok = add_rows(t, "features", v->row, c->rows, v->feature, &v->features,
                      known != NULL ? &known->vectors.features : NULL);
    }
    espi_json_close(t, '}');
    return ok ? ESP_OK : espi_no_memory(err);
}

static esp_status add_duplicates(espi_report *r, esp_error *err)
{
    espi_duplicates d;
    const esp_status status = espi_report_duplicates(r->model, r->data, &d, err);
    if (status != ESP_OK) return status;
    espi_json_key(&r->json, "duplicates");
    espi_json_open(&r->json, '{');
    espi_json_count_of(&r->json, "within", d.within);
    espi_json_count_of(&r->json, "conflicting", d.conflicting);
    espi_json_count_of(&r->json, "support", d.support);
    espi_json_close(&r->json, '}');
    return ESP_OK;
}

/* The data or, without them, the support examples. */
esp_status espi_report_profile(espi_report *r, esp_error *err)
{
    const esp_dataset *support = r->model->support, *of = r->data != NULL ? r->data : support;
    esp_status status = ESP_OK;
    espi_json_key(&r->json, "profile");
    espi_json_open(&r->json, '{');
    espi_json_flag_of(&r->json, "support", r->data == NULL);
    if (r->data != NULL && r->options.data_name != NULL) espi_json_text_of(&r->json, "name", r->options.data_name);
    if (r->data != NULL && r->data->target_name != NULL) espi_json_text_of(&r->json, "target", r->data->target_name);
    espi_json_count_of(&r->json, "examples", of->rows);
    if (r->data != NULL) espi_json_count_of(&r->json, "bad", r->data->bad_rows);
    espi_json_key(&r->json, "columns");
    espi_json_open(&r->json, '[');
    for (size_t i = 0; status == ESP_OK && i < of->columns; i++) {
        const espi_column *c = &of->column[i];
        size_t same;
        const bool known = of != support && espi_find_column(support, c->name, strlen(c->name), &same) &&
                           support->column[same].type == c->type;
        status = add_column(r, c, known ? &support->column[same] : NULL, err);
    }
    espi_json_close(&r->json, ']');
    if (status == ESP_OK && r->data != NULL) status = add_duplicates(r, err);
    espi_json_close(&r->json, '}');
    return status;
}
