/* Measurements of gradients for bench/gradient.sh, in seconds of the processor, which a busy machine disturbs less than
 * the time that passes; all runs on one thread. Results go to standard output as lines of TAB-separated fields.
 *
 *     share DATA REPEATS KERNEL
 *     compare DATA REPEATS KERNEL [apart]
 *
 * `share` takes any kernel and measures its gradient beside its matrix.
 *
 * `compare`: KERNEL is norm(L), L one of st, sst and sasst; with `apart` every label has its own lambda and alpha.
 * Against the published way (Beck et al. 2015): for each pair of trees the recursion of FTK carries the derivatives of
 * each Delta in all hyperparameters along,
 *
 *     Delta  = lambda_x prod_k f_k
 *     dDelta = prod_k f_k dlambda_x + sum_k (lambda_x prod_{l != k} f_l) df_k,       f_k = alpha_x + Delta_k or alpha_x
 *
 * and the derivatives of all values are kept until the learner, who needs the whole matrix for that, has its weights.
 * Trees are sorted by production once, all memory is reused, sums run over vectors of hyperparameters, and only one
 * triangle is done. `direct` is the least that carrying derivatives forward can take: pre-terminals, whose derivative
 * is one number, have no vectors; and the weights are known beforehand, as by a miracle, so that nothing is kept. */
#include "kernel/tree/flat.h"
#include "base/hot.h"
#include "kernel/expression/hyper.h"
#include "kernel/evaluate/bound.h"
#include "measure.h"

#include <math.h>

typedef struct published {
    const espi_forest *forest;
    bool direct;
    espi_flat *tree;
    size_t n, places;
    double *lambda, *alpha; /* per production */
    uint32_t *lambda_place, *alpha_place;
    espi_decay decay;
    espi_pair_scratch scratch;
    double *slope; /* per pair of nodes, `places` each */
    size_t slopes;
    double *self;   /* per tree: derivatives of K(i, i) */
    double *scale;  /* per tree: 1/sqrt(K(i, i)) */
    double *before; /* per child: the product of the factors before it */
    size_t befores;
    double *sum; /* of the pair of trees at hand */
} published;

static void grow(double **array, size_t *capacity, size_t count)
{
    if (count <= *capacity) return;
    *capacity = 2 * count;
    *array = need(realloc(*array, *capacity * sizeof **array));
}

static uint32_t place_of(const espi_leaf *leaf, const char *name)
{
    uint32_t place = 0;
    while (leaf->class->parameters[place].info.name != NULL &&
           strcmp(leaf->class->parameters[place].info.name, name) != 0)
        place++;
    return place;
}

/* lambda and alpha of every production, and where their derivatives go. */
static void set_values(published *p, const espi_leaf *leaf)
{
    const uint32_t lambda = place_of(leaf, "lambda"), alpha = place_of(leaf, "alpha"), shared = place_of(leaf, "");
    for (size_t i = 0; i < p->forest->productions; i++) {
        const char *label = p->forest->symbols.symbol[p->forest->production[i].label].text;
        p->lambda_place[i] = lambda;
        p->alpha_place[i] = alpha;
        p->lambda[i] = leaf->value[lambda];
        p->alpha[i] = alpha < shared ? leaf->value[alpha] : 0.0;
        for (size_t k = 0; k < leaf->symbols; k++) {
            const espi_symbol_value *s = &leaf->symbol[k];
            if (strcmp(s->label, label) != 0) continue;
            (s->parameter == lambda ? p->lambda_place : p->alpha_place)[i] = shared + (uint32_t)k;
            (s->parameter == lambda ? p->lambda : p->alpha)[i] = s->value;
        }
    }
}

