/* Sums over examples that are divided among ranks: what rank 0 tells the others, and what all do then (shares.h). */
#include "kernel/evaluate/shares_state.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum {
    HOLD_MOST = 1 << 13, /* examples that are sent at once */
    ADD_MOST = 1 << 15   /* coefficients */
};

typedef enum command_kind { SUM_NEW, SUM_FREE, CLEAR, HOLD, SCORE, SCORE_HELD, ADD, GRAMS, ALIKE, END } command_kind;

typedef struct command { /* followed by its bytes: numbers of examples or runs of them, coefficients */
    uint64_t kind, count, size;
} command;

typedef struct run_of { /* examples first .. first + count - 1 */
    uint32_t first, count;
} run_of;

static bool leads(const espi_shares *s) { return espi_group_rank(s->run) == 0; }

/* ------------------------------------------------------- what all ranks do */

static size_t owner_of(const espi_shares *s, uint32_t example)
{
    size_t low = 0, high = s->ranks - 1; /* the first that ends behind it */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->start[middle + 1] > example) high = middle;
        else low = middle + 1;
    }
    return low;
}

static bool is_own(const espi_shares *s, uint32_t example)
{
    const size_t rank = (size_t)espi_group_rank(s->run);
    return example >= s->start[rank] && example < s->start[rank + 1];
}

static uint32_t own_row(const espi_shares *s, uint32_t example)
{
    return example - (uint32_t)s->start[espi_group_rank(s->run)];
}

/* Scores rows of the share, and gives `room` numbers of each rank to rank 0, at *all. */
static esp_status score_rows(espi_shares *s, const uint32_t *row, size_t count, size_t room, double **all,
                             esp_error *err)
{
    const double began = espi_seconds();
    const size_t width = s->outputs;
    double *own = espi_alloc_zero(room, width * sizeof *own);
    *all = leads(s) ? espi_alloc(s->ranks * room, width * sizeof **all) : NULL;
    esp_status status = own == NULL || (leads(s) && *all == NULL) ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK && count > 0) status = espi_folded_sum_score(s->sum, row, count, &s->here, own, err);
    s->work.looks += count;
    s->work.seconds += espi_seconds() - began;
    if (status == ESP_OK) status = espi_group_collect(s->run, own, room * width * sizeof *own, *all, err);
    espi_free(own);
    return status;
}

/* Examples by their owners: `number` of each rank, and the rows of this one, of which there may be `number[rank]`. */
static void divide(const espi_shares *s, const run_of *run, size_t runs, size_t *number, uint32_t *row)
{
    const size_t rank = (size_t)espi_group_rank(s->run);
    memset(number, 0, s->ranks * sizeof *number);
    for (size_t i = 0; i < runs; i++) {
        const size_t end = (size_t)run[i].first + run[i].count;
        for (size_t r = owner_of(s, run[i].first), at = run[i].first; at < end; r++) {
            const size_t to = end < s->start[r + 1] ? end : s->start[r + 1];
            for (size_t k = at; row != NULL && r == rank && k < to; k++)
                row[number[r] + k - at] = own_row(s, (uint32_t)k);
            number[r] += to > at ? to - at : 0;
            at = to;
        }
    }
}

static esp_status do_score(espi_shares *s, const run_of *run, size_t runs, double *score, esp_error *err)
{
    const size_t rank = (size_t)espi_group_rank(s->run);
    size_t room = 0, *number = espi_alloc_zero(s->ranks, sizeof *number);
    if (number == NULL) return espi_no_memory(err);
    divide(s, run, runs, number, NULL);
    for (size_t r = 0; r < s->ranks; r++) room = number[r] > room ? number[r] : room;
    uint32_t *row = espi_alloc(number[rank], sizeof *row);
    double *all = NULL;
    if (row != NULL) divide(s, run, runs, number, row);
    esp_status status = row == NULL ? espi_no_memory(err) : score_rows(s, row, number[rank], room, &all, err);
    if (status == ESP_OK && score != NULL) { /* back into the order that was asked for */
        memset(number, 0, s->ranks * sizeof *number);
        for (size_t i = 0; i < runs; i++)
            for (size_t k = 0; k < run[i].count; k++, score += s->outputs) {
                const size_t r = owner_of(s, run[i].first + (uint32_t)k);
                memcpy(score, all + (r * room + number[r]++) * s->outputs, s->outputs * sizeof *score);
            }
    }
    espi_free(number);
    espi_free(row);
    espi_free(all);
    return status;
}

