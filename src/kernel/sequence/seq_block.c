/* Rows of a symmetric matrix of the sequence kernel by patterns:
 *
 *     K(S_i, S_j) = sum over u of phi_u(S_i) phi_u(S_j),   u that at least two sequences have; i != j
 *
 * A pattern of many sequences is a vector with a number for each of them, and a row adds up the vectors of its
 * patterns; the others are inverted lists. Patterns that one sequence has to itself count in K(S_i, S_i) only, which
 * the recursion gives. The derivative in lambda has phi' phi + phi phi' in the place of phi phi, where phi' is in a
 * block of its own, with the same patterns in the same order. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/hot.h"
#include "kernel/sequence/sequence.h"

#include <string.h>

enum {
    MANY = 8,        /* a vector from one sequence in so many on: adding to neighbours is that much faster */
    STRIP = 1024,    /* columns at a time, which stay in the cache */
    BYTES = 72,      /* of a posting at most, while all is made */
    SHARE = 4,       /* part of the memory that may be taken */
    PLENTY = 1 << 25 /* postings where no limit is given */
};

/* What adding up takes, per number and for half a matrix; the unit is a token visited by espi_seq_mine. */
static const double list_effort = 0.03, vector_effort = 0.005;

typedef struct collector {
    espi_seq_block *block;
    size_t start_capacity, capacity[2], vector_capacity;
    size_t postings, room;
} collector;

void espi_seq_block_free(espi_seq_block *b)
{
    espi_lists_free(&b->lists);
    espi_bag_free(&b->bag);
    espi_free(b->vector);
    espi_bag_free(&b->frequent);
    espi_free(b->self);
    *b = (espi_seq_block){0};
}

static bool collect_vector(collector *c, const espi_seq_posting *posting, size_t postings)
{
    espi_seq_block *b = c->block;
    const size_t at = b->vectors * b->count;
    if (!espi_reserve(&b->vector, &c->vector_capacity, at + b->count, sizeof *b->vector)) return false;
    memset(b->vector + at, 0, b->count * sizeof *b->vector);
    for (size_t i = 0; i < postings; i++) b->vector[at + posting[i].seq] = posting[i].phi;
    b->vectors++;
    return true;
}

static bool collect(void *context, uint32_t parent, uint32_t symbol, const espi_seq_posting *posting, size_t postings,
                    uint32_t *number, double *effort)
{
    (void)parent, (void)symbol;
    collector *c = context;
    espi_lists *l = &c->block->lists;
    const bool vector = postings > c->block->count / MANY;
    *number = 0; /* nobody asks for the parent */
    c->postings += postings;
    *effort += (double)postings * (vector ? vector_effort * (double)c->block->count : list_effort * (double)postings);
    if (c->postings > c->room) *effort = HUGE_VAL;
    if (vector) return collect_vector(c, posting, postings);
    const size_t at = l->start[l->features];
    if (!espi_reserve(&l->start, &c->start_capacity, l->features + 2, sizeof *l->start) ||
        !espi_reserve(&l->row, &c->capacity[0], at + postings, sizeof *l->row) ||
        !espi_reserve(&l->value, &c->capacity[1], at + postings, sizeof *l->value))
        return false;
    for (size_t i = 0; i < postings; i++) {
        l->row[at + i] = posting[i].seq;
        l->value[at + i] = posting[i].phi;
    }
    l->start[++l->features] = at + postings;
    return true;
}

/* The vectors by sequence, without zeros. */
static bool make_frequent(espi_seq_block *b)
{
    espi_bag *bag = &b->frequent;
    size_t entries = 0;
    for (size_t k = 0; k < b->vectors * b->count; k++) entries += b->vector[k] != 0.0;
    bag->row = espi_alloc(b->count + 1, sizeof *bag->row);
    bag->feature = espi_alloc(entries, sizeof *bag->feature);
    bag->value = espi_alloc(entries, sizeof *bag->value);
    if (bag->row == NULL || bag->feature == NULL || bag->value == NULL) return false;
    bag->rows = b->count;
    size_t at = bag->row[0] = 0;
    for (size_t i = 0; i < b->count; i++) {
        for (size_t v = 0; v < b->vectors; v++) {
            const double phi = b->vector[v * b->count + i];
            if (phi == 0.0) continue;
            bag->feature[at] = (uint32_t)v;
            bag->value[at++] = phi;
        }
        bag->row[i + 1] = at;
    }
    return true;
}

