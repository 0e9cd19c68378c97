/* espalier train, for learners that take one example after the other: the data are streamed and never held. A running
 * report tells how it goes; a checkpoint, which is the model so far, lets the same command go on after a stop. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVERY = 100000, FIRST_REPORT = 1000, LAST_STEP = 100000 };

typedef struct online_job {
    const cli_settings *common;
    const cli_online *options;
    const char *output;
    cli_training training;
    esp_online *online;
    double began;
    uint64_t before;          /* examples that were seen before this run */
    size_t classes;           /* of the model that is resumed */
    uint64_t reported, saved; /* examples of the last report, and of the checkpoint; 0: none */
} online_job;

/* ------------------------------------------------------------ what is wanted */

static int check_options(const online_job *job)
{
    const cli_online *o = job->options;
    if (o->checkpoint == NULL) {
        if (o->every != 0) return cli_usage("--every says how often --checkpoint FILE is written; give that too");
        return CLI_OK;
    }
    if (strcmp(o->checkpoint, "-") != 0 && o->resume != NULL && cli_same_place(o->checkpoint, o->resume))
        return cli_usage("%s is the model to resume; the checkpoint needs a file of its own", o->resume);
    return cli_check_checkpoint(o->checkpoint, job->output, job->common);
}

/* Learner and kernel are those of the model to resume; -l and -k may repeat them. */
static int take_model(online_job *job, const cli_learning *learning, const esp_model *model)
{
    const char *path = job->options->resume, *learner = esp_model_learner(model);
    if (!cli_learner_can(learner, ESP_LEARNS_ONLINE))
        return cli_usage("%s is a model of %s, which looks at all examples at once and cannot go on; train it again on "
                         "all the data",
                         path, learner);
    if (learning->learner != 0 && strcmp(cli_learner_of(learning), learner) != 0)
        return cli_usage("%s was learned by %s, not by %s; leave -l out", path, learner, cli_learner_of(learning));
    for (const char *const *name = (const char *const *)cli_learner_names; *name != NULL; name++)
        if (strcmp(*name, learner) == 0) job->training.learner = *name;
    job->training.resumes = true;
    job->classes = esp_model_classes(model);
    int code = cli_kernel(learning->kernel != NULL ? learning->kernel : esp_model_kernel(model), &job->training.kernel);
    if (code == CLI_OK && strcmp(esp_kernel_text(job->training.kernel), esp_model_kernel(model)) != 0)
        code = cli_usage("the kernel of %s is %s, not %s; leave -k out", path, esp_model_kernel(model),
                         esp_kernel_text(job->training.kernel));
    return code;
}

/* ------------------------------------------------------------------- report */

/* The number behind `examples` at which the next line is due: 1, 2, 5 times a power of ten, then every 100,000. */
static uint64_t next_report(uint64_t examples)
{
    if (examples >= LAST_STEP) return (examples / LAST_STEP + 1) * LAST_STEP;
    for (uint64_t power = FIRST_REPORT;; power *= 10) {
        if (examples < power) return power;
        if (examples < 2 * power) return 2 * power;
        if (examples < 5 * power) return 5 * power;
    }
}

/* Most memory that the process has held; where the system does not tell, what the model holds. */
static uint64_t peak_memory(const esp_online_stats *stats)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0) return (uint64_t)usage.ru_maxrss * 1024;
    return stats->bytes;
}

/* How many are given, as a text; "1" if none are. */
static const char *epochs_given(const cli_training *training)
{
    const char *epochs = training->from->value[cli_setting_place("epochs")];
    return epochs != NULL ? epochs : "1";
}

static void report(online_job *job, const esp_online_stats *stats)
{
    const double seconds = cli_seconds() - job->began, count = (double)(stats->examples - job->before);
    char epoch[32] = "", nodes[64] = "", memory[32];
    if (stats->epoch > 1 || strcmp(epochs_given(&job->training), "1") != 0)
        snprintf(epoch, sizeof epoch, "epoch %zu  ", stats->epoch);
    if (stats->nodes > 0) snprintf(nodes, sizeof nodes, "  %7zu of %8zu nodes", stats->vertices, stats->nodes);
    job->reported = stats->examples;
    cli_run_end();
    cli_note(job->common, "%s%8llu examples  accuracy %.4f  F1 %.4f  %7.0f examples/s  %7llu updates%s  %s", epoch,
             (unsigned long long)stats->examples, stats->accuracy, stats->f1, seconds > 0 ? count / seconds : 0.0,
             (unsigned long long)stats->updates, nodes, cli_size_text(peak_memory(stats), true, memory));
}

