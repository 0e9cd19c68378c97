/* Sigmoids from scores to probabilities (Platt 1999), by Newton's method with backtracking (Lin, Lin, Weng 2007):
 *
 *     minimise  -sum_i  t_i log p_i + (1 - t_i) log(1 - p_i),    p_i = 1 / (1 + exp(A f_i + B))
 *
 * with targets t_i drawn in from 1 and 0 by the size of the classes. */
#include "base/alloc.h"
#include "base/status.h"
#include "learn/svm/platt.h"

#include <math.h>

typedef struct sample {
    const double *score; /* of one output; `step` apart */
    size_t step, count;
    const bool *positive;
    double high, low; /* targets of positive and negative examples */
    bool centred;     /* B stays 0 */
} sample;

static double loss(const sample *s, double a, double b)
{
    double sum = 0.0;
    for (size_t i = 0; i < s->count; i++) {
        const double x = a * s->score[i * s->step] + b, t = s->positive[i] ? s->high : s->low;
        sum += x >= 0.0 ? t * x + log1p(exp(-x)) : (t - 1.0) * x + log1p(exp(x));
    }
    return sum;
}

/* Gradient and Hessian of the loss. */
static void derive(const sample *s, double a, double b, double g[2], double h[3])
{
    g[0] = g[1] = h[1] = 0.0;
    h[0] = h[2] = 1e-12;
    for (size_t i = 0; i < s->count; i++) {
        const double f = s->score[i * s->step], x = a * f + b;
        const double p = x >= 0.0 ? exp(-x) / (1.0 + exp(-x)) : 1.0 / (1.0 + exp(x));
        const double d = (s->positive[i] ? s->high : s->low) - p, w = p * (1.0 - p);
        g[0] += f * d;
        g[1] += d;
        h[0] += f * f * w;
        h[1] += f * w;
        h[2] += w;
    }
}

static void minimise(const sample *s, double *a, double *b)
{
    double value = loss(s, *a, *b);
    for (int iteration = 0; iteration < 100; iteration++) {
        double g[2], h[3];
        derive(s, *a, *b, g, h);
        if (s->centred) g[1] = h[1] = 0.0, h[2] = 1.0;
        if (fabs(g[0]) < 1e-7 && fabs(g[1]) < 1e-7) break;
        const double determinant = h[0] * h[2] - h[1] * h[1];
        const double da = -(h[2] * g[0] - h[1] * g[1]) / determinant, db = -(h[0] * g[1] - h[1] * g[0]) / determinant;
        const double slope = g[0] * da + g[1] * db;
        double step = 1.0;
        for (; step >= 1e-10; step /= 2.0) {
            const double next = loss(s, *a + step * da, *b + step * db);
            if (!(next < value + 1e-4 * step * slope)) continue;
            *a += step * da;
            *b += step * db;
            value = next;
            break;
        }
        if (step < 1e-10) break;
    }
    /* Scores that say nothing, or the opposite, must not turn the order of examples around. */
    if (!(*a <= -1e-6) || !isfinite(*a)) *a = -1e-6;
    if (!isfinite(*b)) *b = 0.0;
}

esp_status espi_platt_fit(const double *scores, const espi_targets *targets, double *platt, esp_error *err)
{
    const size_t outputs = espi_class_outputs(targets->classes, false);
    bool *positive = espi_alloc(targets->count, sizeof *positive);
    if (positive == NULL) return espi_no_memory(err);
    for (size_t k = 0; k < outputs; k++) {
        const size_t class = targets->classes == 2 ? 1 : k;
        double n = 0.0;
        for (size_t i = 0; i < targets->count; i++) n += positive[i] = targets->class_of[i] == class;
        const double m = (double)targets->count - n;
        const sample s = {.score = scores + k,
                          .step = outputs,
                          .count = targets->count,
                          .positive = positive,
                          .high = (n + 1.0) / (n + 2.0),
                          .low = 1.0 / (m + 2.0),
                          .centred = targets->classes == 2};
        platt[2 * k] = -1.0;
        platt[2 * k + 1] = s.centred ? 0.0 : log((m + 1.0) / (n + 1.0));
        minimise(&s, &platt[2 * k], &platt[2 * k + 1]);
    }
    espi_free(positive);
    return ESP_OK;
}
