/* The rows of one Gram matrix over all examples. */
#include "learn/svm/row_source.h"

static espi_rows_of_split *view(espi_row_source *source) { return (espi_rows_of_split *)(void *)source; }

static esp_status open_source(espi_row_source *source, esp_error *err)
{
    espi_rows_of_split *s = view(source);
    const espi_problem *p = &source->problem;
    const esp_status status = espi_bind(p->kernel, p->data, p->data, p->run, &s->bound, err);
    return status == ESP_OK ? espi_rows_new(s->bound, p->run, &s->all, err) : status;
}

static void close_source(espi_row_source *source)
{
    espi_rows_of_split *s = view(source);
    espi_rows_free(s->all);
    espi_bound_free(s->bound);
}

static esp_status enter(espi_row_source *source, const espi_settings *settings, esp_error *err)
{
    espi_rows_of_split *s = view(source);
    (void)settings;
    if (source->split->trained == espi_rows_count(s->all)) return ESP_OK;
    return espi_rows_subset(s->all, source->split->train, source->split->trained, &s->part, err);
}

static void leave(espi_row_source *source)
{
    espi_rows_of_split *s = view(source);
    espi_rows_free(s->part);
    s->part = NULL;
}

static const espi_shared_source shared = {.fit = espi_rows_of_split_fit, .score = espi_rows_of_split_score};

const espi_row_source_class espi_row_source_whole = {.size = sizeof(espi_rows_of_split),
                                                     .same_rows = true,
                                                     .open = open_source,
                                                     .close = close_source,
                                                     .enter = enter,
                                                     .leave = leave,
                                                     .shared = &shared};
