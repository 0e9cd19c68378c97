/* espalier index: a collection prepared for search. */
#include "cli.h"

#include <string.h>

typedef struct index_settings {
    cli_settings common;
    const char *kernel, *output, *id;
    bool add;
} index_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(index_settings, kernel),
     .argument = "EXPR", .help = "kernel expression, such as 'norm(sst(tree, lambda=0.4))'"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(index_settings, output),
     .argument = "FILE", .help = "where to write the index"},
    {.name = "id", .kind = CLI_TEXT, .offset = offsetof(index_settings, id), .argument = "FIELD",
     .help = "the field that names examples (default: they are numbered from 1)"},
    {.name = "add", .kind = CLI_FLAG, .offset = offsetof(index_settings, add),
     .help = "append to the index FILE, with its kernel and its names"},
    {.name = NULL}};
/* clang-format on */

typedef struct index_job {
    const index_settings *settings;
    esp_kernel *kernel;
    esp_dataset *data;
    esp_index *old, *index;
} index_job;

static int check_settings(const index_settings *s)
{
    if (s->output == NULL) return cli_usage("-o FILE is missing: where to write the index");
    if (s->add && s->kernel != NULL) return cli_usage("--add takes the kernel of the index; leave -k out");
    if (s->add && s->id != NULL) return cli_usage("--add takes the names' field of the index; leave --id out");
    if (s->add && strcmp(s->output, "-") == 0) return cli_usage("--add needs the file of an index, not '-'");
    return cli_check_output(s->output, &s->common);
}

static int make_index(index_job *job)
{
    const index_settings *s = job->settings;
    const esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = s->add ? esp_index_add(job->old, job->data, &run, &job->index, &error)
                                     : esp_index_new(job->kernel, job->data, s->id, &run, &job->index, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "kernel %s", esp_index_kernel(job->index));
    cli_detail(&s->common, "%zu examples prepared in %.3f s", esp_index_count(job->index), cli_seconds() - began);
    return CLI_OK;
}

static int run_index(const cli_settings *settings)
{
    index_job job = {.settings = (const index_settings *)settings};
    const index_settings *s = job.settings;
    esp_error error;
    esp_status status = ESP_OK;
    int code = s->add ? CLI_OK : cli_kernel(s->kernel, &job.kernel);
    if (code == CLI_OK) code = check_settings(s);
    if (code == CLI_OK && s->add) {
        status = esp_index_read(s->output, NULL, &job.old, &error);
        if (status != ESP_OK) code = cli_error(status, &error);
    }
    if (code == CLI_OK) code = cli_read(settings, settings->operand[0], &job.data);
    if (code == CLI_OK && !s->add) cli_kernel_notes(settings, job.kernel, job.data, NULL);
    if (code == CLI_OK) code = make_index(&job);
    if (code == CLI_OK) {
        status = esp_index_write(job.index, s->output, &error);
        if (status != ESP_OK) code = cli_error(status, &error);
    }
    esp_index_free(job.index);
    esp_index_free(job.old);
    esp_dataset_free(job.data);
    esp_kernel_free(job.kernel);
    return code;
}

const cli_command cli_index = {
    .name = "index",
    .usage = "-k EXPR -o FILE DATA",
    .summary = "a collection prepared for search",
    .text =
        "Prepares the examples of DATA for 'espalier search' and 'espalier pairs', and writes them to one file. With "
        "one of the kernels st, sst and sasst, plain or normalised, the file is used where it lies: a search "
        "starts in milliseconds, and processes share it. Any other expression works too; a search then "
        "computes all values.\n"
        "--add appends examples to an index. The result is the same file as if all had been indexed at once.",
    .examples = "espalier index -k 'norm(sst(tree, lambda=0.4))' --id id -o functions.index functions.jsonl\n"
                "espalier index --add -o functions.index more.jsonl",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(index_settings),
    .run = run_index};
