/* espalier predict: what a model says about examples, and how good that is where their targets are known. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct predict_settings {
    cli_settings common;
    const char *output, *metrics;
    cli_columns columns;
} predict_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(predict_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = "all-scores", .kind = CLI_FLAG, .offset = offsetof(predict_settings, columns.all),
     .help = "the scores of all classes, in the order of 'espalier info MODEL'"},
    {.name = "probability", .kind = CLI_FLAG, .offset = offsetof(predict_settings, columns.probability),
     .help = "probabilities instead of scores, if the model was trained with --probability or is a gp"},
    {.name = "latent", .kind = CLI_FLAG, .offset = offsetof(predict_settings, columns.latent),
     .help = "gp: the variance of the function alone, without the noise"},
    {.name = "samples", .kind = CLI_NUMBER, .offset = offsetof(predict_settings, columns.samples), .argument = "N",
     .least = 1, .most = 1000000, .help = "gp: N draws from the posterior, jointly for all examples, as further columns"},
    {.name = "metrics", .kind = CLI_TEXT, .offset = offsetof(predict_settings, metrics), .argument = "FILE",
     .help = "write how good the predictions are as JSON"},
    CLI_DEVICE_OPTION,
    CLI_MPI_OPTION,
    {.name = NULL}};
/* clang-format on */

typedef struct predict_job {
    const predict_settings *settings;
    esp_model *model;
    esp_dataset *data;
    esp_predictions *predictions;
    esp_metrics *metrics; /* NULL where targets are not known */
    double *sample;
} predict_job;

static int check_settings(const predict_settings *s)
{
    if (strcmp(s->common.operand[0], "-") == 0 && strcmp(s->common.operand[1], "-") == 0)
        return cli_usage("standard input can be read only once");
    return cli_check_places("the predictions", s->output != NULL ? s->output : "-", "--metrics", s->metrics,
                            &s->common);
}

