/* Draws from the posterior of a Gaussian process, jointly for all examples: with m the means and cov f = L L^T,
 *
 *     f = m + L z,  y = f + sqrt(noise) e
 *
 * with independent standard normal z and e. For classes every latent function is drawn in this way, and what it gives
 * to the classes is as in probit.h; a class is drawn from these probabilities by a number that is uniform in [0, 1).
 *
 * z and e of a draw come one after the other, draw by draw, whatever is asked for: a draw is the same whatever the
 * number of those behind it, and so is its function whether it is asked for or the target. */
#include "base/alloc.h"
#include "base/algebra.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "learn/model/posterior.h"
#include "learn/probit.h"

#include <math.h>

static const double first_jitter = 1e-12; /* of the mean of K(x, x): what rounding makes of zeros */

typedef struct drawing {
    const esp_model *model;
    size_t rows, draws, width; /* examples, draws, numbers of an example and a draw that are asked for */
    espi_joint joint;
    double *mean;  /* example i, output k: [i * outputs + k] */
    double *value; /* draw s, output k, example i: [(s * outputs + k) * rows + i]; z, and then f */
    double *extra; /* draw s, example i: [s * rows + i]; e, or for classes uniform */
    size_t output; /* the one at work */
} drawing;

static esp_status check(const esp_model *m, esp_error *err)
{
    if (m->gaussian != NULL) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM, "a model of %s has no posterior; gp has one", m->learner);
}

static void end_drawing(drawing *d)
{
    espi_joint_free(&d->joint);
    espi_free(d->mean);
    espi_free(d->value);
    espi_free(d->extra);
}

/* ------------------------------------------------------------ covariances */

esp_status esp_predict_covariance(const esp_model *model, const esp_dataset *data, bool latent, const esp_run *run,
                                  double *covariance, esp_error *err)
{
    const size_t rows = data->rows, outputs = model->outputs;
    espi_joint joint = {0};
    esp_status status = check(model, err);
    if (status != ESP_OK) return status;
    double *scores = espi_alloc(rows, outputs * sizeof *scores);
    status = scores == NULL ? espi_no_memory(err) : espi_model_score(model, data, run, scores, err);
    espi_free(scores);
    if (status == ESP_OK) status = espi_joint_new(&joint, model, data, 0.0, run, err);
    const double noise = latent ? 0.0 : model->gaussian->noise * model->gaussian->scale * model->gaussian->scale;
    for (size_t k = 0; status == ESP_OK && k < outputs; k++) {
        status = espi_joint_covariance(&joint, model, k, run, err);
        double *out = covariance + k * rows * rows;
        for (size_t i = 0; status == ESP_OK && i < rows * rows; i++) out[i] = joint.covariance[i];
        for (size_t i = 0; status == ESP_OK && i < rows; i++) out[i * rows + i] += noise;
    }
    espi_joint_free(&joint);
    return status;
}

/* ---------------------------------------------------------------- drawing */

static esp_status start(drawing *d, const esp_dataset *data, uint64_t seed, const esp_run *run, esp_error *err)
{
    const esp_model *m = d->model;
    const size_t values = d->rows * m->outputs;
    const double more = (double)d->draws * (double)(values + (d->width + 1) * d->rows) * sizeof(double);
    espi_random random;
    d->mean = espi_alloc(values, sizeof *d->mean);
    esp_status status = d->mean == NULL ? espi_no_memory(err) : espi_model_score(m, data, run, d->mean, err);
    if (status == ESP_OK) status = espi_joint_new(&d->joint, m, data, more, run, err);
    if (status != ESP_OK) return status;
    d->value = espi_alloc(d->draws, values * sizeof *d->value);
    d->extra = espi_alloc(d->draws, d->rows * sizeof *d->extra);
    if (d->value == NULL || d->extra == NULL) return espi_no_memory(err);
    espi_random_seed(&random, seed);
    for (size_t s = 0; s < d->draws; s++) {
        espi_random_normal(&random, d->value + s * values, values);
        if (m->classes == 0) espi_random_normal(&random, d->extra + s * d->rows, d->rows);
        for (size_t i = 0; m->classes > 0 && i < d->rows; i++) d->extra[s * d->rows + i] = espi_random_unit(&random);
    }
    return ESP_OK;
}

