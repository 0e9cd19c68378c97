/* Measurements of support vector machines for bench/svm.sh. Times are medians of runs that alternate between the things
 * compared, in one process; ratios are medians of the ratios within a round. Results go to standard output as lines of
 * TAB-separated fields. */
#include "base/alloc.h"
#include "base/random.h"
#include "learn/model/model.h"
#include "learn/svm/machine.h"
#include "learn/train/registry.h"
#include "measure.h"

#include <libsvm/svm.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 100000000 };

static double median_ratio(const double *above, const double *below, int count)
{
    double ratio[MOST];
    for (int i = 0; i < count; i++) ratio[i] = above[i] / below[i];
    return median(ratio, count);
}

static esp_model *train(const esp_kernel *kernel, const esp_dataset *data, const char *cost)
{
    esp_model *model;
    esp_error err;
    check(esp_train("svm", kernel, data, &(esp_setting){"C", cost}, 1, &one_thread, &model, &err), &err);
    return model;
}

/* Seconds; `out` may be NULL. */
static double time_predict(const esp_model *model, const esp_dataset *data, esp_predictions **out)
{
    esp_predictions *predictions;
    esp_error err;
    const double start = now();
    check(esp_predict(model, data, &one_thread, &predictions, &err), &err);
    const double seconds = now() - start;
    if (out != NULL) *out = predictions;
    else esp_predictions_free(predictions);
    return seconds;
}

/* ------------------------------------------------------------------ training */

typedef struct stage { /* what training consists of, with a Gram matrix that is ready */
    esp_dataset *data;
    espi_targets targets;
    espi_settings *settings;
    espi_bound *bound;
    espi_rows *rows;
    uint32_t *all;
} stage;

/* Everything but the Gram matrix. */
static stage prepare(esp_dataset *data, const char *cost)
{
    stage s = {.data = data};
    esp_error err;
    const espi_learner *svm = espi_learner_find("svm", &err);
    check(espi_settings_new(svm, &(esp_setting){"C", cost}, 1, &s.settings, &err), &err);
    check(svm->targets(s.settings, data, &s.targets, &err), &err);
    s.all = need(malloc(data->rows * sizeof *s.all));
    for (size_t i = 0; i < data->rows; i++) s.all[i] = (uint32_t)i;
    return s;
}

static void release(stage *s)
{
    espi_rows_free(s->rows);
    espi_bound_free(s->bound);
    espi_targets_free(&s->targets);
    espi_settings_free(s->settings);
    free(s->all);
}

static double time_gram(stage *s, const esp_kernel *kernel)
{
    esp_error err;
    espi_rows_free(s->rows);
    espi_bound_free(s->bound);
    const double start = now();
    check(espi_bind(kernel, s->data, s->data, &one_thread, &s->bound, &err), &err);
    check(espi_rows_new(s->bound, &one_thread, &s->rows, &err), &err);
    return now() - start;
}

/* A fit over rows that are there. */
static esp_status fit_rows(const stage *s, espi_rows *rows, const esp_run *run, espi_fit *fit, esp_error *err)
{
    espi_training t = {
        .settings = s->settings, .targets = &s->targets, .example = s->all, .count = s->targets.count, .fit = fit};
    return espi_training_run(&t, rows, run, err);
}

static double time_fit(stage *s, espi_rows *rows)
{
    esp_error err;
    espi_fit fit;
    const double start = now();
    check(fit_rows(s, rows, &one_thread, &fit, &err), &err);
    const double seconds = now() - start;
    espi_fit_free(&fit);
    return seconds;
}

/* whole DATA TARGET KERNEL C REPEATS MODEL: examples, classes, seconds from the data file to the model file, and of
 * that reading, Gram matrix, solver, writing; support vectors. */
