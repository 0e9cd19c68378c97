/* espalier train: learns from examples with targets, and writes a model. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

typedef struct train_settings {
    cli_learning learning;
    const char *output;
} train_settings;

/* clang-format off */
static const cli_option options[] = {
    CLI_LEARNING_OPTIONS,
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(train_settings, output),
     .argument = "FILE", .help = "where to write the model"},
    {.name = NULL}};
/* clang-format on */

static int check_output(const char *path, const cli_settings *settings)
{
    if (path == NULL) return cli_usage("-o FILE is missing: it says where the model is written");
    if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
        return cli_usage("a model is binary and not for a terminal; give -o FILE");
    return cli_check_output(path, settings);
}

static int run_train(const cli_settings *settings)
{
    const train_settings *s = (const train_settings *)settings;
    cli_lesson lesson = {0};
    int code = cli_lesson_check(&s->learning, &lesson);
    if (code == CLI_OK) code = check_output(s->output, settings);
    if (code == CLI_OK) code = cli_lesson_read(&lesson);
    if (code == CLI_OK) code = cli_lesson_train(&lesson, lesson.kernel, s->output);
    cli_lesson_end(&lesson);
    return code;
}

const cli_command cli_train = {
    .name = "train",
    .usage = "-k EXPR -o MODEL DATA",
    .summary = "learns from examples with targets, and writes a model",
    .text = "Trains a learner on DATA and writes a model file, which 'espalier predict' and 'espalier info' read. The "
            "file appears when training has succeeded; until then an older one stays as it is.\n"
            "The rows of the Gram matrix are kept in --memory (default: half of what the machine has); with less, "
            "training takes longer and gives the same model.\n"
            "Ctrl-C ends training without a model, or with --keep-partial with the model learned so far.",
    .examples = "espalier train -k 'norm(sst(tree, lambda=0.4))' -C 10 -o questions.model questions.jsonl\n"
                "espalier train -l svr -k 'rbf(x, gamma=0.1)' --epsilon 0.05 -o price.model houses.libsvm",
    .options = options,
    .reads = true,
    .learns = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(train_settings),
    .run = run_train};