static published published_new(const espi_leaf *leaf, const espi_forest *forest)
{
    published p = {.forest = forest, .n = forest->roots, .places = place_of(leaf, "") + leaf->symbols};
    p.tree = zeros(p.n, sizeof *p.tree);
    for (size_t i = 0; i < p.n; i++)
        if (!espi_flat_fill(&p.tree[i], forest, forest->root[i], NULL)) need(NULL);
    p.lambda = zeros(forest->productions, sizeof *p.lambda);
    p.alpha = zeros(forest->productions, sizeof *p.alpha);
    p.lambda_place = zeros(forest->productions, sizeof *p.lambda_place);
    p.alpha_place = zeros(forest->productions, sizeof *p.alpha_place);
    p.self = zeros(p.n * p.places, sizeof *p.self);
    p.scale = zeros(p.n, sizeof *p.scale);
    p.sum = zeros(p.places, sizeof *p.sum);
    set_values(&p, leaf);
    p.decay = (espi_decay){.lambda = p.lambda, .alpha = p.alpha};
    return p;
}

static void published_free(published *p)
{
    for (size_t i = 0; i < p->n; i++) espi_flat_free(&p->tree[i]);
    espi_pair_scratch_free(&p->scratch);
    free(p->tree);
    free(p->lambda);
    free(p->alpha);
    free(p->lambda_place);
    free(p->alpha_place);
    free(p->slope);
    free(p->self);
    free(p->scale);
    free(p->before);
    free(p->sum);
}

HOT static void add_scaled(double *restrict to, const double *restrict from, size_t n, double scale)
{
    for (size_t k = 0; k < n; k++) to[k] += scale * from[k];
}

/* The derivatives of Delta of node i of `a` and node j of `b`, which have one production. */
static void carry(published *p, const espi_flat *a, const espi_flat *b, size_t i, size_t j, double *restrict slope)
{
    const espi_pair_scratch *s = &p->scratch;
    const uint32_t production = a->production[i], *child = a->child + a->first[i], *other = b->child + b->first[j];
    const size_t inner = a->first[i + 1] - a->first[i];
    const double alpha = p->alpha[production];
    double after = 1.0, product = p->lambda[production];
    memset(slope, 0, p->places * sizeof *slope);
    for (size_t k = 0; k < inner; k++) {
        const bool same = a->production[child[k]] == b->production[other[k]];
        p->before[2 * k] = product;
        p->before[2 * k + 1] = same ? alpha + s->delta[s->base[child[k]] + b->place[other[k]]] : alpha;
        product *= p->before[2 * k + 1];
    }
    for (size_t k = inner; k-- > 0;) {
        const uint32_t below = a->production[child[k]];
        const double others = p->before[2 * k] * after;
        after *= p->before[2 * k + 1];
        if (p->alpha_place[production] < p->places) slope[p->alpha_place[production]] += others;
        if (below != b->production[other[k]]) continue;
        if (p->direct && p->forest->production[below].inner == 0) slope[p->lambda_place[below]] += others;
        else add_scaled(slope, p->slope + (s->base[child[k]] + b->place[other[k]]) * p->places, p->places, others);
    }
    slope[p->lambda_place[production]] += after;
}

/* K of two trees, and p->sum = its derivatives. */
static double pair(published *p, size_t x, size_t y)
{
    const espi_flat *a = &p->tree[x], *b = &p->tree[y];
    const espi_pair_scratch *s = &p->scratch;
    double value;
    if (!espi_ftk(a, b, &p->decay, &p->scratch, &value)) need(NULL);
    grow(&p->slope, &p->slopes, s->capacity[0] * p->places);
    memset(p->sum, 0, p->places * sizeof *p->sum);
    for (size_t i = 0; i < a->nodes; i++) {
        if (s->count[i] == 0) continue;
        const uint32_t production = a->production[i];
        if (p->direct && p->forest->production[production].inner == 0) {
            p->sum[p->lambda_place[production]] += s->count[i];
            continue;
        }
        grow(&p->before, &p->befores, 2 * (a->first[i + 1] - a->first[i]));
        for (size_t k = 0; k < s->count[i]; k++) {
            double *slope = p->slope + (s->base[i] + k) * p->places;
            carry(p, a, b, i, b->sorted[s->from[i] + k], slope);
            add_scaled(p->sum, slope, p->places, 1.0);
        }
    }
    return value;
}

static void set_selves(published *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const double square = pair(p, i, i);
        p->scale[i] = square > 0.0 ? 1.0 / sqrt(square) : 0.0;
        memcpy(p->self + i * p->places, p->sum, p->places * sizeof *p->sum);
    }
}

