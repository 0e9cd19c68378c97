/* How good predictions are. Precision, recall and F1 of a class that is never predicted, or never there, are 0; a class
 * that is neither has none, and the macro means leave it out. */
#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/predictions.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct esp_metrics {
    size_t count;
    size_t classes;    /* 0: a regression */
    char **name;       /* classes of the predictions, then those that only the targets have */
    double *confusion; /* [actual * classes + predicted] */
    double accuracy, macro_f1, micro_f1, macro_precision, macro_recall;
    double known; /* part of the examples whose class the predictions have, too */
    double rmse, mae, pearson;
    const char *same; /* "targets" or "predictions": they are all the same, so that there is no correlation; or NULL */
    bool spread;      /* the predictions have variances, and so there is an nlpd: */
    double nlpd;      /* the mean negative logarithm of what a Gaussian process gives to the targets */
};

void esp_metrics_free(esp_metrics *m)
{
    if (m == NULL) return;
    for (size_t c = 0; m->name != NULL && c < m->classes; c++) espi_free(m->name[c]);
    espi_free(m->name);
    espi_free(m->confusion);
    espi_free(m);
}

typedef struct per_class {
    double precision, recall, f1, support, predicted;
    bool seen; /* in the targets or in the predictions */
} per_class;

static per_class judge_class(const esp_metrics *m, size_t c)
{
    per_class p = {0};
    const double right = m->confusion[c * m->classes + c];
    for (size_t k = 0; k < m->classes; k++) {
        p.support += m->confusion[c * m->classes + k];
        p.predicted += m->confusion[k * m->classes + c];
    }
    p.seen = p.support + p.predicted > 0.0;
    p.precision = p.predicted > 0.0 ? right / p.predicted : 0.0;
    p.recall = p.support > 0.0 ? right / p.support : 0.0;
    p.f1 = p.seen ? 2.0 * right / (p.support + p.predicted) : 0.0;
    return p;
}

/* Classes of the predictions, and labels of the data that are none of them. */
static bool collect_names(esp_metrics *m, const esp_predictions *p, const esp_dataset *data, uint32_t *class_of_symbol)
{
    size_t capacity = 0;
    for (size_t c = 0; c < p->classes; c++) {
        if (!espi_reserve(&m->name, &capacity, m->classes + 1, sizeof *m->name)) return false;
        m->name[m->classes] = espi_copy_text(p->class_name[c], strlen(p->class_name[c]));
        if (m->name[m->classes++] == NULL) return false;
    }
    for (size_t i = 0; i < data->rows; i++) {
        const uint32_t symbol = data->target[i];
        const char *label = data->target_texts.symbol[symbol].text;
        if (class_of_symbol[symbol] != ESPI_NO_CLASS) continue; /* seen before */
        class_of_symbol[symbol] = espi_class_of((const char *const *)p->class_name, p->classes, label);
        if (class_of_symbol[symbol] != ESPI_NO_CLASS) continue;
        class_of_symbol[symbol] = (uint32_t)m->classes;
        if (!espi_reserve(&m->name, &capacity, m->classes + 1, sizeof *m->name)) return false;
        m->name[m->classes] = espi_copy_text(label, strlen(label));
        if (m->name[m->classes++] == NULL) return false;
    }
    return true;
}

static esp_status judge_classes(esp_metrics *m, const esp_predictions *p, const esp_dataset *data, esp_error *err)
{
    uint32_t *class_of_symbol = espi_alloc(data->target_texts.count, sizeof *class_of_symbol);
    if (class_of_symbol == NULL) return espi_no_memory(err);
    memset(class_of_symbol, 0xFF, data->target_texts.count * sizeof *class_of_symbol);
    bool ok = collect_names(m, p, data, class_of_symbol);
    if (ok) m->confusion = espi_alloc_zero(m->classes, m->classes * sizeof *m->confusion);
    ok = ok && m->confusion != NULL;
    double right = 0.0, seen = 0.0;
    for (size_t i = 0; ok && i < m->count; i++) {
        const size_t actual = class_of_symbol[data->target[i]];
        m->confusion[actual * m->classes + p->winner[i]]++;
        right += actual == p->winner[i];
        m->known += (actual < p->classes) / (double)m->count;
        if (m->spread) /* it gives 0 to a label that it does not know */
            m->nlpd -= espi_log_probability(actual < p->classes ? p->probability[i * p->classes + actual] : 0.0) /
                       (double)m->count;
    }
    espi_free(class_of_symbol);
    if (!ok) return espi_no_memory(err);
    m->accuracy = m->micro_f1 = right / (double)m->count;
    for (size_t c = 0; c < m->classes; c++) {
        const per_class j = judge_class(m, c);
        if (!j.seen) continue;
        m->macro_f1 += j.f1;
        m->macro_precision += j.precision;
        m->macro_recall += j.recall;
        seen++;
    }
    m->macro_f1 /= seen;
    m->macro_precision /= seen;
    m->macro_recall /= seen;
    return ESP_OK;
}