static void whole(char **argument)
{
    esp_kernel *kernel = parse(argument[2]);
    const int repeats = repeats_of(argument[4]);
    double all[MOST], read[MOST], gram[MOST], fit[MOST], write[MOST];
    size_t examples = 0, classes = 0, support = 0;
    for (int i = 0; i < repeats; i++) {
        esp_error err;
        const double start = now();
        esp_dataset *data = load(argument[0], argument[1]);
        const double loaded = now();
        esp_model *model = train(kernel, data, argument[3]);
        const double trained = now();
        check(esp_model_write(model, argument[5], &err), &err);
        all[i] = now() - start;
        read[i] = loaded - start;
        write[i] = now() - trained;
        examples = data->rows;
        classes = model->classes;
        support = model->support->rows;
        esp_model_free(model);
        stage s = prepare(data, argument[3]);
        gram[i] = time_gram(&s, kernel);
        fit[i] = time_fit(&s, s.rows);
        release(&s);
        esp_dataset_free(data);
    }
    printf("%zu\t%zu\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%zu\n", examples, classes, median(all, repeats),
           median(read, repeats), median(gram, repeats), median(fit, repeats), median(write, repeats), support);
    esp_kernel_free(kernel);
}

/* classes DATA FEW MANY KERNEL C REPEATS: seconds of the solver with the targets FEW and MANY over the same Gram
 * matrix, their ratio; the same for training with the Gram matrix counted in. */
static void compare_classes(char **argument)
{
    esp_kernel *kernel = parse(argument[3]);
    const int repeats = repeats_of(argument[5]);
    esp_dataset *data[2] = {load(argument[0], argument[1]), load(argument[0], argument[2])};
    stage s[2] = {prepare(data[0], argument[4]), prepare(data[1], argument[4])};
    double fit[2][MOST], both[2][MOST];
    for (int i = 0; i < repeats; i++) {
        const double gram = time_gram(&s[0], kernel);
        for (int k = 0; k < 2; k++) {
            fit[k][i] = time_fit(&s[k], s[0].rows);
            both[k][i] = gram + fit[k][i];
        }
    }
    printf("%zu\t%zu\t%.3f\t%.3f\t%.2f\t%.3f\t%.3f\t%.2f\n", s[0].targets.classes, s[1].targets.classes,
           median(fit[0], repeats), median(fit[1], repeats), median_ratio(fit[1], fit[0], repeats),
           median(both[0], repeats), median(both[1], repeats), median_ratio(both[1], both[0], repeats));
    for (int k = 0; k < 2; k++) {
        release(&s[k]);
        esp_dataset_free(data[k]);
    }
    esp_kernel_free(kernel);
}

/* ------------------------------------------------------------ against LIBSVM */

static size_t libsvm_iterations;

static void listen(const char *text)
{
    const char *count = strstr(text, "#iter = ");
    if (count != NULL) libsvm_iterations += strtoul(count + 8, NULL, 10);
}

/* The Gram matrix as LIBSVM takes it. */
static struct svm_node **libsvm_rows(espi_rows *rows)
{
    const size_t n = espi_rows_count(rows);
    struct svm_node **x = need(malloc(n * sizeof *x));
    for (size_t i = 0; i < n; i++) {
        const float *row;
        esp_error err;
        check(espi_rows_get(rows, i, &row, &err), &err);
        x[i] = need(malloc((n + 2) * sizeof **x));
        x[i][0] = (struct svm_node){.index = 0, .value = (double)(i + 1)};
        for (size_t j = 0; j < n; j++) x[i][j + 1] = (struct svm_node){(int)j + 1, (double)row[j]};
        x[i][n + 1].index = -1;
    }
    return x;
}

/* 1/2 sum_ij c_i c_j K(i, j) - sum_i |c_i|: the dual objective of coefficients c_i = y_i a_i. */
static double objective(struct svm_node *const *x, const double *c, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double f = 0.0;
        if (c[i] == 0.0) continue;
        for (size_t j = 0; j < n; j++) f += c[j] * x[i][j + 1].value;
        sum += 0.5 * c[i] * f - fabs(c[i]);
    }
    return sum;
}

typedef struct problem { /* one class against the rest */
    size_t count;
    espi_smo_problem smo;
    signed char *sign;
    double *linear, *bound, *y, *ours, *theirs; /* the last two: y_i a_i of both solutions */
} problem;

