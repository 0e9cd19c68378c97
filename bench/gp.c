/* Measurements of Gaussian processes for bench/gp.sh. Results go to standard output as lines of TAB-separated fields.
 * Of a likelihood they are seconds of the processor on one thread.
 *
 *     likelihood DATA REPEATS KERNEL [apart]     examples, hyperparameters, seconds of the kernel matrix, of one log
 *                                                likelihood, of one with its gradient; the shares of the matrix and of
 * the factor in the likelihood, and of the gradient in the last; ratio of the two
 *     optimum DATA REPEATS KERNEL HOW...         for each way, in turn: its seconds from the data to the optimum, of
 * all processors, of the thread that asked for it; how much faster than the first; and what the second and third of
 * these make of it, if no other program took time steps DATA REPEATS KERNEL HOW...           for each way, in turn:
 * seconds of one log likelihood with its gradient, and of its steps: matrix, factor, solution, inverse, weights and
 * gradient
 *
 * HOW is a number of threads, or `cuda`: all cores and the GPU.
 * With `apart` every label or feature has values of its own. Targets are the numbers of the data. */
#include "kernel/evaluate/bound.h"
#include "learn/gp/gp.h"
#include "measure.h"

enum { PARTS = 3 }; /* matrix, likelihood, likelihood and gradient */

static void measure(const espi_gp_problem *p, const esp_kernel *kernel, espi_gp_point *point, double *gradient,
                    double time[PARTS])
{
    esp_error err;
    espi_bound *bound;
    double noise_gradient, start = spent();
    check(espi_gram_square(kernel, p->data, &one_thread, p->matrix[0], &bound, &err), &err);
    time[0] = spent() - start;
    espi_bound_free(bound);
    for (int k = 1; k < PARTS; k++) {
        start = spent();
        check(
            espi_gp_exact.evaluate(p, kernel, 0.1, &one_thread, point, k == 1 ? NULL : gradient, &noise_gradient, &err),
            &err);
        time[k] = spent() - start;
    }
}

static double spent_alone(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static esp_run run_by(const char *how)
{
    static esp_device *device;
    esp_error err;
    if (strcmp(how, "cuda") != 0) return (esp_run){.threads = atoi(how)};
    if (device == NULL) check(esp_device_open(how, &device, &err), &err);
    return (esp_run){.device = device};
}

/* The times of a run: on the clock, of all processors, of this thread. */
static void find_optimum(const esp_dataset *data, const esp_kernel *kernel, const char *how, double time[PARTS])
{
    esp_error err;
    esp_model *model;
    const esp_run run = run_by(how);
    const double clock_start = now(), all = spent(), alone = spent_alone();
    check(esp_train("gp", kernel, data, NULL, 0, &run, &model, &err), &err);
    time[0] = now() - clock_start;
    time[1] = spent() - all;
    time[2] = spent_alone() - alone;
    esp_model_free(model);
}

static int measure_optimum(const char *path, int repeats, const char *expression, char **how, int runs)
{
    esp_dataset *data = load(path, NULL);
    esp_kernel *kernel = parse(expression);
    double(*all)[PARTS][MOST] = zeros((size_t)runs, sizeof *all), first = 0.0, busy = 0.0;
    for (int i = 0; i < repeats; i++)
        for (int r = 0; r < runs; r++) {
            double time[PARTS];
            find_optimum(data, kernel, how[r], time);
            for (int k = 0; k < PARTS; k++) all[r][k][i] = time[k];
        }
    for (int r = 0; r < runs; r++) {
        const double clock_time = median(all[r][0], repeats), spent_time = median(all[r][1], repeats),
                     alone = median(all[r][2], repeats);
        if (r == 0) first = clock_time, busy = alone;
        printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", how[r], clock_time, spent_time, alone, first / clock_time,
               busy / alone);
    }
    free(all);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    return 0;
}

enum { MATRIX, FACTOR, SOLUTION, INVERSE, GRADIENT, ALL, STEPS };

/* What exact.c does, step by step. */
static void take_steps(const esp_dataset *data, const esp_kernel *kernel, const esp_run *run, double *matrix, double *x,
                       double *gradient, double time[STEPS])
{
    const size_t n = esp_dataset_count(data);
    esp_error err;
    espi_bound *bound;
    espi_factor factor;
    double at[STEPS];
    const double start = now();
    check(espi_gram_square(kernel, data, run, matrix, &bound, &err), &err);
    at[MATRIX] = now();
    for (size_t i = 0; i < n; i++) matrix[i * n + i] += 0.1;
    check(espi_factor_make(matrix, n, false, run, &factor, &err), &err);
    at[FACTOR] = now();
    check(espi_factor_solve(&factor, x, 1, run, &err), &err);
    check(espi_factor_solve(&factor, x, 1, run, &err), &err);
    at[SOLUTION] = now();
    check(espi_factor_invert(&factor, run, &err), &err);
    espi_factor_free(&factor);
    at[INVERSE] = now();
    check(espi_bound_gradient(bound, matrix, matrix, run, gradient, &err), &err);
    espi_bound_free(bound);
    at[GRADIENT] = now();
    time[ALL] = at[GRADIENT] - start;
    for (int k = 0; k < ALL; k++) time[k] = at[k] - (k == 0 ? start : at[k - 1]);
}

