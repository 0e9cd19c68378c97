/* The command line. Each command is one file with a table of its options; the parser, --help, the man page and the
 * shell completion all read the same tables. To add a command, write its file and name it in main.c. */
#ifndef CLI_H
#define CLI_H

#include "espalier.h"

enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

typedef enum cli_kind {
    CLI_FLAG,   /* bool */
    CLI_TEXT,   /* const char * */
    CLI_NUMBER, /* uint64_t between least and most */
    CLI_SIZE,   /* uint64_t, bytes; written as 500M or 2G */
    CLI_FORMAT, /* esp_format */
    CLI_CHOICE  /* int, 1 + index into choices; 0 if not given */
} cli_kind;

typedef struct cli_option {
    const char *name; /* the long name; NULL ends a table */
    char letter;      /* the short name, or 0 */
    cli_kind kind;
    size_t offset;        /* where the value goes in the command's settings */
    const char *argument; /* its name in help texts; FILE and EXPR also steer the shell completion */
    const char *help;
    const char *fallback; /* the value if the option is not given; NULL: zero */
    uint64_t least, most;
    const char *const *choices; /* ends with NULL */
} cli_option;

/* What the options of all commands set; the first member of every command's own settings. */
typedef struct cli_settings {
    uint64_t threads, memory, seed;
    bool quiet, verbose, help;
    esp_format from; /* these four where the command reads data */
    const char *target;
    bool clean, skip_bad;
    char **operand;
    size_t operands;
} cli_settings;

typedef struct cli_command {
    const char *name;
    const char *usage;    /* options that must be given, and operands */
    const char *summary;  /* half a line */
    const char *text;     /* paragraphs, a line each */
    const char *examples; /* lines of shell */
    const cli_option *options;
    bool reads;         /* takes the options for reading data */
    size_t least, most; /* operands */
    size_t settings_size;
    int (*run)(const cli_settings *settings); /* returns the exit code */
} cli_command;

extern const cli_command cli_gram, cli_info, cli_convert, cli_sample;

/* The commands, ending with NULL, and the option tables that several of them share. */
extern const cli_command *const cli_commands[];
extern const cli_option cli_common_options[], cli_reading_options[];
/* The option tables of a command: table 0 is its own; NULL past the last. */
const cli_option *cli_table(const cli_command *command, size_t table);
const char *cli_table_title(const cli_command *command, size_t table);

/* Parses the arguments behind the command's name (ending with NULL; operands are gathered in place). CLI_OK, or
 * CLI_USAGE after saying what is wrong. With --help among them, settings->help is set and the rest left alone. */
int cli_parse(const cli_command *command, char **arguments, cli_settings *settings);
/* The name nearest to `wanted` among `count` names, or NULL if none is near enough to suggest. */
const char *cli_nearest(const char *wanted, const char *const *names, size_t count);

void cli_help(void);
void cli_command_help(const cli_command *command);
void cli_manual(void);
int cli_completion(const char *shell);

/* Messages on stderr, each one line that begins with "espalier COMMAND: ". */
void cli_begin(const char *command);
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* CLI_FAILURE */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2))); /* adds a hint to --help; CLI_USAGE */
int cli_error(esp_status status, const esp_error *error);                     /* tells the error; its exit code */
void cli_note(const cli_settings *settings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_detail(const cli_settings *settings, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes out what is left in stdout. Returns `code`, or CLI_FAILURE after a sentence if that fails. */
int cli_flush(int code);

/* How library calls run: threads, the memory limit, the progress bar, and Ctrl-C as cancellation. */
esp_run cli_run(const cli_settings *settings);
/* Erases the progress bar; to be called after the library returns and before anything is printed. */
void cli_run_end(void);
/* Lets Ctrl-C end the process at once again. */
void cli_interrupt_default(void);
double cli_seconds(void); /* of a clock that only runs forward */
uint64_t cli_memory_limit(const cli_settings *settings);
/* "237.8 MB", rounded up (a need) or down (a limit), so that a need that exceeds a limit also reads so. */
const char *cli_size_text(uint64_t bytes, bool up, char text[32]);

/* Reads a data file as the settings say, and tells what was skipped. */
int cli_read(const cli_settings *settings, const char *path, esp_dataset **out);
/* Says early that `path` (NULL and "-": standard output) cannot be written. */
int cli_check_output(const char *path);
/* Writes a dataset; the format defaults to the file's ending, and to JSON Lines on standard output. */
int cli_write(const esp_dataset *data, const char *path, esp_format format);
/* Whether the file name ends so, whatever the case. */
bool cli_ends_with(const char *path, const char *ending);

#endif
