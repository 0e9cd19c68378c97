/* Model files are read without trust. First the checksum, which finds damage; then every count, place and number, since
 * whoever makes a file can make its checksum too. Arrays are never larger than the sections they come from, and tables
 * are built anew by the code that built them first, which must number everything as the file does. */
#define XXH_INLINE_ALL
#include "base/alloc.h"
#include "kernel/evaluate/registry.h"
#include "learn/model/section.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Where pieces end, as an array of where they start; the caller knows where the last must end. */
static esp_status read_ends(espi_model_file *f, const char *tag, size_t shortest, size_t **out, size_t *count)
{
    espi_section s = {0};
    const esp_status status = espi_section_items(f, tag, 8, &s, count);
    if (status != ESP_OK) return status;
    size_t *start = *out = espi_alloc(*count + 1, sizeof *start);
    if (start == NULL) return espi_no_memory(f->err);
    start[0] = 0;
    for (size_t i = 0; i < *count; i++) {
        const uint64_t end = espi_u64_at(s.at + 8 * i);
        if (end > f->size || end < start[i] || end - start[i] < shortest)
            return espi_section_wrong(f, s, "a piece ends where it cannot");
        start[i + 1] = (size_t)end;
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ trees */

typedef struct tables { /* the sections of a forest, and how many items each has */
    espi_section rules, rule_kids, nodes, node_kids;
    size_t rule_count, rule_kid_count, node_count, node_kid_count;
} tables;

static esp_status take_tables(espi_model_file *f, tables *t)
{
    esp_status status = espi_section_items(f, "rules", 8, &t->rules, &t->rule_count);
    if (status == ESP_OK) status = espi_section_items(f, "rulekids", 4, &t->rule_kids, &t->rule_kid_count);
    if (status == ESP_OK) status = espi_section_items(f, "nodes", 4, &t->nodes, &t->node_count);
    if (status == ESP_OK) status = espi_section_items(f, "nodekids", 4, &t->node_kids, &t->node_kid_count);
    return status;
}

static bool is_node(const espi_forest *forest, espi_ref node)
{
    return espi_is_leaf(node) ? espi_leaf_symbol(node) < forest->symbols.count : node < forest->vertices;
}

/* The next vertex; its children start at *at in the section and in `kids`. */
static esp_status add_vertex(const espi_model_file *f, const tables *t, espi_forest *forest, espi_ref *kids, size_t *at)
{
    const size_t v = forest->vertices;
    const uint32_t rule = espi_u32_at(t->nodes.at + 4 * v);
    if (rule >= t->rule_count) return espi_section_wrong(f, t->nodes, "a node has an unknown rule");
    const uint32_t label = espi_u32_at(t->rules.at + 8 * (size_t)rule),
                   arity = espi_u32_at(t->rules.at + 8 * (size_t)rule + 4);
    if (label >= forest->symbols.count) return espi_section_wrong(f, t->rules, "a rule has an unknown label");
    if (arity == 0) return espi_section_wrong(f, t->rules, "a rule has no children");
    if (arity > t->node_kid_count - *at) return espi_section_wrong(f, t->node_kids, "there are too few children");
    for (size_t k = 0; k < arity; k++) {
        kids[k] = espi_u32_at(t->node_kids.at + 4 * (*at + k));
        if (!is_node(forest, kids[k]))
            return espi_section_wrong(f, t->node_kids, "a child is unknown or comes too late");
    }
    const espi_ref vertex = espi_forest_node(forest, label, kids, arity);
    if (vertex == ESPI_NO_NODE) return espi_no_memory(f->err);
    if (vertex != v) return espi_section_wrong(f, t->nodes, "a node is given twice");
    if (forest->vertex[v].production != rule) return espi_section_wrong(f, t->nodes, "a node has the rule of another");
    *at += arity;
    return ESP_OK;
}

static esp_status build_forest(const espi_model_file *f, const tables *t, espi_forest *forest)
{
    size_t at = 0;
    esp_status status = ESP_OK;
    espi_ref *kids = espi_alloc(t->node_kid_count, sizeof *kids);
    if (kids == NULL ||
        !espi_reserve(&forest->vertex, &forest->vertex_capacity, t->node_count, sizeof *forest->vertex) ||
        !espi_reserve(&forest->child, &forest->child_capacity, t->node_kid_count, sizeof *forest->child))
        status = espi_no_memory(f->err);
    while (status == ESP_OK && forest->vertices < t->node_count) status = add_vertex(f, t, forest, kids, &at);
    espi_free(kids);
    if (status != ESP_OK) return status;
    if (at != t->node_kid_count) return espi_section_wrong(f, t->node_kids, "there are too many children");
    if (forest->productions != t->rule_count) return espi_section_wrong(f, t->rules, "a rule is of no node");
    bool same = forest->child_labels == t->rule_kid_count;
    for (size_t i = 0; same && i < t->rule_kid_count; i++)
        same = forest->child_label[i] == espi_u32_at(t->rule_kids.at + 4 * i);
    return same ? ESP_OK : espi_section_wrong(f, t->rule_kids, "these are not the labels of the nodes' children");
}

static esp_status read_trees(espi_model_file *f, espi_column *c, size_t rows)
{
    espi_forest *forest = &c->trees;
    tables t = {0};
    esp_status status = espi_section_symbols(f, "symbols", &forest->symbols);
    if (status == ESP_OK) status = take_tables(f, &t);
    if (status == ESP_OK) status = build_forest(f, &t, forest);
    if (status == ESP_OK) status = espi_section_u32(f, "roots", &forest->root, &forest->roots);
    if (status != ESP_OK) return status;
    forest->root_capacity = c->rows = forest->roots;
    for (size_t i = 0; i < forest->roots; i++)
        if (forest->root[i] != ESPI_NO_NODE && !is_node(forest, forest->root[i]))
            return espi_model_wrong(f, "section 'roots': tree %zu has an unknown root", i + 1);
    return c->rows == rows
               ? ESP_OK
               : espi_model_wrong(f, "section 'roots': there are %zu trees for %zu examples", c->rows, rows);
}

/* ---------------------------------------------------- sequences and vectors */

static bool all_below(const uint32_t *number, size_t count, size_t bound)
{
    for (size_t i = 0; i < count; i++)
        if (number[i] >= bound) return false;
    return true;
}

static esp_status read_sequences(espi_model_file *f, espi_column *c)
{
    espi_sequences *s = &c->sequences;
    esp_status status = espi_section_symbols(f, "symbols", &s->symbols);
    if (status == ESP_OK) status = read_ends(f, "rows", 0, &s->row, &c->rows);
    if (status == ESP_OK) status = read_ends(f, "tokens", 1, &s->token, &s->tokens);
    if (status == ESP_OK) status = espi_section_u32(f, "factors", &s->factor, &s->factors);
    if (status != ESP_OK) return status;
    s->row_capacity = c->rows + 1;
    s->token_capacity = s->tokens + 1;
    s->factor_capacity = s->factors;
    if (s->row[c->rows] != s->tokens || s->token[s->tokens] != s->factors)
        return espi_model_wrong(f, "sequences, tokens and factors do not fit together");
    return all_below(s->factor, s->factors, s->symbols.count) ? ESP_OK
                                                              : espi_model_wrong(f, "a factor is an unknown word");
}

static esp_status read_vectors(espi_model_file *f, espi_column *c)
{
    espi_vectors *v = &c->vectors;
    esp_status status = espi_section_symbols(f, "symbols", &v->features);
    if (status == ESP_OK) status = read_ends(f, "rows", 0, &v->row, &c->rows);
    if (status == ESP_OK) status = espi_section_u32(f, "features", &v->feature, &v->entries);
    if (status == ESP_OK) status = espi_section_doubles(f, "values", v->entries, &v->value);
    if (status != ESP_OK) return status;
    v->row_capacity = c->rows + 1;
    v->feature_capacity = v->value_capacity = v->entries;
    if (v->row[c->rows] != v->entries) return espi_model_wrong(f, "vectors and features do not fit together");
    if (!all_below(v->feature, v->entries, v->features.count))
        return espi_model_wrong(f, "a vector has an unknown feature");
    for (size_t r = 0; r < c->rows; r++)
        for (size_t i = v->row[r] + 1; i < v->row[r + 1]; i++)
            if (v->feature[i] <= v->feature[i - 1])
                return espi_model_wrong(f, "the features of a vector are not in order");
    return ESP_OK;
}

static esp_status read_column(espi_model_file *f, esp_dataset *data)
{
    espi_section s = {0};
    esp_status status = espi_section_take(f, "column", &s);
    if (status != ESP_OK) return status;
    if (s.size < 8) return espi_section_wrong(f, s, "it is too short");
    const uint32_t type = espi_u32_at(s.at), flags = espi_u32_at(s.at + 4);
    const uint32_t allowed = type == ESP_COLUMN_VECTOR ? ESPI_MODEL_DENSE | ESPI_MODEL_SCALAR : 0;
    if (type > ESP_COLUMN_VECTOR) return espi_section_wrong(f, s, "its type is unknown");
    if ((flags & ~allowed) != 0 || (flags & allowed) == (ESPI_MODEL_DENSE | ESPI_MODEL_SCALAR))
        return espi_section_wrong(f, s, "its flags are unknown");
    if (!espi_reserve(&data->column, &data->column_capacity, data->columns + 1, sizeof *data->column))
        return espi_no_memory(f->err);
    espi_column *c = &data->column[data->columns++];
    *c = (espi_column){
        .type = (esp_column_type)type,
        .vectors = {.dense = (flags & ESPI_MODEL_DENSE) != 0, .scalar = (flags & ESPI_MODEL_SCALAR) != 0}};
    status = espi_bytes_text(f, (espi_section){.at = s.at + 8, .size = s.size - 8, .tag = s.tag}, &c->name);
    if (status != ESP_OK) return status;
    if (c->type == ESP_COLUMN_TREE) return read_trees(f, c, data->rows);
    return c->type == ESP_COLUMN_SEQUENCE ? read_sequences(f, c) : read_vectors(f, c);
}

/* ------------------------------------------------------------------ model */

/* A failure of another part of the library, as one of this file. */
static esp_status in_file(const espi_model_file *f, esp_status status, const esp_error *why)
{
    if (status == ESP_OK) return ESP_OK;
    return status == ESP_ERR_MEMORY ? espi_no_memory(f->err) : espi_model_wrong(f, "%s", why->message);
}

static esp_status read_kernel(espi_model_file *f, esp_model *m)
{
    esp_error why = {0};
    char *text = NULL;
    esp_status status = espi_section_text(f, "kernel", &text);
    if (status == ESP_OK) status = in_file(f, espi_model_check_kernel(text, &why), &why);
    if (status == ESP_OK) status = in_file(f, espi_kernel_parse(text, false, &m->kernel, &why), &why);
    espi_free(text);
    return status;
}

static esp_status read_classes(espi_model_file *f, esp_model *m)
{
    espi_symbols names = {0};
    esp_status status = espi_section_symbols(f, "classes", &names);
    if (status == ESP_OK && names.count > 0) {
        m->class_name = espi_alloc(names.count, sizeof *m->class_name);
        if (m->class_name == NULL) status = espi_no_memory(f->err);
    }
    for (size_t i = 0; status == ESP_OK && i < names.count; i++) {
        const espi_section name = {(const unsigned char *)names.symbol[i].text, names.symbol[i].size, "classes"};
        status = espi_bytes_text(f, name, &m->class_name[i]);
        if (status == ESP_OK) m->classes++;
    }
    espi_symbols_free(&names);
    return status;
}

/* Rows, columns, outputs and flags. No section could hold more rows or outputs than the file has bytes. */
static esp_status read_shape(espi_model_file *f, esp_model *m, uint64_t *columns, uint64_t *flags)
{
    espi_section s = {0};
    const esp_status status = espi_section_take(f, "shape", &s);
    if (status != ESP_OK) return status;
    if (s.size != 32) return espi_section_wrong(f, s, "its size is wrong");
    const uint64_t rows = espi_u64_at(s.at), outputs = espi_u64_at(s.at + 16);
    *columns = espi_u64_at(s.at + 8);
    *flags = espi_u64_at(s.at + 24);
    if (rows > f->size || outputs == 0 || outputs > f->size || rows > f->size / outputs || *columns > f->sections)
        return espi_section_wrong(f, s, "a number is too large");
    const uint64_t known = ESPI_MODEL_ONE_VS_ONE | ESPI_MODEL_PLATT | (f->version == 2 ? ESPI_MODEL_VOTE : 0) |
                           (f->version == 4 ? ESPI_MODEL_INDUCING : 0);
    if ((*flags & ~known) != 0) return espi_section_wrong(f, s, "its flags are unknown");
    m->support->rows = (size_t)rows;
    m->outputs = (size_t)outputs;
    m->one_vs_one = (*flags & ESPI_MODEL_ONE_VS_ONE) != 0;
    m->vote = (*flags & ESPI_MODEL_VOTE) != 0;
    return ESP_OK;
}

/* Of a model that was learned example by example: what version 2 has more than version 1. */
static esp_status read_history(espi_model_file *f, esp_model *m)
{
    espi_history *h = m->history = espi_alloc_zero(1, sizeof *h);
    uint64_t *count = NULL, *tally = NULL;
    if (h == NULL) return espi_no_memory(f->err);
    esp_status status = espi_section_u64(f, "history", 5, &count);
    if (status == ESP_OK) status = espi_section_u64(f, "tally", 3 * (uint64_t)m->classes, &tally);
    if (status == ESP_OK) status = espi_section_u64(f, "steps", m->support->rows, &h->step);
    if (status == ESP_OK)
        status = espi_section_doubles(f, "changes", (uint64_t)m->support->rows * m->outputs, &h->change);
    if (status == ESP_OK) {
        h->steps = count[0];
        h->mistakes = count[1];
        h->epochs = count[2];
        h->at = count[3];
        h->origin = count[4];
        h->tally = espi_alloc(m->classes, sizeof *h->tally);
        if (h->tally == NULL) status = espi_no_memory(f->err);
    }
    for (size_t c = 0; status == ESP_OK && c < m->classes; c++)
        h->tally[c] = (espi_tally){tally[3 * c], tally[3 * c + 1], tally[3 * c + 2]};
    espi_free(count);
    espi_free(tally);
    return status;
}

static esp_status read_reduction(espi_model_file *f, esp_model *m)
{
    const uint64_t n = m->support->rows;
    if (n > 0 && n > f->size / n) return espi_model_wrong(f, "section 'reduce': it cannot have room for its numbers");
    return espi_section_doubles(f, "reduce", n * n, &m->gaussian->reduction);
}

/* Of a Gaussian process: what version 4, or 5 with more than two classes, has more than version 1. */
static esp_status read_process(espi_model_file *f, esp_model *m, bool inducing)
{
    espi_gaussian *p = m->gaussian = espi_alloc_zero(1, sizeof *p);
    double *number = NULL;
    espi_section s = {0};
    if (p == NULL) return espi_no_memory(f->err);
    esp_status status = espi_section_doubles(f, "process", 3, &number);
    if (status == ESP_OK) *p = (espi_gaussian){.scale = number[0], .noise = number[1], .jitter = number[2]};
    espi_free(number);
    if (status != ESP_OK) return status;
    if (m->classes > 0 && inducing) return espi_model_wrong(f, "only numbers are learned with inducing examples");
    if ((m->classes > 2) != (f->version == 5))
        return espi_model_wrong(f, "version %u is not for %zu classes", (unsigned)f->version, m->classes);
    if (m->classes > 0) return espi_section_doubles(f, "curve", (uint64_t)m->support->rows * m->outputs, &p->curvature);
    status = espi_section_take(f, "curve", &s);
    if (status == ESP_OK && s.size > 0) return espi_section_wrong(f, s, "it is not empty");
    return status == ESP_OK && inducing ? read_reduction(f, m) : status;
}

static esp_status read_platt(espi_model_file *f, esp_model *m, bool there)
{
    espi_section s = {0};
    if (there) return espi_section_doubles(f, "platt", 2 * (uint64_t)m->outputs, &m->platt);
    const esp_status status = espi_section_take(f, "platt", &s);
    return status != ESP_OK || s.size == 0 ? status : espi_section_wrong(f, s, "it is not empty");
}

static esp_status read_model(espi_model_file *f, esp_model *m)
{
    esp_error why = {0};
    uint64_t columns = 0, flags = 0;
    m->support = espi_dataset_new(ESP_FORMAT_JSONL);
    if (m->support == NULL) return espi_no_memory(f->err);
    esp_status status = read_kernel(f, m);
    if (status == ESP_OK) status = espi_section_text(f, "learner", &m->learner);
    if (status == ESP_OK) status = espi_section_text(f, "settings", &m->settings);
    if (status == ESP_OK) status = espi_section_text(f, "summary", &m->summary);
    if (status == ESP_OK) status = read_shape(f, m, &columns, &flags);
    if (status == ESP_OK) status = read_classes(f, m);
    if (status == ESP_OK) status = espi_section_doubles(f, "bias", m->outputs, &m->bias);
    if (status == ESP_OK)
        status = espi_section_doubles(f, "coef", (uint64_t)m->support->rows * m->outputs, &m->coefficient);
    if (status == ESP_OK) status = read_platt(f, m, (flags & ESPI_MODEL_PLATT) != 0);
    if (status == ESP_OK && f->version == 2) status = read_history(f, m);
    if (status == ESP_OK && f->version == 3) status = espi_selections_read(f, m);
    if (status == ESP_OK && f->version >= 4) status = read_process(f, m, (flags & ESPI_MODEL_INDUCING) != 0);
    for (uint64_t i = 0; status == ESP_OK && i < columns; i++) status = read_column(f, m->support);
    if (status == ESP_OK && (f->next != f->sections || f->end != f->size))
        status = espi_model_wrong(f, "it holds too much");
    return status == ESP_OK ? in_file(f, espi_model_check(m, &why), &why) : status;
}

/* The header: whether this is a model file, all of it, undamaged, and of a version that is known here. */
static esp_status check_header(espi_model_file *f)
{
    const size_t behind = ESPI_MODEL_CHECKSUM + ESPI_MODEL_CHECKSUM_SIZE;
    const unsigned char *b = f->bytes;
    if (f->size < ESPI_MODEL_MAGIC_SIZE || memcmp(b, ESPI_MODEL_MAGIC, ESPI_MODEL_MAGIC_SIZE) != 0)
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: this is not a model file", f->name);
    if (f->size < ESPI_MODEL_HEADER || espi_u64_at(b + 16) != f->size)
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: the model file is damaged: it has not the length that it says%s",
                         f->name,
                         f->size < ESPI_MODEL_HEADER || espi_u64_at(b + 16) > f->size ? "; it may be truncated" : "");
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, b, ESPI_MODEL_CHECKSUM);
    XXH3_128bits_update(&state, b + behind, f->size - behind);
    const XXH128_hash_t sum = XXH3_128bits_digest(&state);
    if (sum.low64 != espi_u64_at(b + ESPI_MODEL_CHECKSUM) || sum.high64 != espi_u64_at(b + ESPI_MODEL_CHECKSUM + 8))
        return espi_fail(f->err, ESP_ERR_PARSE, "%s: the model file is damaged: its checksum is wrong", f->name);
    const uint32_t version = f->version = espi_u32_at(b + 8);
    if (version > ESPI_MODEL_VERSION)
        return espi_fail(
            f->err, ESP_ERR_PARSE,
            "%s: the model file has version %lu of the format; this is Espalier %s, which reads versions up "
            "to %d",
            f->name, (unsigned long)version, ESP_VERSION, ESPI_MODEL_VERSION);
    if (version == 0) return espi_model_wrong(f, "there is no version 0 of the format");
    f->sections = espi_u32_at(b + 12);
    if (f->sections > (f->size - ESPI_MODEL_HEADER) / ESPI_MODEL_ENTRY)
        return espi_model_wrong(f, "it has not room for its sections");
    f->end = ESPI_MODEL_HEADER + f->sections * ESPI_MODEL_ENTRY;
    for (size_t i = behind; i < ESPI_MODEL_HEADER; i++)
        if (b[i] != 0) return espi_model_wrong(f, "there is something behind the checksum");
    return ESP_OK;
}

