#include "learn/predictions.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/status.h"
#include "learn/learner.h"
#include "learn/probit.h"

#include <math.h>
#include <string.h>

/* One-vs-one: a vote per pair for its winner; among equals the sum of scores decides, squeezed below half a vote. */
static double count_votes(const double *score, size_t classes, size_t class)
{
    double votes = 0.0, sum = 0.0;
    size_t pair = 0;
    for (size_t a = 0; a < classes; a++)
        for (size_t b = a + 1; b < classes; b++, pair++) {
            if (a != class && b != class) continue;
            const double s = a == class ? score[pair] : -score[pair];
            votes += s > 0.0;
            sum += s;
        }
    return votes + sum / (3.0 * (fabs(sum) + 1.0));
}

size_t espi_decide(const double *score, size_t classes, bool one_vs_one, double *per_class)
{
    if (classes == 2) {
        if (per_class != NULL) per_class[0] = score[0];
        return score[0] > 0.0;
    }
    size_t best = 0;
    double most = -INFINITY;
    for (size_t c = 0; c < classes; c++) {
        const double value = one_vs_one ? count_votes(score, classes, c) : score[c];
        if (per_class != NULL) per_class[c] = value;
        if (c > 0 && !(value > most)) continue;
        best = c;
        most = value;
    }
    return best;
}

static double sigmoid(double a, double b, double f)
{
    const double x = a * f + b;
    return x >= 0.0 ? exp(-x) / (1.0 + exp(-x)) : 1.0 / (1.0 + exp(x));
}

static void fill_probabilities(const double *score, size_t classes, const double *platt, double *out)
{
    if (classes == 2) {
        out[1] = sigmoid(platt[0], platt[1], score[0]);
        out[0] = 1.0 - out[1];
        return;
    }
    double sum = 0.0;
    for (size_t c = 0; c < classes; c++) sum += out[c] = sigmoid(platt[2 * c], platt[2 * c + 1], score[c]);
    for (size_t c = 0; c < classes; c++) out[c] = sum > 0.0 ? out[c] / sum : 1.0 / (double)classes;
}

static bool allocate(esp_predictions *p, const char *const *class_name, bool probabilities)
{
    p->column = espi_alloc(p->count, p->columns * sizeof *p->column);
    if (p->column == NULL) return false;
    if (p->classes == 0) return true;
    p->winner = espi_alloc(p->count, sizeof *p->winner);
    p->class_name = espi_alloc_zero(p->classes, sizeof *p->class_name);
    if (p->winner == NULL || p->class_name == NULL) return false;
    if (probabilities) p->probability = espi_alloc(p->count, p->classes * sizeof *p->probability);
    for (size_t c = 0; c < p->classes; c++) {
        p->class_name[c] = espi_copy_text(class_name[c], strlen(class_name[c]));
        if (p->class_name[c] == NULL) return false;
    }
    return !probabilities || p->probability != NULL;
}

esp_status espi_predictions_make(size_t count, const double *scores, size_t classes, const char *const *class_name,
                                 bool one_vs_one, const double *platt, esp_predictions **out, esp_error *err)
{
    *out = NULL;
    const size_t outputs = espi_class_outputs(classes, one_vs_one);
    esp_predictions *p = espi_alloc_zero(1, sizeof *p);
    if (p == NULL) return espi_no_memory(err);
    p->count = count;
    p->classes = classes;
    p->columns = classes <= 2 ? 1 : classes;
    if (!allocate(p, class_name, platt != NULL)) {
        esp_predictions_free(p);
        return espi_no_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const double *score = scores + i * outputs;
        if (classes == 0) p->column[i] = score[0];
        else p->winner[i] = (uint32_t)espi_decide(score, classes, one_vs_one, p->column + i * p->columns);
        if (platt != NULL) fill_probabilities(score, classes, platt, p->probability + i * classes);
    }
    *out = p;
    return ESP_OK;
}

