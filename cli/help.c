/* Help texts, from the tables of options. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 79, INDENT = 26 };

/* Prints the words of a text; the cursor is at column `indent`, and so begin all lines. */
static void print_wrapped(const char *text, size_t indent)
{
    for (size_t at = indent; *text != '\0';) {
        const size_t size = strcspn(text, " \n");
        if (at > indent && at + 1 + size > WIDTH) printf("\n%*s", (int)indent, ""), at = indent;
        at += (size_t)printf("%s%.*s", at > indent ? " " : "", (int)size, text);
        text += size;
        if (*text == '\n') printf("\n%*s", (int)indent, ""), at = indent;
        if (*text != '\0') text++;
    }
    putchar('\n');
}

static void print_option(const cli_option *option)
{
    char left[64] = "      ";
    if (option->name[1] == '\0') snprintf(left, sizeof left, "  ");
    else if (option->letter != 0) snprintf(left, sizeof left, "  -%c, ", option->letter);
    snprintf(left + strlen(left), sizeof left - strlen(left), "%s%s%s%s", cli_dashes(option), option->name,
             option->argument != NULL ? " " : "", option->argument != NULL ? option->argument : "");
    char text[300];
    snprintf(text, sizeof text, "%s%s%s%s", option->help, option->default_value != NULL ? " (default " : "",
             option->default_value != NULL ? option->default_value : "", option->default_value != NULL ? ")" : "");
    if (strlen(left) + 2 > INDENT) printf("%s\n%*s", left, INDENT, "");
    else printf("%-*s", INDENT, left);
    print_wrapped(text, INDENT);
}

static void print_formats(void)
{
    char *text = cli_option_values(&(cli_option){.kind = CLI_FORMAT}, "FORMAT is ");
    if (text == NULL) return;
    printf("%*s", INDENT, "");
    print_wrapped(text, INDENT);
    free(text);
}

void cli_command_help(const cli_command *command)
{
    printf("Usage: espalier %s %s [OPTION]...\n\n", command->name, command->usage);
    print_wrapped(command->text, 0);
    for (size_t t = 0; cli_table(command, t) != NULL; t++) {
        printf("\n%s:\n", cli_table_title(command, t));
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++) print_option(o);
        if (cli_table(command, t) == cli_reading_options) print_formats();
    }
    printf("\nExamples:\n");
    for (const char *line = command->examples; *line != '\0';) {
        const size_t size = strcspn(line, "\n");
        printf("  %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

void cli_help(void)
{
    printf("Usage: espalier COMMAND [OPTION]... [FILE]...\n\n"
           "Learning from trees and sequences with structural kernels.\n\n"
           "Commands:\n");
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) printf("  %-10s %s\n", (*c)->name, (*c)->summary);
    printf("\n"
           "'espalier help COMMAND' or 'espalier COMMAND --help' tells more about a command.\n"
           "  --version            the version\n"
           "  --man                the whole manual as a man page\n"
           "  --completion bash    completion of commands and options for the shell\n");
}
