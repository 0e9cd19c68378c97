/* espalier grammar: grammar rules learned from trees, or compared with them. */
#include "cli.h"

#include <string.h>

typedef struct grammar_settings {
    cli_settings common;
    const char *output, *column, *check;
    uint64_t min_count;
    int classes;
    bool all;
} grammar_settings;

static const char *const class_names[] = {"none", "penn", "ud", NULL};

/* clang-format off */
static const cli_option options[] = {
    {.name = "min-count", .kind = CLI_NUMBER, .offset = offsetof(grammar_settings, min_count), .argument = "N",
     .default_value = "5", .least = 1, .most = UINT32_MAX,
     .help = "a child is optional where its production is seen so often without it"},
    {.name = "classes", .kind = CLI_CHOICE, .offset = offsetof(grammar_settings, classes), .argument = "NAME",
     .default_value = "none", .choices = class_names,
     .help = "labels that stand for each other: those of the Penn or of the UD tag set, or none"},
    {.name = "all", .kind = CLI_FLAG, .offset = offsetof(grammar_settings, all),
     .help = "write also frequent productions that have no optional child"},
    {.name = "column", .kind = CLI_TEXT, .offset = offsetof(grammar_settings, column), .argument = "NAME",
     .help = "the column of trees (default: the only one)"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(grammar_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = "check", .kind = CLI_TEXT, .offset = offsetof(grammar_settings, check), .argument = "FILE",
     .help = "learn nothing, and tell how the rules in FILE fit the trees"},
    {.name = NULL}};
/* clang-format on */

void cli_kernel_notes(const cli_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                      const esp_dataset *other)
{
    char *text = NULL;
    /* What fails here fails again, and is told, when the kernel is computed. */
    if (esp_kernel_warning(kernel, data, other, &text, NULL) != ESP_OK || text == NULL) return;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) cli_note(settings, "%s", line);
    esp_text_free(text);
}

static int check(const grammar_settings *s, const esp_dataset *data)
{
    esp_grammar_counts c;
    esp_error error;
    const esp_status status = esp_grammar_check(s->check, data, s->column, &c, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    printf("rules\t%zu\noptional\t%zu\nmatched\t%zu\nproductions\t%zu\nclasses\t%zu\nlabels\t%zu\nseen\t%zu\n", c.rules,
           c.optional, c.matched, c.productions, c.classes, c.members, c.seen);
    if (c.rules > 0 && c.matched == 0)
        cli_note(&s->common,
                 "none of the %zu rules with optional children matches one of the %zu productions of the trees",
                 c.rules, c.productions);
    return CLI_OK;
}

static int learn(const grammar_settings *s, const esp_dataset *data)
{
    const esp_grammar_options options_ = {
        .column = s->column, .min_count = (size_t)s->min_count, .classes = class_names[s->classes - 1], .all = s->all};
    esp_grammar_counts c;
    esp_error error;
    char *text = NULL;
    const esp_status status = esp_grammar_learn(data, &options_, &text, &c, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    cli_output output;
    int code = cli_output_open(&output, s->output != NULL ? s->output : "-");
    if (code == CLI_OK) {
        fputs(text, output.file);
        code = cli_output_close(&output, code);
    }
    if (code == CLI_OK) {
        cli_note(
            &s->common,
            "productions: %zu, seen at least %zu times: %zu; rules with optional children: %zu, such children: %zu",
            c.productions, (size_t)s->min_count, c.frequent, c.rules, c.optional);
        if (c.unwritable > 0)
            cli_note(&s->common, "%zu productions left out: their labels hold control characters", c.unwritable);
    }
    esp_text_free(text);
    return code;
}

static int run_grammar(const cli_settings *settings)
{
    const grammar_settings *s = (const grammar_settings *)settings;
    if (s->check != NULL && s->output != NULL) return cli_usage("--check writes no file; leave --output out");
    int code = cli_check_output(s->output, settings);
    if (code != CLI_OK) return code;
    esp_dataset *data = NULL;
    code = cli_read(settings, settings->operand[0], &data);
    if (code == CLI_OK) code = s->check != NULL ? check(s, data) : learn(s, data);
    esp_dataset_free(data);
    return code;
}

const cli_command cli_grammar = {
    .name = "grammar",
    .usage = "DATA",
    .summary = "grammar rules for the kernel gtk, learned from trees",
    .text =
        "Counts the productions of the trees and writes those that have optional children: a child is optional where "
        "its production is also seen without it, at least --min-count times. How often each was seen stands behind "
        "it as a comment. docs/grammars.md describes the file.\n"
        "With --check, prints how many of the rules in FILE match a production of the trees instead, and how many "
        "of the labels of its classes occur.",
    .examples = "espalier grammar --min-count 5 --classes penn trees.jsonl -o trees.rules\n"
                "espalier gram -k 'norm(gtk(grammar=trees.rules))' trees.jsonl -o gram.npy\n"
                "espalier grammar --check trees.rules other.jsonl",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(grammar_settings),
    .run = run_grammar};
