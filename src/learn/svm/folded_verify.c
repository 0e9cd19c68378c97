#include "base/alloc.h"
#include "base/status.h"
#include "learn/svm/folded.h"

#include <math.h>

/* ------------------------------------------------------------- constraints */

/* How far variable k can go against a surplus of the sum. One that is free grows in proportion to what it is, as it is
 * small where kernel values are large: there, a share of what C leaves would change scores by very much. */
static double room(const espi_folded_problem *p, size_t k, bool free_only)
{
    const double a = p->alpha[k], left = p->v.bound[k] - a;
    if (free_only && (a <= 0.0 || left <= 0.0)) return 0.0;
    if ((p->v.sign[k] > 0) == (p->r.surplus > 0.0)) return a;
    return free_only && left > 4.0 * a ? 4.0 * a : left;
}

/* Variables that rounding keeps from their bounds go there: as free ones they would fix the bias. */
static void snap(espi_folded_problem *p)
{
    double largest = 0.0;
    for (size_t k = 0; k < p->v.count; k++)
        if (p->alpha[k] > largest) largest = p->alpha[k];
    for (size_t k = 0; k < p->v.count; k++) {
        if (p->alpha[k] < 1e-14 * largest) p->alpha[k] = 0.0;
        else if (p->v.bound[k] - p->alpha[k] < 1e-14 * p->v.bound[k]) p->alpha[k] = p->v.bound[k];
    }
}

double espi_folded_surplus(const espi_folded_problem *p)
{
    double surplus = -p->v.sum;
    for (size_t k = 0; k < p->v.count; k++) surplus += p->v.sign[k] * p->alpha[k];
    return surplus;
}

void espi_folded_meet(espi_folded_problem *p)
{
    p->r.surplus = espi_folded_surplus(p);
    for (int free_only = 1; free_only >= 0 && p->r.surplus != 0.0; free_only--) {
        double all = 0.0, left = p->r.surplus;
        for (size_t k = 0; k < p->v.count; k++) all += room(p, k, free_only);
        if (all < fabs(p->r.surplus) && free_only) continue;
        const double share = all > fabs(p->r.surplus) ? fabs(p->r.surplus) / all : 1.0;
        for (size_t k = 0; k < p->v.count && all > 0.0; k++) {
            const double by = share * room(p, k, free_only);
            const bool down = (p->v.sign[k] > 0) == (p->r.surplus > 0.0);
            p->alpha[k] += down ? -by : by;
            left -= p->r.surplus > 0.0 ? by : -by;
        }
        p->r.surplus = fabs(left) > 1e-12 * fabs(p->r.surplus) ? left : 0.0;
        break;
    }
    snap(p);
}

/* The coefficients of an example; false if all are 0. */
static bool coefficients(const espi_folded *f, size_t example, double *coefficient)
{
    bool any = false;
    for (size_t n = 0; n < f->problems; n++) {
        const espi_folded_problem *p = &f->problem[n];
        coefficient[n] = 0.0;
        for (size_t c = 0; c < f->copies; c++)
            coefficient[n] += p->v.sign[c * f->examples + example] * p->alpha[c * f->examples + example];
        any = any || coefficient[n] != 0.0;
    }
    return any;
}

esp_status espi_folded_sum_anew(espi_folded *f, esp_error *err)
{
    enum { SOME = 4096 }; /* examples that are added at once */
    double *coefficient = espi_alloc(SOME, f->problems * sizeof *coefficient);
    uint32_t *row = espi_alloc(SOME, sizeof *row);
    esp_status status = coefficient == NULL || row == NULL ? espi_no_memory(err) : ESP_OK;
    espi_folded_sum_clear(f->sum);
    for (size_t i = 0; status == ESP_OK && i < f->examples;) {
        size_t count = 0;
        for (; i < f->examples && count < SOME; i++) {
            row[count] = f->row[i];
            count += coefficients(f, i, coefficient + count * f->problems);
        }
        status = espi_folded_sum_add(f->sum, row, count, coefficient, err);
    }
    espi_free(coefficient);
    espi_free(row);
    return status;
}

/* -------------------------------------------------------------------- bias */