/* -------------------------------------------------------------- checkpoints */

static esp_status save(online_job *job, const esp_online_stats *stats, esp_error *err)
{
    if (stats->classes < 2) return ESP_OK; /* no model yet, and next to nothing to lose */
    esp_model *model = NULL;
    esp_status status = esp_online_model(job->online, &model, err);
    if (status == ESP_OK) status = esp_model_write(model, job->options->checkpoint, err);
    esp_model_free(model);
    if (status == ESP_OK) job->saved = stats->examples;
    return status;
}

static uint64_t interval(const online_job *job) { return job->options->every != 0 ? job->options->every : EVERY; }

/* Examples learned that a stop would lose. */
static uint64_t unsaved(const online_job *job, uint64_t seen)
{
    return seen - (job->saved > job->before ? job->saved : job->before);
}

static esp_status on_watch(void *user, const esp_online *online, esp_error *err)
{
    online_job *job = user;
    const uint64_t seen = esp_online_examples(online);
    const bool reports = seen >= next_report(job->reported);
    const bool due = job->options->checkpoint != NULL && unsaved(job, seen) >= interval(job);
    if (seen == job->before) job->began = cli_seconds(); /* those of the checkpoint have been passed over */
    if (!reports && !due) return ESP_OK;
    esp_online_stats stats;
    esp_online_measure(online, &stats);
    if (reports) report(job, &stats);
    return due ? save(job, &stats, err) : ESP_OK;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---------------------------------------------------------------------- run */

static bool exists(const char *path)
{
    struct stat st;
    return path != NULL && (stat(path, &st) == 0 || errno != ENOENT);
}

static int go_on(online_job *job, const esp_model *checkpoint, const esp_model *resumed, const esp_run *run)
{
    const cli_training *l = &job->training;
    const char *path = job->options->checkpoint;
    esp_error error;
    const esp_status status = esp_online_continue(checkpoint, resumed != NULL ? NULL : l->kernel, resumed, l->setting,
                                                  l->settings, run, &job->online, &error);
    cli_run_end();
    if (status == ESP_ERR_PARAM) return cli_usage("%s: %s", path, error.message);
    if (status != ESP_OK) return cli_error(status, &error);
    if (esp_model_is_finished(checkpoint)) /* it would be copied, and then removed */
        return cli_usage("%s is a finished model, not a checkpoint; --resume goes on from it, and --checkpoint needs a "
                         "file of its own",
                         path);
    esp_online_stats stats;
    esp_online_measure(job->online, &stats);
    job->saved = stats.examples;
    cli_note(job->common, "continuing from %s: %llu examples were already seen", path,
             (unsigned long long)stats.examples);
    return CLI_OK;
}

static int read_checkpoint(online_job *job, const esp_model *resumed, const esp_run *run)
{
    esp_model *checkpoint = NULL;
    esp_error error;
    const esp_status status = esp_model_read(job->options->checkpoint, &checkpoint, &error);
    if (status != ESP_OK)
        return cli_fail("the checkpoint cannot be used and is left as it is: %s; name another file, or remove this one "
                        "to start anew",
                        error.message);
    const int code = go_on(job, checkpoint, resumed, run);
    esp_model_free(checkpoint);
    return code;
}

/* A learner that continues from a checkpoint, resumes a model, or starts afresh. */
static int open_learner(online_job *job, const esp_model *model, const esp_run *run)
{
    const cli_training *l = &job->training;
    esp_error error;
    if (exists(job->options->checkpoint)) return read_checkpoint(job, model, run);
    const esp_status status =
        model != NULL ? esp_online_resume(model, l->setting, l->settings, run, &job->online, &error)
                      : esp_online_new(l->learner, l->kernel, l->setting, l->settings, &job->online, &error);
    cli_run_end();
    if (status == ESP_OK) return CLI_OK;
    if (model != NULL && status == ESP_ERR_PARAM) return cli_usage("%s: %s", job->options->resume, error.message);
    return cli_error(status, &error);
}

/* After a failure: what is left to go on from. */
static int stop(online_job *job, esp_status status, esp_error *error)
{
    const char *path = job->options->checkpoint;
    esp_online_stats stats;
    esp_online_measure(job->online, &stats);
    if (job->saved > 0 && stats.examples == job->before && status == ESP_ERR_PARSE && error->line == 0)
        return cli_fail("%s: %s; give the same data again, or remove the checkpoint to start anew", path,
                        error->message); /* no bad line, but other data */
    const int code = cli_error(status, error);
    if (path == NULL && cli_interrupted())
        cli_note(job->common, "nothing was written; with --checkpoint FILE the same command could go on");
    if (path == NULL) return code;
    if (cli_interrupted() && (status == ESP_ERR_CANCELLED || status == ESP_ERR_IO) &&
        unsaved(job, stats.examples) > 0) {
        status = save(job, &stats, error);
        if (status != ESP_OK) return cli_error(status, error);
    }
    if (job->saved > 0)
        cli_note(job->common, "%s holds what was learned from %llu examples; the same command continues from there",
                 path, (unsigned long long)job->saved);
    return code;
}

static int learn(online_job *job, const esp_run *run)
{
    const cli_settings *s = job->common;
    const esp_read_options reading = {
        .format = s->from, .target = s->target, .clean = s->clean, .skip_bad = s->skip_bad};
    esp_online_stats stats;
    esp_online_measure(job->online, &stats);
    job->before = job->reported = stats.examples;
    esp_online_watch(job->online, common_divisor(FIRST_REPORT, interval(job)), on_watch, job);
    esp_error error;
    job->began = cli_seconds();
    const esp_status status = esp_online_read(job->online, s->operand[0], &reading, run, &error);
    cli_run_end();
    if (status != ESP_OK) return stop(job, status, &error);
    esp_online_measure(job->online, &stats);
    if (stats.examples > job->reported) report(job, &stats);
    if (stats.examples == job->before && job->saved == 0) cli_note(s, "nothing was learned, since epochs is 0");
    if (job->classes > 0 && stats.classes > job->classes)
        cli_note(s, "%zu of the %zu classes are new to the model", stats.classes - job->classes, stats.classes);
    if (stats.bad > 0)
        cli_note(s, "%s: skipped %llu bad example%s",
                 strcmp(s->operand[0], "-") == 0 ? "standard input" : s->operand[0], (unsigned long long)stats.bad,
                 stats.bad == 1 ? "" : "s");
    cli_detail(s, "learned in %.3f s", cli_seconds() - job->began);
    return CLI_OK;
}

static int write_model(const online_job *job)
{
    esp_model *model = NULL;
    esp_error error;
    const double began = cli_seconds();
    esp_status status = esp_online_model(job->online, &model, &error);
    if (status == ESP_OK) status = esp_model_write(model, job->output, &error);
    int code = status == ESP_OK ? CLI_OK : cli_error(status, &error);
    if (code == CLI_OK) {
        cli_remove_checkpoint(job->options->checkpoint, job->common); /* the next run starts afresh */
        cli_detail(job->common, "kernel %s", esp_model_kernel(model));
        cli_detail(job->common, "written in %.3f s", cli_seconds() - began);
        code = cli_show_model(job->common, model, job->output);
    }
    esp_model_free(model);
    return code;
}

/* All that comes before the first example; the model to resume is not needed any more then. */
static int open_run(online_job *job, const cli_learning *learning, const esp_run *run)
{
    esp_model *model = NULL;
    esp_error error;
    int code = check_options(job);
    if (code == CLI_OK && job->options->resume != NULL) {
        const esp_status status = esp_model_read(job->options->resume, &model, &error);
        code = status == ESP_OK ? take_model(job, learning, model) : cli_error(status, &error);
    }
    if (code == CLI_OK) code = cli_training_check(learning, &job->training);
    if (code == CLI_OK && model == NULL && strcmp(epochs_given(&job->training), "0") == 0)
        code = cli_usage("with --epochs 0 nothing is learned, so it needs --resume MODEL");
    if (code == CLI_OK) code = open_learner(job, model, run);
    esp_model_free(model);
    return code;
}

int cli_online_train(const cli_learning *learning, const cli_online *options, const char *output)
{
    online_job job = {.common = &learning->common, .options = options, .output = output};
    const esp_run run = cli_run(job.common);
    int code = open_run(&job, learning, &run);
    if (code == CLI_OK) code = learn(&job, &run);
    if (code == CLI_OK) code = write_model(&job);
    esp_online_free(job.online);
    cli_training_end(&job.training);
    return code;
}