static problem new_problem(const stage *s, double cost)
{
    const size_t n = s->data->rows;
    problem p = {.count = n,
                 .sign = need(malloc(n)),
                 .linear = need(malloc(n * sizeof(double))),
                 .bound = need(malloc(n * sizeof(double))),
                 .y = need(malloc(n * sizeof(double))),
                 .ours = need(malloc(n * sizeof(double))),
                 .theirs = need(malloc(n * sizeof(double)))};
    for (size_t i = 0; i < n; i++) {
        p.linear[i] = -1.0;
        p.bound[i] = cost;
    }
    p.smo = (espi_smo_problem){.rows = s->rows,
                               .variables = n,
                               .example = s->all,
                               .sign = p.sign,
                               .linear = p.linear,
                               .bound = p.bound,
                               .tolerance = 1e-3,
                               .max_iterations = MANY,
                               .shrinking = true};
    return p;
}

static void free_problem(problem *p)
{
    free(p->sign), free(p->linear), free(p->bound), free(p->y), free(p->ours), free(p->theirs);
}

static double time_ours(problem *p, size_t *iterations)
{
    esp_error err;
    espi_smo_result result;
    memset(p->ours, 0, p->count * sizeof *p->ours);
    const double start = now();
    check(espi_smo_solve(&p->smo, &one_thread, p->ours, &result, &err), &err);
    const double seconds = now() - start;
    for (size_t i = 0; i < p->count; i++) p->ours[i] *= p->sign[i];
    *iterations += result.iterations;
    return seconds;
}

static double time_theirs(problem *p, struct svm_node **x, double cost)
{
    const struct svm_problem data = {.l = (int)p->count, .y = p->y, .x = x};
    const struct svm_parameter parameter = {
        .svm_type = C_SVC, .kernel_type = PRECOMPUTED, .cache_size = 1000, .eps = 1e-3, .C = cost, .shrinking = 1};
    memset(p->theirs, 0, p->count * sizeof *p->theirs);
    const double start = now();
    struct svm_model *model = svm_train(&data, &parameter);
    const double seconds = now() - start;
    const double flip = model->label[0] < 0 ? -1.0 : 1.0;
    for (int v = 0; v < model->l; v++) p->theirs[model->sv_indices[v] - 1] = flip * model->sv_coef[0][v];
    svm_free_and_destroy_model(&model);
    return seconds;
}

/* libsvm DATA TARGET KERNEL C REPEATS: problems, our seconds and LIBSVM's over all one-vs-rest problems on one ready
 * Gram matrix, ours / LIBSVM's with the least and the most of the rounds, iterations of both, the largest relative
 * difference of objectives (below 0: ours is lower, hence better). */
static void libsvm(char **argument)
{
    esp_dataset *data = load(argument[0], argument[1]);
    esp_kernel *kernel = parse(argument[2]);
    const double cost = atof(argument[3]);
    const int repeats = repeats_of(argument[4]);
    stage s = prepare(data, argument[3]);
    time_gram(&s, kernel);
    struct svm_node **x = libsvm_rows(s.rows);
    problem p = new_problem(&s, cost);
    double ours[MOST] = {0}, theirs[MOST] = {0}, worst = 0.0;
    size_t iterations = 0;
    svm_set_print_string_function(listen);
    for (int i = 0; i < repeats; i++) {
        libsvm_iterations = iterations = 0;
        for (size_t c = 0; c < s.targets.classes; c++) {
            for (size_t k = 0; k < p.count; k++) p.y[k] = p.sign[k] = s.targets.class_of[k] == c ? 1 : -1;
            ours[i] += time_ours(&p, &iterations);
            theirs[i] += time_theirs(&p, x, cost);
            if (i > 0) continue;
            const double a = objective(x, p.ours, p.count), b = objective(x, p.theirs, p.count);
            if (fabs(a - b) / fabs(b) > fabs(worst)) worst = (a - b) / fabs(b);
        }
    }
    double ratio[MOST];
    for (int i = 0; i < repeats; i++) ratio[i] = ours[i] / theirs[i];
    qsort(ratio, (size_t)repeats, sizeof *ratio, by_value);
    printf("%zu\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%zu\t%zu\t%.1e\n", s.targets.classes, median(ours, repeats),
           median(theirs, repeats), median(ratio, repeats), ratio[0], ratio[repeats - 1], iterations, libsvm_iterations,
           worst);
    for (size_t i = 0; i < p.count; i++) free(x[i]);
    free(x);
    free_problem(&p);
    release(&s);
    esp_kernel_free(kernel);
    esp_dataset_free(data);
}

