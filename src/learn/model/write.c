/* Model files are written in three passes over the same code: one tells the places of the sections, one the checksum,
 * one writes. None of them holds the file in memory, unless memory is where it is wanted. */
#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "base/output.h"
#include "base/status.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"

#include <string.h>
#include <xxhash.h>

typedef struct section {
    const char *tag;
    uint64_t offset, size;
} section;

typedef struct sink { /* where the bytes of a pass go */
    section *section; /* what the first pass found */
    size_t sections, capacity;
    bool failed;         /* memory is out */
    uint64_t at;         /* bytes so far */
    XXH3_state_t *hash;  /* of the second pass */
    espi_output *output; /* of the third: a file ... */
    char *bytes;         /* ... or memory */
    size_t used;
    unsigned char buffer[4096];
} sink;

static bool measuring(const sink *s) { return s->hash == NULL && s->output == NULL && s->bytes == NULL; }

static void flush(sink *s)
{
    if (s->hash != NULL) XXH3_128bits_update(s->hash, s->buffer, s->used);
    if (s->output != NULL) espi_output_write(s->output, s->buffer, s->used);
    if (s->bytes != NULL) {
        memcpy(s->bytes, s->buffer, s->used);
        s->bytes += s->used;
    }
    s->used = 0;
}

static void put(sink *s, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    s->at += size;
    if (measuring(s)) return;
    while (size > 0) {
        if (s->used == sizeof s->buffer) flush(s);
        const size_t part = size < sizeof s->buffer - s->used ? size : sizeof s->buffer - s->used;
        memcpy(s->buffer + s->used, from, part);
        s->used += part;
        from += part;
        size -= part;
    }
}

static void put_integer(sink *s, uint64_t value, size_t bytes)
{
    s->at += bytes;
    if (measuring(s)) return;
    if (sizeof s->buffer - s->used < bytes) flush(s);
    for (size_t i = 0; i < bytes; i++) s->buffer[s->used++] = (unsigned char)(value >> 8 * i);
}

static void put_u32(sink *s, uint32_t value) { put_integer(s, value, 4); }
static void put_u64(sink *s, uint64_t value) { put_integer(s, value, 8); }

static void put_double(sink *s, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(s, bits);
}

static void align(sink *s)
{
    static const char zeros[ESPI_MODEL_ALIGN];
    put(s, zeros, (size_t)(-s->at & (ESPI_MODEL_ALIGN - 1)));
}

/* --------------------------------------------------------------- sections */

static void begin(sink *s, const char *tag)
{
    align(s);
    if (!measuring(s)) return;
    if (!espi_reserve(&s->section, &s->capacity, s->sections + 1, sizeof *s->section)) s->failed = true;
    else s->section[s->sections++] = (section){.tag = tag, .offset = s->at};
}

static void end(sink *s)
{
    if (measuring(s) && !s->failed) s->section[s->sections - 1].size = s->at - s->section[s->sections - 1].offset;
}

static void text_section(sink *s, const char *tag, const char *text)
{
    begin(s, tag);
    if (text != NULL) put(s, text, strlen(text));
    end(s);
}

static void u32_section(sink *s, const char *tag, const uint32_t *value, size_t count)
{
    begin(s, tag);
    for (size_t i = 0; i < count; i++) put_u32(s, value[i]);
    end(s);
}

static void double_section(sink *s, const char *tag, const double *value, size_t count)
{
    begin(s, tag);
    for (size_t i = 0; i < count; i++) put_double(s, value[i]);
    end(s);
}

/* Where each of `count` pieces ends; it starts where the one before ends. */
static void end_section(sink *s, const char *tag, const size_t *start, size_t count)
{
    begin(s, tag);
    for (size_t i = 0; i < count; i++) put_u64(s, start[i + 1]);
    end(s);
}

/* Strings: their number, where each ends, their bytes. */
static void symbol_section(sink *s, const espi_symbols *symbols)
{
    uint64_t at = 0;
    begin(s, "symbols");
    put_u64(s, symbols->count);
    for (size_t i = 0; i < symbols->count; i++) put_u64(s, at += symbols->symbol[i].size);
    for (size_t i = 0; i < symbols->count; i++) put(s, symbols->symbol[i].text, symbols->symbol[i].size);
    end(s);
}

static void class_section(sink *s, const esp_model *m)
{
    uint64_t at = 0;
    begin(s, "classes");
    put_u64(s, m->classes);
    for (size_t i = 0; i < m->classes; i++) put_u64(s, at += strlen(m->class_name[i]));
    for (size_t i = 0; i < m->classes; i++) put(s, m->class_name[i], strlen(m->class_name[i]));
    end(s);
}

