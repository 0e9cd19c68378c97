#include "data/section.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"

#include <string.h>

static void class_section(espi_section_sink *s, const esp_model *m)
{
    uint64_t at = 0;
    espi_put_begin(s, "classes");
    espi_put_u64(s, m->classes);
    for (size_t i = 0; i < m->classes; i++) espi_put_u64(s, at += strlen(m->class_name[i]));
    for (size_t i = 0; i < m->classes; i++) espi_put(s, m->class_name[i], strlen(m->class_name[i]));
    espi_put_end(s);
}

static void put_history(espi_section_sink *s, const esp_model *m)
{
    const espi_history *h = m->history;
    espi_put_begin(s, "history");
    espi_put_u64(s, h->steps);
    espi_put_u64(s, h->mistakes);
    espi_put_u64(s, h->epochs);
    espi_put_u64(s, h->at);
    espi_put_u64(s, h->origin);
    espi_put_end(s);
    espi_put_begin(s, "tally");
    for (size_t c = 0; c < m->classes; c++) {
        espi_put_u64(s, h->tally[c].hits);
        espi_put_u64(s, h->tally[c].misses);
        espi_put_u64(s, h->tally[c].false_alarms);
    }
    espi_put_end(s);
    espi_put_begin(s, "steps");
    for (size_t i = 0; i < m->support->rows; i++) espi_put_u64(s, h->step[i]);
    espi_put_end(s);
    espi_put_doubles(s, "changes", h->change, m->support->rows * m->outputs);
}

/* Of a Gaussian process: what its variances need. */
static void put_process(espi_section_sink *s, const esp_model *m)
{
    const espi_gaussian *p = m->gaussian;
    espi_put_doubles(s, "process", (const double[]){p->scale, p->noise, p->jitter}, 3);
    espi_put_doubles(s, "curve", p->curvature, p->curvature != NULL ? m->support->rows * m->outputs : 0);
    if (p->reduction != NULL) espi_put_doubles(s, "reduce", p->reduction, m->support->rows * m->support->rows);
}

static void put_patterns(espi_section_sink *s, const espi_patterns *set)
{
    espi_put_u32s(s, "parents", set->parent, set->nodes);
    espi_put_u32s(s, "labels", set->label, set->nodes);
    if (set->skip != NULL) espi_put_u32s(s, "skips", set->skip, set->nodes);
    espi_put_begin(s, "patterns");
    for (size_t i = 0; i < set->patterns; i++) {
        espi_put_u32(s, set->node[i]);
        espi_put_u32(s, set->x[i]);
        espi_put_u32(s, set->y[i]);
    }
    espi_put_end(s);
    espi_put_doubles(s, "values", set->statistic, set->patterns);
}

static void put_selection(espi_section_sink *s, const espi_selection *selection)
{
    const espi_fragments *f = &selection->fragments;
    if (selection->kind == ESPI_SELECTED_SEQUENCES) {
        espi_put_symbols(s, &selection->trie.symbols);
    } else {
        espi_put_symbols(s, &f->symbols);
        espi_put_begin(s, "rules");
        for (size_t p = 0; p < f->productions; p++) {
            espi_put_u32(s, f->label[p]);
            espi_put_u32(s, f->children[p + 1] - f->children[p]);
        }
        espi_put_end(s);
        espi_put_u32s(s, "rulekids", f->child_label, f->productions > 0 ? f->children[f->productions] : 0);
    }
    put_patterns(s, espi_selection_set(selection));
}

/* What the kernel selects, output by output and leaf by leaf. */
static void put_selections(espi_section_sink *s, const esp_model *m)
{
    for (size_t k = 0; k < m->outputs; k++)
        for (size_t i = 0; i < m->variant[k]->leaves; i++)
            if (m->variant[k]->leaf[i].selection != NULL) put_selection(s, m->variant[k]->leaf[i].selection);
}

static void put_sections(espi_section_sink *s, const void *what)
{
    const esp_model *m = what;
    espi_put_text(s, "kernel", esp_kernel_text(m->kernel));
    espi_put_text(s, "learner", m->learner);
    espi_put_text(s, "settings", m->settings);
    espi_put_text(s, "summary", m->summary);
    espi_put_begin(s, "shape");
    espi_put_u64(s, m->support->rows);
    espi_put_u64(s, m->support->columns);
    espi_put_u64(s, m->outputs);
    espi_put_u64(s, (m->one_vs_one ? ESPI_MODEL_ONE_VS_ONE : 0u) | (m->platt != NULL ? ESPI_MODEL_PLATT : 0u) |
                        (m->vote ? ESPI_MODEL_VOTE : 0u) |
                        (m->gaussian != NULL && m->gaussian->reduction != NULL ? ESPI_MODEL_INDUCING : 0u));
    espi_put_end(s);
    class_section(s, m);
    espi_put_doubles(s, "bias", m->bias, m->outputs);
    espi_put_doubles(s, "coef", m->coefficient, m->support->rows * m->outputs);
    espi_put_doubles(s, "platt", m->platt, m->platt != NULL ? 2 * m->outputs : 0);
    if (m->history != NULL) put_history(s, m);
    if (m->variant != NULL) put_selections(s, m);
    if (m->gaussian != NULL) put_process(s, m);
    for (size_t i = 0; i < m->support->columns; i++) espi_put_column(s, &m->support->column[i]);
}

static espi_section_source source_of(const esp_model *m)
{
    return (espi_section_source){
        .kind = &espi_model_kind, .version = espi_model_version(m), .put = put_sections, .what = m};
}

esp_status espi_model_size(const esp_model *model, uint64_t *bytes, esp_error *err)
{
    const espi_section_source source = source_of(model);
    return espi_sections_size(&source, bytes, err);
}

esp_status esp_model_write(const esp_model *model, const char *path, esp_error *err)
{
    const espi_section_source source = source_of(model);
    const esp_status status = espi_model_check(model, err);
    return status == ESP_OK ? espi_sections_write(&source, path, err) : status;
}

esp_status esp_model_bytes(const esp_model *model, char **bytes, size_t *size, esp_error *err)
{
    const espi_section_source source = source_of(model);
    *bytes = NULL;
    *size = 0;
    const esp_status status = espi_model_check(model, err);
    return status == ESP_OK ? espi_sections_bytes(&source, bytes, size, err) : status;
}