/* The covariances become L, which is 0 where they are. */
static esp_status factor(drawing *d, const esp_run *run, esp_error *err)
{
    const size_t n = d->rows;
    double of_prior = 0.0, own = 0.0, jitter;
    espi_factor made;
    for (size_t i = 0; i < n; i++) of_prior += d->joint.prior[i * n + i];
    for (size_t i = 0; i < n; i++) own += d->joint.covariance[i * n + i];
    if (!(own > 0.0)) return ESP_OK;
    const double scale = d->model->gaussian->scale;
    const esp_status status = espi_factor_make_jitter(d->joint.covariance, n, true, 0.0,
                                                      first_jitter * fmax(of_prior * scale * scale / own, 1.0), run,
                                                      d->joint.work, &jitter, &made, err);
    if (status != ESP_OK || made.failed == 0) return status;
    return espi_fail(err, ESP_ERR_RANGE,
                     "the covariances of the examples are not positive definite, not even with %g added to their "
                     "diagonal",
                     jitter);
}

/* f = m + L z of one draw, from the last example to the first: z of those before is still needed. */
static esp_status transform(void *context, size_t s, const espi_worker *worker, esp_error *err)
{
    const drawing *d = context;
    const size_t n = d->rows, outputs = d->model->outputs;
    double *f = d->value + (s * outputs + d->output) * n;
    (void)worker;
    for (size_t i = n; i-- > 0;) {
        const double *row = d->joint.covariance + i * n;
        double sum = 0.0;
        for (size_t j = 0; j <= i; j++) sum += row[j] * f[j];
        f[i] = d->mean[i * outputs + d->output] + sum;
    }
    return espi_all_finite(f, n) ? ESP_OK : espi_fail(err, ESP_ERR_RANGE, "a draw is too large for a number");
}

/* ----------------------------------------------------------------- results */

/* What is asked for of example i in draw s; `room` holds a number per class. */
static void tell(const drawing *d, size_t i, size_t s, esp_draw what, double *room, double *out)
{
    const esp_model *m = d->model;
    const double *f = d->value + s * m->outputs * d->rows + i, extra = d->extra[s * d->rows + i];
    if (what == ESP_DRAW_FUNCTION) {
        for (size_t k = 0; k < m->outputs; k++) out[(i * m->outputs + k) * d->draws + s] = f[k * d->rows];
        return;
    }
    if (m->classes == 0) {
        out[i * d->draws + s] = f[0] + m->gaussian->scale * sqrt(m->gaussian->noise) * extra;
        return;
    }
    for (size_t k = 0; k < m->outputs; k++) room[k] = f[k * d->rows];
    espi_class_probabilities(room, m->classes, room);
    if (what == ESP_DRAW_PROBABILITY) {
        for (size_t c = 0; c < m->classes; c++) out[(i * m->classes + c) * d->draws + s] = room[c];
        return;
    }
    size_t class = 0;
    for (double sum = room[0]; class + 1 < m->classes && extra >= sum; sum += room[class]) class ++;
    out[i * d->draws + s] = (double)class;
}

esp_status esp_predict_samples(const esp_model *model, const esp_dataset *data, size_t samples, uint64_t seed,
                               esp_draw what, const esp_run *run, double *out, esp_error *err)
{
    drawing d = {.model = model, .rows = data->rows, .draws = samples};
    esp_status status = check(model, err);
    if (status == ESP_OK && samples == 0)
        status = espi_fail(err, ESP_ERR_PARAM, "the number of samples is 0; allowed is a whole number > 0");
    if (status == ESP_OK && what == ESP_DRAW_PROBABILITY && model->classes == 0)
        status = espi_fail(err, ESP_ERR_PARAM, "numbers have no probabilities");
    d.width = what == ESP_DRAW_FUNCTION ? model->outputs : what == ESP_DRAW_PROBABILITY ? model->classes : 1;
    if (status == ESP_OK) status = start(&d, data, seed, run, err);
    double *room = espi_alloc(model->classes + 1, sizeof *room);
    if (status == ESP_OK && room == NULL) status = espi_no_memory(err);
    for (d.output = 0; status == ESP_OK && d.output < model->outputs; d.output++) {
        status = espi_joint_covariance(&d.joint, model, d.output, run, err);
        if (status == ESP_OK) status = factor(&d, run, err);
        if (status == ESP_OK) status = espi_parallel(run, "drawing", samples, transform, &d, err);
    }
    for (size_t i = 0; status == ESP_OK && i < d.rows; i++)
        for (size_t s = 0; s < samples; s++) tell(&d, i, s, what, room, out);
    espi_free(room);
    end_drawing(&d);
    return status;
}