/* The derivatives of the normalised value of trees i and j, from p->sum. */
static void normalise(published *p, size_t i, size_t j, double value, double *slope)
{
    const double both = p->scale[i] * p->scale[j];
    memset(slope, 0, p->places * sizeof *slope);
    add_scaled(slope, p->sum, p->places, both);
    add_scaled(slope, p->self + i * p->places, p->places, -0.5 * value * both * p->scale[i] * p->scale[i]);
    add_scaled(slope, p->self + j * p->places, p->places, -0.5 * value * both * p->scale[j] * p->scale[j]);
}

/* gradient += the derivatives of the weighted sum of the normalised values; of the weights, the lower triangle counts
 * twice. */
static void published_gradient(published *p, const double *weight, double *all, double *gradient)
{
    double *at = all;
    set_selves(p);
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < i; j++, at += p->places) normalise(p, i, j, pair(p, i, j), at);
    at = all;
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < i; j++, at += p->places) add_scaled(gradient, at, p->places, 2.0 * weight[i * p->n + j]);
}

/* The same with weights that are known beforehand. */
static void direct_gradient(published *p, const double *weight, double *gradient)
{
    double *self = zeros(p->n, sizeof *self); /* what the sum changes by with K(i, i) */
    set_selves(p);
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < i; j++) {
            const double w = 2.0 * weight[i * p->n + j] * p->scale[i] * p->scale[j], k = pair(p, i, j);
            self[i] -= 0.5 * w * k * p->scale[i] * p->scale[i];
            self[j] -= 0.5 * w * k * p->scale[j] * p->scale[j];
            add_scaled(gradient, p->sum, p->places, w);
        }
    for (size_t i = 0; i < p->n; i++) add_scaled(gradient, p->self + i * p->places, p->places, self[i]);
    free(self);
}

typedef struct matrix {
    double *value;
    size_t n;
} matrix;

static void keep(void *context, const double *rows, size_t width, size_t first, size_t last)
{
    const matrix *m = context;
    for (size_t i = first; i < last; i++)
        memcpy(m->value + i * m->n, rows + (i - first) * width, (i + 1) * sizeof *rows);
}

/* Ours: the matrix, then the gradient. */
static void ours(const esp_kernel *kernel, const esp_dataset *data, const double *weight, matrix *m, double *gradient,
                 double time[2])
{
    espi_bound *bound;
    esp_error err;
    const double start = spent();
    check(espi_bind(kernel, data, data, &one_thread, &bound, &err), &err);
    check(espi_gram_blocks(bound, &one_thread, keep, m, &err), &err);
    time[0] = spent() - start;
    check(espi_bound_gradient(bound, weight, m->value, &one_thread, gradient, &err), &err);
    time[1] = spent() - start - time[0];
    espi_bound_free(bound);
}

static double difference(const double *a, const double *b, size_t n)
{
    double most = 0.0, largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
    }
    return most / largest;
}

enum { WAYS = 3 }; /* ours, published, direct */

/* `all`: room for the derivatives of all values; NULL: directly. */
static double time_forward(const espi_leaf *leaf, const espi_forest *forest, const double *weight, double *all,
                           double *gradient)
{
    const double start = spent();
    published p = published_new(leaf, forest);
    p.direct = all == NULL;
    if (p.direct) direct_gradient(&p, weight, gradient);
    else published_gradient(&p, weight, all, gradient);
    const double time = spent() - start;
    published_free(&p);
    return time;
}

static void tell_ratio(const double *a, const double *b, int repeats)
{
    double ratio[MOST];
    for (int i = 0; i < repeats; i++) ratio[i] = a[i] / b[i];
    const double middle = median(ratio, repeats);
    qsort(ratio, (size_t)repeats, sizeof *ratio, by_value);
    printf("\t%.1f\t%.1f\t%.1f", middle, ratio[0], ratio[repeats - 1]);
}

/* trees, hyperparameters, seconds of our matrix and of our gradient, gradient / matrix; seconds of the published way,
 * published / (matrix + gradient) with the least and the most; the same of `direct`; the largest difference of a
 * derivative from ours over the largest derivative */
