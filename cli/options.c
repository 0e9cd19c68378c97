/* The option parser: long and short options from tables, before, between or behind the operands. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 32 + CLI_LEARNERS * CLI_LEARNER_OPTIONS }; /* of one command; far more than any has */

/* clang-format off */
const cli_option cli_common_options[] = {
    {.name = "threads", .kind = CLI_NUMBER, .offset = offsetof(cli_settings, threads), .argument = "N", .most = 1024,
     .default_value = "0", .help = "threads to use; 0: one for each processor it may use. Results do not depend on it"},
    {.name = "memory", .kind = CLI_SIZE, .offset = offsetof(cli_settings, memory), .argument = "SIZE",
     .help = "most memory for what is read, and for a matrix or its rows, such as 500M or 2G"},
    {.name = "seed", .kind = CLI_NUMBER, .offset = offsetof(cli_settings, seed), .argument = "N", .most = UINT64_MAX,
     .default_value = "1", .help = "start of the random numbers"},
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .offset = offsetof(cli_settings, quiet),
     .help = "say nothing but errors"},
    {.name = "verbose", .letter = 'v', .kind = CLI_FLAG, .offset = offsetof(cli_settings, verbose),
     .help = "tell sizes and times on standard error"},
    {.name = "help", .letter = 'h', .kind = CLI_FLAG, .offset = offsetof(cli_settings, help),
     .help = "show this text"},
    {.name = NULL}};

const cli_option cli_reading_options[] = {
    {.name = "from", .kind = CLI_FORMAT, .offset = offsetof(cli_settings, from), .argument = "FORMAT",
     .help = "format of the data (default: by its content)"},
    {.name = "target", .kind = CLI_TEXT, .offset = offsetof(cli_settings, target), .argument = "FIELD",
     .help = "field that holds the target (default: y, or the label of formats that have one)"},
    {.name = "clean", .kind = CLI_FLAG, .offset = offsetof(cli_settings, clean),
     .help = "drop -NONE- traces and function tags from trees"},
    {.name = "lowercase", .kind = CLI_FLAG, .offset = offsetof(cli_settings, lowercase),
     .help = "lower-case the words of sequences"},
    {.name = "digits", .kind = CLI_FLAG, .offset = offsetof(cli_settings, digits),
     .help = "write every digit in the words of sequences as 0"},
    {.name = "skip-bad", .kind = CLI_FLAG, .offset = offsetof(cli_settings, skip_bad),
     .help = "skip examples that cannot be read, and say how many"},
    {.name = NULL}};
/* clang-format on */

static size_t learner_tables(const cli_command *command)
{
    size_t count = 0;
    while (command->learns && cli_learner_options(count) != NULL) count++;
    return count;
}

const cli_option *cli_table(const cli_command *command, size_t table)
{
    if (table == 0) return command->options;
    const size_t learners = learner_tables(command);
    if (table <= learners) return cli_learner_options(table - 1);
    table -= learners;
    if (table == 1 && command->reads) return cli_reading_options;
    return table == 1 + (size_t)command->reads ? cli_common_options : NULL;
}

const char *cli_table_title(const cli_command *command, size_t table)
{
    if (table == 0) return "Options";
    const size_t learners = learner_tables(command);
    if (table <= learners) return cli_learner_title(table - 1);
    table -= learners;
    return table == 1 && command->reads ? "Reading data" : "Common options";
}

const char *cli_dashes(const cli_option *option) { return option->name[1] == '\0' ? "-" : "--"; }

static const cli_option *find_option(const cli_command *command, const char *name, size_t size, char letter,
                                     size_t *index)
{
    *index = 0;
    for (size_t t = 0; cli_table(command, t) != NULL; t++)
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++, ++*index) {
            if (name == NULL ? o->letter == letter : strncmp(o->name, name, size) == 0 && o->name[size] == '\0')
                return o;
        }
    return NULL;
}

static int unknown_option(const cli_command *command, const char *name, size_t size)
{
    const char *names[MAX_OPTIONS];
    size_t count = 0;
    for (size_t t = 0; cli_table(command, t) != NULL; t++)
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++) names[count++] = o->name;
    char wanted[64] = "";
    if (size < sizeof wanted) memcpy(wanted, name, size);
    const char *nearest = wanted[0] == '\0' ? NULL : esp_nearest(wanted, names, count);
    if (nearest != NULL) return cli_usage("unknown option '--%s'; did you mean '--%s'?", wanted, nearest);
    return cli_usage("unknown option '--%.*s'", size < 200 ? (int)size : 200, name);
}

