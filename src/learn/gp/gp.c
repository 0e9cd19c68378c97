/* Gaussian processes from settings and data to a model, and in cross-validation; gp.h tells how the parts fit. */
#include "base/dense.h"
#include "learn/gp/gp.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/model.h"
#include "learn/predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- settings */

static const char *const likelihoods[] = {[ESPI_GAUSSIAN] = "gaussian", [ESPI_BERNOULLI] = "bernoulli", NULL};
static const char *const means[] = {"zero", "constant", NULL};
static const char *const standards[] = {[ESPI_UNIT] = "unit", [ESPI_MEAN] = "mean", [ESPI_NONE] = "none", NULL};

static const char *const solvers[] = {
    [ESPI_GP_AUTO] = "auto", [ESPI_GP_EXACT] = "exact", [ESPI_GP_ITERATIVE] = "iterative", NULL};

#define FIELD(name) .offset = offsetof(espi_gp_settings, name)
/* clang-format off */
static const espi_setting settings[] = {
    {.info = {"likelihood", "numbers with normal noise, or two classes with probabilities", "gaussian",
              "gaussian or bernoulli", ESP_KIND_CHOICE},
     FIELD(likelihood), .choices = likelihoods},
    {.info = {"noise", "variance of the noise to start from, of standardised targets; 0: none", "0.1", "a number >= 0",
              ESP_KIND_NUMBER},
     FIELD(noise), .low = 0.0, .high = 1e100},
    {.info = {"mean", "what is expected far from all examples: 0, or a number that is learned", "zero",
              "zero or constant", ESP_KIND_CHOICE},
     FIELD(constant_mean), .choices = means},
    {.info = {"standardise", "targets to mean 0 and variance 1, to mean 0 only, or left alone", "unit",
              "unit, mean or none", ESP_KIND_CHOICE},
     FIELD(standardise), .choices = standards},
    {.info = {"inducing", "so many examples stand for all, and alone support the model; 0: all examples", "0",
              "a whole number >= 0", ESP_KIND_WHOLE},
     FIELD(inducing), .low = 0.0, .high = 1e9},
    {.info = {"restarts", "also start from so many random hyperparameters", "0", "a whole number >= 0",
              ESP_KIND_WHOLE},
     FIELD(restarts), .low = 0.0, .high = 1e6},
    {.info = {"fix", "hyperparameters that stay as given", "", "names or patterns such as 'noise,lambda.*'",
              ESP_KIND_TEXT},
     FIELD(fix)},
    {.info = {"tie", "hyperparameters that share one value, by pattern", "", "patterns such as 'lambda.*,alpha.*'",
              ESP_KIND_TEXT},
     FIELD(tie)},
    {.info = {"group", "labels that share their lambda, and their alpha", "", "labels such as 'S,SQ;NP,NN'",
              ESP_KIND_TEXT},
     FIELD(group)},
    {.info = {"prior", "log-normal priors of hyperparameters", "",
              "name=median,sd;..., sd being that of the logarithm", ESP_KIND_TEXT},
     FIELD(prior)},
    {.info = {"max-iterations", "stop each run after so many steps in any case", "200", "a whole number >= 0",
              ESP_KIND_WHOLE},
     FIELD(max_iterations), .low = 0.0, .high = 1e9},
    {.info = {"tolerance", "stop when the gradient is smaller, or five steps raise the log likelihood by less",
              "0.0001", "a number > 0, at most 1", ESP_KIND_NUMBER},
     FIELD(tolerance), .low = 0.0, .low_open = true, .high = 1.0},
    {.info = {"solver", "exact: with the whole Gram matrix; iterative: without it, on very many examples; auto: what is faster",
              "auto", "auto, exact or iterative", ESP_KIND_CHOICE},
     FIELD(solver), .choices = solvers, .unrecorded = true},
    {.info = {"solver-rank", "rank of the iterative solver's preconditioner; 0: by the number of examples", "0",
              "a whole number >= 0", ESP_KIND_WHOLE},
     FIELD(rank), .low = 0.0, .high = 1e6, .unrecorded = true},
    {.info = {"probes", "random vectors of the iterative solver's estimates; 0: by the number of examples", "0",
              "a whole number >= 0", ESP_KIND_WHOLE},
     FIELD(probes), .low = 0.0, .high = 1e4, .unrecorded = true},
    {.info = {"residual", "largest residual of the iterative solver's coefficients, relative to the targets", "1e-08",
              "a number > 0, at most 0.01", ESP_KIND_NUMBER},
     FIELD(residual), .low = 0.0, .low_open = true, .high = 0.01, .unrecorded = true},
    {.info = {"solver-iterations", "maximum number of iterations of one solve by the iterative solver", "1000",
              "a whole number >= 1", ESP_KIND_WHOLE},
     FIELD(iterations), .low = 1.0, .high = 1e9, .unrecorded = true},
    {.info = {"keep-partial", "keep a model whose iterative solver has not converged", "0", "a flag", ESP_KIND_FLAG},
     FIELD(keep_partial), .unrecorded = true},
    {.info = {0}},
};
/* clang-format on */

