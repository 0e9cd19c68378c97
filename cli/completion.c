/* Completion for bash, from the tables of commands, options, formats and kernels. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Whether an option stands in one of the command's tables before table `end`. */
static bool table_has(const cli_command *command, size_t end, const char *name)
{
    for (size_t t = 0; t < end && cli_table(command, t) != NULL; t++)
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++)
            if (strcmp(o->name, name) == 0) return true;
    return false;
}

static void print_option_names(const cli_command *command)
{
    for (size_t t = 0; cli_table(command, t) != NULL; t++)
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++) {
            if (table_has(command, t, o->name)) continue; /* several learners may have it */
            printf(" %s%s", cli_dashes(o), o->name);
            if (o->letter != 0 && o->name[1] != '\0') printf(" -%c", o->letter);
        }
}

/* What may follow an option that takes a value. An option means the same in every command that has it. */
static void print_values(const cli_option *option)
{
    const char *name, *help;
    printf("    *:%s%s", cli_dashes(option), option->name);
    if (option->letter != 0 && option->name[1] != '\0') printf("|*:-%c", option->letter);
    fputs(") ", stdout);
    if (strcmp(option->argument, "FILE") == 0) {
        fputs("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")", stdout);
    } else if (strcmp(option->argument, "EXPR") == 0) {
        fputs("compopt -o nospace; COMPREPLY=($(compgen -W '", stdout);
        for (size_t k = 0; (name = esp_kernel_name(k, &help)) != NULL; k++) printf("%s( ", name);
        fputs("norm(' -- \"$word\"))", stdout);
    } else if (option->kind == CLI_FORMAT || option->kind == CLI_CHOICE) {
        fputs("COMPREPLY=($(compgen -W '", stdout);
        for (size_t i = 0; (name = cli_option_value(option, i)) != NULL; i++) printf(" %s", name);
        fputs("' -- \"$word\"))", stdout);
    } else {
        fputs(":", stdout);
    }
    fputs("; return ;;\n", stdout);
}

static bool told_before(const cli_command *const *command, const cli_option *option)
{
    for (const cli_command *const *c = cli_commands; c < command; c++)
        if (table_has(*c, SIZE_MAX, option->name)) return true;
    return false;
}

static void print_value_cases(void)
{
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        for (size_t t = 0; cli_table(*c, t) != NULL; t++)
            for (const cli_option *o = cli_table(*c, t); o->name != NULL; o++)
                if (o->argument != NULL && !told_before(c, o) && !table_has(*c, t, o->name)) print_values(o);
}

static void print_bash(void)
{
    fputs("# bash completion for espalier; load it with: source <(espalier --completion bash)\n"
          "_espalier()\n{\n"
          "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
          "  COMPREPLY=()\n"
          "  if ((COMP_CWORD == 1)) || [[ $command == help ]]; then\n"
          "    COMPREPLY=($(compgen -W 'help",
          stdout);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) printf(" %s", (*c)->name);
    fputs(" --help --version --man --completion' -- \"$word\"))\n    return\n  fi\n"
          "  # --option=value arrives as three words\n"
          "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "  case $command:$before in\n"
          "    --completion:*) COMPREPLY=($(compgen -W bash -- \"$word\")); return ;;\n",
          stdout);
    print_value_cases();
    fputs("  esac\n  if [[ $word == -* ]]; then\n    local options=\n    case $command in\n", stdout);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        printf("      %s) options='", (*c)->name);
        print_option_names(*c);
        fputs("' ;;\n", stdout);
    }
    fputs("    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "  else\n    compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n  fi\n}\n"
          "complete -F _espalier espalier\n",
          stdout);
}

int cli_completion(const char *shell)
{
    if (shell == NULL) return cli_usage("--completion needs the name of a shell: bash");
    if (strcmp(shell, "bash") != 0) return cli_usage("there is no completion for '%s', only for bash", shell);
    print_bash();
    return CLI_OK;
}
