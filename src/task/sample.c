/* Drawing labelled trees from a probabilistic grammar: a class by weight, then its start symbol is rewritten,
 * the leftmost open symbol first, each time by an alternative chosen by weight. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "data/writer.h"
#include "task/grammar.h"

enum { NODE_LIMIT = 100000, ROWS_PER_REPORT = 256, ROWS_PER_BLOCK = 4096 };

typedef struct frame {
    uint32_t symbol;
    size_t next, end; /* items still to do */
    size_t first;     /* its first child in sampler->node */
} frame;

typedef struct sampler {
    const espi_grammar *grammar;
    espi_random random;
    bool numbers; /* all classes are */
    esp_dataset *data;
    uint32_t *label, *leaf; /* symbol and word of the grammar -> symbol of the forest */
    frame *frame;
    size_t frames, frame_capacity;
    espi_ref *node; /* finished children of the open frames */
    size_t nodes, node_capacity;
    uint32_t *word; /* of the tree at hand, in order */
    size_t words, word_capacity;
} sampler;

static void sampler_free(sampler *s)
{
    espi_free(s->label);
    espi_free(s->leaf);
    espi_free(s->frame);
    espi_free(s->node);
    espi_free(s->word);
}

static bool sampler_start(sampler *s, const espi_grammar *grammar, uint64_t seed)
{
    double number;
    *s = (sampler){.grammar = grammar, .numbers = true};
    espi_random_seed(&s->random, seed);
    for (size_t i = 0; i < grammar->classes && s->numbers; i++)
        s->numbers = espi_number_parse(grammar->class[i].name, grammar->class[i].size, &number);
    s->label = espi_alloc(grammar->symbols.count, sizeof *s->label);
    s->leaf = espi_alloc(grammar->words.count, sizeof *s->leaf);
    return s->label != NULL && s->leaf != NULL;
}

/* A dataset for the next rows, which the caller takes over. */
static bool sampler_begin(sampler *s)
{
    for (size_t i = 0; i < s->grammar->symbols.count; i++) s->label[i] = ESPI_NO_SYMBOL;
    for (size_t i = 0; i < s->grammar->words.count; i++) s->leaf[i] = ESPI_NO_SYMBOL;
    s->data = espi_dataset_new(ESP_FORMAT_JSONL);
    return s->data != NULL;
}

/* The forest's number of a grammar's string, looked up once; only what occurs in a tree enters the forest. */
static bool translate(espi_forest *forest, const espi_symbol *symbol, size_t size, uint32_t *number)
{
    if (*number == ESPI_NO_SYMBOL) *number = espi_symbols_add(&forest->symbols, symbol->text, size);
    return *number != ESPI_NO_SYMBOL;
}

static size_t draw_class(sampler *s)
{
    const espi_grammar_class *class = s->grammar->class;
    const size_t last = s->grammar->classes - 1;
    const double at = espi_random_unit(&s->random) * class[last].weight;
    size_t c = 0;
    while (c < last && class[c].weight <= at) c++;
    return c;
}

static const espi_alternative *draw_alternative(sampler *s, uint32_t symbol)
{
    const espi_rule *rule = &s->grammar->rule[symbol];
    const espi_alternative *alternative = s->grammar->alternative + rule->first;
    size_t low = 0, high = rule->count - 1; /* the first whose running sum lies above `at` */
    const double at = espi_random_unit(&s->random) * alternative[high].weight;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (alternative[middle].weight <= at) low = middle + 1;
        else high = middle;
    }
    return &alternative[low];
}

static bool open_symbol(sampler *s, uint32_t symbol)
{
    if (!espi_reserve(&s->frame, &s->frame_capacity, s->frames + 1, sizeof *s->frame)) return false;
    const espi_alternative *chosen = draw_alternative(s, symbol);
    s->frame[s->frames++] =
        (frame){.symbol = symbol, .next = chosen->items, .end = chosen->items + chosen->count, .first = s->nodes};
    return true;
}

static bool add_word(sampler *s, espi_forest *forest, uint32_t word)
{
    const espi_symbol *symbol = &s->grammar->words.symbol[word];
    if (!translate(forest, symbol, symbol->size, &s->leaf[word]) ||
        !espi_reserve(&s->word, &s->word_capacity, s->words + 1, sizeof *s->word) ||
        !espi_reserve(&s->node, &s->node_capacity, s->nodes + 1, sizeof *s->node))
        return false;
    s->word[s->words++] = word;
    s->node[s->nodes++] = ESPI_LEAF | s->leaf[word];
    return true;
}

/* Turns the innermost frame, whose children are all finished, into a node, or leaves them to its parent. */
static bool close_symbol(sampler *s, espi_forest *forest)
{
    const frame *f = &s->frame[--s->frames];
    const espi_symbol *symbol = &s->grammar->symbols.symbol[f->symbol];
    const size_t size = espi_grammar_label_size(symbol);
    if (size == 0) return true;
    if (!translate(forest, symbol, size, &s->label[f->symbol])) return false;
    const espi_ref vertex = espi_forest_node(forest, s->label[f->symbol], s->node + f->first, s->nodes - f->first);
    if (vertex == ESPI_NO_NODE) return false;
    s->nodes = f->first;
    if (!espi_reserve(&s->node, &s->node_capacity, s->nodes + 1, sizeof *s->node)) return false;
    s->node[s->nodes++] = vertex;
    return true;
}

