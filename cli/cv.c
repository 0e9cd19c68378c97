/* espalier cv: how good a learner is, by cross-validation. */
#include "cli.h"

#include <string.h>

typedef struct cv_settings {
    cli_learning learning;
    uint64_t folds;
    const char *predictions, *metrics;
} cv_settings;

/* clang-format off */
static const cli_option options[] = {
    CLI_LEARNING_OPTIONS,
    CLI_MPI_OPTION,
    {.name = "folds", .kind = CLI_NUMBER, .offset = offsetof(cv_settings, folds), .argument = "N", .default_value = "5",
     .least = 2, .most = UINT32_MAX, .help = "parts of the data, each predicted from the others"},
    {.name = "predictions", .kind = CLI_TEXT, .offset = offsetof(cv_settings, predictions), .argument = "FILE",
     .help = "write the prediction for each example, as 'espalier predict' prints it"},
    {.name = "metrics", .kind = CLI_TEXT, .offset = offsetof(cv_settings, metrics), .argument = "FILE",
     .help = "write all metrics as JSON"},
    {.name = NULL}};
/* clang-format on */

static void print_metrics(const esp_metrics *metrics, const esp_predictions *predictions)
{
    const bool classes = esp_predictions_are_classes(predictions);
    static const char *const names[2][3] = {{"rmse", "mae", "pearson"}, {"accuracy", "macro-f1", "micro-f1"}};
    for (size_t i = 0; i < 3; i++) {
        const char *name = names[classes][i];
        printf("%s\t%.17g\n", name, esp_metrics_value(metrics, name));
    }
    if (esp_predictions_count(predictions) > 0 && esp_predictions_variance(predictions, 0) >= 0)
        printf("nlpd\t%.17g\n", esp_metrics_value(metrics, "nlpd"));
}

static bool is_standard(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static int write_results(const cv_settings *s, const esp_predictions *predictions, const esp_metrics *metrics)
{
    int code = CLI_OK;
    if (s->predictions != NULL) code = cli_write_predictions(predictions, s->predictions, (cli_columns){0});
    if (code == CLI_OK && s->metrics != NULL) code = cli_write_metrics(metrics, s->metrics);
    if (code != CLI_OK) return code;
    if (!is_standard(s->predictions) && !is_standard(s->metrics)) print_metrics(metrics, predictions);
    cli_show_metrics(&s->learning.common, metrics);
    return CLI_OK;
}

static int validate(const cv_settings *s, const cli_training *training)
{
    const cli_settings *common = &s->learning.common;
    esp_predictions *predictions = NULL;
    esp_metrics *metrics = NULL;
    esp_error error;
    esp_run run = cli_training_how(training);
    cli_share(common, &run);
    const double began = cli_seconds();
    esp_status status =
        esp_cross_validate(training->learner, training->kernel, training->data, training->setting, training->settings,
                           (size_t)s->folds, common->seed, &run, &predictions, &error);
    cli_run_end();
    if (status == ESP_OK) status = esp_metrics_new(predictions, training->data, &metrics, &error);
    int code = CLI_OK;
    if (status != ESP_OK) code = cli_error(status, &error);
    else cli_detail(common, "%u folds in %.3f s", (unsigned)s->folds, cli_seconds() - began);
    if (code == CLI_OK && cli_first()) code = write_results(s, predictions, metrics);
    esp_metrics_free(metrics);
    esp_predictions_free(predictions);
    return code;
}

static int run_cv(const cli_settings *settings)
{
    const cv_settings *s = (const cv_settings *)settings;
    cli_training training = {0};
    int code = cli_training_check(&s->learning, &training);
    if (code == CLI_OK)
        code = cli_check_places("--predictions", s->predictions, "--metrics", s->metrics, &s->learning.common);
    if (code == CLI_OK) code = cli_training_read(&training, true);
    if (code == CLI_OK && !cli_training_of_numbers(&training)) cli_note_rare(settings, training.data, (size_t)s->folds);
    if (code == CLI_OK) code = validate(s, &training);
    cli_training_end(&training);
    return code;
}

const cli_command cli_cv = {
    .name = "cv",
    .usage = "-k EXPR DATA",
    .summary = "how good a learner is, by cross-validation",
    .text =
        "Divides DATA into --folds parts with the same mixture of classes, drawn from --seed, and predicts each "
        "part by a model trained on the others. Prints a line of name and value for each metric: accuracy, "
        "macro-f1 and micro-f1, or rmse, mae and pearson; of a Gaussian process also nlpd, the mean negative logarithm "
        "of the predictive density. Where all predictions are the same, pearson is 0. A table with more goes to "
        "standard error.\n"
        "With --mpi, the processes that mpirun or srun started take some of the folds each (docs/clusters.md).\n"
        "'-' for --predictions or --metrics puts them on standard output in place of these lines.",
    .examples = "espalier cv -k 'norm(sst(tree, lambda=0.4))' -C 10 --folds 10 questions.jsonl\n"
                "espalier cv -q -l svr -k 'rbf(x, gamma=0.1)' --predictions out.txt houses.libsvm",
    .options = options,
    .reads = true,
    .learns = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(cv_settings),
    .run = run_cv};
