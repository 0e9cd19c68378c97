/* espalier tune: the best values of settings and kernel parameters, by cross-validation over a grid. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct tune_settings {
    cli_learning learning;
    cli_list grid;
    uint64_t folds;
    const char *output;
    int by; /* 1 + index into metrics; 0: not given */
} tune_settings;

static const char *const metrics[] = {"accuracy", "rmse", "nlpd", NULL};

/* clang-format off */
static const cli_option options[] = {
    CLI_LEARNING_OPTIONS,
    CLI_MPI_OPTION,
    {.name = "grid", .kind = CLI_LIST, .offset = offsetof(tune_settings, grid),
     .argument = "NAME=V,V...", .help = "values to try for a setting of the learner or a parameter of the kernel; may "
     "be given several times"},
    {.name = "folds", .kind = CLI_NUMBER, .offset = offsetof(tune_settings, folds), .argument = "N", .default_value = "5",
     .least = 2, .most = UINT32_MAX, .help = "parts of the data, each predicted from the others"},
    {.name = "by", .kind = CLI_CHOICE, .offset = offsetof(tune_settings, by), .argument = "METRIC", .choices = metrics,
     .help = "what is best: accuracy of classes or rmse of numbers, which are the defaults, or nlpd of a gp"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(tune_settings, output),
     .argument = "FILE", .help = "train the best on all data, and write the model"},
    {.name = NULL}};
/* clang-format on */

typedef struct tune_job {
    const tune_settings *settings;
    cli_training training;
    char *name[CLI_LIST_MOST];
    esp_grid grid[CLI_LIST_MOST];
    esp_tuning *tuning;
} tune_job;

static int check_line(const tune_job *job, size_t line)
{
    const cli_learning *s = &job->settings->learning;
    const char *name = job->name[line];
    const size_t place = cli_setting_place(name);
    if (place < CLI_SETTINGS && s->value[place] != NULL)
        return cli_usage("'%s' is set by an option and by --grid; choose one", name);
    const char large[2] = {(char)toupper((unsigned char)name[0]), '\0'};
    if (name[1] == '\0' && place == CLI_SETTINGS && cli_setting_place(large) < CLI_SETTINGS)
        return cli_usage("--grid names '%s'; did you mean '%s'?", name, large);
    for (size_t l = 0; l < line; l++)
        if (strcmp(job->name[l], name) == 0) return cli_usage("--grid names '%s' twice", name);
    return CLI_OK;
}

static int parse_grid(tune_job *job)
{
    const cli_list *list = &job->settings->grid;
    if (list->count == 0) return cli_usage("--grid NAME=VALUE,VALUE... is missing, such as --grid C=0.1,1,10");
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->item[i], '=');
        if (equals == NULL || equals == list->item[i] || equals[1] == '\0')
            return cli_usage("--grid must be NAME=VALUE,VALUE..., not '%s'", list->item[i]);
        job->name[i] = strndup(list->item[i], (size_t)(equals - list->item[i]));
        if (job->name[i] == NULL) return cli_fail("out of memory");
        job->grid[i] = (esp_grid){.name = job->name[i], .values = equals + 1};
        const int code = check_line(job, i);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

/* The name of the metric that was asked for, or NULL. */
static const char *metric_of(const tune_settings *s) { return s->by > 0 ? metrics[s->by - 1] : NULL; }

