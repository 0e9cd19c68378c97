/* espalier: the table of commands, and what works without one. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_command *const cli_commands[] = {
    &cli_gram,    &cli_train,   &cli_predict, &cli_cv,  &cli_tune,  &cli_mine,   &cli_explain, &cli_report, &cli_info,
    &cli_convert, &cli_grammar, &cli_sample,  &cli_srl, &cli_index, &cli_search, &cli_pairs,   NULL};

static const cli_command *find_command(const char *name)
{
    const char *names[sizeof cli_commands / sizeof *cli_commands];
    size_t count = 0;
    for (; cli_commands[count] != NULL; count++) {
        if (strcmp(name, cli_commands[count]->name) == 0) return cli_commands[count];
        names[count] = cli_commands[count]->name;
    }
    const char *nearest = esp_nearest(name, names, count);
    if (nearest != NULL) cli_usage("unknown command '%s'; did you mean '%s'?", name, nearest);
    else cli_usage("unknown command '%s'", name);
    return NULL;
}

static int run_command(const cli_command *command, char **arguments)
{
    cli_begin(command->name);
    cli_settings *settings = calloc(1, command->settings_size);
    if (settings == NULL) return cli_fail("out of memory");
    char *line = cli_group_line(arguments);
    int code = cli_parse(command, arguments, settings);
    if (code == CLI_OK && settings->help) cli_command_help(command);
    else if (code == CLI_OK) {
        code = cli_group_begin(settings, line);
        if (code == CLI_OK) code = command->run(settings);
        code = cli_group_end(settings, code);
    }
    cli_device_end();
    free(line);
    free(settings);
    return code;
}

static int run_help(const char *name)
{
    if (name == NULL) {
        cli_help();
        return CLI_OK;
    }
    const cli_command *command = find_command(name);
    if (command == NULL) return CLI_USAGE;
    cli_command_help(command);
    return CLI_OK;
}

/* The options that stand in place of a command. */
static int run_option(char **arguments)
{
    static const char *const names[] = {"--help", "--version", "--man", "--completion"};
    const char *name = arguments[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return run_help(NULL);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("espalier %s\n", esp_version());
        return CLI_OK;
    }
    if (strcmp(name, "--man") == 0) {
        cli_manual();
        return CLI_OK;
    }
    if (strcmp(name, "--completion") == 0) return cli_completion(arguments[1]);
    if (strncmp(name, "--completion=", 13) == 0) return cli_completion(name + 13);
    const char *nearest = esp_nearest(name, names, sizeof names / sizeof *names);
    if (nearest != NULL) return cli_usage("unknown option '%s'; did you mean '%s'?", name, nearest);
    return cli_usage("unknown option '%s'; the command comes first, its options after it", name);
}

static int dispatch(char **arguments)
{
    const char *name = arguments[0];
    if (name == NULL) return cli_usage("a command is missing");
    if (strcmp(name, "help") == 0) return run_help(arguments[1]);
    if (name[0] == '-') return run_option(arguments);
    const cli_command *command = find_command(name);
    return command == NULL ? CLI_USAGE : run_command(command, arguments + 1);
}

int main(int argc, char **argv)
{
    const int code = cli_learners_begin();
    return cli_flush(code == CLI_OK ? dispatch(argv + (argc > 0)) : code);
}
