#include "kernel/evaluate/segments.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/bound.h"
#include "kernel/expression/columns.h"

#include <string.h>

enum { CHUNK = 64 }; /* examples that a thread scores at once */

typedef struct segment { /* examples from .. to-1 of the list */
    size_t from, to;
    esp_dataset *examples;
    espi_scorer *scorer;
    bool changed; /* a coefficient, since it was folded */
} segment;

typedef struct copying { /* of one thread; kept from call to call */
    espi_copier *copier;
    double *score;
} copying;

struct espi_segments {
    const esp_kernel *kernel;
    const esp_dataset *data;
    bool *column; /* that the kernel uses */
    size_t outputs;
    uint32_t *place; /* per row of the data: in the list; UINT32_MAX: not there */
    size_t rows;
    uint32_t *listed;
    double *coefficient; /* example e of the list, output k: coefficient[e * outputs + k] */
    size_t count, listed_capacity, coefficient_capacity;
    segment *segment;
    size_t segments, segment_capacity;
    copying *copying;
    int workers;
};

/* -------------------------------------------------------------------- list */

static void free_segment(segment *g)
{
    espi_scorer_free(g->scorer);
    esp_dataset_free(g->examples);
}

void espi_segments_clear(espi_segments *s)
{
    for (size_t i = 0; i < s->segments; i++) free_segment(&s->segment[i]);
    for (size_t e = 0; e < s->count; e++) s->place[s->listed[e]] = UINT32_MAX;
    s->segments = s->count = 0;
}

void espi_segments_free(espi_segments *s)
{
    if (s == NULL) return;
    if (s->place != NULL) espi_segments_clear(s);
    for (int i = 0; i < s->workers; i++) {
        espi_copier_free(s->copying[i].copier);
        espi_free(s->copying[i].score);
    }
    espi_free(s->copying);
    espi_free(s->column);
    espi_free(s->place);
    espi_free(s->listed);
    espi_free(s->coefficient);
    espi_free(s->segment);
    espi_free(s);
}

esp_status espi_segments_grow(espi_segments *s, esp_error *err)
{
    uint32_t *place = espi_realloc(s->place, s->data->rows, sizeof *place);
    if (place == NULL) return espi_no_memory(err);
    s->place = place;
    for (; s->rows < s->data->rows; s->rows++) place[s->rows] = UINT32_MAX;
    return ESP_OK;
}

esp_status espi_segments_new(const esp_kernel *kernel, const esp_dataset *data, size_t outputs, espi_segments **out,
                             esp_error *err)
{
    espi_segments *s = espi_alloc_zero(1, sizeof *s);
    *out = NULL;
    if (s == NULL) return espi_no_memory(err);
    s->kernel = kernel;
    s->data = data;
    s->outputs = outputs;
    s->column = espi_alloc(data->columns, sizeof *s->column);
    if (s->column == NULL || espi_segments_grow(s, NULL) != ESP_OK) {
        espi_segments_free(s);
        return espi_no_memory(err);
    }
    espi_used_columns(kernel, data, s->column);
    *out = s;
    return ESP_OK;
}

size_t espi_segments_bytes(const espi_segments *s)
{
    return s->rows * sizeof *s->place + s->listed_capacity * sizeof *s->listed +
           s->coefficient_capacity * sizeof *s->coefficient;
}

esp_status espi_segments_add(espi_segments *s, size_t row, const double *coefficient, esp_error *err)
{
    if (s->place[row] == UINT32_MAX) {
        if (!espi_reserve(&s->listed, &s->listed_capacity, s->count + 1, sizeof *s->listed) ||
            !espi_reserve(&s->coefficient, &s->coefficient_capacity, (s->count + 1) * s->outputs,
                          sizeof *s->coefficient))
            return espi_no_memory(err);
        for (size_t k = 0; k < s->outputs; k++) s->coefficient[s->count * s->outputs + k] = 0.0;
        s->place[row] = (uint32_t)s->count;
        s->listed[s->count++] = (uint32_t)row;
    }
    const size_t e = s->place[row];
    for (size_t k = 0; k < s->outputs; k++) s->coefficient[e * s->outputs + k] += coefficient[k];
    for (size_t i = 0; i < s->segments; i++)
        if (e >= s->segment[i].from && e < s->segment[i].to) s->segment[i].changed = true;
    return ESP_OK;
}

