/* Fits by the folded solver: its problems, and what becomes of their solutions (folded.h). */
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/svm/folded_course.h"

/* ---------------------------------------------------------------- problems */

static void free_course(espi_course *s)
{
    espi_folded *f = &s->f;
    espi_folded_blocks_free(f);
    for (size_t n = 0; f->problem != NULL && n < f->problems; n++) espi_variables_free(&f->problem[n].v);
    espi_free(f->problem);
    espi_free(f->active);
    espi_free(f->near);
    espi_free(s->chunk);
}

static bool take_memory(espi_course *s)
{
    espi_folded *f = &s->f;
    s->chunks = (f->examples + ESPI_COURSE_CHUNK - 1) / ESPI_COURSE_CHUNK;
    s->chunk = espi_alloc(s->chunks, sizeof *s->chunk);
    f->problem = espi_alloc_zero(f->problems, sizeof *f->problem);
    f->active = espi_alloc_zero(f->examples, sizeof *f->active);
    f->near = espi_alloc_zero(f->examples, sizeof *f->near);
    return s->chunk != NULL && f->problem != NULL && f->active != NULL && f->near != NULL;
}

/* Poses the problems; the variables start where the training says. */
static esp_status start_course(espi_course *s, esp_error *err)
{
    espi_folded *f = &s->f;
    const espi_training *t = s->training;
    bool ok = take_memory(s);
    for (size_t n = 0; ok && n < f->problems; n++) {
        espi_folded_problem *p = &f->problem[n];
        ok = espi_training_pose(t, s->first + n, &p->v);
        if (!ok) break;
        p->alpha = t->fit->alpha + t->fit->alpha_start[s->first + n];
        espi_training_set_start(t, s->first + n, &p->v);
        p->r.surplus = espi_folded_surplus(p);
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
static void stop_course(espi_course *s)
{
    for (size_t n = 0; n < s->f.problems; n++) {
        espi_folded_problem *p = &s->f.problem[n];
        espi_folded_meet(p);
        p->r.bias = p->r.multiplier;
    }
    s->training->fit->cancelled = true;
}

static void end_course(const espi_course *s, const uint32_t *example)
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
static void certify(const espi_course *s, const espi_certificate *c)
{
    espi_certificate *all = &s->training->fit->certificate;
    all->there = !s->training->fit->cancelled;
    all->rounding = all->rounding || espi_course_is_rounding(&s->f.state);
    all->limit = s->limit;
    all->primal += c->primal;
    all->dual += c->dual;
    if (c->gap > all->gap) all->gap = c->gap;
    if (c->violation > all->violation) all->violation = c->violation;
}

/* Solves some problems over examples that they share; `example` says which of the training's (NULL: all). */
static esp_status solve(espi_course *s, const uint32_t *example, esp_error *err)
{
    bool there = false;
    esp_status status = start_course(s, err);
    if (status == ESP_OK && s->checkpoint != NULL)
        status = espi_folded_load(s->checkpoint, &s->f, s->training, s->first, &there, err);
    if (status == ESP_OK && there) status = espi_folded_sum_anew(&s->f, err);
    s->began = espi_seconds();
    s->looks = s->f.state.looks;
    if (status == ESP_OK) status = espi_course_run(s, err);
    if (status == ESP_ERR_CANCELLED) { /* whatever was at work */
        status = s->training->keep_partial ? ESP_OK : espi_fail(err, status, "interrupted while training");
        if (status == ESP_OK) stop_course(s);
    }
    if (status != ESP_OK) return status;
    const espi_certificate c = espi_course_certificate(&s->f);
    s->converged = s->f.state.phase == ESPI_FOLDED_DONE && espi_course_is_solved(s, &c);
    end_course(s, example);
    certify(s, &c);
    s->f.problem[0].r.moves = s->f.state.moves;
    for (size_t n = 0; s->checkpoint != NULL && n < s->f.problems; n++)
        s->checkpoint->record[s->first + n] = s->f.problem[n].r;
    return ESP_OK;
}

/* ---------------------------------------------------------------- training */

/* Whoever is asked sees what was told last. */
static int ask(void *user, const char *stage, double fraction)
{
    const espi_course *s = user;
    (void)stage, (void)fraction;
    return s->run->progress(s->run->user, "training", s->fraction);
}

static esp_run asking_run(espi_course *s)
{
    if (s->run == NULL) return (esp_run){0};
    return (esp_run){.threads = s->run->threads,
                     .memory = s->run->memory,
                     .progress = s->run->progress != NULL ? ask : NULL,
                     .user = s};
}

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
static esp_status solve_narrow(espi_course *s, esp_error *err)
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
        espi_course s = {.f = *parts,
                         .training = t,
                         .first = first,
                         .settings = espi_machine_settings_of(t->settings),
                         .limit = move_limit(t),
                         .run = run,
                         .checkpoint = checkpoint};
        s.f.problems = problems;
        s.asking = asking_run(&s);
        s.f.run = &s.asking;
        if (t->fit->cancelled) break; /* the others know nothing */
        status = narrow ? solve_narrow(&s, err) : solve(&s, NULL, err);
        free_course(&s);
    }
    return status;
}

esp_status espi_folded_fit(espi_training *t, const esp_kernel *kernel, espi_folded_sum *sum, const esp_run *run,
                           esp_error *err)
{
    espi_folded_checkpoint checkpoint = {.path = t->checkpoint};
    const espi_folded parts = {.row = t->example, .sum = sum, .examples = t->count};
    esp_status status = espi_training_start(t, err);
    if (status == ESP_OK && t->checkpoint != NULL) {
        checkpoint.record = espi_alloc_zero(t->fit->outputs, sizeof *checkpoint.record);
        status = checkpoint.record == NULL ? espi_no_memory(err)
                                           : espi_folded_digest(t, kernel, sum, &checkpoint.digest, err);
    }
    if (status == ESP_OK) status = run_courses(t, &parts, t->checkpoint != NULL ? &checkpoint : NULL, run, err);
    espi_free(checkpoint.record);
    return espi_training_end(t, status);
}
