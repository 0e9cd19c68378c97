/* espalier gram: kernel values between all examples. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct gram_settings {
    cli_settings common;
    const char *kernel, *output;
    int format;
    bool diagonal;
} gram_settings;

static const char *const formats[] = {"text", "npy", "libsvm", NULL};

/* clang-format off */
static const cli_option options[] = {
    {.name = "kernel", .letter = 'k', .kind = CLI_TEXT, .offset = offsetof(gram_settings, kernel),
     .argument = "EXPR", .help = "kernel expression, such as 'norm(sst(tree, lambda=0.4))'"},
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(gram_settings, output),
     .argument = "FILE", .help = "where to write (default: standard output)"},
    {.name = "format", .kind = CLI_CHOICE, .offset = offsetof(gram_settings, format), .argument = "NAME",
     .choices = formats, .help = "how to write: text, npy or libsvm (default: by the ending of FILE, else text)"},
    {.name = "diagonal", .kind = CLI_FLAG, .offset = offsetof(gram_settings, diagonal),
     .help = "only the value of each example with itself, one per line"},
    CLI_MPI_OPTION,
    {.name = NULL}};
/* clang-format on */

typedef struct gram_job {
    const gram_settings *settings;
    esp_kernel *kernel;
    esp_dataset *rows, *cols; /* cols is NULL: the same as rows */
    size_t row_count, col_count;
    double *gram;
} gram_job;

static esp_gram_format output_format(const gram_settings *s)
{
    if (s->format != 0) return (esp_gram_format)(s->format - 1);
    if (s->output != NULL && cli_ends_with(s->output, ".npy")) return ESP_GRAM_NPY;
    if (s->output != NULL && cli_ends_with(s->output, ".libsvm")) return ESP_GRAM_LIBSVM;
    return ESP_GRAM_TEXT;
}

static int check_settings(const gram_settings *s)
{
    const bool two = s->common.operands == 2;
    if (s->diagonal && two) return cli_usage("--diagonal takes one data file, not two");
    if (s->diagonal && output_format(s) == ESP_GRAM_LIBSVM)
        return cli_usage("--diagonal cannot be written as libsvm; use text or npy");
    if (two && strcmp(s->common.operand[0], "-") == 0 && strcmp(s->common.operand[1], "-") == 0)
        return cli_usage("standard input can be read only once");
    const bool standard = s->output == NULL || strcmp(s->output, "-") == 0;
    if (s->common.mpi && s->diagonal) return cli_usage("--diagonal takes no time to divide; leave out --mpi");
    if (s->common.mpi && (standard || output_format(s) != ESP_GRAM_NPY))
        return cli_usage("--mpi: the ranks write into one file of type npy; give -o FILE.npy");
    if (standard && output_format(s) == ESP_GRAM_NPY && isatty(STDOUT_FILENO))
        return cli_usage("npy is binary and not for a terminal; give -o FILE");
    return cli_check_output(s->output, &s->common);
}

