/* The variables of one problem in a block are moved, one after the other (folded.h). */
#include "base/hot.h"
#include "base/parallel.h"
#include "learn/svm/folded.h"

#include <math.h>
#include <string.h>

enum {
    MOVES = 20, /* of variables in a step, per example */
    LANES = 8
};

/* The variables of a problem in a block, side by side: number c * room + i is that of example i. Examples that are not
 * active, and places behind the last, have variables that cannot move. */
typedef struct local_variables {
    size_t count, room, copies;
    double *score, *change;                /* per example: without the bias; of the coefficient */
    double *sign, *linear, *alpha, *bound; /* per variable */
    double *curve;                         /* per example: by how much the gradient grows with its variable */
    double *gain;                          /* per variable: what moving it promises */
    double total;                          /* of the violations there were */
    size_t last;                           /* the variable that was moved before; NONE: none was */
    uint64_t moves;
    const esp_run *run; /* asked whether to go on */
    size_t work;        /* since it was asked */
    esp_status status;  /* what it said */
    esp_error *err;
} local_variables;

#define NONE SIZE_MAX

static size_t rounded(size_t count) { return (count + LANES - 1) / LANES * LANES; }

size_t espi_folded_scratch(const espi_folded *f, size_t count) { return rounded(count) * (3 + 5 * f->copies); }

static local_variables lay_out(const espi_folded *f, const espi_folded_block *block, double *scratch)
{
    const size_t room = rounded(block->count), all = room * f->copies;
    local_variables v = {.count = block->count, .room = room, .copies = f->copies, .score = scratch};
    memset(scratch, 0, espi_folded_scratch(f, block->count) * sizeof *scratch);
    v.change = v.score + room;
    v.curve = v.change + room;
    v.sign = v.curve + room;
    v.linear = v.sign + all;
    v.alpha = v.linear + all;
    v.bound = v.alpha + all;
    v.gain = v.bound + all;
    for (size_t i = 0; i < room; i++) v.curve[i] = 1.0;
    return v;
}

static void take_in(local_variables *v, const espi_folded *f, const espi_folded_block *block, size_t members,
                    size_t problem)
{
    const espi_folded_problem *p = &f->problem[problem];
    for (size_t m = 0; m < members; m++) {
        const size_t i = f->member[m];
        v->score[i] = f->score[m * f->problems + problem];
        v->curve[i] = block->gram[i * block->count + i] + f->state.rho;
        for (size_t c = 0; c < f->copies; c++) {
            const size_t k = c * f->examples + block->example[i], at = c * v->room + i;
            v->sign[at] = p->v.sign[k];
            v->linear[at] = p->v.linear[k];
            v->alpha[at] = p->alpha[k];
            v->bound[at] = p->v.bound[k];
            v->total += espi_folded_violation(p, k, v->score[i], espi_folded_bias(f, p));
        }
    }
}

static void give_back(const local_variables *v, const espi_folded *f, const espi_folded_block *block, size_t members,
                      size_t problem)
{
    const espi_folded_problem *p = &f->problem[problem];
    for (size_t m = 0; m < members; m++) {
        const size_t i = f->member[m];
        f->score[m * f->problems + problem] = v->score[i];
        f->change[m * f->problems + problem] = v->change[i];
        for (size_t c = 0; c < f->copies; c++)
            p->alpha[c * f->examples + block->example[i]] = v->alpha[c * v->room + i];
    }
}