/* What grows without end is open many times over, one inside the other. */
static esp_status fail_growing(const sampler *s, const espi_grammar_class *class, esp_error *err)
{
    const espi_grammar *g = s->grammar;
    size_t *open = espi_alloc_zero(g->symbols.count, sizeof *open), worst = 0;
    if (open == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < s->frames; i++) open[s->frame[i].symbol]++;
    for (size_t i = 1; i < g->symbols.count; i++)
        if (open[i] > open[worst]) worst = i;
    espi_free(open);
    const espi_grammar_place place = g->rule[worst].defined;
    char name[96], symbol[96];
    return espi_fail_at(err, g->file, place.line, place.column,
                        "a tree of class %s grew beyond %d nodes because symbol %s keeps growing; lower the weights "
                        "of the alternatives that lead back to it",
                        espi_quote(class->name, class->size, name), NODE_LIMIT,
                        espi_quote(g->symbols.symbol[worst].text, g->symbols.symbol[worst].size, symbol));
}

static esp_status draw_tree(sampler *s, const espi_grammar_class *class, espi_forest *forest, espi_ref *root,
                            esp_error *err)
{
    s->frames = s->nodes = s->words = 0;
    bool room = open_symbol(s, class->start);
    for (size_t count = 1; room && s->frames > 0;) {
        frame *f = &s->frame[s->frames - 1];
        if (f->next == f->end) {
            room = close_symbol(s, forest);
            continue;
        }
        const uint32_t item = s->grammar->item[f->next++];
        if (++count > NODE_LIMIT) return fail_growing(s, class, err);
        room = (item & ESPI_GRAMMAR_WORD) != 0 ? add_word(s, forest, item & ~ESPI_GRAMMAR_WORD) : open_symbol(s, item);
    }
    if (!room) return espi_no_memory(err);
    *root = s->node[0];
    return ESP_OK;
}

static esp_status draw_row(sampler *s, esp_error *err)
{
    const espi_grammar_class *class = &s->grammar->class[draw_class(s)];
    espi_column *column;
    espi_ref root = ESPI_NO_NODE;
    espi_row_begin(s->data);
    esp_status status = espi_set_target(s->data, "y", class->name, class->size, s->numbers, err);
    if (status == ESP_OK) status = espi_row_column(s->data, "tree", 4, ESP_COLUMN_TREE, &column, err);
    if (status == ESP_OK) status = draw_tree(s, class, &column->trees, &root, err);
    if (status == ESP_OK) status = espi_set_tree(column, root, err);
    if (status == ESP_OK) status = espi_row_column(s->data, "words", 5, ESP_COLUMN_SEQUENCE, &column, err);
    for (size_t i = 0; i < s->words && status == ESP_OK; i++) {
        const espi_symbol *word = &s->grammar->words.symbol[s->word[i]];
        status = espi_add_token(column, word->text, word->size, err);
    }
    if (status == ESP_OK) status = espi_end_sequence(column, err);
    return status == ESP_OK ? espi_row_end(s->data, err) : status;
}

/* Draws the rows first .. end of `all` into s->data. */
static esp_status draw_rows(sampler *s, size_t first, size_t end, size_t all, const esp_run *run, esp_error *err)
{
    esp_status status = sampler_begin(s) ? ESP_OK : espi_no_memory(err);
    for (size_t row = first; row < end && status == ESP_OK; row++) {
        if (row % ROWS_PER_REPORT == 0) status = espi_progress(run, "sampling", (double)row / (double)all, err);
        if (status == ESP_OK) status = draw_row(s, err);
    }
    if (status == ESP_OK && end == all) status = espi_progress(run, "sampling", 1.0, err);
    return status;
}

static esp_status open_grammar(const char *path, size_t count, const esp_run *run, espi_grammar *out, esp_error *err)
{
    if (count == 0) return espi_fail(err, ESP_ERR_PARAM, "the number of trees to draw is 0; at least 1 is needed");
    return espi_grammar_read(path, run, out, err);
}

esp_status esp_dataset_sample(const char *grammar_path, size_t count, uint64_t seed, const esp_run *run,
                              esp_dataset **out, esp_error *err)
{
    espi_grammar grammar;
    sampler s;
    *out = NULL;
    esp_status status = open_grammar(grammar_path, count, run, &grammar, err);
    if (status != ESP_OK) return status;
    status = sampler_start(&s, &grammar, seed) ? draw_rows(&s, 0, count, count, run, err) : espi_no_memory(err);
    if (status == ESP_OK) *out = s.data;
    else esp_dataset_free(s.data);
    sampler_free(&s);
    espi_grammar_free(&grammar);
    return status;
}

static esp_status write_blocks(const espi_grammar *grammar, size_t count, uint64_t seed, const esp_run *run,
                               esp_format format, espi_output *output, esp_error *err)
{
    sampler s;
    esp_status status = sampler_start(&s, grammar, seed) ? ESP_OK : espi_no_memory(err);
    for (size_t first = 0; first < count && status == ESP_OK;) {
        const size_t end = count - first > ROWS_PER_BLOCK ? first + ROWS_PER_BLOCK : count;
        status = draw_rows(&s, first, end, count, run, err);
        if (status == ESP_OK) status = espi_write_rows(s.data, format, output, err);
        esp_dataset_free(s.data);
        first = end;
    }
    sampler_free(&s);
    return status;
}

esp_status esp_sample_write(const char *grammar_path, size_t count, uint64_t seed, const esp_run *run, const char *path,
                            esp_format format, esp_error *err)
{
    espi_grammar grammar;
    espi_output *output = NULL;
    esp_status status = espi_write_format(path, &format, err);
    if (status == ESP_OK) status = open_grammar(grammar_path, count, run, &grammar, err);
    if (status != ESP_OK) return status;
    status = espi_output_open(path, &output, err);
    if (status == ESP_OK) status = write_blocks(&grammar, count, seed, run, format, output, err);
    espi_grammar_free(&grammar);
    if (status == ESP_OK) return espi_output_commit(output, err);
    espi_output_discard(output);
    return status;
}
