/* How good the predictions are, how scores are spread, and whether the model knows how sure it may be.
 *
 * Calibration: of the examples that are given a probability of about p, a share of p should be right. Where there are
 * no probabilities, examples are put in order by their margins, and the share of right ones should grow with it. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

enum {
    LEVELS = 10,  /* bins of probabilities, groups of margins */
    POINTS = 1500 /* of a scatter plot */
};

/* ------------------------------------------------------------------ scores */

static espi_histogram histogram_of(const double *value, size_t count, size_t stride)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, value[i * stride]);
        high = fmax(high, value[i * stride]);
    }
    return espi_histogram_between(low, high, false);
}

static void add_edges(espi_text *t, const espi_histogram *h)
{
    espi_drawn_number_of(t, "low", h->low);
    espi_drawn_number_of(t, "high", h->high);
}

/* A column of scores: those of the examples that are of its class (without targets: predicted as such) and of the
 * others. */
static void add_class_scores(espi_report *r, size_t column)
{
    espi_text *t = &r->json;
    const esp_predictions *p = r->predictions;
    espi_histogram own = histogram_of(p->column + column, p->count, p->columns), other = own;
    const size_t class = p->classes == 2 ? 1 : column;
    for (size_t i = 0; i < p->count; i++) {
        const uint32_t is = r->actual != NULL ? r->actual[i] : p->winner[i];
        espi_histogram_add(is == class ? &own : &other, p->column[i * p->columns + column]);
    }
    espi_json_open(t, '{');
    espi_json_text_of(t, "name", esp_predictions_column_name(p, column));
    add_edges(t, &own);
    espi_json_key(t, "own");
    espi_histogram_bins(t, &own);
    espi_json_key(t, "other");
    espi_histogram_bins(t, &other);
    espi_json_close(t, '}');
}

static void add_values(espi_text *t, const char *key, const double *value, size_t count)
{
    espi_histogram h = histogram_of(value, count, 1);
    for (size_t i = 0; i < count; i++) espi_histogram_add(&h, value[i]);
    espi_json_key(t, key);
    espi_json_open(t, '{');
    add_edges(t, &h);
    espi_json_key(t, "bins");
    espi_histogram_bins(t, &h);
    espi_json_close(t, '}');
}

/* ------------------------------------------------------------- calibration */

typedef struct reliability {
    size_t count[LEVELS], right[LEVELS];
    double sum[LEVELS]; /* of probabilities */
} reliability;

static void count_probability(reliability *b, double probability, bool right)
{
    const size_t level = (size_t)fmin(fmax(probability, 0.0) * LEVELS, LEVELS - 1);
    b->count[level]++;
    b->right[level] += right;
    b->sum[level] += probability;
}

