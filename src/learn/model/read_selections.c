/* The patterns that the kernel of a model selects, read from its file without trust (read.c). The arrays are
 * those of pattern.h; what follows from others is made anew, and espi_selection_check looks at all of them. */
#include "base/alloc.h"
#include "learn/model/file.h"
#include "kernel/pattern/pattern.h"

/* A section of as many numbers as the set has nodes. */
static esp_status read_per_node(espi_section_file *f, const char *tag, size_t nodes, uint32_t **out)
{
    size_t count;
    const esp_status status = espi_section_u32(f, tag, out, &count);
    if (status != ESP_OK || count == nodes) return status;
    return espi_file_wrong(f, "section '%s': there are %zu numbers instead of %zu", tag, count, nodes);
}

/* Nodes, counts and values of the patterns. */
static esp_status read_kept(espi_section_file *f, espi_patterns *set)
{
    espi_section s = {0};
    esp_status status = espi_section_items(f, "patterns", 12, &s, &set->patterns);
    if (status != ESP_OK) return status;
    set->node = espi_alloc(set->patterns, sizeof *set->node);
    set->x = espi_alloc(set->patterns, sizeof *set->x);
    set->y = espi_alloc(set->patterns, sizeof *set->y);
    if (set->node == NULL || set->x == NULL || set->y == NULL) return espi_no_memory(f->err);
    for (size_t i = 0; i < set->patterns; i++) {
        set->node[i] = espi_u32_at(s.at + 12 * i);
        set->x[i] = espi_u32_at(s.at + 12 * i + 4);
        set->y[i] = espi_u32_at(s.at + 12 * i + 8);
        if (set->node[i] >= set->nodes) return espi_section_wrong(f, s, "a pattern has an unknown node");
    }
    return espi_section_doubles(f, "values", set->patterns, &set->statistic);
}

static esp_status read_patterns(espi_section_file *f, espi_patterns *set, bool skips)
{
    esp_status status = espi_section_u32(f, "parents", &set->parent, &set->nodes);
    if (status == ESP_OK && (set->nodes == 0 || set->nodes >= ESPI_NO_NODE))
        status = espi_file_wrong(f, "section 'parents': the number of nodes is wrong");
    for (size_t v = 1; status == ESP_OK && v < set->nodes; v++)
        if (set->parent[v] >= v || set->parent[v] < set->parent[v - 1])
            status = espi_file_wrong(f, "section 'parents': a node comes before its parent");
    if (status == ESP_OK) status = read_per_node(f, "labels", set->nodes, &set->label);
    if (status == ESP_OK && skips) status = read_per_node(f, "skips", set->nodes, &set->skip);
    if (status == ESP_OK) status = read_kept(f, set);
    if (status == ESP_OK && !espi_patterns_finish(set)) status = espi_no_memory(f->err);
    return status;
}

static esp_status read_productions(espi_section_file *f, espi_fragments *fragments)
{
    espi_section s = {0};
    size_t kids, at = 0;
    esp_status status = espi_section_items(f, "rules", 8, &s, &fragments->productions);
    if (status == ESP_OK) status = espi_section_u32(f, "rulekids", &fragments->child_label, &kids);
    if (status != ESP_OK) return status;
    fragments->label = espi_alloc(fragments->productions, sizeof *fragments->label);
    fragments->children = espi_alloc(fragments->productions + 1, sizeof *fragments->children);
    if (fragments->label == NULL || fragments->children == NULL) return espi_no_memory(f->err);
    fragments->children[0] = 0;
    for (size_t p = 0; p < fragments->productions; p++) {
        const uint32_t arity = espi_u32_at(s.at + 8 * p + 4);
        if (arity > kids - at || at + arity > UINT32_MAX) return espi_section_wrong(f, s, "there are too few children");
        fragments->label[p] = espi_u32_at(s.at + 8 * p);
        fragments->children[p + 1] = (uint32_t)(at += arity);
    }
    return at == kids ? ESP_OK : espi_section_wrong(f, s, "there are too many children");
}

static esp_status read_selection(espi_section_file *f, espi_leaf *leaf)
{
    espi_selection *s = leaf->selection = espi_alloc_zero(1, sizeof *s);
    if (s == NULL) return espi_no_memory(f->err);
    s->kind = leaf->class->selects->kind;
    if (s->kind == ESPI_SELECTED_SEQUENCES) {
        const esp_status status = espi_section_symbols(f, "symbols", &s->trie.symbols);
        return status == ESP_OK ? read_patterns(f, &s->trie.set, false) : status;
    }
    esp_status status = espi_section_symbols(f, "symbols", &s->fragments.symbols);
    if (status == ESP_OK) status = read_productions(f, &s->fragments);
    return status == ESP_OK ? read_patterns(f, &s->fragments.set, true) : status;
}

esp_status espi_selections_read(espi_section_file *f, esp_model *m)
{
    esp_error why = {0};
    if (espi_check_variants(m, &why) != ESP_OK) return espi_file_wrong(f, "%s", why.message);
    m->variant = espi_alloc_zero(m->outputs, sizeof(esp_kernel *));
    esp_status status = m->variant == NULL ? espi_no_memory(f->err) : ESP_OK;
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++) {
        status = espi_kernel_copy(m->kernel, &m->variant[k], f->err);
        for (size_t i = 0; status == ESP_OK && i < m->kernel->leaves; i++)
            if (espi_leaf_selects(&m->variant[k]->leaf[i])) status = read_selection(f, &m->variant[k]->leaf[i]);
    }
    return status;
}