size_t espi_decide_spread(const double *score, const double *variance, size_t classes, double *probability)
{
    const size_t outputs = espi_class_outputs(classes, false);
    size_t best = 0;
    if (classes == 2) {
        const double z = espi_probit_argument(score[0], variance[0]);
        if (probability != NULL) espi_class_probabilities(&z, classes, probability);
        return score[0] > 0.0;
    }
    double most = -INFINITY;
    for (size_t k = 0; k < outputs; k++) {
        const double z = espi_probit_argument(score[k], variance[2 * k]);
        if (probability != NULL) probability[k] = z;
        if (k > 0 && !(z > most)) continue;
        best = k;
        most = z;
    }
    if (probability != NULL) espi_class_probabilities(probability, classes, probability);
    return best;
}

double espi_log_density(double distance, double variance)
{
    const double v = fmax(variance, 1e-200), z = fmin(fabs(distance) / sqrt(v), 1e150);
    return -0.5 * z * z - 0.5 * log(6.283185307179586477 * v);
}

double espi_log_probability(double probability) { return log(fmax(probability, 1e-300)); }

esp_status espi_predictions_spread(esp_predictions *p, const double *variance, esp_error *err)
{
    const size_t numbers = 2 * p->columns;
    p->variance = espi_alloc(p->count, numbers * sizeof *p->variance);
    if (p->classes > 0) p->probability = espi_alloc(p->count, p->classes * sizeof *p->probability);
    if (p->variance == NULL || (p->classes > 0 && p->probability == NULL)) return espi_no_memory(err);
    memcpy(p->variance, variance, p->count * numbers * sizeof *variance);
    for (size_t i = 0; p->classes > 0 && i < p->count; i++)
        p->winner[i] = (uint32_t)espi_decide_spread(p->column + i * p->columns, variance + i * numbers, p->classes,
                                                    p->probability + i * p->classes);
    return ESP_OK;
}

void esp_predictions_free(esp_predictions *p)
{
    if (p == NULL) return;
    for (size_t c = 0; p->class_name != NULL && c < p->classes; c++) espi_free(p->class_name[c]);
    espi_free(p->class_name);
    espi_free(p->column);
    espi_free(p->winner);
    espi_free(p->probability);
    espi_free(p->variance);
    espi_free(p);
}

size_t esp_predictions_count(const esp_predictions *p) { return p->count; }
bool esp_predictions_are_classes(const esp_predictions *p) { return p->classes > 0; }
size_t esp_predictions_classes(const esp_predictions *p) { return p->classes; }
const char *esp_predictions_class(const esp_predictions *p, size_t c)
{
    return c < p->classes ? p->class_name[c] : NULL;
}
size_t esp_predictions_columns(const esp_predictions *p) { return p->columns; }

const char *esp_predictions_label(const esp_predictions *p, size_t i)
{
    return p->classes > 0 ? p->class_name[p->winner[i]] : NULL;
}

/* Where the value of the winner stands among those of all columns. */
static size_t winning(const esp_predictions *p, size_t i)
{
    return i * p->columns + (p->columns > 1 ? p->winner[i] : 0);
}

double esp_predictions_score(const esp_predictions *p, size_t i) { return p->column[winning(p, i)]; }

const char *esp_predictions_column_name(const esp_predictions *p, size_t column)
{
    return p->classes == 0 ? "value" : p->class_name[p->classes == 2 ? 1 : column];
}

double esp_predictions_column(const esp_predictions *p, size_t i, size_t column)
{
    return p->column[i * p->columns + column];
}

double esp_predictions_probability(const esp_predictions *p, size_t i, size_t c)
{
    return p->probability != NULL && c < p->classes ? p->probability[i * p->classes + c] : -1.0;
}

double esp_predictions_variance(const esp_predictions *p, size_t i)
{
    return p->variance != NULL ? p->variance[2 * winning(p, i) + 1] : -1.0;
}

double esp_predictions_latent_variance(const esp_predictions *p, size_t i)
{
    return p->variance != NULL ? p->variance[2 * winning(p, i)] : -1.0;
}