static bool all_same(const double *value, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (value[i] != value[0]) return false;
    return true;
}

static esp_status judge_values(esp_metrics *m, const esp_predictions *p, const esp_dataset *data, esp_error *err)
{
    double x_mean = 0.0, y_mean = 0.0, xx = 0.0, yy = 0.0, xy = 0.0, dx_most = 0.0, dy_most = 0.0, most = 0.0;
    double *y = espi_alloc(m->count, sizeof *y);
    if (y == NULL) return espi_no_memory(err);
    esp_status status = ESP_OK;
    for (size_t i = 0; status == ESP_OK && i < m->count; i++) {
        const espi_symbol *s = &data->target_texts.symbol[data->target[i]];
        char quoted[96];
        if (!espi_number_parse(s->text, s->size, &y[i]))
            status = espi_fail(err, ESP_ERR_PARAM, "the predictions are numbers, but the target of example %zu is %s",
                               i + 1, espi_quote(s->text, s->size, quoted));
        x_mean += p->column[i] / (double)m->count;
        y_mean += y[i] / (double)m->count;
    }
    /* Squares are taken of fractions of the largest, so that huge numbers do not overflow. */
    for (size_t i = 0; status == ESP_OK && i < m->count; i++) {
        dx_most = fmax(dx_most, fabs(p->column[i] - x_mean));
        dy_most = fmax(dy_most, fabs(y[i] - y_mean));
        most = fmax(most, fabs(p->column[i] - y[i]));
    }
    for (size_t i = 0; status == ESP_OK && i < m->count; i++) {
        const double dx = dx_most > 0.0 ? (p->column[i] - x_mean) / dx_most : 0.0;
        const double dy = dy_most > 0.0 ? (y[i] - y_mean) / dy_most : 0.0;
        const double error = most > 0.0 ? (p->column[i] - y[i]) / most : 0.0;
        m->rmse += error * error;
        m->mae += fabs(error) / (double)m->count;
        if (m->spread) m->nlpd -= espi_log_density(y[i] - p->column[i], p->variance[2 * i + 1]) / (double)m->count;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    m->rmse = most * sqrt(m->rmse / (double)m->count);
    m->mae *= most;
    m->pearson = xx > 0.0 && yy > 0.0 ? xy / sqrt(xx) / sqrt(yy) : 0.0;
    if (status == ESP_OK && all_same(y, m->count)) m->same = "targets";
    else if (all_same(p->column, m->count)) m->same = "predictions";
    if (m->same != NULL) m->pearson = 0.0; /* rounding of the means may have left something */
    espi_free(y);
    return status;
}

esp_status esp_metrics_new(const esp_predictions *predictions, const esp_dataset *data, esp_metrics **out,
                           esp_error *err)
{
    *out = NULL;
    if (data->target_name == NULL) return espi_fail(err, ESP_ERR_PARAM, "the data have no target to judge by");
    if (data->rows != predictions->count || data->rows == 0)
        return espi_fail(err, ESP_ERR_PARAM, "%zu predictions cannot be judged by %zu examples", predictions->count,
                         data->rows);
    esp_metrics *m = espi_alloc_zero(1, sizeof *m);
    if (m == NULL) return espi_no_memory(err);
    m->count = data->rows;
    m->spread = predictions->variance != NULL;
    const esp_status status =
        predictions->classes > 0 ? judge_classes(m, predictions, data, err) : judge_values(m, predictions, data, err);
    if (status == ESP_OK) *out = m;
    else esp_metrics_free(m);
    return status;
}

double esp_metrics_value(const esp_metrics *m, const char *name)
{
    const struct {
        const char *name;
        bool classes;
        double value;
    } all[] = {{"accuracy", true, m->accuracy}, {"macro-f1", true, m->macro_f1}, {"micro-f1", true, m->micro_f1},
               {"known", true, m->known},       {"rmse", false, m->rmse},        {"mae", false, m->mae},
               {"pearson", false, m->pearson}};
    if (strcmp(name, "nlpd") == 0) return m->nlpd;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0 && all[i].classes == (m->classes > 0)) return all[i].value;
    return -1.0;
}