/* Held examples are divided evenly, whoever they came from. */
static esp_status do_score_held(espi_shares *s, const uint32_t *held, size_t count, double *score, esp_error *err)
{
    const size_t rank = (size_t)espi_group_rank(s->run), room = (count + s->ranks - 1) / s->ranks;
    const size_t from = rank * room < count ? rank * room : count, to = from + room < count ? from + room : count;
    uint32_t *row = espi_alloc(room, sizeof *row);
    double *all = NULL;
    for (size_t i = from; row != NULL && i < to; i++) row[i - from] = s->held_row[held[i]];
    const esp_status status = row == NULL ? espi_no_memory(err) : score_rows(s, row, to - from, room, &all, err);
    if (status == ESP_OK && score != NULL) memcpy(score, all, count * s->outputs * sizeof *score);
    espi_free(row);
    espi_free(all);
    return status;
}

/* Rows of the share that hold the examples, from held number s->held on. */
static esp_status take_parts(espi_shares *s, const uint32_t *example, size_t count, const espi_group_parts *part,
                             esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count;) {
        const size_t r = owner_of(s, example[i]), first = s->data->rows;
        const bool own = is_own(s, example[i]);
        if (!own) status = espi_parcel_append(part->bytes + r * part->stride, part->size[r], s->data, err);
        for (size_t k = 0; status == ESP_OK && i < count && owner_of(s, example[i]) == r; k++, i++) {
            s->held_row[s->held] = own ? own_row(s, example[i]) : (uint32_t)(first + k);
            if (s->place != NULL) s->place[example[i]] = (uint32_t)s->held;
            s->held++;
        }
    }
    return status;
}

/* Examples in increasing order become held. */
static esp_status do_hold(espi_shares *s, const uint32_t *example, size_t count, esp_error *err)
{
    espi_group_parts part = {0};
    uint32_t *row = espi_alloc(count, sizeof *row);
    char *bytes = NULL;
    size_t own = 0, size = 0;
    esp_status status =
        row == NULL || !espi_reserve(&s->held_row, &s->held_capacity, s->held + count, sizeof *s->held_row)
            ? espi_no_memory(err)
            : ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        if (is_own(s, example[i])) row[own++] = own_row(s, example[i]);
    if (status == ESP_OK && own > 0) status = espi_parcel_examples(s->data, row, own, &bytes, &size, err);
    if (status == ESP_OK) status = espi_group_bring(s->run, bytes, size, true, &part, err);
    if (status == ESP_OK) status = take_parts(s, example, count, &part, err);
    if (status == ESP_OK && s->sum != NULL) status = espi_folded_sum_grow(s->sum, &s->here, err);
    espi_group_parts_free(&part);
    espi_free(bytes);
    espi_free(row);
    return status;
}

static esp_status do_add(espi_shares *s, const uint32_t *held, size_t count, const double *coefficient, esp_error *err)
{
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        status = espi_folded_sum_add(s->sum, &s->held_row[held[i]], 1, coefficient + i * s->outputs, err);
    return status;
}

static esp_status do_sum_new(espi_shares *s, size_t outputs, esp_error *err)
{
    s->outputs = outputs;
    return espi_folded_sum_new(s->kernel, s->data, outputs, &s->here, &s->sum, err);
}

static void do_sum_free(espi_shares *s)
{
    espi_folded_sum_free(s->sum);
    s->sum = NULL;
}

/* ---------------------------------------------------------------- the others */

static esp_status obey(espi_shares *s, const command *c, const void *bytes, esp_error *err)
{
    const size_t count = (size_t)c->count;
    const uint32_t *number = bytes;
    switch ((command_kind)c->kind) {
    case SUM_NEW: return do_sum_new(s, count, err);
    case SUM_FREE: do_sum_free(s); return ESP_OK;
    case CLEAR: espi_folded_sum_clear(s->sum); return ESP_OK;
    case HOLD: return do_hold(s, number, count, err);
    case SCORE: return do_score(s, bytes, count, NULL, err);
    case SCORE_HELD: return do_score_held(s, number, count, NULL, err);
    case ADD: /* coefficients, then numbers, so that both are aligned */
        return do_add(s, (const uint32_t *)(const void *)((const double *)bytes + count * s->outputs), count, bytes,
                      err);
    case GRAMS: return espi_shares_do_grams(s, number, NULL, err);
    case ALIKE: return espi_shares_do_alike(s, number, NULL, err);
    case END: break;
    }
    return ESP_OK;
}