static const espi_gp_settings *view(const espi_settings *s) { return (const espi_gp_settings *)(const void *)s; }

static bool learns_classes(const espi_settings *s) { return view(s)->likelihood == ESPI_BERNOULLI; }

/* A setting that was given and that only numbers have; NULL: there is none. */
static const char *of_numbers(const espi_gp_settings *s)
{
    if (espi_settings_given(&s->common, &s->standardise)) return "standardise";
    return espi_settings_given(&s->common, &s->noise) ? "noise" : NULL;
}

static esp_status check_iterative(const espi_gp_settings *s, esp_error *err)
{
    if (s->likelihood == ESPI_BERNOULLI)
        return espi_fail(err, ESP_ERR_PARAM,
                         "solver iterative is for numbers; likelihood bernoulli needs solver exact");
    if (s->inducing > 0)
        return espi_fail(err, ESP_ERR_PARAM, "solver iterative learns from all examples; leave out inducing");
    if (s->noise == 0.0) return espi_fail(err, ESP_ERR_PARAM, "noise is 0; solver iterative needs noise above 0");
    return ESP_OK;
}

static esp_status check(const espi_settings *common, esp_error *err)
{
    const espi_gp_settings *s = view(common);
    if (learns_classes(common) && of_numbers(s) != NULL)
        return espi_fail(err, ESP_ERR_PARAM, "%s is for numbers, not for the classes of likelihood bernoulli",
                         of_numbers(s));
    if (learns_classes(common) && s->constant_mean)
        return espi_fail(err, ESP_ERR_PARAM, "mean constant is for numbers; likelihood bernoulli needs mean zero");
    if (learns_classes(common) && s->inducing > 0)
        return espi_fail(err, ESP_ERR_PARAM, "inducing is for numbers; likelihood bernoulli learns from all examples");
    if (s->inducing > 0 && s->noise == 0.0)
        return espi_fail(err, ESP_ERR_PARAM, "noise is 0; inducing needs noise above 0");
    return s->solver == ESPI_GP_ITERATIVE ? check_iterative(s, err) : ESP_OK;
}

static unsigned capabilities_with(const espi_settings *s)
{
    return ESP_NEEDS_TARGET | ESP_LEARNS_KERNEL | ESP_GIVES_VARIANCES |
           (view(s)->inducing == 0 && view(s)->solver != ESPI_GP_ITERATIVE ? ESP_NEEDS_MATRIX : 0) |
           (learns_classes(s) ? ESP_LEARNS_CLASSES | ESP_GIVES_PROBABILITIES : ESP_LEARNS_NUMBERS);
}

static esp_status check_kernel(const espi_settings *s, const esp_kernel *kernel, esp_error *err)
{
    (void)s;
    if (!espi_kernel_selects(kernel)) return ESP_OK;
    return espi_fail(err, ESP_ERR_PARAM,
                     "%s selects patterns while it is learned; gp needs a kernel that does not, such as sst or seq",
                     esp_kernel_text(kernel));
}

static esp_status make_targets(const espi_settings *s, const esp_dataset *data, espi_targets *out, esp_error *err)
{
    if (learns_classes(s)) return espi_targets_classes(s, data, out, err);
    const esp_status status = espi_targets_numbers(s, data, out, err);
    if (status == ESP_ERR_PARSE && err != NULL && data->target_name != NULL)
        espi_append(err->message, sizeof err->message, ", and two classes need likelihood bernoulli");
    return status;
}

