/* Stages, rounds and passes of the folded solver (folded.h). */
#include "learn/svm/folded_course.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_STAGE = 4096, /* examples */
    GROWTH = 4,
    PASSES = 50,    /* of a stage or round, at most */
    SURE = 10,      /* mean violations that keep an example of a stage at its bound */
    ROUNDS = 10,    /* in which only near examples are looked at, one after the other */
    LEG = 16,       /* passes after which the sum and the blocks are made anew, so that others could go on */
    BATCH = 1 << 16 /* examples that are looked at in one go */
};

/* --------------------------------------------------------------------- rho */

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The median of the self-values of a block that are not 0; 1 if there is none. */
static double typical_self(const espi_folded_block *block, double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < block->count; i++)
        if (block->gram[i * block->count + i] > 0.0) scratch[count++] = block->gram[i * block->count + i];
    if (count == 0) return 1.0;
    qsort(scratch, count, sizeof *scratch, by_size);
    return scratch[count / 2];
}

/* The constraint weighs about as much as the kernel values between examples do: then the multiplier is right after a
 * few passes, and variables are not kept from moving. */
static void set_rho(espi_folded *f)
{
    espi_folded_state *s = &f->state;
    if (s->typical > 0.0 || f->blocks == 0) return;
    s->typical = typical_self(&f->block[0], f->local);
    s->rho = 0.2 * s->typical;
    for (size_t n = 0; n < f->problems; n++) f->problem[n].r.multiplier -= s->rho * f->problem[n].r.surplus;
}

/* ------------------------------------------------------------------ passes */

/* A line for whoever wants to know more. */
static void report(const espi_course *s, double worst)
{
    const espi_folded *f = &s->f;
    char line[160];
    if (s->run == NULL || s->run->message == NULL) return;
    const double seconds = espi_seconds() - s->began, looks = (double)(f->state.looks - s->looks);
    snprintf(line, sizeof line, "pass %zu: %zu of %zu examples active, worst violation %.2g; %.0f examples/s",
             (size_t)f->state.pass + 1, f->actives, f->examples, worst, seconds > 0.0 ? looks / seconds : 0.0);
    espi_message(s->run, line);
}

/* How far it may be: half of it the stages, and then by how close the violations are to the tolerance. */
static esp_status show_progress(espi_course *s, double worst, esp_error *err)
{
    const espi_folded_state *state = &s->f.state;
    const double tolerance = s->settings->tolerance, left = worst > tolerance ? log(worst / tolerance) : 0.0;
    const double most = log(10.0 / tolerance);
    double fraction = 0.5 * (double)state->seen / (double)s->chunks;
    if (state->phase == ESPI_FOLDED_ROUND) fraction = 0.5 + 0.5 * (left < most ? 1.0 - left / most : 0.0);
    if (fraction > s->fraction) s->fraction = fraction;
    report(s, worst);
    return espi_progress(s->run, "training", s->fraction, err);
}

/* A pass over all blocks, in random order. */
static esp_status pass(espi_course *s, espi_folded_outcome *outcome, esp_error *err)
{
    espi_folded *f = &s->f;
    /* One block disturbs the others. */
    const double goal = f->state.tolerance / (f->blocks > 1 ? 10.0 : 2.0);
    uint32_t *order = espi_alloc(f->blocks, sizeof *order);
    esp_status status = order == NULL ? espi_no_memory(err) : ESP_OK;
    *outcome = (espi_folded_outcome){0};
    for (size_t i = 0; status == ESP_OK && i < f->blocks; i++) order[i] = (uint32_t)i;
    if (status == ESP_OK) espi_random_shuffle(&f->state.random, order, f->blocks);
    for (size_t b = 0; status == ESP_OK && b < f->blocks; b++)
        status = espi_folded_step(f, &f->block[order[b]], goal, f->state.margin, outcome, err);
    f->state.moves += outcome->moves;
    for (size_t n = 0; n < f->problems; n++) f->problem[n].r.multiplier = espi_folded_bias(f, &f->problem[n]);
    espi_free(order);
    return status == ESP_OK ? show_progress(s, outcome->worst, err) : status;
}

static esp_status save(espi_course *s, esp_error *err)
{
    if (s->checkpoint == NULL) return ESP_OK;
    return espi_folded_save(s->checkpoint, &s->f, s->training, s->first, err);
}

static esp_status make_blocks(espi_course *s, esp_error *err)
{
    espi_folded_state *state = &s->f.state;
    esp_status status = ESP_OK;
    if (state->pass > 0 && state->pass % LEG == 0) {
        status = espi_folded_sum_anew(&s->f, err);
        if (status == ESP_OK) status = save(s, err);
    }
    if (status == ESP_OK) status = espi_folded_blocks_make(&s->f, err);
    if (status == ESP_OK) set_rho(&s->f);
    return status;
}

static void begin_passes(espi_course *s, espi_folded_phase phase)
{
    espi_folded_state *state = &s->f.state;
    state->phase = phase;
    state->pass = 0;
    state->tolerance = s->settings->tolerance * state->strictness;
    state->margin = INFINITY;
}

