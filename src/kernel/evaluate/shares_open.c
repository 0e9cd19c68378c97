/* Opens shares (shares.h): who has how many examples, whether these are of one kind, and their targets. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/text.h"
#include "kernel/evaluate/shares_state.h"
#include "kernel/expression/columns.h"

#include <stdio.h>
#include <string.h>

void espi_shares_free(espi_shares *s)
{
    if (s == NULL) return;
    espi_folded_sum_free(s->sum);
    esp_kernel_free(s->kernel);
    esp_dataset_free(s->targets);
    espi_free(s->start);
    espi_free(s->held_row);
    espi_free(s->place);
    espi_free(s);
}

/* Everybody learns how many examples the others have. */
static esp_status count_examples(espi_shares *s, esp_error *err)
{
    const uint64_t own = s->data->rows;
    uint64_t *all = espi_alloc(s->ranks, sizeof *all);
    s->start = espi_alloc_zero(s->ranks + 1, sizeof *s->start);
    esp_status status =
        all == NULL || s->start == NULL ? espi_no_memory(err) : espi_group_gather(s->run, &own, sizeof own, all, err);
    for (size_t r = 0; status == ESP_OK && r < s->ranks; r++) s->start[r + 1] = s->start[r] + (size_t)all[r];
    espi_free(all);
    if (status != ESP_OK) return status;
    if (s->start[s->ranks] == 0) return espi_fail(err, ESP_ERR_PARSE, "there are no examples");
    if (s->start[s->ranks] >= ESPI_NOT_HELD)
        return espi_fail(err, ESP_ERR_PARAM, "there are %zu examples, more than this version can number",
                         s->start[s->ranks]);
    return ESP_OK;
}

/* A rank without examples gets one, so that it knows the columns. */
static esp_status seed_empty(espi_shares *s, esp_error *err)
{
    static const uint32_t first = 0;
    espi_group_parts part = {0};
    char *bytes = NULL;
    size_t size = 0, giver = 0;
    bool empty = false;
    while (s->start[giver + 1] == 0) giver++;
    for (size_t r = 0; r < s->ranks; r++) empty = empty || s->start[r + 1] == s->start[r];
    if (!empty) return ESP_OK;
    esp_status status = ESP_OK;
    if ((size_t)espi_group_rank(s->run) == giver) status = espi_parcel_examples(s->data, &first, 1, &bytes, &size, err);
    if (status == ESP_OK) status = espi_group_bring(s->run, bytes, size, true, &part, err);
    if (status == ESP_OK && s->data->rows == 0)
        status = espi_parcel_append(part.bytes + giver * part.stride, (size_t)part.size[giver], s->data, err);
    espi_group_parts_free(&part);
    espi_free(bytes);
    return status;
}

static esp_status bring_targets(espi_shares *s, esp_error *err)
{
    const bool leader = espi_group_rank(s->run) == 0;
    espi_group_parts part = {0};
    char *bytes = NULL;
    size_t size = 0;
    esp_status status = espi_parcel_targets(s->data, &bytes, &size, err);
    if (status == ESP_OK) status = espi_group_bring(s->run, bytes, size, false, &part, err);
    if (status == ESP_OK && leader && (s->targets = espi_dataset_new(s->data->format)) == NULL)
        status = espi_no_memory(err);
    for (size_t r = 0; status == ESP_OK && leader && r < s->ranks; r++) {
        const size_t before = s->targets->rows;
        status = espi_parcel_append_targets(part.bytes + r * part.stride, (size_t)part.size[r], s->targets, err);
        const size_t own = s->start[r + 1] - s->start[r], got = status == ESP_OK ? s->targets->rows - before : own;
        if (got != own)
            status = espi_fail(err, ESP_ERR_PARAM, "the examples of rank %zu on %s have no targets", r,
                               esp_group_host(s->run->group, (int)r));
    }
    espi_group_parts_free(&part);
    espi_free(bytes);
    return status;
}

/* The columns must be of one kind at all ranks. */
static esp_status agree_columns(const espi_shares *s, esp_error *err)
{
    static const char *const type[] = {" of trees\n", " of sequences\n", " of vectors\n"};
    espi_text text = {0};
    for (size_t i = 0; i < s->data->columns; i++) {
        espi_text_string(&text, s->data->column[i].name);
        espi_text_string(&text, type[s->data->column[i].type]);
    }
    char *all = espi_text_take(&text);
    const esp_status status = all == NULL ? espi_no_memory(err) : esp_group_agree(s->run, "column", all, err);
    espi_free(all);
    return status;
}

/* What the kernel does not use is not kept, and not sent. */
static esp_status strip(espi_shares *s, esp_error *err)
{
    bool *column = espi_alloc(s->data->columns, sizeof *column);
    if (column == NULL) return espi_no_memory(err);
    espi_used_columns(s->kernel, s->data, column);
    espi_dataset_strip(s->data, column);
    espi_free(column);
    return ESP_OK;
}