/* ---------------------------------------------------------------- training */

typedef struct training {
    const espi_gp_settings *settings;
    const espi_gp_likelihood *likelihood;
    espi_gp_problem problem;
    double *target;           /* as the process sees them */
    double mean, scale;       /* the targets are mean + scale times these */
    double spread;            /* the variance of these */
    bool constant;            /* they are all 0 */
    espi_inducing inducing;   /* with inducing examples: these */
    espi_iterative iterative; /* without the matrix: what stands for it */
    espi_gp_space space;
    espi_gp_found found;
    bool cancelled;
} training;

/* ---------------------------------------------------------------- targets */

static esp_status check_problem(const espi_targets *targets, esp_error *err)
{
    if (targets->count == 0) return espi_fail(err, ESP_ERR_PARSE, "there are no examples to learn from");
    if (targets->classes > 2)
        return espi_fail(err, ESP_ERR_PARSE, "there are %zu classes; likelihood bernoulli is for two",
                         targets->classes);
    return ESP_OK;
}

/* Mean and standard deviation. Squares are taken of fractions of the largest deviation: they do not overflow. */
static void measure(const double *value, size_t n, double *mean, double *deviation)
{
    double most = 0.0, sum = 0.0;
    *mean = 0.0;
    for (size_t i = 0; i < n; i++) *mean += value[i] / (double)n;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(value[i] - *mean));
    for (size_t i = 0; i < n; i++) sum += most > 0.0 ? (value[i] - *mean) / most * ((value[i] - *mean) / most) : 0.0;
    *deviation = most * sqrt(sum / (double)n);
}

static esp_status standardise(training *t, const espi_targets *targets, esp_error *err)
{
    const size_t n = targets->count;
    const espi_choice how = t->settings->standardise;
    double mean, deviation;
    t->scale = t->spread = 1.0;
    if (targets->classes > 0) {
        for (size_t i = 0; i < n; i++) t->target[i] = targets->class_of[i] == 1 ? 1.0 : -1.0;
        return ESP_OK;
    }
    bool same = true;
    for (size_t i = 1; i < n; i++) same = same && targets->value[i] == targets->value[0];
    measure(targets->value, n, &mean, &deviation);
    if (same) mean = targets->value[0];
    if (!isfinite(mean) || !isfinite(deviation * deviation))
        return espi_fail(err, ESP_ERR_RANGE, "the targets are too large to take their variance");
    t->constant = same && how != ESPI_NONE;
    if (how != ESPI_NONE) t->mean = mean;
    if (how == ESPI_UNIT && !same && deviation > 0.0) t->scale = deviation;
    if (!same && deviation > 0.0) t->spread = deviation / t->scale * (deviation / t->scale);
    if (t->spread < 1e-290)
        return espi_fail(err, ESP_ERR_RANGE,
                         "the targets are too small to take their variance; standardise unit scales them");
    for (size_t i = 0; i < n; i++) t->target[i] = (targets->value[i] - t->mean) / t->scale;
    return ESP_OK;
}

/* --------------------------------------------------------------- learning */

static double matrix_bytes(const training *t, size_t n)
{
    return (double)t->likelihood->matrices * (double)n * (double)n * sizeof(double);
}

static esp_status take_room(training *t, const esp_run *run, esp_error *err)
{
    const size_t n = t->problem.count;
    const espi_iterative *i = t->problem.iterative;
    const double bytes = i != NULL ? espi_iterative_bytes(i->rank, i->probes, n) : matrix_bytes(t, n);
    char need[32], limit[32];
    if (run != NULL && run->memory > 0 && bytes > (double)run->memory)
        return espi_fail(err, ESP_ERR_MEMORY, "a Gaussian process of %zu examples takes %s; the limit is %s%s", n,
                         espi_size_text(bytes, need), espi_size_text((double)run->memory, limit),
                         i != NULL                         ? "; a smaller solver-rank takes less"
                         : t->likelihood == &espi_gp_exact ? "; solver iterative and inducing take less"
                                                           : "");
    if (t->problem.inducing != NULL) {
        const size_t pivots = t->settings->inducing < n ? t->settings->inducing : n;
        const esp_status status = espi_low_rank_room(pivots, n, run, err);
        if (status != ESP_OK) return status;
    }
    bool ok = espi_dense_ready();
    for (size_t k = 0; ok && k < t->likelihood->matrices; k++) {
        t->problem.matrix[k] = espi_alloc(n, n * sizeof(double));
        ok = t->problem.matrix[k] != NULL;
    }
    t->problem.vector = ok ? espi_alloc(8 * n, sizeof *t->problem.vector) : NULL;
    ok = ok && t->problem.vector != NULL && espi_gp_point_make(&t->found.point, n);
    t->found.value = ok ? espi_alloc_zero(t->space.variables, sizeof *t->found.value) : NULL;
    return t->found.value != NULL ? ESP_OK : espi_no_memory(err);
}

