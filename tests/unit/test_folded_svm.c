/* The folded solver against the problems that smo.h poses, solved another way: the whole Gram matrix, and
 * Newton's method from the interior of the bounds. Then what it says about itself (objectives, gap, worst violation)
 * against the definition, from its own variables. */
#include "files.h"
#include "learning.h"

#include "kernel/evaluate/folded_sum.h"
#include "learn/svm/folded.h"

enum { LEAST = 15, MOST_EXAMPLES = 60, CLASSES = 3, VARIABLES = 2 * MOST_EXAMPLES };

/* -------------------------------------------------------------------- data */

typedef struct sample { /* the targets as the library reads them, and as numbers */
    esp_dataset *data;
    size_t count, classes; /* no classes: numbers */
    size_t class_of[MOST_EXAMPLES];
    double value[MOST_EXAMPLES];
} sample;

/* Every third example is one before it once more, with a target of its own. */
static sample sample_of_size(uint64_t seed, size_t count, size_t classes)
{
    static const char *const words[] = {"a", "the", "cat", "sat", "on", "mat"};
    ref_random random = {seed};
    sample s = {.count = count, .classes = classes};
    char *body[MOST_EXAMPLES], *lines = malloc(count * 1200), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        char *end = body[i] = malloc(1000);
        assert_non_null(end);
        if (i % 3 == 2) {
            strcpy(body[i], body[ref_random_below(&random, i)]);
        } else {
            char *tree = ref_random_small_tree(&random, 24, 100000, i % 2 == 1);
            end += sprintf(end, "\"tree\": \"(S %s (K k%zu))\", \"words\": \"", tree, ref_random_below(&random, 3));
            for (size_t k = ref_random_below(&random, 6) + 1; k > 0; k--)
                end += sprintf(end, "%s ", words[ref_random_below(&random, 6)]);
            sprintf(end, "\", \"x\": [%.3f, %.3f, %.3f]", ref_random_between(&random, -1, 1),
                    ref_random_between(&random, -1, 1), ref_random_between(&random, 0, 2));
            free(tree);
        }
        s.class_of[i] = i < classes || classes == 0 ? i : ref_random_below(&random, classes);
        s.value[i] = ref_random_between(&random, -3, 5);
        if (classes == 0) at += sprintf(at, "{\"y\": %.17g, %s}\n", s.value[i], body[i]);
        else at += sprintf(at, "{\"y\": \"%c\", %s}\n", (int)('a' + s.class_of[i]), body[i]);
    }
    s.data = dataset_of(lines);
    for (size_t i = 0; i < count; i++) free(body[i]);
    free(lines);
    return s;
}

/* --------------------------------------------------------------- problems */

/* minimise 1/2 b'Kb + q'b  subject to  sum b = S, low <= b <= high: smo.h with b = s a. */
typedef struct program {
    size_t count;
    size_t example[VARIABLES];
    signed char sign[VARIABLES];
    double linear[VARIABLES], bound[VARIABLES]; /* p, C of smo.h */
    double sum;
} program;

typedef struct terms { /* what is learned, and how it is asked for */
    const char *learner, *settings;
    size_t classes;
    bool pairs;
    double cost, positive_weight, class_weight[CLASSES]; /* 0: 1 */
    double epsilon, nu;
} terms;

static const terms asked[] = {
    {"svm", "C=1", 2, .cost = 1},
    {"svm", "C=0.05", 2, .cost = 0.05},
    {"svm", "C=20", 2, .cost = 20},
    {"svm", "C=2 positive-weight=3", 2, .cost = 2, .positive_weight = 3},
    {"svm", "C=0.5 class-weight=a=2,b=0.25 positive-weight=1.5", 2, .cost = 0.5, .positive_weight = 1.5,
     .class_weight = {2, 0.25}},
    {"svm", "C=1", 3, .cost = 1},
    {"svm", "C=3 class-weight=a=2,c=0.5 positive-weight=2", 3, .cost = 3, .positive_weight = 2,
     .class_weight = {2, 1, 0.5}},
    {"svm", "C=1 multiclass=ovo class-weight=b=3", 3, true, .cost = 1, .class_weight = {1, 3, 1}},
    {"svm", "C=10 multiclass=ovo positive-weight=0.5", 3, true, .cost = 10, .positive_weight = 0.5},
    {"svr", "C=1", 0, .cost = 1, .epsilon = 0.1},
    {"svr", "C=10 epsilon=0.5", 0, .cost = 10, .epsilon = 0.5},
    {"svr", "C=0.1 epsilon=0", 0, .cost = 0.1, .epsilon = 0},
    {"oneclass", "nu=0.3", 0, .nu = 0.3},
    {"oneclass", "nu=0.05", 0, .nu = 0.05},
    {"oneclass", "nu=0.9", 0, .nu = 0.9},
};
enum { ASKED = sizeof asked / sizeof *asked };

