/* The rows of one Gram matrix over all examples. */
#include "kernel/evaluate/bound.h"
#include "learn/svm/row_source.h"

typedef struct whole_source {
    espi_row_source source;
    espi_bound *bound;
    espi_rows *all;
    espi_rows *part; /* what is trained on; NULL: all examples are */
} whole_source;

static whole_source *view(espi_row_source *source) { return (whole_source *)(void *)source; }

static esp_status open_source(espi_row_source *source, esp_error *err)
{
    whole_source *s = view(source);
    const espi_problem *p = &source->problem;
    const esp_status status = espi_bind(p->kernel, p->data, p->data, p->run, &s->bound, err);
    return status == ESP_OK ? espi_rows_new(s->bound, p->run, &s->all, err) : status;
}

static void close_source(espi_row_source *source)
{
    whole_source *s = view(source);
    espi_rows_free(s->all);
    espi_bound_free(s->bound);
}

static esp_status enter(espi_row_source *source, const espi_settings *settings, esp_error *err)
{
    whole_source *s = view(source);
    (void)settings;
    if (source->split->trained == espi_rows_count(s->all)) return ESP_OK;
    return espi_rows_subset(s->all, source->split->train, source->split->trained, &s->part, err);
}

static void leave(espi_row_source *source)
{
    whole_source *s = view(source);
    espi_rows_free(s->part);
    s->part = NULL;
}

static espi_rows *rows(espi_row_source *source)
{
    const whole_source *s = view(source);
    return s->part != NULL ? s->part : s->all;
}

static esp_status score(espi_row_source *source, const espi_fit *fit, double *scores, esp_error *err)
{
    const espi_split *split = source->split;
    return espi_fit_score(fit, view(source)->all, split->train, split->test, split->tested, scores, err);
}

const espi_row_source_class espi_row_source_whole = {.same_rows = true,
                                                     .open = open_source,
                                                     .close = close_source,
                                                     .enter = enter,
                                                     .leave = leave,
                                                     .rows = rows,
                                                     .score = score,
                                                     .size = sizeof(whole_source)};