esp_status espi_shares_serve(espi_shares *s, esp_error *err)
{
    esp_error ignored;
    esp_status status = ESP_OK;
    if (err == NULL) err = &ignored;
    for (command c = {0}; status == ESP_OK && c.kind != END;) {
        char *bytes = NULL;
        status = espi_group_broadcast(s->run, &c, sizeof c, err);
        if (status == ESP_OK && (bytes = espi_alloc((size_t)c.size, 1)) == NULL) status = espi_no_memory(err);
        if (status == ESP_OK && c.size > 0) status = espi_group_broadcast(s->run, bytes, (size_t)c.size, err);
        if (status == ESP_OK) status = obey(s, &c, bytes, err);
        espi_free(bytes);
    }
    if (status == ESP_OK) status = espi_shares_tell_work(s, err);
    return espi_group_end(s->run, status, err);
}

/* ------------------------------------------------------------------- rank 0 */

/* Returns `status`. */
static esp_status noted(espi_shares *s, esp_status status)
{
    if (status != ESP_OK) s->broken = true;
    return status;
}

static esp_status tell(const espi_shares *s, command_kind kind, size_t count, void *bytes, size_t size, esp_error *err)
{
    command c = {.kind = kind, .count = count, .size = size};
    esp_status status = espi_group_broadcast(s->run, &c, sizeof c, err);
    if (status == ESP_OK && size > 0) status = espi_group_broadcast(s->run, bytes, size, err);
    return status;
}

esp_status espi_shares_end(espi_shares *s, esp_status status, esp_error *err)
{
    esp_error ignored;
    if (err == NULL) err = &ignored;
    if (status == ESP_OK) status = tell(s, END, 0, NULL, 0, err);
    if (status == ESP_OK) status = espi_shares_tell_work(s, err);
    return espi_group_end(s->run, status, err);
}

esp_status espi_shares_sum_new(espi_shares *s, size_t outputs, esp_error *err)
{
    s->cleared = false;
    const esp_status status = tell(s, SUM_NEW, outputs, NULL, 0, err);
    return noted(s, status == ESP_OK ? do_sum_new(s, outputs, err) : status);
}

void espi_shares_sum_free(espi_shares *s)
{
    /* A failure now is found by the next who tells something. */
    if (!s->broken) (void)tell(s, SUM_FREE, 0, NULL, 0, NULL);
    do_sum_free(s);
}

void espi_shares_clear(espi_shares *s) { s->cleared = true; }

/* What was put off until something is done with the sum. */
static esp_status clear(espi_shares *s, esp_error *err)
{
    if (!s->cleared) return ESP_OK;
    const esp_status status = tell(s, CLEAR, 0, NULL, 0, err);
    espi_folded_sum_clear(s->sum);
    s->cleared = false;
    return status;
}

esp_status espi_shares_hold(espi_shares *s, const uint32_t *example, size_t count, esp_error *err)
{
    uint32_t *wanted = espi_alloc(count, sizeof *wanted);
    uint64_t *key = espi_alloc(count, sizeof *key);
    esp_status status = wanted == NULL || key == NULL ? espi_no_memory(err) : ESP_OK;
    size_t new = 0;
    for (size_t i = 0; status == ESP_OK && i < count; i++)
        if (s->place[example[i]] == ESPI_NOT_HELD) key[new ++] = example[i];
    if (status == ESP_OK) espi_sort_keys(key, new);
    for (size_t i = 0; status == ESP_OK && i < new; i++) wanted[i] = (uint32_t)key[i];
    for (size_t i = 0; status == ESP_OK && i < new; i += HOLD_MOST) {
        const size_t some = new - i < HOLD_MOST ? new - i : HOLD_MOST;
        status = tell(s, HOLD, some, wanted + i, some * sizeof *wanted, err);
        if (status == ESP_OK) status = do_hold(s, wanted + i, some, err);
    }
    espi_free(wanted);
    espi_free(key);
    return noted(s, status);
}

esp_status espi_shares_score(espi_shares *s, const uint32_t *example, size_t count, double *score, esp_error *err)
{
    size_t runs = 0, held = 0;
    esp_status status = clear(s, err);
    for (size_t i = 0; i < count; i++) held += s->place[example[i]] != ESPI_NOT_HELD;
    for (size_t i = 0; i < count; i++) runs += i == 0 || example[i] != example[i - 1] + 1;
    const size_t size = held == count ? count * sizeof(uint32_t) : runs * sizeof(run_of);
    void *bytes = espi_alloc(size, 1);
    if (status == ESP_OK && bytes == NULL) status = espi_no_memory(err);
    if (status == ESP_OK && held == count) {
        uint32_t *number = bytes;
        for (size_t i = 0; i < count; i++) number[i] = s->place[example[i]];
        status = tell(s, SCORE_HELD, count, bytes, size, err);
        if (status == ESP_OK) status = do_score_held(s, bytes, count, score, err);
    } else if (status == ESP_OK) {
        run_of *run = bytes;
        for (size_t i = 0, n = 0; i < count; i++) {
            if (i == 0 || example[i] != example[i - 1] + 1) run[n++] = (run_of){.first = example[i]};
            run[n - 1].count++;
        }
        status = tell(s, SCORE, runs, bytes, size, err);
        if (status == ESP_OK) status = do_score(s, bytes, runs, score, err);
    }
    espi_free(bytes);
    return noted(s, status);
}

