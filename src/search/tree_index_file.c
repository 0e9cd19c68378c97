/* The sections of an index over trees. Arrays are used where they lie in the file; only their sizes are compared with
 * each other here. */
#include "base/alloc.h"
#include "search/tree_index.h"

#include <string.h>

static void put_array(espi_section_sink *s, const char *tag, const void *array, size_t count, size_t size)
{
    espi_put_begin(s, tag);
    espi_put(s, array, count * size);
    espi_put_end(s);
}

/* The names and item sizes of the sections, in their order. */
static const struct {
    const char *tag;
    size_t size;
} section[] = {{"symends", 8},  {"symtexts", 1}, {"symslots", 4}, {"rules", 4},    {"ruleends", 8}, {"rulekids", 4},
               {"ruleslot", 4}, {"nodeends", 8}, {"kidends", 8},  {"wordends", 8}, {"nodes", 4},    {"nodekids", 4},
               {"nodetime", 4}, {"kids", 4},     {"words", 4},    {"wordtime", 4}, {"common", 1},   {"postends", 8},
               {"postings", 8}, {"selves", 8},   {"selfexps", 8}};
enum { SECTIONS = sizeof section / sizeof *section };

typedef struct array {
    const void *at;
    size_t count;
} array;

void espi_tree_index_put(espi_section_sink *s, const espi_tree_index *x)
{
    const espi_tree_list *l = &x->list;
    const array all[SECTIONS] = {{x->symbol_end, x->symbols},
                                 {x->symbol_text, x->symbol_bytes},
                                 {x->symbol_slot, x->symbol_slots},
                                 {x->rule_label, x->rules},
                                 {x->rule_end, x->rules},
                                 {x->rule_kid, x->rule_kids},
                                 {x->rule_slot, x->rule_slots},
                                 {l->node_end, l->trees},
                                 {l->kid_end, l->trees},
                                 {l->word_end, l->trees},
                                 {l->node_group, l->nodes},
                                 {l->node_kids, l->nodes},
                                 {l->node_count, l->nodes},
                                 {l->kid, l->kids},
                                 {l->word_group, l->words},
                                 {l->word_count, l->words},
                                 {x->common, x->groups},
                                 {x->posting_end, x->groups},
                                 {x->posting, x->postings},
                                 {x->self, l->trees},
                                 {x->self_exponent, l->trees}};
    for (size_t i = 0; i < SECTIONS; i++) put_array(s, section[i].tag, all[i].at, all[i].count, section[i].size);
}

static bool is_power(size_t n) { return n > 0 && (n & (n - 1)) == 0; }

esp_status espi_tree_index_take(espi_section_file *f, size_t trees, bool bow, espi_tree_index *out)
{
    array a[SECTIONS];
    for (size_t i = 0; i < SECTIONS; i++) {
        espi_section s = {0};
        const esp_status status = espi_section_items(f, section[i].tag, section[i].size, &s, &a[i].count);
        if (status != ESP_OK) return status;
        a[i].at = s.at;
    }
    *out = (espi_tree_index){.list = {.trees = trees,
                                      .nodes = a[10].count,
                                      .kids = a[13].count,
                                      .words = a[14].count,
                                      .node_end = a[7].at,
                                      .kid_end = a[8].at,
                                      .word_end = a[9].at,
                                      .node_group = a[10].at,
                                      .node_kids = a[11].at,
                                      .node_count = a[12].at,
                                      .kid = a[13].at,
                                      .word_group = a[14].at,
                                      .word_count = a[15].at},
                             .symbols = a[0].count,
                             .rules = a[3].count,
                             .groups = a[16].count,
                             .symbol_end = a[0].at,
                             .symbol_text = a[1].at,
                             .symbol_bytes = a[1].count,
                             .symbol_slot = a[2].at,
                             .symbol_slots = a[2].count,
                             .rule_label = a[3].at,
                             .rule_end = a[4].at,
                             .rule_kid = a[5].at,
                             .rule_kids = a[5].count,
                             .rule_slot = a[6].at,
                             .rule_slots = a[6].count,
                             .common = a[16].at,
                             .posting_end = a[17].at,
                             .posting = a[18].at,
                             .postings = a[18].count,
                             .self = a[19].at,
                             .self_exponent = a[20].at};
    const bool right = a[4].count == a[3].count && a[7].count == trees && a[8].count == trees && a[9].count == trees &&
                       a[11].count == a[10].count && a[12].count == a[10].count && a[15].count == a[14].count &&
                       a[16].count == a[3].count + (bow ? a[0].count : 0) && a[17].count == a[16].count &&
                       a[19].count == trees && a[20].count == trees && is_power(a[2].count) && is_power(a[6].count) &&
                       a[16].count < ESPI_WORD;
    return right ? ESP_OK : espi_file_wrong(f, "its sections do not fit together");
}
