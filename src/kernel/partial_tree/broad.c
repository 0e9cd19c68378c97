/* The excess of many vertices with one cell or two, where there is one lane: what most nodes of programs have. One pass
 * reads the values of the cells, makes S from them and adds it to w, so that nothing else goes through memory. The
 * order of operations is that of children.c. */
#include "base/hot.h"
#include "kernel/partial_tree/match.h"

/* `factor`, mu and `count` of an espi_ptk_many. */
typedef struct many_factors {
    double gaps, mu, count;
} many_factors;

HOT static void add_one_cell(double *restrict out, double *restrict w, size_t n, many_factors f, double base,
                             const double *restrict column, const uint32_t *restrict place)
{
    for (size_t r = 0; r < n; r++) {
        out[r] = f.mu * (base + column[place[r]]);
        w[r] += f.count * out[r];
    }
}

/* One of two cells has no excess. */
HOT static void add_first_cell(double *restrict out, double *restrict w, size_t n, many_factors f, double base,
                               const double *restrict column, const uint32_t *restrict place, double second)
{
    for (size_t r = 0; r < n; r++) {
        const double p = base + column[place[r]];
        out[r] = f.mu * (p + second * (1.0 + f.gaps * p));
        w[r] += f.count * out[r];
    }
}

HOT static void add_second_cell(double *restrict out, double *restrict w, size_t n, many_factors f, double first,
                                double base, const double *restrict column, const uint32_t *restrict place)
{
    for (size_t r = 0; r < n; r++) {
        out[r] = f.mu * (first + (base + column[place[r]]) * (1.0 + f.gaps * first));
        w[r] += f.count * out[r];
    }
}

HOT static void add_two_cells(double *restrict out, double *restrict w, size_t n, many_factors f, double base_a,
                              const double *restrict column_a, const uint32_t *restrict place_a, double base_b,
                              const double *restrict column_b, const uint32_t *restrict place_b)
{
    for (size_t r = 0; r < n; r++) {
        const double p = base_a + column_a[place_a[r]];
        out[r] = f.mu * (p + (base_b + column_b[place_b[r]]) * (1.0 + f.gaps * p));
        w[r] += f.count * out[r];
    }
}

void espi_ptk_sum_many(const espi_ptk_many *x)
{
    const many_factors f = {x->factor, x->mu, x->count};
    const struct espi_ptk_reading *a = &x->cell[0], *b = &x->cell[1];
    if (x->cells == 1 && a->column != NULL) {
        add_one_cell(x->out, x->w, x->n, f, a->base, a->column, a->place);
    } else if (a->column != NULL && b->column != NULL) {
        add_two_cells(x->out, x->w, x->n, f, a->base, a->column, a->place, b->base, b->column, b->place);
    } else if (a->column != NULL) {
        add_first_cell(x->out, x->w, x->n, f, a->base, a->column, a->place, b->base);
    } else if (x->cells == 2 && b->column != NULL) {
        add_second_cell(x->out, x->w, x->n, f, a->base, b->base, b->column, b->place);
    } else {
        const double p = a->base, s = x->mu * (x->cells == 1 ? p : p + b->base * (1.0 + x->factor * p));
        for (size_t r = 0; r < x->n; r++) x->out[r] = s;
        for (size_t r = 0; r < x->n; r++) x->w[r] += x->count * s;
    }
}
