/* The command line. Each command is one file with a table of its options; the parser, --help, the man page and the
 * shell completion all read the same tables. To add a command, write its file and name it in main.c. */
#ifndef CLI_H
#define CLI_H

#include "espalier.h"

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

typedef enum cli_kind {
    CLI_FLAG,   /* bool */
    CLI_SWITCH, /* const char *, "1" for --name and --name=1, "0" for --name=0; NULL if not given */
    CLI_TEXT,   /* const char * */
    CLI_LIST,   /* cli_list; may be given several times */
    CLI_NUMBER, /* uint64_t between least and most */
    CLI_SIZE,   /* uint64_t, bytes; written as 500M or 2G */
    CLI_FORMAT, /* esp_format */
    CLI_CHOICE  /* int, 1 + index into choices; 0 if not given */
} cli_kind;

enum { CLI_LIST_MOST = 16 };
typedef struct cli_list {
    const char *item[CLI_LIST_MOST];
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; /* the long name, or the letter where there is no other name; NULL ends a table */
    char letter;      /* the short name, or 0 */
    cli_kind kind;
    size_t offset;        /* where the value goes in the command's settings */
    const char *argument; /* its name in help texts; FILE and EXPR also steer the shell completion */
    const char *help;
    const char *default_value; /* the value if the option is not given; NULL: zero */
    uint64_t least, most;
    const char *const *choices; /* ends with NULL */
} cli_option;

/* What the options of all commands set; the first member of every command's own settings. */
typedef struct cli_settings {
    uint64_t threads, memory, seed;
    bool seeded; /* --seed was given */
    bool quiet, verbose, help;
    int device;      /* --device, where the command has it */
    bool mpi;        /* --mpi, likewise */
    esp_format from; /* these six where the command reads data */
    const char *target;
    bool clean, skip_bad, lowercase, digits;
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
    bool learns;        /* takes the settings of learners; its own settings begin with a cli_learning */
    size_t least, most; /* operands */
    size_t settings_size;
    int (*run)(const cli_settings *settings); /* returns the exit code */
} cli_command;

extern const cli_command cli_gram, cli_train, cli_predict, cli_cv, cli_tune, cli_mine, cli_explain, cli_info,
    cli_convert, cli_grammar, cli_sample, cli_srl;
extern const cli_command cli_report, cli_index, cli_search, cli_pairs;

/* The commands, ending with NULL, and the option tables that several of them share. */
extern const cli_command *const cli_commands[];
extern const cli_option cli_common_options[], cli_reading_options[];
/* The option tables of a command: table 0 is its own; NULL past the last. */
const cli_option *cli_table(const cli_command *command, size_t table);
const char *cli_table_title(const cli_command *command, size_t table);

/* Parses the arguments behind the command's name (ending with NULL; operands are gathered in place). CLI_OK, or
 * CLI_USAGE after saying what is wrong. With --help among them, settings->help is set and the rest left alone. */
int cli_parse(const cli_command *command, char **arguments, cli_settings *settings);

/* The values that an option of kind CLI_FORMAT or CLI_CHOICE takes, by index; NULL past the last. */
const char *cli_option_value(const cli_option *option, size_t index);
/* All of them, as "a, b or c" behind the text `before`, to be freed; NULL: memory is out. */
char *cli_option_values(const cli_option *option, const char *before);
/* How an option is written: "--name", or "-C" where the name is a single letter. */
const char *cli_dashes(const cli_option *option);

void cli_help(void);
void cli_command_help(const cli_command *command);
void cli_manual(void);
int cli_completion(const char *shell);