/* [[examples, mean probability, share of right ones], ...] without the empty bins. */
static void add_reliability(espi_text *t, const reliability *b)
{
    espi_json_open(t, '[');
    for (size_t i = 0; i < LEVELS; i++) {
        if (b->count[i] == 0) continue;
        espi_json_open(t, '[');
        espi_json_count(t, b->count[i]);
        espi_drawn_number(t, b->sum[i] / (double)b->count[i]);
        espi_drawn_number(t, (double)b->right[i] / (double)b->count[i]);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
}

static void add_class_calibration(espi_report *r, size_t class)
{
    const esp_predictions *p = r->predictions;
    reliability b = {0};
    for (size_t i = 0; i < p->count; i++)
        count_probability(&b, p->probability[i * p->classes + class], r->actual[i] == class);
    espi_json_open(&r->json, '{');
    espi_json_text_of(&r->json, "class", p->class_name[class]);
    espi_json_key(&r->json, "bins");
    add_reliability(&r->json, &b);
    espi_json_close(&r->json, '}');
}

static void add_calibration(espi_report *r)
{
    espi_text *t = &r->json;
    const esp_predictions *p = r->predictions;
    reliability b = {0};
    double brier = 0.0, gap = 0.0;
    for (size_t i = 0; i < p->count; i++) {
        count_probability(&b, p->probability[i * p->classes + p->winner[i]], r->actual[i] == p->winner[i]);
        for (size_t c = 0; c < p->classes; c++) {
            const double error = p->probability[i * p->classes + c] - (r->actual[i] == c);
            brier += error * error / (double)p->count;
        }
    }
    for (size_t i = 0; i < LEVELS; i++) gap += fabs((double)b.right[i] - b.sum[i]) / (double)p->count;
    espi_json_key(t, "calibration");
    espi_json_open(t, '{');
    espi_drawn_number_of(t, "brier", brier);
    espi_drawn_number_of(t, "gap", gap);
    espi_json_key(t, "winner");
    add_reliability(t, &b);
    espi_json_key(t, "classes");
    espi_json_open(t, '[');
    for (size_t c = 0; c < p->classes; c++) add_class_calibration(r, c);
    espi_json_close(t, ']');
    espi_json_close(t, '}');
}

typedef struct judged {
    double margin;
    bool right;
} judged;

static int by_margin(const void *x, const void *y)
{
    const judged *a = x, *b = y;
    return a->margin != b->margin ? (a->margin > b->margin) - (a->margin < b->margin) : a->right - b->right;
}

/* [[examples, lowest margin, highest margin, share of right ones], ...] */
static esp_status add_margins(espi_report *r, esp_error *err)
{
    espi_text *t = &r->json;
    const esp_predictions *p = r->predictions;
    judged *order = espi_alloc(p->count, sizeof *order);
    if (order == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < p->count; i++) order[i] = (judged){espi_report_margin(p, i), r->actual[i] == p->winner[i]};
    qsort(order, p->count, sizeof *order, by_margin);
    espi_json_key(t, "margins");
    espi_json_open(t, '[');
    for (size_t level = 0; level < LEVELS; level++) {
        const size_t from = p->count * level / LEVELS, to = p->count * (level + 1) / LEVELS;
        size_t right = 0;
        for (size_t i = from; i < to; i++) right += order[i].right;
        espi_json_open(t, '[');
        espi_json_count(t, to - from);
        espi_drawn_number(t, order[from].margin);
        espi_drawn_number(t, order[to - 1].margin);
        espi_drawn_number(t, (double)right / (double)(to - from));
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
    espi_free(order);
    return ESP_OK;
}

/* -------------------------------------------------------------- regression */

void espi_report_coverage(espi_text *t, const double *target, const double *mean, const double *variance, size_t count)
{
    static const struct {
        double level, deviations;
    } interval[] = {{0.1, 0.12566134685507416}, {0.2, 0.25334710313579978}, {0.3, 0.38532046640756773},
                    {0.4, 0.52440051270804067}, {0.5, 0.67448975019608171}, {0.6, 0.84162123357291442},
                    {0.7, 1.0364333894937898},  {0.8, 1.2815515655446004},  {0.9, 1.6448536269514722},
                    {0.95, 1.9599639845400545}, {0.99, 2.5758293035489004}};
    espi_json_open(t, '[');
    for (size_t k = 0; k < sizeof interval / sizeof *interval; k++) {
        size_t inside = 0;
        for (size_t i = 0; i < count; i++)
            inside += fabs(target[i] - mean[i]) <= interval[k].deviations * sqrt(variance[i]);
        espi_json_open(t, '[');
        espi_drawn_number(t, interval[k].level);
        espi_drawn_number(t, (double)inside / (double)count);
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
}

/* [[number from 1, target, prediction, standard deviation if known], ...]: all, or every so-manieth. */
static void add_points(espi_report *r)
{
    espi_text *t = &r->json;
    const size_t count = r->predictions->count, step = count / POINTS + (count % POINTS > 0);
    espi_json_count_of(t, "step", step);
    espi_json_key(t, "points");
    espi_json_open(t, '[');
    for (size_t i = 0; i < count; i += step) {
        espi_json_open(t, '[');
        espi_json_count(t, i + 1);
        espi_drawn_number(t, r->target[i]);
        espi_drawn_number(t, r->predictions->column[i]);
        if (r->variance != NULL) espi_drawn_number(t, sqrt(r->variance[i]));
        espi_json_close(t, ']');
    }
    espi_json_close(t, ']');
}

static esp_status add_regression(espi_report *r, esp_error *err)
{
    espi_text *t = &r->json;
    const esp_predictions *p = r->predictions;
    add_values(t, "values", p->column, p->count);
    if (r->target == NULL) return ESP_OK;
    double *error = espi_alloc(p->count, sizeof *error);
    if (error == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < p->count; i++) error[i] = p->column[i] - r->target[i];
    add_values(t, "targets", r->target, p->count);
    if (espi_all_finite(error, p->count)) add_values(t, "errors", error, p->count);
    espi_free(error);
    add_points(r);
    if (r->variance != NULL) {
        espi_json_key(t, "coverage");
        espi_report_coverage(t, r->target, p->column, r->variance, p->count);
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------- both */

static esp_status add_metrics(espi_report *r, esp_error *err)
{
    char *json = NULL;
    if (r->no_metrics != NULL) espi_json_text_of(&r->json, "unjudged", r->no_metrics);
    if (r->metrics == NULL) return ESP_OK;
    const esp_status status = esp_metrics_json(r->metrics, &json, err);
    if (status == ESP_OK) {
        espi_json_key(&r->json, "quality");
        espi_json_raw(&r->json, json);
    }
    esp_text_free(json);
    return status;
}

esp_status espi_report_quality(espi_report *r, esp_error *err)
{
    esp_status status = add_metrics(r, err);
    if (status != ESP_OK) return status;
    if (r->predictions->classes == 0) return add_regression(r, err);
    espi_json_key(&r->json, "scores");
    espi_json_open(&r->json, '[');
    for (size_t c = 0; c < r->predictions->columns; c++) add_class_scores(r, c);
    espi_json_close(&r->json, ']');
    if (r->actual == NULL || r->predictions->count < LEVELS) return ESP_OK; /* shares of so few say nothing */
    if (r->predictions->probability != NULL) add_calibration(r);
    return add_margins(r, err);
}
