/* Examples for semantic role labelling. The candidates of a predicate are the nodes that do not cover its token; a
 * candidate is an argument if its leaves are exactly those of one, and of a unary chain only the topmost node is.
 * Boundary detection has an example for each candidate, role classification one for each that is an argument. */
#include "task/srl.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES_PER_REPORT = 4096 };

typedef struct extraction {
    esp_srl_options options;
    const esp_run *run;
    esp_srl_counts counts;
    espi_random random;
    espi_srl_documents documents;
    espi_srl_reader reader;
    espi_srl_spine spine;
    espi_srl_features features;
    bool prepared; /* the features of the sentence's nodes are made */
    espi_srl_writer writer;
    const espi_srl_argument **argument; /* per node: the one it spans, or NULL */
    size_t argument_capacity;
    const espi_srl_argument **sorted;
    size_t sorted_capacity;
} extraction;

static bool limit_reached(const extraction *x)
{
    return x->options.limit != 0 && x->counts.examples >= x->options.limit;
}

static int by_span(const void *a, const void *b)
{
    const espi_srl_argument *m = *(const espi_srl_argument *const *)a, *n = *(const espi_srl_argument *const *)b;
    if (m->first != n->first) return m->first < n->first ? -1 : 1;
    return (m->last > n->last) - (m->last < n->last);
}

/* Arguments that come twice or overlap are counted, not refused: corpora have some, and candidates are judged one by
 * one. */
static bool count_arguments(extraction *x)
{
    const espi_srl_predicate *p = &x->reader.predicate;
    x->counts.arguments += p->arguments;
    if (p->arguments < 2) return true;
    if (!espi_reserve(&x->sorted, &x->sorted_capacity, p->arguments, sizeof *x->sorted)) return false;
    for (size_t i = 0; i < p->arguments; i++) x->sorted[i] = &p->argument[i];
    qsort(x->sorted, p->arguments, sizeof *x->sorted, by_span);
    uint32_t reach = x->sorted[0]->last; /* the last leaf of those before */
    for (size_t i = 1; i < p->arguments; i++) {
        const espi_srl_argument *a = x->sorted[i];
        if (by_span(&x->sorted[i - 1], &x->sorted[i]) == 0) x->counts.repeated++;
        else if (a->first <= reach) x->counts.overlapping++;
        if (a->last > reach) reach = a->last;
    }
    return true;
}

/* The topmost node whose leaves are these, or ESPI_SRL_NONE. */
static uint32_t find_span(const espi_srl_tree *t, uint32_t first, uint32_t last)
{
    uint32_t n = t->leaf[first].parent;
    while (n != ESPI_SRL_NONE && t->node[n].last < last) n = t->node[n].parent;
    if (n == ESPI_SRL_NONE || t->node[n].first != first || t->node[n].last != last) return ESPI_SRL_NONE;
    while (espi_srl_below_unary(t, &t->node[n])) n = t->node[n].parent;
    return n;
}

/* Fills x->argument. */
static bool place_arguments(extraction *x)
{
    const espi_srl_tree *t = &x->reader.tree;
    const espi_srl_predicate *p = &x->reader.predicate;
    if (!espi_reserve(&x->argument, &x->argument_capacity, t->nodes, sizeof *x->argument)) return false;
    memset(x->argument, 0, t->nodes * sizeof *x->argument);
    for (size_t i = 0; i < p->arguments; i++) {
        const espi_srl_argument *a = &p->argument[i];
        uint32_t n = find_span(t, a->first, a->last);
        if (a->first <= p->token && p->token <= a->last) x->counts.around++;
        else if (n == ESPI_SRL_NONE) x->counts.no_constituent++;
        else if (x->argument[n] == NULL) x->argument[n] = a;
        for (; n != ESPI_SRL_NONE && x->options.unary_all; n = t->node[n].child) {
            if (t->node[n].first != a->first || t->node[n].last != a->last) break;
            if (x->argument[n] == NULL) x->argument[n] = a;
        }
    }
    return true;
}