static int measure_steps(const char *path, int repeats, const char *expression, char **how, int runs)
{
    esp_dataset *data = load(path, NULL);
    esp_kernel *kernel = parse(expression);
    const size_t n = esp_dataset_count(data);
    double *matrix = zeros(n * n, sizeof *matrix), *x = zeros(n, sizeof *x);
    double *gradient = zeros(espi_kernel_places(kernel), sizeof *gradient);
    double(*all)[STEPS][MOST] = zeros((size_t)runs, sizeof *all);
    for (int i = 0; i < repeats; i++)
        for (int r = 0; r < runs; r++) {
            double time[STEPS];
            const esp_run run = run_by(how[r]);
            for (size_t k = 0; k < n; k++) x[k] = 1.0;
            take_steps(data, kernel, &run, matrix, x, gradient, time);
            for (int k = 0; k < STEPS; k++) all[r][k][i] = time[k];
        }
    for (int r = 0; r < runs; r++) {
        printf("%zu\t%s\t%.3f", n, how[r], median(all[r][ALL], repeats));
        for (int k = 0; k < ALL; k++) printf("\t%.3f", median(all[r][k], repeats));
        printf("\n");
    }
    free(matrix);
    free(x);
    free(gradient);
    free(all);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    return 0;
}

int main(int count, char **argument)
{
    if (count > 5 && strcmp(argument[1], "steps") == 0)
        return measure_steps(argument[2], repeats_of(argument[3]), argument[4], argument + 5, count - 5);
    if (count > 5 && strcmp(argument[1], "optimum") == 0)
        return measure_optimum(argument[2], repeats_of(argument[3]), argument[4], argument + 5, count - 5);
    if (count < 5 || count > 6 || strcmp(argument[1], "likelihood") != 0) {
        fprintf(stderr, "usage: see the head of bench/gp.c\n");
        return 2;
    }
    esp_error err;
    esp_dataset *data = load(argument[2], NULL);
    const int repeats = repeats_of(argument[3]);
    esp_kernel *given = parse(argument[4]), *kernel = given;
    if (count == 6) check(espi_kernel_expand(given, data, &kernel, &err), &err);
    espi_hyper *hyper;
    size_t hypers;
    check(espi_hypers_new(kernel, &hyper, &hypers, &err), &err);
    const size_t n = esp_dataset_count(data);
    double *target = zeros(n, sizeof *target), *gradient = zeros(espi_kernel_places(kernel), sizeof *gradient);
    for (size_t i = 0; i < n; i++) target[i] = strtod(esp_dataset_target(data, i), NULL);
    espi_gp_problem p = {.data = data, .target = target, .count = n, .vector = zeros(8 * n, sizeof(double))};
    for (size_t k = 0; k < espi_gp_exact.matrices; k++) p.matrix[k] = zeros(n * n, sizeof(double));
    espi_gp_point point = {0};
    if (!espi_gp_point_make(&point, n)) return 1;
    double all[PARTS][MOST], ratio[MOST];
    for (int i = 0; i < repeats; i++) {
        double time[PARTS];
        measure(&p, kernel, &point, gradient, time);
        for (int k = 0; k < PARTS; k++) all[k][i] = time[k];
        ratio[i] = time[2] / time[1];
    }
    const double matrix = median(all[0], repeats), value = median(all[1], repeats), both = median(all[2], repeats);
    printf("%zu\t%zu\t%.4f\t%.4f\t%.4f\t%.2f\t%.2f\t%.2f\t%.2f\n", n, hypers + 1, matrix, value, both, matrix / value,
           1.0 - matrix / value, 1.0 - value / both, median(ratio, repeats));
    espi_gp_point_free(&point);
    for (size_t k = 0; k < espi_gp_exact.matrices; k++) free(p.matrix[k]);
    free(p.vector);
    free(target);
    free(gradient);
    espi_hypers_free(hyper, hypers);
    if (kernel != given) esp_kernel_free(kernel);
    esp_kernel_free(given);
    esp_dataset_free(data);
    return 0;
}
