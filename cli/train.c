/* espalier train: learns from examples with targets, and writes a model. */
#include "cli.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef struct train_settings {
    cli_learning learning;
    const char *output;
    cli_online online;
} train_settings;

/* clang-format off */
static const cli_option options[] = {
    CLI_LEARNING_OPTIONS,
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(train_settings, output),
     .argument = "FILE", .help = "where to write the model"},
    {.name = "checkpoint", .kind = CLI_TEXT, .offset = offsetof(train_settings, online.checkpoint), .argument = "FILE",
     .help = "perceptron, and svm and svr with --solver folded: keep what is learned so far here; if the file exists, "
             "continue from it"},
    {.name = "every", .kind = CLI_NUMBER, .offset = offsetof(train_settings, online.every), .argument = "N", .least = 1,
     .most = UINT64_MAX, .help = "examples from one checkpoint to the next; 100,000 if not given"},
    CLI_MPI_OPTION,
    {.name = "resume", .kind = CLI_TEXT, .offset = offsetof(train_settings, online.resume), .argument = "FILE",
     .help = "perceptron: go on learning from this model, with its kernel and settings"},
    {.name = NULL}};
/* clang-format on */

static int check_output(const char *path, const cli_settings *settings)
{
    if (path == NULL) return cli_usage("-o FILE is missing: it says where the model is written");
    if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
        return cli_usage("a model is binary and not for a terminal; give -o FILE");
    return cli_check_output(path, settings);
}

/* Probabilities are fitted to the predictions of a cross-validation with five folds. */
static void note_probability(const cli_training *training)
{
    for (size_t i = 0; i < training->settings; i++)
        if (strcmp(training->setting[i].name, "probability") == 0 && strcmp(training->setting[i].value, "1") == 0)
            cli_note_rare(&training->from->common, training->data, 5);
}

static int train_at_once(const train_settings *s)
{
    const cli_settings *common = &s->learning.common;
    cli_training training = {.checkpoint = s->online.checkpoint, .shared = common->mpi || common->operands > 1};
    int code = cli_training_check(&s->learning, &training);
    if (code == CLI_OK) code = check_output(s->output, &s->learning.common);
    if (code == CLI_OK) code = cli_check_checkpoint(training.checkpoint, s->output, &s->learning.common);
    if (code == CLI_OK) code = cli_training_read(&training, false);
    if (code == CLI_OK && !cli_grouped()) note_probability(&training);
    if (code == CLI_OK) code = cli_training_run(&training, training.kernel, s->output);
    cli_training_end(&training);
    return code;
}

static int run_train(const cli_settings *settings)
{
    const train_settings *s = (const train_settings *)settings;
    const char *learner = cli_learner_of(&s->learning);
    const bool online = s->online.resume != NULL || cli_learner_can(learner, ESP_LEARNS_ONLINE);
    if (!online && s->online.every != 0)
        return cli_usage("--every is for the perceptron, which learns example by example; %s looks at all at once",
                         learner);
    if (!online && s->online.checkpoint != NULL && !cli_learner_can(learner, ESP_KEEPS_CHECKPOINTS))
        return cli_usage("--checkpoint is for the perceptron and for support vector machines; %s keeps none", learner);
    if (!online) return train_at_once(s);
    if (settings->mpi)
        return cli_usage("--mpi: the perceptron learns from one example after the other, in one process");
    if (settings->operands > 1) return cli_usage("%s learns from one file; '-' takes several from 'cat'", learner);
    const int code = check_output(s->output, settings);
    return code == CLI_OK ? cli_online_train(&s->learning, &s->online, s->output) : code;
}

const cli_command cli_train = {
    .name = "train",
    .usage = "{-k EXPR | --resume MODEL} -o MODEL DATA...",
    .summary = "learns from examples with targets, and writes a model",
    .text =
        "Trains a learner on DATA and writes a model file, which 'espalier predict' and 'espalier info' read. The "
        "file appears when training has succeeded; until then an older one stays as it is.\n"
        "The rows of the Gram matrix are kept in --memory (default: half of what the machine has); with less, "
        "training takes longer and gives the same model.\n"
        "With --solver folded, a support vector machine needs no rows and learns from millions of examples. It ends "
        "with "
        "a pass over all of them that measures the distance from the optimum. --solver auto uses it where it is "
        "faster. "
        "With --checkpoint it resumes after any interruption and ends with the same model.\n"
        "With --mpi, svm and svr learn with --solver folded over the processes that mpirun or srun started: each reads "
        "its share of the files and holds it in memory, and the model is the same (docs/clusters.md).\n"
        "Ctrl-C ends training without a model, or with --keep-partial with the model learned so far.\n"
        "A Gaussian process (gp) learns the hyperparameters of the kernel too, such as lambda and the weights of a "
        "sum, by "
        "maximising the likelihood; -v shows each step, and Ctrl-C keeps the best so far. Where the "
        "whole matrix does not fit into --memory, or with --solver iterative, it does without. See docs/gp.md.\n"
        "The perceptron takes one example after the other and holds no more than its model, so that DATA may be "
        "of any length, also '-' for standard input, which allows one epoch. A line now and then says how "
        "good the predictions were before learning from the example. With --checkpoint, the same command goes on after "
        "a stop of any kind and "
        "ends with the same model; then the checkpoint is removed. Remove it yourself to start anew. With --resume, "
        "a model learns from new data; settings that are given replace the model's (--average=0 switches one off).",
    .examples = "espalier train -k 'norm(sst(tree, lambda=0.4))' -C 10 -o questions.model questions.jsonl\n"
                "espalier train -l svr -k 'rbf(x, gamma=0.1)' --epsilon 0.05 -o price.model houses.libsvm\n"
                "espalier train -l gp -k '1*norm(sst(tree)) + 1*rbf(x)' --restarts 5 -o quality.model quality.jsonl\n"
                "espalier train -l perceptron -k 'sst(tree)' --checkpoint c -o days.model days.jsonl.gz\n"
                "espalier train --resume days.model -o days.model today.jsonl",
    .options = options,
    .reads = true,
    .learns = true,
    .least = 1,
    .most = SIZE_MAX,
    .settings_size = sizeof(train_settings),
    .run = run_train};
