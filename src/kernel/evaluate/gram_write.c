/* Gram matrices as files: text, NumPy's .npy and LIBSVM's precomputed form. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/output.h"
#include "base/parallel.h"
#include "base/status.h"
#include "data/dataset.h"
#include "kernel/evaluate/npy.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 64, WIDEST_NUMBER = 32, WIDEST_INDEX = 24 };

typedef struct writing {
    const double *gram;
    size_t rows, cols;
    const esp_dataset *labels;
    esp_gram_format format;
    size_t first;      /* row of the batch's first */
    char *text[BATCH]; /* a formatted row each */
    size_t size[BATCH];
} writing;

/* LIBSVM wants numbers: targets that are not are numbered 1, 2, ... by first appearance. */
static size_t print_label(const writing *w, size_t row, char *to)
{
    if (w->labels == NULL || w->labels->target_name == NULL || row >= w->labels->rows) return (size_t)sprintf(to, "0");
    const uint32_t symbol = w->labels->target[row];
    if (!esp_dataset_target_is_number(w->labels)) return (size_t)sprintf(to, "%u", (unsigned)symbol + 1);
    const espi_symbol *s = &w->labels->target_texts.symbol[symbol];
    double value = 0.0;
    espi_number_parse(s->text, s->size, &value);
    return espi_number_print_short(value, to);
}

static esp_status format_row(void *context, size_t item, const espi_worker *worker, esp_error *err)
{
    (void)worker, (void)err;
    writing *w = context;
    const size_t i = w->first + item;
    char *at = w->text[item];
    if (w->format == ESP_GRAM_LIBSVM) {
        at += print_label(w, i, at);
        at += sprintf(at, " 0:%zu", i + 1);
    }
    for (size_t j = 0; j < w->cols; j++) {
        if (w->format == ESP_GRAM_LIBSVM) at += sprintf(at, " %zu:", j + 1);
        else if (j > 0) *at++ = '\t';
        at += espi_number_print(w->gram[i * w->cols + j], at);
    }
    *at++ = '\n';
    w->size[item] = (size_t)(at - w->text[item]);
    return ESP_OK;
}

static esp_status write_text(writing *w, espi_output *output, const esp_run *run, esp_error *err)
{
    const size_t room = w->cols * (WIDEST_NUMBER + WIDEST_INDEX) + 128;
    const size_t batch = w->rows < BATCH ? w->rows : BATCH;
    esp_run quiet = run != NULL ? *run : (esp_run){0};
    quiet.progress = NULL;
    esp_status status = ESP_OK;
    for (size_t i = 0; i < batch && status == ESP_OK; i++) {
        w->text[i] = espi_alloc(room, 1);
        if (w->text[i] == NULL) status = espi_no_memory(err);
    }
    for (; status == ESP_OK && w->first < w->rows; w->first += BATCH) {
        const size_t count = w->rows - w->first < BATCH ? w->rows - w->first : BATCH;
        status = espi_parallel(&quiet, "writing", count, format_row, w, err);
        for (size_t i = 0; status == ESP_OK && i < count; i++) espi_output_write(output, w->text[i], w->size[i]);
        if (status == ESP_OK) status = espi_progress(run, "writing", (double)w->first / (double)w->rows, err);
    }
    for (size_t i = 0; i < batch; i++) espi_free(w->text[i]);
    return status;
}

void espi_npy_header(size_t rows, size_t cols, char header[ESPI_NPY_HEADER])
{
    const unsigned one = 1;
    const char order = *(const char *)&one == 1 ? '<' : '>';
    memset(header, ' ', ESPI_NPY_HEADER);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int used = snprintf(header + 10, ESPI_NPY_HEADER - 10,
                              "{'descr': '%cf8', 'fortran_order': False, 'shape': (%zu, %zu), }", order, rows, cols);
    header[10 + used] = ' ';
    header[ESPI_NPY_HEADER - 1] = '\n';
}

static esp_status write_npy(const writing *w, espi_output *output, const esp_run *run, esp_error *err)
{
    char header[ESPI_NPY_HEADER];
    espi_npy_header(w->rows, w->cols, header);
    espi_output_write(output, header, sizeof header);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < w->rows; i++) {
        espi_output_write(output, w->gram + i * w->cols, w->cols * sizeof *w->gram);
        if (i % BATCH == 0) status = espi_progress(run, "writing", (double)i / (double)w->rows, err);
    }
    return status;
}

esp_status esp_gram_write(const double *gram, size_t row_count, size_t col_count, const esp_dataset *labels,
                          esp_gram_format format, const char *path, const esp_run *run, esp_error *err)
{
    espi_output *output = NULL;
    esp_status status = espi_output_open(path, &output, err);
    if (status != ESP_OK) return status;
    writing w = {.gram = gram, .rows = row_count, .cols = col_count, .labels = labels, .format = format};
    status = format == ESP_GRAM_NPY ? write_npy(&w, output, run, err) : write_text(&w, output, run, err);
    if (status == ESP_OK) return espi_output_commit(output, err);
    espi_output_discard(output);
    return status;
}
