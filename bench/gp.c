/* Measurements of Gaussian processes for bench/gp.sh, in seconds of the processor on one thread. Results go to standard
 * output as lines of TAB-separated fields.
 *
 *     likelihood DATA REPEATS KERNEL [apart]     examples, hyperparameters, seconds of the kernel matrix, of one log
 *                                                likelihood, of one with its gradient; the shares of the matrix and of
 * the factor in the likelihood, and of the gradient in the last; ratio of the two
 *
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

int main(int count, char **argument)
{
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
