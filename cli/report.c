/* espalier report: a page to look at, about a model and what it says about data. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct report_settings {
    cli_settings common;
    const char *output, *title, *pairs, *id;
    uint64_t examples, top;
} report_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(report_settings, output),
     .argument = "FILE", .help = "where to write the page; - is standard output"},
    {.name = "pairs", .kind = CLI_TEXT, .offset = offsetof(report_settings, pairs), .argument = "FILE",
     .help = "show pairs of trees side by side: what 'espalier pairs' printed, or 'espalier search' (with QUERIES)"},
    {.name = "id", .kind = CLI_TEXT, .offset = offsetof(report_settings, id), .argument = "FIELD",
     .help = "with --pairs, the field that names examples (default: they are numbered from 1)"},
    {.name = "title", .kind = CLI_TEXT, .offset = offsetof(report_settings, title), .argument = "TEXT",
     .help = "the heading of the page (default: the name of the model's file)"},
    {.name = "examples", .kind = CLI_NUMBER, .offset = offsetof(report_settings, examples), .argument = "N",
     .least = 1, .most = 1000, .help = "examples of DATA to explain, or pairs to show, at most (default: 40)"},
    {.name = "top", .kind = CLI_NUMBER, .offset = offsetof(report_settings, top), .argument = "N",
     .least = 1, .most = 1000, .help = "features to show for and against each class (default: 12)"},
    {.name = NULL}};
/* clang-format on */

typedef struct report_job {
    const report_settings *settings;
    esp_model *model;
    esp_dataset *data; /* NULL: the model alone */
} report_job;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0) return "standard input";
    return slash != NULL ? slash + 1 : path;
}

static int check_settings(const report_settings *s)
{
    if (s->output == NULL) return cli_usage("-o FILE is missing: it says where to write the page");
    if (s->id != NULL && s->pairs == NULL) return cli_usage("--id names the examples of --pairs, which is missing");
    if (s->pairs != NULL && strcmp(s->pairs, "-") == 0)
        for (size_t i = 0; i < s->common.operands; i++)
            if (strcmp(s->common.operand[i], "-") == 0) return cli_usage("standard input can be read only once");
    if (s->common.operands > 1 && strcmp(s->common.operand[0], "-") == 0 && strcmp(s->common.operand[1], "-") == 0)
        return cli_usage("standard input can be read only once");
    cli_settings all = {.operand = (char *[]){(char *)s->pairs}, .operands = s->pairs != NULL};
    const int code = cli_check_output(s->output, &all);
    return code == CLI_OK ? cli_check_output(s->output, &s->common) : code;
}

/* The page says it too, but whoever mistook the field should know it now. */
static void note_targets(const report_job *job)
{
    const esp_dataset *data = job->data;
    if (esp_model_classes(job->model) > 0 || data == NULL || esp_dataset_target_name(data) == NULL) return;
    for (size_t i = 0; i < esp_dataset_count(data); i++) {
        char *end;
        const char *text = esp_dataset_target(data, i);
        if (isfinite(strtod(text, &end)) && end != text && *end == '\0') continue;
        cli_note(
            &job->settings->common,
            "the model predicts numbers, but the target of example %zu is '%s': the page does not tell how good the "
            "predictions are; --target FIELD names another field",
            i + 1, text);
        return;
    }
}

static int make_report(report_job *job)
{
    const report_settings *s = job->settings;
    const bool data = s->common.operands > 1;
    const esp_report_options given = {.title = s->title != NULL ? s->title : file_name(s->common.operand[0]),
                                      .data_name = data ? file_name(s->common.operand[1]) : NULL,
                                      .examples = (size_t)s->examples,
                                      .top = (size_t)s->top};
    esp_error error;
    esp_status status = esp_model_read(s->common.operand[0], &job->model, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    const int code = data ? cli_read(&s->common, s->common.operand[1], &job->data) : CLI_OK;
    if (code != CLI_OK) return code;
    esp_run run = cli_run(&s->common);
    if (s->common.memory == 0) run.memory /= 2;
    const double began = cli_seconds();
    note_targets(job);
    status = esp_report_write(job->model, job->data, &given, s->output, &run, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "report written in %.3f s", cli_seconds() - began);
    return CLI_OK;
}

static int make_pairs(const report_settings *s, esp_dataset *data[2])
{
    const bool queries = s->common.operands > 1;
    const esp_report_options given = {.title = s->title != NULL ? s->title : file_name(s->pairs),
                                      .data_name = file_name(s->common.operand[0]),
                                      .examples = (size_t)s->examples};
    esp_error error;
    int code = cli_read(&s->common, s->common.operand[0], &data[0]);
    if (code == CLI_OK && queries) code = cli_read(&s->common, s->common.operand[1], &data[1]);
    if (code != CLI_OK) return code;
    const esp_run run = cli_run(&s->common);
    const esp_status status = esp_report_pairs(s->pairs, data[0], data[1], s->id, &given, s->output, &run, &error);
    cli_run_end();
    return status == ESP_OK ? CLI_OK : cli_error(status, &error);
}

static int run_report(const cli_settings *settings)
{
    report_job job = {.settings = (const report_settings *)settings};
    int code = check_settings(job.settings);
    esp_dataset *data[2] = {NULL, NULL};
    if (code == CLI_OK) code = job.settings->pairs != NULL ? make_pairs(job.settings, data) : make_report(&job);
    esp_dataset_free(data[0]);
    esp_dataset_free(data[1]);
    esp_dataset_free(job.data);
    esp_model_free(job.model);
    return code;
}

const cli_command cli_report = {
    .name = "report",
    .usage = "-o FILE MODEL [DATA] | -o FILE --pairs FILE DATA [QUERIES]",
    .summary = "a page to look at: the model, its quality, what decides",
    .text =
        "Writes one HTML file about MODEL that needs nothing besides itself: what the model is, and the fragments, "
        "patterns and features that decide in it, drawn.\n"
        "With DATA, also what the model says about them: where the examples have targets how good that is, with the "
        "confusion matrix; how the scores are spread and whether they can be trusted; examples, errors first, with "
        "each node coloured by its share in the decision; and what the data are like, with duplicates.\n"
        "With --pairs, instead of a model, pairs of trees of DATA side by side, or queries and what a search found for "
        "them, with the nodes coloured that both have.\n"
        "The page holds texts of the data; hand it on as you would the data. Any browser shows and prints it.",
    .examples = "espalier report questions.model test.jsonl -o questions.html\n"
                "espalier report questions.model -o - > model.html\n"
                "espalier report --pairs pairs.tsv --id id functions.jsonl -o clones.html",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 2,
    .settings_size = sizeof(report_settings),
    .run = run_report};