/* Memory in huge pages where the system has them: a matrix is written once, and faults cost more than its values. */
static void *take_memory(size_t bytes)
{
    enum { HUGE_PAGE = 1 << 21 };
    void *block;
    if (bytes < 2 * HUGE_PAGE) return malloc(bytes == 0 ? 1 : bytes);
    if (posix_memalign(&block, HUGE_PAGE, bytes) != 0) return NULL;
    (void)madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

/* Takes the matrix, or says how much memory it would need. */
static int allocate(gram_job *job)
{
    const uint64_t limit = cli_memory_limit(&job->settings->common);
    uint64_t values, bytes;
    char need[32], have[32];
    if (__builtin_mul_overflow((uint64_t)job->row_count, (uint64_t)job->col_count, &values) ||
        __builtin_mul_overflow(values, (uint64_t)sizeof(double), &bytes))
        return cli_fail("a matrix of %zu x %zu values is larger than any memory", job->row_count, job->col_count);
    if (bytes > limit)
        return cli_fail("a matrix of %zu x %zu values needs %s of memory, but the limit is %s; use fewer examples%s",
                        job->row_count, job->col_count, cli_size_text(bytes, true, need),
                        cli_size_text(limit, false, have),
                        job->settings->common.memory != 0 ? " or a larger --memory" : "");
    job->gram = take_memory((size_t)bytes);
    if (job->gram != NULL) return CLI_OK;
    return cli_fail("out of memory: the system refused %s for a matrix of %zu x %zu values",
                    cli_size_text(bytes, true, need), job->row_count, job->col_count);
}

static void show_speed(const gram_job *job, double seconds)
{
    const cli_settings *s = &job->settings->common;
    const double n = (double)job->row_count, pairs = job->settings->diagonal ? n : n * (double)job->col_count;
    cli_detail(s, "kernel %s", esp_kernel_text(job->kernel));
    cli_detail(s, "%.0f values in %.3f s, %.0f per second", pairs, seconds, seconds > 0 ? pairs / seconds : 0.0);
}

static int compute(gram_job *job)
{
    const gram_settings *s = job->settings;
    const esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    const esp_status status = s->diagonal ? esp_gram_diagonal(job->kernel, job->rows, &run, job->gram, &error)
                                          : esp_gram(job->kernel, job->rows, job->cols, &run, job->gram, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    show_speed(job, cli_seconds() - began);
    return CLI_OK;
}

static int write_gram(const gram_job *job)
{
    const gram_settings *s = job->settings;
    const esp_run run = cli_run(&s->common);
    esp_error error;
    const esp_status status = esp_gram_write(job->gram, job->row_count, job->col_count, job->rows, output_format(s),
                                             s->output != NULL ? s->output : "-", &run, &error);
    cli_run_end();
    return status == ESP_OK ? CLI_OK : cli_error(status, &error);
}

/* The ranks of a group write into one file what they compute, and none holds the matrix. */
static int compute_file(gram_job *job)
{
    const gram_settings *s = job->settings;
    esp_run run = cli_run(&s->common);
    const double began = cli_seconds();
    esp_error error;
    cli_share(&s->common, &run);
    const esp_status status = esp_gram_file(job->kernel, job->rows, job->cols, s->output, &run, &error);
    cli_run_end();
    if (status != ESP_OK) return cli_error(status, &error);
    show_speed(job, cli_seconds() - began);
    return CLI_OK;
}

static int compute_and_write(gram_job *job)
{
    const gram_settings *s = job->settings;
    int code = cli_read(&s->common, s->common.operand[0], &job->rows);
    if (code == CLI_OK && s->common.operands == 2) code = cli_read(&s->common, s->common.operand[1], &job->cols);
    if (code != CLI_OK) return code;
    cli_kernel_notes(&s->common, job->kernel, job->rows, job->cols);
    job->row_count = esp_dataset_count(job->rows);
    job->col_count = s->diagonal ? 1 : job->cols != NULL ? esp_dataset_count(job->cols) : job->row_count;
    if (s->common.mpi) return compute_file(job);
    code = allocate(job);
    if (code == CLI_OK) code = compute(job);
    return code == CLI_OK ? write_gram(job) : code;
}

static int run_gram(const cli_settings *settings)
{
    gram_job job = {.settings = (const gram_settings *)settings};
    int code = cli_kernel(job.settings->kernel, &job.kernel);
    if (code == CLI_OK) code = check_settings(job.settings);
    if (code == CLI_OK) code = compute_and_write(&job);
    free(job.gram);
    esp_dataset_free(job.cols);
    esp_dataset_free(job.rows);
    esp_kernel_free(job.kernel);
    return code;
}

const cli_command cli_gram = {
    .name = "gram",
    .usage = "-k EXPR DATA [DATA2]",
    .summary = "kernel values between all examples",
    .text = "Writes the Gram matrix: one row for each example of DATA, one column for each example of DATA2 (or of "
            "DATA, if there is no second file). Values are separated by TABs and written so that reading them gives "
            "the same numbers back.\n"
            "With --mpi, the processes that mpirun or srun started divide the work and write one .npy file in place, "
            "in a folder that all of them see; none of them holds the matrix (docs/clusters.md).\n"
            "How much memory the matrix needs is compared with --memory before anything is computed. '-' as a file "
            "is standard input.",
    .examples = "espalier gram -k 'norm(sst(lambda=0.4))' -o gram.npy questions.jsonl\n"
                "espalier gram -k 'norm(sst(tree, lambda=0.4)) + 0.3*poly(x, degree=3)' test.jsonl train.jsonl\n"
                "mpirun -n 16 espalier gram --mpi -k 'norm(sst(lambda=0.4))' -o gram.npy questions.jsonl",
    .options = options,
    .reads = true,
    .least = 1,
    .most = 2,
    .settings_size = sizeof(gram_settings),
    .run = run_gram};
