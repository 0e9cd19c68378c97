/* Whether a model is one. The writer asks before it writes and the reader after it has read, so that no model can be
 * written that cannot be read, and nothing of a file is believed that the rest of the library relies on. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "kernel/pattern/pattern.h"
#include "learn/model/file.h"

#include <math.h>
#include <string.h>

#define WRONG(...) espi_fail(err, ESP_ERR_PARAM, __VA_ARGS__)

static esp_status check_classes(const esp_model *m, esp_error *err)
{
    espi_symbols seen = {0};
    esp_status status = ESP_OK;
    if (m->classes == 1) return WRONG("there is one class only");
    if (m->classes == 0 && m->one_vs_one) return WRONG("a regression cannot be one-vs-one");
    for (size_t i = 0; status == ESP_OK && i < m->classes; i++) {
        const uint32_t number = espi_symbols_add(&seen, m->class_name[i], strlen(m->class_name[i]));
        if (number == ESPI_NO_SYMBOL) status = espi_no_memory(err);
        else if (number != i) status = WRONG("two classes have the same name");
    }
    espi_symbols_free(&seen);
    return status;
}

static esp_status check_numbers(const esp_model *m, esp_error *err)
{
    const size_t outputs = espi_class_outputs(m->classes, m->one_vs_one);
    if (m->outputs != outputs)
        return WRONG("%zu classes need %zu outputs, but there are %zu", m->classes, outputs, m->outputs);
    if (!espi_all_finite(m->coefficient, m->support->rows * m->outputs)) return WRONG("a coefficient is not finite");
    if (!espi_all_finite(m->bias, m->outputs)) return WRONG("a bias is not finite");
    if (m->platt != NULL && m->classes == 0) return WRONG("a regression has no probabilities");
    if (m->platt != NULL && !espi_all_finite(m->platt, 2 * m->outputs))
        return WRONG("a coefficient of the probabilities is not finite");
    return ESP_OK;
}

/* Updates in their order, and counts that no run could contradict. */
static esp_status check_history(const esp_model *m, esp_error *err)
{
    const espi_history *h = m->history;
    if (h == NULL) return m->vote ? WRONG("there is a vote without a history") : ESP_OK;
    if (m->classes == 0 || m->one_vs_one) return WRONG("only one-vs-rest classes are learned example by example");
    if (!espi_all_finite(h->change, m->support->rows * m->outputs)) return WRONG("a change is not finite");
    for (size_t i = 0; i < m->support->rows; i++)
        if (h->step[i] <= (i > 0 ? h->step[i - 1] : 0) || h->step[i] > h->steps)
            return WRONG("the step of support example %zu is not between those around it", i + 1);
    uint64_t seen = 0, missed = 0, alarms = 0;
    for (size_t c = 0; c < m->classes; c++) {
        const espi_tally *t = &h->tally[c];
        if (t->hits > h->steps - seen || t->misses > h->steps - seen - t->hits || t->false_alarms > h->steps - alarms)
            return WRONG("the predictions of the classes are more than the examples seen");
        seen += t->hits + t->misses;
        missed += t->misses;
        alarms += t->false_alarms;
    }
    if (seen != h->steps || missed != h->mistakes || alarms > missed || h->at > h->steps)
        return WRONG("the predictions of the classes do not add up to the examples seen");
    return ESP_OK;
}

esp_status espi_check_variants(const esp_model *m, esp_error *err)
{
    const size_t size = strlen(esp_kernel_text(m->kernel));
    if (!espi_kernel_selects(m->kernel)) return WRONG("there are patterns, but the kernel selects none");
    if (size > 0 && m->outputs > ESPI_MODEL_VARIANTS / size)
        return WRONG("the kernel expression, once per output, is longer than %d bytes", ESPI_MODEL_VARIANTS);
    return ESP_OK;
}

static esp_status check_selection(const espi_leaf *leaf, size_t output, esp_error *err)
{
    const espi_selection *s = leaf->selection;
    bool memory;
    if (!espi_leaf_selects(leaf)) return ESP_OK;
    if (s == NULL || s->kind != leaf->class->selects->kind)
        return WRONG("output %zu has not the patterns that its kernel selects", output + 1);
    const char *wrong = espi_selection_check(s, &memory);
    if (!memory) return espi_no_memory(err);
    return wrong == NULL ? ESP_OK : WRONG("the patterns of output %zu are wrong: %s", output + 1, wrong);
}

