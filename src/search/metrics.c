/* How good rankings are, by judgements. Of a query with R relevant examples (those with a relevance above 0), whose
 * list has the relevances rel(1), rel(2), ... at its ranks:
 *
 *     reciprocal rank    1 / (the first rank r with rel(r) > 0), 0 if there is none
 *     average precision  (1/R) sum over the ranks r with rel(r) > 0 of  (relevant ones among the first r) / r
 *     P@k                (relevant ones among the first k) / k
 *     nDCG@k             DCG@k / (DCG@k of the best list),  DCG@k = sum_{r <= k} rel(r) / log2(r + 1)
 *
 * as trec_eval has them; an example that has the name of the query counts nowhere. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/status.h"
#include "data/stream.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct judgement {
    uint32_t query, example;
    double relevance;
} judgement;

struct esp_qrels {
    espi_symbols query, example;
    judgement *judgement; /* by query, then by example */
    size_t count, room;
};

void esp_qrels_free(esp_qrels *q)
{
    if (q == NULL) return;
    espi_symbols_free(&q->query);
    espi_symbols_free(&q->example);
    espi_free(q->judgement);
    espi_free(q);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The next field of a line; 0 bytes if there is none. */
static size_t take_field(const char *line, size_t size, size_t *at, const char **field)
{
    while (*at < size && is_blank(line[*at])) ++*at;
    *field = line + *at;
    const size_t from = *at;
    while (*at < size && !is_blank(line[*at])) ++*at;
    return *at - from;
}

static esp_status read_line(esp_qrels *q, const espi_stream *s, const char *line, size_t size, esp_error *err)
{
    const char *field[4], *more;
    size_t length[4], at = 0;
    for (size_t i = 0; i < 4; i++) length[i] = take_field(line, size, &at, &field[i]);
    judgement j = {0};
    char quoted[96];
    if (length[0] == 0) return ESP_OK;
    if (length[3] == 0 || take_field(line, size, &at, &more) > 0)
        return espi_stream_fail(s, err, "a judgement is four fields: query, 0, example, relevance");
    if (!espi_number_parse(field[3], length[3], &j.relevance))
        return espi_stream_fail(s, err, "the relevance is a number, not %s", espi_quote(field[3], length[3], quoted));
    j.query = espi_symbols_add(&q->query, field[0], length[0]);
    j.example = espi_symbols_add(&q->example, field[2], length[2]);
    if (j.query == ESPI_NO_SYMBOL || j.example == ESPI_NO_SYMBOL ||
        !espi_reserve(&q->judgement, &q->room, q->count + 1, sizeof *q->judgement))
        return espi_no_memory(err);
    q->judgement[q->count++] = j;
    return ESP_OK;
}

static int by_names(const void *x, const void *y)
{
    const judgement *a = x, *b = y;
    if (a->query != b->query) return a->query < b->query ? -1 : 1;
    if (a->example != b->example) return a->example < b->example ? -1 : 1;
    return (a->relevance < b->relevance) - (a->relevance > b->relevance);
}

/* Sorts, and keeps one of several judgements of the same: the highest. */
static void sort_judgements(esp_qrels *q)
{
    size_t kept = 0;
    if (q->count > 1) qsort(q->judgement, q->count, sizeof *q->judgement, by_names);
    for (size_t i = 0; i < q->count; i++) {
        const judgement *before = kept > 0 ? &q->judgement[kept - 1] : NULL, *j = &q->judgement[i];
        if (before != NULL && before->query == j->query && before->example == j->example) continue;
        q->judgement[kept++] = *j;
    }
    q->count = kept;
}

esp_status esp_qrels_read(const char *path, esp_qrels **out, esp_error *err)
{
    espi_stream stream;
    *out = NULL;
    esp_status status = espi_stream_open(&stream, path, NULL, err);
    if (status != ESP_OK) return status;
    esp_qrels *q = espi_alloc_zero(1, sizeof *q);
    status = q == NULL ? espi_no_memory(err) : ESP_OK;
    for (const char *line; status == ESP_OK;) {
        size_t size;
        if ((line = espi_stream_line(&stream, &size)) == NULL) break;
        status = read_line(q, &stream, line, size, err);
        espi_stream_advance(&stream, size);
        (void)espi_stream_line_end(&stream);
    }
    if (status == ESP_OK && stream.status != ESP_OK) status = espi_stream_fail(&stream, err, "unreadable");
    if (status == ESP_OK && q->count == 0) status = espi_fail(err, ESP_ERR_PARSE, "%s: there is no judgement", path);
    espi_stream_close(&stream);
    if (status == ESP_OK) {
        sort_judgements(q);
        *out = q;
    } else {
        esp_qrels_free(q);
    }
    return status;
}

/* ---------------------------------------------------------------- measuring */

typedef struct measuring {
    const esp_hits *hits;
    const esp_index *index;
    const esp_qrels *qrels;
    uint32_t *number; /* per example: its number in the judgements, or ESPI_NO_SYMBOL */
    bool *known;      /* per example in the judgements: the index has it */
    double *gain;     /* of the best list */
} measuring;

static size_t first_of(const esp_qrels *q, uint32_t query)
{
    size_t low = 0, high = q->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (q->judgement[middle].query < query) low = middle + 1;
        else high = middle;
    }
    return low;
}