/* ---------------------------------------------------------------- prediction */

static esp_dataset *first_example(const esp_dataset *data)
{
    bool *column = need(malloc(data->columns * sizeof *column)), *row = need(calloc(data->rows, sizeof *row));
    esp_dataset *out;
    esp_error err;
    for (size_t c = 0; c < data->columns; c++) column[c] = true;
    row[0] = true;
    check(espi_dataset_select(data, column, row, &out, &err), &err);
    free(column);
    free(row);
    return out;
}

/* The largest difference of scores, and whether all labels agree. */
static double difference(const esp_predictions *a, const esp_predictions *b)
{
    double most = 0.0;
    for (size_t i = 0; i < esp_predictions_count(a); i++) {
        if (strcmp(esp_predictions_label(a, i), esp_predictions_label(b, i)) != 0) {
            fprintf(stderr, "bench: example %zu is predicted differently\n", i + 1);
            exit(1);
        }
        for (size_t k = 0; k < esp_predictions_columns(a); k++)
            most = fmax(most, fabs(esp_predictions_column(a, i, k) - esp_predictions_column(b, i, k)));
    }
    return most;
}

/* predict TRAIN TEST TARGET KERNEL SLOW C REPEATS: examples, support vectors, seconds by the folded DAG and by every
 * support vector (the same model with the kernel SLOW), their ratio; seconds that the first prediction prepares, and
 * the ratio with that; largest difference of scores; examples per second by DAG for
 * the test and for the training set. */
static void predict(char **argument)
{
    esp_dataset *data = load(argument[0], argument[2]), *test = load(argument[1], argument[2]);
    esp_dataset *single = first_example(test);
    esp_kernel *kernel = parse(argument[3]), *slow_kernel = parse(argument[4]);
    esp_model *model = train(kernel, data, argument[5]);
    esp_model slow = *model; /* not yet prepared */
    slow.kernel = slow_kernel;
    const int repeats = repeats_of(argument[6]);
    const double prepare = time_predict(model, single, NULL), slow_prepare = time_predict(&slow, single, NULL);
    double dag[MOST], ftk[MOST], large[MOST], most = 0.0;
    for (int i = 0; i < repeats; i++) {
        esp_predictions *a, *b;
        dag[i] = time_predict(model, test, &a);
        ftk[i] = time_predict(&slow, test, &b);
        most = fmax(most, difference(a, b));
        esp_predictions_free(a);
        esp_predictions_free(b);
        large[i] = time_predict(model, data, NULL);
    }
    const double all = median(dag, repeats), slow_all = median(ftk, repeats);
    printf("%zu\t%zu\t%.4f\t%.3f\t%.0f\t%.4f\t%.0f\t%.1e\t%.0f\t%.0f\n", test->rows, model->support->rows, all,
           slow_all, median_ratio(ftk, dag, repeats), prepare, (slow_all + slow_prepare) / (all + prepare), most,
           (double)test->rows / all, (double)data->rows / median(large, repeats));
    espi_scorer_free(slow.scorer);
    esp_model_free(model);
    esp_kernel_free(slow_kernel);
    esp_kernel_free(kernel);
    esp_dataset_free(single);
    esp_dataset_free(test);
    esp_dataset_free(data);
}

/* ----------------------------------------------------------- many small trees */