/* By how much scores may change when the constraints are met. */
static double debt(const espi_folded *f)
{
    double most = 0.0;
    for (size_t n = 0; n < f->problems; n++)
        if (fabs(f->problem[n].r.surplus) > most) most = fabs(f->problem[n].r.surplus);
    return most * f->state.typical;
}

/* Sets the goal of the passes by the first, and what examples must be sure of to be left out by the last. In a stage
 * many are active, and one of them that is far off should not keep the others there: what matters is the mean. */
static void set_goal(espi_course *s, const espi_folded_outcome *last, size_t actives)
{
    espi_folded_state *state = &s->f.state;
    const double mean = last->total / (double)actives;
    if (state->pass == 0) {
        state->mean = mean / 10.0;
        if (state->tolerance < last->worst / 10.0) state->tolerance = last->worst / 10.0;
    }
    if (s->settings->no_shrinking) return;
    state->margin = last->worst;
    if (state->phase == ESPI_FOLDED_STAGE && mean * SURE < last->worst) state->margin = mean * SURE;
}

static bool is_enough(const espi_course *s, const espi_folded_outcome *last, size_t actives)
{
    const espi_folded_state *state = &s->f.state;
    if (last->worst <= state->tolerance && debt(&s->f) <= state->tolerance) return true;
    if (state->phase != ESPI_FOLDED_STAGE) return false;
    return s->f.blocks == 1 || (state->pass > 0 && last->total / (double)actives <= state->mean);
}

/* Moves the variables of active examples until none violates its optimum by more than a tenth of what it was, or the
 * tolerance; in a stage, until that holds for the mean. */
static esp_status minimise(espi_course *s, esp_error *err)
{
    espi_folded *f = &s->f;
    espi_folded_state *state = &f->state;
    size_t blocked = 0;
    esp_status status = ESP_OK;
    while (status == ESP_OK && state->pass < PASSES && f->actives > 0 && state->moves < s->limit) {
        espi_folded_outcome last;
        const size_t actives = f->actives;
        if (blocked == 0 || state->pass % LEG == 0 || f->actives < blocked - blocked / 3) {
            status = make_blocks(s, err);
            blocked = f->actives;
        }
        if (status == ESP_OK) status = pass(s, &last, err);
        if (status != ESP_OK || is_enough(s, &last, actives)) break;
        set_goal(s, &last, actives);
        state->pass++;
    }
    espi_folded_blocks_free(f);
    return status;
}

/* ------------------------------------------------------------------ stages */

static bool violates(const espi_folded *f, size_t example, const double *score)
{
    for (size_t n = 0; n < f->problems; n++)
        for (size_t c = 0; c < f->copies; c++) {
            const espi_folded_problem *p = &f->problem[n];
            const size_t k = c * f->examples + example;
            if (p->alpha[k] > 0.0 || espi_folded_violation(p, k, score[n], espi_folded_bias(f, p)) > 0.0) return true;
        }
    return false;
}

/* Chunks come into view: those of their examples are active that violate their optimum. */
static esp_status look(espi_course *s, size_t to, esp_error *err)
{
    espi_folded *f = &s->f;
    uint32_t *row = espi_alloc(BATCH, sizeof *row), *example = espi_alloc(BATCH, sizeof *example);
    double *score = espi_alloc(BATCH, f->problems * sizeof *score);
    esp_status status = row == NULL || example == NULL || score == NULL ? espi_no_memory(err) : ESP_OK;
    while (status == ESP_OK && f->state.seen < to) {
        size_t count = 0;
        for (; f->state.seen < to && count + ESPI_COURSE_CHUNK <= BATCH; f->state.seen++)
            for (size_t i = (size_t)s->chunk[f->state.seen] * ESPI_COURSE_CHUNK, k = 0;
                 k < ESPI_COURSE_CHUNK && i < f->examples; k++, i++) {
                example[count] = (uint32_t)i;
                row[count++] = f->row[i];
            }
        status = espi_folded_sum_score(f->sum, row, count, f->run, score, err);
        f->state.looks += count;
        for (size_t i = 0; status == ESP_OK && i < count; i++) {
            if (!s->settings->no_shrinking && !violates(f, example[i], score + i * f->problems)) continue;
            f->active[example[i]] = true;
            f->actives++;
        }
    }
    espi_free(row);
    espi_free(example);
    espi_free(score);
    return status;
}

static esp_status next_stage(espi_course *s, esp_error *err)
{
    size_t goal = FIRST_STAGE / ESPI_COURSE_CHUNK;
    while (goal <= s->f.state.seen) goal *= GROWTH;
    const esp_status status = look(s, goal < s->chunks ? goal : s->chunks, err);
    if (status == ESP_OK) begin_passes(s, ESPI_FOLDED_STAGE);
    return status;
}

/* ------------------------------------------------------------------ rounds */

