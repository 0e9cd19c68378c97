/* One page about a model: gathers what the parts need, lets them write JSON, and puts that into the page. */
#include "report/report.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/output.h"
#include "base/parallel.h"
#include "base/status.h"

#include <string.h>

enum { EXAMPLES = 40, TOP = 12 }; /* where the options are 0 */

/* -------------------------------------------------------------- gathering */

static esp_status gather_targets(espi_report *r, esp_error *err)
{
    const esp_dataset *data = r->data;
    if (r->model->classes == 0) {
        r->target = espi_alloc(data->rows, sizeof *r->target);
        if (r->target == NULL) return espi_no_memory(err);
        for (size_t i = 0; i < data->rows; i++) {
            const espi_symbol *s = &data->target_texts.symbol[data->target[i]];
            if (!espi_number_parse(s->text, s->size, &r->target[i])) r->target[i] = 0.0; /* metrics refuse it first */
        }
        return ESP_OK;
    }
    const size_t texts = data->target_texts.count;
    uint32_t *known = espi_alloc(texts, sizeof *known);
    r->actual = espi_alloc(data->rows, sizeof *r->actual);
    for (size_t i = 0; known != NULL && i < texts; i++)
        known[i] = espi_class_of((const char *const *)r->model->class_name, r->model->classes,
                                 data->target_texts.symbol[i].text);
    for (size_t i = 0; known != NULL && r->actual != NULL && i < data->rows; i++) r->actual[i] = known[data->target[i]];
    const bool ok = known != NULL && r->actual != NULL;
    espi_free(known);
    return ok ? ESP_OK : espi_no_memory(err);
}

/* Targets that cannot be compared with the predictions make a report without that part. */
static esp_status gather_metrics(espi_report *r, esp_error *err)
{
    esp_error reason = {0};
    const esp_status status = esp_metrics_new(r->predictions, r->data, &r->metrics, &reason);
    if (status == ESP_OK) return gather_targets(r, err);
    if (status != ESP_ERR_PARAM) {
        if (err != NULL) *err = reason;
        return status;
    }
    r->no_metrics = espi_copy_text(reason.message, strlen(reason.message));
    return r->no_metrics != NULL ? ESP_OK : espi_no_memory(err);
}

/* Only a Gaussian process of numbers has them. */
static esp_status gather_variances(espi_report *r, esp_error *err)
{
    if (r->model->classes > 0 || esp_predictions_variance(r->predictions, 0) < 0.0) return ESP_OK;
    r->variance = espi_alloc(r->data->rows, sizeof *r->variance);
    if (r->variance == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < r->data->rows; i++) r->variance[i] = esp_predictions_variance(r->predictions, i);
    return ESP_OK;
}

static esp_status gather(espi_report *r, esp_error *err)
{
    if (r->data == NULL) return ESP_OK;
    if (r->data->rows == 0) return espi_fail(err, ESP_ERR_PARAM, "the data have no examples to report on");
    esp_status status = esp_predict(r->model, r->data, r->run, &r->predictions, err);
    if (status == ESP_OK) status = gather_variances(r, err);
    return status == ESP_OK && r->data->target_name != NULL ? gather_metrics(r, err) : status;
}

/* ---------------------------------------------------------------- writing */

/* A model whose decisions cannot be explained still has the other parts; the reason stands in the page. */
static esp_status explain(espi_report *r, esp_error *err)
{
    esp_explainer *explainer = NULL;
    esp_error reason = {0};
    esp_status status = esp_explainer_new(r->model, r->run, &explainer, &reason);
    if (status == ESP_ERR_PARAM || status == ESP_ERR_RANGE) {
        espi_json_text_of(&r->json, "unexplained", reason.message);
        status = ESP_OK;
    }
    if (status != ESP_OK && err != NULL) *err = reason;
    if (status == ESP_OK && explainer != NULL) status = espi_report_features(r, explainer, err);
    if (status == ESP_OK && r->data != NULL) status = espi_report_examples(r, explainer, err);
    esp_explainer_free(explainer);
    return status;
}

static esp_status write_json(espi_report *r, esp_error *err)
{
    espi_json_open(&r->json, '{');
    espi_json_text_of(&r->json, "title", r->options.title);
    espi_json_text_of(&r->json, "version", ESP_VERSION);
    esp_status status = espi_report_model(r, err);
    if (status == ESP_OK && r->data != NULL) status = espi_report_quality(r, err);
    if (status == ESP_OK) status = explain(r, err);
    if (status == ESP_OK) status = espi_report_profile(r, err);
    espi_json_close(&r->json, '}');
    return status == ESP_OK && r->json.failed ? espi_no_memory(err) : status;
}

esp_status espi_report_page(const espi_text *json, const char *path, esp_error *err)
{
    espi_output *output = NULL;
    espi_text safe = {0};
    espi_drawn_embed(&safe, json->bytes, json->size);
    esp_status status = safe.failed ? espi_no_memory(err) : espi_output_open(path, &output, err);
    if (status == ESP_OK) {
        espi_output_write(output, espi_page_head, espi_page_head_size);
        espi_output_write(output, safe.bytes, safe.size);
        espi_output_write(output, espi_page_tail, espi_page_tail_size);
        status = espi_output_commit(output, err);
    }
    espi_text_free(&safe);
    return status;
}

static void release(espi_report *r)
{
    esp_predictions_free(r->predictions);
    esp_metrics_free(r->metrics);
    espi_free(r->actual);
    espi_free(r->target);
    espi_free(r->variance);
    espi_free(r->no_metrics);
    for (size_t i = 0; r->tree_sizes != NULL && i < r->data->columns; i++) {
        espi_free(r->tree_sizes[i].nodes);
        espi_free(r->tree_sizes[i].matches);
    }
    espi_free(r->tree_sizes);
    espi_text_free(&r->json);
}

esp_status esp_report_write(const esp_model *model, const esp_dataset *data, const esp_report_options *options,
                            const char *path, const esp_run *run, esp_error *err)
{
    espi_report r = {.model = model, .data = data, .run = run};
    if (options != NULL) r.options = *options;
    if (r.options.title == NULL) r.options.title = "Report";
    if (r.options.examples == 0) r.options.examples = EXAMPLES;
    if (r.options.top == 0) r.options.top = TOP;
    esp_status status = gather(&r, err);
    if (status == ESP_OK) status = write_json(&r, err);
    if (status == ESP_OK) status = espi_report_page(&r.json, path, err);
    release(&r);
    return status;
}