esp_status esp_model_parse(const void *bytes, size_t size, const char *name, esp_model **out, esp_error *err)
{
    espi_model_file f = {.name = name, .bytes = bytes, .size = size, .err = err};
    *out = NULL;
    esp_status status = check_header(&f);
    if (status != ESP_OK) return status;
    esp_model *m = espi_model_new();
    if (m == NULL) return espi_no_memory(err);
    status = read_model(&f, m);
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    return status;
}

/* ------------------------------------------------------------------- files */

/* All bytes of a file, unless its first ones tell that it is no model. They are read and not mapped: who can write to a
 * mapped file can change it after it was checked, or cut it short under the reader. */
static esp_status load(int fd, const char *name, char **bytes, size_t *size, esp_error *err)
{
    enum { FIRST = 1 << 16 };
    struct stat st;
    size_t capacity = 0, wanted = FIRST;
    for (;;) {
        if (!espi_reserve(bytes, &capacity, wanted, 1)) return espi_no_memory(err);
        const ssize_t n = read(fd, *bytes + *size, capacity - *size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return espi_fail_errno(err, name);
        *size += (size_t)n;
        if (n == 0 || (*size >= ESPI_MODEL_MAGIC_SIZE && memcmp(*bytes, ESPI_MODEL_MAGIC, ESPI_MODEL_MAGIC_SIZE) != 0))
            return ESP_OK;
        const bool known = wanted == FIRST && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
        wanted = known && (size_t)st.st_size >= *size ? (size_t)st.st_size + 1 : *size + 1;
    }
}

esp_status esp_model_read(const char *path, esp_model **out, esp_error *err)
{
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    char *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return espi_fail_errno(err, path);
    esp_status status = load(fd, name, &bytes, &size, err);
    if (!standard) close(fd);
    if (status == ESP_OK) status = esp_model_parse(bytes, size, name, out, err);
    espi_free(bytes);
    return status;
}

bool esp_model_recognise(const char *path)
{
    char first[ESPI_MODEL_MAGIC_SIZE];
    struct stat st;
    /* What is taken from a pipe cannot be put back. */
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, first, sizeof first);
    close(fd);
    return n == (ssize_t)sizeof first && memcmp(first, ESPI_MODEL_MAGIC, sizeof first) == 0;
}