/* A kernel that selects has its selections in a variant for each output, and none besides. */
static esp_status check_variants(const esp_model *m, esp_error *err)
{
    const bool selects = espi_kernel_selects(m->kernel);
    if (m->variant == NULL) return selects ? WRONG("the patterns that the kernel selects are missing") : ESP_OK;
    if (m->history != NULL) return WRONG("a kernel that selects patterns is not learned example by example");
    if (m->classes == 0) return WRONG("a regression has no classes to select patterns by");
    esp_status status = espi_check_variants(m, err);
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++)
        for (size_t i = 0; status == ESP_OK && i < m->kernel->leaves; i++)
            status = check_selection(&m->variant[k]->leaf[i], k, err);
    return status;
}

/* The matrix of inducing examples. */
static esp_status check_reduction(const esp_model *m, esp_error *err)
{
    const size_t n = m->support->rows;
    const double *p = m->gaussian->reduction;
    if (p == NULL) return ESP_OK;
    if (m->classes > 0) return WRONG("only numbers are learned with inducing examples");
    if (n == 0 || !(m->gaussian->noise > 0.0)) return WRONG("there are no inducing examples or there is no noise");
    if (!espi_all_finite(p, n * n)) return WRONG("a number of the variances is not finite");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (p[i * n + j] != p[j * n + i]) return WRONG("the matrix of the variances is not symmetric");
    return ESP_OK;
}

static esp_status check_process(const esp_model *m, esp_error *err)
{
    const espi_gaussian *p = m->gaussian;
    if (p == NULL) return ESP_OK;
    if (m->history != NULL || m->variant != NULL || m->platt != NULL)
        return WRONG("a Gaussian process has no history, patterns or fitted probabilities");
    if (m->one_vs_one) return WRONG("a Gaussian process is not one-vs-one");
    if (!(p->scale > 0.0) || !isfinite(p->scale * p->scale)) return WRONG("the scale of the targets is not positive");
    if (!(p->noise >= 0.0) || !(p->jitter >= 0.0) || !isfinite(p->noise + p->jitter))
        return WRONG("the noise or the jitter is negative or not finite");
    if ((p->curvature != NULL) != (m->classes > 0)) return WRONG("only classes have curvatures");
    for (size_t i = 0; p->curvature != NULL && i < m->support->rows * m->outputs; i++)
        if (!(p->curvature[i] >= 0.0) || !isfinite(p->curvature[i]))
            return WRONG("a curvature is negative or not finite");
    return check_reduction(m, err);
}

esp_status espi_model_check_kernel(const char *text, esp_error *err)
{
    const size_t size = strlen(text), plain = espi_kernel_plain_size(text);
    if (size > ESPI_MODEL_EXPRESSION)
        return WRONG("the kernel expression has %zu bytes; a model can hold %d", size, ESPI_MODEL_EXPRESSION);
    if (plain > ESPI_MODEL_KERNEL)
        return WRONG("the kernel expression has %zu bytes besides its grammar rules; a model can hold %d", plain,
                     ESPI_MODEL_KERNEL);
    return ESP_OK;
}

esp_status espi_model_check(const esp_model *m, esp_error *err)
{
    const esp_dataset *data = m->support;
    if (m->learner == NULL || m->learner[0] == '\0') return WRONG("the learner has no name");
    if (data->columns > ESPI_MODEL_COLUMNS) return WRONG("there are more than %d columns", ESPI_MODEL_COLUMNS);
    esp_status status = espi_model_check_kernel(esp_kernel_text(m->kernel), err);
    if (status == ESP_OK) status = check_classes(m, err);
    if (status == ESP_OK) status = check_numbers(m, err);
    if (status == ESP_OK) status = check_history(m, err);
    if (status == ESP_OK) status = check_variants(m, err);
    if (status == ESP_OK) status = check_process(m, err);
    if (status == ESP_OK) status = espi_check_sections(data, err);
    return status == ESP_OK ? espi_check_columns(m->kernel, data, err) : status;
}
