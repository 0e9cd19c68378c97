/* Measurements of support vector machines without rows for bench/folded.sh and experiments/folded. Times are medians of
 * runs that alternate between the things compared; ratios are medians of the ratios within a round. Rounds end early
 * when they have taken long. Results go to standard output as lines of TAB-separated fields. */
#include "learn/model/model.h"
#include "learn/svm/folded.h"
#include "learn/train/registry.h"
#include "measure.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOLVERS = 2, TOGETHER = 64 };
static const char *const solver_name[SOLVERS] = {"rows", "folded"};

/* As the command line has it: rows may take half of the memory there is. */
static esp_run run_of(int threads)
{
    const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES), size = (size_t)sysconf(_SC_PAGESIZE);
    return (esp_run){.threads = threads, .memory = pages / 2 * size};
}

static double peak_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024e-6;
}

/* Prints "median<TAB>least<TAB>most" of the ratios. */
static void print_ratio(const double *above, const double *below, int rounds)
{
    double ratio[MOST];
    for (int i = 0; i < rounds; i++) ratio[i] = above[i] / below[i];
    qsort(ratio, (size_t)rounds, sizeof *ratio, by_value);
    printf("\t%.2f\t%.2f\t%.2f", median(ratio, rounds), ratio[0], ratio[rounds - 1]);
}

/* ---------------------------------------------------------- rows or folded */

typedef struct outcome {
    double seconds, megabytes;
    size_t examples, classes, support;
} outcome;

static outcome train(char **argument, const char *solver)
{
    esp_dataset *data = load(argument[0], argument[1]);
    esp_kernel *kernel = parse(argument[2]);
    const esp_setting settings[] = {{"C", argument[3]}, {"solver", solver}};
    const esp_run run = run_of(1);
    esp_model *model;
    esp_error err;
    const double start = now();
    check(esp_train("svm", kernel, data, settings, 2, &run, &model, &err), &err);
    const outcome o = {.seconds = now() - start,
                       .megabytes = peak_megabytes(),
                       .examples = data->rows,
                       .classes = model->classes,
                       .support = model->support->rows};
    esp_model_free(model);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
    return o;
}

/* In a process of its own, so that its peak of memory is its own. */
static outcome train_apart(char **argument, const char *solver)
{
    int ends[2];
    outcome o;
    fflush(stdout);
    if (pipe(ends) != 0) exit(1);
    const pid_t child = fork();
    if (child == 0) {
        o = train(argument, solver);
        _exit(write(ends[1], &o, sizeof o) == sizeof o ? 0 : 1);
    }
    close(ends[1]);
    const bool whole = child > 0 && read(ends[0], &o, sizeof o) == sizeof o;
    close(ends[0]);
    if (!whole || waitpid(child, NULL, 0) != child) exit(1);
    return o;
}

/* compare DATA TARGET KERNEL C REPEATS SECONDS: examples, classes; seconds of learning and peak memory in MB (reading
 * included) with rows, then folded; seconds of rows / folded: median, least, most; support vectors of both; rounds. No
 * round begins after so many seconds, but for the first. */
static void compare(char **argument)
{
    const int repeats = repeats_of(argument[4]);
    const double start = now(), most = atof(argument[5]);
    double seconds[SOLVERS][MOST], megabytes[SOLVERS][MOST];
    outcome o[SOLVERS];
    int rounds = 0;
    for (; rounds < repeats && (rounds == 0 || now() - start < most); rounds++) {
        for (int s = 0; s < SOLVERS; s++) {
            o[s] = train_apart(argument, solver_name[s]);
            seconds[s][rounds] = o[s].seconds;
            megabytes[s][rounds] = o[s].megabytes;
        }
    }
    printf("%zu\t%zu", o[0].examples, o[0].classes);
    for (int s = 0; s < SOLVERS; s++) printf("\t%.3f\t%.0f", median(seconds[s], rounds), median(megabytes[s], rounds));
    print_ratio(seconds[0], seconds[1], rounds);
    printf("\t%zu\t%zu\t%d\n", o[0].support, o[1].support, rounds);
}

/* threads DATA TARGET KERNEL C REPEATS SECONDS: examples, classes, seconds of learning by one thread and by two, one /
 * two: median, least, most; rounds. */
