/* espalier sample: labelled trees from a probabilistic grammar, or targets for
 * given examples from a Gaussian process. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

typedef struct sample_settings {
    cli_settings common;
    const char *grammar, *process, *noise, *output;
    uint64_t count;
    esp_format to;
} sample_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "grammar", .letter = 'g', .kind = CLI_TEXT, .offset = offsetof(sample_settings, grammar),
     .argument = "FILE", .help = "the grammar to draw from"},
    {.name = "count", .letter = 'n', .kind = CLI_NUMBER, .offset = offsetof(sample_settings, count), .argument = "N",
     .least = 1, .most = UINT32_MAX, .help = "how many trees to draw"},
    {.name = "gp", .kind = CLI_TEXT, .offset = offsetof(sample_settings, process), .argument = "EXPR",
     .help = "draw targets for DATA from a Gaussian process with this kernel"},
    {.name = "noise", .kind = CLI_TEXT, .offset = offsetof(sample_settings, noise), .argument = "VARIANCE",
     .help = "with --gp: variance of the noise that is added (default 0)"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(sample_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = "to", .kind = CLI_FORMAT, .offset = offsetof(sample_settings, to), .argument = "FORMAT",
     .help = "format to write (default: by the ending of the output file; jsonl on standard output)"},
    {.name = NULL}};
/* clang-format on */

static int sample_trees(const sample_settings *s)
{
    const esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = esp_sample_write(s->grammar, (size_t)s->count, s->common.seed, &run,
                                               s->output != NULL ? s->output : "-", s->to, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "%zu trees drawn in %.3f s", (size_t)s->count, cli_seconds() - began);
    return CLI_OK;
}

static int draw_targets(const sample_settings *s, const esp_kernel *kernel, const esp_dataset *data, double noise)
{
    const esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    double jitter;
    const esp_status status = esp_sample_gp_write(kernel, data, noise, s->common.seed, &run,
                                                  s->output != NULL ? s->output : "-", s->to, &jitter, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(&s->common, "%zu targets drawn and written in %.3f s", esp_dataset_count(data), cli_seconds() - began);
    if (jitter > 0.0)
        cli_note(&s->common,
                 "the kernel has no Cholesky factor, as examples are equal or nearly so; %.3g was added to its "
                 "diagonal",
                 jitter);
    return CLI_OK;
}

static int sample_targets(const sample_settings *s)
{
    char *end = NULL;
    const double noise = s->noise != NULL ? strtod(s->noise, &end) : 0.0;
    if (end != NULL && (end == s->noise || *end != '\0' || !(noise >= 0.0) || isinf(noise)))
        return cli_usage("--noise takes a variance, a number >= 0, not '%s'", s->noise);
    esp_kernel *kernel = NULL;
    esp_dataset *data = NULL;
    int code = cli_kernel(s->process, &kernel);
    if (code == CLI_OK) code = cli_check_output(s->output, &s->common);
    if (code == CLI_OK) code = cli_read(&s->common, s->common.operand[0], &data);
    if (code == CLI_OK) cli_kernel_notes(&s->common, kernel, data, NULL);
    if (code == CLI_OK) code = draw_targets(s, kernel, data, noise);
    esp_dataset_free(data);
    esp_kernel_free(kernel);
    return code;
}

static int run_sample(const cli_settings *settings)
{
    const sample_settings *s = (const sample_settings *)settings;
    if (s->process != NULL) {
        if (s->grammar != NULL) return cli_usage("--gp draws targets and --grammar trees; give one of them");
        if (s->count != 0) return cli_usage("--gp draws one target for each example of DATA; --count is for --grammar");
        if (settings->operands == 0) return cli_usage("DATA is missing: the examples that --gp draws targets for");
        return sample_targets(s);
    }
    if (s->grammar == NULL) return cli_usage("--grammar FILE or --gp EXPR is missing");
    if (s->noise != NULL) return cli_usage("--noise is for --gp");
    if (settings->from != ESP_FORMAT_AUTO || settings->target != NULL || settings->clean || settings->skip_bad ||
        settings->lowercase || settings->digits)
        return cli_usage("the options for reading data are for --gp: --grammar reads none");
    if (settings->operands > 0)
        return cli_usage("'%s' is one argument too many: --grammar reads no data", settings->operand[0]);
    if (s->count == 0) return cli_usage("--count N is missing: it says how many trees to draw, at least 1");
    const int code = cli_check_output(s->output, settings);
    return code == CLI_OK ? sample_trees(s) : code;
}

const cli_command cli_sample = {
    .name = "sample",
    .usage = "{--grammar FILE --count N | --gp EXPR DATA}",
    .summary = "trees drawn from a grammar, or targets from a Gaussian process",
    .text =
        "Draws trees from a probabilistic grammar and writes each with its label and its words. The same --seed "
        "gives the same trees. They are written as they are drawn, so that a learner can read millions from a "
        "pipe.\n"
        "With --gp, it writes the examples of DATA with a target drawn from a Gaussian process whose covariances are "
        "the values of the kernel, plus --noise. It takes the place of the target that DATA has, or is called 'y'. "
        "This "
        "takes a matrix of all examples by all examples, which is compared with --memory before anything "
        "is computed.",
    .examples = "espalier sample --grammar examples/questions.grammar --count 2000 -o questions.jsonl\n"
                "espalier sample --gp 'sst(tree, lambda=0.001)' --noise 0.01 -o drawn.jsonl questions.jsonl",
    .options = options,
    .reads = true,
    .most = 1,
    .settings_size = sizeof(sample_settings),
    .run = run_sample};
