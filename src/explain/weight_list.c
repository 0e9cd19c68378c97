/* Features that are few enough to have a weight each: words of trees (bow), values of vectors (linear), and the
 * patterns that fseq and fsst selected.
 *
 *     w(u) = scale_u sum_i c_i v_u(x_i)       v_u: how often an example has u, the value of a vector, or phi_u of fseq
 *
 * scale_u is bow for words, lambda^productions for fragments, else 1. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "explain/source.h"

#include <math.h>

void espi_weight_list_free(espi_weight_list *l)
{
    espi_free(l->weight);
    espi_free(l->occurrences);
    espi_free(l->examples);
    espi_symbols_free(&l->names);
    *l = (espi_weight_list){0};
}

/* Productions of a fragment, tokens of a pattern, else 1. */
static size_t size_of(const espi_weight_list *l, size_t feature)
{
    if (l->selection == NULL) return 1;
    const espi_patterns *set = espi_selection_set(l->selection);
    size_t size = 0;
    for (uint32_t node = set->node[feature]; node != 0; node = set->parent[node]) size++;
    return size;
}

static bool is_fragments(const espi_weight_list *l) { return l->selection != NULL && l->kind == ESP_FEATURE_FRAGMENT; }

static double scale_of(const espi_weight_list *l, size_t feature)
{
    if (l->kind == ESP_FEATURE_WORD) return espi_leaf_value(l->leaf, "bow");
    if (!is_fragments(l)) return 1.0;
    return pow(espi_leaf_value(l->leaf, "lambda"), (double)size_of(l, feature));
}

/* -------------------------------------------------------------------- values */

typedef struct reader { /* of what was selected */
    uint32_t *map;
    espi_trie_walker trie;
    espi_fragment_walker fragment;
    espi_matched tree;
} reader;

static bool read_row(const espi_weight_list *l, reader *r, const espi_column *c, size_t row,
                     const espi_feature_value **feature, size_t *count)
{
    if (is_fragments(l)) { /* their counts: lambda is part of the weight */
        r->tree.forest = &c->trees;
        r->tree.map = r->map;
        const bool ok = espi_vertices_make(&r->tree.vertices, &c->trees, c->trees.root[row], &r->fragment) &&
                        espi_fragments_features(&l->selection->fragments, 1.0, &r->tree, &r->fragment);
        *feature = r->fragment.feature;
        *count = r->fragment.features;
        return ok;
    }
    const double lambda = espi_leaf_value(l->leaf, "lambda");
    const size_t gap = espi_leaf_value(l->leaf, "gap") != 0.0 ? 0 : SIZE_MAX;
    const bool ok = espi_token_places_make(&r->trie.places[0], &c->sequences, r->map, row) &&
                    espi_trie_features(&l->selection->trie, (espi_weighing){lambda, gap}, &r->trie);
    *feature = r->trie.feature;
    *count = r->trie.features;
    return ok;
}

static bool add_row(const espi_feature_value *feature, size_t count, espi_bag *bag)
{
    const size_t at = bag->rows > 0 ? bag->row[bag->rows] : 0;
    if (!espi_reserve(&bag->row, &bag->row_capacity, bag->rows + 2, sizeof *bag->row) ||
        !espi_reserve(&bag->feature, &bag->feature_capacity, at + count, sizeof *bag->feature) ||
        !espi_reserve(&bag->value, &bag->value_capacity, at + count, sizeof *bag->value))
        return false;
    for (size_t i = 0; i < count; i++) {
        bag->feature[at + i] = feature[i].pattern;
        bag->value[at + i] = feature[i].value;
    }
    bag->row[bag->rows++] = at;
    bag->row[bag->rows] = at + count;
    return true;
}

/* The values of all rows of a column; names that are not known are added if `grow`. */
static bool make_bag(const espi_weight_list *l, const espi_column *c, bool grow, espi_bag *bag)
{
    *bag = (espi_bag){0};
    /* Names are only looked up where they may not grow. */
    if (l->selection == NULL) return espi_bag_make(bag, c, (espi_symbols *)&l->names, grow);
    reader r = {.map = is_fragments(l) ? espi_fragments_map(&l->selection->fragments, &c->trees)
                                       : espi_symbols_map(&c->sequences.symbols, &l->selection->trie.symbols)};
    bool ok = r.map != NULL;
    for (size_t i = 0; ok && i < c->rows; i++) {
        const espi_feature_value *feature;
        size_t count;
        ok = read_row(l, &r, c, i, &feature, &count) && add_row(feature, count, bag);
    }
    espi_trie_walker_free(&r.trie);
    espi_fragment_walker_free(&r.fragment);
    espi_vertices_free(&r.tree.vertices);
    espi_free(r.map);
    return ok;
}

/* -------------------------------------------------------------------- weights */

/* The texts of selected patterns, by which other decision functions that selected them too are asked. */
static bool name_patterns(espi_weight_list *l)
{
    espi_text text = {0};
    bool ok = true;
    for (size_t u = 0; ok && u < l->features; u++) {
        text.size = 0;
        espi_selection_text(l->selection, u, &text);
        ok = !text.failed && espi_symbols_add(&l->names, text.bytes, text.size) == u;
    }
    espi_text_free(&text);
    return ok;
}