/* Lets a child use so much memory once: on virtual machines the first touch of a page may cost more than the work. */
static void warm_memory(size_t bytes)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        volatile char *block = need(espi_alloc(bytes, 1));
        for (size_t i = 0; i < bytes; i += 1024) block[i] = 1;
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) exit(1);
}

/* large TRAIN TEST KERNEL C MEGABYTES: examples, seconds of training, rows of the Gram matrix computed, iterations,
 * support vectors, peak memory of reading and training in MB, accuracy on TEST, how it ended. Two classes. */
static void large(char **argument)
{
    esp_dataset *data = load(argument[0], NULL), *test = load(argument[1], NULL);
    esp_kernel *kernel = parse(argument[2]);
    const esp_run run = {.threads = 1, .memory = strtoul(argument[4], NULL, 10) << 20};
    stage s = prepare(data, argument[3]);
    espi_fit fit;
    esp_error err;
    warm_memory(run.memory);
    const double start = now();
    check(espi_bind(kernel, data, data, &run, &s.bound, &err), &err);
    check(espi_rows_new(s.bound, &run, &s.rows, &err), &err);
    check(fit_rows(&s, s.rows, &run, &fit, &err), &err);
    const double seconds = now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double *scores = need(malloc(test->rows * sizeof *scores));
    espi_scorer *folded;
    check(espi_scorer_new(kernel, data, fit.coefficient, 1, &one_thread, &folded, &err), &err);
    check(espi_scorer_score(folded, test, &one_thread, scores, &err), &err);
    espi_scorer_free(folded);
    size_t right = 0, support = 0;
    for (size_t i = 0; i < test->rows; i++)
        right += strcmp(s.targets.name[scores[i] + fit.bias[0] > 0.0], esp_dataset_target(test, i)) == 0;
    for (size_t i = 0; i < data->rows; i++) support += fit.coefficient[i] != 0.0;
    printf("%zu\t%.1f\t%zu\t%zu\t%zu\t%.0f\t%.4f\t%s\n", data->rows, seconds, espi_rows_computed(s.rows),
           fit.iterations, support, (double)usage.ru_maxrss * 1024e-6, (double)right / (double)test->rows,
           fit.converged ? "converged" : "stopped");
    free(scores);
    espi_fit_free(&fit);
    release(&s);
    esp_kernel_free(kernel);
    esp_dataset_free(test);
    esp_dataset_free(data);
}

/* A line `T` of an .srl file, and what is found in it. */
typedef struct constituent {
    size_t start, nodes; /* where it starts in the line; nodes that are not leaves */
    long from, to;       /* tokens */
    size_t end;
    bool argument;
} constituent;

typedef struct sample { /* `size` of those seen, each with the same chance */
    char **tree;
    size_t size, seen;
} sample;

enum { DEEPEST = 1000, LONGEST = 1 << 20, LEAST_NODES = 4, MOST_NODES = 25 };

static bool is_one_of(const char *label, const char *const *names)
{
    const size_t size = strcspn(label, " (");
    for (; *names != NULL; names++)
        if (strlen(*names) == size && memcmp(label, *names, size) == 0) return true;
    return false;
}

/* The constituents of a line; returns their number. */
static size_t constituents(const char *line, constituent *out, size_t most)
{
    size_t open[DEEPEST], depth = 0, count = 0;
    long token = 0;
    for (size_t i = 0; line[i] != '\0' && line[i] != '\n'; i++) {
        if (line[i] == '(') {
            if (depth == DEEPEST || count == most) return 0;
            out[count] = (constituent){.start = i, .from = token, .nodes = 1};
            open[depth++] = count++;
        } else if (line[i] == ')') {
            if (depth == 0) return 0;
            constituent *c = &out[open[--depth]];
            c->end = i + 1;
            c->to = token - 1;
            if (depth > 0) out[open[depth - 1]].nodes += c->nodes;
        } else if (line[i] == ' ' && line[i + 1] != '(') {
            token++; /* a leaf follows */
        }
    }
    return depth == 0 ? count : 0;
}

