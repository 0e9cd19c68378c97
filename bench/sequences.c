/* Measurements of the sequence kernel for bench/sequences.sh. Times are medians of runs that alternate between the
 * things compared, in one process, on one thread; ratios are medians of the ratios within a round. Results go to
 * standard output as lines of TAB-separated fields. */
#include "kernel/evaluate/bound.h"
#include "measure.h"

#include <math.h>

enum { WAYS = 3 };

static const char *const ways[WAYS] = {"block", "match", "pair"};

static esp_kernel *seq(const char *column, const char *n, const char *way)
{
    char text[200];
    snprintf(text, sizeof text, "norm(seq(%s, n=%s, lambda=0.5, algorithm=%s))", column, n, way);
    return parse(text);
}

static double time_gram(const esp_kernel *kernel, const esp_dataset *data, double *gram)
{
    esp_error err;
    const double start = now();
    check(esp_gram(kernel, data, NULL, &one_thread, gram, &err), &err);
    return now() - start;
}

static double largest_difference(const double *a, const double *b, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* Median, least and most of the ratios within a round. */
static void print_ratio(const double *above, const double *below, int count)
{
    double ratio[MOST];
    for (int i = 0; i < count; i++) ratio[i] = above[i] / below[i];
    qsort(ratio, (size_t)count, sizeof *ratio, by_value);
    printf("\t%.1f\t%.1f\t%.1f", median(ratio, count), ratio[0], ratio[count - 1]);
}

/* gram DATA COLUMN N REPEATS: sequences, n, seconds by block, match and pair, million pairs per second of the first and
 * the last, pair / block with the least and the most, the largest difference between these two matrices. */
static void gram(char **argument)
{
    esp_dataset *data = load(argument[0], NULL);
    const int repeats = repeats_of(argument[3]);
    const size_t n = esp_dataset_count(data);
    const double pairs = (double)n * (double)(n + 1) / 2.0;
    esp_kernel *kernel[WAYS];
    double *matrix[2], time[WAYS][MOST];
    for (int k = 0; k < WAYS; k++) kernel[k] = seq(argument[1], argument[2], ways[k]);
    for (int k = 0; k < 2; k++) {
        matrix[k] = need(malloc(n * n * sizeof(double)));
        memset(matrix[k], 0, n * n * sizeof(double)); /* so that no run pays for getting its pages */
    }
    for (int i = 0; i < repeats; i++)
        for (int k = 0; k < WAYS; k++) time[k][i] = time_gram(kernel[k], data, matrix[k == 0 ? 0 : 1]);
    printf("%zu\t%s", n, argument[2]);
    for (int k = 0; k < WAYS; k++) printf("\t%.4f", median(time[k], repeats));
    printf("\t%.2f\t%.3f", pairs / median(time[0], repeats) / 1e6, pairs / median(time[WAYS - 1], repeats) / 1e6);
    print_ratio(time[WAYS - 1], time[0], repeats);
    printf("\t%.1e\n", largest_difference(matrix[0], matrix[1], n * n));
    for (int k = 0; k < WAYS; k++) esp_kernel_free(kernel[k]);
    free(matrix[0]), free(matrix[1]);
    esp_dataset_free(data);
}

/* One scorer: seconds to prepare it and to score. */
static void time_scores(const esp_kernel *kernel, const esp_dataset *train, const esp_dataset *test,
                        const double *coefficient, double *scores, double *prepare, double *score)
{
    espi_scorer *folded;
    esp_error err;
    const double start = now();
    check(espi_scorer_new(kernel, train, coefficient, 1, &one_thread, &folded, &err), &err);
    *prepare = now() - start;
    check(espi_scorer_score(folded, test, &one_thread, scores, &err), &err);
    *score = now() - start - *prepare;
    espi_scorer_free(folded);
}

/* score TRAIN TEST COLUMN N REPEATS: examples, n, seconds to prepare the patterns of the first file and to score the
 * second, seconds by rows of matches, rows / patterns with the least and the most, examples per second by patterns, the
 * largest difference. */
static void score(char **argument)
{
    esp_dataset *train = load(argument[0], NULL), *test = load(argument[1], NULL);
    const int repeats = repeats_of(argument[4]);
    const size_t n = esp_dataset_count(train), m = esp_dataset_count(test);
    double *coefficient = need(malloc(n * sizeof *coefficient));
    double *scores[2], prepare[2][MOST], time[2][MOST];
    esp_kernel *kernel[2];
    for (size_t i = 0; i < n; i++) coefficient[i] = i % 2 ? 1.0 : -1.0;
    for (int k = 0; k < 2; k++) {
        kernel[k] = seq(argument[2], argument[3], ways[k]);
        scores[k] = need(malloc(m * sizeof(double)));
    }
    for (int i = 0; i < repeats; i++)
        for (int k = 0; k < 2; k++)
            time_scores(kernel[k], train, test, coefficient, scores[k], &prepare[k][i], &time[k][i]);
    printf("%zu\t%zu\t%s\t%.4f\t%.4f\t%.4f", n, m, argument[3], median(prepare[0], repeats), median(time[0], repeats),
           median(time[1], repeats));
    print_ratio(time[1], time[0], repeats);
    printf("\t%.0f\t%.1e\n", (double)m / median(time[0], repeats), largest_difference(scores[0], scores[1], m));
    for (int k = 0; k < 2; k++) {
        free(scores[k]);
        esp_kernel_free(kernel[k]);
    }
    free(coefficient);
    esp_dataset_free(train);
    esp_dataset_free(test);
}

int main(int count, char **argument)
{
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } jobs[] = {{"gram", 4, gram}, {"score", 5, score}};
    for (size_t i = 0; count > 1 && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(argument[1], jobs[i].name) != 0 || count != jobs[i].arguments + 2) continue;
        jobs[i].run(argument + 2);
        return 0;
    }
    fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/sequences.sh\n");
    return 2;
}