static esp_status make(espi_weight_list *l, const espi_column *support, const double *coefficient, size_t outputs,
                       esp_error *err)
{
    espi_bag bag;
    bool ok = make_bag(l, support, true, &bag);
    l->outputs = outputs;
    l->features = l->selection != NULL ? espi_selection_set(l->selection)->patterns : l->names.count;
    l->weight = espi_alloc_zero(l->features, outputs * sizeof *l->weight);
    ok = ok && (l->selection == NULL || name_patterns(l));
    l->occurrences = espi_alloc_zero(l->features, sizeof *l->occurrences);
    l->examples = espi_alloc_zero(l->features, sizeof *l->examples);
    double *size = espi_alloc_zero(l->features, outputs * sizeof *size); /* the sums of absolute values */
    ok = ok && l->weight != NULL && l->occurrences != NULL && l->examples != NULL && size != NULL;
    for (size_t i = 0; ok && i < bag.rows; i++)
        for (size_t e = bag.row[i]; e < bag.row[i + 1]; e++) {
            const size_t u = bag.feature[e];
            if (bag.value[e] == 0.0) continue; /* as good as none */
            /* How often an example has a value of a vector is no sum of values. */
            l->occurrences[u] += support->type == ESP_COLUMN_VECTOR ? 1.0 : bag.value[e];
            l->examples[u]++;
            for (size_t k = 0; k < outputs; k++) {
                const double part = coefficient[i * outputs + k] * bag.value[e];
                l->weight[u * outputs + k] += part;
                size[u * outputs + k] += fabs(part);
            }
        }
    espi_bag_free(&bag);
    for (size_t u = 0; ok && u < l->features; u++)
        for (size_t k = 0; k < outputs; k++) {
            double *weight = &l->weight[u * outputs + k];
            *weight = espi_rank_sum(*weight, size[u * outputs + k]) * scale_of(l, u);
        }
    espi_free(size);
    if (ok && !espi_all_finite(l->weight, l->features * outputs)) {
        espi_weight_list_free(l);
        return espi_fail(err, ESP_ERR_RANGE, "the weight of a feature is too large for a number");
    }
    if (ok) return ESP_OK;
    espi_weight_list_free(l);
    return espi_no_memory(err);
}

esp_status espi_weight_list_words(espi_weight_list *l, const espi_leaf *leaf, const espi_column *support,
                                  const double *coefficient, size_t outputs, esp_error *err)
{
    *l = (espi_weight_list){.kind = ESP_FEATURE_WORD, .leaf = leaf};
    return make(l, support, coefficient, outputs, err);
}

esp_status espi_weight_list_values(espi_weight_list *l, const espi_leaf *leaf, const espi_column *support,
                                   const double *coefficient, size_t outputs, esp_error *err)
{
    *l = (espi_weight_list){.kind = ESP_FEATURE_VALUE, .leaf = leaf};
    return make(l, support, coefficient, outputs, err);
}

esp_status espi_weight_list_selected(espi_weight_list *l, const espi_leaf *leaf, const espi_column *support,
                                     const double *coefficient, size_t outputs, esp_error *err)
{
    const bool trees = leaf->selection->kind == ESPI_SELECTED_TREES;
    *l = (espi_weight_list){
        .kind = trees ? ESP_FEATURE_FRAGMENT : ESP_FEATURE_PATTERN, .leaf = leaf, .selection = leaf->selection};
    return make(l, support, coefficient, outputs, err);
}

/* --------------------------------------------------------------------- search */

static bool offer(const espi_weight_list *l, size_t feature, double value, const espi_feature_query *q)
{
    const double weight = q->sign * l->weight[feature * l->outputs + q->output];
    if (!espi_shortlist_wants(q->shortlist, weight * value)) return true;
    const espi_found found = {.key = weight * value,
                              .weight = weight,
                              .value = value,
                              .term = q->term,
                              .size = size_of(l, feature),
                              .kind = l->kind,
                              .step = (uint32_t[]){(uint32_t)feature},
                              .steps = 1};
    return found.size > q->max_size || espi_shortlist_add(q->shortlist, &found);
}

bool espi_search_weight_list(const espi_weight_list *l, const espi_column *column, double scale,
                             const espi_feature_query *q)
{
    bool ok = true;
    for (size_t u = 0; column == NULL && ok && u < l->features; u++) ok = offer(l, u, 1.0, q);
    if (column == NULL) return ok;
    espi_bag bag;
    ok = make_bag(l, column, false, &bag);
    for (size_t e = 0; ok && bag.rows > 0 && e < bag.row[1]; e++)
        ok = offer(l, bag.feature[e], bag.value[e] * scale, q);
    espi_bag_free(&bag);
    return ok;
}

void espi_weight_list_facts(const espi_weight_list *l, size_t feature, espi_facts *facts)
{
    for (size_t k = 0; k < l->outputs; k++) facts->weight[k] = l->weight[feature * l->outputs + k];
    facts->examples = l->examples[feature];
    facts->occurrences = l->occurrences[feature];
}