/* The gain that every variable promises, the largest of them, and the worst violation. */
HOT static void survey(const local_variables *v, double bias, double *best, double *worst)
{
    double most[LANES] = {0.0}, largest[LANES] = {0.0};
    for (size_t c = 0; c < v->copies; c++) {
        const double *restrict score = v->score, *restrict curve = v->curve;
        const double *restrict sign = v->sign + c * v->room, *restrict linear = v->linear + c * v->room;
        const double *restrict alpha = v->alpha + c * v->room, *restrict bound = v->bound + c * v->room;
        double *restrict gain = v->gain + c * v->room;
        for (size_t i = 0; i < v->room; i += LANES)
            for (size_t l = 0; l < LANES; l++) {
                const double gradient = sign[i + l] * (score[i + l] + bias) + linear[i + l];
                const double up = alpha[i + l] < bound[i + l] ? -gradient : 0.0;
                const double down = alpha[i + l] > 0.0 ? gradient : 0.0;
                const double violation = gradient < 0.0 ? up : down;
                const double promised = violation * violation / curve[i + l];
                gain[i + l] = promised;
                most[l] = promised > most[l] ? promised : most[l];
                largest[l] = violation > largest[l] ? violation : largest[l];
            }
    }
    *best = *worst = 0.0;
    for (size_t l = 0; l < LANES; l++) {
        if (most[l] > *best) *best = most[l];
        if (largest[l] > *worst) *worst = largest[l];
    }
}

HOT static void add_gram_row(double *restrict score, const double *restrict row, size_t count, double change)
{
    for (size_t i = 0; i < count; i++) score[i] += change * row[i];
}

/* ------------------------------------------------------------------- moves */

static double gradient_of(const local_variables *v, size_t at, double bias)
{
    return v->sign[at] * (v->score[at % v->room] + bias) + v->linear[at];
}

/* The step d from its value that is best within the bounds, where the objective is gradient d + curve d^2 / 2. */
static double best_step(const local_variables *v, size_t at, double gradient, double curve)
{
    const double low = -v->alpha[at], high = v->bound[at] - v->alpha[at];
    const double step = -gradient / curve;
    return !(step > low) ? low : step > high ? high : step;
}

static void move(local_variables *v, espi_folded_problem *p, const espi_folded_block *block, size_t at, double step)
{
    const size_t i = at % v->room;
    double next = v->alpha[at] + step;
    if (!(next > 0.0)) next = 0.0;
    if (next > v->bound[at]) next = v->bound[at];
    const double change = v->sign[at] * (next - v->alpha[at]);
    v->alpha[at] = next;
    v->change[i] += change;
    p->r.surplus += change;
    v->moves++;
    add_gram_row(v->score, block->gram + i * block->count, block->count, change);
}

typedef struct variable_pair { /* two variables: what the objective is in steps d[0], d[1] from where they are */
    size_t at[2];
    double gradient[2], curve[2], cross;
} variable_pair;

static double objective(const variable_pair *q, const double *d)
{
    return q->gradient[0] * d[0] + q->gradient[1] * d[1] + q->cross * d[0] * d[1] +
           (q->curve[0] * d[0] * d[0] + q->curve[1] * d[1] * d[1]) / 2.0;
}

/* The best steps within the bounds: inside of the rectangle, or else on one of its sides. */
static void best_steps(const local_variables *v, const variable_pair *q, double *best)
{
    const double determinant = q->curve[0] * q->curve[1] - q->cross * q->cross;
    double least = 0.0;
    best[0] = best[1] = 0.0;
    if (determinant > 1e-12 * q->curve[0] * q->curve[1]) {
        const double d[2] = {(q->cross * q->gradient[1] - q->curve[1] * q->gradient[0]) / determinant,
                             (q->cross * q->gradient[0] - q->curve[0] * q->gradient[1]) / determinant};
        bool inside = true;
        for (int k = 0; k < 2; k++)
            inside = inside && v->alpha[q->at[k]] + d[k] >= 0.0 && v->alpha[q->at[k]] + d[k] <= v->bound[q->at[k]];
        if (inside) {
            best[0] = d[0];
            best[1] = d[1];
            return;
        }
    }
    for (int side = 0; side < 4; side++) {
        const int k = side / 2, other = 1 - k;
        double d[2];
        d[k] = side % 2 == 0 ? -v->alpha[q->at[k]] : v->bound[q->at[k]] - v->alpha[q->at[k]];
        d[other] = best_step(v, q->at[other], q->gradient[other] + q->cross * d[k], q->curve[other]);
        const double value = objective(q, d);
        if (value >= least) continue;
        least = value;
        best[0] = d[0];
        best[1] = d[1];
    }
}

