/* espalier search: what is most like a query? */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct search_settings {
    cli_settings common;
    const char *kernel, *output, *id, *above, *relevant;
    uint64_t top;
    bool others, no_bounds;
} search_settings;

/* clang-format off */
static const cli_option options[] = {
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(search_settings, kernel),
     .argument = "EXPR", .help = "search in data instead of an index, with this kernel expression"},
    {.name = "top", .kind = CLI_NUMBER, .offset = offsetof(search_settings, top), .argument = "K",
     .least = 1, .most = UINT32_MAX, .default_value = "10", .help = "the K most similar examples"},
    {.name = "above", .kind = CLI_TEXT, .offset = offsetof(search_settings, above), .argument = "S",
     .help = "only examples whose similarity is S or more"},
    {.name = "id", .kind = CLI_TEXT, .offset = offsetof(search_settings, id), .argument = "FIELD",
     .help = "the field that names queries, and with -k examples (default: that of the index)"},
    {.name = "others", .kind = CLI_FLAG, .offset = offsetof(search_settings, others),
     .help = "leave out the example that has the name of the query"},
    {.name = "relevant", .kind = CLI_TEXT, .offset = offsetof(search_settings, relevant), .argument = "FILE",
     .help = "judgements in TREC's form: tell how good the search is, the query itself left out"},
    {.name = "no-bounds", .kind = CLI_FLAG, .offset = offsetof(search_settings, no_bounds),
     .help = "compute every similarity; prints the same, to compare"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(search_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    CLI_MPI_OPTION,
    {.name = NULL}};
/* clang-format on */

typedef struct search_job {
    const search_settings *settings;
    double above;
    esp_kernel *kernel;
    esp_dataset *queries;
    esp_index *index;
    esp_qrels *qrels;
    esp_hits *hits;
} search_job;

int cli_similarity(const char *option, const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && isfinite(*value)) return CLI_OK;
    return cli_usage("%s takes a number, not '%s'", option, text);
}

static int check_settings(search_job *job)
{
    const search_settings *s = job->settings;
    const char *const *operand = (const char *const *)s->common.operand;
    if (strcmp(operand[0], "-") == 0 && strcmp(operand[1], "-") == 0)
        return cli_usage("standard input can be read only once");
    int code = CLI_OK;
    if (s->above != NULL) code = cli_similarity("--above", s->above, &job->above);
    if (code == CLI_OK && s->kernel == NULL && strcmp(operand[0], "-") != 0 && !esp_index_recognise(operand[0])) {
        FILE *file = fopen(operand[0], "rb");
        if (file == NULL) return CLI_OK; /* told when it is read */
        fclose(file);
        return cli_fail("%s: this is not an index file; to search in data, give a kernel with -k EXPR", operand[0]);
    }
    return code == CLI_OK ? cli_check_output(s->output, &s->common) : code;
}

int cli_index_open(const cli_settings *settings, const esp_kernel *kernel, const char *id, esp_index **out)
{
    const char *path = settings->operand[0];
    const esp_run run = cli_run(settings);
    esp_dataset *data = NULL;
    esp_error error;
    const int code = kernel != NULL ? cli_read(settings, path, &data) : CLI_OK;
    if (code != CLI_OK) return code;
    if (kernel != NULL) cli_kernel_notes(settings, kernel, data, NULL);
    const double began = cli_seconds();
    const esp_status status =
        kernel != NULL ? esp_index_new(kernel, data, id, &run, out, &error) : esp_index_read(path, &run, out, &error);
    cli_run_end();
    esp_dataset_free(data);
    if (status != ESP_OK) return cli_error(status, &error);
    cli_detail(settings, "%s: %zu examples %s in %.3f s", path, esp_index_count(*out),
               kernel == NULL ? "opened" : "prepared", cli_seconds() - began);
    return CLI_OK;
}