static bool write_example(extraction *x, uint32_t node)
{
    const espi_srl_tree *t = &x->reader.tree;
    const espi_srl_predicate *p = &x->reader.predicate;
    const espi_srl_argument *a = x->argument[node];
    const bool boundary = x->options.task == ESP_SRL_BOUNDARY;
    espi_srl_spine_meet(&x->spine, t, node);
    if (!espi_srl_features_pair(&x->features, t, p, &x->spine)) return false;
    x->counts.examples++;
    x->counts.positives += a != NULL;
    if (boundary)
        return espi_srl_writer_add(&x->writer, a != NULL ? "1" : "-1", a != NULL ? 1 : 2, true, &x->spine, t,
                                   &x->features.names);
    const espi_srl_piece role = x->options.full_roles ? a->role : a->plain;
    return espi_srl_writer_add(&x->writer, p->roles.bytes + role.at, role.size, false, &x->spine, t,
                               &x->features.names);
}

static esp_status do_predicate(extraction *x, esp_error *err)
{
    const espi_srl_tree *t = &x->reader.tree;
    const espi_srl_predicate *p = &x->reader.predicate;
    const bool boundary = x->options.task == ESP_SRL_BOUNDARY;
    esp_status status = ESP_OK;
    x->counts.predicates++;
    bool room = x->prepared || espi_srl_features_sentence(&x->features, t);
    x->prepared = true;
    room = room && count_arguments(x) && place_arguments(x) &&
           espi_srl_spine_set(&x->spine, t, p->token, !x->options.no_mark) &&
           espi_srl_features_predicate(&x->features, t, p, &x->spine);
    for (uint32_t n = 0; n < t->nodes && room && status == ESP_OK && !limit_reached(x); n++) {
        if (espi_srl_covers(&t->node[n], p->token) || (!boundary && x->argument[n] == NULL)) continue;
        if (x->options.sample > 0 && espi_random_unit(&x->random) >= x->options.sample) continue;
        room = write_example(x, n);
        if (x->counts.examples % EXAMPLES_PER_REPORT == 0) status = espi_progress(x->run, "reading", -1.0, err);
    }
    return room ? status : espi_no_memory(err);
}

static void note_bad(extraction *x, const esp_error *why)
{
    if (x->counts.bad++ == 0) snprintf(x->counts.first_bad, sizeof x->counts.first_bad, "%s", why->message);
}

/* A file without a sentence; `bad` of its lines were skipped, and err tells the last. */
static esp_status fail_empty(const char *name, size_t bad, esp_error *err)
{
    if (bad == 0)
        return espi_fail(err, ESP_ERR_PARSE,
                         "%s: no sentences: the file is empty or holds only blank lines and comments", name);
    const esp_error last = *err;
    return espi_fail(err, ESP_ERR_PARSE, "%s: no sentences: all %zu are bad, the last at %s", name, bad, last.message);
}

static esp_status do_file(extraction *x, const char *path, esp_error *err)
{
    const size_t bad = x->counts.bad;
    bool any = false;
    espi_srl_event event = ESPI_SRL_SENTENCE;
    esp_status status = espi_srl_open(&x->reader, path, x->run, err);
    while (status == ESP_OK && event != ESPI_SRL_END && !limit_reached(x)) {
        status = espi_srl_next(&x->reader, &event, err);
        any = any || x->reader.passing || (status == ESP_OK && event != ESPI_SRL_END);
        if (status == ESP_ERR_PARSE && x->options.skip_bad) {
            note_bad(x, err);
            event = ESPI_SRL_SENTENCE;
            status = ESP_OK;
        } else if (status == ESP_OK && event == ESPI_SRL_SENTENCE) {
            x->counts.sentences++;
            x->prepared = false;
        } else if (status == ESP_OK && event == ESPI_SRL_PREDICATE) {
            status = do_predicate(x, err);
        }
    }
    if (status == ESP_OK && !any) status = fail_empty(x->reader.reader.stream.name, x->counts.bad - bad, err);
    espi_srl_close(&x->reader);
    return status;
}

static esp_status check_documents(extraction *x, esp_error *err)
{
    if (x->options.documents == NULL || limit_reached(x)) return ESP_OK;
    const espi_symbol *first = NULL;
    const size_t unmet = espi_srl_documents_unmet(&x->documents, &first);
    x->counts.unknown_documents = unmet;
    if (unmet > 0) espi_quote(first->text, first->size, x->counts.first_unknown);
    if (unmet < x->documents.names.count) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARSE,
                     "%s: none of the documents listed is in the data: listed is %s, the data have %s",
                     x->options.documents, x->counts.first_unknown, x->documents.other);
}

