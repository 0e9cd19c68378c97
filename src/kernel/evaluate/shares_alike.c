/* Kernel values among held examples, by all ranks (shares.h). */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/evaluate/shares_state.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ blocks */

static size_t half(size_t count) { return count * (count + 1) / 2; }

/* The first row of the part of a rank in the lower triangle of a matrix; parts have about the same number of values. */
static size_t part_start(const espi_shares *s, size_t count, size_t rank)
{
    return rank >= s->ranks ? count : (size_t)((double)count * sqrt((double)rank / (double)s->ranks));
}

static esp_status fill_part(espi_shares *s, const uint32_t *held, size_t count, double *part, esp_error *err)
{
    const double began = espi_seconds();
    const size_t rank = (size_t)espi_group_rank(s->run);
    const size_t from = part_start(s, count, rank), to = part_start(s, count, rank + 1);
    uint32_t *row = espi_alloc(count, sizeof *row);
    if (row == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < count; i++) row[i] = s->held_row[held[i]];
    const espi_gram_block block = {.row = row, .count = count};
    const esp_status status =
        to > from ? espi_block_rows(s->kernel, s->data, &block, from, to, &s->here, part, err) : ESP_OK;
    espi_free(row);
    s->work.values += half(to) - half(from);
    s->work.seconds += espi_seconds() - began;
    return status;
}

/* Both triangles, from the parts of all ranks, each in a place of this size. */
static void join_parts(const espi_shares *s, const double *all, size_t size, size_t count, double *gram)
{
    for (size_t r = 0; r < s->ranks; r++) {
        const double *value = all + r * size;
        for (size_t i = part_start(s, count, r); i < part_start(s, count, r + 1); i++)
            for (size_t k = 0; k <= i; k++) gram[i * count + k] = gram[k * count + i] = *value++;
    }
}

esp_status espi_shares_do_grams(espi_shares *s, const uint32_t *numbers, espi_gram_block *block, esp_error *err)
{
    const bool leader = espi_group_rank(s->run) == 0;
    const size_t blocks = numbers[0];
    const uint32_t *held = numbers + 1 + blocks;
    esp_status status = ESP_OK;
    for (size_t b = 0; status == ESP_OK && b < blocks; held += numbers[++b]) {
        const size_t count = numbers[1 + b];
        size_t most = 0;
        for (size_t r = 0; r < s->ranks; r++) {
            const size_t size = half(part_start(s, count, r + 1)) - half(part_start(s, count, r));
            most = size > most ? size : most;
        }
        double *part = espi_alloc_zero(most, sizeof *part);
        double *all = leader ? espi_alloc(s->ranks, most * sizeof *all) : NULL;
        status = part == NULL || (leader && all == NULL) ? espi_no_memory(err) : fill_part(s, held, count, part, err);
        if (status == ESP_OK) status = espi_group_collect(s->run, part, most * sizeof *part, all, err);
        if (status == ESP_OK && leader) join_parts(s, all, most, count, block[b].gram);
        espi_free(part);
        espi_free(all);
    }
    return status;
}

/* ----------------------------------------------------------------- nearest */

esp_status espi_shares_do_alike(espi_shares *s, const uint32_t *numbers, const espi_alike *out, esp_error *err)
{
    const double began = espi_seconds();
    const size_t pivots = numbers[0], count = numbers[1], rank = (size_t)espi_group_rank(s->run);
    const size_t room = (count + s->ranks - 1) / s->ranks, from = rank * room < count ? rank * room : count;
    const size_t some = count - from < room ? count - from : room;
    uint32_t *row = espi_alloc(pivots + some, sizeof *row), *nearest = espi_alloc_zero(room, sizeof *nearest);
    uint32_t *all = rank == 0 ? espi_alloc(s->ranks * room, sizeof *all) : NULL;
    double *gram = rank == 0 ? NULL : espi_alloc(pivots, pivots * sizeof *gram);
    const bool ok = row != NULL && nearest != NULL && (rank == 0 ? all != NULL : gram != NULL);
    esp_status status = ok ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; ok && i < pivots; i++) row[i] = s->held_row[numbers[2 + i]];
    for (size_t i = 0; ok && i < some; i++) row[pivots + i] = s->held_row[numbers[2 + pivots + from + i]];
    const espi_alike own = {.pivot = row,
                            .row = row != NULL ? row + pivots : NULL,
                            .pivots = pivots,
                            .count = some,
                            .gram = rank == 0 ? out->gram : gram,
                            .nearest = nearest};
    if (status == ESP_OK && (some > 0 || rank == 0)) status = espi_alike_find(s->kernel, s->data, &own, &s->here, err);
    s->work.values += some * pivots + half(pivots);
    s->work.seconds += espi_seconds() - began;
    if (status == ESP_OK) status = espi_group_collect(s->run, nearest, room * sizeof *nearest, all, err);
    if (status == ESP_OK && rank == 0) memcpy(out->nearest, all, count * sizeof *all);
    espi_free(row);
    espi_free(nearest);
    espi_free(all);
    espi_free(gram);
    return status;
}
