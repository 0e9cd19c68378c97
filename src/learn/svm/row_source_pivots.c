/* Support vector machines on Nystroem features (setting `inducing`).
 *
 * With M pivots S (pivots.h) and K(S, S) = L L', example x has the features phi(x) = L^-1 K(S, x), and phi(x)'phi(z)
 * stands for K(x, z). What a solver learns on them, f(x) = sum_i c_i phi(x_i)'phi(x) + bias = w'phi(x) + bias, is a sum
 * of kernels over the pivots alone: w'L^-1 K(S, x). So the model has M support examples and predicts as any other. The
 * pivots of a fold are drawn from what is trained on. */
#include "base/alloc.h"
#include "base/dense.h"
#include "base/status.h"
#include "learn/pivots.h"
#include "learn/svm/row_source.h"

#include <string.h>

typedef struct pivot_source {
    espi_rows_of_split split; /* whose rows are those of features */
    espi_pivots pivots;       /* with their factor, whose columns are the features */
} pivot_source;

static pivot_source *view(espi_row_source *source) { return (pivot_source *)(void *)source; }

static esp_status open_source(espi_row_source *source, esp_error *err)
{
    const espi_problem *p = &source->problem;
    return espi_bind(p->kernel, p->data, p->data, p->run, &view(source)->split.bound, err);
}

static void close_source(espi_row_source *source) { espi_bound_free(view(source)->split.bound); }

static void leave(espi_row_source *source)
{
    pivot_source *s = view(source);
    espi_rows_free(s->split.part);
    espi_rows_free(s->split.all);
    espi_pivots_free(&s->pivots);
    s->split.part = s->split.all = NULL;
}

/* Features and rows take run->memory at most. */
static esp_status make_rows(pivot_source *s, const espi_settings *settings, const bool *allowed, esp_error *err)
{
    const esp_run *run = s->split.source.problem.run;
    const espi_pivot_options options = {.count = espi_machine_settings_of(settings)->inducing,
                                        .seed = settings->seed,
                                        .allowed = allowed,
                                        .factor = true};
    esp_run rest = run != NULL ? *run : (esp_run){0};
    const esp_status status = espi_pivots_draw(s->split.bound, &options, run, &s->pivots, err);
    const espi_pivots *p = &s->pivots;
    const size_t taken = p->count * p->examples * sizeof *p->factor;
    if (rest.memory > 0) rest.memory = rest.memory > taken ? rest.memory - taken : 1;
    return status == ESP_OK ? espi_rows_of_features(p->factor, p->count, p->examples, &rest, &s->split.all, err)
                            : status;
}

static esp_status enter(espi_row_source *source, const espi_settings *settings, esp_error *err)
{
    pivot_source *s = view(source);
    const espi_split *split = source->split;
    const size_t count = source->problem.data->rows;
    if (split->trained == count) return make_rows(s, settings, NULL, err);
    bool *allowed = espi_alloc_zero(count, sizeof *allowed);
    if (allowed == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < split->trained; i++) allowed[split->train[i]] = true;
    const esp_status status = make_rows(s, settings, allowed, err);
    espi_free(allowed);
    return status == ESP_OK ? espi_rows_subset(s->split.all, split->train, split->trained, &s->split.part, err)
                            : status;
}

/* The coefficients of all examples become those of the pivots: w = sum_i c_i phi_i for all outputs, then L'z = w. The
 * columns of the pivots in the factor are those of L'. */
static esp_status finish(espi_row_source *source, espi_fit *fit, esp_error *err)
{
    const espi_pivots *p = &view(source)->pivots;
    const size_t m = p->count, n = p->examples, outputs = fit->outputs;
    double *w = espi_alloc(m, outputs * sizeof *w), *upper = espi_alloc(m, m * sizeof *upper);
    if (w == NULL || upper == NULL) {
        espi_free(w);
        espi_free(upper);
        return espi_no_memory(err);
    }
    const espi_dense_factors sum = {.rows = m,
                                    .columns = outputs,
                                    .inner = n,
                                    .scale = 1.0,
                                    .a = p->factor,
                                    .a_stride = n,
                                    .b = fit->coefficient,
                                    .b_stride = outputs};
    const espi_dense_triangle turned = {.left = true, .upper = true, .t = upper, .t_stride = m};
    const esp_run *run = source->problem.run;
    for (size_t q = 0; q < m * m; q++) upper[q] = p->factor[q / m * n + p->example[q % m]];
    esp_status status = espi_dense_product(&sum, w, outputs, run, err);
    if (status == ESP_OK) status = espi_dense_solve(&turned, m, outputs, w, outputs, run, err);
    memset(fit->coefficient, 0, n * outputs * sizeof *fit->coefficient);
    for (size_t q = 0; q < m; q++)
        memcpy(fit->coefficient + p->example[q] * outputs, w + q * outputs, outputs * sizeof *w);
    espi_free(w);
    espi_free(upper);
    return status;
}

static const espi_shared_source shared = {
    .fit = espi_rows_of_split_fit, .score = espi_rows_of_split_score, .finish = finish};

const espi_row_source_class espi_row_source_pivots = {.size = sizeof(pivot_source),
                                                      .open = open_source,
                                                      .close = close_source,
                                                      .enter = enter,
                                                      .leave = leave,
                                                      .shared = &shared};