/* Those of the coefficients that are not 0. */
static esp_status add_some(espi_shares *s, const uint32_t *example, size_t count, const double *coefficient,
                           esp_error *err)
{
    const size_t width = s->outputs;
    const size_t size = count * (width * sizeof *coefficient + sizeof *example);
    double *some = espi_alloc(size, 1);
    uint32_t *number = (uint32_t *)(void *)(some + count * width);
    if (some == NULL) return espi_no_memory(err);
    memcpy(some, coefficient, count * width * sizeof *some);
    for (size_t i = 0; i < count; i++) number[i] = s->place[example[i]];
    esp_status status = tell(s, ADD, count, some, size, err);
    if (status == ESP_OK) status = do_add(s, number, count, some, err);
    espi_free(some);
    return status;
}

esp_status espi_shares_add(espi_shares *s, const uint32_t *example, size_t count, const double *coefficient,
                           esp_error *err)
{
    const size_t width = s->outputs;
    uint32_t *wanted = espi_alloc(count, sizeof *wanted);
    double *some = espi_alloc(count, width * sizeof *some);
    esp_status status = wanted == NULL || some == NULL ? espi_no_memory(err) : clear(s, err);
    size_t adds = 0;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        bool any = false;
        for (size_t k = 0; k < width; k++) any = any || coefficient[i * width + k] != 0.0;
        if (!any) continue;
        memcpy(some + adds * width, coefficient + i * width, width * sizeof *some);
        wanted[adds++] = example[i];
    }
    if (status == ESP_OK) status = espi_shares_hold(s, wanted, adds, err);
    for (size_t i = 0; status == ESP_OK && i < adds; i += ADD_MOST)
        status = add_some(s, wanted + i, adds - i < ADD_MOST ? adds - i : ADD_MOST, some + i * width, err);
    espi_free(wanted);
    espi_free(some);
    return noted(s, status);
}

size_t espi_shares_bytes(const espi_shares *s) { return s->sum != NULL ? espi_folded_sum_bytes(s->sum) : 0; }

esp_status espi_shares_grams(espi_shares *s, espi_gram_block *block, size_t blocks, esp_error *err)
{
    size_t total = 0, at = 0;
    esp_status status = ESP_OK;
    for (size_t b = 0; status == ESP_OK && b < blocks; total += block[b++].count)
        status = espi_shares_hold(s, block[b].row, block[b].count, err);
    const size_t size = (1 + blocks + total) * sizeof(uint32_t);
    uint32_t *number = espi_alloc(size, 1);
    if (status == ESP_OK && number == NULL) status = espi_no_memory(err);
    if (status == ESP_OK) {
        number[at++] = (uint32_t)blocks;
        for (size_t b = 0; b < blocks; b++) number[at++] = (uint32_t)block[b].count;
        for (size_t b = 0; b < blocks; b++)
            for (size_t i = 0; i < block[b].count; i++) number[at++] = s->place[block[b].row[i]];
        status = tell(s, GRAMS, at, number, size, err);
    }
    if (status == ESP_OK) status = espi_shares_do_grams(s, number, block, err);
    espi_free(number);
    return noted(s, status);
}

esp_status espi_shares_alike(espi_shares *s, const espi_alike *a, esp_error *err)
{
    const size_t size = (2 + a->pivots + a->count) * sizeof(uint32_t);
    size_t at = 0;
    uint32_t *number = espi_alloc(size, 1);
    esp_status status = number == NULL ? espi_no_memory(err) : espi_shares_hold(s, a->pivot, a->pivots, err);
    if (status == ESP_OK) status = espi_shares_hold(s, a->row, a->count, err);
    if (status == ESP_OK) {
        number[at++] = (uint32_t)a->pivots;
        number[at++] = (uint32_t)a->count;
        for (size_t i = 0; i < a->pivots; i++) number[at++] = s->place[a->pivot[i]];
        for (size_t i = 0; i < a->count; i++) number[at++] = s->place[a->row[i]];
        status = tell(s, ALIKE, at, number, size, err);
    }
    if (status == ESP_OK) status = espi_shares_do_alike(s, number, a, err);
    espi_free(number);
    return noted(s, status);
}
