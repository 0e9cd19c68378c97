/* Stages, rounds and passes of the folded solver (folded.h). */
#include "learn/svm/folded.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 64,         /* neighbours come into view together: they share much */
    FIRST_STAGE = 4096, /* examples */
    GROWTH = 4,
    PASSES = 50,    /* of a stage or round, at most */
    LEG = 16,       /* passes after which the sum and the blocks are made anew, so that others could go on */
    BATCH = 1 << 16 /* examples that are looked at in one go */
};

typedef struct course {
    espi_folded f;
    espi_training *training;
    size_t first; /* problem */
    const espi_machine_settings *settings;
    uint64_t limit;     /* of moves */
    const esp_run *run; /* who is told how it goes */
    double fraction;    /* what was told last */
    double began;       /* in seconds, and ... */
    uint64_t looks;     /* ... how many there were */
    uint32_t *chunk;    /* numbers of chunks, in random order */
    size_t chunks;
    espi_folded_checkpoint *checkpoint; /* NULL: none is kept */
    bool converged;
} course;

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
static void report(const course *s, double worst)
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
static esp_status show_progress(course *s, double worst, esp_error *err)
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
static esp_status pass(course *s, double *worst, esp_error *err)
{
    espi_folded *f = &s->f;
    /* One block disturbs the others. */
    const double goal = f->state.tolerance / (f->blocks > 1 ? 10.0 : 2.0);
    uint32_t *order = espi_alloc(f->blocks, sizeof *order);
    esp_status status = order == NULL ? espi_no_memory(err) : ESP_OK;
    *worst = 0.0;
    for (size_t i = 0; status == ESP_OK && i < f->blocks; i++) order[i] = (uint32_t)i;
    if (status == ESP_OK) espi_random_shuffle(&f->state.random, order, f->blocks);
    for (size_t b = 0; status == ESP_OK && b < f->blocks; b++)
        status = espi_folded_step(f, &f->block[order[b]], goal, f->state.margin, worst, err);
    for (size_t n = 0; n < f->problems; n++) f->problem[n].r.multiplier = espi_folded_bias(f, &f->problem[n]);
    espi_free(order);
    return status == ESP_OK ? show_progress(s, *worst, err) : status;
}

static esp_status save(course *s, esp_error *err)
{
    if (s->checkpoint == NULL) return ESP_OK;
    return espi_folded_save(s->checkpoint, &s->f, s->training, s->first, err);
}

static esp_status make_blocks(course *s, esp_error *err)
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

static void begin_passes(course *s, espi_folded_phase phase)
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

/* Moves the variables of active examples until none violates its optimum by more than a tenth of what it was, or the
 * tolerance. */