static int search(search_job *job)
{
    const search_settings *s = job->settings;
    const esp_search_options given = {.top = (size_t)s->top,
                                      .threshold = s->above != NULL,
                                      .above = job->above,
                                      .id = s->id,
                                      .others = s->others || s->relevant != NULL,
                                      .no_bounds = s->no_bounds};
    esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    cli_share(&s->common, &run);
    const esp_status status = esp_search(job->index, job->queries, &given, &run, &job->hits, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    uint64_t skipped;
    const uint64_t computed = esp_hits_computed(job->hits, &skipped);
    const double seconds = cli_seconds() - began, queries = (double)esp_hits_queries(job->hits);
    cli_detail(&s->common, "kernel %s", esp_index_kernel(job->index));
    cli_detail(&s->common, "%.0f quer%s in %.3f s, %.3f ms each; %llu similarities computed, %llu skipped (%.2f %%)",
               queries, queries == 1 ? "y" : "ies", seconds, 1000 * seconds / queries, (unsigned long long)computed,
               (unsigned long long)skipped, 100.0 * (double)skipped / (double)(computed + skipped));
    return CLI_OK;
}

static void write_name(FILE *file, const char *name, size_t number)
{
    if (name != NULL) cli_field(file, name);
    else fprintf(file, "%zu", number + 1);
}

void cli_example(FILE *file, const esp_index *index, size_t example)
{
    write_name(file, esp_index_id(index, example), example);
}

static int write_hits(const search_job *job)
{
    cli_output output;
    const int code = cli_output_open(&output, job->settings->output != NULL ? job->settings->output : "-");
    if (code != CLI_OK) return code;
    for (size_t q = 0; q < esp_hits_queries(job->hits); q++) {
        size_t count;
        const esp_hit *hit = esp_hits_of(job->hits, q, &count);
        const char *name = esp_hits_id(job->hits, q);
        for (size_t i = 0; i < count; i++) {
            write_name(output.file, name, q);
            fprintf(output.file, "\t%zu\t", i + 1);
            cli_example(output.file, job->index, hit[i].example);
            fprintf(output.file, "\t%.17g\n", hit[i].similarity);
        }
    }
    return cli_output_close(&output, CLI_OK);
}

static int measure(const search_job *job)
{
    const cli_settings *s = &job->settings->common;
    esp_search_metrics m;
    esp_error error;
    if (job->qrels == NULL) return CLI_OK;
    const esp_status status = esp_hits_measure(job->hits, job->index, job->qrels, &m, &error);
    if (status != ESP_OK) return cli_error(status, &error);
    if (m.unknown_examples > 0)
        cli_note(s, "%s: %zu judgement%s of an example that the index does not have: not found",
                 job->settings->relevant, m.unknown_examples, m.unknown_examples == 1 ? "" : "s");
    if (m.unjudged > 0)
        cli_note(s, "%zu quer%s no relevant example and count%s for nothing", m.unjudged,
                 m.unjudged == 1 ? "y has" : "ies have", m.unjudged == 1 ? "s" : "");
    if (m.queries == 0)
        cli_note(s, "%s judges none of the queries; a query is named by the field that --id names, or by its number",
                 job->settings->relevant);
    else if (m.unknown_queries > 0)
        cli_detail(s, "%s: %zu queries of the judgements were not asked", job->settings->relevant, m.unknown_queries);
    if (s->quiet) return CLI_OK;
    fprintf(stderr,
            "queries  %zu\nMRR      %.4f\nMAP      %.4f\nP@1      %.4f\nP@5      %.4f\nP@10     %.4f\n"
            "nDCG@10  %.4f\nnDCG     %.4f\n",
            m.queries, m.mrr, m.map, m.precision_1, m.precision_5, m.precision_10, m.ndcg_10, m.ndcg);
    return CLI_OK;
}

static int run_search(const cli_settings *settings)
{
    search_job job = {.settings = (const search_settings *)settings};
    const search_settings *s = job.settings;
    esp_error error;
    int code = s->kernel != NULL ? cli_kernel(s->kernel, &job.kernel) : CLI_OK;
    if (code == CLI_OK) code = check_settings(&job);
    if (code == CLI_OK && s->relevant != NULL) {
        const esp_status status = esp_qrels_read(s->relevant, &job.qrels, &error);
        if (status != ESP_OK) code = cli_error(status, &error);
    }
    if (code == CLI_OK) code = cli_index_open(settings, job.kernel, s->id, &job.index);
    if (code == CLI_OK) code = cli_read(settings, settings->operand[1], &job.queries);
    if (code == CLI_OK) code = search(&job);
    if (code == CLI_OK && cli_first()) code = write_hits(&job);
    if (code == CLI_OK && cli_first()) code = measure(&job);
    esp_hits_free(job.hits);
    esp_qrels_free(job.qrels);
    esp_index_free(job.index);
    esp_dataset_free(job.queries);
    esp_kernel_free(job.kernel);
    return code;
}

const cli_command cli_search = {
    .name = "search",
    .usage = "INDEX QUERIES | -k EXPR DATA QUERIES",
    .summary = "the examples that are most like a query",
    .text = "Prints for each query the examples of INDEX (see 'espalier index'), or of DATA, that are most similar by "
            "the kernel: query, rank, example and similarity, separated by TABs, the best first, of equal ones the "
            "first in the collection. Examples and queries are named by --id, else numbered from 1.\n"
            "The result is exact. With st, sst and sasst, bounds skip what cannot be among the best; -v tells how "
            "much.\n"
            "With --mpi, the processes that mpirun or srun started take queries in turn (docs/clusters.md).\n"
            "With --relevant, standard error tells MRR, MAP, precision and nDCG of the lists as printed; take a large "
            "--top for those of whole rankings.",
    .examples = "espalier search functions.index queries.jsonl --top 5\n"
                "espalier search -k 'norm(sst(lambda=0.4))' --id id functions.jsonl queries.jsonl --above 0.9",
    .options = options,
    .reads = true,
    .least = 2,
    .most = 2,
    .settings_size = sizeof(search_settings),
    .run = run_search};