static int read_model(predict_job *job)
{
    const cli_settings *s = &job->settings->common;
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = esp_model_read(s->operand[0], &job->model, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(s, "%s: model read in %.3f s", s->operand[0], cli_seconds() - began);
    return CLI_OK;
}

static int predict(predict_job *job)
{
    const predict_settings *s = job->settings;
    esp_run run = cli_run(&s->common);
    cli_device(&s->common, esp_model_learner(job->model), cli_model_support(job->model), &run);
    cli_share(&s->common, &run);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = esp_predict(job->model, job->data, &run, &job->predictions, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    const double seconds = cli_seconds() - began, count = (double)esp_predictions_count(job->predictions);
    cli_detail(&s->common, "%.0f predictions in %.3f s, %.0f per second", count, seconds,
               seconds > 0 ? count / seconds : 0.0);
    return cli_check_columns(job->predictions, esp_model_learner(job->model), s->columns);
}

/* The probability of the label that was predicted, for each draw; `all` has those of all classes. */
static void keep_label(const predict_job *job, const double *all)
{
    const size_t classes = esp_predictions_classes(job->predictions), draws = (size_t)job->settings->columns.samples;
    for (size_t i = 0; i < esp_predictions_count(job->predictions); i++) {
        const char *label = esp_predictions_label(job->predictions, i);
        size_t c = 0;
        while (strcmp(esp_predictions_class(job->predictions, c), label) != 0) c++;
        memcpy(job->sample + i * draws, all + (i * classes + c) * draws, draws * sizeof *all);
    }
}

/* Memory is only touched once the library has compared all of it with the limit. */
static int draw(predict_job *job)
{
    const predict_settings *s = job->settings;
    const bool probable = s->columns.probability;
    const size_t count = esp_predictions_count(job->predictions), draws = (size_t)s->columns.samples;
    const size_t width = probable ? esp_predictions_classes(job->predictions) : 1;
    const esp_draw what = probable ? ESP_DRAW_PROBABILITY : s->columns.latent ? ESP_DRAW_FUNCTION : ESP_DRAW_TARGET;
    if (draws == 0) return CLI_OK;
    job->sample = calloc(draws, (count + 1) * sizeof *job->sample);
    double *all = probable ? calloc(draws, (count * width + 1) * sizeof *all) : job->sample;
    int code = job->sample == NULL || all == NULL ? cli_fail("out of memory") : CLI_OK;
    if (code == CLI_OK) {
        const esp_run run = cli_run(&s->common);
        esp_error error;
        const esp_status status =
            esp_predict_samples(job->model, job->data, draws, s->common.seed, what, &run, all, &error);
        cli_run_end();
        if (status != ESP_OK) code = cli_error(status, &error);
    }
    if (code == CLI_OK && probable) keep_label(job, all);
    if (probable) free(all);
    return code;
}

/* Targets that cannot be compared with the predictions are an error only if metrics were asked for. */
static int evaluate(predict_job *job)
{
    const predict_settings *s = job->settings;
    if (esp_dataset_target_name(job->data) == NULL) {
        if (s->metrics == NULL) return CLI_OK;
        return cli_usage("--metrics needs targets to compare with, but %s has none; --target FIELD names their field",
                         s->common.operand[1]);
    }
    esp_error error;
    const esp_status status = esp_metrics_new(job->predictions, job->data, &job->metrics, &error);
    if (status == ESP_OK) return CLI_OK;
    if (s->metrics != NULL || status != ESP_ERR_PARAM) return cli_error(status, &error);
    cli_note(&s->common, "no metrics: %s", error.message);
    return CLI_OK;
}

static int predict_file(predict_job *job)
{
    const predict_settings *s = job->settings;
    int code = read_model(job);
    if (code == CLI_OK) code = cli_read(&s->common, s->common.operand[1], &job->data);
    if (code == CLI_OK) code = predict(job);
    if (code != CLI_OK || !cli_first()) return code;
    code = draw(job);
    if (code == CLI_OK) code = evaluate(job);
    cli_columns columns = s->columns;
    columns.sample = job->sample;
    if (code == CLI_OK) code = cli_write_predictions(job->predictions, s->output != NULL ? s->output : "-", columns);
    if (code == CLI_OK && s->metrics != NULL) code = cli_write_metrics(job->metrics, s->metrics);
    if (code == CLI_OK && job->metrics != NULL) {
        cli_show_metrics(&s->common, job->metrics);
        cli_note_unknown(&s->common, job->metrics, s->common.operand[1]);
    }
    return code;
}

static int run_predict(const cli_settings *settings)
{
    predict_job job = {.settings = (const predict_settings *)settings};
    int code = check_settings(job.settings);
    if (code == CLI_OK) code = predict_file(&job);
    esp_metrics_free(job.metrics);
    esp_predictions_free(job.predictions);
    esp_dataset_free(job.data);
    esp_model_free(job.model);
    free(job.sample);
    return code;
}

const cli_command cli_predict = {
    .name = "predict",
    .usage = "MODEL DATA",
    .summary = "what a model says about examples, and how good that is",
    .text =
        "Prints a line for each example of DATA. Classes: the label, a TAB, and its score; with two classes the "
        "score is that of the second one, so negative where the first is predicted. Numbers: the value; of a gp also "
        "a TAB and the variance of the target around it.\n"
        "With --all-scores, the label is followed by the scores of all classes, in the order in which 'espalier "
        "info MODEL' lists them (two classes have one score). With --probability, probabilities take the place "
        "of scores.\n"
        "With --samples N, a line of a gp goes on with N draws from its posterior, drawn by --seed for all examples of "
        "DATA together: a column is one draw. Numbers: the target, with noise, or with --latent the function. Classes: "
        "a "
        "label, or with --probability the probability that the drawn functions give to the label of the line.\n"
        "With --mpi, the processes that mpirun or srun started divide the examples among them, and the first one "
        "writes all results (docs/clusters.md).\n"
        "Where the examples have targets, a table of metrics goes to standard error.",
    .examples = "espalier predict questions.model new.jsonl > labels.txt\n"
                "espalier predict --latent quality.model new.jsonl > means-and-variances.txt\n"
                "espalier predict --samples 20 --seed 7 quality.model new.jsonl | cut -f 3-\n"
                "espalier predict questions.model test.jsonl -o labels.txt --metrics metrics.json",
    .options = options,
    .reads = true,
    .least = 2,
    .most = 2,
    .settings_size = sizeof(predict_settings),
    .run = run_predict};