static size_t outputs_of(const terms *t)
{
    return t->classes <= 2 ? 1 : t->pairs ? t->classes * (t->classes - 1) / 2 : t->classes;
}

static void pose_classes(const terms *t, const sample *s, size_t positive, size_t negative, program *p)
{
    for (size_t i = 0; i < s->count; i++) {
        const size_t c = s->class_of[i];
        if (c != positive && c != negative && negative < t->classes) continue;
        const double weight = t->class_weight[c] > 0.0 ? t->class_weight[c] : 1.0;
        const double more = c == positive && t->positive_weight > 0.0 ? t->positive_weight : 1.0;
        p->example[p->count] = i;
        p->sign[p->count] = c == positive ? 1 : -1;
        p->linear[p->count] = -1.0;
        p->bound[p->count++] = t->cost * weight * more;
    }
}

/* The second of two classes is positive; of several it is each against the rest, or the first of a pair. */
static program problem_of(const terms *t, const sample *s, size_t output)
{
    program p = {0};
    if (t->nu > 0.0) {
        p.count = s->count;
        p.sum = t->nu * (double)s->count;
        for (size_t i = 0; i < s->count; i++) p.example[i] = i, p.sign[i] = 1, p.bound[i] = 1.0;
    } else if (t->classes == 0) {
        p.count = 2 * s->count;
        for (size_t k = 0; k < p.count; k++) {
            p.example[k] = k % s->count;
            p.sign[k] = k < s->count ? 1 : -1;
            p.linear[k] = t->epsilon - p.sign[k] * s->value[k % s->count];
            p.bound[k] = t->cost;
        }
    } else if (t->classes == 2) {
        pose_classes(t, s, 1, 0, &p);
    } else if (!t->pairs) {
        pose_classes(t, s, output, t->classes, &p);
    } else {
        size_t number = 0;
        for (size_t a = 0; a < t->classes; a++)
            for (size_t b = a + 1; b < t->classes; b++)
                if (number++ == output) pose_classes(t, s, a, b, &p);
    }
    return p;
}

/* -------------------------------------------------------------- reference */

typedef struct optimum {
    double beta[VARIABLES];      /* s a */
    double score[MOST_EXAMPLES]; /* of all examples, without the bias */
    double dual;
    double least_bias, most_bias; /* all between are optimal */
} optimum;

/* score of example i: sum_k beta_k K(x_k, x_i) */
static void score_all(const program *p, const double *beta, const double *gram, size_t n, double *score)
{
    for (size_t i = 0; i < n; i++) {
        score[i] = 0.0;
        for (size_t k = 0; k < p->count; k++) score[i] += beta[k] * gram[p->example[k] * n + i];
    }
}

/* Dual objective of smo.h, to be maximised. */
static double dual_of(const program *p, const double *beta, const double *score)
{
    double sum = 0.0;
    for (size_t k = 0; k < p->count; k++) sum -= beta[k] * (score[p->example[k]] / 2.0 + p->sign[k] * p->linear[k]);
    return sum;
}

/* 1/2 |w|^2 + sum_k C_k max(0, -s_k (f(x_k)) - p_k) + bias S, the primal objective for any bias. */
static double primal_of(const program *p, const double *beta, const double *score, double bias)
{
    double sum = bias * p->sum;
    for (size_t k = 0; k < p->count; k++) {
        const double gradient = p->sign[k] * (score[p->example[k]] + bias) + p->linear[k];
        sum += beta[k] * score[p->example[k]] / 2.0 + p->bound[k] * fmax(0.0, -gradient);
    }
    return sum;
}

static double low_of(const program *p, size_t k) { return p->sign[k] > 0 ? 0.0 : -p->bound[k]; }
static double high_of(const program *p, size_t k) { return p->sign[k] > 0 ? p->bound[k] : 0.0; }

/* Solves M x = r for a positive definite M, of which the lower triangle becomes its Cholesky factor. */
static void factorise(double *m, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double sum = m[i * n + j];
            for (size_t k = 0; k < j; k++) sum -= m[i * n + k] * m[j * n + k];
            m[i * n + j] = i == j ? sqrt(sum) : sum / m[j * n + j];
        }
}

