/* espalier mine: the patterns that tell the classes apart. */
#include "cli.h"

typedef struct mine_settings {
    cli_settings common;
    const char *kernel, *output, *tau, *positive;
    int metric;
    uint64_t min_support, max_length, top;
    bool no_pruning;
} mine_settings;

static const char *const metrics[] = {"chi2", "gtest", "mi", NULL};

/* clang-format off */
static const cli_option options[] = {
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(mine_settings, kernel),
     .argument = "EXPR", .help = "what to look for, such as 'fseq(words, n=4, tau=3.8415)' or 'fsst(tree)'"},
    {.name = "positive", .kind = CLI_TEXT, .offset = offsetof(mine_settings, positive), .argument = "LABEL",
     .help = "the class to tell from the rest (default: the second of two)"},
    {.name = "metric", .kind = CLI_CHOICE, .offset = offsetof(mine_settings, metric), .argument = "NAME",
     .choices = metrics, .help = "how to measure: chi2, gtest or mi (default: chi2)"},
    {.name = "tau", .kind = CLI_TEXT, .offset = offsetof(mine_settings, tau), .argument = "N",
     .help = "least value of a pattern, on the scale of chi2 (default: tau of EXPR)"},
    {.name = "min-support", .kind = CLI_NUMBER, .offset = offsetof(mine_settings, min_support), .argument = "N",
     .least = 1, .most = UINT32_MAX,
     .help = "least number of examples that contain a pattern (default: support of EXPR)"},
    {.name = "max-length", .kind = CLI_NUMBER, .offset = offsetof(mine_settings, max_length), .argument = "N",
     .least = 1, .most = UINT32_MAX, .help = "most tokens or productions of a pattern (default: n of EXPR)"},
    {.name = "top", .kind = CLI_NUMBER, .offset = offsetof(mine_settings, top), .argument = "K",
     .least = 1, .most = UINT32_MAX, .help = "only the best K patterns (default: all that reach tau)"},
    {.name = "no-pruning", .kind = CLI_FLAG, .offset = offsetof(mine_settings, no_pruning),
     .help = "look also where no pattern can reach tau; prints the same, to compare"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(mine_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = NULL}};
/* clang-format on */

typedef struct mine_job {
    const mine_settings *settings;
    esp_kernel *kernel;
    esp_dataset *data;
    esp_patterns *patterns;
} mine_job;

static int mine(mine_job *job)
{
    const mine_settings *s = job->settings;
    const esp_mine_options given = {.metric = s->metric > 0 ? metrics[s->metric - 1] : NULL,
                                    .tau = s->tau,
                                    .min_support = (size_t)s->min_support,
                                    .max_length = (size_t)s->max_length,
                                    .top = (size_t)s->top,
                                    .positive = s->positive,
                                    .no_pruning = s->no_pruning};
    const esp_run run = cli_learn_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = esp_mine(job->kernel, job->data, &given, &run, &job->patterns, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    if (s->positive == NULL)
        cli_note(&s->common, "the positive class is '%s'; --positive names another",
                 esp_patterns_positive(job->patterns));
    uint64_t pruned;
    const uint64_t visited = esp_patterns_visited(job->patterns, &pruned);
    cli_detail(&s->common, "kernel %s", esp_kernel_text(job->kernel));
    cli_detail(&s->common, "%zu patterns of class %s; %llu counted, %llu not grown, in %.3f s",
               esp_patterns_count(job->patterns), esp_patterns_positive(job->patterns), (unsigned long long)visited,
               (unsigned long long)pruned, cli_seconds() - began);
    return CLI_OK;
}

static int write_patterns(const mine_job *job)
{
    const char *path = job->settings->output != NULL ? job->settings->output : "-";
    cli_output output;
    const int code = cli_output_open(&output, path);
    if (code != CLI_OK) return code;
    for (size_t i = 0; i < esp_patterns_count(job->patterns); i++) {
        size_t y;
        const size_t x = esp_patterns_examples(job->patterns, i, &y);
        fprintf(output.file, "%.17g\t%zu\t%zu\t", esp_patterns_value(job->patterns, i), x, y);
        cli_pattern(output.file, esp_patterns_text(job->patterns, i), true);
        putc('\n', output.file);
    }
    return cli_output_close(&output, CLI_OK);
}

static int run_mine(const cli_settings *settings)
{
    mine_job job = {.settings = (const mine_settings *)settings};
    int code = job.settings->kernel != NULL
                   ? cli_kernel(job.settings->kernel, &job.kernel)
                   : cli_usage("-k EXPR is missing: fseq(...) for sequences or fsst(...) for trees");
    if (code == CLI_OK) code = cli_check_output(job.settings->output, settings);
    if (code == CLI_OK) code = cli_read(settings, settings->operand[0], &job.data);
    if (code == CLI_OK) code = mine(&job);
    if (code == CLI_OK) code = write_patterns(&job);
    esp_patterns_free(job.patterns);
    esp_dataset_free(job.data);
    esp_kernel_free(job.kernel);
    return code;
}

const cli_command cli_mine = {
    .name = "mine",
    .usage = "-k EXPR DATA",
    .summary = "patterns that tell the classes apart",
    .text =
        "Prints the subsequences (fseq) or tree fragments (fsst) that occur in one class more often than chance would "
        "have it, the best first: chi-squared value, examples that contain the pattern, positive ones among them, "
        "and the pattern, separated by TABs.\n"
        "Two classes are told apart; where there are more, --positive names the one to tell from the rest. In a "
        "fragment, (NP ...) is a node whose children are left open.",
    .examples = "espalier mine -k 'fseq(words, n=3)' --positive LOC --target coarse --top 20 questions.jsonl\n"
                "espalier mine -k 'fsst(tree, n=4, support=5)' --positive HUM --target coarse questions.jsonl",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(mine_settings),
    .run = run_mine};