/* Whole numbers without a sign; strtoull alone would take "-1" and " 1". */
static bool parse_number(const char *text, uint64_t *value)
{
    if (*text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* As GNU tools have it: K, M, G, T (also KiB ...) are powers of 1024, KB, MB, GB, TB powers of 1000. */
static bool parse_size(const char *text, uint64_t *value)
{
    if ((*text < '0' || *text > '9') && *text != '.') return false;
    char *end;
    double bytes = strtod(text, &end);
    const char *const units = "KMGT", *unit = *end == '\0' ? NULL : strchr(units, *end == 'k' ? 'K' : *end);
    if (*end != '\0' && unit == NULL) return false;
    if (unit != NULL) {
        end++;
        const double base = strcmp(end, "B") == 0 ? 1000 : 1024;
        if (*end != '\0' && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0) return false;
        for (const char *u = units; u <= unit; u++) bytes *= base;
    }
    if (!(bytes >= 1 && bytes <= 9e18)) return false;
    *value = (uint64_t)bytes;
    return true;
}

static int set_number(const cli_option *option, const char *text, uint64_t *value)
{
    if (parse_number(text, value) && *value >= option->least && *value <= option->most) return CLI_OK;
    const bool digits = *text != '\0' && strspn(text, "0123456789") == strlen(text);
    if (option->most == UINT64_MAX && (!digits || *value < option->least))
        return cli_usage("--%s must be a whole number from %llu on, not '%s'", option->name,
                         (unsigned long long)option->least, text);
    return cli_usage("--%s must be a whole number from %llu to %llu, not '%s'", option->name,
                     (unsigned long long)option->least, (unsigned long long)option->most, text);
}

const char *cli_option_value(const cli_option *option, size_t index)
{
    return option->kind == CLI_FORMAT ? esp_format_at(index, NULL) : option->choices[index];
}

char *cli_option_values(const cli_option *option, const char *before)
{
    static const char between[] = ", ", last[] = " or ";
    const char *value;
    size_t room = strlen(before) + sizeof last;
    for (size_t i = 0; (value = cli_option_value(option, i)) != NULL; i++) room += strlen(value) + strlen(between);
    char *list = malloc(room);
    if (list == NULL) return NULL;
    strcpy(list, before);
    for (size_t i = 0; (value = cli_option_value(option, i)) != NULL; i++) {
        if (i > 0) strcat(list, cli_option_value(option, i + 1) != NULL ? between : last);
        strcat(list, value);
    }
    return list;
}

static int set_name(const cli_option *option, const char *text, void *value)
{
    if (option->kind == CLI_FORMAT && esp_format_find(text, value)) return CLI_OK;
    for (size_t i = 0; option->kind == CLI_CHOICE && option->choices[i] != NULL; i++) {
        if (strcmp(text, option->choices[i]) != 0) continue;
        *(int *)value = (int)i + 1;
        return CLI_OK;
    }
    char *values = cli_option_values(option, "");
    if (values == NULL) return cli_fail("out of memory");
    const int code = cli_usage("--%s must be %s, not '%s'", option->name, values, text);
    free(values);
    return code;
}

static int add_item(const cli_option *option, const char *text, cli_list *list)
{
    if (list->count == CLI_LIST_MOST)
        return cli_usage("--%s may be given at most %d times", option->name, CLI_LIST_MOST);
    list->item[list->count++] = text;
    return CLI_OK;
}

static int set_value(const cli_option *option, const char *text, cli_settings *settings)
{
    void *value = (char *)settings + option->offset;
    switch (option->kind) {
    case CLI_FLAG: *(bool *)value = true; return CLI_OK;
    case CLI_SWITCH:
        if (text != NULL && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
            return cli_usage("--%s is on, and --%s=0 is off; '%s' is neither", option->name, option->name, text);
        *(const char **)value = text != NULL ? text : "1";
        return CLI_OK;
    case CLI_TEXT:
        if (*text == '\0' && strcmp(option->argument, "FILE") == 0)
            return cli_usage("--%s needs the name of a file, but it is empty", option->name);
        *(const char **)value = text;
        return CLI_OK;
    case CLI_LIST: return add_item(option, text, value);
    case CLI_NUMBER: return set_number(option, text, value);
    case CLI_SIZE:
        if (parse_size(text, value)) return CLI_OK;
        return cli_usage("--%s must be a size such as 500M or 2G, not '%s'", option->name, text);
    case CLI_FORMAT:
    case CLI_CHOICE: break;
    }
    return set_name(option, text, value);
}

typedef struct parser {
    const cli_command *command;
    cli_settings *settings;
    char **next; /* the argument behind the one at hand */
    bool given[MAX_OPTIONS];
} parser;

/* One option; `value` is what stood behind it in the same argument, or NULL. */
static int take(parser *p, const cli_option *option, size_t index, const char *value)
{
    const char *dashes = cli_dashes(option);
    const bool alone = option->kind == CLI_FLAG || option->kind == CLI_SWITCH;
    if (!alone && option->kind != CLI_LIST && p->given[index])
        return cli_usage("%s%s is given twice", dashes, option->name);
    p->given[index] = true;
    if (option->kind == CLI_FLAG && value != NULL)
        return cli_usage("--%s takes no value, but '%s' was given", option->name, value);
    if (!alone && value == NULL) {
        value = *p->next;
        if (value == NULL) return cli_usage("%s%s needs a value: %s", dashes, option->name, option->argument);
        p->next++;
    }
    return set_value(option, value, p->settings);
}

static int take_long(parser *p, const char *name)
{
    const char *equals = strchr(name, '=');
    const size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    size_t index;
    const cli_option *option = find_option(p->command, name, size, 0, &index);
    if (option == NULL) return unknown_option(p->command, name, size);
    return take(p, option, index, equals != NULL ? equals + 1 : NULL);
}

static int unknown_letter(const cli_command *command, char letter)
{
    size_t index;
    const char other =
        (char)(islower((unsigned char)letter) ? toupper((unsigned char)letter) : tolower((unsigned char)letter));
    if (isalpha((unsigned char)letter) && find_option(command, NULL, 0, other, &index) != NULL)
        return cli_usage("unknown option '-%c'; did you mean '-%c'?", letter, other);
    return cli_usage("unknown option '-%c'", letter);
}

static int take_letters(parser *p, const char *letters)
{
    int code = CLI_OK;
    while (code == CLI_OK && *letters != '\0') {
        size_t index;
        const cli_option *option = find_option(p->command, NULL, 0, *letters, &index);
        if (option == NULL) return unknown_letter(p->command, *letters);
        letters++;
        if (option->argument == NULL) {
            code = take(p, option, index, NULL);
        } else {
            code = take(p, option, index, *letters != '\0' ? letters : NULL);
            break;
        }
    }
    return code;
}

static int check_operands(const cli_command *command, const cli_settings *settings)
{
    if (settings->operands > command->most) {
        const char *extra = settings->operand[command->most];
        if (command->most == 0) return cli_usage("'%s' is one argument too many: the command takes none", extra);
        return cli_usage("'%s' is one file too many: the usage is 'espalier %s %s'", extra, command->name,
                         command->usage);
    }
    if (settings->operands >= command->least) return CLI_OK;
    return cli_usage("a file is missing: the usage is 'espalier %s %s'", command->name, command->usage);
}

int cli_parse(const cli_command *command, char **arguments, cli_settings *settings)
{
    parser p = {.command = command, .settings = settings, .next = arguments};
    for (size_t t = 0; cli_table(command, t) != NULL; t++)
        for (const cli_option *o = cli_table(command, t); o->name != NULL; o++)
            if (o->default_value != NULL && set_value(o, o->default_value, settings) != CLI_OK) return CLI_USAGE;
    settings->operand = arguments;
    bool options = true;
    while (*p.next != NULL) {
        char *argument = *p.next++;
        int code = CLI_OK;
        if (!options || argument[0] != '-' || argument[1] == '\0') settings->operand[settings->operands++] = argument;
        else if (strcmp(argument, "--") == 0) options = false;
        else code = argument[1] == '-' ? take_long(&p, argument + 2) : take_letters(&p, argument + 1);
        if (code != CLI_OK || settings->help) return code;
    }
    size_t seed;
    settings->seeded = find_option(command, "seed", 4, 0, &seed) != NULL && p.given[seed];
    return check_operands(command, settings);
}