/* ------------------------------------------------------------------- texts */

__attribute__((format(printf, 2, 3))) static void add(espi_text *t, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    espi_text_add(t, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
}

enum { MOST_COLUMNS = 12 }; /* of a confusion matrix that is still readable */

/* The first bytes of a name, whole letters (UTF-8), that take at most `most` places on the screen, and these places.
 * What espi_text_field escapes takes two. */
static size_t fit(const char *name, size_t most, size_t *places)
{
    size_t size = 0, next;
    for (*places = 0; name[size] != '\0'; size = next) {
        const size_t wide = strchr("\t\n\r\\", name[size]) != NULL ? 2 : 1;
        if (*places + wide > most) break;
        *places += wide;
        for (next = size + 1; ((unsigned char)name[next] & 0xC0) == 0x80;) next++;
    }
    return size;
}

/* A name in `width` places, cut where it is too long. */
static void add_cell(espi_text *t, const char *name, size_t width, bool to_the_right)
{
    size_t places;
    const size_t size = fit(name, width, &places);
    if (to_the_right) add(t, "%*s", (int)(width - places), "");
    espi_text_field(t, name, size);
    if (!to_the_right) add(t, "%*s", (int)(width - places), "");
}

static size_t name_width(const esp_metrics *m)
{
    size_t width = 5, places; /* "class" */
    for (size_t c = 0; c < m->classes; c++) {
        fit(m->name[c], 30, &places);
        if (places > width) width = places;
    }
    return width;
}

/* Whether two names are the same in `width` places. */
static bool coincide(const esp_metrics *m, size_t width)
{
    size_t places;
    for (size_t a = 0; a < m->classes; a++)
        for (size_t b = 0; b < a; b++) {
            const size_t size = fit(m->name[a], width, &places);
            if (fit(m->name[b], width, &places) == size && memcmp(m->name[a], m->name[b], size) == 0) return true;
        }
    return false;
}

/* Columns as wide as the names where these are few. Names that are the same once they are cut give way to numbers,
 * which then stand before the names of the rows too. */
static void add_confusion(espi_text *t, const esp_metrics *m, size_t width)
{
    enum { FEW = 6, NARROW = 7, BROAD = 14 };
    size_t column = NARROW, places;
    for (size_t c = 0; m->classes <= FEW && c < m->classes; c++) {
        fit(m->name[c], BROAD, &places);
        if (places > column) column = places;
    }
    const bool numbers = coincide(m, column);
    if (numbers) column = NARROW;
    add(t, "\nconfusion (rows: actual, columns: predicted)\n%*s", (int)(width + (numbers ? 3 : 0)), "");
    for (size_t c = 0; c < m->classes; c++) {
        espi_text_string(t, " ");
        if (numbers) add(t, "%*zu", (int)column, c + 1);
        else add_cell(t, m->name[c], column, true);
    }
    espi_text_string(t, "\n");
    for (size_t a = 0; a < m->classes; a++) {
        if (numbers) add(t, "%2zu ", a + 1);
        add_cell(t, m->name[a], width, false);
        for (size_t b = 0; b < m->classes; b++) add(t, " %*.0f", (int)column, m->confusion[a * m->classes + b]);
        espi_text_string(t, "\n");
    }
}

/* A number on the scale of the targets, which may be any. */
static void add_value(espi_text *t, const char *name, double value)
{
    const bool plain = value == 0.0 || (fabs(value) >= 0.001 && fabs(value) < 1e6);
    if (plain) add(t, "%-8s %8.4f\n", name, value);
    else add(t, "%-8s %8.4g\n", name, value);
}

static void add_numbers(espi_text *t, const esp_metrics *m)
{
    add(t, "examples %8zu\n", m->count);
    add_value(t, "RMSE", m->rmse);
    add_value(t, "MAE", m->mae);
    if (m->same == NULL) add(t, "Pearson  %8.4f\n", m->pearson);
    else add(t, "Pearson  undefined: all %s are the same\n", m->same);
    if (m->spread) add_value(t, "NLPD", m->nlpd);
}

static void add_table(espi_text *t, const esp_metrics *m)
{
    const size_t places = name_width(m);
    const int width = (int)places;
    add(t, "%-*s  precision   recall       F1  examples\n", width, "class");
    for (size_t c = 0; c < m->classes; c++) {
        const per_class j = judge_class(m, c);
        add_cell(t, m->name[c], places, false);
        if (j.seen) add(t, "  %9.4f %8.4f %8.4f %9.0f\n", j.precision, j.recall, j.f1, j.support);
        else add(t, "  %9s %8s %8s %9d\n", "-", "-", "-", 0);
    }
    add(t, "%-*s  %9.4f %8.4f %8.4f %9zu\n", width, "macro", m->macro_precision, m->macro_recall, m->macro_f1,
        m->count);
    add(t, "%-*s  %9.4f %8.4f %8.4f\n", width, "micro", m->micro_f1, m->micro_f1, m->micro_f1);
    add(t, "accuracy %.4f\n", m->accuracy);
    if (m->spread) add(t, "NLPD     %.4f\n", m->nlpd);
    if (m->classes <= MOST_COLUMNS) add_confusion(t, m, places);
}

esp_status esp_metrics_text(const esp_metrics *m, char **out, esp_error *err)
{
    espi_text t = {0};
    if (m->classes == 0) add_numbers(&t, m);
    else add_table(&t, m);
    *out = espi_text_take(&t);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}

static void add_classes(espi_text *t, const esp_metrics *m)
{
    espi_json_key(t, "classes");
    espi_json_open(t, '[');
    for (size_t c = 0; c < m->classes; c++) {
        const per_class j = judge_class(m, c);
        espi_json_open(t, '{');
        espi_json_text_of(t, "label", m->name[c]);
        espi_json_number_of(t, "precision", j.precision);
        espi_json_number_of(t, "recall", j.recall);
        espi_json_number_of(t, "f1", j.f1);
        espi_json_number_of(t, "examples", j.support);
        espi_json_close(t, '}');
    }
    espi_json_close(t, ']');
    espi_json_key(t, "confusion");
    espi_json_open(t, '[');
    for (size_t i = 0; i < m->classes; i++) {
        espi_json_open(t, '[');
        for (size_t j = 0; j < m->classes; j++) espi_json_number(t, m->confusion[i * m->classes + j]);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
}

esp_status esp_metrics_json(const esp_metrics *m, char **out, esp_error *err)
{
    espi_text t = {0};
    espi_json_open(&t, '{');
    espi_json_count_of(&t, "examples", m->count);
    if (m->classes == 0) {
        espi_json_number_of(&t, "rmse", m->rmse);
        espi_json_number_of(&t, "mae", m->mae);
        espi_json_number_of(&t, "pearson", m->same == NULL ? m->pearson : NAN); /* null */
    } else {
        espi_json_number_of(&t, "accuracy", m->accuracy);
        espi_json_number_of(&t, "macro-precision", m->macro_precision);
        espi_json_number_of(&t, "macro-recall", m->macro_recall);
        espi_json_number_of(&t, "macro-f1", m->macro_f1);
        espi_json_number_of(&t, "micro-f1", m->micro_f1);
        add_classes(&t, m);
    }
    if (m->spread) espi_json_number_of(&t, "nlpd", m->nlpd);
    espi_json_close(&t, '}');
    espi_text_string(&t, "\n");
    *out = espi_text_take(&t);
    return *out != NULL ? ESP_OK : espi_no_memory(err);
}
