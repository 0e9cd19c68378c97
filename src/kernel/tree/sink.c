#include "kernel/tree/sink.h"

#include "base/hot.h"

HOT static void add_column(double *restrict w, const double *restrict col, size_t n, double count)
{
    for (size_t r = 0; r < n; r++) w[r] += count * col[r];
}

void espi_add_column(double *restrict w, const double *restrict col, size_t n, double count)
{
    add_column(w, col, n, count);
}

static void scatter(double *restrict out, size_t from, const espi_occurrence *restrict at, size_t n,
                    const double *restrict w)
{
    for (size_t k = 0; k < n; k++) out[at[k].tree - from] += w[at[k].item];
}

static void scatter_counts(double *restrict out, size_t from, const espi_occurrence *restrict at, size_t n,
                           double value)
{
    for (size_t k = 0; k < n; k++) out[at[k].tree - from] += value * at[k].item;
}

HOT static void add_dense(double *restrict out, const uint8_t *restrict count, size_t n, double value)
{
    for (size_t j = 0; j < n; j++) out[j] += value * count[j];
}

enum { LANES = 8 };

/* The sum of f[r] * w[r], in LANES sums that run side by side, whatever the processor. */
HOT static double weigh(const double *restrict f, const double *restrict w, size_t n)
{
    double lane[LANES] = {0.0}, total = 0.0;
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += f[r + l] * w[r + l];
    for (; r < n; r++) total += f[r] * w[r];
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

enum { SEVERAL = 4 };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* The same sums of SEVERAL rows of f, to the last bit: w is read once, and no addition waits for the one before. */
HOT static void weigh_several(const double *restrict f, size_t stride, const double *restrict w, size_t n,
                              double *restrict total)
{
    lanes sum[SEVERAL] = {{0.0}};
    double rest[SEVERAL] = {0.0};
    size_t r = 0;
    for (; r + LANES <= n; r += LANES) {
        const lanes own = *(const lanes *)(w + r);
        for (size_t k = 0; k < SEVERAL; k++) sum[k] += *(const lanes *)(f + k * stride + r) * own;
    }
    for (; r < n; r++)
        for (size_t k = 0; k < SEVERAL; k++) rest[k] += f[k * stride + r] * w[r];
    for (size_t k = 0; k < SEVERAL; k++) {
        for (size_t l = 0; l < LANES; l++) rest[k] += sum[k][l];
        total[k] += rest[k];
    }
}

void espi_weigh(const double *f, size_t stride, size_t outputs, const double *w, size_t n, double *total)
{
    size_t k = 0;
    for (; k + SEVERAL <= outputs; k += SEVERAL) weigh_several(f + k * stride, stride, w, n, total + k);
    for (; k < outputs; k++) total[k] += weigh(f + k * stride, w, n);
}

HOT static double weigh_dense(const double *restrict weight, const uint8_t *restrict count, size_t n)
{
    double lane[LANES] = {0.0}, total = 0.0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += weight[j + l] * count[j + l];
    for (; j < n; j++) total += weight[j] * count[j];
    for (size_t l = 0; l < LANES; l++) total += lane[l];
    return total;
}

static double weigh_counts(const double *restrict weight, size_t from, const espi_occurrence *restrict at, size_t n)
{
    double even = 0.0, odd = 0.0; /* so that an addition needs not wait for the one before */
    size_t k = 0;
    for (; k + 2 <= n; k += 2) {
        even += weight[at[k].tree - from] * at[k].item;
        odd += weight[at[k + 1].tree - from] * at[k + 1].item;
    }
    if (k < n) even += weight[at[k].tree - from] * at[k].item;
    return even + odd;
}

static void gather(const double *restrict weight, size_t from, const espi_occurrence *restrict at, size_t n,
                   double *restrict w)
{
    for (size_t k = 0; k < n; k++) w[at[k].item] += weight[at[k].tree - from];
}

void espi_reach_to(espi_reach *c, const espi_dag *dag, const espi_group *group, size_t to)
{
    if (to >= dag->trees) {
        c->vertices = group->vertices;
        c->occurrences = group->occurrences;
    } else if (to < c->to) {
        *c = (espi_reach){.sum = c->sum};
    }
    if (group->inner == 0) c->vertices = group->vertices;
    while (c->vertices < group->vertices && group->first[c->vertices] < to) c->vertices++;
    while (c->occurrences < group->occurrences && group->at[c->occurrences].tree < to) c->occurrences++;
    c->to = to;
}

/* The first occurrence in trees from `from` on. */
static size_t first_from(const espi_group *group, const espi_reach *c, size_t from)
{
    size_t first = 0;
    while (from > 0 && first < c->occurrences && group->at[first].tree < from) first++;
    return first;
}

void espi_sink_add(espi_sink *s, const espi_dag *dag, uint32_t g, const espi_reach *c, const double *w)
{
    const espi_group *group = &dag->group[g];
    if (s->f != NULL) {
        for (size_t k = 0; group->inner == 0 && k < s->outputs; k++) s->score[k] += s->f[g][k] * w[0];
        if (group->inner > 0) espi_weigh(s->f[g], group->capacity, s->outputs, w, c->vertices, s->score);
        return;
    }
    if (group->dense != NULL) {
        add_dense(s->out, group->dense + s->from, s->to - s->from, w[0]);
        return;
    }
    const size_t first = first_from(group, c, s->from);
    if (group->inner == 0) scatter_counts(s->out, s->from, group->at + first, c->occurrences - first, w[0]);
    else scatter(s->out, s->from, group->at + first, c->occurrences - first, w);
}

void espi_gather(const espi_dag *dag, uint32_t g, const espi_reach *c, size_t from, size_t to, const double *weight,
                 double *w)
{
    const espi_group *group = &dag->group[g];
    if (group->dense != NULL) {
        w[0] += weigh_dense(weight, group->dense + from, to - from);
        return;
    }
    const size_t first = first_from(group, c, from);
    if (group->inner == 0) w[0] += weigh_counts(weight, from, group->at + first, c->occurrences - first);
    else gather(weight, from, group->at + first, c->occurrences - first, w);
}
