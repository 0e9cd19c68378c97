/* How rules fit trees, and the warning of a kernel whose rules fit none. */
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/expression/kernel.h"
#include "kernel/grammar_tree/rules.h"

#include <stdio.h>
#include <string.h>

/* Labels of pre-terminals that the classes name. */
static bool count_seen(const espi_forest *f, const espi_rules *rules, size_t *seen)
{
    bool *counted = espi_alloc_zero(f->symbols.count, sizeof *counted);
    uint32_t *class = espi_rules_classes(rules, f);
    const bool ok = counted != NULL && class != NULL;
    for (size_t i = 0; ok && i < f->productions; i++) {
        const espi_production *p = &f->production[i];
        if (p->inner > 0 || class[p->label] == ESPI_NO_SYMBOL || counted[p->label]) continue;
        counted[p->label] = true;
        ++*seen;
    }
    espi_free(counted);
    espi_free(class);
    return ok;
}

/* How rules fit a forest. */
static bool fit(const espi_rules *rules, const espi_forest *f, esp_grammar_counts *c)
{
    *c = (esp_grammar_counts){.classes = rules->classes};
    size_t *matched = espi_alloc(rules->lines, sizeof *matched);
    bool *optional = matched == NULL ? NULL : espi_rules_optional(rules, f, matched);
    for (size_t i = 0; optional != NULL && i < rules->lines; i++) {
        c->rules += rules->line[i].optional > 0;
        c->optional += rules->line[i].optional;
        c->matched += rules->line[i].optional > 0 && matched[i] > 0;
    }
    for (size_t i = 0; i < f->productions; i++) c->productions += f->production[i].inner > 0;
    for (size_t i = 0; i < rules->classes; i++) c->members += rules->class_size[i];
    const bool ok = optional != NULL && count_seen(f, rules, &c->seen);
    espi_free(matched);
    espi_free(optional);
    return ok;
}

esp_status esp_grammar_check(const char *path, const esp_dataset *data, const char *column, esp_grammar_counts *counts,
                             esp_error *err)
{
    const espi_forest *f = NULL;
    espi_rules *rules = NULL;
    esp_status status = espi_rules_trees(data, column, &f, err);
    if (status == ESP_OK) status = espi_rules_read(path, &rules, err);
    if (status == ESP_OK && !fit(rules, f, counts)) status = espi_no_memory(err);
    espi_rules_free(rules);
    return status;
}

/* A line, unless a rule of the leaf fits one of the columns. */
bool espi_rules_warn(const espi_leaf *leaf, const espi_column *const *column, size_t columns, espi_text *lines)
{
    size_t productions = 0;
    for (size_t i = 0; leaf->argument != NULL && i < columns; i++) {
        esp_grammar_counts c;
        char line[200];
        if (!fit(leaf->argument, &column[i]->trees, &c)) return false;
        if (c.matched > 0 || c.rules == 0) return true;
        productions += c.productions;
        if (i + 1 < columns) continue;
        snprintf(line, sizeof line,
                 "%s: of the grammar's rules with optional children (%zu), none matches a production of the trees "
                 "(%zu)\n",
                 leaf->class->name, c.rules, productions);
        espi_text_string(lines, line);
    }
    return true;
}