static esp_status make_digest(espi_shares *s, esp_error *err)
{
    const size_t rank = (size_t)espi_group_rank(s->run);
    uint64_t own = 0, *all = espi_alloc(s->ranks, sizeof *all);
    bool *column = espi_alloc(s->data->columns, sizeof *column);
    bool ok = all != NULL && column != NULL;
    for (size_t i = 0; ok && i < s->data->columns; i++) column[i] = true;
    if (ok && s->start[rank + 1] > s->start[rank]) ok = espi_dataset_digest_rows(s->data, column, s->start[rank], &own);
    const esp_status status = ok ? espi_group_gather(s->run, &own, sizeof own, all, err) : espi_no_memory(err);
    for (size_t r = 0; status == ESP_OK && r < s->ranks; r++) s->digest += all[r];
    espi_free(all);
    espi_free(column);
    return status;
}

static esp_status open_shares(espi_shares *s, const esp_kernel *kernel, esp_error *err)
{
    esp_status status = count_examples(s, err);
    if (status == ESP_OK) status = bring_targets(s, err);
    if (status == ESP_OK && s->data->rows > 0) { /* an example without targets, as others send it */
        bool *all = espi_alloc(s->data->columns, sizeof *all);
        for (size_t i = 0; all != NULL && i < s->data->columns; i++) all[i] = true;
        if (all != NULL) espi_dataset_strip(s->data, all);
        else status = espi_no_memory(err);
        espi_free(all);
    }
    if (status == ESP_OK) status = seed_empty(s, err);
    if (status == ESP_OK) status = espi_kernel_bind_names(kernel, s->data, &s->kernel, err);
    if (status == ESP_OK) status = strip(s, err);
    if (status == ESP_OK) status = agree_columns(s, err);
    if (status == ESP_OK) status = make_digest(s, err);
    if (status != ESP_OK || espi_group_rank(s->run) != 0) return status;
    const size_t count = s->start[s->ranks];
    s->place = espi_alloc(count, sizeof *s->place);
    if (s->place == NULL) return espi_no_memory(err);
    memset(s->place, 0xFF, count * sizeof *s->place);
    return ESP_OK;
}

esp_status espi_shares_open(const esp_kernel *kernel, esp_dataset *share, const esp_run *run, espi_shares **out,
                            esp_error *err)
{
    espi_shares *s = espi_alloc_zero(1, sizeof *s);
    esp_error ignored;
    *out = NULL;
    if (err == NULL) err = &ignored;
    if (s == NULL) return espi_group_end(run, espi_no_memory(err), err);
    s->run = run;
    s->here = espi_group_apart(run);
    s->here.message = NULL;
    s->data = share;
    s->ranks = (size_t)espi_group_size(run);
    s->work.traffic = espi_group_traffic_of(run);
    const esp_status status = espi_group_end(run, open_shares(s, kernel, err), err);
    if (status == ESP_OK) *out = s;
    else espi_shares_free(s);
    return status;
}

const esp_kernel *espi_shares_kernel(const espi_shares *s) { return s->kernel; }
size_t espi_shares_count(const espi_shares *s) { return s->start[s->ranks]; }
const esp_dataset *espi_shares_targets(const espi_shares *s) { return s->targets; }
uint64_t espi_shares_digest(const espi_shares *s) { return s->digest; }
uint32_t espi_shares_row(const espi_shares *s, uint32_t example) { return s->held_row[s->place[example]]; }

/* -------------------------------------------------------------------- work */

static void tell_rank(const espi_shares *s, size_t rank, const espi_shares_work *w)
{
    char line[ESPI_GROUP_HOST + 200];
    snprintf(
        line, sizeof line,
        "rank %zu on %s: %llu examples; %llu scores and %llu kernel values in %.3f s; %llu examples held; gave %.3f "
        "MB, took %.3f MB",
        rank, s->run->group != NULL ? esp_group_host(s->run->group, (int)rank) : "this machine",
        (unsigned long long)w->examples, (unsigned long long)w->looks, (unsigned long long)w->values, w->seconds,
        (unsigned long long)w->held, 1e-6 * (double)w->traffic.given, 1e-6 * (double)w->traffic.taken);
    espi_message(s->run, line);
}

esp_status espi_shares_tell_work(espi_shares *s, esp_error *err)
{
    const size_t rank = (size_t)espi_group_rank(s->run);
    const espi_group_traffic now = espi_group_traffic_of(s->run);
    s->work.traffic.given = now.given - s->work.traffic.given;
    s->work.traffic.taken = now.taken - s->work.traffic.taken;
    s->work.examples = s->start[rank + 1] - s->start[rank];
    s->work.held = s->held;
    espi_shares_work *all = espi_alloc(s->ranks, sizeof *all);
    const esp_status status =
        all == NULL ? espi_no_memory(err) : espi_group_gather(s->run, &s->work, sizeof s->work, all, err);
    for (size_t r = 0; status == ESP_OK && rank == 0 && r < s->ranks; r++) tell_rank(s, r, &all[r]);
    espi_free(all);
    return status;
}
