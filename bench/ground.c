/* Measurements for bench/run. Times are medians of runs that alternate between the things compared, in one process,
 * on memory that is already in use; peak memory is that of a child process of its own. Results go to standard
 * output as lines of TAB-separated fields. */
#include "data/dataset.h"
#include "kernel/tree/dag.h"
#include "measure.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double time_gram(const esp_kernel *kernel, const esp_dataset *data, int threads, double *gram)
{
    esp_error err;
    const esp_run run = {.threads = threads};
    const double start = now();
    check(esp_gram(kernel, data, NULL, &run, gram, &err), &err);
    return now() - start;
}

/* An n x n matrix whose pages are all there. */
static double *matrix(size_t n)
{
    double *gram = need(malloc(n * n * sizeof *gram));
    memset(gram, 1, n * n * sizeof *gram);
    return gram;
}

/* compare DATA REPEATS THREADS_A KERNEL_A THREADS_B KERNEL_B: both medians and their ratio B / A */
static void compare(char **argument)
{
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    const int threads[2] = {atoi(argument[2]), atoi(argument[4])};
    esp_kernel *kernel[2] = {parse(argument[3]), parse(argument[5])};
    const size_t n = esp_dataset_count(data);
    double *gram = matrix(n), time[2][MOST], ratio[MOST];
    for (int i = 0; i < repeats; i++) {
        for (int k = 0; k < 2; k++) time[k][i] = time_gram(kernel[k], data, threads[k], gram);
        ratio[i] = time[1][i] / time[0][i];
    }
    const double a = median(time[0], repeats), b = median(time[1], repeats), both = median(ratio, repeats);
    qsort(ratio, (size_t)repeats, sizeof *ratio, by_value);
    printf("%zu\t%.4f\t%.1f\t%.4f\t%.1f\t%.2f\t%.2f\t%.2f\n", n, a, a * 2e9 / (double)n / (double)(n + 1), b,
           b * 2e9 / (double)n / (double)(n + 1), both, ratio[0], ratio[repeats - 1]);
    free(gram);
    esp_kernel_free(kernel[0]);
    esp_kernel_free(kernel[1]);
    esp_dataset_free(data);
}

/* Peak memory of a child that reads the file and, with a kernel, computes its Gram matrix. */
static double peak_memory(const char *path, const char *kernel)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        esp_dataset *data = load(path, NULL);
        const size_t n = esp_dataset_count(data);
        if (kernel != NULL) time_gram(parse(kernel), data, 1, need(malloc(n * n * sizeof(double))));
        _exit(0);
    }
    struct rusage usage;
    int status;
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) exit(1);
    return (double)usage.ru_maxrss * 1024.0;
}

/* effort DATA REPEATS KERNELS, a line each: trees and seconds of the processor for each, in turn; of one thread. On a
 * busy machine these say more than the time that passes. */
static void effort(char **argument)
{
    enum { KERNELS = 16 };
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    esp_kernel *kernel[KERNELS];
    size_t kernels = 0;
    for (char *text = strtok(argument[2], "\n"); text != NULL && kernels < KERNELS; text = strtok(NULL, "\n"))
        kernel[kernels++] = parse(text);
    double *gram = matrix(esp_dataset_count(data)), time[KERNELS][MOST];
    for (int i = 0; i < repeats; i++)
        for (size_t k = 0; k < kernels; k++) {
            const clock_t start = clock();
            time_gram(kernel[k], data, 1, gram);
            time[k][i] = (double)(clock() - start) / CLOCKS_PER_SEC;
        }
    for (size_t k = 0; k < kernels; k++) {
        printf("%zu\t%.4f\n", esp_dataset_count(data), median(time[k], repeats));
        esp_kernel_free(kernel[k]);
    }
    free(gram);
    esp_dataset_free(data);
}