/* Messages on stderr, each one line that begins with "espalier COMMAND: ". */
void cli_begin(const char *command);
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* CLI_FAILURE */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2))); /* adds a hint to --help; CLI_USAGE */
int cli_error(esp_status status, const esp_error *error);                     /* tells the error; its exit code */
const char *cli_last_words(void);                                             /* the last sentence that was told */
void cli_note(const cli_settings *settings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_detail(const cli_settings *settings, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes out what is left in stdout. Returns `code`, or CLI_FAILURE after a sentence if that fails. */
int cli_flush(int code);

/* How library calls run: threads, the memory limit, the progress bar, and Ctrl-C as cancellation. */
esp_run cli_run(const cli_settings *settings);
/* Erases the progress bar; to be called after the library returns and before anything is printed. */
void cli_run_end(void);
bool cli_interrupted(void); /* whether Ctrl-C was pressed since cli_run */
/* Lets Ctrl-C end the process at once again. */
void cli_interrupt_default(void);
double cli_seconds(void); /* of a clock that only runs forward */
uint64_t cli_memory_limit(const cli_settings *settings);
/* "237.8 MB", rounded up (a need) or down (a limit), so that a need that exceeds a limit also reads so. */
const char *cli_size_text(uint64_t bytes, bool up, char text[32]);

/* Reads a data file as the settings say, and tells what was skipped. */
int cli_read(const cli_settings *settings, const char *path, esp_dataset **out);
/* Reads all operands, or with --mpi the share of this process in them. */
int cli_read_share(const cli_settings *settings, esp_dataset **out);
/* Says early that `path` (NULL and "-": standard output) cannot be written. */
int cli_check_output(const char *path, const cli_settings *settings);
/* Writes a dataset; the format defaults to the file's ending, and to JSON Lines on standard output. */
int cli_write(const esp_dataset *data, const char *path, esp_format format);
/* Whether the file name ends so, whatever the case. */
bool cli_ends_with(const char *path, const char *ending);
/* Parses a kernel expression; NULL is told as a missing -k. */
int cli_kernel(const char *expression, esp_kernel **out);
/* Notes what may be wrong about using a kernel on these data, such as grammar rules that match nothing; with `other`
 * (or NULL) only what is wrong about both. */
void cli_kernel_notes(const cli_settings *settings, const esp_kernel *kernel, const esp_dataset *data,
                      const esp_dataset *other);

/* ---- GPUs (device.c) */

extern const char *const cli_device_names[];
#define CLI_DEVICE_OPTION                                                                                              \
    {                                                                                                                  \
        .name = "device", .kind = CLI_CHOICE, .offset = offsetof(cli_settings, device), .argument = "NAME",            \
        .choices = cli_device_names,                                                                                   \
        .help = "gp: where large matrices are factored: auto (a GPU if there is one), cpu or cuda"                     \
    }
/* Lets the run use the GPU, if --device and the learner do and there is one; else says why not. */
void cli_device(const cli_settings *settings, const char *learner, size_t examples, esp_run *run);
void cli_device_end(void);

/* ---- search (search.c) */

/* The number that an option gives; CLI_USAGE after a sentence if it is none. */
int cli_similarity(const char *option, const char *text, double *value);
/* The index that the first operand names, or one that is made of its data where there is a kernel. */
int cli_index_open(const cli_settings *settings, const esp_kernel *kernel, const char *id, esp_index **out);
/* An example of an index: its name or its number. */
void cli_example(FILE *file, const esp_index *index, size_t example);

/* ---- several processes (group.c) */

#define CLI_MPI_OPTION                                                                                                 \
    {                                                                                                                  \
        .name = "mpi", .kind = CLI_FLAG, .offset = offsetof(cli_settings, mpi),                                        \
        .help = "under mpirun or srun: all processes divide the work"                                                  \
    }
/* With --mpi: opens the group of processes, which must all have the same arguments (see cli_group_line). All but the
 * first are quiet from then on. */
int cli_group_begin(cli_settings *settings, const char *line);
/* The arguments, a line each, if --mpi is among them; to be freed. NULL: it is not. */
char *cli_group_line(char **arguments);
/* Waits for the others, or tells them that this process failed. Returns the exit code. */
int cli_group_end(const cli_settings *settings, int code);
/* Lets the run divide its work among the group, if there is one. */
void cli_share(const cli_settings *settings, esp_run *run);
bool cli_first(void);                       /* whether this process writes the results */
bool cli_grouped(void);                     /* whether there are others */
const char *cli_group_name(char name[128]); /* "rank 1 on host: " where there are others, else "" */

/* ---- classes of data (classes.c) */

typedef struct cli_class {
    const char *name; /* the dataset's */
    size_t count;     /* examples */
} cli_class;
/* The different targets, most frequent first, to be freed; *count says how many. NULL: memory is out. */
cli_class *cli_classes(const esp_dataset *data, size_t *count);
/* Notes: targets to learn as classes that look like measured numbers, */
void cli_note_measured(const cli_settings *settings, const esp_dataset *data);
/* classes with fewer examples than folds, */
void cli_note_rare(const cli_settings *settings, const esp_dataset *data, size_t folds);
/* and data, read from `path`, all of whose classes are foreign to the model. */
void cli_note_unknown(const cli_settings *settings, const esp_metrics *metrics, const char *path);

/* A text file that appears complete or not at all; "-" is standard output. */
typedef struct cli_output {
    FILE *file;
    char *path, *temporary; /* temporary is NULL where `file` is written directly */
} cli_output;
int cli_output_open(cli_output *output, const char *path);
/* Ends it: the file appears if `code` is CLI_OK and all was written, else it leaves no trace. Returns the exit code. */
int cli_output_close(cli_output *output, int code);
/* A field of a line: TAB, line ends and backslashes are escaped, so that a line stays a line. */
void cli_field(FILE *file, const char *text);
/* A pattern or fragment as in data files; only line ends are changed, so that a line stays a line, and as a field of
 * one TABs. */
void cli_pattern(FILE *file, const char *text, bool field);

/* ---- learners (learner.c): their settings become options, from the library's tables */

enum { CLI_LEARNERS = 8, CLI_LEARNER_OPTIONS = 32, CLI_SETTINGS = 64 };

/* What train, cv and tune share; the first member of their settings. */
typedef struct cli_learning {
    cli_settings common;
    const char *kernel;
    int learner; /* 1 + its index; 0: not given */
    /* The settings of all learners, one place for each name. */
    const char *value[CLI_SETTINGS];
} cli_learning;

extern const char *cli_learner_names[CLI_LEARNERS + 1];
extern char cli_learner_help[300]; /* of the option that chooses one; made by cli_learners_begin */
/* clang-format off */
#define CLI_LEARNING_OPTIONS                                                                                            \
    {.name = "learner", .letter = 'l', .kind = CLI_CHOICE, .offset = offsetof(cli_learning, learner),                   \
     .argument = "NAME", .choices = (const char *const *)cli_learner_names,                                             \
     .help = cli_learner_help},                                                                                         \
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(cli_learning, kernel), .argument = "EXPR",   \
     .help = "kernel expression, such as 'norm(sst(tree, lambda=0.4))'"},                                               \
    CLI_DEVICE_OPTION
/* clang-format on */

/* Makes the tables below from the library's; before anything else. */
int cli_learners_begin(void);
const cli_option *cli_learner_options(size_t learner); /* NULL past the last learner */
const char *cli_learner_title(size_t learner);
bool cli_learner_has(const char *learner, const char *setting);
/* Whether it can do this with some settings. */
bool cli_learner_can(const char *learner, esp_capability capability);
const char *cli_learner_of(const cli_learning *settings); /* the name of the one that was chosen, or the default */
/* The place of a setting, or CLI_SETTINGS. */
size_t cli_setting_place(const char *name);

/* Something to learn: kernel, settings and data. Starts as zeros, or with a learner and a kernel that are known. */
typedef struct cli_training {
    const cli_learning *from;
    const char *learner;
    bool resumes; /* what is not given, also the seed, is a model's */
    esp_kernel *kernel;
    bool shared; /* the data are those of all operands, or this process's share of them */
    esp_dataset *data;
    esp_setting setting[CLI_SETTINGS + CLI_LIST_MOST];
    size_t settings;
    char seed[24];
    const char *checkpoint; /* NULL: none */
} cli_training;
int cli_training_check(const cli_learning *settings, cli_training *training); /* kernel and settings; reads no data */
/* The data, which must have a target if the learner needs one, or if its predictions are `judged` by it. */
int cli_training_read(cli_training *training, bool judged);
void cli_training_end(cli_training *training);
bool cli_training_of_numbers(const cli_training *training); /* whether the targets are numbers */
/* As cli_run; without --memory, half of the machine's is for the rows of the Gram matrix. With -v, the run tells its
 * steps. */
esp_run cli_learn_run(const cli_settings *settings);
/* The same for this training: with the GPU, if there is one to use. */
esp_run cli_training_how(const cli_training *training);
size_t cli_model_support(const esp_model *model); /* examples that a model keeps */
/* Trains on all data, writes the model and says in a line what it is. */
int cli_training_run(const cli_training *training, const esp_kernel *kernel, const char *path);
/* "svm: 6 classes; 3021 of 5452 examples are support vectors; written to ...", and what is odd about it. */
int cli_show_model(const cli_settings *settings, const esp_model *model, const char *path);

/* ---- checkpoints (checkpoint.c) */

/* CLI_USAGE after a sentence if a checkpoint (NULL: none) cannot be kept there beside the model. */
int cli_check_checkpoint(const char *path, const char *output, const cli_settings *settings);
/* It has served once the model is there. */
void cli_remove_checkpoint(const char *path, const cli_settings *settings);

/* ---- learning example by example (online.c) */

typedef struct cli_online {
    const char *checkpoint, *resume; /* files, or NULL */
    uint64_t every;                  /* examples between checkpoints; 0: not given */
} cli_online;
/* Learns from the stream of the operand and writes the model to `output`, which can be written. */
int cli_online_train(const cli_learning *learning, const cli_online *options, const char *output);

/* ---- predictions and how good they are (evaluate.c) */

typedef struct cli_columns {
    bool all, probability, latent;
    uint64_t samples;     /* draws behind the other columns */
    const double *sample; /* draw s of example i: [i * samples + s]; of classes, unless probability, their numbers */
} cli_columns;
/* CLI_USAGE after a sentence if the model (of this learner) cannot give what is wanted. */
int cli_check_columns(const esp_predictions *predictions, const char *learner, cli_columns columns);
int cli_write_predictions(const esp_predictions *predictions, const char *path, cli_columns columns);
void cli_show_metrics(const cli_settings *settings, const esp_metrics *metrics); /* the table, on stderr */
int cli_write_metrics(const esp_metrics *metrics, const char *path);             /* JSON */
/* Whether two paths name one file, which need not exist yet. */
bool cli_same_place(const char *first, const char *second);
/* Refuses two results in one place; paths may be NULL. */
int cli_check_places(const char *first, const char *first_path, const char *second, const char *second_path,
                     const cli_settings *settings);

#endif