void espi_weight_list_text(const espi_weight_list *l, size_t feature, espi_text *text)
{
    espi_text_add(text, l->names.symbol[feature].text, l->names.symbol[feature].size);
}

/* --------------------------------------------------------------------- shares */

typedef struct frame { /* a fragment that matches; its open nodes and the nodes of its productions lie in `node` */
    uint32_t at;       /* of the set */
    size_t open, opens, held, helds;
} frame;

typedef struct matcher { /* selected fragments at nodes of a tree, told by their places in the preorder */
    const espi_patterns *set;
    const espi_preorder *tree;
    const espi_forest *forest;
    const uint32_t *map;
    frame *frame;
    size_t frames, frame_capacity;
    uint32_t *node;
    size_t node_capacity;
} matcher;

/* The fragment one step longer: open node k gets its production. */
static bool step(matcher *m, const frame *f, size_t k, uint32_t child, size_t *top)
{
    const uint32_t at = m->node[f->open + k];
    const size_t inner = espi_production_of(m->forest, m->tree->node[at].ref)->inner;
    const size_t need = *top + f->helds + 1 + inner + f->opens - k - 1;
    if (!espi_reserve(&m->node, &m->node_capacity, need, sizeof *m->node) ||
        !espi_reserve(&m->frame, &m->frame_capacity, m->frames + 1, sizeof *m->frame))
        return false;
    frame next = {.at = child, .held = *top, .helds = f->helds + 1};
    for (size_t i = 0; i < f->helds; i++) m->node[(*top)++] = m->node[f->held + i];
    m->node[(*top)++] = at;
    next.open = *top;
    for (uint32_t c = m->tree->node[at].first; c != ESPI_NO_NODE; c = m->tree->node[c].next)
        if (!espi_is_leaf(m->tree->node[c].ref)) m->node[(*top)++] = c;
    for (size_t i = k + 1; i < f->opens; i++) m->node[(*top)++] = m->node[f->open + i];
    next.opens = *top - next.open;
    m->frame[m->frames++] = next;
    return true;
}

/* All fragments that match at one node. */
static bool match_at(matcher *m, uint32_t root, const espi_weight_list *l, size_t output, double scale, double *share,
                     size_t stride)
{
    if (!espi_reserve(&m->node, &m->node_capacity, 1, sizeof *m->node) ||
        !espi_reserve(&m->frame, &m->frame_capacity, 1, sizeof *m->frame))
        return false;
    m->node[0] = root;
    m->frame[0] = (frame){.opens = 1};
    m->frames = 1;
    while (m->frames > 0) {
        const frame f = m->frame[--m->frames];
        const uint32_t pattern = f.at == 0 ? ESPI_NO_NODE : m->set->pattern[f.at];
        for (size_t i = 0; pattern != ESPI_NO_NODE && i < f.helds; i++)
            share[m->node[f.held + i] * stride] += scale * l->weight[pattern * l->outputs + output] / (double)f.helds;
        size_t top = f.open + f.opens;
        for (size_t k = 0; k < f.opens; k++) {
            const espi_ref vertex = m->tree->node[m->node[f.open + k]].ref;
            const uint32_t p = m->map[m->forest->vertex[vertex].production];
            if (p == ESPI_NO_NODE) continue;
            const uint32_t child = espi_patterns_child(m->set, f.at, (uint32_t)k, p);
            if (child != ESPI_NO_NODE && !step(m, &f, k, child, &top)) return false;
        }
    }
    return true;
}

bool espi_weight_list_shares(const espi_weight_list *l, const espi_column *column, double scale, size_t output,
                             double sign, double *share, size_t stride)
{
    const espi_forest *f = &column->trees;
    espi_preorder tree = {0};
    matcher m = {.tree = &tree, .forest = f};
    uint32_t *map = is_fragments(l) ? espi_fragments_map(&l->selection->fragments, f) : NULL;
    bool ok = espi_preorder_make(&tree, f, f->root[0]) && (map != NULL || !is_fragments(l));
    m.map = map;
    if (ok && is_fragments(l)) m.set = &l->selection->fragments.set;
    for (size_t i = 0; ok && i < tree.nodes; i++) {
        const espi_ref ref = tree.node[i].ref;
        if (m.set != NULL && m.set->nodes > 0 && !espi_is_leaf(ref))
            ok = match_at(&m, (uint32_t)i, l, output, sign * scale, share, stride);
        if (l->kind != ESP_FEATURE_WORD || !espi_is_leaf(ref)) continue;
        const espi_symbol *s = &f->symbols.symbol[espi_leaf_symbol(ref)];
        const uint32_t word = espi_symbols_find(&l->names, s->text, s->size);
        if (word != ESPI_NO_SYMBOL) share[i * stride] += sign * scale * l->weight[word * l->outputs + output];
    }
    espi_preorder_free(&tree);
    espi_free(m.frame);
    espi_free(m.node);
    espi_free(map);
    return ok;
}