/* Marks the constituents that are arguments, by a line `P`. */
static void mark_arguments(const char *line, constituent *c, size_t count)
{
    for (const char *at = strstr(line, "\tARG"); at != NULL; at = strstr(at, " ARG")) {
        long from, to;
        at++;
        const char *span = strchr(at, ':');
        if (span == NULL || sscanf(span, ":%ld-%ld", &from, &to) != 2) continue;
        for (size_t i = 0; i < count; i++) c[i].argument = c[i].argument || (c[i].from == from && c[i].to == to);
    }
}

static void offer(sample *s, espi_random *random, const char *tree, size_t size)
{
    size_t place = s->seen;
    if (s->seen++ >= s->size) place = espi_random_below(random, s->seen);
    if (place >= s->size) return;
    free(s->tree[place]);
    s->tree[place] = need(strndup(tree, size));
}

static void offer_sentence(const char *line, const constituent *c, size_t count, sample *sample_of, espi_random *random)
{
    static const char *const wanted[] = {"NP", "PP", "S", "VP", NULL};
    for (size_t i = 0; i < count; i++)
        if (c[i].nodes >= LEAST_NODES && c[i].nodes <= MOST_NODES && is_one_of(line + c[i].start + 1, wanted))
            offer(&sample_of[c[i].argument], random, line + c[i].start, c[i].end - c[i].start);
}

static void print_example(bool argument, const char *tree)
{
    printf("{\"y\": %d, \"tree\": \"", argument ? 1 : -1);
    for (; *tree != '\0'; tree++) {
        if (*tree == '"' || *tree == '\\') putchar('\\');
        putchar(*tree);
    }
    puts("\"}");
}

/* constituents COUNT: from .srl on standard input to JSON Lines: COUNT constituents NP, PP, S or VP of 4 to 25 nodes,
 * one third of them arguments (their span is that of an ARG... of some predicate), drawn and ordered by chance with a
 * fixed seed. */
static void make_constituents(char **argument)
{
    const size_t count = strtoul(argument[0], NULL, 10), third = count / 3;
    sample s[2] = {{.size = count - third}, {.size = third}};
    espi_random random;
    espi_random_seed(&random, 1);
    for (int k = 0; k < 2; k++) s[k].tree = need(calloc(s[k].size + 1, sizeof *s[k].tree));
    char *line = need(malloc(LONGEST)), *sentence = need(malloc(LONGEST));
    constituent *c = need(malloc(LONGEST * sizeof *c));
    size_t found = 0;
    while (fgets(line, LONGEST, stdin) != NULL) {
        if (line[0] == 'P') mark_arguments(line, c, found);
        if (line[0] != 'T') continue;
        offer_sentence(sentence, c, found, s, &random);
        strcpy(sentence, strchr(line, '(') != NULL ? strchr(line, '(') : "");
        found = constituents(sentence, c, LONGEST);
    }
    offer_sentence(sentence, c, found, s, &random);
    for (int k = 0; k < 2; k++)
        if (s[k].seen < s[k].size) s[k].size = s[k].seen;
    for (size_t left = s[0].size + s[1].size; left > 0; left--) { /* both in one random order */
        sample *from = &s[espi_random_below(&random, left) < s[1].size];
        print_example(from == &s[1], from->tree[--from->size]);
        free(from->tree[from->size]);
    }
    fprintf(stderr, "bench: drawn from %zu constituents that are arguments and %zu that are not\n", s[1].seen,
            s[0].seen);
    free(s[0].tree), free(s[1].tree);
    free(line), free(sentence), free(c);
}

int main(int count, char **argument)
{
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } jobs[] = {{"whole", 6, whole},   {"classes", 6, compare_classes},
                {"libsvm", 5, libsvm}, {"predict", 7, predict},
                {"large", 5, large},   {"constituents", 1, make_constituents}};
    for (size_t i = 0; count > 1 && i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(argument[1], jobs[i].name) != 0 || count != jobs[i].arguments + 2) continue;
        jobs[i].run(argument + 2);
        return 0;
    }
    fprintf(stderr, "bench: unknown job or wrong number of arguments; see bench/svm.sh\n");
    return 2;
}
