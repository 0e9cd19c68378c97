/* No rows: sums over the examples, for a solver that needs nothing else. */
#include "base/alloc.h"
#include "base/status.h"
#include "learn/svm/folded.h"
#include "learn/svm/row_source.h"

typedef struct folded_source {
    espi_row_source source;
    espi_folded_sum *sum; /* of as many outputs as ... */
    size_t outputs;
} folded_source;

static folded_source *view(espi_row_source *source) { return (folded_source *)(void *)source; }

static void close_source(espi_row_source *source) { espi_folded_sum_free(view(source)->sum); }

static esp_status enter(espi_row_source *source, const espi_settings *settings, esp_error *err)
{
    (void)source, (void)settings, (void)err;
    return ESP_OK;
}

static void leave(espi_row_source *source) { (void)source; }

/* The sum, without coefficients; made once for all folds. */
static esp_status take_sum(folded_source *s, size_t outputs, esp_error *err)
{
    const espi_problem *p = &s->source.problem;
    if (s->sum != NULL && s->outputs == outputs) {
        espi_folded_sum_clear(s->sum);
        return ESP_OK;
    }
    espi_folded_sum_free(s->sum);
    s->outputs = outputs;
    s->sum = NULL;
    return p->shares != NULL ? espi_folded_sum_new_shared(p->shares, outputs, &s->sum, err)
                             : espi_folded_sum_new(p->kernel, p->data, outputs, p->run, &s->sum, err);
}

static esp_status fit(espi_row_source *source, espi_training *training, esp_error *err)
{
    folded_source *s = view(source);
    const espi_problem *p = &source->problem;
    *training->fit = (espi_fit){0};
    const esp_status status = take_sum(s, espi_folded_outputs(training), err);
    return status == ESP_OK ? espi_folded_fit(training, p->kernel, s->sum, p->run, err) : status;
}

/* The sum of outputs first .. first + s->outputs - 1 of a fit. */
static esp_status fold_outputs(const folded_source *s, const espi_fit *fit, size_t first, esp_error *err)
{
    enum { SOME = 4096 }; /* examples that are added at once */
    const espi_split *split = s->source.split;
    double *coefficient = espi_alloc(SOME, s->outputs * sizeof *coefficient);
    esp_status status = coefficient == NULL ? espi_no_memory(err) : ESP_OK;
    espi_folded_sum_clear(s->sum);
    for (size_t from = 0; status == ESP_OK && from < split->trained; from += SOME) {
        const size_t count = split->trained - from < SOME ? split->trained - from : SOME;
        for (size_t i = 0; i < count * s->outputs; i++)
            coefficient[i] = fit->coefficient[(from + i / s->outputs) * fit->outputs + first + i % s->outputs];
        status = espi_folded_sum_add(s->sum, split->train + from, count, coefficient, err);
    }
    espi_free(coefficient);
    return status;
}

/* The scores of the examples tested by these outputs. */
static esp_status score_outputs(folded_source *s, const espi_fit *fit, size_t first, double *some, double *scores,
                                esp_error *err)
{
    const espi_split *split = s->source.split;
    esp_status status = fold_outputs(s, fit, first, err);
    if (status == ESP_OK)
        status = espi_folded_sum_score(s->sum, split->test, split->tested, s->source.problem.run, some, err);
    for (size_t t = 0; status == ESP_OK && t < split->tested; t++)
        for (size_t k = 0; k < s->outputs; k++)
            scores[t * fit->outputs + first + k] = some[t * s->outputs + k] + fit->bias[first + k];
    return status;
}

static esp_status score(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err)
{
    folded_source *s = view(source);
    double *some = espi_alloc(source->split->tested, s->outputs * sizeof *some);
    esp_status status = some == NULL ? espi_no_memory(err) : ESP_OK;
    for (size_t first = 0; status == ESP_OK && first < fit->outputs; first += s->outputs)
        status = score_outputs(s, fit, first, some, scores, err);
    espi_free(some);
    return status;
}

static const espi_shared_source shared = {.fit = fit, .score = score};

const espi_row_source_class espi_row_source_folded = {.size = sizeof(folded_source),
                                                      .same_rows = true,
                                                      .close = close_source,
                                                      .enter = enter,
                                                      .leave = leave,
                                                      .shared = &shared};
