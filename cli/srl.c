/* espalier srl: examples for semantic role labelling. */
#include "cli.h"

#include <stdlib.h>

typedef struct srl_settings {
    cli_settings common;
    int task, unary; /* 1 + index into the choices */
    bool no_mark, split, full_roles, skip_bad;
    const char *documents, *sample, *output, *features;
    uint64_t limit;
    esp_format to;
} srl_settings;

static const char *const tasks[] = {"boundary", "role", NULL};
static const char *const unary[] = {"top", "all", NULL};

/* clang-format off */
static const cli_option options[] = {
    {.name = "task", .kind = CLI_CHOICE, .offset = offsetof(srl_settings, task), .argument = "TASK",
     .default_value = "boundary", .choices = tasks,
     .help = "boundary: whether a constituent is an argument; role: which one an argument is"},
    {.name = "unary", .kind = CLI_CHOICE, .offset = offsetof(srl_settings, unary), .argument = "NODES",
     .default_value = "top", .choices = unary,
     .help = "of a unary chain that spans an argument, the topmost node is one, or all are"},
    {.name = "no-mark", .kind = CLI_FLAG, .offset = offsetof(srl_settings, no_mark),
     .help = "leave the labels of argument and predicate without -B and -P"},
    {.name = "split", .kind = CLI_FLAG, .offset = offsetof(srl_settings, split),
     .help = "write two more trees: the path to the constituent without what is below it, and the constituent alone"},
    {.name = "full-roles", .kind = CLI_FLAG, .offset = offsetof(srl_settings, full_roles),
     .help = "roles as they are, such as ARGM-TMP and R-ARG0, instead of ARGM and ARG0"},
    {.name = "documents", .kind = CLI_TEXT, .offset = offsetof(srl_settings, documents), .argument = "FILE",
     .help = "use only the documents listed there, a name in each line"},
    {.name = "limit", .kind = CLI_NUMBER, .offset = offsetof(srl_settings, limit), .argument = "N", .least = 1,
     .most = UINT32_MAX, .help = "stop after so many examples"},
    {.name = "sample", .kind = CLI_TEXT, .offset = offsetof(srl_settings, sample), .argument = "P",
     .help = "keep each example with this probability, by the random numbers of --seed"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(srl_settings, output), .argument = "FILE",
     .help = "where to write (default: standard output)"},
    {.name = "to", .kind = CLI_FORMAT, .offset = offsetof(srl_settings, to), .argument = "FORMAT",
     .help = "jsonl or svmtk (default: by the ending of the output file; jsonl on standard output)"},
    {.name = "features", .kind = CLI_TEXT, .offset = offsetof(srl_settings, features), .argument = "FILE",
     .help = "with svmtk: where to write the number and name of each feature"},
    {.name = "skip-bad", .kind = CLI_FLAG, .offset = offsetof(srl_settings, skip_bad),
     .help = "skip predicates and sentences that are wrong, and say how many"},
    {.name = NULL}};
/* clang-format on */

static int parse_sample(const char *text, double *value)
{
    char *end = NULL;
    if (text == NULL) return CLI_OK;
    if ((*text >= '0' && *text <= '9') || *text == '.') *value = strtod(text, &end);
    if (end != NULL && end != text && *end == '\0' && *value > 0 && *value <= 1) return CLI_OK;
    return cli_usage("--sample must be a number above 0 and at most 1, not '%s'", text);
}

/* Whether the path has an ending of SVM-light-TK, the one format besides JSON Lines that examples are written in. */
static bool ends_as_svmtk(const char *path)
{
    esp_format_info info;
    for (size_t i = 0; esp_format_at(i, &info) != NULL; i++)
        for (size_t k = 0; info.format == ESP_FORMAT_SVMTK && info.endings[k] != NULL; k++)
            if (cli_ends_with(path, info.endings[k])) return true;
    return false;
}