/* grow DATA REPEATS KERNEL: trees, seconds, million pairs per second, memory beyond the output */
static void grow(char **argument)
{
    const double peak = peak_memory(argument[0], argument[2]);
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    const size_t n = esp_dataset_count(data);
    esp_kernel *kernel = parse(argument[2]);
    double *gram = matrix(n), time[MOST];
    for (int i = 0; i < repeats; i++) time[i] = time_gram(kernel, data, 1, gram);
    const double seconds = median(time, repeats), pairs = (double)n * (double)(n + 1) / 2.0;
    printf("%zu\t%.4f\t%.1f\t%.1f\t%.1f\n", n, seconds, pairs / seconds / 1e6, (double)(n * n) * 8e-6,
           (peak - (double)(n * n) * 8.0) / 1e6);
    free(gram);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* read FILE REPEATS: examples, MB, MB per second into the forest from memory, bytes held, peak memory of reading it */
static void read_speed(char **argument)
{
    FILE *file = fopen(argument[0], "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(1);
    const size_t size = (size_t)ftell(file);
    char *bytes = need(malloc(size));
    rewind(file);
    if (fread(bytes, 1, size, file) != size) exit(1);
    fclose(file);
    const int repeats = repeats_of(argument[1]);
    double time[MOST];
    size_t count = 0, held = 0;
    for (int i = 0; i < repeats; i++) {
        esp_dataset *data;
        esp_error err;
        esp_column_summary summary;
        const double start = now();
        check(esp_dataset_parse(bytes, size, argument[0], NULL, NULL, &data, &err), &err);
        time[i] = now() - start;
        count = esp_dataset_count(data);
        check(esp_dataset_summarize(data, 0, &summary, &err), &err);
        held = summary.bytes;
        esp_dataset_free(data);
    }
    free(bytes);
    printf("%zu\t%.1f\t%.1f\t%.1f\t%.1f\n", count, (double)size / 1e6, (double)size / 1e6 / median(time, repeats),
           (double)held / 1e6, peak_memory(argument[0], NULL) / 1e6);
}

/* All scattered adds of the lower triangle, and nothing else. Returns how many they are. */
static double scatter_only(const espi_dag *dag, const espi_plans *plans, size_t *cursor, size_t *stamp, double *gram)
{
    const size_t n = plans->trees;
    double adds = 0.0;
    memset(cursor, 0, dag->groups * sizeof *cursor);
    memset(stamp, 0, dag->groups * sizeof *stamp);
    for (size_t i = 0; i < n; i++) {
        double *row = gram + i * n;
        const espi_plan plan = espi_plan_of(plans, i);
        for (size_t v = 0; v < plan.nodes + plan.words; v++) {
            const uint32_t g = v < plan.nodes ? plan.node[v].group : plan.word[v - plan.nodes].group;
            const espi_group *group = &dag->group[g];
            if (stamp[g] == i + 1) continue;
            stamp[g] = i + 1;
            while (cursor[g] < group->occurrences && group->at[cursor[g]].tree <= i) cursor[g]++;
            for (size_t k = 0; k < cursor[g]; k++) row[group->at[k].tree] += 1.0;
            adds += (double)cursor[g];
        }
    }
    return adds;
}

/* floor DATA REPEATS KERNEL: scattered adds (millions), their seconds, seconds to write the output, the Gram's seconds
 * and how many times the floor that is. The file's first column must hold the trees. */
static void floor_of(char **argument)
{
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[1]);
    const size_t n = esp_dataset_count(data);
    const espi_forest *forest = &data->column[0].trees;
    esp_kernel *kernel = parse(argument[2]);
    espi_plans plans;
    espi_dag dag = {0};
    esp_error err;
    check(espi_plans_make(&plans, forest, NULL, forest->productions, NULL, &err), &err);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const espi_plan plan = espi_plan_of(&plans, i);
        ok = espi_dag_insert(&dag, &plan);
    }
    if (!ok) need(NULL);
    size_t *cursor = need(malloc(dag.groups * sizeof *cursor)), *stamp = need(malloc(dag.groups * sizeof *stamp));
    double *gram = matrix(n), scatter[MOST], write[MOST], time[MOST], adds = 0.0;
    for (int i = 0; i < repeats; i++) {
        double start = now();
        memset(gram, 0, n * n * sizeof *gram);
        write[i] = now() - start;
        start = now();
        adds = scatter_only(&dag, &plans, cursor, stamp, gram);
        scatter[i] = now() - start;
        time[i] = time_gram(kernel, data, 1, gram);
    }
    const double add = median(scatter, repeats), output = median(write, repeats), all = median(time, repeats);
    printf("%zu\t%.1f\t%.4f\t%.2f\t%.4f\t%.4f\t%.2f\n", n, adds / 1e6, add, add * 1e9 / adds, output, all,
           all / (add + output));
    free(gram);
    free(cursor);
    free(stamp);
    espi_dag_free(&dag);
    espi_plans_free(&plans);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

int main(int count, char **argument)
{
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } jobs[] = {{"compare", 6, compare},
                {"effort", 3, effort},
                {"grow", 3, grow},
                {"read", 2, read_speed},
                {"floor", 3, floor_of}};
    for (size_t i = 0; count > 1 && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(argument[1], jobs[i].name) != 0 || count != jobs[i].arguments + 2) continue;
        jobs[i].run(argument + 2);
        return 0;
    }
    fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/run\n");
    return 2;
}
