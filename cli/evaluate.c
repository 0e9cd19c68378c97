/* Predictions as lines, and metrics as a table or as JSON: what predict and cv share. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int cli_check_columns(const esp_predictions *predictions, const char *learner, cli_columns columns)
{
    if (columns.latent && (!cli_learner_can(learner, ESP_GIVES_VARIANCES) || esp_predictions_are_classes(predictions)))
        return cli_usage("--latent is for numbers predicted by gp, not for %s of %s",
                         esp_predictions_are_classes(predictions) ? "classes" : "numbers", learner);
    if (columns.samples > 0 && !cli_learner_can(learner, ESP_GIVES_VARIANCES))
        return cli_usage("--samples is for models of gp; a model of %s has no posterior to draw from", learner);
    if (!columns.all && !columns.probability) return CLI_OK;
    if (!esp_predictions_are_classes(predictions))
        return cli_usage("--%s is for classes, but %s predicts a number", columns.all ? "all-scores" : "probability",
                         learner);
    if (columns.probability && esp_predictions_count(predictions) > 0 &&
        esp_predictions_probability(predictions, 0, 0) < 0) {
        if (!cli_learner_can(learner, ESP_GIVES_PROBABILITIES))
            return cli_usage("a %s has no probabilities; an svm has, if trained with --probability, and a gp", learner);
        return cli_usage("the model has no probabilities; train it with 'espalier train --probability'");
    }
    return CLI_OK;
}

static double probability_of_label(const esp_predictions *p, size_t example)
{
    const char *label = esp_predictions_label(p, example);
    for (size_t c = 0; c < esp_predictions_classes(p); c++)
        if (strcmp(esp_predictions_class(p, c), label) == 0) return esp_predictions_probability(p, example, c);
    return -1;
}

static void write_value(FILE *file, const esp_predictions *p, size_t example, cli_columns columns)
{
    const double latent = esp_predictions_latent_variance(p, example);
    fprintf(file, "%.17g", esp_predictions_score(p, example));
    if (latent >= 0) fprintf(file, "\t%.17g", columns.latent ? latent : esp_predictions_variance(p, example));
}

static void write_class(FILE *file, const esp_predictions *p, size_t example, cli_columns columns)
{
    cli_field(file, esp_predictions_label(p, example));
    if (!columns.all) {
        fprintf(file, "\t%.17g",
                columns.probability ? probability_of_label(p, example) : esp_predictions_score(p, example));
        return;
    }
    const size_t count = columns.probability ? esp_predictions_classes(p) : esp_predictions_columns(p);
    for (size_t c = 0; c < count; c++)
        fprintf(file, "\t%.17g",
                columns.probability ? esp_predictions_probability(p, example, c)
                                    : esp_predictions_column(p, example, c));
}

static void write_line(FILE *file, const esp_predictions *p, size_t example, cli_columns columns)
{
    const bool classes = esp_predictions_are_classes(p);
    if (classes) write_class(file, p, example, columns);
    else write_value(file, p, example, columns);
    for (uint64_t s = 0; s < columns.samples; s++) {
        const double value = columns.sample[example * columns.samples + s];
        putc('\t', file);
        if (classes && !columns.probability) cli_field(file, esp_predictions_class(p, (size_t)value));
        else fprintf(file, "%.17g", value);
    }
    putc('\n', file);
}

int cli_write_predictions(const esp_predictions *predictions, const char *path, cli_columns columns)
{
    cli_output output;
    const int code = cli_output_open(&output, path);
    if (code != CLI_OK) return code;
    for (size_t i = 0; i < esp_predictions_count(predictions); i++) write_line(output.file, predictions, i, columns);
    return cli_output_close(&output, CLI_OK);
}

void cli_show_metrics(const cli_settings *settings, const esp_metrics *metrics)
{
    if (settings->quiet) return;
    char *text = NULL;
    esp_error error;
    const esp_status status = esp_metrics_text(metrics, &text, &error);
    if (status != ESP_OK) {
        cli_error(status, &error);
        return;
    }
    const size_t size = strlen(text);
    fflush(stdout); /* on a terminal the table comes behind the results */
    fprintf(stderr, "%s%s", text, size > 0 && text[size - 1] != '\n' ? "\n" : "");
    esp_text_free(text);
}

int cli_write_metrics(const esp_metrics *metrics, const char *path)
{
    char *text = NULL;
    esp_error error;
    const esp_status status = esp_metrics_json(metrics, &text, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    cli_output output;
    int code = cli_output_open(&output, path);
    if (code == CLI_OK) {
        const size_t size = strlen(text);
        fprintf(output.file, "%s%s", text, size > 0 && text[size - 1] != '\n' ? "\n" : "");
        code = cli_output_close(&output, CLI_OK);
    }
    esp_text_free(text);
    return code;
}

static bool same_stat(const char *first, const char *second)
{
    struct stat a, b;
    return stat(first, &a) == 0 && stat(second, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool cli_same_place(const char *first, const char *second)
{
    if (strcmp(first, second) == 0 || same_stat(first, second)) return true;
    const char *const a = strrchr(first, '/'), *const b = strrchr(second, '/');
    if (strcmp(a != NULL ? a + 1 : first, b != NULL ? b + 1 : second) != 0) return false;
    char *const in = a != NULL ? strndup(first, (size_t)(a - first) + 1) : strdup(".");
    char *const on = b != NULL ? strndup(second, (size_t)(b - second) + 1) : strdup(".");
    const bool same = in != NULL && on != NULL && same_stat(in, on);
    free(in);
    free(on);
    return same;
}

int cli_check_places(const char *first, const char *first_path, const char *second, const char *second_path,
                     const cli_settings *settings)
{
    if (first_path != NULL && second_path != NULL && cli_same_place(first_path, second_path))
        return cli_usage("%s and %s would both be written to %s", first, second,
                         strcmp(first_path, "-") == 0 ? "standard output" : first_path);
    const int code = cli_check_output(first_path, settings);
    return code == CLI_OK ? cli_check_output(second_path, settings) : code;
}