static esp_format format_of(const srl_settings *s)
{
    if (s->to != ESP_FORMAT_AUTO || s->output == NULL) return s->to;
    return ends_as_svmtk(s->output) ? ESP_FORMAT_SVMTK : ESP_FORMAT_JSONL;
}

/* Neither the sentences nor the list of documents may be replaced by what is made of them. */
static int check_places(const srl_settings *s)
{
    char *list[] = {(char *)(uintptr_t)s->documents};
    const cli_settings documents = {.operand = list, .operands = s->documents != NULL};
    const int code =
        cli_check_places("the examples", s->output != NULL ? s->output : "-", "the features", s->features, &s->common);
    if (code != CLI_OK) return code;
    return cli_check_places("the examples", s->output, "the features", s->features, &documents);
}

static const char *ending(size_t count) { return count == 1 ? "" : "s"; }

static void tell(const srl_settings *s, const esp_srl_counts *c, double seconds)
{
    const cli_settings *common = &s->common;
    if (c->bad > 0)
        cli_note(common, "skipped %zu bad predicate%s or sentence%s; the first: %s", c->bad, ending(c->bad),
                 ending(c->bad), c->first_bad);
    if (c->unknown_documents > 0)
        cli_note(common, "%s: %zu of the documents listed %s not in the data, such as %s", s->documents,
                 c->unknown_documents, c->unknown_documents == 1 ? "is" : "are", c->first_unknown);
    if (c->no_constituent + c->around + c->repeated + c->overlapping > 0)
        cli_note(common,
                 "of %zu argument%s, %zu have no constituent, %zu cover the predicate, %zu repeat the span of another, "
                 "%zu overlap with another",
                 c->arguments, ending(c->arguments), c->no_constituent, c->around, c->repeated, c->overlapping);
    cli_note(common, "%zu example%s, %zu of arguments, from %zu predicate%s in %zu sentence%s", c->examples,
             ending(c->examples), c->positives, c->predicates, ending(c->predicates), c->sentences,
             ending(c->sentences));
    if (c->examples == 0 && s->sample != NULL)
        cli_note(common, "nothing was written: --sample %s has left no example", s->sample);
    cli_detail(common, "%.3f s, %.0f examples per second", seconds, (double)c->examples / (seconds > 0 ? seconds : 1));
}

static int run_srl(const cli_settings *settings)
{
    const srl_settings *s = (const srl_settings *)settings;
    esp_srl_options wanted = {.task = s->task == 2 ? ESP_SRL_ROLE : ESP_SRL_BOUNDARY,
                              .unary_all = s->unary == 2,
                              .no_mark = s->no_mark,
                              .split = s->split,
                              .full_roles = s->full_roles,
                              .skip_bad = s->skip_bad,
                              .documents = s->documents,
                              .limit = (size_t)s->limit,
                              .seed = settings->seed,
                              .to = format_of(s),
                              .features = s->features};
    int code = parse_sample(s->sample, &wanted.sample);
    if (code == CLI_OK) code = check_places(s);
    if (code != CLI_OK) return code;
    const esp_run run = cli_run(settings);
    const double began = cli_seconds();
    esp_srl_counts counts;
    esp_error error;
    const esp_status status = esp_srl_write((const char *const *)settings->operand, settings->operands, &wanted, &run,
                                            s->output != NULL ? s->output : "-", &counts, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    tell(s, &counts, cli_seconds() - began);
    return CLI_OK;
}

const cli_command cli_srl = {
    .name = "srl",
    .usage = "DATA...",
    .summary = "examples for semantic role labelling",
    .text = "Reads sentences with predicates and arguments (.srl files) and writes an example for every constituent of "
            "a predicate's sentence: the piece of the tree that connects the two, and named features. The examples "
            "appear as they are made, so that a learner can read them from a pipe.",
    .examples = "espalier srl examples/mary.srl -o mary.jsonl\n"
                "espalier srl --task role --documents train.docs ewt.srl.gz -o roles.jsonl",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .settings_size = sizeof(srl_settings),
    .run = run_srl};
