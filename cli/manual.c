/* The man page, in roff, from the tables of commands, options, formats, kernels and learners. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Text that roff prints as it is: a hyphen stays a hyphen that can be copied, a leading dot is no request. */
static void print_roff(const char *text, size_t size)
{
    bool start = true;
    for (size_t i = 0; i < size; i++) {
        if (start && (text[i] == '.' || text[i] == '\'')) fputs("\\&", stdout);
        start = text[i] == '\n';
        if (text[i] == '\\') fputs("\\e", stdout);
        else if (text[i] == '-') fputs("\\-", stdout);
        else if (text[i] == '\'') fputs("\\(aq", stdout);
        else if (text[i] == '^') fputs("\\(ha", stdout);
        else putchar(text[i]);
    }
}

static void print_text(const char *text) { print_roff(text, strlen(text)); }

static void print_paragraphs(const char *text)
{
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");
        fputs(".PP\n", stdout);
        print_roff(text, size);
        putchar('\n');
        text += size + (text[size] == '\n');
    }
}

static void print_options(const cli_option *table)
{
    for (const cli_option *o = table; o->name != NULL; o++) {
        fputs(".TP\n", stdout);
        if (o->letter != 0 && o->name[1] != '\0') printf("\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB", stdout);
        print_text(cli_dashes(o));
        print_text(o->name);
        fputs("\\fR", stdout);
        if (o->argument != NULL) printf(" \\fI%s\\fR", o->argument);
        putchar('\n');
        print_text(o->help);
        if (o->default_value != NULL) printf(" (default %s)", o->default_value);
        fputs(".\n", stdout);
    }
}

static void print_command(const cli_command *command)
{
    printf(".SS espalier %s ", command->name);
    print_text(command->usage);
    putchar('\n');
    print_paragraphs(command->text);
    print_options(command->options);
    if (command->learns) fputs(".PP\nTakes the settings of the learner; see LEARNERS.\n", stdout);
    if (command->reads) fputs(".PP\nTakes the options for reading data.\n", stdout);
    fputs(".PP\n.nf\n", stdout);
    print_text(command->examples);
    fputs("\n.fi\n", stdout);
}

static void print_kernels(void)
{
    fputs(".SH KERNELS\n"
          "A kernel expression is built from \\fIname\\fR(\\fIcolumn\\fR, \\fIparameter\\fR=\\fIvalue\\fR, ...), sums, "
          "products, numbers as weights, whole powers with \\(ha, parentheses, and \\fBnorm\\fR(...). The column may "
          "be left out when only one fits.\n",
          stdout);
    const char *name, *help;
    for (size_t k = 0; (name = esp_kernel_name(k, &help)) != NULL; k++) {
        printf(".TP\n\\fB%s\\fR\n", name);
        print_text(help);
        putchar('\n');
        const esp_parameter_info *p;
        for (size_t i = 0; (p = esp_kernel_parameter(k, i)) != NULL; i++) {
            fputs(".br\n\\fI", stdout);
            print_text(p->name);
            fputs("\\fR (", stdout);
            print_text(p->range);
            if (p->default_value[0] != '\0') fputs("; default ", stdout), print_text(p->default_value);
            fputs("): ", stdout);
            print_text(p->help);
            putchar('\n');
        }
    }
}

static void print_learners(void)
{
    fputs(".SH LEARNERS\n", stdout);
    const char *name, *help;
    for (size_t l = 0; (name = esp_learner_name(l, &help)) != NULL; l++) {
        printf(".SS %s\n", name);
        print_text(help);
        putchar('\n');
        print_options(cli_learner_options(l));
    }
}

static void print_formats(void)
{
    fputs(".PP\nFormats are", stdout);
    const char *name;
    for (size_t i = 0; (name = esp_format_at(i, NULL)) != NULL; i++) {
        const bool last = esp_format_at(i + 1, NULL) == NULL;
        printf("%s\\fB%s\\fR", i == 0 ? " " : last ? " and " : ", ", name);
    }
    fputs("; files compressed by gzip or zstd are read as they are.\n", stdout);
}

void cli_manual(void)
{
    printf(".TH ESPALIER 1 \"\" \"espalier %s\" \"User Commands\"\n"
           ".SH NAME\nespalier \\- learning from trees and sequences with structural kernels\n"
           ".SH SYNOPSIS\n.B espalier\n.I COMMAND\n[\\fIOPTION\\fR]... [\\fIFILE\\fR]...\n"
           ".br\n.B espalier help\n[\\fICOMMAND\\fR]\n"
           ".br\n.B espalier \\-\\-version\n|\n.B \\-\\-man\n|\n.B \\-\\-completion bash\n"
           ".SH DESCRIPTION\n"
           "Results go to standard output, separated by TABs; messages go to standard error and begin with the name "
           "of the command and, where input is at fault, with file, line and column. A progress bar is shown only if "
           "standard error is a terminal. The file name \\fB\\-\\fR stands for standard input or output. Output files "
           "appear complete or not at all. Options may stand before or behind the files; \\fB\\-\\-\\fR ends them.\n"
           ".SH COMMANDS\n",
           esp_version());
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) print_command(*c);
    fputs(".SH OPTIONS FOR READING DATA\n", stdout);
    print_options(cli_reading_options);
    print_formats();
    fputs(".SH COMMON OPTIONS\n", stdout);
    print_options(cli_common_options);
    print_kernels();
    print_learners();
    fputs(".SH EXIT STATUS\n"
          ".TP\n.B 0\nsuccess\n"
          ".TP\n.B 1\nfailure: the data, the file system, the memory, or a value too large for a number\n"
          ".TP\n.B 2\nusage: a wrong command, option, kernel expression or column\n",
          stdout);
}