typedef struct bend { /* where the slope of the primal objective by the bias changes, and by how much */
    double at, by;
} bend;

/* Puts the bends that lie below `middle`, or at it, first. Returns their number, and adds up what they change. */
static size_t part_bends(bend *b, size_t count, double middle, bool at_it, double *change)
{
    size_t below = 0;
    *change = 0.0;
    for (size_t i = 0; i < count; i++) {
        const bend x = b[i];
        if (at_it ? x.at > middle : x.at >= middle) continue;
        *change += x.by;
        b[i] = b[below];
        b[below++] = x;
    }
    return below;
}

/* Where a slope, which starts at `slope` and rises at the bends, first is not below 0. */
static double lowest_point(bend *b, size_t count, double slope)
{
    double change, last = count > 0 ? b[0].at : 0.0;
    while (count > 1) { /* as in quicksort, but only one part matters */
        const double x = b[0].at, y = b[count / 2].at, z = b[count - 1].at;
        const double middle = x < y ? (y < z ? y : x < z ? z : x) : (x < z ? x : y < z ? z : y); /* the median */
        size_t below = part_bends(b, count, middle, true, &change);
        if (below == count) below = part_bends(b, count, middle, false, &change); /* it was the last of them */
        if (below == 0) return middle;
        if (slope + change >= 0.0) {
            count = below;
        } else {
            slope += change;
            b += below;
            count -= below;
        }
        last = b[0].at;
    }
    return last;
}

/* The middle of where the slope is 0, if that is more than a point: from `first` to the next bend. */
static double flat_middle(const bend *b, size_t count, double slope, double first)
{
    double next = INFINITY, all = 0.0;
    for (size_t i = 0; i < count; i++) {
        all += b[i].by;
        if (b[i].at <= first) slope += b[i].by;
        else if (b[i].at < next) next = b[i].at;
    }
    return fabs(slope) <= 1e-12 * all && next < INFINITY ? first + (next - first) / 2.0 : first;
}

/* The bias where the primal objective, all else fixed, is least. */
static double best_bias(const espi_folded *f, size_t problem, const double *score, bend *bends)
{
    const espi_folded_problem *p = &f->problem[problem];
    double slope = p->v.sum;
    for (size_t k = 0; k < p->v.count; k++) {
        const double h = score[k % f->examples * f->problems + problem];
        bends[k] = (bend){.at = -p->v.sign[k] * p->v.linear[k] - h, .by = p->v.bound[k]};
        /* Far below all bends those with sign +1 are in error, and the slope has all of their bounds. */
        if (p->v.sign[k] > 0) slope -= p->v.bound[k];
    }
    if (p->v.count == 0) return 0.0;
    return flat_middle(bends, p->v.count, slope, lowest_point(bends, p->v.count, slope));
}

/* -------------------------------------------------------------- objectives */

/* The bias, the objectives and the worst violation; returns the sum of all violations. */
static double judge(espi_folded *f, size_t problem, const double *score, bend *bends)
{
    espi_folded_problem *p = &f->problem[problem];
    double square = 0.0, linear = 0.0, loss = 0.0, total = 0.0;
    p->r.bias = best_bias(f, problem, score, bends);
    p->r.violation = 0.0;
    for (size_t k = 0; k < p->v.count; k++) {
        const double h = score[k % f->examples * f->problems + problem];
        const double gradient = p->v.sign[k] * (h + p->r.bias) + p->v.linear[k];
        const double violation = espi_folded_violation(p, k, h, p->r.bias);
        square += p->v.sign[k] * p->alpha[k] * h;
        linear += p->v.linear[k] * p->alpha[k];
        if (gradient < 0.0) loss -= p->v.bound[k] * gradient;
        total += violation;
        if (violation > p->r.violation) p->r.violation = violation;
    }
    p->r.primal = square / 2.0 + loss + p->r.bias * p->v.sum;
    p->r.dual = -square / 2.0 - linear;
    return total;
}