static void put_trees(sink *s, const espi_forest *f)
{
    symbol_section(s, &f->symbols);
    begin(s, "rules");
    for (size_t i = 0; i < f->productions; i++) {
        put_u32(s, f->production[i].label);
        put_u32(s, f->production[i].arity);
    }
    end(s);
    u32_section(s, "rulekids", f->child_label, f->child_labels);
    begin(s, "nodes");
    for (size_t i = 0; i < f->vertices; i++) put_u32(s, f->vertex[i].production);
    end(s);
    u32_section(s, "nodekids", f->child, f->children);
    u32_section(s, "roots", f->root, f->roots);
}

static void put_column(sink *s, const espi_column *c)
{
    const espi_sequences *q = &c->sequences;
    const espi_vectors *v = &c->vectors;
    begin(s, "column");
    put_u32(s, (uint32_t)c->type);
    put_u32(s, c->type != ESP_COLUMN_VECTOR
                   ? 0
                   : (v->dense ? ESPI_MODEL_DENSE : 0u) | (v->scalar ? ESPI_MODEL_SCALAR : 0u));
    put(s, c->name, strlen(c->name));
    end(s);
    switch (c->type) {
    case ESP_COLUMN_TREE: put_trees(s, &c->trees); break;
    case ESP_COLUMN_SEQUENCE:
        symbol_section(s, &q->symbols);
        end_section(s, "rows", q->row, c->rows);
        end_section(s, "tokens", q->token, q->tokens);
        u32_section(s, "factors", q->factor, q->factors);
        break;
    case ESP_COLUMN_VECTOR:
        symbol_section(s, &v->features);
        end_section(s, "rows", v->row, c->rows);
        u32_section(s, "features", v->feature, v->entries);
        double_section(s, "values", v->value, v->entries);
        break;
    }
}

static void put_history(sink *s, const esp_model *m)
{
    const espi_history *h = m->history;
    begin(s, "history");
    put_u64(s, h->steps);
    put_u64(s, h->mistakes);
    put_u64(s, h->epochs);
    put_u64(s, h->at);
    put_u64(s, h->origin);
    end(s);
    begin(s, "tally");
    for (size_t c = 0; c < m->classes; c++) {
        put_u64(s, h->tally[c].hits);
        put_u64(s, h->tally[c].misses);
        put_u64(s, h->tally[c].false_alarms);
    }
    end(s);
    begin(s, "steps");
    for (size_t i = 0; i < m->support->rows; i++) put_u64(s, h->step[i]);
    end(s);
    double_section(s, "changes", h->change, m->support->rows * m->outputs);
}

/* Of a Gaussian process: what its variances need. */
static void put_process(sink *s, const esp_model *m)
{
    const espi_gaussian *p = m->gaussian;
    double_section(s, "process", (const double[]){p->scale, p->noise, p->jitter}, 3);
    double_section(s, "curve", p->curvature, p->curvature != NULL ? m->support->rows * m->outputs : 0);
    if (p->reduction != NULL) double_section(s, "reduce", p->reduction, m->support->rows * m->support->rows);
}

static void put_patterns(sink *s, const espi_patterns *set)
{
    u32_section(s, "parents", set->parent, set->nodes);
    u32_section(s, "labels", set->label, set->nodes);
    if (set->skip != NULL) u32_section(s, "skips", set->skip, set->nodes);
    begin(s, "patterns");
    for (size_t i = 0; i < set->patterns; i++) {
        put_u32(s, set->node[i]);
        put_u32(s, set->x[i]);
        put_u32(s, set->y[i]);
    }
    end(s);
    double_section(s, "values", set->statistic, set->patterns);
}

static void put_selection(sink *s, const espi_selection *selection)
{
    const espi_fragments *f = &selection->fragments;
    if (selection->kind == ESPI_SELECTED_SEQUENCES) {
        symbol_section(s, &selection->trie.symbols);
    } else {
        symbol_section(s, &f->symbols);
        begin(s, "rules");
        for (size_t p = 0; p < f->productions; p++) {
            put_u32(s, f->label[p]);
            put_u32(s, f->children[p + 1] - f->children[p]);
        }
        end(s);
        u32_section(s, "rulekids", f->child_label, f->productions > 0 ? f->children[f->productions] : 0);
    }
    put_patterns(s, espi_selection_set(selection));
}

/* What the kernel selects, output by output and leaf by leaf. */
static void put_selections(sink *s, const esp_model *m)
{
    for (size_t k = 0; k < m->outputs; k++)
        for (size_t i = 0; i < m->variant[k]->leaves; i++)
            if (m->variant[k]->leaf[i].selection != NULL) put_selection(s, m->variant[k]->leaf[i].selection);
}