espi_certificate espi_course_certificate(const espi_folded *f)
{
    espi_certificate c = {.there = true};
    for (size_t n = 0; n < f->problems; n++) {
        const espi_folded_record *r = &f->problem[n].r;
        const double gap = r->primal > r->dual
                               ? (r->primal - r->dual) / (r->primal != 0.0 ? fabs(r->primal) : r->primal - r->dual)
                               : 0.0;
        c.primal += r->primal;
        c.dual += r->dual;
        if (gap > c.gap) c.gap = gap;
        if (r->violation > c.violation) c.violation = r->violation;
    }
    return c;
}

bool espi_course_is_solved(const espi_course *s, const espi_certificate *c)
{
    return c->violation <= s->settings->tolerance && c->gap <= s->settings->tolerance;
}

static void report_verified(const espi_course *s, const espi_certificate *c)
{
    char line[200];
    if (s->run == NULL || s->run->message == NULL) return;
    snprintf(line, sizeof line,
             "all %zu examples: primal objective %.6g, dual %.6g, relative gap %.2g, worst violation %.2g",
             s->f.examples, c->primal, c->dual, c->gap, c->violation);
    espi_message(s->run, line);
}

/* Passes look at violations by the multiplier, the verification by the bias that is best. Where passes cannot bring the
 * one to the other, be it that nothing moves or that the sum of all bounds is too small for the way, it goes there. */
static void follow_bias(espi_folded *f, bool stands)
{
    for (size_t n = 0; n < f->problems; n++) {
        espi_folded_problem *p = &f->problem[n];
        double reach = 0.0;
        for (size_t k = 0; k < p->v.count; k++) reach += p->v.bound[k];
        if (stands || fabs(p->r.bias - p->r.multiplier) > f->state.rho * reach) p->r.multiplier = p->r.bias;
    }
}

bool espi_course_is_rounding(const espi_folded_state *state) { return state->strictness < 1e-12; }

static esp_status verify(espi_course *s, esp_error *err)
{
    espi_folded_state *state = &s->f.state;
    const double tolerance = s->settings->tolerance * state->strictness;
    const esp_status status = espi_folded_verify(&s->f, s->settings->no_shrinking ? -1.0 : tolerance, err);
    if (status != ESP_OK) return status;
    const espi_certificate c = espi_course_certificate(&s->f);
    report_verified(s, &c);
    follow_bias(&s->f, state->moves == state->verified);
    state->verified = state->moves;
    /* The gap may ask for more than the violations do. */
    if (c.violation <= s->settings->tolerance) state->strictness /= 4.0;
    if (espi_course_is_solved(s, &c) || state->moves >= s->limit || espi_course_is_rounding(state))
        state->phase = ESPI_FOLDED_DONE;
    else begin_passes(s, ESPI_FOLDED_ROUND);
    state->round = 0;
    return ESP_OK;
}

/* After a round: examples that are far from violating their optimum wait for the next verification, if they are most of
 * all. */
static esp_status look_near(espi_course *s, esp_error *err)
{
    espi_folded_state *state = &s->f.state;
    const double tolerance = s->settings->tolerance * state->strictness;
    double worst;
    char line[120];
    if (s->f.nears > s->f.examples / 2 || state->round++ >= ROUNDS || state->moves >= s->limit) {
        state->phase = ESPI_FOLDED_VERIFY;
        return ESP_OK;
    }
    const esp_status status = espi_folded_look_near(&s->f, tolerance, &worst, err);
    if (status != ESP_OK) return status;
    if (s->run != NULL && s->run->message != NULL) {
        snprintf(line, sizeof line, "%zu examples that are near: worst violation %.2g", s->f.nears, worst);
        espi_message(s->run, line);
    }
    if (worst <= tolerance) state->phase = ESPI_FOLDED_VERIFY;
    else begin_passes(s, ESPI_FOLDED_ROUND);
    return ESP_OK;
}

esp_status espi_course_run(espi_course *s, esp_error *err)
{
    espi_folded_state *state = &s->f.state;
    esp_status status = ESP_OK;
    while (status == ESP_OK && state->phase != ESPI_FOLDED_DONE) {
        switch ((espi_folded_phase)state->phase) {
        case ESPI_FOLDED_LOOK: status = next_stage(s, err); break;
        case ESPI_FOLDED_STAGE:
            status = minimise(s, err);
            if (status == ESP_OK) status = espi_folded_sum_anew(&s->f, err);
            state->phase = state->seen < s->chunks ? ESPI_FOLDED_LOOK : ESPI_FOLDED_VERIFY;
            if (status == ESP_OK) status = save(s, err);
            break;
        case ESPI_FOLDED_VERIFY:
            status = verify(s, err);
            if (status == ESP_OK) status = save(s, err);
            break;
        case ESPI_FOLDED_ROUND:
            status = minimise(s, err);
            if (status == ESP_OK) status = espi_folded_sum_anew(&s->f, err);
            state->phase = ESPI_FOLDED_NEAR;
            if (status == ESP_OK) status = save(s, err);
            break;
        case ESPI_FOLDED_NEAR: status = look_near(s, err); break;
        case ESPI_FOLDED_DONE: break;
        }
    }
    return status;
}
