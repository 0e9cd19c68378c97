#include "learn/probit.h"

#include <math.h>

static const double TAIL = -30.0; /* below it, Phi is taken from its asymptotic series */
static const double LOG_ROOT_TWO_PI = 0.91893853320467274178, ROOT_HALF = 0.70710678118654752440;

/* -z Phi(z) / phi(z) for z far below 0. */
static double tail_series(double z)
{
    const double q = 1.0 / (z * z);
    return 1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q * (1.0 - 9.0 * q))));
}

double espi_probit(double z) { return 0.5 * erfc(-z * ROOT_HALF); }

double espi_log_probit(double z)
{
    if (z < TAIL) return -0.5 * z * z - LOG_ROOT_TWO_PI - log(-z) + log(tail_series(z));
    return z > 5.0 ? log1p(-0.5 * erfc(z * ROOT_HALF)) : log(0.5 * erfc(-z * ROOT_HALF));
}

double espi_probit_ratio(double z)
{
    if (z < TAIL) return -z / tail_series(z);
    return exp(-0.5 * z * z - LOG_ROOT_TWO_PI) / (0.5 * erfc(-z * ROOT_HALF));
}

double espi_probit_argument(double mean, double variance) { return mean / sqrt(1.0 + variance); }

void espi_class_probabilities(const double *z, size_t classes, double *out)
{
    if (classes == 2) {
        const double of_second = z[0];
        out[0] = espi_probit(-of_second);
        out[1] = espi_probit(of_second);
        return;
    }
    double most = -INFINITY, sum = 0.0;
    for (size_t c = 0; c < classes; c++) {
        out[c] = espi_log_probit(z[c]) - espi_log_probit(-z[c]);
        most = fmax(most, out[c]);
    }
    for (size_t c = 0; c < classes; c++) sum += out[c] = exp(out[c] - most);
    for (size_t c = 0; c < classes; c++) out[c] /= sum;
}