static void solve(const double *m, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= m[i * n + k] * x[k];
        x[i] /= m[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) x[i] -= m[k * n + i] * x[k];
        x[i] /= m[i * n + i];
    }
}

typedef struct interior { /* a point of the interior, and its multipliers */
    double beta[VARIABLES], bias;
    double low[VARIABLES], high[VARIABLES]; /* of the bounds: how much a variable pushes against them */
} interior;

static double mean_product(const program *p, const interior *v)
{
    double sum = 0.0;
    for (size_t k = 0; k < p->count; k++)
        sum += (v->beta[k] - low_of(p, k)) * v->low[k] + (high_of(p, k) - v->beta[k]) * v->high[k];
    return sum / (double)(2 * p->count);
}

/* How far a step may go, so that all four stay positive. */
static double longest(double value, double change, double most)
{
    return change < 0.0 && -0.99 * value / change < most ? -0.99 * value / change : most;
}

/* One step of Newton's method for
 *     K b + q + bias - low + high = 0,  sum b = S,  (b - lowest) low = (highest - b) high = target. */
static void step(const program *p, const double *gram, size_t n, double target, interior *v)
{
    static double m[VARIABLES * VARIABLES];
    double move[VARIABLES], ones[VARIABLES], score[MOST_EXAMPLES], total = -p->sum, moves = 0.0, all = 0.0,
                                                                   length = 1.0;
    score_all(p, v->beta, gram, n, score);
    for (size_t k = 0; k < p->count; k++) {
        const double x = v->beta[k] - low_of(p, k), y = high_of(p, k) - v->beta[k];
        for (size_t l = 0; l <= k; l++) m[k * p->count + l] = gram[p->example[k] * n + p->example[l]];
        m[k * p->count + k] += v->low[k] / x + v->high[k] / y;
        move[k] = target / x - target / y - (score[p->example[k]] + p->sign[k] * p->linear[k] + v->bias);
        ones[k] = 1.0;
        total += v->beta[k];
    }
    factorise(m, p->count);
    solve(m, p->count, move);
    solve(m, p->count, ones);
    for (size_t k = 0; k < p->count; k++) moves += move[k], all += ones[k];
    const double bias = (moves + total) / all;
    double low[VARIABLES], high[VARIABLES];
    for (size_t k = 0; k < p->count; k++) {
        const double x = v->beta[k] - low_of(p, k), y = high_of(p, k) - v->beta[k];
        move[k] -= bias * ones[k];
        low[k] = (target - v->low[k] * move[k]) / x - v->low[k];
        high[k] = (target + v->high[k] * move[k]) / y - v->high[k];
        length = longest(x, move[k], longest(y, -move[k], length));
        length = longest(v->low[k], low[k], longest(v->high[k], high[k], length));
    }
    for (size_t k = 0; k < p->count; k++) {
        v->beta[k] += length * move[k];
        v->low[k] += length * low[k];
        v->high[k] += length * high[k];
    }
    v->bias += length * bias;
}

/* Between which values the bias may be: that of a variable that can move fixes it. */
static void limit_bias(const program *p, optimum *o)
{
    o->least_bias = -INFINITY;
    o->most_bias = INFINITY;
    for (size_t k = 0; k < p->count; k++) {
        const double wide = 1e-6 * p->bound[k], at = -o->score[p->example[k]] - p->sign[k] * p->linear[k];
        if (high_of(p, k) - o->beta[k] > wide) o->least_bias = fmax(o->least_bias, at);
        if (o->beta[k] - low_of(p, k) > wide) o->most_bias = fmin(o->most_bias, at);
    }
}

static optimum optimum_of(const program *p, const double *gram, size_t n)
{
    optimum o = {0};
    interior v = {.bias = 0.0};
    for (size_t k = 0; k < p->count; k++) {
        v.beta[k] = (low_of(p, k) + high_of(p, k)) / 2.0;
        v.low[k] = v.high[k] = 1.0;
    }
    double apart = INFINITY;
    for (size_t steps = 0; apart > 1e-10 * fmax(1e-6, fabs(o.dual)); steps++) {
        if (steps > 300) fail_msg("the reference does not come to an end: %g", apart);
        step(p, gram, n, 0.2 * mean_product(p, &v), &v);
        score_all(p, v.beta, gram, n, o.score);
        o.dual = dual_of(p, v.beta, o.score);
        apart = fabs(primal_of(p, v.beta, o.score, v.bias) - o.dual);
        double sum = -p->sum;
        for (size_t k = 0; k < p->count; k++) sum += v.beta[k];
        apart = fmax(apart, fabs(sum) * (1.0 + fabs(v.bias)));
    }
    memcpy(o.beta, v.beta, sizeof o.beta);
    limit_bias(p, &o);
    return o;
}

