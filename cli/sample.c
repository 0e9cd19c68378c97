/* espalier sample: labelled trees from a probabilistic grammar. */
#include "cli.h"

typedef struct sample_settings {
    cli_settings common;
    const char *grammar, *output;
    uint64_t count;
    esp_format to;
} sample_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "grammar", .letter = 'g', .kind = CLI_TEXT, .offset = offsetof(sample_settings, grammar),
     .argument = "FILE", .help = "the grammar to draw from"},
    {.name = "count", .letter = 'n', .kind = CLI_NUMBER, .offset = offsetof(sample_settings, count), .argument = "N",
     .most = UINT32_MAX, .help = "how many trees to draw"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(sample_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = "to", .kind = CLI_FORMAT, .offset = offsetof(sample_settings, to), .argument = "FORMAT",
     .help = "format to write (default: by the ending of the output file; jsonl on standard output)"},
    {.name = NULL}};
/* clang-format on */

static int run_sample(const cli_settings *settings)
{
    const sample_settings *s = (const sample_settings *)settings;
    if (s->grammar == NULL) return cli_usage("--grammar FILE is missing");
    if (s->count == 0) return cli_usage("--count N is missing: it says how many trees to draw, at least 1");
    const int code = cli_check_output(s->output, &s->common);
    if (code != CLI_OK) return code;
    const esp_run run = cli_run(settings);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = esp_sample_write(s->grammar, (size_t)s->count, settings->seed, &run,
                                               s->output != NULL ? s->output : "-", s->to, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(settings, "%zu trees drawn in %.3f s", (size_t)s->count, cli_seconds() - began);
    return CLI_OK;
}

const cli_command cli_sample = {
    .name = "sample",
    .usage = "--grammar FILE --count N",
    .summary = "labelled trees drawn from a grammar",
    .text = "Draws trees from a probabilistic grammar and writes each with its label and its words. The same --seed "
            "gives the same trees. They are written as they are drawn, so that a learner can read millions from a "
            "pipe.",
    .examples = "espalier sample --grammar examples/questions.grammar --count 2000 -o questions.jsonl",
    .options = options,
    .settings_size = sizeof(sample_settings),
    .run = run_sample};
