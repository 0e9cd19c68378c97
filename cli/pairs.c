/* espalier pairs: which examples are alike? */
#include "cli.h"

#include <string.h>

typedef struct pairs_settings {
    cli_settings common;
    const char *kernel, *output, *id, *above;
    bool clusters, no_bounds;
} pairs_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(pairs_settings, kernel),
     .argument = "EXPR", .help = "kernel expression, such as 'norm(sst(tree, lambda=0.4))'; not with an index"},
    {.name = "above", .kind = CLI_TEXT, .offset = offsetof(pairs_settings, above), .argument = "S",
     .help = "pairs whose similarity is S or more"},
    {.name = "clusters", .kind = CLI_FLAG, .offset = offsetof(pairs_settings, clusters),
     .help = "groups of examples that such pairs connect, instead of the pairs"},
    {.name = "id", .kind = CLI_TEXT, .offset = offsetof(pairs_settings, id), .argument = "FIELD",
     .help = "the field that names examples (default: they are numbered from 1)"},
    {.name = "no-bounds", .kind = CLI_FLAG, .offset = offsetof(pairs_settings, no_bounds),
     .help = "compute every similarity; prints the same, to compare"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(pairs_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = NULL}};
/* clang-format on */

typedef struct pairs_job {
    const pairs_settings *settings;
    double above;
    esp_kernel *kernel;
    esp_index *index;
    esp_pairs *pairs;
    esp_clusters *clusters;
} pairs_job;

static int check_settings(pairs_job *job)
{
    const pairs_settings *s = job->settings;
    const bool index = esp_index_recognise(s->common.operand[0]);
    if (s->above == NULL) return cli_usage("--above S is missing: how similar a pair must be at least");
    if (index && s->kernel != NULL) return cli_usage("an index has its kernel; leave -k out");
    if (index && s->id != NULL) return cli_usage("an index has its names; leave --id out");
    int code = cli_similarity("--above", s->above, &job->above);
    if (code == CLI_OK && !index) code = cli_kernel(s->kernel, &job->kernel);
    return code == CLI_OK ? cli_check_output(s->output, &s->common) : code;
}

static int compare(pairs_job *job)
{
    const pairs_settings *s = job->settings;
    const esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    uint64_t computed, skipped;
    esp_error error;
    const esp_status status =
        s->clusters ? esp_clusters_find(job->index, job->above, s->no_bounds, &run, &job->clusters, &error)
                    : esp_pairs_find(job->index, job->above, s->no_bounds, &run, &job->pairs, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    computed = s->clusters ? esp_clusters_computed(job->clusters, &skipped) : esp_pairs_computed(job->pairs, &skipped);
    cli_detail(&s->common, "kernel %s", esp_index_kernel(job->index));
    cli_detail(&s->common, "%zu examples compared in %.3f s; %llu similarities computed, %llu skipped (%.4f %%)",
               esp_index_count(job->index), cli_seconds() - began, (unsigned long long)computed,
               (unsigned long long)skipped,
               computed + skipped > 0 ? 100.0 * (double)skipped / (double)(computed + skipped) : 0.0);
    return CLI_OK;
}

static void write_pairs(const pairs_job *job, FILE *file)
{
    size_t count;
    const esp_pair *pair = esp_pairs_list(job->pairs, &count);
    for (size_t i = 0; i < count; i++) {
        cli_example(file, job->index, pair[i].first);
        putc('\t', file);
        cli_example(file, job->index, pair[i].second);
        fprintf(file, "\t%.17g\n", pair[i].similarity);
    }
}

static void write_clusters(const pairs_job *job, FILE *file)
{
    for (size_t c = 0; c < esp_clusters_count(job->clusters); c++) {
        size_t count;
        const esp_hit *member = esp_clusters_of(job->clusters, c, &count);
        for (size_t i = 0; i < count; i++) {
            fprintf(file, "%zu\t", c + 1);
            cli_example(file, job->index, member[0].example);
            putc('\t', file);
            cli_example(file, job->index, member[i].example);
            fprintf(file, "\t%.17g\n", member[i].similarity);
        }
    }
}

static int run_pairs(const cli_settings *settings)
{
    pairs_job job = {.settings = (const pairs_settings *)settings};
    cli_output output;
    int code = check_settings(&job);
    if (code == CLI_OK) code = cli_index_open(settings, job.kernel, job.settings->id, &job.index);
    if (code == CLI_OK) code = compare(&job);
    if (code == CLI_OK) code = cli_output_open(&output, job.settings->output != NULL ? job.settings->output : "-");
    if (code == CLI_OK) {
        if (job.clusters != NULL) write_clusters(&job, output.file);
        else write_pairs(&job, output.file);
        code = cli_output_close(&output, CLI_OK);
    }
    esp_clusters_free(job.clusters);
    esp_pairs_free(job.pairs);
    esp_index_free(job.index);
    esp_kernel_free(job.kernel);
    return code;
}

const cli_command cli_pairs = {
    .name = "pairs",
    .usage = "--above S INDEX | -k EXPR --above S DATA",
    .summary = "all pairs of examples that are alike",
    .text = "Prints all pairs of examples of DATA, or of INDEX (see 'espalier index'), whose similarity is S or more: "
            "two examples and their similarity, separated by TABs, the best first. Clones, near-duplicates and copies "
            "are such pairs. Equal examples are found by identity before any kernel is computed, and with st, sst "
            "and sasst bounds skip nearly all other pairs.\n"
            "--clusters prints the groups of examples that pairs connect, the largest first: number of the group, its "
            "representative, an example and the similarity of the two; the representative comes first.",
    .examples = "espalier pairs -k 'norm(sst(tree, lambda=0.4))' --above 0.9 --id id functions.jsonl\n"
                "espalier pairs functions.index --above 0.95 --clusters",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 1,
    .settings_size = sizeof(pairs_settings),
    .run = run_pairs};