/* -------------------------------------------------------------- comparison */

typedef struct fitted {
    espi_settings *settings;
    espi_targets targets;
    espi_fit fit;
} fitted;

static fitted fit_of(const terms *t, const char *kernel, const sample *s, const char *more, const esp_run *run)
{
    static uint32_t example[MOST_EXAMPLES];
    char settings[160];
    snprintf(settings, sizeof settings, "%s solver=folded %s", t->settings, more);
    fitted f = {.settings = settings_of(t->learner, settings)};
    f.targets = learned_targets(f.settings, s->data);
    for (size_t i = 0; i < s->count; i++) example[i] = (uint32_t)i;
    espi_training training = {
        .settings = f.settings, .targets = &f.targets, .example = example, .count = s->count, .fit = &f.fit};
    esp_kernel *k = kernel_of(kernel);
    espi_folded_sum *sum = NULL;
    esp_error err = {0};
    assert_ok(espi_folded_sum_new(k, s->data, espi_folded_outputs(&training), run, &sum, &err), kernel, &err);
    assert_ok(espi_folded_fit(&training, k, sum, run, &err), kernel, &err);
    espi_folded_sum_free(sum);
    esp_kernel_free(k);
    return f;
}

static void free_fitted(fitted *f)
{
    espi_fit_free(&f->fit);
    espi_targets_free(&f->targets);
    espi_settings_free(f->settings);
}

static void near(double is, double expected, double margin, const char *what, const terms *t, const char *kernel)
{
    if (!(fabs(is - expected) <= margin))
        fail_msg("%s %s, %s: %s is %.17g instead of %.17g, more than %g apart", t->learner, t->settings, kernel, what,
                 is, expected, margin);
}

static void holds(bool truth, const char *what, const terms *t, const char *kernel)
{
    if (!truth) fail_msg("%s %s, %s: %s", t->learner, t->settings, kernel, what);
}

typedef struct judged { /* what the definition says about a fit */
    double primal, dual, gap, violation;
} judged;

/* The variables of one output: feasible; and the objectives and the violation that they and the bias have. */
static judged judge(const program *p, const espi_fit *fit, size_t output, const double *gram, size_t n, double *score,
                    const terms *t, const char *kernel)
{
    const double *alpha = fit->alpha + fit->alpha_start[output], bias = fit->bias[output];
    double beta[VARIABLES], coefficient[MOST_EXAMPLES] = {0.0}, sum = 0.0, size = 0.0;
    judged j = {0};
    holds(fit->alpha_start[output + 1] - fit->alpha_start[output] == p->count, "number of variables", t, kernel);
    for (size_t k = 0; k < p->count; k++) {
        holds(alpha[k] >= 0.0 && alpha[k] <= p->bound[k], "a variable is out of its bounds", t, kernel);
        beta[k] = p->sign[k] * alpha[k];
        coefficient[p->example[k]] += beta[k];
        sum += beta[k];
        size += alpha[k];
    }
    near(sum, p->sum, 1e-9 * size, "the sum of the variables", t, kernel);
    for (size_t i = 0; i < n; i++)
        near(fit->coefficient[i * fit->outputs + output], coefficient[i], 1e-12 * size, "a coefficient", t, kernel);
    score_all(p, beta, gram, n, score);
    j.primal = primal_of(p, beta, score, bias);
    j.dual = dual_of(p, beta, score);
    j.gap = j.primal != 0.0 ? (j.primal - j.dual) / fabs(j.primal) : 0.0;
    for (size_t k = 0; k < p->count; k++) {
        const double g = p->sign[k] * (score[p->example[k]] + bias) + p->linear[k];
        if (alpha[k] < p->bound[k]) j.violation = fmax(j.violation, -g);
        if (alpha[k] > 0.0) j.violation = fmax(j.violation, g);
    }
    return j;
}