static esp_status minimise(course *s, esp_error *err)
{
    espi_folded *f = &s->f;
    espi_folded_state *state = &f->state;
    size_t blocked = 0;
    esp_status status = ESP_OK;
    while (status == ESP_OK && state->pass < PASSES && f->actives > 0 && state->moves < s->limit) {
        double worst;
        if (blocked == 0 || state->pass % LEG == 0 || f->actives < blocked - blocked / 3) {
            status = make_blocks(s, err);
            blocked = f->actives;
        }
        if (status == ESP_OK) status = pass(s, &worst, err);
        if (status != ESP_OK || (worst <= state->tolerance && debt(f) <= state->tolerance)) break;
        if (state->phase == ESPI_FOLDED_STAGE && f->blocks == 1) break; /* it is as far as a stage should get */
        if (state->pass == 0 && state->tolerance < worst / 10.0) state->tolerance = worst / 10.0;
        if (!s->settings->no_shrinking) state->margin = worst;
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
static esp_status look(course *s, size_t to, esp_error *err)
{
    espi_folded *f = &s->f;
    uint32_t *row = espi_alloc(BATCH, sizeof *row), *example = espi_alloc(BATCH, sizeof *example);
    double *score = espi_alloc(BATCH, f->problems * sizeof *score);
    esp_status status = row == NULL || example == NULL || score == NULL ? espi_no_memory(err) : ESP_OK;
    while (status == ESP_OK && f->state.seen < to) {
        size_t count = 0;
        for (; f->state.seen < to && count + CHUNK <= BATCH; f->state.seen++)
            for (size_t i = (size_t)s->chunk[f->state.seen] * CHUNK, k = 0; k < CHUNK && i < f->examples; k++, i++) {
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

static esp_status next_stage(course *s, esp_error *err)
{
    size_t goal = FIRST_STAGE / CHUNK;
    while (goal <= s->f.state.seen) goal *= GROWTH;
    const esp_status status = look(s, goal < s->chunks ? goal : s->chunks, err);
    if (status == ESP_OK) begin_passes(s, ESPI_FOLDED_STAGE);
    return status;
}

/* ------------------------------------------------------------------ rounds */

/* Whether primal and dual objective, and all gradients, are as close as the tolerance asks. */
static bool is_solved(const course *s)
{
    for (size_t n = 0; n < s->f.problems; n++) {
        const espi_folded_problem *p = &s->f.problem[n];
        if (p->r.violation > s->settings->tolerance) return false;
        if (p->r.primal - p->r.dual > s->settings->tolerance * fabs(p->r.primal)) return false;
    }
    return true;
}

static double worst_violation(const espi_folded *f)
{
    double worst = 0.0;
    for (size_t n = 0; n < f->problems; n++)
        if (f->problem[n].r.violation > worst) worst = f->problem[n].r.violation;
    return worst;
}

static void report_verified(const course *s)
{
    const espi_folded *f = &s->f;
    double primal = 0.0, dual = 0.0;
    char line[200];
    if (s->run == NULL || s->run->message == NULL) return;
    for (size_t n = 0; n < f->problems; n++) {
        primal += f->problem[n].r.primal;
        dual += f->problem[n].r.dual;
    }
    snprintf(line, sizeof line,
             "all %zu examples: primal objective %.6g, dual %.6g, relative gap %.2g, worst violation %.2g", f->examples,
             primal, dual, primal != 0.0 ? (primal - dual) / fabs(primal) : 0.0, worst_violation(f));
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

static esp_status verify(course *s, esp_error *err)
{
    espi_folded_state *state = &s->f.state;
    const double tolerance = s->settings->tolerance * state->strictness;
    const esp_status status = espi_folded_verify(&s->f, s->settings->no_shrinking ? -1.0 : tolerance, err);
    if (status != ESP_OK) return status;
    report_verified(s);
    follow_bias(&s->f, state->moves == state->verified);
    state->verified = state->moves;
    /* The gap may ask for more than the violations do. */
    if (worst_violation(&s->f) <= s->settings->tolerance) state->strictness /= 4.0;
    const bool rounding = state->strictness < 1e-12; /* is in the way of anything closer */
    if (is_solved(s) || state->moves >= s->limit || rounding) state->phase = ESPI_FOLDED_DONE;
    else begin_passes(s, ESPI_FOLDED_ROUND);
    return ESP_OK;
}

static esp_status run_phases(course *s, esp_error *err)
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
            state->phase = ESPI_FOLDED_VERIFY;
            break;
        case ESPI_FOLDED_DONE: break;
        }
    }
    return status;
}

/* ---------------------------------------------------------------- problems */

static void free_course(course *s)
{
    espi_folded *f = &s->f;
    espi_folded_blocks_free(f);
    for (size_t n = 0; f->problem != NULL && n < f->problems; n++) espi_variables_free(&f->problem[n].v);
    espi_free(f->problem);
    espi_free(f->active);
    espi_free(f->column);
    espi_free(f->coefficient);
    espi_free(s->chunk);
}

static double surplus_of(const espi_folded_problem *p)
{
    double surplus = -p->v.sum;
    for (size_t k = 0; k < p->v.count; k++) surplus += p->v.sign[k] * p->alpha[k];
    return surplus;
}

static bool take_memory(course *s)
{
    espi_folded *f = &s->f;
    s->chunks = (f->examples + CHUNK - 1) / CHUNK;
    s->chunk = espi_alloc(s->chunks, sizeof *s->chunk);
    f->problem = espi_alloc_zero(f->problems, sizeof *f->problem);
    f->active = espi_alloc_zero(f->examples, sizeof *f->active);
    f->column = espi_alloc(f->data->columns, sizeof *f->column);
    f->coefficient = espi_alloc(f->problems, sizeof *f->coefficient);
    return s->chunk != NULL && f->problem != NULL && f->active != NULL && f->column != NULL && f->coefficient != NULL;
}

/* Poses the problems; the variables start where the training says. */
static esp_status start_course(course *s, esp_error *err)
{
    espi_folded *f = &s->f;
    const espi_training *t = s->training;
    bool ok = take_memory(s);
    if (ok) espi_used_columns(f->kernel, f->data, f->column);
    for (size_t n = 0; ok && n < f->problems; n++) {
        espi_folded_problem *p = &f->problem[n];
        ok = espi_training_pose(t, s->first + n, &p->v);
        if (!ok) break;
        p->alpha = t->fit->alpha + t->fit->alpha_start[s->first + n];
        espi_training_set_start(t, s->first + n, &p->v);
        p->r.surplus = surplus_of(p);
        f->copies = p->v.count / f->examples;
    }
    if (!ok) return espi_no_memory(err);
    f->state.strictness = 0.5;
    espi_random_seed(&f->state.random, t->settings->seed);
    for (size_t i = 0; i < s->chunks; i++) s->chunk[i] = (uint32_t)i;
    espi_random_shuffle(&f->state.random, s->chunk, s->chunks);
    if (t->warm == NULL) return ESP_OK;
    f->state.seen = s->chunks;
    f->state.phase = ESPI_FOLDED_VERIFY;
    return ESP_OK;
}

/* A run that was stopped: the variables are kept, and the bias they were moved with. */
static void stop_course(course *s)
{
    for (size_t n = 0; n < s->f.problems; n++) {
        espi_folded_problem *p = &s->f.problem[n];
        espi_folded_meet(p);
        p->r.bias = p->r.multiplier;
    }
    s->training->fit->cancelled = true;
}

static void end_course(const course *s, const uint32_t *example)
{
    const espi_folded *f = &s->f;
    espi_fit *fit = s->training->fit;
    for (size_t n = 0; n < f->problems; n++) {
        const espi_folded_problem *p = &f->problem[n];
        for (size_t k = 0; k < p->v.count; k++) {
            const size_t i = example != NULL ? example[k % f->examples] : k % f->examples;
            fit->coefficient[i * fit->outputs + s->first + n] += p->v.sign[k] * p->alpha[k];
        }
        fit->bias[s->first + n] = p->r.bias;
        s->training->result[s->first + n] = (espi_smo_result){.bias = p->r.bias,
                                                              .objective = -p->r.dual,
                                                              .iterations = n == 0 ? (size_t)f->state.moves : 0,
                                                              .converged = s->converged};
    }
}

/* What the verification of these problems adds to that of the fit. */
static void certify(const course *s)
{
    espi_certificate *c = &s->training->fit->certificate;
    c->there = !s->training->fit->cancelled;
    for (size_t n = 0; n < s->f.problems; n++) {
        const espi_folded_problem *p = &s->f.problem[n];
        const double gap = p->r.primal != 0.0 ? (p->r.primal - p->r.dual) / fabs(p->r.primal) : 0.0;
        c->primal += p->r.primal;
        c->dual += p->r.dual;
        if (gap > c->gap) c->gap = gap;
        if (p->r.violation > c->violation) c->violation = p->r.violation;
    }
}

/* Solves some problems over examples that they share; `example` says which of the training's (NULL: all). */
static esp_status solve(course *s, const uint32_t *example, esp_error *err)
{
    bool there = false;
    esp_status status = start_course(s, err);
    if (status == ESP_OK && s->checkpoint != NULL)
        status = espi_folded_load(s->checkpoint, &s->f, s->training, s->first, &there, err);
    if (status == ESP_OK && there) status = espi_folded_sum_anew(&s->f, err);
    s->began = espi_seconds();
    s->looks = s->f.state.looks;
    if (status == ESP_OK) status = run_phases(s, err);
    if (status == ESP_ERR_CANCELLED && s->training->keep_partial && s->f.problem != NULL) {
        stop_course(s);
        status = ESP_OK;
    }
    s->converged = s->f.state.phase == ESPI_FOLDED_DONE && is_solved(s);
    if (status != ESP_OK) return status;
    end_course(s, example);
    certify(s);
    s->f.problem[0].r.moves = s->f.state.moves;
    for (size_t n = 0; s->checkpoint != NULL && n < s->f.problems; n++)
        s->checkpoint->record[s->first + n] = s->f.problem[n].r;
    return ESP_OK;
}

/* ---------------------------------------------------------------- training */

esp_status espi_folded_check(const esp_kernel *kernel, esp_error *err)
{
    esp_error why;
    const esp_status status = espi_kernel_folds(kernel, &why);
    if (status == ESP_OK) return ESP_OK;
    return espi_fail(err, status, "%s; the solver rows takes any kernel", why.message);
}

/* Whether problems have only some of the examples each. */
static bool is_narrow(const espi_training *t) { return t->targets->classes > 2 && espi_learns_pairs(t->settings); }

size_t espi_folded_outputs(const espi_training *t)
{
    return is_narrow(t) ? 1 : t->settings->learner->outputs(t->settings, t->targets->classes);
}

/* A problem that has only some of the examples. */
static esp_status solve_narrow(course *s, esp_error *err)
{
    const espi_training *t = s->training;
    espi_variables v;
    esp_status status = espi_training_pose(t, s->first, &v) ? ESP_OK : espi_no_memory(err);
    uint32_t *row = status == ESP_OK ? espi_alloc(v.count, sizeof *row) : NULL;
    if (status == ESP_OK && row == NULL) status = espi_no_memory(err);
    for (size_t i = 0; row != NULL && i < v.count; i++) row[i] = t->example[v.example[i]];
    s->f.row = row;
    s->f.examples = v.count;
    espi_folded_sum_clear(s->f.sum);
    if (status == ESP_OK && v.count > 0) status = solve(s, v.example, err);
    espi_variables_free(&v);
    espi_free(row);
    return status;
}

static uint64_t move_limit(const espi_training *t)
{
    const espi_machine_settings *s = espi_machine_settings_of(t->settings);
    const uint64_t many = 100 * (uint64_t)t->count;
    return espi_settings_given(t->settings, &s->max_iterations) || s->max_iterations > many ? s->max_iterations : many;
}

static esp_status run_courses(espi_training *t, const espi_folded *parts, espi_folded_checkpoint *checkpoint,
                              const esp_run *run, esp_error *err)
{
    const bool narrow = is_narrow(t);
    const size_t problems = narrow ? 1 : t->fit->outputs;
    esp_status status = ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < t->fit->outputs; first += problems) {
        course s = {.f = *parts,
                    .training = t,
                    .first = first,
                    .settings = espi_machine_settings_of(t->settings),
                    .limit = move_limit(t),
                    .run = run,
                    .checkpoint = checkpoint};
        s.f.problems = problems;
        if (t->fit->cancelled) break; /* the others know nothing */
        status = narrow ? solve_narrow(&s, err) : solve(&s, NULL, err);
        free_course(&s);
    }
    return status;
}

esp_status espi_folded_fit(espi_training *t, const esp_kernel *kernel, const esp_dataset *data, espi_folded_sum *sum,
                           const esp_run *run, esp_error *err)
{
    const esp_run asking = espi_ask_only(run);
    espi_folded_checkpoint checkpoint = {.path = t->checkpoint};
    const espi_folded parts = {
        .kernel = kernel, .data = data, .row = t->example, .sum = sum, .run = &asking, .examples = t->count};
    esp_status status = espi_training_start(t, err);
    if (status == ESP_OK && t->checkpoint != NULL) {
        checkpoint.record = espi_alloc_zero(t->fit->outputs, sizeof *checkpoint.record);
        status = checkpoint.record == NULL ? espi_no_memory(err)
                                           : espi_folded_digest(t, kernel, data, &checkpoint.digest, err);
    }
    if (status == ESP_OK) status = run_courses(t, &parts, t->checkpoint != NULL ? &checkpoint : NULL, run, err);
    espi_free(checkpoint.record);
    return espi_training_end(t, status);
}