/* `keep`: a run that is cancelled gives what it found. */
static esp_status learn(training *t, const espi_problem *p, bool keep, esp_error *err)
{
    const espi_targets *targets = p->targets;
    esp_status status = check_problem(targets, err);
    if (status != ESP_OK) return status;
    const bool inducing = t->settings->inducing > 0,
               iterative = espi_gp_is_iterative(t->settings, targets->count, p->run);
    t->likelihood = targets->classes > 0 ? &espi_gp_laplace
                    : inducing           ? &espi_gp_inducing
                    : iterative          ? &espi_gp_iterative
                                         : &espi_gp_exact;
    t->target = espi_alloc(targets->count, sizeof *t->target);
    status = t->target == NULL ? espi_no_memory(err) : standardise(t, targets, err);
    t->problem.data = p->data;
    t->problem.target = t->target;
    t->problem.count = targets->count;
    t->problem.constant_mean = t->settings->constant_mean;
    t->problem.inducing = inducing ? &t->inducing : NULL;
    t->problem.iterative = iterative ? &t->iterative : NULL;
    if (iterative) espi_gp_iterative_start(&t->iterative, t->settings, targets->count);
    t->found.shift = -(double)targets->count * log(t->scale);
    if (status == ESP_OK)
        status =
            espi_gp_space_new(&t->space, t->settings, p->kernel, p->data, t->likelihood->noisy, t->spread, p->run, err);
    if (status == ESP_OK) status = take_room(t, p->run, err);
    espi_gp_settings own = *t->settings; /* with nothing to learn from, the hyperparameters stay */
    if (t->constant) own.max_iterations = own.restarts = 0;
    if (status == ESP_OK)
        status = inducing    ? espi_gp_inducing_search(&t->space, &t->problem, &own, keep, p->run, &t->found, err)
                 : iterative ? espi_gp_iterative_search(&t->space, &t->problem, &own, keep, p->run, &t->found, err)
                             : espi_gp_search(&t->space, &t->problem, t->likelihood, &own, p->run, &t->found, err);
    if (status == ESP_ERR_CANCELLED && keep && t->found.there) {
        t->cancelled = true;
        status = ESP_OK;
    }
    return status == ESP_OK ? espi_kernel_print(t->space.kernel, err) : status;
}

static void end_training(training *t)
{
    for (size_t k = 0; k < 3; k++) espi_free(t->problem.matrix[k]);
    espi_free(t->problem.vector);
    espi_inducing_free(&t->inducing);
    espi_iterative_free(&t->iterative);
    espi_free(t->target);
    espi_gp_space_free(&t->space);
    espi_gp_point_free(&t->found.point);
    espi_free(t->found.value);
}

/* ------------------------------------------------------------------ model */

/* Variables that ended at a bound: "at a bound<TAB>lambda 1". */
static void add_bounds(espi_text *text, const training *t)
{
    for (size_t v = 0; v < t->space.variables; v++) {
        const espi_gp_variable *m = &t->space.moving[v];
        const double value = t->found.value[v];
        if (value > m->low && value < m->high) continue;
        espi_text_string(text, "at a bound\t");
        espi_text_field(text, m->name, strlen(m->name));
        espi_text_string(text, " ");
        espi_text_number(text, value);
        espi_text_string(text, "\n");
    }
}

