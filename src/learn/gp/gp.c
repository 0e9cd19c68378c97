/* Gaussian processes from settings and data to a model or a likelihood; gp.h tells how the parts fit. */
#include "base/dense.h"
#include "learn/gp/gp.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernel/expression/columns.h"
#include "learn/model/model.h"

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
    {.info = {"likelihood", "numbers with normal noise, or classes with probabilities", "gaussian",
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
    {.info = {"solver", "exact: the whole Gram matrix; iterative: no matrix, for very many examples; auto: the faster one",
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
        espi_append(err->message, sizeof err->message, ", and classes need likelihood bernoulli");
    return status;
}

/* ---------------------------------------------------------------- training */

typedef struct training {
    const espi_gp_settings *settings;
    const espi_gp_likelihood *likelihood;
    espi_gp_problem problem;
    double *target;           /* as the process sees them */
    espi_gp_modes modes;      /* of classes */
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

static size_t outputs(const espi_settings *s, size_t classes)
{
    (void)s;
    return espi_class_outputs(classes, false);
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
    for (size_t k = 0; targets->classes > 0 && k < t->problem.outputs; k++) {
        size_t positive, negative;
        espi_output_classes(false, targets->classes, k, &positive, &negative);
        for (size_t i = 0; i < n; i++) t->target[k * n + i] = targets->class_of[i] == positive ? 1.0 : -1.0;
    }
    if (targets->classes > 0) return ESP_OK;
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
    const size_t n = t->problem.count, values = t->problem.modes != NULL ? n * t->problem.outputs : 0;
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
    bool ok = true;
    for (size_t k = 0; ok && k < t->likelihood->matrices; k++) {
        t->problem.matrix[k] = espi_alloc(n, n * sizeof(double));
        ok = t->problem.matrix[k] != NULL;
    }
    t->problem.vector = ok ? espi_alloc(8 * n, sizeof *t->problem.vector) : NULL;
    t->modes.coefficient = espi_alloc_zero(values, sizeof *t->modes.coefficient);
    t->modes.curvature = espi_alloc_zero(values, sizeof *t->modes.curvature);
    t->modes.latent = espi_alloc_zero(values, sizeof *t->modes.latent);
    ok = ok && t->modes.coefficient != NULL && t->modes.curvature != NULL && t->modes.latent != NULL &&
         t->problem.vector != NULL && espi_gp_point_make(&t->found.point, n);
    t->found.value = ok ? espi_alloc_zero(t->space.variables, sizeof *t->found.value) : NULL;
    return t->found.value != NULL ? ESP_OK : espi_no_memory(err);
}

/* Likelihood and targets. */
static esp_status prepare(training *t, const espi_problem *p, esp_error *err)
{
    const espi_targets *targets = p->targets;
    const bool inducing = t->settings->inducing > 0,
               iterative = espi_gp_is_iterative(t->settings, targets->count, p->run);
    if (targets->count == 0) return espi_fail(err, ESP_ERR_PARSE, "there are no examples to learn from");
    t->likelihood = targets->classes > 2   ? &espi_gp_one_vs_rest
                    : targets->classes > 0 ? &espi_gp_laplace
                    : inducing             ? &espi_gp_inducing
                    : iterative            ? &espi_gp_iterative
                                           : &espi_gp_exact;
    t->problem.data = p->data;
    t->problem.count = targets->count;
    t->problem.outputs = outputs(p->settings, targets->classes);
    t->problem.constant_mean = t->settings->constant_mean;
    t->problem.inducing = inducing ? &t->inducing : NULL;
    t->problem.iterative = iterative ? &t->iterative : NULL;
    if (iterative) espi_gp_iterative_start(&t->iterative, t->settings, targets->count, p->run);
    t->problem.modes = targets->classes > 0 ? &t->modes : NULL;
    t->problem.target = t->target = espi_alloc(targets->count, t->problem.outputs * sizeof *t->target);
    const esp_status status = t->target == NULL ? espi_no_memory(err) : standardise(t, targets, err);
    t->found.shift = -(double)targets->count * log(t->scale);
    return status;
}

/* The modes of the best point, where the last evaluation was at another. Whoever cancelled wants to have them too. */
static esp_status find_modes(training *t, const esp_run *run, esp_error *err)
{
    esp_run patient = run != NULL ? *run : (esp_run){0};
    patient.progress = NULL;
    if (t->problem.modes == NULL || t->modes.value == t->found.point.value) return ESP_OK;
    return t->likelihood->evaluate(&t->problem, t->space.kernel, 0.0, t->cancelled ? &patient : run, &t->found.point,
                                   NULL, NULL, err);
}

/* `keep`: a run that is cancelled gives what it found. */
static esp_status learn(training *t, const espi_problem *p, bool keep, esp_error *err)
{
    esp_status status = prepare(t, p, err);
    if (status == ESP_OK)
        status =
            espi_gp_space_new(&t->space, t->settings, p->kernel, p->data, t->likelihood->noisy, t->spread, p->run, err);
    if (status == ESP_OK) status = take_room(t, p->run, err);
    espi_gp_settings own = *t->settings; /* with nothing to learn from, the hyperparameters stay */
    if (t->constant) own.max_iterations = own.restarts = 0;
    if (status == ESP_OK)
        status = t->problem.inducing != NULL
                     ? espi_gp_inducing_search(&t->space, &t->problem, &own, keep, p->run, &t->found, err)
                 : t->problem.iterative != NULL
                     ? espi_gp_iterative_search(&t->space, &t->problem, &own, keep, p->run, &t->found, err)
                     : espi_gp_exact_search(&t->space, &t->problem, t->likelihood, &own, p->run, &t->found, err);
    if (status == ESP_ERR_CANCELLED && keep && t->found.there) {
        t->cancelled = true;
        status = ESP_OK;
    }
    if (status == ESP_OK) status = find_modes(t, p->run, err);
    return status == ESP_OK ? espi_kernel_print(t->space.kernel, err) : status;
}

static void end_training(training *t)
{
    for (size_t k = 0; k < 3; k++) espi_free(t->problem.matrix[k]);
    espi_free(t->problem.vector);
    espi_inducing_free(&t->inducing);
    espi_free(t->modes.coefficient);
    espi_free(t->modes.curvature);
    espi_free(t->modes.latent);
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
    if (m->classes > 0) coefficient = t->modes.coefficient;
    const esp_status status = take_examples(m, t, err);
    if (status != ESP_OK) return status;
    const size_t n = m->support->rows * m->outputs;
    espi_gaussian *p = m->gaussian = espi_alloc_zero(1, sizeof *p);
    m->coefficient = espi_alloc(n, sizeof *m->coefficient);
    m->bias = espi_alloc_zero(m->outputs, sizeof *m->bias);
    if (p == NULL || m->coefficient == NULL || m->bias == NULL) return espi_no_memory(err);
    p->scale = t->scale;
    p->noise = espi_gp_space_noise(&t->space);
    p->jitter = t->found.point.jitter;
    if (m->classes == 0) m->bias[0] = t->mean + t->scale * t->found.point.mean;
    for (size_t i = 0; i < n; i++) m->coefficient[i] = t->scale * coefficient[i];
    if (low_rank != NULL) {
        /* no one needs these weights any more; a run that was cancelled gives its model all the same */
        const esp_status found = espi_low_rank_posterior(low_rank, low_rank->w_mm, &espi_alone, err);
        if (found != ESP_OK) return found;
        p->reduction = low_rank->w_mm;
        low_rank->w_mm = NULL;
    }
    if (m->classes == 0) return ESP_OK;
    p->curvature = t->modes.curvature;
    t->modes.curvature = NULL;
    return ESP_OK;
}

esp_status espi_gp_learn(const espi_problem *p, bool keep, esp_model **out, esp_error *err)
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
        m->outputs = t.problem.outputs;
        status = fill_support(m, &t, err);
    }
    if (status == ESP_OK) *out = m;
    else esp_model_free(m);
    end_training(&t);
    return status;
}

static esp_status train(const espi_problem *problem, esp_model **out, esp_error *err)
{
    return espi_gp_learn(problem, true, out, err);
}

/* ------------------------------------------------------------- likelihood */

/* Derivatives by hyperparameter from those by place of the kernel. */
static esp_status list_gradient(const esp_kernel *kernel, const double *place, double *gradient, size_t *count,
                                esp_error *err)
{
    espi_hyper *hyper = NULL;
    const esp_status status = espi_hypers_new(kernel, &hyper, count, err);
    for (size_t i = 0; status == ESP_OK && i < *count; i++) gradient[i] = place[hyper[i].place];
    espi_hypers_free(hyper, status == ESP_OK ? *count : 0);
    return status;
}

static esp_status log_likelihood(const espi_problem *p, double *value, double *gradient, esp_error *err)
{
    training t = {.settings = view(p->settings)};
    size_t count = 0;
    double noise = 0.0, *place = espi_alloc_zero(espi_kernel_places(p->kernel), sizeof *place);
    esp_status status = place == NULL ? espi_no_memory(err) : ESP_OK;
    if (status == ESP_OK && t.settings->inducing > 0)
        status = espi_fail(err, ESP_ERR_PARAM, "inducing is %zu; the likelihood at given values needs all examples",
                           t.settings->inducing);
    if (status == ESP_OK) status = prepare(&t, p, err);
    if (status == ESP_OK) status = take_room(&t, p->run, err);
    if (status == ESP_OK)
        status = t.likelihood->evaluate(&t.problem, p->kernel, t.settings->noise, p->run, &t.found.point,
                                        gradient != NULL ? place : NULL, &noise, err);
    if (status == ESP_OK) *value = t.found.point.value + t.found.shift;
    if (status == ESP_OK && gradient != NULL) status = list_gradient(p->kernel, place, gradient, &count, err);
    if (status == ESP_OK && gradient != NULL && t.likelihood->noisy) gradient[count] = noise;
    end_training(&t);
    espi_free(place);
    return status;
}

const espi_learner espi_learner_gp = {.name = "gp",
                                      .help = "Gaussian process for numbers or classes, which learns the kernel too",
                                      .settings = settings,
                                      .settings_size = sizeof(espi_gp_settings),
                                      .capabilities = ESP_LEARNS_CLASSES | ESP_LEARNS_NUMBERS | ESP_NEEDS_TARGET |
                                                      ESP_NEEDS_MATRIX | ESP_LEARNS_KERNEL | ESP_GIVES_VARIANCES |
                                                      ESP_GIVES_PROBABILITIES,
                                      .capabilities_with = capabilities_with,
                                      .check = check,
                                      .check_kernel = check_kernel,
                                      .targets = make_targets,
                                      .outputs = outputs,
                                      .train = train,
                                      .out_of_fold = espi_gp_out_of_fold,
                                      .log_likelihood = log_likelihood};
