/* Mining over a dataset: the classes, the leaves that select, and one list of all they found. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "mine/mine.h"

#include <string.h>

struct esp_patterns {
    espi_rank *rank;
    size_t count, capacity;
    char *positive;
    espi_mine_stats stats;
};

/* ------------------------------------------------------------------ classes */

/* Whether two target texts are the same class: equal numbers are, however they are written. */
static bool same_class(const espi_symbol *a, const char *text, size_t size, bool numbers)
{
    double x, y;
    if (a->size == size && memcmp(a->text, text, size) == 0) return true;
    return numbers && espi_number_parse(a->text, a->size, &x) && espi_number_parse(text, size, &y) && x == y;
}

/* Whether class a comes before class b: numbers by value, others by bytes, as learners order them. */
static bool before(const espi_symbol *a, const espi_symbol *b)
{
    double x, y;
    if (espi_number_parse(a->text, a->size, &x) && espi_number_parse(b->text, b->size, &y)) return x < y;
    return strcmp(a->text, b->text) < 0;
}

/* The different classes of the examples; class_of is per target text. The caller frees it and *class. */
static bool find_classes(const esp_dataset *data, const espi_symbol ***class, size_t *classes, uint32_t **class_of)
{
    const espi_symbols *texts = &data->target_texts;
    const bool numbers = esp_dataset_target_is_number(data);
    *class = espi_alloc(texts->count, sizeof **class);
    *class_of = espi_alloc(texts->count, sizeof **class_of);
    *classes = 0;
    if (*class == NULL || *class_of == NULL) return false;
    for (size_t i = 0; i < texts->count; i++) (*class_of)[i] = ESPI_NO_SYMBOL;
    for (size_t r = 0; r < data->rows; r++) {
        const uint32_t t = data->target[r];
        if ((*class_of)[t] != ESPI_NO_SYMBOL) continue;
        const espi_symbol *s = &texts->symbol[t];
        size_t c = *classes;
        if (numbers)
            for (c = 0; c < *classes && !same_class((*class)[c], s->text, s->size, true);) c++;
        if (c == *classes) (*class)[(*classes)++] = s;
        (*class_of)[t] = (uint32_t)c;
    }
    return true;
}

static esp_status unknown_class(const espi_symbol *const *class, size_t classes, const char *positive, esp_error *err)
{
    char list[400] = "", quoted[96];
    for (size_t i = 0; i < classes; i++) {
        if (i > 0) espi_append(list, sizeof list, ", ");
        espi_append(list, sizeof list, class[i] -> text);
    }
    return espi_fail(err, ESP_ERR_PARAM, "no example is of class %s; the classes are %s",
                     espi_quote(positive, strlen(positive), quoted), list);
}

/* Which class is positive. */
static esp_status choose_class(const esp_dataset *data, const espi_symbol *const *class, size_t classes,
                               const char *positive, size_t *chosen, esp_error *err)
{
    const bool numbers = esp_dataset_target_is_number(data);
    char quoted[96], all[48];
    if (classes == 1)
        return espi_fail(err, ESP_ERR_PARAM, "%s of class %s; mining needs two classes",
                         espi_all_examples(data->rows, all), espi_quote(class[0] -> text, class[0] -> size, quoted));
    if (positive != NULL) {
        for (size_t i = 0; i < classes; i++) {
            *chosen = i;
            if (same_class(class[i], positive, strlen(positive), numbers)) return ESP_OK;
        }
        return unknown_class(class, classes, positive, err);
    }
    if (classes > 2)
        return espi_suggest(
            err,
            espi_fail(err, ESP_ERR_PARAM,
                      "the target '%s' has %zu different %s; mining tells one class from the rest, so name it",
                      data->target_name, classes, numbers ? "numbers" : "classes"),
            "positive", class[0] -> text);
    *chosen = before(class[0], class[1]) ? 1 : 0;
    return ESP_OK;
}

/* positive[row] and the name of the class. */
static esp_status split(const esp_dataset *data, const char *wanted, uint8_t *positive, char **name, esp_error *err)
{
    const espi_symbol **class = NULL;
    uint32_t *class_of = NULL;
    size_t classes, chosen = 0;
    if (data->target_name == NULL) return espi_no_target(ESP_ERR_PARAM, err);
    if (data->rows == 0) return espi_fail(err, ESP_ERR_PARAM, "there are no examples; mining needs two classes");
    esp_status status = find_classes(data, &class, &classes, &class_of) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = choose_class(data, class, classes, wanted, &chosen, err);
    for (size_t r = 0; status == ESP_OK && r < data->rows; r++) positive[r] = class_of[data->target[r]] == chosen;
    if (status == ESP_OK && (*name = espi_copy_text(class[chosen] -> text, class[chosen] -> size)) == NULL)
        status = espi_no_memory(err);
    espi_free((void *)class);
    espi_free(class_of);
    return status;
}

/* ------------------------------------------------------------------ options */