static void add_solver(espi_text *text, const espi_iterative *s)
{
    char line[160];
    snprintf(line, sizeof line, "solver\titerative\nsolver-rank\t%zu\nprobes\t%zu\nsolver-iterations\t%zu\n",
             s->preconditioner.rank, s->probes, s->steps);
    espi_text_string(text, line);
    espi_text_fact(text, "residual", s->reached);
    if (!(s->reached <= s->residual)) espi_text_string(text, "converged\tno\n");
}

static char *summary_text(const training *t)
{
    espi_text text = {0};
    char line[160];
    snprintf(line, sizeof line, "trained-on\t%zu\n", t->problem.count);
    espi_text_string(&text, line);
    if (t->problem.inducing != NULL) {
        snprintf(line, sizeof line, "inducing\t%zu\n", t->inducing.pivots);
        espi_text_string(&text, line);
    }
    if (t->problem.iterative != NULL) add_solver(&text, &t->iterative);
    espi_text_fact(&text, t->likelihood->value, t->found.point.value + t->found.shift);
    if (t->found.point.jitter > 0.0) espi_text_fact(&text, "jitter", t->found.point.jitter);
    add_bounds(&text, t);
    snprintf(line, sizeof line, "runs\t%zu\niterations\t%zu\nend\t%s\n", t->found.runs, t->found.iterations,
             t->cancelled  ? "interrupted"
             : t->constant ? "nothing to learn: all targets are the same"
                           : t->found.end);
    espi_text_string(&text, line);
    return espi_text_take(&text);
}

/* All examples, or the inducing ones. */
static esp_status take_examples(esp_model *m, training *t, esp_error *err)
{
    const size_t n = t->problem.count;
    if (t->problem.inducing != NULL) {
        m->support = t->inducing.support;
        t->inducing.support = NULL;
        return ESP_OK;
    }
    bool *all = espi_alloc(n, sizeof *all);
    if (all == NULL) return espi_no_memory(err);
    for (size_t i = 0; i < n; i++) all[i] = true;
    const esp_status status = espi_copy_rows(m->kernel, t->problem.data, all, &m->support, err);
    espi_free(all);
    return status;
}

static esp_status fill_support(esp_model *m, training *t, esp_error *err)
{
    espi_low_rank *low_rank = t->problem.inducing != NULL ? &t->inducing.bound : NULL;
    const double *coefficient = low_rank != NULL ? low_rank->coefficient : t->found.point.coefficient;
    const esp_status status = take_examples(m, t, err);
    if (status != ESP_OK) return status;
    const size_t n = m->support->rows;
    espi_gaussian *p = m->gaussian = espi_alloc_zero(1, sizeof *p);
    m->coefficient = espi_alloc(n, sizeof *m->coefficient);
    m->bias = espi_alloc(1, sizeof *m->bias);
    if (p == NULL || m->coefficient == NULL || m->bias == NULL) return espi_no_memory(err);
    p->scale = t->scale;
    p->noise = espi_gp_space_noise(&t->space);
    p->jitter = t->found.point.jitter;
    m->bias[0] = t->mean + t->scale * t->found.point.mean;
    for (size_t i = 0; i < n; i++) m->coefficient[i] = t->scale * coefficient[i];
    if (low_rank != NULL) {
        espi_low_rank_posterior(low_rank, low_rank->w_mm); /* no one needs these weights any more */
        p->reduction = low_rank->w_mm;
        low_rank->w_mm = NULL;
    }
    if (m->classes == 0) return ESP_OK;
    p->curvature = espi_alloc(n, sizeof *p->curvature);
    if (p->curvature == NULL) return espi_no_memory(err);
    memcpy(p->curvature, t->found.point.curvature, n * sizeof *p->curvature);
    return ESP_OK;
}

static esp_status learn_model(const espi_problem *p, bool keep, esp_model **out, esp_error *err)
{
    training t = {.settings = view(p->settings)};
    esp_model *m = NULL;
    *out = NULL;
    esp_status status = learn(&t, p, keep, err);
    if (status == ESP_OK)
        status = espi_model_begin(p->settings, p->targets->name, p->targets->classes, summary_text(&t), &m, err);
    if (status == ESP_OK) {
        m->kernel = t.space.kernel;
        t.space.kernel = NULL;
        m->outputs = 1;
        status = fill_support(m, &t, err);
    }
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    end_training(&t);
    return status;
}