static void put_sections(sink *s, const esp_model *m)
{
    text_section(s, "kernel", esp_kernel_text(m->kernel));
    text_section(s, "learner", m->learner);
    text_section(s, "settings", m->settings);
    text_section(s, "summary", m->summary);
    begin(s, "shape");
    put_u64(s, m->support->rows);
    put_u64(s, m->support->columns);
    put_u64(s, m->outputs);
    put_u64(s, (m->one_vs_one ? ESPI_MODEL_ONE_VS_ONE : 0u) | (m->platt != NULL ? ESPI_MODEL_PLATT : 0u) |
                   (m->vote ? ESPI_MODEL_VOTE : 0u) |
                   (m->gaussian != NULL && m->gaussian->reduction != NULL ? ESPI_MODEL_INDUCING : 0u));
    end(s);
    class_section(s, m);
    double_section(s, "bias", m->bias, m->outputs);
    double_section(s, "coef", m->coefficient, m->support->rows * m->outputs);
    double_section(s, "platt", m->platt, m->platt != NULL ? 2 * m->outputs : 0);
    if (m->history != NULL) put_history(s, m);
    if (m->variant != NULL) put_selections(s, m);
    if (m->gaussian != NULL) put_process(s, m);
    for (size_t i = 0; i < m->support->columns; i++) put_column(s, &m->support->column[i]);
}

/* ------------------------------------------------------------- whole files */

/* Fills the section table of a sink, whose offsets count from the end of the table, and tells where that is. */
static esp_status measure(sink *s, const esp_model *m, uint64_t *body, esp_error *err)
{
    put_sections(s, m);
    if (s->failed) return espi_no_memory(err);
    const uint64_t table = ESPI_MODEL_HEADER + (uint64_t)s->sections * ESPI_MODEL_ENTRY;
    *body = (table + ESPI_MODEL_ALIGN - 1) / ESPI_MODEL_ALIGN * ESPI_MODEL_ALIGN;
    return ESP_OK;
}

/* All of the file. The checksum is left out (NULL) where it is computed. */
static void put_file(sink *s, const esp_model *m, const sink *plan, uint64_t body, const XXH128_hash_t *checksum)
{
    put(s, ESPI_MODEL_MAGIC, ESPI_MODEL_MAGIC_SIZE);
    put_u32(s, espi_model_version(m));
    put_u32(s, (uint32_t)plan->sections);
    put_u64(s, body + plan->at);
    if (checksum != NULL) put_u64(s, checksum->low64);
    if (checksum != NULL) put_u64(s, checksum->high64);
    s->at = ESPI_MODEL_CHECKSUM + ESPI_MODEL_CHECKSUM_SIZE;
    while (s->at < ESPI_MODEL_HEADER) put_u64(s, 0);
    for (size_t i = 0; i < plan->sections; i++) {
        char tag[ESPI_MODEL_TAG + 1] = "";
        strncpy(tag, plan->section[i].tag, ESPI_MODEL_TAG);
        put(s, tag, ESPI_MODEL_TAG);
        put_u64(s, body + plan->section[i].offset);
        put_u64(s, plan->section[i].size);
    }
    put_sections(s, m);
    flush(s);
}

esp_status espi_model_size(const esp_model *model, uint64_t *bytes, esp_error *err)
{
    sink plan = {0};
    uint64_t body = 0;
    const esp_status status = measure(&plan, model, &body, err);
    *bytes = body + plan.at;
    espi_free(plan.section);
    return status;
}

/* The first two passes: the plan, whose sections the caller frees also on failure, and the checksum. */
static esp_status measure_and_hash(const esp_model *model, sink *plan, uint64_t *body, XXH128_hash_t *checksum,
                                   esp_error *err)
{
    XXH3_state_t state;
    sink hashing = {.hash = &state};
    esp_status status = espi_model_check(model, err);
    if (status == ESP_OK) status = measure(plan, model, body, err);
    if (status != ESP_OK) return status;
    XXH3_128bits_reset(&state);
    put_file(&hashing, model, plan, *body, NULL);
    *checksum = XXH3_128bits_digest(&state);
    return ESP_OK;
}

esp_status esp_model_write(const esp_model *model, const char *path, esp_error *err)
{
    sink plan = {0};
    uint64_t body = 0;
    XXH128_hash_t checksum;
    espi_output *output = NULL;
    esp_status status = measure_and_hash(model, &plan, &body, &checksum, err);
    if (status == ESP_OK) status = espi_output_open(path, &output, err);
    if (status == ESP_OK) {
        sink writing = {.output = output};
        put_file(&writing, model, &plan, body, &checksum);
        status = espi_output_commit(output, err);
    }
    espi_free(plan.section);
    return status;
}

esp_status esp_model_bytes(const esp_model *model, char **bytes, size_t *size, esp_error *err)
{
    sink plan = {0};
    uint64_t body = 0;
    XXH128_hash_t checksum;
    *bytes = NULL;
    *size = 0;
    esp_status status = measure_and_hash(model, &plan, &body, &checksum, err);
    if (status == ESP_OK && (*bytes = espi_alloc(body + plan.at, 1)) == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) {
        sink writing = {.bytes = *bytes};
        put_file(&writing, model, &plan, body, &checksum);
        *size = body + plan.at;
    }
    espi_free(plan.section);
    return status;
}