static esp_status read_options(const espi_leaf *leaf, const esp_mine_options *given, espi_mine_options *o,
                               esp_error *err)
{
    char quoted[96];
    *o = espi_leaf_options(leaf);
    if (given == NULL) return ESP_OK;
    if (given->min_support > 0) o->min_support = given->min_support;
    if (given->max_length > 0) o->max_length = given->max_length;
    o->top = given->top;
    o->no_pruning = given->no_pruning;
    if (given->tau != NULL && (!espi_number_parse(given->tau, strlen(given->tau), &o->tau) || o->tau < 0.0))
        return espi_fail(err, ESP_ERR_PARAM, "tau is %s; allowed is a number >= 0",
                         espi_quote(given->tau, strlen(given->tau), quoted));
    if (given->metric == NULL) return ESP_OK;
    for (size_t i = 0; espi_metric_names[i] != NULL; i++) {
        o->metric = (espi_metric)i;
        if (strcmp(espi_metric_names[i], given->metric) == 0) return ESP_OK;
    }
    return espi_fail(err, ESP_ERR_PARAM, "unknown metric %s; there are chi2, gtest and mi",
                     espi_quote(given->metric, strlen(given->metric), quoted));
}

/* --------------------------------------------------------------------- lists */

static bool add_found(esp_patterns *p, const espi_selection *selection)
{
    const size_t count = espi_selection_set(selection)->patterns;
    espi_rank *rank = espi_selection_rank(selection);
    const bool ok = rank != NULL && espi_reserve(&p->rank, &p->capacity, p->count + count, sizeof *p->rank);
    for (size_t i = 0; ok && i < count; i++) {
        p->rank[p->count++] = rank[i];
        rank[i].text = NULL;
    }
    espi_ranks_free(rank, count);
    return ok;
}

static esp_status mine_leaves(const esp_kernel *kernel, const esp_dataset *data, const uint8_t *positive,
                              const esp_mine_options *given, const esp_run *run, esp_patterns *p, esp_error *err)
{
    esp_status status = ESP_OK;
    size_t leaves = 0;
    for (size_t i = 0; i < kernel->leaves && status == ESP_OK; i++) {
        const espi_leaf *leaf = &kernel->leaf[i];
        if (!espi_leaf_selects(leaf)) continue;
        const espi_column *column;
        espi_mine_options options;
        espi_mine_stats stats;
        espi_selection *selection = NULL;
        status = read_options(leaf, given, &options, err);
        if (status == ESP_OK) status = espi_leaf_column(leaf, data, &column, err);
        if (status == ESP_OK) status = espi_mine_column(&options, column, positive, NULL, run, &selection, &stats, err);
        if (status != ESP_OK) break;
        p->stats.visited += stats.visited;
        p->stats.pruned += stats.pruned;
        if (!add_found(p, selection)) status = espi_no_memory(err);
        espi_selection_free(selection);
        leaves++;
    }
    if (status == ESP_OK && leaves == 0)
        status =
            espi_fail(err, ESP_ERR_PARAM, "%s selects no patterns; mining needs fseq(...) or fsst(...)", kernel->text);
    if (status != ESP_OK || leaves == 1) return status; /* one list is in order already */
    espi_ranks_sort(p->rank, p->count);
    while (given != NULL && given->top > 0 && p->count > given->top) espi_free(p->rank[--p->count].text);
    return ESP_OK;
}

esp_status esp_mine(const esp_kernel *kernel, const esp_dataset *data, const esp_mine_options *options,
                    const esp_run *run, esp_patterns **out, esp_error *err)
{
    *out = NULL;
    esp_patterns *p = espi_alloc_zero(1, sizeof *p);
    uint8_t *positive = espi_alloc(data->rows, sizeof *positive);
    esp_status status = p != NULL && positive != NULL ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) status = split(data, options != NULL ? options->positive : NULL, positive, &p->positive, err);
    if (status == ESP_OK) status = mine_leaves(kernel, data, positive, options, run, p, err);
    espi_free(positive);
    if (status == ESP_OK) *out = p;
    else esp_patterns_free(p);
    return status;
}

void esp_patterns_free(esp_patterns *p)
{
    if (p == NULL) return;
    espi_ranks_free(p->rank, p->count);
    espi_free(p->positive);
    espi_free(p);
}

size_t esp_patterns_count(const esp_patterns *p) { return p->count; }
double esp_patterns_value(const esp_patterns *p, size_t i) { return p->rank[i].statistic; }
const char *esp_patterns_text(const esp_patterns *p, size_t i) { return p->rank[i].text; }
const char *esp_patterns_positive(const esp_patterns *p) { return p->positive; }

size_t esp_patterns_examples(const esp_patterns *p, size_t i, size_t *positive)
{
    if (positive != NULL) *positive = p->rank[i].y;
    return p->rank[i].x;
}

uint64_t esp_patterns_visited(const esp_patterns *p, uint64_t *pruned)
{
    if (pruned != NULL) *pruned = p->stats.pruned;
    return p->stats.visited;
}