static esp_status train(const espi_problem *problem, esp_model **out, esp_error *err)
{
    return learn_model(problem, true, out, err);
}

/* ------------------------------------------------------------------ folds */

/* The targets of the examples that are not of this fold; names belong to `all`. */
static bool take_targets(espi_targets *part, const espi_targets *all, const uint32_t *fold, size_t number)
{
    *part = (espi_targets){.classes = all->classes, .name = all->name};
    if (all->classes > 0) part->class_of = espi_alloc(all->count, sizeof *part->class_of);
    else part->value = espi_alloc(all->count, sizeof *part->value);
    if (part->class_of == NULL && part->value == NULL) return false;
    for (size_t i = 0; i < all->count; i++) {
        if (fold[i] == number) continue;
        if (all->classes > 0) part->class_of[part->count++] = all->class_of[i];
        else part->value[part->count++] = all->value[i];
    }
    return true;
}

static esp_status one_fold(const espi_problem *all, const espi_folds *folds, size_t number, const espi_trial *trial,
                           esp_error *err)
{
    const size_t rows = all->data->rows;
    espi_targets targets = {0};
    espi_problem part = {.settings = trial->settings, .kernel = all->kernel, .targets = &targets, .run = all->run};
    esp_dataset *train = NULL, *test = NULL;
    esp_model *model = NULL;
    esp_predictions *predicted = NULL;
    bool *row = espi_alloc(rows, sizeof *row);
    esp_status status =
        row != NULL && take_targets(&targets, all->targets, folds->fold, number) ? ESP_OK : espi_no_memory(err);
    for (size_t i = 0; status == ESP_OK && i < rows; i++) row[i] = folds->fold[i] != number;
    if (status == ESP_OK) status = espi_copy_rows(all->kernel, all->data, row, &train, err);
    for (size_t i = 0; status == ESP_OK && i < rows; i++) row[i] = folds->fold[i] == number;
    if (status == ESP_OK) status = espi_copy_rows(all->kernel, all->data, row, &test, err);
    part.data = train;
    if (status == ESP_OK) status = learn_model(&part, false, &model, err);
    if (status == ESP_OK) status = esp_predict(model, test, all->run, &predicted, err);
    for (size_t i = 0, k = 0; status == ESP_OK && i < rows; i++) {
        if (!row[i]) continue;
        trial->take(trial->context, i, &predicted->column[k], &predicted->variance[2 * k]);
        k++;
    }
    esp_predictions_free(predicted);
    esp_model_free(model);
    esp_dataset_free(train);
    esp_dataset_free(test);
    espi_free(targets.class_of);
    espi_free(targets.value);
    espi_free(row);
    return status;
}

static esp_status out_of_fold(const espi_problem *problem, const espi_folds *folds, const espi_trial *trial,
                              size_t trials, esp_error *err)
{
    esp_status status = espi_check_columns(problem->kernel, problem->data, err);
    for (size_t t = 0; status == ESP_OK && t < trials; t++) {
        for (size_t f = 0; status == ESP_OK && f < folds->count; f++) {
            char line[80];
            snprintf(line, sizeof line, "fold %zu of %zu", f + 1, folds->count);
            espi_message(problem->run, line);
            status = one_fold(problem, folds, f, &trial[t], err);
        }
        if (status == ESP_OK && trials > 1)
            status = espi_progress(problem->run, "searching", (double)(t + 1) / (double)trials, err);
    }
    return status;
}

const espi_learner espi_learner_gp = {
    .name = "gp",
    .help = "Gaussian process for numbers or two classes, which learns the kernel too",
    .settings = settings,
    .settings_size = sizeof(espi_gp_settings),
    .capabilities = ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS | ESP_NEEDS_TARGET | ESP_NEEDS_MATRIX | ESP_LEARNS_KERNEL |
                    ESP_GIVES_VARIANCES | ESP_GIVES_PROBABILITIES,
    .capabilities_with = capabilities_with,
    .check = check,
    .check_kernel = check_kernel,
    .targets = make_targets,
    .outputs = espi_one_output,
    .train = train,
    .out_of_fold = out_of_fold};