static void threads(char **argument)
{
    esp_dataset *data = load(argument[0], argument[1]);
    esp_kernel *kernel = parse(argument[2]);
    const esp_setting settings[] = {{"C", argument[3]}, {"solver", "folded"}};
    const int repeats = repeats_of(argument[4]);
    const double start = now(), most = atof(argument[5]);
    double seconds[2][MOST];
    size_t classes = 0;
    int rounds = 0;
    for (; rounds < repeats && (rounds == 0 || now() - start < most); rounds++) {
        for (int t = 0; t < 2; t++) {
            const esp_run run = run_of(t + 1);
            esp_model *model;
            esp_error err;
            const double begin = now();
            check(esp_train("svm", kernel, data, settings, 2, &run, &model, &err), &err);
            seconds[t][rounds] = now() - begin;
            classes = model->classes;
            esp_model_free(model);
        }
    }
    printf("%zu\t%zu\t%.3f\t%.3f", data->rows, classes, median(seconds[0], rounds), median(seconds[1], rounds));
    print_ratio(seconds[0], seconds[1], rounds);
    printf("\t%d\n", rounds);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* -------------------------------------------------------------------- fits */

typedef struct stage {
    esp_dataset *data;
    esp_kernel *kernel;
    espi_settings *settings;
    espi_targets targets;
    uint32_t *row; /* 0, 1, ... */
    espi_fit fit;
} stage;

static stage prepare(const char *path, const char *target, const char *learner, const char *kernel, const char *cost)
{
    stage s = {.data = load(path, target), .kernel = parse(kernel)};
    const espi_learner *class;
    esp_error err;
    class = espi_learner_find(learner, &err);
    check(class != NULL ? ESP_OK : ESP_ERR_PARAM, &err);
    check(espi_settings_new(class, &(esp_setting){"C", cost}, 1, &s.settings, &err), &err);
    check(class->targets(s.settings, s.data, &s.targets, &err), &err);
    s.row = need(malloc((s.data->rows + 1) * sizeof *s.row));
    for (size_t i = 0; i < s.data->rows; i++) s.row[i] = (uint32_t)i;
    return s;
}

static void release(stage *s)
{
    espi_fit_free(&s->fit);
    espi_targets_free(&s->targets);
    espi_settings_free(s->settings);
    esp_kernel_free(s->kernel);
    esp_dataset_free(s->data);
    free(s->row);
}

/* Learns from the first examples. */
static void fit(stage *s, const char *solver, size_t examples, const esp_run *run)
{
    espi_training t = {
        .settings = s->settings, .targets = &s->targets, .example = s->row, .count = examples, .fit = &s->fit};
    esp_error err;
    if (strcmp(solver, "folded") == 0) {
        espi_folded_sum *sum;
        check(espi_folded_sum_new(s->kernel, s->data, espi_folded_outputs(&t), run, &sum, &err), &err);
        check(espi_folded_fit(&t, s->kernel, sum, run, &err), &err);
        espi_folded_sum_free(sum);
    } else {
        espi_bound *bound;
        espi_rows *rows;
        check(espi_bind(s->kernel, s->data, s->data, run, &bound, &err), &err);
        check(espi_rows_new(bound, run, &rows, &err), &err);
        check(espi_training_run(&t, rows, run, &err), &err);
        espi_rows_free(rows);
        espi_bound_free(bound);
    }
}

/* The sum that was learned, of all outputs. */
static espi_folded_sum *fold(const stage *s, size_t examples, const esp_run *run)
{
    espi_folded_sum *sum;
    esp_error err;
    check(espi_folded_sum_new(s->kernel, s->data, s->fit.outputs, run, &sum, &err), &err);
    check(espi_folded_sum_add(sum, s->row, examples, s->fit.coefficient, &err), &err);
    return sum;
}

static size_t count_support(const stage *s, size_t examples)
{
    size_t support = 0;
    for (size_t i = 0; i < examples; i++) {
        bool any = false;
        for (size_t k = 0; k < s->fit.outputs; k++) any = any || s->fit.coefficient[i * s->fit.outputs + k] != 0.0;
        support += any;
    }
    return support;
}

/* score DATA KERNEL C REPEATS ASKED COUNT: examples learned from (the first COUNT), support vectors, their memory in
 * MB, microseconds per score of the last ASKED examples one at a time, and 64 neighbours at a time, their ratio. */
static void score(char **argument)
{
    stage s = prepare(argument[0], NULL, "svm", argument[1], argument[2]);
    const int repeats = repeats_of(argument[3]);
    size_t asked = strtoul(argument[4], NULL, 10), count = strtoul(argument[5], NULL, 10);
    if (asked > s.data->rows / 2) asked = s.data->rows / 2;
    if (count > s.data->rows - asked) count = s.data->rows - asked;
    fit(&s, "folded", count, &one_thread);
    espi_folded_sum *sum = fold(&s, count, &one_thread);
    const uint32_t *row = s.row + (s.data->rows - asked);
    double *scores = zeros(TOGETHER * s.fit.outputs, sizeof *scores), seconds[2][MOST];
    static const size_t step[2] = {1, TOGETHER};
    for (int i = 0; i < repeats; i++) {
        for (int k = 0; k < 2; k++) {
            esp_error err;
            const double start = now();
            for (size_t a = 0; a < asked; a += step[k]) {
                const size_t some = asked - a < step[k] ? asked - a : step[k];
                check(espi_folded_sum_score(sum, row + a, some, &one_thread, scores, &err), &err);
            }
            seconds[k][i] = now() - start;
        }
    }
    double ratio[MOST];
    for (int i = 0; i < repeats; i++) ratio[i] = seconds[0][i] / seconds[1][i];
    printf("%zu\t%zu\t%.1f\t%.2f\t%.2f\t%.2f\n", count, count_support(&s, count),
           (double)espi_folded_sum_bytes(sum) * 1e-6, median(seconds[0], repeats) / (double)asked * 1e6,
           median(seconds[1], repeats) / (double)asked * 1e6, median(ratio, repeats));
    free(scores);
    espi_folded_sum_free(sum);
    release(&s);
}

/* -------------------------------------------------------------- objectives */

/* +1 or -1: whether an example is of the positive class of an output. */
static double sign_of(const stage *s, size_t example, size_t output)
{
    const size_t positive = s->targets.classes == 2 ? 1 : output;
    return s->targets.class_of[example] == positive ? 1.0 : -1.0;
}

/* Primal and dual objective, of all outputs together, from the coefficients and the bias alone.
 *
 *     square = c'Kc,  primal = square / 2 + C sum_i loss(y_i, f(x_i))
 *     svm:  loss = max(0, 1 - y f),               dual = sum_i |c_i| - square / 2
 *     svr:  loss = max(0, |y - f| - epsilon),     dual = sum_i (y_i c_i - epsilon |c_i|) - square / 2  */
static void objectives(const stage *s, double cost, const esp_run *run, double *primal, double *dual)
{
    const size_t n = s->data->rows, outputs = s->fit.outputs;
    const double epsilon = 0.1; /* its default */
    double *score_of = zeros(n * outputs, sizeof *score_of), square = 0.0, loss = 0.0, linear = 0.0;
    espi_folded_sum *sum = fold(s, n, run);
    esp_error err;
    check(espi_folded_sum_score(sum, s->row, n, run, score_of, &err), &err);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < outputs; k++) {
            const double c = s->fit.coefficient[i * outputs + k], h = score_of[i * outputs + k], f = h + s->fit.bias[k];
            square += c * h;
            if (s->targets.classes > 0) {
                linear += fabs(c);
                loss += fmax(0.0, 1.0 - sign_of(s, i, k) * f);
            } else {
                linear += s->targets.value[i] * c - epsilon * fabs(c);
                loss += fmax(0.0, fabs(s->targets.value[i] - f) - epsilon);
            }
        }
    }
    *primal = square / 2.0 + cost * loss;
    *dual = linear - square / 2.0;
    espi_folded_sum_free(sum);
    free(score_of);
}