static double relevance(const esp_qrels *q, size_t first, size_t end, uint32_t example)
{
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (q->judgement[middle].example == example) return q->judgement[middle].relevance;
        if (q->judgement[middle].example < example) first = middle + 1;
        else end = middle;
    }
    return 0.0;
}

static int falling(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a < b) - (a > b);
}

/* Adds what the list of one query gives; its judgements are first .. end-1, `self` is its name among examples. */
static void measure_list(const measuring *m, size_t query, size_t first, size_t end, uint32_t self,
                         esp_search_metrics *out)
{
    const esp_qrels *q = m->qrels;
    size_t count, rank = 0, found = 0, relevant = 0;
    double precision = 0.0, dcg = 0.0, dcg_10 = 0.0, best = 0.0, best_10 = 0.0;
    for (size_t i = first; i < end; i++) {
        if (q->judgement[i].example == self) continue;
        if (!m->known[q->judgement[i].example]) out->unknown_examples++;
        if (q->judgement[i].relevance > 0.0) m->gain[relevant++] = q->judgement[i].relevance;
    }
    if (relevant == 0) {
        out->unjudged++;
        return;
    }
    qsort(m->gain, relevant, sizeof *m->gain, falling);
    for (size_t i = 0; i < relevant; i++) {
        best += m->gain[i] / log2((double)i + 2.0);
        if (i < 10) best_10 = best;
    }
    const esp_hit *hit = esp_hits_of(m->hits, query, &count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t example = m->number[hit[i].example];
        if (example != ESPI_NO_SYMBOL && example == self) continue;
        const double gain = example == ESPI_NO_SYMBOL ? 0.0 : relevance(q, first, end, example);
        rank++;
        if (!(gain > 0.0)) continue;
        if (found++ == 0) out->mrr += 1.0 / (double)rank;
        precision += (double)found / (double)rank;
        dcg += gain / log2((double)rank + 1.0);
        if (rank <= 10) dcg_10 = dcg;
        if (rank <= 1) out->precision_1 += 1.0;
        if (rank <= 5) out->precision_5 += 1.0 / 5.0;
        if (rank <= 10) out->precision_10 += 1.0 / 10.0;
    }
    out->queries++;
    out->map += precision / (double)relevant;
    out->ndcg += dcg / best;
    out->ndcg_10 += dcg_10 / best_10;
}

static bool start(measuring *m)
{
    const esp_qrels *q = m->qrels;
    m->number = espi_alloc(m->index->count, sizeof *m->number);
    m->known = espi_alloc_zero(q->example.count, sizeof *m->known);
    m->gain = espi_alloc(q->count, sizeof *m->gain);
    if (m->number == NULL || m->known == NULL || m->gain == NULL) return false;
    for (size_t i = 0; i < m->index->count; i++) {
        const char *name = esp_index_id(m->index, i);
        m->number[i] = espi_symbols_find(&q->example, name, strlen(name));
        if (m->number[i] != ESPI_NO_SYMBOL) m->known[m->number[i]] = true;
    }
    return true;
}

static void finish(esp_search_metrics *m)
{
    double *const mean[] = {&m->mrr,         &m->map,         &m->ndcg,        &m->ndcg_10,
                            &m->precision_1, &m->precision_5, &m->precision_10};
    for (size_t i = 0; i < sizeof mean / sizeof *mean && m->queries > 0; i++) *mean[i] /= (double)m->queries;
}

esp_status esp_hits_measure(const esp_hits *hits, const esp_index *index, const esp_qrels *qrels,
                            esp_search_metrics *out, esp_error *err)
{
    measuring m = {.hits = hits, .index = index, .qrels = qrels};
    size_t asked = 0;
    *out = (esp_search_metrics){0};
    if (index->id_end == NULL || hits->id_end == NULL)
        return espi_suggest(err,
                            espi_fail(err, ESP_ERR_PARAM, "judgements need names, and the %s have none",
                                      index->id_end == NULL ? "examples" : "queries"),
                            "id", NULL);
    const bool ok = start(&m);
    for (size_t i = 0; ok && i < hits->queries; i++) {
        const char *name = esp_hits_id(hits, i);
        const uint32_t query = espi_symbols_find(&qrels->query, name, strlen(name)),
                       self = espi_symbols_find(&qrels->example, name, strlen(name));
        size_t first = 0, end = 0;
        if (query != ESPI_NO_SYMBOL) {
            asked++;
            first = first_of(qrels, query);
            end = first_of(qrels, query + 1);
        }
        measure_list(&m, i, first, end, self, out);
    }
    out->unknown_queries = qrels->query.count - asked;
    finish(out);
    espi_free(m.number);
    espi_free(m.known);
    espi_free(m.gain);
    return ok ? ESP_OK : espi_no_memory(err);
}