static bool is_active(const espi_folded *f, size_t example, const double *score, double tolerance)
{
    for (size_t n = 0; n < f->problems; n++) {
        const espi_folded_problem *p = &f->problem[n];
        for (size_t c = 0; c < f->copies; c++) {
            const size_t k = c * f->examples + example;
            const bool is_free = p->alpha[k] > 0.0 && p->alpha[k] < p->v.bound[k];
            if (is_free || espi_folded_violation(p, k, score[n], p->r.bias) > tolerance ||
                espi_folded_violation(p, k, score[n], espi_folded_bias(f, p)) > tolerance)
                return true;
        }
    }
    return false;
}

/* Whether a gradient is this close to 0. */
static bool is_near(const espi_folded *f, size_t example, const double *score, double distance)
{
    for (size_t n = 0; n < f->problems; n++)
        for (size_t c = 0; c < f->copies; c++) {
            const espi_folded_problem *p = &f->problem[n];
            const size_t k = c * f->examples + example;
            if (fabs(p->v.sign[k] * (score[n] + p->r.bias) + p->v.linear[k]) < distance) return true;
        }
    return false;
}

/* Scores move by several times what violations are on average. */
static void mark_near(espi_folded *f, const double *score, double total)
{
    const double distance = f->actives > 0 ? 10.0 * total / (double)f->actives : 0.0;
    f->nears = 0;
    for (size_t i = 0; i < f->examples; i++) {
        f->near[i] = f->active[i] || is_near(f, i, score + i * f->problems, distance);
        f->nears += f->near[i];
    }
}

esp_status espi_folded_verify(espi_folded *f, double tolerance, esp_error *err)
{
    double *score = espi_alloc(f->examples, f->problems * sizeof *score);
    bend *bends = espi_alloc(f->examples, f->copies * sizeof *bends);
    esp_status status = score == NULL || bends == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t n = 0; status == ESP_OK && n < f->problems; n++) espi_folded_meet(&f->problem[n]);
    if (status == ESP_OK) status = espi_folded_sum_anew(f, err);
    if (status == ESP_OK) status = espi_folded_sum_score(f->sum, f->row, f->examples, f->run, score, err);
    f->state.looks += f->examples;
    double total = 0.0;
    for (size_t n = 0; status == ESP_OK && n < f->problems; n++) total += judge(f, n, score, bends);
    f->actives = 0;
    for (size_t i = 0; status == ESP_OK && i < f->examples; i++) {
        f->active[i] = is_active(f, i, score + i * f->problems, tolerance);
        f->actives += f->active[i];
    }
    if (status == ESP_OK) mark_near(f, score, total);
    espi_free(score);
    espi_free(bends);
    return status;
}

/* -------------------------------------------------------------------- near */

esp_status espi_folded_look_near(espi_folded *f, double tolerance, double *worst, esp_error *err)
{
    uint32_t *example = espi_alloc(f->nears, sizeof *example), *row = espi_alloc(f->nears, sizeof *row);
    double *score = espi_alloc(f->nears, f->problems * sizeof *score);
    esp_status status = example == NULL || row == NULL || score == NULL ? espi_no_memory(err) : ESP_OK;
    size_t count = 0;
    for (size_t i = 0; status == ESP_OK && i < f->examples; i++) {
        if (!f->near[i]) continue;
        example[count] = (uint32_t)i;
        row[count++] = f->row[i];
    }
    if (status == ESP_OK) status = espi_folded_sum_score(f->sum, row, count, f->run, score, err);
    f->state.looks += count;
    *worst = 0.0;
    if (status == ESP_OK) f->actives = 0;
    for (size_t i = 0; status == ESP_OK && i < count; i++) {
        f->active[example[i]] = is_active(f, example[i], score + i * f->problems, tolerance);
        f->actives += f->active[example[i]];
        for (size_t n = 0; n < f->problems; n++)
            for (size_t c = 0; c < f->copies; c++) {
                const espi_folded_problem *p = &f->problem[n];
                const double violation = espi_folded_violation(p, c * f->examples + example[i],
                                                               score[i * f->problems + n], espi_folded_bias(f, p));
                if (violation > *worst) *worst = violation;
            }
    }
    espi_free(example);
    espi_free(row);
    espi_free(score);
    return status;
}
