/* How much a pattern tells about the class, from its contingency table.
 *
 * N examples, M positive; a pattern is contained in x examples, y of them positive:
 *
 *                 positive     negative
 *     contains    a = y        b = x - y
 *     not         c = M - y    d = N - M - x + y
 *
 *     chi2   N (ad - bc)^2 / ((a+b)(c+d)(a+c)(b+d))
 *     gtest  2 sum O ln(O / E),  O a cell, E = its row sum * its column sum / N
 *     mi     sum (O/N) log2(O / E) = gtest / (2 N ln 2), in bits
 *
 * Each is 0 where a row or column of the table is empty.
 *
 * The bound. A pattern that contains another is found in fewer examples: 0 <= y' <= y and 0 <= x'-y' <= x-y. Let
 * f(a, b) be one of the three as a function of the two cells, N and M fixed. All three are f-divergences between the
 * table and the product of its margins (of (t-1)^2 and of t ln t). An f-divergence is convex in its two arguments
 * together; with the class sizes fixed, both the table and the product of its margins are linear in (a, b); so f is
 * convex in (a, b). It is 0, its least value, on the line of independence a/M = b/(N-M). Let a'/M >= b'/(N-M). Along b
 * with a' fixed, f is convex and 0 at b0 >= b', so it falls on [0, b0]: f(a',b') <= f(a',0). Along a with b = 0, f is 0
 * at a = 0, so it rises: f(a',0) <= f(a,0). The other side is the same with classes exchanged. Hence for all that grow
 * from the pattern
 *
 *     f(a', b') <= max(f(a, 0), f(0, b)),     in x and y:  max(f(y, y), f(x-y, 0)). */
#ifndef ESPI_MINE_METRIC_H
#define ESPI_MINE_METRIC_H

#include <stdint.h>

typedef enum espi_metric { ESPI_CHI2, ESPI_GTEST, ESPI_MI } espi_metric;

/* Names in the order of espi_metric, ended by NULL. */
extern const char *const espi_metric_names[];

typedef struct espi_margins {
    espi_metric metric;
    double examples, positive; /* N, M */
} espi_margins;

double espi_metric_value(const espi_margins *margins, uint32_t x, uint32_t y);
double espi_metric_bound(const espi_margins *margins, uint32_t x, uint32_t y);
/* A threshold on the scale of chi2 with one degree of freedom, where gtest lies too, as one of the metric. */
double espi_metric_threshold(const espi_margins *margins, double tau);

#endif
