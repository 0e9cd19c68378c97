/* Voted perceptrons (Freund and Schapire 1999): every state that the weights went through has a vote, worth the steps
 * that it lasted.
 *
 *     f_k(x) = 1/T sum_e (t(e+1) - t(e)) sign(S_k after e),     t(n) = T + 1,     sign(0) = -1
 *
 * A score of 0, up to rounding as in model.h, is no vote for the positive class, as it would be none in a
 * prediction. */
#include "base/alloc.h"
#include "base/group.h"
#include "base/parallel.h"
#include "base/status.h"
#include "learn/model/model.h"

#include <math.h>
#include <string.h>

typedef struct voter {
    espi_workspace *workspace;
    double *row; /* kernel values with all updates */
} voter;

typedef struct voting {
    const esp_model *model;
    const espi_bound *bound; /* data against updates */
    voter *voter;
    double *scores;
} voting;

static esp_status start_voter(const voting *j, voter *v, const esp_run *run, esp_error *err)
{
    if (v->workspace != NULL) return ESP_OK;
    if (v->row == NULL) v->row = espi_alloc(j->model->support->rows, sizeof *v->row);
    return v->row == NULL ? espi_no_memory(err) : espi_workspace_new(j->bound, run, &v->workspace, err);
}

static double count_votes(const esp_model *m, const double *row, size_t output)
{
    const espi_history *h = m->history;
    const size_t n = m->support->rows;
    double sum = 0.0, magnitude = 0.0, votes = 0.0;
    for (size_t e = 0; e < n; e++) {
        const double lasts = (double)((e + 1 < n ? h->step[e + 1] : h->steps + 1) - h->step[e]);
        const double term = h->change[e * m->outputs + output] * row[e];
        sum += term;
        magnitude += fabs(term);
        if (!isfinite(sum)) return NAN;
        votes += sum > ESPI_TIE * magnitude ? lasts : -lasts;
    }
    return n > 0 ? votes / (double)h->steps : 0.0;
}

static esp_status score_example(void *context, size_t i, const espi_worker *worker, esp_error *err)
{
    const voting *j = context;
    const esp_model *m = j->model;
    voter *v = &j->voter[worker->number];
    esp_status status = start_voter(j, v, worker->run, err);
    if (status == ESP_OK)
        status = espi_bound_row(v->workspace, m->kernel->ops - 1, i, 0, m->support->rows, v->row, err);
    for (size_t k = 0; status == ESP_OK && k < m->outputs; k++) {
        const double votes = count_votes(m, v->row, k);
        if (!isfinite(votes))
            status = espi_fail(err, ESP_ERR_RANGE, "the score of example %zu is too large for a number", i + 1);
        j->scores[i * m->outputs + k] = votes;
    }
    return status;
}

esp_status espi_vote_score(const esp_model *model, const esp_dataset *data, const esp_run *run, double *scores,
                           esp_error *err)
{
    espi_bound *bound = NULL;
    const int workers = espi_worker_count(run, data->rows);
    const esp_run apart = espi_group_apart(run);
    esp_status status = espi_bind(model->kernel, data, model->support, &apart, &bound, err);
    voting j = {.model = model, .bound = bound, .scores = scores};
    j.voter = espi_alloc_zero((size_t)workers, sizeof *j.voter);
    if (status == ESP_OK && j.voter == NULL) status = espi_no_memory(err);
    const size_t bytes = data->rows * model->outputs * sizeof *scores;
    if (espi_group_shares(run)) memset(scores, 0, bytes);
    if (status == ESP_OK)
        status =
            espi_group_deal(run, "predicting", data->rows, espi_group_block(run, data->rows), score_example, &j, err);
    if (status == ESP_OK) status = espi_group_merge(run, scores, bytes, err);
    for (int w = 0; j.voter != NULL && w < workers; w++) {
        espi_workspace_free(j.voter[w].workspace);
        espi_free(j.voter[w].row);
    }
    espi_free(j.voter);
    espi_bound_free(bound);
    return status;
}