/* With the gap d between the objectives, |w - w*|^2 / 2 <= d, so that scores are at most sqrt(2 d K(x, x)) apart. */
static void compare_output(const optimum *o, const judged *j, const double *score, double bias, const double *gram,
                           size_t n, double tolerance, const terms *t, const char *kernel)
{
    const double scale = fmax(1e-6, fabs(o->dual)), noise = 1e-9 * scale;
    holds(j->primal >= o->dual - noise, "the primal objective is below the best", t, kernel);
    holds(j->dual <= o->dual + noise, "the dual objective is above the best", t, kernel);
    near(j->dual, o->dual, (tolerance > 1e-4 ? 1e-4 : tolerance / 10.0) * scale, "the dual objective", t, kernel);
    const double apart = fmax(0.0, j->primal - j->dual) + noise;
    double most = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double reach = sqrt(2.0 * apart * gram[i * n + i]);
        near(score[i], o->score[i], reach + 1e-9 * (1.0 + fabs(score[i])), "a score", t, kernel);
        most = fmax(most, reach);
    }
    /* A variable that should be free fixes the bias up to its own violation and the change of its score. */
    const double slack = most + tolerance + 1e-7 * (1.0 + fabs(bias));
    holds(bias >= o->least_bias - slack && bias <= o->most_bias + slack, "the bias", t, kernel);
}

static void compare(const terms *t, const char *kernel, const sample *s, double tolerance)
{
    char more[40];
    snprintf(more, sizeof more, "tolerance=%g", tolerance);
    fitted f = fit_of(t, kernel, s, more, &(esp_run){.threads = 1});
    const espi_certificate *c = &f.fit.certificate;
    double *gram = gram_of(kernel, s->data, NULL, 1);
    const size_t outputs = outputs_of(t), n = s->count;
    judged all = {0};
    holds(f.fit.outputs == outputs && c->there && !f.fit.cancelled, "outputs or certificate", t, kernel);
    holds(f.fit.converged, "it did not converge", t, kernel);
    for (size_t output = 0; output < outputs; output++) {
        const program p = problem_of(t, s, output);
        const optimum o = optimum_of(&p, gram, n);
        double score[MOST_EXAMPLES];
        const judged j = judge(&p, &f.fit, output, gram, n, score, t, kernel);
        compare_output(&o, &j, score, f.fit.bias[output], gram, n, tolerance, t, kernel);
        all.primal += j.primal;
        all.dual += j.dual;
        all.gap = fmax(all.gap, j.gap);
        all.violation = fmax(all.violation, j.violation);
    }
    const double noise = 1e-9 * fmax(1.0, fabs(all.primal));
    near(c->primal, all.primal, noise, "the primal objective told", t, kernel);
    near(c->dual, all.dual, noise, "the dual objective told", t, kernel);
    near(c->gap, all.gap, 1e-8, "the gap told", t, kernel);
    near(c->violation, all.violation, 1e-9 * (1.0 + fabs(f.fit.bias[0])), "the worst violation told", t, kernel);
    holds(c->primal >= c->dual - noise, "the primal objective told is below the dual", t, kernel);
    holds(c->gap <= tolerance && c->violation <= tolerance, "the tolerance is not kept", t, kernel);
    free(gram);
    free_fitted(&f);
}

