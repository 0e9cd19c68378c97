#include "mine/metric.h"

#include <math.h>
#include <stddef.h>

const char *const espi_metric_names[] = {"chi2", "gtest", "mi", NULL};

/* O ln(O / E) */
static double term(double o, double row, double column, double n)
{
    return o > 0.0 ? o * log(o / row * (n / column)) : 0.0;
}

double espi_metric_value(const espi_margins *t, uint32_t x, uint32_t y)
{
    const double n = t->examples, m = t->positive, a = y, b = (double)x - a, c = m - a, d = n - m - b;
    if (!(a + b > 0.0 && c + d > 0.0 && m > 0.0 && n - m > 0.0)) return 0.0;
    if (t->metric == ESPI_CHI2) {
        const double difference = a * d - b * c;
        /* In this order the table with classes or rows exchanged gives the same bits. */
        return n * (difference * difference) / (((a + b) * (c + d)) * (m * (n - m)));
    }
    const double sum =
        term(a, a + b, m, n) + term(b, a + b, n - m, n) + term(c, c + d, m, n) + term(d, c + d, n - m, n);
    if (!(sum > 0.0)) return 0.0; /* independent, up to rounding */
    return t->metric == ESPI_GTEST ? 2.0 * sum : sum / (n * log(2.0));
}

double espi_metric_bound(const espi_margins *t, uint32_t x, uint32_t y)
{
    return fmax(espi_metric_value(t, y, y), espi_metric_value(t, x - y, 0));
}

double espi_metric_threshold(const espi_margins *t, double tau)
{
    return t->metric == ESPI_MI ? tau / (2.0 * t->examples * log(2.0)) : tau;
}