/* All but the self-values. */
static esp_status make_patterns(espi_seq_block *b, const espi_seq_rule *rule, const espi_seqs *seqs, double effort,
                                bool slopes, const esp_run *run, bool *done, esp_error *err)
{
    *b = (espi_seq_block){.count = seqs->count};
    collector c = {.block = b, .room = PLENTY};
    if (run != NULL && run->memory > 0 && run->memory / SHARE / BYTES < PLENTY) c.room = run->memory / SHARE / BYTES;
    const espi_seq_mining mining = {.seqs = seqs,
                                    .rule = rule,
                                    .support = 2,
                                    .effort = effort,
                                    .places = c.room,
                                    .slopes = slopes,
                                    .sink = collect,
                                    .context = &c};
    *done = false;
    esp_status status =
        espi_reserve(&b->lists.start, &c.start_capacity, 1, sizeof *b->lists.start) ? ESP_OK : espi_no_memory(err);
    if (status == ESP_OK) {
        b->lists.start[0] = 0;
        status = espi_seq_mine(&mining, run, done, err);
    }
    if (status == ESP_OK && *done && !(make_frequent(b) && espi_lists_bag(&b->lists, b->count, &b->bag)))
        status = espi_no_memory(err);
    if (status != ESP_OK || !*done) espi_seq_block_free(b);
    return status;
}

esp_status espi_seq_block_make(espi_seq_block *b, const espi_seq_rule *rule, const espi_seqs *seqs, double effort,
                               const esp_run *run, esp_error *err)
{
    bool done;
    esp_status status = make_patterns(b, rule, seqs, effort, false, run, &done, err);
    if (status != ESP_OK || !done) return status;
    b->self = espi_alloc(b->count, sizeof *b->self);
    status = b->self == NULL ? espi_no_memory(err) : espi_seq_self_values(rule, seqs, run, b->self, err);
    if (status != ESP_OK) espi_seq_block_free(b);
    return status;
}

esp_status espi_seq_block_make_slopes(espi_seq_block *slopes, const espi_seq_rule *rule, const espi_seqs *seqs,
                                      double effort, const esp_run *run, esp_error *err)
{
    bool done;
    const esp_status status = make_patterns(slopes, rule, seqs, effort, true, run, &done, err);
    return status == ESP_OK && !done ? espi_no_memory(err) : status;
}

/* out[j] += sum over k < 4 of x[k] v[k][j] */
HOT static void add_four(double *restrict out, const double *const v[4], const double x[4], size_t n)
{
    const double *restrict a = v[0], *restrict b = v[1], *restrict c = v[2], *restrict d = v[3];
    for (size_t j = 0; j < n; j++) out[j] = (((out[j] + x[0] * a[j]) + x[1] * b[j]) + x[2] * c[j]) + x[3] * d[j];
}

HOT static void add_one(double *restrict out, const double *restrict v, double x, size_t n)
{
    for (size_t j = 0; j < n; j++) out[j] += x * v[j];
}

/* out[j - from] += the sum over u of what `a` has for u and the row times what `b` has for u and j. */
static void add_patterns(const espi_seq_block *a, const espi_seq_block *b, size_t row, size_t from, size_t to,
                         double *out)
{
    const espi_bag *f = &a->frequent;
    for (size_t at = from; at < to; at += STRIP) {
        const size_t n = to - at < STRIP ? to - at : STRIP;
        size_t i = f->row[row];
        for (; i + 4 <= f->row[row + 1]; i += 4) {
            const double *v[4], *x = f->value + i;
            for (size_t k = 0; k < 4; k++) v[k] = b->vector + f->feature[i + k] * b->count + at;
            add_four(out + (at - from), v, x, n);
        }
        for (; i < f->row[row + 1]; i++)
            add_one(out + (at - from), b->vector + f->feature[i] * b->count + at, f->value[i], n);
    }
    espi_lists_row(&b->lists, &a->bag, row, from, to, 1.0, out);
}

void espi_seq_block_row(const espi_seq_block *b, size_t row, size_t from, size_t to, double *out)
{
    memset(out, 0, (to - from) * sizeof *out);
    add_patterns(b, b, row, from, to, out);
    if (row >= from && row < to) out[row - from] = b->self[row];
}

void espi_seq_block_slope_row(const espi_seq_block *b, const espi_seq_block *slopes, size_t row, size_t from, size_t to,
                              double *out)
{
    memset(out, 0, (to - from) * sizeof *out);
    add_patterns(b, slopes, row, from, to, out);
    add_patterns(slopes, b, row, from, to, out);
}