/* ---------------------------------------------------------------- segments */

static esp_status copy_rows(const espi_segments *s, const uint32_t *row, size_t count, espi_copier **copier,
                            esp_dataset **out, esp_error *err)
{
    return espi_copier_dataset(copier, s->data, s->column, row, NULL, count, out, err);
}

static esp_status make_segment(espi_segments *s, segment *g, const esp_run *run, esp_error *err)
{
    espi_copier *copier = NULL;
    esp_status status = copy_rows(s, s->listed + g->from, g->to - g->from, &copier, &g->examples, err);
    espi_copier_free(copier);
    if (status != ESP_OK) return status;
    return espi_scorer_new(s->kernel, g->examples, s->coefficient + g->from * s->outputs, s->outputs, run, &g->scorer,
                           err);
}

/* Puts all that is listed into segments, each at least twice as long as the next, and folds what has changed. */
static esp_status prepare_segments(espi_segments *s, const esp_run *run, esp_error *err)
{
    size_t from = s->segments > 0 ? s->segment[s->segments - 1].to : 0;
    esp_status status = ESP_OK;
    if (from < s->count) {
        for (; s->segments > 0; s->segments--) {
            segment *last = &s->segment[s->segments - 1];
            if (last->to - last->from >= 2 * (s->count - from)) break;
            from = last->from;
            free_segment(last);
        }
        if (!espi_reserve(&s->segment, &s->segment_capacity, s->segments + 1, sizeof *s->segment))
            return espi_no_memory(err);
        s->segment[s->segments] = (segment){.from = from, .to = s->count};
        status = make_segment(s, &s->segment[s->segments++], run, err);
    }
    for (size_t i = 0; status == ESP_OK && i < s->segments; i++) {
        segment *g = &s->segment[i];
        if (g->changed) status = espi_scorer_fold(g->scorer, s->coefficient + g->from * s->outputs, err);
        g->changed = false;
    }
    return status;
}

/* ------------------------------------------------------------------ scores */

typedef struct scoring {
    espi_segments *segments;
    const uint32_t *row;
    size_t count;
    double *score;
} scoring;

static esp_status score_chunk(void *context, size_t item, const espi_worker *thread, esp_error *err)
{
    const scoring *j = context;
    espi_segments *s = j->segments;
    const size_t from = item * CHUNK, left = j->count - from, count = left < CHUNK ? left : CHUNK;
    copying *c = &s->copying[thread->number];
    double *out = j->score + from * s->outputs;
    esp_run alone = thread->run != NULL ? *thread->run : (esp_run){0};
    esp_dataset *copy = NULL;
    alone.threads = 1;
    alone.progress = NULL;
    if (c->score == NULL) c->score = espi_alloc(CHUNK * s->outputs, sizeof *c->score);
    esp_status status =
        c->score == NULL ? espi_no_memory(err) : copy_rows(s, j->row + from, count, &c->copier, &copy, err);
    for (size_t i = 0; i < count * s->outputs; i++) out[i] = 0.0;
    for (size_t g = 0; status == ESP_OK && g < s->segments; g++) {
        status = espi_scorer_score(s->segment[g].scorer, copy, &alone, c->score, err);
        for (size_t i = 0; status == ESP_OK && i < count * s->outputs; i++) out[i] += c->score[i];
    }
    esp_dataset_free(copy);
    return status;
}

esp_status espi_segments_score(espi_segments *s, const uint32_t *row, size_t count, const esp_run *run, double *score,
                               esp_error *err)
{
    scoring j = {.segments = s, .row = row, .count = count, .score = score};
    const size_t items = (count + CHUNK - 1) / CHUNK;
    const int workers = espi_worker_count(run, items);
    if (workers > s->workers) {
        copying *more = espi_realloc(s->copying, (size_t)workers, sizeof *more);
        if (more == NULL) return espi_no_memory(err);
        memset(more + s->workers, 0, (size_t)(workers - s->workers) * sizeof *more);
        s->copying = more;
        s->workers = workers;
    }
    const esp_status status = prepare_segments(s, run, err);
    return status == ESP_OK ? espi_parallel(run, "scoring", items, score_chunk, &j, err) : status;
}