static esp_status check_options(const esp_srl_options *o, size_t path_count, const char *output, esp_error *err)
{
    const size_t size = strlen(output);
    if (path_count == 0) return espi_fail(err, ESP_ERR_PARAM, "a file with sentences is missing");
    if (o->task != ESP_SRL_BOUNDARY && o->task != ESP_SRL_ROLE)
        return espi_fail(err, ESP_ERR_PARAM, "unknown task number %d", (int)o->task);
    if (!(o->sample >= 0 && o->sample <= 1))
        return espi_fail(err, ESP_ERR_PARAM,
                         "the share of examples to keep is %g; it must lie above 0 and be at most 1", o->sample);
    if (o->to != ESP_FORMAT_AUTO && o->to != ESP_FORMAT_JSONL && o->to != ESP_FORMAT_SVMTK)
        return espi_fail(err, ESP_ERR_PARAM, "examples are written as jsonl or svmtk, not as %s",
                         esp_format_name(o->to) != NULL ? esp_format_name(o->to) : "an unknown format");
    if (o->features != NULL && o->to != ESP_FORMAT_SVMTK)
        return espi_fail(err, ESP_ERR_PARAM, "only the format svmtk has numbered features; jsonl has their names");
    if ((size > 3 && strcmp(output + size - 3, ".gz") == 0) || (size > 4 && strcmp(output + size - 4, ".zst") == 0))
        return espi_fail(err, ESP_ERR_PARAM, "%s: compressed files are read, not written; write to - and pipe it",
                         output);
    return ESP_OK;
}

static void release(extraction *x)
{
    espi_srl_documents_free(&x->documents);
    espi_srl_reader_free(&x->reader);
    espi_srl_spine_free(&x->spine);
    espi_srl_features_free(&x->features);
    espi_srl_writer_free(&x->writer);
    espi_free(x->argument);
    espi_free(x->sorted);
}

/* Writes to the outputs, which the caller commits. */
static esp_status extract(extraction *x, const char *const *paths, size_t path_count, espi_output *output,
                          espi_output *dictionary, esp_error *err)
{
    esp_status status = ESP_OK;
    x->writer.output = output;
    x->writer.split = x->options.split;
    x->writer.json = x->reader.json = x->options.to != ESP_FORMAT_SVMTK;
    espi_random_seed(&x->random, x->options.seed);
    if (x->options.documents != NULL) {
        status = espi_srl_documents_read(&x->documents, x->options.documents, x->run, err);
        x->reader.wanted = espi_srl_documents_has;
        x->reader.user = &x->documents;
    }
    for (size_t i = 0; i < path_count && status == ESP_OK && !limit_reached(x); i++) status = do_file(x, paths[i], err);
    if (status == ESP_OK) status = check_documents(x, err);
    if (status == ESP_OK && !espi_srl_writer_end(&x->writer)) status = espi_no_memory(err);
    if (status == ESP_OK && dictionary != NULL && !espi_srl_writer_features(&x->writer, dictionary))
        status = espi_no_memory(err);
    return status;
}

esp_status esp_srl_write(const char *const *paths, size_t path_count, const esp_srl_options *options,
                         const esp_run *run, const char *output, esp_srl_counts *counts, esp_error *err)
{
    static const esp_srl_options none = {0};
    extraction *x = espi_alloc_zero(1, sizeof *x);
    esp_error error = {0};
    espi_output *out = NULL, *dictionary = NULL;
    if (x == NULL) return espi_no_memory(err);
    x->options = options != NULL ? *options : none;
    x->run = run;
    esp_status status = check_options(&x->options, path_count, output, &error);
    if (status == ESP_OK) status = espi_output_open(output, &out, &error);
    if (status == ESP_OK && x->options.features != NULL)
        status = espi_output_open(x->options.features, &dictionary, &error);
    if (status == ESP_OK) status = extract(x, paths, path_count, out, dictionary, &error);
    if (status == ESP_OK && dictionary != NULL) {
        status = espi_output_commit(dictionary, &error);
        dictionary = NULL;
    }
    if (status == ESP_OK) {
        status = espi_output_commit(out, &error);
        out = NULL;
    }
    espi_output_discard(dictionary);
    espi_output_discard(out);
    if (status == ESP_OK && counts != NULL) *counts = x->counts;
    if (status != ESP_OK && err != NULL) *err = error;
    release(x);
    espi_free(x);
    return status;
}