/* Whether two variables are so much alike that one would undo what the other does. They may be of one example. */
static bool are_alike(const local_variables *v, const espi_folded *f, const espi_folded_block *block, size_t a,
                      size_t b, double *cross)
{
    const size_t i = a % v->room, j = b % v->room;
    const double k = block->gram[i * block->count + j] + f->state.rho;
    *cross = v->sign[a] * v->sign[b] * k;
    return a != b && k * k > 0.5 * v->curve[i] * v->curve[j];
}

/* Moves a variable to its optimum with all others fixed; together with the one that was moved before, if the two are
 * alike. */
static void move_best(local_variables *v, const espi_folded *f, espi_folded_problem *p, const espi_folded_block *block,
                      size_t at)
{
    const double bias = espi_folded_bias(f, p);
    variable_pair q = {.at = {at, v->last}};
    double step[2];
    if (v->last != NONE && are_alike(v, f, block, at, v->last, &q.cross)) {
        for (int k = 0; k < 2; k++) {
            q.gradient[k] = gradient_of(v, q.at[k], bias);
            q.curve[k] = v->curve[q.at[k] % v->room];
        }
        best_steps(v, &q, step);
        move(v, p, block, v->last, step[1]);
    } else {
        step[0] = best_step(v, at, gradient_of(v, at, bias), v->curve[at % v->room]);
    }
    move(v, p, block, at, step[0]);
    v->last = at;
}

/* One variable after the other, always that which promises the most. Returns the worst violation there was. */
static double descend(local_variables *v, const espi_folded *f, espi_folded_problem *p, const espi_folded_block *block,
                      double tolerance)
{
    double best, worst, first;
    survey(v, espi_folded_bias(f, p), &best, &first);
    worst = first;
    if (tolerance < first / 10.0) tolerance = first / 10.0;
    for (size_t n = 0; worst > tolerance && n < MOVES * v->room && v->status == ESP_OK; n++) {
        size_t at = 0;
        while (v->gain[at] != best) at++;
        move_best(v, f, p, block, at);
        survey(v, espi_folded_bias(f, p), &best, &worst);
        v->work += 4 * v->room * v->copies;
        v->status = espi_progress_at_times(v->run, "training", &v->work, v->err);
    }
    return first;
}

/* The same again and again, with the multiplier of the constraint set anew each time, until the constraint holds too.
 * Only for a block of all examples that are active: nothing else changes what it is about. Returns the worst violation
 * that is left. */
static double settle(local_variables *v, const espi_folded *f, espi_folded_problem *p, const espi_folded_block *block,
                     double tolerance, double first)
{
    enum { TIMES = 100 };
    double worst = first;
    for (int n = 0;
         n < TIMES && v->status == ESP_OK && (worst > tolerance || fabs(p->r.surplus) * f->state.typical > tolerance);
         n++) {
        p->r.multiplier = espi_folded_bias(f, p);
        worst = descend(v, f, p, block, tolerance);
    }
    return worst;
}

esp_status espi_folded_descend(const espi_folded *f, const espi_folded_block *block, size_t members, size_t problem,
                               double tolerance, double *scratch, const esp_run *run, esp_error *err)
{
    espi_folded_problem *p = &f->problem[problem];
    local_variables v = lay_out(f, block, scratch);
    v.run = run;
    v.err = err;
    v.last = NONE;
    take_in(&v, f, block, members, problem);
    double violation = descend(&v, f, p, block, tolerance);
    if (f->blocks == 1) {
        const double least = f->state.phase == ESPI_FOLDED_STAGE ? violation / 10.0 : 0.0;
        violation = settle(&v, f, p, block, least > tolerance ? least : tolerance, violation);
    }
    give_back(&v, f, block, members, problem);
    f->outcome[problem] = (espi_folded_outcome){.worst = violation, .total = v.total, .moves = v.moves};
    return v.status;
}