/* A line for each example of a file: its class or number. */
static void predict(const stage *s, const char *path, const char *target, const char *output, const esp_run *run)
{
    esp_dataset *test = load(path, target);
    const size_t outputs = s->fit.outputs;
    double *scores = zeros(test->rows * outputs, sizeof *scores);
    espi_scorer *scorer;
    esp_error err;
    FILE *file = need(fopen(output, "w"));
    check(espi_scorer_new(s->kernel, s->data, s->fit.coefficient, outputs, run, &scorer, &err), &err);
    check(espi_scorer_score(scorer, test, run, scores, &err), &err);
    for (size_t i = 0; i < test->rows; i++) {
        const double *f = scores + i * outputs;
        size_t best = 0;
        for (size_t k = 1; k < outputs; k++)
            if (f[k] + s->fit.bias[k] > f[best] + s->fit.bias[best]) best = k;
        if (s->targets.classes == 0) fprintf(file, "%.12g\n", f[0] + s->fit.bias[0]);
        else fprintf(file, "%s\n", s->targets.name[outputs > 1 ? best : f[0] + s->fit.bias[0] > 0.0]);
    }
    if (fclose(file) != 0) exit(1);
    espi_scorer_free(scorer);
    free(scores);
    esp_dataset_free(test);
}

/* fit SOLVER THREADS DATA TARGET LEARNER KERNEL C TEST PREDICTIONS: seconds of learning, peak memory in MB with
 * reading, primal and dual objective, support vectors, how it ended. What is predicted for TEST goes to the file
 * PREDICTIONS. */
static void fit_and_judge(char **argument)
{
    stage s = prepare(argument[2], argument[3], argument[4], argument[5], argument[6]);
    const esp_run run = run_of(atoi(argument[1]));
    const double start = now();
    double primal, dual;
    fit(&s, argument[0], s.data->rows, &run);
    const double seconds = now() - start, megabytes = peak_megabytes();
    objectives(&s, atof(argument[6]), &run, &primal, &dual);
    predict(&s, argument[7], argument[3], argument[8], &run);
    printf("%.3f\t%.0f\t%.15g\t%.15g\t%zu\t%s\n", seconds, megabytes, primal, dual, count_support(&s, s.data->rows),
           s.fit.converged ? "converged" : "stopped");
    release(&s);
}

int main(int count, char **argument)
{
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } jobs[] = {{"compare", 6, compare}, {"threads", 6, threads}, {"score", 6, score}, {"fit", 9, fit_and_judge}};
    for (size_t i = 0; count > 1 && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(argument[1], jobs[i].name) != 0 || count != jobs[i].arguments + 2) continue;
        jobs[i].run(argument + 2);
        return 0;
    }
    fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/folded.sh\n");
    return 2;
}
