#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/svm/folded.h"

enum {
    LEAST = 256,     /* examples of a block ... */
    MOST = 1 << 14,  /* ... and so many only if their kernel values take no more memory than ... */
    MEMORY = 1 << 28 /* ... this; several problems, which share them, may take four times as much */
};

/* ------------------------------------------------------------------ blocks */

void espi_folded_blocks_free(espi_folded *f)
{
    for (size_t i = 0; i < f->blocks; i++) {
        espi_free(f->block[i].example);
        espi_free(f->block[i].gram);
    }
    espi_free(f->block);
    espi_free(f->member);
    espi_free(f->rows);
    espi_free(f->score);
    espi_free(f->change);
    espi_free(f->local);
    espi_free(f->outcome);
    f->block = NULL;
    f->member = f->rows = NULL;
    f->score = f->change = f->local = NULL;
    f->outcome = NULL;
    f->blocks = 0;
}

static size_t block_size(const espi_folded *f)
{
    size_t memory = (size_t)MEMORY * (f->problems > 1 ? 4 : 1);
    if (f->run->memory > 0 && f->run->memory / 4 < memory) memory = f->run->memory / 4;
    size_t size = memory / sizeof(double) / (f->actives + 1);
    if (size > MOST) size = MOST;
    if (size < LEAST) size = LEAST;
    return size;
}

/* Blocks of one size, as far as that is possible. */
static bool share_out(espi_folded *f, const uint32_t *example, size_t blocks)
{
    size_t next = 0;
    f->longest = blocks > 0 ? (f->actives + blocks - 1) / blocks : 0;
    f->block = espi_alloc_zero(blocks, sizeof *f->block);
    if (f->block == NULL) return false;
    for (; f->blocks < blocks; f->blocks++) {
        espi_folded_block *block = &f->block[f->blocks];
        block->example = espi_alloc(f->longest, sizeof *block->example);
        if (block->example == NULL) return false;
        while (next < f->actives && block->count < f->longest) block->example[block->count++] = example[next++];
    }
    f->member = espi_alloc(f->longest, sizeof *f->member);
    f->rows = espi_alloc(f->longest, sizeof *f->rows);
    f->score = espi_alloc(f->longest, f->problems * sizeof *f->score);
    f->change = espi_alloc(f->longest, f->problems * sizeof *f->change);
    f->local = espi_alloc((size_t)espi_worker_count(f->run, f->problems),
                          espi_folded_scratch(f, f->longest) * sizeof *f->local);
    f->outcome = espi_alloc(f->problems, sizeof *f->outcome);
    return f->member != NULL && f->rows != NULL && f->score != NULL && f->change != NULL && f->local != NULL &&
           f->outcome != NULL;
}

/* The kernel values of all blocks. */
static esp_status fill_blocks(const espi_folded *f, esp_error *err)
{
    espi_gram_block *block = espi_alloc(f->blocks, sizeof *block);
    uint32_t *row = espi_alloc(f->actives, sizeof *row);
    esp_status status = block == NULL || row == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t b = 0, at = 0; status == ESP_OK && b < f->blocks; b++) {
        espi_folded_block *x = &f->block[b];
        x->gram = espi_alloc(x->count, x->count * sizeof *x->gram);
        if (x->gram == NULL) status = espi_no_memory(err);
        block[b] = (espi_gram_block){.row = row + at, .count = x->count, .gram = x->gram};
        for (size_t i = 0; i < x->count; i++) row[at++] = f->row[x->example[i]];
    }
    if (status == ESP_OK) status = espi_folded_sum_grams(f->sum, block, f->blocks, f->run, err);
    espi_free(block);
    espi_free(row);
    return status;
}

esp_status espi_folded_blocks_make(espi_folded *f, esp_error *err)
{
    espi_folded_blocks_free(f);
    const size_t size = block_size(f), blocks = (f->actives + size - 1) / size;
    uint32_t *example = espi_alloc(f->actives, sizeof *example);
    size_t actives = 0;
    for (size_t i = 0; example != NULL && i < f->examples; i++)
        if (f->active[i]) example[actives++] = (uint32_t)i;
    esp_status status = example == NULL ? espi_no_memory(err) : espi_folded_order(f, example, blocks, err);
    if (status == ESP_OK && !share_out(f, example, blocks)) status = espi_no_memory(err);
    espi_free(example);
    return status == ESP_OK ? fill_blocks(f, err) : status;
}

/* ------------------------------------------------------------------- steps */

/* Whether all variables of an example stay at their bounds. */
static bool stays(const espi_folded *f, size_t example, const double *score, double margin)
{
    for (size_t n = 0; n < f->problems; n++) {
        const espi_folded_problem *p = &f->problem[n];
        const double bias = espi_folded_bias(f, p);
        for (size_t c = 0; c < f->copies; c++) {
            const size_t k = c * f->examples + example;
            const double gradient = p->v.sign[k] * (score[n] + bias) + p->v.linear[k];
            const bool low = p->alpha[k] <= 0.0 && gradient > margin;
            const bool high = p->alpha[k] >= p->v.bound[k] && gradient < -margin;
            if (!low && !high) return false;
        }
    }
    return true;
}

typedef struct descending {
    const espi_folded *f;
    const espi_folded_block *block;
    size_t members;
    double tolerance;
} descending;

static esp_status descend_problem(void *context, size_t problem, const espi_worker *thread, esp_error *err)
{
    const descending *j = context;
    const espi_folded *f = j->f;
    double *scratch = f->local + (size_t)thread->number * espi_folded_scratch(f, f->longest);
    return espi_folded_descend(f, j->block, j->members, problem, j->tolerance, scratch, thread->run, err);
}

esp_status espi_folded_step(espi_folded *f, const espi_folded_block *block, double tolerance, double margin,
                            espi_folded_outcome *outcome, esp_error *err)
{
    size_t members = 0;
    for (size_t i = 0; i < block->count; i++) {
        if (!f->active[block->example[i]]) continue;
        f->rows[members] = f->row[block->example[i]];
        f->member[members++] = (uint32_t)i;
    }
    if (members == 0) return ESP_OK;
    esp_status status = espi_folded_sum_score(f->sum, f->rows, members, f->run, f->score, err);
    if (status != ESP_OK) return status;
    descending j = {.f = f, .block = block, .members = members, .tolerance = tolerance};
    status = espi_parallel(f->run, "training", f->problems, descend_problem, &j, err);
    if (status != ESP_OK) return status;
    for (size_t n = 0; n < f->problems; n++) {
        outcome->moves += f->outcome[n].moves;
        outcome->total += f->outcome[n].total;
        if (f->outcome[n].worst > outcome->worst) outcome->worst = f->outcome[n].worst;
    }
    f->state.looks += members;
    for (size_t m = 0; m < members; m++) {
        const size_t example = block->example[f->member[m]];
        if (!stays(f, example, f->score + m * f->problems, margin)) continue;
        f->active[example] = false;
        f->actives--;
    }
    return espi_folded_sum_add(f->sum, f->rows, members, f->change, err);
}