static const char *const kernels[] = {
    "norm(sst(tree, lambda=0.4))",
    "sst(tree, lambda=1)",
    "linear(x)",
    "poly(x, degree=3) + 0.5*poly(words, degree=2)",
    "norm(seq(words, lambda=0.6))",
    "norm(ptk(tree)) + 0.3*linear(x)",
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void compare_all(double tolerance, size_t rounds)
{
    for (size_t round = 0; round < rounds; round++)
        for (size_t a = 0; a < ASKED; a++)
            for (size_t k = 0; k < KERNELS; k++) {
                ref_random random = {100 * round + 10 * a + k + 1};
                const size_t count = LEAST + ref_random_below(&random, MOST_EXAMPLES - LEAST + 1);
                sample s = sample_of_size(1000 * round + 31 * a + k, count, asked[a].classes);
                compare(&asked[a], kernels[k], &s, tolerance);
                esp_dataset_free(s.data);
            }
}

static void test_against_definition(void **state)
{
    (void)state;
    compare_all(1e-3, REPEATS(4));
}

static void test_against_definition_closely(void **state)
{
    (void)state;
    compare_all(1e-6, REPEATS(2));
}

/* ------------------------------------------------------------------ models */

/* What the model says and predicts is what the fit has, for any number of threads. */
static void test_model_with_threads(void **state)
{
    (void)state;
    for (size_t a = 0; a < ASKED; a++) {
        sample s = sample_of_size(a + 7, MOST_EXAMPLES, asked[a].classes);
        char settings[160];
        snprintf(settings, sizeof settings, "%s solver=folded", asked[a].settings);
        fitted f = fit_of(&asked[a], kernels[0], &s, "", &(esp_run){.threads = 2});
        esp_model *m = trained(asked[a].learner, kernels[0], s.data, settings, &(esp_run){.threads = 1});
        esp_model *n = trained(asked[a].learner, kernels[0], s.data, settings, &(esp_run){.threads = 3});
        const blob one = bytes_of(m), three = bytes_of(n);
        same_bytes(one, three);
        assert_true(told(m, "primal objective") == f.fit.certificate.primal);
        assert_true(told(m, "dual objective") == f.fit.certificate.dual);
        assert_true(told(m, "relative gap") == f.fit.certificate.gap);
        assert_true(told(m, "worst violation") == f.fit.certificate.violation);
        esp_predictions *p = predicted(m, s.data, 1);
        double *gram = gram_of(kernels[0], s.data, NULL, 1);
        for (size_t i = 0; outputs_of(&asked[a]) == 1 && i < s.count; i++) {
            double score = f.fit.bias[0];
            for (size_t j = 0; j < s.count; j++) score += f.fit.coefficient[j] * gram[j * s.count + i];
            near(esp_predictions_score(p, i), score, 1e-9 * (1.0 + fabs(score)), "a prediction", &asked[a], kernels[0]);
        }
        free(gram);
        free(one.bytes);
        free(three.bytes);
        esp_predictions_free(p);
        esp_model_free(m);
        esp_model_free(n);
        free_fitted(&f);
        esp_dataset_free(s.data);
    }
}

/* ---------------------------------------------------------------- extremes */

static void converges(const char *learner, const char *kernel, const char *lines, const char *settings)
{
    char all[160];
    snprintf(all, sizeof all, "%s solver=folded max-iterations=200000", settings);
    esp_dataset *data = dataset_of(lines);
    esp_model *m = trained(learner, kernel, data, all, &(esp_run){.threads = 1});
    char *summary = NULL;
    esp_error err = {0};
    assert_ok(esp_model_summary(m, &summary, &err), "summary", &err);
    if (strstr(summary, "end\tconverged") == NULL) fail_msg("%s %s on %s:\n%s", learner, all, kernel, summary);
    assert_true(told(m, "relative gap") <= 1e-3 && told(m, "worst violation") <= 1e-3);
    esp_text_free(summary);
    esp_model_free(m);
    esp_dataset_free(data);
}

/* `count` examples, x in three dimensions; y is `scale` times what a line has, with some noise. */
static char *numbers_of(size_t count, double scale)
{
    ref_random random = {count};
    char *lines = malloc(count * 120), *at = lines;
    assert_non_null(lines);
    for (size_t i = 0; i < count; i++) {
        const double x = ref_random_between(&random, -1, 1), y = ref_random_between(&random, -1, 1);
        const double target = scale * (x - y * y + 0.1 * ref_random_between(&random, 0, 1));
        at +=
            sprintf(at, "{\"y\": %.9g, \"x\": [%.6f, %.6f, %.6f]}\n", target, x, y, ref_random_between(&random, 0, 2));
    }
    return lines;
}

/* A bias far away: one that steps as large as the bounds allow would take for ever to reach. */
static void test_far_bias(void **state)
{
    (void)state;
    static const double scale[] = {1.0, 1e6, 1e12};
    static const char *const settings[] = {"C=1e-6", "C=1e-3", "C=1", "C=1e-6 epsilon=0"};
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
            char *lines = numbers_of(200, scale[i]);
            converges("svr", "linear(x)", lines, settings[k]);
            converges("svr", "poly(x, degree=3)", lines, settings[k]);
            free(lines);
        }
}

/* Where nearly all variables are at their bounds, rounding must not keep one from its own. */
static void test_all_but_at_bounds(void **state)
{
    (void)state;
    static const char *const nu[] = {"nu=0.9", "nu=0.95", "nu=0.975", "nu=0.999", "nu=1", "nu=0.001", "nu=1e-9"};
    for (size_t count = 20; count <= 40; count += 10)
        for (size_t i = 0; i < sizeof nu / sizeof *nu; i++) {
            char *lines = numbers_of(count, 1.0);
            converges("oneclass", "linear(x)", lines, nu[i]);
            free(lines);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_with_threads),         cmocka_unit_test(test_far_bias),
        cmocka_unit_test(test_all_but_at_bounds),          cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_against_definition_closely),
    };
    return cmocka_run_group_tests(tests, NULL, no_blocks_left);
}