static int search(tune_job *job)
{
    const tune_settings *s = job->settings;
    const cli_settings *common = &s->learning.common;
    const cli_training *training = &job->training;
    esp_error error;
    esp_run run = cli_training_how(training);
    cli_share(common, &run);
    const double began = cli_seconds();
    const esp_status status =
        esp_tune(training->learner, training->kernel, training->data, training->setting, training->settings, job->grid,
                 s->grid.count, metric_of(s), (size_t)s->folds, common->seed, &run, &job->tuning, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(common, "%zu combinations in %.3f s", esp_tuning_count(job->tuning), cli_seconds() - began);
    return CLI_OK;
}

static void print_results(const tune_job *job)
{
    for (size_t i = 0; i < esp_tuning_count(job->tuning); i++) {
        for (size_t l = 0; l < job->settings->grid.count; l++) printf("%s\t", esp_tuning_value(job->tuning, i, l));
        printf("%.17g\n", esp_tuning_score(job->tuning, i));
    }
    fflush(stdout);
}

/* The table for people: columns as wide as their widest value, a star at the best. */
static void show_results(const tune_job *job)
{
    const esp_tuning *t = job->tuning;
    const size_t lines = job->settings->grid.count, best = esp_tuning_best(t);
    const bool numbers = cli_training_of_numbers(&job->training);
    const char *metric = metric_of(job->settings) != NULL ? metric_of(job->settings) : numbers ? "rmse" : "accuracy";
    const bool higher = strcmp(metric, "accuracy") == 0;
    int width[CLI_LIST_MOST];
    for (size_t l = 0; l < lines; l++) {
        size_t most = strlen(job->name[l]);
        for (size_t i = 0; i < esp_tuning_count(t); i++) {
            const size_t size = strlen(esp_tuning_value(t, i, l));
            if (size > most) most = size;
        }
        width[l] = (int)most;
    }
    fputs("  ", stderr);
    for (size_t l = 0; l < lines; l++) fprintf(stderr, "%*s  ", width[l], job->name[l]);
    fprintf(stderr, "%8s\n", metric);
    for (size_t i = 0; i < esp_tuning_count(t); i++) {
        const double score = esp_tuning_score(t, i);
        fputs(i == best ? "* " : "  ", stderr);
        for (size_t l = 0; l < lines; l++) fprintf(stderr, "%*s  ", width[l], esp_tuning_value(t, i, l));
        fprintf(stderr, higher ? "%8.4f\n" : "%8.6g\n", higher ? score : -score);
    }
    fputs("* the best:", stderr);
    for (size_t l = 0; l < lines; l++) fprintf(stderr, " %s=%s", job->name[l], esp_tuning_value(t, best, l));
    fputc('\n', stderr);
}

/* The settings of the learner with the best values in place of their own; the kernel has its values already. */
static int train_best(tune_job *job)
{
    const esp_tuning *t = job->tuning;
    const size_t best = esp_tuning_best(t);
    cli_training *training = &job->training;
    for (size_t l = 0; l < job->settings->grid.count; l++)
        if (cli_learner_has(training->learner, job->name[l]))
            training->setting[training->settings++] =
                (esp_setting){.name = job->name[l], .value = esp_tuning_value(t, best, l)};
    return cli_training_run(training, esp_tuning_kernel(t, best), job->settings->output);
}

static int search_and_train(tune_job *job)
{
    const tune_settings *s = job->settings;
    int code = cli_training_read(&job->training, true);
    if (code == CLI_OK && !cli_training_of_numbers(&job->training))
        cli_note_rare(&s->learning.common, job->training.data, (size_t)s->folds);
    if (code == CLI_OK) code = search(job);
    if (code != CLI_OK || !cli_first()) return code;
    print_results(job);
    if (!s->learning.common.quiet) show_results(job);
    return s->output != NULL ? train_best(job) : CLI_OK;
}

static int run_tune(const cli_settings *settings)
{
    const tune_settings *s = (const tune_settings *)settings;
    tune_job job = {.settings = s};
    int code = cli_training_check(&s->learning, &job.training);
    if (code == CLI_OK) code = parse_grid(&job);
    if (code == CLI_OK && s->output != NULL && strcmp(s->output, "-") == 0)
        code = cli_usage("standard output is taken by the results; give -o FILE for the model");
    if (code == CLI_OK) code = cli_check_output(s->output, settings);
    if (code == CLI_OK) code = search_and_train(&job);
    esp_tuning_free(job.tuning);
    for (size_t i = 0; i < CLI_LIST_MOST; i++) free(job.name[i]);
    cli_training_end(&job.training);
    return code;
}

const cli_command cli_tune = {
    .name = "tune",
    .usage = "-k EXPR --grid NAME=V,V... DATA",
    .summary = "searches the best values for settings and kernel parameters",
    .text =
        "Tries every combination of the values in --grid by cross-validation. A grid names a setting of the "
        "learner, such as C, or a parameter of the kernel, such as lambda, which is then set wherever the "
        "expression has it.\n"
        "Prints a line for each combination: its values in the order of the --grid options, then the score, higher "
        "is better: the accuracy, or minus the root of the mean squared error; with --by nlpd minus the mean negative "
        "logarithm of the predictive density, which also tells how good the uncertainty of a gp is. A table that "
        "marks the best goes to standard error. With -o, the best is trained on all of DATA and the model written.\n"
        "With --mpi, the processes that mpirun or srun started take some of the kernels each, and some of the folds "
        "where there are fewer kernels than processes; the first one trains the best (docs/clusters.md).",
    .examples =
        "espalier tune -k 'norm(sst(tree))' --grid C=0.1,1,10,100 --grid lambda=0.2,0.4,0.8 questions.jsonl\n"
        "espalier tune -l gp -k '1*norm(seq(words))' --grid n=2,3,4 --by nlpd quality.jsonl\n"
        "espalier tune -q -k 'rbf(x)' --grid C=1,10 --grid gamma=0.01,0.1,1 -o best.model data.libsvm | sort -k 3 -g",
    .options = options,
    .reads = true,
    .learns = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(tune_settings),
    .run = run_tune};