static void compare(char **argument, bool apart)
{
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    esp_kernel *kernel = parse(argument[2]), *expanded;
    esp_error err;
    check(espi_kernel_expand(kernel, data, &expanded, &err), &err);
    const esp_kernel *used = apart ? expanded : kernel;
    espi_hyper *hyper;
    size_t hypers;
    check(espi_hypers_new(used, &hyper, &hypers, &err), &err);
    const size_t n = esp_dataset_count(data), places = espi_kernel_places(used);
    matrix m = {zeros(n * n, sizeof(double)), n};
    double *weight = zeros(n * n, sizeof *weight), *all = need(malloc((n * (n + 1) / 2 * places) * sizeof *all)),
           *gradient[WAYS];
    double part[2][MOST], time[WAYS][MOST], share[MOST];
    for (size_t i = 0; i < n * n; i++) weight[i] = sin((double)i);
    for (int k = 0; k < WAYS; k++) gradient[k] = zeros(places, sizeof(double));
    memset(all, 1, (n * (n + 1) / 2 * places) * sizeof *all); /* all pages are there */
    for (int i = 0; i < repeats; i++) {
        double both[2];
        for (int k = 0; k < WAYS; k++) memset(gradient[k], 0, places * sizeof(double));
        ours(used, data, weight, &m, gradient[0], both);
        for (int k = 0; k < 2; k++) part[k][i] = both[k];
        share[i] = both[1] / both[0];
        time[0][i] = both[0] + both[1];
        for (int k = 1; k < WAYS; k++)
            time[k][i] = time_forward(&used->leaf[0], &data->column[0].trees, weight, k == 1 ? all : NULL, gradient[k]);
    }
    printf("%zu\t%zu\t%.4f\t%.4f\t%.2f", n, hypers, median(part[0], repeats), median(part[1], repeats),
           median(share, repeats));
    for (int k = 1; k < WAYS; k++) {
        printf("\t%.3f", median(time[k], repeats));
        tell_ratio(time[k], time[0], repeats);
    }
    printf("\t%.0e\n",
           fmax(difference(gradient[1], gradient[0], places), difference(gradient[2], gradient[0], places)));
    for (int k = 0; k < WAYS; k++) free(gradient[k]);
    free(weight);
    free(all);
    free(m.value);
    espi_hypers_free(hyper, hypers);
    esp_kernel_free(kernel);
    esp_kernel_free(expanded);
    esp_dataset_free(data);
}

/* examples, hyperparameters, seconds of the matrix and of the gradient, gradient / matrix with the least and the most
 */
static void share(char **argument)
{
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    esp_kernel *kernel = parse(argument[2]);
    espi_hyper *hyper;
    size_t hypers;
    esp_error err;
    check(espi_hypers_new(kernel, &hyper, &hypers, &err), &err);
    const size_t n = esp_dataset_count(data);
    matrix m = {zeros(n * n, sizeof(double)), n};
    double *weight = zeros(n * n, sizeof *weight), *gradient = zeros(espi_kernel_places(kernel), sizeof *gradient);
    double part[2][MOST];
    for (size_t i = 0; i < n * n; i++) weight[i] = sin((double)i);
    for (int i = 0; i < repeats; i++) {
        double both[2];
        ours(kernel, data, weight, &m, gradient, both);
        for (int k = 0; k < 2; k++) part[k][i] = both[k];
    }
    printf("%zu\t%zu\t%.4f\t%.4f", n, hypers, median(part[0], repeats), median(part[1], repeats));
    tell_ratio(part[1], part[0], repeats);
    printf("\n");
    free(weight);
    free(gradient);
    free(m.value);
    espi_hypers_free(hyper, hypers);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

int main(int count, char **argument)
{
    if (count == 5 && strcmp(argument[1], "share") == 0) {
        share(argument + 2);
        return 0;
    }
    const bool apart = count == 6 && strcmp(argument[5], "apart") == 0;
    if (count < 5 || count > 6 || strcmp(argument[1], "compare") != 0 || (count == 6 && !apart)) {
        fprintf(stderr, "usage: see the head of bench/gradient.c\n");
        return 2;
    }
    compare(argument + 2, apart);
    return 0;
}
